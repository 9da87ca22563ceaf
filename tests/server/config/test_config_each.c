/* Stages that go through lists: what of their configuration is refused, with which line, and what is taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "config/config.h"

/* Line 5 is the first stage, line 6 the one under test. */
#define PIPE                                                              \
    "models: [{name: m}]\npipelines:\n  - name: p\n    stages:\n"         \
    "      - {name: a, kind: classify, model: m, foreach: {of: input}}\n" \
    "      - {name: b, model: m, "

static const struct {
    const char *stage, *says;
} bad[] = {
    {"kind: tag, foreach: {of: z}}", "foreach.of: 'z' is none of input, context, devices, text.STAGE"},
    {"kind: tag, foreach: {of: b}}", "foreach.of: 'b' is no stage declared before 'b'"},
    {"kind: tag, foreach: {of: json.a.}}", "foreach.of: 'json.a.' is none of"},
    {"kind: tag, foreach: {of: text.a}}", "'a' is a classify stage"},
    {"kind: tag, foreach: {of: 'input | lower'}}", "is none of"},
    {"kind: tag, foreach: {by: lines}}", "'of' is required: the list that is gone through"},
    {"kind: tag, foreach: input}", "foreach: must be a map"},
    {"kind: tag, foreach: {of: input, by: words}}", "foreach.by: 'words' is none of list, lines, paragraphs"},
    {"kind: tag, foreach: {of: devices, by: lines}}", "foreach.by: devices are a list already"},
    {"kind: tag, foreach: {of: input, as: input}}", "foreach.as: {input} means something else in templates"},
    {"kind: tag, foreach: {of: input, as: number}}", "foreach.as: {number} means something else"},
    {"kind: tag, foreach: {of: input, as: 'a b'}}", "foreach.as: 'a b' may hold letters"},
    {"kind: tag, foreach: {of: input, parallel: 33}}", "from 1 to 32"},
    {"kind: tag, foreach: {of: input, max: 0}}", "from 1 to 1024"},
    {"kind: tag, foreach: {of: input, most: 100, overlap: 50}}", "overlap: must be under half of 'most'"},
    {"kind: tag, foreach: {of: input, foreach: {of: input}}}", "there is no key 'foreach' here"},
    {"kind: generate, foreach: {of: input}, reduce: {of: a}}", "a stage has 'foreach' or 'reduce'"},
    {"kind: tag, reduce: {of: a}}", "reduce: a tag stage cannot go through a list"},
    {"kind: vad, foreach: {of: input}}", "foreach: a vad stage cannot go through a list"},
    {"kind: score, foreach: {of: input}}", "foreach: a score stage cannot go through a list"},
    {"kind: tag, when: [{stage: a, label: [x]}]}", "'a' goes through a list, so it has no one label"},
    {"kind: tag, input: '{label.a}'}", "'a' goes through a list"},
    {"kind: tag, input: '{item}'}", "'{item}' is none of {input}"},
    {"kind: tag, input: '{number}'}", "'{number}' is none of"},
    {"kind: tag, input: '{item}', foreach: {of: a, as: it}}", "{json.STAGE.PATH}, {it}, {number} (write"},
    {"kind: generate, schema: '{'}", "stages[1].schema: "},
    {"kind: generate, schema: '[1]'}", "schema: must be a JSON object"},
    {"kind: tag, schema: '{}'}", "schema: only a generate stage has it"},
};

static void what_cannot_be_gone_through_is_refused(void **state)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char yaml[1024];
        gateway_config *c = NULL;
        shoal_err err = {0};
        snprintf(yaml, sizeof yaml, "%s%s\n", PIPE, bad[i].stage);
        if (config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", &err) != SHOAL_EINVALID)
            fail_msg("taken: %s", bad[i].stage);
        if (strncmp(err.message, "t.yaml:6: pipelines[0].stages[1]", 32) != 0 ||
            !strstr(err.message, bad[i].says))
            fail_msg("%s: %s", bad[i].stage, err.message);
    }
}

static void what_is_left_out_is_usual(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    const char *yaml = PIPE "kind: generate, reduce: {of: a}}\n";
    if (config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", &err)) fail_msg("%s", err.message);
    const config_stage *s = c->pipelines[0].stages;
    assert_string_equal(s[0].each.as, "item");
    assert_int_equal(s[0].each.parallel, 4);
    assert_int_equal(s[0].each.max, 64);
    assert_int_equal(s[0].each.most, 2000);
    assert_null(s[0].reduce.of);
    assert_int_equal(s[1].reduce.most, 4000);
    assert_string_equal(s[1].reduce.join, "\n");
    assert_int_equal(s[1].needs, 1); /* it waits for what it goes through */
    assert_true(s[0].is_typed && s[0].reads_input && !s[1].reads_input);
    assert_int_equal(pipeline_input_max(&c->pipelines[0]), PIPELINE_LONG_MAX_BYTES);
    assert_true(pipeline_is_deterministic(&c->pipelines[0]));
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_gone_through_is_refused),
        cmocka_unit_test(what_is_left_out_is_usual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
