/* Stages that ask hosts: what is asked whatever a request holds, and what becomes of answers. */
#include "fake_calls.h"
#include "fake_hosts.h"

#include "json/json.h"
#include "stages/stages.h"

#define HEAD                                                                                                \
    "models: [{name: i, path: i.gguf}, {name: s, path: s.gguf}]\n"                                          \
    "hosts:\n  - {name: h, url: 'https://api.lan/v1', methods: [GET, POST]}\npipelines:\n  - name: p\n    " \
    "stages:\n"

typedef struct bench {
    fake_calls b;
    fake_hosts h;
    gateway_config *config;
    process_input in;
    process_run *run;
    int n_done, status;
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
    t->status = o->failure->status;
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
    if (config_parse(&t->config, &SERVER_STAGES, yaml.data, yaml.len, "t.yaml", &err))
        fail_msg("%s", err.message);
    if (process_parse(&t->in, t->config, body, strlen(body), &e)) fail_msg("%s", e.message);
    buf_done(&yaml);
    t->in.hosts = fake_hosts_init(&t->h);
    call_context ctx = {.request_id = "r1"};
    t->in.time = fake_time();
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    return t;
}

static void stop(bench *t)
{
    fake_calls_done(&t->b);
    fake_hosts_done(&t->h);
    json_decref(t->answer);
    process_input_done(&t->in);
    config_free(t->config);
    free(t);
}

#define GET "      - {name: w, kind: http, host: h, path: '/x/{input}?q={input | first:3}&n=1'}\n"
#define POST                                                                                          \
    "      - {name: w, kind: http, host: h, method: POST, path: /x, body: '{{\"t\": {input}, \"s\": " \
    "{json.slots}, "                                                                                  \
    "\"l\": {json.slots.0.label | upper}, \"none\": {json.slots.7}}'}\n"

static void what_fills_a_path_is_escaped(void **state)
{
    bench *t = start(GET, "{\"input\":\"a/.b?c#d&e=\\r\\nX: y ä\"}");
    assert_string_equal(t->h.asked[0].host, "h");
    assert_int_equal(t->h.asked[0].method, HOST_GET);
    assert_string_equal(t->h.asked[0].path, "/x/a%2F.b%3Fc%23d%26e%3D%0D%0AX%3A%20y%20%C3%A4?q=a%2F.&n=1");
    assert_null(t->h.asked[0].body);
    answer_host(&t->h.asked[0], "application/json; charset=utf-8", "{\"a\":[1]}");
    assert_int_equal(t->n_done, 1);
    buf got = {0};
    json_put(&got, json_object_get(t->answer, "results"));
    assert_string_equal(got.data, "{\"w\":{\"status\":200,\"json\":{\"a\":[1]}}}");
    assert_true(json_is_null(json_object_get(t->answer, "text"))); /* the host does not speak for us */
    buf_done(&got);
    stop(t);
}

static void no_text_leads_out_of_the_url(void **state)
{
    static const char *const bodies[] = {"{\"input\":\"..\"}", "{\"input\":\"a/../../b\"}",
                                         "{\"input\":\"a\\\\..\"}"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        bench *t = start(GET, bodies[i]);
        assert_int_equal(t->n_done, 1);
        assert_int_equal(t->h.n, 0);
        assert_string_equal(t->failed, "w");
        assert_int_equal(t->status, SHOAL_EINVALID);
        assert_non_null(strstr(t->message, "would leave the host's URL"));
        stop(t);
    }
}

static void a_body_is_json_whatever_fills_it(void **state)
{
    bench *t = start("      - {name: slots, kind: tag, model: i}\n" POST,
                     "{\"input\":\"\\\"}, {\\\"evil\\\": 1 \\n{input}\"}");
    answer_spans(&t->b.calls[0], true);
    json_t *sent = NULL;
    assert_int_equal(t->h.asked[0].method, HOST_POST);
    assert_int_equal(json_parse(&sent, t->h.asked[0].body, strlen(t->h.asked[0].body), "body", NULL), 0);
    assert_int_equal(json_object_size(sent), 4);
    assert_string_equal(json_string_value(json_object_get(sent, "t")), "\"}, {\"evil\": 1 \n{input}");
    assert_string_equal(json_string_value(json_object_get(sent, "l")), "HOUSE_PLACE");
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(json_object_get(sent, "s"), 0), "start")), 13);
    assert_true(json_is_null(json_object_get(sent, "none")));
    json_decref(sent);
    answer_host(&t->h.asked[0], "text/plain", "fine");
    assert_int_equal(t->n_done, 1);
    stop(t);
}

#define THEN \
    "      - {name: say, kind: generate, model: s, prompt: '{json.w.json.t | default:\"none\"} {text.w}'}\n"

static void answers_are_read_by_later_stages(void **state)
{
    bench *t = start(GET THEN, "{\"input\":\"a\"}");
    answer_host(&t->h.asked[0], "application/json", "{\"t\": 21.5}");
    assert_non_null(strstr(t->b.calls[0].text, "21.5 {\\\"t\\\": 21.5}"));
    say_call(&t->b.calls[0], "warm", NULL, NULL, 0);
    end_reply(&t->b.calls[0], 1);
    assert_string_equal(json_string_value(json_object_get(t->answer, "text")), "warm");
    stop(t);
}

static void an_optional_host_may_be_down(void **state)
{
    bench *t = start("      - {name: w, kind: http, host: h, optional: true}\n" THEN, "{\"input\":\"a\"}");
    assert_string_equal(t->h.asked[0].path, "");
    end_host(&t->h.asked[0], SHOAL_EUNAVAILABLE, "'h' answers 503", 503, "", "", 0);
    assert_non_null(strstr(t->b.calls[0].text, "\"none \""));
    end_reply(&t->b.calls[0], 1);
    assert_true(t->partial);
    stop(t);
}

static void what_is_no_text_and_no_json_fails(void **state)
{
    static const struct {
        const char *type, *body, *says;
        size_t n;
    } rows[] = {
        {"text/plain", "a\0b", "no text in UTF-8", 3},
        {"text/plain", "\xff", "no text in UTF-8", 1},
        {"application/json", "{", "it is none", 1},
        {"application/json", "", "it is none", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench *t = start(GET, "{\"input\":\"a\"}");
        end_host(&t->h.asked[0], 0, "", 200, rows[i].type, rows[i].body, rows[i].n);
        assert_int_equal(t->n_done, 1);
        assert_int_equal(t->status, SHOAL_EPROTOCOL);
        if (!strstr(t->message, rows[i].says)) fail_msg("%zu: %s", i, t->message);
        stop(t);
    }
}

static void each_item_asks_for_itself(void **state)
{
    bench *t = start("      - {name: w, kind: http, host: h, path: '/{it}', optional: true,\n"
                     "         foreach: {of: input, as: it, parallel: 2}}\n",
                     "{\"input\":\"a\\nb c\\nd\"}");
    assert_int_equal(t->h.n, 2);
    assert_string_equal(t->h.asked[1].path, "/b%20c");
    end_host(&t->h.asked[1], SHOAL_EDEADLINE, "late", 0, "", "", 0);
    answer_host(&t->h.asked[0], "text/plain", "A");
    answer_host(&t->h.asked[2], "text/plain", "D");
    buf got = {0};
    json_put(&got, json_object_get(json_object_get(t->answer, "results"), "w"));
    assert_string_equal(got.data, "[{\"status\":200,\"text\":\"A\"},null,{\"status\":200,\"text\":\"D\"}]");
    buf_done(&got);
    stop(t);
}

static void a_client_that_leaves_ends_the_call(void **state)
{
    bench *t = start(GET, "{\"input\":\"a\"}");
    process_run_cancel(t->run);
    assert_true(t->h.asked[0].cancelled);
    stop(t);
}

static void such_pipelines_are_not_cached(void **state)
{
    bench *t = start(GET, "{\"input\":\"a\"}");
    assert_false(pipeline_is_deterministic(t->in.pipeline));
    process_run_cancel(t->run);
    stop(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fills_a_path_is_escaped),
        cmocka_unit_test(no_text_leads_out_of_the_url),
        cmocka_unit_test(a_body_is_json_whatever_fills_it),
        cmocka_unit_test(answers_are_read_by_later_stages),
        cmocka_unit_test(an_optional_host_may_be_down),
        cmocka_unit_test(what_is_no_text_and_no_json_fails),
        cmocka_unit_test(each_item_asks_for_itself),
        cmocka_unit_test(a_client_that_leaves_ends_the_call),
        cmocka_unit_test(such_pipelines_are_not_cached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
