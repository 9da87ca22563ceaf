/* YAML as a tree: what is read, what is refused, and on which line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "yaml/yaml.h"

static yaml_doc *parse(const char *text)
{
    yaml_doc *d = NULL;
    shoal_err err = {0};
    if (yaml_parse(&d, text, strlen(text), "t.yaml", &err)) fail_msg("%s\n%s", text, err.message);
    return d;
}

static void nodes_know_their_place(void **state)
{
    yaml_doc *d = parse("# a comment\nlisten: here\nlist:\n  - one\n  - {two: 'zwei'}\nempty:\n");
    const yaml_node *root = yaml_root(d), *list = yaml_get(root, "list");
    assert_int_equal(root->kind, YAML_MAP);
    assert_int_equal(root->n, 3);
    assert_int_equal(root->line, 2);
    assert_string_equal(root->keys[1]->text, "list");
    assert_int_equal(root->keys[1]->line, 3);
    assert_int_equal(list->n, 2);
    assert_string_equal(list->items[0]->text, "one");
    assert_int_equal(list->items[0]->line, 4);
    assert_int_equal(list->items[0]->column, 5);
    const yaml_node *two = yaml_get(list->items[1], "two");
    assert_string_equal(two->text, "zwei");
    assert_false(two->plain);
    assert_true(yaml_get(root, "listen")->plain);
    assert_string_equal(yaml_get(root, "empty")->text, "");
    assert_int_equal(yaml_get(root, "empty")->len, 0);
    assert_null(yaml_get(root, "list[0]"));
    assert_null(yaml_get(list, "one"));
    yaml_doc_free(d);
}

static void quoted_blocks_and_byte_order_marks_are_read(void **state)
{
    yaml_doc *d =
        parse("\xEF\xBB\xBF---\ntext: |\n  a\n  b\nfolded: >-\n  a\n  b\nescaped: \"a\\n\\u00e9\"\n...\n");
    assert_string_equal(yaml_get(yaml_root(d), "text")->text, "a\nb\n");
    assert_false(yaml_get(yaml_root(d), "text")->plain);
    assert_string_equal(yaml_get(yaml_root(d), "folded")->text, "a b");
    assert_string_equal(yaml_get(yaml_root(d), "escaped")->text, "a\n\xC3\xA9");
    yaml_doc_free(d);
}

typedef struct refused {
    const char *text;
    int code;
    const char *says; /* the sentence begins so */
} refused;

static const refused refusals[] = {
    {"", SHOAL_EFORMAT, "t.yaml:1: the file is empty"},
    {"# nothing\n", SHOAL_EFORMAT, "t.yaml:1: the file is empty"},
    {"a: 1\n---\nb: 2\n", SHOAL_EFORMAT, "t.yaml:2: a second document"},
    {"a: 1\n...\nb: 2\n", SHOAL_EFORMAT, "t.yaml:"},
    {"a: &x 1\n", SHOAL_EFORMAT, "t.yaml:1: anchors"},
    {"a: 1\nb: *x\n", SHOAL_EFORMAT, "t.yaml:2: aliases"},
    {"a: !!int 1\n", SHOAL_EFORMAT, "t.yaml:1: tags"},
    {"a: !mine {b: 1}\n", SHOAL_EFORMAT, "t.yaml:1: tags"},
    {"%YAML 1.1\n---\na: 1\n", SHOAL_EFORMAT, "t.yaml:1: directives"},
    {"\xEF\xBB\xBF%TAG !x! y\n---\na: 1\n", SHOAL_EFORMAT, "t.yaml:1: directives"},
    {"\r%TAG !x! y\r---\ra: 1\r", SHOAL_EFORMAT, "t.yaml:1: directives"},
    {"\n%TAG !x! y\n---\na: 1\n", SHOAL_EFORMAT, "t.yaml:2: directives"},
    {"a: 1\nb: 2\na: 3\n", SHOAL_EFORMAT, "t.yaml:3: 'a' is given twice (first on line 1)"},
    {"a: {c: 1, b: 2, c: 3}\n", SHOAL_EFORMAT, "t.yaml:1: 'c' is given twice"},
    {"a: 1\n\"\\x61\": 2\n", SHOAL_EFORMAT, "t.yaml:2: 'a' is given twice"},
    {"? [a]\n: b\n", SHOAL_EFORMAT, "t.yaml:1: a key must be a text"},
    {"a: \"b\\0c\"\n", SHOAL_EFORMAT, "t.yaml:1: holds a NUL"},
    {"a: b\nc: \xC3\x28\n", SHOAL_EFORMAT, "t.yaml:2: is not valid UTF-8"},
    {"a: b\nc: \x01\n", SHOAL_EFORMAT, "t.yaml:2: control characters are not allowed"},
    {"a: [1\nb: 2\n", SHOAL_EFORMAT, "t.yaml:2: not YAML: "},
    {"a:\n\tb: 1\n", SHOAL_EFORMAT, "t.yaml:2: not YAML: "},
    {"a: 'b\n", SHOAL_EFORMAT, "t.yaml:2: not YAML: "},
    {"a: b: c\n", SHOAL_EFORMAT, "t.yaml:1: not YAML: "},
};

static void what_two_parsers_read_differently_is_refused(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refused *r = &refusals[i];
        yaml_doc *d = NULL;
        shoal_err err = {0};
        int rc = yaml_parse(&d, r->text, strlen(r->text), "t.yaml", &err);
        if (rc != r->code || d || strncmp(err.message, r->says, strlen(r->says)) != 0)
            fail_msg("case %zu\n%s\nrc %d, wanted %d and '%s', got: %s", i, r->text, rc, r->code, r->says,
                     err.message);
    }
    yaml_doc *d = NULL;
    shoal_err err = {0};
    assert_int_equal(yaml_parse(&d, "a: 1\n\0b", 7, "t.yaml", &err), SHOAL_EFORMAT);
    assert_string_equal(err.message, "t.yaml:2: holds a NUL byte");
}

static void depth_and_size_are_bounded(void **state)
{
    char deep[2 * YAML_DEPTH_MAX + 3];
    yaml_doc *d = NULL;
    for (size_t levels = YAML_DEPTH_MAX; levels <= YAML_DEPTH_MAX + 1; levels++) {
        memset(deep, '[', levels);
        memset(deep + levels, ']', levels);
        int rc = yaml_parse(&d, deep, 2 * levels, "t.yaml", NULL);
        assert_int_equal(rc, levels > YAML_DEPTH_MAX ? SHOAL_ELIMIT : 0);
        yaml_doc_free(d);
        d = NULL;
    }
    buf b = {0};
    for (size_t i = 0; i < YAML_NODES_MAX; i++) buf_puts(&b, "- a\n"); /* and the list itself: one too many */
    shoal_err err = {0};
    assert_int_equal(yaml_parse(&d, b.data, b.len, "t.yaml", &err), SHOAL_ELIMIT);
    assert_string_equal(err.message, "t.yaml:1048576: too many values in one file");
    buf_done(&b);
}

static const char *const bad_whole[] = {"60s",
                                        "1e3",
                                        "1.5",
                                        "1_000",
                                        "010",
                                        "0x10",
                                        "-5",
                                        "1 0",
                                        "4096k",
                                        "''",
                                        "'5'",
                                        "'0,9'",
                                        "",
                                        "[5]",
                                        "{}",
                                        "1001",
                                        "+5",
                                        "~",
                                        "true",
                                        "99999999999999999999999",
                                        "18446744073709551621",
                                        "0o7",
                                        ".5"};
static const char *const bad_number[] = {"1e3",  "0,9",  "'0.5'", ".5",  "5.",   "1.5.2", "nan",  ".nan",
                                         ".inf", "00.5", "--1",   "1 0", "0.5s", "",      "1001", "0x1p3"};
static const char *const bad_signed[] = {
    "-11", "1001", "+5", "-05", "1.0",  "-1e1", "0x1",  "'-5'",
    "--5", "-5s",  "-s", "",    "[-5]", "~",    "-0x1", "-99999999999999999999"};
static const char *const bad_truth[] = {"yes",    "on", "True", "TRUE",   "1",
                                        "'true'", "",   "off",  "[true]", "truee"};

/* Every text must be refused with line, field and the words in `must`, and leave the value alone. */
static void expect_refused(const char *text, int which, const char *must)
{
    buf yaml = {0};
    shoal_err err = {0};
    buf_printf(&yaml, "x: y\nfield: %s\n", text);
    yaml_doc *d = parse(yaml.data);
    const yaml_node *n = yaml_get(yaml_root(d), "field");
    uint64_t u = 77;
    double v = 77;
    bool t = true;
    int64_t s = 77;
    int rc = which == 0   ? yaml_u64(d, n, "a.field", 0, 1000, &u, &err)
             : which == 1 ? yaml_double(d, n, "a.field", -10, 1000, &v, &err)
             : which == 3 ? yaml_i64(d, n, "a.field", -10, 1000, &s, &err)
                          : yaml_bool(d, n, "a.field", &t, &err);
    const char *start = "t.yaml:2: a.field: must be ";
    if (rc != SHOAL_EINVALID || u != 77 || v != 77 || s != 77 || !t ||
        strncmp(err.message, start, strlen(start)) != 0 || !strstr(err.message, must))
        fail_msg("'%s': rc %d, %s", text, rc, err.message);
    yaml_doc_free(d);
    buf_done(&yaml);
}

static void numbers_and_truths_are_never_guessed(void **state)
{
    for (size_t i = 0; i < sizeof bad_whole / sizeof *bad_whole; i++)
        expect_refused(bad_whole[i], 0, "from 0 to 1000");
    for (size_t i = 0; i < sizeof bad_number / sizeof *bad_number; i++)
        expect_refused(bad_number[i], 1, "from -10 to 1000");
    for (size_t i = 0; i < sizeof bad_signed / sizeof *bad_signed; i++)
        expect_refused(bad_signed[i], 3, "must be a whole number from -10 to 1000");
    for (size_t i = 0; i < sizeof bad_truth / sizeof *bad_truth; i++)
        expect_refused(bad_truth[i], 2, "true or false");
    expect_refused("60s", 0, "not '60s'");
    expect_refused("'5'", 0, "not the quoted '5'");
    expect_refused("[5]", 0, "not a list");
    expect_refused("", 0, "not an empty value");
}

static void strict_scalars_are_read(void **state)
{
    yaml_doc *d = parse("[18446744073709551615, 0, 0.25, -3, 7.50, true, false]\n");
    const yaml_node *const *at = yaml_root(d)->items;
    uint64_t u;
    int64_t s;
    double v;
    bool t;
    assert_int_equal(yaml_u64(d, at[0], "f", 0, UINT64_MAX, &u, NULL), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(yaml_u64(d, at[1], "f", 0, 5, &u, NULL), 0);
    assert_true(u == 0);
    assert_int_equal(yaml_i64(d, at[3], "f", -3, 0, &s, NULL), 0);
    assert_true(s == -3);
    assert_int_equal(yaml_double(d, at[2], "f", 0, 1, &v, NULL), 0);
    assert_true(v == 0.25);
    assert_int_equal(yaml_double(d, at[3], "f", -3, 1, &v, NULL), 0);
    assert_true(v == -3);
    assert_int_equal(yaml_double(d, at[4], "f", 0, 10, &v, NULL), 0);
    assert_true(v == 7.5);
    assert_int_equal(yaml_bool(d, at[5], "f", &t, NULL), 0);
    assert_true(t);
    assert_int_equal(yaml_bool(d, at[6], "f", &t, NULL), 0);
    assert_false(t);
    yaml_doc_free(d);
}

static void a_part_becomes_json(void **state)
{
    static const char TEXT[] =
        "{a: [1, -2.5e3, 007, .5, 0x10, 1_0, '2', true, 'true', null, ~, on], \"b\\n\": {c: \"\", d: }}";
    static const char JSON[] =
        "{\"a\":[1,-2.5e3,\"007\",\".5\",\"0x10\",\"1_0\",\"2\",true,\"true\",null,\"~\",\"on\"],"
        "\"b\\n\":{\"c\":\"\",\"d\":null}}";
    yaml_doc *d = NULL;
    shoal_err err;
    buf out = {0};
    if (yaml_parse(&d, TEXT, strlen(TEXT), "t", &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(yaml_put_json(&out, yaml_root(d)), 0);
    assert_string_equal(out.data, JSON);
    buf_done(&out);
    yaml_doc_free(d);
}

/* Whatever a text holds, it is read as it was written, in a flow mapping, too. */
static void texts_are_read_as_they_were_put(void **state)
{
    static const char *const texts[] = {"",
                                        "a: b",
                                        "q\"u'o",
                                        "#x",
                                        "- y",
                                        "{input}, [x]",
                                        "%TAG",
                                        "!t &a *a",
                                        "tail ",
                                        " lead",
                                        "back\\slash",
                                        "l\n\r\tx",
                                        "nel\xC2\x85\xC2\x85nel",
                                        "c1\xC2\x80x",
                                        "a \xE2\x80\xA8 b\xE2\x80\xA9---\xE2\x80\xA9z",
                                        "\xEF\xBB\xBF"
                                        "bom",
                                        "\xE2\x80\xAE"
                                        "bidi\xE2\x81\xA6",
                                        "\xEF\xBF\xBE\xEF\xBF\xBF",
                                        "\xF0\x9F\x98\x80",
                                        "\x7F\x1B[2J"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf out = {0};
        yaml_doc *d = NULL;
        shoal_err err;
        buf_puts(&out, "- {a: ");
        assert_int_equal(yaml_put_text(&out, texts[i], strlen(texts[i])), 0);
        buf_puts(&out, ", b: c}\n");
        if (yaml_parse(&d, out.data, out.len, "t", &err) != 0) fail_msg("text %zu: %s", i, err.message);
        assert_string_equal(yaml_get(yaml_root(d)->items[0], "a")->text, texts[i]);
        assert_string_equal(yaml_get(yaml_root(d)->items[0], "b")->text, "c");
        assert_null(strstr(out.data, "\xE2\x80\xAE")); /* a reader sees it */
        buf_done(&out);
        yaml_doc_free(d);
    }
}

static void excerpts_fit_a_sentence(void **state)
{
    assert_string_equal(yaml_excerpt_of("short").text, "short");
    assert_string_equal(yaml_excerpt_of("two\nlines").text, "two...");
    char euros[301] = "";
    for (int i = 0; i < 100; i++) strcat(euros, "\xE2\x82\xAC");
    const yaml_excerpt x = yaml_excerpt_of(euros);
    assert_int_equal(strlen(x.text), 20 * 3 + 3);
    assert_string_equal(x.text + 60, "...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_know_their_place),
        cmocka_unit_test(quoted_blocks_and_byte_order_marks_are_read),
        cmocka_unit_test(what_two_parsers_read_differently_is_refused),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(numbers_and_truths_are_never_guessed),
        cmocka_unit_test(strict_scalars_are_read),
        cmocka_unit_test(a_part_becomes_json),
        cmocka_unit_test(texts_are_read_as_they_were_put),
        cmocka_unit_test(excerpts_fit_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
