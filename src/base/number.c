/* number.c: strict numbers; see number.h. The shape is checked first, since strtoull, strtoll and strtod take
 * far more than it allows (blanks, signs, hexadecimal, "inf"). */
#include "base/number.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The end of the whole number at s: digits without a leading zero. NULL when there is none. */
static const char *skip_whole(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return n == 0 || (n > 1 && *s == '0') ? NULL : s + n;
}

bool number_u64(const char *text, uint64_t *ret)
{
    const char *end = skip_whole(text);
    if (!end || *end) return false;
    errno = 0;
    unsigned long long v = strtoull(text, NULL, 10);
    if (errno) return false;
    *ret = v;
    return true;
}

bool number_i64(const char *text, int64_t *ret)
{
    const char *end = skip_whole(text + (*text == '-'));
    if (!end || *end) return false;
    errno = 0;
    long long v = strtoll(text, NULL, 10);
    if (errno) return false;
    *ret = v;
    return true;
}

bool number_double(const char *text, double *ret)
{
    const char *end = skip_whole(text + (*text == '-'));
    if (end && *end == '.') {
        size_t n = strspn(end + 1, "0123456789");
        end = n ? end + 1 + n : NULL;
    }
    if (!end || *end) return false;
    *ret = strtod(text, NULL);
    return true;
}
