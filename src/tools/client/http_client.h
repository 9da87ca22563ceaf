/* http_client.h: a blocking HTTP/1.1 client, for asking and for measuring a running Shoal. It takes answers of HTTP/1.0, too.
 *
 *     http_where w;
 *     http_client c;
 *     if (http_where_parse(&w, "http://127.0.0.1:8080", err) != 0) ...
 *     http_client_init(&c, &w);
 *     if (http_client_exchange(&c, &(http_ask){.method = "GET", .path = "/readyz"}, err) == 0)
 *         ... c.status, c.body ...
 *     http_client_done(&c);
 *
 * One kept-alive connection; it is made when the first request needs it, and again after the server closed
 * it. Of https:// the server's certificate is checked, its name too. One thread at a time. */
#ifndef CLIENT_HTTP_CLIENT_H
#define CLIENT_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct http_where { /* a TCP address, or a Unix socket */
    char host[108];         /* "127.0.0.1", "localhost", "/run/shoal.sock" */
    int port;               /* 0: host is a socket's path */
    bool tls;               /* https://, not of a socket */
    const char *ca_file;    /* PEM; with tls: whom to trust; borrowed. NULL: the system's CAs */
} http_where;

/* "ADDRESS", "ADDRESS:PORT" (without one 8080), "http://ADDRESS:PORT" (without one 80; what follows a slash is
 * ignored), "https://ADDRESS:PORT" (443) or "unix:PATH". */
int http_where_parse(http_where *ret, const char *url, shoal_err *err);

typedef struct http_ask {
    const char *method; /* NULL: POST when there is a body, else GET */
    const char *path;
    const char *body;    /* JSON, or what `type` says; NULL: none */
    size_t n_body;       /* its bytes; 0: up to its NUL */
    const char *type;    /* its Content-Type; NULL: application/json */
    const char *headers; /* "x-a: b\r\n" or NULL */
} http_ask;

typedef struct http_client {
    http_where where;
    int fd;
    bool ended; /* the server has closed the connection */
    buf in, out;
    int status;
    buf body;          /* of the last answer; valid until the next exchange */
    buf head;          /* its headers, a line each; as long as the body */
    uint64_t first_ns; /* clock_ns when it began to arrive; 0: it is empty */
    /* Whoever measures sets these after init: */
    uint64_t until_ns; /* clock_ns by which an answer must be whole [60 s between two pieces] */
    uint32_t wait_ms; /* with until_ns: the longest wait for a connection, or between two pieces [until_ns] */
    size_t most_bytes; /* of a body, without what `piece` consumes; a larger one is SHOAL_ELIMIT [256 MiB] */
    void (*piece)(void *user, size_t n_bytes); /* a piece of the body has come, and may be consumed; NULL:
                                                   nobody asks */
    void *piece_user;
    bool again; /* a kept connection that ends before the answer begins, as a server does that keeps none
                   after a stream, is replaced, and the request sent once more; else that is an error */
    struct http_client_tls *tls; /* owned; NULL: clear text */
} http_client;

/* init does not connect: the first exchange does. One thread a client. */
void http_client_init(http_client *c, const http_where *where);
void http_client_done(http_client *c);

/* Send a request and take the whole answer. Any status is success; SHOAL_EUNAVAILABLE: nobody listens there;
 * SHOAL_ECANCELLED: a signal that is handled came while it waited. An answer may take 60 s between two
 * pieces; with until_ns (see there) less: SHOAL_EDEADLINE. */
int http_client_exchange(http_client *c, const http_ask *r, shoal_err *err);

/* The value of a header of the last answer, "" without one; letter case of the name does not matter. The
 * value is cut to what fits. */
void http_client_header(const http_client *c, const char *name, char *ret, size_t size);

/* One request on a connection of its own: appends the body to ret_body (NULL: dropped). */
int http_client_once(const http_where *where, const http_ask *r, int *ret_status, buf *ret_body,
                     shoal_err *err);

#endif
