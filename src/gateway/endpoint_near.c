/* endpoint_near.c: what somebody may have meant by a path that is none. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gateway/endpoint.h"

enum { PATH_MAX_BYTES = 96, EDITS_MAX = 4 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to add, drop or change between a and b, neither longer than PATH_MAX_BYTES (Levenshtein 1966);
 * EDITS_MAX + 1 for more than EDITS_MAX, which most rows tell: whoever asks for nonsense all day costs
 * little. */
static size_t edits(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), row[PATH_MAX_BYTES + 1];
    if (n > m + EDITS_MAX || m > n + EDITS_MAX) return EDITS_MAX + 1;
    for (size_t k = 0; k <= m; k++) row[k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0], lowest = row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            size_t above = row[k];
            row[k] = least(least(above, row[k - 1]) + 1, diagonal + (a[i - 1] != b[k - 1]));
            diagonal = above;
            lowest = least(lowest, row[k]);
        }
        if (lowest > EDITS_MAX) return EDITS_MAX + 1;
    }
    return row[m];
}

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
        size_t d = edits(path, meant);
        bool better = d < fewest || (d == fewest && best && strcmp(at->method, method) == 0 &&
                                     strcmp(best->method, method) != 0);
        if (d == 0 || d > EDITS_MAX || d * 4 > strlen(meant) || !better) continue;
        fewest = d;
        best = at;
        snprintf(ret_path, cap, "%s", meant);
    }
    return best;
}
