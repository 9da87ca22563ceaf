/* tok_trie.h: all tokens that begin at a place of a text, found in one walk.
 *
 *     for (size_t node = 0, at = begin; at < len && (node = tok_trie_step(t, node, text[at])); at++)
 *         if (t->id[node] >= 0) ... text[begin..at] is token t->id[node]
 *
 * Nodes lie in breadth-first order, the children of one side by side in the order of their labels, so a node
 * is nine bytes and a step a short search. The root is node 0, and 0 is also "no such child". Immutable. */
#ifndef TOKENIZER_TOK_TRIE_H
#define TOKENIZER_TOK_TRIE_H

#include <stddef.h>
#include <stdint.h>

typedef struct trie_key {
    const char *text; /* borrowed while building */
    uint32_t len;
    int32_t id;
} trie_key;

typedef struct tok_trie {
    size_t n;
    uint8_t *label; /* [n] */
    uint32_t *kids; /* [n + 1]: the first child; the next node's is the end */
    int32_t *id;    /* [n]: -1 when no token ends here */
} tok_trie;

/* Sorts keys. Of equal texts the lowest id stays; empty texts are left out. 0, SHOAL_ENOMEM, or SHOAL_ELIMIT
 * over 64 million nodes; a zeroed trie is an empty one. */
int tok_trie_build(tok_trie *t, trie_key *keys, size_t n);
void tok_trie_done(tok_trie *t);

static inline size_t tok_trie_step(const tok_trie *t, size_t node, uint8_t c)
{
    if (t->n == 0) return 0;
    size_t lo = t->kids[node], hi = t->kids[node + 1];
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->label[mid] == c) return mid;
        if (t->label[mid] < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

#endif
