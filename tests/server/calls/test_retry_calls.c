/* retry_calls over scripted calls, in simulated time. */
#include "script.h"

#include "calls/retry_calls.h"

typedef struct bench {
    script s;
    calls *c;
    call_observer observer;
    int n_held; /* as the observer counts them */
} bench;

static void on_held(void *user, const call_order *o, bool held)
{
    assert_non_null(o->model);
    ((bench *)user)->n_held += held ? 1 : -1;
}

static void bench_open_holding(bench *b, uint64_t hold_ms)
{
    script_init(&b->s);
    b->n_held = 0;
    b->observer = (call_observer){.user = b, .held = on_held};
    assert_int_equal(retry_calls_new(&b->c, b->s.env, &b->s.base, hold_ms, &b->observer, NULL), 0);
}

static void bench_open(bench *b)
{
    bench_open_holding(b, 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    assert_int_equal(b->n_held, 0);
    script_done(&b->s);
}

static uint64_t in_ms(const bench *b, uint64_t ms)
{
    return b->s.env->now_ns(b->s.env->user) + ms * 1000000u;
}

static void a_full_queue_sends_the_call_to_another(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, 0);
    assert_int_equal(b.s.calls[0]->life, 1);
    script_end(b.s.calls[0], CALL_FAULT_FULL);
    assert_int_equal(h.n_ends, 0);
    assert_int_equal(b.s.calls[1]->life, 2);
    script_end(b.s.calls[1], CALL_FAULT_FULL);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EFULL);
    assert_int_equal(b.s.n, 2);
    bench_close(&b);
}

static void what_a_replica_refuses_is_not_tried_again(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, 0);
    script_end_as(b.s.calls[0], SHOAL_EINVALID, CALL_FAULT_NONE);
    assert_int_equal(h.status, SHOAL_EINVALID);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

static void a_stream_that_spoke_is_not_tried_again(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    script_end(b.s.calls[0], CALL_FAULT_LEAVES);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

static void a_call_waits_for_a_restarted_worker(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    script_embed(b.c, &h, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    env_sim_run(b.s.sim, RETRY_HOLD_MS - 10);
    assert_int_equal(b.s.n, 1);
    assert_int_equal(b.n_held, 1);
    script_lives(&b.s, (uint64_t[]){3, 0});
    env_sim_run(b.s.sim, 10);
    assert_int_equal(b.s.n, 2);
    assert_int_equal(b.n_held, 0);
    script_end(b.s.calls[1], CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    assert_true(h.ms >= RETRY_HOLD_MS - 10);
    bench_close(&b);
}

static void a_call_without_a_deadline_waits_as_long_as_it_is_told(void **state)
{
    enum { HOLD_MS = 10 * RETRY_HOLD_MS };
    bench b;
    heard h = {0};
    bench_open_holding(&b, HOLD_MS);
    script_lives(&b.s, (uint64_t[]){0});
    script_generate(b.c, &h, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    env_sim_run(b.s.sim, HOLD_MS - 10);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 20);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

/* All who waited come to the returned worker at once. */
static void who_waited_waits_on_while_the_queue_is_full(void **state)
{
    bench b;
    heard h = {0}, late = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    script_embed(b.c, &h, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    script_lives(&b.s, (uint64_t[]){3, 0});
    env_sim_run(b.s.sim, 5);
    script_end(b.s.calls[1], CALL_FAULT_FULL);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 5);
    assert_int_equal(b.s.calls[2]->life, 3); /* it is asked again, though it was full */
    script_end(b.s.calls[2], CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    script_embed(b.c, &late, 0); /* who did not wait is told that it is full */
    script_end(b.s.calls[3], CALL_FAULT_FULL);
    assert_int_equal(late.status, SHOAL_EFULL);
    bench_close(&b);
}

static void without_a_deadline_it_waits_so_long(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    script_embed(b.c, &h, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    env_sim_run(b.s.sim, RETRY_HOLD_MS - 10);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 20);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    assert_string_equal(h.message, "it failed");
    bench_close(&b);
}

static void with_a_deadline_it_waits_until_then(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    script_embed(b.c, &h, in_ms(&b, 10000));
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    env_sim_run(b.s.sim, 9990);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 20);
    assert_int_equal(h.n_ends, 1);
    bench_close(&b);
}

static void nobody_waits_for_a_model_that_has_failed(void **state)
{
    bench b;
    heard h = {0}, later = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    b.s.estimate.may_return = false;
    script_embed(b.c, &h, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    b.s.estimate.may_return = true;
    script_embed(b.c, &later, 0);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    assert_int_equal(later.n_ends, 0);
    b.s.estimate.may_return = false; /* it fails while the call waits: one more try says why */
    env_sim_run(b.s.sim, 5);
    script_end(b.s.calls[2], CALL_FAULT_ABSENT);
    assert_int_equal(later.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

static void hear_description(void *user, const call_result *r, const Shoal__V1__ModelInfo *info)
{
    hear_end(user, r);
}

static void whoever_asks_if_it_is_there_does_not_wait(void **state)
{
    bench b;
    heard h = {0};
    Shoal__V1__DescribeRequest req = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    calls_describe(b.c, "m", &req, NULL, hear_description, &h);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

static void more_than_so_many_do_not_wait(void **state)
{
    bench b;
    static heard h[RETRY_HELD_MAX + 1];
    memset(h, 0, sizeof h);
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    for (size_t i = 0; i <= RETRY_HELD_MAX; i++) {
        script_embed(b.c, &h[i], in_ms(&b, 60000));
        script_end(script_last(&b.s), CALL_FAULT_ABSENT);
    }
    assert_int_equal(h[RETRY_HELD_MAX - 1].n_ends, 0);
    assert_int_equal(h[RETRY_HELD_MAX].n_ends, 1);
    script_lives(&b.s, (uint64_t[]){3, 0});
    env_sim_run(b.s.sim, 50); /* 64 of them each 5 ms */
    assert_int_equal(b.s.n, 2 * RETRY_HELD_MAX + 1);
    bench_close(&b);
}

static void a_held_call_stays_paused(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){0});
    script_generate(b.c, &h, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    calls_pause(h.call, true);
    script_lives(&b.s, (uint64_t[]){3, 0});
    env_sim_run(b.s.sim, 5);
    assert_true(b.s.calls[1]->paused);
    calls_pause(h.call, false);
    assert_false(b.s.calls[1]->paused);
    bench_close(&b);
}

static void a_call_may_be_cancelled_at_any_moment(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    calls_cancel(script_embed(b.c, &h, 0));
    assert_true(b.s.calls[0]->cancelled);
    script_lives(&b.s, (uint64_t[]){0});
    script_embed(b.c, &h, 0);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    calls_cancel(h.call);
    env_sim_run(b.s.sim, 10000);
    script_lives(&b.s, (uint64_t[]){1, 0});
    h.cancels = true;
    script_generate(b.c, &h, 0);
    say_started(script_last(&b.s));
    assert_true(script_last(&b.s)->cancelled);
    assert_int_equal(h.n_ends, 0);
    bench_close(&b);
}

static void without_memory_a_call_ends_so(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.no_memory = true;
    assert_null(script_embed(b.c, &h, 0));
    b.s.no_memory = false;
    script_embed(b.c, &h, 0);
    b.s.no_memory = true;
    script_end(b.s.calls[0], CALL_FAULT_FULL);
    assert_int_equal(h.status, SHOAL_ENOMEM);
    assert_int_equal(h.n_ends, 1);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_queue_sends_the_call_to_another),
        cmocka_unit_test(what_a_replica_refuses_is_not_tried_again),
        cmocka_unit_test(a_stream_that_spoke_is_not_tried_again),
        cmocka_unit_test(a_call_waits_for_a_restarted_worker),
        cmocka_unit_test(a_call_without_a_deadline_waits_as_long_as_it_is_told),
        cmocka_unit_test(who_waited_waits_on_while_the_queue_is_full),
        cmocka_unit_test(without_a_deadline_it_waits_so_long),
        cmocka_unit_test(with_a_deadline_it_waits_until_then),
        cmocka_unit_test(nobody_waits_for_a_model_that_has_failed),
        cmocka_unit_test(whoever_asks_if_it_is_there_does_not_wait),
        cmocka_unit_test(more_than_so_many_do_not_wait),
        cmocka_unit_test(a_held_call_stays_paused),
        cmocka_unit_test(a_call_may_be_cancelled_at_any_moment),
        cmocka_unit_test(without_memory_a_call_ends_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
