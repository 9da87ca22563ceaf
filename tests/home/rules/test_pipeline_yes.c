/* "Do you mean: ...?" and what a yes or a no does: in a session, by a token, and after a chat's last message. */
#include "../../server/stages/fake_calls.h"

#include "json/json.h"
#include "process/confirm.h"
#include "process/turns.h"
#include "rules/home.h"

#define LAMP    "and the lamp"
#define OFFERED "Turning off Bedroom Lamp."
#define ASKED   "I am not sure what you want. Do you mean: " OFFERED
#define OFF     "light.turn_off {\"target\":\"light.bedroom_lamp\"}"

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    confirm_book confirms;
    turn_book turns;
    process_input in;
    process_run *run;
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    assert_null(o->failed);
    t->answer = process_outcome_json(o);
    process_note_turn(&t->in, o->answer->data, o->answer->len);
}

static bench *bench_new(void)
{
    bench *t = calloc(1, sizeof *t);
    shoal_err err = {0};
    if (config_load(&t->config, &HOME_STAGES, SHOAL_SOURCE_DIR "/shoal.yaml", &err))
        fail_msg("%s", err.message);
    return t;
}

static void forget_request(bench *t)
{
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    t->b.n = 0;
    t->answer = NULL;
}

static void stop(bench *t)
{
    forget_request(t);
    confirm_book_done(&t->confirms);
    turn_book_done(&t->turns);
    config_free(t->config);
    free(t);
}

typedef struct turn {
    const char *request, *reply; /* of the chat before; NULL: it is none */
    const char *owner;
} turn;

/* 0, or the HTTP status that refuses it. The generator, where it is asked, would have the lamp off. */
static int try_ask(bench *t, const char *body, turn before)
{
    api_error e = {0};
    forget_request(t);
    int status = process_parse(&t->in, t->config, body, strlen(body), &e);
    if (status) return status;
    t->in.confirms = &t->confirms;
    t->in.turns = &t->turns;
    t->in.time = fake_time();
    t->in.owner = before.owner;
    status = before.request ? process_take_turn(&t->in, &(process_turn){before.request, "", before.reply}, &e)
                            : process_take_answer(&t->in, &e);
    if (status) return status;
    call_context ctx = {.request_id = "r1"};
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    for (size_t i = 0; i < t->b.n; i++) {
        if (t->b.calls[i].task == CALL_CLASSIFY) answer_label(&t->b.calls[i], "iot_hue_lighton", 0);
        if (t->b.calls[i].task == CALL_TAG) answer_spans(&t->b.calls[i], false);
        if (t->b.calls[i].task != CALL_GENERATE) continue;
        say_call(&t->b.calls[i], OFFERED, "light.turn_off", "{\"target\":\"light.bedroom_lamp\"}", 0);
        end_reply(&t->b.calls[i], 0.9);
    }
    assert_non_null(t->answer);
    return 0;
}

static void ask(bench *t, const char *input, const char *more)
{
    char body[512];
    snprintf(body, sizeof body, "{\"pipeline\":\"home\",\"input\":\"%s\"%s}", input, more);
    assert_int_equal(try_ask(t, body, (turn){0}), 0);
}

static const char *text_of(const bench *t)
{
    return json_string_value(json_object_get(t->answer, "text"));
}

/* `want`: a call as in OFF; "": none. */
static void expect_calls(const bench *t, const char *want)
{
    buf b = {0};
    const json_t *call = json_object_get(t->answer, "tool_call");
    if (json_is_object(call)) {
        buf_printf(&b, "%s ", json_string_value(json_object_get(call, "name")));
        json_put(&b, json_object_get(call, "arguments"));
    }
    assert_null(json_object_get(t->answer, "tool_calls"));
    assert_string_equal(buf_text(&b), want);
    buf_done(&b);
}

static const char *token_of(const bench *t)
{
    const json_t *offer = json_object_get(t->answer, "proposal");
    assert_string_equal(json_string_value(json_object_get(offer, "say")), OFFERED);
    return json_string_value(json_object_get(json_object_get(offer, "confirm"), "token"));
}

static void expect_asked(const bench *t)
{
    expect_calls(t, "");
    assert_string_equal(text_of(t), ASKED);
    assert_int_equal(strlen(token_of(t)), 2 * CONFIRM_TOKEN_BYTES);
}

/* A yes that answers nothing says so. */
static void expect_nothing_open(const bench *t)
{
    expect_calls(t, "");
    assert_non_null(strstr(text_of(t), "I asked nothing that is still open"));
}

static const char HERE[] = ",\"session\":\"s1\"", ELSEWHERE[] = ",\"session\":\"s2\"";

/* In a session the turn before tells what is meant; elsewhere, and later, it does not. */
static void a_session_remembers_its_last_turn(void **state)
{
#define SET(degrees) "climate.set_temperature {\"target\":\"climate.hallway\",\"temperature\":" degrees "}"
    static const struct {
        const char *before, *input, *where, *calls, *text;
    } ROWS[] = {
        {"turn off the bedroom lamp", "turn it on", HERE, "light.turn_on {\"target\":\"light.bedroom_lamp\"}",
         "Lamp"},
        {"turn off the bedroom lamp", "turn it on", ELSEWHERE, "", "Which device do you mean?"},
        {"turn off the bedroom lamp", "turn it on", "", "", "Which device do you mean?"},
        {"turn up the heat", "20", HERE, SET("20"), "to 20 degrees"},
        {"turn up the heat", "68 F", HERE, SET("20"), "to 20 degrees"},
        {"turn up the heat", "72", HERE, "", "goes from 5 to 35 °C"},
        {"turn up the heat", "20", ELSEWHERE, "", "I run the devices of this home"},
        {"open the door", "the garage door", HERE,
         "garage_door.open_cover {\"target\":\"garage_door.garage\"}", "Opening"},
        {"is the front door locked?", "unlock it", HERE, "lock.unlock {\"target\":\"lock.front_door\"}",
         "Unlocking"},
        {"hello", "turn it on", HERE, "", "Which device do you mean?"},
    };
    bench *t = bench_new();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ask(t, ROWS[i].before, HERE);
        ask(t, ROWS[i].input, ROWS[i].where);
        if (!strstr(text_of(t), ROWS[i].text)) fail_msg("%zu: %s", i, text_of(t));
        expect_calls(t, ROWS[i].calls);
    }
    ask(t, "turn off the bedroom lamp", HERE);
    ask(t, "hello", HERE);
    ask(t, "turn it on", HERE); /* the turn before was "hello" */
    expect_calls(t, "");
    ask(t, "turn off the bedroom lamp", HERE);
    env_sim_run(fake_sim(), (TURN_S + 1) * 1000);
    ask(t, "turn it on", HERE);
    expect_calls(t, "");
    stop(t);
}

static void a_yes_does_what_was_offered_once(void **state)
{
    static const char *const yes[] = {"yes", "Yes!", "yes please", "ok, do it", "go ahead", "that's right"};
    bench *t = bench_new();
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        ask(t, LAMP, HERE);
        expect_asked(t);
        ask(t, yes[i], HERE);
        expect_calls(t, OFF);
        assert_string_equal(text_of(t), OFFERED);
        ask(t, "yes", HERE);
        expect_nothing_open(t);
    }
    stop(t);
}

static void a_no_and_any_other_request_drop_the_question(void **state)
{
    static const char *const other[] = {"no",
                                        "no thanks",
                                        "never mind",
                                        "yes and no",
                                        "yes?",
                                        "yes, not now",
                                        "yes but tomorrow",
                                        "hello",
                                        "don't do it",
                                        "and the kitchen",
                                        "turn on the office fan"};
    bench *t = bench_new();
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ask(t, LAMP, HERE);
        expect_asked(t);
        ask(t, other[i], HERE);
        assert_null(strstr(text_of(t), "Bedroom Lamp."));
        ask(t, "yes", HERE);
        if (strcmp(other[i], "and the kitchen") != 0) /* that is asked about, too */
            expect_nothing_open(t);
    }
    stop(t);
}

static void a_question_is_of_its_session_alone(void **state)
{
    bench *t = bench_new();
    ask(t, LAMP, HERE);
    ask(t, "yes", ELSEWHERE);
    expect_nothing_open(t);
    ask(t, "yes", "");
    expect_nothing_open(t);
    assert_int_equal(
        try_ask(t, "{\"pipeline\":\"home\",\"input\":\"yes\",\"session\":\"s1\"}", (turn){.owner = "other"}),
        0);
    expect_nothing_open(t);
    ask(t, "yes", HERE);
    expect_calls(t, OFF);
    ask(t, LAMP, HERE);
    env_sim_run(fake_sim(), 121000);
    ask(t, "yes", HERE);
    expect_nothing_open(t);
    assert_int_equal(try_ask(t, "{\"input\":\"yes\",\"session\":\"\"}", (turn){0}), 400);
    assert_int_equal(try_ask(t, "{\"input\":\"yes\",\"session\":7}", (turn){0}), 400);
    stop(t);
}

static void a_token_answers_without_a_session(void **state)
{
    char more[128];
    bench *t = bench_new();
    ask(t, LAMP, "");
    snprintf(more, sizeof more, ",\"confirm\":\"%s\"", token_of(t));
    ask(t, "yes", more);
    expect_calls(t, OFF);
    char body[256];
    snprintf(body, sizeof body, "{\"pipeline\":\"home\",\"input\":\"yes\"%s}", more);
    assert_int_equal(try_ask(t, body, (turn){0}), 400);
    ask(t, LAMP, "");
    snprintf(more, sizeof more, ",\"confirm\":\"%s\"", token_of(t));
    ask(t, "no", more);
    expect_calls(t, "");
    stop(t);
}

/* The yes was for what was there then. */
static void a_yes_counts_for_the_same_devices_alone(void **state)
{
    bench *t = bench_new();
    ask(t, LAMP, HERE);
    ask(t, "yes", ",\"session\":\"s1\",\"devices\":[{\"id\":\"light.x\",\"name\":\"Attic Lamp\"}]");
    expect_calls(t, "");
    ask(t, LAMP, HERE);
    ask(t, "yes", ",\"session\":\"s1\",\"devices\":[{\"id\":\"lock.x\",\"name\":\"Gate\"}]");
    expect_calls(t, "");
    stop(t);
}

static void in_a_chat_the_message_before_is_the_question(void **state)
{
    static const struct {
        const char *request, *reply, *input, *calls;
    } rows[] = {
        {LAMP, ASKED, "yes", OFF},
        {LAMP, " " ASKED "\n", "Yes, please.", OFF},
        {LAMP, ASKED, "no", ""},
        {LAMP, ASKED, "yes, but not now", ""},
        {LAMP, OFFERED, "yes", ""},                  /* done already */
        {"hello", ASKED, "yes", ""},                 /* no such question came of that */
        {"unlock the front door", ASKED, "yes", ""}, /* nor of that */
        {LAMP, "Do you mean: Unlocking Front Door Lock.", "yes", ""},
        {LAMP, "I am not sure what you want. Do you mean: Unlocking Front Door Lock.", "yes", ""},
        {"don't touch the lamp", ASKED, "yes", ""},
    };
    bench *t = bench_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"pipeline\":\"home\",\"input\":\"%s\"}", rows[i].input);
        assert_int_equal(try_ask(t, body, (turn){rows[i].request, rows[i].reply, NULL}), 0);
        expect_calls(t, rows[i].calls);
    }
    assert_int_equal(
        try_ask(t, "{\"pipeline\":\"home\",\"input\":\"turn on the office fan\"}", (turn){LAMP, ASKED, NULL}),
        0);
    expect_calls(t, "fan.turn_on {\"target\":\"fan.office\"}");
    stop(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_remembers_its_last_turn),
        cmocka_unit_test(a_yes_does_what_was_offered_once),
        cmocka_unit_test(a_no_and_any_other_request_drop_the_question),
        cmocka_unit_test(a_question_is_of_its_session_alone),
        cmocka_unit_test(a_token_answers_without_a_session),
        cmocka_unit_test(a_yes_counts_for_the_same_devices_alone),
        cmocka_unit_test(in_a_chat_the_message_before_is_the_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
