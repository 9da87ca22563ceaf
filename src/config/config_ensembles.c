/* config_ensembles.c: what the rows of an ensemble cannot say; see config_ensembles.h. */
#include "config/config_ensembles.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

const config_ensemble *config_ensemble_find(const gateway_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_ensembles; i++)
        if (strcmp(c->ensembles[i].name, name) == 0) return &c->ensembles[i];
    return NULL;
}

static bool is_model(const gateway_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, name) == 0) return true;
    return false;
}

bool config_answers(const gateway_config *c, const char *name)
{
    return is_model(c, name) || config_ensemble_find(c, name);
}

static int check_member(const gateway_config *c, const config_ensemble *e, const char *where, size_t i,
                        shoal_err *err)
{
    const config_member *m = &e->members[i];
    bool cascade = e->kind == ENSEMBLE_CASCADE, last = i + 1 == e->n_members;
    if (!is_model(c, m->model))
        return err_set(err, SHOAL_EINVALID, "%smembers[%zu].model: '%s' is not among the models of this file",
                       where, i, m->model);
    for (size_t k = 0; k < i; k++)
        if (strcmp(e->members[k].model, m->model) == 0)
            return err_set(err, SHOAL_EINVALID, "%smembers[%zu].model: '%s' is already members[%zu]", where,
                           i, m->model, k);
    if (!cascade && (m->min_confidence > 0 || m->calibration))
        return err_set(err, SHOAL_EINVALID, "%smembers[%zu]: min_confidence and calibration are a cascade's",
                       where, i);
    if (e->kind != ENSEMBLE_VOTE && m->weight > 0)
        return err_set(err, SHOAL_EINVALID, "%smembers[%zu].weight: weights are a vote's", where, i);
    if (cascade && last && (m->min_confidence > 0 || m->calibration))
        return err_set(
            err, SHOAL_EINVALID,
            "%smembers[%zu]: nobody is asked behind the last member, so its confidence is not looked at",
            where, i);
    return 0;
}

static int check_ensemble(const gateway_config *c, size_t i, shoal_err *err)
{
    const config_ensemble *e = &c->ensembles[i];
    char where[48];
    snprintf(where, sizeof where, "ensembles[%zu].", i);
    if (is_model(c, e->name))
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
    int rc = 0;
    for (size_t k = 0; !rc && k < e->n_members; k++) rc = check_member(c, e, where, k, err);
    return rc;
}

int config_check_ensembles(const gateway_config *c, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < c->n_ensembles; i++) rc = check_ensemble(c, i, err);
    return rc;
}
