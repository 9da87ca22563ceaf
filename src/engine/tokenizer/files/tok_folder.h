/* tok_folder.h: a tokenizer from a folder of files older than tokenizer.json; for tok_folder*.c.
 *
 * What the files do not say, the model's own code did: each class of the Hugging Face library
 * ("BertTokenizer") has its special tokens, its way with pairs, its spaces. tok_folder_open finds the class
 * and the tokens; the readers put vocabularies into the form of a tokenizer.json, or of an spm_vocab. */
#ifndef TOKENIZER_FILES_TOK_FOLDER_H
#define TOKENIZER_FILES_TOK_FOLDER_H

#include "base/buf.h"
#include "tokenizer/tok_internal.h"
#include "tokenizer/tok_spm.h"

typedef struct tok_folder {
    const char *dir;
    const char *kind;                 /* "bert", "roberta", "t5", ...; "" when nothing names it */
    json_t *config, *special, *added; /* tokenizer_config.json, special_tokens_map.json, added_tokens.json;
                                       * NULL where there is none */
    json_t *model;                    /* config.json */
    arena *mem;
    shoal_err *err;
} tok_folder;

/* 0 also when none of the files is there. SHOAL_ENOTFOUND when there is no such folder. */
int tok_folder_open(tok_folder *f, const char *dir, shoal_err *err);
void tok_folder_close(tok_folder *f);

/* DIR/NAME in the arena, NULL when out of memory. */
char *tok_folder_path(const tok_folder *f, const char *name);
bool tok_folder_has(const tok_folder *f, const char *name);
/* Append the file, at most 256 MB. */
int tok_folder_read(const tok_folder *f, const char *name, buf *out);
/* An option of tokenizer_config.json. */
bool tok_folder_flag(const tok_folder *f, const char *key, bool def);
/* The text of a special token ("cls_token"), by the configuration or `def`. */
const char *tok_folder_token(const tok_folder *f, const char *role, const char *def);

/* vocab.txt; vocab.json and merges.txt: *root is a tokenizer.json. */
int tok_folder_wordpiece(const tok_folder *f, json_t **root);
int tok_folder_bpe(const tok_folder *f, json_t **root);
/* A .model file, or source.spm with vocab.json: *t is built but not sealed. */
int tok_folder_spm(const tok_folder *f, const char *file, tokenizer *t);
/* The same pieces in the words of GGUF, at least n_least; texts and arrays lie in mem. Not of ALBERT and
 * DeBERTa, whose text is changed before SentencePiece sees it. */
int tok_folder_spm_meta(const tok_folder *f, const char *file, size_t n_least, arena *mem,
                        tokenizer_gguf *ret);
int tok_folder_marian(const tok_folder *f, tokenizer *t);

/* "added_tokens" of root: the tokens of the roles, then those of added_tokens.json and of
 * tokenizer_config.json's added_tokens_decoder. Ids are those of `vocab`, or behind its last. */
int tok_folder_add_tokens(const tok_folder *f, json_t *root, json_t *vocab, const char *const roles[][2],
                          size_t n_roles);

#endif
