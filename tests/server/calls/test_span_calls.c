/* span_calls over scripted calls: what is told of a call of its names, and where the calls below it stand. */
#include "script.h"

#include "calls/observer.h"
#include "calls/span_calls.h"

enum { REQUEST = 7, SENDER = 99 };

typedef struct bench {
    script s;
    calls *c;
    call_observer observer;
    span told[4];
    size_t n_told;
} bench;

static void on_span(void *user, uint64_t request, const span *s)
{
    bench *b = user;
    assert_int_equal(request, REQUEST);
    assert_true(b->n_told < 4);
    b->told[b->n_told++] = *s;
}

/* Two decorators, as a verify over a cascade. */
static void bench_open(bench *b)
{
    static const char *const INNER[] = {"inner"}, *const OUTER[] = {"outer", "other"};
    *b = (bench){0};
    script_init(&b->s);
    b->observer = (call_observer){.user = b, .span = on_span};
    span_calls_options inner = {"cascade", INNER, 1}, outer = {"verify", OUTER, 2};
    assert_int_equal(span_calls_new(&b->c, b->s.env, &b->s.base, &inner, NULL), 0);
    assert_int_equal(span_calls_new(&b->c, b->s.env, b->c, &outer, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void on_reply(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    heard *h = user;
    h->n_ends++;
    h->status = r->status;
}

static model_call *ask(bench *b, heard *h, const char *model, uint64_t parent)
{
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    call_context ctx = {
        .request_id = "r", .request = REQUEST, .why = "endpoint", .spans = {&b->observer, parent}};
    if (!parent) ctx.spans.to = NULL;
    model_call *call = calls_embed(b->c, model, &req, &ctx, on_reply, h);
    assert_non_null(call);
    return call;
}

static void a_call_is_told_and_those_below_stand_under_it(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    ask(&b, &h, "inner", SENDER);
    scripted *below = script_last(&b.s);
    assert_int_not_equal(below->order->spans.parent, SENDER);
    assert_string_equal(below->order->model, "inner");
    env_sim_run(b.s.sim, 30);
    assert_int_equal(b.n_told, 0);
    script_end(below, CALL_FAULT_NONE);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(b.n_told, 1);
    assert_int_equal(b.told[0].id, below->order->spans.parent);
    assert_int_equal(b.told[0].parent, SENDER);
    assert_int_equal(b.told[0].kind, SPAN_ENSEMBLE);
    assert_int_equal(b.told[0].end_ns - b.told[0].start_ns, 30000000);
    assert_string_equal(b.told[0].name, "inner");
    assert_string_equal(span_find(&b.told[0], "ensemble"), "cascade");
    assert_string_equal(span_find(&b.told[0], "error"), "");
    bench_close(&b);
}

static void a_failure_and_a_cancel_are_told(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    ask(&b, &h, "outer", SENDER);
    script_end(script_last(&b.s), CALL_FAULT_LOST);
    assert_int_equal(h.n_ends, 1);
    assert_int_not_equal(h.status, 0);
    assert_string_equal(span_find(&b.told[0], "error"), shoal_err_name(h.status));
    model_call *call = ask(&b, &h, "other", SENDER);
    calls_cancel(call);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(b.n_told, 2);
    assert_string_equal(span_find(&b.told[1], "error"), "SHOAL_ECANCELLED");
    bench_close(&b);
}

static void other_names_and_requests_that_nobody_watches_pass_through(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    ask(&b, &h, "m", SENDER);
    assert_int_equal(script_last(&b.s)->order->spans.parent, SENDER);
    script_end(script_last(&b.s), CALL_FAULT_NONE);
    ask(&b, &h, "inner", 0);
    assert_int_equal(script_last(&b.s)->order->spans.parent, 0);
    script_end(script_last(&b.s), CALL_FAULT_NONE);
    assert_int_equal(h.n_ends, 2);
    assert_int_equal(b.n_told, 0);
    bench_close(&b);
}

static void no_memory_below_is_none_here(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.no_memory = true;
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    call_context ctx = {.request = REQUEST, .spans = {&b.observer, SENDER}};
    assert_null(calls_embed(b.c, "inner", &req, &ctx, on_reply, &h));
    assert_int_equal(b.n_told, 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_told_and_those_below_stand_under_it),
        cmocka_unit_test(a_failure_and_a_cancel_are_told),
        cmocka_unit_test(other_names_and_requests_that_nobody_watches_pass_through),
        cmocka_unit_test(no_memory_below_is_none_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
