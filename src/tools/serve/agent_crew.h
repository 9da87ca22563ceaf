/* agent_crew.h: the workers of a machine that is attached to a cluster, and the relay through which gateways
 * reach them.
 *
 * The models are those of a configuration on this machine, as `shoal serve` would start them (what else it
 * says is the gateway's business and is not looked at), and those that a gateway assigns, once their files
 * are here: from the store, or from this machine's own manifest where name and digest agree. A name that both
 * have is the configuration's. A gateway that is lost changes nothing.
 *
 *     crew_open(&c, loop, &(crew_options){.config = "shoal.yaml", .listen = ":7081", .dir = &dir}, err);
 *     crew_report(c, &message);          each second
 *     crew_close(c, done, user);         they finish what runs
 *
 * Loop thread. */
#ifndef SERVE_AGENT_CREW_H
#define SERVE_AGENT_CREW_H

#include <uv.h>

#include "join/attach.h"
#include "shoal/v1/cluster.pb-c.h"

typedef struct crew crew;

typedef struct crew_options {
    const char *config, *listen; /* shoal.yaml, or NULL; where the relay listens, HOST:PORT */
    uint64_t models_bytes;       /* of the store; 0: as the disk has it */
    uint64_t bytes_per_s;        /* with which they come; 0: as the network has it */
    const folder *dir;           /* with this machine's certificate; must outlive it */
    bool json_log;
} crew_options;

int crew_open(crew **ret, uv_loop_t *loop, const crew_options *o, shoal_err *err);
int crew_port(const crew *c); /* of the relay */
/* Whose lists of revoked certificates are followed, and whose gateway has models; NULL: none any more.
 * Borrowed. */
void crew_follow(crew *c, attach *a);
void crew_assign(crew *c, const Shoal__V1__Assignments *a);
/* Which other machines have files that were assigned here. */
void crew_hear(crew *c, const Shoal__V1__Holders *m);
/* The certificate or the list on disk is new. */
void crew_reload(crew *c);
/* Where the agent is supervised: that child of the supervisor has ended. Until `done` of crew_close. */
void crew_worker_exited(crew *c, int pid, int status);
/* m->replicas is valid until the next call. */
void crew_report(crew *c, Shoal__V1__AgentMessage *m);
void crew_close(crew *c, void (*done)(void *user), void *user);

#endif
