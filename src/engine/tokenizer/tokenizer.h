/* tokenizer.h: text <-> token ids, with offsets into the original text.
 *
 * A tokenizer is a pipeline, as in the Hugging Face tokenizer.json: normalise, split into words
 * (pre-tokenise), segment each word (byte-level BPE, WordPiece), add special tokens. It is immutable
 * after loading, and any thread may use it. */
#ifndef TOKENIZER_TOKENIZER_H
#define TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct tokenizer tokenizer;

/* From the text of a tokenizer.json (and, when not NULL, of tokenizer_config.json). */
int tokenizer_from_json(tokenizer **ret, const char *json, size_t len, const char *config_json,
                        size_t config_len, const char *what, shoal_err *err);

/* From GGUF metadata. Strings are borrowed during the call only. SHOAL_EUNSUPPORTED names a model or a
 * pre-tokenizer that is not known. */
typedef struct tokenizer_gguf {
    const char *model; /* tokenizer.ggml.model: "gpt2" (byte-level BPE), "bert" (WordPiece), "llama" (joins by
                        * score), "t5" (Unigram), "rwkv" (greedy) */
    const char *pre;   /* tokenizer.ggml.pre, may be NULL: which pre-tokeniser regex */
    size_t n_tokens;
    const char *const *tokens;
    const size_t *token_lens;
    /* NULL, or 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte. */
    const int32_t *token_types;
    const float *scores; /* NULL, or one a token */
    size_t n_merges;
    const char *const *merges; /* "left right" */
    const size_t *merge_lens;
    int64_t bos, eos, unk, sep, pad, cls, mask; /* -1 when absent */
    int add_bos, add_eos;                       /* 0, 1, or -1 when absent */
    int lowercase;                              /* tokenizer.ggml.normalizer.lowercase; -1 when absent */
    /* Of "llama" and "t5"; zero is absent. */
    int space_prefix;         /* add_space_prefix: 1 true, -1 false */
    bool space_suffix;        /* treat_whitespace_as_suffix */
    bool remove_extra_spaces; /* remove_extra_whitespaces */
    const void *charsmap;     /* precompiled_charsmap, an array of bytes */
    size_t charsmap_len;
} tokenizer_gguf;
int tokenizer_from_gguf(tokenizer **ret, const tokenizer_gguf *meta, const char *what, shoal_err *err);

/* From a folder, by what it has: tokenizer.json (with tokenizer_config.json), SentencePiece's .model,
 * Marian's source.spm and vocab.json, vocab.json with merges.txt, vocab.txt; special tokens and spaces as the
 * class in tokenizer_config.json, or the model's type in config.json, has them. SHOAL_ENOTFOUND when none is
 * there, SHOAL_EUNSUPPORTED when nothing says how the files are meant. */
int tokenizer_from_folder(tokenizer **ret, const char *dir, shoal_err *err);

/* Append what that reads as one tokenizer.json: the file itself, or what vocab.txt, or vocab.json with
 * merges.txt, come to. Nothing is appended, with 0, where there is none of these. */
int tokenizer_folder_json(buf *out, const char *dir, shoal_err *err);

/* A folder's SentencePiece model in the words of GGUF, with at least n_least tokens; what it points to lies
 * in mem. n_tokens is 0, with 0, where there is none, or one that those words cannot say (ALBERT's,
 * DeBERTa's, Marian's). */
int tokenizer_folder_gguf(tokenizer_gguf *ret, arena *mem, size_t n_least, const char *dir, shoal_err *err);

/* From llama2.c's tokenizer.bin (karpathy/llama2.c, tokenizer.py): a longest length, then score, length and
 * text of n_vocab pieces, of which 0 is unknown, 1 begins and 2 ends a text and 3.. are bytes. n_vocab is not
 * in the file but in the checkpoint. */
int tokenizer_from_llama2c(tokenizer **ret, const void *data, size_t len, size_t n_vocab, const char *what,
                           shoal_err *err);
void tokenizer_free(tokenizer *t);

typedef struct token_span {
    uint32_t begin, end;       /* bytes in the original text */
    uint32_t cp_begin, cp_end; /* code points in the original text */
} token_span;

/* What encode gives; zero it first, encoding_done frees. Special tokens have empty spans at 0. */
typedef struct encoding {
    size_t n, cap;
    int32_t *ids;
    token_span *spans;
    uint8_t *type_ids; /* 0 first text, 1 second (pair) */
    uint8_t *special;  /* 1: added by the template ([CLS], bos) rather than found in the text */
    int32_t *word;     /* index of the pre-token each came from, -1 for special: entities end at words */
    uint64_t n_steps;  /* bytes walked over to tell spans in code points: linear in the text */
} encoding;
void encoding_done(encoding *e);

enum {
    TOK_ADD_SPECIAL = 1,   /* [CLS] ... [SEP], bos */
    TOK_PARSE_SPECIAL = 2, /* "<|im_start|>" in the text becomes its token rather than characters */
};

/* Encode text[0..len) and, when pair != NULL, pair[0..pair_len). Text must be UTF-8: invalid bytes
 * are SHOAL_EINVALID with the offset. max_tokens 0: no limit, else SHOAL_ELIMIT. */
int tokenizer_encode(const tokenizer *t, const char *text, size_t len, const char *pair, size_t pair_len,
                     unsigned flags, size_t max_tokens, encoding *ret, shoal_err *err);

/* A prompt that a chat template rendered: control tokens in it are the template's own only. marks[len]
 * says which bytes the request brought (NULL: none); a control token's text that touches one of them
 * becomes plain characters. */
int tokenizer_encode_prompt(const tokenizer *t, const char *text, size_t len, const uint8_t *marks,
                            encoding *ret, shoal_err *err);

/* The whole prompt of a chat: as above, behind the begin-of-text token where the tokenizer asks for it.
 * Whether it does depends on the file, since the programs that templates are written for differ: llama.cpp
 * puts the token that a GGUF file asks for (add_bos_token, or the kind's default) before each prompt, while
 * transformers leaves it to the template of a folder. A template that writes the token itself gets no second
 * one. */
int tokenizer_encode_chat(const tokenizer *t, const char *text, size_t len, const uint8_t *marks,
                          encoding *ret, shoal_err *err);

/* A prompt that somebody wrote whole: with what the tokenizer puts before and behind texts, and control
 * tokens where they are spelt out. One that spells the begin-of-text token out gets no second one. */
int tokenizer_encode_completion(const tokenizer *t, const char *text, size_t len, encoding *ret,
                                shoal_err *err);

/* One text with its template ([CLS] ... [SEP]), in which the control tokens that touch no byte with a mark
 * are control tokens: a mask among words that somebody else wrote. marks[len]. */
int tokenizer_encode_marked(const tokenizer *t, const char *text, size_t len, const uint8_t *marks,
                            encoding *ret, shoal_err *err);

/* Tokens that somebody else chose, as one text without special ones. 0 or SHOAL_ENOMEM, with *ret untouched. */
int encoding_of_ids(encoding *ret, const int32_t *ids, size_t n);

/* Shorten to max_tokens the way the template wants it (keep the closing special token); for pairs,
 * from the longer text. Returns true when something was cut. */
bool encoding_truncate(encoding *e, size_t max_tokens);

size_t tokenizer_vocab_size(const tokenizer *t); /* highest id + 1, added tokens included */
/* The raw bytes a token stands for (byte-level mapping undone, "##" kept out); borrowed, NUL not
 * guaranteed. NULL for ids out of range. *ret_special: a control token, printed by decode only when
 * asked for. */
const char *tokenizer_bytes(const tokenizer *t, int32_t id, size_t *ret_len, bool *ret_special);
/* The token as its file spells it ("Ġhello", "##ing"); borrowed. NULL for ids out of range. */
const char *tokenizer_piece(const tokenizer *t, int32_t id, size_t *ret_len);
/* The id of the token that its file spells so ("<|transcribe|>", "</s>"), -1 for none. */
int32_t tokenizer_find(const tokenizer *t, const char *piece, size_t len);
int32_t tokenizer_bos(const tokenizer *t); /* -1 when it has none */
int32_t tokenizer_eos(const tokenizer *t);

/* Append the text of ids[0..n). Bytes that are no UTF-8 become U+FFFD. */
int tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n, bool with_special, buf *out);

/* Streaming: feed ids one by one; whole characters come out, at once when they are complete. */
typedef struct detok {
    const tokenizer *t;
    char pending[8]; /* at most 3 bytes of a character that is not complete */
    uint8_t n_pending, stripped;
    bool started, with_special, space;
    int32_t last;
} detok;
void detok_init(detok *d, const tokenizer *t, bool with_special);
int detok_push(detok *d, int32_t id, buf *out); /* appends 0 or more whole characters */
int detok_end(detok *d, buf *out);              /* a character still open becomes U+FFFD */

#endif
