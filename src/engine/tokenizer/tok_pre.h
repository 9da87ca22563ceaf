/* tok_pre.h: the pre-tokeniser of a tokenizer: steps that split the text into words.
 *
 * Words are byte ranges of the text as normalised. Each step splits every word of the step before;
 * look-arounds do not see beyond a word. Two steps may also write into the text (a leading space,
 * Metaspace's "▁"), and then all words move to the new text. */
#ifndef TOKENIZER_TOK_PRE_H
#define TOKENIZER_TOK_PRE_H

#include "base/err.h"
#include "tokenizer/tok_regex.h"
#include "tokenizer/tok_text.h"

/* What becomes of the parts that match. */
typedef enum {
    SPLIT_ISOLATED,
    SPLIT_REMOVED,
    SPLIT_CONTIGUOUS,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
} split_behavior;

typedef enum {
    PRE_CLASS, /* characters of `is` */
    PRE_REGEX,
    PRE_LITERAL,
    PRE_PREFIX_SPACE, /* a word that does not begin with a space gets one */
    PRE_METASPACE,    /* ' ' becomes `text`; before words as `prepend` says */
} pre_kind;

typedef enum { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } prepend_scheme;

typedef struct pre_step {
    pre_kind kind;
    split_behavior behavior;
    bool invert;  /* what does not match is what matches */
    bool letters; /* it stands behind ByteLevel: it sees each byte as its letter of GPT-2's alphabet
                     (tok_letter.h) */
    bool (*is)(uint32_t cp);
    tok_regex *re;
    const char *text; /* PRE_LITERAL, PRE_METASPACE */
    size_t text_len;
    prepend_scheme prepend;
} pre_step;

typedef struct word_span {
    size_t begin, end;
} word_span;

typedef struct word_list {
    word_span *at; /* owned */
    size_t n, cap;
} word_list;

/* Split bytes [begin, end) of *t; a step that writes makes *t that part alone. words is emptied
 * first and may be reused between calls. */
int tok_pre_run(const pre_step *steps, size_t n, tok_text *t, size_t begin, size_t end, word_list *words,
                tok_match *m, shoal_err *err);
void tok_words_done(word_list *w);

#endif
