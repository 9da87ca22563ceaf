/* Bodies that take long to unpack or to parse: the thread pool does it, or the loop a slice a turn; others
 * are served meanwhile, and what comes of them is the same. */
#define _GNU_SOURCE
#include "flood_world.h"

#include "gateway/pool_job.h"
#include "wire/coding.h"

enum { MUCH = 900 << 10, TURN_BYTES_MAX = 2 << 20 };

/* {"model":"slow","input":["aaaa",...]} of about n bytes */
static void put_texts(buf *out, size_t n, const char *end)
{
    buf_puts(out, "{\"model\":\"slow\",\"messages\":[{\"role\":\"user\",\"content\":\"");
    for (size_t i = out->len; i < n; i++) buf_putc(out, (char)('a' + i % 26));
    buf_puts(out, end);
}

static void post(peer *p, const char *path, const char *headers, const buf *body)
{
    buf_printf(&p->out, "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n", path, headers,
               body->len);
    buf_append(&p->out, body->data, body->len);
}

static void send_all(peer *p)
{
    while (p->out_at < p->out.len) peer_move(p);
}

static void a_long_body_is_parsed_beside_the_loop(void **state)
{
    world w;
    peer p;
    buf body = {0};
    world_open(&w, &(gateway_config){.limits.max_body_bytes = 8u << 20});
    put_texts(&body, 4 * MUCH, "\"}]}");
    peer_dial(&w, &p);
    post(&p, "/v1/chat/completions", "x-shoal-deadline-ms: 600000\r\n", &body);
    WORLD_UNTIL(&w, w.gw->n_admitted == 1);
    WORLD_UNTIL(&w, w.gw->requests->model[0] || w.gw->requests->work); /* it waits for its worker */
    world_put(&w, "slow/0", REPLICA_FAILED);
    WORLD_UNTIL(&w, peer_has(&p, "worker_unavailable"));
    assert_in_range(loop_work_get()->max_bytes, 1, TURN_BYTES_MAX);
    buf_done(&body);
    world_close(&w);
}

static void what_is_wrong_with_a_long_body_is_said_as_of_a_short_one(void **state)
{
    world w;
    peer p[2];
    world_open(&w, &(gateway_config){0});
    for (int i = 0; i < 2; i++) {
        buf body = {0};
        put_texts(&body, i ? MUCH : 100, "\"}]");
        peer_dial(&w, &p[i]);
        post(&p[i], "/v1/chat/completions", "", &body);
        WORLD_UNTIL(&w, peer_has(&p[i], "HTTP/1.1 400"));
        assert_true(peer_has(&p[i], "body: not JSON: line 1 column"));
        buf_done(&body);
    }
    world_close(&w);
}

/* n clients whose long bodies are in the pool, some of them at least. */
static void post_long_bodies(world *w, peer *p, int n)
{
    buf body = {0};
    put_texts(&body, MUCH, "\"}]}");
    for (int i = 0; i < n; i++) {
        peer_dial(w, &p[i]);
        post(&p[i], "/v1/chat/completions", "", &body);
    }
    WORLD_UNTIL(w, w->gw->n_admitted > 0);
    buf_done(&body);
}

static void clients_may_leave_while_their_bodies_are_parsed(void **state)
{
    enum { N = 24 };
    world w;
    static peer p[N];
    world_open(&w, &(gateway_config){0});
    post_long_bodies(&w, p, N);
    for (int i = 0; i < N; i++) {
        setsockopt(p[i].fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        peer_close(&w, &p[i]);
    }
    WORLD_UNTIL(&w, w.gw->n_requests == 0 && http_server_connections(w.gw->server) == 0);
    world_close(&w);
}

static void a_server_that_stops_while_bodies_are_parsed_ends(void **state)
{
    enum { N = 8 };
    world w;
    static peer p[N];
    world_open(&w, &(gateway_config){0});
    post_long_bodies(&w, p, N);
    world_close(&w); /* the loop ends, with nothing left in it */
}

static int n_dropped;

static void drop_and_count(void *loop, json_t *v)
{
    n_dropped++;
    pool_job_drop_json(loop, v);
}

static void post_parts(world *w, const char *path, size_t n_parts)
{
    peer p;
    buf body = {0};
    buf_puts(&body, "{\"model\":\"slow\",\"input\":[[]");
    for (size_t i = 1; i < n_parts; i++) buf_puts(&body, ",[]");
    buf_puts(&body, "]}");
    peer_dial(w, &p);
    post(&p, path, "", &body);
    WORLD_UNTIL(w, peer_has(&p, "HTTP/1.1 "));
    peer_close(w, &p);
    buf_done(&body);
}

/* 4 MiB of "[]," take the loop 50 ms to free. */
static void values_with_many_parts_are_freed_in_the_pool(void **state)
{
    static const char *const paths[] = {
        "/v1/chat/completions", "/v1/completions",  "/v1/responses",   "/v1/embeddings",
        "/v1/classify",         "/v1/rerank",       "/v1/process",   "/api/chat",    "/api/generate",
        "/api/embed",           "/api/show",        "/completion",   "/tokenize",    "/v1/collections",
        "/v1/vector_stores",    "/v1/models/load"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        world w;
        world_open(&w, &(gateway_config){0});
        json_set_drop_large(drop_and_count, &w.loop);
        n_dropped = 0;
        post_parts(&w, paths[i], 20);
        if (n_dropped != 0) fail_msg("%s: %d small values", paths[i], n_dropped);
        post_parts(&w, paths[i], 30000);
        if (n_dropped == 0) fail_msg("%s: the loop has freed it", paths[i]);
        json_set_drop_large(NULL, NULL);
        world_close(&w);
    }
}

/* A form with a file of zeros in which every noise-th byte is another; 0: none, so that a kilobyte stands for
 * megabytes. */
static void put_packed_form(buf *out, coding c, size_t n, unsigned noise)
{
    static const char HEAD[] =
        "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nassistants\r\n"
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n";
    buf form = {0};
    uint32_t v = 1;
    buf_puts(&form, HEAD);
    size_t start = form.len;
    while (form.len < start + n) buf_append(&form, (char[4096]){0}, 4096);
    for (size_t i = start; noise && i < form.len; i += noise)
        form.data[i] = (char)((v = v * 1664525 + 1013904223) >> 24);
    buf_puts(&form, "\r\n--x--\r\n");
    assert_int_equal(coding_pack(c, form.data, form.len, out), 0);
    buf_done(&form);
}

typedef struct stored {
    char folder[64], path[96];
    gateway_config config;
} stored;

static const gateway_config *stored_open(stored *s)
{
    snprintf(s->folder, sizeof s->folder, "/tmp/shoal-ahead-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->path, sizeof s->path, "%s/collections.db", s->folder);
    s->config = (gateway_config){.limits.max_body_bytes = 64u << 20,
                                 .max_uploads = 8,
                                 .retrieval_path = s->path,
                                 .retrieval_bytes = 256u << 20,
                                 .retrieval_threads = 1,
                                 .retrieval_document_bytes = 64u << 20};
    return &s->config;
}

static void stored_done(stored *s)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    assert_int_equal(system(command), 0);
}

static void post_form(peer *p, const char *path, coding c, const buf *body)
{
    char headers[160];
    snprintf(headers, sizeof headers,
             "Content-Type: multipart/form-data; boundary=x\r\nContent-Encoding: %s\r\n", coding_name(c));
    post(p, path, headers, body);
}

/* At once or in pieces. */
static void a_body_that_grows_more_than_a_hundredfold_is_refused(void **state)
{
    static const char *const PATHS[] = {"/v1/score", "/v1/files"};
    world w;
    stored st;
    world_open(&w, stored_open(&st));
    for (size_t k = 0; k < 2 * sizeof PATHS / sizeof *PATHS; k++) {
        coding c = k % 2 ? CODING_ZSTD : CODING_GZIP;
        peer p;
        buf body = {0};
        put_packed_form(&body, c, 32u << 20, 0);
        assert_in_range(body.len, 1, (32u << 20) / 200);
        peer_dial(&w, &p);
        loop_work_reset();
        post_form(&p, PATHS[k / 2], c, &body);
        WORLD_UNTIL(&w, peer_has(&p, "\r\n\r\n") || p.eof);
        if (!peer_has(&p, "HTTP/1.1 413")) fail_msg("%s: %.*s", PATHS[k / 2], (int)p.got.len, p.got.data);
        assert_true(peer_has(&p, "unpacks to more than 100 times its length"));
        assert_in_range(loop_work_get()->max_bytes, 1, TURN_BYTES_MAX);
        peer_close(&w, &p);
        buf_done(&body);
    }
    world_close(&w);
    stored_done(&st);
}

static void a_packed_upload_is_unpacked_a_slice_a_turn(void **state)
{
    world w;
    stored st;
    peer p, other;
    buf body = {0};
    world_open(&w, stored_open(&st));
    put_packed_form(&body, CODING_ZSTD, 32u << 20, 60);
    assert_in_range((32u << 20) / body.len, 5, 95);
    peer_dial(&w, &p);
    loop_work_reset();
    post_form(&p, "/v1/files", CODING_ZSTD, &body);
    peer_dial(&w, &other);
    peer_puts(&other, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    WORLD_UNTIL(&w, peer_has(&other, "{\"status\":\"ok\"}"));
    WORLD_UNTIL(&w, peer_has(&p, "\r\n\r\n"));
    if (!peer_has(&p, "\"bytes\":33554432")) fail_msg("%.*s", (int)p.got.len, p.got.data);
    assert_in_range(loop_work_get()->max_bytes, 256 << 10, TURN_BYTES_MAX);
    buf_done(&body);
    world_close(&w);
    stored_done(&st);
}

static void a_websockets_messages_keep_their_order_around_a_long_one(void **state)
{
    world w;
    peer p;
    buf text = {0};
    world_open(&w, &(gateway_config){0});
    ws_dial(&w, &p, NULL);
    loop_work_reset();
    buf_puts(&text, "{\"id\":\"long\",\"path\":\"/v1/embeddings\",\"body\":{\"input\":\"");
    for (size_t i = 0; i < MUCH; i++) buf_putc(&text, 'x');
    buf_puts(&text, "\"}}");
    put_frame(&p.out, 0x81, text.data, text.len);
    ws_say(&p, "{\"id\":\"short\",\"path\":\"/healthz\"}");
    WORLD_UNTIL(&w, peer_has(&p, "\"id\":\"short\""));
    const char *first = memmem(p.got.data, p.got.len, "\"id\":\"long\"", 11);
    assert_non_null(first);
    assert_true(first < (char *)memmem(p.got.data, p.got.len, "\"id\":\"short\"", 12));
    assert_in_range(loop_work_get()->max_bytes, 1, TURN_BYTES_MAX);
    peer_close(&w, &p);
    ws_dial(&w, &p, NULL); /* and one that leaves meanwhile */
    put_frame(&p.out, 0x81, text.data, text.len);
    send_all(&p);
    for (int i = 0; i < 40; i++) world_turn(&w);
    peer_close(&w, &p);
    buf_done(&text);
    world_close(&w);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_body_is_parsed_beside_the_loop),
        cmocka_unit_test(what_is_wrong_with_a_long_body_is_said_as_of_a_short_one),
        cmocka_unit_test(clients_may_leave_while_their_bodies_are_parsed),
        cmocka_unit_test(a_server_that_stops_while_bodies_are_parsed_ends),
        cmocka_unit_test(values_with_many_parts_are_freed_in_the_pool),
        cmocka_unit_test(a_body_that_grows_more_than_a_hundredfold_is_refused),
        cmocka_unit_test(a_packed_upload_is_unpacked_a_slice_a_turn),
        cmocka_unit_test(a_websockets_messages_keep_their_order_around_a_long_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
