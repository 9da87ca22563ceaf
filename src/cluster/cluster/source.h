/* source.h: where the members of the cluster come from.
 *
 * A source says who belongs: `put` a member, `drop` one, and `synced` once it has said all it knows. The
 * local agent is one (agent.h), a list in the configuration another (table.h), then DNS (dns.h), remote
 * agents, etcd. Sources only tell; whether a member answers, the registry finds out by itself.
 *
 * News may come late and twice: of one id the highest generation counts, older ones are ignored. An id
 * belongs to the source that spoke first of its highest generation, or to the one that speaks for its
 * machine: of several sources that know a machine, the one with the newest epoch of it. When that one drops
 * it, it goes to another source that has said it too, and nothing is disturbed; with the last one it is gone.
 * A source that lost whoever it hears from is `away`: its members stay as they were last seen, and /readyz
 * shows the reason. Loop thread only.
 *
 *     source *s;
 *     source_open(&s, g, "table", &err);
 *     member m = {.id = "m/0", .generation = 1, .model = "m", .address = "unix:/run/m.sock"};
 *     source_put(s, &m, &err);
 *     source_synced(s);
 *     source_drop(s, "m/0", 1);
 *     source_close(s);    // drops what it put
 */
#ifndef CLUSTER_SOURCE_H
#define CLUSTER_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/replica.h"

typedef struct registry registry;

/* What a source says of one replica. Copied. */
typedef struct member {
    const char *id;      /* one in the cluster has it */
    uint64_t generation; /* 0: this source does not know; every new connection counts as a life */
    const char *model;
    const char *address;
    const char *node; /* that was put before; NULL: this machine, or not said */
    /* STARTING (which is 0) and READY: a process is there; it is ready once it says so. */
    replica_state state;
    const char *reason; /* for people; may be NULL */
    process process;
    bool standby; /* loaded and not asked, until its source says otherwise */
    bool guest;   /* it comes or goes while others serve: nobody is less ready without it */
} member;

typedef struct source source;

/* Named as in logs and in /readyz; the name must outlive it. */
int source_open(source **ret, registry *g, const char *name, shoal_err *err);
/* Drops all that it put, then goes; accepts NULL. */
void source_close(source *s);

/* A new member, a new life of one, or other news of it. SHOAL_ENOMEM: nothing has changed. News of a member
 * with the same generation and address needs no memory and cannot fail. */
int source_put(source *s, const member *m, shoal_err *err);
/* That life is over, and no other will come; news of a life that is older than what is known is ignored. */
void source_drop(source *s, const char *id, uint64_t generation);
/* What an agent says of its machine. Its replicas see the new facts at once. Of a machine for which another
 * source speaks, with the same epoch or a newer one, it is only kept that this source knows it as well. */
int source_put_node(source *s, const node *n, shoal_err *err);
void source_drop_node(source *s, const char *name); /* with all replicas on it that no other source knows */

/* All there is has been said (again). */
void source_synced(source *s);
/* Nothing is heard any more, and why; the members stay. Until synced again. */
void source_away(source *s, const char *why);

const char *source_name(const source *s);
bool source_is_synced(const source *s);
const char *source_trouble(const source *s); /* "" while all is well */

#endif
