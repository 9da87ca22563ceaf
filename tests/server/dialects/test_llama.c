/* llama-server's completions: what they ask of ours, texts among token ids, and how answers look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../text_bytes.h"
#include "../messages/sse.h"
#include "dialects/llama.h"
#include "json/json.h"

static gen_spec *read_ok(const char *json)
{
    llama_ask a;
    gen_spec *s = NULL;
    api_error e = {0};
    if (llama_read(&a, false, json, strlen(json), &e) != 0 || llama_spec(&s, &a, "m", &e) != 0)
        fail_msg("%s\n%s", json, e.message);
    llama_ask_done(&a);
    return s;
}

static void llama_asks_what_llama_server_means(void **state)
{
    gen_spec *s = read_ok("{\"prompt\":\"a\"}");
    assert_string_equal(s->model, "m");
    assert_string_equal(s->prompts[0].text, "a");
    assert_int_equal(s->max_tokens, 0);
    assert_true(s->sampling.temperature == 0.8f && s->sampling.top_k == 40 && s->sampling.top_p == 0.95f &&
                s->sampling.min_p == 0.05f && s->sampling.repetition_penalty == 1);
    assert_false(s->has_seed || s->stream || s->logprobs || s->only_prompt || s->llama->many);
    openai_spec_free(s);
    s = read_ok("{\"prompt\":\"a\",\"n_predict\":7,\"temperature\":-1,\"top_k\":-1,\"top_p\":3,\"min_p\":-2,"
                "\"repeat_penalty\":1.1,"
                "\"seed\":5,\"stop\":[\"x\",\"y\"],\"n_probs\":3,\"stream\":true,\"ignore_eos\":true,"
                "\"logit_bias\":[[5,1.5],[6,false],[7,-1e9]],\"cache_prompt\":true,\"id_slot\":3,"
                "\"mirostat\":0,\"typical_p\":1.0,"
                "\"top_n_sigma\":-1,\"dry_multiplier\":0,\"t_max_predict_ms\":500,\"repeat_last_n\":64}");
    assert_true(s->max_tokens == 7 && s->llama->n_predict == 7 && s->n_top == 3 && s->logprobs && s->stream &&
                s->ignore_eos);
    assert_true(s->sampling.temperature == 0 && s->sampling.top_k == 0 && s->sampling.top_p == 1 &&
                s->sampling.min_p == 0);
    assert_true(s->has_seed && s->sampling.seed == 5 && s->n_stop == 2 && s->sampling.n_bias == 3);
    for (size_t i = 0; i < 3; i++)
        if (s->sampling.bias[i]->id != 5) assert_true(s->sampling.bias[i]->bias == -100);
    openai_spec_free(s);
    s = read_ok("{\"prompt\":[[1,2],\"b\",{\"prompt_string\":\"c\"}],\"n_predict\":0,\"seed\":4294967295,"
                "\"samplers\":[\"min_p\"],\"json_schema\":{\"type\":\"integer\"}}");
    assert_true(s->n_prompts == 3 && s->prompts[0].n_ids == 2 && s->llama->many && s->only_prompt &&
                !s->has_seed);
    assert_string_equal(s->prompts[2].text, "c");
    assert_true(s->sampling.temperature == 1 && s->sampling.top_k == 0 && s->sampling.top_p == 1 &&
                s->sampling.min_p == 0.05f);
    assert_string_equal(s->schema, "{\"type\":\"integer\"}");
    openai_spec_free(s);
}

static void llama_names_the_field_it_refuses(void **state)
{
    static const struct {
        const char *json, *param;
    } CASES[] = {{"{}", "prompt"},
                 {"{\"prompt\":7}", "prompt"},
                 {"{\"prompt\":[]}", "prompt"},
                 {"{\"prompt\":[[]]}", "prompt"},
                 {"{\"prompt\":[[1,[2]]]}", "prompt"},
                 {"{\"prompt\":[1,2.5]}", "prompt"},
                 {"{\"prompt\":[-1]}", "prompt"},
                 {"{\"prompt\":[1,2147483648]}", "prompt"},
                 {"{\"prompt\":\"\"}", "prompt"},
                 {"{\"prompt\":{\"prompt_string\":\"a\",\"multimodal_data\":[\"x\"]}}", "prompt"},
                 {"{\"prompt\":\"a\",\"typical_p\":0.5}", "typical_p"},
                 {"{\"prompt\":\"a\",\"mirostat\":2}", "mirostat"},
                 {"{\"prompt\":\"a\",\"dry_multiplier\":0.8}", "dry_multiplier"},
                 {"{\"prompt\":\"a\",\"grammar\":\"root ::= x\"}", "grammar"},
                 {"{\"prompt\":\"a\",\"json_schema\":\"x\"}", "json_schema"},
                 {"{\"prompt\":\"a\",\"logit_bias\":[[\"Hello\",1]]}", "logit_bias"},
                 {"{\"prompt\":\"a\",\"logit_bias\":[[1]]}", "logit_bias"},
                 {"{\"prompt\":\"a\",\"logit_bias\":[[1,true]]}", "logit_bias"},
                 {"{\"prompt\":\"a\",\"n_probs\":21}", "n_probs"},
                 {"{\"prompt\":\"a\",\"post_sampling_probs\":true}", "post_sampling_probs"},
                 {"{\"prompt\":\"a\",\"lora\":[{\"id\":0,\"scale\":1}]}", "lora"},
                 {"{\"prompt\":\"a\",\"image_data\":[{}]}", "image_data"},
                 {"{\"prompt\":\"a\",\"temperature\":3}", "temperature"},
                 {"{\"prompt\":\"a\",\"temperature\":\"hot\"}", "temperature"},
                 {"{\"prompt\":\"a\",\"n\":1000}", "n"},
                 {"{\"prompt\":\"a\",\"n_predict\":\"many\"}", "n_predict"},
                 {"{\"prompt\":\"a\",\"stop\":[\"\"]}", "stop"},
                 {"{\"prompt\":\"a\",\"response_fields\":7}", "response_fields"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        llama_ask a;
        gen_spec *s = NULL;
        api_error e = {0};
        int rc = llama_read(&a, false, CASES[i].json, strlen(CASES[i].json), &e);
        if (rc == 0) rc = llama_spec(&s, &a, "m", &e);
        if (rc != 400 || !strstr(e.message, CASES[i].param))
            fail_msg("%s: %d %s", CASES[i].json, rc, e.message);
        if (*e.param) assert_string_equal(e.param, CASES[i].param);
        llama_ask_done(&a);
    }
}

/* Each text becomes its length, a hundred times. */
static gen_spec *fill_in(const char *json, const char *want_texts)
{
    llama_ask a;
    gen_spec *s = NULL;
    api_error e = {0};
    buf seen = {0};
    const char *text;
    bool first;
    assert_int_equal(llama_read(&a, false, json, strlen(json), &e), 0);
    while (llama_next_text(&a, &text, &first)) {
        int32_t id = (int32_t)strlen(text);
        buf_printf(&seen, "%s%s ", first ? "^" : "", text);
        llama_take_tokens(&a, (int32_t[]){id, id}, id ? 2 : 0);
    }
    assert_string_equal(seen.data ? seen.data : "", want_texts);
    if (llama_spec(&s, &a, "m", &e) != 0) fail_msg("%s", e.message);
    buf_done(&seen);
    llama_ask_done(&a);
    return s;
}

static void expect_ids(const gen_prompt *p, const int32_t *want, size_t n)
{
    assert_int_equal(p->n_ids, n);
    assert_memory_equal(p->ids, want, n * sizeof *want);
}

static void llama_tokenises_texts_among_ids(void **state)
{
    gen_spec *s = fill_in("{\"prompt\":[12,\"abc\",34]}", "abc ");
    expect_ids(&s->prompts[0], (int32_t[]){12, 3, 3, 34}, 4);
    openai_spec_free(s);
    s = fill_in("{\"prompt\":[[\"ab\",7,\"\",\"abcd\"],\"plain\",[8,9],[5,\"x\"]]}", "^ab  abcd x ");
    assert_int_equal(s->n_prompts, 4);
    expect_ids(&s->prompts[0], (int32_t[]){2, 2, 7, 4, 4}, 5);
    assert_string_equal(s->prompts[1].text, "plain");
    expect_ids(&s->prompts[2], (int32_t[]){8, 9}, 2);
    expect_ids(&s->prompts[3], (int32_t[]){5, 1, 1}, 3);
    openai_spec_free(s);
    s = fill_in("{\"prompt\":[\"a\",\"b\"]}", ""); /* two prompts */
    assert_int_equal(s->n_prompts, 2);
    openai_spec_free(s);
}

static void llama_fills_gaps_by_their_markers(void **state)
{
    static const char JSON[] = "{\"input_prefix\":\"pre\",\"input_suffix\":\"\",\"input_extra\":[{"
                               "\"filename\":\"f\",\"text\":\"t\"}]}";
    llama_ask a;
    api_error e = {0};
    const char *text;
    bool first;
    assert_int_equal(llama_read(&a, true, JSON, strlen(JSON), &e), 0);
    assert_int_equal(llama_fill(&a, (int32_t[]){1, 2, 3}), 0);
    assert_true(llama_next_text(&a, &text, &first) && !first && a.plain);
    assert_string_equal(text, "f\nt\npre");
    llama_take_tokens(&a, (int32_t[]){9}, 1);
    assert_false(llama_next_text(&a, &text, &first));
    gen_spec *s = NULL;
    assert_int_equal(llama_spec(&s, &a, "m", &e), 0);
    expect_ids(&s->prompts[0], (int32_t[]){1, 9, 2, 3}, 4);
    openai_spec_free(s);
    llama_ask_done(&a);
    assert_int_equal(llama_read(&a, true, "{\"input_prefix\":\"a\"}", 20, &e), 400);
    assert_string_equal(e.param, "input_suffix");
    llama_ask_done(&a);
}

/* A reply of one choice in two deltas. */
static void answer_of(gen_answer *a, const gen_spec *s, unsigned n_stop, const char *finish)
{
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__Done done = SHOAL__V1__DONE__INIT;
    assert_int_equal(answer_init(a, openai_spec_choices(s)), 0);
    for (size_t k = 0; k < openai_spec_choices(s); k++) {
        answer_start(a, s, k, 4);
        d.ids = (int32_t[]){5, 6};
        d.n_ids = 2;
        d.text = text_bytes("one\n");
        answer_add(a, s, k, &d);
        d.n_ids = 1;
        d.text = text_bytes("two");
        answer_add(a, s, k, &d);
        done.finish = (char *)(uintptr_t)finish;
        done.n_stop = n_stop;
        done.n_prompt = 4;
        done.n_generated = 3;
        done.prefill_ms = 2;
        done.decode_ms = 3;
        answer_close(a, s, k, &done);
    }
}

static json_t *parse(const buf *b)
{
    json_t *v = NULL;
    shoal_err err;
    assert_false(b->failed);
    if (json_parse(&v, b->data, b->len, "answer", &err) != 0) fail_msg("%s\n%s", err.message, b->data);
    return v;
}

static void expect_str(const json_t *o, const char *key, const char *want)
{
    assert_string_equal(json_string_value(json_object_get(o, key)), want);
}

static void llama_answers_as_llama_server_does(void **state)
{
    gen_spec *s =
        read_ok("{\"prompt\":\"a\",\"return_tokens\":true,\"stop\":[\"x\",\"three\"],\"n_predict\":3}");
    gen_answer a;
    answer_form f;
    buf out = {0};
    answer_of(&a, s, 2, "stop");
    answer_form_init(&f, s, NULL, 1);
    answer_put(&out, &f, &a);
    json_t *v = parse(&out);
    expect_str(v, "content", "one\ntwo");
    expect_str(v, "stop_type", "word");
    expect_str(v, "stopping_word", "three");
    expect_str(v, "prompt", "a");
    assert_true(json_is_true(json_object_get(v, "stop")) && json_is_true(json_object_get(v, "has_new_line")));
    assert_int_equal(json_array_size(json_object_get(v, "tokens")), 3);
    assert_int_equal(json_integer_value(json_object_get(v, "tokens_evaluated")), 4);
    assert_int_equal(json_integer_value(json_object_get(v, "tokens_predicted")), 3);
    assert_true(json_number_value(json_object_get(json_object_get(v, "timings"), "predicted_per_second")) ==
                1000);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(v, "generation_settings"), "n_predict")), 3);
    assert_null(json_object_get(json_object_get(v, "timings"), "draft_n"));
    json_decref(v);
    a.choices[0].figures.n_drafted = 4;
    a.choices[0].figures.n_accepted = 3;
    buf_clear(&out);
    answer_put(&out, &f, &a);
    v = parse(&out);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "timings"), "draft_n")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(v, "timings"), "draft_n_accepted")),
                     3);
    json_decref(v);
    buf packed = {0}, again = {0};
    answer_pack(&packed, &a);
    gen_answer b = {0};
    assert_int_equal(answer_unpack(&b, packed.data, packed.len), 0);
    answer_put(&again, &f, &b);
    assert_string_equal(again.data, out.data);
    answer_done(&a);
    answer_done(&b);
    buf_done(&packed);
    buf_done(&again);
    buf_done(&out);
    openai_spec_free(s);
}

static void expect_stop(const char *json, const char *finish, const char *type, bool truncated)
{
    gen_spec *s = read_ok(json);
    gen_answer a;
    answer_form f;
    buf out = {0};
    answer_of(&a, s, 0, finish);
    answer_form_init(&f, s, NULL, 1);
    answer_put(&out, &f, &a);
    json_t *v = parse(&out);
    expect_str(v, "stop_type", type);
    expect_str(v, "stopping_word", "");
    assert_int_equal(json_is_true(json_object_get(v, "truncated")), truncated);
    json_decref(v);
    buf_done(&out);
    answer_done(&a);
    openai_spec_free(s);
}

static void llama_says_why_a_reply_ended(void **state)
{
    expect_stop("{\"prompt\":\"a\",\"n_predict\":9}", "stop", "eos", false);
    expect_stop("{\"prompt\":\"a\",\"n_predict\":3}", "length", "limit", false);
    expect_stop("{\"prompt\":\"a\",\"n_predict\":9}", "length", "limit", true); /* the context is full */
    expect_stop("{\"prompt\":\"a\"}", "length", "limit", true);
}

static void llama_answers_some_fields_and_many_prompts(void **state)
{
    gen_spec *s = read_ok("{\"prompt\":[\"a\",\"b\"],\"response_fields\":[\"content\",\"timings/"
                          "predicted_n\",\"nothing/at/all\",7]}");
    gen_answer a;
    answer_form f;
    buf out = {0};
    answer_of(&a, s, 0, "stop");
    answer_form_init(&f, s, NULL, 1);
    answer_put(&out, &f, &a);
    assert_string_equal(
        out.data,
        "[{\"content\":\"one\\ntwo\",\"predicted_n\":3},{\"content\":\"one\\ntwo\",\"predicted_n\":3}]");
    buf_done(&out);
    answer_done(&a);
    openai_spec_free(s);
}

static void llama_streams_tokens_and_then_the_end(void **state)
{
    gen_spec *s = read_ok("{\"prompt\":\"a\",\"stream\":true,\"n_probs\":1}");
    gen_answer a;
    answer_form f;
    buf out = {0};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__TokenLogprob p = SHOAL__V1__TOKEN_LOGPROB__INIT, *list[] = {&p};
    answer_of(&a, s, 0, "stop");
    answer_form_init(&f, s, NULL, 1);
    p.id = 5;
    p.text = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t) "\xc3", .len = 1};
    d.text = text_bytes("one");
    d.ids = (int32_t[]){5};
    d.n_ids = d.n_logprobs = 1;
    d.logprobs = list;
    answer_put_role(&out, &f, &a, 0);
    assert_int_equal(out.len, 0);
    answer_put_delta(&out, &f, &a, s, 0, &d);
    assert_string_equal(sse_of(&out),
                        "data: "
                        "{\"index\":0,\"content\":\"one\",\"tokens\":[5],\"stop\":false,\"id_"
                        "slot\":-1,\"tokens_predicted\":3,"
                        "\"tokens_evaluated\":4,\"completion_probabilities\":[{\"id\":5,\"token\":"
                        "\"\xef\xbf\xbd\",\"bytes\":[195],"
                        "\"logprob\":0,\"top_logprobs\":[]}]}\n\n");
    buf_clear(&out);
    answer_put_finish(&out, &f, &a, 0);
    assert_memory_equal(sse_of(&out), "data: {\"index\":0,\"content\":\"\",\"tokens\":[],", 42);
    assert_non_null(strstr(out.data, "\"stop\":true"));
    buf_clear(&out);
    answer_put_end(&out, &f, &a);
    assert_int_equal(out.len, 0);
    answer_put_replay(&out, &f, &a, 0); /* of a kept answer */
    assert_memory_equal(sse_of(&out),
                        "data: {\"index\":0,\"content\":\"one\\ntwo\",\"tokens\":[5,6,5],\"stop\":false", 65);
    buf_done(&out);
    answer_done(&a);
    openai_spec_free(s);
}

static void llama_pieces_that_are_no_text_are_bytes(void **state)
{
    Shoal__V1__TokenizeReply r = SHOAL__V1__TOKENIZE_REPLY__INIT;
    ProtobufCBinaryData pieces[] = {{.data = (uint8_t *)(uintptr_t) "a\"", .len = 2},
                                    {.data = (uint8_t *)(uintptr_t) "\xc3", .len = 1},
                                    {.data = NULL, .len = 0}};
    buf out = {0};
    r.ids = (int32_t[]){1, 2, 3};
    r.n_ids = 3;
    llama_put_tokens(&out, &r);
    assert_string_equal(out.data, "[1,2,3]");
    buf_clear(&out);
    r.pieces = pieces;
    r.n_pieces = 3;
    llama_put_tokens(&out, &r);
    assert_string_equal(
        out.data,
        "[{\"id\":1,\"piece\":\"a\\\"\"},{\"id\":2,\"piece\":[195]},{\"id\":3,\"piece\":\"\"}]");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_asks_what_llama_server_means),
        cmocka_unit_test(llama_names_the_field_it_refuses),
        cmocka_unit_test(llama_tokenises_texts_among_ids),
        cmocka_unit_test(llama_fills_gaps_by_their_markers),
        cmocka_unit_test(llama_answers_as_llama_server_does),
        cmocka_unit_test(llama_says_why_a_reply_ended),
        cmocka_unit_test(llama_answers_some_fields_and_many_prompts),
        cmocka_unit_test(llama_streams_tokens_and_then_the_end),
        cmocka_unit_test(llama_pieces_that_are_no_text_are_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
