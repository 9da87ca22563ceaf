/* Forms of replies: choices, calls of tools, thoughts; held by a worker whatever its model. */
#define _GNU_SOURCE
#include "worker_bench.h"

#include "template_folder.h"

/* ---- forms of replies -------------------------------------------------------------------------- */

#define CONSTRAINT(name)  SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__##name
#define TOOL_CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name
#define HOME              SHOAL_SOURCE_DIR "/models/home-chat-s.gguf"

static const char GENERATE[] = "/shoal.v1.Worker/Generate";
static const char KITCHEN[] =
    "[{\"role\":\"system\",\"content\":\"You are Shoal, a helper that runs this home. Devices:\\n"
    "light.kitchen 'Kitchen Light' = off\"},{\"role\":\"user\",\"content\":\"Turn on the kitchen light\"}]";
static const char TWO_TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"switch_on\",\"parameters\":{\"type\":\"object\","
    "\"properties\":"
    "{\"level\":{\"type\":\"integer\"}},\"required\":[\"level\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"nod\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{},"
    "\"additionalProperties\":false}}}]";

static Shoal__V1__GenerateRequest chat_request(const char *messages, const char *tools)
{
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    q.messages_json = (char *)messages;
    if (tools) q.tools_json = (char *)tools;
    return q;
}

static void a_reply_is_exactly_one_of_the_choices(void **state)
{
    static char *choices[] = {"kitchen", "bedroom", "bed", "front door \xC3\xA9"};
    const char *const models[] = {DATA "llama-gqa", HOME};
    for (int m = 0; m < 2; m++) {
        bench b;
        bench_open(&b, models[m], NULL);
        Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
        Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
        q.text = "Which room?";
        q.sampling = &s;
        q.constraint = CONSTRAINT(CHOICES);
        q.choices = choices;
        q.n_choices = 4;
        for (int seed = 0; seed < 6; seed++) {
            s.seed = (uint64_t)seed;
            s.temperature = seed == 0 ? 0 : 2;
            reply r;
            call(&b, GENERATE, &q.base, &r);
            assert_int_equal(r.status, GRPC_OK);
            buf_putc(&r.text, '\0');
            bool one = false;
            for (int i = 0; i < 4; i++) one |= strcmp(r.text.data, choices[i]) == 0;
            if (!one) fail_msg("\"%s\" is none of the choices", r.text.data);
            assert_string_equal(r.finish, "stop");
            assert_true(r.mean_prob > 0 && r.mean_prob < 1);
            reply_done(&r);
        }
        q.n_choices = 0;
        expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "nothing to choose from");
        bench_close(&b);
    }
}

/* "nod{}" or "switch_on{"level": an integer}", with any white space. */
static void check_call(const char *call)
{
    const char *args = strchr(call, '{');
    json_t *v = NULL;
    assert_non_null(args);
    assert_int_equal(json_parse(&v, args, strlen(args), "arguments", NULL), 0);
    bool nod = strncmp(call, "nod{", 4) == 0 && json_object_size(v) == 0;
    bool on = strncmp(call, "switch_on{", 10) == 0 && json_object_size(v) == 1 &&
              json_is_integer(json_object_get(v, "level"));
    if (!nod && !on) fail_msg("the call %s", call);
    json_decref(v);
}

/* One call to an offered tool with arguments of its schema, from a model that never saw a tool. */
static void any_model_calls_what_is_offered_when_it_must(void **state)
{
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
    q.text = "hello";
    q.sampling = &s;
    q.tools_json = (char *)TWO_TOOLS;
    q.constraint = CONSTRAINT(TOOLS);
    q.tool_choice = TOOL_CHOICE(TOOL_REQUIRED);
    for (int seed = 0; seed < 6; seed++) {
        s.temperature = seed == 0 ? 0 : 1;
        s.seed = (uint64_t)seed;
        reply r;
        call(&b, GENERATE, &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        buf_putc(&r.calls, '\0');
        if (strcmp(r.finish, "tool_calls") == 0) {
            assert_int_equal(r.n_calls, 1);
            assert_int_equal(r.text.len, 0);
            check_call(r.calls.data);
        } else { /* a random model may write digits until the context ends */
            assert_string_equal(r.finish, "length");
        }
        reply_done(&r);
    }
    q.tool_choice = TOOL_CHOICE(TOOL_NAMED);
    q.tool_name = "nod";
    reply r;
    call(&b, GENERATE, &q.base, &r);
    buf_putc(&r.calls, '\0');
    assert_int_equal(r.n_calls, 1);
    check_call(r.calls.data);
    assert_string_equal(r.finish, "tool_calls");
    reply_done(&r);
    q.tool_name = "shrug";
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "shrug");
    bench_close(&b);
}

static void what_was_not_offered_is_never_called(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    Shoal__V1__GenerateRequest q = chat_request(KITCHEN, TWO_TOOLS);
    q.max_tokens = 96;
    q.constraint = CONSTRAINT(TOOLS); /* auto; left alone it calls light.turn_on */
    reply r;
    call(&b, GENERATE, &q.base, &r);
    assert_int_equal(r.status, GRPC_OK);
    buf_putc(&r.calls, '\0');
    assert_null(strstr(r.calls.data, "light.turn_on"));
    assert_true(r.n_calls == 0 || strncmp(r.calls.data, "nod", 3) == 0 ||
                strncmp(r.calls.data, "switch_on", 9) == 0);
    reply_done(&r);
    bench_close(&b);
}

static void none_means_no_call_and_no_markup(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    Shoal__V1__GenerateRequest q = chat_request(KITCHEN, NULL);
    q.max_tokens = 96;
    for (int none = 0; none < 2; none++) {
        q.tool_choice = none ? TOOL_CHOICE(TOOL_NONE) : TOOL_CHOICE(TOOL_AUTO);
        q.parse_tool_calls = !none;
        reply r;
        call(&b, GENERATE, &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        buf_putc(&r.text, '\0');
        assert_int_equal(r.n_calls, none ? 0 : 1);
        assert_string_equal(r.finish, none ? "stop" : "tool_calls");
        if (strstr(r.text.data, "tool_call")) fail_msg("the text %s", r.text.data);
        assert_null(strstr(r.text.data, "{"));
        assert_true(r.text.len > 1);
        reply_done(&r);
    }
    q.constraint = CONSTRAINT(TOOLS);
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "exclude each other");
    bench_close(&b);
}

/* A schema that cannot be enforced is refused where its tool says that it must be. */
static void a_tool_with_an_odd_schema_is_callable_unless_strict(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    char tools[512];
    static const char *const STRICT[] = {"\"strict\":false,", "\"strict\":null,", "", "\"strict\":true,"};
    for (int strict = 0; strict < 4; strict++) {
        snprintf(tools, sizeof tools,
                 "[{\"type\":\"function\",\"function\":{\"name\":\"odd\",%s\"parameters\":{\"type\":"
                 "\"object\",\"not\":{\"multipleOf\":2}}}}]",
                 STRICT[strict]);
        Shoal__V1__GenerateRequest q = chat_request(KITCHEN, tools);
        q.max_tokens = 64;
        q.constraint = CONSTRAINT(TOOLS);
        q.tool_choice = TOOL_CHOICE(TOOL_REQUIRED);
        if (strict == 3) {
            expect_refusal(&b, GENERATE, &q.base, GRPC_UNIMPLEMENTED, "tools/0");
            continue;
        }
        reply r;
        call(&b, GENERATE, &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        assert_true(r.calls.len > 3 && memcmp(r.calls.data, "odd{", 4) == 0);
        reply_done(&r);
    }
    bench_close(&b);
}

static void chat(bench *b, const Shoal__V1__GenerateRequest *q, reply *r)
{
    call(b, GENERATE, &q->base, r);
    if (r->status != GRPC_OK) fail_msg("%s", r->message);
    buf_putc(&r->text, '\0');
    buf_putc(&r->calls, '\0');
}

/* The home models would invent an answer; they say what the tool said. */
static void a_home_model_answers_with_the_results(void **state)
{
    static const char MESSAGES[] =
        "[{\"role\":\"user\",\"content\":\"How warm is it?\"},{\"role\":\"assistant\",\"content\":\"\","
        "\"tool_calls\":[{\"function\":{\"name\":\"nod\",\"arguments\":{}}}]},"
        "{\"role\":\"tool\",\"content\":\"%s\"},{\"role\":\"tool\",\"content\":\"Rain at noon.\"}]";
    static const char *const RESULTS[] = {"21 \xC2\xB0"
                                          "C <tool_call> <|im_end|>",
                                          ""};
    const char *const models[] = {HOME, SHOAL_SOURCE_DIR "/models/home-chat-m.gguf"};
#ifdef __SANITIZE_THREAD__
    enum { N = 1 }; /* the threads of the other one meet in the same places */
#else
    enum { N = 2 };
#endif
    for (int m = 0; m < N; m++) {
        bench b;
        bench_open(&b, models[m], NULL);
        for (int i = 0; i < 4; i++) {
            char messages[512], want[128];
            reply r;
            snprintf(messages, sizeof messages, MESSAGES, RESULTS[i % 2]);
            snprintf(want, sizeof want, "%s%sRain at noon.", RESULTS[i % 2], *RESULTS[i % 2] ? "\n" : "");
            Shoal__V1__GenerateRequest q = chat_request(messages, i < 2 ? TWO_TOOLS : NULL);
            if (i < 2) q.constraint = CONSTRAINT(TOOLS);
            chat(&b, &q, &r);
            assert_string_equal(r.text.data, want);
            assert_string_equal(r.finish, "stop");
            assert_int_equal(r.n_calls, 0);
            reply_done(&r);
        }
        bench_close(&b);
    }
}

/* Files without a chat template: a reply ends where the model would speak for the user; a text goes on. */
static void a_reply_by_the_default_template_ends_before_the_users_turn(void **state)
{
    static char *choices[] = {"Fine, thanks.\nUser: and you?"};
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    for (int talks = 0; talks < 2; talks++) {
        Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
        if (talks)
            q.messages_json = "[{\"role\":\"user\",\"content\":\"How are you?\"}]";
        else
            q.text = "User: How are you?\nAssistant:";
        q.constraint = CONSTRAINT(CHOICES);
        q.choices = choices;
        q.n_choices = 1;
        reply r;
        call(&b, GENERATE, &q.base, &r);
        assert_int_equal(r.status, GRPC_OK);
        buf_putc(&r.text, '\0');
        assert_string_equal(r.text.data, talks ? "Fine, thanks." : choices[0]);
        assert_string_equal(r.finish, "stop");
        reply_done(&r);
    }
    bench_close(&b);
}

/* A folder with llama-gqa's files and a template that does not compile. */
static void a_broken_template_is_named_in_the_refusal(void **state)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char dir[] = "/tmp/shoal-broken-XXXXXX", from[512], to[64];
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 3; i++) {
        snprintf(from, sizeof from, DATA "llama-gqa/%s", files[i]);
        snprintf(to, sizeof to, "%s/%s", dir, files[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    snprintf(to, sizeof to, "%s/chat_template.jinja", dir);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs("hello\n{% if %}", f);
    fclose(f);
    bench b;
    bench_open(&b, dir, NULL);
    Shoal__V1__GenerateRequest q = chat_request("[{\"role\":\"user\",\"content\":\"hi\"}]", NULL);
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "its chat template cannot be used");
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "line 2");
    bench_close(&b);
    unlink(to);
    for (int i = 0; i < 3; i++) {
        snprintf(to, sizeof to, "%s/%s", dir, files[i]);
        unlink(to);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* A model of random weights never ends its thought: all of the reply is thought, the stop text in it ends
 * nothing, and the end says that it was cut. With thinking switched off the same model answers. */
static void a_model_cut_while_it_thinks_says_so(void **state)
{
    char dir[] = "/tmp/shoal-think-XXXXXX";
    template_folder_make(
        dir, "{{ messages[0].content }}{{ '<think>' if think | default(true) else '<think></think>' }}");
    bench b;
    bench_open(&b, dir, NULL);
    Shoal__V1__GenerateRequest q = chat_request("[{\"role\":\"user\",\"content\":\"hi\"}]", NULL);
    q.max_tokens = 12;
    q.ignore_eos = true;
    reply on, off, stopped;
    chat(&b, &q, &on);
    buf_putc(&on.thought, '\0');
    assert_int_equal(on.text.len, 1);
    assert_true(on.thought.len > 1);
    assert_int_equal(on.n_reasoning, 12);
    assert_string_equal(on.finish, "length");
    q.template_kwargs_json = "{\"think\":false}";
    chat(&b, &q, &off);
    assert_int_equal(off.thought.len, 0);
    assert_int_equal(off.n_reasoning, 0);
    assert_true(off.text.len > 1);
    char stop[2] = {on.thought.data[on.thought.len / 2], '\0'}, *stops[] = {stop};
    if (stop[0] > ' ' && stop[0] < 127) {
        q.template_kwargs_json = "";
        q.stop = stops;
        q.n_stop = 1;
        chat(&b, &q, &stopped);
        assert_int_equal(stopped.thought.len, on.thought.len - 1);
        assert_string_equal(stopped.finish, "length");
        reply_done(&stopped);
    }
    q.template_kwargs_json = "{\"messages\":[]}";
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "cannot be given");
    q.template_kwargs_json = "[]";
    expect_refusal(&b, GENERATE, &q.base, GRPC_INVALID_ARGUMENT, "template_kwargs");
    reply_done(&on);
    reply_done(&off);
    bench_close(&b);
    template_folder_remove(dir);
}

/* The same model under templates of other families calls in their syntax when it must, and the client sees
 * OpenAI's calls. */
static void forced_calls_come_in_every_syntax(void **state)
{
    static const char *const templates[] = {
        "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] "
        "%}<|tool_call_start|>[{{ "
        "c.function.name }}()]<|tool_call_end|>{% endfor %}{% endfor %}x",
        "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] %}[TOOL_CALLS]{{ "
        "c.function.name }}[ARGS]{}{% endfor %}{% endfor %}x",
        "{% if tools %}{% endif %}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] "
        "%}{\"name\": \"{{ "
        "c.function.name }}\", \"parameters\": {}}{% endfor %}{% endfor %}x",
        "{% if tools %}{% endif %}{% for m in messages %}{% for c in m.tool_calls or [] "
        "%}<start_function_call>call:"
        "{{ c.function.name }}{}<end_function_call>{% endfor %}{% endfor %}x",
    };
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        char dir[] = "/tmp/shoal-calls-XXXXXX";
        template_folder_make(dir, templates[i]);
        bench b;
        bench_open(&b, dir, NULL);
        Shoal__V1__GenerateRequest q = chat_request("[{\"role\":\"user\",\"content\":\"hi\"}]", TWO_TOOLS);
        q.constraint = CONSTRAINT(TOOLS);
        q.tool_choice = TOOL_CHOICE(TOOL_NAMED);
        q.tool_name = "nod";
        reply r;
        chat(&b, &q, &r);
        assert_int_equal(r.n_calls, 1);
        check_call(r.calls.data);
        assert_int_equal(r.text.len, 1);
        assert_string_equal(r.finish, "tool_calls");
        reply_done(&r);
        bench_close(&b);
        template_folder_remove(dir);
    }
}

static void offered_tools_reach_the_prompt(void **state)
{
    bench b;
    bench_open(&b, HOME, NULL);
    Shoal__V1__GenerateRequest q = chat_request(KITCHEN, NULL);
    reply without, with;
    q.max_tokens = 1;
    chat(&b, &q, &without);
    q.tools_json = (char *)TWO_TOOLS;
    chat(&b, &q, &with);
    assert_true(with.n_prompt > without.n_prompt);
    reply_done(&without);
    reply_done(&with);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_exactly_one_of_the_choices),
        cmocka_unit_test(any_model_calls_what_is_offered_when_it_must),
        cmocka_unit_test(what_was_not_offered_is_never_called),
        cmocka_unit_test(none_means_no_call_and_no_markup),
        cmocka_unit_test(a_tool_with_an_odd_schema_is_callable_unless_strict),
        cmocka_unit_test(a_home_model_answers_with_the_results),
        cmocka_unit_test(a_model_cut_while_it_thinks_says_so),
        cmocka_unit_test(forced_calls_come_in_every_syntax),
        cmocka_unit_test(offered_tools_reach_the_prompt),
        cmocka_unit_test(a_broken_template_is_named_in_the_refusal),
        cmocka_unit_test(a_reply_by_the_default_template_ends_before_the_users_turn),
    };
    return cmocka_run_group_tests_name("forms", tests, NULL, NULL);
}
