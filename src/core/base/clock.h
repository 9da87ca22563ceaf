/* clock.h: monotonic time, and draws that depend on (seed, position) alone. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t of)
{
    struct timespec t;
    clock_gettime(of, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

/* How long this thread has had a core. */
static inline uint64_t clock_thread_cpu_ns(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* How long all threads of this process have had one. */
static inline uint64_t clock_process_cpu_ns(void)
{
    return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline double clock_ms_since(uint64_t start_ns)
{
    return (double)(clock_ns() - start_ns) / 1e6;
}

/* splitmix64's finaliser (Steele, Lea, Flood 2014): a bijection that mixes well. */
static inline uint64_t rng_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* A double in [0, 1) from a counter-based generator: no state, so position p draws the same number
 * on every machine, in every batch, and after a replay. */
static inline double rng_uniform(uint64_t seed, uint64_t position)
{
    return (double)(rng_mix(rng_mix(seed) ^ rng_mix(position * 2 + 1)) >> 11) * 0x1p-53;
}

/* Random bytes from the kernel (getrandom); aborts if the kernel has none. */
void rng_bytes(void *out, unsigned n);
/* The same bytes read ahead, a page of them a thread: for names of requests and streams, seeds and spans, of
 * which a request draws several. Each byte is given out once and forgotten, in a forked child too. Keys,
 * salts and nonces of ciphers take rng_bytes. n is 64 at most. */
void rng_draw(void *out, unsigned n);

#endif
