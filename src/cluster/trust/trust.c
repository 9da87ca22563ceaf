/* trust.c: OpenSSL judges chain, signature, times and purposes (RFC 5280); who it is and whether it was
 * revoked are judged here. */
#include "trust/trust.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "trust/cert.h"
#include "trust/key.h"

struct trust {
    X509 *ca;
    X509_STORE *store;
    X509_CRL *crl; /* NULL: none yet */
    char cluster[IDENTITY_NAME_SIZE];
};

const char *trust_verdict_name(trust_verdict v)
{
    static const char *const names[] = {
#define TRUST_VERDICT_NAME(e, name) name,
        TRUST_VERDICT_TABLE(TRUST_VERDICT_NAME)
#undef TRUST_VERDICT_NAME
    };
    return names[v];
}

const X509 *trust_ca(const trust *t)
{
    return t->ca;
}

/* Takes ca. */
static int from_ca(trust **ret, X509 *ca, shoal_err *err)
{
    trust *t = calloc(1, sizeof *t);
    if (!t) {
        X509_free(ca);
        return err_nomem(err);
    }
    t->ca = ca;
    t->store = X509_STORE_new();
    int rc = 0;
    if (!t->store || X509_STORE_add_cert(t->store, ca) != 1)
        rc = ossl_fail(err, SHOAL_EFORMAT, "the CA's certificate");
    else if (X509_check_ca(ca) != 1)
        rc = err_set(err, SHOAL_EAUTH, "the certificate that should be the CA's may sign no others");
    if (rc == 0) rc = cert_cluster(ca, t->cluster, err);
    if (rc == 0)
        *ret = t;
    else
        trust_close(t);
    return rc;
}

int trust_open(trust **ret, const void *ca_pem, size_t n, const char *what, shoal_err *err)
{
    X509 *ca = NULL;
    int rc = cert_from_pem(&ca, ca_pem, n, what, err);
    return rc != 0 ? rc : from_ca(ret, ca, err);
}

static bool has_key(const X509 *cert, const sha256_digest *pin)
{
    sha256_digest d;
    EVP_PKEY *key = X509_get0_pubkey(cert);
    return key && key_digest(key, &d, NULL) == 0 && memcmp(&d, pin, sizeof d) == 0;
}

int trust_from_pin(trust **ret, STACK_OF(X509) * chain, const sha256_digest *pin, shoal_err *err)
{
    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509 *cert = sk_X509_value(chain, i);
        if (!has_key(cert, pin)) continue;
        X509_up_ref(cert);
        return from_ca(ret, cert, err);
    }
    ERR_clear_error();
    return err_set(err, SHOAL_EAUTH,
                   "the server is not of the cluster that the token is for: its CA has another key");
}

void trust_close(trust *t)
{
    if (!t) return;
    X509_free(t->ca);
    X509_CRL_free(t->crl);
    X509_STORE_free(t->store);
    free(t);
}

uint64_t trust_crl_number(const trust *t)
{
    return t->crl ? cert_crl_number(t->crl) : 0;
}

int trust_revocations(trust *t, const void *crl_pem, size_t n, shoal_err *err)
{
    X509_CRL *crl = NULL;
    int rc = cert_crl_from_pem(&crl, crl_pem, n, "the list of revoked certificates", err);
    if (rc != 0) return rc;
    if (X509_CRL_verify(crl, X509_get0_pubkey(t->ca)) != 1) {
        ERR_clear_error();
        rc = err_set(err, SHOAL_EAUTH, "the list of revoked certificates is not signed by the cluster's CA");
    } else if (cert_crl_number(crl) < trust_crl_number(t)) {
        rc = err_set(err, SHOAL_EINVALID,
                     "the list of revoked certificates is older than the one that is known");
    }
    if (rc != 0) {
        X509_CRL_free(crl);
        return rc;
    }
    X509_CRL_free(t->crl);
    t->crl = crl;
    return 0;
}

bool trust_serial_is_revoked(const trust *t, const char *serial)
{
    BIGNUM *n = NULL;
    X509_REVOKED *entry;
    ASN1_INTEGER *number = t->crl && BN_hex2bn(&n, serial) ? BN_to_ASN1_INTEGER(n, NULL) : NULL;
    /* Without memory to look, nobody is believed. */
    bool revoked = t->crl && (!number || X509_CRL_get0_by_serial(t->crl, &entry, number) != 0);
    ASN1_INTEGER_free(number);
    BN_free(n);
    return revoked;
}

/* ---- the verdict ------------------------------------------------------------------------------- */

/* Whose it says it is, for sentences: it may lie, so it is a name or nothing. */
static const char *shown_name(const X509 *peer, identity *id)
{
    return cert_identity(peer, id, NULL) == 0 ? id->name : "the peer";
}

static trust_verdict say_time(const X509 *peer, bool too_early, int64_t now, shoal_err *err)
{
    identity id;
    int64_t from = 0, until = 0;
    cert_times(peer, &from, &until, NULL);
    const char *name = shown_name(peer, &id);
    if (too_early && from <= now)
        err_set(err, SHOAL_EAUTH,
                "the CA of the certificate of %s is not valid yet: the clock here or at the CA is wrong; set "
                "both by NTP",
                name);
    else if (too_early)
        err_set(
            err, SHOAL_EAUTH,
            "the certificate of %s begins in %lld s: the clock here or at the CA is wrong; set both by NTP",
            name, (long long)(from - now));
    else
        err_set(
            err, SHOAL_EAUTH,
            "the certificate of %s expired %lld s ago: it has to join again, unless the clock here is wrong",
            name, (long long)(now - until));
    return too_early ? TRUST_TOO_EARLY : TRUST_EXPIRED;
}

static trust_verdict say_chain(const X509 *peer, int code, int64_t now, shoal_err *err)
{
    switch (code) {
    case X509_V_ERR_CERT_NOT_YET_VALID: return say_time(peer, true, now, err);
    case X509_V_ERR_CERT_HAS_EXPIRED: return say_time(peer, false, now, err);
    case X509_V_ERR_OUT_OF_MEM: err_nomem(err); return TRUST_NO_MEMORY;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_AKID_SKID_MISMATCH:
        err_set(err, SHOAL_EAUTH, "the certificate was not signed by this cluster's CA");
        return TRUST_WRONG_CA;
    default:
        err_set(err, SHOAL_EAUTH, "the certificate cannot be used: %s", X509_verify_cert_error_string(code));
        return TRUST_MALFORMED;
    }
}

/* Both ends show certificates that are good for both ends, so one purpose stands for the two. */
static trust_verdict check_chain(const trust *t, X509 *peer, int64_t now, shoal_err *err)
{
    X509_STORE_CTX *x = X509_STORE_CTX_new();
    bool ready = x && X509_STORE_CTX_init(x, t->store, peer, NULL) == 1 &&
                 X509_STORE_CTX_set_purpose(x, X509_PURPOSE_SSL_CLIENT) == 1;
    trust_verdict v = TRUST_OK;
    if (!ready) {
        err_nomem(err);
        v = TRUST_NO_MEMORY;
    } else {
        X509_STORE_CTX_set_time(x, 0, (time_t)now);
        if (X509_verify_cert(x) != 1) v = say_chain(peer, X509_STORE_CTX_get_error(x), now, err);
    }
    X509_STORE_CTX_free(x);
    ERR_clear_error();
    return v;
}

static bool is_revoked(const trust *t, X509 *peer)
{
    X509_REVOKED *entry;
    return t->crl && X509_CRL_get0_by_cert(t->crl, &entry, peer) != 0;
}

static trust_verdict check_identity(const trust *t, const X509 *peer, const trust_want *want, identity *id,
                                    shoal_err *err)
{
    if (cert_identity(peer, id, err) != 0) return TRUST_MALFORMED;
    if (strcmp(id->cluster, t->cluster) != 0) {
        err_set(err, SHOAL_EAUTH, "%s is a member of the cluster %s, not of %s", id->name, id->cluster,
                t->cluster);
        return TRUST_WRONG_CA;
    }
    if (!want->any_role && id->role != want->role) {
        err_set(err, SHOAL_EAUTH, "the certificate of %s is a %s's; a %s's is wanted here", id->name,
                role_name(id->role), role_name(want->role));
        return TRUST_WRONG_ROLE;
    }
    if (want->name && strcmp(id->name, want->name) != 0) {
        err_set(err, SHOAL_EAUTH, "this is %s, where %s was expected", id->name, want->name);
        return TRUST_WRONG_NAME;
    }
    return TRUST_OK;
}

trust_verdict trust_check(const trust *t, X509 *peer, const trust_want *want, int64_t now, identity *ret_id,
                          shoal_err *err)
{
    identity id;
    if (!peer) {
        err_set(err, SHOAL_EAUTH, "the peer showed no certificate");
        return TRUST_MISSING;
    }
    trust_verdict v = check_chain(t, peer, now, err);
    if (v == TRUST_OK && is_revoked(t, peer)) {
        err_set(err, SHOAL_EAUTH, "the certificate of %s was revoked", shown_name(peer, &id));
        v = TRUST_REVOKED;
    }
    if (v == TRUST_OK) v = check_identity(t, peer, want, &id, err);
    if (v == TRUST_OK && ret_id) *ret_id = id;
    return v;
}
