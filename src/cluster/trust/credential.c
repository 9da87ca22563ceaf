/* credential.c: member.pem is key, certificate and CA, in this order, as PEM. */
#include "trust/credential.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "trust/cert.h"
#include "trust/key.h"

static int credential_fill(credential *m, shoal_err *err)
{
    if (X509_check_private_key(m->cert, m->key) != 1) {
        ERR_clear_error();
        return err_set(err, SHOAL_EAUTH, "the certificate is for another key than this machine's");
    }
    int rc = cert_identity(m->cert, &m->id, err);
    return rc != 0 ? rc : cert_times(m->cert, &m->from, &m->until, err);
}

int credential_make(credential *ret, EVP_PKEY *key, const void *cert_pem, size_t n_cert, const void *ca_pem,
                    size_t n_ca, int64_t now, shoal_err *err)
{
    credential m = {.key = key};
    const trust_want anybody = {.any_role = true};
    EVP_PKEY_up_ref(key);
    int rc = cert_from_pem(&m.cert, cert_pem, n_cert, "the new certificate", err);
    if (rc == 0) rc = trust_open(&m.trust, ca_pem, n_ca, "the CA's certificate", err);
    if (rc == 0) rc = credential_fill(&m, err);
    if (rc == 0 && trust_check(m.trust, m.cert, &anybody, now, NULL, err) != TRUST_OK) rc = SHOAL_EAUTH;
    if (rc == 0)
        *ret = m;
    else
        credential_done(&m);
    return rc;
}

/* The certificates behind the key: PEM's reader skips what is of another kind, so the second is found from
 * the end of the first. */
static int read_certs(credential *m, const buf *pem, const char *what, shoal_err *err)
{
    static const char end[] = "-----END CERTIFICATE-----";
    int rc = cert_from_pem(&m->cert, pem->data, pem->len, what, err);
    if (rc != 0) return rc;
    const char *second = strstr(pem->data, end);
    second = second ? second + sizeof end - 1 : pem->data + pem->len;
    return trust_open(&m->trust, second, pem->len - (size_t)(second - pem->data), what, err);
}

static int load_revocations(credential *m, const folder *f, shoal_err *err)
{
    buf crl = {0};
    int rc = folder_read(f, "crl.pem", CERT_CRL_BYTES_MAX, false, &crl, err);
    if (rc == 0) rc = trust_revocations(m->trust, crl.data, crl.len, err);
    buf_done(&crl);
    return rc;
}

int credential_load(credential *ret, const folder *f, shoal_err *err)
{
    credential m = {0};
    buf pem = {0};
    char what[512];
    snprintf(what, sizeof what, "%s/member.pem", f->path);
    if (!folder_has(f, "member.pem"))
        return err_set(err, SHOAL_ENOTFOUND, "%s: this machine has not joined a cluster", f->path);
    int rc = folder_read(f, "member.pem", PEM_BYTES_MAX, true, &pem, err);
    if (rc == 0) rc = key_from_pem(&m.key, pem.data, pem.len, what, err);
    if (rc == 0) rc = read_certs(&m, &pem, what, err);
    if (rc == 0) rc = credential_fill(&m, err);
    if (rc == 0 && folder_has(f, "crl.pem")) rc = load_revocations(&m, f, err);
    buf_wipe(&pem);
    if (rc == 0)
        *ret = m;
    else
        credential_done(&m);
    return rc;
}

int credential_save(const credential *m, const folder *f, shoal_err *err)
{
    buf pem = {0}, ca = {0};
    int rc = cert_put_pem(&ca, trust_ca(m->trust), err);
    if (rc == 0) rc = folder_write(f, "ca.crt", 0644, ca.data, ca.len, err);
    if (rc == 0) rc = key_put_pem(&pem, m->key, err);
    if (rc == 0) rc = cert_put_pem(&pem, m->cert, err);
    if (rc == 0 && buf_join(&pem, &ca) != 0) rc = err_nomem(err);
    if (rc == 0) rc = folder_write(f, "member.pem", 0600, pem.data, pem.len, err);
    buf_wipe(&pem);
    buf_done(&ca);
    return rc;
}

int credential_revocations(credential *m, const folder *f, const void *crl_pem, size_t n, shoal_err *err)
{
    uint64_t known = trust_crl_number(m->trust);
    int rc = trust_revocations(m->trust, crl_pem, n, err);
    if (rc != 0 || trust_crl_number(m->trust) == known) return rc;
    return folder_write(f, "crl.pem", 0644, crl_pem, n, err);
}

int64_t credential_renew_at(const credential *m)
{
    int64_t life = m->until - m->from, most = CERT_DAYS * CERT_DAY_S; /* it may begin with the CA */
    return m->until - (life < most ? life : most) / 3;
}

void credential_done(credential *m)
{
    EVP_PKEY_free(m->key);
    X509_free(m->cert);
    trust_close(m->trust);
    *m = (credential){0};
}
