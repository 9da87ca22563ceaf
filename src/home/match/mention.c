/* mention.c: what a sentence speaks of; see mention.h. */
#include "match/mention.h"

#include <string.h>

/* ---- tokens ------------------------------------------------------------------------------------ */

static void add_token(spoken_mention *m, const char *word, const char *whole, const word_sense *sense)
{
    if (m->n == MENTION_WORDS_MAX) {
        m->full = true;
        return;
    }
    m->tokens[m->n++] = (mention_token){word, whole, sense ? *sense : (word_sense){0}};
}

/* A word that means a kind or a room is one token; a compound is its parts, as it is in the names of devices.
 */
static int mention_add_word(const sentence *s, spoken_mention *m, const char *word, arena *a)
{
    const word_sense *w = device_lexicon_sense(&s->t->senses, word);
    compound c;
    if (word_sense_names(w) || !compound_split(&c, s->t, word, mention_is_part, (void *)s)) {
        add_token(m, word, word, word_sense_names(w) ? w : NULL);
        return 0;
    }
    for (size_t i = 0; i < c.n; i++) {
        const char *part = arena_strdup(a, c.parts[i]);
        if (!part) return SHOAL_ENOMEM;
        const word_sense *sense = device_lexicon_sense(&s->t->senses, part);
        add_token(m, part, word, word_sense_names(sense) ? sense : NULL);
    }
    return 0;
}

/* "zwei" and "2" are the same. */
static int add_number(const sentence *s, spoken_mention *m, const unit *u, arena *a)
{
    const word_sense *w = utterance_sense(s->t, u);
    const char *digits = w && w->number ? arena_printf(a, "%g", w->value) : u->s;
    if (!digits) return SHOAL_ENOMEM;
    add_token(m, digits, u->s, NULL);
    return 0;
}

/* Several words that mean one thing are one token; its text is theirs with blanks between. */
static int add_phrase(const sentence *s, spoken_mention *m, size_t at, size_t n, arena *a)
{
    buf b = {0};
    for (size_t i = at; i < at + n; i++) buf_printf(&b, "%s%s", i > at ? " " : "", s->u[i].s);
    const char *text = b.failed ? NULL : arena_strndup(a, b.data, b.len);
    buf_done(&b);
    if (!text) return SHOAL_ENOMEM;
    add_token(m, text, text, &s->phrase[at].sense);
    return 0;
}

/* ---- clauses ------------------------------------------------------------------------------------ */

/* Where reading stands. */
typedef struct clause_reader {
    sentence *s;
    arena *a;
    spoken_mention now;
    bool open;      /* now has content, an unknown word, or asks for everything */
    bool begun;     /* now has anything */
    bool has_known; /* content */
    bool joined, excluded;
    const unit *lone; /* a number without anything that it counts */
    unit_role last;
} clause_reader;

/* A determiner within whole names says nothing, as in the index. */
static bool is_silent(const sentence *s, size_t at)
{
    const word_sense *w = s->named >> at & 1 ? device_lexicon_sense(&s->x->lex->any, s->u[at].s) : NULL;
    bool last = at + 1 == s->n || !(s->named >> (at + 1) & 1) || s->run_begins >> (at + 1) & 1;
    return w && !last && w->classes & (WORD_DETERMINER | WORD_PREPOSITION) && !word_sense_names(w);
}

/* An unknown word alone is what a request is about when it asks for something of it: "turn on the sauna". */
static bool counts(const clause_reader *c)
{
    if (c->has_known || c->now.everything || c->excluded) return true;
    if (!c->now.unknown || !c->s->asks) return false;
    return c->now.placed || c->now.fixed || c->s->n_mentions == 0 || c->joined;
}

static bool is_digits(const char *s)
{
    return *s >= '0' && *s <= '9';
}

/* "Pumps 1 and 2": the second number is of what the first one counts. SHOAL_ENOMEM, or 0. */
static int take_lone_number(clause_reader *c)
{
    sentence *s = c->s;
    const spoken_mention *before = s->n_mentions ? &s->mentions[s->n_mentions - 1] : NULL;
    bool counts_on =
        c->lone && c->joined && before && before->n > 1 && is_digits(before->tokens[before->n - 1].s);
    if (!counts_on || s->n_mentions == MENTIONS_MAX) return 0;
    spoken_mention *m = &s->mentions[s->n_mentions];
    *m = *before;
    m->joined = true;
    m->n--;
    m->begin = c->lone->begin;
    m->end = c->lone->end;
    if (add_number(s, m, c->lone, c->a)) return SHOAL_ENOMEM;
    s->n_mentions++;
    return 0;
}

static void close_clause(clause_reader *c)
{
    c->lone = NULL;
    if (c->open && counts(c) && c->s->n_mentions < MENTIONS_MAX) {
        c->now.joined = c->joined;
        c->now.excluded = c->excluded;
        c->s->mentions[c->s->n_mentions++] = c->now;
    }
    if (c->open) c->joined = false;
    c->now = (spoken_mention){0};
    c->open = c->begun = c->has_known = false;
}

static int add_unit(clause_reader *c, size_t at)
{
    const unit *u = &c->s->u[at];
    unit_role role = c->s->role[at];
    if (c->s->run_begins >> at & 1 && c->last == ROLE_CONTENT && c->open && c->s->named >> (at - 1) & 1)
        close_clause(c); /* two whole names, one behind the other */
    c->open = c->open || role != ROLE_NUMBER;
    if (!c->now.end) c->now.begin = u->begin;
    c->now.end = u->end;
    c->begun = true;
    if (role == ROLE_UNKNOWN) {
        c->now.unknown = true;
        return 0;
    }
    if (role == ROLE_NUMBER && !c->has_known) c->lone = u;
    if (role == ROLE_NUMBER) return c->has_known ? add_number(c->s, &c->now, u, c->a) : 0;
    c->has_known = true;
    size_t n = c->s->phrase[at].n;
    if (n) c->now.end = c->s->u[at + n - 1].end;
    if (is_silent(c->s, at)) return 0;
    return n ? add_phrase(c->s, &c->now, at, n, c->a) : mention_add_word(c->s, &c->now, u->s, c->a);
}

static void begin_mention(clause_reader *c, unit_role role, const unit *u)
{
    if (c->open && c->last != ROLE_PREPOSITION) close_clause(c);
    c->begun = true;
    if (role == ROLE_DETERMINER) c->now.fixed = true;
    if (role == ROLE_ALL) c->now.all = true;
    if (role == ROLE_BOTH) c->now.both = true;
    if (role != ROLE_EVERYTHING) return;
    c->now.everything = c->open = true;
    c->now.begin = u->begin;
    c->now.end = u->end;
}

/* What ends a mention: "und", "außer", "mach", "an". */
static int end_mention(clause_reader *c, unit_role role)
{
    bool named = c->open;
    if (!c->open && take_lone_number(c)) return SHOAL_ENOMEM;
    close_clause(c);
    if (role == ROLE_JOIN) c->joined = c->joined || named || c->s->n_mentions > 0;
    if (role == ROLE_EXCEPT) c->excluded = true;
    if (role == ROLE_VERB || role == ROLE_BREAK) c->excluded = c->joined = false;
    return 0;
}

static int take_unit(clause_reader *c, size_t at)
{
    unit_role role = c->s->role[at];
    int rc = 0;
    switch (role) {
    case ROLE_CONTENT:
    case ROLE_UNKNOWN:
    case ROLE_NUMBER: rc = add_unit(c, at); break;
    case ROLE_DETERMINER:
    case ROLE_ALL:
    case ROLE_BOTH:
    case ROLE_EVERYTHING: begin_mention(c, role, &c->s->u[at]); break;
    case ROLE_PREPOSITION:
        if (!c->begun) c->now.placed = true;
        c->begun = true;
        break;
    case ROLE_EXCEPT:
    case ROLE_JOIN:
    case ROLE_VERB:
    case ROLE_BREAK:
    case ROLE_FILLER: rc = end_mention(c, role); break;
    }
    c->last = role;
    return rc;
}

/* ---- what mentions take from each other -------------------------------------------------------- */

static bool has_kind(const spoken_mention *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (token_kinds(&m->tokens[i])) return true;
    return false;
}

static bool mention_has_room(const spoken_mention *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->tokens[i].sense.rooms) return true;
    return false;
}

static bool is_place(const sentence *s, const mention_token *t)
{
    if (t->sense.rooms) return true;
    word_owners who;
    match_devices_find(s->x, s->t, t->s, &who);
    return !(who.from & FROM_NAME) && who.from & (FROM_AREA | FROM_GROUP);
}

static bool is_only_place(const sentence *s, const spoken_mention *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (token_kinds(&m->tokens[i]) || !is_place(s, &m->tokens[i])) return false;
    return m->n > 0 && !m->unknown && !m->everything;
}

static bool is_only_kind(const spoken_mention *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (!token_kinds(&m->tokens[i]) || m->tokens[i].sense.rooms) return false;
    return (m->n > 0 || m->everything) && !m->unknown;
}

static void take_tokens(spoken_mention *to, const spoken_mention *from, bool kinds)
{
    for (size_t i = 0; i < from->n; i++)
        if (!kinds || token_kinds(&from->tokens[i]))
            add_token(to, from->tokens[i].s, from->tokens[i].whole, &from->tokens[i].sense);
}

static void drop_mention(sentence *s, size_t at)
{
    memmove(&s->mentions[at], &s->mentions[at + 1], (s->n_mentions - at - 1) * sizeof *s->mentions);
    s->n_mentions--;
}

/* "Mach das Licht an in der Küche", "In der Küche das Licht an": the place is that of what lacks one. With
 * several joined before it, it is that of all of them that are named by kind alone. */
static bool give_place(sentence *s, size_t at)
{
    spoken_mention *place = &s->mentions[at];
    if (at > 0 && is_only_kind(&s->mentions[at - 1]) && !s->mentions[at - 1].excluded) {
        for (size_t i = at; i-- > 0 && is_only_kind(&s->mentions[i]);) {
            take_tokens(&s->mentions[i], place, false);
            if (s->mentions[i].end < place->end) s->mentions[i].end = place->end;
            if (!s->mentions[i].joined || (i > 0 && s->mentions[i - 1].all)) break;
        }
        return true;
    }
    if (at + 1 == s->n_mentions || !is_only_kind(&s->mentions[at + 1]) || s->mentions[at + 1].joined)
        return false;
    take_tokens(&s->mentions[at + 1], place, false);
    s->mentions[at + 1].begin = place->begin;
    return true;
}

/* "Licht und Heizung in der Küche": one place behind both. */
static void share_place(sentence *s)
{
    for (size_t i = s->n_mentions; i-- > 1;) {
        spoken_mention *m = &s->mentions[i], *before = &s->mentions[i - 1];
        bool both = m->joined && mention_has_room(m) && has_kind(m) && is_only_kind(before) && !before->all &&
                    !before->everything && !m->excluded;
        if (!both) continue;
        for (size_t k = 0; k < m->n; k++)
            if (m->tokens[k].sense.rooms && !token_kinds(&m->tokens[k]))
                add_token(before, m->tokens[k].s, m->tokens[k].whole, &m->tokens[k].sense);
    }
}

static void inherit_kind(spoken_mention *to, const spoken_mention *from)
{
    take_tokens(to, from, true);
    to->all = to->all || from->all;
}

/* "Licht in Küche und Bad", "kitchen and hall lights", "Küchen- und Badlicht": what is only a place is of the
 * kind beside it. */
static void share_kinds(sentence *s)
{
    for (size_t i = 1; i < s->n_mentions; i++)
        if (s->mentions[i].joined && is_only_place(s, &s->mentions[i]) && has_kind(&s->mentions[i - 1]))
            inherit_kind(&s->mentions[i], &s->mentions[i - 1]);
    for (size_t i = s->n_mentions; i-- > 1;)
        if (s->mentions[i].joined && has_kind(&s->mentions[i]) && is_only_place(s, &s->mentions[i - 1]))
            inherit_kind(&s->mentions[i - 1], &s->mentions[i]);
}

int mention_read(sentence *s, arena *a)
{
    clause_reader c = {.s = s, .a = a, .last = ROLE_BREAK};
    s->mentions = arena_alloc(a, MENTIONS_MAX * sizeof *s->mentions);
    int rc = s->mentions ? 0 : SHOAL_ENOMEM;
    for (size_t i = 0; i < s->n && !rc; i += s->phrase[i].n ? s->phrase[i].n : 1) rc = take_unit(&c, i);
    if (!rc && !c.open) rc = take_lone_number(&c);
    if (rc) return rc;
    close_clause(&c);
    for (size_t i = 0; i < s->n_mentions;) {
        spoken_mention *m = &s->mentions[i];
        bool loose = m->placed && !m->joined && !m->excluded && is_only_place(s, m);
        if (loose && give_place(s, i))
            drop_mention(s, i);
        else
            i++;
    }
    for (size_t i = 0; i < s->n_mentions; i++) s->mentions[i].n_own = s->mentions[i].n;
    share_kinds(s);
    share_place(s);
    return 0;
}
