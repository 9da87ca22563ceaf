/* grammar_nfa.h: a pushdown automaton over bytes, run as a lazily built deterministic one.
 *
 * States have edges: a byte range, nothing (epsilon), or a call of a rule that comes back to the edge's
 * target. A thread is (state, stack of return states); a configuration is the set of threads that a
 * prefix can be in. Configurations and stacks are interned, so that a configuration is an int, a step
 * is one table look-up once it was taken before, and masks can be kept per configuration.
 *
 * Built, sealed, then stepped by one thread. Nothing is narrowed in silence: where a stack would be deeper
 * than NFA_DEPTH_MAX or a configuration wider than NFA_THREADS_MAX, the configuration and all that follow
 * it are `cut`, and nfa_cut says why. Work is counted (edges looked at) and stops at nfa_allow's limit. */
#ifndef GRAMMAR_AUTOMATON_GRAMMAR_NFA_H
#define GRAMMAR_AUTOMATON_GRAMMAR_NFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFA_DEPTH_MAX   200
#define NFA_THREADS_MAX 4096
#define NFA_CONFIGS_MAX 16384
#define NFA_STATES_MAX  400000
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
/* Where the same call from there ends already, as nfa_literal shares what begins alike. */
int nfa_call_shared(nfa *a, int from, int rule_start);
void nfa_call_to(nfa *a, int from, int rule_start, int to);
void nfa_return(nfa *a, int state);
/* In a state marked so, more can be read and a text is better ended: nfa_reads does not count it. */
#define NFA_IDLE 0x80
/* In a state marked so, what comes next need not come: more of a string, or a member that may be left out. A
 * configuration has the mark of the states that its calls come back to, too. */
#define NFA_OPTIONAL 0x40
/* The string has a "format": grammar_budget.c ends it after FORMAT_TOKENS. */
#define NFA_FORMAT 0x20
/* The caller's bits, of all states that a configuration is in: which control tokens may begin here. */
void nfa_mark(nfa *a, int state, uint8_t marks);
/* The next `room` states behind this one are its like: each has the same edges, to the next one in the
 * place of its next. `first` stands for all of them. */
void nfa_chain(nfa *a, int state, int first, int room);
bool nfa_failed(const nfa *a);
bool nfa_lacks_memory(const nfa *a); /* why it failed, or why a step was dead */

/* End of building: drops every edge from which a rule's end cannot be reached, so that what can be begun
 * can be finished. False when out of memory. */
bool nfa_seal(nfa *a);

/* ---- running --------------------------------------------------------------------------------- */

typedef enum { NFA_FINE, NFA_DEEP, NFA_WIDE, NFA_WORK, NFA_NOMEM } nfa_trouble;

/* The configuration before any byte, NFA_DEAD when no document is possible. */
int nfa_begin(nfa *a, int start);
int nfa_step(nfa *a, int config, uint8_t byte);
bool nfa_accepts(const nfa *a, int config); /* the bytes so far are a whole document */
bool nfa_reads(const nfa *a, int config);   /* more bytes can follow */
uint8_t nfa_marks(const nfa *a, int config);
/* Bytes of the shortest text that makes a whole document of this; NFA_FAR: that many or more. */
#define NFA_FAR 4095
unsigned nfa_distance(const nfa *a, int config);
/* The first byte of such a text; -1 when it is too far. */
int nfa_byte_to_end(const nfa *a, int config);
/* How many bytes farther from the end one byte can lead: a comma by the shortest item, what looked like a
 * marker by all of it. */
unsigned nfa_detour(const nfa *a);
nfa_trouble nfa_cut(const nfa *a, int config); /* NFA_DEEP or NFA_WIDE: something was left out */

/* Let nfa_step do this much work from now on. */
void nfa_allow(nfa *a, uint64_t work);
uint64_t nfa_left(const nfa *a);
nfa_trouble nfa_stopped(const nfa *a); /* NFA_WORK or NFA_NOMEM: steps are dead since (sticky) */

/* How many characters of a kind can be read from here whichever they are, at most NFA_RUN_MAX. */
#define NFA_RUN_MAX 64
typedef enum {
    NFA_WORD,  /* letters and digits of ASCII */
    NFA_PLAIN, /* ASCII that stands for itself in a JSON string */
    NFA_TEXT,  /* these, and those of several bytes in UTF-8 */
    NFA_RUN_KINDS
} nfa_run_kind;
int nfa_run(nfa *a, int config, nfa_run_kind kind);
/* Of one byte: NFA_TEXT is NFA_PLAIN here. */
bool nfa_run_has(nfa_run_kind kind, uint8_t byte);

/* A configuration from which the same texts of up to n bytes lead on: one that was given back before, else
 * itself. */
int nfa_twin(nfa *a, int config, int n);

/* A slot of the caller's per configuration, NULL at first; freed with free() by nfa_free. */
void **nfa_slot(nfa *a, int config);
/* True when so much is kept that nfa_forget is due. */
bool nfa_is_full(const nfa *a);
/* Forget all but this configuration, which gets a new number: the one returned. */
int nfa_forget(nfa *a, int config);

#endif
