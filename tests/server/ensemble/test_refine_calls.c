/* refine_calls over scripted calls, in simulated time: each way with and without taking back. */
#include "../calls/script.h"

#include "ensemble/refine_calls.h"

typedef struct bench {
    script s;
    calls *c;
    heard h;
    char refined[128], by[16];
} bench;

static bench *B; /* of the test that runs */

static void on_answered(void *user, const char *name, const char *by)
{
    snprintf(((bench *)user)->by, sizeof((bench *)user)->by, "%s", by);
}

static void on_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    if (ev->refined) snprintf(B->refined, sizeof B->refined, "%s", ev->refined->text);
    hear_event(user, ev);
}

static void bench_open(bench *b, bool refines, uint64_t in_ms)
{
    static const refine_rule RULES[] = {{"m", "fast", "better", 300}};
    refine_options o = {.rules = RULES, .n_rules = 1, .user = b, .answered = on_answered};
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    calls_generate_events ev = {.user = &b->h, .event = on_event, .end = hear_stream_end};
    *b = (bench){0};
    B = b;
    script_init(&b->s);
    assert_int_equal(refine_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
    call_context ctx = {.deadline_ns = in_ms ? b->s.env->now_ns(b->s.env->user) + in_ms * 1000000u : 0};
    req.refines = refines;
    b->h.call = calls_generate(b->c, "m", &req, &ctx, &ev);
    assert_int_equal(b->s.n, 2);
    assert_string_equal(b->s.calls[0]->order->model, "fast");
    assert_string_equal(b->s.calls[1]->order->model, "better");
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void answer(scripted *c, const char *text)
{
    say_started(c);
    say(c, 1, text);
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
}

/* ---- one of the two ------------------------------------------------------------------------------ */

static void who_is_better_and_in_time_answers(void **state)
{
    bench b;
    bench_open(&b, false, 0);
    say_started(b.s.calls[0]);
    say(b.s.calls[0], 1, "quick");
    env_sim_run(b.s.sim, 299);
    assert_string_equal(b.h.text, "");
    answer(b.s.calls[1], "good");
    assert_true(b.s.calls[0]->cancelled);
    assert_string_equal(b.h.text, "good");
    assert_string_equal(b.by, "better");
    assert_string_equal(b.h.wanted, "");
    bench_close(&b);
}

static void who_is_not_in_time_is_not_waited_for(void **state)
{
    bench b;
    bench_open(&b, false, 0);
    say_started(b.s.calls[0]);
    say(b.s.calls[0], 1, "quick");
    env_sim_run(b.s.sim, 300);
    assert_true(b.s.calls[1]->cancelled);
    assert_string_equal(b.h.text, "quick");
    say(b.s.calls[0], 2, "ly");
    say_done(b.s.calls[0], 0);
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_string_equal(b.h.text, "quickly");
    assert_int_equal(b.h.n_ends, 1);
    assert_string_equal(b.by, "fast");
    bench_close(&b);
}

static void where_both_are_slow_the_first_to_speak_answers(void **state)
{
    bench b;
    bench_open(&b, false, 0);
    env_sim_run(b.s.sim, 1000);
    answer(b.s.calls[0], "quick");
    assert_string_equal(b.h.text, "quick");
    assert_true(b.s.calls[1]->cancelled);
    bench_close(&b);
}

static void where_one_fails_the_other_answers(void **state)
{
    bench b;
    bench_open(&b, false, 0);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    answer(b.s.calls[0], "quick");
    assert_string_equal(b.h.text, "quick");
    assert_string_equal(b.h.wanted, "better");
    bench_close(&b);
    bench_open(&b, false, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    answer(b.s.calls[1], "good");
    assert_string_equal(b.h.text, "good");
    assert_string_equal(b.h.wanted, "");
    bench_close(&b);
    bench_open(&b, false, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    assert_int_equal(b.h.n_ends, 1);
    assert_int_equal(b.h.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

/* ---- one after the other ------------------------------------------------------------------------- */

static void the_better_text_replaces_the_fast_one(void **state)
{
    bench b;
    bench_open(&b, true, 0);
    answer(b.s.calls[0], "quick");
    assert_string_equal(b.h.text, "quick"); /* at once */
    assert_int_equal(b.h.n_done + b.h.n_ends, 0);
    answer(b.s.calls[1], "good");
    assert_string_equal(b.refined, "good");
    assert_string_equal(b.h.text, "quick"); /* not as more of it */
    assert_int_equal(b.h.n_done, 1);
    assert_int_equal(b.h.n_started, 1);
    assert_string_equal(b.h.model, "better");
    assert_string_equal(b.by, "refined");
    bench_close(&b);
    bench_open(&b, true, 0); /* the better one first: still after what the fast one says */
    say_started(b.s.calls[0]);
    answer(b.s.calls[1], "good");
    assert_string_equal(b.refined, "");
    say(b.s.calls[0], 1, "quick");
    say_done(b.s.calls[0], 0);
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_string_equal(b.refined, "good");
    assert_int_equal(b.h.n_ends, 1);
    bench_close(&b);
}

static void without_the_fast_one_the_better_one_is_heard_as_it_comes(void **state)
{
    bench b;
    bench_open(&b, true, 0);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    answer(b.s.calls[1], "good");
    assert_string_equal(b.h.text, "good");
    assert_string_equal(b.refined, "");
    assert_int_equal(b.h.n_started, 1);
    assert_int_equal(b.h.status, 0);
    bench_close(&b);
}

static void what_was_said_stands_when_nothing_better_comes(void **state)
{
    bench b;
    bench_open(&b, true, 0);
    answer(b.s.calls[0], "quick");
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    assert_string_equal(b.refined, "");
    assert_int_equal(b.h.n_done, 1);
    assert_int_equal(b.h.status, 0);
    assert_string_equal(b.h.wanted, "better");
    bench_close(&b);
    bench_open(&b, true, 200);
    answer(b.s.calls[0], "quick");
    env_sim_run(b.s.sim, 195);
    assert_true(b.s.calls[1]->cancelled);
    assert_int_equal(b.h.n_done, 1);
    assert_int_equal(b.h.status, 0);
    assert_string_equal(b.h.wanted, "better");
    bench_close(&b);
}

static void a_reader_who_rests_or_leaves(void **state)
{
    bench b;
    bench_open(&b, true, 0);
    calls_pause(b.h.call, true);
    answer(b.s.calls[0], "quick");
    answer(b.s.calls[1], "good");
    assert_int_equal(b.h.n_events, 0);
    calls_pause(b.h.call, false);
    env_sim_run(b.s.sim, 1);
    assert_string_equal(b.h.text, "quick");
    assert_string_equal(b.refined, "good");
    assert_int_equal(b.h.n_ends, 1);
    bench_close(&b);
    for (int refines = 0; refines < 2; refines++) {
        bench_open(&b, refines, 0);
        b.h.cancels = true;
        say_started(b.s.calls[1]);
        say_started(b.s.calls[0]);
        if (b.h.call) say(b.s.calls[1], 1, "good");
        assert_int_equal(b.h.n_events, 1);
        assert_int_equal(b.h.n_ends, 0);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_better_and_in_time_answers),
        cmocka_unit_test(who_is_not_in_time_is_not_waited_for),
        cmocka_unit_test(where_both_are_slow_the_first_to_speak_answers),
        cmocka_unit_test(where_one_fails_the_other_answers),
        cmocka_unit_test(the_better_text_replaces_the_fast_one),
        cmocka_unit_test(without_the_fast_one_the_better_one_is_heard_as_it_comes),
        cmocka_unit_test(what_was_said_stands_when_nothing_better_comes),
        cmocka_unit_test(a_reader_who_rests_or_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
