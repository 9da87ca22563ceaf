/* grammar_ahead.c: expressions with lookaheads and word edges.
 *
 * What a text may be from some place on follows from what the expression still wants there: its tail. A tree
 * is turned into sets of texts from its end: the tail of "ab" before the tail t is that of a before that of b
 * before t. A lookahead cuts the tail with the texts that begin as it wants, $ leaves the empty one. ^ and \b
 * depend on what was read last, so a tail is three sets: for the begin of the text, behind a word's
 * character, and behind another. (Brzozowski's derivatives do the same from the begin: J. ACM 11, 1964.) */
#include <stdlib.h>

#include "grammar/automaton/grammar_pattern_impl.h"

#define UNROLL_MAX 64  /* copies of a repeated part that asserts something */
#define STEP_WORK  20  /* of a node that is looked at, though it makes nothing */
#define KEEP_WORK  100 /* of a set that is kept, though it is empty */

enum { AT_BEGIN, AFTER_WORD, AFTER_OTHER, PLACES };

typedef struct tail {
    const dfa *of[PLACES]; /* often one and the same */
} tail;

typedef struct maker {
    const regex *r;
    buf made; /* dfa *: all that are freed at the end */
    const dfa *all, *empty, *none, *ends[PLACES], *begins_word;
    uint64_t *work;
    shoal_err *err;
    int rc;
} maker;

static tail grammar_ahead_make(maker *m, int i, tail t);

static bool works(maker *m, uint64_t work)
{
    if (m->rc == 0 && !dfa_spend(m->work, work))
        m->rc = err_set(m->err, SHOAL_ELIMIT, "is too complex: too much work for its lookaheads and edges");
    return m->rc == 0;
}

/* ---- sets ---------------------------------------------------------------------------------------- */

static const dfa *grammar_ahead_keep(maker *m, int rc, dfa *d)
{
    if (rc == 0 && buf_append(&m->made, &d, sizeof d) != 0) {
        dfa_free(d);
        rc = err_nomem(m->err);
    }
    if (rc != 0 && m->rc == 0) m->rc = rc;
    return works(m, KEEP_WORK) ? d : NULL;
}

static const dfa *determined(maker *m, fsm *f)
{
    dfa *d = NULL;
    int rc = m->rc ? m->rc : f ? fsm_determine(&d, f, m->work, m->err) : err_nomem(m->err);
    fsm_free(f);
    return grammar_ahead_keep(m, rc, d);
}

static const dfa *combined(maker *m, const dfa *a, const dfa *b, dfa_op op)
{
    dfa *d = NULL;
    if (m->rc) return NULL;
    int rc = dfa_combine(&d, a, b, op, m->work, m->err);
    return grammar_ahead_keep(m, rc, d);
}

static bool has_empty(const dfa *d)
{
    return d && d->n > 0 && d->accepts[0];
}

/* A copy of d behind `from`; where it may end, it goes on to `to`, or accepts (to < 0). */
static void embed(fsm *f, int from, const dfa *d, int to)
{
    if (!d || d->n == 0) return;
    int base = fsm_n_states(f);
    for (int i = 0; i < d->n; i++) fsm_state(f);
    for (int i = 0; i < d->n; i++) {
        for (int k = d->first[i]; k < d->first[i + 1]; k++)
            fsm_range(f, base + i, d->edges[k].lo, d->edges[k].hi, base + d->edges[k].to);
        if (!d->accepts[i]) continue;
        if (to < 0)
            fsm_accept(f, base + i);
        else
            fsm_jump(f, base + i, FSM_ALWAYS, to);
    }
    fsm_jump(f, from, FSM_ALWAYS, base);
}

static const dfa *either(maker *m, const dfa *a, const dfa *b)
{
    if (a == b) return a;
    fsm *f = m->rc ? NULL : fsm_new();
    if (f) embed(f, 0, a, -1), embed(f, 0, b, -1);
    return determined(m, f);
}

/* The texts of `body`, each followed by one of the tail that its last character asks for. */
static const dfa *followed(maker *m, const dfa *body, tail t, int place)
{
    bool alike = t.of[AFTER_WORD] == t.of[AFTER_OTHER], all = alike && t.of[place] == t.of[AFTER_WORD];
    const dfa *part[PLACES] = {NULL, NULL, NULL};
    if (all)
        part[AFTER_WORD] = body;
    else
        for (int k = AFTER_WORD; k < PLACES; k++) part[k] = combined(m, body, m->ends[k], DFA_AND);
    fsm *f = m->rc ? NULL : fsm_new();
    for (int k = AFTER_WORD; f && k < PLACES; k++) {
        if (!part[k]) continue;
        int to = fsm_state(f);
        embed(f, 0, part[k], to);
        embed(f, to, t.of[k], -1);
    }
    if (f && !all && has_empty(body)) embed(f, 0, t.of[place], -1);
    return determined(m, f);
}

/* ---- the tree ------------------------------------------------------------------------------------ */

static tail with_body(maker *m, const dfa *body, tail t)
{
    tail out = {{NULL}};
    for (int k = 0; k < PLACES && m->rc == 0; k++)
        out.of[k] = k > 0 && t.of[k] == t.of[k - 1] ? out.of[k - 1] : followed(m, body, t, k);
    return out;
}

static tail make_plain(maker *m, int i, tail t)
{
    fsm *f = m->rc ? NULL : fsm_new();
    if (f) fsm_accept(f, pattern_write(m->r, f, i, 0));
    const dfa *body = determined(m, f);
    return m->rc ? t : with_body(m, body, t);
}

static tail make_or(maker *m, node n, tail t)
{
    tail a = grammar_ahead_make(m, n.a, t), b = grammar_ahead_make(m, n.b, t);
    tail out = a;
    for (int k = 0; k < PLACES && m->rc == 0; k++) {
        bool again = k > 0 && a.of[k] == a.of[k - 1] && b.of[k] == b.of[k - 1];
        out.of[k] = again ? out.of[k - 1] : either(m, a.of[k], b.of[k]);
    }
    return out;
}

static tail make_repeat(maker *m, node n, tail t)
{
    tail out = t;
    if (n.max == NO_MAX || n.max > UNROLL_MAX) {
        if (m->rc == 0)
            m->rc =
                err_set(m->err, SHOAL_EUNSUPPORTED,
                        "repeats a lookahead, ^, $, \\b or \\B more than %d times, which is not supported",
                        UNROLL_MAX);
        return t;
    }
    for (int k = n.max; k > 0 && m->rc == 0; k--) { /* the last first: it is before t */
        out = grammar_ahead_make(m, n.a, out);
        for (int p = 0; k > n.min && p < PLACES && m->rc == 0; p++) out.of[p] = either(m, out.of[p], t.of[p]);
    }
    return out;
}

static tail make_ahead(maker *m, node n, tail t)
{
    tail wanted = grammar_ahead_make(m, n.a, (tail){{m->all, m->all, m->all}}), out = t;
    for (int k = 0; k < PLACES && m->rc == 0; k++) {
        bool again = k > 0 && t.of[k] == t.of[k - 1] && wanted.of[k] == wanted.of[k - 1];
        out.of[k] = again ? out.of[k - 1]
                          : combined(m, t.of[k], wanted.of[k], n.kind == N_AHEAD ? DFA_AND : DFA_MINUS);
    }
    return out;
}

/* Behind a word's character the word must end (\b) or go on; elsewhere one must begin, or not. */
static tail make_edge(maker *m, node n, tail t)
{
    for (int k = 0; k < PLACES && m->rc == 0; k++) {
        bool begins = (k == AFTER_WORD) == (n.kind == N_NO_EDGE);
        t.of[k] = combined(m, t.of[k], m->begins_word, begins ? DFA_AND : DFA_MINUS);
    }
    return t;
}

static tail grammar_ahead_make(maker *m, int i, tail t)
{
    node n = pattern_node(m->r, i);
    if (!works(m, STEP_WORK)) return t;
    if (!n.asserts) return n.kind == N_EMPTY ? t : make_plain(m, i, t);
    switch (n.kind) {
    case N_BEGIN: return (tail){{t.of[AT_BEGIN], m->none, m->none}};
    case N_END:
        for (int k = 0; k < PLACES; k++) t.of[k] = has_empty(t.of[k]) ? m->empty : m->none;
        return t;
    case N_THEN: return grammar_ahead_make(m, n.a, grammar_ahead_make(m, n.b, t));
    case N_OR: return make_or(m, n, t);
    case N_REPEAT: return make_repeat(m, n, t);
    case N_AHEAD:
    case N_NOT_AHEAD: return make_ahead(m, n, t);
    case N_EDGE:
    case N_NO_EDGE: return make_edge(m, n, t);
    case N_EMPTY:
    case N_CLASS: break;
    }
    return t;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static void word_range(fsm *f, int from, int to, bool word)
{
    static const range WORD[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    uint32_t next = 0;
    for (size_t i = 0; i < sizeof WORD / sizeof *WORD; i++) {
        if (word)
            fsm_range(f, from, WORD[i].lo, WORD[i].hi, to);
        else
            fsm_range(f, from, next, WORD[i].lo - 1, to);
        next = WORD[i].hi + 1;
    }
    if (!word) fsm_range(f, from, next, CODE_MAX, to);
}

/* Texts of which the first (`first`) or the last character is one of a word, or is not. */
static const dfa *of_characters(maker *m, bool first, bool word)
{
    fsm *f = fsm_new();
    if (f) {
        int end = fsm_state(f);
        word_range(f, 0, end, word);
        fsm_range(f, first ? end : 0, 0, CODE_MAX, first ? end : 0);
        fsm_accept(f, end);
    }
    return determined(m, f);
}

static void grammar_ahead_prepare(maker *m)
{
    fsm *f = fsm_new();
    if (f) fsm_accept(f, 0);
    m->empty = determined(m, f);
    m->none = m->rc ? NULL : combined(m, m->empty, m->empty, DFA_MINUS);
    dfa *all = NULL;
    int rc = m->rc ? m->rc : dfa_length(&all, 0, -1, m->work, m->err);
    m->all = grammar_ahead_keep(m, rc, all);
    m->ends[AFTER_WORD] = m->rc ? NULL : of_characters(m, false, true);
    m->ends[AFTER_OTHER] = m->rc ? NULL : of_characters(m, false, false);
    m->begins_word = m->rc ? NULL : of_characters(m, true, true);
}

/* Texts that hold the whole expression, wherever it begins in them. */
static const dfa *searched(maker *m, tail t)
{
    bool anchored = t.of[AFTER_WORD]->n == 0 && t.of[AFTER_OTHER]->n == 0;
    return anchored ? t.of[AT_BEGIN] : followed(m, m->all, t, AT_BEGIN);
}

int ahead_compile(dfa **ret, const regex *r, int root, uint64_t *work, shoal_err *err)
{
    maker m = {.r = r, .work = work, .err = err};
    grammar_ahead_prepare(&m);
    tail t = m.rc ? (tail){{NULL}} : grammar_ahead_make(&m, root, (tail){{m.all, m.all, m.all}});
    const dfa *found = m.rc ? NULL : searched(&m, t);
    for (size_t i = 0; i < m.made.len / sizeof(dfa *); i++) {
        dfa *d = ((dfa **)(void *)m.made.data)[i];
        if (d == found && m.rc == 0)
            *ret = d; /* it is in the list once */
        else
            dfa_free(d);
    }
    buf_done(&m.made);
    return m.rc;
}
