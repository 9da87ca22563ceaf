#include "speech/phrases.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/err.h"

enum { LOOP_IDS_MAX = 64, COPIES = 3, WORDS_MAX = 8 };

static bool phrases_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int phrases_compression(const char *text, size_t n, double *ret)
{
    *ret = 0;
    while (n > 0 && phrases_is_blank(text[n - 1])) n--;
    for (; n > 0 && phrases_is_blank(*text); n--) text++;
    if (n == 0) return 0;
    uLongf packed = compressBound((uLong)n);
    Bytef *room = malloc(packed);
    bool done = room && compress(room, &packed, (const Bytef *)text, (uLong)n) == Z_OK;
    free(room);
    if (!done) return SHOAL_ENOMEM; /* compress has no other error */
    *ret = (double)n / (double)packed;
    return 0;
}

/* ---- loops --------------------------------------------------------------------------------------- */

/* How many ids from `at` on continue what is `period` before them. */
static size_t follows(const int32_t *ids, size_t n, size_t at, size_t period)
{
    size_t k = 0;
    while (at + period + k < n && ids[at + k] == ids[at + period + k]) k++;
    return k;
}

/* The ids behind the third copy of a phrase that begins at `at`, as far as they are whole copies. */
static size_t surplus(const int32_t *ids, size_t n, size_t at, size_t *ret_period)
{
    for (size_t p = 1; p <= LOOP_IDS_MAX && at + (COPIES + 1) * p <= n; p++) {
        size_t copies = follows(ids, n, at, p) / p + 1;
        if (copies <= COPIES) continue;
        *ret_period = p;
        return (copies - COPIES) * p;
    }
    return 0;
}

/* Marks ids of text[n] that go. */
static void mark_loops(const int32_t *text, size_t n, bool *gone)
{
    for (size_t i = 0; i < n;) {
        size_t p = 0, more = surplus(text, n, i, &p);
        if (more == 0) {
            i++;
            continue;
        }
        for (size_t k = 0; k < more; k++) gone[i + COPIES * p + k] = true;
        i += COPIES * p + more;
    }
}

int phrases_drop_loops(int32_t *ids, size_t *n, int32_t time_0)
{
    int32_t *text = malloc((*n + 1) * sizeof *text);
    bool *gone = calloc(*n + 1, sizeof *gone), failed = !text || !gone;
    size_t n_text = 0, n_left = 0, k = 0;
    for (size_t i = 0; !failed && i < *n; i++)
        if (time_0 < 0 || ids[i] < time_0) text[n_text++] = ids[i];
    if (!failed) mark_loops(text, n_text, gone);
    for (size_t i = 0; !failed && i < *n; i++) {
        bool is_text = time_0 < 0 || ids[i] < time_0;
        if (!is_text || !gone[k]) ids[n_left++] = ids[i];
        k += is_text;
    }
    free(text);
    free(gone);
    if (failed) return SHOAL_ENOMEM;
    *n = n_left;
    return 0;
}

/* ---- words --------------------------------------------------------------------------------------- */

typedef struct word {
    const char *s;
    size_t n;
} word;

static bool in_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '\'' ||
           (c & 0x80);
}

/* The next word at or behind *at, which moves behind it. */
static bool next_word(const char *s, size_t n, size_t *at, word *ret)
{
    while (*at < n && !in_word(s[*at])) (*at)++;
    size_t from = *at;
    while (*at < n && in_word(s[*at])) (*at)++;
    *ret = (word){s + from, *at - from};
    return *at > from;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool same_word(word a, word b)
{
    if (a.n != b.n) return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.s[i]) != lower(b.s[i])) return false;
    return true;
}

/* Of the last words the last WORDS_MAX. */
static size_t last_words(const char *s, size_t n, word *ret)
{
    size_t at = 0, k = 0;
    word w;
    while (next_word(s, n, &at, &w)) {
        if (k == WORDS_MAX) memmove(ret, ret + 1, --k * sizeof *ret);
        ret[k++] = w;
    }
    return k;
}

static size_t first_words(const char *s, size_t n, word *ret)
{
    size_t at = 0, k = 0;
    while (k < WORDS_MAX + 1 && next_word(s, n, &at, &ret[k])) k++;
    return k;
}

static bool all_same(const word *a, const word *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!same_word(a[i], b[i])) return false;
    return true;
}

/* One word alone is too common to be looked for behind another. */
size_t phrases_repeated(const char *before, size_t n_before, const char *now, size_t n_now)
{
    word old[WORDS_MAX], new[WORDS_MAX + 1];
    size_t n_old = last_words(before, n_before, old), n_new = first_words(now, n_now, new), at;
    for (size_t k = n_old < n_new ? n_old : n_new; k > 0; k--)
        for (size_t skip = 0; skip <= (k > 1) && skip + k <= n_new; skip++) {
            if (!all_same(old + n_old - k, new + skip, k)) continue;
            at = (size_t)(new[skip + k - 1].s - now) + new[skip + k - 1].n;
            while (at < n_now && !in_word(now[at]) && !phrases_is_blank(now[at])) at++; /* its punctuation */
            return at;
        }
    return 0;
}
