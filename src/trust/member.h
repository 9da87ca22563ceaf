/* member.h: this machine's own place in a cluster: its key, its certificate, the CA that it believes.
 *
 * All three stand in one file, member.pem (0600), so that a renewed certificate and its new key take the
 * place of the old ones in one step; crl.pem beside it is the newest list of revoked certificates.
 *
 *     folder_open(&f, "/var/lib/shoal", true, err);
 *     member_load(&m, &f, err);                     SHOAL_ENOTFOUND: it has not joined
 *     if (now >= member_renew_at(&m)) ...           two thirds of the certificate's life are over
 *     trust_check(m.trust, peer, &want, now, &id, err);  */
#ifndef TRUST_MEMBER_H
#define TRUST_MEMBER_H

#include <openssl/x509.h>
#include <stdint.h>

#include "trust/folder.h"
#include "trust/identity.h"
#include "trust/trust.h"

typedef struct member {
    EVP_PKEY *key;
    X509 *cert;
    trust *trust;
    identity id;
    int64_t from, until; /* of the certificate */
} member;

/* From the folder. *ret is to be freed with member_done; on failure it is untouched. */
int member_load(member *ret, const folder *f, shoal_err *err);
/* From what a CA gave: a certificate for this key, signed by that CA, both PEM. SHOAL_EAUTH says what does
 * not fit. Takes a reference to the key. */
int member_make(member *ret, EVP_PKEY *key, const void *cert_pem, size_t n_cert, const void *ca_pem,
                size_t n_ca, int64_t now, shoal_err *err);
int member_save(const member *m, const folder *f, shoal_err *err);
/* Check the list of revoked certificates, keep it in m, and on disk if it is new. */
int member_revocations(member *m, const folder *f, const void *crl_pem, size_t n, shoal_err *err);
int64_t member_renew_at(const member *m);
void member_done(member *m); /* a zeroed one is fine */

#endif
