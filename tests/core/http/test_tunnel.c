/* Connections and streams that leave HTTP for another protocol: what a handler says "Speak" to comes back
 * doubled. */
#include "wire_fixture.h"

#include <nghttp2/nghttp2.h>

typedef struct talk {
    http_request *r;
    uv_timer_t timer;
    bool rests, over;
} talk;

static void talk_closed(uv_handle_t *h)
{
    free(h->data);
}

static void talk_end(talk *t)
{
    t->over = true;
    uv_close((uv_handle_t *)&t->timer, talk_closed);
}

static http_intake intake(void *user, const http_request *r)
{
    const char *wanted = http_protocol(r);
    return wanted && strcmp(wanted, "echo") == 0 ? HTTP_TUNNEL : HTTP_WHOLE;
}

static void accept_now(uv_timer_t *timer)
{
    talk *t = timer->data;
    http_accept(t->r, &(http_header){"x-hello", "you"}, 1);
    http_respond_write(t->r, "welcome;", 8);
}

static void go_on(uv_timer_t *timer)
{
    http_pause(((talk *)timer->data)->r, false);
}

static void on_request(void *user, http_request *r)
{
    fixture *f = user;
    atomic_fetch_add(&f->n_requests, 1);
    if (intake(user, r) != HTTP_TUNNEL) {
        http_respond(r, 200, NULL, 0, "plain\n", 6);
    } else if (strcmp(http_path(r), "/no") == 0) {
        http_respond(r, 403, NULL, 0, "no\n", 3);
    } else {
        talk *t = calloc(1, sizeof *t);
        t->r = r;
        t->rests = strcmp(http_path(r), "/rests") == 0;
        uv_timer_init(&f->loop, &t->timer);
        t->timer.data = t;
        http_set_data(r, t);
        if (strcmp(http_path(r), "/later") == 0)
            uv_timer_start(&t->timer, accept_now, 20, 0);
        else
            accept_now(&t->timer);
    }
}

static void on_body(void *user, http_request *r, const uint8_t *bytes, size_t n)
{
    talk *t = http_data(r);
    bool bye = memchr(bytes ? (const char *)bytes : "", '!', n) != NULL;
    http_respond_write(r, bytes, n);
    http_respond_write(r, bytes, n);
    if (bye) {
        talk_end(t);
        http_respond_end(r, NULL, 0);
    } else if (t->rests && n) {
        http_pause(r, true);
        uv_timer_start(&t->timer, go_on, 1, 0);
    }
}

static void on_body_end(void *user, http_request *r, int status, const char *why)
{
    if (status) fail_msg("%d %s", status, why);
    http_respond_write(r, "bye", 3);
    talk_end(http_data(r));
    http_respond_end(r, NULL, 0);
}

static void on_gone(void *user, http_request *r)
{
    talk *t = http_data(r);
    atomic_fetch_add(&((fixture *)user)->n_gone, 1);
    if (t && !t->over) talk_end(t);
}

static const http_handler handler = {.on_request = on_request,
                                     .on_gone = on_gone,
                                     .intake = intake,
                                     .on_body = on_body,
                                     .on_body_end = on_body_end};

#define ASK(path) \
    "GET " path " HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: Echo\r\n\r\n"

static void check(const fixture *f, const char *sent, const char *head, const char *rest)
{
    char *got = fixture_exchange(f, sent), *body = strstr(got, "\r\n\r\n");
    if (!strstr(got, head)) fail_msg("\"%s\" lacks \"%s\"", got, head);
    assert_non_null(body);
    assert_string_equal(body + 4, rest);
    free(got);
}

static void one_connection_speaks_another_protocol(void **state)
{
    fixture f = {.handler = &handler};
    fixture_start(&f, NULL, NULL);
    check(&f, ASK("/") "ab!", "HTTP/1.1 101 Switching Protocols\r\nx-hello: you\r\n", "welcome;ab!ab!");
    check(&f, ASK("/") "ab!", "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n", "welcome;ab!ab!");
    check(&f, ASK("/") "ab", "101", "welcome;ababbye"); /* its side is shut: the end comes to the handler */
    check(&f, ASK("/later") "ahead", "101", "welcome;aheadaheadbye");
    check(&f, ASK("/no"), "403", "no\n");
    fixture_stop(&f);
    assert_int_equal(f.n_gone, 0);
}

/* What does not ask for a tunnel, or for one that nobody speaks, is a request as any other. */
static void others_stay_with_http(void **state)
{
    fixture f = {.handler = &handler};
    fixture_start(&f, NULL, NULL);
    check(&f, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: close\r\n\r\n", "200", "plain\n");
    check(&f, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade, close\r\n\r\n", "200",
          "plain\n");
    check(&f, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: echo, h2c\r\nConnection: upgrade, close\r\n\r\n", "200",
          "plain\n");
    check(&f, "GET / HTTP/1.0\r\nHost: x\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n", "200", "plain\n");
    check(&f,
          "POST / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: upgrade, close\r\n"
          "Content-Length: 2\r\n\r\nhi",
          "200", "plain\n");
    check(&f,
          "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: upgrade\r\n"
          "Content-Length: 2\r\n\r\nhi",
          "400", "a request to speak another protocol has no body\n");
    fixture_stop(&f);
}

static void what_a_resting_handler_does_not_take_waits(void **state)
{
    enum { N = 300000 };
    fixture f = {.handler = &handler};
    fixture_start(&f, NULL, NULL);
    buf sent = {0};
    buf_puts(&sent, ASK("/rests"));
    for (size_t i = 0; i < N; i++) buf_append(&sent, i + 1 < N ? &"abcdefg"[i % 7] : "!", 1);
    char *got = fixture_exchange_n(&f, sent.data, sent.len);
    size_t n = strlen(strstr(got, "welcome;") + 8);
    assert_int_equal(n, 2 * N);
    free(got);
    buf_done(&sent);
    fixture_stop(&f);
}

static void who_leaves_is_gone_once(void **state)
{
    fixture f = {.handler = &handler};
    fixture_start(&f, NULL, NULL);
    int fd = fixture_connect(&f);
    send_bytes(fd, ASK("/") "ab", sizeof ASK("/") + 1);
    free(read_until(fd, "abab"));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(fd); /* a reset */
    assert_true(wait_for(&f.n_gone, 1));
    fixture_stop(&f);
    assert_int_equal(f.n_gone, 1);
}

/* Tunnels do not idle, and are not late. Until it is one, a connection may be: then another is tried. */
static void nothing_is_timed(void **state)
{
    enum { TRIES = 20 };
    fixture f = {.handler = &handler};
    bool welcome = false;
    int fd = -1;
    fixture_start(&f, &(http_limits){.request_timeout_ms = 40, .idle_timeout_ms = 40}, NULL);
    for (int i = 0; i < TRIES && !welcome; i++) {
        if (fd >= 0) close(fd);
        fd = fixture_connect(&f);
        send_bytes(fd, ASK("/"), sizeof ASK("/") - 1);
        char *said = read_until(fd, "welcome;");
        welcome = strstr(said, "welcome;") != NULL;
        free(said);
    }
    assert_true(welcome);
    usleep(200000);
    send_text(fd, "ab");
    char *got = read_until(fd, "abab");
    assert_non_null(strstr(got, "abab"));
    free(got);
    close(fd);
    fixture_stop(&f);
}

/* ---- HTTP/2 ---------------------------------------------------------------------------------- */

typedef struct stream {
    nghttp2_session *h2;
    int fd, status;
    bool closed, may_connect, told;
    buf got;
} stream;

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    if (strcmp((const char *)name, ":status") == 0) ((stream *)user)->status = atoi((const char *)value);
    return 0;
}

static int on_chunk(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *user)
{
    return buf_append(&((stream *)user)->got, data, n);
}

static int on_close(nghttp2_session *h2, int32_t id, uint32_t error, void *user)
{
    ((stream *)user)->closed = true;
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
    for (size_t i = 0; f->hd.type == NGHTTP2_SETTINGS && i < f->settings.niv; i++)
        if (f->settings.iv[i].settings_id == NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL)
            ((stream *)user)->may_connect = f->settings.iv[i].value == 1;
    return 0;
}

/* "ab" at once, "!" when it was answered. */
static ssize_t read_words(nghttp2_session *h2, int32_t id, uint8_t *to, size_t max, uint32_t *flags,
                          nghttp2_data_source *source, void *user)
{
    stream *s = user;
    if (!s->told) {
        s->told = true;
        memcpy(to, "ab", 2);
        return 2;
    }
    if (s->got.len < strlen("welcome;abab")) return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    *to = '!';
    return 1;
}

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

static void stream_send(stream *s)
{
    const uint8_t *bytes;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(s->h2, &bytes)) > 0)
        send_bytes(s->fd, (const char *)bytes, (size_t)n);
}

static void stream_run(stream *s, const fixture *f, const char *protocol, const char *path)
{
    nghttp2_session_callbacks *cb;
    uint8_t bytes[4096];
    s->fd = fixture_connect(f);
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_client_new(&s->h2, cb, s);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(s->h2, 0, NULL, 0);
    while (!s->may_connect) { /* RFC 8441 3: not before the server has said so */
        stream_send(s);
        ssize_t n = recv(s->fd, bytes, sizeof bytes, 0);
        if (n <= 0) fail_msg("the connection ended");
        assert_int_equal(nghttp2_session_mem_recv(s->h2, bytes, (size_t)n), n);
    }
    nghttp2_nv h[] = {nv(":method", "CONNECT"), nv(":protocol", protocol), nv(":scheme", "http"),
                      nv(":path", path), nv(":authority", "x")};
    nghttp2_data_provider words = {.read_callback = read_words};
    int32_t id = nghttp2_submit_request(s->h2, NULL, h, 5, &words, s);
    assert_true(id > 0);
    for (ssize_t n = 1; n > 0 && !s->closed;) {
        stream_send(s);
        n = recv(s->fd, bytes, sizeof bytes, 0);
        if (n > 0) assert_int_equal(nghttp2_session_mem_recv(s->h2, bytes, (size_t)n), n);
        nghttp2_session_resume_data(s->h2, id);
    }
    nghttp2_session_del(s->h2);
    close(s->fd);
}

static void one_stream_speaks_another_protocol(void **state)
{
    fixture f = {.handler = &handler};
    stream s = {0}, no = {0}, other = {0};
    fixture_start(&f, NULL, NULL);
    stream_run(&s, &f, "echo", "/");
    assert_int_equal(s.status, 200);
    assert_int_equal(s.got.len, strlen("welcome;abab!!"));
    assert_memory_equal(s.got.data, "welcome;abab!!", s.got.len);
    stream_run(&no, &f, "echo", "/no");
    assert_int_equal(no.status, 403);
    stream_run(&other, &f, "telnet", "/");
    assert_int_equal(other.status, 501);
    buf_done(&s.got);
    buf_done(&no.got);
    buf_done(&other.got);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_connection_speaks_another_protocol),
        cmocka_unit_test(others_stay_with_http),
        cmocka_unit_test(what_a_resting_handler_does_not_take_waits),
        cmocka_unit_test(who_leaves_is_gone_once),
        cmocka_unit_test(nothing_is_timed),
        cmocka_unit_test(one_stream_speaks_another_protocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
