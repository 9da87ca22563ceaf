/* plain_html.c: the words of an HTML page, in blocks. One pass, no tree; what is malformed is text or
 * nothing. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "retrieve/plain.h"

typedef struct reader {
    plain *p;
    const char *s;
    size_t n, at, line;
    plain_block open;
    bool began; /* open has words */
    bool space; /* between the last word and the next */
    steps *steps;
    size_t counted; /* bytes before it are in `steps` */
    shoal_err *err;
} reader;

/* What a tag does to the text around it. */
typedef enum { TAG_INLINE, TAG_BLOCK, TAG_BREAK, TAG_CELL, TAG_HEADING, TAG_HIDDEN } tag_kind;

static const struct {
    const char *name;
    tag_kind kind;
} TAGS[] = {
    {"address", TAG_BLOCK},  {"article", TAG_BLOCK},    {"aside", TAG_BLOCK},     {"blockquote", TAG_BLOCK},
    {"body", TAG_BLOCK},     {"br", TAG_BREAK},         {"caption", TAG_BLOCK},   {"dd", TAG_BLOCK},
    {"details", TAG_BLOCK},  {"div", TAG_BLOCK},        {"dl", TAG_BLOCK},        {"dt", TAG_BLOCK},
    {"fieldset", TAG_BLOCK}, {"figcaption", TAG_BLOCK}, {"figure", TAG_BLOCK},    {"footer", TAG_BLOCK},
    {"form", TAG_BLOCK},     {"h1", TAG_HEADING},       {"h2", TAG_HEADING},      {"h3", TAG_HEADING},
    {"h4", TAG_HEADING},     {"h5", TAG_HEADING},       {"h6", TAG_HEADING},      {"head", TAG_BLOCK},
    {"header", TAG_BLOCK},   {"hr", TAG_BLOCK},         {"li", TAG_BLOCK},        {"main", TAG_BLOCK},
    {"nav", TAG_BLOCK},      {"noscript", TAG_BLOCK},   {"ol", TAG_BLOCK},        {"option", TAG_BLOCK},
    {"p", TAG_BLOCK},        {"pre", TAG_BLOCK},        {"script", TAG_HIDDEN},   {"section", TAG_BLOCK},
    {"style", TAG_HIDDEN},   {"summary", TAG_BLOCK},    {"svg", TAG_HIDDEN},      {"table", TAG_BLOCK},
    {"tbody", TAG_BLOCK},    {"td", TAG_CELL},          {"template", TAG_HIDDEN}, {"tfoot", TAG_BLOCK},
    {"th", TAG_CELL},        {"thead", TAG_BLOCK},      {"title", TAG_HEADING},   {"tr", TAG_BLOCK},
    {"ul", TAG_BLOCK},
};

/* ---- entities --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t cp;
} ENTITIES[] = {
    {"amp", '&'},      {"lt", '<'},        {"gt", '>'},       {"quot", '"'},     {"apos", '\''},
    {"nbsp", ' '},     {"shy", 0xAD},      {"copy", 0xA9},    {"reg", 0xAE},     {"deg", 0xB0},
    {"plusmn", 0xB1},  {"sup2", 0xB2},     {"sup3", 0xB3},    {"micro", 0xB5},   {"middot", 0xB7},
    {"laquo", 0xAB},   {"raquo", 0xBB},    {"frac12", 0xBD},  {"times", 0xD7},   {"szlig", 0xDF},
    {"auml", 0xE4},    {"ouml", 0xF6},     {"uuml", 0xFC},    {"Auml", 0xC4},    {"Ouml", 0xD6},
    {"Uuml", 0xDC},    {"agrave", 0xE0},   {"aacute", 0xE1},  {"acirc", 0xE2},   {"aring", 0xE5},
    {"aelig", 0xE6},   {"ccedil", 0xE7},   {"egrave", 0xE8},  {"eacute", 0xE9},  {"ecirc", 0xEA},
    {"euml", 0xEB},    {"igrave", 0xEC},   {"iacute", 0xED},  {"icirc", 0xEE},   {"iuml", 0xEF},
    {"ntilde", 0xF1},  {"ograve", 0xF2},   {"oacute", 0xF3},  {"ocirc", 0xF4},   {"oslash", 0xF8},
    {"ugrave", 0xF9},  {"uacute", 0xFA},   {"ucirc", 0xFB},   {"ndash", 0x2013}, {"mdash", 0x2014},
    {"lsquo", 0x2018}, {"rsquo", 0x2019},  {"ldquo", 0x201C}, {"rdquo", 0x201D}, {"bdquo", 0x201E},
    {"bull", 0x2022},  {"hellip", 0x2026}, {"euro", 0x20AC},  {"trade", 0x2122}, {"rarr", 0x2192},
    {"le", 0x2264},    {"ge", 0x2265},     {"minus", 0x2212}, {"Eacute", 0xC9},  {"Ccedil", 0xC7},
};

/* The character that "#8364" or "euro" names, 0 for none. */
static uint32_t entity(const char *s, size_t n)
{
    if (n > 1 && *s == '#') {
        bool hex = s[1] == 'x' || s[1] == 'X';
        uint32_t cp = 0;
        for (size_t i = hex ? 2 : 1; i < n; i++) {
            int digit = s[i] >= '0' && s[i] <= '9'                        ? s[i] - '0'
                        : hex && (s[i] | 32) >= 'a' && (s[i] | 32) <= 'f' ? (s[i] | 32) - 'a' + 10
                                                                          : -1;
            if (digit < 0 || cp > 0x10FFFF) return 0;
            cp = cp * (hex ? 16 : 10) + (uint32_t)digit;
        }
        return cp;
    }
    for (size_t i = 0; i < sizeof ENTITIES / sizeof *ENTITIES; i++)
        if (strlen(ENTITIES[i].name) == n && memcmp(ENTITIES[i].name, s, n) == 0) return ENTITIES[i].cp;
    return 0;
}

/* ---- words ------------------------------------------------------------------------------------------ */

static void plain_html_put_bytes(reader *r, const char *s, size_t n)
{
    buf *out = &r->p->text;
    if (!r->began) {
        r->open.start = out->len;
        r->open.line = r->line;
        r->began = true;
    } else if (r->space) {
        buf_putc(out, ' ');
    }
    r->space = false;
    buf_append(out, s, n);
    r->open.end = out->len;
}

static int end_block(reader *r)
{
    int rc = 0;
    if (r->began) {
        rc = plain_add(r->p, &r->open, r->err);
        buf_putc(&r->p->text, '\n');
    }
    r->open = (plain_block){0};
    r->began = r->space = false;
    return r->p->text.failed ? err_nomem(r->err) : rc;
}

/* '&' at s[at]: its character, or itself. */
static void take_entity(reader *r)
{
    size_t from = r->at + 1, n = 0;
    while (n < 32 && from + n < r->n && r->s[from + n] != ';' && r->s[from + n] > ' ' &&
           r->s[from + n] != '<' && r->s[from + n] != '&')
        n++;
    char utf8[4];
    bool ended = from + n < r->n && r->s[from + n] == ';';
    uint32_t cp = ended ? entity(r->s + from, n) : 0;
    size_t len = cp ? utf8_encode(cp, utf8) : 0;
    if (len == 0) {
        plain_html_put_bytes(r, "&", 1);
        r->at++;
        return;
    }
    if (cp <= ' ' || cp == 0xA0)
        r->space = true;
    else if (cp != 0xAD) /* where a word may be parted */
        plain_html_put_bytes(r, utf8, len);
    r->at = from + n + 1;
}

static void take_word(reader *r)
{
    size_t from = r->at;
    while (r->at < r->n && (unsigned char)r->s[r->at] > ' ' && r->s[r->at] != '<' && r->s[r->at] != '&')
        r->at++;
    plain_html_put_bytes(r, r->s + from, r->at - from);
}

/* ---- tags ------------------------------------------------------------------------------------------- */

/* Step to `to`, and count the lines between. */
static void step_to(reader *r, size_t to)
{
    for (; r->at < to; r->at++) r->line += r->s[r->at] == '\n';
}

/* In a search that may go on to the end of the file: nobody wants its result any more. It ends there, and
 * plain_html_count() says so. */
static bool plain_html_is_over(const reader *r, size_t at)
{
    return at % STEPS_PER_CHECK == 0 && steps_cancelled(r->steps);
}

/* The end of "<...>" that begins at `at`: behind '>', quotes may hold one. */
static size_t tag_end(const reader *r, size_t at)
{
    char quote = 0;
    for (size_t i = at; i < r->n; i++) {
        char c = r->s[i];
        if (quote) {
            if (c == quote) quote = 0;
        } else if ((c == '"' || c == '\'') && r->s[i - 1] == '=') {
            quote = c;
        } else if (c == '>' || plain_html_is_over(r, i)) {
            return i + 1;
        }
    }
    return r->n;
}

static size_t comment_end(const reader *r, size_t at)
{
    for (; at + 3 <= r->n; at++)
        if (memcmp(r->s + at, "-->", 3) == 0 || plain_html_is_over(r, at)) return at + 3;
    return r->n;
}

/* Behind the first "</name" from here, whatever stands between: where its tag begins. */
static size_t closing_tag(const reader *r, size_t at, const char *name, size_t n_name)
{
    for (; at + 2 + n_name <= r->n; at++) {
        const char *p = memchr(r->s + at, '<', r->n - at);
        if (!p) break;
        at = (size_t)(p - r->s);
        if (at + 2 + n_name <= r->n && p[1] == '/' && strncasecmp(p + 2, name, n_name) == 0) return at;
    }
    return r->n;
}

static tag_kind plain_html_kind_of(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof TAGS / sizeof *TAGS; i++)
        if (strlen(TAGS[i].name) == n && strncasecmp(TAGS[i].name, name, n) == 0) return TAGS[i].kind;
    return TAG_INLINE;
}

static int take_tag(reader *r, bool closes, const char *name, size_t n_name, size_t end)
{
    tag_kind kind = plain_html_kind_of(name, n_name);
    int rc = 0;
    step_to(r, end);
    bool alone = end >= 2 && r->s[end - 2] == '/';
    if (kind == TAG_HIDDEN && !closes && !alone) step_to(r, closing_tag(r, end, name, n_name));
    if (kind == TAG_BLOCK || kind == TAG_HEADING) rc = end_block(r);
    if (kind == TAG_HEADING && !closes) {
        r->open.kind = BLOCK_HEADING;
        r->open.level = n_name == 2 ? (unsigned)(name[1] - '0') : 1; /* h1 to h6, title */
    }
    if (kind == TAG_BREAK && r->began && r->p->text.len && !r->space) {
        buf_putc(&r->p->text, '\n');
        r->open.end = r->p->text.len;
    }
    if (kind == TAG_CELL) r->space = true;
    return rc;
}

/* '<' at s[at]: a comment, a declaration, a tag, or a character like others. */
static int take_angle(reader *r)
{
    size_t at = r->at, left = r->n - at;
    const char *s = r->s + at;
    if (left >= 4 && memcmp(s, "<!--", 4) == 0) {
        step_to(r, comment_end(r, at + 4));
        return 0;
    }
    bool closes = left > 1 && s[1] == '/';
    const char *name = s + 1 + closes;
    size_t n_name = 0, most = left - 1 - closes;
    while (n_name < most && ((name[n_name] | 32) >= 'a' && (name[n_name] | 32) <= 'z')) n_name++;
    while (n_name > 0 && n_name < most && name[n_name] >= '0' && name[n_name] <= '9') n_name++;
    if (n_name > 0) return take_tag(r, closes, name, n_name, tag_end(r, at + 1));
    if (left > 1 && (s[1] == '!' || s[1] == '?' || s[1] == '/')) {
        step_to(r, tag_end(r, at + 1));
        return 0;
    }
    plain_html_put_bytes(r, "<", 1);
    r->at++;
    return 0;
}

/* Each byte is looked at once or twice: what a tag, a comment or a hidden element takes is stepped over. */
static int plain_html_count(reader *r)
{
    size_t n = r->at - r->counted;
    r->counted = r->at;
    return steps_add(r->steps, n, r->err);
}

int plain_read_html(plain *p, const char *bytes, size_t n, steps *steps, shoal_err *err)
{
    reader r = {.p = p, .s = bytes, .n = n, .line = 1, .steps = steps, .err = err};
    int rc = 0;
    if (n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) r.at = 3;
    while (rc == 0 && r.at < n && (rc = plain_html_count(&r)) == 0) {
        unsigned char c = (unsigned char)bytes[r.at];
        if (c <= ' ') {
            r.space = true;
            step_to(&r, r.at + 1);
        } else if (c == '<') {
            rc = take_angle(&r);
        } else if (c == '&') {
            take_entity(&r);
        } else {
            take_word(&r);
        }
    }
    return rc == 0 ? end_block(&r) : rc;
}
