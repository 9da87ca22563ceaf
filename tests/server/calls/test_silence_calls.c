/* silence_calls over scripted calls, in simulated time: when a second start is made, who wins, and how many
 * there may be. */
#include "script.h"

#include "calls/silence_calls.h"

enum { STEP_MS = 40, LIMIT_MS = 4 * STEP_MS };

typedef struct bench {
    script s;
    calls *c;
    call_observer observer;
    int n_moved;
    double gap_ms;
} bench;

static void on_moved(void *user, const call_order *o, const call_move *m)
{
    bench *b = user;
    assert_string_equal(m->cause, "silent");
    b->n_moved++;
    b->gap_ms = m->gap_ms;
}

static void bench_open(bench *b)
{
    *b = (bench){0};
    script_init(&b->s);
    b->s.estimate.step_ms = STEP_MS;
    b->observer = (call_observer){.user = b, .moved = on_moved};
    silence_options o = {.observer = &b->observer};
    assert_int_equal(silence_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void pass(bench *b, uint64_t ms)
{
    env_sim_run(b->s.sim, ms);
}

static scripted *begin(bench *b, heard *h)
{
    script_generate(b->c, h, 0);
    scripted *c = script_last(&b->s);
    say_started(c);
    say_progress(c, 2);
    say(c, 10, "a");
    return c;
}

static void a_silent_stream_goes_on_elsewhere(void **state)
{
    bench b;
    heard h = {.adapter = "polite"};
    bench_open(&b);
    scripted *first = begin(&b, &h);
    pass(&b, LIMIT_MS - 5);
    assert_int_equal(b.s.n, 1);
    pass(&b, 10);
    assert_int_equal(b.s.n, 2);
    scripted *second = b.s.calls[1];
    assert_int_equal(second->life, 2);
    assert_string_equal(second->terms.identity, "d1");
    assert_string_equal(second->terms.adapter_digest, "a1");
    assert_true(second->terms.hold_until_ns < b.s.env->now_ns(b.s.env->user)); /* at once or not at all */
    Shoal__V1__GenerateRequest *req = (void *)call_order_request(second->order);
    assert_int_equal(req->n_resume_ids, 1);
    protobuf_c_message_free_unpacked(&req->base, NULL);
    say_started(second); /* to be alive is not to win */
    say_progress(second, 0);
    assert_true(first->open);
    say(second, 11, "b");
    assert_true(first->cancelled);
    say_done(second, 0);
    script_end(second, CALL_FAULT_NONE);
    assert_string_equal(h.text, "ab");
    assert_int_equal(h.n_started, 1);
    assert_int_equal(h.n_cached, 2);
    assert_int_equal(h.status, 0);
    assert_int_equal(b.n_moved, 1);
    assert_true(b.gap_ms >= LIMIT_MS && b.gap_ms < LIMIT_MS + 10);
    bench_close(&b);
}

static const char *engine_of(uint64_t life)
{
    return life == 2 ? "sha256:d;engine=cuda;precision=file;numerics=1"
                     : "sha256:d;engine=shoal;precision=file;numerics=1";
}

/* Its next token might be another one. */
static void another_engine_goes_on_with_nothing_that_has_begun(void **state)
{
    bench b;
    heard h = {0}, later = {0};
    bench_open(&b);
    b.s.identity = engine_of;
    scripted *first = begin(&b, &h);
    pass(&b, 10 * LIMIT_MS);
    assert_int_equal(b.s.n, 1);
    say_done(first, 0);
    script_end(first, CALL_FAULT_NONE);
    script_generate(b.c, &later, 0); /* nothing has been said: anybody may begin */
    pass(&b, SILENCE_UNKNOWN_MS + 10);
    assert_int_equal(b.s.n, 3);
    assert_int_equal(script_last(&b.s)->life, 2);
    calls_cancel(later.call);
    bench_close(&b);
}

/* An engine that gives other bits each time, or cannot begin in the middle. */
static void what_cannot_be_resumed_exactly_has_no_second_start(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.inexact = true;
    scripted *first = begin(&b, &h);
    pass(&b, 10 * LIMIT_MS);
    assert_int_equal(b.s.n, 1);
    say_done(first, 0);
    script_end(first, CALL_FAULT_NONE);
    assert_string_equal(h.text, "a");
    bench_close(&b);
}

static void whoever_speaks_first_wins(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *first = begin(&b, &h);
    pass(&b, LIMIT_MS + 5);
    say_started(b.s.calls[1]);
    say_progress(first, 0); /* any sign of life of the first */
    assert_true(b.s.calls[1]->cancelled);
    say(first, 11, "b");
    say_done(first, 0);
    script_end(first, CALL_FAULT_NONE);
    assert_string_equal(h.text, "ab");
    assert_int_equal(b.n_moved, 0);
    bench_close(&b);
}

static void where_the_first_said_nothing_the_second_begins(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    pass(&b, LIMIT_MS + 5);
    say_started(b.s.calls[1]);
    assert_true(b.s.calls[0]->cancelled);
    say(b.s.calls[1], 10, "a");
    assert_int_equal(h.n_started, 1);
    assert_string_equal(h.text, "a");
    bench_close(&b);
}

static void a_whole_answer_ends_without_its_end(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    say_done(c, 0);
    pass(&b, LIMIT_MS + 5);
    assert_int_equal(b.s.n, 1);
    assert_true(c->cancelled);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

static void steady_steps_are_no_silence(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    for (int i = 0; i < 100; i++) {
        pass(&b, LIMIT_MS - 10);
        say(c, 11 + i, "x");
    }
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

/* Its machine gives it no core for a second: nothing comes, and nobody else is asked. */
static void a_starved_replica_keeps_its_stream(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    c->works = true;
    pass(&b, 1000);
    assert_int_equal(b.s.n, 1);
    c->works = false;
    say(c, 11, "b");
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
    assert_string_equal(h.text, "ab");
    assert_int_equal(b.n_moved, 0);
    bench_close(&b);
}

static void a_replica_that_is_stopped_while_it_is_starved_loses_its_stream(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    c->works = true;
    pass(&b, 1000);
    c->works = false;
    pass(&b, 2 * LIMIT_MS);
    assert_int_equal(b.s.n, 2);
    say(b.s.calls[1], 11, "b");
    assert_true(c->cancelled);
    assert_int_equal(b.n_moved, 1);
    bench_close(&b);
}

static void a_stream_that_a_working_replica_lost_goes_on_elsewhere(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    c->works = true;
    pass(&b, SILENCE_WORKING_MS + 2 * LIMIT_MS);
    assert_int_equal(b.s.n, 2);
    bench_close(&b);
}

/* We stood still, and what the worker said meanwhile waits in our socket. */
static void our_own_stall_is_no_silence_of_the_worker(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    pass(&b, LIMIT_MS / 2);
    env_sim_stall(b.s.sim, 20 * LIMIT_MS);
    pass(&b, LIMIT_MS / 2 - 5);
    assert_int_equal(b.s.n, 1);
    pass(&b, 10);
    assert_int_equal(b.s.n, 2); /* that it says nothing to a listener counts */
    say(c, 11, "b");
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
    assert_int_equal(b.n_moved, 0);
    bench_close(&b);
}

/* What comes slowly, but comes, is expected slowly: even where the worker says that it is fast. */
static void a_slow_worker_is_learnt(void **state)
{
    bench b;
    heard h = {0};
    int n_late = 0;
    bench_open(&b);
    b.s.estimate.step_ms = 1;
    scripted *c = begin(&b, &h);
    for (int i = 0; i < 400; i++) {
        size_t before = b.s.n;
        pass(&b, 150);
        if (i >= 100) n_late += b.s.n != before;
        say(c, 11 + i, "x");
    }
    assert_int_equal(n_late, 0);
    assert_true(b.s.n <= 3);
    assert_true(c->open);
    bench_close(&b);
}

static void without_measurements_it_waits_longer(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.estimate.step_ms = 0;
    script_generate(b.c, &h, 0);
    pass(&b, SILENCE_UNKNOWN_MS - 5);
    assert_int_equal(b.s.n, 1);
    pass(&b, 10);
    assert_int_equal(b.s.n, 2);
    bench_close(&b);
}

static void a_long_prompt_may_take_its_time(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.estimate.expected_ms = 500;
    script_generate(b.c, &h, 0);
    pass(&b, 1990);
    assert_int_equal(b.s.n, 1);
    pass(&b, 20);
    assert_int_equal(b.s.n, 2);
    bench_close(&b);
}

static void alone_there_is_nobody_to_ask(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){1, 0});
    scripted *c = begin(&b, &h);
    pass(&b, 10000);
    assert_int_equal(b.s.n, 1);
    script_lives(&b.s, (uint64_t[]){1, 2, 0}); /* now there is */
    pass(&b, LIMIT_MS + 5);
    assert_int_equal(b.s.n, 2);
    assert_true(c->open);
    bench_close(&b);
}

static void a_busy_replica_is_not_asked(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.estimate.load = 1;
    begin(&b, &h);
    pass(&b, 10000);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

/* Workers that live and rest once in each stream: of a hundred streams six start twice at most. */
static void second_starts_are_few(void **state)
{
    enum { N = 200 };
    bench b;
    static heard h[N];
    memset(h, 0, sizeof h);
    bench_open(&b);
    for (int i = 0; i < N; i++) {
        scripted *c = begin(&b, &h[i]);
        for (int k = 0; k < 20; k++) {
            pass(&b, 10);
            say(c, 11, "");
        }
        pass(&b, LIMIT_MS + 20);
        say(c, 11, "b");
        say_done(c, 0);
        script_end(c, CALL_FAULT_NONE);
    }
    assert_true(b.s.n - N > 5 && b.s.n - N <= 1 + N * SILENCE_SHARE);
    assert_int_equal(b.n_moved, 0);
    bench_close(&b);
}

/* A worker freezes under many streams: once one of them has gone on elsewhere, all may. */
static void all_leave_a_frozen_worker(void **state)
{
    enum { N = 16 };
    bench b;
    heard h[N] = {0};
    bench_open(&b);
    for (int i = 0; i < N; i++) begin(&b, &h[i]);
    pass(&b, LIMIT_MS + 10);
    assert_int_equal(b.s.n, N + 1); /* the budget's one */
    say(b.s.calls[N], 11, "b");
    assert_int_equal(b.n_moved, 1);
    pass(&b, LIMIT_MS + 10);
    assert_int_equal(b.s.n, 2 * N);
    for (int i = N + 1; i < 2 * N; i++) say(b.s.calls[i], 11, "b");
    assert_int_equal(b.n_moved, N);
    for (int i = 0; i < N; i++) assert_string_equal(h[i].text, "ab");
    bench_close(&b);
}

/* False alarms have used up all permissions; then a worker dies that does not answer the registry either. */
static void who_does_not_answer_at_all_is_left_without_permission(void **state)
{
    enum { N = 6 };
    bench b;
    heard h[N] = {0};
    scripted *c[N];
    bench_open(&b);
    for (int i = 0; i < N; i++) c[i] = begin(&b, &h[i]);
    pass(&b, LIMIT_MS + 10);
    assert_int_equal(b.s.n, N + 1); /* the budget's one, */
    pass(&b, 3 * LIMIT_MS);
    assert_int_equal(b.s.n, N + 1); /* and no other */
    for (int i = 0; i < N; i++) c[i]->silent = true;
    pass(&b, LIMIT_MS + 10);
    assert_int_equal(b.s.n, 2 * N);
    for (int i = N; i < 2 * N; i++) say(b.s.calls[i], 11, "b");
    for (int i = 0; i < N; i++) assert_string_equal(h[i].text, "ab");
    bench_close(&b);
}

/* It was beaten once, and speaks again: it was slow, and the others stay. */
static void who_speaks_again_is_asked_about_anew(void **state)
{
    enum { N = 4 };
    bench b;
    heard h[N] = {0};
    scripted *c[N];
    bench_open(&b);
    for (int i = 0; i < N; i++) c[i] = begin(&b, &h[i]);
    pass(&b, LIMIT_MS + 10);
    say(b.s.calls[N], 11, "b"); /* c[0] moved */
    for (int i = 1; i < N; i++) say(c[i], 11, "b");
    pass(&b, 2 * LIMIT_MS);
    assert_int_equal(b.s.n, N + 1);
    bench_close(&b);
}

static void a_second_start_that_fails_is_forgotten(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    pass(&b, LIMIT_MS + 5);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    assert_int_equal(h.n_ends, 0);
    say(c, 11, "b");
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
    assert_string_equal(h.text, "ab");
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

static void when_the_first_dies_the_second_is_left(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    pass(&b, LIMIT_MS + 5);
    script_end(c, CALL_FAULT_LOST);
    assert_int_equal(h.n_ends, 0);
    say_started(b.s.calls[1]);
    say(b.s.calls[1], 11, "b");
    say_done(b.s.calls[1], 0);
    script_end(b.s.calls[1], CALL_FAULT_NONE);
    assert_string_equal(h.text, "ab");
    assert_int_equal(h.n_started, 1);
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

static void an_error_of_the_request_ends_both(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    pass(&b, LIMIT_MS + 5);
    script_end_as(c, SHOAL_EDEADLINE, CALL_FAULT_NONE);
    assert_int_equal(h.status, SHOAL_EDEADLINE);
    assert_true(b.s.calls[1]->cancelled);
    bench_close(&b);
}

static void who_is_paused_is_not_silent(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    begin(&b, &h);
    calls_pause(h.call, true);
    pass(&b, 10000);
    assert_int_equal(b.s.n, 1);
    calls_pause(h.call, false);
    pass(&b, LIMIT_MS - 5);
    assert_int_equal(b.s.n, 1);
    pass(&b, LIMIT_MS);
    assert_int_equal(b.s.n, 2);
    calls_pause(h.call, true);
    assert_true(b.s.calls[0]->paused && b.s.calls[1]->paused);
    bench_close(&b);
}

static void it_may_be_cancelled_at_any_moment(void **state)
{
    for (int moment = 0; moment < 4; moment++) {
        bench b;
        heard h = {.cancels = moment == 3};
        bench_open(&b);
        script_generate(b.c, &h, 0);
        if (moment > 0) say_started(b.s.calls[0]);
        if (moment == 2) pass(&b, LIMIT_MS + 5);
        if (moment < 3) calls_cancel(h.call);
        pass(&b, 1000);
        assert_int_equal(b.s.n_open, 0);
        assert_int_equal(h.n_ends, 0);
        bench_close(&b);
    }
}

static void without_memory_there_is_no_second(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    scripted *c = begin(&b, &h);
    b.s.no_memory = true;
    pass(&b, 5 * LIMIT_MS);
    assert_null(script_generate(b.c, &h, 0));
    b.s.no_memory = false;
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

static void unary_calls_pass_by(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    model_call *call = script_embed(b.c, &h, 0);
    assert_ptr_equal(call, &b.s.calls[0]->base);
    pass(&b, 10000);
    assert_int_equal(b.s.n, 1);
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_stream_goes_on_elsewhere),
        cmocka_unit_test(another_engine_goes_on_with_nothing_that_has_begun),
        cmocka_unit_test(what_cannot_be_resumed_exactly_has_no_second_start),
        cmocka_unit_test(whoever_speaks_first_wins),
        cmocka_unit_test(where_the_first_said_nothing_the_second_begins),
        cmocka_unit_test(a_whole_answer_ends_without_its_end),
        cmocka_unit_test(steady_steps_are_no_silence),
        cmocka_unit_test(a_starved_replica_keeps_its_stream),
        cmocka_unit_test(a_replica_that_is_stopped_while_it_is_starved_loses_its_stream),
        cmocka_unit_test(a_stream_that_a_working_replica_lost_goes_on_elsewhere),
        cmocka_unit_test(our_own_stall_is_no_silence_of_the_worker),
        cmocka_unit_test(a_slow_worker_is_learnt),
        cmocka_unit_test(without_measurements_it_waits_longer),
        cmocka_unit_test(a_long_prompt_may_take_its_time),
        cmocka_unit_test(alone_there_is_nobody_to_ask),
        cmocka_unit_test(a_busy_replica_is_not_asked),
        cmocka_unit_test(second_starts_are_few),
        cmocka_unit_test(all_leave_a_frozen_worker),
        cmocka_unit_test(who_does_not_answer_at_all_is_left_without_permission),
        cmocka_unit_test(who_speaks_again_is_asked_about_anew),
        cmocka_unit_test(a_second_start_that_fails_is_forgotten),
        cmocka_unit_test(when_the_first_dies_the_second_is_left),
        cmocka_unit_test(an_error_of_the_request_ends_both),
        cmocka_unit_test(who_is_paused_is_not_silent),
        cmocka_unit_test(it_may_be_cancelled_at_any_moment),
        cmocka_unit_test(without_memory_there_is_no_second),
        cmocka_unit_test(unary_calls_pass_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
