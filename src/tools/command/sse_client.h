/* sse_client.h: a stream of events (text/event-stream), each shown as it comes.
 *
 *     static int on_event(void *user, const sse_event *e) { ...; return 0; }
 *     sse_client c = {.event = on_event, .user = &mine};
 *     int rc = sse_client_ask(&c, &where, "/v1/logs?follow=true", NULL, key, err);
 *
 * One thread; sse_client_stop alone may be called from a signal handler. */
#ifndef COMMAND_SSE_CLIENT_H
#define COMMAND_SSE_CLIENT_H

#include <signal.h>
#include <stdbool.h>

#include "client/http_client.h"
#include "client/sse.h"

typedef struct sse_client {
    int (*event)(void *user, const sse_event *e); /* one with data; not 0: that is enough */
    void *user;
    bool enough, too_long;         /* what ended it: event's word; an event over SSE_EVENT_MAX */
    volatile sig_atomic_t stopped; /* sse_client_stop */
    http_client http;
} sse_client;

enum { SSE_EVENT_MAX = 16 << 20 };

/* POST `body`, JSON, or with NULL GET; key may be NULL. 0 when the server has ended the stream, or event was
 * content. SHOAL_ECANCELLED: it was stopped. What was refused is an error with the server's reason. */
int sse_client_ask(sse_client *c, const http_where *where, const char *path, const char *body,
                   const char *key, shoal_err *err);
void sse_client_stop(sse_client *c);

#endif
