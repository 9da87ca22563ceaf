/* piece.c: cutting at borders; see piece.h. */
#include "retrieve/piece.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* SENTENCE_LOOK: bytes behind a piece's end that decide where a sentence ends there: the longest mark has
 * three, and a blank must follow. */
enum { HEADINGS = 3, OVERLAP_UNITS = 32, SENTENCE_LOOK = 4 };

typedef struct unit { /* a sentence, or a part of one */
    size_t start, end, line;
} unit;

typedef struct cutter {
    pieces *out;
    const plain *p;
    size_t most, overlap;
    char headings[HEADINGS][PIECE_TITLE_MAX + 1]; /* the last of each level */
    unit last[OVERLAP_UNITS];                     /* of the open piece: a ring */
    size_t n_units;
    piece open;           /* end 0: none */
    size_t counted, line; /* lines up to byte `counted` of the block at hand */
    steps *steps;
    shoal_err *err;
} cutter;

void pieces_done(pieces *ps)
{
    free(ps->v);
    *ps = (pieces){0};
}

static int piece_put(cutter *c, const piece *one)
{
    pieces *ps = c->out;
    int rc = steps_add(c->steps, sizeof *one, c->err);
    if (rc != 0) return rc;
    if (ps->n == PIECES_MAX)
        return err_set(c->err, SHOAL_ELIMIT, "the document makes more than %d pieces: split it", PIECES_MAX);
    if (ps->n == ps->cap) {
        size_t cap = ps->cap ? 2 * ps->cap : 16, bytes;
        piece *more = size_mul(cap, sizeof *more, &bytes) ? NULL : realloc(ps->v, bytes);
        if (!more) return err_nomem(c->err);
        ps->v = more;
        ps->cap = cap;
    }
    ps->v[ps->n++] = *one;
    return 0;
}

/* ---- borders ---------------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

size_t piece_sentence_end(const char *s, size_t at, size_t end)
{
    for (size_t i = at; i < end; i++) {
        bool mark = s[i] == '.' || s[i] == '!' || s[i] == '?' || s[i] == ';';
        if (mark && (i + 1 == end || is_space(s[i + 1]))) return i + 1;
        if (s[i] == '\n' && i + 1 < end && (s[i + 1] == '-' || s[i + 1] == '*' || s[i + 1] == '|')) return i;
        if (i + 3 <= end && memcmp(s + i, "\xE3\x80\x82", 3) == 0)
            return i + 3; /* the ideographic full stop */
    }
    return end;
}

/* A long sentence is cut at the last blank that leaves at most `most` bytes, or at a character. */
static size_t short_end(const char *s, size_t at, size_t end, size_t most)
{
    if (end - at <= most) return end;
    size_t cut = at + most;
    for (size_t i = cut; i > at + most / 2; i--)
        if (is_space(s[i])) return i;
    while (cut > at + 1 && ((unsigned char)s[cut] & 0xC0) == 0x80) cut--;
    return cut;
}

/* ---- pieces ----------------------------------------------------------------------------------------- */

static size_t line_at(cutter *c, size_t at)
{
    for (; c->counted < at; c->counted++) c->line += c->p->text.data[c->counted] == '\n';
    return c->line;
}

static void set_title(cutter *c)
{
    size_t n = 0;
    *c->open.title = 0;
    for (size_t i = 0; i < HEADINGS; i++) {
        if (!*c->headings[i]) continue;
        int wrote =
            snprintf(c->open.title + n, sizeof c->open.title - n, "%s%s", n ? " > " : "", c->headings[i]);
        n += (size_t)wrote;
        if (n >= sizeof c->open.title) break;
    }
    n = strlen(c->open.title);
    c->open.title[n - utf8_incomplete_tail(c->open.title, n)] = 0;
}

static int close_piece(cutter *c)
{
    int rc = 0;
    if (c->open.end) {
        set_title(c);
        rc = piece_put(c, &c->open);
    }
    c->open = (piece){0};
    return rc;
}

/* The first of the last units that, up to the end of the open piece, fit into the overlap, and with `next`
 * into a piece; `next` itself when none does. */
static unit overlap_start(const cutter *c, unit next)
{
    unit from = next;
    for (size_t i = c->n_units; i > 0 && c->n_units - i < OVERLAP_UNITS; i--) {
        const unit *u = &c->last[(i - 1) % OVERLAP_UNITS];
        if (c->open.end - u->start > c->overlap || next.end - u->start > c->most) break;
        from = *u;
    }
    return from;
}

static int take_unit(cutter *c, unit u)
{
    int rc = 0;
    unit from = u;
    if (c->open.end && u.end - c->open.start > c->most) {
        from = overlap_start(c, u);
        rc = close_piece(c);
        c->n_units = 0;
    }
    if (!c->open.end) {
        c->open.start = from.start;
        c->open.line = from.line;
    }
    c->open.end = u.end;
    c->last[c->n_units++ % OVERLAP_UNITS] = u;
    return rc;
}

/* The unit at s[at]. Its sentence's end is looked for no further than a piece may reach: to look for it to the
 * end of the text, for each unit again, is quadratic where no sentence ends. */
static size_t unit_end(cutter *c, const char *s, size_t at, size_t end, int *ret_rc)
{
    size_t most = end - at > c->most + SENTENCE_LOOK ? at + c->most + SENTENCE_LOOK : end;
    size_t sentence = piece_sentence_end(s, at, most), cut = short_end(s, at, sentence, c->most);
    *ret_rc = steps_add(c->steps, sentence - at + (sentence - cut), c->err);
    return cut;
}

/* Blanks between units: behind them, or a part of them when they are many. */
static size_t skip_spaces(cutter *c, const char *s, size_t at, size_t end, int *ret_rc)
{
    size_t from = at;
    while (at < end && at - from < STEPS_PER_CHECK && is_space(s[at])) at++;
    *ret_rc = steps_add(c->steps, at - from, c->err);
    return at;
}

static int take_block(cutter *c, const plain_block *b)
{
    const char *s = c->p->text.data;
    int rc = 0;
    c->counted = b->start;
    c->line = b->line;
    for (size_t at = b->start; rc == 0 && at < b->end;) {
        if (is_space(s[at])) {
            at = skip_spaces(c, s, at, b->end, &rc);
            continue;
        }
        size_t end = unit_end(c, s, at, b->end, &rc);
        assert(end > at);
        if (rc == 0) rc = take_unit(c, (unit){at, end, c->p->as_it_was ? line_at(c, at) : b->line});
        at = end;
    }
    return rc;
}

static int take_heading(cutter *c, const plain_block *b)
{
    int rc = close_piece(c);
    size_t level = b->level < 1 ? 0 : b->level > HEADINGS ? HEADINGS - 1 : b->level - 1;
    snprintf(c->headings[level], sizeof *c->headings, "%.*s",
             (int)(b->end - b->start < PIECE_TITLE_MAX ? b->end - b->start : PIECE_TITLE_MAX),
             c->p->text.data + b->start);
    size_t n = strlen(c->headings[level]);
    c->headings[level][n - utf8_incomplete_tail(c->headings[level], n)] = 0;
    for (char *p = c->headings[level]; *p; p++)
        if (*p == '\n') *p = ' ';
    for (size_t i = level + 1; i < HEADINGS; i++) *c->headings[i] = 0;
    c->n_units = 0;
    return rc;
}

/* A heading with nothing under it but another, or the end, is a piece itself. */
static bool stands_alone(const plain *p, size_t i)
{
    return i + 1 == p->n ||
           (p->blocks[i + 1].kind == BLOCK_HEADING && p->blocks[i + 1].level <= p->blocks[i].level);
}

int pieces_cut(pieces *ret, const plain *p, size_t most, size_t overlap, steps *steps, shoal_err *err)
{
    assert(most >= PIECE_BYTES_MIN && most <= PIECE_BYTES_MAX && overlap < most / 2);
    cutter *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    *c = (cutter){.out = ret, .p = p, .most = most, .overlap = overlap, .steps = steps, .err = err};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n; i++) {
        const plain_block *b = &p->blocks[i];
        rc = steps_add(steps, 1, err);
        if (rc == 0 && b->kind == BLOCK_HEADING) rc = take_heading(c, b);
        if (rc == 0 && b->kind == BLOCK_ROW) rc = close_piece(c);
        if (b->kind == BLOCK_ROW) c->n_units = 0;
        if (rc == 0 && (b->kind != BLOCK_HEADING || stands_alone(p, i))) rc = take_block(c, b);
    }
    if (rc == 0) rc = close_piece(c);
    free(c);
    return rc;
}
