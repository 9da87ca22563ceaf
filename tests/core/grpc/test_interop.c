/* Our gRPC against Google's, both ways, in clear text and over mutual TLS. Skipped where python3-grpcio is
 * not installed. */
#include "certificates.h"
#include "grpc_world.h"

static pki p;
static const char *python; /* one that knows grpc */

typedef struct peer { /* a process at the other end */
    uv_process_t process;
    uv_pipe_t in, out;
    char said[1024];
    size_t n;
    int n_open; /* handles */
    bool ended;
} peer;

static int find_python(void **state)
{
    static const char *const known[] = {"python3", "/usr/bin/python3"};
    char command[128];
    for (size_t i = 0; i < 2 && !python; i++) {
        snprintf(command, sizeof command, "%s -c 'import grpc' 2>/dev/null", known[i]);
        if (system(command) == 0) python = known[i];
    }
    if (!python) printf("SKIP grpc_test_interop: python3-grpcio is not installed\n");
    pki_make(&p);
    return 0;
}

static int remove_pki(void **state)
{
    pki_remove(&p);
    return 0;
}

static void on_peer_closed(uv_handle_t *h)
{
    ((peer *)h->data)->n_open--;
}

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
    uv_close((uv_handle_t *)process, on_peer_closed);
}

static void on_room(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
    peer *q = h->data;
    *ret = uv_buf_init(q->said + q->n, (unsigned)(sizeof q->said - 1 - q->n));
}

static void on_said(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    peer *q = s->data;
    if (n > 0) q->n += (size_t)n;
    if (n >= 0) return;
    q->ended = true;
    uv_close((uv_handle_t *)s, on_peer_closed);
}

static void peer_start(peer *q, world *w, char **args)
{
    uv_stdio_container_t io[3] = {{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE},
                                  {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE},
                                  {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t o = {
        .file = python, .args = args, .stdio = io, .stdio_count = 3, .exit_cb = on_exit_of};
    memset(q, 0, sizeof *q);
    uv_pipe_init(&w->loop, &q->in, 0);
    uv_pipe_init(&w->loop, &q->out, 0);
    io[0].data.stream = (uv_stream_t *)&q->in;
    io[1].data.stream = (uv_stream_t *)&q->out;
    assert_int_equal(uv_spawn(&w->loop, &q->process, &o), 0);
    q->process.data = q->in.data = q->out.data = q;
    q->n_open = 3;
    uv_read_start((uv_stream_t *)&q->out, on_room, on_said);
}

static void peer_stop(peer *q, world *w)
{
    uv_close((uv_handle_t *)&q->in, on_peer_closed);
    RUN_UNTIL(w, q->n_open == 0);
}

static tls_context *context(tls_side side, const pki_pair *own)
{
    tls_options o = {.cert_file = own->crt, .key_file = own->key, .ca_file = p.ca};
    tls_context *t = NULL;
    assert_int_equal(tls_context_new(&t, side, &o, NULL), 0);
    return t;
}

/* ---- our client, their server ---------------------------------------------------------------- */

static void ask_everything(world *w)
{
    outcome unary = {0}, sum = {.n_to_send = 500, .n_each = 1000}, flood = {0}, echo = {0}, enough = {0};
    world_open(w, &unary, "/p.P/Unary",
               &(grpc_call_options){.metadata = &(http_header){"x-ask", "why"}, .n_metadata = 1});
    grpc_client_send(unary.call, "hello", 5);
    grpc_client_half_close(unary.call);
    world_open(w, &sum, "/p.P/Sum", NULL);
    outcome_feed(&sum);
    world_open(w, &flood, "/p.P/Flood", NULL);
    grpc_client_send(flood.call, "2000", 4);
    grpc_client_half_close(flood.call);
    world_open(w, &echo, "/p.P/Echo", NULL);
    for (size_t i = 0; i < 3; i++) {
        grpc_client_send(echo.call, &"abc"[i], 1);
        RUN_UNTIL(w, echo.n_messages == i + 1); /* one by one: both directions are open */
    }
    grpc_client_half_close(echo.call);
    world_open(w, &enough, "/p.P/Echo", NULL);
    grpc_client_send(enough.call, "enough", 6);
    RUN_UNTIL(w, unary.status >= 0 && sum.status >= 0 && flood.status >= 0 && echo.status >= 0 &&
                     enough.status >= 0);
    assert_string_equal(unary.messages, "[hello]");
    assert_non_null(strstr(unary.metadata, "x-head=why"));
    assert_non_null(strstr(unary.metadata, "x-tail=t"));
    assert_string_equal(sum.messages, "[500 messages, 500000 bytes]");
    assert_int_equal(flood.n_bytes, 2048000);
    assert_string_equal(echo.messages, "[a][b][c]");
    assert_int_equal(echo.status, GRPC_OK);
    assert_int_equal(enough.status, GRPC_ABORTED);
    assert_string_equal(enough.message, "h\xc3\xa9 100 %");
}

static void with_their_server(tls_context *tls)
{
    world w;
    peer q;
    shoal_err err = {0};
    char *args[] = {
        (char *)python, SHOAL_SOURCE_DIR "/tests/core/grpc/grpc_peer.py", "server", NULL, NULL, NULL, NULL};
    grpc_channel_options opt = {.tls = tls, .server_name = "node-a", .keepalive_ms = 1000};
    grpc_channel_events ev = {.user = &w, .connected = world_connected, .disconnected = world_disconnected};
    if (tls) {
        args[3] = p.node.crt;
        args[4] = p.node.key;
        args[5] = p.ca;
    }
    world_open_loop(&w);
    peer_start(&q, &w, args);
    RUN_UNTIL(&w, strchr(q.said, '\n') || q.ended);
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", atoi(q.said));
    if (grpc_channel_open(&w.ch, &w.loop, w.address, &opt, &ev, &err) != 0) fail_msg("%s", err.message);
    RUN_UNTIL(&w, w.n_connected || w.n_disconnected);
    if (!w.n_connected) fail_msg("%s", w.why);
    ask_everything(&w);
    assert_int_equal(w.n_disconnected, 0);
    peer_stop(&q, &w);
    world_stop(&w);
    tls_context_unref(tls);
}

static void our_client_speaks_with_their_server(void **state)
{
    if (!python) skip();
    with_their_server(NULL);
}

static void our_client_speaks_with_their_server_over_tls(void **state)
{
    if (!python) skip();
    with_their_server(context(TLS_CLIENT, &p.gateway));
}

/* ---- their client, our server ---------------------------------------------------------------- */

static void with_their_client(tls_context *tls)
{
    world w;
    peer q;
    shoal_err err = {0};
    char *args[] = {(char *)python,
                    SHOAL_SOURCE_DIR "/tests/core/grpc/grpc_peer.py",
                    "client",
                    w.address,
                    NULL,
                    NULL,
                    NULL,
                    NULL,
                    NULL};
    if (tls) {
        args[4] = p.gateway.crt;
        args[5] = p.gateway.key;
        args[6] = p.ca;
        args[7] = "node-a";
    }
    world_open_loop(&w);
    world_serve(&w, NULL);
    w.n_flood = 2000;
    int rc = tls ? grpc_server_listen_tls(w.server, "127.0.0.1:0", tls, &err)
                 : grpc_server_listen(w.server, "127.0.0.1:0", &err);
    if (rc != 0) fail_msg("%s", err.message);
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", grpc_server_port(w.server));
    peer_start(&q, &w, args);
    RUN_UNTIL(&w, q.ended);
    assert_string_equal(q.said, "ok\n");
    peer_stop(&q, &w);
    world_stop(&w);
    tls_context_unref(tls);
}

static void their_client_speaks_with_our_server(void **state)
{
    if (!python) skip();
    with_their_client(NULL);
}

static void their_client_speaks_with_our_server_over_tls(void **state)
{
    if (!python) skip();
    with_their_client(context(TLS_SERVER, &p.node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_client_speaks_with_their_server),
        cmocka_unit_test(our_client_speaks_with_their_server_over_tls),
        cmocka_unit_test(their_client_speaks_with_our_server),
        cmocka_unit_test(their_client_speaks_with_our_server_over_tls),
    };
    return cmocka_run_group_tests(tests, find_python, remove_pki);
}
