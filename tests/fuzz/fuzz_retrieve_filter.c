/* Bytes as a filter: what is taken is a condition that SQLite takes, too. */
#include <sqlite3.h>
#include <stdint.h>

#include "json/json.h"
#include "memory.h"
#include "retrieve/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_statement(const filter *f)
{
    static sqlite3 *db;
    sqlite3_stmt *st = NULL;
    buf sql = {0};
    if (!db && sqlite3_open(":memory:", &db) == SQLITE_OK)
        sqlite3_exec(db, "CREATE TABLE documents(id, source, metadata)", NULL, NULL, NULL);
    buf_printf(&sql, "SELECT d.id FROM documents d WHERE 1%s", f->sql.len ? f->sql.data : "");
    if (db && !sql.failed) {
        int rc = sqlite3_prepare_v2(db, sql.data, -1, &st, NULL);
        holds(rc == SQLITE_OK || rc == SQLITE_NOMEM);
    }
    sqlite3_finalize(st);
    buf_done(&sql);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *o = NULL;
    filter f = {0};
    shoal_err err;
    if (json_parse(&o, (const char *)data, size, "fuzz", &err) == 0 && filter_parse(&f, o, &err) == 0)
        try_statement(&f);
    filter_done(&f);
    json_decref(o);
    return 0;
}
