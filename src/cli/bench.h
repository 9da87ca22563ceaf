/* bench.h: what `shoal bench` measures. Each prints a table (or JSON) to stdout. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/cli_model.h"

typedef struct bench_options {
    const char *url, *only; /* only: names of scenarios over HTTP, with commas; NULL: all */
    long long n_prompt, n_generate, repeat;
    long long n_chunks, dims; /* n_chunks 0: no search is measured */
    cli_model_options model;
    bool json;
} bench_options;

/* Every usable instruction set: matrix-vector GB/s and matrix-matrix multiply-adds/s. */
int bench_kernels(const bench_options *o, shoal_err *err);
/* One model in this process: prefill and decode, or one encoder call. */
int bench_model(const bench_options *o, const char *model, shoal_err *err);
/* A search among n_chunks drawn vectors of `dims` and as many drawn texts. */
int bench_chunks(const bench_options *o, shoal_err *err);
/* A running home cluster over HTTP: the figures that the README quotes. */
int bench_http(const bench_options *o, shoal_err *err);

#endif
