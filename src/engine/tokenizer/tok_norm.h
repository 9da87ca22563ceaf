/* tok_norm.h: the normaliser of a tokenizer: a list of steps that rewrite the text. */
#ifndef TOKENIZER_TOK_NORM_H
#define TOKENIZER_TOK_NORM_H

#include "base/err.h"
#include "tokenizer/tok_charsmap.h"
#include "tokenizer/tok_regex.h"
#include "tokenizer/tok_text.h"

typedef enum {
    NORM_BERT_CLEAN,    /* controls go, white space becomes ' ' */
    NORM_BERT_CHINESE,  /* spaces around ideographs */
    NORM_FORM,          /* NFC, NFD, NFKC, NFKD by `compose` and `compat` */
    NORM_STRIP_ACCENTS, /* drop non-spacing marks; with `all_marks`, all */
    NORM_LOWERCASE,
    NORM_STRIP, /* white space at the ends, by `left` and `right` */
    NORM_PREPEND,
    NORM_REPLACE,     /* `re` when given, else `pattern`, by `content` */
    NORM_NMT,         /* what SentencePiece's "nmt" takes for white space, and its controls */
    NORM_BYTES,       /* every byte becomes its letter in GPT-2's alphabet */
    NORM_PRECOMPILED, /* `map`, a grapheme or character at a time, as the Hugging Face library does it */
    NORM_SPM,         /* `map`, longest key first, and white space by `spm`, as SentencePiece does it */
} norm_kind;

/* SentencePiece's NormalizerSpec; "▁" is written for ' ' and for the dummy. */
typedef struct spm_spaces {
    bool dummy;        /* one space before the text (after it by `suffix`) that has any */
    bool suffix;       /* treat_whitespace_as_suffix */
    bool remove_extra; /* spaces at the ends go, several become one */
} spm_spaces;

typedef struct norm_step {
    norm_kind kind;
    bool compose, compat, left, right, all_marks;
    tok_regex *re;
    const char *pattern, *content;
    size_t pattern_len, content_len;
    charsmap map;
    spm_spaces spm;
} norm_step;

/* Run all steps over *t in place. */
int tok_norm_run(const norm_step *steps, size_t n, tok_text *t, tok_match *m, shoal_err *err);

/* NORM_PRECOMPILED, NORM_SPM (tok_norm_map.c); 0 or SHOAL_ENOMEM. */
int tok_norm_precompiled(const norm_step *s, tok_text *t);
int tok_norm_spm(const norm_step *s, tok_text *t);

/* Character classes the reference uses; shared with the pre-tokenisers. */
bool tok_cp_is_space(uint32_t cp);      /* Unicode White_Space */
bool tok_cp_is_bert_punct(uint32_t cp); /* ASCII punctuation and all of category P */
bool tok_cp_is_numeric(uint32_t cp);    /* Nd, Nl, No */
bool tok_cp_is_word(uint32_t cp);       /* \w: letters, marks, digits, connectors */

#endif
