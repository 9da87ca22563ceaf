/* bench_model.c: a model in this process, opened with the room its tests need. */
#include <stdio.h>

#include "base/clock.h"
#include "base/sys.h"
#include "bench/bench.h"

#define KV_LEAST ((size_t)64 << 20) /* the engine's own, at least */

/* Keys and values of the longest test; n: all of a token's. */
static size_t room_for(const bench_options *o, const bench_work *w)
{
    double bytes = (double)bench_decoder_tokens(o) * (w->kv_bytes + w->local_kv_bytes) * 1.05;
    return bytes > (double)KV_LEAST ? (size_t)bytes : KV_LEAST;
}

/* What tells of the model; digest: hex, at least 65. */
static int bench_model_describe(bench_about *ret, const bench_options *o, model *m, char *digest,
                                shoal_err *err)
{
    sha256_digest d;
    isa kernels = ISA_SCALAR;
    int rc = isa_choose(&kernels, err);
    if (rc == 0) rc = model_digest(m, &d, err);
    if (rc != 0) return rc;
    sha256_hex(&d, digest);
    double bytes = 0;
    for (size_t i = 0; i < model_tensor_count(m); i++) bytes += (double)model_tensor_at(m, i)->bytes;
    *ret = (bench_about){.isa = kernels,
                         .n_threads = o->model.threads ? (int)o->model.threads : sys_core_count(),
                         .model = model_name(m),
                         .arch = arch_name(model_get_config(m)->arch),
                         .type = model_quantisation(m),
                         .digest = digest,
                         .model_bytes = bytes};
    return 0;
}

static int bench_model_measure(const bench_options *o, cli_engine *c, double load_ms, shoal_err *err)
{
    const model_config *mc = model_get_config(c->m);
    char digest[65];
    bench_about about;
    kv_type kept;
    int rc = cli_kv_type(&kept, o->model.kv_type, err);
    if (rc != 0) return rc;
    bench_subject s = {.n_vocab = mc->n_vocab, .work = bench_work_of(c->m, kept)};
    engine_options more = {.kv_bytes = room_for(o, &s.work), .no_drafts = !o->drafts};
    rc = bench_model_describe(&about, o, c->m, digest, err);
    uint64_t start = clock_ns();
    if (rc == 0) rc = cli_engine_start(c, &o->model, &more, err);
    s.e = c->e;
    about.load_ms = load_ms + clock_ms_since(start);
    bool reads_source = mc->task == TASK_SEQ2SEQ || mc->task == TASK_TRANSCRIBE;
    about.is_float = reads_source ? bench_source_of(c->m).reply.is_float : s.work.is_float;
    if (rc == 0 && mc->task == TASK_GENERATE) rc = bench_decoder_check(o, s.e, err);
    if (rc == 0 && reads_source) rc = bench_source_check(o, s.e, c->m, err);
    if (rc == 0) rc = bench_report_begin(&s.report, &about, o->json, err);
    if (rc == 0)
        rc = reads_source                ? bench_source_rows(o, &s, c->m, err)
             : mc->task == TASK_GENERATE ? bench_decoder(o, &s, err)
                                         : bench_encoder(o, &s, err);
    if (rc == 0) bench_report_end(&s.report);
    return rc;
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
    cli_engine c = {0};
    uint64_t start = clock_ns();
    int rc = cli_engine_open(&c, name, &o->model, false, err);
    double load_ms = clock_ms_since(start);
    if (rc == 0) rc = check_task(c.m, err);
    if (rc == 0) rc = bench_model_measure(o, &c, load_ms, err);
    cli_engine_close(&c);
    return rc;
}
