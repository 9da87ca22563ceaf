/* pipeline_report.c: what a survey found, as a table and as JSON; see pipeline_survey.h. */
#include <stdio.h>
#include <string.h>

#include "cli/measure/pipeline_survey.h"
#include "command/cli.h"
#include "pipeline/pipeline_words.h"

/* The stages of the longest way, in order, separated by `between`. */
static void put_way(const config_pipeline *p, const pipeline_reach *r, int at, const char *between,
                    bool quoted, buf *out)
{
    if (at < 0) return;
    put_way(p, r, r->stages[at].before, between, quoted, out);
    if (r->stages[at].before >= 0) buf_puts(out, between);
    buf_printf(out, quoted ? "\"%s\"" : "%s", p->stages[at].name);
}

static void put_waits(const config_pipeline *p, unsigned i, const char *between, bool quoted, buf *out)
{
    bool first = true;
    for (unsigned k = 0; k < i; k++) {
        if (!(p->stages[i].needs >> k & 1)) continue;
        if (!first) buf_puts(out, between);
        buf_printf(out, quoted ? "\"%s\"" : "%s", p->stages[k].name);
        first = false;
    }
}

/* Why its answers are not cached; NULL: they are. */
static const char *uncached(const pipeline_survey *s, const config_pipeline *p, char why[128])
{
    const config_stage *fickle = pipeline_survey_fickle(p);
    if (fickle)
        snprintf(why, 128, "stage '%.64s' %s", fickle->name,
                 fickle->temperature > 0 ? "draws at random" : "looks at what changes");
    else if (s->config->cache.bytes == 0)
        snprintf(why, 128, "there is no cache");
    return fickle || s->config->cache.bytes == 0 ? why : NULL;
}

/* ---- for people ------------------------------------------------------------------------------------- */

static size_t widest(const config_pipeline *p, const char *(*of)(const config_stage *), size_t least)
{
    size_t n = least;
    for (unsigned i = 0; i < p->n_stages; i++)
        if (strlen(of(&p->stages[i])) > n) n = strlen(of(&p->stages[i]));
    return n;
}

static const char *pipeline_report_name_of(const config_stage *s)
{
    return s->name;
}

static const char *pipeline_report_kind_of(const config_stage *s)
{
    return s->kind->name;
}

static const char *model_of(const config_stage *s)
{
    return s->model ? s->model : "";
}

static void put_stage(const config_pipeline *p, const pipeline_reach *r, unsigned i, buf *out)
{
    const config_stage *s = &p->stages[i];
    size_t from = out->len;
    buf_printf(out, "  %-*s  %-*s  %-*s  ", (int)widest(p, pipeline_report_name_of, 5), s->name,
               (int)widest(p, pipeline_report_kind_of, 4), pipeline_report_kind_of(s),
               (int)widest(p, model_of, 5), s->model ? s->model : "-");
    size_t indent = out->len - from;
    pipeline_put_when(s, out);
    if (s->needs) buf_puts(out, "; after ");
    put_waits(p, i, ", ", false, out);
    if (s->optional) buf_puts(out, "; optional");
    if (!r->stages[i].runs) buf_puts(out, "; NEVER");
    cli_end_line(out, from, indent);
}

static void put_pipeline(const pipeline_survey *s, size_t i, buf *out)
{
    const config_pipeline *p = &s->config->pipelines[i];
    const pipeline_reach *r = &s->reaches[i];
    char why[128];
    size_t from = out->len;
    unsigned n = r->stages[r->last].n_calls;
    buf_printf(out, "%s: %u stage%s, at most %u model call%s one after the other", p->name, p->n_stages,
               p->n_stages == 1 ? "" : "s", n, n == 1 ? "" : "s");
    if (n > 0) buf_puts(out, " (");
    if (n > 0) put_way(p, r, (int)r->last, " -> ", false, out);
    if (n > 0) buf_putc(out, ')');
    const char *not = uncached(s, p, why);
    buf_printf(out, "; answers are %s%s", not ? "not cached: " : "cached", not ? not : "");
    cli_end_line(out, from, 2);
    buf_printf(out, "  %-*s  %-*s  %-*s  %s\n", (int)widest(p, pipeline_report_name_of, 5), "STAGE",
               (int)widest(p, pipeline_report_kind_of, 4), "KIND", (int)widest(p, model_of, 5), "MODEL",
               "RUNS");
    for (unsigned k = 0; k < p->n_stages; k++) put_stage(p, r, k, out);
    if (!r->complete) buf_puts(out, "  (there are too many ways through it to try them all)\n");
}

void pipeline_report_table(const pipeline_survey *s, buf *out)
{
    bool first = true;
    for (size_t i = 0; i < s->config->n_pipelines; i++) {
        if (!pipeline_survey_takes(s, i)) continue;
        if (!first) buf_putc(out, '\n');
        put_pipeline(s, i, out);
        first = false;
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

static void pipeline_report_put_text(const char *key, const char *text, buf *out)
{
    buf_printf(out, ",\"%s\":", key);
    json_put_string(out, text, strlen(text));
}

static void put_stage_json(const config_pipeline *p, const pipeline_reach *r, unsigned i, buf *out)
{
    const config_stage *s = &p->stages[i];
    buf when = {0};
    pipeline_put_when(s, &when);
    buf_printf(out, "%s{\"name\":\"%s\"", i ? "," : "", s->name);
    pipeline_report_put_text("kind", pipeline_report_kind_of(s), out);
    if (s->model) pipeline_report_put_text("model", s->model, out);
    pipeline_report_put_text("runs", when.data ? when.data : "", out);
    buf_puts(out, ",\"waits_for\":[");
    put_waits(p, i, ",", true, out);
    buf_printf(out, "],\"optional\":%s,\"may_run\":%s,\"may_be_skipped\":%s}", s->optional ? "true" : "false",
               r->stages[i].runs ? "true" : "false", r->stages[i].skips ? "true" : "false");
    out->failed |= when.failed;
    buf_done(&when);
}

static void put_pipeline_json(const pipeline_survey *s, size_t i, buf *out)
{
    const config_pipeline *p = &s->config->pipelines[i];
    const pipeline_reach *r = &s->reaches[i];
    char why[128];
    buf_printf(out, "{\"name\":\"%s\",\"stages\":[", p->name);
    for (unsigned k = 0; k < p->n_stages; k++) put_stage_json(p, r, k, out);
    buf_printf(out, "],\"calls_in_a_row\":%u,\"longest_way\":[", r->stages[r->last].n_calls);
    put_way(p, r, (int)r->last, ",", true, out);
    buf_printf(out, "],\"deterministic\":%s,\"cached\":%s", pipeline_survey_fickle(p) ? "false" : "true",
               uncached(s, p, why) ? "false" : "true");
    if (uncached(s, p, why)) pipeline_report_put_text("why_not", why, out);
    buf_printf(out, ",\"all_tried\":%s}", r->complete ? "true" : "false");
}

void pipeline_report_json(const pipeline_survey *s, buf *out)
{
    bool first = true;
    buf_printf(out, "{\"ok\":%s,\"problems\":", json_array_size(s->problems) ? "false" : "true");
    json_put(out, s->problems);
    buf_puts(out, ",\"pipelines\":[");
    for (size_t i = 0; i < s->config->n_pipelines; i++) {
        if (!pipeline_survey_takes(s, i)) continue;
        if (!first) buf_putc(out, ',');
        put_pipeline_json(s, i, out);
        first = false;
    }
    buf_puts(out, "]}");
}
