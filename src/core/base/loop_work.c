/* loop_work.c: the counters of one thread. */
#include "base/loop_work.h"

const uint64_t LOOP_WORK_BOUNDS[LOOP_WORK_N_BOUNDS] = {16u << 10, 64u << 10, 256u << 10, 512u << 10,
                                                       1u << 20,  2u << 20,  4u << 20,   16u << 20};

static _Thread_local loop_work work;

void loop_work_add(size_t bytes)
{
    work.turn_bytes += bytes;
}

void loop_work_add_message(size_t bytes)
{
    work.turn_bytes += LOOP_WORK_MESSAGE_BYTES + bytes;
}

void loop_work_end_turn(void)
{
    uint64_t bytes = work.turn_bytes;
    size_t i = 0;
    if (bytes == 0) return;
    while (i < LOOP_WORK_N_BOUNDS && bytes > LOOP_WORK_BOUNDS[i]) i++;
    work.counts[i]++;
    work.total_bytes += bytes;
    if (bytes > work.max_bytes) work.max_bytes = bytes;
    work.turn_bytes = 0;
}

const loop_work *loop_work_get(void)
{
    return &work;
}

void loop_work_reset(void)
{
    work = (loop_work){0};
}
