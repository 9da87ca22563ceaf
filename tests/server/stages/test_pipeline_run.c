/* A run of a cascade of models, one that checks what the other is not sure of; requests and their errors. */
#include "fake_calls.h"

#include "json/json.h"
#include "stages/stages.h"

/* ---- a run over a cascade of generators ----------------------------------------------------- */

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    process_input in;
    process_run *run;
    int n_done;
    char failed[64], message[128];
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    t->answer = process_outcome_json(o);
    if (!o->failed) return;
    snprintf(t->failed, sizeof t->failed, "%s", o->failed->name);
    snprintf(t->message, sizeof t->message, "%s", o->failure->message);
}

static bench *start_for(const char *body, const call_context *ctx)
{
    bench *t = calloc(1, sizeof *t);
    shoal_err err = {0};
    api_error e = {0};
    if (config_load(&t->config, &SERVER_STAGES, SHOAL_SOURCE_DIR "/tests/data/pipelines/cascade.yaml", &err))
        fail_msg("%s", err.message);
    if (process_parse(&t->in, t->config, body, strlen(body), &e)) fail_msg("%s", e.message);
    t->in.time = fake_time();
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), ctx, on_done, t, NULL), 0);
    fake_turns();
    return t;
}

static bench *start(const char *body)
{
    return start_for(body, &(call_context){.request_id = "r1"});
}

static void stop(bench *t)
{
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    config_free(t->config);
    free(t);
}

static const char *str_at(const json_t *o, const char *a, const char *b)
{
    const json_t *v = json_object_get(o, a);
    return json_string_value(b ? json_object_get(v, b) : v);
}

static const json_t *trace_of(const bench *t, const char *stage)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(t->answer, "trace"), i,
                       v) if (strcmp(str_at(v, "stage", NULL), stage) == 0) return v;
    return NULL;
}

static void calls_belong_to_the_request(void **state)
{
    char trace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", id[] = "r7";
    static const char *const stand_ins[] = {"home-chat-m"};
    call_context ctx = {.request_id = id,
                        .traceparent = trace,
                        .latency = SHOAL__V1__LATENCY__REALTIME,
                        .order = ROUTER_BY_HASH,
                        .key = 77,
                        .stand_ins = stand_ins,
                        .n_stand_ins = 1};
    bench *t = start_for("{\"input\":\"turn off the kitchen light\"}", &ctx);
    memset(trace, 'x', sizeof trace - 1); /* the request may go before its run does */
    memset(id, 'x', sizeof id - 1);
    answer_spans(&t->b.calls[1], true);
    answer_label(&t->b.calls[0], "iot_hue_lightoff", 0.99f);
    assert_int_equal(t->b.n, 3);
    for (size_t i = 0; i < t->b.n; i++) {
        const call_order *o = t->b.calls[i].order;
        assert_string_equal(o->request_id, "r7");
        assert_string_equal(o->traceparent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_int_equal(o->latency, SHOAL__V1__LATENCY__REALTIME);
        assert_true(o->order == ROUTER_BY_HASH && o->key == 77);
        assert_int_equal(o->n_stand_ins, 0); /* a stage names its own model */
    }
    process_run_cancel(t->run);
    stop(t);
}

static void device_request_goes_to_the_small_model(void **state)
{
    bench *t = start("{\"input\":\"turn off the kitchen light\"}");
    assert_int_equal(t->b.n, 2); /* intent and slots side by side */
    answer_spans(&t->b.calls[1], true);
    answer_label(&t->b.calls[0], "iot_hue_lightoff", 0.99f);
    assert_int_equal(t->b.n, 3);
    assert_string_equal(t->b.calls[2].model, "home-chat-s");
    assert_non_null(strstr(t->b.calls[2].text,
                           "[{\"role\":\"system\",\"content\":\"You are Shoal, a helper that runs this "
                           "home. Devices:\\nlight.kitchen 'Kitchen Light' = off\\n"));
    assert_non_null(
        strstr(t->b.calls[2].text, "= 3\"},{\"role\":\"user\",\"content\":\"Turn off the kitchen light\"}]"));
    say_call(&t->b.calls[2], "Turning off Kitchen Light.\n", NULL, NULL, 0);
    say_call(&t->b.calls[2], "", "light.turn_off", "{\"target\":", 0);
    say_call(&t->b.calls[2], "", "", "\"light.kitchen\"}", 0);
    end_reply(&t->b.calls[2], 0.99);
    assert_int_equal(t->n_done, 1);
    assert_string_equal(str_at(t->answer, "text", NULL), "Turning off Kitchen Light.");
    assert_string_equal(str_at(t->answer, "intent", "label"), "iot_hue_lightoff");
    assert_string_equal(str_at(t->answer, "tool_call", "name"), "light.turn_off");
    const json_t *args = json_object_get(json_object_get(t->answer, "tool_call"), "arguments");
    assert_string_equal(str_at(args, "target", NULL), "light.kitchen");
    assert_int_equal(json_array_size(json_object_get(t->answer, "slots")), 1);
    assert_int_equal(json_array_size(json_object_get(t->answer, "trace")), 5);
    assert_string_equal(str_at(trace_of(t, "reply"), "why", NULL), "input mentions Kitchen Light");
    assert_true(json_is_false(json_object_get(trace_of(t, "reply_checked"), "ran")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(t->answer, "usage"), "total_tokens")),
                     54);
    stop(t);
}

static void unsure_reply_is_checked_by_the_larger_model(void **state)
{
    bench *t = start("{\"input\":\"turn off the kitchen light\"}");
    answer_label(&t->b.calls[0], "iot_hue_lightoff", 0.99f);
    answer_spans(&t->b.calls[1], true);
    say_call(&t->b.calls[2], "small", NULL, NULL, 0);
    end_reply(&t->b.calls[2], 0.7);
    assert_int_equal(t->n_done, 0);
    assert_string_equal(t->b.calls[3].model, "home-chat-m");
    say_call(&t->b.calls[3], "large", NULL, NULL, 0);
    end_reply(&t->b.calls[3], 0.9);
    assert_string_equal(str_at(t->answer, "text", NULL), "large");
    stop(t);
}

static void the_small_reply_stands_when_the_larger_model_fails(void **state)
{
    bench *t = start("{\"input\":\"turn off the kitchen light\"}");
    answer_label(&t->b.calls[0], "iot_hue_lightoff", 0.99f);
    answer_spans(&t->b.calls[1], true);
    say_call(&t->b.calls[2], "small", NULL, NULL, 0);
    end_reply(&t->b.calls[2], 0.7);
    break_call(&t->b.calls[3]);
    assert_string_equal(str_at(t->answer, "text", NULL), "small");
    assert_string_equal(str_at(trace_of(t, "reply_checked"), "error", NULL), "the worker died");
    stop(t);
}

static void sensor_line_becomes_an_alert_alone(void **state)
{
    bench *t = start("{\"text\":\"sensor current asset=fan-54 change=-12% threshold=30% window=5s\"}");
    assert_int_equal(t->b.n, 1);
    assert_non_null(strstr(t->b.calls[0].text, "You write alerts for machine operators."));
    say_call(&t->b.calls[0], "Fan 54: fine.", NULL, NULL, 0);
    end_reply(&t->b.calls[0], 0.5);
    assert_int_equal(t->b.n, 1);
    assert_string_equal(str_at(t->answer, "text", NULL), "Fan 54: fine.");
    assert_true(json_is_null(json_object_get(t->answer, "intent")));
    stop(t);
}

static void intent_without_generator_answers_with_intent_and_slots(void **state)
{
    bench *t = start("{\"pipeline\":\"home\",\"input\":\"what is the weather\"}");
    answer_label(&t->b.calls[0], "weather_query", 0.98f);
    assert_int_equal(t->n_done, 0);
    answer_spans(&t->b.calls[1], true);
    assert_int_equal(t->n_done, 1);
    assert_true(json_is_null(json_object_get(t->answer, "text")));
    assert_true(json_is_null(json_object_get(t->answer, "tool_call")));
    assert_string_equal(str_at(t->answer, "intent", "label"), "weather_query");
    assert_string_equal(str_at(trace_of(t, "reply"), "why", NULL),
                        "input mentions no device; intent is weather_query");
    stop(t);
}

static void devices_of_the_request_replace_the_configured(void **state)
{
#define MILL "[{\"id\":\"switch.mill\",\"name\":\"Mill\",\"state\":7}]"
    static const char *const contexts[] = {"{\"devices\":" MILL "}", MILL,
                                           "\"\\nswitch.mill 'Mill' = 7\\r\\n\"",
                                           "{\"text\":\"switch.mill 'Mill' = 7\"}"};
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"input\":\"stop the mill\",\"context\":%s}", contexts[i]);
        bench *t = start(body);
        answer_label(&t->b.calls[0], "general_quirky", 0.5f);
        assert_int_equal(t->b.n, 3);
        assert_non_null(strstr(t->b.calls[2].text, "Devices:\\nswitch.mill 'Mill' = 7\"}"));
        process_run_cancel(t->run);
        stop(t);
    }
}

static void failed_stage_fails_the_run_and_stops_the_others(void **state)
{
    bench *t = start("{\"input\":\"turn off the kitchen light\"}");
    break_call(&t->b.calls[0]);
    assert_int_equal(t->n_done, 1);
    assert_string_equal(t->failed, "intent");
    assert_string_equal(t->message, "the worker died");
    assert_true(t->b.calls[1].cancelled);
    assert_null(t->answer);
    stop(t);
}

static void cancelling_a_run_cancels_its_calls(void **state)
{
    bench *t = start("{\"input\":\"turn off the kitchen light\"}");
    process_run_cancel(t->run);
    assert_true(t->b.calls[0].cancelled && t->b.calls[1].cancelled);
    assert_int_equal(t->n_done, 0);
    process_run_cancel(NULL);
    stop(t);
}

static void broken_tool_arguments_come_as_text(void **state)
{
    bench *t = start("{\"input\":\"sensor x\"}");
    say_call(&t->b.calls[0], "", "f", "{\"a\":", 0);
    end_reply(&t->b.calls[0], 1);
    assert_string_equal(str_at(t->answer, "tool_call", "arguments"), "{\"a\":");
    stop(t);
}

/* ---- requests ---------------------------------------------------------------------------------- */

static void bad_requests_are_refused_with_a_sentence(void **state)
{
    static const struct {
        const char *body, *says;
        int status;
    } rows[] = {
        {"", "body", 400},
        {"[]", "object", 400},
        {"{}", "'input' is required", 400},
        {"{\"input\":\"\"}", "'input' is required", 400},
        {"{\"input\":5}", "input", 400},
        {"{\"input\":\"a\",\"text\":\"b\"}", "not both", 400},
        {"{\"input\":\"a\",\"pipeline\":\"nope\"}", "nope", 404},
        {"{\"input\":\"a\",\"stream\":1}", "'stream' must be true or false", 400},
        {"{\"input\":\"a\",\"context\":5}", "'context' must be", 400},
        {"{\"input\":\"a\",\"context\":\"free text\"}", "line 1 is none", 400},
        {"{\"input\":\"a\",\"context\":\"a.b 'C' = on\\n 'x' = on\"}", "line 2 is none", 400},
        {"{\"input\":\"a\",\"context\":[7]}", "devices[0].id", 400},
        {"{\"input\":\"a\",\"context\":{\"rooms\":[]}}", "context.rooms", 400},
        {"{\"input\":\"a\",\"context\":{\"devices\":{}}}", "must be an array", 400},
        {"{\"input\":\"a\",\"context\":{\"devices\":[{\"id\":\"x\",\"name\":\"y\",\"state\":[]}]}}",
         "devices[0].state", 400},
        {"{\"input\":\"a\",\"context\":{\"devices\":[{\"id\":\"x\",\"name\":\"y\",\"alias\":[]}]}}",
         "devices[0].alias", 400},
        {"{\"input\":\"a\",\"context\":{\"devices\":[{\"id\":\"x\",\"name\":\"y\",\"aliases\":[1]}]}}",
         "devices[0].aliases", 400},
        {"{\"input\":\"a\",\"device\":[]}", "'device' is not known", 400},
        {"{\"input\":\"a\",\"devices\":[],\"context\":[]}", "not both", 400},
        {"{\"input\":\"a\",\"context\":{\"devices\":[{\"id\":\"x\",\"name\":\"y\\nz\",\"state\":\"on\"}]}}",
         "devices[0].name", 400},
        {"{\"input\":\"a\",\"context\":{\"devices\":[7]}}", "devices[0].id", 400},
        {"{\"input\":\"\xff\"}", "body", 400},
    };
    gateway_config *c = NULL;
    assert_int_equal(
        config_load(&c, &SERVER_STAGES, SHOAL_SOURCE_DIR "/tests/data/pipelines/cascade.yaml", NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        process_input in = {0};
        api_error e = {0};
        int status = process_parse(&in, c, rows[i].body, strlen(rows[i].body), &e);
        if (status != rows[i].status || !strstr(e.message, rows[i].says))
            fail_msg("%s: %d %s", rows[i].body, status, e.message);
        assert_null(in.memory);
    }
    config_free(c);
}

static void long_input_and_long_lists_are_refused(void **state)
{
    gateway_config *c = NULL;
    assert_int_equal(
        config_load(&c, &SERVER_STAGES, SHOAL_SOURCE_DIR "/tests/data/pipelines/cascade.yaml", NULL), 0);
    buf b = {0};
    process_input in = {0};
    api_error e = {0};
    buf_puts(&b, "{\"input\":\"");
    for (int i = 0; i <= PIPELINE_INPUT_MAX_BYTES; i++) buf_putc(&b, 'x');
    buf_puts(&b, "\"}");
    assert_int_equal(process_parse(&in, c, b.data, b.len, &e), 400);
    assert_non_null(strstr(e.message, "16385 bytes"));
    buf_clear(&b);
    buf_puts(&b, "{\"input\":\"x\",\"context\":{\"devices\":[0");
    for (int i = 0; i < PIPELINE_DEVICES_MAX; i++) buf_puts(&b, ",0");
    buf_puts(&b, "]}}");
    assert_int_equal(process_parse(&in, c, b.data, b.len, &e), 400);
    assert_non_null(strstr(e.message, "257 entries"));
    buf_done(&b);
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_belong_to_the_request),
        cmocka_unit_test(device_request_goes_to_the_small_model),
        cmocka_unit_test(unsure_reply_is_checked_by_the_larger_model),
        cmocka_unit_test(the_small_reply_stands_when_the_larger_model_fails),
        cmocka_unit_test(sensor_line_becomes_an_alert_alone),
        cmocka_unit_test(intent_without_generator_answers_with_intent_and_slots),
        cmocka_unit_test(devices_of_the_request_replace_the_configured),
        cmocka_unit_test(failed_stage_fails_the_run_and_stops_the_others),
        cmocka_unit_test(cancelling_a_run_cancels_its_calls),
        cmocka_unit_test(broken_tool_arguments_come_as_text),
        cmocka_unit_test(bad_requests_are_refused_with_a_sentence),
        cmocka_unit_test(long_input_and_long_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
