/* gRPC streams at either end of a connection in memory: any frames, in pieces of any size, while the end
 * under test rests, answers, ends and cancels as the messages tell it to.
 *
 *     byte 0: bit 0: the client is under test, else the server    byte 1: bytes a piece, 0: all at once */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "grpc/grpc_internal.h"
#include "wire/loop.h"

enum { MAX_MESSAGE = 4096, MAX_CALLS = 8 };

typedef struct bench {
    uv_loop_t loop;
    grpc_server *server;
    grpc_channel *ch;
    transport *io;
    grpc_call *calls[MAX_CALLS]; /* open ones */
    grpc_client_call *call;
    size_t n_begun, n_ended, n_lost;
    bool link_gone;
} bench;

static void require(bool ok)
{
    if (!ok) abort();
}

/* ---- the server's end ------------------------------------------------------------------------ */

static grpc_call **slot(bench *b, const grpc_call *c)
{
    for (size_t i = 0; i < MAX_CALLS; i++)
        if (b->calls[i] == c) return &b->calls[i];
    return NULL;
}

static void forget(bench *b, grpc_call *c)
{
    grpc_call **at = slot(b, c);
    require(at != NULL);
    *at = NULL;
}

static void begin(void *user, grpc_call *c)
{
    bench *b = user;
    grpc_call **free_slot = slot(b, NULL);
    b->n_begun++;
    if (!free_slot) {
        b->n_ended++;
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "enough");
        return;
    }
    *free_slot = c;
}

static void end(bench *b, grpc_call *c)
{
    forget(b, c);
    b->n_ended++;
    grpc_call_end(c, GRPC_OK, "as you said");
}

/* The first byte of a message says what to do. */
static void message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    bench *b = user;
    require(n <= MAX_MESSAGE && slot(b, c));
    if (n && msg[0] == 'p') grpc_call_pause(c, true);
    if (n && msg[0] == 'e') {
        end(b, c);
        return;
    }
    for (int i = n && msg[0] == 'm' ? 50 : 1; i; i--) grpc_call_send(c, msg, n);
}

static void ended(void *user, grpc_call *c)
{
    end(user, c);
}

static void drained(void *user, grpc_call *c)
{
    require(slot(user, c) != NULL);
    grpc_call_pause(c, false);
}

static void cancelled(void *user, grpc_call *c)
{
    bench *b = user;
    forget(b, c);
    b->n_lost++;
}

static const grpc_stream_method methods[] = {{.path = "/s.S/Echo",
                                              .max_message = MAX_MESSAGE,
                                              .begin = begin,
                                              .message = message,
                                              .ended = ended,
                                              .drained = drained,
                                              .cancelled = cancelled}};

static void feed(bench *b, const uint8_t *data, size_t n, size_t piece)
{
    if (piece == 0) piece = n;
    for (size_t at = 0; at < n; at += piece) {
        bool gone = b->server ? !http_server_connections(b->server->http) : b->link_gone;
        if (gone || transport_is_closing(b->io)) return;
        transport_feed(b->io, data + at, n - at < piece ? n - at : piece);
        uv_run(&b->loop, UV_RUN_NOWAIT);
    }
}

static bool serve(bench *b)
{
    http_limits l = {.max_body_bytes = MAX_MESSAGE, .max_header_bytes = 2048, .max_headers = 20};
    transport_events ev;
    if (!holds(grpc_server_new(&b->server, &b->loop, NULL, 0, b, &l, NULL) == 0)) return false;
    if (!holds(grpc_server_add_streams(b->server, methods, 1, b, NULL) == 0)) return false;
    http_conn *c = http_server_new_conn(b->server->http);
    if (!holds(c)) return false;
    if (!holds(transport_new_memory(&b->io, &b->loop, http_server_events(c, &ev), NULL, NULL) == 0)) {
        free(c);
        return false;
    }
    http_server_adopt(c, b->io);
    return true;
}

static void test_server(bench *b, const uint8_t *data, size_t n, size_t piece)
{
    static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    if (serve(b)) {
        feed(b, preface, sizeof preface - 1, 0);
        feed(b, data, n, piece);
        for (size_t i = 0; i < MAX_CALLS; i++)
            if (b->calls[i]) grpc_call_pause(b->calls[i], false);
        for (int i = 0; i < 3; i++) uv_run(&b->loop, UV_RUN_NOWAIT);
    }
    grpc_server_close(b->server, NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    require(b->n_begun == b->n_ended + b->n_lost);
}

/* ---- the client's end ------------------------------------------------------------------------ */

static void link_lost(void *user, const char *why)
{
    bench *b = user;
    require(*why && !b->call);
    b->link_gone = true;
}

static void reply(void *user, const uint8_t *msg, size_t n)
{
    bench *b = user;
    require(b->call && n <= MAX_MESSAGE);
    if (n && msg[0] == 'p') grpc_client_pause(b->call, true);
    if (n && msg[0] == 'h') grpc_client_half_close(b->call);
    if (n && msg[0] == 's') grpc_client_send(b->call, msg, n);
    if (n && msg[0] == 'c') {
        grpc_client_cancel(b->call);
        b->call = NULL;
    }
}

static void reply_metadata(void *user, const char *name, const char *value)
{
    require(((bench *)user)->call && *name && *name != ':');
}

static void reply_end(void *user, grpc_status status, const char *message_text)
{
    bench *b = user;
    require(b->call && (unsigned)status < 100 && message_text);
    b->call = NULL;
    b->n_ended++;
}

static void client_drained(void *user)
{
    require(((bench *)user)->call != NULL);
}

static void test_client(bench *b, const uint8_t *data, size_t n, size_t piece)
{
    grpc_channel_events ev = {.user = b, .disconnected = link_lost};
    grpc_client_events call_events = {
        .user = b, .message = reply, .metadata = reply_metadata, .drained = client_drained, .end = reply_end};
    grpc_call_options opt = {.max_message = MAX_MESSAGE};
    if (!holds(grpc_channel_new_memory(&b->ch, &b->io, &b->loop, &ev, NULL) == 0)) return;
    b->call = grpc_call_open(b->ch, "/s.S/Echo", &opt, &call_events);
    if (holds(b->call)) {
        grpc_client_send(b->call, "hello", 5);
        uv_run(&b->loop, UV_RUN_NOWAIT);
        feed(b, data, n, piece);
        if (b->call) grpc_client_pause(b->call, false);
        for (int i = 0; i < 3; i++) uv_run(&b->loop, UV_RUN_NOWAIT);
    }
    grpc_channel_close(b->ch);
    require(!b->call);
    uv_run(&b->loop, UV_RUN_DEFAULT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bench b = {0};
    if (size < 2 || !holds(loop_open(&b.loop, 64, NULL) == 0)) return 0;
    if (data[0] & 1)
        test_client(&b, data + 2, size - 2, data[1]);
    else
        test_server(&b, data + 2, size - 2, data[1]);
    uv_run(&b.loop, UV_RUN_DEFAULT);
    require(uv_loop_close(&b.loop) == 0);
    return 0;
}
