/* ground_text.c: requests with free text, "add milk and eggs to the shopping list". */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

size_t text_clause_end(const grounder *g, const units *u, size_t from, size_t to)
{
    for (size_t i = from + 1; i < to; i++) {
        size_t n;
        if (phrase_list_run(&g->lex->except, u->at, i, to, 0, &n)) {
            i += n - 1;
            continue;
        }
        if (grounder_join_at(g, u, i, to, &n) || grounder_contrast_at(g, u, i, to, &n)) return i;
        if (phrase_list_run(&g->lex->contrast, u->at, i, to, 0, &n))
            return i; /* "instead of" begins a clause, too */
    }
    return to;
}

/* The parts of a cue before and after its gap. */
static bool split_cue(const phrase *p, phrase *ret_head, phrase *ret_tail)
{
    for (unsigned i = 0; i < p->n; i++) {
        if (p->parts[i].kind != PART_GAP) continue;
        *ret_head = phrase_slice(p, 0, i);
        *ret_tail = phrase_slice(p, i + 1, p->n - i - 1);
        return i > 0;
    }
    return false;
}

/* Is there a word that is more than a pronoun or an article? */
static bool has_content(const grounder *g, const units *u, size_t from, size_t to)
{
    const lexicon *l = g->lex;
    for (size_t i = from; i < to; i++) {
        const unit *x = &u->at[i];
        bool empty = x->kind == UNIT_SIGN ||
                     (x->kind == UNIT_WORD &&
                      (phrase_list_has_word(&l->pronouns, x->s) ||
                       phrase_list_has_word(&l->determiners, x->s) || phrase_list_has_word(&l->all, x->s)));
        if (!empty) return true;
    }
    return false;
}

/* "milk, eggs and bread" are three. More than fit, or one without a word, stay together. */
static void split_items(grounder *g, attempt *way, const units *u, size_t from, size_t to)
{
    size_t begin = from;
    way->n_items = 0;
    for (size_t i = from; i <= to; i++) {
        bool sign = i < to && u->at[i].kind == UNIT_SIGN && strcmp(u->at[i].s, ",") == 0;
        bool and = i < to && u->at[i].kind == UNIT_WORD && strcmp(u->at[i].s, g->lex->reply.and) == 0;
        if (i < to && !sign && !and) continue;
        bool after_comma = and&&i == begin && begin > from; /* ", and" */
        if (!after_comma && (i == begin || way->n_items == ITEMS_MAX || !has_content(g, u, begin, i))) {
            way->n_items = 0;
            return;
        }
        if (!after_comma)
            way->items[way->n_items++] = grounder_slice(g, u->at[begin].begin, u->at[i - 1].end);
        begin = i + 1;
    }
    if (way->n_items == 1) way->n_items = 0;
}

static bool add_task_with(grounder *g, const units *u, const action_def *x, size_t text_from, size_t text_to,
                          const clause_rest *r, bool forbidden)
{
    attempt way = attempt_action(g, x, u, r);
    if (text_from >= text_to || way.how == NOT_CLEAR || way.how == NOT_HERE || way.how == CANNOT)
        return false;
    if (phrase_list_in(&g->lex->prohibit, u->at, text_from, text_to, 0) ||
        phrase_list_in(&g->lex->except, u->at, text_from, text_to, 0))
        g->unclear = true; /* "milk but not eggs": what of it is wanted? */
    if (!has_content(g, u, text_from, text_to)) g->unclear = true; /* "add it to the list" */
    size_t begin = u->at[text_from].begin, end = u->at[text_to - 1].end;
    way.text = grounder_slice(g, begin, end);
    if (x->takes[0]->list) split_items(g, &way, u, text_from, text_to);
    if (forbidden) {
        g->forbidden = true;
        grounder_name_all(g, &way.targets);
    } else if (way.how == DO_IT) {
        task t = {.u = u, .n_ways = 1, .ways = {way}};
        task_add(g, &t);
    } else {
        attempt_tell(g, &way);
    }
    return true;
}

/* With a list named after the text: each place where the tail of the cue stands is tried. */
static size_t try_named_list(grounder *g, const units *u, const action_def *x, const phrase *tail,
                             size_t from, size_t to, bool forbidden)
{
    for (size_t p = from + 1; p < to; p++) {
        unit_set got = phrase_match(tail, u->at, p, to, 0, true);
        if (!got) continue;
        size_t list = p + unit_set_len(got), end = text_clause_end(g, u, list, to);
        clause_rest *r = task_new_rest(g);
        clause_rest_read(r, u, list, end, 0, &g->d);
        if (r->n_strange || r->n_values || !entity_mention_says_target(&r->what)) continue;
        if (add_task_with(g, u, x, from, p, r, forbidden)) return end;
    }
    return 0;
}

static bool means_kind_of(const grounder *g, const action_def *x, const char *word)
{
    for (size_t k = 0; k < g->lex->n_kinds; k++) {
        const kind_def *kind = &g->lex->kinds[k];
        if (!(x->kinds >> k & 1)) continue;
        const word_list *lists[] = {&kind->words, &kind->names, &kind->only};
        for (size_t j = 0; j < sizeof lists / sizeof *lists; j++)
            for (size_t i = 0; i < lists[j]->n; i++)
                if (words_same_stem(lists[j]->at[i], word)) return true;
    }
    return false;
}

/* "5 minutes to the timer" is no item. */
static bool is_time_of_device(const grounder *g, const units *u, size_t from, size_t to)
{
    bool time = false, kind = false;
    for (size_t i = from; i < to; i++) {
        time = time || u->at[i].kind == UNIT_DURATION;
        kind = kind || (u->at[i].kind == UNIT_WORD && devices_is_kind_word(g->lex, u->at[i].s, NULL));
    }
    return time && kind;
}

/* Without a list named: the home's only one, and all that follows is the text. */
static size_t try_only_list(grounder *g, const units *u, const action_def *x, size_t from, size_t to,
                            bool forbidden)
{
    device_set before = g->last;
    for (size_t i = from; i < to; i++) /* a list is named after all, though not so that it is found */
        if (u->at[i].kind == UNIT_DEVICE || (u->at[i].kind == UNIT_WORD && means_kind_of(g, x, u->at[i].s)))
            return 0;
    if (is_time_of_device(g, u, from, to)) return 0;
    clause_rest *r = task_new_rest(g);
    r->device = r->first_strange = SIZE_MAX;
    g->last = (device_set){{0}};
    if (add_task_with(g, u, x, from, to, r, forbidden)) return to;
    g->last = before;
    return 0;
}

/* "shopping list: six eggs": the list stands first, set off by a colon. */
static size_t try_list_first(grounder *g, const units *u, const action_def *x, size_t at, size_t to)
{
    size_t colon = at;
    while (colon < to && !(u->at[colon].kind == UNIT_SIGN && strcmp(u->at[colon].s, ":") == 0)) colon++;
    if (colon == at || colon + 1 >= to) return 0;
    clause_rest *r = task_new_rest(g);
    clause_rest_read(r, u, at, colon, 0, &g->d);
    bool group;
    device_set s = devices_find(&g->d, &r->what, UINT64_MAX, &group);
    size_t list = device_set_first(&s);
    bool only = device_set_count(&s) == 1 && !group && !r->n_strange && !r->n_values && !r->forbidden;
    if (!only || !attempt_serves(g, x, list)) return 0;
    return add_task_with(g, u, x, colon + 1, to, r, false) ? to : 0;
}

/* Free text from unit `at` on; returns where it ended, 0: none. */
size_t text_task(grounder *g, const units *u, size_t at, size_t to, bool forbidden)
{
    for (size_t i = 0; i < g->lex->n_actions; i++) {
        const action_def *x = &g->lex->actions[i];
        if (!x->n_takes || x->takes[0]->kind != VALUE_TEXT) continue;
        size_t first = forbidden ? 0 : try_list_first(g, u, x, at, to);
        if (first) return first;
        for (size_t k = 0; k < x->cues.n; k++) {
            phrase head, tail;
            if (!split_cue(&x->cues.at[k], &head, &tail)) continue;
            unit_set got = phrase_match(&head, u->at, at, to, 0, true);
            size_t from = at + unit_set_len(got), end = 0;
            if (!got || from >= to) continue;
            if (tail.n) {
                end = try_named_list(g, u, x, &tail, from, to, forbidden);
            } else if (x->implied) {
                end = try_only_list(g, u, x, from, to, forbidden);
            }
            if (end) return end;
        }
    }
    return 0;
}
