/* load_client.c: clients that send requests one after the other, and what their answers took. */
#define _GNU_SOURCE
#include "load/load_client.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/sse.h"
#include "client/stream_client.h"

enum { BACK_PAUSE_MS = 20, NOBODY_PAUSE_MS = 20, WATCH_MS = 250, LOOK_MS = 10 };

/* When the texts of a stream came. */
typedef struct text_clock {
    size_t at; /* of the body, what has been looked at */
    uint64_t first_ns, last_ns;
    uint64_t *gaps_ns; /* [n] of this answer */
    size_t n, cap, n_texts;
} text_clock;

typedef struct load {
    const load_plan *plan;
    load_record *record;
    load_engine *engine;
} load;

typedef struct client {
    load *all;
    stream_client stream;
    text_clock clock;
    http_client http;
    buf scratch;
} client;

/* ---- one answer --------------------------------------------------------------------------------------- */

/* The value behind `"key"`, a colon and blanks, in data[n]; NULL: there is none. */
static const char *value_of(const char *data, size_t n, const char *key)
{
    const char *p = memmem(data, n, key, strlen(key)), *end = data + n;
    if (!p) return NULL;
    for (p += strlen(key); p < end && (*p == ' ' || *p == ':'); p++) continue;
    return p < end ? p : NULL;
}

/* What the answer says last of it: an event may stand for several tokens. */
static size_t last_count(const buf *body, const char *key)
{
    size_t count = 0;
    const char *at = buf_text(body), *end = at + body->len;
    for (const char *p; (p = value_of(at, (size_t)(end - at), key)); at = p) count = strtoul(p, NULL, 10);
    return count;
}

/* An error event fails the request, and so does a stream without its end. */
static bool stream_is_whole(const buf *body)
{
    const char *text = buf_text(body);
    bool stream = strncmp(text, "data:", 5) == 0;
    return !strstr(text, "data: {\"error\"") && (!stream || strstr(text, "data: [DONE]"));
}

/* Whether an event brings text: of a chat, of a completion. */
static bool brings_text(const char *data, size_t n)
{
    static const char *const keys[] = {"\"content\"", "\"text\"", "\"reasoning_content\""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *p = value_of(data, n, keys[i]);
        if (p && p + 1 < data + n && *p == '"' && p[1] != '"') return true;
    }
    return false;
}

static void note_text(text_clock *t, uint64_t now)
{
    t->n_texts++;
    if (t->last_ns && t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 256;
        uint64_t *more = realloc(t->gaps_ns, cap * sizeof *more);
        if (more) {
            t->gaps_ns = more;
            t->cap = cap;
        }
    }
    if (t->last_ns && t->n < t->cap) t->gaps_ns[t->n++] = now - t->last_ns;
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
    if (body->len < t->at) t->at = 0; /* another answer: of a stream that is resumed */
    for (size_t n; (n = sse_read(&e, body->data + t->at, body->len - t->at)) > 0; t->at += n)
        if (e.data && brings_text(e.data, e.n_data)) note_text(t, now);
}

static load_error error_of(int rc, int status)
{
    if (rc == SHOAL_EUNAVAILABLE || rc == SHOAL_EINVALID) return LOAD_ERROR_CONNECT;
    if (rc == SHOAL_EDEADLINE) return LOAD_ERROR_TIMEOUT;
    if (rc == SHOAL_EIO) return LOAD_ERROR_BROKEN;
    if (rc != 0) return LOAD_ERROR_OTHER;
    if (status == 429) return LOAD_ERROR_REFUSED;
    if (status / 100 == 2) return LOAD_ERROR_NONE;
    return status >= 500 ? LOAD_ERROR_SERVER : status >= 300 ? LOAD_ERROR_CLIENT : LOAD_ERROR_OTHER;
}

static void take_usage(const buf *body, const text_clock *t, load_answer *a)
{
    a->n_tokens = last_count(body, "\"completion_tokens\"");
    a->n_prompt_tokens = last_count(body, "\"prompt_tokens\"");
    a->by_texts = a->n_tokens == 0 && t->n_texts > 0;
    if (a->by_texts) a->n_tokens = t->n_texts;
}

/* A stream, asked for again until it is whole or nobody resumes it. */
static load_error exchange_stream(client *me, const http_ask *r, load_answer *a, char why[200])
{
    http_client *c = &me->http;
    uint64_t until = clock_ns() + me->all->plan->back_ms * 1000000ull, first_ns = 0;
    stream_try t;
    me->stream.id[0] = '\0';
    me->stream.n_resumed = 0;
    while ((t = stream_client_ask(&me->stream, c, r, why, 200)) == STREAM_BROKEN && clock_ns() < until) {
        if (!first_ns && me->stream.id[0]) first_ns = c->first_ns;
        usleep(BACK_PAUSE_MS * 1000);
    }
    if (first_ns) c->first_ns = first_ns;
    a->n_resumed = me->stream.n_resumed;
    if (t == STREAM_WHOLE) take_usage(&me->stream.events, &me->clock, a);
    if (t == STREAM_WHOLE) return LOAD_ERROR_NONE;
    load_error e = error_of(c->status ? 0 : SHOAL_EUNAVAILABLE, c->status);
    return e == LOAD_ERROR_NONE ? LOAD_ERROR_STREAM : e;
}

static load_error exchange(client *me, const http_ask *r, load_answer *a, char why[200])
{
    http_client *c = &me->http;
    shoal_err err = {0};
    uint32_t timeout_ms = me->all->plan->timeout_ms;
    c->until_ns = timeout_ms ? clock_ns() + timeout_ms * 1000000ull : 0;
    if (me->all->plan->back_ms) return exchange_stream(me, r, a, why);
    int rc = http_client_exchange(c, r, &err);
    load_error e = error_of(rc, c->status);
    snprintf(why, 200, "status %d: %.150s", c->status, rc != 0 ? err.message : buf_text(&c->body));
    if (rc == 0) take_usage(&c->body, &me->clock, a);
    return e == LOAD_ERROR_NONE && !stream_is_whole(&c->body) ? LOAD_ERROR_STREAM : e;
}

static double since(const load *all, uint64_t ns)
{
    return ((double)ns - (double)load_engine_start_ns(all->engine)) / 1e9;
}

static int load_client_ask(void *user, void *state, size_t i, uint64_t due_ns, shoal_err *err)
{
    client *me = state;
    load *all = me->all;
    char why[200] = "";
    http_ask r = {0};
    buf_clear(&me->scratch);
    all->plan->make(all->plan->user, i, &me->scratch, &r);
    text_clock *t = &me->clock;
    t->at = t->n = t->n_texts = 0;
    t->first_ns = t->last_ns = 0;
    uint64_t sent_ns = clock_ns();
    load_answer a = {.due_s = since(all, due_ns), .sent_s = since(all, sent_ns), .why = why};
    load_record_sent(all->record, a.due_s, a.sent_s);
    if (me->scratch.failed) {
        snprintf(why, sizeof why, "out of memory");
        a.error = LOAD_ERROR_OTHER;
    } else {
        a.error = exchange(me, &r, &a, why);
    }
    uint64_t first = t->first_ns ? t->first_ns : me->http.first_ns;
    a.end_s = since(all, clock_ns());
    a.first_ns = first > due_ns ? first - due_ns : 0;
    a.gaps_ns = t->gaps_ns;
    a.n_gaps = t->n;
    load_record_add(all->record, &a);
    if (a.error == LOAD_ERROR_CONNECT) usleep(NOBODY_PAUSE_MS * 1000); /* a refusal is instant */
    return 0;
}

static int load_client_enter(void *user, int index, void **ret_state, shoal_err *err)
{
    load *all = user;
    client *me = calloc(1, sizeof *me);
    if (!me) return err_nomem(err);
    me->all = all;
    http_client_init(&me->http, &all->plan->where);
    me->http.piece = load_client_on_piece;
    me->http.piece_user = me;
    me->http.again = true;
    *ret_state = me;
    return 0;
}

static void load_client_leave(void *user, void *state)
{
    client *me = state;
    buf_done(&me->scratch);
    stream_client_done(&me->stream);
    http_client_done(&me->http);
    free(me->clock.gaps_ns);
    free(me);
}

/* ---- all of them -------------------------------------------------------------------------------------- */

static void summarise(const load_record *r, load_result *ret)
{
    *ret = (load_result){
        .n_ok = r->n_ok,
        .n_failed = r->n_failed,
        .n_resumed = r->n_resumed,
        .n_tokens = r->n_tokens,
        .n_gaps = r->gap.n,
        .n_late = r->n_late,
        .seconds = r->seconds,
        .p50_ms = load_histogram_ms(&r->whole, 0.50),
        .p95_ms = load_histogram_ms(&r->whole, 0.95),
        .p99_ms = load_histogram_ms(&r->whole, 0.99),
        .max_ms = load_histogram_ms(&r->whole, 1),
        .first_p50_ms = load_histogram_ms(&r->first, 0.50),
        .first_p95_ms = load_histogram_ms(&r->first, 0.95),
        .first_p99_ms = load_histogram_ms(&r->first, 0.99),
        .gap_p50_ms = load_histogram_ms(&r->gap, 0.50),
        .gap_p95_ms = load_histogram_ms(&r->gap, 0.95),
        .gap_p99_ms = load_histogram_ms(&r->gap, 0.99),
    };
    memcpy(ret->first_failure, r->first_failure, sizeof ret->first_failure);
}

static void watch(const load_plan *plan, load_record *record, load_engine *e)
{
    uint64_t start = load_engine_start_ns(e),
             every = (plan->watch_ms ? plan->watch_ms : WATCH_MS) * 1000000ull;
    for (uint64_t next = start + every; load_engine_busy(e);) {
        uint64_t now = clock_ns(), rest = next > now ? next - now : 0;
        if (rest > LOOK_MS * 1000000ull) rest = LOOK_MS * 1000000ull;
        nanosleep(&(struct timespec){0, (long)rest}, NULL);
        if (clock_ns() < next) continue;
        next = clock_ns() + every;
        if (!plan->watch(plan->user, record, clock_ms_since(start) / 1e3)) load_engine_stop(e);
    }
}

int load_run(const load_plan *plan, load_result *ret, shoal_err *err)
{
    static const load_ops ops = {load_client_enter, load_client_ask, load_client_leave};
    load all = {.plan = plan, .record = plan->record};
    load_engine *e = NULL;
    int rc = all.record ? 0 : load_record_new(&all.record, err);
    if (rc == 0) rc = load_engine_new(&e, &plan->schedule, &ops, &all, err);
    if (rc == 0) {
        all.engine = e;
        rc = load_engine_start(e, err);
    }
    if (rc == 0 && plan->watch) watch(plan, all.record, e);
    uint64_t start_ns = e ? load_engine_start_ns(e) : 0;
    int joined = e ? load_engine_join(e, rc == 0 ? err : NULL) : 0;
    if (rc == 0) rc = joined;
    if (rc == 0) all.record->seconds = clock_ms_since(start_ns) / 1e3;
    if (rc == 0) summarise(all.record, ret);
    if (!plan->record) load_record_free(all.record);
    return rc;
}
