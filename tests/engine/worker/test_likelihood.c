/* How likely given texts are, as a worker tells it. */
#define _GNU_SOURCE
#include "worker_bench.h"

/* ---- likelihoods --------------------------------------------------------------------------------- */

static Shoal__V1__LikelihoodReply *likelihoods(bench *b, const Shoal__V1__LikelihoodRequest *q)
{
    reply r;
    call(b, "/shoal.v1.Worker/Likelihood", &q->base, &r);
    if (r.status != GRPC_OK) fail_msg("%s", r.message);
    Shoal__V1__LikelihoodReply *m =
        shoal__v1__likelihood_reply__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_non_null(m);
    assert_int_equal(m->n_results, q->n_replies);
    reply_done(&r);
    return m;
}

/* Each alone is what it is among the others. */
static void worker_says_how_likely_replies_are(void **state)
{
    static const char *const TEXTS[] = {" the kitchen lights", " of on the of", "", " the kitchen lights"};
    Shoal__V1__Reply replies[4], *list[40];
    Shoal__V1__GenerateRequest prompt = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__LikelihoodRequest q = SHOAL__V1__LIKELIHOOD_REQUEST__INIT;
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    for (size_t i = 0; i < 40; i++) {
        shoal__v1__reply__init(&replies[i % 4]);
        replies[i % 4].text = (char *)(uintptr_t)TEXTS[i % 4];
        list[i] = &replies[i % 4];
    }
    prompt.text = "Turn on";
    q.prompt = &prompt;
    q.replies = list;
    q.n_replies = 4;
    Shoal__V1__LikelihoodReply *all = likelihoods(&b, &q);
    assert_true(all->n_prompt > 1);
    assert_int_equal(all->results[2]->n_tokens, 1); /* the end */
    assert_true(all->results[0]->log_prob == all->results[3]->log_prob);
    q.n_replies = 1;
    for (size_t i = 0; i < 4; i++) {
        q.replies = &list[i];
        Shoal__V1__LikelihoodReply *one = likelihoods(&b, &q);
        assert_true(one->results[0]->log_prob == all->results[i]->log_prob && one->results[0]->log_prob < 0);
        assert_int_equal(one->results[0]->n_tokens, all->results[i]->n_tokens);
        shoal__v1__likelihood_reply__free_unpacked(one, NULL);
    }
    q.replies = list;
    q.n_replies = 40; /* more than run together */
    Shoal__V1__LikelihoodReply *many = likelihoods(&b, &q);
    for (size_t i = 0; i < 40; i++) assert_true(many->results[i]->log_prob == all->results[i % 4]->log_prob);
    shoal__v1__likelihood_reply__free_unpacked(many, NULL);
    shoal__v1__likelihood_reply__free_unpacked(all, NULL);
    bench_close(&b);
}

static void worker_refuses_likelihoods_that_nobody_can_tell(void **state)
{
    static const char PATH[] = "/shoal.v1.Worker/Likelihood";
    Shoal__V1__Reply one = SHOAL__V1__REPLY__INIT, two = SHOAL__V1__REPLY__INIT, *list[65];
    Shoal__V1__GenerateRequest prompt = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__LikelihoodRequest q = SHOAL__V1__LIKELIHOOD_REQUEST__INIT;
    bench b;
    buf longest = {0};
    for (size_t i = 0; i < 65; i++) list[i] = &one;
    for (size_t i = 0; i < 400; i++) buf_puts(&longest, " light");
    bench_open(&b, DATA "llama-gqa", NULL);
    q.replies = list;
    q.n_replies = 1;
    expect_refusal(&b, PATH, &q.base, GRPC_INVALID_ARGUMENT, "no prompt");
    q.prompt = &prompt;
    expect_refusal(&b, PATH, &q.base, GRPC_INVALID_ARGUMENT, "exactly one of");
    prompt.text = "Turn";
    q.n_replies = 65;
    expect_refusal(&b, PATH, &q.base, GRPC_OUT_OF_RANGE, "1 to 64");
    q.n_replies = 0;
    expect_refusal(&b, PATH, &q.base, GRPC_INVALID_ARGUMENT, "1 to 64");
    q.n_replies = 2;
    two.text = longest.data;
    list[1] = &two;
    expect_refusal(&b, PATH, &q.base, GRPC_OUT_OF_RANGE, "reply 1");
    two.text = "\xff";
    expect_refusal(&b, PATH, &q.base, GRPC_INVALID_ARGUMENT, "UTF-8");
    q.n_replies = 1;
    q.adapter = "nobody";
    expect_refusal(&b, PATH, &q.base, GRPC_NOT_FOUND, "nobody");
    bench_close(&b);
    bench_open(&b, DATA "bert-intent", NULL);
    q.adapter = "";
    expect_refusal(&b, PATH, &q.base, GRPC_UNIMPLEMENTED, "classify");
    buf_done(&longest);
    bench_close(&b);
}

/* What a chat model says by itself, text and calls in its own syntax, is what it finds likely: as likely as
 * it was while it said it. */
static void worker_judges_what_it_said_as_it_said_it(void **state)
{
    Shoal__V1__GenerateRequest prompt = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__LikelihoodRequest q = SHOAL__V1__LIKELIHOOD_REQUEST__INIT;
    Shoal__V1__Reply one = SHOAL__V1__REPLY__INIT, *list[] = {&one};
    Shoal__V1__ToolCallDelta said = SHOAL__V1__TOOL_CALL_DELTA__INIT, *calls[] = {&said};
    bench b;
    reply r;
    bench_open(&b, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", NULL);
    prompt.messages_json = "[{\"role\":\"system\",\"content\":\"Devices:\\nfan.attic 'Attic Fan' = off\"},"
                           "{\"role\":\"user\",\"content\":\"Turn on the attic fan.\"}]";
    prompt.parse_tool_calls = prompt.logprobs = true;
    prompt.n_top = 2;
    call(&b, "/shoal.v1.Worker/Generate", &prompt.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    assert_string_equal(r.finish, "tool_calls");
    char *arguments = strchr(r.calls.data, '{'), name[64];
    assert_non_null(arguments);
    snprintf(name, sizeof name, "%.*s", (int)(arguments - r.calls.data), r.calls.data);
    one.text = r.text.len ? r.text.data : "";
    one.calls = calls;
    one.n_calls = 1;
    said.name = name;
    said.arguments = arguments;
    q.prompt = &prompt;
    q.replies = list;
    q.n_replies = 1;
    Shoal__V1__LikelihoodReply *m = likelihoods(&b, &q);
    assert_int_equal(m->results[0]->n_tokens, r.n_generated);
    assert_true(fabs(m->results[0]->log_prob - r.said) < 1e-9);
    shoal__v1__likelihood_reply__free_unpacked(m, NULL);
    reply_done(&r);
    bench_close(&b);
}

/* What was read is the source, not the token that the reply begins with. */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_says_how_likely_replies_are),
        cmocka_unit_test(worker_refuses_likelihoods_that_nobody_can_tell),
        cmocka_unit_test(worker_judges_what_it_said_as_it_said_it),
    };
    return cmocka_run_group_tests_name("likelihood", tests, NULL, NULL);
}
