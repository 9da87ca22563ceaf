/* sizes.h: how many sizes a sweep over kernels tries. */
#ifndef TESTS_ENGINE_SIZES_H
#define TESTS_ENGINE_SIZES_H

#include <stdbool.h>
#include <stddef.h>

/* Are some sizes enough? Under ThreadSanitizer, which looks at who writes which rows. */
static inline bool few_sizes(void)
{
#ifdef __SANITIZE_THREAD__
    return true;
#else
    return false;
#endif
}

/* A sweep's step. Seven has no divisor in common with the widths of vectors and tiles: every remainder is met. */
static inline size_t size_step(void)
{
    return few_sizes() ? 7 : 1;
}

#endif
