/* bench_encoder.c: texts through an encoder, one call to last answer. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench.h"

enum { WARM_RUNS = 8 };
#define SHAPE_S 1.0 /* a shape is measured for about so long */

static void on_encoded(void *user, const enc_result *r)
{
    bench_gate_pass(user, r->status, NULL);
}

typedef struct shape {
    bench_subject *s;
    size_t batch, n; /* so many texts of n tokens */
    int32_t *ids;    /* [batch * n] */
    uint64_t salt;
    shoal_err *err;
} shape;

/* All texts at once, as requests of their own: the engine makes one batch of them. */
static int encoder_once(void *user, double *ret_ms)
{
    shape *h = user;
    bench_gate g;
    uint64_t id;
    int rc = 0;
    bench_fill_ids(h->ids, h->batch * h->n, h->s->n_vocab, h->salt++);
    bench_gate_init(&g, h->batch);
    uint64_t start = clock_ns();
    for (size_t i = 0; i < h->batch; i++) {
        enc_request r = {.ids = h->ids + i * h->n, .n_ids = h->n};
        int one = engine_encode(h->s->e, &r, on_encoded, &g, &id, rc == 0 ? h->err : NULL);
        if (one == 0) continue;
        rc = one;
        bench_gate_pass(&g, one, NULL);
    }
    int done = bench_gate_wait(&g);
    *ret_ms = clock_ms_since(start);
    if (rc != 0) return rc;
    return done == 0 ? 0 : err_set(h->err, done, "a text of %zu tokens was refused", h->n);
}

static int run_shape(const bench_options *o, bench_subject *s, size_t batch, size_t n, shoal_err *err)
{
    char name[48];
    const bench_work *w = &s->work;
    shape h = {.s = s, .batch = batch, .n = n, .ids = calloc(batch * n, sizeof *h.ids), .err = err};
    if (!h.ids) return err_nomem(err);
    snprintf(name, sizeof name, "enc %zux%zu", batch, n);
    bench_row row = {.test = name,
                     .n_tokens = (double)(batch * n),
                     .cost = bench_work_encode(w, batch, n),
                     .set_bytes = w->layer_bytes + w->head_bytes};
    bench_run run = {.once = encoder_once, .user = &h, .warm_runs = WARM_RUNS, .seconds = SHAPE_S};
    int rc = bench_measure(o, s, &row, &run, err);
    free(h.ids);
    return rc;
}

int bench_encoder(const bench_options *o, bench_subject *s, shoal_err *err)
{
    for (size_t k = 0; k < o->texts.n; k++) {
        size_t n = o->text_lens.v[k];
        if (n > engine_ctx(s->e)) {
            fprintf(stderr, "note: %zux%zu is left out: the model reads %zu tokens\n", o->texts.v[k], n,
                    engine_ctx(s->e));
            continue;
        }
        int rc = run_shape(o, s, o->texts.v[k], n, err);
        if (rc != 0) return rc;
    }
    return 0;
}
