/* grounder.c: what the files of a grounding share; see grounder.h. */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

bool grounder_run_at(const phrase_list *l, const units *u, size_t i, size_t to, size_t *ret_n)
{
    unit_set got = phrase_list_at(l, u->at, i, to, 0);
    *ret_n = unit_set_len(got);
    return got && got == (((unit_set)1 << *ret_n) - 1) << i;
}

void grounder_name_all(grounder *g, const device_set *s)
{
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) g->named.bits[i] |= s->bits[i];
}

const char *grounder_slice(grounder *g, size_t begin, size_t end)
{
    const char *s = arena_strndup(g->a, g->w.text + begin, end - begin);
    if (!s) g->nomem = true;
    return s ? s : "";
}

const char *grounder_fill(grounder *g, const char *template, const reply_field *f, size_t n)
{
    const char *s = reply_fill(g->a, template, f, n);
    if (!s) g->nomem = true;
    return s ? s : "";
}

const char *grounder_names(grounder *g, const device_set *s, bool any)
{
    const char *t = reply_names(g->a, &g->d, s, any ? g->lex->reply.or : g->lex->reply.and);
    if (!t) g->nomem = true;
    return t ? t : "";
}

void grounder_add_problem(grounder *g, ground_verdict v, const char *text)
{
    for (size_t i = 0; i < g->n_problems; i++)
        if (strcmp(g->problems[i].text, text) == 0) return;
    if (g->n_problems < PROBLEMS_MAX) g->problems[g->n_problems++] = (problem){v, text};
}
