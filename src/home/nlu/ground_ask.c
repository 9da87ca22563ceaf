/* ground_ask.c: questions about states, "is the lamp on", "which doors are open". */
#include "nlu/grounder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *state_of(const grounder *g, size_t i)
{
    return g->d.at[i].state ? g->d.at[i].state : "";
}

static bool tells(const word_list *l, const char *state)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcasecmp(l->at[i], state) == 0) return true;
    return false;
}

/* "19.5" and "°C"; the unit of a state that is no number stays away. */
static const char *with_unit(grounder *g, const char *state, const char *unit)
{
    char *end;
    strtod(state, &end);
    const char *s = end > state && !*end ? arena_printf(g->a, "%s %s", state, unit) : state;
    if (!s) g->nomem = true;
    return s ? s : "";
}

const char *ask_say_state(grounder *g, size_t i, const char *state, const char *reply)
{
    const kind_def *kind = devices_kind(&g->d, i);
    const char *own = kind ? kind->state_say : NULL;
    if (tells(&g->lex->no_states, state)) state = "";
    device_set one = {{0}};
    device_set_add(&one, i);
    if (*state && g->d.at[i].unit) state = with_unit(g, state, g->d.at[i].unit);
    reply_field f[] = {{"name", g->d.at[i].name}, {"state", state}, {"is", grounder_is(g, &one)}};
    return grounder_fill(g, !*state ? g->lex->reply.state_unknown : own ? own : reply, f, 3);
}

static const char *say_state(grounder *g, size_t i, const char *reply)
{
    return ask_say_state(g, i, state_of(g, i), reply);
}

const char *ask_asked_state(const units *u, unit_set used)
{
    const char *s = NULL;
    for (size_t i = 0; i < u->n; i++) {
        if (!(used >> i & 1) || u->at[i].kind != UNIT_WORD || !u->at[i].state) continue;
        if (s && strcmp(s, u->at[i].s) != 0) return NULL; /* "open or closed" */
        s = u->at[i].s;
    }
    return s;
}

static const char *first_of(const lexicon *lex, const char *folded)
{
    const char *s = lexicon_state(lex, folded);
    return s ? s : folded;
}

/* Is it said of the kind that what tells `state` is `asked`? `asked` is the first of those that mean the same. */
static bool kind_says_so(const lexicon *lex, const kind_def *k, const char *asked, const char *state)
{
    for (size_t i = 0; i < k->states.n; i++)
        if (strcmp(first_of(lex, k->states.at[i]), asked) == 0 && tells(&k->so[i], state)) return true;
    return false;
}

static bool kind_has_state(const lexicon *lex, const kind_def *k, const char *asked)
{
    for (size_t i = 0; i < k->states.n; i++)
        if (strcmp(first_of(lex, k->states.at[i]), asked) == 0) return true;
    return false;
}

static bool kind_knows(const lexicon *lex, const kind_def *k, const char *own, const char *state)
{
    bool known = own && kind_has_state(lex, k, own);
    for (size_t i = 0; i < k->states.n; i++) known = known || tells(&k->so[i], state);
    return known;
}

/* The state of device i in one word, as the lexicon has it; NULL: it is none of its. */
static const char *own_state(grounder *g, const char *state)
{
    words w;
    word_list l;
    if (words_split(&w, g->a, state, strlen(state)) || devices_canonical(&l, g->lex, &w, g->a)) {
        g->nomem = true;
        return NULL;
    }
    return l.n == 1 && w.n == 1 ? lexicon_state(g->lex, l.at[0]) : NULL;
}

ask_verdict ask_is_in_state(grounder *g, size_t i, const char *asked)
{
    const char *state = state_of(g, i);
    if (!*state || tells(&g->lex->no_states, state)) return ASK_NOT_TOLD;
    const kind_def *k = devices_kind(&g->d, i);
    const char *own = own_state(g, state);
    asked = first_of(g->lex, asked);
    if ((own && strcmp(own, asked) == 0) || strcasecmp(state, asked) == 0) return ASK_SO;
    if (k && kind_says_so(g->lex, k, asked, state)) return ASK_SO;
    if (!k || !k->states.n) return own ? ASK_NOT_SO : ASK_ELSE;
    /* "on" may be playing */
    bool wider = own && kind_says_so(g->lex, k, own, asked);
    bool known = kind_has_state(g->lex, k, asked) && kind_knows(g->lex, k, own, state);
    return known && !wider ? ASK_NOT_SO : ASK_ELSE;
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

/* "fully": what is told as open may be open in part. */
static bool asks_entirely(const grounder *g, const units *u)
{
    return phrase_list_in(&g->lex->entirely, u->at, 0, u->n, 0) != 0;
}

/* "is the lamp on", "how is the lamp": each device's state, for one and a state asked with yes or no. */
void ask_answer_states(grounder *g, const units *u, const device_set *s, const char *asked)
{
    enum { SHOWN = 8 };
    buf b = {0};
    size_t n = device_set_count(s), shown = 0;
    for (size_t i = 0; i < g->d.n && shown < SHOWN; i++) {
        if (!device_set_has(s, i)) continue;
        ask_verdict so = asked && n == 1 ? ask_is_in_state(g, i, asked) : ASK_ELSE;
        if (so == ASK_SO && asks_entirely(g, u)) so = ASK_ELSE;
        const char *reply = so == ASK_SO       ? g->lex->reply.state_yes
                            : so == ASK_NOT_SO ? g->lex->reply.state_no
                                               : g->lex->reply.state;
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
        const kind_def *kind = devices_kind(&g->d, i);
        if (!kind || !device_set_has(s, i)) continue;
        if (word_list_has(&kind->states, asked, strlen(asked))) device_set_add(&can, i);
    }
    return device_set_count(&can) ? can : *s;
}

/* Of which it is so, by verdict. */
typedef struct sorted {
    device_set by[N_ASK_VERDICTS];
} sorted;

static sorted sort_devices(grounder *g, const device_set *s, const char *asked)
{
    sorted all = {0};
    for (size_t i = 0; i < g->d.n; i++)
        if (device_set_has(s, i)) device_set_add(&all.by[asked ? ask_is_in_state(g, i, asked) : ASK_SO], i);
    return all;
}

/* "I don't know how A and B are." */
static void say_not_told(grounder *g, buf *b, const device_set *s)
{
    reply_field f[] = {{"name", grounder_names(g, s, false)}, {"is", grounder_is(g, s)}};
    if (device_set_count(s)) ask_say_more(g, b, grounder_fill(g, g->lex->reply.state_unknown, f, 2));
}

/* "is everything locked": yes, or which of them is not. */
static void answer_all(grounder *g, const device_set *all, const char *asked)
{
    enum { SHOWN = 8 };
    static const ask_verdict others[] = {ASK_NOT_SO, ASK_ELSE};
    buf b = {0};
    size_t shown = 0;
    device_set s = that_can_be(g, all, asked);
    sorted by = sort_devices(g, &s, asked);
    const device_set *so = &by.by[ASK_SO];
    reply_field f[] = {{"names", grounder_names(g, so, false)}, {"state", asked}, {"is", grounder_is(g, so)}};
    bool yes = device_set_count(so) && !device_set_count(&by.by[ASK_NOT_SO]);
    if (yes) ask_say_more(g, &b, grounder_fill(g, g->lex->reply.all_so, f, 3));
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < g->d.n && shown < SHOWN; i++) {
            if (!device_set_has(&by.by[others[k]], i)) continue;
            bool no = others[k] == ASK_NOT_SO && !shown++;
            ask_say_more(g, &b, say_state(g, i, no ? g->lex->reply.state_no : g->lex->reply.state));
        }
    say_not_told(g, &b, &by.by[ASK_NOT_TOLD]);
    g->answer = ask_keep(g, &b);
}

/* Of those that are neither so nor not so, the ones on their way: opening. */
static device_set that_pass(const grounder *g, const device_set *s, const char *asked)
{
    device_set on_way = {{0}};
    for (size_t i = 0; i < g->d.n; i++) {
        const kind_def *kind = devices_kind(&g->d, i);
        if (device_set_has(s, i) && asked && kind && kind_has_state(g->lex, kind, first_of(g->lex, asked)) &&
            tells(&g->lex->passing_states, state_of(g, i)))
            device_set_add(&on_way, i);
    }
    return on_way;
}

static void answer_which(grounder *g, const device_set *s, const char *asked, bool count)
{
    enum { SHOWN = 8 };
    buf b = {0};
    char digits[24];
    sorted by = sort_devices(g, s, asked);
    const device_set *so = &by.by[ASK_SO];
    device_set asked_of = asked ? that_can_be(g, &by.by[ASK_NOT_TOLD], asked) : by.by[ASK_NOT_TOLD];
    size_t n = device_set_count(so);
    device_set on_way = that_pass(g, &by.by[ASK_ELSE], asked);
    bool none = !n && (device_set_count(&asked_of) == device_set_count(s) || /* nothing is known of any */
                       device_set_count(&on_way));
    snprintf(digits, sizeof digits, "%zu", n);
    reply_field f[] = {{"names", grounder_names(g, so, false)},
                       {"state", asked ? asked : ""},
                       {"count", digits},
                       {"is", grounder_is(g, so)}};
    const char *t = !n ? g->lex->reply.none_so : count ? g->lex->reply.count_so : g->lex->reply.some_so;
    if (!none) ask_say_more(g, &b, grounder_fill(g, t, f, 4));
    for (size_t i = 0, shown = 0; i < g->d.n && shown < SHOWN; i++)
        if (device_set_has(&on_way, i)) ask_say_more(g, &b, say_state(g, i, g->lex->reply.state)), shown++;
    say_not_told(g, &b, &asked_of);
    g->answer = ask_keep(g, &b);
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
        bool target = entity_mention_says_target(&r.what);
        bool it = kind == ASKS_STATE && !target && g->earlier && r.what.pronoun; /* "is it on?" */
        if (r.n_strange || r.n_values || r.later || r.forbidden || (!target && !any && !it)) continue;
        bool group;
        if (kind != ASKS_STATE) r.what.all = true;
        device_set s = it ? g->last : devices_find(&g->d, &r.what, UINT64_MAX, &group);
        size_t n = device_set_count(&s);
        if (!n) continue;
        grounder_name_all(g, &s);
        const char *asked = ask_asked_state(u, used);
        if (kind != ASKS_STATE)
            answer_which(g, &s, asked, kind == ASKS_COUNT);
        else if (asked && r.what.everything)
            answer_all(g, &s, asked);
        else
            ask_answer_states(g, u, &s, asked);
        return true;
    }
    return false;
}

bool ask_is_question(grounder *g, const units *u, size_t at)
{
    if (quantity_is_asked(g, u, at) || try_ask(g, u, at, &g->lex->ask_count, ASKS_COUNT) ||
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
