/* cgroup.c: see cgroup.h. What cannot be read limits nothing. */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, LINE_BYTES = 4096, FILE_BYTES = 2 * PATH_BYTES };

/* Where this process's group of one hierarchy is. */
typedef struct place {
    char mount[PATH_BYTES]; /* with the root in front; "": there is no such hierarchy */
    char group[PATH_BYTES]; /* behind the mount; "": the mount itself */
} place;

/* ---- small files ----------------------------------------------------------------------------------- */

/* The first line, or the one that begins with key, without its line end and the key. */
static bool read_text(char *ret, size_t size, const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    char line[LINE_BYTES];
    bool found = false;
    size_t n = strlen(key);
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, key, n) == 0;
        if (found) snprintf(ret, size, "%s", line + n);
    }
    if (f) fclose(f);
    return found;
}

/* False: there is no number in it, as in "max" and "-1". */
static bool read_number(uint64_t *ret, const char *folder, const char *file, const char *key)
{
    char path[FILE_BYTES + 40], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!read_text(text, sizeof text, path, key) || text[0] < '0' || text[0] > '9') return false;
    *ret = strtoull(text, NULL, 10);
    return true;
}

/* ---- places ---------------------------------------------------------------------------------------- */

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0')) return true;
    return false;
}

/* "5:cpuset,cpu:/a/b", "0::/a/b" of version 2 */
static bool find_group(char ret[PATH_BYTES], const char *root, const char *controller)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    bool found = false;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group) continue;
        *list++ = *group++ = '\0';
        found = *controller ? has_word(list, controller) : *list == '\0' && strcmp(line, "0") == 0;
        if (found) snprintf(ret, PATH_BYTES, "%s", strcmp(group, "/") == 0 ? "" : group);
    }
    if (f) fclose(f);
    return found;
}

/* A blank in a path is \040 there (proc(5)). */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++) {
        bool octal = s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3];
        *to++ = octal ? (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0')) : *s;
        if (octal) s += 3;
    }
    *to = '\0';
}

/* "33 32 0:29 /docker/a /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu": which part of the hierarchy is
 * where. */
static bool find_mount(char ret_root[PATH_BYTES], char ret_at[PATH_BYTES], const char *root,
                       const char *controller)
{
    char path[PATH_BYTES], line[LINE_BYTES], type[32], options[1024];
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *behind = strstr(line, " - ");
        if (!behind || sscanf(line, "%*s %*s %*s %1023s %1023s", ret_root, ret_at) != 2) continue;
        if (sscanf(behind, " - %31s %*s %1023s", type, options) != 2) continue;
        found = *controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
                            : strcmp(type, "cgroup2") == 0;
    }
    if (f) fclose(f);
    unescape(ret_root);
    unescape(ret_at);
    return found;
}

/* Where mounts are not told. */
static void usual_mount(char ret[PATH_BYTES], const char *controller)
{
    snprintf(ret, PATH_BYTES, "/sys/fs/cgroup%s%s", *controller ? "/" : "", controller);
}

/* What of the group's path lies behind the mount. A container's own root is not in the path: then it is the
 * mount. */
static const char *behind_mount(const char *group, const char *mount_root)
{
    size_t n = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    bool below = strncmp(group, mount_root, n) == 0 && (group[n] == '/' || group[n] == '\0');
    return below && !strstr(group, "/..") ? group + n : "";
}

static place find_place(const char *root, const char *controller)
{
    place p = {0};
    char group[PATH_BYTES], mount_root[PATH_BYTES] = "/", at[PATH_BYTES] = "";
    if (!find_group(group, root, controller)) return p;
    if (!find_mount(mount_root, at, root, controller)) {
        snprintf(mount_root, sizeof mount_root, "/");
        usual_mount(at, controller);
    }
    size_t n = strlen(root), m = strlen(at);
    if (n + m >= sizeof p.mount) return p;
    memcpy(p.mount, root, n);
    memcpy(p.mount + n, at, m + 1);
    snprintf(p.group, sizeof p.group, "%s", behind_mount(group, mount_root));
    return p;
}

/* Each group's folder, from the process's own up to the mount. */
static void each_group(const place *p, void (*look)(cgroup_limits *l, const char *folder), cgroup_limits *l)
{
    char group[PATH_BYTES], folder[FILE_BYTES];
    if (!*p->mount) return;
    snprintf(group, sizeof group, "%s", p->group);
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", p->mount, group);
        look(l, folder);
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static void limit_memory(cgroup_limits *l, uint64_t most, uint64_t used, uint64_t kept)
{
    used -= kept < used ? kept : used;
    uint64_t left = used < most ? most - used : 0;
    if (most < l->memory_bytes) l->memory_bytes = most;
    if (left < l->memory_free_bytes) l->memory_free_bytes = left;
}

/* Above memory.high a group is slowed down until it has given back: as good as a limit. */
static void look_at_memory(cgroup_limits *l, const char *folder)
{
    uint64_t max = UINT64_MAX, high = UINT64_MAX, used = 0, kept = 0;
    read_number(&max, folder, "memory.max", "");
    read_number(&high, folder, "memory.high", "");
    if (high < max) max = high;
    if (max == UINT64_MAX) return;
    read_number(&used, folder, "memory.current", "");
    read_number(&kept, folder, "memory.stat", "inactive_file ");
    limit_memory(l, max, used, kept);
}

/* Without a limit it is the largest number of whole pages in 63 bits. */
static void look_at_memory_v1(cgroup_limits *l, const char *folder)
{
    uint64_t max = UINT64_MAX, used = 0, kept = 0;
    read_number(&max, folder, "memory.limit_in_bytes", "");
    if (max >= UINT64_C(1) << 62) return;
    read_number(&used, folder, "memory.usage_in_bytes", "");
    if (!read_number(&kept, folder, "memory.stat", "total_inactive_file "))
        read_number(&kept, folder, "memory.stat", "inactive_file ");
    limit_memory(l, max, used, kept);
}

/* ---- processors ------------------------------------------------------------------------------------ */

static void limit_cores(cgroup_limits *l, uint64_t n)
{
    if (n > 0 && n < INT32_MAX && (l->n_cores == 0 || (int)n < l->n_cores)) l->n_cores = (int)n;
}

static void limit_time(cgroup_limits *l, uint64_t quota, uint64_t period)
{
    if (quota > 0 && period > 0) limit_cores(l, quota / period + (quota % period != 0));
}

static void look_at_time(cgroup_limits *l, const char *folder)
{
    char path[FILE_BYTES + 40], text[64];
    unsigned long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_text(text, sizeof text, path, "") && sscanf(text, "%llu %llu", &quota, &period) == 2)
        limit_time(l, quota, period);
}

static void look_at_time_v1(cgroup_limits *l, const char *folder)
{
    uint64_t quota, period;
    if (read_number(&quota, folder, "cpu.cfs_quota_us", "") &&
        read_number(&period, folder, "cpu.cfs_period_us", ""))
        limit_time(l, quota, period);
}

/* "0-3,8": 5 */
static uint64_t count_processors(const char *list)
{
    uint64_t n = 0;
    for (char *end; *list >= '0' && *list <= '9'; list = *end == ',' ? end + 1 : end) {
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (last < first || last - first > 65535) return 0;
        n += last - first + 1;
    }
    return n;
}

static void look_at_set(cgroup_limits *l, const char *folder)
{
    static const char *const files[] = {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"};
    char path[FILE_BYTES + 40], text[LINE_BYTES];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (!read_text(text, sizeof text, path, "")) continue;
        limit_cores(l, count_processors(text));
        return;
    }
}

/* ---- all ------------------------------------------------------------------------------------------- */

void cgroup_read(cgroup_limits *ret, const char *root)
{
    cgroup_limits l = {.memory_bytes = UINT64_MAX, .memory_free_bytes = UINT64_MAX};
    place unified = find_place(root, ""), memory = find_place(root, "memory"), time = find_place(root, "cpu"),
          set = find_place(root, "cpuset");
    each_group(&unified, look_at_memory, &l);
    each_group(&unified, look_at_time, &l);
    each_group(&unified, look_at_set, &l);
    each_group(&memory, look_at_memory_v1, &l);
    each_group(&time, look_at_time_v1, &l);
    each_group(&set, look_at_set, &l);
    *ret = l;
}
