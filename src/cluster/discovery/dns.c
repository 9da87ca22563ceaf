/* dns.c: c-ares on the loop, and its answers as members. */
#include "discovery/dns.h"

#include <ares.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "logging/log.h"
#include "base/strmap.h"
#include "discovery/dns_answer.h"
#include "cluster/registry.h"

enum {
    CLASS_IN = 1,
    TYPE_SRV = 33,
    ASK_MIN_MS = 1000,
    ASK_MAX_MS = 300000,
    TIMEOUT_MS = 2000,
    ID_BYTES = DNS_NAME_BYTES + 160,
};

/* One name, and what it said last. */
typedef struct question {
    dns *d;
    const char *name, *model;
    env_timer *again;
    uint64_t retry_ms;
    bool answered;         /* at some time */
    char trouble[160];     /* "" after an answer */
    char (*ids)[ID_BYTES]; /* its members */
    size_t n_ids;
} question;

/* A socket that c-ares waits for. Freed when its handle is closed. */
typedef struct watch {
    uv_poll_t poll; /* first */
    dns *d;
    struct watch *next;
    ares_socket_t fd;
} watch;

struct dns {
    uv_loop_t *loop;
    registry *g;
    source *s;
    arena *strings;
    ares_channel ares;
    bool has_ares, closing;
    env_timer *timer; /* c-ares' own */
    watch *watches;
    question *questions;
    size_t n;
};

static const env *env_of(const dns *d)
{
    return registry_env(d->g);
}

/* ---- the view ------------------------------------------------------------------------------------ */

/* All have answered, or the first that has not. */
static void tell_source(dns *d)
{
    bool all = true;
    for (size_t i = 0; i < d->n; i++) {
        const question *q = &d->questions[i];
        all = all && q->answered;
        if (!*q->trouble) continue;
        source_away(d->s, q->trouble);
        return;
    }
    if (all) source_synced(d->s);
}

static void ask_again(question *q, uint64_t ms)
{
    env_of(q->d)->timer_start(q->again, ms);
}

/* empty: the server says that there are no records. */
static void failed(question *q, const char *why, bool empty)
{
    snprintf(q->trouble, sizeof q->trouble, "%.80s: %.60s", q->name, why);
    q->retry_ms = dns_retry_ms(q->retry_ms, empty);
    ask_again(q, q->retry_ms);
    tell_source(q->d);
}

static void name_member(char id[ID_BYTES], const question *q, const dns_record *r)
{
    snprintf(id, ID_BYTES, "%s:%u/%.128s", r->host, r->port, q->model);
}

static int put_member(question *q, const char *id, const dns_record *r, shoal_err *err)
{
    char address[DNS_NAME_BYTES + 16];
    const char *host = *r->ip ? r->ip : r->host;
    snprintf(address, sizeof address, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, r->port);
    member m = {.id = id, .model = q->model, .address = address};
    return source_put(q->d->s, &m, err);
}

static bool is_in(const char (*ids)[ID_BYTES], size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ids[i], id) == 0) return true;
    return false;
}

/* Another name may list the same worker. */
static bool others_name_it(const question *q, const char *id)
{
    for (size_t i = 0; i < q->d->n; i++) {
        const question *o = &q->d->questions[i];
        if (o != q && is_in((const char(*)[ID_BYTES])o->ids, o->n_ids, id)) return true;
    }
    return false;
}

static void take_view(question *q, const dns_answer *a)
{
    shoal_err err = {0};
    char(*ids)[ID_BYTES] = calloc(a->n, sizeof *ids);
    int rc = ids ? 0 : err_nomem(&err);
    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        name_member(ids[i], q, &a->list[i]);
        rc = put_member(q, ids[i], &a->list[i], &err);
    }
    if (rc != 0) {
        free(ids);
        failed(q, err.message, false);
        return;
    }
    for (size_t i = 0; i < q->n_ids; i++)
        if (!is_in((const char(*)[ID_BYTES])ids, a->n, q->ids[i]) && !others_name_it(q, q->ids[i]))
            source_drop(q->d->s, q->ids[i], 0);
    free(q->ids);
    q->ids = ids;
    q->n_ids = a->n;
    uint64_t ms = (uint64_t)a->ttl_s * 1000;
    LOG(LOG_DEBUG, "dns", "answered", LOG_S("name", q->name), LOG_I("members", a->n),
        LOG_I("ttl_s", a->ttl_s));
    *q->trouble = '\0';
    q->answered = true;
    q->retry_ms = 0;
    ask_again(q, ms < ASK_MIN_MS ? ASK_MIN_MS : ms > ASK_MAX_MS ? ASK_MAX_MS : ms);
    tell_source(q->d);
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *msg, int n)
{
    question *q = arg;
    dns_answer a = {0};
    shoal_err err;
    if (q->d->closing || status == ARES_EDESTRUCTION || status == ARES_ECANCELLED) return;
    if (status != ARES_SUCCESS)
        failed(q, status == ARES_ENODATA ? "it has no SRV records" : ares_strerror(status),
               status == ARES_ENODATA || status == ARES_ENOTFOUND);
    else if (dns_answer_parse(msg, (size_t)n, &a, &err) != 0)
        failed(q, err.message, false);
    else if (a.n == 0)
        failed(q, "it has no SRV records", true);
    else
        take_view(q, &a);
    dns_answer_done(&a);
}

/* ---- c-ares on the loop -------------------------------------------------------------------------- */

static void wait_for_ares(dns *d)
{
    struct timeval tv, *left = ares_timeout(d->ares, NULL, &tv);
    if (left)
        env_of(d)->timer_start(d->timer, (uint64_t)left->tv_sec * 1000 + (uint64_t)left->tv_usec / 1000 + 1);
    else
        env_of(d)->timer_stop(d->timer);
}

static void ares_due(void *arg)
{
    dns *d = arg;
    ares_process_fd(d->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    wait_for_ares(d);
}

static void on_socket(uv_poll_t *p, int status, int events)
{
    watch *w = (watch *)p;
    dns *d = w->d;
    bool reads = status < 0 || events & UV_READABLE, writes = status < 0 || events & UV_WRITABLE;
    ares_socket_t fd = w->fd; /* w may go meanwhile */
    ares_process_fd(d->ares, reads ? fd : ARES_SOCKET_BAD, writes ? fd : ARES_SOCKET_BAD);
    wait_for_ares(d);
}

static void watch_closed(uv_handle_t *h)
{
    free(h);
}

static watch **find_watch(dns *d, ares_socket_t fd)
{
    watch **at = &d->watches;
    while (*at && (*at)->fd != fd) at = &(*at)->next;
    return at;
}

static watch *watch_new(dns *d, ares_socket_t fd)
{
    watch *w = malloc(sizeof *w);
    if (!w) return NULL;
    *w = (watch){.d = d, .fd = fd, .next = d->watches};
    if (uv_poll_init(d->loop, &w->poll, fd) != 0) {
        free(w);
        return NULL;
    }
    d->watches = w;
    return w;
}

/* c-ares wants to know of these events; of a socket that it is about to close, of none. Without memory the
 * question runs into its timeout, and is asked again. */
static void on_state(void *user, ares_socket_t fd, int readable, int writable)
{
    dns *d = user;
    watch **at = find_watch(d, fd), *w = *at;
    if (!readable && !writable) {
        if (!w) return;
        *at = w->next;
        uv_close((uv_handle_t *)&w->poll, watch_closed);
        return;
    }
    if (!w) w = watch_new(d, fd);
    if (w) uv_poll_start(&w->poll, (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0), on_socket);
}

static void dns_ask(void *arg)
{
    question *q = arg;
    ares_query(q->d->ares, q->name, CLASS_IN, TYPE_SRV, on_answer, q); /* may answer at once */
    wait_for_ares(q->d);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int open_ares(dns *d, const dns_options *o, shoal_err *err)
{
    struct ares_options opt = {
        .timeout = o->timeout_ms ? (int)o->timeout_ms : TIMEOUT_MS,
        .tries = 2,
        .sock_state_cb = on_state,
        .sock_state_cb_data = d,
    };
    int rc = ares_library_init(ARES_LIB_INIT_ALL);
    if (rc == 0)
        rc = ares_init_options(&d->ares, &opt, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    d->has_ares = rc == 0;
    if (rc != 0) return err_set(err, SHOAL_EIO, "cannot begin to ask name servers: %s", ares_strerror(rc));
    rc = o->server ? ares_set_servers_ports_csv(d->ares, o->server) : 0;
    if (rc == 0) return 0;
    return err_set(err, SHOAL_EINVALID, "\"%s\" is no address of a name server, such as 127.0.0.1:8600",
                   o->server);
}

static int add_question(dns *d, const dns_name *n, shoal_err *err)
{
    question *q = &d->questions[d->n];
    *q = (question){.d = d};
    q->name = arena_strdup(d->strings, n->name);
    q->model = arena_strdup(d->strings, n->model);
    q->again = env_of(d)->timer_new(env_of(d)->user, dns_ask, q);
    d->n++;
    if (!q->name || !q->model || !q->again) return err_nomem(err);
    return registry_declare(d->g, n->model, err);
}

int dns_open(dns **ret, uv_loop_t *loop, registry *g, const dns_options *opts, shoal_err *err)
{
    dns *d = calloc(1, sizeof *d);
    if (!d) return err_nomem(err);
    d->loop = loop;
    d->g = g;
    d->strings = arena_new(0);
    d->questions = calloc(opts->n_names + 1, sizeof *d->questions);
    d->timer = env_of(d)->timer_new(env_of(d)->user, ares_due, d);
    int rc = d->strings && d->questions && d->timer ? source_open(&d->s, g, "dns", err) : err_nomem(err);
    if (rc == 0) rc = open_ares(d, opts, err);
    for (size_t i = 0; rc == 0 && i < opts->n_names; i++) rc = add_question(d, &opts->names[i], err);
    if (rc != 0) {
        dns_close(d);
        return rc;
    }
    for (size_t i = 0; i < d->n; i++) dns_ask(&d->questions[i]);
    *ret = d;
    return 0;
}

void dns_close(dns *d)
{
    if (!d) return;
    d->closing = true;
    if (d->has_ares) ares_destroy(d->ares); /* closes its sockets through on_state */
    ares_library_cleanup();
    source_close(d->s);
    for (size_t i = 0; i < d->n; i++) {
        env_of(d)->timer_free(d->questions[i].again);
        free(d->questions[i].ids);
    }
    env_of(d)->timer_free(d->timer);
    arena_free(d->strings);
    free(d->questions);
    free(d);
}
