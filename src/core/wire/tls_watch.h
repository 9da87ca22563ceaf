/* tls_watch.h: a TLS context follows its files: certificates that are renewed in place are read again.
 *
 * Each TLS_WATCH_MS the files are looked at (what stat tells of them, links followed, as Kubernetes replaces the
 * files of a volume). A change is a line in the log: event=certificate_renewed, or certificate_unusable with the
 * reason. What cannot be read, such as a certificate whose key has not come yet, is tried again each time; until then
 * the context stays as it was. Certificates that are about to expire are warned of (tls_expiry.h).
 *
 *     tls_watch_new(&w, &env, context, "worker", &err);
 *     tls_watch_free(w);      // before the context's last reference goes
 */
#ifndef WIRE_TLS_WATCH_H
#define WIRE_TLS_WATCH_H

#include "time/env.h"
#include "wire/tls.h"

enum { TLS_WATCH_MS = 5000 };

typedef struct tls_watch tls_watch;

/* `context` and `component`, which log lines name, are borrowed; *time is copied. SHOAL_ENOMEM. Loop thread. */
int tls_watch_new(tls_watch **ret, const env *time, tls_context *context, const char *component,
                  shoal_err *err);
void tls_watch_free(tls_watch *w); /* accepts NULL */

#endif
