/* hosts.h: HTTP calls to hosts that the configuration names, and to no others.
 *
 * Whoever asks says a name, a method and a path; address, headers, certificate authority and bounds are the
 * configuration's. Redirects are not followed, proxies of the environment are not asked, cookies are not
 * kept, so a call goes where the operator's URL says or nowhere. Certificates are verified. What a host sends
 * is bounded: its bytes, its time, its headers.
 *
 *     hosts *h;
 *     rc = hosts_open(&h, loop, rules, n_rules, err);               reads the files of headers
 *     host_call *c = hosts_ask(h, &(host_ask){.host = "weather", .path = "/today", .done = on_weather});
 *     ...
 *     hosts_free(h);                                                and run the loop once more
 *
 * Names are looked up in libuv's threads, and libcurl's sockets are watched by the loop: nothing blocks it.
 * Loop thread. A test has a `hosts` of its own, which answers what it likes. */
#ifndef HOSTS_HOSTS_H
#define HOSTS_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "hosts/host_rule.h"

/* ---- a call ------------------------------------------------------------------------------------------ */

typedef struct host_reply { /* borrowed until the callback returns */
    int status;             /* 0, SHOAL_EUNAVAILABLE, SHOAL_EDEADLINE, SHOAL_ELIMIT, SHOAL_ENOMEM */
    const char *message;    /* one sentence, "" on success; it never has what the host sent, nor the path */
    int http;               /* the answer's status, 200 to 299 on success; 0: none came */
    const char *type;       /* its Content-Type, "" without */
    const char *body;       /* NUL-terminated */
    size_t n_body;
    double ms;
} host_reply;

typedef struct host_ask { /* copied */
    const char *host, *path;
    host_method method;
    const char *body; /* JSON; NULL: none */
    size_t n_body;
    const char *request_id;
    uint64_t deadline_ns; /* of base/clock.h; 0: the host's timeout alone */
    void *user;
    void (*done)(void *user, const host_reply *r); /* once, later, from the loop; the call is gone after it */
} host_ask;

typedef struct hosts hosts;
typedef struct host_call host_call;
typedef struct hosts_ops {
    host_call *(*ask)(hosts *h, const host_ask *a); /* NULL: out of memory, and no callback follows */
    void (*cancel)(host_call *c);                   /* no callback follows */
    void (*free)(hosts *h);
} hosts_ops;

/* Both are the first member of what implements them. */
struct hosts {
    const hosts_ops *ops;
};
struct host_call {
    const hosts_ops *ops;
};

host_call *hosts_ask(hosts *h, const host_ask *a);
void hosts_cancel(host_call *c); /* accepts NULL */
void hosts_free(hosts *h);       /* cancels what is open; accepts NULL */

/* Append "name: value\r\n"; a value in a file is read now. SHOAL_EINVALID: the file cannot be read, or its first line is no
 * header's value. */
int host_header_put(buf *to, const host_header *from, shoal_err *err);

/* rules must outlive it. SHOAL_EINVALID: a file cannot be read, or holds no header's value: the sentence
 * begins with "hosts[0].headers[1].file: ". */
int hosts_open(hosts **ret, uv_loop_t *loop, const host_rule *rules, size_t n, shoal_err *err);

#endif
