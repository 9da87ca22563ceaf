/* tls.h: TLS contexts for both ends, and what a peer has proved to be.
 *
 * A context with a CA is for machines among themselves: TLS 1.3 only, both ends show certificates that this
 * CA has signed, and no session is ever resumed, so that every connection is checked anew. A server's context
 * without one is for the public: TLS 1.2 or later with AEAD suites, nobody is asked who he is.
 *
 *     tls_options o = {.cert_file = "node.crt", .key_file = "node.key", .ca_file = "ca.crt",
 *                      .crl_file = "crl.pem"};
 *     tls_context *t;
 *     rc = tls_context_new(&t, TLS_SERVER, &o, err);
 *     ...
 *     rc = tls_context_reload(t, err);    // the files have changed: from now on they count
 *     tls_context_unref(t);               // links that are open keep what they have
 *
 * Loop thread. */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct tls_context tls_context;

/* The peer's certificate, verified. */
typedef struct tls_identity {
    char common_name[128]; /* else its first DNS name, else ""; a certificate with two is never verified */
    char unit[128];        /* its (first) organizational unit, "" when it has none */
    char serial[65];       /* hexadecimal, lower case, without leading zeros */
    char fingerprint[65];  /* SHA-256 of the certificate, hexadecimal, lower case */
    int64_t not_after_s;   /* Unix time at which it expires */
} tls_identity;

typedef enum tls_side { TLS_CLIENT, TLS_SERVER } tls_side;

enum { TLS_WHY_BYTES = 128 };

/* All are copied but user. */
typedef struct tls_options {
    /* PEM, the chain from the leaf on, and its key; a client may have none. */
    const char *cert_file, *key_file;
    const char *ca_file;  /* PEM. NULL: a server asks for no certificate, a client trusts the system's CAs */
    const char *crl_file; /* PEM, may be NULL: revoked serials are refused; must have a list of every CA */
    /* A client that has no CA file yet: the CA is the one in the server's chain whose public key (DER,
     * SubjectPublicKeyInfo) has this SHA-256, 32 bytes; without such a one nothing is sent. Not copied. */
    const uint8_t *ca_key_sha256;
    bool leaf_alone; /* peers have the CA's certificate: those behind the leaf are not sent, nor kept there */
    bool guests;     /* server with a CA: who shows no certificate comes in too, and has no tls_identity */
    bool web;        /* client: of a server that any client may ask: TLS 1.2 or later */
    bool any_name;   /* client: every member that `admit` lets in will do, whatever its name */
    /* Its chain, dates, revocation and name are right: may it in? If not, a reason into why ("it is no
     * gateway"). Called inside the handshake: it must not use the connection. NULL: accept every peer that
     * the CA has signed. */
    bool (*admit)(void *user, const tls_identity *who, char why[TLS_WHY_BYTES]);
    void *user;
} tls_options;

/* SHOAL_EINVALID: a file cannot be used, said with its name and what is wrong; SHOAL_ENOMEM. */
int tls_context_new(tls_context **ret, tls_side side, const tls_options *o, shoal_err *err);
/* Read the files again. On failure everything stays as it was. */
int tls_context_reload(tls_context *t, shoal_err *err);
/* Would it still be admitted? Asks `admit` alone; why may be NULL. */
bool tls_context_admits(const tls_context *t, const tls_identity *who, char why[TLS_WHY_BYTES]);
tls_context *tls_context_ref(tls_context *t);
void tls_context_unref(tls_context *t); /* NULL: nothing */

#endif
