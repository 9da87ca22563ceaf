/* fold.c: see fold.h. */
#include "logging/fold.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "logging/sanitise.h"

enum { TAB_COLUMNS = 8 };

static void put_spaces(buf *out, size_t n)
{
    while (n-- > 0) buf_putc(out, ' ');
}

static void start_row(fold *f, buf *out)
{
    buf_putc(out, '\n');
    f->at = f->gap = 0;
}

/* The first n bytes that are held, as one word. */
static void put_held(fold *f, buf *out)
{
    if (f->n_read == 0) return;
    if (f->width && !f->runs && f->at > 0 && f->at + f->gap + f->columns > f->width) {
        start_row(f, out);
        f->gap = f->indent;
    }
    if (f->at == 0) f->gap += f->margin;
    put_spaces(out, f->gap);
    buf_append(out, f->held.data, f->n_read);
    buf_consume(&f->held, f->n_read);
    f->at += f->gap + f->columns;
    f->gap = f->n_read = f->columns = 0;
    f->wide = false;
}

/* Marks that close or separate stay with the character before them. */
static bool closes(uint32_t cp)
{
    static const uint32_t marks[] = {0x3001, 0x3002, 0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0xFF01,
                                     0xFF09, 0xFF0C, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0x30FC};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i] == cp) return true;
    return false;
}

/* The character of n bytes that stands behind those which were read. */
static void fold_take(fold *f, buf *out, uint32_t cp, size_t n)
{
    size_t columns = utf8_columns(f->held.data + f->n_read, n);
    bool wide = columns == 2;
    if (cp == '\n' || cp == ' ' || cp == '\t') {
        put_held(f, out);
        buf_consume(&f->held, n);
        f->runs = false;
        if (cp == '\n') start_row(f, out);
        if (cp == ' ') f->gap++;
        if (cp == '\t') f->gap += TAB_COLUMNS - (f->at + f->gap) % TAB_COLUMNS;
        return;
    }
    if ((wide && !closes(cp)) || (f->wide && cp < 0x80 && isalnum((int)cp))) {
        put_held(f, out);
        f->runs = false;
    }
    f->n_read += n;
    f->columns += columns;
    if (columns) f->wide = wide;
    if (f->width && f->columns > f->width) {
        put_held(f, out);
        f->runs = true;
    }
}

void fold_put(fold *f, buf *out, const char *s, size_t n)
{
    buf_append(&f->held, s, n);
    while (!f->held.failed && f->n_read < f->held.len) {
        uint32_t cp = 0;
        size_t left = f->held.len - f->n_read, len = utf8_decode(f->held.data + f->n_read, left, &cp);
        if (len == 0 && utf8_incomplete_tail(f->held.data, f->held.len) == left) break;
        fold_take(f, out, len ? cp : 0xFFFD, len ? len : 1);
    }
    out->failed |= f->held.failed;
}

void fold_end(fold *f, buf *out)
{
    f->columns += f->held.len - f->n_read; /* of a character that was never completed */
    f->n_read = f->held.len;
    put_held(f, out);
    out->failed |= f->held.failed;
    buf_done(&f->held);
    *f = (fold){.width = f->width, .margin = f->margin, .indent = f->indent};
}

void fold_line(buf *out, size_t from, size_t width, size_t indent)
{
    fold f = {.width = width, .indent = indent};
    buf line = {0};
    if (out->failed) return;
    sanitise_put(&line, out->data + from, out->len - from, "");
    out->len = from;
    if (!line.failed) fold_put(&f, out, line.data, line.len);
    fold_end(&f, out);
    buf_putc(out, '\n');
    out->failed |= line.failed;
    buf_done(&line);
}
