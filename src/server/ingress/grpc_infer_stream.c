/* grpc_infer_stream.c: one gRPC stream with many requests; see grpc_infer_stream.h. */
#include "ingress/grpc_infer_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "messages/json_proto.h"
#include "dialects/kserve_proto.h"
#include "base/proto_wire.h"
#include "ingress/grpc_ingress_impl.h"
#include "ingress/grpc_access.h"
#include "request/gateway_state.h"
#include "ingress/grpc_fault.h"
#include "ingress/grpc_rpc.h"

#define PATH   "/inference.GRPCInferenceService/ModelStreamInfer"
#define N_JSON "inference-header-content-length"

/* Requests of one stream that run at the same time; a client that sends more waits. */
enum { PARTS_MAX = 64 };

typedef struct part part;
typedef struct infer_stream {
    grpc_ingress *at;
    grpc_call *call;
    const grpc_rpc *rpc;
    const proto_method *method;
    list_node parts;
    size_t n_parts;
    bool client_done; /* it sends no more */
} infer_stream;

struct part {
    ingress_request ingress; /* first */
    infer_stream *stream;
    grpc_ask ask;
    char id[128];
    bool ends_empty; /* its client wants a final answer without outputs */
    bool broken;     /* its client was told an error, behind which no further piece belongs */
    bool entering, over;
    list_node link; /* in the parts of the stream */
};

static part *part_of(const ingress_request *in)
{
    return (part *)in;
}

/* ---- answers ------------------------------------------------------------------------------------- */

/* Takes response, which may be NULL. False: it could not be made, and nothing was sent. */
static bool send_response(infer_stream *s, json_t *response)
{
    shoal_err err = {0};
    buf out = {0};
    bool made = response && json_proto_write(&out, s->method->output, response, &err) == 0;
    if (made) grpc_call_send(s->call, out.data ? out.data : "", out.len);
    buf_done(&out);
    json_decref(response);
    return made;
}

/* A ModelStreamInferResponse {error_message = 1, infer_response = 2 {id = 3}}, for which nothing is
 * allocated. */
static void send_no_memory(infer_stream *s, const char *id)
{
    char id_room[160], room[256]; /* an id has fewer than 128 bytes */
    buf named = {.data = id_room, .cap = sizeof id_room}, out = {.data = room, .cap = sizeof room};
    proto_put_text(&named, 3, id);
    proto_put_text(&out, 1, "out of memory");
    proto_put_bytes(&out, 2, named.data, named.len);
    grpc_call_send(s->call, out.data, out.len);
}

static void send_error(infer_stream *s, const char *id, const char *message)
{
    if (!send_response(s, json_pack("{s:s, s:{s:s}}", "error_message", message, "infer_response", "id", id)))
        send_no_memory(s, id);
}

/* The last that its client hears of the part. */
static void break_off(part *p, const char *message)
{
    if (!p->broken) send_error(p->stream, p->id, message);
    p->broken = true;
}

static void send_fault(part *p, int status, const char *bytes, size_t n)
{
    grpc_fault f = {0};
    grpc_fault_from_body(&f, status, bytes, n, 0);
    break_off(p, f.message.len ? f.message.data : "the request failed");
    grpc_fault_done(&f);
}

/* response is taken over; NULL: there was no memory for it. */
static void send_infer(part *p, json_t *response)
{
    json_t *whole = response ? json_pack("{s:o}", "infer_response", response) : NULL;
    if (p->broken)
        json_decref(whole);
    else if (!send_response(p->stream, whole))
        break_off(p, "out of memory");
}

static json_t *final_params(bool is_final)
{
    return json_pack("[{s:s, s:{s:b}}]", "key", "triton_final_response", "value", "bool_param", is_final);
}

static void send_empty(part *p, const json_t *of)
{
    json_t *last = json_pack("{s:O*, s:O*, s:O*, s:o}", "model_name", json_object_get(of, "model_name"),
                             "model_version", json_object_get(of, "model_version"), "id",
                             json_object_get(of, "id"), "parameters", final_params(true));
    send_infer(p, last);
}

/* One that came whole is its own last. */
static void send_whole(part *p, const grpc_answer *a)
{
    json_t *response = NULL;
    int rc = kserve_proto_answer(&response, a->bytes, a->n, a->n_json);
    if (rc == 0 && json_object_set_new(response, "parameters", final_params(!p->ends_empty)) != 0)
        rc = SHOAL_ENOMEM;
    if (rc != 0) {
        break_off(p, rc == SHOAL_ENOMEM ? "out of memory" : "the answer was not understood");
        json_decref(response);
        return;
    }
    json_t *names = p->ends_empty ? json_incref(response) : NULL;
    send_infer(p, response);
    if (names) send_empty(p, names);
    json_decref(names);
}

static void send_piece(part *p, const event *e)
{
    json_t *data = NULL;
    int rc = json_parse(&data, e->data, e->n_data, "an event", NULL);
    const char *error = json_string_value(json_object_get(data, "error"));
    if (rc == 0 && !error) rc = kserve_proto_event(data);
    if (rc == 0 && !error) {
        send_infer(p, data);
        return;
    }
    break_off(p, error ? error : rc == SHOAL_ENOMEM ? "out of memory" : "an answer was not understood");
    json_decref(data);
}

/* ---- a request ----------------------------------------------------------------------------------- */

static void end_if_done(infer_stream *s)
{
    if (!s->client_done || s->n_parts) return;
    grpc_call_end(s->call, GRPC_OK, NULL);
    free(s);
}

static void unlink_part(part *p)
{
    infer_stream *s = p->stream;
    list_take(&p->link);
    if (s->n_parts-- == PARTS_MAX) grpc_call_pause(s->call, false);
    if (s->n_parts == 0) grpc_call_set_idle(s->call, true);
}

static void free_part(part *p)
{
    grpc_ask_done(&p->ask);
    free(p);
}

/* Its answer is complete. The part stays while it is being entered. */
static void grpc_infer_stream_finish(part *p)
{
    infer_stream *s = p->stream;
    p->over = true;
    if (p->entering) return;
    unlink_part(p);
    free_part(p);
    end_if_done(s);
}

static const char *grpc_infer_stream_method(const ingress_request *in)
{
    return part_of(in)->stream->rpc->method;
}

static const char *grpc_infer_stream_path(const ingress_request *in)
{
    return part_of(in)->ask.path.data;
}

static const char *grpc_infer_stream_query(const ingress_request *in)
{
    return "";
}

/* Of the stream's metadata what is about each request. */
static const char *grpc_infer_stream_header(const ingress_request *in, const char *name)
{
    const part *p = part_of(in);
    if (strcmp(name, "content-type") == 0) return p->ask.type;
    if (strcmp(name, "accept") == 0) return "text/event-stream";
    if (strcmp(name, N_JSON) == 0) return *p->ask.n_json ? p->ask.n_json : NULL;
    if (strcmp(name, "x-shoal-deadline-ms") == 0 && p->ingress.has_timeout) return NULL;
    bool is_ours = strcmp(name, "x-request-id") == 0 || strcmp(name, "accept-encoding") == 0 ||
                   strcmp(name, "content-encoding") == 0 || strcmp(name, "content-length") == 0 ||
                   strncmp(name, "grpc-", 5) == 0;
    return is_ours ? NULL : grpc_call_metadata(p->stream->call, name);
}

static const char *grpc_infer_stream_body(const ingress_request *in, size_t *ret_len)
{
    const buf *b = &part_of(in)->ask.body;
    if (ret_len) *ret_len = b->len;
    return b->len ? b->data : "";
}

static void grpc_infer_stream_pause_body(ingress_request *in, bool paused) {}

static size_t json_length(const http_header *headers, size_t n, size_t none)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(headers[i].name, N_JSON) == 0) return (size_t)strtoull(headers[i].value, NULL, 10);
    return none;
}

static void grpc_infer_stream_reply(ingress_request *in, int status, const http_header *headers, size_t n,
                                    const void *bytes, size_t len)
{
    part *p = part_of(in);
    if (status < 300)
        send_whole(p, &(grpc_answer){status, bytes, len, json_length(headers, n, len)});
    else
        send_fault(p, status, bytes, len);
    grpc_infer_stream_finish(p);
}

static void grpc_infer_stream_begin(ingress_request *in, int status, const http_header *headers, size_t n) {}

static void write_event(ingress_request *in, const event *e)
{
    bool is_told = e->kind == EVENT_DATA || e->kind == EVENT_ERROR;
    if (is_told && e->n_data) send_piece(part_of(in), e);
}

static void grpc_infer_stream_end(ingress_request *in)
{
    grpc_infer_stream_finish(part_of(in));
}

static size_t grpc_infer_stream_unsent(const ingress_request *in)
{
    return grpc_call_unsent(part_of(in)->stream->call);
}

static void grpc_infer_stream_drop(ingress_request *in)
{
    break_off(part_of(in), "the server is going away");
    grpc_infer_stream_finish(part_of(in));
}

static const ingress_request_ops PART_OPS = {.method = grpc_infer_stream_method,
                                             .path = grpc_infer_stream_path,
                                             .query = grpc_infer_stream_query,
                                             .header = grpc_infer_stream_header,
                                             .body = grpc_infer_stream_body,
                                             .pause = grpc_infer_stream_pause_body,
                                             .reply = grpc_infer_stream_reply,
                                             .begin = grpc_infer_stream_begin,
                                             .event = write_event,
                                             .end = grpc_infer_stream_end,
                                             .unsent = grpc_infer_stream_unsent,
                                             .drop = grpc_infer_stream_drop};

/* ---- the stream ---------------------------------------------------------------------------------- */

static const grpc_rpc *infer_rpc(void)
{
    for (size_t i = 0; i < N_GRPC_RPCS; i++)
        if (strcmp(GRPC_RPCS[i].path, PATH) == 0) return &GRPC_RPCS[i];
    return NULL;
}

static void on_begin(void *user, grpc_call *call)
{
    grpc_ingress *grpc = user;
    bool known = grpc_access_has(grpc->gateway, call, NULL);
    infer_stream *s = known && !grpc->gateway->draining ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        grpc_status status = !known                    ? GRPC_UNAUTHENTICATED
                             : grpc->gateway->draining ? GRPC_UNAVAILABLE
                                                       : GRPC_RESOURCE_EXHAUSTED;
        grpc_call_end(call, status,
                      !known ? "this needs an API key, as metadata: authorization: Bearer ..."
                      : grpc->gateway->draining ? "the server is shutting down"
                                                : "out of memory");
        return;
    }
    *s = (infer_stream){
        .at = grpc, .call = call, .rpc = infer_rpc(), .method = proto_schema_method(grpc->schema, PATH)};
    list_init(&s->parts);
    grpc_call_set_data(call, s);
    grpc_call_set_idle(call, true); /* until a request comes */
}

/* The stream's deadline is each request's. */
static void note_timeout(part *p)
{
    const grpc_call *c = p->stream->call;
    p->ingress.has_timeout = grpc_call_deadline_ns(c) != 0;
    p->ingress.timeout_ms = grpc_call_left_ns(c) / 1000000;
}

static part *part_new(infer_stream *s)
{
    part *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    *p = (part){.ingress = {.ops = &PART_OPS,
                            .local = grpc_call_over_unix(s->call),
                            .connection = grpc_call_connection(s->call),
                            .from = grpc_call_from(s->call)},
                .stream = s};
    list_put(&s->parts, &p->link);
    if (s->n_parts == 0) grpc_call_set_idle(s->call, false);
    if (++s->n_parts == PARTS_MAX) grpc_call_pause(s->call, true);
    note_timeout(p);
    return p;
}

/* What an answer must say of its request: its id, and whether an empty one ends it. False: out of memory. */
static bool note_request(part *p)
{
    size_t n = (size_t)strtoull(p->ask.n_json, NULL, 10);
    json_t *o = NULL;
    int rc = json_parse(&o, p->ask.body.data, n < p->ask.body.len ? n : p->ask.body.len, "the request", NULL);
    if (rc != 0) return rc != SHOAL_ENOMEM;
    const char *id = json_string_value(json_object_get(o, "id"));
    buf_copy_str(p->id, sizeof p->id, id ? id : "");
    p->ends_empty =
        json_is_true(json_object_get(json_object_get(o, "parameters"), "triton_enable_empty_final_response"));
    json_decref(o);
    return true;
}

static void grpc_infer_stream_on_message(void *user, grpc_call *call, const uint8_t *msg, size_t n)
{
    infer_stream *s = grpc_call_data(call);
    api_error e = {0};
    part *p = part_new(s);
    if (!p) {
        send_error(s, "", "out of memory");
        return;
    }
    p->entering = true;
    if (grpc_rpc_ask(&p->ask, s->rpc, s->method->input, msg, n, &e) != 0) {
        request_count_refused(s->at->gateway, &e);
        send_error(s, "", e.message);
        p->over = true;
    } else if (!note_request(p)) {
        api_error_nomem(&e);
        request_count_refused(s->at->gateway, &e);
        send_error(s, "", "out of memory");
        p->over = true;
    } else {
        ingress_request_enter(s->at->gateway, &p->ingress);
    }
    p->entering = false;
    if (p->over) grpc_infer_stream_finish(p);
}

static void on_ended(void *user, grpc_call *call)
{
    infer_stream *s = grpc_call_data(call);
    s->client_done = true;
    end_if_done(s);
}

static void on_cancelled(void *user, grpc_call *call)
{
    infer_stream *s = grpc_call_data(call);
    if (!s) return;
    for (part *p; (p = list_first(&s->parts, part, link));) {
        list_take(&p->link);
        if (p->ingress.rq) ingress_request_leave(&p->ingress);
        free_part(p);
    }
    free(s);
}

const grpc_stream_method GRPC_INFER_STREAM = {.path = PATH,
                                              .rests = true,
                                              .begin = on_begin,
                                              .message = grpc_infer_stream_on_message,
                                              .ended = on_ended,
                                              .cancelled = on_cancelled};
