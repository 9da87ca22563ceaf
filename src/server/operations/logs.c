/* logs.c: see logs.h. Who follows is looked after four times a second. */
#include "operations/logs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "messages/query.h"
#include "logging/log_format.h"
#include "logging/log_ring.h"
#include "base/number.h"
#include "request/admission.h"
#include "request/gateway_state.h"

enum {
    LINES_USUAL = 100,
    LINES_MAX = 10000,
    BEAT_MS = 250,
    QUIET_MS = 15000,
    FOLLOWERS_MAX = 64,
    FOLLOWERS_OF_ONE = 32
};

typedef struct log_filter {
    log_level level;
    uint64_t after; /* number of the last line that is had */
    bool follow;
} log_filter;

typedef struct follower {
    gateway_request *rq;
    env_timer *beats;
    log_filter filter;
    uint64_t told_ns;
    buf out;
} follower;

static const env *time_of(const follower *f)
{
    return &f->rq->gateway->time;
}

/* ---- which lines are asked for ------------------------------------------------------------------------- */

static int logs_refuse(api_error *e, const char *what, const char *value)
{
    return api_error_set(e, 400, "invalid_request_error", "invalid_query", NULL, "%s, not '%.40s'", what,
                         value);
}

static int take_level(log_filter *w, const char *value, api_error *e)
{
    int level = log_level_parse(value);
    if (level < 0 || level == LOG_OFF) return logs_refuse(e, "level is debug, info, warn or error", value);
    w->level = (log_level)level;
    return 0;
}

static int take_follow(log_filter *w, const char *value, api_error *e)
{
    w->follow = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
    if (w->follow || strcmp(value, "false") == 0 || strcmp(value, "0") == 0) return 0;
    return logs_refuse(e, "follow is true or false", value);
}

static int take_word(gateway_request *rq, const char *name, log_filter *w,
                     int (*take)(log_filter *w, const char *value, api_error *e), api_error *e)
{
    char *value = NULL;
    int status = query_value(request_query(rq), name, &value, e);
    if (status == 0 && value) status = take(w, value, e);
    free(value);
    return status;
}

static int read_filter(log_filter *w, gateway_request *rq, api_error *e)
{
    int64_t lines = LINES_USUAL, after = -1;
    const char *had = request_header(rq, "last-event-id");
    *w = (log_filter){.level = LOG_INFO};
    int status = take_word(rq, "level", w, take_level, e);
    if (status == 0) status = take_word(rq, "follow", w, take_follow, e);
    if (status == 0) status = query_number(request_query(rq), "lines", 0, LINES_MAX, &lines, e);
    if (status == 0) status = query_number(request_query(rq), "after", 0, INT64_MAX, &after, e);
    if (had && (!number_i64(had, &after) || after < 0)) after = -1; /* another server's: from the beginning */
    w->after = after >= 0 ? (uint64_t)after : log_ring_before((size_t)lines, w->level);
    return status;
}

/* ---- lines ------------------------------------------------------------------------------------------ */

/* Lines that the ring has dropped before they were asked for. */
static void put_missed(buf *out, const env *time, uint64_t n)
{
    const log_field f = LOG_I("lines", n);
    log_event e = {
        .level = LOG_WARN, .component = "log", .event = "lines_dropped", .fields = &f, .n_fields = 1};
    int64_t at_ns = env_wall_ns(time);
    e.at = (struct timespec){.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    log_format(out, LOG_FORM_JSON, 0, &e);
    if (!out->failed) out->len--; /* its line end */
}

static void logs_answer(gateway_request *rq, log_filter *w)
{
    buf out = {0};
    uint64_t missed = log_ring_missed(w->after);
    buf_puts(&out, "{\"lines\":[");
    if (missed) put_missed(&out, &rq->gateway->time, missed);
    for (bool more = true; more && !out.failed;) {
        size_t before = out.len;
        if (out.data[out.len - 1] != '[') buf_putc(&out, ',');
        more = log_ring_next(&w->after, w->level, &out);
        if (!more) out.len = before;
    }
    buf_printf(&out, "],\"last\":%llu}", (unsigned long long)w->after);
    request_json(rq, 200, &out);
    buf_done(&out);
}

/* All of it or nothing; clears the line. False: there was no memory. */
static bool put_event(buf *out, uint64_t id, buf *line)
{
    size_t before = out->len;
    buf_printf(out, "%llu", (unsigned long long)id);
    event_begin(out, EVENT_DATA, NULL);
    buf_join(out, line);
    event_end(out);
    buf_clear(line);
    if (!out->failed) return true;
    out->len = before;
    out->failed = false;
    return false;
}

/* What has come since. What finds no memory is told at the next beat. */
static void put_news(follower *f)
{
    uint64_t after = f->filter.after, missed = log_ring_missed(after);
    bool ok = true;
    buf line = {0};
    if (missed) {
        put_missed(&line, time_of(f), missed);
        ok = put_event(&f->out, after += missed, &line);
        if (ok) f->filter.after = after;
    }
    while (ok && log_ring_next(&after, f->filter.level, &line)) {
        ok = put_event(&f->out, after, &line);
        if (ok) f->filter.after = after;
    }
    if (ok) f->filter.after = after; /* those that are filtered out count, too */
    buf_done(&line);
}

/* A sign of life when nothing has come for long. */
static void logs_tell(follower *f)
{
    uint64_t now = request_now_ns(f->rq);
    if (request_stream_is_full(f->rq)) return;
    buf_clear(&f->out);
    put_news(f);
    if (f->out.len == 0 && now - f->told_ns > QUIET_MS * 1000000ull) event_put_alive(&f->out);
    if (f->out.len && !f->out.failed) {
        f->told_ns = now;
        request_stream_write(f->rq, &f->out);
    }
    if (f->out.failed) buf_done(&f->out);
}

/* ---- following -------------------------------------------------------------------------------------- */

static void logs_leave(void *work)
{
    follower *f = work;
    f->rq->gateway->n_log_readers--;
    time_of(f)->timer_free(f->beats);
    buf_done(&f->out);
    free(f);
}

static void on_beat(void *user)
{
    follower *f = user;
    gateway_request *rq = f->rq;
    api_error e = {0};
    time_of(f)->timer_start(f->beats, BEAT_MS);
    int status = admission_check_again(rq, &e); /* whose key is taken away reads no more */
    if (status == 0) logs_tell(f);
    if (status == 0 && !rq->gateway->draining) return;
    logs_leave(f);
    request_watch(rq, NULL, NULL);
    if (status == 0)
        request_stream_end(rq);
    else
        request_error(rq, &e);
}

static void follow(gateway_request *rq, const log_filter *w)
{
    const env *time = &rq->gateway->time;
    follower *f = calloc(1, sizeof *f);
    env_timer *beats = f ? time->timer_new(time->user, on_beat, f) : NULL;
    api_error e;
    if (!beats) {
        free(f);
        api_error_nomem(&e);
        request_error(rq, &e);
        return;
    }
    *f = (follower){.rq = rq, .filter = *w, .told_ns = request_now_ns(rq), .beats = beats};
    rq->gateway->n_log_readers++;
    time->timer_start(beats, BEAT_MS);
    request_watch(rq, logs_leave, f);
    request_stream_begin(rq);
    logs_tell(f);
}

void logs_handle(gateway_request *rq)
{
    log_filter w;
    api_error e = {0};
    int status = read_filter(&w, rq, &e);
    if (status == 0 && w.follow && rq->gateway->draining)
        status =
            api_error_set(&e, 503, "service_unavailable", "draining", NULL, "the server is shutting down");
    if (status == 0 && w.follow && rq->gateway->n_log_readers >= FOLLOWERS_MAX)
        status =
            api_error_set(&e, 429, "rate_limit_error", "too_many_requests", NULL,
                          "%d clients follow the log, which is the limit; close one of them", FOLLOWERS_MAX);
    if (status == 0 && w.follow && request_count_like(rq) >= FOLLOWERS_OF_ONE)
        status = api_error_set(&e, 429, "rate_limit_error", "too_many_requests", NULL,
                               "this client follows the log %d times, which is the limit; close one of them",
                               FOLLOWERS_OF_ONE);
    if (status != 0)
        request_error(rq, &e);
    else if (w.follow)
        follow(rq, &w);
    else
        logs_answer(rq, &w);
}
