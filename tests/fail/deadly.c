/* deadly.c: a library to preload (LD_PRELOAD) that makes workers die of certain requests, as a defect would.
 *
 * A process that runs `shoal worker` and reads bytes with SHOAL_DEADLY in them from a socket aborts there.
 * The gateway, which passes them on, does not. Nothing else is changed: that the workers die, of what and
 * when, is all that a test knows, and the rest is the cluster's to find out.
 *
 *     SHOAL_DEADLY=TEXT   as it stands in the message to the worker */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *deadly; /* NULL: this process does not die */

/* Is it `shoal worker ...`? The arguments follow each other in /proc/self/cmdline, a NUL behind each. */
static int is_worker(void)
{
    char text[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return 0;
    text[n] = '\0';
    size_t first = strlen(text) + 1;
    return first < (size_t)n && strcmp(text + first, "worker") == 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SHOAL_DEADLY");
    if (text && *text && is_worker()) deadly = text;
}

static int is_socket(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

ssize_t read(int fd, void *to, size_t n)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "read");
    ssize_t got = real(fd, to, n);
    if (deadly && got > 0 && is_socket(fd) && memmem(to, (size_t)got, deadly, strlen(deadly))) abort();
    return got;
}
