/* http_conn.c: what a connection of either protocol needs: its turn, its time, an error's body. */
#include <stdio.h>
#include <string.h>

#include "wire/http_internal.h"

void conn_mark_dirty(http_conn *c)
{
    http_server *s = c->server;
    if (c->is_dirty) return;
    c->is_dirty = true;
    c->next_dirty = s->dirty;
    s->dirty = c;
    if (!s->closing) uv_prepare_start(&s->settle, s->settle.prepare_cb);
}

bool conn_is_late(const http_conn *c, uint64_t now_ms)
{
    return c->begun_ms && now_ms - c->begun_ms > c->server->limits.request_timeout_ms;
}

bool conn_is_idle(const http_conn *c, uint64_t now_ms)
{
    return !c->requests && !c->begun_ms && now_ms - c->idle_since_ms > c->server->limits.idle_timeout_ms;
}

const char *server_date(http_server *s)
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

void server_error_body(http_server *s, int status, const char *why, buf *out, const char **ret_type)
{
    *ret_type = "text/plain; charset=utf-8";
    if (s->handler.error_body)
        s->handler.error_body(s->handler.user, status, why, out, ret_type);
    else
        buf_printf(out, "%s\n", why);
}
