/* yaml.h: a YAML document as nodes that know their line.
 *
 *     yaml_doc *d;
 *     if (yaml_parse(&d, text, len, "shoal.yaml", err)) return err->code;
 *     const yaml_node *port = yaml_get(yaml_root(d), "port");
 *     uint64_t v = 8080;
 *     if (port && (rc = yaml_u64(d, port, "port", 1, 65535, &v, err))) ...   // "shoal.yaml:3: port: ..."
 *     yaml_doc_free(d);
 *
 * The tree never changes, so threads may share it. It lives in one arena: nodes and texts are borrowed until
 * yaml_doc_free. Read is what two parsers cannot read differently: one document in UTF-8; no aliases,
 * anchors, tags or directives, no key twice. (libyaml itself exports yaml_free, hence yaml_doc_free.) */
#ifndef YAML_YAML_H
#define YAML_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define YAML_DEPTH_MAX 64
#define YAML_NODES_MAX (1u << 20)

typedef enum { YAML_SCALAR, YAML_LIST, YAML_MAP } yaml_kind;

typedef struct yaml_node yaml_node;
struct yaml_node {
    yaml_kind kind;
    size_t line, column;           /* 1-based, where it begins */
    const char *text;              /* scalar: NUL-terminated, without NUL inside; "" when empty */
    size_t len;                    /* its bytes */
    bool plain;                    /* scalar: not quoted and no block (so that `off` and "off" differ) */
    size_t n;                      /* list: items; map: pairs */
    const yaml_node *const *items; /* list: items; map: values */
    const yaml_node *const *keys;  /* map: scalars, as many as items */
};

typedef struct yaml_doc yaml_doc;

/* `what` names the file in errors and is copied. What is not YAML, an empty text, a second document, aliases,
 * anchors, tags, directives, duplicate keys, keys that are no scalars, invalid UTF-8 and NUL are
 * SHOAL_EFORMAT; nesting over YAML_DEPTH_MAX and more than YAML_NODES_MAX nodes are SHOAL_ELIMIT; each with
 * "what:line: ". */
int yaml_parse(yaml_doc **ret, const char *text, size_t len, const char *what, shoal_err *err);
const yaml_node *yaml_root(const yaml_doc *d); /* never NULL */
void yaml_doc_free(yaml_doc *d);               /* NULL is fine */

/* The value of a key, NULL when absent or when `map` is no map, or NULL. Looks at each key in turn. */
const yaml_node *yaml_get(const yaml_node *map, const char *key);

/* "a text", "a list", "a map": what a node is, for sentences. */
const char *yaml_kind_name(yaml_kind k);

/* SHOAL_EINVALID and "what:line: sentence" about a node (or a key). */
int yaml_fail(const yaml_doc *d, const yaml_node *at, shoal_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The beginning of a text, fit for a sentence: one line, whole characters, "..." where it was cut. */
typedef struct yaml_excerpt {
    char text[64];
} yaml_excerpt;
yaml_excerpt yaml_excerpt_of(const char *text);

/* Strict scalars: the whole text must be one, unquoted, and nothing is guessed. A whole number is digits
 * alone without a leading zero; a number may have a '-' and one '.' between digits; a truth is true or false.
 * Otherwise SHOAL_EINVALID with line, field and what it must be, and *ret is untouched. */
int yaml_u64(const yaml_doc *d, const yaml_node *n, const char *field, uint64_t min, uint64_t max,
             uint64_t *ret, shoal_err *err);
int yaml_i64(const yaml_doc *d, const yaml_node *n, const char *field, int64_t min, int64_t max, int64_t *ret,
             shoal_err *err); /* a '-' may be before the digits */
int yaml_double(const yaml_doc *d, const yaml_node *n, const char *field, double min, double max, double *ret,
                shoal_err *err);
int yaml_bool(const yaml_doc *d, const yaml_node *n, const char *field, bool *ret, shoal_err *err);

/* Append a node as JSON (yaml_json.c): unquoted true, false, null and numbers as JSON writes them are such, what is
 * empty is null, all other scalars are strings. Returns as buf_append. */
int yaml_put_json(buf *out, const yaml_node *n);

/* Append s[0..n) in double quotes, so that yaml_parse reads the same text: what breaks a line in YAML 1.1, what YAML
 * refuses and what a reader cannot see (byte order marks, directions of text) is escaped. Returns as buf_append. */
int yaml_put_text(buf *out, const char *s, size_t n);

#endif
