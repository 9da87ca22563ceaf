/* grammar_impl.h: a grammar's insides, for grammar.c, which makes masks, and grammar_budget.c, which takes
 * from them what the reply has no tokens left for. */
#ifndef GRAMMAR_IMPL_H
#define GRAMMAR_IMPL_H

#include "grammar/grammar.h"
#include "grammar/automaton/grammar_nfa.h"

/* The vocabulary as a prefix tree in depth-first order: the subtree of node i is i+1 .. skip-1, so a
 * walk is one pass over an array and a dead prefix is one jump. */
typedef struct trie_node {
    uint8_t byte;
    uint16_t depth;       /* 1 for first bytes */
    uint32_t skip;        /* the first node behind the subtree */
    uint32_t first_token; /* index into `tokens` of those that end here, then of those in the subtree */
    uint32_t n_tokens;
    /* The longest way down, this byte included, when only characters of the kind are on it; else 0. */
    uint8_t run[NFA_RUN_KINDS];
} trie_node;

struct grammar_vocab {
    const tokenizer *t;
    size_t n_vocab, n_nodes;
    trie_node *nodes;
    int32_t *tokens; /* ids sorted by their bytes */
    size_t n_tokens, max_depth;
    int32_t *specials; /* control tokens, some of which a form may hold */
    size_t n_specials;
};

enum { MARKERS_MAX = 32 };

typedef struct marker {
    int32_t id;
    uint8_t marks; /* MARK_ bits of the states that it may follow */
} marker;

struct grammar {
    const grammar_vocab *v;
    nfa *a;
    int config;
    marker markers[MARKERS_MAX]; /* control tokens of this form */
    size_t n_markers;
    int *path; /* configurations along the walk, [max_depth + 1] */
    size_t n_masks;
    uint64_t purse; /* work that is left */
    /* Tokens that the reply may still have, SIZE_MAX: no limit was told, or none that it can keep. */
    size_t n_left;
    size_t n_text;   /* tokens so far of the string that is being written */
    size_t text_max; /* of a string without a "format"; SIZE_MAX: no limit */
    shoal_err err;   /* sticky */
};

/* Where these bytes lead; NFA_DEAD where they are not allowed. */
int grammar_walk(const grammar *g, int config, const uint8_t *s, size_t n);

/* Of the tokens in `bits`, set logits[id] = -INFINITY for those after which the reply could not be brought
 * to its end within n_left tokens, as long as it can be now: text without a bound has to end, lists and
 * objects take no more members. What a value is stays open: of alternatives none is taken away. */
void grammar_keep_budget(grammar *g, const uint64_t *bits, float *logits, size_t n_vocab);

#endif
