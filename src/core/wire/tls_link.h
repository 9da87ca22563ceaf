/* tls_link.h: TLS between two ends in memory: ciphertext in, plain bytes out, and the reverse. No I/O.
 *
 *     tls_link_feed(l, from_the_network, n);
 *     while ((step = tls_link_step(l, plain, sizeof plain, &n)) == TLS_PLAIN) use(plain, n);
 *     tls_link_take(l, &to_the_network);
 *
 * TLS_OPENED comes once, when the handshake is done. After TLS_BROKEN tls_link_why says what a person can do,
 * and what tls_link_take gives is the alert that tells the peer. Loop thread. */
#ifndef WIRE_TLS_LINK_H
#define WIRE_TLS_LINK_H

#include <openssl/types.h>

#include "base/buf.h"
#include "wire/tls.h"

/* Whom a client wants to reach. */
typedef struct tls_target {
    const char *name; /* its certificate must say: DNS name (or common name without any), or IP address */
    const char *sni;  /* sent in clear, for a relay to read; NULL: name, unless that is an address */
    const char *alpn; /* the one protocol to speak: "h2" */
} tls_target;

typedef struct tls_link tls_link;
typedef enum tls_step { TLS_WAITS, TLS_OPENED, TLS_PLAIN, TLS_ENDED, TLS_BROKEN } tls_step;

/* target NULL: the server's end. SHOAL_EINVALID: the name cannot be one; SHOAL_ENOMEM. */
int tls_link_new(tls_link **ret, tls_context *context, const tls_target *target, shoal_err *err);
int tls_link_feed(tls_link *l, const uint8_t *bytes, size_t n); /* 0 or SHOAL_ENOMEM */
/* One step of the handshake, or up to cap plain bytes: 1..cap of them with TLS_PLAIN. */
tls_step tls_link_step(tls_link *l, uint8_t *plain, size_t cap, size_t *ret_n);
/* Encrypt n bytes onto out; SHOAL_EPROTOCOL when the link is broken, or not open yet. */
int tls_link_write(tls_link *l, const void *bytes, size_t n, buf *out);
void tls_link_take(tls_link *l, buf *out); /* what is to be sent */
void tls_link_goodbye(tls_link *l);        /* close_notify, to be taken */
void tls_link_trim(tls_link *l);           /* let go of the memory that the handshake needed */
bool tls_link_is_open(const tls_link *l);
const char *tls_link_alpn(const tls_link *l);         /* "" when none was agreed */
const char *tls_link_why(const tls_link *l);          /* "" unless broken */
const tls_identity *tls_link_peer(const tls_link *l); /* NULL when it showed no certificate */
const char *tls_link_sni(const tls_link *l);          /* that a client sent, or NULL */
void tls_link_free(tls_link *l);

/* tls.c, for tls_link.c. */
SSL_CTX *tls_context_now(const tls_context *t);
tls_side tls_context_side(const tls_context *t);
const tls_options *tls_context_options(const tls_context *t);
int tls_link_verify(int ok, X509_STORE_CTX *store); /* OpenSSL's verify callback of every context */
/* The whole verification, where the CA is known by its key alone. */
int tls_link_verify_pinned(X509_STORE_CTX *store, void *unused);

/* tls_why.c: sentences. */
void tls_identity_read(tls_identity *ret, X509 *cert);
/* A certificate was found wrong: what is, whose, and what to do. */
void tls_why_certificate(char *out, size_t n, const tls_options *o, X509_STORE_CTX *store,
                         const char *wanted);
/* OpenSSL's last error in words. */
void tls_why_handshake(char *out, size_t n, tls_side side, bool open);

#endif
