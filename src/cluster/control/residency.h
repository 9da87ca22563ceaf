/* residency.h: model residency memory: which machines have served which models, so that calls wait for those
 * that may come back.
 *
 * A model that was served is known as long as a machine that served it may return: calls of it wait for their
 * deadline, as they do for a worker that is being restarted. When the last such machine says that it has the
 * model no more, or has been removed, the model is retired (RESIDENCY_RETIRE_MS later, since a machine that
 * has just come back may still hear what it is to serve): calls are told at once that there is no such model.
 * When all of them have been away for RESIDENCY_AWAY_MS, calls are told so at once, and wait again as soon as
 * one has come back.
 *
 *     residency_served(&r, g, "home-chat", "kitchen-pi", &err);
 *     residency_lacks(&r, "home-chat", "kitchen-pi");
 *     residency_look(&r, g, now_ns);                        each second
 *     residency_done(&r);
 *
 * Time is an argument. One thread. */
#ifndef CONTROL_RESIDENCY_H
#define CONTROL_RESIDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strmap.h"
#include "cluster/registry.h"
#include "trust/identity.h"

enum {
    RESIDENCY_MODELS_MAX = 1024, /* of names without end the rest is not remembered */
    RESIDENCY_NODES_MAX = 16,    /* of a model; the oldest goes */
    RESIDENCY_RETIRE_MS = 3000,
    RESIDENCY_AWAY_MS = 600000,
};

typedef struct residency_model residency_model;

typedef struct residency { /* zeroed: nothing is remembered */
    residency_model **models;
    size_t n, cap;
    strmap by_name;
} residency;

/* The machine serves it now. The first time the registry is told (registry_declare). SHOAL_ENOMEM. */
int residency_served(residency *r, registry *g, const char *model, const char *node, shoal_err *err);
/* The machine says that it has it no more. */
void residency_lacks(residency *r, const char *model, const char *node);
/* The same of all models but those that `has` says yes to; has NULL: of all, since it never comes back. */
void residency_lacks_others(residency *r, const char *node, bool (*has)(const void *user, const char *model),
                            const void *user);
void residency_look(residency *r, registry *g, uint64_t now_ns);
void residency_done(residency *r); /* tells no registry */

#endif
