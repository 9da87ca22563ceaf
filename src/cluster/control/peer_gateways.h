/* peer_gateways.h: the other gateways of the cluster, of which a gateway tells its machines.
 *
 * Who has no CA follows the gateway that has it, and says where its own port for machines is. So the one with
 * the CA knows them all and tells them of each other, as it tells its machines: no other word is needed, and
 * none of it is believed without a certificate. With etcd a machine is told of those that place the same
 * models, which go on with the plan that it has. An address of this very machine is told to nobody elsewhere.
 */
#ifndef CONTROL_PEER_GATEWAYS_H
#define CONTROL_PEER_GATEWAYS_H

#include "control/control_impl.h"

typedef struct peer_gateways {
    Shoal__V1__Gateways message; /* points into the rest: do not copy */
    Shoal__V1__Gateway list[GATEWAYS_MAX], *pointers[GATEWAYS_MAX];
    char names[GATEWAYS_MAX][IDENTITY_NAME_SIZE];
    char addresses[GATEWAYS_MAX][GATEWAYS_ADDRESS_SIZE];
} peer_gateways;

/* What is to be told to that machine, or gateway, which came from there. */
void peer_gateways_list(peer_gateways *ret, const control *g, const member_entry *to, const char *from);
/* Of what it says; not 0. */
uint64_t peer_gateways_digest(const peer_gateways *o);
/* What a gateway that listens there says of its own address: the host where it listens at one, and the port;
 * else the port alone, and the other end sees where it comes from. */
void peer_gateways_own(char *ret, size_t size, const char *listen, int port);

#endif
