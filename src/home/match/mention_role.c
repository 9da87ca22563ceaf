/* mention_role.c: what each unit of a sentence is there for; see mention.h. */
#include <string.h>

#include "match/mention.h"

/* ---- whole names ------------------------------------------------------------------------------- */

static size_t name_length(const sentence *s, const index_text *name, size_t at)
{
    if (name->raw.n < 2 || at + name->raw.n > s->n) return 0;
    for (size_t i = 0; i < name->raw.n; i++) {
        const unit *u = &s->u[at + i];
        if (u->kind == UNIT_SIGN || !match_devices_alike(s->t, u->s, name->raw.at[i].s)) return 0;
    }
    return name->raw.n;
}

static size_t longest_of(const sentence *s, const index_text *first, size_t at)
{
    size_t best = 0;
    for (const index_text *n = first; n; n = n->next) {
        size_t len = name_length(s, n, at);
        if (len > best) best = len;
    }
    return best;
}

/* The longest name of a device that begins here; 0: none. Names are found by their first word as it stands,
 * and by the endings that a language adds. */
static size_t mention_role_name_at(const sentence *s, size_t at)
{
    const char *word = s->u[at].s;
    const word_endings *e = &s->t->endings;
    const strmap *starts = &s->x->index.starts;
    if (s->u[at].kind == UNIT_SIGN) return 0;
    size_t best = longest_of(s, strmap_get(starts, word), at), n = strlen(word);
    for (size_t i = 0; i < e->added.n + e->changed.n; i++) {
        const char *ending = i < e->added.n ? e->added.at[i] : e->changed.at[i - e->added.n];
        char form[RESPELLED_BYTES];
        size_t m = strlen(ending);
        for (size_t k = 0; k <= e->changed.n; k++) {
            const char *other = k ? e->changed.at[k - 1] : "";
            if (!m || n <= m || strcmp(word + n - m, ending) != 0 || n - m + strlen(other) >= sizeof form)
                continue;
            memcpy(form, word, n - m);
            strcpy(form + n - m, other);
            size_t len = longest_of(s, strmap_get(starts, form), at);
            if (len > best) best = len;
        }
    }
    return best;
}

static void mark_names(sentence *s)
{
    for (size_t i = 0; i < s->n;) {
        size_t n = mention_role_name_at(s, i);
        for (size_t k = i; k < i + n; k++) {
            s->role[k] = s->u[k].kind == UNIT_NUMBER ? ROLE_NUMBER : ROLE_CONTENT;
            s->named |= (unit_set)1 << k;
        }
        if (n) s->run_begins |= (unit_set)1 << i;
        i += n ? n : 1;
    }
}

/* ---- several words ----------------------------------------------------------------------------- */

static size_t phrase_sense_at(const sentence *s, size_t at, word_sense *ret)
{
    const word_sense *first = utterance_sense(s->t, &s->u[at]);
    size_t best = 0;
    if (!first || !(first->classes & WORD_STARTS)) return 0;
    for (size_t i = 0; i < s->t->n_phrases; i++) {
        unit_set got = phrase_match(&s->t->phrases[i].said, s->u, at, s->n, s->named, true);
        if (unit_set_len(got) <= best) continue;
        best = unit_set_len(got);
        *ret = s->t->phrases[i].sense;
    }
    return best;
}

/* The longest of the lists that matters here, and what it is. */
static size_t list_at(const sentence *s, size_t at, unit_role *ret)
{
    static const struct {
        int list;
        unit_role role;
    } LISTS[] = {
        {WORD_EXCEPT_AT, ROLE_EXCEPT}, {WORD_BOTH_AT, ROLE_BOTH}, {WORD_EVERYTHING_AT, ROLE_EVERYTHING},
        {WORD_ALL_AT, ROLE_ALL},       {WORD_JOIN_AT, ROLE_JOIN}, {WORD_FILLER_AT, ROLE_FILLER},
        {WORD_VERB_AT, ROLE_VERB}};
    size_t best = 0;
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        size_t n;
        bool run = phrase_list_run(&s->t->lists[LISTS[i].list], s->u, at, s->n, s->named, &n);
        bool closed = LISTS[i].role != ROLE_FILLER && LISTS[i].role != ROLE_VERB;
        if (!run || n <= best || (n == 1 && !closed)) continue;
        best = n;
        *ret = LISTS[i].role;
    }
    return best;
}

static unit_set guard_words_of(const sentence *s)
{
    static const int LISTS[] = {WORD_HARMLESS_AT, WORD_NEGATION_AT, WORD_LATER_AT, WORD_QUESTION_AT};
    const utterance_sentence all = {(size_t)(s->u - s->d->units), (size_t)(s->u - s->d->units) + s->n};
    unit_set guard_words = 0;
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++)
        guard_words |= utterance_find(s->d, &all, &s->t->lists[LISTS[i]], s->named);
    return guard_words;
}

/* ---- single words ------------------------------------------------------------------------------ */

bool mention_is_part(void *of, const char *word)
{
    const sentence *s = of;
    if (word_sense_names(device_lexicon_sense(&s->t->senses, word))) return true;
    word_owners who;
    return match_devices_word(s->x, word, &who);
}

static bool is_of_device(const sentence *s, const unit *u)
{
    word_owners who;
    return match_devices_find(s->x, s->t, u->s, &who);
}

static bool is_known_thing(const sentence *s, const unit *u)
{
    compound c;
    return u->kind == UNIT_WORD &&
           (is_of_device(s, u) || compound_split(&c, s->t, u->s, mention_is_part, (void *)s));
}

/* Does what follows take a determiner or a preposition before it? A number does not: it is a value. */
static bool leads_on(const sentence *s, size_t at)
{
    if (at + 1 >= s->n || s->u[at + 1].kind != UNIT_WORD) return false;
    const word_sense *next = utterance_sense(s->t, &s->u[at + 1]);
    if (!next || word_sense_names(next)) return true;
    if (next->number && !next->classes) return false;
    if (next->classes & (WORD_DETERMINER | WORD_ALL | WORD_BOTH)) return true;
    bool other = next->classes & ~(unsigned)WORD_STARTS;
    return !other || is_of_device(s, &s->u[at + 1]);
}

/* Nothing but fillers stands before it in its clause, so that "lock the door" asks for something. */
static bool begins_clause(const sentence *s, size_t at)
{
    while (at-- > 0) {
        if (s->role[at] == ROLE_JOIN || s->role[at] == ROLE_BREAK) return true;
        if (s->role[at] != ROLE_FILLER) return false;
    }
    return true;
}

/* "lock the door", "switch on the light": it asks, it does not name. */
static bool asks_here(const sentence *s, size_t at)
{
    if (!begins_clause(s, at) || at + 1 == s->n) return false;
    const word_sense *next = s->u[at + 1].kind == UNIT_WORD ? utterance_sense(s->t, &s->u[at + 1]) : NULL;
    bool particle = next && next->classes & WORD_FILLER && leads_on(s, at + 1);
    return particle || leads_on(s, at);
}

/* Does some device have just this word in its name? */
static bool is_in_a_name(const sentence *s, const unit *u)
{
    const index_word *w = strmap_get(&s->x->index.words, u->s);
    return w && w->who.from & FROM_NAME;
}

static unit_role closed_role(const sentence *s, size_t at, const word_sense *w)
{
    bool verb = w->classes & WORD_VERB, filler = w->classes & WORD_FILLER;
    bool leads = leads_on(s, at);
    if (word_sense_names(w) && !(verb && asks_here(s, at))) return ROLE_CONTENT;
    if (w->classes & WORD_DETERMINER && (leads || !filler)) return ROLE_DETERMINER;
    if (w->classes & WORD_PREPOSITION) return leads ? ROLE_PREPOSITION : ROLE_FILLER;
    if (verb) return ROLE_VERB;
    if (filler && is_in_a_name(s, &s->u[at])) return ROLE_CONTENT;
    if (w->classes & ~(unsigned)WORD_STARTS) return ROLE_FILLER;
    return w->number ? ROLE_NUMBER : ROLE_UNKNOWN;
}

static unit_role role_of(const sentence *s, size_t at)
{
    const unit *u = &s->u[at];
    if (u->kind == UNIT_SIGN)
        return strcmp(u->s, "%") == 0 || strcmp(u->s, "\xC2\xB0") == 0 ? ROLE_FILLER : ROLE_BREAK;
    if (u->kind == UNIT_NUMBER) return ROLE_NUMBER;
    const word_sense *w = utterance_sense(s->t, u);
    unit_role role = w ? closed_role(s, at, w) : ROLE_UNKNOWN;
    if (role == ROLE_UNKNOWN && is_known_thing(s, u)) return ROLE_CONTENT;
    return role;
}

/* Is the unit in a span that a model found? */
static bool is_in_span(const sentence *s, const unit *u)
{
    for (size_t i = 0; i < s->o->n_spans; i++)
        if (u->begin < s->o->spans[i].end && u->end > s->o->spans[i].begin) return true;
    return false;
}

/* Does it stand beside what names a device, with nothing between but determiners and prepositions? */
static bool is_beside_content(const sentence *s, size_t at)
{
    for (size_t i = at; i-- > 0;) {
        if (s->role[i] == ROLE_CONTENT) return true;
        if (s->role[i] != ROLE_DETERMINER && s->role[i] != ROLE_PREPOSITION && s->role[i] != ROLE_UNKNOWN)
            break;
    }
    for (size_t i = at + 1; i < s->n; i++) {
        if (s->role[i] == ROLE_CONTENT) return true;
        if (s->role[i] != ROLE_DETERMINER && s->role[i] != ROLE_PREPOSITION && s->role[i] != ROLE_UNKNOWN)
            break;
    }
    return false;
}

/* An unknown word in a span is a device that is not there, whatever is asked for. One elsewhere is none, but for
 * those beside a device's words: what a model left out must not make "the sauna light" a light. */
static void mind_spans(sentence *s)
{
    for (size_t i = 0; i < s->n && s->o->n_spans; i++) {
        if (s->role[i] != ROLE_UNKNOWN) continue;
        if (is_in_span(s, &s->u[i]))
            s->asks = true;
        else if (!is_beside_content(s, i))
            s->role[i] = ROLE_FILLER;
    }
}

/* "the red lamp", "die warme Lampe" (which folds like a verb): what stands there belongs to the name, and no
 * name has it. */
static void mind_adjectives(sentence *s)
{
    for (size_t i = 1; i + 1 < s->n; i++) {
        unit_role before = s->role[i - 1];
        bool begun = before == ROLE_DETERMINER || before == ROLE_ALL || before == ROLE_BOTH;
        bool word = s->role[i] == ROLE_FILLER || s->role[i] == ROLE_VERB;
        if (begun && word && s->role[i + 1] == ROLE_CONTENT) s->role[i] = ROLE_UNKNOWN;
    }
}

/* "20 percent", "21 °": a value, no lamp of that number. */
static void mind_values(sentence *s)
{
    for (size_t i = 0; i + 1 < s->n; i++) {
        const unit *next = &s->u[i + 1];
        const word_sense *w = next->kind == UNIT_WORD ? utterance_sense(s->t, next) : NULL;
        bool sign = next->kind == UNIT_SIGN && s->role[i + 1] == ROLE_FILLER;
        bool value = sign || (w && w->classes & WORD_MEASURE);
        if (s->role[i] == ROLE_NUMBER && value && !(s->named >> i & 1)) s->role[i] = ROLE_FILLER;
    }
}

void mention_roles(sentence *s)
{
    for (size_t i = 0; i < s->n; i++) s->role[i] = ROLE_BREAK;
    mark_names(s);
    unit_set guard_words = guard_words_of(s);
    for (size_t i = 0; i < s->n;) {
        size_t n = 1;
        unit_role role = ROLE_CONTENT;
        bool named = s->named >> i & 1;
        if (!named && (n = phrase_sense_at(s, i, &s->phrase[i].sense)))
            s->phrase[i].n = n;
        else if (!named && !(n = list_at(s, i, &role)))
            role = role_of(s, i), n = 1;
        bool is_guard_word =
            guard_words >> i & 1 && role != ROLE_CONTENT && role != ROLE_VERB && role != ROLE_JOIN;
        if (is_guard_word) role = ROLE_FILLER;
        for (size_t k = i; !named && k < i + n && k < s->n; k++) s->role[k] = role;
        s->asks = s->asks || role == ROLE_VERB;
        i += named ? 1 : n;
    }
    mind_values(s);
    mind_adjectives(s);
    mind_spans(s);
}
