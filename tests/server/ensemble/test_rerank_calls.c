/* rerank_calls over scripted calls, in simulated time: who is asked, who is the best, and what happens when
 * members or the one who weighs fail or are late. */
#include "../calls/script.h"

#include <math.h>

#include "json/sampling.h"
#include "ensemble/rerank_calls.h"

enum { CALLS_MAX = 8 };

typedef struct bench {
    script s;
    calls *c;
    heard h[CALLS_MAX]; /* of the n choices of one request */
    call_result ends[CALLS_MAX];
    char trace[1024], why[320], chose[64];
    uint32_t n_generated[CALLS_MAX];
} bench;

static bench *B; /* of the test that runs */

static const rerank_member TWO[] = {{"small", 1, -1}, {"large", 1, -1}}, ONE[] = {{"small", 3, -1}},
                           WARM[] = {{"small", 2, 0.7}, {"large", 1, 0}};
static const rerank_rule RULES[] = {
    {.name = "m", .members = TWO, .n_members = 2, .by = RERANK_LONGEST},
    {.name = "m", .members = TWO, .n_members = 2, .log_prob = "judge"},
    {.name = "m", .members = TWO, .n_members = 2, .model = "ranker"},
    {.name = "m", .members = ONE, .n_members = 1, .by = RERANK_MAJORITY},
    {.name = "m", .members = WARM, .n_members = 2, .by = RERANK_MAJORITY},
    {.name = "m", .members = TWO, .n_members = 2, .by = RERANK_WORDS},
    {.name = "m", .members = TWO, .n_members = 2, .by = RERANK_WORDS, .in_turn = true},
};
enum { BY_LENGTH, BY_JUDGE, BY_RANKER, BY_MOST, BY_MOST_WARM, BY_WORDS, BY_WORDS_IN_TURN };

static void on_chose(void *user, const char *name, const char *model)
{
    snprintf(((bench *)user)->chose, sizeof((bench *)user)->chose, "%s", model);
}

static void on_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    heard *h = user;
    if (ev->done) B->n_generated[h - B->h] = ev->done->n_generated;
    hear_event(user, ev);
}

static void on_end(void *user, const call_result *r)
{
    if (r->trace) snprintf(B->trace, sizeof B->trace, "%s", r->trace);
    snprintf(B->why, sizeof B->why, "%s", r->why ? r->why : "");
    hear_stream_end(user, r);
}

/* Choice k of n of one request. */
static void ask(bench *b, size_t k, size_t n, float temperature, uint64_t in_ms)
{
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
    calls_generate_events ev = {.user = &b->h[k], .event = on_event, .end = on_end};
    call_context ctx = {.request_id = "r1",
                        .deadline_ns = in_ms ? b->s.env->now_ns(b->s.env->user) + in_ms * 1000000u : 0};
    s.temperature = temperature;
    s.seed = sampling_seed(40, 0, (uint32_t)k);
    req.sampling = &s;
    req.messages_json = "[{\"role\":\"user\",\"content\":\"which lamp?\"}]";
    req.choice = (uint32_t)k;
    req.of_choices = (uint32_t)n;
    b->h[k].call = calls_generate(b->c, "m", &req, &ctx, &ev);
}

static void bench_open(bench *b, int rule)
{
    rerank_options o = {.rules = &RULES[rule], .n_rules = 1, .user = b, .chose = on_chose};
    *b = (bench){0};
    B = b;
    script_init(&b->s);
    assert_int_equal(rerank_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void run(bench *b)
{
    env_sim_run(b->s.sim, 1);
}

static void answer(scripted *c, const char *text)
{
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    say_started(c);
    say(c, 1, text);
    d.n_generated = (uint32_t)strlen(text);
    d.finish = "stop";
    ev.done = &d;
    c->ev.event(&c->ev, &ev.base);
    script_end(c, CALL_FAULT_NONE);
}

static uint64_t seed_of(const scripted *c, float *ret_temperature)
{
    Shoal__V1__GenerateRequest *r = (Shoal__V1__GenerateRequest *)call_order_request(c->order);
    uint64_t seed = r->sampling->seed;
    *ret_temperature = r->sampling->temperature;
    shoal__v1__generate_request__free_unpacked(r, NULL);
    return seed;
}

/* ---- the best ------------------------------------------------------------------------------------ */

static void the_best_by_a_rule_goes_out(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    assert_int_equal(b.s.n, 2);
    assert_string_equal(b.s.calls[0]->order->model, "small");
    assert_string_equal(b.s.calls[1]->order->model, "large");
    answer(b.s.calls[0], "the lamp");
    run(&b);
    assert_string_equal(b.h[0].text, ""); /* nobody hears anything before all are there */
    answer(b.s.calls[1], "the lamp is on");
    run(&b);
    assert_string_equal(b.h[0].text, "the lamp is on");
    assert_int_equal(b.h[0].n_started + b.h[0].n_done + b.h[0].n_ends, 3);
    assert_string_equal(b.h[0].model, "large");
    assert_string_equal(b.h[0].wanted, "");
    assert_string_equal(b.trace, "longest: small 8, large 14*");
    assert_string_equal(b.chose, "large");
    assert_int_equal(b.n_generated[0], 14 + 8); /* the other one was generated, too */
    bench_close(&b);
}

static void of_equals_the_first_member_is_the_best(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[1], "lamp b"); /* whoever is quicker */
    answer(b.s.calls[0], "lamp a");
    run(&b);
    assert_string_equal(b.h[0].text, "lamp a");
    assert_string_equal(b.chose, "small");
    bench_close(&b);
}

static void samples_have_seeds_of_their_own(void **state)
{
    float t[3];
    bench b;
    bench_open(&b, BY_MOST);
    ask(&b, 0, 1, 0.5F, 0);
    assert_int_equal(b.s.n, 3);
    uint64_t first = seed_of(b.s.calls[0], &t[0]), second = seed_of(b.s.calls[1], &t[1]),
             third = seed_of(b.s.calls[2], &t[2]);
    assert_int_equal(first, 40); /* what the model alone would say is among them */
    assert_true(first != second && second != third && first != third);
    assert_true(t[0] == 0.5F && t[1] == 0.5F && t[2] == 0.5F);
    answer(b.s.calls[0], "no");
    answer(b.s.calls[1], "Yes.");
    answer(b.s.calls[2], "yes");
    run(&b);
    assert_string_equal(b.h[0].text, "Yes.");
    assert_string_equal(b.trace, "majority: small 0.333333, small 0.666667*, small 0.666667");
    bench_close(&b);
    bench_open(&b, BY_MOST); /* the same request: the same seeds */
    ask(&b, 0, 1, 0.5F, 0);
    assert_true(seed_of(b.s.calls[2], &t[2]) == third);
    bench_close(&b);
}

static void where_nothing_is_drawn_one_is_enough(void **state)
{
    float t;
    bench b;
    bench_open(&b, BY_MOST);
    ask(&b, 0, 1, 0, 0);
    assert_int_equal(b.s.n, 1);
    answer(b.s.calls[0], "yes");
    run(&b);
    assert_string_equal(b.h[0].text, "yes");
    bench_close(&b);
    bench_open(&b, BY_MOST_WARM); /* unless the member says how it is drawn */
    ask(&b, 0, 1, 0, 0);
    assert_int_equal(b.s.n, 3);
    seed_of(b.s.calls[1], &t);
    assert_true(t == 0.7F);
    seed_of(b.s.calls[2], &t);
    assert_true(t == 0);
    bench_close(&b);
}

/* ---- as good as can be -------------------------------------------------------------------------- */

static void nobody_waits_when_none_can_be_better(void **state)
{
    bench b;
    bench_open(&b, BY_WORDS);
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[0], "which lamp: the red one");
    run(&b);
    assert_true(b.s.calls[1]->cancelled);
    assert_string_equal(b.h[0].text, "which lamp: the red one");
    assert_string_equal(b.h[0].wanted, "");
    assert_string_equal(b.trace, "words: small 1*, large spared");
    bench_close(&b);
    bench_open(&b, BY_WORDS); /* whoever comes later in the row could still lose against the first */
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[1], "which lamp: the red one");
    run(&b);
    assert_int_equal(b.h[0].n_events, 0);
    answer(b.s.calls[0], "the lamp");
    run(&b);
    assert_string_equal(b.trace, "words: small 0.5, large 1*");
    bench_close(&b);
    bench_open(&b, BY_WORDS); /* of several choices all are wanted */
    for (size_t k = 0; k < 2; k++) ask(&b, k, 2, 0, 0);
    answer(b.s.calls[0], "which lamp");
    run(&b);
    assert_int_equal(b.s.n_open, 1);
    bench_close(&b);
}

static void in_turn_the_next_is_asked_when_something_is_left_out(void **state)
{
    bench b;
    bench_open(&b, BY_WORDS_IN_TURN);
    ask(&b, 0, 1, 0, 0);
    assert_int_equal(b.s.n, 1);
    answer(b.s.calls[0], "which lamp: the red one");
    run(&b);
    assert_int_equal(b.s.n, 1);
    assert_string_equal(b.h[0].text, "which lamp: the red one");
    assert_string_equal(b.trace, "words: small 1*, large spared");
    bench_close(&b);
    bench_open(&b, BY_WORDS_IN_TURN);
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[0], "the lamp");
    assert_int_equal(b.s.n, 2);
    assert_string_equal(b.s.calls[1]->order->model, "large");
    answer(b.s.calls[1], "the red one");
    run(&b);
    assert_string_equal(b.h[0].text, "the lamp"); /* the better one all the same */
    assert_string_equal(b.trace, "words: small 0.5*, large 0");
    bench_close(&b);
    bench_open(&b, BY_WORDS_IN_TURN); /* who fails has the next one asked */
    ask(&b, 0, 1, 0, 0);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    answer(b.s.calls[1], "which lamp");
    run(&b);
    assert_string_equal(b.h[0].text, "which lamp");
    assert_string_equal(b.h[0].wanted, "m");
    bench_close(&b);
    bench_open(&b, BY_WORDS_IN_TURN); /* nobody is there: all are asked, then all are waited for */
    ask(&b, 0, 1, 0, 0);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    assert_int_equal(b.s.n, 3);
    assert_string_equal(b.s.calls[2]->order->model, "small");
    assert_int_equal(b.s.calls[2]->terms.hold_until_ns, 0);
    answer(b.s.calls[2], "which lamp");
    run(&b);
    assert_string_equal(b.h[0].text, "which lamp");
    bench_close(&b);
    bench_open(&b, BY_WORDS_IN_TURN); /* the deadline nears while the second one writes */
    ask(&b, 0, 1, 0, 500);
    answer(b.s.calls[0], "the lamp");
    env_sim_run(b.s.sim, 495);
    assert_true(b.s.calls[1]->cancelled);
    assert_string_equal(b.h[0].text, "the lamp");
    assert_string_equal(b.trace, "words: small 0.5*, large late");
    assert_string_equal(b.h[0].wanted, "m");
    bench_close(&b);
}

/* ---- whoever weighs ------------------------------------------------------------------------------ */

static void likely(scripted *c, const double *log_probs, const uint32_t *n_tokens, size_t n)
{
    Shoal__V1__Likelihood all[4], *list[4];
    Shoal__V1__LikelihoodReply reply = SHOAL__V1__LIKELIHOOD_REPLY__INIT;
    for (size_t i = 0; i < n; i++) {
        all[i] = (Shoal__V1__Likelihood)SHOAL__V1__LIKELIHOOD__INIT;
        all[i].log_prob = log_probs[i];
        all[i].n_tokens = n_tokens[i];
        list[i] = &all[i];
    }
    reply.results = list;
    reply.n_results = n;
    call_result r = call_result_of(c->order, 0, "");
    r.reply = &reply.base;
    script_close(c);
    c->ev.end(&c->ev, &r);
}

static void the_likeliest_per_token_is_the_best(void **state)
{
    bench b;
    bench_open(&b, BY_JUDGE);
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    assert_int_equal(b.s.n, 3);
    scripted *judge = b.s.calls[2];
    assert_string_equal(judge->order->model, "judge");
    assert_int_equal(judge->order->task, CALL_LIKELIHOOD);
    Shoal__V1__LikelihoodRequest *q = (Shoal__V1__LikelihoodRequest *)call_order_request(judge->order);
    assert_int_equal(q->n_replies, 2);
    assert_string_equal(q->replies[1]->text, "it is on");
    assert_non_null(strstr(q->prompt->messages_json, "which lamp?"));
    shoal__v1__likelihood_request__free_unpacked(q, NULL);
    likely(judge, (double[]){-3, -4}, (uint32_t[]){2, 4}, 2);
    run(&b);
    assert_string_equal(b.h[0].text, "it is on");
    assert_string_equal(b.trace, "log_prob by judge: small -1.5000, large -1.0000*");
    bench_close(&b);
}

static void a_cross_encoder_reads_question_and_candidate(void **state)
{
    bench b;
    bench_open(&b, BY_RANKER);
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    scripted *ranker = b.s.calls[2];
    Shoal__V1__ClassifyRequest *q = (Shoal__V1__ClassifyRequest *)call_order_request(ranker->order);
    assert_int_equal(q->n_inputs, 2);
    assert_true(q->inputs[0]->has_pair);
    assert_string_equal(q->inputs[0]->text, "which lamp?");
    assert_string_equal(q->inputs[1]->pair, "it is on");
    shoal__v1__classify_request__free_unpacked(q, NULL);
    Shoal__V1__LabelScore score[2] = {SHOAL__V1__LABEL_SCORE__INIT, SHOAL__V1__LABEL_SCORE__INIT};
    Shoal__V1__LabelScore *labels[2] = {&score[0], &score[1]};
    Shoal__V1__Classification one[2] = {SHOAL__V1__CLASSIFICATION__INIT, SHOAL__V1__CLASSIFICATION__INIT};
    Shoal__V1__Classification *results[2] = {&one[0], &one[1]};
    Shoal__V1__ClassifyReply reply = SHOAL__V1__CLASSIFY_REPLY__INIT;
    score[0].score = 0.75F;
    score[1].score = 0.25F;
    for (int i = 0; i < 2; i++) one[i].labels = &labels[i], one[i].n_labels = 1;
    reply.results = results;
    reply.n_results = 2;
    call_result r = call_result_of(ranker->order, 0, "");
    r.reply = &reply.base;
    script_close(ranker);
    ranker->ev.end(&ranker->ev, &r);
    run(&b);
    assert_string_equal(b.h[0].text, "on");
    assert_string_equal(b.trace, "relevance by ranker: small 0.7500*, large 0.2500");
    bench_close(&b);
}

static void where_all_agree_nobody_is_asked(void **state)
{
    bench b;
    bench_open(&b, BY_JUDGE);
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "on");
    run(&b);
    assert_int_equal(b.s.n, 2);
    assert_string_equal(b.h[0].text, "on");
    assert_string_equal(b.h[0].wanted, "");
    assert_string_equal(b.trace, "log_prob by judge: small*, large");
    bench_close(&b);
}

static void without_a_judge_the_first_one_goes_out_and_says_so(void **state)
{
    for (int way = 0; way < 4; way++) {
        bench b;
        bench_open(&b, BY_JUDGE);
        ask(&b, 0, 1, 0, 0);
        answer(b.s.calls[0], "on");
        answer(b.s.calls[1], "it is on");
        if (way == 0) script_end(b.s.calls[2], CALL_FAULT_LOST);
        if (way == 1) likely(b.s.calls[2], (double[]){-1}, (uint32_t[]){1}, 1); /* one number too few */
        if (way == 2) likely(b.s.calls[2], (double[]){-1, -1}, (uint32_t[]){1, 0}, 2);
        if (way == 3) likely(b.s.calls[2], (double[]){-1, NAN}, (uint32_t[]){1, 1}, 2);
        run(&b);
        assert_string_equal(b.h[0].text, "on");
        assert_int_equal(b.h[0].status, 0);
        assert_string_equal(b.h[0].wanted, "m");
        assert_non_null(strstr(b.why, "judge did not weigh the candidates"));
        bench_close(&b);
    }
}

/* ---- who fails ----------------------------------------------------------------------------------- */

static void who_fails_is_left_out(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    say_started(b.s.calls[1]);
    say(b.s.calls[1], 1, "it would have been the longest");
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    answer(b.s.calls[0], "on");
    run(&b);
    assert_string_equal(b.h[0].text, "on");
    assert_string_equal(b.h[0].wanted, "m");
    assert_string_equal(b.why, "large has no part in it: it failed");
    assert_string_equal(b.trace, "longest: small 2*, large failed");
    bench_close(&b);
    bench_open(&b, BY_JUDGE); /* of one that is left nothing has to be weighed */
    ask(&b, 0, 1, 0, 0);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    answer(b.s.calls[1], "on");
    run(&b);
    assert_int_equal(b.s.n, 2);
    assert_string_equal(b.h[0].model, "large");
    assert_string_equal(b.h[0].wanted, "m");
    bench_close(&b);
}

static void when_all_fail_it_is_the_firsts_failure(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    script_end(b.s.calls[1], CALL_FAULT_FULL);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    run(&b);
    assert_int_equal(b.h[0].n_ends, 1);
    assert_int_equal(b.h[0].status, SHOAL_EUNAVAILABLE);
    assert_int_equal(b.h[0].fault, CALL_FAULT_LOST);
    assert_string_equal(b.h[0].wanted, "");
    bench_close(&b);
}

static void who_is_not_there_holds_nobody_up(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    assert_int_equal(b.s.calls[0]->terms.hold_until_ns,
                     b.s.env->now_ns(b.s.env->user) + RERANK_HOLD_MS * 1000000ull);
    script_end(b.s.calls[0], CALL_FAULT_ABSENT);
    script_end(b.s.calls[1], CALL_FAULT_ABSENT);
    assert_int_equal(b.s.n, 4); /* unless nobody is there at all: then they are waited for */
    assert_int_equal(b.s.calls[2]->terms.hold_until_ns, 0);
    answer(b.s.calls[3], "back again");
    script_end(b.s.calls[2], CALL_FAULT_ABSENT);
    run(&b);
    assert_string_equal(b.h[0].text, "back again");
    bench_close(&b);
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    for (int i = 0; i < 4; i++) script_end(b.s.calls[i], CALL_FAULT_ABSENT);
    run(&b);
    assert_int_equal(b.s.n, 4);
    assert_int_equal(b.h[0].status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

/* ---- deadlines ----------------------------------------------------------------------------------- */

static void when_the_deadline_nears_the_best_so_far_goes_out(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 500);
    answer(b.s.calls[0], "on");
    env_sim_run(b.s.sim, 480);
    assert_int_equal(b.h[0].n_ends, 0);
    env_sim_run(b.s.sim, 15);
    assert_true(b.s.calls[1]->cancelled);
    assert_string_equal(b.h[0].text, "on");
    assert_string_equal(b.h[0].wanted, "m");
    assert_non_null(strstr(b.why, "large has no part in it: it was not ready"));
    assert_string_equal(b.trace, "longest: small 2*, large late");
    bench_close(&b);
}

static void the_judge_has_its_time_within_the_deadline(void **state)
{
    bench b;
    bench_open(&b, BY_JUDGE);
    b.s.estimate.expected_ms = 200; /* what the judge is expected to take */
    ask(&b, 0, 1, 0, 500);
    answer(b.s.calls[0], "on");
    env_sim_run(b.s.sim, 300);
    assert_true(b.s.calls[1]->cancelled);
    assert_int_equal(b.s.n, 2); /* of one there is nothing to weigh */
    run(&b);
    assert_string_equal(b.h[0].text, "on");
    bench_close(&b);
    bench_open(&b, BY_JUDGE);
    ask(&b, 0, 1, 0, 500);
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    env_sim_run(b.s.sim, 489);
    assert_int_equal(b.h[0].n_ends, 0);
    env_sim_run(b.s.sim, 5);
    assert_true(b.s.calls[2]->cancelled);
    assert_string_equal(b.h[0].text, "on");
    assert_string_equal(b.why,
                        "judge did not weigh the candidates: it had not answered as the deadline came near");
    bench_close(&b);
}

static void who_is_first_after_all_goes_out(void **state)
{
    bench b;
    bench_open(&b, BY_JUDGE);
    b.s.estimate.expected_ms = 400;
    ask(&b, 0, 1, 0, 500);
    env_sim_run(b.s.sim, 200); /* nobody has answered when the judge should have begun */
    assert_int_equal(b.s.n_open, 2);
    answer(b.s.calls[1], "on");
    run(&b);
    assert_true(b.s.calls[0]->cancelled);
    assert_string_equal(b.h[0].text, "on");
    assert_string_equal(b.h[0].wanted, "m");
    bench_close(&b);
}

/* ---- several choices ----------------------------------------------------------------------------- */

static void the_choices_are_the_best_ones(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    for (size_t k = 0; k < 2; k++) ask(&b, k, 2, 0, 0);
    assert_int_equal(b.s.n, 2); /* one run for both */
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    run(&b);
    assert_string_equal(b.h[0].text, "it is on");
    assert_string_equal(b.h[1].text, "on");
    assert_int_equal(b.n_generated[0], 8);
    assert_int_equal(b.n_generated[1], 2);
    assert_int_equal(b.h[0].n_ends + b.h[1].n_ends, 2);
    bench_close(&b);
}

static void more_choices_are_drawn_where_that_helps(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    for (size_t k = 0; k < 5; k++) ask(&b, k, 5, 1, 0);
    assert_int_equal(b.s.n, 5);
    for (int i = 0; i < 5; i++) answer(b.s.calls[i], &"abcde"[i]);
    run(&b);
    for (int k = 0; k < 5; k++) assert_string_equal(b.h[k].text, &"abcde"[k]);
    bench_close(&b);
    bench_open(&b, BY_LENGTH); /* greedy: no two answers of a model differ */
    for (size_t k = 0; k < 3; k++) ask(&b, k, 3, 0, 0);
    assert_int_equal(b.s.n, 2);
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    run(&b);
    assert_string_equal(b.h[2].text, "it is on");
    bench_close(&b);
}

static void requests_that_only_look_alike_have_runs_of_their_own(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 2, 0, 0);
    heard first = b.h[0];
    ask(&b, 0, 2, 0, 0); /* the same choice again, with the same id */
    assert_int_equal(b.s.n, 4);
    calls_cancel(first.call);
    assert_int_equal(b.s.n_open, 2);
    ask(&b, 1, 2, 0, 0);
    assert_int_equal(b.s.n, 4); /* the one that is left had its second choice free */
    bench_close(&b);
}

static void who_leaves_takes_nothing_from_the_others(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    for (size_t k = 0; k < 2; k++) ask(&b, k, 2, 0, 0);
    calls_cancel(b.h[0].call);
    assert_int_equal(b.s.n_open, 2);
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    run(&b);
    assert_string_equal(b.h[1].text, "on");
    bench_close(&b);
    bench_open(&b, BY_LENGTH);
    for (size_t k = 0; k < 2; k++) ask(&b, k, 2, 0, 0);
    for (size_t k = 0; k < 2; k++) calls_cancel(b.h[k].call);
    assert_int_equal(b.s.n_open, 0);
    bench_close(&b);
}

/* ---- whoever asked ------------------------------------------------------------------------------- */

static void who_rests_hears_it_later_and_who_leaves_nothing(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    calls_pause(b.h[0].call, true);
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    run(&b);
    assert_int_equal(b.h[0].n_events + b.h[0].n_ends, 0);
    calls_pause(b.h[0].call, false);
    run(&b);
    assert_string_equal(b.h[0].text, "it is on");
    assert_int_equal(b.h[0].n_ends, 1);
    bench_close(&b);
    bench_open(&b, BY_LENGTH);
    ask(&b, 0, 1, 0, 0);
    b.h[0].cancels = true; /* from its first event */
    answer(b.s.calls[0], "on");
    answer(b.s.calls[1], "it is on");
    run(&b);
    assert_int_equal(b.h[0].n_events, 1);
    assert_int_equal(b.h[0].n_ends, 0);
    bench_close(&b);
}

static void other_names_and_tasks_are_others_business(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    script_embed(b.c, &b.h[0], 0);
    assert_string_equal(b.s.calls[0]->order->model, "small");
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_int_equal(b.h[0].n_ends, 1);
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    calls_generate_events ev = {.user = &b.h[1], .event = hear_event, .end = hear_stream_end};
    req.text = "a";
    calls_generate(b.c, "large", &req, NULL, &ev);
    assert_int_equal(b.s.n, 2);
    assert_string_equal(b.s.calls[1]->order->model, "large");
    script_end(b.s.calls[1], CALL_FAULT_NONE);
    assert_int_equal(b.h[1].n_ends, 1);
    bench_close(&b);
}

static void without_memory_nothing_is_begun(void **state)
{
    bench b;
    bench_open(&b, BY_LENGTH);
    b.s.no_memory = true;
    ask(&b, 0, 1, 0, 0);
    assert_null(b.h[0].call);
    bench_close(&b);
    bench_open(&b, BY_JUDGE);
    ask(&b, 0, 1, 0, 0);
    answer(b.s.calls[0], "on");
    b.s.no_memory = true;
    answer(b.s.calls[1], "it is on");
    run(&b);
    assert_string_equal(b.h[0].text, "on"); /* unweighed */
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_by_a_rule_goes_out),
        cmocka_unit_test(of_equals_the_first_member_is_the_best),
        cmocka_unit_test(samples_have_seeds_of_their_own),
        cmocka_unit_test(where_nothing_is_drawn_one_is_enough),
        cmocka_unit_test(nobody_waits_when_none_can_be_better),
        cmocka_unit_test(in_turn_the_next_is_asked_when_something_is_left_out),
        cmocka_unit_test(the_likeliest_per_token_is_the_best),
        cmocka_unit_test(a_cross_encoder_reads_question_and_candidate),
        cmocka_unit_test(where_all_agree_nobody_is_asked),
        cmocka_unit_test(without_a_judge_the_first_one_goes_out_and_says_so),
        cmocka_unit_test(who_fails_is_left_out),
        cmocka_unit_test(when_all_fail_it_is_the_firsts_failure),
        cmocka_unit_test(who_is_not_there_holds_nobody_up),
        cmocka_unit_test(when_the_deadline_nears_the_best_so_far_goes_out),
        cmocka_unit_test(the_judge_has_its_time_within_the_deadline),
        cmocka_unit_test(who_is_first_after_all_goes_out),
        cmocka_unit_test(the_choices_are_the_best_ones),
        cmocka_unit_test(more_choices_are_drawn_where_that_helps),
        cmocka_unit_test(requests_that_only_look_alike_have_runs_of_their_own),
        cmocka_unit_test(who_leaves_takes_nothing_from_the_others),
        cmocka_unit_test(who_rests_hears_it_later_and_who_leaves_nothing),
        cmocka_unit_test(other_names_and_tasks_are_others_business),
        cmocka_unit_test(without_memory_nothing_is_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
