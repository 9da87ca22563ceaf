/* trust.h: may the one at the other end of a connection be believed?
 *
 * A trust holds what a member knows of its cluster: the CA's certificate and the newest list of revoked
 * certificates. trust_check judges a certificate whose private key the peer has proved (TLS does that):
 *
 *     trust_verdict v = trust_check(t, peer, &(trust_want){.role = ROLE_GATEWAY}, now, &id, err);
 *     if (v != TRUST_OK)
 *         ... err->message: "the certificate of kitchen-pi is a node's; a gateway's is wanted here"
 *
 * A machine that joins knows no CA yet, but the token's pin: trust_from_pin takes the CA out of the chain
 * that the server sends, and believes it only if its key is the pinned one.
 *
 * A list of revoked certificates that is overdue still counts: a cluster that is cut from its CA goes on.
 * Time is an argument. Not for several threads at once. */
#ifndef TRUST_TRUST_H
#define TRUST_TRUST_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "trust/identity.h"

/* X(enum, name) */
#define TRUST_VERDICT_TABLE(X)          \
    X(TRUST_OK, "ok")                   \
    X(TRUST_MISSING, "no_certificate")  \
    X(TRUST_WRONG_CA, "wrong_ca")       \
    X(TRUST_EXPIRED, "expired")         \
    X(TRUST_TOO_EARLY, "not_yet_valid") \
    X(TRUST_REVOKED, "revoked")         \
    X(TRUST_WRONG_ROLE, "wrong_role")   \
    X(TRUST_WRONG_NAME, "wrong_name")   \
    X(TRUST_MALFORMED, "malformed")     \
    X(TRUST_NO_MEMORY, "out_of_memory")
typedef enum trust_verdict {
#define TRUST_VERDICT_ENUM(e, name) e,
    TRUST_VERDICT_TABLE(TRUST_VERDICT_ENUM)
#undef TRUST_VERDICT_ENUM
} trust_verdict;
const char *trust_verdict_name(trust_verdict v); /* for logs and metrics */

struct stack_st_X509; /* STACK_OF(X509), without its long header */
typedef struct trust trust;

/* From a CA's certificate, PEM. */
int trust_open(trust **ret, const void *ca_pem, size_t n, const char *what, shoal_err *err);
/* From what a TLS peer sent: `chain` holds the CA's certificate whose key has that digest, and nothing else
 * in it counts. SHOAL_EAUTH: no such, so this is not the cluster of the token. */
int trust_from_pin(trust **ret, struct stack_st_X509 *chain, const sha256_digest *pin, shoal_err *err);
void trust_close(trust *t); /* accepts NULL */

/* The newest list wins. SHOAL_EAUTH: not signed by the CA. SHOAL_EINVALID: older than the one that is known,
 * which stays. */
int trust_revocations(trust *t, const void *crl_pem, size_t n, shoal_err *err);
uint64_t trust_crl_number(const trust *t); /* 0: none is known */
/* Is the certificate of that serial (hexadecimal) on the list? For connections that were let in before. */
bool trust_serial_is_revoked(const trust *t, const char *serial);

const X509 *trust_ca(const trust *t);

typedef struct trust_want {
    bool any_role;
    role role;
    const char *name; /* NULL: any */
} trust_want;

/* peer NULL: it showed none. *ret_id (may be NULL) is written for TRUST_OK alone; err gets the sentence
 * otherwise. */
trust_verdict trust_check(const trust *t, X509 *peer, const trust_want *want, int64_t now, identity *ret_id,
                          shoal_err *err);

#endif
