/* load_client.h: a load of HTTP requests on a running Shoal, or on another server of OpenAI's protocol.
 *
 *     load_result r;
 *     load_run(&(load_plan){.where = w, .schedule = {.n_clients = 8, .n_requests = 1000}, .make = make}, &r, err);
 *
 * Who asks when is load_engine.h's; what was measured goes into a load_record.h. Each client is one thread with one
 * kept-alive connection. Times count from when a request was due: a server that stalls is charged for all who
 * would have come meanwhile, not only for the one who happened to wait. Streams may be resumed where they
 * broke off (stream_client.h). Blocking sockets: the measuring side has nothing else to do. */
#ifndef LOAD_LOAD_CLIENT_H
#define LOAD_LOAD_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/http_client.h"
#include "load/load_engine.h"
#include "load/load_record.h"

typedef struct load_plan {
    http_where where;
    load_schedule schedule;
    /* The body and path of request i; strings must live until load_run returns or be
     * made in `scratch`, which is the client's own and cleared before each call. */
    void (*make)(void *user, size_t i, buf *scratch, http_ask *ret);
    void *user;
    /* Answers are streams, and a client comes back to one that broke for so long; 0: never. */
    uint32_t back_ms;
    uint32_t timeout_ms; /* of a whole answer; 0: 60 s between two pieces of it */
    /* In load_run's thread, every `watch_ms` [250] while the load runs, with its record and the seconds since its start; NULL:
     * none. False ends the load early: requests under way are waited for. */
    bool (*watch)(void *user, load_record *r, double seconds);
    unsigned watch_ms;
    load_record
        *record; /* where everything goes, a new one of the caller's; NULL: only the result is wanted */
} load_plan;

typedef struct load_result {
    size_t n_ok, n_failed; /* failed: status other than 2xx, broken stream, or no answer */
    size_t n_resumed;      /* times that a client came back to a stream that had broken */
    size_t n_tokens;       /* generated, as the answers' usage says, or else texts of streams */
    size_t n_gaps;         /* between one event of a stream that brings text and the next */
    size_t n_late;         /* sent over a millisecond after they were due */
    double seconds;        /* from the start to the last answer */
    double p50_ms, p95_ms, p99_ms, max_ms; /* of whole answers that are ok */
    double first_p50_ms, first_p95_ms,
        first_p99_ms; /* to the first text of a stream, else to the first byte of the body */
    double gap_p50_ms, gap_p95_ms, gap_p99_ms; /* of those gaps */
    char first_failure[200];
} load_result;

/* Returns when every request that was sent has been answered or has failed. Failed requests are counted
 * in *ret; an error is memory or a thread that could not be had. */
int load_run(const load_plan *plan, load_result *ret, shoal_err *err);

#endif
