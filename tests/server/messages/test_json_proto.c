/* Messages of shoal.proto as JSON, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "messages/json_proto.h"
#include "base/proto_wire.h"

static proto_schema *schema;

static int setup(void **state)
{
    shoal_err err;
    int rc = proto_schema_new(&schema, PUBLIC_PROTOS, PUBLIC_PROTOS_BYTES, &err);
    if (rc != 0) fprintf(stderr, "%s\n", err.message);
    return rc;
}

static int teardown(void **state)
{
    proto_schema_free(schema);
    return 0;
}

static const proto_message *message(const char *name)
{
    const proto_message *m = proto_schema_message(schema, name);
    if (!m) fail_msg("%s is not in the schema", name);
    return m;
}

static void reads(const char *name, const buf *bytes, const char *expected)
{
    shoal_err err = {0};
    json_t *v = NULL;
    buf text = {0};
    if (json_proto_read(&v, message(name), (const uint8_t *)bytes->data, bytes->len, &err) != 0)
        fail_msg("%s: %s", name, err.message);
    json_put(&text, v);
    assert_string_equal(text.data, expected);
    buf_done(&text);
    json_decref(v);
}

static void refuses(const char *name, const buf *bytes, int code, const char *why)
{
    shoal_err err = {0};
    json_t *v = NULL;
    int rc = json_proto_read(&v, message(name), (const uint8_t *)bytes->data, bytes->len, &err);
    assert_int_equal(rc, code);
    if (!strstr(err.message, why)) fail_msg("'%s' is not in: %s", why, err.message);
    assert_null(v);
}

/* What comes back from JSON by way of a message. */
static void keeps(const char *name, const char *json, const char *expected)
{
    shoal_err err = {0};
    json_t *v = NULL;
    buf out = {0};
    assert_int_equal(json_parse(&v, json, strlen(json), "test", &err), 0);
    if (json_proto_write(&out, message(name), v, &err) != 0) fail_msg("%s: %s", json, err.message);
    reads(name, &out, expected);
    json_decref(v);
    buf_done(&out);
}

static void read_takes_what_is_there(void **state)
{
    buf b = {0}, m = {0};
    reads("shoal.v1.ChatRequest", &b, "{}");
    proto_put_text(&b, 1, "small");
    proto_put_text(&m, 1, "user");
    proto_put_text(&m, 2, "hi \"you\"");
    proto_put_bytes(&b, 2, m.data, m.len);
    proto_put_fixed64(&b, 5, 0); /* temperature: set, to nothing */
    proto_put_number(&b, 12, (uint64_t)-7);
    proto_put_text(&b, 13, "a");
    proto_put_text(&b, 13, "b");
    proto_put_number(&b, 14, 1);
    proto_put_text(&b, 18, "\"auto\"");
    proto_put_text(&b, 100, "{\"user\":\"u\"}");
    proto_put_text(&b, 999, "of a later version");
    reads("shoal.v1.ChatRequest", &b,
          "{\"model\":\"small\",\"messages\":[{\"role\":\"user\",\"content\":\"hi \\\"you\\\"\"}],"
          "\"temperature\":0.0,\"seed\":-7,\"stop\":[\"a\",\"b\"],\"logprobs\":true,\"tool_choice\":\"auto\","
          "\"user\":\"u\"}");
    buf_done(&b);
    buf_done(&m);
}

static void read_takes_the_last_and_adds_to_messages(void **state)
{
    buf b = {0}, one = {0}, two = {0};
    proto_put_text(&b, 1, "first");
    proto_put_text(&b, 1, "last");
    proto_put_number(&one, 1, 1);
    proto_put_bytes(&b, 24, one.data, one.len);
    proto_put_bytes(&b, 24, two.data, 0);
    reads("shoal.v1.ChatRequest", &b, "{\"model\":\"last\",\"stream_options\":{\"include_usage\":true}}");
    buf_done(&b);
    buf_done(&one);
}

static void read_refuses_by_name(void **state)
{
    buf b = {0};
    proto_put_text(&b, 17, "[1,");
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EFORMAT, "tools_json");
    buf_clear(&b);
    proto_put_text(&b, 1, "\xff");
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EINVALID, "model: is not UTF-8");
    buf_clear(&b);
    proto_put_text(&b, 1, "m");
    proto_put_text(&b, 100, "{\"model\":\"other\"}");
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EINVALID, "more_json: model");
    buf_clear(&b);
    proto_put_text(&b, 100, "[]");
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EINVALID, "must be a JSON object");
    buf_clear(&b);
    proto_put_fixed64(&b, 5, 0x7FF0000000000000);
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EINVALID, "temperature: must be a finite number");
    buf_clear(&b);
    proto_put_text(&b, 5, "hot");
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EFORMAT, "malformed");
    buf_clear(&b);
    proto_put_text(&b, 1, "cut");
    b.len--;
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EFORMAT, "malformed");
    buf_done(&b);
}

static void read_refuses_text_and_json_of_one_member(void **state)
{
    buf b = {0}, m = {0};
    proto_put_text(&m, 2, "text");
    proto_put_text(&m, 3, "[]");
    proto_put_bytes(&b, 2, m.data, m.len);
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EINVALID, "content_json: is given twice");
    buf_clear(&b); /* in the other order, too */
    buf_clear(&m);
    proto_put_text(&m, 3, "[]");
    proto_put_text(&m, 2, "text");
    proto_put_bytes(&b, 2, m.data, m.len);
    refuses("shoal.v1.ChatRequest", &b, SHOAL_EINVALID, "content_json: is given twice");
    buf_done(&b);
    buf_done(&m);
}

static void read_counts_values(void **state)
{
    buf b = {0};
    for (size_t i = 0; i <= JSON_PROTO_VALUES_MAX; i++) buf_append(&b, "\x6a\0", 2); /* stop: "" */
    refuses("shoal.v1.ChatRequest", &b, SHOAL_ELIMIT, "values");
    buf_done(&b);
}

static void read_limits_depth(void **state)
{
    buf b = {0};
    for (int i = 0; i < 70; i++) { /* top_logprobs in top_logprobs */
        buf outer = {0};
        proto_put_bytes(&outer, 4, b.data, b.len);
        buf_done(&b);
        b = outer;
    }
    refuses("shoal.v1.ChatLogprob", &b, SHOAL_ELIMIT, "nest");
    buf_done(&b);
}

static void lists_of_numbers_may_be_packed_or_not(void **state)
{
    buf b = {0};
    proto_put_number(&b, 3, 300);
    proto_put_bytes(&b, 3, "\x01\xac\x02", 3);
    reads("shoal.v1.ChatLogprob", &b, "{\"bytes\":[300,1,300]}");
    buf_clear(&b);
    proto_put_bytes(&b, 3, "\x80", 1);
    refuses("shoal.v1.ChatLogprob", &b, SHOAL_EFORMAT, "bytes: the list is malformed");
    buf_done(&b);
}

static void files_are_base64(void **state)
{
    buf b = {0};
    proto_put_bytes(&b, 2, "\0\xff", 2);
    reads("shoal.v1.VadRequest", &b, "{\"file\":\"AP8=\"}");
    buf_done(&b);
    keeps("shoal.v1.VadRequest", "{\"file\":\"AP8=\"}", "{\"file\":\"AP8=\"}");
}

static void write_keeps_what_a_version_does_not_know(void **state)
{
    keeps("shoal.v1.ChatChunk",
          "{\"id\":\"c\",\"choices\":[{\"index\":0,\"new\":[1,0.1]}],\"usage\":null,\"x\":{}}",
          "{\"id\":\"c\",\"choices\":[{\"index\":0,\"new\":[1,0.10000000000000001]}],\"x\":{}}");
    keeps("shoal.v1.ChatMessage", "{\"content\":[{\"type\":\"text\"}]}",
          "{\"content\":[{\"type\":\"text\"}]}");
    keeps("shoal.v1.ChatChunk", "{\"created\":\"soon\",\"usage\":{\"prompt_tokens\":-1}}",
          "{\"usage\":{\"prompt_tokens\":-1},\"created\":\"soon\"}");
    keeps("shoal.v1.EmbeddingRow", "{\"embedding\":[0.5,-1],\"unknown\":1}", "{\"embedding\":[0.5,-1.0]}");
}

static void write_says_numbers_as_short_as_they_are(void **state)
{
    static const char text[] = "{\"data\":[],\"usage\":{\"rows\":3,\"share\":0.99474,\"whole\":2.0}}";
    json_t *v = NULL;
    buf out = {0};
    assert_int_equal(json_parse(&v, text, sizeof text - 1, "test", NULL), 0);
    assert_int_equal(json_proto_write(&out, message("shoal.v1.ScoringResponse"), v, NULL), 0);
    assert_non_null(strstr(out.data, "{\"rows\":3,\"share\":0.99474,\"whole\":2.0}"));
    json_decref(v);
    buf_done(&out);
}

static void schema_knows_services_methods_and_files(void **state)
{
    const proto_method *m = proto_schema_method(schema, "/shoal.v1.Shoal/Transcribe");
    assert_true(m && m->streams_in && m->streams_out);
    assert_string_equal(m->input->name, "shoal.v1.TranscriptionRequest");
    assert_null(proto_schema_method(schema, "/shoal.v1.Shoal/"));
    static const char *const of_shoal[] = {"shoal.v1.Shoal", "shoal.v1.Shoal.Chat",
                                           "shoal.v1.ToolCall.Function", "shoal.v1.ChatRequest.model"};
    for (size_t i = 0; i < sizeof of_shoal / sizeof *of_shoal; i++)
        assert_string_equal(proto_schema_file_of(schema, of_shoal[i])->name, "shoal/v1/shoal.proto");
    assert_string_equal(
        proto_schema_file_of(schema, "grpc.health.v1.HealthCheckResponse.ServingStatus")->name,
        "grpc/health/v1/health.proto");
    assert_null(proto_schema_file_of(schema, "shoal.v1.Worker"));
}

/* Types that json_proto.c does not map would be read as whole numbers. */
static void every_field_has_a_type_that_is_mapped(void **state)
{
    static const char *const inputs[] = {"shoal.v1.ChatRequest", "shoal.v1.PipelineEvent",
                                         "shoal.v1.StatusResponse"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        for (size_t k = 0; k < message(inputs[i])->n; k++) {
            proto_type t = message(inputs[i])->fields[k].type;
            assert_true(t <= PROTO_INT32 || (t >= PROTO_BOOL && t <= PROTO_STRING) ||
                        (t >= PROTO_MESSAGE && t <= PROTO_ENUM));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_takes_what_is_there),
        cmocka_unit_test(read_takes_the_last_and_adds_to_messages),
        cmocka_unit_test(read_refuses_by_name),
        cmocka_unit_test(read_refuses_text_and_json_of_one_member),
        cmocka_unit_test(read_counts_values),
        cmocka_unit_test(read_limits_depth),
        cmocka_unit_test(lists_of_numbers_may_be_packed_or_not),
        cmocka_unit_test(files_are_base64),
        cmocka_unit_test(write_keeps_what_a_version_does_not_know),
        cmocka_unit_test(write_says_numbers_as_short_as_they_are),
        cmocka_unit_test(schema_knows_services_methods_and_files),
        cmocka_unit_test(every_field_has_a_type_that_is_mapped),
    };
    return cmocka_run_group_tests_name("json_proto", tests, setup, teardown);
}
