/* config_check.c: what no single row of the schema can say of a configuration. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "base/utf8.h"
#include "discovery/etcd.h"
#include "config/config_load_request.h"
#include "config/config_schema.h"
#include "trust/identity.h"
#include "wire/address.h"
#include "http/http1_parse.h"

static int check_listen(const char *key, const char *listen, shoal_err *err)
{
    if (strncmp(listen, "unix:", 5) == 0) {
        if (listen[5] && strlen(listen + 5) < 100) return 0;
        return err_set(err, SHOAL_EINVALID, "%s: a Unix socket needs a path of 1 to 99 bytes after 'unix:'",
                       key);
    }
    const char *colon = strrchr(listen, ':');
    char *end = NULL;
    long port = colon && isdigit((unsigned char)colon[1]) ? strtol(colon + 1, &end, 10) : -1;
    if (port >= 0 && port <= 65535 && end && !*end) return 0;
    return err_set(err, SHOAL_EINVALID, "%s: '%s' is not HOST:PORT or unix:PATH (example: 127.0.0.1:8080)",
                   key, listen);
}

static int check_doors(const gateway_config *c, shoal_err *err)
{
    int rc = check_listen("listen", c->listen, err);
    for (size_t i = 0; rc == 0 && i < c->n_also_listen; i++) {
        const config_listen *d = &c->also_listen[i];
        bool socket = strncmp(d->address, "unix:", 5) == 0;
        char key[40];
        snprintf(key, sizeof key, "also_listen[%zu]", i);
        rc = check_listen(key, d->address, err);
        bool any_port = rc == 0 && !socket && strcmp(strrchr(d->address, ':'), ":0") == 0;
        if (rc == 0 && !any_port && strcmp(d->address, c->listen) == 0)
            rc = err_set(err, SHOAL_EINVALID, "%s: %s is where `listen` is already", key, d->address);
        if (rc == 0 && !socket && (d->mode || d->group || d->user_files))
            rc =
                err_set(err, SHOAL_EINVALID, "%s: 'mode', 'group' and 'user_files' are a Unix socket's", key);
        if (rc == 0 && d->mode && (*d->mode != '0' || strspn(d->mode, "01234567") != 4))
            rc = err_set(err, SHOAL_EINVALID,
                         "%s.mode: '%s' is no mode: four octal digits in quotes, such as \"0660\"", key,
                         d->mode);
    }
    return rc;
}

/* A cluster's port is for other machines; names as trust/identity.h has them. */
static int check_cluster(const gateway_config *c, shoal_err *err)
{
    shoal_err why;
    address a;
    const struct {
        const char *key, *value, *what;
    } names[] = {{"name", c->cluster_name, "gateway"}, {"site", c->cluster_site, "site"}};
    if (!c->cluster_listen) return 0;
    if (address_parse(&a, c->cluster_listen, &why) != 0 || a.is_unix)
        return err_set(err, SHOAL_EINVALID, "cluster.listen: '%s' is not HOST:PORT (example: :7080)",
                       c->cluster_listen);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].value && *names[i].value &&
            identity_name_check(names[i].value, strlen(names[i].value), names[i].what, &why) != 0)
            return err_set(err, SHOAL_EINVALID, "cluster.%s: %s", names[i].key, why.message);
    bool spills = c->spill.policy || c->spill.max_rtt_ms > 0 || c->spill.queue;
    if (spills && !*c->cluster_site)
        return err_set(err, SHOAL_EINVALID,
                       "cluster.spill: says when requests leave the site, so 'site' must say where this is");
    return 0;
}

/* As a browser writes an Origin: what is written otherwise would never match. "*" is any, ":*" any port. */
static bool is_origin(const char *s)
{
    char host[256];
    size_t n = strncmp(s, "http://", 7) == 0 ? 7 : 8;
    if (strcmp(s, "*") == 0) return true;
    if (n == 8 && strncmp(s, "https://", 8) != 0) return false;
    snprintf(host, sizeof host, "%s", s + n);
    size_t n_host = strlen(host);
    if (n_host > 2 && strcmp(host + n_host - 2, ":*") == 0) host[n_host - 2] = '\0';
    return *host && !strchr(host, '*') && http1_is_host(host);
}

static int check_names(const gateway_config *c, shoal_err *err)
{
    for (size_t i = 0; i < c->n_allow_hosts; i++)
        if (!http1_is_host(c->allow_hosts[i]))
            return err_set(err, SHOAL_EINVALID, "allow_hosts[%zu]: '%s' is no host name (example: shoal.lan)",
                           i, c->allow_hosts[i]);
    for (size_t i = 0; i < c->n_allow_origins; i++)
        if (!is_origin(c->allow_origins[i]))
            return err_set(
                err, SHOAL_EINVALID,
                "allow_origins[%zu]: '%s' is no origin: http:// or https://, a host and maybe a port, "
                "and nothing after it (examples: https://app.example, http://localhost:*); * is any origin",
                i, c->allow_origins[i]);
    return 0;
}

static int check_adapters(const config_model *m, const char *where, shoal_err *err)
{
    for (size_t i = 0; i < m->n_adapters; i++) {
        const char *name = m->adapters[i].name;
        if (!name_is_fine(name, strlen(name)))
            return err_set(err, SHOAL_EINVALID, "%sadapters[%zu].name: '%s' " NAME_RULE, where, i, name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(m->adapters[k].name, name) == 0)
                return err_set(err, SHOAL_EINVALID,
                               "%sadapters[%zu].name: '%s' is already the name of adapters[%zu]", where, i,
                               name, k);
    }
    return 0;
}

static bool is_discovered(const gateway_config *c, const char *model)
{
    for (size_t i = 0; i < c->n_dns; i++)
        if (strcmp(c->dns[i].model, model) == 0) return true;
    for (size_t i = 0; i < c->n_workers; i++)
        if (strcmp(c->workers[i].model, model) == 0) return true;
    return c->etcd.n_endpoints > 0;
}

/* Whoever starts its workers says with which file, how many, and where. */
static int check_external(const gateway_config *c, const config_model *m, const char *where, shoal_err *err)
{
    const char *key = m->path                        ? "path"
                      : m->sha256                    ? "sha256"
                      : m->replicas || m->scale.max  ? "replicas"
                      : m->standby                   ? "standby"
                      : placement_is_cut(&m->shards) ? "shards"
                      : m->n_adapters                ? "adapters"
                                                     : NULL;
    if (!m->external) return 0;
    if (key)
        return err_set(err, SHOAL_EINVALID,
                       "%s%s: is of workers that are started here, and this model is 'external'", where, key);
    if (c->cluster_listen)
        return err_set(err, SHOAL_EINVALID,
                       "%sexternal: a gateway that places models (cluster.listen) has none that others start",
                       where);
    if (is_discovered(c, m->name)) return 0;
    return err_set(
        err, SHOAL_EINVALID,
        "%sexternal: neither 'dns' nor 'workers' of 'discovery' has the model '%s', and there is no etcd",
        where, m->name);
}

/* One chain of stages is one replica, and adapters are applied where all layers are. */
static int check_shards(const config_model *m, const char *where, shoal_err *err)
{
    bool cut = placement_is_cut(&m->shards);
    if (!cut && m->wire != CONFIG_WIRE_F32)
        return err_set(err, SHOAL_EINVALID, "%swire: is of a model whose layers are dealt out (shards)",
                       where);
    if (!cut) return 0;
    if (m->n_adapters > 0)
        return err_set(err, SHOAL_EINVALID,
                       "%sshards: a model with adapters is whole: its layers cannot be dealt out", where);
    if (m->replicas > 1 || m->scale.max > 0 || m->standby > 0)
        return err_set(err, SHOAL_EINVALID,
                       "%sshards: a model whose layers are dealt out has one replica and no standby", where);
    return 0;
}

static int check_scale(const gateway_config *c, const config_model *m, const char *where, shoal_err *err)
{
    bool rests = m->scale.max > 0 && m->replicas == 0;
    if (m->scale.max > 0 && m->scale.max < m->replicas)
        return err_set(err, SHOAL_EINVALID, "%sreplicas.max: is less than min (%u)", where, m->replicas);
    if (rests && m->standby > 0)
        return err_set(err, SHOAL_EINVALID, "%sreplicas.min: 0 needs 'standby' to be 0 as well", where);
    if (rests && c->etcd.n_endpoints > 0)
        return err_set(err, SHOAL_EINVALID,
                       "%sreplicas.min: 0 is of a gateway that places models alone: the one that leads hears "
                       "nothing of the first request at another one (discovery.etcd)",
                       where);
    return 0;
}

static int check_sampling(const config_model *m, const char *where, shoal_err *err)
{
    int rc = 0;
#define CHECK(field, min, max)                                                                       \
    if (rc == 0 && m->sampling.field && (rc = sampling_check(#field, *m->sampling.field, err)) != 0) \
        rc = err_prefix(err, rc, "%ssampling." #field, where);
    SAMPLING_TABLE(CHECK)
#undef CHECK
    return rc;
}

static int check_model(const gateway_config *c, size_t i, shoal_err *err)
{
    const config_model *m = &c->models[i];
    char where[48];
    snprintf(where, sizeof where, "models[%zu].", i);
    char such[NAME_SUCH_SIZE];
    if (!name_is_fine(m->name, strlen(m->name)))
        return err_set(err, SHOAL_EINVALID, "%sname: '%.100s' " NAME_RULE "%s; aliases may hold ':' and '/'",
                       where, m->name, name_such(such, m->name));
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->models[k].name, m->name) == 0)
            return err_set(err, SHOAL_EINVALID, "%sname: '%s' is already the name of models[%zu]", where,
                           m->name, k);
    uint8_t digest[32];
    if (m->sha256 && !hex_decode(m->sha256, strlen(m->sha256), digest, sizeof digest))
        return err_set(err, SHOAL_EINVALID, "%ssha256: must be the 64 hex digits of the file's SHA-256",
                       where);
    int rc = check_external(c, m, where, err);
    if (rc == 0) rc = check_adapters(m, where, err);
    if (rc == 0) rc = check_sampling(m, where, err);
    if (rc == 0) rc = check_scale(c, m, where, err);
    return rc == 0 ? check_shards(m, where, err) : rc;
}

/* MODEL, MODEL:ADAPTER or an ensemble of this file. */
static bool is_model(const void *config, const char *name)
{
    const gateway_config *c = config;
    size_t n = strcspn(name, ":");
    for (size_t i = 0; i < c->n_models; i++) {
        const config_model *m = &c->models[i];
        if (strlen(m->name) != n || memcmp(m->name, name, n) != 0) continue;
        for (size_t k = 0; name[n] && k < m->n_adapters; k++)
            if (strcmp(m->adapters[k].name, name + n + 1) == 0) return true;
        return !name[n];
    }
    return config_ensemble_find(c, name) != NULL;
}

/* Does the model with place `from` lead to the one with place `to`, from stand-in to stand-in? */
static bool leads_to(const gateway_config *c, size_t from, size_t to, bool *seen)
{
    const config_model *m = &c->models[from];
    if (from == to) return true;
    if (seen[from]) return false;
    seen[from] = true;
    for (size_t i = 0; i < m->n_fallback; i++) {
        const config_model *next = config_find_model(c, m->fallback[i]);
        if (next && leads_to(c, (size_t)(next - c->models), to, seen)) return true;
    }
    return false;
}

static int check_stand_in(const gateway_config *c, size_t i, size_t k, bool *seen, shoal_err *err)
{
    const config_model *m = &c->models[i], *to = config_find_model(c, m->fallback[k]);
    char where[80];
    snprintf(where, sizeof where, "models[%zu].fallback[%zu]", i, k);
    if (!to)
        return err_set(err, SHOAL_EINVALID, "%s: '%s' is not among the models of this file", where,
                       m->fallback[k]);
    if (to == m) return err_set(err, SHOAL_EINVALID, "%s: '%s' cannot stand in for itself", where, m->name);
    for (size_t n = 0; n < k; n++)
        if (strcmp(m->fallback[n], m->fallback[k]) == 0)
            return err_set(err, SHOAL_EINVALID, "%s: '%s' is already fallback[%zu]", where, to->name, n);
    memset(seen, 0, c->n_models * sizeof *seen);
    if (leads_to(c, (size_t)(to - c->models), i, seen))
        return err_set(err, SHOAL_EINVALID,
                       "%s: '%s' and '%s' stand in for each other; only the smaller can for the larger",
                       where, m->name, to->name);
    return 0;
}

static int check_fallbacks(const gateway_config *c, shoal_err *err)
{
    bool *seen = calloc(c->n_models + 1, sizeof *seen);
    int rc = seen ? 0 : err_nomem(err);
    for (size_t i = 0; !rc && i < c->n_models; i++)
        for (size_t k = 0; !rc && k < c->models[i].n_fallback; k++)
            rc = config_found_at(c, check_stand_in(c, i, k, seen, err), err);
    free(seen);
    return rc;
}

static int no_such_adapter(const config_model *m, const char *where, unsigned stage, const char *name,
                           shoal_err *err)
{
    buf list = {0};
    for (size_t i = 0; i < m->n_adapters; i++)
        buf_printf(&list, "%s%s", i ? ", " : "; it has ", m->adapters[i].name);
    int rc = list.failed
                 ? err_nomem(err)
                 : err_set(err, SHOAL_EINVALID, "%sstages[%u].adapter: the model '%s' has no adapter '%s'%s",
                           where, stage, m->name, name,
                           m->n_adapters ? list.data : "; list it under the model's 'adapters'");
    buf_done(&list);
    return rc;
}

/* The stage's model and adapter must be of this file. */
static int check_stage_model(const gateway_config *c, const config_stage *s, const char *where,
                             unsigned stage, shoal_err *err)
{
    bool several =
        config_ensemble_find(c, s->model ? s->model : "") || route_find(&c->book, s->model ? s->model : "");
    if (!s->model || (several && !s->adapter)) return 0;
    const config_model *m = config_find_model(c, s->model);
    if (!m)
        return err_set(err, SHOAL_EINVALID, "%sstages[%u].model: '%s' is not among the models of this file%s",
                       where, stage, s->model,
                       strchr(s->model, ':') ? " (an adapter has a key of its own, 'adapter')" : "");
    return s->adapter && !config_has_adapter(m, s->adapter)
               ? no_such_adapter(m, where, stage, s->adapter, err)
               : 0;
}

/* An http stage asks a host of this file, in a way that this allows. */
static int check_stage_host(const gateway_config *c, const config_stage *s, const char *where, unsigned stage,
                            shoal_err *err)
{
    const host_rule *h = s->host ? host_find(c->hosts, c->n_hosts, s->host) : NULL;
    if (!s->host) return 0;
    if (!h)
        return err_set(err, SHOAL_EINVALID, "%sstages[%u].host: '%s' is not among the hosts of this file",
                       where, stage, s->host);
    if (host_allows(h, s->method)) return 0;
    return err_set(err, SHOAL_EINVALID, "%sstages[%u].method: %s is not among the methods of the host '%s'",
                   where, stage, host_method_name(s->method), s->host);
}

/* The servers of a generate stage are servers of this file. */
static int check_stage_mcp(const gateway_config *c, const config_stage *s, const char *where, unsigned stage,
                           shoal_err *err)
{
    for (unsigned i = 0; i < s->n_mcp; i++)
        if (!mcp_rule_find(c->mcp_servers, c->n_mcp_servers, s->mcp[i]))
            return err_set(err, SHOAL_EINVALID,
                           "%sstages[%u].mcp[%u]: '%s' is not among the mcp_servers of this file", where,
                           stage, i, s->mcp[i]);
    return 0;
}

static int check_mcp_server(const gateway_config *c, size_t i, shoal_err *err)
{
    const mcp_rule *m = &c->mcp_servers[i];
    char where[48];
    snprintf(where, sizeof where, "mcp_servers[%zu].", i);
    int rc = mcp_rule_check(m, where, err);
    if (rc == 0 && mcp_rule_find(c->mcp_servers, i, m->name))
        rc = err_set(err, SHOAL_EINVALID, "%sname: '%s' is the name of another server", where, m->name);
    return rc;
}

static int check_host(const gateway_config *c, size_t i, shoal_err *err)
{
    const host_rule *h = &c->hosts[i];
    shoal_err why;
    char where[32];
    snprintf(where, sizeof where, "hosts[%zu].", i);
    if (!name_is_fine(h->name, strlen(h->name)))
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' " NAME_RULE, where, h->name);
    if (host_find(c->hosts, i, h->name))
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' is the name of another host", where, h->name);
    if (host_url_check(h->url, &why)) return err_set(err, SHOAL_EINVALID, "%surl: %s", where, why.message);
    for (size_t k = 0; k < h->n_methods; k++)
        if (!host_method_known(h->methods[k]))
            return err_set(err, SHOAL_EINVALID,
                           "%smethods[%zu]: '%s' is none of GET, POST, PUT, PATCH, DELETE", where, k,
                           h->methods[k]);
    int rc = 0;
    for (size_t k = 0; !rc && k < h->n_headers; k++) rc = host_header_check(&h->headers[k], where, k, err);
    return rc;
}

static int check_pipeline(gateway_config *c, size_t i, shoal_err *err)
{
    config_pipeline *p = &c->pipelines[i];
    char where[48];
    snprintf(where, sizeof where, "pipelines[%zu].", i);
    if (!name_is_fine(p->name, strlen(p->name)))
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' " NAME_RULE, where, p->name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->pipelines[k].name, p->name) == 0)
            return err_set(err, SHOAL_EINVALID, "%sname: '%s' is already the name of pipelines[%zu]", where,
                           p->name, k);
    int rc = pipeline_check(p, where, err);
    for (unsigned s = 0; s < p->n_stages && !rc; s++) rc = check_stage_model(c, &p->stages[s], where, s, err);
    for (unsigned s = 0; s < p->n_stages && !rc; s++) rc = check_stage_host(c, &p->stages[s], where, s, err);
    for (unsigned s = 0; s < p->n_stages && !rc; s++) rc = check_stage_mcp(c, &p->stages[s], where, s, err);
    return rc;
}

static int check_discovered(const char *what, size_t i, const char *model, shoal_err *err)
{
    if (name_is_fine(model, strlen(model))) return 0;
    return err_set(err, SHOAL_EINVALID, "discovery.%s[%zu].model: '%s' " NAME_RULE, what, i, model);
}

/* Plain text on the way to etcd is for those who said so: with a certificate or a password it is a mistake.
 */
static int check_etcd(const config_etcd *e, shoal_err *err)
{
    bool files = e->ca || e->cert || e->key;
    for (size_t i = 0; i < e->n_endpoints; i++) {
        const char *address;
        int tls;
        shoal_err why;
        if (etcd_endpoint_parse(e->endpoints[i], &address, &tls, &why) != 0)
            return err_set(err, SHOAL_EINVALID, "discovery.etcd.endpoints[%zu]: %s", i, why.message);
        if (tls == 0 && files)
            return err_set(err, SHOAL_EINVALID,
                           "discovery.etcd.endpoints[%zu]: is http://, though certificates are given", i);
    }
    if (!e->cert != !e->key)
        return err_set(err, SHOAL_EINVALID, "discovery.etcd.%s: needs '%s' as well", e->cert ? "cert" : "key",
                       e->cert ? "key" : "cert");
    if (!e->user != !e->password_file)
        return err_set(err, SHOAL_EINVALID, "discovery.etcd.%s: needs '%s' as well",
                       e->user ? "user" : "password_file", e->user ? "password_file" : "user");
    if (e->n_endpoints && strspn(e->prefix, "/") == strlen(e->prefix))
        return err_set(err, SHOAL_EINVALID, "discovery.etcd.prefix: must name more than '/'");
    return 0;
}

static bool same_address(const table_row *a, const table_row *b)
{
    return strcmp(a->address ? a->address : "", b->address ? b->address : "") == 0;
}

static int check_discovery(const gateway_config *c, shoal_err *err)
{
    int rc = check_etcd(&c->etcd, err);
    address a;
    for (size_t i = 0; !rc && i < c->n_dns; i++) rc = check_discovered("dns", i, c->dns[i].model, err);
    for (size_t i = 0; !rc && i < c->n_workers; i++) {
        const table_row *w = &c->workers[i];
        shoal_err why;
        rc = check_discovered("workers", i, w->model, err);
        if (!rc && w->address && address_parse(&a, w->address, &why) != 0)
            rc = err_set(err, SHOAL_EINVALID, "discovery.workers[%zu].address: %s", i, why.message);
        for (size_t k = 0; !rc && k < i; k++)
            if (strcmp(w->model, c->workers[k].model) == 0 && same_address(w, &c->workers[k]))
                rc = err_set(err, SHOAL_EINVALID, "discovery.workers[%zu].address: is that of workers[%zu]",
                             i, k);
    }
    if (!rc && c->dns_server && c->n_dns == 0)
        rc = err_set(err, SHOAL_EINVALID, "discovery.dns_server: there are no names to ask it for, in 'dns'");
    return rc;
}

/* Gateways that share conversations share the keys: none of them may make its own. */
static int check_sessions(const config_sessions *s, shoal_err *err)
{
    if (!s->redis) return 0;
    if (s->path)
        return err_set(err, SHOAL_EINVALID, "sessions.redis: 'path' is for SQLite; leave one of them out");
    if (s->key_file) return 0;
    return err_set(err, SHOAL_EINVALID,
                   "sessions.redis: needs 'key_file', the same file for every gateway (openssl rand -hex 32 "
                   ">sessions.key, mode 0600)");
}

static bool is_address(const char *s)
{
    size_t n = strncmp(s, "https://", 8) == 0 ? 8 : 7;
    if (n == 7 && strncmp(s, "http://", 7) != 0) return false;
    return s[n] && !strpbrk(s, " ?#@");
}

static int check_library(const config_library *l, shoal_err *err)
{
    for (size_t i = 0; i < l->n_hosts; i++)
        if (!http1_is_host(l->hosts[i]))
            return err_set(err, SHOAL_EINVALID,
                           "library.fetch_from[%zu]: '%s' is no host (example: huggingface.co)", i,
                           l->hosts[i]);
    if (l->hub && !is_address(l->hub))
        return err_set(err, SHOAL_EINVALID, "library.hub: '%s' is no address (example: https://hub.lan)",
                       l->hub);
    if (l->registry && !is_address(l->registry))
        return err_set(err, SHOAL_EINVALID,
                       "library.registry: '%s' is no address (example: https://registry.lan)", l->registry);
    return 0;
}

static int check_moderation(const gateway_config *c, shoal_err *err)
{
    if (!c->moderation.model || is_model(c, c->moderation.model)) return 0;
    return err_set(err, SHOAL_EINVALID, "moderation.model: '%s' is not among the models of this file",
                   c->moderation.model);
}

static int found_in_routes(const void *config, int rc, shoal_err *err)
{
    return config_found_at(config, rc, err);
}

int config_check(gateway_config *c, shoal_err *err)
{
    int rc = config_found_at(c, check_doors(c, err), err);
    if (!rc) rc = config_found_at(c, check_cluster(c, err), err);
    if (!rc) rc = config_found_at(c, check_discovery(c, err), err);
    if (!rc) rc = config_found_at(c, check_sessions(&c->sessions, err), err);
    if (!rc) rc = config_check_keys(c, err);
    if (!rc) rc = config_found_at(c, check_names(c, err), err);
    if (!rc) rc = config_found_at(c, check_library(&c->library, err), err);
    for (size_t i = 0; !rc && i < c->n_models; i++) rc = config_found_at(c, check_model(c, i, err), err);
    if (!rc) rc = check_fallbacks(c, err);
    if (!rc) rc = config_found_at(c, check_moderation(c, err), err);
    if (!rc) rc = config_check_ensembles(c, err);
    for (size_t i = 0; !rc && i < c->n_hosts; i++) rc = config_found_at(c, check_host(c, i, err), err);
    for (size_t i = 0; !rc && i < c->n_mcp_servers; i++)
        rc = config_found_at(c, check_mcp_server(c, i, err), err);
    for (size_t i = 0; !rc && i < c->n_pipelines; i++)
        rc = config_found_at(c, check_pipeline(c, i, err), err);
    if (!rc) rc = routes_check(&c->book, is_model, found_in_routes, c, err);
    if (!rc) rc = config_check_aliases(c, err);
    if (!rc) rc = config_found_at(c, config_check_otel(c, err), err);
    if (!rc) rc = config_found_at(c, config_check_cache(c, err), err);
    return rc ? rc : config_found_at(c, routes_open_patterns(&c->book, err), err);
}
