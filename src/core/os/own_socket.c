/* own_socket.c: see own_socket.h. */
#define _GNU_SOURCE
#include "os/own_socket.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/sha256.h"

#define SERVICE_BASE "/run/shoal" /* RuntimeDirectory of the unit */

bool own_socket_name(char ret[OWN_SOCKET_NAME_BYTES], int port, const char *path)
{
    sha256_digest d;
    char *real = port ? NULL : realpath(path, NULL), hex[65];
    if (port) snprintf(ret, OWN_SOCKET_NAME_BYTES, "%d", port);
    if (real) {
        sha256_of(real, strlen(real), &d);
        sha256_hex(&d, hex);
        snprintf(ret, OWN_SOCKET_NAME_BYTES, "%.*s", OWN_SOCKET_NAME_BYTES - 1, hex);
    }
    free(real);
    return port || real;
}

/* Is it a folder that only its owner may enter? */
static bool is_private(const char *folder, uid_t owner)
{
    struct stat st;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == owner && (st.st_mode & 077) == 0;
}

enum { N_BASES = 4 };

/* The first that can be written is a server's. NULL: there is none of that kind. */
static const char *base_at(size_t i)
{
    const char *const set[N_BASES] = {getenv("XDG_RUNTIME_DIR"), getenv("RUNTIME_DIRECTORY"),
                                      geteuid() == 0 ? "/run" : NULL, "/tmp"};
    return set[i] && *set[i] == '/' && access(set[i], W_OK) == 0 ? set[i] : NULL;
}

static const char *base(void)
{
    for (size_t i = 0; i < N_BASES; i++)
        if (base_at(i)) return base_at(i);
    return "/tmp";
}

/* False: the path is too long for a socket. */
static bool put(char ret[OWN_SOCKET_PATH_BYTES], const char *at, uid_t owner, const char *name)
{
    int n = snprintf(ret, OWN_SOCKET_PATH_BYTES, "%s/shoal.%lu/%s.sock", at, (unsigned long)owner, name);
    return n > 0 && n < OWN_SOCKET_PATH_BYTES;
}

static void folder_of(char ret[OWN_SOCKET_PATH_BYTES], const char *path)
{
    snprintf(ret, OWN_SOCKET_PATH_BYTES, "%s", path);
    *strrchr(ret, '/') = '\0';
}

/* Of a server that was killed: nobody listens there. */
static bool is_stale(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode)) return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    bool stale = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) != 0 && errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    return stale;
}

static void sweep(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[OWN_SOCKET_PATH_BYTES];
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (*e->d_name != '.' && n < (int)sizeof path && is_stale(path)) unlink(path);
    }
    if (d) closedir(d);
}

int own_socket_make(char ret[OWN_SOCKET_PATH_BYTES], const char *name, shoal_err *err)
{
    char folder[OWN_SOCKET_PATH_BYTES];
    if (!put(ret, base(), geteuid(), name))
        return err_set(err, SHOAL_ELIMIT, "%s: the path is too long for a Unix socket", base());
    folder_of(folder, ret);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return err_set(err, SHOAL_EIO, "%s: %s", folder, strerror(errno));
    if (!is_private(folder, geteuid()))
        return err_set(err, SHOAL_EAUTH, "%s is no folder of this user alone (mode 0700)", folder);
    sweep(folder);
    return 0;
}

void own_socket_unmake(const char *path)
{
    char folder[OWN_SOCKET_PATH_BYTES];
    folder_of(folder, path);
    rmdir(folder); /* not while another server has a socket there */
}

static bool is_there(char ret[OWN_SOCKET_PATH_BYTES], const char *at, uid_t owner, const char *name)
{
    char folder[OWN_SOCKET_PATH_BYTES];
    struct stat st;
    if (!put(ret, at, owner, name)) return false;
    folder_of(folder, ret);
    return is_private(folder, owner) && lstat(ret, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == owner &&
           !is_stale(ret);
}

bool own_socket_find(char ret[OWN_SOCKET_PATH_BYTES], const char *name)
{
    struct stat st;
    for (size_t i = 0; i < N_BASES; i++) /* the server may have another environment than its user's shell */
        if (base_at(i) && is_there(ret, base_at(i), geteuid(), name)) return true;
    return geteuid() == 0 && stat(SERVICE_BASE, &st) == 0 && is_there(ret, SERVICE_BASE, st.st_uid, name);
}
