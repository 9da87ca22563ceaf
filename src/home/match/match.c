/* match.c: mentions become devices; see match.h. */
#include "match/match.h"

#include <string.h>

#include "match/mention.h"

const char *match_label_name(match_label v)
{
    static const char *const names[] = {
#define LABEL_NAME(e, n, about) [e] = n,
        MATCH_LABELS(LABEL_NAME)
#undef LABEL_NAME
    };
    return (size_t)v < sizeof names / sizeof *names ? names[v] : "unknown";
}

static const struct {
    const char *name;
    double score;
} BYS[] = {
#define BY_ROW(e, n, score) [e] = {n, score},
    MATCH_BY_TABLE(BY_ROW)
#undef BY_ROW
};

const char *match_by_name(match_by b)
{
    return BYS[b].name;
}

double match_by_score(match_by b)
{
    return BYS[b].score;
}

/* ---- how a device fits ------------------------------------------------------------------------- */

/* What a word of a mention is worth for a device that it fits. The order counts, and that a word of a name is
 * worth more than any place: a place in a name is only a place. */
enum {
    WORTH_BY_NAME = 3,
    WORTH_KIND = 4,
    WORTH_ID = 6,
    WORTH_PLACE = 7,
    WORTH_INFLECTED = 9,
    WORTH_NAME = 10,
    WORTH_WHOLE = 100
};

/* What is found of one mention, by device. */
typedef struct fit {
    unsigned worth;          /* 0: a word does not fit */
    bool part, place, group; /* a word of its name, of its place, of a group fits */
} fit;

typedef struct resolver {
    const match_devices *x;
    const language *t;
    arena *a;
    const spoken_mention *m;
    size_t n_tokens;
    fit *fits;       /* [x->n] */
    word_owners who; /* of the word that is looked at */
    bool group;      /* each that fits is meant, not the best */
    bool by_group;   /* because a group of that name is */
    bool beside;     /* something else was named before it in the sentence */
} resolver;

static bool has_it(const resolver *r, size_t i, unsigned from)
{
    return word_owners_has(&r->who, i, from);
}

/* "All the lamps" are those named so when some are. */
static bool match_wants_named(const resolver *r, const mention_token *t)
{
    if (!t->sense.named) return false;
    for (size_t i = 0; i < r->x->n; i++)
        if (r->fits[i].worth && has_it(r, i, FROM_NAME) && r->x->index.devices[i].kinds & t->sense.named)
            return true;
    return false;
}

static unsigned worth_of_kind(const resolver *r, const mention_token *t, size_t i, bool named)
{
    bool is_kind = r->x->index.devices[i].kinds & token_kinds(t);
    if (named && is_kind) return has_it(r, i, FROM_NAME) ? WORTH_NAME : 0;
    if (is_kind) return WORTH_KIND;
    return has_it(r, i, FROM_NAME) && !r->group ? WORTH_BY_NAME : 0;
}

static unsigned match_worth_of(const resolver *r, const mention_token *t, size_t i, bool named)
{
    unsigned kind = token_kinds(t) ? worth_of_kind(r, t, i, named) : 0;
    if (kind || (token_kinds(t) && !t->sense.rooms)) return kind;
    if (t->sense.rooms) return r->x->index.devices[i].rooms & t->sense.rooms ? WORTH_PLACE : 0;
    if (has_it(r, i, FROM_NAME)) return r->who.inflected ? WORTH_INFLECTED : WORTH_NAME;
    return has_it(r, i, FROM_AREA | FROM_GROUP) ? WORTH_PLACE : has_it(r, i, FROM_ID) ? WORTH_ID : 0;
}

/* Hold one word against all devices. */
static void hold_token(resolver *r, const mention_token *t)
{
    match_devices_find(r->x, r->t, t->s, &r->who);
    bool named = match_wants_named(r, t);
    for (size_t i = 0; i < r->x->n; i++) {
        fit *f = &r->fits[i];
        if (!f->worth) continue;
        unsigned w = match_worth_of(r, t, i, named);
        f->worth = w ? f->worth + w : 0;
        f->part |= w >= WORTH_INFLECTED && !token_kinds(t);
        f->place |= w == WORTH_PLACE;
        f->group |= w == WORTH_PLACE && has_it(r, i, FROM_GROUP);
    }
}

/* ---- whole names ------------------------------------------------------------------------------- */

/* A word of a name in another language is said by one that means the same. */
static const word_sense *foreign_sense(const resolver *r, const char *word)
{
    if (device_lexicon_sense(&r->t->senses, word)) return NULL;
    return device_lexicon_sense(&r->x->lex->any, word);
}

static bool is_said(const resolver *r, const char *word)
{
    const word_sense *foreign = foreign_sense(r, word);
    for (size_t i = 0; i < r->n_tokens; i++) {
        const mention_token *t = &r->m->tokens[i];
        const char *s = t->s;
        if (match_devices_alike(r->t, s, word) || match_devices_alike(r->t, t->whole, word)) return true;
        if (foreign && ((foreign->one | foreign->many) & token_kinds(t) || foreign->rooms & t->sense.rooms))
            return true;
        const char *gap = strchr(s, ' '); /* "living room": each of its words */
        size_t n = strlen(word);
        for (const char *at = gap ? strstr(s, word) : NULL; at; at = strstr(at + 1, word))
            if ((at == s || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    }
    return false;
}

static bool all_said(const resolver *r, const word_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!is_said(r, l->at[i])) return false;
    return l->n > 0;
}

/* The name of the device that is said whole; NULL: none. */
static const index_text *match_whole_name(const resolver *r, size_t device)
{
    const indexed_device *d = &r->x->index.devices[device];
    for (size_t k = 0; k < d->n_names; k++)
        if (all_said(r, &d->names[k]->content) || all_said(r, &d->names[k]->parts)) return d->names[k];
    return NULL;
}

/* A plural that is how a device itself is called ("Dining Room Blinds") makes no group. */
static bool match_is_own_plural(const resolver *r, const index_text *name)
{
    for (size_t i = 0; i < r->n_tokens; i++) {
        const mention_token *t = &r->m->tokens[i];
        if (!t->sense.many || t->sense.one) continue;
        for (size_t k = 0; k < name->parts.n; k++)
            if (strcmp(name->parts.at[k], t->s) == 0) return true;
        for (size_t k = 0; k < name->content.n; k++)
            if (strcmp(name->content.at[k], t->s) == 0) return true;
    }
    return false;
}

static bool is_plural(const resolver *r)
{
    for (size_t i = 0; i < r->n_tokens; i++)
        if (r->m->tokens[i].sense.many && !r->m->tokens[i].sense.one) return true;
    return false;
}

static bool names_group(const resolver *r)
{
    for (const index_text *t = r->x->groups; t; t = t->next)
        if (all_said(r, &t->content) || all_said(r, &t->parts)) return true;
    return false;
}

/* ---- one mention ------------------------------------------------------------------------------- */

static size_t hold_all(resolver *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->x->n; i++) r->fits[i] = (fit){.worth = 1};
    for (size_t k = 0; k < r->n_tokens; k++) hold_token(r, &r->m->tokens[k]);
    for (size_t i = 0; i < r->x->n; i++) n += r->fits[i].worth > 0;
    return n;
}

/* Which devices fit the words of the mention, and how many are meant; *ret_own: the one that is itself called
 * by a plural. */
static size_t resolve(resolver *r, size_t n_tokens)
{
    r->n_tokens = n_tokens;
    bool plural = is_plural(r);
    r->by_group = names_group(r);
    r->group = r->m->all || r->m->both || r->m->everything || plural || r->by_group;
    size_t n = hold_all(r);
    bool only_plural = plural && !r->m->all && !r->m->both && !r->m->everything && !r->by_group;
    for (size_t i = 0; i < r->x->n; i++) {
        const index_text *whole = r->fits[i].worth ? match_whole_name(r, i) : NULL;
        if (whole) r->fits[i].worth += WORTH_WHOLE;
        if (whole && only_plural && match_is_own_plural(r, whole)) r->group = false;
    }
    return n;
}

static match_by by_of(const resolver *r, size_t i)
{
    const index_text *whole = match_whole_name(r, i);
    if (whole) return whole->alias ? MATCH_BY_ALIAS : MATCH_BY_NAME;
    const fit *f = &r->fits[i];
    return f->group ? MATCH_BY_GROUP : f->part ? MATCH_BY_PART : f->place ? MATCH_BY_AREA : MATCH_BY_KIND;
}

/* What is gathered over all mentions: by device, how it was found, plus one; 0: it was not. */
typedef struct gathering {
    matching *out;
    uint8_t *by; /* [n] */
    fit *fits;   /* [n] of the mention that is looked at */
    arena *a;
    const char *text;
} gathering;

static int match_put_part(gathering *g, match_part *list, size_t *n, const spoken_mention *m)
{
    if (*n == MATCH_PARTS_MAX) return 0;
    match_part *p = &list[(*n)++];
    *p = (match_part){.text = arena_strndup(g->a, g->text + m->begin, m->end - m->begin)};
    return p->text ? 0 : SHOAL_ENOMEM;
}

static int put_ambiguous(gathering *g, const resolver *r, unsigned least)
{
    size_t at = g->out->n_ambiguous;
    if (match_put_part(g, g->out->ambiguous, &g->out->n_ambiguous, r->m)) return SHOAL_ENOMEM;
    if (at == g->out->n_ambiguous) return 0;
    match_part *p = &g->out->ambiguous[at];
    p->devices = arena_alloc(g->a, MATCH_SHOWN * sizeof *p->devices);
    if (!p->devices) return SHOAL_ENOMEM;
    for (size_t i = 0; i < r->x->n && p->n < MATCH_SHOWN; i++)
        if (r->fits[i].worth >= least) p->devices[p->n++] = i;
    return 0;
}

static void take_devices(gathering *g, const resolver *r, unsigned least)
{
    for (size_t i = 0; i < r->x->n; i++) {
        if (r->fits[i].worth < least) continue;
        uint8_t by = (uint8_t)(1 + by_of(r, i));
        if (r->m->excluded)
            g->by[i] = 0;
        else if (!g->by[i] || by < g->by[i])
            g->by[i] = by;
    }
}

/* Words of a name alone, without its kind, beside other things that were named: "the kitchen light for Anna"
 * means no lamp of hers. "Rollladen links und rechts" does. */
static bool is_stray(const resolver *r, unsigned best)
{
    if (!r->beside || r->m->joined || r->m->excluded || r->m->everything || best >= WORTH_WHOLE) return false;
    for (size_t i = 0; i < r->m->n; i++)
        if (token_kinds(&r->m->tokens[i]) || r->m->tokens[i].sense.rooms) return false;
    for (size_t i = 0; i < r->x->n; i++)
        if (r->fits[i].worth == best && (r->fits[i].place || r->fits[i].group)) return false;
    return true;
}

static int match_gather(gathering *g, resolver *r)
{
    const spoken_mention *m = r->m;
    bool unread = m->unknown || m->full;
    size_t n = unread ? 0 : resolve(r, m->n);
    if (!unread && !n && m->n_own < m->n) n = resolve(r, m->n_own);
    if (!n) return match_put_part(g, g->out->unknown, &g->out->n_unknown, m);
    unsigned best = 0, n_best = 0;
    for (size_t i = 0; i < r->x->n; i++)
        if (r->fits[i].worth > best) best = r->fits[i].worth;
    for (size_t i = 0; i < r->x->n; i++) n_best += r->fits[i].worth == best;
    if (is_stray(r, best)) return match_put_part(g, g->out->unknown, &g->out->n_unknown, m);
    bool each = r->group || (m->excluded && best < WORTH_WHOLE);
    unsigned least = each ? 1 : best;
    if ((!each && n_best > 1) || (m->both && n != 2)) return put_ambiguous(g, r, least);
    take_devices(g, r, least);
    return 0;
}

/* ---- a text ------------------------------------------------------------------------------------ */

static int match_read_sentence(gathering *g, const match_devices *x, const utterance *d, size_t at,
                               const match_options *o, unit_set *ret_named)
{
    const utterance_sentence *part = &d->sentences[at];
    sentence *s = arena_alloc(g->a, sizeof *s);
    resolver r = {.x = x, .t = d->t, .a = g->a, .fits = g->fits};
    if (!s) return SHOAL_ENOMEM;
    s->x = x;
    s->d = d;
    s->t = d->t;
    s->u = d->units + part->from;
    s->n = part->to - part->from;
    s->o = o;
    mention_roles(s);
    for (size_t i = 0; i < s->n; i++) g->out->n_strange += s->role[i] == ROLE_UNKNOWN;
    *ret_named = s->named;
    int rc = mention_read(s, g->a);
    for (size_t i = 0; i < s->n_mentions && !rc; i++) {
        r.m = &s->mentions[i];
        r.beside = i > 0;
        rc = match_gather(g, &r);
    }
    return rc;
}

static match_label label_of(const matching *m)
{
    if (m->n_unknown || m->utterance->cut) return MATCH_UNKNOWN;
    if (m->n_ambiguous) return MATCH_AMBIGUOUS;
    return m->n == 0 ? MATCH_NONE : m->n == 1 ? MATCH_ONE : MATCH_MANY;
}

static int match_finish(gathering *g, size_t n)
{
    matching *out = g->out;
    out->devices = arena_alloc(g->a, (n + 1) * sizeof *out->devices);
    if (!out->devices) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (g->by[i]) out->devices[out->n++] = (match_device){i, (match_by)(g->by[i] - 1)};
    out->label = label_of(out);
    return 0;
}

static int match_read_sentences(gathering *g, const match_devices *x, const utterance *d,
                                const match_options *o)
{
    *g->out = (matching){.utterance = d};
    memset(g->by, 0, x->n);
    unit_set *named = arena_alloc(g->a, (d->n_sentences + 1) * sizeof *named);
    int rc = named ? 0 : SHOAL_ENOMEM;
    for (size_t i = 0; i < d->n_sentences && !rc; i++) rc = match_read_sentence(g, x, d, i, o, &named[i]);
    g->out->named = named;
    return rc;
}

/* Of readings in several languages that know as many words the one that finds most. */
static bool finds_more(const matching *a, const matching *b)
{
    static const int RANK[] = {[MATCH_ONE] = 3, [MATCH_MANY] = 3, [MATCH_AMBIGUOUS] = 2, [MATCH_UNKNOWN] = 1};
    return RANK[a->label] > RANK[b->label];
}

static int read_as(matching *ret, const match_devices *x, const utterance *d, const language *t,
                   const match_options *o, arena *a)
{
    gathering g = {.out = ret, .by = arena_alloc(a, x->n + 1), .a = a, .text = d->text};
    utterance *own = arena_alloc(a, sizeof *own);
    g.fits = arena_alloc(a, (x->n + 1) * sizeof *g.fits);
    if (!own || !g.by || !g.fits) return SHOAL_ENOMEM;
    *own = *d;
    own->t = t;
    int rc = match_read_sentences(&g, x, own, o);
    return rc ? rc : match_finish(&g, x->n);
}

static int read_best(matching *ret, const match_devices *x, const utterance *d, const match_options *o,
                     arena *a)
{
    int rc = 0;
    for (size_t i = 0; i < d->n_tied && !rc; i++) {
        matching one;
        rc = read_as(&one, x, d, d->tied[i], o, a);
        if (!rc && (i == 0 || finds_more(&one, ret))) *ret = one;
    }
    return rc;
}

int match(matching *ret, const device_lexicon *l, const device *list, size_t n, const char *text,
          const match_options *options, arena *a)
{
    static const match_options NONE = {0};
    const match_options *o = options ? options : &NONE;
    utterance d;
    if (utterance_read(&d, l, o->only, o->n_only, text, a)) return SHOAL_ENOMEM;
    match_devices x;
    int rc = match_devices_init(&x, l, list, n, a);
    if (!rc) rc = read_best(ret, &x, &d, o, a);
    match_devices_done(&x);
    return rc;
}
