/* ground_quantity.c: questions for a quantity, "what's the temperature in the hall": what the devices tell of it. */
#include "nlu/grounder.h"

#include <stdlib.h>
#include <string.h>

/* By its kind, its unit, or, of a sensor, its name. */
static bool tells_quantity(grounder *g, const quantity_def *q, size_t device)
{
    const kind_def *kind = devices_kind(&g->d, device);
    uint64_t bit = kind ? (uint64_t)1 << (kind - g->lex->kinds) : 0;
    if (q->kinds & bit) return true;
    return q->sensors & bit &&
           (value_unit_told(g, q->value, device) || devices_name_has(&g->d, device, &q->names));
}

/* "outside" is no word of a name elsewhere. */
static bool is_in_place(const grounder *g, const quantity_def *q, const units *u, size_t device)
{
    bool outdoors = phrase_list_in(&q->outdoors, u->at, 0, u->n, 0) != 0;
    return !outdoors || devices_name_has(&g->d, device, &q->outdoors);
}

static bool begins_with_number(const char *s)
{
    char *end;
    if (!s) return false;
    strtod(s, &end);
    return end != s;
}

/* Its state, else what it measures beside it; NULL: it tells no number. */
static const char *number_told(const grounder *g, size_t device)
{
    const struct device *d = &g->d.at[device];
    return begins_with_number(d->state) ? d->state : begins_with_number(d->measured) ? d->measured : NULL;
}

static device_set tellers(grounder *g, const quantity_def *q, const units *u, entity_mention *m)
{
    device_set s = {{0}}, said;
    bool group, any = entity_mention_says_target(m);
    m->all = true;
    if (any) said = devices_find(&g->d, m, UINT64_MAX, &group);
    for (size_t i = 0; i < g->d.n; i++)
        if (tells_quantity(g, q, i) && is_in_place(g, q, u, i) && (!any || device_set_has(&said, i)))
            device_set_add(&s, i);
    return s;
}

static const char *say_numbers(grounder *g, const device_set *s)
{
    enum { SHOWN = 8 };
    buf b = {0};
    for (size_t i = 0, shown = 0; i < g->d.n && shown < SHOWN; i++) {
        if (!device_set_has(s, i)) continue;
        ask_say_more(g, &b, ask_say_state(g, i, number_told(g, i), g->lex->reply.state));
        shown++;
    }
    return ask_keep(g, &b);
}

/* Those that tell a number say it; where none does, they are named. */
static void answer_quantity(grounder *g, const quantity_def *q, const device_set *s)
{
    device_set known = {{0}};
    for (size_t i = 0; i < g->d.n; i++)
        if (device_set_has(s, i) && number_told(g, i)) device_set_add(&known, i);
    grounder_name_all(g, s);
    reply_field f[] = {{"names", grounder_names(g, s, false)}};
    g->answer = device_set_count(&known) ? say_numbers(g, &known) : grounder_fill(g, q->unknown, f, 1);
}

bool quantity_is_asked(grounder *g, const units *u, size_t at)
{
    for (size_t i = 0; i < g->lex->n_quantities; i++) {
        const quantity_def *q = &g->lex->quantities[i];
        for (size_t k = 0; k < q->cues.n; k++) {
            clause_rest r;
            unit_set used = phrase_match(&q->cues.at[k], u->at, at, u->n, 0, true);
            if (!used) continue;
            clause_rest_read(&r, u, at, u->n, used, &g->d);
            if (r.n_strange || r.n_values || r.later || r.forbidden || r.withdrawn) continue;
            device_set s = tellers(g, q, u, &r.what);
            if (!device_set_count(&s)) continue;
            answer_quantity(g, q, &s);
            return true;
        }
    }
    return false;
}
