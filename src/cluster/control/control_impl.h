/* control_impl.h: what the files of the control-plane listener share. */
#ifndef CONTROL_CONTROL_IMPL_H
#define CONTROL_CONTROL_IMPL_H

#include "logging/log_limit.h"
#include "join/attach.h"
#include "control/control.h"
#include "control/bundles.h"
#include "control/residency.h"
#include "cluster/source.h"
#include "control/node_credential.h"
#include "control/attach_limit.h"
#include "trust/guard.h"
#include "grpc/grpc.h"
#include "wire/tls_expiry.h"

typedef struct control_job control_job;
typedef struct placer placer;

struct control {
    uv_loop_t *loop;
    node_credential credential;
    tls_context *tls, *as_client;
    tls_expiry expiry; /* of tls */
    connector_remote *far; /* NULL: workers of other machines are not reached */
    grpc_server *server;
    member_table *member_table;
    guard guard;
    attach_limit attach_limit;
    log_limit lines; /* that others have caused */
    env loop_time;
    const env *e; /* time and timers: loop_time, or what the caller gave */
    env_timer *tick;
    control_job *jobs, **last_job; /* the first one runs */
    size_t n_passed;               /* calls that the gateway with the CA is to answer */
    bool recheck;                  /* at the next tick: who was told to leave is cut off */
    bool closing, server_open, follow_open;
    attach *follow;  /* the gateway with the CA, where this one has none; NULL: it has */
    source *members; /* NULL: nobody listens */
    registry *registry;
    residency residency;
    model_sends sends;
    placer *placer; /* NULL: this gateway places nothing */
    uint64_t silence_ns;
    void (*closed)(void *user);
    void *closed_user;
};

/* control_join.c: Enrol and Renew. */
void control_on_enrol(void *user, grpc_call *c, const uint8_t *msg, size_t n);
void control_on_renew(void *user, grpc_call *c, const uint8_t *msg, size_t n);
void control_end_crowded(grpc_call *c); /* the caller is told when to come again (join.h) */
void control_jobs_forget(control *g);   /* their callers are gone: what runs ends by itself */

/* control_pass.c: what the gateway with the CA alone can answer: it is asked, and the caller gets its
 * answer. */
void control_pass_on(control *g, grpc_call *c, const char *path, const uint8_t *msg, size_t n);

/* control_attach.c: Attach. */
extern const grpc_stream_method control_attach_method;
void control_attach_tick(control *g, uint64_t now_ns, int64_t now);
void control_attach_forget(control *g);       /* the calls are gone already */
void control_attach_tell_revoked(control *g); /* send the list to all, and those on it away */

/* To the machine's session, which may be in trouble: then it is not sent. */
void control_attach_send(const member_entry *e, const Shoal__V1__ServerMessage *m);
void control_attach_retell(const member_entry *e); /* its replicas, to the registry */
void control_attach_expel(member_entry *e, const char *why);
const char *control_attach_from(const member_entry *e); /* where it came from; "" when it has left */

/* placer.c, placer_relief.c */
void placer_enrolled(control *g, const char *node); /* a machine that was never here, or not as itself */
void placer_greet(control *g, const char *node);    /* it does not know what it is to serve */
void placer_changed(control *g);                    /* plan again soon */
void placer_lost(control *g, const char *node,
                 uint64_t silent_ns); /* it will be detached: so long it was silent */
void placer_tick(control *g, uint64_t now_ns);
void placer_free(placer *p); /* accepts NULL */
/* The path of the file that has this digest, if it may be fetched. */
bool placer_file(const control *g, const char *digest, char ret_path[MODEL_SEND_PATH]);

/* control_fetch.c: Fetch. */
void control_on_fetch(void *user, grpc_call *c, const uint8_t *msg, size_t n);

/* control_replicas.c: the machine's replicas as members, resp. those that it had and has no more (was NULL:
 * what it had before it attached). */
/* "HOST:PORT" of the machine's relay; false: it has none. */
bool control_replicas_address(const member_entry *e, char *ret, size_t size);
void control_replicas_tell(control *g, const member_entry *e, const char *from);
void control_replicas_drop(control *g, const char *node, const Shoal__V1__Replicas *was,
                           const Shoal__V1__Replicas *is);

/* control.c: the memory goes when nothing of it is used any more. */
void control_release(control *g);
int64_t control_now(void); /* seconds since 1970 */
uint64_t control_now_ns(const control *g);
/* May a line that this address, or member, has caused be written? Else it is counted, and told later. */
bool control_may_log(control *g, const char *from);

#endif
