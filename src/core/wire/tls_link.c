/* tls_link.c: OpenSSL between two memory BIOs. */
#include "wire/tls_link.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

enum { RECORD_BYTES = 16384, SENTENCE_BYTES = 320 };

/* A new key costs 18 us for 27 bytes, and OpenSSL takes all that have come in one call: 64 KiB of them would
 * hold the loop 44 ms. Peers that follow RFC 8446 (5.5) renew theirs once in many gigabytes. */
enum { KEY_UPDATES_MAX = 32, PLAIN_PER_KEY_UPDATE = 64 << 10 };

struct tls_link {
    tls_context *context;
    SSL *ssl; /* owns both BIOs */
    BIO *in, *out;
    bool open, broken;
    uint64_t n_plain, n_key_updates; /* that came */
    char *wanted;                    /* the name that the peer must prove, or NULL */
    char alpn[32], why[SENTENCE_BYTES];
    tls_identity *peer; /* once verified */
};

/* ---- verifying ------------------------------------------------------------------------------- */

static tls_link *link_of(X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    return SSL_get_app_data(ssl);
}

static int tls_link_refuse(tls_link *l, X509_STORE_CTX *store, const char *reason)
{
    snprintf(l->why, sizeof l->why, "the certificate of \"%s\" was refused: %.120s",
             l->peer ? l->peer->common_name : "", reason);
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

static bool has_two_names(X509_NAME *subject)
{
    int first = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    return first >= 0 && X509_NAME_get_index_by_NID(subject, NID_commonName, first) >= 0;
}

/* Called for each certificate from the CA's down to the peer's own (depth 0), and for each thing wrong. */
int tls_link_verify(int ok, X509_STORE_CTX *store)
{
    tls_link *l = link_of(store);
    char reason[TLS_WHY_BYTES];
    if (!ok) {
        if (!l->why[0])
            tls_why_certificate(l->why, sizeof l->why, tls_context_options(l->context), store, l->wanted);
        return 0;
    }
    if (X509_STORE_CTX_get_error_depth(store) != 0) return 1;
    X509 *cert = X509_STORE_CTX_get_current_cert(store);
    if (!l->peer) l->peer = calloc(1, sizeof *l->peer);
    if (!l->peer) return tls_link_refuse(l, store, "out of memory");
    tls_identity_read(l->peer, cert);
    if (has_two_names(X509_get_subject_name(cert)))
        return tls_link_refuse(l, store, "it has two common names");
    if (tls_context_admits(l->context, l->peer, reason)) return 1;
    return tls_link_refuse(l, store, reason[0] ? reason : "it may not come in");
}

/* Is this the key that is pinned? */
static bool has_key(const X509 *cert, const uint8_t sha256[32])
{
    sha256_digest d;
    unsigned char *der = NULL;
    int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);
    if (n <= 0) return false;
    sha256_of(der, (size_t)n, &d);
    OPENSSL_free(der);
    return memcmp(d.bytes, sha256, sizeof d.bytes) == 0;
}

/* The CA that is pinned, taken out of what the server sent, is all that is trusted for this handshake. */
int tls_link_verify_pinned(X509_STORE_CTX *store, void *unused)
{
    tls_link *l = link_of(store);
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(store), *trusted = sk_X509_new_null();
    for (int i = 0; trusted && i < sk_X509_num(sent); i++)
        if (has_key(sk_X509_value(sent, i), tls_context_options(l->context)->ca_key_sha256))
            sk_X509_push(trusted, sk_X509_value(sent, i));
    int ok = 0;
    if (sk_X509_num(trusted) > 0) {
        X509_STORE_CTX_set0_trusted_stack(store, trusted);
        ok = X509_verify_cert(store) == 1;
    } else {
        snprintf(l->why, sizeof l->why, "it is not of the cluster that is meant: its CA has another key");
        X509_STORE_CTX_set_error(store, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
    }
    sk_X509_free(trusted);
    return ok;
}

/* ---- making one ------------------------------------------------------------------------------ */

static bool is_address(const char *name)
{
    ASN1_OCTET_STRING *ip = a2i_IPADDRESS(name);
    ASN1_OCTET_STRING_free(ip);
    return ip != NULL;
}

static bool aim(tls_link *l, const tls_target *to)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(l->ssl);
    bool by_address = is_address(to->name);
    size_t n = to->alpn ? strlen(to->alpn) : 0;
    unsigned char wire[32];
    const char *sni = to->sni ? to->sni : by_address ? NULL : to->name;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (!tls_context_options(l->context)->any_name &&
        (by_address ? X509_VERIFY_PARAM_set1_ip_asc(param, to->name) != 1
                    : X509_VERIFY_PARAM_set1_host(param, to->name, 0) != 1))
        return false;
    if (sni && SSL_set_tlsext_host_name(l->ssl, sni) != 1) return false;
    if (n == 0 || n >= sizeof wire) return n == 0;
    wire[0] = (unsigned char)n;
    memcpy(wire + 1, to->alpn, n);
    return SSL_set_alpn_protos(l->ssl, wire, (unsigned)n + 1) == 0;
}

static int set_bios(tls_link *l)
{
    l->in = BIO_new(BIO_s_mem());
    l->out = BIO_new(BIO_s_mem());
    if (!l->in || !l->out) {
        BIO_free(l->in);
        BIO_free(l->out);
        return SHOAL_ENOMEM;
    }
    SSL_set_bio(l->ssl, l->in, l->out);
    return 0;
}

static bool updates_keys_too_often(const tls_link *l)
{
    return l->n_key_updates > KEY_UPDATES_MAX + l->n_plain / PLAIN_PER_KEY_UPDATE;
}

/* What came behind one key too many is dropped, so that OpenSSL goes no further. */
static void tls_link_on_message(int is_sent, int version, int type, const void *bytes, size_t n, SSL *ssl,
                                void *user)
{
    tls_link *l = user;
    bool is_update =
        !is_sent && type == SSL3_RT_HANDSHAKE && n > 0 && *(const uint8_t *)bytes == SSL3_MT_KEY_UPDATE;
    if (!is_update) return;
    l->n_key_updates++;
    if (updates_keys_too_often(l)) (void)BIO_reset(l->in);
}

static int tls_link_begin(tls_link *l, const tls_target *target, shoal_err *err)
{
    l->ssl = SSL_new(tls_context_now(l->context));
    if (!l->ssl || set_bios(l) != 0) return err_nomem(err);
    SSL_set_app_data(l->ssl, l);
    SSL_set_msg_callback(l->ssl, tls_link_on_message);
    SSL_set_msg_callback_arg(l->ssl, l);
    if (!target) {
        SSL_set_accept_state(l->ssl);
        return 0;
    }
    SSL_set_connect_state(l->ssl);
    if (!target->name || !target->name[0])
        return err_set(err, SHOAL_EINVALID, "TLS needs the name that the server's certificate must have");
    l->wanted = strdup(target->name);
    if (!l->wanted) return err_nomem(err);
    if (aim(l, target)) return 0;
    return err_set(err, SHOAL_EINVALID, "\"%s\" cannot be the name in a server's certificate", target->name);
}

int tls_link_new(tls_link **ret, tls_context *context, const tls_target *target, shoal_err *err)
{
    tls_link *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    ERR_clear_error();
    l->context = tls_context_ref(context);
    int rc = tls_link_begin(l, target, err);
    ERR_clear_error();
    if (rc == 0)
        *ret = l;
    else
        tls_link_free(l);
    return rc;
}

void tls_link_free(tls_link *l)
{
    if (!l) return;
    SSL_free(l->ssl);
    tls_context_unref(l->context);
    free(l->wanted);
    free(l->peer);
    free(l);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

int tls_link_feed(tls_link *l, const uint8_t *bytes, size_t n)
{
    return n == 0 || BIO_write(l->in, bytes, (int)n) == (int)n ? 0 : SHOAL_ENOMEM;
}

static tls_step broken(tls_link *l)
{
    if (!l->why[0]) tls_why_handshake(l->why, sizeof l->why, tls_context_side(l->context), l->open);
    l->broken = true;
    ERR_clear_error();
    return TLS_BROKEN;
}

static tls_step shake_hands(tls_link *l)
{
    const unsigned char *alpn = NULL;
    unsigned n = 0;
    ERR_clear_error();
    int rc = SSL_do_handshake(l->ssl);
    if (rc != 1) return SSL_get_error(l->ssl, rc) == SSL_ERROR_WANT_READ ? TLS_WAITS : broken(l);
    SSL_get0_alpn_selected(l->ssl, &alpn, &n);
    if (n > 0 && n < sizeof l->alpn) memcpy(l->alpn, alpn, n);
    l->open = true;
    return TLS_OPENED;
}

tls_step tls_link_step(tls_link *l, uint8_t *plain, size_t cap, size_t *ret_n)
{
    if (l->broken) return TLS_BROKEN;
    if (!l->open) return shake_hands(l);
    ERR_clear_error();
    int rc = SSL_read_ex(l->ssl, plain, cap, ret_n);
    if (updates_keys_too_often(l)) {
        snprintf(l->why, sizeof l->why, "the peer updates its TLS keys again and again without sending data");
        return broken(l);
    }
    if (rc == 1) {
        l->n_plain += *ret_n;
        return TLS_PLAIN;
    }
    switch (SSL_get_error(l->ssl, rc)) {
    case SSL_ERROR_ZERO_RETURN: return TLS_ENDED;
    case SSL_ERROR_WANT_READ: return TLS_WAITS;
    default: return broken(l);
    }
}

int tls_link_write(tls_link *l, const void *bytes, size_t n, buf *out)
{
    if (!l->open || l->broken) return SHOAL_EPROTOCOL;
    for (size_t done = 0; done < n;) {
        size_t took = 0, piece = n - done < RECORD_BYTES ? n - done : RECORD_BYTES;
        ERR_clear_error();
        /* The BIO is memory and grows, so a finished handshake never has to wait here; emptied after each
         * record, it stays small. */
        if (SSL_write_ex(l->ssl, (const char *)bytes + done, piece, &took) != 1) {
            broken(l);
            return SHOAL_EPROTOCOL;
        }
        done += took;
        tls_link_take(l, out);
    }
    return 0;
}

void tls_link_take(tls_link *l, buf *out)
{
    char chunk[RECORD_BYTES];
    int n;
    while ((n = BIO_read(l->out, chunk, sizeof chunk)) > 0) buf_append(out, chunk, (size_t)n);
}

/* A memory BIO keeps the room that it once had: an empty one gives way to a new one, if that can be had. */
void tls_link_trim(tls_link *l)
{
    BIO *in = BIO_pending(l->in) ? NULL : BIO_new(BIO_s_mem());
    BIO *out = BIO_pending(l->out) ? NULL : BIO_new(BIO_s_mem());
    if (in) SSL_set0_rbio(l->ssl, l->in = in);
    if (out) SSL_set0_wbio(l->ssl, l->out = out);
}

void tls_link_goodbye(tls_link *l)
{
    if (!l->open || l->broken) return;
    ERR_clear_error();
    SSL_shutdown(l->ssl);
}

bool tls_link_is_open(const tls_link *l)
{
    return l->open;
}

const char *tls_link_alpn(const tls_link *l)
{
    return l->alpn;
}

const char *tls_link_why(const tls_link *l)
{
    return l->why;
}

const tls_identity *tls_link_peer(const tls_link *l)
{
    return l->open ? l->peer : NULL;
}

const char *tls_link_sni(const tls_link *l)
{
    return SSL_get_servername(l->ssl, TLSEXT_NAMETYPE_host_name);
}
