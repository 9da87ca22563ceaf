/* ground_attempt.c: can this action be carried out on what was named, with the values that were given? And
 * what is said when it cannot. */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

enum { DURATION_MAX_S = 100 * 86400 };

bool attempt_serves(const grounder *g, const action_def *x, size_t device)
{
    return x->kinds & g->d.index.devices[device].kinds && devices_has_service(&g->d, device, x->where);
}

bool attempt_is_careful(const grounder *g, const attempt *t)
{
    const char *service = t->action->service;
    if (t->action->careful || !service) return t->action->careful;
    for (size_t i = 0; i < g->d.n; i++) {
        const kind_def *kind = devices_kind(&g->d, i);
        if (!device_set_has(&t->targets, i) || !kind) continue;
        if (word_list_has(&kind->careful, service, strlen(service))) return true;
    }
    return false;
}

/* "turn on, turn off and toggle": what a device of the set can do, each verb once. */
const char *attempt_abilities(grounder *g, size_t device)
{
    buf b = {0};
    const char *last = NULL;
    for (size_t i = 0; i < g->lex->n_actions; i++) {
        const action_def *x = &g->lex->actions[i];
        if (!x->service || !attempt_serves(g, x, device) || (b.data && strstr(b.data, x->verb)) ||
            (last && strcmp(last, x->verb) == 0))
            continue;
        if (last) buf_printf(&b, "%s%s", b.len ? ", " : "", last);
        last = x->verb;
    }
    if (last && b.len)
        buf_printf(&b, " %s %s", g->lex->reply.or, last);
    else if (last)
        buf_puts(&b, last);
    const char *s = b.len ? arena_strndup(g->a, b.data, b.len) : "";
    if (b.failed || !s) g->nomem = true;
    buf_done(&b);
    return s ? s : "";
}

/* ---- one attempt --------------------------------------------------------------------------------- */

static device_set all_of(const grounder *g, const action_def *x)
{
    device_set s = {{0}};
    for (size_t i = 0; i < g->d.n; i++)
        if (attempt_serves(g, x, i)) device_set_add(&s, i);
    return s;
}

/* Of the request before, what the action is for: "it" is one thing, "them" are all. */
static outcome earlier_target(grounder *g, attempt *t, const entity_mention *m)
{
    device_set fit = {{0}};
    for (size_t i = 0; i < g->d.n; i++)
        if (device_set_has(&g->last, i) && attempt_serves(g, t->action, i)) device_set_add(&fit, i);
    t->targets = device_set_count(&fit) ? fit : g->last;
    return m->singular && device_set_count(&t->targets) > 1 ? ASK_WHICH : DO_IT;
}

/* Nothing was named: what was named before, or the only device that can be meant. */
static outcome unnamed_target(grounder *g, attempt *t, const clause_rest *r)
{
    bool before = device_set_count(&g->last) > 0;
    if (before && g->earlier) {
        outcome how = earlier_target(g, t, &r->what);
        bool serves = attempt_serves(g, t->action, device_set_first(&t->targets));
        if (r->what.pronoun || (serves && (r->n_values || r->only_state || !t->action->implied))) return how;
        t->targets = (device_set){{0}};
        before = false;
    }
    if (before && (r->what.pronoun || r->n_values || r->only_state || !t->action->implied)) {
        t->targets = g->last;
        return DO_IT;
    }
    if (r->what.pronoun || r->only_state || !t->action->implied) return NO_TARGET;
    t->targets = all_of(g, t->action);
    size_t n = device_set_count(&t->targets);
    return n == 1 ? DO_IT : n ? ASK_WHICH : NOT_HERE;
}

/* Is nothing else said than one name of the device, or its id? */
static bool is_that_name(const grounder *g, size_t device, const entity_mention *m)
{
    const indexed_device *x = &g->d.index.devices[device];
    for (size_t k = 0; k <= x->n_names; k++) {
        const word_list *name = &x->names[k]->content;
        size_t i = 0;
        while (name->n == m->n && i < m->n && strcmp(name->at[i], m->at[i]) == 0) i++;
        if (i == m->n) return true;
    }
    return false;
}

/* The device whose whole name was said, or all that share it and can do it. */
static void take_name(const grounder *g, attempt *t, size_t device, const entity_mention *m)
{
    t->targets = (device_set){{0}};
    for (size_t i = 0; i < g->d.n; i++)
        if (i == device || (attempt_serves(g, t->action, i) && is_that_name(g, i, m)))
            device_set_add(&t->targets, i);
}

/* "open the door", where a lock may be the door's: what opens is careful, so it is asked which. */
static void add_rivals(grounder *g, attempt *t, const entity_mention *said, bool *group)
{
    const action_def *x = t->action;
    entity_mention m = *said;
    bool unused;
    if (!x->rivals || !attempt_is_careful(g, t)) return;
    if (!devices_mean_kinds(&g->d, &m, x->rivals)) {
        if (!*group) t->targets = devices_find(&g->d, &m, x->kinds | x->rivals, group);
        return;
    }
    m.all = true; /* however well their names fit */
    device_set all = devices_find(&g->d, &m, x->kinds | x->rivals, &unused);
    for (size_t i = 0; i < g->d.n; i++) {
        if (!device_set_has(&all, i) || attempt_serves(g, x, i)) continue;
        t->targets = all;
        *group = false;
        return;
    }
}

static outcome named_target(grounder *g, attempt *t, const clause_rest *r)
{
    bool group, unused;
    entity_mention said = r->what, *m = &said;
    t->targets = devices_find(&g->d, m, t->action->kinds, &group);
    if (!device_set_count(&t->targets) && m->n > 1 &&
        phrase_list_has_word(&g->lex->pronouns, m->at[m->n - 1])) {
        m->n--; /* "the right one" */
        t->targets = devices_find(&g->d, m, t->action->kinds, &group);
    }
    if (r->n_whole == 1 && is_that_name(g, r->device, m) && !group && !devices_has_unknown(&g->d, m) &&
        device_set_count(&t->targets) != 1)
        take_name(g, t, r->device, m);
    add_rivals(g, t, m, &group);
    size_t before = device_set_count(&t->targets); /* "both lamps but not the kitchen one" */
    for (size_t i = 0; i < r->n_except; i++) {
        device_set gone = devices_find(&g->d, &r->except[i], UINT64_MAX, &unused);
        if (device_set_count(&gone) == 0) return NOT_CLEAR;
        device_set_drop_all(&t->targets, &gone);
    }
    size_t n = device_set_count(&t->targets);
    grounder_name_all(g, &t->targets);
    if (n == 0 || (m->beside && (r->n_whole || attempt_is_careful(g, t)))) return NOT_HERE;
    if (!group && n > 1) return ASK_WHICH;
    if (m->both && before != 2) return ASK_WHICH;
    return m->count && m->count != n ? ASK_WHICH : DO_IT;
}

static outcome ground_attempt_check_kinds(grounder *g, attempt *t)
{
    size_t n = device_set_count(&t->targets), fits = 0;
    device_set fit = {{0}};
    for (size_t i = 0; i < g->d.n; i++) {
        if (!device_set_has(&t->targets, i) || !attempt_serves(g, t->action, i)) continue;
        device_set_add(&fit, i);
        fits++;
    }
    if (fits == 0 || (n == 1 && fits != 1)) return CANNOT;
    t->targets = fit;
    return DO_IT;
}

static outcome check_number(grounder *g, attempt *t, const units *u, const value_def *def,
                            const clause_value *v)
{
    const unit *x = &u->at[v->at];
    if (v->choice) return DO_IT;
    if (v->difference && !t->action->amount) return DIFFERENCE;
    if (def->kind == VALUE_DURATION) return x->value > 0 && x->value <= DURATION_MAX_S ? DO_IT : NOT_CLEAR;
    if (def->kind != VALUE_NUMBER) return DO_IT;
    for (size_t i = 0; i < g->d.n; i++) {
        if (!device_set_has(&t->targets, i) || value_in_range(g, def, x, i)) continue;
        t->odd_device = i;
        if (device_set_count(&t->targets) == 1) t->other_unit = value_other_unit(g, def, x, i);
        return OUT_OF_RANGE;
    }
    return DO_IT;
}

/* No value fits: is there one in a unit that is none of this value's? */
static outcome lacks_value(attempt *t, const units *u, const clause_rest *r, const value_def *def)
{
    for (size_t i = 0; i < r->n_values; i++)
        if (u->at[r->values[i].at].kind == UNIT_DURATION) return FOR_A_TIME; /* "turn it on in 5 minutes" */
    for (size_t i = 0; i < r->n_values && def->kind == VALUE_NUMBER; i++) {
        const unit *x = &u->at[r->values[i].at];
        if (r->values[i].choice || x->kind != UNIT_NUMBER || !x->measure) continue;
        t->odd_unit = x;
        return WRONG_UNIT;
    }
    return ASK_VALUE;
}

static outcome assign_values(grounder *g, attempt *t, const units *u, const clause_rest *r)
{
    bool used[CLAUSE_VALUES_MAX] = {false};
    size_t n_used = 0;
    for (size_t k = 0; k < t->action->n_takes; k++) {
        const value_def *def = t->action->takes[k];
        if (def->kind == VALUE_TEXT) continue;
        const char *means;
        size_t i = 0;
        while (i < r->n_values && (used[i] || !clause_value_fits(&r->values[i], u, def, &means))) i++;
        t->odd = def;
        if (i == r->n_values) return lacks_value(t, u, r, def);
        used[i] = true;
        n_used++;
        t->given[k] = &r->values[i];
        outcome how = check_number(g, t, u, def, &r->values[i]);
        if (how) return how;
    }
    for (size_t i = 0; i < r->n_values; i++) /* of what has parts, or where nothing is done anyway */
        n_used += !used[i] && r->values[i].degree && (t->action->gradual || !t->action->service);
    if (n_used == r->n_values) return DO_IT;
    for (size_t i = 0; i < r->n_values; i++)
        if (!used[i] && u->at[r->values[i].at].kind == UNIT_DURATION) return FOR_A_TIME;
    return NOT_SO;
}

/* Of what was said, the words that name some device. */
entity_mention attempt_known_part(const grounder *g, const entity_mention *m)
{
    entity_mention known = *m;
    known.n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (devices_know(&g->d, m->at[i]) || devices_is_kind_word(g->lex, m->at[i], NULL))
            known.at[known.n++] = m->at[i];
    return known;
}

/* An action that only says something does so whatever else was said: "remove milk from the list". */
static attempt explain(grounder *g, const action_def *x, const clause_rest *r)
{
    attempt t = {.action = x, .rest = r, .how = NOT_CLEAR};
    entity_mention known = attempt_known_part(g, &r->what);
    bool group;
    if (r->later || r->forbidden || r->withdrawn || !known.n) return t;
    t.targets = devices_find(&g->d, &known, x->kinds, &group);
    grounder_name_all(g, &t.targets);
    if (device_set_count(&t.targets) == 1)
        t.how = ground_attempt_check_kinds(g, &t) == DO_IT ? DO_IT : NOT_CLEAR;
    return t;
}

/* Another action has the same verb for one of these: "open" of a door, where this one opens valves. */
static bool verb_serves(const grounder *g, const char *verb, const device_set *targets)
{
    for (size_t k = 0; k < g->lex->n_actions; k++) {
        const action_def *x = &g->lex->actions[k];
        if (!x->service || !x->verb || strcmp(x->verb, verb) != 0) continue;
        for (size_t i = 0; i < g->d.n; i++)
            if (device_set_has(targets, i) && attempt_serves(g, x, i)) return true;
    }
    return false;
}

attempt attempt_action(grounder *g, const action_def *x, const units *u, const clause_rest *r)
{
    attempt t = {.action = x, .rest = r, .u = u};
    bool strange = r->n_strange > 0;
    if (!x->service && strange) return explain(g, x, r);
    t.how = entity_mention_says_target(&r->what) ? named_target(g, &t, r) : unnamed_target(g, &t, r);
    if (r->later || r->forbidden || r->withdrawn) t.how = r->later ? FOR_A_TIME : NOT_CLEAR;
    if (strange) t.how = t.how == NOT_HERE && entity_mention_says_target(&r->what) ? NOT_HERE : NOT_CLEAR;
    if (t.how == DO_IT) t.how = ground_attempt_check_kinds(g, &t);
    if (t.how == CANNOT && x->verb && verb_serves(g, x->verb, &t.targets)) t.how = NOT_CLEAR;
    if (t.how == DO_IT) t.how = assign_values(g, &t, u, r);
    if (!x->service && (t.how == OUT_OF_RANGE || t.how == DIFFERENCE)) t.how = DO_IT; /* nothing is set */
    if (!x->service && (t.how == ASK_VALUE || t.how == WRONG_UNIT || t.how == NOT_SO))
        t.how = NOT_CLEAR; /* it explains something else */
    return t;
}

/* ---- replies about attempts ----------------------------------------------------------------------- */

const char *attempt_target_names(grounder *g, const attempt *t, bool any)
{
    return grounder_names(g, &t->targets, any);
}

/* What the first kind that it is for is called: "timer". */
static const char *kind_of_action(const grounder *g, const action_def *x)
{
    for (size_t k = 0; k < g->lex->n_kinds; k++)
        if (x->kinds >> k & 1 && g->lex->kinds[k].words.n) return g->lex->kinds[k].words.at[0];
    return x->verb ? x->verb : "";
}

static const char *what_was_said(grounder *g, const attempt *t)
{
    const entity_mention *m = &t->rest->what;
    return m->n ? grounder_slice(g, m->begin, m->end) : kind_of_action(g, t->action);
}

/* Sentences with the bounds of a value: of the device that it is out of, else of the first. */
static void tell_bounds(grounder *g, const attempt *t, const char *reply)
{
    size_t device = t->how == OUT_OF_RANGE ? t->odd_device : device_set_first(&t->targets);
    const unit *x = t->odd_unit;
    reply_field f[] = {{"what", t->odd->said},
                       {"min", value_bound_said(g, t->odd, device, false)},
                       {"max", value_bound_said(g, t->odd, device, true)},
                       {"unit", x ? x->measure : ""},
                       {"name", attempt_target_names(g, t, false)}};
    grounder_add_problem(g, GROUND_CANNOT, grounder_fill(g, reply, f, sizeof f / sizeof *f));
}

/* "open Garage Door", "set the brightness of Garage Door" */
static const char *deed_of(grounder *g, const attempt *t)
{
    reply_field f[] = {{"verb", t->action->verb}, {"name", attempt_target_names(g, t, true)}};
    return grounder_fill(g, t->action->deed ? t->action->deed : "{verb} {name}", f, 2);
}

static void tell_cannot(grounder *g, const attempt *t)
{
    if (!t->action->verb) { /* an action that only explains does not fit: no verb to speak of */
        g->unclear = true;
        return;
    }
    size_t first = device_set_first(&t->targets);
    const char *can = first == SIZE_MAX ? "" : attempt_abilities(g, first);
    reply_field f[] = {{"verb", t->action->verb},
                       {"name", attempt_target_names(g, t, true)},
                       {"can", can},
                       {"do", deed_of(g, t)}};
    const char *reply = !*can              ? g->lex->reply.no_action
                        : t->how == NOT_SO ? g->lex->reply.not_so
                                           : g->lex->reply.cannot;
    grounder_add_problem(g, GROUND_CANNOT, grounder_fill(g, reply, f, 4));
}

void attempt_want_value(grounder *g, const attempt *t)
{
    size_t n = device_set_count(&t->targets);
    if (!t->action->request || n != 1 || !g->n_problems) return;
    problem *p = &g->problems[g->n_problems - 1];
    p->request = t->action->request;
    p->about = attempt_target_names(g, t, false);
    p->odd_value = t->how == OUT_OF_RANGE || t->how == WRONG_UNIT;
}

static void keep_other(grounder *g, const attempt *t)
{
    attempt *kept = arena_alloc(g->a, sizeof *kept);
    g->nomem |= !kept;
    if (kept) *kept = *t;
    g->other = kept;
}

void attempt_tell(grounder *g, const attempt *t)
{
    reply_field what[] = {{"what", what_was_said(g, t)}, {"names", attempt_target_names(g, t, true)}};
    reply_field value[] = {{"what", t->odd ? t->odd->said : ""}, {"name", what[1].value}};
    switch (t->how) {
    case ASK_WHICH:
        grounder_add_problem(g, GROUND_ASK, grounder_fill(g, g->lex->reply.which, what, 2));
        break;
    case OUT_OF_RANGE:
        tell_bounds(g, t, g->lex->reply.out_of_range);
        if (t->other_unit && t->action->n_takes == 1) keep_other(g, t);
        break;
    case WRONG_UNIT: tell_bounds(g, t, g->lex->reply.wrong_unit); break;
    case DIFFERENCE:
        if (t->odd->kind == VALUE_NUMBER)
            tell_bounds(g, t, g->lex->reply.difference);
        else
            grounder_add_problem(g, GROUND_ASK, grounder_fill(g, g->lex->reply.need_value, value, 2));
        break;
    case ASK_VALUE:
        grounder_add_problem(g, GROUND_ASK, grounder_fill(g, g->lex->reply.need_value, value, 2));
        break;
    case CANNOT:
    case NOT_SO: tell_cannot(g, t); break;
    case FOR_A_TIME: g->later = true; break;
    case NO_TARGET:
        grounder_add_problem(g, GROUND_ASK, grounder_fill(g, g->lex->reply.what_is_it, what, 2));
        break;
    case NOT_HERE:
        grounder_add_problem(g, GROUND_MISSING, grounder_fill(g, g->lex->reply.missing, what, 2));
        break;
    case NOT_CLEAR: g->unclear = true; break;
    case DO_IT: break;
    }
    if (t->how >= OUT_OF_RANGE && t->how <= ASK_VALUE) attempt_want_value(g, t);
    grounder_name_all(g, &t->targets);
}
