/* limit_calls over scripted calls, in simulated time. */
#include "script.h"

#include "calls/limit_calls.h"

typedef struct bench {
    script s;
    calls *c;
} bench;

static void bench_open_routed(bench *b, reply_limits limits, const route_book *book)
{
    script_init(&b->s);
    assert_int_equal(limit_calls_new(&b->c, b->s.env, &b->s.base, &limits, book, NULL), 0);
}

static void bench_open(bench *b, reply_limits limits)
{
    bench_open_routed(b, limits, NULL);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void a_reply_without_a_token_is_an_error(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b, (reply_limits){.first_token_ms = 1000, .token_gap_ms = 10, .reply_ms = 500});
    script_generate(b.c, &h, 0);
    env_sim_run(b.s.sim, 600);
    say_started(b.s.calls[0]);
    say_progress(b.s.calls[0], 1);
    env_sim_run(b.s.sim, 390);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 20);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EDEADLINE);
    assert_string_equal(h.message, "no token came within 1000 ms (first_token_ms)");
    assert_true(b.s.calls[0]->cancelled);
    bench_close(&b);
}

static void a_reply_that_stops_ends_with_what_there_is(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b, (reply_limits){.first_token_ms = 50, .token_gap_ms = 100});
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    say_progress(b.s.calls[0], 2);
    say(b.s.calls[0], 1, "a");
    env_sim_run(b.s.sim, 90);
    say(b.s.calls[0], 1, "b");
    env_sim_run(b.s.sim, 90);
    say(b.s.calls[0], 1, "c");
    env_sim_run(b.s.sim, 90);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 20);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, 0);
    assert_int_equal(h.n_done, 1);
    assert_string_equal(h.text, "abc");
    assert_string_equal(h.finish, "length");
    assert_true(h.cut);
    assert_string_equal(h.model, "m");
    assert_string_equal(h.digest, "d1");
    assert_int_equal(h.n_generated, 3);
    assert_int_equal(h.n_cached, 2);
    assert_true(b.s.calls[0]->cancelled);
    bench_close(&b);
}

static void a_long_reply_ends_with_what_there_is(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b, (reply_limits){.token_gap_ms = 100, .reply_ms = 250});
    script_generate(b.c, &h, 0);
    for (int i = 0; i < 5 && h.n_ends == 0; i++) {
        say(b.s.calls[0], 1, "x");
        env_sim_run(b.s.sim, 60);
    }
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, 0);
    assert_string_equal(h.text, "xxxxx");
    assert_string_equal(h.finish, "length");
    bench_close(&b);
}

/* Nor does it while its last event waits. */
static void no_limit_counts_while_the_reader_rests(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b, (reply_limits){.first_token_ms = 100, .token_gap_ms = 100, .reply_ms = 250});
    model_call *call = script_generate(b.c, &h, 0);
    say(b.s.calls[0], 1, "a");
    env_sim_run(b.s.sim, 90);
    calls_pause(call, true);
    env_sim_run(b.s.sim, 5000);
    calls_pause(call, false);
    env_sim_run(b.s.sim, 90);
    assert_int_equal(h.n_ends, 0);
    say(b.s.calls[0], 1, "b");
    env_sim_run(b.s.sim, 60);
    say_done(b.s.calls[0], 0);
    env_sim_run(b.s.sim, 5000);
    assert_int_equal(h.n_ends, 0);
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.n_done, 1);
    assert_false(h.cut);
    bench_close(&b);
}

static void other_tasks_and_zero_have_no_limits(void **state)
{
    bench b;
    heard h = {0}, embed = {0};
    bench_open(&b, (reply_limits){0});
    script_generate(b.c, &h, 0);
    env_sim_run(b.s.sim, 1u << 30);
    assert_int_equal(h.n_ends, 0);
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    bench_close(&b);
    bench_open(&b, (reply_limits){1, 1, 1});
    script_embed(b.c, &embed, 0);
    env_sim_run(b.s.sim, 1000);
    assert_int_equal(embed.n_ends, 0);
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    bench_close(&b);
}

static void generate_within(bench *b, heard *h, reply_limits own)
{
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    call_context ctx = {.limits = own};
    calls_generate_events ev = {.user = h, .event = hear_event, .end = hear_stream_end};
    req.messages_json = "[]";
    h->call = calls_generate(b->c, "m", &req, &ctx, &ev);
}

static void a_routes_limits_count_in_place_of_the_servers(void **state)
{
    bench b;
    heard cut = {0}, late = {0}, longer = {0};
    bench_open(&b, (reply_limits){.first_token_ms = 500, .token_gap_ms = 50, .reply_ms = 200});
    generate_within(&b, &cut, (reply_limits){.reply_ms = 100});
    for (int i = 0; i < 4 && cut.n_ends == 0; i++) {
        say(b.s.calls[0], 1, "x");
        env_sim_run(b.s.sim, 40);
    }
    assert_int_equal(cut.n_ends, 1);
    assert_string_equal(cut.text, "xxx");
    assert_string_equal(cut.finish, "length");
    assert_true(cut.cut);
    generate_within(&b, &late, (reply_limits){.first_token_ms = 10});
    env_sim_run(b.s.sim, 20);
    assert_int_equal(late.n_ends, 1);
    assert_int_equal(late.status, SHOAL_EDEADLINE);
    assert_string_equal(late.message, "no token came within 10 ms (first_token_ms of the route)");
    generate_within(&b, &longer, (reply_limits){.token_gap_ms = 150, .reply_ms = 1000});
    for (int i = 0; i < 3; i++) {
        say(b.s.calls[2], 1, "x");
        env_sim_run(b.s.sim, 140);
    }
    assert_int_equal(longer.n_ends, 0);
    env_sim_run(b.s.sim, 20);
    assert_string_equal(longer.finish, "length");
    bench_close(&b);
}

/* As a stage of a pipeline does; what the route leads to is asked under the limits of the route that is
 * named. */
static void an_order_may_name_the_route(void **state)
{
    config_route routes[] = {{.name = "other", .limits = {.reply_ms = 1}},
                             {.name = "m", .limits = {.token_gap_ms = 100}}};
    const route_book book = {.routes = routes, .n_routes = 2};
    bench b;
    heard h = {0};
    bench_open_routed(&b, (reply_limits){.reply_ms = 1000}, &book);
    script_generate(b.c, &h, 0);
    say(b.s.calls[0], 1, "a");
    env_sim_run(b.s.sim, 90);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 20);
    assert_string_equal(h.finish, "length");
    bench_close(&b);
}

static void a_call_may_be_cancelled_from_its_end(void **state)
{
    bench b;
    heard h = {0}, other = {0};
    bench_open(&b, (reply_limits){.token_gap_ms = 100});
    script_generate(b.c, &h, 0);
    say(b.s.calls[0], 1, "a");
    h.cancels = true;
    env_sim_run(b.s.sim, 200);
    assert_int_equal(h.n_done, 1);
    assert_int_equal(h.n_ends, 0);
    script_generate(b.c, &other, 0);
    calls_cancel(other.call);
    assert_true(b.s.calls[1]->cancelled);
    b.s.no_memory = true;
    assert_null(script_generate(b.c, &other, 0));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_without_a_token_is_an_error),
        cmocka_unit_test(a_reply_that_stops_ends_with_what_there_is),
        cmocka_unit_test(a_long_reply_ends_with_what_there_is),
        cmocka_unit_test(no_limit_counts_while_the_reader_rests),
        cmocka_unit_test(other_tasks_and_zero_have_no_limits),
        cmocka_unit_test(a_routes_limits_count_in_place_of_the_servers),
        cmocka_unit_test(an_order_may_name_the_route),
        cmocka_unit_test(a_call_may_be_cancelled_from_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
