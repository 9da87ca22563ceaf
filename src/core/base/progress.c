/* progress.c: see progress.h. */
#include "base/progress.h"

static progress_counts own;
static progress_counts *at = &own; /* changed before there are other threads */
static _Thread_local bool is_loop;

_Thread_local size_t progress_added;

void progress_publish(progress_counts *to)
{
    at = to ? to : &own;
}

void progress_clear(progress_counts *p)
{
    atomic_store_explicit(&p->n_working, 0, memory_order_relaxed);
    atomic_store_explicit(&p->loops, 0, memory_order_relaxed);
    atomic_store_explicit(&p->work, 0, memory_order_relaxed);
    atomic_store_explicit(&p->loop, 0, memory_order_relaxed);
}

void progress_run_loop(void)
{
    is_loop = true;
    atomic_store_explicit(&at->loops, 1, memory_order_relaxed);
}

uint64_t progress_count(void)
{
    return atomic_load_explicit(&at->work, memory_order_relaxed);
}

bool progress_works(void)
{
    return atomic_load_explicit(&at->n_working, memory_order_relaxed) > 0;
}

void progress_tick(void)
{
    atomic_fetch_add_explicit(is_loop ? &at->loop : &at->work, 1, memory_order_relaxed);
}

/* Waiting was no work: the count of a thread that comes from there is a new one. */
void progress_begin(void)
{
    progress_tick();
    atomic_fetch_add_explicit(&at->n_working, 1, memory_order_relaxed);
}

void progress_end(void)
{
    atomic_fetch_sub_explicit(&at->n_working, 1, memory_order_relaxed);
}
