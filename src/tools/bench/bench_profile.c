/* bench_profile.c: see bench_profile.h. */
#include "bench/bench_profile.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/sys.h"
#include "bench/bench.h"
#include "bench/profile_report.h"

enum { WARM_RUNS = 4, REPEAT_MOST = 64 };
#define KV_LEAST ((size_t)64 << 20)

typedef struct subject {
    const bench_profile_options *o;
    cli_engine c;
    profile *profile;
    bench_work work;
    bench_about about;
    bench_limits limits;
    char digest[65];
    int32_t *ids; /* [prompt_tokens] */
    uint64_t salt;
    profile_snap snaps[REPEAT_MOST];
    size_t n_snaps;
    profile_table tables[PROFILE_N_PHASES];
} subject;

static bool generates(const subject *s)
{
    return model_get_config(s->c.m)->task == TASK_GENERATE;
}

/* ---- a run ---- */

static void on_event(void *user, const gen_event *ev)
{
    if (ev->kind == EVENT_DONE) bench_gate_pass(user, ev->status, NULL);
}

static void on_encoded(void *user, const enc_result *r)
{
    bench_gate_pass(user, r->status, NULL);
}

static int run(subject *s, shoal_err *err)
{
    bench_gate g;
    uint64_t id;
    size_t n = (size_t)s->o->prompt_tokens;
    bench_fill_ids(s->ids, n, model_get_config(s->c.m)->n_vocab, 7000000 + s->salt++);
    bench_gate_init(&g, 1);
    gen_request generate = {
        .ids = s->ids, .n_ids = n, .max_tokens = (size_t)s->o->decode + 1, .ignore_eos = true};
    enc_request encode = {.ids = s->ids, .n_ids = n};
    int rc = generates(s) ? engine_generate(s->c.e, &generate, on_event, &g, &id, err)
                          : engine_encode(s->c.e, &encode, on_encoded, &g, &id, err);
    if (rc != 0) return rc;
    rc = bench_gate_wait(&g);
    return rc == 0 ? 0 : err_set(err, rc, "the profiled request failed");
}

/* The engine has tried its ways by then, and the caches are warm. */
static int warm_up(subject *s, shoal_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < WARM_RUNS; i++) rc = run(s, err);
    return rc;
}

static int rounds(subject *s, shoal_err *err)
{
    int rc = 0;
    for (long long i = 0; rc == 0 && i < s->o->repeat; i++) {
        profile_reset(s->profile);
        profile_enable(s->profile, true);
        rc = run(s, err);
        profile_enable(s->profile, false);
        if (rc == 0) rc = profile_snap_take(&s->snaps[s->n_snaps], s->profile, err);
        s->n_snaps += rc == 0;
    }
    return rc;
}

/* The run whose phase took the median time: its operations add up, as means of several would not be of one run. */
static const profile_snap *median_of(const subject *s, profile_phase phase)
{
    for (size_t i = 0; i < s->n_snaps; i++) {
        size_t below = 0, same = 0;
        for (size_t k = 0; k < s->n_snaps; k++) {
            below += s->snaps[k].totals[phase].ns < s->snaps[i].totals[phase].ns;
            same += s->snaps[k].totals[phase].ns == s->snaps[i].totals[phase].ns;
        }
        if (below <= s->n_snaps / 2 && s->n_snaps / 2 < below + same) return &s->snaps[i];
    }
    return &s->snaps[0];
}

/* ---- what is printed ---- */

static void print_tables(const subject *s)
{
    buf out = {0};
    bench_about_print(&s->about);
    for (int i = 0; i < PROFILE_N_PHASES; i++)
        if (s->tables[i].total.n_steps) profile_table_put(&s->tables[i], &s->limits, s->o->layers, &out);
    buf_printf(&out, "\nlimits: %.1f GB/s read, %.1f G multiply-adds/s (%s)\n", s->limits.read_per_s / 1e9,
               s->limits.adds_per_s / 1e9, s->about.is_float ? "floats" : "int8");
    cli_print(&out);
    buf_done(&out);
}

static void print_json(const subject *s)
{
    buf out = {0};
    bool first = true;
    buf_putc(&out, '{');
    bench_about_put_json(&s->about, &out);
    buf_printf(
        &out,
        ",\"limits\":{\"read_bytes_per_s\":%.0f,\"multiply_adds_per_s\":%.0f,\"of\":\"%s\"},\"phases\":[",
        s->limits.read_per_s, s->limits.adds_per_s, s->about.is_float ? "float" : "int8");
    for (int i = 0; i < PROFILE_N_PHASES; i++) {
        if (!s->tables[i].total.n_steps) continue;
        if (!first) buf_putc(&out, ',');
        first = false;
        profile_table_put_json(&s->tables[i], &s->limits, &out);
    }
    buf_puts(&out, "]}");
    cli_print(&out);
    buf_done(&out);
}

static int write_svg(const subject *s, shoal_err *err)
{
    char title[200], below[200];
    buf svg = {0};
    if (!s->o->svg) return 0;
    snprintf(title, sizeof title, "%.100s, %.20s: where the time of its steps goes", s->about.model,
             s->about.type);
    snprintf(below, sizeof below, "shoal %s, commit %.30s, %s kernels, %zu thread%s offered", SHOAL_VERSION,
             bench_commit, isa_name(s->about.isa), s->about.threads.v[0],
             s->about.threads.v[0] == 1 ? "" : "s");
    profile_put_svg(s->tables, PROFILE_N_PHASES, title, below, &svg);
    int rc = svg.failed ? err_nomem(err) : file_replace(s->o->svg, &svg, err);
    buf_done(&svg);
    return rc;
}

static int report(subject *s, shoal_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < PROFILE_N_PHASES; i++)
        rc = profile_table_make(&s->tables[i], median_of(s, (profile_phase)i), (profile_phase)i, err);
    if (rc != 0) return rc;
    if (s->o->json)
        print_json(s);
    else
        print_tables(s);
    return write_svg(s, err);
}

/* ---- the whole ---- */

static int check(const subject *s, shoal_err *err)
{
    const model_config *c = model_get_config(s->c.m);
    size_t n = (size_t)(s->o->prompt_tokens + (generates(s) ? s->o->decode + 1 : 0));
    switch (c->task) {
    case TASK_GENERATE:
    case TASK_CLASSIFY:
    case TASK_TAG:
    case TASK_EMBED:
    case TASK_RERANK:
    case TASK_FILL_MASK: break;
    default:
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s is for %s: profile measures what generates, or reads texts", model_name(s->c.m),
                       task_name(c->task));
    }
    if (n > engine_ctx(s->c.e))
        return err_set(err, SHOAL_ELIMIT, "the run is %zu tokens and the model's context has %zu", n,
                       engine_ctx(s->c.e));
    return 0;
}

static int open_engine(subject *s, const char *name, shoal_err *err)
{
    kv_type kept;
    int rc = cli_engine_open(&s->c, name, &s->o->model, false, err);
    if (rc == 0) rc = cli_kv_type(&kept, s->o->model.kv_type, err);
    if (rc == 0) rc = bench_model_about(&s->about, &s->o->model, s->c.m, s->digest, err);
    if (rc == 0) rc = profile_new(&s->profile, err);
    if (rc != 0) return rc;
    s->work = bench_work_of(s->c.m, kept);
    s->about.is_float = s->work.is_float;
    double kv =
        2.2 * (s->work.kv_bytes + s->work.local_kv_bytes) * (double)(s->o->prompt_tokens + s->o->decode + 64);
    const engine_options more = {
        .kv_bytes = kv > (double)KV_LEAST ? (size_t)kv : KV_LEAST, .no_drafts = true, .profile = s->profile};
    return cli_engine_start(&s->c, &s->o->model, &more, err);
}

static int probe_limits(subject *s, shoal_err *err)
{
    double kept = (s->work.kv_bytes + s->work.local_kv_bytes) * (double)(s->o->prompt_tokens + s->o->decode);
    int rc = bench_limits_begin(&s->limits, s->about.isa, (int)s->about.threads.v[0], s->about.is_float, err);
    if (rc == 0) rc = bench_limits_read(&s->limits, s->work.layer_bytes + s->work.head_bytes + kept, err);
    return rc;
}

int bench_profile(const bench_profile_options *o, const char *name, shoal_err *err)
{
    subject *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->o = o;
    s->ids = calloc((size_t)o->prompt_tokens, sizeof *s->ids);
    int rc = s->ids ? file_try_replace(o->svg, err) : err_nomem(err);
    if (rc == 0) rc = open_engine(s, name, err);
    if (rc == 0) rc = check(s, err);
    if (rc == 0) rc = probe_limits(s, err);
    if (rc == 0) rc = warm_up(s, err);
    if (rc == 0) rc = rounds(s, err);
    if (rc == 0) rc = report(s, err);
    cli_engine_close(&s->c);
    profile_free(s->profile);
    for (size_t i = 0; i < s->n_snaps; i++) profile_snap_done(&s->snaps[i]);
    for (int i = 0; i < PROFILE_N_PHASES; i++) profile_table_done(&s->tables[i]);
    free(s->ids);
    free(s);
    return rc;
}
