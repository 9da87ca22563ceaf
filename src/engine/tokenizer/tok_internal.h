/* tok_internal.h: what a tokenizer is made of; for the tokenizer's own files.
 *
 * Loaders (tok_json.c, tok_gguf.c, tok_folder*.c, tok_spm.c, tok_llama2c.c) fill one in, tok_seal completes
 * it, and nothing writes to it after that: this is what lets any thread use it without a lock. */
#ifndef TOKENIZER_TOK_INTERNAL_H
#define TOKENIZER_TOK_INTERNAL_H

#include <jansson.h>

#include "base/buf.h"
#include "tokenizer/tok_bpe.h"
#include "tokenizer/tok_norm.h"
#include "tokenizer/tok_pre.h"
#include "tokenizer/tokenizer.h"

typedef struct added_token {
    const char *text; /* what it looks like, normalised when it is looked for in normalised text */
    size_t len;
    int32_t id;
    bool special, normalized, lstrip, rstrip, single_word;
    bool foreign; /* the model's own vocabulary has it not */
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

/* What is done to each token by itself, in the order of the file. */
typedef enum {
    DSTEP_REPLACE,       /* `from`, or matches of `re`, by `to` */
    DSTEP_STRIP,         /* up to `start` characters `from` at the beginning, `stop` at the end */
    DSTEP_BYTE_FALLBACK, /* "<0x0A>" is that byte */
    DSTEP_BYTE_LEVEL,    /* undo GPT-2's alphabet */
    DSTEP_UNESCAPE,      /* RWKV's "\n" and "\x0a" */
} dec_step_kind;

typedef struct dec_step {
    dec_step_kind kind;
    tok_regex *re;
    const char *from, *to;
    size_t from_len, to_len, start, stop;
} dec_step;

/* What depends on a token's place. */
typedef enum {
    DEC_JOIN,      /* no decoder: tokens with spaces between */
    DEC_BYTES,     /* one after the other */
    DEC_WORDPIECE, /* a space before what is no continuation */
    DEC_METASPACE, /* "▁" is a space, but not in the first token */
    DEC_BPE,       /* a space for each end of a word but the last */
    DEC_CTC,       /* equal neighbours are one; pads go */
} dec_kind;

enum { DEC_MAX_STEPS = 8 };
typedef struct decoder {
    dec_kind kind;
    bool cleanup;     /* DEC_WORDPIECE, DEC_CTC: "do n't ." -> "don't." */
    bool fused;       /* steps that follow are of the whole text */
    bool added_as_is; /* added tokens are their texts: no step changes them */
    dec_step steps[DEC_MAX_STEPS];
    size_t n_steps;
    size_t strip_first; /* so many strip_char at the start of the whole text go */
    char strip_char;
    const char *mark; /* DEC_WORDPIECE "##", DEC_METASPACE "▁", DEC_BPE "</w>", DEC_CTC "<pad>" */
    size_t mark_len;
    const char *delimiter; /* DEC_CTC "|" */
    size_t delimiter_len;
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
    bool begins_chats; /* bos stands before rendered chats as well */
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

/* tok_json_steps.c, tok_json_decoder.c: the sections of tokenizer.json. A null section leaves *t as it is. */
int tok_json_normalizer(tokenizer *t, const json_t *o, const char *what, shoal_err *err);
int tok_json_pre(tokenizer *t, const json_t *o, const char *what, shoal_err *err);
int tok_json_post(tokenizer *t, const json_t *o, const char *what, shoal_err *err);
int tok_json_decoder(tokenizer *t, const json_t *o, const char *what, shoal_err *err);

/* Room for one more step; NULL when out of memory. */
norm_step *tok_add_norm(tokenizer *t);
pre_step *tok_add_pre(tokenizer *t);
/* NULL when there are DEC_MAX_STEPS of them. */
dec_step *tok_add_dec(tokenizer *t, dec_step_kind kind);

/* The trie of seg: ids 0..n of the vocabulary, without those that left_out (may be NULL) marks. */
int tok_build_trie(tokenizer *t, size_t n, const uint8_t *left_out, shoal_err *err);

#endif
