/* ground_ask.c: questions about states, "is the lamp on", "which doors are open". */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

static const char *state_of(const grounder *g, size_t i)
{
    return g->d.at[i].state ? g->d.at[i].state : "";
}

static const char *say_state(grounder *g, size_t i, const char *reply)
{
    size_t kind = g->d.words[i].kind;
    const char *own = kind != SIZE_MAX ? g->lex->kinds[kind].state_say : NULL;
    const char *state = state_of(g, i);
    device_set one = {{0}};
    device_set_add(&one, i);
    reply_field f[] = {{"name", g->d.at[i].name}, {"state", state}, {"is", grounder_is(g, &one)}};
    return grounder_fill(g, !*state ? g->lex->reply.state_unknown : own ? own : reply, f, 3);
}

const char *ask_asked_state(const units *u, unit_set used)
{
    const char *s = NULL;
    for (size_t i = 0; i < u->n; i++)
        if (used >> i & 1 && u->at[i].kind == UNIT_WORD && u->at[i].state) s = u->at[i].s;
    return s;
}

bool ask_is_in_state(const grounder *g, size_t i, const char *asked)
{
    words w;
    const char *state = state_of(g, i);
    if (words_split(&w, g->a, state, strlen(state)) || w.n == 0) return false;
    word_list l;
    return !devices_canonical(&l, g->lex, &w, g->a) && l.n == 1 && strcmp(l.at[0], asked) == 0;
}

void ask_say_more(grounder *g, buf *b, const char *s)
{
    buf_printf(b, "%s%s", b->len ? " " : "", s);
    if (b->failed) g->nomem = true;
}

const char *ask_keep(grounder *g, buf *b)
{
    const char *s = b->len ? arena_strndup(g->a, b->data, b->len) : NULL;
    buf_done(b);
    return s;
}

/* "is the lamp on", "how is the lamp": each device's state, for one and a state asked with yes or no. */
void ask_answer_states(grounder *g, const device_set *s, const char *asked)
{
    enum { SHOWN = 8 };
    buf b = {0};
    size_t n = device_set_count(s), shown = 0;
    for (size_t i = 0; i < g->d.n && shown < SHOWN; i++) {
        if (!device_set_has(s, i)) continue;
        const char *reply = !asked || n > 1                ? g->lex->reply.state
                            : ask_is_in_state(g, i, asked) ? g->lex->reply.state_yes
                                                           : g->lex->reply.state_no;
        ask_say_more(g, &b, say_state(g, i, reply));
        shown++;
    }
    g->answer = ask_keep(g, &b);
}

/* Those that can be in this state at all. */
static device_set that_can_be(const grounder *g, const device_set *s, const char *asked)
{
    device_set can = {{0}};
    for (size_t i = 0; i < g->d.n; i++) {
        size_t kind = g->d.words[i].kind;
        if (kind == SIZE_MAX || !device_set_has(s, i)) continue;
        if (word_list_has(&g->lex->kinds[kind].states, asked, strlen(asked))) device_set_add(&can, i);
    }
    return device_set_count(&can) ? can : *s;
}

/* "is everything locked": yes, or which of them is not. */
static void answer_all(grounder *g, const device_set *all, const char *asked)
{
    enum { SHOWN = 8 };
    buf b = {0};
    size_t shown = 0;
    device_set s = that_can_be(g, all, asked);
    for (size_t i = 0; i < g->d.n && shown < SHOWN; i++) {
        if (!device_set_has(&s, i) || ask_is_in_state(g, i, asked)) continue;
        ask_say_more(g, &b, say_state(g, i, shown++ ? g->lex->reply.state : g->lex->reply.state_no));
    }
    reply_field f[] = {{"names", grounder_names(g, &s, false)}, {"state", asked}, {"is", grounder_is(g, &s)}};
    if (!shown) ask_say_more(g, &b, grounder_fill(g, g->lex->reply.all_so, f, 3));
    g->answer = ask_keep(g, &b);
}

static void answer_which(grounder *g, const device_set *s, const char *asked, bool count)
{
    device_set so = {{0}};
    for (size_t i = 0; i < g->d.n; i++)
        if (device_set_has(s, i) && (!asked || ask_is_in_state(g, i, asked))) device_set_add(&so, i);
    size_t n = device_set_count(&so);
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", n);
    reply_field f[] = {{"names", grounder_names(g, &so, false)},
                       {"state", asked ? asked : ""},
                       {"count", digits},
                       {"is", grounder_is(g, &so)}};
    const char *t = !n ? g->lex->reply.none_so : count ? g->lex->reply.count_so : g->lex->reply.some_so;
    g->answer = grounder_fill(g, t, f, 4);
}

typedef enum { ASKS_STATE, ASKS_WHICH, ASKS_COUNT } ask_kind;

static bool try_ask(grounder *g, const units *u, size_t at, const phrase_list *l, ask_kind kind)
{
    for (size_t i = 0; i < l->n; i++) {
        unit_set used = phrase_match(&l->at[i], u->at, at, u->n, 0, true);
        if (!used) continue;
        clause_rest r;
        clause_rest_read(&r, u, at, u->n, used, &g->d);
        bool any = kind == ASKS_WHICH && ask_asked_state(u, used); /* "what's playing?" */
        if (r.n_strange || r.n_values || r.later || r.forbidden ||
            (!entity_mention_says_target(&r.what) && !any))
            continue;
        bool group;
        if (kind != ASKS_STATE) r.what.all = true;
        device_set s = devices_find(&g->d, &r.what, UINT64_MAX, &group);
        size_t n = device_set_count(&s);
        if (!n) continue;
        grounder_name_all(g, &s);
        const char *asked = ask_asked_state(u, used);
        if (kind != ASKS_STATE)
            answer_which(g, &s, asked, kind == ASKS_COUNT);
        else if (asked && r.what.everything)
            answer_all(g, &s, asked);
        else
            ask_answer_states(g, &s, asked);
        return true;
    }
    return false;
}

bool ask_is_question(grounder *g, const units *u, size_t at)
{
    if (try_ask(g, u, at, &g->lex->ask_count, ASKS_COUNT) ||
        try_ask(g, u, at, &g->lex->ask_which, ASKS_WHICH) ||
        try_ask(g, u, at, &g->lex->ask_state, ASKS_STATE))
        return true;
    if (!phrase_list_at(&g->lex->questions, u->at, at, u->n, 0)) return false;
    clause_rest r;
    clause_rest_read(&r, u, at, u->n, 0, &g->d);
    piece_note_strange(g, u, &r);
    g->question = true;
    return true;
}
