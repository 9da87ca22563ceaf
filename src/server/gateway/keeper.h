/* keeper.h: whoever loads, unloads, fetches and removes models while the gateway serves.
 *
 * The gateway knows requests and answers; which processes run, and which files there are, is known by the
 * program around it (keep/keep.h), which lends it a keeper. What takes time is a ticket: news come while it
 * goes on, then `done` once, never inside the call that began it. Asking twice for the same is one piece of
 * work with two tickets.
 *
 *     keeper_watch w = {.news = told, .done = ended, .user = j};
 *     j->ticket = k->load(k->user, &wanted, &w, &e);          NULL: refused at once, as e says
 *     k->leave(j->ticket);                                  nobody is told any more; the model loads on
 *
 * Loop thread only. */
#ifndef GATEWAY_KEEPER_H
#define GATEWAY_KEEPER_H

#include "messages/api_error.h"
#include "json/json.h"
#include "config/config_load_request.h"

/* X(enum, name) */
#define KEEPER_STEP_TABLE(X)         \
    X(KEEPER_RESOLVING, "resolving") \
    X(KEEPER_FETCHING, "fetching")   \
    X(KEEPER_STARTING, "starting")   \
    X(KEEPER_READY, "ready")         \
    X(KEEPER_DRAINING, "draining")   \
    X(KEEPER_UNLOADED, "unloaded")   \
    X(KEEPER_FETCHED, "fetched")     \
    X(KEEPER_REMOVING, "removing")   \
    X(KEEPER_REMOVED, "removed")
typedef enum keeper_step {
#define KEEPER_STEP_ENUM(e, n) e,
    KEEPER_STEP_TABLE(KEEPER_STEP_ENUM)
#undef KEEPER_STEP_ENUM
} keeper_step;
const char *keeper_step_name(keeper_step s);

typedef struct keeper_news {
    keeper_step step;
    const char *model;       /* its name; "": not known yet */
    const char *file;        /* that is fetched; "": none */
    const char *sha256;      /* that the file is held to; "": none */
    uint64_t total, fetched; /* bytes of that file; total 0: not known */
    unsigned n_ready, n_replicas;
} keeper_news;

typedef struct keeper_watch {
    void (*news)(void *user, const keeper_news *n);
    /* e NULL: it is as was asked, and n says how; else all is as it was before. */
    void (*done)(void *user, const keeper_news *n, const api_error *e);
    void *user;
} keeper_watch;

typedef struct keeper_ticket keeper_ticket;

enum {
    KEEPER_FORCE = 1,   /* though the configuration names it, or, of a file, though it is served */
    KEEPER_AT_ONCE = 2, /* running answers are not waited for */
    KEEPER_UNLOAD = 4   /* of a file: what a request loaded of it is unloaded first */
};

/* What is known of a model beside what its replicas say. */
typedef struct keeper_fact {
    bool configured;  /* a model of shoal.yaml: it comes back with the next start */
    bool kept;        /* it is loaded again after a restart */
    bool loading;     /* and was not ready yet */
    bool goes;        /* it goes when it is not used */
    uint64_t left_ms; /* until then */
    uint64_t bytes;   /* of its files; 0: not known */
} keeper_fact;

typedef struct keeper {
    void *user;
    keeper_ticket *(*load)(void *user, const config_load_request *wanted, const keeper_watch *w,
                           api_error *e);
    keeper_ticket *(*unload)(void *user, const char *model, unsigned how, const keeper_watch *w,
                             api_error *e);
    /* Into the store; no model is loaded. The last ticket that is left ends it. */
    keeper_ticket *(*fetch)(void *user, const char *reference, const keeper_watch *w, api_error *e);
    keeper_ticket *(*remove)(void *user, const char *model, unsigned how, const keeper_watch *w,
                             api_error *e);
    void (*leave)(keeper_ticket *t); /* NULL is fine */
    /* False: it is no model that this machine was to serve. */
    bool (*about)(void *user, const char *model, keeper_fact *ret);
    /* From now on the model goes when it was not used for so long; LOAD_REQUEST_STAYS: it stays. Not of
     * models of the configuration, which stay. */
    void (*stay)(void *user, const char *model, uint64_t s);
    /* The name in the store of what a client calls so ("llama3.2:1b"); NULL: nothing there is called so.
     * Borrowed until the next turn of the loop, as the next. */
    const char *(*find)(void *user, const char *called);
    const json_t *(*stored)(void *user); /* [{"name", "file", "bytes", "sha256", "source", "created"}] */
} keeper;

#endif
