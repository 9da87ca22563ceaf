/* load_engine.h: the threads of a load: which request is asked when. What a request is, its owner says.
 *
 *     load_engine *e;
 *     load_engine_new(&e, &(load_schedule){.n_clients = 8, .n_requests = 1000}, &(load_ops){.ask = ask}, user, err);
 *     load_engine_start(e, err);
 *     ...
 *     load_engine_stop(e);                  // no further requests
 *     load_engine_join(e, err);             // waits for those under way; frees it
 *
 * A closed loop has n_clients threads; each asks its next request when the last one is answered, and after think_s. An
 * open loop (due_s) asks request i at due_s[i], whether or not earlier ones are answered: threads are started when all
 * others are busy, n_clients at most. Where all of these are busy, a request is asked late; `due_ns` says when it was due,
 * and its times must count from then (coordinated omission: Tene, "How NOT to measure latency"). */
#ifndef LOAD_LOAD_ENGINE_H
#define LOAD_LOAD_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct load_schedule {
    int n_clients;
    size_t n_requests;   /* over all clients, at most */
    double seconds;      /* none is asked later than so long after the start; 0: all are */
    const double *due_s; /* [n_requests], ascending, since the start; borrowed. NULL: a closed loop */
    double think_s;      /* of a closed loop */
} load_schedule;

typedef struct load_ops {
    /* In the client's thread before its first request; `*ret_state` is what ask gets. NULL: nothing is needed. An error ends
     * this client and is what join returns. */
    int (*enter)(void *user, int client, void **ret_state, shoal_err *err);
    /* Ask request i, which was due at due_ns (clock_ns; of a closed loop: now), and wait for its answer. An error ends
     * the client. */
    int (*ask)(void *user, void *state, size_t i, uint64_t due_ns, shoal_err *err);
    void (*leave)(void *user, void *state); /* NULL: nothing; called where enter succeeded */
} load_ops;

typedef struct load_engine load_engine;

int load_engine_new(load_engine **ret, const load_schedule *s, const load_ops *ops, void *user,
                    shoal_err *err);
/* The first client's thread is there when it returns, of a closed loop all. SHOAL_ENOMEM: one cannot be had; those
 * that were started end. load_engine_join is due in any case. */
int load_engine_start(load_engine *e, shoal_err *err);
void load_engine_stop(load_engine *e); /* from any thread; does not wait */
bool load_engine_busy(load_engine *e); /* some client is in a request or waits for one */
size_t load_engine_asked(load_engine *e);
uint64_t load_engine_start_ns(const load_engine *e);
/* The first error of a client. */
int load_engine_join(load_engine *e, shoal_err *err);

#endif
