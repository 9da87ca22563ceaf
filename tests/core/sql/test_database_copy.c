/* A copy of a database in use: one moment of it, whole, or nothing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
/* cmocka.h wants the first four above. */
#include <cmocka.h>

#include "sql/database.h"
#include "sql/database_copy.h"

static int n_fsyncs_before_failing = -1; /* -1: none fails */

/* In the place of libc's. */
int fsync(int fd)
{
    if (n_fsyncs_before_failing >= 0 && n_fsyncs_before_failing-- == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

typedef struct bench {
    char dir[32], from[64], to[64];
    database d;
    shoal_err err;
    int n_calls, stop_at; /* of the progress; 0: never */
} bench;

enum { ROWS = 3000 };

static void put_rows(const database *d, int first, int n)
{
    char sql[160];
    shoal_err err;
    assert_int_equal(database_begin(d, true, &err), 0);
    for (int i = first; i < first + n; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO t VALUES(%d, hex(randomblob(500)))", i);
        assert_int_equal(database_run(d, sql, &err), 0);
    }
    assert_int_equal(database_commit(d, &err), 0);
}

/* A connection that stays open: its rows are in the log, for the most part. */
static int setup(void **state)
{
    bench *b = calloc(1, sizeof *b);
    strcpy(b->dir, "/tmp/shoal-copy-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->from, sizeof b->from, "%s/x.db", b->dir);
    snprintf(b->to, sizeof b->to, "%s/copy.db", b->dir);
    const database_options o = {.path = b->from,
                                .schema = "CREATE TABLE t(x INTEGER PRIMARY KEY, y TEXT)",
                                .version = 7,
                                .lost = "-"};
    assert_int_equal(database_open(&b->d, &o, &b->err), 0);
    put_rows(&b->d, 0, ROWS);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    bench *b = *state;
    char command[80];
    database_close(&b->d);
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    int rc = system(command);
    free(b);
    return rc;
}

static int copy(bench *b, int (*progress)(void *user, uint64_t done, uint64_t all))
{
    const database_copy_options o = {
        .from = b->from, .to = b->to, .lost = "all begins anew", .progress = progress, .user = b};
    b->n_calls = 0;
    return database_copy(&o, &b->err);
}

static int count(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM t", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int n = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

static bool is_there(const bench *b, const char *ending)
{
    char path[80];
    snprintf(path, sizeof path, "%s%s", b->to, ending);
    return access(path, F_OK) == 0;
}

static void nothing_is_left(const bench *b)
{
    assert_false(is_there(b, ""));
    assert_false(is_there(b, "-wal"));
    assert_false(is_there(b, "-shm"));
    assert_false(is_there(b, "-journal"));
}

static int write_meanwhile(void *user, uint64_t done, uint64_t all)
{
    bench *b = user;
    assert_true(done <= all);
    put_rows(&b->d, ROWS + b->n_calls++ * 10, 10);
    return b->n_calls > 200; /* a copy that began anew at each of these would not end */
}

static void it_is_one_moment_of_what_is_written_meanwhile(void **state)
{
    bench *b = *state;
    struct stat at;
    assert_int_equal(copy(b, write_meanwhile), 0);
    assert_true(b->n_calls > 1);
    assert_int_equal(count(b->to), ROWS);
    assert_int_equal(count(b->from), ROWS + 10 * b->n_calls);
    assert_false(is_there(b, "-wal"));
    assert_false(is_there(b, "-journal"));
    assert_int_equal(stat(b->to, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0600);
}

static void it_can_be_opened_as_the_original(void **state)
{
    bench *b = *state;
    database d;
    int version = 0;
    assert_int_equal(copy(b, NULL), 0);
    assert_int_equal(database_version_of(b->to, &version, &b->err), 0);
    assert_int_equal(version, 7);
    const database_options o = {.path = b->to, .schema = "-", .version = 7, .lost = "-"};
    assert_int_equal(database_open(&d, &o, &b->err), 0);
    put_rows(&d, ROWS, 5);
    database_close(&d);
    assert_int_equal(count(b->to), ROWS + 5);
}

static void an_empty_file_is_copied_as_one(void **state)
{
    bench *b = *state;
    int version = 9;
    database_close(&b->d);
    assert_int_equal(truncate(b->from, 0), 0);
    assert_int_equal(database_version_of(b->from, &version, &b->err), 0);
    assert_int_equal(version, 0);
    assert_int_equal(copy(b, NULL), 0);
    assert_int_equal(database_version_of(b->to, &version, &b->err), 0);
    assert_int_equal(version, 0);
}

static int stop(void *user, uint64_t done, uint64_t all)
{
    bench *b = user;
    return ++b->n_calls == b->stop_at;
}

static void stopped_anywhere_it_leaves_nothing(void **state)
{
    bench *b = *state;
    for (b->stop_at = 1;; b->stop_at++) {
        int rc = copy(b, stop);
        if (rc == 0) break;
        assert_int_equal(rc, SHOAL_ECANCELLED);
        nothing_is_left(b);
    }
    assert_true(b->stop_at > 3);
    assert_int_equal(count(b->to), ROWS);
}

static void what_is_there_stays(void **state)
{
    bench *b = *state;
    FILE *f = fopen(b->to, "w");
    assert_non_null(f);
    fputs("mine", f);
    fclose(f);
    assert_int_equal(copy(b, NULL), SHOAL_EIO);
    assert_non_null(strstr(b->err.message, b->to));
    char text[8] = "";
    f = fopen(b->to, "r");
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "mine");
}

/* ---- damage --------------------------------------------------------------------------------------- */

static void write_at(const char *path, off_t at, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

static void is_damaged(bench *b)
{
    int rc = copy(b, NULL);
    if (rc != SHOAL_EFORMAT) print_error("%d: %s\n", rc, b->err.message);
    assert_int_equal(rc, SHOAL_EFORMAT);
    assert_ptr_equal(strstr(b->err.message, b->from), b->err.message);
    assert_non_null(strstr(b->err.message, " is damaged ("));
    assert_non_null(strstr(b->err.message, "move it away, with its -wal file; all begins anew"));
    nothing_is_left(b);
}

static void what_is_damaged_is_not_copied(void **state)
{
    bench *b = *state;
    char junk[4096];
    struct stat at;
    database_close(&b->d); /* the log goes into the file */
    assert_int_equal(stat(b->from, &at), 0);
    memset(junk, 0xA5, sizeof junk);
    write_at(b->from, at.st_size / 8192 * 4096, junk, sizeof junk); /* a page in the middle */
    is_damaged(b);
    assert_int_equal(truncate(b->from, at.st_size / 2), 0);
    is_damaged(b);
    write_at(b->from, 0, junk, sizeof junk);
    is_damaged(b);
    int version = 5;
    assert_int_equal(database_version_of(b->from, &version, &b->err), SHOAL_EFORMAT);
    assert_int_equal(version, 5);
}

/* ---- a disk that refuses ----------------------------------------------------------------------------- */

static void a_full_disk_leaves_nothing(void **state)
{
    bench *b = *state;
    struct rlimit old, few = {.rlim_cur = 64 << 10};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    few.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    int rc = copy(b, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(rc, SHOAL_EIO);
    assert_ptr_equal(strstr(b->err.message, b->to), b->err.message);
    nothing_is_left(b);
    assert_int_equal(copy(b, NULL), 0);
    assert_int_equal(count(b->to), ROWS);
}

static void a_refused_fsync_is_an_error(void **state)
{
    bench *b = *state;
    n_fsyncs_before_failing = 0;
    int rc = copy(b, NULL);
    n_fsyncs_before_failing = -1;
    assert_int_equal(rc, SHOAL_EIO);
    nothing_is_left(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_is_one_moment_of_what_is_written_meanwhile),
        TEST(it_can_be_opened_as_the_original),
        TEST(an_empty_file_is_copied_as_one),
        TEST(stopped_anywhere_it_leaves_nothing),
        TEST(what_is_there_stays),
        TEST(what_is_damaged_is_not_copied),
        TEST(a_full_disk_leaves_nothing),
        TEST(a_refused_fsync_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
