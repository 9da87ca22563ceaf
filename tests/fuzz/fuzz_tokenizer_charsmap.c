/* A precompiled map of any bytes against a text of any bytes: two bytes say how long the map is. Keys end at
 * whole characters, what they become is UTF-8, and both normalisers that use maps keep their ranges. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "tokenizer/tok_norm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find_everywhere(const charsmap *m, const char *s, size_t n)
{
    for (size_t at = 0; at < n; at++) {
        const char *text;
        size_t len;
        if (((uint8_t)s[at] & 0xC0) == 0x80) continue;
        for (int shortest = 0; shortest < 2; shortest++) {
            size_t k = charsmap_find(m, s + at, n - at, shortest, &text, &len);
            if (k && (k > n - at || !utf8_valid(s + at, k, NULL) || !utf8_valid(text, len, NULL))) abort();
        }
    }
}

static void normalise(const charsmap *m, norm_kind kind, const char *s, size_t n)
{
    norm_step step = {
        .kind = kind, .map = *m, .spm = {.dummy = true, .remove_extra = n & 1, .suffix = n & 2}};
    tok_text t = {.s = s, .len = n};
    tok_match match = {0};
    if (tok_norm_run(&step, 1, &t, &match, NULL) == 0) {
        if (!utf8_valid(t.s, t.len, NULL)) abort();
        for (size_t i = 0; i < t.len; i++) {
            text_range r = tok_text_origin(&t, i, i + 1);
            if (r.end > n || r.begin > n) abort();
        }
    }
    tok_text_done(&t);
    tok_match_done(&match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = size < 2 ? SIZE_MAX : (size_t)data[0] | (size_t)data[1] << 8;
    if (n > size || n + 2 > size) return 0;
    const char *s = (const char *)data + 2 + n;
    size_t len = size - 2 - n;
    arena *mem = arena_new(0);
    charsmap m;
    if (mem && utf8_valid(s, len, NULL) && charsmap_parse(&m, mem, data + 2, n, "fuzz", NULL) == 0) {
        find_everywhere(&m, s, len);
        normalise(&m, NORM_PRECOMPILED, s, len);
        normalise(&m, NORM_SPM, s, len);
    }
    arena_free(mem);
    return 0;
}
