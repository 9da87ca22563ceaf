/* attach.h: this machine stays attached to a gateway, whichever, and says how it is.
 *
 *     attach_options o = {.address = "10.0.0.1:7080", .dir = &dir, .facts = &facts};
 *     attach_open(&a, loop, &o, err);
 *     uv_run(loop, UV_RUN_DEFAULT);
 *     attach_close(a, closed, user);
 *
 * The machine has joined (join.h): a node, or a gateway that follows the one with the CA. A connection that
 * is lost, silent for five seconds or refused is made again, after a pause that doubles from 0.25 s to 10 s
 * and is partly drawn, so that a thousand machines do not come back in one instant. At two thirds of the
 * certificate's life a new key gets a new certificate; the machine attaches with it and leaves the old
 * connection then, so that it is never away. Loop thread; what it writes to the disk (at a renewal, a new
 * list of revoked certificates, gateways that it had not heard of) blocks for milliseconds.
 *
 * A machine that roams knows the other gateways of the cluster (gateways.h) and tries them in turn when its
 * own is lost; it is attached to one at a time, each time with a higher epoch, by which gateways see which of
 * them has it. It stays where it is, unless that gateway says that it may go home: then it attaches there
 * before it leaves. */
#ifndef JOIN_ATTACH_H
#define JOIN_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "join/gateways.h"
#include "shoal/v1/cluster.pb-c.h"
#include "time/env.h"
#include "trust/credential.h"
#include "grpc/grpc.h"

typedef struct attach attach;

typedef struct attach_options {
    const char *address;               /* of its gateway, or several (gateways_give) */
    bool roams;                        /* it may attach to gateways that others tell it of */
    role role;                         /* that its certificate must say */
    const folder *dir;                 /* must outlive it */
    const Shoal__V1__NodeFacts *facts; /* copied */
    /* What to say of replicas, each second: fill m->replicas, which must live until the next call. May be
     * NULL. */
    void (*report)(void *user, Shoal__V1__AgentMessage *m);
    /* Welcomed resp. lost (with the reason). May be NULL. */
    void (*attached)(void *user, const char *gateway);
    void (*detached)(void *user, const char *why);
    /* member.pem or crl.pem are new: whoever else reads them reads them again. May be NULL. */
    void (*changed)(void *user);
    /* What this machine is to serve; borrowed. May be NULL. */
    void (*assigned)(void *user, const Shoal__V1__Assignments *a);
    /* Who has files that it was assigned; borrowed. May be NULL. */
    void (*holders)(void *user, const Shoal__V1__Holders *m);
    int64_t (*now)(void *user); /* seconds since 1970, for renewals; NULL: time(2) */
    const env *time;            /* NULL: the loop's (wire/env_uv.h). Must outlive it */
    void *user;
} attach_options;

int attach_open(attach **ret, uv_loop_t *loop, const attach_options *o, shoal_err *err);
/* `closed` comes from the loop, when the memory is gone. a may be NULL (closed is called at once). */
void attach_close(attach *a, void (*closed)(void *user), void *user);

/* Say how it is now, not only at the end of the second. */
void attach_report(attach *a);
/* Speeds that were measured since the facts were said; they go with the next report. */
void attach_speeds(attach *a, double bytes_per_s, double multiplies_per_s);
/* The TLS with which it reaches gateways; for other channels to them. Borrowed. */
tls_context *attach_tls(const attach *a);
/* Of the gateway that it is attached to, or tries to be. Borrowed until the next event. */
const char *attach_address(const attach *a);
/* Those that it knows; the name of the one that it is attached to is among them. */
const gateways *attach_gateways(const attach *a);
bool attach_is_up(const attach *a); /* it is attached */
/* A call to that gateway; NULL: it is not attached, or the gateway takes none. As grpc_call_start. */
grpc_client_call *attach_call(attach *a, const char *path, const void *msg, size_t n, uint64_t deadline_ns,
                              const grpc_client_events *ev);

/* Is the certificate of that serial on the newest list that is known? */
bool attach_knows_revoked(const attach *a, const char *serial);

/* The pause before attempt n (from 0), with a draw in [0, 1). Pure. */
uint64_t attach_pause_ms(unsigned n, double draw);

#endif
