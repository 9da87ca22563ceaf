/* service.c: how every call begins, is refused, sends and ends; see service.h. Log lines name the call and
 * the error's code, never its text. Loop thread. */
#include "worker/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"

void service_call_begin(worker *w, grpc_call *c, const char *method, call_trace *ret)
{
    const char *id = grpc_call_metadata(c, "x-request-id");
    const char *parent = grpc_call_metadata(c, "traceparent");
    snprintf(ret->request_id, sizeof ret->request_id, "%s", id ? id : "");
    trace_id(ret->trace_id, parent ? parent : "");
    ret->method = method;
    ret->start_ns = clock_ns();
    LOG(LOG_DEBUG, "worker", "call_started", LOG_S("request_id", ret->request_id),
        LOG_S("trace_id", ret->trace_id), LOG_S("method", method), LOG_S("model", w->name));
}

/* FNV-1a of the request's id. */
uint64_t service_call_group(const call_trace *t)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *p = t->request_id; *p; p++) h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    return t->request_id[0] ? h : 0;
}

int service_call_admit(const worker *w, model_task task, shoal_err *err)
{
    if (w->draining) return err_set(err, SHOAL_EUNAVAILABLE, "%s is shutting down", w->name);
    return backend_admit(&w->backend, task, err);
}

int service_check_blocking(const worker *w, shoal_err *err)
{
    if (w->blocking.n < SERVICE_BLOCKING_MAX) return 0;
    return err_set(err, SHOAL_EFULL, "%s has %d calls under way: try again later", w->name,
                   SERVICE_BLOCKING_MAX);
}

void service_blocking_ended(worker *w)
{
    w->blocking.n--;
    if (w->closing && w->blocking.n == 0) worker_blocking_ended(w);
}

void service_call_refuse(worker *w, grpc_call *c, const call_trace *t, const shoal_err *err)
{
    LOG(LOG_INFO, "worker", "call_refused", LOG_S("request_id", t->request_id),
        LOG_S("trace_id", t->trace_id), LOG_S("method", t->method), LOG_S("model", w->name),
        LOG_S("version", w->backend.about.version), LOG_S("quantisation", w->backend.about.quantisation),
        LOG_S("error", shoal_err_name(err->code)), LOG_F("ms", clock_ms_since(t->start_ns)));
    shoal_err told = *err;
    file_name_alone(told.message, w->path);
    grpc_call_end(c, grpc_status_from_err(told.code), told.message);
}

static void *noting_malloc(void *failed, size_t n)
{
    void *p = malloc(n);
    if (!p) *(bool *)failed = true;
    return p;
}

static void plain_free(void *failed, void *p)
{
    free(p);
}

int service_call_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *msg, size_t n,
                        ProtobufCMessage **ret, shoal_err *err)
{
    bool failed = false;
    ProtobufCAllocator a = {noting_malloc, plain_free, &failed};
    *ret = protobuf_c_message_unpack(type, &a, n, msg);
    if (*ret) return 0;
    return failed ? err_nomem(err) : err_set(err, SHOAL_EINVALID, "the message is malformed");
}

int service_call_send(worker *w, grpc_call *c, const ProtobufCMessage *m)
{
    buf_clear(&w->scratch);
    size_t n = protobuf_c_message_get_packed_size(m);
    if (buf_reserve(&w->scratch, n) != 0) return SHOAL_ENOMEM;
    w->scratch.len = protobuf_c_message_pack(m, (uint8_t *)w->scratch.data);
    grpc_call_send(c, w->scratch.data, w->scratch.len);
    return grpc_call_is_broken(c) ? SHOAL_ENOMEM : 0;
}

void service_call_reply(worker *w, grpc_call *c, const ProtobufCMessage *m)
{
    if (service_call_send(w, c, m) == 0)
        grpc_call_end(c, GRPC_OK, NULL);
    else
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
}

int service_check_utf8(const char *s, const char *what, shoal_err *err)
{
    size_t bad;
    if (utf8_valid(s, strlen(s), &bad)) return 0;
    return err_set(err, SHOAL_EINVALID, "%s is not UTF-8 at byte %zu", what, bad);
}

int service_may_go_on(const atomic_bool *gone, uint64_t deadline_ns, const char *when, shoal_err *err)
{
    if (atomic_load(gone)) return err_set(err, SHOAL_ECANCELLED, "the caller has gone");
    if (deadline_ns == 0 || clock_ns() <= deadline_ns) return 0;
    return err_set(err, SHOAL_EDEADLINE, "the deadline passed %s", when);
}

int service_sound_check(const worker *w, shoal_err *err)
{
    if (w->sounds.n_jobs < SERVICE_SOUNDS_MAX) return 0;
    return err_set(err, SHOAL_EFULL, "%s hears %zu sounds already; try again in a second", w->name,
                   w->sounds.n_jobs);
}

void service_sound_ended(worker *w)
{
    if (--w->sounds.n_jobs == 0 && w->sounds.all_ended) w->sounds.all_ended(w);
}

int service_sound_take(worker *w, size_t n_bytes, shoal_err *err)
{
    size_t most = w->sounds.n_bytes_max;
    if (n_bytes > most)
        return err_set(
            err, SHOAL_ELIMIT,
            "the sound needs %.1f MB, more than the %zu MB that %s may use (models[].sound_mb); send a "
            "shorter one, or raise sound_mb",
            (double)n_bytes / 1048576, most >> 20, w->name);
    if (n_bytes > most - w->sounds.n_bytes)
        return err_set(
            err, SHOAL_EFULL,
            "%s has %.1f of %zu MB for sounds in use (models[].sound_mb) and needs %.1f more; try again in "
            "a second, or raise sound_mb",
            w->name, (double)w->sounds.n_bytes / 1048576, most >> 20, (double)n_bytes / 1048576);
    w->sounds.n_bytes += n_bytes;
    return 0;
}

void service_sound_give(worker *w, size_t n_bytes)
{
    w->sounds.n_bytes -= n_bytes;
}
