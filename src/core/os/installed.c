/* installed.c: see installed.h. */
#include "os/installed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Where files are by the folder of the program. A program elsewhere has none: beside /tmp/x/shoal anybody may
 * put a /tmp/models. */
static const struct {
    const char *of, *folder;
} places[] = {{"bin", "share/shoal/"}, {"build", ""}};

/* PREFIX of PREFIX/bin/shoal, and what is appended to it; NULL: it is nowhere that counts. */
static const char *find_prefix(char *out, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", out, cap - 1);
    if (n <= 0) return NULL;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash) return NULL;
    *slash = '\0';
    if (!(slash = strrchr(out, '/'))) return NULL;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(slash + 1, places[i].of) == 0) return places[i].folder;
    return NULL;
}

bool installed_place(char *out, size_t cap, size_t i, const char *name)
{
    char prefix[4096];
    const char *folder = i == 0 ? find_prefix(prefix, sizeof prefix) : NULL;
    *out = '\0';
    if (!folder) return false;
    int n = snprintf(out, cap, "%s/%s%s", prefix, folder, name);
    if (n > 0 && (size_t)n < cap) return true;
    *out = '\0';
    return false;
}

bool installed_has(const char *path)
{
    char place[INSTALLED_PATH_BYTES], prefix[4096];
    const char *folder = find_prefix(prefix, sizeof prefix);
    if (!folder || !*folder || !installed_place(place, sizeof place, 0, "")) return false;
    return strncmp(path, place, strlen(place)) == 0;
}

bool installed_find(char *out, size_t cap, const char *name)
{
    for (size_t i = 0; installed_place(out, cap, i, name); i++)
        if (file_exists(out)) return true;
    *out = '\0';
    return false;
}
