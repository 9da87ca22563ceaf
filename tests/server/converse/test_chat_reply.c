/* What a chat client is told when a pipeline has answered, with the shipped table of functions; devices in the forms in
 * which applications list them; what results of functions say; tables that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "converse/chat_reply.h"
#include "json/json.h"

typedef struct room {
    function_table *t;
    arena *mem;
    chat_case k;
    device_list list;
    verify_answer reply;
} room;

static int room_open(void **state)
{
    room *r = calloc(1, sizeof *r);
    shoal_err err;
    if (function_table_load(&r->t, SHOAL_SOURCE_DIR "/lexicons/functions.yaml", &err))
        fail_msg("%s", err.message);
    *state = r;
    return 0;
}

static void room_forget(room *r)
{
    chat_case_done(&r->k);
    arena_free(r->mem);
    r->mem = NULL;
}

static int room_close(void **state)
{
    room *r = *state;
    room_forget(r);
    function_table_free(r->t);
    free(r);
    return 0;
}

#define HOME                                                                                        \
    "Static Context:\\n- names: Kitchen Light\\n  domain: light\\n  areas: Kitchen\\n- names: "     \
    "Lamp\\n  domain: light\\n  areas: Office\\n- names: Lamp\\n  domain: light\\n  areas: Hall\\n" \
    "- names: Front Door\\n  domain: lock\\n"
#define TOOL(name, properties)                                                                        \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"parameters\":{\"type\":\"object\"," \
    "\"properties\":{" properties "}}}}"
#define STRING "{\"type\":\"string\"}"
#define TURN_ON                                                                                   \
    TOOL("HassTurnOn", "\"name\":" STRING ",\"area\":" STRING                                     \
                       ",\"domain\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":" \
                       "[\"light\",\"lock\"]}}")
#define LIGHT_SET                                                                    \
    TOOL("HassLightSet", "\"name\":" STRING ",\"brightness\":{\"type\":\"integer\"," \
                         "\"minimum\":0,\"maximum\":100},\"color\":" STRING          \
                         ",\"temperature\":{\"type\":\"integer\",\"minimum\":0}")
#define LIVE TOOL("GetLiveContext", "")
#define BOOK                                                                                         \
    "{\"type\":\"function\",\"function\":{\"name\":\"turn_on\",\"parameters\":{\"type\":\"object\"," \
    "\"required\":[\"when\"],\"properties\":{\"target\":" STRING ",\"when\":{\"type\":\"object\","   \
    "\"properties\":{\"day\":" STRING "}}}}}}"
#define START_TIMER(parts) TOOL("HassStartTimer", parts)
#define MINUTES            "\"minutes\":{\"type\":\"integer\"}"
#define SECONDS            "\"seconds\":{\"type\":\"integer\"}"
#define TIMER(time)        ACT("voice_timer.start", "{\"target\":\"voice_timer.timer\",\"duration\":\"" time "\"}")
#define SYSTEM             "{\"role\":\"system\",\"content\":\"" HOME "\"}"
#define USER(text)         "{\"role\":\"user\",\"content\":\"" text "\"}"
#define MADE(name, arguments)                                                           \
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\",\"type\":" \
    "\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}]}"
#define RESULT(text) "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"" text "\"}"
#define MADE_ON      MADE("HassTurnOn", "{\\\"name\\\":\\\"Kitchen Light\\\",\\\"domain\\\":[\\\"light\\\"]}")

#define ACT(name, arguments) \
    "{\"text\":\"Acting.\",\"tool_call\":{\"name\":\"" name "\",\"arguments\":" arguments "}}"
#define ON ACT("light.turn_on", "{\"target\":\"light.kitchen_light\"}")
#define TWO                                                                                        \
    "{\"text\":\"Acting.\",\"tool_calls\":[{\"name\":\"light.turn_on\",\"arguments\":{\"target\":" \
    "\"light.kitchen_light\"}},{\"name\":\"lock.lock\",\"arguments\":{\"target\":\"lock.front_door\"}}]}"
#define ASKS      "{\"text\":\"I don't know.\",\"tool_call\":null,\"trace\":[{\"verdict\":\"answer\"}]}"
#define CALL_ON   "HassTurnOn {\"name\":\"Kitchen Light\",\"domain\":[\"light\"]};"
#define CALL_LOCK "HassTurnOn {\"name\":\"Front Door\",\"domain\":[\"lock\"]};"
#define NO_FIT    "I can't do that here: no function that this chat offers does "

enum {
    AUTO = SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_AUTO,
    NONE = SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE
};

typedef struct sample {
    const char *messages, *tools; /* without the brackets */
    const char *answer;           /* the pipeline's */
    const char *expected;         /* a text, or "NAME ARGUMENTS;" for each call */
    int choice;
    bool one_call;
} sample;

/* messages, tools, answer, expected; perhaps choice and one_call. */
#define SAID(...) SAID_OF(__VA_ARGS__, AUTO, false, 0)
#define SAID_OF(m, t, a, e, c, one, ...)                                                    \
    {                                                                                       \
        .messages = m, .tools = t, .answer = a, .expected = e, .choice = c, .one_call = one \
    }

static void room_reply(room *r, const sample *c)
{
    char messages[4096], tools[4096];
    json_t *answer = NULL;
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    snprintf(messages, sizeof messages, "[%s]", c->messages);
    snprintf(tools, sizeof tools, "[%s]", c->tools ? c->tools : "");
    q.messages_json = messages;
    if (c->tools) q.tools_json = tools;
    q.tool_choice = (Shoal__V1__GenerateRequest__ToolChoice)c->choice;
    q.parallel_tool_calls = !c->one_call;
    room_forget(r);
    r->mem = arena_new(0);
    assert_int_equal(chat_case_read(&r->k, &q, r->mem), 0);
    assert_int_equal(function_table_devices(&r->list, r->t, &r->k, r->mem), 0);
    assert_int_equal(function_table_add_offered(&r->list, r->t, &r->k, r->mem), 0);
    assert_int_equal(json_parse(&answer, c->answer, strlen(c->answer), "answer", NULL), 0);
    assert_int_equal(chat_reply_make(&r->reply, r->t, &r->k, r->list.at, r->list.n, answer, r->mem), 0);
    json_decref(answer);
}

static void chat_reply_calls_what_fits_and_claims_nothing_else(void **state)
{
    static const sample CASES[] = {
        SAID(SYSTEM "," USER("x"), TURN_ON, ON, CALL_ON),
        SAID(SYSTEM "," USER("x"), TURN_ON, TWO, CALL_ON CALL_LOCK),
        SAID(SYSTEM "," USER("x"), TURN_ON, TWO, CALL_ON, AUTO, true),
        /* two devices of one name: the room tells them apart */
        SAID(SYSTEM "," USER("x"), TURN_ON, ACT("light.turn_on", "{\"target\":\"light.lamp_hall\"}"),
             "HassTurnOn {\"name\":\"Lamp\",\"domain\":[\"light\"],\"area\":\"Hall\"};"),
        SAID(SYSTEM "," USER("x"), TURN_ON "," LIGHT_SET,
             ACT("light.turn_on", "{\"target\":\"light.kitchen_light\",\"brightness\":40}"),
             "HassLightSet {\"name\":\"Kitchen Light\",\"brightness\":40};"),
        SAID(SYSTEM "," USER("x"), TURN_ON "," LIGHT_SET,
             ACT("light.turn_on", "{\"target\":\"light.kitchen_light\",\"color\":\"warm white\"}"),
             "HassLightSet {\"name\":\"Kitchen Light\",\"temperature\":2700};"),
        SAID(
            SYSTEM "," USER("x"), TURN_ON "," LIGHT_SET,
            ACT("light.turn_on", "{\"target\":\"light.kitchen_light\",\"color\":\"blue\",\"brightness\":20}"),
            "HassLightSet {\"name\":\"Kitchen Light\",\"color\":\"blue\",\"brightness\":20};"),
        SAID(SYSTEM "," USER("x"), TURN_ON "," LIGHT_SET,
             ACT("light.turn_on",
                 "{\"target\":\"light.kitchen_light\",\"color\":\"cool white\",\"brightness\":20}"),
             "HassLightSet {\"name\":\"Kitchen Light\",\"temperature\":6500,\"brightness\":20};"),
        /* out of the schema's bounds, a value that no row takes, a function that wants more, none at all */
        SAID(SYSTEM "," USER("x"), LIGHT_SET,
             ACT("light.turn_on", "{\"target\":\"light.kitchen_light\",\"brightness\":400}"),
             NO_FIT "light.turn_on of Kitchen Light. Nothing was done."),
        SAID(SYSTEM "," USER("x"), TURN_ON,
             ACT("light.turn_on", "{\"target\":\"light.kitchen_light\",\"mood\":1}"),
             NO_FIT "light.turn_on of Kitchen Light. Nothing was done."),
        SAID(SYSTEM "," USER("x"), BOOK, ON, NO_FIT "light.turn_on of Kitchen Light. Nothing was done."),
        SAID(SYSTEM "," USER("x"), TOOL("light_turn_on", "\"target\":" STRING), TWO,
             NO_FIT "lock.lock of Front Door. Nothing was done."), /* the other it does */
        SAID(SYSTEM "," USER("x"), TOOL("light_turn_on", "\"target\":" STRING ",\"heat\":{}"),
             ACT("light.turn_on", "{\"target\":\"light.kitchen_light\",\"heat\":21.1}"),
             "light_turn_on {\"target\":\"light.kitchen_light\",\"heat\":21.1};"),
        SAID(SYSTEM "," USER("x"), LIGHT_SET, TWO,
             NO_FIT "light.turn_on of Kitchen Light, lock.lock of Front Door. Nothing was done."),
        SAID(SYSTEM "," USER("x"), NULL, ON,
             "I can't do that here: this chat offers me no functions, so nothing was done. What you mean is "
             "light.turn_on of Kitchen Light."),
        SAID(SYSTEM "," USER("x"), TURN_ON, ON,
             "Functions may not be called for this message, so nothing was done. What you mean is "
             "light.turn_on "
             "of "
             "Kitchen Light.",
             NONE),
        /* functions of the services' own names */
        SAID(SYSTEM "," USER("x"), TOOL("light_turn_on", "\"target\":" STRING), ON,
             "light_turn_on {\"target\":\"light.kitchen_light\"};"),
        SAID(SYSTEM "," USER("x"), TOOL("turn_on", "\"entity_id\":{\"enum\":[\"LIGHT.kitchen_light\"]}"), ON,
             "turn_on {\"entity_id\":\"LIGHT.kitchen_light\"};"),
        SAID(SYSTEM "," USER("x"), TOOL("turn_on", "\"entity_id\":{\"enum\":[\"light.other\"]}"), ON,
             NO_FIT "light.turn_on of Kitchen Light. Nothing was done."),
        /* a time in parts, of which each must be taken, and one must be there */
        SAID(SYSTEM "," USER("x"), START_TIMER(MINUTES "," SECONDS), TIMER("01:00:30"),
             NO_FIT "voice_timer.start of Timer. Nothing was done."),
        SAID(SYSTEM "," USER("x"), START_TIMER(MINUTES "," SECONDS), TIMER("00:05:30"),
             "HassStartTimer {\"minutes\":5,\"seconds\":30};"),
        SAID(SYSTEM "," USER("x"), START_TIMER(MINUTES "," SECONDS), TIMER("00:05:00"),
             "HassStartTimer {\"minutes\":5};"),
        SAID(SYSTEM "," USER("x"), START_TIMER(MINUTES "," SECONDS), TIMER("00:00:00"),
             NO_FIT "voice_timer.start of Timer. Nothing was done."),
        SAID(SYSTEM "," USER("x"), START_TIMER(MINUTES "," SECONDS), TIMER("soon"),
             NO_FIT "voice_timer.start of Timer. Nothing was done."),
        /* a scope before the name, unless it is one of several */
        SAID(SYSTEM "," USER("x"), TOOL("assist__turn_on", "\"target\":" STRING), ON,
             "assist__turn_on {\"target\":\"light.kitchen_light\"};"),
        SAID(SYSTEM "," USER("x"),
             TOOL("a__turn_on", "\"target\":" STRING) "," TOOL("b__turn_on", "\"target\":" STRING), ON,
             NO_FIT "light.turn_on of Kitchen Light. Nothing was done."),
        SAID(SYSTEM "," USER("x"), TOOL("a__GetLiveContext", ""), ASKS, "a__GetLiveContext {};"),
        /* a text is a text */
        SAID(SYSTEM "," USER("x"), TURN_ON, "{\"text\":\"All right.\",\"tool_call\":null}", "All right."),
        /* results */
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT("{\\\"success\\\":true}"), TURN_ON, ON, "Acting."),
        SAID(SYSTEM "," USER("x") "," MADE_ON
                                  "," RESULT("{\\\"error\\\":\\\"E\\\",\\\"error_text\\\":\\\"gone.\\\"}"),
             TURN_ON, ON, "HassTurnOn failed: gone."),
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT("red"), TURN_ON, ON, "HassTurnOn answered: red"),
        SAID(SYSTEM "," USER("x") "," MADE_ON, TURN_ON, ON,
             "I don't know whether HassTurnOn did it: no result came."),
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT(""), TURN_ON, ON,
             "I don't know whether HassTurnOn did it: no result came."),
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT("null"), TURN_ON, TWO,
             "I don't know whether HassTurnOn did it: no result came."),
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT(
                 "{\\\"response_type\\\":\\\"action_done\\\",\\\"data\\\":{\\\"success\\\":[]}}"),
             TURN_ON, ON, "I don't know whether HassTurnOn did it: no result came."),
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT("ok"), TURN_ON, TWO, CALL_LOCK, AUTO, true),
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT("Error: no"), TURN_ON, TWO,
             "HassTurnOn failed: Error: no.", AUTO, true),
        /* what another model called is not what the sentence is about */
        SAID(SYSTEM "," USER("x") "," MADE("HassTurnOn", "{\\\"name\\\":\\\"Sauna\\\"}") "," RESULT("ok"),
             TURN_ON, ON, "Done: HassTurnOn."),
        /* of the message before: it is over */
        SAID(SYSTEM "," USER("x") "," MADE_ON "," RESULT("ok") "," USER("y"), TURN_ON, ON, CALL_ON),
        /* states are asked for once */
        SAID(SYSTEM "," USER("x"), TURN_ON "," LIVE, ASKS, "GetLiveContext {};"),
        SAID(SYSTEM "," USER("x"), TURN_ON, ASKS, "I don't know."),
        SAID(SYSTEM "," USER("x") "," MADE("GetLiveContext", "{}") "," RESULT("{}"), TURN_ON "," LIVE, ASKS,
             "I don't know."),
    };
    room *r = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf got = {0};
        room_reply(r, &CASES[i]);
        buf_puts(&got, r->reply.text);
        for (size_t k = 0; k < r->reply.n_calls; k++)
            buf_printf(&got, "%s %s;", r->reply.calls[k].name, r->reply.calls[k].arguments);
        if (strcmp(buf_text(&got), CASES[i].expected) != 0)
            fail_msg("%zu: %s\nexpected: %s", i, buf_text(&got), CASES[i].expected);
        buf_done(&got);
    }
}

/* "ID 'NAME' (AREA) = STATE +ALIASES;" of each. */
#define L32  "abcdefghijklmnopqrstuvwxyzabcdef"
#define L126 L32 L32 L32 "abcdefghijklmnopqrstuvwxyzabcd"
#define L128 L32 L32 L32 L32

static void put_list(buf *out, const device_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const device *d = &l->at[i];
        buf_printf(out, "%s '%s'", d->id, d->name);
        if (d->area) buf_printf(out, " (%s)", d->area);
        if (*d->state) buf_printf(out, " = %s", d->state);
        if (d->measured) buf_printf(out, " %s", d->measured);
        for (size_t k = 0; k < d->n_aliases; k++) buf_printf(out, " +%s", d->aliases[k]);
        buf_puts(out, ";");
    }
}

static void device_list_reads_the_forms_of_applications(void **state)
{
    static const struct {
        const char *text, *expected;
    } CASES[] = {
        {"Devices:\nlight.kitchen 'Kitchen Light' = off\n", "light.kitchen 'Kitchen Light' = off;"},
        {"- names: Kitchen Light, Ceiling\n  domain: light\n  state: 'off'\n  areas: Kitchen, Cucina\n  "
         "attributes:\n"
         "    brightness: '50'\n    state: no\n- names: 'Anna''s Lamp'\n  domain: light\n",
         "light.kitchen_light 'Kitchen Light' (Kitchen) = off +Ceiling;light.anna_s_lamp 'Anna's Lamp';"},
        {"lock.front:\n  names: Front Door\n  state: locked\nfan.x:\n  names: Fan\nEnd.\n",
         "lock.front 'Front Door' = locked;fan.x 'Fan';"},
        {"- names: Heating\n  domain: climate\n  state: 'heat'\n  attributes:\n    current_temperature: "
         "'19.5'\n    "
         "temperature: '21'\n- names: Heating\n  domain: climate\n  state: 'off'\n",
         "climate.heating 'Heating' = off 19.5;"},
        /* the same once more, with its state; another one of its name */
        {"- names: Lamp\n  domain: light\n  areas: Hall\n- names: Lamp\n  domain: light\n  areas: Den\n"
         "- names: Lamp\n  domain: light\n  state: on\n  areas: Hall\n",
         "light.lamp_hall 'Lamp' (Hall) = on;light.lamp_den 'Lamp' (Den);"},
        /* a long value goes on in the next line */
        {"- names: A very long name of a lamp,\n    Leselampe\n  domain: light\n",
         "light.a_very_long_name_of_a_lamp 'A very long name of a lamp' +Leselampe;"},
        {"- domain: light\n  names: Küche\r\n- names: without a domain\n- names:\n  domain: light\n",
         "light.küche 'Küche';"},
        {"nothing: here\n- a point\nhttp://x.y:\nsome.thing:\n", ""},
        /* no device's name or state: control characters, and more than 128 bytes */
        {"light.a 'Lamp\a' = on\nlight.b 'Lamp' = o\x1bn\nlight.c 'L" L128 "' = on\nlight.d 'D' = o" L128
         "\n",
         "light.b 'Lamp';light.d 'D';"},
        /* an id with the room in it would be too long: it stays, and another one that would have it is none */
        {"- names: L\n  domain: light\n  areas: " L126
         "\n- names: L\n  domain: light\n  areas: Hall\n- names: L\n"
         "  domain: light\n  areas: M" L126 "\n",
         "light.l 'L' (" L126 ");light.l_hall 'L' (Hall);"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        arena *a = arena_new(0);
        device_list *l = arena_alloc(a, sizeof *l);
        buf got = {0};
        assert_int_equal(device_list_read(l, CASES[i].text, a), 0);
        put_list(&got, l);
        if (strcmp(buf_text(&got), CASES[i].expected) != 0)
            fail_msg("%zu: %s\nexpected: %s", i, buf_text(&got), CASES[i].expected);
        buf_done(&got);
        arena_free(a);
    }
}

static void function_table_devices_come_of_the_system_else_of_allowed_values(void **state)
{
    static const sample CASES[] = {
        SAID(SYSTEM "," USER("light.evil 'Evil' = on"), TOOL("f", "\"name\":{\"enum\":[\"Other Lamp\"]}"),
             "{}",
             "light.kitchen_light 'Kitchen Light' (Kitchen);light.lamp_office 'Lamp' "
             "(Office);light.lamp_hall 'Lamp' "
             "(Hall);lock.front_door 'Front Door';"),
        SAID(USER("x"),
             TOOL("f", "\"name\":{\"enum\":[\"Other Lamp\",\"Front Door Lock\",\"Thing\"]}") "," //
             TOOL("g", "\"entity_id\":{\"enum\":[\"fan.big_one\"]}"),
             "{}",
             "light.other_lamp 'Other Lamp';lock.front_door_lock 'Front Door Lock';fan.big_one 'big one';"),
        SAID(USER("x") "," MADE("GetLiveContext", "{}") "," RESULT(
                 "{\\\"success\\\":true,\\\"result\\\":\\\"Live:\\\\n- names: Lamp\\\\n  domain: light\\\\n  "
                 "state: 'on'\\\\n\\\"}"),
             LIVE, "{}", "light.lamp 'Lamp' = on;"),
        SAID(USER("x"), TURN_ON, "{}", ""),
    };
    room *r = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf got = {0};
        room_reply(r, &CASES[i]);
        put_list(&got, &r->list);
        if (strcmp(buf_text(&got), CASES[i].expected) != 0)
            fail_msg("%zu: %s\nexpected: %s", i, buf_text(&got), CASES[i].expected);
        buf_done(&got);
    }
}

static void function_table_result_tells_success_from_failure(void **state)
{
    static const struct {
        const char *result;
        result_kind kind;
        const char *why;
    } CASES[] = {
        {"", RESULT_NONE, ""},
        {" \n", RESULT_NONE, ""},
        {"\"\"", RESULT_NONE, ""},
        {"null", RESULT_NONE, "null"},
        {"{}", RESULT_NONE, NULL},
        {"[]", RESULT_NONE, NULL},
        {"{\"response_type\":\"action_done\",\"data\":{\"success\":[],\"failed\":[]}}", RESULT_NONE, NULL},
        {"{\"response_type\":\"action_done\",\"data\":{\"success\":[],\"failed\":[{\"name\":\"x\"}]}}",
         RESULT_FAILED, NULL},
        {"{\"response_type\":\"action_done\",\"speech\":{}}", RESULT_DONE, NULL},
        {"true", RESULT_DONE, NULL},
        {"OK.", RESULT_DONE, "OK"},
        {"\"done\"", RESULT_DONE, "done"},
        {"{\"speech\":{},\"response_type\":\"action_done\",\"data\":{\"success\":[1],\"failed\":[]}}",
         RESULT_DONE, NULL},
        {"{\"response_type\":\"action_done\",\"data\":{\"failed\":[{\"name\":\"x\"}]}}", RESULT_FAILED, NULL},
        {"{\"response_type\":\"error\",\"speech\":{\"plain\":{\"speech\":\"No lamp.\"}}}", RESULT_FAILED,
         "No lamp"},
        {"{\"success\":false,\"message\":\"busy\"}", RESULT_FAILED, "busy"},
        {"{\"error\":null,\"ok\":true}", RESULT_DONE, NULL},
        {"Could not reach it.\nTry later", RESULT_FAILED, "Could not reach it. Try later"},
        {"okra", RESULT_SAID, "okra"},
        {"[1]", RESULT_SAID, "[1]"},
        {"{\"a\":1}", RESULT_SAID, "{\"a\":1}"},
    };
    room *r = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        result_kind kind;
        const char *why;
        arena *a = arena_new(0);
        assert_int_equal(function_table_result(&kind, &why, r->t, CASES[i].result, a), 0);
        if (kind != CASES[i].kind || (CASES[i].why && strcmp(why, CASES[i].why) != 0))
            fail_msg("%zu: %d '%s'", i, (int)kind, why);
        arena_free(a);
    }
}

static void function_table_names_the_line_of_what_is_wrong(void **state)
{
    buf whole = {0};
    (void)state;
    assert_int_equal(file_read(&whole, SHOAL_SOURCE_DIR "/lexicons/functions.yaml", 1 << 20, NULL), 0);
    static const struct {
        const char *was, *is, *expected;
    } CASES[] = {
        {"functions:\n", "function:\n", "'function' is not known here"},
        {"    function: HassTurnOn\n", "", "'function' is missing"},
        {"takes: [brightness]", "takes: brightness", "'takes' must be a list"},
        {"takes: [brightness]", "takes: [[1]]", "a text is expected here"},
        {"values: true", "values: perhaps", "values"},
        {"domains: {", "domains: [", NULL},
        {"  call: ", "  calls: ", "'calls' is not known here"},
        {"  functions: [GetLiveContext]\n", "", "'functions' is missing"},
        {"  domains: [climate]\n", "", "'domains' is missing"},
        {"  locales: {", "  localities: {", "'localities' is not known here"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf text = {0};
        function_table *t = NULL;
        shoal_err err = {0};
        const char *at = strstr(whole.data, CASES[i].was);
        assert_non_null(at);
        buf_append(&text, whole.data, (size_t)(at - whole.data));
        buf_puts(&text, CASES[i].is);
        buf_puts(&text, at + strlen(CASES[i].was));
        assert_int_not_equal(function_table_parse(&t, text.data, text.len, "t.yaml", &err), 0);
        assert_null(t);
        if (strncmp(err.message, "t.yaml:", 7) != 0 ||
            (CASES[i].expected && !strstr(err.message, CASES[i].expected)))
            fail_msg("%zu: %s", i, err.message);
        buf_done(&text);
    }
    buf_done(&whole);
}

static void function_table_without_a_file_knows_names_of_services(void **state)
{
    static const sample NAMED = SAID(SYSTEM "," USER("x"),
                                     TURN_ON "," TOOL("light_turn_on", "\"target\":" STRING), ON, ""),
                        OTHER = SAID(SYSTEM "," USER("x"), TURN_ON, ON, "");
    room *r = *state;
    function_table *t = NULL;
    shoal_err err = {0};
    if (function_table_load(&t, NULL, &err)) fail_msg("%s", err.message);
    function_table_free(r->t);
    r->t = t;
    room_reply(r, &NAMED);
    assert_int_equal(r->reply.n_calls, 1);
    assert_string_equal(r->reply.calls[0].name, "light_turn_on");
    room_reply(r, &OTHER);
    assert_int_equal(r->reply.n_calls, 0);
    assert_non_null(strstr(r->reply.text, "Nothing was done"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chat_reply_calls_what_fits_and_claims_nothing_else, room_open,
                                        room_close),
        cmocka_unit_test(device_list_reads_the_forms_of_applications),
        cmocka_unit_test_setup_teardown(function_table_devices_come_of_the_system_else_of_allowed_values,
                                        room_open, room_close),
        cmocka_unit_test_setup_teardown(function_table_result_tells_success_from_failure, room_open,
                                        room_close),
        cmocka_unit_test(function_table_names_the_line_of_what_is_wrong),
        cmocka_unit_test_setup_teardown(function_table_without_a_file_knows_names_of_services, room_open,
                                        room_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
