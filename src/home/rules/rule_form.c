/* rule_form.c: texts against the sentences of a lexicon; see rule_form.h. */
#include "rules/rule_form.h"

#include <string.h>

#include "shoal.h"

enum { FIELD_WORDS_MAX = 8, TEXT_WORDS_MAX = 512 };

/* A sentence: words, and fields between them. */
typedef struct form_part {
    const char *word; /* folded; NULL: a field */
    bool names;       /* the field holds names of devices */
} form_part;
typedef struct form {
    size_t n;
    form_part *at;
} form;

typedef struct former {
    const rule_form_given *given;
    arena *mem;
    bool nomem;
    word_list text;   /* without signs */
    word_list *names; /* of the devices */
    word_list known;
    size_t n_forms;
    form *forms;
} former;

static word_list rule_form_words(former *f, const char *s, size_t n)
{
    words w;
    word_list l = {0};
    if (words_split(&w, f->mem, s, n) || !(l.at = arena_alloc(f->mem, (w.n + 1) * sizeof *l.at))) {
        f->nomem = true;
        return l;
    }
    for (size_t i = 0; i < w.n; i++)
        if (!w.at[i].sign) l.at[l.n++] = w.at[i].s;
    return l;
}

/* ---- forms ------------------------------------------------------------------------------------------ */

static void add_words(former *f, form *to, const char *s, size_t n)
{
    word_list l = rule_form_words(f, s, n);
    for (size_t i = 0; i < l.n && !f->nomem; i++) to->at[to->n++] = (form_part){.word = l.at[i]};
}

static bool is_field(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(s, name, n) == 0;
}

static void add_form(former *f, const char *say)
{
    form *to = &f->forms[f->n_forms];
    *to = (form){.at = say ? arena_alloc(f->mem, (strlen(say) + 1) * sizeof *to->at) : NULL};
    if (!say || !to->at) {
        f->nomem = f->nomem || say;
        return;
    }
    while (*say) {
        size_t text = strcspn(say, "{"), field = strcspn(say + text, "}");
        add_words(f, to, say, text);
        say += text;
        if (!*say || !say[field]) break;
        bool names = is_field(say + 1, field - 1, "name") || is_field(say + 1, field - 1, "names");
        to->at[to->n++] = (form_part){.names = names};
        say += field + 1;
    }
    if (to->n) f->n_forms++;
}

/* What is said of what was done, and of states. */
static void read_forms(former *f)
{
    const lexicon *l = f->given->lex;
    const char *const replies[] = {l->reply.state,   l->reply.state_yes, l->reply.state_no,
                                   l->reply.some_so, l->reply.none_so,   l->reply.state_unknown,
                                   l->reply.count_so};
    size_t n = sizeof replies / sizeof *replies, all = n + l->n_actions + l->n_kinds;
    f->forms = arena_alloc(f->mem, all * sizeof *f->forms);
    f->nomem |= !f->forms;
    for (size_t i = 0; i < n && !f->nomem; i++) add_form(f, replies[i]);
    for (size_t i = 0; i < l->n_actions && !f->nomem; i++)
        if (l->actions[i].service) add_form(f, l->actions[i].say);
    for (size_t i = 0; i < l->n_kinds && !f->nomem; i++) add_form(f, l->kinds[i].state_say);
}

/* ---- matching --------------------------------------------------------------------------------------- */

static bool stands_at(const former *f, size_t at, const word_list *name)
{
    if (!name->n || at + name->n > f->text.n) return false;
    for (size_t i = 0; i < name->n; i++)
        if (!words_same(f->text.at[at + i], name->at[i])) return false;
    return true;
}

static bool form_matches(const former *f, const form *x, size_t part, size_t at, bool *ends);

/* Names, with "and" between them. Each place that they can reach is gone on from once. */
static bool names_match(const former *f, const form *x, size_t part, size_t at, bool *ends)
{
    bool before[TEXT_WORDS_MAX + 1] = {false}, any = false;
    before[at] = true;
    for (; at < f->text.n; at++) {
        if (!before[at]) continue;
        for (size_t i = 0; i < f->given->n_devices; i++) {
            size_t after = at + f->names[i].n;
            if (!stands_at(f, at, &f->names[i]) || before[after]) continue;
            any = form_matches(f, x, part + 1, after, ends) || any;
            before[after] = true;
            if (after < f->text.n && strcmp(f->text.at[after], f->given->lex->reply.and) == 0)
                before[after + 1] = true;
        }
    }
    return any;
}

static bool form_is_given(const former *f, const char *word)
{
    for (size_t i = 0; i < f->known.n; i++)
        if (words_same(f->known.at[i], word)) return true;
    return lexicon_is_state(f->given->lex, word);
}

static bool field_matches(const former *f, const form *x, size_t part, size_t at, bool *ends)
{
    bool any = false;
    for (size_t n = 1;
         n <= FIELD_WORDS_MAX && at + n <= f->text.n && form_is_given(f, f->text.at[at + n - 1]); n++)
        any = form_matches(f, x, part + 1, at + n, ends) || any;
    return any;
}

/* Parts [part, n) from word `at` on; ends[i]: they may end before word i. */
static bool form_matches(const former *f, const form *x, size_t part, size_t at, bool *ends)
{
    for (; part < x->n; part++, at++) {
        const form_part *p = &x->at[part];
        if (!p->word && p->names) return names_match(f, x, part, at, ends);
        if (!p->word) return field_matches(f, x, part, at, ends);
        if (at >= f->text.n || !words_same(f->text.at[at], p->word)) return false;
    }
    return ends[at] = true;
}

/* From the first word on, sentence by sentence, "and" between them. */
static bool is_made_of_forms(former *f)
{
    size_t n = f->text.n;
    bool *ends = arena_alloc(f->mem, (n + 1) * sizeof *ends);
    f->nomem |= !ends;
    if (f->nomem || !n || n > TEXT_WORDS_MAX) return false;
    ends[0] = true;
    for (size_t at = 0; at < n; at++) {
        if (!ends[at]) continue;
        bool joined = at && at + 1 < n && strcmp(f->text.at[at], f->given->lex->reply.and) == 0;
        for (size_t i = 0; i < f->n_forms; i++) form_matches(f, &f->forms[i], 0, at + joined, ends);
    }
    return ends[n];
}

int rule_form_fits(bool *ret, const rule_form_given *given, const char *text, arena *mem)
{
    former x = {.given = given, .mem = mem}, *f = &x;
    buf known = {0};
    f->text = rule_form_words(f, text, strlen(text));
    f->names = arena_alloc(mem, (given->n_devices + 1) * sizeof *f->names);
    f->nomem |= !f->names;
    for (size_t i = 0; i < given->n_devices && !f->nomem; i++)
        f->names[i] = rule_form_words(f, given->devices[i].name, strlen(given->devices[i].name));
    for (size_t i = 0; i < given->n_known; i++) buf_printf(&known, "%s\n", given->known[i]);
#define KNOW_VERB(name) \
    if (given->lex->reply.name) buf_printf(&known, "%s\n", given->lex->reply.name);
    LEXICON_VERBS(KNOW_VERB)
#undef KNOW_VERB
    if (!f->nomem && !known.failed) f->known = rule_form_words(f, known.data ? known.data : "", known.len);
    if (!f->nomem && !known.failed) read_forms(f);
    *ret = !f->nomem && !known.failed && is_made_of_forms(f);
    bool failed = f->nomem || known.failed;
    buf_done(&known);
    return failed ? SHOAL_ENOMEM : 0;
}
