/* load_client.h: a load for measuring a running Shoal, or whoever speaks as it does.
 *
 * Each client is one thread with one kept-alive connection. In a closed loop it sends its next request when
 * the last one is answered. In an open one (rate) request i is due i/rate seconds after the start, whoever is
 * free sends it, and its times count from when it was due: a server that stalls is charged for all who would
 * have come meanwhile, not only for the one who happened to wait. Streams may be gone on with where they
 * broke off (stream_client.h). Blocking sockets: the measuring side has nothing else to do. */
#ifndef CLIENT_LOAD_CLIENT_H
#define CLIENT_LOAD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/http_client.h"

typedef struct load_plan {
    http_where where;
    int n_clients;
    size_t n_requests; /* over all clients */
    double rate;       /* requests a second; 0: a closed loop */
    /* The body and path of request i (0..n_requests); strings must live until load_run returns or be
     * made in `scratch`, which is the client's own and cleared before each call. */
    void (*make)(void *user, size_t i, buf *scratch, http_ask *ret);
    void *user;
    /* Answers are streams, and a client comes back to one that broke for so long; 0: never. */
    uint32_t back_ms;
    void (*progress)(void *user, size_t done, size_t total); /* NULL: none; called by client 0 */
} load_plan;

typedef struct load_result {
    size_t n_ok, n_failed;             /* failed: status other than 2xx, broken stream, or no answer */
    size_t n_resumed;                  /* times that a client came back to a stream that had broken */
    size_t n_tokens;                   /* generated, as the answers' usage says */
    size_t n_gaps;                     /* between one event of a stream that brings text and the next */
    size_t n_late;                     /* of an open loop: sent over a millisecond after they were due */
    double seconds;                    /* first request sent to last answer */
    double p50_ms, p99_ms, max_ms;     /* of whole answers that are ok */
    double first_p50_ms, first_p99_ms; /* to the first text of a stream, else to the first byte of the body */
    double gap_p50_ms, gap_p99_ms;     /* of those gaps */
    char first_failure[200];
} load_result;

/* A thread a client; returns when every request has been answered or has failed. Failed requests are counted
 * in *ret; an error is memory or a thread that could not be had. */
int load_run(const load_plan *plan, load_result *ret, shoal_err *err);

/* The q-quantile by nearest rank; sorts values[n]. Negative ones (failures) are left out; 0 when none is
 * left. */
double load_quantile(double *values, size_t n, double q);

#endif
