/* A run that is watched: which events come, when a text is shown, and that the texts joined are the answer's.
 */
#include "../../server/messages/sse.h"
#include "../../server/stages/fake_calls.h"

#include "json/json.h"
#include "process/process_events.h"
#include "rules/home.h"

#define HEAD \
    "models: [{name: i, path: i.gguf}, {name: s, path: s.gguf}]\npipelines:\n  - name: p\n    stages:\n"

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    process_input in;
    process_run *run;
    process_watch watch;
    int n_done;
    buf stages, text;
    size_t n_texts;
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    t->answer = process_outcome_json(o);
}

static void on_stage(void *user, const char *text)
{
    bench *t = user;
    json_t *entry = json_loads(text, 0, NULL);
    bool ran = json_is_true(json_object_get(entry, "ran"));
    buf_printf(&t->stages, "%s%s ", json_string_value(json_object_get(entry, "stage")),
               !ran                              ? "-"
               : json_object_get(entry, "error") ? "!"
                                                 : "");
    json_decref(entry);
}

static void on_text(void *user, const char *text, size_t n)
{
    bench *t = user;
    t->n_texts++;
    buf_append(&t->text, text, n);
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
    t->watch = (process_watch){.user = t, .stage = on_stage, .text = on_text};
    if (t->in.stream) t->in.watch = &t->watch;
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
    buf_done(&t->stages);
    buf_done(&t->text);
    free(t);
}

static void expect_shown(const bench *t, const char *text)
{
    assert_string_equal(t->text.data ? t->text.data : "", text);
}

/* What was shown is the answer. */
static void expect_whole(const bench *t, const char *stages)
{
    assert_int_equal(t->n_done, 1);
    assert_string_equal(t->stages.data, stages);
    const char *text = json_string_value(json_object_get(t->answer, "text"));
    expect_shown(t, text ? text : "");
}

#define ASK "{\"input\":\"a\",\"stream\":true}"

static void the_last_stage_is_shown_while_it_writes(void **state)
{
    bench *t = start("      - {name: intent, kind: classify, model: i}\n"
                     "      - {name: reply, kind: generate, model: s, prompt: '{label.intent}'}\n",
                     ASK);
    answer_label(&t->b.calls[0], "x", 1);
    say_call(&t->b.calls[1], "Turning ", NULL, NULL, 0);
    expect_shown(t, "Turning");
    say_call(&t->b.calls[1], "it on.\n\n", NULL, NULL, 0);
    expect_shown(t, "Turning it on.");
    end_reply(&t->b.calls[1], 0.9);
    expect_whole(t, "intent reply ");
    stop(t);
}

#define CASCADE                                         \
    "      - {name: small, kind: generate, model: s}\n" \
    "      - {name: large, kind: generate, model: s, when: [{stage: small, mean_prob_below: 0.8}]}\n"

static void what_may_be_replaced_is_not_shown(void **state)
{
    bench *t = start(CASCADE, ASK);
    say_call(&t->b.calls[0], "small", NULL, NULL, 0);
    expect_shown(t, "");
    end_reply(&t->b.calls[0], 0.5);
    say_call(&t->b.calls[1], "large", NULL, NULL, 0);
    expect_shown(t, "large");
    end_reply(&t->b.calls[1], 0.9);
    expect_whole(t, "small large ");
    stop(t);
    t = start(CASCADE, ASK);
    say_call(&t->b.calls[0], "small", NULL, NULL, 0);
    end_reply(&t->b.calls[0], 0.9);
    expect_whole(t, "small large- ");
    assert_int_equal(t->n_texts, 1);
    stop(t);
}

/* The word is free as soon as the later stage is known not to run: what was written until then goes out at
 * once. */
static void a_text_is_shown_from_when_it_is_sure(void **state)
{
    bench *t = start("      - {name: intent, kind: classify, model: i}\n"
                     "      - {name: reply, kind: generate, model: s}\n"
                     "      - {name: other, kind: generate, model: s, when: [{stage: intent, label: [b]}]}\n",
                     ASK);
    say_call(&t->b.calls[1], "one ", NULL, NULL, 0);
    expect_shown(t, "");
    answer_label(&t->b.calls[0], "a", 1);
    expect_shown(t, "one");
    say_call(&t->b.calls[1], "two", NULL, NULL, 0);
    expect_shown(t, "one two");
    end_reply(&t->b.calls[1], 0.9);
    expect_whole(t, "intent other- reply ");
    stop(t);
}

static void what_may_fail_is_not_shown_before_its_end(void **state)
{
    bench *t = start("      - {name: first, kind: generate, model: s}\n"
                     "      - {name: second, kind: generate, model: s, optional: true}\n",
                     ASK);
    say_call(&t->b.calls[1], "half of", NULL, NULL, 0);
    say_call(&t->b.calls[0], "whole", NULL, NULL, 0);
    end_reply(&t->b.calls[0], 0.9);
    expect_shown(t, "");
    break_call(&t->b.calls[1]);
    expect_whole(t, "first second! ");
    stop(t);
}

/* Neither what a guard holds back nor what one has still to look at is shown, wherever the guard stands. */
static void nothing_is_shown_before_a_guard_has_spoken(void **state)
{
    static const char *const calls[] = {"lock.unlock", "light.turn_on"};
    for (size_t i = 0; i < 2; i++) {
        bench *t = start(
            "      - {name: reply, kind: generate, model: s}\n"
            "      - {name: guard, kind: guard, of: reply, ask_kinds: [lock], ask_actions: ['lock.*'],\n"
            "         lexicon: " SHOAL_SOURCE_DIR "/lexicons/devices.yaml}\n"
            "      - {name: more, kind: generate, model: s}\n",
            "{\"input\":\"do it\",\"stream\":true,\"devices\":[{\"id\":\"lock.a\",\"name\":\"Front "
            "Door\"},{\"id\":\"light.a\",\"name\":\"Lamp\"}]}");
        say_call(&t->b.calls[1], "More of it", NULL, NULL, 0);
        expect_shown(t, "");
        say_call(&t->b.calls[0], "Done", calls[i], i ? "{\"target\":\"light.a\"}" : "{\"target\":\"lock.a\"}",
                 0);
        end_reply(&t->b.calls[0], 0.9);
        expect_shown(t, i ? "More of it" : "");
        if (!t->n_done) end_reply(&t->b.calls[1], 0.9);
        expect_whole(t, "reply guard more ");
        stop(t);
    }
}

static void lists_are_shown_in_the_end(void **state)
{
    bench *t = start("      - {name: each, kind: generate, model: s, foreach: {of: input}}\n",
                     "{\"input\":\"a\\nb\",\"stream\":true}");
    say_call(&t->b.calls[0], "A", NULL, NULL, 0);
    say_call(&t->b.calls[1], "B", NULL, NULL, 0);
    end_reply(&t->b.calls[1], 0.9);
    expect_shown(t, "");
    end_reply(&t->b.calls[0], 0.9);
    expect_whole(t, "each ");
    assert_string_equal(t->text.data, "A\nB");
    stop(t);
}

static void nobody_watches_without_a_stream(void **state)
{
    bench *t = start(CASCADE, "{\"input\":\"a\"}");
    end_reply(&t->b.calls[0], 0.9);
    assert_int_equal(t->stages.len + t->n_texts, 0);
    stop(t);
}

static void a_kept_answer_is_told_as_events(void **state)
{
    const char *body = "{\"text\":\"a\\nb\",\"trace\":[{\"stage\":\"x\",\"ran\":true}]}";
    buf out = {0};
    process_events_replay(&out, body, strlen(body));
    process_events_answer(&out, "id1", 1.5, body, strlen(body));
    assert_string_equal(
        sse_of(&out),
        "event: stage\ndata: {\"stage\":\"x\",\"ran\":true}\n\n"
        "event: text\ndata: {\"object\":\"shoal.process.text\",\"text\":\"a\\nb\"}\n\n"
        "event: answer\ndata: {\"id\":\"id1\",\"ms\":1.500,\"text\":\"a\\nb\",\"trace\":[{\"stage\":\"x\","
        "\"ran\":true}]}\n\ndata: [DONE]\n\n");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_stage_is_shown_while_it_writes),
        cmocka_unit_test(what_may_be_replaced_is_not_shown),
        cmocka_unit_test(a_text_is_shown_from_when_it_is_sure),
        cmocka_unit_test(what_may_fail_is_not_shown_before_its_end),
        cmocka_unit_test(nothing_is_shown_before_a_guard_has_spoken),
        cmocka_unit_test(lists_are_shown_in_the_end),
        cmocka_unit_test(nobody_watches_without_a_stream),
        cmocka_unit_test(a_kept_answer_is_told_as_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
