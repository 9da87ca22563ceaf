/* serve_etcd.h: `shoal serve` and its part in etcd (discovery/etcd.h), from the configuration.
 *
 *     serve_etcd_open(&e, loop, registry, config, &(serve_etcd_options){.port = port}, err);
 *     etcd_drain(e); ... etcd_close(e, closed, user);
 */
#ifndef SERVE_SERVE_ETCD_H
#define SERVE_SERVE_ETCD_H

#include "config/config.h"
#include "discovery/etcd.h"

typedef struct serve_etcd_options {
    const char *name; /* of the cluster's CA; NULL: the configured one, or the host's with the port, since one
                       * machine may have two gateways */
    int port;
    double bytes_per_s, multiplies_per_s; /* of this machine; 0: not measured */
    const char *group;                    /* as etcd_options has it, and the next two */
    etcd_plan_events plan;
    etcd_election_events election;
} serve_etcd_options;

/* NULL in *ret when the configuration names no etcd. */
int serve_etcd_open(etcd **ret, uv_loop_t *loop, registry *g, const gateway_config *c,
                    const serve_etcd_options *with, shoal_err *err);

#endif
