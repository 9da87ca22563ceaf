/* word_index.c: words by hash; see word_index.h. */
#include "nlu/word_index.h"

#include <stdio.h>
#include <string.h>

#include "shoal.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool word_index_number(const lexicon *l, const char *s, double *ret)
{
    size_t n = is_digit(*s) ? strspn(s, "0123456789") : 0;
    if (n == 0 || n > 6 || s[n]) return lexicon_number(l, s, ret);
    *ret = 0;
    for (size_t i = 0; i < n; i++) *ret = *ret * 10 + (s[i] - '0');
    return true;
}

/* FNV-1a. A hostile list of devices may make it degenerate, no worse than a search through its words. */
static size_t hash_of(const char *s)
{
    uint64_t h = 1469598103934665603u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The slot of the word, or the free one where it belongs. */
static size_t slot_of(const word_index *x, const char *word)
{
    size_t i = hash_of(word) & (x->n_slots - 1);
    while (x->slots[i] && strcmp(x->at[x->slots[i] - 1].s, word) != 0) i = (i + 1) & (x->n_slots - 1);
    return i;
}

static int grow(word_index *x, arena *a)
{
    size_t cap = x->cap ? 2 * x->cap : 64, n_slots = 4 * cap;
    word_entry *at = arena_alloc(a, cap * sizeof *at);
    uint32_t *slots = arena_alloc(a, n_slots * sizeof *slots);
    if (!at || !slots) return SHOAL_ENOMEM;
    if (x->n) memcpy(at, x->at, x->n * sizeof *at);
    *x = (word_index){
        .n = x->n, .at = at, .cap = cap, .n_slots = n_slots, .slots = slots, .n_numbers = x->n_numbers};
    for (size_t i = 0; i < x->n; i++) slots[slot_of(x, at[i].s)] = (uint32_t)(i + 1);
    return 0;
}

int word_index_add(word_index *x, const lexicon *l, const char *word, size_t device, bool in_place, arena *a)
{
    if (x->n == x->cap && grow(x, a)) return SHOAL_ENOMEM;
    size_t slot = slot_of(x, word);
    if (!x->slots[slot]) {
        word_entry *e = &x->at[x->n++];
        e->s = word;
        e->number = word_index_number(l, word, &e->value);
        x->n_numbers += e->number;
        x->slots[slot] = (uint32_t)x->n;
    }
    word_entry *e = &x->at[x->slots[slot] - 1];
    device_set_add(in_place ? &e->places : &e->names, device);
    return 0;
}

/* ---- looking up ---------------------------------------------------------------------------------- */

typedef struct lookup {
    const word_index *x;
    const char *word;
    word_owners *ret;
    bool found;
} lookup;

static void take(lookup *k, const word_entry *e)
{
    k->found = true;
    if (!k->ret) return;
    device_set_join(&k->ret->names, &e->names);
    device_set_join(&k->ret->places, &e->places);
}

/* The first n bytes of the word and a tail, when that is the same word but for its ending. */
static void look(lookup *k, size_t n, const char *tail)
{
    char s[512];
    if (n + strlen(tail) >= sizeof s) return;
    memcpy(s, k->word, n);
    strcpy(s + n, tail);
    uint32_t i = k->x->slots[slot_of(k->x, s)];
    if (i && words_same_stem(s, k->word)) take(k, &k->x->at[i - 1]);
}

static void look_endings(lookup *k)
{
    static const char *const tails[] = {"s", "'s", "es", "ies"};
    size_t n = strlen(k->word);
    for (size_t i = 0; i < 3; i++) look(k, n, tails[i]);
    if (n > 1) look(k, n - 1, "ies");
    for (size_t i = 0; i < 4; i++) {
        size_t m = strlen(tails[i]);
        if (n > m && strcmp(k->word + n - m, tails[i]) == 0) look(k, n - m, i == 3 ? "y" : "");
    }
}

bool word_index_find(const word_index *x, const lexicon *l, const char *word, word_owners *ret)
{
    lookup k = {.x = x, .word = word, .ret = ret};
    double v;
    if (ret) *ret = (word_owners){0};
    if (!x->n) return false;
    uint32_t i = x->slots[slot_of(x, word)];
    if (i) take(&k, &x->at[i - 1]);
    if (k.found && !ret) return true;
    look_endings(&k);
    if (x->n_numbers && word_index_number(l, word, &v))
        for (size_t n = 0; n < x->n; n++)
            if (x->at[n].number && x->at[n].value == v && is_digit(*word) != is_digit(*x->at[n].s))
                take(&k, &x->at[n]);
    return k.found;
}
