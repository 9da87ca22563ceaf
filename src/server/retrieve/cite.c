/* cite.c: see cite.h. */
#include "retrieve/cite.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "retrieve/piece.h"
#include "shoal.h"

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

/* ---- words ------------------------------------------------------------------------------------------ */

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

/* FNV-1a of the word in lower case; with 64 bits two words of a passage do not meet. */
static uint64_t hash_of(const char *word, size_t len)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)word[i];
        h = (h ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * 1099511628211u;
    }
    return h;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int cite_words_of(cite_words *ret, const char *text)
{
    size_t n = strlen(text), len;
    uint64_t *v = malloc((n / 2 + 1) * sizeof *v); /* something stands between two words */
    if (!v) return SHOAL_ENOMEM;
    *ret = (cite_words){.v = v};
    for (size_t at = 0; next_word(text, n, &at, &len); at += len) v[ret->n++] = hash_of(text + at, len);
    qsort(v, ret->n, sizeof *v, by_value);
    return 0;
}

void cite_words_done(cite_words *w)
{
    free(w->v);
    *w = (cite_words){0};
}

double cite_support(const char *s, size_t n, const cite_words *passage)
{
    size_t words = 0, there = 0, len;
    for (size_t at = 0; next_word(s, n, &at, &len); at += len) {
        if (!means_something(s + at, len)) continue;
        uint64_t hash = hash_of(s + at, len);
        words++;
        there += bsearch(&hash, passage->v, passage->n, sizeof hash, by_value) != NULL;
    }
    return words ? (double)there / (double)words : 0;
}
