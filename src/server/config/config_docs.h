/* config_docs.h: the keys of shoal.yaml as Markdown tables, for docs/configuration.md.
 *
 *     | key | type | default | meaning |
 *     |---|---|---|---|
 *     | `limits.max_headers` | 8 to 1000 | 100 | header fields of one request |
 *
 * Names, types, ranges and most defaults are those of the rows in config_schema.c; config_help.c has what a row
 * cannot say. */
#ifndef CONFIG_CONFIG_DOCS_H
#define CONFIG_CONFIG_DOCS_H

#include "config/config_schema.h"

/* What the documentation says of a key; NULL: what its row says. */
typedef struct config_help {
    const char *path; /* "models[].place.spread": `[]` stands for each entry of a list */
    const char *type;
    const char *unset; /* what is so without the key: the column `default` */
    const char *meaning;
    bool apart; /* the keys below it have a table of their own */
} config_help;

extern const config_help config_help_rows[];
extern const size_t config_help_n;

/* NULL: there is none of this path. */
const config_help *config_help_of(const char *path);

/* Append one table of the keys named, in this order, each with all keys below it; of the whole file when there are
 * none; stages are of these kinds (NULL: PLAIN_STAGES). An unknown path is an error that names it (SHOAL_ENOTFOUND), and nothing is appended. */
int config_docs_put(buf *out, const stage_registry *kinds, const char *const *paths, size_t n_paths,
                    shoal_err *err);

#endif
