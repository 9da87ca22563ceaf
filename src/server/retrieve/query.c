/* query.c: see query.h. */
#include "retrieve/query.h"

#include <stdlib.h>
#include <string.h>

static bool in_word(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Words that questions are made of in English and German. They say nothing about the subject, yet a text that
 * answers rarely asks, so BM25 would take them for rare ones. None of them is a noun or a verb of its own in
 * the other language. Sorted. */
static const char *const function_words[] = {
    "a",    "an",     "and",   "are",    "as",    "at",    "auf",  "be",    "by",     "can",     "could",
    "das",  "dem",    "den",   "der",    "did",   "do",    "does", "ein",   "eine",   "einen",   "einer",
    "es",   "for",    "from",  "für",    "has",   "have",  "how",  "i",     "ich",    "if",      "in",
    "into", "is",     "ist",   "it",     "its",   "kann",  "me",   "meine", "meinen", "mit",     "my",
    "of",   "on",     "or",    "should", "sind",  "so",    "that", "the",   "their",  "there",   "they",
    "this", "to",     "und",   "von",    "wann",  "warum", "was",  "we",    "welche", "welcher", "welches",
    "wer",  "werden", "what",  "when",   "where", "which", "who",  "why",   "wie",    "will",    "wird",
    "with", "wo",     "would", "you",    "your",  "zu",
};

static int by_word(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool is_function_word(const char *word)
{
    return bsearch(word, function_words, sizeof function_words / sizeof *function_words,
                   sizeof *function_words, by_word) != NULL;
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
        ret->common[ret->n] = is_function_word(word);
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
