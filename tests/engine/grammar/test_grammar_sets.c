/* Patterns and bounds as sets of texts: compared with pcre2 and with arithmetic, over all short texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "grammar/grammar_number.h"
#include "grammar/automaton/grammar_pattern.h"

static dfa *compile_pattern(const char *pattern)
{
    dfa *d = NULL;
    shoal_err err = {0};
    uint64_t work = 100u << 20;
    if (pattern_compile(&d, pattern, strlen(pattern), &work, &err)) fail_msg("%s: %s", pattern, err.message);
    return d;
}

static bool pcre_matches(pcre2_code *code, pcre2_match_data *data, const char *s, size_t n)
{
    return pcre2_match(code, (PCRE2_SPTR)s, n, 0, 0, data, NULL) >= 0;
}

/* All texts of up to five of these characters, one of which has two bytes. */
static void compare_with_pcre(const char *pattern)
{
    static const char *const letters[] = {"a", "b", "0", "-", "\n", "\xC3\xA9"};
    dfa *d = compile_pattern(pattern);
    int error;
    PCRE2_SIZE at;
    pcre2_code *code = pcre2_compile(
        (PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_ALT_BSUX, &error, &at, NULL);
    assert_non_null(code);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    for (int length = 0, count = 1; length <= 5; length++, count *= 6) {
        for (int i = 0; i < count; i++) {
            char text[16] = "";
            for (int k = 0, rest = i; k < length; k++, rest /= 6) strcat(text, letters[rest % 6]);
            bool want = pcre_matches(code, data, text, strlen(text));
            if (dfa_matches(d, text, strlen(text)) != want) fail_msg("%s: \"%s\" %d", pattern, text, want);
        }
    }
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    dfa_free(d);
}

static void patterns_match_what_pcre2_matches(void **state)
{
    static const char *const patterns[] = {
        "",
        "a",
        "^a",
        "a$",
        "^a$",
        "^$",
        "^",
        "$",
        "^^a$$",
        "a^b",
        "a$b",
        "(^a|b$)",
        "^a|b$",
        "(^|a)b",
        "b(a|$)",
        "^(ab|ba)*0?$",
        "^a*b+0?$",
        "^a{2}$",
        "^a{2,}$",
        "^a{1,3}b$",
        "^(a{0,2}b){2}$",
        "a{0}b",
        "^[ab]+$",
        "^[^ab]+$",
        "^[a-b0]$",
        "^[\\w-]+$",
        "^\\d\\D$",
        "^\\w\\W$",
        "^[^\\w]$",
        "^.$",
        "^..$",
        "^a.*b$",
        "^(?:a|b(?:0|-)){2}$",
        "^(?<x>a)b$",
        "^a+?b$",
        "^a??b$",
        "^(a*)*b$",
        "^(a|a)*$",
        "^(a*|b)+0$",
        "^()$",
        "^(|a)b$",
        "\\x61b",
        "\\u0061-",
        "^\\u00e9$",
        "^[\\u00e0-\\u00ff]a$",
        "^[^a]$",
        "^[^]$",
        "^[-a]$",
        "^[a\\-b]$",
        "^\\-$",
        "{",
        "^a{b$",
        "^(?!ab)[ab]{2,3}$",
        "^(?=.*0)(?=.*a).{2,4}$",
        "^(?!.*--)[a-]+$",
        "^(?!a$)a",
        "^(?=^ab$)",
        "^(?!)a",
        "((a|b)(a|b))*0",
        "^(a(b(0)?)?)?$",
        "^((ab?)*-)+$",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) compare_with_pcre(patterns[i]);
}

/* Lookaheads and word edges, at every place that they may have. */
static void assertions_match_what_pcre_matches(void **state)
{
    static const char *const patterns[] = {
        "^(?=.*0)(?!.*ab)[ab0]{2,4}$",
        "a(?=b)",
        "a(?!b)",
        "(?=a)",
        "(?!a)",
        "^(?!.*0)",
        "^a(?=b|0)(?!00)[b0]*$",
        "(?:a(?=0)|b(?!b))0?",
        "^(?:a|(?=[ab]{1,3}0*$)[ab]{0,3}0)$",
        "^-(?:(a+b)|(?!.*b)(?=0|a0)(0+a)?(0+0)?(a(?=0)(0+b)?)?)$",
        "(?=a(?=b(?!0)))a",
        "(?!(?!a))b",
        "^(?=(?:ab)*$)a",
        "(?:a(?=b)){0,2}b",
        "(?:0|a(?!a)){1,3}$",
        "\\ba\\b",
        "\\Ba",
        "a\\B-?",
        "\\b",
        "\\B",
        "^\\b",
        "\\b$",
        "^a\\b-\\Ba*",
        "(?:a|-)\\b(?:b|-)",
        "(?:\\b|a)0",
        "(?=\\b-)",
        "a(?=$)|^b",
        "(?:^|-)a(?:$|-)",
        "(?=^a)a|(?!^)b",
        "-*\\b(?:ab)?\\b-",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) compare_with_pcre(patterns[i]);
}

static void spaces_and_planes_are_as_in_ecma(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool want;
    } cases[] = {
        {"^\\s$", "\xC2\xA0", true},
        {"^\\s$", "\xEF\xBB\xBF", true},
        {"^\\s$", "\xE2\x80\x8B", false},
        {"^.$", "\xE2\x80\xA8", false},
        {"^.$", "\xF0\x9F\x98\x80", true},
        {"^\\u{1F600}$", "\xF0\x9F\x98\x80", true},
        {"^\\uD83D\\uDE00$", "\xF0\x9F\x98\x80", true},
        {"^[^a]$", "\xF0\x9F\x98\x80", true},
        {"^\\cA$", "\x01", false},
        {"^\\t\\n\\r\\f\\v$", "\t\n\r\f\v", true},
        {"^\\/\\.\\$$", "/.$", true},
        {"^[\\b]$", "\b", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dfa *d = NULL;
        shoal_err err = {0};
        uint64_t work = 1u << 20;
        int rc = pattern_compile(&d, cases[i].pattern, strlen(cases[i].pattern), &work, &err);
        bool got = rc == 0 && dfa_matches(d, cases[i].text, strlen(cases[i].text));
        if (got != cases[i].want) fail_msg("%s: %d %s", cases[i].pattern, got, err.message);
        dfa_free(d);
    }
}

static void formats_have_their_texts(void **state)
{
    static const struct {
        const char *format, *text;
        bool want;
    } cases[] = {
        {"date", "2024-02-29", true},
        {"date", "2023-02-29", false},
        {"date", "1900-02-29", false},
        {"date", "2000-02-29", true},
        {"date", "2024-04-31", false},
        {"time", "23:59:59Z", true},
        {"time", "24:00:00Z", false},
        {"time", "10:00:00.25+02:00", true},
        {"date-time", "2024-02-29T10:00:00Z", true},
        {"date-time", "2024-02-29 10:00:00Z", false},
        {"duration", "P1Y2M3DT4H5M6S", true},
        {"duration", "PT5M", true},
        {"duration", "PT1H2S", false},
        {"duration", "PT1H2M3S", true},
        {"duration", "P", false},
        {"duration", "P1W", true},
        {"duration", "PT", false},
        {"email", "a.b+c@x-y.example", true},
        {"email", "a..b@x.example", false},
        {"email", "a@x", false},
        {"email", "a@-x.example", false},
        {"hostname", "a-b.example", true},
        {"hostname", "a-.example", false},
        {"uuid", "123e4567-e89b-12d3-a456-426614174000", true},
        {"uuid", "123e4567-e89b-12d3-a456-42661417400", false},
        {"ipv4", "255.0.10.1", true},
        {"ipv4", "256.0.0.1", false},
        {"ipv4", "01.2.3.4", false},
        {"ipv6", "::1", true},
        {"ipv6", "::", true},
        {"ipv6", "1:2:3:4:5:6:7:8", true},
        {"ipv6", "1:2:3:4:5:6:7:8:9", false},
        {"ipv6", "fe80::1:2", true},
        {"ipv6", "1::2::3", false},
        {"uri", "https://example.org/a?b=c#d", true},
        {"uri", "http://x.example:8080", true},
        {"uri", "http://192.168.1.10/", true},
        {"uri", "http://[2001:db8::7]:80/", true},
        {"uri", "http://my-host:5050/", true},
        {"uri", "rtsp://user:pw%20@cam.local:554/live?x=/1#t", true},
        {"uri", "file:///etc/shoal.yaml", true},
        {"uri", "urn:isbn:0451450523", true},
        {"uri", "mailto:a@example.org", true},
        {"uri", "tel:+1-816-555-1212", true},
        {"uri", "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com", true},
        {"uri", "http://[::1", false},
        {"uri", "http://[12345::]", false},
        {"uri", "http://", false},
        {"uri", "http:", false},
        {"uri", "://a", false},
        {"uri", "//a.example/b", false},
        {"uri", "http://a/%2", false},
        {"uri", "1http://a", false},
        {"uri", "nowhere", false},
        {"uri", "http://a b", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dfa *d = compile_pattern(pattern_of_format(cases[i].format, false));
        bool got = dfa_matches(d, cases[i].text, strlen(cases[i].text));
        if (got != cases[i].want) fail_msg("%s: %s: %d", cases[i].format, cases[i].text, got);
        dfa_free(d);
    }
    assert_null(pattern_of_format("colour", false));
}

static bool is_host(bool bounded, const char *text)
{
    dfa *d = compile_pattern(pattern_of_format("hostname", bounded));
    bool yes = dfa_matches(d, text, strlen(text));
    dfa_free(d);
    return yes;
}

/* n labels of `len` letters, then one of `last`. */
static const char *host(buf *out, size_t n, size_t len, size_t last)
{
    buf_clear(out);
    for (size_t i = 0; i <= n; i++) {
        for (size_t k = 0; k < (i < n ? len : last); k++) buf_putc(out, 'a');
        if (i < n) buf_putc(out, '.');
    }
    buf_putc(out, '\0');
    return out->data;
}

/* No host has more than 253 characters, and the usual shapes are all there. */
static void hosts_have_253_characters_at_most(void **state)
{
    static const struct {
        size_t n, len, last;
        bool want;
    } cases[] = {{0, 0, 63, true},   {0, 0, 64, false}, {3, 63, 61, true}, {3, 63, 62, false},
                 {3, 62, 63, false}, {9, 20, 20, true}, {9, 21, 3, false}, {41, 5, 5, true},
                 {42, 5, 1, false},  {33, 1, 4, true},  {200, 1, 1, false}};
    buf text = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool got = is_host(false, host(&text, cases[i].n, cases[i].len, cases[i].last));
        if (got != cases[i].want) fail_msg("%s: %d", text.data, got);
        assert_true(!got || strlen(text.data) <= 253);
    }
    assert_true(
        is_host(false, "k8s-ingress-0123456789abcdef0123456789abcdef.elb.eu-central-1.amazonaws.com"));
    assert_true(is_host(false, "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"));
    assert_true(is_host(true, host(&text, 200, 1, 1))); /* the caller counts */
    buf_done(&text);
}

static decimal decimal_from(const char *text)
{
    json_t *v = NULL;
    decimal d;
    bool huge;
    assert_int_equal(json_parse(&v, text, strlen(text), "number", NULL), 0);
    assert_true(decimal_of(v, &d, &huge) && !huge);
    json_decref(v);
    return d;
}

static number_bounds bounds(bool integer, const char *min, const char *max, bool above, bool below)
{
    number_bounds b = {
        .integer = integer, .has_min = min, .has_max = max, .above_min = above, .below_max = below};
    if (min) b.min = decimal_from(min);
    if (max) b.max = decimal_from(max);
    return b;
}

static dfa *compile_bounds(const number_bounds *b)
{
    dfa *d = NULL;
    shoal_err err = {0};
    uint64_t work = 100u << 20;
    if (number_compile(&d, b, &work, &err)) fail_msg("%s", err.message);
    return d;
}

/* Every integer of -1200 .. 1200 against every pair of bounds. */
static void integers_are_within_their_bounds(void **state)
{
    static const int ends[] = {-1000, -999, -101, -100, -10, -9, -1, 0, 1, 5, 9, 10, 99, 100, 110, 999, 1000};
    const int n = sizeof ends / sizeof *ends;
    for (int i = 0; i < n * n * 4; i++) {
        int lo = ends[i / 4 % n], hi = ends[i / 4 / n];
        bool above = i & 1, below = i & 2;
        char min[16], max[16], text[16];
        snprintf(min, sizeof min, "%d", lo);
        snprintf(max, sizeof max, "%d", hi);
        number_bounds b = bounds(true, min, max, above, below);
        dfa *d = compile_bounds(&b);
        for (int v = -1200; v <= 1200; v++) {
            int len = snprintf(text, sizeof text, "%d", v);
            bool want = (above ? v > lo : v >= lo) && (below ? v < hi : v <= hi);
            if (dfa_matches(d, text, (size_t)len) != want) fail_msg("%d in %d..%d: %d", v, lo, hi, want);
        }
        assert_false(dfa_matches(d, "-0", 2));
        assert_false(dfa_matches(d, "00", 2));
        assert_false(dfa_matches(d, "1.0", 3));
        dfa_free(d);
    }
}

static void multiples_leave_no_remainder(void **state)
{
    for (int m = 1; m <= 60; m++) {
        char text[16];
        number_bounds b = bounds(true, "-700", "2000", false, false);
        b.multiple = m;
        dfa *d = compile_bounds(&b);
        for (int v = -1000; v <= 2100; v++) {
            int len = snprintf(text, sizeof text, "%d", v);
            if (dfa_matches(d, text, (size_t)len) != (v >= -700 && v <= 2000 && v % m == 0))
                fail_msg("%d, %d", v, m);
        }
        dfa_free(d);
    }
}

static void decimals_are_within_their_bounds(void **state)
{
    static const char *const ends[] = {"-12.5",   "-1", "-0.25", "0",  "0.001", "0.5",
                                       "0.50001", "1",  "9.99",  "10", "1e2"};
    const int n = sizeof ends / sizeof *ends;
    for (int i = 0; i < n * n * 4; i++) {
        const char *min = ends[i / 4 % n], *max = ends[i / 4 / n];
        double lo = strtod(min, NULL), hi = strtod(max, NULL);
        bool above = i & 1, below = i & 2;
        number_bounds b = bounds(false, min, max, above, below);
        dfa *d = compile_bounds(&b);
        for (int k = -14000; k <= 110000; k += k > 12000 ? 37 : 1) {
            char text[24];
            double v = k / 1000.0;
            int len = snprintf(text, sizeof text, "%.3f", v);
            bool want =
                (above ? v > lo : v >= lo) && (below ? v < hi : v <= hi) && strncmp(text, "-0.000", 6) != 0;
            if (dfa_matches(d, text, (size_t)len) != want) fail_msg("%s in %s..%s: %d", text, min, max, want);
        }
        dfa_free(d);
    }
}

static void one_bound_is_enough(void **state)
{
    number_bounds b = bounds(false, "0", NULL, true, false);
    dfa *d = compile_bounds(&b);
    static const char *const in[] = {"1", "0.5", "123456789", "0.000001", "1.25"}, *const out[] = {
                                                                                       "0",   "-1", "0.0",
                                                                                       "1e5", ".5", "1."};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (!dfa_matches(d, in[i], strlen(in[i]))) fail_msg("%s", in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (dfa_matches(d, out[i], strlen(out[i]))) fail_msg("%s", out[i]);
    dfa_free(d);
    static const char *const numbers[] = {"1764345600123456", "999999999999999999"};
    b = bounds(true, NULL, NULL, false, false);
    b.multiple = 2;
    b.multiple_frac = 0;
    d = compile_bounds(&b);
    assert_true(dfa_matches(d, numbers[0], strlen(numbers[0])));
    assert_false(dfa_matches(d, numbers[1], strlen(numbers[1])));
    dfa_free(d);
    b = bounds(true, "123456789012345678", NULL, false, false);
    d = compile_bounds(&b);
    assert_true(dfa_matches(d, "123456789012345678", 18));
    assert_true(dfa_matches(d, "999999999999999999", 18));
    assert_false(dfa_matches(d, "123456789012345677", 18));
    dfa_free(d);
}

static void expect_texts(const number_bounds *b, const char *const *in, const char *const *out)
{
    dfa *d = compile_bounds(b);
    for (; *in; in++)
        if (!dfa_matches(d, *in, strlen(*in))) fail_msg("%s cannot be written", *in);
    for (; *out; out++)
        if (dfa_matches(d, *out, strlen(*out))) fail_msg("%s can be written", *out);
    dfa_free(d);
}

static void large_bounds_leave_room_for_fractions(void **state)
{
    number_bounds b = bounds(false, NULL, "9007199254740991", false, false);
    expect_texts(
        &b,
        (const char *const[]){"2.5", "123456789.123456", "123456789012.125", "1764345600123.4",
                              "9007199254740991", "-0.000001", NULL},
        (const char *const[]){"9007199254740992", "1234567890123.12345", "9007199254740990.5", NULL});
    b = bounds(false, "0", "99999999999999.98", false, false);
    b.multiple = 1;
    b.multiple_frac = 2;
    expect_texts(&b, (const char *const[]){"19.99", "0.1", "99999999999999.9", "123456789012.34", NULL},
                 (const char *const[]){"0.001", "99999999999999.99", NULL});
    b = bounds(false, NULL, NULL, false, false);
    b.multiple = 1;
    expect_texts(&b, (const char *const[]){"1764345600", "-1764345600123", NULL},
                 (const char *const[]){"0.5", NULL});
}

static void too_much_is_refused(void **state)
{
    static const char *const patterns[] = {"(a|b)*a(a|b){30}",
                                           "((((a{1000}){1000}){1000}){1000})",
                                           "((((((){1000}){1000}){1000}){1000}){1000})",
                                           "(.*a){200}b(.*c){200}",
                                           "((a{64}){64}){64}",
                                           "((\\ba{64}){64}){64}",
                                           "((((((^){64}){64}){64}){64}){64}){64}(?=a)",
                                           "((((((\\b|){64}){64}){64}){64}){64}){64}"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        dfa *d = NULL;
        shoal_err err = {0};
        uint64_t work = 10u << 20;
        int rc = pattern_compile(&d, patterns[i], strlen(patterns[i]), &work, &err);
        if (rc != SHOAL_ELIMIT) fail_msg("%s: %d %s", patterns[i], rc, err.message);
    }
}

/* Errors of syntax with the "u" flag, that other kinds of expressions read as something else. */
static void other_kinds_of_expressions_are_refused(void **state)
{
    static const char *const patterns[] = {"^a{,3}$", "^[a-z&&[^b]]$", "^[]a]$", "{,2}", "a]"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        dfa *d = NULL;
        shoal_err err = {0};
        uint64_t work = 10u << 20;
        int rc = pattern_compile(&d, patterns[i], strlen(patterns[i]), &work, &err);
        dfa_free(d);
        if (rc != SHOAL_EINVALID) fail_msg("%s: %d %s", patterns[i], rc, err.message);
    }
}

/* What is looked at counts, though it makes no state and no set. */
static void copies_of_nothing_are_counted(void **state)
{
    static const char *const patterns[] = {"((^){64}){64}(?=a)", "(()()()()()()()()()()()()()()()()){1000}"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        dfa *d = NULL;
        shoal_err err = {0};
        uint64_t work = 20000;
        int rc = pattern_compile(&d, patterns[i], strlen(patterns[i]), &work, &err);
        dfa_free(d);
        if (rc != SHOAL_ELIMIT) fail_msg("%s: %d, %d left", patterns[i], rc, (int)work);
        assert_non_null(strstr(err.message, "too complex"));
    }
}

/* What finds no state any more is not left out: all is refused. */
static void the_last_state_is_the_end_of_none(void **state)
{
    int n_refused = 0, n_taken = 0;
    for (int k = 0; k <= 8; k++) {
        char pattern[100], text[12010];
        shoal_err err = {0};
        dfa *d = NULL;
        uint64_t work = 100u << 20;
        int n_text = 11995 + k;
        snprintf(pattern, sizeof pattern, "^(?:(?:a|a){1000}){11}(?:a|a){995}a{%d}bc$", k);
        memset(text, 'a', sizeof text);
        memcpy(text + n_text, "bc", 2);
        int rc = pattern_compile(&d, pattern, strlen(pattern), &work, &err);
        if (rc == 0) {
            if (dfa_matches(d, text, (size_t)n_text) || dfa_matches(d, text, (size_t)n_text + 1))
                fail_msg("%s: its end is missing", pattern);
            assert_true(dfa_matches(d, text, (size_t)n_text + 2));
            n_taken++;
        } else {
            assert_int_equal(rc, SHOAL_ELIMIT);
            n_refused++;
        }
        dfa_free(d);
    }
    assert_true(n_taken > 0 && n_refused > 0); /* the bound is among them */
}

static void a_refusal_can_be_read(void **state)
{
    static const char *const patterns[] = {"(\\ba)*", "(?:\\ba){65}"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        dfa *d = NULL;
        shoal_err err = {0};
        uint64_t work = 1u << 20;
        int rc = pattern_compile(&d, patterns[i], strlen(patterns[i]), &work, &err);
        assert_int_equal(rc, SHOAL_EUNSUPPORTED);
        assert_string_equal(
            err.message, "repeats a lookahead, ^, $, \\b or \\B more than 64 times, which is not supported");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_what_pcre2_matches),
        cmocka_unit_test(assertions_match_what_pcre_matches),
        cmocka_unit_test(spaces_and_planes_are_as_in_ecma),
        cmocka_unit_test(formats_have_their_texts),
        cmocka_unit_test(hosts_have_253_characters_at_most),
        cmocka_unit_test(integers_are_within_their_bounds),
        cmocka_unit_test(multiples_leave_no_remainder),
        cmocka_unit_test(decimals_are_within_their_bounds),
        cmocka_unit_test(one_bound_is_enough),
        cmocka_unit_test(large_bounds_leave_room_for_fractions),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(other_kinds_of_expressions_are_refused),
        cmocka_unit_test(copies_of_nothing_are_counted),
        cmocka_unit_test(the_last_state_is_the_end_of_none),
        cmocka_unit_test(a_refusal_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
