/* tls.c: the server's TLS context. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "wire/transport.h"

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

int tls_server_context(SSL_CTX **ret, const char *cert_file, const char *key_file, shoal_err *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx) return err_nomem(err);
    int rc = 0;
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_AUTO_RETRY);
    /* TLS 1.3 has no others. RFC 9113, appendix A, forbids the rest for HTTP/2 anyway. */
    SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20");
    SSL_CTX_set_alpn_select_cb(ctx, alpn_select, NULL);
    if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
        rc = tls_error(err, "certificate", cert_file);
    else if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1)
        rc = tls_error(err, "key", key_file);
    else if (SSL_CTX_check_private_key(ctx) != 1)
        rc = tls_error(err, "key of that certificate", key_file);
    if (rc == 0)
        *ret = ctx;
    else
        SSL_CTX_free(ctx);
    return rc;
}
