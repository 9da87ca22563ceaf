/* devices.c: which device is meant; see devices.h. */
#include "nlu/devices.h"

#include <string.h>

#include "shoal.h"

/* ---- building ---------------------------------------------------------------------------------- */

/* Words as units, so that synonyms of several words can be matched. */
static size_t as_units(const words *w, unit u[UNITS_MAX])
{
    size_t n = w->n < UNITS_MAX ? w->n : UNITS_MAX;
    for (size_t i = 0; i < n; i++) u[i] = unit_of_word(w->at[i].s, w->at[i].sign);
    return n;
}

int devices_canonical(word_list *ret, const lexicon *lex, const words *w, arena *a)
{
    unit u[UNITS_MAX];
    size_t n = as_units(w, u);
    word_list l = {.at = arena_alloc(a, (n + 1) * sizeof *l.at)};
    if (!l.at) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n;) {
        const char *means = u[i].s;
        size_t used = lexicon_synonym_at(lex, u, i, n, &means);
        if (u[i].kind != UNIT_SIGN) l.at[l.n++] = means;
        i += used ? used : 1;
    }
    *ret = l;
    return 0;
}

/* Where the name does not say where a device is, its id may: "light.kitchen 'Ceiling'". */
static int add_id(devices *d, index_text *t)
{
    words tail = t->raw;
    word_list content;
    while (tail.n && !(tail.at->sign && strcmp(tail.at->s, ".") == 0)) tail.at++, tail.n--;
    int rc = devices_canonical(&content, d->lex, &tail, d->index.a);
    if (!rc) rc = device_index_add_all(&d->index, &content, t->device, FROM_ID);
    return rc ? rc : device_index_add_start(&d->index, t);
}

static int devices_read(void *user, index_text *t, unsigned from, const char *text)
{
    devices *d = user;
    int rc = words_split(&t->raw, d->index.a, text, strlen(text));
    if (!rc) rc = devices_canonical(&t->content, d->lex, &t->raw, d->index.a);
    if (rc || from == FROM_ID) return rc ? rc : add_id(d, t);
    rc = device_index_add_all(&d->index, &t->content, t->device, from);
    return rc || from != FROM_NAME || !t->content.n ? rc : device_index_add_start(&d->index, t);
}

/* After all other words, so that a search among those ends where these begin. */
static int add_typed(devices *d, size_t i)
{
    const indexed_device *x = &d->index.devices[i];
    int rc = 0;
    for (size_t k = 0; k < x->n_names; k++)
        for (size_t j = 0; j < x->names[k]->raw.n && !rc; j++)
            rc = device_index_add(&d->index, x->names[k]->raw.at[j].s, i, FROM_TYPED);
    return rc;
}

int devices_init(devices *ret, const lexicon *lex, const device *list, size_t n, arena *a)
{
    *ret = (devices){.lex = lex, .at = list, .n = n < DEVICES_MAX ? n : DEVICES_MAX};
    ret->index = (device_index){.a = a, .read = devices_read, .user = ret};
    int rc = device_index_build(&ret->index, list, ret->n);
    for (size_t i = 0; i < ret->n && !rc; i++) {
        indexed_device *x = &ret->index.devices[i];
        size_t kind = lexicon_kind_of(lex, list[i].id, strcspn(list[i].id, "."), &x->names[0]->raw);
        x->kinds = kind == SIZE_MAX ? 0 : (uint64_t)1 << kind;
        rc = add_typed(ret, i);
    }
    return rc;
}

void devices_done(devices *d)
{
    device_index_done(&d->index);
}

/* ---- comparing --------------------------------------------------------------------------------- */

static bool devices_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The value of digits or of a number word. */
static bool number_of(const lexicon *l, const char *s, double *ret)
{
    size_t n = devices_is_digit(*s) ? strspn(s, "0123456789") : 0;
    if (n == 0 || n > 6 || s[n]) return lexicon_number(l, s, ret);
    *ret = 0;
    for (size_t i = 0; i < n; i++) *ret = *ret * 10 + (s[i] - '0');
    return true;
}

/* "lamps" and "lamp", "one" and "1". */
static bool same_word(const lexicon *lex, const char *a, const char *b)
{
    double x, y;
    if (a[0] == b[0]) return words_same_stem(a, b);
    if (devices_is_digit(a[0]) == devices_is_digit(b[0])) return false;
    return number_of(lex, a, &x) && number_of(lex, b, &y) && x == y;
}

static bool devices_list_has(const lexicon *lex, const word_list *l, const char *w)
{
    for (size_t i = 0; i < l->n; i++)
        if (same_word(lex, w, l->at[i])) return true;
    return false;
}

bool devices_is_kind_word(const lexicon *l, const char *w, bool *ret_plural)
{
    const kind_word *k = lexicon_kind_word(l, w);
    if (ret_plural) *ret_plural = k && k->plural;
    return k;
}

/* Join who has the same number written in another way: "one" and "1". */
static void find_number(const devices *d, const char *w, word_owners *ret)
{
    double v, other;
    if (!number_of(d->lex, w, &v)) return;
    for (const index_word *e = d->index.first; e; e = e->next)
        if (devices_is_digit(*w) != devices_is_digit(*e->s) && number_of(d->lex, e->s, &other) && v == other)
            word_owners_join(ret, &e->who);
}

static void look_up_word(const devices *d, const char *w, word_owners *ret)
{
    static const char *added[] = {"s", "'s", "es"}, *changed[] = {"y", "ies"};
    static const word_endings PLURAL = {{3, added}, {2, changed}, 1, words_same_stem};
    *ret = (word_owners){0};
    device_index_word(&d->index, w, ret);
    device_index_forms(&d->index, &PLURAL, w, ret);
    find_number(d, w, ret);
}

/* Who has the word, in singular or plural; in the memo or in *space. Words of letters stay where they are as long as
 * the memo is there; digits are those of one sentence. */
static const word_owners *find_word(const devices *d, const char *w, word_owners *space)
{
    bool lasts = d->memo && ((*w >= 'a' && *w <= 'z') || (unsigned char)*w >= 0x80);
    size_t slot = (uintptr_t)w / 16 % WORD_MEMO_SLOTS;
    word_owners *who = lasts ? &d->memo->who[slot] : space;
    if (lasts && d->memo->word[slot] == w) return who;
    look_up_word(d, w, who);
    if (lasts) d->memo->word[slot] = w;
    return who;
}

bool devices_know(const devices *d, const char *w)
{
    word_owners space;
    return find_word(d, w, &space)->from & (FROM_NAME | FROM_PLACE);
}

bool devices_know_typed(const devices *d, const char *w)
{
    word_owners space;
    return find_word(d, w, &space)->from & FROM_TYPED;
}

const kind_def *devices_kind(const devices *d, size_t i)
{
    uint64_t kinds = d->index.devices[i].kinds;
    return kinds ? &d->lex->kinds[__builtin_ctzll(kinds)] : NULL;
}

bool devices_has_service(const devices *d, size_t i, const char *service)
{
    bool has = !service;
    for (size_t k = 0; !has && k < d->at[i].n_services; k++) has = strcmp(d->at[i].services[k], service) == 0;
    return has;
}

bool devices_have_service(const devices *d, const char *service)
{
    bool any = !service;
    for (size_t i = 0; !any && i < d->n; i++) any = devices_has_service(d, i, service);
    return any;
}

bool devices_name_has(const devices *d, size_t device, const phrase_list *l)
{
    unit u[UNITS_MAX];
    size_t n = as_units(&d->index.devices[device].names[0]->raw, u);
    return phrase_list_in(l, u, 0, n, 0) != 0;
}

/* What each word of a mention can stand for, looked up once. Bit i of any and named: kinds[i]. */
typedef struct query {
    const entity_mention *m;
    word_owners has[MENTION_WORDS_MAX];
    uint64_t any[MENTION_WORDS_MAX];   /* means whatever is of the kind ("light") */
    uint64_t named[MENTION_WORDS_MAX]; /* means those named so ("lamp"), else whatever is of the kind */
} query;

/* Of all that there is room for, only the mention's words are written. */
static void read_query(query *q, const devices *d, const entity_mention *m)
{
    q->m = m;
    for (size_t k = 0; k < m->n; k++) {
        const kind_word *kind = lexicon_kind_word(d->lex, m->at[k]);
        q->has[k] = *find_word(d, m->at[k], &q->has[k]);
        q->any[k] = kind ? kind->words : 0;
        q->named[k] = kind ? kind->names & ~kind->words : 0;
    }
}

static bool kind_among(const devices *d, size_t i, uint64_t kinds)
{
    return d->index.devices[i].kinds & kinds;
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
        if (word_owners_has(&q->has[k], i, FROM_NAME))
            score += 8;
        else if (word_owners_has(&q->has[k], i, FROM_PLACE))
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
    const indexed_device *x = &d->index.devices[i];
    for (size_t k = 0; k < x->n_names; k++) {
        const word_list *name = &x->names[k]->content;
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
        for (size_t j = 0; j < d->index.devices[i].n_names; j++)
            if (list_has_exactly(&d->index.devices[i].names[j]->content, m->at[k])) return true;
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
            if (kind_among(d, i, q->named[k]) && word_owners_has(&q->has[k], i, FROM_NAME)) return true;
    return false;
}

static bool is_named_so(const devices *d, size_t i, const query *q)
{
    for (size_t k = 0; k < q->m->n; k++)
        if (kind_among(d, i, q->named[k]) && !word_owners_has(&q->has[k], i, FROM_NAME)) return false;
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
    query q;
    read_query(&q, d, m);
    device_set s = group ? find_group(d, &q, kinds) : find_one(d, &q, kinds);
    if (device_set_count(&s) == 0 && kinds != UINT64_MAX) return devices_find(d, m, UINT64_MAX, ret_group);
    return s;
}

bool devices_is_sole_name(const devices *d, const entity_mention *m)
{
    query q;
    read_query(&q, d, m);
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
    query q;
    read_query(&q, d, m);
    for (size_t k = 0; k < m->n; k++)
        if (!((q.any[k] | q.named[k]) & kinds)) return false;
    return m->n > 0;
}
