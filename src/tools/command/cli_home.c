/* cli_home.c: finds shoal.yaml, and reads from its pipelines what a model is told. */
#define _GNU_SOURCE
#include "command/cli_home.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "os/installed.h"
#include "config/config.h"
#include "rules/home.h"

struct cli_home {
    char *path;
    gateway_config *config;
    const config_pipeline *pipeline;
    const char *model; /* the configuration's */
};

/* ---- where ----------------------------------------------------------------------------------- */

int cli_home_find(char **ret, shoal_err *err)
{
    char places[4][INSTALLED_PATH_BYTES] = {"shoal.yaml", "/etc/shoal/shoal.yaml"};
    size_t n = 2;
    while (n < 4 && installed_place(places[n], sizeof places[n], n - 2, "shoal.yaml")) n++;
    for (size_t i = 0; i < n; i++)
        if (file_exists(places[i])) return (*ret = strdup(places[i])) ? 0 : err_nomem(err);
    return err_set(err, SHOAL_EINVALID, "no configuration: looked for ./%s, %s%s%.120s; name one with -c",
                   places[0], places[1], n > 2 ? " and " : "", n > 2 ? places[2] : "");
}

/* ---- what its pipeline says ------------------------------------------------------------------ */

static bool speaks_to(const config_stage *s, const char *model)
{
    return s->kind->id == STAGE_GENERATE && s->system && strcmp(s->model, model) == 0;
}

static void find_pipeline(cli_home *h, const char *model)
{
    for (size_t i = 0; i < h->config->n_pipelines && !h->pipeline; i++) {
        const config_pipeline *p = &h->config->pipelines[i];
        for (unsigned k = 0; k < p->n_stages; k++) {
            if (!speaks_to(&p->stages[k], model)) continue;
            h->pipeline = p;
            h->model = p->stages[k].model;
            break;
        }
    }
}

int cli_home_open(cli_home **ret, const char *config, const char *model, shoal_err *err)
{
    cli_home *h = calloc(1, sizeof *h);
    if (!h) return err_nomem(err);
    shoal_err nowhere;
    int rc = 0;
    if (config)
        rc = (h->path = strdup(config)) ? 0 : err_nomem(err);
    else if (cli_home_find(&h->path, &nowhere) != 0 && nowhere.code == SHOAL_ENOMEM)
        rc = err_nomem(err);
    if (rc == 0 && h->path) rc = config_load(&h->config, &HOME_STAGES, h->path, err);
    if (rc == 0 && h->config) find_pipeline(h, model);
    if (rc == 0 && h->pipeline) {
        *ret = h;
        return 0;
    }
    cli_home_close(h);
    if (rc == 0) *ret = NULL;
    return rc;
}

void cli_home_close(cli_home *h)
{
    if (!h) return;
    config_free(h->config);
    free(h->path);
    free(h);
}

const char *cli_home_path(const cli_home *h)
{
    return h->path;
}

size_t cli_home_n_devices(const cli_home *h)
{
    return h->pipeline->n_devices;
}

/* The model's first stage that the pipeline runs for these facts; when other models would have to be asked
 * first, its first one. */
static const config_stage *choose_stage(const cli_home *h, const pipeline_facts *facts)
{
    const config_pipeline *p = h->pipeline;
    const config_stage *first = NULL;
    for (unsigned i = 0; i < p->n_stages; i++) {
        if (!speaks_to(&p->stages[i], h->model)) continue;
        buf why = {0};
        stage_verdict v = pipeline_judge(p, i, facts, &why);
        buf_done(&why);
        if (v == STAGE_RUN) return &p->stages[i];
        if (!first) first = &p->stages[i];
    }
    return first;
}

/* Rules need no model: what the pipeline's line stages make of the input. */
static int read_lines(const config_pipeline *p, const char *input, stage_fact *facts, arena *a,
                      shoal_err *err)
{
    int rc = 0;
    for (unsigned i = 0; i < p->n_stages && rc == 0; i++) {
        line_reading r = {0};
        const line_forms *forms = rules_line_forms(&p->stages[i]);
        if (!forms) continue;
        rc = line_read(&r, forms, input, a, err);
        if (rc == 0)
            facts[i] =
                (stage_fact){.state = STAGE_DONE, .label = line_verdict_name(r.verdict), .text = r.text};
    }
    return rc;
}

int cli_home_messages(const cli_home *h, const char *line, buf *system, buf *user, shoal_err *err)
{
    stage_fact known[PIPELINE_STAGES_MAX];
    for (size_t i = 0; i < PIPELINE_STAGES_MAX; i++)
        known[i] = (stage_fact){.state = STAGE_SKIPPED, .label = "", .text = ""};
    const config_pipeline *p = h->pipeline;
    pipeline_facts facts = {
        .input = line, .devices = p->devices, .n_devices = p->n_devices, .context = "", .stages = known};
    arena *a = arena_new(0);
    int rc = a ? read_lines(p, line, known, a, err) : err_nomem(err);
    const config_stage *s = rc == 0 ? choose_stage(h, &facts) : NULL;
    if (s && (pipeline_expand(p, s->system, &facts, system) != 0 ||
              pipeline_expand(p, s->prompt ? s->prompt : "{input}", &facts, user) != 0))
        rc = err_nomem(err);
    arena_free(a);
    return rc;
}

/* What one rule makes of the line. *ret_text: its answer, NULL when it has none or leaves the line to a
 * model; *ret_read: it is a line of a form, and no request. */
static int ask_rule(const config_pipeline *p, const config_stage *s, const char *line, arena *a,
                    const char **ret_text, bool *ret_read, shoal_err *err)
{
    line_reading r = {0};
    grounding g = {0};
    int rc = 0;
    const line_forms *forms = rules_line_forms(s);
    const lexicon *lex = rules_lexicon(s);
    if (forms) {
        rc = line_read(&r, forms, line, a, err);
        if (rc == 0 && r.verdict == LINE_UNREADABLE) *ret_text = r.text;
        if (rc == 0 && r.verdict == LINE_READ) *ret_read = true;
    } else if (lex) {
        rc = ground(&g, lex, p->devices, p->n_devices, line, a, err);
        if (rc == 0 && g.verdict != GROUND_ACT && g.verdict != GROUND_CHOOSE) *ret_text = g.text;
    }
    return rc;
}

int cli_home_answer(const cli_home *h, const char *line, buf *ret, shoal_err *err)
{
    const config_pipeline *p = h->pipeline;
    arena *a = arena_new(0);
    const char *text = NULL;
    bool read = false;
    int rc = a ? 0 : err_nomem(err);
    for (unsigned i = 0; i < p->n_stages && rc == 0 && !text && !read; i++)
        rc = ask_rule(p, &p->stages[i], line, a, &text, &read, err);
    if (rc == 0 && text && buf_puts(ret, text)) rc = err_nomem(err);
    arena_free(a);
    return rc;
}
