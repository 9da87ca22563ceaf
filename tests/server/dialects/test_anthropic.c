/* anthropic.h: what a Messages request comes to as chat, an answer as Anthropic's object and events, errors, models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/anthropic.h"
#include "json/json.h"
#include "../messages/sse.h"

#define HEAD  "{\"model\":\"m\",\"max_tokens\":9,"
#define HELLO "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]"

static json_t *read_ok(const char *body)
{
    json_t *chat = NULL;
    api_error e = {0};
    if (anthropic_read(&chat, ANTHROPIC_MESSAGE, body, strlen(body), &e) != 0)
        fail_msg("%s\n%s", body, e.message);
    return chat;
}

static void assert_json(const json_t *v, const char *wanted)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text ? text : "(nothing)", wanted);
    free(text);
}

/* `key` of the chat request that the body comes to. */
static void comes_to(const char *body, const char *key, const char *wanted)
{
    json_t *chat = read_ok(body);
    assert_json(json_object_get(chat, key), wanted);
    json_decref(chat);
}

static void refused_kind(anthropic_kind kind, const char *body, const char *message)
{
    json_t *chat = NULL;
    api_error e = {0};
    if (anthropic_read(&chat, kind, body, strlen(body), &e) == 0) fail_msg("%s was taken", body);
    assert_int_equal(e.status, 400);
    assert_string_equal(e.message, message);
    assert_null(chat);
}

static void refused(const char *body, const char *message)
{
    refused_kind(ANTHROPIC_MESSAGE, body, message);
}

/* ---- requests ------------------------------------------------------------------------------------ */

static void anthropic_reads_texts_and_blocks(void **state)
{
    comes_to(HEAD HELLO "}", "messages", "[{\"role\":\"user\",\"content\":\"hello\"}]");
    comes_to(HEAD "\"system\":\"be brief\"," HELLO "}", "messages",
             "[{\"role\":\"system\",\"content\":\"be brief\"},{\"role\":\"user\",\"content\":\"hello\"}]");
    comes_to(HEAD "\"system\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{\"type\":\"ephemeral\"}},"
                  "{\"type\":\"text\",\"text\":\"b\"}]," HELLO "}",
             "messages",
             "[{\"role\":\"system\",\"content\":\"a\\nb\"},{\"role\":\"user\",\"content\":\"hello\"}]");
    comes_to(HEAD
             "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
             "\"document\",\"source\":{\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":\"b\"}}]}]}",
             "messages", "[{\"role\":\"user\",\"content\":\"a\\nb\"}]");
}

static void anthropic_joins_messages_of_one_role(void **state)
{
    comes_to(HEAD "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"},"
                  "{\"role\":\"assistant\",\"content\":\"c\"},{\"role\":\"assistant\",\"content\":\"d\"},"
                  "{\"role\":\"user\",\"content\":\"e\"}]}",
             "messages",
             "[{\"role\":\"user\",\"content\":\"a\\nb\"},{\"role\":\"assistant\",\"content\":\"c\\nd\"},"
             "{\"role\":\"user\",\"content\":\"e\"}]");
}

static void anthropic_turns_tool_blocks_into_messages(void **state)
{
    comes_to(
        HEAD "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":["
             "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},"
             "{\"type\":\"redacted_thinking\",\"data\":\"x\"},{\"type\":\"text\",\"text\":\"b\"},"
             "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\",\"input\":{\"x\":[1,\"\\u00e4\"]}}]},"
             "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\","
             "\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"text\",\"text\":\"two\"}]},"
             "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_2\",\"is_error\":true,\"content\":\"no\"},"
             "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_3\"},{\"type\":\"text\",\"text\":\"c\"}]}]}",
        "messages",
        "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\","
        "\"reasoning_content\":\"hm\",\"tool_calls\":[{\"id\":\"toolu_1\",\"type\":\"function\",\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":[1,\\\"\xc3\xa4\\\"]}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"toolu_1\",\"content\":\"one\\ntwo\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"toolu_2\",\"content\":\"Error: no\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"toolu_3\",\"content\":\"\"},"
        "{\"role\":\"user\",\"content\":\"c\"}]");
}

#define TOOL "{\"name\":\"f\",\"description\":\"d\",\"input_schema\":{\"type\":\"object\"}}"

static void anthropic_offers_tools(void **state)
{
    static const char *const CHOICES[][2] = {
        {"{\"type\":\"auto\"}", "\"auto\""},
        {"{\"type\":\"any\"}", "\"required\""},
        {"{\"type\":\"none\"}", "\"none\""},
        {"{\"type\":\"tool\",\"name\":\"f\"}", "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"},
    };
    comes_to(HEAD HELLO ",\"tools\":[" TOOL "]}", "tools",
             "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\"},"
             "\"description\":\"d\"}}]");
    for (size_t i = 0; i < sizeof CHOICES / sizeof *CHOICES; i++) {
        char body[400];
        snprintf(body, sizeof body, HEAD HELLO ",\"tools\":[" TOOL "],\"tool_choice\":%s}", CHOICES[i][0]);
        comes_to(body, "tool_choice", CHOICES[i][1]);
        comes_to(body, "parallel_tool_calls", "(nothing)");
    }
    comes_to(HEAD HELLO ",\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true}}",
             "parallel_tool_calls", "false");
    comes_to(HEAD HELLO ",\"tool_choice\":{\"type\":\"any\",\"disable_parallel_tool_use\":false}}",
             "parallel_tool_calls", "true");
}

static void anthropic_renames_what_chat_has(void **state)
{
    json_t *chat =
        read_ok(HEAD HELLO ",\"temperature\":0.5,\"top_k\":3,\"top_p\":0.9,\"stream\":true,\"seed\":7,"
                           "\"stop_sequences\":[\"x\"],\"session\":\"s\",\"service_tier\":\"auto\","
                           "\"metadata\":{\"user_id\":\"u\"},\"cache_control\":{\"type\":\"ephemeral\"}}");
    json_object_del(chat, "messages");
    assert_json(
        chat,
        "{\"model\":\"m\",\"session\":\"s\",\"user\":\"u\",\"max_tokens\":9,\"temperature\":0.5,\"top_k\":3,"
        "\"top_p\":0."
        "90000000000000002,"
        "\"seed\":7,\"stream\":true,\"stop\":[\"x\"],\"chat_template_kwargs\":{\"enable_thinking\":false,"
        "\"thinking\":false},\"anthropic_thinking\":false}");
    json_decref(chat);
    comes_to(
        HEAD HELLO
        ",\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}}}",
        "response_format",
        "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",\"strict\":true,\"schema\":{\"type\":"
        "\"object\"}}}");
}

static void anthropic_thinks_where_it_is_asked_to(void **state)
{
    static const struct {
        const char *thinking, *thinks, *shows;
    } CASES[] = {
        {"null", "{\"enable_thinking\":false,\"thinking\":false}", "false"},
        {"{\"type\":\"disabled\"}", "{\"enable_thinking\":false,\"thinking\":false}", "false"},
        {"{\"type\":\"adaptive\"}", "{\"enable_thinking\":true,\"thinking\":true}", "true"},
        {"{\"type\":\"enabled\",\"budget_tokens\":1024}", "{\"enable_thinking\":true,\"thinking\":true}",
         "true"},
        {"{\"type\":\"enabled\",\"display\":\"omitted\"}", "{\"enable_thinking\":true,\"thinking\":true}",
         "false"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[300];
        snprintf(body, sizeof body, HEAD HELLO ",\"thinking\":%s}", CASES[i].thinking);
        comes_to(body, "chat_template_kwargs", CASES[i].thinks);
        comes_to(body, "anthropic_thinking", CASES[i].shows);
    }
}

static void anthropic_refuses_what_would_be_wrong(void **state)
{
#define USER "{\"role\":\"user\",\"content\":\"a\"}"
#define PART(p)                                                                                              \
    HEAD "\"messages\":[" USER ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}," p "]}" \
         "]}"
    refused("{\"model\":\"m\"," HELLO "}", "\"max_tokens\" is missing: how many tokens may the answer have?");
    refused("{\"max_tokens\":0," HELLO "}", "\"max_tokens\" is 0, must be 1 or more");
    refused(HEAD "\"messages\":[]}", "\"messages\" must be an array with at least one message");
    refused(HEAD "\"messages\":[{\"role\":\"tool\",\"content\":\"a\"}]}",
            "messages[0].role must be \"user\", \"assistant\" or \"system\"");
    refused(HEAD "\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"{\"}]}",
            "the last message is the assistant's, and answers are not continued here (prefill): end with a "
            "message of "
            "the user");
    refused(HEAD "\"messages\":[{\"role\":\"user\",\"content\":[]}]}",
            "messages[0].content must be a string or an array of content blocks, with at least one");
    refused(HEAD "\"system\":3," HELLO "}", "\"system\" must be a string or an array of text blocks");
    refused(HEAD "\"system\":[{\"type\":\"image\"}]," HELLO "}",
            "system[0]: models here read text alone, and this block is of type \"image\": send blocks of "
            "type \"text\"");
    refused(PART("{\"type\":\"image\",\"source\":{\"type\":\"base64\"}}"),
            "messages[1].content[1]: models here read text alone, and this block is of type \"image\": send "
            "blocks of "
            "type \"text\"");
    refused(PART("{\"type\":\"document\",\"source\":{\"type\":\"base64\"}}"),
            "messages[1].content[1]: models here read text alone, and this block is of type \"document\": "
            "send blocks "
            "of type \"text\"");
    refused(PART("{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}"),
            "messages[1].content[1]: blocks of type \"tool_use\" are not taken here");
    refused(PART("{\"type\":\"tool_result\"}"),
            "messages[1].content[1]: tool_result needs \"tool_use_id\" as a string");
    refused(PART("{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[{\"type\":\"image\"}]}"),
            "messages[1].content[1].content[0]: models here read text alone, and this block is of type "
            "\"image\": send "
            "blocks of type \"text\"");
    refused(PART("{\"type\":\"text\"}"), "messages[1].content[1]: \"text\" must be a string");
    refused(PART("7"), "messages[1].content[1]: must be an object with a \"type\"");
    refused(
        HEAD
        "\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":"
        "\"f\",\"input\":\"{}\"}]}," USER "]}",
        "messages[0].content[0]: tool_use needs \"id\" and \"name\" as strings and \"input\" as an object");
    refused(HEAD HELLO ",\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}]}",
            "tools[0]: \"web_search_20250305\" is a tool of Anthropic's service, which is not here: offer "
            "tools with "
            "\"name\", \"description\" and \"input_schema\", which your program runs");
    refused(HEAD HELLO ",\"tools\":[{\"name\":\"f\"}]}", "tools[0].input_schema must be a JSON schema");
    refused(HEAD HELLO ",\"tool_choice\":\"auto\"}", "\"tool_choice\" must be {\"type\": \"auto\", \"any\" "
                                                     "or \"none\"} or {\"type\": \"tool\", \"name\": one of "
                                                     "the tools}");
    refused(HEAD HELLO ",\"thinking\":{\"type\":\"much\"}}",
            "\"thinking\" must be {\"type\": \"enabled\", \"adaptive\" or \"disabled\"}");
    refused(HEAD HELLO ",\"container\":\"c\"}",
            "\"container\" is a service of Anthropic's, which is not here: leave it out");
    refused(HEAD HELLO ",\"stop_sequences\":\"x\"}", "\"stop_sequences\" must be an array of strings");
    refused(HEAD HELLO ",\"service_tier\":\"priority\"}",
            "\"service_tier\" must be \"auto\" or \"standard_only\"");
    refused(HEAD HELLO ",\"metadata\":[]}", "\"metadata\" must be an object");
    refused(HEAD HELLO ",\"output_config\":{\"format\":{\"type\":\"text\"}}}",
            "output_config.format must be {\"type\": \"json_schema\", \"schema\": a JSON schema}");
    refused_kind(ANTHROPIC_COUNT, "{\"messages\":{}}",
                 "\"messages\" must be an array with at least one message");
}

/* ---- answers ------------------------------------------------------------------------------------- */

typedef struct answered {
    gen_spec *spec;
    gen_answer a;
    answer_form f;
    buf out;
} answered;

static void open_answer(answered *t, const char *body, const char *finish)
{
    api_error e = {0};
    static const uint8_t nonce[STREAM_NONCE_BYTES] = {1, 2, 3};
    json_t *chat = read_ok(body);
    char *text = json_dumps(chat, JSON_COMPACT);
    *t = (answered){0};
    if (anthropic_spec_parse(&t->spec, text, strlen(text), &e) != 0) fail_msg("%s", e.message);
    assert_int_equal(answer_init(&t->a, 1), 0);
    answer_form_init(&t->f, t->spec, "digest", 1);
    answer_form_name(&t->f, nonce, 1);
    t->a.n_prompt = 11;
    t->a.n_cached = 4;
    t->a.n_generated = 3;
    snprintf(t->a.choices[0].finish, sizeof t->a.choices[0].finish, "%s", finish);
    free(text);
    json_decref(chat);
}

static void close_answer(answered *t)
{
    buf_done(&t->out);
    answer_done(&t->a);
    openai_spec_free(t->spec);
}

#define USAGE                                                                                        \
    "\"usage\":{\"input_tokens\":7,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":4," \
    "\"output_"                                                                                      \
    "tokens\":3}"
#define NAME \
    "{\"id\":\"msg_010203000000000000000000\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","

static void is_whole(answered *t, const char *wanted)
{
    buf_clear(&t->out);
    answer_put(&t->out, &t->f, &t->a);
    buf_putc(&t->out, '\0');
    assert_string_equal(t->out.data, wanted);
}

static void anthropic_puts_the_object(void **state)
{
    answered t;
    open_answer(&t, HEAD HELLO ",\"stop_sequences\":[\"x\",\"y\"]}", "stop");
    is_whole(&t, NAME "\"content\":[{\"type\":\"text\",\"text\":\"\"}],\"stop_reason\":\"end_turn\","
                      "\"stop_sequence\":null," USAGE "}");
    gen_choice *c = &t.a.choices[0];
    buf_puts(&c->text, "hi");
    buf_puts(&c->reasoning, "hm");
    c->figures.n_stop = 2;
    is_whole(&t, NAME "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"stop_sequence\","
                      "\"stop_sequence\":\"y\"," USAGE "}");
    strcpy(c->finish, "length");
    is_whole(&t, NAME "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"max_tokens\","
                      "\"stop_sequence\":null," USAGE "}");
    close_answer(&t);
}

static void anthropic_puts_thinking_and_calls(void **state)
{
    answered t;
    char wanted[1024], id[2][ANSWER_CALL_ID_BYTES];
    open_answer(&t, HEAD HELLO ",\"thinking\":{\"type\":\"adaptive\"}}", "tool_calls");
    gen_choice *c = &t.a.choices[0];
    buf_puts(&c->reasoning, "hm");
    buf_puts(&c->calls[0].name, "f");
    buf_puts(&c->calls[0].arguments, "{\"x\":1}");
    buf_puts(&c->calls[1].name, "g");
    buf_puts(&c->calls[1].arguments, "{\"x\":");
    c->n_calls = 2;
    for (size_t i = 0; i < 2; i++) answer_call_id(id[i], &t.f, 0, i);
    assert_int_equal(strncmp(id[0], "toolu_", 6), 0);
    snprintf(wanted, sizeof wanted,
             NAME "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"\"},"
                  "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"f\",\"input\":{\"x\":1}},"
                  "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"g\",\"input\":{}}],"
                  "\"stop_reason\":\"tool_use\",\"stop_sequence\":null," USAGE "}",
             id[0], id[1]);
    is_whole(&t, wanted);
    close_answer(&t);
}

/* As a reply that was cut while the model thought: whole and streamed. */
static void anthropic_puts_thinking_alone(void **state)
{
    answered t;
    open_answer(&t, HEAD HELLO ",\"thinking\":{\"type\":\"adaptive\"}}", "length");
    buf_puts(&t.a.choices[0].reasoning, "hm");
    is_whole(&t, NAME "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"\"}],"
                      "\"stop_reason\":\"max_tokens\",\"stop_sequence\":null," USAGE "}");
    buf_clear(&t.out);
    answer_put_replay(&t.out, &t.f, &t.a, 0);
    answer_put_end(&t.out, &t.f, &t.a);
    sse_of(&t.out);
    buf_putc(&t.out, '\0');
    assert_non_null(strstr(t.out.data, "\"thinking_delta\",\"thinking\":\"hm\""));
    assert_null(strstr(t.out.data, "\"content_block\":{\"type\":\"text\""));
    close_answer(&t);
}

static void anthropic_streams_block_after_block(void **state)
{
    answered t;
    char wanted[4096], id[ANSWER_CALL_ID_BYTES];
    open_answer(&t, HEAD HELLO ",\"stream\":true,\"thinking\":{\"type\":\"adaptive\"}}", "tool_calls");
    gen_choice *c = &t.a.choices[0];
    buf_puts(&c->reasoning, "hm");
    buf_puts(&c->text, "hi");
    buf_puts(&c->calls[0].name, "f");
    buf_puts(&c->calls[0].arguments, "{\"x\":1}");
    c->n_calls = 1;
    answer_call_id(id, &t.f, 0, 0);
    answer_put_replay(&t.out, &t.f, &t.a, 0);
    answer_put_finish(&t.out, &t.f, &t.a, 0);
    answer_put_end(&t.out, &t.f, &t.a);
    sse_of(&t.out);
    buf_putc(&t.out, '\0');
#define EVENT(type, rest) "event: " type "\ndata: {\"type\":\"" type "\"" rest "}\n\n"
#define STOP(i)           EVENT("content_block_stop", ",\"index\":" i)
#define START(i, block) \
    EVENT("content_block_start", ",\"index\":" i ",\"content_block\":{\"type\":" block "}")
#define DELTA(i, piece) EVENT("content_block_delta", ",\"index\":" i ",\"delta\":{\"type\":" piece "}")
    snprintf(
        wanted, sizeof wanted,
        EVENT("message_start",
              ",\"message\":" NAME "\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{"
              "\"input_tokens\":11,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_"
              "tokens\":0}}") EVENT("ping", "") START("0",
                                                      "\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
            DELTA("0", "\"thinking_delta\",\"thinking\":\"hm\"") STOP("0")
                START("1", "\"text\",\"text\":\"\"") DELTA("1", "\"text_delta\",\"text\":\"hi\"") STOP("1")
                    START("2", "\"tool_use\",\"id\":\"%s\",\"name\":\"f\",\"input\":{}")
                        DELTA("2", "\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":1}\"") STOP("2")
                            EVENT("message_delta",
                                  ",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null}," USAGE)
                                EVENT("message_stop", ""),
        id);
    assert_string_equal(t.out.data, wanted);
    close_answer(&t);
}

/* ---- errors and models --------------------------------------------------------------------------- */

static void anthropic_names_errors_by_their_status(void **state)
{
    static const struct {
        int status;
        const char *type;
    } CASES[] = {{400, "invalid_request_error"}, {401, "authentication_error"},  {403, "permission_error"},
                 {404, "not_found_error"},       {405, "invalid_request_error"}, {409, "conflict_error"},
                 {413, "request_too_large"},     {429, "rate_limit_error"},      {500, "api_error"},
                 {503, "overloaded_error"},      {504, "timeout_error"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char wanted[200];
        buf out = {0};
        api_error e;
        api_error_set(&e, CASES[i].status, "other", NULL, NULL, "no \"x\"");
        anthropic_put_error(&out, &e, i % 2 ? "r1" : NULL);
        buf_putc(&out, '\0');
        snprintf(
            wanted, sizeof wanted,
            "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":\"no \\\"x\\\"\"},\"request_id\":%s}",
            CASES[i].type, i % 2 ? "\"r1\"" : "null");
        assert_string_equal(out.data, wanted);
        buf_done(&out);
    }
}

static void anthropic_names_its_own_fields_in_errors(void **state)
{
    static const char *const CASES[][2] = {
        {HEAD HELLO ",\"stop_sequences\":[\"\"]}",
         "\\\"stop_sequences\\\" must be a string or strings, none of them empty"},
        {HEAD HELLO ",\"tools\":[{\"name\":\"\",\"input_schema\":{}}]}",
         "tools[0].name must be a string of 1 to 64 bytes"},
        {HEAD HELLO ",\"tool_choice\":{\"type\":\"any\"}}", "\\\"tool_choice\\\" needs \\\"tools\\\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        gen_spec *spec = NULL;
        buf out = {0};
        api_error e = {0};
        json_t *chat = read_ok(CASES[i][0]);
        char *text = json_dumps(chat, 0);
        assert_int_equal(anthropic_spec_parse(&spec, text, strlen(text), &e), 400);
        anthropic_put_error(&out, &e, "r");
        buf_putc(&out, '\0');
        if (!strstr(out.data, CASES[i][1])) fail_msg("%s\n%s", out.data, CASES[i][1]);
        buf_done(&out);
        free(text);
        json_decref(chat);
    }
}

static void is_page(const json_t *list, anthropic_page page, const char *wanted)
{
    buf out = {0};
    char got[64];
    json_t *o = NULL, *m;
    size_t i, n = 0;
    assert_int_equal(anthropic_put_models(&out, list, &page), 0);
    assert_int_equal(json_parse(&o, out.data, out.len, "page", NULL), 0);
    got[0] = '\0';
    json_array_foreach(json_object_get(o, "data"), i, m) n +=
        (size_t)snprintf(got + n, sizeof got - n, "%s", json_text_of(m, "id"));
    const char *first = json_string_value(json_object_get(o, "first_id")),
               *last = json_string_value(json_object_get(o, "last_id"));
    snprintf(got + n, sizeof got - n, " %s %s %d", first ? first : "-", last ? last : "-",
             json_is_true(json_object_get(o, "has_more")));
    assert_string_equal(got, wanted);
    json_decref(o);
    buf_done(&out);
}

static void anthropic_lists_models_by_pages(void **state)
{
    buf out = {0};
    json_t *list =
        json_loads("{\"data\":[{\"id\":\"a\",\"created\":1764547200,\"context_length\":99},{\"id\":\"b\"},"
                   "{\"id\":\"c\"},{\"id\":\"d\"},{\"id\":\"e\"}]}",
                   0, NULL);
    is_page(list, (anthropic_page){0}, "abcde a e 0");
    is_page(list, (anthropic_page){.limit = 2}, "ab a b 1");
    is_page(list, (anthropic_page){.limit = 2, .after_id = "b"}, "cd c d 1");
    is_page(list, (anthropic_page){.limit = 2, .after_id = "d"}, "e e e 0");
    is_page(list, (anthropic_page){.limit = 2, .before_id = "d"}, "bc b c 1");
    is_page(list, (anthropic_page){.limit = 2, .before_id = "a"}, " - - 0");
    is_page(list, (anthropic_page){.after_id = "e"}, " - - 0");
    is_page(list, (anthropic_page){.after_id = "nobody"}, " - - 0");
    assert_int_equal(anthropic_put_models(&out, json_object_get(list, "data"), &(anthropic_page){0}),
                     SHOAL_EPROTOCOL);
    anthropic_put_model(&out, json_array_get(json_object_get(list, "data"), 0));
    buf_putc(&out, '\0');
    assert_string_equal(
        out.data,
        "{\"type\":\"model\",\"id\":\"a\",\"display_name\":\"a\",\"created_at\":\"2025-12-01T00:00:00Z\","
        "\"lifecycle\":\"active\",\"max_input_tokens\":99,\"max_tokens\":99}");
    buf_done(&out);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anthropic_reads_texts_and_blocks),
        cmocka_unit_test(anthropic_joins_messages_of_one_role),
        cmocka_unit_test(anthropic_turns_tool_blocks_into_messages),
        cmocka_unit_test(anthropic_offers_tools),
        cmocka_unit_test(anthropic_renames_what_chat_has),
        cmocka_unit_test(anthropic_thinks_where_it_is_asked_to),
        cmocka_unit_test(anthropic_refuses_what_would_be_wrong),
        cmocka_unit_test(anthropic_puts_the_object),
        cmocka_unit_test(anthropic_puts_thinking_and_calls),
        cmocka_unit_test(anthropic_puts_thinking_alone),
        cmocka_unit_test(anthropic_streams_block_after_block),
        cmocka_unit_test(anthropic_names_errors_by_their_status),
        cmocka_unit_test(anthropic_names_its_own_fields_in_errors),
        cmocka_unit_test(anthropic_lists_models_by_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
