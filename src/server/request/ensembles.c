/* ensembles.c: from shoal.yaml's ensembles to the rules of their decorators; see ensembles.h. */
#include "request/ensembles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "calls/span_calls.h"
#include "converse/function_table.h"
#include "ensemble/calibration.h"
#include "ensemble/cascade_calls.h"
#include "ensemble/drift.h"
#include "ensemble/majority_calls.h"
#include "ensemble/refine_calls.h"
#include "ensemble/rerank_calls.h"
#include "ensemble/verify_calls.h"
#include "ensemble/verify_json.h"
#include "ensemble/vote_calls.h"

/* What one ensemble's rule points to. */
typedef struct members {
    cascade_member asked[ENSEMBLE_MEMBERS_MAX];
    vote_member voters[ENSEMBLE_MEMBERS_MAX];
    calibration calibrations[ENSEMBLE_MEMBERS_MAX];
    drift drifts[ENSEMBLE_MEMBERS_MAX]; /* spread 0: it is not watched */
    bool told[ENSEMBLE_MEMBERS_MAX];    /* that it is another file than it was calibrated as */
    const char *names[ENSEMBLE_MEMBERS_MAX];
    verify_check checks[ENSEMBLE_CHECKS_MAX];
    const device_checker *devices;       /* NULL: the program has none */
    void *lexicons[ENSEMBLE_CHECKS_MAX]; /* its, owned, as are the next */
    verify_schema *schemas[ENSEMBLE_CHECKS_MAX];
    function_reporter reporter;
    regex *patterns[ENSEMBLE_CHECKS_MAX][2][ENSEMBLE_PATTERNS_MAX]; /* must, must_not */
    rerank_member writers[ENSEMBLE_MEMBERS_MAX];
    regex *pattern; /* owned, as is the next; NULL: none */
    verify_schema *score_schema;
} members;

struct ensembles {
    metrics *metrics;
    members *members; /* [n_ensembles], as are the next */
    cascade_rule *cascades;
    vote_rule *votes;
    refine_rule *refines;
    verify_rule *verifies;
    rerank_rule *reranks;
    members **watched;  /* [n_cascades] */
    const char **names; /* [n_ensembles]: of each kind those of its rules, one kind behind the other */
    size_t n_all, n_cascades, n_votes, n_refines, n_verifies, n_reranks;
};

/* NULL: that member is not watched. */
static drift *drift_find(ensembles *e, const char *name, const char *model)
{
    for (size_t i = 0; i < e->n_cascades; i++) {
        const cascade_rule *r = &e->cascades[i];
        if (strcmp(r->name, name) != 0) continue;
        for (size_t k = 0; k < r->n_members; k++) {
            drift *d = &e->watched[i]->drifts[k];
            if (strcmp(r->members[k].model, model) == 0) return d->spread > 0 ? d : NULL;
        }
    }
    return NULL;
}

static void ensembles_watch(ensembles *e, const char *name, const char *model, double confidence, bool sure)
{
    drift *d = drift_find(e, name, model);
    if (!d) return;
    drift_change change = drift_add(d, confidence, sure);
    metrics_set(e->metrics, METRIC_DRIFT, drift_of(d), name, model, NULL);
    if (change == DRIFT_BEGAN)
        LOG(LOG_WARN, "ensemble", "cascade_drift", LOG_S("route", name), LOG_S("model", model),
            LOG_F("mean", d->now), LOG_F("calibrated", d->mean),
            LOG_S("advice", "its answers are not those it was calibrated with: run shoal calibrate anew"));
    if (change == DRIFT_ENDED)
        LOG(LOG_INFO, "ensemble", "cascade_steady", LOG_S("route", name), LOG_S("model", model),
            LOG_F("mean", d->now), LOG_F("calibrated", d->mean));
}

static void on_judged(void *user, const char *name, const char *model, double confidence, bool sure)
{
    ensembles *e = user;
    metrics_add(e->metrics, METRIC_CASCADE, 1, name, model, sure ? "sure" : "unsure");
    metrics_add(e->metrics, METRIC_CONFIDENCE, confidence, name, model, NULL);
    ensembles_watch(e, name, model, confidence, sure);
}

/* A model that was exchanged while this serves, or one that is served elsewhere: told once. */
static void on_strange(void *user, const char *name, const char *model, const char *digest)
{
    ensembles *e = user;
    metrics_add(e->metrics, METRIC_CASCADE, 1, name, model, "untrusted");
    for (size_t i = 0; i < e->n_cascades; i++) {
        const cascade_rule *r = &e->cascades[i];
        for (size_t k = 0; strcmp(r->name, name) == 0 && k < r->n_members; k++) {
            if (strcmp(r->members[k].model, model) != 0 || e->watched[i]->told[k]) continue;
            e->watched[i]->told[k] = true;
            LOG(LOG_WARN, "ensemble", "cascade_untrusted", LOG_S("route", name), LOG_S("model", model),
                LOG_S("digest", digest), LOG_S("calibrated", r->members[k].digest),
                LOG_S("advice",
                      "it is another file than it was calibrated as, so the next member answers: run "
                      "shoal calibrate anew"));
        }
    }
}

static void on_answered(void *user, const char *name, const char *by)
{
    metrics_add(((ensembles *)user)->metrics, METRIC_REFINE, 1, name, by, NULL);
}

static void on_verified(void *user, const char *name, const char *model, verify_end end)
{
    metrics_add(((ensembles *)user)->metrics, METRIC_VERIFY, 1, name, model, verify_end_name(end));
}

static void on_left(void *user, const char *name, const char *model)
{
    metrics_add(((ensembles *)user)->metrics, METRIC_VOTE_LEFT, 1, name, model, NULL);
}

static void on_chose(void *user, const char *name, const char *model)
{
    metrics_add(((ensembles *)user)->metrics, METRIC_RERANK, 1, name, model, NULL);
}

static int open_member(members *all, size_t i, const gateway_config *c, size_t of, shoal_err *err)
{
    const config_member *m = &c->ensembles[of].members[i];
    calibration *cal = &all->calibrations[i];
    cascade_member *asked = &all->asked[i];
    shoal_err why;
    *asked = (cascade_member){.model = m->model, .min_confidence = m->min_confidence};
    all->voters[i] = (vote_member){m->model, m->weight > 0 ? m->weight : 1};
    all->writers[i] =
        (rerank_member){m->model, m->candidates ? m->candidates : 1, m->temperature ? *m->temperature : -1};
    if (m->calibration) {
        if (calibration_load(cal, m->calibration, &why) != 0)
            return config_fail(c, err, "ensembles[%zu].members[%zu].calibration: %s", of, i, why.message);
        asked->map = &cal->map;
        asked->digest = cal->digest;
        if (asked->min_confidence <= 0 && cal->spread > 0)
            drift_init(&all->drifts[i], cal->mean, cal->spread); /* it holds for its own threshold */
    }
    if (asked->min_confidence <= 0) asked->min_confidence = cal->min_confidence;
    if (asked->min_confidence <= 0) asked->min_confidence = ENSEMBLE_CONFIDENCE;
    return 0;
}

/* ---- checks ----------------------------------------------------------------------------------------- */

static int open_patterns(const gateway_config *c, const char *where, const char *key, const char **sources,
                         size_t n, regex **ret, shoal_err *err)
{
    shoal_err why;
    for (size_t i = 0; i < n; i++) {
        int rc = regex_compile(&ret[i], sources[i], &why);
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        if (rc) return config_fail(c, err, "%s.%s[%zu]: %s", where, key, i, why.message);
    }
    return 0;
}

static int open_check(members *m, size_t i, const gateway_config *c, size_t of, shoal_err *err)
{
    static const verify_kind KINDS[] = {[CHECK_DEVICES] = VERIFY_DEVICES,
                                        [CHECK_NUMBERS] = VERIFY_NUMBERS,
                                        [CHECK_PATTERN] = VERIFY_PATTERN,
                                        [CHECK_JSON] = VERIFY_JSON,
                                        [CHECK_NLI] = VERIFY_NLI};
    static const char *const NAMES[] = {
#define CHECK_NAME(e, name) [e] = name,
        CHECK_KIND_TABLE(CHECK_NAME)
#undef CHECK_NAME
    };
    const config_answer_check *k = &c->ensembles[of].checks[i];
    shoal_err why;
    char where[64];
    snprintf(where, sizeof where, "ensembles[%zu].check[%zu]", of, i);
    m->devices = c->kinds ? c->kinds->devices : NULL;
    if (k->kind == CHECK_DEVICES && !m->devices)
        return config_fail(c, err, "%s.kind: this program has no check of devices", where);
    if (k->lexicon && m->devices->open(&m->lexicons[i], k->lexicon, &why))
        return config_fail(c, err, "%s.lexicon: %s", where, why.message);
    if (k->schema && verify_schema_load(&m->schemas[i], k->schema, &why))
        return config_fail(c, err, "%s.schema: %s", where, why.message);
    int rc = open_patterns(c, where, "must", k->must, k->n_must, m->patterns[i][0], err);
    if (!rc) rc = open_patterns(c, where, "must_not", k->must_not, k->n_must_not, m->patterns[i][1], err);
    m->checks[i] = (verify_check){.name = NAMES[k->kind],
                                  .kind = KINDS[k->kind],
                                  .devices = m->devices,
                                  .lexicon = m->lexicons[i],
                                  .must = m->patterns[i][0],
                                  .must_not = m->patterns[i][1],
                                  .n_must = k->n_must,
                                  .n_must_not = k->n_must_not,
                                  .schema = m->schemas[i],
                                  .model = k->model,
                                  .entails = k->entails ? k->entails : ENSEMBLE_ENTAILS,
                                  .min_score = k->min_score > 0 ? k->min_score : 0.5};
    return rc;
}

static void put_steps(verify_rule *r, const config_ensemble *of)
{
    static const verify_step ALL[] = {VERIFY_REPAIR, VERIFY_ESCALATE};
    for (size_t i = 0; i < of->n_on_fail; i++) {
        fail_step s = config_fail_step(of->on_fail[i]);
        if (s != FAIL_SAFE) r->steps[r->n_steps++] = s == FAIL_REPAIR ? VERIFY_REPAIR : VERIFY_ESCALATE;
    }
    if (of->n_on_fail) return;
    memcpy(r->steps, ALL, sizeof ALL);
    r->n_steps = 2;
}

/* What the first check with functions knows of results, else what is usual. */
static int open_reporter(verify_rule *r, members *m, const gateway_config *c, size_t of, shoal_err *err)
{
    const config_ensemble *e = &c->ensembles[of];
    size_t k = 0;
    shoal_err why;
    while (k < e->n_checks && !e->checks[k].functions) k++;
    if (function_reporter_open(&m->reporter, k < e->n_checks ? e->checks[k].functions : NULL, &why))
        return config_fail(c, err, "ensembles[%zu].check[%zu].functions: %s", of, k, why.message);
    r->reporter = &m->reporter.base;
    return 0;
}

static int open_verify(ensembles *e, members *m, const gateway_config *c, size_t i, shoal_err *err)
{
    const config_ensemble *of = &c->ensembles[i];
    verify_rule *r = &e->verifies[e->n_verifies++];
    *r = (verify_rule){.name = of->name,
                       .members = m->names,
                       .n_members = of->n_members,
                       .checks = m->checks,
                       .n_checks = of->n_checks,
                       .safe = of->safe ? of->safe : ENSEMBLE_SAFE};
    put_steps(r, of);
    int rc = open_reporter(r, m, c, i, err);
    for (size_t k = 0; k < of->n_members; k++) m->names[k] = of->members[k].model;
    for (size_t k = 0; !rc && k < of->n_checks; k++) rc = open_check(m, k, c, i, err);
    return rc;
}

static void close_checks(members *m)
{
    function_reporter_close(&m->reporter);
    for (size_t i = 0; i < ENSEMBLE_CHECKS_MAX; i++) {
        if (m->devices) m->devices->close(m->lexicons[i]);
        verify_schema_free(m->schemas[i]);
        for (size_t k = 0; k < 2 * ENSEMBLE_PATTERNS_MAX; k++)
            regex_free(m->patterns[i][k / ENSEMBLE_PATTERNS_MAX][k % ENSEMBLE_PATTERNS_MAX]);
    }
}

static int open_rerank(rerank_rule *ret, members *m, const gateway_config *c, size_t i, shoal_err *err)
{
    const config_ensemble *of = &c->ensembles[i];
    shoal_err why;
    const config_score *s = &of->score;
    *ret = (rerank_rule){.name = of->name,
                         .members = m->writers,
                         .n_members = of->n_members,
                         .model = s->model,
                         .log_prob = s->log_prob,
                         .in_turn = of->in_turn};
    if (s->rule &&
        !rerank_rule_find(s->rule, &ret->by)) /* the configuration's words are these rules' names */
        return err_set(err, SHOAL_EINTERNAL, "no rule is called '%s'", s->rule);
    int rc = s->pattern ? regex_compile(&m->pattern, s->pattern, err) : 0;
    if (!rc && s->schema && verify_schema_load(&m->score_schema, s->schema, &why))
        rc = config_fail(c, err, "ensembles[%zu].score.schema: %s", i, why.message);
    ret->needs = (rerank_needs){m->pattern, m->score_schema};
    return rc;
}

static int open_one(ensembles *e, const gateway_config *c, size_t i, shoal_err *err)
{
    const config_ensemble *of = &c->ensembles[i];
    members *m = &e->members[i];
    int rc = 0;
    for (size_t k = 0; !rc && k < of->n_members; k++) rc = open_member(m, k, c, i, err);
    switch (of->kind) {
    case ENSEMBLE_CASCADE:
        e->watched[e->n_cascades] = m;
        e->cascades[e->n_cascades++] = (cascade_rule){of->name, m->asked, of->n_members};
        break;
    case ENSEMBLE_REFINE:
        e->refines[e->n_refines++] = (refine_rule){of->name, m->asked[0].model, m->asked[1].model,
                                                   of->wait_ms ? of->wait_ms : ENSEMBLE_WAIT_MS};
        break;
    case ENSEMBLE_VOTE:
        e->votes[e->n_votes++] = (vote_rule){.name = of->name,
                                             .members = m->voters,
                                             .n_members = of->n_members,
                                             .geometric = of->mean == ENSEMBLE_GEOMETRIC};
        break;
    case ENSEMBLE_VERIFY:
        if (!rc) rc = open_verify(e, m, c, i, err);
        break;
    case ENSEMBLE_RERANK:
        if (!rc) rc = open_rerank(&e->reranks[e->n_reranks++], m, c, i, err);
        break;
    }
    return rc;
}

static int open_all(ensembles *e, const gateway_config *c, shoal_err *err)
{
    e->members = calloc(c->n_ensembles + 1, sizeof *e->members);
    e->cascades = calloc(c->n_ensembles + 1, sizeof *e->cascades);
    e->votes = calloc(c->n_ensembles + 1, sizeof *e->votes);
    e->refines = calloc(c->n_ensembles + 1, sizeof *e->refines);
    e->verifies = calloc(c->n_ensembles + 1, sizeof *e->verifies);
    e->reranks = calloc(c->n_ensembles + 1, sizeof *e->reranks);
    e->watched = calloc(c->n_ensembles + 1, sizeof *e->watched);
    e->names = calloc(c->n_ensembles + 1, sizeof *e->names);
    bool have = e->members && e->cascades && e->watched && e->votes && e->refines && e->verifies &&
                e->reranks && e->names;
    int rc = have ? 0 : err_nomem(err);
    e->n_all = have ? c->n_ensembles : 0;
    for (size_t i = 0; !rc && i < c->n_ensembles; i++) rc = open_one(e, c, i, err);
    return rc;
}

/* Calls of this kind's ensembles are told as spans, from the start on, with the calls of their members below. */
static int tell_spans(ensembles *e, calls **calls, const gateway_config *c, const env *env_,
                      ensemble_kind kind, size_t *n_names, shoal_err *err)
{
    static const char *const KINDS[] = {
#define ENSEMBLE_SPAN_KIND(e, name) [e] = name,
        ENSEMBLE_KIND_TABLE(ENSEMBLE_SPAN_KIND)
#undef ENSEMBLE_SPAN_KIND
    };
    span_calls_options o = {.kind = KINDS[kind], .names = &e->names[*n_names]};
    for (size_t i = 0; i < c->n_ensembles; i++)
        if (c->ensembles[i].kind == kind) e->names[*n_names + o.n_names++] = c->ensembles[i].name;
    *n_names += o.n_names;
    return o.n_names > 0 ? span_calls_new(calls, env_, *calls, &o, err) : 0;
}

int ensembles_open(ensembles **ret, calls **calls, const gateway_config *c, const env *env_, metrics *m,
                   shoal_err *err)
{
    ensembles *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    *ret = e;
    e->metrics = m;
    int rc = open_all(e, c, err);
    cascade_options cascade = {.rules = e->cascades,
                               .n_rules = e->n_cascades,
                               .user = e,
                               .judged = on_judged,
                               .strange = on_strange};
    vote_options vote = {.rules = e->votes, .n_rules = e->n_votes, .user = e, .left = on_left};
    refine_options refine = {
        .rules = e->refines, .n_rules = e->n_refines, .user = e, .answered = on_answered};
    rerank_options rerank = {.rules = e->reranks, .n_rules = e->n_reranks, .user = e, .chose = on_chose};
    size_t n = 0;
    if (rc == 0 && e->n_reranks > 0) rc = rerank_calls_new(calls, env_, *calls, &rerank, err);
    if (rc == 0) rc = tell_spans(e, calls, c, env_, ENSEMBLE_RERANK, &n, err);
    if (rc == 0 && e->n_refines > 0) rc = refine_calls_new(calls, env_, *calls, &refine, err);
    if (rc == 0) rc = tell_spans(e, calls, c, env_, ENSEMBLE_REFINE, &n, err);
    if (rc == 0 && e->n_votes > 0) rc = vote_calls_new(calls, env_, *calls, &vote, err);
    if (rc == 0 && e->n_votes > 0) rc = majority_calls_new(calls, env_, *calls, &vote, err);
    if (rc == 0) rc = tell_spans(e, calls, c, env_, ENSEMBLE_VOTE, &n, err);
    if (rc == 0 && e->n_cascades > 0) rc = cascade_calls_new(calls, env_, *calls, &cascade, err);
    if (rc == 0) rc = tell_spans(e, calls, c, env_, ENSEMBLE_CASCADE, &n, err);
    /* On top, since its members may be any of the others. */
    verify_options verify = {
        .rules = e->verifies, .n_rules = e->n_verifies, .user = e, .judged = on_verified};
    if (rc == 0 && e->n_verifies > 0) rc = verify_calls_new(calls, env_, *calls, &verify, err);
    if (rc == 0) rc = tell_spans(e, calls, c, env_, ENSEMBLE_VERIFY, &n, err);
    return rc;
}

int ensembles_check(const gateway_config *c, shoal_err *err)
{
    ensembles *e = calloc(1, sizeof *e);
    int rc = e ? open_all(e, c, err) : err_nomem(err);
    ensembles_free(e);
    return rc;
}

void ensembles_free(ensembles *e)
{
    if (!e) return;
    for (size_t i = 0; i < e->n_all; i++) {
        close_checks(&e->members[i]);
        regex_free(e->members[i].pattern);
        verify_schema_free(e->members[i].score_schema);
    }
    free(e->members);
    free(e->cascades);
    free(e->watched);
    free(e->names);
    free(e->votes);
    free(e->refines);
    free(e->verifies);
    free(e->reranks);
    free(e);
}
