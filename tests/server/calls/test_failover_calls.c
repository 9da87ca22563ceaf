/* failover_calls over scripted calls, in simulated time: what goes on elsewhere, what is said there, and who
 * is given up. */
#include "script.h"

#include "calls/poison.h"
#include "calls/failover_calls.h"
#include "calls/fallback_calls.h"
#include "calls/limit_calls.h"
#include "calls/silence_calls.h"

typedef struct bench {
    script s;
    calls *c;
    call_observer observer;
    int n_moved, n_restarted, n_ended;
    char cause[32], to[32];
    double gap_ms;
} bench;

static void on_moved(void *user, const call_order *o, const call_move *m)
{
    bench *b = user;
    b->n_moved++;
    b->n_restarted += m->restarted;
    snprintf(b->cause, sizeof b->cause, "%s", m->cause);
    snprintf(b->to, sizeof b->to, "%s", m->to);
    b->gap_ms = m->gap_ms;
}

static void on_ended(void *user, const call_order *o, const call_result *r)
{
    ((bench *)user)->n_ended++;
}

static void bench_open(bench *b)
{
    *b = (bench){0};
    script_init(&b->s);
    b->observer = (call_observer){.user = b, .moved = on_moved, .end = on_ended};
    failover_options o = {.observer = &b->observer};
    assert_int_equal(failover_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static Shoal__V1__GenerateRequest *request_of(const scripted *c)
{
    return (Shoal__V1__GenerateRequest *)call_order_request(c->order);
}

/* Started, "a", "b" from the first worker, which then dies. */
static void begin_and_die(bench *b, heard *h)
{
    script_generate(b->c, h, 0);
    scripted *c = script_last(&b->s);
    say_started(c);
    say_progress(c, 2);
    say(c, 10, "a");
    say(c, 11, "b");
    env_sim_run(b->s.sim, 40);
    script_lives(&b->s, (uint64_t[]){2, 0});
    script_end(c, CALL_FAULT_LOST);
}

static void a_stream_goes_on_where_it_was(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    begin_and_die(&b, &h);
    scripted *c = b.s.calls[1];
    assert_int_equal(c->life, 2);
    assert_string_equal(c->terms.identity, "d1");
    Shoal__V1__GenerateRequest *req = request_of(c);
    assert_string_equal(req->messages_json, "[]");
    assert_int_equal(req->max_tokens, 50);
    assert_int_equal(req->n_prompt_ids, 3);
    assert_int_equal(req->prompt_ids[2], 9);
    assert_int_equal(req->n_resume_ids, 2);
    assert_int_equal(req->resume_ids[1], 11);
    assert_int_equal(req->resume_bytes, 2);
    assert_true(req->resume_prob_sum == 11);
    protobuf_c_message_free_unpacked(&req->base, NULL);
    env_sim_run(b.s.sim, 30);
    say_started(c);
    say_progress(c, 0);
    say(c, 12, "c");
    say_done(c, 0);
    script_end(c, CALL_FAULT_NONE);
    assert_string_equal(h.text, "abc");
    assert_int_equal(h.n_started, 1);
    assert_int_equal(h.n_cached, 2); /* as the first worker found it */
    assert_int_equal(h.status, 0);
    assert_int_equal(b.n_moved, 1);
    assert_int_equal(b.n_restarted, 0);
    assert_int_equal(b.n_ended, 1);
    assert_string_equal(b.cause, "lost");
    assert_string_equal(b.to, "m/0");
    assert_true(b.gap_ms == 30);
    bench_close(&b);
}

/* The same file with another adapter of that name would go on with other words. */
static void a_stream_with_an_adapter_goes_on_with_that_very_one(void **state)
{
    bench b;
    heard h = {.adapter = "polite"}, plain = {0};
    bench_open(&b);
    begin_and_die(&b, &h);
    scripted *c = script_last(&b.s);
    assert_string_equal(c->order->adapter, "polite");
    assert_string_equal(c->terms.identity, "d1");
    assert_string_equal(c->terms.adapter_digest, "a1");
    say(c, 12, "c");
    script_lives(&b.s, (uint64_t[]){3, 0});
    script_end(c, CALL_FAULT_LOST); /* and again */
    assert_string_equal(script_last(&b.s)->order->adapter, "polite");
    assert_string_equal(script_last(&b.s)->terms.adapter_digest, "a1");
    calls_cancel(h.call);
    begin_and_die(&b, &plain);
    assert_string_equal(script_last(&b.s)->terms.adapter_digest, "");
    calls_cancel(plain.call);
    bench_close(&b);
}

/* ---- replicas with other bits --------------------------------------------------------------------- */

/* Replica 2 computes the same file elsewhere; all others are alike. */
static const char *engine_of(uint64_t life)
{
    return life == 2 ? "sha256:d;engine=cuda;precision=file;numerics=1"
                     : "sha256:d;engine=shoal;precision=file;numerics=1";
}

static void expect_new_request(const scripted *c)
{
    Shoal__V1__GenerateRequest *req = request_of(c);
    assert_string_equal(c->terms.identity, "");
    assert_string_equal(req->messages_json, "[]");
    assert_int_equal(req->n_resume_ids, 0);
    assert_int_equal(req->n_prompt_ids, 0);
    assert_int_equal(req->resume_bytes, 0);
    assert_false(c->order->resumes);
    protobuf_c_message_free_unpacked(&req->base, NULL);
}

/* Nobody has heard a word of it. */
static void before_its_first_token_an_answer_restarts_unseen(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.identity = engine_of;
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    say_progress(b.s.calls[0], 2);
    script_lives(&b.s, (uint64_t[]){2, 0});
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    scripted *c = b.s.calls[1];
    assert_int_equal(c->life, 2);
    expect_new_request(c);
    say_started(c);
    say_progress(c, 1);
    say(c, 20, "x");
    say_done(c, 1);
    script_end(c, CALL_FAULT_NONE);
    assert_string_equal(h.text, "x");
    assert_int_equal(h.n_started, 1);
    assert_int_equal(h.n_cached, 1); /* as the one that answered found it */
    assert_int_equal(h.status, 0);
    assert_int_equal(b.n_restarted, 1);
    bench_close(&b);
}

/* What was said is not contradicted: it waits for who can go on, and ends in a failure that says why. */
static void an_answer_that_was_heard_ends_rather_than_going_on_with_other_bits(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    b.s.identity = engine_of;
    begin_and_die(&b, &h);
    script_lives(&b.s, (uint64_t[]){2, 0});
    assert_string_equal(b.s.calls[1]->terms.identity, engine_of(1));
    script_end(script_last(&b.s), CALL_FAULT_ABSENT);
    env_sim_run(b.s.sim, 100);
    assert_int_equal(h.n_ends, 0); /* its own may be restarted */
    while (h.n_ends == 0) {
        assert_string_equal(script_last(&b.s)->terms.identity, engine_of(1));
        script_end(script_last(&b.s), CALL_FAULT_ABSENT);
        env_sim_run(b.s.sim, FAILOVER_WAIT_MS / 4);
    }
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    assert_int_equal(h.fault, CALL_FAULT_UNLIKE);
    assert_string_equal(h.text, "ab");
    assert_int_equal(b.n_moved, 0);
    bench_close(&b);
}

static void who_takes_back_what_it_heard_gets_the_answer_anew(void **state)
{
    bench b;
    heard h = {.takes_back = true};
    bench_open(&b);
    b.s.identity = engine_of;
    script_lives(&b.s, (uint64_t[]){1, 2, 0});
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    say(b.s.calls[0], 10, "a");
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(h.n_restarted, 1);
    expect_new_request(b.s.calls[1]);
    say_started(b.s.calls[1]);
    say(b.s.calls[1], 20, "x");
    script_lives(&b.s, (uint64_t[]){3, 0});
    script_end(b.s.calls[1], CALL_FAULT_LOST); /* and back to ours */
    assert_int_equal(h.n_restarted, 2);
    expect_new_request(b.s.calls[2]);
    say_started(b.s.calls[2]);
    say(b.s.calls[2], 10, "a");
    script_lives(&b.s, (uint64_t[]){2, 4, 0});
    script_end(b.s.calls[2], CALL_FAULT_LOST); /* one of its own is there: it goes on */
    assert_int_equal(b.s.calls[3]->life, 4);
    say(b.s.calls[3], 11, "b");
    say_done(b.s.calls[3], 0);
    script_end(b.s.calls[3], CALL_FAULT_NONE);
    assert_int_equal(h.n_restarted, 2);
    assert_string_equal(h.text, "ab");
    assert_int_equal(h.n_started, 1);
    assert_int_equal(b.n_moved, 3);
    assert_int_equal(b.n_restarted, 2);
    bench_close(&b);
}

/* Equal bits are no use where an engine cannot begin in the middle. */
static void what_cannot_be_resumed_exactly_restarts_or_ends_at_once(void **state)
{
    bench b;
    heard back = {.takes_back = true}, h = {0};
    bench_open(&b);
    b.s.inexact = true;
    begin_and_die(&b, &back);
    assert_int_equal(back.n_restarted, 1);
    expect_new_request(script_last(&b.s));
    calls_cancel(back.call);
    script_lives(&b.s, (uint64_t[]){1, 2, 0});
    begin_and_die(&b, &h);
    assert_int_equal(h.fault, CALL_FAULT_UNLIKE);
    assert_string_equal(h.text, "ab");
    bench_close(&b);
}

/* The client has the beginning already, from another gateway. */
static void a_stream_that_goes_on_by_its_id_is_not_restarted(void **state)
{
    bench b;
    heard h = {0};
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    call_events ev = {.user = &h,
                      .event = hear_any_event,
                      .end = hear_any_end,
                      .restarted = hear_restarted,
                      .takes_back = true};
    call_terms t = {0};
    call_terms_pin(&t, engine_of(1), "");
    bench_open(&b);
    b.s.identity = engine_of;
    req.messages_json = "[]";
    call_order *o = call_order_new(CALL_GENERATE, "m", &req.base, &(call_context){.request_id = "r1"});
    calls_start(b.c, o, &t, &ev);
    call_order_unref(o);
    say_started(b.s.calls[0]);
    script_lives(&b.s, (uint64_t[]){2, 0});
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_string_equal(b.s.calls[1]->terms.identity, engine_of(1));
    env_sim_run(b.s.sim, FAILOVER_WAIT_MS + 1000);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    script_end(b.s.calls[2], CALL_FAULT_ABSENT);
    assert_int_equal(h.fault, CALL_FAULT_UNLIKE);
    assert_int_equal(h.n_restarted, 0);
    bench_close(&b);
}

/* Through everything that stands above: what they keep of the answer is void, too. */
static void all_decorators_hear_of_a_restart(void **state)
{
    static const char *const TO[] = {"s"};
    static const fallback_rule RULES[] = {{"m", TO, 1}};
    static const reply_limits LIMITS = {.first_token_ms = 1000, .token_gap_ms = 100};
    bench b;
    heard h = {.takes_back = true};
    bench_open(&b);
    b.s.identity = engine_of;
    fallback_options fallback = {.rules = RULES, .n_rules = 1};
    assert_int_equal(silence_calls_new(&b.c, b.s.env, b.c, &(silence_options){0}, NULL), 0);
    assert_int_equal(fallback_calls_new(&b.c, b.s.env, b.c, &fallback, NULL), 0);
    assert_int_equal(limit_calls_new(&b.c, b.s.env, b.c, &LIMITS, NULL, NULL), 0);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    say(b.s.calls[0], 10, "a");
    script_lives(&b.s, (uint64_t[]){2, 0});
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(h.n_restarted, 1);
    scripted *c = script_last(&b.s);
    expect_new_request(c);
    env_sim_run(b.s.sim, 500); /* a first token may take longer than the next ones */
    assert_int_equal(h.n_ends, 0);
    say_started(c);
    say(c, 20, "x");
    say(c, 21, "y");
    env_sim_run(b.s.sim, 200);
    assert_true(h.cut);
    assert_string_equal(h.text, "xy");
    assert_int_equal(h.n_started, 1);
    assert_int_equal(h.n_generated, 2); /* of this answer alone */
    bench_close(&b);
}

static void it_moves_as_often_as_it_must(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    begin_and_die(&b, &h);
    for (uint64_t i = 0; i < 20; i++) {
        scripted *c = script_last(&b.s);
        say_started(c);
        say(c, 12 + (int32_t)i, "x");
        script_lives(&b.s, (uint64_t[]){3 + i, 0});
        script_end(c, CALL_FAULT_LOST);
    }
    Shoal__V1__GenerateRequest *req = request_of(script_last(&b.s));
    assert_int_equal(req->n_resume_ids, 22);
    assert_int_equal(req->n_prompt_ids, 3);
    assert_int_equal(req->resume_bytes, 22);
    protobuf_c_message_free_unpacked(&req->base, NULL);
    say_done(script_last(&b.s), 0);
    script_end(script_last(&b.s), CALL_FAULT_NONE);
    assert_string_equal(h.text, "abxxxxxxxxxxxxxxxxxxxx");
    assert_int_equal(h.status, 0);
    assert_int_equal(h.n_started, 1);
    assert_int_equal(b.n_moved, 21);
    bench_close(&b);
}

static void a_unary_call_is_sent_again(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_embed(b.c, &h, 0);
    script_lives(&b.s, (uint64_t[]){0});
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(b.s.n, 2); /* retry below waits for the restarted worker, for so long */
    assert_string_equal(b.s.calls[1]->terms.identity, "");
    assert_true(b.s.calls[1]->terms.hold_until_ns ==
                b.s.env->now_ns(b.s.env->user) + FAILOVER_WAIT_MS * 1000000ull);
    script_end(b.s.calls[1], CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    assert_int_equal(b.n_moved, 1);
    bench_close(&b);
}

static void where_only_the_link_was_cut_it_goes_back(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    begin_and_die(&b, &h);
    assert_true(call_terms_avoids(&b.s.calls[1]->terms, 1));
    script_lives(&b.s, (uint64_t[]){1, 0});
    script_end(b.s.calls[1], CALL_FAULT_ABSENT); /* nobody else */
    assert_int_equal(b.s.calls[2]->life, 1);
    say(b.s.calls[2], 12, "c");
    say_done(b.s.calls[2], 0);
    script_end(b.s.calls[2], CALL_FAULT_NONE);
    assert_string_equal(h.text, "abc");
    assert_int_equal(h.status, 0);
    begin_and_die(&b, &h);
    script_end(script_last(&b.s), CALL_FAULT_ABSENT);
    script_end(script_last(&b.s), CALL_FAULT_ABSENT); /* nobody at all, for a moment */
    assert_int_equal(h.n_ends, 1);
    env_sim_run(b.s.sim, 100);
    script_end(script_last(&b.s), CALL_FAULT_ABSENT); /* it is asked again, */
    assert_int_equal(h.n_ends, 1);
    env_sim_run(b.s.sim, FAILOVER_WAIT_MS);
    script_end(script_last(&b.s), CALL_FAULT_ABSENT); /* but not for ever */
    assert_int_equal(h.n_ends, 2);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

static void an_error_of_the_request_is_its_answer(void **state)
{
    bench b;
    heard h = {0}, early = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    script_end_as(b.s.calls[0], SHOAL_EDEADLINE, CALL_FAULT_NONE);
    assert_int_equal(h.status, SHOAL_EDEADLINE);
    script_embed(b.c, &early, 0);
    script_lives(&b.s, (uint64_t[]){2, 0});
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    script_end_as(b.s.calls[2], SHOAL_EINVALID, CALL_FAULT_NONE);
    assert_int_equal(early.status, SHOAL_EINVALID);
    assert_int_equal(b.s.n, 3);
    bench_close(&b);
}

static void one_that_cannot_go_on_is_passed_by(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    begin_and_die(&b, &h);
    script_lives(&b.s, (uint64_t[]){2, 3, 0});
    script_end_as(b.s.calls[1], SHOAL_ELIMIT, CALL_FAULT_NONE); /* less room there */
    assert_int_equal(b.s.calls[2]->life, 3);
    say(b.s.calls[2], 12, "c");
    say_done(b.s.calls[2], 0);
    script_end(b.s.calls[2], CALL_FAULT_NONE);
    assert_string_equal(h.text, "abc");
    bench_close(&b);
}

static void nonsense_is_tried_elsewhere_and_not_for_ever(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_lives(&b.s, (uint64_t[]){1, 2, 3, 4, 5, 0});
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    script_end(b.s.calls[0], CALL_FAULT_NONSENSE);
    script_end(b.s.calls[1], CALL_FAULT_NONE); /* ends without its last event */
    assert_int_equal(h.n_ends, 0);
    script_end(b.s.calls[2], CALL_FAULT_NONSENSE);
    assert_int_equal(b.s.n, 3);
    assert_int_equal(h.status, SHOAL_EINTERNAL);
    bench_close(&b);
}

static void an_answer_that_was_whole_stays_so(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    say(b.s.calls[0], 10, "a");
    say_done(b.s.calls[0], 0);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(h.status, 0);
    assert_int_equal(h.n_done, 1);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

static void where_all_queues_are_full_it_waits(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    begin_and_die(&b, &h);
    for (int i = 0; i < 10; i++) {
        script_end(script_last(&b.s), CALL_FAULT_FULL);
        env_sim_run(b.s.sim, 25);
    }
    assert_int_equal(b.s.n, 12);
    say_done(script_last(&b.s), 0);
    script_end(script_last(&b.s), CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

static void its_deadline_ends_the_wait(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, b.s.env->now_ns(b.s.env->user) + 100 * 1000000u);
    say_started(b.s.calls[0]);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_true(b.s.calls[1]->terms.hold_until_ns == b.s.calls[1]->order->deadline_ns);
    script_end(b.s.calls[1], CALL_FAULT_FULL);
    env_sim_run(b.s.sim, 99);
    script_end(script_last(&b.s), CALL_FAULT_FULL);
    env_sim_run(b.s.sim, 30);
    assert_int_equal(h.status, SHOAL_EDEADLINE);
    bench_close(&b);
}

/* ---- requests that kill -------------------------------------------------------------------------- */

static void die_in_a_row(bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        say_started(script_last(&b->s));
        script_lives(&b->s, (uint64_t[]){100 + b->s.n, 0});
        script_end(script_last(&b->s), CALL_FAULT_LOST);
    }
}

static void a_request_that_kills_workers_is_refused(void **state)
{
    bench b;
    heard h = {0}, again = {0}, other = {0}, later = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    die_in_a_row(&b, POISON_MIN - 1);
    assert_int_equal(h.n_ends, 0);
    die_in_a_row(&b, 1);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.fault, CALL_FAULT_KILLS);
    assert_int_equal(b.s.n, POISON_MIN);
    script_generate(b.c, &again, 0); /* the same request is not even tried */
    assert_int_equal(again.n_ends, 0);
    env_sim_run(b.s.sim, 1);
    assert_int_equal(again.fault, CALL_FAULT_KILLS);
    assert_int_equal(b.s.n, POISON_MIN);
    script_embed(b.c, &other, 0); /* others are */
    assert_int_equal(b.s.n, POISON_MIN + 1);
    env_sim_run(b.s.sim, FAILOVER_QUARANTINE_MS);
    script_generate(b.c, &later, 0); /* and it is after a while */
    assert_int_equal(b.s.n, POISON_MIN + 2);
    bench_close(&b);
}

static void a_refused_call_may_be_cancelled(void **state)
{
    bench b;
    heard h = {0}, again = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    die_in_a_row(&b, POISON_MIN);
    calls_cancel(script_generate(b.c, &again, 0));
    env_sim_run(b.s.sim, 1);
    assert_int_equal(again.n_ends, 0);
    bench_close(&b);
}

static void who_grows_between_deaths_kills_nobody(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    for (int i = 0; i < 10; i++) {
        die_in_a_row(&b, POISON_MIN - 1);
        say(script_last(&b.s), 5 + i, "x");
    }
    assert_int_equal(h.n_ends, 0);
    assert_string_equal(h.text, "xxxxxxxxxx");
    bench_close(&b);
}

/* Five calls are on each worker that dies, one of them kills it: it is found out, and the others live. */
/* Workers that die without a call tell that it is the machine: what else would be given up is not. */
static void deaths_of_idle_workers_speak_for_a_request(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    for (uint64_t life = 0; life < 60; life++) {
        failover_calls_note_death(b.c, 5000 + life);
        env_sim_run(b.s.sim, 200);
    }
    script_generate(b.c, &h, 0);
    say_started(script_last(&b.s));
    for (uint64_t death = 0; death < POISON_MIN + 2; death++) {
        env_sim_run(b.s.sim, 500);
        script_lives(&b.s, (uint64_t[]){10 + death, 0});
        script_end(script_last(&b.s), CALL_FAULT_LOST);
        env_sim_run(b.s.sim, 50);
    }
    assert_int_equal(h.n_ends, 0);
    say(script_last(&b.s), 1, "ok");
    script_end(script_last(&b.s), CALL_FAULT_NONE);
    bench_close(&b);
}

static void suspects_are_tried_one_at_a_time(void **state)
{
    enum { N = 5, KILLER = 2 };
    bench b;
    heard h[N] = {0};
    scripted *running[N];
    bench_open(&b);
    for (int i = 0; i < N; i++) {
        script_generate(b.c, &h[i], 0);
        say_started(running[i] = script_last(&b.s));
    }
    for (int death = 0; death < 2; death++) {
        script_lives(&b.s, (uint64_t[]){10 + (uint64_t)death, 0});
        for (int i = 0; i < N; i++) {
            script_end(running[i], CALL_FAULT_LOST);
            if (death == 0) running[i] = script_last(&b.s);
        }
    }
    int order[] = {0, 1, 2, 3, 4, KILLER, KILLER}, n_alive = 0; /* POISON_MIN deaths in all */
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        scripted *c = script_last(&b.s);
        assert_int_equal(b.s.n, 2 * N + i + 1);
        assert_int_equal(b.s.n_open, n_alive + 1); /* one suspect, and those who live */
        script_lives(&b.s, (uint64_t[]){20 + i, 0});
        if (order[i] == KILLER)
            script_end(c, CALL_FAULT_LOST);
        else
            say(c, 1, "ok"), n_alive++;
        env_sim_run(b.s.sim, 1);
    }
    for (int i = 0; i < N; i++) assert_int_equal(h[i].n_ends, i == KILLER);
    assert_int_equal(h[KILLER].fault, CALL_FAULT_KILLS);
    bench_close(&b);
}

/* ---- cancel, pause, memory ----------------------------------------------------------------------- */

static void a_call_may_be_cancelled_at_any_moment(void **state)
{
    for (int moment = 0; moment < 6; moment++) {
        bench b;
        heard h = {0}, first = {0};
        bench_open(&b);
        if (moment == 4) { /* another suspect runs */
            script_generate(b.c, &first, 0);
            die_in_a_row(&b, 2);
        }
        script_generate(b.c, &h, 0);
        if (moment > 0) say_started(script_last(&b.s));
        if (moment > 1) script_end(script_last(&b.s), CALL_FAULT_LOST);
        if (moment == 3) script_end(script_last(&b.s), CALL_FAULT_FULL); /* it rests */
        if (moment >= 4) script_end(script_last(&b.s), CALL_FAULT_LOST); /* waits to be tried, or is */
        calls_cancel(h.call);
        env_sim_run(b.s.sim, 1000);
        assert_int_equal(h.n_ends, 0);
        assert_int_equal(b.s.n_open, moment == 4);
        bench_close(&b);
    }
}

static void it_may_be_cancelled_from_its_own_event(void **state)
{
    bench b;
    heard h = {.cancels = true};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    assert_true(b.s.calls[0]->cancelled);
    assert_int_equal(h.n_ends, 0);
    bench_close(&b);
}

static void it_stays_paused_when_it_moves(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    calls_pause(h.call, true);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_true(b.s.calls[1]->paused);
    bench_close(&b);
}

static void without_memory_a_move_ends_the_call(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b);
    script_generate(b.c, &h, 0);
    say_started(b.s.calls[0]);
    b.s.no_memory = true;
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(h.status, SHOAL_ENOMEM);
    assert_int_equal(h.n_ends, 1);
    assert_null(script_generate(b.c, &h, 0));
    bench_close(&b);
}

/* A worker that says no max_tokens does not know of resuming: it would begin again, and tokens come twice. */
static void an_old_worker_is_not_asked_to_go_on(void **state)
{
    bench b;
    heard h = {0};
    Shoal__V1__Started old = SHOAL__V1__STARTED__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    bench_open(&b);
    script_generate(b.c, &h, 0);
    ev.started = &old;
    b.s.calls[0]->ev.event(&b.s.calls[0]->ev, &ev.base);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(b.s.n, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

/* ---- transcriptions ------------------------------------------------------------------------------ */

typedef struct listener {
    int n_segments, n_progress, n_ends;
    call_fault fault;
    uint64_t done_ms;
} listener;

static void on_heard(void *user, const Shoal__V1__TranscribeEvent *ev)
{
    listener *l = user;
    l->n_segments += ev->segment != NULL;
    if (!ev->progress) return;
    assert_true(ev->progress->done_ms > l->done_ms);
    l->done_ms = ev->progress->done_ms;
    l->n_progress++;
}

static void on_heard_end(void *user, const call_result *r)
{
    listener *l = user;
    l->n_ends++;
    l->fault = r->fault;
}

static void say_heard(scripted *c, bool segment, uint64_t done_ms)
{
    Shoal__V1__TranscriptSegment s = SHOAL__V1__TRANSCRIPT_SEGMENT__INIT;
    Shoal__V1__TranscribeProgress p = SHOAL__V1__TRANSCRIBE_PROGRESS__INIT;
    Shoal__V1__TranscribeEvent ev = SHOAL__V1__TRANSCRIBE_EVENT__INIT;
    p.done_ms = done_ms;
    if (segment)
        ev.segment = &s;
    else
        ev.progress = &p;
    c->ev.event(&c->ev, &ev.base);
}

static void a_transcription_goes_on_too(void **state)
{
    bench b;
    listener l = {0};
    Shoal__V1__TranscribeRequest req = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    calls_transcribe_events ev = {.user = &l, .event = on_heard, .end = on_heard_end};
    bench_open(&b);
    req.language = "en";
    calls_transcribe(b.c, "m", &req, NULL, &ev);
    say_heard(b.s.calls[0], true, 0);
    say_heard(b.s.calls[0], true, 0);
    say_heard(b.s.calls[0], false, 500);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    Shoal__V1__TranscribeRequest *next = (void *)call_order_request(b.s.calls[1]->order);
    assert_int_equal(next->skip_segments, 2);
    assert_string_equal(next->language, "en");
    protobuf_c_message_free_unpacked(&next->base, NULL);
    say_heard(b.s.calls[1], false, 100);
    say_heard(b.s.calls[1], false, 500);
    say_heard(b.s.calls[1], false, 900);
    assert_int_equal(l.n_progress, 2);
    bench_close(&b);
}

static call_feed *hear_upload(bench *b, listener *l)
{
    Shoal__V1__TranscribeRequest req = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    calls_transcribe_events ev = {.user = l, .event = on_heard, .end = on_heard_end};
    call_feed *f = call_feed_new(&(call_feed_options){0});
    *l = (listener){0};
    calls_transcribe(b->c, "m", &req, &(call_context){.feed = f}, &ev);
    call_feed_put(f, &req.base);
    return f;
}

/* An upload is known by its end only: then, and before a worker has the end, it is refused. */
static void an_upload_that_kills_workers_is_refused_at_its_end(void **state)
{
    const sha256_digest deadly = {{1}}, harmless = {{2}};
    bench b;
    listener l;
    bench_open(&b);
    call_feed *f = hear_upload(&b, &l);
    call_feed_end(f, &deadly);
    for (int i = 0; i < POISON_MIN; i++) {
        script_lives(&b.s, (uint64_t[]){100 + b.s.n, 0});
        script_end(script_last(&b.s), CALL_FAULT_LOST);
    }
    assert_int_equal(l.fault, CALL_FAULT_KILLS);
    call_feed_leave(f);
    f = hear_upload(&b, &l);
    assert_int_equal(b.s.n, POISON_MIN + 1);
    call_feed_end(f, &deadly);
    assert_int_equal(l.n_ends, 0); /* nothing comes from inside call_feed_end */
    assert_true(script_last(&b.s)->cancelled);
    env_sim_run(b.s.sim, 1);
    assert_int_equal(l.n_ends, 1);
    assert_int_equal(l.fault, CALL_FAULT_KILLS);
    call_feed_leave(f);
    f = hear_upload(&b, &l);
    call_feed_end(f, &harmless);
    env_sim_run(b.s.sim, 1);
    assert_int_equal(l.n_ends, 0);
    call_feed_leave(f);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_goes_on_where_it_was),
        cmocka_unit_test(a_stream_with_an_adapter_goes_on_with_that_very_one),
        cmocka_unit_test(before_its_first_token_an_answer_restarts_unseen),
        cmocka_unit_test(an_answer_that_was_heard_ends_rather_than_going_on_with_other_bits),
        cmocka_unit_test(who_takes_back_what_it_heard_gets_the_answer_anew),
        cmocka_unit_test(what_cannot_be_resumed_exactly_restarts_or_ends_at_once),
        cmocka_unit_test(a_stream_that_goes_on_by_its_id_is_not_restarted),
        cmocka_unit_test(all_decorators_hear_of_a_restart),
        cmocka_unit_test(it_moves_as_often_as_it_must),
        cmocka_unit_test(a_unary_call_is_sent_again),
        cmocka_unit_test(where_only_the_link_was_cut_it_goes_back),
        cmocka_unit_test(an_error_of_the_request_is_its_answer),
        cmocka_unit_test(one_that_cannot_go_on_is_passed_by),
        cmocka_unit_test(nonsense_is_tried_elsewhere_and_not_for_ever),
        cmocka_unit_test(an_answer_that_was_whole_stays_so),
        cmocka_unit_test(where_all_queues_are_full_it_waits),
        cmocka_unit_test(its_deadline_ends_the_wait),
        cmocka_unit_test(a_request_that_kills_workers_is_refused),
        cmocka_unit_test(a_refused_call_may_be_cancelled),
        cmocka_unit_test(who_grows_between_deaths_kills_nobody),
        cmocka_unit_test(deaths_of_idle_workers_speak_for_a_request),
        cmocka_unit_test(suspects_are_tried_one_at_a_time),
        cmocka_unit_test(a_call_may_be_cancelled_at_any_moment),
        cmocka_unit_test(it_may_be_cancelled_from_its_own_event),
        cmocka_unit_test(it_stays_paused_when_it_moves),
        cmocka_unit_test(without_memory_a_move_ends_the_call),
        cmocka_unit_test(an_old_worker_is_not_asked_to_go_on),
        cmocka_unit_test(a_transcription_goes_on_too),
        cmocka_unit_test(an_upload_that_kills_workers_is_refused_at_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
