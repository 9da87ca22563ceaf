/* hedge_calls over scripted calls, in simulated time. */
#include "script.h"

#include "calls/hedge_calls.h"

enum { EXPECTED_MS = 100 };

typedef struct bench {
    script s;
    calls *c;
    call_observer observer;
    int n_hedged, n_won;
} bench;

static void on_hedged(void *user, const call_order *o, bool won)
{
    bench *b = user;
    assert_int_equal(o->task, CALL_EMBED);
    b->n_hedged++;
    b->n_won += won;
}

static void bench_open(bench *b)
{
    *b = (bench){0};
    script_init(&b->s);
    b->s.estimate.expected_ms = EXPECTED_MS;
    b->s.estimate.n_ready = 2;
    b->observer = (call_observer){.user = b, .hedged = on_hedged};
    hedge_options o = {.observer = &b->observer};
    assert_int_equal(hedge_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void take(bench *b, heard *h, uint64_t ms)
{
    script_embed(b->c, h, 0);
    scripted *c = script_last(&b->s);
    env_sim_run(b->s.sim, ms);
    if (c->open) script_end(c, CALL_FAULT_NONE);
}

/* Calls that take as long as expected: the tail is about there. */
static void settle(bench *b)
{
    heard h = {0};
    for (int i = 0; i < 200; i++) take(b, &h, EXPECTED_MS - 10 + (uint64_t)i % 20);
    assert_int_equal(h.n_ends, 200);
    b->n_hedged = b->n_won = 0;
}

static void a_call_of_the_tail_is_made_twice(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    settle(&b);
    script_embed(b.c, &h, 0);
    scripted *first = script_last(&b.s);
    env_sim_run(b.s.sim, EXPECTED_MS / 2);
    assert_ptr_equal(script_last(&b.s), first);
    env_sim_run(b.s.sim, EXPECTED_MS);
    scripted *second = script_last(&b.s);
    assert_ptr_not_equal(second, first);
    assert_int_equal(second->life, 2);
    script_end(second, CALL_FAULT_NONE);
    assert_true(first->cancelled);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, 0);
    assert_int_equal(b.n_won, 1);
    script_embed(b.c, &h, 0); /* and the other way round */
    first = script_last(&b.s);
    env_sim_run(b.s.sim, 2 * EXPECTED_MS);
    second = script_last(&b.s);
    assert_ptr_not_equal(second, first);
    script_end(first, CALL_FAULT_NONE);
    assert_true(second->cancelled);
    assert_int_equal(h.n_ends, 2);
    assert_int_equal(b.n_hedged, 2);
    assert_int_equal(b.n_won, 1);
    bench_close(&b);
}

static const char *engine_of(uint64_t life)
{
    return life == 2 ? "sha256:d;engine=cuda;precision=file;numerics=1"
                     : "sha256:d;engine=shoal;precision=file;numerics=1";
}

/* The first that answers counts, so both must answer the same. */
static void another_engine_is_no_second_opinion(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.identity = engine_of;
    settle(&b);
    size_t before = b.s.n;
    take(&b, &h, 10 * EXPECTED_MS);
    assert_int_equal(b.s.n, before + 1);
    script_lives(&b.s, (uint64_t[]){1, 2, 3, 0});
    take(&b, &h, 10 * EXPECTED_MS);
    assert_int_equal(b.s.n, before + 3);
    assert_int_equal(script_last(&b.s)->life, 3);
    assert_string_equal(script_last(&b.s)->terms.identity, engine_of(1));
    bench_close(&b);
}

static void about_one_in_twenty_is_late(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    settle(&b);
    size_t before = b.s.n;
    for (int i = 0; i < 800; i++) take(&b, &h, 50 + (uint64_t)(rand() % 100));
    size_t n_extra = b.s.n - before - 800;
    assert_true(n_extra > 10 && n_extra <= 1 + 10 + 800 * HEDGE_SHARE);
    bench_close(&b);
}

static void when_all_are_late_few_are_hedged(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    settle(&b);
    size_t before = b.s.n;
    for (int i = 0; i < 100; i++) take(&b, &h, 1000);
    assert_true(b.s.n - before - 100 <= 1 + 10 + 100 * HEDGE_SHARE);
    bench_close(&b);
}

static void nothing_is_hedged(script *s, bench *b)
{
    heard h = {0};
    size_t before = s->n;
    script_embed(b->c, &h, 0);
    env_sim_run(s->sim, 10000);
    assert_int_equal(s->n, before + 1);
    script_end(script_last(s), CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
}

static void where_there_is_no_room_nothing_is_hedged(void **state)
{
    bench b;
    bench_open(&b);
    nothing_is_hedged(&b.s, &b); /* not measured often enough */
    settle(&b);
    b.s.estimate.load = 0.5;
    nothing_is_hedged(&b.s, &b);
    b.s.estimate.load = 0;
    b.s.estimate.n_ready = 1;
    nothing_is_hedged(&b.s, &b);
    b.s.estimate.n_ready = 2;
    b.s.estimate.expected_ms = 0;
    nothing_is_hedged(&b.s, &b);
    bench_close(&b);
}

static void a_failure_leaves_the_other(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    settle(&b);
    script_embed(b.c, &h, 0);
    scripted *first = script_last(&b.s);
    env_sim_run(b.s.sim, 2 * EXPECTED_MS);
    scripted *second = script_last(&b.s);
    script_end(first, CALL_FAULT_LOST);
    assert_int_equal(h.n_ends, 0);
    script_end(second, CALL_FAULT_LOST);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    script_embed(b.c, &h, 0);
    first = script_last(&b.s);
    env_sim_run(b.s.sim, 2 * EXPECTED_MS);
    script_end_as(first, SHOAL_EINVALID, CALL_FAULT_NONE); /* the other would say the same */
    assert_true(script_last(&b.s)->cancelled);
    assert_int_equal(h.status, SHOAL_EINVALID);
    bench_close(&b);
}

static void it_may_be_cancelled_at_any_moment(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    settle(&b);
    calls_cancel(script_embed(b.c, &h, 0));
    script_embed(b.c, &h, 0);
    env_sim_run(b.s.sim, 2 * EXPECTED_MS);
    assert_int_equal(b.s.n_open, 2);
    calls_cancel(h.call);
    assert_int_equal(b.s.n_open, 0);
    env_sim_run(b.s.sim, 1000);
    assert_int_equal(h.n_ends, 0);
    bench_close(&b);
}

static void without_memory_there_is_no_second(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    settle(&b);
    script_embed(b.c, &h, 0);
    scripted *c = script_last(&b.s);
    b.s.no_memory = true;
    env_sim_run(b.s.sim, 2 * EXPECTED_MS);
    script_end(c, CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    assert_null(script_embed(b.c, &h, 0));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_of_the_tail_is_made_twice),
        cmocka_unit_test(another_engine_is_no_second_opinion),
        cmocka_unit_test(about_one_in_twenty_is_late),
        cmocka_unit_test(when_all_are_late_few_are_hedged),
        cmocka_unit_test(where_there_is_no_room_nothing_is_hedged),
        cmocka_unit_test(a_failure_leaves_the_other),
        cmocka_unit_test(it_may_be_cancelled_at_any_moment),
        cmocka_unit_test(without_memory_there_is_no_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
