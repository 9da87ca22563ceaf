/* Answers as OpenAI objects, as stream events, and packed for the cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "../../text_bytes.h"
#include "../messages/sse.h"
#include "json/json.h"
#include "base/utf8.h"
#include "dialects/answer.h"

#define MSG "\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

typedef struct fixture {
    gen_spec *spec;
    gen_answer answer;
    answer_form form;
    buf out;
} fixture;

static void open_chat(fixture *f, const char *body)
{
    api_error e = {0};
    *f = (fixture){0};
    assert_int_equal(openai_spec_parse_chat(&f->spec, body, strlen(body), &e), 0);
    assert_int_equal(answer_init(&f->answer, openai_spec_choices(f->spec)), 0);
    answer_form_init(&f->form, f->spec, "0123456789abcdef", 1);
    /* Ids and times are drawn; fixed here so that the bytes can be compared. */
    strcpy(f->form.id, "chatcmpl-1");
    f->form.created = 7;
    f->form.salt = 1;
}

static void close_all(fixture *f)
{
    answer_done(&f->answer);
    openai_spec_free(f->spec);
    buf_done(&f->out);
}

static void add_text(fixture *f, const char *text)
{
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    d.text = text_bytes(text);
    answer_add(&f->answer, f->spec, 0, &d);
    if (f->spec->stream) answer_put_delta(&f->out, &f->form, &f->answer, f->spec, 0, &d);
}

static void add_call(fixture *f, const char *name, const char *arguments)
{
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__ToolCallDelta t = SHOAL__V1__TOOL_CALL_DELTA__INIT, *list = &t;
    if (name) t.name = (char *)name;
    t.arguments = (char *)arguments;
    d.tool_calls = &list;
    d.n_tool_calls = 1;
    answer_add(&f->answer, f->spec, 0, &d);
    if (f->spec->stream) answer_put_delta(&f->out, &f->form, &f->answer, f->spec, 0, &d);
}

static void finish(fixture *f, const char *why)
{
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    d.finish = (char *)why;
    d.n_prompt = 10;
    d.n_cached = 4;
    d.n_generated = 3;
    answer_close(&f->answer, f->spec, 0, &d);
}

static json_t *parsed(const char *text, size_t n)
{
    json_t *v = NULL;
    shoal_err err = {0};
    if (json_parse(&v, text, n, "answer", &err) != 0) print_error("%s\n%.*s\n", err.message, (int)n, text);
    assert_non_null(v);
    return v;
}

static void answer_whole_has_openais_fields(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG "}");
    add_text(&f, "Hel");
    add_text(&f, "lo \"you\"\n");
    finish(&f, "stop");
    answer_put(&f.out, &f.form, &f.answer);
    assert_string_equal(
        f.out.data,
        "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":7,\"model\":\"m\",\"system_"
        "fingerprint\":"
        "\"fp_0123456789ab\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
        "\"Hello "
        "\\\"you\\\"\\n\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{"
        "\"prompt_tokens\":10,\"completion_tokens\":3,\"total_tokens\":13,\"prompt_tokens_details\":{"
        "\"cached_tokens\":4,\"cache_write_tokens\":6}}}");
    close_all(&f);
}

static void answer_stream_is_role_deltas_finish_usage_done(void **state)
{
#define HEAD                                                                                           \
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":7,\"model\":\"m\"," \
    "\"system_fingerprint\":\"fp_0123456789ab\",\"choices\":["
#define TAIL(reason) ",\"logprobs\":null,\"finish_reason\":" reason "}],\"usage\":null}\n\n"
    fixture f;
    open_chat(&f, "{" MSG ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    add_text(&f, "a");
    add_text(&f, "b");
    finish(&f, "length");
    answer_put_finish(&f.out, &f.form, &f.answer, 0);
    answer_put_end(&f.out, &f.form, &f.answer);
    assert_string_equal(
        sse_of(&f.out),
        HEAD "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}" TAIL("null")
            HEAD "{\"index\":0,\"delta\":{\"content\":\"a\"}" TAIL("null") HEAD
        "{\"index\":0,\"delta\":{\"content\":\"b\"}" TAIL("null") HEAD
        "{\"index\":0,\"delta\":{}" TAIL("\"length\"") HEAD
        "],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\"total_tokens\":13,"
        "\"prompt_tokens_details\":{\"cached_tokens\":4,\"cache_write_tokens\":6}}}\n\n"
        "data: [DONE]\n\n");
    close_all(&f);
}

static void open_completion(fixture *f, const char *body);

/* vLLM's continuous_usage_stats and return_tokens_as_token_ids. */
static void answer_counts_in_each_chunk_where_it_is_asked_to(void **state)
{
    fixture f;
    open_completion(
        &f, "{\"model\":\"m\",\"prompt\":\"hi\",\"logprobs\":1,\"return_tokens_as_token_ids\":true,"
            "\"stream\":true,\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true}}");
    f.form.counted = &f.answer;
    answer_start(&f.answer, f.spec, 0, 9);
    Shoal__V1__TokenLogprob top = SHOAL__V1__TOKEN_LOGPROB__INIT, t = SHOAL__V1__TOKEN_LOGPROB__INIT;
    Shoal__V1__TokenLogprob *tops[] = {&top}, *list[] = {&t};
    for (int i = 0; i < 2; i++) {
        Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
        top.id = 7;
        top.text = text_bytes("a");
        t = top;
        t.top = tops;
        t.n_top = 1;
        d.ids = (int32_t[]){7};
        d.n_ids = 1;
        d.text = text_bytes("a");
        d.logprobs = list;
        d.n_logprobs = 1;
        answer_add(&f.answer, f.spec, 0, &d);
        answer_put_delta(&f.out, &f.form, &f.answer, f.spec, 0, &d);
    }
    buf_putc(&f.out, '\0');
    const char *at =
        strstr(f.out.data, "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10}");
    assert_non_null(at);
    assert_non_null(
        strstr(at, "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11}"));
    assert_non_null(strstr(f.out.data, "\"tokens\":[\"token_id:7\"]"));
    assert_non_null(strstr(f.out.data, "\"top_logprobs\":[{\"token_id:7\":0}]"));
    close_all(&f);
}

static void add_thought(fixture *f, const char *thought, const char *text)
{
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    d.reasoning = text_bytes(thought);
    if (text) d.text = text_bytes(text);
    answer_add(&f->answer, f->spec, 0, &d);
    if (f->spec->stream) answer_put_delta(&f->out, &f->form, &f->answer, f->spec, 0, &d);
}

static void answer_keeps_thoughts_apart(void **state)
{
    for (int stream = 0; stream < 2; stream++) {
        fixture f;
        open_chat(&f, stream ? "{" MSG ",\"stream\":true}" : "{" MSG "}");
        add_thought(&f, "It is ", NULL);
        add_thought(&f, "off.", "Yes.");
        f.answer.n_reasoning = 2;
        finish(&f, "stop");
        if (!stream) answer_put(&f.out, &f.form, &f.answer);
        if (stream) answer_put_end(&f.out, &f.form, &f.answer);
        if (stream) {
            assert_non_null(strstr(f.out.data, "\"delta\":{\"reasoning_content\":\"It is \"}"));
            const char *off = strstr(f.out.data, "\"delta\":{\"reasoning_content\":\"off.\"}");
            assert_non_null(off);
            assert_non_null(strstr(off, "\"delta\":{\"content\":\"Yes.\"}"));
        } else {
            assert_non_null(strstr(f.out.data, "\"content\":\"Yes.\",\"reasoning_content\":\"It is off.\""));
            assert_non_null(strstr(f.out.data, "\"completion_tokens_details\":{\"reasoning_tokens\":2}"));
        }
        close_all(&f);
    }
}

/* Cut by max_tokens while it thinks: there is no answer, and the object says why. */
static void answer_cut_within_a_thought_says_length(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG "}");
    add_thought(&f, "Let me", NULL);
    finish(&f, "length");
    answer_put(&f.out, &f.form, &f.answer);
    assert_non_null(strstr(f.out.data, "\"content\":\"\",\"reasoning_content\":\"Let me\""));
    assert_non_null(strstr(f.out.data, "\"finish_reason\":\"length\""));
    buf packed = {0};
    gen_answer back;
    answer_pack(&packed, &f.answer);
    assert_int_equal(answer_unpack(&back, packed.data, packed.len), 0);
    assert_int_equal(back.choices[0].reasoning.len, 6);
    answer_done(&back);
    buf_done(&packed);
    close_all(&f);
}

static void answer_streams_tool_calls_with_id_once(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG ",\"stream\":true}");
    add_call(&f, "light.on", "{\"t\":");
    add_call(&f, NULL, "1}");
    assert_non_null(strstr(f.out.data, "{\"tool_calls\":[{\"index\":0,\"id\":\"call_"));
    assert_non_null(
        strstr(f.out.data, "\"function\":{\"name\":\"light.on\",\"arguments\":\"{\\\"t\\\":\"}}]}"));
    assert_non_null(
        strstr(f.out.data, "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}"));
    char *first = strstr(f.out.data, "\"id\":\"call_");
    assert_null(strstr(first + 1, "\"id\":\"call_"));
    finish(&f, "tool_calls");
    buf_clear(&f.out);
    answer_put(&f.out, &f.form, &f.answer);
    json_t *v = parsed(f.out.data, f.out.len);
    json_t *m = json_object_get(json_array_get(json_object_get(v, "choices"), 0), "message");
    assert_true(json_is_null(json_object_get(m, "content")));
    json_t *fn = json_object_get(json_array_get(json_object_get(m, "tool_calls"), 0), "function");
    assert_string_equal(json_string_value(json_object_get(fn, "name")), "light.on");
    assert_string_equal(json_string_value(json_object_get(fn, "arguments")), "{\"t\":1}");
    json_decref(v);
    close_all(&f);
}

#define FUNCTIONS ",\"functions\":[{\"name\":\"f\"}]"

static void answer_says_a_call_in_the_older_form(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG FUNCTIONS "}");
    add_call(&f, "f", "{\"x\":");
    add_call(&f, NULL, "1}");
    finish(&f, "tool_calls");
    answer_put(&f.out, &f.form, &f.answer);
    buf_putc(&f.out, '\0');
    assert_non_null(strstr(f.out.data, "\"content\":null,\"function_call\":{\"name\":\"f\",\"arguments\":"
                                       "\"{\\\"x\\\":1}\"},\"refusal\":null}"));
    assert_non_null(strstr(f.out.data, "\"finish_reason\":\"function_call\""));
    assert_null(strstr(f.out.data, "tool_calls"));
    close_all(&f);
}

static void answer_streams_a_call_in_the_older_form(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG FUNCTIONS ",\"stream\":true}");
    add_call(&f, "f", "{\"x\":");
    add_call(&f, NULL, "1}");
    finish(&f, "tool_calls");
    answer_put_finish(&f.out, &f.form, &f.answer, 0);
    buf_putc(&f.out, '\0');
    assert_non_null(
        strstr(f.out.data, "\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\"}}"));
    assert_non_null(strstr(f.out.data, "\"delta\":{\"function_call\":{\"arguments\":\"1}\"}}"));
    assert_non_null(strstr(f.out.data, "\"finish_reason\":\"function_call\""));
    assert_null(strstr(f.out.data, "tool_calls"));
    close_all(&f);
}

static void answer_never_emits_invalid_utf8(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG "}");
    add_text(&f, "ok \xC3\x28 \xFF");
    finish(&f, "stop");
    answer_put(&f.out, &f.form, &f.answer);
    assert_true(utf8_valid(f.out.data, f.out.len, NULL));
    json_decref(parsed(f.out.data, f.out.len));
    close_all(&f);
}

static void answer_logprobs_are_openais(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG ",\"logprobs\":true,\"top_logprobs\":1}");
    Shoal__V1__TokenLogprob top = SHOAL__V1__TOKEN_LOGPROB__INIT, t = SHOAL__V1__TOKEN_LOGPROB__INIT;
    Shoal__V1__TokenLogprob *tops = &top, *tokens = &t;
    top.text = t.text = (ProtobufCBinaryData){.len = 1, .data = (uint8_t *)"a"};
    top.logprob = t.logprob = -0.5f;
    t.top = &tops;
    t.n_top = 1;
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    d.text = text_bytes("a");
    d.logprobs = &tokens;
    d.n_logprobs = 1;
    answer_add(&f.answer, f.spec, 0, &d);
    finish(&f, "stop");
    answer_put(&f.out, &f.form, &f.answer);
    assert_non_null(strstr(f.out.data,
                           "\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-0.5,\"bytes\":[97],"
                           "\"top_logprobs\":[{\"token\":\"a\",\"logprob\":-0.5,\"bytes\":[97]}]}],"
                           "\"refusal\":null}"));
    close_all(&f);
}

static void add_token(fixture *f, const char *token, const char *text)
{
    Shoal__V1__TokenLogprob t = SHOAL__V1__TOKEN_LOGPROB__INIT, *tokens = &t;
    t.text = (ProtobufCBinaryData){.len = strlen(token), .data = (uint8_t *)token};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    d.text = text_bytes(text);
    d.logprobs = &tokens;
    d.n_logprobs = 1;
    answer_add(&f->answer, f->spec, 0, &d);
    if (f->spec->stream) answer_put_delta(&f->out, &f->form, &f->answer, f->spec, 0, &d);
}

static void open_completion(fixture *f, const char *body)
{
    api_error e = {0};
    *f = (fixture){0};
    assert_int_equal(openai_spec_parse_completion(&f->spec, body, strlen(body), &e), 0);
    assert_int_equal(answer_init(&f->answer, openai_spec_choices(f->spec)), 0);
    answer_form_init(&f->form, f->spec, "0123456789abcdef", 1);
}

/* The first byte of an e with an accent waits for its second; offsets do not. */
static void offsets_do_not_depend_on_when_text_came(void **state)
{
    fixture f;
    open_completion(&f, "{\"model\":\"m\",\"prompt\":\"hi\",\"logprobs\":0,\"echo\":true}");
    add_text(&f, "hi");
    add_token(&f, "a", "a");
    add_token(&f, "\xC3", "");
    add_token(&f, "\xA9", "\xC3\xA9");
    add_token(&f, "b", "b");
    finish(&f, "stop");
    answer_put(&f.out, &f.form, &f.answer);
    assert_non_null(strstr(f.out.data, "\"text_offset\":[2,3,3,4]"));
    close_all(&f);
    open_completion(&f, "{\"model\":\"m\",\"prompt\":\"hi\",\"logprobs\":0,\"stream\":true}");
    add_token(&f, "\xC3", "");
    add_token(&f, "\xA9", "\xC3\xA9");
    add_token(&f, "b", "b");
    const char *at = strstr(f.out.data, "\"text_offset\":[0]");
    assert_non_null(at);
    assert_non_null(at = strstr(at + 1, "\"text_offset\":[0]"));
    assert_non_null(strstr(at, "\"text_offset\":[1]"));
    close_all(&f);
}

/* What comes of a prompt that is given back with its log-probabilities: whole, in front of all. */
static void a_prompts_first_token_is_worth_nothing(void **state)
{
    for (int unseen = 0; unseen < 2; unseen++) {
        fixture f;
        Shoal__V1__TokenLogprob t[2] = {SHOAL__V1__TOKEN_LOGPROB__INIT, SHOAL__V1__TOKEN_LOGPROB__INIT};
        Shoal__V1__TokenLogprob *list[] = {&t[0], &t[1]};
        Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
        open_completion(&f, "{\"model\":\"m\",\"prompt\":\"hi\",\"logprobs\":0,\"echo\":true}");
        t[0].logprob = NAN;
        t[0].text =
            unseen ? (ProtobufCBinaryData){3, (uint8_t *)"<s>"} : (ProtobufCBinaryData){1, (uint8_t *)"h"};
        t[1].logprob = -2;
        t[1].text =
            unseen ? (ProtobufCBinaryData){2, (uint8_t *)"hi"} : (ProtobufCBinaryData){1, (uint8_t *)"i"};
        d.text = text_bytes("hi");
        d.logprobs = list;
        d.n_logprobs = 2;
        answer_add(&f.answer, f.spec, 0, &d);
        add_token(&f, "a", "a");
        finish(&f, "stop");
        answer_put(&f.out, &f.form, &f.answer);
        assert_non_null(strstr(f.out.data, "\"token_logprobs\":[null,-2,"));
        assert_non_null(strstr(f.out.data, "\"top_logprobs\":[null,{},"));
        assert_non_null(strstr(f.out.data, unseen ? "\"text_offset\":[0,0,2]" : "\"text_offset\":[0,1,2]"));
        close_all(&f);
    }
}

/* As OpenAI counts them, of all choices, and a cached answer still knows. */
static void answer_counts_guessed_tokens(void **state)
{
    fixture f;
    buf packed = {0};
    gen_answer back;
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    open_chat(&f, "{" MSG "}");
    add_text(&f, "text");
    d.n_drafted = 7;
    d.n_accepted = 5;
    answer_close(&f.answer, f.spec, 0, &d);
    d.n_accepted = 9; /* more than there were */
    answer_close(&f.answer, f.spec, 0, &d);
    answer_pack(&packed, &f.answer);
    assert_int_equal(answer_unpack(&back, packed.data, packed.len), 0);
    answer_put(&f.out, &f.form, &back);
    assert_non_null(strstr(f.out.data, ",\"completion_tokens_details\":{\"accepted_prediction_tokens\":12,"
                                       "\"rejected_prediction_tokens\":2}}}"));
    buf_clear(&f.out);
    back.n_reasoning = 3;
    answer_put(&f.out, &f.form, &back);
    assert_non_null(
        strstr(f.out.data, "_details\":{\"reasoning_tokens\":3,\"accepted_prediction_tokens\":12,"));
    answer_done(&back);
    buf_done(&packed);
    close_all(&f);
}

static void answer_packs_and_comes_back_the_same(void **state)
{
    fixture f;
    buf packed = {0}, again = {0};
    gen_answer back;
    open_chat(&f, "{" MSG "}");
    add_text(&f, "text");
    add_call(&f, "t", "{}");
    finish(&f, "tool_calls");
    answer_pack(&packed, &f.answer);
    assert_int_equal(answer_unpack(&back, packed.data, packed.len), 0);
    answer_put(&f.out, &f.form, &f.answer);
    answer_put(&again, &f.form, &back);
    assert_string_equal(f.out.data, again.data);
    answer_done(&back);
    for (size_t n = 0; n < packed.len; n++) { /* every cut is noticed */
        char *cut = malloc(n ? n : 1);
        memcpy(cut, packed.data, n);
        assert_int_equal(answer_unpack(&back, cut, n), SHOAL_EFORMAT);
        free(cut);
    }
    buf_done(&packed);
    buf_done(&again);
    close_all(&f);
}

static void answer_replay_streams_what_was_whole(void **state)
{
    fixture f;
    open_chat(&f, "{" MSG ",\"stream\":true}");
    add_text(&f, "all ");
    add_text(&f, "of it");
    finish(&f, "stop");
    buf_clear(&f.out);
    f.answer.choices[0].role_sent = false;
    answer_put_replay(&f.out, &f.form, &f.answer, 0);
    assert_non_null(strstr(f.out.data, "\"role\":\"assistant\""));
    assert_non_null(strstr(f.out.data, "{\"content\":\"all of it\"}"));
    close_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_whole_has_openais_fields),
        cmocka_unit_test(answer_stream_is_role_deltas_finish_usage_done),
        cmocka_unit_test(answer_keeps_thoughts_apart),
        cmocka_unit_test(answer_cut_within_a_thought_says_length),
        cmocka_unit_test(answer_streams_tool_calls_with_id_once),
        cmocka_unit_test(answer_says_a_call_in_the_older_form),
        cmocka_unit_test(answer_streams_a_call_in_the_older_form),
        cmocka_unit_test(answer_never_emits_invalid_utf8),
        cmocka_unit_test(answer_logprobs_are_openais),
        cmocka_unit_test(offsets_do_not_depend_on_when_text_came),
        cmocka_unit_test(answer_counts_in_each_chunk_where_it_is_asked_to),
        cmocka_unit_test(a_prompts_first_token_is_worth_nothing),
        cmocka_unit_test(answer_counts_guessed_tokens),
        cmocka_unit_test(answer_packs_and_comes_back_the_same),
        cmocka_unit_test(answer_replay_streams_what_was_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
