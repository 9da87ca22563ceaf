#include "helper.h"

static const device HOME[] = {
    {.id = "light.kitchen", .name = "Kitchen Light", .state = "off"},
    {.id = "lock.front", .name = "Front Door Lock", .state = "locked"},
};
static device_call ON = {"light.turn_on", "{\"target\": \"light.kitchen\"}"};
static device_call OFF = {"light.turn_off", "{\"target\": \"light.kitchen\"}"};
static device_call LOCK = {"lock.lock", "{\"target\": \"lock.front\"}"};

typedef struct bench {
    lexicon *lex;
    arena *a;
    device_option options[2];
    grounding g;
} bench;

static void open_bench(bench *t, ground_verdict verdict, size_t n_options)
{
    *t = (bench){.lex = load_lexicon(HOME_LEX),
                 .a = arena_new(0),
                 .options = {{"Turning on Kitchen Light.", 1, &ON}, {"Turning off Kitchen Light.", 1, &OFF}}};
    t->g = (grounding){.verdict = verdict,
                       .text = "The reply.",
                       .n_options = n_options,
                       .options = t->options,
                       .example = ""};
}

static void close_bench(bench *t)
{
    arena_free(t->a);
    lexicon_free(t->lex);
}

static checked check_made(bench *t, const device_call *made, size_t n)
{
    checked c = {0};
    shoal_err err = {0};
    assert_int_equal(check_calls(&c, &t->g, t->lex, made, n, t->a, &err), 0);
    assert_true(c.text && *c.text);
    return c;
}

static void the_call_that_was_asked_for_passes(void **state)
{
    bench t;
    open_bench(&t, GROUND_ACT, 1);
    device_call made = {"light.turn_on", "{ \"target\" : \"light.kitchen\" }"}; /* spaces are no difference */
    checked c = check_made(&t, &made, 1);
    assert_int_equal(c.verdict, CHECK_PASSED);
    assert_ptr_equal(c.calls, &ON);
    assert_string_equal(c.text, "The reply.");
    close_bench(&t);
}

static void the_only_option_replaces_what_differs(void **state)
{
    static device_call made[] = {
        {"light.turn_off", "{\"target\": \"light.kitchen\"}"},
        {"light.turn_on", "{\"target\": \"light.hall\"}"},
        {"light.turn_on", "{\"target\": \"light.kitchen\", \"brightness\": 100}"},
        {"light.turn_on", "{\"target\": \"light.kitchen\""},
        {"", ""},
    };
    bench t;
    open_bench(&t, GROUND_ACT, 1);
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        checked c = check_made(&t, &made[i], 1);
        assert_int_equal(c.verdict, CHECK_REPAIRED);
        assert_ptr_equal(c.calls, &ON);
    }
    assert_int_equal(check_made(&t, NULL, 0).verdict, CHECK_REPAIRED);
    device_call twice[] = {ON, ON};
    assert_int_equal(check_made(&t, twice, 2).verdict, CHECK_REPAIRED);
    close_bench(&t);
}

static void one_of_several_options_passes_and_nothing_else(void **state)
{
    bench t;
    open_bench(&t, GROUND_CHOOSE, 2);
    checked c = check_made(&t, &OFF, 1);
    assert_int_equal(c.verdict, CHECK_PASSED);
    assert_ptr_equal(c.calls, &OFF);
    assert_string_equal(c.text, "Turning off Kitchen Light.");
    device_call both[] = {ON, OFF};
    const struct {
        const device_call *made;
        size_t n;
    } wrong[] = {{&LOCK, 1}, {NULL, 0}, {both, 2}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        c = check_made(&t, wrong[i].made, wrong[i].n);
        assert_int_equal(c.verdict, CHECK_REFUSED);
        assert_int_equal(c.n_calls, 0);
        assert_string_equal(c.text, "The reply.");
    }
    close_bench(&t);
}

static void a_proposal_becomes_a_question_and_never_a_call(void **state)
{
    bench t;
    open_bench(&t, GROUND_PROPOSE, 2);
    checked c = check_made(&t, &ON, 1);
    assert_int_equal(c.verdict, CHECK_ASKED);
    assert_int_equal(c.n_calls, 0);
    assert_non_null(strstr(c.text, "Turning on Kitchen Light."));
    c = check_made(&t, &LOCK, 1);
    assert_int_equal(c.verdict, CHECK_REFUSED);
    t.g.n_options = 1; /* nor is a single guess taken for what was asked */
    c = check_made(&t, &LOCK, 1);
    assert_int_equal(c.verdict, CHECK_REFUSED);
    assert_int_equal(c.n_calls, 0);
    close_bench(&t);
}

static void nothing_that_a_model_calls_passes_where_nothing_may_happen(void **state)
{
    static const ground_verdict held[] = {GROUND_ASK,   GROUND_ANSWER,  GROUND_LEAVE,
                                          GROUND_LATER, GROUND_MISSING, GROUND_CANNOT,
                                          GROUND_TALK,  GROUND_UNCLEAR, GROUND_NOTHING};
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        bench t;
        open_bench(&t, held[i], 1); /* even if there were an option */
        checked c = check_made(&t, &ON, 1);
        assert_int_equal(c.verdict, CHECK_REFUSED);
        assert_int_equal(c.n_calls, 0);
        assert_string_equal(c.text, "The reply.");
        close_bench(&t);
    }
}

static void several_calls_pass_in_any_order(void **state)
{
    bench t;
    arena *a = arena_new(0);
    grounding g = {0};
    open_bench(&t, GROUND_ACT, 1);
    assert_int_equal(
        ground(&g, t.lex, HOME, COUNT_OF(HOME), "turn on the kitchen light and lock the front door", a, NULL),
        0);
    assert_int_equal(g.verdict, GROUND_ACT);
    assert_int_equal(g.options[0].n_calls, 2);
    t.g = g;
    device_call made[] = {LOCK, ON};
    assert_int_equal(check_made(&t, made, 2).verdict, CHECK_PASSED);
    assert_int_equal(check_made(&t, made, 1).verdict, CHECK_REPAIRED);
    arena_free(a);
    close_bench(&t);
}

static void verdicts_have_names(void **state)
{
    assert_string_equal(check_verdict_name(CHECK_ASKED), "asked");
    assert_string_equal(check_verdict_name((check_verdict)99), "unknown");
    assert_string_equal(ground_verdict_name(GROUND_PROPOSE), "propose");
    assert_string_equal(ground_verdict_name((ground_verdict)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_call_that_was_asked_for_passes),
        cmocka_unit_test(the_only_option_replaces_what_differs),
        cmocka_unit_test(one_of_several_options_passes_and_nothing_else),
        cmocka_unit_test(a_proposal_becomes_a_question_and_never_a_call),
        cmocka_unit_test(nothing_that_a_model_calls_passes_where_nothing_may_happen),
        cmocka_unit_test(several_calls_pass_in_any_order),
        cmocka_unit_test(verdicts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
