/* Calls of gRPC as requests of HTTP, answers as messages, errors as statuses. */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "messages/json_proto.h"
#include "base/proto_wire.h"
#include "base/utf8.h"
#include "ingress/grpc_fault.h"
#include "ingress/grpc_rpc.h"

static proto_schema *schema;

static int setup(void **state)
{
    return proto_schema_new(&schema, PUBLIC_PROTOS, PUBLIC_PROTOS_BYTES, NULL);
}

static int teardown(void **state)
{
    proto_schema_free(schema);
    return 0;
}

static const grpc_rpc *rpc_named(const char *path)
{
    for (size_t i = 0; i < N_GRPC_RPCS; i++)
        if (strcmp(GRPC_RPCS[i].path, path) == 0) return &GRPC_RPCS[i];
    fail_msg("no call %s", path);
    return NULL;
}

static int ask(grpc_ask *ret, const char *path, const buf *msg, api_error *e)
{
    const proto_method *m = proto_schema_method(schema, path);
    assert_non_null(m);
    return grpc_rpc_ask(ret, rpc_named(path), m->input, (const uint8_t *)msg->data, msg->len, e);
}

static void asks(const char *path, const buf *msg, const char *target, const char *body)
{
    grpc_ask a;
    api_error e = {0};
    if (ask(&a, path, msg, &e) != 0) fail_msg("%s: %s", path, e.message);
    assert_string_equal(a.path.data, target);
    if (body) assert_string_equal(a.body.len ? a.body.data : "", body);
    grpc_ask_done(&a);
}

static void every_call_is_in_the_schema(void **state)
{
    for (size_t i = 0; i < N_GRPC_RPCS; i++) {
        const proto_method *m = proto_schema_method(schema, GRPC_RPCS[i].path);
        if (!m) fail_msg("%s is not in the schema", GRPC_RPCS[i].path);
        assert_int_equal(m->streams_out, (GRPC_RPCS[i].how & (RPC_STREAMS | RPC_MANY)) != 0);
        assert_int_equal(m->streams_in, (GRPC_RPCS[i].how & (RPC_PIECES | RPC_MANY)) != 0);
    }
}

static void messages_become_requests(void **state)
{
    buf b = {0};
    asks("/shoal.v1.Shoal/ListModels", &b, "/v1/models", "");
    proto_put_text(&b, 1, "m");
    asks("/shoal.v1.Shoal/Chat", &b, "/v1/chat/completions", "{\"model\":\"m\"}");
    asks("/shoal.v1.Shoal/ChatStream", &b, "/v1/chat/completions", "{\"model\":\"m\",\"stream\":true}");
    buf_done(&b);
}

/* Settings are an object over REST, and a map of typed values over gRPC. */
static void settings_go_both_ways(void **state)
{
    buf b = {0}, entry = {0}, out = {0};
    shoal_err err = {0};
    static const char LEVEL[] = "{\"trace_level\":[\"OFF\"],\"trace_rate\":\"0\"}";
    asks("/inference.GRPCInferenceService/TraceSetting", &b, "/v2/trace/setting", "{}");
    proto_put_text(&entry, 1, "trace_level");
    proto_put_bytes(&entry, 2, "\x0a\x01x", 3);
    proto_put_bytes(&b, 1, entry.data, entry.len);
    asks("/inference.GRPCInferenceService/TraceSetting", &b, "/v2/trace/setting",
         "{\"trace_level\":{\"value\":[\"x\"]}}");
    proto_put_text(&b, 2, "m");
    asks("/inference.GRPCInferenceService/TraceSetting", &b, "/v2/models/m/trace/setting", NULL);
    const grpc_rpc *rpc = rpc_named("/inference.GRPCInferenceService/TraceSetting");
    grpc_answer a = {200, LEVEL, strlen(LEVEL), strlen(LEVEL)};
    const proto_method *m = proto_schema_method(schema, rpc->path);
    assert_int_equal(grpc_rpc_answer(&out, rpc, m->output, &a, &err), 0);
    json_t *said = NULL;
    assert_int_equal(json_proto_read(&said, m->output, (const uint8_t *)out.data, out.len, &err), 0);
    char *text = json_dumps(said, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"settings\":[{\"key\":\"trace_level\",\"value\":{\"value\":[\"OFF\"]}},"
                              "{\"key\":\"trace_rate\",\"value\":{\"value\":[\"0\"]}}]}");
    free(text);
    json_decref(said);
    buf_done(&b);
    buf_done(&entry);
    buf_done(&out);
}

static void configurations_have_enums(void **state)
{
    static const char CONFIG[] =
        "{\"name\":\"m\",\"input\":[{\"name\":\"t\",\"data_type\":\"TYPE_STRING\",\"dims\":[-1]}],"
        "\"instance_group\":[{\"kind\":\"KIND_CPU\",\"count\":2}]}";
    const grpc_rpc *rpc = rpc_named("/inference.GRPCInferenceService/ModelConfig");
    const proto_method *m = proto_schema_method(schema, rpc->path);
    grpc_answer a = {200, CONFIG, strlen(CONFIG), strlen(CONFIG)};
    buf out = {0};
    shoal_err err = {0};
    json_t *said = NULL;
    assert_int_equal(grpc_rpc_answer(&out, rpc, m->output, &a, &err), 0);
    assert_int_equal(json_proto_read(&said, m->output, (const uint8_t *)out.data, out.len, &err), 0);
    const json_t *config = json_object_get(said, "config");
    const json_t *input = json_array_get(json_object_get(config, "input"), 0);
    assert_int_equal(json_integer_value(json_object_get(input, "data_type")), 13);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(input, "dims"), 0)), -1);
    const json_t *group = json_array_get(json_object_get(config, "instance_group"), 0);
    assert_int_equal(json_integer_value(json_object_get(group, "kind")), 2);
    json_decref(said);
    buf_done(&out);
}

static void members_go_into_the_path(void **state)
{
    buf b = {0};
    grpc_ask a;
    api_error e = {0};
    assert_int_equal(ask(&a, "/shoal.v1.Shoal/Search", &b, &e), 400);
    assert_string_equal(e.param, "collection");
    grpc_ask_done(&a);
    proto_put_text(&b, 1, "a/\xc3\xa4 b");
    proto_put_text(&b, 2, "q");
    asks("/shoal.v1.Shoal/Search", &b, "/v1/collections/a%2F%C3%A4%20b/search", "{\"query\":\"q\"}");
    buf_clear(&b);
    proto_put_text(&b, 1, "m");
    asks("/inference.GRPCInferenceService/ModelReady", &b, "/v2/models/m/ready", "");
    proto_put_text(&b, 2, "1.0");
    asks("/inference.GRPCInferenceService/ModelReady", &b, "/v2/models/m/versions/1.0/ready", "");
    asks("/inference.GRPCInferenceService/RepositoryModelLoad", &b, "/v2/repository/models/1.0/load", NULL);
    buf_clear(&b);
    proto_put_text(&b, 1, "m");
    asks("/inference.GRPCInferenceService/RepositoryModelLoad", &b, "/v2/repository/models/m/load", NULL);
    buf_done(&b);
}

static void unauthenticated_messages_are_not_read(void **state)
{
    for (size_t i = 0; i < N_GRPC_RPCS; i++) {
        grpc_ask a;
        api_error e;
        assert_int_equal(grpc_rpc_ask_nothing(&a, &GRPC_RPCS[i], &e), 0);
        assert_null(strpbrk(a.path.data, "{}[]"));
        assert_int_equal(a.path.data[0], '/');
        grpc_ask_done(&a);
    }
}

static void files_go_into_forms(void **state)
{
    buf b = {0};
    grpc_ask a;
    api_error e = {0};
    proto_put_text(&b, 1, "ears");
    proto_put_bytes(&b, 2, "\0\r\n--\xff", 6);
    proto_put_fixed64(&b, 3, 0x3FE0000000000000);
    proto_put_number(&b, 8, 1);
    assert_int_equal(ask(&a, "/shoal.v1.Shoal/Vad", &b, &e), 0);
    const char *boundary = strstr(a.type, "boundary=") + strlen("boundary=");
    char expected[600];
    int n = snprintf(expected, sizeof expected,
                     "--%s\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nears\r\n"
                     "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n\r\n",
                     boundary, boundary);
    assert_memory_equal(a.body.data, expected, (size_t)n);
    assert_memory_equal(a.body.data + n, "\0\r\n--\xff\r\n", 8);
    assert_non_null(strstr(a.body.data + n + 8, "name=\"threshold\"\r\n\r\n0.5\r\n"));
    assert_non_null(strstr(a.body.data + n + 8, "name=\"probabilities\"\r\n\r\ntrue\r\n"));
    assert_memory_equal(a.body.data + a.body.len - 4, "--\r\n", 4);
    grpc_ask_done(&a);
    buf_done(&b);
}

static void pieces_leave_their_fields_in_the_query(void **state)
{
    buf b = {0};
    grpc_ask a;
    api_error e = {0};
    const uint8_t *piece;
    size_t n;
    const proto_message *m = proto_schema_message(schema, "shoal.v1.TranscriptionRequest");
    proto_put_text(&b, 1, "e&r");
    proto_put_bytes(&b, 6, "\xff\0sound", 7);
    proto_put_text(&b, 2, "de");
    assert_int_equal(ask(&a, "/shoal.v1.Shoal/Transcribe", &b, &e), 0);
    assert_string_equal(a.path.data, "/v1/audio/transcriptions");
    assert_string_equal(a.query.data, "model=e%26r&language=de&stream=true");
    assert_int_equal(a.body.len, 0);
    assert_true(grpc_rpc_piece(m, (const uint8_t *)b.data, b.len, &piece, &n) && n == 7);
    assert_memory_equal(piece, "\xff\0sound", 7);
    assert_false(grpc_rpc_piece(m, (const uint8_t *)b.data, b.len - 1, &piece, &n));
    grpc_ask_done(&a);
    proto_put_number(&b, 5, 1);
    assert_int_equal(ask(&a, "/shoal.v1.Shoal/Transcribe", &b, &e), 0);
    assert_string_equal(a.path.data, "/v1/audio/translations");
    assert_null(strstr(a.query.data, "translate"));
    grpc_ask_done(&a);
    buf_done(&b);
}

/* One input of texts, and a parameter. */
static void put_infer(buf *b, const char *raw, size_t n_raw)
{
    buf in = {0}, pair = {0}, value = {0};
    proto_put_text(b, 1, "m");
    proto_put_number(&value, 2, 5);
    proto_put_text(&pair, 1, "max_tokens");
    proto_put_bytes(&pair, 2, value.data, value.len);
    proto_put_bytes(b, 4, pair.data, pair.len);
    proto_put_text(&in, 1, "text");
    proto_put_text(&in, 2, "BYTES");
    proto_put_number(&in, 3, 1);
    proto_put_bytes(b, 5, in.data, in.len);
    proto_put_bytes(b, 7, raw, n_raw);
    buf_done(&in);
    buf_done(&pair);
    buf_done(&value);
}

static void tensors_go_behind_the_json(void **state)
{
    buf b = {0};
    grpc_ask a;
    api_error e = {0};
    put_infer(&b, "\2\0\0\0hi", 6);
    assert_int_equal(ask(&a, "/inference.GRPCInferenceService/ModelInfer", &b, &e), 0);
    assert_string_equal(a.path.data, "/v2/models/m/infer");
    static const char json[] =
        "{\"parameters\":{\"max_tokens\":5,\"binary_data_output\":true},\"inputs\":[{\"name\":\"text\","
        "\"datatype\":\"BYTES\",\"shape\":[1],\"parameters\":{\"binary_data_size\":6}}]}";
    assert_memory_equal(a.body.data, json, sizeof json - 1);
    assert_int_equal(a.body.len, sizeof json - 1 + 6);
    assert_memory_equal(a.body.data + sizeof json - 1, "\2\0\0\0hi", 6);
    assert_int_equal(atoi(a.n_json), sizeof json - 1);
    grpc_ask_done(&a);
    proto_put_bytes(&b, 7, "", 0);
    assert_int_equal(ask(&a, "/inference.GRPCInferenceService/ModelInfer", &b, &e), 400);
    assert_string_equal(e.param, "raw_input_contents");
    grpc_ask_done(&a);
    buf_done(&b);
}

/* "binary_data": false of an output: they come as contents. */
static void outputs_may_be_wanted_as_contents(void **state)
{
    buf b = {0}, out = {0}, pair = {0};
    grpc_ask a;
    api_error e = {0};
    put_infer(&b, "\2\0\0\0hi", 6);
    proto_put_text(&pair, 1, "binary_data");
    proto_put_bytes(&pair, 2, "\10\0", 2);
    proto_put_text(&out, 1, "label");
    proto_put_bytes(&out, 2, pair.data, pair.len);
    proto_put_bytes(&b, 6, out.data, out.len);
    assert_int_equal(ask(&a, "/inference.GRPCInferenceService/ModelInfer", &b, &e), 0);
    assert_non_null(strstr(a.body.data, "\"binary_data_output\":false"));
    assert_non_null(strstr(a.body.data, "\"outputs\":[{\"name\":\"label\",\"parameters\":{}}]"));
    grpc_ask_done(&a);
    buf_done(&b);
    buf_done(&out);
    buf_done(&pair);
}

static int answer(const char *path, int status, const char *bytes, size_t n, size_t n_json,
                  const char *expected)
{
    const grpc_answer a = {status, bytes, n, n_json};
    const proto_message *m = proto_schema_method(schema, path)->output;
    buf out = {0}, text = {0};
    json_t *v = NULL;
    assert_true(grpc_rpc_is_answer(rpc_named(path), &a));
    int rc = grpc_rpc_answer(&out, rpc_named(path), m, &a, NULL);
    if (rc == 0) {
        assert_int_equal(json_proto_read(&v, m, (const uint8_t *)out.data, out.len, NULL), 0);
        json_put(&text, v);
        assert_string_equal(text.data, expected);
    }
    json_decref(v);
    buf_done(&out);
    buf_done(&text);
    return rc;
}

static void answers_become_messages(void **state)
{
    static const char no[] = "{\"name\":\"m\",\"ready\":false}",
                      index[] = "[{\"name\":\"a\",\"state\":\"READY\"}]";
    static const char error[] = "{\"error\":\"no such model\"}";
    static const char infer[] =
        "{\"model_name\":\"m\",\"outputs\":[{\"name\":\"o\",\"datatype\":\"BOOL\",\"shape\":[2],"
        "\"parameters\":{\"binary_data_size\":2}}]}\1\0";
    size_t n = sizeof infer - 1 - 2;
    answer("/inference.GRPCInferenceService/ModelReady", 400, no, sizeof no - 1, sizeof no - 1,
           "{\"ready\":false}");
    answer("/inference.GRPCInferenceService/RepositoryIndex", 200, index, sizeof index - 1, sizeof index - 1,
           "{\"models\":[{\"name\":\"a\",\"state\":\"READY\"}]}");
    answer("/inference.GRPCInferenceService/RepositoryModelUnload", 200, "{}", 2, 2, "{\"isUnloaded\":true}");
    const char *path = "/inference.GRPCInferenceService/ModelInfer";
    assert_int_equal(
        answer(path, 200, infer, n + 2, n,
               "{\"model_name\":\"m\",\"outputs\":[{\"name\":\"o\",\"datatype\":\"BOOL\",\"shape\":[2]}],"
               "\"raw_output_contents\":[\"AQA=\"]}"),
        0);
    static const char data[] = "{\"outputs\":[{\"name\":\"o\",\"datatype\":\"FP32\",\"shape\":[2],"
                               "\"data\":[0.5,0.25]},{\"name\":\"l\",\"datatype\":\"BYTES\",\"shape\":[1],"
                               "\"data\":[\"hi\"]}]}";
    assert_int_equal(
        answer(path, 200, data, sizeof data - 1, sizeof data - 1,
               "{\"outputs\":[{\"name\":\"o\",\"datatype\":\"FP32\",\"shape\":[2],\"contents\":"
               "{\"fp32_contents\":[0.5,0.25]}},{\"name\":\"l\",\"datatype\":\"BYTES\",\"shape\":[1],"
               "\"contents\":{\"bytes_contents\":[\"aGk=\"]}}]}"),
        0);
    assert_int_equal(answer(path, 200, infer, n + 1, n, ""), SHOAL_EFORMAT);
    assert_int_equal(answer(path, 200, infer, n, n + 1, ""), SHOAL_EFORMAT);
    const grpc_answer refused = {404, error, sizeof error - 1, sizeof error - 1};
    assert_false(grpc_rpc_is_answer(rpc_named("/inference.GRPCInferenceService/ModelReady"), &refused));
}

static void errors_keep_their_sentence_code_and_patience(void **state)
{
    static const char body[] =
        "{\"error\":{\"message\":\"wait\",\"type\":\"rate_limit_error\",\"param\":null,"
        "\"code\":\"queue_full\"}}";
    grpc_fault f;
    buf details = {0};
    grpc_fault_from_body(&f, 429, body, sizeof body - 1, 3);
    assert_int_equal(f.status, GRPC_RESOURCE_EXHAUSTED);
    assert_string_equal(f.message.data, "wait");
    assert_int_equal(base64_decode(&details, f.details.data, f.details.len), 0);
    static const char *const has[] = {"google.rpc.ErrorInfo", "queue_full", "rate_limit_error", "429",
                                      "google.rpc.RetryInfo"};
    for (size_t i = 0; i < sizeof has / sizeof *has; i++)
        assert_non_null(memmem(details.data, details.len, has[i], strlen(has[i])));
    grpc_fault_done(&f);
    buf_done(&details);
    grpc_fault_from_body(&f, 404, "{\"error\":\"no such model\"}", 25, 0);
    assert_true(f.status == GRPC_NOT_FOUND && strcmp(f.message.data, "no such model") == 0);
    grpc_fault_done(&f);
    grpc_fault_from_body(&f, 500, "", 0, 0);
    assert_true(f.status == GRPC_INTERNAL && f.message.len > 0);
    grpc_fault_done(&f);
}

static void errors_of_streams_tell_by_their_type(void **state)
{
    static const struct {
        const char *body;
        grpc_status status;
    } cases[] = {
        {"{\"error\":{\"message\":\"m\",\"type\":\"timeout_error\"}}", GRPC_DEADLINE_EXCEEDED},
        {"{\"error\":{\"message\":\"m\",\"type\":\"service_unavailable\"}}", GRPC_UNAVAILABLE},
        {"{\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\"}}", GRPC_INVALID_ARGUMENT},
        {"{\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}", GRPC_INTERNAL},
        {"{\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"code\":\"out_of_memory\"}}",
         GRPC_RESOURCE_EXHAUSTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grpc_fault f;
        grpc_fault_from_body(&f, 0, cases[i].body, strlen(cases[i].body), 0);
        assert_int_equal(f.status, cases[i].status);
        grpc_fault_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_in_the_schema),
        cmocka_unit_test(messages_become_requests),
        cmocka_unit_test(settings_go_both_ways),
        cmocka_unit_test(configurations_have_enums),
        cmocka_unit_test(members_go_into_the_path),
        cmocka_unit_test(unauthenticated_messages_are_not_read),
        cmocka_unit_test(files_go_into_forms),
        cmocka_unit_test(pieces_leave_their_fields_in_the_query),
        cmocka_unit_test(outputs_may_be_wanted_as_contents),
        cmocka_unit_test(tensors_go_behind_the_json),
        cmocka_unit_test(answers_become_messages),
        cmocka_unit_test(errors_keep_their_sentence_code_and_patience),
        cmocka_unit_test(errors_of_streams_tell_by_their_type),
    };
    return cmocka_run_group_tests_name("grpc_rpc", tests, setup, teardown);
}
