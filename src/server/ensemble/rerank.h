/* rerank.h: what candidates are worth by a rule, and the requests that ask models for it; see rerank_calls.h.
 *
 *     rerank_text texts[] = {{"The lamp is on.", 15}, {"the lamp is on", 14}, {"No.", 3}};
 *     double worth[3];
 *     rerank_by_rule(RERANK_MAJORITY, &asked, NULL, texts, 3, worth);       // 2/3, 2/3, 1/3
 *     rerank_order(worth, 3, order);                                       // 0, 1, 2
 *
 * A rule is a function of the texts and the question alone, so the same candidates are worth the same
 * everywhere. Pure. */
#ifndef ENSEMBLE_RERANK_H
#define ENSEMBLE_RERANK_H

#include "base/buf.h"
#include "calls/calls.h"
#include "ensemble/verify_json.h"
#include "regex/regex.h"

#define RERANK_CANDIDATES_MAX 32
#define RERANK_WORDS_MAX      256 /* of a question; the others are not looked for */

/* X(enum, name): what an answer is worth. An empty one is worth less than any other. */
#define RERANK_RULE_TABLE(X)                                                                                 \
    X(RERANK_LONGEST, "longest")   /* characters */                                                          \
    X(RERANK_SHORTEST, "shortest") /* the same, fewer are better: below 0 */                                 \
    X(RERANK_MAJORITY, "majority") /* the share of candidates that say it, but for case, space and stops */  \
    X(RERANK_WORDS, "words")       /* the share of the question's words that it has */                       \
    X(RERANK_NAMES, "names")       /* the same of those that stand elsewhere in the prompt, too */           \
    X(RERANK_JSON, "json")         /* 1: it is JSON of the schema, without one an object or array; else 0 */ \
    X(RERANK_PATTERN, "pattern")   /* 1: it matches; else 0 */
typedef enum rerank_by {
#define RERANK_RULE_ENUM(e, name) e,
    RERANK_RULE_TABLE(RERANK_RULE_ENUM)
#undef RERANK_RULE_ENUM
        RERANK_N_RULES
} rerank_by;
const char *rerank_rule_name(rerank_by rule);
/* Its worth is a candidate's own, whatever the others say, and 1 at most. */
bool rerank_rule_tops(rerank_by rule);
bool rerank_rule_find(const char *name, rerank_by *ret);

typedef struct rerank_text { /* borrowed; NUL-terminated, too */
    const char *s;
    size_t len;
} rerank_text;

/* What a request asks, both NUL-terminated: the last message of the user's and all others, or its prompt and
 * "". Token ids ask nothing. */
typedef struct rerank_asked {
    buf question, context;
} rerank_asked;
int rerank_asked_init(rerank_asked *ret, const Shoal__V1__GenerateRequest *r); /* SHOAL_ENOMEM */
void rerank_asked_done(rerank_asked *a);

/* What some rules need; borrowed. */
typedef struct rerank_needs {
    const regex *pattern;        /* of RERANK_PATTERN */
    const verify_schema *schema; /* of RERANK_JSON; NULL: any object or array */
} rerank_needs;

/* worth[i] of texts[i]; needs may be NULL where the rule has none. SHOAL_ENOMEM leaves worth as it was. */
int rerank_by_rule(rerank_by rule, const rerank_asked *asked, const rerank_needs *needs,
                   const rerank_text *texts, size_t n, double *worth);
/* order[0] is the best; of equals the first. n is RERANK_CANDIDATES_MAX at most. */
void rerank_order(const double *worth, size_t n, size_t *order);

/* A candidate as it grows: what it says, and its calls of tools. A zeroed one has said nothing; feed it every
 * delta. */
#define RERANK_TOOLS_MAX 32
typedef struct rerank_tool {
    buf name, arguments;
} rerank_tool;
typedef struct rerank_reader {
    buf text, all;
    rerank_tool *tools; /* [RERANK_TOOLS_MAX] when there is one; more are not kept */
    size_t n_tools;
    bool failed; /* out of memory */
} rerank_reader;
void rerank_read(rerank_reader *r, const Shoal__V1__Delta *d);
/* All of it as one text, each call as {"name": ..., "arguments": ...} on a line of its own; good until the
 * next read. NULL: out of memory. */
const char *rerank_read_all(rerank_reader *r, size_t *ret_len);
void rerank_reader_done(rerank_reader *r);

#endif
