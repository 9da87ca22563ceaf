/* cite.c: see cite.h. */
#include "retrieve/cite.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "retrieve/piece.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

size_t cite_sentence_end(const char *s, size_t at, size_t n)
{
    return piece_sentence_end(s, at, n);
}

static bool is_known(const char *const *texts, const cite_sentence *v, size_t n, const char *s, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].end - v[i].start == len && memcmp(texts[v[i].passage] + v[i].start, s, len) == 0)
            return true;
    return false;
}

size_t cite_sentences(const char *const *texts, size_t n, cite_sentence *out, size_t most)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const char *s = texts[i];
        size_t len = strlen(s);
        for (size_t at = 0, end; at < len && found < most; at = end) {
            while (at < len && is_space(s[at])) at++;
            if (at == len) break;
            end = piece_sentence_end(s, at, len);
            size_t trimmed = end;
            while (trimmed > at && is_space(s[trimmed - 1])) trimmed--;
            if (trimmed - at < CITE_SENTENCE_MIN || trimmed - at > CITE_SENTENCE_MAX) continue;
            if (is_known(texts, out, found, s + at, trimmed - at)) continue;
            out[found++] = (cite_sentence){i, at, trimmed};
        }
    }
    return found;
}

/* ---- words ------------------------------------------------------------------------------------------------
 */

static bool in_word(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* The next word of s[*at..n); false behind the last. */
static bool next_word(const char *s, size_t n, size_t *at, size_t *ret_len)
{
    while (*at < n && !in_word((unsigned char)s[*at])) ++*at;
    size_t end = *at;
    while (end < n && in_word((unsigned char)s[end])) end++;
    *ret_len = end - *at;
    return end > *at;
}

static bool means_something(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] >= '0' && s[i] <= '9') return true;
    return n >= 4;
}

static bool has_word(const char *text, const char *word, size_t len)
{
    size_t n = strlen(text), l;
    for (size_t at = 0; next_word(text, n, &at, &l); at += l)
        if (l == len && strncasecmp(text + at, word, len) == 0) return true;
    return false;
}

double cite_support(const char *s, size_t n, const char *text)
{
    size_t words = 0, there = 0, len;
    for (size_t at = 0; next_word(s, n, &at, &len); at += len) {
        if (!means_something(s + at, len)) continue;
        words++;
        there += has_word(text, s + at, len);
    }
    return words ? (double)there / (double)words : 0;
}
