/* bench.h: what `shoal bench` measures. Each prints a table (or JSON) to stdout. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <pthread.h>

#include "bench/bench_list.h"
#include "bench/bench_report.h"
#include "bench/bench_scale.h"
#include "command/cli_model.h"

enum { REQUESTS_MOST = 1000000 }; /* of a load that a duration ends */

/* Of a load; texts NULL: not said. */
typedef struct bench_load_options {
    const char *path, *body, *prompts, *trace, *save_trace; /* what is sent */
    const char *prompt, *generate, *prompt_tokens;          /* lengths (load_bodies.h) */
    const char *rate, *arrivals, *objective, *key, *html;
    double step, think_s, timeout_s, speed;
    bool no_stream;
} bench_load_options;

typedef struct bench_options {
    const char *url, *only; /* only: names of scenarios over HTTP, with commas; NULL: all */
    bench_list prompts, generates, depths, streams, texts, text_lens; /* texts[i] of text_lens[i] tokens */
    bench_list seconds;                                               /* of sound */
    bool seconds_given, generates_given;
    long long repeat;
    bool is_load;     /* with url: a load, else the home cluster's scenarios */
    const char *load; /* its model; NULL: bodies name none */
    bench_load_options more;
    bench_list clients;
    bool clients_given, cached;
    long long requests, pid;  /* requests 0: as many as is usual, or with duration_s as there is time for */
    double duration_s;        /* of a load; 0: until all requests are sent */
    long long n_chunks, dims; /* n_chunks 0: no search is measured */
    cli_model_options model;  /* its threads: those of the run, where one number of them is measured */
    bench_list threads;       /* several are compared; one: as model has it; none: not said */
    const char *svg;          /* where the comparison or the load is drawn; NULL: nowhere */
    bool drafts; /* the engine may guess tokens ahead; what comes of drawn prompts says little of real ones */
    bool json;
} bench_options;

/* An engine of the model and the limits of its number of threads. */
typedef struct bench_lane {
    cli_engine c;
    bench_limits limits;
} bench_lane;

/* A model that is measured, and where its rows go. All engines exist at the same time, and one at a time
 * runs. */
typedef struct bench_subject {
    engine *e; /* that is to run next */
    bench_lane lanes[BENCH_LIST_MAX];
    size_t n_lanes;
    size_t n_vocab;
    bench_work work;
    bench_report report; /* of one lane */
    bench_scale scale;   /* of several */
} bench_subject;

/* Every usable instruction set: matrix-vector GB/s and matrix-matrix multiply-adds/s; and the machine's
 * limits. */
int bench_kernels(const bench_options *o, shoal_err *err);
/* One model in this process. */
int bench_model(const bench_options *o, const char *model, shoal_err *err);
/* What tells of a model that o's threads run; digest: hex, at least 65. */
int bench_model_about(bench_about *ret, const cli_model_options *o, model *m, char *digest, shoal_err *err);
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
/* A load on a server that speaks OpenAI's protocol, or on any path of a server. */
int bench_load(const bench_options *o, shoal_err *err);
/* Write the server's latest requests as a trace. */
int bench_save_trace(const bench_options *o, shoal_err *err);

/* ---- bench_rounds.c: a row's runs ------------------------------------------------------------------- */

/* One kind of run. */
typedef struct bench_run {
    int (*once)(void *user, double *ret_ms); /* on the subject's e; the milliseconds that count */
    void *user;
    int warm_runs;     /* in front */
    size_t warm_steps; /* fewer of them where an engine has made so many steps by then; 0: all of them */
    double seconds;    /* goes on for about so long; 0: as many runs as were asked for */
} bench_run;

/* Warm-up, then o->repeat rounds, in each of which every lane has its turn; then the row goes to the report.
 * The error is that of a run, or memory. */
int bench_measure(const bench_options *o, bench_subject *s, const bench_row *row, const bench_run *run,
                  shoal_err *err);

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
