/* bench_gate.c: one thread waits for what the engine thread finishes; see bench.h. */
#include "base/clock.h"
#include "bench/bench.h"

void bench_gate_init(bench_gate *g, size_t n)
{
    *g = (bench_gate){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .left = n};
}

void bench_gate_pass(bench_gate *g, int status, const gen_timings *timings)
{
    pthread_mutex_lock(&g->lock);
    if (status != 0) g->status = status;
    if (timings) g->timings = *timings;
    g->left--;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

int bench_gate_wait(bench_gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (g->left) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return g->status;
}

void bench_fill_ids(int32_t *ids, size_t n, size_t n_vocab, uint64_t salt)
{
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(salt << 32 | i) % n_vocab);
}
