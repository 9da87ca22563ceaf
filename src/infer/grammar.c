#include "infer/grammar.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "infer/grammar_nfa.h"
#include "infer/grammar_schema.h"

/* The vocabulary as a prefix tree in depth-first order: the subtree of node i is i+1 .. skip-1, so a
 * walk is one pass over an array and a dead prefix is one jump. */
typedef struct trie_node {
    uint8_t byte;
    uint16_t depth;      /* 1 for first bytes */
    uint32_t skip;       /* the first node behind the subtree */
    int32_t first_token; /* index into `tokens`, -1: no token ends here */
    uint32_t n_tokens;
} trie_node;

struct grammar_vocab {
    const tokenizer *t;
    size_t n_vocab, n_nodes;
    trie_node *nodes;
    int32_t *tokens; /* ids sorted by their bytes */
    size_t n_tokens, max_depth;
};

struct grammar {
    const grammar_vocab *v;
    nfa *a;
    int config;
    int *path; /* configurations along the walk, [max_depth + 1] */
};

typedef struct sort_item {
    const uint8_t *s;
    size_t n;
    int32_t id;
} sort_item;

static int compare_items(const void *x, const void *y)
{
    const sort_item *a = x, *b = y;
    int c = memcmp(a->s, b->s, a->n < b->n ? a->n : b->n);
    if (c != 0) return c;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static size_t common_prefix(const sort_item *a, const sort_item *b)
{
    size_t n = a->n < b->n ? a->n : b->n, i = 0;
    while (i < n && a->s[i] == b->s[i]) i++;
    return i;
}

/* Nodes of sorted items; open[d] is the node at depth d on the current path. */
static int build_trie(grammar_vocab *v, const sort_item *items, size_t n, shoal_err *err)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += items[i].n - (i ? common_prefix(&items[i - 1], &items[i]) : 0);
        if (items[i].n > v->max_depth) v->max_depth = items[i].n;
    }
    v->nodes = calloc(total ? total : 1, sizeof *v->nodes);
    v->tokens = calloc(n ? n : 1, sizeof *v->tokens);
    uint32_t *open = calloc(v->max_depth + 1, sizeof *open);
    if (!v->nodes || !v->tokens || !open) {
        free(open);
        return err_nomem(err);
    }
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        size_t keep = i ? common_prefix(&items[i - 1], &items[i]) : 0;
        for (; depth > keep; depth--) v->nodes[open[depth]].skip = (uint32_t)v->n_nodes;
        for (; depth < items[i].n; v->n_nodes++) {
            open[depth + 1] = (uint32_t)v->n_nodes;
            v->nodes[v->n_nodes] =
                (trie_node){.byte = items[i].s[depth], .depth = (uint16_t)(depth + 1), .first_token = -1};
            depth++;
        }
        trie_node *end = &v->nodes[open[depth]];
        if (end->first_token < 0) end->first_token = (int32_t)v->n_tokens;
        end->n_tokens++;
        v->tokens[v->n_tokens++] = items[i].id;
    }
    for (; depth > 0; depth--) v->nodes[open[depth]].skip = (uint32_t)v->n_nodes;
    free(open);
    return 0;
}

int grammar_vocab_new(grammar_vocab **ret, const tokenizer *t, shoal_err *err)
{
    grammar_vocab *v = calloc(1, sizeof *v);
    size_t n_vocab = tokenizer_vocab_size(t), n = 0;
    sort_item *items = calloc(n_vocab ? n_vocab : 1, sizeof *items);
    int rc = v && items ? 0 : err_nomem(err);
    if (rc != 0) goto out;
    v->t = t;
    v->n_vocab = n_vocab;
    for (size_t id = 0; id < n_vocab; id++) {
        size_t len = 0;
        bool special = false;
        const char *s = tokenizer_bytes(t, (int32_t)id, &len, &special);
        if (s && len > 0 && len < UINT16_MAX && !special)
            items[n++] = (sort_item){.s = (const uint8_t *)s, .n = len, .id = (int32_t)id};
    }
    qsort(items, n, sizeof *items, compare_items);
    rc = build_trie(v, items, n, err);
out:
    free(items);
    if (rc == 0)
        *ret = v;
    else
        grammar_vocab_free(v);
    return rc;
}

void grammar_vocab_free(grammar_vocab *v)
{
    if (!v) return;
    free(v->nodes);
    free(v->tokens);
    free(v);
}

int grammar_new(grammar **ret, const grammar_vocab *v, const char *schema, shoal_err *err)
{
    grammar *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    int start, rc = 0;
    g->v = v;
    g->a = nfa_new();
    g->path = calloc(v->max_depth + 1, sizeof *g->path);
    if (!g->a || !g->path) rc = err_nomem(err);
    if (rc == 0) rc = schema_compile(g->a, schema, &start, err);
    if (rc == 0) {
        g->config = nfa_begin(g->a, start);
        if (g->config == NFA_DEAD)
            rc = err_set(err, SHOAL_EINVALID, "json_schema: no document can satisfy it");
    }
    if (rc == 0)
        *ret = g;
    else
        grammar_free(g);
    return rc;
}

void grammar_free(grammar *g)
{
    if (!g) return;
    nfa_free(g->a);
    free(g->path);
    free(g);
}

/* One bit a token: may it come next in this configuration? Kept with the configuration, since a reply
 * spends most of its steps in few of them (inside a string, inside a number). */
static const uint64_t *allowed_tokens(const grammar *g)
{
    void **slot = nfa_slot(g->a, g->config);
    if (*slot) return *slot;
    const grammar_vocab *v = g->v;
    uint64_t *bits = calloc(v->n_vocab / 64 + 1, sizeof *bits);
    if (!bits) return NULL;
    g->path[0] = g->config;
    for (uint32_t i = 0; i < v->n_nodes;) {
        const trie_node *node = &v->nodes[i];
        int config = nfa_step(g->a, g->path[node->depth - 1], node->byte);
        if (config == NFA_DEAD) {
            i = node->skip;
            continue;
        }
        g->path[node->depth] = config;
        for (uint32_t k = 0; k < node->n_tokens; k++) {
            int32_t id = v->tokens[(uint32_t)node->first_token + k];
            bits[id / 64] |= (uint64_t)1 << (id % 64);
        }
        i++;
    }
    *nfa_slot(g->a, g->config) = bits; /* stepping may have moved the configurations */
    return bits;
}

void grammar_mask(const grammar *g, float *logits, size_t n_vocab, const int32_t *eos_ids, size_t n_eos)
{
    float eos_logits[16];
    if (n_eos > 16) n_eos = 16;
    for (size_t i = 0; i < n_eos; i++)
        eos_logits[i] = eos_ids[i] >= 0 && (size_t)eos_ids[i] < n_vocab ? logits[eos_ids[i]] : 0;
    const uint64_t *bits = allowed_tokens(g);
    bool any = false;
    for (size_t id = 0; id < n_vocab; id++) {
        bool ok = bits && id < g->v->n_vocab && (bits[id / 64] >> (id % 64) & 1);
        any |= ok;
        if (!ok) logits[id] = -INFINITY;
    }
    /* The end, when the document is whole; and when the vocabulary cannot go on, since something must. */
    bool may_end = grammar_complete(g) || !any;
    for (size_t i = 0; i < n_eos; i++)
        if (eos_ids[i] >= 0 && (size_t)eos_ids[i] < n_vocab)
            logits[eos_ids[i]] = may_end ? eos_logits[i] : -INFINITY;
}

bool grammar_accept(grammar *g, int32_t id)
{
    size_t len = 0;
    bool special = false;
    const char *s = tokenizer_bytes(g->v->t, id, &len, &special);
    if (!s || len == 0 || special) return false;
    int config = g->config;
    for (size_t i = 0; i < len && config != NFA_DEAD; i++) config = nfa_step(g->a, config, (uint8_t)s[i]);
    if (config == NFA_DEAD) return false;
    g->config = config;
    return true;
}

bool grammar_complete(const grammar *g)
{
    return nfa_accepts(g->a, g->config);
}
