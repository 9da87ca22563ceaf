/* ensembles.c: from shoal.yaml's ensembles to the rules of their decorators; see ensembles.h. */
#include "gateway/ensembles.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ensemble/calibration.h"
#include "ensemble/cascade_calls.h"
#include "ensemble/drift.h"
#include "ensemble/poll_calls.h"
#include "ensemble/refine_calls.h"
#include "ensemble/vote_calls.h"

/* What one ensemble's rule points to. */
typedef struct members {
    cascade_member asked[ENSEMBLE_MEMBERS_MAX];
    vote_member voters[ENSEMBLE_MEMBERS_MAX];
    calibration calibrations[ENSEMBLE_MEMBERS_MAX];
    drift drifts[ENSEMBLE_MEMBERS_MAX]; /* spread 0: it is not watched */
} members;

struct ensembles {
    metrics *metrics;
    members *members; /* [n_ensembles], as are the next */
    cascade_rule *cascades;
    vote_rule *votes;
    refine_rule *refines;
    members **watched; /* [n_cascades] */
    size_t n_cascades, n_votes, n_refines;
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

static void watch(ensembles *e, const char *name, const char *model, double confidence, bool sure)
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
    watch(e, name, model, confidence, sure);
}

static void on_answered(void *user, const char *name, const char *by)
{
    metrics_add(((ensembles *)user)->metrics, METRIC_REFINE, 1, name, by, NULL);
}

static void on_left(void *user, const char *name, const char *model)
{
    metrics_add(((ensembles *)user)->metrics, METRIC_VOTE_LEFT, 1, name, model, NULL);
}

static int open_member(members *all, size_t i, const gateway_config *c, size_t of, shoal_err *err)
{
    const config_member *m = &c->ensembles[of].members[i];
    calibration *cal = &all->calibrations[i];
    cascade_member *asked = &all->asked[i];
    shoal_err why;
    *asked = (cascade_member){.model = m->model, .min_confidence = m->min_confidence};
    all->voters[i] = (vote_member){m->model, m->weight > 0 ? m->weight : 1};
    if (m->calibration) {
        if (calibration_load(cal, m->calibration, &why) != 0)
            return config_fail(c, err, "ensembles[%zu].members[%zu].calibration: %s", of, i, why.message);
        asked->map = &cal->map;
        if (asked->min_confidence <= 0 && cal->spread > 0)
            drift_init(&all->drifts[i], cal->mean, cal->spread); /* it holds for its own threshold */
    }
    if (asked->min_confidence <= 0) asked->min_confidence = cal->min_confidence;
    if (asked->min_confidence <= 0) asked->min_confidence = ENSEMBLE_CONFIDENCE;
    return 0;
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
    }
    return rc;
}

static int open_all(ensembles *e, const gateway_config *c, shoal_err *err)
{
    e->members = calloc(c->n_ensembles + 1, sizeof *e->members);
    e->cascades = calloc(c->n_ensembles + 1, sizeof *e->cascades);
    e->votes = calloc(c->n_ensembles + 1, sizeof *e->votes);
    e->refines = calloc(c->n_ensembles + 1, sizeof *e->refines);
    e->watched = calloc(c->n_ensembles + 1, sizeof *e->watched);
    int rc = e->members && e->cascades && e->watched && e->votes && e->refines ? 0 : err_nomem(err);
    for (size_t i = 0; !rc && i < c->n_ensembles; i++) rc = open_one(e, c, i, err);
    return rc;
}

int ensembles_open(ensembles **ret, calls **calls, const gateway_config *c, const env *env_, metrics *m,
                   shoal_err *err)
{
    ensembles *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    *ret = e;
    e->metrics = m;
    int rc = open_all(e, c, err);
    cascade_options cascade = {
        .rules = e->cascades, .n_rules = e->n_cascades, .user = e, .judged = on_judged};
    vote_options vote = {.rules = e->votes, .n_rules = e->n_votes, .user = e, .left = on_left};
    refine_options refine = {
        .rules = e->refines, .n_rules = e->n_refines, .user = e, .answered = on_answered};
    if (rc == 0 && e->n_refines > 0) rc = refine_calls_new(calls, env_, *calls, &refine, err);
    if (rc == 0 && e->n_votes > 0) rc = vote_calls_new(calls, env_, *calls, &vote, err);
    if (rc == 0 && e->n_votes > 0) rc = poll_calls_new(calls, env_, *calls, &vote, err);
    if (rc == 0 && e->n_cascades > 0) rc = cascade_calls_new(calls, env_, *calls, &cascade, err);
    return rc;
}

void ensembles_free(ensembles *e)
{
    if (!e) return;
    free(e->members);
    free(e->cascades);
    free(e->watched);
    free(e->votes);
    free(e->refines);
    free(e);
}
