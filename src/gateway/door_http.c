/* door_http.c: requests of HTTP/1.1 and HTTP/2, as they come. */
#include "gateway/door_http.h"

#include <stdio.h>
#include <stdlib.h>

#include "gateway/admission.h"
#include "gateway/door_ws.h"
#include "gateway/endpoint.h"
#include "gateway/gateway_internal.h"
#include "pipeline/pipeline.h"

typedef struct http_door {
    door door; /* first */
    http_request *http;
} http_door;

static http_request *http_of(const door *d)
{
    return ((const http_door *)d)->http;
}

/* From here the server may still tell us that the client left; the request is not ours any more. */
static http_request *let_go(door *d)
{
    http_request *http = http_of(d);
    http_set_data(http, NULL);
    free(d);
    return http;
}

/* ---- what is asked ------------------------------------------------------------------------------- */

/* Over HTTP/2 a tunnel is asked for by CONNECT (RFC 8441); that is no other endpoint. */
static const char *method_of(const http_request *http)
{
    return http_protocol(http) ? "GET" : http_method(http);
}

static const char *method(const door *d)
{
    return method_of(http_of(d));
}

static const char *path(const door *d)
{
    return http_path(http_of(d));
}

static const char *query(const door *d)
{
    return http_query(http_of(d));
}

static const char *header(const door *d, const char *lower_name)
{
    return http_header_get(http_of(d), lower_name);
}

static const char *body(const door *d, size_t *ret_len)
{
    return http_body(http_of(d), ret_len);
}

static void pause_body(door *d, bool paused)
{
    http_pause(http_of(d), paused);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void reply(door *d, int status, const http_header *headers, size_t n, const void *bytes, size_t len)
{
    http_respond(let_go(d), status, headers, n, bytes, len);
}

static void begin(door *d, int status, const http_header *headers, size_t n)
{
    http_respond_begin(http_of(d), status, headers, n);
}

static void events(door *d, const char *bytes, size_t n)
{
    http_respond_write(http_of(d), bytes, n);
}

static void end(door *d)
{
    http_respond_end(let_go(d), NULL, 0);
}

static size_t unsent(const door *d)
{
    return http_unsent(http_of(d));
}

static void drop(door *d)
{
    (void)let_go(d);
}

static const door_ops HTTP_DOOR = {.takes_lines = true,
                                   .method = method,
                                   .path = path,
                                   .query = query,
                                   .header = header,
                                   .body = body,
                                   .pause = pause_body,
                                   .reply = reply,
                                   .begin = begin,
                                   .events = events,
                                   .end = end,
                                   .unsent = unsent,
                                   .drop = drop};

/* ---- what the server says ------------------------------------------------------------------------ */

static http_intake intake(void *user, const http_request *http)
{
    const gateway *g = user;
    const char *allow;
    const endpoint *at = endpoint_find(g->endpoints, method_of(http), http_path(http), &allow);
    if (at && at->takes & ENDPOINT_TUNNEL && http_protocol(http)) return HTTP_TUNNEL;
    return at && at->takes & ENDPOINT_PIECES ? HTTP_PIECES : HTTP_WHOLE;
}

/* It has left HTTP: its data is the WebSocket's. */
static bool is_tunnel(void *user, const http_request *http)
{
    return http_protocol(http) && intake(user, http) == HTTP_TUNNEL;
}

http_request *door_http_take(door *d)
{
    bool is_ours = d->ops == &HTTP_DOOR && is_tunnel(d->rq->gateway, http_of(d));
    return is_ours ? let_go(d) : NULL;
}

static void on_request(void *user, http_request *http)
{
    http_door *d = calloc(1, sizeof *d);
    if (!d) {
        http_respond(http, 503, NULL, 0, NULL, 0);
        return;
    }
    *d = (http_door){.door.ops = &HTTP_DOOR, .http = http};
    http_set_data(http, d);
    door_enter(user, &d->door, http_received_ns(http));
}

static void on_gone(void *user, http_request *http)
{
    if (is_tunnel(user, http)) {
        door_ws_shut(http);
        return;
    }
    http_door *d = http_data(http);
    if (!d) return;
    door_leave(&d->door);
    free(d);
}

static void on_body(void *user, http_request *http, const uint8_t *bytes, size_t n)
{
    if (is_tunnel(user, http)) {
        door_ws_receive(http, bytes, n);
        return;
    }
    http_door *d = http_data(http);
    if (n > 0) d->door.rq->on_body(d->door.rq->work, bytes, n);
}

static void on_body_end(void *user, http_request *http, int status, const char *why)
{
    if (is_tunnel(user, http)) {
        door_ws_shut(http);
        return;
    }
    http_door *d = http_data(http);
    d->door.rq->on_body_end(d->door.rq->work, status, why);
}

static void error_body(void *user, int status, const char *message, buf *out, const char **ret_content_type)
{
    gateway *g = user;
    api_error e;
    char code[16];
    snprintf(code, sizeof code, "%d", status);
    metrics_add(g->metrics, METRIC_REQUESTS, 1, "none", "", code);
    api_error_from_status(&e, status, message);
    api_error_put(out, &e);
    *ret_content_type = "application/json";
}

static bool listens(const gateway_config *c)
{
    for (size_t i = 0; i < c->n_pipelines; i++)
        if (pipeline_takes(&c->pipelines[i], MEDIUM_AUDIO)) return true;
    return false;
}

static const char *shown_header(const void *http, const char *lower_name)
{
    return http_header_get(http, lower_name);
}

/* Sound may be long, from those whom the gateway would let in. A pipeline is asked about sound if one
 * listens, and about texts and tables all the same. */
static size_t body_limit(void *user, const http_request *http)
{
    gateway *g = user;
    const char *allow;
    const endpoint *at = endpoint_find(g->endpoints, http_method(http), http_path(http), &allow);
    const gateway_config *c = g->config;
    if (!at || !(at->takes & (ENDPOINT_SOUND | ENDPOINT_DOCUMENTS))) return 0;
    const char *shown = admission_shown(shown_header, http);
    if (auth_count(g->settings->auth) > 0 && !auth_find(g->settings->auth, shown)) return 0;
    if (at->takes & ENDPOINT_DOCUMENTS) return c->retrieval_document_bytes;
    bool texts = at->takes & ENDPOINT_PIPELINE;
    size_t usual = c->limits.max_body_bytes ? c->limits.max_body_bytes : DOOR_BODY_BYTES;
    return texts && (!listens(c) || usual > c->max_audio_bytes) ? 0 : c->max_audio_bytes;
}

int door_http_open(gateway *g, shoal_err *err)
{
    http_handler h = {.user = g,
                      .on_request = on_request,
                      .on_gone = on_gone,
                      .error_body = error_body,
                      .body_limit = body_limit,
                      .intake = intake,
                      .on_body = on_body,
                      .on_body_end = on_body_end};
    return http_server_new(&g->server, g->loop, &h, &g->config->limits, err);
}
