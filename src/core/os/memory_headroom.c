/* memory_headroom.c: see memory_headroom.h. */
#include "os/memory_headroom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

/* The number behind `key` at a line's start; key "": the file's only one. 0: it says none. */
static uint64_t number_in(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t found = 0;
    size_t n = strlen(key);
    while (f && !found && fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0) found = strtoull(line + n, NULL, 10);
    if (f) fclose(f);
    return found;
}

/* "0::/system.slice/shoal.service" */
static void own_group(const char *root, char ret[PATH_BYTES])
{
    char path[PATH_BYTES], line[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    *ret = '\0';
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::/", 4) == 0) snprintf(ret, PATH_BYTES, "%s", line + 3);
    }
    if (f) fclose(f);
}

static void look_at_group(memory_headroom *r, const char *root, const char *group)
{
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/memory.max", root, group);
    uint64_t max = number_in(path, ""); /* "max" is no number */
    if (max == 0) return;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/memory.current", root, group);
    uint64_t used = number_in(path, "");
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/memory.stat", root, group);
    uint64_t kept = number_in(path, "inactive_file ");
    used -= kept < used ? kept : used;
    uint64_t left = used < max ? max - used : 0;
    if (left < r->free_bytes) *r = (memory_headroom){left, "its cgroup"};
}

memory_headroom memory_headroom_read(const char *root)
{
    char group[PATH_BYTES], path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    uint64_t kib = number_in(path, "MemAvailable:");
    memory_headroom r = {kib ? kib * 1024 : UINT64_MAX, "this machine"};
    own_group(root, group);
    for (char *slash; (slash = strrchr(group, '/')); *slash = '\0') look_at_group(&r, root, group);
    look_at_group(&r, root, "");
    return r;
}
