/* word_index.h: which devices have a word in their names or places.
 *
 * Built once a request, so that looking a word up costs the same however many devices a home has and however
 * many names they bear. A word is found by itself, by its singular and plural, and, when it is a number, by
 * the other ways to write that number ("one" and "1").
 *
 * Memory is the arena that words are added with, and the map's, which word_index_done frees; at most DEVICES_MAX
 * devices. */
#ifndef NLU_WORD_INDEX_H
#define NLU_WORD_INDEX_H

#include "base/strmap.h"
#include "nlu/lexicon.h"
#include "pipeline/device_set.h"

typedef struct word_entry {
    const char *s; /* folded */
    bool number;
    double value;
    device_set names, places;
    struct word_entry *next; /* in the order they came */
} word_entry;

typedef struct word_index {
    strmap words; /* -> word_entry */
    word_entry *first, *last;
    size_t n_numbers;
} word_index;

/* `word` is borrowed. SHOAL_ENOMEM, or 0. A zeroed index is an empty one. */
int word_index_add(word_index *x, const lexicon *l, const char *word, size_t device, bool in_place, arena *a);
void word_index_done(word_index *x);

/* Who has the word; false: nobody. ret may be NULL. */
typedef struct word_owners {
    device_set names, places;
} word_owners;
bool word_index_find(const word_index *x, const lexicon *l, const char *word, word_owners *ret);

/* The value of digits or of a number word. */
bool word_index_number(const lexicon *l, const char *folded, double *ret);

#endif
