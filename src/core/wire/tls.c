/* tls.c: TLS contexts: files read, rules set. */
#include "wire/tls_link.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

struct tls_context {
    unsigned n_refs;
    tls_side side;
    tls_options o; /* strings owned */
    SSL_CTX *now;
};

static int alpn_select(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                       unsigned in_len, void *arg)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *choice;
    int rc = SSL_select_next_proto(&choice, out_len, ours, sizeof ours - 1, in, in_len);
    *out = choice;
    return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int tls_error(shoal_err *err, const char *what, const char *file)
{
    unsigned long code = ERR_get_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    bool no_pem = code && ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return err_set(err, SHOAL_EINVALID, "%s: cannot be used as the TLS %s: %s", file, what,
                   no_pem   ? "it is no PEM file of one"
                   : reason ? reason
                            : "unknown reason");
}

/* ---- one SSL_CTX ----------------------------------------------------------------------------- */

/* OpenSSL would wait for a pipe's writer. */
static int check_file(const char *path, shoal_err *err)
{
    return file_check_regular(path, err) == 0 ? 0 : SHOAL_EINVALID;
}

static int load_own(SSL_CTX *ctx, const tls_options *o, shoal_err *err)
{
    if (!o->cert_file) return 0;
    int rc = check_file(o->cert_file, err);
    if (rc == 0) rc = check_file(o->key_file, err);
    if (rc != 0) return rc;
    if (o->leaf_alone) SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN);
    if ((o->leaf_alone ? SSL_CTX_use_certificate_file(ctx, o->cert_file, SSL_FILETYPE_PEM)
                       : SSL_CTX_use_certificate_chain_file(ctx, o->cert_file)) != 1)
        return tls_error(err, "certificate", o->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, o->key_file, SSL_FILETYPE_PEM) != 1)
        return tls_error(err, "key", o->key_file);
    if (SSL_CTX_check_private_key(ctx) != 1) return tls_error(err, "key of that certificate", o->key_file);
    return 0;
}

static int load_trust(SSL_CTX *ctx, const tls_options *o, tls_side side, shoal_err *err)
{
    if (!o->ca_file) {
        if (side == TLS_CLIENT && !o->ca_key_sha256) SSL_CTX_set_default_verify_paths(ctx);
        return 0;
    }
    int rc = check_file(o->ca_file, err);
    if (rc == 0 && o->crl_file) rc = check_file(o->crl_file, err);
    if (rc != 0) return rc;
    if (SSL_CTX_load_verify_file(ctx, o->ca_file) != 1) return tls_error(err, "CA", o->ca_file);
    if (!o->crl_file) return 0;
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, o->crl_file, X509_FILETYPE_PEM) < 1)
        return tls_error(err, "revocation list", o->crl_file);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return 0;
}

/* A resumed session would not be checked again: a certificate revoked meanwhile would still come in. */
static void never_resume(SSL_CTX *ctx)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

static void set_rules(SSL_CTX *ctx, const tls_options *o, tls_side side)
{
    bool is_public = side == TLS_SERVER && !o->ca_file;
    SSL_CTX_set_min_proto_version(ctx, is_public || o->web ? TLS1_2_VERSION : TLS1_3_VERSION);
    SSL_CTX_set_options(ctx,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_AUTO_RETRY);
    /* TLS 1.3 has no others. RFC 9113, appendix A, forbids the rest for HTTP/2 anyway. */
    SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20");
    if (side == TLS_SERVER) SSL_CTX_set_alpn_select_cb(ctx, alpn_select, NULL);
    if (is_public) return;
    never_resume(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | (o->guests ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
                       tls_link_verify);
    if (o->ca_key_sha256) SSL_CTX_set_cert_verify_callback(ctx, tls_link_verify_pinned, NULL);
}

static int tls_make(SSL_CTX **ret, const tls_options *o, tls_side side, shoal_err *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(side == TLS_SERVER ? TLS_server_method() : TLS_client_method());
    if (!ctx) return err_nomem(err);
    set_rules(ctx, o, side);
    int rc = load_own(ctx, o, err);
    if (rc == 0) rc = load_trust(ctx, o, side, err);
    if (rc == 0)
        *ret = ctx;
    else
        SSL_CTX_free(ctx);
    return rc;
}

/* ---- a context ------------------------------------------------------------------------------- */

static bool copy_path(const char **p)
{
    if (*p) *p = strdup(*p);
    return *p != NULL;
}

static void free_paths(tls_options *o)
{
    free((char *)o->cert_file);
    free((char *)o->key_file);
    free((char *)o->ca_file);
    free((char *)o->crl_file);
}

static bool copy_options(tls_options *to, const tls_options *from)
{
    bool ok = true;
    *to = *from;
    ok &= copy_path(&to->cert_file) || !from->cert_file;
    ok &= copy_path(&to->key_file) || !from->key_file;
    ok &= copy_path(&to->ca_file) || !from->ca_file;
    ok &= copy_path(&to->crl_file) || !from->crl_file;
    return ok;
}

static int check_options(tls_side side, const tls_options *o, shoal_err *err)
{
    if (!o->cert_file != !o->key_file || (side == TLS_SERVER && !o->cert_file))
        return err_set(err, SHOAL_EINVALID, "TLS needs a certificate and its key, in two files");
    if (!o->ca_file && (o->crl_file || (side == TLS_SERVER && o->admit)))
        return err_set(err, SHOAL_EINVALID, "a revocation list and rules of admission need a CA file");
    if (o->any_name && (!o->admit || (!o->ca_file && !o->ca_key_sha256)))
        return err_set(err, SHOAL_EINVALID,
                       "a server of any name needs a CA of its own, and a rule of admission");
    return 0;
}

int tls_context_new(tls_context **ret, tls_side side, const tls_options *o, shoal_err *err)
{
    int rc = check_options(side, o, err);
    if (rc != 0) return rc;
    tls_context *t = calloc(1, sizeof *t);
    if (!t) return err_nomem(err);
    t->n_refs = 1;
    t->side = side;
    rc = copy_options(&t->o, o) ? tls_make(&t->now, &t->o, side, err) : err_nomem(err);
    if (rc == 0)
        *ret = t;
    else
        tls_context_unref(t);
    return rc;
}

int tls_context_reload(tls_context *t, shoal_err *err)
{
    SSL_CTX *next;
    int rc = tls_make(&next, &t->o, t->side, err);
    if (rc != 0) return rc;
    SSL_CTX_free(t->now); /* links hold it for as long as they need it */
    t->now = next;
    return 0;
}

bool tls_context_admits(const tls_context *t, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    char unread[TLS_WHY_BYTES] = "";
    if (why) *why = '\0';
    return !t->o.admit || t->o.admit(t->o.user, who, why ? why : unread);
}

tls_context *tls_context_ref(tls_context *t)
{
    t->n_refs++;
    return t;
}

void tls_context_unref(tls_context *t)
{
    if (!t || --t->n_refs) return;
    SSL_CTX_free(t->now);
    free_paths(&t->o);
    free(t);
}

SSL_CTX *tls_context_now(const tls_context *t)
{
    return t->now;
}

tls_side tls_context_side(const tls_context *t)
{
    return t->side;
}

const tls_options *tls_context_options(const tls_context *t)
{
    return &t->o;
}
