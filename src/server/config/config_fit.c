/* config_fit.c: stages against what their models are. */
#include "config/config_fit.h"

#include <stdio.h>
#include <string.h>

#include "config/config_schema.h"
#include "pipeline/pipeline_template.h"
#include "tasks/task.h"

/* One pipeline and the model that its stages are held against. */
typedef struct fitting {
    const gateway_config *config;
    const config_pipeline *pipeline;
    size_t i_pipeline;
    const char *model;
    const model_facts *facts;
    shoal_err *err;
} fitting;

static bool is_of_model(const config_stage *s, const char *model)
{
    return s->model && strcmp(s->model, model) == 0;
}

static bool does(const model_facts *f, const char *task)
{
    return strcmp(f->task, task) == 0 || strcmp(task_effective(f->task, f->n_labels), task) == 0;
}

static int fit_stage(const fitting *f, unsigned i)
{
    const config_stage *s = &f->pipeline->stages[i];
    const char *task = s->kind->task;
    if (task && !does(f->facts, task))
        return config_fail(
            f->config, f->err,
            "pipelines[%zu].stages[%u].model: '%s' is a model to %s, a %s stage needs one to %s",
            f->i_pipeline, i, f->model, f->facts->task, s->kind->name, task);
    if (s->kind->id == STAGE_GENERATE && !f->facts->has_chat_template)
        return config_fail(f->config, f->err,
                           "pipelines[%zu].stages[%u].model: '%s' has no chat template, so it cannot be "
                           "given the messages of a generate stage",
                           f->i_pipeline, i, f->model);
    return 0;
}

/* A trailing '*' makes a prefix of a label, as in pipeline_judge. */
static bool label_exists(const model_facts *f, const char *label)
{
    size_t n = strlen(label);
    bool prefix = n && label[n - 1] == '*';
    for (size_t i = 0; i < f->n_labels; i++)
        if (prefix ? strncmp(f->labels[i], label, n - 1) == 0 : strcmp(f->labels[i], label) == 0) return true;
    return false;
}

static int no_such_label(const fitting *f, const char *where, const char *label)
{
    const char *near = config_nearest(label, f->facts->labels, f->facts->n_labels);
    return config_fail(f->config, f->err, "%s: no label of '%s' %s '%s'%s%s%s", where, f->model,
                       label[strlen(label) - 1] == '*' ? "matches" : "is", label,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* Else they are the pipeline's own, or a language. A model of numbers has no labels. */
static bool labels_are_the_models(const fitting *f, stage_id k)
{
    return k == STAGE_CLASSIFY || k == STAGE_IMAGE || (k == STAGE_SCORE && f->facts->n_labels > 0);
}

static int fit_conditions(const fitting *f, unsigned stage, const char *field, const stage_condition *c,
                          unsigned n)
{
    int rc = 0;
    for (unsigned i = 0; i < n && !rc; i++) {
        if (!c[i].stage || !c[i].n_label) continue;
        int about = pipeline_stage_index(f->pipeline, c[i].stage, strlen(c[i].stage));
        if (about < 0 || !is_of_model(&f->pipeline->stages[about], f->model)) continue;
        if (!labels_are_the_models(f, f->pipeline->stages[about].kind->id)) continue;
        for (unsigned k = 0; !rc && k < c[i].n_label; k++) {
            char where[96];
            snprintf(where, sizeof where, "pipelines[%zu].stages[%u].%s[%u].label[%u]", f->i_pipeline, stage,
                     field, i, k);
            if (!label_exists(f->facts, c[i].label[k])) rc = no_such_label(f, where, c[i].label[k]);
        }
    }
    return rc;
}

static int fit_alert(const fitting *f, unsigned stage)
{
    const config_stage *s = &f->pipeline->stages[stage];
    char where[96];
    int rc = 0;
    for (unsigned k = 0; !rc && k < s->n_alert && f->facts->n_labels; k++) {
        snprintf(where, sizeof where, "pipelines[%zu].stages[%u].alert[%u]", f->i_pipeline, stage, k);
        if (!label_exists(f->facts, s->alert[k])) rc = no_such_label(f, where, s->alert[k]);
    }
    return rc;
}

static int fit_pipeline(const fitting *f)
{
    int rc = 0;
    const config_pipeline *p = f->pipeline;
    for (unsigned i = 0; !rc && i < p->n_stages; i++) {
        const config_stage *s = &p->stages[i];
        if (is_of_model(s, f->model)) rc = fit_stage(f, i);
        if (!rc && is_of_model(s, f->model)) rc = fit_alert(f, i);
        if (!rc) rc = fit_conditions(f, i, "when", s->when, s->n_when);
        if (!rc) rc = fit_conditions(f, i, "unless", s->unless, s->n_unless);
    }
    return rc;
}

/* A classifier says what a text is about by its labels, an embedder by the nearest centroid. */
static int fit_domains(const fitting *f, size_t i)
{
    const config_domains *d = &f->config->book.domains[i];
    const char *task = d->centroids_path ? "embed" : "classify";
    if (!does(f->facts, task))
        return config_fail(
            f->config, f->err,
            "domains[%zu].model: '%s' is a model to %s, and domains %s 'centroids' need one to %s", i,
            f->model, f->facts->task, d->centroids_path ? "with" : "without", task);
    int rc = 0;
    for (size_t k = 0; k < d->n_of; k++)
        for (size_t n = 0; !rc && n < d->of[k].n_labels; n++) {
            char where[96];
            snprintf(where, sizeof where, "domains[%zu].of[%zu].labels[%zu]", i, k, n);
            if (!label_exists(f->facts, d->of[k].labels[n])) rc = no_such_label(f, where, d->of[k].labels[n]);
        }
    return rc;
}

/* Who says whether an answer follows from its context must have a label for that. */
static int fit_judge(const fitting *f, size_t i, size_t k)
{
    const config_answer_check *check = &f->config->ensembles[i].checks[k];
    char where[96];
    if (!check->model || strcmp(check->model, f->model) != 0) return 0;
    if (!does(f->facts, "classify"))
        return config_fail(f->config, f->err,
                           "ensembles[%zu].check[%zu].model: '%s' is a model to %s, and nli needs one to "
                           "classify pairs of texts",
                           i, k, f->model, f->facts->task);
    snprintf(where, sizeof where, "ensembles[%zu].check[%zu].%s", i, k, check->entails ? "entails" : "model");
    const char *label = check->entails ? check->entails : ENSEMBLE_ENTAILS;
    return label_exists(f->facts, label) ? 0 : no_such_label(f, where, label);
}

static int fit_judges(const fitting *f)
{
    int rc = 0;
    for (size_t i = 0; i < f->config->n_ensembles; i++)
        for (size_t k = 0; !rc && k < f->config->ensembles[i].n_checks; k++) rc = fit_judge(f, i, k);
    return rc;
}

/* Who weighs the candidates of a rerank. */
static int fit_score(const fitting *f, size_t i)
{
    const config_score *s = &f->config->ensembles[i].score;
    bool generates = does(f->facts, "generate") || does(f->facts, "seq2seq");
    if (s->model && strcmp(s->model, f->model) == 0 && !does(f->facts, "rerank"))
        return config_fail(
            f->config, f->err,
            "ensembles[%zu].score.model: '%s' is a model to %s; a cross-encoder (rerank) says how "
            "well an answer fits a question",
            i, f->model, f->facts->task);
    if (s->log_prob && strcmp(s->log_prob, f->model) == 0 && !generates)
        return config_fail(
            f->config, f->err,
            "ensembles[%zu].score.log_prob: '%s' is a model to %s; how likely a text is, only one "
            "to generate says",
            i, f->model, f->facts->task);
    return 0;
}

static bool has_label(const model_facts *facts, const char *label)
{
    for (size_t i = 0; i < facts->n_labels; i++)
        if (strcmp(facts->labels[i], label) == 0) return true;
    return false;
}

static int fit_moderation(const fitting *f)
{
    const config_moderation *m = &f->config->moderation;
    if (!m->model || strcmp(m->model, f->model) != 0) return 0;
    if (strcmp(f->facts->task, "classify") != 0)
        return config_fail(f->config, f->err,
                           "moderation.model: '%s' is a model to %s, and this needs one to classify",
                           f->model, f->facts->task);
    for (size_t i = 0; i < m->n_safe; i++)
        if (!has_label(f->facts, m->safe[i]))
            return config_fail(f->config, f->err, "moderation.safe[%zu]: '%s' has no label '%s'", i, f->model,
                               m->safe[i]);
    return 0;
}

int config_fit(const gateway_config *c, const char *model, const model_facts *facts, shoal_err *err)
{
    const char *field, *task = config_cache_misfit(&c->cache, model, facts->task, &field);
    int rc = 0;
    if (task)
        rc = config_fail(c, err, "%s: '%s' is a model to %s, and this needs one to %s", field, model,
                         facts->task, task);
    for (size_t i = 0; !rc && i < c->n_ensembles; i++)
        rc = fit_score(&(fitting){.config = c, .model = model, .facts = facts, .err = err}, i);
    for (size_t i = 0; !rc && i < c->book.n_domains; i++) {
        fitting f = {.config = c, .model = model, .facts = facts, .err = err};
        if (strcmp(c->book.domains[i].model, model) == 0) rc = fit_domains(&f, i);
    }
    fitting judges = {.config = c, .model = model, .facts = facts, .err = err};
    if (!rc) rc = fit_judges(&judges);
    if (!rc) rc = fit_moderation(&judges);
    for (size_t i = 0; !rc && i < c->n_pipelines; i++) {
        fitting f = {c, &c->pipelines[i], i, model, facts, err};
        rc = fit_pipeline(&f);
    }
    return rc;
}

static int fit_stand_in(const gateway_config *c, size_t i, size_t k, const char *const *tasks, shoal_err *err)
{
    const config_model *m = &c->models[i];
    size_t to = 0;
    while (to < c->n_models && strcmp(c->models[to].name, m->fallback[k]) != 0) to++;
    if (to == c->n_models || !tasks[i] || !tasks[to]) return 0;
    if (strcmp(tasks[i], "embed") == 0)
        return config_fail(
            c, err,
            "models[%zu].fallback[%zu]: '%s' is a model to embed: vectors of another model do not "
            "compare with its own, so nothing can stand in for it",
            i, k, m->name);
    if (strcmp(tasks[i], tasks[to]) == 0) return 0;
    return config_fail(c, err, "models[%zu].fallback[%zu]: '%s' is a model to %s, and '%s' is one to %s", i,
                       k, m->fallback[k], tasks[to], m->name, tasks[i]);
}

int config_fit_fallbacks(const gateway_config *c, const char *const *tasks, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < c->n_models; i++)
        for (size_t k = 0; !rc && k < c->models[i].n_fallback; k++) rc = fit_stand_in(c, i, k, tasks, err);
    return rc;
}

static bool falls_back(const gateway_config *c, const char *model)
{
    for (size_t i = 0; i < c->n_models; i++) {
        const config_model *m = &c->models[i];
        if (m->n_fallback > 0 && strcmp(m->name, model) == 0) return true;
        for (size_t k = 0; k < m->n_fallback; k++)
            if (strcmp(m->fallback[k], model) == 0) return true;
    }
    return false;
}

bool config_uses_model(const gateway_config *c, const char *model)
{
    if (c->moderation.model && strcmp(c->moderation.model, model) == 0) return true;
    for (size_t i = 0; i < c->n_pipelines; i++)
        for (unsigned k = 0; k < c->pipelines[i].n_stages; k++)
            if (is_of_model(&c->pipelines[i].stages[k], model)) return true;
    for (size_t i = 0; i < c->book.n_domains; i++)
        if (strcmp(c->book.domains[i].model, model) == 0) return true;
    for (size_t i = 0; i < c->n_ensembles; i++) {
        const config_ensemble *e = &c->ensembles[i];
        if (strcmp(e->score.model ? e->score.model : "", model) == 0) return true;
        if (strcmp(e->score.log_prob ? e->score.log_prob : "", model) == 0) return true;
        for (size_t k = 0; k < e->n_checks; k++)
            if (strcmp(e->checks[k].model ? e->checks[k].model : "", model) == 0) return true;
    }
    return falls_back(c, model) || config_cache_uses(&c->cache, model);
}
