/* The home pipeline of shoal.yaml with models that do what they like: what they may and may not bring about.
 */
#include "../../server/stages/fake_calls.h"

#include "json/json.h"
#include "rules/home.h"

static void answer_no_spans(noted *c)
{
    answer_spans(c, false);
}

/* The reply ends, or its worker dies. */
static void end_with(noted *c, int status)
{
    if (status)
        break_call(c);
    else
        end_reply(c, 0);
}

/* ---- a run --------------------------------------------------------------------------------------- */

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    process_input in;
    process_run *run;
    int n_done;
    int failure;
    bool partial;
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    t->partial = o->partial;
    if (o->failed)
        t->failure = o->failure->status;
    else
        t->failure = (t->answer = process_outcome_json(o)) ? 0 : SHOAL_ENOMEM;
}

static bench *start_body(const char *body)
{
    bench *t = calloc(1, sizeof *t);
    shoal_err err = {0};
    api_error e = {0};
    if (config_load(&t->config, &HOME_STAGES, SHOAL_SOURCE_DIR "/shoal.yaml", &err))
        fail_msg("%s", err.message);
    if (process_parse(&t->in, t->config, body, strlen(body), &e)) fail_msg("%s", e.message);
    call_context ctx = {.request_id = "r1"};
    t->in.time = fake_time();
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    return t;
}

/* Up to where a generator is asked, or the end: intent and slots are answered. */
static bench *start_with(const char *input, const char *more, const char *label)
{
    json_t *o = json_object();
    buf b = {0};
    buf_puts(&b, "{\"input\":");
    json_put_string(&b, input, strlen(input));
    buf_printf(&b, "%s}", more);
    bench *t = start_body(b.data);
    buf_done(&b);
    json_decref(o);
    for (size_t i = 0; i < t->b.n && i < 2; i++) {
        if (t->b.calls[i].task == CALL_CLASSIFY) answer_label(&t->b.calls[i], label, 0);
        if (t->b.calls[i].task == CALL_TAG) answer_no_spans(&t->b.calls[i]);
    }
    return t;
}

static bench *start(const char *input)
{
    return start_with(input, "", "iot_hue_lighton");
}

static void stop(bench *t)
{
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    config_free(t->config);
    free(t);
}

static const char *text_of(const bench *t)
{
    assert_int_equal(t->n_done, 1);
    const char *text = json_string_value(json_object_get(t->answer, "text"));
    assert_true(text && *text);
    return text;
}

/* "light.turn_on light.kitchen", "" when nothing is called. */
static const char *call_of(const bench *t)
{
    static char out[256];
    const json_t *call = json_object_get(t->answer, "tool_call");
    assert_int_equal(t->n_done, 1);
    if (json_is_null(call)) {
        assert_null(json_object_get(t->answer, "tool_calls"));
        return "";
    }
    snprintf(out, sizeof out, "%s %s", json_string_value(json_object_get(call, "name")),
             json_string_value(json_object_get(json_object_get(call, "arguments"), "target")));
    return out;
}

static const char *verdict_of(const bench *t, const char *stage)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(t->answer, "trace"), i, v)
    {
        if (strcmp(json_string_value(json_object_get(v, "stage")), stage) != 0) continue;
        const char *verdict = json_string_value(json_object_get(v, "verdict"));
        return verdict ? verdict : "";
    }
    return "";
}

static noted *generator(bench *t)
{
    noted *c = &t->b.calls[t->b.n - 1];
    assert_non_null(c->text);
    assert_int_equal(t->n_done, 0);
    return c;
}

/* ---- what is clear ------------------------------------------------------------------------------- */

static void clear_requests_ask_no_generator(void **state)
{
    static const struct {
        const char *input, *call, *verdict;
    } rows[] = {
        {"turn on the kitchen light", "light.turn_on light.kitchen", "act"},
        {"don't turn on the kitchen light", "", "leave"},
        {"turn on the kitchen light at 8 am", "", "later"},
        {"is the front door locked?", "", "answer"},
        {"turn on the sauna light", "", "missing"},
        {"lock the thermostat", "", "cannot"},
        {"hello", "", "talk"},
        {"qwertz uiop", "", "nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench *t = start(rows[i].input);
        assert_int_equal(t->b.n, 2); /* intent and slots */
        assert_string_equal(verdict_of(t, "request"), rows[i].verdict);
        assert_string_equal(call_of(t), rows[i].call);
        text_of(t);
        stop(t);
    }
}

static void several_calls_stand_beside_the_first(void **state)
{
    bench *t = start("turn on the kitchen light and start the vacuum");
    assert_string_equal(call_of(t), "light.turn_on light.kitchen");
    const json_t *all = json_object_get(t->answer, "tool_calls");
    assert_int_equal(json_array_size(all), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(all, 1), "name")), "vacuum.start");
    stop(t);
}

/* The worker of a classifier dies, or the text is too long for it. */
static void dead_classifiers_hold_nothing_back(void **state)
{
    bench *t = start_body("{\"input\":\"turn off the kitchen light\"}");
    assert_int_equal(t->b.n, 2);
    for (size_t i = 0; i < 2; i++) break_call(&t->b.calls[i]);
    assert_string_equal(text_of(t), "Turning off Kitchen Light.");
    assert_string_equal(call_of(t), "light.turn_off light.kitchen");
    assert_true(json_is_null(json_object_get(t->answer, "intent")));
    assert_int_equal(json_array_size(json_object_get(t->answer, "slots")), 0);
    assert_true(t->partial); /* so that no cache keeps it */
    stop(t);
    t = start("turn off the kitchen light");
    assert_string_equal(call_of(t), "light.turn_off light.kitchen");
    assert_false(t->partial);
    stop(t);
}

static void what_the_intent_is_never_makes_a_call(void **state)
{
    bench *t = start_with("qwertz uiop", "", "iot_hue_lightoff");
    assert_string_equal(call_of(t), "");
    stop(t);
    t = start_with("what will it be like out there on sunday or so", "", "weather_query");
    assert_string_equal(call_of(t), "");
    text_of(t);
    stop(t);
}

/* ---- what a generator may bring about ------------------------------------------------------------- */

static void a_choice_goes_out_with_its_options_and_few_devices(void **state)
{
    bench *t = start("stop the lounge speaker");
    noted *c = generator(t);
    assert_string_equal(c->model, "home-chat-s");
    assert_int_equal(c->n_texts, 2);
    assert_non_null(strstr(c->texts[0], "<tool_call>\n{\"name\": \"media_player.turn_off\""));
    assert_non_null(strstr(c->texts[1], "<tool_call>\n{\"name\": \"media_player.media_stop\""));
    assert_non_null(strstr(c->text, "media_player.lounge_speaker 'Lounge Speaker' = playing\"}"));
    assert_non_null(strstr(c->text, "\"Stop the lounge speaker\""));
    say_call(c, "Stopping.", "media_player.media_stop", "{\"target\":\"media_player.lounge_speaker\"}", 0);
    end_with(c, 0);
    assert_string_equal(call_of(t), "media_player.media_stop media_player.lounge_speaker");
    assert_string_equal(text_of(t), "Stopping Lounge Speaker.");
    assert_string_equal(verdict_of(t, "choice_checked"), "passed");
    stop(t);
}

/* What a generator may do instead of what it was asked. */
static void misbehave(noted *c, int how)
{
    static const char front[] = "{\"target\":\"lock.front_door\"}";
    static const char speaker[] = "{\"target\":\"media_player.lounge_speaker\"}";
    switch (how) {
    case 0: end_with(c, SHOAL_EUNAVAILABLE); return;
    case 1: say_call(c, "Certainly! I unlocked everything.", NULL, NULL, 0); break;
    case 2: say_call(c, "", "lock.unlock", front, 0); break;
    case 3: say_call(c, "", "media_player.media_stop", front, 0); break;
    case 4: say_call(c, "", "media_player.volume_up", speaker, 0); break;
    case 5: say_call(c, "", "media_player.media_stop", "{\"target\":", 0); break;
    case 6: say_call(c, "", "media_player.media_stop", "[]", 0); break;
    case 7: say_call(c, "", "", "", 0); break;
    case 8:
        say_call(c, "", "media_player.media_stop", speaker, 0);
        say_call(c, "", "lock.unlock", front, 1);
        break;
    case 9: say_call(c, "", "lock.unlock", front, 1 << 30); break;
    case 10:
        say_call(c, "", "media_player.media_stop", speaker, 0);
        end_with(c, SHOAL_EUNAVAILABLE); /* died in the middle */
        return;
    default:
        for (uint32_t i = 0; i < 12; i++) say_call(c, "", "media_player.media_stop", speaker, i);
        break;
    }
    end_with(c, 0);
}

static void a_generator_that_misbehaves_calls_nothing(void **state)
{
    for (int how = 0; how <= 11; how++) {
        bench *t = start("stop the lounge speaker");
        misbehave(generator(t), how);
        if (strcmp(call_of(t), "") != 0) fail_msg("%d: %s", how, call_of(t));
        assert_null(strstr(text_of(t), "unlocked"));
        assert_string_equal(verdict_of(t, "choice_checked"), "refused");
        stop(t);
    }
}

static void a_proposal_asks_and_never_acts(void **state)
{
    bench *t = start("tickle the garden pump");
    noted *c = generator(t);
    assert_true(c->n_texts > 0);
    for (size_t i = 0; i < c->n_texts; i++) assert_non_null(strstr(c->texts[i], "switch.garden_pump"));
    say_call(c, "On.", "switch.turn_on", "{\"target\":\"switch.garden_pump\"}", 0);
    end_with(c, 0);
    assert_string_equal(call_of(t), "");
    assert_non_null(strstr(text_of(t), "Turning on Garden Pump."));
    assert_string_equal(verdict_of(t, "choice_checked"), "asked");
    stop(t);
    for (int how = 0; how <= 11; how++) {
        t = start("tickle the lounge speaker");
        misbehave(generator(t), how);
        assert_string_equal(call_of(t), "");
        text_of(t);
        stop(t);
    }
}

/* ---- sensor lines ---------------------------------------------------------------------------------- */

#define PUMP "sensor vibration asset=pump-12 change=+64% threshold=20% window=30s"

static void a_line_goes_to_the_alert_alone(void **state)
{
    bench *t = start_body("{\"input\":\"" PUMP "\"}");
    assert_int_equal(t->b.n, 1);
    noted *c = generator(t);
    assert_int_equal(c->n_texts, 0);
    say_call(c, "Pump 12 shows a 64% increase in vibration. It will explode.", NULL, NULL, 0);
    say_call(c, "", "light.turn_on", "{\"target\":\"light.kitchen\"}", 0);
    end_with(c, 0);
    assert_non_null(strstr(text_of(t), "pump-12 shows a 64% increase in vibration."));
    assert_null(strstr(text_of(t), "explode"));
    assert_string_equal(call_of(t), "");
    assert_string_equal(verdict_of(t, "alert_checked"), "passed");
    stop(t);
}

static void an_alert_comes_whatever_the_generator_does(void **state)
{
    for (int how = 0; how <= 2; how++) {
        bench *t = start_body("{\"input\":\"" PUMP "\"}");
        noted *c = generator(t);
        if (how == 1) say_call(c, "pump-12 is fine.", NULL, NULL, 0);
        end_with(c, how == 0 ? SHOAL_EUNAVAILABLE : 0);
        assert_string_equal(text_of(t), "pump-12 shows a 64% increase in vibration over 30 s (limit 20%). "
                                        "Schedule an inspection.");
        assert_string_equal(verdict_of(t, "alert_checked"), "repaired");
        stop(t);
    }
}

static void a_line_that_cannot_be_read_goes_no_further(void **state)
{
    bench *t = start_body("{\"input\":\"sensor turn on the kitchen light\"}");
    assert_int_equal(t->b.n, 0);
    assert_string_equal(call_of(t), "");
    assert_non_null(strstr(text_of(t), "I can't read this sensor line"));
    assert_string_equal(verdict_of(t, "line"), "unreadable");
    stop(t);
}

/* ---- device lists ---------------------------------------------------------------------------------- */

static char *crowd(void)
{
    buf b = {0};
    buf_puts(&b, ",\"devices\":[");
    for (int i = 0; i < PIPELINE_DEVICES_MAX; i++)
        buf_printf(&b, "%s{\"id\":\"media_player.r%d\",\"name\":\"Room %d Speaker\"}", i ? "," : "", i, i);
    buf_putc(&b, ']');
    return buf_take(&b);
}

static void of_many_devices_twelve_at_most_are_in_the_prompt(void **state)
{
    char *devices = crowd();
    bench *t = start_with("turn up the room 200 speaker", devices, "audio_volume_up");
    assert_string_equal(call_of(t), "media_player.volume_up media_player.r200");
    stop(t);
    t = start_with("stop the room 200 speaker", devices, "audio_volume_mute");
    noted *c = generator(t);
    size_t n = 0;
    for (const char *p = c->text; (p = strstr(p, "media_player.r")); p++) n++;
    assert_int_equal(n, PIPELINE_NEAR_DEVICES);
    assert_non_null(strstr(c->text, "media_player.r200 'Room 200 Speaker' = \"}")); /* last */
    end_with(c, 0);
    stop(t);
    free(devices);
}

static void devices_come_with_aliases_and_areas_and_without_states(void **state)
{
    static const char list[] =
        ",\"devices\":[{\"id\":\"light.a\",\"name\":\"Stehlampe\",\"aliases\":[\"the big one\"]},"
        "{\"id\":\"light.b\",\"name\":\"Ceiling\",\"area\":\"Attic\",\"state\":null},"
        "{\"id\":\"lock.c\",\"name\":\"Gate Lock\",\"state\":true,\"area\":\"\"}]";
    static const char *const rows[][2] = {
        {"turn on the big one", "light.turn_on light.a"},
        {"turn on the attic light", "light.turn_on light.b"},
        {"unlock the gate", "lock.unlock lock.c"},
        {"turn on the kitchen light", ""}, /* the pipeline's own devices do not count */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench *t = start_with(rows[i][0], list, "iot_hue_lighton");
        if (strcmp(call_of(t), rows[i][1]) != 0) fail_msg("%s: %s", rows[i][0], text_of(t));
        stop(t);
    }
    bench *t = start_with("is the ceiling on?", list, "iot_hue_lighton");
    assert_string_equal(text_of(t), "I don't know how Ceiling is.");
    stop(t);
}

static void an_empty_list_is_a_home_without_devices(void **state)
{
    bench *t = start_with("turn on the kitchen light", ",\"devices\":[]", "iot_hue_lighton");
    assert_string_equal(call_of(t), "");
    text_of(t);
    stop(t);
}

static void fields_that_are_not_known_are_refused(void **state)
{
    static const char *const bodies[] = {
        "{\"input\":\"a\",\"Devices\":[]}",
        "{\"input\":\"a\",\"home\":{}}",
        "{\"input\":\"a\",\"devices\":[{\"id\":\"a.b\",\"name\":\"C\",\"room\":\"D\"}]}",
        "{\"input\":\"a\",\"devices\":[{\"id\":\"a.b\",\"name\":\"C\",\"aliases\":\"D\"}]}",
        "{\"input\":\"a\",\"devices\":[{\"id\":\"a.b\",\"name\":\"C\",\"area\":5}]}",
        "{\"input\":\"a\",\"devices\":{}}",
    };
    gateway_config *c = NULL;
    assert_int_equal(config_load(&c, &HOME_STAGES, SHOAL_SOURCE_DIR "/shoal.yaml", NULL), 0);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        process_input in = {0};
        api_error e = {0};
        if (process_parse(&in, c, bodies[i], strlen(bodies[i]), &e) != 400) fail_msg("%s", bodies[i]);
    }
    config_free(c);
}

/* ---- no memory -------------------------------------------------------------------------------------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Allocation number `countdown` finds no memory; negative: all do. Sanitizers bring their own allocator. */
static long countdown = -1;

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static bool refuses(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *malloc(size_t n)
{
    return refuses() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return refuses() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return refuses() ? NULL : __libc_realloc(p, n);
}

/* True: some allocation was refused. */
static bool ground_without(long n, const lexicon *l, const device *home, const char *text)
{
    grounding g = {0};
    arena *a = arena_new(0);
    countdown = n;
    int rc = ground(&g, l, home, 2, text, a, NULL);
    bool refused = countdown < 0;
    countdown = -1;
    if (rc) {
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(g.text);
    } else {
        assert_int_equal(g.verdict, GROUND_ACT);
        assert_int_equal(g.n_options, 1);
        assert_int_equal(g.options[0].n_calls, 2);
        assert_string_equal(g.options[0].calls[1].name, "lock.lock");
        assert_string_equal(g.text, "Turning on Küchenlicht and locking Gate.");
    }
    arena_free(a);
    return refused;
}

static void a_rule_without_memory_fails_and_gives_no_other_answer(void **state)
{
    static const device home[] = {{.id = "light.a", .name = "Küchenlicht"}, {.id = "lock.b", .name = "Gate"}};
    lexicon *l = NULL;
    shoal_err err;
    long n = 0;
    if (lexicon_load(&l, SHOAL_SOURCE_DIR "/lexicons/home.yaml", &err)) fail_msg("%s", err.message);
    while (ground_without(n, l, home, "turn on the Küchenlicht and lock the gate")) n++;
    assert_true(n > 20); /* it came to the end, past many allocations */
    lexicon_free(l);
}

/* The whole run: an error, or the right answer. */
static void a_run_without_memory_fails_or_answers_right(void **state)
{
    static const char body[] = "{\"input\":\"sensor turn on the kitchen light\"}";
    bool refused = true;
    long n = 0;
    bench t = {0};
    shoal_err err;
    if (config_load(&t.config, &HOME_STAGES, SHOAL_SOURCE_DIR "/shoal.yaml", &err))
        fail_msg("%s", err.message);
    for (; refused; n++) {
        api_error e = {0};
        call_context ctx = {.request_id = "r1"};
        assert_int_equal(process_parse(&t.in, t.config, body, strlen(body), &e), 0);
        t.in.time = fake_time();
        t.n_done = t.failure = 0;
        countdown = n;
        int rc = process_run_start(&t.run, &t.in, fake_calls_init(&t.b), &ctx, on_done, &t, NULL);
        refused = countdown < 0;
        countdown = -1;
        assert_int_equal(t.n_done, rc ? 0 : 1);
        assert_int_equal(rc ? rc : t.failure, t.answer ? 0 : SHOAL_ENOMEM);
        if (t.answer) {
            assert_non_null(strstr(text_of(&t), "I can't read this sensor line"));
            assert_string_equal(call_of(&t), "");
        }
        json_decref(t.answer);
        t.answer = NULL;
        process_input_done(&t.in);
    }
    assert_true(n > 10);
    config_free(t.config);
}
#else
static void a_run_without_memory_fails_or_answers_right(void **state)
{
    fprintf(stderr, "SKIP %s: a sanitizer brings its own allocator\n", __func__);
    skip();
}

static void a_rule_without_memory_fails_and_gives_no_other_answer(void **state)
{
    fprintf(stderr, "SKIP %s: a sanitizer brings its own allocator\n", __func__);
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clear_requests_ask_no_generator),
        cmocka_unit_test(several_calls_stand_beside_the_first),
        cmocka_unit_test(dead_classifiers_hold_nothing_back),
        cmocka_unit_test(what_the_intent_is_never_makes_a_call),
        cmocka_unit_test(a_choice_goes_out_with_its_options_and_few_devices),
        cmocka_unit_test(a_generator_that_misbehaves_calls_nothing),
        cmocka_unit_test(a_proposal_asks_and_never_acts),
        cmocka_unit_test(a_line_goes_to_the_alert_alone),
        cmocka_unit_test(an_alert_comes_whatever_the_generator_does),
        cmocka_unit_test(a_line_that_cannot_be_read_goes_no_further),
        cmocka_unit_test(of_many_devices_twelve_at_most_are_in_the_prompt),
        cmocka_unit_test(devices_come_with_aliases_and_areas_and_without_states),
        cmocka_unit_test(an_empty_list_is_a_home_without_devices),
        cmocka_unit_test(fields_that_are_not_known_are_refused),
        cmocka_unit_test(a_rule_without_memory_fails_and_gives_no_other_answer),
        cmocka_unit_test(a_run_without_memory_fails_or_answers_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
