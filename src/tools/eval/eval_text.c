/* eval_text.c: words of a text; see eval_text.h. Letter case is folded for ASCII and Latin-1 only. */
#include "eval/eval_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Letters of Latin-1 in UTF-8 are C3 80..BF; the upper-case ones C3 80..9E, but for the sign C3 97. */
static bool is_latin1_capital(const unsigned char *s)
{
    return s[0] == 0xC3 && s[1] >= 0x80 && s[1] <= 0x9E && s[1] != 0x97;
}

static bool is_letter(unsigned char c)
{
    return isalpha(c) || c >= 0x80;
}

static size_t number_len(const char *s)
{
    size_t n = 0;
    while (isdigit((unsigned char)s[n]) ||
           (n && (s[n] == '.' || s[n] == ',') && isdigit((unsigned char)s[n + 1])))
        n++;
    return n;
}

static size_t letters_len(const char *s)
{
    size_t n = 0;
    while (is_letter((unsigned char)s[n])) n++;
    return n;
}

/* The word at s, whose len is 0 when there is none. */
static eval_word word_at(const char *s)
{
    eval_word w = {.at = s, .len = number_len(s)};
    w.number = w.len > 0;
    if (!w.number) w.len = letters_len(s);
    w.capital = !w.number && (isupper((unsigned char)*s) || is_latin1_capital((const unsigned char *)s));
    return w;
}

int eval_words_init(eval_words *ret, const char *text, shoal_err *err)
{
    eval_words w = {.v = calloc(strlen(text) + 1, sizeof *w.v)};
    if (!w.v) return err_nomem(err);
    bool first = true;
    for (const char *s = text; *s;) {
        eval_word x = word_at(s);
        if (x.len) {
            x.first = first;
            w.v[w.n++] = x;
            first = false;
            s += x.len;
        } else {
            first = first || strchr(".!?:\n", *s);
            s++;
        }
    }
    *ret = w;
    return 0;
}

void eval_words_done(eval_words *w)
{
    free(w->v);
    *w = (eval_words){0};
}

/* Lower case of byte i of a word: of ASCII, and of Latin-1's second bytes. */
static unsigned char folded(const eval_word *w, size_t i)
{
    const unsigned char *s = (const unsigned char *)w->at;
    if (i && is_latin1_capital(s + i - 1)) return s[i] + 0x20;
    return (unsigned char)tolower(s[i]);
}

static bool same_word(const eval_word *a, const eval_word *b)
{
    if (a->len != b->len) return false;
    for (size_t i = 0; i < a->len; i++)
        if (folded(a, i) != folded(b, i)) return false;
    return true;
}

static bool stands_at(const eval_words *w, size_t at, const eval_words *part)
{
    for (size_t i = 0; i < part->n; i++)
        if (!same_word(&w->v[at + i], &part->v[i])) return false;
    return true;
}

size_t eval_words_find(const eval_words *w, size_t from, const eval_words *part)
{
    for (size_t at = from; part->n && at + part->n <= w->n; at++)
        if (stands_at(w, at, part)) return at;
    return (size_t)-1;
}

bool eval_text_has(const char *text, const char *phrase)
{
    eval_words w = {0}, part = {0};
    bool at_start = *phrase == '^', has = false;
    if (eval_words_init(&w, text, NULL) == 0 && eval_words_init(&part, phrase + at_start, NULL) == 0) {
        size_t at = eval_words_find(&w, 0, &part);
        has = at_start ? at == 0 : at != (size_t)-1;
    }
    eval_words_done(&w);
    eval_words_done(&part);
    return has;
}
