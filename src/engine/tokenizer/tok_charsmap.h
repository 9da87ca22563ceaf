/* tok_charsmap.h: the precompiled map of SentencePiece: which byte strings become which.
 *
 * The file is a number of bytes (little-endian, 32 bits), a double array of that many bytes, and texts that
 * end in NUL. The array is a trie (darts-clone by Susumu Yata; units as in its BASE/LABEL/HAS_LEAF layout):
 *
 *     bits 0-7 label, 8 has a value, 9-31 offset (bit 9: times 256), bit 31 set in values only
 *
 * A node's child for byte c lies at node ^ offset ^ c, and is one when its label is c. A value is a place
 * among the texts. Nothing in it is believed: each step and each text is checked when it is used. */
#ifndef TOKENIZER_TOK_CHARSMAP_H
#define TOKENIZER_TOK_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct charsmap {
    const uint32_t *units; /* [n_units] */
    const char *texts;     /* [n_texts], the last is NUL */
    size_t n_units, n_texts;
} charsmap;

/* A copy of the blob in the arena. SHOAL_EFORMAT when its sizes do not fit each other. */
int charsmap_parse(charsmap *ret, arena *mem, const void *blob, size_t len, const char *what, shoal_err *err);

/* How many bytes of s[0..n) (well-formed UTF-8) are a key of whole characters, 0 for none: the longest one,
 * or the shortest as the Hugging Face library takes it. *ret_text is what they become, *ret_len bytes. */
size_t charsmap_find(const charsmap *m, const char *s, size_t n, bool shortest, const char **ret_text,
                     size_t *ret_len);

#endif
