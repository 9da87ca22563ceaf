/* A backup taken, checked and restored; and each write, fsync and rename refused once: the state is the old one, or the new
 * one when the restore is run again, and nothing in between is served. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
/* cmocka.h wants the first four above. */
#include <cmocka.h>

#include "backup/backup_restore.h"
#include "backup/restore_place.h"
#include "base/file.h"
#include "sql/database.h"
#include "trust/state.h"

/* ---- a disk that refuses: in the place of libc's ------------------------------------------------------- */

static int n_before_refusal = -1; /* -1: nothing is refused */

static bool refused(void)
{
    if (n_before_refusal < 0 || n_before_refusal-- > 0) return false;
    errno = ENOSPC;
    return true;
}

int fsync(int fd)
{
    return refused() ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    return refused() ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    return refused() ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, data, n, at);
}

/* ---- a state folder ------------------------------------------------------------------------------------ */

typedef struct bench {
    char dir[40], state[64], to[64];
    backup_places places;
    manifest m;
    backup_restored r;
    shoal_err err;
} bench;

static void path_in(char ret[160], const char *folder, const char *name)
{
    snprintf(ret, 160, "%s/%s", folder, name);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[160];
    shoal_err err;
    path_in(path, folder, name);
    assert_int_equal(file_make_folders(path, 0700, &err), 0);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char *read_text(const char *folder, const char *name)
{
    static char text[256];
    char path[160];
    path_in(path, folder, name);
    FILE *f = fopen(path, "r");
    if (!f) return "(none)";
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static bool exists(const char *folder, const char *name)
{
    char path[160];
    path_in(path, folder, name);
    return access(path, F_OK) == 0;
}

static void run(const char *fmt, const char *a, const char *b)
{
    char line[400];
    snprintf(line, sizeof line, fmt, a, b);
    assert_int_equal(system(line), 0);
}

static void put_row(const char *folder, const char *name, const char *text, int version)
{
    char path[160], sql[200];
    database d;
    shoal_err err;
    path_in(path, folder, name);
    const database_options o = {
        .path = path, .schema = "CREATE TABLE t(x TEXT)", .version = version, .lost = "-"};
    assert_int_equal(database_open(&d, &o, &err), 0);
    snprintf(sql, sizeof sql, "DELETE FROM t; INSERT INTO t VALUES('%s')", text);
    assert_int_equal(database_run(&d, sql, &err), 0);
    database_close(&d);
}

static const char *row_of(const char *folder, const char *name)
{
    static char text[64];
    char path[160];
    sqlite3 *db;
    sqlite3_stmt *st = NULL;
    path_in(path, folder, name);
    strcpy(text, "(none)");
    if (access(path, F_OK) != 0) return text;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT x FROM t", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    buf_copy_str(text, sizeof text, (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    sqlite3_close(db);
    return text;
}

/* Every kind of file; `text` is in each. */
static void fill(const char *state, const char *text)
{
    put_row(state, "sessions.db", text, 1);
    put_row(state, "collections.db", text, 3);
    write_text(state, "sessions.key", text);
    write_text(state, "ca/ledger", text);
    write_text(state, "ca/ca.key", text);
    write_text(state, "loaded.json", text);
}

static void is_filled(const char *state, const char *text)
{
    assert_string_equal(row_of(state, "sessions.db"), text);
    assert_string_equal(row_of(state, "collections.db"), text);
    assert_string_equal(read_text(state, "sessions.key"), text);
    assert_string_equal(read_text(state, "ca/ledger"), text);
    assert_string_equal(read_text(state, "ca/ca.key"), text);
    assert_string_equal(read_text(state, "loaded.json"), text);
}

static void find_places(bench *b)
{
    char path[160];
    backup_places_done(&b->places);
    b->places.state = strdup(b->state);
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        if (i == BACKUP_CONFIG) continue;
        path_in(path, b->state, BACKUP_ITEMS[i].name);
        b->places.path[i] = strdup(path);
    }
}

static int setup(void **state)
{
    bench *b = calloc(1, sizeof *b);
    strcpy(b->dir, "/tmp/shoal-backup-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->state, sizeof b->state, "%s/state", b->dir);
    snprintf(b->to, sizeof b->to, "%s/backup", b->dir);
    fill(b->state, "old");
    find_places(b);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    bench *b = *state;
    backup_places_done(&b->places);
    run("rm -rf %s%s", b->dir, "");
    free(b);
    return 0;
}

static int take(bench *b, bool secrets)
{
    return backup_take(&b->m, b->to,
                       &(backup_take_options){.places = &b->places, .secrets = secrets, .now = 1795994949},
                       &b->err);
}

static int restore(bench *b)
{
    return backup_restore(&b->r, b->to, &(backup_restore_options){.places = &b->places, .now = 1796000000},
                          &b->err);
}

static int check(bench *b)
{
    return backup_check(&b->m, b->to, NULL, &b->err);
}

static void works(const bench *b, int rc)
{
    if (rc != 0) print_error("%d: %s\n", rc, b->err.message);
    assert_int_equal(rc, 0);
}

/* Nothing under `folder` has a name that ends so. */
static void none_is_left(const char *folder, const char *ending)
{
    char line[200];
    snprintf(line, sizeof line, "[ -z \"$(find %s -name '*%s*')\" ]", folder, ending);
    assert_int_equal(system(line), 0);
}

static mode_t mode_of(const char *folder, const char *name)
{
    char path[160];
    struct stat st;
    path_in(path, folder, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

/* ---- as it should be --------------------------------------------------------------------------------- */

static void it_holds_each_file_and_is_private(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    works(b, check(b));
    is_filled(b->to, "old");
    assert_int_equal(mode_of(b->dir, "backup"), 0700);
    for (int i = 0; i < BACKUP_N_ITEMS; i++)
        if (b->m.files[i].is_in) assert_int_equal(mode_of(b->to, BACKUP_ITEMS[i].name), 0600);
    assert_int_equal(mode_of(b->to, MANIFEST_NAME), 0600);
    assert_string_equal(b->m.version, SHOAL_VERSION);
    assert_int_equal(b->m.created, 1795994949);
    none_is_left(b->dir, ".tmp.");
}

static void nothing_is_overwritten(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    fill(b->state, "later");
    assert_int_equal(take(b, true), SHOAL_EINVALID);
    assert_non_null(strstr(b->err.message, "is there already: a backup overwrites nothing"));
    is_filled(b->to, "old");
}

static void an_empty_state_is_no_backup(void **state)
{
    bench *b = *state;
    run("rm -rf %s%s", b->state, "");
    assert_int_equal(take(b, true), SHOAL_ENOTFOUND);
    assert_non_null(strstr(b->err.message, "there is nothing to back up"));
    assert_false(exists(b->dir, "backup"));
    none_is_left(b->dir, ".tmp.");
}

static void a_damaged_database_is_not_backed_up(void **state)
{
    bench *b = *state;
    write_text(b->state, "collections.db", "this was no database, and is long enough to be looked at");
    assert_int_equal(take(b, true), SHOAL_EFORMAT);
    assert_non_null(strstr(b->err.message, "collections.db is damaged"));
    assert_false(exists(b->dir, "backup"));
    none_is_left(b->dir, ".tmp.");
}

static void it_comes_back(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    run("rm -rf %s%s", b->state, "");
    works(b, restore(b));
    assert_false(b->r.moved || b->r.finished);
    is_filled(b->state, "old");
    assert_int_equal(mode_of(b->state, "sessions.db"), 0600);
    assert_int_equal(mode_of(b->state, "ca/ca.key"), 0600);
    none_is_left(b->state, "restor");
}

static void what_was_there_goes_aside(void **state)
{
    bench *b = *state;
    char aside[160];
    works(b, take(b, true));
    fill(b->state, "newer");
    write_text(b->state, "variants.json", "not in the backup");
    write_text(b->state, "sessions.db-wal", "a log of another file");
    works(b, restore(b));
    is_filled(b->state, "old");
    assert_false(exists(b->state, "variants.json"));
    assert_true(b->r.moved);
    path_in(aside, b->state, b->r.m.aside);
    assert_string_equal(read_text(aside, "sessions.db-wal"), "a log of another file");
    run("rm %s/sessions.db-wal%s", aside, "");
    is_filled(aside, "newer");
    assert_string_equal(read_text(aside, "variants.json"), "not in the backup");
    works(b, restore(b)); /* in the same second */
    assert_string_equal(b->r.m.aside, "before-restore-2026-11-30T005320Z-2");
    is_filled(aside, "newer");
}

static void keys_that_were_left_out_stay(void **state)
{
    bench *b = *state;
    works(b, take(b, false));
    assert_true(b->m.files[BACKUP_SESSION_KEYS].left_out && b->m.files[BACKUP_CA_KEY].left_out);
    assert_false(exists(b->to, "sessions.key") || exists(b->to, "ca/ca.key"));
    write_text(b->state, "sessions.key", "newer");
    works(b, restore(b));
    assert_string_equal(read_text(b->state, "sessions.key"), "newer");
    assert_string_equal(read_text(b->state, "ca/ca.key"), "old");
}

/* sessions.db is at `place` of the bench's folder from now on. */
static void put_sessions_at(bench *b, const char *place)
{
    char path[160];
    path_in(path, b->dir, place);
    free(b->places.path[BACKUP_SESSIONS]);
    b->places.path[BACKUP_SESSIONS] = strdup(path);
}

static void files_outside_the_state_folder_come_back_there(void **state)
{
    bench *b = *state;
    char aside[200];
    put_sessions_at(b, "elsewhere/mine.db");
    put_row(b->dir, "elsewhere/mine.db", "far", 1);
    works(b, take(b, true));
    put_row(b->dir, "elsewhere/mine.db", "farther", 1);
    works(b, restore(b));
    assert_string_equal(row_of(b->dir, "elsewhere/mine.db"), "far");
    snprintf(aside, sizeof aside, "elsewhere/mine.db.%s", b->r.m.aside);
    assert_string_equal(row_of(b->dir, aside), "farther");
    assert_string_equal(row_of(b->state, "sessions.db"), "old");
}

static void an_open_file_elsewhere_keeps_restores_of_other_folders_out(void **state)
{
    bench *b = *state;
    int server, other;
    const struct stat owner = {.st_uid = geteuid(), .st_gid = getegid()};
    put_sessions_at(b, "elsewhere/mine.db");
    put_row(b->dir, "elsewhere/mine.db", "far", 1);
    works(b, take(b, true));
    put_row(b->dir, "elsewhere/mine.db", "farther", 1);
    works(b, state_hold_file(&server, b->places.path[BACKUP_SESSIONS], &b->err)); /* not the state folder */
    works(b, state_hold_file(&other, b->places.path[BACKUP_SESSIONS], &b->err));
    assert_int_equal(restore(b), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(b->err.message, "elsewhere/mine.db: a server, an agent or a backup is at work"));
    assert_string_equal(row_of(b->dir, "elsewhere/mine.db"), "farther");
    close(other);
    close(server);
    works(b, restore(b));
    assert_string_equal(row_of(b->dir, "elsewhere/mine.db"), "far");
    works(b, state_claim_file(&other, b->places.path[BACKUP_SESSIONS], &owner, &b->err));
    assert_int_equal(state_hold_file(&server, b->places.path[BACKUP_SESSIONS], &b->err), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(b->err.message, "mine.db: shoal restore is at work there"));
    assert_int_equal(server, -1);
    close(other);
}

static void a_file_outside_of_a_named_folder_is_named(void **state)
{
    bench *b = *state;
    works(b, backup_places_check_below(&b->places, &b->err));
    b->places.path[BACKUP_CONFIG] = strdup("/etc/shoal/shoal.yaml");
    put_sessions_at(b, "state/deep/mine.db");
    works(b, backup_places_check_below(&b->places, &b->err));
    put_sessions_at(b, "state-of-another/mine.db");
    assert_int_equal(backup_places_check_below(&b->places, &b->err), SHOAL_EFORMAT);
    assert_non_null(strstr(b->err.message, "/etc/shoal/shoal.yaml puts sessions.db at /tmp/shoal-backup-"));
    assert_non_null(strstr(b->err.message, "name the configuration with --config, too"));
}

/* ---- refusals --------------------------------------------------------------------------------------- */

static void a_server_in_the_folder_is_named(void **state)
{
    bench *b = *state;
    int server, other;
    works(b, take(b, true));
    fill(b->state, "newer");
    works(b, state_hold(&server, b->state, &b->err));
    works(b, state_hold(&other, b->state, &b->err)); /* any number of them */
    works(b, (run("rm -r %s%s", b->to, ""), take(b, true)));
    assert_int_equal(restore(b), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(b->err.message, "a server, an agent or a backup is at work there: stop it first"));
    is_filled(b->state, "newer");
    close(server);
    close(other);
    works(b, restore(b));
}

static void a_restore_keeps_servers_out(void **state)
{
    bench *b = *state;
    int claim, server;
    works(b, state_claim(&claim, b->state, &b->err));
    assert_int_equal(state_hold(&server, b->state, &b->err), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(b->err.message, "shoal restore is at work there"));
    assert_int_equal(server, -1);
    close(claim);
    write_text(b->state, STATE_RESTORE, "{}");
    assert_int_equal(state_hold(&server, b->state, &b->err), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(b->err.message, "a restore was interrupted: run the same shoal restore again"));
    assert_int_equal(take(b, true), SHOAL_EUNAVAILABLE); /* what is no whole state is no backup */
    run("rm %s/" STATE_RESTORE "%s", b->state, "");
    works(b, state_hold(&server, b->state, &b->err));
    close(server);
}

static void refuses(bench *b, int code, const char *why)
{
    int rc = restore(b);
    if (rc != code || !strstr(b->err.message, why)) print_error("%d: %s\n", rc, b->err.message);
    assert_int_equal(rc, code);
    assert_non_null(strstr(b->err.message, why));
    is_filled(b->state, "newer");
    none_is_left(b->state, ".restoring");
    none_is_left(b->state, "before-restore");
    assert_false(exists(b->state, STATE_RESTORE));
}

static void what_is_damaged_changes_nothing(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    fill(b->state, "newer");
    run("cp -r %s %s/whole", b->to, b->dir);
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        if (!b->m.files[i].is_in) continue;
        const char *name = BACKUP_ITEMS[i].name;
        run("printf X | dd of=%s/%s conv=notrunc status=none", b->to, name);
        assert_int_equal(check(b), SHOAL_EDIGEST);
        assert_non_null(strstr(b->err.message, name));
        refuses(b, SHOAL_EDIGEST, "is damaged");
        run("truncate -s +1 %s/%s", b->to, name);
        refuses(b, SHOAL_EDIGEST, "is damaged");
        run("rm %s/%s", b->to, name);
        assert_int_equal(check(b), SHOAL_EFORMAT);
        refuses(b, SHOAL_EFORMAT, "is missing from the backup");
        run("rm -r %s%s", b->to, "");
        run("cp -r %s/whole %s", b->dir, b->to);
    }
    works(b, restore(b));
}

static void links_are_not_followed(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    fill(b->state, "newer");
    run("mv %s/sessions.key %s/key", b->to, b->dir);
    run("ln -s ../key %s/sessions.key%s", b->to, "");
    refuses(b, SHOAL_EFORMAT, "sessions.key is no regular file");
    run("rm %s/sessions.key && mkfifo %s/sessions.key", b->to, b->to);
    refuses(b, SHOAL_EFORMAT, "sessions.key is no regular file");
    run("rm %s/sessions.key && mkdir %s/sessions.key", b->to, b->to);
    refuses(b, SHOAL_EFORMAT, "sessions.key is no regular file");
}

static void folders_of_links_are_not_followed(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    fill(b->state, "newer");
    run("mv %s/ca %s/ca-elsewhere", b->to, b->dir);
    run("ln -s ../ca-elsewhere %s/ca%s", b->to, "");
    refuses(b, SHOAL_EFORMAT, "is no regular file");
    run("rm %s/manifest.json && ln -s /etc/passwd %s/manifest.json", b->to, b->to);
    refuses(b, SHOAL_EFORMAT, "manifest.json is no regular file");
}

static void links_in_the_state_are_not_followed(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    fill(b->state, "newer");
    run("rm -f %s/ca/lock%s", b->state, "");
    run("mv %s/ca %s/trap", b->state, b->dir);
    run("ln -s ../trap %s/ca%s", b->state, "");
    refuses(b, SHOAL_EUNSUPPORTED, "state/ca is a link, which a restore does not follow");
    assert_non_null(strstr(b->err.message, "; nothing has changed"));
    assert_false(exists(b->dir, "trap/lock"));
}

static void links_to_files_are_not_replaced(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    fill(b->state, "newer");
    run("mv %s/loaded.json %s/trap", b->state, b->dir);
    run("ln -s ../trap %s/loaded.json%s", b->state, "");
    refuses(b, SHOAL_EUNSUPPORTED, "state/loaded.json is a link, which a restore does not follow");
    assert_non_null(strstr(b->err.message, "; nothing has changed"));
}

static void links_in_the_way_of_new_files_are_not_followed(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    fill(b->state, "newer");
    write_text(b->dir, "trap", "somebody's");
    run("ln -s ../trap %s/" STATE_RESTORE ".restoring%s", b->state, "");
    run("ln -s ../trap %s/loaded.json.restoring%s", b->state, "");
    works(b, restore(b));
    is_filled(b->state, "old");
    assert_string_equal(read_text(b->dir, "trap"), "somebody's");
    none_is_left(b->state, ".restoring");
}

static void what_is_no_backup_is_named(void **state)
{
    bench *b = *state;
    fill(b->state, "newer");
    refuses(b, SHOAL_ENOTFOUND, "backup");
    write_text(b->dir, "backup", "a file");
    refuses(b, SHOAL_EFORMAT, "is no backup: a backup is a folder");
    run("rm %s && mkdir %s", b->to, b->to);
    refuses(b, SHOAL_EFORMAT, "manifest.json is missing from the backup");
    write_text(b->to, MANIFEST_NAME, "{\"shoal_backup\":2}");
    refuses(b, SHOAL_EUNSUPPORTED, "a newer Shoal made this backup");
}

static void a_newer_database_is_refused(void **state)
{
    bench *b = *state;
    run("rm %s/collections.db%s", b->state, "");
    put_row(b->state, "collections.db", "old", 99);
    works(b, take(b, true));
    run("rm -r %s%s", b->state, "");
    fill(b->state, "newer");
    char why[96];
    snprintf(why, sizeof why, "collections.db was made by a newer Shoal (form 99, this one knows %d)",
             backup_item_version(BACKUP_COLLECTIONS));
    refuses(b, SHOAL_EUNSUPPORTED, why);
}

/* ---- each write refused ------------------------------------------------------------------------------- */

static void a_backup_that_cannot_be_written_leaves_nothing(void **state)
{
    bench *b = *state;
    int n = 0;
    for (;; n++) {
        n_before_refusal = n;
        int rc = take(b, true);
        bool reached = n_before_refusal < 0;
        n_before_refusal = -1;
        none_is_left(b->dir, ".tmp.");
        if (rc == 0 && !reached) break;
        if (rc == 0) { /* SQLite does without a write of its own log */
            works(b, check(b));
            run("rm -r %s%s", b->to, "");
            continue;
        }
        assert_true(b->err.message[0] != '\0');
        assert_false(exists(b->dir, "backup"));
        is_filled(b->state, "old");
    }
    assert_true(n > 10);
    works(b, check(b));
}

/* One whose n-th write is refused. 1: it was done, and none was refused. */
static int restore_refused_at(bench *b, int n)
{
    int server;
    n_before_refusal = n;
    int rc = restore(b);
    bool reached = n_before_refusal < 0;
    n_before_refusal = -1;
    if (rc == 0) return reached ? -1 : 1;
    if (!exists(b->state, STATE_RESTORE)) {
        is_filled(b->state, "newer");
        none_is_left(b->state, ".restoring");
        return 0;
    }
    assert_non_null(strstr(b->err.message, "the restore is not finished: run it again"));
    assert_int_equal(state_hold(&server, b->state, &b->err), SHOAL_EUNAVAILABLE);
    works(b, restore(b));
    assert_true(b->r.finished);
    return -1;
}

static void a_restore_is_all_or_nothing_wherever_it_is_cut(void **state)
{
    bench *b = *state;
    char aside[160];
    int done = 0, n_kept = 0, n_finished = 0;
    works(b, take(b, true));
    for (int n = 0; done != 1; n++) {
        run("rm -rf %s%s", b->state, "");
        fill(b->state, "newer");
        write_text(b->state, "drains", "not in the backup");
        done = restore_refused_at(b, n);
        n_kept += done == 0 && exists(b->state, "drains");
        n_finished += done < 0;
        if (done == 0) continue;
        is_filled(b->state, "old");
        assert_false(exists(b->state, "drains") || exists(b->state, STATE_RESTORE));
        none_is_left(b->state, ".restoring");
        path_in(aside, b->state, b->r.m.aside);
        is_filled(aside, "newer");
        assert_string_equal(read_text(aside, "drains"), "not in the backup");
    }
    assert_true(n_kept > 6);
    assert_true(n_finished > 12);
}

/* Cut at the first write after the journal; the state folder has "newer". */
static void interrupt(bench *b)
{
    for (int n = 0; !exists(b->state, STATE_RESTORE); n++) {
        run("rm -rf %s%s", b->state, "");
        fill(b->state, "newer");
        n_before_refusal = n;
        restore(b);
        n_before_refusal = -1;
    }
}

static void an_interrupted_restore_is_finished_with_the_same_places(void **state)
{
    bench *b = *state;
    put_sessions_at(b, "elsewhere/mine.db");
    put_row(b->dir, "elsewhere/mine.db", "old", 1);
    works(b, take(b, true));
    put_row(b->dir, "elsewhere/mine.db", "newer", 1);
    interrupt(b);
    find_places(b); /* another configuration */
    assert_int_equal(restore(b), SHOAL_EFORMAT);
    assert_non_null(strstr(b->err.message, "puts files elsewhere: run it again with the same --config"));
    assert_true(exists(b->state, STATE_RESTORE));
    assert_string_equal(row_of(b->dir, "elsewhere/mine.db"), "newer");
    put_sessions_at(b, "elsewhere/mine.db");
    works(b, restore(b));
    assert_true(b->r.finished);
    assert_string_equal(row_of(b->dir, "elsewhere/mine.db"), "old");
    assert_false(exists(b->state, STATE_RESTORE));
}

static void a_copy_that_has_gone_is_not_taken_for_one_that_was_moved(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    interrupt(b);
    run("rm %s/loaded.json %s/loaded.json.restoring", b->state, b->state);
    assert_int_equal(restore(b), SHOAL_ENOTFOUND);
    assert_non_null(strstr(b->err.message, "state/loaded.json: neither it nor its copy is there"));
    assert_non_null(strstr(b->err.message, "the restore is not finished"));
    assert_true(exists(b->state, STATE_RESTORE));
}

static void places_have_one_digest_however_they_are_named(void **state)
{
    bench *b = *state;
    char digest[RESTORE_PLACES_SIZE], other[RESTORE_PLACES_SIZE];
    int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put_sessions_at(b, "mine.db");
    works(b, restore_place_digest(digest, &b->places, &b->err));
    assert_int_equal(chdir(b->dir), 0);
    free(b->places.path[BACKUP_SESSIONS]);
    b->places.path[BACKUP_SESSIONS] = strdup("mine.db");
    works(b, restore_place_digest(other, &b->places, &b->err));
    assert_int_equal(fchdir(back), 0);
    close(back);
    assert_string_equal(other, digest);
    put_sessions_at(b, "state/mine.db");
    works(b, restore_place_digest(other, &b->places, &b->err));
    assert_string_not_equal(other, digest);
}

/* ---- stopped, as by Ctrl-C ------------------------------------------------------------------------------ */

static int stop_after(void *user, const char *name, uint64_t done, uint64_t all)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void a_backup_that_is_stopped_leaves_nothing(void **state)
{
    bench *b = *state;
    int n = 0, rc = SHOAL_ECANCELLED;
    for (; rc != 0; n++) {
        int left = n;
        const backup_watch watch = {.progress = stop_after, .user = &left};
        const backup_take_options o = {.places = &b->places, .secrets = true, .now = 1, .watch = &watch};
        rc = backup_take(&b->m, b->to, &o, &b->err);
        none_is_left(b->dir, ".tmp.");
        if (rc == 0) break;
        assert_int_equal(rc, SHOAL_ECANCELLED);
        assert_false(exists(b->dir, "backup"));
    }
    assert_true(n > 6);
    works(b, check(b));
}

typedef struct meanwhile {
    bench *b;
    int n, n_refused;
} meanwhile;

static int restore_meanwhile(void *user, const char *name, uint64_t done, uint64_t all)
{
    meanwhile *m = user;
    int claim = -1;
    shoal_err err;
    m->n++;
    m->n_refused += state_claim(&claim, m->b->state, &err) == SHOAL_EUNAVAILABLE;
    if (claim >= 0) close(claim);
    return 0;
}

static void no_restore_starts_while_a_backup_copies(void **state)
{
    bench *b = *state;
    int claim;
    meanwhile m = {.b = b};
    const backup_watch watch = {.progress = restore_meanwhile, .user = &m};
    const backup_take_options o = {.places = &b->places, .secrets = true, .now = 1, .watch = &watch};
    write_text(b->state, STATE_LOCK, ""); /* of a server that has run there */
    works(b, backup_take(&b->m, b->to, &o, &b->err));
    assert_true(m.n > 6);
    assert_int_equal(m.n_refused, m.n);
    works(b, state_claim(&claim, b->state, &b->err));
    run("rm -r %s%s", b->to, "");
    assert_int_equal(take(b, true), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(b->err.message, "shoal restore is at work there"));
    close(claim);
    works(b, take(b, true));
}

static void a_restore_that_is_stopped_changes_nothing(void **state)
{
    bench *b = *state;
    int n = 0, rc = SHOAL_ECANCELLED;
    works(b, take(b, true));
    fill(b->state, "newer");
    for (; rc != 0; n++) {
        int left = n;
        const backup_watch watch = {.progress = stop_after, .user = &left};
        const backup_restore_options o = {.places = &b->places, .now = 1796000000, .watch = &watch};
        rc = backup_restore(&b->r, b->to, &o, &b->err);
        none_is_left(b->state, ".restoring");
        if (rc == 0) break;
        assert_int_equal(rc, SHOAL_ECANCELLED);
        is_filled(b->state, "newer");
        none_is_left(b->state, "before-restore");
    }
    assert_true(n > 6);
    is_filled(b->state, "old");
}

static void another_backup_is_restored_after_one_that_was_cut(void **state)
{
    bench *b = *state;
    works(b, take(b, true));
    run("mv %s %s/first", b->to, b->dir);
    fill(b->state, "second");
    works(b, take(b, true));
    run("mv %s %s/second", b->to, b->dir);
    run("mv %s/first %s", b->dir, b->to);
    interrupt(b);
    run("rm -r %s%s", b->to, "");
    run("mv %s/second %s", b->dir, b->to);
    works(b, restore(b));
    assert_true(b->r.finished);
    is_filled(b->state, "second");
    run("rm -r %s%s", b->to, ""); /* both that were replaced are aside */
    run("[ $(ls -d %s/before-restore-* | wc -l) = 2 ]%s", b->state, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_holds_each_file_and_is_private),
        TEST(nothing_is_overwritten),
        TEST(an_empty_state_is_no_backup),
        TEST(a_damaged_database_is_not_backed_up),
        TEST(it_comes_back),
        TEST(what_was_there_goes_aside),
        TEST(keys_that_were_left_out_stay),
        TEST(files_outside_the_state_folder_come_back_there),
        TEST(an_open_file_elsewhere_keeps_restores_of_other_folders_out),
        TEST(a_file_outside_of_a_named_folder_is_named),
        TEST(a_server_in_the_folder_is_named),
        TEST(a_restore_keeps_servers_out),
        TEST(what_is_damaged_changes_nothing),
        TEST(links_are_not_followed),
        TEST(folders_of_links_are_not_followed),
        TEST(links_in_the_state_are_not_followed),
        TEST(links_to_files_are_not_replaced),
        TEST(links_in_the_way_of_new_files_are_not_followed),
        TEST(what_is_no_backup_is_named),
        TEST(a_newer_database_is_refused),
        TEST(a_backup_that_cannot_be_written_leaves_nothing),
        TEST(a_restore_is_all_or_nothing_wherever_it_is_cut),
        TEST(an_interrupted_restore_is_finished_with_the_same_places),
        TEST(a_copy_that_has_gone_is_not_taken_for_one_that_was_moved),
        TEST(places_have_one_digest_however_they_are_named),
        TEST(another_backup_is_restored_after_one_that_was_cut),
        TEST(a_backup_that_is_stopped_leaves_nothing),
        TEST(no_restore_starts_while_a_backup_copies),
        TEST(a_restore_that_is_stopped_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
