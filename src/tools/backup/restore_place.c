/* restore_place.c: see restore_place.h. */
#define _GNU_SOURCE
#include "backup/restore_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backup/backup_files.h"
#include "base/file.h"
#include "base/sha256.h"

#ifndef STATX_MNT_ID /* headers of a kernel before 5.8 */
#define STATX_MNT_ID 0
#endif

/* ---- can they be moved there? ---------------------------------------------------------------------- */

/* False where it is missing or cannot be looked at: whoever opens it hears why. */
static bool look(struct statx *ret, const char *path, int flags)
{
    return statx(AT_FDCWD, path, flags | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, ret) == 0;
}

static bool is_same_device(const struct statx *a, const struct statx *b)
{
    return a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor;
}

/* -1: the kernel does not say (before 5.8). */
static int is_same_mount(const struct statx *a, const struct statx *b)
{
#if STATX_MNT_ID
    if (a->stx_mask & b->stx_mask & STATX_MNT_ID) return a->stx_mnt_id == b->stx_mnt_id;
#endif
    return -1;
}

/* A file is moved between the state folder and STATE/ca. Bind mounts have one device and two mounts, subvolumes of btrfs
 * two devices and one mount; the kernel moves nothing between either. */
static int check_folder(const backup_places *p, backup_id id, const char *folder, shoal_err *err)
{
    struct statx is, state;
    if (!backup_places_is_usual(p, id) || !strchr(BACKUP_ITEMS[id].name, '/') ||
        !look(&is, folder, AT_SYMLINK_NOFOLLOW))
        return 0;
    if (S_ISLNK(is.stx_mode))
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s is a link, which a restore does not follow: make it a folder", folder);
    if (look(&state, p->state, 0) && is_same_device(&is, &state) && is_same_mount(&is, &state) != 0) return 0;
    return err_set(
        err, SHOAL_EUNSUPPORTED,
        "%s is on another disk or mount than %s, and files cannot be moved between them: unmount it", folder,
        p->state);
}

/* A file of overlayfs may have another device than its folder, so that the mount decides where it is known. */
static int check_one(const char *path, const struct statx *folder, shoal_err *err)
{
    struct statx is;
    if (!look(&is, path, AT_SYMLINK_NOFOLLOW)) return 0;
    if (S_ISLNK(is.stx_mode))
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s is a link, which a restore does not follow: name the file itself", path);
    int same = is_same_mount(&is, folder);
    if (same > 0 || (same < 0 && is_same_device(&is, folder))) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s is mounted by itself and cannot be replaced: unmount it",
                   path);
}

static int check_in_folder(const backup_places *p, backup_id id, const char *folder, shoal_err *err)
{
    struct statx in;
    int rc = check_folder(p, id, folder, err);
    bool looked = look(&in, folder, 0);
    for (size_t i = 0; rc == 0 && looked && i < BACKUP_N_ENDINGS; i++) {
        if (i > 0 && BACKUP_ITEMS[id].kind != BACKUP_DATABASE) break;
        char *path = backup_files_path("%s%s", p->path[id], BACKUP_ENDINGS[i]);
        rc = path ? check_one(path, &in, err) : err_nomem(err);
        free(path);
    }
    return rc;
}

int restore_place_check(const backup_places *p, backup_id id, shoal_err *err)
{
    char *folder = file_folder(p->path[id]);
    int rc = folder ? check_in_folder(p, id, folder, err) : err_nomem(err);
    free(folder);
    return rc;
}

/* ---- which are they? --------------------------------------------------------------------------------- */

/* As it is where its folder cannot be found. */
static int add_path(sha256 *sum, const char *path, shoal_err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = file_folder(path), *real = folder ? realpath(folder, NULL) : NULL;
    int rc = !folder || (!real && errno == ENOMEM) ? err_nomem(err) : 0;
    if (rc == 0) sha256_add_text(sum, real ? real : "");
    if (rc == 0) sha256_add_text(sum, real && slash ? slash + 1 : path);
    free(real);
    free(folder);
    return rc;
}

int restore_place_digest(char ret[RESTORE_PLACES_SIZE], const backup_places *p, shoal_err *err)
{
    sha256_digest digest;
    sha256 *sum = sha256_new();
    int rc = sum ? 0 : err_nomem(err);
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++) {
        if (i == BACKUP_CONFIG || !p->path[i]) continue;
        sha256_add_text(sum, BACKUP_ITEMS[i].name);
        if (!backup_places_is_usual(p, (backup_id)i)) rc = add_path(sum, p->path[i], err);
    }
    if (sum) sha256_end(sum, &digest);
    if (rc == 0) sha256_hex(&digest, ret);
    return rc;
}
