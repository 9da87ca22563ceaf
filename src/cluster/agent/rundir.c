/* rundir.c: make, lock, sweep. Every name is taken relative to an open folder that is checked to be ours, so
 * that nobody's link leads elsewhere. */
#define _GNU_SOURCE
#include "agent/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/handover.h"
#include "logging/log.h"

#define PREFIX   "shoal-"
#define KEPT     "rundir " /* and the path: the name under which the lock is kept */
#define NAME_LEN (sizeof PREFIX "XXXXXX" - 1)

static const char *base_dir(void)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    return base && access(base, W_OK) == 0 ? base : "/tmp";
}

/* ---- the folders of the dead --------------------------------------------------------------------- */

/* A folder of this user; the caller closes it. -1: it is not one. */
static int open_own_dir(int base, const char *name)
{
    struct stat st;
    int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid()) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Has its owner ended? One without a lock file is not ours to judge. */
static bool is_left_behind(int dir)
{
    int fd = openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    bool free_now = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return free_now;
}

static bool is_socket_name(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".sock") == 0;
}

/* Takes dir. Only what a gateway puts there is removed; with anything else in it the folder stays. */
static void empty_out(int dir)
{
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (is_socket_name(e->d_name)) unlinkat(dirfd(d), e->d_name, 0);
    unlinkat(dirfd(d), "lock", 0);
    closedir(d);
}

static void sweep_one(int base, const char *name)
{
    int dir = open_own_dir(base, name);
    if (dir < 0) return;
    if (!is_left_behind(dir)) {
        close(dir);
        return;
    }
    empty_out(dir);
    if (unlinkat(base, name, AT_REMOVEDIR) == 0) LOG(LOG_INFO, "agent", "folder_swept", LOG_S("name", name));
}

static void sweep(const char *base)
{
    DIR *d = opendir(base);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (strlen(e->d_name) == NAME_LEN && strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) == 0)
            sweep_one(dirfd(d), e->d_name);
    closedir(d);
}

/* ---- ours ---------------------------------------------------------------------------------------- */

/* The file gets its name when it is locked: nobody ever finds it there and free. */
static int lock_it(rundir *d)
{
    int dir = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return -1;
    d->lock_fd = openat(dir, "lock.new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = d->lock_fd >= 0 ? flock(d->lock_fd, LOCK_EX | LOCK_NB) : -1;
    if (rc == 0) rc = renameat(dir, "lock.new", dir, "lock");
    int saved = errno;
    if (rc != 0) unlinkat(dir, "lock.new", 0);
    close(dir);
    errno = saved;
    return rc;
}

static int make_fresh(rundir *d, shoal_err *err)
{
    const char *base = base_dir();
    sweep(base);
    if (asprintf(&d->path, "%s/" PREFIX "XXXXXX", base) < 0) {
        d->path = NULL;
        return err_nomem(err);
    }
    if (!mkdtemp(d->path)) return err_set(err, SHOAL_EIO, "%s: %s", d->path, strerror(errno));
    d->made = true;
    if (lock_it(d) != 0) return err_set(err, SHOAL_EIO, "%s/lock: %s", d->path, strerror(errno));
    return 0;
}

/* That of an earlier life, still locked: the supervisor holds the lock's descriptor. */
static bool take_kept(rundir *d)
{
    char name[HANDOVER_NAME + 1];
    int fd = handover_take_prefix(KEPT, name);
    if (fd < 0) return false;
    d->lock_fd = fd;
    d->path = access(name + sizeof KEPT - 1, W_OK) == 0 ? strdup(name + sizeof KEPT - 1) : NULL;
    d->made = true;
    if (d->path) return true;
    handover_forget(fd);
    close(fd);
    *d = (rundir){.lock_fd = -1};
    return false;
}

static void rundir_keep(const rundir *d)
{
    char name[HANDOVER_NAME + 1];
    if (snprintf(name, sizeof name, KEPT "%s", d->path) < (int)sizeof name) handover_keep(name, d->lock_fd);
}

static int use_given(rundir *d, const char *given, shoal_err *err)
{
    d->path = strdup(given);
    if (!d->path) return err_nomem(err);
    d->made = mkdir(given, 0700) == 0;
    if (!d->made && errno != EEXIST) return err_set(err, SHOAL_EIO, "%s: %s", given, strerror(errno));
    return 0;
}

int rundir_open(rundir *ret, const char *given, shoal_err *err)
{
    rundir d = {.lock_fd = -1};
    bool kept = !given && take_kept(&d);
    int rc = kept ? 0 : given ? use_given(&d, given, err) : make_fresh(&d, err);
    if (rc == 0 && !given && !kept) rundir_keep(&d);
    if (rc == 0)
        *ret = d;
    else
        rundir_close(&d);
    return rc;
}

void rundir_close(rundir *d)
{
    if (!d->path) return;
    int dir = d->made ? open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (dir >= 0) empty_out(dir);
    if (d->made) rmdir(d->path);
    handover_forget(d->lock_fd);
    if (d->lock_fd >= 0) close(d->lock_fd);
    free(d->path);
    *d = (rundir){.lock_fd = -1};
}
