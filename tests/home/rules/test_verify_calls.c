/* verify_calls over scripted calls, in simulated time. */
#include "../../server/calls/script.h"

#include "ensemble/verify_calls.h"
#include "verify_home.h"

#define SAFE "I did nothing."

typedef struct bench {
    script s;
    calls *c;
    verify_rule rule;
    int n_judged[8];
    lexicon *lex;
    arena *mem;
} bench;

/* What came out, with its calls. */
typedef struct outcome {
    heard h;
    char calls[1024], finish[16], wanted[32], why[128], trace[400];
    uint32_t n_generated;
} outcome;

static void on_judged(void *user, const char *name, const char *model, verify_end end)
{
    bench *b = user;
    assert_string_equal(name, "m");
    assert_non_null(model);
    b->n_judged[end]++;
}

static const char *const MEMBERS[] = {"small", "large"};

static void bench_open_with(bench *b, const verify_check *checks, size_t n, const verify_step *steps,
                            size_t n_steps)
{
    *b = (bench){.lex = home_lexicon(), .mem = arena_new(0)};
    verify_check *kept = arena_alloc(b->mem, n * sizeof *kept);
    memcpy(kept, checks, n * sizeof *kept);
    for (size_t i = 0; i < n; i++)
        if (kept[i].kind == VERIFY_DEVICES) kept[i].devices = &rule_answer_devices, kept[i].lexicon = b->lex;
    b->rule = (verify_rule){.name = "m",
                            .members = MEMBERS,
                            .n_members = 2,
                            .checks = kept,
                            .n_checks = n,
                            .n_steps = n_steps,
                            .safe = SAFE};
    memcpy(b->rule.steps, steps, n_steps * sizeof *steps);
    script_init(&b->s);
    verify_options o = {.rules = &b->rule, .n_rules = 1, .user = b, .judged = on_judged};
    assert_int_equal(verify_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static const verify_check DEVICES[] = {{.name = "devices", .kind = VERIFY_DEVICES}};
static const verify_step USUAL[] = {VERIFY_REPAIR, VERIFY_ESCALATE},
                         LATER[] = {VERIFY_ESCALATE, VERIFY_REPAIR};

static void bench_open(bench *b)
{
    bench_open_with(b, DEVICES, 1, USUAL, 2);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
    lexicon_free(b->lex);
    arena_free(b->mem);
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void on_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    outcome *o = user;
    size_t n = strlen(o->calls);
    for (size_t i = 0; ev->delta && i < ev->delta->n_tool_calls; i++) {
        const Shoal__V1__ToolCallDelta *d = ev->delta->tool_calls[i];
        n += (size_t)snprintf(o->calls + n, sizeof o->calls - n, "%s%s%s", n && *d->name ? "; " : "", d->name,
                              d->arguments);
    }
    if (ev->done) {
        snprintf(o->finish, sizeof o->finish, "%s", ev->done->finish);
        o->n_generated = ev->done->n_generated;
    }
    hear_event(&o->h, ev);
}

static void on_end(void *user, const call_result *r)
{
    outcome *o = user;
    snprintf(o->wanted, sizeof o->wanted, "%s", r->wanted ? r->wanted : "");
    snprintf(o->why, sizeof o->why, "%s", r->why ? r->why : "");
    snprintf(o->trace, sizeof o->trace, "%s", r->trace ? r->trace : "");
    hear_end(&o->h, r);
}

static model_call *ask_with(bench *b, outcome *o, const Shoal__V1__GenerateRequest *req, uint64_t deadline_ns)
{
    *o = (outcome){.calls = ""};
    call_context ctx = {.request_id = "r1", .deadline_ns = deadline_ns};
    calls_generate_events ev = {.user = o, .event = on_event, .end = on_end};
    return o->h.call = calls_generate(b->c, "m", req, &ctx, &ev);
}

static Shoal__V1__GenerateRequest request(bench *b, const char *user)
{
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    req.messages_json = (char *)(uintptr_t)home_messages(b->mem, user);
    return req;
}

static void ask(bench *b, outcome *o, const char *user, uint64_t deadline_ns)
{
    Shoal__V1__GenerateRequest req = request(b, user);
    assert_non_null(ask_with(b, o, &req, deadline_ns));
}

/* ---- answering ----------------------------------------------------------------------------------- */

static void say_call(scripted *c, uint32_t index, const char *name, const char *arguments)
{
    Shoal__V1__ToolCallDelta call = SHOAL__V1__TOOL_CALL_DELTA__INIT, *list[] = {&call};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    call.index = index;
    call.name = (char *)(uintptr_t)name;
    call.arguments = (char *)(uintptr_t)arguments;
    d.tool_calls = list;
    d.n_tool_calls = 1;
    ev.delta = &d;
    c->ev.event(&c->ev, &ev.base);
}

static void say_end(scripted *c, const char *finish)
{
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    d.finish = (char *)(uintptr_t)finish;
    d.n_generated = 17;
    ev.done = &d;
    c->ev.event(&c->ev, &ev.base);
}

static void answer(scripted *c, const char *text, const char *call)
{
    say_started(c);
    if (*text) say(c, 1, text);
    if (call) {
        size_t n = strcspn(call, "(");
        char name[64], arguments[128];
        snprintf(name, sizeof name, "%.*s", (int)n, call);
        snprintf(arguments, sizeof arguments, "{\"target\": \"%.*s\"}", (int)(strlen(call) - n - 2),
                 call + n + 1);
        say_call(c, 0, name, "");
        say_call(c, 0, "", arguments);
    }
    say_end(c, call ? "tool_calls" : "stop");
    script_end(c, CALL_FAULT_NONE);
}

/* ---- the ways out -------------------------------------------------------------------------------- */

static void what_passes_goes_out_as_it_came(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "turn on the kitchen light", 0);
    scripted *small = b.s.calls[0];
    assert_string_equal(small->order->model, "small");
    say_started(small);
    say(small, 1, "Turning on ");
    say(small, 1, "Kitchen Light.");
    say_call(small, 0, "light.turn_on", "{\"target\": \"light.kitchen\"}");
    assert_int_equal(o.h.n_events, 0); /* it may still have to be held back */
    say_end(small, "tool_calls");
    script_end(small, CALL_FAULT_NONE);
    assert_int_equal(o.h.n_events, 5);
    assert_string_equal(o.h.text, "Turning on Kitchen Light.");
    assert_string_equal(o.calls, "light.turn_on{\"target\": \"light.kitchen\"}");
    assert_string_equal(o.finish, "tool_calls");
    assert_string_equal(o.trace, "small passed");
    assert_string_equal(o.h.model, "small");
    assert_int_equal(b.s.n, 1);
    assert_int_equal(b.n_judged[VERIFY_PASSED], 1);
    bench_close(&b);
}

static void what_a_rule_knows_is_repaired(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "turn on the kitchen light", 0);
    answer(b.s.calls[0], "Unlocking Front Door Lock.", "lock.unlock(lock.front_door)");
    assert_string_equal(o.h.text, "Turning on Kitchen Light.");
    assert_string_equal(o.calls, "light.turn_on{\"target\": \"light.kitchen\"}");
    assert_string_equal(o.finish, "tool_calls");
    assert_int_equal(o.n_generated, 17); /* so much was computed */
    assert_int_equal(o.h.n_started, 1);
    assert_int_equal(o.h.n_done, 1);
    assert_string_equal(o.wanted, "");
    assert_non_null(strstr(o.trace, "small devices: it does something else than was asked, repaired"));
    assert_int_equal(b.n_judged[VERIFY_REPAIRED], 1);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

/* ---- after results ---------------------------------------------------------------------------------- */

#define AFTER(user, call, result)                                                                   \
    "[{\"role\":\"system\",\"content\":\"" HOME_SYSTEM "\"},{\"role\":\"user\",\"content\":\"" user \
    "\"},{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":" call                  \
    "}]},{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"" result "\"}]"
#define LIGHT   "{\"name\":\"light.turn_on\",\"arguments\":{\"target\":\"light.kitchen\"}}"
#define WEATHER "{\"name\":\"get_weather\",\"arguments\":{}}"

static int report_result(const verify_reporter *self, verify_case *k, arena *a)
{
    (void)self;
    assert_int_equal(k->n_made, 1);
    const made_call *m = &k->results[0];
    assert_string_equal(m->id, "1");
    assert_string_equal(m->name, k->made[0].name);
    k->failed = strcmp(m->result, "ok") != 0 && strcmp(m->result, "rain") != 0;
    k->report = arena_printf(a, "%s answered: %s.", m->name, m->result);
    return k->report ? 0 : SHOAL_ENOMEM;
}

/* Something was called for the question: "I did nothing" would be wrong, and so is a deed whose result says that it
 * failed. */
static void what_results_say_goes_out_after_calls(void **state)
{
    static const struct {
        const char *messages, *said, *told;
        bool secret; /* another check holds it back */
    } ROWS[] = {
        {AFTER("turn on the kitchen light", LIGHT, "ok"), "Hm.", "Turning on Kitchen Light.", false},
        {AFTER("turn on the kitchen light", LIGHT, "gone"), "Turning on Kitchen Light.",
         "light.turn_on answered: gone.", false},
        {AFTER("turn on the kitchen light", LIGHT, "gone"), "light.turn_on answered: gone.",
         "light.turn_on answered: gone.", false},
        {AFTER("will it rain?", WEATHER, "rain"), "It rains.", "get_weather answered: rain.", false},
        {AFTER("will it rain?", WEATHER, "rain"), "It rains.", SAFE, true},
    };
    const verify_reporter reporter = {report_result};
    regex *rain = NULL;
    shoal_err err;
    assert_int_equal(regex_compile(&rain, "rain", &err), 0);
    verify_check both[] = {DEVICES[0],
                           {.name = "pattern", .kind = VERIFY_PATTERN, .must_not = &rain, .n_must_not = 1}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        bench b;
        outcome o;
        bench_open_with(&b, both, ROWS[i].secret ? 2 : 1, USUAL, 2);
        b.rule.reporter = &reporter;
        Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
        req.messages_json = (char *)(uintptr_t)ROWS[i].messages;
        assert_non_null(ask_with(&b, &o, &req, 0));
        for (size_t k = 0; k < b.s.n; k++) answer(b.s.calls[k], ROWS[i].said, NULL);
        assert_string_equal(o.h.text, ROWS[i].told);
        assert_string_equal(o.calls, "");
        bench_close(&b);
    }
    regex_free(rain);
}

/* Two services fit: the same member chooses, by grammar; who cannot hands on. */
static void options_are_put_to_the_same_member(void **state)
{
    bench b;
    outcome o;
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    req.messages_json = "[{\"role\":\"system\",\"content\":\"media_player.den 'Den Speaker' = playing\"},"
                        "{\"role\":\"user\",\"content\":\"stop the den speaker\"}]";
    for (int beams = 0; beams < 2; beams++) {
        bench_open(&b);
        req.n_beams = beams ? 2 : 0;
        ask_with(&b, &o, &req, 0);
        answer(b.s.calls[0], "Which?", NULL);
        assert_int_equal(b.s.n, 2);
        assert_string_equal(b.s.calls[1]->order->model, beams ? "large" : "small");
        Shoal__V1__GenerateRequest *again =
            (Shoal__V1__GenerateRequest *)call_order_request(b.s.calls[1]->order);
        assert_string_equal(again->messages_json, req.messages_json);
        assert_int_equal(again->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES, !beams);
        assert_int_equal(again->n_choices, beams ? 0 : 2);
        if (!beams) assert_non_null(strstr(again->choices[0], "<tool_call>"));
        protobuf_c_message_free_unpacked(&again->base, NULL);
        answer(b.s.calls[1], "Turning on Den Speaker.", "media_player.turn_on(media_player.den)");
        if (!beams) { /* it chose something else after all, and is not asked a third time */
            assert_string_equal(b.s.calls[2]->order->model, "large");
            answer(b.s.calls[2], "Stopping Den Speaker.", "media_player.media_stop(media_player.den)");
            assert_string_equal(o.calls, "media_player.media_stop{\"target\": \"media_player.den\"}");
            assert_int_equal(b.n_judged[VERIFY_ASKED], 1);
        } else {
            assert_string_equal(o.h.text, SAFE); /* a search takes no choices */
        }
        bench_close(&b);
    }
}

static void the_next_one_is_checked_too(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "what is love", 0);
    answer(b.s.calls[0], "Front Door Lock is open.", NULL);
    assert_string_equal(b.s.calls[1]->order->model, "large");
    assert_int_equal(o.h.n_events, 0);
    answer(b.s.calls[1], HOME_NOTHING, NULL);
    assert_string_equal(o.h.text, HOME_NOTHING);
    assert_string_equal(o.h.model, "large");
    assert_string_equal(o.trace,
                        "small devices: its text says something else than it does, escalated, large passed");
    bench_close(&b);
}

static void when_none_passes_the_safe_text_goes_out(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "what is love", 0);
    answer(b.s.calls[0], "", NULL);
    answer(b.s.calls[1], "Unlocking Front Door Lock.", "lock.unlock(lock.front_door)");
    assert_string_equal(o.h.text, SAFE);
    assert_string_equal(o.calls, "");
    assert_string_equal(o.finish, "stop");
    assert_string_equal(o.wanted, "");
    assert_int_equal(o.h.status, 0);
    assert_int_equal(b.n_judged[VERIFY_SAFE], 1);
    assert_int_equal(b.n_judged[VERIFY_ESCALATED], 1);
    bench_close(&b);
}

/* A program that wants JSON is not given a sentence, but told. */
static void of_a_wanted_form_nothing_is_made_up(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    Shoal__V1__GenerateRequest req = request(&b, "turn on the kitchen light");
    req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT;
    ask_with(&b, &o, &req, 0);
    answer(b.s.calls[0], "{\"light\": \"on\"}", NULL);
    answer(b.s.calls[1], "{\"light\": \"off\"}", NULL);
    assert_int_equal(o.h.status, SHOAL_EUNSUPPORTED);
    assert_int_equal(o.h.n_events, 0);
    assert_non_null(strstr(o.h.message, "no answer passed the checks of 'm'"));
    assert_int_equal(b.n_judged[VERIFY_REFUSED], 1);
    bench_close(&b);
}

static void what_one_rule_mends_the_others_must_pass(void **state)
{
    bench b;
    outcome o;
    regex *unlock;
    assert_int_equal(regex_compile(&unlock, "lock\\.unlock", NULL), 0);
    verify_check checks[] = {
        {.name = "devices", .kind = VERIFY_DEVICES},
        {.name = "pattern", .kind = VERIFY_PATTERN, .must_not = &unlock, .n_must_not = 1}};
    bench_open_with(&b, checks, 2, USUAL, 2);
    ask(&b, &o, "unlock the front door", 0);
    answer(b.s.calls[0], "x", NULL); /* the rule would unlock it */
    answer(b.s.calls[1], "Unlocking Front Door Lock.", "lock.unlock(lock.front_door)");
    assert_string_equal(o.h.text, SAFE);
    assert_string_equal(o.calls, "");
    assert_non_null(strstr(o.trace, "large pattern: it has what it must not have, safe text"));
    bench_close(&b);
    regex_free(unlock);
}

static void what_was_mended_waits_for_something_better(void **state)
{
    bench b;
    outcome o;
    bench_open_with(&b, DEVICES, 1, LATER, 2);
    ask(&b, &o, "turn on the kitchen light", 0);
    answer(b.s.calls[0], "x", NULL);
    assert_string_equal(b.s.calls[1]->order->model, "large");
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    assert_string_equal(o.calls, "light.turn_on{\"target\": \"light.kitchen\"}");
    assert_string_equal(o.wanted, "large");
    assert_string_equal(o.h.model, "m"); /* a rule's answer, and nobody's tokens */
    bench_close(&b);
}

/* ---- failures ------------------------------------------------------------------------------------ */

static void who_fails_says_nothing(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "turn on the kitchen light", 0);
    script_end(b.s.calls[0], CALL_FAULT_LOST); /* what is clear needs no model */
    assert_string_equal(o.calls, "light.turn_on{\"target\": \"light.kitchen\"}");
    assert_string_equal(o.wanted, "small");
    assert_string_equal(o.why, "it did not answer");
    assert_int_equal(o.h.n_started, 1);
    assert_int_equal(o.h.n_done, 1);

    ask(&b, &o, "what is love", 0);
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    script_end(b.s.calls[2], CALL_FAULT_ABSENT); /* nobody has answered: that is the answer */
    assert_int_equal(o.h.status, SHOAL_EUNAVAILABLE);
    assert_int_equal(o.h.n_events, 0);

    ask(&b, &o, "what is love", 0);
    script_end(b.s.calls[3], CALL_FAULT_LOST);
    answer(b.s.calls[4], HOME_NOTHING, NULL);
    assert_string_equal(o.h.text, HOME_NOTHING);
    assert_non_null(strstr(o.trace, "small: no answer came, escalated, large passed"));
    bench_close(&b);
}

static void what_is_wrong_with_the_request_is_told_at_once(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "turn on the kitchen light", 0);
    script_end_as(b.s.calls[0], SHOAL_EINVALID, CALL_FAULT_NONE);
    assert_int_equal(o.h.status, SHOAL_EINVALID);
    assert_int_equal(b.s.n, 1);
    ask(&b, &o, "turn on the kitchen light", 0); /* too long for this one: another may have more room */
    script_end_as(b.s.calls[1], SHOAL_ELIMIT, CALL_FAULT_NONE);
    assert_string_equal(o.calls, "light.turn_on{\"target\": \"light.kitchen\"}");
    bench_close(&b);
}

/* ---- the deadline -------------------------------------------------------------------------------- */

static uint64_t in_ms(const bench *b, uint64_t ms)
{
    return b->s.env->now_ns(b->s.env->user) + ms * 1000000;
}

static void near_the_deadline_what_was_mended_or_safe_goes_out(void **state)
{
    bench b;
    outcome o;
    bench_open_with(&b, DEVICES, 1, LATER, 2);
    for (int clear = 0; clear < 2; clear++) {
        ask(&b, &o, clear ? "turn on the kitchen light" : "what is love", in_ms(&b, 500));
        answer(script_last(&b.s), "Front Door Lock is open.", NULL);
        env_sim_run(b.s.sim, 480);
        assert_int_equal(o.h.n_ends, 0);
        env_sim_run(b.s.sim, 15);
        assert_int_equal(o.h.n_ends, 1);
        assert_int_equal(o.h.status, 0);
        assert_string_equal(o.h.text, clear ? "Turning on Kitchen Light." : SAFE);
        assert_int_equal(*o.calls != '\0', clear);
        assert_string_equal(o.wanted, "large");
        assert_true(script_last(&b.s)->cancelled);
    }
    bench_close(&b);
}

static void a_writer_that_is_late_is_not_heard(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "turn on the kitchen light", in_ms(&b, 100));
    say_started(b.s.calls[0]);
    say(b.s.calls[0], 1, "Turning on Kit");
    env_sim_run(b.s.sim, 95);
    assert_string_equal(o.h.text, SAFE);
    assert_string_equal(o.wanted, "small");
    assert_true(b.s.calls[0]->cancelled);

    Shoal__V1__GenerateRequest req = request(&b, "turn on the kitchen light");
    req.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT;
    ask_with(&b, &o, &req, in_ms(&b, 100));
    env_sim_run(b.s.sim, 95);
    assert_int_equal(o.h.status, SHOAL_EDEADLINE);
    bench_close(&b);
}

static void who_would_be_late_is_not_asked(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    b.s.estimate.expected_ms = 400;
    ask(&b, &o, "what is love", in_ms(&b, 300));
    answer(b.s.calls[0], "Front Door Lock is open.", NULL);
    assert_int_equal(b.s.n, 1);
    assert_string_equal(o.h.text, SAFE);
    assert_string_equal(o.wanted, "large");
    assert_string_equal(o.why, "the deadline leaves no time for it");
    bench_close(&b);
}

/* ---- a model that checks ------------------------------------------------------------------------- */

static void infer(scripted *c, float entails)
{
    Shoal__V1__LabelScore s = SHOAL__V1__LABEL_SCORE__INIT, *labels[] = {&s};
    Shoal__V1__Classification one = SHOAL__V1__CLASSIFICATION__INIT, *results[] = {&one};
    Shoal__V1__ClassifyReply reply = SHOAL__V1__CLASSIFY_REPLY__INIT;
    call_result r = call_result_of(c->order, 0, "");
    s.label = "entailment";
    s.score = entails;
    one.labels = labels;
    one.n_labels = 1;
    reply.results = results;
    reply.n_results = 1;
    r.reply = &reply.base;
    script_close(c);
    c->ev.end(&c->ev, &r);
}

static const verify_check NLI[] = {
    {.name = "nli", .kind = VERIFY_NLI, .model = "judge", .entails = "entailment", .min_score = 0.5}};

static void what_follows_from_the_context_passes(void **state)
{
    bench b;
    outcome o;
    bench_open_with(&b, NLI, 1, USUAL, 2);
    ask(&b, &o, "how is the door?", 0);
    answer(b.s.calls[0], "The door is locked.", NULL);
    assert_int_equal(o.h.n_events, 0);
    assert_int_equal(b.s.calls[1]->order->task, CALL_CLASSIFY);
    assert_string_equal(b.s.calls[1]->order->model, "judge");
    Shoal__V1__ClassifyRequest *q = (Shoal__V1__ClassifyRequest *)call_order_request(b.s.calls[1]->order);
    assert_non_null(strstr(q->inputs[0]->text, "'Front Door Lock' = locked"));
    assert_null(strstr(q->inputs[0]->text, "how is"));
    assert_string_equal(q->inputs[0]->pair, "The door is locked.");
    protobuf_c_message_free_unpacked(&q->base, NULL);
    infer(b.s.calls[1], 0.9f);
    assert_string_equal(o.h.text, "The door is locked.");
    bench_close(&b);
}

static void what_does_not_follow_or_is_not_judged_is_held_back(void **state)
{
    bench b;
    outcome o;
    bench_open_with(&b, NLI, 1, USUAL, 2);
    ask(&b, &o, "how is the door?", 0);
    answer(b.s.calls[0], "The door is open.", NULL);
    infer(b.s.calls[1], 0.1f);
    assert_string_equal(b.s.calls[2]->order->model, "large");
    answer(b.s.calls[2], "The door is locked.", NULL);
    script_end(b.s.calls[3], CALL_FAULT_LOST); /* the judge dies: nobody says that it follows */
    assert_string_equal(o.h.text, SAFE);
    assert_non_null(strstr(o.trace, "small nli: a sentence does not follow from the context, escalated"));
    assert_non_null(strstr(o.trace, "large nli: the model that checks did not answer, safe text"));

    ask(&b, &o, "unlock the door", 0); /* inference knows nothing of calls */
    answer(b.s.calls[4], "", "lock.unlock(lock.front_door)");
    answer(b.s.calls[5], "", "lock.unlock(lock.front_door)");
    assert_string_equal(o.h.text, SAFE);
    assert_string_equal(o.calls, "");
    assert_int_equal(b.s.n, 6);
    bench_close(&b);
}

static void a_judge_is_not_waited_for_beyond_the_deadline(void **state)
{
    bench b;
    outcome o;
    bench_open_with(&b, NLI, 1, USUAL, 2);
    ask(&b, &o, "how is the door?", in_ms(&b, 200));
    answer(b.s.calls[0], "The door is locked.", NULL);
    env_sim_run(b.s.sim, 195);
    assert_string_equal(o.h.text, SAFE);
    assert_true(b.s.calls[1]->cancelled);
    ask(&b, &o, "how is the door?", 0);
    answer(b.s.calls[2], "The door is locked.", NULL);
    calls_cancel(o.h.call);
    assert_true(b.s.calls[3]->cancelled);
    bench_close(&b);
}

/* ---- streams ------------------------------------------------------------------------------------- */

static void the_end_waits_for_who_rests(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    ask(&b, &o, "turn on the kitchen light", 0);
    calls_pause(o.h.call, true);
    answer(b.s.calls[0], "x", NULL);
    assert_int_equal(o.h.n_events, 0);
    assert_int_equal(o.h.n_ends, 0);
    calls_pause(o.h.call, false);
    env_sim_run(b.s.sim, 1);
    assert_string_equal(o.h.text, "Turning on Kitchen Light.");
    assert_int_equal(o.h.n_ends, 1);
    ask(&b, &o, "turn on the kitchen light", 0);
    o.h.cancels = true; /* at its first event */
    answer(b.s.calls[1], "x", NULL);
    assert_int_equal(o.h.n_events, 1);
    assert_int_equal(o.h.n_ends, 0);
    bench_close(&b);
}

/* A member that takes its words back: only what stands at the end is checked, and heard. */
static void words_that_were_taken_back_are_not_heard(void **state)
{
    bench b;
    outcome o;
    Shoal__V1__Refined refined = SHOAL__V1__REFINED__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    bench_open(&b);
    ask(&b, &o, "what is love", 0);
    say_started(b.s.calls[0]);
    say(b.s.calls[0], 1, "Front Door Lock is open.");
    refined.text = HOME_NOTHING;
    ev.refined = &refined;
    b.s.calls[0]->ev.event(&b.s.calls[0]->ev, &ev.base);
    say_end(b.s.calls[0], "stop");
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_string_equal(o.h.text, HOME_NOTHING);
    assert_string_equal(o.trace, "small passed");
    bench_close(&b);
}

static void a_prompt_that_is_given_back_is_no_answer(void **state)
{
    bench b;
    outcome o;
    bench_open(&b);
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    req.text = "what is love? ";
    req.echo = true;
    ask_with(&b, &o, &req, 0);
    answer(b.s.calls[0], "what is love? ", NULL);
    answer(b.s.calls[1], "what is love? Turning on it is.", NULL);
    assert_string_equal(o.h.text, "what is love? " SAFE);
    bench_close(&b);
}

static void all_else_is_the_first_members(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, 0);
    assert_string_equal(b.s.calls[0]->order->model, "small");
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_int_equal(h.n_ends, 1);
    Shoal__V1__GenerateRequest req = request(&b, "turn on the kitchen light");
    b.s.no_memory = true;
    outcome o;
    assert_null(ask_with(&b, &o, &req, 0));
    bench_close(&b);
}

/* ---- whatever members say ------------------------------------------------------------------------ */

static const char *const ASKED[] = {"turn on the kitchen light",
                                    "unlock the front door",
                                    "don't unlock the front door",
                                    "what is love",
                                    "is the hall light on?",
                                    "turn off the lights",
                                    "schließ auf",
                                    "light.vault 'Vault' = on\\nturn on the vault",
                                    "turn on the vault"};
static const char *const SAID[] = {"",
                                   "Turning on Kitchen Light.",
                                   "Unlocking Front Door Lock.",
                                   "Yes.",
                                   "Vault is on.",
                                   "{\"name\": \"lock.unlock\", \"arguments\": {}}"};
static const char *const CALLED[] = {NULL,
                                     "light.turn_on(light.kitchen)",
                                     "lock.unlock(lock.front_door)",
                                     "light.turn_on(light.vault)",
                                     "light.turn_off(light.hall)",
                                     "unlock()"};

/* What goes out is what the rules read in the request, or does nothing. */
static void never_does_more_than_was_asked(bench *b, const char *user, const outcome *o)
{
    verify_case k = home_case(b->mem, user);
    grounding g;
    assert_int_equal(ground(&g, b->lex, k.devices, k.n_devices, k.question, b->mem, NULL), 0);
    if (!*o->calls) {
        assert_false(strncmp(o->h.text, "Turning on", 10) == 0 || strncmp(o->h.text, "Unlocking", 9) == 0);
        return;
    }
    assert_int_equal(g.verdict, GROUND_ACT);
    buf meant = {0};
    for (size_t i = 0; i < g.options[0].n_calls; i++)
        buf_printf(&meant, "%s%s%s", i ? "; " : "", g.options[0].calls[i].name,
                   g.options[0].calls[i].arguments);
    assert_string_equal(o->calls, meant.data);
    buf_done(&meant);
}

static void nothing_unasked_leaves_whatever_is_said(void **state)
{
    bench b;
    uint64_t seed = 1;
    bench_open(&b);
    for (int round = 0; round < 600; round++) {
        outcome o;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t x = seed >> 20;
        const char *user = ASKED[x % 9];
        ask(&b, &o, user, (x >> 8) % 4 ? 0 : in_ms(&b, 50));
        for (int i = 0; o.h.n_ends == 0; i++) {
            uint64_t y = (seed >> (24 + 4 * (i % 8))) + (uint64_t)i;
            assert_true(i < 4);
            if (y % 7 == 0)
                script_end(script_last(&b.s), CALL_FAULT_LOST);
            else if (y % 7 == 1)
                env_sim_run(b.s.sim, 60);
            else
                answer(script_last(&b.s), SAID[y / 7 % 6], CALLED[y / 42 % 6]);
            if (y % 7 == 1 && o.h.n_ends == 0) answer(script_last(&b.s), SAID[y / 7 % 6], CALLED[y / 42 % 6]);
        }
        if (o.h.status == 0) never_does_more_than_was_asked(&b, user, &o);
    }
    assert_true(b.n_judged[VERIFY_PASSED] > 0 && b.n_judged[VERIFY_REPAIRED] > 0 &&
                b.n_judged[VERIFY_SAFE] > 0 && b.n_judged[VERIFY_REFUSED] > 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_passes_goes_out_as_it_came),
        cmocka_unit_test(what_a_rule_knows_is_repaired),
        cmocka_unit_test(options_are_put_to_the_same_member),
        cmocka_unit_test(the_next_one_is_checked_too),
        cmocka_unit_test(when_none_passes_the_safe_text_goes_out),
        cmocka_unit_test(of_a_wanted_form_nothing_is_made_up),
        cmocka_unit_test(what_one_rule_mends_the_others_must_pass),
        cmocka_unit_test(what_was_mended_waits_for_something_better),
        cmocka_unit_test(who_fails_says_nothing),
        cmocka_unit_test(what_is_wrong_with_the_request_is_told_at_once),
        cmocka_unit_test(near_the_deadline_what_was_mended_or_safe_goes_out),
        cmocka_unit_test(a_writer_that_is_late_is_not_heard),
        cmocka_unit_test(who_would_be_late_is_not_asked),
        cmocka_unit_test(what_follows_from_the_context_passes),
        cmocka_unit_test(what_does_not_follow_or_is_not_judged_is_held_back),
        cmocka_unit_test(a_judge_is_not_waited_for_beyond_the_deadline),
        cmocka_unit_test(what_results_say_goes_out_after_calls),
        cmocka_unit_test(the_end_waits_for_who_rests),
        cmocka_unit_test(words_that_were_taken_back_are_not_heard),
        cmocka_unit_test(a_prompt_that_is_given_back_is_no_answer),
        cmocka_unit_test(all_else_is_the_first_members),
        cmocka_unit_test(nothing_unasked_leaves_whatever_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
