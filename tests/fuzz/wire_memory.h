/* wire_memory.h: an HTTP server with one connection in memory, for the fuzz targets of wire. */
#ifndef TESTS_FUZZ_WIRE_MEMORY_H
#define TESTS_FUZZ_WIRE_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "http/http_internal.h"
#include "wire/loop.h"
#include "http/websocket.h"

typedef struct memory_server {
    uv_loop_t loop;
    http_server *server;
    transport *io;         /* NULL once closed */
    http_request *waiting; /* one request is answered late, or never */
    http_request *resting; /* one whose body comes in pieces rests until the next one, or the end */
    size_t n_pieces;       /* requests in pieces that are open */
    size_t n_open;
    http_request *tunnel; /* one request speaks another protocol: */
    websocket *ws;        /* this one, or it has its own bytes back */
    bool ws_over;
} memory_server;

static void require(int condition)
{
    if (!condition) abort();
}

static http_intake memory_intake(void *user, const http_request *r)
{
    if (http_protocol(r)) return HTTP_TUNNEL;
    return strncmp(http_path(r), "/p", 2) == 0 ? HTTP_PIECES : HTTP_WHOLE;
}

static void memory_wake(memory_server *m)
{
    http_request *r = m->resting;
    m->resting = NULL;
    if (r) http_pause(r, false);
}

static void memory_pieces_over(memory_server *m, http_request *r)
{
    require(m->n_pieces > 0 && http_data(r) == m);
    m->n_pieces--;
    if (m->resting == r) m->resting = NULL;
}

/* What is said comes back; once; and "q" is goodbye. */
static void memory_message(void *user, bool is_text, const void *bytes, size_t n)
{
    memory_server *m = user;
    require(m->ws && !m->ws_over && n <= 4096);
    if (n && *(const char *)bytes == 'q')
        websocket_close(m->ws, 1000, "bye");
    else
        websocket_send(m->ws, is_text, bytes, n);
}

static void memory_ws_closed(void *user, unsigned code)
{
    memory_server *m = user;
    require(!m->ws_over);
    m->ws_over = true;
    m->tunnel = NULL;
}

static void memory_open_tunnel(memory_server *m, http_request *r)
{
    websocket_limits l = {.max_message_bytes = 4096};
    websocket_events ev = {.user = m, .message = memory_message, .closed = memory_ws_closed};
    if (m->ws || m->tunnel) {
        http_respond(r, 503, NULL, 0, NULL, 0);
    } else if (!websocket_is_asked(r)) {
        m->tunnel = r;
        http_accept(r, NULL, 0);
    } else if (websocket_accept(&m->ws, r, &l, &ev, NULL) == 0) {
        m->tunnel = r;
    }
}

static void memory_close_tunnel(memory_server *m)
{
    if (m->tunnel && !m->ws) http_respond_end(m->tunnel, NULL, 0);
    websocket_free(m->ws);
    m->ws = NULL;
    m->tunnel = NULL;
}

static void memory_tunnel_body(memory_server *m, http_request *r, const uint8_t *bytes, size_t n)
{
    require(m->tunnel == r && !m->ws_over);
    if (m->ws)
        websocket_receive(m->ws, bytes, n);
    else
        http_respond_write(r, bytes, n);
}

static void memory_body(void *user, http_request *r, const uint8_t *bytes, size_t n)
{
    memory_server *m = user;
    if (http_protocol(r)) {
        memory_tunnel_body(m, r, bytes, n);
        return;
    }
    require(http_data(r) == m && n <= 4096 && m->resting != r);
    memory_wake(m);
    if (n && bytes[0] == 'r') {
        http_pause(r, true);
        m->resting = r;
    } else if (n && bytes[0] == 'e') {
        memory_pieces_over(m, r);
        http_respond(r, 409, NULL, 0, bytes, n);
    }
}

static void memory_body_end(void *user, http_request *r, int status, const char *why)
{
    require((status == 0) == (why == NULL));
    if (http_protocol(r)) {
        memory_server *m = user;
        require(m->tunnel == r);
        if (m->ws) websocket_shut(m->ws);
        memory_close_tunnel(m);
        return;
    }
    memory_pieces_over(user, r);
    http_respond(r, status ? status : 200, NULL, 0, "in pieces", 9);
}

static void memory_request(void *user, http_request *r)
{
    memory_server *m = user;
    size_t n;
    const char *body = http_body(r, &n);
    require(*http_method(r) && body[n] == '\0' && n <= 4096);
    require(http_version(r) == 20 || *http_path(r) == '/' || strcmp(http_path(r), "*") == 0);
    if (http_protocol(r)) {
        require(n == 0);
        memory_open_tunnel(m, r);
        return;
    }
    if (memory_intake(m, r) == HTTP_PIECES) {
        require(n == 0);
        http_set_data(r, m);
        m->n_pieces++;
        return;
    }
    if (strcmp(http_path(r), "/s") == 0 && !m->waiting) {
        m->waiting = r;
        m->n_open++;
        http_respond_begin(r, 200, NULL, 0);
        http_respond_write(r, "piece", 5);
    } else if (n > 2) {
        http_header trailer = {"x-sum", "1"};
        http_respond_begin(r, 200, NULL, 0);
        http_respond_write(r, body, n);
        http_respond_end(r, &trailer, 1);
    } else {
        http_respond(r, 200, NULL, 0, body, n);
    }
}

static void memory_gone(void *user, http_request *r)
{
    memory_server *m = user;
    if (http_protocol(r)) {
        require(m->tunnel == r);
        memory_close_tunnel(m);
        return;
    }
    if (http_data(r) == m) {
        memory_pieces_over(m, r);
        return;
    }
    require(r == m->waiting && m->n_open == 1);
    m->waiting = NULL;
    m->n_open--;
}

static void memory_server_close(memory_server *m);

/* False: there was no memory for a server and its connection. */
static bool memory_server_open(memory_server *m)
{
    http_handler h = {.user = m,
                      .on_request = memory_request,
                      .on_gone = memory_gone,
                      .intake = memory_intake,
                      .on_body = memory_body,
                      .on_body_end = memory_body_end};
    http_limits l = {.max_body_bytes = 4096, .max_header_bytes = 2048, .max_headers = 20};
    transport_events ev;
    memset(m, 0, sizeof *m);
    if (!holds(loop_open(&m->loop, 64, NULL) == 0)) return false;
    if (!holds(http_server_new(&m->server, &m->loop, &h, &l, NULL) == 0))
        return uv_loop_close(&m->loop), false;
    http_conn *c = http_server_new_conn(m->server);
    if (holds(c) &&
        holds(transport_new_memory(&m->io, &m->loop, http_server_events(c, &ev), NULL, NULL) == 0)) {
        http_server_adopt(c, m->io);
        return true;
    }
    free(c);
    memory_server_close(m);
    return false;
}

/* piece 0: all at once. */
static void memory_server_feed(memory_server *m, const uint8_t *data, size_t n, size_t piece)
{
    if (piece == 0) piece = n;
    for (size_t at = 0; at < n; at += piece) {
        if (http_server_connections(m->server) == 0 || transport_is_closing(m->io)) return;
        transport_feed(m->io, data + at, n - at < piece ? n - at : piece);
        uv_run(&m->loop, UV_RUN_NOWAIT);
    }
}

static void memory_server_close(memory_server *m)
{
    memory_wake(m);
    uv_run(&m->loop, UV_RUN_NOWAIT);
    if (m->waiting) {
        http_request *r = m->waiting;
        m->waiting = NULL;
        m->n_open--;
        http_respond_end(r, NULL, 0);
        uv_run(&m->loop, UV_RUN_NOWAIT);
    }
    memory_close_tunnel(m);
    uv_run(&m->loop, UV_RUN_NOWAIT);
    if (http_server_connections(m->server) && !transport_is_closing(m->io)) transport_feed(m->io, NULL, 0);
    uv_run(&m->loop, UV_RUN_NOWAIT);
    http_server_close(m->server, NULL, NULL);
    uv_run(&m->loop, UV_RUN_DEFAULT);
    require(uv_loop_close(&m->loop) == 0 && m->n_open == 0 && m->n_pieces == 0);
}

#endif
