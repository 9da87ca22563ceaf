/* dns.h: members that DNS names: the SRV records of a name are the workers of a model (RFC 2782).
 *
 * What publishes SRV records does: Consul, a headless service of Kubernetes, dnsmasq. The name is asked again
 * when its records' time to live is over (1 s at least, 5 min at most). Addresses that come with the answer
 * are used, other host names are resolved when they are dialled. DNS knows no generations; each connection
 * counts as a life (source.h).
 *
 * A failure keeps the last view and says so: no server, no answer, nonsense, and also a name without records,
 * since a zone that was lost must not stop workers that serve. A worker that is gone is down by itself.
 *
 *     dns *d;
 *     dns_open(&d, loop, g, &(dns_options){.names = names, .n_names = 1}, &err);
 *     dns_close(d);         // before registry_free; run the loop once more
 */
#ifndef DISCOVERY_DNS_H
#define DISCOVERY_DNS_H

#include <stddef.h>
#include <uv.h>

#include "base/err.h"

typedef struct registry registry;

typedef struct dns dns;

typedef struct dns_name {
    const char *name;  /* "_home-intent._tcp.example.org" */
    const char *model; /* that its workers serve */
} dns_name;

typedef struct dns_options {
    const dns_name *names; /* copied */
    size_t n_names;
    const char *server;  /* "127.0.0.1:8600"; NULL: those of the machine (resolv.conf) */
    unsigned timeout_ms; /* of one question; 0: 2000 */
} dns_options;

/* Asks at once. SHOAL_EINVALID: the server's address is none. Loop thread. */
int dns_open(dns **ret, uv_loop_t *loop, registry *g, const dns_options *opts, shoal_err *err);
void dns_close(dns *d); /* drops its members; accepts NULL */

#endif
