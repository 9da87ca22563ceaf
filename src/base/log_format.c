/* log_format.c: log lines for machines and for people. */
#define _GNU_SOURCE
#include "base/log_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { INDENT = 4, ID_SHOWN = 8, COLUMNS_MIN = 40 };

const char *log_level_name(log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error", "off"};
    return names[level];
}

static bool needs_quotes(const char *s)
{
    if (!*s) return true;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == '\\') return true;
    return false;
}

static void put_text(buf *b, bool json, const char *s)
{
    if (json || needs_quotes(s))
        json_put_string(b, s, strlen(s));
    else
        buf_puts(b, s);
}

static void put_number(buf *b, double x, int digits, const char *not_finite)
{
    if (isfinite(x))
        buf_printf(b, "%.*g", digits, x);
    else
        buf_puts(b, not_finite);
}

/* ---- for machines ------------------------------------------------------------------------------------- */

static void put_pair(buf *b, bool json, const log_field *f)
{
    if (json) {
        buf_putc(b, ',');
        json_put_string(b, f->key, strlen(f->key));
        buf_putc(b, ':');
    } else {
        buf_printf(b, " %s=", f->key);
    }
    switch (f->kind) {
    case LOG_KIND_INT: buf_printf(b, "%lld", (long long)f->i); break;
    case LOG_KIND_NUM: put_number(b, f->f, 6, json ? "null" : "nan"); break;
    case LOG_KIND_STR: put_text(b, json, f->s ? f->s : ""); break;
    }
}

static void format_line(buf *b, bool json, const log_event *e)
{
    struct tm tm;
    char stamp[48];
    gmtime_r(&e->at.tv_sec, &tm);
    size_t len = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp + len, sizeof stamp - len, ".%03ldZ", e->at.tv_nsec / 1000000);
    if (json)
        buf_printf(b, "{\"time\":\"%s\",\"level\":\"%s\"", stamp, log_level_name(e->level));
    else
        buf_printf(b, "time=%s level=%s", stamp, log_level_name(e->level));
    put_pair(b, json, &LOG_S("component", e->component));
    put_pair(b, json, &LOG_S("event", e->event));
    for (size_t i = 0; i < e->n_fields; i++) put_pair(b, json, &e->fields[i]);
    buf_puts(b, json ? "}\n" : "\n");
}

/* ---- for a person ------------------------------------------------------------------------------------- */

typedef struct rows { /* of a terminal */
    buf *out;
    size_t at, columns;
} rows;

/* Columns of UTF-8 text, a code point each. */
static size_t columns_of(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] & 0xC0) != 0x80;
    return columns;
}

/* One word behind a space, or on a new row; what is wider than a row is cut. */
static void put_word(rows *r, const char *s, size_t n)
{
    size_t width = columns_of(s, n);
    if (r->at && r->at + 1 + width > r->columns) {
        buf_printf(r->out, "\n%*s", INDENT, "");
        r->at = INDENT;
    } else if (r->at) {
        buf_putc(r->out, ' ');
        r->at++;
    }
    bool cut = r->at + width > r->columns;
    for (size_t left = cut ? r->columns - r->at - 1 : width, i = 0; i < n; i++) {
        bool starts = ((unsigned char)s[i] & 0xC0) != 0x80;
        if (starts && left-- == 0) break;
        buf_putc(r->out, s[i]);
    }
    if (cut) buf_puts(r->out, "…");
    r->at += cut ? r->columns - r->at : width;
}

/* What the lines of a pipe hold for whoever reads them with a program. */
static bool is_for_machines(const log_field *f)
{
    static const char *const keys[] = {"version", "quantisation", "digest",
                                       "isa",     "queue_ms",     "cached_tokens"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(f->key, keys[i]) == 0) return true;
    return f->kind == LOG_KIND_STR && (!f->s || !*f->s);
}

/* Sentences break between words; other values stay whole. */
static void put_value(rows *r, buf *word, const log_field *f)
{
    bool sentence = f->kind == LOG_KIND_STR && strchr(f->s, ' ');
    size_t start = 0;
    for (size_t i = 0; sentence && i < word->len; i++) {
        if (word->data[i] != ' ') continue;
        put_word(r, word->data + start, i - start);
        start = i + 1;
    }
    put_word(r, word->data + start, word->len - start);
}

static void put_field(rows *r, const log_field *f)
{
    if (is_for_machines(f)) return;
    buf word = {0};
    buf_printf(&word, "%s=", f->key);
    bool id = f->kind == LOG_KIND_STR && strcmp(f->key, "request_id") == 0 && strlen(f->s) > ID_SHOWN;
    switch (f->kind) {
    case LOG_KIND_INT: buf_printf(&word, "%lld", (long long)f->i); break;
    case LOG_KIND_NUM: put_number(&word, f->f, 3, "nan"); break;
    case LOG_KIND_STR: put_text(&word, false, f->s); break;
    }
    if (id && !word.failed) word.len = strlen(f->key) + 1 + ID_SHOWN;
    if (!word.failed) put_value(r, &word, f);
    r->out->failed |= word.failed;
    buf_done(&word);
}

/* Levels that a person should notice. */
static void put_level(rows *r, const log_event *e)
{
    if (e->level < LOG_WARN) return;
    bool warn = e->level == LOG_WARN;
    if (e->colour) buf_puts(r->out, warn ? "\033[33m" : "\033[31m");
    put_word(r, warn ? "WARN" : "ERROR", warn ? 4 : 5);
    if (e->colour) buf_puts(r->out, "\033[0m");
}

static void format_rows(buf *b, size_t columns, const log_event *e)
{
    struct tm tm;
    char head[160];
    rows r = {.out = b, .columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns};
    localtime_r(&e->at.tv_sec, &tm);
    size_t len = strftime(head, sizeof head, "%H:%M:%S", &tm);
    snprintf(head + len, sizeof head - len, ".%03ld", e->at.tv_nsec / 1000000);
    put_word(&r, head, strlen(head));
    put_level(&r, e);
    put_word(&r, e->component, strlen(e->component));
    put_word(&r, e->event, strlen(e->event));
    for (size_t i = 0; i < e->n_fields; i++) put_field(&r, &e->fields[i]);
    buf_putc(b, '\n');
}

void log_format(buf *out, log_form form, size_t columns, const log_event *e)
{
    if (form == LOG_FORM_TERMINAL)
        format_rows(out, columns, e);
    else
        format_line(out, form == LOG_FORM_JSON, e);
}
