/* tok_spm.h: vocabularies in SentencePiece's sense, wherever they lie: a .model file, GGUF, a llama2.c file.
 *
 * Reading and building are apart: a reader fills in an spm_vocab, whoever knows the model may then put its
 * pieces in another order or add some, and tok_spm_build makes a tokenizer of it. */
#ifndef TOKENIZER_TOK_SPM_H
#define TOKENIZER_TOK_SPM_H

#include "tokenizer/tok_internal.h"

typedef enum {
    SPM_NORMAL = 1,
    SPM_UNKNOWN = 2,
    SPM_CONTROL = 3, /* never found in text but as itself */
    SPM_USER = 4,    /* always one token */
    SPM_UNUSED = 5,
    SPM_BYTE = 6, /* "<0x0A>" */
} spm_type;

typedef struct spm_piece {
    const char *text; /* borrowed */
    size_t len;
    float score;
    spm_type type;
} spm_piece;

typedef struct spm_vocab {
    spm_piece *pieces; /* [n] by id */
    size_t n;
    bool bpe; /* joins by score; otherwise Unigram */
    spm_spaces spaces;
    const void *charsmap; /* borrowed; may be NULL */
    size_t charsmap_len;
    int32_t unk, bos, eos; /* -1 for none */
} spm_vocab;

/* A .model file (sentencepiece_model.proto of google/sentencepiece). Pieces lie in the arena, with room for
 * `spare` more; texts and map are borrowed from the bytes. SHOAL_EFORMAT, SHOAL_EUNSUPPORTED for models of
 * words or characters. */
int tok_spm_parse(spm_vocab *ret, arena *mem, const void *data, size_t len, size_t spare, const char *what,
                  shoal_err *err);

/* Vocabulary, segmenter, normaliser, added tokens and decoder of *t, which is new; norm steps that it has
 * stay in front. */
int tok_spm_build(tokenizer *t, const spm_vocab *v, const char *what, shoal_err *err);

#endif
