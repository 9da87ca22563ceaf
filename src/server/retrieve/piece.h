/* piece.h: a document's blocks cut into overlapping pieces that a model can read at once.
 *
 * Borders are, in this order: rows and headings (nothing goes across them), paragraphs, sentences, words,
 * characters. Every piece but a row's begins with the last sentences of the one before it, as far as they fit
 * into `overlap`. A piece knows the headings above it: "Boiler > Maintenance".
 *
 *     pieces ps = {0};
 *     if (pieces_cut(&ps, &p, 320, 64, NULL, err) == 0) ... ps.v[i].start ...
 *     pieces_done(&ps);
 *
 * Pure. */
#ifndef RETRIEVE_PIECE_H
#define RETRIEVE_PIECE_H

#include "retrieve/plain.h"

enum { PIECE_BYTES_MIN = 32, PIECE_BYTES_MAX = 16384, PIECE_TITLE_MAX = 96, PIECES_MAX = 1 << 20 };

typedef struct piece {
    size_t start, end;               /* bytes of the plain text; at most `most` of them */
    size_t line;                     /* of the file, from 1, where it begins */
    char title[PIECE_TITLE_MAX + 1]; /* headings above it; "" for none */
} piece;

typedef struct pieces {
    piece *v;
    size_t n, cap;
} pieces;

/* most: PIECE_BYTES_MIN to PIECE_BYTES_MAX; overlap: less than half of it. *ret is zeroed before, and to be
 * done with also after a failure: SHOAL_ENOMEM, SHOAL_ECANCELLED, SHOAL_ELIMIT (over PIECES_MAX). The work is linear in the text, whatever it says: no
 * search for a border goes further than one piece may reach. */
int pieces_cut(pieces *ret, const plain *p, size_t most, size_t overlap, steps *steps, shoal_err *err);
void pieces_done(pieces *ps);

/* Where the sentence that begins at s[at] ends: behind its mark, or at a line's end before a list; at most at
 * `end`. */
size_t piece_sentence_end(const char *s, size_t at, size_t end);

#endif
