/* table.c: rows of a list as members. */
#include "cluster/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cluster/registry.h"

static const char NAME[] = "table";

struct table {
    registry *g;
    source *s;
    char **models; /* that are declared, one for each row */
    size_t n_models;
};

/* ---- models -------------------------------------------------------------------------------------- */

static void undeclare(table *t, char **models, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        registry_undeclare(t->g, models[i]);
        free(models[i]);
    }
    free(models);
}

static int declare(table *t, const table_row *rows, size_t n, char ***ret, shoal_err *err)
{
    size_t done = 0;
    int rc = 0;
    char **models = calloc(n + 1, sizeof *models);
    if (!models) return err_nomem(err);
    while (rc == 0 && done < n) {
        models[done] = strdup(rows[done].model);
        rc = models[done] ? registry_declare(t->g, models[done], err) : err_nomem(err);
        if (rc == 0)
            done++;
        else
            free(models[done]);
    }
    if (rc == 0)
        *ret = models;
    else
        undeclare(t, models, done);
    return rc;
}

/* ---- members ------------------------------------------------------------------------------------- */

static bool is_mine(const replica *r)
{
    return strcmp(r->source, NAME) == 0;
}

static int put_row(table *t, const table_row *row, shoal_err *err)
{
    buf id = {0};
    if (!row->address) return 0;
    buf_printf(&id, "%s/%s", row->address, row->model);
    int rc = id.failed ? err_nomem(err) : 0;
    const replica *there = rc == 0 ? registry_get(t->g, id.data) : NULL;
    if (rc == 0 && !(there && is_mine(there)))
        rc = source_put(t->s, &(member){.id = id.data, .model = row->model, .address = row->address}, err);
    buf_done(&id);
    return rc;
}

static bool is_row_of(const replica *r, const table_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].address && strcmp(rows[i].address, r->address) == 0 &&
            strcmp(rows[i].model, r->model) == 0)
            return true;
    return false;
}

/* One of ours that is in no row; callbacks of a drop may have changed the others. */
static const replica *any_gone(const table *t, const table_row *rows, size_t n)
{
    for (size_t i = 0; i < registry_count(t->g); i++) {
        const replica *r = registry_at(t->g, i);
        if (is_mine(r) && !is_row_of(r, rows, n)) return r;
    }
    return NULL;
}

int table_set(table *t, const table_row *rows, size_t n, shoal_err *err)
{
    char **models = NULL;
    int rc = declare(t, rows, n, &models, err);
    if (rc != 0) return rc;
    for (size_t i = 0; rc == 0 && i < n; i++) rc = put_row(t, &rows[i], err);
    if (rc != 0) {
        undeclare(t, models, n);
        return rc;
    }
    for (const replica *r; (r = any_gone(t, rows, n));) source_drop(t->s, r->id, r->generation);
    undeclare(t, t->models, t->n_models);
    t->models = models;
    t->n_models = n;
    return 0;
}

/* ---- life ---------------------------------------------------------------------------------------- */

int table_open(table **ret, registry *g, const table_row *rows, size_t n, shoal_err *err)
{
    table *t = calloc(1, sizeof *t);
    if (!t) return err_nomem(err);
    t->g = g;
    int rc = source_open(&t->s, g, NAME, err);
    if (rc == 0) rc = table_set(t, rows, n, err);
    if (rc != 0) {
        table_close(t);
        return rc;
    }
    source_synced(t->s);
    *ret = t;
    return 0;
}

void table_close(table *t)
{
    if (!t) return;
    source_close(t->s);
    undeclare(t, t->models, t->n_models);
    free(t);
}
