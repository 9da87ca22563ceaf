/* grammar_pattern.c: parse an expression into a tree, then write the tree into an fsm (Thompson 1968); where
 * it has assertions, grammar_ahead.c makes its set of texts.
 *
 *     alternation = sequence { "|" sequence }
 *     sequence    = { atom [ "*" | "+" | "?" | "{" n [ "," [ m ] ] "}" [ "?" ] ] }
 *     atom        = "(" [ "?:" | "?=" | "?!" | "?<name>" ] alternation ")" | "[" class "]" | "." | "^" | "$"
 *                 | escape | character
 *
 * The tree is kept because a counted repetition writes its part several times. */
#include "grammar/automaton/grammar_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "grammar/automaton/grammar_pattern_impl.h"

#define PATTERN_MAX 4096 /* bytes; the tree may be as deep */
#define COUNT_MAX   1000
#define GROUPS_MAX  64
#define RANGE_WORK  4 /* of a range that is written: 20 bytes */

/* ---- reading ---------------------------------------------------------------------------------- */

static int bad(regex *r, int code, const char *what)
{
    if (r->rc == 0) r->rc = err_set(r->err, code, "%s (at byte %zu)", what, r->at);
    return 0;
}

static bool more(const regex *r)
{
    return r->at < r->n && r->rc == 0;
}

static char grammar_pattern_peek(const regex *r)
{
    return r->at < r->n ? r->s[r->at] : '\0';
}

static bool looking_at(const regex *r, const char *s)
{
    size_t n = strlen(s);
    return r->n - r->at >= n && memcmp(r->s + r->at, s, n) == 0;
}

static bool skip(regex *r, const char *s)
{
    if (!looking_at(r, s)) return false;
    r->at += strlen(s);
    return true;
}

static uint32_t next_code(regex *r)
{
    uint32_t cp = 0;
    size_t n = utf8_decode(r->s + r->at, r->n - r->at, &cp);
    if (n == 0) bad(r, SHOAL_EINVALID, "ends too early");
    r->at += n;
    return cp;
}

node pattern_node(const regex *r, int i)
{
    return ((const node *)(const void *)r->nodes.data)[i];
}

static bool node_asserts(const regex *r, node n)
{
    if (n.kind == N_EMPTY || n.kind == N_CLASS) return false;
    if (n.kind == N_REPEAT) return pattern_node(r, n.a).asserts;
    return (n.kind != N_THEN && n.kind != N_OR) || pattern_node(r, n.a).asserts ||
           pattern_node(r, n.b).asserts;
}

static int add_node(regex *r, node n)
{
    if (r->rc) return 0;
    n.asserts = node_asserts(r, n);
    int i = (int)(r->nodes.len / sizeof n);
    if (buf_append(&r->nodes, &n, sizeof n) != 0 && r->rc == 0) r->rc = err_nomem(r->err);
    return r->rc ? 0 : i;
}

static size_t n_ranges(const regex *r)
{
    return r->ranges.len / sizeof(range);
}

static void add_range(regex *r, uint32_t lo, uint32_t hi)
{
    if (buf_append(&r->ranges, &(range){lo, hi}, sizeof(range)) != 0 && r->rc == 0) r->rc = err_nomem(r->err);
}

/* ---- classes ---------------------------------------------------------------------------------- */

static int compare_ranges(const void *x, const void *y)
{
    const range *a = x, *b = y;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

/* Sort and join the ranges from `first` on, and turn them round when `negated`. */
static void grammar_pattern_settle(regex *r, size_t first, bool negated)
{
    size_t n = n_ranges(r) - first, kept = 0;
    if (r->rc) return;
    range *all =
        n > 0 ? (range *)(void *)r->ranges.data + first : NULL; /* a buffer that held nothing has none */
    if (n > 0) qsort(all, n, sizeof *all, compare_ranges);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && all[i].lo <= all[kept - 1].hi + 1) {
            if (all[i].hi > all[kept - 1].hi) all[kept - 1].hi = all[i].hi;
        } else {
            all[kept++] = all[i];
        }
    }
    r->ranges.len = (first + kept) * sizeof *all;
    if (!negated) return;
    uint32_t from = 0;
    bool open = true;
    for (size_t i = 0; i < kept; i++) { /* each gap takes the place of a range that was looked at */
        range now = all[i];
        if (now.lo > from) add_range(r, from, now.lo - 1);
        if (r->rc) return;
        all = (range *)(void *)r->ranges.data + first;
        open = now.hi < CODE_MAX;
        from = now.hi + 1;
    }
    if (open) add_range(r, from, CODE_MAX);
    if (r->rc) return;
    all = (range *)(void *)r->ranges.data + first;
    size_t total = n_ranges(r) - first;
    memmove(all, all + kept, (total - kept) * sizeof *all);
    r->ranges.len -= kept * sizeof *all;
}

/* \d \w \s and their complements; false when `c` is none of them. */
static bool class_escape(regex *r, char c)
{
    static const range digits[] = {{'0', '9'}};
    static const range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const range spaces[] = {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                   {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                   {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    const range *set = NULL;
    size_t n = 0, first = n_ranges(r);
    switch (c | 0x20) {
    case 'd': set = digits, n = 1; break;
    case 'w': set = words, n = 4; break;
    case 's': set = spaces, n = sizeof spaces / sizeof *spaces; break;
    default: return false;
    }
    for (size_t i = 0; i < n; i++) add_range(r, set[i].lo, set[i].hi);
    grammar_pattern_settle(r, first, c < 'a');
    return true;
}

static uint32_t hex(regex *r, int n)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++) {
        char c = grammar_pattern_peek(r);
        int d = c >= '0' && c <= '9'                     ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                         : -1;
        if (d < 0) return (uint32_t)bad(r, SHOAL_EINVALID, "has an escape that wants hexadecimal digits");
        v = v * 16 + (uint32_t)d;
        r->at++;
    }
    return v;
}

static uint32_t unicode_escape(regex *r)
{
    uint32_t v = 0;
    if (skip(r, "{")) {
        while (more(r) && grammar_pattern_peek(r) != '}' && v <= CODE_MAX) v = v * 16 + hex(r, 1);
        if (!skip(r, "}") || v > CODE_MAX) bad(r, SHOAL_EINVALID, "has a \\u{...} that is no code point");
        return v;
    }
    v = hex(r, 4);
    if (v >= 0xD800 && v <= 0xDBFF && skip(r, "\\u")) {
        uint32_t low = hex(r, 4);
        if (low < 0xDC00 || low > 0xDFFF) bad(r, SHOAL_EINVALID, "has half a surrogate pair");
        return 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
    }
    return v;
}

/* The character that the escape behind a backslash stands for. */
static uint32_t char_escape(regex *r)
{
    static const char from[] = "tnvfr", to[] = "\t\n\v\f\r";
    char c = grammar_pattern_peek(r);
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        r->at++;
        return (uint8_t)to[known - from];
    }
    if (skip(r, "x")) return hex(r, 2);
    if (skip(r, "u")) return unicode_escape(r);
    if (c == '0' && !(r->at + 1 < r->n && r->s[r->at + 1] >= '0' && r->s[r->at + 1] <= '9')) {
        r->at++;
        return 0;
    }
    if (c >= '0' && c <= '9')
        return (uint32_t)bad(r, SHOAL_EUNSUPPORTED, "has a backreference, which is not supported");
    if (c == 'p' || c == 'P')
        return (uint32_t)bad(r, SHOAL_EUNSUPPORTED, "has \\p{...}, which is not supported");
    if (c == 'B') return (uint32_t)bad(r, SHOAL_EINVALID, "has \\B in a class");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return (uint32_t)bad(r, SHOAL_EUNSUPPORTED, "has an escape of a letter that is not supported");
    return next_code(r);
}

/* One end of a range in [...], *ret_single false when it was a class like \d. */
static uint32_t class_atom(regex *r, bool *ret_single)
{
    *ret_single = true;
    if (!skip(r, "\\")) return next_code(r);
    if (grammar_pattern_peek(r) == 'b') {
        r->at++;
        return 8;
    }
    if (!class_escape(r, grammar_pattern_peek(r))) return char_escape(r);
    r->at++;
    *ret_single = false;
    return 0;
}

static int class_node(regex *r)
{
    size_t first = n_ranges(r);
    bool negated = skip(r, "^"), single, single_hi;
    while (more(r) && grammar_pattern_peek(r) != ']') {
        uint32_t lo = class_atom(r, &single), hi = lo;
        bool is_range =
            single && grammar_pattern_peek(r) == '-' && r->at + 1 < r->n && r->s[r->at + 1] != ']';
        if (is_range) {
            r->at++;
            hi = class_atom(r, &single_hi);
            if (!single_hi) { /* "a-\d": Annex B reads three members */
                add_range(r, '-', '-');
                hi = lo;
            }
        }
        if (hi < lo) bad(r, SHOAL_EINVALID, "has a range whose end is before its begin");
        if (single) add_range(r, lo, hi);
    }
    if (!skip(r, "]")) bad(r, SHOAL_EINVALID, "has a \"[\" without its \"]\"");
    grammar_pattern_settle(r, first, negated);
    return add_node(r, (node){.kind = N_CLASS, .a = (int)first, .b = (int)n_ranges(r)});
}

static int one_code(regex *r, uint32_t cp)
{
    int first = (int)n_ranges(r);
    add_range(r, cp, cp);
    return add_node(r, (node){.kind = N_CLASS, .a = first, .b = first + 1});
}

/* ---- the tree --------------------------------------------------------------------------------- */

static int alternation(regex *r);

static int group(regex *r)
{
    bool ahead = looking_at(r, "?="), not_ahead = looking_at(r, "?!");
    if (looking_at(r, "?<=") || looking_at(r, "?<!"))
        return bad(r, SHOAL_EUNSUPPORTED, "has a lookbehind, which is not supported");
    if (skip(r, "?<")) {
        while (more(r) && grammar_pattern_peek(r) != '>') r->at++;
        skip(r, ">");
    } else if (ahead || not_ahead) {
        r->at += 2;
    } else if (!skip(r, "?:") && grammar_pattern_peek(r) == '?') {
        return bad(r, SHOAL_EUNSUPPORTED, "has a kind of group that is not supported");
    }
    if (++r->depth > GROUPS_MAX) return bad(r, SHOAL_ELIMIT, "has groups nested too deeply");
    int n = alternation(r);
    r->depth--;
    if (!skip(r, ")")) bad(r, SHOAL_EINVALID, "has a \"(\" without its \")\"");
    if (!ahead && !not_ahead) return n;
    r->asserts = true;
    return add_node(r, (node){.kind = ahead ? N_AHEAD : N_NOT_AHEAD, .a = n});
}

static int any_but_line_ends(regex *r)
{
    size_t first = n_ranges(r);
    add_range(r, '\n', '\n');
    add_range(r, '\r', '\r');
    add_range(r, 0x2028, 0x2029);
    grammar_pattern_settle(r, first, true);
    return add_node(r, (node){.kind = N_CLASS, .a = (int)first, .b = (int)n_ranges(r)});
}

static int atom(regex *r)
{
    size_t first = n_ranges(r);
    if (skip(r, "(")) return group(r);
    if (skip(r, "[")) return class_node(r);
    if (skip(r, ".")) return any_but_line_ends(r);
    if (skip(r, "^")) return add_node(r, (node){.kind = N_BEGIN});
    if (skip(r, "$")) return add_node(r, (node){.kind = N_END});
    char c = grammar_pattern_peek(r);
    if (c == '*' || c == '+' || c == '?')
        return bad(r, SHOAL_EINVALID, "has a quantifier with nothing before it");
    if (c == ']') return bad(r, SHOAL_EINVALID, "has a \"]\" without its \"[\": a character is written \\]");
    if (looking_at(r, "{,"))
        return bad(r, SHOAL_EINVALID,
                   "has a quantifier without its minimum: {0,n} is meant, or \\{ as a character");
    if (!skip(r, "\\")) return one_code(r, next_code(r));
    if (grammar_pattern_peek(r) == 'b' || grammar_pattern_peek(r) == 'B') {
        r->asserts = true;
        return add_node(r, (node){.kind = r->s[r->at++] == 'b' ? N_EDGE : N_NO_EDGE});
    }
    if (class_escape(r, grammar_pattern_peek(r))) {
        r->at++;
        return add_node(r, (node){.kind = N_CLASS, .a = (int)first, .b = (int)n_ranges(r)});
    }
    return one_code(r, char_escape(r));
}

static bool grammar_pattern_number(regex *r, int *ret)
{
    bool any = false;
    for (*ret = 0; grammar_pattern_peek(r) >= '0' && grammar_pattern_peek(r) <= '9'; r->at++, any = true)
        if (*ret <= COUNT_MAX) *ret = *ret * 10 + (grammar_pattern_peek(r) - '0');
    return any;
}

/* {n}, {n,}, {n,m}; false with nothing read when the brace is a plain character. */
static bool counts(regex *r, int *min, int *max)
{
    size_t start = r->at;
    bool ok = skip(r, "{") && grammar_pattern_number(r, min);
    *max = *min;
    if (ok && skip(r, ",") && !grammar_pattern_number(r, max)) *max = NO_MAX;
    if (ok && skip(r, "}")) return true;
    r->at = start;
    return false;
}

static int quantified(regex *r, int n)
{
    int min = 0, max = NO_MAX;
    if (skip(r, "+"))
        min = 1;
    else if (skip(r, "?"))
        max = 1;
    else if (!skip(r, "*") && !counts(r, &min, &max))
        return n;
    skip(r, "?"); /* a lazy one matches the same texts */
    if (min > COUNT_MAX || max > COUNT_MAX)
        return bad(r, SHOAL_ELIMIT, "repeats something more than 1000 times");
    if (max != NO_MAX && max < min)
        return bad(r, SHOAL_EINVALID, "has a quantifier whose maximum is below its minimum");
    return add_node(r, (node){.kind = N_REPEAT, .a = n, .min = min, .max = max});
}

static int sequence(regex *r)
{
    int all = add_node(r, (node){.kind = N_EMPTY});
    while (more(r) && grammar_pattern_peek(r) != '|' && grammar_pattern_peek(r) != ')') {
        int one = quantified(r, atom(r));
        all = add_node(r, (node){.kind = N_THEN, .a = all, .b = one});
    }
    return all;
}

static int alternation(regex *r)
{
    int all = sequence(r);
    while (skip(r, "|")) {
        int one = sequence(r);
        all = add_node(r, (node){.kind = N_OR, .a = all, .b = one});
    }
    return all;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static int write_repeat(const regex *r, fsm *f, node n, int from)
{
    for (int k = 0; k < n.min && fsm_n_states(f) < FSM_STATES_MAX; k++) from = pattern_write(r, f, n.a, from);
    int end = fsm_state(f);
    if (n.max == NO_MAX) {
        int loop = fsm_state(f); /* of its own: `from` may be entered by another loop */
        fsm_jump(f, from, FSM_ALWAYS, loop);
        fsm_jump(f, pattern_write(r, f, n.a, loop), FSM_ALWAYS, loop);
        from = loop;
    }
    for (int k = n.min; k < n.max && fsm_n_states(f) < FSM_STATES_MAX; k++) {
        fsm_jump(f, from, FSM_ALWAYS, end);
        from = pattern_write(r, f, n.a, from);
    }
    fsm_jump(f, from, FSM_ALWAYS, end);
    return end;
}

int pattern_write(const regex *r, fsm *f, int i, int from)
{
    node n = pattern_node(r, i);
    int to;
    uint64_t ranges = n.kind == N_CLASS ? (uint64_t)(n.b - n.a) : 0;
    if (fsm_n_states(f) >= FSM_STATES_MAX) return fsm_state(f);    /* one too many: the failure sticks in f */
    if (!dfa_spend(r->work, 1 + ranges * RANGE_WORK)) return from; /* and this one in *r->work */
    switch (n.kind) {
    case N_EMPTY: return from;
    case N_BEGIN:
    case N_END:
        to = fsm_state(f);
        fsm_jump(f, from, n.kind == N_BEGIN ? FSM_AT_BEGIN : FSM_AT_END, to);
        return to;
    case N_CLASS:
        to = fsm_state(f);
        for (int k = n.a; k < n.b; k++) {
            range g = ((const range *)(const void *)r->ranges.data)[k];
            fsm_range(f, from, g.lo, g.hi, to);
        }
        return to;
    case N_THEN: return pattern_write(r, f, n.b, pattern_write(r, f, n.a, from));
    case N_OR:
        to = fsm_state(f);
        for (int k = 0; k < 2; k++) {
            int start = fsm_state(f);
            fsm_jump(f, from, FSM_ALWAYS, start);
            fsm_jump(f, pattern_write(r, f, k ? n.b : n.a, start), FSM_ALWAYS, to);
        }
        return to;
    case N_REPEAT: return write_repeat(r, f, n, from);
    case N_AHEAD:
    case N_NOT_AHEAD:
    case N_EDGE:
    case N_NO_EDGE: break; /* grammar_ahead.c's */
    }
    return from;
}

static int write_search(dfa **ret, const regex *r, int root, uint64_t *work, shoal_err *err)
{
    fsm *f = fsm_new();
    if (!f) return err_nomem(err);
    int start = fsm_state(f);
    fsm_jump(f, 0, FSM_ALWAYS, start);
    fsm_range(f, 0, 0, CODE_MAX, 0);
    int end = fsm_state(f);
    fsm_jump(f, pattern_write(r, f, root, start), FSM_ALWAYS, end);
    fsm_range(f, end, 0, CODE_MAX, end);
    fsm_accept(f, end);
    int rc = fsm_determine(ret, f, work, err);
    fsm_free(f);
    return rc;
}

int pattern_compile(dfa **ret, const char *pattern, size_t n, uint64_t *work, shoal_err *err)
{
    size_t bad_at;
    if (!utf8_valid(pattern, n, &bad_at))
        return err_set(err, SHOAL_EINVALID, "is not UTF-8 at byte %zu", bad_at);
    if (n > PATTERN_MAX) return err_set(err, SHOAL_ELIMIT, "is longer than %d bytes", PATTERN_MAX);
    regex r = {.s = pattern, .n = n, .work = work, .err = err};
    int root = alternation(&r);
    if (r.rc == 0 && r.at < r.n) bad(&r, SHOAL_EINVALID, "has a \")\" without its \"(\"");
    if (r.rc == 0)
        r.rc = r.asserts ? ahead_compile(ret, &r, root, work, err) : write_search(ret, &r, root, work, err);
    buf_done(&r.nodes);
    buf_done(&r.ranges);
    return r.rc;
}

/* ---- formats ---------------------------------------------------------------------------------- */

/* RFC 3339 (dates in a proleptic Gregorian calendar, no leap seconds), RFC 5321 without quoted parts,
 * RFC 4122, RFC 2673, RFC 4291 without embedded IPv4, RFC 3986 without IPvFuture and with a host or a path.
 */
#define YEAR_DAY                                                                                 \
    "(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|" \
    "\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|" \
    "02-(?:0[1-9]|1\\d|2[0-8])))"
#define DAY_TIME                "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define LABEL_OF(most_less_two) "[A-Za-z0-9](?:[A-Za-z0-9-]{0," #most_less_two "}[A-Za-z0-9])?"
#define LABEL                   LABEL_OF(61)
/* At most 253 characters (RFC 1035 without the root's dot). An automaton that counts both
 * these and the 63 of a label needs about 28,000 states (estimate), so this one accepts some shapes only, each
 * short enough: any four labels (63 * 3 + 61 + 3 dots); a long one and nine of 20 (63 + 9 * 21); forty-two of 5. */
#define LABELS(first, more, n) LABEL_OF(first) "(?:\\." LABEL_OF(more) "){0," #n "}"
#define HOST                   "(?:" LABELS(61, 61, 2) "(?:\\." LABEL_OF(59) ")?|" LABELS(61, 18, 9) "|" LABELS(3, 3, 41) ")"
#define HEX4                   "[0-9A-Fa-f]{1,4}"
#define PERIOD                 "T(?:\\d{1,9}H(?:\\d{1,9}M(?:\\d{1,9}S)?)?|\\d{1,9}M(?:\\d{1,9}S)?|\\d{1,9}S)"
#define BYTE                   "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV6                                                                                                 \
    "(?:(?:" HEX4 ":){7}" HEX4 "|(?:" HEX4 ":){1,7}:|(?:" HEX4 ":){1,6}:" HEX4 "|(?:" HEX4                   \
    ":){1,5}(?::" HEX4 "){2}|(?:" HEX4 ":){1,4}(?::" HEX4 "){3}|(?:" HEX4 ":){1,3}(?::" HEX4 "){4}|(?:" HEX4 \
    ":){1,2}(?::" HEX4 "){5}|" HEX4 ":(?::" HEX4 "){6}|:(?:(?::" HEX4 "){1,7}|:))"
#define URI_OF(more) "(?:[A-Za-z0-9._~!$&'()*+,;=" more "-]|%[0-9A-Fa-f]{2})"
#define AUTHORITY    "(?:" URI_OF(":") "*@)?(?:\\[" IPV6 "\\]|" URI_OF("") "+)(?::\\d{0,5})?"
#define PATH         "(?:/" URI_OF(":@/") "*)"

#define LOCAL "[A-Za-z0-9_+'-]+(?:\\.[A-Za-z0-9_+'-]+)*"
#define TOP   "[A-Za-z]{2,24}"
/* At most 254 characters: 64 and @, then two labels of any length (128 + 24) or seven of 20 (147 + 24). */
#define EMAIL     "^(?=[^@]{1,64}@)" LOCAL "@(?:(?:" LABEL "\\.){1,2}|(?:" LABEL_OF(18) "\\.){1,7})" TOP "$"
#define ANY_EMAIL "^" LOCAL "@(?:" LABEL "\\.)+" TOP "$"
#define ANY_HOST  "^" LABEL "(?:\\." LABEL ")*$"
/* Labels that are not counted are none too long in a host of at most 63 characters. */
#define SHORT_HOST "(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\\.)+" TOP

const format_shape *pattern_shape(const char *format, size_t *n)
{
    static const format_shape SHAPES[] = {
        {"hostname", ANY_HOST, 253},
        {"email", EMAIL, 254},
        {"email", "^" LOCAL "@" SHORT_HOST "$", 65}, /* one character and @ in front of the host */
        {"email", ANY_EMAIL, 0},
        {"uri",
         "^[A-Za-z][A-Za-z0-9+.-]{0,19}://" URI_OF("") "+(?::\\d{0,5})?" PATH "?(?:\\?" URI_OF(
             ":@/?") "*)?(?:#" URI_OF(":@/?") "*)?$",
         255},
    };
    for (size_t skip = (*n)++, i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        if (strcmp(SHAPES[i].format, format) == 0 && skip-- == 0) return &SHAPES[i];
    return NULL;
}

const char *pattern_of_format(const char *format, bool all)
{
    static const struct {
        const char *format, *pattern;
    } table[] = {
        {"date", "^" YEAR_DAY "$"},
        {"time", "^" DAY_TIME "$"},
        {"date-time", "^" YEAR_DAY "T" DAY_TIME "$"},
        {"duration",
         "^P(?:\\d{1,9}W|(?:\\d{1,9}Y(?:\\d{1,9}M(?:\\d{1,9}D)?)?|\\d{1,9}M(?:\\d{1,9}D)?|\\d{1,9}D)"
         "(?:" PERIOD ")?|" PERIOD ")$"},
        {"email", ANY_EMAIL},
        {"hostname", ANY_HOST},
        {"uuid", "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"},
        {"ipv4", "^(?:" BYTE "\\.){3}" BYTE "$"},
        {"ipv6", "^" IPV6 "$"},
        {"uri", "^[A-Za-z][A-Za-z0-9+.-]*:(?://(?:" AUTHORITY PATH "?|" PATH ")|/?" URI_OF(":@")
                    URI_OF(":@/") "*)(?:\\?" URI_OF(":@/?") "*)?(?:#" URI_OF(":@/?") "*)?$"},
    };
    if (strcmp(format, "hostname") == 0 && !all) return "^" HOST "$";
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].format, format) == 0) return table[i].pattern;
    return NULL;
}
