/* tok_gguf.h: the pre-tokenizers that GGUF names; for tok_gguf*.c. */
#ifndef TOKENIZER_FILES_TOK_GGUF_H
#define TOKENIZER_FILES_TOK_GGUF_H

#include "tokenizer/tok_internal.h"

enum {
    PRE_IGNORE_MERGES = 1,
    PRE_ADD_BOS = 2, /* when the file does not say */
    PRE_ROBERTA = 4, /* a pair is <s> a </s></s> b </s> */
    PRE_RAW = 8,     /* pieces spell characters, with "▁" for ' ' and "<0x..>" for bytes */
};

enum { PRE_MAX_REGEX = 6 };

typedef struct tok_pre_name {
    const char *name;
    unsigned flags;
    const char *regex[PRE_MAX_REGEX]; /* split one after the other; what matches stands alone */
} tok_pre_name;

const tok_pre_name *tok_gguf_pre(const char *name); /* NULL: unknown */

#endif
