/* etcd_member.h: what is written into etcd of machines and replicas, as JSON, and read from there.
 *
 *     PREFIX/nodes/NAME          {"instance":"9f…","site":"attic","isa":"avx2","cores":4,"memory_bytes":…}
 *     PREFIX/machines/NAME/NODE  the same, of a machine that is attached to the gateway NAME, and how it is
 *     PREFIX/replicas/NAME/ID    {"model":"m","address":"unix:/run/…","machine":"c5…","generation":17,
 *                                 "state":"ready"}; and "node" where it is on such a machine
 *
 * The address may also be a relay's, "relay:HOST:PORT/NODE/WORKER" (connector.h), which any machine can reach.
 * NAME is that of the gateway or agent which wrote it, ID the replica's there ("home-intent/0"). Of a machine
 * that two gateways name, the one with the newer "epoch" has it. Others may write these keys, too, so that
 * all is looked over: texts that fit a line, numbers that are numbers, addresses that are some. Keys that are
 * not named here are stepped over. Pure. */
#ifndef DISCOVERY_ETCD_MEMBER_H
#define DISCOVERY_ETCD_MEMBER_H

#include <jansson.h>

#include "base/buf.h"
#include "cluster/node.h"
#include "cluster/replica.h"

enum { ETCD_VALUE_BYTES = 8192 }; /* of any value; a replica has some 300 */

#define ETCD_NODES    "nodes/"
#define ETCD_MACHINES "machines/"
#define ETCD_REPLICAS "replicas/"
#define ETCD_LEADER   "leader/"
#define ETCD_LEADERS  "leaders/" /* GROUP/LEASE */
#define ETCD_PLAN     "plan/"    /* GROUP/NODE, etcd_shared_plan.h */

typedef enum etcd_kind { ETCD_OTHER, ETCD_NODE, ETCD_MACHINE, ETCD_REPLICA } etcd_kind;

/* What a key (behind the prefix) is about. The name goes to `name` (64 bytes); *ret_id points into the key
 * ("NAME/ID" of a replica, "NAME/NODE" of a machine). SHOAL_EINVALID: it begins as one of ours and is none.
 */
int etcd_member_key(const char *key, etcd_kind *ret, char name[64], const char **ret_id, shoal_err *err);

typedef struct etcd_replica {
    const char *model, *address;
    const char *machine; /* where a Unix socket's address means something; "" when not said */
    const char *reason;
    const char *node; /* where it is; "": where who wrote it is */
    uint64_t generation;
    replica_state state;
    bool standby;
} etcd_replica;

typedef struct etcd_node {
    node facts;           /* without a name: the key has it */
    const char *instance; /* the process that wrote it */
    const char *labels[32];
    node_device devices[NODE_DEVICES_MAX];
} etcd_node;

/* Texts are borrowed from *ret_root, which is the caller's (json_decref). SHOAL_EINVALID says what is wrong.
 * Do not copy an etcd_node: its facts point into it. */
int etcd_member_read_replica(etcd_replica *ret, json_t **ret_root, const uint8_t *value, size_t n,
                             shoal_err *err);
int etcd_member_read_node(etcd_node *ret, json_t **ret_root, const uint8_t *value, size_t n, shoal_err *err);
void etcd_member_put_replica(buf *out, const etcd_replica *r);
void etcd_member_put_node(buf *out, const node *n, const char *instance);

/* What tells this machine from others as long as it runs, in hexadecimal: the kernel's boot id, hashed. */
void etcd_member_machine(char ret[33]);

#endif
