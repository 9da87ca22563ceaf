/* bench_list.h: the lists of whole numbers that options of `shoal bench` give.
 *
 *     bench_list counts;
 *     bench_list_read(&counts, NULL, "clients", "1,4,16", 1, 4096, &err); */
#ifndef BENCH_BENCH_LIST_H
#define BENCH_BENCH_LIST_H

#include <stddef.h>

#include "base/err.h"

enum { BENCH_LIST_MAX = 16, BENCH_THREADS_MAX = 64 };

/* "128,512" */
typedef struct bench_list {
    size_t v[BENCH_LIST_MAX], n;
} bench_list;

/* "1,4,16", each from least to most; with `more`, "1x8,32x32". SHOAL_EINVALID names the option. */
int bench_list_read(bench_list *ret, bench_list *more, const char *name, const char *text, size_t least,
                    size_t most, shoal_err *err);
/* What --threads says: one number from 0 (all cores) to BENCH_THREADS_MAX, or several from 1, each once, which
 * come in ascending order. SHOAL_EINVALID. */
int bench_threads_read(bench_list *ret, const char *text, shoal_err *err);

#endif
