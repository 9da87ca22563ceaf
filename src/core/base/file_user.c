/* file_user.c: see file_user.h. */
#define _GNU_SOURCE
#include "base/file_user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { LINKS_MAX = 40 /* MAXSYMLINKS of the kernel */, FD_PATH_BYTES = 40 };

/* ---- users ------------------------------------------------------------------------------------------- */

void file_user_format(const file_user *u, char ret[FILE_USER_TEXT_BYTES])
{
    size_t n =
        (size_t)snprintf(ret, FILE_USER_TEXT_BYTES, "%lu:%lu:", (unsigned long)u->uid, (unsigned long)u->gid);
    for (size_t i = 0; i < u->n_groups; i++)
        n += (size_t)snprintf(ret + n, FILE_USER_TEXT_BYTES - n, "%s%lu", i ? "," : "",
                              (unsigned long)u->groups[i]);
}

/* Digits, and then `end`. */
static bool take_id(uint32_t *ret, const char **at, char end)
{
    uint64_t id = 0;
    const char *from = *at;
    for (; **at >= '0' && **at <= '9' && id <= UINT32_MAX; ++*at) id = id * 10 + (uint64_t)(**at - '0');
    if (*at == from || id > UINT32_MAX || **at != end) return false;
    *ret = (uint32_t)id;
    *at += end != '\0';
    return true;
}

bool file_user_parse(file_user *ret, const char *text)
{
    file_user u = {0};
    if (!take_id(&u.uid, &text, ':') || !take_id(&u.gid, &text, ':')) return false;
    while (*text) {
        bool last = !strchr(text, ',');
        if (u.n_groups == FILE_USER_GROUPS_MAX) return false;
        if (!take_id(&u.groups[u.n_groups++], &text, last ? '\0' : ',') || (!last && !*text)) return false;
    }
    *ret = u;
    return true;
}

/* ---- the decision ------------------------------------------------------------------------------------ */

static bool is_in_group(const file_user *u, uint32_t gid)
{
    bool found = u->gid == gid;
    for (size_t i = 0; i < u->n_groups; i++) found |= u->groups[i] == gid;
    return found;
}

file_verdict file_user_may(const file_user *u, const file_rights *r, unsigned wishes)
{
    unsigned owner = r->mode >> 6 & 7, group = r->mode >> 3 & 7, others = r->mode & 7, has = others;
    if (u->uid == r->uid)
        has = owner; /* with a list, too: its entry for the owner is these bits */
    else if (r->has_acl)
        return FILE_UNDECIDED;
    else if (is_in_group(u, r->gid))
        has = r->gid == FILE_USER_UNMAPPED ? group & others : group; /* it may be one of several groups */
    return (has & wishes) == wishes ? FILE_GRANTED : FILE_DENIED;
}

/* ---- what is looked at -------------------------------------------------------------------------------- */

/* File systems whose mode bits say who may read, on every machine that mounts them. */
static bool decides_by_mode(long type)
{
    static const unsigned long types[] = {
        0xef53 /* ext2, ext3, ext4 */,
        0x58465342 /* XFS */,
        0x9123683e /* Btrfs */,
        0xf2f52010 /* F2FS */,
        0xca451a4e /* bcachefs */,
        0x2fc12fc1 /* ZFS */,
        0x01021994 /* tmpfs */,
        0x858458f6 /* ramfs */,
        0x794c7630 /* overlayfs */,
        0x73717368 /* SquashFS */,
        0xe0f5e1e2 /* EROFS */,
        0x9660 /* ISO 9660 */,
        0x4d44 /* FAT */,
        0x2011bab0 /* exFAT */,
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == ((unsigned long)type & 0xffffffff)) return true;
    return false;
}

typedef struct walk {
    const file_user *u;
    int at; /* O_PATH, of where the walk is */
    struct stat st;
    unsigned n_links;
    size_t n_path;
    char path[PATH_MAX]; /* the way to `at`, without links; "" is the root */
    char rest[PATH_MAX]; /* what is still to be followed */
} walk;

static const char *shown(const walk *w)
{
    return w->n_path ? w->path : "/";
}

static const char *wish_of(const walk *w, unsigned wishes)
{
    return !S_ISDIR(w->st.st_mode) ? "read the file"
           : wishes & FILE_READ    ? "list the folder"
                                   : "enter the folder";
}

/* The process's own user, whom the kernel has refused. */
static int denied_here(const walk *w, unsigned wishes, shoal_err *err)
{
    return err_set(err, SHOAL_EAUTH, "the server's user (uid %lu) may not %s '%.300s'",
                   (unsigned long)geteuid(), wish_of(w, wishes), shown(w));
}

static void fd_path(char ret[FD_PATH_BYTES], int fd)
{
    snprintf(ret, FD_PATH_BYTES, "/proc/self/fd/%d", fd);
}

/* -1: it is not known. By way of /proc, as a descriptor of O_PATH has no attributes. */
static int has_acl(int fd)
{
    char path[FD_PATH_BYTES];
    fd_path(path, fd);
    if (getxattr(path, "system.posix_acl_access", NULL, 0) >= 0) return 1;
    return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -1;
}

static int check(const walk *w, unsigned wishes, shoal_err *err)
{
    struct statfs fs;
    unsigned long uid = w->u->uid;
    if (fstatfs(w->at, &fs) != 0 || !decides_by_mode(fs.f_type))
        return err_set(
            err, SHOAL_EAUTH,
            "'%.300s' lies on a file system whose permissions cannot be checked for uid %lu: copy the "
            "model to a local disk",
            shown(w), uid);
    int acl = w->u->uid == w->st.st_uid ? 0 : has_acl(w->at);
    const file_rights r = {w->st.st_uid, w->st.st_gid, w->st.st_mode, acl != 0};
    file_verdict may = file_user_may(w->u, &r, wishes);
    if (may == FILE_GRANTED) return 0;
    if (may == FILE_UNDECIDED)
        return err_set(
            err, SHOAL_EAUTH,
            "'%.300s' has an access control list, which is not read for uid %lu: only its owner can load "
            "what it protects",
            shown(w), uid);
    return err_set(err, SHOAL_EAUTH, "the calling user (uid %lu) may not %s '%.300s'", uid,
                   wish_of(w, wishes), shown(w));
}

/* ---- the way ------------------------------------------------------------------------------------------ */

static int too_long(const char *path, shoal_err *err)
{
    return err_set(err, SHOAL_EINVALID, "'%.200s...' is too long a path", path);
}

static int failed(const walk *w, const char *name, shoal_err *err)
{
    if (errno == EACCES) return denied_here(w, FILE_SEARCH, err);
    bool none = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
    return err_set(err, none ? SHOAL_ENOTFOUND : SHOAL_EIO, "'%.200s/%.100s': %s", w->path, name,
                   strerror(errno));
}

/* fd is the walk's. */
static int arrive(walk *w, int fd, shoal_err *err)
{
    if (w->at >= 0) close(w->at);
    w->at = fd;
    if (fstat(fd, &w->st) == 0) return 0;
    if (errno == EACCES) return denied_here(w, FILE_SEARCH, err); /* FUSE, mounted for one user */
    return err_set(err, SHOAL_EIO, "'%.300s': %s", shown(w), strerror(errno));
}

static int go_to_root(walk *w, shoal_err *err)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    w->path[w->n_path = 0] = '\0';
    return fd >= 0 ? arrive(w, fd, err) : err_set(err, SHOAL_EIO, "'/': %s", strerror(errno));
}

static int go_up(walk *w, shoal_err *err)
{
    int fd = openat(w->at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(w, "..", err);
    while (w->n_path > 0 && w->path[--w->n_path] != '/') {
    }
    w->path[w->n_path] = '\0';
    return arrive(w, fd, err);
}

/* The link's text takes its place in the way. fd is the link. */
static int follow(walk *w, int fd, const char *name, shoal_err *err)
{
    char to[2 * PATH_MAX];
    ssize_t n = readlinkat(fd, "", to, PATH_MAX);
    if (n <= 0 || n == PATH_MAX) return failed(w, name, err);
    if (++w->n_links > LINKS_MAX)
        return err_set(err, SHOAL_EINVALID, "'%.200s/%.100s': more than %d symbolic links", w->path, name,
                       LINKS_MAX);
    if (snprintf(to + n, sizeof to - (size_t)n, "/%s", w->rest) >= PATH_MAX - n) return too_long(to, err);
    strcpy(w->rest, to);
    return *to == '/' ? go_to_root(w, err) : 0;
}

static int go_down(walk *w, const char *name, shoal_err *err)
{
    struct stat st;
    int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;
    if (fd < 0) return failed(w, name, err);
    if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
        rc = follow(w, fd, name, err);
        close(fd);
        return rc;
    }
    size_t n = strlen(name) + 1;
    if (w->n_path + n >= sizeof w->path) {
        close(fd);
        return too_long(w->path, err);
    }
    snprintf(w->path + w->n_path, sizeof w->path - w->n_path, "/%s", name);
    w->n_path += n;
    return arrive(w, fd, err);
}

/* Takes the next component from the way; false: there is none. */
static bool next_name(walk *w, char name[NAME_MAX + 2])
{
    const char *from = w->rest + strspn(w->rest, "/");
    size_t n = strcspn(from, "/"),
           kept = n > NAME_MAX ? NAME_MAX + 1 : n; /* the kernel refuses one that long */
    memcpy(name, from, kept);
    name[kept] = '\0';
    memmove(w->rest, from + n, strlen(from + n) + 1);
    return n > 0;
}

static int go_on(walk *w, const char *name, shoal_err *err)
{
    errno = ENOTDIR;
    if (!S_ISDIR(w->st.st_mode)) return failed(w, name, err);
    int rc = check(w, FILE_SEARCH, err);
    if (rc != 0 || strcmp(name, ".") == 0) return rc;
    return strcmp(name, "..") == 0 ? go_up(w, err) : go_down(w, name, err);
}

/* Afterwards w->at is what the path leads to, or -1. */
static int go(walk *w, const file_user *u, const char *path, shoal_err *err)
{
    char name[NAME_MAX + 2];
    w->u = u;
    w->at = -1;
    if (*path != '/') return err_set(err, SHOAL_EINVALID, "'%.300s' is no absolute path", path);
    if (strlen(path) >= sizeof w->rest) return too_long(path, err);
    strcpy(w->rest, path);
    int rc = go_to_root(w, err);
    while (rc == 0 && next_name(w, name)) rc = go_on(w, name, err);
    return rc;
}

static walk *walk_new(shoal_err *err)
{
    walk *w = calloc(1, sizeof *w);
    if (!w) err_nomem(err);
    return w;
}

static void walk_free(walk *w)
{
    if (w && w->at >= 0) close(w->at);
    free(w);
}

/* ---- files -------------------------------------------------------------------------------------------- */

/* The very object that was checked, whatever has its name by now. */
static int reopen(file_opened *ret, const walk *w, unsigned wishes, shoal_err *err)
{
    char path[FD_PATH_BYTES];
    fd_path(path, w->at);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EACCES) return denied_here(w, wishes, err);
    if (fd < 0) return err_set(err, SHOAL_EIO, "'%.300s': %s", shown(w), strerror(errno));
    char *real = strdup(shown(w));
    if (!real) {
        close(fd);
        return err_nomem(err);
    }
    *ret = (file_opened){.fd = fd, .st = w->st, .path = real};
    return 0;
}

int file_user_open(file_opened *ret, const file_user *u, const char *path, shoal_err *err)
{
    walk *w = walk_new(err);
    if (!w) return SHOAL_ENOMEM;
    int rc = go(w, u, path, err);
    bool folder = rc == 0 && S_ISDIR(w->st.st_mode);
    unsigned wishes = folder ? FILE_READ | FILE_SEARCH : FILE_READ;
    if (rc == 0 && !folder && !S_ISREG(w->st.st_mode))
        rc = err_set(err, SHOAL_EINVALID, "'%.300s' is neither a file nor a folder", shown(w));
    if (rc == 0) rc = check(w, wishes, err);
    if (rc == 0) rc = reopen(ret, w, wishes, err);
    walk_free(w);
    return rc;
}

int file_user_stat(struct stat *ret, const file_user *u, const char *path, shoal_err *err)
{
    walk *w = walk_new(err);
    if (!w) return SHOAL_ENOMEM;
    int rc = go(w, u, path, err);
    if (rc == 0) *ret = w->st;
    walk_free(w);
    return rc;
}
