/* http_out.h: HTTP requests to other servers, by libcurl on a libuv loop.
 *
 * Only the transfer is here. Its owner decides who is asked, where redirects lead, and what an answer means: redirects
 * are not followed, cookies are not kept, certificates are verified. Bodies are handed on as they come.
 *
 *     http_out_open(&out, loop, &(http_out_options){0}, err);
 *     call = http_out_start(out, &(http_out_request){.url = "https://api.lan/x", .data = take, .done = end, .user = me});
 *     ...
 *     http_out_close(out);                           and run the loop until it has nothing left
 *
 * libuv's threads look names up, and the loop watches libcurl's sockets: nothing blocks the loop. Loop thread. */
#ifndef WIRE_HTTP_OUT_H
#define WIRE_HTTP_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/err.h"

enum { HTTP_OUT_HEAD_MAX = 65536 /* bytes of an answer's headers */ };

typedef struct http_out http_out;
typedef struct http_out_call http_out_call;

typedef struct http_out_options {
    size_t connections_max, per_host_max; /* [no limit]; more calls wait */
    size_t read_bytes;                    /* at once, a buffer of each call [16 KiB] */
    /* Proxies of the environment are asked. Proxies look names up, so libcurl has to look up the others: it may block
     * when a call is cancelled. */
    bool proxies;
} http_out_options;

typedef enum http_out_fault {
    HTTP_OUT_OK, /* an answer came, whatever its status */
    HTTP_OUT_NO_MEMORY,
    HTTP_OUT_NO_ADDRESS,   /* no machine has this name */
    HTTP_OUT_NO_LISTENER,  /* no connection was made */
    HTTP_OUT_NOT_ADMITTED, /* `admit` refused an address */
    HTTP_OUT_UNTRUSTED,    /* its certificate */
    HTTP_OUT_LATE,
    HTTP_OUT_CUT_OFF,
    HTTP_OUT_HEAD_TOO_LONG,
    HTTP_OUT_BODY_TOO_LONG,
    HTTP_OUT_STOPPED,  /* by `data` */
    HTTP_OUT_UNUSABLE, /* the URL or the CA file */
    HTTP_OUT_FAILED    /* anything else */
} http_out_fault;

typedef struct http_out_end { /* borrowed until `done` returns */
    http_out_fault fault;
    const char *why;  /* libcurl's or libuv's words; "" on success */
    int status;       /* 0: no answer began */
    const char *type; /* Content-Type, "" without */
} http_out_end;

typedef struct http_out_request { /* copied; zero: no limit, or none */
    const char *method, *url;     /* method NULL: POST if there is a body, else GET */
    const char *headers;          /* "Name: value\r\n" each; NULL */
    const char *body;             /* NULL */
    size_t n_body;
    const char *ca;              /* PEM file of the CAs to trust; NULL: the system's */
    uint64_t until_ns;           /* of base/clock.h: the whole call */
    unsigned connect_s, stall_s; /* to connect; without a byte */
    uint64_t max_bytes;          /* of the body */
    /* May this address be connected to? Asked for each address of a new connection. NULL: any. */
    bool (*admit)(const struct sockaddr *address);
    /* A line of the answer's head, the status line first. NULL. */
    void (*head)(void *user, const char *line, size_t n);
    /* A piece of the body; not 0 stops the call. It must not start or cancel calls. */
    int (*data)(void *user, int status, const char *data, size_t n);
    void (*done)(void *user,
                 const http_out_end *end); /* once, later, from the loop; the call is gone after it */
    void *user;
} http_out_request;

int http_out_open(http_out **ret, uv_loop_t *loop, const http_out_options *o, shoal_err *err);
void http_out_close(http_out *out); /* cancels all calls; NULL is fine */

http_out_call *http_out_start(http_out *out,
                              const http_out_request *r); /* NULL: out of memory, no callback follows */
void http_out_cancel(http_out_call *x);                   /* no callback follows; NULL is fine */

#endif
