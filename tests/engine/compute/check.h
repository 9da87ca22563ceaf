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

#include "../sizes.h"
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

/* Does this machine run the instruction set? A note, once, says that one was skipped; those of another kind of
 * processor are not of this build and go without a word. */
static inline bool isa_runs(isa i)
{
    static bool noted[ISA_COUNT];
    if (!isa_built(i) || isa_usable(i)) return isa_built(i);
    if (!noted[i]) fprintf(stderr, "SKIP %s: not usable here\n", isa_name(i));
    noted[i] = true;
    return false;
}

/* Every instruction set but scalar that this machine runs. */
#define EACH_WIDE_ISA(i)                             \
    for (isa i = ISA_SCALAR + 1; i < ISA_COUNT; i++) \
        if (!isa_runs(i))                            \
            continue;                                \
        else

#endif
