/* vote_calls over scripted calls, in simulated time. */
#include "../calls/script.h"

#include "ensemble/vote_calls.h"

enum { N_VOCAB = 3 };

typedef struct bench {
    script s;
    calls *c;
    int n_left;
} bench;

static void on_left(void *user, const char *name, const char *model)
{
    assert_string_equal(name, "m");
    ((bench *)user)->n_left++;
}

static void bench_open(bench *b, bool geometric)
{
    static const vote_member MEMBERS[] = {{"a", 1}, {"b", 3}};
    static vote_rule rule = {"m", MEMBERS, 2, false};
    vote_options o = {.rules = &rule, .n_rules = 1, .user = b, .left = on_left};
    rule.geometric = geometric;
    *b = (bench){0};
    script_init(&b->s);
    assert_int_equal(vote_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

/* ---- a member, as far as its worker shows itself ------------------------------------------------- */

typedef struct singer {
    scripted *c;
    feed_reader feed;
    Shoal__V1__GenerateRequest *request;
} singer;

static void nothing(void *user) {}

static Shoal__V1__GenerateRequest *unpack(const uint8_t *msg, size_t n)
{
    Shoal__V1__GenerateRequest *r = shoal__v1__generate_request__unpack(NULL, n, msg);
    assert_non_null(r);
    return r;
}

static void singer_open(singer *s, scripted *c, const char *model)
{
    *s = (singer){.c = c};
    assert_int_equal(c->order->task, CALL_VOTE);
    assert_string_equal(c->order->model, model);
    s->request = unpack(c->order->msg, c->order->n_msg);
    assert_non_null(s->request->vote);
    assert_true(feed_join(&s->feed, c->order->feed, nothing, NULL));
    say_started(c);
}

static void singer_close(singer *s)
{
    feed_leave(&s->feed);
    shoal__v1__generate_request__free_unpacked(s->request, NULL);
}

static void vote(const singer *s, uint32_t position, float x, float y, float z)
{
    float p[N_VOCAB] = {x, y, z};
    Shoal__V1__Ballot b = SHOAL__V1__BALLOT__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    b.position = position;
    b.values = (ProtobufCBinaryData){sizeof p, (uint8_t *)p};
    ev.ballot = &b;
    s->c->ev.event(&s->c->ev, &ev.base);
}

/* What came of it is there, and these are its numbers. */
static void hears(singer *s, uint32_t position, float x, float y, float z)
{
    size_t n;
    float p[N_VOCAB];
    const uint8_t *msg = feed_peek(&s->feed, &n);
    assert_non_null(msg);
    Shoal__V1__GenerateRequest *r = unpack(msg, n);
    assert_non_null(r->ballot);
    assert_int_equal(r->ballot->position, position);
    assert_int_equal(r->ballot->values.len, sizeof p);
    memcpy(p, r->ballot->values.data, sizeof p);
    assert_true(p[0] == x && p[1] == y && p[2] == z);
    shoal__v1__generate_request__free_unpacked(r, NULL);
    feed_took(&s->feed);
}

static bool hears_nothing(const singer *s)
{
    size_t n;
    return !feed_peek(&s->feed, &n);
}

static void open_two(bench *b, heard *h, singer *a, singer *o, uint64_t deadline_ns)
{
    bench_open(b, false);
    script_generate(b->c, h, deadline_ns);
    assert_int_equal(b->s.n, 2);
    singer_open(a, b->s.calls[0], "a");
    singer_open(o, b->s.calls[1], "b");
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void all_hear_the_weighted_mean(void **state)
{
    bench b;
    heard h = {0};
    singer a, o;
    open_two(&b, &h, &a, &o, 0);
    assert_false(a.request->vote->geometric);
    vote(&a, 0, 1, 0, 0);
    assert_true(hears_nothing(&a));
    vote(&o, 0, 0, 0.5F, 0.5F);
    hears(&a, 0, 0.25F, 0.375F, 0.375F);
    hears(&o, 0, 0.25F, 0.375F, 0.375F);
    say(a.c, 1, "one");
    say(o.c, 1, "one");
    assert_string_equal(h.text, "one"); /* the leader's alone */
    assert_int_equal(h.n_started, 1);
    vote(&o, 1, 1, 0, 0);
    vote(&a, 1, 1, 0, 0);
    hears(&o, 1, 1, 0, 0);
    assert_string_equal(calls_where(h.call).trace, "arithmetic mean of a 1, b 3");
    say_done(a.c, 0);
    singer_close(&a);
    singer_close(&o);
    script_end(a.c, CALL_FAULT_NONE);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, 0);
    assert_string_equal(h.wanted, "");
    assert_true(b.s.calls[1]->cancelled);
    bench_close(&b);
}

static void who_dies_leaves_the_vote(void **state)
{
    bench b;
    heard h = {0};
    singer a, o;
    open_two(&b, &h, &a, &o, 0);
    vote(&a, 0, 1, 0, 0);
    singer_close(&o);
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    hears(&a, 0, 1, 0, 0); /* its weight counts for all now */
    assert_int_equal(b.n_left, 1);
    say(a.c, 1, "one");
    say_done(a.c, 0);
    singer_close(&a);
    script_end(a.c, CALL_FAULT_NONE);
    assert_string_equal(h.text, "one");
    assert_string_equal(h.wanted, "m");
    bench_close(&b);
}

static void behind_a_dead_leader_the_others_go_on(void **state)
{
    bench b;
    heard h = {0};
    singer a, o, again;
    open_two(&b, &h, &a, &o, 0);
    for (uint32_t i = 0; i < 2; i++) {
        vote(&a, i, 1, 0, 0);
        vote(&o, i, 1, 0, 0);
        say(a.c, 1, i ? "two" : "one ");
    }
    singer_close(&a);
    singer_close(&o);
    script_end(a.c, CALL_FAULT_LOST);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, 1);
    assert_true(b.s.calls[1]->cancelled); /* and begun anew where the reply is */
    scripted *anew = NULL;
    for (size_t i = 2; i < b.s.n; i++)
        if (strcmp(b.s.calls[i]->order->model, "b") == 0) anew = b.s.calls[i];
    assert_non_null(anew);
    singer_open(&again, anew, "b");
    assert_int_equal(again.request->n_resume_ids, 2);
    assert_int_equal(again.request->resume_bytes, 7);
    assert_int_equal(again.request->n_prompt_ids, 3);
    assert_int_equal(h.n_started, 1); /* once */
    say(again.c, 1, " three");
    say_done(again.c, 0);
    singer_close(&again);
    script_end(again.c, CALL_FAULT_NONE);
    assert_string_equal(h.text, "one two three");
    assert_string_equal(h.wanted, "m");
    bench_close(&b);
}

static void who_is_silent_leaves_the_vote(void **state)
{
    bench b;
    heard h = {0};
    singer a, o;
    open_two(&b, &h, &a, &o, 0);
    for (uint32_t i = 0; i < 2; i++) {
        vote(&a, i, 1, 0, 0);
        vote(&o, i, 1, 0, 0);
        hears(&a, i, 1, 0, 0);
    }
    vote(&a, 2, 0, 1, 0);
    env_sim_run(b.s.sim, 3 * VOTE_SILENCE_MS);
    assert_true(b.s.calls[1]->cancelled);
    hears(&a, 2, 0, 1, 0);
    singer_close(&a);
    singer_close(&o);
    calls_cancel(h.call);
    bench_close(&b);
}

/* While prompts are read, silence is longer; not of those who have not even begun. */
static void who_never_begins_is_not_waited_for_long(void **state)
{
    bench b;
    heard h = {0};
    singer a;
    bench_open(&b, false);
    script_generate(b.c, &h, 0);
    singer_open(&a, b.s.calls[0], "a");
    env_sim_run(b.s.sim, 2 * VOTE_FIRST_MS); /* nobody has voted: nobody is silent */
    assert_false(b.s.calls[1]->cancelled);
    vote(&a, 0, 1, 0, 0);
    env_sim_run(b.s.sim, VOTE_SILENCE_MS);
    assert_true(b.s.calls[1]->cancelled);
    hears(&a, 0, 1, 0, 0);
    singer_close(&a);
    calls_cancel(h.call);
    bench_close(&b);
}

static void a_reader_who_rests_makes_nobody_silent(void **state)
{
    bench b;
    heard h = {0};
    singer a, o;
    open_two(&b, &h, &a, &o, 0);
    calls_pause(h.call, true);
    assert_true(b.s.calls[0]->paused);
    vote(&o, 0, 1, 0, 0);
    env_sim_run(b.s.sim, 60000);
    assert_false(b.s.calls[0]->cancelled);
    calls_pause(h.call, false);
    vote(&a, 0, 1, 0, 0);
    hears(&o, 0, 1, 0, 0);
    singer_close(&a);
    singer_close(&o);
    calls_cancel(h.call);
    bench_close(&b);
}

static void when_all_are_gone_they_are_waited_for(void **state)
{
    bench b;
    heard h = {0};
    singer a, o;
    open_two(&b, &h, &a, &o, 0);
    vote(&a, 0, 1, 0, 0);
    vote(&o, 0, 1, 0, 0);
    say(a.c, 1, "one");
    singer_close(&a);
    singer_close(&o);
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(h.n_ends, 0);
    env_sim_run(b.s.sim, VOTE_RETRY_MS);
    assert_int_equal(b.s.n, 4);
    assert_true(b.s.calls[2]->terms.hold_until_ns > 0);
    script_end(b.s.calls[3], CALL_FAULT_ABSENT);
    script_end(b.s.calls[2], CALL_FAULT_ABSENT);
    env_sim_run(b.s.sim, VOTE_RETRY_MS);
    assert_int_equal(b.s.n, 6);
    env_sim_run(b.s.sim, VOTE_WAIT_MS);
    script_end(b.s.calls[5], CALL_FAULT_ABSENT); /* not for ever */
    script_end(b.s.calls[4], CALL_FAULT_ABSENT);
    assert_int_equal(h.n_ends, 1);
    assert_int_equal(h.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

static void nonsense_is_not_counted(void **state)
{
    bench b;
    heard h = {0};
    singer a, o;
    open_two(&b, &h, &a, &o, 0);
    vote(&a, 0, 1, 0, 0);
    vote(&o, 5, 1, 0, 0); /* of another token */
    assert_true(b.s.calls[1]->cancelled);
    hears(&a, 0, 1, 0, 0);
    singer_close(&a);
    singer_close(&o);
    calls_cancel(h.call);
    bench_close(&b);
}

static void a_wrong_request_ends_at_once(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b, true);
    script_generate(b.c, &h, 0);
    script_end_as(b.s.calls[0], SHOAL_EINVALID, CALL_FAULT_NONE);
    assert_int_equal(h.status, SHOAL_EINVALID);
    assert_int_equal(h.n_ends, 1);
    bench_close(&b);
}

static const Shoal__V1__ModelInfo *other_tokens(const char *model)
{
    static Shoal__V1__ModelInfo a = SHOAL__V1__MODEL_INFO__INIT, b = SHOAL__V1__MODEL_INFO__INIT;
    a.vocabulary = "0a";
    b.vocabulary = "0b";
    return strcmp(model, "a") == 0 ? &a : &b;
}

static void other_vocabularies_do_not_vote(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b, false);
    b.s.info = other_tokens;
    assert_non_null(script_generate(b.c, &h, 0));
    assert_int_equal(h.n_ends, 0); /* not from inside that */
    env_sim_run(b.s.sim, 1);
    assert_int_equal(h.status, SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(h.message, "a and b have different vocabularies"));
    assert_int_equal(b.s.n, 0);
    assert_non_null(script_generate(b.c, &h, 0)); /* and one may leave before that is said */
    calls_cancel(h.call);
    bench_close(&b);
}

static void other_tasks_are_the_first_members(void **state)
{
    bench b;
    heard h = {0};
    bench_open(&b, false);
    script_embed(b.c, &h, 0);
    assert_int_equal(b.s.n, 1);
    assert_string_equal(b.s.calls[0]->order->model, "a");
    script_end(b.s.calls[0], CALL_FAULT_NONE);
    assert_int_equal(h.status, 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hear_the_weighted_mean),
        cmocka_unit_test(who_dies_leaves_the_vote),
        cmocka_unit_test(behind_a_dead_leader_the_others_go_on),
        cmocka_unit_test(who_is_silent_leaves_the_vote),
        cmocka_unit_test(who_never_begins_is_not_waited_for_long),
        cmocka_unit_test(a_reader_who_rests_makes_nobody_silent),
        cmocka_unit_test(when_all_are_gone_they_are_waited_for),
        cmocka_unit_test(nonsense_is_not_counted),
        cmocka_unit_test(a_wrong_request_ends_at_once),
        cmocka_unit_test(other_vocabularies_do_not_vote),
        cmocka_unit_test(other_tasks_are_the_first_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
