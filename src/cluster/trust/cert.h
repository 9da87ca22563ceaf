/* cert.h: the certificates of a cluster: its CA's own, those it signs, and its list of revoked ones.
 *
 * X.509 version 3 as RFC 5280 has it. A member's certificate says its name as DNS name and, with cluster and
 * role, as URI (identity.h); the role is the organisational unit too, for people who look with openssl. It is
 * good for both ends of TLS, signs nothing else, and is valid from a little before it was made, for clocks
 * that differ.
 *
 * Times are seconds since 1970, UTC; a serial is 32 hexadecimal digits. Nothing here reads a clock or a file.
 */
#ifndef TRUST_CERT_H
#define TRUST_CERT_H

#include <openssl/types.h>
#include <stdint.h>

#include "base/buf.h"
#include "trust/identity.h"

enum {
    CERT_SERIAL_SIZE = 33,
    CERT_SKEW_S = 300,   /* so much earlier than now the CA's certificate begins */
    CERT_DAYS = 30,      /* a member's */
    CERT_CA_DAYS = 3653, /* ten years */
    CERT_CRL_DAYS = 30,  /* when the next list of revoked certificates is due at the latest */
    CERT_CRL_BYTES_MAX = 16 << 20,
};
#define CERT_DAY_S INT64_C(86400)

typedef struct cert_signer { /* borrowed */
    X509 *cert;
    EVP_PKEY *key;
} cert_signer;

/* The CA's own certificate, signed by its key; the common name is the cluster's. X509_free. */
int cert_make_ca(X509 **ret, EVP_PKEY *key, const char *cluster, int64_t now, shoal_err *err);

/* When what the CA signs now begins to be valid: with the CA itself. Its begin protects nobody, and what was
 * signed while this clock was ahead would be refused until that time has come. */
int64_t cert_begin(const X509 *ca, int64_t now);
/* A member's, valid in [from, until], with a serial of its own. */
int cert_make(X509 **ret, cert_signer ca, const identity *id, EVP_PKEY *key, int64_t from, int64_t until,
              shoal_err *err);

typedef struct cert_revoked {
    const char *serial;
    int64_t at;
} cert_revoked;
int cert_make_crl(X509_CRL **ret, cert_signer ca, const cert_revoked *revoked, size_t n, uint64_t number,
                  int64_t now, shoal_err *err);

/* What a certificate says; whether it may be believed is trust_check's to say. */
int cert_identity(const X509 *cert, identity *ret, shoal_err *err); /* SHOAL_EINVALID: it names no member */
int cert_cluster(const X509 *ca, char ret[IDENTITY_NAME_SIZE], shoal_err *err);
void cert_serial(const X509 *cert, char ret[CERT_SERIAL_SIZE]); /* "" when it has more digits */
int cert_times(const X509 *cert, int64_t *ret_from, int64_t *ret_until, shoal_err *err);
uint64_t cert_crl_number(const X509_CRL *crl); /* 0 without one */

/* PEM: append, resp. read the first one in the text; `what` names the text in errors. */
int cert_put_pem(buf *out, const X509 *cert, shoal_err *err);
int cert_put_crl_pem(buf *out, const X509_CRL *crl, shoal_err *err);
int cert_from_pem(X509 **ret, const void *pem, size_t n, const char *what, shoal_err *err);
int cert_crl_from_pem(X509_CRL **ret, const void *pem, size_t n, const char *what, shoal_err *err);

#endif
