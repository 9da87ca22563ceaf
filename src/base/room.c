/* room.c: see room.h. */
#include "base/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"

enum { PATH_BYTES = 1024 };

/* "MemAvailable:    8159240 kB" in bytes; UINT64_MAX: it is not said. */
static uint64_t meminfo(const char *root, const char *key)
{
    char path[PATH_BYTES], line[256];
    uint64_t kib = 0;
    size_t n = strlen(key);
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *f = fopen(path, "re");
    while (f && !kib && fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0) kib = strtoull(line + n, NULL, 10);
    if (f) fclose(f);
    return kib && kib <= UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}

room room_read(const char *root)
{
    cgroup_limits l;
    room r = {meminfo(root, "MemTotal:"), meminfo(root, "MemAvailable:"), "this machine"};
    cgroup_read(&l, root);
    if (l.memory_bytes < r.all_bytes) r.all_bytes = l.memory_bytes;
    if (l.memory_free_bytes < r.free_bytes) r.free_bytes = l.memory_free_bytes, r.by = "its cgroup";
    return r;
}
