/* A stream that one worker began goes on at another, by the rule of GenerateRequest.resume_ids: cut after
 * every message, and the whole equals the undisturbed stream in each character, name, id, log-probability and
 * count. */
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

#include "base/file.h"
#include "logging/log.h"
#include "shoal/v1/worker.pb-c.h"
#include "grpc/grpc.h"
#include "worker/worker.h"

#include "template_folder.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/hf/"
#define HOME SHOAL_SOURCE_DIR "/models/home-chat-s.gguf"

#define CONSTRAINT(name)  SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__##name
#define TOOL_CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name

static const char GENERATE[] = "/shoal.v1.Worker/Generate";

/* Under ThreadSanitizer, which looks at threads and not at bytes, some of the cuts will do. */
#ifdef __SANITIZE_THREAD__
#define CUT_EVERY 9
#else
#define CUT_EVERY 1
#endif

/* ---- two workers of one model ------------------------------------------------------------------------- */

typedef struct replica {
    char address[128];
    worker *w;
    grpc_channel *channel;
    bool connected;
} replica;

typedef struct bench {
    uv_loop_t loop;
    char dir[64];
    replica of[2];
} bench;

static void on_connected(void *user)
{
    ((replica *)user)->connected = true;
}

static void on_disconnected(void *user, const char *why)
{
    ((replica *)user)->connected = false;
}

static void replica_open(bench *b, int i, const char *model, engine_options eo)
{
    replica *r = &b->of[i];
    shoal_err err = {0};
    snprintf(r->address, sizeof r->address, "unix:%s/%d.sock", b->dir, i);
    worker_options o = {.model = {.name = "tiny", .path = model, .engine = eo},
                        .address = r->address,
                        .arbiter_fd = -1,
                        .arbiter_slot = -1};
    if (worker_new(&r->w, &b->loop, &o, &err) != 0) fail_msg("worker_new: %s", err.message);
    grpc_channel_events ev = {.user = r, .connected = on_connected, .disconnected = on_disconnected};
    assert_int_equal(grpc_channel_new(&r->channel, &b->loop, r->address, &ev, &err), 0);
    while (!r->connected) uv_run(&b->loop, UV_RUN_ONCE);
}

static void bench_open(bench *b, const char *model)
{
    *b = (bench){0};
    log_setup(LOG_OFF, false);
    strcpy(b->dir, "/tmp/shoal-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    assert_int_equal(uv_loop_init(&b->loop), 0);
    replica_open(b, 0, model, (engine_options){.n_threads = 1});
    replica_open(b, 1, model, (engine_options){.n_threads = 2, .prefill_chunk = 16});
}

static void bench_close(bench *b)
{
    for (int i = 0; i < 2; i++) {
        grpc_channel_close(b->of[i].channel);
        worker_close(b->of[i].w, NULL, NULL);
    }
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    assert_int_equal(rmdir(b->dir), 0);
}

/* ---- what a client has heard -------------------------------------------------------------------------- */

enum { MAX_UNITS = 4096, MAX_IDS = 256, MAX_MESSAGES = 512 };

/* A character of a text, thought or arguments, or a name: nothing smaller is ever sent. */
typedef struct unit {
    char kind; /* 'r'easoning, 't'ext, 'n'ame, 'a'rguments */
    uint32_t index;
    uint8_t len;
    char bytes[63];
} unit;

/* What a gateway keeps of a stream, besides the characters. */
typedef struct kept {
    size_t n_units, n_ids;
    uint64_t n_bytes;
    double prob_sum;
} kept;

typedef struct stream {
    kept now, after[MAX_MESSAGES];                       /* after each message */
    size_t n_messages, n_progress, n_logprobs, n_judged; /* n_judged: of the prompt */
    unit units[MAX_UNITS];
    int32_t ids[MAX_IDS];
    float logprobs[MAX_IDS][3];
    int32_t alternatives[MAX_IDS][3];
    Shoal__V1__Started *started;
    Shoal__V1__Done *done;
    bool ended;
    int status;
    char message[512];
} stream;

static void add_unit(stream *s, char kind, uint32_t index, const char *bytes, size_t n)
{
    assert_true(s->now.n_units < MAX_UNITS && n < sizeof s->units->bytes);
    unit *u = &s->units[s->now.n_units++];
    *u = (unit){.kind = kind, .index = index, .len = (uint8_t)n};
    memcpy(u->bytes, bytes, n);
    s->now.n_bytes += n;
}

static void add_characters(stream *s, char kind, uint32_t index, const char *text, size_t len)
{
    for (const char *end = text + len; text < end;) {
        size_t n = 1;
        while (text + n < end && ((unsigned char)text[n] & 0xC0) == 0x80) n++;
        add_unit(s, kind, index, text, n);
        text += n;
    }
}

static void add_logprob(stream *s, const Shoal__V1__TokenLogprob *p)
{
    size_t at = s->n_logprobs++;
    assert_true(at < MAX_IDS && p->n_top <= 2);
    s->logprobs[at][0] = p->logprob;
    s->alternatives[at][0] = p->id;
    for (size_t i = 0; i < p->n_top; i++) {
        s->logprobs[at][1 + i] = p->top[i]->logprob;
        s->alternatives[at][1 + i] = p->top[i]->id;
    }
}

static void add_delta(stream *s, const Shoal__V1__Delta *d)
{
    for (size_t i = 0; i < d->n_ids; i++) {
        assert_true(s->now.n_ids < MAX_IDS);
        s->ids[s->now.n_ids++] = d->ids[i];
    }
    if (d->n_ids) s->now.prob_sum = d->prob_sum;
    for (size_t i = 0; i < d->n_logprobs && d->n_ids > 0; i++) add_logprob(s, d->logprobs[i]);
    if (d->n_ids == 0) s->n_judged += d->n_logprobs;
    add_characters(s, 'r', 0, (const char *)d->reasoning.data, d->reasoning.len);
    add_characters(s, 't', 0, (const char *)d->text.data, d->text.len);
    for (size_t i = 0; i < d->n_tool_calls; i++) {
        const Shoal__V1__ToolCallDelta *c = d->tool_calls[i];
        if (*c->name) add_unit(s, 'n', c->index, c->name, strlen(c->name));
        add_characters(s, 'a', c->index, c->arguments, strlen(c->arguments));
    }
}

static void on_event(void *user, const uint8_t *msg, size_t n)
{
    stream *s = user;
    Shoal__V1__GenerateEvent *ev = shoal__v1__generate_event__unpack(NULL, n, msg);
    assert_non_null(ev);
    assert_int_equal(s->started != NULL, s->n_messages > 0);
    assert_null(s->done);
    if (ev->started) {
        s->started = ev->started;
        ev->started = NULL;
    }
    if (ev->delta) add_delta(s, ev->delta);
    if (ev->progress) {
        s->n_progress++;
        assert_true(ev->progress->n_read <= ev->progress->n_input &&
                    ev->progress->n_cached <= s->started->n_prompt);
    }
    if (ev->done) {
        s->done = ev->done;
        ev->done = NULL;
    }
    assert_true(s->n_messages < MAX_MESSAGES);
    s->after[s->n_messages++] = s->now;
    shoal__v1__generate_event__free_unpacked(ev, NULL);
}

static void on_end(void *user, grpc_status status, const char *message)
{
    stream *s = user;
    assert_false(s->ended);
    s->ended = true;
    s->status = (int)status;
    snprintf(s->message, sizeof s->message, "%s", message ? message : "");
}

static stream *ask(bench *b, int which, const Shoal__V1__GenerateRequest *q)
{
    stream *s = calloc(1, sizeof *s);
    size_t n = shoal__v1__generate_request__get_packed_size(q);
    uint8_t *bytes = malloc(n + 1);
    assert_non_null(s);
    assert_non_null(bytes);
    shoal__v1__generate_request__pack(q, bytes);
    grpc_client_events ev = {.user = s, .message = on_event, .end = on_end};
    assert_non_null(grpc_call_start(b->of[which].channel, GENERATE, bytes, n, NULL, 0, 0, &ev));
    free(bytes);
    while (!s->ended) uv_run(&b->loop, UV_RUN_ONCE);
    return s;
}

static void stream_free(stream *s)
{
    if (s->started) shoal__v1__started__free_unpacked(s->started, NULL);
    if (s->done) shoal__v1__done__free_unpacked(s->done, NULL);
    free(s);
}

/* ---- the rule ----------------------------------------------------------------------------------------- */

/* The first request, to go on after what was kept. */
static Shoal__V1__GenerateRequest to_resume(const Shoal__V1__GenerateRequest *q, const stream *s,
                                            const kept *k)
{
    Shoal__V1__GenerateRequest r = *q;
    r.max_tokens = s->started->max_tokens;
    r.n_prompt_ids = s->started->n_prompt_ids;
    r.prompt_ids = s->started->prompt_ids;
    r.in_thought = s->started->in_thought;
    r.n_resume_ids = k->n_ids;
    r.resume_ids = (int32_t *)s->ids;
    r.resume_bytes = k->n_bytes;
    r.resume_prob_sum = k->prob_sum;
    return r;
}

static void print_units(const char *what, const unit *u, size_t n)
{
    fprintf(stderr, "%s: ", what);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%c%u'%.*s' ", u[i].kind, u[i].index, u[i].len, u[i].bytes);
    fprintf(stderr, "\n");
}

static void same_units(const stream *whole, const kept *k, const stream *rest)
{
    const unit *want = whole->units + k->n_units;
    size_t n = whole->now.n_units - k->n_units;
    if (rest->now.n_units == n && memcmp(rest->units, want, n * sizeof *want) == 0) return;
    print_units("wanted", want, n);
    print_units("got   ", rest->units, rest->now.n_units);
    fail_msg("cut after %zu ids and %llu bytes", k->n_ids, (unsigned long long)k->n_bytes);
}

static void same_done(const Shoal__V1__Done *a, const Shoal__V1__Done *b)
{
    assert_string_equal(a->finish, b->finish);
    assert_int_equal(a->n_prompt, b->n_prompt);
    assert_int_equal(a->n_generated, b->n_generated);
    assert_int_equal(a->n_reasoning, b->n_reasoning);
    assert_memory_equal(&a->mean_prob, &b->mean_prob, sizeof a->mean_prob);
}

/* Go on after `k`, and get the rest of `whole`: given back. */
static stream *go_on(bench *b, const Shoal__V1__GenerateRequest *q, const stream *whole, const kept *k)
{
    Shoal__V1__GenerateRequest again = to_resume(q, whole, k);
    stream *rest = ask(b, 1, &again);
    if (rest->status != GRPC_OK) fail_msg("cut after %zu ids: %s", k->n_ids, rest->message);
    same_units(whole, k, rest);
    assert_int_equal(rest->now.n_ids, whole->now.n_ids - k->n_ids);
    assert_memory_equal(rest->ids, whole->ids + k->n_ids, rest->now.n_ids * sizeof *rest->ids);
    assert_int_equal(rest->started->n_prompt, whole->started->n_prompt);
    assert_int_equal(rest->started->max_tokens, whole->started->max_tokens);
    assert_int_equal(rest->n_judged, k->n_ids || k->n_bytes ? 0 : whole->n_judged);
    if (q->logprobs) {
        assert_int_equal(rest->n_logprobs, rest->now.n_ids);
        assert_memory_equal(rest->logprobs, whole->logprobs + k->n_ids,
                            rest->n_logprobs * sizeof *rest->logprobs);
        assert_memory_equal(rest->alternatives, whole->alternatives + k->n_ids,
                            rest->n_logprobs * sizeof *rest->alternatives);
    }
    same_done(rest->done, whole->done);
    return rest;
}

static void check_cut(bench *b, const Shoal__V1__GenerateRequest *q, const stream *whole, const kept *k)
{
    stream_free(go_on(b, q, whole, k));
}

/* What a gateway keeps of two parts of a stream. */
static kept both(const kept *a, const kept *b)
{
    return (kept){.n_units = a->n_units + b->n_units,
                  .n_ids = a->n_ids + b->n_ids,
                  .n_bytes = a->n_bytes + b->n_bytes,
                  .prob_sum = b->n_ids ? b->prob_sum : a->prob_sum};
}

/* Cut after `k`, and again after each message that followed. */
static void check_two_cuts(bench *b, const Shoal__V1__GenerateRequest *q, const stream *whole, const kept *k)
{
    stream *rest = go_on(b, q, whole, k);
    for (size_t i = 0; i < rest->n_messages; i += CUT_EVERY) {
        kept twice = both(k, &rest->after[i]);
        check_cut(b, q, whole, &twice);
    }
    stream_free(rest);
}

/* A stream and all its cuts: where messages ended, and where some of the text of the ids was still on its
 * way. What is given back is the undisturbed stream. */
static stream *check_all(bench *b, const Shoal__V1__GenerateRequest *q)
{
    stream *whole = ask(b, 0, q);
    if (whole->status != GRPC_OK) fail_msg("%s", whole->message);
    assert_non_null(whole->done);
    for (size_t i = whole->n_messages; i-- > 0;)
        if (i % CUT_EVERY == 0) check_cut(b, q, whole, &whole->after[i]);
    check_two_cuts(b, q, whole, &whole->after[whole->n_messages / 2]);
    kept late = whole->after[whole->n_messages - 1];
    while (late.n_units > 0) {
        late.n_bytes -= whole->units[--late.n_units].len;
        if (late.n_units % (5 * CUT_EVERY) == 0) check_cut(b, q, whole, &late);
    }
    return whole;
}

static void check_and_forget(bench *b, const Shoal__V1__GenerateRequest *q)
{
    stream_free(check_all(b, q));
}

/* ---- tests ------------------------------------------------------------------------------------------ */

static int32_t IDS[] = {1, 59, 65, 33, 41, 46, 47, 33, 52, 51, 47, 41};

static Shoal__V1__Sampling warm(uint64_t seed)
{
    Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
    s.temperature = 1;
    s.top_p = 0.99f;
    s.seed = seed;
    s.presence_penalty = 0.5f;
    s.frequency_penalty = 0.25f;
    s.repetition_penalty = 1.1f;
    return s;
}

static void any_model_goes_on(void **state)
{
    static const char *const models[] = {DATA "llama-gqa", DATA "lfm2-conv", DATA "qwen3-moe"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        bench b;
        bench_open(&b, models[i]);
        Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
        Shoal__V1__Sampling s = warm(3);
        q.ids = IDS;
        q.n_ids = sizeof IDS / sizeof *IDS;
        q.max_tokens = 24;
        q.ignore_eos = true;
        check_and_forget(&b, &q);
        q.sampling = &s;
        q.logprobs = true;
        q.n_top = 2;
        check_and_forget(&b, &q);
        q.n_ids = 0;
        q.text = "Turn on the kitchen lights \xC3\xA9, please.";
        q.echo = true; /* not repeated */
        stream *w = check_all(&b, &q);
        assert_true(w->now.n_units > 30);
        assert_int_equal(w->n_judged, w->started->n_prompt);
        assert_int_equal(w->started->n_prompt_ids, 0); /* the text is the prompt, today and tomorrow */
        stream_free(w);
        bench_close(&b);
    }
}

static void sources_and_searches_go_on(void **state)
{
    bench b;
    bench_open(&b, DATA "t5-small-relu");
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.text = "Turn on the kitchen lights, please.";
    q.max_tokens = 12;
    q.ignore_eos = true;
    check_and_forget(&b, &q);
    q.n_beams = 3;
    stream *w = check_all(&b, &q);
    assert_true(w->n_progress >= 1);
    stream_free(w);
    bench_close(&b);
}

static void stop_strings_go_on(void **state)
{
    bench b;
    bench_open(&b, DATA "llama-gqa");
    for (uint64_t seed = 0; seed < 3; seed++) {
        Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
        Shoal__V1__Sampling s = warm(seed);
        char stop[64] = "", near[66], *stops[] = {near, stop};
        q.ids = IDS;
        q.n_ids = sizeof IDS / sizeof *IDS;
        q.max_tokens = 30;
        q.ignore_eos = true;
        q.sampling = &s;
        stream *plain = ask(&b, 0, &q);
        for (size_t i = plain->now.n_units / 2; i < plain->now.n_units / 2 + 9; i++)
            strncat(stop, plain->units[i].bytes, plain->units[i].len);
        snprintf(near, sizeof near, "%s\x01", stop);
        stream_free(plain);
        q.stop = stops;
        for (q.n_stop = 1; q.n_stop <= 2; q.n_stop++) {
            stream *w = check_all(&b, &q);
            assert_string_equal(w->done->finish, q.n_stop == 1 ? "length" : "stop");
            stream_free(w);
        }
    }
    bench_close(&b);
}

static void forms_go_on(void **state)
{
    static char *choices[] = {"kitchen", "bedroom", "bed", "front door \xC3\xA9"};
    bench b;
    bench_open(&b, DATA "llama-gqa");
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    for (uint64_t seed = 0; seed < 3; seed++) {
        Shoal__V1__Sampling s = warm(seed);
        q.text = "Which room?";
        q.sampling = &s;
        q.max_tokens = 40;
        q.constraint = CONSTRAINT(CHOICES);
        q.choices = choices;
        q.n_choices = 4;
        check_and_forget(&b, &q);
        q.constraint = CONSTRAINT(JSON_SCHEMA);
        q.schema = "{\"type\":\"object\",\"properties\":{\"room\":{\"type\":\"string\",\"maxLength\":9}},"
                   "\"required\":[\"room\"],\"additionalProperties\":false}";
        check_and_forget(&b, &q);
        q.constraint = CONSTRAINT(JSON_OBJECT);
        check_and_forget(&b, &q);
    }
    bench_close(&b);
}

/* ---- chats -------------------------------------------------------------------------------------------- */

static const char KITCHEN[] =
    "[{\"role\":\"system\",\"content\":\"You are Shoal, a helper that runs this home. Devices:\\n"
    "light.kitchen 'Kitchen Light' = off\"},{\"role\":\"user\",\"content\":\"Turn on the kitchen light\"}]";
static const char ANSWERED[] =
    "[{\"role\":\"user\",\"content\":\"How warm is it?\"},{\"role\":\"assistant\",\"content\":\"\","
    "\"tool_calls\":[{\"function\":{\"name\":\"nod\",\"arguments\":{}}}]},"
    "{\"role\":\"tool\",\"content\":\"21 \xC2\xB0"
    "C, and rain at noon.\"}]";
static const char TWO_TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"switch_on\",\"parameters\":{\"type\":\"object\","
    "\"properties\":"
    "{\"level\":{\"type\":\"integer\",\"maximum\":99,\"minimum\":0}},\"required\":[\"level\"],"
    "\"additionalProperties\":false}}},{\"type\":\"function\",\"function\":{\"name\":\"nod\",\"parameters\":{"
    "\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}}}]";

static size_t count_kind(const stream *s, char kind)
{
    size_t n = 0;
    for (size_t i = 0; i < s->now.n_units; i++) n += s->units[i].kind == kind;
    return n;
}

static void the_home_models_calls_go_on(void **state)
{
    bench b;
    bench_open(&b, HOME);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.messages_json = (char *)KITCHEN;
    q.max_tokens = 96;
    q.parse_tool_calls = true;
    q.logprobs = true;
    stream *w = check_all(&b, &q);
    assert_string_equal(w->done->finish, "tool_calls");
    assert_true(count_kind(w, 'n') == 1 && count_kind(w, 'a') > 2 && count_kind(w, 't') > 2);
    assert_true(w->started->n_prompt_ids == w->started->n_prompt && w->started->n_prompt > 0);
    stream_free(w);
    q.tools_json = (char *)TWO_TOOLS;
    q.constraint = CONSTRAINT(TOOLS);
    check_and_forget(&b, &q);
    q.tool_choice = TOOL_CHOICE(TOOL_REQUIRED);
    q.parallel_tool_calls = true;
    check_and_forget(&b, &q);
    q.constraint = CONSTRAINT(NONE);
    q.tool_choice = TOOL_CHOICE(TOOL_NONE); /* the stop is a marker */
    q.parse_tool_calls = false;
    q.tools_json = "";
    w = check_all(&b, &q);
    assert_string_equal(w->done->finish, "stop");
    stream_free(w);
    q.tool_choice = TOOL_CHOICE(TOOL_AUTO);
    q.messages_json = (char *)ANSWERED; /* the reply is the result's own text */
    check_and_forget(&b, &q);
    bench_close(&b);
}

#define CALLS_BEGIN "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] %}"
#define CALLS_END   "{% endfor %}{% endfor %}x"

/* Calls that come whole, calls that stream, and those without markers. */
static void calls_of_every_syntax_go_on(void **state)
{
    static const char *const templates[] = {
        CALLS_BEGIN "<|tool_call_start|>[{{ c.function.name }}()]<|tool_call_end|>" CALLS_END,
        CALLS_BEGIN "[TOOL_CALLS]{{ c.function.name }}[ARGS]{}" CALLS_END,
        "{% if tools %}{% endif %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{\"name\": \"{{ c.function.name }}\", \"parameters\": {}}" CALLS_END,
        CALLS_BEGIN "<start_function_call>call:{{ c.function.name }}{}<end_function_call>" CALLS_END,
    };
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        char dir[] = "/tmp/shoal-calls-XXXXXX";
        bench b;
        template_folder_make(dir, templates[i]);
        bench_open(&b, dir);
        Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
        Shoal__V1__Sampling s = warm(1);
        q.messages_json = "[{\"role\":\"user\",\"content\":\"hi\"}]";
        q.tools_json = (char *)TWO_TOOLS;
        q.sampling = &s;
        q.max_tokens = 60;
        q.constraint = CONSTRAINT(TOOLS);
        q.tool_choice = TOOL_CHOICE(TOOL_NAMED);
        q.tool_name = "switch_on";
        stream *w = check_all(&b, &q);
        assert_int_equal(count_kind(w, 'n'), 1);
        assert_string_equal(w->done->finish, "tool_calls");
        stream_free(w);
        q.tool_choice = TOOL_CHOICE(TOOL_REQUIRED);
        q.parallel_tool_calls = true;
        check_and_forget(&b, &q);
        bench_close(&b);
        template_folder_remove(dir);
    }
}

/* The prompt ends in a thought, and an answer in a form follows it: prompt_ids and in_thought stand for the
 * messages, whatever these would give now. */
static void thoughts_and_their_prompts_go_on(void **state)
{
    char dir[] = "/tmp/shoal-think-XXXXXX";
    bench b;
    template_folder_make(dir, "{{ messages[0].content }}<think>");
    bench_open(&b, dir);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__Sampling s = warm(2);
    Shoal__V1__LogitBias bias[4], *pb[4];
    static char *choices[] = {"yes", "no"};
    q.messages_json = "[{\"role\":\"user\",\"content\":\"Is it warm?\"}]";
    q.sampling = &s;
    q.max_tokens = 40;
    stream *w = check_all(&b, &q); /* it never ends its thought */
    assert_true(w->started->in_thought && count_kind(w, 'r') > 10 && count_kind(w, 't') == 0);
    kept k = w->after[w->n_messages / 2];
    q.messages_json =
        "[{\"role\":\"user\",\"content\":\"It is another day now, and the prompt would be longer.\"}]";
    check_cut(&b, &q, w, &k);
    stream_free(w);
    q.constraint = CONSTRAINT(CHOICES);
    q.choices = choices;
    q.n_choices = 2;
    s.temperature = 2;
    for (int i = 0; i < 4; i++) { /* what the closing marker is made of */
        bias[i] = (Shoal__V1__LogitBias)SHOAL__V1__LOGIT_BIAS__INIT;
        bias[i].id = (int32_t)(3 + (uint8_t) "</>k"[i]);
        bias[i].bias = 3;
        pb[i] = &bias[i];
    }
    s.bias = pb;
    s.n_bias = 4;
    check_and_forget(&b, &q);
    bench_close(&b);
    template_folder_remove(dir);
}

/* ---- what is refused ---------------------------------------------------------------------------------- */

static void refused(bench *b, const Shoal__V1__GenerateRequest *q, int status, const char *part)
{
    stream *s = ask(b, 1, q);
    if (s->status != status || !strstr(s->message, part))
        fail_msg("got %s \"%s\", wanted %s with \"%s\"", grpc_status_name(s->status), s->message,
                 grpc_status_name(status), part);
    assert_int_equal(s->now.n_ids, 0);
    stream_free(s);
}

static void what_no_stream_said_is_refused(void **state)
{
    bench b;
    bench_open(&b, HOME);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.messages_json = (char *)KITCHEN;
    q.max_tokens = 96;
    q.parse_tool_calls = true;
    stream *w = ask(&b, 0, &q);
    kept end = w->after[w->n_messages - 1], half = {.n_ids = end.n_ids / 2, .prob_sum = 0.5};
    Shoal__V1__GenerateRequest r = to_resume(&q, w, &half);
    r.resume_bytes = 100000;
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "resume_bytes");
    r = to_resume(&q, w, &end);
    r.resume_bytes++;
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "resume_bytes"); /* it has ended already */
    for (size_t i = 0, at = 0; i < w->now.n_units; at += w->units[i++].len) {
        if (w->units[i].kind != 'n') continue;
        r.resume_bytes = at + 1; /* within a name */
        refused(&b, &r, GRPC_INVALID_ARGUMENT, "resume_bytes");
    }
    r = to_resume(&q, w, &half);
    r.resume_ids[1] = -5;
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "-5");
    r.n_resume_ids = 0;
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "resume_prob_sum");
    r.resume_prob_sum = 0;
    r.resume_bytes = 4; /* of nothing */
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "resume_bytes");
    r = q;
    r.in_thought = true;
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "prompt_ids");
    r = to_resume(&q, w, &(kept){0});
    r.in_thought = true;
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "does not think");
    r = to_resume(&q, w, &(kept){0});
    r.messages_json = "";
    r.text = "hello";
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "prompt_ids");
    r = to_resume(&q, w, &(kept){.n_ids = 1});
    r.resume_ids[1] = 5;
    r.max_tokens = 1u << 30;
    refused(&b, &r, GRPC_OUT_OF_RANGE, "has room for");
    r.prompt_ids[0] = 1 << 29;
    refused(&b, &r, GRPC_INVALID_ARGUMENT, "of the prompt");
    stream_free(w);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_model_goes_on),
        cmocka_unit_test(sources_and_searches_go_on),
        cmocka_unit_test(stop_strings_go_on),
        cmocka_unit_test(forms_go_on),
        cmocka_unit_test(the_home_models_calls_go_on),
        cmocka_unit_test(calls_of_every_syntax_go_on),
        cmocka_unit_test(thoughts_and_their_prompts_go_on),
        cmocka_unit_test(what_no_stream_said_is_refused),
    };
    return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
