/* Requests and answers of /v1/embeddings, /v1/classify, /v1/tag, /v1/score and /v1/images/classify. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "messages/encode_bytes.h"
#include "messages/encode_put.h"
#include "base/sha256.h"

static encode_spec read_ok(task_endpoint_id kind, const char *body)
{
    encode_spec s = {0};
    api_error e = {0};
    if (encode_spec_parse(&s, kind, body, strlen(body), &e) != 0) fail_msg("%s\n%s", body, e.message);
    return s;
}

static void encode_reads_one_and_many(void **state)
{
    encode_spec s = read_ok(
        ASK_EMBED, "{\"model\":\"e\",\"input\":\"a\",\"encoding_format\":\"base64\",\"dimensions\":8}");
    assert_true(s.n_inputs == 1 && s.base64 && s.dimensions == 8 && s.truncate_tokens == 0);
    encode_spec_done(&s);
    s = read_ok(ASK_TAG, "{\"text\":[\"a\",\"b\"]}");
    assert_true(s.n_inputs == 2 && !s.model);
    assert_string_equal(s.inputs[1].text, "b");
    encode_spec_done(&s);
    s = read_ok(ASK_CLASSIFY,
                "{\"input\":[\"a\",{\"text\":\"b\",\"pair\":\"own\"}],\"pair\":\"all\",\"top_k\":2}");
    assert_string_equal(s.inputs[0].pair, "all");
    assert_string_equal(s.inputs[1].pair, "own");
    assert_int_equal(s.top_k, 2);
    encode_spec_done(&s);
}

static void encode_reads_token_ids(void **state)
{
    sha256_digest one, two;
    encode_spec s = read_ok(ASK_EMBED, "{\"input\":[1,0,2147483647]}");
    assert_true(s.n_inputs == 1 && s.inputs[0].n_ids == 3 && s.inputs[0].ids[2] == INT32_MAX);
    encode_spec_done(&s);
    s = read_ok(ASK_EMBED, "{\"input\":[[1,2],\"a\",[3]]}");
    assert_true(s.n_inputs == 3 && s.inputs[0].n_ids == 2 && s.inputs[1].n_ids == 0 &&
                s.inputs[2].n_ids == 1);
    assert_true(s.inputs[0].ids[0] == 1 && s.inputs[0].ids[1] == 2 && s.inputs[2].ids[0] == 3);
    assert_string_equal(s.inputs[1].text, "a");
    assert_true(encode_spec_key(&s, "d", "", &one));
    encode_spec_done(&s);
    s = read_ok(ASK_EMBED, "{\"input\":[[1],\"a\",[2,3]]}");
    assert_true(encode_spec_key(&s, "d", "", &two));
    assert_memory_not_equal(&one, &two, sizeof one);
    encode_spec_done(&s);
}

static void encode_names_the_field_it_refuses(void **state)
{
    static const struct {
        task_endpoint_id kind;
        const char *body, *param;
    } CASES[] = {
        {ASK_EMBED, "{\"model\":7,\"input\":\"a\"}", "model"},
        {ASK_EMBED, "{\"model\":\"e\"}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":\"\"}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[1,\"a\"]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[1,-2]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[2147483648]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[1.5]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[[1],[]]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[[[1]]]}", "input"},
        {ASK_CLASSIFY, "{\"model\":\"e\",\"input\":[1,2]}", "input"},
        {ASK_TAG, "{\"model\":\"e\",\"input\":[[1,2]]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":[\"a\",null]}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":\"a\\u0000\"}", "input"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":\"a\",\"encoding_format\":\"hex\"}", "encoding_format"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":\"a\",\"dimensions\":0}", "dimensions"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":\"a\",\"truncate\":1}", "truncate"},
        {ASK_EMBED, "{\"model\":\"e\",\"input\":\"a\",\"truncate_prompt_tokens\":-2}",
         "truncate_prompt_tokens"},
        {ASK_CLASSIFY, "{\"input\":\"a\",\"top_k\":0}", "top_k"},
        {ASK_CLASSIFY, "{\"input\":\"a\",\"pair\":3}", "pair"},
        {ASK_CLASSIFY, "{\"input\":[{\"text\":\"a\",\"pair\":3}]}", "pair"},
        {ASK_TAG, "{\"input\":{\"text\":\"a\"}}", "input"},
        {ASK_RERANK, "{\"documents\":[\"a\"]}", "query"},
        {ASK_RERANK, "{\"query\":\"q\"}", "documents"},
        {ASK_RERANK, "{\"query\":\"q\",\"documents\":[]}", "documents"},
        {ASK_RERANK, "{\"query\":\"q\",\"documents\":[\"a\",7]}", "documents"},
        {ASK_RERANK, "{\"query\":\"q\",\"documents\":[{\"body\":\"a\"}]}", "documents"},
        {ASK_RERANK, "{\"query\":\"q\",\"documents\":[\"a\"],\"top_n\":0}", "top_n"},
        {ASK_SCORE, "{}", "csv"},
        {ASK_SCORE, "{\"csv\":\"\"}", "csv"},
        {ASK_SCORE, "{\"csv\":[1]}", "csv"},
        {ASK_SCORE, "{\"csv\":\"a\\u0000\"}", "csv"},
        {ASK_SCORE, "{\"csv\":\"a\",\"rows\":[[1]]}", "csv"},
        {ASK_SCORE, "{\"rows\":[[1]]}", "columns"},
        {ASK_SCORE, "{\"columns\":[],\"rows\":[[1]]}", "columns"},
        {ASK_SCORE, "{\"columns\":[1],\"rows\":[[1]]}", "columns"},
        {ASK_SCORE, "{\"columns\":[\"a\"],\"rows\":[]}", "rows"},
        {ASK_SCORE, "{\"columns\":[\"a\"],\"rows\":[1]}", "rows"},
        {ASK_SCORE, "{\"columns\":[\"a\"],\"rows\":[[1,2]]}", "rows"},
        {ASK_SCORE, "{\"columns\":[\"a\"],\"rows\":[[{}]]}", "rows"},
        {ASK_SCORE, "{\"columns\":[\"a\"],\"rows\":{\"a\":1}}", "rows"},
        {ASK_IMAGE, "{}", "image"},
        {ASK_IMAGE, "{\"image\":\"\"}", "image"},
        {ASK_IMAGE, "{\"image\":\"!\"}", "image"},
        {ASK_IMAGE, "{\"image\":\"data:image/png,abc\"}", "image"},
        {ASK_IMAGE, "{\"image\":\"data:image/png;base64\"}", "image"},
        {ASK_IMAGE, "{\"image\":\"data:image/png;base64,\"}", "image"},
        {ASK_IMAGE, "{\"image\":\"https://example.com/a.png\"}", "image"},
        {ASK_IMAGE, "{\"image\":\"AAAA\",\"top_k\":0}", "top_k"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        encode_spec s;
        api_error e = {0};
        int rc = encode_spec_parse(&s, CASES[i].kind, CASES[i].body, strlen(CASES[i].body), &e);
        if (rc != 400 || strcmp(e.param, CASES[i].param) != 0)
            print_error("case %zu: %s\n  %d '%s' %s\n", i, CASES[i].body, rc, e.param, e.message);
        assert_int_equal(rc, 400);
        assert_string_equal(e.param, CASES[i].param);
    }
}

static void encode_ranks_documents_by_vectors(void **state)
{
    encode_spec s = read_ok(
        ASK_RERANK, "{\"model\":\"r\",\"query\":\"q\",\"documents\":[\"a\",\"b\",\"c\"],\"top_n\":2}");
    float values[4][2] = {{2, 0}, {0, 3}, {1, 0}, {0, 0}}; /* of the query first; the last has no direction */
    Shoal__V1__Embedding v[4], *list[4];
    Shoal__V1__EmbedReply r = SHOAL__V1__EMBED_REPLY__INIT;
    uint64_t n_tokens = 0;
    buf out = {0};
    for (int i = 0; i < 4; i++) {
        v[i] = (Shoal__V1__Embedding)SHOAL__V1__EMBEDDING__INIT;
        v[i].values = values[i];
        v[i].n_values = 2;
        v[i].n_tokens = 5;
        list[i] = &v[i];
    }
    r.results = list;
    r.n_results = 4;
    s.by_vectors = true;
    encode_put(&out, &s, &r.base, &n_tokens);
    assert_string_equal(
        buf_text(&out),
        "{\"object\":\"list\",\"ranked_by\":\"embeddings\",\"results\":[{\"index\":1,"
        "\"relevance_score\":1},{\"index\":0,\"relevance_score\":0}],\"model\":\"r\",\"usage\":{"
        "\"prompt_tokens\":20,\"total_tokens\":20}}");
    assert_int_equal(n_tokens, 20);
    buf_done(&out);
    encode_spec_done(&s);
}

static void encode_ranks_documents_best_first(void **state)
{
    encode_spec s =
        read_ok(ASK_RERANK, "{\"model\":\"r\",\"query\":\"q\",\"documents\":[\"a\",{\"text\":\"b\"},\"c\"],"
                            "\"top_n\":2,\"return_documents\":true}");
    assert_int_equal(s.n_inputs, 3);
    assert_string_equal(s.inputs[1].text, "q");
    assert_string_equal(s.inputs[1].pair, "b");
    Shoal__V1__LabelScore label[3], *label_at[3];
    Shoal__V1__Classification c[3], *list[3];
    static const float scores[] = {0.25f, 0.75f, 0.25f};
    for (size_t i = 0; i < 3; i++) {
        label[i] = (Shoal__V1__LabelScore)SHOAL__V1__LABEL_SCORE__INIT;
        label[i].score = scores[i];
        label_at[i] = &label[i];
        c[i] = (Shoal__V1__Classification)SHOAL__V1__CLASSIFICATION__INIT;
        c[i].labels = &label_at[i];
        c[i].n_labels = 1;
        c[i].n_tokens = 4;
        list[i] = &c[i];
    }
    Shoal__V1__ClassifyReply r = SHOAL__V1__CLASSIFY_REPLY__INIT;
    r.results = list;
    r.n_results = 3;
    uint64_t n;
    buf out = {0};
    encode_put(&out, &s, &r.base, &n);
    assert_int_equal(n, 12);
    assert_string_equal(
        out.data, "{\"object\":\"list\",\"results\":[{\"index\":1,\"relevance_score\":0.75,\"document\":{"
                  "\"text\":\"b\"}},"
                  "{\"index\":0,\"relevance_score\":0.25,\"document\":{\"text\":\"a\"}}],\"model\":\"r\","
                  "\"usage\":{\"prompt_tokens\":12,\"total_tokens\":12}}");
    buf_done(&out);
    encode_spec_done(&s);
}

static void encode_writes_embeddings_as_floats_and_base64(void **state)
{
    float values[2] = {1, -0.5f};
    Shoal__V1__Embedding v = SHOAL__V1__EMBEDDING__INIT, *list = &v;
    Shoal__V1__EmbedReply r = SHOAL__V1__EMBED_REPLY__INIT;
    encode_spec s = {.kind = ASK_EMBED, .model = "e"};
    uint64_t n;
    buf out = {0};
    v.values = values;
    v.n_values = 2;
    v.n_tokens = 5;
    r.results = &list;
    r.n_results = 1;
    encode_put(&out, &s, &r.base, &n);
    assert_string_equal(out.data,
                        "{\"object\":\"list\",\"data\":[{\"index\":0,\"object\":\"embedding\",\"embedding\":"
                        "[1,-0.5]}],\"model\":\"e\",\"usage\":{\"prompt_tokens\":5,\"total_tokens\":5}}");
    assert_int_equal(n, 5);
    buf_clear(&out);
    s.base64 = true;
    encode_put(&out, &s, &r.base, &n);
    assert_non_null(strstr(out.data, "\"embedding\":\"AACAPwAAAL8=\"")); /* 00 00 80 3f 00 00 00 bf */
    buf_done(&out);
}

static void encode_shortens_embeddings_to_a_length_of_one(void **state)
{
    float values[3] = {3, 4, 12};
    Shoal__V1__Embedding v = SHOAL__V1__EMBEDDING__INIT, *list = &v;
    Shoal__V1__EmbedReply r = SHOAL__V1__EMBED_REPLY__INIT;
    encode_spec s = {.kind = ASK_EMBED, .model = "e", .dimensions = 2};
    uint64_t n;
    buf out = {0};
    v.values = values;
    v.n_values = 3;
    r.results = &list;
    r.n_results = 1;
    encode_put(&out, &s, &r.base, &n);
    assert_non_null(strstr(out.data, "\"embedding\":[0.600000024,0.800000012]"));
    buf_clear(&out);
    s.dimensions = 3;
    encode_put(&out, &s, &r.base, &n);
    assert_non_null(strstr(out.data, "\"embedding\":[3,4,12]"));
    buf_clear(&out);
    s.dimensions = 2;
    values[0] = values[1] = 0;
    encode_put(&out, &s, &r.base, &n);
    assert_non_null(strstr(out.data, "\"embedding\":[0,0]"));
    buf_done(&out);
}

static void encode_cuts_labels_to_top_k(void **state)
{
    Shoal__V1__LabelScore a = SHOAL__V1__LABEL_SCORE__INIT, b = SHOAL__V1__LABEL_SCORE__INIT;
    Shoal__V1__LabelScore *labels[] = {&a, &b};
    Shoal__V1__Classification c = SHOAL__V1__CLASSIFICATION__INIT, *list = &c;
    Shoal__V1__ClassifyReply r = SHOAL__V1__CLASSIFY_REPLY__INIT;
    encode_spec s = {.kind = ASK_CLASSIFY, .model = "c", .top_k = 1};
    uint64_t n;
    buf out = {0};
    a.label = "yes";
    a.score = 0.75f;
    b.label = "no";
    c.labels = labels;
    c.n_labels = 2;
    r.results = &list;
    r.n_results = 1;
    encode_put(&out, &s, &r.base, &n);
    assert_non_null(strstr(out.data, "{\"index\":0,\"labels\":[{\"label\":\"yes\",\"score\":0.75}]}"));
    buf_done(&out);
}

static void encode_writes_spans_with_offsets(void **state)
{
    Shoal__V1__Span p = SHOAL__V1__SPAN__INIT, *spans = &p;
    Shoal__V1__Tagging t = SHOAL__V1__TAGGING__INIT, *list = &t;
    Shoal__V1__TagReply r = SHOAL__V1__TAG_REPLY__INIT;
    encode_spec s = {.kind = ASK_TAG, .model = "t"};
    uint64_t n;
    buf out = {0};
    p.start = 1;
    p.end = 3;
    p.start_byte = 2;
    p.end_byte = 5;
    p.label = "city";
    p.text = "\xC3\xA9x";
    p.score = 0.5f;
    t.spans = &spans;
    t.n_spans = 1;
    r.results = &list;
    r.n_results = 1;
    encode_put(&out, &s, &r.base, &n);
    assert_non_null(
        strstr(out.data, "{\"start\":1,\"end\":3,\"start_byte\":2,\"end_byte\":5,\"label\":\"city\",\"text\":"
                         "\"\xC3\xA9x\",\"score\":0.5}"));
    buf_done(&out);
}

static void encode_key_differs_by_pair_and_format(void **state)
{
    sha256_digest a, b;
    encode_spec s = read_ok(ASK_CLASSIFY, "{\"model\":\"c\",\"input\":\"x\"}");
    assert_true(encode_spec_key(&s, "d", "", &a));
    encode_spec_done(&s);
    s = read_ok(ASK_CLASSIFY, "{\"model\":\"c\",\"input\":\"x\",\"pair\":\"\"}");
    assert_true(encode_spec_key(&s, "d", "", &b));
    encode_spec_done(&s);
    assert_memory_not_equal(&a, &b, sizeof a);
}

static void holds_bytes(const encode_spec *s, const char *want)
{
    assert_int_equal(s->n_inputs, 1);
    assert_int_equal(s->bytes.len, strlen(want));
    assert_memory_equal(s->bytes.data, want, strlen(want));
}

static void encode_makes_a_csv_of_rows(void **state)
{
    encode_spec s = read_ok(ASK_SCORE, "{\"columns\":[\"sensor\",\"a, \\\"b\\\"\"],"
                                       "\"rows\":[[\"x\\ny\",0.1],[null,-3],[\"\",1e300]]}");
    holds_bytes(
        &s,
        "\"sensor\",\"a, \"\"b\"\"\"\n\"x\ny\",0.10000000000000001\nnan,-3\n\"\",1.0000000000000001e+300\n");
    encode_spec_done(&s);
    s = read_ok(ASK_SCORE, "{\"model\":\"m\",\"csv\":\"a;b\\n1;2\"}");
    holds_bytes(&s, "a;b\n1;2");
    assert_string_equal(s.model, "m");
    encode_spec_done(&s);
}

static void encode_takes_pictures_in_base64(void **state)
{
    encode_spec s = read_ok(ASK_IMAGE, "{\"image\":\"iVBORw==\",\"top_k\":2}");
    holds_bytes(&s, "\x89PNG");
    assert_int_equal(s.top_k, 2);
    encode_spec_done(&s);
    s = read_ok(ASK_IMAGE, "{\"image\":\"DATA:image/png;charset=x;BASE64,iVBORw==\"}");
    holds_bytes(&s, "\x89PNG");
    encode_spec_done(&s);
}

static void encode_takes_bodies_as_they_are(void **state)
{
    encode_spec s = {0};
    api_error e = {0};
    assert_true(encode_bytes_is_raw(ASK_SCORE, "text/csv; charset=utf-8"));
    assert_true(encode_bytes_is_raw(ASK_IMAGE, "Image/PNG"));
    assert_false(encode_bytes_is_raw(ASK_IMAGE, "text/csv"));
    assert_false(encode_bytes_is_raw(ASK_SCORE, "application/json"));
    assert_false(encode_bytes_is_raw(ASK_EMBED, "text/csv"));
    assert_false(encode_bytes_is_raw(ASK_SCORE, NULL));
    assert_int_equal(encode_bytes_raw(&s, ASK_IMAGE, "xmodel=no&model=my%20v%C3%AFt+1&top_k=3", "abc", 3, &e),
                     0);
    assert_string_equal(s.model, "my v\xC3\xAFt 1");
    assert_int_equal(s.top_k, 3);
    holds_bytes(&s, "abc");
    encode_spec_done(&s);
    assert_int_equal(encode_bytes_raw(&s, ASK_SCORE, "", "a\n1", 3, &e), 0);
    assert_null(s.model);
    encode_spec_done(&s);
    assert_int_equal(encode_bytes_raw(&s, ASK_SCORE, "model=%ff", "a", 1, &e), 400);
    assert_int_equal(encode_bytes_raw(&s, ASK_SCORE, "model=a%0", "a", 1, &e), 0);
    assert_string_equal(s.model, "a%0");
    encode_spec_done(&s);
    assert_int_equal(encode_bytes_raw(&s, ASK_IMAGE, "top_k=0", "a", 1, &e), 400);
    assert_string_equal(e.param, "top_k");
    assert_int_equal(encode_bytes_raw(&s, ASK_SCORE, "", "", 0, &e), 400);
    char *large = calloc(1, ENCODE_BYTES_MAX + 1);
    assert_int_equal(encode_bytes_raw(&s, ASK_SCORE, "", large, ENCODE_BYTES_MAX + 1, &e), 413);
    free(large);
}

static void encode_keys_differ_by_bytes(void **state)
{
    sha256_digest a, b, c;
    encode_spec s = read_ok(ASK_SCORE, "{\"model\":\"c\",\"csv\":\"x\"}");
    assert_true(encode_spec_key(&s, "d", "", &a));
    encode_spec_done(&s);
    s = read_ok(ASK_SCORE, "{\"model\":\"c\",\"csv\":\"y\"}");
    assert_true(encode_spec_key(&s, "d", "", &b));
    encode_spec_done(&s);
    s = read_ok(ASK_IMAGE, "{\"model\":\"c\",\"image\":\"eA==\"}");
    assert_true(encode_spec_key(&s, "d", "", &c));
    encode_spec_done(&s);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&a, &c, sizeof a);
}

static void encode_writes_scores_by_label_or_in_order(void **state)
{
    char *labels[] = {"no", "yes"};
    double scores[] = {0.25, 0.75}, raw[] = {-1.5};
    Shoal__V1__ScoredRow row = SHOAL__V1__SCORED_ROW__INIT, *rows = &row;
    Shoal__V1__ScoreReply r = SHOAL__V1__SCORE_REPLY__INIT;
    encode_spec s = {.kind = ASK_SCORE, .model = "t"};
    uint64_t n;
    buf out = {0};
    row.sensor = "m1";
    row.time = "7";
    row.line = 9;
    row.row = 3;
    row.label = "yes";
    row.scores = scores;
    row.n_scores = 2;
    row.raw = raw;
    row.n_raw = 1;
    r.rows = &rows;
    r.n_rows = 1;
    r.labels = labels;
    r.n_labels = 2;
    r.n_read = 12;
    r.n_sensors = 1;
    encode_put(&out, &s, &r.base, &n);
    assert_string_equal(
        out.data,
        "{\"object\":\"list\",\"data\":[{\"index\":0,\"sensor\":\"m1\",\"time\":\"7\",\"line\":9,\"row\":3,"
        "\"label\":\"yes\",\"scores\":{\"no\":0.25,\"yes\":0.75},\"raw\":[-1.5]}],\"model\":\"t\","
        "\"usage\":{\"rows\":12,\"sensors\":1}}");
    buf_clear(&out);
    row = (Shoal__V1__ScoredRow)SHOAL__V1__SCORED_ROW__INIT;
    row.scores = row.raw = raw;
    row.n_scores = row.n_raw = 1;
    r.n_labels = 0;
    encode_put(&out, &s, &r.base, &n);
    assert_non_null(
        strstr(out.data, "[{\"index\":0,\"line\":0,\"row\":0,\"scores\":[-1.5],\"raw\":[-1.5]}]"));
    buf_done(&out);
}

/* A form brings the same as the file itself. */
static void encode_takes_files_of_forms(void **state)
{
    static const char TYPE[] = "multipart/form-data; boundary=B";
#define PART(n, v) "--B\r\nContent-Disposition: form-data; name=\"" n "\"\r\n\r\n" v "\r\n"
    static const struct {
        task_endpoint_id kind;
        const char *body, *param;
    } WRONG[] = {
        {ASK_IMAGE, PART("model", "eyes") "--B--", "file"},
        {ASK_IMAGE, PART("file", "") "--B--", "image"},
        {ASK_IMAGE, PART("file", "x") PART("top_k", "0") "--B--", "top_k"},
        {ASK_IMAGE, PART("file", "x") PART("model", "\xff") "--B--", "model"},
        {ASK_SCORE, PART("image", "x") "--B--", "file"},
    };
    static const char body[] = PART("image", "a\0b") PART("model", "eyes") PART("top_k", "3") "--B--";
    encode_spec s = {0};
    api_error e = {0};
    assert_true(encode_bytes_is_form(ASK_IMAGE, TYPE) && encode_bytes_is_form(ASK_SCORE, TYPE));
    assert_false(encode_bytes_is_form(ASK_EMBED, TYPE) || encode_bytes_is_form(ASK_IMAGE, "image/png"));
    assert_int_equal(encode_bytes_form(&s, ASK_IMAGE, TYPE, body, sizeof body - 1, &e), 0);
    assert_int_equal(s.bytes.len, 3);
    assert_memory_equal(s.bytes.data, "a\0b", 3);
    assert_string_equal(s.model, "eyes");
    assert_int_equal(s.top_k, 3);
    encode_spec_done(&s);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        const char *b = WRONG[i].body;
        assert_int_equal(encode_bytes_form(&s, WRONG[i].kind, TYPE, b, strlen(b), &e), 400);
        assert_string_equal(e.param, WRONG[i].param);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encode_reads_one_and_many),
        cmocka_unit_test(encode_reads_token_ids),
        cmocka_unit_test(encode_names_the_field_it_refuses),
        cmocka_unit_test(encode_ranks_documents_best_first),
        cmocka_unit_test(encode_ranks_documents_by_vectors),
        cmocka_unit_test(encode_writes_embeddings_as_floats_and_base64),
        cmocka_unit_test(encode_shortens_embeddings_to_a_length_of_one),
        cmocka_unit_test(encode_cuts_labels_to_top_k),
        cmocka_unit_test(encode_writes_spans_with_offsets),
        cmocka_unit_test(encode_key_differs_by_pair_and_format),
        cmocka_unit_test(encode_makes_a_csv_of_rows),
        cmocka_unit_test(encode_takes_pictures_in_base64),
        cmocka_unit_test(encode_takes_bodies_as_they_are),
        cmocka_unit_test(encode_takes_files_of_forms),
        cmocka_unit_test(encode_keys_differ_by_bytes),
        cmocka_unit_test(encode_writes_scores_by_label_or_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
