/* fallback_calls over scripted calls, in simulated time. */
#include "script.h"

#include "calls/fallback_calls.h"

typedef struct bench {
    script s;
    calls *c;
    int n_degraded;
    call_observer observer;
} bench;

static void on_degraded(void *user, const call_order *o, const char *to)
{
    assert_string_equal(o->model, "m");
    assert_string_not_equal(to, "m");
    ((bench *)user)->n_degraded++;
}

static void bench_open(bench *b)
{
    static const char *const TO[] = {"s", "t"};
    static const fallback_rule RULES[] = {{"m", TO, 2}};
    b->observer = (call_observer){.user = b, .degraded = on_degraded};
    fallback_options o = {.rules = RULES, .n_rules = 1, .observer = &b->observer};
    b->n_degraded = 0;
    script_init(&b->s);
    assert_int_equal(fallback_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void a_stand_in_answers_and_says_so(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, 0);
    assert_int_equal(b.s.calls[0]->terms.patience_ms, FALLBACK_PATIENCE_MS);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    assert_int_equal(h.n_ends, 0);
    assert_string_equal(b.s.calls[1]->order->model, "s");
    assert_int_equal(b.s.calls[1]->order->n_msg, b.s.calls[0]->order->n_msg);
    call_place p = calls_where(h.call);
    assert_string_equal(p.wanted, "m");
    assert_string_equal(p.why, "it failed");
    script_end(b.s.calls[1], CALL_FAULT_ABSENT); /* the next one, for which there is time */
    assert_string_equal(b.s.calls[2]->order->model, "t");
    assert_int_equal(b.s.calls[2]->terms.patience_ms, 0);
    script_end(b.s.calls[2], CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    assert_string_equal(h.model, "t");
    assert_string_equal(h.wanted, "m");
    assert_int_equal(b.n_degraded, 2);
    bench_close(&b);
}

static void when_nobody_is_there_the_wanted_model_is_told_of(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, 0);
    for (int i = 0; i < 3; i++) script_end(b.s.calls[i], CALL_FAULT_ABSENT);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    assert_string_equal(h.model, "m");
    assert_string_equal(h.wanted, "");
    bench_close(&b);
}

static void only_absence_falls_back(void **state)
{
    static const call_fault OTHERS[] = {CALL_FAULT_FULL, CALL_FAULT_LEAVES, CALL_FAULT_LOST,
                                        CALL_FAULT_NONSENSE, CALL_FAULT_KILLS};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        bench b;
        heard h = {0};
        bench_open(&b);
        script_embed(b.c, &h, 0);
        script_end(b.s.calls[0], OTHERS[i]);
        assert_int_equal(h.n_ends, 1);
        assert_int_equal(b.s.n, 1);
        bench_close(&b);
    }
}

static void what_has_begun_does_not_change_its_model(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

static void hear_nothing(const call_events *ev, const ProtobufCMessage *m)
{
    fail_msg("%s was said", m->descriptor->name);
}

static void hear_failure(const call_events *ev, const call_result *r)
{
    hear_end(ev->user, r);
}

static void one_file_and_adapters_have_no_stand_in(void **state)
{
    for (int named = 0; named < 2; named++) {
        bench b;
        heard h = {0};
        Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
        call_terms t = {.identity = "d1"}, any = {0};
        call_events ev = {.user = &h, .event = hear_nothing, .end = hear_failure};
        bench_open(&b);
        if (named) req.adapter = (char *)(uintptr_t) "formal";
        call_order *o = call_order_new(CALL_EMBED, "m", &req.base, NULL);
        assert_non_null(calls_start(b.c, o, named ? &any : &t, &ev));
        call_order_unref(o);
        assert_int_equal(b.s.calls[0]->terms.patience_ms, 0);
        script_end(b.s.calls[0], CALL_FAULT_ABSENT);
        assert_int_equal(h.n_ends, 1);
        assert_int_equal(b.s.n, 1);
        bench_close(&b);
    }
}

/* Known to be away, a model is not waited for; back again, it is the one that answers. */
static void a_model_that_is_away_is_waited_for_once(void **state)
{
    bench b;
    heard h[4] = {0};
    bench_open(&b);
    script_embed(b.c, &h[0], 0);
    script_lives(&b.s, (uint64_t[]){0});
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    script_end(b.s.calls[1], CALL_FAULT_NONE);
    script_embed(b.c, &h[1], 0);
    assert_int_equal(b.s.calls[2]->terms.patience_ms, 1);
    script_end(b.s.calls[2], CALL_FAULT_ABSENT);
    script_end(b.s.calls[3], CALL_FAULT_NONE);
    env_sim_run(b.s.sim, FALLBACK_KNOWN_MS + 1);
    script_embed(b.c, &h[2], 0);
    assert_int_equal(b.s.calls[4]->terms.patience_ms, FALLBACK_PATIENCE_MS);
    script_lives(&b.s, (uint64_t[]){3, 0});
    script_end(b.s.calls[4], CALL_FAULT_NONE);
    assert_string_equal(h[2].wanted, "");
    script_embed(b.c, &h[3], 0);
    assert_int_equal(b.s.calls[5]->terms.patience_ms, FALLBACK_PATIENCE_MS);
    calls_cancel(h[3].call);
    assert_true(b.s.calls[5]->cancelled);
    bench_close(&b);
}

static void half_of_a_deadline_is_for_the_stand_in(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, b.s.env->now_ns(b.s.env->user) + 300 * 1000000ull);
    assert_int_equal(b.s.calls[0]->terms.patience_ms, 150);
    bench_close(&b); /* which cancels it */
    assert_true(h.n_ends == 0);
}

static void a_stand_in_rests_when_the_reader_does(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    calls_pause(h.call, true);
    assert_true(b.s.calls[0]->paused);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    assert_true(b.s.calls[1]->paused);
    calls_pause(h.call, false);
    say_started(b.s.calls[1]);
    say_done(b.s.calls[1], 0);
    script_end(b.s.calls[1], CALL_FAULT_NONE);
    assert_int_equal(h.n_done, 1);
    assert_string_equal(h.wanted, "m");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stand_in_answers_and_says_so),
        cmocka_unit_test(when_nobody_is_there_the_wanted_model_is_told_of),
        cmocka_unit_test(only_absence_falls_back),
        cmocka_unit_test(what_has_begun_does_not_change_its_model),
        cmocka_unit_test(one_file_and_adapters_have_no_stand_in),
        cmocka_unit_test(a_model_that_is_away_is_waited_for_once),
        cmocka_unit_test(half_of_a_deadline_is_for_the_stand_in),
        cmocka_unit_test(a_stand_in_rests_when_the_reader_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
