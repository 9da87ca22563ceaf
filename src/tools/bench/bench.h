/* bench.h: what `shoal bench` measures. Each prints a table (or JSON) to stdout. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <pthread.h>

#include "bench/bench_report.h"
#include "command/cli_model.h"

enum { BENCH_LIST_MAX = 16 };
/* "128,512": what an option with commas says. */
typedef struct bench_list {
    size_t v[BENCH_LIST_MAX], n;
} bench_list;

typedef struct bench_options {
    const char *url, *only; /* only: names of scenarios over HTTP, with commas; NULL: all */
    bench_list prompts, generates, depths, streams, texts, text_lens; /* texts[i] of text_lens[i] tokens */
    bench_list seconds;                                               /* of sound */
    bool seconds_given, generates_given;
    long long repeat;
    const char *load; /* with url: the model to load; NULL: the home cluster's scenarios */
    bench_list clients;
    bool clients_given, cached;
    double rate; /* requests a second; 0: closed loops */
    long long requests, pid;
    long long n_chunks, dims; /* n_chunks 0: no search is measured */
    cli_model_options model;
    bool drafts; /* the engine may guess tokens ahead; what comes of drawn prompts says little of real ones */
    bool json;
} bench_options;

/* A model that is measured, and where its rows go. */
typedef struct bench_subject {
    engine *e;
    size_t n_vocab;
    bench_work work;
    bench_report report;
} bench_subject;

/* Every usable instruction set: matrix-vector GB/s and matrix-matrix multiply-adds/s; and the machine's
 * limits. */
int bench_kernels(const bench_options *o, shoal_err *err);
/* One model in this process. */
int bench_model(const bench_options *o, const char *model, shoal_err *err);
/* The rows of one that generates: prompts and replies, at each depth, then streams side by side. */
int bench_decoder(const bench_options *o, bench_subject *s, shoal_err *err);
/* Whether the engine's context has room for them; SHOAL_ELIMIT says what is too long. */
int bench_decoder_check(const bench_options *o, const engine *e, shoal_err *err);
/* Tokens of keys and values that they need room for. */
size_t bench_decoder_tokens(const bench_options *o);
/* The rows of one that reads: texts together. */
int bench_encoder(const bench_options *o, bench_subject *s, shoal_err *err);
/* The rows of an encoder-decoder: sources of `prompts` tokens or `seconds` of sound, and replies behind them.
 */
int bench_source_rows(const bench_options *o, bench_subject *s, const model *m, shoal_err *err);
/* Whether the model takes what was asked for; SHOAL_ELIMIT says what is too long. */
int bench_source_check(const bench_options *o, const engine *e, const model *m, shoal_err *err);
/* A search among n_chunks drawn vectors of `dims` and as many drawn texts. */
int bench_chunks(const bench_options *o, shoal_err *err);
/* A running home cluster over HTTP: the figures that the README quotes. */
int bench_http(const bench_options *o, shoal_err *err);
/* Streams of one model of a server that speaks OpenAI's protocol, under load. */
int bench_load(const bench_options *o, shoal_err *err);

/* ---- bench_gate.c: what both kinds of rows wait with ------------------------------------------------ */

/* Waits for a batch of requests; the engine thread counts them down. */
typedef struct bench_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t left;
    int status;
    gen_timings timings; /* of the last one */
} bench_gate;

void bench_gate_init(bench_gate *g, size_t n);
void bench_gate_pass(bench_gate *g, int status, const gen_timings *timings); /* timings NULL: none */
int bench_gate_wait(bench_gate *g);

/* Ids that differ from salt to salt, so that no prompt finds its prefix in the cache. */
void bench_fill_ids(int32_t *ids, size_t n, size_t n_vocab, uint64_t salt);

#endif
