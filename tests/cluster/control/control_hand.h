/* One channel to a control-plane listener, and a call on it that says what no machine would. */
#ifndef TESTS_CONTROL_HAND_H
#define TESTS_CONTROL_HAND_H

#include "control_world.h"

#include "grpc/grpc.h"

typedef struct hand { /* one channel, one call */
    grpc_channel *ch;
    tls_context *tls;
    bool connected, lost, ended;
    int status, n_messages;
    char why[320];
} hand;

static inline void hand_connected(void *user)
{
    ((hand *)user)->connected = true;
}

static inline void hand_lost(void *user, const char *why)
{
    hand *h = user;
    h->lost = true;
    snprintf(h->why, sizeof h->why, "%s", why);
}

static inline void hand_message(void *user, const uint8_t *msg, size_t n)
{
    ((hand *)user)->n_messages++;
}

static inline void hand_end(void *user, grpc_status status, const char *message)
{
    hand *h = user;
    h->ended = true;
    h->status = (int)status;
    snprintf(h->why, sizeof h->why, "%s", message ? message : "");
}

static inline bool anybody(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    return true;
}

/* With the certificate in that folder, or as a guest. */
static inline void hand_connect(hand *h, const char *member_name)
{
    char cert[256], root[256];
    shoal_err err;
    *h = (hand){0};
    snprintf(root, sizeof root, "%s/ca.crt", w.state);
    tls_options o = {.ca_file = root, .any_name = true, .admit = anybody};
    snprintf(cert, sizeof cert, "%s/%s/member.pem", place, member_name ? member_name : "");
    if (member_name) o.cert_file = o.key_file = cert;
    if (tls_context_new(&h->tls, TLS_CLIENT, &o, &err) != 0) fail_msg("%s", err.message);
    const grpc_channel_events ev = {.user = h, .connected = hand_connected, .disconnected = hand_lost};
    const grpc_channel_options c = {.tls = h->tls};
    if (grpc_channel_open(&h->ch, &w.loop, w.address, &c, &ev, &err) != 0) fail_msg("%s", err.message);
    TURN_UNTIL(h->connected || h->lost);
}

static inline grpc_client_call *hand_call(hand *h, const char *path, const void *msg, size_t n)
{
    const grpc_client_events ev = {.user = h, .message = hand_message, .end = hand_end};
    grpc_client_call *c = grpc_call_open(h->ch, path, NULL, &ev);
    assert_non_null(c);
    grpc_client_send(c, msg, n);
    return c;
}

static inline void hand_close(hand *h)
{
    grpc_channel_close(h->ch);
    tls_context_unref(h->tls);
    uv_run(&w.loop, UV_RUN_NOWAIT);
}

static inline void serial_of(const folder *dir, char serial[CERT_SERIAL_SIZE])
{
    credential c = {0};
    assert_int_equal(credential_load(&c, dir, NULL), 0);
    cert_serial(c.cert, serial);
    credential_done(&c);
}

#endif
