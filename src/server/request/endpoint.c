/* endpoint.c: the search in the table of endpoints. */
#include "request/endpoint.h"

#include <string.h>

/* '*' is one segment; '/' at the end is one more, or several; "/" is the root and nothing below it. */
bool endpoint_path_matches(const char *pattern, const char *path)
{
    if (!pattern[1]) return path[0] == '/' && !path[1];
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            size_t n = strcspn(path, "/");
            if (n == 0) return false;
            path += n;
        } else if (*pattern != *path++) {
            return false;
        } else if (*pattern == '/' && !pattern[1]) {
            return *path != '\0';
        }
    }
    return *path == '\0';
}

/* The first letter behind "/v1/"; 0: another beginning. Most rows differ from a path in it. */
static char letter_of(const char *path)
{
    return path[0] == '/' && path[1] == 'v' && path[2] == '1' && path[3] == '/' ? path[4] : '\0';
}

static bool may_match(const char *pattern, char letter)
{
    char own = letter ? letter_of(pattern) : '\0';
    return !own || own == letter || own == '*';
}

/* What a path allows, by which of the methods it has; GET serves HEAD: the server drops the body. */
enum { HAS_GET = 1, HAS_POST = 2, HAS_DELETE = 4 };
static const char *const ALLOWED[] = {
    NULL,     "GET, HEAD",         "POST",         "GET, HEAD, POST",
    "DELETE", "GET, HEAD, DELETE", "POST, DELETE", "GET, HEAD, POST, DELETE"};

static unsigned method_of(const char *method)
{
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) return HAS_GET;
    if (strcmp(method, "POST") == 0) return HAS_POST;
    return strcmp(method, "DELETE") == 0 ? HAS_DELETE : 0;
}

const endpoint *endpoint_find(const endpoint_table *t, const char *method, const char *path,
                              const char **ret_allow)
{
    unsigned has = 0, asked = method_of(method);
    char letter = letter_of(path);
    for (size_t i = 0; i < t->n; i++) {
        const char *pattern = t->rows[i].path;
        if (!may_match(pattern, letter) || !endpoint_path_matches(pattern, path)) continue;
        unsigned here = method_of(t->rows[i].method);
        if (here == asked) {
            *ret_allow = NULL;
            return &t->rows[i];
        }
        has |= here;
    }
    *ret_allow = ALLOWED[has];
    return NULL;
}
