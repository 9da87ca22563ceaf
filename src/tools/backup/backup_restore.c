/* backup_restore.c: see backup_restore.h. */
#define _GNU_SOURCE
#include "backup/backup_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backup/backup_files.h"
#include "backup/restore_place.h"
#include "base/file.h"
#include "sql/database_copy.h"
#include "trust/folder.h"
#include "trust/state.h"

enum { PATH_SIZE = 4096 + 128, ASIDE_TRIES = 1000 };
#define STAGED       ".restoring"
#define NOT_FINISHED "the restore is not finished: run it again when that is mended"

typedef struct restoring {
    const backup_restore_options *o;
    const char *from;
    struct stat owner; /* of the state folder: what root makes goes to him */
    manifest m;        /* with the aside */
} restoring;

static int restore_fail(shoal_err *err, const char *path)
{
    return err_set(err, errno == EACCES || errno == EPERM || errno == EROFS ? SHOAL_EAUTH : SHOAL_EIO,
                   "%s: %s", path, strerror(errno));
}

static int err_after(shoal_err *err, int rc, const char *what)
{
    shoal_err why = *err;
    return err_set(err, rc, "%.300s; %s", why.message, what);
}

static const char *place_of(const restoring *r, int id)
{
    return r->o->places->path[id];
}

/* Files that a restore changes. */
static bool is_restored(const restoring *r, int id)
{
    return BACKUP_ITEMS[id].kind != BACKUP_SETTINGS && !r->m.files[id].left_out && place_of(r, id);
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Links and mounts are refused before anything is written. */
static int check_places(const restoring *r, const char *otherwise, shoal_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++)
        if (is_restored(r, i)) rc = restore_place_check(r->o->places, (backup_id)i, err);
    return rc == 0 ? 0 : err_after(err, rc, otherwise);
}

/* ---- 1: copies beside their places --------------------------------------------------------------- */

/* Nothing is changed where there are none. Needs no memory. */
static void remove_staged(const restoring *r)
{
    char path[PATH_SIZE];
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        if (!is_restored(r, i)) continue;
        snprintf(path, sizeof path, "%s" STAGED, place_of(r, i));
        unlink(path);
    }
}

static int check_version(const restoring *r, int id, const char *staged, shoal_err *err)
{
    int version;
    if (BACKUP_ITEMS[id].kind != BACKUP_DATABASE) return 0;
    int rc = database_version_of(staged, &version, err);
    if (rc != 0 || version <= backup_item_version((backup_id)id)) return rc;
    return err_set(err, SHOAL_EUNSUPPORTED,
                   "%s/%s was made by a newer Shoal (form %d, this one knows %d): restore it with Shoal %s",
                   r->from, BACKUP_ITEMS[id].name, version, backup_item_version((backup_id)id), r->m.version);
}

static int stage(const restoring *r, int at, int id, shoal_err *err)
{
    char *staged = backup_files_path("%s" STAGED, place_of(r, id));
    int rc = staged ? state_make_folders(staged, &r->owner, err) : err_nomem(err);
    if (rc == 0) {
        unlink(staged); /* of a restore that was killed before it changed anything */
        rc = backup_files_verify(at, r->from, (backup_id)id, &r->m, staged, r->o->watch, err);
    }
    if (rc == 0) rc = check_version(r, id, staged, err);
    if (rc == 0) rc = state_give(staged, &r->owner, err);
    if (rc == 0) rc = file_sync_name(staged, err);
    free(staged);
    return rc;
}

/* The configuration is only verified. */
static int stage_all(const restoring *r, int at, shoal_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++) {
        if (!r->m.files[i].is_in) continue;
        rc = is_restored(r, i)
                 ? stage(r, at, i, err)
                 : backup_files_verify(at, r->from, (backup_id)i, &r->m, NULL, r->o->watch, err);
    }
    return rc;
}

/* ---- 2: from here on the new state counts ------------------------------------------------------------ */

static int choose_aside(restoring *r, shoal_err *err)
{
    struct tm tm;
    time_t now = (time_t)r->o->now;
    char date[32] = "", path[PATH_SIZE];
    if (gmtime_r(&now, &tm)) strftime(date, sizeof date, "%Y-%m-%dT%H%M%SZ", &tm);
    for (int i = 1; i < ASIDE_TRIES; i++) {
        snprintf(r->m.aside, sizeof r->m.aside, i == 1 ? "before-restore-%s" : "before-restore-%s-%d", date,
                 i);
        snprintf(path, sizeof path, "%s/%s", r->o->places->state, r->m.aside);
        if (!is_there(path)) return 0;
    }
    return err_set(err, SHOAL_EFULL, "%s is there already, and %d more: move some of them away", path,
                   ASIDE_TRIES);
}

/* A new file, so that no link of the account that serves leads root's writing elsewhere. */
static int write_journal(const restoring *r, const char *path, shoal_err *err)
{
    buf text = {0};
    char *fresh = backup_files_path("%s" STAGED, path);
    int rc = fresh ? 0 : err_nomem(err);
    if (rc == 0) {
        unlink(fresh);
        manifest_put(&r->m, &text);
        rc = backup_files_write(fresh, &text, err);
    }
    if (rc == 0 && rename(fresh, path) != 0) rc = restore_fail(err, path);
    if (rc != 0 && fresh) unlink(fresh);
    buf_done(&text);
    free(fresh);
    return rc;
}

/* ---- 3: moving ------------------------------------------------------------------------------------- */

/* STATE/before-restore-DATE/NAME, for what is elsewhere PLACE.before-restore-DATE. */
static char *aside_of(const restoring *r, int id, const char *ending)
{
    const backup_places *p = r->o->places;
    return backup_places_is_usual(p, (backup_id)id)
               ? backup_files_path("%s/%s/%s%s", p->state, r->m.aside, BACKUP_ITEMS[id].name, ending)
               : backup_files_path("%s.%s%s", place_of(r, id), r->m.aside, ending);
}

static int move_file(const restoring *r, const char *from, const char *to, shoal_err *err)
{
    int rc = state_make_folders(to, &r->owner, err);
    if (rc == 0 && rename(from, to) != 0) rc = restore_fail(err, from);
    if (rc == 0) rc = file_sync_name(to, err);
    return rc == 0 ? file_sync_name(from, err) : rc;
}

static int move_aside(const restoring *r, int id, const char *ending, shoal_err *err)
{
    char *from = backup_files_path("%s%s", place_of(r, id), ending), *to = aside_of(r, id, ending);
    int rc = from && to ? 0 : err_nomem(err);
    if (rc == 0 && is_there(from)) rc = move_file(r, from, to, err);
    free(to);
    free(from);
    return rc;
}

/* The log first: beside another database it would be read into that. */
static int move_old(const restoring *r, int id, shoal_err *err)
{
    int rc = 0;
    for (size_t i = BACKUP_ITEMS[id].kind == BACKUP_DATABASE ? BACKUP_N_ENDINGS : 1; rc == 0 && i > 0; i--)
        rc = move_aside(r, id, BACKUP_ENDINGS[i - 1], err);
    return rc;
}

/* One that is in its place already has no copy beside it any more. */
static int move_in(const restoring *r, int id, shoal_err *err)
{
    char *staged = backup_files_path("%s" STAGED, place_of(r, id));
    int rc = staged ? 0 : err_nomem(err);
    if (rc == 0 && is_there(staged)) {
        rc = move_old(r, id, err);
        if (rc == 0) rc = move_file(r, staged, place_of(r, id), err);
    } else if (rc == 0 && !is_there(place_of(r, id))) {
        rc = err_set(err, SHOAL_ENOTFOUND, "%s: neither it nor its copy is there: is its disk mounted?",
                     place_of(r, id));
    }
    free(staged);
    return rc;
}

static int remove_journal(const char *path, shoal_err *err)
{
    if (unlink(path) != 0 && errno != ENOENT) return restore_fail(err, path);
    (void)file_sync_name(path, NULL); /* all is in its place, whatever becomes of this */
    return 0;
}

static int move_all(const restoring *r, const char *journal, shoal_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++) {
        if (!is_restored(r, i)) continue;
        rc = r->m.files[i].is_in ? move_in(r, i, err) : move_old(r, i, err);
    }
    return rc == 0 ? remove_journal(journal, err) : rc;
}

/* The journal's name is on the disk before the first file moves, and goes after the last. */
static int finish(restoring *r, shoal_err *err)
{
    char *journal = backup_files_path("%s/" STATE_RESTORE, r->o->places->state);
    int rc = journal ? file_sync_name(journal, err) : err_nomem(err);
    if (rc == 0) rc = move_all(r, journal, err);
    free(journal);
    return rc == 0 ? 0 : err_after(err, rc, NOT_FINISHED);
}

/* ---- whose turn it is ------------------------------------------------------------------------------ */

/* shoal ca and shoal token, too, wait until it is over. -1: there is no CA. */
static int lock_ca(const restoring *r, int *ret_lock, shoal_err *err)
{
    folder ca = FOLDER_NONE;
    char *path = backup_files_path("%s/ca", r->o->places->state);
    *ret_lock = -1;
    int rc = path ? folder_open(&ca, path, r->m.files[BACKUP_CA_LEDGER].is_in, err) : err_nomem(err);
    if (rc == 0 && r->m.files[BACKUP_CA_LEDGER].is_in) rc = state_give(path, &r->owner, err);
    if (rc == 0) rc = folder_lock(&ca, ret_lock, err);
    folder_close(&ca);
    free(path);
    return rc == SHOAL_ENOTFOUND ? 0 : rc;
}

static int with_ca_locked(restoring *r, int (*run)(restoring *r, shoal_err *err), shoal_err *err)
{
    int lock, rc = lock_ca(r, &lock, err);
    if (rc == 0) rc = run(r, err);
    if (lock >= 0) folder_unlock(lock);
    return rc;
}

static int read_journal(manifest *ret, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, MANIFEST_BYTES_MAX, err);
    if (rc == 0) rc = manifest_parse(ret, buf_text(&text), text.len, path, err);
    if (rc == 0 && !*ret->aside)
        rc = err_set(err, SHOAL_EFORMAT, "%s: it says no folder for what was there", path);
    buf_done(&text);
    return rc;
}

/* A copy that waits beside another place would be taken for one that has been moved. */
static int check_same_places(const restoring *r, const char *journal, shoal_err *err)
{
    char places[RESTORE_PLACES_SIZE];
    int rc = restore_place_digest(places, r->o->places, err);
    if (rc != 0 || strcmp(places, r->m.places) == 0) return rc;
    return err_set(
        err, SHOAL_EFORMAT,
        "%s: this restore was begun with a configuration that puts files elsewhere: run it again with the "
        "same --config",
        journal);
}

/* Before anything else: the state is not whole until then. *ret: there was one. */
static int finish_interrupted(restoring *r, bool *ret, shoal_err *err)
{
    char *path = backup_files_path("%s/" STATE_RESTORE, r->o->places->state);
    *ret = path && is_there(path);
    int rc = !path ? err_nomem(err) : *ret ? read_journal(&r->m, path, err) : 0;
    if (rc == 0 && *ret) rc = check_same_places(r, path, err);
    if (rc == 0 && *ret) rc = check_places(r, NOT_FINISHED, err);
    if (rc == 0 && *ret) rc = with_ca_locked(r, finish, err);
    free(path);
    return rc;
}

static int put_in_place(restoring *r, shoal_err *err)
{
    char *journal = backup_files_path("%s/" STATE_RESTORE, r->o->places->state);
    int rc = journal ? choose_aside(r, err) : err_nomem(err);
    if (rc == 0) rc = restore_place_digest(r->m.places, r->o->places, err);
    if (rc == 0) rc = write_journal(r, journal, err);
    free(journal);
    return rc == 0 ? finish(r, err) : rc;
}

static bool journal_is_there(const restoring *r)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/" STATE_RESTORE, r->o->places->state);
    return is_there(path);
}

static int restore_this(restoring *r, int at, shoal_err *err)
{
    int rc = check_places(r, "nothing has changed", err);
    if (rc != 0) return rc;
    rc = stage_all(r, at, err);
    if (rc == 0) rc = with_ca_locked(r, put_in_place, err);
    if (rc != 0 && !journal_is_there(r)) remove_staged(r);
    return rc;
}

static bool aside_is_there(const restoring *r)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", r->o->places->state, r->m.aside);
    return is_there(path);
}

static int restore_claimed(restoring *r, int at, const manifest *asked, backup_restored *ret, shoal_err *err)
{
    bool finished;
    int rc = finish_interrupted(r, &finished, err);
    if (rc == 0 && !(finished && manifest_same(&r->m, asked))) {
        r->m = *asked;
        *r->m.aside = *r->m.places = '\0';
        rc = restore_this(r, at, err);
    }
    if (rc == 0) *ret = (backup_restored){.m = r->m, .finished = finished, .moved = aside_is_there(r)};
    return rc;
}

/* The backup is looked at first: no state folder is made for one that cannot be restored. */
int backup_restore(backup_restored *ret, const char *from, const backup_restore_options *o, shoal_err *err)
{
    restoring r = {.o = o, .from = from};
    backup_locks locks = {0};
    manifest asked;
    int at;
    int rc = backup_files_open(&at, from, err);
    if (rc != 0) return rc;
    rc = backup_files_manifest(&asked, at, from, err);
    if (rc == 0) rc = backup_locks_claim(&locks, o->places, err);
    if (rc == 0 && stat(o->places->state, &r.owner) != 0) rc = restore_fail(err, o->places->state);
    if (rc == 0) rc = restore_claimed(&r, at, &asked, ret, err);
    backup_locks_done(&locks);
    close(at);
    return rc;
}
