/* grammar_dfa.h: regular sets of texts, over code points: what "pattern", "format" and bounds of numbers
 * become before they are written into the automaton of a reply (grammar_nfa.h).
 *
 * An fsm is built state by state and may be nondeterministic; fsm_determine makes a dfa of it, which can be
 * intersected, subtracted and asked. Every state of a dfa can still reach an end. */
#ifndef GRAMMAR_AUTOMATON_GRAMMAR_DFA_H
#define GRAMMAR_AUTOMATON_GRAMMAR_DFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CODE_MAX       0x10FFFFu
#define DFA_STATES_MAX 40000
#define FSM_STATES_MAX 60000

typedef struct fsm fsm;
fsm *fsm_new(void); /* state 0 is the start; NULL when out of memory */
void fsm_free(fsm *f);
int fsm_state(fsm *f); /* failures (memory, FSM_STATES_MAX) stick and come out of fsm_determine */
int fsm_n_states(const fsm *f);
/* An edge that reads a code point of lo..hi; nothing when lo > hi. */
void fsm_range(fsm *f, int from, uint32_t lo, uint32_t hi, int to);
typedef enum { FSM_ALWAYS, FSM_AT_BEGIN, FSM_AT_END } fsm_when; /* a jump that reads nothing: free, ^, $ */
void fsm_jump(fsm *f, int from, fsm_when when, int to);
/* Texts may end here. */
void fsm_accept(fsm *f, int state);

typedef struct dfa_edge {
    uint32_t lo, hi;
    int to;
} dfa_edge;

/* State 0 is the start. Edges of state i are edges[first[i]] .. edges[first[i + 1] - 1], sorted, apart from
 * each other, neighbours that lead to the same state joined. n 0: no text at all. */
typedef struct dfa {
    int n;
    int *first;
    bool *accepts;
    dfa_edge *edges;
} dfa;

/* Accepts NULL. */
void dfa_free(dfa *d);
/* Take `work` of *left; false, and nothing is left, when there is not more than that. */
bool dfa_spend(uint64_t *left, uint64_t work);

/* *work counts down over all calls; at 0, or over DFA_STATES_MAX states, they fail with SHOAL_ELIMIT. */
int fsm_determine(dfa **ret, const fsm *f, uint64_t *work, shoal_err *err);
/* The texts of a that are (AND) or are not (MINUS) in b. */
typedef enum { DFA_AND, DFA_MINUS } dfa_op;
int dfa_combine(dfa **ret, const dfa *a, const dfa *b, dfa_op op, uint64_t *work, shoal_err *err);
/* The texts of least..most code points; most < 0: any number. */
int dfa_length(dfa **ret, int64_t least, int64_t most, uint64_t *work, shoal_err *err);
/* Some text has this many code points or more (there may be no memory to tell: then it is said to). */
bool dfa_is_long(const dfa *d, int n);
bool dfa_matches(const dfa *d, const char *utf8, size_t n);

#endif
