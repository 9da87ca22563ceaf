/* http_client.c: requests and answers of HTTP/1.1 over a blocking socket. */
#define _GNU_SOURCE
#include "client/http_client_impl.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    DEFAULT_PORT = 8080,
    TIMEOUT_S = 60,
    RECEIVE_BYTES = 16384,
    LINE_MAX_BYTES = 65536,
    HEAD_MAX_BYTES = 256 << 10,
    BODY_MAX_BYTES = 256 << 20
};

/* ---- connecting ---------------------------------------------------------------------------------------- */

/* "HOST", "HOST:PORT", "[V6]:PORT" or ":PORT", n bytes of it. */
static bool take_authority(http_where *w, const char *at, size_t n, int default_port)
{
    bool v6 = n > 0 && *at == '[';
    const char *end = v6 ? memchr(at, ']', n) : memchr(at, ':', n), *host = v6 ? at + 1 : at;
    if (v6 && !end) return false;
    size_t n_host = end ? (size_t)(end - host) : n, n_used = n_host + (v6 ? 2 : 0);
    if (n_host >= sizeof w->host || memchr(host, '[', n_host) || memchr(host, ' ', n_host)) return false;
    if (n_host == 0 && (v6 || default_port != DEFAULT_PORT)) return false;
    snprintf(w->host, sizeof w->host, "%.*s", n_host ? (int)n_host : 9, n_host ? host : "127.0.0.1");
    w->port = default_port;
    if (n_used == n) return n > 0;
    char digits[6];
    size_t n_digits = n - n_used - 1;
    if (at[n_used] != ':' || n_digits == 0 || n_digits >= sizeof digits) return false;
    snprintf(digits, sizeof digits, "%.*s", (int)n_digits, at + n_used + 1);
    if (strspn(digits, "0123456789") != n_digits) return false;
    w->port = atoi(digits);
    return w->port > 0 && w->port < 65536;
}

int http_where_parse(http_where *ret, const char *url, shoal_err *err)
{
    http_where w = {0};
    const char *scheme = strstr(url, "://"), *at = scheme ? scheme + 3 : url;
    bool ok;
    if (strncmp(url, "unix:", 5) == 0) {
        ok = url[5] && strlen(url + 5) < sizeof w.host;
        if (ok) memcpy(w.host, url + 5, strlen(url + 5) + 1);
    } else {
        w.tls = strncasecmp(url, "https://", 8) == 0;
        ok = !scheme || w.tls || strncasecmp(url, "http://", 7) == 0;
        ok = ok && take_authority(&w, at, strcspn(at, "/"), w.tls ? 443 : scheme ? 80 : DEFAULT_PORT);
    }
    if (!ok)
        return err_set(
            err, SHOAL_EINVALID,
            "\"%s\" is neither ADDRESS:PORT, http://ADDRESS:PORT, https://ADDRESS:PORT nor unix:PATH", url);
    *ret = w;
    return 0;
}

/* How long the next wait may be: connecting, sending or receiving. With a limit a signal ends it, too,
 * whatever SA_RESTART says (signal(7)). */
static int set_patience(const http_client *c, int fd)
{
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    if (c->until_ns) {
        uint64_t now = clock_ns(), left_us = c->until_ns > now ? (c->until_ns - now) / 1000 : 0;
        if (left_us == 0) {
            errno = EAGAIN;
            return -1;
        }
        if (c->wait_ms && left_us > c->wait_ms * 1000ull) left_us = c->wait_ms * 1000ull;
        limit = (struct timeval){(time_t)(left_us / 1000000), (suseconds_t)(left_us % 1000000)};
    }
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) return -1;
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static int dial_unix(http_client *c)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, c->where.host, strlen(c->where.host) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || (set_patience(c, fd) == 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0)) return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* The first address that answers: a name such as localhost has several. */
static int dial_list(const http_client *c, const struct addrinfo *list)
{
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
        if (fd < 0) continue;
        if (set_patience(c, fd) == 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            return fd;
        }
        int why = errno;
        close(fd);
        errno = why;
        if (why == EINTR) break; /* a person who wants no more of it */
    }
    return -1;
}

static int no_connection(const char *where, shoal_err *err)
{
    if (errno == EINTR) return err_set(err, SHOAL_ECANCELLED, "stopped while connecting to %s", where);
    /* a connection that was not made in time is still "in progress" */
    bool late = errno == EINPROGRESS || errno == EAGAIN;
    return err_set(err, SHOAL_EUNAVAILABLE, "%s: %s", where, strerror(late ? ETIMEDOUT : errno));
}

static int dial_tcp(http_client *c, shoal_err *err)
{
    char port[16], where[140];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    snprintf(port, sizeof port, "%d", c->where.port);
    int rc = getaddrinfo(c->where.host, port, &hints, &list);
    if (rc != 0) return err_set(err, SHOAL_EINVALID, "%s: %s", c->where.host, gai_strerror(rc));
    c->fd = dial_list(c, list);
    snprintf(where, sizeof where, "%s:%d", c->where.host, c->where.port);
    if (c->fd < 0) rc = no_connection(where, err);
    freeaddrinfo(list);
    return rc;
}

static void hang_up(http_client *c)
{
    http_client_tls_end(c);
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

static int dial(http_client *c, shoal_err *err)
{
    int rc = 0;
    char where[140];
    snprintf(where, sizeof where, "unix:%s", c->where.host);
    if (c->where.port)
        rc = dial_tcp(c, err);
    else if ((c->fd = dial_unix(c)) < 0)
        rc = no_connection(where, err);
    if (rc != 0) return rc;
    set_patience(c, c->fd);
    buf_clear(&c->in);
    if (c->where.tls && (rc = http_client_tls_begin(c, err)) != 0) hang_up(c);
    return rc;
}

void http_client_init(http_client *c, const http_where *where)
{
    *c = (http_client){.where = *where, .fd = -1};
}

void http_client_done(http_client *c)
{
    hang_up(c);
    http_client_tls_done(c);
    buf_done(&c->in);
    buf_done(&c->out);
    buf_done(&c->head);
    buf_done(&c->body);
}

/* ---- one exchange -------------------------------------------------------------------------------------- */

int http_client_send_raw(http_client *c, const char *bytes, size_t n_bytes, shoal_err *err)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = send(c->fd, bytes + done, n_bytes - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) return err_set(err, SHOAL_EIO, "send: %s", strerror(errno));
        if (n > 0) done += (size_t)n;
    }
    return 0;
}

static int send_all(http_client *c, shoal_err *err)
{
    return (c->tls ? http_client_tls_send : http_client_send_raw)(c, c->out.data, c->out.len, err);
}

int http_client_receive_raw(http_client *c, void *bytes, size_t cap, size_t *ret_n, shoal_err *err)
{
    ssize_t n = c->until_ns && set_patience(c, c->fd) != 0 ? -1 : recv(c->fd, bytes, cap, 0);
    c->ended = n == 0;
    if (n == 0) return err_set(err, SHOAL_EIO, "the server closed the connection");
    if (n < 0 && errno == EAGAIN && c->until_ns)
        return err_set(err, SHOAL_EDEADLINE, "no whole answer in time");
    if (n < 0 && errno == EINTR)
        return err_set(err, SHOAL_ECANCELLED, "stopped while waiting for the server");
    if (n < 0 && errno == EAGAIN)
        return err_set(err, SHOAL_EIO, "the server has said nothing for %d s", TIMEOUT_S);
    if (n < 0) return err_set(err, SHOAL_EIO, "receive: %s", strerror(errno));
    *ret_n = (size_t)n;
    return 0;
}

static int receive_more(http_client *c, shoal_err *err)
{
    size_t n;
    if (buf_reserve(&c->in, RECEIVE_BYTES) != 0) return err_nomem(err);
    int rc = (c->tls ? http_client_tls_receive : http_client_receive_raw)(c, c->in.data + c->in.len,
                                                                          RECEIVE_BYTES, &n, err);
    if (rc != 0) return rc;
    c->in.len += n;
    c->in.data[c->in.len] = '\0';
    return 0;
}

/* Until c->in holds a whole line; *ret_len counts its CRLF. */
static int need_line(http_client *c, size_t *ret_len, shoal_err *err)
{
    for (;;) {
        char *end = c->in.len ? memmem(c->in.data, c->in.len, "\r\n", 2) : NULL;
        if (end) {
            *ret_len = (size_t)(end - c->in.data) + 2;
            return 0;
        }
        if (c->in.len > LINE_MAX_BYTES)
            return err_set(err, SHOAL_EPROTOCOL, "the answer has a line without an end");
        int rc = receive_more(c, err);
        if (rc != 0) return rc;
    }
}

/* What `piece` has consumed of the body counts no more: a stream may go on as long as it likes. */
static int take_body(http_client *c, size_t n, shoal_err *err)
{
    size_t most = c->most_bytes ? c->most_bytes : BODY_MAX_BYTES;
    if (n > most || c->body.len > most - n)
        return err_set(err, SHOAL_ELIMIT, "the answer is larger than the %zu MB that are taken", most >> 20);
    while (c->in.len < n) {
        int rc = receive_more(c, err);
        if (rc != 0) return rc;
    }
    if (!c->first_ns && n) c->first_ns = clock_ns();
    if (buf_append(&c->body, c->in.data, n) != 0) return err_nomem(err);
    buf_consume(&c->in, n);
    if (c->piece && n) c->piece(c->piece_user, n);
    return 0;
}

static int read_chunks(http_client *c, shoal_err *err)
{
    for (;;) {
        size_t len;
        int rc = need_line(c, &len, err);
        if (rc != 0) return rc;
        size_t n = strtoul(c->in.data, NULL, 16);
        buf_consume(&c->in, len);
        if (n > 0 && (rc = take_body(c, n, err)) != 0) return rc;
        if ((rc = need_line(c, &len, err)) != 0) return rc;
        buf_consume(&c->in, len);
        if (n == 0) return 0;
    }
}

/* A body without a length ends with the connection (RFC 9112, 6.3). */
static int read_to_end(http_client *c, shoal_err *err)
{
    shoal_err why = {0};
    for (;;) {
        int rc = c->in.len ? take_body(c, c->in.len, err) : 0;
        if (rc != 0) return rc;
        rc = receive_more(c, &why);
        if (rc == SHOAL_EIO && c->ended) return 0;
        if (rc != 0) return err_set(err, rc, "%s", why.message);
    }
}

static bool has_body(int status)
{
    return status / 100 != 1 && status != 204 && status != 304;
}

static int read_answer(http_client *c, bool *ret_close, shoal_err *err)
{
    size_t len, length = 0;
    bool chunked = false, measured = false;
    int minor = 1, rc = need_line(c, &len, err);
    if (rc != 0) return rc;
    if (sscanf(c->in.data, "HTTP/1.%1d %d", &minor, &c->status) != 2)
        return err_set(err, SHOAL_EPROTOCOL, "the answer is not HTTP/1.1");
    *ret_close = minor == 0; /* also where a server of HTTP/1.0 would have kept it */
    buf_consume(&c->in, len);
    for (;;) {
        if ((rc = need_line(c, &len, err)) != 0) return rc;
        if (len == 2) break;
        if (c->head.len + len > HEAD_MAX_BYTES)
            return err_set(err, SHOAL_EPROTOCOL, "the answer has headers without an end");
        if (buf_append(&c->head, c->in.data, len) != 0) return err_nomem(err);
        if (strncasecmp(c->in.data, "content-length:", 15) == 0) {
            length = strtoul(c->in.data + 15, NULL, 10);
            measured = true;
        }
        if (strncasecmp(c->in.data, "transfer-encoding:", 18) == 0) chunked = true;
        if (strncasecmp(c->in.data, "connection: close", 17) == 0) *ret_close = true;
        buf_consume(&c->in, len);
    }
    buf_consume(&c->in, 2);
    if (chunked) return read_chunks(c, err);
    if (measured || !has_body(c->status) || !*ret_close) return take_body(c, length, err);
    return read_to_end(c, err);
}

static int make_request(http_client *c, const http_ask *r, shoal_err *err)
{
    const char *method = r->method ? r->method : r->body ? "POST" : "GET";
    size_t n = !r->body ? 0 : r->n_body ? r->n_body : strlen(r->body);
    buf_clear(&c->out);
    buf_printf(&c->out, "%s %s HTTP/1.1\r\nhost: %s\r\ncontent-type: %s\r\n%scontent-length: %zu\r\n\r\n",
               method, r->path, c->where.port ? c->where.host : "localhost",
               r->type ? r->type : "application/json", r->headers ? r->headers : "", n);
    buf_append(&c->out, r->body ? r->body : "", n);
    return c->out.failed ? err_nomem(err) : 0;
}

/* Send c->out and take what is answered. */
static int ask_over(http_client *c, shoal_err *err)
{
    bool close_after = false;
    buf_clear(&c->head);
    buf_clear(&c->body);
    c->first_ns = 0;
    c->status = 0;
    int sent = send_all(c, err);
    shoal_err unheard; /* who hangs up in the middle of a long request may have said why */
    int rc = read_answer(c, &close_after, sent == 0 ? err : &unheard);
    if (rc != 0 && sent != 0) rc = sent;
    if (rc != 0 || close_after) hang_up(c);
    return rc;
}

int http_client_exchange(http_client *c, const http_ask *r, shoal_err *err)
{
    bool kept = c->fd >= 0;
    int rc = kept ? 0 : dial(c, err);
    if (rc == 0) rc = make_request(c, r, err);
    if (rc != 0) return rc;
    rc = ask_over(c, err);
    if (rc == SHOAL_EIO && kept && c->again && !c->status && (rc = dial(c, err)) == 0) rc = ask_over(c, err);
    return rc;
}

void http_client_header(const http_client *c, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);
    *ret = '\0';
    for (const char *line = c->head.len ? c->head.data : ""; *line; line = strchr(line, '\n') + 1) {
        if (strncasecmp(line, name, n) != 0 || line[n] != ':') continue;
        const char *value = line + n + 1;
        value += strspn(value, " \t");
        snprintf(ret, size, "%.*s", (int)strcspn(value, "\r\n"), value);
        return;
    }
}

int http_client_once(const http_where *where, const http_ask *r, int *ret_status, buf *ret_body,
                     shoal_err *err)
{
    http_client c;
    http_client_init(&c, where);
    int rc = http_client_exchange(&c, r, err);
    if (rc == 0 && ret_body && buf_append(ret_body, c.body.data ? c.body.data : "", c.body.len) != 0)
        rc = err_nomem(err);
    if (rc == 0) *ret_status = c.status;
    http_client_done(&c);
    return rc;
}
