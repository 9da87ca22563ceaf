/* find.h: a question on its way through a collection: embedded by the collection's model, searched in a
 * thread, and put in a better order by a cross-encoder if one is named. Models are asked through the calls
 * seam.
 *
 * Where the model that embeds does not answer, or the vectors do not fit into memory, what the words alone
 * find is the answer, and `degraded` says so. Loop thread. */
#ifndef RETRIEVE_FIND_H
#define RETRIEVE_FIND_H

#include <jansson.h>

#include "calls/calls.h"
#include "retrieve/executor.h"
#include "retrieve/search.h"

enum { FIND_TEXT_MAX = 16384, FIND_RERANK_MAX = 50 };

/* X(enum, word) */
#define FIND_MODE_TABLE(X)    \
    X(FIND_HYBRID, "hybrid")  \
    X(FIND_MEANING, "vector") \
    X(FIND_WORDS, "text")
typedef enum find_mode {
#define FIND_ENUM(e, word) e,
    FIND_MODE_TABLE(FIND_ENUM)
#undef FIND_ENUM
} find_mode;
bool find_mode_parse(const char *word, find_mode *ret);

typedef struct find_result {
    int status;                /* 0 or SHOAL_E... */
    const char *message;       /* one sentence */
    const call_result *failed; /* the model call that is to blame, or NULL */
    const search_hit *v;       /* best first; found.score is the reranker's where there was one */
    size_t n;
    const char *degraded; /* why this is less than was asked for; NULL: it is not */
} find_result;

typedef struct find find;

typedef struct find_ask {
    executor *executor;
    calls *calls;
    const call_context *ctx;
    const char *owner; /* executor_job.owner; copied */
    const char *collection, *text;
    find_mode mode;
    const json_t *filters; /* NULL: none; looked at before find_start returns */
    const char *rerank;    /* the model that orders the best; NULL: none */
    size_t k;              /* 1 to SEARCH_K_MAX */
    void *user;
    void (*done)(void *user, const find_result *r); /* once, from the loop; everything dies after it */
} find_ask;

/* Strings are copied. SHOAL_EINVALID: the filters are none; SHOAL_ENOMEM. */
int find_start(find **ret, const find_ask *ask, shoal_err *err);
/* No done comes any more. Accepts NULL. */
void find_cancel(find *f);

#endif
