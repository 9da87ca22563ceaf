/* yaml.c: libyaml's events as a tree. libyaml finds the tokens; what Shoal refuses is refused here. */
#include "yaml/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/number.h"
#include "base/utf8.h"

struct yaml_doc {
    arena *memory; /* holds the doc itself, too */
    const char *what;
    const yaml_node *root;
};

/* One document being read. A list or map gathers its children (a map: key, value, key, ...) at the end of
 * `pending`, from frame.first on, and takes them from there when it ends. */
typedef struct frame {
    yaml_node *node;
    size_t first;
} frame;

typedef struct builder {
    yaml_parser_t parser;
    yaml_doc *doc;
    frame open[YAML_DEPTH_MAX];
    size_t n_open, n_nodes;
    const yaml_node **pending; /* malloc'd */
    size_t n_pending, room;
    shoal_err *err;
} builder;

static int yaml_refuse(const builder *b, size_t line, int code, const char *why)
{
    return err_set(b->err, code, "%s:%zu: %s", b->doc->what, line, why);
}

/* ---- bytes that no parser should see ---- */

static size_t line_at(const char *text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset; i++) line += text[i] == '\n';
    return line;
}

/* Does a line begin at i? YAML 1.1 breaks lines at CR, LF, NEL, LS and PS; a byte order mark may stand first.
 */
static bool begins_line(const char *text, size_t i)
{
    static const char *const before[] = {"\n",           "\r",           "\xC2\x85",
                                         "\xE2\x80\xA8", "\xE2\x80\xA9", "\xEF\xBB\xBF"};
    for (size_t k = 0; i && k < sizeof before / sizeof *before; k++) {
        size_t n = strlen(before[k]);
        if (n <= i && memcmp(text + i - n, before[k], n) == 0) return true;
    }
    return i == 0;
}

/* A directive is a line that begins with '%'. libyaml takes time that grows with the square of their number.
 */
static const char *find_directive(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '%' && begins_line(text, i)) return text + i;
    return NULL;
}

static int check_bytes(const builder *b, const char *text, size_t len)
{
    size_t bad = 0;
    const char *nul = len ? memchr(text, 0, len) : NULL;
    if (nul) return yaml_refuse(b, line_at(text, (size_t)(nul - text)), SHOAL_EFORMAT, "holds a NUL byte");
    if (!utf8_valid(text, len, &bad))
        return yaml_refuse(b, line_at(text, bad), SHOAL_EFORMAT, "is not valid UTF-8 here");
    const char *directive = find_directive(text, len);
    if (!directive) return 0;
    return yaml_refuse(b, line_at(text, (size_t)(directive - text)), SHOAL_EFORMAT,
                       "directives (lines that begin with '%') are not read");
}

/* libyaml's complaint: what it found, and what it was reading, which may have begun on another line. */
static int not_yaml(const builder *b, const char *text, size_t len)
{
    const yaml_parser_t *p = &b->parser;
    const char *problem = p->problem ? p->problem : "it cannot be read";
    if (p->error == YAML_MEMORY_ERROR) return err_nomem(b->err);
    if (p->error == YAML_READER_ERROR)
        return yaml_refuse(b, line_at(text, p->problem_offset < len ? p->problem_offset : len), SHOAL_EFORMAT,
                           problem);
    size_t line = p->problem_mark.line + 1, from = p->context_mark.line + 1;
    if (p->problem_mark.index < len && text[p->problem_mark.index] == '\t')
        return yaml_refuse(b, line, SHOAL_EFORMAT, "not YAML: a tab indents this line; use spaces");
    if (p->context && from != line)
        return err_set(b->err, SHOAL_EFORMAT, "%s:%zu: not YAML: %s (%s that began on line %zu)",
                       b->doc->what, line, problem, p->context, from);
    return err_set(b->err, SHOAL_EFORMAT, "%s:%zu: not YAML: %s%s%s", b->doc->what, line, problem,
                   p->context ? " " : "", p->context ? p->context : "");
}

/* ---- nodes ---- */

static int push_pending(builder *b, const yaml_node *n)
{
    if (b->n_pending == b->room) {
        size_t room = b->room ? 2 * b->room : 64;
        const yaml_node **more = realloc(b->pending, room * sizeof *more);
        if (!more) return err_nomem(b->err);
        b->pending = more;
        b->room = room;
    }
    b->pending[b->n_pending++] = n;
    return 0;
}

/* A map's children stand in pairs, and every other one is a key. */
static bool key_is_next(const builder *b)
{
    if (b->n_open == 0) return false;
    const frame *f = &b->open[b->n_open - 1];
    return f->node->kind == YAML_MAP && (b->n_pending - f->first) % 2 == 0;
}

static int add_node(builder *b, yaml_kind kind, const yaml_event_t *e, yaml_node **ret)
{
    size_t line = e->start_mark.line + 1;
    if (kind != YAML_SCALAR && key_is_next(b))
        return yaml_refuse(b, line, SHOAL_EFORMAT, "a key must be a text, not a list or a map");
    if (b->n_nodes++ == YAML_NODES_MAX)
        return yaml_refuse(b, line, SHOAL_ELIMIT, "too many values in one file");
    yaml_node *n = arena_alloc(b->doc->memory, sizeof *n);
    if (!n) return err_nomem(b->err);
    *n = (yaml_node){.kind = kind, .line = line, .column = e->start_mark.column + 1, .text = ""};
    if (b->n_open == 0) b->doc->root = n;
    *ret = n;
    return b->n_open ? push_pending(b, n) : 0;
}

static int add_scalar(builder *b, const yaml_event_t *e)
{
    yaml_node *n;
    const char *text = (const char *)e->data.scalar.value;
    int rc = add_node(b, YAML_SCALAR, e, &n);
    if (rc) return rc;
    if (strlen(text) != e->data.scalar.length)
        return yaml_refuse(b, n->line, SHOAL_EFORMAT, "holds a NUL byte");
    n->len = e->data.scalar.length;
    n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    n->text = arena_strndup(b->doc->memory, text, n->len);
    return n->text ? 0 : err_nomem(b->err);
}

static int open_node(builder *b, yaml_kind kind, const yaml_event_t *e)
{
    if (b->n_open == YAML_DEPTH_MAX)
        return yaml_refuse(b, e->start_mark.line + 1, SHOAL_ELIMIT, "lists and maps are nested too deeply");
    yaml_node *n;
    int rc = add_node(b, kind, e, &n);
    if (!rc) b->open[b->n_open++] = (frame){n, b->n_pending};
    return rc;
}

static int by_text_then_place(const void *a, const void *b)
{
    const yaml_node *x = *(const yaml_node *const *)a, *y = *(const yaml_node *const *)b;
    int order = strcmp(x->text, y->text);
    if (order) return order;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

/* Sorted, equal keys are neighbours. `scratch` has room for the map's keys. */
static int check_twice(const builder *b, const yaml_node *map, const yaml_node **scratch)
{
    for (size_t i = 0; i < map->n; i++) scratch[i] = map->keys[i];
    qsort(scratch, map->n, sizeof *scratch, by_text_then_place);
    for (size_t i = 1; i < map->n; i++) {
        const yaml_node *first = scratch[i - 1], *again = scratch[i];
        if (strcmp(first->text, again->text) != 0) continue;
        return err_set(b->err, SHOAL_EFORMAT, "%s:%zu: '%s' is given twice (first on line %zu)", b->doc->what,
                       again->line, yaml_excerpt_of(again->text).text, first->line);
    }
    return 0;
}

static int close_node(builder *b)
{
    frame f = b->open[--b->n_open];
    bool map = f.node->kind == YAML_MAP;
    size_t n = b->n_pending - f.first;
    const yaml_node **from = n ? b->pending + f.first : NULL;
    const yaml_node **to = arena_alloc(b->doc->memory, (n + 1) * sizeof *to);
    if (!to) return err_nomem(b->err);
    f.node->n = map ? n / 2 : n;
    f.node->items = map ? to + n / 2 : to;
    f.node->keys = map ? to : NULL;
    for (size_t i = 0; i < n; i++) to[map ? i / 2 + (i % 2) * (n / 2) : i] = from[i];
    b->n_pending = f.first;
    return map && n ? check_twice(b, f.node, from) : 0; /* what was pending is copied: scratch */
}

/* ---- events ---- */

static int on_start(builder *b, yaml_kind kind, const yaml_event_t *e, const yaml_char_t *anchor,
                    const yaml_char_t *tag)
{
    size_t line = e->start_mark.line + 1;
    if (anchor)
        return yaml_refuse(b, line, SHOAL_EFORMAT, "anchors ('&name') are not read: write the value out");
    if (tag) return yaml_refuse(b, line, SHOAL_EFORMAT, "tags ('!name') are not read: write the value alone");
    return kind == YAML_SCALAR ? add_scalar(b, e) : open_node(b, kind, e);
}

static int yaml_on_event(builder *b, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (!b->doc->root) return 0;
        return yaml_refuse(
            b, e->start_mark.line + 1, SHOAL_EFORMAT,
            "a second document begins here ('---'), a file holds one: remove it or merge the two");
    case YAML_ALIAS_EVENT:
        return yaml_refuse(b, e->start_mark.line + 1, SHOAL_EFORMAT,
                           "aliases ('*name') are not read: write the value out, or quote the text");
    case YAML_SCALAR_EVENT: return on_start(b, YAML_SCALAR, e, e->data.scalar.anchor, e->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(b, YAML_LIST, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return on_start(b, YAML_MAP, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return close_node(b);
    default: return 0;
    }
}

static int build(builder *b, const char *text, size_t len)
{
    if (!yaml_parser_initialize(&b->parser)) return err_nomem(b->err);
    yaml_parser_set_input_string(&b->parser, (const unsigned char *)text, len);
    int rc = 0;
    for (bool end = false; !rc && !end;) {
        yaml_event_t e;
        if (!yaml_parser_parse(&b->parser, &e)) {
            rc = not_yaml(b, text, len);
            break;
        }
        end = e.type == YAML_STREAM_END_EVENT;
        rc = yaml_on_event(b, &e);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&b->parser);
    if (!rc && !b->doc->root) rc = yaml_refuse(b, 1, SHOAL_EFORMAT, "the file is empty");
    return rc;
}

int yaml_parse(yaml_doc **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    arena *a = arena_new(0);
    builder b = {.doc = a ? arena_alloc(a, sizeof *b.doc) : NULL, .err = err};
    int rc = b.doc ? 0 : err_nomem(err);
    if (!rc) {
        *b.doc = (yaml_doc){.memory = a, .what = arena_strdup(a, what)};
        if (!b.doc->what) rc = err_nomem(err);
    }
    if (!rc) rc = check_bytes(&b, text, len);
    if (!rc) rc = build(&b, text, len);
    free(b.pending);
    if (rc)
        arena_free(a);
    else
        *ret = b.doc;
    return rc;
}

void yaml_doc_free(yaml_doc *d)
{
    if (d) arena_free(d->memory);
}

const yaml_node *yaml_root(const yaml_doc *d)
{
    return d->root;
}

const yaml_node *yaml_get(const yaml_node *map, const char *key)
{
    if (!map || map->kind != YAML_MAP) return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (strcmp(map->keys[i]->text, key) == 0) return map->items[i];
    return NULL;
}

/* ---- sentences ---- */

const char *yaml_kind_name(yaml_kind k)
{
    return k == YAML_LIST ? "a list" : k == YAML_MAP ? "a map" : "a text";
}

int yaml_fail(const yaml_doc *d, const yaml_node *at, shoal_err *err, const char *fmt, ...)
{
    char sentence[sizeof err->message];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    return err_set(err, SHOAL_EINVALID, "%s:%zu: %s", d->what, at->line, sentence);
}

yaml_excerpt yaml_excerpt_of(const char *text)
{
    yaml_excerpt x;
    size_t n = 0, len = strlen(text), step;
    uint32_t cp;
    while (n < len && (step = utf8_decode(text + n, len - n, &cp)) != 0 && cp >= 0x20 && cp != 0x7F) {
        if (n + step + sizeof "..." > sizeof x.text) break;
        n += step;
    }
    memcpy(x.text, text, n);
    strcpy(x.text + n, n < len ? "..." : "");
    return x;
}

/* ---- strict scalars ---- */

static bool is_plain(const yaml_node *n)
{
    return n->kind == YAML_SCALAR && n->plain;
}

/* "a list", "'60s'" or "the quoted '60'": what stands where a number or a truth is wanted. */
static void name_found(const yaml_node *n, char ret[96])
{
    if (n->kind != YAML_SCALAR)
        snprintf(ret, 96, "%s", yaml_kind_name(n->kind));
    else if (n->len == 0)
        snprintf(ret, 96, "an empty value");
    else
        snprintf(ret, 96, "%s'%s'", n->plain ? "" : "the quoted ", yaml_excerpt_of(n->text).text);
}

int yaml_u64(const yaml_doc *d, const yaml_node *n, const char *field, uint64_t min, uint64_t max,
             uint64_t *ret, shoal_err *err)
{
    uint64_t v;
    if (is_plain(n) && number_u64(n->text, &v) && v >= min && v <= max) {
        *ret = v;
        return 0;
    }
    char found[96];
    name_found(n, found);
    return yaml_fail(d, n, err, "%s: must be a whole number from %llu to %llu, in digits alone, not %s",
                     field, (unsigned long long)min, (unsigned long long)max, found);
}

int yaml_i64(const yaml_doc *d, const yaml_node *n, const char *field, int64_t min, int64_t max, int64_t *ret,
             shoal_err *err)
{
    int64_t v;
    if (is_plain(n) && number_i64(n->text, &v) && v >= min && v <= max) {
        *ret = v;
        return 0;
    }
    char found[96];
    name_found(n, found);
    return yaml_fail(d, n, err, "%s: must be a whole number from %lld to %lld, not %s", field, (long long)min,
                     (long long)max, found);
}

int yaml_double(const yaml_doc *d, const yaml_node *n, const char *field, double min, double max, double *ret,
                shoal_err *err)
{
    double v;
    if (is_plain(n) && number_double(n->text, &v) && v >= min && v <= max) {
        *ret = v;
        return 0;
    }
    char found[96];
    name_found(n, found);
    return yaml_fail(d, n, err, "%s: must be a number from %g to %g, such as 0.5, not %s", field, min, max,
                     found);
}

int yaml_bool(const yaml_doc *d, const yaml_node *n, const char *field, bool *ret, shoal_err *err)
{
    bool is_true = is_plain(n) && strcmp(n->text, "true") == 0;
    if (is_true || (is_plain(n) && strcmp(n->text, "false") == 0)) {
        *ret = is_true;
        return 0;
    }
    char found[96];
    name_found(n, found);
    return yaml_fail(d, n, err, "%s: must be true or false, not %s", field, found);
}
