/* recall.h: which machines have served which models, so that calls wait for those that may come back.
 *
 * A model that was served is known as long as a machine that served it may return: calls of it wait for their
 * deadline, as they do for a worker that is being restarted. When the last such machine says that it has the
 * model no more, or has been removed, the model is retired (RECALL_RETIRE_MS later, since a machine that has
 * just come back may still hear what it is to serve): calls are told at once that there is no such model.
 * When all of them have been away for RECALL_AWAY_MS, calls are told so at once, and wait again as soon as
 * one has come back.
 *
 *     recall_served(&r, g, "home-chat", "kitchen-pi", &err);
 *     recall_lacks(&r, "home-chat", "kitchen-pi");
 *     recall_look(&r, g, now_ns);                        each second
 *     recall_done(&r);
 *
 * Time is an argument. One thread. */
#ifndef CONTROL_RECALL_H
#define CONTROL_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strmap.h"
#include "cluster/registry.h"
#include "trust/identity.h"

enum {
    RECALL_MODELS_MAX = 1024, /* of names without end the rest is not remembered */
    RECALL_NODES_MAX = 16,    /* of a model; the oldest goes */
    RECALL_RETIRE_MS = 3000,
    RECALL_AWAY_MS = 600000,
};

typedef struct recall_model recall_model;

typedef struct recall { /* zeroed: nothing is remembered */
    recall_model **models;
    size_t n, cap;
    strmap by_name;
} recall;

/* The machine serves it now. The first time the registry is told (registry_declare). SHOAL_ENOMEM. */
int recall_served(recall *r, registry *g, const char *model, const char *node, shoal_err *err);
/* The machine says that it has it no more. */
void recall_lacks(recall *r, const char *model, const char *node);
/* The same of all models but those that `has` says yes to; has NULL: of all, since it never comes back. */
void recall_lacks_others(recall *r, const char *node, bool (*has)(const void *user, const char *model),
                         const void *user);
void recall_look(recall *r, registry *g, uint64_t now_ns);
void recall_done(recall *r); /* tells no registry */

#endif
