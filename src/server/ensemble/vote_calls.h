/* vote_calls.h: several models write one reply, token by token.
 *
 * A generation asked of a vote's name is begun at all its members (worker.proto, Vote). Each tells its
 * distribution over the next token; the weighted mean of all goes back to all, and each chooses from it with
 * the same sampler, form, seed and stop strings, so that all choose the same token. What the first member,
 * the leader, says goes out.
 *
 *      home-chat-s ──ballot──►┐        ┌──mean──► home-chat-s ──delta──► whoever asked
 *                             ├─ mean ─┤
 *      home-chat-m ──ballot──►┘        └──mean──► home-chat-m
 *
 * Members must have the same vocabulary; prompts are each one's own, by its template. The arithmetic mean is
 * of probabilities (a mixture), the geometric one of their logarithms (a product of experts: all must agree).
 *
 * A member that dies, or is silent VOTE_SILENCE_MS or eight steps longer than the others, leaves the vote,
 * and the weights of the others count for all; the answer says so (`wanted`, `why`). When it was the leader,
 * the others begin anew where the reply is, as a reply that moves does (calls/resume.h): no token is lost or
 * said twice. When nobody is left, all are waited for, to the deadline or VOTE_WAIT_MS, and go on together.
 *
 *     vote_member m[] = {{"home-chat-s", 1}, {"home-chat-m", 1}};
 *     vote_rule rules[] = {{.name = "home-vote", .members = m, .n_members = 2}};
 *     vote_calls_new(&c, env, inner, &(vote_options){.rules = rules, .n_rules = 1}, err); */
#ifndef ENSEMBLE_VOTE_CALLS_H
#define ENSEMBLE_VOTE_CALLS_H

#include "time/env.h"
#include "calls/calls.h"

#define VOTE_MEMBERS_MAX 8
#define VOTE_SILENCE_MS  250
#define VOTE_FIRST_MS    5000 /* the same before the first token: prompts take their time, */
#define VOTE_BEGIN_MS    1000 /* but who has not even begun has less */
#define VOTE_WAIT_MS     30000
#define VOTE_RETRY_MS    50

typedef struct vote_member {
    const char *model;
    double weight; /* over 0 */
} vote_member;

typedef struct vote_rule {
    const char *name; /* what requests call it; no model's name */
    const vote_member *members;
    size_t n_members; /* 2 to VOTE_MEMBERS_MAX */
    bool geometric;
} vote_rule;

typedef struct vote_options {
    const vote_rule *rules; /* borrowed */
    size_t n_rules;
    void *user;
    /* A member left a vote. May be NULL. */
    void (*left)(void *user, const char *name, const char *model);
} vote_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int vote_calls_new(calls **ret, const env *env_, calls *inner, const vote_options *opts, shoal_err *err);

#endif
