/* recent.c: see recent.h. */
#include "observe/recent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/json_put.h"
#include "request/endpoint.h"
#include "request/gateway_state.h"
#include "request/routed.h"

typedef struct entry {
    uint64_t number; /* 0: none yet */
    uint64_t request, start_ns;
    bool traced; /* it has spans, as long as the ring holds them */
    double at_s; /* Unix time of its end */
    double ms;
    int status;
    bool streamed, background;
    const char *endpoint; /* a name of the table */
    char id[129], code[48], cache[24], near[48];
    char model[96], pipeline[96], version[48], quantisation[24], adapter[64];
    uint64_t n_prompt_tokens, n_generated_tokens;
    request_facts facts;
    char *route, *ensemble, *degraded, *asked; /* NULL: none */
} entry;

struct recent {
    uint64_t last;
    entry ring[RECENT_MAX];
};

recent *recent_new(void)
{
    return calloc(1, sizeof(recent));
}

static void entry_done(entry *e)
{
    free(e->route);
    free(e->ensemble);
    free(e->degraded);
    free(e->asked);
}

void recent_free(recent *r)
{
    for (size_t i = 0; r && i < RECENT_MAX; i++) entry_done(&r->ring[i]);
    free(r);
}

uint64_t recent_last(const recent *r)
{
    return r->last;
}

/* ---- written ------------------------------------------------------------------------------------- */

static char *dup_text(const char *s)
{
    return s && *s ? strndup(s, RECENT_TEXT_MAX) : NULL;
}

static bool is_kept(const gateway_request *rq, int status)
{
    bool works = rq->endpoint && rq->endpoint->admitted;
    return !rq->is_unauthenticated && (works || (status >= 400 && status != 499));
}

static void keep_asked(gateway_request *rq)
{
    size_t n;
    if (!rq->config->log_prompts || rq->asked || !rq->endpoint || !rq->endpoint->admitted) return;
    const char *body = request_body(rq, &n);
    if (n > 0) rq->asked = strndup(body, RECENT_ASKED_MAX);
}

/* What it took its time for, and last itself, under the span of whoever sent it. */
static void keep_spans(const gateway_request *rq, const char *endpoint)
{
    span_ring *ring = rq->gateway->spans;
    span s = {.kind = SPAN_REQUEST,
              .group = rq->number,
              .id = trace_span(rq->trace),
              .parent = rq->trace_parent,
              .start_ns = rq->start_ns,
              .end_ns = request_now_ns(rq)};
    for (size_t i = 0; i < rq->spans.n; i++) {
        rq->spans.spans[i].group = rq->number;
        span_ring_add(ring, &rq->spans.spans[i]);
    }
    span_name(&s, endpoint);
    span_set(&s, "model", rq->model);
    span_ring_add(ring, &s);
}

static void note_entry(gateway_request *rq, int status, const char *error_code)
{
    recent *r = rq->gateway->recent;
    if (!is_kept(rq, status)) return;
    entry *e = &r->ring[r->last % RECENT_MAX];
    entry_done(e);
    *e = (entry){.number = ++r->last,
                 .request = rq->number,
                 .start_ns = rq->start_ns,
                 .traced = rq->is_traced,
                 .at_s = (double)env_wall_ns(&rq->gateway->time) / 1e9,
                 .ms = request_ms(rq),
                 .status = status,
                 .streamed = rq->streaming,
                 .background = rq->background != BACKGROUND_NONE,
                 .endpoint = rq->endpoint ? rq->endpoint->name : "none",
                 .n_prompt_tokens = rq->n_prompt_tokens,
                 .n_generated_tokens = rq->n_generated_tokens,
                 .facts = rq->facts,
                 .route = dup_text(rq->routed ? rq->routed->header : NULL),
                 .ensemble = dup_text(rq->ensemble),
                 .degraded = dup_text(rq->degraded.wanted),
                 .asked = rq->asked ? strdup(rq->asked) : NULL};
    buf_copy_str(e->id, sizeof e->id, rq->id);
    buf_copy_str(e->code, sizeof e->code, error_code);
    buf_copy_str(e->cache, sizeof e->cache, rq->cache_state);
    buf_copy_str(e->near, sizeof e->near, rq->near_note);
    buf_copy_str(e->model, sizeof e->model, rq->model);
    buf_copy_str(e->pipeline, sizeof e->pipeline, rq->pipeline);
    buf_copy_str(e->version, sizeof e->version, rq->version);
    buf_copy_str(e->quantisation, sizeof e->quantisation, rq->quantisation);
    buf_copy_str(e->adapter, sizeof e->adapter, rq->adapter);
    if (e->traced) keep_spans(rq, e->endpoint);
}

const request_sink RECENT_SINK = {.name = "recent", .begin = keep_asked, .finish = note_entry};

/* ---- read ---------------------------------------------------------------------------------------- */

static void put_facts(buf *out, const request_facts *f)
{
    for (int i = 0; i < REQUEST_N_TIMES; i++)
        if (f->known & 1u << i)
            buf_printf(out, ",\"%s_ms\":%.3f", request_time_name((request_time)i), f->ms[i]);
    json_put_filled(out, "replica", f->replica);
    if (f->n_moves == 0) return;
    buf_printf(out, ",\"moves\":%u,\"move_gap_ms\":%.3f", f->n_moves, f->move_gap_ms);
    json_put_filled(out, "move_cause", f->move_cause);
    if (f->n_restarts) buf_printf(out, ",\"restarts\":%u", f->n_restarts);
}

static void put_span(buf *out, const span *s, uint64_t origin_ns)
{
    double at_ms = s->start_ns > origin_ns ? (double)(s->start_ns - origin_ns) / 1e6 : 0;
    buf_printf(out, "{\"id\":\"%016llx\"", (unsigned long long)s->id);
    if (s->parent) buf_printf(out, ",\"parent\":\"%016llx\"", (unsigned long long)s->parent);
    json_put_filled(out, "name", s->name);
    buf_printf(out, ",\"start_ms\":%.3f,\"ms\":%.3f", at_ms, (double)(s->end_ns - s->start_ns) / 1e6);
    for (size_t i = 0; i < s->n_attributes; i++) json_put_filled(out, s->attributes[i].key, span_value(s, i));
    buf_putc(out, '}');
}

static void put_spans(buf *out, const entry *e, const span_ring *spans)
{
    const char *comma = "";
    if (!e->traced) return;
    buf_puts(out, ",\"spans\":[");
    for (const span *s = NULL; (s = span_ring_next(spans, e->request, s)); comma = ",") {
        buf_puts(out, comma);
        put_span(out, s, e->start_ns);
    }
    buf_putc(out, ']');
}

static void put_entry(buf *out, const entry *e, const span_ring *spans)
{
    buf_printf(out, "{\"number\":%llu,\"at\":%.3f,\"endpoint\":\"%s\",\"status\":%d,\"ms\":%.3f",
               (unsigned long long)e->number, e->at_s, e->endpoint, e->status, e->ms);
    json_put_filled(out, "id", e->id);
    json_put_filled(out, "code", e->code);
    json_put_filled(out, "model", e->model);
    json_put_filled(out, "pipeline", e->pipeline);
    json_put_filled(out, "version", e->version);
    json_put_filled(out, "quantisation", e->quantisation);
    json_put_filled(out, "adapter", e->adapter);
    buf_printf(out, ",\"prompt_tokens\":%llu,\"completion_tokens\":%llu,\"streamed\":%s,\"background\":%s",
               (unsigned long long)e->n_prompt_tokens, (unsigned long long)e->n_generated_tokens,
               e->streamed ? "true" : "false", e->background ? "true" : "false");
    put_facts(out, &e->facts);
    json_put_filled(out, "cache", e->cache);
    json_put_filled(out, "cache_near", e->near);
    json_put_filled(out, "route", e->route);
    json_put_filled(out, "ensemble", e->ensemble);
    json_put_filled(out, "degraded", e->degraded);
    json_put_filled(out, "asked", e->asked);
    put_spans(out, e, spans);
    buf_putc(out, '}');
}

static bool is_wanted(const entry *e, const recent_filter *f)
{
    int s = f->status;
    bool failed = e->status >= 400 || *e->code; /* a stream fails behind its 200 */
    bool status = s == 0 || e->status == s || (s == 1 && failed) || (s > 1 && e->status / 100 == s);
    return e->number > f->since && e->ms >= f->slow_ms && status &&
           (!f->endpoint || strcmp(f->endpoint, e->endpoint) == 0) &&
           (!f->model || strcmp(f->model, e->model) == 0 || strcmp(f->model, e->pipeline) == 0) &&
           (!f->id || strcmp(f->id, e->id) == 0);
}

void recent_put(buf *out, const recent *r, const span_ring *spans, const recent_filter *f)
{
    uint64_t oldest = r->last > RECENT_MAX ? r->last - RECENT_MAX + 1 : 1;
    size_t n = 0, most = f->most ? f->most : RECENT_MAX;
    buf_putc(out, '[');
    for (uint64_t k = r->last; k >= oldest && k > f->since && n < most; k--) {
        const entry *e = &r->ring[(k - 1) % RECENT_MAX];
        if (!is_wanted(e, f)) continue;
        if (n++) buf_putc(out, ',');
        put_entry(out, e, spans);
    }
    buf_putc(out, ']');
}
