/* tok_vocab.h: the pieces of a vocabulary by id, and their ids by text.
 *
 * Piece texts lie in one pool; an open-addressing table maps text to id. Ids need not be dense, but
 * the highest is bounded by TOK_MAX_ID, so that a hostile file cannot make us allocate much.
 * The hash runs from left to right, so that all prefixes of a text are hashed in one pass. */
#ifndef TOKENIZER_TOK_VOCAB_H
#define TOKENIZER_TOK_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { TOK_MAX_TOKENS = 2000000, TOK_MAX_ID = 4000000, TOK_MAX_PIECE = 65536 };
/* Longer pieces of a Unigram vocabulary are not looked for, so that no file makes a text cost more per byte.
 */
enum { TOK_MAX_UNIGRAM = 512 };

typedef struct vocab_piece {
    uint32_t off, len; /* off == UINT32_MAX: no such id */
} vocab_piece;

typedef struct vocab {
    buf pool;
    vocab_piece *pieces; /* [n] by id */
    size_t n, cap;       /* highest id + 1 */
    size_t max_len;      /* of the longest piece, bytes */
    uint64_t *slots;     /* (hash's upper half) << 32 | id + 1, 0 for free */
    size_t n_slots, n_used;
} vocab;

#define VOCAB_HASH_START 0xCBF29CE484222325u
/* FNV-1a (Fowler, Noll, Vo), continued from h. */
static inline uint64_t vocab_hash(uint64_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)s[i]) * 0x100000001B3u;
    return h;
}

/* Zeroed is empty. A text that is there already keeps its first id (the new id gets the text all the
 * same). SHOAL_ELIMIT over the bounds above, SHOAL_ENOMEM. */
int tok_vocab_put(vocab *v, int32_t id, const char *s, size_t len);
void tok_vocab_done(vocab *v);

int32_t tok_vocab_find(const vocab *v, const char *s, size_t len); /* -1 when absent */
/* The id of prefix + s, whose hash the caller has computed along the way. */
int32_t tok_vocab_find_hashed(const vocab *v, uint64_t hash, const char *prefix, size_t prefix_len,
                              const char *s, size_t len);
const char *tok_vocab_text(const vocab *v, int32_t id, size_t *ret_len); /* NULL when there is no such id */

#endif
