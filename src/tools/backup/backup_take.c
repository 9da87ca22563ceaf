/* backup_take.c: see backup_take.h. */
#define _GNU_SOURCE
#include "backup/backup_take.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/backup_files.h"
#include "base/file.h"
#include "sql/database_copy.h"
#include "trust/folder.h"
#include "trust/state.h"

enum { PATH_SIZE = 4096 + 64 };

typedef struct taking {
    const backup_take_options *o;
    char *folder; /* NAME.tmp.PID */
    manifest m;
    const char *item; /* that is copied */
} taking;

static bool is_of_ca(backup_id id)
{
    return strncmp(BACKUP_ITEMS[id].name, "ca/", 3) == 0;
}

static int take_fail(shoal_err *err, const char *path)
{
    return err_set(err, errno == EACCES || errno == EROFS ? SHOAL_EAUTH : SHOAL_EIO, "%s: %s", path,
                   strerror(errno));
}

/* ---- one file ------------------------------------------------------------------------------------ */

static int take_on_progress(void *user, uint64_t done, uint64_t all)
{
    const taking *t = user;
    const backup_watch *w = t->o->watch;
    return w && w->progress ? w->progress(w->user, t->item, done, all) : 0;
}

static int take_database(taking *t, backup_id id, const char *to, shoal_err *err)
{
    manifest_file f = {.is_in = true};
    struct stat st;
    database_copy_options o = {.from = t->o->places->path[id],
                               .to = to,
                               .lost = id == BACKUP_SESSIONS ? "conversations begin anew"
                                                             : "add the documents again",
                               .progress = take_on_progress,
                               .user = t};
    int rc = database_copy(&o, err);
    if (rc == 0) rc = sha256_file(to, &f.digest, err);
    if (rc == 0 && stat(to, &st) != 0) rc = take_fail(err, to);
    if (rc != 0) return rc;
    f.bytes = (uint64_t)st.st_size;
    t->m.files[id] = f;
    return 0;
}

static int take_file(taking *t, backup_id id, const char *to, shoal_err *err)
{
    backup_file_copy c = {.what = t->item, .to = to, .mode = 0600, .watch = t->o->watch};
    size_t bytes;
    int rc = file_open_regular(&c.from, &bytes, t->o->places->path[id], err);
    if (rc != 0) return rc;
    c.all = bytes;
    rc = backup_files_copy(&c, &t->m.files[id], err);
    close(c.from);
    return rc;
}

static int make_folder_of_ca(const taking *t, shoal_err *err)
{
    char *path = backup_files_path("%s/ca", t->folder);
    int rc = !path ? err_nomem(err) : mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : take_fail(err, path);
    free(path);
    return rc;
}

/* What is not there is not in the backup. */
static int take_item(taking *t, backup_id id, shoal_err *err)
{
    const char *from = t->o->places->path[id];
    struct stat st;
    if (BACKUP_ITEMS[id].secret && !t->o->secrets) {
        t->m.files[id].left_out = true;
        return 0;
    }
    if (!from || (stat(from, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))) return 0;
    char *to = backup_files_path("%s/%s", t->folder, BACKUP_ITEMS[id].name);
    int rc = to ? 0 : err_nomem(err);
    t->item = BACKUP_ITEMS[id].name;
    if (rc == 0 && is_of_ca(id)) rc = make_folder_of_ca(t, err);
    if (rc == 0) rc = (BACKUP_ITEMS[id].kind == BACKUP_DATABASE ? take_database : take_file)(t, id, to, err);
    free(to);
    return rc;
}

/* ---- all of them --------------------------------------------------------------------------------- */

static int take_items(taking *t, bool of_ca, shoal_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++)
        if (is_of_ca((backup_id)i) == of_ca) rc = take_item(t, (backup_id)i, err);
    return rc;
}

/* Its ledger, its key and what was made of them are of one moment. */
static int take_ca(taking *t, shoal_err *err)
{
    folder ca = FOLDER_NONE;
    int lock = -1;
    char *path = backup_files_path("%s/ca", t->o->places->state);
    int rc = path ? folder_open(&ca, path, false, err) : err_nomem(err);
    bool none = rc == SHOAL_ENOTFOUND;
    if (rc == 0) rc = folder_lock(&ca, &lock, err);
    if (rc == 0 || none) rc = take_items(t, true, err);
    if (lock >= 0) folder_unlock(lock);
    folder_close(&ca);
    free(path);
    return rc;
}

static int check_any(const taking *t, shoal_err *err)
{
    for (int i = 0; i < BACKUP_N_ITEMS; i++)
        if (i != BACKUP_CONFIG && t->m.files[i].is_in) return 0;
    return err_set(
        err, SHOAL_ENOTFOUND,
        "%s: there is nothing to back up; say where the server keeps its state with --config or --state",
        t->o->places->state);
}

/* The names in its folders, too, are on the disk when it takes its own. */
static int take_manifest(const taking *t, shoal_err *err)
{
    buf text = {0};
    char *path = backup_files_path("%s/" MANIFEST_NAME, t->folder),
         *ca = backup_files_path("%s/ca/x", t->folder);
    manifest_put(&t->m, &text);
    int rc = path && ca ? backup_files_write(path, &text, err) : err_nomem(err);
    if (rc == 0 && t->m.files[BACKUP_CA_LEDGER].is_in) rc = file_sync_name(ca, err);
    if (rc == 0) rc = file_sync_name(path, err);
    buf_done(&text);
    free(ca);
    free(path);
    return rc;
}

/* Only what may be in it: a folder with something else stays. Needs no memory. */
static void remove_backup(const char *folder)
{
    static const char *const more[] = {MANIFEST_NAME, "ca", ""};
    char path[PATH_SIZE];
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, BACKUP_ITEMS[i].name);
        unlink(path);
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, more[i]);
        remove(path);
    }
}

static int take_into_folder(taking *t, const char *to, shoal_err *err)
{
    if (mkdir(t->folder, 0700) != 0) return take_fail(err, t->folder);
    int rc = take_items(t, false, err);
    if (rc == 0) rc = take_ca(t, err);
    if (rc == 0) rc = check_any(t, err);
    if (rc == 0) rc = take_manifest(t, err);
    if (rc == 0 && rename(t->folder, to) != 0) rc = take_fail(err, to);
    if (rc != 0) remove_backup(t->folder);
    if (rc == 0 && (rc = file_sync_name(to, err)) != 0) remove_backup(to);
    return rc;
}

int backup_take(manifest *ret, const char *to, const backup_take_options *o, shoal_err *err)
{
    struct stat st;
    size_t n = strlen(to);
    while (n > 1 && to[n - 1] == '/') n--;
    char *name = strndup(to, n);
    taking t = {.o = o, .m = {.version = SHOAL_VERSION, .created = o->now}};
    t.folder = name ? backup_files_path("%s.tmp.%d", name, (int)getpid()) : NULL;
    backup_locks locks = {0}; /* until it has its name: no restore changes half of what is copied */
    int rc = t.folder ? backup_locks_share(&locks, o->places, err) : err_nomem(err);
    if (rc == 0 && lstat(name, &st) == 0)
        rc = err_set(err, SHOAL_EINVALID, "%s is there already: a backup overwrites nothing", name);
    if (rc == 0) rc = take_into_folder(&t, name, err);
    if (rc == 0) *ret = t.m;
    backup_locks_done(&locks);
    free(t.folder);
    free(name);
    return rc;
}

int backup_check(manifest *ret, const char *from, const backup_watch *watch, shoal_err *err)
{
    manifest m;
    int at, rc = backup_files_open(&at, from, err);
    if (rc != 0) return rc;
    rc = backup_files_manifest(&m, at, from, err);
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++)
        if (m.files[i].is_in) rc = backup_files_verify(at, from, (backup_id)i, &m, NULL, watch, err);
    close(at);
    if (rc == 0) *ret = m;
    return rc;
}
