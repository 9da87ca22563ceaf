/* rerank_run.h: one request's candidates, from asking for them to the order of the best; inside rerank_*.c.
 *
 * A run is shared by the calls of a request's choices, and dies with the last of them. It knows nothing of
 * them but that somebody is told when it is decided.
 *
 *     gathers ── all have ended, or time is short ──► weighs ── scores, or time is up ──► decided
 *
 * Loop thread. */
#ifndef ENSEMBLE_RERANK_RUN_H
#define ENSEMBLE_RERANK_RUN_H

#include "calls/decorator.h"
#include "ensemble/rerank_calls.h"
#include "ensemble/response_buffer.h"

typedef struct rerank_calls {
    decorator_calls base;
    rerank_options o;
    list_node runs;
} rerank_calls;

typedef struct rerank_run rerank_run;

typedef struct candidate {
    rerank_run *r;
    const rerank_member *m;
    model_call *inner; /* NULL: it has ended, or was dismissed */
    response_buffer kept;
    rerank_reader reader;
    rerank_text text;     /* when it is whole */
    uint32_t n_generated; /* as its end says */
} candidate;

struct rerank_run {
    list_node link; /* in the row of runs */
    rerank_calls *b;
    const rerank_rule *rule;
    call_order *o;                   /* of the call that began it */
    call_terms terms;                /* on which candidates are asked */
    Shoal__V1__GenerateRequest *req; /* as all its choices have it: theirs are choice 0's */
    buf key;                         /* packed */
    rerank_asked asked;
    size_t n_choices;
    enum { RERANK_GATHERS, RERANK_IS_LATE, RERANK_WEIGHS, RERANK_DECIDED } at;
    bool patient; /* nobody was there: all are waited for */
    candidate c[RERANK_CANDIDATES_MAX];
    size_t n, n_asked;
    bool is_sure;                                 /* no candidate that is missing could be chosen */
    size_t whole[RERANK_CANDIDATES_MAX], n_whole; /* numbers of those that take part */
    double worth[RERANK_CANDIDATES_MAX];          /* of these, */
    size_t order[RERANK_CANDIDATES_MAX];          /* whose best is whole[order[0]] */
    bool weighed;
    model_call *scorer;
    env_timer *timer;
    void *user;
    void (*decided)(void *user); /* from an inner call's end or the timer */
    char trace[1024], why[320];
};

/* All candidates are asked. Takes req, whatever comes of it; NULL: out of memory. */
rerank_run *rerank_run_new(rerank_calls *b, const rerank_rule *rule, call_order *o, const call_terms *t,
                           Shoal__V1__GenerateRequest *req, size_t n_choices);
void rerank_run_free(rerank_run *r);
/* When it is decided: the candidate of a choice; NULL: none, and *ret says why. */
candidate *rerank_run_choice(rerank_run *r, size_t choice, call_result *ret);
/* Tokens that were generated for candidates that no choice is. */
uint32_t rerank_run_unheard(rerank_run *r);
/* Milliseconds to the deadline, less a margin for the answer to get out; a lot without one. */
uint64_t rerank_run_left_ms(const rerank_run *r);

#endif
