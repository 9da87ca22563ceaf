/* crash_view.c: see crash_view.h. Files and names are anybody's: they show no control characters. */
#include "view/crash_view.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "logging/sanitise.h"

/* A row, sanitised and cut. */
#define ROW(out, width, ...)              \
    do {                                  \
        size_t from_ = (out)->len;        \
        buf_printf(out, __VA_ARGS__);     \
        sanitise_line(out, from_, width); \
    } while (0)

static const char *fact(const json_t *report, const char *key)
{
    return json_text_of(json_object_get(report, "facts"), key);
}

void crash_view_line(buf *out, const char *name, const json_t *report, size_t width)
{
    ROW(out, width, "%-34s %.19s %-8s SIG%-5s %s", name, json_text_of(report, "time"),
        json_text_of(report, "component"), json_text_of(report, "name"), fact(report, "model"));
}

static void put_what(buf *out, const json_t *report, size_t width)
{
    const char *address = json_text_of(report, "address");
    double by = json_number_of(report, "sent_by");
    ROW(out, width, "%s: SIG%s (%.0f), process %.0f, thread %.0f, version %s",
        json_text_of(report, "component"), json_text_of(report, "name"), json_number_of(report, "signal"),
        json_number_of(report, "pid"), json_number_of(report, "thread"), json_text_of(report, "version"));
    ROW(out, width, "%s, after %.1f s", json_text_of(report, "time"),
        json_number_of(report, "uptime_ms") / 1000);
    if (by > 0)
        ROW(out, width, "process %.0f sent the signal", by);
    else if (*address)
        ROW(out, width, "at address %s", address);
    if (*json_text_of(report, "endpoint"))
        ROW(out, width, "request %s at %s (%s)", json_text_of(report, "request_id"),
            json_text_of(report, "endpoint"), json_text_of(report, "request"));
}

static void crash_view_put_facts(buf *out, const json_t *report, size_t width)
{
    const char *key;
    json_t *v, *facts = json_object_get(report, "facts");
    json_object_foreach(facts, key, v)
    {
        if (strcmp(key, "of") == 0) continue;
        if (json_is_string(v))
            ROW(out, width, "  %-20s %s", key, json_string_value(v));
        else
            ROW(out, width, "  %-20s %.0f", key, json_number_value(v));
    }
}

static void crash_view_put_steps(buf *out, const json_t *report, size_t width)
{
    size_t i;
    json_t *s, *steps = json_object_get(report, "steps");
    if (json_array_size(steps) == 0) return;
    buf_puts(out, "\nlast steps, the latest first\n");
    json_array_foreach(steps, i, s)
    {
        size_t from = out->len;
        buf_printf(out, "  %-8s %3.0f jobs %5.0f tokens, %.1f ms before", json_text_of(s, "kind"),
                   json_number_of(s, "jobs"), json_number_of(s, "tokens"),
                   json_number_of(s, "began_us_ago") / 1000);
        if (json_object_get(s, "took_us"))
            buf_printf(out, ", took %.1f ms", json_number_of(s, "took_us") / 1000);
        else
            buf_puts(out, ", not ended");
        sanitise_line(out, from, width);
    }
}

/* ---- frames ------------------------------------------------------------------------------------------- */

typedef struct frames {
    uint64_t offsets[CRASH_FRAMES_SHOWN]; /* of those that are the program's, in their order */
    size_t where[CRASH_FRAMES_SHOWN + 1];
    size_t n;
    buf names;
    bool named;
} frames;

static bool is_own(const json_t *frame, const crash_symbols *s)
{
    return s && *s->build && strcmp(json_text_of(frame, "build_id"), s->build) == 0;
}

/* Frames but the first two (the signal's and the one that it met) are return addresses: the call is before. */
static uint64_t offset_of(const json_t *frame, size_t i)
{
    uint64_t at = strtoull(json_text_of(frame, "offset"), NULL, 16);
    return i > 1 && at > 0 ? at - 1 : at;
}

static void name_frames(frames *f, const json_t *list, const crash_symbols *s)
{
    size_t i;
    json_t *frame;
    json_array_foreach((json_t *)(uintptr_t)list, i, frame) if (is_own(frame, s) && f->n < CRASH_FRAMES_SHOWN)
        f->offsets[f->n++] = offset_of(frame, i);
    f->named = f->n > 0 && s->name(s->user, f->offsets, f->n, &f->names, f->where) && !f->names.failed;
    f->where[f->n] = f->names.len;
}

static void put_names(buf *out, const frames *f, size_t which, size_t width)
{
    const char *at = f->names.data + f->where[which], *end = f->names.data + f->where[which + 1];
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = stop ? (size_t)(stop - at) : (size_t)(end - at);
        ROW(out, width, "      %.*s", (int)n, at);
        at += n + 1;
    }
}

static void crash_view_put_frames(buf *out, const json_t *report, const crash_symbols *s, size_t width)
{
    size_t i, n_own = 0;
    frames f = {0};
    json_t *frame, *list = json_object_get(report, "frames");
    name_frames(&f, list, s);
    buf_puts(out, "\nbacktrace\n");
    json_array_foreach(list, i, frame)
    {
        const char *file = json_text_of(frame, "file"), *slash = strrchr(file, '/'),
                   *symbol = json_text_of(frame, "symbol");
        ROW(out, width, "  %2zu %s+%s %s", i, slash ? slash + 1 : file, json_text_of(frame, "offset"),
            symbol);
        if (!is_own(frame, s) || n_own == f.n) continue;
        if (f.named) put_names(out, &f, n_own, width);
        n_own++;
    }
    if (s && f.n == 0 && json_array_size(list) > 0)
        buf_puts(out, "  This program is another build than the one that crashed: with its file at hand,\n"
                      "  addr2line -f -i -C -e FILE OFFSET names its frames.\n");
    buf_done(&f.names);
}

void crash_view_put(buf *out, const json_t *report, const crash_symbols *s, size_t width)
{
    put_what(out, report, width);
    crash_view_put_facts(out, report, width);
    crash_view_put_steps(out, report, width);
    crash_view_put_frames(out, report, s, width);
}
