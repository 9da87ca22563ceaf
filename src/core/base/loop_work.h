/* loop_work.h: how much work each turn of an event loop does on input from outside.
 *
 * A server stalls when one turn of its loop does too much: no other client is served meanwhile. Time on a shared
 * machine says little about that, so work is counted in bytes: every place that parses, unpacks, decodes or
 * packs bytes adds how many it handled, and every message or request that is started or cancelled adds
 * LOOP_WORK_MESSAGE_BYTES on top.
 *
 *     loop_work_add(n);              // n bytes were parsed
 *     loop_work_add_message(n);      // a message of n bytes was handled
 *     loop_work_end_turn();          // by the owner of the loop, once a turn (http/http_server.c)
 *     loop_work_get()->max_bytes;    // the largest turn so far
 *
 * The counters belong to the calling thread. What a thread of a pool does is therefore not counted against the
 * loop that handed it the job. */
#ifndef BASE_LOOP_WORK_H
#define BASE_LOOP_WORK_H

#include <stddef.h>
#include <stdint.h>

enum { LOOP_WORK_MESSAGE_BYTES = 4096, LOOP_WORK_N_BOUNDS = 8 };

typedef struct loop_work {
    uint64_t turn_bytes; /* of the turn that is under way */
    uint64_t max_bytes;  /* of the largest turn */
    uint64_t total_bytes;
    uint64_t counts[LOOP_WORK_N_BOUNDS + 1]; /* turns with work by LOOP_WORK_BOUNDS; the last: above all */
} loop_work;

/* Upper bounds of the counts, in bytes. */
extern const uint64_t LOOP_WORK_BOUNDS[LOOP_WORK_N_BOUNDS];

void loop_work_add(size_t bytes);
void loop_work_add_message(size_t bytes);
/* The turn is over. A turn without work is not counted, so a second call in the same turn does nothing. */
void loop_work_end_turn(void);
const loop_work *loop_work_get(void);
/* Begin again with all counters at 0: for tests. */
void loop_work_reset(void);

#endif
