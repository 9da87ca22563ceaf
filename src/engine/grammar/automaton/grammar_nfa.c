/* grammar_nfa.c: building the automaton and dropping what leads nowhere. */
#include "grammar/automaton/grammar_nfa_impl.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>

nfa *nfa_new(void)
{
    nfa *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->set = malloc(NFA_THREADS_MAX * sizeof *a->set);
    a->set_index = malloc(SET_INDEX * sizeof *a->set_index);
    a->set_stamp = calloc(SET_INDEX, sizeof *a->set_stamp);
    if (!a->set || !a->set_index || !a->set_stamp ||
        !grow(&a->stacks, &a->cap_stacks, 0, sizeof *a->stacks)) {
        nfa_free(a);
        return NULL;
    }
    a->stacks[0] = (nfa_stack){.state = NFA_DEAD, .parent = -1};
    a->n_stacks = 1;
    for (size_t i = 0; i < NFA_TWINS; i++) a->twins[i] = NFA_DEAD;
    a->work_left = UINT64_MAX;
    return a;
}

void nfa_free(nfa *a)
{
    if (!a) return;
    nfa_free_configs(a);
    free(a->nodes);
    free(a->edges);
    free(a->stacks);
    free(a->stack_index);
    free(a->threads);
    free(a->configs);
    free(a->config_index);
    free(a->set);
    free(a->set_index);
    free(a->set_stamp);
    free(a);
}

bool nfa_failed(const nfa *a)
{
    return a->failed;
}

bool nfa_lacks_memory(const nfa *a)
{
    return a->lacks_memory;
}

int nfa_state(nfa *a)
{
    bool room = !a->failed && a->n_nodes < NFA_STATES_MAX;
    if (!room || !grow(&a->nodes, &a->cap_nodes, a->n_nodes, sizeof *a->nodes)) {
        a->lacks_memory |= room;
        a->failed = true;
        return NFA_DEAD;
    }
    a->nodes[a->n_nodes] = (nfa_node){.edges = -1, .first = -1};
    return (int)a->n_nodes++;
}

static void add_edge(nfa *a, int from, nfa_edge e)
{
    bool fits = !a->failed && from >= 0 && e.to >= 0;
    if (!fits || !grow(&a->edges, &a->cap_edges, a->n_edges, sizeof *a->edges)) {
        a->lacks_memory |= fits;
        a->failed = true;
        return;
    }
    e.next = a->nodes[from].edges;
    a->edges[a->n_edges] = e;
    progress_add(64);
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

void nfa_call_to(nfa *a, int from, int rule_start, int to)
{
    if (rule_start < 0) a->failed = true;
    add_edge(a, from, (nfa_edge){.kind = EDGE_CALL, .to = to, .rule = rule_start});
}

int nfa_call(nfa *a, int from, int rule_start)
{
    int to = nfa_state(a);
    nfa_call_to(a, from, rule_start, to);
    return to;
}

int nfa_call_shared(nfa *a, int from, int rule_start)
{
    for (int e = a->failed ? -1 : a->nodes[from].edges; e >= 0; e = a->edges[e].next)
        if (a->edges[e].kind == EDGE_CALL && a->edges[e].rule == rule_start) return a->edges[e].to;
    return nfa_call(a, from, rule_start);
}

void nfa_return(nfa *a, int state)
{
    if (state < 0)
        a->failed = true;
    else if (!a->failed)
        a->nodes[state].returns = true;
}

void nfa_mark(nfa *a, int state, uint8_t marks)
{
    if (state < 0)
        a->failed = true;
    else if (!a->failed)
        a->nodes[state].marks |= marks;
}

void nfa_chain(nfa *a, int state, int first, int room)
{
    if (a->failed || state < 0 || first < 0) return;
    a->nodes[state].first = first;
    a->nodes[state].room = room < UINT16_MAX ? (uint16_t)room : UINT16_MAX;
}

/* ---- sealing ---------------------------------------------------------------------------------- */

/* What sealing needs of each state: who waits for it. An edge waits for its target and, when it is a call,
 * for the rule as well; lists are threaded through two arrays over the edges. States are found in the order of
 * their distance (Knuth, "A generalization of Dijkstra's algorithm", 1977), in a list for each distance. */
typedef struct sealing {
    bool *alive;              /* [n_nodes]: the end of its rule can be reached from here */
    int *from;                /* [n_edges] */
    int *by_to, *by_rule;     /* [n_nodes], the first edge that waits for the state, -1 */
    int *next_to, *next_rule; /* [n_edges] */
    int *at;                  /* [NFA_FAR + 1], the first entry of this distance, -1 */
    int *entry, *next_entry;  /* [n_nodes + n_edges]: a state, and the next of the same distance */
    size_t n_entries;
} sealing;

static void sealing_done(sealing *s)
{
    free(s->alive);
    free(s->from);
    free(s->by_to);
    free(s->by_rule);
    free(s->next_to);
    free(s->next_rule);
    free(s->at);
    free(s->entry);
    free(s->next_entry);
}

static int *ints(size_t n)
{
    int *p = malloc((n + 1) * sizeof *p);
    for (size_t i = 0; p && i < n; i++) p[i] = -1;
    return p;
}

static bool sealing_init(const nfa *a, sealing *s)
{
    *s = (sealing){.alive = calloc(a->n_nodes + 1, 1),
                   .from = ints(a->n_edges),
                   .by_to = ints(a->n_nodes),
                   .by_rule = ints(a->n_nodes),
                   .next_to = ints(a->n_edges),
                   .next_rule = ints(a->n_edges),
                   .at = ints(NFA_FAR + 1),
                   .entry = ints(a->n_nodes + a->n_edges),
                   .next_entry = ints(a->n_nodes + a->n_edges)};
    if (!s->alive || !s->from || !s->by_to || !s->by_rule || !s->next_to || !s->next_rule || !s->at ||
        !s->entry || !s->next_entry)
        return false;
    for (size_t i = 0; i < a->n_nodes; i++) {
        for (int e = a->nodes[i].edges; e >= 0; e = a->edges[e].next) {
            s->from[e] = (int)i;
            s->next_to[e] = s->by_to[a->edges[e].to];
            s->by_to[a->edges[e].to] = e;
            if (a->edges[e].kind != EDGE_CALL) continue;
            s->next_rule[e] = s->by_rule[a->edges[e].rule];
            s->by_rule[a->edges[e].rule] = e;
        }
    }
    return true;
}

static void reach(sealing *s, int state, unsigned distance)
{
    if (s->alive[state]) return;
    s->entry[s->n_entries] = state;
    s->next_entry[s->n_entries] = s->at[distance];
    s->at[distance] = (int)s->n_entries++;
}

static bool leads_on(const nfa *a, const sealing *s, int e)
{
    return s->alive[a->edges[e].to] && (a->edges[e].kind != EDGE_CALL || s->alive[a->edges[e].rule]);
}

/* Bytes to the end of its rule along this edge. */
static unsigned distance_along(const nfa *a, const nfa_edge *e)
{
    unsigned n = a->nodes[e->to].distance + (e->kind == EDGE_RANGE);
    if (e->kind == EDGE_CALL) n += a->nodes[e->rule].distance;
    return n < NFA_FAR ? n : NFA_FAR;
}

/* The state's distance is known now: so are those of edges that wait for nothing else. */
static void grammar_nfa_settle(nfa *a, sealing *s, int state, unsigned distance)
{
    s->alive[state] = true;
    a->nodes[state].distance = (uint16_t)distance;
    for (int e = s->by_to[state]; e >= 0; e = s->next_to[e])
        if (leads_on(a, s, e)) reach(s, s->from[e], distance_along(a, &a->edges[e]));
    for (int e = s->by_rule[state]; e >= 0; e = s->next_rule[e])
        if (leads_on(a, s, e) && a->edges[e].to != state)
            reach(s, s->from[e], distance_along(a, &a->edges[e]));
}

static void find_alive(nfa *a, sealing *s)
{
    for (size_t i = 0; i < a->n_nodes; i++)
        if (a->nodes[i].returns) reach(s, (int)i, 0);
    for (unsigned distance = 0; distance <= NFA_FAR; distance++) {
        while (s->at[distance] >= 0) {
            int entry = s->at[distance];
            s->at[distance] = s->next_entry[entry];
            if (!s->alive[s->entry[entry]]) grammar_nfa_settle(a, s, s->entry[entry], distance);
        }
    }
}

static void keep_alive_edges(nfa *a, const sealing *s)
{
    for (size_t i = 0; i < a->n_nodes; i++) {
        nfa_node *node = &a->nodes[i];
        int *link = &node->edges;
        for (int e = node->edges; e >= 0; e = a->edges[e].next) {
            const nfa_edge *edge = &a->edges[e];
            if (!leads_on(a, s, e)) continue;
            *link = e;
            link = &a->edges[e].next;
            node->reads |= edge->kind == EDGE_RANGE;
            unsigned to = edge->kind == EDGE_RANGE ? a->nodes[edge->to].distance : 0;
            if (to > node->distance + a->detour) a->detour = to - node->distance;
        }
        *link = -1;
        node->ends = node->returns && node->edges < 0;
    }
}

bool nfa_seal(nfa *a)
{
    sealing s;
    bool ok = sealing_init(a, &s);
    if (ok) {
        find_alive(a, &s);
        keep_alive_edges(a, &s);
    }
    sealing_done(&s);
    return ok;
}
