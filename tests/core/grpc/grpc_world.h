/* grpc_world.h: a gRPC server with streams and a client, on one loop that the test turns.
 *
 *     world w;
 *     world_start(&w, NULL);
 *     outcome o = {0};
 *     world_open(&w, &o, "/s.S/Echo", NULL);
 *     grpc_client_send(o.call, "a", 1);
 *     RUN_UNTIL(&w, o.n_messages == 1);
 *     world_stop(&w);
 *
 * Methods: Echo (each message back; rests while its answers wait), Sum (the number of messages and bytes at
 * the end), Rest (takes nothing until w.rests is cleared with world_wake, then as Sum), Flood (w.n_flood
 * messages of a kilobyte, as fast as they are taken), Refuse (ends at once), First (ends at the first
 * message), Meta (metadata at both ends of its answer), Hold (never answers). */
#ifndef TESTS_GRPC_WORLD_H
#define TESTS_GRPC_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "grpc/grpc.h"

enum { MAX_RESTING = 64 };

typedef struct world {
    uv_loop_t loop;
    uv_timer_t guard;
    grpc_server *server;
    grpc_channel *ch;
    char address[80], why[256]; /* why: of the last disconnect */
    int n_connected, n_disconnected, n_cancelled, n_ended, n_begun, closed;
    size_t n_messages, n_bytes, n_flood, n_flooded, most_unsent;
    grpc_call *resting[MAX_RESTING], *last;
    size_t n_resting;
    bool rests;
} world;

typedef struct outcome {
    world *w;
    grpc_client_call *call;
    char messages[256], metadata[256], message[256];
    size_t n_messages, n_bytes;
    int status, n_drained; /* -1: open; 99: cancelled by us */
    enum { CANCEL_NEVER, CANCEL_ON_MESSAGE, CANCEL_ON_METADATA, CANCEL_ON_DRAINED, CLOSE_ON_MESSAGE } act;
    size_t n_to_send, n_sent, n_each; /* sent while little waits */
} outcome;

/* ---- the server ------------------------------------------------------------------------------ */

static inline void world_begin(void *user, grpc_call *c)
{
    world *w = user;
    w->n_begun++;
    w->last = c;
}

static inline void world_cancelled(void *user, grpc_call *c)
{
    world *w = user;
    w->n_cancelled++;
    for (size_t i = 0; i < w->n_resting; i++)
        if (w->resting[i] == c) w->resting[i] = NULL;
    free(grpc_call_data(c));
}

static inline void echo_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    world *w = user;
    grpc_call_send(c, msg, n);
    if (grpc_call_unsent(c) > w->most_unsent) w->most_unsent = grpc_call_unsent(c);
    if (grpc_call_unsent(c) > GRPC_CALM_BYTES) grpc_call_pause(c, true);
}

static inline void echo_drained(void *user, grpc_call *c)
{
    grpc_call_pause(c, false);
}

static inline void end_ok(void *user, grpc_call *c)
{
    ((world *)user)->n_ended++;
    grpc_call_end(c, GRPC_OK, NULL);
}

static inline void sum_begin(void *user, grpc_call *c)
{
    world_begin(user, c);
    grpc_call_set_data(c, calloc(2, sizeof(size_t)));
}

static inline void sum_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    world *w = user;
    size_t *sum = grpc_call_data(c);
    sum[0]++;
    sum[1] += n;
    w->n_messages++;
    w->n_bytes += n;
}

static inline void sum_ended(void *user, grpc_call *c)
{
    size_t *sum = grpc_call_data(c);
    char text[64];
    snprintf(text, sizeof text, "%zu messages, %zu bytes", sum[0], sum[1]);
    free(sum);
    grpc_call_send(c, text, strlen(text));
    end_ok(user, c);
}

static inline void rest_begin(void *user, grpc_call *c)
{
    world *w = user;
    sum_begin(user, c);
    if (!w->rests) return;
    grpc_call_pause(c, true);
    if (w->n_resting < MAX_RESTING) w->resting[w->n_resting++] = c;
}

static inline void world_wake(world *w)
{
    w->rests = false;
    for (size_t i = 0; i < w->n_resting; i++)
        if (w->resting[i]) grpc_call_pause(w->resting[i], false);
    w->n_resting = 0;
}

static inline void flood_drained(void *user, grpc_call *c)
{
    static const char kilobyte[1024];
    world *w = user;
    while (w->n_flooded < w->n_flood && grpc_call_unsent(c) < GRPC_CALM_BYTES) {
        grpc_call_send(c, kilobyte, sizeof kilobyte);
        w->n_flooded++;
    }
    if (w->n_flooded == w->n_flood) grpc_call_end(c, GRPC_OK, NULL);
}

static inline void flood_begin(void *user, grpc_call *c)
{
    world_begin(user, c);
    flood_drained(user, c);
}

static inline void ignore_message(void *user, grpc_call *c, const uint8_t *msg, size_t n) {}

static inline void refuse_begin(void *user, grpc_call *c)
{
    world_begin(user, c);
    grpc_call_end(c, GRPC_PERMISSION_DENIED, "not you");
}

static inline void first_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    grpc_call_send(c, msg, n);
    grpc_call_end(c, GRPC_ABORTED, "one was enough");
}

static inline void meta_begin(void *user, grpc_call *c)
{
    const char *asked = grpc_call_metadata(c, "x-ask");
    http_header head = {"x-head", asked ? asked : "-"};
    world_begin(user, c);
    grpc_call_begin(c, &head, 1);
}

static inline void meta_ended(void *user, grpc_call *c)
{
    http_header trailer = {"x-tail", "t"};
    grpc_call_end_with(c, GRPC_OK, "done", &trailer, 1);
}

static const grpc_stream_method world_methods[] = {
    {.path = "/s.S/Echo",
     .begin = world_begin,
     .message = echo_message,
     .drained = echo_drained,
     .ended = end_ok,
     .cancelled = world_cancelled},
    {.path = "/s.S/Sum",
     .max_message = 1 << 20,
     .begin = sum_begin,
     .message = sum_message,
     .ended = sum_ended,
     .cancelled = world_cancelled},
    {.path = "/s.S/Rest",
     .begin = rest_begin,
     .message = sum_message,
     .ended = sum_ended,
     .cancelled = world_cancelled},
    {.path = "/s.S/Flood",
     .begin = flood_begin,
     .message = ignore_message,
     .drained = flood_drained,
     .cancelled = world_cancelled},
    {.path = "/s.S/Refuse", .begin = refuse_begin, .message = ignore_message},
    {.path = "/s.S/First", .begin = world_begin, .message = first_message, .cancelled = world_cancelled},
    {.path = "/s.S/Hold", .begin = world_begin, .message = ignore_message},
    {.path = "/s.S/Meta", .begin = meta_begin, .message = ignore_message, .ended = meta_ended},
};

static inline void world_unary(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    grpc_call_send(c, msg, n);
    grpc_call_end(c, GRPC_OK, NULL);
}

static const grpc_method world_unaries[] = {{"/s.S/Unary", world_unary}};

/* ---- the client ------------------------------------------------------------------------------ */

static inline void outcome_act(outcome *o, unsigned now)
{
    if (o->act != now) return;
    if (now == CLOSE_ON_MESSAGE) {
        grpc_channel_close(o->w->ch);
        o->w->ch = NULL;
    } else {
        grpc_client_cancel(o->call);
        o->status = 99;
    }
}

static inline void outcome_message(void *user, const uint8_t *msg, size_t n)
{
    outcome *o = user;
    snprintf(o->messages + strlen(o->messages), sizeof o->messages - strlen(o->messages), "[%.*s]",
             (int)(n < 40 ? n : 40), (const char *)msg);
    o->n_messages++;
    o->n_bytes += n;
    outcome_act(o, CANCEL_ON_MESSAGE);
    outcome_act(o, CLOSE_ON_MESSAGE);
}

static inline void outcome_metadata(void *user, const char *name, const char *value)
{
    outcome *o = user;
    snprintf(o->metadata + strlen(o->metadata), sizeof o->metadata - strlen(o->metadata), "%s=%s ", name,
             value);
    outcome_act(o, CANCEL_ON_METADATA);
}

/* Send as long as little waits; then half-close. */
static inline void outcome_feed(outcome *o)
{
    static const char bytes[65536];
    while (o->n_sent < o->n_to_send && grpc_client_unsent(o->call) < GRPC_CALM_BYTES) {
        assert_int_equal(grpc_client_send(o->call, bytes, o->n_each), 0);
        o->n_sent++;
    }
    if (o->n_to_send && o->n_sent == o->n_to_send) grpc_client_half_close(o->call);
}

static inline void outcome_drained(void *user)
{
    outcome *o = user;
    o->n_drained++;
    outcome_act(o, CANCEL_ON_DRAINED);
    if (o->status < 0) outcome_feed(o);
}

static inline void outcome_end(void *user, grpc_status status, const char *message)
{
    outcome *o = user;
    assert_int_equal(o->status, -1);
    o->status = (int)status;
    snprintf(o->message, sizeof o->message, "%s", message);
}

static inline void world_open(world *w, outcome *o, const char *path, const grpc_call_options *opt)
{
    grpc_client_events ev = {.user = o,
                             .message = outcome_message,
                             .metadata = outcome_metadata,
                             .drained = outcome_drained,
                             .end = outcome_end};
    o->w = w;
    o->status = -1;
    o->call = grpc_call_open(w->ch, path, opt, &ev);
    assert_non_null(o->call);
}

static inline void world_unary_call(world *w, outcome *o, const void *msg, size_t n)
{
    grpc_client_events ev = {.user = o, .message = outcome_message, .end = outcome_end};
    o->w = w;
    o->status = -1;
    o->call = grpc_call_start(w->ch, "/s.S/Unary", msg, n, NULL, 0, 0, &ev);
    assert_non_null(o->call);
}

/* ---- the world ------------------------------------------------------------------------------- */

static inline void world_connected(void *user)
{
    ((world *)user)->n_connected++;
}

static inline void world_disconnected(void *user, const char *why)
{
    world *w = user;
    w->n_disconnected++;
    snprintf(w->why, sizeof w->why, "%s", why);
}

static inline void world_closed(void *user)
{
    ((world *)user)->closed = 1;
}

static inline void world_hangs(uv_timer_t *t)
{
    fprintf(stderr, "the test hangs\n");
    abort();
}

#define RUN_UNTIL(w, condition) \
    while (!(condition)) uv_run(&(w)->loop, UV_RUN_ONCE)

/* A few turns in which nothing need happen. */
static inline void world_turns(world *w, int n)
{
    while (n--) uv_run(&w->loop, UV_RUN_NOWAIT);
}

static inline void world_open_loop(world *w)
{
    memset(w, 0, sizeof *w);
    uv_loop_init(&w->loop);
    uv_timer_init(&w->loop, &w->guard);
    uv_timer_start(&w->guard, world_hangs, 120000, 0);
}

static inline void world_serve(world *w, const http_limits *l)
{
    shoal_err err = {0};
    assert_int_equal(grpc_server_new(&w->server, &w->loop, world_unaries, 1, w, l, &err), 0);
    assert_int_equal(grpc_server_add_streams(w->server, world_methods,
                                             sizeof world_methods / sizeof *world_methods, w, &err),
                     0);
}

static inline void world_start(world *w, const http_limits *l)
{
    shoal_err err = {0};
    grpc_channel_events ev = {.user = w, .connected = world_connected, .disconnected = world_disconnected};
    world_open_loop(w);
    world_serve(w, l);
    if (grpc_server_listen(w->server, "127.0.0.1:0", &err) != 0) fail_msg("%s", err.message);
    snprintf(w->address, sizeof w->address, "127.0.0.1:%d", grpc_server_port(w->server));
    if (grpc_channel_new(&w->ch, &w->loop, w->address, &ev, &err) != 0) fail_msg("%s", err.message);
    RUN_UNTIL(w, w->n_connected == 1);
}

static inline void world_stop(world *w)
{
    grpc_channel_close(w->ch);
    grpc_server_close(w->server, world_closed, w);
    uv_close((uv_handle_t *)&w->guard, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_true(w->closed || !w->server);
}

#endif
