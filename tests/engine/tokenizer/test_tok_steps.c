/* Every step that a tokenizer.json may name, against what the reference library (tokenizers 0.21) gave:
 * tests/data/tokenizers/steps.json holds small tokenizers, most of them another one's with some sections
 * replaced, and their ids, offsets and decodings. Maps of characters are in test_tok_folder.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/json.h"
#include "tokenizer/tok_regex.h"
#include "tokenizer/tokenizer.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/tokenizers/"

static json_t *read_json(const char *path)
{
    json_t *o = NULL;
    shoal_err err = {0};
    if (json_parse_file(&o, path, 16 << 20, &err)) fail_msg("%s", err.message);
    return o;
}

/* The tokenizer.json of an entry: its own, or another's with some sections replaced. */
static json_t *whole(const json_t *entry)
{
    char path[512];
    const char *base = json_string_value(json_object_get(entry, "base"));
    if (!base) return json_incref(json_object_get(entry, "full"));
    snprintf(path, sizeof path, DATA "%s/tokenizer.json", base);
    json_t *o = read_json(path);
    json_object_update(o, json_object_get(entry, "patch"));
    return o;
}

static tokenizer *load(const char *name, const json_t *o)
{
    tokenizer *t = NULL;
    shoal_err err = {0};
    char *text = json_dumps(o, JSON_COMPACT);
    assert_non_null(text);
    if (tokenizer_from_json(&t, text, strlen(text), NULL, 0, name, &err)) fail_msg("%s", err.message);
    free(text);
    return t;
}

static int check_case(const tokenizer *t, const char *name, const json_t *c)
{
    const json_t *text = json_object_get(c, "text"), *ids = json_object_get(c, "ids"),
                 *spans = json_object_get(c, "offsets"), *decoded = json_object_get(c, "decoded");
    encoding e = {0};
    buf out = {0};
    shoal_err err = {0};
    if (tokenizer_encode(t, json_string_value(text), json_string_length(text), NULL, 0,
                         TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0, &e, &err))
        fail_msg("%s: %s", name, err.message);
    const char *bad = e.n == json_array_size(ids) ? NULL : "number of tokens";
    for (size_t i = 0; !bad && i < e.n; i++) {
        const json_t *s = json_array_get(spans, i);
        if (json_integer_value(json_array_get(ids, i)) != e.ids[i]) bad = "an id";
        if (json_integer_value(json_array_get(s, 0)) != e.spans[i].cp_begin ||
            json_integer_value(json_array_get(s, 1)) != e.spans[i].cp_end)
            bad = "a span";
    }
    assert_int_equal(tokenizer_decode(t, e.ids, e.n, false, &out), 0);
    if (!bad && (out.len != json_string_length(decoded) ||
                 (out.len && memcmp(out.data, json_string_value(decoded), out.len))))
        bad = "the decoding";
    if (bad) fprintf(stderr, "%s: %s of \"%s\" differs\n", name, bad, json_string_value(text));
    encoding_done(&e);
    buf_done(&out);
    return bad != NULL;
}

static void every_step_agrees_with_the_reference(void **state)
{
    json_t *all = read_json(DATA "steps.json"), *entry, *c;
    size_t i, k, bad = 0;
    json_array_foreach(all, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_t *o = whole(entry);
        tokenizer *t = load(name, o);
        json_array_foreach(json_object_get(entry, "single"), k, c) bad += (size_t)check_case(t, name, c);
        tokenizer_free(t);
        json_decref(o);
    }
    assert_true(i > 60);
    json_decref(all);
    assert_int_equal(bad, 0);
}

/* ---- merges ---- */

#define MERGES(m)                                                                                   \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"a b\":3,\" \":4,\"a \":5}," \
    "\"merges\":" m "}}"

static int load_merges(tokenizer **ret, const char *json, shoal_err *err)
{
    return tokenizer_from_json(ret, json, strlen(json), NULL, 0, "t", err);
}

/* Both forms of a pair, the second of which can hold spaces, and files that mix them. */
static void merges_are_texts_or_pairs(void **state)
{
    static const struct {
        const char *json, *text;
        int32_t first;
    } good[] = {{MERGES("[\"a b\"]"), "ab", 2},
                {MERGES("[[\"a\",\"b\"]]"), "ab", 2},
                {MERGES("[\"a b\",[\"a\",\" \"]]"), "ab", 2},
                {MERGES("[[\"a\",\" \"],[\"a \",\"b\"]]"), "a b", 3},
                {MERGES("[]"), "ab", 0}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tokenizer *t = NULL;
        encoding e = {0};
        shoal_err err = {0};
        if (load_merges(&t, good[i].json, &err)) fail_msg("%s: %s", good[i].json, err.message);
        assert_int_equal(tokenizer_encode(t, good[i].text, strlen(good[i].text), NULL, 0, 0, 0, &e, &err), 0);
        assert_int_equal(e.ids[0], good[i].first);
        encoding_done(&e);
        tokenizer_free(t);
    }
}

static void other_merges_are_refused(void **state)
{
    static const struct {
        const char *json, *says;
    } bad[] = {{MERGES("{\"a b\":0}"), "model.merges: an array of pairs is expected"},
               {MERGES("null"), "model.merges: an array of pairs is expected"},
               {MERGES("[\"ab\"]"), "model.merges[0]: a pair of pieces is expected, \"left right\" or"},
               {MERGES("[\"a b\",\"a b b\"]"), "model.merges[1]: a pair of pieces"},
               {MERGES("[[\"a\"]]"), "model.merges[0]: a pair of pieces"},
               {MERGES("[[\"a\",\"b\",\"ab\"]]"), "model.merges[0]: a pair of pieces"},
               {MERGES("[[\"a\",1]]"), "model.merges[0]: a pair of pieces"},
               {MERGES("[{\"left\":\"a\",\"right\":\"b\"}]"), "model.merges[0]: a pair of pieces"},
               {MERGES("[7]"), "model.merges[0]: a pair of pieces"},
               {MERGES("[\"b a\"]"), "model.merges[0]: a piece is not in the vocabulary"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tokenizer *t = NULL;
        shoal_err err = {0};
        assert_int_equal(load_merges(&t, bad[i].json, &err), SHOAL_EFORMAT);
        if (!strstr(err.message, bad[i].says)) fail_msg("%s: %s", bad[i].json, err.message);
    }
}

/* ---- regular expressions ---- */

static void check_match(const char *pattern, const char *text, int begin, int end)
{
    tok_regex *re = NULL;
    tok_match m = {0};
    shoal_err err = {0};
    size_t b = 0, e = 0;
    if (tok_regex_compile(&re, pattern, strlen(pattern), "t", &err)) fail_msg("%s", err.message);
    int rc = tok_regex_find(re, &m, text, strlen(text), 0, &b, &e, &err);
    assert_int_equal(rc, begin >= 0);
    if (rc && ((int)b != begin || (int)e != end)) fail_msg("%s finds %zu..%zu in %s", pattern, b, e, text);
    tok_regex_free(re);
    tok_match_done(&m);
}

static void expressions_mean_what_their_author_meant(void **state)
{
    check_match("\\w+", " e\xCC\x81_1 ", 1, 6); /* a mark is of a word */
    check_match("[^\\w]+", "e\xCC\x81!", 3, 4);
    check_match("\\h+", "xyz0aFg", 3, 6);            /* hexadecimal digits */
    check_match("\\s", "\xE1\xA0\x8E", -1, -1);      /* U+180E is no white space */
    check_match("\\p{Han}", "\xE3\x80\x81", -1, -1); /* used with Han, but Common */
    check_match("[\\p{L}&&[^\\p{Han}]]+",
                "\xE6\x97\xA5"
                "ab\xE6\x97\xA5",
                3, 5);
    check_match("[\\]a-c]+", "x]b", 1, 3);
    check_match("[^]]+", "]ab]", 1, 3);
    check_match("[[:alpha:]]+", "1ab2", 1, 3);
}

static void sets_that_pcre_would_misread_are_refused(void **state)
{
    static const char *const patterns[] = {"[a[bc]]", "[a&&b]", "[\\p{L}&&\\p{Lu}]", "[a&&[^b]c]", "[a"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        tok_regex *re = NULL;
        shoal_err err = {0};
        assert_int_equal(tok_regex_compile(&re, patterns[i], strlen(patterns[i]), "t", &err),
                         SHOAL_EUNSUPPORTED);
        assert_null(re);
        assert_non_null(strstr(err.message, "t: regular expression, at byte"));
    }
}

static void decoders_in_an_order_that_cannot_stream_are_refused(void **state)
{
    static const char *const decoders[] = {
        "{\"type\":\"WordPiece\",\"prefix\":\"##\"},{\"type\":\"ByteFallback\"}",
        "{\"type\":\"Fuse\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"b\"}",
        "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":0,\"stop\":1}",
        "{\"type\":\"Other\"}"};
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        char json[400];
        tokenizer *t = NULL;
        shoal_err err = {0};
        snprintf(json, sizeof json,
                 "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"},"
                 "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[%s]}}",
                 decoders[i]);
        assert_int_equal(tokenizer_from_json(&t, json, strlen(json), NULL, 0, "t", &err), SHOAL_EUNSUPPORTED);
        assert_non_null(strstr(err.message, "t: decoder.decoders["));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_agrees_with_the_reference),
        cmocka_unit_test(merges_are_texts_or_pairs),
        cmocka_unit_test(other_merges_are_refused),
        cmocka_unit_test(expressions_mean_what_their_author_meant),
        cmocka_unit_test(sets_that_pcre_would_misread_are_refused),
        cmocka_unit_test(decoders_in_an_order_that_cannot_stream_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
