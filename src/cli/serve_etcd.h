/* serve_etcd.h: `shoal serve` and its part in etcd (discovery/etcd.h), from the configuration.
 *
 *     serve_etcd_open(&e, loop, registry, config, gate name or NULL, port, err);
 *     etcd_drain(e); ... etcd_close(e, closed, user);
 */
#ifndef CLI_SERVE_ETCD_H
#define CLI_SERVE_ETCD_H

#include "discovery/etcd.h"
#include "config/config.h"

/* NULL in *ret when the configuration names no etcd. The name in etcd is `name` (of the cluster's CA); NULL:
 * the configured one, or the host's with the port, since one machine may have two gateways. */
int serve_etcd_open(etcd **ret, uv_loop_t *loop, registry *g, const gateway_config *c, const char *name,
                    int port, shoal_err *err);

#endif
