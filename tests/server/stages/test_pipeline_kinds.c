/* Stages that embed, rerank, write another text and fill gaps: what they ask, what they come to, and what
 * later stages see of it. */
#include "fake_calls.h"

#include "json/json.h"
#include "stages/stages.h"

#define MODELS                                                                              \
    "models: [{name: t, path: t.gguf}, {name: i, path: i.gguf}, {name: e, path: e.gguf},\n" \
    "         {name: r, path: r.gguf}, {name: f, path: f.gguf}]\npipelines:\n  - name: p\n    stages:\n"
#define ENGLISH "      - {name: english, kind: seq2seq, model: t, beams: 4, max_tokens: 9}\n"
#define INTENT  "      - {name: intent, kind: classify, model: i, input: 'say: {text.english}'}\n"
#define TOPIC                                                                                           \
    "      - {name: topic, kind: embed, model: e, candidates: [lights, weather, music]}\n"              \
    "      - {name: late, kind: classify, model: i, when: [{stage: topic, label: ['wea*'], score_min: " \
    "0.9}]}\n"
#define MANUAL                                                                   \
    "      - name: page\n        kind: rerank\n        model: r\n"               \
    "        input: 'how: {Input}'\n        documents: [first, second, third]\n" \
    "      - {name: late, kind: classify, model: i, input: '{label.page}'}\n"
#define MOOD                                                                             \
    "      - {name: mood, kind: fill-mask, model: f, input: '{input} It was [MASK].'}\n" \
    "      - {name: late, kind: classify, model: i, input: '{label.mood} {text.mood}'}\n"

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    process_input in;
    process_run *run;
    int n_done;
    char message[128];
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    t->answer = process_outcome_json(o);
    if (o->failed) snprintf(t->message, sizeof t->message, "%s", o->failure->message);
}

static bench *start(const char *stages, const char *body)
{
    bench *t = calloc(1, sizeof *t);
    shoal_err err = {0};
    api_error e = {0};
    char yaml[2048];
    snprintf(yaml, sizeof yaml, "%s%s", MODELS, stages);
    if (config_parse(&t->config, &SERVER_STAGES, yaml, strlen(yaml), "t.yaml", &err))
        fail_msg("%s", err.message);
    if (process_parse(&t->in, t->config, body, strlen(body), &e)) fail_msg("%s", e.message);
    call_context ctx = {.request_id = "r1"};
    t->in.time = fake_time();
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    return t;
}

static void stop(bench *t)
{
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    config_free(t->config);
    free(t);
}

static const json_t *trace_at(const bench *t, size_t i)
{
    assert_int_equal(t->n_done, 1);
    return json_array_get(json_object_get(t->answer, "trace"), i);
}

static const char *str_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static double num_at(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void a_translation_is_what_later_stages_read(void **state)
{
    bench *t = start(ENGLISH INTENT, "{\"input\":\"Licht an\"}");
    assert_int_equal(t->b.n, 1);
    assert_string_equal(t->b.calls[0].model, "t");
    assert_string_equal(t->b.calls[0].text, "Licht an");
    assert_int_equal(t->b.calls[0].n_beams, 4);
    say_call(&t->b.calls[0], "lights ", NULL, NULL, 0);
    say_call(&t->b.calls[0], "on \n", NULL, NULL, 0);
    end_reply(&t->b.calls[0], 0.9);
    assert_int_equal(t->b.n, 2);
    assert_string_equal(t->b.calls[1].text, "say: lights on");
    answer_label(&t->b.calls[1], "lights_on", 0.75f);
    assert_string_equal(str_at(t->answer, "text"), "lights on");
    assert_string_equal(str_at(json_object_get(t->answer, "intent"), "label"), "lights_on");
    assert_int_equal(num_at(trace_at(t, 0), "completion_tokens"), 9);
    assert_true(num_at(trace_at(t, 0), "mean_prob") == 0.9);
    stop(t);
}

static void the_nearest_candidate_is_the_label(void **state)
{
    bench *t = start(TOPIC, "{\"input\":\"will it rain?\"}");
    assert_string_equal(t->b.calls[0].text, "will it rain?");
    assert_int_equal(t->b.calls[0].n_texts, 3);
    assert_string_equal(t->b.calls[0].texts[2], "music");
    /* Cosine, not the product: the first candidate is long and points elsewhere. */
    float v[][2] = {{2, 0}, {30, 40}, {0.5f, 0}, {0, 0}};
    answer_vectors(&t->b.calls[0], v, 4);
    assert_int_equal(t->b.n, 2);
    answer_label(&t->b.calls[1], "rain", 1);
    const json_t *e = trace_at(t, 0), *all = json_object_get(e, "results");
    assert_string_equal(str_at(e, "label"), "weather");
    assert_true(num_at(e, "score") == 1);
    assert_int_equal(num_at(e, "prompt_tokens"), 12);
    assert_int_equal(json_array_size(all), 3);
    assert_string_equal(str_at(json_array_get(all, 1), "label"), "lights");
    assert_true(num_at(json_array_get(all, 1), "score") == 0.6);
    assert_int_equal(num_at(json_array_get(all, 2), "index"), 2);
    assert_true(json_is_null(json_object_get(t->answer, "text")));
    stop(t);
}

static void vectors_of_several_widths_are_refused(void **state)
{
    bench *t = start(TOPIC, "{\"input\":\"x\"}");
    float v[][2] = {{1, 0}, {1, 0}};
    answer_vectors(&t->b.calls[0], v, 2);
    assert_int_equal(t->n_done, 1);
    assert_non_null(strstr(t->message, "other vectors"));
    stop(t);
}

static void documents_come_best_first(void **state)
{
    bench *t = start(MANUAL, "{\"input\":\"dim it\"}");
    assert_string_equal(t->b.calls[0].text, "how: Dim it");
    assert_int_equal(t->b.calls[0].n_texts, 3);
    answer_scores(&t->b.calls[0], "LABEL_0", (const float[]){0.25f, 0.5f, 0.5f}, 3);
    assert_string_equal(t->b.calls[1].text, "second");
    answer_label(&t->b.calls[1], "x", 1);
    const json_t *all = json_object_get(trace_at(t, 0), "results");
    assert_string_equal(str_at(json_array_get(all, 0), "label"), "second");
    assert_string_equal(str_at(json_array_get(all, 1), "label"), "third"); /* as in the configuration */
    assert_string_equal(str_at(json_array_get(all, 2), "label"), "first");
    stop(t);
}

static void too_few_scores_fail_the_stage(void **state)
{
    bench *t = start(MANUAL, "{\"input\":\"dim it\"}");
    answer_scores(&t->b.calls[0], "LABEL_0", (const float[]){0.25f, 0.5f}, 2);
    assert_int_equal(t->n_done, 1);
    assert_non_null(strstr(t->message, "other scores"));
    stop(t);
}

/* What the request calls a gap is not the one that the pipeline asks about. */
static void the_templates_own_gap_is_filled(void **state)
{
    static const char *const words[] = {"theirs", "theirs", "good"};
    bench *t = start(MOOD, "{\"input\":\"a <mask> day, [MASK].\"}");
    assert_string_equal(t->b.calls[0].text, "a <mask> day, [MASK]. It was [MASK].");
    answer_words(&t->b.calls[0], words, 3);
    assert_string_equal(t->b.calls[1].text, "good with good");
    answer_label(&t->b.calls[1], "x", 1);
    assert_string_equal(str_at(trace_at(t, 0), "label"), "good");
    assert_string_equal(str_at(t->answer, "text"), "with good");
    assert_int_equal(json_array_size(json_object_get(trace_at(t, 0), "results")), 1);
    stop(t);
    t = start(MOOD, "{\"input\":\"a [MASK] day\"}");
    answer_words(&t->b.calls[0], words, 1);
    assert_non_null(strstr(t->message, "no word for the gap"));
    stop(t);
}

static void dead_workers_fail_the_run(void **state)
{
    static const char *const stages[] = {ENGLISH, TOPIC, MANUAL, MOOD};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        bench *t = start(stages[i], "{\"input\":\"x\"}");
        break_call(&t->b.calls[0]);
        assert_int_equal(t->n_done, 1);
        assert_string_equal(t->message, "the worker died");
        assert_null(t->answer);
        stop(t);
        t = start(stages[i], "{\"input\":\"x\"}");
        process_run_cancel(t->run);
        assert_true(t->b.calls[0].cancelled);
        stop(t);
    }
}

static void the_example_is_a_configuration(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_load(&c, &SERVER_STAGES, SHOAL_SOURCE_DIR "/examples/translate-classify.yaml", &err))
        fail_msg("%s", err.message);
    assert_int_equal(c->n_pipelines, 1);
    assert_true(pipeline_is_deterministic(&c->pipelines[0]));
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_translation_is_what_later_stages_read),
        cmocka_unit_test(the_nearest_candidate_is_the_label),
        cmocka_unit_test(vectors_of_several_widths_are_refused),
        cmocka_unit_test(documents_come_best_first),
        cmocka_unit_test(too_few_scores_fail_the_stage),
        cmocka_unit_test(the_templates_own_gap_is_filled),
        cmocka_unit_test(dead_workers_fail_the_run),
        cmocka_unit_test(the_example_is_a_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
