/* pipeline_calls: a pipeline of shoal.yaml as a chat model, over calls that the test answers, in simulated time. */
#include "../../server/stages/fake_calls.h"

#include "converse/pipeline_calls.h"
#include "rules/home.h"

#define TOOLS                                                                                    \
    "[{\"type\":\"function\",\"function\":{\"name\":\"light_turn_on\",\"parameters\":{\"type\":" \
    "\"object\",\"properties\":{\"target\":{\"type\":\"string\"}}}}}]"
#define ON "[{\"role\":\"user\",\"content\":\"turn on the kitchen light\"}]"

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    calls *c;
    model_call *call;
    buf told;   /* what came: its events, a word each */
    int ended;  /* how often */
    int status; /* of the end */
    char message[256], model[32];
    uint32_t n_prompt, n_generated;
    unsigned pause_at, cancel_at; /* at which event; 0: never */
    unsigned n_events;
} bench;

static void bench_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    bench *t = ev->user;
    const Shoal__V1__GenerateEvent *e = (const Shoal__V1__GenerateEvent *)m;
    if (e->started) buf_puts(&t->told, "started ");
    if (e->delta && e->delta->text.len)
        buf_printf(&t->told, "'%.*s' ", (int)e->delta->text.len, (const char *)e->delta->text.data);
    for (size_t i = 0; e->delta && i < e->delta->n_tool_calls; i++)
        buf_printf(&t->told, "%s%s ", e->delta->tool_calls[i]->name, e->delta->tool_calls[i]->arguments);
    if (e->done) {
        buf_printf(&t->told, "%s", e->done->finish);
        t->n_prompt = e->done->n_prompt;
        t->n_generated = e->done->n_generated;
    }
    t->n_events++;
    if (t->n_events == t->pause_at) calls_pause(t->call, true);
    if (t->n_events == t->cancel_at) calls_cancel(t->call);
}

static void bench_on_end(const call_events *ev, const call_result *r)
{
    bench *t = ev->user;
    t->ended++;
    t->status = r->status;
    snprintf(t->message, sizeof t->message, "%s", r->message);
    snprintf(t->model, sizeof t->model, "%s", r->model);
}

static void bench_begin(bench *t)
{
    shoal_err err = {0};
    pipeline_options o = {.config = t->config};
    if (pipeline_calls_new(&t->c, fake_time(), fake_calls_init(&t->b), &o, &err)) fail_msg("%s", err.message);
}

static void bench_load(bench *t, const char *path)
{
    shoal_err err = {0};
    *t = (bench){0};
    if (config_load(&t->config, &HOME_STAGES, path, &err)) fail_msg("%s", err.message);
    bench_begin(t);
}

static void bench_open(bench *t, const char *yaml)
{
    shoal_err err = {0};
    if (!yaml) {
        bench_load(t, SHOAL_SOURCE_DIR "/shoal.yaml");
        return;
    }
    *t = (bench){0};
    if (config_parse(&t->config, &HOME_STAGES, yaml, strlen(yaml), "c.yaml", &err))
        fail_msg("%s", err.message);
    bench_begin(t);
}

static void bench_close(bench *t)
{
    calls_free(t->c);
    fake_calls_done(&t->b);
    config_free(t->config);
    buf_done(&t->told);
}

static void start(bench *t, const char *model, Shoal__V1__GenerateRequest q)
{
    call_events ev = {.user = t, .event = bench_on_event, .end = bench_on_end};
    call_context ctx = {.request_id = "r1"};
    call_order *o = call_order_new(CALL_GENERATE, model, &q.base, &ctx);
    q.parallel_tool_calls = true;
    buf_clear(&t->told);
    t->n_events = 0;
    t->ended = 0;
    t->call = calls_start(t->c, o, &(call_terms){0}, &ev);
    call_order_unref(o);
    assert_non_null(t->call);
    assert_int_equal(t->n_events + (unsigned)t->ended, 0); /* nothing from inside */
}

static Shoal__V1__GenerateRequest request_of(const char *messages, const char *tools)
{
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.messages_json = (char *)(uintptr_t)messages;
    if (tools) q.tools_json = (char *)(uintptr_t)tools;
    q.parallel_tool_calls = true;
    return q;
}

/* The classifiers answer; no generator is asked. */
static void let_run(bench *t)
{
    fake_turns();
    for (size_t i = 0; i < t->b.n; i++) {
        if (!t->b.calls[i].open) continue;
        assert_int_not_equal(t->b.calls[i].task, CALL_GENERATE);
        if (t->b.calls[i].task == CALL_CLASSIFY) answer_label(&t->b.calls[i], "iot_hue_lighton", 0);
        if (t->b.calls[i].task == CALL_TAG) answer_spans(&t->b.calls[i], false);
    }
    fake_turns();
}

static void told_is(const bench *t, const char *expected)
{
    if (strcmp(buf_text(&t->told), expected) != 0) fail_msg("%s\nexpected: %s", buf_text(&t->told), expected);
}

#define CALLED "started light_turn_on{\"target\":\"light.kitchen\"} tool_calls"

static void a_pipeline_answers_as_a_model(void **state)
{
    bench t;
    bool known = false;
    call_estimate look;
    bench_open(&t, NULL);
    const Shoal__V1__ModelInfo *info = calls_info(t.c, "home", &known);
    assert_true(known);
    assert_string_equal(info->task, "generate");
    start(&t, "home", request_of(ON, TOOLS));
    let_run(&t);
    told_is(&t, CALLED);
    assert_int_equal(t.ended, 1);
    assert_int_equal(t.status, 0);
    assert_string_equal(t.model, "home");
    assert_true(t.n_prompt > 0); /* of the classifiers, */
    assert_int_equal(t.n_generated, 0);
    start(&t, "home",
          request_of("[{\"role\":\"user\",\"content\":\"don't turn on the kitchen light\"}]", TOOLS));
    let_run(&t);
    told_is(&t, "started 'All right, I leave Kitchen Light as it is.' stop");
    call_context ctx = {.request_id = "r1"};
    Shoal__V1__GenerateRequest q = request_of(ON, NULL);
    call_order *o = call_order_new(CALL_GENERATE, "home", &q.base, &ctx);
    calls_estimate(t.c, o, &(call_terms){0}, &look);
    assert_int_equal(look.status, 0);
    call_order_unref(o);
    bench_close(&t);
}

/* A chat's list says no units: those of the pipeline's devices of the same id or name count. */
static void devices_of_a_chat_keep_their_units(void **state)
{
    static const char *const lists[] = {"climate.hall 'Hall Heat' = heat",
                                        "- names: Heat Pump\\n  domain: climate\\n  state: heat"};
    for (size_t i = 0; i < 2; i++) {
        bench t;
        char messages[512];
        bench_load(&t, SHOAL_SOURCE_DIR "/tests/data/chat/units.yaml");
        snprintf(
            messages, sizeof messages,
            "[{\"role\":\"system\",\"content\":\"%s\"},{\"role\":\"user\",\"content\":\"set the heat %s to "
            "70\"}]",
            lists[i], i ? "pump" : "hall");
        start(&t, "home", request_of(messages, NULL));
        let_run(&t);
        if (!strstr(buf_text(&t.told), "climate.set_temperature of")) fail_msg("%s", buf_text(&t.told));
        bench_close(&t);
    }
}

/* "Which one?" is answered by the next message, and by nothing that asks for something else. */
static void an_answer_completes_the_request(void **state)
{
#define LAMPS                                                                                               \
    "{\"role\":\"system\",\"content\":\"light.den 'Den Lamp' = off\\nlight.nursery 'Nursery Lamp' = off\\n" \
    "light.hall 'Hall Light' = off\\nlock.a 'Front Door' = locked\\nlock.b 'Back Door' = locked\"},"
#define WHICH(request, reply, answer)                                                                        \
    "[" LAMPS "{\"role\":\"user\",\"content\":\"" request "\"},{\"role\":\"assistant\",\"content\":\"" reply \
    "\"},{\"role\":\"user\",\"content\":\"" answer "\"}]"
#define LAMP(answer) WHICH("turn on the lamp", "Which one: Den Lamp or Nursery Lamp?", answer)
#define DOOR(answer) WHICH("unlock the door!", "Which one: Front Door or Back Door?", answer)
#define HEAT(reply, answer)                                                                            \
    "[{\"role\":\"system\",\"content\":\"climate.up 'Upstairs Thermostat' = heat\\nclimate.down 'Den " \
    "Thermostat' = heat\"},{\"role\":\"user\",\"content\":\"turn up the thermostat\"},"                \
    "{\"role\":\"assistant\",\"content\":\"" reply "\"},{\"role\":\"user\",\"content\":\"" answer "\"}]"
#define ONE_HEAT(answer)                                                                              \
    "[{\"role\":\"system\",\"content\":\"climate.up 'Upstairs Thermostat' = heat\"},"                 \
    "{\"role\":\"user\",\"content\":\"turn up the thermostat\"},{\"role\":\"assistant\",\"content\":" \
    "\"Tell me a temperature, such as: set Upstairs Thermostat to 21 °C. I changed nothing.\"},"     \
    "{\"role\":\"user\",\"content\":\"" answer "\"}]"
#define BRIGHT(answer) \
    WHICH("dim the den lamp", "Tell me how bright, such as: set Den Lamp to 40%. I changed nothing.", answer)
    static const struct {
        const char *messages, *told, *lacks;
    } CASES[] = {
        {HEAT("Which one: Upstairs Thermostat or Den Thermostat?", "upstairs"), "set Upstairs Thermostat to",
         "Turning off"},
        {HEAT("Which one: Upstairs Thermostat or Den Thermostat?", "the upstairs thermostat"),
         "set Upstairs Thermostat to", "Turning off"},
        {ONE_HEAT("upstairs"), "set Upstairs Thermostat to", "Turning off"},
        {ONE_HEAT("20"), "climate.set_temperature of Upstairs Thermostat.", "Tell me"},
        {ONE_HEAT("20.5 degrees please"), "climate.set_temperature of Upstairs Thermostat.", "Tell me"},
        {ONE_HEAT("68 F"), "climate.set_temperature of Upstairs Thermostat.", "Tell me"},
        {ONE_HEAT("40"), "goes from 5 to 35 °C", "climate."},
        {ONE_HEAT("72"), "Do you mean: Setting Upstairs Thermostat to 72 °F.",
         "climate."}, /* no room's in °C */
        {ONE_HEAT("720"), "goes from 5 to 35 °C", "climate."},
        {ONE_HEAT("20 %"), "I can't set the temperature of Upstairs Thermostat in %", "climate."},
        {ONE_HEAT("20 tomorrow"), "", "climate."},
        {ONE_HEAT("20 people"), "", "climate."},
        {BRIGHT("40"), "light.turn_on of Den Lamp.", "Hall"},
        {BRIGHT("40%"), "light.turn_on of Den Lamp.", "Hall"},
        {BRIGHT("400"), "from 1 to 100", "light."},
        {BRIGHT("no"), "", "light."},
        {LAMP("hall"), "", "Do you mean"},
        {LAMP("den"), "light.turn_on of Den Lamp.", "Nursery"},
        {LAMP("the den one"), "light.turn_on of Den Lamp.", "Nursery"},
        {LAMP("the nursery lamp, please"), "light.turn_on of Nursery Lamp.", "Den"},
        {LAMP("both"), "light.turn_on of Den Lamp, light.turn_on of Nursery Lamp.", "Hall"},
        {DOOR("the back door"), "lock.unlock of Back Door.", "Front"},
        {LAMP("hall"), "", "light.turn_on"},           /* it was not asked about */
        {LAMP("the hall light"), "", "light.turn_on"}, /* nor this */
        {LAMP("not the den one"), "light.turn_on of Nursery Lamp.", "Den"},
        {LAMP("the den is dark"), "", "light.turn_on"}, /* a remark */
        {LAMP("den tomorrow"), "", "light.turn_on"},    /* later */
        {LAMP("why?"), "", "light.turn_on"},            /* a question */
        {LAMP("lock the back door"), "lock.lock of Back", "light.turn_on"},
        {WHICH("turn on the lamp", "Which one do you like?", "den"), "",
         "light.turn_on"}, /* somebody else's */
    };
    bench t;
    bench_load(&t, SHOAL_SOURCE_DIR "/tests/data/chat/units.yaml");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        start(&t, "home", request_of(CASES[i].messages, NULL));
        let_run(&t);
        const char *told = buf_text(&t.told);
        if (!strstr(told, CASES[i].told) || strstr(told, CASES[i].lacks)) fail_msg("%zu: %s", i, told);
    }
    bench_close(&t);
}

/* Several turns: "it" is what was acted on or asked about, and an answer may be asked about again. */
static void what_was_said_before_is_remembered(void **state)
{
#define U(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define A(text) ",{\"role\":\"assistant\",\"content\":\"" text "\"},"
#define LIST                                                                                                 \
    "{\"role\":\"system\",\"content\":\"light.den 'Den Lamp' = off\\nlight.hall 'Hall Light' = on\\nlock.a " \
    "'Front "                                                                                                \
    "Door' = locked\\nclimate.up 'Upstairs Thermostat' = heat\\nclimate.down 'Den Thermostat' = "            \
    "heat\\nfan.a 'Fan' = off\"},"
#define DEN_ON U("turn on the den lamp") A("Turning on Den Lamp.")
#define TWO_ON U("turn on the den lamp and the fan") A("Turning on Den Lamp and turning on Fan.")
#define WARM   U("turn up the heat") A("Which one: Upstairs Thermostat or Den Thermostat?")
#define TELL   "Tell me a temperature, such as: set Upstairs Thermostat to 21 °C. I changed nothing."
    static const struct {
        const char *messages, *told, *lacks;
    } CASES[] = {
        {"[" LIST DEN_ON U("turn it off") "]", "light.turn_off of Den Lamp.", "Hall"},
        {"[" LIST DEN_ON U("off again") "]", "light.turn_off of Den Lamp.", "Hall"},
        {"[" LIST DEN_ON U("turn it off") A("Turning off Den Lamp.") U("and on again") "]",
         "light.turn_on of Den Lamp.", "Hall"},
        {"[" LIST DEN_ON U("dim it to 40%") "]", "light.turn_on of Den Lamp.", "Hall"},
        {"[" LIST DEN_ON U("lock it") "]", "I can't lock Den Lamp", "Front"},
        {"[" LIST DEN_ON U("is it on?") "]", "No, Den Lamp is off.", "Hall"},
        {"[" LIST DEN_ON U("don't turn it off") "]", "I change nothing", "light."},
        {"[" LIST DEN_ON U("turn it off tomorrow") "]", "", "light."},
        {"[" LIST DEN_ON U("turn the hall light off") "]", "light.turn_off of Hall Light.", "Den"},
        {"[" LIST U("turn on the den lamp") A("Sure, it is on!") U("turn it off") "]", "", "light."},
        {"[" LIST U("turn off the den lamp") A("Turning on Den Lamp.") U("turn it off") "]", "", "light."},
        {"[" LIST U("is the front door locked?") A("Yes, Front Door is locked.") U("unlock it") "]",
         "lock.unlock of Front Door.", "Den"},
        {"[" LIST TWO_ON U("turn it off") "]", "Which one: Den Lamp or Fan?", "light."},
        {"[" LIST TWO_ON U("turn it off") A("Which one: Den Lamp or Fan?") U("the fan") "]",
         "fan.turn_off of Fan.", "Lamp"},
        {"[" LIST TWO_ON U("turn them off") "]", "light.turn_off of Den Lamp, fan.turn_off of Fan.", "Hall"},
        {"[" LIST WARM U("upstairs") A(TELL) U("20") "]", "climate.set_temperature of Upstairs Thermostat.",
         "Den"},
        {"[" LIST WARM U("upstairs") A(TELL) U("set it to 20") "]",
         "climate.set_temperature of Upstairs Thermostat.", "Den"},
        {"[" LIST WARM U("upstairs") A(TELL) U("40")
             A("The temperature of Upstairs Thermostat goes from 5 to 35 "
               "°C. I changed nothing.") U("22 then") "]",
         "climate.set_temperature of Upstairs Thermostat.", "Den"},
        {"[" LIST DEN_ON U("hello") A("Hi.") U("turn it off") "]", "", "light."},
        {"[" LIST U("and the hall light")
             A("I am not sure what you want. Do you mean: Turning off Hall Light.") U("yes")
                 A("Turning off Hall Light.") U("turn it on") "]",
         "light.turn_on of Hall Light.", "Den"},
    };
    bench t;
    bench_load(&t, SHOAL_SOURCE_DIR "/tests/data/chat/units.yaml");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        start(&t, "home", request_of(CASES[i].messages, NULL));
        let_run(&t);
        const char *told = buf_text(&t.told);
        if (!strstr(told, CASES[i].told) || strstr(told, CASES[i].lacks)) fail_msg("%zu: %s", i, told);
    }
    bench_close(&t);
}

#define F(name, properties)                                                                           \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"parameters\":{\"type\":\"object\"," \
    "\"properties\":{" properties "}}}}"
#define INT(key) "\"" key "\":{\"type\":\"integer\"}"
#define NAME     "\"name\":{\"type\":\"string\"}"

/* A chat's thermostat: in the unit that its messages name; where they name none, a number that is no room's in degrees
 * Celsius is asked about, and sent as it was said. */
static void a_chat_says_its_unit(void **state)
{
#define CLIMATE                        \
    "[" F("HassClimateSetTemperature", \
          NAME ",\"temperature\":{\"type\":\"number\"}") "," F("GetLiveContext", "") "]"
#define UNIT(system, said)                                            \
    "[{\"role\":\"system\",\"content\":\"" system                     \
    "\\n- names: Thermostat\\n  domain: climate\\n- names: Oven\\n  " \
    "domain: switch\\n\"}," said "]"
#define SET_TO(n) "HassClimateSetTemperature{\"name\":\"Thermostat\",\"temperature\":" n "}"
#define SET_72    U("set the thermostat to 72")
#define MEANS_72  "I am not sure what you want. Do you mean: Setting Thermostat to 72 °F."
#define LIVE_FAHRENHEIT                                                                                     \
    ",{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"GetLiveContext\","     \
    "\"arguments\":{}}}]},"                                                                                 \
    "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"- names: Porch\\n  domain: sensor\\n  state: " \
    "'60 °F'\"}"
    static const struct {
        const char *messages, *told;
    } CASES[] = {
        {UNIT("Use Fahrenheit.", SET_72), SET_TO("72")},
        {UNIT("It is 60°F outside.", SET_72), SET_TO("72")},
        {UNIT("unit_system: us_customary", SET_72), SET_TO("72")},
        {UNIT("locale: en-US", SET_72), SET_TO("72")},
        {UNIT("locale: en-US, unit: °C", SET_72), "goes from 5 to 35 °C"},
        {UNIT("Imperial Lamp. Ref°Fr.", SET_72), "Do you mean"},
        {UNIT("unit: °C", SET_72), "goes from 5 to 35 °C"},
        {UNIT("68 °F are 20 °C.", SET_72), "Do you mean"}, /* both */
        {UNIT("°F", U("set the thermostat to 20 °C")), SET_TO("68")},
        {UNIT("°F", U("set the thermostat to 21")), "goes from 41 to 95 °F"},
        {UNIT("", U("set the thermostat to 21")), SET_TO("21")},
        {UNIT("", U("set the thermostat to 40")), "goes from 5 to 35 °C"},
        {UNIT("", U("set the thermostat to 400")), "goes from 5 to 35 °C"},
        {UNIT("", SET_72), MEANS_72},
        {UNIT("", SET_72 LIVE_FAHRENHEIT), SET_TO("72")},
        {UNIT("", SET_72 A(MEANS_72) U("yes")), SET_TO("72")},
        {UNIT("", SET_72 A(MEANS_72) U("no")), "'All right"},
        {UNIT("", SET_72 A(MEANS_72) U("21")), SET_TO("21")},
        {UNIT("", U("set the thermostat to 72 °F")), SET_TO("22.2")},
    };
    bench t;
    bench_load(&t, SHOAL_SOURCE_DIR "/tests/data/chat/plain.yaml");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        start(&t, "home", request_of(CASES[i].messages, CLIMATE));
        let_run(&t);
        if (!strstr(buf_text(&t.told), CASES[i].told)) fail_msg("%zu: %s", i, buf_text(&t.told));
    }
    bench_close(&t);
}

/* What not every home can do, it does where the request offers a function for it, and says so where not. */
static void what_is_offered_is_done(void **state)
{
#define TIME INT("hours") "," INT("minutes") "," INT("seconds")
    static const char ALL[] = "[" F("HassSetPosition", NAME "," INT("position")) "," F(
        "HassFanSetSpeed",
        NAME "," INT(
            "percentag"
            "e")) "," F("HassSetVolume",
                        NAME "," INT(
                            "volume_level")) "," F("HassStartTimer", NAME
                                                   "," TIME) "," F("HassCancelTimer",
                                                                   NAME) "," F("HassCancelAllTimers",
                                                                               "") "," F("HassPauseTimer",
                                                                                         NAME) "," F("HassUnp"
                                                                                                     "auseTim"
                                                                                                     "er",
                                                                                                     NAME) "," F("HassInc"
                                                                                                                 "reaseTi"
                                                                                                                 "mer",
                                                                                                                 TIME) "," F("HassDecreaseTimer",
                                                                                                                             TIME) "]";
    static const char NONE[] = "[" F("HassTurnOn", NAME) "]";
    static const struct {
        const char *said, *called, *else_told;
    } CASES[] = {
        {"set the dining room blinds to 40%",
         "HassSetPosition{\"name\":\"Dining Room Blinds\",\"position\":40}", "not to a part of the way"},
        {"open the blinds halfway", "HassSetPosition{\"name\":\"Dining Room Blinds\",\"position\":50}",
         "not to a part of the way"},
        {"open the blinds a bit", "'Tell me how far", "not to a part of the way"},
        {"close the blinds 30%", "'Tell me how far", "not to a part of the way"},
        {"open the garage halfway", "not to a part of the way", "not to a part of the way"},
        {"set the fan to 50%", "HassFanSetSpeed{\"name\":\"Office Fan\",\"percentage\":50}",
         "faster or slower"},
        {"set the fan to 400%", "goes from 1 to 100", "faster or slower"},
        {"set the speaker to 30%", "HassSetVolume{\"name\":\"Lounge Speaker\",\"volume_level\":30}",
         "not to a number"},
        {"set a timer for an hour and a half", "HassStartTimer{\"hours\":1,\"minutes\":30}",
         "timer.start of Kitchen"},
        {"cancel the timer", "HassCancelTimer{}", "timer.cancel of Kitchen"},
        {"cancel all timers", "HassCancelAllTimers{}", "timer.cancel of Kitchen"},
        {"pause the timer", "HassPauseTimer{}", "timer.pause of Kitchen"},
        {"resume the timer", "HassUnpauseTimer{}", "Kitchen Timer"},
        {"add 5 minutes to the timer", "HassIncreaseTimer{\"minutes\":5}", "I can't find"},
        {"take 90 seconds off the timer", "HassDecreaseTimer{\"minutes\":1,\"seconds\":30}", "Kitchen Timer"},
        {"don't set a timer for 5 minutes", "'All right", "'All right"},
        {"turn off the kitchen light in 5 minutes", "I can't do things later", "I can't do things later"},
    };
    bench t;
    char message[256];
    bench_open(&t, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        snprintf(message, sizeof message, "[{\"role\":\"user\",\"content\":\"%s\"}]", CASES[i].said);
        start(&t, "home", request_of(message, ALL));
        let_run(&t);
        if (!strstr(buf_text(&t.told), CASES[i].called)) fail_msg("%s: %s", CASES[i].said, buf_text(&t.told));
        start(&t, "home", request_of(message, NONE));
        let_run(&t);
        if (!strstr(buf_text(&t.told), CASES[i].else_told))
            fail_msg("%s: %s", CASES[i].said, buf_text(&t.told));
        assert_null(strstr(buf_text(&t.told), "tool_calls"));
    }
    bench_close(&t);
}

/* A guard's question is told by asking it once more; a text that it would not have asked confirms nothing. */
static void a_yes_answers_a_guard(void **state)
{
#define SURE "Shall I really do that: Front Door?"
#define DOORS(request, reply, answer)                                                               \
    "[{\"role\":\"user\",\"content\":\"" request "\"},{\"role\":\"assistant\",\"content\":\"" reply \
    "\"},{\"role\":\"user\",\"content\":\"" answer "\"}]"
    static const struct {
        const char *messages, *told, *lacks;
    } CASES[] = {
        {"[{\"role\":\"user\",\"content\":\"unlock the front door\"}]", SURE, "lock.unlock"},
        {DOORS("unlock the front door", SURE, "yes"), "lock.unlock of Front Door.", SURE},
        {DOORS("unlock the front door", " " SURE "\\n", "ja bitte"), "lock.unlock of Front Door.", SURE},
        {DOORS("unlock the front door", SURE, "no"), "", "lock.unlock"},
        {DOORS("unlock the front door", SURE, "why"), "", "lock.unlock"},
        {DOORS("unlock the front door", "Are you sure?", "yes"), "", "lock.unlock"}, /* it asks otherwise */
        {DOORS("lock the front door", SURE, "yes"), "", "lock.unlock"},
        {DOORS("tell me a joke", SURE, "yes"), "", "lock.unlock"},
        {DOORS("tell me a joke", "unlock the front door", "yes"), "", "lock.unlock"},
    };
    bench t;
    bench_load(&t, SHOAL_SOURCE_DIR "/examples/languages.yaml");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        start(&t, "doors", request_of(CASES[i].messages, NULL));
        for (int runs = 0; runs < 2; runs++) let_run(&t);
        const char *told = buf_text(&t.told);
        if (!t.ended || !strstr(told, CASES[i].told) || strstr(told, CASES[i].lacks))
            fail_msg("%zu: %s", i, told);
    }
    start(&t, "doors", request_of(CASES[1].messages, NULL)); /* it may be left while it asks once more */
    fake_turns();
    calls_cancel(t.call);
    bench_close(&t);
}

/* The request before is asked once more, and not done once more: no host is asked, no text written. */
static void a_yes_does_nothing_twice(void **state)
{
    bench t;
    bench_load(&t, SHOAL_SOURCE_DIR "/tests/data/chat/guarded.yaml");
    start(&t, "doors", request_of(DOORS("lock the front door", "Locking Front Door.", "yes"), NULL));
    let_run(&t);
    if (t.status || !strstr(buf_text(&t.told), "nothing that is still open"))
        fail_msg("%s", buf_text(&t.told));
    bench_close(&t);
}

/* Another name goes to the calls underneath. */
static void a_model_is_asked_as_before(void **state)
{
    bench t;
    Shoal__V1__GenerateRequest q = request_of(ON, NULL);
    bench_open(&t, NULL);
    q.max_tokens = 8;
    q.parse_tool_calls = true;
    start(&t, "home-chat-s", q);
    assert_int_equal(t.b.n, 1);
    assert_string_equal(t.b.calls[0].model, "home-chat-s");
    calls_cancel(t.call);
    bench_close(&t);
}

/* It may be paused and left at any event, and before the first. */
static void a_pipeline_rests_and_is_left(void **state)
{
    for (unsigned at = 1; at <= 3; at++) {
        bench t;
        bench_open(&t, NULL);
        t.pause_at = at;
        start(&t, "home", request_of(ON, TOOLS));
        let_run(&t);
        assert_int_equal(t.n_events, at);
        assert_int_equal(t.ended, 0);
        t.pause_at = 0;
        calls_pause(t.call, false);
        fake_turns();
        told_is(&t, CALLED);
        assert_int_equal(t.ended, 1);
        t.cancel_at = at;
        start(&t, "home", request_of(ON, TOOLS));
        let_run(&t);
        assert_int_equal(t.n_events, at);
        assert_int_equal(t.ended, 0);
        bench_close(&t);
    }
    bench t;
    bench_open(&t, NULL);
    start(&t, "home", request_of(ON, TOOLS));
    calls_cancel(t.call);
    start(&t, "home", request_of(ON, TOOLS));
    fake_turns(); /* its classifiers are asked */
    assert_true(t.b.n > 0);
    calls_cancel(t.call);
    assert_true(t.b.calls[0].cancelled);
    start(&t, "home", request_of(ON, TOOLS));
    bench_close(&t); /* the calls go with one under way */
}

/* Where JSON is wanted the reply is what is said and what is meant, as far as the schema takes it; nothing is called. */
static void a_reply_takes_a_form(void **state)
{
#define OBJECT(properties, required)                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required \
    "],\"additionalProperties\":false}"
#define TEXT_MEMBER  "\"text\":{\"type\":\"string\"}"
#define CALLS_MEMBER "\"calls\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\"]}}"
#define HELLO        "[{\"role\":\"user\",\"content\":\"hello\"}]"
#define MEANT        "\"calls\":[{\"name\":\"light_turn_on\",\"arguments\":{\"target\":\"light.kitchen\"}}]}"
    static const struct {
        const char *messages, *tools, *schema, *told; /* schema NULL: any object; told NULL: it is refused */
    } CASES[] = {
        {HELLO, NULL, NULL, "'{\"text\":\"Hello. "},
        {HELLO, NULL, NULL, "\"calls\":[]}' stop"},
        {ON, TOOLS, NULL,
         "so nothing was done. What you mean is light.turn_on of Kitchen Light.\"," MEANT "' stop"},
        {ON, NULL, NULL, "\"calls\":[{\"name\":\"light.turn_on\","},
        {ON, TOOLS, OBJECT(TEXT_MEMBER, "\"text\""), "light.turn_on of Kitchen Light.\"}' stop"},
        {ON, TOOLS, OBJECT(CALLS_MEMBER, "\"calls\""), "'{" MEANT "' stop"},
        {ON, TOOLS, "{\"type\":\"object\"}", MEANT},
        {ON, TOOLS, OBJECT("\"city\":{\"type\":\"string\"}", "\"city\""), NULL},
        {ON, TOOLS, OBJECT("\"text\":{\"type\":\"integer\"}", "\"text\""), NULL},
        {ON, TOOLS, "{\"type\":\"array\"}", NULL},
    };
    bench t;
    bench_open(&t, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Shoal__V1__GenerateRequest q = request_of(CASES[i].messages, CASES[i].tools);
        q.constraint = CASES[i].schema ? SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA
                                       : SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT;
        if (CASES[i].schema) q.schema = (char *)(uintptr_t)CASES[i].schema;
        start(&t, "home", q);
        let_run(&t);
        bool well = CASES[i].told && strstr(buf_text(&t.told), CASES[i].told);
        if (!CASES[i].told)
            well = t.n_events == 0 && t.status == SHOAL_EINVALID &&
                   strstr(t.message, "which the schema does not take (");
        if (!well) fail_msg("%zu: %s %s", i, buf_text(&t.told), t.message);
    }
    bench_close(&t);
}

static void what_a_pipeline_cannot_do_is_refused(void **state)
{
    static char long_messages[40000];
    Shoal__V1__GenerateRequest formed = request_of(ON, NULL), probable = request_of(ON, NULL);
    formed.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
    probable.logprobs = true;
    snprintf(long_messages, sizeof long_messages, "[{\"role\":\"user\",\"content\":\"%036000d\"}]", 0);
    const struct {
        Shoal__V1__GenerateRequest q;
        int status;
        const char *message;
    } CASES[] = {{formed, SHOAL_EINVALID, "one of given texts"},
                 {probable, SHOAL_EINVALID, "logprobs"},
                 {request_of("[{\"role\":\"system\",\"content\":\"x\"}]", NULL), SHOAL_EINVALID,
                  "a message of a user"},
                 {request_of(long_messages, NULL), SHOAL_ELIMIT, "takes"}};
    bench t;
    bench_open(&t, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        start(&t, "home", CASES[i].q);
        fake_turns();
        assert_int_equal(t.ended, 1);
        assert_int_equal(t.status, CASES[i].status);
        if (!strstr(t.message, CASES[i].message)) fail_msg("%s", t.message);
        assert_int_equal(t.b.n, 0);
    }
    bench_close(&t);
}

static const char WRITES[] =
    "manifest: " SHOAL_SOURCE_DIR "/models/models.json\n"
    "models: [{name: home-chat-s}, {name: home-intent}]\n"
    "pipelines:\n"
    "  - {name: says, stages: [{name: reply, kind: generate, model: home-chat-s, tool_choice: none}]}\n"
    "  - {name: writes, stages: [{name: reply, kind: generate, model: home-chat-s}]}\n"
    "  - {name: labels, stages: [{name: what, kind: classify, model: home-intent}]}\n"
    "  - {name: home-chat-s, stages: [{name: reply, kind: generate, model: home-chat-s}]}\n";

static noted *writer(bench *t, const char *model, const char *tools)
{
    start(t, model, request_of(ON, tools));
    fake_turns();
    return &t->b.calls[t->b.n - 1];
}

/* What calls nothing is told while it is written. What may call is told in the end: its words may claim an act. */
static void a_reply_without_calls_is_told_as_it_comes(void **state)
{
    bench t;
    bench_open(&t, WRITES);
    noted *w = writer(&t, "says", NULL);
    say_call(w, "It is ", NULL, NULL, 0);
    assert_int_equal(t.n_events, 0); /* no event inside an event of the stage */
    fake_turns();
    told_is(&t, "started 'It is' ");
    say_call(w, "dark.", NULL, NULL, 0);
    fake_turns();
    told_is(&t, "started 'It is' ' dark.' ");
    calls_pause(t.call, true);
    assert_true(w->paused);
    say_call(w, " Is it?", NULL, NULL, 0);
    end_reply(w, 0.9);
    told_is(&t, "started 'It is' ' dark.' ");
    calls_pause(t.call, false);
    fake_turns();
    told_is(&t, "started 'It is' ' dark.' ' Is it?' stop");
    assert_true(t.ended == 1 && t.status == 0 && t.n_prompt == 40 && t.n_generated == 9);
    w = writer(&t, "writes", NULL);
    say_call(w, "Turning on", NULL, NULL, 0);
    fake_turns();
    told_is(&t, "");
    say_call(w, " it.", "light.turn_on", "{}", 0);
    end_reply(w, 0.9);
    assert_null(strstr(buf_text(&t.told), "Turning"));
    bench_close(&t);
}

/* Such a reply may be left at each event, and fail behind one. */
static void a_reply_that_is_told_may_end_early(void **state)
{
    bench t;
    bench_open(&t, WRITES);
    for (unsigned at = 1; at <= 3; at++) {
        noted *w = writer(&t, "says", NULL);
        t.cancel_at = at;
        say_call(w, "It", NULL, NULL, 0);
        fake_turns();
        if (at == 3) end_reply(w, 0.9);
        assert_int_equal(t.n_events, at);
        assert_int_equal(t.ended, 0);
        t.cancel_at = 0;
    }
    noted *w = writer(&t, "says", NULL);
    say_call(w, "It", NULL, NULL, 0);
    fake_turns();
    end_call(w, SHOAL_EUNAVAILABLE, "gone", NULL);
    fake_turns();
    assert_string_equal(t.message, "stage 'reply': gone");
    w = writer(&t, "says", NULL);
    say_call(w, "It", NULL, NULL, 0);
    bench_close(&t);
}

/* A stage that fails is named; a pipeline that says nothing, or has a model's name, is no model. */
static void a_failed_stage_is_named(void **state)
{
    bench t;
    bench_open(&t, WRITES);
    start(&t, "writes", request_of(ON, NULL));
    fake_turns();
    assert_int_equal(t.b.n, 1);
    end_call(&t.b.calls[0], SHOAL_EUNAVAILABLE, "nobody is there", NULL);
    fake_turns();
    assert_int_equal(t.ended, 1);
    assert_int_equal(t.status, SHOAL_EUNAVAILABLE);
    assert_string_equal(t.message, "stage 'reply': nobody is there");
    assert_non_null(pipeline_calls_find(t.config, "writes"));
    assert_null(pipeline_calls_find(t.config, "labels"));
    assert_null(pipeline_calls_find(t.config, "home-chat-s"));
    bench_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_answers_as_a_model),
        cmocka_unit_test(devices_of_a_chat_keep_their_units),
        cmocka_unit_test(an_answer_completes_the_request),
        cmocka_unit_test(what_was_said_before_is_remembered),
        cmocka_unit_test(a_chat_says_its_unit),
        cmocka_unit_test(what_is_offered_is_done),
        cmocka_unit_test(a_yes_answers_a_guard),
        cmocka_unit_test(a_yes_does_nothing_twice),
        cmocka_unit_test(a_model_is_asked_as_before),
        cmocka_unit_test(a_pipeline_rests_and_is_left),
        cmocka_unit_test(a_reply_takes_a_form),
        cmocka_unit_test(what_a_pipeline_cannot_do_is_refused),
        cmocka_unit_test(a_reply_without_calls_is_told_as_it_comes),
        cmocka_unit_test(a_reply_that_is_told_may_end_early),
        cmocka_unit_test(a_failed_stage_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
