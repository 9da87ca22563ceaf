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
    if (!p->alts) return SHOAL_ENOMEM;
    for (unsigned i = 0; i < p->n_alts; i++) {
        const char *bar = memchr(s, '|', n);
        size_t len = bar ? (size_t)(bar - s) : n;
        p->alts[i] = fold_one(s, len, a);
        if (!p->alts[i]) return SHOAL_EFORMAT;
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
    return 0;
}

int phrase_list_read(phrase_list *ret, const yaml_doc *d, const yaml_node *n, arena *a, shoal_err *err)
{
    phrase_list l = {.n = n->kind == YAML_LIST ? n->n : 1};
    l.at = arena_alloc(a, (l.n + 1) * sizeof *l.at);
    if (!l.at) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; i < l.n && !rc; i++)
        rc = read_phrase(&l.at[i], d, n->kind == YAML_LIST ? n->items[i] : n, a, err);
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
    if (u->kind != UNIT_WORD && u->kind != UNIT_SIGN) return false;
    for (unsigned i = 0; i < p->n_alts; i++)
        if (words_same(p->alts[i], u->s)) return true;
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
        for (size_t next = at; next <= m->to; next++) {
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

/* Most patterns begin with a word that is not there: seen without trying. */
static bool may_begin(const phrase *p, const unit *u)
{
    const phrase_part *first = &p->parts[0];
    return p->n == 0 || first->kind != PART_WORD || first->optional || part_fits(first, u);
}

unit_set phrase_match(const phrase *p, const unit *u, size_t from, size_t to, unit_set taken, bool at_start)
{
    unit_set best = 0, got;
    for (size_t at = from; at < to; at++) {
        if (!may_begin(p, &u[at])) {
            if (at_start) break;
            continue;
        }
        matcher m = {.p = p, .u = u, .from = from, .to = to, .taken = taken, .steps = 4096};
        if (match_from(&m, 0, at, &got) && unit_set_len(got) > unit_set_len(best)) best = got;
        if (at_start) break;
    }
    return best;
}

unit_set phrase_list_at(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken)
{
    unit_set best = 0;
    for (size_t i = 0; i < l->n; i++) {
        unit_set got = may_begin(&l->at[i], &u[from]) ? phrase_match(&l->at[i], u, from, to, taken, true) : 0;
        if (got && unit_set_len(got) > unit_set_len(best)) best = got;
    }
    return best;
}

bool phrase_list_run(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken,
                     size_t *ret_n)
{
    unit_set got = phrase_list_at(l, u, from, to, taken);
    size_t n = unit_set_len(got); /* at most PHRASE_PARTS_MAX where there are no gaps */
    if (!got || n > PHRASE_PARTS_MAX || got != (((unit_set)1 << n) - 1) << from) return false;
    *ret_n = n;
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
    for (size_t i = 0; i < l->n; i++) {
        const phrase *p = &l->at[i];
        if (p->n != 1 || p->parts[0].kind != PART_WORD) continue;
        for (unsigned k = 0; k < p->parts[0].n_alts; k++)
            if (words_same(p->parts[0].alts[k], folded)) return true;
    }
    return false;
}
