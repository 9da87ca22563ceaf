/* One SQLite file: made, kept, refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h wants the first four above. */
#include <cmocka.h>

#include "sql/database.h"

typedef struct bench {
    char dir[32], path[64];
    shoal_err err;
} bench;

static int setup(void **state)
{
    bench *b = calloc(1, sizeof *b);
    strcpy(b->dir, "/tmp/shoal-sql-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->path, sizeof b->path, "%s/deep/in/x.db", b->dir);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    bench *b = *state;
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    int rc = system(command);
    free(b);
    return rc;
}

static int open_as(bench *b, database *d, int version)
{
    return database_open(d,
                         &(database_options){.path = b->path,
                                             .schema = "CREATE TABLE t(x INTEGER UNIQUE)",
                                             .version = version,
                                             .lost = "all begins anew"},
                         &b->err);
}

static int count(const database *d)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(d->db, "SELECT count(*) FROM t", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int n = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return n;
}

static void it_is_made_for_this_account_alone_and_kept(void **state)
{
    bench *b = *state;
    database d;
    struct stat at;
    assert_int_equal(open_as(b, &d, 3), 0);
    assert_int_equal(database_begin(&d, true, &b->err), 0);
    assert_int_equal(database_run(&d, "INSERT INTO t VALUES(1)", &b->err), 0);
    assert_int_equal(database_commit(&d, &b->err), 0);
    assert_int_equal(database_begin(&d, true, &b->err), 0);
    assert_int_equal(database_run(&d, "INSERT INTO t VALUES(2)", &b->err), 0);
    assert_int_not_equal(database_run(&d, "INSERT INTO t VALUES(1)", &b->err), 0);
    database_rollback(&d);
    database_rollback(&d); /* nothing to undo */
    database_close(&d);
    assert_int_equal(stat(b->path, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0600);
    assert_int_equal(open_as(b, &d, 3), 0);
    assert_int_equal(count(&d), 1);
    database_close(&d);
}

static void a_newer_one_is_refused(void **state)
{
    bench *b = *state;
    database d;
    assert_int_equal(open_as(b, &d, 3), 0);
    database_close(&d);
    assert_int_equal(open_as(b, &d, 2), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(b->err.message, "newer Shoal (form 3)"));
    database_close(&d);
}

static void what_is_damaged_says_what_to_do(void **state)
{
    bench *b = *state;
    database d;
    assert_int_equal(open_as(b, &d, 1), 0);
    database_close(&d);
    FILE *f = fopen(b->path, "r+");
    assert_non_null(f);
    fputs("this was no database", f);
    fclose(f);
    assert_int_equal(open_as(b, &d, 1), SHOAL_EFORMAT);
    assert_non_null(strstr(b->err.message, "x.db is damaged"));
    assert_non_null(strstr(b->err.message, "move it away, with its -wal file; all begins anew"));
    database_close(&d);
}

static void nothing_is_written_into_a_file_that_is_gone(void **state)
{
    bench *b = *state;
    database d;
    char aside[80];
    snprintf(aside, sizeof aside, "%s.aside", b->path);
    assert_int_equal(open_as(b, &d, 1), 0);
    assert_false(database_has_moved(&d));
    assert_int_equal(rename(b->path, aside), 0);
    assert_true(database_has_moved(&d));
    assert_int_equal(database_begin(&d, true, &b->err), SHOAL_EIO);
    assert_non_null(strstr(b->err.message, "x.db was moved or removed while it was open"));
    assert_int_equal(rename(aside, b->path), 0);
    assert_int_equal(database_begin(&d, true, &b->err), 0);
    assert_int_equal(database_commit(&d, &b->err), 0);
    database_close(&d);
}

static void another_writer_is_named(void **state)
{
    bench *b = *state;
    database d, other;
    assert_int_equal(open_as(b, &d, 1), 0);
    assert_int_equal(open_as(b, &other, 1), 0);
    sqlite3_busy_timeout(other.db, 10);
    assert_int_equal(database_begin(&d, true, &b->err), 0);
    assert_int_equal(database_begin(&other, true, &b->err), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(b->err.message, "another process writes to it"));
    assert_int_equal(database_commit(&d, &b->err), 0);
    assert_int_equal(database_begin(&other, true, &b->err), 0);
    database_rollback(&other);
    database_close(&other);
    database_close(&d);
}

static void a_folder_in_the_way_is_named(void **state)
{
    bench *b = *state;
    database d;
    char file[64];
    snprintf(file, sizeof file, "%s/deep", b->dir);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(open_as(b, &d, 1), SHOAL_EIO);
    assert_non_null(strstr(b->err.message, "deep"));
    database_close(&d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_is_made_for_this_account_alone_and_kept),
        TEST(a_newer_one_is_refused),
        TEST(what_is_damaged_says_what_to_do),
        TEST(nothing_is_written_into_a_file_that_is_gone),
        TEST(another_writer_is_named),
        TEST(a_folder_in_the_way_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
