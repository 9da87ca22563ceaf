/* cert.c: making certificates, and reading them back. */
#include "trust/cert.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "trust/key.h"
#include "trust/token.h"

enum { SERIAL_BYTES = (CERT_SERIAL_SIZE - 1) / 2 };

/* ---- parts ------------------------------------------------------------------------------------- */

static bool put_part(X509_NAME *name, const char *field, const char *value)
{
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC, (const unsigned char *)value, -1, -1, 0) ==
           1;
}

static bool put_times(X509 *c, int64_t from, int64_t until)
{
    return ASN1_TIME_set(X509_getm_notBefore(c), (time_t)from) &&
           ASN1_TIME_set(X509_getm_notAfter(c), (time_t)until);
}

/* 128 random bits, the first of them set so that all serials are as long. */
static bool put_serial(X509 *c)
{
    uint8_t bytes[SERIAL_BYTES];
    rng_bytes(bytes, sizeof bytes);
    bytes[0] |= 0x80;
    BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(c));
    BN_free(n);
    return ok;
}

/* value as openssl's x509v3_config(5) spells it; names were checked, so none holds a comma. */
static bool put_ext(X509 *c, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, c, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&ctx);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(c, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

/* Ed25519 signs without a digest of its own choosing. */
static const EVP_MD *digest_for(const EVP_PKEY *key)
{
    return EVP_PKEY_is_a(key, "ED25519") ? NULL : EVP_sha256();
}

/* ---- making ------------------------------------------------------------------------------------ */

int cert_make_ca(X509 **ret, EVP_PKEY *key, const char *cluster, int64_t now, shoal_err *err)
{
    X509 *c = X509_new();
    int64_t until = now + CERT_CA_DAYS * CERT_DAY_S;
    bool ok = c && X509_set_version(c, X509_VERSION_3) && put_serial(c) &&
              put_times(c, now - CERT_SKEW_S, until) &&
              put_part(X509_get_subject_name(c), "O", "Shoal cluster CA") &&
              put_part(X509_get_subject_name(c), "CN", cluster) &&
              X509_set_issuer_name(c, X509_get_subject_name(c)) && X509_set_pubkey(c, key) &&
              put_ext(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
              put_ext(c, c, NID_key_usage, "critical,keyCertSign,cRLSign") &&
              put_ext(c, c, NID_subject_key_identifier, "hash") && X509_sign(c, key, digest_for(key)) > 0;
    if (ok) {
        *ret = c;
        return 0;
    }
    X509_free(c);
    return ossl_fail(err, SHOAL_EINTERNAL, "the CA's certificate cannot be made");
}

static bool put_identity(X509 *c, X509 *ca, const identity *id)
{
    char uri[IDENTITY_URI_SIZE], names[IDENTITY_URI_SIZE + IDENTITY_NAME_SIZE + 16];
    identity_format(uri, id);
    snprintf(names, sizeof names, "DNS:%s,URI:%s", id->name, uri);
    X509_NAME *subject = X509_get_subject_name(c);
    return put_part(subject, "O", id->cluster) && put_part(subject, "OU", role_name(id->role)) &&
           put_part(subject, "CN", id->name) && put_ext(c, ca, NID_subject_alt_name, names);
}

int cert_make(X509 **ret, cert_signer ca, const identity *id, EVP_PKEY *key, int64_t from, int64_t until,
              shoal_err *err)
{
    X509 *c = X509_new();
    bool ok = c && X509_set_version(c, X509_VERSION_3) && put_serial(c) && put_times(c, from, until) &&
              X509_set_issuer_name(c, X509_get_subject_name(ca.cert)) && X509_set_pubkey(c, key) &&
              put_identity(c, ca.cert, id) &&
              put_ext(c, ca.cert, NID_basic_constraints, "critical,CA:FALSE") &&
              put_ext(c, ca.cert, NID_key_usage, "critical,digitalSignature") &&
              put_ext(c, ca.cert, NID_ext_key_usage, "clientAuth,serverAuth") &&
              put_ext(c, ca.cert, NID_subject_key_identifier, "hash") &&
              put_ext(c, ca.cert, NID_authority_key_identifier, "keyid:always") &&
              X509_sign(c, ca.key, digest_for(ca.key)) > 0;
    if (ok) {
        *ret = c;
        return 0;
    }
    X509_free(c);
    return ossl_fail(err, SHOAL_EINTERNAL, "a certificate cannot be made");
}

static bool put_revoked(X509_CRL *crl, const cert_revoked *r)
{
    BIGNUM *n = NULL;
    X509_REVOKED *entry = X509_REVOKED_new();
    ASN1_TIME *at = ASN1_TIME_set(NULL, (time_t)r->at);
    ASN1_INTEGER *serial = BN_hex2bn(&n, r->serial) ? BN_to_ASN1_INTEGER(n, NULL) : NULL;
    bool ok = entry && at && serial && X509_REVOKED_set_serialNumber(entry, serial) &&
              X509_REVOKED_set_revocationDate(entry, at) && X509_CRL_add0_revoked(crl, entry);
    if (!ok) X509_REVOKED_free(entry);
    ASN1_INTEGER_free(serial);
    ASN1_TIME_free(at);
    BN_free(n);
    return ok;
}

static bool put_crl_number(X509_CRL *crl, uint64_t number)
{
    ASN1_INTEGER *n = ASN1_INTEGER_new();
    bool ok =
        n && ASN1_INTEGER_set_uint64(n, number) && X509_CRL_add1_ext_i2d(crl, NID_crl_number, n, 0, 0) == 1;
    ASN1_INTEGER_free(n);
    return ok;
}

static bool read_time(const ASN1_TIME *t, int64_t *ret)
{
    struct tm tm;
    if (!t || ASN1_TIME_to_tm(t, &tm) != 1) return false;
    *ret = (int64_t)timegm(&tm);
    return true;
}

int64_t cert_begin(const X509 *ca, int64_t now)
{
    int64_t from = 0, soon = now - CERT_SKEW_S;
    return read_time(X509_get0_notBefore(ca), &from) && from < soon ? from : soon;
}

static bool put_crl_times(X509_CRL *crl, const X509 *ca, int64_t now)
{
    ASN1_TIME *from = ASN1_TIME_set(NULL, (time_t)cert_begin(ca, now));
    ASN1_TIME *next = ASN1_TIME_set(NULL, (time_t)(now + CERT_CRL_DAYS * CERT_DAY_S));
    bool ok = from && next && X509_CRL_set1_lastUpdate(crl, from) && X509_CRL_set1_nextUpdate(crl, next);
    ASN1_TIME_free(from);
    ASN1_TIME_free(next);
    return ok;
}

int cert_make_crl(X509_CRL **ret, cert_signer ca, const cert_revoked *revoked, size_t n, uint64_t number,
                  int64_t now, shoal_err *err)
{
    X509_CRL *crl = X509_CRL_new();
    bool ok = crl && X509_CRL_set_version(crl, X509_CRL_VERSION_2) &&
              X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca.cert)) &&
              put_crl_times(crl, ca.cert, now) && put_crl_number(crl, number);
    for (size_t i = 0; ok && i < n; i++) ok = put_revoked(crl, &revoked[i]);
    ok = ok && X509_CRL_sort(crl) && X509_CRL_sign(crl, ca.key, digest_for(ca.key)) > 0;
    if (ok) {
        *ret = crl;
        return 0;
    }
    X509_CRL_free(crl);
    return ossl_fail(err, SHOAL_EINTERNAL, "the list of revoked certificates cannot be made");
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The only URI among the names is a member's, and a DNS name agrees with it. */
static bool names_identity(const GENERAL_NAMES *names, identity *ret)
{
    identity id;
    int n_uris = 0;
    bool dns = false;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
            const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
            if (g->type != GEN_URI && g->type != GEN_DNS) continue;
            const char *s = (const char *)ASN1_STRING_get0_data(g->d.ia5);
            size_t n = (size_t)ASN1_STRING_length(g->d.ia5);
            if (pass == 0 && g->type == GEN_URI && (n_uris++ > 0 || !identity_parse(&id, s, n))) return false;
            if (pass == 1 && g->type == GEN_DNS) dns |= n == strlen(id.name) && memcmp(s, id.name, n) == 0;
        }
        if (n_uris != 1) return false;
    }
    if (dns) *ret = id;
    return dns;
}

int cert_identity(const X509 *cert, identity *ret, shoal_err *err)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    bool ok = names && names_identity(names, ret);
    GENERAL_NAMES_free(names);
    if (ok) return 0;
    return err_set(err, SHOAL_EINVALID, "the certificate does not name a member of a cluster");
}

int cert_cluster(const X509 *ca, char ret[IDENTITY_NAME_SIZE], shoal_err *err)
{
    char name[IDENTITY_NAME_SIZE + 1];
    int n = X509_NAME_get_text_by_NID(X509_get_subject_name(ca), NID_commonName, name, sizeof name);
    if (n < 0 || !identity_name_ok(name, (size_t)n))
        return err_set(err, SHOAL_EFORMAT, "the CA's certificate does not name a cluster");
    memcpy(ret, name, (size_t)n + 1);
    return 0;
}

void cert_serial(const X509 *cert, char ret[CERT_SERIAL_SIZE])
{
    uint8_t bytes[SERIAL_BYTES] = {0};
    const ASN1_INTEGER *serial = X509_get0_serialNumber(cert);
    int n = ASN1_STRING_length(serial);
    *ret = '\0';
    if (n > SERIAL_BYTES || ASN1_STRING_type(serial) != V_ASN1_INTEGER) return;
    memcpy(bytes + SERIAL_BYTES - n, ASN1_STRING_get0_data(serial), (size_t)n);
    hex_put(ret, bytes, sizeof bytes);
}

int cert_times(const X509 *cert, int64_t *ret_from, int64_t *ret_until, shoal_err *err)
{
    if (read_time(X509_get0_notBefore(cert), ret_from) && read_time(X509_get0_notAfter(cert), ret_until))
        return 0;
    return err_set(err, SHOAL_EINVALID, "the certificate's times cannot be read");
}

uint64_t cert_crl_number(const X509_CRL *crl)
{
    uint64_t number = 0;
    ASN1_INTEGER *n = X509_CRL_get_ext_d2i(crl, NID_crl_number, NULL, NULL);
    if (!n || ASN1_INTEGER_get_uint64(&number, n) != 1) number = 0;
    ASN1_INTEGER_free(n);
    return number;
}

/* ---- PEM --------------------------------------------------------------------------------------- */

/* Takes bio. */
static int take_pem(buf *out, BIO *bio, bool written, shoal_err *err)
{
    char *pem = NULL;
    int rc = bio && written ? 0 : ossl_fail(err, SHOAL_EINTERNAL, "PEM cannot be written");
    long n = rc == 0 ? BIO_get_mem_data(bio, &pem) : 0;
    if (rc == 0 && buf_append(out, pem, (size_t)n) != 0) rc = err_nomem(err);
    BIO_free(bio);
    return rc;
}

int cert_put_pem(buf *out, const X509 *cert, shoal_err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    return take_pem(out, bio, bio && PEM_write_bio_X509(bio, cert) == 1, err);
}

int cert_put_crl_pem(buf *out, const X509_CRL *crl, shoal_err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    return take_pem(out, bio, bio && PEM_write_bio_X509_CRL(bio, crl) == 1, err);
}

static int no_passphrase(char *to, int cap, int writing, void *user)
{
    return -1;
}

int cert_from_pem(X509 **ret, const void *pem, size_t n, const char *what, shoal_err *err)
{
    if (n > PEM_BYTES_MAX) return err_set(err, SHOAL_ELIMIT, "%s: larger than %d bytes", what, PEM_BYTES_MAX);
    BIO *bio = BIO_new_mem_buf(pem, (int)n);
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (!cert) return ossl_fail(err, SHOAL_EFORMAT, what);
    *ret = cert;
    return 0;
}

int cert_crl_from_pem(X509_CRL **ret, const void *pem, size_t n, const char *what, shoal_err *err)
{
    if (n > CERT_CRL_BYTES_MAX)
        return err_set(err, SHOAL_ELIMIT, "%s: larger than %d bytes", what, CERT_CRL_BYTES_MAX);
    BIO *bio = BIO_new_mem_buf(pem, (int)n);
    X509_CRL *crl = bio ? PEM_read_bio_X509_CRL(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (!crl) return ossl_fail(err, SHOAL_EFORMAT, what);
    *ret = crl;
    return 0;
}
