/* OpenAI requests: what is read from a body, and what is refused with which field named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dialects/openai.h"
#include "messages/stream_id.h"
#include "json/sampling.h"
#include "base/sha256.h"

#define TOOL_CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name
#define MSG               "\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define TOOL              "{\"type\":\"function\",\"function\":{\"name\":\"t\",\"parameters\":{\"type\":\"object\"}}}"

static gen_spec *chat(const char *body)
{
    gen_spec *s = NULL;
    api_error e = {0};
    int rc = openai_spec_parse_chat(&s, body, strlen(body), &e);
    if (rc != 0) print_error("refused: %s\n  %s\n", body, e.message);
    assert_int_equal(rc, 0);
    return s;
}

static gen_spec *completion(const char *body)
{
    gen_spec *s = NULL;
    api_error e = {0};
    int rc = openai_spec_parse_completion(&s, body, strlen(body), &e);
    if (rc != 0) print_error("refused: %s\n  %s\n", body, e.message);
    assert_int_equal(rc, 0);
    return s;
}

static void openai_requests_may_say_nothing(void **state)
{
    gen_spec *s = chat("{" MSG "}");
    Shoal__V1__GenerateRequest r;
    Shoal__V1__Sampling p;
    openai_spec_fill(s, 0, &r, &p);
    assert_string_equal(s->model, "m");
    assert_string_equal(r.messages_json, "[{\"role\":\"user\",\"content\":\"hi\"}]");
    assert_int_equal(p.unsaid, SAMPLING_ALL); /* the worker asks its model */
    assert_true(p.temperature == 0.8f && p.top_p == 0.95f && p.top_k == 0 && p.min_p == 0.05f &&
                p.repetition_penalty == 1);
    assert_int_equal(r.max_tokens, 0);
    assert_true(!r.parse_tool_calls && !r.logprobs && !r.echo);
    assert_int_equal(r.tool_choice, TOOL_CHOICE(TOOL_NONE)); /* nothing is offered */
    assert_int_equal(r.constraint, SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__NONE);
    assert_false(openai_spec_is_deterministic(s));
    openai_spec_free(s);
}

/* What a model says, by its name in the table of json/sampling.h. */
static Shoal__V1__ModelInfo model_that_says(Shoal__V1__Sampling *says, const char *text)
{
    Shoal__V1__ModelInfo m = SHOAL__V1__MODEL_INFO__INIT;
    sampling_defaults d;
    assert_int_equal(sampling_parse(&d, text, NULL), 0);
    *says = (Shoal__V1__Sampling)SHOAL__V1__SAMPLING__INIT;
    says->temperature = d.temperature;
    says->top_k = (uint32_t)d.top_k;
    says->min_p = d.min_p;
    says->top_p = d.top_p;
    says->unsaid = SAMPLING_ALL & ~d.said;
    m.task = "generate";
    m.sampling = says;
    return m;
}

static void openai_asks_the_request_then_the_model_then_the_api(void **state)
{
    Shoal__V1__Sampling says;
    Shoal__V1__ModelInfo m = model_that_says(&says, "temperature=0.3,min_p=0");
    gen_spec *s = chat("{" MSG ",\"top_p\":0.7,\"temperature\":null}");
    openai_spec_settle(s, &m);
    const Shoal__V1__Sampling *p = &s->sampling;
    assert_int_equal(p->unsaid, 0);
    assert_true(p->temperature == 0.3f && p->min_p == 0 && p->top_p == 0.7f && p->repetition_penalty == 1);
    assert_false(openai_spec_is_deterministic(s));
    openai_spec_free(s);

    s = chat("{" MSG ",\"temperature\":1,\"sampling_defaults\":\"ollama\"}");
    openai_spec_settle(s, &m);
    p = &s->sampling;
    assert_true(p->temperature == 1 && p->top_k == 40 && p->top_p == 0.9f && p->min_p == 0);
    openai_spec_free(s);

    m = model_that_says(&says, "temperature=0");
    s = chat("{" MSG "}");
    openai_spec_settle(s, &m);
    assert_true(openai_spec_is_deterministic(s)); /* its answers may be kept */
    openai_spec_free(s);

    s = chat("{" MSG "}");
    openai_spec_settle(s, NULL); /* the model says nothing */
    sha256_digest left, said;
    gen_spec *leaves = chat("{" MSG "}"), *says_it = chat("{" MSG ",\"temperature\":0.8}");
    assert_true(openai_spec_identity(leaves, &left) && openai_spec_identity(says_it, &said));
    assert_memory_not_equal(&left, &said, sizeof left); /* a model may say otherwise: not one stream */
    openai_spec_free(leaves);
    openai_spec_free(says_it);
    m = model_that_says(&says, "top_p=0");
    gen_spec *likeliest = chat("{" MSG "}");
    openai_spec_settle(likeliest, &m);
    assert_true(likeliest->sampling.top_p > 0 &&
                likeliest->sampling.top_p < 1e-3f); /* 0 on the wire is "off" */
    openai_spec_free(likeliest);
    assert_true(s->sampling.temperature == 0.8f && s->sampling.unsaid == 0);
    openai_spec_free(s);
}

static void openai_draws_no_translation_that_nobody_wants_drawn(void **state)
{
    static const char TEXT[] = "{\"model\":\"m\",\"input\":\"a\"}";
    static const char BEAMS[] = "{\"model\":\"m\",\"input\":\"a\",\"num_beams\":4}";
    Shoal__V1__Sampling says;
    Shoal__V1__ModelInfo m = model_that_says(&says, "temperature=0.6,top_k=5");
    gen_spec *s;
    api_error e;
    assert_int_equal(openai_spec_parse_texts(&s, "translation", TEXT, sizeof TEXT - 1, &e), 0);
    openai_spec_settle(s, &m);
    assert_true(s->sampling.temperature == 0.6f); /* its author wants them drawn */
    openai_spec_free(s);
    assert_int_equal(openai_spec_parse_texts(&s, "translation", BEAMS, sizeof BEAMS - 1, &e), 0);
    openai_spec_settle(s, &m);
    assert_true(s->sampling.temperature == 0 && s->sampling.top_k == 0);
    openai_spec_free(s);
    m.sampling = NULL;
    m.task = "seq2seq";
    s = completion("{\"model\":\"m\",\"prompt\":\"a\"}");
    openai_spec_settle(s, &m);
    assert_true(s->sampling.temperature == 0);
    openai_spec_free(s);
}

static void openai_refuses_what_other_servers_would_do(void **state)
{
    static const struct {
        const char *field, *off, *on;
    } CASES[] = {{"typical_p", "1", "0.9"},
                 {"mirostat", "0", "2"},
                 {"top_n_sigma", "-1", "1.5"},
                 {"prompt_logprobs", "null", "5"},
                 {"return_token_ids", "false", "true"},
                 {"use_beam_search", "false", "true"},
                 {"skip_special_tokens", "true", "false"},
                 {"stop_token_ids", "[]", "[2]"},
                 {"bad_words", "null", "[\"a\"]"},
                 {"echo", "false", "true"},
                 {"continue_final_message", "false", "true"},
                 {"add_generation_prompt", "true", "false"},
                 {"web_search_options", "null", "{}"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[300];
        gen_spec *s = NULL;
        api_error e = {0};
        snprintf(body, sizeof body, "{" MSG ",\"%s\":%s}", CASES[i].field, CASES[i].off);
        openai_spec_free(chat(body));
        snprintf(body, sizeof body, "{" MSG ",\"%s\":%s}", CASES[i].field, CASES[i].on);
        assert_int_equal(openai_spec_parse_chat(&s, body, strlen(body), &e), 400);
        assert_string_equal(e.param, CASES[i].field);
    }
}

static void openai_takes_llama_servers_names(void **state)
{
    gen_spec *s = chat("{" MSG ",\"n_predict\":7,\"repeat_penalty\":1.25}");
    assert_int_equal(s->max_tokens, 7);
    assert_true(s->sampling.repetition_penalty == 1.25f);
    assert_false(s->sampling.unsaid & SAMPLING_BIT(repetition_penalty));
    openai_spec_free(s);
    s = chat("{" MSG ",\"n_predict\":7,\"max_tokens\":9,\"repeat_penalty\":1.25,\"repetition_penalty\":1}");
    assert_true(s->max_tokens == 9 && s->sampling.repetition_penalty == 1);
    openai_spec_free(s);
}

static void openai_reads_every_sampling_field(void **state)
{
    gen_spec *s = chat(
        "{" MSG ",\"temperature\":0.5,\"top_p\":0.9,\"top_k\":40,\"min_p\":0.05,\"seed\":7,"
        "\"repetition_penalty\":1.1,\"presence_penalty\":-1,\"frequency_penalty\":2,"
        "\"logit_bias\":{\"12\":-100,\"3\":1.5},\"stop\":[\"a\",\"b\"],\"n\":3,"
        "\"max_completion_tokens\":9,\"logprobs\":true,\"top_logprobs\":4,\"user\":\"x\",\"unknown\":[]}");
    Shoal__V1__GenerateRequest r;
    Shoal__V1__Sampling p;
    assert_int_equal(openai_spec_choices(s), 3);
    openai_spec_fill(s, 2, &r, &p);
    assert_true(p.seed == sampling_seed(7, 0, 2)); /* choice 2 of seed 7 */
    assert_int_equal(p.n_bias, 2);
    assert_true(p.top_k == 40 && p.presence_penalty == -1 && p.frequency_penalty == 2);
    assert_int_equal(r.max_tokens, 9);
    assert_int_equal(r.n_stop, 2);
    assert_string_equal(r.stop[1], "b");
    assert_int_equal(r.n_top, 4);
    assert_true(openai_spec_is_deterministic(s));
    openai_spec_free(s);
}

static void openai_joins_parts_and_keeps_tool_history(void **state)
{
    gen_spec *s =
        chat("{\"model\":\"m\",\"messages\":["
             "{\"role\":\"developer\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
             "\"text\":\"b\"}]},"
             "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\","
             "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}}]},"
             "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"ok\"}]}");
    assert_string_equal(
        s->messages_json,
        "[{\"role\":\"system\",\"content\":\"ab\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":"
        "[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]},"
        "{\"role\":\"tool\",\"content\":\"ok\",\"tool_call_id\":\"c1\"}]");
    openai_spec_free(s);
}

static void openai_tool_choice_none_hides_tools(void **state)
{
    gen_spec *s = chat("{" MSG ",\"tools\":[" TOOL "],\"tool_choice\":\"none\"}");
    assert_null(s->tools_json);
    assert_false(s->parse_tool_calls);
    assert_int_equal(s->tool_choice, TOOL_CHOICE(TOOL_NONE));
    openai_spec_free(s);
    s = chat("{" MSG ",\"ignore_eos\":true}"); /* its length is asked for: a call does not end it */
    assert_int_equal(s->tool_choice, TOOL_CHOICE(TOOL_AUTO));
    openai_spec_free(s);
    s = chat("{" MSG ",\"tool_choice\":\"own\"}"); /* but those that the model was trained on */
    assert_int_equal(s->tool_choice, TOOL_CHOICE(TOOL_AUTO));
    assert_true(s->parse_tool_calls);
    openai_spec_free(s);
    s = chat("{" MSG ",\"tools\":[" TOOL "],\"tool_choice\":\"auto\"}");
    assert_non_null(s->tools_json);
    assert_true(s->parse_tool_calls);
    openai_spec_free(s);
}

static void openai_offered_tools_bind_the_reply(void **state)
{
    static const struct {
        const char *choice;
        Shoal__V1__GenerateRequest__ToolChoice want;
        bool parallel;
    } CASES[] = {
        {"", TOOL_CHOICE(TOOL_AUTO), true},
        {",\"tool_choice\":null", TOOL_CHOICE(TOOL_AUTO), true},
        {",\"tool_choice\":\"auto\",\"parallel_tool_calls\":false", TOOL_CHOICE(TOOL_AUTO), false},
        {",\"tool_choice\":\"required\"", TOOL_CHOICE(TOOL_REQUIRED), false},
        {",\"tool_choice\":\"required\",\"parallel_tool_calls\":true", TOOL_CHOICE(TOOL_REQUIRED), true},
        {",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"t\"}}", TOOL_CHOICE(TOOL_NAMED),
         false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        Shoal__V1__GenerateRequest r;
        Shoal__V1__Sampling p;
        snprintf(body, sizeof body, "{" MSG ",\"tools\":[" TOOL "]%s}", CASES[i].choice);
        gen_spec *s = chat(body);
        openai_spec_fill(s, 0, &r, &p);
        assert_int_equal(r.constraint, SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS);
        assert_int_equal(r.tool_choice, CASES[i].want);
        assert_int_equal(r.parallel_tool_calls, CASES[i].parallel);
        assert_non_null(strstr(r.tools_json, "\"t\""));
        assert_string_equal(r.tool_name, CASES[i].want == TOOL_CHOICE(TOOL_NAMED) ? "t" : "");
        openai_spec_free(s);
    }
}

#define FUNCTION "{\"name\":\"t\",\"parameters\":{\"type\":\"object\"}}"

static void openai_maps_functions_to_tools(void **state)
{
    static const struct {
        const char *choice;
        Shoal__V1__GenerateRequest__ToolChoice want;
    } CASES[] = {
        {"", TOOL_CHOICE(TOOL_AUTO)},
        {",\"function_call\":\"auto\"", TOOL_CHOICE(TOOL_AUTO)},
        {",\"function_call\":{\"name\":\"t\"}", TOOL_CHOICE(TOOL_NAMED)},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        snprintf(body, sizeof body, "{" MSG ",\"functions\":[" FUNCTION "]%s}", CASES[i].choice);
        gen_spec *s = chat(body);
        assert_string_equal(s->tools_json, "[{\"type\":\"function\",\"function\":" FUNCTION "}]");
        assert_int_equal(s->tool_choice, CASES[i].want);
        assert_true(s->functions);
        assert_false(s->parallel_calls);
        openai_spec_free(s);
    }
    gen_spec *s = chat("{" MSG ",\"functions\":[" FUNCTION "],\"function_call\":\"none\"}");
    assert_int_equal(s->tool_choice, TOOL_CHOICE(TOOL_NONE));
    assert_null(s->tools_json);
    openai_spec_free(s);
}

static void openai_maps_messages_of_functions(void **state)
{
    gen_spec *s = chat("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                       "{\"role\":\"assistant\",\"content\":null,\"function_call\":{\"name\":\"f\","
                       "\"arguments\":\"{\\\"x\\\":1}\"}},"
                       "{\"role\":\"function\",\"name\":\"f\",\"content\":\"ok\"}]}");
    assert_string_equal(s->messages_json,
                        "[{\"role\":\"user\",\"content\":\"a\"},"
                        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call00001\","
                        "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]},"
                        "{\"role\":\"tool\",\"content\":\"ok\",\"name\":\"f\",\"tool_call_id\":"
                        "\"call00001\"}]");
    openai_spec_free(s);
}

static void openai_takes_the_numbers_that_clients_send(void **state)
{
    static const struct {
        const char *field;
        uint32_t want;
    } CASES[] = {
        {"\"max_tokens\":0", 0},
        {"\"max_tokens\":-1", 0},
        {"\"max_tokens\":null", 0},
        {"\"max_tokens\":4096", 4096},
        {"\"max_tokens\":99999999999", 0},
        {"\"max_tokens\":4,\"max_completion_tokens\":5", 5},
        {"\"stream_options\":{\"include_usage\":true}", 0},
        {"\"top_k\":-1", 0},
        {"\"n\":32", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[256];
        snprintf(body, sizeof body, "{" MSG ",%s}", CASES[i].field);
        gen_spec *s = chat(body);
        if (s->max_tokens != CASES[i].want) fail_msg("%s gave %u", CASES[i].field, s->max_tokens);
        openai_spec_free(s);
    }
}

static uint64_t seed_of_choice(const gen_spec *s, size_t k)
{
    Shoal__V1__GenerateRequest r;
    Shoal__V1__Sampling p;
    openai_spec_fill(s, k, &r, &p);
    return p.seed;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Seeds that follow each other, two prompts, 32 choices each: no two draw from the same stream. */
static void openai_choices_of_other_seeds_are_others(void **state)
{
    enum { SEEDS = 64, CHOICES = 64 };
    static uint64_t all[SEEDS * CHOICES];
    size_t n = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        char body[128];
        snprintf(body, sizeof body, "{\"model\":\"m\",\"prompt\":[\"a\",\"b\"],\"n\":32,\"seed\":%d}", seed);
        gen_spec *s = completion(body);
        assert_int_equal(openai_spec_choices(s), CHOICES);
        assert_true(seed_of_choice(s, 0) == (uint64_t)seed); /* alone it is as if there were no others */
        for (size_t k = 0; k < CHOICES; k++) all[n++] = seed_of_choice(s, k);
        openai_spec_free(s);
    }
    qsort(all, n, sizeof *all, by_value);
    for (size_t i = 1; i < n; i++) assert_true(all[i] != all[i - 1]);
}

static void openai_seeds_have_64_bits(void **state)
{
    static const char *const seeds[] = {"-9223372036854775808", "9223372036854775807", "9223372036854775808",
                                        "18446744073709551615"};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"model\":\"m\",\"prompt\":\"a\",\"seed\":%s}", seeds[i]);
        gen_spec *s = completion(body), *again = completion(body);
        assert_true(s->has_seed && seed_of_choice(s, 0) == seed_of_choice(again, 0));
        openai_spec_free(s);
        openai_spec_free(again);
    }
    gen_spec *s;
    api_error e = {0};
    static const char body[] = "{\"model\":\"m\",\"prompt\":\"a\",\"seed\":18446744073709551617e3}";
    assert_int_equal(openai_spec_parse_completion(&s, body, sizeof body - 1, &e), 400);
}

/* llama.cpp's clients send -1 for "any"; a fixed seed would be one answer for ever. */
static void openai_seed_minus_one_is_drawn(void **state)
{
    static const char *const BODIES[] = {"{" MSG ",\"seed\":-1}", "{" MSG ",\"seed\":null}", "{" MSG "}"};
    for (size_t i = 0; i < 3; i++) {
        gen_spec *a = chat(BODIES[i]), *b = chat(BODIES[i]);
        assert_false(openai_spec_is_deterministic(a));
        assert_int_not_equal(a->sampling.seed, b->sampling.seed);
        openai_spec_free(a);
        openai_spec_free(b);
    }
}

static void openai_response_format_becomes_a_constraint(void **state)
{
    gen_spec *s = chat("{" MSG ",\"response_format\":{\"type\":\"json_object\"}}");
    assert_int_equal(s->constraint, SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT);
    openai_spec_free(s);
    s = chat("{" MSG
             ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\",\"strict\":true,"
             "\"schema\":{\"type\":\"object\"}}}}");
    assert_int_equal(s->constraint, SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA);
    assert_string_equal(s->schema, "{\"type\":\"object\"}");
    openai_spec_free(s);
}

#define SCHEMA "{\"type\":\"object\"}"

static void openai_honours_the_schema_fields_of_other_servers(void **state)
{
    static const char *const CASES[] = {
        "\"response_format\":{\"type\":\"json_object\",\"schema\":" SCHEMA "}",
        "\"response_format\":{\"type\":\"json_object\",\"value\":" SCHEMA "}",
        "\"json_schema\":" SCHEMA,
        "\"guided_json\":" SCHEMA,
        "\"guided_json\":\"{\\\"type\\\":\\\"object\\\"}\"",
        "\"structured_outputs\":{\"json\":" SCHEMA "}",
        "\"response_format\":{\"type\":\"json_object\"},\"json_schema\":" SCHEMA,
        "\"guided_json\":" SCHEMA ",\"structured_outputs\":{\"json\":" SCHEMA "},\"grammar\":\"\"",
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        snprintf(body, sizeof body, "{" MSG ",%s}", CASES[i]);
        gen_spec *s = chat(body);
        assert_int_equal(s->constraint, SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA);
        assert_string_equal(s->schema, SCHEMA);
        assert_false(s->parse_tool_calls);
        openai_spec_free(s);
        snprintf(body, sizeof body, "{\"model\":\"m\",\"prompt\":\"p\",%s}", CASES[i]);
        s = completion(body);
        assert_string_equal(s->schema, SCHEMA);
        openai_spec_free(s);
    }
}

static void openai_honours_choices(void **state)
{
    static const char *const CASES[] = {"\"guided_choice\":[\"yes\",\"no\"]",
                                        "\"structured_outputs\":{\"choice\":[\"yes\",\"no\"]}"};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char body[512];
        Shoal__V1__GenerateRequest r;
        Shoal__V1__Sampling p;
        snprintf(body, sizeof body, "{" MSG ",%s}", CASES[i]);
        gen_spec *s = chat(body);
        openai_spec_fill(s, 0, &r, &p);
        assert_int_equal(r.constraint, SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES);
        assert_int_equal(r.n_choices, 2);
        assert_string_equal(r.choices[1], "no");
        openai_spec_free(s);
    }
}

static void choices_decide_the_answer(void **state)
{
    Shoal__V1__ModelInfo info = SHOAL__V1__MODEL_INFO__INIT;
    sha256_digest a, b;
    info.identity = "d";
    gen_spec *yes = chat("{" MSG ",\"seed\":1,\"guided_choice\":[\"yes\"]}");
    gen_spec *no = chat("{" MSG ",\"seed\":1,\"guided_choice\":[\"no\"]}");
    assert_true(openai_spec_key(yes, &info, "", &a) && openai_spec_key(no, &info, "", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    openai_spec_free(yes);
    openai_spec_free(no);
}

static void a_forced_call_takes_precedence_over_the_format(void **state)
{
    static const char *const FORCED[] = {"\"required\"",
                                         "{\"type\":\"function\",\"function\":{\"name\":\"t\"}}"};
    for (size_t i = 0; i < sizeof FORCED / sizeof *FORCED; i++) {
        char body[1024];
        snprintf(body, sizeof body,
                 "{" MSG ",\"tools\":[" TOOL "],\"tool_choice\":%s,\"response_format\":{\"type\":"
                 "\"json_schema\",\"json_schema\":{\"name\":\"x\",\"schema\":" SCHEMA "}}}",
                 FORCED[i]);
        gen_spec *s = chat(body);
        assert_int_equal(s->constraint, SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS);
        assert_true(s->tool_choice != TOOL_CHOICE(TOOL_AUTO) && s->parse_tool_calls);
        assert_null(s->schema);
        openai_spec_free(s);
    }
}

/* What is sent to the worker as variables for the template. */
static void kwargs_are(const char *fields, const char *want)
{
    char body[512];
    snprintf(body, sizeof body, "{" MSG "%s}", fields);
    gen_spec *s = chat(body);
    Shoal__V1__GenerateRequest r;
    Shoal__V1__Sampling p;
    openai_spec_fill(s, 0, &r, &p);
    assert_string_equal(r.template_kwargs_json, want);
    openai_spec_free(s);
}

static void openai_hands_variables_to_the_template(void **state)
{
    kwargs_are("", "");
    kwargs_are(",\"chat_template_kwargs\":{\"enable_thinking\":false}", "{\"enable_thinking\":false}");
    kwargs_are(",\"reasoning_effort\":\"low\"",
               "{\"reasoning_effort\":\"low\",\"enable_thinking\":true,\"thinking\":true}");
    kwargs_are(",\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"thinking\":1}",
               "{\"thinking\":1,\"reasoning_effort\":\"none\",\"enable_thinking\":false}");
    gen_spec *s = chat("{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":\"a\","
                       "\"reasoning_content\":\"r\"}]}");
    assert_string_equal(s->messages_json,
                        "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"r\"}]");
    openai_spec_free(s);
}

/* In place of the model's; a cached answer is one of that template. */
static void a_template_of_the_request_goes_to_the_worker(void **state)
{
    Shoal__V1__ModelInfo info = SHOAL__V1__MODEL_INFO__INIT;
    Shoal__V1__GenerateRequest r;
    Shoal__V1__Sampling p;
    sha256_digest a, b;
    info.identity = "d";
    gen_spec *own = chat("{" MSG ",\"seed\":1,\"chat_template\":\"{{ x }}\"}");
    gen_spec *none = chat("{" MSG ",\"seed\":1,\"chat_template\":\"\"}");
    gen_spec *clock = chat("{" MSG ",\"seed\":1,\"chat_template\":\"{{ strftime_now('%Y') }}\"}");
    openai_spec_fill(own, 0, &r, &p);
    assert_string_equal(r.chat_template, "{{ x }}");
    openai_spec_fill(none, 0, &r, &p);
    assert_string_equal(r.chat_template, "");
    assert_true(openai_spec_key(own, &info, "", &a) && openai_spec_key(none, &info, "", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_false(openai_spec_key(clock, &info, "", &a));
    info.template_reads_clock = true;
    assert_true(openai_spec_key(own, &info, "", &a));
    openai_spec_free(own);
    openai_spec_free(none);
    openai_spec_free(clock);
}

static void variables_decide_the_answer(void **state)
{
    Shoal__V1__ModelInfo info = SHOAL__V1__MODEL_INFO__INIT;
    sha256_digest a, b;
    info.identity = "d";
    gen_spec *on = chat("{" MSG ",\"seed\":1,\"chat_template_kwargs\":{\"enable_thinking\":true}}");
    gen_spec *off = chat("{" MSG ",\"seed\":1,\"chat_template_kwargs\":{\"enable_thinking\":false}}");
    assert_true(openai_spec_key(on, &info, "", &a) && openai_spec_key(off, &info, "", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    openai_spec_free(on);
    openai_spec_free(off);
}

static void openai_names_the_field_it_refuses(void **state)
{
    static const struct {
        const char *body, *param;
    } CASES[] = {
        {"", ""},
        {"[]", ""},
        {"{", ""},
        {"{\"model\":\"m\",\"model\":\"n\"}", ""},
        {"{\"messages\":[]}", "messages"},
        {"{\"model\":\"\",\"messages\":[]}", "model"},
        {"{\"model\":3}", "model"},
        {"{\"model\":\"m\"}", "messages"},
        {"{\"model\":\"m\",\"messages\":[]}", "messages"},
        {"{\"model\":\"m\",\"messages\":\"x\"}", "messages"},
        {"{\"model\":\"m\",\"messages\":[1]}", "messages[0].role"},
        {"{\"model\":\"m\",\"messages\":[{\"role\":\"king\",\"content\":\"\"}]}", "messages[0].role"},
        {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}", "messages[0].content"},
        {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":5}]}", "messages[0].content"},
        {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}",
         "messages[0].content"},
        {"{" MSG ",\"temperature\":3}", "temperature"},
        {"{" MSG ",\"temperature\":\"hot\"}", "temperature"},
        {"{" MSG ",\"top_p\":-1}", "top_p"},
        {"{" MSG ",\"n\":0}", "n"},
        {"{" MSG ",\"n\":33}", "n"},
        {"{" MSG ",\"max_tokens\":-2}", "max_tokens"},
        {"{" MSG ",\"repetition_penalty\":0.001}", "repetition_penalty"},
        {"{" MSG ",\"top_k\":-2}", "top_k"},
        {"{" MSG ",\"presence_penalty\":2.5}", "presence_penalty"},
        {"{" MSG ",\"max_tokens\":1.5}", "max_tokens"},
        {"{" MSG ",\"stop\":[\"\"]}", "stop"},
        {"{" MSG ",\"stop\":7}", "stop"},
        {"{" MSG ",\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"a\",\"b\",\"c\",\"d\","
         "\"e\",\"f\",\"g\",\"h\"]}",
         "stop"},
        {"{" MSG ",\"logit_bias\":{\"x\":1}}", "logit_bias"},
        {"{" MSG ",\"logit_bias\":{\"1\":101}}", "logit_bias"},
        {"{" MSG ",\"logit_bias\":[]}", "logit_bias"},
        {"{" MSG ",\"top_logprobs\":2}", "top_logprobs"},
        {"{" MSG ",\"stream_options\":7}", "stream_options"},
        {"{" MSG ",\"stream\":1}", "stream"},
        {"{" MSG ",\"tools\":{}}", "tools"},
        {"{" MSG ",\"tools\":[{\"type\":\"web\"}]}", "tools"},
        {"{" MSG ",\"tool_choice\":\"required\"}", "tool_choice"},
        {"{" MSG ",\"tool_choice\":\"maybe\"}", "tool_choice"},
        {"{" MSG ",\"tools\":[" TOOL "],\"tool_choice\":\"own\"}", "tool_choice"},
        {"{" MSG ",\"tools\":[" TOOL
         "],\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"u\"}}}",
         "tool_choice"},
        {"{" MSG ",\"functions\":7}", "functions"},
        {"{" MSG ",\"functions\":[7]}", "functions"},
        {"{" MSG ",\"functions\":[" FUNCTION "," FUNCTION "]}", "functions"},
        {"{" MSG ",\"functions\":[" FUNCTION "],\"tools\":[" TOOL "]}", "functions"},
        {"{" MSG ",\"functions\":[" FUNCTION "],\"function_call\":{\"name\":\"u\"}}", "function_call"},
        {"{" MSG ",\"functions\":[" FUNCTION "],\"function_call\":\"maybe\"}", "function_call"},
        {"{" MSG ",\"function_call\":{\"name\":\"t\"}}", "function_call"},
        {"{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"function_call\":7}]}",
         "messages[0].function_call"},
        {"{" MSG ",\"response_format\":{\"type\":\"xml\"}}", "response_format"},
        {"{" MSG ",\"response_format\":{\"type\":\"json_schema\"}}", "response_format"},
        {"{" MSG ",\"response_format\":{\"type\":\"json_object\",\"schema\":3}}", "response_format.schema"},
        {"{" MSG ",\"json_schema\":[]}", "json_schema"},
        {"{" MSG ",\"guided_json\":\"{\"}", "guided_json"},
        {"{" MSG ",\"guided_choice\":[]}", "guided_choice"},
        {"{" MSG ",\"guided_choice\":[\"\"]}", "guided_choice"},
        {"{" MSG ",\"grammar\":\"root ::= \\\"a\\\"\"}", "grammar"},
        {"{" MSG ",\"guided_grammar\":\"x\"}", "guided_grammar"},
        {"{" MSG ",\"guided_regex\":\"x\"}", "guided_regex"},
        {"{" MSG ",\"structured_outputs\":7}", "structured_outputs"},
        {"{" MSG ",\"structured_outputs\":{\"regex\":\"x\"}}", "structured_outputs.regex"},
        {"{" MSG ",\"structured_outputs\":{\"grammar\":\"x\"}}", "structured_outputs.grammar"},
        {"{" MSG ",\"json_schema\":{},\"guided_json\":{\"type\":\"object\"}}", "guided_json"},
        {"{" MSG ",\"guided_choice\":[\"a\"],\"response_format\":{\"type\":\"json_object\"}}",
         "guided_choice"},
        {"{" MSG ",\"seed\":\"x\"}", "seed"},
        {"{" MSG ",\"reasoning_effort\":\"huge\"}", "reasoning_effort"},
        {"{" MSG ",\"reasoning_effort\":3}", "reasoning_effort"},
        {"{" MSG ",\"chat_template\":7}", "chat_template"},
        {"{" MSG ",\"chat_template_kwargs\":[]}", "chat_template_kwargs"},
        {"{" MSG ",\"chat_template_kwargs\":{\"messages\":[]}}", "chat_template_kwargs"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        gen_spec *s = NULL;
        api_error e = {0};
        int rc = openai_spec_parse_chat(&s, CASES[i].body, strlen(CASES[i].body), &e);
        if (rc != 400 || strcmp(e.param, CASES[i].param) != 0)
            print_error("case %zu: %s\n  status %d param '%s': %s\n", i, CASES[i].body, rc, e.param,
                        e.message);
        assert_int_equal(rc, 400);
        assert_string_equal(e.param, CASES[i].param);
        assert_string_equal(e.type, "invalid_request_error");
    }
}

static void vllms_fields_are_taken(void **state)
{
    Shoal__V1__GenerateRequest r;
    Shoal__V1__Sampling p;
    api_error e = {0};
    gen_spec *s =
        completion("{\"model\":\"m\",\"prompt\":[1,2],\"min_tokens\":5,\"max_tokens\":5,\"stop\":null,"
                   "\"logprobs\":20,\"return_tokens_as_token_ids\":true,\"prompt_logprobs\":null,"
                   "\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true}}");
    openai_spec_fill(s, 0, &r, &p);
    assert_true(r.min_tokens == 5 && s->token_ids && s->usage_stats && s->n_top == 20);
    openai_spec_free(s);
    static const char *const BAD[][2] = {
        {"{\"model\":\"m\",\"prompt\":\"a\",\"min_tokens\":6,\"max_tokens\":5}", "min_tokens"},
        {"{\"model\":\"m\",\"prompt\":\"a\",\"min_tokens\":17}", "min_tokens"}, /* max_tokens is 16 then */
        {"{\"model\":\"m\",\"prompt\":\"a\",\"min_tokens\":-1}", "min_tokens"},
        {"{\"model\":\"m\",\"prompt\":\"a\",\"min_tokens\":1,\"response_format\":{\"type\":\"json_object\"}}",
         "min_tokens"},
        {"{\"model\":\"m\",\"prompt\":\"a\",\"logprobs\":21}", "logprobs"},
        {"{\"model\":\"m\",\"prompt\":\"a\",\"prompt_logprobs\":0}", "prompt_logprobs"},
        {"{\"model\":\"m\",\"prompt\":\"a\",\"stream_options\":{\"continuous_usage_stats\":1}}",
         "continuous_usage_stats"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(openai_spec_parse_completion(&s, BAD[i][0], strlen(BAD[i][0]), &e), 400);
        assert_string_equal(e.param, BAD[i][1]);
    }
}

static void completions_take_text_ids_and_arrays(void **state)
{
    gen_spec *s = completion("{\"model\":\"m\",\"prompt\":\"abc\",\"echo\":true,\"logprobs\":2}");
    assert_true(s->n_prompts == 1 && s->echo && s->logprobs && s->n_top == 2 && s->max_tokens == 16);
    openai_spec_free(s);
    Shoal__V1__GenerateRequest r;
    Shoal__V1__Sampling p;
    s = completion("{\"model\":\"m\",\"prompt\":\"abc\",\"echo\":true,\"max_tokens\":0}");
    openai_spec_fill(s, 0, &r, &p);
    assert_true(r.only_prompt && r.echo);
    openai_spec_free(s);
    s = completion("{\"model\":\"m\",\"prompt\":\"abc\",\"max_tokens\":0}"); /* to the context's end */
    openai_spec_fill(s, 0, &r, &p);
    assert_true(!r.only_prompt && r.max_tokens == 0);
    openai_spec_free(s);
    s = completion("{\"model\":\"m\",\"prompt\":[\"a\",\"b\"],\"n\":2,\"max_tokens\":5}");
    assert_int_equal(openai_spec_choices(s), 4);
    openai_spec_fill(s, 3, &r, &p);
    assert_string_equal(r.text, "b");
    openai_spec_free(s);
    s = completion("{\"model\":\"m\",\"prompt\":[1,2,3]}");
    assert_true(s->n_prompts == 1 && s->prompts[0].n_ids == 3 && s->prompts[0].ids[2] == 3);
    openai_spec_free(s);
    s = completion("{\"model\":\"m\",\"prompt\":[[1],[4,5]]}");
    assert_true(s->n_prompts == 2 && s->prompts[1].n_ids == 2 && s->prompts[1].ids[0] == 4);
    openai_spec_free(s);
}

static void completions_refuse_bad_prompts(void **state)
{
    static const char *const BAD[] = {
        "{\"model\":\"m\"}",
        "{\"model\":\"m\",\"prompt\":\"\"}",
        "{\"model\":\"m\",\"prompt\":[]}",
        "{\"model\":\"m\",\"prompt\":[[]]}",
        "{\"model\":\"m\",\"prompt\":[-1]}",
        "{\"model\":\"m\",\"prompt\":[1,\"a\"]}",
        "{\"model\":\"m\",\"prompt\":[4294967296]}",
        "{\"model\":\"m\",\"prompt\":\"a\\u0000b\"}",
        "{\"model\":\"m\",\"prompt\":{}}",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        gen_spec *s = NULL;
        api_error e = {0};
        assert_int_equal(openai_spec_parse_completion(&s, BAD[i], strlen(BAD[i]), &e), 400);
        assert_string_equal(e.param, "prompt");
    }
}

static void completions_refuse_what_they_would_ignore(void **state)
{
    static const char *const BAD[] = {"{\"model\":\"m\",\"prompt\":\"a\",\"best_of\":3}",
                                      "{\"model\":\"m\",\"prompt\":\"a\",\"suffix\":\"b\"}",
                                      "{\"model\":\"m\",\"prompt\":\"a\",\"suffix\":1}"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        gen_spec *s = NULL;
        api_error e = {0};
        assert_int_equal(openai_spec_parse_completion(&s, BAD[i], strlen(BAD[i]), &e), 400);
        assert_string_equal(e.param, i == 0 ? "best_of" : "suffix");
    }
    openai_spec_free(completion("{\"model\":\"m\",\"prompt\":\"a\",\"best_of\":1,\"suffix\":null}"));
    openai_spec_free(completion("{\"model\":\"m\",\"prompt\":\"a\",\"n\":2,\"best_of\":2}"));
}

static bool key_of(const char *body, const char *identity, sha256_digest *ret)
{
    gen_spec *s = chat(body);
    Shoal__V1__ModelInfo model = SHOAL__V1__MODEL_INFO__INIT;
    model.identity = (char *)identity;
    bool ok = openai_spec_key(s, &model, "", ret);
    openai_spec_free(s);
    return ok;
}

static void openai_key_names_what_decides_the_answer(void **state)
{
    sha256_digest a, b;
    assert_true(key_of("{" MSG ",\"temperature\":0}", "d", &a));
    assert_true(key_of("{\"temperature\":0,\"stream\":true,\"user\":\"u\"," MSG "}", "d", &b));
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(key_of("{" MSG ",\"temperature\":0}", "e", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_true(key_of("{" MSG ",\"temperature\":0,\"max_tokens\":4}", "d", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_true(key_of("{" MSG ",\"seed\":1}", "d", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_false(key_of("{" MSG "}", "d", &b));
    /* a template prints a tool's keys in the client's order, and a grammar follows it */
    assert_true(key_of("{" MSG ",\"seed\":1,\"tools\":[" TOOL "]}", "d", &a));
    assert_true(key_of(
        "{" MSG ",\"seed\":1,\"tools\":[{\"function\":{\"name\":\"t\"},\"type\":\"function\"}]}", "d", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_true(key_of("{" MSG ",\"seed\":1,\"tools\":[" TOOL "],\"tool_choice\":\"required\"}", "d", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
}

/* Two replicas of one file, of which one runs elsewhere: neither answers out of the other's cache. */
static void openai_key_tells_engines_and_precisions_of_one_file_apart(void **state)
{
    static const char *const IDENTITIES[] = {"sha256:d;engine=shoal;precision=file;numerics=1",
                                             "sha256:d;engine=shoal;precision=file,kv=q8_0;numerics=1",
                                             "sha256:d;engine=shoal;precision=file;numerics=2",
                                             "sha256:d;engine=cuda;precision=file;numerics=1"};
    sha256_digest keys[4], streams[4] = {0};
    for (size_t i = 0; i < 4; i++) {
        assert_true(key_of("{" MSG ",\"seed\":1}", IDENTITIES[i], &keys[i]));
        stream_id_model(streams[i].bytes, IDENTITIES[i], "");
        for (size_t k = 0; k < i; k++) {
            assert_memory_not_equal(&keys[i], &keys[k], sizeof *keys);
            assert_memory_not_equal(&streams[i], &streams[k], sizeof *streams);
        }
    }
    sha256_digest before = {0}; /* an id of a gateway that knew digests alone */
    stream_id_model(before.bytes, "d", "");
    assert_memory_equal(&before, &streams[0], sizeof before);
}

static void openai_answers_of_a_template_that_reads_the_clock_are_not_kept(void **state)
{
    sha256_digest d;
    Shoal__V1__ModelInfo model = SHOAL__V1__MODEL_INFO__INIT;
    model.identity = "d";
    gen_spec *s = chat("{" MSG ",\"seed\":1}"),
             *raw = completion("{\"model\":\"m\",\"prompt\":\"a\",\"seed\":1}");
    assert_true(openai_spec_key(s, &model, "", &d));
    model.template_reads_clock = true;
    assert_false(openai_spec_key(s, &model, "", &d));
    assert_true(openai_spec_key(raw, &model, "", &d)); /* no template is asked */
    openai_spec_free(s);
    openai_spec_free(raw);
}

/* Messages come to the worker in our own order, so the client's does not matter. */
static void openai_key_ignores_what_the_worker_never_sees(void **state)
{
    sha256_digest a, b;
    assert_true(key_of("{\"model\":\"m\",\"seed\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
                       "d", &a));
    assert_true(key_of(
        "{\"seed\":1,\"messages\":[ {\"content\" : \"hi\", \"role\":\"user\"} ],\"model\":\"m\"}", "d", &b));
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(key_of("{\"model\":\"m\",\"seed\":1,\"messages\":[{\"role\":\"user\",\"content\":\"hi \"}]}",
                       "d", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openai_requests_may_say_nothing),
        cmocka_unit_test(openai_asks_the_request_then_the_model_then_the_api),
        cmocka_unit_test(openai_draws_no_translation_that_nobody_wants_drawn),
        cmocka_unit_test(openai_refuses_what_other_servers_would_do),
        cmocka_unit_test(openai_takes_llama_servers_names),
        cmocka_unit_test(openai_reads_every_sampling_field),
        cmocka_unit_test(openai_joins_parts_and_keeps_tool_history),
        cmocka_unit_test(openai_tool_choice_none_hides_tools),
        cmocka_unit_test(openai_offered_tools_bind_the_reply),
        cmocka_unit_test(openai_takes_the_numbers_that_clients_send),
        cmocka_unit_test(openai_choices_of_other_seeds_are_others),
        cmocka_unit_test(openai_seeds_have_64_bits),
        cmocka_unit_test(openai_seed_minus_one_is_drawn),
        cmocka_unit_test(openai_response_format_becomes_a_constraint),
        cmocka_unit_test(openai_honours_the_schema_fields_of_other_servers),
        cmocka_unit_test(openai_honours_choices),
        cmocka_unit_test(openai_maps_functions_to_tools),
        cmocka_unit_test(openai_maps_messages_of_functions),
        cmocka_unit_test(choices_decide_the_answer),
        cmocka_unit_test(a_forced_call_takes_precedence_over_the_format),
        cmocka_unit_test(openai_hands_variables_to_the_template),
        cmocka_unit_test(a_template_of_the_request_goes_to_the_worker),
        cmocka_unit_test(variables_decide_the_answer),
        cmocka_unit_test(openai_names_the_field_it_refuses),
        cmocka_unit_test(vllms_fields_are_taken),
        cmocka_unit_test(completions_take_text_ids_and_arrays),
        cmocka_unit_test(completions_refuse_bad_prompts),
        cmocka_unit_test(completions_refuse_what_they_would_ignore),
        cmocka_unit_test(openai_key_names_what_decides_the_answer),
        cmocka_unit_test(openai_key_tells_engines_and_precisions_of_one_file_apart),
        cmocka_unit_test(openai_answers_of_a_template_that_reads_the_clock_are_not_kept),
        cmocka_unit_test(openai_key_ignores_what_the_worker_never_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
