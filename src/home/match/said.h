/* said.h: a request as units in one of a lexicon's languages.
 *
 * The language is the one that knows most of the words. Elisions come apart ("l'éclairage" is "l" and
 * "éclairage"), hyphens and what opens a sentence in Spanish are left out. Sentences end at . ! ? ; : and
 * line breaks. Memory is the caller's arena. Pure. */
#ifndef MATCH_SAID_H
#define MATCH_SAID_H

#include "match/device_lexicon.h"

#define SAID_UNITS_MAX 256 /* of one request; a sentence has UNITS_MAX */

typedef struct said_sentence {
    size_t from, to; /* units */
} said_sentence;

typedef struct said {
    const char *text;
    const tongue *t;
    size_t n_tied;
    const tongue *tied[TONGUES_MAX];
    size_t n, n_sentences;
    unit *units; /* WORD, NUMBER or SIGN */
    said_sentence *sentences;
    size_t n_words, n_known; /* words, and those of them that the language knows */
    bool cut;                /* it is too long: nothing of it is read (n is 0) */
} said;

/* `only`: the languages that may be spoken; 0 of them: all. The first is taken where several know as much;
 * all of them are in `tied`, itself too. SHOAL_ENOMEM, or 0. Text that is no UTF-8 is read as its valid
 * parts. */
int said_read(said *ret, const device_lexicon *l, const tongue *const *only, size_t n_only, const char *text,
              arena *a);

/* The units of sentence s that these patterns of language t use, all matches together. */
unit_set said_find(const said *d, const said_sentence *s, const phrase_list *l, unit_set taken);
/* What the language knows of a unit's word; NULL: nothing. */
const word_sense *said_sense(const tongue *t, const unit *u);

#endif
