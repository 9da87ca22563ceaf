/* pulse.c: two numbers out of one line. */
#include "cluster/pulse.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIELD_STATE = 3, FIELD_UTIME = 14, FIELD_STIME = 15 };

/* The start of field n of "1 (name) S 4 5 ...", where a name may hold spaces and parentheses itself. */
static const char *field(const char *line, int n)
{
    const char *p = strrchr(line, ')');
    if (!p) return NULL;
    for (int i = 2; p && i < n; i++) p = strchr(p + 1, ' ');
    return p ? p + 1 : NULL;
}

static bool read_stat(int pid, char *out, size_t cap)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, out, cap - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool pulse_take(int pid, pulse *ret)
{
    char line[1024];
    if (pid <= 0 || !read_stat(pid, line, sizeof line)) return false;
    const char *state = field(line, FIELD_STATE), *utime = field(line, FIELD_UTIME),
               *stime = field(line, FIELD_STIME);
    if (!state || !utime || !stime) return false;
    *ret = (pulse){.state = *state, .cpu_ticks = strtoull(utime, NULL, 10) + strtoull(stime, NULL, 10)};
    return true;
}

bool pulse_is_alive(const pulse *before, const pulse *now)
{
    return now->cpu_ticks != before->cpu_ticks || now->state == 'R' || now->state == 'D';
}
