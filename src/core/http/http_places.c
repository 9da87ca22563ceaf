/* http_places.c: which connection gives way when the table is full, and how long unauthenticated peers may stay.
 *
 * A connection is worth keeping for what it does:
 *
 *     busy  an answer is being made or sent, or a client that has shown a key sends a request: never closed
 *           here
 *     new   its first request has not come in whole, or a client without a key is sending one
 *     idle  between requests; or all that is open on it is idle by itself: a WebSocket without a request, a
 *           watch; or its client has ended its side of an HTTP/1.1 connection, as one does that closes it,
 *           and waits for an answer
 *
 * A new connection takes the place of the oldest new one, or of the one that has been idle for longest; where
 * keys are needed, of one that has shown none before all others. A few new ones are left alone for
 * NEWCOMER_MS, since each honest client begins as one. */
#include "http/http_internal.h"

enum { NEWCOMER_MS = 1000, NEWCOMERS_MAX = 16, NEWCOMER_SHARE = 16 };

typedef enum { PLACE_BUSY, PLACE_NEW, PLACE_IDLE } place_kind;

typedef struct place {
    place_kind kind;
    uint64_t since_ms;
} place;

/* ---- what a connection does ---------------------------------------------------------------------- */

static bool is_being_answered(const http_request *r)
{
    bool has_no_end = r->intake == HTTP_OPEN || r->intake == HTTP_TUNNEL;
    return r->dispatched && (r->complete || r->begun || has_no_end);
}

static bool has_idle(const http_conn *c)
{
    for (const http_request *r = c->requests; r; r = r->next)
        if (r->idle) return true;
    return false;
}

/* Is anything of it answered? *ret_since_ms: when the oldest request began that is still coming in, or as it
 * was. */
static bool answers(const http_conn *c, uint64_t *ret_since_ms)
{
    bool any = false;
    for (const http_request *r = c->requests; r; r = r->next) {
        if (r->idle || r->gone) continue;
        any |= is_being_answered(r);
        if (!*ret_since_ms || r->begun_ms < *ret_since_ms) *ret_since_ms = r->begun_ms;
    }
    return any;
}

/* HTTP/1.1: its client sends no more and waits for an answer. It has closed the connection, most likely; one
 * that only closed its own half is answered unless others need the place. */
static bool may_have_left(const http_conn *c)
{
    return c->eof && !c->h2 && c->requests && !conn_unsent(c);
}

static place http_places_place_of(const http_conn *c)
{
    uint64_t coming_ms = c->begun_ms;
    if (may_have_left(c) && !c->refusing && !transport_is_closing(c->io)) return (place){PLACE_IDLE, 0};
    bool busy = c->refusing || transport_is_closing(c->io) || c->parked || c->has_waiting || conn_unsent(c);
    if (busy || answers(c, &coming_ms)) return (place){PLACE_BUSY, 0};
    if (coming_ms && c->is_known) return (place){PLACE_BUSY, 0};
    if (!c->has_answered && !has_idle(c)) return (place){PLACE_NEW, c->opened_ms};
    if (coming_ms) return (place){PLACE_NEW, coming_ms};
    return (place){PLACE_IDLE, c->idle_since_ms};
}

/* ---- who gives way ------------------------------------------------------------------------------- */

typedef struct places {
    http_conn *oldest_new, *oldest_idle;
    place at_new, at_idle;
    /* Its last answer has left, or is about to: it is only waited for its client's end. */
    http_conn *oldest_ending;
    size_t n_new, n_unknown, n_ending;
} places;

static void look_at(places *p, http_conn *c, bool only_unknown)
{
    place at = http_places_place_of(c);
    bool is_ending = !c->refusing && transport_is_closing(c->io);
    p->n_unknown += !c->refusing && !is_ending && !c->is_known;
    p->n_ending += is_ending;
    if (is_ending && !transport_is_closed(c->io)) p->oldest_ending = c;
    if (at.kind == PLACE_BUSY || (only_unknown && c->is_known)) return;
    p->n_new += at.kind == PLACE_NEW;
    if (at.kind == PLACE_NEW && (!p->oldest_new || at.since_ms <= p->at_new.since_ms)) {
        p->oldest_new = c;
        p->at_new = at;
    }
    if (at.kind == PLACE_IDLE && (!p->oldest_idle || at.since_ms <= p->at_idle.since_ms)) {
        p->oldest_idle = c;
        p->at_idle = at;
    }
}

/* The list begins with the newest, so of equals the oldest is found. */
static places http_places_look(const http_server *s, const http_conn *but, bool only_unknown)
{
    places p = {0};
    for (http_conn *c = s->conns; c; c = c->next)
        if (c != but) look_at(&p, c, only_unknown);
    return p;
}

static size_t n_newcomers(const http_server *s)
{
    size_t n = s->limits.max_connections / NEWCOMER_SHARE;
    return n < 1 ? 1 : n > NEWCOMERS_MAX ? NEWCOMERS_MAX : n;
}

static http_conn *http_places_choose(const http_server *s, const places *p)
{
    uint64_t now = uv_now(s->loop);
    bool may_new = p->oldest_new && (p->n_new > n_newcomers(s) || now - p->at_new.since_ms >= NEWCOMER_MS);
    return may_new ? p->oldest_new : p->oldest_idle;
}

/* Those of it that are idle say why they end. */
static void end_idle(http_conn *c)
{
    const http_handler *h = &c->server->handler;
    for (http_request *r = c->requests, *next; r; r = next) {
        next = r->next;
        if (r->idle && h->on_evict) h->on_evict(h->user, r);
    }
}

/* It does not count any more while it says goodbye. */
static void http_places_give_up(http_conn *c, int status, const char *why)
{
    http_server *s = c->server;
    bool is_refusable = c->begun_ms && !c->h2 && (!c->requests || !c->requests->dispatched);
    c->refusing = true;
    if (++s->n_refusing > s->max_refusing || !c->is_open || may_have_left(c)) {
        transport_close(c->io, why);
        return;
    }
    end_idle(c);
    if (is_refusable && c->ops->probe) {
        http1_refuse(c, status, why);
    } else if (c->h2) {
        c->evicted = true;
        c->ops->leave(c);
    } else {
        transport_end(c->io);
    }
    conn_mark_dirty(c);
}

static bool http_places_make_room(http_server *s, const http_conn *newest, bool only_unknown)
{
    places p = http_places_look(s, newest, only_unknown);
    http_conn *c = http_places_choose(s, &p);
    if (!c) return false;
    http_places_give_up(c, 503, "too many connections, and others want this one's place");
    return true;
}

bool http_places_have_room(http_server *s, const http_conn *newest)
{
    size_t most = s->limits.max_unknown;
    places p = http_places_look(s, NULL, true);
    if (most && p.n_unknown > most) http_places_make_room(s, newest, true);
    if (p.n_ending > s->max_refusing && p.oldest_ending)
        transport_close(p.oldest_ending->io, "it was over, and others want its place");
    if (s->n_conns - s->n_refusing - p.n_ending <= s->limits.max_connections) return true;
    return (most && http_places_make_room(s, newest, true)) || http_places_make_room(s, newest, false);
}

/* A WebSocket or a watch is its owner's to time. */
void http_places_tick(http_conn *c, uint64_t now_ms)
{
    uint64_t most = c->server->limits.unknown_timeout_ms;
    if (!most || c->is_known || has_idle(c)) return;
    place at = http_places_place_of(c);
    if (at.kind != PLACE_BUSY && now_ms - at.since_ms > most)
        http_places_give_up(c, 408, "no request with a valid API key came in time");
}
