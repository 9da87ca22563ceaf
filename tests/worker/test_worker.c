/* A worker and a gRPC client in one loop, over a real Unix socket and with real tiny models. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "grpc/health/v1/health.pb-c.h"
#include "shoal/v1/worker.pb-c.h"
#include "wire/grpc.h"
#include "worker/worker.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/hf/"

typedef struct bench {
    uv_loop_t loop;
    char dir[64], address[128];
    worker *w;
    grpc_channel *channel;
    bool connected;
} bench;

static void on_connected(void *user)
{
    ((bench *)user)->connected = true;
}

static void on_disconnected(void *user, const char *why)
{
    ((bench *)user)->connected = false;
}

static worker_options options_for(bench *b, const char *model)
{
    return (worker_options){.name = "tiny",
                            .path = model,
                            .address = b->address,
                            .arbiter_fd = -1,
                            .arbiter_slot = -1,
                            .engine = {.n_threads = 2}};
}

static void bench_dir(bench *b)
{
    *b = (bench){0};
    log_setup(LOG_OFF, false);
    strcpy(b->dir, "/tmp/shoal-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->address, sizeof b->address, "unix:%s/w.sock", b->dir);
    assert_int_equal(uv_loop_init(&b->loop), 0);
}

static void bench_open(bench *b, const char *model, const engine_options *eo)
{
    bench_dir(b);
    worker_options o = options_for(b, model);
    if (eo) o.engine = *eo;
    shoal_err err = {0};
    if (worker_new(&b->w, &b->loop, &o, &err) != 0) fail_msg("worker_new: %s", err.message);
    grpc_channel_events ev = {.user = b, .connected = on_connected, .disconnected = on_disconnected};
    assert_int_equal(grpc_channel_new(&b->channel, &b->loop, b->address, &ev, &err), 0);
    while (!b->connected) uv_run(&b->loop, UV_RUN_ONCE);
}

static void bench_close(bench *b)
{
    if (b->channel) grpc_channel_close(b->channel);
    if (b->w) worker_close(b->w, NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    assert_int_not_equal(access(b->address + 5, F_OK), 0);
    assert_int_equal(rmdir(b->dir), 0);
}

/* ---- one call ---------------------------------------------------------------------------------- */

typedef struct reply {
    buf first; /* the first message, packed */
    size_t n_messages, n_deltas;
    size_t n_waits; /* signs of life before the first delta */
    int32_t ids[512];
    size_t n_ids, n_logprobs, n_bad_logprobs, n_judged;
    double log_prob, said; /* of the prompt's tokens, and of the reply's */
    buf text;
    buf calls; /* name(arguments), one after the other */
    size_t n_calls;
    char finish[16];
    buf thought;
    uint32_t n_prompt, n_read, n_generated, n_reasoning; /* n_read: n_prompt as the end has it */
    double mean_prob;
    bool ended;
    int status;
    char message[512];
} reply;

static void reply_done(reply *r)
{
    buf_done(&r->first);
    buf_done(&r->text);
    buf_done(&r->thought);
    buf_done(&r->calls);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    reply *r = user;
    assert_false(r->ended);
    r->ended = true;
    r->status = (int)status;
    snprintf(r->message, sizeof r->message, "%s", message ? message : "");
}

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    reply *r = user;
    if (r->n_messages++ == 0) buf_append(&r->first, msg, n);
}

static void on_event(void *user, const uint8_t *msg, size_t n)
{
    reply *r = user;
    Shoal__V1__GenerateEvent *ev = shoal__v1__generate_event__unpack(NULL, n, msg);
    assert_non_null(ev);
    if (r->n_messages++ == 0) assert_non_null(ev->started);
    if (ev->started) r->n_prompt = ev->started->n_prompt;
    if (ev->progress && r->n_deltas == 0) r->n_waits++;
    if (ev->delta) {
        r->n_deltas++;
        for (size_t i = 0; i < ev->delta->n_ids && r->n_ids < 512; i++)
            r->ids[r->n_ids++] = ev->delta->ids[i];
        for (size_t i = 0; i < ev->delta->n_logprobs; i++) {
            const Shoal__V1__TokenLogprob *p = ev->delta->logprobs[i];
            if (ev->delta->n_ids == 0) { /* of the prompt: all in one */
                assert_int_equal(isnan(p->logprob), i == 0);
                assert_int_equal(r->n_logprobs, 0);
                r->n_judged++;
                r->log_prob += i > 0 ? (double)p->logprob : 0;
                continue;
            }
            r->n_logprobs++;
            r->said += (double)p->logprob;
            r->n_bad_logprobs += p->logprob > 0 || p->n_top != 2 || p->top[0]->logprob < p->top[1]->logprob;
        }
        if (*ev->delta->reasoning) assert_int_equal(r->text.len, 0); /* thoughts come first */
        buf_puts(&r->thought, ev->delta->reasoning);
        buf_puts(&r->text, ev->delta->text);
        for (size_t i = 0; i < ev->delta->n_tool_calls; i++) {
            const Shoal__V1__ToolCallDelta *d = ev->delta->tool_calls[i];
            if (*d->name && r->n_calls++ > 0) buf_putc(&r->calls, ' ');
            buf_puts(&r->calls, d->name);
            buf_puts(&r->calls, d->arguments);
        }
    }
    if (ev->done) {
        snprintf(r->finish, sizeof r->finish, "%s", ev->done->finish);
        r->n_read = ev->done->n_prompt;
        r->n_generated = ev->done->n_generated;
        r->n_reasoning = ev->done->n_reasoning;
        r->mean_prob = ev->done->mean_prob;
    }
    shoal__v1__generate_event__free_unpacked(ev, NULL);
}

static grpc_client_call *begin(bench *b, const char *path, const ProtobufCMessage *m, reply *r,
                               uint64_t deadline_ns)
{
    size_t n = m ? protobuf_c_message_get_packed_size(m) : 0;
    uint8_t *bytes = malloc(n + 1);
    if (m) protobuf_c_message_pack(m, bytes);
    bool stream = strstr(path, "Generate") != NULL;
    grpc_client_events ev = {.user = r, .message = stream ? on_event : on_message, .end = on_end};
    http_header meta = {"x-request-id", "test-1"};
    grpc_client_call *c = grpc_call_start(b->channel, path, bytes, n, &meta, 1, deadline_ns, &ev);
    free(bytes);
    assert_non_null(c);
    return c;
}

static void call(bench *b, const char *path, const ProtobufCMessage *m, reply *r)
{
    *r = (reply){0};
    begin(b, path, m, r, 0);
    while (!r->ended) uv_run(&b->loop, UV_RUN_ONCE);
}

static void expect_refusal(bench *b, const char *path, const ProtobufCMessage *m, int status,
                           const char *part)
{
    reply r;
    call(b, path, m, &r);
    if (r.status != status || !strstr(r.message, part))
        fail_msg("%s: got %s \"%s\", wanted %s with \"%s\"", path, grpc_status_name(r.status), r.message,
                 grpc_status_name(status), part);
    reply_done(&r);
}

/* ---- what the reference says ------------------------------------------------------------------- */

static json_t *expected(const char *model)
{
    char path[512];
    json_t *j = NULL;
    snprintf(path, sizeof path, DATA "%s/expected.json", model);
    assert_int_equal(json_parse_file(&j, path, 1 << 22, NULL), 0);
    return j;
}

static size_t read_ids(const json_t *a, int32_t *out, size_t cap)
{
    size_t n = json_array_size(a);
    assert_true(n <= cap);
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)json_integer_value(json_array_get(a, i));
    return n;
}

typedef struct reference {
    json_t *doc;
    int32_t ids[256], greedy[256];
    size_t n_ids, n_greedy;
} reference;

static void reference_load(reference *f)
{
    f->doc = expected("llama-gqa");
    const json_t *p = json_array_get(json_object_get(f->doc, "prompts"), 0);
    f->n_ids = read_ids(json_object_get(p, "ids"), f->ids, 256);
    f->n_greedy = read_ids(json_object_get(p, "greedy_ids"), f->greedy, 256);
}

static Shoal__V1__GenerateRequest request_for(reference *f)
{
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.ids = f->ids;
    q.n_ids = f->n_ids;
    q.max_tokens = (uint32_t)f->n_greedy;
    q.ignore_eos = true;
    return q;
}

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
    enum { N = 40 };
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
    q.messages_json = "[{\"role\":\"user\",\"content\":\"hello\"}]";
    expect_refusal(&b, path, &q.base, GRPC_INVALID_ARGUMENT, "has no chat template");
    q.messages_json = "";
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
    const char *const paths[] = {DATA "llama-gqa", SHOAL_SOURCE_DIR "/tests/data/gguf/llama-gqa.gguf"};
    for (int i = 0; i < 2; i++) {
        worker_options o = options_for(&b, paths[i]);
        o.sha256 = wrong;
        shoal_err err = {0};
        assert_int_equal(worker_new(&b.w, &b.loop, &o, &err), SHOAL_EDIGEST);
        assert_non_null(strstr(err.message, "llama-gqa"));
        assert_non_null(strstr(err.message, wrong));
    }
    bench_close(&b);
}

/* ---- forms of replies -------------------------------------------------------------------------- */

#define CONSTRAINT(name)  SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__##name
#define TOOL_CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name
#define HOME              SHOAL_SOURCE_DIR "/models/home-chat-s.gguf"

static const char GENERATE[] = "/shoal.v1.Worker/Generate";
static const char KITCHEN[] =
    "[{\"role\":\"system\",\"content\":\"You are Shoal, a helper that runs this home. Devices:\\n"
    "light.kitchen 'Kitchen Light' = off\"},{\"role\":\"user\",\"content\":\"Turn on the kitchen light\"}]";
static const char TWO_TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"switch_on\",\"parameters\":{\"type\":\"object\","
    "\"properties\":"
    "{\"level\":{\"type\":\"integer\"}},\"required\":[\"level\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"nod\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{},"
    "\"additionalProperties\":false}}}]";

static Shoal__V1__GenerateRequest chat_request(const char *messages, const char *tools)
{
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.messages_json = (char *)messages;
    if (tools) q.tools_json = (char *)tools;
    return q;
}

static void a_reply_is_exactly_one_of_the_choices(void **state)
{
    static char *choices[] = {"kitchen", "bedroom", "bed", "front door \xC3\xA9"};
    const char *const models[] = {DATA "llama-gqa", HOME};
    for (int m = 0; m < 2; m++) {
        bench b;
        bench_open(&b, models[m], NULL);
        Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
        Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
        q.text = "Which room?";
        q.sampling = &s;
        q.constraint = CONSTRAINT(CHOICES);
        q.choices = choices;
        q.n_choices = 4;
        for (int seed = 0; seed < 6; seed++) {
            s.seed = (uint64_t)seed;
            s.temperature = seed == 0 ? 0 : 2;
            reply r;
            call(&b, GENERATE, &q.base, &r);
            assert_int_equal(r.status, GRPC_OK);
            buf_putc(&r.text, '\0');
            bool one = false;
            for (int i = 0; i < 4; i++) one |= strcmp(r.text.data, choices[i]) == 0;
            if (!one) fail_msg("\"%s\" is none of the choices", r.text.data);
            assert_string_equal(r.finish, "stop");
            assert_true(r.mean_prob > 0 && r.mean_prob < 1);
            reply_done(&r);
        }
        q.n_choices = 0;
        expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "nothing to choose from");
        bench_close(&b);
    }
}

/* "nod{}" or "switch_on{"level": an integer}", with any white space. */
static void check_call(const char *call)
{
    const char *args = strchr(call, '{');
    json_t *v = NULL;
    assert_non_null(args);
    assert_int_equal(json_parse(&v, args, strlen(args), "arguments", NULL), 0);
    bool nod = strncmp(call, "nod{", 4) == 0 && json_object_size(v) == 0;
    bool on = strncmp(call, "switch_on{", 10) == 0 && json_object_size(v) == 1 &&
              json_is_integer(json_object_get(v, "level"));
    if (!nod && !on) fail_msg("the call %s", call);
    json_decref(v);
}

/* One call to an offered tool with arguments of its schema, from a model that never saw a tool. */
static void any_model_calls_what_is_offered_when_it_must(void **state)
{
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
    q.text = "hello";
    q.sampling = &s;
    q.tools_json = (char *)TWO_TOOLS;
    q.constraint = CONSTRAINT(TOOLS);
    q.tool_choice = TOOL_CHOICE(TOOL_REQUIRED);
    for (int seed = 0; seed < 6; seed++) {
        s.temperature = seed == 0 ? 0 : 1;
        s.seed = (uint64_t)seed;
        reply r;
        call(&b, GENERATE, &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        buf_putc(&r.calls, '\0');
        if (strcmp(r.finish, "tool_calls") == 0) {
            assert_int_equal(r.n_calls, 1);
            assert_int_equal(r.text.len, 0);
            check_call(r.calls.data);
        } else { /* a random model may write digits until the context ends */
            assert_string_equal(r.finish, "length");
        }
        reply_done(&r);
    }
    q.tool_choice = TOOL_CHOICE(TOOL_NAMED);
    q.tool_name = "nod";
    reply r;
    call(&b, GENERATE, &q.base, &r);
    buf_putc(&r.calls, '\0');
    assert_int_equal(r.n_calls, 1);
    check_call(r.calls.data);
    assert_string_equal(r.finish, "tool_calls");
    reply_done(&r);
    q.tool_name = "shrug";
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "shrug");
    bench_close(&b);
}

static void what_was_not_offered_is_never_called(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    Shoal__V1__GenerateRequest q = chat_request(KITCHEN, TWO_TOOLS);
    q.max_tokens = 96;
    q.constraint = CONSTRAINT(TOOLS); /* auto; left alone it calls light.turn_on */
    reply r;
    call(&b, GENERATE, &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    buf_putc(&r.calls, '\0');
    assert_null(strstr(r.calls.data, "light.turn_on"));
    assert_true(r.n_calls == 0 || strncmp(r.calls.data, "nod", 3) == 0 ||
                strncmp(r.calls.data, "switch_on", 9) == 0);
    reply_done(&r);
    bench_close(&b);
}

static void none_means_no_call_and_no_markup(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    Shoal__V1__GenerateRequest q = chat_request(KITCHEN, NULL);
    q.max_tokens = 96;
    for (int none = 0; none < 2; none++) {
        q.tool_choice = none ? TOOL_CHOICE(TOOL_NONE) : TOOL_CHOICE(TOOL_AUTO);
        q.parse_tool_calls = !none;
        reply r;
        call(&b, GENERATE, &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        buf_putc(&r.text, '\0');
        assert_int_equal(r.n_calls, none ? 0 : 1);
        assert_string_equal(r.finish, none ? "stop" : "tool_calls");
        if (strstr(r.text.data, "tool_call")) fail_msg("the text %s", r.text.data);
        assert_null(strstr(r.text.data, "{"));
        assert_true(r.text.len > 1);
        reply_done(&r);
    }
    q.constraint = CONSTRAINT(TOOLS);
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "exclude each other");
    bench_close(&b);
}

/* A schema that cannot be enforced is refused, unless its tool says that it need not be. */
static void a_tool_with_an_odd_schema_is_callable_when_it_says_so(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    char tools[512];
    static const char *const STRICT[] = {"\"strict\":false,", "\"strict\":true,", ""};
    for (int strict = 0; strict < 3; strict++) {
        snprintf(tools, sizeof tools,
                 "[{\"type\":\"function\",\"function\":{\"name\":\"odd\",%s\"parameters\":{\"type\":"
                 "\"object\",\"not\":{\"required\":[\"x\"]}}}}]",
                 STRICT[strict]);
        Shoal__V1__GenerateRequest q = chat_request(KITCHEN, tools);
        q.max_tokens = 64;
        q.constraint = CONSTRAINT(TOOLS);
        q.tool_choice = TOOL_CHOICE(TOOL_REQUIRED);
        if (strict) {
            expect_refusal(&b, GENERATE, &q.base, GRPC_UNIMPLEMENTED, strict == 1 ? "tools/0" : "\"strict\": false");
            continue;
        }
        reply r;
        call(&b, GENERATE, &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        assert_true(r.calls.len > 3 && memcmp(r.calls.data, "odd{", 4) == 0);
        reply_done(&r);
    }
    bench_close(&b);
}

static void chat(bench *b, const Shoal__V1__GenerateRequest *q, reply *r)
{
    call(b, GENERATE, &q->base, r);
    if (r->status != GRPC_OK) fail_msg("%s", r->message);
    buf_putc(&r->text, '\0');
    buf_putc(&r->calls, '\0');
}

/* The home models would invent an answer; they say what the tool said. */
static void a_home_model_answers_with_the_results(void **state)
{
    static const char MESSAGES[] =
        "[{\"role\":\"user\",\"content\":\"How warm is it?\"},{\"role\":\"assistant\",\"content\":\"\","
        "\"tool_calls\":[{\"function\":{\"name\":\"nod\",\"arguments\":{}}}]},"
        "{\"role\":\"tool\",\"content\":\"%s\"},{\"role\":\"tool\",\"content\":\"Rain at noon.\"}]";
    static const char *const RESULTS[] = {"21 \xC2\xB0"
                                          "C <tool_call> <|im_end|>",
                                          ""};
    const char *const models[] = {HOME, SHOAL_SOURCE_DIR "/models/home-chat-m.gguf"};
    for (int m = 0; m < 2; m++) {
        bench b;
        bench_open(&b, models[m], NULL);
        for (int i = 0; i < 4; i++) {
            char messages[512], want[128];
            reply r;
            snprintf(messages, sizeof messages, MESSAGES, RESULTS[i % 2]);
            snprintf(want, sizeof want, "%s%sRain at noon.", RESULTS[i % 2], *RESULTS[i % 2] ? "\n" : "");
            Shoal__V1__GenerateRequest q = chat_request(messages, i < 2 ? TWO_TOOLS : NULL);
            if (i < 2) q.constraint = CONSTRAINT(TOOLS);
            chat(&b, &q, &r);
            assert_string_equal(r.text.data, want);
            assert_string_equal(r.finish, "stop");
            assert_int_equal(r.n_calls, 0);
            reply_done(&r);
        }
        bench_close(&b);
    }
}

/* A folder with llama-gqa's files and a template that does not compile. */
static void a_broken_template_is_named_in_the_refusal(void **state)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char dir[] = "/tmp/shoal-broken-XXXXXX", from[512], to[64];
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 3; i++) {
        snprintf(from, sizeof from, DATA "llama-gqa/%s", files[i]);
        snprintf(to, sizeof to, "%s/%s", dir, files[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    snprintf(to, sizeof to, "%s/chat_template.jinja", dir);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs("hello\n{% if %}", f);
    fclose(f);
    bench b;
    bench_open(&b, dir, NULL);
    Shoal__V1__GenerateRequest q = chat_request("[{\"role\":\"user\",\"content\":\"hi\"}]", NULL);
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "its chat template cannot be used");
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "line 2");
    bench_close(&b);
    unlink(to);
    for (int i = 0; i < 3; i++) {
        snprintf(to, sizeof to, "%s/%s", dir, files[i]);
        unlink(to);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* A folder with llama-gqa's files and this template; its path is written to dir. */
static void make_model(char *dir, const char *template)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char from[512], to[96];
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 3; i++) {
        snprintf(from, sizeof from, DATA "llama-gqa/%s", files[i]);
        snprintf(to, sizeof to, "%s/%s", dir, files[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    snprintf(to, sizeof to, "%s/chat_template.jinja", dir);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs(template, f);
    fclose(f);
}

static void remove_model(const char *dir)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "chat_template.jinja"};
    for (int i = 0; i < 4; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* A model of random weights never ends its thought: all of the reply is thought, the stop text in it ends
 * nothing, and the end says that it was cut. With thinking switched off the same model answers. */
static void a_model_cut_while_it_thinks_says_so(void **state)
{
    char dir[] = "/tmp/shoal-think-XXXXXX";
    make_model(dir,
               "{{ messages[0].content }}{{ '<think>' if think | default(true) else '<think></think>' }}");
    bench b;
    bench_open(&b, dir, NULL);
    Shoal__V1__GenerateRequest q = chat_request("[{\"role\":\"user\",\"content\":\"hi\"}]", NULL);
    q.max_tokens = 12;
    q.ignore_eos = true;
    reply on, off, stopped;
    chat(&b, &q, &on);
    buf_putc(&on.thought, '\0');
    assert_int_equal(on.text.len, 1);
    assert_true(on.thought.len > 1);
    assert_int_equal(on.n_reasoning, 12);
    assert_string_equal(on.finish, "length");
    q.template_kwargs_json = "{\"think\":false}";
    chat(&b, &q, &off);
    assert_int_equal(off.thought.len, 0);
    assert_int_equal(off.n_reasoning, 0);
    assert_true(off.text.len > 1);
    char stop[2] = {on.thought.data[on.thought.len / 2], '\0'}, *stops[] = {stop};
    if (stop[0] > ' ' && stop[0] < 127) {
        q.template_kwargs_json = "";
        q.stop = stops;
        q.n_stop = 1;
        chat(&b, &q, &stopped);
        assert_int_equal(stopped.thought.len, on.thought.len - 1);
        assert_string_equal(stopped.finish, "length");
        reply_done(&stopped);
    }
    q.template_kwargs_json = "{\"messages\":[]}";
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "cannot be given");
    q.template_kwargs_json = "[]";
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "template_kwargs");
    reply_done(&on);
    reply_done(&off);
    bench_close(&b);
    remove_model(dir);
}

/* The same model under templates of other families calls in their syntax when it must, and the client sees
 * OpenAI's calls. */
static void forced_calls_come_in_every_syntax(void **state)
{
    static const char *const templates[] = {
        "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] "
        "%}<|tool_call_start|>[{{ "
        "c.function.name }}()]<|tool_call_end|>{% endfor %}{% endfor %}x",
        "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] %}[TOOL_CALLS]{{ "
        "c.function.name }}[ARGS]{}{% endfor %}{% endfor %}x",
        "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] %}{\"name\": \"{{ "
        "c.function.name }}\", \"parameters\": {}}{% endfor %}{% endfor %}x",
        "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] "
        "%}<start_function_call>call:"
        "{{ c.function.name }}{}<end_function_call>{% endfor %}{% endfor %}x",
    };
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        char dir[] = "/tmp/shoal-calls-XXXXXX";
        make_model(dir, templates[i]);
        bench b;
        bench_open(&b, dir, NULL);
        Shoal__V1__GenerateRequest q = chat_request("[{\"role\":\"user\",\"content\":\"hi\"}]", TWO_TOOLS);
        q.constraint = CONSTRAINT(TOOLS);
        q.tool_choice = TOOL_CHOICE(TOOL_NAMED);
        q.tool_name = "nod";
        reply r;
        chat(&b, &q, &r);
        assert_int_equal(r.n_calls, 1);
        check_call(r.calls.data);
        assert_int_equal(r.text.len, 1);
        assert_string_equal(r.finish, "tool_calls");
        reply_done(&r);
        bench_close(&b);
        remove_model(dir);
    }
}

static void offered_tools_reach_the_prompt(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    Shoal__V1__GenerateRequest q = chat_request(KITCHEN, NULL);
    reply without, with;
    q.max_tokens = 1;
    chat(&b, &q, &without);
    q.tools_json = (char *)TWO_TOOLS;
    chat(&b, &q, &with);
    assert_true(with.n_prompt > without.n_prompt);
    reply_done(&without);
    reply_done(&with);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_describes_itself),
        cmocka_unit_test(worker_streams_the_references_greedy_ids),
        cmocka_unit_test(worker_gives_logprobs_and_echoes_the_prompt),
        cmocka_unit_test(worker_says_how_likely_replies_are),
        cmocka_unit_test(worker_refuses_likelihoods_that_nobody_can_tell),
        cmocka_unit_test(worker_judges_what_it_said_as_it_said_it),
        cmocka_unit_test(worker_turns_texts_into_texts),
        cmocka_unit_test(worker_runs_streams_together_with_equal_results),
        cmocka_unit_test(worker_tells_who_waits_that_it_works),
        cmocka_unit_test(worker_frees_the_place_of_a_client_that_leaves),
        cmocka_unit_test(worker_closes_under_running_calls),
        cmocka_unit_test(worker_drains_running_calls_and_tells_watchers),
        cmocka_unit_test(worker_answers_health_checks),
        cmocka_unit_test(worker_classifies_several_texts),
        cmocka_unit_test(worker_tags_and_embeds),
        cmocka_unit_test(worker_refuses_bad_generate_requests_with_reasons),
        cmocka_unit_test(worker_refuses_other_tasks_long_texts_and_garbage),
        cmocka_unit_test(worker_refuses_a_model_of_another_digest),
        cmocka_unit_test(a_reply_is_exactly_one_of_the_choices),
        cmocka_unit_test(any_model_calls_what_is_offered_when_it_must),
        cmocka_unit_test(what_was_not_offered_is_never_called),
        cmocka_unit_test(none_means_no_call_and_no_markup),
        cmocka_unit_test(a_tool_with_an_odd_schema_is_callable_when_it_says_so),
        cmocka_unit_test(a_home_model_answers_with_the_results),
        cmocka_unit_test(a_model_cut_while_it_thinks_says_so),
        cmocka_unit_test(forced_calls_come_in_every_syntax),
        cmocka_unit_test(offered_tools_reach_the_prompt),
        cmocka_unit_test(a_broken_template_is_named_in_the_refusal),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
