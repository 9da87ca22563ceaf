/* A whole gateway over two workers that run one file on different engines: what a client sees when the one that
 * began its answer leaves. The workers are in the same loop, and say what the test lets them say. */
#define _GNU_SOURCE
#include "flood_world.h"

#include "grpc/grpc.h"
#include "shoal/v1/worker.pb-c.h"

enum { N_WORKERS = 2 };

typedef struct fake_worker {
    grpc_server *server;
    const char *identity, *letters;
    char address[128];
    grpc_call *call; /* the generation that waits for its letters */
} fake_worker;

typedef struct house {
    world w;
    char dir[64];
    fake_worker workers[N_WORKERS];
} house;

static void send_message(grpc_call *c, const ProtobufCMessage *m)
{
    uint8_t bytes[1024];
    assert_true(protobuf_c_message_get_packed_size(m) <= sizeof bytes);
    grpc_call_send(c, bytes, protobuf_c_message_pack(m, bytes));
}

static void describe(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    const fake_worker *f = user;
    Shoal__V1__ModelInfo m = SHOAL__V1__MODEL_INFO__INIT;
    m.name = "m";
    m.task = "generate";
    m.digest = "d";
    m.identity = (char *)f->identity;
    m.exact_resume = true;
    m.has_chat_template = true;
    m.n_ctx = 128;
    m.n_parallel = 4;
    send_message(c, &m.base);
    grpc_call_end(c, GRPC_OK, NULL);
}

static void stats(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    Shoal__V1__Stats m = SHOAL__V1__STATS__INIT;
    send_message(c, &m.base);
    grpc_call_end(c, GRPC_OK, NULL);
}

static void client_left(void *user, grpc_call *c)
{
    ((fake_worker *)user)->call = NULL;
}

static void generate(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    fake_worker *f = user;
    int32_t prompt = 7;
    Shoal__V1__Started s = SHOAL__V1__STARTED__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    Shoal__V1__GenerateRequest *q = shoal__v1__generate_request__unpack(NULL, n, msg);
    assert_int_equal(q->n_resume_ids, 0); /* nothing of one engine's goes to the other */
    shoal__v1__generate_request__free_unpacked(q, NULL);
    s.n_prompt = 1;
    s.max_tokens = 16;
    s.prompt_ids = &prompt;
    s.n_prompt_ids = 1;
    ev.started = &s;
    grpc_call_on_cancel(c, client_left, f);
    send_message(c, &ev.base);
    f->call = c;
}

static void say(fake_worker *f)
{
    int32_t id = f->letters[0];
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    d.ids = &id;
    d.n_ids = 1;
    d.text = (ProtobufCBinaryData){strlen(f->letters), (uint8_t *)(uintptr_t)f->letters};
    ev.delta = &d;
    send_message(f->call, &ev.base);
}

static void finish(fake_worker *f)
{
    grpc_call *c = f->call;
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    Shoal__V1__GenerateEvent ev = SHOAL__V1__GENERATE_EVENT__INIT;
    f->call = NULL;
    d.finish = "stop";
    d.n_prompt = d.n_generated = 1;
    d.queue_ms = 1;
    d.prefill_ms = 2;
    d.decode_ms = 3;
    ev.done = &d;
    send_message(c, &ev.base);
    grpc_call_end(c, GRPC_OK, NULL);
}

static const grpc_method METHODS[] = {{"/shoal.v1.Worker/Describe", describe},
                                      {"/shoal.v1.Worker/GetStats", stats},
                                      {"/shoal.v1.Worker/Generate", generate}};

/* Worker i joins, and is ready when this returns. */
static void join(house *h, int i)
{
    fake_worker *f = &h->workers[i];
    char id[8];
    shoal_err err = {0};
    snprintf(id, sizeof id, "m/%d", i);
    snprintf(f->address, sizeof f->address, "unix:%s/%d", h->dir, i);
    assert_int_equal(grpc_server_new(&f->server, &h->w.loop, METHODS, 3, f, NULL, &err), 0);
    assert_int_equal(grpc_server_listen(f->server, f->address, &err), 0);
    member m = {.id = id, .generation = 1, .model = "m", .address = f->address, .state = REPLICA_STARTING};
    assert_int_equal(source_put(h->w.members, &m, NULL), 0);
    WORLD_UNTIL(&h->w, registry_get(h->w.g, id)->state == REPLICA_READY);
}

static void leave(house *h, int i)
{
    fake_worker *f = &h->workers[i];
    char id[8];
    snprintf(id, sizeof id, "m/%d", i);
    grpc_call *c = f->call;
    f->call = NULL;
    source_drop(h->w.members, id, 1);
    if (c) grpc_call_end(c, GRPC_UNAVAILABLE, "draining");
}

static void house_open(house *h)
{
    *h = (house){
        .workers = {{.identity = "sha256:d;engine=shoal;precision=file;numerics=1", .letters = "ours"},
                    {.identity = "sha256:d;engine=cuda;precision=file;numerics=1", .letters = "other"}}};
    strcpy(h->dir, "/tmp/shoal-test-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    world_open(&h->w, &(gateway_config){.failover_wait_ms = 300});
    join(h, 0);
}

static void house_close(house *h)
{
    for (int i = 0; i < N_WORKERS; i++)
        if (h->workers[i].server) grpc_server_close(h->workers[i].server, NULL, NULL);
    world_close(&h->w);
    for (int i = 0; i < N_WORKERS; i++) unlink(h->workers[i].address + 5);
    assert_int_equal(rmdir(h->dir), 0);
}

static void ask(house *h, peer *p, bool stream)
{
    char body[160];
    snprintf(
        body, sizeof body,
        "{\"model\":\"m\",\"seed\":1,\"stream\":%s,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        stream ? "true" : "false");
    peer_dial(&h->w, p);
    buf_printf(&p->out,
               "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               strlen(body), body);
    WORLD_UNTIL(&h->w, h->workers[0].call);
}

static void see_requests(house *h, peer *p)
{
    peer_dial(&h->w, p);
    peer_puts(p, "GET /v1/requests HTTP/1.1\r\nHost: localhost\r\n\r\n");
    WORLD_UNTIL(&h->w, peer_has(p, "\"data\":["));
}

static void an_answer_that_nobody_has_seen_is_made_anew_and_marked(void **state)
{
    house h;
    peer p, look;
    house_open(&h);
    ask(&h, &p, false);
    say(&h.workers[0]);
    join(&h, 1);
    leave(&h, 0);
    WORLD_UNTIL(&h.w, h.workers[1].call);
    say(&h.workers[1]);
    finish(&h.workers[1]);
    WORLD_UNTIL(&h.w, peer_has(&p, "\"content\":\"other\""));
    assert_true(peer_has(&p, "HTTP/1.1 200"));
    assert_true(peer_has(&p, "x-shoal-restarted: leaves"));
    assert_false(peer_has(&p, "ours"));
    see_requests(&h, &look);
    assert_true(peer_has(&look, "\"moves\":1"));
    assert_true(peer_has(&look, "\"restarts\":1"));
    /* The request under its sender's span, both attempts, and what the one that answered did. */
    assert_true(peer_has(&look, "\"parent\":\"00f067aa0ba902b7\",\"name\":\"chat_completions\""));
    assert_true(peer_has(&look, "\"replica\":\"m/0\",\"why\":\"endpoint\""));
    assert_true(peer_has(&look, "\"fault\":\"leaves\""));
    assert_true(peer_has(&look, "\"replica\":\"m/1\",\"why\":\"endpoint\""));
    assert_int_equal(peer_count(&look, "\"name\":\"generate\""), 2);
    assert_int_equal(peer_count(&look, "\"name\":\"queue\""), 1);
    assert_int_equal(peer_count(&look, "\"name\":\"prefill\""), 1);
    assert_int_equal(peer_count(&look, "\"name\":\"decode\""), 1);
    house_close(&h);
}

static void a_stream_without_a_token_yet_is_made_anew(void **state)
{
    house h;
    peer p;
    house_open(&h);
    ask(&h, &p, true);
    WORLD_UNTIL(&h.w, peer_has(&p, "\"role\":\"assistant\""));
    join(&h, 1);
    leave(&h, 0);
    WORLD_UNTIL(&h.w, h.workers[1].call);
    say(&h.workers[1]);
    finish(&h.workers[1]);
    WORLD_UNTIL(&h.w, peer_has(&p, "[DONE]"));
    assert_int_equal(peer_count(&p, "\"role\":\"assistant\""), 1);
    assert_int_equal(peer_count(&p, "\"content\":\"other\""), 1);
    house_close(&h);
}

/* Nothing that was sent is contradicted. */
static void a_stream_that_was_heard_ends_and_says_why(void **state)
{
    house h;
    peer p;
    house_open(&h);
    ask(&h, &p, true);
    say(&h.workers[0]);
    WORLD_UNTIL(&h.w, peer_has(&p, "\"content\":\"ours\""));
    join(&h, 1);
    leave(&h, 0);
    WORLD_UNTIL(&h.w, peer_has(&p, "\"error\""));
    assert_true(peer_has(&p, "\"code\":\"restart_required\""));
    assert_false(peer_has(&p, "other\""));
    assert_false(peer_has(&p, "[DONE]"));
    assert_null(h.workers[1].call);
    house_close(&h);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_nobody_has_seen_is_made_anew_and_marked),
        cmocka_unit_test(a_stream_without_a_token_yet_is_made_anew),
        cmocka_unit_test(a_stream_that_was_heard_ends_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
