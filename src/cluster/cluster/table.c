/* table.c: rows of a list as members. */
#include "cluster/table.h"

#include <stdlib.h>

#include "base/buf.h"
#include "cluster/registry.h"

static int table_put_row(source *s, registry *g, const table_row *row, shoal_err *err)
{
    buf id = {0};
    buf_printf(&id, "%s/%s", row->address, row->model);
    int rc = id.failed ? err_nomem(err) : 0;
    if (rc == 0 && registry_get(g, id.data))
        rc = err_set(err, SHOAL_EINVALID, "%s serves %s twice", row->address, row->model);
    if (rc == 0)
        rc = source_put(s, &(member){.id = id.data, .model = row->model, .address = row->address}, err);
    buf_done(&id);
    return rc;
}

int table_open(source **ret, registry *g, const table_row *rows, size_t n, shoal_err *err)
{
    source *s;
    int rc = source_open(&s, g, "table", err);
    if (rc != 0) return rc;
    for (size_t i = 0; rc == 0 && i < n; i++) rc = table_put_row(s, g, &rows[i], err);
    if (rc != 0) {
        source_close(s);
        return rc;
    }
    source_synced(s);
    *ret = s;
    return 0;
}
