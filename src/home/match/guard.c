/* guard.c: rules held before anything acts; see guard.h. */
#include "match/guard.h"

#include <stdio.h>
#include <string.h>

#include "nlu/reply.h"

const char *guard_verdict_name(guard_verdict v)
{
    static const char *const names[] = {
#define VERDICT_NAME(e, n, about) [e] = n,
        GUARD_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    return (size_t)v < sizeof names / sizeof *names ? names[v] : "unknown";
}

static const struct {
    const char *name;
    guard_verdict verdict;
    bool confirmable;
    size_t saying; /* in language.sayings */
} RULES[] = {
#define RULE_ROW(e, name, verdict, confirmable) \
    [e] = {#name, verdict, confirmable, offsetof(language, sayings.name)},
    GUARD_RULES(RULE_ROW)
#undef RULE_ROW
};

const char *guard_rule_name(guard_rule r)
{
    return (size_t)r < N_GUARD_RULES ? RULES[r].name : "";
}

guard_rule guard_rule_named(const char *name)
{
    int r = 0;
    while (r < N_GUARD_RULES && strcmp(RULES[r].name, name) != 0) r++;
    return (guard_rule)r;
}

/* ---- a judgement under way --------------------------------------------------------------------- */

typedef struct judge {
    const guard_rules *rules;
    const guard_case *c;
    const language *t;
    arena *a;
    size_t n_targets;
    const device **targets; /* those of them that are devices of the list */
    const char **names;     /* what is spoken of */
    size_t n_names;
    const char *what; /* what is wrong with the text */
    size_t count;
    bool nomem;
} judge;

static const char *slice(judge *j, size_t begin, size_t end)
{
    const char *s = arena_strndup(j->a, j->c->found->utterance->text + begin, end - begin);
    if (!s) j->nomem = true;
    return s ? s : "";
}

static bool name_list(judge *j, size_t n)
{
    j->names = arena_alloc(j->a, (n + 1) * sizeof *j->names);
    j->n_names = 0;
    if (!j->names) j->nomem = true;
    return j->names != NULL;
}

/* ---- guard words ------------------------------------------------------------------------------------ */

/* Units of a sentence that the language knows. */
static unit_set known_units(const utterance *d, const utterance_sentence *s, const language *t)
{
    unit_set known = 0;
    for (size_t i = s->from; i < s->to; i++)
        if (d->units[i].kind == UNIT_WORD && utterance_sense(t, &d->units[i]))
            known |= (unit_set)1 << (i - s->from);
    return known;
}

/* The first of the list's patterns in a sentence, as `t` has them. */
static bool guard_word_in(judge *j, size_t at, const language *t, int list)
{
    const utterance *d = j->c->found->utterance;
    const utterance_sentence *s = &d->sentences[at];
    unit_set taken = j->c->found->named[at];
    if (t != d->t) taken |= known_units(d, s, d->t);
    taken |= utterance_find(d, s, &t->lists[WORD_HARMLESS_AT], taken);
    unit_set got = phrase_list_in(&t->lists[list], d->units + s->from, 0, s->to - s->from, taken);
    if (!got) return false;
    size_t first = (size_t)__builtin_ctzll(got), last = 63 - (size_t)__builtin_clzll(got);
    j->what = slice(j, d->units[s->from + first].begin, d->units[s->from + last].end);
    return true;
}

static bool has_guard_word(judge *j, int list)
{
    const utterance *d = j->c->found->utterance;
    const device_lexicon *l = j->rules->lex;
    for (size_t i = 0; i < d->n_sentences; i++) {
        if (guard_word_in(j, i, d->t, list)) return true;
        for (size_t k = 0; k < l->n_languages; k++)
            if (&l->languages[k] != d->t && guard_word_in(j, i, &l->languages[k], list)) return true;
    }
    return false;
}

/* ---- targets ----------------------------------------------------------------------------------- */

static const device *device_of(const guard_case *c, const char *id)
{
    for (size_t i = 0; i < c->n_devices; i++)
        if (strcmp(c->devices[i].id, id) == 0) return &c->devices[i];
    return NULL;
}

static size_t count_targets(const guard_case *c)
{
    return c->by_match ? c->found->n : c->n_targets;
}

static int find_targets(judge *j)
{
    size_t n = count_targets(j->c);
    j->targets = arena_alloc(j->a, (n + 1) * sizeof *j->targets);
    if (!j->targets) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const device *d = j->c->by_match ? &j->c->devices[j->c->found->devices[i].device]
                                         : device_of(j->c, j->c->targets[i]);
        if (d) j->targets[j->n_targets++] = d;
    }
    return 0;
}

/* A question that names no device may be answered by others. */
static bool names_any(const judge *j)
{
    const matching *m = j->c->found;
    return count_targets(j->c) || (j->c->by_match && (m->n_unknown || m->n_ambiguous));
}

static bool is_unknown(judge *j)
{
    const matching *m = j->c->found;
    if (j->c->by_match) {
        if (m->n_unknown) j->what = m->unknown[0].text;
        return m->n_unknown > 0;
    }
    for (size_t i = 0; i < j->c->n_targets; i++) {
        if (device_of(j->c, j->c->targets[i])) continue;
        j->what = j->c->targets[i];
        return true;
    }
    return false;
}

static bool is_ambiguous(judge *j)
{
    const matching *m = j->c->found;
    if (!j->c->by_match || !m->n_ambiguous) return false;
    const match_part *p = &m->ambiguous[0];
    j->what = p->text;
    j->count = p->n;
    if (name_list(j, p->n))
        for (size_t i = 0; i < p->n; i++) j->names[j->n_names++] = j->c->devices[p->devices[i]].name;
    return true;
}

/* ---- danger ------------------------------------------------------------------------------------ */

static bool is_like(const char *s, const char *pattern)
{
    size_t n = strlen(pattern);
    if (n && pattern[n - 1] == '*') return strncmp(s, pattern, n - 1) == 0;
    return strcmp(s, pattern) == 0;
}

static bool guard_list_has(const guard_list *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (is_like(s, l->at[i])) return true;
    return false;
}

static bool is_listed_kind(const guard_rules *r, const device_lexicon *l, size_t kind)
{
    bool any = r->kinds.n || r->ids.n || r->actions.n;
    return any ? guard_list_has(&r->kinds, l->kinds[kind].name) : l->kinds[kind].careful;
}

/* By its kinds, whatever else it is: a switch that is called Oven is an oven. */
static bool is_dangerous(const guard_rules *r, const device *d, uint64_t kinds)
{
    char domain[64];
    for (size_t i = 0; i < r->lex->n_kinds; i++)
        if (kinds >> i & 1 && is_listed_kind(r, r->lex, i)) return true;
    snprintf(domain, sizeof domain, "%.*s", (int)strcspn(d->id, "."), d->id);
    return guard_list_has(&r->ids, d->id) || guard_list_has(&r->kinds, domain) ||
           (d->kind && guard_list_has(&r->kinds, d->kind));
}

/* What the lexicon takes a device for. */
static uint64_t device_kinds(judge *j, const device *d)
{
    match_devices x;
    uint64_t kinds = 0;
    if (match_devices_init(&x, j->rules->lex, d, 1, j->a))
        j->nomem = true;
    else
        kinds = x.index.devices[0].kinds;
    match_devices_done(&x);
    return kinds;
}

static bool has_danger(judge *j)
{
    if (!name_list(j, j->n_targets + 1)) return false;
    for (size_t i = 0; i < j->n_targets; i++)
        if (is_dangerous(j->rules, j->targets[i], device_kinds(j, j->targets[i])))
            j->names[j->n_names++] = j->targets[i]->name;
    for (size_t i = 0; i < j->c->n_actions && !j->n_names; i++) {
        if (!guard_list_has(&j->rules->actions, j->c->actions[i])) continue;
        for (size_t k = 0; k < j->n_targets; k++) j->names[j->n_names++] = j->targets[k]->name;
        if (!j->n_targets) j->names[j->n_names++] = j->c->actions[i];
    }
    j->count = j->n_names;
    return j->n_names > 0;
}

static bool is_too_many(judge *j)
{
    j->count = count_targets(j->c);
    if (!j->rules->max_targets || j->count <= j->rules->max_targets || !name_list(j, j->n_targets))
        return false;
    for (size_t i = 0; i < j->n_targets; i++) j->names[j->n_names++] = j->targets[i]->name;
    return true;
}

/* Of a text with most words strange a guard word may be among them, where guard words are looked for. */
static bool is_unread(judge *j)
{
    const matching *m = j->c->found;
    bool guard_words = j->rules->held & (1u << RULE_NEGATION | 1u << RULE_LATER);
    bool strange = j->n_targets && 2 * m->n_strange > m->utterance->n_words;
    return j->c->unread || m->utterance->cut || (guard_words && strange);
}

/* ---- what is said ------------------------------------------------------------------------------ */

/* The caller's own text for a rule, of the language before one for every language; else the lexicon's. */
static const char *template_of(const judge *j, const char *rule, const char *otherwise)
{
    const char *any = NULL;
    for (size_t i = 0; i < j->rules->n_say; i++) {
        const guard_saying *s = &j->rules->say[i];
        if (strcmp(s->rule, rule) != 0) continue;
        if (s->language && strcmp(s->language, j->t->name) == 0) return s->text;
        if (!s->language) any = s->text;
    }
    return any ? any : otherwise;
}

static int guard_say(judge *j, const char *rule, const language_saying *saying, guarding *ret)
{
    char count[24], max[24];
    snprintf(count, sizeof count, "%zu", j->count);
    snprintf(max, sizeof max, "%zu", j->rules->max_targets);
    const char *word = strcmp(rule, "ambiguous") == 0 ? j->t->or : j->t->and;
    const char *names = reply_list(j->a, j->names, j->n_names, word, j->t->more);
    if (!names || j->nomem) return SHOAL_ENOMEM;
    reply_field f[] = {{"names", names}, {"what", j->what}, {"count", count}, {"max", max}, {"why", NULL}};
    ret->rule = rule;
    ret->why = f[4].value = reply_fill(j->a, saying->why, f, 4);
    ret->text = ret->why ? reply_fill(j->a, template_of(j, rule, saying->say), f, 5) : NULL;
    return ret->text ? 0 : SHOAL_ENOMEM;
}

static bool guard_holds(judge *j, guard_rule r)
{
    j->what = "";
    j->count = j->n_names = 0;
    switch (r) {
    case RULE_UNREAD: return is_unread(j);
    case RULE_NEGATION: return has_guard_word(j, WORD_NEGATION_AT);
    case RULE_LATER: return has_guard_word(j, WORD_LATER_AT);
    case RULE_QUESTION: return names_any(j) && has_guard_word(j, WORD_QUESTION_AT);
    case RULE_UNKNOWN: return is_unknown(j);
    case RULE_AMBIGUOUS: return is_ambiguous(j);
    case RULE_DANGEROUS: return has_danger(j);
    case RULE_TOO_MANY: return is_too_many(j);
    case N_GUARD_RULES: break;
    }
    return false;
}

int guard(guarding *ret, const guard_rules *rules, const guard_case *c, arena *a)
{
    const language *t = c->found->utterance->t;
    judge j = {.rules = rules, .c = c, .t = t, .a = a, .what = ""};
    guarding g = {.verdict = GUARD_PASS, .rule = "", .text = "", .why = t->passed};
    if (find_targets(&j)) return SHOAL_ENOMEM;
    if (c->declined) {
        g.verdict = GUARD_DENY;
        *ret = g;
        return guard_say(&j, "declined", &t->sayings.declined, ret);
    }
    for (int r = 0; r < N_GUARD_RULES; r++) {
        bool held = r == RULE_UNREAD || rules->held >> r & 1;
        if (!held || !guard_holds(&j, (guard_rule)r)) continue;
        if (RULES[r].confirmable && c->confirmed) {
            g.why = t->confirmed;
            continue;
        }
        g.verdict = RULES[r].verdict;
        g.confirmable = RULES[r].confirmable;
        *ret = g;
        return guard_say(&j, RULES[r].name, (const language_saying *)((const char *)t + RULES[r].saying),
                         ret);
    }
    if (j.nomem) return SHOAL_ENOMEM;
    *ret = g;
    return 0;
}

/* ---- answers ----------------------------------------------------------------------------------- */

/* All units of the text, but for signs and what is polite, are one of the list. */
static bool guard_is_whole(const utterance *d, const language *t, int list)
{
    bool any = false;
    for (size_t i = 0; i < d->n_sentences; i++) {
        const utterance_sentence *s = &d->sentences[i];
        unit_set got = utterance_find(d, s, &t->lists[list], 0);
        any = any || got;
        for (size_t k = s->from; k < s->to; k++)
            if (!(got >> (k - s->from) & 1) && d->units[k].kind != UNIT_SIGN) return false;
    }
    return any;
}

int guard_read_answer(follow_reply *ret, const device_lexicon *l, const char *text, arena *a)
{
    utterance d;
    *ret = FOLLOW_OTHER;
    if (utterance_read(&d, l, NULL, 0, text, a)) return SHOAL_ENOMEM;
    for (size_t i = 0; i < l->n_languages; i++)
        if (guard_is_whole(&d, &l->languages[i], WORD_NO_AT)) *ret = FOLLOW_NO;
    for (size_t i = 0; i < l->n_languages && *ret == FOLLOW_OTHER; i++)
        if (guard_is_whole(&d, &l->languages[i], WORD_YES_AT)) *ret = FOLLOW_YES;
    return 0;
}
