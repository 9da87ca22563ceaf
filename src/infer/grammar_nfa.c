#include "infer/grammar_nfa.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { EDGE_RANGE, EDGE_EPSILON, EDGE_CALL };
#define THREADS_MAX  1024
#define STEP_UNKNOWN (-2)

typedef struct nfa_edge {
    uint8_t kind, lo, hi;
    int to;   /* EDGE_CALL: where the call comes back to */
    int rule; /* EDGE_CALL: where it goes */
    int next; /* of the same state, -1 at the end */
} nfa_edge;

typedef struct nfa_node {
    int edges;
    bool returns;
} nfa_node;

typedef struct nfa_stack { /* stack 0 is the empty one */
    int state, parent, depth;
} nfa_stack;

typedef struct nfa_thread {
    int state, stack;
} nfa_thread;

typedef struct nfa_config {
    size_t first, n; /* its threads, sorted */
    bool accepts;
    int32_t *steps; /* [256], made at the first step */
    void *slot;
} nfa_config;

struct nfa {
    bool failed;
    nfa_node *nodes;
    size_t n_nodes, cap_nodes;
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
    nfa_thread *set; /* scratch: the closure being built, [THREADS_MAX] */
};

/* Make room for one more element of `size` bytes; false when out of memory. */
static bool grow(void *array, size_t *cap, size_t n, size_t size)
{
    if (n < *cap) return true;
    size_t want = *cap ? *cap * 2 : 64;
    void *p = realloc(*(void **)array, want * size);
    if (!p) return false;
    *(void **)array = p;
    *cap = want;
    return true;
}

nfa *nfa_new(void)
{
    nfa *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->set = malloc(THREADS_MAX * sizeof *a->set);
    if (!a->set || !grow(&a->stacks, &a->cap_stacks, 0, sizeof *a->stacks)) {
        nfa_free(a);
        return NULL;
    }
    a->stacks[0] = (nfa_stack){.state = NFA_DEAD, .parent = -1};
    a->n_stacks = 1;
    return a;
}

void nfa_free(nfa *a)
{
    if (!a) return;
    for (size_t i = 0; i < a->n_configs; i++) {
        free(a->configs[i].steps);
        free(a->configs[i].slot);
    }
    free(a->nodes);
    free(a->edges);
    free(a->stacks);
    free(a->stack_index);
    free(a->threads);
    free(a->configs);
    free(a->config_index);
    free(a->set);
    free(a);
}

bool nfa_failed(const nfa *a)
{
    return a->failed;
}

int nfa_state(nfa *a)
{
    if (a->failed || a->n_nodes >= NFA_STATES_MAX ||
        !grow(&a->nodes, &a->cap_nodes, a->n_nodes, sizeof *a->nodes)) {
        a->failed = true;
        return NFA_DEAD;
    }
    a->nodes[a->n_nodes] = (nfa_node){.edges = -1};
    return (int)a->n_nodes++;
}

static void add_edge(nfa *a, int from, nfa_edge e)
{
    if (a->failed || from < 0 || e.to < 0 || !grow(&a->edges, &a->cap_edges, a->n_edges, sizeof *a->edges)) {
        a->failed = true;
        return;
    }
    e.next = a->nodes[from].edges;
    a->edges[a->n_edges] = e;
    a->nodes[from].edges = (int)a->n_edges++;
}

void nfa_epsilon(nfa *a, int from, int to)
{
    add_edge(a, from, (nfa_edge){.kind = EDGE_EPSILON, .to = to});
}

void nfa_range_to(nfa *a, int from, uint8_t lo, uint8_t hi, int to)
{
    add_edge(a, from, (nfa_edge){.kind = EDGE_RANGE, .lo = lo, .hi = hi, .to = to});
}

int nfa_range(nfa *a, int from, uint8_t lo, uint8_t hi)
{
    int to = nfa_state(a);
    nfa_range_to(a, from, lo, hi, to);
    return to;
}

int nfa_bytes(nfa *a, int from, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) from = nfa_range(a, from, (uint8_t)s[i], (uint8_t)s[i]);
    return from;
}

/* Where `from` goes for exactly this byte, NFA_DEAD when it has no such edge. */
static int literal_edge(const nfa *a, int from, uint8_t byte)
{
    for (int e = a->nodes[from].edges; e >= 0; e = a->edges[e].next) {
        const nfa_edge *edge = &a->edges[e];
        if (edge->kind == EDGE_RANGE && edge->lo == byte && edge->hi == byte) return edge->to;
    }
    return NFA_DEAD;
}

int nfa_literal(nfa *a, int from, const char *s, size_t n)
{
    for (size_t i = 0; i < n && !a->failed; i++) {
        int to = literal_edge(a, from, (uint8_t)s[i]);
        from = to == NFA_DEAD ? nfa_range(a, from, (uint8_t)s[i], (uint8_t)s[i]) : to;
    }
    return a->failed ? NFA_DEAD : from;
}

int nfa_call(nfa *a, int from, int rule_start)
{
    int to = nfa_state(a);
    add_edge(a, from, (nfa_edge){.kind = EDGE_CALL, .to = to, .rule = rule_start});
    return to;
}

void nfa_return(nfa *a, int state)
{
    if (state < 0)
        a->failed = true;
    else if (!a->failed)
        a->nodes[state].returns = true;
}

/* ---- interning ------------------------------------------------------------------------------- */

static uint64_t hash_pair(int x, int y)
{
    return rng_mix((uint64_t)(uint32_t)x << 32 | (uint32_t)y);
}

/* Double the index when it is three quarters full; `hash` gives the hash of element i. */
static bool index_room(nfa *a, int **index, size_t *cap, size_t n, uint64_t (*hash)(const nfa *, size_t))
{
    if (*cap && n * 4 < *cap * 3) return true;
    size_t want = *cap ? *cap * 2 : 256;
    int *fresh = malloc(want * sizeof *fresh);
    if (!fresh) return false;
    for (size_t i = 0; i < want; i++) fresh[i] = -1;
    for (size_t i = 0; i < n; i++) {
        size_t at = hash(a, i) & (want - 1);
        while (fresh[at] >= 0) at = (at + 1) & (want - 1);
        fresh[at] = (int)i;
    }
    free(*index);
    *index = fresh;
    *cap = want;
    return true;
}

static uint64_t stack_hash(const nfa *a, size_t i)
{
    return hash_pair(a->stacks[i].state, a->stacks[i].parent);
}

/* The stack `parent` with `state` on top; -1 when too deep or out of memory. */
static int stack_push(nfa *a, int state, int parent)
{
    if (a->stacks[parent].depth + 1 > NFA_DEPTH_MAX) return -1;
    if (!index_room(a, &a->stack_index, &a->stack_index_cap, a->n_stacks, stack_hash)) return -1;
    size_t mask = a->stack_index_cap - 1, at = hash_pair(state, parent) & mask;
    for (; a->stack_index[at] >= 0; at = (at + 1) & mask) {
        const nfa_stack *s = &a->stacks[a->stack_index[at]];
        if (s->state == state && s->parent == parent) return a->stack_index[at];
    }
    if (!grow(&a->stacks, &a->cap_stacks, a->n_stacks, sizeof *a->stacks)) return -1;
    a->stacks[a->n_stacks] =
        (nfa_stack){.state = state, .parent = parent, .depth = a->stacks[parent].depth + 1};
    a->stack_index[at] = (int)a->n_stacks;
    return (int)a->n_stacks++;
}

static uint64_t threads_hash(const nfa_thread *t, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = rng_mix(h ^ hash_pair(t[i].state, t[i].stack));
    return h;
}

static uint64_t config_hash(const nfa *a, size_t i)
{
    return threads_hash(a->threads + a->configs[i].first, a->configs[i].n);
}

static int compare_threads(const void *x, const void *y)
{
    const nfa_thread *a = x, *b = y;
    if (a->state != b->state) return a->state < b->state ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* Intern the n sorted threads of a->set; NFA_DEAD when there are none or no room. */
static int config_of_set(nfa *a, size_t n)
{
    if (n == 0) return NFA_DEAD;
    qsort(a->set, n, sizeof *a->set, compare_threads);
    if (!index_room(a, &a->config_index, &a->config_index_cap, a->n_configs, config_hash)) return NFA_DEAD;
    size_t mask = a->config_index_cap - 1, at = threads_hash(a->set, n) & mask;
    for (; a->config_index[at] >= 0; at = (at + 1) & mask) {
        const nfa_config *c = &a->configs[a->config_index[at]];
        if (c->n == n && memcmp(a->threads + c->first, a->set, n * sizeof *a->set) == 0)
            return a->config_index[at];
    }
    if (a->n_configs >= NFA_CONFIGS_MAX ||
        !grow(&a->configs, &a->cap_configs, a->n_configs, sizeof *a->configs))
        return NFA_DEAD;
    nfa_config c = {.first = a->n_threads, .n = n};
    for (size_t i = 0; i < n; i++) {
        if (!grow(&a->threads, &a->cap_threads, a->n_threads, sizeof *a->threads)) return NFA_DEAD;
        a->threads[a->n_threads++] = a->set[i];
        c.accepts |= a->nodes[a->set[i].state].returns && a->set[i].stack == 0;
    }
    a->configs[a->n_configs] = c;
    a->config_index[at] = (int)a->n_configs;
    return (int)a->n_configs++;
}

/* Add a thread to a->set unless it is there; a set that is too big drops the thread. */
static void set_add(nfa *a, size_t *n, int state, int stack)
{
    for (size_t i = 0; i < *n; i++)
        if (a->set[i].state == state && a->set[i].stack == stack) return;
    if (*n < THREADS_MAX) a->set[(*n)++] = (nfa_thread){state, stack};
}

/* Follow epsilons, calls and returns from the n threads of a->set, then keep the configuration. */
static int close_set(nfa *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        nfa_thread t = a->set[i];
        if (a->nodes[t.state].returns && t.stack > 0)
            set_add(a, &n, a->stacks[t.stack].state, a->stacks[t.stack].parent);
        for (int e = a->nodes[t.state].edges; e >= 0; e = a->edges[e].next) {
            const nfa_edge *edge = &a->edges[e];
            if (edge->kind == EDGE_EPSILON) {
                set_add(a, &n, edge->to, t.stack);
            } else if (edge->kind == EDGE_CALL) {
                int stack = stack_push(a, edge->to, t.stack);
                if (stack >= 0) set_add(a, &n, edge->rule, stack);
            }
        }
    }
    /* Only threads that can read a byte or end the document matter from here on. */
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool useful = a->nodes[a->set[i].state].returns && a->set[i].stack == 0;
        for (int e = a->nodes[a->set[i].state].edges; e >= 0 && !useful; e = a->edges[e].next)
            useful = a->edges[e].kind == EDGE_RANGE;
        if (useful) a->set[kept++] = a->set[i];
    }
    return config_of_set(a, kept);
}

int nfa_begin(nfa *a, int start)
{
    assert(!a->failed);
    a->set[0] = (nfa_thread){start, 0};
    return close_set(a, 1);
}

static int take_step(nfa *a, int config, uint8_t byte)
{
    size_t n = 0;
    nfa_config c = a->configs[config];
    for (size_t i = 0; i < c.n; i++) {
        nfa_thread t = a->threads[c.first + i];
        for (int e = a->nodes[t.state].edges; e >= 0; e = a->edges[e].next) {
            const nfa_edge *edge = &a->edges[e];
            if (edge->kind == EDGE_RANGE && byte >= edge->lo && byte <= edge->hi)
                set_add(a, &n, edge->to, t.stack);
        }
    }
    return close_set(a, n);
}

int nfa_step(nfa *a, int config, uint8_t byte)
{
    if (config < 0) return NFA_DEAD;
    if (!a->configs[config].steps) {
        int32_t *steps = malloc(256 * sizeof *steps);
        if (!steps) return NFA_DEAD;
        for (int i = 0; i < 256; i++) steps[i] = STEP_UNKNOWN;
        a->configs[config].steps = steps;
    }
    int to = a->configs[config].steps[byte];
    if (to == STEP_UNKNOWN) {
        to = take_step(a, config, byte);
        a->configs[config].steps[byte] = to;
    }
    return to;
}

bool nfa_accepts(const nfa *a, int config)
{
    return config >= 0 && a->configs[config].accepts;
}

void **nfa_slot(nfa *a, int config)
{
    return &a->configs[config].slot;
}
