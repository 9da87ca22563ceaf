/* gateway.h: the front door: HTTP in, model calls out. One event loop, no inference. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include <uv.h>

#include "base/err.h"
#include "cluster/registry.h"
#include "control/control.h"
#include "config/config.h"
#include "request/endpoint.h"
#include "request/metrics.h"
#include "gateway/model_manager.h"

typedef struct gateway gateway;

/* Listens as `config` says and answers what the table names (endpoints/table.h); config, registry and table
 * must outlive it. */
int gateway_new(gateway **ret, uv_loop_t *loop, registry *g, const gateway_config *config,
                const endpoint_table *endpoints, shoal_err *err);
int gateway_port(const gateway *g);
/* The file has been read again: requests that come from now on are served as `next` says, those in flight go
 * on as they began, and no connection is closed. Certificates are read again, too. What takes a start to
 * change (config_diff.h) stays as it is. On success next is the gateway's, on failure the caller's and
 * nothing has changed. */
int gateway_reload(gateway *g, gateway_config *next, shoal_err *err);
const gateway_config *gateway_config_now(const gateway *g); /* until the next reload */
/* The port for other machines, for GET /v1/nodes; NULL: there is none. It must outlive g, or be taken back.
 */
void gateway_set_control(gateway *g, control *at);
/* What workers at addresses of their own are called with, for the metrics of certificates; referenced. Once. */
void gateway_show_workers_tls(gateway *g, tls_context *t);
/* Who loads and unloads models (model_manager.h); NULL: nobody. As the control plane. */
void gateway_show_model_manager(gateway *g, const model_manager *k);
/* What requests for a model waited lately, as this gateway knows it. */
typedef struct gateway_waits {
    uint64_t n_held;  /* calls that wait here for a replica */
    uint64_t n_waits; /* model calls that ended since `seen` was filled, and */
    double p95_ms;    /* what 95 of 100 of them waited in workers, at least */
} gateway_waits;
/* seen NULL: without the last two. Zeroed at first, it is filled anew. */
gateway_waits gateway_look_at_waits(const gateway *g, const char *model, uint64_t seen[METRICS_BUCKETS]);
/* For GET /metrics: so many replicas are wanted of a model whose number follows its load (cluster/scale.h); `why`: the
 * word of the step that led there, NULL: there was none. */
void gateway_note_scale(gateway *g, const char *model, unsigned wanted, const char *why);
/* Says to all who ask that it is not ready, so that balancers send nothing more, and answers what comes until
 * it drains. */
void gateway_withdraw(gateway *g);
/* No new work (503 with Retry-After), running answers finish; `done` when nothing is left. */
void gateway_drain(gateway *g, void (*done)(void *user), void *user);
/* The grace of a drain is over: what still runs is cancelled and answered with 503 (a stream ends with an
 * error event). The drain's `done` follows once that is flushed. */
void gateway_cut(gateway *g);
/* Deliver what is exported (telemetry/) and still waits. done(user) comes once, later or inside this call, at the latest after
 * limit_ms; not at all once the gateway is freed. */
void gateway_flush(gateway *g, uint64_t limit_ms, void (*done)(void *user), void *user);
void gateway_free(gateway *g); /* closes what is left; run the loop once more afterwards */

#endif
