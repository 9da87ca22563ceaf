/* cache_directives.c: see cache_directives.h. */
#include "cache/cache_directives.h"

#include <string.h>
#include <strings.h>

#define SPACE     " \t"
#define AGE_MAX_S ((uint64_t)1 << 31) /* as RFC 9111, section 1.2.2, has it: more is that much */

/* ---- Cache-Control ------------------------------------------------------------------------------- */

/* "60" or "\"60\""; false: no number. */
static bool read_seconds(const char *s, size_t n, uint64_t *ret)
{
    uint64_t v = 0;
    if (n >= 2 && s[0] == '"' && s[n - 1] == '"') {
        s++;
        n -= 2;
    }
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        v = v * 10 + (uint64_t)(s[i] - '0');
        if (v > AGE_MAX_S) v = AGE_MAX_S;
    }
    *ret = v;
    return n > 0;
}

static bool cache_directives_is(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp(s, word, n) == 0;
}

static void read_directive(cache_directives *w, const char *s, size_t n)
{
    uint64_t age;
    if (cache_directives_is(s, n, "no-store") || cache_directives_is(s, n, "no-cache")) w->fresh = true;
    if (cache_directives_is(s, n, "only-if-cached")) w->only_if_cached = true;
    if (n <= 8 || strncasecmp(s, "max-age=", 8) != 0 || !read_seconds(s + 8, n - 8, &age)) return;
    if (!w->limits_age || age < w->max_age_s) w->max_age_s = age;
    w->limits_age = true;
}

/* The next item of a list, without the blanks around it; false: there is none. */
static bool next_item(const char **at, const char **ret, size_t *ret_n)
{
    const char *p = *at + strspn(*at, SPACE ",");
    size_t n = strcspn(p, ",");
    *at = p + n;
    while (n > 0 && strchr(SPACE, p[n - 1])) n--;
    *ret = p;
    *ret_n = n;
    return n > 0;
}

/* ---- tags ---------------------------------------------------------------------------------------- */

static bool tag_is_fine(const char *s, size_t n)
{
    if (n > CACHE_DIRECTIVES_TAG_BYTES) return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] <= 0x20 || s[i] >= 0x7F) return false;
    return true;
}

static int read_tags(cache_directives *w, const char *s, shoal_err *err)
{
    const char *tag;
    for (size_t n; next_item(&s, &tag, &n); w->n_tags++) {
        if (w->n_tags == CACHE_DIRECTIVES_TAGS)
            return err_set(err, SHOAL_EINVALID, "x-shoal-cache-tag may have %d tags", CACHE_DIRECTIVES_TAGS);
        if (!tag_is_fine(tag, n))
            return err_set(err, SHOAL_EINVALID,
                           "x-shoal-cache-tag: a tag is 1 to %d visible characters of ASCII without commas",
                           CACHE_DIRECTIVES_TAG_BYTES);
        memcpy(w->tags[w->n_tags], tag, n);
        w->tags[w->n_tags][n] = '\0';
    }
    return 0;
}

int cache_directives_parse(cache_directives *ret, const char *cache_control, const char *tags, shoal_err *err)
{
    cache_directives w = {0};
    const char *s;
    for (size_t n; cache_control && next_item(&cache_control, &s, &n);) read_directive(&w, s, n);
    int rc = tags ? read_tags(&w, tags, err) : 0;
    if (rc == 0) *ret = w;
    return rc;
}
