/* key.h: a key pair, its request for a certificate, and what a request of an unauthenticated peer says.
 *
 * Keys are ECDSA P-256. A key never leaves the machine that made it: what travels is a certificate signing
 * request (PKCS #10, RFC 2986, DER), which says a name and a public key and is signed by the private one.
 *
 *     key_new(&key, err);
 *     key_request(key, "kitchen-pi", &der, err);           the joining machine
 *     request_read(&req, der.data, der.len, err);          the CA: req.name, req.key
 *
 * What else a request asks for (extensions, other attributes) is never looked at. Pure but for the random
 * numbers in OpenSSL. */
#ifndef TRUST_KEY_H
#define TRUST_KEY_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "trust/identity.h"

enum { REQUEST_BYTES_MAX = 4096, PEM_BYTES_MAX = 65536 };

int key_new(EVP_PKEY **ret, shoal_err *err); /* EVP_PKEY_free */
/* SHA-256 of the public half as SubjectPublicKeyInfo, DER: what a token pins. */
int key_digest(EVP_PKEY *key, sha256_digest *ret, shoal_err *err);
/* PKCS #8, PEM, not encrypted: for a file of mode 0600. buf_wipe overwrites what held it. */
int key_put_pem(buf *out, EVP_PKEY *key, shoal_err *err);
/* The first private key in PEM text; one with a passphrase is refused, and nobody is asked for it. */
int key_from_pem(EVP_PKEY **ret, const void *pem, size_t n, const char *what, shoal_err *err);
void buf_wipe(buf *b); /* as buf_done */

/* Append the request, DER. */
int key_request(EVP_PKEY *key, const char *name, buf *out, shoal_err *err);

/* Append a signature of `what`, a zero byte and data: what it is for is a part of it. */
int key_sign(EVP_PKEY *key, const char *what, const void *data, size_t n, buf *out, shoal_err *err);
bool key_has_signed(EVP_PKEY *key, const char *what, const void *data, size_t n, const void *signature,
                    size_t n_signature);

typedef struct request {
    char name[IDENTITY_NAME_SIZE];
    EVP_PKEY *key;
    sha256_digest key_digest;
} request;

/* der[0..n) is one request and nothing else, of a P-256 or Ed25519 key that signed it, with one common name
 * that is a node's. SHOAL_EINVALID says what is not so. Free with request_done. */
int request_read(request *ret, const uint8_t *der, size_t n, shoal_err *err);
void request_done(request *r);

/* "what: OpenSSL's reason", and its queue of errors is empty again. SHOAL_ENOMEM where that was it, else
 * code. */
int ossl_fail(shoal_err *err, int code, const char *what);

#endif
