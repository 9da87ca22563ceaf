/* endpoint_near.c: what somebody may have meant by a path that is none. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/edits.h"
#include "request/endpoint.h"

enum { PATH_MAX_BYTES = EDITS_LETTERS_MAX, EDITS_MAX = 4 };

/* The pattern with the path's segments in the places of '*', and the path's rest in that of a '/' at the end.
 * False: it is too long, or has more segments than the path where that matters. */
static bool fill_pattern(const char *pattern, const char *path, char *out, size_t cap)
{
    size_t at = 0;
    while (*pattern == '/') {
        bool rest = !pattern[1], any = pattern[1] == '*';
        size_t n_pattern = 1 + strcspn(pattern + 1, "/"), n_path = *path ? 1 + strcspn(path + 1, "/") : 0;
        const char *part = rest || any ? path : pattern;
        size_t n = rest ? strlen(path) : any ? n_path : n_pattern;
        if ((rest || any) && n < 2) return false;
        if (at + n >= cap) return false;
        memcpy(out + at, part, n);
        at += n;
        pattern += n_pattern;
        path += n_path;
    }
    out[at] = '\0';
    return true;
}

/* What a client puts in the place of '*' may not exist, so such a path must be right but for one letter, and
 * must be of the same API: "/v1/images/generations" is no slip for "/v1/files/generations". */
static bool is_likely(const endpoint *at, const char *path, const char *meant, size_t n_edits)
{
    bool open = strchr(at->path, '*') || (at->path[1] && at->path[strlen(at->path) - 1] == '/');
    size_t n_api = 1 + strcspn(meant + 1, "/");
    return !open || (n_edits <= 1 && strncmp(path, meant, n_api + 1) == 0);
}

const endpoint *endpoint_near(const endpoint_table *t, const char *method, const char *path, char *ret_path,
                              size_t cap)
{
    const endpoint *best = NULL;
    size_t fewest = EDITS_MAX + 1;
    char meant[PATH_MAX_BYTES + 1];
    if (strlen(path) > PATH_MAX_BYTES) return NULL;
    for (size_t i = 0; i < t->n; i++) {
        const endpoint *at = &t->rows[i];
        if (!fill_pattern(at->path, path, meant, sizeof meant)) continue;
        size_t d = edits(path, meant, EDITS_MAX);
        bool better = d < fewest || (d == fewest && best && strcmp(at->method, method) == 0 &&
                                     strcmp(best->method, method) != 0);
        if (d == 0 || d > EDITS_MAX || d * 4 > strlen(meant) || !better || !is_likely(at, path, meant, d))
            continue;
        fewest = d;
        best = at;
        snprintf(ret_path, cap, "%s", meant);
    }
    return best;
}
