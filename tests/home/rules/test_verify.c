/* The rules of verify: what each lets out, what it holds back and why, and what it puts in its place. */
#include "verify_home.h"

#include "ensemble/verify_json.h"
#include "ensemble/verify_nli.h"

typedef struct room {
    lexicon *lex;
    arena *mem;
} room;

static int open_room(void **state)
{
    static room r;
    r = (room){home_lexicon(), arena_new(0)};
    *state = &r;
    return 0;
}

static int close_room(void **state)
{
    room *r = *state;
    lexicon_free(r->lex);
    arena_free(r->mem);
    return 0;
}

static verify_verdict hold(const room *r, const verify_case *k, verify_answer a)
{
    verify_verdict v;
    assert_int_equal(rule_answer_devices.apply(&v, r->lex, k, &a, r->mem), 0);
    return v;
}

static verify_verdict hold_said(const room *r, const char *user, verify_answer a)
{
    verify_case k = home_case(r->mem, user);
    return hold(r, &k, a);
}

/* ---- what is read of a request ------------------------------------------------------------------- */

static void lines_of_devices_are_read_exactly(void **state)
{
    const room *r = *state;
    static const struct {
        const char *line, *id, *name, *state;
    } GOOD[] = {
        {"light.kitchen 'Kitchen Light' = off", "light.kitchen", "Kitchen Light", "off"},
        {"  - light.a 'Lamp' = on\r", "light.a", "Lamp", "on"},
        {"light.a 'The 'big' = one' = on, 40%", "light.a", "The 'big' = one", "on, 40%"},
        {"fan.x 'Lüfter' =", "fan.x", "Lüfter", ""},
        {"a.b.c 'D' =  x", "a.b.c", "D", " x"},
    };
    static const char *const BAD[] = {"",
                                      "light.kitchen",
                                      "light.kitchen 'Kitchen Light'",
                                      "light 'Lamp' = on",
                                      ".kitchen 'Lamp' = on",
                                      "light. 'Lamp' = on",
                                      "light.kitchen \"Lamp\" = on",
                                      "the light.kitchen 'Lamp' = on",
                                      "light.kitchen '' = on",
                                      "'light.a' 'b' = on"};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        device d;
        bool nomem = false;
        assert_true(verify_case_device(&d, GOOD[i].line, strlen(GOOD[i].line), r->mem, &nomem));
        assert_string_equal(d.id, GOOD[i].id);
        assert_string_equal(d.name, GOOD[i].name);
        assert_string_equal(d.state, GOOD[i].state);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        device d;
        bool nomem = false;
        if (verify_case_device(&d, BAD[i], strlen(BAD[i]), r->mem, &nomem)) fail_msg("taken: %s", BAD[i]);
    }
}

static void who_writes_a_message_decides_what_it_is_good_for(void **state)
{
    const room *r = *state;
    verify_case k = home_read(r->mem,
                              "[{\"role\":\"system\",\"content\":\"light.a 'Lamp' = on\"},"
                              "{\"role\":\"user\",\"content\":\"lock.x 'Safe' = locked\"},"
                              "{\"role\":\"assistant\",\"content\":\"lock.y 'Vault' = locked\"},"
                              "{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"light.b "
                              "'Spot' = on\\nlight.a 'Lamp' = "
                              "off\"}]},"
                              "{\"role\":\"tool\",\"content\":\"lock.z 'Door' = open\"},"
                              "{\"role\":\"user\",\"content\":\"open the safe\"}]",
                              "");
    assert_int_equal(k.n_devices, 2);
    assert_string_equal(k.devices[0].id, "light.a");
    assert_string_equal(k.devices[0].state, "off"); /* the later line counts */
    assert_string_equal(k.devices[1].id, "light.b");
    assert_string_equal(k.question, "open the safe");
    assert_null(strstr(k.context, "Safe"));
    assert_null(strstr(k.known, "Vault"));
    assert_non_null(strstr(k.context, "Door"));
    assert_non_null(strstr(k.known, "Safe"));
}

static void what_was_called_since_the_question_is_known(void **state)
{
    const room *r = *state;
    const char *before =
        "[{\"role\":\"user\",\"content\":\"a\"},"
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\","
        "\"function\":{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.a\"}}}]},"
        "{\"role\":\"tool\",\"content\":\"done\"}";
    verify_case k = home_read(r->mem, arena_printf(r->mem, "%s]", before), "");
    assert_int_equal(k.n_made, 1);
    assert_string_equal(k.made[0].name, "light.turn_on");
    assert_string_equal(k.made[0].arguments, "{\"target\":\"light.a\"}");
    k = home_read(r->mem, arena_printf(r->mem, "%s,{\"role\":\"user\",\"content\":\"b\"}]", before), "");
    assert_int_equal(k.n_made, 0);
}

static void a_prompt_is_a_question_and_nothing_else(void **state)
{
    const room *r = *state;
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    verify_case k;
    q.text = "system\nlight.a 'Lamp' = on\nturn on the lamp";
    q.echo = true;
    assert_int_equal(verify_case_read(&k, &q, r->mem), 0);
    assert_int_equal(k.n_devices, 0);
    assert_string_equal(k.question, q.text);
    assert_string_equal(k.given, q.text);
    assert_string_equal(k.context, "");
    assert_int_equal(hold(r, &k, home_call(r->mem, "", "light.turn_on", "light.a")).why, VERIFY_NO_DEVICE);
}

static void what_is_no_json_counts_as_nothing(void **state)
{
    const room *r = *state;
    static const char *const ODD[] = {"",
                                      "nonsense",
                                      "{}",
                                      "[1,null,[]]",
                                      "[{}]",
                                      "[{\"role\":3,\"content\":4}]",
                                      "[{\"role\":\"user\"}]",
                                      "[{\"role\":\"assistant\",\"tool_calls\":{}}]"};
    for (size_t i = 0; i < sizeof ODD / sizeof *ODD; i++) {
        verify_case k = home_read(r->mem, ODD[i], ODD[i]);
        assert_int_equal(k.n_devices, 0);
        assert_string_equal(k.question, "");
    }
}

/* ---- devices ------------------------------------------------------------------------------------- */

static void what_was_asked_passes(void **state)
{
    const room *r = *state;
    const char *on = "turn on the kitchen light";
    assert_int_equal(
        hold_said(r, on, home_call(r->mem, "Turning on Kitchen Light.", "light.turn_on", "light.kitchen"))
            .why,
        VERIFY_FINE);
    assert_int_equal(hold_said(r, on, home_call(r->mem, "", "light.turn_on", "light.kitchen")).why,
                     VERIFY_FINE);
    device_call warm = {"climate.set_temperature", "{\"temperature\": 21, \"target\": \"climate.hall\"}"};
    verify_answer a = home_calls(r->mem, "Setting Hall Thermostat to 21 degrees.", &warm, 1);
    assert_int_equal(hold_said(r, "set the hall thermostat to 21 degrees", a).why, VERIFY_FINE);
}

static void what_was_not_asked_is_mended(void **state)
{
    const room *r = *state;
    const struct {
        const char *user;
        verify_answer a;
        verify_why why;
        const char *service, *text; /* "": no call */
    } CASES[] = {
        {"turn on the kitchen light", home_call(r->mem, "x", "light.turn_off", "light.kitchen"),
         VERIFY_OTHER_CALLS, "light.turn_on", "Turning on Kitchen Light."},
        {"turn on the kitchen light", home_call(r->mem, "x", "light.turn_on", "light.hall"),
         VERIFY_OTHER_CALLS, "light.turn_on", "Turning on Kitchen Light."},
        {"turn on the kitchen light", home_call(r->mem, "x", "light.turn_on", "light.attic"),
         VERIFY_NO_DEVICE, "light.turn_on", "Turning on Kitchen Light."},
        {"turn on the kitchen light", home_text("Turning on Kitchen Light."), VERIFY_NO_CALL, "light.turn_on",
         "Turning on Kitchen Light."},
        {"turn on the kitchen light", home_text(""), VERIFY_NO_CALL, "light.turn_on",
         "Turning on Kitchen Light."},
        {"unlock the front door",
         home_call(r->mem, "Locking Front Door Lock.", "lock.unlock", "lock.front_door"), VERIFY_OTHER_TEXT,
         "lock.unlock", "Unlocking Front Door Lock."},
        {"unlock the front door",
         home_call(r->mem, "Unlocking Back Door Lock.", "lock.unlock", "lock.front_door"), VERIFY_OTHER_TEXT,
         "lock.unlock", "Unlocking Front Door Lock."},
        {"unlock the front door",
         home_call(r->mem, "Unlocking Front Door Lock and Hall Light.", "lock.unlock", "lock.front_door"),
         VERIFY_OTHER_TEXT, "lock.unlock", "Unlocking Front Door Lock."},
        {"unlock the front door",
         home_call(r->mem, "Unlocking Front Door Lock in 5 minutes.", "lock.unlock", "lock.front_door"),
         VERIFY_OTHER_TEXT, "lock.unlock", "Unlocking Front Door Lock."},
        {"don't unlock the front door",
         home_call(r->mem, "Unlocking Front Door Lock.", "lock.unlock", "lock.front_door"), VERIFY_NOT_TO_ACT,
         "", NULL},
        {"unlock the front door in ten minutes", home_call(r->mem, "x", "lock.unlock", "lock.front_door"),
         VERIFY_NOT_TO_ACT, "", NULL},
        {"is the kitchen light on?", home_text("Yes, Kitchen Light is on."), VERIFY_OTHER_REPLY, "",
         "No, Kitchen Light is off."},
        {"turn on the attic light", home_text("Turning on Attic Light."), VERIFY_OTHER_REPLY, "", NULL},
        {"hello", home_call(r->mem, "Hello.", "lock.unlock", "lock.front_door"), VERIFY_NOT_TO_ACT, "", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        verify_verdict v = hold_said(r, CASES[i].user, CASES[i].a);
        if (v.why != CASES[i].why) fail_msg("%zu %s: %s", i, CASES[i].user, verify_why_text(v.why));
        assert_true(v.mends);
        assert_int_equal(v.mended.n_calls, *CASES[i].service != '\0');
        if (*CASES[i].service) assert_string_equal(v.mended.calls[0].name, CASES[i].service);
        if (CASES[i].text) assert_string_equal(v.mended.text, CASES[i].text);
        /* What a rule mends, it passes. */
        assert_int_equal(hold_said(r, CASES[i].user, v.mended).why, VERIFY_FINE);
    }
}

/* Of many devices the rule's text names some; of more than an answer can call none is. */
static void groups_are_called_whole_or_not_at_all(void **state)
{
    const room *r = *state;
    for (int n = 2; n <= 40; n += 6) {
        buf list = {0};
        for (int i = 0; i < n; i++) buf_printf(&list, "light.r%d 'Lamp R%d' = on\\n", i, i);
        verify_case k = home_read(r->mem,
                                  arena_printf(r->mem,
                                               "[{\"role\":\"system\",\"content\":\"%s\"},{\"role\":\"user\","
                                               "\"content\":\"turn off everything\"}]",
                                               list.data),
                                  "");
        buf_done(&list);
        assert_int_equal(k.n_devices, n);
        verify_verdict v = hold(r, &k, home_call(r->mem, "x", "light.turn_off", "light.r0"));
        assert_int_equal(v.why, VERIFY_OTHER_CALLS);
        assert_int_equal(v.mends, n <= VERIFY_CALLS_MAX);
        if (!v.mends) continue;
        assert_int_equal(v.mended.n_calls, n);
        assert_int_equal(hold(r, &k, v.mended).why, VERIFY_FINE);
    }
}

static void what_is_no_request_is_not_mended_into_one(void **state)
{
    const room *r = *state;
    verify_verdict v = hold_said(r, "what is love", home_text(HOME_NOTHING));
    assert_int_equal(v.why, VERIFY_FINE);
    v = hold_said(r, "what is love", home_text("Nobody knows.")); /* nor do the rules */
    assert_int_equal(v.why, VERIFY_OTHER_TEXT);
    v = hold_said(r, "what is love", home_text("Front Door Lock is open."));
    assert_int_equal(v.why, VERIFY_OTHER_TEXT);
    assert_false(v.mends);
    v = hold_said(r, "what is love", home_text("Well, I am unlocking the door."));
    assert_int_equal(v.why, VERIFY_OTHER_TEXT);
    v = hold_said(r, "what is love", home_call(r->mem, "x", "lock.unlock", "lock.front_door"));
    assert_int_equal(v.why, VERIFY_NOT_TO_ACT);
    assert_false(v.mends);
    v = hold_said(r, "what is love", home_text("{\"name\": \"lock.unlock\", \"arguments\": {}}"));
    assert_int_equal(v.why, VERIFY_CALL_AS_TEXT);
    v = hold_said(r, "Sperr die Haustür auf", home_call(r->mem, "x", "lock.unlock", "lock.front_door"));
    assert_int_equal(v.why, VERIFY_NOT_TO_ACT);
}

/* Two services fit: the model may choose, and nothing else. */
static void of_several_meanings_one_is_chosen(void **state)
{
    const room *r = *state;
    verify_case k = home_read(r->mem,
                              "[{\"role\":\"system\",\"content\":\"media_player.den 'Den Speaker' = "
                              "playing\"},{\"role\":\"user\",\"content\":\"stop the den speaker\"}]",
                              "");
    verify_verdict v = hold(r, &k, home_call(r->mem, "x", "media_player.turn_on", "media_player.den"));
    assert_int_equal(v.why, VERIFY_OTHER_CALLS);
    assert_false(v.mends);
    assert_true(v.n_options > 1);
    assert_int_equal(hold(r, &k, home_text("Which?")).why, VERIFY_NO_CALL);
    for (size_t i = 0; i < v.n_options; i++) {
        verify_answer a = {v.options[i].say, v.options[i].calls, v.options[i].n_calls};
        assert_int_equal(hold(r, &k, a).why, VERIFY_FINE);
    }
}

static void after_results_only_the_rest_may_follow(void **state)
{
    const room *r = *state;
    const char *form =
        "[{\"role\":\"system\",\"content\":\"%s\"},{\"role\":\"user\",\"content\":\"turn on the kitchen "
        "light and lock the front door\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":"
        "\"1\",\"type\":\"function\",\"function\":{\"name\":\"%s\",\"arguments\":{\"target\":\"%s\"}}}]},"
        "{\"role\":\"tool\",\"content\":\"ok\"}]";
    verify_case k =
        home_read(r->mem, arena_printf(r->mem, form, HOME_SYSTEM, "light.turn_on", "light.kitchen"), "");
    verify_answer lock = home_call(r->mem, "", "lock.lock", "lock.front_door"),
                  again = home_call(r->mem, "", "light.turn_on", "light.kitchen"),
                  other = home_call(r->mem, "", "lock.unlock", "lock.front_door");
    assert_int_equal(hold(r, &k, lock).why, VERIFY_FINE);
    assert_int_equal(hold(r, &k, again).why, VERIFY_OTHER_CALLS);
    assert_int_equal(hold(r, &k, other).why, VERIFY_OTHER_CALLS);
    assert_int_equal(hold(r, &k, home_text("Turning on Kitchen Light.")).why, VERIFY_FINE);
    assert_int_equal(hold(r, &k, home_text("Locking Front Door Lock.")).why, VERIFY_OTHER_TEXT);
    assert_false(hold(r, &k, again).mends); /* it would be done twice */
}

static void tools_that_were_not_offered_are_not_called(void **state)
{
    const room *r = *state;
    const char *tools = "[{\"type\":\"function\",\"function\":{\"name\":\"light.turn_on\"}},"
                        "{\"type\":\"function\",\"function\":{\"name\":\"get_weather\"}}]";
    verify_case k = home_read(r->mem, home_messages(r->mem, "turn on the kitchen light"), tools);
    assert_int_equal(hold(r, &k, home_call(r->mem, "", "light.turn_on", "light.kitchen")).why, VERIFY_FINE);
    k = home_read(r->mem, home_messages(r->mem, "lock the front door"), tools);
    verify_verdict v = hold(r, &k, home_call(r->mem, "", "lock.lock", "lock.front_door"));
    assert_int_equal(v.why, VERIFY_NO_TOOL);
    /* Tools without a home are held to their list alone. */
    k = home_read(r->mem, "[{\"role\":\"user\",\"content\":\"weather?\"}]", tools);
    device_call weather = {"get_weather", "{\"city\":\"Bern\"}"}, unknown = {"get_money", "{}"},
                broken = {"get_weather", "{"};
    assert_int_equal(hold(r, &k, home_calls(r->mem, "", &weather, 1)).why, VERIFY_FINE);
    v = hold(r, &k, home_calls(r->mem, "It rains.", &weather, 1)); /* nobody knows whether it does */
    assert_int_equal(v.why, VERIFY_NO_LIST);
    assert_true(v.mends && v.mended.n_calls == 1 && !*v.mended.text);
    assert_int_equal(hold(r, &k, home_text("It rains.")).why, VERIFY_NO_LIST);
    assert_int_equal(hold(r, &k, home_calls(r->mem, "", &unknown, 1)).why, VERIFY_NO_TOOL);
    assert_int_equal(hold(r, &k, home_calls(r->mem, "", &broken, 1)).why, VERIFY_BROKEN_CALL);
}

/* Names of tools may have no dots. */
static void tools_may_be_named_after_services(void **state)
{
    const room *r = *state;
    static const char *const NAMES[] = {"light.turn_on", "light_turn_on", "turn_on"};
    for (size_t i = 0; i < 3; i++) {
        const char *tools =
            arena_printf(r->mem, "[{\"type\":\"function\",\"function\":{\"name\":\"%s\"}}]", NAMES[i]);
        verify_case k = home_read(r->mem, home_messages(r->mem, "turn on the kitchen light"), tools);
        verify_answer a = home_call(r->mem, "Turning on Kitchen Light.", NAMES[i], "light.kitchen");
        assert_int_equal(hold(r, &k, a).why, VERIFY_FINE);
        verify_verdict v = hold(r, &k, home_call(r->mem, "x", NAMES[i], "light.hall"));
        assert_true(v.mends);
        assert_string_equal(v.mended.calls[0].name, NAMES[i]);
        assert_int_equal(hold(r, &k, v.mended).why, VERIFY_FINE);
        k = home_read(r->mem, home_messages(r->mem, "unlock the front door"), tools);
        assert_int_equal(hold(r, &k, home_call(r->mem, "", NAMES[i], "light.kitchen")).why,
                         VERIFY_OTHER_CALLS);
    }
}

static void what_the_request_says_of_calls_is_kept(void **state)
{
    const room *r = *state;
    const char *tools = "[{\"type\":\"function\",\"function\":{\"name\":\"light.turn_on\"}},"
                        "{\"type\":\"function\",\"function\":{\"name\":\"lock.unlock\"}}]";
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    verify_case k;
    verify_answer unlock = home_call(r->mem, "", "lock.unlock", "lock.front_door"),
                  lamp = home_call(r->mem, "", "light.turn_on", "light.kitchen"),
                  other = home_call(r->mem, "", "light.turn_on", "light.hall");
    q.tools_json = (char *)(uintptr_t)tools;
    q.messages_json = (char *)(uintptr_t)home_messages(r->mem, "unlock the front door");
    q.parallel_tool_calls = true;
    q.tool_choice = SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NAMED;
    q.tool_name = "light.turn_on";
    assert_int_equal(verify_case_read(&k, &q, r->mem), 0);
    assert_int_equal(hold(r, &k, unlock).why, VERIFY_NO_TOOL);
    q.tool_choice = SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE;
    assert_int_equal(verify_case_read(&k, &q, r->mem), 0);
    verify_verdict v = hold(r, &k, unlock);
    assert_int_equal(v.why, VERIFY_NOT_TO_ACT);
    assert_false(v.mends);
    assert_int_equal(hold(r, &k, home_text("Unlocking Front Door Lock.")).why, VERIFY_OTHER_TEXT);
    assert_int_equal(hold(r, &k, home_text("I would rather not.")).why, VERIFY_OTHER_TEXT);
    q.tool_choice = SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_AUTO;
    q.parallel_tool_calls = false; /* one at a time, in any order */
    q.messages_json =
        (char *)(uintptr_t)home_messages(r->mem, "unlock the front door and turn on the kitchen light");
    assert_int_equal(verify_case_read(&k, &q, r->mem), 0);
    assert_int_equal(hold(r, &k, unlock).why, VERIFY_FINE);
    assert_int_equal(hold(r, &k, lamp).why, VERIFY_FINE);
    assert_int_equal(hold(r, &k, other).why, VERIFY_OTHER_CALLS);
    v = hold(r, &k, home_text("Later."));
    assert_int_equal(v.why, VERIFY_NO_CALL);
    assert_false(v.mends);
}

/* What nobody can check is not let out, however likely it sounds. */
static void sentences_without_a_list_or_of_no_form_are_held(void **state)
{
    static const struct {
        const char *user, *text;
    } ROWS[] = {{"unlock the front door", "Front Door is open."},
                {"is the front door locked?", "Front Door is 0."},
                {"what's the weather", "I think the best"},
                {"hello", "Hello."},
                {"what is love", HOME_NOTHING}};
    const room *r = *state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        verify_case k = home_read(
            r->mem, arena_printf(r->mem, "[{\"role\":\"user\",\"content\":\"%s\"}]", ROWS[i].user), "");
        verify_verdict v = hold(r, &k, home_text(ROWS[i].text));
        assert_int_equal(v.why, VERIFY_NO_LIST);
        assert_false(v.mends);
    }
    static const char *const SUMS[] = {"I can't find bombing x1 in this home.", "4", "It is 4.",
                                       "Kitchen Light is off.", "No, Kitchen Light is off. It is 4."};
    for (size_t i = 0; i < sizeof SUMS / sizeof *SUMS; i++) {
        verify_verdict v = hold_said(r, "2+2", home_text(SUMS[i]));
        assert_int_equal(v.why, VERIFY_OTHER_TEXT);
        assert_false(v.mends);
    }
}

/* After results the rules' own sentences may follow, and what was done already is told again if nothing else is. */
static void after_results_only_sentences_of_the_rules_follow(void **state)
{
    static const struct {
        const char *text;
        bool fine;
    } ROWS[] = {{"Turning on Kitchen Light.", true},
                {"", true},
                {"Done.", false},
                {"Turning on Kitchen Light, and it looks great.", false},
                {"Turning on", false},
                {"Turning on Kitchen Light and Hall Light.", false},
                {"Kitchen Light is on.", true},
                {"Kitchen Light is blorp.", false}};
    const room *r = *state;
    const char *form =
        "[{\"role\":\"system\",\"content\":\"%s\"},{\"role\":\"user\",\"content\":\"turn on the kitchen "
        "light\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"1\",\"type\":"
        "\"function\","
        "\"function\":{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.kitchen\"}}}]},"
        "{\"role\":\"tool\",\"content\":\"ok\"}]";
    verify_case k = home_read(r->mem, arena_printf(r->mem, form, HOME_SYSTEM), "");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        verify_verdict v = hold(r, &k, home_text(ROWS[i].text));
        if ((v.why == VERIFY_FINE) != ROWS[i].fine) fail_msg("%s: %s", ROWS[i].text, verify_why_text(v.why));
        if (ROWS[i].fine) continue;
        assert_true(v.mends);
        assert_int_equal(v.mended.n_calls, 0);
        assert_string_equal(v.mended.text, "Turning on Kitchen Light.");
    }
}

static void without_a_lexicon_lists_are_all_there_is(void **state)
{
    const room *r = *state;
    const room bare = {NULL, r->mem};
    verify_case k = home_case(r->mem, "whatever");
    assert_int_equal(hold(&bare, &k, home_call(r->mem, "x", "lock.unlock", "lock.front_door")).why,
                     VERIFY_FINE);
    assert_int_equal(hold(&bare, &k, home_call(r->mem, "x", "lock.unlock", "lock.back_door")).why,
                     VERIFY_NO_DEVICE);
    device_call nested = {"lock.unlock",
                          "{\"target\":\"lock.front_door\",\"more\":[{\"x\":\"lock.vault\"}]}"},
                none = {"lock.unlock", "{}"}, number = {"lock.unlock", "{\"target\":3}"};
    assert_int_equal(hold(&bare, &k, home_calls(r->mem, "x", &nested, 1)).why, VERIFY_NO_DEVICE);
    assert_int_equal(hold(&bare, &k, home_calls(r->mem, "x", &none, 1)).why, VERIFY_NO_DEVICE);
    assert_int_equal(hold(&bare, &k, home_calls(r->mem, "x", &number, 1)).why, VERIFY_NO_DEVICE);
}

static void calls_need_a_check_that_knows_them(void **state)
{
    const room *r = *state;
    verify_check numbers = {.kind = VERIFY_NUMBERS}, both[] = {numbers, {.kind = VERIFY_DEVICES}};
    verify_answer a = home_call(r->mem, "x", "lock.unlock", "lock.front_door"), blank = home_text(" \n");
    assert_int_equal(verify_may_leave(&numbers, 1, &a), VERIFY_CALLS_UNCHECKED);
    assert_int_equal(verify_may_leave(both, 2, &a), VERIFY_FINE);
    assert_int_equal(verify_may_leave(both, 2, &blank), VERIFY_EMPTY);
}

/* ---- numbers and patterns ------------------------------------------------------------------------ */

static void numbers_must_have_been_given(void **state)
{
    const room *r = *state;
    static const struct {
        const char *text, *known;
        bool strange;
    } CASES[] = {
        {"It runs at 40 Hz.", "f=40Hz", false},
        {"It runs at 41 Hz.", "f=40Hz", true},
        {"It is 21.50 degrees.", "21.5", false},
        {"No numbers.", "", false},
        {"One 1.", "", true},
        {"-5 degrees", "5 degrees", true},
        {"minus: -5", "t=-5", false},
        {"pump-12 is hot", "pump 12", false},
        {"99999999999999999999", "1", true},
        {"5", "t=-5", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bool strange;
        assert_int_equal(verify_numbers(CASES[i].text, &CASES[i].known, 1, &strange, r->mem), 0);
        if (strange != CASES[i].strange) fail_msg("%s against %s", CASES[i].text, CASES[i].known);
    }
}

/* More words than are split at a time: none of them is passed over. */
static void numbers_of_long_texts_are_all_seen(void **state)
{
    const room *r = *state;
    buf known = {0}, text = {0};
    for (int i = 0; i < 9000; i++) buf_printf(&known, "%d ", i);
    buf_puts(&text, "7 8999 ");
    const char *list = known.data;
    bool strange;
    assert_int_equal(verify_numbers(text.data, &list, 1, &strange, r->mem), 0);
    assert_false(strange);
    for (int i = 0; i < 9000; i++) buf_puts(&text, "word ");
    buf_puts(&text, "9001");
    assert_int_equal(verify_numbers(text.data, &list, 1, &strange, r->mem), 0);
    assert_true(strange);
    buf_done(&known);
    buf_done(&text);
}

static void patterns_look_at_text_and_calls(void **state)
{
    const room *r = *state;
    regex *polite, *unlock;
    verify_why why;
    assert_int_equal(regex_compile(&polite, "^(Turning|All right)", NULL), 0);
    assert_int_equal(regex_compile(&unlock, "lock\\.unlock", NULL), 0);
    verify_check c = {
        .kind = VERIFY_PATTERN, .must = &polite, .n_must = 1, .must_not = &unlock, .n_must_not = 1};
    verify_answer good = home_text("All right."), rude = home_text("No."),
                  opens = home_call(r->mem, "Turning.", "lock.unlock", "lock.front_door");
    assert_int_equal(verify_pattern(&why, &c, &good), 0);
    assert_int_equal(why, VERIFY_FINE);
    assert_int_equal(verify_pattern(&why, &c, &rude), 0);
    assert_int_equal(why, VERIFY_LACKS);
    assert_int_equal(verify_pattern(&why, &c, &opens), 0);
    assert_int_equal(why, VERIFY_HAS);
    buf hidden = {0}; /* behind what an expression looks at */
    buf_puts(&hidden, "All right.");
    for (int i = 0; i < 2000; i++) buf_puts(&hidden, " so be it");
    buf_puts(&hidden, " lock.unlock");
    verify_answer longer = home_text(hidden.data);
    assert_int_equal(verify_pattern(&why, &c, &longer), 0);
    assert_int_equal(why, VERIFY_TOO_LONG);
    buf_done(&hidden);
    regex_free(polite);
    regex_free(unlock);
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static void json_fits_its_schema_or_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *text;
        verify_why why;
    } CASES[] = {
        {"true", "{\"a\": 1}", VERIFY_FINE},
        {"true", "{\"a\": 1", VERIFY_NO_JSON},
        {"true", "{\"a\": 1} and more", VERIFY_NO_JSON},
        {"false", "1", VERIFY_NO_FIT},
        {"{\"type\": \"integer\"}", "3.0", VERIFY_FINE},
        {"{\"type\": \"integer\"}", "3.5", VERIFY_NO_FIT},
        {"{\"type\": [\"null\", \"boolean\"]}", "true", VERIFY_FINE},
        {"{\"type\": [\"null\", \"boolean\"]}", "0", VERIFY_NO_FIT},
        {"{\"enum\": [1, \"a\", null]}", "\"a\"", VERIFY_FINE},
        {"{\"enum\": [1, \"a\", null]}", "1.0", VERIFY_FINE},
        {"{\"enum\": [1, \"a\", null]}", "\"b\"", VERIFY_NO_FIT},
        {"{\"const\": {\"a\": []}}", "{\"a\": []}", VERIFY_FINE},
        {"{\"const\": {\"a\": []}}", "{\"a\": [1]}", VERIFY_NO_FIT},
        {"{\"required\": [\"a\"]}", "{\"b\": 1}", VERIFY_NO_FIT},
        {"{\"required\": [\"a\"]}", "[]", VERIFY_FINE},
        {"{\"properties\": {\"a\": {\"minimum\": 2, \"maximum\": 3}}}", "{\"a\": 2.5, \"b\": 9}",
         VERIFY_FINE},
        {"{\"properties\": {\"a\": {\"minimum\": 2, \"maximum\": 3}}}", "{\"a\": 4}", VERIFY_NO_FIT},
        {"{\"properties\": {\"a\": true}, \"additionalProperties\": false}", "{\"a\": 4}", VERIFY_FINE},
        {"{\"properties\": {\"a\": true}, \"additionalProperties\": false}", "{\"b\": 4}", VERIFY_NO_FIT},
        {"{\"additionalProperties\": {\"type\": \"string\"}}", "{\"b\": 4}", VERIFY_NO_FIT},
        {"{\"items\": {\"maxLength\": 2}, \"maxItems\": 2}", "[\"äö\", \"a\"]", VERIFY_FINE},
        {"{\"items\": {\"maxLength\": 2}, \"maxItems\": 2}", "[\"äöü\"]", VERIFY_NO_FIT},
        {"{\"items\": {\"maxLength\": 2}, \"maxItems\": 2}", "[1, 2, 3]", VERIFY_NO_FIT},
        {"{\"minProperties\": 1, \"title\": \"x\"}", "{}", VERIFY_NO_FIT},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        verify_schema *s;
        verify_why why;
        assert_int_equal(verify_schema_parse(&s, CASES[i].schema, strlen(CASES[i].schema), "s", NULL), 0);
        assert_int_equal(verify_json(&why, s, CASES[i].text), 0);
        if (why != CASES[i].why)
            fail_msg("%s against %s: %s", CASES[i].text, CASES[i].schema, verify_why_text(why));
        verify_schema_free(s);
    }
}

static void a_schema_with_unknown_demands_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"{\"pattern\": \"x\"}",
                                      "{\"properties\": {\"a\": {\"$ref\": \"#\"}}}",
                                      "{\"type\": \"text\"}",
                                      "{\"type\": []}",
                                      "{\"required\": [1]}",
                                      "{\"minLength\": -1}",
                                      "{\"minimum\": \"1\"}",
                                      "{\"items\": 3}",
                                      "[]",
                                      "3",
                                      "{"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        verify_schema *s;
        shoal_err err = {0};
        if (verify_schema_parse(&s, BAD[i], strlen(BAD[i]), "s.json", &err) == 0)
            fail_msg("taken: %s", BAD[i]);
        assert_int_equal(strncmp(err.message, "s.json", 6), 0);
    }
}

/* ---- inference ----------------------------------------------------------------------------------- */

static void each_sentence_is_asked_of_each_piece(void **state)
{
    const room *r = *state;
    verify_nli n;
    assert_int_equal(verify_nli_ask(&n, "The pump runs at 3.5 bar. It is hot.\nAll is well.",
                                    " It runs.  Is it hot? \n\n!", VERIFY_NLI_PIECE_BYTES, r->mem),
                     0);
    assert_int_equal(n.why, VERIFY_FINE);
    assert_int_equal(n.n_pieces, 1);
    assert_int_equal(n.n_sentences, 2);
    assert_int_equal(n.request.n_inputs, 2);
    assert_string_equal(n.request.inputs[0]->text, "The pump runs at 3.5 bar. It is hot.\nAll is well.");
    assert_string_equal(n.request.inputs[0]->pair, "It runs.");
    assert_string_equal(n.request.inputs[1]->pair, "Is it hot?");
    assert_true(n.request.inputs[1]->has_pair);
}

static void long_contexts_are_cut_at_sentences(void **state)
{
    const room *r = *state;
    verify_nli n;
    buf b = {0};
    for (int i = 0; i < 100; i++) buf_printf(&b, "Sentence number %d is one of many.\n", i);
    assert_int_equal(verify_nli_ask(&n, b.data, "So it is.", VERIFY_NLI_PIECE_BYTES, r->mem), 0);
    assert_int_equal(n.why, VERIFY_FINE);
    assert_true(n.n_pieces >= 4);
    for (size_t i = 0; i < n.n_pieces; i++) {
        const char *s = n.request.inputs[i]->text;
        assert_true(strlen(s) <= VERIFY_NLI_PIECE_BYTES);
        assert_int_equal(strncmp(s, "Sentence", 8), 0);
    }
    for (int i = 0; i < 1000; i++) buf_printf(&b, "Sentence number %d is one of many.\n", i);
    assert_int_equal(verify_nli_ask(&n, b.data, "So it is.", VERIFY_NLI_PIECE_BYTES, r->mem), 0);
    assert_int_equal(n.why, VERIFY_TOO_LONG);
    assert_int_equal(verify_nli_ask(&n, "A context.", b.data, VERIFY_NLI_PIECE_BYTES, r->mem), 0);
    assert_int_equal(n.why, VERIFY_TOO_LONG);
    assert_int_equal(verify_nli_ask(&n, "", "So it is.", VERIFY_NLI_PIECE_BYTES, r->mem), 0);
    assert_int_equal(n.why, VERIFY_NO_CONTEXT);
    assert_int_equal(verify_nli_ask(&n, "A context.", "...", VERIFY_NLI_PIECE_BYTES, r->mem), 0);
    assert_int_equal(n.why, VERIFY_EMPTY);
    buf_done(&b);
    assert_int_equal(verify_nli_piece_bytes(0), VERIFY_NLI_PIECE_BYTES);
    assert_int_equal(verify_nli_piece_bytes(128), 256);
    assert_int_equal(verify_nli_piece_bytes(4096), VERIFY_NLI_PIECE_BYTES);
}

static verify_why judge_scores(const verify_nli *n, const float *scores, size_t n_scores, const char *label)
{
    Shoal__V1__LabelScore s[8], *lists[8][1];
    Shoal__V1__Classification c[8], *results[8];
    Shoal__V1__ClassifyReply reply = SHOAL__V1__CLASSIFY_REPLY__INIT;
    for (size_t i = 0; i < n_scores; i++) {
        s[i] = (Shoal__V1__LabelScore)SHOAL__V1__LABEL_SCORE__INIT;
        s[i].label = (char *)(uintptr_t)label;
        s[i].score = scores[i];
        lists[i][0] = &s[i];
        c[i] = (Shoal__V1__Classification)SHOAL__V1__CLASSIFICATION__INIT;
        c[i].labels = lists[i];
        c[i].n_labels = 1;
        results[i] = &c[i];
    }
    reply.results = results;
    reply.n_results = n_scores;
    return verify_nli_judge(n, &reply, "entailment", 0.5);
}

/* Two sentences, two pieces: each sentence needs one piece. */
static void every_sentence_must_follow_from_some_piece(void **state)
{
    (void)state;
    verify_nli n = {.n_sentences = 2, .n_pieces = 2};
    static const float FOLLOWS[] = {0.1f, 0.9f, 0.5f, 0.2f}, FIRST[] = {0.9f, 0.9f, 0.4f, 0.2f};
    assert_int_equal(judge_scores(&n, FOLLOWS, 4, "entailment"), VERIFY_FINE);
    assert_int_equal(judge_scores(&n, FIRST, 4, "entailment"), VERIFY_NOT_ENTAILED);
    assert_int_equal(judge_scores(&n, FOLLOWS, 3, "entailment"), VERIFY_NOT_CHECKED);
    assert_int_equal(judge_scores(&n, FOLLOWS, 4, "LABEL_0"), VERIFY_NOT_CHECKED);
    assert_int_equal(verify_nli_judge(&n, NULL, "entailment", 0), VERIFY_NOT_CHECKED);
}

int main(void)
{
#define IN_ROOM(f) cmocka_unit_test_setup_teardown(f, open_room, close_room)
    const struct CMUnitTest tests[] = {
        IN_ROOM(lines_of_devices_are_read_exactly),
        IN_ROOM(who_writes_a_message_decides_what_it_is_good_for),
        IN_ROOM(what_was_called_since_the_question_is_known),
        IN_ROOM(a_prompt_is_a_question_and_nothing_else),
        IN_ROOM(what_is_no_json_counts_as_nothing),
        IN_ROOM(what_was_asked_passes),
        IN_ROOM(what_was_not_asked_is_mended),
        IN_ROOM(groups_are_called_whole_or_not_at_all),
        IN_ROOM(what_is_no_request_is_not_mended_into_one),
        IN_ROOM(of_several_meanings_one_is_chosen),
        IN_ROOM(after_results_only_the_rest_may_follow),
        IN_ROOM(tools_that_were_not_offered_are_not_called),
        IN_ROOM(tools_may_be_named_after_services),
        IN_ROOM(what_the_request_says_of_calls_is_kept),
        IN_ROOM(sentences_without_a_list_or_of_no_form_are_held),
        IN_ROOM(after_results_only_sentences_of_the_rules_follow),
        IN_ROOM(without_a_lexicon_lists_are_all_there_is),
        IN_ROOM(calls_need_a_check_that_knows_them),
        IN_ROOM(numbers_must_have_been_given),
        IN_ROOM(numbers_of_long_texts_are_all_seen),
        IN_ROOM(patterns_look_at_text_and_calls),
        cmocka_unit_test(json_fits_its_schema_or_does_not),
        cmocka_unit_test(a_schema_with_unknown_demands_is_refused),
        IN_ROOM(each_sentence_is_asked_of_each_piece),
        IN_ROOM(long_contexts_are_cut_at_sentences),
        cmocka_unit_test(every_sentence_must_follow_from_some_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
