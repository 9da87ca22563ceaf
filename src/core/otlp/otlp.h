/* otlp.h: spans, metrics and log records in the two forms of OTLP over HTTP (opentelemetry.io/docs/specs/otlp).
 *
 * An item (a span, a metric with its points, a log record) is written alone. A batch is the items of one signal behind
 * what they have in common:
 *
 *     buf item = {0}, body = {0};
 *     otlp_put_span(&item, OTLP_PROTOBUF, &(otlp_span){.name = "chat", .id = 7, ...});
 *     otlp_batch_put(&body, OTLP_PROTOBUF, OTLP_TRACES, &common, &(otlp_bytes){item.data, item.len}, 1);
 *     POST body to ENDPOINT/v1/traces
 *
 * Protobuf: the messages of proto/otlp/otlp.proto. JSON: the same messages by protobuf's rules for JSON with OTLP's
 * exceptions: ids in hex, enumerations as numbers; integers of 64 bits are texts. Pure; any thread. Failures stay in the
 * buf: an item of a buf that has failed is void. */
#ifndef OTLP_OTLP_H
#define OTLP_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef enum otlp_protocol { OTLP_PROTOBUF, OTLP_JSON } otlp_protocol;

/* X(enum, name, JSON names of the lists around an item) */
#define OTLP_SIGNAL_TABLE(X)                                                 \
    X(OTLP_TRACES, "traces", "resourceSpans", "scopeSpans", "spans")         \
    X(OTLP_METRICS, "metrics", "resourceMetrics", "scopeMetrics", "metrics") \
    X(OTLP_LOGS, "logs", "resourceLogs", "scopeLogs", "logRecords")
typedef enum otlp_signal {
#define OTLP_SIGNAL_ENUM(e, name, resources, scopes, items) e,
    OTLP_SIGNAL_TABLE(OTLP_SIGNAL_ENUM)
#undef OTLP_SIGNAL_ENUM
        OTLP_N_SIGNALS
} otlp_signal;
const char *otlp_signal_name(otlp_signal s); /* "traces": also the end of its path, /v1/traces */
const char *otlp_content_type(otlp_protocol p);

/* ---- items ------------------------------------------------------------------------------------------- */

enum { OTLP_TRACE_BYTES = 16, OTLP_SPAN_BYTES = 8, OTLP_ATTRIBUTES_MAX = 48 };

typedef enum otlp_kind { OTLP_TEXT, OTLP_INT, OTLP_DOUBLE, OTLP_BOOL, OTLP_LIST /* of one text */ } otlp_kind;

typedef struct otlp_attribute {
    const char *key;
    otlp_kind kind;
    const char *text; /* OTLP_TEXT, OTLP_LIST; UTF-8: what is not becomes U+FFFD */
    int64_t i;        /* OTLP_INT, OTLP_BOOL */
    double d;         /* OTLP_DOUBLE */
} otlp_attribute;

typedef enum otlp_span_kind { OTLP_INTERNAL = 1, OTLP_SERVER, OTLP_CLIENT } otlp_span_kind;

typedef struct otlp_trace { /* where something belongs; zeroed: nowhere */
    uint8_t trace[OTLP_TRACE_BYTES];
    uint64_t span;
} otlp_trace;

typedef struct otlp_span {
    uint8_t trace[OTLP_TRACE_BYTES];
    uint64_t id, parent; /* parent 0: none */
    const char *name;
    otlp_span_kind kind;
    uint64_t start_ns, end_ns; /* since 1970 */
    bool failed;
    const char *why; /* of a failure; NULL or "": none is told */
    bool sampled, remote_parent;
    const otlp_attribute *attributes;
    size_t n_attributes;
} otlp_span;
/* Of each item at most OTLP_ATTRIBUTES_MAX attributes; the rest is left out. */
void otlp_put_span(buf *out, otlp_protocol p, const otlp_span *s);

typedef enum otlp_severity { OTLP_DEBUG = 5, OTLP_INFO = 9, OTLP_WARN = 13, OTLP_ERROR = 17 } otlp_severity;

typedef struct otlp_log {
    uint64_t at_ns, observed_ns; /* since 1970 */
    otlp_severity severity;
    const char *severity_text, *body;
    otlp_trace of;
    const otlp_attribute *attributes;
    size_t n_attributes;
} otlp_log;
void otlp_put_log(buf *out, otlp_protocol p, const otlp_log *l);

typedef enum otlp_metric_kind { OTLP_SUM, OTLP_GAUGE, OTLP_HISTOGRAM } otlp_metric_kind;

typedef struct otlp_exemplar {
    otlp_trace of;
    double value;
    uint64_t at_ns; /* since 1970; 0: there is none */
} otlp_exemplar;

typedef struct otlp_point {
    double value;                   /* of a histogram the sum */
    const uint64_t *counts;         /* of a histogram: [n_bounds + 1], not cumulative */
    const otlp_exemplar *exemplars; /* of a histogram: [n_bounds + 1]; NULL: none */
    const otlp_attribute *attributes;
    size_t n_attributes;
} otlp_point;

/* Sums and histograms are cumulative, and sums never fall. */
typedef struct otlp_metric {
    const char *name, *help, *unit;
    otlp_metric_kind kind;
    uint64_t start_ns, at_ns; /* since 1970: when counting began, and now */
    const double *bounds;     /* of a histogram */
    size_t n_bounds;
    const otlp_point *points;
    size_t n_points;
} otlp_metric;
void otlp_put_metric(buf *out, otlp_protocol p, const otlp_metric *m);

/* ---- batches ----------------------------------------------------------------------------------------- */

typedef struct otlp_bytes {
    const void *data;
    size_t n;
} otlp_bytes;

typedef struct otlp_common { /* as bytes of one of the forms; otlp_common_done frees it */
    buf resource, scope;
    const char *schema_url; /* "" for none; borrowed */
} otlp_common;
int otlp_common_init(otlp_common *c, otlp_protocol p, const otlp_attribute *resource, size_t n_resource,
                     const char *scope, const char *version, const char *schema_url); /* SHOAL_ENOMEM */
void otlp_common_done(otlp_common *c); /* accepts a zeroed one */

void otlp_batch_put(buf *out, otlp_protocol p, otlp_signal s, const otlp_common *c, const otlp_bytes *items,
                    size_t n_items);

/* ---- what a collector answers ------------------------------------------------------------------------ */

enum { OTLP_ANSWER_MAX = 64 << 10, OTLP_WHY_BYTES = 160 };

typedef struct otlp_answer {
    uint64_t n_rejected;      /* of the batch's items (of metrics: points), where it took the others */
    char why[OTLP_WHY_BYTES]; /* its words, cut; "": none */
} otlp_answer;

/* Of a successful answer, whose bytes are anyone's. SHOAL_EFORMAT, SHOAL_ENOMEM: *ret is untouched. An empty one is all
 * well. json: by its Content-Type. */
int otlp_answer_parse(otlp_answer *ret, bool json, const void *bytes, size_t n, shoal_err *err);

#endif
