/* sampling.h: what a client may ask of the sampler, in one table.
 *
 * The ranges are OpenAI's where OpenAI has the field. HTTP, the worker protocol, the library and the
 * command line all check against these rows, so that none of them takes what another refuses. 0 is always
 * allowed: it turns a field off (temperature 0 is greedy).
 *
 *     #define CHECK(field, min, max) if (rc == 0) rc = sampling_check(#field, (double)s->field, err);
 *     SAMPLING_TABLE(CHECK) */
#ifndef BASE_SAMPLING_H
#define BASE_SAMPLING_H

#include "base/clock.h"
#include "base/err.h"

#define SAMPLING_TEMPERATURE_MAX 2
#define SAMPLING_TOP_P_MAX       1

/* X(field, least besides 0, most) */
#define SAMPLING_TABLE(X)                       \
    X(temperature, 0, SAMPLING_TEMPERATURE_MAX) \
    X(top_k, 0, 1000000)                        \
    X(top_p, 0, SAMPLING_TOP_P_MAX)             \
    X(min_p, 0, 1)                              \
    X(repetition_penalty, 0.01, 10)             \
    X(presence_penalty, -2, 2)                  \
    X(frequency_penalty, -2, 2)

/* 0, or SHOAL_EINVALID with the field's name and range. `field` is one of the table's. */
int sampling_check(const char *field, double v, shoal_err *err);

/* The seed of one choice of one prompt of a request; the first choice of the first prompt has the request's
 * own. A sum would make choice k+1 of one seed choice k of the next. Applied to its result it gives the
 * request's seed back. */
static inline uint64_t sampling_seed(uint64_t seed, uint32_t prompt, uint32_t choice)
{
    uint64_t mask = choice ? rng_mix(choice) : 0;
    return seed ^ mask ^ (prompt ? rng_mix((uint64_t)prompt << 32) : 0);
}

#endif
