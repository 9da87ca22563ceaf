/* Items and batches: what was written as protobuf is what protobuf-c reads, and what was written as JSON is what OTLP says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>

#include "json/json.h"
#include "otlp/otlp.h"
#include "otlp/otlp.pb-c.h"

static const otlp_attribute RESOURCE[] = {{.key = "service.name", .text = "shoal"}};
static const otlp_attribute VALUES[] = {{.key = "text", .text = "äß"},
                                        {.key = "int", .kind = OTLP_INT, .i = INT64_MIN},
                                        {.key = "double", .kind = OTLP_DOUBLE, .d = 0.25},
                                        {.key = "bool", .kind = OTLP_BOOL, .i = 1},
                                        {.key = "list", .kind = OTLP_LIST, .text = "stop"},
                                        {.key = "broken", .text = "a\xC3"}};
enum { N_VALUES = sizeof VALUES / sizeof *VALUES };
static const otlp_span SPAN = {.trace = {0x4b, 0xf9, [15] = 0x36},
                               .id = 0x00f067aa0ba902b7,
                               .parent = 0xb7ad6b7169203331,
                               .name = "chat home-chat-s",
                               .kind = OTLP_CLIENT,
                               .start_ns = 1544712660000000000u,
                               .end_ns = 1544712661000000000u,
                               .failed = true,
                               .why = "lost",
                               .sampled = true,
                               .attributes = VALUES,
                               .n_attributes = N_VALUES};

/* The batch of one item, in body; the caller's. */
static void batch_of(buf *body, otlp_protocol p, otlp_signal s, buf *item, size_t n)
{
    otlp_common c;
    otlp_bytes items[3];
    assert_int_equal(otlp_common_init(&c, p, RESOURCE, 1, "shoal", "1.2", "https://x/1.37.0"), 0);
    for (size_t i = 0; i < n; i++) items[i] = (otlp_bytes){item->data, item->len};
    otlp_batch_put(body, p, s, &c, items, n);
    assert_false(item->failed);
    assert_false(body->failed);
    otlp_common_done(&c);
    buf_done(item);
}

static json_t *read_json(buf *body)
{
    json_t *root;
    shoal_err err;
    if (json_parse(&root, body->data, body->len, "batch", &err) != 0)
        fail_msg("%s: %s", err.message, body->data);
    buf_done(body);
    return root;
}

/* Members by their path: "a/0/b". */
static json_t *at(json_t *v, const char *path)
{
    char part[64];
    while (*path) {
        size_t n = strcspn(path, "/");
        memcpy(part, path, n);
        part[n] = '\0';
        v = json_is_array(v) ? json_array_get(v, (size_t)atoi(part)) : json_object_get(v, part);
        path += n + (path[n] == '/');
    }
    return v;
}

static const char *text_at(json_t *v, const char *path)
{
    const char *s = json_string_value(at(v, path));
    if (!s) fail_msg("no text at %s", path);
    return s;
}

static void spans_are_read_back_from_protobuf(void **state)
{
    buf item = {0}, body = {0};
    otlp_put_span(&item, OTLP_PROTOBUF, &SPAN);
    batch_of(&body, OTLP_PROTOBUF, OTLP_TRACES, &item, 3);
    Otlp__ExportTraceServiceRequest *r =
        otlp__export_trace_service_request__unpack(NULL, body.len, (const uint8_t *)body.data);
    buf_done(&body);
    assert_non_null(r);
    assert_int_equal(r->n_resource_spans, 1);
    const Otlp__ResourceSpans *rs = r->resource_spans[0];
    assert_string_equal(rs->resource->attributes[0]->key, "service.name");
    assert_string_equal(rs->resource->attributes[0]->value->string_value, "shoal");
    assert_string_equal(rs->schema_url, "https://x/1.37.0");
    assert_int_equal(rs->n_scope_spans, 1);
    assert_string_equal(rs->scope_spans[0]->scope->name, "shoal");
    assert_string_equal(rs->scope_spans[0]->scope->version, "1.2");
    assert_string_equal(rs->scope_spans[0]->schema_url, "https://x/1.37.0");
    assert_int_equal(rs->scope_spans[0]->n_spans, 3);
    const Otlp__Span *s = rs->scope_spans[0]->spans[2];
    assert_int_equal(s->trace_id.len, 16);
    assert_memory_equal(s->trace_id.data, SPAN.trace, 16);
    assert_memory_equal(s->span_id.data, "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8);
    assert_memory_equal(s->parent_span_id.data, "\xb7\xad\x6b\x71\x69\x20\x33\x31", 8);
    assert_string_equal(s->name, SPAN.name);
    assert_int_equal(s->kind, 3);
    assert_int_equal(s->start_time_unix_nano, SPAN.start_ns);
    assert_int_equal(s->end_time_unix_nano, SPAN.end_ns);
    assert_int_equal(s->flags, 0x101);
    assert_int_equal(s->status->code, 2);
    assert_string_equal(s->status->message, "lost");
    assert_int_equal(s->n_attributes, N_VALUES);
    assert_string_equal(s->attributes[0]->value->string_value, "äß");
    assert_true(s->attributes[1]->value->int_value == INT64_MIN);
    assert_true(s->attributes[2]->value->double_value == 0.25);
    assert_true(s->attributes[3]->value->bool_value);
    assert_int_equal(s->attributes[4]->value->array_value->n_values, 1);
    assert_string_equal(s->attributes[4]->value->array_value->values[0]->string_value, "stop");
    assert_string_equal(s->attributes[5]->value->string_value, "\xEF\xBF\xBD");
    otlp__export_trace_service_request__free_unpacked(r, NULL);
}

static void spans_as_json_have_hex_ids_and_long_numbers_as_texts(void **state)
{
    buf item = {0}, body = {0};
    otlp_put_span(&item, OTLP_JSON, &SPAN);
    batch_of(&body, OTLP_JSON, OTLP_TRACES, &item, 2);
    json_t *root = read_json(&body), *s = at(root, "resourceSpans/0/scopeSpans/0/spans/1");
    assert_string_equal(text_at(root, "resourceSpans/0/resource/attributes/0/value/stringValue"), "shoal");
    assert_string_equal(text_at(root, "resourceSpans/0/scopeSpans/0/scope/name"), "shoal");
    assert_string_equal(text_at(root, "resourceSpans/0/scopeSpans/0/schemaUrl"), "https://x/1.37.0");
    assert_string_equal(text_at(s, "traceId"), "4bf90000000000000000000000000036");
    assert_string_equal(text_at(s, "spanId"), "00f067aa0ba902b7");
    assert_string_equal(text_at(s, "parentSpanId"), "b7ad6b7169203331");
    assert_string_equal(text_at(s, "startTimeUnixNano"), "1544712660000000000");
    assert_int_equal(json_integer_value(at(s, "kind")), 3);
    assert_int_equal(json_integer_value(at(s, "status/code")), 2);
    assert_string_equal(text_at(s, "attributes/1/value/intValue"), "-9223372036854775808");
    assert_true(json_real_value(at(s, "attributes/2/value/doubleValue")) == 0.25);
    assert_true(json_is_true(at(s, "attributes/3/value/boolValue")));
    assert_string_equal(text_at(s, "attributes/4/value/arrayValue/values/0/stringValue"), "stop");
    json_decref(root);
}

static void a_root_span_names_no_parent_and_a_good_one_no_status(void **state)
{
    buf item = {0}, body = {0};
    otlp_span s = SPAN;
    s.parent = 0;
    s.failed = false;
    s.n_attributes = 0;
    otlp_put_span(&item, OTLP_JSON, &s);
    batch_of(&body, OTLP_JSON, OTLP_TRACES, &item, 1);
    json_t *root = read_json(&body), *o = at(root, "resourceSpans/0/scopeSpans/0/spans/0");
    assert_null(json_object_get(o, "parentSpanId"));
    assert_null(json_object_get(o, "status"));
    assert_null(json_object_get(o, "attributes"));
    json_decref(root);
}

static const double BOUNDS[] = {0.1, 1};
static const uint64_t COUNTS[] = {5, 0, 2};
static const otlp_exemplar EXEMPLARS[] = {{{{1}, 7}, 0.05, 9}, {{{0}, 0}, 0, 0}, {{{2}, 8}, 3, 10}};
static const otlp_point POINTS[] = {
    {.value = 7.5, .counts = COUNTS, .exemplars = EXEMPLARS, .attributes = VALUES, .n_attributes = 1},
    {.value = 1, .counts = COUNTS}};
static const otlp_metric HISTOGRAM = {.name = "h",
                                      .help = "Help.",
                                      .unit = "s",
                                      .kind = OTLP_HISTOGRAM,
                                      .start_ns = 1,
                                      .at_ns = 2,
                                      .bounds = BOUNDS,
                                      .n_bounds = 2,
                                      .points = POINTS,
                                      .n_points = 2};

static Otlp__ExportMetricsServiceRequest *metrics_of(const otlp_metric *m)
{
    buf item = {0}, body = {0};
    otlp_put_metric(&item, OTLP_PROTOBUF, m);
    batch_of(&body, OTLP_PROTOBUF, OTLP_METRICS, &item, 1);
    Otlp__ExportMetricsServiceRequest *r =
        otlp__export_metrics_service_request__unpack(NULL, body.len, (const uint8_t *)body.data);
    buf_done(&body);
    assert_non_null(r);
    return r;
}

static void histograms_are_cumulative_and_have_exemplars(void **state)
{
    Otlp__ExportMetricsServiceRequest *r = metrics_of(&HISTOGRAM);
    const Otlp__Metric *m = r->resource_metrics[0]->scope_metrics[0]->metrics[0];
    assert_string_equal(m->name, "h");
    assert_string_equal(m->unit, "s");
    assert_int_equal(m->data_case, OTLP__METRIC__DATA_HISTOGRAM);
    assert_int_equal(m->histogram->aggregation_temporality, 2);
    assert_int_equal(m->histogram->n_data_points, 2);
    const Otlp__HistogramDataPoint *p = m->histogram->data_points[0];
    assert_int_equal(p->count, 7);
    assert_true(p->sum == 7.5);
    assert_int_equal(p->n_bucket_counts, 3);
    assert_int_equal(p->bucket_counts[2], 2);
    assert_int_equal(p->n_explicit_bounds, 2);
    assert_true(p->explicit_bounds[1] == 1);
    assert_int_equal(p->n_exemplars, 2);
    assert_int_equal(p->exemplars[1]->trace_id.data[0], 2);
    assert_int_equal(p->exemplars[1]->span_id.data[7], 8);
    assert_true(p->exemplars[1]->as_double == 3);
    assert_int_equal(p->n_attributes, 1);
    assert_int_equal(m->histogram->data_points[1]->n_exemplars, 0);
    otlp__export_metrics_service_request__free_unpacked(r, NULL);
}

static void sums_begin_somewhere_and_gauges_do_not(void **state)
{
    otlp_metric m = HISTOGRAM;
    m.kind = OTLP_SUM;
    Otlp__ExportMetricsServiceRequest *r = metrics_of(&m);
    const Otlp__Metric *sum = r->resource_metrics[0]->scope_metrics[0]->metrics[0];
    assert_int_equal(sum->data_case, OTLP__METRIC__DATA_SUM);
    assert_true(sum->sum->is_monotonic);
    assert_int_equal(sum->sum->aggregation_temporality, 2);
    assert_int_equal(sum->sum->data_points[0]->start_time_unix_nano, 1);
    assert_int_equal(sum->sum->data_points[0]->time_unix_nano, 2);
    assert_true(sum->sum->data_points[0]->as_double == 7.5);
    otlp__export_metrics_service_request__free_unpacked(r, NULL);
    m.kind = OTLP_GAUGE;
    r = metrics_of(&m);
    const Otlp__Metric *gauge = r->resource_metrics[0]->scope_metrics[0]->metrics[0];
    assert_int_equal(gauge->data_case, OTLP__METRIC__DATA_GAUGE);
    assert_int_equal(gauge->gauge->data_points[1]->start_time_unix_nano, 0);
    otlp__export_metrics_service_request__free_unpacked(r, NULL);
}

static void a_histogram_as_json_has_its_zeros(void **state)
{
    buf item = {0}, body = {0};
    otlp_put_metric(&item, OTLP_JSON, &HISTOGRAM);
    batch_of(&body, OTLP_JSON, OTLP_METRICS, &item, 1);
    json_t *root = read_json(&body);
    json_t *p = at(root, "resourceMetrics/0/scopeMetrics/0/metrics/0/histogram/dataPoints/0");
    assert_string_equal(text_at(p, "count"), "7");
    assert_string_equal(text_at(p, "bucketCounts/1"), "0");
    assert_true(json_number_value(at(p, "explicitBounds/0")) == 0.1);
    assert_true(json_number_value(at(p, "sum")) == 7.5);
    assert_string_equal(text_at(p, "exemplars/0/spanId"), "0000000000000007");
    json_decref(root);
}

static void log_records_name_their_trace(void **state)
{
    otlp_log l = {.at_ns = 5,
                  .observed_ns = 6,
                  .severity = OTLP_WARN,
                  .severity_text = "warn",
                  .body = "request",
                  .of = {{9}, 3},
                  .attributes = VALUES,
                  .n_attributes = 2};
    buf item = {0}, body = {0};
    otlp_put_log(&item, OTLP_PROTOBUF, &l);
    batch_of(&body, OTLP_PROTOBUF, OTLP_LOGS, &item, 1);
    Otlp__ExportLogsServiceRequest *r =
        otlp__export_logs_service_request__unpack(NULL, body.len, (const uint8_t *)body.data);
    buf_done(&body);
    assert_non_null(r);
    const Otlp__LogRecord *m = r->resource_logs[0]->scope_logs[0]->log_records[0];
    assert_int_equal(m->time_unix_nano, 5);
    assert_int_equal(m->observed_time_unix_nano, 6);
    assert_int_equal(m->severity_number, 13);
    assert_string_equal(m->body->string_value, "request");
    assert_int_equal(m->trace_id.data[0], 9);
    assert_int_equal(m->span_id.data[7], 3);
    assert_int_equal(m->n_attributes, 2);
    otlp__export_logs_service_request__free_unpacked(r, NULL);
    l.of = (otlp_trace){0};
    otlp_put_log(&item, OTLP_JSON, &l);
    batch_of(&body, OTLP_JSON, OTLP_LOGS, &item, 1);
    json_t *root = read_json(&body), *o = at(root, "resourceLogs/0/scopeLogs/0/logRecords/0");
    assert_string_equal(text_at(o, "body/stringValue"), "request");
    assert_null(json_object_get(o, "traceId"));
    json_decref(root);
}

static void answers_are_read_in_both_forms(void **state)
{
    static const char JSON[] =
        "{\"partialSuccess\":{\"rejectedLogRecords\":\"12\",\"errorMessage\":\"too old\"}}";
    static const uint8_t TOO_LONG[OTLP_ANSWER_MAX + 1];
    Otlp__PartialSuccess partial = OTLP__PARTIAL_SUCCESS__INIT;
    Otlp__ExportServiceResponse r = OTLP__EXPORT_SERVICE_RESPONSE__INIT;
    uint8_t packed[64];
    shoal_err err;
    otlp_answer a;
    partial.rejected = 3;
    partial.error_message = "no";
    r.partial_success = &partial;
    size_t n = otlp__export_service_response__pack(&r, packed);
    assert_int_equal(otlp_answer_parse(&a, false, packed, n, &err), 0);
    assert_int_equal(a.n_rejected, 3);
    assert_string_equal(a.why, "no");
    assert_int_equal(otlp_answer_parse(&a, true, JSON, sizeof JSON - 1, &err), 0);
    assert_int_equal(a.n_rejected, 12);
    assert_string_equal(a.why, "too old");
    assert_int_equal(otlp_answer_parse(&a, true, "{}", 2, &err), 0);
    assert_int_equal(a.n_rejected, 0);
    assert_int_equal(otlp_answer_parse(&a, false, "", 0, &err), 0);
    assert_int_equal(otlp_answer_parse(&a, false, "\xff\xff", 2, &err), SHOAL_EFORMAT);
    assert_int_equal(otlp_answer_parse(&a, true, "<html>", 6, &err), SHOAL_EFORMAT);
    assert_int_equal(otlp_answer_parse(&a, false, TOO_LONG, sizeof TOO_LONG, &err), SHOAL_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_read_back_from_protobuf),
        cmocka_unit_test(spans_as_json_have_hex_ids_and_long_numbers_as_texts),
        cmocka_unit_test(a_root_span_names_no_parent_and_a_good_one_no_status),
        cmocka_unit_test(histograms_are_cumulative_and_have_exemplars),
        cmocka_unit_test(sums_begin_somewhere_and_gauges_do_not),
        cmocka_unit_test(a_histogram_as_json_has_its_zeros),
        cmocka_unit_test(log_records_name_their_trace),
        cmocka_unit_test(answers_are_read_in_both_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
