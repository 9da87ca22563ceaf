/* model_manager.h: the interface that loads, unloads, fetches and removes models while the gateway serves.
 *
 * The gateway knows requests and answers; which processes run, and which files there are, is known by the
 * program around it (manager/manager.h), which lends it a model manager. What takes time is a ticket: news come while it
 * goes on, then `done` once, never inside the call that began it. Asking twice for the same is one piece of
 * work with two tickets.
 *
 *     model_manager_watch w = {.news = told, .done = ended, .user = j};
 *     j->ticket = k->load(k->user, &wanted, &w, &e);          NULL: refused at once, as e says
 *     k->leave(j->ticket);                                  nobody is told any more; the model loads on
 *
 * Loop thread only. */
#ifndef GATEWAY_MODEL_MANAGER_H
#define GATEWAY_MODEL_MANAGER_H

#include "messages/api_error.h"
#include "json/json.h"
#include "config/config_load_request.h"

/* X(enum, name) */
#define MODEL_MANAGER_STEP_TABLE(X)         \
    X(MODEL_MANAGER_RESOLVING, "resolving") \
    X(MODEL_MANAGER_FETCHING, "fetching")   \
    X(MODEL_MANAGER_STARTING, "starting")   \
    X(MODEL_MANAGER_READY, "ready")         \
    X(MODEL_MANAGER_DRAINING, "draining")   \
    X(MODEL_MANAGER_UNLOADED, "unloaded")   \
    X(MODEL_MANAGER_FETCHED, "fetched")     \
    X(MODEL_MANAGER_REMOVING, "removing")   \
    X(MODEL_MANAGER_REMOVED, "removed")
typedef enum model_manager_step {
#define MODEL_MANAGER_STEP_ENUM(e, n) e,
    MODEL_MANAGER_STEP_TABLE(MODEL_MANAGER_STEP_ENUM)
#undef MODEL_MANAGER_STEP_ENUM
} model_manager_step;
const char *model_manager_step_name(model_manager_step s);

typedef struct model_manager_progress {
    model_manager_step step;
    const char *model;       /* its name; "": not known yet */
    const char *asked;       /* what was asked for: a name, or a reference; "": nothing in words */
    const char *file;        /* that is fetched; "": none */
    const char *sha256;      /* that the file is held to; "": none */
    uint64_t total, fetched; /* bytes of that file; total 0: not known */
    unsigned n_removed;      /* files that are gone, of `total` bytes */
    unsigned n_ready, n_replicas;
} model_manager_progress;

typedef struct model_manager_watch {
    void (*news)(void *user, const model_manager_progress *n);
    /* e NULL: it is as was asked, and n says how; else all is as it was before. */
    void (*done)(void *user, const model_manager_progress *n, const api_error *e);
    void *user;
} model_manager_watch;

/* What becomes of files in the store, whoever asked. */
typedef struct model_manager_events {
    void (*fetching)(void *user, const model_manager_progress *n);
    void (*fetched)(void *user, const model_manager_progress *n,
                    const api_error *e); /* e NULL: it is there */
    void (*removed)(void *user, const model_manager_progress *n);
    void *user;
} model_manager_events;

typedef struct model_manager_ticket model_manager_ticket;

enum {
    MODEL_MANAGER_FORCE = 1,   /* though the configuration names it, or, of a file, though it is served */
    MODEL_MANAGER_AT_ONCE = 2, /* running answers are not waited for */
    MODEL_MANAGER_UNLOAD = 4   /* of a file: what a request loaded of it is unloaded first */
};

/* What is known of a model beside what its replicas say. */
typedef struct model_manager_fact {
    bool configured;  /* a model of shoal.yaml: it comes back with the next start */
    bool kept;        /* it is loaded again after a restart */
    bool loading;     /* and was not ready yet */
    bool goes;        /* it goes when it is not used */
    uint64_t left_ms; /* until then */
    uint64_t bytes;   /* of its files; 0: not known */
} model_manager_fact;

typedef struct model_manager {
    void *user;
    model_manager_ticket *(*load)(void *user, const config_load_request *wanted, const model_manager_watch *w,
                                  api_error *e);
    model_manager_ticket *(*unload)(void *user, const char *model, unsigned how, const model_manager_watch *w,
                                    api_error *e);
    /* Into the store; no model is loaded. The last ticket that is left ends it. */
    model_manager_ticket *(*fetch)(void *user, const char *reference, const model_manager_watch *w,
                                   api_error *e);
    model_manager_ticket *(*remove)(void *user, const char *model, unsigned how, const model_manager_watch *w,
                                    api_error *e);
    void (*leave)(model_manager_ticket *t); /* NULL is fine */
    /* False: it is no model that this machine was to serve. */
    bool (*about)(void *user, const char *model, model_manager_fact *ret);
    /* From now on the model goes when it was not used for so long; LOAD_REQUEST_STAYS: it stays. Not of
     * models of the configuration, which stay. */
    void (*stay)(void *user, const char *model, uint64_t s);
    /* The name in the store of what a client calls so ("llama3.2:1b"); NULL: nothing there is called so.
     * Borrowed until the next turn of the loop, as the next. */
    const char *(*find)(void *user, const char *called);
    /* Models that clients made of others, NAME: {"from", "parameters", "system", "messages", "created"}; NULL, as
     * the next: there are none here. Borrowed as above. */
    const json_t *(*variants)(void *user);
    /* Keep one of that name, in place of another; variant NULL: forget it. */
    model_manager_ticket *(*vary)(void *user, const char *name, const json_t *variant,
                                  const model_manager_watch *w, api_error *e);
    /* One observer, copied; e NULL: none from now on. NULL: nothing is observed. */
    void (*observe)(void *user, const model_manager_events *e);
    const json_t *(*stored)(void *user); /* [{"name", "file", "bytes", "sha256", "source", "created"}] */
} model_manager;

#endif
