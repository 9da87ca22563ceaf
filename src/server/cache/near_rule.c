/* near_rule.c: see near_rule.h. A text becomes two runs of tokens: what it is about, and its particles. */
#include "cache/near_rule.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/words.h"

const char *near_verdict_name(near_verdict v)
{
    static const char *const NAMES[] = {
#define NEAR_VERDICT_NAME(e, name) [e] = name,
        NEAR_VERDICT_TABLE(NEAR_VERDICT_NAME)
#undef NEAR_VERDICT_NAME
    };
    return NAMES[v];
}

/* ---- languages ----------------------------------------------------------------------------------- */

/* Words between blanks, folded as base/words.h folds. Negations hold in every language: a word that is none in
 * this one costs a hit, a negation that is not known would cost the truth. */
typedef struct rule_language {
    const char *code;
    const char *articles;  /* in front of a word */
    const char *polite;    /* without meaning for what is asked */
    const char *particles; /* whose place is free */
    const char *questions; /* with which a question begins that needs no mark */
} rule_language;

static const rule_language LANGUAGES[] = {
    {"en", " a an the ", " please kindly just ", " on off up down ",
     " what whats what's when where where's who who's whom whose why how how's which is are was were am do "
     "does did has "
     "have had "},
    {"de", " der die das den dem des eine einen einem einer ", " bitte mal doch ", " an aus auf ab zu ein ",
     " was wann wo wer wen wem wessen warum wieso wie welche welcher welches ist sind war waren hat habe "
     "haben "},
    {"fr", " le la les un une des ", " svp ", "",
     " que quoi quand ou qui pourquoi comment quel quelle quels quelles est sont etait qu'est "},
    {"es", " el la los las un una unos unas ", "", "",
     " que cuando donde quien quienes por como cual cuales cuanto cuantos es esta son estan era "},
};
static const rule_language NO_LANGUAGE = {"", "", "", "", ""};

static const char NEGATIONS[] =
    " not no never none nobody nothing neither nor without except cannot don't doesn't didn't won't can't "
    "isn't aren't "
    "wasn't weren't shouldn't wouldn't couldn't mustn't haven't hasn't hadn't ain't dont doesnt didnt wont "
    "cant isnt "
    "nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne ausser weder ne pas jamais "
    "rien aucun "
    "aucune sans sauf ni nunca nada nadie ningun ninguna sin excepto tampoco non unless instead ";

static const rule_language *rule_language_of(const char *code)
{
    for (size_t i = 0; i < sizeof LANGUAGES / sizeof *LANGUAGES; i++)
        if (strcmp(LANGUAGES[i].code, code) == 0) return &LANGUAGES[i];
    return &NO_LANGUAGE;
}

/* Is the word in a list? No word of a list has a blank, so what is found between two is all of it. */
static bool is_in(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; n && (p = strstr(p, word)); p++)
        if (p > list && p[-1] == ' ' && p[n] == ' ') return true;
    return false;
}

/* ---- tokens -------------------------------------------------------------------------------------- */

typedef struct token {
    const char *s; /* folded; of a number and a sign as it is written */
    const word *from;
    size_t n_foreign; /* its bytes beyond ASCII: folding takes accents away */
    bool negates;
} token;

typedef struct token_run {
    token *at;
    size_t n;
} token_run;

typedef struct taken {
    words words;
    token_run about, particles;
    size_t n_marks;  /* '?' */
    bool asks;       /* begins as a question */
    bool underlines; /* '_', which words do not know */
} taken;

static size_t count_foreign(const word *w, const char *text)
{
    size_t n = 0;
    for (size_t i = w->begin; i < w->end; i++) n += (unsigned char)text[i] >= 0x80;
    return n;
}

/* "the light", but not vitamin A, and not what a text ends with. */
static bool is_article(const taken *t, const word *w, const rule_language *l)
{
    const word *next = w + 1 < t->words.at + t->words.n ? w + 1 : NULL;
    bool letter =
        w->end - w->begin == 1 && w > t->words.at && isupper((unsigned char)t->words.text[w->begin]);
    return !letter && next && !next->sign && is_in(l->articles, w->s);
}

/* Between sentences, or around one: "\xC2\xA1" and "\xC2\xBF" only open what another mark closes. */
static bool is_mark(const word *w)
{
    static const char *const MARKS[] = {".", ",", ";", ":", "!", "\xC2\xA1", "\xC2\xBF"};
    for (size_t i = 0; w->sign && i < sizeof MARKS / sizeof *MARKS; i++)
        if (strcmp(MARKS[i], w->s) == 0) return true;
    return false;
}

static void take_word(taken *t, const word *w, const rule_language *l, near_how how)
{
    token k = {.s = w->s, .from = w, .n_foreign = count_foreign(w, t->words.text)};
    if (is_mark(w)) return;
    if (w->sign && strcmp(w->s, "?") == 0) {
        t->n_marks++;
        return;
    }
    k.negates = !w->sign && !w->number && is_in(NEGATIONS, w->s);
    bool plain = !w->sign && !w->number && !k.negates;
    if (plain && how == NEAR_WORDS && t->about.n > 0 && is_in(l->particles, w->s))
        t->particles.at[t->particles.n++] = k;
    else if (!plain || !(is_in(l->polite, w->s) || is_article(t, w, l)))
        t->about.at[t->about.n++] = k;
}

static bool near_rule_take(taken *ret, arena *a, const char *text, const rule_language *l, near_how how)
{
    *ret = (taken){0};
    size_t n = strlen(text);
    if (words_split(&ret->words, a, text, n) != 0 || ret->words.cut) return false;
    ret->about.at = arena_alloc(a, (ret->words.n + 1) * sizeof(token));
    ret->particles.at = arena_alloc(a, (ret->words.n + 1) * sizeof(token));
    if (!ret->about.at || !ret->particles.at) return false;
    for (size_t i = 0; i < ret->words.n; i++) take_word(ret, &ret->words.at[i], l, how);
    ret->asks = ret->about.n > 0 && is_in(l->questions, ret->about.at[0].s);
    ret->underlines = strchr(text, '_') != NULL;
    return true;
}

/* ---- comparing ----------------------------------------------------------------------------------- */

static bool same(const token *x, const token *y, bool exact)
{
    if (x->n_foreign != y->n_foreign || x->from->sign != y->from->sign) return false;
    bool inflects = !exact && !x->from->number && !y->from->number && !x->from->sign;
    return inflects ? words_same_stem(x->s, y->s) : strcmp(x->s, y->s) == 0;
}

static near_verdict what_differs(const token *x, const token *y)
{
    if ((x && x->from->number) || (y && y->from->number)) return NEAR_OTHER_NUMBERS;
    if ((x && x->negates) || (y && y->negates)) return NEAR_OTHER_NEGATION;
    if ((x && x->from->sign) || (y && y->from->sign)) return NEAR_OTHER_SIGNS;
    return NEAR_OTHER_WORDS;
}

static bool has(const token_run *r, const token *x, bool exact)
{
    for (size_t i = 0; i < r->n; i++)
        if (same(&r->at[i], x, exact)) return true;
    return false;
}

static bool holds_all(const token_run *x, const token_run *y, bool exact)
{
    for (size_t i = 0; i < y->n; i++)
        if (!has(x, &y->at[i], exact)) return false;
    return true;
}

static near_verdict compare_runs(const token_run *x, const token_run *y, bool exact)
{
    size_t n = x->n > y->n ? x->n : y->n;
    for (size_t i = 0; i < n; i++) {
        const token *a = i < x->n ? &x->at[i] : NULL, *b = i < y->n ? &y->at[i] : NULL;
        if (a && b && same(a, b, exact)) continue;
        near_verdict v = what_differs(a, b);
        bool turned =
            v == NEAR_OTHER_WORDS && x->n == y->n && holds_all(x, y, exact) && holds_all(y, x, exact);
        return turned ? NEAR_OTHER_ORDER : v;
    }
    return NEAR_SAME;
}

/* Of the tokens for which `wanted` holds alone, in their order. */
static near_verdict compare_some(const taken *a, const taken *b, bool (*wanted)(const taken *, const token *),
                                 near_verdict otherwise)
{
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a->about.n && !wanted(a, &a->about.at[i])) i++;
        while (k < b->about.n && !wanted(b, &b->about.at[k])) k++;
        bool more = i < a->about.n;
        if (more != (k < b->about.n)) return otherwise;
        if (!more) return NEAR_SAME;
        if (!same(&a->about.at[i], &b->about.at[k], true)) return otherwise;
    }
}

static bool is_number(const taken *t, const token *k)
{
    return k->from->number;
}

static bool is_negation(const taken *t, const token *k)
{
    return k->negates;
}

static bool is_sign(const taken *t, const token *k)
{
    return k->from->sign;
}

/* With a capital, and not at the beginning of a sentence. */
static bool is_name(const taken *t, const token *k)
{
    const word *w = k->from, *before = w > t->words.at ? w - 1 : NULL;
    bool begins = !before || (before->sign && strchr(".!?:", *before->s));
    return !w->sign && !w->number && !begins && isupper((unsigned char)t->words.text[w->begin]);
}

static near_verdict compare_hard(const taken *a, const taken *b)
{
    near_verdict v = compare_some(a, b, is_number, NEAR_OTHER_NUMBERS);
    if (v == NEAR_SAME) v = compare_some(a, b, is_negation, NEAR_OTHER_NEGATION);
    if (v == NEAR_SAME) v = compare_some(a, b, is_sign, NEAR_OTHER_SIGNS);
    return v == NEAR_SAME ? compare_some(a, b, is_name, NEAR_OTHER_NAMES) : v;
}

/* ---- quotes -------------------------------------------------------------------------------------- */

/* The length of a quotation mark at s, 0: it is none. Plain apostrophes are letters' own. */
static size_t quote_at(const char *s)
{
    static const char *const MARKS[] = {
        "\"",           "`",           "\xC2\xAB", "\xC2\xBB", "\xE2\x80\x9C", "\xE2\x80\x9D", "\xE2\x80\x9E",
        "\xE2\x80\xB9", "\xE2\x80\xBA"};
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++)
        if (strncmp(s, MARKS[i], strlen(MARKS[i])) == 0) return strlen(MARKS[i]);
    return 0;
}

/* The next quoted run behind *at, up to its mark or the end; false: there is none. */
static bool next_quoted(const char **at, const char **ret, size_t *ret_n)
{
    const char *p = *at;
    size_t n = 0;
    while (*p && !(n = quote_at(p))) p++;
    if (!*p) return false;
    *ret = p += n;
    while (*p && !quote_at(p)) p++;
    *ret_n = (size_t)(p - *ret);
    *at = *p ? p + quote_at(p) : p;
    return true;
}

static bool quotes_are_same(const char *a, const char *b)
{
    const char *x, *y;
    for (size_t n, m;;) {
        bool more = next_quoted(&a, &x, &n);
        if (more != next_quoted(&b, &y, &m)) return false;
        if (!more) return true;
        if (n != m || memcmp(x, y, n) != 0) return false;
    }
}

/* ---- the verdict --------------------------------------------------------------------------------- */

/* A question whose first word says so needs no mark. */
static bool ask_the_same(const taken *a, const taken *b)
{
    return a->asks == b->asks && (a->asks || a->n_marks == b->n_marks);
}

static near_verdict near_rule_judge(const taken *a, const taken *b, near_how how)
{
    if (!ask_the_same(a, b)) return NEAR_OTHER_QUESTION;
    if (a->underlines != b->underlines) return NEAR_OTHER_SIGNS;
    if (how == NEAR_HARD) return compare_hard(a, b);
    near_verdict v = compare_runs(&a->about, &b->about, how == NEAR_EXACT);
    return v == NEAR_SAME ? compare_runs(&a->particles, &b->particles, true) : v;
}

near_verdict near_rule_compare(const char *a, const char *b, const char *language, near_how how)
{
    taken x, y;
    near_verdict v = NEAR_TOO_LONG;
    const rule_language *l = rule_language_of(language);
    if (strlen(a) > NEAR_TEXT_MAX || strlen(b) > NEAR_TEXT_MAX) return v;
    if (!quotes_are_same(a, b)) return NEAR_OTHER_QUOTES;
    arena *mem = arena_new(0);
    if (mem && near_rule_take(&x, mem, a, l, how) && near_rule_take(&y, mem, b, l, how))
        v = near_rule_judge(&x, &y, how);
    arena_free(mem);
    return v;
}
