/* bench_source.c: encoder-decoders: reading a source (src, or snd of sound) up to the first token, and
 * replies (tg) behind it.
 *
 * Every run has a source of its own, drawn anew: ids, or frames as a log-mel front end gives them, which is
 * not part of what is timed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench.h"

enum {
    WARM_RUNS = 4,        /* in front of each row */
    FRAMES_A_SECOND = 100 /* of log-mel front ends of speech */
};

/* A source of so many tokens or frames, and what is asked for behind it. */
typedef struct test {
    char name[48];
    size_t n, n_new;
    bool reply; /* the tokens behind the first are timed, else all up to it */
} test;

typedef struct bench {
    const bench_options *o;
    bench_subject *s;
    const test *t; /* that runs now */
    bench_source work;
    const model_config *c;
    int32_t *ids;
    float *frames; /* NULL: it reads text */
    uint64_t salt;
    shoal_err *err;
} bench;

static void bench_source_on_event(void *user, const gen_event *ev)
{
    if (ev->kind == EVENT_DONE) bench_gate_pass(user, ev->status, &ev->timings);
}

static size_t positions(const bench *b, size_t n)
{
    return b->frames ? (n + 1) / 2 : n;
}

static enc_request draw_source(bench *b, size_t n)
{
    uint64_t salt = ++b->salt;
    size_t width = b->c->source.n_mel;
    if (b->frames) {
        for (size_t i = 0; i < n * width; i++)
            b->frames[i] = (float)(rng_mix(salt * 1000003 + i) >> 40) * 0x1p-23f - 1;
        return (enc_request){.features = b->frames, .n_features = n, .width = width};
    }
    bench_fill_ids(b->ids, n, b->s->n_vocab, salt);
    return (enc_request){.ids = b->ids, .n_ids = n};
}

static int source_once(void *user, double *ret_ms)
{
    bench *b = user;
    const test *t = b->t;
    bench_gate g;
    uint64_t id;
    enc_request source = draw_source(b, t->n);
    gen_request r = {.ids = &b->c->start_id,
                     .n_ids = 1,
                     .source = &source,
                     .max_tokens = t->reply ? t->n_new + 1 : 1,
                     .ignore_eos = true};
    bench_gate_init(&g, 1);
    uint64_t start = clock_ns();
    int rc = engine_generate(b->s->e, &r, bench_source_on_event, &g, &id, b->err);
    if (rc != 0) return rc;
    rc = bench_gate_wait(&g);
    *ret_ms = t->reply ? g.timings.decode_ms : clock_ms_since(start);
    return rc == 0 ? 0 : err_set(b->err, rc, "%s: the measured request failed", t->name);
}

static int run_test(bench *b, const test *t)
{
    size_t n = positions(b, t->n);
    const bench_work *w = &b->work.reply;
    double once = w->layer_bytes + w->head_bytes + b->work.cross_bytes * (double)n;
    bench_row row = {.test = t->name, .n_tokens = (double)n, .set_bytes = once + b->work.encoder_bytes};
    row.cost = bench_source_read(&b->work, n);
    if (b->frames) row.sound_s = (double)t->n / FRAMES_A_SECOND;
    if (t->reply) {
        row = (bench_row){.test = t->name, .n_tokens = (double)t->n_new, .set_bytes = once};
        row.cost = bench_source_reply(&b->work, n, t->n_new);
    }
    bench_run run = {.once = source_once, .user = b, .warm_runs = WARM_RUNS};
    b->t = t;
    return bench_measure(b->o, b->s, &row, &run, b->err);
}

/* Replies that nobody asked for end with the context. */
static size_t reply_of(const bench *b, size_t i)
{
    size_t n = b->o->generates.v[i], ctx = engine_ctx(b->s->e), most = ctx > 3 ? ctx - 2 : 1;
    return n > most && !b->o->generates_given ? most : n;
}

/* One source: reading it, and each length of reply behind it. */
static int bench_source_measure(bench *b, size_t said, size_t n)
{
    const char *unit = b->frames ? "s" : "";
    test t = {.n = n};
    snprintf(t.name, sizeof t.name, "%s%zu%s", b->frames ? "snd" : "src", said, unit);
    int rc = run_test(b, &t);
    for (size_t i = 0; rc == 0 && i < b->o->generates.n; i++) {
        test r = {.n = n, .n_new = reply_of(b, i), .reply = true};
        snprintf(r.name, sizeof r.name, "tg%zu@%.20s", r.n_new, t.name);
        if (r.n_new) rc = run_test(b, &r);
    }
    return rc;
}

/* Sound that nobody asked for is left out where the model does not hear so much at once. */
static int measure_sounds(bench *b)
{
    size_t most = 2 * b->c->source.n_ctx;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->o->seconds.n; i++) {
        size_t s = b->o->seconds.v[i], n = s * FRAMES_A_SECOND;
        if (n <= most) rc = bench_source_measure(b, s, n);
    }
    return rc;
}

static int measure_texts(bench *b)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->o->prompts.n; i++)
        if (b->o->prompts.v[i]) rc = bench_source_measure(b, b->o->prompts.v[i], b->o->prompts.v[i]);
    return rc;
}

static size_t largest(const bench_list *l)
{
    size_t most = 1;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] > most) most = l->v[i];
    return most;
}

static int check_sounds(const bench_options *o, const model_config *c, shoal_err *err)
{
    size_t most = 2 * c->source.n_ctx;
    for (size_t i = 0; c->source.n_mel && o->seconds_given && i < o->seconds.n; i++)
        if (o->seconds.v[i] * FRAMES_A_SECOND > most)
            return err_set(err, SHOAL_ELIMIT, "--seconds %zu: this model hears %.3g s at once",
                           o->seconds.v[i], (double)most / FRAMES_A_SECOND);
    return 0;
}

int bench_source_check(const bench_options *o, const engine *e, const model *m, shoal_err *err)
{
    size_t n = largest(&o->generates) + 2, ctx = engine_ctx(e);
    if (n > ctx && o->generates_given)
        return err_set(
            err, SHOAL_ELIMIT,
            "the longest reply is %zu tokens and the model's context has %zu: ask for fewer with -n", n - 2,
            ctx);
    return check_sounds(o, model_get_config(m), err);
}

int bench_source_rows(const bench_options *o, bench_subject *s, const model *m, shoal_err *err)
{
    const model_config *c = model_get_config(m);
    bench b = {.o = o, .s = s, .work = bench_source_of(m), .c = c, .err = err};
    if (c->source.n_mel) b.frames = calloc(2 * c->source.n_ctx + 1, c->source.n_mel * sizeof *b.frames);
    b.ids = calloc(largest(&o->prompts), sizeof *b.ids);
    int rc = b.ids && (b.frames || !c->source.n_mel) ? 0 : err_nomem(err);
    if (rc == 0) rc = b.frames ? measure_sounds(&b) : measure_texts(&b);
    free(b.frames);
    free(b.ids);
    return rc;
}
