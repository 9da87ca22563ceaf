/* http_conn.c: what a connection of either protocol needs: its turn, its time, an error's body. */
#include <stdio.h>
#include <string.h>

#include "base/loop_work.h"
#include "http/http_internal.h"

/* A turn of the loop gives the handler at most TURN_REQUESTS requests of one connection, and nothing more of any
 * once it has done TURN_BYTES of work (base/loop_work.h). */
enum { TURN_REQUESTS = 16, TURN_BYTES = 1 << 20, MARK_SHARE = 4 };

/* ---- the loop's turn ----------------------------------------------------------------------------- */

void conn_mark_dirty(http_conn *c)
{
    http_server *s = c->server;
    if (c->is_dirty) return;
    c->is_dirty = true;
    c->next_dirty = NULL;
    *s->last_dirty = c;
    s->last_dirty = &c->next_dirty;
    if (!s->closing) uv_prepare_start(&s->settle, s->settle.prepare_cb);
}

/* ---- what waits to be sent ------------------------------------------------------------------------ */

size_t conn_unsent(const http_conn *c)
{
    return transport_backlog(c->io) + c->out_bytes;
}

bool conn_has_room(const http_conn *c)
{
    return conn_unsent(c) <= c->server->limits.max_write_backlog / MARK_SHARE;
}

bool conn_turn_is_full(void)
{
    return loop_work_get()->turn_bytes > TURN_BYTES;
}

bool conn_may_go_on(http_conn *c)
{
    const http_server *s = c->server;
    if (c->turn != s->n_turns) {
        c->turn = s->n_turns;
        c->n_turn = 0;
    }
    bool may = c->n_turn < TURN_REQUESTS && !conn_turn_is_full() && conn_has_room(c) &&
               s->n_held + s->n_doomed <= s->limits.max_unsent;
    if (!may) c->parked = true;
    return may;
}

static void note(http_conn *c)
{
    bool closed = transport_is_closed(c->io);
    size_t held = closed ? 0 : transport_held(c->io) + c->out_bytes;
    c->server->n_held += held - c->held;
    c->held = held;
    c->unsent = closed ? 0 : conn_unsent(c);
}

static http_conn *largest(const http_server *s)
{
    http_conn *most = s->conns;
    for (http_conn *c = s->conns; c; c = c->next)
        if (c->held > most->held) most = c;
    return most;
}

void conn_note_unsent(http_conn *c)
{
    http_server *s = c->server;
    note(c);
    if (s->n_held <= s->limits.max_unsent) return;
    /* Each was noted when it was settled; some have been read from since. */
    for (http_conn *all = s->conns; all; all = all->next) {
        transport_trim(all->io);
        note(all);
    }
    while (s->n_held > s->limits.max_unsent) {
        http_conn *most = largest(s);
        transport_close(most->io, "the clients together leave too much unread, and this one most");
        most->doomed += most->held;
        s->n_doomed += most->held;
        note(most);
    }
}

void conn_note_drained(http_request *r)
{
    if (!r->conn->server->handler.on_drained || !r->begun || r->ended) return;
    r->drained = r->conn->has_due = true;
    conn_mark_dirty(r->conn);
}

void conn_resume_waiting(http_conn *c)
{
    if (!c->has_waiting || !conn_may_go_on(c)) return;
    c->has_waiting = false;
    for (http_request *r = c->requests; r; r = r->next) {
        if (r->waits) http_request_mark_due(r);
        r->waits = false;
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

bool conn_pace_is_too_slow(http_pace *p, uint64_t waiting, uint64_t moved, uint64_t least, uint64_t now_ms,
                           uint64_t span_ms)
{
    if (waiting && moved - p->moved < p->owed) return now_ms - p->since_ms > span_ms;
    *p = (http_pace){.moved = moved, .since_ms = now_ms, .owed = waiting < least ? waiting : least};
    return false;
}

bool conn_body_is_too_slow(http_request *r, uint64_t left, uint64_t now_ms)
{
    const http_limits *l = &r->conn->server->limits;
    uint64_t least = l->min_body_rate * l->request_timeout_ms / 1000;
    return conn_pace_is_too_slow(&r->in_pace, left, r->n_received, least ? least : 1, now_ms,
                                 l->request_timeout_ms);
}

void conn_body_rests(http_request *r, uint64_t now_ms)
{
    r->in_pace = (http_pace){.moved = r->n_received, .since_ms = now_ms};
}

bool conn_is_late(const http_conn *c, uint64_t now_ms)
{
    return c->begun_ms && now_ms - c->begun_ms > c->server->limits.request_timeout_ms;
}

bool conn_is_idle(const http_conn *c, uint64_t now_ms)
{
    return !c->requests && !c->begun_ms && !c->parked &&
           now_ms - c->idle_since_ms > c->server->limits.idle_timeout_ms;
}

const char *http_conn_date(http_server *s)
{
    time_t now = time(NULL);
    if (now != s->date_at) {
        static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
        struct tm t;
        gmtime_r(&now, &t);
        snprintf(s->date, sizeof s->date, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * t.tm_wday,
                 (unsigned)t.tm_mday % 100, months + 3 * t.tm_mon, (unsigned)(t.tm_year + 1900) % 10000,
                 (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
        s->date_at = now;
    }
    return s->date;
}

size_t http_conn_error_headers(http_server *s, const http_request *r, http_header *ret)
{
    return s->handler.error_headers ? s->handler.error_headers(s->handler.user, r, ret) : 0;
}

void http_conn_error_body(http_server *s, const http_request *r, int status, const char *why, buf *out,
                          const char **ret_type)
{
    *ret_type = "text/plain; charset=utf-8";
    if (s->handler.error_body)
        s->handler.error_body(s->handler.user, r, status, why, out, ret_type);
    else
        buf_printf(out, "%s\n", why);
}
