/* worker_gate.c: see worker_gate.h. */
#include "worker/worker_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "wire/address.h"
#include "wire/env_uv.h"
#include "wire/tls_watch.h"

struct worker_gate {
    tls_context *tls;
    tls_watch *watch;
    char *client; /* who may call; NULL: whoever the CA has signed */
};

static bool admit(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    const worker_gate *g = user;
    if (!g->client || strcmp(who->common_name, g->client) == 0) return true;
    snprintf(why, TLS_WHY_BYTES, "it is not %.100s", g->client);
    return false;
}

static void refused(void *user, const char *from, const char *why)
{
    /* Whoever only opens a connection and ends it, as probes of Kubernetes do every few seconds, was not refused. */
    log_level level = strcmp(why, "ended") == 0 ? LOG_DEBUG : LOG_WARN;
    LOG(level, "worker", "refused", LOG_S("from", from), LOG_S("reason", why));
}

static int open_tls(worker_gate *g, uv_loop_t *loop, const worker_tls *tls, shoal_err *err)
{
    const env time = env_uv(loop);
    const tls_options o = {
        .cert_file = tls->cert, .key_file = tls->key, .ca_file = tls->ca, .admit = admit, .user = g};
    if (!tls->key || !tls->ca) return err_set(err, SHOAL_EINVALID, "--tls-cert needs --tls-key and --tls-ca");
    if (tls->client && !(g->client = strdup(tls->client))) return err_nomem(err);
    int rc = tls_context_new(&g->tls, TLS_SERVER, &o, err);
    return rc == 0 ? tls_watch_new(&g->watch, &time, g->tls, "worker", err) : rc;
}

static int listen_in_clear(grpc_server *s, const char *where, shoal_err *err)
{
    address a;
    int rc = address_parse(&a, where, err);
    if (rc != 0) return rc;
    if (!address_is_here(&a))
        return err_set(err, SHOAL_EINVALID,
                       "%.200s can be reached from other machines, and nothing is said there in clear text: "
                       "--tls-cert, --tls-key and --tls-ca are needed",
                       where);
    return grpc_server_listen(s, where, err);
}

int worker_gate_listen(worker_gate **ret, grpc_server *s, uv_loop_t *loop, const char *address,
                       const worker_tls *tls, shoal_err *err)
{
    *ret = NULL;
    if (!tls->cert) return listen_in_clear(s, address, err);
    worker_gate *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    int rc = open_tls(g, loop, tls, err);
    if (rc == 0) rc = grpc_server_listen_tls(s, address, g->tls, err);
    if (rc != 0) {
        worker_gate_close(g);
        return rc;
    }
    grpc_server_on_refused(s, refused, NULL);
    *ret = g;
    return 0;
}

void worker_gate_close(worker_gate *g)
{
    if (!g) return;
    tls_watch_free(g->watch);
    tls_context_unref(g->tls);
    free(g->client);
    free(g);
}
