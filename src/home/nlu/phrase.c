/* phrase.c: compiling and matching patterns; see phrase.h. */
#include "nlu/phrase.h"

#include <string.h>

#include "base/err.h"

/* ---- compiling -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    part_kind kind;
} CLASSES[] = {
    {"..", PART_GAP},        {"{number}", PART_NUMBER}, {"{duration}", PART_DURATION},
    {"{value}", PART_VALUE}, {"{state}", PART_STATE},   {"{any}", PART_ANY},
    {"^", PART_START},       {"$", PART_END},
};

static bool class_of(const char *s, size_t n, part_kind *ret)
{
    for (size_t i = 0; i < sizeof CLASSES / sizeof *CLASSES; i++) {
        if (strlen(CLASSES[i].name) != n || memcmp(CLASSES[i].name, s, n) != 0) continue;
        *ret = CLASSES[i].kind;
        return true;
    }
    return false;
}

/* One folded word of s[0..n); NULL when it is none or several. */
static const char *fold_one(const char *s, size_t n, arena *a)
{
    words w;
    if (words_split(&w, a, s, n) || w.n != 1) return NULL;
    return w.at[0].s;
}

static int read_alts(phrase_part *p, const char *s, size_t n, arena *a)
{
    p->n_alts = 1;
    for (size_t i = 0; i < n; i++) p->n_alts += s[i] == '|';
    p->alts = arena_alloc(a, p->n_alts * sizeof *p->alts);
    p->keys = arena_alloc(a, p->n_alts * sizeof *p->keys);
    if (!p->alts || !p->keys) return SHOAL_ENOMEM;
    for (unsigned i = 0; i < p->n_alts; i++) {
        const char *bar = memchr(s, '|', n);
        size_t len = bar ? (size_t)(bar - s) : n;
        p->alts[i] = fold_one(s, len, a);
        if (!p->alts[i]) return SHOAL_EFORMAT;
        p->keys[i] = words_key(p->alts[i]);
        p->bits |= word_bit(p->keys[i]);
        if (bar) s += len + 1, n -= len + 1;
    }
    return 0;
}

static int read_part(phrase_part *p, const char *s, size_t n, arena *a)
{
    if (n > 1 && s[n - 1] == '?') p->optional = true, n--;
    if (class_of(s, n, &p->kind)) return 0;
    p->kind = PART_WORD;
    return read_alts(p, s, n, a);
}

/* A gap may be empty, and hold any word. */
static word_bits beginnings(const phrase_part *parts, unsigned n)
{
    word_bits bits = 0;
    for (unsigned i = 0; i < n; i++) {
        if (parts[i].kind == PART_START) continue;
        if (parts[i].kind != PART_WORD) return WORD_ANY;
        bits |= parts[i].bits;
        if (!parts[i].optional) return bits;
    }
    return WORD_ANY;
}

static word_bits need(const phrase_part *parts, unsigned n)
{
    while (n > 0 && (parts[n - 1].kind != PART_WORD || parts[n - 1].optional)) n--;
    return n > 0 ? parts[n - 1].bits : WORD_ANY;
}

phrase phrase_slice(const phrase *p, unsigned from, unsigned n)
{
    phrase_part *parts = p->parts + from;
    return (phrase){.n = n, .begins = beginnings(parts, n), .needs = need(parts, n), .parts = parts};
}

static bool is_one_word(const phrase *p)
{
    return p->n == 1 && p->parts[0].kind == PART_WORD;
}

static int read_phrase(phrase *ret, const yaml_doc *d, const yaml_node *n, arena *a, shoal_err *err)
{
    if (n->kind != YAML_SCALAR || n->len == 0)
        return yaml_fail(d, n, err, "a pattern is a text such as: turn|switch .. on");
    ret->source = n->text;
    ret->parts = arena_alloc(a, PHRASE_PARTS_MAX * sizeof *ret->parts);
    if (!ret->parts) return err_nomem(err);
    for (const char *p = n->text + strspn(n->text, " "); *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (ret->n == PHRASE_PARTS_MAX)
            return yaml_fail(d, n, err, "a pattern has at most %d parts", PHRASE_PARTS_MAX);
        int rc = read_part(&ret->parts[ret->n++], p, len, a);
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        if (rc)
            return yaml_fail(d, n, err,
                             "'%.*s' is no part of a pattern: a word, a|b, word?, .., {number}, {duration}, "
                             "{value}, {state}, {any}, ^ or $",
                             (int)len, p);
        p += len;
    }
    ret->begins = beginnings(ret->parts, ret->n);
    ret->needs = need(ret->parts, ret->n);
    return 0;
}

/* Most patterns begin with a word that is not there: seen without trying. */
static bool may_begin(word_bits begins, word_bits of)
{
    return begins == WORD_ANY || begins & of;
}

static int sort_by_bit(phrase_list *l, arena *a)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) n += unit_set_len(l->at[i].begins) + 1;
    l->by_bit = arena_alloc(a, (n + 1) * sizeof *l->by_bit);
    if (!l->by_bit) return SHOAL_ENOMEM;
    unsigned at = 0;
    for (unsigned b = 0; b <= WORD_BITS; b++) {
        l->bit_at[b] = at;
        for (size_t i = 0; i < l->n; i++)
            if (may_begin(l->at[i].begins, b < WORD_BITS ? (word_bits)1 << b : 0))
                l->by_bit[at++] = &l->at[i];
    }
    l->bit_at[WORD_BITS + 1] = at;
    return 0;
}

int phrase_list_read(phrase_list *ret, const yaml_doc *d, const yaml_node *n, arena *a, shoal_err *err)
{
    phrase_list l = {.n = n->kind == YAML_LIST ? n->n : 1};
    l.at = arena_alloc(a, (l.n + 1) * sizeof *l.at);
    if (!l.at) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; i < l.n && !rc; i++) {
        rc = read_phrase(&l.at[i], d, n->kind == YAML_LIST ? n->items[i] : n, a, err);
        l.begins |= l.at[i].begins;
        if (!rc && is_one_word(&l.at[i])) l.bits |= l.at[i].parts->bits;
    }
    if (!rc && sort_by_bit(&l, a)) rc = err_nomem(err);
    if (!rc) *ret = l;
    return rc;
}

/* ---- matching --------------------------------------------------------------------------------- */

static bool part_fits(const phrase_part *p, const unit *u)
{
    switch (p->kind) {
    case PART_NUMBER: return u->kind == UNIT_NUMBER && !u->measure;
    case PART_DURATION: return u->kind == UNIT_DURATION;
    case PART_VALUE: return u->kind == UNIT_NUMBER;
    case PART_STATE: return u->kind == UNIT_WORD && u->state;
    case PART_ANY: return u->kind == UNIT_WORD;
    case PART_GAP:
    case PART_START:
    case PART_END: return false;
    case PART_WORD: break;
    }
    if (!(p->bits & u->bits) || (u->kind != UNIT_WORD && u->kind != UNIT_SIGN)) return false;
    for (unsigned i = 0; i < p->n_alts; i++)
        if (words_same_keyed(p->keys[i], p->alts[i], u->key, u->s)) return true;
    return false;
}

typedef struct matcher {
    const phrase *p;
    const unit *u;
    size_t from, to;
    unit_set taken;
    unsigned steps; /* what is left of the work one match may take */
} matcher;

/* The best way to match parts [part, n) from unit `at` on; *ret is what they use. */
static bool match_from(matcher *m, unsigned part, size_t at, unit_set *ret)
{
    if (part == m->p->n) {
        *ret = 0;
        return true;
    }
    if (m->steps == 0) return false;
    m->steps--;
    const phrase_part *p = &m->p->parts[part];
    unit_set best = 0, rest;
    bool found = false;
    if (p->kind == PART_GAP) {
        bool word = part + 1 < m->p->n && p[1].kind == PART_WORD && !p[1].optional;
        for (size_t next = at; next <= m->to; next++) {
            if (word && (next == m->to || !(p[1].bits & m->u[next].bits))) continue;
            if (!match_from(m, part + 1, next, &rest)) continue;
            if (!found || unit_set_len(rest) > unit_set_len(best)) best = rest;
            found = true;
        }
    } else if (p->kind == PART_START || p->kind == PART_END) {
        return at == (p->kind == PART_START ? m->from : m->to) && match_from(m, part + 1, at, ret);
    } else if (at < m->to && !(m->taken >> at & 1) && part_fits(p, &m->u[at]) &&
               match_from(m, part + 1, at + 1, &rest)) {
        best = rest | (unit_set)1 << at;
        found = true;
    }
    if (p->optional && match_from(m, part + 1, at, &rest) &&
        (!found || unit_set_len(rest) > unit_set_len(best))) {
        best = rest;
        found = true;
    }
    *ret = best;
    return found;
}

word_bits phrase_words(const unit *u, size_t from, size_t to)
{
    word_bits all = 0;
    for (size_t i = from; i < to; i++) all |= u[i].bits;
    return all;
}

unit_set phrase_match(const phrase *p, const unit *u, size_t from, size_t to, unit_set taken, bool at_start)
{
    unit_set best = 0, got;
    for (size_t at = from; at < to; at++) {
        if (!may_begin(p->begins, u[at].bits)) {
            if (at_start) break;
            continue;
        }
        matcher m = {.p = p, .u = u, .from = from, .to = to, .taken = taken, .steps = 4096};
        if (match_from(&m, 0, at, &got) && got && unit_set_len(got) > unit_set_len(best)) best = got;
        if (at_start) break;
    }
    return best;
}

unit_set phrase_list_at(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken)
{
    unit_set best = 0;
    if (!may_begin(l->begins, u[from].bits)) return 0;
    unsigned b = u[from].bits ? (unsigned)__builtin_ctzll(u[from].bits) : WORD_BITS;
    for (unsigned i = l->bit_at[b]; i < l->bit_at[b + 1]; i++) {
        unit_set got = phrase_match(l->by_bit[i], u, from, to, taken, true);
        if (got && unit_set_len(got) > unit_set_len(best)) best = got;
    }
    return best;
}

bool phrase_list_run(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken,
                     size_t *ret_n)
{
    unit_set got = phrase_list_at(l, u, from, to, taken);
    unit_set run = got >> from; /* at most PHRASE_PARTS_MAX where there are no gaps */
    if (!got || run & (run + 1) || run >> PHRASE_PARTS_MAX) return false;
    *ret_n = (size_t)__builtin_ctzll(~run);
    return true;
}

unit_set phrase_list_in(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken)
{
    for (size_t at = from; at < to; at++) {
        unit_set got = phrase_list_at(l, u, at, to, taken);
        if (got) return got;
    }
    return 0;
}

bool phrase_list_has_word(const phrase_list *l, const char *folded)
{
    unit u = unit_of_word(folded, false);
    if (!(l->bits & u.bits)) return false;
    for (size_t i = 0; i < l->n; i++)
        if (is_one_word(&l->at[i]) && part_fits(l->at[i].parts, &u)) return true;
    return false;
}
