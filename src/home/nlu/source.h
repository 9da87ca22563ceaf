/* source.h: reading the YAML files of this room; the first failure sticks, so that readers need not look
 * after every step. */
#ifndef NLU_SOURCE_H
#define NLU_SOURCE_H

#include "base/buf.h"
#include "yaml/yaml.h"

#define SOURCE_BYTES_MAX (4u << 20)

typedef struct source {
    const yaml_doc *d;
    arena *a; /* what is read lives here */
    shoal_err *err;
    int rc; /* 0 until something failed */
} source;

/* Keep the first sentence, "file:line: ..."; it has one %s for `word`. */
void source_fail(source *r, const yaml_node *at, const char *sentence, const char *word);
void source_nomem(source *r);
void *source_take(source *r, size_t n, size_t size); /* zeroed; NULL when out of memory or already failed */

/* The value of a key that must be there and of this kind; NULL otherwise. */
const yaml_node *source_need(source *r, const yaml_node *map, const char *key, yaml_kind kind);
const char *source_text(source *r, const yaml_node *n); /* NULL for no node; empty texts fail */
const char *source_text_of(source *r, const yaml_node *map,
                           const char *key); /* of a key that must be there */
double source_double(source *r, const yaml_node *n, const char *field, double otherwise);
bool source_bool(source *r, const yaml_node *n, const char *field);

/* Parse `text`, give its root to `read` with an arena of its own that *ret_memory takes over on success. */
int source_read(const char *text, size_t len, const char *what,
                int (*read)(source *, const yaml_node *, void *), void *user, arena **ret_memory,
                shoal_err *err);

#endif
