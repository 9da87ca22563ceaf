/* check.h: what the tests of compute share: draws, bit comparison, usable instruction sets. */
#ifndef TESTS_COMPUTE_CHECK_H
#define TESTS_COMPUTE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "compute/compute.h"

/* A float in (-1, 1) that depends on (seed, i) alone. */
static inline float draw(uint64_t seed, size_t i)
{
    return (float)(rng_uniform(seed, i) * 2 - 1);
}

static inline float *draw_floats(uint64_t seed, size_t n, float scale)
{
    float *x = malloc((n ? n : 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = draw(seed, i) * scale;
    return x;
}

/* The same bits; a NaN equals any NaN, because x86 and C libraries choose its payload. */
static inline void assert_same_bits(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, sizeof *a) == 0 || (a[i] != a[i] && b[i] != b[i])) continue;
        fail_msg("%s: element %zu of %zu is %a, should be %a", what, i, n, (double)a[i], (double)b[i]);
    }
}

static inline team *new_team(int n, isa i)
{
    team *t = NULL;
    shoal_err err;
    if (team_new(&t, n, i, &err) != 0) fail_msg("%s", err.message);
    return t;
}

/* Every instruction set but scalar that this machine runs, or a note that it was skipped; those of another
 * kind of processor are not of this build and go without a word. */
#define EACH_WIDE_ISA(i)                                                \
    for (isa i = ISA_SCALAR + 1; i < ISA_COUNT; i++)                    \
        if (!isa_built(i))                                              \
            continue;                                                   \
        else if (!isa_usable(i))                                        \
            fprintf(stderr, "SKIP %s: not usable here\n", isa_name(i)); \
        else

#endif
