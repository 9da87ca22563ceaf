/* Stages that go through lists: what is asked for each item, in which order, how many at once, and what
 * becomes of items that fail, of lists that are none, and of texts that do not get shorter. */
#include "../../server/stages/fake_calls.h"

#include "time/env_sim.h"
#include "json/json.h"
#include "rules/home.h"

#define HEAD                                                                                \
    "models: [{name: t, path: t.gguf}, {name: i, path: i.gguf}, {name: s, path: s.gguf}]\n" \
    "pipelines:\n  - name: p\n    stages:\n"

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    process_input in;
    process_run *run;
    int n_done;
    bool partial;
    char failed[64], message[256];
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    t->answer = process_outcome_json(o);
    t->partial = o->partial;
    if (!o->failed) return;
    snprintf(t->failed, sizeof t->failed, "%s", o->failed->name);
    snprintf(t->message, sizeof t->message, "%s", o->failure->message);
}

static bench *start(const char *stages, const char *body)
{
    bench *t = calloc(1, sizeof *t);
    shoal_err err = {0};
    api_error e = {0};
    buf yaml = {0};
    buf_printf(&yaml, "%s%s", HEAD, stages);
    if (config_parse(&t->config, &HOME_STAGES, yaml.data, yaml.len, "t.yaml", &err))
        fail_msg("%s", err.message);
    if (pipeline_open(&t->config->pipelines[0], "", &err)) fail_msg("%s", err.message);
    if (process_parse(&t->in, t->config, body, strlen(body), &e)) fail_msg("%s", e.message);
    buf_done(&yaml);
    call_context ctx = {.request_id = "r1", .latency = SHOAL__V1__LATENCY__BATCH};
    t->in.time = fake_time();
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    return t;
}

static void stop(bench *t)
{
    for (size_t i = 0; i < t->b.n; i++) /* items' calls are the request's */
        assert_int_equal(t->b.calls[i].order->latency, SHOAL__V1__LATENCY__BATCH);
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    config_free(t->config);
    free(t);
}

static void expect_results(const bench *t, const char *stage, const char *want)
{
    buf got = {0};
    assert_int_equal(t->n_done, 1);
    if (*t->message) fail_msg("%s: %s", t->failed, t->message);
    json_put_digits(&got, json_object_get(json_object_get(t->answer, "results"), stage), 6);
    assert_string_equal(got.data ? got.data : "", want);
    buf_done(&got);
}

static const json_t *trace_at(const bench *t, size_t i)
{
    return json_array_get(json_object_get(t->answer, "trace"), i);
}

static void reply(noted *c, const char *text)
{
    say_call(c, text, NULL, NULL, 0);
    end_reply(c, 0.9);
}

static size_t n_open(const bench *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->b.n; i++) n += t->b.calls[i].open;
    return n;
}

#define LINES "      - {name: each, kind: classify, model: i, foreach: {of: input, parallel: 2}}\n"

static void items_are_answered_in_their_order(void **state)
{
    bench *t = start(LINES, "{\"input\":\"lights on\\r\\n\\n  {text.x} {{ \\nthird\\n\"}");
    assert_int_equal(t->b.n, 2); /* two at once */
    assert_string_equal(t->b.calls[0].text, "lights on");
    assert_string_equal(t->b.calls[1].text, "{text.x} {{");
    answer_label(&t->b.calls[1], "b", 0.5f);
    assert_int_equal(t->b.n, 3);
    assert_string_equal(t->b.calls[2].text, "third");
    answer_label(&t->b.calls[2], "c", 0.25f);
    assert_int_equal(t->n_done, 0);
    answer_label(&t->b.calls[0], "a", 0.75f);
    expect_results(t, "each",
                   "[{\"label\":\"a\",\"score\":0.75},{\"label\":\"b\",\"score\":0.5},{\"label\":\"c\","
                   "\"score\":0.25}]");
    assert_true(json_is_null(json_object_get(t->answer, "intent")));
    assert_int_equal(json_integer_value(json_object_get(trace_at(t, 0), "items")), 3);
    assert_int_equal(json_integer_value(json_object_get(trace_at(t, 0), "prompt_tokens")), 15);
    assert_false(t->partial);
    stop(t);
}

static void a_list_of_nothing_is_answered_with_nothing(void **state)
{
    bench *t =
        start("      - {name: slots, kind: tag, model: i}\n"
              "      - {name: each, kind: seq2seq, model: t, input: '{item.text}', foreach: {of: slots}}\n",
              "{\"input\":\"x\"}");
    answer_spans(&t->b.calls[0], false);
    expect_results(t, "each", "[]");
    assert_string_equal(json_string_value(json_object_get(t->answer, "text")), "");
    stop(t);
}

static void values_of_one_stage_are_the_list_of_the_next(void **state)
{
    bench *t = start("      - {name: slots, kind: tag, model: i}\n"
                     "      - {name: each, kind: seq2seq, model: t, input: '{number} {span.text | upper}',\n"
                     "         foreach: {of: json.slots, as: span}}\n"
                     "      - {name: again, kind: generate, model: s, foreach: {of: each}}\n"
                     "      - {name: all, kind: generate, model: s, prompt: '{text.again} {json.each.0}'}\n",
                     "{\"input\":\"x\"}");
    answer_spans(&t->b.calls[0], true);
    assert_string_equal(t->b.calls[1].text, "1 KITCHEN");
    reply(&t->b.calls[1], "Küche");
    assert_string_equal(t->b.calls[2].text, "[{\"role\":\"user\",\"content\":\"Küche\"}]");
    reply(&t->b.calls[2], "{\"room\": [1, {\"a\": 2}]}");
    assert_non_null(strstr(t->b.calls[3].text, "{\\\"room\\\": [1, {\\\"a\\\": 2}]} Küche"));
    reply(&t->b.calls[3], "end");
    expect_results(t, "again", "[{\"room\":[1,{\"a\":2}]}]");
    assert_string_equal(json_string_value(json_object_get(t->answer, "text")), "end");
    stop(t);
}

static void devices_are_a_list(void **state)
{
    bench *t = start("      - {name: each, kind: generate, model: s, prompt: '{d.name} is {d.state}',\n"
                     "         foreach: {of: devices, as: d, parallel: 1}}\n",
                     "{\"input\":\"x\",\"devices\":[{\"id\":\"a.b\",\"name\":\"Lamp\",\"state\":\"on\"},"
                     "{\"id\":\"a.c\",\"name\":\"Fan\"}]}");
    assert_non_null(strstr(t->b.calls[0].text, "Lamp is on"));
    assert_int_equal(n_open(t), 1);
    reply(&t->b.calls[0], "bright");
    reply(&t->b.calls[1], "still");
    expect_results(t, "each", "[\"bright\",\"still\"]");
    assert_string_equal(json_string_value(json_object_get(t->answer, "text")), "bright\nstill");
    stop(t);
}

static void one_failed_item_fails_the_request(void **state)
{
    bench *t = start(LINES, "{\"input\":\"a\\nb\\nc\"}");
    break_call(&t->b.calls[1]);
    assert_int_equal(t->n_done, 1);
    assert_string_equal(t->failed, "each");
    assert_string_equal(t->message, "item 2 of 3: the worker died");
    assert_true(t->b.calls[0].cancelled);
    assert_int_equal(t->b.n, 2);
    stop(t);
}

static void an_optional_item_is_null(void **state)
{
    bench *t = start("      - {name: each, kind: classify, model: i, optional: true, foreach: {of: input}}\n",
                     "{\"input\":\"a\\nb\\nc\"}");
    break_call(&t->b.calls[1]);
    answer_label(&t->b.calls[0], "a", 1);
    answer_label(&t->b.calls[2], "c", 1);
    expect_results(t, "each", "[{\"label\":\"a\",\"score\":1.0},null,{\"label\":\"c\",\"score\":1.0}]");
    const json_t *failed = json_object_get(trace_at(t, 0), "failed");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(failed, 0), "item")), 2);
    assert_true(t->partial); /* nothing to keep */
    stop(t);
}

static void a_stage_all_of_whose_items_failed_has_failed(void **state)
{
    bench *t =
        start("      - {name: each, kind: classify, model: i, optional: true, foreach: {of: input}}\n"
              "      - {name: all, kind: generate, model: s, prompt: '[{json.each}]', after: [each]}\n",
              "{\"input\":\"a\\nb\"}");
    break_call(&t->b.calls[1]);
    break_call(&t->b.calls[0]);
    assert_non_null(strstr(t->b.calls[2].text, "\"[]\""));
    reply(&t->b.calls[2], "nothing");
    assert_string_equal(json_string_value(json_object_get(trace_at(t, 0), "error")),
                        "all 2 items failed, the last: item 1 of 2: the worker died");
    assert_null(json_object_get(t->answer, "results"));
    stop(t);
}

static void a_list_that_is_too_long_is_refused(void **state)
{
    bench *t = start("      - {name: each, kind: classify, model: i, foreach: {of: input, max: 2}}\n",
                     "{\"input\":\"a\\nb\\nc\"}");
    assert_int_equal(t->n_done, 1);
    assert_int_equal(t->b.n, 0);
    assert_string_equal(t->message, "'input' has more than 2 items: 'max' says how many are taken");
    stop(t);
}

static void what_is_no_list_is_refused(void **state)
{
    bench *t =
        start("      - {name: one, kind: classify, model: i}\n"
              "      - {name: each, kind: classify, model: i, foreach: {of: one.label}, optional: true}\n"
              "      - {name: whole, kind: classify, model: i, foreach: {of: one}}\n",
              "{\"input\":\"a\"}");
    answer_label(&t->b.calls[0], "x", 1);
    assert_int_equal(t->n_done, 1);
    assert_string_equal(t->message, "'one' is an object, not a list");
    stop(t);
}

/* A text in JSON can be cut, too: by says how. */
static void texts_become_lists(void **state)
{
    static const struct {
        const char *by, *input, *want;
    } rows[] = {
        {"lines", " a \\n\\nb", "[\"a\",\"b\"]"},
        {"paragraphs", "a\\nb\\n  \\n\\nc\\n", "[\"a\\nb\",\"c\"]"},
        {"sentences", "One is 1.5. Two!  Three\\n- four", "[\"One is 1.5.\",\"Two!\",\"Three\",\"- four\"]"},
        {"pieces", "a", "[\"a\"]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char stages[256], body[256];
        snprintf(
            stages, sizeof stages,
            "      - {name: each, kind: generate, model: s, foreach: {of: input, by: %s, parallel: 1}}\n",
            rows[i].by);
        snprintf(body, sizeof body, "{\"input\":\"%s\"}", rows[i].input);
        bench *t = start(stages, body);
        for (size_t k = 0; !t->n_done; k++) {
            json_t *messages = NULL;
            assert_int_equal(json_parse(&messages, t->b.calls[k].text, strlen(t->b.calls[k].text), "m", NULL),
                             0);
            reply(&t->b.calls[k], json_string_value(json_object_get(json_array_get(messages, 0), "content")));
            json_decref(messages);
        }
        expect_results(t, "each", rows[i].want);
        stop(t);
    }
}

/* Every byte of a long text is in some piece, and each begins with the end of the one before. */
static void long_texts_are_cut_into_overlapping_pieces(void **state)
{
    buf body = {0};
    buf_puts(&body, "{\"input\":\"");
    for (int i = 0; i < 600; i++) buf_printf(&body, "Sentence number %03d says little. ", i);
    buf_puts(&body, "\"}");
    bench *t = start("      - {name: parts, kind: seq2seq, model: t,\n"
                     "         foreach: {of: input, by: pieces, most: 500, overlap: 60, parallel: 8}}\n",
                     body.data);
    assert_int_equal(n_open(t), 8);
    for (size_t k = 0; !t->n_done; k++) {
        const char *text = t->b.calls[k].text;
        assert_true(strlen(text) <= 500);
        char first[32], before[32];
        snprintf(first, sizeof first, "%.19s", text);
        if (k) {
            assert_string_not_equal(first, "Sentence number 000");
            snprintf(before, sizeof before, "%.19s", strrchr(t->b.calls[k - 1].text, 'S'));
            assert_string_equal(first, before); /* the last sentence again */
        }
        reply(&t->b.calls[k], "short");
        assert_true(n_open(t) <= 8);
    }
    assert_true(t->b.n >= 40);
    stop(t);
    buf_done(&body);
}

#define REDUCE                                                                                               \
    "      - {name: parts, kind: seq2seq, model: t, foreach: {of: input, parallel: 8}}\n"                    \
    "      - {name: sum, kind: generate, model: s, prompt: 'Sum up: {item}', reduce: {of: parts, most: 64, " \
    "parallel: "                                                                                             \
    "2}}\n"

static void parts_are_reduced_until_one_is_left(void **state)
{
    bench *t = start(REDUCE, "{\"input\":\"1\\n2\\n3\\n4\\n5\"}");
    for (int i = 0; i < 5; i++) {
        char text[64];
        snprintf(text, sizeof text, "part %d is what was said before", i);
        reply(&t->b.calls[i], text);
    }
    assert_int_equal(t->b.n, 7); /* two groups of two, one of one: two at once */
    assert_non_null(strstr(t->b.calls[5].text,
                           "Sum up: part 0 is what was said before\\npart 1 is what was said before\""));
    reply(&t->b.calls[5], "first two");
    reply(&t->b.calls[6], "next two");
    assert_non_null(strstr(t->b.calls[7].text, "Sum up: part 4 is what was said before\""));
    reply(&t->b.calls[7], "the last");
    assert_int_equal(t->b.n, 9);
    assert_non_null(strstr(t->b.calls[8].text, "Sum up: first two\\nnext two\\nthe last\""));
    reply(&t->b.calls[8], "all");
    expect_results(t, "sum", "\"all\"");
    assert_string_equal(json_string_value(json_object_get(t->answer, "text")), "all");
    assert_int_equal(json_integer_value(json_object_get(trace_at(t, 1), "rounds")), 2);
    assert_int_equal(json_integer_value(json_object_get(trace_at(t, 1), "items")), 4);
    stop(t);
}

/* A model that answers with more than it read would never come to an end. */
static void what_does_not_get_shorter_ends(void **state)
{
    bench *t = start(REDUCE, "{\"input\":\"1\\n2\\n3\"}");
    const char *longer = "this text is longer than half of what a stage may read, each time, word for word";
    for (size_t i = 0; !t->n_done && i < 40; i++) reply(&t->b.calls[i], longer);
    assert_int_equal(t->n_done, 1);
    assert_string_equal(t->failed, "sum");
    assert_non_null(strstr(t->message, "of which no two fit into 'most' (64 bytes)"));
    stop(t);
}

static void a_part_of_a_sum_must_not_fail(void **state)
{
    bench *t =
        start("      - {name: sum, kind: seq2seq, model: t, reduce: {of: input, most: 64}, optional: true}\n"
              "      - {name: say, kind: generate, model: s, prompt: 'sum: {text.sum}'}\n",
              "{\"input\":\"12345678901234567890123456789012345\\n12345678901234567890123456789012345\"}");
    assert_int_equal(t->b.n, 2);
    break_call(&t->b.calls[0]);
    assert_true(t->b.calls[1].cancelled);
    assert_non_null(strstr(t->b.calls[2].text, "\"sum: \""));
    reply(&t->b.calls[2], "nothing");
    assert_string_equal(json_string_value(json_object_get(trace_at(t, 0), "error")),
                        "item 1 of 2: the worker died");
    assert_true(t->partial);
    stop(t);
}

static void rules_run_for_items_without_calls(void **state)
{
    bench *t = start("      - {name: lines, kind: line, forms: " SHOAL_SOURCE_DIR "/lexicons/sensors.yaml,\n"
                     "         foreach: {of: input, max: 1000}}\n",
                     "{\"input\":\"sensor kitchen_temp temperature 21.5 C\\nhello\"}");
    assert_int_equal(t->n_done, 1);
    assert_string_equal(t->message, "");
    const json_t *all = json_object_get(json_object_get(t->answer, "results"), "lines");
    assert_int_equal(json_array_size(all), 2);
    assert_non_null(json_object_get(json_array_get(all, 1), "verdict"));
    stop(t);
}

/* A long list of rules does not hold up the loop: it comes to its turn in between. */
static void rules_let_the_loop_have_its_turn(void **state)
{
    bench *t = calloc(1, sizeof *t);
    env_sim *sim = env_sim_new(1);
    const char *yaml = HEAD "      - {name: lines, kind: line, forms: " SHOAL_SOURCE_DIR
                            "/lexicons/sensors.yaml, foreach: {of: input, parallel: 3}}\n";
    const char *body = "{\"input\":\"a\\nb\\nc\\nd\\ne\\nf\\ng\\nh\\ni\\nj\"}";
    call_context ctx = {.request_id = "r1"};
    api_error e;
    assert_int_equal(config_parse(&t->config, &HOME_STAGES, yaml, strlen(yaml), "t.yaml", NULL), 0);
    assert_int_equal(pipeline_open(&t->config->pipelines[0], "", NULL), 0);
    for (int leaves = 0; leaves < 2; leaves++) {
        int turns = 0;
        assert_int_equal(process_parse(&t->in, t->config, body, strlen(body), &e), 0);
        t->in.time = env_sim_env(sim);
        assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL),
                         0);
        assert_int_equal(t->n_done, 0);
        while (!leaves && env_sim_step(sim)) turns++;
        if (leaves) process_run_cancel(t->run);
        assert_int_equal(env_sim_timers(sim), 0);
        assert_int_equal(t->n_done, leaves ? 0 : 1);
        assert_int_equal(turns, leaves ? 0 : 2); /* ten items, four at a time */
        if (!leaves)
            assert_int_equal(json_array_size(json_object_get(json_object_get(t->answer, "results"), "lines")),
                             10);
        process_input_done(&t->in);
        t->n_done = 0;
    }
    env_sim_free(sim);
    stop(t);
}

static void a_client_that_leaves_ends_all_items(void **state)
{
    bench *t = start(LINES, "{\"input\":\"a\\nb\\nc\"}");
    answer_label(&t->b.calls[0], "a", 1);
    process_run_cancel(t->run);
    assert_int_equal(n_open(t), 0);
    assert_int_equal(t->n_done, 0);
    stop(t);
}

static void what_items_say_is_bounded(void **state)
{
    bench *t = start("      - {name: each, kind: seq2seq, model: t, foreach: {of: input, parallel: 1}}\n",
                     "{\"input\":\"a\\nb\\nc\\nd\\ne\\nf\\ng\"}");
    char *mega = malloc((1 << 20) + 1);
    memset(mega, 'x', 1 << 20);
    mega[1 << 20] = 0;
    for (size_t i = 0; !t->n_done && i < 7; i++) reply(&t->b.calls[i], mega);
    free(mega);
    assert_int_equal(t->n_done, 1);
    assert_non_null(strstr(t->message, "its items came to more than 4 MiB"));
    stop(t);
}

static void a_schema_is_followed(void **state)
{
    bench *t = start("      - name: facts\n        kind: generate\n        model: s\n"
                     "        schema: '{\"type\": \"object\"}'\n",
                     "{\"input\":\"a\"}");
    reply(&t->b.calls[0], "{\"a\": [1, 2]}");
    expect_results(t, "facts", "{\"a\":[1,2]}");
    stop(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_answered_in_their_order),
        cmocka_unit_test(a_list_of_nothing_is_answered_with_nothing),
        cmocka_unit_test(values_of_one_stage_are_the_list_of_the_next),
        cmocka_unit_test(devices_are_a_list),
        cmocka_unit_test(one_failed_item_fails_the_request),
        cmocka_unit_test(an_optional_item_is_null),
        cmocka_unit_test(a_stage_all_of_whose_items_failed_has_failed),
        cmocka_unit_test(a_list_that_is_too_long_is_refused),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(texts_become_lists),
        cmocka_unit_test(long_texts_are_cut_into_overlapping_pieces),
        cmocka_unit_test(parts_are_reduced_until_one_is_left),
        cmocka_unit_test(what_does_not_get_shorter_ends),
        cmocka_unit_test(a_part_of_a_sum_must_not_fail),
        cmocka_unit_test(rules_run_for_items_without_calls),
        cmocka_unit_test(rules_let_the_loop_have_its_turn),
        cmocka_unit_test(a_client_that_leaves_ends_all_items),
        cmocka_unit_test(what_items_say_is_bounded),
        cmocka_unit_test(a_schema_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
