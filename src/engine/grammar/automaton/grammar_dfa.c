/* grammar_dfa.c: subset construction, products, and leaving out states that lead nowhere. */
#include "grammar/automaton/grammar_dfa.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/utf8.h"

enum { EDGE_RANGE = -1 }; /* else an fsm_when */

typedef struct fsm_edge {
    int kind, to, next;
    uint32_t lo, hi;
} fsm_edge;

typedef struct fsm_node {
    int edges; /* -1 at the end */
    bool accepts;
} fsm_node;

struct fsm {
    buf nodes, edges; /* fsm_node, fsm_edge */
    bool too_many;
};

static fsm_node *node_at(const fsm *f, int i)
{
    return (fsm_node *)(void *)f->nodes.data + i;
}

static const fsm_edge *edge_at(const fsm *f, int i)
{
    return (const fsm_edge *)(const void *)f->edges.data + i;
}

int fsm_n_states(const fsm *f)
{
    return (int)(f->nodes.len / sizeof(fsm_node));
}

fsm *fsm_new(void)
{
    fsm *f = calloc(1, sizeof *f);
    if (f) fsm_state(f);
    return f;
}

void fsm_free(fsm *f)
{
    if (!f) return;
    buf_done(&f->nodes);
    buf_done(&f->edges);
    free(f);
}

int fsm_state(fsm *f)
{
    int n = fsm_n_states(f);
    if (n >= FSM_STATES_MAX) f->too_many = true;
    if (f->too_many || buf_append(&f->nodes, &(fsm_node){.edges = -1}, sizeof(fsm_node)) != 0) return 0;
    return n;
}

static void add_edge(fsm *f, int from, fsm_edge e)
{
    if (f->too_many || f->nodes.failed) return;
    int n = (int)(f->edges.len / sizeof(fsm_edge));
    e.next = node_at(f, from)->edges;
    if (buf_append(&f->edges, &e, sizeof e) == 0) node_at(f, from)->edges = n;
}

void fsm_range(fsm *f, int from, uint32_t lo, uint32_t hi, int to)
{
    if (lo <= hi) add_edge(f, from, (fsm_edge){.kind = EDGE_RANGE, .to = to, .lo = lo, .hi = hi});
}

void fsm_jump(fsm *f, int from, fsm_when when, int to)
{
    add_edge(f, from, (fsm_edge){.kind = (int)when, .to = to});
}

void fsm_accept(fsm *f, int state)
{
    if (!f->nodes.failed) node_at(f, state)->accepts = true;
}

void dfa_free(dfa *d)
{
    if (!d) return;
    free(d->first);
    free(d->accepts);
    free(d->edges);
    free(d);
}

/* ---- making a dfa ----------------------------------------------------------------------------- */

/* States are found one after the other: state i has the key keys[i], some ints that say what it stands for
 * (a set of fsm states, or a pair); equal keys are one state. */
typedef struct maker {
    buf keys, key_at; /* int; size_t, one more than there are states */
    buf accepts, edges, first;
    int *index; /* open addressing */
    size_t index_cap;
    int n;
    uint64_t *work;
    int rc;
    shoal_err *err;
} maker;

static void maker_done(maker *m)
{
    buf_done(&m->keys);
    buf_done(&m->key_at);
    buf_done(&m->accepts);
    buf_done(&m->edges);
    buf_done(&m->first);
    free(m->index);
}

bool dfa_spend(uint64_t *left, uint64_t work)
{
    bool enough = *left > work;
    progress_add(64 * work);
    *left -= enough ? work : *left;
    return enough;
}

static int maker_fail(maker *m, int rc)
{
    if (m->rc) return -1;
    m->rc = rc == SHOAL_ENOMEM
                ? err_nomem(m->err)
                : err_set(m->err, rc, "is too complex: more than %d states, or too much work for them",
                          DFA_STATES_MAX);
    return -1;
}

static bool maker_works(maker *m, uint64_t work)
{
    if (m->rc) return false;
    if (!dfa_spend(m->work, work)) maker_fail(m, SHOAL_ELIMIT);
    return m->rc == 0;
}

static const int *key_of(const maker *m, int i, size_t *ret_n)
{
    const size_t *at = (const size_t *)(const void *)m->key_at.data + i;
    *ret_n = at[1] - at[0];
    return (const int *)(const void *)m->keys.data + at[0];
}

static uint64_t hash_ints(const int *v, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = rng_mix(h ^ (uint32_t)v[i]);
    return h;
}

static bool maker_index(maker *m)
{
    if (m->index_cap && (size_t)m->n * 2 < m->index_cap) return true;
    size_t cap = m->index_cap ? m->index_cap * 2 : 64;
    int *index = malloc(cap * sizeof *index);
    if (!index) return false;
    memset(index, 0xFF, cap * sizeof *index);
    for (int i = 0; i < m->n; i++) {
        size_t n;
        const int *key = key_of(m, i, &n);
        size_t at = hash_ints(key, n) & (cap - 1);
        while (index[at] >= 0) at = (at + 1) & (cap - 1);
        index[at] = i;
    }
    free(m->index);
    m->index = index;
    m->index_cap = cap;
    return true;
}

/* The state of this key; -1 on failure. */
static int maker_state(maker *m, const int *key, size_t n, bool accepts)
{
    if (m->rc || !maker_works(m, n + 4)) return -1;
    if (!maker_index(m)) return maker_fail(m, SHOAL_ENOMEM);
    size_t at = hash_ints(key, n) & (m->index_cap - 1);
    for (; m->index[at] >= 0; at = (at + 1) & (m->index_cap - 1)) {
        size_t have;
        const int *k = key_of(m, m->index[at], &have);
        if (have == n && (n == 0 || memcmp(k, key, n * sizeof *k) == 0)) return m->index[at];
    }
    if (m->n == DFA_STATES_MAX) return maker_fail(m, SHOAL_ELIMIT);
    if (m->n == 0) buf_append(&m->key_at, &(size_t){0}, sizeof(size_t));
    buf_append(&m->keys, key, n * sizeof *key);
    buf_append(&m->key_at, &(size_t){m->keys.len / sizeof *key}, sizeof(size_t));
    buf_append(&m->accepts, &accepts, sizeof accepts);
    if (m->keys.failed || m->key_at.failed || m->accepts.failed) return maker_fail(m, SHOAL_ENOMEM);
    m->index[at] = m->n;
    return m->n++;
}

static void maker_begin_edges(maker *m)
{
    int n = (int)(m->edges.len / sizeof(dfa_edge));
    if (buf_append(&m->first, &n, sizeof n)) maker_fail(m, SHOAL_ENOMEM);
}

/* Edges come in order; one that goes on where the last one ended is joined to it. */
static void maker_edge(maker *m, uint32_t lo, uint32_t hi, int to)
{
    size_t n = m->edges.len / sizeof(dfa_edge);
    int first = ((const int *)(const void *)m->first.data)[m->first.len / sizeof(int) - 1];
    dfa_edge *last = n > (size_t)first ? (dfa_edge *)(void *)m->edges.data + n - 1 : NULL;
    if (!maker_works(m, 1)) return;
    if (last && last->to == to && last->hi + 1 == lo) {
        last->hi = hi;
    } else if (buf_append(&m->edges, &(dfa_edge){lo, hi, to}, sizeof(dfa_edge))) {
        maker_fail(m, SHOAL_ENOMEM);
    }
}

/* Which states reach an end: turned over and over until nothing changes, last states first, since edges
 * mostly lead on to later states. */
static void find_live(maker *m, const int *first, bool *live)
{
    const dfa_edge *edges = (const void *)m->edges.data;
    for (int i = 0; i < m->n; i++) live[i] = m->accepts.data[i];
    for (bool changed = true; changed && maker_works(m, m->edges.len / sizeof *edges);) {
        changed = false;
        for (int i = m->n - 1; i >= 0; i--) {
            for (int e = first[i]; e < first[i + 1] && !live[i]; e++)
                if (live[edges[e].to]) changed = live[i] = true;
        }
    }
}

/* Keep live states, renumbered in order; number[i] -1 for the others. */
static int grammar_dfa_fill(dfa *d, const maker *m, const int *first, const bool *live, int *number)
{
    const dfa_edge *edges = (const void *)m->edges.data;
    int n_edges = 0;
    for (int i = 0; i < m->n; i++) number[i] = live[i] && live[0] ? d->n++ : -1;
    d->first = calloc((size_t)d->n + 1, sizeof *d->first);
    d->accepts = calloc((size_t)d->n + 1, sizeof *d->accepts);
    d->edges = calloc(m->edges.len / sizeof *edges + 1, sizeof *d->edges);
    if (!d->first || !d->accepts || !d->edges) return SHOAL_ENOMEM;
    for (int i = 0; i < m->n; i++) {
        if (number[i] < 0) continue;
        d->first[number[i]] = n_edges;
        d->accepts[number[i]] = m->accepts.data[i];
        for (int e = first[i]; e < first[i + 1]; e++)
            if (number[edges[e].to] >= 0)
                d->edges[n_edges++] = (dfa_edge){edges[e].lo, edges[e].hi, number[edges[e].to]};
    }
    d->first[d->n] = n_edges;
    return 0;
}

static int maker_finish(maker *m, dfa **ret)
{
    maker_begin_edges(m);
    if (m->rc) return m->rc;
    dfa *d = calloc(1, sizeof *d);
    bool *live = calloc((size_t)m->n + 1, sizeof *live);
    int *number = calloc((size_t)m->n + 1, sizeof *number);
    int rc = d && live && number ? 0 : SHOAL_ENOMEM;
    if (rc == 0) {
        find_live(m, (const int *)(const void *)m->first.data, live);
        rc = grammar_dfa_fill(d, m, (const int *)(const void *)m->first.data, live, number);
    }
    free(live);
    free(number);
    if (rc) maker_fail(m, rc);
    if (m->rc == 0)
        *ret = d;
    else
        dfa_free(d);
    return m->rc;
}

/* ---- subset construction ---------------------------------------------------------------------- */

typedef struct subsets {
    const fsm *f;
    maker *m;
    int *set;       /* fsm states, sorted when done */
    uint32_t *seen; /* per fsm state, == stamp: in the set */
    uint32_t stamp;
    buf cuts; /* uint32_t */
} subsets;

static void set_put(subsets *s, size_t *n, int state)
{
    if (s->seen[state] == s->stamp) return;
    s->seen[state] = s->stamp;
    s->set[(*n)++] = state;
}

/* Follow jumps; `$` only when at_end. */
static void set_close(subsets *s, size_t *n, bool at_begin, bool at_end)
{
    uint64_t work = 0;
    for (size_t i = 0; i < *n; i++) {
        for (int e = node_at(s->f, s->set[i])->edges; e >= 0; e = edge_at(s->f, e)->next, work++) {
            const fsm_edge *edge = edge_at(s->f, e);
            if (edge->kind == FSM_ALWAYS || (edge->kind == FSM_AT_BEGIN && at_begin) ||
                (edge->kind == FSM_AT_END && at_end))
                set_put(s, n, edge->to);
        }
    }
    maker_works(s->m, work);
}

static int compare_ints(const void *x, const void *y)
{
    const int *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

static int compare_codes(const void *x, const void *y)
{
    const uint32_t *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

/* The dfa state of the n fsm states in s->set. At the begin of the text is a state of its own: its key ends
 * in -1. */
static int set_state(subsets *s, size_t n, bool at_begin)
{
    set_close(s, &n, at_begin, false);
    size_t n_key = n;
    bool accepts = false;
    set_close(s, &n, at_begin, true);
    for (size_t i = 0; i < n; i++) accepts |= node_at(s->f, s->set[i])->accepts;
    qsort(s->set, n_key, sizeof *s->set, compare_ints);
    if (at_begin) s->set[n_key++] = -1;
    return maker_state(s->m, s->set, n_key, accepts);
}

/* Where the ranges of these states begin and where they have ended, sorted, each once. */
static size_t find_cuts(subsets *s, const int *key, size_t n)
{
    buf_clear(&s->cuts);
    for (size_t i = 0; i < n; i++) {
        if (key[i] < 0) continue;
        for (int e = node_at(s->f, key[i])->edges; e >= 0; e = edge_at(s->f, e)->next) {
            if (edge_at(s->f, e)->kind != EDGE_RANGE) continue;
            uint32_t pair[2] = {edge_at(s->f, e)->lo, edge_at(s->f, e)->hi + 1};
            if (buf_append(&s->cuts, pair, sizeof pair)) maker_fail(s->m, SHOAL_ENOMEM);
        }
    }
    uint32_t *cuts = (void *)s->cuts.data;
    size_t n_cuts = s->cuts.len / sizeof *cuts, kept = 0;
    if (n_cuts == 0) return 0;
    maker_works(s->m, n_cuts * 4);
    qsort(cuts, n_cuts, sizeof *cuts, compare_codes);
    for (size_t i = 0; i < n_cuts; i++)
        if (kept == 0 || cuts[kept - 1] != cuts[i]) cuts[kept++] = cuts[i];
    return kept;
}

static void set_step(subsets *s, int state, uint32_t lo, uint32_t hi)
{
    size_t n_key, n = 0;
    const int *key = key_of(s->m, state, &n_key);
    s->stamp++;
    for (size_t i = 0; i < n_key; i++) {
        if (key[i] < 0) continue;
        for (int e = node_at(s->f, key[i])->edges; e >= 0; e = edge_at(s->f, e)->next) {
            const fsm_edge *edge = edge_at(s->f, e);
            if (edge->kind == EDGE_RANGE && edge->lo <= lo && edge->hi >= hi) set_put(s, &n, edge->to);
        }
    }
    maker_works(s->m, n_key * 2);
    if (n == 0) return;
    int to = set_state(s, n, false);
    if (to >= 0) maker_edge(s->m, lo, hi, to);
}

static void determine(subsets *s)
{
    size_t n = 0;
    s->stamp = 1;
    set_put(s, &n, 0);
    set_state(s, n, true);
    for (int i = 0; i < s->m->n && s->m->rc == 0; i++) {
        size_t n_key;
        const int *key = key_of(s->m, i, &n_key);
        size_t n_cuts = find_cuts(s, key, n_key);
        maker_begin_edges(s->m);
        for (size_t k = 0; k + 1 < n_cuts && s->m->rc == 0; k++) {
            const uint32_t *cuts = (const void *)s->cuts.data;
            set_step(s, i, cuts[k], cuts[k + 1] - 1);
        }
    }
}

int fsm_determine(dfa **ret, const fsm *f, uint64_t *work, shoal_err *err)
{
    if (f->nodes.failed || f->edges.failed) return err_nomem(err);
    if (f->too_many) return err_set(err, SHOAL_ELIMIT, "is too complex: more than %d states", FSM_STATES_MAX);
    maker m = {.work = work, .err = err};
    size_t n = (size_t)fsm_n_states(f) + 1;
    subsets s = {.f = f, .m = &m, .set = calloc(n, sizeof *s.set), .seen = calloc(n, sizeof *s.seen)};
    int rc = s.set && s.seen ? 0 : err_nomem(err);
    if (rc == 0) {
        if (maker_works(&m, n + f->edges.len / sizeof(fsm_edge))) determine(&s);
        rc = maker_finish(&m, ret);
    }
    free(s.set);
    free(s.seen);
    buf_done(&s.cuts);
    maker_done(&m);
    return rc;
}

/* ---- products --------------------------------------------------------------------------------- */

/* Edges of the pair (a's state x, b's state y); y -1: b has no such text any more. */
static void pair_edges(maker *m, const dfa *a, const dfa *b, int x, int y, dfa_op op)
{
    int eb = y >= 0 ? b->first[y] : 0, end = y >= 0 ? b->first[y + 1] : 0;
    for (int ea = a->first[x]; ea < a->first[x + 1]; ea++) {
        uint32_t lo = a->edges[ea].lo, last = a->edges[ea].hi;
        while (lo <= last && m->rc == 0) {
            while (eb < end && b->edges[eb].hi < lo) eb++;
            bool in_b = eb < end && b->edges[eb].lo <= lo;
            uint32_t hi = in_b ? b->edges[eb].hi : eb < end ? b->edges[eb].lo - 1 : last;
            if (hi > last) hi = last;
            int key[2] = {a->edges[ea].to, in_b ? b->edges[eb].to : -1};
            if (in_b || op == DFA_MINUS) {
                bool both = a->accepts[key[0]] &&
                            (op == DFA_MINUS ? !(in_b && b->accepts[key[1]]) : b->accepts[key[1]]);
                int to = maker_state(m, key, 2, both);
                if (to >= 0) maker_edge(m, lo, hi, to);
            }
            lo = hi + 1;
        }
    }
}

int dfa_combine(dfa **ret, const dfa *a, const dfa *b, dfa_op op, uint64_t *work, shoal_err *err)
{
    maker m = {.work = work, .err = err};
    bool b_any = b->n > 0;
    if (a->n > 0 && (b_any || op == DFA_MINUS)) {
        int key[2] = {0, b_any ? 0 : -1};
        bool in_b = b_any && b->accepts[0];
        maker_state(&m, key, 2, a->accepts[0] && (op == DFA_MINUS ? !in_b : in_b));
    }
    for (int i = 0; i < m.n && m.rc == 0; i++) {
        size_t n;
        const int *key = key_of(&m, i, &n);
        int x = key[0], y = key[1];
        maker_begin_edges(&m);
        pair_edges(&m, a, b, x, y, op);
    }
    int rc = maker_finish(&m, ret);
    maker_done(&m);
    return rc;
}

int dfa_length(dfa **ret, int64_t least, int64_t most, uint64_t *work, shoal_err *err)
{
    fsm *f = fsm_new();
    if (!f) return err_nomem(err);
    int at = 0;
    for (int64_t i = 0; i < (most < 0 ? least : most); i++) {
        if (i >= least) fsm_accept(f, at);
        int to = fsm_state(f);
        fsm_range(f, at, 0, CODE_MAX, to);
        at = to;
    }
    fsm_accept(f, at);
    if (most < 0) fsm_range(f, at, 0, CODE_MAX, at);
    int rc = fsm_determine(ret, f, work, err);
    fsm_free(f);
    return rc;
}

/* The longest way to each state, in the order of a topological sort: states of a cycle are never due. */
bool dfa_is_long(const dfa *d, int n)
{
    int *waits = calloc((size_t)d->n + 1, sizeof *waits), *length = calloc((size_t)d->n + 1, sizeof *length);
    int *due = calloc((size_t)d->n + 1, sizeof *due), n_due = 0, longest = 0;
    bool known = waits && length && due;
    for (int e = 0; known && d->n > 0 && e < d->first[d->n]; e++) waits[d->edges[e].to]++;
    if (known && d->n > 0 && waits[0] == 0) due[n_due++] = 0;
    for (int i = 0; i < n_due; i++) {
        if (length[due[i]] > longest) longest = length[due[i]];
        for (int e = d->first[due[i]]; e < d->first[due[i] + 1]; e++) {
            int to = d->edges[e].to;
            if (length[due[i]] + 1 > length[to]) length[to] = length[due[i]] + 1;
            if (--waits[to] == 0) due[n_due++] = to;
        }
    }
    known = known && n_due == d->n;
    free(waits);
    free(length);
    free(due);
    return !known || longest >= n;
}

bool dfa_matches(const dfa *d, const char *utf8, size_t n)
{
    int at = d->n > 0 ? 0 : -1;
    for (size_t i = 0; i < n && at >= 0;) {
        uint32_t cp;
        size_t len = utf8_decode(utf8 + i, n - i, &cp);
        if (len == 0) return false;
        i += len;
        int e = d->first[at];
        while (e < d->first[at + 1] && d->edges[e].hi < cp) e++;
        at = e < d->first[at + 1] && d->edges[e].lo <= cp ? d->edges[e].to : -1;
    }
    return at >= 0 && d->accepts[at];
}
