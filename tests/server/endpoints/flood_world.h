/* flood_world.h: a gateway and its clients on one thread, so that a test can look at each turn of the loop.
 *
 *     world w;
 *     world_open(&w, &(gateway_config){0});
 *     peer p;
 *     peer_dial(&w, &p);
 *     peer_say(&p, bytes, n);           // queued; world_turn sends as much as the socket takes
 *     while (p.got.len == 0) world_turn(&w);
 *
 * The model "slow" is starting, so requests for it wait; no worker is there. */
#ifndef TESTS_ENDPOINTS_FLOOD_WORLD_H
#define TESTS_ENDPOINTS_FLOOD_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "logging/log.h"
#include "base/loop_work.h"
#include "base/sha256.h"
#include "endpoints/table.h"
#include "gateway/gateway.h"
#include "request/gateway_state.h"

enum { WORLD_PEERS = 1024, WORLD_TURNS_EAGER = 20000, WORLD_TURNS_MAX = 200000 };

typedef struct peer {
    int fd;
    buf out, got;
    size_t out_at;
    size_t n_answers, counted_to; /* of got, as count_answers has seen it */
    bool eof, rests;              /* rests: it does not read */
} peer;

typedef struct world {
    uv_loop_t loop;
    registry *g;
    gateway_config config;
    gateway *gw;
    source *members;
    peer *peers[WORLD_PEERS];
    size_t n_peers;
    size_t n_turns;
} world;

static inline void world_put(world *w, const char *id, replica_state state)
{
    member m = {.id = id, .generation = 1, .model = "slow", .address = "unix:/nonexistent/w", .state = state};
    assert_int_equal(source_put(w->members, &m, NULL), 0);
}

static inline void world_open(world *w, const gateway_config *config)
{
    shoal_err err = {0};
    memset(w, 0, sizeof *w);
    w->config = *config;
    w->config.listen = "127.0.0.1:0";
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(registry_new(&w->g, &w->loop, &err), 0);
    assert_int_equal(source_open(&w->members, w->g, "test", &err), 0);
    world_put(w, "slow/0", REPLICA_STARTING);
    source_synced(w->members);
    if (gateway_new(&w->gw, &w->loop, w->g, &w->config, &ENDPOINTS, &err) != 0) fail_msg("%s", err.message);
    loop_work_reset();
}

static inline void peer_close(world *w, peer *p)
{
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    buf_done(&p->out);
    buf_done(&p->got);
    for (size_t i = 0; i < w->n_peers; i++)
        if (w->peers[i] == p) w->peers[i] = w->peers[--w->n_peers];
}

/* The peers that are left are closed, too. */
static inline void world_close(world *w)
{
    while (w->n_peers) peer_close(w, w->peers[0]);
    gateway_free(w->gw);
    registry_free(w->g);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
}

static inline void peer_dial(world *w, peer *p)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)gateway_port(w->gw)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *p = (peer){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    assert_true(p->fd >= 0);
    assert_int_equal(connect(p->fd, (struct sockaddr *)&a, sizeof a), 0);
    fcntl(p->fd, F_SETFL, O_NONBLOCK);
    assert_true(w->n_peers < WORLD_PEERS);
    w->peers[w->n_peers++] = p;
}

static inline void peer_say(peer *p, const void *bytes, size_t n)
{
    buf_append(&p->out, bytes, n);
}

static inline void peer_puts(peer *p, const char *text)
{
    peer_say(p, text, strlen(text));
}

static inline void peer_move(peer *p)
{
    char bytes[65536];
    while (p->out_at < p->out.len) {
        ssize_t n = send(p->fd, p->out.data + p->out_at, p->out.len - p->out_at, MSG_NOSIGNAL);
        if (n <= 0) break;
        p->out_at += (size_t)n;
    }
    while (!p->rests && !p->eof) {
        ssize_t n = recv(p->fd, bytes, sizeof bytes, 0);
        if (n > 0) buf_append(&p->got, bytes, (size_t)n);
        if (n == 0 || (n < 0 && errno != EAGAIN)) p->eof = true;
        if (n <= 0) break;
    }
}

/* One turn of the loop; then what the peers have to say, and what they hear. After WORLD_TURNS_EAGER turns each one sleeps
 * for a millisecond: threads of the pool get the core however busy the machine is, and WORLD_TURNS_MAX means minutes. */
static inline void world_turn(world *w)
{
    if (++w->n_turns > WORLD_TURNS_MAX) fail_msg("it does not happen");
    uv_run(&w->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < w->n_peers; i++) peer_move(w->peers[i]);
    if (w->n_turns > WORLD_TURNS_EAGER)
        usleep(1000);
    else if (w->n_turns % 64 == 0)
        usleep(100);
}

#define WORLD_UNTIL(w, condition) \
    for ((w)->n_turns = 0; !(condition); world_turn(w)) continue

static inline bool peer_has(const peer *p, const char *text)
{
    return p->got.len && memmem(p->got.data, p->got.len, text, strlen(text));
}

static inline size_t peer_count(const peer *p, const char *text)
{
    size_t n = 0, length = strlen(text);
    const char *at = p->got.data, *end = at + p->got.len;
    for (; at && (at = memmem(at, (size_t)(end - at), text, length)); at += length) n++;
    return n;
}

/* A frame's head, with a mask of zeros, which changes nothing. */
static inline void put_frame_head(buf *out, unsigned first, size_t n)
{
    int n_length = n < 126 ? 0 : n < 65536 ? 2 : 8;
    const unsigned codes[] = {(unsigned)n, [2] = 126, [8] = 127};
    buf_putc(out, (char)first);
    buf_putc(out, (char)(0x80 | codes[n_length]));
    while (n_length-- > 0) buf_putc(out, (char)(n >> 8 * n_length));
    buf_append(out, "\0\0\0\0", 4);
}

static inline void put_frame(buf *out, unsigned first, const char *text, size_t n)
{
    put_frame_head(out, first, n);
    buf_append(out, text, n);
}

static inline void ws_say(peer *p, const char *text)
{
    put_frame(&p->out, 0x81, text, strlen(text));
}

/* A WebSocket, open; key NULL: it shows none. */
static inline void ws_dial(world *w, peer *p, const char *key)
{
    peer_dial(w, p);
    peer_puts(p, "GET /v1/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                 "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    if (key) buf_printf(&p->out, "Authorization: Bearer %s\r\n", key);
    peer_puts(p, "\r\n");
    WORLD_UNTIL(w, peer_has(p, "\r\n\r\n") || p->eof);
}

/* The close frame that has come, by its code and the beginning of its reason. */
static inline bool ws_was_closed(const peer *p, unsigned code, const char *reason)
{
    char frame[64];
    int n = snprintf(frame, sizeof frame, "%c%c%s", (int)(code >> 8), (int)(code & 255), reason);
    return p->got.len && memmem(p->got.data, p->got.len, frame, (size_t)n);
}

/* ---- HTTP/2, frame by frame --------------------------------------------------------------------------- */

enum {
    H2_DATA = 0,
    H2_HEADERS = 1,
    H2_SETTINGS = 4,
    H2_END_STREAM = 1,
    H2_ACK = 1,
    H2_END_HEADERS = 4,
    H2_HEAD = 9
};

static inline void h2_put_frame(buf *out, unsigned type, unsigned flags, unsigned stream, const void *bytes,
                                size_t n)
{
    const uint8_t head[H2_HEAD] = {(uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,
                                   (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
                                   (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    buf_append(out, head, sizeof head);
    buf_append(out, bytes, n);
}

/* A literal without indexing or Huffman coding (RFC 7541 6.2.2). */
static inline void h2_put_header(buf *out, const char *name, const char *value)
{
    const char *const texts[] = {name, value};
    buf_putc(out, 0);
    for (int i = 0; i < 2; i++) {
        assert_true(strlen(texts[i]) < 127);
        buf_putc(out, (char)strlen(texts[i]));
        buf_puts(out, texts[i]);
    }
}

static inline void h2_put_head(buf *out, unsigned flags, unsigned stream, const char *method,
                               const char *path, const char *type)
{
    buf head = {0};
    h2_put_header(&head, ":method", method);
    h2_put_header(&head, ":scheme", "http");
    h2_put_header(&head, ":path", path);
    h2_put_header(&head, ":authority", "localhost");
    h2_put_header(&head, "te", "trailers");
    if (type) h2_put_header(&head, "content-type", type);
    h2_put_frame(out, H2_HEADERS, flags, stream, head.data, head.len);
    buf_done(&head);
}

static inline void h2_post(peer *p, unsigned stream, const char *path, const char *type, const void *body,
                           size_t n)
{
    h2_put_head(&p->out, H2_END_HEADERS, stream, "POST", path, type);
    h2_put_frame(&p->out, H2_DATA, H2_END_STREAM, stream, body, n);
}

static inline void h2_dial(world *w, peer *p)
{
    peer_dial(w, p);
    peer_puts(p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    h2_put_frame(&p->out, H2_SETTINGS, 0, 0, NULL, 0);
}

/* How many answers have begun: a HEADERS frame each, of those here that are refused. */
static inline size_t h2_answers(peer *p)
{
    size_t n = 0;
    for (size_t at = 0; at + H2_HEAD <= p->got.len;) {
        const uint8_t *f = (const uint8_t *)p->got.data + at;
        n += f[3] == H2_HEADERS;
        at += H2_HEAD + ((size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2]);
    }
    return n;
}

#define WORLD_CHAT "{\"model\":\"slow\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"

/* gateway_config of a server that needs the key "sesame". */
typedef struct keyed {
    char entry[80];
    config_key key;
    gateway_config config;
} keyed;

static inline const gateway_config *keyed_config(keyed *k, gateway_config base)
{
    sha256_digest d;
    memcpy(k->entry, "sha256:", 8);
    sha256_of("sesame", 6, &d);
    sha256_hex(&d, k->entry + 7);
    k->key = (config_key){.sha256 = k->entry, .name = "", .admin = true};
    k->config = base;
    k->config.api_keys = &k->key;
    k->config.n_api_keys = 1;
    return &k->config;
}

#endif
