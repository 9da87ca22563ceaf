/* rerank_calls.h: several candidates are written, the best one goes out.
 *
 * A generation asked of a rerank's name is asked of its members, all at once: each writes one candidate or
 * several, with seeds of their own. What they say is kept (response_buffer.h) until all are there; then each is worth
 * something, and the best goes out, of equals the first. Three can say what a candidate is worth:
 *
 *     a cross-encoder    how well it answers the question (Classify over pairs)
 *     a decoder          how likely it finds it: the mean log-probability of its tokens (Likelihood)
 *     a rule             of rerank.h
 *
 *      home-chat-s ──► "The lamp is on."   -0.41 ┐
 *      home-chat-s ──► "The lamp."         -1.20 ├─ the best ──► whoever asked
 *      home-chat-m ──► "The lamp is on."   -0.41 ┘
 *
 * The first candidate of a member has the request's own seed, so it is what the model alone would say; the
 * others' follow from it. Where nothing is drawn (temperature 0) a member writes one candidate, as all would
 * be the same. The same request with the same seed gets the same answer while the same members live.
 *
 * Where a rule tells how good an answer can be at best (words, names, json, pattern), nobody is waited for
 * any more once a candidate is that good and those before it are not. With `in_turn` a member is not even
 * asked before: the small one answers most requests, and the larger one those in which it left something out.
 *
 * The n choices of one request are the n best candidates: their calls, which differ in `choice` and seed
 * alone, share one run. If there are fewer, more are drawn where that gives others.
 *
 * A member that fails, or is not ready when the deadline leaves just the time to weigh the others, is left
 * out; when the time runs out before they are weighed, or whoever weighs fails, the first one goes out. The
 * answer says so (`wanted`, `why`). When all fail it is the first one's failure. Other tasks are the first
 * member's.
 *
 * Done.n_generated of the first choice counts the tokens of the candidates that nobody hears, too: they were
 * generated for this request.
 *
 *     rerank_member m[] = {{"home-chat-s", 3, 0.8}, {"home-chat-m", 1, -1}};
 *     rerank_rule rules[] = {{.name = "home-best", .members = m, .n_members = 2, .log_prob = "home-chat-m"}};
 *     rerank_calls_new(&c, env, inner, &(rerank_options){.rules = rules, .n_rules = 1}, err);
 *
 * After: X. Wang et al., "Self-Consistency Improves Chain of Thought Reasoning", 2022 (the rule majority). */
#ifndef ENSEMBLE_RERANK_CALLS_H
#define ENSEMBLE_RERANK_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "ensemble/rerank.h"

#define RERANK_HOLD_MS 1000 /* how long one of several models that has no replica is waited for */

typedef struct rerank_member {
    const char *model;
    unsigned n;         /* candidates, 1 or more */
    double temperature; /* < 0: the request's */
} rerank_member;

typedef struct rerank_rule {
    const char *name; /* what requests call it; no model's name */
    const rerank_member *members;
    size_t n_members;             /* RERANK_CANDIDATES_MAX candidates at most */
    const char *model, *log_prob; /* who weighs: a cross-encoder, or a decoder; both NULL: the rule */
    rerank_by by;
    rerank_needs needs;
    bool in_turn; /* of a rule with a best: one member after the other */
} rerank_rule;

typedef struct rerank_options {
    const rerank_rule *rules; /* borrowed */
    size_t n_rules;
    void *user;
    /* It is decided: whose candidate is the best. May be NULL. */
    void (*chose)(void *user, const char *name, const char *model);
} rerank_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int rerank_calls_new(calls **ret, const env *env_, calls *inner, const rerank_options *opts, shoal_err *err);

#endif
