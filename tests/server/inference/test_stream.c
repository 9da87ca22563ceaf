/* Event ids as text, and answers that go on behind any event, however their deltas are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../text_bytes.h"
#include "dialects/answer.h"
#include "messages/fields.h"
#include "inference/transcript_stream.h"

#define BODY                                                                                           \
    "{\"model\":\"m\",\"stream\":true,\"logprobs\":true,\"messages\":[{\"role\":\"user\",\"content\":" \
    "\"hi\"}]}"

/* What a model says, a token a row; a row is a part of the answer and its text. */
static const struct row {
    char part; /* r, t, or the number of a call */
    const char *name, *text;
} ROWS[] = {
    {'r', NULL, "let me "}, {'r', NULL, "see…"},        {'t', NULL, "Grüße"},     {'t', NULL, ""},
    {'t', NULL, "\"q\","},  {'0', "light", ""},         {'0', NULL, "{\"a\":"},   {'0', NULL, "1}"},
    {'1', "say", "{"},      {'1', NULL, "\"ü\":\"\"}"}, {'t', NULL, " and more"}, {'t', NULL, "."},
};
enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

typedef struct answering {
    gen_spec *spec;
    gen_answer answer;
    answer_form form;
    stream_id id;
    buf out;
} answering;

static void open_answer(answering *a)
{
    api_error e = {0};
    *a = (answering){0};
    assert_int_equal(openai_spec_parse_chat(&a->spec, BODY, strlen(BODY), &e), 0);
    assert_int_equal(answer_init(&a->answer, 1), 0);
    answer_form_init(&a->form, a->spec, "0123456789abcdef", 1);
    stream_id_init(&a->id, 1);
    memcpy(a->id.nonce, "twelve bytes", STREAM_NONCE_BYTES);
    answer_form_name(&a->form, a->id.nonce, 7);
    a->form.events = &a->id;
}

static void close_answer(answering *a)
{
    answer_done(&a->answer);
    openai_spec_free(a->spec);
    buf_done(&a->out);
}

/* One delta of rows [from, to); had (may be NULL) is what the client has. True: it has caught up. */
static bool say(answering *a, size_t from, size_t to, const stream_mark *had, bool behind)
{
    buf text = {0}, reasoning = {0};
    Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
    Shoal__V1__ToolCallDelta calls[N_ROWS], *call_list[N_ROWS];
    Shoal__V1__TokenLogprob tokens[N_ROWS], *token_list[N_ROWS];
    for (size_t i = from; i < to; i++) {
        const struct row *r = &ROWS[i];
        if (r->part == 'r') buf_puts(&reasoning, r->text);
        if (r->part == 't') buf_puts(&text, r->text);
        tokens[i] = (Shoal__V1__TokenLogprob)SHOAL__V1__TOKEN_LOGPROB__INIT;
        tokens[i].text = (ProtobufCBinaryData){strlen(r->text), (uint8_t *)(uintptr_t)r->text};
        tokens[i].logprob = -(float)i;
        token_list[d.n_logprobs++] = &tokens[i];
        if (r->part > '9') continue;
        calls[d.n_tool_calls] = (Shoal__V1__ToolCallDelta)SHOAL__V1__TOOL_CALL_DELTA__INIT;
        calls[d.n_tool_calls].index = (uint32_t)(r->part - '0');
        if (r->name) calls[d.n_tool_calls].name = (char *)(uintptr_t)r->name;
        calls[d.n_tool_calls].arguments = (char *)(uintptr_t)r->text;
        call_list[d.n_tool_calls] = &calls[d.n_tool_calls];
        d.n_tool_calls++;
    }
    d.text = (ProtobufCBinaryData){text.len, (uint8_t *)text.data};
    d.reasoning = (ProtobufCBinaryData){reasoning.len, (uint8_t *)reasoning.data};
    d.tool_calls = call_list;
    d.logprobs = token_list;
    answer_add(&a->answer, a->spec, 0, &d);
    answer_rest rest = REST_PUT;
    if (behind)
        rest = answer_put_rest(&a->out, &a->form, &a->answer, 0, had);
    else
        answer_put_delta(&a->out, &a->form, &a->answer, a->spec, 0, &d);
    assert_int_not_equal(rest, REST_DIFFERENT);
    buf_done(&text);
    buf_done(&reasoning);
    return rest == REST_PUT;
}

static void end_answer(answering *a, bool had_end)
{
    Shoal__V1__Done d = SHOAL__V1__DONE__INIT;
    d.finish = (char *)(uintptr_t) "stop";
    answer_close(&a->answer, a->spec, 0, &d);
    if (!had_end) answer_put_finish(&a->out, &a->form, &a->answer, 0);
}

/* Add the first n events of a stream to what a client has of it; *ret_id (may be NULL) is the last one's id.
 */
static void hear(buf *ret, const buf *events, size_t n, char *ret_id)
{
    static const char *const KEYS[] = {"reasoning_content", "content"};
    const char *at = events->data;
    size_t left = events->len;
    event e;
    for (size_t i = 0; i < n && left > 0 && event_next(&at, &left, &e); i++) {
        if (ret_id) snprintf(ret_id, STREAM_ID_LETTERS, "%.*s", (int)e.n_id, e.id);
        json_t *chunk = json_loadb(e.data, e.n_data, 0, NULL);
        const json_t *c = json_array_get(json_object_get(chunk, "choices"), 0),
                     *d = json_object_get(c, "delta");
        for (int k = 0; k < 2; k++) {
            const char *s = json_string_value(json_object_get(d, KEYS[k]));
            for (; s && *s; s++) buf_append(ret, (char[]){(char)('0' + k), *s}, 2);
        }
        const json_t *call = json_array_get(json_object_get(d, "tool_calls"), 0),
                     *f = json_object_get(call, "function");
        const char *name = json_string_value(json_object_get(f, "name"));
        const char *arguments = json_string_value(json_object_get(f, "arguments"));
        if (name) buf_printf(ret, "<%s>", name);
        for (; arguments && *arguments; arguments++) buf_append(ret, (char[]){'2', *arguments}, 2);
        json_t *list = json_object_get(json_object_get(c, "logprobs"), "content");
        for (size_t k = 0; k < json_array_size(list); k++)
            buf_printf(ret, "[%g]", json_number_value(json_object_get(json_array_get(list, k), "logprob")));
        if (json_object_get(d, "role")) buf_puts(ret, "(role)");
        if (json_is_string(json_object_get(c, "finish_reason"))) buf_puts(ret, "(end)");
        json_decref(chunk);
    }
}

/* What was heard, part by part: how the parts lie between each other is not promised. */
static void sort_out(buf *ret, const buf *heard)
{
    for (char part = '0'; part <= '3'; part++)
        for (size_t i = 0; i < heard->len;) {
            char c = heard->data[i];
            size_t n = strchr("012", c) ? 2
                                        : strcspn(heard->data + i, c == '<'   ? ">"
                                                                   : c == '[' ? "]"
                                                                              : ")") +
                                              1;
            if (c == part) buf_putc(ret, heard->data[i + 1]);
            if ((c == '<' && part == '2') || (c == '[' && part == '3') || (c == '(' && part == '1'))
                buf_append(ret, heard->data + i, n);
            i += n;
        }
}

static size_t count_events(const buf *b)
{
    size_t n = 0, left = b->len;
    const char *at = b->data;
    event e;
    while (left > 0 && event_next(&at, &left, &e)) n++;
    return n;
}

static void resume_and_compare(const answering *first, size_t k, size_t step, const char *expected)
{
    char id[STREAM_ID_LETTERS];
    buf heard = {0}, sorted = {0};
    stream_id had;
    answering a;
    hear(&heard, &first->out, k, id);
    assert_int_equal(stream_id_parse(&had, id, strlen(id), NULL), 0);
    open_answer(&a);
    bool behind = true;
    for (size_t i = 0; i < N_ROWS; i += step)
        behind = !say(&a, i, i + step < N_ROWS ? i + step : N_ROWS, &had.marks[0], behind) && behind;
    end_answer(&a, had.marks[0].finished);
    if (behind) assert_int_equal(answer_put_rest(&a.out, &a.form, &a.answer, 0, &had.marks[0]), REST_PUT);
    hear(&heard, &a.out, SIZE_MAX, NULL);
    sort_out(&sorted, &heard);
    if (strcmp(sorted.data, expected) != 0)
        fail_msg("behind event %zu in steps of %zu:\n%s\n%s", k, step, sorted.data, expected);
    buf_done(&heard);
    buf_done(&sorted);
    close_answer(&a);
}

static void an_answer_goes_on_behind_any_event(void **state)
{
    for (size_t step = 1; step <= N_ROWS; step++) {
        answering first;
        buf heard = {0}, expected = {0};
        open_answer(&first);
        for (size_t i = 0; i < N_ROWS; i += step)
            say(&first, i, i + step < N_ROWS ? i + step : N_ROWS, NULL, false);
        end_answer(&first, false);
        hear(&heard, &first.out, SIZE_MAX, NULL);
        sort_out(&expected, &heard);
        size_t n = count_events(&first.out);
        assert_true(n >= 4);
        for (size_t k = 1; k <= n; k++)
            for (size_t again = 1; again <= N_ROWS; again += 2)
                resume_and_compare(&first, k, again, expected.data);
        buf_done(&heard);
        buf_done(&expected);
        close_answer(&first);
    }
}

static answer_rest rest_of(const stream_mark *had)
{
    answering a;
    open_answer(&a);
    answer_rest r = REST_BEHIND;
    for (size_t i = 0; i < N_ROWS; i++) {
        Shoal__V1__Delta d = SHOAL__V1__DELTA__INIT;
        if (ROWS[i].part == 't') d.text = text_bytes(ROWS[i].text);
        answer_add(&a.answer, a.spec, 0, &d);
        r = answer_put_rest(&a.out, &a.form, &a.answer, 0, had);
        if (r != REST_BEHIND) break;
    }
    close_answer(&a);
    return r;
}

static void what_cannot_have_been_sent_is_seen(void **state)
{
    stream_id s;
    stream_id_init(&s, 1);
    stream_mark *m = &s.marks[0];
    stream_mark_text(m, MARK_TEXT, "Grüße", strlen("Grüße"));
    assert_int_equal(rest_of(m), REST_PUT);
    stream_id_init(&s, 1);
    stream_mark_text(m, MARK_TEXT, "Grüne", strlen("Grüne")); /* another answer */
    assert_int_equal(rest_of(m), REST_DIFFERENT);
    stream_id_init(&s, 1);
    stream_mark_text(m, MARK_TEXT, "Gr\xC3", 3); /* half a character */
    assert_int_equal(rest_of(m), REST_DIFFERENT);
    stream_id_init(&s, 1);
    m->n_bytes[MARK_TEXT] = UINT32_MAX; /* more than there is */
    assert_int_equal(rest_of(m), REST_BEHIND);
    stream_id_init(&s, 1);
    m->n_bytes[MARK_CALLS] = 3; /* within a name */
    assert_int_equal(rest_of(m), REST_BEHIND);
}

static void an_id_has_one_spelling(void **state)
{
    stream_id s, back;
    shoal_err err = {0};
    stream_id_init(&s, 2);
    memcpy(s.nonce, "twelve bytes", STREAM_NONCE_BYTES);
    s.created = 1795324006;
    s.zone = -48;
    s.marks[1].n_logprobs = 3;
    s.marks[1].max_tokens = 4096;
    s.marks[0].finished = s.marks[1].begun = true;
    stream_mark_text(&s.marks[1], MARK_TEXT, "abc", 3);
    buf text = {0};
    stream_id_put(&text, &s);
    assert_int_equal(stream_id_parse(&back, text.data, text.len, &err), 0);
    assert_true(back.created == s.created && back.zone == s.zone && back.n_choices == 2);
    assert_true(stream_mark_equal_text(&back.marks[1], &s.marks[1]) && back.marks[1].n_logprobs == 3);
    assert_true(back.marks[1].max_tokens == 4096 && back.marks[0].finished && !back.marks[1].finished);
    for (size_t n = 0; n < text.len; n++) {
        assert_int_equal(stream_id_parse(&back, text.data, n, &err), SHOAL_EFORMAT);
        assert_non_null(strstr(err.message, "without Last-Event-ID"));
    }
    text.data[0] = 'z'; /* another version */
    assert_int_equal(stream_id_parse(&back, text.data, text.len, &err), SHOAL_EFORMAT);
    buf_done(&text);
}

static void an_identity_is_of_all_that_decides_the_bytes(void **state)
{
    static const char *const BODIES[] = {
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        "{\"model\":\"n\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"ho\"}]}",
        "{\"model\":\"m\",\"seed\":0,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        "{\"model\":\"m\",\"seed\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
        "{\"model\":\"m\",\"stream_options\":{\"include_usage\":true},\"messages\":[{\"role\":\"user\","
        "\"content\":\"hi\"}]}",
    };
    enum { N = sizeof BODIES / sizeof *BODIES };
    sha256_digest d[N], again;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 2; k++) { /* a drawn seed is no part of what was asked */
            gen_spec *s;
            api_error e;
            assert_int_equal(openai_spec_parse_chat(&s, BODIES[i], strlen(BODIES[i]), &e), 0);
            assert_true(openai_spec_identity(s, k ? &again : &d[i]));
            openai_spec_free(s);
        }
        assert_memory_equal(&again, &d[i], sizeof again);
        for (int k = 0; k < i; k++) assert_memory_not_equal(&d[k], &d[i], sizeof again);
    }
}

/* Segments of a transcription by the model file "d1", to a client that has the first n_had of them. */
static transcript_stream heard_of(const char *const *had, size_t n_had)
{
    transcript_stream s = {.named = true, .resumes = n_had > 0};
    stream_id_init(&s.id, 1);
    stream_id_model(s.id.model, "d1", "");
    stream_mark_init(&s.had);
    for (size_t i = 0; i < n_had; i++) stream_mark_text(&s.had, MARK_TEXT, had[i], strlen(had[i]));
    return s;
}

static void a_transcription_goes_on_behind_any_segment(void **state)
{
    static const char *const said[] = {"turn", "", " on the", " light"}, *const other[] = {"turn", "",
                                                                                           " in the"};
    static const char *const longer[] = {"turn", "", " on the", " light", " please"};
    gateway_request rq = {.model = "m"};
    api_error e;
    bool is_new;
    for (size_t n = 0; n <= 4; n++) {
        transcript_stream s = heard_of(said, n);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(transcript_stream_text(&s, &rq, "d1", said[i], strlen(said[i]), &is_new, &e), 0);
            /* What is empty may come twice: it changes nothing. */
            assert_true(is_new == (i >= n) || !*said[i]);
        }
        assert_int_equal(transcript_stream_end(&s, &e), 0);
    }
    transcript_stream s = heard_of(other, 3);
    assert_int_equal(transcript_stream_text(&s, &rq, "d1", "turn", 4, &is_new, &e), 0);
    assert_int_equal(transcript_stream_text(&s, &rq, "d1", " on the", 7, &is_new, &e), 409);
    assert_string_equal(e.code, "stream_differs");
    s = heard_of(longer, 5);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(transcript_stream_text(&s, &rq, "d1", said[i], strlen(said[i]), &is_new, &e), 0);
    assert_int_equal(transcript_stream_end(&s, &e), 409); /* it has more than there is */
    s = heard_of(said, 1);
    assert_int_equal(transcript_stream_text(&s, &rq, "d2", "turn", 4, &is_new, &e), 409);
    assert_string_equal(e.code, "model_replaced");
    s = heard_of(said, 0); /* a stand-in, and nobody was promised anything */
    assert_int_equal(transcript_stream_text(&s, &rq, "d2", "turn", 4, &is_new, &e), 0);
    assert_true(is_new && !s.named);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_goes_on_behind_any_event),
        cmocka_unit_test(a_transcription_goes_on_behind_any_segment),
        cmocka_unit_test(what_cannot_have_been_sent_is_seen),
        cmocka_unit_test(an_id_has_one_spelling),
        cmocka_unit_test(an_identity_is_of_all_that_decides_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
