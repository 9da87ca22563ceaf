/* tok_trie.c: building the trie from sorted keys, a level at a time; see tok_trie.h. */
#include "tokenizer/tok_trie.h"

#include <stdlib.h>
#include <string.h>

#include "shoal.h"

enum { MAX_NODES = 64 << 20 };

/* A node under construction: keys[lo..hi) share its first `depth` bytes. */
typedef struct span {
    uint32_t lo, hi, depth;
} span;

static int by_text(const void *a, const void *b)
{
    const trie_key *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? memcmp(x->text, y->text, n) : 0;
    if (c) return c;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static size_t shared(const trie_key *a, const trie_key *b)
{
    size_t n = a->len < b->len ? a->len : b->len, i = 0;
    while (i < n && a->text[i] == b->text[i]) i++;
    return i;
}

static size_t count_nodes(const trie_key *keys, size_t n)
{
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) nodes += keys[i].len - (i ? shared(&keys[i - 1], &keys[i]) : 0);
    return nodes;
}

/* The children of node `at` go behind the last node. */
static void spread(tok_trie *t, const trie_key *keys, span *spans, size_t at)
{
    span s = spans[at];
    t->kids[at] = (uint32_t)t->n;
    while (s.lo < s.hi && keys[s.lo].len == s.depth) { /* the node's own text, the lowest id first */
        if (t->id[at] < 0 && s.depth) t->id[at] = keys[s.lo].id;
        s.lo++;
    }
    while (s.lo < s.hi) {
        uint8_t c = (uint8_t)keys[s.lo].text[s.depth];
        uint32_t hi = s.lo + 1;
        while (hi < s.hi && (uint8_t)keys[hi].text[s.depth] == c) hi++;
        t->label[t->n] = c;
        t->id[t->n] = -1;
        spans[t->n++] = (span){s.lo, hi, s.depth + 1};
        s.lo = hi;
    }
}

int tok_trie_build(tok_trie *t, trie_key *keys, size_t n)
{
    if (n) qsort(keys, n, sizeof *keys, by_text);
    size_t nodes = count_nodes(keys, n);
    if (nodes > MAX_NODES || n > UINT32_MAX) return SHOAL_ELIMIT;
    span *spans = malloc(nodes * sizeof *spans);
    *t = (tok_trie){.label = calloc(nodes, 1),
                    .kids = calloc(nodes + 1, sizeof *t->kids),
                    .id = calloc(nodes, sizeof *t->id)};
    if (!spans || !t->label || !t->kids || !t->id) {
        free(spans);
        tok_trie_done(t);
        return SHOAL_ENOMEM;
    }
    spans[0] = (span){0, (uint32_t)n, 0};
    t->id[0] = -1;
    t->n = 1;
    for (size_t at = 0; at < t->n; at++) spread(t, keys, spans, at);
    t->kids[t->n] = (uint32_t)t->n;
    free(spans);
    return 0;
}

void tok_trie_done(tok_trie *t)
{
    free(t->label);
    free(t->kids);
    free(t->id);
    memset(t, 0, sizeof *t);
}
