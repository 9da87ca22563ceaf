/* words.c: splitting and comparing words; see words.h. */
#include "base/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/edits.h"
#include "base/utf8.h"
#include "shoal.h"

typedef enum { CH_SPACE, CH_LETTER, CH_DIGIT, CH_SIGN } char_class;

/* Letters are what people write names with: letters, marks, and '_' as ids have it. Emoji and the like are
 * signs. */
static char_class class_of(uint32_t cp)
{
    if (cp < 0x80) {
        if ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z') return CH_LETTER;
        if (cp >= '0' && cp <= '9') return CH_DIGIT;
        return cp > ' ' && cp != 0x7f && cp != '_' ? CH_SIGN : CH_SPACE;
    }
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND: return CH_LETTER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF: return CH_SPACE;
    default: return CH_SIGN;
    }
}

static bool is_apostrophe(uint32_t cp)
{
    return cp == '\'' || cp == 0x2019 || cp == 0x2BC;
}

typedef struct split {
    const char *text;
    size_t len, at;
} split;

/* The next character; its length, 1 for a byte that is none (a space then). */
static size_t words_peek(const split *s, size_t at, uint32_t *ret_cp)
{
    if (at < s->len && (unsigned char)s->text[at] < 0x80) { /* most of it */
        *ret_cp = (unsigned char)s->text[at];
        return 1;
    }
    size_t n = at < s->len ? utf8_decode(s->text + at, s->len - at, ret_cp) : 0;
    if (n == 0) *ret_cp = ' ';
    return n ? n : 1;
}

static char_class class_at(const split *s, size_t at, uint32_t *ret_cp)
{
    words_peek(s, at, ret_cp);
    return at < s->len ? class_of(*ret_cp) : CH_SPACE;
}

/* "0.5" and "21,5" are one number, "3." and "1,2,3" are not. */
static bool is_decimal_mark(const split *s, size_t at)
{
    uint32_t cp, next;
    class_at(s, at, &cp);
    if (cp != '.' && cp != ',') return false;
    return class_at(s, at + 1, &next) == CH_DIGIT;
}

static size_t number_end(const split *s, size_t at)
{
    uint32_t cp;
    bool marked = false;
    while (class_at(s, at, &cp) == CH_DIGIT || (!marked && is_decimal_mark(s, at))) {
        marked = marked || !isdigit((int)cp);
        at++;
    }
    return at;
}

/* "0x00158d0001a2b3c4", "a4c1382f9b0e": hex digits that are no number, as ids have them, are one word; else a
 * lone "4" would be a word of its name. Returns `at` when it is none. */
static size_t hex_end(const split *s, size_t at)
{
    enum { HEX_MIN = 8 };
    size_t from = at, digits = 0;
    bool prefix = at + 2 < s->len && s->text[at] == '0' && (s->text[at + 1] | 32) == 'x';
    if (prefix) from += 2;
    size_t end = from;
    for (; end < s->len && isxdigit((unsigned char)s->text[end]); end++)
        digits += isdigit((unsigned char)s->text[end]) != 0;
    uint32_t cp;
    char_class next = class_at(s, end, &cp);
    bool mixed = digits > 0 && digits < end - from;
    bool is_id = end > from && (prefix || (mixed && end - from >= HEX_MIN));
    return is_id && next != CH_LETTER && next != CH_DIGIT ? end : at;
}

/* Letters, and apostrophes between letters ("don't", "o'clock", "anna's"). */
static size_t letters_end(const split *s, size_t at)
{
    for (;;) {
        uint32_t cp, next;
        char_class c = class_at(s, at, &cp);
        size_t n = words_peek(s, at, &cp);
        bool inner = is_apostrophe(cp) && class_at(s, at + n, &next) == CH_LETTER;
        if (c != CH_LETTER && !inner) return at;
        at += n;
    }
}

/* Lower case, compatibility forms, no accents; the typographic apostrophe becomes the plain one. */
static const char *fold(arena *a, const char *s, size_t n)
{
    size_t ascii = 0;
    while (ascii < n && (unsigned char)s[ascii] < 0x80) ascii++;
    if (ascii == n) { /* most words: no need to ask Unicode */
        char *out = arena_strndup(a, s, n);
        for (size_t i = 0; out && i < n; i++) out[i] = (char)tolower((unsigned char)out[i]);
        return out;
    }
    utf8proc_uint8_t *out = NULL;
    utf8proc_ssize_t len = utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, &out,
                                        UTF8PROC_CASEFOLD | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE |
                                            UTF8PROC_STRIPMARK | UTF8PROC_STABLE);
    if (len < 0 || !out) return NULL;
    char *folded = arena_strndup(a, (const char *)out, (size_t)len);
    free(out);
    for (char *p = folded; p && (p = strstr(p, "\xE2\x80\x99"));) {
        *p++ = '\'';
        memmove(p, p + 2, strlen(p + 2) + 1);
    }
    return folded;
}

/* At most NUMBER_MAX, so that no sum or cast of it overflows; digits that a double cannot hold are left out.
 */
static double value_of(const char *digits)
{
    const double NUMBER_MAX = 1e15;
    double v = 0, scale = 1;
    bool fraction = false;
    for (; *digits; digits++) {
        if (!isdigit((unsigned char)*digits)) {
            fraction = true;
            continue;
        }
        if (fraction && (scale >= 1e15 || v >= NUMBER_MAX)) break;
        v = v * 10 + (*digits - '0');
        if (fraction) scale *= 10;
    }
    return v / scale < NUMBER_MAX ? v / scale : NUMBER_MAX;
}

/* "the kids' room": the apostrophe after a word is no sign of its own. */
static bool closes_word(const words *w, size_t begin, uint32_t cp)
{
    const word *last = w->n ? &w->at[w->n - 1] : NULL;
    return is_apostrophe(cp) && last && !last->sign && !last->number && last->end == begin;
}

static int words_put(words *w, arena *a, size_t begin, size_t end, char_class c)
{
    word *x = &w->at[w->n];
    *x = (word){.begin = begin, .end = end, .sign = c == CH_SIGN, .number = c == CH_DIGIT};
    x->glued = w->n > 0 && w->at[w->n - 1].end == begin;
    x->s = fold(a, w->text + begin, end - begin);
    if (!x->s) return SHOAL_ENOMEM;
    if (x->number) x->value = value_of(x->s);
    w->n++;
    return 0;
}

int words_split(words *ret, arena *a, const char *text, size_t len)
{
    size_t cap = len < WORDS_MAX ? len : WORDS_MAX;
    words w = {.text = text, .at = arena_alloc(a, (cap + 1) * sizeof *w.at)};
    if (!w.at) return SHOAL_ENOMEM;
    split s = {.text = text, .len = len};
    while (s.at < len && w.n < cap) {
        uint32_t cp;
        char_class c = class_at(&s, s.at, &cp);
        bool begins = w.n == 0 || w.at[w.n - 1].end < s.at || w.at[w.n - 1].sign;
        size_t end = begins ? hex_end(&s, s.at) : s.at;
        if (end > s.at)
            c = CH_LETTER;
        else
            end = c == CH_DIGIT    ? number_end(&s, s.at)
                  : c == CH_LETTER ? letters_end(&s, s.at)
                                   : s.at + words_peek(&s, s.at, &cp);
        if (end > len) end = len;
        if (c == CH_SIGN && closes_word(&w, s.at, cp)) c = CH_SPACE;
        if (c != CH_SPACE && words_put(&w, a, s.at, end, c)) return SHOAL_ENOMEM;
        s.at = end;
    }
    w.cut = s.at < len;
    *ret = w;
    return 0;
}

/* ---- comparing -------------------------------------------------------------------------------- */

bool words_is_plural_of(const char *s, const char *singular)
{
    if (*s != *singular) return false;
    size_t n = strlen(singular), m = strlen(s);
    if (m <= n - (n > 0)) return false;
    if (strncmp(s, singular, n) == 0) {
        const char *tail = s + n;
        return strcmp(tail, "s") == 0 || strcmp(tail, "'s") == 0 ||
               (strcmp(tail, "es") == 0 && n > 1 && strchr("hsxzo", singular[n - 1]));
    }
    return n > 2 && singular[n - 1] == 'y' && m == n + 2 && strncmp(s, singular, n - 1) == 0 &&
           strcmp(s + n - 1, "ies") == 0;
}

bool words_same_stem(const char *a, const char *b)
{
    if (*a != *b) return false;
    return strcmp(a, b) == 0 || words_is_plural_of(a, b) || words_is_plural_of(b, a);
}

static bool has_digit(const char *s)
{
    for (; *s; s++)
        if (isdigit((unsigned char)*s)) return true;
    return false;
}

/* The same letters, two neighbours changed about: all that is forgiven in a word of four. */
static bool is_swapped(const char *a, const char *b)
{
    for (size_t i = 1; a[i] && a[i + 1]; i++)
        if (a[i] == b[i + 1] && a[i + 1] == b[i] && a[i] != b[i])
            return strncmp(a, b, i) == 0 && strcmp(a + i + 2, b + i + 2) == 0;
    return false;
}

bool words_is_typo(const char *typed, const char *meant)
{
    if (typed[0] != meant[0]) return false;
    size_t n = strlen(meant), m = strlen(typed);
    if (n == 4 && m == 4) return is_swapped(typed, meant);
    if (n < 5 || m < 4 || has_digit(typed) || has_digit(meant)) return false;
    size_t max = n >= 9 ? 2 : 1;
    return edits(typed, meant, max) <= max;
}
