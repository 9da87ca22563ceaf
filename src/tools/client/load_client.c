/* load_client.c: clients that send requests one after the other, and what their answers took. */
#define _GNU_SOURCE
#include "client/load_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/sse.h"
#include "base/number.h"
#include "client/stream_client.h"

enum { BACK_PAUSE_MS = 20, LATE_NS = 1000000 };

/* When the texts of a stream came. */
typedef struct text_clock {
    size_t at; /* of the body, what has been looked at */
    uint64_t first_ns, last_ns;
    double *gaps_ms;
    size_t n, cap;
    bool failed; /* no memory for another gap */
} text_clock;

typedef struct client {
    pthread_t thread;
    const load_plan *plan;
    atomic_size_t *next;
    uint64_t start_ns;           /* of all */
    double *whole_ms, *first_ms; /* [n_requests], -1 where it failed; shared, each index written once */
    stream_client stream;
    text_clock clock;
    http_client http;
    size_t n_tokens, n_failed, n_resumed, n_late;
    char first_failure[200];
    int index;
} client;

/* ---- one answer --------------------------------------------------------------------------------------- */

/* Tokens of an answer, by its own last count (an event may stand for several). An error event fails the
 * request, and so does a stream without its end. */
static size_t count_tokens(const buf *body, bool *ret_error)
{
    static const char key[] = "\"completion_tokens\":";
    const char *last = NULL;
    if (!body->len) return 0;
    bool stream = strncmp(body->data, "data:", 5) == 0;
    if (strstr(body->data, "data: {\"error\"") || (stream && !strstr(body->data, "data: [DONE]")))
        *ret_error = true;
    for (const char *p = body->data; (p = strstr(p, key)); p += sizeof key - 1) last = p;
    return last ? strtoul(last + sizeof key - 1, NULL, 10) : 0;
}

/* Whether an event brings text: of a chat, of a completion. */
static bool brings_text(const char *data, size_t n)
{
    static const char *const keys[] = {"\"content\":\"", "\"text\":\""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *p = memmem(data, n, keys[i], strlen(keys[i]));
        if (p && p[strlen(keys[i])] != '"') return true;
    }
    return false;
}

static void note_text(text_clock *t, uint64_t now)
{
    if (t->last_ns && t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 4096;
        double *more = realloc(t->gaps_ms, cap * sizeof *more);
        t->failed |= !more;
        if (!more) return;
        t->gaps_ms = more;
        t->cap = cap;
    }
    if (t->last_ns) t->gaps_ms[t->n++] = (double)(now - t->last_ns) / 1e6;
    if (!t->first_ns) t->first_ns = now;
    t->last_ns = now;
}

/* Whole events only; what came together came at one time. */
static void load_client_on_piece(void *user, size_t n_bytes)
{
    client *me = user;
    text_clock *t = &me->clock;
    const buf *body = &me->http.body;
    uint64_t now = clock_ns();
    sse_event e;
    if (body->len < t->at) t->at = 0; /* another answer: of a stream that is gone on with */
    for (size_t n; (n = sse_read(&e, body->data + t->at, body->len - t->at)) > 0; t->at += n)
        if (e.data && brings_text(e.data, e.n_data)) note_text(t, now);
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

/* Wait until request i is due; clock_ns from which its times count. */
static uint64_t await_due(client *me, size_t i)
{
    uint64_t now = clock_ns();
    if (me->plan->rate <= 0) return now;
    uint64_t due = me->start_ns + (uint64_t)((double)i * 1e9 / me->plan->rate);
    me->n_late += now > due + LATE_NS;
    while (now < due) {
        struct timespec rest = {(time_t)((due - now) / 1000000000), (long)((due - now) % 1000000000)};
        nanosleep(&rest, NULL);
        now = clock_ns();
    }
    return due;
}

static void ask_once(client *me, size_t i, const http_ask *r)
{
    char why[200];
    uint64_t due = await_due(me, i);
    me->clock.at = 0;
    me->clock.first_ns = me->clock.last_ns = 0;
    bool ok = exchange(me, &me->http, r, why);
    uint64_t now = clock_ns(), first = me->clock.first_ns ? me->clock.first_ns : me->http.first_ns;
    me->whole_ms[i] = ok ? (double)(now - due) / 1e6 : -1;
    me->first_ms[i] = ok && first > due ? (double)(first - due) / 1e6 : -1;
    if (!ok) note_failure(me, why);
}

static void *client_main(void *arg)
{
    client *me = arg;
    const load_plan *p = me->plan;
    http_client_init(&me->http, &p->where);
    me->http.piece = load_client_on_piece;
    me->http.piece_user = me;
    me->http.again = true;
    buf scratch = {0};
    for (size_t i; (i = atomic_fetch_add(me->next, 1)) < p->n_requests;) {
        http_ask r = {0};
        buf_clear(&scratch);
        p->make(p->user, i, &scratch, &r);
        ask_once(me, i, &r);
        if (me->index == 0 && p->progress) p->progress(p->user, i + 1, p->n_requests);
    }
    buf_done(&scratch);
    stream_client_done(&me->stream);
    http_client_done(&me->http);
    return NULL;
}

/* ---- all of them -------------------------------------------------------------------------------------- */

double load_quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, number_compare_doubles);
    size_t skip = 0;
    while (skip < n && values[skip] < 0) skip++;
    n -= skip;
    if (n == 0) return 0;
    size_t rank = (size_t)(q * (double)n);
    return values[skip + (rank < n ? rank : n - 1)];
}

/* What the clients counted, once they have ended; their gaps go into *all, one behind the other. */
static void load_client_gather(client *clients, int n, load_result *r, double **all, size_t *n_all)
{
    size_t total = 0;
    bool failed = false;
    for (int i = 0; i < n; i++) {
        const client *c = &clients[i];
        r->n_failed += c->n_failed;
        r->n_tokens += c->n_tokens;
        r->n_resumed += c->n_resumed;
        r->n_late += c->n_late;
        total += c->clock.n;
        failed |= c->clock.failed;
        if (!r->first_failure[0]) memcpy(r->first_failure, c->first_failure, sizeof r->first_failure);
    }
    *all = failed ? NULL : malloc((total ? total : 1) * sizeof **all);
    *n_all = 0;
    for (int i = 0; i < n; i++) {
        const text_clock *t = &clients[i].clock;
        if (*all && t->n) memcpy(*all + *n_all, t->gaps_ms, t->n * sizeof **all);
        *n_all += t->n;
        free(t->gaps_ms);
    }
}

static int start_clients(client *clients, const load_plan *plan, const client *like, int *ret_started,
                         shoal_err *err)
{
    for (*ret_started = 0; *ret_started < plan->n_clients; ++*ret_started) {
        client *c = &clients[*ret_started];
        *c = *like;
        c->index = *ret_started;
        if (pthread_create(&c->thread, NULL, client_main, c) != 0)
            return err_set(err, SHOAL_ENOMEM, "cannot start client %d", c->index);
    }
    return 0;
}

int load_run(const load_plan *plan, load_result *ret, shoal_err *err)
{
    atomic_size_t next = 0;
    size_t n = plan->n_requests, n_gaps = 0;
    client *clients = calloc((size_t)plan->n_clients, sizeof *clients);
    double *whole = calloc(n ? n : 1, sizeof *whole), *first = calloc(n ? n : 1, sizeof *first), *gaps = NULL;
    int rc = clients && whole && first ? 0 : err_nomem(err), started = 0;
    client like = {.plan = plan, .next = &next, .start_ns = clock_ns(), .whole_ms = whole, .first_ms = first};
    load_result r = {0};
    if (rc == 0) rc = start_clients(clients, plan, &like, &started, err);
    if (rc != 0) atomic_store(&next, n); /* those that did start end */
    for (int i = 0; i < started; i++) pthread_join(clients[i].thread, NULL);
    if (started) load_client_gather(clients, started, &r, &gaps, &n_gaps);
    if (rc == 0 && !gaps) rc = err_nomem(err);
    if (rc == 0) {
        r.seconds = clock_ms_since(like.start_ns) / 1e3;
        r.n_ok = n - r.n_failed;
        r.p50_ms = load_quantile(whole, n, 0.50);
        r.p99_ms = load_quantile(whole, n, 0.99);
        r.max_ms = n ? whole[n - 1] : 0;
        r.first_p50_ms = load_quantile(first, n, 0.50);
        r.first_p99_ms = load_quantile(first, n, 0.99);
        r.n_gaps = n_gaps;
        r.gap_p50_ms = load_quantile(gaps, n_gaps, 0.50);
        r.gap_p99_ms = load_quantile(gaps, n_gaps, 0.99);
        *ret = r;
    }
    free(gaps);
    free(first);
    free(whole);
    free(clients);
    return rc;
}
