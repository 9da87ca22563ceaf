/* grpc_ingress.c: calls in, requests; answers out, messages. */
#include "ingress/grpc_ingress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "messages/json_proto.h"
#include "base/number.h"
#include "request/admission.h"
#include "ingress/grpc_ingress_impl.h"
#include "ingress/grpc_infer_stream.h"
#include "request/endpoint.h"
#include "ingress/ingress.h"
#include "request/gateway_state.h"
#include "ingress/pool_job.h"
#include "request/uploads.h"
#include "ingress/grpc_access.h"
#include "ingress/grpc_fault.h"
#include "ingress/grpc_rpc.h"
#include "grpc/grpc_frame.h"

#define N_JSON "inference-header-content-length"

enum { METADATA_MAX = 32, AUDIO_BYTES_MAX = 1 << 20 };

typedef struct rpc_call {
    ingress_request ingress; /* first */
    grpc_ingress *at;
    grpc_call *call;
    const grpc_rpc *rpc;
    const proto_method *method;
    grpc_ask ask;
    bool entered, entering, over; /* the gateway has it; is being given it; the final call has come */
    size_t n_pieces;              /* bytes of files that came */
    bool cut;                     /* no more of them are taken */
    grpc_fault fault;             /* that its stream ended with */
    bool failed;
    struct ask_job *job; /* its long message is in the pool, which makes `ask` of it */
} rpc_call;

/* A long message on its way through the thread pool: unpacked, turned into JSON, and that parsed. */
typedef struct ask_job {
    pool_job job; /* first */
    grpc_ingress *at;
    rpc_call *call; /* not once the job was left */
    const grpc_rpc *rpc;
    const proto_message *input;
    grpc_reader body;
    const char *wrong; /* with the body's frame; NULL: nothing */
    int wrong_status;
    grpc_ask ask;
    json_ahead json; /* of ask */
    api_error e;
    int rc; /* of grpc_rpc_ask */
} ask_job;

static rpc_call *call_of(const ingress_request *in)
{
    return (rpc_call *)in;
}

static void grpc_ingress_call_free(rpc_call *c)
{
    pool_job_leave(c->job ? &c->job->job : NULL);
    grpc_ask_done(&c->ask);
    grpc_fault_done(&c->fault);
    free(c);
}

/* The gRPC call has ended, or is about to be gone by itself. */
static void call_over(rpc_call *c)
{
    c->over = true;
    if (!c->entering) grpc_ingress_call_free(c);
}

/* ---- what is asked ------------------------------------------------------------------------------- */

static const char *grpc_ingress_method(const ingress_request *in)
{
    return call_of(in)->rpc->method;
}

static const char *grpc_ingress_path(const ingress_request *in)
{
    return buf_text(&call_of(in)->ask.path);
}

static const char *grpc_ingress_query(const ingress_request *in)
{
    return buf_text(&call_of(in)->ask.query);
}

/* What gRPC, or the connection, says with it has been understood here. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {"accept-encoding", "content-encoding", "content-length", "te",
                                       "transfer-encoding"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0) return true;
    return strncmp(name, "grpc-", 5) == 0;
}

static const char *grpc_ingress_header(const ingress_request *in, const char *name)
{
    const rpc_call *c = call_of(in);
    if (strcmp(name, "content-type") == 0) return c->ask.type;
    if (*c->ask.n_json && strcmp(name, N_JSON) == 0) return c->ask.n_json;
    return is_ours(name) ? NULL : grpc_call_metadata(c->call, name);
}

static const char *grpc_ingress_body(const ingress_request *in, size_t *ret_len)
{
    const buf *b = &call_of(in)->ask.body;
    if (ret_len) *ret_len = b->len;
    return buf_text(b);
}

static void grpc_ingress_pause_body(ingress_request *in, bool paused)
{
    grpc_call_pause(call_of(in)->call, paused);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

/* The headers that are metadata; returns how many. */
static size_t as_metadata(http_header *ret, const http_header *headers, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k < METADATA_MAX - 1; i++)
        if (strcasecmp(headers[i].name, "content-type") != 0 && strcasecmp(headers[i].name, "vary") != 0 &&
            strcasecmp(headers[i].name, N_JSON) != 0)
            ret[k++] = headers[i];
    return k;
}

/* A header's number; `none` when there is no such header. */
static size_t number_in(const http_header *headers, size_t n, const char *name, size_t none)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(headers[i].name, name) == 0) return (size_t)strtoull(headers[i].value, NULL, 10);
    return none;
}

static void end_with(grpc_call *call, const grpc_fault *f, http_header *metadata, size_t n)
{
    if (f->details.len) metadata[n++] = (http_header){"grpc-status-details-bin", f->details.data};
    grpc_call_end_with(call, f->status, buf_text(&f->message), metadata, n);
}

static void end_refused(grpc_call *call, const api_error *e)
{
    http_header metadata[1];
    grpc_fault f = {0};
    grpc_fault_from_error(&f, e);
    end_with(call, &f, metadata, 0);
    grpc_fault_done(&f);
}

/* A message that cannot be made is our failure. */
static void grpc_ingress_fail(rpc_call *c, int rc, const shoal_err *err)
{
    api_error e;
    if (rc == SHOAL_ENOMEM)
        api_error_nomem(&e);
    else
        api_error_set(&e, 500, "server_error", "internal_error", NULL, "the answer is none: %s",
                      err->message);
    grpc_fault_done(&c->fault);
    grpc_fault_from_error(&c->fault, &e);
    c->failed = true;
}

static void grpc_ingress_answer(rpc_call *c, const http_header *metadata, size_t n, const grpc_answer *a)
{
    shoal_err err = {0};
    http_header trailers[1];
    buf out = {0};
    int rc = grpc_rpc_answer(&out, c->rpc, c->method->output, a, &err);
    grpc_call_begin(c->call, metadata, n);
    if (rc == 0) {
        grpc_call_send(c->call, out.data ? out.data : "", out.len);
        grpc_call_end(c->call, GRPC_OK, NULL);
    } else {
        grpc_ingress_fail(c, rc, &err);
        end_with(c->call, &c->fault, trailers, 0);
    }
    buf_done(&out);
}

static void grpc_ingress_reply(ingress_request *in, int status, const http_header *headers, size_t n,
                               const void *bytes, size_t len)
{
    rpc_call *c = call_of(in);
    http_header metadata[METADATA_MAX];
    size_t n_metadata = as_metadata(metadata, headers, n);
    grpc_answer a = {status, bytes, len, number_in(headers, n, N_JSON, len)};
    if (grpc_rpc_is_answer(c->rpc, &a)) {
        grpc_ingress_answer(c, metadata, n_metadata, &a);
    } else {
        grpc_fault_from_body(&c->fault, status, bytes, len, (int)number_in(headers, n, "retry-after", 0));
        end_with(c->call, &c->fault, metadata, n_metadata);
    }
    call_over(c);
}

static void grpc_ingress_begin(ingress_request *in, int status, const http_header *headers, size_t n)
{
    http_header metadata[METADATA_MAX];
    size_t n_metadata = as_metadata(metadata, headers, n);
    grpc_call_begin(call_of(in)->call, metadata, n_metadata);
}

/* A field of the event's name holds its data; else the data's members are the message's, beside the name.
 * 0 or SHOAL_ENOMEM; *data is replaced by the message. */
static int place_event(const proto_message *m, const event *e, json_t **data)
{
    int rc = 0;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(e->n_name < sizeof name ? e->n_name : 0), e->name);
    const proto_field *own = *name ? proto_field_named(m, name) : NULL;
    if (own && own->type == PROTO_MESSAGE) {
        json_t *outer = json_object();
        rc = json_object_set_new(outer, name, *data);
        *data = outer;
    }
    if (rc == 0 && *name && proto_field_named(m, "event"))
        rc = json_object_set_new(*data, "event", json_string(name));
    if (rc == 0 && e->n_id && proto_field_named(m, "event_id"))
        rc = json_object_set_new(*data, "event_id", json_stringn(e->id, e->n_id));
    return rc == 0 ? 0 : SHOAL_ENOMEM;
}

static void send_message(rpc_call *c, const json_t *data)
{
    shoal_err err = {0};
    buf out = {0};
    int rc = json_proto_write(&out, c->method->output, data, &err);
    if (rc == 0)
        grpc_call_send(c->call, out.data ? out.data : "", out.len);
    else
        grpc_ingress_fail(c, rc, &err);
    buf_done(&out);
}

static void send_event(rpc_call *c, const event *e)
{
    shoal_err err = {0};
    json_t *data = NULL;
    if (c->failed) return; /* of a stream that lacks something nothing more is told */
    int rc = json_parse(&data, e->data, e->n_data, "an event", &err);
    if (rc == 0 && !json_is_object(data)) rc = err_set(&err, SHOAL_EFORMAT, "an event is no object");
    bool is_error = e->kind == EVENT_ERROR;
    if (rc == 0 && !is_error) rc = place_event(c->method->output, e, &data);
    if (rc != 0) {
        grpc_ingress_fail(c, rc, &err);
    } else if (is_error) {
        grpc_fault_from_json(&c->fault, 0, data, 0);
        c->failed = true;
    } else {
        send_message(c, data);
    }
    json_decref(data);
}

static void write_event(ingress_request *in, const event *e)
{
    bool is_told = e->kind == EVENT_DATA || e->kind == EVENT_ERROR;
    if (is_told && e->n_data) send_event(call_of(in), e);
}

static void grpc_ingress_end(ingress_request *in)
{
    rpc_call *c = call_of(in);
    http_header trailers[2];
    if (c->failed)
        end_with(c->call, &c->fault, trailers, 0);
    else
        grpc_call_end(c->call, GRPC_OK, NULL);
    call_over(c);
}

static size_t grpc_ingress_unsent(const ingress_request *in)
{
    return grpc_call_unsent(call_of(in)->call);
}

static void grpc_ingress_drop(ingress_request *in)
{
    grpc_call_end(call_of(in)->call, GRPC_UNAVAILABLE, "the server is going away");
    grpc_ingress_call_free(call_of(in));
}

static const ingress_request_ops GRPC_OPS = {.method = grpc_ingress_method,
                                             .path = grpc_ingress_path,
                                             .query = grpc_ingress_query,
                                             .header = grpc_ingress_header,
                                             .body = grpc_ingress_body,
                                             .pause = grpc_ingress_pause_body,
                                             .reply = grpc_ingress_reply,
                                             .begin = grpc_ingress_begin,
                                             .event = write_event,
                                             .end = grpc_ingress_end,
                                             .unsent = grpc_ingress_unsent,
                                             .drop = grpc_ingress_drop};

/* ---- a call -------------------------------------------------------------------------------------- */

static void on_cancelled(void *user, grpc_call *call)
{
    rpc_call *c = grpc_call_data(call);
    if (!c) return;
    if (c->entered) ingress_request_leave(&c->ingress);
    grpc_ingress_call_free(c);
}

static void note_timeout(rpc_call *c)
{
    if (!grpc_call_deadline_ns(c->call)) return;
    uint64_t left_ns = grpc_call_left_ns(c->call), most = 86400000;
    uint64_t ms = left_ns ? (left_ns + grpc_call_age_ns(c->call)) / 1000000 : 0;
    c->ingress.has_timeout = true;
    c->ingress.timeout_ms = ms < most ? ms : most;
}

/* NULL: the call has been ended. */
static rpc_call *call_new(grpc_ingress *at, grpc_call *call)
{
    rpc_call *c = calloc(1, sizeof *c);
    if (!c) {
        grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return NULL;
    }
    size_t i = 0;
    while (strcmp(GRPC_RPCS[i].path, grpc_call_path(call)) != 0) i++; /* only these come here */
    *c = (rpc_call){.ingress = {.ops = &GRPC_OPS,
                                .local = grpc_call_over_unix(call),
                                .connection = grpc_call_connection(call),
                                .from = grpc_call_from(call)},
                    .at = at,
                    .call = call,
                    .rpc = &GRPC_RPCS[i],
                    .method = at->described[i]};
    note_timeout(c);
    grpc_call_set_data(call, c);
    grpc_call_on_cancel(call, on_cancelled, at);
    return c;
}

/* As over HTTP, sound may be long from those who would be let in. */
static size_t grpc_body_limit(const gateway *g, const http_request *http)
{
    const gateway_config *c = g->config;
    const char *allow;
    size_t usual = ingress_request_max_bytes(g);
    for (size_t i = 0; i < N_GRPC_RPCS; i++) {
        if (strcmp(GRPC_RPCS[i].path, http_path(http)) != 0) continue;
        const endpoint *at = endpoint_find(g->endpoints, GRPC_RPCS[i].method, GRPC_RPCS[i].target, &allow);
        bool may =
            at && at->takes & ENDPOINT_SOUND && grpc_access_shown(g, admission_shown_over_http(http), NULL);
        /* Messages of a few hundred bytes have an eighth for their heads. */
        if (may && c->max_audio_bytes > usual) usual = c->max_audio_bytes + c->max_audio_bytes / 8;
    }
    return usual + GRPC_FRAME_HEAD;
}

/* Unauthenticated messages are neither unpacked nor taken apart: ingress_request_enter refuses them by their key. Whether a
 * service is well anybody may ask, in a few words. */
static size_t longest(void *user, const http_request *http)
{
    const gateway *g = ((const grpc_ingress *)user)->gateway;
    for (size_t i = 0; i < N_GRPC_HEALTH_METHODS; i++)
        if (strcmp(GRPC_HEALTH_METHODS[i].path, http_path(http)) == 0) return GRPC_HEALTH_MESSAGE_MAX;
    if (!grpc_access_shown(g, admission_shown_over_http(http), NULL)) return 0;
    return grpc_body_limit(g, http) - GRPC_FRAME_HEAD;
}

static int grpc_ingress_ask(rpc_call *c, const uint8_t *msg, size_t n, api_error *e)
{
    return grpc_access_has(c->at->gateway, c->call, NULL)
               ? grpc_rpc_ask(&c->ask, c->rpc, c->method->input, msg, n, e)
               : grpc_rpc_ask_nothing(&c->ask, c->rpc, e);
}

static void refuse_call(rpc_call *c, const api_error *e)
{
    request_count_refused(c->at->gateway, e);
    end_refused(c->call, e);
    call_over(c);
}

/* c->ask is ready. False: it has been answered, and may be gone. */
static bool enter_asked(rpc_call *c)
{
    bool nested = c->entering;
    c->entered = c->entering = true;
    c->ingress.age_ns = grpc_call_age_ns(c->call);
    ingress_request_enter(c->at->gateway, &c->ingress);
    c->entering = nested;
    bool over = c->over;
    if (over && !nested) grpc_ingress_call_free(c);
    return !over;
}

static bool grpc_ingress_enter(rpc_call *c, const uint8_t *msg, size_t n)
{
    api_error e = {0};
    if (grpc_ingress_ask(c, msg, n, &e) == 0) return enter_asked(c);
    refuse_call(c, &e);
    return false;
}

static void on_call(void *user, grpc_call *call, const uint8_t *msg, size_t n)
{
    rpc_call *c = call_new(user, call);
    if (c) grpc_ingress_enter(c, msg, n);
}

/* ---- long messages: the thread pool -------------------------------------------------------------- */

static void job_run(pool_job *job)
{
    ask_job *j = (ask_job *)job;
    const uint8_t *msg;
    size_t n;
    if (!grpc_reader_only(&j->body, &msg, &n, &j->wrong_status, &j->wrong)) return;
    j->rc = grpc_rpc_ask(&j->ask, j->rpc, j->input, msg, n, &j->e);
    grpc_reader_done(&j->body);
    const buf *body = &j->ask.body;
    if (j->rc == 0 && body->len && *body->data == '{') json_ahead_run(&j->json, body->data, body->len);
}

/* The body that the message became is counted, and c->ask refers to it. 0, or an HTTP status with *e filled.
 */
static int take_asked(rpc_call *c, ask_job *j, api_error *e)
{
    bool is_own_form = j->ask.type == j->ask.form;
    c->ask = j->ask;
    if (is_own_form) c->ask.type = c->ask.form;
    j->ask = (grpc_ask){0};
    if (j->rc != 0) {
        *e = j->e;
        return j->rc;
    }
    int status = grpc_call_hold(c->call, c->ask.body.len);
    return status ? api_error_from_status(e, status, http_hold_why(status)) : 0;
}

static void enter_later(rpc_call *c, ask_job *j)
{
    api_error e = {0};
    c->job = NULL;
    if (j->wrong) {
        grpc_call_end(c->call, (grpc_status)j->wrong_status, j->wrong);
        call_over(c);
    } else if (take_asked(c, j, &e) != 0) {
        refuse_call(c, &e);
    } else {
        json_ahead_offer(&j->json);
        enter_asked(c);
        json_ahead_offer(NULL);
    }
}

static void end_if_closed(grpc_ingress *grpc);

static void grpc_ingress_job_free(ask_job *j)
{
    json_ahead_done(&j->json);
    grpc_ask_done(&j->ask);
    grpc_reader_done(&j->body);
    free(j);
}

static void job_done(pool_job *job)
{
    ask_job *j = (ask_job *)job;
    grpc_ingress *grpc = j->at;
    if (!j->job.left && grpc->closing)
        j->call->job = NULL; /* its connection is being closed */
    else if (!j->job.left)
        enter_later(j->call, j);
    grpc_ingress_job_free(j);
    grpc->n_jobs--;
    end_if_closed(grpc);
}

/* As many as may be answered at once may wait for it. */
static int check_jobs(const grpc_ingress *grpc, api_error *e)
{
    size_t most = grpc->gateway->config->max_requests;
    if (!most || grpc->n_jobs + grpc->gateway->n_admitted < most) return 0;
    e->retry_after_s = 1;
    return api_error_set(
        e, 429, "rate_limit_error", "too_many_requests", NULL,
        "limits.max_requests (%zu) requests are being read or answered; try again in a second", most);
}

static int ask_later(rpc_call *c, grpc_reader *body, api_error *e)
{
    int rc = check_jobs(c->at, e);
    ask_job *j = rc == 0 ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        grpc_reader_done(body);
        return rc ? rc : api_error_nomem(e);
    }
    *j = (ask_job){.at = c->at, .call = c, .rpc = c->rpc, .input = c->method->input, .body = *body};
    bool is_large = j->body.in.len > POOL_TURN_BYTES;
    if (pool_job_start(&j->job, c->at->gateway->loop, is_large, job_run, job_done) != 0) {
        grpc_ingress_job_free(j);
        return api_error_nomem(e);
    }
    c->at->n_jobs++;
    c->job = j;
    return 0;
}

static void on_long(void *user, grpc_call *call, grpc_reader *body)
{
    api_error e = {0};
    rpc_call *c = call_new(user, call);
    if (!c)
        grpc_reader_done(body);
    else if (ask_later(c, body, &e) != 0)
        refuse_call(c, &e);
}

/* ---- a call whose request is a stream: the pieces of a file --------------------------------------- */

/* Unauthenticated clients are refused before they have sent anything. */
static void stream_begin(void *user, grpc_call *call)
{
    grpc_ingress *grpc = user;
    rpc_call *c = call_new(grpc, call);
    if (c && !grpc_access_has(grpc->gateway, call, NULL)) grpc_ingress_enter(c, NULL, 0);
}

static void take_piece(rpc_call *c, const uint8_t *bytes, size_t n)
{
    gateway_request *rq = c->ingress.rq;
    c->n_pieces += n;
    c->cut = c->n_pieces > c->at->gateway->config->max_audio_bytes;
    const char *why = c->cut ? NULL : uploads_add(rq, n);
    if (c->cut || why) {
        c->cut = true;
        rq->on_body_end(rq->work, why ? 429 : 413, why ? why : "the sound file is too large");
    } else {
        rq->on_body(rq->work, bytes, n);
    }
}

static void stream_message(void *user, grpc_call *call, const uint8_t *msg, size_t n)
{
    rpc_call *c = grpc_call_data(call);
    const uint8_t *piece;
    size_t n_piece;
    if (!grpc_rpc_piece(c->method->input, msg, n, &piece, &n_piece)) {
        api_error e = {0};
        api_error_bad(&e, NULL, "%s: the message is malformed", c->method->input->name);
        if (c->entered)
            ingress_request_leave(&c->ingress);
        else
            request_count_refused(c->at->gateway, &e);
        end_refused(call, &e);
        call_over(c);
        return;
    }
    c->entering = true; /* it may be answered by any of these */
    c->ingress.body_follows = true;
    if ((c->entered || grpc_ingress_enter(c, msg, n)) && !c->over && !c->cut && n_piece)
        take_piece(c, piece, n_piece);
    c->entering = false;
    if (c->over) grpc_ingress_call_free(c);
}

static void stream_ended(void *user, grpc_call *call)
{
    rpc_call *c = grpc_call_data(call);
    if (c->entered) {
        api_error e = {0};
        if (c->cut) return;
        int status = uploads_whole(c->ingress.rq, &e);
        c->ingress.rq->on_body_end(c->ingress.rq->work, status, status ? e.message : NULL);
        return;
    }
    grpc_call_end(call, GRPC_INVALID_ARGUMENT, "no message came");
    call_over(c);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int grpc_ingress_describe(grpc_ingress *grpc, shoal_err *err)
{
    for (size_t i = 0; i < N_GRPC_RPCS; i++) {
        grpc->described[i] = proto_schema_method(grpc->schema, GRPC_RPCS[i].path);
        if (!grpc->described[i])
            return err_set(err, SHOAL_EINTERNAL, "%s is not in shoal.proto", GRPC_RPCS[i].path);
    }
    return 0;
}

/* Whole requests of the table, and health's. */
static size_t list_methods(grpc_ingress *grpc)
{
    size_t n = 0;
    for (size_t i = 0; i < N_GRPC_RPCS; i++)
        if (!(GRPC_RPCS[i].how & (RPC_PIECES | RPC_MANY)))
            grpc->methods[n++] = (grpc_method){GRPC_RPCS[i].path, on_call};
    for (size_t i = 0; i < N_GRPC_HEALTH_METHODS; i++) grpc->methods[n++] = GRPC_HEALTH_METHODS[i];
    return n;
}

static int add_streams(grpc_ingress *grpc, shoal_err *err)
{
    for (size_t i = 0; i < N_GRPC_RPCS; i++)
        if (GRPC_RPCS[i].how & RPC_PIECES)
            grpc->pieces = (grpc_stream_method){.path = GRPC_RPCS[i].path,
                                                .max_message = AUDIO_BYTES_MAX,
                                                .begin = stream_begin,
                                                .message = stream_message,
                                                .ended = stream_ended,
                                                .cancelled = on_cancelled};
    int rc = grpc_server_add_streams(grpc->server, &grpc->pieces, 1, grpc, err);
    if (rc == 0) rc = grpc_server_add_streams(grpc->server, &GRPC_INFER_STREAM, 1, grpc, err);
    return rc == 0 ? grpc_server_add_streams(grpc->server, GRPC_REFLECTION_STREAMS, N_GRPC_REFLECTION_STREAMS,
                                             grpc, err)
                   : rc;
}

static int open_server(grpc_ingress *grpc, shoal_err *err)
{
    gateway *g = grpc->gateway;
    grpc->described = calloc(N_GRPC_RPCS, sizeof *grpc->described);
    grpc->methods = calloc(N_GRPC_RPCS + N_GRPC_HEALTH_METHODS, sizeof *grpc->methods);
    if (!grpc->described || !grpc->methods) return err_nomem(err);
    int rc = proto_schema_new(&grpc->schema, PUBLIC_PROTOS, PUBLIC_PROTOS_BYTES, err);
    if (rc == 0) rc = grpc_ingress_describe(grpc, err);
    if (rc == 0)
        rc = grpc_server_new_within(&grpc->server, g->loop, g->server, grpc->methods, list_methods(grpc),
                                    grpc, longest, err);
    if (rc == 0) grpc_server_on_long(grpc->server, on_long);
    if (rc == 0) rc = add_streams(grpc, err);
    if (rc == 0) rc = grpc_health_open(grpc, err);
    if (rc != 0) return rc;
    grpc->guest = (http_guest){
        .wants = grpc_wants, .handler = grpc_server_handler(grpc->server), .body_limit = grpc_body_limit};
    g->http_guest = &grpc->guest;
    return 0;
}

static int open_grpc(gateway *g, shoal_err *err)
{
    g->grpc = calloc(1, sizeof *g->grpc);
    if (!g->grpc) return err_nomem(err);
    g->grpc->gateway = g;
    list_init(&g->grpc->watches);
    list_init(&g->grpc->askers);
    return open_server(g->grpc, err);
}

static void withdraw_grpc(gateway *g)
{
    grpc_health_tell(g->grpc);
}

static void drain_grpc(gateway *g)
{
    grpc_health_drain(g->grpc);
    grpc_reflection_drain(g->grpc);
}

/* Before the registry and the settings may go: the one is not heard any more, and no request comes in. */
static void close_grpc(gateway *g)
{
    if (!g->grpc) return;
    g->grpc->closing = true;
    grpc_health_deafen(g->grpc);
}

static void grpc_ingress_free(grpc_ingress *grpc)
{
    void (*closed)(void *) = grpc->closed;
    void *closed_user = grpc->closed_user;
    proto_schema_free(grpc->schema);
    free(grpc->methods);
    free(grpc->described);
    free(grpc);
    if (closed) closed(closed_user);
}

static void end_if_closed(grpc_ingress *grpc)
{
    if (grpc->server_closed && grpc->n_jobs == 0) grpc_ingress_free(grpc);
}

static void grpc_ingress_on_closed(void *user)
{
    grpc_ingress *grpc = user;
    grpc->server_closed = true;
    end_if_closed(grpc);
}

/* After g->server is closed. */
static void release_grpc(gateway *g, void (*done)(void *g))
{
    grpc_ingress *grpc = g->grpc;
    if (!grpc) {
        done(g);
        return;
    }
    grpc->closed = done;
    grpc->closed_user = g;
    if (grpc->server)
        grpc_server_close(grpc->server, grpc_ingress_on_closed, grpc);
    else
        grpc_ingress_on_closed(grpc);
}

const ingress GRPC_INGRESS = {.name = "grpc",
                              .open = open_grpc,
                              .withdraw = withdraw_grpc,
                              .drain = drain_grpc,
                              .close = close_grpc,
                              .release = release_grpc};
