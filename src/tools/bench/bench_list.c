/* bench_list.c: see bench_list.h. */
#include "bench/bench_list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A whole number up to `most` at *at, which moves behind it. */
static bool take_number(const char **at, size_t most, size_t *ret)
{
    size_t n = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9'; p++)
        if ((n = n * 10 + (size_t)(*p - '0')) > most) return false;
    if (p == *at) return false;
    *at = p;
    *ret = n;
    return true;
}

static bool take_list(bench_list *ret, bench_list *more, const char *text, size_t least, size_t most)
{
    const char *at = text;
    bool ok = true;
    for (ret->n = 0; ok; at++) {
        ok = ret->n < BENCH_LIST_MAX && take_number(&at, most, &ret->v[ret->n]) && ret->v[ret->n] >= least;
        if (ok && more) ok = *at++ == 'x' && take_number(&at, most, &more->v[ret->n]) && more->v[ret->n];
        ret->n += ok;
        if (ok && !*at) break;
        ok = ok && *at == ',';
    }
    if (more) more->n = ret->n;
    return ok;
}

int bench_list_read(bench_list *ret, bench_list *more, const char *name, const char *text, size_t least,
                    size_t most, shoal_err *err)
{
    if (take_list(ret, more, text, least, most)) return 0;
    return err_set(
        err, SHOAL_EINVALID, "--%s wants up to %d %s from %zu to %zu with commas between, not \"%.60s\"",
        name, BENCH_LIST_MAX, more ? "shapes such as 8x32, numbers" : "whole numbers", least, most, text);
}

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

int bench_threads_read(bench_list *ret, const char *text, shoal_err *err)
{
    size_t least = strchr(text, ',') ? 1 : 0;
    if (!take_list(ret, NULL, text, least, BENCH_THREADS_MAX))
        return err_set(err, SHOAL_EINVALID,
                       "--threads wants a whole number from 0 to %d, or up to %d from 1 to %d with commas "
                       "between, not \"%.60s\"",
                       BENCH_THREADS_MAX, BENCH_LIST_MAX, BENCH_THREADS_MAX, text);
    qsort(ret->v, ret->n, sizeof *ret->v, by_size);
    for (size_t i = 1; i < ret->n; i++)
        if (ret->v[i] == ret->v[i - 1])
            return err_set(err, SHOAL_EINVALID, "--threads %.60s names %zu twice", text, ret->v[i]);
    return 0;
}
