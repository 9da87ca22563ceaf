/* Many replies into one: means of labels, majorities of spans; and the calls that ask for them. */
#include "../calls/script.h"

#include <math.h>

#include "ensemble/majority.h"
#include "ensemble/majority_calls.h"

enum { N_MAX = 8 };

/* ---- replies ------------------------------------------------------------------------------------- */

typedef struct room { /* of one reply with one result */
    Shoal__V1__ClassifyReply classes;
    Shoal__V1__Classification result, *results[1];
    Shoal__V1__LabelScore scores[N_MAX], *labels[N_MAX];
    Shoal__V1__TagReply tags;
    Shoal__V1__Tagging tagging, *taggings[1];
    Shoal__V1__Span spans[N_MAX], *list[N_MAX];
} room;

static void open_room(room *r)
{
    *r = (room){.classes = SHOAL__V1__CLASSIFY_REPLY__INIT,
                .result = SHOAL__V1__CLASSIFICATION__INIT,
                .tags = SHOAL__V1__TAG_REPLY__INIT,
                .tagging = SHOAL__V1__TAGGING__INIT};
    r->results[0] = &r->result;
    r->classes.results = r->results;
    r->classes.n_results = 1;
    r->result.labels = r->labels;
    r->taggings[0] = &r->tagging;
    r->tags.results = r->taggings;
    r->tags.n_results = 1;
    r->tagging.spans = r->list;
}

static void label(room *r, const char *name, float score)
{
    size_t i = r->result.n_labels++;
    r->scores[i] = (Shoal__V1__LabelScore)SHOAL__V1__LABEL_SCORE__INIT;
    r->scores[i].label = (char *)(uintptr_t)name;
    r->scores[i].score = score;
    r->labels[i] = &r->scores[i];
}

static void span(room *r, uint32_t start, uint32_t end, const char *name, float score)
{
    size_t i = r->tagging.n_spans++;
    r->spans[i] = (Shoal__V1__Span)SHOAL__V1__SPAN__INIT;
    r->spans[i].start = r->spans[i].start_byte = start;
    r->spans[i].end = r->spans[i].end_byte = end;
    r->spans[i].label = (char *)(uintptr_t)name;
    r->spans[i].score = score;
    r->list[i] = &r->spans[i];
}

static void labels_are_averaged_by_weight(void **state)
{
    room a, b;
    open_room(&a);
    open_room(&b);
    label(&a, "on", 0.75F);
    label(&a, "off", 0.25F);
    label(&b, "off", 0.5F);
    label(&b, "dim", 0.5F); /* of which the other knows nothing */
    majority_reply both[] = {{&a.classes.base, 1}, {&b.classes.base, 3}};
    Shoal__V1__ClassifyReply *m = (Shoal__V1__ClassifyReply *)majority_merge(CALL_CLASSIFY, both, 2);
    const Shoal__V1__Classification *c = m->results[0];
    assert_int_equal(c->n_labels, 3);
    assert_string_equal(c->labels[0]->label, "off");
    assert_true(c->labels[0]->score == 0.4375F);
    assert_string_equal(c->labels[1]->label, "dim");
    assert_true(c->labels[1]->score == 0.375F);
    assert_string_equal(c->labels[2]->label, "on");
    assert_true(c->labels[2]->score == 0.1875F);
    protobuf_c_message_free_unpacked(&m->base, NULL);
}

static void spans_need_a_majority(void **state)
{
    room r[3];
    for (int i = 0; i < 3; i++) open_room(&r[i]);
    span(&r[0], 0, 4, "room", 0.5F);
    span(&r[0], 10, 14, "time", 0.9F);
    span(&r[1], 0, 4, "room", 1);
    span(&r[1], 2, 6, "room", 1);
    span(&r[2], 2, 6, "room", 1);
    majority_reply all[] = {{&r[0].tags.base, 1}, {&r[1].tags.base, 1}, {&r[2].tags.base, 1}};
    Shoal__V1__TagReply *m = (Shoal__V1__TagReply *)majority_merge(CALL_TAG, all, 3);
    assert_int_equal(m->results[0]->n_spans,
                     1); /* of the two that overlap the surer; the time is one's alone */
    assert_int_equal(m->results[0]->spans[0]->start, 2);
    assert_true(fabsf(m->results[0]->spans[0]->score - 1) < 1e-6F);
    protobuf_c_message_free_unpacked(&m->base, NULL);
    all[1].weight = 5; /* one alone may be the majority */
    m = (Shoal__V1__TagReply *)majority_merge(CALL_TAG, all, 3);
    assert_int_equal(m->results[0]->n_spans, 1);
    protobuf_c_message_free_unpacked(&m->base, NULL);
    r[2].tags.n_results = 0;
    assert_null(majority_merge(CALL_TAG, all, 3));
}

/* ---- calls --------------------------------------------------------------------------------------- */

typedef struct bench {
    script s;
    calls *c;
    int n_left, n_ends, status;
    char best[32], wanted[32], trace[128];
} bench;

static void on_left(void *user, const char *name, const char *model)
{
    ((bench *)user)->n_left++;
}

static void on_classified(void *user, const call_result *r, const Shoal__V1__ClassifyReply *reply)
{
    bench *b = user;
    b->n_ends++;
    b->status = r->status;
    snprintf(b->wanted, sizeof b->wanted, "%s", r->wanted ? r->wanted : "");
    snprintf(b->trace, sizeof b->trace, "%s", r->trace ? r->trace : "");
    if (reply) snprintf(b->best, sizeof b->best, "%s", reply->results[0]->labels[0]->label);
}

static model_call *bench_open(bench *b, uint64_t in_ms)
{
    static const vote_member MEMBERS[] = {{"a", 1}, {"b", 2}};
    static const vote_rule RULES[] = {{"m", MEMBERS, 2, false}};
    vote_options o = {.rules = RULES, .n_rules = 1, .user = b, .left = on_left};
    Shoal__V1__ClassifyRequest req = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    req.top_k = 1;
    *b = (bench){0};
    script_init(&b->s);
    assert_int_equal(majority_calls_new(&b->c, b->s.env, &b->s.base, &o, NULL), 0);
    call_context ctx = {.deadline_ns = in_ms ? b->s.env->now_ns(b->s.env->user) + in_ms * 1000000u : 0};
    model_call *call = calls_classify(b->c, "m", &req, &ctx, on_classified, b);
    assert_int_equal(b->s.n, 2);
    for (size_t i = 0; i < b->s.n; i++) { /* the best of all members need not be the best of one */
        Shoal__V1__ClassifyRequest *asked =
            (Shoal__V1__ClassifyRequest *)call_order_request(b->s.calls[i]->order);
        assert_int_equal(asked->top_k, UINT32_MAX);
        shoal__v1__classify_request__free_unpacked(asked, NULL);
    }
    return call;
}

static void bench_close(bench *b)
{
    calls_free(b->c);
    script_done(&b->s);
}

static void reply_with(scripted *c, const char *name, float score)
{
    room a;
    call_result r = call_result_of(c->order, 0, "");
    open_room(&a);
    label(&a, name, score);
    r.reply = &a.classes.base;
    script_close(c);
    c->ev.end(&c->ev, &r);
}

static void all_are_asked_and_one_answer_comes(void **state)
{
    bench b;
    bench_open(&b, 0);
    reply_with(b.s.calls[0], "on", 0.9F);
    assert_int_equal(b.n_ends, 0);
    reply_with(b.s.calls[1], "off", 0.6F);
    assert_int_equal(b.n_ends, 1);
    assert_string_equal(b.best, "off");
    assert_string_equal(b.wanted, "");
    assert_string_equal(b.trace, "mean of a 1, b 2");
    bench_close(&b);
}

static void who_fails_has_no_part_in_it(void **state)
{
    bench b;
    bench_open(&b, 0);
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    reply_with(b.s.calls[0], "on", 0.9F);
    assert_int_equal(b.status, 0);
    assert_string_equal(b.best, "on");
    assert_string_equal(b.wanted, "m");
    assert_int_equal(b.n_left, 1);
    bench_close(&b);
    bench_open(&b, 0);
    script_end(b.s.calls[1], CALL_FAULT_LOST);
    script_end(b.s.calls[0], CALL_FAULT_LOST);
    assert_int_equal(b.n_ends, 1);
    assert_int_equal(b.status, SHOAL_EUNAVAILABLE);
    bench_close(&b);
}

static void before_the_deadline_what_is_there_goes_out(void **state)
{
    bench b;
    bench_open(&b, 100);
    reply_with(b.s.calls[0], "on", 0.9F);
    env_sim_run(b.s.sim, 80);
    assert_int_equal(b.n_ends, 0);
    env_sim_run(b.s.sim, 15);
    assert_true(b.s.calls[1]->cancelled);
    assert_string_equal(b.best, "on");
    assert_string_equal(b.wanted, "m");
    bench_close(&b);
}

static void a_wrong_request_and_a_reader_who_leaves_end_it(void **state)
{
    bench b;
    bench_open(&b, 0);
    script_end_as(b.s.calls[1], SHOAL_EINVALID, CALL_FAULT_NONE);
    assert_int_equal(b.status, SHOAL_EINVALID);
    assert_true(b.s.calls[0]->cancelled);
    bench_close(&b);
    calls_cancel(bench_open(&b, 100));
    assert_true(b.s.calls[0]->cancelled && b.s.calls[1]->cancelled);
    assert_int_equal(b.n_ends, 0);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_averaged_by_weight),
        cmocka_unit_test(spans_need_a_majority),
        cmocka_unit_test(all_are_asked_and_one_answer_comes),
        cmocka_unit_test(who_fails_has_no_part_in_it),
        cmocka_unit_test(before_the_deadline_what_is_there_goes_out),
        cmocka_unit_test(a_wrong_request_and_a_reader_who_leaves_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
