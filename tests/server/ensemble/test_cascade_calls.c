/* cascade_calls over scripted calls, in simulated time. */
#include "../../text_bytes.h"
#include "../calls/script.h"

#include "ensemble/cascade_calls.h"

typedef struct bench {
    script s;
    calls *c;
    int n_sure, n_unsure, n_strange;
    double said; /* sum of probabilities that the scripted model has said */
} bench;

static void on_judged(void *user, const char *name, const char *model, double confidence, bool sure)
{
    bench *b = user;
    assert_string_equal(name, "m");
    assert_true(confidence >= 0 && confidence <= 1);
    *(sure ? &b->n_sure : &b->n_unsure) += 1;
}

static void on_strange(void *user, const char *name, const char *model, const char *digest)
{
    bench *b = user;
    assert_string_equal(model, "small");
    assert_string_equal(digest, "d1");
    b->n_strange++;
}

static void bench_open_with(bench *b, const cascade_rule *rule)
{
    cascade_options o = {.rules = rule, .n_rules = 1, .user = b, .judged = on_judged, .strange = on_strange};
    *b = (bench){0};
    script_init(&b->s);
    assert_int_equal(cascade_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static void bench_open(bench *b)
{
    static const cascade_member MEMBERS[] = {{.model = "small", .min_confidence = 0.8, .digest = "d1"},
                                             {.model = "middle", .min_confidence = 0.7},
                                             {.model = "large"}};
    static const cascade_rule RULES[] = {{"m", MEMBERS, 3}};
    bench_open_with(b, RULES);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

/* A word of one token that has this probability. */
static void say_word(bench *b, scripted *c, const char *text, double prob)
{
    int32_t id = 1;
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    b->said += prob;
    d.ids = &id;
    d.n_ids = 1;
    d.text = text_bytes(text);
    d.prob_sum = b->said;
    ev.delta = &d;
    c->ev.event(&c->ev, &ev.base);
}

static void answer(bench *b, scripted *c, const char *text, double prob)
{
    b->said = 0;
    say_started(c);
    say_word(b, c, text, prob);
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
}

static void who_is_sure_answers_alone(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    scripted *small = b.s.calls[0];
    assert_string_equal(small->order->model, "small");
    b.said = 0;
    say_started(small);
    say_word(&b, small, "yes", 0.9);
    say_done(small, 0);
    assert_int_equal(h.n_events, 0); /* it may still have to be taken back */
    script_end(small, CALL_FAULT_NONE);
    assert_string_equal(h.text, "yes");
    assert_int_equal(h.n_events, 3);
    assert_int_equal(h.n_ends, 1);
    assert_string_equal(h.model, "small");
    assert_string_equal(h.wanted, "");
    assert_int_equal(b.s.n, 1);
    assert_int_equal(b.n_sure, 1);
    bench_close(&b);
}

static void who_is_not_sure_is_never_heard(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    answer(&b, b.s.calls[0], "no", 0.79);
    answer(&b, b.s.calls[1], "maybe", 0.5);
    assert_string_equal(b.s.calls[1]->order->model, "middle");
    assert_string_equal(b.s.calls[2]->order->model, "large");
    b.said = 0;
    say_started(b.s.calls[2]);
    say_word(&b, b.s.calls[2], "well", 0.1);
    assert_string_equal(h.text, "well"); /* the last one speaks at once */
    say_done(b.s.calls[2], 0);
    script_end(b.s.calls[2], CALL_FAULT_NONE);
    assert_string_equal(h.model, "large");
    assert_int_equal(h.n_started, 1);
    assert_int_equal(b.n_unsure, 2);
    bench_close(&b);
}

/* A confidence that was calibrated of one file is not trusted of another, however sure it sounds. */
static void another_file_than_the_calibrated_one_is_not_trusted(void **state)
{
    static const cascade_member MEMBERS[] = {{.model = "small", .min_confidence = 0.8, .digest = "d0"},
                                             {.model = "large"}};
    static const cascade_rule RULE = {"m", MEMBERS, 2};
    bench b;
    heard h = {0};
    bench_open_with(&b, &RULE);
    script_generate(b.c, &h, 0);
    answer(&b, b.s.calls[0], "yes", 0.99);
    assert_int_equal(b.n_strange, 1);
    assert_int_equal(b.n_sure + b.n_unsure, 0);
    assert_string_equal(calls_where(h.call).trace, "small was calibrated as another file, large");
    answer(&b, b.s.calls[1], "no", 0.4);
    assert_string_equal(h.text, "no");
    assert_string_equal(h.model, "large");
    bench_close(&b);
}

static void the_trace_tells_the_way(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    answer(&b, b.s.calls[0], "no", 0.25);
    answer(&b, b.s.calls[1], "maybe", 0.5);
    assert_string_equal(calls_where(h.call).trace, "small 0.250 < 0.800, middle 0.500 < 0.700, large");
    calls_cancel(h.call);
    assert_true(b.s.calls[2]->cancelled);
    bench_close(&b);
}

static void what_will_not_be_sure_any_more_is_cut_short(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    for (int i = 0; b.s.n == 1; i++) {
        assert_true(i < 8);
        say_word(&b, b.s.calls[0], "hm", 0.5);
    }
    assert_true(b.s.calls[0]->cancelled);
    assert_string_equal(b.s.calls[1]->order->model, "middle");
    calls_cancel(h.call);
    bench_close(&b);
}

/* The way is the same in however few pieces the words come: sure words behind unsure ones bring nothing back.
 */
static void pieces_make_no_difference(void **state)
{
    static const double PROBS[] = {0.9, 0.4, 0.5, 0.3, 0.6, 0.5, 0.4, 0.5, 0.2, 1,
                                   1,   1,   1,   1,   1,   1,   1,   1,   1,   1};
    enum { N = sizeof PROBS / sizeof *PROBS };
    char said[N][96] = {{0}};
    for (size_t piece = 1; piece <= N; piece++) {
        bench b;
        heard h = {0};
        int32_t ids[N] = {0};
        double sums[N], sum = 0;
        bench_open(&b);
        script_generate(b.c, &h, 0);
        say_started(b.s.calls[0]);
        for (size_t i = 0; i < N; i++) sums[i] = sum += PROBS[i];
        for (size_t at = 0; at < N && b.s.n == 1; at += piece) {
            size_t n = N - at < piece ? N - at : piece;
            Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
            Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
            d.ids = ids;
            d.n_ids = n;
            d.earlier_prob_sums = sums + at;
            d.n_earlier_prob_sums = n - 1;
            d.prob_sum = sums[at + n - 1];
            ev.delta = &d;
            b.s.calls[0]->ev.event(&b.s.calls[0]->ev, &ev.base);
        }
        assert_int_equal(b.s.n, 2);
        snprintf(said[piece - 1], sizeof said[0], "%s", calls_where(h.call).trace);
        assert_string_equal(said[piece - 1], said[0]);
        calls_cancel(h.call);
        bench_close(&b);
    }
    assert_non_null(strstr(said[0], "small 0."));
}

static void the_surest_answers_when_those_above_fail(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    answer(&b, b.s.calls[0], "first", 0.6);
    answer(&b, b.s.calls[1], "second", 0.4);
    script_end(b.s.calls[2], CALL_FAULT_ABSENT);
    assert_string_equal(h.text, "first");
    assert_int_equal(h.status, 0);
    assert_string_equal(h.model, "small");
    assert_string_equal(h.wanted, "large");
    bench_close(&b);
}

static void a_failure_of_all_is_told(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    for (int i = 0; i < 3; i++) script_end(b.s.calls[i], CALL_FAULT_ABSENT);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

static void a_wrong_request_is_no_reason_to_ask_others(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    script_end_as(b.s.calls[0], SHOAL_EINVALID, CALL_FAULT_NONE);
    assert_int_equal(h.status, SHOAL_EINVALID);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

static void who_would_come_too_late_is_not_asked(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.estimate.expected_ms = 300;
    script_generate(b.c, &h, b.s.env->now_ns(b.s.env->user) + 200 * 1000000ull);
    answer(&b, b.s.calls[0], "quick", 0.1);
    assert_string_equal(h.text, "quick");
    assert_string_equal(h.wanted, "middle");
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

static void before_the_deadline_the_best_so_far_goes_out(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, b.s.env->now_ns(b.s.env->user) + 200 * 1000000ull);
    answer(&b, b.s.calls[0], "quick", 0.1);
    answer(&b, b.s.calls[1], "better", 0.2);
    env_sim_run(b.s.sim, 180);
    assert_int_equal(h.n_events, 0);
    env_sim_run(b.s.sim, 15);
    assert_true(b.s.calls[2]->cancelled);
    assert_string_equal(h.text, "better");
    assert_string_equal(h.wanted, "large");
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

static void whoever_has_begun_is_not_cut_off(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, b.s.env->now_ns(b.s.env->user) + 200 * 1000000ull);
    answer(&b, b.s.calls[0], "quick", 0.1);
    answer(&b, b.s.calls[1], "better", 0.2);
    say_started(b.s.calls[2]);
    env_sim_run(b.s.sim, 500);
    say_done(b.s.calls[2], 0);
    script_end(b.s.calls[2], CALL_FAULT_NONE);
    assert_string_equal(h.model, "large");
    bench_close(&b);
}

static void a_reader_who_rests_gets_the_rest_later(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    calls_pause(h.call, true);
    answer(&b, b.s.calls[0], "yes", 0.9);
    assert_int_equal(h.n_events + h.n_ends, 0);
    calls_pause(h.call, false);
    assert_int_equal(h.n_events + h.n_ends, 0); /* not from inside that */
    env_sim_run(b.s.sim, 1);
    assert_string_equal(h.text, "yes");
    assert_int_equal(h.n_ends, 1);
    bench_close(&b);
}

static void a_reader_may_leave_at_an_event_that_was_kept(void **state)
{
    bench b;
    heard h = {.cancels = true};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    answer(&b, b.s.calls[0], "yes", 0.9);
    assert_int_equal(h.n_events, 1);
    assert_int_equal(h.n_ends, 0);
    bench_close(&b);
}

static void what_has_no_confidence_goes_up(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, 0);
    for (int i = 0; i < 3; i++) script_end(b.s.calls[i], CALL_FAULT_NONE);
    assert_string_equal(h.model, "large");
    bench_close(&b);
}

static void other_models_pass(void **state)
{
    bench b;
    heard h = {0};
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    calls_generate_events ev = {.user = &h, .event = hear_event, .end = hear_stream_end};
    bench_open(&b);
    assert_non_null(calls_generate(b.c, "other", &req, NULL, &ev));
    say_started(b.s.calls[0]);
    assert_int_equal(h.n_events, 1);
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_string_equal(h.model, "other");
    bench_close(&b);
}

static void without_memory_it_says_so(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.no_memory = true;
    assert_null(script_generate(b.c, &h, 0));
    b.s.no_memory = false;
    script_generate(b.c, &h, 0);
    b.s.no_memory = true;
    answer(&b, b.s.calls[0], "no", 0.1);
    assert_int_equal(h.status, SHOAL_ENOMEM);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_sure_answers_alone),
        cmocka_unit_test(who_is_not_sure_is_never_heard),
        cmocka_unit_test(another_file_than_the_calibrated_one_is_not_trusted),
        cmocka_unit_test(the_trace_tells_the_way),
        cmocka_unit_test(what_will_not_be_sure_any_more_is_cut_short),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(the_surest_answers_when_those_above_fail),
        cmocka_unit_test(a_failure_of_all_is_told),
        cmocka_unit_test(a_wrong_request_is_no_reason_to_ask_others),
        cmocka_unit_test(who_would_come_too_late_is_not_asked),
        cmocka_unit_test(before_the_deadline_the_best_so_far_goes_out),
        cmocka_unit_test(whoever_has_begun_is_not_cut_off),
        cmocka_unit_test(a_reader_who_rests_gets_the_rest_later),
        cmocka_unit_test(a_reader_may_leave_at_an_event_that_was_kept),
        cmocka_unit_test(what_has_no_confidence_goes_up),
        cmocka_unit_test(other_models_pass),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
