/* Bodies that take long to unpack or to parse: the thread pool does it, or the loop a slice a turn; others
 * are served meanwhile, and what comes of them is the same. */
#define _GNU_SOURCE
#include "flood_world.h"

#include <nghttp2/nghttp2.h>

#include "base/proto_wire.h"
#include "ingress/pool_job.h"
#include "wire/coding.h"
#include "grpc/grpc_frame.h"

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

/* Requests of other dialects are written anew, and what was written is not parsed. */
static void long_bodies_of_other_dialects_are_parsed_once(void **state)
{
    static const struct {
        const char *path, *begin, *end;
    } FORMS[] = {
        {"/api/chat", "{\"model\":\"slow\",\"messages\":[{\"role\":\"user\",\"content\":\"", "\"}]}"},
        {"/api/generate", "{\"model\":\"slow\",\"prompt\":\"", "\"}"},
        {"/api/embed", "{\"model\":\"slow\",\"input\":\"", "\"}"},
        {"/completion", "{\"model\":\"slow\",\"prompt\":\"", "\"}"},
        {"/apply-template", "{\"model\":\"slow\",\"messages\":[{\"role\":\"user\",\"content\":\"", "\"}]}"},
    };
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        world w;
        peer p;
        buf body = {0};
        world_open(&w, &(gateway_config){.limits.max_body_bytes = 8u << 20});
        world_put(&w, "slow/0", REPLICA_FAILED);
        buf_puts(&body, FORMS[i].begin);
        while (body.len < 4 * MUCH) buf_puts(&body, "abcdefgh ");
        buf_puts(&body, FORMS[i].end);
        peer_dial(&w, &p);
        post(&p, FORMS[i].path, "", &body);
        WORLD_UNTIL(&w, peer_has(&p, "HTTP/1.1 "));
        if (!peer_has(&p, "HTTP/1.1 503")) fail_msg("%s: %.*s", FORMS[i].path, (int)p.got.len, p.got.data);
        if (loop_work_get()->max_bytes > TURN_BYTES_MAX) fail_msg("%s: it was parsed again", FORMS[i].path);
        buf_done(&body);
        world_close(&w);
    }
}

/* Where a name of a session could be in it. */
static void a_long_body_is_parsed_once(void **state)
{
    static const char *const MORE[] = {"}],\"user\":\"\\u00e9\"}", "}],\"session\":\"\"}",
                                       "}],\"session\":7}"};
    for (size_t i = 0; i < sizeof MORE / sizeof *MORE; i++) {
        world w;
        peer p;
        buf body = {0};
        world_open(&w, &(gateway_config){.limits.max_body_bytes = 8u << 20});
        world_put(&w, "slow/0", REPLICA_FAILED);
        put_texts(&body, 4 * MUCH, "\"");
        buf_puts(&body, MORE[i]);
        peer_dial(&w, &p);
        post(&p, "/v1/chat/completions", "", &body);
        WORLD_UNTIL(&w, peer_has(&p, "HTTP/1.1 "));
        assert_in_range(loop_work_get()->max_bytes, 1, TURN_BYTES_MAX);
        buf_done(&body);
        world_close(&w);
    }
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
    static const char *const paths[] = {"/v1/chat/completions",
                                        "/v1/completions",
                                        "/v1/responses",
                                        "/v1/embeddings",
                                        "/v1/classify",
                                        "/v1/rerank",
                                        "/v1/process",
                                        "/api/chat",
                                        "/api/generate",
                                        "/api/embed",
                                        "/api/show",
                                        "/completion",
                                        "/tokenize",
                                        "/v1/collections",
                                        "/v1/vector_stores",
                                        "/v1/models/load"};
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

/* ---- gRPC ------------------------------------------------------------------------------------------- */

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Bytes of DATA that the server allows on this stream, or (0) on the connection. */
static size_t window_of(const peer *p, unsigned stream)
{
    enum { SETTINGS_FIRST_WINDOW = 4, WINDOW_UPDATE = 8 };
    size_t window = 65535;
    for (size_t at = 0; at + H2_HEAD <= p->got.len;) {
        const uint8_t *f = (const uint8_t *)p->got.data + at, *bytes = f + H2_HEAD;
        size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        if (at + H2_HEAD + n > p->got.len) break;
        if (f[3] == WINDOW_UPDATE && u32_at(f + 5) == stream) window += u32_at(bytes);
        for (size_t i = 0; f[3] == H2_SETTINGS && stream && i + 6 <= n; i += 6)
            if (bytes[i + 1] == SETTINGS_FIRST_WINDOW) window += u32_at(bytes + i + 2) - 65535;
        at += H2_HEAD + n;
    }
    return window;
}

static void put_fields(buf *out, nghttp2_hd_inflater *hd, const uint8_t *block, size_t n)
{
    for (int flags = 0; n > 0 && !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
        nghttp2_nv nv;
        ssize_t used = nghttp2_hd_inflate_hd2(hd, &nv, &flags, block, n, 1);
        assert_true(used >= 0);
        block += used;
        n -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            buf_printf(out, "%.*s: %.*s\n", (int)nv.namelen, nv.name, (int)nv.valuelen, nv.value);
    }
    nghttp2_hd_inflate_end_headers(hd);
}

/* Do the heads and trailers that came have this line, or a part of one? */
static bool h2_has(const peer *p, const char *text)
{
    nghttp2_hd_inflater *hd;
    buf fields = {0};
    assert_int_equal(nghttp2_hd_inflate_new(&hd), 0);
    for (size_t at = 0; at + H2_HEAD <= p->got.len;) {
        const uint8_t *f = (const uint8_t *)p->got.data + at;
        size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        if (at + H2_HEAD + n > p->got.len) break;
        if (f[3] == H2_HEADERS) put_fields(&fields, hd, f + H2_HEAD, n);
        at += H2_HEAD + n;
    }
    bool has = fields.len && memmem(fields.data, fields.len, text, strlen(text));
    nghttp2_hd_inflate_del(hd);
    buf_done(&fields);
    return has;
}

/* Stream 1 of a new connection: one message, as it is or packed. It returns when all has been sent. */
static void grpc_post_frame(world *w, peer *p, const char *path, coding c, const buf *message)
{
    enum { FRAME = 16384 };
    buf body = {0}, head = {0};
    uint8_t first[GRPC_FRAME_HEAD];
    grpc_frame_head(first, message->len, c != CODING_NONE);
    buf_append(&body, first, sizeof first);
    buf_append(&body, message->data, message->len);
    h2_put_header(&head, ":method", "POST");
    h2_put_header(&head, ":scheme", "http");
    h2_put_header(&head, ":path", path);
    h2_put_header(&head, ":authority", "localhost");
    h2_put_header(&head, "content-type", "application/grpc");
    if (c) h2_put_header(&head, "grpc-encoding", coding_name(c));
    loop_work_reset(); /* the test itself packs on this thread */
    h2_dial(w, p);
    h2_put_frame(&p->out, H2_HEADERS, H2_END_HEADERS, 1, head.data, head.len);
    WORLD_UNTIL(w, p->got.len > 0);
    for (size_t at = 0; at < body.len; at += FRAME) {
        size_t n = body.len - at < FRAME ? body.len - at : FRAME;
        WORLD_UNTIL(w, p->eof || (window_of(p, 0) >= at + n && window_of(p, 1) >= at + n));
        h2_put_frame(&p->out, H2_DATA, at + n == body.len ? H2_END_STREAM : 0, 1, body.data + at, n);
    }
    WORLD_UNTIL(w, p->eof || p->out_at == p->out.len);
    buf_done(&head);
    buf_done(&body);
}

static void grpc_post(world *w, peer *p, const char *path, coding c, const buf *message)
{
    buf packed = {0};
    if (c) assert_int_equal(coding_pack(c, message->data, message->len, &packed), 0);
    grpc_post_frame(w, p, path, c, c ? &packed : message);
    buf_done(&packed);
}

static void put_texts_proto(buf *out, size_t n)
{
    buf_puts(out, "\x0a\x04slow");
    while (out->len < n) proto_put_bytes(out, 2, "abcdefghijklmnopqrstuvwxyz", 26);
}

static void put_json_proto(buf *out, size_t n)
{
    buf more = {0};
    buf_puts(&more, "{\"x\":[0");
    while (more.len < n) buf_puts(&more, ",\"abcdefghijklmnopqrstuvwxyz\"");
    buf_puts(&more, "]}");
    put_texts_proto(out, 100);
    proto_put_bytes(out, 100, more.data, more.len);
    buf_done(&more);
}

static void long_grpc_messages_are_read_beside_the_loop(void **state)
{
    static const struct {
        void (*put)(buf *out, size_t n);
        coding c;
    } FORMS[] = {
        {put_texts_proto, CODING_NONE}, {put_texts_proto, CODING_GZIP}, {put_json_proto, CODING_NONE}};
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        world w;
        peer p, other;
        buf message = {0};
        world_open(&w, &(gateway_config){.limits.max_body_bytes = 8u << 20});
        world_put(&w, "slow/0", REPLICA_FAILED);
        FORMS[i].put(&message, 4 * MUCH);
        grpc_post(&w, &p, "/shoal.v1.Shoal/Embed", FORMS[i].c, &message);
        peer_dial(&w, &other);
        peer_puts(&other, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        WORLD_UNTIL(&w, peer_has(&other, "{\"status\":\"ok\"}"));
        WORLD_UNTIL(&w, h2_has(&p, "grpc-message: "));
        assert_in_range(loop_work_get()->max_bytes, 1, MUCH);
        buf_done(&message);
        world_close(&w);
    }
}

static void a_long_grpc_message_is_refused_as_a_short_one(void **state)
{
    for (int i = 0; i < 2; i++) {
        world w;
        peer p;
        buf message = {0};
        world_open(&w, &(gateway_config){0});
        put_texts_proto(&message, i ? MUCH : 100);
        proto_put_bytes(&message, 1, "\xff", 1);
        grpc_post(&w, &p, "/shoal.v1.Shoal/Embed", CODING_NONE, &message);
        WORLD_UNTIL(&w, h2_has(&p, "grpc-message: model: is not UTF-8"));
        buf_done(&message);
        world_close(&w);
    }
}

/* 5 KiB that become 5 MiB, where 4 are allowed; and bytes that are no gzip. */
static void a_packed_grpc_message_is_refused_in_the_pool(void **state)
{
    static const char *const WHY[] = {"the message is too large", "malformed or cut short"};
    for (int i = 0; i < 2; i++) {
        world w;
        peer p;
        buf message = {0}, packed = {0};
        world_open(&w, &(gateway_config){0});
        while (message.len < 5u << 20) buf_append(&message, (char[4096]){0}, 4096);
        assert_int_equal(coding_pack(CODING_GZIP, message.data, message.len, &packed), 0);
        if (i) memset(packed.data, 'x', packed.len);
        grpc_post_frame(&w, &p, "/shoal.v1.Shoal/Embed", CODING_GZIP, &packed);
        WORLD_UNTIL(&w, h2_has(&p, WHY[i]));
        assert_in_range(loop_work_get()->max_bytes, 1, MUCH);
        buf_done(&packed);
        buf_done(&message);
        world_close(&w);
    }
}

static void grpc_clients_and_the_server_may_go_while_messages_are_read(void **state)
{
    enum { N = 12 };
    for (int first = 0; first < 2; first++) {
        world w;
        static peer p[N];
        buf message = {0};
        world_open(&w, &(gateway_config){0});
        put_texts_proto(&message, MUCH);
        for (int i = 0; i < N; i++) grpc_post(&w, &p[i], "/shoal.v1.Shoal/Embed", CODING_NONE, &message);
        for (int i = 0; i < N && !first; i++) peer_close(&w, &p[i]);
        if (!first) WORLD_UNTIL(&w, w.gw->n_requests == 0 && http_server_connections(w.gw->server) == 0);
        buf_done(&message);
        world_close(&w);
    }
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_body_is_parsed_beside_the_loop),
        cmocka_unit_test(a_long_body_is_parsed_once),
        cmocka_unit_test(long_bodies_of_other_dialects_are_parsed_once),
        cmocka_unit_test(what_is_wrong_with_a_long_body_is_said_as_of_a_short_one),
        cmocka_unit_test(clients_may_leave_while_their_bodies_are_parsed),
        cmocka_unit_test(a_server_that_stops_while_bodies_are_parsed_ends),
        cmocka_unit_test(values_with_many_parts_are_freed_in_the_pool),
        cmocka_unit_test(a_body_that_grows_more_than_a_hundredfold_is_refused),
        cmocka_unit_test(a_packed_upload_is_unpacked_a_slice_a_turn),
        cmocka_unit_test(long_grpc_messages_are_read_beside_the_loop),
        cmocka_unit_test(a_long_grpc_message_is_refused_as_a_short_one),
        cmocka_unit_test(a_packed_grpc_message_is_refused_in_the_pool),
        cmocka_unit_test(grpc_clients_and_the_server_may_go_while_messages_are_read),
        cmocka_unit_test(a_websockets_messages_keep_their_order_around_a_long_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
