/* cite.h: sentences of what was found, and whether a sentence stands on them.
 *
 * An answer is held to the passages in one of two ways: it is one of their sentences (cite_sentences gives
 * the choices), or each of its sentences must have its words in a passage (cite_support). Pure. */
#ifndef RETRIEVE_CITE_H
#define RETRIEVE_CITE_H

#include <stddef.h>
#include <stdint.h>

enum { CITE_SENTENCE_MIN = 12, CITE_SENTENCE_MAX = 400 };

typedef struct cite_sentence {
    size_t passage;    /* of the texts that were given */
    size_t start, end; /* bytes of it */
} cite_sentence;

/* The sentences of n texts, in order, `most` at most; those that are too short or too long to be an answer,
 * and those that came before word for word (pieces overlap), are left out. Returns how many. */
size_t cite_sentences(const char *const *texts, size_t n, cite_sentence *out, size_t most);
/* The end of the sentence that begins at s[at]; n at most. */
size_t cite_sentence_end(const char *s, size_t at, size_t n);

/* The words of a passage, as sorted hashes: a sentence is held against them without reading the passage for each
 * of its words again. */
typedef struct cite_words {
    uint64_t *v;
    size_t n;
} cite_words;

/* SHOAL_ENOMEM. */
int cite_words_of(cite_words *ret, const char *text);
void cite_words_done(cite_words *w);

/* How many of the words of s[0..n) that mean something (four letters or more, or digits) the passage has, too:
 * 0 to 1. A sentence without such words stands on nothing. */
double cite_support(const char *s, size_t n, const cite_words *passage);

#endif
