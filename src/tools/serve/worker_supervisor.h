/* worker_supervisor.h: the workers of a machine that is attached to a cluster, and the relay through which
 * gateways reach them.
 *
 * The models are those of a configuration on this machine, as `shoal serve` would start them (what else it
 * says is the gateway's business and is not looked at), and those that a gateway assigns, once their files
 * are here: from the store, or from this machine's own manifest where name and digest agree. A name that both
 * have is the configuration's. A gateway that is lost changes nothing.
 *
 *     worker_supervisor_open(&c, loop, &(worker_supervisor_options){.config = "shoal.yaml", .listen =
 * ":7081", .dir = &dir}, err);
 *     worker_supervisor_report(c, &message);          each second
 *     worker_supervisor_close(c, done, user);         they finish what runs
 *
 * Loop thread. */
#ifndef SERVE_WORKER_SUPERVISOR_H
#define SERVE_WORKER_SUPERVISOR_H

#include <uv.h>

#include "join/attach.h"
#include "shoal/v1/cluster.pb-c.h"

typedef struct worker_supervisor worker_supervisor;

typedef struct worker_supervisor_options {
    const char *config, *listen; /* shoal.yaml, or NULL; where the relay listens, HOST:PORT */
    uint64_t models_bytes;       /* of the store; 0: as the disk has it */
    uint64_t bytes_per_s;        /* with which they come; 0: as the network has it */
    const folder *dir;           /* with this machine's certificate; must outlive it */
} worker_supervisor_options;

int worker_supervisor_open(worker_supervisor **ret, uv_loop_t *loop, const worker_supervisor_options *o,
                           shoal_err *err);
int worker_supervisor_port(const worker_supervisor *c); /* of the relay */
/* Whose lists of revoked certificates are followed, and whose gateway has models; NULL: none any more.
 * Borrowed. */
void worker_supervisor_follow(worker_supervisor *c, attach *a);
void worker_supervisor_assign(worker_supervisor *c, const Shoal__V1__Assignments *a);
/* Which other machines have files that were assigned here. */
void worker_supervisor_hear(worker_supervisor *c, const Shoal__V1__Holders *m);
/* The certificate or the list on disk is new. */
void worker_supervisor_reload(worker_supervisor *c);
/* Where the agent is supervised: that child of the supervisor has ended. Until `done` of
 * worker_supervisor_close. */
void worker_supervisor_worker_exited(worker_supervisor *c, int pid, int status);
/* m->replicas is valid until the next call. */
void worker_supervisor_report(worker_supervisor *c, Shoal__V1__AgentMessage *m);
void worker_supervisor_close(worker_supervisor *c, void (*done)(void *user), void *user);

#endif
