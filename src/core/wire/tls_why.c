/* tls_why.c: what a certificate says, and sentences for what is wrong with one. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "wire/tls_link.h"

/* ---- a certificate's facts ------------------------------------------------------------------- */

static void hex(char *out, size_t cap, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n && 2 * i + 2 < cap; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* The first entry of that kind, in UTF-8; "" when there is none, or it holds a NUL or control characters, or
 * is too long: half a name would be another name. */
static void name_part(char *out, size_t cap, const X509_NAME *name, int nid)
{
    unsigned char *utf8 = NULL;
    int at = X509_NAME_get_index_by_NID(name, nid, -1);
    out[0] = '\0';
    if (at < 0) return;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    bool is_plain = n > 0 && (size_t)n < cap;
    for (int i = 0; is_plain && i < n; i++) is_plain = utf8[i] >= 0x20 && utf8[i] != 0x7f;
    if (is_plain) {
        memcpy(out, utf8, (size_t)n);
        out[n] = '\0';
    }
    if (n >= 0) OPENSSL_free(utf8);
}

static void serial_of(char *out, size_t cap, const X509 *cert)
{
    const ASN1_INTEGER *number = X509_get0_serialNumber(cert);
    const unsigned char *p = ASN1_STRING_get0_data(number);
    size_t n = (size_t)ASN1_STRING_length(number);
    while (n > 1 && *p == 0) p++, n--;
    out[0] = '\0';
    hex(out, cap, p, n);
    if (out[0] == '0' && out[1]) memmove(out, out + 1, strlen(out));
}

static void first_dns_name(char *out, size_t cap, X509 *cert)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; all && !*out && i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(all, i);
        if (g->type != GEN_DNS) continue;
        size_t n = (size_t)ASN1_STRING_length(g->d.dNSName);
        const unsigned char *text = ASN1_STRING_get0_data(g->d.dNSName);
        if (n < cap && !memchr(text, '\0', n)) memcpy(out, text, n); /* out is zeroed */
    }
    GENERAL_NAMES_free(all);
}

void tls_identity_read(tls_identity *ret, X509 *cert)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct tm end = {0};
    memset(ret, 0, sizeof *ret);
    name_part(ret->common_name, sizeof ret->common_name, X509_get_subject_name(cert), NID_commonName);
    if (!*ret->common_name) first_dns_name(ret->common_name, sizeof ret->common_name, cert);
    name_part(ret->unit, sizeof ret->unit, X509_get_subject_name(cert), NID_organizationalUnitName);
    serial_of(ret->serial, sizeof ret->serial, cert);
    if (X509_digest(cert, EVP_sha256(), digest, &n) == 1)
        hex(ret->fingerprint, sizeof ret->fingerprint, digest, n);
    if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &end) == 1) ret->not_after_s = timegm(&end);
}

/* ---- sentences ------------------------------------------------------------------------------- */

static void date_of(char out[24], const ASN1_TIME *time)
{
    struct tm t = {0};
    snprintf(out, 24, "an unknown time");
    if (ASN1_TIME_to_tm(time, &t) == 1) strftime(out, 24, "%Y-%m-%d %H:%M UTC", &t);
}

/* The names that it may be reached by, as `"a", "b"`. */
static void names_of(char *out, size_t cap, X509 *cert, const char *common_name)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; all && i < sk_GENERAL_NAME_num(all) && at < cap; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(all, i);
        if (g->type != GEN_DNS) continue;
        const char *text = (const char *)ASN1_STRING_get0_data(g->d.dNSName);
        at += (size_t)snprintf(out + at, cap - at, "%s\"%.*s\"", at ? ", " : "",
                               ASN1_STRING_length(g->d.dNSName), text);
    }
    if (!out[0]) snprintf(out, cap, "\"%s\"", common_name);
    GENERAL_NAMES_free(all);
}

/* Control characters of a name must not reach a terminal or a log. */
static void make_printable(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
}

static void why_untrusted(char *out, size_t n, const tls_options *o, X509 *cert, const char *who)
{
    char issuer[128] = "";
    if (cert) name_part(issuer, sizeof issuer, X509_get_issuer_name(cert), NID_commonName);
    snprintf(out, n, "the certificate of \"%s\" was signed by \"%s\", which is not among the CAs of %s: %s",
             who, issuer, o->ca_file ? o->ca_file : "this system",
             !o->web      ? "it belongs to another cluster, or the CA file is wrong"
             : o->ca_file ? "give the file of its CA"
                          : "give the file of its CA (--ca FILE)");
}

/* Either clock may be the wrong one, so both times are told. */
static void why_time(char *out, size_t n, const char *what, const ASN1_TIME *limit, bool is_over,
                     const char *or_else)
{
    char date[24], here[24];
    time_t now = time(NULL);
    struct tm t = {0};
    date_of(date, limit);
    gmtime_r(&now, &t);
    strftime(here, sizeof here, "%Y-%m-%d %H:%M UTC", &t);
    snprintf(out, n, "%s %s %s, and it is %s on this machine: set the clocks (NTP)%s", what,
             is_over ? "expired at" : "is not valid before", date, here, or_else);
}

static void why_dates(char *out, size_t n, X509 *cert, const char *who, bool is_over)
{
    char what[160];
    snprintf(what, sizeof what, "the certificate of \"%.100s\"", who);
    why_time(out, n, what, is_over ? X509_get0_notAfter(cert) : X509_get0_notBefore(cert), is_over,
             is_over ? ", or let it join again" : "");
}

static void why_list(char *out, size_t n, const tls_options *o, X509_STORE_CTX *store, int error)
{
    char what[256];
    const X509_CRL *crl = X509_STORE_CTX_get0_current_crl(store);
    bool is_over = error == X509_V_ERR_CRL_HAS_EXPIRED;
    snprintf(what, sizeof what, "the revocation list %.200s", o->crl_file ? o->crl_file : "");
    if (crl && (is_over || error == X509_V_ERR_CRL_NOT_YET_VALID))
        why_time(out, n, what, is_over ? X509_CRL_get0_nextUpdate(crl) : X509_CRL_get0_lastUpdate(crl),
                 is_over, is_over ? ", or see why no gateway has sent a newer one" : "");
    else
        snprintf(out, n, "%s %s", what,
                 error == X509_V_ERR_UNABLE_TO_GET_CRL ? "has no list of that certificate's CA: add it"
                                                       : X509_verify_cert_error_string(error));
}

void tls_why_certificate(char *out, size_t n, const tls_options *o, X509_STORE_CTX *store, const char *wanted)
{
    X509 *cert = X509_STORE_CTX_get_current_cert(store);
    int error = X509_STORE_CTX_get_error(store);
    char who[128] = "", names[160];
    if (cert) name_part(who, sizeof who, X509_get_subject_name(cert), NID_commonName);
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        why_dates(out, n, cert, who, error == X509_V_ERR_CERT_HAS_EXPIRED);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: why_untrusted(out, n, o, cert, who); break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        names_of(names, sizeof names, cert, who);
        snprintf(out, n, "the machine that answers proves to be %s, not \"%s\": check the address", names,
                 wanted);
        break;
    case X509_V_ERR_CERT_REVOKED:
        snprintf(out, n, "the certificate of \"%s\" has been revoked: let it join again", who);
        break;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE: why_list(out, n, o, store, error); break;
    default:
        snprintf(out, n, "the certificate of \"%s\" was refused: %s", who,
                 X509_verify_cert_error_string(error));
    }
    make_printable(out);
}

/* X(OpenSSL's reason, what to tell): alerts are what the other side said. */
#define REASONS(X)                                                                                           \
    X(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE,                                                               \
      "it showed no certificate: only members of this cluster come in")                                      \
    X(SSL_R_UNSUPPORTED_PROTOCOL, "it does not speak TLS 1.3")                                               \
    X(SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the other side does not speak our version of TLS")                \
    X(SSL_R_WRONG_VERSION_NUMBER, "it does not speak TLS")                                                   \
    X(SSL_R_HTTP_REQUEST, "it speaks HTTP without TLS")                                                      \
    X(SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the other side wants a certificate: join the cluster first") \
    X(SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "the other side says that our certificate, or its revocation "  \
                                             "list, has expired: set the clocks (NTP), else "                \
                                             "join again")                                                   \
    X(SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, "the other side says that our certificate has been revoked")    \
    X(SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the other side does not know the CA of our certificate")                \
    X(SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the other side refused our certificate, or its revocation list: "  \
                                         "its log says why; are the clocks right?")                          \
    X(SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "the other side refused our certificate")                       \
    X(SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "the other side refused the TLS handshake")                       \
    X(SSL_R_TLSV1_ALERT_ACCESS_DENIED, "the other side does not let us in with this certificate")            \
    X(SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, "the other side does not speak HTTP/2")

void tls_why_handshake(char *out, size_t n, tls_side side, bool open)
{
    unsigned long code = ERR_peek_error();
    int reason = code ? ERR_GET_REASON(code) : 0;
    switch (code && ERR_GET_LIB(code) == ERR_LIB_SSL ? reason : 0) {
#define REASON_TEXT(r, text) \
    case r: snprintf(out, n, "%s", text); return;
        REASONS(REASON_TEXT)
#undef REASON_TEXT
    default: break;
    }
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    snprintf(out, n, "%s%s%s", open ? "the TLS stream is broken" : "the TLS handshake failed",
             text ? ": " : "", text ? text : "");
}
