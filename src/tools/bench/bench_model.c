/* bench_model.c: a model in this process, opened with the room its tests need. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include "bench/bench.h"

#define KV_LEAST     ((size_t)64 << 20) /* the engine's own, at least */
#define MEMORY_SHARE 0.75               /* of the machine's, that weights may take */

/* Keys and values of the longest test; n: all of a token's. */
static size_t room_for(const bench_options *o, const bench_work *w)
{
    double bytes = (double)bench_decoder_tokens(o) * (w->kv_bytes + w->local_kv_bytes) * 1.05;
    return bytes > (double)KV_LEAST ? (size_t)bytes : KV_LEAST;
}

int bench_model_about(bench_about *ret, const cli_model_options *o, model *m, char *digest, shoal_err *err)
{
    sha256_digest d;
    isa kernels = ISA_SCALAR;
    int rc = isa_choose(&kernels, err);
    if (rc == 0) rc = model_digest(m, &d, err);
    if (rc != 0) return rc;
    sha256_hex(&d, digest);
    double bytes = 0;
    for (size_t i = 0; i < model_tensor_count(m); i++) bytes += (double)model_tensor_at(m, i)->bytes;
    *ret =
        (bench_about){.isa = kernels,
                      .threads = {.v = {o->threads ? (size_t)o->threads : (size_t)sys_core_count()}, .n = 1},
                      .model = model_name(m),
                      .arch = arch_name(model_get_config(m)->arch),
                      .type = model_quantisation(m),
                      .digest = digest,
                      .model_bytes = bytes};
    return 0;
}

static bool reads_source(const model *m)
{
    const model_config *c = model_get_config(m);
    return c->task == TASK_SEQ2SEQ || c->task == TASK_TRANSCRIBE;
}

/* ---- an engine for each number of threads ------------------------------------------------------------ */

/* Their weights are all in memory at the same time. */
static int check_memory(const bench_about *a, shoal_err *err)
{
    double need = a->model_bytes * (double)a->threads.n, have = (double)sys_memory_bytes();
    if (a->threads.n < 2 || have <= 0 || need <= have * MEMORY_SHARE) return 0;
    return err_set(
        err, SHOAL_ELIMIT,
        "%zu numbers of threads need the weights of %s as often, %.1f GB, and this machine has %.1f GB: "
        "give fewer numbers",
        a->threads.n, a->model, need / 1e9, have / 1e9);
}

static void say_beyond(const bench_list *threads)
{
    size_t cores = (size_t)sys_core_count(), most = threads->v[threads->n - 1];
    if (threads->n > 1 && most > cores)
        cli_say("note: %zu threads are more than the %zu core%s here: they take turns\n", most, cores,
                cores == 1 ? "" : "s");
}

static int start_engine(bench_lane *l, const bench_options *o, const bench_subject *s, size_t n_threads,
                        shoal_err *err)
{
    cli_model_options mo = o->model;
    engine_options more = {.kv_bytes = room_for(o, &s->work), .no_drafts = !o->drafts};
    mo.threads = (long long)n_threads;
    return cli_engine_start(&l->c, &mo, &more, err);
}

/* The first one's model is open. load_ms grows by what that engine takes. */
static int start_lanes(bench_subject *s, const bench_options *o, const char *name, bench_about *a,
                       shoal_err *err)
{
    int rc = check_memory(a, err);
    if (rc == 0) say_beyond(&a->threads);
    for (size_t i = 0; rc == 0 && i < a->threads.n; i++) {
        bench_lane *l = &s->lanes[i];
        s->n_lanes = i + 1;
        if (i > 0) rc = cli_engine_open(&l->c, name, &o->model, false, err);
        uint64_t start = clock_ns();
        if (rc == 0) rc = start_engine(l, o, s, a->threads.v[i], err);
        if (i == 0) a->load_ms += clock_ms_since(start);
        if (rc == 0) rc = bench_limits_begin(&l->limits, a->isa, (int)a->threads.v[i], a->is_float, err);
    }
    s->e = s->lanes[0].c.e;
    return rc;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

static int check_tests(const bench_options *o, const bench_subject *s, shoal_err *err)
{
    const model *m = s->lanes[0].c.m;
    if (reads_source(m)) return bench_source_check(o, s->e, m, err);
    return model_get_config(m)->task == TASK_GENERATE ? bench_decoder_check(o, s->e, err) : 0;
}

static int write_svg(const bench_options *o, const bench_subject *s, shoal_err *err)
{
    buf svg = {0};
    if (!o->svg) return 0;
    bench_scale_put_svg(&s->scale, sys_core_count(), &svg);
    int rc = svg.failed ? err_nomem(err) : file_replace(o->svg, &svg, err);
    buf_done(&svg);
    return rc;
}

static int bench_model_rows(const bench_options *o, bench_subject *s, const bench_about *a, shoal_err *err)
{
    const model *m = s->lanes[0].c.m;
    if (s->n_lanes > 1)
        bench_scale_begin(&s->scale, a, o->json);
    else
        bench_report_begin(&s->report, a, &s->lanes[0].limits, o->json);
    int rc = reads_source(m)                              ? bench_source_rows(o, s, m, err)
             : model_get_config(m)->task == TASK_GENERATE ? bench_decoder(o, s, err)
                                                          : bench_encoder(o, s, err);
    if (rc != 0) return rc;
    if (s->n_lanes == 1) {
        bench_report_end(&s->report);
        return 0;
    }
    bench_scale_end(&s->scale);
    return write_svg(o, s, err);
}

static int bench_model_measure(const bench_options *o, bench_subject *s, const char *name, double load_ms,
                               shoal_err *err)
{
    model *m = s->lanes[0].c.m;
    char digest[65];
    bench_about about;
    kv_type kept;
    int rc = cli_kv_type(&kept, o->model.kv_type, err);
    if (rc == 0) rc = bench_model_about(&about, &o->model, m, digest, err);
    if (rc != 0) return rc;
    if (o->threads.n > 1) about.threads = o->threads;
    s->n_vocab = model_get_config(m)->n_vocab;
    s->work = bench_work_of(m, kept);
    about.is_float = reads_source(m) ? bench_source_of(m).reply.is_float : s->work.is_float;
    about.load_ms = load_ms;
    rc = start_lanes(s, o, name, &about, err);
    if (rc == 0) rc = check_tests(o, s, err);
    return rc == 0 ? bench_model_rows(o, s, &about, err) : rc;
}

/* Others take more than tokens alone, which nobody would draw at random. */
static int check_task(const model *m, shoal_err *err)
{
    const model_config *c = model_get_config(m);
    switch (c->task) {
    case TASK_GENERATE:
    case TASK_SEQ2SEQ:
    case TASK_TRANSCRIBE:
    case TASK_CLASSIFY:
    case TASK_TAG:
    case TASK_EMBED:
    case TASK_RERANK:
    case TASK_FILL_MASK: return 0;
    default:
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s is for %s: bench measures what generates, or reads texts of tokens or speech",
                       model_name(m), task_name(c->task));
    }
}

int bench_model(const bench_options *o, const char *name, shoal_err *err)
{
    bench_subject *s = calloc(1, sizeof *s);
    uint64_t start = clock_ns();
    if (!s) return err_nomem(err);
    s->n_lanes = 1;
    int rc = cli_engine_open(&s->lanes[0].c, name, &o->model, false, err);
    double load_ms = clock_ms_since(start);
    if (rc == 0) rc = check_task(s->lanes[0].c.m, err);
    if (rc == 0) rc = bench_model_measure(o, s, name, load_ms, err);
    bench_scale_done(&s->scale);
    for (size_t i = 0; i < s->n_lanes; i++) cli_engine_close(&s->lanes[i].c);
    free(s);
    return rc;
}
