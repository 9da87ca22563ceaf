/* Ollama's requests as ours: fields of the wrong type are refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "dialects/ollama.h"
#include "json/json.h"

static void refused(ollama_kind kind, const char *field, const char *value)
{
    ollama_ask a;
    json_t *body = NULL;
    api_error e = {0};
    char json[256];
    int n = snprintf(json, sizeof json, "{\"model\":\"m\",\"messages\":[],\"%s\":%s}", field, value);
    if (ollama_read(&a, kind, json, (size_t)n, &body, &e) != 400) fail_msg("taken: %s", json);
    if (strcmp(e.param, field) != 0) fail_msg("%s\nrefused for \"%s\": %s", json, e.param, e.message);
    assert_null(body);
}

static void ollama_refuses_what_is_no_text_by_name(void **state)
{
    static const char *const FIELDS[] = {"suffix", "system", "prompt", "template"};
    static const char *const VALUES[] = {"1", "-1.5", "{}", "[]", "true", "\"a\\u0000b\""};
    for (size_t f = 0; f < sizeof FIELDS / sizeof *FIELDS; f++)
        for (size_t v = 0; v < sizeof VALUES / sizeof *VALUES; v++)
            refused(OLLAMA_GENERATE, FIELDS[f], VALUES[v]);
    refused(OLLAMA_GENERATE, "suffix", "\"b\",\"raw\":true");
    refused(OLLAMA_GENERATE, "template", "\"{{\"");
    refused(OLLAMA_CHAT, "template", "\"a\"");
}

static void ollama_takes_a_suffix_without_content(void **state)
{
    static const char *const VALUES[] = {"null", "\"\""};
    for (size_t v = 0; v < 2; v++) {
        ollama_ask a;
        json_t *body = NULL;
        api_error e = {0};
        char json[256];
        int n = snprintf(json, sizeof json, "{\"model\":\"m\",\"prompt\":\"a\",\"suffix\":%s}", VALUES[v]);
        assert_int_equal(ollama_read(&a, OLLAMA_GENERATE, json, (size_t)n, &body, &e), 0);
        assert_non_null(body);
        json_decref(body);
    }
}

/* {"truncate": ...} of the body for /v1/embeddings. */
static bool truncates(ollama_kind kind, const char *json, bool *loads)
{
    ollama_ask a;
    json_t *body = NULL;
    api_error e = {0};
    assert_int_equal(ollama_read(&a, kind, json, strlen(json), &body, &e), 0);
    bool cut = json_is_true(json_object_get(body, "truncate"));
    *loads = a.loads;
    json_decref(body);
    return cut;
}

static void ollama_truncates_texts_unless_told_not_to(void **state)
{
    bool loads;
    assert_true(truncates(OLLAMA_EMBED, "{\"model\":\"m\",\"input\":[\"a\"]}", &loads));
    assert_false(loads);
    assert_true(truncates(OLLAMA_EMBEDDINGS, "{\"model\":\"m\",\"prompt\":\"a\",\"truncate\":null}", &loads));
    assert_false(truncates(OLLAMA_EMBED, "{\"model\":\"m\",\"input\":\"a\",\"truncate\":false}", &loads));
    assert_false(loads);
    truncates(OLLAMA_EMBED, "{\"model\":\"m\",\"input\":[]}", &loads);
    assert_true(loads);
    refused(OLLAMA_EMBED, "truncate", "1,\"input\":\"a\"");
}

/* A letter a message: s(ystem), u(ser), a(ssistant), t(ool). */
static void shortens(const char *from, const char *to)
{
    static const struct {
        char letter;
        const char *role;
    } ROLES[] = {{'s', "system"}, {'u', "user"}, {'a', "assistant"}, {'t', "tool"}};
    char got[32] = "";
    json_t *body = json_pack("{s:[]}", "messages"), *messages = json_object_get(body, "messages"), *m;
    for (const char *c = from; *c; c++)
        for (size_t r = 0; r < 4; r++)
            if (ROLES[r].letter == *c)
                json_array_append_new(messages, json_pack("{s:s}", "role", ROLES[r].role));
    json_t *before = json_incref(messages);
    bool shorter = ollama_shorten(body);
    size_t i;
    json_array_foreach(json_object_get(body, "messages"), i, m) got[i] =
        json_string_value(json_object_get(m, "role"))[0];
    if (strcmp(got, to) != 0 || shorter != (strcmp(from, to) != 0))
        fail_msg("%s became %s, not %s", from, got, to);
    assert_int_equal(json_array_size(before), strlen(from)); /* which others may share */
    json_decref(before);
    json_decref(body);
}

static void ollama_drops_the_oldest_messages(void **state)
{
    shortens("suauau", "suau");
    shortens("uauauauau", "uauau"); /* a quarter, and on to a user's message */
    shortens("usu", "su");
    shortens("uaaa", "aaa"); /* no user says anything behind it */
    shortens("uat", "at");   /* not a result without its call */
    shortens("uatat", "at");
    shortens("at", "at");
    shortens("su", "su");
    shortens("s", "s");
    shortens("", "");
    ollama_ask a;
    json_t *body = NULL;
    api_error e = {0};
    static const char BODY[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}],\"truncate\":null}";
    assert_int_equal(ollama_read(&a, OLLAMA_CHAT, BODY, sizeof BODY - 1, &body, &e), 0);
    assert_true(a.truncates);
    json_decref(body);
    refused(OLLAMA_CHAT, "truncate", "1");
    refused(OLLAMA_CHAT, "shift", "true");
    refused(OLLAMA_GENERATE, "truncate", "true");
}

static void ollama_errors_name_its_own_paths_and_fields(void **state)
{
    static const struct {
        const char *ours, *theirs;
    } CASES[] = {
        {"GET /v1/models lists all", "GET /api/tags lists all"},
        {"see GET /v1/models?loadable=true", "see GET /api/tags"},
        {"asked at /v1/chat/completions or /v1/completions", "asked at /api/chat or /api/generate"},
        {"asked at /v1/embeddings", "asked at /api/embed"},
        {"a given form (response_format): leave that out", "a given form (format): leave that out"},
        {"a model \\\"of\\\" its own", "a model \\\"of\\\" its own"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf out = {0};
        char wanted[200];
        snprintf(wanted, sizeof wanted, "{\"error\":\"%s\"}", CASES[i].theirs);
        char given[200];
        size_t n = 0;
        for (const char *s = CASES[i].ours; *s; s++)
            if (*s != '\\') given[n++] = *s;
        given[n] = '\0';
        ollama_put_error(&out, given);
        assert_string_equal(out.data, wanted);
        buf_done(&out);
    }
}

static json_t *parsed(const char *text)
{
    json_t *v = NULL;
    assert_int_equal(json_parse(&v, text, strlen(text), "a body", NULL), 0);
    return v;
}

static void fills(int (*fill)(json_t *, const json_t *), const char *body, const char *want)
{
    json_t
        *made = parsed(
            "{\"from\":\"m\",\"system\":\"S\",\"parameters\":{\"num_predict\":3,\"top_k\":7,\"num_ctx\":9}}"),
        *got = parsed(body), *due = parsed(want);
    assert_int_equal(fill(got, made), 0);
    if (!json_equal(got, due)) fail_msg("%s: %s", body, json_dumps(got, JSON_COMPACT));
    json_decref(made);
    json_decref(got);
    json_decref(due);
}

/* Each API keeps its own defaults of sampling, and what the request says comes first. */
static void ollama_fills_in_what_a_request_of_any_api_leaves_out(void **state)
{
    fills(ollama_fill_in, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"top_k\":null}",
          "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"a\"}],"
          "\"max_tokens\":3,\"top_k\":7}");
    fills(ollama_fill_in,
          "{\"messages\":[{\"role\":\"system\",\"content\":\"T\"}],\"max_completion_tokens\":5}",
          "{\"messages\":[{\"role\":\"system\",\"content\":\"T\"}],\"max_completion_tokens\":5,\"top_k\":7}");
    fills(ollama_fill_in, "{\"prompt\":\"a\",\"top_k\":1}",
          "{\"prompt\":\"a\",\"top_k\":1,\"max_tokens\":3}");
    fills(ollama_fill_in_llama, "{\"prompt\":\"a\",\"n_predict\":1}",
          "{\"prompt\":\"a\",\"n_predict\":1,\"num_predict\":3,\"top_k\":7,\"num_ctx\":9}");
    fills(ollama_fill_in_llama, "{\"prompt\":\"a\"}",
          "{\"prompt\":\"a\",\"n_predict\":3,\"num_predict\":3,\"top_k\":7,\"num_ctx\":9}");
}

/* A file of a Modelfile is known by its digest. */
static void ollama_makes_a_model_of_a_file_by_its_digest(void **state)
{
#define HEX64 "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"
    static const struct {
        const char *files;
        int status;
    } CASES[] = {{"{\"a.gguf\":\"sha256:" HEX64 "\"}", 0},
                 {"{\"a.gguf\":\"sha256:" HEX64 "0\"}", 400},
                 {"{\"a.gguf\":\"" HEX64 "\"}", 400},
                 {"{\"a.gguf\":7}", 400},
                 {"{\"a\":\"sha256:" HEX64 "\",\"b\":\"sha256:" HEX64 "\"}", 400},
                 {"[]", 400},
                 {"{}", 400}}; /* then "from" is missing */
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        ollama_making m;
        json_t *made = NULL;
        api_error e = {0};
        char json[400];
        int n = snprintf(json, sizeof json, "{\"model\":\"x\",\"files\":%s}", CASES[i].files);
        assert_int_equal(ollama_read_create(&m, json, (size_t)n, &made, &e), CASES[i].status);
        if (CASES[i].status == 0)
            assert_string_equal(m.sha256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        json_decref(made);
    }
}

/* As Ollama's client reads a Modelfile: a value goes on until a line ends in the quotes that it began with. */
static size_t count_commands(const char *text)
{
    size_t n = 0;
    for (const char *at = text; *at; n++) {
        const char *value = at + strcspn(at, " ");
        value += strspn(value, " ");
        if (strncmp(at, "PARAMETER ", 10) == 0) value += strcspn(value, " "), value += strspn(value, " ");
        size_t quotes = strncmp(value, "\"\"\"", 3) == 0 ? 3 : *value == '"';
        const char *end = value + quotes;
        for (;; end++) {
            end += strcspn(end, "\n");
            const char *last = end;
            while (last > value && strchr(" \t\r", last[-1])) last--;
            if (!*end || quotes == 0) break;
            if ((size_t)(last - value) >= 2 * quotes && strncmp(last - quotes, "\"\"\"", quotes) == 0) break;
        }
        at = *end ? end + 1 : end;
    }
    return n;
}

static void ollama_lets_no_text_out_of_a_modelfile(void **state)
{
    static const char *const texts[] = {"a\\nb",
                                        "a \\\"\\\"\\\" b",
                                        "a\\\"\\\"\\\"\\nPARAMETER seed 7\\nSYSTEM \\\"\\\"\\\"b",
                                        "a\\\"\\\"\\\" \\t\\r\\nFROM evil",
                                        "\\\"\\\"\\\"\\nFROM evil\\n",
                                        "\\\"\\nFROM evil",
                                        "a\\\"\\\"\\\"\\\"\\n\\nFROM evil\\\"\\\"\\\""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char json[600];
        buf out = {0};
        ollama_times t = {.unix_us = 1};
        snprintf(
            json, sizeof json,
            "{\"from\":\"m\",\"system\":\"%s\",\"template\":\"%s\",\"parameters\":{\"stop\":[\"%s\",\"z\"],"
            "\"seed\":1}}",
            texts[i], texts[i], texts[i]);
        json_t *made = parsed(json), *ours = parsed("{\"id\":\"m\"}"), *shown;
        assert_int_equal(ollama_put_model(&out, ours, made, &t), 0);
        shown = parsed(out.data);
        const char *file = json_string_value(json_object_get(shown, "modelfile"));
        if (count_commands(file) != 6) fail_msg("%zu commands:\n%s", count_commands(file), file);
        assert_string_equal(json_string_value(json_object_get(shown, "template")),
                            json_string_value(json_object_get(made, "template")));
        assert_string_equal(json_string_value(json_object_get(shown, "system")),
                            json_string_value(json_object_get(made, "system")));
        const char *lines = json_string_value(json_object_get(shown, "parameters"));
        size_t n = 1;
        for (const char *c = lines; *c; c++) n += *c == '\n';
        assert_int_equal(n, 3);
        json_decref(made);
        json_decref(ours);
        json_decref(shown);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ollama_refuses_what_is_no_text_by_name),
        cmocka_unit_test(ollama_takes_a_suffix_without_content),
        cmocka_unit_test(ollama_truncates_texts_unless_told_not_to),
        cmocka_unit_test(ollama_errors_name_its_own_paths_and_fields),
        cmocka_unit_test(ollama_drops_the_oldest_messages),
        cmocka_unit_test(ollama_lets_no_text_out_of_a_modelfile),
        cmocka_unit_test(ollama_makes_a_model_of_a_file_by_its_digest),
        cmocka_unit_test(ollama_fills_in_what_a_request_of_any_api_leaves_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
