/* control.h: the control-plane listener: the port of a gateway at which machines join the cluster and attach.
 *
 * One gRPC server behind TLS 1.3, with the services of cluster.proto. Whoever has no certificate may say one
 * thing: Enrol, with a token, and not often (trust/guard.h). Members renew their certificates and nodes
 * attach; it keeps the member table. A revocation reaches attached machines within two seconds, by `shoal
 * ca revoke` on this machine or by the list that comes from the gateway with the CA.
 *
 *     control_open(&g, loop, &(control_options){.listen = ":7080", .members = registry}, err);
 *     member_table_put_json(control_member_table(g), clock_ns(), &out);
 *     control_close(g, closed, user);
 *
 * What the CA does (a signature, two files synced) runs on the loop's thread pool, one after the other. Loop
 * thread. */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include <stdint.h>
#include <uv.h>

#include "agent/agent.h"
#include "cluster/placement.h"
#include "cluster/registry.h"
#include "control/member_table.h"
#include "time/env.h"
#include "wire/tls.h"

typedef struct control control;

typedef struct control_options {
    const char *listen; /* HOST:PORT */
    const char *state;  /* the state folder; NULL: the usual one */
    const char *name;   /* this gateway's; NULL: see node_credential.h */
    /* How `members` reaches workers of other machines: gets the gateway's TLS; may be NULL. Must outlive the
     * listener. */
    connector_remote *far;
    registry *members;   /* told of nodes as they come, change and go; NULL: nobody is */
    const env *time;     /* NULL: the loop's (wire/env_uv.h). Must outlive the listener */
    uint64_t silence_ms; /* who says nothing for so long is lost; 0: CONTROL_SILENCE_MS */
} control_options;

enum {
    CONTROL_REPORT_MS = 1000, /* so often machines report, and the listener looks around */
    CONTROL_SILENCE_MS = 5000,
    CONTROL_CONNECTIONS_MAX = MEMBER_TABLE_NODES_MAX + 64,
    CONTROL_UNAUTHENTICATED_MAX =
        64,                /* connections of one address without a certificate, or on the way to show one */
    CONTROL_MESSAGES = 64, /* of one machine between two looks around: then it waits for the next */
};

/* Errors as node_credential_open's, and SHOAL_EIO when it cannot listen there. */
int control_open(control **ret, uv_loop_t *loop, const control_options *o, shoal_err *err);
int control_port(const control *g);
const tls_context *control_tls(const control *g); /* with this gateway's certificate; borrowed */
const char *control_name(const control *g);
const char *control_state(const control *g); /* the state folder, with its certificate */
const member_table *control_member_table(const control *g);
/* ---- placement (placer.c) --------------------------------------------------------------------- */

typedef struct control_model {
    placement_model want;
    worker_spec spec; /* of one worker; path is the file on this machine */
} control_model;

/* Where gateways with the same models keep one shared plan, of which the one that leads writes
 * (discovery/etcd_shared_plan.h). */
typedef struct control_shared_plan {
    void *user;
    bool (*leads)(void *user);         /* this one does */
    const char *(*leader)(void *user); /* its name; NULL: nobody leads, as far as is known */
    void (*post)(void *user, const char *node, const uint8_t *plan,
                 size_t n); /* plan NULL: it has none more */
} control_shared_plan;

typedef struct control_place_options {
    const control_model *models; /* with what they point to they must outlive the listener */
    size_t n_models;
    const worker_spec *alone; /* what this machine serves that is not in the shared plan; as models */
    size_t n_alone;
    const char *site;                           /* of this machine; NULL: none */
    double bytes_per_s, multiplies_per_s;       /* that it has measured; 0: it has not */
    int (*machine)(node **ret, shoal_err *err); /* this machine's facts; NULL: node_here */
    /* What this machine itself is to serve from now on; the list is borrowed by the call. */
    void (*here)(void *user, const worker_spec *workers, size_t n);
    void *user;
    const control_shared_plan *shared_plan; /* NULL: this gateway places alone. Must outlive the listener */
} control_place_options;

/* From now on this gateway says which machine serves what: it plans when something has changed, at most once
 * a second, tells attached machines and, by `here` (for the first time inside this call), its own. Without a
 * shared plan only the gateway with the CA does: SHOAL_EINVALID elsewhere. With one, whoever leads plans for
 * all machines that are attached to gateways of the group, and for these; the others tell theirs what was
 * planned. While nobody leads all stays as it is; a gateway of which no plan is known a while after its start
 * serves its own models. */
int control_place(control *g, const control_place_options *o, shoal_err *err);
bool control_has_ca(const control *g);
/* Append what the last plan was made of and came to, a JSON object (serve/plan_live.h reads it).
 * SHOAL_EINVALID: another gateway places models. */
int control_put_placement(const control *g, buf *out, shoal_err *err);
/* Gateways with the same group have the same models; NULL: this one has no shared plan. */
const char *control_group(const control *g);
/* From the shared plan: a machine's part, or NULL: it has none; all have been read; another leads, or this
 * one does. */
void control_plan_read(control *g, const char *node, const uint8_t *plan, size_t n);
void control_plans_synced(control *g);
void control_leader_changed(control *g);

/* Replicas move one by one from busy machines to idle ones, as long as it gains much. SHOAL_EINVALID: another
 * gateway places models. */
int control_rebalance(control *g, shoal_err *err);
/* This machine's speeds, as measured since control_place. */
void control_place_speeds(control *g, double bytes_per_s, double multiplies_per_s);
/* n_replicas and n_standby of the models have changed: the next plan follows. */
void control_place_again(control *g);
/* Does this gateway say now what runs where? */
bool control_plans(const control *g);
/* Of one that plans: of n replicas of the model, more than it wants, so many have a machine (placement_room). */
unsigned control_room(const control *g, const char *model, unsigned n, char *ret_why, size_t size);

/* An operator's command for a machine. DRAIN: its streams go on elsewhere, and its replicas leave as soon as
 * others have taken over; RESUME: it may have some again; REMOVE: its certificate is revoked, its replicas
 * are placed elsewhere at once. SHOAL_ENOTFOUND, SHOAL_EINVALID (this gateway places nothing), SHOAL_EFULL:
 * try again. */
typedef enum operator_command { OPERATOR_DRAIN, OPERATOR_RESUME, OPERATOR_REMOVE } operator_command;
int control_node_command(control *g, const char *name, operator_command what, shoal_err *err);
bool control_node_drains(const control *g, const char *name);

/* Everybody is cut off; `closed` when the memory is gone. g may be NULL (closed is called at once). */
void control_close(control *g, void (*closed)(void *user), void *user);

#endif
