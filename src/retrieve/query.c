/* query.c: see query.h. */
#include "retrieve/query.h"

#include <string.h>

static bool in_word(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool is_new(const query *q, const char *word)
{
    for (size_t i = 0; i < q->n; i++)
        if (strcmp(q->words[i], word) == 0) return false;
    return true;
}

void query_parse(query *ret, const char *text, size_t n)
{
    *ret = (query){0};
    for (size_t at = 0, from; at < n && ret->n < QUERY_WORDS_MAX;) {
        while (at < n && !in_word((unsigned char)text[at])) at++;
        for (from = at; at < n && in_word((unsigned char)text[at]);) at++;
        if (at == from || at - from >= QUERY_WORD_BYTES) continue;
        char *word = ret->words[ret->n];
        for (size_t i = 0; i < at - from; i++) {
            char c = text[from + i];
            word[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
        }
        word[at - from] = 0;
        ret->n += is_new(ret, word);
    }
}

void query_put(buf *out, const query *q)
{
    size_t n_rare = 0;
    for (size_t i = 0; i < q->n; i++) n_rare += !q->common[i];
    for (size_t i = 0, put = 0; i < q->n; i++) {
        if (q->common[i] && n_rare) continue;
        buf_printf(out, "%s\"%s\"", put++ ? " OR " : "", q->words[i]);
    }
}
