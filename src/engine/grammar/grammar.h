/* grammar.h: which tokens may come next when a reply must have a form.
 *
 * A grammar is a form (a JSON schema, calls of offered tools, one of some texts) compiled to states over
 * bytes; together with a tokenizer it answers, for the state that a reply is in, which tokens keep it the
 * beginning of a reply of that form. Whatever the states allow can still be finished, so a reply is never
 * led into a dead end, and what ended is valid.
 *
 *     grammar_spec spec = {.kind = GRAMMAR_JSON_SCHEMA, .schema = "{\"type\":\"integer\",\"maximum\":9}"};
 *     grammar_new(&g, vocab, &spec, &err);                       ... on any thread, then for each token:
 *     if (!grammar_mask(g, logits, n_vocab, eos, n_eos)) end the request with grammar_error(g);
 *     grammar_accept(g, id); if (grammar_ended(g)) the reply is whole
 *
 * Made on the caller's thread, then used by one thread at a time. */
#ifndef GRAMMAR_H
#define GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "chat/thinking.h"
#include "tokenizer/tokenizer.h"
#include "chat/toolcall.h"

/* What is the same for all grammars of one model: its tokens' bytes as a prefix tree. */
typedef struct grammar_vocab grammar_vocab;
int grammar_vocab_new(grammar_vocab **ret, const tokenizer *t, shoal_err *err); /* t must outlive it */
void grammar_vocab_free(grammar_vocab *v);

typedef struct grammar_spec {
    enum {
        GRAMMAR_JSON_OBJECT, /* any JSON object */
        GRAMMAR_JSON_SCHEMA, /* a document that satisfies `schema` */
        GRAMMAR_TOOLS,       /* calls of `tools_json`, see below */
        GRAMMAR_CHOICES,     /* exactly one of the texts `choices` */
    } kind;
    const char *schema; /* JSON text; what of JSON Schema is enforced is listed in docs/http.md */
    bool open;          /* properties that it does not name may be written, too */
    /* Calls in the model's own syntax (NULL: hermes), one after the other when `parallel`:
     *     <tool_call>\n{"name": "one of the offered", "arguments": {its "parameters"}}\n</tool_call>
     * The markers may be control tokens or plain text. tools_json is OpenAI's "tools" array; a function
     * without "parameters" takes any object. In auto mode of a syntax without markers a reply that begins
     * like a call in JSON is one; calls in Python are then not held to anything. */
    const toolcall_syntax *syntax;
    const char *tools_json;
    enum {
        TOOLS_AUTO, /* text, which cannot hold the marker, then any number of calls (one, unless parallel) */
        TOOLS_REQUIRED, /* one call (or more, when parallel) and nothing else */
        TOOLS_NAMED,    /* exactly one call, of tool_name */
    } mode;
    const char *tool_name;
    bool parallel;
    const char *const *choices; /* not empty, no empty text; one may begin another */
    size_t n_choices;
    /* A thought may come first (NULL: none), or goes on where the prompt ends; the form is what follows it.
     */
    const thinking_form *thinking;
    bool in_thought;
} grammar_spec;

typedef struct grammar grammar;
/* `spec` is read during the call only. SHOAL_EINVALID for what is malformed or admits no reply at all,
 * SHOAL_EUNSUPPORTED for a keyword that would change which documents are valid and cannot be enforced
 * (both with its JSON pointer), SHOAL_ELIMIT when the states would be too many. */
int grammar_new(grammar **ret, const grammar_vocab *v, const grammar_spec *spec, shoal_err *err);
void grammar_free(grammar *g);

/* Set logits[id] = -INFINITY for every token that cannot come next; eos ids stay only when the reply may
 * end here. At least one token stays. False when that cannot be done (nested too deep, more work than one
 * request may ask for, or a vocabulary without the bytes to go on): the logits are untouched, the request
 * has to end with grammar_error. */
bool grammar_mask(grammar *g, float *logits, size_t n_vocab, const int32_t *eos_ids, size_t n_eos);
/* The reply grew by this token; false when the token was not allowed (nothing changed). */
bool grammar_accept(grammar *g, int32_t id);
/* The same for a token of a reply that began elsewhere, before which no mask was made here. Its work is
 * bounded as a mask's is: false with grammar_error when it is too much. */
bool grammar_replay(grammar *g, int32_t id);
/* The reply may have this many tokens more: near their end, strings and lists that could go on are brought to one, so
 * that the reply is whole (grammar_budget.c). Tokens that are accepted or replayed count. */
void grammar_limit(grammar *g, size_t n_tokens);
/* No string may take more tokens than this, as far as its schema lets it end sooner. */
void grammar_limit_text(grammar *g, size_t n_tokens);
bool grammar_complete(const grammar *g);          /* the reply is whole: it may end here */
bool grammar_ended(grammar *g);                   /* and nothing but a line end can follow */
const shoal_err *grammar_error(const grammar *g); /* NULL while all is well */

#endif
