/* log_format.c: log lines for machines and for people. */
#define _GNU_SOURCE
#include "logging/log_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "base/number.h"
#include "logging/sanitise.h"

enum { INDENT = 4, ID_SHOWN = 8, VALUE_SHOWN = 32, VALUE_MIN = 12, COLUMNS_MIN = 40, LINE_USUAL = 500 };

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

static void log_format_put_text(buf *b, bool json, const char *s)
{
    if (json || needs_quotes(s))
        json_put_string(b, s, strlen(s));
    else
        buf_puts(b, s);
}

static void log_format_put_number(buf *b, double x, int digits, const char *not_finite)
{
    if (isfinite(x))
        number_put(b, x, digits);
    else
        buf_puts(b, not_finite);
}

/* ---- for machines ------------------------------------------------------------------------------------- */

static void put_pair(buf *b, bool json, const log_field *f)
{
    if (json) {
        buf_puts(b, ",\""); /* keys are names in the source: nothing in them is escaped */
        buf_puts(b, f->key);
        buf_puts(b, "\":");
    } else {
        buf_putc(b, ' ');
        buf_puts(b, f->key);
        buf_putc(b, '=');
    }
    switch (f->kind) {
    case LOG_KIND_INT: number_put_i64(b, f->i); break;
    case LOG_KIND_NUM: log_format_put_number(b, f->f, 6, json ? "null" : "nan"); break;
    case LOG_KIND_STR: log_format_put_text(b, json, f->s ? f->s : ""); break;
    }
}

/* 2026-11-21T02:25:42.123Z; a second's lines have all but the thousandths in common. */
static void put_stamp(buf *b, const struct timespec *at)
{
    static _Thread_local struct {
        time_t second;
        size_t len; /* 0: none yet */
        char text[32];
    } last;
    struct tm tm;
    unsigned ms = (unsigned)(at->tv_nsec / 1000000);
    if (!last.len || last.second != at->tv_sec) {
        gmtime_r(&at->tv_sec, &tm);
        last.len = strftime(last.text, sizeof last.text, "%Y-%m-%dT%H:%M:%S", &tm);
        last.second = at->tv_sec;
    }
    buf_append(b, last.text, last.len);
    buf_append(
        b, (char[]){'.', (char)('0' + ms / 100 % 10), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z'},
        5);
}

static void format_line(buf *b, bool json, const log_event *e)
{
    buf_reserve(b, LINE_USUAL);
    buf_puts(b, json ? "{\"time\":\"" : "time=");
    put_stamp(b, &e->at);
    buf_puts(b, json ? "\",\"level\":\"" : " level=");
    buf_puts(b, log_level_name(e->level));
    if (json) buf_putc(b, '"');
    put_pair(b, json, &LOG_S("component", e->component));
    put_pair(b, json, &LOG_S("event", e->event));
    for (size_t i = 0; i < e->n_fields; i++) put_pair(b, json, &e->fields[i]);
    buf_puts(b, json ? "}\n" : "\n");
}

void log_format_value(buf *out, const log_field *f)
{
    switch (f->kind) {
    case LOG_KIND_INT: number_put_i64(out, f->i); break;
    case LOG_KIND_NUM: log_format_put_number(out, f->f, 6, "nan"); break;
    case LOG_KIND_STR: buf_puts(out, f->s ? f->s : ""); break;
    }
}

void log_format_message(buf *out, const log_event *e)
{
    buf_puts(out, e->component);
    buf_putc(out, ' ');
    buf_puts(out, e->event);
    for (size_t i = 0; i < e->n_fields; i++) put_pair(out, false, &e->fields[i]);
}

/* ---- for a person ------------------------------------------------------------------------------------- */

static const char DIM[] = "\033[2m", BOLD[] = "\033[1m", PLAIN[] = "";

typedef struct rows { /* of a terminal */
    buf *out;
    size_t at, columns;
    bool colour, left_out; /* something found no room */
} rows;

/* Columns of UTF-8 text, a code point each. */
static size_t columns_of(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] & 0xC0) != 0x80;
    return columns;
}

/* Bytes of the first so many columns of s[n]. */
static size_t bytes_of(const char *s, size_t n, size_t columns)
{
    size_t i = 0;
    for (; i < n; i++)
        if (((unsigned char)s[i] & 0xC0) != 0x80 && columns-- == 0) break;
    return i;
}

static void log_format_put(rows *r, const char *style, const char *s, size_t n)
{
    bool styled = r->colour && *style;
    if (styled) buf_puts(r->out, style);
    buf_append(r->out, s, n);
    if (styled) buf_puts(r->out, "\033[0m");
    r->at += columns_of(s, n);
}

static void put_space(rows *r)
{
    if (r->at) log_format_put(r, PLAIN, " ", 1);
}

/* s[n] in at most so many columns: what is longer loses its middle. */
static void put_short(rows *r, const char *style, const char *s, size_t n, size_t most)
{
    size_t width = columns_of(s, n);
    if (width <= most) {
        log_format_put(r, style, s, n);
        return;
    }
    size_t tail = (most - 1) / 2, head = most - 1 - tail;
    size_t from = bytes_of(s, n, width - tail);
    buf b = {0};
    buf_append(&b, s, bytes_of(s, n, head));
    buf_puts(&b, "…");
    buf_append(&b, s + from, n - from);
    if (!b.failed) log_format_put(r, style, b.data, b.len);
    r->out->failed |= b.failed;
    buf_done(&b);
}

/* What the lines of a pipe hold for whoever reads them with a program. */
static bool is_for_machines(const log_field *f)
{
    static const char *const keys[] = {"version",  "quantisation",  "digest",    "isa",
                                       "queue_ms", "cached_tokens", "generation"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(f->key, keys[i]) == 0) return true;
    return f->kind == LOG_KIND_STR && (!f->s || !*f->s);
}

static bool is_sentence(const log_field *f)
{
    return f->kind == LOG_KIND_STR && f->s && strchr(f->s, ' ');
}

static bool is_id(const log_field *f)
{
    size_t n = strlen(f->key);
    return n >= 2 && strcmp(f->key + n - 2, "id") == 0 && (n == 2 || f->key[n - 3] == '_');
}

/* What JSON lets through and a terminal obeys: DEL, and the controls of U+0080 to U+009F. */
static void disarm(buf *b)
{
    b->len = sanitise_bytes(b->data, b->len, "");
    if (b->data) b->data[b->len] = '\0';
}

static void put_plain_value(buf *word, const log_field *f)
{
    switch (f->kind) {
    case LOG_KIND_INT: buf_printf(word, "%lld", (long long)f->i); break;
    case LOG_KIND_NUM: log_format_put_number(word, f->f, 3, "nan"); break;
    case LOG_KIND_STR: log_format_put_text(word, false, f->s); break;
    }
    disarm(word);
}

/* Values that speak for themselves stand without their key. */
static bool is_bare(const log_field *f)
{
    static const char *const keys[] = {"endpoint", "status", "model", "replica", "state"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(f->key, keys[i]) == 0) return !is_sentence(f);
    return false;
}

static void put_key(rows *r, const char *key)
{
    buf_printf(r->out, "%s%s=%s", r->colour ? DIM : "", key, r->colour ? "\033[0m" : "");
    r->at += strlen(key) + 1;
}

/* key=value behind what stands in the row, if there is room; a sentence takes what there is. */
static void log_format_put_field(rows *r, const log_field *f)
{
    bool time = strcmp(f->key, "ms") == 0; /* 16.4 ms */
    size_t key = time ? strlen(" ms") : is_bare(f) ? 0 : strlen(f->key) + 1;
    size_t most = is_id(f) ? ID_SHOWN : is_sentence(f) ? r->columns : VALUE_SHOWN;
    buf word = {0};
    put_plain_value(&word, f);
    if (is_id(f) && word.len > ID_SHOWN) word.len = ID_SHOWN; /* its beginning is what people compare */
    size_t width = columns_of(word.data, word.len), room = r->columns - 2; /* for the mark behind all */
    size_t used = r->at + 1 + key;
    if (width > most) width = most;
    bool shrinks = f->kind == LOG_KIND_STR && !is_id(f) && used + VALUE_MIN <= room;
    if (shrinks && used + width > room) width = room - used;
    if (word.failed || used + width > room) {
        r->left_out = true;
    } else {
        put_space(r);
        if (key && !time) put_key(r, f->key);
        if (is_sentence(f) && columns_of(word.data, word.len) > room - used) {
            log_format_put(r, PLAIN, word.data, bytes_of(word.data, word.len, room - used - 1));
            log_format_put(r, PLAIN, "…", sizeof "…" - 1);
        } else {
            put_short(r, is_id(f) ? DIM : PLAIN, word.data, word.len, width);
        }
        if (time) log_format_put(r, DIM, " ms", 3);
    }
    r->out->failed |= word.failed;
    buf_done(&word);
}

/* What a person is to do something about stands whole, in rows below. */
static void put_below(rows *r, const log_field *f)
{
    buf text = {0};
    buf_printf(&text, "%s: ", f->key);
    size_t head = text.len;
    log_format_put_text(&text, true, f->s);
    disarm(&text);
    if (!text.failed) { /* without the quotes, whose escapes stay */
        memmove(text.data + head, text.data + head + 1, text.len - head - 2);
        text.len -= 2;
    }
    r->at = r->columns;
    for (size_t i = 0; i < text.len && !text.failed;) {
        const char *space = memchr(text.data + i, ' ', text.len - i);
        size_t n = space ? (size_t)(space - text.data) - i : text.len - i;
        if (r->at + 1 + columns_of(text.data + i, n) > r->columns) {
            buf_printf(r->out, "\n%*s", INDENT, "");
            r->at = INDENT;
        } else {
            put_space(r);
        }
        put_short(r, PLAIN, text.data + i, n, r->columns - r->at);
        i += n + 1;
    }
    r->out->failed |= text.failed;
    buf_done(&text);
}

static void put_head(rows *r, const log_event *e)
{
    static const char *const NAMES[] = {"DEBUG", "INFO ", "WARN ", "ERROR", "     "};
    static const char *const STYLES[] = {DIM, "\033[36m", "\033[33m", "\033[1;31m", PLAIN};
    struct tm tm;
    char head[48];
    localtime_r(&e->at.tv_sec, &tm);
    size_t len = strftime(head, sizeof head, "%H:%M:%S", &tm);
    snprintf(head + len, sizeof head - len, ".%03ld", e->at.tv_nsec / 1000000);
    log_format_put(r, DIM, head, strlen(head));
    put_space(r);
    log_format_put(r, STYLES[e->level], NAMES[e->level], 5);
    put_space(r);
    size_t room = r->columns - r->at - 1;
    put_short(r, PLAIN, e->component, strlen(e->component), room / 3);
    put_space(r);
    put_short(r, BOLD, e->event, strlen(e->event), room / 2);
}

static void format_rows(buf *b, size_t columns, const log_event *e)
{
    rows r = {.out = b, .columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns, .colour = e->colour};
    bool grave = e->level >= LOG_WARN;
    put_head(&r, e);
    for (size_t i = 0; i < e->n_fields; i++)
        if (!is_for_machines(&e->fields[i]) && !is_sentence(&e->fields[i]))
            log_format_put_field(&r, &e->fields[i]);
    for (size_t i = 0; i < e->n_fields && !grave; i++)
        if (is_sentence(&e->fields[i])) log_format_put_field(&r, &e->fields[i]);
    if (r.left_out) log_format_put(&r, DIM, " …", sizeof " …" - 1);
    for (size_t i = 0; i < e->n_fields && grave; i++)
        if (is_sentence(&e->fields[i])) put_below(&r, &e->fields[i]);
    buf_putc(b, '\n');
}

void log_format(buf *out, log_form form, size_t columns, const log_event *e)
{
    if (form == LOG_FORM_TERMINAL)
        format_rows(out, columns, e);
    else
        format_line(out, form == LOG_FORM_JSON, e);
}
