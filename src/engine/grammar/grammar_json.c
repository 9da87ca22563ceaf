/* grammar_json.c: JSON as rules of an automaton over bytes. */
#include "grammar/grammar_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define INTEGER_DIGITS 18 /* microseconds since 1970 have 16 */

static int lit(json_rules *c, int from, const char *s)
{
    return nfa_bytes(c->a, from, s, strlen(s));
}

int json_literal(json_rules *c, int from, const char *s)
{
    return lit(c, from, s);
}

/* White space is bounded, since a small model likes to fill a reply with it: behind an opening bracket or a
 * comma nothing, one blank, or a line end and up to 16 blanks; behind a colon at most one blank; before a
 * closing bracket nothing, or a line end and blanks. */
static void build_spaces(json_rules *c)
{
    nfa *a = c->a;
    nfa_epsilon(a, c->space, c->gap);
    nfa_epsilon(a, c->space, c->line);
    int end = nfa_state(a);
    nfa_epsilon(a, c->gap, end);
    nfa_range_to(a, c->gap, ' ', ' ', end);
    nfa_epsilon(a, c->line, end);
    int at = nfa_range(a, c->line, '\n', '\n');
    for (int i = 0; i <= 16; i++) {
        nfa_epsilon(a, at, end);
        if (i < 16) at = nfa_range(a, at, ' ', ' ');
    }
    nfa_return(a, end);
}

/* One character of a string: UTF-8 by its well-formed byte sequences (Unicode 15, table 3-7), or an
 * escape. A lone surrogate escape is left out. */
static void build_string_char(json_rules *c)
{
    static const uint8_t seq[][4][2] = {
        {{0xC2, 0xDF}, {0x80, 0xBF}},
        {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}},
        {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}},
        {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
        {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}},
    };
    nfa *a = c->a;
    int end = nfa_state(a);
    nfa_range_to(a, c->string_char, 0x20, 0x21, end);
    nfa_range_to(a, c->string_char, 0x23, 0x5B, end);
    nfa_range_to(a, c->string_char, 0x5D, 0x7E, end);
    for (size_t i = 0; i < sizeof seq / sizeof *seq; i++) {
        int at = c->string_char;
        for (int k = 0; k < 4 && seq[i][k][0]; k++) at = nfa_range(a, at, seq[i][k][0], seq[i][k][1]);
        nfa_epsilon(a, at, end);
    }
    int escape = nfa_range(a, c->string_char, '\\', '\\');
    for (const char *p = "\"\\/bfnrt"; *p; p++) nfa_range_to(a, escape, (uint8_t)*p, (uint8_t)*p, end);
    int u = nfa_range(a, escape, 'u', 'u'), hex[4];
    for (int i = 0; i < 4; i++) hex[i] = i < 3 ? nfa_state(a) : end;
    /* First digit not d or D, so that no surrogate can be written. */
    nfa_range_to(a, u, '0', '9', hex[0]);
    nfa_range_to(a, u, 'a', 'c', hex[0]);
    nfa_range_to(a, u, 'e', 'f', hex[0]);
    nfa_range_to(a, u, 'A', 'C', hex[0]);
    nfa_range_to(a, u, 'E', 'F', hex[0]);
    for (int i = 0; i < 3; i++) {
        nfa_range_to(a, hex[i], '0', '9', hex[i + 1]);
        nfa_range_to(a, hex[i], 'a', 'f', hex[i + 1]);
        nfa_range_to(a, hex[i], 'A', 'F', hex[i + 1]);
    }
    nfa_return(a, end);
}

static void build_string(json_rules *c)
{
    int in = lit(c, c->string, "\"");
    nfa_epsilon(c->a, nfa_call(c->a, in, c->string_char), in);
    nfa_mark(c->a, in, NFA_OPTIONAL);
    nfa_return(c->a, lit(c, in, "\""));
}

/* least..most digits from `from`; returns the end. */
static int digits(json_rules *c, int from, int least, int most)
{
    int end = nfa_state(c->a);
    for (int i = 0; i < most; i++) {
        if (i >= least) nfa_epsilon(c->a, from, end);
        from = nfa_range(c->a, from, '0', '9');
    }
    nfa_epsilon(c->a, from, end);
    return end;
}

/* 0, or up to INTEGER_DIGITS digits that do not begin with 0. */
static int whole_part(json_rules *c, int from)
{
    int end = nfa_state(c->a);
    nfa_range_to(c->a, from, '0', '0', end);
    int first = nfa_range(c->a, from, '1', '9');
    nfa_epsilon(c->a, digits(c, first, 0, INTEGER_DIGITS - 1), end);
    return end;
}

static int after_sign(json_rules *c, int from)
{
    int at = nfa_range(c->a, from, '-', '-');
    nfa_epsilon(c->a, from, at);
    return at;
}

static void build_numbers(json_rules *c)
{
    nfa *a = c->a;
    nfa_return(a, whole_part(c, after_sign(c, c->integer)));
    int whole = whole_part(c, after_sign(c, c->number));
    int mantissa = digits(c, lit(c, whole, "."), 1, INTEGER_DIGITS);
    nfa_epsilon(a, whole, mantissa);
    int e = nfa_range(a, mantissa, 'e', 'e');
    nfa_range_to(a, mantissa, 'E', 'E', e);
    int sign = nfa_range(a, e, '+', '+');
    nfa_range_to(a, e, '-', '-', sign);
    nfa_epsilon(a, e, sign);
    int end = digits(c, sign, 1, 2);
    nfa_epsilon(a, mantissa, end);
    nfa_return(a, end);
}

void json_close(json_rules *c, int from, char bracket, int to)
{
    nfa_range_to(c->a, nfa_call(c->a, from, c->line), (uint8_t)bracket, (uint8_t)bracket, to);
}

static int member(json_rules *c, int from, int value_rule)
{
    int at = nfa_call(c->a, from, c->string);
    at = nfa_call(c->a, lit(c, at, ":"), c->gap);
    return nfa_call(c->a, at, value_rule);
}

/* open item (, item)* close, with white space between. */
static void build_container(json_rules *c, int start, const char *brackets, bool members)
{
    nfa *a = c->a;
    int inside = nfa_call(a, nfa_bytes(a, start, brackets, 1), c->space);
    int item = nfa_state(a), end = nfa_state(a);
    nfa_epsilon(a, inside, item);
    int after = members ? member(c, item, c->value) : nfa_call(a, item, c->value);
    nfa_epsilon(a, nfa_call(a, lit(c, after, ","), c->space), item);
    json_close(c, after, brackets[1], end);
    json_close(c, inside, brackets[1], end);
    nfa_return(a, end);
}

static void build_value(json_rules *c)
{
    int end = nfa_state(c->a);
    const int rules[] = {c->object, c->array, c->string, c->number};
    for (size_t i = 0; i < 4; i++) nfa_epsilon(c->a, nfa_call(c->a, c->value, rules[i]), end);
    const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) nfa_epsilon(c->a, lit(c, c->value, words[i]), end);
    nfa_return(c->a, end);
}

void json_rules_init(json_rules *c, nfa *a)
{
    *c = (json_rules){.a = a};
    int *const rules[] = {&c->value,  &c->object,  &c->array, &c->string, &c->string_char,
                          &c->number, &c->integer, &c->space, &c->gap,    &c->line};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) *rules[i] = nfa_state(a);
    build_spaces(c);
    build_string_char(c);
    build_string(c);
    build_numbers(c);
    build_container(c, c->object, "{}", true);
    build_container(c, c->array, "[]", false);
    build_value(c);
}

void json_rules_done(json_rules *c)
{
    buf_done(&c->classes);
    buf_done(&c->ranges);
}

/* ---- sets of characters ----------------------------------------------------------------------- */

/* The bytes of lo .. hi from `from` to `end`; both have as many bytes, and all but the last parts of the
 * range are whole, so that byte by byte gives exactly the range. */
static void byte_path(nfa *a, int from, uint32_t lo, uint32_t hi, int end)
{
    char x[4], y[4];
    size_t n = utf8_encode(lo, x);
    utf8_encode(hi, y);
    for (size_t i = 0; i + 1 < n; i++) from = nfa_range(a, from, (uint8_t)x[i], (uint8_t)y[i]);
    if (n > 0) nfa_range_to(a, from, (uint8_t)x[n - 1], (uint8_t)y[n - 1], end);
}

/* Where a range of code points has to be cut so that byte_path can write its head: the last of the head. */
static uint32_t head_end(uint32_t lo, uint32_t hi)
{
    static const uint32_t last_of_length[] = {0x7F, 0x7FF, 0xD7FF, 0xFFFF};
    for (size_t i = 0; i < 4; i++)
        if (lo <= last_of_length[i] && hi > last_of_length[i]) return last_of_length[i];
    for (int bits = 6; bits <= 18; bits += 6) {
        uint32_t mask = ((uint32_t)1 << bits) - 1;
        if (hi <= 0x7F || (lo & ~mask) == (hi & ~mask)) continue;
        if (lo & mask) return lo | mask;
        if ((hi & mask) != mask) return (hi & ~mask) - 1;
    }
    return hi;
}

/* Characters that stand for themselves in a string. */
static void raw_characters(nfa *a, int from, uint32_t lo, uint32_t hi, int end)
{
    while (lo <= hi) {
        if (lo >= 0xD800 && lo <= 0xDFFF) lo = 0xE000;
        if (lo > hi) return;
        uint32_t last = head_end(lo, hi);
        while (head_end(lo, last) != last) last = head_end(lo, last);
        byte_path(a, from, lo, last, end);
        lo = last + 1;
    }
}

/* `escapes` leads to nothing but literals. */
static void escaped_character(nfa *a, int escapes, uint32_t cp, int end)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *known = cp ? strchr(plain, (int)cp) : NULL;
    char text[8] = {'\\', known ? letters[known - plain] : 'u', 0};
    if (!known) snprintf(text + 2, sizeof text - 2, "%04x", (unsigned)cp & 0xFFFF);
    nfa_epsilon(a, nfa_literal(a, escapes, text, strlen(text)), end);
}

static bool is_plain(uint32_t cp)
{
    return cp >= 0x20 && cp < 0x7F && cp != '"' && cp != '\\';
}

typedef struct code_range {
    uint32_t lo, hi;
} code_range;

typedef struct code_class {
    size_t first, n; /* of json_rules.ranges */
    int rule;
} code_class;

/* A rule that reads one of these characters, none of which is_plain. NUL is left out: no one wants it in a
 * reply, and C programs behind us would end their strings there. */
static int build_class(json_rules *c, const code_range *ranges, size_t n)
{
    nfa *a = c->a;
    int rule = nfa_state(a), end = nfa_state(a), escapes = nfa_state(a);
    nfa_epsilon(a, rule, escapes);
    for (size_t i = 0; i < n; i++) {
        uint32_t lo = ranges[i].lo;
        for (; lo <= ranges[i].hi && lo <= 0x7F; lo++)
            if (lo > 0) escaped_character(a, escapes, lo, end);
        if (lo <= ranges[i].hi) raw_characters(a, rule, lo, ranges[i].hi, end);
    }
    nfa_return(a, end);
    return rule;
}

static int class_rule(json_rules *c, const code_range *ranges, size_t n)
{
    const code_class *known = (const void *)c->classes.data;
    const code_range *all = (const void *)c->ranges.data;
    for (size_t i = 0; i < c->classes.len / sizeof *known; i++)
        if (known[i].n == n && memcmp(all + known[i].first, ranges, n * sizeof *ranges) == 0)
            return known[i].rule;
    code_class one = {.first = c->ranges.len / sizeof *ranges, .n = n, .rule = build_class(c, ranges, n)};
    if (buf_append(&c->ranges, ranges, n * sizeof *ranges) == 0) buf_append(&c->classes, &one, sizeof one);
    return one.rule;
}

/* Cut lo .. hi into what is plain, which becomes an edge at once, and the rest. */
static void split_range(json_rules *c, int from, int to, uint32_t lo, uint32_t hi, buf *rest)
{
    while (lo <= hi) {
        uint32_t end = lo;
        bool plain = is_plain(lo);
        while (end < hi && end < 0x7F && is_plain(end + 1) == plain) end++;
        if (end >= 0x7F) end = hi;
        if (plain)
            nfa_range_to(c->a, from, (uint8_t)lo, (uint8_t)end, to);
        else
            buf_append(rest, &(code_range){lo, end}, sizeof(code_range));
        lo = end + 1;
    }
}

/* All edges of d's state i that lead where edge e leads. */
static void emit_target(json_rules *c, const dfa *d, int i, int e, const int *states, buf *rest)
{
    int from = states[i], to = states[d->edges[e].to];
    buf_clear(rest);
    for (int k = e; k < d->first[i + 1]; k++) {
        if (d->edges[k].to != d->edges[e].to) continue;
        if (d->edges[k].lo == 0 && d->edges[k].hi == CODE_MAX)
            nfa_call_to(c->a, from, c->string_char, to);
        else
            split_range(c, from, to, d->edges[k].lo, d->edges[k].hi, rest);
    }
    const code_range *ranges = (const void *)rest->data;
    if (rest->len) nfa_call_to(c->a, from, class_rule(c, ranges, rest->len / sizeof *ranges), to);
}

static void emit_edges(json_rules *c, const dfa *d, int i, const int *states, buf *rest)
{
    for (int e = d->first[i]; e < d->first[i + 1]; e++) {
        bool seen = false;
        for (int k = d->first[i]; k < e && !seen; k++) seen = d->edges[k].to == d->edges[e].to;
        if (!seen) emit_target(c, d, i, e, states, rest);
    }
}

static int emit(json_rules *c, int from, const dfa *d, bool quoted, uint8_t marks)
{
    nfa *a = c->a;
    int end = nfa_state(a);
    int *states = malloc(((size_t)d->n + 1) * sizeof *states);
    buf rest = {0};
    for (int i = 0; i < d->n && states; i++) states[i] = nfa_state(a);
    if (states && d->n > 0 && !nfa_failed(a)) nfa_epsilon(a, from, states[0]);
    for (int i = 0; i < d->n && states && !nfa_failed(a); i++) {
        if (d->accepts[i]) nfa_epsilon(a, states[i], end);
        nfa_mark(a, states[i], marks);
        if (quoted)
            emit_edges(c, d, i, states, &rest);
        else
            for (int e = d->first[i]; e < d->first[i + 1]; e++)
                nfa_range_to(a, states[i], (uint8_t)d->edges[e].lo, (uint8_t)d->edges[e].hi,
                             states[d->edges[e].to]);
    }
    bool ok = states && !rest.failed;
    free(states);
    buf_done(&rest);
    return ok ? end : NFA_DEAD;
}

int json_numbers(json_rules *c, int from, const dfa *texts)
{
    return emit(c, from, texts, false, 0);
}

int json_texts(json_rules *c, int from, const dfa *texts, uint8_t marks)
{
    if (dfa_is_long(texts, NFA_RUN_MAX)) marks |= NFA_OPTIONAL;
    int at = emit(c, lit(c, from, "\""), texts, true, marks);
    return lit(c, at, "\"");
}

/* All characters beyond ASCII. */
static int wide_rule(nfa *a)
{
    int rule = nfa_state(a), end = nfa_state(a);
    raw_characters(a, rule, 0x80, CODE_MAX, end);
    nfa_return(a, end);
    return rule;
}

static void raw_edge(nfa *a, int from, uint32_t lo, uint32_t hi, int to, int wide)
{
    if (lo == 0) lo = 1;
    if (lo <= 0x7F && lo <= hi) nfa_range_to(a, from, (uint8_t)lo, hi < 0x7F ? (uint8_t)hi : 0x7F, to);
    if (lo < 0x80) lo = 0x80;
    if (lo == 0x80 && hi == CODE_MAX)
        nfa_call_to(a, from, wide, to);
    else if (lo <= hi)
        raw_characters(a, from, lo, hi, to);
}

int json_raw_texts(nfa *a, int from, const dfa *d)
{
    int wide = wide_rule(a), end = nfa_state(a);
    int *states = malloc(((size_t)d->n + 1) * sizeof *states);
    if (!states) return NFA_DEAD;
    for (int i = 0; i < d->n; i++) states[i] = nfa_state(a);
    if (d->n > 0) nfa_epsilon(a, from, states[0]);
    for (int i = 0; i < d->n && !nfa_failed(a); i++) {
        if (d->accepts[i]) nfa_epsilon(a, states[i], end);
        for (int e = d->first[i]; e < d->first[i + 1]; e++)
            raw_edge(a, states[i], d->edges[e].lo, d->edges[e].hi, states[d->edges[e].to], wide);
    }
    free(states);
    return end;
}
