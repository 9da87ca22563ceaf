/* log_repeat.c: see log_repeat.h. */
#include "logging/log_repeat.h"

#include <stdio.h>
#include <string.h>

static bool has_key(const log_field *f, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(f->key, keys[i]) == 0) return true;
    return false;
}

/* One for each key or variable: each says something else. */
static bool is_bounded(const log_event *e)
{
    static const struct {
        const char *component, *event;
    } BOUNDED[] = {{"serve", "left"}, {"telemetry", "variable_ignored"}};
    for (size_t i = 0; i < sizeof BOUNDED / sizeof *BOUNDED; i++)
        if (strcmp(e->event, BOUNDED[i].event) == 0 && strcmp(e->component, BOUNDED[i].component) == 0)
            return true;
    return false;
}

static bool is_limited(const log_event *e)
{
    static const char *const OF_ONE[] = {"request_id", "pid"};
    if (e->level != LOG_WARN || is_bounded(e)) return false;
    for (size_t i = 0; i < e->n_fields; i++)
        if (has_key(&e->fields[i], OF_ONE, 2)) return false;
    return true;
}

static const log_field *place_field(const log_event *e)
{
    static const char *const PLACES[] = {
        "from", "replica", "model",  "address", "endpoint", "url",  "node",   "gateway", "worker", "source",
        "key",  "name",    "signal", "path",    "endpoint", "file", "server", "group",   "image"};
    for (size_t i = 0; i < e->n_fields; i++)
        if (e->fields[i].kind == LOG_KIND_STR && e->fields[i].s &&
            has_key(&e->fields[i], PLACES, sizeof PLACES / sizeof *PLACES))
            return &e->fields[i];
    return NULL;
}

/* A peer connects from another port each time: "192.0.2.7:41234", "[2001:db8::7]:41234". */
static size_t length_without_port(const char *place)
{
    const char *colon = strrchr(place, ':');
    size_t n = strlen(place);
    if (!colon || colon == place || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return n;
    return colon[-1] == ']' || strchr(place, ':') == colon ? (size_t)(colon - place) : n;
}

/* FNV-1a, 64 bits */
static uint64_t hash_place(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h;
}

static void name_account(repeat_account *a, const log_event *e)
{
    const log_field *f = place_field(e);
    const char *place = f ? f->s : "";
    size_t n = f && strcmp(f->key, "from") == 0 ? length_without_port(place) : strlen(place);
    snprintf(a->component, sizeof a->component, "%s", e->component);
    snprintf(a->event, sizeof a->event, "%s", e->event);
    snprintf(a->key, sizeof a->key, "%s", f ? f->key : "");
    snprintf(a->place, sizeof a->place, "%.*s", (int)(n < sizeof a->place ? n : sizeof a->place), place);
    a->place_hash = hash_place(place, n);
}

static bool same_event(const repeat_account *a, const repeat_account *b)
{
    return strcmp(a->event, b->event) == 0 && strcmp(a->component, b->component) == 0 &&
           strcmp(a->key, b->key) == 0;
}

static bool is_over(const repeat_account *a, uint64_t now_ms)
{
    return now_ms - a->since_ms >= LOG_REPEAT_MS;
}

/* Its own account, else a new one, else that of the other places. NULL: none is free. */
static repeat_account *account_of(log_repeat *r, repeat_account *named, uint64_t now_ms)
{
    repeat_account *unused = NULL, *others = NULL;
    size_t n_places = 0;
    for (repeat_account *a = r->accounts; a < r->accounts + r->n_used; a++) {
        if (a->since_ms && a->n_held == 0 && is_over(a, now_ms)) *a = (repeat_account){0};
        if (!a->since_ms && !unused) unused = a;
        if (!a->since_ms || !same_event(a, named)) continue;
        if (a->others)
            others = a;
        else if (a->place_hash == named->place_hash && strcmp(a->place, named->place) == 0)
            return a;
        n_places += !a->others;
    }
    if (n_places >= LOG_REPEAT_PLACES) {
        if (others) return others;
        named->others = true;
        named->place[0] = '\0';
    }
    if (!unused && r->n_used < LOG_REPEAT_ACCOUNTS) unused = &r->accounts[r->n_used++];
    if (unused) *unused = *named;
    return unused;
}

bool log_repeat_take(log_repeat *r, const log_event *e, uint64_t now_ms)
{
    repeat_account named = {0};
    if (!is_limited(e)) return true;
    name_account(&named, e);
    repeat_account *a = account_of(r, &named, now_ms);
    if (!a) return true;
    if (!a->since_ms) a->since_ms = now_ms;
    a->level = e->level;
    if (a->n_written < LOG_REPEAT_LINES) {
        a->n_written++;
        return true;
    }
    a->n_held++;
    r->n_held++;
    return false;
}

static void tell_count(log_count *ret, const repeat_account *a, uint64_t now_ms)
{
    size_t n = 0;
    *ret = (log_count){.of = *a};
    if (*a->key) ret->fields[n++] = LOG_S(ret->of.key, a->others ? "several" : ret->of.place);
    ret->fields[n++] = LOG_I("repeated", a->n_held);
    ret->fields[n++] = LOG_I("in_s", (now_ms - a->since_ms + 999) / 1000);
    ret->event = (log_event){.level = a->level,
                             .component = ret->of.component,
                             .event = ret->of.event,
                             .fields = ret->fields,
                             .n_fields = n};
}

bool log_repeat_next(log_repeat *r, uint64_t now_ms, bool all, log_count *ret)
{
    for (repeat_account *a = r->accounts; a < r->accounts + r->n_used; a++) {
        if (!a->since_ms || (!all && !is_over(a, now_ms))) continue;
        bool counts = a->n_held > 0;
        if (counts) tell_count(ret, a, now_ms);
        r->n_held -= a->n_held;
        *a = (repeat_account){0};
        if (counts) return true;
    }
    return false;
}
