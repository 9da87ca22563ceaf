/* csv.c: see csv.h. One row's text is kept in `row`, fields NUL-terminated and found by `starts`. */
#include "formats/csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/progress.h"
#include "formats/gz.h"

struct csv {
    gz *file; /* NULL: text is all there is */
    const char *what;
    const char *text; /* what is not read yet lies in text[at .. n) */
    size_t at, n;
    char chunk[16384];
    bool ended;
    char separator; /* 0 until the header is read */
    size_t line, row_line;
    buf row, starts; /* size_t offsets into row */
    buf header, names;
    steps *steps; /* NULL: nobody counts */
    cancel_check cancel;
};

/* ---- bytes --------------------------------------------------------------------------------------------- */

/* The next byte without taking it, -1 at the end; *rc is set on failure. */
static int csv_peek(csv *c, int *rc, shoal_err *err)
{
    if (c->at == c->n && c->file && !c->ended && *rc == 0) {
        *rc = gz_take(c->file, c->chunk, sizeof c->chunk, &c->n, err);
        c->text = c->chunk;
        c->at = 0;
        if (*rc != 0) c->n = 0;
        c->ended = c->n == 0;
    }
    return c->at < c->n && *rc == 0 ? (unsigned char)c->text[c->at] : -1;
}

static int csv_fail(const csv *c, int code, const char *what, shoal_err *err)
{
    return err_set(err, code, "%s: line %zu, column %zu: %s", c->what, c->line,
                   c->starts.len / sizeof(size_t), what);
}

static int csv_put(csv *c, char byte, shoal_err *err)
{
    if (c->row.len >= CSV_ROW_MAX) return csv_fail(c, SHOAL_ELIMIT, "the row is longer than 1 MB", err);
    return buf_putc(&c->row, byte) != 0 ? err_nomem(err) : 0;
}

/* The run of ordinary bytes that lies in the chunk, at once. */
static int put_run(csv *c, shoal_err *err)
{
    const char *from = c->text + c->at, *end = c->text + c->n, *p = from;
    while (p < end && *p != ',' && *p != ';' && *p != '\t' && *p != '"' && *p != '\r' && *p != '\n' && *p)
        p++;
    size_t n = (size_t)(p - from);
    if (n > CSV_ROW_MAX - c->row.len) return csv_fail(c, SHOAL_ELIMIT, "the row is longer than 1 MB", err);
    c->at += n;
    return buf_append(&c->row, from, n) != 0 ? err_nomem(err) : 0;
}

static int begin_field(csv *c, shoal_err *err)
{
    size_t start = c->row.len;
    if (c->starts.len / sizeof start >= CSV_FIELDS_MAX)
        return csv_fail(c, SHOAL_ELIMIT, "the row has more than 65536 fields", err);
    return buf_append(&c->starts, &start, sizeof start) != 0 ? err_nomem(err) : 0;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

/* The next byte; the CR of a CRLF is stepped over, so that lines end in LF or in the file's end. */
static int peek_text(csv *c, int *rc, shoal_err *err)
{
    int b = csv_peek(c, rc, err);
    if (b == 0) *rc = csv_fail(c, SHOAL_EFORMAT, "a NUL byte: this is no text", err);
    if (b != '\r') return b;
    c->at++;
    b = csv_peek(c, rc, err);
    if (b >= 0 && b != '\n') *rc = csv_fail(c, SHOAL_EFORMAT, "a carriage return without a line feed", err);
    return b;
}

static bool separates(csv *c, int b)
{
    if (!c->separator && (b == ',' || b == ';' || b == '\t')) c->separator = (char)b;
    return b == c->separator && b > 0;
}

/* Behind an opening quote: up to the closing one. */
static int take_quoted(csv *c, shoal_err *err)
{
    int rc = 0;
    size_t opened = c->line;
    for (;;) {
        int b = csv_peek(c, &rc, err);
        if (rc != 0) return rc;
        if (b < 0) {
            c->line = opened;
            return csv_fail(c, SHOAL_EFORMAT, "a quote is opened here and never closed", err);
        }
        c->at++;
        if (b == '"') {
            if (csv_peek(c, &rc, err) != '"') return rc;
            c->at++;
        }
        c->line += b == '\n';
        if (b == 0) return csv_fail(c, SHOAL_EFORMAT, "a NUL byte: this is no text", err);
        rc = csv_put(c, (char)b, err);
        if (rc != 0) return rc;
    }
}

/* One field with what ends it; *ret_more: another follows on the line. */
static int take_field(csv *c, bool *ret_more, shoal_err *err)
{
    int rc = begin_field(c, err), b = rc == 0 ? csv_peek(c, &rc, err) : -1;
    bool quoted = b == '"';
    if (quoted) {
        c->at++;
        rc = take_quoted(c, err);
    }
    while (rc == 0) {
        b = peek_text(c, &rc, err);
        if (rc != 0 || separates(c, b) || b == '\n' || b < 0) break;
        if (quoted) return csv_fail(c, SHOAL_EFORMAT, "text behind a closing quote", err);
        if (b == '"')
            return csv_fail(c, SHOAL_EFORMAT, "a quote within a field that does not begin with one", err);
        c->at++;
        rc = csv_put(c, (char)b, err);
        if (rc == 0) rc = put_run(c, err);
    }
    if (rc != 0) return rc;
    *ret_more = separates(c, b);
    if (b >= 0) c->at++;
    c->line += b >= 0 && !*ret_more;
    return buf_putc(&c->row, '\0') != 0 ? err_nomem(err) : 0;
}

/* A row into row and starts: 1, 0 at the end, or a negative code. */
static int take_row(csv *c, shoal_err *err)
{
    for (;;) {
        int rc = 0;
        bool more = true;
        buf_clear(&c->row);
        buf_clear(&c->starts);
        c->row_line = c->line;
        if (csv_peek(c, &rc, err) < 0) return rc;
        while (rc == 0 && more) rc = take_field(c, &more, err);
        if (rc == 0) rc = steps_add(c->steps, c->row.len, err);
        if (rc != 0) return rc;
        progress_add(16 * c->row.len);
        if (c->row.len > 1 || c->starts.len > sizeof(size_t)) return 1; /* else a blank line */
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static void skip_mark(csv *c)
{
    int rc = 0;
    shoal_err err;
    if (csv_peek(c, &rc, &err) == 0xEF && c->n - c->at >= 3 &&
        memcmp(c->text + c->at, "\xEF\xBB\xBF", 3) == 0)
        c->at += 3;
}

static int read_header(csv *c, shoal_err *err)
{
    skip_mark(c);
    int rc = take_row(c, err);
    if (rc == 0) return err_set(err, SHOAL_EFORMAT, "%s: empty: a header line is wanted", c->what);
    if (rc < 0) return rc;
    if (!c->separator) c->separator = ',';
    c->header = c->row;
    c->names = c->starts;
    c->row = c->starts = (buf){0};
    return 0;
}

static int finish_open(csv *c, csv **ret, shoal_err *err)
{
    c->line = 1;
    int rc = read_header(c, err);
    if (rc != 0)
        csv_close(c);
    else
        *ret = c;
    return rc;
}

int csv_open(csv **ret, const char *path, shoal_err *err)
{
    csv *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->what = path;
    int rc = gz_open(&c->file, path, err);
    if (rc == 0) return finish_open(c, ret, err);
    csv_close(c);
    return rc;
}

int csv_over(csv **ret, const char *text, size_t n, const char *what, shoal_err *err)
{
    csv *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->what = what;
    c->text = text;
    c->n = n;
    return finish_open(c, ret, err);
}

void csv_close(csv *c)
{
    if (!c) return;
    gz_close(c->file);
    buf_done(&c->row);
    buf_done(&c->starts);
    buf_done(&c->header);
    buf_done(&c->names);
    free(c);
}

void csv_count(csv *c, steps *steps)
{
    c->steps = steps;
}

size_t csv_columns(const csv *c)
{
    return c->names.len / sizeof(size_t);
}

const char *csv_name(const csv *c, size_t column)
{
    return c->header.data + ((const size_t *)(const void *)c->names.data)[column];
}

long csv_column(const csv *c, const char *name)
{
    for (size_t i = 0; i < csv_columns(c); i++)
        if (strcmp(csv_name(c, i), name) == 0) return (long)i;
    return -1;
}

void csv_set_cancel(csv *c, const cancel_check *cancel)
{
    c->cancel = *cancel;
}

const cancel_check *csv_get_cancel(const csv *c)
{
    return &c->cancel;
}

int csv_next(csv *c, shoal_err *err)
{
    int rc = cancel_ask(&c->cancel, err);
    if (rc == 0) rc = take_row(c, err);
    if (rc != 1) return rc;
    size_t n = c->starts.len / sizeof(size_t);
    if (n != csv_columns(c))
        return err_set(err, SHOAL_EFORMAT, "%s: line %zu: %zu fields, but the header has %zu", c->what,
                       c->row_line, n, csv_columns(c));
    return 1;
}

const char *csv_field(const csv *c, size_t column)
{
    return c->row.data + ((const size_t *)(const void *)c->starts.data)[column];
}

size_t csv_line(const csv *c)
{
    return c->row_line;
}

static bool is_missing(const char *s)
{
    static const char *const words[] = {"", "nan", "na", "null", "none"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(s, words[i]) == 0) return true;
    return false;
}

/* Digits, sign, point and exponent alone: strtod would also read "0x10" and "inf". */
int csv_number(const csv *c, size_t column, double *ret, shoal_err *err)
{
    const char *s = csv_field(c, column);
    while (*s == ' ') s++;
    size_t n = strlen(s);
    while (n && s[n - 1] == ' ') n--;
    if (n == 0 || is_missing(s)) {
        *ret = NAN;
        return 0;
    }
    char *stop = NULL;
    double v = strspn(s, "+-.0123456789eE") >= n ? strtod(s, &stop) : 0;
    if (stop != s + n || !isfinite(v))
        return err_set(err, SHOAL_EFORMAT, "%s: line %zu, column %zu (%.60s): \"%.60s\" is no number",
                       c->what, c->row_line, column + 1, csv_name(c, column), s);
    *ret = v;
    return 0;
}
