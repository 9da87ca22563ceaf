/* ground_piece.c: the clauses of a sentence together: what one lends another, what a prohibition covers, what
 * a correction takes back. */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

#define CHUNKS_MAX 16

typedef struct piece {
    clause *c;
    bool has_cue, scope;  /* scope: joined by "and", a prohibition before it covers it too */
    bool forbidden, done; /* done: it was an exception of a group */
    bool corrects;        /* "no, ...": the piece before does not count */
    bool comma;           /* set off by a comma */
    bool alternative;     /* joined by "or" */
    bool contrast;        /* joined by "but" */
    bool colon;           /* behind a colon: what stands before it may say who says so, or what for */
} piece;

static bool ground_piece_is_empty(const clause_rest *r)
{
    return !entity_mention_says_target(&r->what) && !r->n_values && !r->n_strange && !r->n_except &&
           !r->forbidden && !r->later && !r->withdrawn;
}

static clause_rest *copy_rest(grounder *g, const clause_rest *from, const clause_rest *values)
{
    clause_rest *r = task_new_rest(g);
    if (g->nomem) return r;
    *r = *from;
    if (!values || r->n_values) return r;
    memcpy(r->values, values->values, sizeof r->values);
    r->n_values = values->n_values;
    return r;
}

static const clause_rest *rest_of(const piece *p)
{
    return p->has_cue ? &p->c->cues[0]->rest : &p->c->bare;
}

/* Something is forbidden. Of what it is said matters: it must not be done in the same breath. */
static void hold_back(grounder *g, const clause_rest *r)
{
    bool group;
    g->forbidden = true;
    entity_mention known = attempt_known_part(g, &r->what);
    device_set s = {{0}};
    if (entity_mention_says_target(&known))
        s = devices_find(&g->d, &known, UINT64_MAX, &group);
    else if (r->what.pronoun)
        s = g->last;
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) g->forbidden_targets.bits[i] |= s.bits[i];
    if (!device_set_count(&s)) g->forbidden_unsure = true;
    grounder_name_all(g, &s);
}

void piece_note_strange(grounder *g, const units *u, const clause_rest *r)
{
    if (!g->strange && r->first_strange != SIZE_MAX) { /* with the device beside it: "kitchen lamp" */
        size_t begin = u->at[r->first_strange].begin, end = u->at[r->first_strange].end;
        if (r->what.n && r->what.begin < begin) begin = r->what.begin;
        if (r->what.n && r->what.end > end) end = r->what.end;
        g->strange = grounder_slice(g, begin, end);
    }
    bool group;
    if (!entity_mention_says_target(&r->what)) return;
    entity_mention known = {0};
    for (size_t i = 0; i < r->what.n; i++)
        if (devices_know(&g->d, r->what.at[i])) known.at[known.n++] = r->what.at[i];
    if (!known.n) return;
    device_set s = devices_find(&g->d, &known, UINT64_MAX, &group);
    grounder_name_all(g, &s);
}

/* Words beside a request that name no device and hold nothing back: "the cows are coming". */
static bool is_chatter(const grounder *g, const units *u, const piece *p)
{
    const clause_rest *r = &p->c->bare;
    if (!p->comma || r->reported || r->n_values || r->n_except || r->contrast) return false;
    for (size_t i = p->c->from; i < p->c->to; i++) {
        const unit *x = &u->at[i];
        if (x->kind == UNIT_DEVICE) return false;
        if (x->kind != UNIT_WORD) continue;
        bool names = devices_know(&g->d, x->s) || devices_is_kind_word(g->lex, x->s, NULL) || x->state;
        if (names && !phrase_list_has_word(&g->lex->prepositions, x->s)) return false;
    }
    return r->n_strange > 0;
}

/* A clause without a cue: more devices for the cue before (or after) it, exceptions, or not understood. */
static void join_bare(grounder *g, const units *u, piece *p, size_t i, size_t n, const piece *cue)
{
    clause_rest *r = &p[i].c->bare;
    if (is_chatter(g, u, &p[i])) {
        g->chatter = true;
    } else if (r->n_strange || (!entity_mention_says_target(&r->what) && r->n_values)) {
        piece_note_strange(g, u, r);
        g->unclear = true;
    } else if (entity_mention_says_target(&r->what) && cue) {
        if (i + 1 < n && !p[i + 1].has_cue) task_inherit_kind(g, &r->what, &p[i + 1].c->bare.what);
        task_carry_out(g, cue->c, u, copy_rest(g, r, rest_of(cue)), i > 0 ? &rest_of(&p[i - 1])->what : NULL);
    } else if (r->n_except && !entity_mention_says_target(&r->what) && !g->n_tasks) {
        g->unclear = true; /* "except the lamp, turn everything off": of what it is left out comes later */
    } else if (entity_mention_says_target(&r->what)) {
        bool group;
        device_set s = devices_find(&g->d, &r->what, UINT64_MAX, &group);
        grounder_name_all(g, &s);
        g->unclear = true;
    }
}

static const piece *cue_for(const piece *p, size_t i, size_t n)
{
    for (size_t k = i; k-- > 0;)
        if (p[k].has_cue) return &p[k];
    for (size_t k = i + 1; k < n; k++)
        if (p[k].has_cue) return &p[k];
    return NULL;
}

static void give_values(clause_rest *to, const clause_rest *from, bool instead)
{
    if (instead) to->n_values = 0;
    for (size_t v = 0; v < from->n_values && to->n_values < CLAUSE_VALUES_MAX; v++)
        to->values[to->n_values++] = from->values[v];
}

/* "turn the lamp red, 40%": values of later clauses belong to the one before them; after "no," instead of its
 * own. */
static void gather_values(grounder *g, piece *p, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        clause_rest *r = &p[i].c->bare;
        size_t to = i - 1;
        while (to > 0 && p[to].done) to--;
        bool only_values =
            !p[i].has_cue && r->n_values && !entity_mention_says_target(&r->what) && !r->n_strange;
        if (!only_values || !entity_mention_says_target(&rest_of(&p[to])->what)) continue;
        for (size_t k = 0; k < p[to].c->n_cues; k++) give_values(&p[to].c->cues[k]->rest, r, p[i].corrects);
        give_values(&p[to].c->bare, r, p[i].corrects);
        g->nomem |= clause_read_bare(p[to].c, &g->d, g->a) != 0;
        p[to].has_cue = p[to].c->n_cues > 0;
        p[i].done = true;
        p[i].corrects = false;
        r->n_values = 0;
    }
}

/* "everything but the tv": what stands behind "but" is left out, or it is not clear what it is for. */
static void gather_contrasts(grounder *g, piece *p, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (!p[i].contrast || !entity_mention_says_target(&p[i].c->bare.what) || p[i].c->bare.forbidden)
            continue;
        const entity_mention *m = &rest_of(&p[i - 1])->what;
        bool group = m->all || m->everything || m->plural;
        if (p[i].has_cue && !(group && p[i].c->cues[0]->rest.only_state && !p[i - 1].has_cue)) continue;
        if (p[i].has_cue || !group || !p[i - 1].has_cue) {
            g->unclear = true;
            continue;
        }
        for (size_t k = 0; k < p[i - 1].c->n_cues; k++) {
            clause_rest *to = &p[i - 1].c->cues[k]->rest;
            if (to->n_except < CLAUSE_EXCEPT_MAX) to->except[to->n_except++] = p[i].c->bare.what;
        }
        p[i].done = true;
    }
}

/* "all lights except the lamp and the fan": the second is an exception too. */
static void gather_exceptions(piece *p, size_t n)
{
    for (size_t i = 1; i < n; i++) { /* "all lights except the lamp and the fan off" */
        clause_rest *group = &p[i - 1].c->bare;
        bool waits = !p[i - 1].has_cue && group->n_except && group->n_except < CLAUSE_EXCEPT_MAX;
        if (!waits || !p[i].has_cue || !p[i].c->cues[0]->rest.only_state ||
            !entity_mention_says_target(&p[i].c->bare.what))
            continue;
        group->except[group->n_except++] = p[i].c->cues[0]->rest.what;
        for (size_t k = 0; k < p[i].c->n_cues; k++) {
            p[i].c->cues[k]->rest.what = (entity_mention){0};
            p[i].c->cues[k]->rest.n_whole = 0;
        }
    }
    piece *cue = NULL;
    for (size_t i = 0; i < n; i++) {
        const entity_mention *m = &p[i].c->bare.what;
        const clause_rest *r = &p[i].c->bare;
        if (i > 0 && p[i - 1].has_cue && !p[i].has_cue && r->n_except && !entity_mention_says_target(m) &&
            !r->n_strange) {
            for (size_t k = 0; k < p[i - 1].c->n_cues; k++) {
                clause_rest *to = &p[i - 1].c->cues[k]->rest;
                for (size_t e = 0; e < r->n_except && to->n_except < CLAUSE_EXCEPT_MAX; e++)
                    to->except[to->n_except++] = r->except[e];
            }
            p[i].done = true;
            cue = &p[i - 1];
        } else if (p[i].has_cue) {
            cue = p[i].c->cues[0]->rest.n_except ? &p[i] : NULL;
        } else if (cue && entity_mention_says_target(m) && !p[i].c->bare.n_strange) {
            for (size_t k = 0; k < cue->c->n_cues; k++) {
                clause_rest *to = &cue->c->cues[k]->rest;
                if (to->n_except && to->n_except < CLAUSE_EXCEPT_MAX) to->except[to->n_except++] = *m;
            }
            p[i].done = true;
        } else {
            cue = NULL;
        }
    }
}

/* "every light downstairs, off": the devices stood before the cue and were seen to with it. */
static bool is_served(const piece *p, size_t i)
{
    const clause_rest *r = &p[i].c->cues[0]->rest;
    bool before = false;
    for (size_t k = 0; k < i; k++) {
        if (p[k].has_cue) return false;
        before = before || entity_mention_says_target(&p[k].c->bare.what);
    }
    return before && !entity_mention_says_target(&r->what) && !r->what.pronoun;
}

/* "lock and unlock the door": the device stands behind the second cue. */
static bool lends_target(const grounder *g, const piece *p, size_t i, size_t n)
{
    bool before = device_set_count(&g->last) && !g->earlier;
    if (!p[i].has_cue || i + 1 >= n || !p[i + 1].has_cue || before) return false;
    const clause_rest *own = &p[i].c->cues[0]->rest, *next = &p[i + 1].c->cues[0]->rest;
    return !entity_mention_says_target(&own->what) && !own->what.pronoun && !own->n_values &&
           !own->n_strange && entity_mention_says_target(&next->what);
}

/* "unlock it, no, lock it": the piece before does not count. */
static void take_back(grounder *g)
{
    g->n_tasks = g->task_mark;
    g->n_problems = g->problem_mark;
    g->left_out = (device_set){{0}};
}

static void run_piece(grounder *g, const units *u, piece *p, size_t i, size_t n)
{
    const clause_rest *r = rest_of(&p[i]);
    if (p[i].corrects) take_back(g);
    if (p[i].colon && i > 0 && (rest_of(&p[i - 1])->n_strange || g->n_problems > g->problem_mark))
        g->unclear = true;
    g->task_mark = g->n_tasks;
    g->problem_mark = g->n_problems;
    if (r->withdrawn) g->withdrawn = true;
    if (r->reported) g->unclear = true;
    if (r->later) g->later = true;
    if (r->n_except || r->contrast || r->n_values || p[i].contrast) g->limited = true;
    bool covered = i > 0 && (p[i].scope || !p[i].has_cue) && p[i - 1].forbidden &&
                   (!p[i].has_cue || !rest_of(&p[i - 1])->keeps);
    p[i].forbidden = r->forbidden || covered;
    if (p[i].forbidden || r->later) {
        if (p[i].forbidden)
            hold_back(g, r);
        else
            piece_note_strange(g, u, r);
    } else if (p[i].alternative) {
        piece_note_strange(g, u, r);
        g->unclear = true;
    } else if (p[i].has_cue && is_served(p, i)) {
        return;
    } else if (lends_target(g, p, i, n)) {
        task_carry_out(g, p[i].c, u, copy_rest(g, &p[i + 1].c->cues[0]->rest, NULL), NULL);
    } else if (!p[i].has_cue) {
        if (!p[i].done) join_bare(g, u, p, i, n, cue_for(p, i, n));
    } else {
        if (i + 1 < n && !p[i + 1].has_cue)
            for (size_t k = 0; k < p[i].c->n_cues; k++)
                task_inherit_kind(g, &p[i].c->cues[k]->rest.what, &p[i + 1].c->bare.what);
        bool before = g->unclear;
        const entity_mention *kind_from = i > 0 ? &rest_of(&p[i - 1])->what : NULL;
        task_carry_out(g, p[i].c, u, NULL, kind_from);
        if (g->unclear && !before) piece_note_strange(g, u, r);
    }
}

/* "lamps 1 and 4": a number alone stands for the last word of the name before it. */
static void take_number_as_name(const grounder *g, const units *u, const entity_mention *before,
                                clause_rest *r)
{
    double v;
    if (entity_mention_says_target(&r->what) || r->n_values != 1 || r->values[0].choice || !before->n) return;
    const unit *x = &u->at[r->values[0].at];
    const char *last = before->at[before->n - 1];
    bool number = (last[0] >= '0' && last[0] <= '9') || lexicon_number(g->lex, last, &v);
    if (x->kind != UNIT_NUMBER || x->measure || !number || !devices_know(&g->d, x->s)) return;
    r->what = *before;
    r->what.at[r->what.n - 1] = x->s;
    r->what.plural = false;
    r->n_values = 0;
}

static void name_numbers(const grounder *g, const units *u, piece *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        entity_mention *m = p[i].has_cue ? &p[i].c->cues[0]->rest.what : &p[i].c->bare.what;
        bool numbered = m->n && m->at[m->n - 1][0] >= '0' && m->at[m->n - 1][0] <= '9';
        if (numbered && i + 1 < n)
            for (size_t k = 0; k < p[i].c->n_cues; k++) p[i].c->cues[k]->rest.what.plural = false;
        if (numbered && i + 1 < n) p[i].c->bare.what.plural = false;
        if (i == 0) continue;
        const entity_mention *before =
            p[i - 1].has_cue ? &p[i - 1].c->cues[0]->rest.what : &p[i - 1].c->bare.what;
        take_number_as_name(g, u, before, &p[i].c->bare);
        for (size_t k = 0; k < p[i].c->n_cues; k++) take_number_as_name(g, u, before, &p[i].c->cues[k]->rest);
    }
}

static void run_pieces(grounder *g, const units *u, piece *p, size_t n)
{
    name_numbers(g, u, p, n);
    gather_values(g, p, n);
    gather_contrasts(g, p, n);
    gather_exceptions(p, n);
    for (size_t i = 0; i < n; i++) run_piece(g, u, p, i, n);
}

/* Past the joins at `at`; *ret_scope: all of them let a prohibition go on. */
static size_t skip_joins(const grounder *g, const units *u, size_t at, size_t to, bool *ret_scope)
{
    size_t n, unused;
    *ret_scope = true;
    while (at < to && (grounder_join_at(g, u, at, to, &n) || grounder_contrast_at(g, u, at, to, &n))) {
        if (!phrase_list_run(&g->lex->scope, u->at, at, to, 0, &unused)) *ret_scope = false;
        at += n;
    }
    return at;
}

/* Past "I mean", or "no" with a sign after it; "no lights" corrects nothing. */
static size_t skip_correction(const grounder *g, const units *u, size_t at, size_t to)
{
    size_t n;
    while (at < to && phrase_list_run(&g->lex->correct, u->at, at, to, 0, &n)) {
        bool sign = at + n < to && u->at[at + n].kind == UNIT_SIGN;
        size_t n_later;
        if (phrase_list_run(&g->lex->later, u->at, at, to, 0, &n_later) && n_later > n)
            break; /* "wait, then" */
        if (n == 1 && !sign) break;
        at += n + sign;
    }
    return at;
}

void piece_read_all(grounder *g, const units *u, size_t at, size_t to)
{
    piece p[CHUNKS_MAX];
    size_t n = 0;
    while (at < to) {
        bool scope, lead = false;
        size_t joined = skip_joins(g, u, at, to, &scope);
        bool contrast = joined > at && phrase_list_in(&g->lex->contrast, u->at, at, joined, 0);
        bool alternative = joined > at && phrase_list_in(&g->lex->alternatives, u->at, at, joined, 0);
        bool comma = joined == at || (u->at[at].kind == UNIT_SIGN && strcmp(u->at[at].s, ":") != 0);
        bool colon = joined > at && u->at[at].kind == UNIT_SIGN && strcmp(u->at[at].s, ":") == 0;
        size_t after = skip_correction(g, u, joined, to);
        bool corrects = after > joined && (n > 0 || g->n_tasks > 0);
        joined = after;
        at = clause_start(u, joined, to, g->lex, &lead);
        if (at >= to) break;
        size_t n_forbid = unit_set_len(phrase_list_at(&g->lex->prohibit, u->at, at, to, 0));
        size_t end = text_task(g, u, joined, to, false); /* "i need milk on the list": no polite beginning */
        if (!end) end = text_task(g, u, at + n_forbid, to, n_forbid > 0);
        if (end) {
            run_pieces(g, u, p, n);
            n = 0;
            at = end;
            continue;
        }
        end = text_clause_end(g, u, at, to);
        size_t last = clause_trim(u, at, end, g->lex);
        clause *c = n < CHUNKS_MAX ? arena_alloc(g->a, sizeof *c) : NULL;
        if (!c || clause_read(c, u, at, last, &g->d, g->a)) {
            g->nomem = g->nomem || n < CHUNKS_MAX;
            g->unclear = true;
            return;
        }
        if (c->n_cues || !ground_piece_is_empty(&c->bare))
            p[n++] = (piece){.c = c,
                             .has_cue = c->n_cues > 0,
                             .scope = scope,
                             .corrects = corrects,
                             .comma = comma || lead,
                             .alternative = alternative,
                             .contrast = contrast,
                             .colon = colon};
        at = end;
    }
    run_pieces(g, u, p, n);
}
