/* hold.c: a preloaded library that holds a thread in the kernel's place, as a dead disk or a name server does.
 *
 *     HOLD=fdatasync HOLD_WHILE=/path LD_PRELOAD=libfail_hold.so shoal serve ...
 *
 * While the file HOLD_WHILE is there, calls of the functions that HOLD names (fdatasync: of SQLite's commits;
 * getaddrinfo; open: of paths that begin with HOLD_PATH; accept4) do not come back. Each that is held says so by a byte
 * in HOLD_WHILE, and waits, or with HOLD_SPINS computes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int has(const char *name)
{
    const char *held = getenv("HOLD"), *file = getenv("HOLD_WHILE");
    return held && file && strstr(held, name) && access(file, F_OK) == 0;
}

static void hold(const char *name)
{
    int said = 0;
    while (has(name)) {
        int fd = said ? -1 : open(getenv("HOLD_WHILE"), O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd >= 0) {
            said = write(fd, "x", 1) == 1;
            close(fd);
        }
        if (!getenv("HOLD_SPINS")) usleep(20000);
    }
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    hold("fdatasync");
    return real(fd);
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    hold("fdatasync");
    return real(fd);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
            RTLD_NEXT, "getaddrinfo");
    hold("getaddrinfo");
    return real(node, service, hints, res);
}

int accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
    int (*real)(int, struct sockaddr *, socklen_t *, int) =
        (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
    hold("accept4");
    return real(fd, address, n, flags);
}

/* Of the files that HOLD_PATH names: what a dead network file system does. */
static void hold_path(const char *path)
{
    const char *begin = getenv("HOLD_PATH");
    if (begin && strncmp(path, begin, strlen(begin)) == 0) hold("open");
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list ap;
    va_start(ap, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, int) : 0;
    va_end(ap);
    hold_path(path);
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    va_list ap;
    va_start(ap, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, int) : 0;
    va_end(ap);
    hold_path(path);
    return real(path, flags, mode);
}
