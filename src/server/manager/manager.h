/* manager.h: the model manager of `shoal serve`: which models this machine serves beside, or without, those of the
 * configuration.
 *
 * What runs is one list of worker_specs: the base (what the configuration says, or the control plane that
 * places models), less what was unloaded, and what was loaded. Every change makes the list anew and gives it
 * to `set` (agent_set), which starts and dismisses; whether a model is ready, has failed or is gone is read
 * from the registry. So there is no second account of what runs.
 *
 *     job:  resolve (pool) ─► fetch (a process) ─► resolve ─► settle: list anew ─► watch ─► done
 *
 * A load that fails takes its model out of the list again. Files are looked at on the pool, downloads run in
 * a process of their own (manager_fetch.h), and the file itself is opened by its worker alone: a broken one ends
 * that worker, whose sentence is the answer.
 *
 *     manager_open(&k, loop, &options, err);
 *     manager_base(k, specs, n, err);                   the base has changed; the first time, too
 *     gateway_show_model_manager(g, manager_interface(k));
 *     manager_restore(k);                               what the book remembers
 *     manager_drain(k);                                 nothing new; who waits is told that the server stops
 *     manager_close(k);                                 after gateway_free; run the loop once more afterwards
 *
 * Loop thread only. */
#ifndef MANAGER_MANAGER_H
#define MANAGER_MANAGER_H

#include <uv.h>

#include "gateway/model_manager.h"
#include "agent/agent.h"

typedef struct manager manager;

typedef struct manager_options {
    registry *registry;
    const gateway_config *config;             /* that was started */
    const gateway_config *(*now)(void *user); /* that is in use; NULL: the same */
    const char *store;    /* the folder of fetched models, made when the first one comes */
    const char *manifest; /* models.json of the configuration; NULL: none */
    const char *book;     /* the file of what is loaded again; NULL: nothing is */
    bool placed;          /* the base is what the control plane has placed: it alone says what leaves it */
    int (*set)(void *user, const worker_spec *workers, size_t n, shoal_err *err);
    void (*hurry)(void *user, const char *model);
    void *user;
    const char *program; /* of fetches; NULL: this one */
    const char *root;    /* put before /proc and /sys; NULL: "" */
} manager_options;

/* Strings of o are copied; registry and configuration must outlive it. */
int manager_open(manager **ret, uv_loop_t *loop, const manager_options *o, shoal_err *err);
const model_manager *manager_interface(manager *k);
/* Copied. As set's errors; on SHOAL_ENOMEM all is as before. */
int manager_base(manager *k, const worker_spec *specs, size_t n, shoal_err *err);
unsigned manager_most_replicas(void); /* of one model that this machine's cores carry */
void manager_restore(manager *k);
void manager_drain(manager *k);
void manager_close(manager *k); /* NULL is fine */

#endif
