/* etcd_client.h: a connection to a cluster of etcd servers, version 3, over our own gRPC.
 *
 * It is up with one endpoint at a time. When that one is lost, does not answer in time or has lost its own
 * cluster, the next is tried; when all have been, after a pause that doubles from 0.1 s to 5 s, partly drawn.
 * With a user, each connection begins with Authenticate; a token that is not taken any more is renewed by a
 * new connection. The password is read from its file each time, so that it may be changed under us.
 *
 *     etcd_client_open(&c, loop, env, &(etcd_client_options){.endpoints = e, .n_endpoints = 3}, err);
 *     etcd_client_listen(c, &(etcd_listener){.up = up, .down = down, .user = x});
 *     up():    etcd_client_call(c, ETCD_RANGE, &request.base, on_answer, x);
 *              grpc_client_call *s = etcd_client_stream(c, ETCD_WATCH, &events);
 *     etcd_client_close(c);
 *
 * No callback comes from inside a function of this header, but for the ends that etcd_client_close and
 * etcd_client_doubt bring about. Loop thread. */
#ifndef DISCOVERY_ETCD_CLIENT_H
#define DISCOVERY_ETCD_CLIENT_H

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "time/env.h"
#include "grpc/grpc.h"

#define ETCD_RANGE        "/etcdserverpb.KV/Range"
#define ETCD_PUT          "/etcdserverpb.KV/Put"
#define ETCD_DELETE_RANGE "/etcdserverpb.KV/DeleteRange"
#define ETCD_TXN          "/etcdserverpb.KV/Txn"
#define ETCD_WATCH        "/etcdserverpb.Watch/Watch"
#define ETCD_GRANT        "/etcdserverpb.Lease/LeaseGrant"
#define ETCD_REVOKE       "/etcdserverpb.Lease/LeaseRevoke"
#define ETCD_KEEP_ALIVE   "/etcdserverpb.Lease/LeaseKeepAlive"
#define ETCD_AUTHENTICATE "/etcdserverpb.Auth/Authenticate"

enum { ETCD_MESSAGE_MAX = 4 << 20 }; /* an etcd request is 1.5 MiB at most, unless told otherwise */

typedef struct etcd_client etcd_client;

/* Copied; zero means the default in brackets. */
typedef struct etcd_client_options {
    const char *const *endpoints; /* "host:port" */
    size_t n_endpoints;
    tls_context *tls;          /* [clear text] referenced */
    const char *user;          /* [none] */
    const char *password_file; /* one line */
    unsigned call_ms;          /* [3000] so long a call may take; then the endpoint is given up */
    unsigned connect_ms;       /* [3000] name, connection and handshake */
} etcd_client_options;

/* One who uses it; lives as long as it listens. All calls and streams of a connection have ended when down
 * comes. */
typedef struct etcd_listener {
    void *user;
    void (*up)(void *user);
    void (*down)(void *user, const char *why);
    struct etcd_listener *next;
} etcd_listener;

int etcd_client_open(etcd_client **ret, uv_loop_t *loop, const env *e, const etcd_client_options *o,
                     shoal_err *err);
void etcd_client_close(etcd_client *c); /* listeners hear nothing; calls are forgotten; accepts NULL */

/* Tells up on the loop when it is so already. */
void etcd_client_listen(etcd_client *c, etcd_listener *l);
void etcd_client_unlisten(etcd_client *c, etcd_listener *l);
bool etcd_client_is_up(const etcd_client *c);
const char *
etcd_client_trouble(const etcd_client *c); /* why it is not up; "" while it is, or has just begun */
const char *etcd_client_endpoint(const etcd_client *c); /* the one that is used or tried */
const env *etcd_client_env(const etcd_client *c);

/* The endpoint is silent: leave it for the next. The ends of its calls and `down` come before it returns. */
void etcd_client_doubt(etcd_client *c, const char *why);

/* ---- calls --------------------------------------------------------------------------------------- */

typedef struct etcd_answer {
    grpc_status status;
    const char *message;  /* of a failure, for people: "etcdserver: permission denied" */
    const uint8_t *bytes; /* of a success; borrowed */
    size_t n;
} etcd_answer;

typedef struct etcd_call etcd_call;
typedef void (*etcd_answer_fn)(void *user, const etcd_answer *a);

/* One request, one answer, exactly once. NULL: not up, or out of memory; nothing follows. */
etcd_call *etcd_client_call(etcd_client *c, const char *path, const ProtobufCMessage *m, etcd_answer_fn fn,
                            void *user);
void etcd_call_cancel(etcd_call *x); /* no answer comes; accepts NULL */

/* A stream with the metadata that etcd wants; NULL as above. */
grpc_client_call *etcd_client_stream(etcd_client *c, const char *path, const grpc_client_events *ev);
/* As grpc_client_send. SHOAL_ENOMEM. */
int etcd_stream_send(grpc_client_call *s, const ProtobufCMessage *m);
/* An end of a stream with this status means that the token is not taken any more. */
void etcd_client_renew(etcd_client *c);

#endif
