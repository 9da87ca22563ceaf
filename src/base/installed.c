/* installed.c: see installed.h. */
#include "base/installed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* PREFIX of PREFIX/bin/shoal, the root of a tree whose program is build/shoal. */
static bool find_prefix(char *out, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", out, cap - 1);
    if (n <= 0) return false;
    out[n] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(out, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    return true;
}

bool installed_place(char *out, size_t cap, size_t i, const char *name)
{
    static const char *const folders[] = {"share/shoal/", ""};
    char prefix[4096];
    *out = '\0';
    if (i >= sizeof folders / sizeof *folders || !find_prefix(prefix, sizeof prefix)) return false;
    int n = snprintf(out, cap, "%s/%s%s", prefix, folders[i], name);
    if (n > 0 && (size_t)n < cap) return true;
    *out = '\0';
    return false;
}

bool installed_find(char *out, size_t cap, const char *name)
{
    for (size_t i = 0; installed_place(out, cap, i, name); i++)
        if (file_exists(out)) return true;
    *out = '\0';
    return false;
}
