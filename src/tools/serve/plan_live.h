/* plan_live.h: what a running gateway places models by, so that a plan made of it is the one that gateway
 * makes.
 *
 *     plan_live x = {0};
 *     plan_live_ask(&x, "http://127.0.0.1:8080", err);
 *     for (...) plan_live_restrict(&x, &models[i]);
 *     placement_plan(&p, x.nodes, x.n_nodes, models, n, x.now, x.n_now, err);
 *     plan_live_done(&x); */
#ifndef SERVE_PLAN_LIVE_H
#define SERVE_PLAN_LIVE_H

#include "base/arena.h"
#include "cluster/placement.h"

typedef struct plan_live_model { /* what the gateway knows of a model beyond its configuration */
    const char *name;
    bool travels, waits, idle, settling;
    unsigned n_replicas; /* wanted now */
    const char **failed;
    size_t n_failed;
} plan_live_model;

typedef struct plan_live { /* what it points to dies with it */
    arena *mem;
    node *nodes;
    size_t n_nodes;
    placement_now *now;
    size_t n_now;
    plan_live_model *models;
    size_t n_models;
    const char **gateways;
    size_t n_gateways;
} plan_live;

/* GET /v1/placement of that server; NULL: the usual one. SHOAL_EUNAVAILABLE and what it answers. */
int plan_live_ask(plan_live *ret, const char *server, shoal_err *err);
/* The answer itself, any bytes. SHOAL_EPROTOCOL. */
int plan_live_read(plan_live *ret, const char *json, size_t n, shoal_err *err);
/* A model that the gateway has by the same name gets its restrictions, and its number within the range where that
 * follows the load; the others are as they are. */
void plan_live_restrict(const plan_live *x, placement_model *m);
void plan_live_done(plan_live *x);

#endif
