/* tok_internal.h: what a tokenizer is made of; for the tokenizer's own files.
 *
 * Loaders (tok_json.c, tok_gguf.c) fill one in, tok_seal completes it, and nothing writes to it after
 * that: this is what lets any thread use it without a lock. */
#ifndef TEXT_TOK_INTERNAL_H
#define TEXT_TOK_INTERNAL_H

#include <jansson.h>

#include "base/buf.h"
#include "text/tok_bpe.h"
#include "text/tok_norm.h"
#include "text/tok_pre.h"
#include "text/tokenizer.h"

typedef struct added_token {
    const char *text; /* what it looks like, normalised when it is looked for in normalised text */
    size_t len;
    int32_t id;
    bool special, normalized, lstrip, rstrip, single_word;
} added_token;

/* Added tokens in byte order, so that the longest at a place is found by narrowing a range. */
typedef struct added_set {
    const added_token **sorted;
    size_t n;
    bool starts[256]; /* some token begins with this byte */
} added_set;

typedef enum { TPL_A, TPL_B, TPL_TOKEN } tpl_kind;
typedef struct tpl_item {
    tpl_kind kind;
    int32_t id;
    uint8_t type;
} tpl_item;

typedef enum {
    DEC_JOIN,      /* no decoder: tokens with spaces between */
    DEC_BYTES,     /* byte-level, and SentencePiece-like sequences */
    DEC_WORDPIECE, /* a space before what is no continuation */
    DEC_METASPACE, /* "▁" is a space, but not in the first token */
} dec_kind;

typedef struct dec_replace {
    const char *from, *to;
    size_t from_len, to_len;
} dec_replace;

typedef struct decoder {
    dec_kind kind;
    bool cleanup;       /* WordPiece: "do n't ." -> "don't." */
    bool byte_level;    /* undo GPT-2's alphabet */
    bool byte_fallback; /* "<0x0A>" is that byte */
    bool strip_first;   /* one leading strip_char of the whole text goes */
    char strip_char;
    dec_replace replace[8];
    size_t n_replace;
    const char *prefix; /* "##" */
    size_t prefix_len;
    const char *meta; /* "▁" */
    size_t meta_len;
    bool meta_first; /* the first token loses its meta characters */
} decoder;

struct tokenizer {
    arena *mem; /* everything below that has no owner of its own */
    vocab voc;  /* all tokens, added ones too */
    segmenter seg;
    norm_step *norm;
    size_t n_norm;
    pre_step *pre;
    size_t n_pre;
    added_token *added;
    size_t n_added;
    added_set raw, normalized; /* by where they are looked for */
    tpl_item *single, *pair;
    size_t n_single, n_pair;
    bool trim_offsets, trim_prefix; /* ByteLevel / Roberta post-processing of offsets */
    decoder dec;
    buf bytes_pool;     /* what tokens stand for */
    vocab_piece *bytes; /* [voc.n] */
    uint8_t *special;   /* [voc.n] */
    int32_t bos, eos;
};

/* A new one whose optional ids are -1; NULL when out of memory. */
tokenizer *tok_new(void);
/* Complete a tokenizer whose vocabulary, steps, added tokens and decoder are set. */
int tok_seal(tokenizer *t, shoal_err *err);

/* head A tail, and head A tail [mid] B tail2; -1 leaves a token out. */
int tok_wrap_templates(tokenizer *t, int32_t head, int32_t tail, int32_t mid, uint8_t type_b, shoal_err *err);

/* GPT-2's own pre-tokeniser. */
#define TOK_GPT2_REGEX "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* tok_decode.c: fill in bytes[]. */
int tok_build_bytes(tokenizer *t, shoal_err *err);

/* tok_json_steps.c: the sections of tokenizer.json. A null section leaves *t as it is. */
int tok_json_normalizer(tokenizer *t, const json_t *o, const char *what, shoal_err *err);
int tok_json_pre(tokenizer *t, const json_t *o, const char *what, shoal_err *err);
int tok_json_post(tokenizer *t, const json_t *o, const char *what, shoal_err *err);
int tok_json_decoder(tokenizer *t, const json_t *o, const char *what, shoal_err *err);

/* Room for one more step; NULL when out of memory. */
norm_step *tok_add_norm(tokenizer *t);
pre_step *tok_add_pre(tokenizer *t);

#endif
