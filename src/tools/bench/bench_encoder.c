/* bench_encoder.c: texts through an encoder, one call to last answer. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench.h"

enum { WARM_RUNS = 8, RUNS_MOST = 50 }; /* times -r */
#define SHAPE_S 1.0                     /* a shape is measured for about so long */

static void on_encoded(void *user, const enc_result *r)
{
    bench_gate_pass(user, r->status, NULL);
}

/* All texts at once, as requests of their own: the engine makes one batch of them. */
static int run_once(bench_subject *s, int32_t *ids, size_t batch, size_t n, uint64_t salt, double *ret_ms,
                    shoal_err *err)
{
    bench_gate g;
    uint64_t id;
    int rc = 0;
    bench_fill_ids(ids, batch * n, s->n_vocab, salt);
    bench_gate_init(&g, batch);
    uint64_t start = clock_ns();
    for (size_t i = 0; i < batch; i++) {
        enc_request r = {.ids = ids + i * n, .n_ids = n};
        int one = engine_encode(s->e, &r, on_encoded, &g, &id, rc == 0 ? err : NULL);
        if (one == 0) continue;
        rc = one;
        bench_gate_pass(&g, one, NULL);
    }
    int done = bench_gate_wait(&g);
    *ret_ms = clock_ms_since(start);
    if (rc != 0) return rc;
    return done == 0 ? 0 : err_set(err, done, "a text of %zu tokens was refused", n);
}

static int run_shape(const bench_options *o, bench_subject *s, size_t batch, size_t n, shoal_err *err)
{
    char name[48];
    size_t most = (size_t)o->repeat * RUNS_MOST, done = 0;
    int32_t *ids = calloc(batch * n, sizeof *ids);
    double *ms = calloc(most, sizeof *ms), warm;
    int rc = ids && ms ? 0 : err_nomem(err);
    snprintf(name, sizeof name, "enc %zux%zu", batch, n);
    for (uint64_t i = 0; rc == 0 && i < WARM_RUNS; i++) rc = run_once(s, ids, batch, n, i, &warm, err);
    for (uint64_t start = clock_ns(); rc == 0 && done < most; done++) {
        if (done >= (size_t)o->repeat && clock_ms_since(start) > SHAPE_S * 1e3) break;
        rc = run_once(s, ids, batch, n, WARM_RUNS + done, &ms[done], err);
    }
    const bench_work *w = &s->work;
    bench_row row = {.test = name,
                     .n_tokens = (double)(batch * n),
                     .cost = bench_work_encode(w, batch, n),
                     .set_bytes = w->layer_bytes + w->head_bytes};
    if (rc == 0) rc = bench_report_row(&s->report, &row, ms, done, err);
    free(ms);
    free(ids);
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
