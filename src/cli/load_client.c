/* load_client.c: clients that each send their next request when the last is answered. */
#define _GNU_SOURCE
#include "cli/load_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/stream_client.h"

enum { BACK_PAUSE_MS = 20 };

typedef struct client {
    pthread_t thread;
    const load_plan *plan;
    atomic_size_t *next;
    double *whole_ms, *first_ms; /* [n_requests], -1 where it failed; shared, each index written once */
    stream_client stream;
    size_t n_tokens, n_failed, n_resumed;
    char first_failure[200];
    int index;
} client;

/* Tokens of an answer, by its own count (an event may stand for several). An error event fails the
 * request. */
static size_t count_tokens(const buf *body, bool *ret_error)
{
    static const char key[] = "\"completion_tokens\":";
    if (!body->len) return 0;
    if (strstr(body->data, "data: {\"error\"")) *ret_error = true;
    const char *p = strstr(body->data, key);
    return p ? strtoul(p + sizeof key - 1, NULL, 10) : 0;
}

static void note_failure(client *me, const char *why)
{
    me->n_failed++;
    if (!me->first_failure[0]) snprintf(me->first_failure, sizeof me->first_failure, "%s", why);
}

/* A stream, asked for again until it is whole or nobody goes on with it. */
static bool exchange_stream(client *me, http_client *c, const http_ask *r, char why[200])
{
    uint64_t until = clock_ns() + me->plan->back_ms * 1000000ull, first_ns = 0;
    stream_try t;
    me->stream.id[0] = '\0';
    me->stream.n_resumed = 0;
    while ((t = stream_client_ask(&me->stream, c, r, why, 200)) == STREAM_BROKEN && clock_ns() < until) {
        if (!first_ns && me->stream.id[0]) first_ns = c->first_ns;
        usleep(BACK_PAUSE_MS * 1000);
    }
    if (first_ns) c->first_ns = first_ns;
    me->n_resumed += me->stream.n_resumed;
    return t == STREAM_WHOLE;
}

static bool exchange(client *me, http_client *c, const http_ask *r, char why[200])
{
    shoal_err err = {0};
    bool error_event = false;
    if (me->plan->back_ms) {
        bool whole = exchange_stream(me, c, r, why);
        if (whole) me->n_tokens += count_tokens(&me->stream.events, &error_event);
        return whole;
    }
    int rc = http_client_exchange(c, r, &err);
    if (rc == 0) me->n_tokens += count_tokens(&c->body, &error_event);
    snprintf(why, 200, "status %d: %.150s", c->status,
             rc != 0        ? err.message
             : c->body.data ? c->body.data
                            : "");
    return rc == 0 && c->status / 100 == 2 && !error_event;
}

static void *client_main(void *arg)
{
    client *me = arg;
    const load_plan *p = me->plan;
    http_client c;
    http_client_init(&c, &p->where);
    buf scratch = {0};
    for (size_t i; (i = atomic_fetch_add(me->next, 1)) < p->n_requests;) {
        http_ask r = {0};
        char why[200];
        buf_clear(&scratch);
        p->make(p->user, i, &scratch, &r);
        uint64_t start = clock_ns();
        bool ok = exchange(me, &c, &r, why);
        double ms = clock_ms_since(start);
        me->whole_ms[i] = ok ? ms : -1;
        me->first_ms[i] = ok && c.first_ns ? (double)(c.first_ns - start) / 1e6 : -1;
        if (!ok) note_failure(me, why);
        if (me->index == 0 && p->progress) p->progress(p->user, i + 1, p->n_requests);
    }
    buf_done(&scratch);
    stream_client_done(&me->stream);
    http_client_done(&c);
    return NULL;
}

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

double load_quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, compare_doubles);
    size_t skip = 0;
    while (skip < n && values[skip] < 0) skip++;
    n -= skip;
    if (n == 0) return 0;
    size_t rank = (size_t)(q * (double)n);
    return values[skip + (rank < n ? rank : n - 1)];
}

int load_run(const load_plan *plan, load_result *ret, shoal_err *err)
{
    atomic_size_t next = 0;
    size_t n = plan->n_requests;
    client *clients = calloc((size_t)plan->n_clients, sizeof *clients);
    double *whole = calloc(n ? n : 1, sizeof *whole), *first = calloc(n ? n : 1, sizeof *first);
    int rc = clients && whole && first ? 0 : err_nomem(err), started = 0;
    uint64_t start = clock_ns();
    for (; rc == 0 && started < plan->n_clients; started++) {
        clients[started] =
            (client){.plan = plan, .next = &next, .whole_ms = whole, .first_ms = first, .index = started};
        if (pthread_create(&clients[started].thread, NULL, client_main, &clients[started]) != 0) {
            rc = err_set(err, SHOAL_ENOMEM, "cannot start client %d", started);
            break;
        }
    }
    load_result r = {0};
    for (int i = 0; i < started; i++) {
        pthread_join(clients[i].thread, NULL);
        r.n_failed += clients[i].n_failed;
        r.n_tokens += clients[i].n_tokens;
        r.n_resumed += clients[i].n_resumed;
        if (!r.first_failure[0]) memcpy(r.first_failure, clients[i].first_failure, sizeof r.first_failure);
    }
    if (rc == 0) {
        r.seconds = clock_ms_since(start) / 1e3;
        r.n_ok = n - r.n_failed;
        r.p50_ms = load_quantile(whole, n, 0.50);
        r.p99_ms = load_quantile(whole, n, 0.99);
        r.max_ms = n ? whole[n - 1] : 0;
        r.first_p50_ms = load_quantile(first, n, 0.50);
        r.first_p99_ms = load_quantile(first, n, 0.99);
        *ret = r;
    }
    free(first);
    free(whole);
    free(clients);
    return rc;
}
