/* ca.h: the authority of a cluster: who may join, under which name, as what, and for how long.
 *
 *     ca_init("/var/lib/shoal/ca", "home", now, err);                 // once
 *     ca_open(&ca, "/var/lib/shoal/ca", err);
 *     ca_token(ca, &(ca_token_ask){.role = ROLE_NODE, .ttl_s = 3600}, now, text, err);
 *     ca_enrol(ca, text, der, n, now, &pem, &id, err);                // on behalf of who brought it
 *     ca_renew(ca, serial, der, n, now, &pem, err);                   // for who proved to hold it
 *     ca_revoke(ca, "kitchen-pi", now, &n, err);
 *
 * The folder holds ca.key (0600), ca.crt, ledger (ledger.h) and crl.pem. Every change reads the ledger,
 * changes and writes it under the folder's lock, so that commands and a gateway may work side by side, and a
 * handle is never stale; the ledger is the truth, crl.pem is made from it and mended when a crash came
 * between the two. A certificate is given out only when the ledger with it is on disk. Calls block on the
 * disk for milliseconds. A handle belongs to one thread at a time. */
#ifndef TRUST_CA_H
#define TRUST_CA_H

#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trust/identity.h"
#include "trust/ledger.h"
#include "trust/token.h"

typedef struct ca ca;

/* Make the folder, whole or not at all. SHOAL_EINVALID when there is one: a CA is never overwritten. */
int ca_init(const char *path, const char *cluster, int64_t now, shoal_err *err);
/* SHOAL_ENOTFOUND: none is there; what to do stands in the sentence. */
int ca_open(ca **ret, const char *path, shoal_err *err);
void ca_close(ca *c); /* accepts NULL */

const char *ca_cluster(const ca *c);
const sha256_digest *ca_pin(const ca *c); /* what tokens carry */
const X509 *ca_cert(const ca *c);
/* Append the CA's certificate, resp. the list of revoked ones, signed afresh when it is old; PEM. */
int ca_put_cert(const ca *c, buf *out, shoal_err *err);
int ca_put_crl(ca *c, int64_t now, buf *out, shoal_err *err);
/* A copy of the ledger as it is now; ledger_done. */
int ca_ledger(ca *c, ledger *ret, shoal_err *err);

typedef struct ca_token_ask {
    role role;
    int64_t ttl_s;    /* 0: an hour; at most CA_TTL_MAX_S */
    const char *name; /* the only name it is good for; NULL: any that is free */
    bool replace;     /* good for a name that is taken: its certificates are revoked when the token is used */
} ca_token_ask;
enum {
    CA_TTL_S = 3600,
    CA_TTL_MAX_S = 30 * 86400,
    CA_RENEWALS_A_DAY = 24, /* of one name; it needs one in twenty days */
};

/* ret_text is the only copy of the secret. SHOAL_EINVALID: replace without a name. */
int ca_token(ca *c, const ca_token_ask *ask, int64_t now, char ret_text[TOKEN_TEXT_SIZE], shoal_err *err);
/* SHOAL_ENOTFOUND: no open token has that id. */
int ca_token_revoke(ca *c, const char *id, int64_t now, shoal_err *err);

/* Append the new certificate, PEM, and *ret_id says whose it is (may be NULL). SHOAL_EAUTH: the token does
 * not open this (an unauthenticated peer learns no more than that), was used, revoked or is too old, or the
 * name is taken; SHOAL_EINVALID: the request is none, or its key has a certificate already (a replay). The
 * token is used up by success alone. */
int ca_enrol(ca *c, const char *token, const uint8_t *request, size_t n, int64_t now, buf *ret_pem,
             identity *ret_id, shoal_err *err);
/* For the member whose certificate of that serial has passed trust_check, or TLS, on its connection: the same
 * name and role again. SHOAL_EAUTH: it asks for another name, or its certificate is not one of the ledger's
 * that live. SHOAL_ELIMIT: it has had CA_RENEWALS_A_DAY. */
int ca_renew(ca *c, const char *serial, const uint8_t *request, size_t n, int64_t now, buf *ret_pem,
             shoal_err *err);
/* For the gateway whose machine holds the CA: whoever may read ca.key needs no token. A certificate of that
 * name that a node holds is SHOAL_EAUTH. */
int ca_issue(ca *c, const identity *id, EVP_PKEY *key, int64_t now, buf *ret_pem, shoal_err *err);
/* Every living certificate of the name; SHOAL_ENOTFOUND when there is none. ret_n may be NULL. */
int ca_revoke(ca *c, const char *name, int64_t now, size_t *ret_n, shoal_err *err);

#endif
