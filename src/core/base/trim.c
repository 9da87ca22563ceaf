/* trim.c: texts without the white space around them. */
#include "base/trim.h"

#include <string.h>

static const char SPACE[] = " \t\r\n";

static size_t trimmed_length(const char *s)
{
    size_t n = strlen(s);
    while (n && strchr(SPACE, s[n - 1])) n--;
    return n;
}

bool trim_equal(const char *a, const char *b)
{
    a += strspn(a, SPACE);
    b += strspn(b, SPACE);
    size_t n = trimmed_length(a);
    return n == trimmed_length(b) && memcmp(a, b, n) == 0;
}
