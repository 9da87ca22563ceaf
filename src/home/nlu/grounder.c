/* grounder.c: what the files of a grounding share; see grounder.h. */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

static bool is_hyphen_in_word(const units *u, size_t i, size_t to)
{
    return i > 0 && i + 1 < to && u->at[i].kind == UNIT_SIGN && strcmp(u->at[i].s, "-") == 0 &&
           u->at[i - 1].end == u->at[i].begin && u->at[i].end == u->at[i + 1].begin;
}

bool grounder_join_at(const grounder *g, const units *u, size_t i, size_t to, size_t *ret_n)
{
    return phrase_list_run(&g->lex->joins, u->at, i, to, 0, ret_n) && !is_hyphen_in_word(u, i, to);
}

bool grounder_contrast_at(const grounder *g, const units *u, size_t i, size_t to, size_t *ret_n)
{
    size_t n_more;
    if (!phrase_list_run(&g->lex->contrast, u->at, i, to, 0, ret_n)) return false;
    return !(phrase_list_run(&g->lex->prohibit, u->at, i, to, 0, &n_more) && n_more > *ret_n);
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

/* Several, or one that is called by a plural: "Dining Room Blinds". */
static bool is_plural(const grounder *g, const device_set *s)
{
    size_t n = device_set_count(s), i = device_set_first(s);
    if (n != 1) return n > 1;
    const indexed_device *x = &g->d.index.devices[i];
    const word_list *name = x->n_names ? &x->names[0]->content : NULL;
    bool plural = false;
    return name && name->n && devices_is_kind_word(g->lex, name->at[name->n - 1], &plural) && plural;
}

const char *grounder_is(const grounder *g, const device_set *s)
{
    return is_plural(g, s) ? g->lex->reply.are : g->lex->reply.is;
}

const char *grounder_it_is(const grounder *g, const device_set *s)
{
    return is_plural(g, s) ? g->lex->reply.they_are : g->lex->reply.it_is;
}

void grounder_add_problem(grounder *g, ground_verdict v, const char *text)
{
    for (size_t i = 0; i < g->n_problems; i++)
        if (strcmp(g->problems[i].text, text) == 0) return;
    if (g->n_problems < PROBLEMS_MAX) g->problems[g->n_problems++] = (problem){.verdict = v, .text = text};
}
