/* serve_etcd.c: this machine and this gateway, as others shall see them. */
#include "serve/serve_etcd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cluster/machine.h"
#include "trust/identity.h"

/* A gateway on a Unix socket has no port; its path tells it from others. */
static unsigned number_of(const gateway_config *c, int port)
{
    unsigned h = 2166136261u; /* FNV-1a */
    if (port > 0) return (unsigned)port;
    for (const char *p = c->listen; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
    return h;
}

static void make_name(char ret[IDENTITY_NAME_SIZE], const gateway_config *c, const char *name, int port)
{
    char host[256] = "", base[IDENTITY_NAME_SIZE];
    if (!name) name = c->cluster_name;
    if (name) {
        snprintf(ret, IDENTITY_NAME_SIZE, "%s", name);
        return;
    }
    gethostname(host, sizeof host - 1);
    identity_name_from_host(base, host);
    snprintf(ret, IDENTITY_NAME_SIZE, "%.50s-%u", base, number_of(c, port));
}

int serve_etcd_open(etcd **ret, uv_loop_t *loop, registry *g, const gateway_config *c,
                    const serve_etcd_options *with, shoal_err *err)
{
    char own[IDENTITY_NAME_SIZE];
    machine here;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    *ret = NULL;
    if (c->etcd.n_endpoints == 0) return 0;
    make_name(own, c, with->name, with->port);
    machine_read(&here, "");
    const node self = {.name = own,
                       .site = c->cluster_site && *c->cluster_site ? c->cluster_site : NULL,
                       .n_cores = n > 0 ? (unsigned)n : 0,
                       .memory_bytes = here.memory_bytes,
                       .bytes_per_s = with->bytes_per_s,
                       .multiplies_per_s = with->multiplies_per_s,
                       .group = with->group};
    const etcd_options o = {.endpoints = c->etcd.endpoints,
                            .n_endpoints = c->etcd.n_endpoints,
                            .prefix = c->etcd.prefix,
                            .ca = c->etcd.ca,
                            .cert = c->etcd.cert,
                            .key = c->etcd.key,
                            .user = c->etcd.user,
                            .password_file = c->etcd.password_file,
                            .lease_s = c->etcd.lease_s,
                            .self = &self,
                            .group = with->group,
                            .plan = with->plan,
                            .election = with->election};
    int rc = etcd_open(ret, loop, g, &o, err);
    return rc == 0 ? 0 : err_prefix(err, rc, "discovery.etcd");
}
