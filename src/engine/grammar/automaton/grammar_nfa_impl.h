/* grammar_nfa_impl.h: an automaton's insides, for grammar_nfa.c, which builds it and drops what leads
 * nowhere, and grammar_nfa_run.c, which steps sets of threads over it. */
#ifndef GRAMMAR_AUTOMATON_GRAMMAR_NFA_IMPL_H
#define GRAMMAR_AUTOMATON_GRAMMAR_NFA_IMPL_H

#include "grammar/automaton/grammar_nfa.h"

#include <stdlib.h>

enum { EDGE_RANGE, EDGE_EPSILON, EDGE_CALL };
#define SET_INDEX (4 * NFA_THREADS_MAX)
#define NFA_TWINS 64

typedef struct nfa_edge {
    uint8_t kind, lo, hi;
    int to;   /* EDGE_CALL: where the call comes back to */
    int rule; /* EDGE_CALL: where it goes */
    int next; /* of the same state, -1 at the end */
} nfa_edge;

typedef struct nfa_node {
    int edges;
    uint8_t marks;
    bool returns;
    bool reads;        /* has an edge that reads a byte */
    bool ends;         /* returns and does nothing else: calls that come back here need no stack */
    uint16_t distance; /* bytes to the end of its rule, NFA_FAR at most */
    uint16_t room;     /* nfa_chain, at most UINT16_MAX */
    int first;         /* likewise; -1: it is in no chain */
} nfa_node;

typedef struct nfa_stack { /* stack 0 is the empty one */
    int state, parent, depth;
    unsigned distance; /* to the end of the document, from where the call comes back to */
} nfa_stack;

typedef struct nfa_thread {
    int state, stack;
} nfa_thread;

typedef struct nfa_config {
    size_t first, n; /* its threads, sorted */
    bool accepts, reads;
    uint8_t marks;
    uint8_t cut; /* an nfa_trouble */
    unsigned distance;
    int8_t run[NFA_RUN_KINDS]; /* nfa_run; -1: not known yet */
    int32_t *steps;            /* [256], made at the first step */
    /* Bytes at which the threads' ranges begin or have ended: between two, steps are alike. */
    uint64_t starts[4];
    void *slot;
} nfa_config;

struct nfa {
    bool failed, lacks_memory;
    nfa_node *nodes;
    size_t n_nodes, cap_nodes;
    unsigned detour;
    nfa_edge *edges;
    size_t n_edges, cap_edges;
    nfa_stack *stacks;
    size_t n_stacks, cap_stacks;
    int *stack_index; /* open addressing over (state, parent) */
    size_t stack_index_cap;
    nfa_thread *threads;
    size_t n_threads, cap_threads;
    nfa_config *configs;
    size_t n_configs, cap_configs;
    int *config_index;
    size_t config_index_cap;
    nfa_thread *set; /* scratch: the closure being built, [NFA_THREADS_MAX] */
    int *set_index;  /* [SET_INDEX], open addressing over set; valid where set_stamp is the current one */
    uint32_t *set_stamp, stamp;
    int twins[NFA_TWINS]; /* configurations that nfa_twin gave back, -1: none */
    uint64_t work_left;
    uint8_t cut; /* of the set being built */
    uint8_t stopped;
};

/* Make room for one more element of `size` bytes; false when out of memory. */
static inline bool grow(void *array, size_t *cap, size_t n, size_t size)
{
    if (n < *cap) return true;
    size_t want = *cap ? *cap * 2 : 64;
    void *p = realloc(*(void **)array, want * size);
    if (!p) return false;
    *(void **)array = p;
    *cap = want;
    return true;
}

/* Forget all configurations and their threads. */
void nfa_free_configs(nfa *a);

#endif
