/* Templates: fields, paths into JSON, functions and what is wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "pipeline/pipeline_function.h"
#include "pipeline/pipeline_template.h"

/* The third stage is under test; the first has tagged, the second answered with JSON. */
static config_stage stages[3] = {
    {.name = "slots", .kind = &STAGE_KINDS[STAGE_TAG], .model = "m"},
    {.name = "facts", .kind = &STAGE_KINDS[STAGE_GENERATE], .model = "m"},
    {.name = "r", .kind = &STAGE_KINDS[STAGE_GENERATE], .model = "m"},
};

static config_pipeline pipeline_with(const char *prompt)
{
    stages[2].prompt = prompt;
    return (config_pipeline){.name = "p", .stages = stages, .n_stages = 3};
}

static json_t *parsed(const char *json)
{
    json_t *v = NULL;
    assert_int_equal(json_parse(&v, json, strlen(json), "test", NULL), 0);
    return v;
}

/* `want` NULL: the template is refused. */
static void expect(const char *input, const char *prompt, const char *want)
{
    config_pipeline p = pipeline_with(prompt);
    shoal_err err = {0};
    json_t *spans =
        parsed("[{\"label\":\"place\",\"text\":\"kitchen\"},{\"label\":\"what\",\"text\":\"{lamp}\"},"
               "{\"label\":\"place\",\"text\":\"hall\"}]");
    json_t *facts_json =
        parsed("{\"a\":{\"b\":[1,2.5,{\"c\":\"x y\"}],\"none\":null,\"yes\":true},\"t\":\"\"}");
    stage_fact f[3] = {{.state = STAGE_DONE, .label = "", .text = "", .value = spans},
                       {.state = STAGE_DONE, .label = "", .text = "said", .value = facts_json},
                       {.label = "", .text = ""}};
    pipeline_facts facts = {.input = input, .context = "", .stages = f};
    buf out = {0};
    assert_int_equal(pipeline_check(&p, "", &err), want ? 0 : SHOAL_EINVALID);
    if (want && (pipeline_expand(&p, prompt, &facts, &out) || strcmp(out.data ? out.data : "", want) != 0))
        fail_msg("'%s' of '%s' became '%s', not '%s'", prompt, input, out.data ? out.data : "", want);
    buf_done(&out);
    json_decref(spans);
    json_decref(facts_json);
}

static void functions_change_a_text(void **state)
{
    expect("  a\t b \n", "[{input | trim}]", "[a\t b]");
    expect("Ärger IM Öl", "{input|lower}", "ärger im öl");
    expect("ärger straße", "{input | upper}", "ÄRGER STRAẞE");
    expect("it's éve 2nd-hand", "{input | title}", "It's Éve 2nd-Hand");
    expect("  élan vital", "{input | sentence}", "  Élan vital");
    expect(" a\n\n b\t\tc ", "{input | one_line}", "a b c");
    expect("äöüß", "{input | first:3}|{input | last:2}", "äöü|üß");
    expect("ab", "{input | first:9}{input | last:9}", "abab");
    expect("one two  three", "{input | words:2}.", "one two.");
    expect("a\nb\r\nc\n", "{input | line:2}{input | line:-1}{input | line:9}{input | line:-9}", "bc");
    expect("a\nb\nc", "{input | lines:2}", "a\nb");
    expect(" \n", "{input | default:'it\\'s } none'}", "it's } none");
    expect("x", "{input | default:\"none\"}", "x");
    expect("a.b.c", "{input | replace:'.':', '}", "a, b, c");
    expect("aaa", "{input | replace:'aa':'b'}", "ba");
    expect("k=v=w", "{input | before:'='} {input | after:'='} [{input | after:'?'}] {input | before:'?'}",
           "k v=w [] k=v=w");
    expect("a \"b\"\n", "{input | json}", "\"a \\\"b\\\"\\n\"");
    expect("a/b c&ä", "{input | percent}", "a%2Fb%20c%26%C3%A4");
    expect("  Hello World ", "{ input | trim | lower | first:5 | upper }", "HELLO");
    expect("a\\nb", "{input | replace:'\\\\n':'\\n'}", "a\nb");
    expect("{input}", "{input | upper}", "{INPUT}");
    expect("a|b", "{input | replace:'|':'}'}{{", "a}b{");
}

static void json_is_reached_by_paths(void **state)
{
    expect("", "{json.facts.a.b.0}{json.facts.a.b.1}", "12.5");
    expect("", "{json.facts.a.b.2}", "{\"c\":\"x y\"}");
    expect("", "{json.facts.a.b.2.c}", "x y");
    expect("", "{json.facts.a.b.2.c | json}", "\"x y\"");
    expect("", "[{json.facts.a.none}{json.facts.a.b.3}{json.facts.zz.b}{json.facts.t.x}{json.facts.a.b.x}]",
           "[]");
    expect("", "{json.facts.a.yes} {json.facts.t | default:'empty'}", "true empty");
    expect("", "{spans.slots}", "place: kitchen\nwhat: {lamp}\nplace: hall");
    expect("", "{spans.slots.place}; {spans.slots.place | line:2}{spans.slots.time}", "kitchen\nhall; hall");
    expect("", "{json.slots.1.text}", "{lamp}");
}

static void what_is_wrong_is_refused(void **state)
{
    static const char *const wrong[] = {
        "{input | shout}",
        "{input | first}",
        "{input | first:0}",
        "{input | first:-1}",
        "{input | first:1x}",
        "{input | first:99999999}",
        "{input | line:0}",
        "{input | default:x}",
        "{input | default}",
        "{input | default:'x}",
        "{input | replace:'a'}",
        "{input | replace:'':'b'}",
        "{input | trim:1}",
        "{input |}",
        "{input | trim lower}",
        "{input.x}",
        "{json}",
        "{json.}",
        "{json.nobody}",
        "{json.facts.}",
        "{spans.facts}",
        "{text.facts.x}",
        "{input | trim || lower}",
        "{ input }",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) expect("", wrong[i], NULL);
}

static void errors_say_what_there_is(void **state)
{
    shoal_err err = {0};
    config_pipeline p = pipeline_with("{input | shout}");
    assert_int_equal(pipeline_check(&p, "pipelines[0].", &err), SHOAL_EINVALID);
    assert_string_equal(
        err.message,
        "pipelines[0].stages[2].prompt: there is no function 'shout'; there are trim, lower, upper, "
        "title, sentence, one_line, first, last, words, lines, line, default, before, after, "
        "replace, json, percent");
    p = pipeline_with("{input | first}");
    assert_int_equal(pipeline_check(&p, "", &err), SHOAL_EINVALID);
    assert_string_equal(err.message,
                        "stages[2].prompt: 'first' takes a number of 1 to 1000000 behind a colon (first:3)");
}

/* Each function multiplies what it gets; all of them together stay within the bound. */
static void no_chain_fills_the_memory(void **state)
{
    buf text = {0};
    pipeline_function f;
    shoal_err err;
    const char *chain =
        "| replace:'a':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'";
    buf_puts(&text, "aé");
    for (int i = 0; i < 9; i++) {
        const char *at = chain;
        assert_int_equal(pipeline_function_next(&at, chain + strlen(chain), &f, &err), 1);
        pipeline_function_apply(&f, &text);
        assert_true(!text.failed && text.len <= PIPELINE_FILLED_MAX_BYTES);
    }
    assert_int_equal(text.len, PIPELINE_FILLED_MAX_BYTES);
    buf_done(&text);
}

/* Random bytes through random chains: nothing is lost that cannot be, and all stays text where it was text.
 */
static void functions_keep_text_well_formed(void **state)
{
    static const char *const chains[] = {
        "| first:7",         "| last:5",          "| title",      "| sentence | upper",
        "| words:2 | lower", "| line:1",          "| line:-2",    "| lines:2",
        "| one_line",        "| replace:'a':'é'", "| before:'ö'", "| after:'a'",
        "| percent",         "| json | first:3",  "| trim",       "| default:'ü'"};
    static const char *const letters[] = {"a",    "B", "é", "ö", "ß", " ", "\n",
                                          "\r\n", "{", "}", "😀", "'", "0"};
    for (unsigned seed = 1; seed <= 4000; seed++) {
        unsigned draw = seed * 2654435761u;
        buf text = {0};
        for (int i = 0; i < (int)(seed % 24); i++) {
            draw = draw * 1664525u + 1013904223u;
            buf_puts(&text, letters[(draw >> 16) % (sizeof letters / sizeof *letters)]);
        }
        const char *chain = chains[seed % (sizeof chains / sizeof *chains)], *at = chain;
        pipeline_function f;
        while (pipeline_function_next(&at, chain + strlen(chain), &f, NULL) > 0)
            pipeline_function_apply(&f, &text);
        if (!utf8_valid(text.data ? text.data : "", text.len, NULL))
            fail_msg("seed %u: %s broke a text", seed, chain);
        buf_done(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_change_a_text),   cmocka_unit_test(json_is_reached_by_paths),
        cmocka_unit_test(what_is_wrong_is_refused),  cmocka_unit_test(errors_say_what_there_is),
        cmocka_unit_test(no_chain_fills_the_memory), cmocka_unit_test(functions_keep_text_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
