/* key.c: keys and certificate signing requests, on OpenSSL's libcrypto. */
#include "trust/key.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

int ossl_fail(shoal_err *err, int code, const char *what)
{
    unsigned long e = ERR_peek_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    bool nomem = e && ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE;
    ERR_clear_error();
    if (nomem) return err_nomem(err);
    return err_set(err, code, "%s: %s", what, reason ? reason : "OpenSSL gives no reason");
}

int key_new(EVP_PKEY **ret, shoal_err *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (!key) return ossl_fail(err, SHOAL_EINTERNAL, "a key cannot be made");
    *ret = key;
    return 0;
}

int key_digest(EVP_PKEY *key, sha256_digest *ret, shoal_err *err)
{
    unsigned char *der = NULL;
    int n = i2d_PUBKEY(key, &der);
    if (n <= 0) return ossl_fail(err, SHOAL_EINTERNAL, "a public key cannot be written");
    sha256_of(der, (size_t)n, ret);
    OPENSSL_free(der);
    return 0;
}

void buf_wipe(buf *b)
{
    if (b->data) OPENSSL_cleanse(b->data, b->cap);
    buf_done(b);
}

int key_put_pem(buf *out, EVP_PKEY *key, shoal_err *err)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    char *pem = NULL;
    int rc = 0;
    if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        rc = ossl_fail(err, SHOAL_EINTERNAL, "a key cannot be written");
    long n = rc == 0 ? BIO_get_mem_data(bio, &pem) : 0;
    if (rc == 0 && buf_append(out, pem, (size_t)n) != 0) rc = err_nomem(err);
    BIO_free(bio);
    return rc;
}

/* OpenSSL's own would ask whoever sits at the terminal. */
static int no_passphrase(char *to, int cap, int writing, void *user)
{
    return -1;
}

int key_from_pem(EVP_PKEY **ret, const void *pem, size_t n, const char *what, shoal_err *err)
{
    if (n > PEM_BYTES_MAX) return err_set(err, SHOAL_ELIMIT, "%s: larger than %d bytes", what, PEM_BYTES_MAX);
    BIO *bio = BIO_new_mem_buf(pem, (int)n);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (!key) return ossl_fail(err, SHOAL_EFORMAT, what);
    *ret = key;
    return 0;
}

/* ---- requests ------------------------------------------------------------------------------------ */

static bool put_common_name(X509_NAME *name, const char *s)
{
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)s, -1, -1, 0) == 1;
}

int key_request(EVP_PKEY *key, const char *name, buf *out, shoal_err *err)
{
    int rc = identity_name_check(name, strlen(name), "node", err), n = 0;
    if (rc != 0) return rc;
    unsigned char *der = NULL;
    X509_REQ *req = X509_REQ_new();
    bool ok = req && X509_REQ_set_version(req, X509_REQ_VERSION_1) == 1 &&
              put_common_name(X509_REQ_get_subject_name(req), name) && X509_REQ_set_pubkey(req, key) == 1 &&
              X509_REQ_sign(req, key, EVP_sha256()) > 0;
    if (ok) n = i2d_X509_REQ(req, &der);
    if (n <= 0)
        rc = ossl_fail(err, SHOAL_EINTERNAL, "a request for a certificate cannot be made");
    else if (buf_append(out, der, (size_t)n) != 0)
        rc = err_nomem(err);
    OPENSSL_free(der);
    X509_REQ_free(req);
    return rc;
}

/* The one common name among the subject's parts. */
static int read_name(char ret[IDENTITY_NAME_SIZE], const X509_REQ *req, shoal_err *err)
{
    X509_NAME *subject = X509_REQ_get_subject_name(req);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return err_set(err, SHOAL_EINVALID, "the request does not say one common name");
    const ASN1_STRING *s = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    const char *name = (const char *)ASN1_STRING_get0_data(s);
    size_t n = (size_t)ASN1_STRING_length(s);
    int rc = identity_name_check(name, n, "node", err);
    if (rc != 0) return rc;
    memcpy(ret, name, n);
    ret[n] = '\0';
    return 0;
}

/* Other curves and RSA work too, but at unlike costs for the one who must check them. */
static bool key_is_of_ours(const EVP_PKEY *key)
{
    char group[32] = "";
    if (EVP_PKEY_is_a(key, "ED25519")) return true;
    return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
           strcmp(group, "prime256v1") == 0;
}

static int read_key(request *r, X509_REQ *req, shoal_err *err)
{
    r->key = X509_REQ_get_pubkey(req);
    if (!r->key) return ossl_fail(err, SHOAL_EINVALID, "the request's public key cannot be read");
    if (!key_is_of_ours(r->key))
        return err_set(err, SHOAL_EINVALID, "the request's key is neither ECDSA P-256 nor Ed25519");
    if (X509_REQ_verify(req, r->key) != 1)
        return ossl_fail(err, SHOAL_EINVALID, "the request is not signed by the key that it names");
    return key_digest(r->key, &r->key_digest, err);
}

int request_read(request *ret, const uint8_t *der, size_t n, shoal_err *err)
{
    if (n > REQUEST_BYTES_MAX)
        return err_set(err, SHOAL_EINVALID, "a request of %zu bytes is longer than %d", n, REQUEST_BYTES_MAX);
    const unsigned char *at = der;
    request r = {0};
    int rc = 0;
    ERR_clear_error();
    X509_REQ *req = d2i_X509_REQ(NULL, &at, (long)n);
    if (!req)
        rc = ossl_fail(err, SHOAL_EINVALID, "this is no certificate signing request (PKCS #10, DER)");
    else if (at != der + n)
        rc = err_set(err, SHOAL_EINVALID, "bytes follow the certificate signing request");
    if (rc == 0) rc = read_name(r.name, req, err);
    if (rc == 0) rc = read_key(&r, req, err);
    X509_REQ_free(req);
    if (rc == 0)
        *ret = r;
    else
        request_done(&r);
    return rc;
}

void request_done(request *r)
{
    EVP_PKEY_free(r->key);
    r->key = NULL;
}

/* ---- signatures ---------------------------------------------------------------------------------- */

/* Ed25519 has its own. */
static const EVP_MD *digest_for(EVP_PKEY *key)
{
    return EVP_PKEY_is_a(key, "ED25519") ? NULL : EVP_sha256();
}

static bool put_signed(buf *out, const char *what, const void *data, size_t n)
{
    return buf_append(out, what, strlen(what) + 1) == 0 && buf_append(out, data, n) == 0;
}

int key_sign(EVP_PKEY *key, const char *what, const void *data, size_t n, buf *out, shoal_err *err)
{
    unsigned char bytes[512];
    size_t size = sizeof bytes;
    buf text = {0};
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c && put_signed(&text, what, data, n) &&
              EVP_DigestSignInit(c, NULL, digest_for(key), NULL, key) == 1 &&
              EVP_DigestSign(c, bytes, &size, (const unsigned char *)text.data, text.len) == 1 &&
              buf_append(out, bytes, size) == 0;
    EVP_MD_CTX_free(c);
    buf_done(&text);
    return ok ? 0 : ossl_fail(err, SHOAL_EINTERNAL, "a signature cannot be made");
}

bool key_has_signed(EVP_PKEY *key, const char *what, const void *data, size_t n, const void *signature,
                    size_t n_signature)
{
    buf text = {0};
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c && put_signed(&text, what, data, n) &&
              EVP_DigestVerifyInit(c, NULL, digest_for(key), NULL, key) == 1 &&
              EVP_DigestVerify(c, signature, n_signature, (const unsigned char *)text.data, text.len) == 1;
    ERR_clear_error();
    EVP_MD_CTX_free(c);
    buf_done(&text);
    return ok;
}
