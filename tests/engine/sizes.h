/* sizes.h: how many sizes a sweep over kernels tries. */
#ifndef TESTS_ENGINE_SIZES_H
#define TESTS_ENGINE_SIZES_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Are some sizes enough? Under ThreadSanitizer, which looks at who writes which rows, and with SHOAL_TEST_SIZES=few, which
 * scripts/neon.sh sets for its short form. */
static inline bool few_sizes(void)
{
#ifdef __SANITIZE_THREAD__
    return true;
#else
    const char *sizes = getenv("SHOAL_TEST_SIZES");
    return sizes && strcmp(sizes, "few") == 0;
#endif
}

/* A sweep's step. Seven has no divisor in common with the widths of vectors and tiles: every remainder is met. */
static inline size_t size_step(void)
{
    return few_sizes() ? 7 : 1;
}

#endif
