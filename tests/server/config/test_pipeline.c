#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "config/config.h"
#include "pipeline/pipeline.h"

static gateway_config *load(const char *stages)
{
    buf b = {0};
    buf_printf(&b, "models: [{name: m}]\npipelines:\n  - name: p\n    stages:\n%s", stages);
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_parse(&c, NULL, b.data, b.len, "t.yaml", &err)) fail_msg("%s\n%s", err.message, b.data);
    buf_done(&b);
    return c;
}

static const config_device home_devices[] = {
    {.id = "light.kitchen", .name = "Kitchen Light", .state = "off"},
    {.id = "light.kitchen_table", .name = "Kitchen Light Table", .state = "on"},
    {.id = "fan.cafe", .name = "Ventilador Ámbar", .state = "on"},
    {.id = "fan.ru", .name = "Вентилятор", .state = "off"},
};

static pipeline_facts facts_over(const char *input, const stage_fact *stages)
{
    return (pipeline_facts){
        .input = input, .devices = home_devices, .n_devices = 4, .context = "ctx", .stages = stages};
}

#define DONE_LABEL(l, s)                                            \
    {                                                               \
        .state = STAGE_DONE, .label = (l), .score = (s), .text = "" \
    }
#define BLANK                   \
    {                           \
        .label = "", .text = "" \
    }

/* Judge the last stage of `stages` when the first has `fact`. */
static void expect_why(const char *stages, stage_fact fact, const char *input, stage_verdict want,
                       const char *why)
{
    gateway_config *c = load(stages);
    stage_fact f[2] = {fact, BLANK};
    pipeline_facts facts = facts_over(input, f);
    buf b = {0};
    stage_verdict got = pipeline_judge(&c->pipelines[0], c->pipelines[0].n_stages - 1, &facts, &b);
    if (got != want || strcmp(b.data ? b.data : "", why) != 0)
        fail_msg("%s\ninput '%s': verdict %d, wanted %d; '%s', wanted '%s'", stages, input, got, want, b.data,
                 why);
    buf_done(&b);
    config_free(c);
}

#define INTENT "      - {name: intent, kind: classify, model: m}\n"

static void stage_without_conditions_always_runs(void **state)
{
    expect_why(INTENT, (stage_fact)BLANK, "hi", STAGE_RUN, "always");
}

static void labels_decide_by_name_and_prefix(void **state)
{
    const char *y = INTENT
        "      - {name: r, kind: generate, model: m, when: [{stage: intent, label: [a, \"iot_*\"]}]}\n";
    expect_why(y, (stage_fact)DONE_LABEL("iot_hue_lightoff", 0.9), "x", STAGE_RUN,
               "intent is iot_hue_lightoff");
    expect_why(y, (stage_fact)DONE_LABEL("a", 0.9), "x", STAGE_RUN, "intent is a");
    expect_why(y, (stage_fact)DONE_LABEL("ab", 0.9), "x", STAGE_SKIP, "intent is ab");
    expect_why(y, (stage_fact)DONE_LABEL("iot", 0.9), "x", STAGE_SKIP, "intent is iot");
}

static void scores_bound_the_label(void **state)
{
    const char *y = INTENT
        "      - {name: r, kind: tag, model: m, when: [{stage: intent, label: [a], score_min: 0.5}]}\n";
    expect_why(y, (stage_fact)DONE_LABEL("a", 0.5), "x", STAGE_RUN, "intent is a (score 0.500)");
    expect_why(y, (stage_fact)DONE_LABEL("a", 0.49), "x", STAGE_SKIP, "intent is a (score 0.490)");
    const char *z =
        INTENT "      - {name: r, kind: tag, model: m, when: [{stage: intent, score_below: 0.5}]}\n";
    expect_why(z, (stage_fact)DONE_LABEL("a", 0.4), "x", STAGE_RUN, "intent is a (score 0.400)");
    expect_why(z, (stage_fact)DONE_LABEL("a", 0.5), "x", STAGE_SKIP, "intent is a (score 0.500)");
}

static void unsure_stage_calls_the_next(void **state)
{
    const char *y = "      - {name: s, kind: generate, model: m}\n"
                    "      - {name: l, kind: generate, model: m, when: [{stage: s, mean_prob_below: 0.9}]}\n";
    stage_fact unsure = {.state = STAGE_DONE, .label = "", .text = "t", .mean_prob = 0.8};
    stage_fact sure = {.state = STAGE_DONE, .label = "", .text = "t", .mean_prob = 0.95};
    expect_why(y, unsure, "x", STAGE_RUN, "s was unsure (mean token probability 0.800, threshold 0.900)");
    expect_why(y, sure, "x", STAGE_SKIP, "s was sure (mean token probability 0.950, threshold 0.900)");
}

static void a_stage_that_did_not_run_holds_nothing(void **state)
{
    const char *y =
        INTENT "      - {name: r, kind: tag, model: m, when: [{stage: intent, score_below: 1}]}\n";
    expect_why(y, (stage_fact){.state = STAGE_SKIPPED, .label = ""}, "x", STAGE_SKIP, "intent did not run");
    expect_why(y, (stage_fact){.state = STAGE_FAILED, .label = ""}, "x", STAGE_SKIP, "intent failed");
}

static void stages_wait_for_what_they_name(void **state)
{
    const char *by_when =
        INTENT "      - {name: r, kind: tag, model: m, when: [{stage: intent, label: [a]}]}\n";
    const char *by_after = INTENT "      - {name: r, kind: tag, model: m, after: [intent]}\n";
    const char *by_text = INTENT "      - {name: r, kind: generate, model: m, prompt: \"{label.intent}\"}\n";
    const char *free_of_it = INTENT "      - {name: r, kind: tag, model: m}\n";
    stage_fact running = {.state = STAGE_RUNNING, .label = "", .text = ""};
    expect_why(by_when, running, "x", STAGE_WAIT, "");
    expect_why(by_after, running, "x", STAGE_WAIT, "");
    expect_why(by_text, running, "x", STAGE_WAIT, "");
    expect_why(free_of_it, running, "x", STAGE_RUN, "always");
}

static void any_alternative_is_enough_and_all_fields_are_needed(void **state)
{
    const char *y = INTENT
        "      - name: r\n        kind: tag\n        model: m\n        when:\n"
        "          - {text_prefix: \"go \", stage: intent, label: [a]}\n          - mentions_device: true\n";
    stage_fact a = DONE_LABEL("a", 1), b = DONE_LABEL("b", 1);
    expect_why(y, a, "go on", STAGE_RUN, "input starts with 'go ' and intent is a");
    expect_why(y, b, "go on", STAGE_SKIP, "intent is b; input mentions no device");
    expect_why(y, b, "kitchen light", STAGE_RUN, "input mentions Kitchen Light");
}

static void unless_bars_what_when_allows(void **state)
{
    const char *y = INTENT "      - {name: r, kind: tag, model: m, when: [{mentions_device: true}], unless: "
                           "[{text_prefix: \"sensor \"}]}\n";
    stage_fact a = DONE_LABEL("a", 1);
    expect_why(y, a, "sensor kitchen light", STAGE_SKIP, "input starts with 'sensor '");
    expect_why(y, a, "a kitchen light", STAGE_RUN, "input mentions Kitchen Light");
}

static void devices_are_found_as_whole_words(void **state)
{
    static const struct {
        const char *text, *id;
    } rows[] = {
        {"turn off the kitchen light", "light.kitchen"},
        {"KITCHEN LIGHT!", "light.kitchen"},
        {"the kitchen lights", "light.kitchen"},
        {"is the kitchen lighted", "light.kitchen"},
        {"the kitchen lighter", NULL},
        {"akitchen light", NULL},
        {"kitchen light table on", "light.kitchen_table"},
        {"kitchen lightx, kitchen light", "light.kitchen"},
        {"enciende VENTILADOR ÁMBAR", "fan.cafe"},
        {"включи вентилятор", "fan.ru"},
        {"включи ВЕНТИЛЯТОР.", "fan.ru"},
        {"вентиляторы", NULL},
        {"", NULL},
        {"kitchen", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const config_device *d = NULL;
        assert_int_equal(pipeline_mentioned(rows[i].text, home_devices, 4, &d), 0);
        const char *got = d ? d->id : NULL;
        if (!got != !rows[i].id || (got && strcmp(got, rows[i].id) != 0))
            fail_msg("'%s': got %s, wanted %s", rows[i].text, got ? got : "none",
                     rows[i].id ? rows[i].id : "none");
    }
}

static void expect_text(const char *template, const char *want)
{
    buf y = {0};
    buf_printf(&y,
               INTENT "      - {name: g, kind: generate, model: m}\n      - {name: r, kind: generate, model: "
                      "m, prompt: \"%s\"}\n",
               template);
    gateway_config *c = load(y.data);
    stage_fact f[3] = {
        DONE_LABEL("lights", 1), {.state = STAGE_DONE, .label = "", .text = "the reply"}, BLANK};
    pipeline_facts facts = facts_over("in", f);
    facts.n_devices = 2;
    buf out = {0};
    assert_int_equal(pipeline_expand(&c->pipelines[0], c->pipelines[0].stages[2].prompt, &facts, &out), 0);
    assert_string_equal(out.data, want);
    buf_done(&out);
    buf_done(&y);
    config_free(c);
}

static void templates_are_filled_in(void **state)
{
    expect_text(
        "Devices:\\n{devices}",
        "Devices:\nlight.kitchen 'Kitchen Light' = off\nlight.kitchen_table 'Kitchen Light Table' = on");
    expect_text("{input}|{Input}|{context}", "in|In|ctx");
    expect_text("{label.intent}: {text.g}", "lights: the reply");
    expect_text("{{input}", "{input}");
    expect_text("a {{{input}} b", "a {in} b");
    expect_text("{{", "{");
}

static void temperature_makes_a_pipeline_uncacheable(void **state)
{
    gateway_config *c = load("      - {name: a, kind: generate, model: m, temperature: 0.7}\n");
    assert_false(pipeline_is_deterministic(&c->pipelines[0]));
    assert_false(pipeline_uses(&c->pipelines[0], "context"));
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stage_without_conditions_always_runs),
        cmocka_unit_test(labels_decide_by_name_and_prefix),
        cmocka_unit_test(scores_bound_the_label),
        cmocka_unit_test(unsure_stage_calls_the_next),
        cmocka_unit_test(a_stage_that_did_not_run_holds_nothing),
        cmocka_unit_test(stages_wait_for_what_they_name),
        cmocka_unit_test(any_alternative_is_enough_and_all_fields_are_needed),
        cmocka_unit_test(unless_bars_what_when_allows),
        cmocka_unit_test(devices_are_found_as_whole_words),
        cmocka_unit_test(templates_are_filled_in),
        cmocka_unit_test(temperature_makes_a_pipeline_uncacheable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
