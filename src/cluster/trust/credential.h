/* credential.h: this machine's own place in a cluster: its key, its certificate, the CA that it believes.
 *
 * All three stand in one file, member.pem (0600), so that a renewed certificate and its new key take the
 * place of the old ones in one step. Beside it are ca.crt, the CA alone, and crl.pem, the newest list of
 * revoked certificates: what TLS reads.
 *
 *     folder_open(&f, "/var/lib/shoal", true, err);
 *     credential_load(&m, &f, err);                     SHOAL_ENOTFOUND: it has not joined
 *     if (now >= credential_renew_at(&m)) ...           two thirds of the certificate's life are over
 *     trust_check(m.trust, peer, &want, now, &id, err);  */
#ifndef TRUST_CREDENTIAL_H
#define TRUST_CREDENTIAL_H

#include <openssl/types.h>
#include <stdint.h>

#include "trust/folder.h"
#include "trust/identity.h"
#include "trust/trust.h"

typedef struct credential {
    EVP_PKEY *key;
    X509 *cert;
    trust *trust;
    identity id;
    int64_t from, until; /* of the certificate */
} credential;

/* From the folder. *ret is to be freed with credential_done; on failure it is untouched. */
int credential_load(credential *ret, const folder *f, shoal_err *err);
/* From what a CA gave: a certificate for this key, signed by that CA, both PEM. SHOAL_EAUTH says what does
 * not fit. Takes a reference to the key. */
int credential_make(credential *ret, EVP_PKEY *key, const void *cert_pem, size_t n_cert, const void *ca_pem,
                    size_t n_ca, int64_t now, shoal_err *err);
int credential_save(const credential *m, const folder *f, shoal_err *err);
/* Check the list of revoked certificates, keep it in m, and on disk if it is new. */
int credential_revocations(credential *m, const folder *f, const void *crl_pem, size_t n, shoal_err *err);
int64_t credential_renew_at(const credential *m);
void credential_done(credential *m); /* a zeroed one is fine */

#endif
