/* Routes resolved over a seam that a test plays: the question for a domain, its time, and what comes of no
 * answer. */
#include "script.h"

#include "calls/resolve.h"

enum { MS = 1000000 };

typedef struct bench {
    script s;
    config_domain of[2];
    config_rule rules[2];
    config_route route;
    config_domains domains;
    route_book book;
    resolve_ask ask;
    resolve *resolve;
    int n_done, status;
    decide_what what;
    char model[32];
    char why[256]; /* of the first step */
    domain_fact fact;
    double ms;
} bench;

/* Rules for the domain `on` of the classifier `m` and a German one, and a chain of one; all of them are `m`.
 */
static void bench_open(bench *b)
{
    static const char *domain[] = {"on"}, *labels[] = {"iot_*"}, *language[] = {"de"},
                      *fallback[] = {"m:chain"};
    *b = (bench){.of = {{.name = "on", .labels = labels, .n_labels = 1}}};
    script_init(&b->s);
    b->rules[0] = (config_rule){.name = "german", .language = language, .n_language = 1, .model = "m:german"};
    b->rules[1] = (config_rule){.name = "on", .domain = domain, .n_domain = 1, .model = "m:on"};
    b->route = (config_route){
        .name = "r", .domains = "t", .rules = b->rules, .n_rules = 2, .fallback = fallback, .n_fallback = 1};
    b->domains = (config_domains){
        .name = "t", .model = "m", .timeout_ms = 50, .min_score = 0.5, .of = b->of, .n_of = 1};
    b->book = (route_book){.routes = &b->route, .n_routes = 1, .domains = &b->domains, .n_domains = 1};
    b->ask =
        (resolve_ask){.route = &b->route,
                      .text = "turn it on",
                      .n_text = 10,
                      .task = CALL_GENERATE,
                      .ctx = {.request_id = "r1"},
                      .facts = {.endpoint = "chat_completions", .path = "", .api_key = "", .language = "en"}};
}

static void bench_close(bench *b)
{
    calls_free(&b->s.base);
    script_done(&b->s);
}

static void on_done(void *user, const resolved *r)
{
    bench *b = user;
    buf why = {0};
    b->n_done++;
    b->what = r->what;
    b->status = r->status;
    b->fact = r->facts->domains[0];
    b->ms = r->ms;
    *b->model = '\0';
    if (r->decision->n == 0) return;
    snprintf(b->model, sizeof b->model, "%s", r->decision->steps[0].model);
    decide_put_why(&why, &b->book, &r->decision->steps[0], r->facts);
    snprintf(b->why, sizeof b->why, "%s", why.data);
    buf_done(&why);
}

static void start(bench *b)
{
    assert_int_equal(resolve_start(&b->resolve, &b->s.base, b->s.env, &b->book, &b->ask, on_done, b), 0);
}

/* The classifier's call ends with a label. */
static void say_label(scripted *c, const char *label, float score)
{
    Shoal__V1__LabelScore best = SHOAL__V1__LABEL_SCORE__INIT, *labels[] = {&best};
    Shoal__V1__Classification one = SHOAL__V1__CLASSIFICATION__INIT, *results[] = {&one};
    Shoal__V1__ClassifyReply reply = SHOAL__V1__CLASSIFY_REPLY__INIT;
    call_result r = call_result_of(c->order, 0, "");
    best.label = (char *)label;
    best.score = score;
    one.labels = labels;
    one.n_labels = 1;
    reply.results = results;
    reply.n_results = 1;
    r.reply = &reply.base;
    script_close(c);
    c->ev.end(&c->ev, &r);
}

static void a_rule_without_a_question_is_decided_at_once(void **state)
{
    bench b;
    bench_open(&b);
    b.ask.facts.language = "de";
    start(&b);
    assert_int_equal(b.n_done, 1);
    assert_string_equal(b.model, "m:german");
    assert_int_equal(b.s.n, 0);
    bench_close(&b);
}

static void a_domain_is_asked_once_and_decides(void **state)
{
    bench b;
    bench_open(&b);
    start(&b);
    assert_int_equal(b.n_done, 0);
    scripted *c = script_last(&b.s);
    assert_int_equal(c->order->task, CALL_CLASSIFY);
    assert_string_equal(c->order->model, "m");
    assert_int_equal(c->order->deadline_ns, b.s.env->now_ns(b.s.env->user) + 50 * MS);
    env_sim_run(b.s.sim, 2);
    say_label(c, "iot_hue_lighton", 0.9f);
    assert_int_equal(b.n_done, 1);
    assert_string_equal(b.model, "m:on");
    assert_string_equal(b.why, "rule on: domain iot_hue_lighton 0.90");
    assert_true(b.fact.ms >= 2 && b.ms >= 2);
    assert_int_equal(b.s.n, 1);
    bench_close(&b);
}

static void whoever_does_not_answer_is_passed_over(void **state)
{
    static const struct row {
        int status;
        const char *why;
    } rows[] = {{SHOAL_EDEADLINE, "m gave no answer in 50 ms"}, {SHOAL_EUNAVAILABLE, "it failed"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench b;
        bench_open(&b);
        start(&b);
        env_sim_run(b.s.sim, 50);
        script_end_as(script_last(&b.s), rows[i].status, CALL_FAULT_NONE);
        assert_int_equal(b.n_done, 1);
        assert_string_equal(b.model, "m:chain");
        assert_int_equal(b.fact.state, DOMAIN_UNKNOWN);
        assert_string_equal(b.fact.why, rows[i].why);
        bench_close(&b);
    }
}

static void whoever_is_not_there_or_would_be_late_is_not_asked(void **state)
{
    bench b;
    bench_open(&b);
    b.s.estimate.expected_ms = 51;
    start(&b);
    assert_string_equal(b.model, "m:chain");
    assert_string_equal(b.fact.why, "m would take about 51 ms, and may take 50");
    b.s.estimate = (call_estimate){.status = SHOAL_EUNAVAILABLE};
    start(&b);
    assert_string_equal(b.fact.why, "no replica serves m now");
    assert_int_equal(b.what, DECIDE_DONE); /* the chain is asked all the same: somebody may come back */
    b.ask.n_text = 0;
    b.ask.text = "";
    start(&b);
    assert_string_equal(b.fact.why, "there is no text");
    assert_int_equal(b.s.n, 0);
    assert_int_equal(b.n_done, 3);
    bench_close(&b);
}

/* Half of what is left is for the answer itself. */
static void a_question_takes_no_more_than_half_of_the_time(void **state)
{
    bench b;
    bench_open(&b);
    uint64_t now = b.s.env->now_ns(b.s.env->user);
    b.ask.deadline_ns = now + 20 * MS;
    start(&b);
    assert_int_equal(script_last(&b.s)->order->deadline_ns, now + 10 * MS);
    script_end_as(script_last(&b.s), SHOAL_EDEADLINE, CALL_FAULT_NONE);
    assert_string_equal(b.model, "m:chain");
    bench_close(&b);
}

static void an_answer_of_another_file_than_the_centroids_does_not_count(void **state)
{
    bench b;
    float vector[] = {1};
    centroid at = {.name = "on", .vector = vector};
    centroids c = {.model = "m", .digest = "d0", .n_dimensions = 1, .n = 1, .at = &at};
    Shoal__V1__Embedding e = SHOAL__V1__EMBEDDING__INIT, *results[] = {&e};
    Shoal__V1__EmbedReply reply = SHOAL__V1__EMBED_REPLY__INIT;
    e.values = vector;
    e.n_values = 1;
    reply.results = results;
    reply.n_results = 1;
    bench_open(&b);
    b.domains.centroids = &c;
    for (int same = 0; same < 2; same++) {
        c.digest = same ? "d1" : "d0";
        start(&b);
        scripted *call = script_last(&b.s);
        assert_int_equal(call->order->task, CALL_EMBED);
        call_result r = call_result_of(call->order, 0, "");
        r.digest = "d1";
        r.reply = &reply.base;
        script_close(call);
        b.of[0].n_labels = 0;
        call->ev.end(&call->ev, &r);
        assert_string_equal(b.model, same ? "m:on" : "m:chain");
    }
    bench_close(&b);
}

/* A text of a megabyte is asked about by its beginning, cut between characters. */
static void long_texts_are_asked_about_by_their_beginning(void **state)
{
    static char text[1 << 20];
    bench b;
    bench_open(&b);
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i + 1, "\xc3\xa4", i + 3 < sizeof text ? 2 : 0);
    text[0] = 'x';
    b.ask.text = text;
    b.ask.n_text = sizeof text - 1;
    start(&b);
    ProtobufCMessage *m = call_order_request(script_last(&b.s)->order);
    assert_int_equal(strlen(((Shoal__V1__ClassifyRequest *)m)->inputs[0]->text), RESOLVE_TEXT_BYTES - 1);
    protobuf_c_message_free_unpacked(m, NULL);
    say_label(script_last(&b.s), "iot_x", 1);
    bench_close(&b);
}

static void a_cancelled_question_is_heard_of_no_more(void **state)
{
    bench b;
    bench_open(&b);
    start(&b);
    resolve_cancel(b.resolve);
    assert_true(script_last(&b.s)->cancelled);
    assert_int_equal(b.n_done, 0);
    resolve_cancel(NULL);
    bench_close(&b);
}

/* What this process lacks the memory for is not decided otherwise. */
static void without_memory_nothing_is_decided(void **state)
{
    bench b;
    bench_open(&b);
    b.s.no_memory = true;
    start(&b);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.status, SHOAL_ENOMEM);
    b.s.no_memory = false;
    start(&b);
    script_end_as(script_last(&b.s), SHOAL_ENOMEM, CALL_FAULT_NONE);
    assert_int_equal(b.n_done, 2);
    assert_int_equal(b.status, SHOAL_ENOMEM);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_without_a_question_is_decided_at_once),
        cmocka_unit_test(a_domain_is_asked_once_and_decides),
        cmocka_unit_test(whoever_does_not_answer_is_passed_over),
        cmocka_unit_test(whoever_is_not_there_or_would_be_late_is_not_asked),
        cmocka_unit_test(a_question_takes_no_more_than_half_of_the_time),
        cmocka_unit_test(an_answer_of_another_file_than_the_centroids_does_not_count),
        cmocka_unit_test(long_texts_are_asked_about_by_their_beginning),
        cmocka_unit_test(a_cancelled_question_is_heard_of_no_more),
        cmocka_unit_test(without_memory_nothing_is_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
