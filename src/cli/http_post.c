#define _GNU_SOURCE
#include "cli/http_post.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define TIMEOUT_S 60

/* -1 with errno set when this address does not answer. */
static int dial_address(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* The first address that answers: a name such as localhost has several. */
static int dial(http_post *c, shoal_err *err)
{
    char port[16];
    snprintf(port, sizeof port, "%d", c->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(c->host, port, &hints, &list), fd = -1, one = 1;
    if (rc != 0) return err_set(err, SHOAL_EINVALID, "%s: %s", c->host, gai_strerror(rc));
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) fd = dial_address(a);
    if (fd < 0) rc = err_set(err, SHOAL_EUNAVAILABLE, "%s:%d: %s", c->host, c->port, strerror(errno));
    freeaddrinfo(list);
    if (rc != 0) return rc;
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    buf_clear(&c->in);
    c->fd = fd;
    c->open = true;
    return 0;
}

static void hang_up(http_post *c)
{
    if (c->open) close(c->fd);
    c->open = false;
}

void http_post_done(http_post *c)
{
    hang_up(c);
    buf_done(&c->in);
    buf_done(&c->out);
    buf_done(&c->body);
}

static int send_all(http_post *c, shoal_err *err)
{
    for (size_t done = 0; done < c->out.len;) {
        ssize_t n = send(c->fd, c->out.data + done, c->out.len - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) return err_set(err, SHOAL_EIO, "send: %s", strerror(errno));
        if (n > 0) done += (size_t)n;
    }
    return 0;
}

static int receive_more(http_post *c, shoal_err *err)
{
    if (buf_reserve(&c->in, 16384) != 0) return err_nomem(err);
    ssize_t n = recv(c->fd, c->in.data + c->in.len, 16384, 0);
    if (n == 0) return err_set(err, SHOAL_EIO, "the server closed the connection");
    if (n < 0) return err_set(err, SHOAL_EIO, "receive: %s", strerror(errno));
    c->in.len += (size_t)n;
    c->in.data[c->in.len] = '\0';
    return 0;
}

/* Until c->in holds a whole line; *ret_len counts its CRLF. */
static int need_line(http_post *c, size_t *ret_len, shoal_err *err)
{
    for (;;) {
        char *end = c->in.len ? memmem(c->in.data, c->in.len, "\r\n", 2) : NULL;
        if (end) {
            *ret_len = (size_t)(end - c->in.data) + 2;
            return 0;
        }
        int rc = receive_more(c, err);
        if (rc != 0) return rc;
    }
}

static int take_body(http_post *c, size_t n, shoal_err *err)
{
    while (c->in.len < n) {
        int rc = receive_more(c, err);
        if (rc != 0) return rc;
    }
    if (!c->first_ns && n) c->first_ns = clock_ns();
    buf_append(&c->body, c->in.data, n);
    buf_consume(&c->in, n);
    return 0;
}

static int read_chunks(http_post *c, shoal_err *err)
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

static int read_answer(http_post *c, bool *ret_close, shoal_err *err)
{
    size_t len, length = 0;
    bool chunked = false;
    int rc = need_line(c, &len, err);
    if (rc != 0) return rc;
    if (sscanf(c->in.data, "HTTP/1.1 %d", &c->status) != 1)
        return err_set(err, SHOAL_EPROTOCOL, "the answer is not HTTP/1.1");
    buf_consume(&c->in, len);
    for (;;) {
        if ((rc = need_line(c, &len, err)) != 0) return rc;
        if (len == 2) break;
        if (strncasecmp(c->in.data, "content-length:", 15) == 0) length = strtoul(c->in.data + 15, NULL, 10);
        if (strncasecmp(c->in.data, "transfer-encoding:", 18) == 0) chunked = true;
        if (strncasecmp(c->in.data, "connection: close", 17) == 0) *ret_close = true;
        buf_consume(&c->in, len);
    }
    buf_consume(&c->in, 2);
    return chunked ? read_chunks(c, err) : take_body(c, length, err);
}

int http_post_exchange(http_post *c, const http_post_request *r, shoal_err *err)
{
    int rc = c->open ? 0 : dial(c, err);
    if (rc != 0) return rc;
    buf_clear(&c->out);
    buf_clear(&c->body);
    c->first_ns = 0;
    const char *method = r->body ? "POST" : "GET";
    if (r->method) method = r->method;
    size_t n = r->body ? strlen(r->body) : 0;
    buf_printf(
        &c->out,
        "%s %s HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n%scontent-length: %zu\r\n\r\n",
        method, r->path, c->host, r->headers ? r->headers : "", n);
    buf_append(&c->out, r->body, n);
    bool close_after = false;
    rc = send_all(c, err);
    if (rc == 0) rc = read_answer(c, &close_after, err);
    if (rc != 0 || close_after) hang_up(c);
    return rc;
}

int http_post_parse_url(const char *url, char host[64], int *ret_port, shoal_err *err)
{
    char extra[2];
    if (sscanf(url, "http://%63[^:/]:%d%1[^/]", host, ret_port, extra) == 2 && *ret_port > 0 &&
        *ret_port < 65536)
        return 0;
    return err_set(err, SHOAL_EINVALID, "\"%s\" is not http://ADDRESS:PORT", url);
}
