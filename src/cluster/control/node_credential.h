/* node_credential.h: the credential of a gateway: its certificate, and the CA where this machine
 * keeps it.
 *
 * In the state folder (trust/state.h) is either the CA, in ca/, or what an earlier join has left, member.pem.
 * With the CA at hand the gateway signs its own certificate, and again when two thirds of it are over;
 * without it the certificate comes from the gateway that has it. TLS reads the files that are named here.
 *
 *     node_credential_open(&s, state, "boss", now, err);
 *     tls ... s.cert_file, s.ca_file, s.crl_file ...
 *     node_credential_tick(&s, now, &changed, err);     once a second
 *
 * Blocks on the disk. Loop thread. */
#ifndef CONTROL_NODE_CREDENTIAL_H
#define CONTROL_NODE_CREDENTIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "trust/ca.h"
#include "trust/credential.h"

typedef struct node_credential {
    folder dir;
    ca *ca; /* NULL: another machine has it */
    credential own;
    char *cert_file, *ca_file, *crl_file; /* member.pem: certificate, CA and key */
    struct timespec crl_seen;             /* when the CA's list was last changed, as far as is known here */
    int64_t crl_looked; /* when it was last asked for: it is signed afresh before it is old */
} node_credential;

/* name NULL: that of the certificate that is there, else the host's. SHOAL_ENOTFOUND: there is neither a CA
 * nor a certificate; SHOAL_EAUTH: the certificate is a node's, or has expired. */
int node_credential_open(node_credential *ret, const char *state, const char *name, int64_t now,
                         shoal_err *err);
enum { NODE_CREDENTIAL_CERT = 1, NODE_CREDENTIAL_CRL = 2 };
/* *ret_changed: which of the files are new, so that TLS has to read them again. */
int node_credential_tick(node_credential *s, int64_t now, unsigned *ret_changed, shoal_err *err);
/* member.pem or crl.pem were written by somebody else (attach.h): read them. On failure all stays as it was.
 */
int node_credential_reload(node_credential *s, shoal_err *err);
void node_credential_close(node_credential *s); /* a zeroed one is fine */

#endif
