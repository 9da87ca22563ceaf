/* bench_model.c: one model in this process, prompt and reply apart, as the field quotes them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/bench.h"

enum { SHORT_PROMPT = 8 }; /* of the streams that run side by side */

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/* Sorts values. */
static double median(double *values, size_t n)
{
    if (n == 0) return 0;
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Waits for a batch of requests; the engine thread counts them down. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t left;
    int status;
    gen_timings timings; /* of the last one */
} gate;

static void gate_pass(gate *g, int status)
{
    pthread_mutex_lock(&g->lock);
    if (status != 0) g->status = status;
    g->left--;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static int gate_wait(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (g->left) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return g->status;
}

static void on_event(void *user, const gen_event *ev)
{
    gate *g = user;
    if (ev->kind != EVENT_DONE) return;
    pthread_mutex_lock(&g->lock);
    g->timings = ev->timings;
    pthread_mutex_unlock(&g->lock);
    gate_pass(g, ev->status);
}

static void on_encoded(void *user, const enc_result *r)
{
    gate_pass(user, r->status);
}

/* Ids that differ from run to run, so that no prompt finds its prefix in the cache. */
static void fill_ids(int32_t *ids, size_t n, size_t n_vocab, uint64_t salt)
{
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(rng_mix(salt << 32 | i) % n_vocab);
}

static int decoder_run(engine *e, const int32_t *ids, size_t n_ids, size_t n_new, size_t n_streams, gate *g,
                       double *ret_ms, shoal_err *err)
{
    *g = (gate){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .left = n_streams};
    uint64_t start = clock_ns(), id;
    for (size_t i = 0; i < n_streams; i++) {
        gen_request r = {.ids = ids + i * n_ids, .n_ids = n_ids, .max_tokens = n_new, .ignore_eos = true};
        int rc = engine_generate(e, &r, on_event, g, &id, err);
        if (rc != 0) return rc;
    }
    int rc = gate_wait(g);
    *ret_ms = clock_ms_since(start);
    return rc == 0 ? 0 : err_set(err, rc, "the measured request failed");
}

static int bench_decoder(const bench_options *o, engine *e, size_t n_vocab, shoal_err *err)
{
    size_t n_prompt = (size_t)o->n_prompt, n_new = (size_t)o->n_generate, repeat = (size_t)o->repeat;
    const size_t streams[] = {1, 4, 16}, n_ids = n_prompt < SHORT_PROMPT ? SHORT_PROMPT : n_prompt;
    int32_t *ids = calloc(16 * n_ids, sizeof *ids);
    double *prefill = calloc(repeat, sizeof *prefill), *decode = calloc(repeat, sizeof *decode);
    double *rate[3] = {calloc(repeat, sizeof(double)), calloc(repeat, sizeof(double)),
                       calloc(repeat, sizeof(double))};
    int rc = ids && prefill && decode && rate[0] && rate[1] && rate[2] ? 0 : err_nomem(err);
    for (size_t r = 0; r < repeat && rc == 0; r++) {
        gate g;
        double ms;
        fill_ids(ids, 16 * n_ids, n_vocab, 2 * r + 1);
        rc = decoder_run(e, ids, n_prompt, n_new, 1, &g, &ms, err);
        if (rc != 0) break;
        prefill[r] = (double)n_prompt * 1e3 / g.timings.prefill_ms;
        decode[r] = n_new > 1 ? (double)(n_new - 1) * 1e3 / g.timings.decode_ms : 0;
        for (int s = 0; s < 3 && rc == 0; s++) {
            fill_ids(ids, 16 * n_ids, n_vocab, 1000 * (r + 1) + (size_t)s);
            rc = decoder_run(e, ids, SHORT_PROMPT, n_new, streams[s], &g, &ms, err);
            rate[s][r] = (double)(streams[s] * n_new) * 1e3 / ms;
        }
    }
    if (rc == 0) {
        double p = median(prefill, repeat), d = median(decode, repeat);
        double s[3] = {median(rate[0], repeat), median(rate[1], repeat), median(rate[2], repeat)};
        if (o->json)
            printf("{\"prefill_tokens_per_s\":%.1f,\"decode_tokens_per_s\":%.1f,\"streams_1\":%.1f,\"streams_"
                   "4\":%.1f,\"streams_16\":%.1f}\n",
                   p, d, s[0], s[1], s[2]);
        else
            printf("prefill of %zu        %10.1f tokens/s\ndecode of %zu          %10.1f tokens/s\n"
                   "1 stream, whole       %10.1f tokens/s\n4 streams, whole      %10.1f tokens/s\n16 "
                   "streams, whole     %10.1f tokens/s\n",
                   n_prompt, p, n_new, d, s[0], s[1], s[2]);
    }
    for (int i = 0; i < 3; i++) free(rate[i]);
    free(decode);
    free(prefill);
    free(ids);
    return rc;
}

static int bench_encoder(const bench_options *o, engine *e, size_t n_vocab, shoal_err *err)
{
    static const size_t shapes[][2] = {{1, 8}, {1, 32}, {1, 128}, {8, 32}, {32, 32}};
    size_t repeat = (size_t)o->repeat * 10;
    int32_t ids[32 * 128];
    double *ms = calloc(repeat, sizeof *ms);
    int rc = ms ? 0 : err_nomem(err);
    if (o->json) printf("{\"encode_ms\":{");
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes && rc == 0; k++) {
        size_t batch = shapes[k][0], n = shapes[k][1];
        if (n > engine_ctx(e)) continue;
        for (size_t r = 0; r < repeat && rc == 0; r++) {
            fill_ids(ids, batch * n, n_vocab, r + 1);
            gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .left = batch};
            uint64_t start = clock_ns(), id;
            for (size_t i = 0; i < batch && rc == 0; i++)
                rc = engine_encode(e, &(enc_request){.ids = ids + i * n, .n_ids = n}, on_encoded, &g, &id,
                                   err);
            if (rc == 0) rc = gate_wait(&g);
            ms[r] = clock_ms_since(start);
        }
        if (rc != 0) break;
        double p50 = median(ms, repeat);
        if (o->json)
            printf("%s\"%zux%zu\":%.3f", k ? "," : "", batch, n, p50);
        else
            printf("%2zu x %3zu tokens   p50 %8.3f ms\n", batch, n, p50);
    }
    if (o->json) printf("}}\n");
    free(ms);
    return rc;
}

int bench_model(const bench_options *o, const char *name, shoal_err *err)
{
    cli_engine c = {0};
    uint64_t start = clock_ns();
    int rc = cli_engine_open(&c, name, &o->model, true, err);
    if (rc != 0) return rc;
    const model_config *mc = model_get_config(c.m);
    isa kernels = ISA_SCALAR;
    rc = isa_choose(&kernels, err);
    if (rc == 0 && !o->json)
        printf("%s: %s %s, %s kernels, loaded in %.1f ms\n", model_name(c.m), arch_name(mc->arch),
               model_quantisation(c.m), isa_name(kernels), clock_ms_since(start));
    if (rc == 0)
        rc = mc->task == TASK_GENERATE ? bench_decoder(o, c.e, mc->n_vocab, err)
                                       : bench_encoder(o, c.e, mc->n_vocab, err);
    cli_engine_close(&c);
    return rc;
}
