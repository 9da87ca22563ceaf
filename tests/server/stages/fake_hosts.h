/* fake_hosts.h: hosts that a test answers for, in the order it likes. Include after fake_calls.h, once a test
 * file.
 *
 *     fake_hosts h;
 *     input.hosts = fake_hosts_init(&h);
 *     ... h.asked[0 .. h.n) ...
 *     answer_host(&h.asked[0], "application/json", "{}");
 *     fake_hosts_done(&h); */
#ifndef TESTS_PROCESS_FAKE_HOSTS_H
#define TESTS_PROCESS_FAKE_HOSTS_H

#include "hosts/hosts.h"

enum { ASKED_MAX = 500 };

typedef struct asked {
    host_call base; /* first: it is the call */
    char *host, *path, *body;
    host_method method;
    uint64_t deadline_ns;
    void *user;
    void (*done)(void *user, const host_reply *r);
    bool open, cancelled;
} asked;

typedef struct fake_hosts {
    hosts base; /* first: it is the seam */
    asked asked[ASKED_MAX];
    size_t n;
} fake_hosts;

static inline host_call *fake_ask(hosts *base, const host_ask *a)
{
    fake_hosts *h = (fake_hosts *)base;
    assert_true(h->n < ASKED_MAX);
    asked *c = &h->asked[h->n++];
    *c = (asked){.base = {base->ops},
                 .host = strdup(a->host),
                 .path = strdup(a->path),
                 .body = a->body ? strdup(a->body) : NULL,
                 .method = a->method,
                 .deadline_ns = a->deadline_ns,
                 .user = a->user,
                 .done = a->done,
                 .open = true};
    return &c->base;
}

static inline void fake_host_cancel(host_call *call)
{
    asked *c = (asked *)call;
    assert_true(c->open);
    c->open = false;
    c->cancelled = true;
}

static inline hosts *fake_hosts_init(fake_hosts *h)
{
    static const hosts_ops OPS = {.ask = fake_ask, .cancel = fake_host_cancel};
    *h = (fake_hosts){.base = {&OPS}};
    return &h->base;
}

static inline void fake_hosts_done(fake_hosts *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->asked[i].host);
        free(h->asked[i].path);
        free(h->asked[i].body);
    }
}

static inline void end_host(asked *c, int status, const char *message, int http, const char *type,
                            const char *body, size_t n)
{
    host_reply r = {
        .status = status, .message = message, .http = http, .type = type, .body = body, .n_body = n, .ms = 2};
    assert_true(c->open);
    c->open = false;
    c->done(c->user, &r);
}

static inline void answer_host(asked *c, const char *type, const char *body)
{
    end_host(c, 0, "", 200, type, body, strlen(body));
}

#endif
