/* config_ensembles.c: what the rows of an ensemble cannot say; see config_ensembles.h. */
#include "config/config_ensembles.h"

#include <stdio.h>
#include <string.h>

#include "config/config_schema.h"
#include "regex/regex.h"

const config_ensemble *config_ensemble_find(const gateway_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_ensembles; i++)
        if (strcmp(c->ensembles[i].name, name) == 0) return &c->ensembles[i];
    return NULL;
}

bool config_answers(const gateway_config *c, const char *name)
{
    return config_find_model(c, name) || config_ensemble_find(c, name);
}

fail_step config_fail_step(const char *word)
{
    static const char *const WORDS[] = {
#define FAIL_STEP_WORD(e, name) name,
        FAIL_STEP_TABLE(FAIL_STEP_WORD)
#undef FAIL_STEP_WORD
    };
    fail_step s = 0;
    while (s < FAIL_N_STEPS && strcmp(WORDS[s], word) != 0) s++;
    return s;
}

/* A model; of a verify also an ensemble of another kind, whose calls stand under its own. */
static bool is_member(const gateway_config *c, const config_ensemble *of, const char *name)
{
    const config_ensemble *e = of->kind == ENSEMBLE_VERIFY ? config_ensemble_find(c, name) : NULL;
    return config_find_model(c, name) || (e && e->kind != ENSEMBLE_VERIFY);
}

static int check_member(const gateway_config *c, const config_ensemble *e, const char *where, size_t i,
                        shoal_err *err)
{
    const config_member *m = &e->members[i];
    bool cascade = e->kind == ENSEMBLE_CASCADE, last = i + 1 == e->n_members;
    if (config_ensemble_find(c, m->model) && !is_member(c, e, m->model))
        return err_set(
            err, SHOAL_EINVALID,
            "%smembers[%zu].model: '%s' is an ensemble, and only a verify has such members, none of "
            "them a verify",
            where, i, m->model);
    if (!is_member(c, e, m->model))
        return err_set(err, SHOAL_EINVALID, "%smembers[%zu].model: '%s' is not among the models of this file",
                       where, i, m->model);
    for (size_t k = 0; k < i && e->kind != ENSEMBLE_RERANK; k++)
        if (strcmp(e->members[k].model, m->model) == 0)
            return err_set(err, SHOAL_EINVALID, "%smembers[%zu].model: '%s' is already members[%zu]", where,
                           i, m->model, k);
    if (!cascade && (m->min_confidence > 0 || m->calibration))
        return err_set(err, SHOAL_EINVALID, "%smembers[%zu]: min_confidence and calibration are a cascade's",
                       where, i);
    if (e->kind != ENSEMBLE_VOTE && m->weight > 0)
        return err_set(err, SHOAL_EINVALID, "%smembers[%zu].weight: weights are a vote's", where, i);
    if (e->kind != ENSEMBLE_RERANK && (m->candidates > 0 || m->temperature))
        return err_set(err, SHOAL_EINVALID, "%smembers[%zu]: candidates and temperature are a rerank's",
                       where, i);
    if (cascade && last && (m->min_confidence > 0 || m->calibration))
        return err_set(
            err, SHOAL_EINVALID,
            "%smembers[%zu]: nobody is asked behind the last member, so its confidence is not looked at",
            where, i);
    return 0;
}

/* What a kind of check has no use for, and what it needs. */
static int check_check(const gateway_config *c, const config_ensemble *e, const char *ensemble, size_t i,
                       shoal_err *err)
{
    const config_answer_check *k = &e->checks[i];
    char where[80];
    snprintf(where, sizeof where, "%scheck[%zu].", ensemble, i);
    const struct {
        const char *key;
        bool given;
        check_kind of;
    } KEYS[] = {{"lexicon", k->lexicon, CHECK_DEVICES}, {"functions", k->functions, CHECK_DEVICES},
                {"must", k->n_must, CHECK_PATTERN},     {"must_not", k->n_must_not, CHECK_PATTERN},
                {"schema", k->schema, CHECK_JSON},      {"model", k->model, CHECK_NLI},
                {"entails", k->entails, CHECK_NLI},     {"min_score", k->min_score > 0, CHECK_NLI}};
    static const char *const KINDS[] = {
#define CHECK_KIND_NAME(e, name) name,
        CHECK_KIND_TABLE(CHECK_KIND_NAME)
#undef CHECK_KIND_NAME
    };
    for (size_t j = 0; j < sizeof KEYS / sizeof *KEYS; j++)
        if (KEYS[j].given && KEYS[j].of != k->kind)
            return err_set(err, SHOAL_EINVALID, "%s%s: it belongs to kind: %s", where, KEYS[j].key,
                           KINDS[KEYS[j].of]);
    if (k->kind == CHECK_PATTERN && !k->n_must && !k->n_must_not)
        return err_set(err, SHOAL_EINVALID, "%skind: a pattern needs 'must' or 'must_not'", where);
    if (k->kind == CHECK_NLI && !k->model)
        return err_set(err, SHOAL_EINVALID,
                       "%skind: nli needs a 'model' that classifies pairs of texts, with a label for what "
                       "follows from the other",
                       where);
    if (k->model && !config_find_model(c, k->model))
        return err_set(err, SHOAL_EINVALID, "%smodel: '%s' is not among the models of this file", where,
                       k->model);
    return 0;
}

static int check_on_fail(const config_ensemble *e, const char *where, shoal_err *err)
{
    bool escalates = e->n_on_fail == 0;
    for (size_t i = 0; i < e->n_on_fail; i++) {
        fail_step s = config_fail_step(e->on_fail[i]);
        if (s == FAIL_N_STEPS)
            return err_set(err, SHOAL_EINVALID, "%son_fail[%zu]: '%s' is not repair, escalate or safe", where,
                           i, e->on_fail[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(e->on_fail[k], e->on_fail[i]) == 0)
                return err_set(err, SHOAL_EINVALID, "%son_fail[%zu]: '%s' is already on_fail[%zu]", where, i,
                               e->on_fail[i], k);
        if (s == FAIL_SAFE && i + 1 < e->n_on_fail)
            return err_set(err, SHOAL_EINVALID,
                           "%son_fail[%zu]: nothing comes behind 'safe', which ends every list", where,
                           i + 1);
        escalates |= s == FAIL_ESCALATE;
    }
    if (!escalates && e->n_members > 1)
        return err_set(err, SHOAL_EINVALID,
                       "%smembers[1]: nobody asks it, since 'escalate' is not in 'on_fail'", where);
    return 0;
}

static int check_verify(const gateway_config *c, const config_ensemble *e, const char *where, shoal_err *err)
{
    if (e->kind != ENSEMBLE_VERIFY) {
        const char *key = e->n_checks ? "check" : e->n_on_fail ? "on_fail" : e->safe ? "safe" : NULL;
        if (key) return err_set(err, SHOAL_EINVALID, "%s%s: only a verify has it", where, key);
        return 0;
    }
    if (!e->n_checks)
        return err_set(err, SHOAL_EINVALID,
                       "%skind: a verify needs 'check', a list of what answers must pass", where);
    int rc = 0;
    for (size_t i = 0; !rc && i < e->n_checks; i++) rc = check_check(c, e, where, i, err);
    return rc ? rc : check_on_fail(e, where, err);
}

static bool is_pattern(const config_score *s)
{
    return s->rule && strcmp(s->rule, "pattern") == 0;
}

static int check_score(const gateway_config *c, const config_score *s, const char *where, shoal_err *err)
{
    const char *judge = s->model ? s->model : s->log_prob;
    regex *p = NULL;
    shoal_err why;
    if ((s->model != NULL) + (s->log_prob != NULL) + (s->rule != NULL) != 1)
        return err_set(err, SHOAL_EINVALID,
                       "%sscore: give exactly one of model (a cross-encoder), log_prob (a decoder) and rule",
                       where);
    if (judge && !config_find_model(c, judge))
        return err_set(err, SHOAL_EINVALID, "%sscore.%s: '%s' is not among the models of this file", where,
                       s->model ? "model" : "log_prob", judge);
    if ((s->pattern != NULL) != is_pattern(s))
        return err_set(err, SHOAL_EINVALID,
                       "%sscore.pattern: the rule 'pattern' needs one, and nothing else has one", where);
    if (s->schema && (!s->rule || strcmp(s->rule, "json") != 0))
        return err_set(err, SHOAL_EINVALID, "%sscore.schema: only the rule 'json' has one", where);
    int rc = s->pattern ? regex_compile(&p, s->pattern, &why) : 0;
    regex_free(p);
    return rc == SHOAL_ENOMEM ? err_nomem(err)
           : rc != 0          ? err_set(err, rc, "%sscore.pattern: %s", where, why.message)
                              : 0;
}

/* Rules by which an answer may be all that it can be. */
static bool has_best(const config_score *s)
{
    static const char *const RULES[] = {"words", "names", "json", "pattern"};
    for (size_t i = 0; s->rule && i < sizeof RULES / sizeof *RULES; i++)
        if (strcmp(s->rule, RULES[i]) == 0) return true;
    return false;
}

static int check_rerank(const gateway_config *c, const config_ensemble *e, const char *where, shoal_err *err)
{
    size_t n = 0;
    for (size_t k = 0; k < e->n_members; k++) n += e->members[k].candidates ? e->members[k].candidates : 1;
    if (n < 2)
        return err_set(err, SHOAL_EINVALID,
                       "%smembers: one candidate is the best of one; give another member, or 'candidates'",
                       where);
    if (n > ENSEMBLE_CANDIDATES_MAX)
        return err_set(err, SHOAL_EINVALID, "%smembers: %zu candidates, at most %d are made", where, n,
                       ENSEMBLE_CANDIDATES_MAX);
    if (e->in_turn && !has_best(&e->score))
        return err_set(
            err, SHOAL_EINVALID,
            "%sin_turn: only the rules words, names, json and pattern tell that no answer can be better",
            where);
    return check_score(c, &e->score, where, err);
}

static int check_ensemble(const gateway_config *c, size_t i, shoal_err *err)
{
    const config_ensemble *e = &c->ensembles[i];
    char where[48];
    snprintf(where, sizeof where, "ensembles[%zu].", i);
    if (config_find_model(c, e->name))
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' is a model's name", where, e->name);
    if (config_ensemble_find(c, e->name) != e)
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' is the name of an ensemble before it", where,
                       e->name);
    if (e->kind != ENSEMBLE_VOTE && e->mean != ENSEMBLE_ARITHMETIC)
        return err_set(err, SHOAL_EINVALID, "%smean: only a vote takes a mean", where);
    if (e->kind != ENSEMBLE_REFINE && e->wait_ms > 0)
        return err_set(err, SHOAL_EINVALID, "%swait_ms: only a refine waits", where);
    if (e->kind == ENSEMBLE_REFINE && e->n_members != 2)
        return err_set(err, SHOAL_EINVALID, "%smembers: a refine has two, the fast one and the better one",
                       where);
    bool few = e->kind == ENSEMBLE_VERIFY || e->kind == ENSEMBLE_RERANK;
    if (!few && e->n_members < 2)
        return err_set(err, SHOAL_EINVALID, "%smembers: has 1 entry, at least 2 are needed", where);
    if (e->kind != ENSEMBLE_RERANK && e->in_turn)
        return err_set(err, SHOAL_EINVALID, "%sin_turn: only a rerank asks in turn", where);
    if (e->kind != ENSEMBLE_RERANK &&
        (e->score.model || e->score.log_prob || e->score.rule || e->score.pattern || e->score.schema))
        return err_set(err, SHOAL_EINVALID, "%sscore: only a rerank scores", where);
    int rc = check_verify(c, e, where, err);
    if (!rc && e->kind == ENSEMBLE_RERANK) rc = check_rerank(c, e, where, err);
    for (size_t k = 0; !rc && k < e->n_members; k++) rc = check_member(c, e, where, k, err);
    return rc;
}

int config_check_ensembles(const gateway_config *c, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < c->n_ensembles; i++)
        rc = config_found_at(c, check_ensemble(c, i, err), err);
    return rc;
}
