/* otlp_item.c: spans, log records and metrics as messages, written in one of the two forms; see otlp.h. */
#include <string.h>

#include "base/utf8.h"
#include "otlp/otlp_impl.h"
#include "otlp/otlp_json.h"

enum { CUMULATIVE = 2, STATUS_ERROR = 2 };
/* Of a span's flags: W3C's in the lowest byte, and whether the parent is another process's is known, and is so. */
enum { FLAG_SAMPLED = 1, FLAG_REMOTE_KNOWN = 0x100, FLAG_REMOTE = 0x200 };

/* Collectors refuse a whole batch with a text that is no UTF-8. */
static char *text_of(const char *s)
{
    if (!s) return "";
    return (char *)(utf8_valid(s, strlen(s), NULL) ? s : "\xEF\xBF\xBD");
}

static void value_of(Otlp__AnyValue *v, const otlp_attribute *a)
{
    otlp__any_value__init(v);
    switch (a->kind) {
    case OTLP_TEXT:
    case OTLP_LIST:
        v->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
        v->string_value = text_of(a->text);
        break;
    case OTLP_INT:
        v->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
        v->int_value = a->i;
        break;
    case OTLP_DOUBLE:
        v->value_case = OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE;
        v->double_value = a->d;
        break;
    case OTLP_BOOL:
        v->value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
        v->bool_value = a->i != 0;
        break;
    }
}

/* A list of the one value. */
static void list_of(otlp_value *v)
{
    v->entry = v->value;
    v->entries[0] = &v->entry;
    otlp__array_value__init(&v->list);
    v->list.n_values = 1;
    v->list.values = v->entries;
    otlp__any_value__init(&v->value);
    v->value.value_case = OTLP__ANY_VALUE__VALUE_ARRAY_VALUE;
    v->value.array_value = &v->list;
}

void otlp_set_value(otlp_value *v, const otlp_attribute *a)
{
    value_of(&v->value, a);
    if (a->kind == OTLP_LIST) list_of(v);
    otlp__key_value__init(&v->pair);
    v->pair.key = (char *)a->key;
    v->pair.value = &v->value;
}

/* Their number. */
static size_t set_values(otlp_values *to, const otlp_attribute *a, size_t n)
{
    if (n > OTLP_ATTRIBUTES_MAX) n = OTLP_ATTRIBUTES_MAX;
    for (size_t i = 0; i < n; i++) {
        otlp_set_value(&to->values[i], &a[i]);
        to->pairs[i] = &to->values[i].pair;
    }
    return n;
}

void otlp_put_message(buf *out, otlp_protocol p, const ProtobufCMessage *m)
{
    if (p == OTLP_JSON) {
        otlp_json_put(out, m);
        return;
    }
    size_t n = protobuf_c_message_get_packed_size(m);
    if (buf_reserve(out, n)) return;
    out->len += protobuf_c_message_pack(m, (uint8_t *)out->data + out->len);
    out->data[out->len] = '\0';
}

/* Into to[OTLP_SPAN_BYTES], the first digit first. */
static ProtobufCBinaryData span_id(uint8_t *to, uint64_t id)
{
    for (int i = 0; i < OTLP_SPAN_BYTES; i++) to[i] = (uint8_t)(id >> (56 - 8 * i));
    return (ProtobufCBinaryData){.data = to, .len = id ? OTLP_SPAN_BYTES : 0};
}

static ProtobufCBinaryData trace_id(const uint8_t *id)
{
    static const uint8_t NONE[OTLP_TRACE_BYTES];
    bool none = memcmp(id, NONE, sizeof NONE) == 0;
    return (ProtobufCBinaryData){.data = (uint8_t *)id, .len = none ? 0 : OTLP_TRACE_BYTES};
}

void otlp_put_span(buf *out, otlp_protocol p, const otlp_span *s)
{
    Otlp__Span m = OTLP__SPAN__INIT;
    Otlp__Status status = OTLP__STATUS__INIT;
    uint8_t id[OTLP_SPAN_BYTES], parent[OTLP_SPAN_BYTES];
    otlp_values values;
    m.trace_id = trace_id(s->trace);
    m.span_id = span_id(id, s->id);
    m.parent_span_id = span_id(parent, s->parent);
    m.name = text_of(s->name);
    m.kind = s->kind;
    m.start_time_unix_nano = s->start_ns;
    m.end_time_unix_nano = s->end_ns;
    m.n_attributes = set_values(&values, s->attributes, s->n_attributes);
    m.attributes = values.pairs;
    m.flags = (s->sampled ? FLAG_SAMPLED : 0) | FLAG_REMOTE_KNOWN | (s->remote_parent ? FLAG_REMOTE : 0);
    status.code = STATUS_ERROR;
    status.message = text_of(s->why);
    if (s->failed) m.status = &status;
    otlp_put_message(out, p, &m.base);
}

void otlp_put_log(buf *out, otlp_protocol p, const otlp_log *l)
{
    Otlp__LogRecord m = OTLP__LOG_RECORD__INIT;
    Otlp__AnyValue body = OTLP__ANY_VALUE__INIT;
    uint8_t id[OTLP_SPAN_BYTES];
    otlp_values values;
    m.time_unix_nano = l->at_ns;
    m.observed_time_unix_nano = l->observed_ns;
    m.severity_number = l->severity;
    m.severity_text = text_of(l->severity_text);
    body.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    body.string_value = text_of(l->body);
    m.body = &body;
    m.n_attributes = set_values(&values, l->attributes, l->n_attributes);
    m.attributes = values.pairs;
    m.trace_id = trace_id(l->of.trace);
    m.span_id = span_id(id, l->of.span);
    otlp_put_message(out, p, &m.base);
}

/* ---- metrics ----------------------------------------------------------------------------------------- */

static Otlp__KeyValue **point_values(arena *a, const otlp_point *p)
{
    otlp_value *values = arena_alloc(a, p->n_attributes * sizeof *values);
    Otlp__KeyValue **pairs = arena_alloc(a, p->n_attributes * sizeof *pairs);
    for (size_t i = 0; values && pairs && i < p->n_attributes; i++) {
        otlp_set_value(&values[i], &p->attributes[i]);
        pairs[i] = &values[i].pair;
    }
    return values ? pairs : NULL;
}

static Otlp__NumberDataPoint *number_point(arena *a, const otlp_metric *of, const otlp_point *p)
{
    Otlp__NumberDataPoint *n = arena_alloc(a, sizeof *n);
    if (!n) return NULL;
    otlp__number_data_point__init(n);
    n->start_time_unix_nano = of->kind == OTLP_SUM ? of->start_ns : 0;
    n->time_unix_nano = of->at_ns;
    n->value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
    n->as_double = p->value;
    n->n_attributes = p->n_attributes;
    n->attributes = point_values(a, p);
    return n->attributes || p->n_attributes == 0 ? n : NULL;
}

static bool set_exemplars(Otlp__HistogramDataPoint *h, arena *a, const otlp_metric *of, const otlp_point *p)
{
    h->exemplars = arena_alloc(a, (of->n_bounds + 1) * sizeof *h->exemplars);
    for (size_t i = 0; h->exemplars && i <= of->n_bounds; i++) {
        const otlp_exemplar *from = &p->exemplars[i];
        if (!from->at_ns) continue;
        Otlp__Exemplar *e = arena_alloc(a, sizeof *e);
        uint8_t *id = arena_alloc(a, OTLP_SPAN_BYTES);
        if (!e || !id) return false;
        otlp__exemplar__init(e);
        e->time_unix_nano = from->at_ns;
        e->as_double = from->value;
        e->trace_id = trace_id(from->of.trace);
        e->span_id = span_id(id, from->of.span);
        h->exemplars[h->n_exemplars++] = e;
    }
    return h->exemplars != NULL;
}

static Otlp__HistogramDataPoint *histogram_point(arena *a, const otlp_metric *of, const otlp_point *p)
{
    Otlp__HistogramDataPoint *h = arena_alloc(a, sizeof *h);
    if (!h) return NULL;
    otlp__histogram_data_point__init(h);
    h->start_time_unix_nano = of->start_ns;
    h->time_unix_nano = of->at_ns;
    for (size_t i = 0; i <= of->n_bounds; i++) h->count += p->counts[i];
    h->has_sum_case = OTLP__HISTOGRAM_DATA_POINT__HAS_SUM_SUM;
    h->sum = p->value;
    h->n_bucket_counts = of->n_bounds + 1;
    h->bucket_counts = (uint64_t *)p->counts;
    h->n_explicit_bounds = of->n_bounds;
    h->explicit_bounds = (double *)of->bounds;
    h->n_attributes = p->n_attributes;
    h->attributes = point_values(a, p);
    if (!h->attributes && p->n_attributes > 0) return NULL;
    return !p->exemplars || set_exemplars(h, a, of, p) ? h : NULL;
}

/* NULL: out of memory. */
static void **all_points(arena *a, const otlp_metric *m)
{
    void **list = arena_alloc(a, m->n_points * sizeof *list);
    for (size_t i = 0; list && i < m->n_points; i++) {
        const otlp_point *p = &m->points[i];
        list[i] = m->kind == OTLP_HISTOGRAM ? (void *)histogram_point(a, m, p) : number_point(a, m, p);
        if (!list[i]) return NULL;
    }
    return list;
}

void otlp_put_metric(buf *out, otlp_protocol p, const otlp_metric *m)
{
    Otlp__Metric whole = OTLP__METRIC__INIT;
    Otlp__Gauge gauge = OTLP__GAUGE__INIT;
    Otlp__Sum sum = OTLP__SUM__INIT;
    Otlp__Histogram histogram = OTLP__HISTOGRAM__INIT;
    arena *a = arena_new(0);
    void **points = a ? all_points(a, m) : NULL;
    whole.name = text_of(m->name);
    whole.description = text_of(m->help);
    whole.unit = text_of(m->unit);
    sum.aggregation_temporality = histogram.aggregation_temporality = CUMULATIVE;
    sum.is_monotonic = true;
    gauge.n_data_points = sum.n_data_points = histogram.n_data_points = m->n_points;
    gauge.data_points = sum.data_points = (Otlp__NumberDataPoint **)points;
    histogram.data_points = (Otlp__HistogramDataPoint **)points;
    whole.data_case = m->kind == OTLP_SUM     ? OTLP__METRIC__DATA_SUM
                      : m->kind == OTLP_GAUGE ? OTLP__METRIC__DATA_GAUGE
                                              : OTLP__METRIC__DATA_HISTOGRAM;
    if (m->kind == OTLP_SUM) whole.sum = &sum;
    if (m->kind == OTLP_GAUGE) whole.gauge = &gauge;
    if (m->kind == OTLP_HISTOGRAM) whole.histogram = &histogram;
    if (points)
        otlp_put_message(out, p, &whole.base);
    else
        out->failed = true;
    arena_free(a);
}
