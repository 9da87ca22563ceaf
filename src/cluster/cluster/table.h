/* table.h: members that a person wrote down: workers that run all the time, at addresses that stay.
 *
 * What nobody starts, nobody knows the generation of: each connection counts as a life (source.h). */
#ifndef CLUSTER_TABLE_H
#define CLUSTER_TABLE_H

#include <stddef.h>

#include "base/err.h"

typedef struct registry registry;
typedef struct source source;

typedef struct table_row {
    const char *model, *address;
} table_row;

/* Their ids are "ADDRESS/MODEL". The source is synced at once, and source_close drops them. SHOAL_EINVALID:
 * the same row twice. */
int table_open(source **ret, registry *g, const table_row *rows, size_t n, shoal_err *err);

#endif
