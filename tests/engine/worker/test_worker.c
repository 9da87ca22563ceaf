/* What a worker answers over a real Unix socket, with real tiny models. */
#define _GNU_SOURCE
#include "worker_bench.h"

/* ---- tests ------------------------------------------------------------------------------------- */

static void worker_describes_itself(void **state)
{
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    reply r;
    call(&b, "/shoal.v1.Worker/Describe", NULL, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__ModelInfo *m = shoal__v1__model_info__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_non_null(m);
    assert_string_equal(m->name, "tiny");
    assert_string_equal(m->task, "generate");
    assert_string_equal(m->architecture, "llama");
    assert_int_equal(strlen(m->digest), 64);
    assert_int_equal(m->n_vocab, 704);
    assert_int_equal(m->n_ctx, 256);
    assert_int_equal(m->n_threads, 2);
    assert_int_equal(m->n_parallel, 32);
    assert_int_equal(m->pid, getpid());
    shoal__v1__model_info__free_unpacked(m, NULL);
    reply_done(&r);
    bench_close(&b);
}

static void worker_streams_the_references_greedy_ids(void **state)
{
    bench b;
    reference f;
    reference_load(&f);
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = request_for(&f);
    reply r;
    call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    assert_int_equal(r.n_prompt, f.n_ids);
    assert_int_equal(r.n_generated, f.n_greedy);
    assert_string_equal(r.finish, "length");
    assert_int_equal(r.n_ids, f.n_greedy);
    assert_memory_equal(r.ids, f.greedy, f.n_greedy * sizeof *f.greedy);
    assert_true(r.mean_prob > 0 && r.mean_prob <= 1);
    reply_done(&r);
    bench_close(&b);
    json_decref(f.doc);
}

static void worker_gives_logprobs_and_echoes_the_prompt(void **state)
{
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.text = "Turn on the kitchen lights, please.";
    q.max_tokens = 5;
    q.ignore_eos = q.logprobs = q.echo = true;
    q.n_top = 2;
    reply r;
    call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    assert_int_equal(r.n_logprobs, 5);
    assert_int_equal(r.n_bad_logprobs, 0);
    assert_int_equal(r.n_judged, r.n_prompt);
    assert_true(r.text.len >= strlen(q.text));
    assert_memory_equal(r.text.data, q.text, strlen(q.text));
    double of_prompt = r.log_prob;
    reply_done(&r);
    q.only_prompt = true; /* the same, and no reply */
    call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    assert_int_equal(r.n_ids + r.n_generated, 0);
    assert_string_equal(r.finish, "length");
    assert_int_equal(r.n_judged, r.n_prompt);
    assert_true(r.log_prob == of_prompt);
    assert_int_equal(r.text.len, strlen(q.text));
    reply_done(&r);
    q.logprobs = false;
    call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    assert_int_equal(r.n_ids + r.n_generated + r.n_judged, 0);
    reply_done(&r);
    bench_close(&b);
}

static void worker_turns_texts_into_texts(void **state)
{
    static const char *const MODELS[] = {DATA "t5-small-relu", DATA "marian-translate", DATA "bart"};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        bench b;
        bench_open(&b, MODELS[i], NULL);
        Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
        q.text = "Turn on the kitchen lights, please.";
        q.max_tokens = 5;
        q.ignore_eos = true;
        for (q.n_beams = 1; q.n_beams <= 3; q.n_beams += 2) {
            reply r;
            call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
            assert_int_equal(r.status, GRPC_OK);
            assert_string_equal(r.finish, "length");
            assert_int_equal(r.n_generated, 5);
            assert_true(r.n_prompt > 5);
            assert_int_equal(r.n_read, r.n_prompt);
            reply_done(&r);
        }
        bench_close(&b);
    }
}

static void worker_runs_streams_together_with_equal_results(void **state)
{
    enum { N = 6 };
    bench b;
    reference f;
    reference_load(&f);
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = request_for(&f);
    static reply r[N];
    memset(r, 0, sizeof r);
    for (int i = 0; i < N; i++) begin(&b, "/shoal.v1.Worker/Generate", &q.base, &r[i], 0);
    for (int open = N; open > 0;) {
        uv_run(&b.loop, UV_RUN_ONCE);
        open = 0;
        for (int i = 0; i < N; i++) open += !r[i].ended;
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(r[i].status, GRPC_OK);
        assert_memory_equal(r[i].ids, f.greedy, f.n_greedy * sizeof *f.greedy);
        reply_done(&r[i]);
    }
    bench_close(&b);
    json_decref(f.doc);
}

static Shoal__V1__Stats *stats_of(bench *b)
{
    reply r;
    call(b, "/shoal.v1.Worker/GetStats", NULL, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__Stats *s = shoal__v1__stats__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_non_null(s);
    reply_done(&r);
    return s;
}

/* One place, and more calls than it has time for before a look at those that wait. */
static void worker_tells_who_waits_that_it_works(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    enum { N = 80 }; /* which take longer than three times as many without */
#else
    enum { N = 240 };
#endif
    bench b;
    reference f;
    reference_load(&f);
    bench_open(&b, DATA "llama-gqa", &(engine_options){.n_threads = 1, .max_batch = 1});
    Shoal__V1__GenerateRequest q = request_for(&f);
    q.max_tokens = 0;
    static reply r[N];
    memset(r, 0, sizeof r);
    for (int i = 0; i < N; i++) begin(&b, "/shoal.v1.Worker/Generate", &q.base, &r[i], 0);
    for (int open = N; open > 0;) {
        uv_run(&b.loop, UV_RUN_ONCE);
        open = 0;
        for (int i = 0; i < N; i++) open += !r[i].ended;
    }
    size_t most = 0;
    for (int i = 0; i < N; i++) {
        assert_int_equal(r[i].status, GRPC_OK);
        if (r[i].n_waits > most) most = r[i].n_waits;
        reply_done(&r[i]);
    }
    assert_true(most >= 2); /* one is for the place */
    bench_close(&b);
    json_decref(f.doc);
}

static void worker_frees_the_place_of_a_client_that_leaves(void **state)
{
    bench b;
    reference f;
    reference_load(&f);
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = request_for(&f);
    q.max_tokens = 200;
    reply gone = {0};
    grpc_client_call *c = begin(&b, "/shoal.v1.Worker/Generate", &q.base, &gone, 0);
    while (gone.n_messages == 0) uv_run(&b.loop, UV_RUN_ONCE);
    if (!gone.ended) grpc_client_cancel(c);
    for (bool busy = true; busy;) {
        Shoal__V1__Stats *s = stats_of(&b);
        busy = s->n_running + s->n_waiting > 0;
        assert_true(s->rss_bytes > 0);
        shoal__v1__stats__free_unpacked(s, NULL);
    }
    q.max_tokens = (uint32_t)f.n_greedy;
    reply r;
    call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    assert_memory_equal(r.ids, f.greedy, f.n_greedy * sizeof *f.greedy);
    reply_done(&r);
    reply_done(&gone);
    bench_close(&b);
    json_decref(f.doc);
}

static void worker_closes_under_running_calls(void **state)
{
    bench b;
    reference f;
    reference_load(&f);
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = request_for(&f);
    q.max_tokens = 200;
    static reply r[3];
    memset(r, 0, sizeof r);
    for (int i = 0; i < 3; i++) begin(&b, "/shoal.v1.Worker/Generate", &q.base, &r[i], 0);
    while (r[0].n_messages == 0) uv_run(&b.loop, UV_RUN_ONCE);
    bench_close(&b);
    for (int i = 0; i < 3; i++) {
        assert_true(r[i].ended);
        reply_done(&r[i]);
    }
    json_decref(f.doc);
}

static void drained(void *user)
{
    *(bool *)user = true;
}

static void worker_drains_running_calls_and_tells_watchers(void **state)
{
    bench b;
    reference f;
    reference_load(&f);
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = request_for(&f);
    reply running = {0}, watch = {0};
    Grpc__Health__V1__HealthCheckRequest h = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    begin(&b, "/grpc.health.v1.Health/Watch", &h.base, &watch, 0);
    begin(&b, "/shoal.v1.Worker/Generate", &q.base, &running, 0);
    while (running.n_messages == 0 || watch.n_messages == 0) uv_run(&b.loop, UV_RUN_ONCE);
    bool done = false;
    worker_drain(b.w, drained, &done);
    while (!running.ended || !watch.ended) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(running.status, GRPC_OK);
    assert_int_equal(running.n_ids, f.n_greedy);
    assert_int_equal(watch.status, GRPC_UNAVAILABLE);
    assert_int_equal(watch.n_messages, 2); /* SERVING, then NOT_SERVING */
    while (!done) uv_run(&b.loop, UV_RUN_ONCE);
    reply_done(&running);
    reply_done(&watch);
    bench_close(&b);
    json_decref(f.doc);
}

static void worker_answers_health_checks(void **state)
{
    bench b;
    bench_open(&b, DATA "bert-intent", NULL);
    Grpc__Health__V1__HealthCheckRequest q = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    for (int i = 0; i < 2; i++) {
        reply r;
        q.service = i ? "shoal.v1.Worker" : "";
        call(&b, "/grpc.health.v1.Health/Check", &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        assert_int_equal(r.first.len, 2);
        assert_memory_equal(r.first.data, "\x08\x01", 2); /* status: SERVING */
        reply_done(&r);
    }
    q.service = "another";
    expect_refusal(&b, "/grpc.health.v1.Health/Check", &q.base, GRPC_NOT_FOUND, "no such service");
    bench_close(&b);
}

static void worker_classifies_several_texts(void **state)
{
    enum { N = 40 }; /* more than run at a time */
    bench b;
    bench_open(&b, DATA "bert-intent", NULL);
    Shoal__V1__TextInput in[N], *ptr[N];
    for (int i = 0; i < N; i++) {
        in[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        in[i].text = i % 2 ? "Turn on the kitchen lights, please." : "What is the weather like?";
        ptr[i] = &in[i];
    }
    Shoal__V1__ClassifyRequest q = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    q.inputs = ptr;
    q.n_inputs = N;
    reply r;
    call(&b, "/shoal.v1.Worker/Classify", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__ClassifyReply *m =
        shoal__v1__classify_reply__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_non_null(m);
    assert_int_equal(m->n_results, N);
    for (size_t i = 0; i < N; i++) {
        const Shoal__V1__Classification *c = m->results[i];
        float sum = 0;
        for (size_t k = 0; k < c->n_labels; k++) {
            sum += c->labels[k]->score;
            if (k > 0) assert_true(c->labels[k - 1]->score >= c->labels[k]->score);
        }
        assert_true(sum > 0.999f && sum < 1.001f);
        assert_int_equal(c->n_logits, c->n_labels);
        assert_memory_equal(c->logits, m->results[i % 2]->logits, c->n_logits * sizeof *c->logits);
    }
    reply_done(&r);
    q.top_k = 1;
    call(&b, "/shoal.v1.Worker/Classify", &q.base, &r);
    Shoal__V1__ClassifyReply *best =
        shoal__v1__classify_reply__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_non_null(best);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(best->results[i]->n_labels, 1);
        assert_int_equal(best->results[i]->n_logits, 0);
        assert_string_equal(best->results[i]->labels[0]->label, m->results[i]->labels[0]->label);
        assert_true(best->results[i]->labels[0]->score == m->results[i]->labels[0]->score);
    }
    shoal__v1__classify_reply__free_unpacked(best, NULL);
    shoal__v1__classify_reply__free_unpacked(m, NULL);
    reply_done(&r);
    bench_close(&b);
}

static void worker_tags_and_embeds(void **state)
{
    bench b;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *ptr = &in;
    in.text = "na\xC3\xAFve Mona met Pawel in Vienna";
    Shoal__V1__TagRequest tq = SHOAL__V1__TAG_REQUEST__INIT;
    tq.inputs = &ptr;
    tq.n_inputs = 1;
    reply r;
    bench_open(&b, DATA "bert-ner", NULL);
    call(&b, "/shoal.v1.Worker/Tag", &tq.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__TagReply *t = shoal__v1__tag_reply__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_int_equal(t->n_results, 1);
    for (size_t i = 0; i < t->results[0]->n_spans; i++) {
        const Shoal__V1__Span *s = t->results[0]->spans[i];
        assert_true(s->end_byte <= strlen(in.text) && s->start_byte < s->end_byte);
        assert_int_equal(strlen(s->text), s->end_byte - s->start_byte);
        assert_memory_equal(s->text, in.text + s->start_byte, strlen(s->text));
        assert_true(s->score > 0 && s->score <= 1);
    }
    shoal__v1__tag_reply__free_unpacked(t, NULL);
    reply_done(&r);
    bench_close(&b);

    Shoal__V1__EmbedRequest eq = SHOAL__V1__EMBED_REQUEST__INIT;
    eq.inputs = &ptr;
    eq.n_inputs = 1;
    bench_open(&b, DATA "minilm-embed", NULL);
    call(&b, "/shoal.v1.Worker/Embed", &eq.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__EmbedReply *e =
        shoal__v1__embed_reply__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_int_equal(e->n_results, 1);
    assert_true(e->results[0]->n_values > 0);
    shoal__v1__embed_reply__free_unpacked(e, NULL);
    reply_done(&r);
    bench_close(&b);
}

/* What the worker's one model makes of one input. */
static Shoal__V1__EmbedReply *embed(bench *b, Shoal__V1__TextInput *in, uint32_t truncate)
{
    Shoal__V1__EmbedRequest q = SHOAL__V1__EMBED_REQUEST__INIT;
    reply r;
    q.inputs = &in;
    q.n_inputs = 1;
    q.truncate_tokens = truncate;
    call(b, "/shoal.v1.Worker/Embed", &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    Shoal__V1__EmbedReply *e =
        shoal__v1__embed_reply__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    reply_done(&r);
    return e;
}

static void same_vector(const Shoal__V1__EmbedReply *a, const Shoal__V1__EmbedReply *b)
{
    const Shoal__V1__Embedding *x = a->results[0], *y = b->results[0];
    assert_int_equal(x->n_tokens, y->n_tokens);
    assert_int_equal(x->n_values, y->n_values);
    assert_memory_equal(x->values, y->values, x->n_values * sizeof *x->values);
}

static void worker_embeds_token_ids_as_they_are(void **state)
{
    bench b;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, own = SHOAL__V1__TEXT_INPUT__INIT;
    Shoal__V1__TokenizeRequest tq = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    reply r;
    in.text = "turn on the light";
    tq.input = &in;
    bench_open(&b, DATA "minilm-embed", NULL);
    call(&b, "/shoal.v1.Worker/Tokenize", &tq.base, &r);
    Shoal__V1__TokenizeReply *ids =
        shoal__v1__tokenize_reply__unpack(NULL, r.first.len, (const uint8_t *)r.first.data);
    reply_done(&r);
    own.ids = ids->ids;
    own.n_ids = ids->n_ids;
    Shoal__V1__EmbedReply *text = embed(&b, &in, 0), *given = embed(&b, &own, 0);
    same_vector(text, given);
    Shoal__V1__EmbedReply *cut = embed(&b, &own, 2);
    own.n_ids = 2;
    Shoal__V1__EmbedReply *two = embed(&b, &own, 0);
    same_vector(cut, two);
    shoal__v1__embed_reply__free_unpacked(text, NULL);
    shoal__v1__embed_reply__free_unpacked(given, NULL);
    shoal__v1__embed_reply__free_unpacked(cut, NULL);
    shoal__v1__embed_reply__free_unpacked(two, NULL);
    shoal__v1__tokenize_reply__free_unpacked(ids, NULL);
    bench_close(&b);
}

static void worker_refuses_ids_that_are_not_in_the_vocabulary(void **state)
{
    static int32_t ids[] = {1, 1 << 30};
    bench b;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *ptr = &in;
    Shoal__V1__EmbedRequest eq = SHOAL__V1__EMBED_REQUEST__INIT;
    Shoal__V1__ClassifyRequest cq = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    reply r;
    in.ids = ids;
    in.n_ids = 2;
    eq.inputs = cq.inputs = &ptr;
    eq.n_inputs = cq.n_inputs = 1;
    bench_open(&b, DATA "minilm-embed", NULL);
    call(&b, "/shoal.v1.Worker/Embed", &eq.base, &r);
    assert_int_equal(r.status, GRPC_INVALID_ARGUMENT);
    assert_non_null(strstr(r.message, "token id 1073741824 is not in the vocabulary"));
    reply_done(&r);
    bench_close(&b);
    bench_open(&b, DATA "bert-intent", NULL);
    in.n_ids = 1;
    call(&b, "/shoal.v1.Worker/Classify", &cq.base, &r);
    assert_int_equal(r.status, GRPC_INVALID_ARGUMENT);
    reply_done(&r);
    bench_close(&b);
}

static void worker_refuses_bad_generate_requests_with_reasons(void **state)
{
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    const char *path = "/shoal.v1.Worker/Generate";
    int32_t ids[300], bad[] = {1, 99999};
    for (int i = 0; i < 300; i++) ids[i] = 5;
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    expect_refusal(&b, path, &q.base, GRPC_INVALID_ARGUMENT, "exactly one");
    q.ids = ids;
    q.n_ids = 300;
    expect_refusal(&b, path, &q.base, GRPC_OUT_OF_RANGE, "256");
    q.ids = bad;
    q.n_ids = 2;
    expect_refusal(&b, path, &q.base, GRPC_INVALID_ARGUMENT, "99999");
    q.n_ids = 0;
    q.text = "broken \xC3(";
    expect_refusal(&b, path, &q.base, GRPC_INVALID_ARGUMENT, "byte 7");
    q.text = "";
    q.text = "hello";
    Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
    s.temperature = -1;
    q.sampling = &s;
    expect_refusal(&b, path, &q.base, GRPC_INVALID_ARGUMENT, "temperature");
    s.temperature = 1;
    s.presence_penalty = 3; /* what HTTP refuses, a worker refuses */
    expect_refusal(&b, path, &q.base, GRPC_INVALID_ARGUMENT,
                   "presence_penalty is 3; it must be from -2 to 2");
    s.presence_penalty = 0;
    Shoal__V1__LogitBias lb = SHOAL__V1__LOGIT_BIAS__INIT, *plb = &lb;
    lb.id = 704;
    s.bias = &plb;
    s.n_bias = 1;
    expect_refusal(&b, path, &q.base, GRPC_INVALID_ARGUMENT, "704");
    bench_close(&b);
}

static void worker_refuses_other_tasks_long_texts_and_garbage(void **state)
{
    bench b;
    bench_open(&b, DATA "bert-intent", NULL);
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *ptr = &in;
    Shoal__V1__ClassifyRequest q = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    expect_refusal(&b, "/shoal.v1.Worker/Classify", &q.base, GRPC_INVALID_ARGUMENT, "0 inputs");
    q.inputs = &ptr;
    q.n_inputs = 1;
    expect_refusal(&b, "/shoal.v1.Worker/Tag", &q.base, GRPC_UNIMPLEMENTED, "classify");
    expect_refusal(&b, "/shoal.v1.Worker/Nothing", &q.base, GRPC_UNIMPLEMENTED, "");
    char text[2000];
    for (size_t i = 0; i < sizeof text; i++) text[i] = i % 2 ? ' ' : 'x';
    text[sizeof text - 1] = '\0';
    in.text = text;
    expect_refusal(&b, "/shoal.v1.Worker/Classify", &q.base, GRPC_OUT_OF_RANGE, "128 tokens");
    in.text = "\xFF";
    expect_refusal(&b, "/shoal.v1.Worker/Classify", &q.base, GRPC_INVALID_ARGUMENT, "UTF-8");
    reply r = {0};
    grpc_client_events ev = {.user = &r, .message = on_message, .end = on_end};
    assert_non_null(
        grpc_call_start(b.channel, "/shoal.v1.Worker/Classify", "\xFF\xFF\xFF", 3, NULL, 0, 0, &ev));
    while (!r.ended) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(r.status, GRPC_INVALID_ARGUMENT);
    reply_done(&r);
    bench_close(&b);
}

static void worker_refuses_a_model_of_another_digest(void **state)
{
    bench b;
    bench_dir(&b);
    char wrong[65];
    memset(wrong, 'a', 64);
    wrong[64] = '\0';
    const char *const paths[] = {DATA "llama-gqa", SHOAL_GGUF_DIR "/llama-gqa.gguf"};
    for (int i = 0; i < 2; i++) {
        worker_options o = options_for(&b, paths[i]);
        o.model.sha256 = wrong;
        shoal_err err = {0};
        assert_int_equal(worker_new(&b.w, &b.loop, &o, &err), SHOAL_EDIGEST);
        assert_non_null(strstr(err.message, "llama-gqa"));
        assert_non_null(strstr(err.message, wrong));
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_describes_itself),
        cmocka_unit_test(worker_streams_the_references_greedy_ids),
        cmocka_unit_test(worker_gives_logprobs_and_echoes_the_prompt),
        cmocka_unit_test(worker_turns_texts_into_texts),
        cmocka_unit_test(worker_runs_streams_together_with_equal_results),
        cmocka_unit_test(worker_tells_who_waits_that_it_works),
        cmocka_unit_test(worker_frees_the_place_of_a_client_that_leaves),
        cmocka_unit_test(worker_closes_under_running_calls),
        cmocka_unit_test(worker_drains_running_calls_and_tells_watchers),
        cmocka_unit_test(worker_answers_health_checks),
        cmocka_unit_test(worker_classifies_several_texts),
        cmocka_unit_test(worker_tags_and_embeds),
        cmocka_unit_test(worker_embeds_token_ids_as_they_are),
        cmocka_unit_test(worker_refuses_ids_that_are_not_in_the_vocabulary),
        cmocka_unit_test(worker_refuses_bad_generate_requests_with_reasons),
        cmocka_unit_test(worker_refuses_other_tasks_long_texts_and_garbage),
        cmocka_unit_test(worker_refuses_a_model_of_another_digest),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
