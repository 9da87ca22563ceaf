/* etcd_session.h: a session with a cluster of etcd servers, version 3, over our own gRPC: connection, lease, retries.
 *
 * The connection is to one endpoint at a time. When that one is lost, does not answer in time or has lost its own
 * cluster, the next is tried; when all have been, after a pause that doubles from 0.1 s to 5 s, plus or minus a
 * quarter. With a user, each connection begins with Authenticate; a token that is refused is renewed by a new
 * connection. The password is read from its file each time, so that it can be changed while we run.
 *
 * The lease is granted as soon as the session is up and is kept alive every third of its life: keys written under it
 * go when this process goes. A lease that ran out or was revoked by hand is lost, and the next one is requested at
 * once. While etcd is away nobody can know: the lease counts as it was, and etcd_session_lease_until_ns says how long
 * it holds at least.
 *
 * A listener does its work in `ready` and calls etcd_session_retry when a request failed on a connection that stands.
 *
 *     etcd_session_open(&s, loop, env, &(etcd_session_options){.endpoints = e, .n_endpoints = 3}, err);
 *     etcd_session_listen(s, &x->listener, err);     // {.user = x, .ready = work, .down = stop}
 *     work(): x->call = etcd_session_call(s, ETCD_RANGE, &request.base, answered, x);
 *     answered(): if (a->status != GRPC_OK) etcd_session_retry(&x->listener);
 *     etcd_session_close(s);
 *
 * No callback comes from inside a function of this header, but for the ends that etcd_session_close and
 * etcd_session_doubt bring about and what etcd_session_doubt_lease tells. Loop thread. */
#ifndef DISCOVERY_ETCD_SESSION_H
#define DISCOVERY_ETCD_SESSION_H

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "time/env.h"
#include "grpc/grpc.h"

#define ETCD_RANGE        "/etcdserverpb.KV/Range"
#define ETCD_TXN          "/etcdserverpb.KV/Txn"
#define ETCD_WATCH        "/etcdserverpb.Watch/Watch"
#define ETCD_GRANT        "/etcdserverpb.Lease/LeaseGrant"
#define ETCD_REVOKE       "/etcdserverpb.Lease/LeaseRevoke"
#define ETCD_KEEP_ALIVE   "/etcdserverpb.Lease/LeaseKeepAlive"
#define ETCD_AUTHENTICATE "/etcdserverpb.Auth/Authenticate"

enum { ETCD_MESSAGE_MAX = 4 << 20 }; /* etcd's default limit of a request is 1.5 MiB */

typedef struct etcd_session etcd_session;

/* Copied; zero means the default in brackets. */
typedef struct etcd_session_options {
    const char *const *endpoints; /* "host:port" */
    size_t n_endpoints;
    tls_context *tls;          /* [clear text] referenced */
    const char *user;          /* [none] */
    const char *password_file; /* one line */
    unsigned lease_s;          /* [no lease] */
    unsigned call_ms;          /* [3000] the longest a call may take; then the endpoint is given up */
    unsigned connect_ms;       /* [3000] name, connection and handshake */
} etcd_session_options;

typedef enum etcd_lease_event {
    ETCD_LEASE_GRANTED,   /* a new one: nothing is written under it */
    ETCD_LEASE_CONFIRMED, /* it holds longer */
    ETCD_LEASE_LOST,      /* it and its keys are gone */
} etcd_lease_event;

/* Lives as long as it listens. The first four are the caller's; those but `ready` may be NULL. */
typedef struct etcd_listener {
    void *user;
    void (*ready)(void *user);                 /* up, or the pause of a retry is over */
    void (*down)(void *user, const char *why); /* all calls and streams have ended by now */
    void (*lease)(void *user, etcd_lease_event what);
    etcd_session *s;
    struct etcd_listener *next;
    env_timer *retry;
    uint64_t pause_ms;
    bool told; /* ready, and not down since */
} etcd_listener;

int etcd_session_open(etcd_session **ret, uv_loop_t *loop, const env *e, const etcd_session_options *o,
                      shoal_err *err);
void etcd_session_close(etcd_session *s); /* listeners hear nothing; calls are forgotten; accepts NULL */

/* If the session is up, `ready` comes on the loop. */
int etcd_session_listen(etcd_session *s, etcd_listener *l, shoal_err *err);
void etcd_session_unlisten(etcd_listener *l); /* also one that never listened */
/* `ready` again after a pause that doubles from 0.2 s to 5 s, or at the next connection. */
void etcd_session_retry(etcd_listener *l);
void etcd_session_succeeded(etcd_listener *l); /* the next pause is the shortest */

bool etcd_session_is_up(const etcd_session *s);
const char *
etcd_session_trouble(const etcd_session *s); /* why it is not up; "" while it is, or has just begun */
const char *etcd_session_endpoint(const etcd_session *s); /* the one that is used or tried */
const env *etcd_session_env(const etcd_session *s);

/* The endpoint is silent: leave it for the next. The ends of its calls and `down` come before it returns. */
void etcd_session_doubt(etcd_session *s, const char *why);

/* ---- the lease ----------------------------------------------------------------------------------- */

int64_t etcd_session_lease(const etcd_session *s); /* 0: there is none */
/* Until then etcd holds it for certain, on our own clock: counted from when the last keepalive that was answered had
 * been sent, less a tenth of its life for clocks that run unlike. 0: no lease. */
uint64_t etcd_session_lease_until_ns(const etcd_session *s);
/* A request was answered "no such lease" (NOT_FOUND). */
void etcd_session_doubt_lease(etcd_session *s);
/* Give it back with all its keys; `done` when etcd has answered, or cannot be asked (called at once then). No other
 * lease is requested. */
void etcd_session_revoke(etcd_session *s, void (*done)(void *user), void *user);

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
etcd_call *etcd_session_call(etcd_session *s, const char *path, const ProtobufCMessage *m, etcd_answer_fn fn,
                             void *user);
void etcd_call_cancel(etcd_call *x); /* no answer comes; accepts NULL */

/* A stream with the metadata that etcd wants; NULL as above. */
grpc_client_call *etcd_session_stream(etcd_session *s, const char *path, const grpc_client_events *ev);
/* As grpc_client_send. SHOAL_ENOMEM. */
int etcd_stream_send(grpc_client_call *stream, const ProtobufCMessage *m);
/* For the stream's end event. True: open it again after a pause. False: the session is not up, or leaves this endpoint
 * for what the status says of it; `ready` follows. */
bool etcd_stream_may_reopen(etcd_session *s, grpc_status status, const char *message);

#endif
