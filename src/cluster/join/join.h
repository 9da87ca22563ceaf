/* join.h: this machine joins a cluster: a token becomes a certificate.
 *
 *     folder_open(&dir, "/var/lib/shoal", true, err);
 *     join_ask ask = {.address = "10.0.0.1:7080", .token = text, .name = "kitchen-pi"};
 *     rc = join_cluster(&ask, &dir, err);
 *
 * The key is made here and stays here. Nothing is sent, least of all the token, before the server has shown a
 * gateway's certificate of the CA that the token pins: there is no trust on first use. What comes of it is in
 * the folder (credential.h, the address in the file "gateway", the token's id in "token"), and only then is
 * the call done. */
#ifndef JOIN_JOIN_H
#define JOIN_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "shoal/v1/cluster.pb-c.h"
#include "join/gateways.h"
#include "trust/credential.h"

typedef struct join_ask {
    const char *address; /* of the gateway, HOST:PORT; or several (gateways.h): the first that answers */
    const char *token;
    const char *name;                  /* what this machine is to be called */
    const Shoal__V1__NodeFacts *facts; /* may be NULL */
} join_ask;

#define JOIN_RENEW "shoal.v1.Join/Renew" /* what the signature of a renewal is for */

enum { JOIN_TIMEOUT_MS = 15000, JOIN_ADDRESS_MAX = GATEWAYS_GIVEN_MAX * (GATEWAYS_ADDRESS_SIZE + 2) };

/* How a gateway that cannot let a machine in now ends its sentence; a number of seconds, rounded up. */
#define JOIN_RETRY "try again in %llu s"
/* How long to wait by such a sentence; 0: it says nothing of that. At most JOIN_RETRY_MAX_MS. */
uint64_t join_retry_ms(const char *sentence);
enum { JOIN_RETRY_MAX_MS = 300000 };

/* Blocks, on a loop of its own; waits and asks again for as long as the gateway tells it to. SHOAL_EAUTH:
 * refused, or it is not the cluster of the token; SHOAL_EUNAVAILABLE: nobody answers there. */
int join_cluster(const join_ask *ask, const folder *dir, shoal_err *err);
/* Is it by this very token that the machine has joined? A command line that is run again need not join again.
 */
bool join_was_by(const folder *dir, const char *token);
/* The address that was joined at, or several; the caller frees *ret. SHOAL_ENOTFOUND. */
int join_address(const folder *dir, char **ret, shoal_err *err);
/* A machine that has joined is to attach there from now on. SHOAL_EINVALID: no gateway can be there. */
int join_move(const folder *dir, const char *address, shoal_err *err);

#endif
