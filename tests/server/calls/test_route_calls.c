/* Calls that name a route: they are made of the model that it comes to, and any other goes straight through.
 */
#include "script.h"

#include "calls/fallback_calls.h"
#include "calls/route_calls.h"

typedef struct bench {
    script s;
    calls *c;
    config_rule rules[2];
    config_route routes[2];
    route_book book;
    int n_heard;
    char came_to[32];
} bench;

static void on_heard(void *user, const call_order *o, const config_route *route, const resolved *r)
{
    bench *b = user;
    b->n_heard++;
    snprintf(b->came_to, sizeof b->came_to, "%s", r->decision->n ? r->decision->steps[0].model : "nobody");
}

/* `r`: the model `m` when tools are wanted, else nobody that exists; `q`: always m, and `m2` behind it. */
static void bench_open(bench *b)
{
    static const char *wants[] = {"tools"}, *chain[] = {"m"};
    *b = (bench){0};
    script_init(&b->s);
    b->rules[0] = (config_rule){.wants = wants, .n_wants = 1, .model = "m"};
    b->rules[1] = (config_rule){.model = "nix"};
    b->routes[0] = (config_route){.name = "r", .rules = b->rules, .n_rules = 2};
    b->routes[1] = (config_route){.name = "q",
                                  .rules = b->rules,
                                  .n_rules = 1,
                                  .fallback = chain,
                                  .n_fallback = 1,
                                  .order = ROUTER_BY_HASH,
                                  .key = KEY_PREFIX};
    b->book = (route_book){.routes = b->routes, .n_routes = 2};
    assert_int_equal(route_calls_new(&b->c, b->s.env, &b->s.base, &b->book, on_heard, b, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static model_call *generate(bench *b, heard *h, const char *model, const char *tools)
{
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    call_context ctx = {.request_id = "r1"};
    calls_generate_events ev = {.user = h, .event = hear_event, .end = hear_stream_end};
    req.text = "once upon a time";
    req.tools_json = (char *)tools;
    return h->call = calls_generate(b->c, model, &req, &ctx, &ev);
}

static void a_route_becomes_its_model(void **state)
{
    bench b;
    bench_open(&b);
    heard h = {0};
    generate(&b, &h, "r", "[]");
    scripted *c = script_last(&b.s);
    assert_string_equal(c->order->model, "m");
    assert_string_equal(b.came_to, "m");
    assert_int_equal(calls_where(h.call).life, 1);
    calls_pause(h.call, true);
    assert_true(c->paused);
    calls_pause(h.call, false);
    say_started(c);
    say(c, 7, "there was");
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
    assert_string_equal(h.text, "there was");
    assert_int_equal(h.n_ends, 1);
    assert_string_equal(h.model, "m");
    bench_close(&b);
}

static void its_policy_goes_along(void **state)
{
    bench b;
    bench_open(&b);
    heard h = {0};
    generate(&b, &h, "q", "");
    const call_order *o = script_last(&b.s)->order;
    assert_string_equal(o->model, "m");
    assert_int_equal(o->order, ROUTER_BY_HASH);
    assert_true(o->key != 0);
    calls_cancel(h.call);
    assert_true(script_last(&b.s)->cancelled);
    bench_close(&b);
}

static void other_names_go_straight_through(void **state)
{
    bench b;
    bool known;
    bench_open(&b);
    heard h = {0};
    generate(&b, &h, "m", "");
    assert_ptr_equal(h.call, &script_last(&b.s)->base);
    assert_int_equal(b.n_heard, 0);
    assert_null(calls_info(b.c, "r", &known));
    assert_true(known);
    calls_info(b.c, "nix", &known);
    assert_false(known);
    calls_cancel(h.call);
    bench_close(&b);
}

static void nobody_is_told_in_the_next_turn(void **state)
{
    bench b;
    bench_open(&b);
    heard h = {0};
    generate(&b, &h, "r", "");
    assert_string_equal(b.came_to, "nobody");
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 1);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    assert_string_equal(h.message, "the route r has nobody for this call");
    generate(&b, &h, "r", "");
    calls_cancel(h.call); /* before it is told */
    env_sim_run(b.s.sim, 1);
    assert_int_equal(h.n_ends, 1);
    bench_close(&b);
}

static void memory_that_is_out_is_told_too(void **state)
{
    bench b;
    bench_open(&b);
    heard h = {0};
    b.s.no_memory = true;
    assert_non_null(generate(&b, &h, "r", "[]"));
    env_sim_run(b.s.sim, 1);
    assert_int_equal(h.status, SHOAL_ENOMEM);
    b.s.no_memory = false;
    bench_close(&b);
}

/* The rest of a plan stands in when the first model's workers are gone, and the result says so. */
static void an_order_brings_its_own_stand_ins(void **state)
{
    static const char *const chain[] = {"a", "b"};
    script s;
    calls *c;
    heard h = {0};
    script_init(&s);
    assert_int_equal(fallback_calls_new(&c, s.env, &s.base, &(fallback_options){0}, NULL), 0);
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    call_context ctx = {.request_id = "r1", .stand_ins = chain, .n_stand_ins = 2};
    calls_generate_events ev = {.user = &h, .event = hear_event, .end = hear_stream_end};
    req.text = "once";
    h.call = calls_generate(c, "m", &req, &ctx, &ev);
    script_end(script_last(&s), CALL_FAULT_ABSENT);
    assert_string_equal(script_last(&s)->order->model, "a");
    script_end(script_last(&s), CALL_FAULT_ABSENT);
    assert_string_equal(script_last(&s)->order->model, "b");
    say_started(script_last(&s));
    say_done(script_last(&s), 0);
    script_end(script_last(&s), CALL_FAULT_NONE);
    assert_string_equal(h.model, "b");
    assert_string_equal(h.wanted, "m");
    assert_int_equal(s.n, 3);
    calls_free(c);
    script_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_becomes_its_model),
        cmocka_unit_test(its_policy_goes_along),
        cmocka_unit_test(other_names_go_straight_through),
        cmocka_unit_test(nobody_is_told_in_the_next_turn),
        cmocka_unit_test(memory_that_is_out_is_told_too),
        cmocka_unit_test(an_order_brings_its_own_stand_ins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
