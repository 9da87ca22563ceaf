/* tok_charsmap.c: walking the double array; see tok_charsmap.h for its layout. */
#include "tokenizer/tok_charsmap.h"

#include <string.h>

#include "base/cur.h"
#include "base/utf8.h"

enum { MAX_BYTES = 16 << 20, HAS_VALUE = 1 << 8 };

int charsmap_parse(charsmap *ret, arena *mem, const void *blob, size_t len, const char *what, shoal_err *err)
{
    *ret = (charsmap){0};
    if (len == 0) return 0;
    cur c = cur_over(blob, len);
    uint32_t n_bytes = cur_u32(&c);
    const uint8_t *units = cur_take(&c, n_bytes);
    size_t n_texts = units ? cur_left(&c) : 0;
    if (!units || n_bytes % 4 || n_bytes == 0 || len > MAX_BYTES || n_texts == 0 || c.end[-1] != 0)
        return err_set(err, SHOAL_EFORMAT, "%s: the precompiled map of characters is malformed", what);
    uint32_t *copy = arena_alloc(mem, n_bytes);
    char *texts = arena_strndup(mem, (const char *)c.at, n_texts);
    if (!copy || !texts) return err_nomem(err);
    memcpy(copy, units, n_bytes);
    *ret = (charsmap){.units = copy, .texts = texts, .n_units = n_bytes / 4, .n_texts = n_texts};
    return 0;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* The text of the value at `node`, NULL when it is none of ours. */
static const char *text_at(const charsmap *m, size_t node, size_t *ret_len)
{
    if (node >= m->n_units) return NULL;
    size_t at = m->units[node] & 0x7FFFFFFF;
    if (at >= m->n_texts) return NULL;
    *ret_len = strlen(m->texts + at);
    return utf8_valid(m->texts + at, *ret_len, NULL) ? m->texts + at : NULL;
}

static bool ends_char(const char *s, size_t n, size_t at)
{
    return at == n || ((uint8_t)s[at] & 0xC0) != 0x80;
}

size_t charsmap_find(const charsmap *m, const char *s, size_t n, bool shortest, const char **ret_text,
                     size_t *ret_len)
{
    size_t found = 0, node = m->n_units ? offset_of(m->units[0]) : 0;
    for (size_t i = 0; i < n && s[i] != 0; i++) {
        uint8_t c = (uint8_t)s[i];
        node ^= c;
        if (node >= m->n_units) break;
        uint32_t unit = m->units[node];
        if ((unit & 0x800000FFu) != c) break;
        node ^= offset_of(unit);
        if (!(unit & HAS_VALUE) || !ends_char(s, n, i + 1)) continue;
        size_t len;
        const char *text = text_at(m, node, &len);
        if (!text) continue;
        found = i + 1;
        *ret_text = text;
        *ret_len = len;
        if (shortest) break;
    }
    return found;
}
