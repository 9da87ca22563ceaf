/* grammar.h: which tokens may come next when a reply must be JSON.
 *
 * A grammar is a JSON schema (or "any JSON object") compiled to states over bytes; together with a
 * tokenizer it answers, for the state a reply is in, which tokens keep it a prefix of a valid
 * document. Compiled once a request, stepped once a token, engine thread only. */
#ifndef INFER_GRAMMAR_H
#define INFER_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "text/tokenizer.h"

/* What is the same for all grammars of one model: its tokens' bytes as a prefix tree. */
typedef struct grammar_vocab grammar_vocab;
int grammar_vocab_new(grammar_vocab **ret, const tokenizer *t, shoal_err *err); /* t must outlive it */
void grammar_vocab_free(grammar_vocab *v);

typedef struct grammar grammar;
/* schema NULL: any JSON object. Supported: type (one or several), properties, required,
 * additionalProperties (bool or schema), items, minItems, maxItems, enum, const, anyOf, oneOf, $ref to
 * #/$defs or #/definitions, string minLength/maxLength, integer and number (minimum/maximum are not
 * enforced and are refused), boolean, null. Anything else is SHOAL_EUNSUPPORTED with its JSON pointer.
 * Properties come in the schema's order (those not required may be left out). */
int grammar_new(grammar **ret, const grammar_vocab *v, const char *schema, shoal_err *err);
void grammar_free(grammar *g);

/* Set logits[id] = -INFINITY for every token that cannot come next. eos ids stay allowed only when the
 * document is complete. At least one token stays allowed. */
void grammar_mask(const grammar *g, float *logits, size_t n_vocab, const int32_t *eos_ids, size_t n_eos);
/* The reply grew by this token; false when the token was not allowed (nothing changed). */
bool grammar_accept(grammar *g, int32_t id);
/* The document is complete (only whitespace could follow). */
bool grammar_complete(const grammar *g);

#endif
