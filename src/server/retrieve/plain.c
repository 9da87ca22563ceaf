/* plain.c: text, Markdown and CSV in blocks; see plain.h. */
#include "retrieve/plain.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "formats/csv.h"

static const char *const TYPE_NAMES[] = {
#define PLAIN_NAME(e, name) [e] = name,
    PLAIN_TYPE_TABLE(PLAIN_NAME)
#undef PLAIN_NAME
};

const char *plain_type_name(plain_type t)
{
    return TYPE_NAMES[t];
}

bool plain_type_parse(const char *name, plain_type *ret)
{
    for (size_t i = 0; i < PLAIN_N_TYPES; i++) {
        if (strcmp(TYPE_NAMES[i], name) != 0) continue;
        *ret = (plain_type)i;
        return true;
    }
    return false;
}

bool plain_type_of(const char *path, plain_type *ret)
{
    static const struct {
        const char *ending;
        plain_type type;
    } ENDINGS[] = {
        {".txt", PLAIN_TEXT},    {".text", PLAIN_TEXT},         {".log", PLAIN_TEXT},  {".rst", PLAIN_TEXT},
        {".md", PLAIN_MARKDOWN}, {".markdown", PLAIN_MARKDOWN}, {".html", PLAIN_HTML}, {".htm", PLAIN_HTML},
        {".xhtml", PLAIN_HTML},  {".csv", PLAIN_CSV},           {".tsv", PLAIN_CSV},
    };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
        if (strcasecmp(dot, ENDINGS[i].ending) != 0) continue;
        *ret = ENDINGS[i].type;
        return true;
    }
    return false;
}

int plain_add(plain *p, const plain_block *b, shoal_err *err)
{
    if (b->start >= b->end) return 0;
    if (p->n >= PLAIN_BLOCKS_MAX)
        return err_set(err, SHOAL_ELIMIT,
                       "the document has more than %d paragraphs, headings or rows: split it",
                       PLAIN_BLOCKS_MAX);
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 64, bytes;
        plain_block *more = size_mul(cap, sizeof *more, &bytes) ? NULL : realloc(p->blocks, bytes);
        if (!more) return err_nomem(err);
        p->blocks = more;
        p->cap = cap;
    }
    p->blocks[p->n++] = *b;
    return 0;
}

void plain_done(plain *p)
{
    buf_done(&p->text);
    free(p->blocks);
    *p = (plain){0};
}

/* ---- text and Markdown: lines, where a blank one ends a block --------------------------------------- */

typedef struct lines {
    const char *s;
    size_t n, at;            /* what is read */
    size_t start, end, line; /* the line: without its end and blanks at it */
} lines;

static bool plain_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool next_line(lines *l)
{
    if (l->at >= l->n) return false;
    const char *nl = memchr(l->s + l->at, '\n', l->n - l->at);
    l->start = l->at;
    l->end = nl ? (size_t)(nl - l->s) : l->n;
    l->at = nl ? l->end + 1 : l->n;
    l->line++;
    while (l->end > l->start && plain_is_blank(l->s[l->end - 1])) l->end--;
    return true;
}

/* "## Title" is 2; 0: no heading. CommonMark 4.2. */
static unsigned heading_level(const char *s, size_t n)
{
    unsigned level = 0;
    while (level < n && s[level] == '#') level++;
    return level >= 1 && level <= 6 && level < n && (s[level] == ' ' || s[level] == '\t') ? level : 0;
}

/* A line of nothing but = or - under a line of text makes a heading of it (CommonMark 4.3). */
static unsigned underline_level(const char *s, size_t n)
{
    if (n < 2 || (*s != '=' && *s != '-')) return 0;
    for (size_t i = 1; i < n; i++)
        if (s[i] != *s) return 0;
    return *s == '=' ? 1 : 2;
}

static bool is_fence(const char *s, size_t n)
{
    return n >= 3 && (memcmp(s, "```", 3) == 0 || memcmp(s, "~~~", 3) == 0);
}

typedef struct text_reader {
    plain *p;
    plain_block open; /* end 0: none */
    size_t n_lines;   /* of it */
    bool fenced;
    shoal_err *err;
} text_reader;

static int close_block(text_reader *r)
{
    int rc = r->open.end ? plain_add(r->p, &r->open, r->err) : 0;
    r->open = (plain_block){0};
    r->n_lines = 0;
    return rc;
}

static int add_heading(text_reader *r, const lines *l, unsigned level)
{
    int rc = close_block(r);
    size_t start = l->start + level, end = l->end;
    while (start < end && plain_is_blank(l->s[start])) start++;
    while (end > start && l->s[end - 1] == '#') end--; /* "## Title ##" */
    while (end > start && plain_is_blank(l->s[end - 1])) end--;
    plain_block b = {start, end, l->line, BLOCK_HEADING, level};
    return rc == 0 ? plain_add(r->p, &b, r->err) : rc;
}

static int add_line(text_reader *r, const lines *l)
{
    if (!r->open.end) r->open = (plain_block){.start = l->start, .line = l->line};
    r->open.end = l->end;
    r->n_lines++;
    return 0;
}

static int take_markdown_line(text_reader *r, const lines *l)
{
    const char *s = l->s + l->start;
    size_t n = l->end - l->start;
    size_t indent = 0;
    while (indent < n && indent < 4 && s[indent] == ' ') indent++;
    if (is_fence(s + indent, n - indent)) r->fenced = !r->fenced;
    if (r->fenced) return n > 0 ? add_line(r, l) : 0;
    if (n == 0) return close_block(r);
    unsigned level = heading_level(s, n);
    if (level) return add_heading(r, l, level);
    level = r->n_lines == 1 ? underline_level(s, n) : 0;
    if (!level) return add_line(r, l);
    r->open.kind = BLOCK_HEADING;
    r->open.level = level;
    return close_block(r);
}

static int read_lines(plain *p, bool markdown, steps *steps, shoal_err *err)
{
    text_reader r = {.p = p, .err = err};
    lines l = {.s = p->text.data, .n = p->text.len};
    int rc = 0;
    while (rc == 0 && next_line(&l)) {
        rc = steps_add(steps, l.at - l.start, err);
        if (rc != 0) break;
        if (markdown)
            rc = take_markdown_line(&r, &l);
        else
            rc = l.end > l.start ? add_line(&r, &l) : close_block(&r);
    }
    return rc == 0 ? close_block(&r) : rc;
}

/* ---- CSV: a row a block ----------------------------------------------------------------------------- */

static void plain_put_name(buf *out, const char *name)
{
    size_t n = strnlen(name, PLAIN_CSV_NAME_MAX);
    buf_append(out, name, n - utf8_incomplete_tail(name, n));
    buf_puts(out, ": ");
}

static void plain_put_row(buf *out, const csv *c)
{
    bool first = true;
    for (size_t i = 0; i < csv_columns(c); i++) {
        const char *value = csv_field(c, i);
        if (!*value) continue;
        buf_puts(out, first ? "" : "; ");
        if (*csv_name(c, i)) plain_put_name(out, csv_name(c, i));
        buf_puts(out, value);
        first = false;
    }
}

static int add_row(plain *p, const csv *c, size_t n, const char *what, steps *steps, shoal_err *err)
{
    plain_block b = {.start = p->text.len, .line = csv_line(c), .kind = BLOCK_ROW};
    plain_put_row(&p->text, c);
    b.end = p->text.len;
    buf_putc(&p->text, '\n');
    if (p->text.failed) return err_nomem(err);
    if (b.end / PLAIN_CSV_GROWTH_MAX > n + (1 << 17))
        return err_set(err, SHOAL_ELIMIT,
                       "%s: with the names of their columns the rows are more than %d times as long as the "
                       "file: shorten the names in its header",
                       what, PLAIN_CSV_GROWTH_MAX);
    int rc = steps_add(steps, b.end - b.start, err);
    return rc == 0 ? plain_add(p, &b, err) : rc;
}

static int read_csv(plain *p, const char *bytes, size_t n, const char *what, steps *steps, shoal_err *err)
{
    csv *c = NULL;
    int rc = csv_over(&c, bytes, n, what, err), more = 0;
    if (rc == 0) csv_count(c, steps);
    while (rc == 0 && (more = csv_next(c, err)) == 1) rc = add_row(p, c, n, what, steps, err);
    csv_close(c);
    return rc == 0 && more < 0 ? more : rc;
}

/* ---- */

/* Bytes [at, at + n) of a file. */
static int check_part(const char *bytes, size_t at, size_t n, const char *what, shoal_err *err)
{
    const char *nul = memchr(bytes + at, 0, n);
    size_t bad;
    if (nul)
        return err_set(err, SHOAL_EFORMAT, "%s is no text: byte %zu is NUL", what, (size_t)(nul - bytes));
    if (!utf8_valid(bytes + at, n, &bad))
        return err_set(err, SHOAL_EFORMAT,
                       "%s is not in UTF-8: byte %zu begins no character; convert it (iconv -t UTF-8)", what,
                       at + bad);
    return 0;
}

static int check_text(const char *bytes, size_t n, const char *what, steps *steps, shoal_err *err)
{
    int rc = 0;
    for (size_t at = 0, part; rc == 0 && at < n; at += part) {
        part = n - at;
        if (part > STEPS_PER_CHECK)
            part = STEPS_PER_CHECK - utf8_incomplete_tail(bytes + at, STEPS_PER_CHECK);
        rc = check_part(bytes, at, part, what, err);
        if (rc == 0) rc = steps_add(steps, part, err);
    }
    return rc;
}

int plain_read(plain *ret, plain_type type, const char *bytes, size_t n, const char *what, steps *steps,
               shoal_err *err)
{
    if (n == 0) return 0;
    int rc = check_text(bytes, n, what, steps, err);
    if (rc != 0) return rc;
    if (type == PLAIN_CSV) return read_csv(ret, bytes, n, what, steps, err);
    if (type == PLAIN_HTML) return plain_read_html(ret, bytes, n, steps, err);
    if (buf_append(&ret->text, bytes, n) != 0) return err_nomem(err);
    if (n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        memcpy(ret->text.data, "   ", 3); /* a byte order mark */
    ret->as_it_was = true;
    return read_lines(ret, type == PLAIN_MARKDOWN, steps, err);
}
