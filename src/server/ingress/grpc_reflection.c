/* grpc_reflection.c: grpc.reflection.v1 and v1alpha, which differ in their names alone: what is asked of the
 * descriptors that are in the program. Field numbers are those of proto/grpc/reflection/v1/reflection.proto.
 *
 * A question about a file, or about what is in one, is answered with that file and all that it imports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop_work.h"
#include "base/proto_wire.h"
#include "base/utf8.h"
#include "ingress/grpc_ingress_impl.h"
#include "ingress/grpc_access.h"
#include "request/gateway_state.h"

enum { MESSAGE_MAX = 4096, NAME_MAX_BYTES = 1024, FILES_MAX = 16 };

enum { ASK_FILE = 3, ASK_SYMBOL = 4, ASK_EXTENSION = 5, ASK_EXTENSIONS = 6, ASK_SERVICES = 7 };
enum { SAY_HOST = 1, SAY_REQUEST = 2, SAY_FILES = 4, SAY_SERVICES = 6, SAY_ERROR = 7 };

typedef struct question {
    uint32_t what; /* 0: none */
    char host[NAME_MAX_BYTES + 1], name[NAME_MAX_BYTES + 1];
} question;

static void grpc_reflection_take_text(char ret[NAME_MAX_BYTES + 1], const proto_item *it)
{
    size_t n = it->n < NAME_MAX_BYTES ? it->n : NAME_MAX_BYTES;
    if (n) memcpy(ret, it->bytes, n);
    ret[n] = '\0';
}

/* False: the message is malformed. */
static bool read_question(question *ret, const uint8_t *msg, size_t n)
{
    cur c = cur_over(msg, n);
    proto_item it;
    int rc;
    *ret = (question){0};
    while ((rc = proto_next(&c, &it)) == 1) {
        if (it.wire != PROTO_BYTES) continue;
        if (!utf8_valid((const char *)it.bytes, it.n, NULL) && it.number != ASK_EXTENSION) return false;
        if (it.number == SAY_HOST) grpc_reflection_take_text(ret->host, &it);
        if (it.number < ASK_FILE || it.number > ASK_SERVICES) continue;
        ret->what = it.number;
        grpc_reflection_take_text(ret->name, &it);
    }
    return rc == 0;
}

static void put_error(buf *out, grpc_status status, const char *what, const char *name)
{
    buf e = {0};
    char text[256];
    snprintf(text, sizeof text, "%s%.200s", what, name);
    proto_put_number(&e, 1, status);
    proto_put_bytes(&e, 2, text, strlen(text) - utf8_incomplete_tail(text, strlen(text)));
    proto_put_bytes(out, SAY_ERROR, e.data, e.len);
    if (e.failed) out->failed = true;
    buf_done(&e);
}

/* f, and what it imports, each once. */
static size_t collect(const proto_schema *s, const proto_file *f, const proto_file **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == f) return n;
    if (!f || n == FILES_MAX) return n;
    list[n++] = f;
    for (size_t i = 0; i < f->n_imports; i++) n = collect(s, proto_schema_file(s, f->imports[i]), list, n);
    return n;
}

static void put_files(buf *out, const proto_schema *s, const proto_file *f)
{
    const proto_file *list[FILES_MAX];
    size_t n = collect(s, f, list, 0);
    buf files = {0};
    for (size_t i = 0; i < n; i++) proto_put_bytes(&files, 1, list[i]->bytes, list[i]->n);
    proto_put_bytes(out, SAY_FILES, files.data, files.len);
    if (files.failed) out->failed = true;
    buf_done(&files);
}

static void put_services(buf *out, const proto_schema *s)
{
    buf list = {0};
    for (size_t i = 0; i < proto_schema_services(s); i++) {
        buf one = {0};
        proto_put_text(&one, 1, proto_schema_service(s, i));
        proto_put_bytes(&list, 1, one.data, one.len);
        if (one.failed) list.failed = true;
        buf_done(&one);
    }
    proto_put_bytes(out, SAY_SERVICES, list.data, list.len);
    if (list.failed) out->failed = true;
    buf_done(&list);
}

static void grpc_reflection_put_answer(buf *out, const proto_schema *s, const question *q)
{
    const proto_file *f = q->what == ASK_FILE     ? proto_schema_file(s, q->name)
                          : q->what == ASK_SYMBOL ? proto_schema_file_of(s, q->name)
                                                  : NULL;
    switch (q->what) {
    case ASK_SERVICES: put_services(out, s); break;
    case ASK_FILE:
    case ASK_SYMBOL:
        if (f)
            put_files(out, s, f);
        else
            put_error(out, GRPC_NOT_FOUND,
                      q->what == ASK_FILE ? "no such file: " : "no such symbol: ", q->name);
        break;
    case ASK_EXTENSION:
    case ASK_EXTENSIONS: put_error(out, GRPC_NOT_FOUND, "nothing here has extensions", ""); break;
    default: put_error(out, GRPC_INVALID_ARGUMENT, "the request asks for nothing", "");
    }
}

/* ---- streams ------------------------------------------------------------------------------------- */

struct grpc_asker {
    grpc_call *call;
    list_node link; /* in the askers of grpc */
};

static void grpc_reflection_forget(grpc_asker *a)
{
    list_take(&a->link);
    free(a);
}

static void grpc_reflection_end(grpc_call *call, grpc_status status, const char *why)
{
    grpc_reflection_forget(grpc_call_data(call));
    grpc_call_end(call, status, why);
}

static void on_begin(void *user, grpc_call *call)
{
    grpc_ingress *grpc = user;
    grpc_asker *a = grpc->gateway->draining ? NULL : calloc(1, sizeof *a);
    if (!a) {
        grpc_call_end(call, grpc->gateway->draining ? GRPC_UNAVAILABLE : GRPC_RESOURCE_EXHAUSTED,
                      grpc->gateway->draining ? "the server is shutting down" : "out of memory");
        return;
    }
    *a = (grpc_asker){.call = call};
    list_put(&grpc->askers, &a->link);
    grpc_call_set_data(call, a);
    grpc_call_set_idle(call, true); /* its answers leave at once */
}

/* Whoever asks on without reading waits. */
static void on_message(void *user, grpc_call *call, const uint8_t *msg, size_t n)
{
    const grpc_ingress *grpc = user;
    question q;
    buf out = {0};
    if (!read_question(&q, msg, n)) {
        grpc_reflection_end(call, GRPC_INVALID_ARGUMENT, "the request is malformed");
        return;
    }
    if (*q.host) proto_put_text(&out, SAY_HOST, q.host);
    proto_put_bytes(&out, SAY_REQUEST, msg, n);
    grpc_reflection_put_answer(&out, grpc->schema, &q);
    if (out.failed) {
        grpc_reflection_end(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
    } else {
        loop_work_add(out.len);
        grpc_call_send(call, out.data, out.len);
        if (grpc_call_is_broken(call))
            grpc_reflection_end(call, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        else if (grpc_call_unsent(call) > GRPC_CALM_BYTES)
            grpc_call_pause(call, true);
    }
    buf_done(&out);
}

static void on_drained(void *user, grpc_call *call)
{
    grpc_call_pause(call, false);
}

static void on_ended(void *user, grpc_call *call)
{
    grpc_reflection_end(call, GRPC_OK, NULL);
}

static void on_cancelled(void *user, grpc_call *call)
{
    grpc_reflection_forget(grpc_call_data(call));
}

void grpc_reflection_drain(grpc_ingress *grpc)
{
    for (grpc_asker *a; (a = list_first(&grpc->askers, grpc_asker, link));)
        grpc_reflection_end(a->call, GRPC_UNAVAILABLE, "the server is shutting down");
}

#define STREAM(version)                                                                          \
    {                                                                                            \
        .path = "/grpc.reflection." version ".ServerReflection/ServerReflectionInfo",            \
        .max_message = MESSAGE_MAX, .begin = on_begin, .message = on_message, .ended = on_ended, \
        .cancelled = on_cancelled, .drained = on_drained                                         \
    }

const grpc_stream_method GRPC_REFLECTION_STREAMS[N_GRPC_REFLECTION_STREAMS] = {STREAM("v1"),
                                                                               STREAM("v1alpha")};
