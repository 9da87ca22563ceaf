/* HTTP/2 over real sockets: a nghttp2 client for the polite part, hand-made frames for the rest. */
#include "wire_fixture.h"

#include <nghttp2/nghttp2.h>

/* ---- a polite client ------------------------------------------------------------------------- */

enum { MAX_SEEN = 32 };

typedef struct seen {
    int32_t id;
    int status;
    uint32_t error;
    bool closed;
    buf body;
    char trailer[16];
    const char *upload;
    size_t n_upload;
} seen;

typedef struct client {
    int fd;
    nghttp2_session *h2;
    seen streams[MAX_SEEN];
    size_t n;
    bool goaway;
    size_t n_continue;
} client;

static seen *find(client *c, int32_t id)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->streams[i].id == id) return &c->streams[i];
    return NULL;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    seen *s = find(user, f->hd.stream_id);
    if (strcmp((const char *)name, ":status") == 0) {
        s->status = atoi((const char *)value);
        if (s->status == 100) ((client *)user)->n_continue++;
    }
    if (strcmp((const char *)name, "x-sum") == 0)
        snprintf(s->trailer, sizeof s->trailer, "%s", (const char *)value);
    return 0;
}

static int on_chunk(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *user)
{
    return buf_append(&find(user, id)->body, data, n);
}

static int on_close(nghttp2_session *h2, int32_t id, uint32_t error, void *user)
{
    seen *s = find(user, id);
    s->closed = true;
    s->error = error;
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    if (f->hd.type == NGHTTP2_GOAWAY) ((client *)user)->goaway = true;
    return 0;
}

static ssize_t read_upload(nghttp2_session *h2, int32_t id, uint8_t *to, size_t max, uint32_t *flags,
                           nghttp2_data_source *source, void *user)
{
    seen *s = find(user, id);
    size_t n = s->n_upload < max ? s->n_upload : max;
    memcpy(to, s->upload, n);
    s->upload += n;
    s->n_upload -= n;
    if (s->n_upload == 0) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void client_open(client *c, const fixture *f, uint32_t window)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *opt;
    memset(c, 0, sizeof *c);
    c->fd = fixture_connect(f);
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_option_new(&opt);
    nghttp2_option_set_no_http_messaging(opt, 1); /* it must be able to say what is forbidden */
    nghttp2_session_client_new2(&c->h2, cb, c, opt);
    nghttp2_settings_entry s = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
    nghttp2_submit_settings(c->h2, 0, &s, 1);
    nghttp2_option_del(opt);
    nghttp2_session_callbacks_del(cb);
}

static void client_send(client *c)
{
    const uint8_t *bytes;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(c->h2, &bytes)) > 0)
        send_bytes(c->fd, (const char *)bytes, (size_t)n);
}

/* One read; false at the end of the connection. */
static bool client_turn(client *c)
{
    uint8_t bytes[16384];
    client_send(c);
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    assert_int_equal(nghttp2_session_mem_recv(c->h2, bytes, (size_t)n), n);
    client_send(c);
    return true;
}

static void client_close(client *c)
{
    nghttp2_session_del(c->h2);
    for (size_t i = 0; i < c->n; i++) buf_done(&c->streams[i].body);
    close(c->fd);
}

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

/* extra: one more header or NULL names; upload: body or NULL. */
static seen *request(client *c, const char *method, const char *path, const char *name, const char *value,
                     const char *upload, size_t n_upload)
{
    nghttp2_nv h[] = {nv(":method", method), nv(":scheme", "http"), nv(":path", path), nv(":authority", "x"),
                      nv(name ? name : "x", value ? value : "y")};
    nghttp2_data_provider body = {.read_callback = read_upload};
    seen *s = &c->streams[c->n++];
    s->upload = upload;
    s->n_upload = n_upload;
    s->id = nghttp2_submit_request(c->h2, NULL, h, name ? 5 : 4, upload ? &body : NULL, NULL);
    assert_true(s->id > 0);
    return s;
}

static void finish(client *c, seen *s)
{
    while (!s->closed && client_turn(c)) continue;
    assert_true(s->closed);
}

static void serves_streams_side_by_side(void **state)
{
    fixture f = {0};
    client c;
    char *upload = malloc(300000);
    memset(upload, 'u', 300000);
    fixture_start(&f, NULL, NULL);
    client_open(&c, &f, 65535);
    seen *slow = request(&c, "GET", "/slow", NULL, NULL, NULL, 0);
    seen *hello = request(&c, "GET", "/hello", NULL, NULL, NULL, 0);
    seen *echo = request(&c, "POST", "/echo", NULL, NULL, upload, 300000);
    seen *stream = request(&c, "GET", "/stream", NULL, NULL, NULL, 0);
    seen *head = request(&c, "HEAD", "/hello", NULL, NULL, NULL, 0);
    seen *big = request(&c, "GET", "/big", NULL, NULL, NULL, 0);
    seen *other = request(&c, "PUT", "/p?q=1", NULL, NULL, "b", 1);
    finish(&c, hello);
    finish(&c, slow);
    finish(&c, echo);
    finish(&c, stream);
    finish(&c, head);
    finish(&c, big);
    finish(&c, other);
    assert_string_equal(hello->body.data, "hello\n");
    assert_string_equal(slow->body.data, "slow\n");
    assert_true(echo->body.len == 300000 && echo->body.data[299999] == 'u');
    assert_string_equal(stream->body.data, "one two three");
    assert_string_equal(stream->trailer, "42");
    assert_int_equal(head->status, 200);
    assert_true(head->body.len == 0);
    assert_true(big->body.len == 200000);
    assert_string_equal(other->body.data, "PUT\n/p\nq=1\nx\n");
    client_close(&c);
    fixture_stop(&f);
    free(upload);
    assert_int_equal(atomic_load(&f.n_gone), 0);
}

static void holds_to_its_limits(void **state)
{
    http_limits l = {.max_body_bytes = 10, .max_header_bytes = 300, .max_headers = 3};
    fixture f = {0};
    client c;
    char value[400] = "";
    memset(value, 'v', sizeof value - 1);
    fixture_start(&f, &l, NULL);
    client_open(&c, &f, 65535);
    seen *body = request(&c, "POST", "/echo", NULL, NULL, "abcdefghijk", 11);
    seen *length = request(&c, "POST", "/echo", "content-length", "11", "abcdefghijk", 11);
    seen *header = request(&c, "GET", "/hello", "x-long", value, NULL, 0);
    seen *fits = request(&c, "POST", "/echo", NULL, NULL, "abcdefghij", 10);
    finish(&c, body);
    finish(&c, length);
    finish(&c, header);
    finish(&c, fits);
    assert_int_equal(body->status, 413);
    assert_int_equal(length->status, 413);
    assert_int_equal(header->status, 431);
    assert_int_equal(fits->status, 200);
    client_close(&c);
    fixture_stop(&f);
}

static void refuses_malformed_messages_on_their_stream_alone(void **state)
{
    fixture f = {0};
    client c;
    fixture_start(&f, NULL, NULL);
    client_open(&c, &f, 65535);
    seen *hop = request(&c, "GET", "/hello", "connection", "close", NULL, 0);
    seen *coding = request(&c, "POST", "/echo", "transfer-encoding", "chunked", "a", 1);
    seen *more = request(&c, "POST", "/echo", "content-length", "1", "abc", 3);
    seen *less = request(&c, "POST", "/echo", "content-length", "5", "abc", 3);
    seen *upper = request(&c, "GET", "/hello", "X-Upper", "1", NULL, 0);
    seen *split = request(&c, "GET", "/hello", "x-a", "a\r\nb: c", NULL, 0);
    seen *hosts = request(&c, "GET", "/hello", "host", "other", NULL, 0);
    seen *fine = request(&c, "GET", "/hello", "host", "x", NULL, 0);
    seen *expect = request(&c, "POST", "/echo", "expect", "100-continue", "abc", 3);
    seen *all[] = {hop, coding, more, less, split, hosts, fine, expect};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) finish(&c, all[i]);
    assert_true(hop->status != 200 && coding->status != 200 && more->status != 200 && less->status != 200);
    assert_true(split->status != 200 && hosts->status == 400);
    finish(&c, upper); /* nghttp2 sends names in lower case */
    assert_int_equal(fine->status, 200);
    assert_int_equal(expect->status, 200);
    assert_true(c.n_continue == 1);
    client_close(&c);
    fixture_stop(&f);
}

static void a_reset_tells_the_handler_once_and_spares_the_rest(void **state)
{
    fixture f = {0};
    client c;
    fixture_start(&f, NULL, NULL);
    client_open(&c, &f, 65535);
    seen *flood = request(&c, "GET", "/flood", NULL, NULL, NULL, 0);
    seen *slow = request(&c, "GET", "/slow", NULL, NULL, NULL, 0);
    while (flood->body.len < 100000) assert_true(client_turn(&c));
    nghttp2_submit_rst_stream(c.h2, 0, flood->id, NGHTTP2_CANCEL);
    client_send(&c);
    finish(&c, slow); /* which may be over already */
    assert_true(wait_for(&f.n_gone, 1));
    seen *hold = request(&c, "GET", "/hold", NULL, NULL, NULL, 0);
    while (hold->body.len < 4) assert_true(client_turn(&c));
    client_close(&c); /* leaves in the middle of an answer */
    assert_true(wait_for(&f.n_gone, 2));
    fixture_stop(&f);
    assert_int_equal(atomic_load(&f.n_gone), 2);
}

static void drops_a_client_with_a_closed_window(void **state)
{
    http_limits stall = {.write_timeout_ms = 60};
    fixture f = {0};
    client c;
    fixture_start(&f, &stall, NULL);
    client_open(&c, &f, 0);
    request(&c, "GET", "/hold", NULL, NULL, NULL, 0);
    while (client_turn(&c)) continue;
    assert_true(wait_for(&f.n_gone, 1));
    client_close(&c);
    fixture_stop(&f);
}

static void whole_answers_behind_a_closed_window_stay_few(void **state)
{
    enum { N = 30 };
    fixture f = {0};
    client c;
    fixture_start(&f, NULL, NULL);
    client_open(&c, &f, 0);
    for (int i = 0; i < N; i++) request(&c, "GET", "/big", NULL, NULL, NULL, 0);
    client_send(&c);
    assert_true(wait_for(&f.n_requests, 1));
    assert_in_range(settled(&f.n_requests), 1, 2);
    nghttp2_settings_entry open = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1u << 20};
    nghttp2_submit_settings(c.h2, 0, &open, 1);
    for (int i = 0; i < N; i++) finish(&c, &c.streams[i]);
    for (int i = 0; i < N; i++) assert_int_equal(c.streams[i].body.len, 200000);
    client_close(&c);
    fixture_stop(&f);
}

static void a_window_that_opens_byte_by_byte_is_not_waited_for(void **state)
{
    enum { MAX_DRIPS = 10000 };
    http_limits l = {.write_timeout_ms = 300}; /* at the least rate, 307 bytes */
    fixture f = {0};
    client c;
    int drips = 0;
    char bytes[4096];
    fixture_start(&f, &l, NULL);
    client_open(&c, &f, 0);
    seen *big = request(&c, "GET", "/big", NULL, NULL, NULL, 0);
    client_send(&c);
    while (recv(c.fd, bytes, sizeof bytes, MSG_DONTWAIT) != 0 && drips++ < MAX_DRIPS) {
        nghttp2_submit_window_update(c.h2, 0, big->id, 1);
        client_send(&c);
        usleep(5000);
    }
    assert_in_range(drips, 1, MAX_DRIPS - 1);
    client_close(&c);
    fixture_stop(&f);
}

/* False: this thread was late with what it had to take itself, and was given up for that. */
static bool shut_stream_was_given_up(client *c, fixture *f)
{
    seen *shut = request(c, "GET", "/hold", NULL, NULL, NULL, 0);
    for (int i = 0; i < 30 && !shut->closed; i++) {
        seen *other = request(c, "GET", "/hello", NULL, NULL, NULL, 0);
        client_send(c);
        nghttp2_submit_window_update(c->h2, 0, other->id, 100);
        while (!other->closed && client_turn(c)) continue;
        if (!other->closed || other->error) return false;
        assert_string_equal(other->body.data, "hello\n");
        usleep(20000);
    }
    assert_true(shut->closed);
    assert_int_equal(shut->error, NGHTTP2_CANCEL);
    assert_true(wait_for(&f->n_gone, 1));
    return true;
}

/* The reader of one stream stands still: that stream alone is reset, the others of its connection go on. */
static void a_shut_stream_is_given_up_alone(void **state)
{
    enum { TRIES = 20 };
    http_limits l = {.write_timeout_ms = 60};
    bool alone = false;
    for (int i = 0; i < TRIES && !alone; i++) {
        fixture f = {0};
        client c;
        fixture_start(&f, &l, NULL);
        client_open(&c, &f, 0);
        alone = shut_stream_was_given_up(&c, &f);
        client_close(&c);
        fixture_stop(&f);
        if (alone) assert_int_equal(atomic_load(&f.n_gone), 1);
    }
    assert_true(alone);
}

static void drain_says_goaway_and_finishes(void **state)
{
    fixture f = {0};
    client c;
    fixture_start(&f, NULL, NULL);
    client_open(&c, &f, 65535);
    seen *slow = request(&c, "GET", "/await", NULL, NULL, NULL, 0); /* answered after the drain has begun */
    client_send(&c);
    assert_true(wait_for(&f.n_requests, 1));
    uv_async_send(&f.drain);
    while (client_turn(&c)) continue;
    assert_true(c.goaway);
    assert_string_equal(slow->body.data, "slow\n");
    assert_true(wait_for(&f.n_drained, 1));
    client_close(&c);
    fixture_stop(&f);
}

static void idle_connection_ends_with_goaway(void **state)
{
    fixture f = {0};
    client c;
    fixture_start(&f, &(http_limits){.idle_timeout_ms = 40}, NULL);
    client_open(&c, &f, 65535);
    seen *s = request(&c, "GET", "/hello", NULL, NULL, NULL, 0);
    while (client_turn(&c)) continue;
    assert_string_equal(s->body.data, "hello\n");
    assert_true(c.goaway);
    client_close(&c);
    fixture_stop(&f);
}

/* ---- hand-made frames ------------------------------------------------------------------------ */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

static void put_frame(buf *b, uint8_t type, uint8_t flags, uint32_t id, const char *payload, size_t n)
{
    uint8_t h[9] = {(uint8_t)(n >> 16),  (uint8_t)(n >> 8),   (uint8_t)n,         type,       flags,
                    (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
    buf_append(b, h, sizeof h);
    buf_append(b, payload, n);
}

/* Send all, read to the end; the error code of the GOAWAY, or -1 when there was none. */
static int goaway_code(const fixture *f, const buf *b)
{
    int fd = fixture_connect(f), code = -1;
    size_t n;
    send_bytes(fd, b->data, b->len);
    shutdown(fd, SHUT_WR);
    char *answer = read_all(fd, &n);
    for (size_t at = 0; at + 9 <= n;) {
        const uint8_t *p = (const uint8_t *)answer + at;
        size_t len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        if (p[3] == 7 && at + 17 <= n) code = p[16];
        at += 9 + len;
    }
    free(answer);
    close(fd);
    return code;
}

static void rapid_resets_end_the_connection(void **state)
{
    fixture f = {0};
    buf b = {0};
    fixture_start(&f, NULL, NULL);
    buf_append(&b, preface, sizeof preface - 1);
    for (uint32_t i = 0; i < 300; i++) {
        put_frame(&b, 1, 5, 2 * i + 1, "\202\206\204\101\1x", 6); /* GET http / x */
        put_frame(&b, 3, 0, 2 * i + 1, "\0\0\0\10", 4);
    }
    assert_int_equal(goaway_code(&f, &b), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_true(atomic_load(&f.n_requests) <= 201);
    char *alive = fixture_exchange(&f, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(strstr(alive, "hello"));
    free(alive);
    buf_done(&b);
    fixture_stop(&f);
}

static void control_frame_floods_end_the_connection(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    for (int kind = 0; kind < 3; kind++) {
        buf b = {0};
        buf_append(&b, preface, sizeof preface - 1);
        if (kind == 2) put_frame(&b, 1, 4, 1, "\203\206\204\101\1x", 6);
        for (int i = 0; i < 5000; i++) {
            if (kind == 0) put_frame(&b, 6, 0, 0, "12345678", 8);
            if (kind == 1) put_frame(&b, 4, 0, 0, "", 0);
            if (kind == 2) put_frame(&b, 0, 0, 1, "", 0);
        }
        assert_int_equal(goaway_code(&f, &b), NGHTTP2_ENHANCE_YOUR_CALM);
        buf_done(&b);
    }
    fixture_stop(&f);
}

/* One literal of 4,000 bytes enters the table; each byte after it stands for all of it again. */
static void header_lists_that_unpack_to_megabytes_end_the_connection(void **state)
{
    enum { N_FRAMES = 60, N_REFERENCES = 12000, VALUE_BYTES = 4000 };
    static char block[6 + 6 + VALUE_BYTES + N_REFERENCES];
    fixture f = {0};
    buf b = {0};
    fixture_start(&f, NULL, NULL);
    memcpy(block,
           "\202\206\204\101\1x" /* GET http / x */
           "\100\1a\177\241\036" /* a: so many bytes, and into the table */,
           6 + 6);
    memset(block + 12, 'v', VALUE_BYTES);
    memset(block + 12 + VALUE_BYTES, 0xbe, sizeof block - 12 - VALUE_BYTES);
    buf_append(&b, preface, sizeof preface - 1);
    for (uint32_t i = 0; i < N_FRAMES; i++) put_frame(&b, 1, 5, 2 * i + 1, block, sizeof block);
    assert_int_equal(goaway_code(&f, &b), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(atomic_load(&f.n_requests), 0);
    buf_done(&b);
    fixture_stop(&f);
}

static void broken_frames_end_the_connection(void **state)
{
    fixture f = {0};
    fixture_start(&f, NULL, NULL);
    for (int kind = 0; kind < 4; kind++) {
        buf b = {0};
        buf_append(&b, preface, sizeof preface - 1);
        if (kind == 0) put_frame(&b, 0, 0, 9, "data on an idle stream", 22);
        if (kind == 1) put_frame(&b, 1, 5, 2, "\202\206\204", 3);
        if (kind == 2) put_frame(&b, 1, 5, 1, "\377\377\377\377\377\377", 6);
        if (kind == 3) {
            put_frame(&b, 1, 1, 1, "\202\206\204", 3);
            for (int i = 0; i < 100; i++) put_frame(&b, 9, 0, 1, "", 0); /* CONTINUATION without end */
        }
        assert_true(goaway_code(&f, &b) > 0);
        buf_done(&b);
    }
    assert_int_equal(atomic_load(&f.n_requests), 0);
    fixture_stop(&f);
}

static void a_slow_body_gets_408(void **state)
{
    http_limits l = {.request_timeout_ms = 60};
    fixture f = {0};
    buf b = {0};
    size_t n;
    fixture_start(&f, &l, NULL);
    buf_append(&b, preface, sizeof preface - 1);
    put_frame(&b, 1, 4, 1, "\203\206\204\101\1x", 6);
    int fd = fixture_connect(&f), cut = fixture_connect(&f);
    send_bytes(fd, b.data, b.len);
    send_bytes(cut, preface, 10); /* a preface that never ends */
    char *answer = NULL, *slow = read_all(cut, NULL);
    assert_non_null(strstr(slow, "408"));
    usleep(100000);
    shutdown(fd, SHUT_WR);
    answer = read_all(fd, &n);
    assert_true(n > 0);
    assert_int_equal(atomic_load(&f.n_requests), 0);
    free(answer);
    free(slow);
    close(fd);
    close(cut);
    buf_done(&b);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_streams_side_by_side),
        cmocka_unit_test(holds_to_its_limits),
        cmocka_unit_test(refuses_malformed_messages_on_their_stream_alone),
        cmocka_unit_test(a_reset_tells_the_handler_once_and_spares_the_rest),
        cmocka_unit_test(drops_a_client_with_a_closed_window),
        cmocka_unit_test(whole_answers_behind_a_closed_window_stay_few),
        cmocka_unit_test(a_window_that_opens_byte_by_byte_is_not_waited_for),
        cmocka_unit_test(a_shut_stream_is_given_up_alone),
        cmocka_unit_test(drain_says_goaway_and_finishes),
        cmocka_unit_test(idle_connection_ends_with_goaway),
        cmocka_unit_test(rapid_resets_end_the_connection),
        cmocka_unit_test(control_frame_floods_end_the_connection),
        cmocka_unit_test(header_lists_that_unpack_to_megabytes_end_the_connection),
        cmocka_unit_test(broken_frames_end_the_connection),
        cmocka_unit_test(a_slow_body_gets_408),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
