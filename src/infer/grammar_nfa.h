/* grammar_nfa.h: a pushdown automaton over bytes, run as a lazily built deterministic one.
 *
 * States have edges: a byte range, nothing (epsilon), or a call of a rule that comes back to the edge's
 * target. A thread is (state, stack of return states); a configuration is the set of threads that a
 * prefix can be in. Configurations and stacks are interned, so that a configuration is an int, a step
 * is one table look-up once it was taken before, and masks can be kept per configuration.
 *
 * Built once, then stepped by one thread. Bounded: stacks NFA_DEPTH_MAX deep, NFA_CONFIGS_MAX
 * configurations; beyond that a step is dead, as if the bytes were not allowed. */
#ifndef INFER_GRAMMAR_NFA_H
#define INFER_GRAMMAR_NFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFA_DEPTH_MAX   96
#define NFA_CONFIGS_MAX 32768
#define NFA_STATES_MAX  200000
#define NFA_DEAD        (-1)

typedef struct nfa nfa;

nfa *nfa_new(void); /* NULL when out of memory */
void nfa_free(nfa *a);

/* ---- building: all return a state, or NFA_DEAD when memory or NFA_STATES_MAX ran out (sticky) --- */
int nfa_state(nfa *a);
void nfa_epsilon(nfa *a, int from, int to);
int nfa_range(nfa *a, int from, uint8_t lo, uint8_t hi); /* to a new state */
void nfa_range_to(nfa *a, int from, uint8_t lo, uint8_t hi, int to);
int nfa_bytes(nfa *a, int from, const char *s, size_t n); /* a literal */
/* The same, along the edges of literals that were added from here before: for sets of values. Only from
 * a state that nothing but nfa_literal gives edges to. */
int nfa_literal(nfa *a, int from, const char *s, size_t n);
/* A call of the rule that begins at rule_start; comes back to the new state. A rule ends in a state
 * given to nfa_return. */
int nfa_call(nfa *a, int from, int rule_start);
void nfa_return(nfa *a, int state);
bool nfa_failed(const nfa *a);

/* ---- running --------------------------------------------------------------------------------- */
/* The configuration before any byte, NFA_DEAD when no document is possible. */
int nfa_begin(nfa *a, int start);
int nfa_step(nfa *a, int config, uint8_t byte);
bool nfa_accepts(const nfa *a, int config); /* the bytes so far are a whole document */
/* A slot of the caller's per configuration, NULL at first; freed with free() by nfa_free. */
void **nfa_slot(nfa *a, int config);

#endif
