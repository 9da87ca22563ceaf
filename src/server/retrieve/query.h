/* query.h: what somebody asks, as the expression that FTS5 searches with.
 *
 * Words are what is between signs and blanks; each is quoted, so that nothing a person writes is an operator,
 * and one of them is enough: how good a piece is, is BM25's business. Pure. */
#ifndef RETRIEVE_QUERY_H
#define RETRIEVE_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { QUERY_WORDS_MAX = 48, QUERY_WORD_BYTES = 64 };

typedef struct query {
    char words[QUERY_WORDS_MAX][QUERY_WORD_BYTES]; /* ASCII in lower case, none twice */
    bool common[QUERY_WORDS_MAX]; /* function words of a question; and words too frequent to search by, set by
                                     the store */
    size_t n;
} query;

/* The first words of a text of valid UTF-8; longer ones than QUERY_WORD_BYTES are left out. */
void query_parse(query *ret, const char *text, size_t n);
/* Append the expression; nothing when there are no words. Common words count when there are no others. */
void query_put(buf *out, const query *q);

#endif
