/* Conversations: messages and their file, what a server is asked and what its events bring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "json/json.h"
#include "repl/chat_session.h"
#include "client/sse.h"

static chat_talk talk;

static int parse(const char *text)
{
    shoal_err err = {0};
    int rc = chat_talk_parse(&talk, text, strlen(text), "file", &err);
    if (rc != 0) assert_true(*err.message);
    return rc;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void a_talk_is_saved_over_no_file_of_another_kind(void **state)
{
    static const char *const theirs[] = {"notes", "[]", "{\"messages\": []}",
                                         "{\"model\": 1, \"messages\": []}",
                                         "{\"model\": \"m\", \"messages\": [], \"stream\": true}"};
    char folder[] = "/tmp/shoal-talk-XXXXXX", path[60], link[60], text[80];
    shoal_err err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/talk.json", folder);
    snprintf(link, sizeof link, "%s/link.json", folder);
    assert_int_equal(chat_talk_add(&talk, "user", "a", NULL, NULL), 0);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        write_file(path, theirs[i]);
        assert_int_equal(chat_talk_save(&talk, "m", path, &err), SHOAL_EINVALID);
        assert_non_null(strstr(err.message, "another name"));
        FILE *f = fopen(path, "r");
        assert_non_null(fgets(text, sizeof text, f));
        assert_string_equal(text, theirs[i]);
        fclose(f);
    }
    assert_int_equal(chat_talk_save(&talk, "m", folder, &err), SHOAL_EINVALID);
    write_file(path, "");
    assert_int_equal(chat_talk_save(&talk, "m", path, &err), 0);
    assert_int_equal(chat_talk_save(&talk, "m", path, &err), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(chat_talk_save(&talk, "m", link, &err), SHOAL_EINVALID);
    unlink(link);
    unlink(path);
    assert_int_equal(chat_talk_save(&talk, "m", path, &err), 0);
    unlink(path);
    rmdir(folder);
    chat_talk_done(&talk);
    (void)state;
}

static void a_system_message_is_the_first_or_none(void **state)
{
    assert_int_equal(chat_talk_add(&talk, "user", "a", NULL, NULL), 0);
    assert_null(chat_talk_system(&talk));
    assert_int_equal(chat_talk_set_system(&talk, "be brief", NULL), 0);
    assert_string_equal(chat_talk_system(&talk), "be brief");
    assert_int_equal(chat_talk_set_system(&talk, "be long", NULL), 0);
    assert_int_equal(talk.n, 2);
    assert_string_equal(talk.messages[1].content, "a");
    assert_int_equal(chat_talk_set_system(&talk, "", NULL), 0);
    assert_int_equal(talk.n, 1);
    assert_null(chat_talk_system(&talk));
    assert_int_equal(chat_talk_add(&talk, "user", "\xff", NULL, NULL), SHOAL_EINVALID);
    assert_int_equal(chat_talk_set_system(&talk, "\xff", NULL), SHOAL_EINVALID);
    assert_int_equal(talk.n, 1);
    for (size_t i = talk.n; i < CHAT_MESSAGES_MAX; i++) chat_talk_add(&talk, "user", "b", NULL, NULL);
    assert_int_equal(chat_talk_add(&talk, "user", "one more", NULL, NULL), SHOAL_ELIMIT);
    assert_int_equal(chat_talk_set_system(&talk, "one more", NULL), SHOAL_ELIMIT);
    chat_talk_done(&talk);
    assert_int_equal(talk.n, 0);
}

static void a_file_is_read_or_refused_whole(void **state)
{
    assert_int_equal(
        parse(
            "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"}]}"),
        0);
    assert_int_equal(talk.n, 2);
    static const char *const wrong[] = {
        "",
        "7",
        "{}",
        "[7]",
        "[{}]",
        "[{\"role\":\"user\"}]",
        "[{\"role\":\"robot\",\"content\":\"a\"}]",
        "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"system\",\"content\":\"a\"}]",
        "[{\"role\":\"user\",\"content\":[]}]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(parse(wrong[i]), SHOAL_EFORMAT);
    assert_int_equal(talk.n, 2);
    assert_string_equal(talk.messages[1].content, "u");
    assert_int_equal(parse("[]"), 0);
    assert_int_equal(talk.n, 0);
}

static void calls_that_nobody_carried_out_are_answered(void **state)
{
    static const char file[] = "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":"
                               "null,\"tool_calls\":[{\"id\":\"c1\","
                               "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{"
                               "\"role\":\"user\",\"content\":\"v\"}]";
    assert_int_equal(parse(file), 0);
    json_t *all = chat_talk_json(&talk);
    assert_int_equal(json_array_size(all), 4);
    assert_string_equal(json_string_value(json_object_get(json_array_get(all, 2), "role")), "tool");
    assert_string_equal(json_string_value(json_object_get(json_array_get(all, 2), "tool_call_id")), "c1");
    char *text = json_dumps(all, 0);
    assert_int_equal(parse(text), 0); /* what was answered is not answered twice */
    json_t *again = chat_talk_json(&talk);
    assert_true(json_equal(all, again));
    json_decref(again);
    json_decref(all);
    free(text);
    chat_talk_done(&talk);
}

static void what_is_asked_says_how(void **state)
{
    buf out = {0};
    json_t *o = NULL;
    chat_settings s = {.sampling = CLI_SAMPLING_UNSAID(7)};
    s.sampling.temperature = 0.5;
    s.sampling.schema = "{\"type\":\"object\"}";
    chat_talk_add(&talk, "user", "a \"quoted\" word", NULL, NULL);
    assert_int_equal(chat_voice_ask(&out, "m", &talk, &s, NULL), 0);
    assert_int_equal(json_parse(&o, out.data, out.len, "body", NULL), 0);
    assert_string_equal(json_string_value(json_object_get(o, "model")), "m");
    assert_true(json_is_true(json_object_get(o, "stream")));
    assert_int_equal(json_integer_value(json_object_get(o, "max_tokens")), 7);
    assert_true(json_number_value(json_object_get(o, "temperature")) == 0.5);
    assert_non_null(
        json_object_get(json_object_get(json_object_get(o, "response_format"), "json_schema"), "schema"));
    assert_null(json_object_get(o, "top_p")); /* the model's */
    assert_null(json_object_get(o, "top_k"));
    assert_null(json_object_get(o, "seed"));
    s.sampling.schema = "{";
    assert_int_equal(chat_voice_ask(&out, "m", &talk, &s, NULL), SHOAL_EFORMAT);
    json_decref(o);
    buf_done(&out);
    chat_talk_done(&talk);
}

static buf shown;

static int show(void *user, const char *s, size_t n)
{
    return buf_append(&shown, s, n);
}

static void show_call(void *user, const char *name)
{
    buf_printf(&shown, "<%s>", name);
}

static void show_arguments(void *user, const char *json, size_t n)
{
    buf_append(&shown, json, n);
}

static int hear(chat_heard *h, const char *data)
{
    return chat_voice_hear(h, data, strlen(data));
}

static void events_make_a_reply(void **state)
{
    const chat_show to = {.text = show, .thought = show, .call = show_call, .arguments = show_arguments};
    chat_said said = {0};
    chat_heard h = {.show = &to, .said = &said};
    assert_int_equal(hear(&h, "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}"), 0);
    assert_int_equal(hear(&h, "{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm \"}}]}"), 0);
    assert_int_equal(hear(&h, "{\"choices\":[{\"delta\":{\"content\":\"yes \"}}]}"), 0);
    assert_int_equal(hear(&h,
                          "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":"
                          "{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}"),
                     0);
    assert_int_equal(hear(&h, "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{"
                              "\"arguments\":\"}\"}}]}}]}"),
                     0);
    assert_int_equal(hear(&h, "{\"choices\":[],\"usage\":{\"completion_tokens\":9}}"), 0);
    assert_int_equal(hear(&h, "[DONE]"), 1);
    assert_true(h.done);
    assert_int_equal(h.err.code, 0);
    assert_int_equal(said.n_tokens, 9);
    assert_string_equal(said.text.data, "yes ");
    assert_string_equal(said.thought.data, "hm ");
    buf_putc(&shown, '\0');
    assert_string_equal(shown.data, "hm yes <f>{}");
    const json_t *f = json_object_get(json_array_get(h.calls, 0), "function");
    assert_string_equal(json_string_value(json_object_get(f, "arguments")), "{}");
    json_decref(h.calls);
    chat_said_done(&said);
    buf_done(&shown);
}

static void an_event_may_be_an_error_or_nonsense(void **state)
{
    const chat_show to = {.text = show, .thought = show, .call = show_call, .arguments = show_arguments};
    chat_said said = {0};
    chat_heard h = {.show = &to, .said = &said};
    assert_int_equal(hear(&h, "{\"error\":{\"message\":\"the worker died\"}}"), 1);
    assert_non_null(strstr(h.err.message, "the worker died"));
    h = (chat_heard){.show = &to, .said = &said};
    assert_int_equal(hear(&h, "{"), 1);
    assert_int_not_equal(h.err.code, 0);
    h = (chat_heard){.show = &to, .said = &said};
    assert_int_equal(
        hear(&h, "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1000000000,\"function\":{\"name\":"
                 "\"f\"}},{\"index\":-1},7]}}]}"),
        0);
    json_decref(h.calls);
    chat_said_done(&said);
    buf_done(&shown);
}

static void a_slash_begins_a_command_and_two_do_not(void **state)
{
    const char *said;
    assert_true(chat_command_is("/help", &said));
    assert_true(chat_command_is("/set a 1", &said));
    assert_false(chat_command_is("//help", &said));
    assert_string_equal(said, "/help");
    assert_false(chat_command_is("/ 2", &said));
    assert_string_equal(said, "/ 2");
    assert_false(chat_command_is("help", &said));
    assert_false(chat_command_is("", &said));
}

static void events_end_at_a_blank_line(void **state)
{
    static const char two[] = "event: a\nid: 7\ndata: x\n\ndata:y\r\n\r\n: rest";
    sse_event e;
    size_t n = sse_read(&e, two, sizeof two - 1);
    assert_int_equal(n, strlen("event: a\nid: 7\ndata: x\n\n"));
    assert_memory_equal(e.name, "a", e.n_name);
    assert_memory_equal(e.id, "7", e.n_id);
    assert_int_equal(e.n_data, 1);
    size_t m = sse_read(&e, two + n, sizeof two - 1 - n);
    assert_int_equal(m, strlen("data:y\r\n\r\n"));
    assert_int_equal(e.n_data, 1);
    assert_memory_equal(e.data, "y", 1);
    assert_int_equal(sse_read(&e, two + n + m, sizeof two - 1 - n - m), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_talk_is_saved_over_no_file_of_another_kind),
        cmocka_unit_test(a_system_message_is_the_first_or_none),
        cmocka_unit_test(a_file_is_read_or_refused_whole),
        cmocka_unit_test(calls_that_nobody_carried_out_are_answered),
        cmocka_unit_test(what_is_asked_says_how),
        cmocka_unit_test(events_make_a_reply),
        cmocka_unit_test(an_event_may_be_an_error_or_nonsense),
        cmocka_unit_test(a_slash_begins_a_command_and_two_do_not),
        cmocka_unit_test(events_end_at_a_blank_line),
    };
    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
