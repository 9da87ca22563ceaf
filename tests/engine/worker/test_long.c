/* Requests that take long to get ready (long texts, schemas, tools) are made ready on the thread pool: while
 * they wait for a thread the worker's loop answers other calls. */
#define _GNU_SOURCE
#include <semaphore.h>

#include "worker_bench.h"

enum { TEXT_BYTES = 200 << 10, ROUNDS = 50 /* so many answers later a long message has come whole */ };

typedef struct blocker { /* takes the pool's only thread (see main) until it is released */
    uv_work_t work;
    sem_t begun, released;
} blocker;

static void block(uv_work_t *work)
{
    blocker *k = (blocker *)work;
    sem_post(&k->begun);
    sem_wait(&k->released);
}

static void unblocked(uv_work_t *work, int status)
{
    assert_int_equal(status, 0);
}

static void blocker_begin(blocker *k, bench *b)
{
    sem_init(&k->begun, 0, 0);
    sem_init(&k->released, 0, 0);
    assert_int_equal(uv_queue_work(&b->loop, &k->work, block, unblocked), 0);
    sem_wait(&k->begun);
}

static char *long_text(void)
{
    char *s = malloc(TEXT_BYTES + 1);
    for (size_t i = 0; i < TEXT_BYTES; i++) s[i] = "ab "[i % 3];
    s[TEXT_BYTES] = '\0';
    return s;
}

/* Another call is answered while this one waits for a thread, and then it is answered, too. */
static void expect_later(bench *b, const char *path, const ProtobufCMessage *m, int status, const char *part)
{
    blocker k;
    reply r = {0};
    blocker_begin(&k, b);
    begin(b, path, m, &r, 0);
    for (int i = 0; i < ROUNDS; i++) expect_refusal(b, "/shoal.v1.Worker/Describe", NULL, GRPC_OK, "");
    if (r.ended) fail_msg("%s: the loop itself has made it ready: %s", path, r.message);
    sem_post(&k.released);
    while (!r.ended) uv_run(&b->loop, UV_RUN_ONCE);
    if (r.status != status || !strstr(r.message, part)) fail_msg("%s: %d %s", path, r.status, r.message);
    reply_done(&r);
}

static void generations_are_made_ready_on_the_pool(void **state)
{
    bench b;
    char *text = long_text();
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.max_tokens = 4;
    q.text = text;
    expect_later(&b, "/shoal.v1.Worker/Generate", &q.base, GRPC_OUT_OF_RANGE,
                 "maximum context length is 256 tokens");
    q.text = "Turn on";
    q.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA;
    q.schema = "{\"type\":\"string\",\"pattern\":\"^(a|b)*a(a|b){200}$\"}";
    expect_later(&b, "/shoal.v1.Worker/Generate", &q.base, GRPC_OUT_OF_RANGE, "pattern");
    q.schema = "{\"enum\":[\"a\",\"b\"]}";
    expect_later(&b, "/shoal.v1.Worker/Generate", &q.base, GRPC_OK, "");
    bench_close(&b);
    free(text);
}

static void replies_are_weighed_and_texts_encoded_on_the_pool(void **state)
{
    bench b;
    char *text = long_text();
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *inputs[] = {&in};
    Shoal__V1__ClassifyRequest c = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    in.text = text;
    c.inputs = inputs;
    c.n_inputs = 1;
    bench_open(&b, DATA "bert-intent", NULL);
    expect_later(&b, "/shoal.v1.Worker/Classify", &c.base, GRPC_OUT_OF_RANGE, "maximum context length is");
    bench_close(&b);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__Reply a = SHOAL__V1__REPLY__INIT, *replies[] = {&a};
    Shoal__V1__LikelihoodRequest l = SHOAL__V1__LIKELIHOOD_REQUEST__INIT;
    q.text = text;
    l.prompt = &q;
    l.replies = replies;
    l.n_replies = 1;
    bench_open(&b, DATA "llama-gqa", NULL);
    expect_later(&b, "/shoal.v1.Worker/Likelihood", &l.base, GRPC_OUT_OF_RANGE,
                 "maximum context length is 256 tokens");
    bench_close(&b);
    free(text);
}

/* Half of them leave; a worker that closes ends the others. */
static void clients_and_the_worker_may_go_while_they_wait(void **state)
{
    enum { N = 6 };
    bench b;
    blocker k;
    static reply r[N];
    grpc_client_call *calls[N];
    char *text = long_text();
    memset(r, 0, sizeof r);
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.text = text;
    blocker_begin(&k, &b);
    for (int i = 0; i < N; i++) calls[i] = begin(&b, "/shoal.v1.Worker/Generate", &q.base, &r[i], 0);
    for (int i = 0; i < N * ROUNDS; i++) expect_refusal(&b, "/shoal.v1.Worker/Describe", NULL, GRPC_OK, "");
    for (int i = 0; i < N; i += 2) grpc_client_cancel(calls[i]);
    expect_refusal(&b, "/shoal.v1.Worker/Describe", NULL, GRPC_OK, "");
    grpc_channel_close(b.channel);
    b.channel = NULL;
    worker_close(b.w, NULL, NULL);
    b.w = NULL;
    for (int i = 0; i < 20; i++) uv_run(&b.loop, UV_RUN_NOWAIT);
    sem_post(&k.released);
    bench_close(&b);
    for (int i = 0; i < N; i++) reply_done(&r[i]);
    free(text);
}

int main(void)
{
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generations_are_made_ready_on_the_pool),
        cmocka_unit_test(replies_are_weighed_and_texts_encoded_on_the_pool),
        cmocka_unit_test(clients_and_the_worker_may_go_while_they_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
