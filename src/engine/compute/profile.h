/* profile.h: where the time of a network's steps goes: each nanosecond belongs to one operation.
 *
 *     profile *p;
 *     profile_new(&p, err);
 *     engine_new(&e, m, &(engine_options){.profile = p}, err);
 *     profile_reset(p);  profile_enable(p, true);
 *     ... a request ...
 *     for (size_t i = 0; i < profile_count(p); i++) ... profile_at(p, i)->ns ...
 *
 * Member 0 of the team says which operation it is about to do; the time since it last said so belongs to the one before.
 * So operations add up to the steps, and what member 0 waits for others is an operation, too. Others' times are not
 * taken: members share each operation. Without a profile an operation costs one branch.
 *
 * Written by the engine's thread while a step runs; read, reset and enabled by others between requests. */
#ifndef COMPUTE_PROFILE_H
#define COMPUTE_PROFILE_H

#include "compute/compute.h"

/* X(NAME, word, what it is) */
#define PROFILE_OPS(X)                                                                         \
    X(MATMUL, "matmul", "a product with a weight matrix")                                      \
    X(ATTENTION, "attention", "scores, softmax and values")                                    \
    X(QUANTISE, "quantise", "activations into the form that a matrix wants")                   \
    X(ROPE, "rope and store", "norms and rotation of q and k, keys and values into the cache") \
    X(NORM, "norm", "norms of rows")                                                           \
    X(ACTIVATE, "activation", "the feed-forward network's activation and gate")                \
    X(ADD, "add", "a branch's rows added to the stream")                                       \
    X(EMBED, "embed", "rows of the embeddings")                                                \
    X(CONVOLVE, "convolution", "short convolutions")                                           \
    X(ROUTE, "route", "experts chosen, rows gathered and added up")                            \
    X(SAMPLE, "sample", "logits masked, and a token drawn")                                    \
    X(WAIT, "wait", "member 0 waits for other members")                                        \
    X(OTHER, "other", "a step's begin and end, and what none of these is")                     \
    X(ENGINE, "engine", "between two steps: planning, events, locks")
typedef enum profile_op {
#define PROFILE_OP_ENUM(name, word, about) PROFILE_##name,
    PROFILE_OPS(PROFILE_OP_ENUM)
#undef PROFILE_OP_ENUM
        PROFILE_N_OPS
} profile_op;
extern const char *const profile_op_words[PROFILE_N_OPS];
extern const char *const profile_op_abouts[PROFILE_N_OPS];

typedef enum profile_phase {
    PROFILE_PREFILL,
    PROFILE_DECODE,
    PROFILE_ENCODE,
    PROFILE_N_PHASES
} profile_phase;

enum { PROFILE_NO_LAYER = -1 }; /* embeddings, the head, and what is around the layers */

typedef struct profile_entry {
    profile_phase phase;
    int layer; /* or PROFILE_NO_LAYER */
    profile_op op;
    const void *key;   /* tells operations of one kind apart, such as the matrix */
    char name[64];     /* of a matrix: "attn_q+attn_k+attn_v"; "" */
    dtype type;        /* of a matrix, and of what is quantised */
    size_t rows, cols; /* of a matrix; 0: none */
    uint64_t ns;
    size_t n_calls;
    double bytes, multiply_adds; /* weights, keys and values that it had to read; products */
} profile_entry;

typedef struct profile profile;

int profile_new(profile **ret, shoal_err *err);
void profile_free(profile *p); /* NULL is fine */
void profile_enable(profile *p, bool on);
bool profile_is_on(const profile *p);
void profile_reset(profile *p);

size_t profile_count(const profile *p); /* entries, in the order in which they came first */
const profile_entry *profile_at(const profile *p, size_t i);
/* Steps of a phase, their tokens, and the time of all its entries. */
typedef struct profile_total {
    size_t n_steps, n_tokens;
    uint64_t ns, busy_ns; /* busy: of it, how long member 0 had a core; less where other programs had it */
} profile_total;
profile_total profile_total_of(const profile *p, profile_phase phase);
bool profile_lost(const profile *p); /* memory was out: some operations are in "other" */

/* ---- who computes ---------------------------------------------------------------------------------- */

/* A step begins; what passed since the last one ended is the engine's. p NULL or off: nothing. */
void profile_begin(profile *p, team *t, profile_phase phase, size_t n_tokens);
void profile_end(profile *p, team *t);
/* From here on: which layer, which operation. The entry, whose members the caller sets or adds to. */
void profile_set_layer(profile *p, int layer);
profile_entry *profile_to(profile *p, profile_op op, const void *key);
/* The same operation goes on after another one: not a further call. */
void profile_back_to(profile *p, profile_op op, const void *key);
/* A product with w[rows][cols] of n_tokens rows, of which each weight is read once. */
profile_entry *profile_to_matmul(profile *p, const void *key, const wmat *w, size_t n_tokens);
/* What runs now is interrupted by a wait, and goes on. */
profile_entry *profile_wait(profile *p);
void profile_resume(profile *p, profile_entry *e);

/* compute.h's team: its profile for this run, of member 0 alone; NULL: none. */
void team_set_profile(team *t, profile *p);
profile *member_profile(const team_member *m);

#endif
