/* http_listen.c: listeners. Who gives way when the table is full: http_places.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/http_internal.h"
#include "http/http_own.h"
#include "wire/inherited_listener.h"

/* A burst of connections is taken a few a turn of the loop, so that what each has sent is read before the table of
 * connections looks as if nobody had asked for anything. */
enum { LISTEN_BACKLOG = 511, TURN_ACCEPTS = 16 };

typedef union any_stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
} any_stream;

struct http_listener {
    http_listener *next;
    http_server *server;
    any_stream u, away; /* away: takes connections that there is no memory for */
    tls_context *tls;
    char *path;                                        /* of a Unix socket, unlinked on close */
    enum { KNOWS_NOBODY, KNOWS_OWN, KNOWS_ALL } knows; /* whose users it looks at (http_own.h) */
    bool open, closed, turning_away, another_waits;
    bool waits; /* its next connection, for the next turn */
};

/* ---- who may come ------------------------------------------------------------------------------ */

/* Has this connection's address more than its share of those that have not said who they are? */
static bool is_one_too_many(const http_server *s, const http_conn *newest)
{
    const char *from = transport_from(newest->io);
    size_t n = 0;
    if (!s->limits.max_unauthenticated || !*from) return false;
    for (const http_conn *c = s->conns; c; c = c->next)
        n += !c->refusing && !transport_peer(c->io) && strcmp(transport_from(c->io), from) == 0;
    return n > s->limits.max_unauthenticated;
}

/* ---- listening ------------------------------------------------------------------------------- */

static void free_listener(http_listener *l)
{
    http_server *s = l->server;
    for (http_listener **p = &s->listeners; *p; p = &(*p)->next)
        if (*p == l) {
            *p = l->next;
            break;
        }
    tls_context_unref(l->tls);
    free(l->path);
    free(l);
    s->n_handles--;
    http_server_gone(s);
}

static void turn_away(http_listener *l);

static void turned_away(uv_handle_t *h)
{
    http_listener *l = h->data;
    l->turning_away = false;
    if (l->open && l->another_waits) turn_away(l);
    if (!l->open && l->closed) free_listener(l);
}

/* There is no memory for the connection that waits. It must be taken all the same, or libuv never asks to
 * take another; so a handle that was there before takes and closes it, one at a time. */
static void turn_away(http_listener *l)
{
    l->another_waits = l->turning_away;
    if (l->turning_away) return;
    if (l->path)
        uv_pipe_init(l->server->loop, &l->away.pipe, 0);
    else
        uv_tcp_init(l->server->loop, &l->away.tcp);
    l->away.handle.data = l;
    l->turning_away = true;
    uv_accept(&l->u.stream, &l->away.stream);
    uv_close(&l->away.handle, turned_away);
}

static bool may_accept(http_server *s)
{
    if (s->accept_turn != s->n_turns) s->n_accepted = 0;
    s->accept_turn = s->n_turns;
    return s->n_accepted++ < TURN_ACCEPTS;
}

/* Without memory for it, or where the kernel does not say enough, it is nobody's. */
static void note_user(http_conn *c, const http_listener *l, const transport *io)
{
    uint32_t user;
    bool known = l->knows != KNOWS_NOBODY && transport_peer_user(io, &user);
    if (known && l->knows == KNOWS_ALL && user == FILE_USER_UNMAPPED) return; /* it may be any of several */
    c->is_own = known && (user == geteuid() || user == 0);
    if (!known || c->is_own || l->knows != KNOWS_ALL) return;
    c->user = malloc(sizeof *c->user);
    if (c->user && transport_peer_file_user(io, c->user)) return;
    free(c->user);
    c->user = NULL;
}

static void on_connection(uv_stream_t *stream, int status)
{
    http_listener *l = stream->data;
    http_server *s = l->server;
    if (status != 0) return;
    if (l->waits || !may_accept(s)) { /* libuv asks no more until this one is taken */
        l->waits = true;
        return;
    }
    http_conn *c = http_server_new_conn(s);
    transport *io;
    transport_events ev;
    if (c) c->is_open = !l->tls;
    if (c) c->is_unix = l->path != NULL;
    if (c && l->tls) c->tls = tls_context_ref(l->tls);
    int rc = c ? transport_accept(&io, stream, l->tls, &s->scratch, http_server_events(c, &ev), NULL)
               : SHOAL_ENOMEM;
    if (rc != 0) {
        if (c) tls_context_unref(c->tls);
        free(c);
        turn_away(l);
        return;
    }
    note_user(c, l, io);
    http_server_adopt(c, io);
    if (s->limits.keepalive_ms)
        transport_limit_silence(io, (unsigned)(s->limits.keepalive_ms + s->limits.keepalive_timeout_ms));
    if (is_one_too_many(s, c)) {
        c->refusing = true;
        s->n_refusing++;
        transport_close(io, "too many connections of its address have shown no certificate");
        return;
    }
    if (http_places_have_room(s, c)) return;
    c->refusing = true;
    s->n_refusing++;
    if (l->tls || s->n_refusing > s->max_refusing) {
        transport_close(io, "too many connections");
        return;
    }
    http1_start(c);
    http1_refuse(c, 503, "too many connections");
}

void http_listen_turn(http_server *s)
{
    for (http_listener *l = s->listeners; l; l = l->next) {
        if (!l->waits || !l->open) continue;
        l->waits = false;
        on_connection(&l->u.stream, 0);
    }
}

static int bind_tcp(http_listener *l, const address *a, const char *text, shoal_err *err)
{
    char port[8];
    uv_getaddrinfo_t req;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    snprintf(port, sizeof port, "%d", a->port);
    int rc = uv_getaddrinfo(l->server->loop, &req, NULL, a->host[0] ? a->host : NULL, port, &hints);
    if (rc == 0) {
        rc = uv_tcp_bind(&l->u.tcp, req.addrinfo->ai_addr, 0);
        uv_freeaddrinfo(req.addrinfo);
    }
    return rc == 0 ? 0 : err_set(err, SHOAL_EIO, "cannot listen on %s: %s", text, uv_strerror(rc));
}

/* A socket file that nobody listens on is left over from a crash and may go; anything else stays. */
static int remove_stale(const char *path, shoal_err *err)
{
    struct stat st;
    if (lstat(path, &st) != 0) return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, SHOAL_EINVALID, "unix:%s: exists and is not a socket", path);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive = fd >= 0 && (connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0 || errno == EAGAIN);
    if (fd >= 0) close(fd);
    if (alive) return err_set(err, SHOAL_EIO, "unix:%s: another process listens on it", path);
    if (unlink(path) != 0) return err_set(err, SHOAL_EIO, "unix:%s: %s", path, strerror(errno));
    return 0;
}

static int bind_pipe(http_listener *l, const address *a, shoal_err *err)
{
    int rc = remove_stale(a->path, err);
    if (rc != 0) return rc;
    rc = uv_pipe_bind(&l->u.pipe, a->path);
    if (rc != 0) return err_set(err, SHOAL_EIO, "cannot listen on unix:%s: %s", a->path, uv_strerror(rc));
    l->path = strdup(a->path);
    /* Between bind and listen nobody can connect, so the mode holds from the first connection on. */
    if (!l->path) return err_nomem(err);
    if (chmod(a->path, 0600) != 0) return err_set(err, SHOAL_EIO, "unix:%s: %s", a->path, strerror(errno));
    return 0;
}

/* A socket whose file was removed can be reached by nobody. */
static bool is_in_place(const address *a)
{
    struct stat st;
    return !a->is_unix || (lstat(a->path, &st) == 0 && S_ISSOCK(st.st_mode));
}

static bool take_kept(http_listener *l, const address *a, const char *text)
{
    int fd = inherited_listener_take(text);
    if (fd < 0) return false;
    bool ok = is_in_place(a) && (!a->is_unix || (l->path = strdup(a->path))) &&
              (a->is_unix ? uv_pipe_open(&l->u.pipe, fd) : uv_tcp_open(&l->u.tcp, fd)) == 0;
    if (!ok) inherited_listener_drop(fd);
    return ok;
}

static void on_listener_closed(uv_handle_t *h)
{
    http_listener *l = h->data;
    l->closed = true;
    if (!l->turning_away) free_listener(l);
}

static void close_listener(http_listener *l)
{
    if (!l->open) return;
    l->open = false;
    if (l->path) unlink(l->path);
    inherited_listener_forget(&l->u.handle);
    uv_close(&l->u.handle, on_listener_closed);
}

void http_server_stop_listening(http_server *s)
{
    for (http_listener *l = s->listeners; l; l = l->next) close_listener(l);
}

static int bound_port(const uv_tcp_t *tcp)
{
    struct sockaddr_storage sa;
    int n = sizeof sa;
    if (uv_tcp_getsockname(tcp, (struct sockaddr *)&sa, &n) != 0) return 0;
    return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                          : ((struct sockaddr_in *)&sa)->sin_port);
}

static http_listener *add_listener(http_server *s, bool is_unix)
{
    http_listener *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->server = s;
    if (is_unix)
        uv_pipe_init(s->loop, &l->u.pipe, 0);
    else
        uv_tcp_init(s->loop, &l->u.tcp);
    l->u.handle.data = l;
    l->open = true;
    l->next = s->listeners;
    s->listeners = l;
    s->n_handles++;
    return l;
}

static int take_tls(http_listener *l, const http_tls *tls, shoal_err *err)
{
    tls_options o = {.cert_file = tls->cert_file, .key_file = tls->key_file};
    if (!tls->context) return tls_context_new(&l->tls, TLS_SERVER, &o, err);
    l->tls = tls_context_ref(tls->context);
    return 0;
}

int http_server_listen(http_server *s, const char *address_text, const http_tls *tls, shoal_err *err)
{
    address a;
    int rc = address_parse(&a, address_text, err);
    if (rc != 0) return rc;
    http_listener *l = add_listener(s, a.is_unix);
    if (!l) return err_nomem(err);
    if (tls) rc = take_tls(l, tls, err);
    bool kept = rc == 0 && take_kept(l, &a, address_text);
    if (rc == 0 && !kept) rc = a.is_unix ? bind_pipe(l, &a, err) : bind_tcp(l, &a, address_text, err);
    if (rc == 0) {
        int e = uv_listen(&l->u.stream, LISTEN_BACKLOG, on_connection);
        if (e != 0) rc = err_set(err, SHOAL_EIO, "cannot listen on %s: %s", address_text, uv_strerror(e));
    }
    if (rc == 0 && !kept) inherited_listener_keep(&l->u.handle, address_text);
    if (rc != 0)
        close_listener(l);
    else if (!a.is_unix)
        s->port = bound_port(&l->u.tcp);
    return rc;
}

int http_server_listen_own(http_server *s, const char *path, shoal_err *err)
{
    char address[128];
    snprintf(address, sizeof address, "unix:%s", path);
    int rc = http_server_listen(s, address, NULL, err);
    if (rc == 0) s->listeners->knows = KNOWS_OWN; /* the latest is the first */
    return rc;
}

int http_server_listen_users(http_server *s, const char *address, shoal_err *err)
{
    int rc = http_server_listen(s, address, NULL, err);
    if (rc == 0) s->listeners->knows = KNOWS_ALL;
    return rc;
}

int http_server_port(const http_server *s)
{
    return s->port;
}

size_t http_server_connections(const http_server *s)
{
    return s->n_conns;
}
