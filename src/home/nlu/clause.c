/* clause.c: taking one request apart; see clause.h. */
#include "nlu/clause.h"

#include <string.h>

#include "shoal.h"

/* Words of the longest phrase here that holds a request back; 0: none. */
static size_t longest_guard(const units *u, size_t at, size_t to, const lexicon *l)
{
    const phrase_list *lists[] = {&l->report, &l->prohibit, &l->keep, &l->withdraw, &l->later};
    size_t n, longest = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (phrase_list_run(lists[i], u->at, at, to, 0, &n) && n > longest) longest = n;
    return longest;
}

/* Something that is no mere politeness begins here, and is longer than it: "thank you for", "would you not". */
static bool means_more(const units *u, size_t at, size_t to, const lexicon *l, size_t n_polite)
{
    return longest_guard(u, at, to, l) > n_polite;
}

/* It is the end of something that is no mere politeness: the "bedtime" of "at bedtime". */
static bool ends_guard(const units *u, size_t from, size_t at, size_t to, const lexicon *l)
{
    for (size_t i = from; i < at; i++)
        if (i + longest_guard(u, i, to, l) > at) return true;
    return false;
}

size_t clause_start(const units *u, size_t from, size_t to, const lexicon *l, bool *ret_lead)
{
    size_t at = from, n;
    for (;;) {
        if (at < to && phrase_list_run(&l->leads, u->at, at, to, 0, &n))
            *ret_lead = true;
        else if (at >= to || !phrase_list_run(&l->fillers, u->at, at, to, 0, &n))
            return at;
        if (means_more(u, at, to, l, n)) return at;
        at += n;
    }
}

/* ---- the rest ------------------------------------------------------------------------------------ */

typedef struct rest_reader {
    clause_rest *r;
    const units *u;
    size_t at, to;
    unit_set used;
    const devices *d;
    entity_mention *into; /* what, or except */
    bool beside;          /* "by", "near" stood before */
} rest_reader;

static bool free_at(const rest_reader *x, size_t i)
{
    return i < x->to && !(x->used >> i & 1);
}

static bool phrase_here(rest_reader *x, const phrase_list *l, size_t *ret_n)
{
    return phrase_list_run(l, x->u->at, x->at, x->to, x->used, ret_n);
}

static void name_word(rest_reader *x, const char *s)
{
    entity_mention *m = x->into;
    const unit *u = &x->u->at[x->at];
    if (m->n == 0) m->begin = u->begin;
    m->beside = m->beside || x->beside;
    x->beside = false;
    m->end = u->end;
    if (m->n < sizeof m->at / sizeof *m->at) m->at[m->n++] = s;
    bool plural;
    if (devices_is_kind_word(x->d->lex, s, &plural) && plural) m->plural = true;
}

static void name_device(rest_reader *x, const unit *u)
{
    const word_list *name = &x->d->index.devices[u->device].names[u->name]->content;
    for (size_t i = 0; i < name->n; i++) name_word(x, name->at[i]);
    if (x->into != &x->r->what) return;
    x->r->n_whole++;
    x->r->device = u->device;
}

static bool choice_here(const rest_reader *x, size_t *ret_n)
{
    *ret_n = 0;
    for (size_t i = 0; i < x->d->lex->n_values; i++) {
        const value_def *v = &x->d->lex->values[i];
        for (size_t k = 0; k < v->n_choices; k++) {
            size_t n;
            if (phrase_list_run(&v->choices[k].said, x->u->at, x->at, x->to, x->used, &n) && n > *ret_n)
                *ret_n = n;
        }
    }
    return *ret_n > 0;
}

/* Whether a cue uses the words beside it or not: "turn it up 2 degrees". */
static bool is_difference(const rest_reader *x, size_t at)
{
    for (size_t from = at > 2 ? at - 2 : 0; from <= at; from++) {
        size_t n = 0;
        if (phrase_list_run(&x->d->lex->differences, x->u->at, from, x->to, 0, &n) && from + n > at)
            return true;
    }
    return false;
}

static void clause_add_value(rest_reader *x, size_t n, bool choice)
{
    if (x->r->n_values < CLAUSE_VALUES_MAX)
        x->r->values[x->r->n_values++] = (clause_value){
            .at = x->at, .n = n, .choice = choice, .difference = !choice && is_difference(x, x->at)};
    else
        x->r->n_strange++;
}

static void add_degree(rest_reader *x, size_t n)
{
    size_t before = x->r->n_values;
    clause_add_value(x, n, true);
    if (x->r->n_values > before) x->r->values[before].degree = true;
}

static bool is_plural_word(const rest_reader *x, size_t i)
{
    bool plural;
    return free_at(x, i) && x->u->at[i].kind == UNIT_WORD &&
           devices_is_kind_word(x->d->lex, x->u->at[i].s, &plural) && plural;
}

/* "lamp 2", "in 205": a number that some device has in its name, where a name is expected. */
static bool names_by_number(const rest_reader *x, const unit *u)
{
    if (u->measure || x->at == 0 || !devices_know(x->d, u->s)) return false;
    const unit *before = &x->u->at[x->at - 1];
    if (x->used >> (x->at - 1) & 1)
        return u->value >= 100 && before->kind == UNIT_WORD && before->state == false;
    bool continues = x->into->n ? x->into->end == before->end : x->into != &x->r->what;
    return before->kind == UNIT_WORD && (continues || u->value >= 100);
}

/* A name, "the two lamps", or a value. */
static void clause_read_number(rest_reader *x, const unit *u)
{
    if (!u->measure && is_plural_word(x, x->at + 1) && u->value >= 2)
        x->into->count = (size_t)u->value;
    else if (names_by_number(x, u))
        name_word(x, u->s);
    else
        clause_add_value(x, 1, false);
}

static void strange(rest_reader *x)
{
    const unit *u = &x->u->at[x->at];
    if (x->r->first_strange == SIZE_MAX) x->r->first_strange = x->at;
    x->r->n_strange++;
    if (u->kind == UNIT_WORD) name_word(x, u->s);
}

static void begin_except(rest_reader *x)
{
    if (x->r->n_except < CLAUSE_EXCEPT_MAX)
        x->into = &x->r->except[x->r->n_except++];
    else
        x->r->n_strange++;
}

/* A word that names: of a device, or for a kind of them. */
static bool is_name_word(const rest_reader *x, const unit *u)
{
    return u->kind == UNIT_WORD && (devices_know(x->d, u->s) || devices_is_kind_word(x->d->lex, u->s, NULL));
}

static void read_sign(rest_reader *x, const unit *u)
{
    if (strcmp(u->s, ":") != 0 && strcmp(u->s, "-") != 0 && strcmp(u->s, ",") != 0 && strcmp(u->s, "?") != 0)
        strange(x);
    x->at++;
}

/* Nothing but articles stands between unit i and the end or a word of the cue. */
static bool ends_at(const rest_reader *x, size_t i)
{
    const unit *at = x->u->at;
    while (free_at(x, i) && at[i].kind == UNIT_WORD && phrase_list_has_word(&x->d->lex->determiners, at[i].s))
        i++;
    return !free_at(x, i);
}

/* "on the desk" places something; the "on" of "light on off" does not, nor does the "of" of "and the fan of". */
static bool leads_nowhere(const rest_reader *x)
{
    const lexicon *l = x->d->lex;
    const unit *at = &x->u->at[x->at];
    if (l->adverbs.n && ends_at(x, x->at + 1) && !phrase_list_has_word(&l->adverbs, at->s)) return true;
    if (!at->state) return false;
    if (!free_at(x, x->at + 1)) return true;
    const unit *next = at + 1;
    return next->kind == UNIT_WORD && next->state;
}

static void read_word(rest_reader *x)
{
    const lexicon *l = x->d->lex;
    clause_rest *r = x->r;
    size_t n = 1;
    if (phrase_here(x, &l->report, &n)) r->reported = true;
    n = 1;
    if (phrase_here(x, &l->withdraw, &n))
        r->withdrawn = true;
    else if (phrase_here(x, &l->except, &n))
        begin_except(x);
    else if (phrase_here(x, &l->keep, &n))
        r->forbidden = r->keeps = true;
    else if (phrase_here(x, &l->prohibit, &n))
        r->forbidden = true;
    else if (phrase_here(x, &l->later, &n))
        r->later = true;
    else if (phrase_here(x, &l->degrees, &n))
        add_degree(x, n);
    else if (phrase_here(x, &l->everything, &n))
        x->into->everything = true;
    else if (phrase_here(x, &l->both, &n))
        x->into->both = true;
    else if (phrase_here(x, &l->all, &n))
        x->into->all = true;
    else if (x->u->at[x->at].adverb || phrase_here(x, &l->determiners, &n) ||
             (phrase_here(x, &l->fillers, &n) && n > 1))
        ; /* explained, means nothing; even when some device has such a word in its id */
    else if (is_name_word(x, &x->u->at[x->at]) && !phrase_list_has_word(&l->prepositions, x->u->at[x->at].s))
        name_word(x, x->u->at[x->at].s);
    else if (phrase_here(x, &l->fillers, &n) || phrase_here(x, &l->determiners, &n) ||
             (phrase_here(x, &l->prepositions, &n) && !leads_nowhere(x)))
        ; /* explained, means nothing */
    else if (phrase_here(x, &l->pronouns, &n))
        x->into->pronoun = true, x->into->singular = phrase_list_has_word(&l->singular, x->u->at[x->at].s);
    else if (phrase_here(x, &l->contrast, &n))
        r->contrast = true;
    else if (choice_here(x, &n))
        clause_add_value(x, n, true);
    else
        n = 1, strange(x);
    x->at += n;
}

void clause_rest_read(clause_rest *ret, const units *u, size_t from, size_t to, unit_set used,
                      const devices *d)
{
    *ret = (clause_rest){.device = SIZE_MAX, .first_strange = SIZE_MAX};
    rest_reader x = {.r = ret, .u = u, .at = from, .to = to, .used = used, .d = d, .into = &ret->what};
    while (x.at < to) {
        const unit *at = &u->at[x.at];
        if (x.into->n && phrase_list_run(&d->lex->beside, u->at, x.at, to, 0, &(size_t){0})) x.beside = true;
        if (used >> x.at & 1) {
            x.at++;
        } else if (at->kind == UNIT_DEVICE) {
            name_device(&x, at);
            x.at++;
        } else if (at->kind == UNIT_NUMBER || at->kind == UNIT_DURATION) {
            size_t n = 0;
            if (phrase_here(&x, &d->lex->later, &n))
                ret->later = true, x.at += n;
            else if (at->kind == UNIT_NUMBER)
                clause_read_number(&x, at), x.at++;
            else
                clause_add_value(&x, 1, false), x.at++;
        } else if (at->kind == UNIT_SIGN &&
                   !phrase_list_run(&d->lex->fillers, u->at, x.at, to, used, &(size_t){0})) {
            read_sign(&x, at);
        } else {
            read_word(&x);
        }
    }
}

/* ---- cues ---------------------------------------------------------------------------------------- */

/* What must not be: strange words, unless the request is held back anyway. */
static size_t cost(const clause_cue *c)
{
    return c->rest.later || c->rest.forbidden || c->rest.withdrawn ? 0 : c->rest.n_strange;
}

static bool is_explained(const clause_cue *c)
{
    return !c->rest.n_strange && !c->rest.later && !c->rest.forbidden && !c->rest.withdrawn;
}

/* Of cues that use as many words, one that explains them all wins: in "set the timer for 5 minutes" the time
 * is what is set. */
static bool is_better(const clause_cue *a, const clause_cue *b)
{
    size_t ca = cost(a), cb = cost(b);
    if (ca != cb) return ca < cb;
    size_t na = unit_set_len(a->used), nb = unit_set_len(b->used);
    return na != nb ? na > nb : is_explained(a) && !is_explained(b);
}

/* Its place in the clause; CLAUSE_CUES_MAX: there are better ones. */
static size_t cue_place(const clause *c, const clause_cue *x)
{
    size_t i = c->n_cues;
    while (i > 0 && is_better(x, c->cues[i - 1])) i--;
    return i;
}

static int keep_cue(clause *c, const action_def *action, unit_set used, const clause_rest *rest, arena *a)
{
    clause_cue *x = arena_alloc(a, sizeof *x);
    if (!x) return SHOAL_ENOMEM;
    *x = (clause_cue){.action = action, .used = used, .rest = *rest};
    size_t at = cue_place(c, x);
    if (at == CLAUSE_CUES_MAX) return 0;
    if (c->n_cues < CLAUSE_CUES_MAX) c->n_cues++;
    for (size_t i = c->n_cues - 1; i > at; i--) c->cues[i] = c->cues[i - 1];
    c->cues[at] = x;
    return 0;
}

static bool takes_text(const action_def *x)
{
    return x->n_takes && x->takes[0]->kind == VALUE_TEXT;
}

/* "kitchen timer 10 minutes": the values say what is wanted. */
static int read_bare(clause *c, const action_def *x, arena *a)
{
    bool may = x->bare && c->bare.n_values && c->bare.what.n && !c->bare.n_strange;
    return may ? keep_cue(c, x, 0, &c->bare, a) : 0;
}

static bool only_states(const units *u, unit_set used)
{
    for (size_t i = 0; i < u->n; i++)
        if (used >> i & 1 && !u->at[i].state) return false;
    return true;
}

/* Many cues use the same words: what is left beside them is read once. */
static const clause_rest *rest_beside(const clause *c, unit_set used)
{
    for (size_t i = 0; i < c->n_cues; i++)
        if (c->cues[i]->used == used) return &c->cues[i]->rest;
    return NULL;
}

/* Words of guards of several words ("hands off", "never mind") are no cues. */
static unit_set guards_in(const units *u, size_t from, size_t to, const lexicon *l)
{
    unit_set all = 0;
    for (size_t at = from; at < to; at++) {
        size_t n;
        if ((phrase_list_run(&l->keep, u->at, at, to, 0, &n) ||
             phrase_list_run(&l->withdraw, u->at, at, to, 0, &n)) &&
            n > 1)
            all |= (((unit_set)1 << n) - 1) << at;
    }
    return all;
}

static int read_cues(clause *c, const units *u, size_t from, word_bits words, const devices *d,
                     const action_def *x, arena *a)
{
    for (size_t i = 0; i < x->cues.n; i++) {
        if (!phrase_may_match(&x->cues.at[i], words)) continue;
        unit_set used = phrase_match(&x->cues.at[i], u->at, from, c->to, c->guarded, false);
        if (!used && c->except_at < c->to) /* "every light off except the lamp" */
            used = phrase_match(&x->cues.at[i], u->at, from, c->except_at, c->guarded, false);
        if (!used) continue;
        const clause_rest *rest = rest_beside(c, used);
        clause_rest own;
        if (!rest) {
            clause_rest_read(&own, u, from, c->to, used, d);
            own.only_state = only_states(u, used);
            rest = &own;
        }
        if (keep_cue(c, x, used, rest, a)) return SHOAL_ENOMEM;
    }
    return 0;
}

int clause_read_bare(clause *c, const devices *d, arena *a)
{
    int rc = 0;
    for (size_t i = 0; i < d->lex->n_actions && !rc; i++)
        if (devices_have_service(d, d->lex->actions[i].where)) rc = read_bare(c, &d->lex->actions[i], a);
    return rc;
}

size_t clause_trim(const units *u, size_t from, size_t to, const lexicon *l)
{
    for (size_t at = from + 1; at < to;) {
        size_t n = 0;
        bool sign = u->at[at].kind == UNIT_SIGN && at + 1 == to;
        bool filler = phrase_list_run(&l->fillers, u->at, at, to, 0, &n) ||
                      phrase_list_run(&l->leads, u->at, at, to, 0, &n);
        if (sign || (filler && at + n == to && !ends_guard(u, from, at, to, l))) {
            to = at;
            at = from + 1;
        } else {
            at++;
        }
    }
    return to;
}

int clause_read(clause *ret, const units *u, size_t from, size_t to, const devices *d, arena *a)
{
    ret->from = from;
    ret->to = to;
    ret->guarded = guards_in(u, from, to, d->lex);
    size_t n;
    for (ret->except_at = from; ret->except_at < to; ret->except_at++)
        if (phrase_list_run(&d->lex->except, u->at, ret->except_at, to, 0, &n)) break;
    clause_rest_read(&ret->bare, u, from, to, 0, d);
    word_bits words = phrase_words(u->at, from, to);
    int rc = 0;
    for (size_t i = 0; i < d->lex->n_actions && !rc; i++) {
        if (takes_text(&d->lex->actions[i]) || !devices_have_service(d, d->lex->actions[i].where)) continue;
        rc = read_cues(ret, u, from, words, d, &d->lex->actions[i], a);
        if (!rc) rc = read_bare(ret, &d->lex->actions[i], a);
    }
    return rc;
}

bool clause_value_fits(const clause_value *v, const units *u, const value_def *def, const char **ret_means)
{
    const unit *x = &u->at[v->at];
    *ret_means = NULL;
    if (v->choice) {
        for (size_t k = 0; k < def->n_choices; k++) {
            size_t n;
            if (!phrase_list_run(&def->choices[k].said, u->at, v->at, v->at + v->n, 0, &n) || n != v->n)
                continue;
            *ret_means = def->choices[k].means;
            return true;
        }
        return false;
    }
    if (def->kind == VALUE_DURATION) return x->kind == UNIT_DURATION;
    if (def->kind != VALUE_NUMBER || x->kind != UNIT_NUMBER) return false;
    if (!x->measure) return def->bare;
    for (size_t i = 0; i < def->n_units; i++)
        if (word_list_has(&def->units[i].measures, x->measure, strlen(x->measure))) return true;
    return word_list_has(&def->measures, x->measure, strlen(x->measure));
}
