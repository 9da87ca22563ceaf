/* units.c: from words to units; see units.h. */
#include "nlu/units.h"

#include <stdio.h>
#include <string.h>

/* ---- typing errors ------------------------------------------------------------------------------ */

/* How many words of the same first letter one request may have compared: enough for some hundred typing
 * errors in a home, and no long work for names that someone made up to be alike. */
enum { COMPARES_MAX = 1 << 17 };

/* The one known word that `typed` can be; NULL when there is none or more than one, or the work has run out.
 */
typedef struct guess {
    const char *typed, *meant;
    bool unclear;
    size_t *compares; /* left */
} guess;

static void consider(guess *g, const char *word)
{
    if (*word != *g->typed || g->unclear) return;
    if (*g->compares == 0) {
        g->unclear = true;
        return;
    }
    --*g->compares;
    if (!words_is_typo(g->typed, word)) return;
    if (g->meant && !words_same_stem(g->meant, word)) g->unclear = true;
    if (!g->meant) g->meant = word;
}

static const char *mended(const char *typed, const devices *d, size_t *compares)
{
    guess g = {.typed = typed, .compares = compares};
    const size_t *at = &d->lex->vocabulary_at[(unsigned char)*typed];
    for (size_t i = at[0]; i < at[1]; i++) consider(&g, d->lex->vocabulary[i]);
    for (const index_word *e = d->index.first; e && e->who.from != FROM_TYPED && !g.unclear; e = e->next)
        consider(&g, e->s);
    return g.unclear ? NULL : g.meant;
}

bool units_mend(words *w, const devices *d)
{
    size_t compares = COMPARES_MAX;
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        word *x = &w->at[i];
        if (x->sign || x->number || strlen(x->s) < 4) continue;
        bool known = lexicon_knows(d->lex, x->s) || devices_know(d, x->s) || devices_know_typed(d, x->s) ||
                     devices_is_kind_word(d->lex, x->s, NULL);
        const char *meant = known ? NULL : mended(x->s, d, &compares);
        if (meant) x->s = meant, any = true;
    }
    return any;
}

/* ---- building ------------------------------------------------------------------------------------ */

typedef struct maker {
    const words *w;
    size_t at, to;
    const devices *d;
    units *out;
} maker;

static const word *units_look(const maker *m, size_t ahead)
{
    return m->at + ahead < m->to ? &m->w->at[m->at + ahead] : NULL;
}

static void units_put(maker *m, unit u, size_t n_words)
{
    u.begin = m->w->at[m->at].begin;
    u.end = m->w->at[m->at + n_words - 1].end;
    m->at += n_words;
    if (m->out->n < UNITS_MAX && !u.s && u.kind == UNIT_NUMBER) {
        u.s = m->out->digits[m->out->n];
        snprintf(m->out->digits[m->out->n], sizeof *m->out->digits, "%.10g", u.value);
    }
    if (m->out->n < UNITS_MAX)
        m->out->at[m->out->n++] = u;
    else
        m->out->cut = true;
}

static size_t units_name_at(const maker *m, const words *name)
{
    if (m->at + name->n > m->to || name->n == 0) return 0;
    for (size_t i = 0; i < name->n; i++)
        if (!words_same(m->w->at[m->at + i].s, name->at[i].s)) return 0;
    return name->n;
}

/* The longest whole name that stands here. One word that the lexicon knows too ("Garage") is left to
 * devices_find, which knows what is asked. */
static size_t units_whole_name(const maker *m, unit *ret)
{
    size_t best = 0;
    const index_text *t = strmap_get(&m->d->index.starts, m->w->at[m->at].s);
    for (
        ; t;
        t = t->next) { /* the last device first: of names as long as each other the first device's is taken */
        size_t n = units_name_at(m, &t->raw);
        if (n == 0 || n < best || (n == 1 && lexicon_knows(m->d->lex, t->raw.at[0].s))) continue;
        best = n;
        ret->device = t->device;
        ret->name = t->nth;
    }
    return best;
}

static bool is_determiner(const maker *m, const word *x)
{
    return x && phrase_list_has_word(&m->d->lex->determiners, x->s);
}

static bool is_and(const maker *m, const word *x)
{
    return x && !x->sign && phrase_list_has_word(&m->d->lex->joins, x->s);
}

/* "25", "twenty five", "twenty-five", "one hundred"; *ret_n words of it, 0: none. */
static double number_here(const maker *m, size_t ahead, size_t *ret_n)
{
    const word *x = units_look(m, ahead);
    double v, more;
    *ret_n = 0;
    if (!x) return 0;
    if (x->number) {
        *ret_n = 1;
        return x->value;
    }
    if (!lexicon_number(m->d->lex, x->s, &v)) return 0;
    *ret_n = 1;
    for (;;) {
        const word *next = units_look(m, ahead + *ret_n);
        size_t hyphen = next && next->sign && strcmp(next->s, "-") == 0;
        next = units_look(m, ahead + *ret_n + hyphen);
        if (!next || next->number || !lexicon_number(m->d->lex, next->s, &more)) return v;
        bool tens = v >= 20 && v < 100 && more >= 1 && more < 10 && v / 10 == (double)(int)(v / 10);
        if (!tens && (more != 100 || v >= 1e9)) return v;
        v = tens ? v + more : v * more;
        *ret_n += 1 + hyphen;
    }
}

static const char *measure_of(const maker *m, const word *x)
{
    if (!x) return NULL;
    if (lexicon_unit(m->d->lex, x->s)) return x->s;
    for (size_t i = 0; i < m->d->lex->n_values; i++)
        for (size_t k = 0; k < m->d->lex->values[i].measures.n; k++)
            if (strcmp(m->d->lex->values[i].measures.at[k], x->s) == 0)
                return m->d->lex->values[i].measures.at[k];
    return NULL;
}

static bool is_comma(const word *x)
{
    return x && x->sign && strcmp(x->s, ",") == 0;
}

static bool is_hyphen(const word *x)
{
    return x && x->sign && strcmp(x->s, "-") == 0;
}

/* "and a half" at `ahead`: how many words, 0: it is not there. */
static size_t half_more(const maker *m, size_t ahead, double *ret)
{
    size_t at = ahead;
    if (!is_and(m, units_look(m, at))) return 0;
    at++;
    if (is_determiner(m, units_look(m, at))) at++;
    const word *x = units_look(m, at);
    if (!x || x->number || !lexicon_number(m->d->lex, x->s, ret) || *ret >= 1) return 0;
    return at + 1 - ahead;
}

/* One "5 minutes", "an hour", "half an hour", "two and a half hours", "an hour and a half". */
static size_t one_duration(const maker *m, size_t ahead, double *ret_seconds)
{
    size_t n, at = ahead, more;
    double v = number_here(m, at, &n), unit_s, half = 0;
    at += n;
    if (n == 0 && is_determiner(m, units_look(m, at)))
        v = 1, at++;
    else if (n == 0)
        return 0;
    if (n && v < 1) { /* half an hour, a quarter of an hour */
        if (units_look(m, at) && phrase_list_has_word(&m->d->lex->prepositions, units_look(m, at)->s)) at++;
        if (is_determiner(m, units_look(m, at))) at++;
    }
    if (n && (more = half_more(m, at, &half))) v += half, at += more;
    if (is_hyphen(units_look(m, at))) at++;
    const word *x = units_look(m, at);
    if (!x || x->sign || !lexicon_measure(m->d->lex, x->s, &unit_s)) return 0;
    at++;
    if (half == 0 && (more = half_more(m, at, &half))) {
        double other;
        const word *after = units_look(m, at + more);
        if (!after || after->sign || !lexicon_measure(m->d->lex, after->s, &other)) v += half, at += more;
    }
    *ret_seconds = v * unit_s;
    const word *minutes = units_look(m, at);
    bool follows = minutes && minutes->number && minutes->glued; /* 1h30 */
    if (!follows || unit_s <= 60) return at - ahead;
    *ret_seconds += minutes->value * unit_s / 60;
    return at + 1 - ahead;
}

static size_t duration_here(const maker *m, double *ret_seconds)
{
    double part;
    size_t n = one_duration(m, 0, ret_seconds), more;
    while (n) {
        size_t skip = is_comma(units_look(m, n)) ? 1 : 0, digits;
        skip += is_and(m, units_look(m, n + skip)) ? 1 : 0;
        number_here(m, n + skip, &digits);
        if (!digits || !(more = one_duration(m, n + skip, &part))) break;
        *ret_seconds += part;
        n += skip + more;
    }
    return n;
}

/* "-5", and not the "-5" of "2-5"; "minus five". */
static bool is_negative(const maker *m)
{
    const word *x = units_look(m, 0), *next = units_look(m, 1);
    size_t n;
    if (!x->sign && phrase_list_has_word(&m->d->lex->negative, x->s)) return number_here(m, 1, &n), n > 0;
    return is_hyphen(x) && !x->glued && next && next->number && next->glued;
}

/* A number word by itself is a number unless it is "one", which more often points ("that one"). */
static size_t number_unit(const maker *m, unit *ret)
{
    size_t n, sign = is_negative(m) ? 1 : 0;
    double v = number_here(m, sign, &n), half = 0;
    if (n == 0) return 0;
    bool one_word = n == 1 && !sign;
    n += sign;
    n += half_more(m, n, &half); /* "twenty one and a half" */
    const word *next = units_look(m, n);
    size_t hyphen = is_hyphen(next);
    const char *measure = measure_of(m, units_look(m, n + hyphen)), *more;
    if (!m->w->at[m->at + sign].number && v <= 1 && !measure) return 0;
    *ret = (unit){.kind = UNIT_NUMBER,
                  .value = sign ? -v - half : v + half,
                  .measure = measure,
                  .s = one_word && half == 0 ? m->w->at[m->at].s : NULL};
    n += measure ? 1 + hyphen : 0;
    while (measure && (more = measure_of(m, units_look(m, n)))) { /* "degrees celsius" */
        const value_unit *unit = lexicon_unit(m->d->lex, ret->measure),
                         *other = lexicon_unit(m->d->lex, more);
        if (unit && other && unit != other) break; /* "celsius fahrenheit" */
        if (other) ret->measure = more;
        n++;
    }
    return n;
}

static size_t synonym_here(const maker *m, const char **ret_means)
{
    unit u[8];
    size_t n = 0;
    for (; n < 8 && units_look(m, n); n++) u[n] = unit_of_word(units_look(m, n)->s, units_look(m, n)->sign);
    return lexicon_synonym_at(m->d->lex, u, 0, n, ret_means);
}

static void make_one(maker *m)
{
    const word *x = &m->w->at[m->at];
    unit u = unit_of_word(x->s, x->sign);
    size_t n = units_whole_name(m, &u);
    if (n) {
        u.kind = UNIT_DEVICE;
        units_put(m, u, n);
    } else if ((n = duration_here(m, &u.value))) {
        u.kind = UNIT_DURATION;
        units_put(m, u, n);
    } else if ((n = number_unit(m, &u))) {
        units_put(m, u, n);
    } else {
        const char *means = x->s;
        n = synonym_here(m, &means);
        u = unit_of_word(means, x->sign);
        u.state = lexicon_is_state(m->d->lex, u.s);
        units_put(m, u, n ? n : 1);
    }
}

/* ---- adverbs ------------------------------------------------------------------------------------- */

static bool is_listed(const phrase_list *l, const unit *u)
{
    return u->kind == UNIT_WORD && phrase_list_has_word(l, u->s);
}

static bool is_stop(const devices *d, const unit *u)
{
    return u->kind == UNIT_SIGN || is_listed(&d->lex->joins, u);
}

/* May unit i be an adverb behind what stands before it? Not in "the back", "in back" and "the front and back"; in
 * "it back", "the lights back", "off and back". */
static bool follows_no_name(const units *u, size_t i, const devices *d)
{
    if (i == 0) return true;
    const unit *before = &u->at[i - 1];
    if (is_stop(d, before)) { /* "turn the lamp off and then back on" */
        bool state = i < 2;
        for (size_t k = 0; k + 1 < i; k++) state = state || u->at[k].state;
        return state;
    }
    if (is_listed(&d->lex->pronouns, before) || is_listed(&d->lex->adverbs, before)) return true;
    return !is_listed(&d->lex->determiners, before) && !is_listed(&d->lex->prepositions, before);
}

/* "unlock it back", "turn it on back", and at the end "unlock the door back" */
static bool stands_alone(const units *u, size_t i, const devices *d)
{
    const unit *before = i ? &u->at[i - 1] : NULL;
    if (!before || before->kind != UNIT_WORD) return false;
    if (is_listed(&d->lex->pronouns, before) || before->state) return true;
    return i + 1 == u->n && devices_is_kind_word(d->lex, before->s, NULL);
}

static bool names_something(const devices *d, const unit *u)
{
    if (u->kind != UNIT_WORD) return u->kind == UNIT_DEVICE;
    if (u->state || is_listed(&d->lex->prepositions, u)) return false;
    return devices_know(d, u->s) || devices_is_kind_word(d->lex, u->s, NULL);
}

static void mark_adverbs(units *u, const devices *d)
{
    const phrase_list *l = &d->lex->adverbial;
    for (size_t i = 0; i < u->n; i++) {
        size_t n = unit_set_len(phrase_list_at(l, u->at, i, u->n, 0));
        bool alone = n == 1 && stands_alone(u, i, d);
        if (!n || !(alone || (n > 1 && follows_no_name(u, i, d)))) continue;
        u->at[i].adverb = n > 1 || i + n == u->n || !names_something(d, &u->at[i + n]);
    }
}

void units_make(units *ret, const words *w, size_t from, size_t to, const devices *d)
{
    *ret = (units){0};
    maker m = {.w = w, .at = from, .to = to, .d = d, .out = ret};
    while (m.at < m.to && !ret->cut) make_one(&m);
    mark_adverbs(ret, d);
}
