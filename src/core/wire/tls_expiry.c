/* tls_expiry.c: see tls_expiry.h. */
#define _GNU_SOURCE /* timegm */
#include "wire/tls_expiry.h"

#include <openssl/ssl.h>
#include <time.h>

#include "logging/log.h"
#include "wire/tls_link.h"

#define DAY_S INT64_C(86400)

static const int64_t WARN_DAYS[TLS_EXPIRY_STEPS] = {30, 7, 1, 0};
static const char *const WHATS[TLS_N_WHATS] = {"certificate", "ca"};

const char *tls_what_name(tls_what w)
{
    return WHATS[w];
}

/* ---- reading ------------------------------------------------------------------------------------------ */

static bool seconds_of(const ASN1_TIME *t, int64_t *ret)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1) return false;
    *ret = (int64_t)timegm(&tm);
    return true;
}

static void take_first(tls_validity *v, bool *any, const X509 *x)
{
    tls_validity of;
    if (!x || !seconds_of(X509_get0_notBefore(x), &of.from_s) ||
        !seconds_of(X509_get0_notAfter(x), &of.until_s))
        return;
    if (!*any || of.until_s < v->until_s) *v = of;
    *any = true;
}

static bool own_validity(SSL_CTX *ctx, tls_validity *ret)
{
    STACK_OF(X509) *chain = NULL;
    bool any = false;
    take_first(ret, &any, SSL_CTX_get0_certificate(ctx));
    if (SSL_CTX_get0_chain_certs(ctx, &chain) == 1)
        for (int i = 0; i < sk_X509_num(chain); i++) take_first(ret, &any, sk_X509_value(chain, i));
    return any;
}

static bool ca_validity(SSL_CTX *ctx, tls_validity *ret)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
    bool any = false;
    for (int i = 0; i < sk_X509_OBJECT_num(all); i++)
        take_first(ret, &any, X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i)));
    return any;
}

bool tls_context_validity(const tls_context *t, tls_what what, tls_validity *ret)
{
    const tls_options *o = tls_context_options(t);
    SSL_CTX *ctx = tls_context_now(t);
    return what == TLS_OWN ? own_validity(ctx, ret) : o->ca_file && ca_validity(ctx, ret);
}

/* ---- warning ------------------------------------------------------------------------------------------ */

unsigned tls_expiry_step(const tls_validity *v, int64_t now_s)
{
    int64_t left = v->until_s - now_s, quarter = (v->until_s - v->from_s) / 4;
    unsigned n = 0;
    for (unsigned i = 0; i < TLS_EXPIRY_STEPS; i++) {
        int64_t within = WARN_DAYS[i] * DAY_S;
        if (left <= (within < quarter ? within : quarter)) n = i + 1;
    }
    return n;
}

static void tell(const tls_context *t, tls_what what, const tls_validity *v, unsigned step,
                 const char *component, int64_t now_s)
{
    const tls_options *o = tls_context_options(t);
    bool over = step == TLS_EXPIRY_STEPS;
    LOG(over ? LOG_ERROR : LOG_WARN, component, over ? "certificate_expired" : "certificate_expires",
        LOG_S("file", what == TLS_OWN ? o->cert_file : o->ca_file), LOG_S("kind", tls_what_name(what)),
        LOG_F("days", (double)(v->until_s - now_s) / (double)DAY_S), LOG_I("until", v->until_s));
}

void tls_expiry_tell(tls_expiry *e, const tls_context *t, const char *component, int64_t now_s)
{
    for (int w = 0; w < TLS_N_WHATS; w++) {
        tls_validity v;
        if (!tls_context_validity(t, (tls_what)w, &v)) continue;
        if (v.until_s != e->until_s[w]) e->n_told[w] = 0;
        e->until_s[w] = v.until_s;
        unsigned step = tls_expiry_step(&v, now_s);
        if (step > e->n_told[w]) {
            tell(t, (tls_what)w, &v, step, component, now_s);
            e->n_told[w] = step;
        }
    }
}
