/* relay.c: pairs of transports, the outer to a gateway, the inner to a worker. */
#include "join/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "logging/log.h"
#include "logging/log_limit.h"
#include "trust/identity.h"
#include "wire/env_uv.h"
#include "wire/inherited_listener.h"
#include "wire/transport.h"

enum { LISTEN_BACKLOG = 128, SWEEP_MS = 1000 };

typedef struct pair pair;

typedef struct end { /* one of the two */
    pair *of;
    transport *io; /* NULL: not there yet, or gone */
    bool open;
} end;

struct pair {
    relay *r;
    list_node link; /* in the pairs of r */
    end outer, inner;
    uint64_t begun_ms;
};

struct relay {
    uv_loop_t *loop;
    relay_options o;
    uv_tcp_t listener, away; /* away takes connections that there is no room for */
    env loop_time;
    const env *e; /* time and timers: loop_time, or what the caller gave */
    env_timer *sweep;
    bool turning_away, another_waits, closing;
    int n_handles;
    int port;
    list_node pairs;
    size_t n_pairs;
    transport_scratch scratch;
    log_limit lines; /* that unauthenticated peers have caused */
    void (*closed)(void *user);
    void *closed_user;
};

int relay_port(const relay *r)
{
    return r->port;
}

size_t relay_count(const relay *r)
{
    return r->n_pairs;
}

/* ---- ends ---------------------------------------------------------------------------------------- */

static void relay_release(relay *r)
{
    if (!r->closing || r->n_handles > 0 || r->n_pairs > 0) return;
    void (*closed)(void *) = r->closed;
    void *user = r->closed_user;
    r->e->timer_free(r->sweep);
    tls_context_unref(r->o.tls);
    free(r);
    if (closed) closed(user);
}

static void pair_free(pair *p)
{
    relay *r = p->r;
    list_take(&p->link);
    r->n_pairs--;
    free(p);
    relay_release(r);
}

static void cut_relay(pair *p, const char *why)
{
    if (p->outer.io) transport_close(p->outer.io, why);
    if (p->inner.io) transport_close(p->inner.io, why);
}

static uint64_t now_ms(const relay *r)
{
    return env_now_ns(r->e) / 1000000;
}

static bool may_log(relay *r, const transport *io)
{
    return log_limit_take(&r->lines, transport_from(io), now_ms(r));
}

static end *other(end *e)
{
    return e == &e->of->outer ? &e->of->inner : &e->of->outer;
}

static void relay_on_closed(void *user, const char *why)
{
    end *e = user, *o = other(e);
    if (e == &e->of->outer && !e->open && may_log(e->of->r, e->io))
        LOG(LOG_WARN, "relay", "connection_refused", LOG_S("from", transport_from(e->io)),
            LOG_S("reason", why));
    e->io = NULL;
    if (!o->io)
        pair_free(e->of);
    else
        transport_end(o->io); /* what waits for it may still leave */
}

static void on_eof(void *user)
{
    end *e = user, *o = other(e);
    if (o->io) transport_end(o->io);
    transport_end(e->io);
}

/* ---- bytes --------------------------------------------------------------------------------------- */

static void relay_on_data(void *user, const uint8_t *bytes, size_t n)
{
    end *e = user, *o = other(e);
    if (!o->io || transport_is_closing(o->io)) return;
    transport_write(o->io, bytes, n);
    transport_flush(o->io);
    if (transport_backlog(o->io) > RELAY_BACKLOG) transport_pause(e->io, true);
}

static void relay_on_drained(void *user)
{
    end *o = other(user);
    if (o->io && o->open) transport_pause(o->io, false);
}

/* ---- a share ------------------------------------------------------------------------------------- */

/* Has the gateway that has just shown its certificate as many connections as it may have already? */
static bool has_its_share(const pair *newest)
{
    const relay *r = newest->r;
    const tls_identity *who = transport_peer(newest->outer.io);
    size_t n = 0;
    list_each (p, &r->pairs, pair, link) {
        const tls_identity *peer = p->outer.open && p->outer.io ? transport_peer(p->outer.io) : NULL;
        n += peer && strcmp(peer->common_name, who->common_name) == 0;
    }
    return n >= (r->o.share_max ? r->o.share_max : RELAY_SHARE_MAX);
}

/* ---- to the worker ------------------------------------------------------------------------------- */

static void on_inner_open(void *user, const char *alpn)
{
    end *e = user;
    e->open = true;
    if (e->of->outer.io) transport_pause(e->of->outer.io, false);
}

static bool is_crowded(const relay *r)
{
    size_t n = 0;
    list_each (p, &r->pairs, pair, link) {
        const tls_identity *who = p->outer.open && p->outer.io ? transport_peer(p->outer.io) : NULL;
        n += who && strcmp(who->unit, role_name(ROLE_GATEWAY)) != 0;
    }
    return n > RELAY_NODES_MAX;
}

static const char *relay_find(const pair *p, const char *name, const char **ret_why)
{
    const relay *r = p->r;
    const tls_identity *who = transport_peer(p->outer.io);
    bool is_gateway = who && strcmp(who->unit, role_name(ROLE_GATEWAY)) == 0;
    *ret_why = NULL;
    if (!who || !name) return NULL;
    if (is_gateway || !is_crowded(r)) return r->o.find(r->o.user, who, name, ret_why);
    *ret_why = "too many nodes are connected";
    return NULL;
}

static void on_outer_open(void *user, const char *alpn)
{
    pair *p = ((end *)user)->of;
    relay *r = p->r;
    const char *name = transport_server_name(p->outer.io), *why;
    const transport_events ev = {&p->inner, on_inner_open,    relay_on_data,
                                 on_eof,    relay_on_drained, relay_on_closed};
    address a;
    shoal_err err = {.message = "no worker goes by that name"};
    if (has_its_share(p)) {
        cut_relay(p, "this gateway holds its share of the connections here already");
        return;
    }
    p->outer.open = true;
    transport_limit_silence(p->outer.io, RELAY_SILENCE_MS);
    transport_pause(p->outer.io, true); /* until the worker is there */
    const char *text = relay_find(p, name, &why);
    if (why) {
        LOG(LOG_WARN, "relay", "connection_refused", LOG_S("from", transport_from(p->outer.io)),
            LOG_S("by", transport_peer(p->outer.io)->common_name), LOG_S("worker", name),
            LOG_S("reason", why));
        transport_close(p->outer.io, why);
        return;
    }
    int rc = text ? address_parse(&a, text, &err) : SHOAL_ENOTFOUND;
    if (rc == 0 && !a.is_unix) rc = err_set(&err, SHOAL_EINVALID, "its address is no Unix socket");
    if (rc == 0) rc = transport_connect(&p->inner.io, r->loop, &a, NULL, NULL, &r->scratch, &ev, &err);
    if (rc == 0) return;
    if (may_log(r, p->outer.io))
        LOG(LOG_WARN, "relay", "no_worker", LOG_S("worker", name ? name : ""), LOG_S("reason", err.message));
    transport_close(p->outer.io, "no worker goes by that name");
}

/* ---- who may come ------------------------------------------------------------------------------ */

/* Has its address more than its share of those that are on the way to show a certificate? */
static bool is_one_too_many(const pair *newest)
{
    const char *from = transport_from(newest->outer.io);
    size_t n = 0;
    list_each (p, &newest->r->pairs, pair, link)
        n += !p->outer.open && p->outer.io && strcmp(transport_from(p->outer.io), from) == 0;
    return n > RELAY_UNAUTHENTICATED_MAX;
}

/* ---- from the gateway ---------------------------------------------------------------------------- */

static void turn_away(relay *r);

static void turned_away(uv_handle_t *h)
{
    relay *r = h->data;
    r->turning_away = false;
    r->n_handles--;
    if (r->another_waits && !r->closing) turn_away(r);
    relay_release(r);
}

/* It is taken all the same, or libuv never tells of another; one at a time, with a handle that needs no
 * memory. */
static void turn_away(relay *r)
{
    r->another_waits = r->turning_away;
    if (r->turning_away) return;
    uv_tcp_init(r->loop, &r->away);
    r->away.data = r;
    r->turning_away = true;
    r->n_handles++;
    uv_accept((uv_stream_t *)&r->listener, (uv_stream_t *)&r->away);
    uv_close((uv_handle_t *)&r->away, turned_away);
}

static void on_connection(uv_stream_t *listener, int status)
{
    relay *r = listener->data;
    if (status != 0 || r->closing) return;
    pair *p = r->n_pairs < RELAY_CONNECTIONS_MAX ? calloc(1, sizeof *p) : NULL;
    if (!p) {
        turn_away(r);
        return;
    }
    *p = (pair){.r = r, .outer.of = p, .inner.of = p, .begun_ms = now_ms(r)};
    const transport_events ev = {&p->outer, on_outer_open,    relay_on_data,
                                 on_eof,    relay_on_drained, relay_on_closed};
    if (transport_accept(&p->outer.io, listener, r->o.tls, &r->scratch, &ev, NULL) != 0) {
        free(p);
        turn_away(r);
        return;
    }
    list_put(&r->pairs, &p->link);
    r->n_pairs++;
    if (is_one_too_many(p)) cut_relay(p, "too many connections of its address have shown no certificate");
}

static void on_sweep(void *user)
{
    relay *r = user;
    r->e->timer_start(r->sweep, SWEEP_MS);
    list_each (p, &r->pairs, pair, link)
        if (!p->inner.open && now_ms(r) - p->begun_ms > RELAY_HANDSHAKE_MS)
            cut_relay(p, "it was not at a worker in time");
    log_limit_tell(&r->lines, "relay", now_ms(r));
}

void relay_recheck(relay *r)
{
    list_each (p, &r->pairs, pair, link) {
        const tls_identity *who = p->outer.io ? transport_peer(p->outer.io) : NULL;
        const char *worker = who ? transport_server_name(p->outer.io) : NULL;
        if (who && !tls_context_admits(r->o.tls, who, NULL))
            cut_relay(p, "the gateway may not come in any more");
        else if (worker && r->o.stays && !r->o.stays(r->o.user, who, worker))
            cut_relay(p, "another machine has the first stage of that model now");
    }
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int bind_to(relay *r, const address *a, shoal_err *err)
{
    char port[8];
    uv_getaddrinfo_t q;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct sockaddr_storage sa;
    int n = sizeof sa;
    snprintf(port, sizeof port, "%d", a->port);
    int kept = inherited_listener_take(r->o.listen);
    int rc = kept >= 0 ? uv_tcp_open(&r->listener, kept)
                       : uv_getaddrinfo(r->loop, &q, NULL, a->host[0] ? a->host : NULL, port, &hints);
    if (rc == 0 && kept < 0) {
        rc = uv_tcp_bind(&r->listener, q.addrinfo->ai_addr, 0);
        uv_freeaddrinfo(q.addrinfo);
    }
    if (rc == 0) rc = uv_listen((uv_stream_t *)&r->listener, LISTEN_BACKLOG, on_connection);
    if (rc == 0) rc = uv_tcp_getsockname(&r->listener, (struct sockaddr *)&sa, &n);
    if (rc != 0) return err_set(err, SHOAL_EIO, "cannot listen on %s: %s", r->o.listen, uv_strerror(rc));
    if (kept < 0) inherited_listener_keep((uv_handle_t *)&r->listener, r->o.listen);
    r->port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                             : ((struct sockaddr_in *)&sa)->sin_port);
    return 0;
}

int relay_open(relay **ret, uv_loop_t *loop, const relay_options *o, shoal_err *err)
{
    address a;
    int rc = address_parse(&a, o->listen, err);
    if (rc == 0 && a.is_unix)
        rc = err_set(err, SHOAL_EINVALID, "%s: a relay listens on HOST:PORT", o->listen);
    relay *r = rc == 0 ? calloc(1, sizeof *r) : NULL;
    if (!r) return rc != 0 ? rc : err_nomem(err);
    r->loop = loop;
    r->o = *o;
    list_init(&r->pairs);
    tls_context_ref(o->tls);
    uv_tcp_init(loop, &r->listener);
    r->listener.data = r;
    r->n_handles = 1;
    r->loop_time = env_uv(loop);
    r->e = o->time ? o->time : &r->loop_time;
    r->sweep = r->e->timer_new(r->e->user, on_sweep, r);
    rc = r->sweep ? bind_to(r, &a, err) : err_nomem(err);
    if (rc != 0) {
        relay_close(r, NULL, NULL);
        return rc;
    }
    r->o.listen = NULL; /* the caller's */
    r->e->timer_start(r->sweep, SWEEP_MS);
    *ret = r;
    return 0;
}

static void handle_closed(uv_handle_t *h)
{
    relay *r = h->data;
    r->n_handles--;
    relay_release(r);
}

void relay_close(relay *r, void (*closed)(void *user), void *user)
{
    if (!r) {
        if (closed) closed(user);
        return;
    }
    r->closing = true;
    r->e->timer_stop(r->sweep);
    r->closed = closed;
    r->closed_user = user;
    list_each (p, &r->pairs, pair, link) cut_relay(p, "the relay stops");
    inherited_listener_forget((uv_handle_t *)&r->listener);
    uv_close((uv_handle_t *)&r->listener, handle_closed);
}
