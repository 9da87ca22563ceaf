/* grammar_nfa_run.c: sets of threads over a sealed automaton: each set once, and the steps between them. */
#include "grammar/automaton/grammar_nfa_impl.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/progress.h"

#define STEP_UNKNOWN     (-2)
#define KEPT_THREADS_MAX (4u << 20) /* of all configurations together: 32 MiB */

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

static int stop(nfa *a, nfa_trouble why)
{
    if (!a->stopped) a->stopped = (uint8_t)why;
    a->lacks_memory |= why == NFA_NOMEM;
    return NFA_DEAD;
}

/* The stack `parent` with `state` on top; -1 when too deep (the set is cut) or out of memory. */
static int stack_push(nfa *a, int state, int parent)
{
    if (a->stacks[parent].depth + 1 > NFA_DEPTH_MAX) {
        a->cut = NFA_DEEP;
        return -1;
    }
    if (!index_room(a, &a->stack_index, &a->stack_index_cap, a->n_stacks, stack_hash))
        return stop(a, NFA_NOMEM);
    size_t mask = a->stack_index_cap - 1, at = hash_pair(state, parent) & mask;
    for (; a->stack_index[at] >= 0; at = (at + 1) & mask) {
        const nfa_stack *s = &a->stacks[a->stack_index[at]];
        if (s->state == state && s->parent == parent) return a->stack_index[at];
    }
    if (!grow(&a->stacks, &a->cap_stacks, a->n_stacks, sizeof *a->stacks)) return stop(a, NFA_NOMEM);
    a->stacks[a->n_stacks] = (nfa_stack){.state = state,
                                         .parent = parent,
                                         .depth = a->stacks[parent].depth + 1,
                                         .distance = a->stacks[parent].distance + a->nodes[state].distance};
    a->stack_index[at] = (int)a->n_stacks;
    return (int)a->n_stacks++;
}

static uint64_t threads_hash(const nfa_thread *t, size_t n, int cut)
{
    uint64_t h = n * 8 + (unsigned)cut;
    for (size_t i = 0; i < n; i++) h = rng_mix(h ^ hash_pair(t[i].state, t[i].stack));
    return h;
}

static uint64_t config_hash(const nfa *a, size_t i)
{
    return threads_hash(a->threads + a->configs[i].first, a->configs[i].n, a->configs[i].cut);
}

static int compare_threads(const void *x, const void *y)
{
    const nfa_thread *a = x, *b = y;
    if (a->state != b->state) return a->state < b->state ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static void set_bit(uint64_t *bits, unsigned i)
{
    if (i < 256) bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static unsigned thread_distance(const nfa *a, int state, int stack)
{
    return a->nodes[state].distance + a->stacks[stack].distance;
}

/* A character of a string is a call that comes back to the string's state. */
static uint8_t marks_behind(const nfa *a, int stack)
{
    return stack > 0 ? a->nodes[a->stacks[stack].state].marks & (NFA_OPTIONAL | NFA_FORMAT) : 0;
}

/* What follows from the threads of a new configuration. */
static void grammar_nfa_run_describe(const nfa *a, nfa_config *c)
{
    set_bit(c->starts, 0);
    c->distance = NFA_FAR;
    for (size_t i = 0; i < c->n; i++) {
        const nfa_node *node = &a->nodes[a->set[i].state];
        unsigned distance = thread_distance(a, a->set[i].state, a->set[i].stack);
        if (distance < c->distance) c->distance = distance;
        c->accepts |= node->returns && a->set[i].stack == 0;
        c->reads |= node->reads && !(node->marks & NFA_IDLE);
        c->marks |= node->marks | marks_behind(a, a->set[i].stack);
        for (int e = node->edges; e >= 0; e = a->edges[e].next) {
            if (a->edges[e].kind != EDGE_RANGE) continue;
            set_bit(c->starts, a->edges[e].lo);
            set_bit(c->starts, a->edges[e].hi + 1u);
        }
    }
}

/* Intern the n threads of a->set; NFA_DEAD when there are none or no room. */
static int config_of_set(nfa *a, size_t n)
{
    if (n == 0 && !a->cut) return NFA_DEAD;
    qsort(a->set, n, sizeof *a->set, compare_threads);
    if (!index_room(a, &a->config_index, &a->config_index_cap, a->n_configs, config_hash))
        return stop(a, NFA_NOMEM);
    size_t mask = a->config_index_cap - 1, at = threads_hash(a->set, n, a->cut) & mask;
    for (; a->config_index[at] >= 0; at = (at + 1) & mask) {
        const nfa_config *c = &a->configs[a->config_index[at]];
        if (c->n == n && c->cut == a->cut && memcmp(a->threads + c->first, a->set, n * sizeof *a->set) == 0)
            return a->config_index[at];
    }
    if (a->n_configs >= NFA_CONFIGS_MAX || a->n_threads + n > KEPT_THREADS_MAX) return stop(a, NFA_WORK);
    if (!grow(&a->configs, &a->cap_configs, a->n_configs, sizeof *a->configs)) return stop(a, NFA_NOMEM);
    nfa_config c = {.first = a->n_threads, .n = n, .cut = a->cut, .run = {-1, -1, -1}};
    for (size_t i = 0; i < n; i++) {
        if (!grow(&a->threads, &a->cap_threads, a->n_threads, sizeof *a->threads)) return stop(a, NFA_NOMEM);
        a->threads[a->n_threads++] = a->set[i];
    }
    grammar_nfa_run_describe(a, &c);
    a->configs[a->n_configs] = c;
    a->config_index[at] = (int)a->n_configs;
    return (int)a->n_configs++;
}

/* ---- stepping --------------------------------------------------------------------------------- */

static void set_begin(nfa *a, uint8_t cut)
{
    a->cut = cut;
    if (++a->stamp == 0) { /* stamps of four thousand million sets ago must not look new */
        memset(a->set_stamp, 0, SET_INDEX * sizeof *a->set_stamp);
        a->stamp = 1;
    }
}

/* Add a thread to a->set unless it is there. */
static void set_add(nfa *a, size_t *n, int state, int stack)
{
    size_t at = hash_pair(state, stack) & (SET_INDEX - 1);
    for (; a->set_stamp[at] == a->stamp; at = (at + 1) & (SET_INDEX - 1)) {
        const nfa_thread *t = &a->set[a->set_index[at]];
        if (t->state == state && t->stack == stack) return;
    }
    if (*n == NFA_THREADS_MAX) {
        a->cut = NFA_WIDE;
        return;
    }
    a->set_stamp[at] = a->stamp;
    a->set_index[at] = (int)*n;
    a->set[(*n)++] = (nfa_thread){state, stack};
}

static void spend(nfa *a, uint64_t work)
{
    a->work_left -= work < a->work_left ? work : a->work_left;
}

static void follow(nfa *a, size_t *n, nfa_thread t)
{
    if (a->nodes[t.state].returns && t.stack > 0)
        set_add(a, n, a->stacks[t.stack].state, a->stacks[t.stack].parent);
    uint64_t work = 1;
    for (int e = a->nodes[t.state].edges; e >= 0; e = a->edges[e].next, work++) {
        const nfa_edge *edge = &a->edges[e];
        if (edge->kind == EDGE_EPSILON) {
            set_add(a, n, edge->to, t.stack);
        } else if (edge->kind == EDGE_CALL) {
            int stack = a->nodes[edge->to].ends ? t.stack : stack_push(a, edge->to, t.stack);
            if (stack >= 0) set_add(a, n, edge->rule, stack);
        }
    }
    spend(a, work);
}

/* Follow epsilons, calls and returns from the n threads of a->set, then keep the configuration. */
static int close_set(nfa *a, size_t n)
{
    for (size_t i = 0; i < n; i++) follow(a, &n, a->set[i]);
    /* Only threads that can read a byte or end the document matter from here on. */
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const nfa_node *node = &a->nodes[a->set[i].state];
        if (node->reads || (node->returns && a->set[i].stack == 0)) a->set[kept++] = a->set[i];
    }
    if (a->stopped) return NFA_DEAD;
    return config_of_set(a, kept);
}

int nfa_begin(nfa *a, int start)
{
    assert(!a->failed);
    set_begin(a, NFA_FINE);
    size_t n = 0;
    set_add(a, &n, start, 0);
    return close_set(a, n);
}

static int take_step(nfa *a, int config, uint8_t byte)
{
    size_t n = 0;
    nfa_config c = a->configs[config];
    set_begin(a, c.cut);
    for (size_t i = 0; i < c.n; i++) {
        nfa_thread t = a->threads[c.first + i];
        uint64_t work = 1;
        for (int e = a->nodes[t.state].edges; e >= 0; e = a->edges[e].next, work++) {
            const nfa_edge *edge = &a->edges[e];
            if (edge->kind == EDGE_RANGE && byte >= edge->lo && byte <= edge->hi)
                set_add(a, &n, edge->to, t.stack);
        }
        spend(a, work);
        progress_add(64 * work);
    }
    return n ? close_set(a, n) : NFA_DEAD;
}

static bool starts_at(const nfa_config *c, unsigned byte)
{
    return c->starts[byte / 64] >> (byte % 64) & 1;
}

static bool make_steps(nfa_config *c)
{
    c->steps = malloc(256 * sizeof *c->steps);
    for (int i = 0; c->steps && i < 256; i++) c->steps[i] = STEP_UNKNOWN;
    return c->steps != NULL;
}

int nfa_step(nfa *a, int config, uint8_t byte)
{
    if (config < 0) return NFA_DEAD;
    if (!a->configs[config].steps && !make_steps(&a->configs[config])) return stop(a, NFA_NOMEM);
    int to = a->configs[config].steps[byte];
    if (to != STEP_UNKNOWN) return to;
    if (a->stopped) return NFA_DEAD;
    if (a->work_left == 0) return stop(a, NFA_WORK);
    to = take_step(a, config, byte);
    if (a->stopped) return NFA_DEAD;
    const nfa_config *c = &a->configs[config]; /* stepping may have moved it */
    unsigned lo = byte, hi = byte + 1u;
    while (!starts_at(c, lo)) lo--;
    while (hi < 256 && !starts_at(c, hi)) hi++;
    for (; lo < hi; lo++) c->steps[lo] = to;
    return to;
}

bool nfa_run_has(nfa_run_kind kind, uint8_t byte)
{
    uint8_t letter = byte | 0x20;
    if (kind == NFA_WORD) return (byte >= '0' && byte <= '9') || (letter >= 'a' && letter <= 'z');
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

/* Where every character of one byte leads; NFA_DEAD when not all lead to the same. */
static int narrow_step(nfa *a, int config, nfa_run_kind kind)
{
    int to = nfa_step(a, config, 'a');
    for (int b = 0x20; b < 0x7F && to != NFA_DEAD; b++)
        if (nfa_run_has(kind, (uint8_t)b) && nfa_step(a, config, (uint8_t)b) != to) to = NFA_DEAD;
    return to;
}

/* Where all of these bytes lead; NFA_DEAD when not all lead to the same. */
static int range_step(nfa *a, int config, unsigned lo, unsigned hi)
{
    int to = nfa_step(a, config, (uint8_t)lo);
    for (unsigned b = lo + 1; b <= hi && to != NFA_DEAD; b++)
        if (nfa_step(a, config, (uint8_t)b) != to) to = NFA_DEAD;
    return to;
}

/* Where every character of several bytes leads (RFC 3629, section 4). */
static int wide_step(nfa *a, int config)
{
    static const uint8_t FIRST[][4] = {{0xC2, 0xDF, 0x80, 0xBF}, {0xE0, 0xE0, 0xA0, 0xBF},
                                       {0xE1, 0xEC, 0x80, 0xBF}, {0xED, 0xED, 0x80, 0x9F},
                                       {0xEE, 0xEF, 0x80, 0xBF}, {0xF0, 0xF0, 0x90, 0xBF},
                                       {0xF1, 0xF3, 0x80, 0xBF}, {0xF4, 0xF4, 0x80, 0x8F}};
    int all = NFA_DEAD;
    for (size_t i = 0; i < sizeof FIRST / sizeof *FIRST; i++) {
        int to = range_step(a, range_step(a, config, FIRST[i][0], FIRST[i][1]), FIRST[i][2], FIRST[i][3]);
        for (unsigned byte = 0xE0; byte <= FIRST[i][0]; byte += 0x10) to = range_step(a, to, 0x80, 0xBF);
        if (to == NFA_DEAD || (i > 0 && to != all)) return NFA_DEAD;
        all = to;
    }
    return all;
}

static int grammar_nfa_run_run_step(nfa *a, int config, nfa_run_kind kind)
{
    int to = narrow_step(a, config, kind);
    return kind != NFA_TEXT || to == NFA_DEAD || wide_step(a, config) == to ? to : NFA_DEAD;
}

int nfa_run(nfa *a, int config, nfa_run_kind kind)
{
    int path[NFA_RUN_MAX], n = 0, at = config;
    while (n < NFA_RUN_MAX && at >= 0 && a->configs[at].run[kind] < 0) {
        int next = grammar_nfa_run_run_step(a, at, kind);
        if (next == at) a->configs[at].run[kind] = NFA_RUN_MAX;
        path[n++] = at;
        at = next;
    }
    if (at >= 0 && a->configs[at].run[kind] < 0) return a->configs[config].run[kind] = NFA_RUN_MAX;
    for (int run = at < 0 ? 0 : a->configs[at].run[kind] + 1; n-- > 0; run++)
        if (a->configs[path[n]].run[kind] < 0)
            a->configs[path[n]].run[kind] = (int8_t)(run < NFA_RUN_MAX ? run : NFA_RUN_MAX);
    return a->configs[config].run[kind];
}

/* ---- configurations that differ only in how far along a chain they are ----------------------- */

/* What stands for a state from which n more bytes can be read; NFA_DEAD when nothing else does. */
static int like_of(const nfa *a, int state, int n)
{
    const nfa_node *node = &a->nodes[state];
    return node->first >= 0 && node->room >= n ? node->first : NFA_DEAD;
}

/* Both are the same, or alike; *ret_differ is set where they are not the same. */
static bool same_state(const nfa *a, int x, int y, int n, bool *ret_differ)
{
    if (x == y) return true;
    *ret_differ = true;
    return like_of(a, x, n) != NFA_DEAD && like_of(a, x, n) == like_of(a, y, n);
}

static bool same_thread(const nfa *a, nfa_thread x, nfa_thread y, int n, bool *ret_differ)
{
    if (!same_state(a, x.state, y.state, n, ret_differ)) return false;
    if (x.stack == y.stack) return true;
    const nfa_stack *s = &a->stacks[x.stack], *t = &a->stacks[y.stack];
    return s->parent == t->parent && s->state >= 0 && t->state >= 0 &&
           same_state(a, s->state, t->state, n, ret_differ);
}

/* Threads are sorted by their states, and a chain's states were made one after the other. */
static bool are_twins(const nfa *a, const nfa_config *x, const nfa_config *y, int n)
{
    bool differ = false;
    if (x->n != y->n || x->cut || y->cut || x->marks != y->marks || x->accepts != y->accepts) return false;
    for (size_t i = 0; i < x->n; i++)
        if (!same_thread(a, a->threads[x->first + i], a->threads[y->first + i], n, &differ)) return false;
    return true;
}

int nfa_twin(nfa *a, int config, int n)
{
    const nfa_config *c = &a->configs[config];
    uint64_t h = c->n;
    bool any = false;
    for (size_t i = 0; i < c->n; i++) {
        nfa_thread t = a->threads[c->first + i];
        int top = a->stacks[t.stack].state, like = like_of(a, t.state, n);
        int like_top = top >= 0 ? like_of(a, top, n) : NFA_DEAD;
        any |= like != NFA_DEAD || like_top != NFA_DEAD;
        h = rng_mix(h ^ hash_pair(like != NFA_DEAD ? like : t.state, like_top != NFA_DEAD ? like_top : top));
    }
    if (!any) return config;
    int *twin = &a->twins[h % NFA_TWINS];
    if (*twin >= 0 && are_twins(a, c, &a->configs[*twin], n)) return *twin;
    return *twin = config;
}

bool nfa_accepts(const nfa *a, int config)
{
    return config >= 0 && a->configs[config].accepts;
}

bool nfa_reads(const nfa *a, int config)
{
    return config >= 0 && a->configs[config].reads;
}

uint8_t nfa_marks(const nfa *a, int config)
{
    return config >= 0 ? a->configs[config].marks : 0;
}

unsigned nfa_distance(const nfa *a, int config)
{
    return config >= 0 ? a->configs[config].distance : NFA_FAR;
}

int nfa_byte_to_end(const nfa *a, int config)
{
    unsigned distance = nfa_distance(a, config);
    if (distance == NFA_FAR) return -1;
    for (size_t i = 0; i < a->configs[config].n; i++) {
        nfa_thread t = a->threads[a->configs[config].first + i];
        for (int e = a->nodes[t.state].edges; e >= 0; e = a->edges[e].next) {
            const nfa_edge *edge = &a->edges[e];
            if (edge->kind == EDGE_RANGE && thread_distance(a, edge->to, t.stack) + 1 == distance)
                return edge->lo;
        }
    }
    return -1;
}

unsigned nfa_detour(const nfa *a)
{
    return a->detour;
}

nfa_trouble nfa_cut(const nfa *a, int config)
{
    return config >= 0 ? (nfa_trouble)a->configs[config].cut : NFA_FINE;
}

void nfa_allow(nfa *a, uint64_t work)
{
    a->work_left = work;
}

uint64_t nfa_left(const nfa *a)
{
    return a->work_left;
}

nfa_trouble nfa_stopped(const nfa *a)
{
    return (nfa_trouble)a->stopped;
}

void **nfa_slot(nfa *a, int config)
{
    return &a->configs[config].slot;
}

/* ---- forgetting ------------------------------------------------------------------------------- */

void nfa_free_configs(nfa *a)
{
    for (size_t i = 0; i < a->n_configs; i++) {
        free(a->configs[i].steps);
        free(a->configs[i].slot);
    }
    a->n_configs = a->n_threads = 0;
    for (size_t i = 0; i < NFA_TWINS; i++) a->twins[i] = NFA_DEAD;
}

bool nfa_is_full(const nfa *a)
{
    return a->n_configs > NFA_CONFIGS_MAX / 2 || a->n_threads > KEPT_THREADS_MAX / 2 ||
           a->n_stacks > KEPT_THREADS_MAX / 2;
}

/* The stack `old` of `from`, made again in the emptied table. */
static int copy_stack(nfa *a, const nfa_stack *from, int old)
{
    int states[NFA_DEPTH_MAX], n = 0, stack = 0;
    for (; old > 0; old = from[old].parent) states[n++] = from[old].state;
    while (n > 0 && stack >= 0) stack = stack_push(a, states[--n], stack);
    return stack;
}

int nfa_forget(nfa *a, int config)
{
    nfa_config c = a->configs[config];
    nfa_thread *threads = malloc((c.n + 1) * sizeof *threads);
    nfa_stack *stacks = malloc(a->n_stacks * sizeof *stacks);
    int to = NFA_DEAD;
    if (threads && stacks) {
        memcpy(threads, a->threads + c.first, c.n * sizeof *threads);
        memcpy(stacks, a->stacks, a->n_stacks * sizeof *stacks);
        nfa_free_configs(a);
        a->n_stacks = 1;
        for (size_t i = 0; i < a->stack_index_cap; i++) a->stack_index[i] = -1;
        for (size_t i = 0; i < a->config_index_cap; i++) a->config_index[i] = -1;
        size_t n = 0;
        set_begin(a, c.cut);
        for (size_t i = 0; i < c.n; i++) {
            int stack = copy_stack(a, stacks, threads[i].stack);
            if (stack >= 0) set_add(a, &n, threads[i].state, stack);
        }
        if (!a->stopped) to = config_of_set(a, n);
    } else {
        stop(a, NFA_NOMEM);
    }
    free(threads);
    free(stacks);
    return to;
}
