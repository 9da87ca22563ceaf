/* Match and guard stages in pipelines: what they read, what they let pass, and how a question is answered. */
#include "../../server/stages/fake_calls.h"

#include "json/json.h"
#include "process/confirm.h"
#include "rules/home.h"

#define GUARDS    SHOAL_SOURCE_DIR "/tests/data/pipelines/guards.yaml"
#define LANGUAGES SHOAL_SOURCE_DIR "/examples/languages.yaml"

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    confirm_book confirms;
    process_input in;
    process_run *run;
    int n_done;
    bool asks;
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    t->asks = o->asks;
    t->answer = process_outcome_json(o);
}

static bench *bench_new(const char *path)
{
    bench *t = calloc(1, sizeof *t);
    shoal_err err = {0};
    if (config_load(&t->config, &HOME_STAGES, path, &err)) fail_msg("%s", err.message);
    return t;
}

static void forget_request(bench *t)
{
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    t->b.n = 0;
    t->answer = NULL;
    t->n_done = 0;
}

/* 0, or the HTTP status that refuses it. */
static int try_ask(bench *t, const char *body)
{
    api_error e = {0};
    int status = process_parse(&t->in, t->config, body, strlen(body), &e);
    if (!status) {
        t->in.confirms = &t->confirms;
        t->in.time = fake_time();
        status = process_take_answer(&t->in, &e);
    }
    if (status) return status;
    call_context ctx = {.request_id = "r1"};
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    return 0;
}

static void ask(bench *t, const char *pipeline, const char *input, const char *more)
{
    char body[1024];
    snprintf(body, sizeof body, "{\"pipeline\":\"%s\",\"input\":\"%s\"%s}", pipeline, input, more);
    assert_int_equal(try_ask(t, body), 0);
}

static void stop(bench *t)
{
    forget_request(t);
    confirm_book_done(&t->confirms);
    config_free(t->config);
    free(t);
}

static const char *str_at(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static const json_t *guard_of(const bench *t)
{
    return json_object_get(t->answer, "guard");
}

/* "light.a light.b" */
static void expect_targets(const bench *t, const char *want)
{
    buf b = {0};
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(json_object_get(t->answer, "targets"), "devices"), i, d)
        buf_printf(&b, "%s%s", i ? " " : "", str_at(d, "id"));
    assert_string_equal(b.data ? b.data : "", want);
    buf_done(&b);
}

static void expect_guard(const bench *t, const char *verdict, const char *rule)
{
    assert_string_equal(str_at(guard_of(t), "verdict"), verdict);
    assert_string_equal(str_at(guard_of(t), "rule"), rule);
    assert_true(*str_at(guard_of(t), "why"));
}

static void expect_no_calls(const bench *t)
{
    assert_true(json_is_null(json_object_get(t->answer, "tool_call")));
    assert_null(json_object_get(t->answer, "tool_calls"));
    assert_null(json_object_get(t->answer, "targets"));
    assert_true(*str_at(t->answer, "text"));
}

/* ---- match ------------------------------------------------------------------------------------- */

static void expect_match(bench *t, const char *input, bool span, const char *label, const char *ids)
{
    ask(t, "slots", input, "");
    answer_spans(&t->b.calls[0], span); /* 13 to 20 */
    assert_string_equal(str_at(json_object_get(t->answer, "targets"), "label"), label);
    expect_targets(t, ids);
    forget_request(t);
}

static void spans_say_which_unknown_words_name_devices(void **state)
{
    bench *t = bench_new(GUARDS);
    expect_match(t, "turn off the kitchen light", true, "one", "light.kitchen");
    expect_match(t, "turn off the kitchen light", false, "one", "light.kitchen");
    expect_match(t, "make blorps, kitchen light off", true, "one", "light.kitchen");
    expect_match(t, "make blorps, kitchen light off", false, "unknown", "light.kitchen");
    expect_match(t, "good evening, zzzzzzz now", true, "unknown", "");
    expect_match(t, "good evening, zzzzzzz now", false, "none", "");
    /* what it left out still counts beside a device's words */
    expect_match(t, "turn off the kitchen blorp light", true, "unknown", "");
    ask(t, "slots", "turn off the kitchen light", "");
    break_call(&t->b.calls[0]);
    expect_targets(t, "light.kitchen");
    stop(t);
}

static void devices_of_a_request_have_groups_and_kinds(void **state)
{
    bench *t = bench_new(LANGUAGES);
    ask(t, "home", "Weihnachten an",
        ",\"devices\":[{\"id\":\"switch.a\",\"name\":\"Stern\",\"groups\":[\"Weihnachten\"]},"
        "{\"id\":\"switch.b\",\"name\":\"Baum\",\"groups\":[\"Weihnachten\"]}]");
    expect_targets(t, "switch.a switch.b");
    forget_request(t);
    ask(t, "home", "mach die Lampe an",
        ",\"devices\":[{\"id\":\"x.1\",\"name\":\"Otto\",\"kind\":\"light\"},{\"id\":\"x.2\",\"name\":"
        "\"Emma\"}]");
    expect_targets(t, "x.1");
    forget_request(t);
    assert_int_equal(try_ask(t, "{\"pipeline\":\"home\",\"input\":\"x\",\"devices\":[{\"id\":\"a\",\"name\":"
                                "\"b\",\"groups\":\"c\"}]}"),
                     400);
    stop(t);
}

static void later_stages_see_ids_and_verdicts(void **state)
{
    bench *t = bench_new(GUARDS);
    ask(t, "branches", "evening lights on", "");
    assert_int_equal(t->b.n, 1);
    assert_non_null(strstr(t->b.calls[0].text, "light.kitchen\\nlight.hall"));
    say_call(&t->b.calls[0], "On.", NULL, NULL, 0);
    end_reply(&t->b.calls[0], 0.9);
    assert_string_equal(str_at(t->answer, "text"), "On.");
    expect_guard(t, "pass", "");
    forget_request(t);
    ask(t, "branches", "Mach den Herd an", "");
    assert_int_equal(t->b.n, 0);
    expect_guard(t, "ask", "dangerous");
    expect_no_calls(t);
    stop(t);
}

static void each_sentence_may_name_devices_of_its_own(void **state)
{
    bench *t = bench_new(GUARDS);
    ask(t, "sentences", "Turn on the kitchen light. Mach das Sofa aus.", "");
    const json_t *list = json_object_get(json_object_get(t->answer, "results"), "each");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(str_at(json_array_get(list, 0), "label"), "one");
    assert_string_equal(str_at(json_array_get(list, 1), "label"), "unknown");
    assert_string_equal(str_at(json_array_get(list, 1), "language"), "de");
    stop(t);
}

/* ---- guards of models -------------------------------------------------------------------------- */

/* The generator calls `tool`, another one speaks afterwards and calls something, too. */
static void let_call(bench *t, const char *input, const char *intent, const char *tool, const char *arguments)
{
    ask(t, "free", input, "");
    answer_label(&t->b.calls[0], intent, 0.9f);
    say_call(&t->b.calls[1], "Done.", tool, arguments, 0);
    end_reply(&t->b.calls[1], 0.9);
    assert_int_equal(t->b.n, 3);
    say_call(&t->b.calls[2], "All is well.", "light.turn_on", "{\"target\":\"light.hall\"}", 0);
    end_reply(&t->b.calls[2], 0.9);
    assert_int_equal(t->n_done, 1);
}

static void a_model_is_held_whoever_speaks_after_it(void **state)
{
    static const struct {
        const char *input, *intent, *arguments, *verdict, *rule;
    } rows[] = {
        {"turn on the kitchen light", "on", "{\"target\":\"light.kitchen\"}", "pass", ""},
        {"don't turn on the kitchen light", "on", "{\"target\":\"light.kitchen\"}", "deny", "negation"},
        {"turn on the kitchen light tomorrow", "on", "{\"target\":\"light.kitchen\"}", "deny", "later"},
        {"turn on the kitchen light", "on", "{\"target\":\"light.sauna\"}", "deny", "unknown"},
        {"turn on the kitchen light", "on", "{\"target\":\"lock.front\"}", "ask", "dangerous"},
        {"turn on the kitchen light", "alarm_set", "{\"target\":\"light.kitchen\"}", "ask", "dangerous"},
        {"turn on the lights", "on", "{\"targets\":[\"light.kitchen\",\"light.hall\"]}", "ask", "too_many"},
        {"hello", "greet", "no json", "pass", ""},
    };
    bench *t = bench_new(GUARDS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        let_call(t, rows[i].input, rows[i].intent, "light.turn_on", rows[i].arguments);
        expect_guard(t, rows[i].verdict, rows[i].rule);
        if (strcmp(rows[i].verdict, "pass") != 0)
            expect_no_calls(t);
        else
            assert_string_equal(str_at(t->answer, "text"), "All is well.");
        forget_request(t);
    }
    stop(t);
}

/* ---- questions --------------------------------------------------------------------------------- */

#define OPEN "Schließ die Haustür auf"

static void token_of(const bench *t, char out[64])
{
    expect_guard(t, "ask", "dangerous");
    assert_true(t->asks);
    snprintf(out, 64, "%s", str_at(json_object_get(guard_of(t), "confirm"), "token"));
    assert_int_equal(strlen(out), 2 * CONFIRM_TOKEN_BYTES);
}

/* Ask for the door; then say this with the token. The HTTP status, 0: it was answered. */
static int answer_with(bench *t, const char *input, const char *more, unsigned after_s)
{
    char token[64], body[512], said[128] = "";
    ask(t, "home", OPEN, "");
    token_of(t, token);
    expect_no_calls(t);
    forget_request(t);
    if (input) snprintf(said, sizeof said, "\"input\":\"%s\",", input);
    snprintf(body, sizeof body, "{\"pipeline\":\"home\",%s\"confirm\":\"%s\"%s}", said, token, more);
    env_sim_run(fake_sim(), after_s * 1000);
    return try_ask(t, body);
}

static void a_yes_goes_on_with_what_was_asked_about(void **state)
{
    static const char *const yes[] = {"ja",        "Ja, bitte!", "mach das", "oui",
                                      "sí, claro", "yes please", OPEN,       NULL};
    bench *t = bench_new(LANGUAGES);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        assert_int_equal(answer_with(t, yes[i], "", 0), 0);
        expect_guard(t, "pass", "");
        expect_targets(t, "lock.front");
        assert_false(t->asks);
        forget_request(t);
    }
    stop(t);
}

static void a_no_ends_it_and_another_request_is_another_request(void **state)
{
    bench *t = bench_new(LANGUAGES);
    assert_int_equal(answer_with(t, "lieber nicht", "", 0), 0);
    expect_guard(t, "deny", "declined");
    expect_no_calls(t);
    forget_request(t);
    assert_int_equal(answer_with(t, "ja, aber mach auch das Flurlicht an", "", 0), 0);
    expect_guard(t, "pass", "");
    expect_targets(t, "light.hall");
    forget_request(t);
    assert_int_equal(answer_with(t, "schalte den Herd ein", "", 0), 0);
    expect_guard(t, "ask", "dangerous");
    stop(t);
}

/* The yes was for the devices that were there then. */
static void a_yes_counts_for_the_same_devices_alone(void **state)
{
    bench *t = bench_new(LANGUAGES);
    assert_int_equal(answer_with(t, "ja", ",\"devices\":[{\"id\":\"lock.other\",\"name\":\"Haustür\"}]", 0),
                     0);
    expect_guard(t, "ask", "dangerous");
    expect_no_calls(t);
    stop(t);
}

static void a_question_is_answered_once_and_in_time(void **state)
{
    bench *t = bench_new(LANGUAGES);
    char token[64], body[256];
    assert_int_equal(answer_with(t, "ja", "", 119), 0);
    forget_request(t);
    assert_int_equal(answer_with(t, "ja", "", 120), 400);
    forget_request(t);
    ask(t, "home", OPEN, "");
    token_of(t, token);
    forget_request(t);
    snprintf(body, sizeof body, "{\"pipeline\":\"home\",\"context\":{\"confirm\":\"%s\"}}", token);
    assert_int_equal(try_ask(t, body), 0);
    expect_guard(t, "pass", "");
    forget_request(t);
    assert_int_equal(try_ask(t, body), 400);
    forget_request(t);
    ask(t, "home", OPEN, "");
    token_of(t, token);
    forget_request(t);
    snprintf(body, sizeof body, "{\"pipeline\":\"doors\",\"confirm\":\"%s\"}", token);
    assert_int_equal(try_ask(t, body), 400);
    forget_request(t);
    assert_int_equal(try_ask(t, "{\"pipeline\":\"home\",\"confirm\":7}"), 400);
    assert_int_equal(try_ask(t, "{\"pipeline\":\"home\",\"confirm\":\"\"}"), 400);
    assert_int_equal(try_ask(t, "{\"pipeline\":\"home\",\"input\":\"ja\",\"confirm\":\"xyz\"}"), 400);
    stop(t);
}

static void a_book_forgets_the_oldest_question(void **state)
{
    confirm_book b = {0};
    confirm_question q = {.input = "open", .pipeline = "p", .stage = "s", .subject = "", .expires_ns = 100},
                     got;
    char first[2 * CONFIRM_TOKEN_BYTES + 1], token[2 * CONFIRM_TOKEN_BYTES + 1];
    for (unsigned i = 0; i <= CONFIRM_MAX; i++) {
        uint8_t draw[CONFIRM_TOKEN_BYTES] = {(uint8_t)i, (uint8_t)(i >> 8), 1};
        assert_int_equal(confirm_put(&b, &q, draw, i ? token : first), 0);
    }
    assert_false(confirm_take(&b, first, 0, &got));
    assert_true(confirm_take(&b, token, 99, &got));
    assert_string_equal(got.input, "open");
    free(got.input);
    assert_false(confirm_take(&b, token, 99, &got));
    confirm_book_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_say_which_unknown_words_name_devices),
        cmocka_unit_test(devices_of_a_request_have_groups_and_kinds),
        cmocka_unit_test(later_stages_see_ids_and_verdicts),
        cmocka_unit_test(each_sentence_may_name_devices_of_its_own),
        cmocka_unit_test(a_model_is_held_whoever_speaks_after_it),
        cmocka_unit_test(a_yes_goes_on_with_what_was_asked_about),
        cmocka_unit_test(a_no_ends_it_and_another_request_is_another_request),
        cmocka_unit_test(a_yes_counts_for_the_same_devices_alone),
        cmocka_unit_test(a_question_is_answered_once_and_in_time),
        cmocka_unit_test(a_book_forgets_the_oldest_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
