/* Tensors of the Open Inference Protocol: their bytes, their JSON, and what they ask of a task's endpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dialects/kserve.h"
#include "json/json.h"

static int read_body(kserve_ask *a, const char *json, const void *tail, size_t n_tail, api_error *e)
{
    buf body = {0};
    buf_puts(&body, json);
    buf_append(&body, tail, n_tail);
    int rc = kserve_ask_read(a, body.data, body.len, strlen(json), e);
    buf_done(&body);
    return rc;
}

static kserve_ask read_ok(const char *json)
{
    kserve_ask a;
    api_error e = {0};
    if (read_body(&a, json, NULL, 0, &e) != 0) fail_msg("%s\n%s", json, e.message);
    return a;
}

static Shoal__V1__ModelInfo model_of(const char *task)
{
    Shoal__V1__ModelInfo m = SHOAL__V1__MODEL_INFO__INIT;
    m.task = (char *)task;
    return m;
}

/* What is asked of our endpoint; the caller frees it. */
static char *asked(const char *json, const Shoal__V1__ModelInfo *info, const char *want_path)
{
    kserve_ask a = read_ok(json);
    buf body = {0};
    api_error e = {0};
    const char *path = "";
    if (kserve_ask_ours(&a.in, a.params, "m", info, &path, &body, &e) != 0)
        fail_msg("%s\n%s", json, e.message);
    assert_string_equal(path, want_path);
    kserve_ask_done(&a);
    return buf_take(&body);
}

static void expect_asked(const char *json, const Shoal__V1__ModelInfo *info, const char *path,
                         const char *want)
{
    char *got = asked(json, info, path);
    assert_string_equal(got, want);
    free(got);
}

static void kserve_data_comes_flat_or_in_rows(void **state)
{
    kserve_ask a =
        read_ok("{\"id\":\"7\",\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[["
                "1,2],[0.1,null]]},"
                "{\"name\":\"b\",\"datatype\":\"INT8\",\"shape\":[3],\"data\":[-128,0,127]},"
                "{\"name\":\"c\",\"datatype\":\"BOOL\",\"shape\":[],\"data\":[true]},"
                "{\"name\":\"d\",\"datatype\":\"BYTES\",\"shape\":[1,2],\"data\":[\"\",\"\u00e9\"]}]}");
    assert_string_equal(a.id, "7");
    assert_int_equal(a.in.n, 4);
    const float *f = (const float *)(const void *)a.in.items[0].raw.data;
    assert_true(f[0] == 1 && f[1] == 2 && f[2] == 0.1f && isnan(f[3]));
    assert_memory_equal(a.in.items[1].raw.data, "\x80\x00\x7f", 3);
    assert_int_equal(a.in.items[2].n, 1);
    size_t at = 0, n;
    assert_string_equal(kserve_next_text(&a.in.items[3], &at, &n), "\2");
    assert_int_equal(n, 0);
    assert_memory_equal(kserve_next_text(&a.in.items[3], &at, &n), "\xc3\xa9", 2);
    assert_int_equal(n, 2);
    kserve_ask_done(&a);
}

static void kserve_every_type_comes_back(void **state)
{
    static const char *const DATA[] = {"[true,false]",
                                       "[0,255]",
                                       "[0,65535]",
                                       "[0,4294967295]",
                                       "[0,9223372036854775807]",
                                       "[-128,127]",
                                       "[-32768,32767]",
                                       "[-2147483648,2147483647]",
                                       "[-9223372036854775808,9223372036854775807]",
                                       "[0.100000001,-3]",
                                       "[0.10000000000000001,-2.5]",
                                       "[\"a\\\"b\",\"\"]"};
    assert_int_equal(sizeof DATA / sizeof *DATA, KSERVE_N_TYPES);
    for (size_t i = 0; i < KSERVE_N_TYPES; i++) {
        buf json = {0}, out = {0};
        buf_printf(&json, "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"%s\",\"shape\":[2],\"data\":%s}]}",
                   kserve_type_name((kserve_type)i), DATA[i]);
        kserve_ask a = read_ok(json.data);
        kserve_put_data(&out, &a.in.items[0]);
        assert_string_equal(out.data, DATA[i]);
        kserve_ask_done(&a);
        buf_done(&json);
        buf_done(&out);
    }
}

static void kserve_refuses_what_does_not_agree(void **state)
{
    static const struct {
        const char *json, *word;
    } CASES[] = {
        {"{}", "\"inputs\""},
        {"{\"inputs\":[]}", "\"inputs\""},
        {"{\"inputs\":[7]}", "inputs[0]"},
        {"{\"inputs\":[{\"name\":\"a\"}]}", "datatype"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP16\",\"shape\":[1],\"data\":[1]}]}", "FP16"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"data\":[1]}]}", "shape"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1.5],\"data\":[1]}]}",
         "whole numbers"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[-1],\"data\":[1]}]}", "is -1"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1]}]}",
         "has 1 elements"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[4294967296,4294967296,0],\"data\":[]}"
         "]}",
         "more elements"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data\":[1]}]}",
         "at most 8"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1e39]}]}", "no FP32"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[128]}]}", "no INT8"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[1.5]}]}", "no INT32"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"UINT64\",\"shape\":[1],\"data\":[-1]}]}", "no UINT64"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[1]}]}", "no BYTES"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"BOOL\",\"shape\":[1],\"data\":[1]}]}", "no BOOL"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1]}]}", "\"data\""},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[0],\"data\":[]},"
         "{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[0],\"data\":[]}]}",
         "two tensors"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1],\"parameters\":{\"binary_data_"
         "size\":4}}]}",
         "0 bytes follow"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1],\"parameters\":{\"binary_data_"
         "size\":-4}}]}",
         "binary_data_size"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"a\"],\"parameters\":{"
         "\"binary_data_size\":0}}]}",
         "has both"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[0],\"data\":[]}],\"parameters\":3}",
         "parameters"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[0],\"data\":[]}],\"outputs\":3}",
         "outputs"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[0],\"data\":[]}],"
         "\"outputs\":[{\"name\":\"x\"},{\"name\":\"y\"},{\"name\":\"x\"}]}",
         "\"x\" is asked for twice"},
        {"{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[0],\"data\":[]}],"
         "\"outputs\":[{\"name\":\"x\",\"parameters\":{\"classification\":2}}]}",
         "classification"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kserve_ask a;
        api_error e = {0};
        assert_int_equal(read_body(&a, CASES[i].json, NULL, 0, &e), 400);
        if (!strstr(e.message, CASES[i].word)) fail_msg("%s\n%s", CASES[i].json, e.message);
        kserve_ask_done(&a);
    }
}

static void kserve_binary_data_stands_behind_the_json(void **state)
{
    static const char JSON[] =
        "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1],\"parameters\":{\"binary_data_"
        "size\":4}},"
        "{\"name\":\"b\",\"datatype\":\"BYTES\",\"shape\":[2],\"parameters\":{\"binary_data_size\":11}}]}";
    static const char TAIL[] = "\0\0\x80\x3f"
                               "\2\0\0\0hi"
                               "\1\0\0\0!";
    kserve_ask a;
    api_error e = {0};
    assert_int_equal(read_body(&a, JSON, TAIL, 15, &e), 0);
    size_t at = 0, n;
    assert_true(kserve_next_number(&a.in.items[0], &at) == 1);
    at = 0;
    assert_memory_equal(kserve_next_text(&a.in.items[1], &at, &n), "hi", 2);
    kserve_ask_done(&a);
    assert_int_equal(read_body(&a, JSON, "\0\0\x80\x3f\2\0\0\0hi\xff\0\0\0!", 15, &e), 400);
    assert_non_null(strstr(e.message, "end within an element"));
    kserve_ask_done(&a);
    assert_int_equal(read_body(&a, JSON, "\0\0\x80\x3f\2\0\0\0hi\1\0\0\0!more", 19, &e), 400);
    assert_non_null(strstr(e.message, "belong to no tensor"));
    kserve_ask_done(&a);
    assert_int_equal(kserve_ask_read(&a, "{}", 2, 3, &e), 400);
    assert_non_null(strstr(e.message, "Inference-Header-Content-Length"));
    kserve_ask_done(&a);
}

#define TEXTS "\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"hello\",\"good night\"]"

static void kserve_asks_the_endpoint_of_the_task(void **state)
{
    Shoal__V1__ModelInfo m = model_of("embed");
    expect_asked("{\"inputs\":[{\"name\":\"text\"," TEXTS
                 "}],\"parameters\":{\"dimensions\":8,\"priority\":1}}",
                 &m, "/v1/embeddings",
                 "{\"model\":\"m\",\"dimensions\":8,\"encoding_format\":\"base64\",\"input\":[\"hello\","
                 "\"good night\"]}");
    expect_asked("{\"inputs\":[{\"name\":\"text_input\"," TEXTS
                 "}],\"parameters\":{\"max_tokens\":3,\"model\":\"x\"}}",
                 NULL, "/v1/completions",
                 "{\"model\":\"m\",\"max_tokens\":3,\"prompt\":[\"hello\",\"good night\"]}");
    expect_asked(
        "{\"inputs\":[{\"name\":\"text_input\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"a\"]},"
        "{\"name\":\"max_tokens\",\"datatype\":\"INT32\",\"shape\":[1,1],\"data\":[7]},"
        "{\"name\":\"temperature\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[0.5]},"
        "{\"name\":\"stop\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"x\"]},"
        "{\"name\":\"exclude_input_in_output\",\"datatype\":\"BOOL\",\"shape\":[1],\"data\":[true]},"
        "{\"name\":\"sampling_parameters\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"{\\\"top_k\\\":"
        "\\\"5\\\"}\"]}]}",
        NULL, "/v1/completions",
        "{\"model\":\"m\",\"max_tokens\":7,\"temperature\":0.5,\"top_k\":5,\"stop\":\"x\",\"prompt\":[\"a\"]"
        "}");
    m = model_of("classify");
    expect_asked("{\"inputs\":[{\"name\":\"text\"," TEXTS "}]}", &m, "/v1/classify",
                 "{\"model\":\"m\",\"input\":[\"hello\",\"good night\"]}");
    m.n_labels = 1; /* a reranker, whatever its file says */
    expect_asked("{\"inputs\":[{\"name\":\"query\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"q\"]},{"
                 "\"name\":\"documents\"," TEXTS "}]}",
                 &m, "/v1/rerank",
                 "{\"model\":\"m\",\"query\":\"q\",\"documents\":[\"hello\",\"good night\"]}");
    m = model_of("classify-image");
    expect_asked(
        "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"BYTES\",\"shape\":[1,1],\"data\":[\"PNG\"]}]}", &m,
        "/v1/images/classify", "{\"model\":\"m\",\"image\":\"UE5H\"}");
}

static void kserve_rows_are_a_matrix_or_columns(void **state)
{
    Shoal__V1__ModelInfo m = model_of("score");
    char *columns[] = {"t", "p"};
    m.columns = columns;
    m.n_columns = 2;
    expect_asked("{\"inputs\":[{\"name\":\"features\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[0.1,"
                 "null,3,4]}]}",
                 &m, "/v1/score",
                 "{\"model\":\"m\",\"columns\":[\"t\",\"p\"],\"rows\":[[0.10000000149011612,null],[3,4]]}");
    expect_asked("{\"inputs\":[{\"name\":\"p\",\"datatype\":\"INT64\",\"shape\":[2],\"data\":[1,2]},"
                 "{\"name\":\"sensor\",\"datatype\":\"BYTES\",\"shape\":[2,1],\"data\":[\"a\",\"b\"]}]}",
                 &m, "/v1/score",
                 "{\"model\":\"m\",\"columns\":[\"p\",\"sensor\"],\"rows\":[[1,\"a\"],[2,\"b\"]]}");
}

static void expect_refused(const char *json, const Shoal__V1__ModelInfo *info, const char *word)
{
    kserve_ask a = read_ok(json);
    buf body = {0};
    api_error e = {0};
    const char *path;
    assert_int_equal(kserve_ask_ours(&a.in, a.params, "m", info, &path, &body, &e), 400);
    if (!strstr(e.message, word)) fail_msg("%s\n%s", json, e.message);
    buf_done(&body);
    kserve_ask_done(&a);
}

static void kserve_names_the_input_that_is_wrong(void **state)
{
    Shoal__V1__ModelInfo m = model_of("embed"), score = model_of("score"), vad = model_of("vad");
    char *columns[] = {"t", "p"};
    expect_refused("{\"inputs\":[{\"name\":\"x\"," TEXTS "}]}", &m,
                   "input \"text\" is missing; the request has \"x\"");
    expect_refused("{\"inputs\":[{\"name\":\"text\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}", &m,
                   "must be BYTES");
    expect_refused("{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[0,7],\"data\":[]}]}",
                   &m, "is empty");
    expect_refused("{\"inputs\":[{\"name\":\"text\"," TEXTS "}]}", &vad, "\"vad\"");
    expect_refused("{\"inputs\":[{\"name\":\"text\"," TEXTS "},{\"name\":\"txt\"," TEXTS "}]}", &m,
                   "no input \"txt\"");
    expect_refused("{\"inputs\":[{\"name\":\"text\"," TEXTS "},{\"name\":\"stream\"," TEXTS "}]}", &m,
                   "no input \"stream\"");
#define PROMPT "{\"inputs\":[{\"name\":\"text_input\"," TEXTS "},"
    expect_refused(PROMPT "{\"name\":\"top_k\",\"datatype\":\"INT32\",\"shape\":[2],\"data\":[1,2]}]}", NULL,
                   "must be one");
    expect_refused(PROMPT "{\"name\":\"top_k\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[1]}],"
                          "\"parameters\":{\"top_k\":3}}",
                   NULL, "more than once");
    expect_refused(
        PROMPT
        "{\"name\":\"exclude_input_in_output\",\"datatype\":\"BOOL\",\"shape\":[1],\"data\":[false]}]}",
        NULL, "do not repeat the input");
    expect_refused(PROMPT "{\"name\":\"stream\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[1]}]}", NULL,
                   "BOOL");
    expect_refused(
        PROMPT
        "{\"name\":\"sampling_parameters\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"{\\\"best_of\\\":"
        "2}\"]}]}",
        NULL, "best_of");
    expect_refused(
        PROMPT "{\"name\":\"sampling_parameters\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"[\"]}]}",
        NULL, "");
    expect_refused("{\"inputs\":[{\"name\":\"features\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}",
                   &score, "does not name its columns");
    score.columns = columns;
    score.n_columns = 2;
    expect_refused(
        "{\"inputs\":[{\"name\":\"features\",\"datatype\":\"FP32\",\"shape\":[1,3],\"data\":[1,2,3]}]}",
        &score, "has 3 columns, and the model 2");
    expect_refused("{\"inputs\":[{\"name\":\"features\",\"datatype\":\"FP32\",\"shape\":[0,2],\"data\":[]}]}",
                   &score, "is empty");
    expect_refused("{\"inputs\":[{\"name\":\"t\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]},"
                   "{\"name\":\"p\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1,2]}]}",
                   &score, "has 2 rows, and \"t\" 1");
}

static void kserve_refuses_bytes_that_are_no_text_and_numbers_that_are_none(void **state)
{
    Shoal__V1__ModelInfo m = model_of("embed"), score = model_of("score");
    kserve_tensors in = {0};
    buf body = {0};
    api_error e = {0};
    const char *path;
    kserve_tensor *t = kserve_add(&in, "text", KSERVE_BYTES);
    t->shape[0] = 1, t->n_dims = 1;
    kserve_add_text(t, "a\xff", 2);
    assert_int_equal(kserve_check(t, &e), 0);
    assert_int_equal(kserve_ask_ours(&in, NULL, "m", &m, &path, &body, &e), 400);
    assert_non_null(strstr(e.message, "not UTF-8 at byte 1"));
    kserve_done(&in);
    buf_done(&body);
    t = kserve_add(&in, "t", KSERVE_FP32);
    t->shape[0] = 2, t->n_dims = 1;
    kserve_add_f32(t, 1);
    kserve_add_f32(t, -INFINITY);
    assert_int_equal(kserve_check(t, &e), 0);
    assert_int_equal(kserve_ask_ours(&in, NULL, "m", &score, &path, &body, &e), 400);
    assert_non_null(strstr(e.message, "infinite"));
    kserve_done(&in);
    buf_done(&body);
}

/* Our answer as the protocol's. */
static void expect_answer(const char *task, const char *request, const char *ours, const char *want)
{
    static char *LABELS[] = {"off", "on"};
    Shoal__V1__ModelInfo m = model_of(task);
    kserve_ask a = read_ok(request);
    kserve_tensors out = {0};
    buf json = {0}, tail = {0};
    api_error e = {0};
    json_t *v = NULL;
    m.labels = LABELS;
    m.n_labels = 2;
    assert_int_equal(json_parse(&v, ours, strlen(ours), "ours", NULL), 0);
    assert_int_equal(kserve_take_ours(&out, &a.in, &m, v), 0);
    assert_int_equal(kserve_put_answer(&json, &tail, &a, &out, "m", "1", &e), 0);
    assert_string_equal(json.data, want);
    json_decref(v);
    buf_done(&json);
    buf_done(&tail);
    kserve_done(&out);
    kserve_ask_done(&a);
}

#define ASK(outputs) "{\"id\":\"i\",\"inputs\":[{\"name\":\"text\"," TEXTS "}]" outputs "}"
#define HEAD         "{\"model_name\":\"m\",\"model_version\":\"1\",\"id\":\"i\",\"outputs\":["

static void kserve_answers_are_tensors_of_the_task(void **state)
{
    expect_answer(
        "classify", ASK(",\"outputs\":[{\"name\":\"scores\"},{\"name\":\"label\"}]"),
        "{\"data\":[{\"labels\":[{\"label\":\"on\",\"score\":0.75},{\"label\":\"off\",\"score\":0.25}]},"
        "{\"labels\":[{\"label\":\"off\",\"score\":1},{\"label\":\"on\",\"score\":0}]}]}",
        HEAD "{\"name\":\"scores\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[0.25,0.75,1,0]},"
             "{\"name\":\"label\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"on\",\"off\"]}]}");
    expect_answer(
        "embed", ASK(""), "{\"data\":[{\"embedding\":\"AACAPwAAAEA=\"},{\"embedding\":\"AACAvwAAAAA=\"}]}",
        HEAD "{\"name\":\"embedding\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[1,2,-1,0]}]}");
    expect_answer("tag", ASK(""), "{\"data\":[{\"spans\":[]},{\"spans\":[{\"start\":1}]}]}",
                  HEAD "{\"name\":\"spans\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"[]\",\"[{"
                       "\\\"start\\\":1}]\"]}]}");
    expect_answer(
        "rerank", "{\"id\":\"i\",\"inputs\":[{\"name\":\"documents\"," TEXTS "}]}",
        "{\"results\":[{\"index\":1,\"relevance_score\":0.5},{\"index\":0,\"relevance_score\":0.25}]}",
        HEAD "{\"name\":\"score\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[0.25,0.5]}]}");
    expect_answer("score",
                  ASK(",\"outputs\":[{\"name\":\"score\"},{\"name\":\"scores\"},{\"name\":\"row\"}]"),
                  "{\"data\":[{\"row\":9,\"label\":\"on\",\"scores\":{\"off\":0.125,\"on\":0.875}}]}",
                  HEAD "{\"name\":\"score\",\"datatype\":\"FP64\",\"shape\":[1],\"data\":[0.875]},"
                       "{\"name\":\"scores\",\"datatype\":\"FP64\",\"shape\":[1,2],\"data\":[0.125,0.875]},"
                       "{\"name\":\"row\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[9]}]}");
    expect_answer("generate", ASK(""), "{\"choices\":[{\"text\":\"a\\u0000\",\"finish_reason\":\"stop\"}]}",
                  HEAD
                  "{\"name\":\"text_output\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"a\\u0000\"]},"
                  "{\"name\":\"finish_reason\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"stop\"]}]}");
}

static void kserve_outputs_may_be_binary(void **state)
{
    Shoal__V1__ModelInfo m = model_of("embed");
    kserve_ask a = read_ok(ASK(",\"parameters\":{\"binary_data_output\":true}"));
    kserve_tensors out = {0};
    buf json = {0}, tail = {0};
    api_error e = {0};
    json_t *v = json_pack("{s:[{s:s}]}", "data", "embedding", "AACAPwAAAEA=");
    assert_int_equal(kserve_take_ours(&out, &a.in, &m, v), 0);
    assert_int_equal(kserve_put_answer(&json, &tail, &a, &out, "m", "1", &e), 0);
    assert_string_equal(json.data, HEAD "{\"name\":\"embedding\",\"datatype\":\"FP32\",\"shape\":[1,2],"
                                        "\"parameters\":{\"binary_data_size\":8}}]}");
    assert_int_equal(tail.len, 8);
    assert_memory_equal(tail.data, "\0\0\x80\x3f\0\0\0\x40", 8);
    json_decref(v);
    buf_done(&json);
    buf_done(&tail);
    kserve_done(&out);
    kserve_ask_done(&a);
}

static void kserve_takes_no_answer_that_is_none(void **state)
{
    static const struct {
        const char *task, *ours;
    } CASES[] = {{"embed", "[]"},
                 {"embed", "{\"data\":[{\"embedding\":\"AACAPw==\"},{\"embedding\":\"AACAPwAAAEA=\"}]}"},
                 {"embed", "{\"data\":[{\"embedding\":\"!\"}]}"},
                 {"generate", "{\"data\":[]}"},
                 {"rerank", "{\"results\":[{\"index\":5,\"relevance_score\":1}]}"},
                 {"score", "{\"data\":[{\"scores\":[1]},{\"scores\":[1,2]}]}"},
                 {"vad", "{}"}};
    kserve_tensors in = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Shoal__V1__ModelInfo m = model_of(CASES[i].task);
        kserve_tensors out = {0};
        json_t *v = NULL;
        assert_int_equal(json_parse(&v, CASES[i].ours, strlen(CASES[i].ours), "ours", NULL), 0);
        assert_int_equal(kserve_take_ours(&out, &in, &m, v), SHOAL_EPROTOCOL);
        json_decref(v);
        kserve_done(&out);
    }
}

static void kserve_metadata_follows_from_the_model(void **state)
{
    Shoal__V1__ModelInfo m = model_of("embed");
    kserve_face f;
    m.n_embd = 384;
    assert_true(kserve_face_of(&m, &f));
    assert_string_equal(f.out[0].name, "embedding");
    assert_true(f.out[0].shape[0] == -1 && f.out[0].shape[1] == 384);
    m = model_of("transcribe");
    assert_false(kserve_face_of(&m, &f));
    assert_true(kserve_face_of(NULL, &f));
    assert_string_equal(f.in[0].name, "text_input");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kserve_data_comes_flat_or_in_rows),
        cmocka_unit_test(kserve_every_type_comes_back),
        cmocka_unit_test(kserve_refuses_what_does_not_agree),
        cmocka_unit_test(kserve_binary_data_stands_behind_the_json),
        cmocka_unit_test(kserve_asks_the_endpoint_of_the_task),
        cmocka_unit_test(kserve_rows_are_a_matrix_or_columns),
        cmocka_unit_test(kserve_names_the_input_that_is_wrong),
        cmocka_unit_test(kserve_refuses_bytes_that_are_no_text_and_numbers_that_are_none),
        cmocka_unit_test(kserve_answers_are_tensors_of_the_task),
        cmocka_unit_test(kserve_outputs_may_be_binary),
        cmocka_unit_test(kserve_takes_no_answer_that_is_none),
        cmocka_unit_test(kserve_metadata_follows_from_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
