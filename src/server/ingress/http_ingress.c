/* http_ingress.c: requests of HTTP/1.1 and HTTP/2, as they come; bodies that clients pack, and answers that they
 * take packed (wire/coding.h). */
#include "ingress/http_ingress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "request/admission.h"
#include "request/dialect.h"
#include "ingress/ingress.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "ingress/pool_job.h"
#include "request/uploads.h"
#include "pipeline/pipeline.h"
#include "wire/coding.h"
#include "wire/loop.h"

enum {
    UNAUTHENTICATED_SHARE = 4
}; /* of the connections, for those that have shown no key where one is needed */

enum {
    SLICE_BYTES = 256 << 10 /* of a packed body in pieces, unpacked at a time */
};

#include "http/http_own.h"

enum { HEADERS_MAX = 32, TEXT_KEPT_BYTES = 16 << 10 /* of memory for events, from one to the next */ };

typedef struct http_call {
    ingress_request ingress; /* first */
    http_request *http;
    gateway *gateway;
    coding_writer *writer; /* of a stream that goes out packed */
    bool writer_failed;    /* no memory: nothing more goes out */
    buf text;              /* events on their way out */
    coding_reader *reader; /* of a packed body in pieces */
    buf packed;            /* of it: what is unpacked in a later turn */
    bool has_more;         /* that is not empty, or the reader holds more */
    bool paused;
    bool body_over;   /* its handler has heard of the end */
    bool *was_let_go; /* told when the final call comes in the middle of a piece */
    bool unpacked;    /* a whole body that came packed, or is long: it is in plain */
    buf plain;
    size_t held;          /* of plain, where it was unpacked: http_hold */
    struct body_job *job; /* which makes that of it */
} http_call;

/* A whole body on its way through the pool. */
typedef struct body_job {
    pool_job job;    /* first */
    http_call *call; /* not once the job was left */
    coding c;
    size_t max_bytes; /* of the plain body */
    bool may_be_json, parses_next;
    buf body; /* as it came, then plain */
    json_ahead json;
    int rc;
    shoal_err err;
} body_job;

static void http_call_free(http_call *call)
{
    if (call->was_let_go) *call->was_let_go = true;
    pool_job_leave(call->job ? &call->job->job : NULL);
    coding_writer_free(call->writer);
    coding_reader_free(call->reader);
    buf_done(&call->text);
    buf_done(&call->packed);
    buf_done(&call->plain);
    free(call);
}

static http_request *http_of(const ingress_request *in)
{
    return ((const http_call *)in)->http;
}

/* From here the server may still tell us that the client left; the request is not ours any more. */
static http_request *let_go(ingress_request *in)
{
    http_request *http = http_of(in);
    http_set_data(http, NULL);
    http_call_free((http_call *)in);
    return http;
}

/* ---- what is asked ------------------------------------------------------------------------------- */

/* Over HTTP/2 a tunnel is asked for by CONNECT (RFC 8441); that is no other endpoint. */
static const char *method_of(const http_request *http)
{
    return http_protocol(http) ? "GET" : http_method(http);
}

static const char *http_ingress_method(const ingress_request *in)
{
    return method_of(http_of(in));
}

static const char *http_ingress_path(const ingress_request *in)
{
    return http_path(http_of(in));
}

static const char *http_ingress_query(const ingress_request *in)
{
    return http_query(http_of(in));
}

static const char *http_ingress_header(const ingress_request *in, const char *lower_name)
{
    return http_header_get(http_of(in), lower_name);
}

static const char *http_ingress_body(const ingress_request *in, size_t *ret_len)
{
    const http_call *h = (const http_call *)in;
    if (!h->unpacked) return http_body(h->http, ret_len);
    if (ret_len) *ret_len = h->plain.len;
    return h->plain.len ? h->plain.data : "";
}

static void http_ingress_pause_body(ingress_request *in, bool paused)
{
    ((http_call *)in)->paused = paused;
    http_pause(http_of(in), paused);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static const char *http_ingress_find(const http_header *headers, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, name) == 0) return headers[i].value;
    return NULL;
}

/* What shrinks: text in any form. Sound, pictures and vectors in base64 of a file have shrunk already. */
static bool is_text(const http_header *headers, size_t n)
{
    static const char *const TYPES[] = {"text/", "application/json", "application/x-ndjson", "image/svg+xml"};
    const char *type = http_ingress_find(headers, n, "content-type");
    if (!type || http_ingress_find(headers, n, "content-encoding")) return false;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strncmp(type, TYPES[i], strlen(TYPES[i])) == 0) return true;
    return false;
}

/* all[HEADERS_MAX]: the headers, and those of an answer that depends on what its client takes. */
static size_t add_coding(http_header *all, const http_header *headers, size_t n, coding c)
{
    if (n > HEADERS_MAX - 2) n = HEADERS_MAX - 2;
    memcpy(all, headers, n * sizeof *headers);
    bool varies = false;
    for (size_t i = 0; i < n; i++)
        varies |= strcmp(all[i].name, "vary") == 0 && strstr(all[i].value, "accept-encoding");
    if (!varies) all[n++] = (http_header){"vary", "accept-encoding"};
    if (c) all[n++] = (http_header){"content-encoding", coding_name(c)};
    return n;
}

static void http_ingress_reply(ingress_request *in, int status, const http_header *headers, size_t n,
                               const void *bytes, size_t len)
{
    http_header all[HEADERS_MAX];
    buf packed = {0};
    unsigned worth = is_text(headers, n) ? coding_worth(len) : 0;
    if (!worth) {
        http_respond(let_go(in), status, headers, n, bytes, len);
        return;
    }
    coding c = coding_choose(http_ingress_header(in, "accept-encoding"), worth);
    if (c && (coding_pack(c, bytes, len, &packed) != 0 || packed.len >= len)) c = CODING_NONE;
    n = add_coding(all, headers, n, c);
    http_respond(let_go(in), status, all, n, c ? packed.data : bytes, c ? packed.len : len);
    buf_done(&packed);
}

static void http_ingress_begin(ingress_request *in, int status, const http_header *headers, size_t n)
{
    http_call *h = (http_call *)in;
    http_header all[HEADERS_MAX];
    coding c = coding_choose_for_stream(http_ingress_header(in, "accept-encoding"), CODING_ALL);
    if (c && coding_writer_new(&h->writer, c, NULL) != 0) c = CODING_NONE;
    n = add_coding(all, headers, n, c);
    http_respond_begin(http_of(in), status, all, n);
}

/* What the client cannot unpack any further it sees as cut, which it is. */
static void write_packed(http_call *call, const char *bytes, size_t n, bool last)
{
    buf out = {0};
    if (!call->writer_failed && coding_writer_add(call->writer, bytes, n, last, &out) == 0)
        http_respond_write(call->http, out.data, out.len);
    call->writer_failed |= out.failed;
    buf_done(&out);
}

static void write_text(http_call *h, const char *bytes, size_t n)
{
    if (n > 0 && h->writer)
        write_packed(h, bytes, n, false);
    else
        http_respond_write(h->http, bytes, n);
}

static void write_line(http_call *h, const char *field, const char *s, size_t n)
{
    if (n == 0) return;
    write_text(h, field, strlen(field));
    write_text(h, s, n);
    write_text(h, "\n", 1);
}

/* Events that come together go out together. */
static void flush_events(ingress_request *in)
{
    http_call *h = (http_call *)in;
    write_text(h, h->text.data, h->text.len);
    if (h->text.cap > TEXT_KEPT_BYTES)
        buf_done(&h->text);
    else
        buf_clear(&h->text);
}

/* Where there is no memory to put the event together, it goes out in pieces. */
static void write_event(ingress_request *in, const event *e)
{
    http_call *h = (http_call *)in;
    size_t before = h->text.len;
    bool is_told = e->kind == EVENT_DATA || e->kind == EVENT_ERROR || !in->lines;
    if (!is_told) return;
    if (in->lines) {
        buf_append(&h->text, e->data, e->n_data);
        buf_putc(&h->text, '\n');
    } else {
        event_write_sse(&h->text, e);
    }
    if (!h->text.failed) return;
    h->text.len = before;
    h->text.failed = false;
    flush_events(in);
    write_line(h, "id: ", in->lines ? "" : e->id, in->lines ? 0 : e->n_id);
    write_line(h, "event: ", in->lines ? "" : e->name, in->lines ? 0 : e->n_name);
    write_line(h, in->lines ? "" : "data: ", e->data, e->n_data);
    if (!in->lines) write_text(h, "\n", 1);
}

static void http_ingress_end(ingress_request *in)
{
    http_call *h = (http_call *)in;
    if (h->writer) write_packed(h, NULL, 0, true);
    http_respond_end(let_go(in), NULL, 0);
}

static size_t http_ingress_unsent(const ingress_request *in)
{
    return http_unsent(http_of(in));
}

static void http_ingress_drop(ingress_request *in)
{
    (void)let_go(in);
}

static int unpack(ingress_request *in, api_error *e);

static const ingress_request_ops HTTP_OPS = {.takes_lines = true,
                                             .method = http_ingress_method,
                                             .path = http_ingress_path,
                                             .query = http_ingress_query,
                                             .header = http_ingress_header,
                                             .body = http_ingress_body,
                                             .unpack = unpack,
                                             .pause = http_ingress_pause_body,
                                             .reply = http_ingress_reply,
                                             .begin = http_ingress_begin,
                                             .event = write_event,
                                             .flush = flush_events,
                                             .end = http_ingress_end,
                                             .unsent = http_ingress_unsent,
                                             .drop = http_ingress_drop};

/* ---- what the server says ------------------------------------------------------------------------ */

static const http_handler *guest_of(void *user, const http_request *http)
{
    const gateway *g = user;
    return g->http_guest && g->http_guest->wants(http) ? &g->http_guest->handler : NULL;
}

static http_intake intake(void *user, const http_request *http)
{
    const gateway *g = user;
    const http_handler *guest = guest_of(user, http);
    if (guest) return guest->intake(guest->user, http);
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

static const http_tunnel *tunnel_of(void *user)
{
    return ((const gateway *)user)->http_tunnel;
}

http_request *http_ingress_take(ingress_request *in)
{
    bool is_ours = in->ops == &HTTP_OPS && is_tunnel(in->rq->gateway, http_of(in));
    return is_ours ? let_go(in) : NULL;
}

static void on_request(void *user, http_request *http)
{
    const http_handler *guest = guest_of(user, http);
    if (guest) {
        guest->on_request(guest->user, http);
        return;
    }
    http_call *call = malloc(sizeof *call);
    if (!call) {
        http_respond(http, 503, NULL, 0, NULL, 0);
        return;
    }
    *call = (http_call){.ingress.ops = &HTTP_OPS, .http = http, .gateway = user};
    call->ingress.local = http_over_unix(http);
    call->ingress.own = http_is_own(http);
    call->ingress.user = http_user(http);
    call->ingress.age_ns = http_age_ns(http);
    call->ingress.connection = http_connection(http);
    call->ingress.from = http_from(http);
    call->ingress.body_follows = intake(user, http) == HTTP_PIECES;
    http_set_data(http, call);
    ingress_request_enter(user, &call->ingress);
}

static void http_ingress_on_gone(void *user, http_request *http)
{
    const http_handler *guest = guest_of(user, http);
    if (guest) {
        guest->on_gone(guest->user, http);
        return;
    }
    if (is_tunnel(user, http)) {
        tunnel_of(user)->shut(http);
        return;
    }
    http_call *call = http_data(http);
    if (!call) return;
    ingress_request_leave(&call->ingress);
    http_call_free(call);
}

/* ---- a body in pieces ---------------------------------------------------------------------------- */

static void say_body_end(http_call *call, int status, const char *why)
{
    if (call->body_over) return;
    call->body_over = true;
    api_error e = {0};
    if (status == 0 && (status = uploads_whole(call->ingress.rq, &e))) why = e.message;
    call->ingress.rq->on_body_end(call->ingress.rq->work, status, why);
}

/* The handler may make its final call: then it is gone. */
static void give_piece(http_call *call, const uint8_t *bytes, size_t n)
{
    gateway_request *rq = call->ingress.rq;
    const char *why = uploads_add(rq, n);
    if (why)
        say_body_end(call, 429, why);
    else
        rq->on_body(rq->work, bytes, n);
}

typedef struct feed {
    http_call *to;
    bool over; /* the handler has made its final call, and `to` is gone */
} feed;

static bool http_ingress_give(void *user, const uint8_t *bytes, size_t n)
{
    feed *f = user;
    if (f->to->body_over) return false;
    give_piece(f->to, bytes, n);
    return !f->over;
}

/* A slice of a packed body. False: no more of it is wanted, and it may be gone. */
static bool read_slice(http_call *call, const uint8_t **bytes, size_t *n)
{
    feed f = {.to = call};
    shoal_err err;
    call->was_let_go = &f.over;
    int rc = coding_reader_step(call->reader, bytes, n, SLICE_BYTES, http_ingress_give, &f, &err);
    if (f.over) return false;
    call->was_let_go = NULL;
    call->has_more = rc == 1;
    if (rc < 0) say_body_end(call, rc == SHOAL_ELIMIT ? 413 : rc == SHOAL_ENOMEM ? 500 : 400, err.message);
    return rc >= 0;
}

/* What is left for a later turn, of bytes[n] that may be packed's own. */
static void keep_packed(http_call *call, const uint8_t *bytes, size_t n)
{
    bool is_own = call->packed.len > 0;
    if (is_own)
        buf_consume(&call->packed, call->packed.len - n);
    else if (buf_append(&call->packed, bytes, n) != 0)
        say_body_end(call, 500, "out of memory");
}

/* A few bytes may stand for megabytes, so they are unpacked in slices, each of which counts as a message. */
static void read_piece(http_call *call, const uint8_t *bytes, size_t n)
{
    if (call->packed.len) {
        if (buf_append(&call->packed, bytes, n) != 0) {
            say_body_end(call, 500, "out of memory");
            return;
        }
        bytes = (const uint8_t *)call->packed.data;
        n = call->packed.len;
    }
    call->has_more |= n > 0;
    while (call->has_more && !call->paused && !call->body_over && http_take_message(call->http))
        if (!read_slice(call, &bytes, &n)) return;
    if (call->has_more && !call->body_over)
        keep_packed(call, bytes, n);
    else
        buf_done(&call->packed);
}

static void on_body(void *user, http_request *http, const uint8_t *bytes, size_t n)
{
    const http_handler *guest = guest_of(user, http);
    if (guest) {
        guest->on_body(guest->user, http, bytes, n);
        return;
    }
    if (is_tunnel(user, http)) {
        tunnel_of(user)->receive(http, bytes, n);
        return;
    }
    http_call *call = http_data(http);
    if (call->body_over) return;
    if (call->reader)
        read_piece(call, bytes, n);
    else if (n)
        give_piece(call, bytes, n);
}

static void on_body_end(void *user, http_request *http, int status, const char *why)
{
    const http_handler *guest = guest_of(user, http);
    if (guest) {
        guest->on_body_end(guest->user, http, status, why);
        return;
    }
    if (is_tunnel(user, http)) {
        tunnel_of(user)->shut(http);
        return;
    }
    http_call *call = http_data(http);
    shoal_err err;
    if (status == 0 && call->reader && coding_reader_end(call->reader, &err) != 0)
        say_body_end(call, 400, err.message);
    else
        say_body_end(call, status, why);
}

static void on_drained(void *user, http_request *http)
{
    const http_handler *guest = guest_of(user, http);
    if (guest) guest->on_drained(guest->user, http);
}

static void on_evict(void *user, http_request *http)
{
    const http_handler *guest = guest_of(user, http);
    if (guest)
        guest->on_evict(guest->user, http);
    else if (is_tunnel(user, http))
        tunnel_of(user)->evict(http);
}

/* Where keys are needed. Without them nobody is known, and nobody is held to that. */
static bool is_known(void *user, const http_request *http)
{
    const gateway *g = user;
    return auth_count(g->settings->auth) > 0 && admission_knows(g, admission_shown_over_http(http));
}

static bool listens(const gateway_config *c)
{
    for (size_t i = 0; i < c->n_pipelines; i++)
        if (pipeline_takes(&c->pipelines[i], MEDIUM_AUDIO)) return true;
    return false;
}

/* Sound may be long, from those whom the gateway would let in. A pipeline is asked about sound if one
 * listens, and about texts and tables all the same. */
static size_t body_limit(void *user, const http_request *http)
{
    gateway *g = user;
    const char *allow;
    const endpoint *at = endpoint_find(g->endpoints, http_method(http), http_path(http), &allow);
    const gateway_config *c = g->config;
    if (guest_of(user, http)) return g->http_guest->body_limit(g, http);
    if (!at || !(at->takes & (ENDPOINT_SOUND | ENDPOINT_DOCUMENTS))) return 0;
    const char *shown = admission_shown_over_http(http);
    if (!admission_knows(g, shown)) return 0;
    if (at->takes & ENDPOINT_DOCUMENTS) return c->retrieval_document_bytes;
    bool texts = at->takes & ENDPOINT_PIPELINE;
    size_t usual = ingress_request_max_bytes(g);
    return texts && (!listens(c) || usual > c->max_audio_bytes) ? 0 : c->max_audio_bytes;
}

/* What the limit is, and which key of the configuration has it. */
static void too_large(gateway *g, const http_request *http, api_error *e)
{
    const char *allow, *key = "limits.max_body_bytes";
    const endpoint *at = endpoint_find(g->endpoints, http_method(http), http_path(http), &allow);
    size_t most = body_limit(g, http);
    if (most && at && at->takes & ENDPOINT_DOCUMENTS) key = "retrieval.max_document_mb";
    if (most && at && at->takes & ENDPOINT_SOUND) key = "limits.max_audio_mb";
    if (!most) most = ingress_request_max_bytes(g);
    api_error_from_status(e, 413, HTTP_BODY_TOO_LARGE);
    snprintf(e->message, sizeof e->message,
             "the request body is too large: this server takes %zu bytes here (%s of its configuration)",
             most, key);
}

static unsigned dialect_at(const gateway *g, const http_request *http)
{
    if (!http) return 0;
    unsigned at = dialect_of(g->endpoints, http_path(http));
    return at | (http_header_get(http, "anthropic-version") ? ENDPOINT_ANTHROPIC : 0);
}

/* Names the refused message; error_headers, which follows, says that name. */
static void error_body(void *user, const http_request *http, int status, const char *message, buf *out,
                       const char **ret_content_type)
{
    gateway *g = user;
    api_error e;
    if (http && strcmp(message, HTTP_BODY_TOO_LARGE) == 0)
        too_large(g, http, &e);
    else
        api_error_from_status(&e, status, message);
    request_count_refused(g, &e);
    request_name(g->refused_id, http ? http_header_get(http, "x-request-id") : NULL);
    dialect_put_error(out, dialect_at(g, http), &e, g->refused_id);
    *ret_content_type = "application/json";
}

static size_t error_headers(void *user, const http_request *http, http_header *ret)
{
    const char *origin = http ? http_header_get(http, "origin") : NULL;
    return request_refusal_headers(user, origin, dialect_at(user, http) & ENDPOINT_ANTHROPIC, ret);
}

/* ---- packed bodies ------------------------------------------------------------------------------- */

static bool http_ingress_keep(void *user, const uint8_t *bytes, size_t n)
{
    return buf_append(user, bytes, n) == 0;
}

static int refuse_body(api_error *e, int rc, const shoal_err *err)
{
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    if (rc == SHOAL_ELIMIT)
        return api_error_set(e, 413, "invalid_request_error", "request_too_large", NULL, "%s", err->message);
    return api_error_bad(e, NULL, "%s", err->message);
}

static int unpack_job(body_job *j)
{
    coding_reader *r = NULL;
    buf plain = {0};
    int rc = coding_reader_new(&r, j->c, j->max_bytes, &j->err);
    if (rc == 0) rc = coding_reader_add(r, j->body.data, j->body.len, http_ingress_keep, &plain, &j->err);
    if (rc == 0) rc = coding_reader_end(r, &j->err);
    coding_reader_free(r);
    if (plain.failed) rc = SHOAL_ENOMEM;
    buf_done(&j->body);
    j->body = plain;
    return rc;
}

/* Forms and tables are not parsed as JSON, and documents by the threads that read them. */
static bool is_json_object(const buf *b)
{
    size_t i = 0;
    while (i < b->len && b->data[i] && strchr(" \t\r\n", b->data[i])) i++;
    return i < b->len && b->data[i] == '{';
}

static void parse_run(pool_job *job)
{
    body_job *j = (body_job *)job;
    if (j->may_be_json && is_json_object(&j->body)) json_ahead_run(&j->json, j->body.data, j->body.len);
}

/* What becomes large is parsed by a job of its own, in its turn. */
static void unpack_run(pool_job *job)
{
    body_job *j = (body_job *)job;
    j->rc = unpack_job(j);
    j->parses_next = j->rc == 0 && j->body.len > POOL_TURN_BYTES;
    if (j->rc == 0 && !j->parses_next) parse_run(job);
}

/* What the pool has made of a body. 0, or an HTTP status with *e filled. */
static int check_job(http_call *call, const body_job *j, api_error *e)
{
    if (j->rc != 0) return refuse_body(e, j->rc, &j->err);
    int status = j->c ? http_hold(call->http, &call->held, j->body.len) : 0;
    return status ? api_error_from_status(e, status, http_hold_why(status)) : 0;
}

static void body_done(pool_job *job)
{
    body_job *j = (body_job *)job;
    http_call *call = j->job.left ? NULL : j->call;
    bool parses_next = call && j->parses_next;
    j->parses_next = false;
    if (parses_next && pool_job_start(&j->job, call->gateway->loop, true, parse_run, body_done) == 0) return;
    if (call) {
        api_error e = {0};
        int rc = check_job(call, j, &e);
        call->job = NULL;
        call->plain = j->body;
        call->unpacked = true;
        j->body = (buf){0};
        json_ahead_offer(&j->json);
        ingress_request_resume(&call->ingress, rc == 0 ? NULL : &e);
        json_ahead_offer(NULL);
    }
    json_ahead_done(&j->json);
    buf_done(&j->body);
    free(j);
}

/* Large values take long to parse, and a few packed bytes long to unpack; others are served meanwhile. */
static int read_ahead(http_call *call, coding c, size_t max_bytes, api_error *e)
{
    const gateway_request *rq = call->ingress.rq;
    body_job *j = calloc(1, sizeof *j);
    if (!j) return api_error_nomem(e);
    *j = (body_job){.call = call, .c = c, .max_bytes = max_bytes};
    j->may_be_json = !(rq->endpoint->takes & ENDPOINT_DOCUMENTS);
    http_take_body(call->http, &j->body);
    bool is_large = !c && j->body.len > POOL_TURN_BYTES;
    if (pool_job_start(&j->job, call->gateway->loop, is_large, c ? unpack_run : parse_run, body_done) != 0) {
        buf_done(&j->body);
        free(j);
        return api_error_nomem(e);
    }
    call->job = j;
    return INGRESS_LATER;
}

static bool is_empty(const http_call *call)
{
    size_t n;
    http_body(call->http, &n);
    return n == 0 && intake(call->gateway, call->http) == HTTP_WHOLE;
}

static bool is_long(const http_call *call)
{
    size_t n;
    http_body(call->http, &n);
    return n > JSON_AHEAD_BYTES;
}

/* Once the request is let in: unauthenticated clients do not make us work. */
static int unpack(ingress_request *in, api_error *e)
{
    http_call *call = (http_call *)in;
    const char *said = http_ingress_header(in, "content-encoding");
    bool is_whole = intake(call->gateway, call->http) == HTTP_WHOLE;
    shoal_err err;
    coding c = CODING_NONE;
    if ((!said && !is_long(call)) || is_empty(call)) return 0;
    if (said && !coding_parse(said, &c))
        return api_error_set(
            e, 415, "invalid_request_error", "unsupported_encoding", NULL,
            "the body's coding '%.40s' is not known here: send it plain, or as gzip, deflate or zstd", said);
    if (!c && !(is_whole && is_long(call))) return 0;
    size_t most = body_limit(call->gateway, call->http);
    if (!most) most = ingress_request_max_bytes(call->gateway);
    if (is_whole) return read_ahead(call, c, most, e);
    int rc = coding_reader_new(&call->reader, c, most, &err);
    return rc == 0 ? 0 : refuse_body(e, rc, &err);
}

http_limits http_ingress_limits(const gateway_config *c)
{
    http_limits l = c->limits;
    http_limits_fill(&l);
    l.max_connections = loop_connections(l.max_connections);
    if (c->n_api_keys == 0) return l;
    l.unknown_timeout_ms = INGRESS_UNAUTHENTICATED_MS;
    l.max_unknown = l.max_connections / UNAUTHENTICATED_SHARE;
    return l;
}

static void warn_of_descriptors(size_t wanted, size_t fits)
{
    if (wanted <= fits) return;
    LOG(LOG_WARN, "gateway", "fewer_connections", LOG_I("max_connections", wanted), LOG_I("holds", fits),
        LOG_S("reason", "the process may not open more files (ulimit -n, LimitNOFILE)"));
}

static int open_http(gateway *g, shoal_err *err)
{
    http_handler h = {.user = g,
                      .on_request = on_request,
                      .on_gone = http_ingress_on_gone,
                      .error_body = error_body,
                      .error_headers = error_headers,
                      .body_limit = body_limit,
                      .intake = intake,
                      .on_body = on_body,
                      .on_body_end = on_body_end,
                      .is_known = is_known,
                      .on_evict = on_evict,
                      .on_drained = on_drained};
    http_limits l = http_ingress_limits(g->config), wanted = g->config->limits;
    http_limits_fill(&wanted);
    warn_of_descriptors(wanted.max_connections, l.max_connections);
    return http_server_new(&g->server, g->loop, &h, &l, err);
}

static int reload_http(gateway *g, const gateway_config *next, shoal_err *err)
{
    http_limits l = http_ingress_limits(next);
    http_server_limit(g->server, &l);
    return 0;
}

static void drain_http(gateway *g)
{
    http_server_drain(g->server, g->drained, g->drained_user);
}

/* The server's last callbacks still point to g. */
static void release_http(gateway *g, void (*done)(void *g))
{
    if (g->server)
        http_server_close(g->server, done, g);
    else
        done(g);
}

const ingress HTTP_INGRESS = {
    .name = "http", .open = open_http, .reload = reload_http, .drain = drain_http, .release = release_http};
