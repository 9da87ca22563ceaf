/* utterance.h: a request as units in one of a lexicon's languages.
 *
 * The language is the one that knows most of the words. Elisions come apart ("l'éclairage" is "l" and
 * "éclairage"), hyphens and what opens a sentence in Spanish are left out. Sentences end at . ! ? ; : and
 * line breaks. Memory is the caller's arena. Pure. */
#ifndef MATCH_UTTERANCE_H
#define MATCH_UTTERANCE_H

#include "match/device_lexicon.h"

#define UTTERANCE_UNITS_MAX 256 /* of one request; a sentence has UNITS_MAX */

typedef struct utterance_sentence {
    size_t from, to; /* units */
} utterance_sentence;

typedef struct utterance {
    const char *text;
    const language *t;
    size_t n_tied;
    const language *tied[LANGUAGES_MAX];
    size_t n, n_sentences;
    unit *units; /* WORD, NUMBER or SIGN */
    utterance_sentence *sentences;
    size_t n_words, n_known; /* words, and those of them that the language knows */
    bool cut;                /* it is too long: nothing of it is read (n is 0) */
} utterance;

/* `only`: the languages that may be spoken; 0 of them: all. The first is taken where several know as much;
 * all of them are in `tied`, itself too. SHOAL_ENOMEM, or 0. Text that is no UTF-8 is read as its valid
 * parts. */
int utterance_read(utterance *ret, const device_lexicon *l, const language *const *only, size_t n_only,
                   const char *text, arena *a);

/* The units of sentence s that these patterns of language t use, all matches together. */
unit_set utterance_find(const utterance *d, const utterance_sentence *s, const phrase_list *l,
                        unit_set taken);
/* What the language knows of a unit's word; NULL: nothing. */
const word_sense *utterance_sense(const language *t, const unit *u);

#endif
