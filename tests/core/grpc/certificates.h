/* certificates.h: a CA and what it signs, made on the spot in a folder of their own.
 *
 *     pki p;
 *     pki_make(&p);
 *     ... p.ca, p.node.crt, p.node.key, p.crl ...
 *     pki_remove(&p);
 *
 * Elliptic keys, a day long unless said otherwise. */
#ifndef TESTS_CERTIFICATES_H
#define TESTS_CERTIFICATES_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct pki_pair {
    char crt[96], key[96];
} pki_pair;

typedef struct pki_wish {
    const char *name, *unit, *second_name, *san; /* san: "DNS:a,IP:127.0.0.1"; NULL: none */
    long serial, from_s, to_s;                   /* from now on; 0: an hour ago, in a day */
} pki_wish;

typedef struct pki {
    char dir[64], ca[96], other_ca[96], crl[96], stale_crl[96], early_crl[96];
    pki_pair node, gateway, expired, early, revoked, foreign, two_names, second;
    EVP_PKEY *ca_key, *other_key;
    X509 *ca_cert, *other_cert;
} pki;

static inline void pki_require(int ok)
{
    if (!ok) abort();
}

static inline void pki_add_name(X509 *x, const char *field, const char *value)
{
    if (value)
        X509_NAME_add_entry_by_txt(X509_get_subject_name(x), field, MBSTRING_UTF8,
                                   (const unsigned char *)value, -1, -1, 0);
}

static inline void pki_extend(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    pki_require(e != NULL);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

/* issuer NULL: it signs itself, as a CA does. */
static inline X509 *pki_sign(EVP_PKEY *key, const pki_wish *w, X509 *issuer, EVP_PKEY *issuer_key)
{
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), w->serial);
    X509_gmtime_adj(X509_getm_notBefore(x), w->from_s ? w->from_s : -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), w->to_s ? w->to_s : 86400);
    X509_set_pubkey(x, key);
    pki_add_name(x, "OU", w->unit);
    pki_add_name(x, "CN", w->name);
    pki_add_name(x, "CN", w->second_name);
    X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x));
    pki_extend(x, NID_basic_constraints, issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (!issuer) pki_extend(x, NID_key_usage, "critical,keyCertSign,cRLSign");
    if (w->san) pki_extend(x, NID_subject_alt_name, w->san);
    pki_require(X509_sign(x, issuer_key ? issuer_key : key, EVP_sha256()) > 0);
    return x;
}

static inline void pki_write_cert(const char *path, X509 *x)
{
    FILE *f = fopen(path, "w");
    pki_require(f && PEM_write_X509(f, x) == 1);
    fclose(f);
}

static inline void pki_pair_make(const pki *p, pki_pair *ret, const char *file, const pki_wish *w,
                                 int by_other)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = pki_sign(key, w, by_other ? p->other_cert : p->ca_cert, by_other ? p->other_key : p->ca_key);
    snprintf(ret->crt, sizeof ret->crt, "%s/%s.crt", p->dir, file);
    snprintf(ret->key, sizeof ret->key, "%s/%s.key", p->dir, file);
    pki_write_cert(ret->crt, x);
    FILE *f = fopen(ret->key, "w");
    PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    X509_free(x);
    EVP_PKEY_free(key);
}

/* A revocation list of the CA with this serial on it (0: empty), valid for so long. */
static inline void pki_revoke(const pki *p, const char *path, long serial, long from_s, long to_s)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *from = X509_gmtime_adj(NULL, from_s), *to = X509_gmtime_adj(NULL, to_s);
    X509_CRL_set_version(crl, 1);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(p->ca_cert));
    X509_CRL_set1_lastUpdate(crl, from);
    X509_CRL_set1_nextUpdate(crl, to);
    if (serial) {
        X509_REVOKED *r = X509_REVOKED_new();
        ASN1_INTEGER *number = ASN1_INTEGER_new();
        ASN1_INTEGER_set(number, serial);
        X509_REVOKED_set_serialNumber(r, number);
        X509_REVOKED_set_revocationDate(r, from);
        X509_CRL_add0_revoked(crl, r);
        ASN1_INTEGER_free(number);
    }
    X509_CRL_sign(crl, p->ca_key, EVP_sha256());
    FILE *f = fopen(path, "w");
    pki_require(f && PEM_write_X509_CRL(f, crl) == 1);
    fclose(f);
    ASN1_TIME_free(from);
    ASN1_TIME_free(to);
    X509_CRL_free(crl);
}

static inline void pki_make_ca(char *path, size_t n, const pki *p, const char *file, const char *name,
                               EVP_PKEY **ret_key, X509 **ret_cert)
{
    snprintf(path, n, "%s/%s", p->dir, file);
    *ret_key = EVP_EC_gen("P-256");
    *ret_cert = pki_sign(*ret_key, &(pki_wish){.name = name, .serial = 1}, NULL, NULL);
    pki_write_cert(path, *ret_cert);
}

static inline void pki_make(pki *p)
{
    memset(p, 0, sizeof *p);
    snprintf(p->dir, sizeof p->dir, "/tmp/shoal-pki-XXXXXX");
    pki_require(mkdtemp(p->dir) != NULL);
    pki_make_ca(p->ca, sizeof p->ca, p, "ca.crt", "Shoal Test CA", &p->ca_key, &p->ca_cert);
    pki_make_ca(p->other_ca, sizeof p->other_ca, p, "other.crt", "Other CA", &p->other_key, &p->other_cert);
    pki_pair_make(
        p, &p->node, "node",
        &(pki_wish){.name = "node-a", .unit = "node", .serial = 0x1a2b, .san = "DNS:node-a,IP:127.0.0.1"}, 0);
    pki_pair_make(p, &p->gateway, "gateway", &(pki_wish){.name = "gate-1", .unit = "gateway", .serial = 3},
                  0);
    pki_pair_make(
        p, &p->expired, "expired",
        &(pki_wish){.name = "node-old", .san = "DNS:node-a", .serial = 4, .from_s = -7200, .to_s = -3600}, 0);
    pki_pair_make(p, &p->early, "early",
                  &(pki_wish){.name = "node-new", .serial = 5, .from_s = 3600, .to_s = 7200}, 0);
    pki_pair_make(p, &p->revoked, "revoked",
                  &(pki_wish){.name = "node-bad", .san = "DNS:node-a", .serial = 6}, 0);
    pki_pair_make(p, &p->foreign, "foreign", &(pki_wish){.name = "node-a", .serial = 7, .san = "DNS:node-a"},
                  1);
    pki_pair_make(p, &p->two_names, "two",
                  &(pki_wish){.name = "node-a", .second_name = "gate-1", .serial = 8}, 0);
    pki_pair_make(p, &p->second, "second", &(pki_wish){.name = "node-a", .unit = "node", .serial = 9}, 0);
    snprintf(p->crl, sizeof p->crl, "%s/crl.pem", p->dir);
    snprintf(p->stale_crl, sizeof p->stale_crl, "%s/stale.pem", p->dir);
    pki_revoke(p, p->crl, 6, -3600, 86400);
    pki_revoke(p, p->stale_crl, 6, -7200, -3600);
    snprintf(p->early_crl, sizeof p->early_crl, "%s/early.pem", p->dir);
    pki_revoke(p, p->early_crl, 6, 3600, 86400);
}

static inline void pki_remove(pki *p)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", p->dir);
    pki_require(system(command) == 0);
    X509_free(p->ca_cert);
    X509_free(p->other_cert);
    EVP_PKEY_free(p->ca_key);
    EVP_PKEY_free(p->other_key);
}

#endif
