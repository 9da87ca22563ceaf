/* word_index.c: words, their other forms, and other ways to write numbers; see word_index.h. */
#include "nlu/word_index.h"

#include <stdio.h>
#include <string.h>

#include "shoal.h"

static bool word_index_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool word_index_number(const lexicon *l, const char *s, double *ret)
{
    size_t n = word_index_is_digit(*s) ? strspn(s, "0123456789") : 0;
    if (n == 0 || n > 6 || s[n]) return lexicon_number(l, s, ret);
    *ret = 0;
    for (size_t i = 0; i < n; i++) *ret = *ret * 10 + (s[i] - '0');
    return true;
}

int word_index_add(word_index *x, const lexicon *l, const char *word, size_t device, bool in_place, arena *a)
{
    word_entry *e = strmap_get(&x->words, word);
    if (!e) {
        e = arena_alloc(a, sizeof *e);
        if (!e || !strmap_put(&x->words, word, e)) return SHOAL_ENOMEM;
        e->s = word;
        e->number = word_index_number(l, word, &e->value);
        x->n_numbers += e->number;
        if (x->last)
            x->last->next = e;
        else
            x->first = e;
        x->last = e;
    }
    device_set_add(in_place ? &e->places : &e->names, device);
    return 0;
}

void word_index_done(word_index *x)
{
    strmap_done(&x->words);
}

/* ---- looking up ---------------------------------------------------------------------------------- */

typedef struct lookup {
    const word_index *x;
    const char *word;
    word_owners *ret;
    bool found;
} lookup;

static void word_index_take(lookup *k, const word_entry *e)
{
    k->found = true;
    if (!k->ret) return;
    device_set_join(&k->ret->names, &e->names);
    device_set_join(&k->ret->places, &e->places);
}

/* The first n bytes of the word and a tail, when that is the same word but for its ending. */
static void word_index_look(lookup *k, size_t n, const char *tail)
{
    char s[512];
    if (n + strlen(tail) >= sizeof s) return;
    memcpy(s, k->word, n);
    strcpy(s + n, tail);
    const word_entry *e = strmap_get(&k->x->words, s);
    if (e && words_same_stem(s, k->word)) word_index_take(k, e);
}

static void look_endings(lookup *k)
{
    static const char *const tails[] = {"s", "'s", "es", "ies"};
    size_t n = strlen(k->word);
    for (size_t i = 0; i < 3; i++) word_index_look(k, n, tails[i]);
    if (n > 1) word_index_look(k, n - 1, "ies");
    for (size_t i = 0; i < 4; i++) {
        size_t m = strlen(tails[i]);
        if (n > m && strcmp(k->word + n - m, tails[i]) == 0) word_index_look(k, n - m, i == 3 ? "y" : "");
    }
}

bool word_index_find(const word_index *x, const lexicon *l, const char *word, word_owners *ret)
{
    lookup k = {.x = x, .word = word, .ret = ret};
    double v;
    if (ret) *ret = (word_owners){0};
    const word_entry *e = strmap_get(&x->words, word);
    if (e) word_index_take(&k, e);
    if (k.found && !ret) return true;
    look_endings(&k);
    if (x->n_numbers && word_index_number(l, word, &v))
        for (e = x->first; e; e = e->next)
            if (e->number && e->value == v && word_index_is_digit(*word) != word_index_is_digit(*e->s))
                word_index_take(&k, e);
    return k.found;
}
