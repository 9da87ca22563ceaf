/* listen.c: the addresses of the configuration: TCP, with TLS where it is configured, and Unix sockets. What an
 * earlier process has left at a socket's path gives way; a socket that answers does not. And one for this user's own
 * commands (os/own_socket.h). */

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/http_own.h"
#include "logging/log.h"
#include "wire/tls_watch.h"
#include "os/own_socket.h"
#include "ingress/ingress.h"

static const char *socket_path(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 ? address + 5 : NULL;
}

static int find_group(const char *name, gid_t *ret, shoal_err *err)
{
    struct group g, *found = NULL;
    char text[4096];
    int rc = getgrnam_r(name, &g, text, sizeof text, &found);
    if (!found)
        return err_set(err, SHOAL_EINVALID, "also_listen: there is no group '%s'%s%s", name, rc ? ": " : "",
                       rc ? strerror(rc) : "");
    *ret = found->gr_gid;
    return 0;
}

/* The group first: it must not be let in with another's mode. */
static int open_to(const char *path, const config_listen *d, shoal_err *err)
{
    gid_t group;
    int rc = d->group ? find_group(d->group, &group, err) : 0;
    if (rc == 0 && d->group && chown(path, (uid_t)-1, group) != 0)
        rc = err_set(err, SHOAL_EIO, "unix:%s: cannot be given to the group '%s': %s", path, d->group,
                     strerror(errno));
    if (rc == 0 && d->mode && chmod(path, (mode_t)strtol(d->mode, NULL, 8)) != 0)
        rc = err_set(err, SHOAL_EIO, "unix:%s: %s", path, strerror(errno));
    return rc;
}

/* users: it is a Unix socket that knows whose processes come. */
static int listen_at(http_server *s, const gateway_config *c, tls_context *tls, const char *address,
                     bool users, shoal_err *err)
{
    http_tls with = {.context = tls};
    bool secure = tls && !socket_path(address);
    int rc = users ? http_server_listen_users(s, address, err)
                   : http_server_listen(s, address, secure ? &with : NULL, err);
    if (rc == 0)
        LOG(LOG_INFO, "gateway", "listening", LOG_S("address", address),
            LOG_I("port", socket_path(address) ? 0 : http_server_port(s)),
            LOG_S("tls", secure ? "yes" : "no"), LOG_I("api_keys", c->n_api_keys));
    return rc;
}

static int open_tls(gateway *g, shoal_err *err)
{
    const gateway_config *c = g->config;
    tls_options o = {.cert_file = c->tls_cert, .key_file = c->tls_key};
    if (!c->tls_cert || !c->tls_key) return 0;
    int rc = tls_context_new(&g->tls, TLS_SERVER, &o, err);
    return rc == 0 ? tls_watch_new(&g->tls_watch, &g->time, g->tls, "gateway", err) : rc;
}

static int listen_as_configured(gateway *g, shoal_err *err)
{
    const gateway_config *c = g->config;
    const char *first = c->listen ? c->listen : "127.0.0.1:8080";
    int rc = listen_at(g->server, c, g->tls, first, false, err);
    if (rc == 0) g->port = socket_path(first) ? 0 : http_server_port(g->server);
    for (size_t i = 0; rc == 0 && i < c->n_also_listen; i++) {
        const config_listen *d = &c->also_listen[i];
        rc = listen_at(g->server, c, g->tls, d->address, d->user_files, err);
        if (rc == 0 && socket_path(d->address)) rc = open_to(socket_path(d->address), d, err);
    }
    return rc;
}

/* Where it cannot be, all but loads of any file work. Another server may just remove the folder: then once more. */
static void listen_own(gateway *g)
{
    char path[OWN_SOCKET_PATH_BYTES], name[OWN_SOCKET_NAME_BYTES];
    const char *first = g->config->listen, *socket = first ? socket_path(first) : NULL;
    shoal_err err;
    int rc = SHOAL_EIO;
    if (g->port == 0 && !socket) return; /* nobody would know its name */
    if (!own_socket_name(name, g->port, socket)) rc = err_set(&err, SHOAL_ENOTFOUND, "%s is gone", first);
    for (int i = 0; rc == SHOAL_EIO && i < 2; i++) {
        rc = own_socket_make(path, name, &err);
        if (rc == 0) rc = http_server_listen_own(g->server, path, &err);
    }
    if (rc == 0) g->own_socket = strdup(path);
    if (rc != 0)
        LOG(LOG_WARN, "gateway", "no_own_socket", LOG_S("reason", err.message),
            LOG_S("effect", "shoal load takes files of the library's folders alone"));
}

static int open_addresses(gateway *g, shoal_err *err)
{
    int rc = open_tls(g, err);
    if (rc == 0) rc = listen_as_configured(g, err);
    if (rc == 0) listen_own(g);
    return rc;
}

/* The server is closed, and with it the socket. */
static void release_own(gateway *g, void (*done)(void *g))
{
    if (g->own_socket) own_socket_unmake(g->own_socket);
    free(g->own_socket);
    g->own_socket = NULL;
    done(g);
}

/* Addresses take a restart; certificates are read again. */
static int reload_tls(gateway *g, const gateway_config *next, shoal_err *err)
{
    return g->tls ? tls_context_reload(g->tls, err) : 0;
}

const ingress LISTEN_INGRESS = {
    .name = "listen", .open = open_addresses, .reload = reload_tls, .release = release_own};
