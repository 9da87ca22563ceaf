/* bench_decoder.c: prompts (pp) and replies (tg) apart, as the field quotes them, and whole streams side by
 * side.
 *
 * At a depth the tokens in front are read once and stay in the prefix cache; each run then adds fresh ones,
 * so that a run costs what it measures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"

enum {
    SHORT_PROMPT = 8, /* of the streams that run side by side */
    WARM_STEPS = 16,  /* an engine that tries several ways has tried them by then (infer/step_cost.h) */
    WARM_RUNS = 8,    /* and so many runs are enough, whatever they hold */
    KEY_PAGE = 16,    /* positions that share a page (net/attention/kv.h); only for rounding up */
};

/* One kind of run, and which part of it is timed. */
typedef struct test {
    char name[48];
    enum { PROMPT, REPLY, WHOLE } part;
    size_t depth, n_prompt, n_new, n_streams;
} test;

typedef struct bench {
    const bench_options *o;
    bench_subject *s;
    const test *t; /* that runs now */
    int32_t *ids;  /* of all streams, one behind the other */
    uint64_t salt;
    shoal_err *err;
} bench;

static void bench_decoder_on_event(void *user, const gen_event *ev)
{
    if (ev->kind == EVENT_DONE) bench_gate_pass(user, ev->status, &ev->timings);
}

/* Fresh ids behind those of the depth, which are the same each time. */
static size_t fill_prompts(bench *b, const test *t)
{
    size_t each = t->depth + t->n_prompt;
    for (size_t i = 0; i < t->n_streams; i++) {
        bench_fill_ids(b->ids + i * each, t->depth, b->s->n_vocab, t->depth);
        bench_fill_ids(b->ids + i * each + t->depth, t->n_prompt, b->s->n_vocab, 1000000 + b->salt++);
    }
    return each;
}

/* All streams from the first byte in to the last token out. */
static int run_all(bench *b, const test *t, bench_gate *g, double *ret_ms)
{
    size_t each = fill_prompts(b, t);
    int rc = 0;
    uint64_t start = clock_ns(), id;
    bench_gate_init(g, t->n_streams);
    for (size_t i = 0; i < t->n_streams; i++) {
        gen_request r = {.ids = b->ids + i * each, .n_ids = each, .max_tokens = t->n_new, .ignore_eos = true};
        int one = engine_generate(b->s->e, &r, bench_decoder_on_event, g, &id, rc == 0 ? b->err : NULL);
        if (one == 0) continue;
        rc = one;
        bench_gate_pass(g, one, NULL); /* those before it are waited for nevertheless */
    }
    int done = bench_gate_wait(g);
    *ret_ms = clock_ms_since(start);
    if (rc != 0) return rc;
    return done == 0 ? 0 : err_set(b->err, done, "%s: the measured request failed", t->name);
}

/* Milliseconds of the part that the test is about. */
static int decoder_once(void *user, double *ret_ms)
{
    bench *b = user;
    const test *t = b->t;
    bench_gate g;
    double whole_ms;
    int rc = run_all(b, t, &g, &whole_ms);
    if (rc != 0) return rc;
    if (t->part == WHOLE)
        *ret_ms = whole_ms;
    else if (t->part == REPLY)
        *ret_ms = g.timings.decode_ms;
    else /* what of the depth is not in the cache (a page that is not full) is read again */
        *ret_ms =
            g.timings.prefill_ms * (double)t->n_prompt / (double)(g.timings.n_prompt - g.timings.n_cached);
    return 0;
}

static int run_test(bench *b, const test *t, double n_tokens, bench_cost cost)
{
    const bench_work *w = &b->s->work;
    double kept = (w->kv_bytes + w->local_kv_bytes) * (double)((t->depth + t->n_prompt) * t->n_streams);
    bench_row row = {.test = t->name,
                     .n_tokens = n_tokens,
                     .cost = cost,
                     .set_bytes = w->layer_bytes + w->head_bytes + kept};
    bench_run run = {.once = decoder_once, .user = b, .warm_runs = WARM_RUNS, .warm_steps = WARM_STEPS};
    b->t = t;
    return bench_measure(b->o, b->s, &row, &run, b->err);
}

/* "pp128", "pp128@d1024" */
static void name_test(test *t, const char *kind, size_t n)
{
    int at = snprintf(t->name, sizeof t->name, "%s%zu", kind, n);
    if (t->depth) snprintf(t->name + at, sizeof t->name - (size_t)at, "@d%zu", t->depth);
}

static int prompts_at(bench *b, size_t depth)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->o->prompts.n; i++) {
        size_t n = b->o->prompts.v[i];
        test t = {.part = PROMPT, .depth = depth, .n_prompt = n, .n_new = 1, .n_streams = 1};
        name_test(&t, "pp", n);
        if (n) rc = run_test(b, &t, (double)n, bench_work_prompt(&b->s->work, depth, n));
    }
    return rc;
}

static int replies_at(bench *b, size_t depth)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->o->generates.n; i++) {
        size_t n = b->o->generates.v[i];
        test t = {.part = REPLY, .depth = depth, .n_prompt = 1, .n_new = n + 1, .n_streams = 1};
        name_test(&t, "tg", n);
        if (n) rc = run_test(b, &t, (double)n, bench_work_decode(&b->s->work, depth + 1, n, 1));
    }
    return rc;
}

/* Prompts of eight tokens and whole replies; the first reply length that was asked for. */
static int streams_of(bench *b, size_t n_streams)
{
    const bench_work *w = &b->s->work;
    size_t n = b->o->generates.v[0];
    test t = {.part = WHOLE, .n_prompt = SHORT_PROMPT, .n_new = n, .n_streams = n_streams};
    snprintf(t.name, sizeof t.name, "streams_%zu", n_streams);
    bench_cost c = bench_work_decode(w, SHORT_PROMPT, n, n_streams),
               p = bench_work_prompt(w, 0, SHORT_PROMPT);
    c.bytes += p.bytes;
    c.multiply_adds += (double)n_streams * p.multiply_adds;
    return run_test(b, &t, (double)(n * n_streams), c);
}

static size_t largest(const bench_list *l)
{
    size_t most = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] > most) most = l->v[i];
    return most;
}

static size_t longest(const bench_options *o)
{
    return largest(&o->depths) + largest(&o->prompts) + largest(&o->generates) + SHORT_PROMPT + 1;
}

/* Twice the longest, so that the run before it does not push out what stands in front. */
size_t bench_decoder_tokens(const bench_options *o)
{
    size_t streams = largest(&o->streams) * (largest(&o->generates) + SHORT_PROMPT + KEY_PAGE);
    size_t one = 2 * (longest(o) + KEY_PAGE);
    return one > streams ? one : streams;
}

int bench_decoder_check(const bench_options *o, const engine *e, shoal_err *err)
{
    size_t n = longest(o) - SHORT_PROMPT, ctx = engine_ctx(e);
    if (n <= ctx) return 0;
    return err_set(
        err, SHOAL_ELIMIT,
        "the longest test is %zu tokens (depth, prompt and reply) and the model's context has %zu: "
        "ask for fewer with -p, -n or -d",
        n, ctx);
}

int bench_decoder(const bench_options *o, bench_subject *s, shoal_err *err)
{
    size_t room = longest(o), streams = largest(&o->streams) * SHORT_PROMPT;
    bench b = {.o = o, .s = s, .err = err};
    b.ids = calloc(room > streams ? room : streams, sizeof *b.ids);
    int rc = b.ids ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < o->depths.n; i++) {
        rc = prompts_at(&b, o->depths.v[i]);
        if (rc == 0) rc = replies_at(&b, o->depths.v[i]);
    }
    for (size_t i = 0; rc == 0 && o->generates.n && i < o->streams.n; i++)
        if (o->streams.v[i] && o->generates.v[0]) rc = streams_of(&b, o->streams.v[i]);
    free(b.ids);
    return rc;
}
