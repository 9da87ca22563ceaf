/* devices.c: which device is meant; see devices.h. */
#include "nlu/devices.h"

#include <string.h>

#include "shoal.h"

/* ---- building ---------------------------------------------------------------------------------- */

/* Words as units, so that synonyms of several words can be matched. */
static size_t as_units(const words *w, unit u[UNITS_MAX])
{
    size_t n = w->n < UNITS_MAX ? w->n : UNITS_MAX;
    for (size_t i = 0; i < n; i++)
        u[i] = (unit){.kind = w->at[i].sign ? UNIT_SIGN : UNIT_WORD, .s = w->at[i].s};
    return n;
}

static size_t synonym_at(const lexicon *lex, const unit *u, size_t i, size_t n, const char **ret_means)
{
    size_t best = 0;
    if (!lexicon_begins_synonym(lex, u[i].s)) return 0;
    for (size_t k = 0; k < lex->n_synonyms; k++) {
        unit_set used = phrase_list_at(&lex->synonyms[k].said, u, i, n, 0);
        if (!used) continue;
        size_t len = (size_t)__builtin_popcountll(used);
        if (len <= best) continue;
        best = len;
        *ret_means = lex->synonyms[k].means;
    }
    return best;
}

int devices_canonical(word_list *ret, const lexicon *lex, const words *w, arena *a)
{
    unit u[UNITS_MAX];
    size_t n = as_units(w, u);
    word_list l = {.at = arena_alloc(a, (n + 1) * sizeof *l.at)};
    if (!l.at) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n;) {
        const char *means = u[i].s;
        size_t used = synonym_at(lex, u, i, n, &means);
        if (u[i].kind != UNIT_SIGN) l.at[l.n++] = means;
        i += used ? used : 1;
    }
    *ret = l;
    return 0;
}

static int add_name(device_words *dw, const lexicon *lex, const char *name, arena *a)
{
    words *raw = &dw->raw[dw->n_names];
    int rc = words_split(raw, a, name, strlen(name));
    if (!rc) rc = devices_canonical(&dw->names[dw->n_names], lex, raw, a);
    if (!rc && dw->names[dw->n_names].n) dw->n_names++;
    return rc;
}

static int add_texts(word_list *to, const lexicon *lex, const char *text, arena *a)
{
    words w;
    word_list more;
    int rc = words_split(&w, a, text, strlen(text));
    if (!rc) rc = devices_canonical(&more, lex, &w, a);
    const char **all = rc ? NULL : arena_alloc(a, (to->n + more.n + 1) * sizeof *all);
    if (!all) return SHOAL_ENOMEM;
    if (to->n) memcpy(all, to->at, to->n * sizeof *all);
    if (more.n) memcpy(all + to->n, more.at, more.n * sizeof *all);
    *to = (word_list){to->n + more.n, all};
    return 0;
}

/* Area, groups and id together: where the name does not say it, they may ("light.kitchen 'Ceiling'"). The id was
 * split before, as the last of the raw names. */
static int add_place(device_words *dw, const lexicon *lex, const device *d, arena *a)
{
    words tail = dw->raw[dw->n_names];
    while (tail.n && !(tail.at->sign && strcmp(tail.at->s, ".") == 0)) tail.at++, tail.n--;
    int rc = devices_canonical(&dw->place, lex, &tail, a);
    if (!rc && d->area) rc = add_texts(&dw->place, lex, d->area, a);
    for (size_t i = 0; i < d->n_groups && !rc; i++) rc = add_texts(&dw->place, lex, d->groups[i], a);
    return rc;
}

static int index_list(word_index *x, const lexicon *lex, const word_list *l, size_t device, bool place,
                      arena *a)
{
    int rc = 0;
    for (size_t i = 0; i < l->n && !rc; i++) rc = word_index_add(x, lex, l->at[i], device, place, a);
    return rc;
}

static int index_device(devices *d, size_t i, arena *a)
{
    const device_words *dw = &d->words[i];
    int rc = index_list(&d->known, d->lex, &dw->place, i, true, a);
    for (size_t k = 0; k < dw->n_names && !rc; k++) {
        rc = index_list(&d->known, d->lex, &dw->names[k], i, false, a);
        for (size_t j = 0; j < dw->raw[k].n && !rc; j++)
            rc = word_index_add(&d->typed, d->lex, dw->raw[k].at[j].s, i, false, a);
    }
    return rc;
}

static int devices_add_device(device_words *dw, const lexicon *lex, const device *d, arena *a)
{
    dw->n_domain = strcspn(d->id, ".");
    dw->raw = arena_alloc(a, (d->n_aliases + 2) * sizeof *dw->raw);
    dw->names = arena_alloc(a, (d->n_aliases + 2) * sizeof *dw->names);
    if (!dw->raw || !dw->names) return SHOAL_ENOMEM;
    int rc = add_name(dw, lex, d->name, a);
    for (size_t i = 0; i < d->n_aliases && !rc; i++) rc = add_name(dw, lex, d->aliases[i], a);
    if (!rc) rc = words_split(&dw->raw[dw->n_names], a, d->id, strlen(d->id));
    if (!rc) rc = devices_canonical(&dw->names[dw->n_names], lex, &dw->raw[dw->n_names], a);
    if (!rc) rc = add_place(dw, lex, d, a);
    if (!rc) dw->kind = lexicon_kind_of(lex, d->id, dw->n_domain, &dw->raw[0]);
    return rc;
}

int devices_init(devices *ret, const lexicon *lex, const device *list, size_t n, arena *a)
{
    *ret = (devices){.lex = lex, .at = list, .n = n < DEVICES_MAX ? n : DEVICES_MAX};
    ret->words = arena_alloc(a, (ret->n + 1) * sizeof *ret->words);
    int rc = ret->words ? 0 : SHOAL_ENOMEM;
    for (size_t i = 0; i < ret->n && !rc; i++) {
        rc = devices_add_device(&ret->words[i], lex, &list[i], a);
        if (!rc) rc = index_device(ret, i, a);
    }
    return rc;
}

void devices_done(devices *d)
{
    word_index_done(&d->known);
    word_index_done(&d->typed);
}

/* ---- comparing --------------------------------------------------------------------------------- */

static bool devices_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "lamps" and "lamp", "one" and "1". */
static bool same_word(const lexicon *lex, const char *a, const char *b)
{
    double x, y;
    if (a[0] == b[0]) return words_same_stem(a, b);
    if (devices_is_digit(a[0]) == devices_is_digit(b[0])) return false;
    return word_index_number(lex, a, &x) && word_index_number(lex, b, &y) && x == y;
}

static bool devices_list_has(const lexicon *lex, const word_list *l, const char *w)
{
    for (size_t i = 0; i < l->n; i++)
        if (same_word(lex, w, l->at[i])) return true;
    return false;
}

static bool any_of(const word_list *l, const char *w, bool *ret_plural)
{
    for (size_t i = 0; i < l->n; i++) {
        bool same = words_same(w, l->at[i]), plural = words_is_plural_of(w, l->at[i]);
        if (!same && !plural) continue;
        if (ret_plural) *ret_plural = plural;
        return true;
    }
    return false;
}

bool devices_is_kind_word(const lexicon *l, const char *w, bool *ret_plural)
{
    bool plural = false, found = false;
    for (size_t i = 0; i < l->n_kinds; i++) {
        bool p = false;
        const kind_def *k = &l->kinds[i];
        if (!any_of(&k->words, w, &p) && !any_of(&k->names, w, &p) && !any_of(&k->only, w, &p)) continue;
        found = true;
        plural = plural || p;
    }
    if (ret_plural) *ret_plural = plural;
    return found;
}

bool devices_know(const devices *d, const char *w)
{
    return word_index_find(&d->known, d->lex, w, NULL);
}

bool devices_know_typed(const devices *d, const char *w)
{
    return word_index_find(&d->typed, d->lex, w, NULL);
}

bool devices_name_has(const devices *d, size_t device, const phrase_list *l)
{
    unit u[UNITS_MAX];
    size_t n = as_units(&d->words[device].raw[0], u);
    return phrase_list_in(l, u, 0, n, 0) != 0;
}

/* What each word of a mention can stand for, looked up once. Bit i of any and named: kinds[i]. */
typedef struct query {
    const entity_mention *m;
    word_owners has[MENTION_WORDS_MAX];
    uint64_t any[MENTION_WORDS_MAX];   /* means whatever is of the kind ("light") */
    uint64_t named[MENTION_WORDS_MAX]; /* means those named so ("lamp"), else whatever is of the kind */
} query;

static query query_of(const devices *d, const entity_mention *m)
{
    query q = {.m = m};
    for (size_t k = 0; k < m->n; k++) {
        word_index_find(&d->known, d->lex, m->at[k], &q.has[k]);
        for (size_t i = 0; i < d->lex->n_kinds; i++) {
            const kind_def *kind = &d->lex->kinds[i];
            if (any_of(&kind->words, m->at[k], NULL))
                q.any[k] |= (uint64_t)1 << i;
            else if (any_of(&kind->names, m->at[k], NULL))
                q.named[k] |= (uint64_t)1 << i;
        }
    }
    return q;
}

static bool kind_among(const devices *d, size_t i, uint64_t kinds)
{
    return d->words[i].kind != SIZE_MAX && kinds >> d->words[i].kind & 1;
}

static bool list_has_exactly(const word_list *l, const char *w)
{
    return word_list_has(l, w, strlen(w));
}

/* How a device fits: every word explained, and by what. 0: it does not. */
static int fit(const devices *d, size_t i, const query *q)
{
    int score = 1;
    for (size_t k = 0; k < q->m->n; k++) {
        if (device_set_has(&q->has[k].names, i))
            score += 8;
        else if (device_set_has(&q->has[k].places, i))
            score += 5;
        else if (kind_among(d, i, q->any[k] | q->named[k]))
            score += 2;
        else
            return 0;
    }
    return score;
}

/* Do the words make up one whole name of the device, in any order? */
static bool is_whole_name(const devices *d, size_t i, const entity_mention *m)
{
    for (size_t k = 0; k < d->words[i].n_names; k++) {
        const word_list *name = &d->words[i].names[k];
        word_list said = {.n = m->n, .at = (const char **)m->at};
        bool whole = name->n == m->n;
        for (size_t j = 0; j < name->n && whole; j++)
            whole = devices_list_has(d->lex, &said, name->at[j]) && devices_list_has(d->lex, name, m->at[j]);
        if (whole) return true;
    }
    return false;
}

/* A plural that is how the device itself is called ("Dining Room Blinds") makes no group. */
static bool devices_is_own_plural(const devices *d, size_t i, const entity_mention *m)
{
    for (size_t k = 0; k < m->n; k++) {
        bool plural;
        if (!devices_is_kind_word(d->lex, m->at[k], &plural) || !plural) continue;
        for (size_t j = 0; j < d->words[i].n_names; j++)
            if (list_has_exactly(&d->words[i].names[j], m->at[k])) return true;
    }
    return false;
}

static bool kind_in(const devices *d, size_t i, uint64_t kinds)
{
    return kinds == UINT64_MAX || kind_among(d, i, kinds);
}

/* ---- finding ----------------------------------------------------------------------------------- */

/* "all the lamps" are those named so when some are; "all the lights" are lamps too. */
static bool devices_wants_named(const devices *d, const query *q)
{
    for (size_t k = 0; k < q->m->n; k++)
        for (size_t i = 0; q->named[k] && i < d->n; i++)
            if (kind_among(d, i, q->named[k]) && device_set_has(&q->has[k].names, i)) return true;
    return false;
}

static bool is_named_so(const devices *d, size_t i, const query *q)
{
    for (size_t k = 0; k < q->m->n; k++)
        if (kind_among(d, i, q->named[k]) && !device_set_has(&q->has[k].names, i)) return false;
    return true;
}

static device_set find_group(const devices *d, const query *q, uint64_t kinds)
{
    device_set s = {{0}};
    bool named = devices_wants_named(d, q);
    for (size_t i = 0; i < d->n; i++)
        if (kind_in(d, i, kinds) && fit(d, i, q) && (!named || is_named_so(d, i, q))) device_set_add(&s, i);
    return s;
}

static device_set find_one(const devices *d, const query *q, uint64_t kinds)
{
    device_set s = {{0}}, whole = {{0}};
    int best = 1;
    for (size_t i = 0; i < d->n; i++) {
        int f = kind_in(d, i, kinds) ? fit(d, i, q) : 0;
        if (f > best) {
            best = f;
            s = (device_set){{0}};
        }
        if (f == best && f > 1) device_set_add(&s, i);
        if (f > 1 && is_whole_name(d, i, q->m)) device_set_add(&whole, i);
    }
    return device_set_count(&whole) ? whole : s;
}

static bool own_plural(const devices *d, const entity_mention *m, uint64_t kinds)
{
    for (size_t i = 0; i < d->n; i++)
        if (kind_in(d, i, kinds) && is_whole_name(d, i, m) && devices_is_own_plural(d, i, m)) return true;
    return false;
}

device_set devices_find(const devices *d, const entity_mention *m, uint64_t kinds, bool *ret_group)
{
    bool group =
        m->all || m->everything || m->both || m->count > 1 || (m->plural && !own_plural(d, m, kinds));
    *ret_group = group;
    query q = query_of(d, m);
    device_set s = group ? find_group(d, &q, kinds) : find_one(d, &q, kinds);
    if (device_set_count(&s) == 0 && kinds != UINT64_MAX) return devices_find(d, m, UINT64_MAX, ret_group);
    return s;
}

bool devices_is_sole_name(const devices *d, const entity_mention *m)
{
    query q = query_of(d, m);
    size_t n = 0;
    bool whole = false;
    for (size_t i = 0; i < d->n && n < 2; i++) {
        if (!fit(d, i, &q)) continue;
        n++;
        whole = is_whole_name(d, i, m);
    }
    return n == 1 && whole;
}

bool devices_has_unknown(const devices *d, const entity_mention *m)
{
    for (size_t k = 0; k < m->n; k++)
        if (!devices_know(d, m->at[k]) && !devices_is_kind_word(d->lex, m->at[k], NULL)) return true;
    return false;
}

bool devices_mean_kinds(const devices *d, const entity_mention *m, uint64_t kinds)
{
    query q = query_of(d, m);
    for (size_t k = 0; k < m->n; k++)
        if (!((q.any[k] | q.named[k]) & kinds)) return false;
    return m->n > 0;
}
