/* table.h: members that a list names: workers that others run, at addresses that the list gives.
 *
 *     table *t;
 *     table_open(&t, g, rows, n, &err);
 *     table_set(t, others, n_others, &err);   // the list was read again
 *     table_close(t);
 *
 * A model of the list exists, also while it has no worker. What nobody starts, nobody knows the generation of: each
 * connection counts as a life (source.h). Loop thread only. */
#ifndef CLUSTER_TABLE_H
#define CLUSTER_TABLE_H

#include <stddef.h>

#include "base/err.h"

typedef struct registry registry;
typedef struct table table;

typedef struct table_row {
    const char *model;
    const char *address; /* NULL: this model has no worker now */
} table_row;

/* A source that is synced at once. Ids are "ADDRESS/MODEL"; equal rows are one member. */
int table_open(table **ret, registry *g, const table_row *rows, size_t n, shoal_err *err);
/* These rows from now on. Members that stay are not disturbed; calls that run at one that goes move to another. On
 * failure none has gone, and some of the new ones may be there: try again. */
int table_set(table *t, const table_row *rows, size_t n, shoal_err *err);
/* Drops its members; accepts NULL. Before the registry goes. */
void table_close(table *t);

#endif
