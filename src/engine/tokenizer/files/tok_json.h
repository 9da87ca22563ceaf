/* tok_json.h: reading the steps of a tokenizer.json; for tok_json*.c.
 *
 * `what` names the place in errors ("normalizer.normalizers[1]"). Texts are copied into the tokenizer's
 * arena. */
#ifndef TOKENIZER_FILES_TOK_JSON_H
#define TOKENIZER_FILES_TOK_JSON_H

#include "tokenizer/tok_internal.h"

/* tok_json.c: fill in *t, which is new, from a whole tokenizer.json; the caller seals it. */
int tok_json_build(tokenizer *t, const json_t *root, const char *what, shoal_err *err);

/* One of "added_tokens"; t->added has room for it. */
int tok_json_add_token(tokenizer *t, const json_t *o, size_t i, const char *what, shoal_err *err);

typedef int tok_section(tokenizer *t, const json_t *o, const char *what, shoal_err *err);

/* A copy of an optional string field; `def` (may be NULL) when it is absent. */
int tok_json_text(tokenizer *t, const json_t *o, const char *key, const char *def, const char **ret,
                  size_t *ret_len, const char *what, shoal_err *err);
bool tok_json_bool(const json_t *o, const char *key, bool def);
int tok_json_type(const json_t *o, const char *what, const char **ret, shoal_err *err);
/* {"type": "Sequence", KEY: [...]}: each in turn. Depth is bounded by the JSON parser. */
int tok_json_each(tokenizer *t, const json_t *o, const char *key, tok_section *fn, const char *what,
                  shoal_err *err);
/* "pattern": {"String": s} or {"Regex": s}: sets one of *ret_re and *ret_text. */
int tok_json_pattern(tokenizer *t, const json_t *o, tok_regex **ret_re, const char **ret_text,
                     size_t *ret_len, const char *what, shoal_err *err);
/* "prepend_scheme", and what stood for it before. */
int tok_json_scheme(const json_t *o, prepend_scheme *ret, const char *what, shoal_err *err);

#endif
