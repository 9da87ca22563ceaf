/* http_post.h: one HTTP/1.1 connection to a running Shoal, kept alive between requests.
 *
 *     http_post c = {.host = host, .port = port};       host and port from http_post_parse_url
 *     http_post_request r = {.path = "/v1/process", .body = json};
 *     int rc = http_post_exchange(&c, &r, &err);         then c.status and c.body
 *     http_post_done(&c);
 *
 * It dials at the first request and again after a failure or when the server closed. Blocking sockets, 60 s
 * of silence at most: those who use it have nothing else to do. One thread at a time. */
#ifndef CLI_HTTP_POST_H
#define CLI_HTTP_POST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct http_post_request { /* borrowed for the call */
    const char *method;            /* NULL: POST when there is a body, else GET */
    const char *path;
    const char *body;    /* NULL: none */
    const char *headers; /* "x-a: b\r\n" or NULL */
} http_post_request;

typedef struct http_post {
    const char *host; /* borrowed */
    int port;
    int status;        /* of the last answer */
    buf body;          /* of the last answer, whatever its status */
    uint64_t first_ns; /* clock_ns when that body began; 0: it has none */
    /* its own */
    bool open;
    int fd;
    buf in;  /* bytes received and not used yet */
    buf out; /* the request being written */
} http_post;

/* "http://127.0.0.1:8080" into its parts; anything else is SHOAL_EINVALID. */
int http_post_parse_url(const char *url, char host[64], int *ret_port, shoal_err *err);

/* Send one request and read its whole answer. 0 also for answers such as 404: look at status. */
int http_post_exchange(http_post *c, const http_post_request *r, shoal_err *err);

void http_post_done(http_post *c); /* accepts a zeroed one */

#endif
