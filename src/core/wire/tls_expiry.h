/* tls_expiry.h: when the certificates of a TLS context expire, and warnings before they do.
 *
 *     tls_expiry e = {0};
 *     tls_expiry_tell(&e, context, "gateway", now_s);      // every few seconds
 *
 * A warning (event=certificate_expires) is written 30, 7 and 1 days before the end, and an error (certificate_expired) at the
 * end. A renewal is not late before the last quarter of a certificate's life, so one that lives for less than 120 days is
 * warned of later: 7.5, 7 and 1 days before the end where it lives for 30 days, and once, 6 hours before, where it lives for
 * one. A certificate that was renewed begins anew. */
#ifndef WIRE_TLS_EXPIRY_H
#define WIRE_TLS_EXPIRY_H

#include "wire/tls.h"

typedef enum tls_what { TLS_OWN, TLS_CA, TLS_N_WHATS } tls_what; /* what it shows; what it believes */
const char *tls_what_name(tls_what w);                           /* "certificate", "ca" */

typedef struct tls_validity {
    int64_t from_s, until_s; /* Unix time */
} tls_validity;

/* Of several certificates, a chain or a file of CAs, that which expires first. False: there is none, as where the system's
 * CAs are believed. */
bool tls_context_validity(const tls_context *t, tls_what what, tls_validity *ret);

enum { TLS_EXPIRY_STEPS = 4 };
/* How many of the times to warn have come: TLS_EXPIRY_STEPS when it has expired. Pure. */
unsigned tls_expiry_step(const tls_validity *v, int64_t now_s);

typedef struct tls_expiry { /* zeroed: nothing was said yet */
    int64_t until_s[TLS_N_WHATS];
    unsigned n_told[TLS_N_WHATS];
} tls_expiry;

void tls_expiry_tell(tls_expiry *e, const tls_context *t, const char *component, int64_t now_s);

#endif
