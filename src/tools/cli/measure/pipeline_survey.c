/* pipeline_survey.c: see pipeline_survey.h. What the server would find at its start, and what it would not.
 */
#include "cli/measure/pipeline_survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/cli.h"
#include "serve/serve_models.h"
#include "serve/serve_tools.h"
#include "rules/home.h"

bool pipeline_survey_takes(const pipeline_survey *s, size_t i)
{
    return !s->only || strcmp(s->config->pipelines[i].name, s->only) == 0;
}

const config_stage *pipeline_survey_fickle(const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        const config_pipeline one = {.stages = &p->stages[i], .n_stages = 1};
        if (!pipeline_is_deterministic(&one)) return &p->stages[i];
    }
    return NULL;
}

/* ---- problems --------------------------------------------------------------------------------------- */

/* Takes the sentence of a failure as a problem, but for want of memory. */
static int note(pipeline_survey *s, int rc, shoal_err *err)
{
    if (rc == 0 || rc == SHOAL_ENOMEM) return rc;
    return json_array_append_new(s->problems, json_string(err->message)) == 0 ? 0 : err_nomem(err);
}

static int find_problem(pipeline_survey *s, shoal_err *err, const char *where, const char *sentence)
{
    return note(s, config_fail(s->config, err, "%s: %s", where, sentence), err);
}

/* ---- models ----------------------------------------------------------------------------------------- */

static int take_labels(pipeline_survey *s, size_t i, const json_t *said, shoal_err *err)
{
    const json_t *list = json_object_get(said, "labels");
    size_t n = json_array_size(list);
    if (n == 0) return 0;
    s->labels[i] = calloc(n + 1, sizeof *s->labels[i]);
    if (!s->labels[i]) return err_nomem(err);
    for (size_t k = 0; k < n; k++) s->labels[i][k] = json_string_value(json_array_get(list, k));
    return 0;
}

static int look_at_model(pipeline_survey *s, size_t i, shoal_err *err)
{
    const json_t *said = json_array_get(s->models, i);
    const char *error = json_string_value(json_object_get(said, "error"));
    if (!json_is_object(said)) error = "the process that read its file died";
    if (error) return note(s, config_fail(s->config, err, "models[%zu]: %s", i, error), err);
    int rc = take_labels(s, i, said, err);
    return rc ? rc : note(s, serve_models_fit_one(s->config, i, said, err), err);
}

/* What a name stands for: a model and who stands in for it, an ensemble's members, where a route leads. */
typedef struct asking {
    const gateway_config *c;
    bool *asked; /* [n_models] */
} asking;

static void ask_for(void *user, const char *name)
{
    const asking *a = user;
    const config_ensemble *e = config_ensemble_find(a->c, name);
    const config_route *r = route_find(&a->c->book, name);
    size_t n = strcspn(name, ":"); /* an adapter's name follows */
    if (r) route_each(r, ask_for, user);
    for (size_t i = 0; e && i < e->n_members; i++) ask_for(user, e->members[i].model);
    for (size_t i = 0; i < a->c->n_models; i++) {
        const config_model *m = &a->c->models[i];
        if (a->asked[i] || strlen(m->name) != n || memcmp(m->name, name, n) != 0) continue;
        a->asked[i] = true;
        for (size_t k = 0; k < m->n_fallback; k++) ask_for(user, m->fallback[k]);
    }
}

/* The models that the pipelines which are looked at may come to. */
static void find_asked(const pipeline_survey *s, bool *asked)
{
    asking a = {.c = s->config, .asked = asked};
    for (size_t i = 0; i < s->config->n_pipelines; i++) {
        const config_pipeline *p = &s->config->pipelines[i];
        for (unsigned k = 0; pipeline_survey_takes(s, i) && k < p->n_stages; k++)
            if (p->stages[k].model) ask_for(&a, p->stages[k].model);
    }
}

static int look_at_models(pipeline_survey *s, shoal_err *err)
{
    worker_spec *specs = NULL;
    size_t n = s->config->n_models;
    bool *asked = calloc(n + 1, sizeof *asked);
    int rc = asked ? note(s, serve_models_find(&specs, s->config, err), err) : err_nomem(err);
    if (rc == 0) find_asked(s, asked);
    if (rc == 0 && specs) rc = serve_models_describe(s->config, specs, &s->models, err);
    for (size_t i = 0; rc == 0 && specs && i < n; i++)
        if (asked[i]) rc = look_at_model(s, i, err);
    serve_models_free(specs, n);
    free(asked);
    return rc;
}

/* ---- stages ----------------------------------------------------------------------------------------- */

/* reach_labels; only these kinds come to the labels of their model. */
static const char *const *labels_of(void *user, const config_stage *st, size_t *ret_n)
{
    const pipeline_survey *s = user;
    bool own = st->kind->id == STAGE_CLASSIFY || st->kind->id == STAGE_IMAGE || st->kind->id == STAGE_SCORE;
    for (size_t i = 0; own && i < s->config->n_models; i++) {
        if (!s->labels[i] || strcmp(s->config->models[i].name, st->model) != 0) continue;
        for (*ret_n = 0; s->labels[i][*ret_n];) ++*ret_n;
        return s->labels[i];
    }
    return NULL;
}

static int look_at_stage(pipeline_survey *s, size_t i, unsigned k, shoal_err *err)
{
    const config_pipeline *p = &s->config->pipelines[i];
    const stage_reach *r = &s->reaches[i].stages[k];
    char where[80], sentence[400];
    int rc = 0;
    snprintf(where, sizeof where, "pipelines[%zu].stages[%u].%s", i, k,
             p->stages[k].n_when     ? "when"
             : p->stages[k].n_unless ? "unless"
                                     : "name");
    if (!r->runs) {
        snprintf(sentence, sizeof sentence,
                 "stage '%s' never runs, whatever the stages before it come to (in the end: %s)",
                 p->stages[k].name, r->why);
        rc = find_problem(s, err, where, sentence);
    }
    for (unsigned c = 0; rc == 0 && c < p->stages[k].n_when; c++) {
        if (!(r->dead >> c & 1)) continue;
        snprintf(where, sizeof where, "pipelines[%zu].stages[%u].when[%u]", i, k, c);
        snprintf(sentence, sizeof sentence, "this never lets '%s' run", p->stages[k].name);
        rc = find_problem(s, err, where, sentence);
    }
    return rc;
}

static int look_at_pipelines(pipeline_survey *s, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->config->n_pipelines; i++) {
        const config_pipeline *p = &s->config->pipelines[i];
        if (!pipeline_survey_takes(s, i)) continue;
        rc = note(s, serve_tools_check(s->config, i, err), err);
        if (rc == 0) rc = pipeline_reach_find(&s->reaches[i], p, labels_of, s, err);
        for (unsigned k = 0; rc == 0 && k < p->n_stages; k++) rc = look_at_stage(s, i, k, err);
    }
    return rc;
}

static const char *name_at(const void *config, size_t i)
{
    return ((const gateway_config *)config)->pipelines[i].name;
}

static int check_name(const pipeline_survey *s, shoal_err *err)
{
    const gateway_config *c = s->config;
    if (!s->only || pipeline_find(c->pipelines, c->n_pipelines, s->only)) return 0;
    const char *near = cli_nearest(s->only, c->n_pipelines, name_at, c);
    return err_set(err, SHOAL_EINVALID, "there is no pipeline '%.64s'%s%s%s", s->only,
                   near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

int pipeline_survey_open(pipeline_survey *ret, const char *path, const char *only, shoal_err *err)
{
    *ret = (pipeline_survey){.only = only, .problems = json_array()};
    if (!ret->problems) return err_nomem(err);
    int rc = cli_opened(config_load(&ret->config, &HOME_STAGES, path, err), err);
    if (rc == 0 && ret->config->n_pipelines == 0)
        rc = err_set(err, SHOAL_EFORMAT, "%s: has no pipelines", path);
    if (rc == 0) rc = check_name(ret, err);
    if (rc != 0) return rc;
    ret->labels = calloc(ret->config->n_models + 1, sizeof *ret->labels);
    ret->reaches = calloc(ret->config->n_pipelines, sizeof *ret->reaches);
    if (!ret->labels || !ret->reaches) return err_nomem(err);
    rc = look_at_models(ret, err);
    return rc ? rc : look_at_pipelines(ret, err);
}

void pipeline_survey_done(pipeline_survey *s)
{
    for (size_t i = 0; s->labels && i < s->config->n_models; i++) free(s->labels[i]);
    free(s->labels);
    free(s->reaches);
    json_decref(s->models);
    json_decref(s->problems);
    config_free(s->config);
}
