#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/sys.h"
#include "gateway/config_schema.h"

#define MODELS "models:\n  - name: m\n"
/* Line 3 is the pipeline's name, line 5 its first stage. */
#define PIPE "models: [{name: m}]\npipelines:\n  - name: p\n    stages:\n"

typedef struct bad_case {
    const char *yaml;
    const char *says; /* must be in the sentence, which starts with "t.yaml:LINE" */
    int line;         /* 0: not looked at */
} bad_case;

static const bad_case bad_cases[] = {
    {"", "empty", 0},
    {"listen: 127.0.0.1:1\n", "models", 0},
    {"models: []\n", "models", 1},
    {MODELS "colour: red\n", "colour", 3},
    {MODELS "limits:\n  max_body_byte: 5\n", "max_body_byte", 4},
    {MODELS "deadline_ms: soon\n", "soon", 3},
    {MODELS "deadline_ms: -1\n", "deadline_ms", 3},
    {MODELS "deadline_ms: 999999999999\n", "deadline_ms", 3},
    {MODELS "deadline_ms: 99999999999999999999999\n", "deadline_ms", 3},
    {MODELS "listen: nowhere\n", "HOST:PORT", 3},
    {MODELS "listen: 127.0.0.1:65536\n", "listen", 3},
    {MODELS "listen: 'unix:'\n", "listen", 3},
    {MODELS "limits:\n  max_headers: 40\n  max_connections: 99999999\n", "limits.max_connections", 5},
    {MODELS "cache: {mb: 99999999999999}\n", "cache.mb", 3},
    {MODELS "log:\n  level: loud\n", "log.level", 4},
    {MODELS "log:\n  json: maybe\n", "log.json", 4},
    {MODELS "tls: {cert: a.pem}\n", "key", 3},
    {MODELS "api_keys:\n  - hunter2\n", "api_keys[0]", 4},
    {MODELS "api_keys: ['sha256:12']\n", "api_keys[0]", 3},
    {MODELS "models:\n  - name: n\n", "models", 3},
    {"models:\n  - name: a\n  - name: a\n", "models[1].name: 'a' is already", 3},
    {"models:\n  - name: a b\n", "models[0].name", 2},
    {"models:\n  - name: a\n    sha256: xyz\n", "models[0].sha256", 3},
    {"models:\n  - name: a\n    replicas: 1000\n", "models[0].replicas", 3},
    {"models:\n  - name: a\n    path: [1]\n", "path", 3},
    {"models:\n  - name: &n a\n  - name: *n\n", "", 0}, /* aliases are off */
    {"models: [{name: m}\nlisten: x\n", "t.yaml", 0},
    {PIPE "      - {name: a, kind: guess, model: m}\n", "guess", 5},
    {PIPE "      - {name: a, kind: classify}\n", "model", 5},
    {PIPE "      - {name: a, kind: classify, model: x}\n", "pipelines[0].stages[0].model: 'x'", 5},
    {PIPE "      - {name: a b, kind: classify, model: m}\n", "stages[0].name", 5},
    {PIPE "      - {name: a, kind: classify, model: m}\n      - {name: a, kind: tag, model: m}\n",
     "stages[1].name: 'a' is already", 6},
    {PIPE "      - {name: a, kind: classify, model: m, system: hi}\n", "stages[0].system", 5},
    {PIPE "      - {name: a, kind: generate, model: m, temperature: 3}\n", "temperature", 5},
    {PIPE "      - {name: a, kind: generate, model: m, temperature: .nan}\n", "temperature", 5},
    {PIPE "      - {name: a, kind: generate, model: m, max_tokens: 99999999}\n", "max_tokens", 5},
    {PIPE "      - {name: a, kind: tag, model: m, when: [{}]}\n", "stages[0].when[0]", 5},
    {PIPE "      - {name: a, kind: tag, model: m, when: [{label: [x]}]}\n", "needs 'stage:'", 5},
    {PIPE "      - {name: a, kind: tag, model: m, when: [{stage: a, label: [x]}]}\n", "declared before", 5},
    {PIPE "      - {name: a, kind: tag, model: m}\n      - {name: b, kind: tag, model: m,\n         when: "
          "[{stage: a, label: [x]}]}\n",
     "a tag stage, a classify stage is needed", 7},
    {PIPE "      - {name: a, kind: classify, model: m}\n"
          "      - {name: b, kind: tag, model: m, unless: [{stage: a, score_min: 1.5}]}\n",
     "unless[0].score_min", 6},
    {PIPE "      - {name: a, kind: generate, model: m, system: '{device}'}\n", "{devices}", 5},
    {PIPE "      - {name: a, kind: generate, model: m, system: 'x {input'}\n", "no '}'", 5},
    {PIPE "      - {name: a, kind: generate, model: m, prompt: '{text.a}'}\n", "declared before", 5},
    {PIPE "      - {name: a, kind: generate, model: m, after: [z]}\n", "after", 5},
    {"models: [{name: m}]\npipelines:\n  - name: p\n    devices:\n      - {id: a, name: b, state: c}\n"
     "      - {id: a, name: b, state: c}\n    stages: [{name: s, kind: tag, model: m}]\n",
     "devices[1].id", 6},
    {"models: [{name: m}]\npipelines:\n  - name: p\n    devices:\n      - {id: a, name: \"b\\nc\", state: "
     "c}\n"
     "    stages: [{name: s, kind: tag, model: m}]\n",
     "devices[0].name", 5},
};

static void bad_files_are_refused_with_line_and_field(void **state)
{
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const bad_case *b = &bad_cases[i];
        gateway_config *c = NULL;
        shoal_err err = {0};
        int rc = gateway_config_parse(&c, b->yaml, strlen(b->yaml), "t.yaml", &err);
        char start[32];
        snprintf(start, sizeof start, b->line ? "t.yaml:%d:" : "t.yaml", b->line);
        if (rc == 0 || c || !strstr(err.message, b->says) || strncmp(err.message, start, strlen(start)) != 0)
            n_wrong++, print_error("case %zu\n%s\nrc %d, wanted '%s' at line %d, got: %s\n", i, b->yaml, rc,
                                   b->says, b->line, err.message);
    }
    assert_int_equal(n_wrong, 0);
}

static void a_pasted_key_is_not_repeated(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    const char *yaml = MODELS "api_keys: [sk-verysecret]\n";
    assert_int_equal(gateway_config_parse(&c, yaml, strlen(yaml), "t.yaml", &err), SHOAL_EINVALID);
    assert_null(strstr(err.message, "verysecret"));
}

static void huge_files_are_refused(void **state)
{
    size_t n = (1u << 20) + 1;
    char *text = malloc(n);
    memset(text, '#', n);
    gateway_config *c = NULL;
    shoal_err err = {0};
    assert_int_equal(gateway_config_parse(&c, text, n, "t.yaml", &err), SHOAL_ELIMIT);
    free(text);
}

static void what_is_left_out_has_its_default(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (gateway_config_parse(&c, MODELS, strlen(MODELS), "t.yaml", &err)) fail_msg("%s", err.message);
    assert_string_equal(c->listen, "127.0.0.1:8080");
    assert_string_equal(c->log_level, "info");
    assert_int_equal(c->max_requests, 256);
    assert_int_equal(c->cache_bytes, 16 << 20);
    assert_int_equal(c->cache_ttl_ms, 600000);
    assert_int_equal(c->default_deadline_ms, 60000);
    assert_int_equal(c->drain_ms, 10000);
    assert_null(c->manifest);
    assert_null(c->tls_cert);
    assert_int_equal(c->n_models, 1);
    assert_int_equal(c->n_pipelines, 0);
    gateway_config_free(c);
}

static void zero_turns_cache_and_deadline_off(void **state)
{
    gateway_config *c = NULL;
    const char *yaml = MODELS "cache: {mb: 0}\ndeadline_ms: 0\n";
    assert_int_equal(gateway_config_parse(&c, yaml, strlen(yaml), "t.yaml", NULL), 0);
    assert_int_equal(c->cache_bytes, 0);
    assert_int_equal(c->default_deadline_ms, 0);
    gateway_config_free(c);
}

static void every_section_is_read(void **state)
{
    const char *yaml =
        "listen: ':0'\ntls: {cert: c.pem, key: k.pem}\n"
        "api_keys: ['sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF']\n"
        "limits: {max_body_bytes: 2048, max_requests: 7, idle_timeout_ms: 500}\n"
        "log: {level: debug, json: true}\nmanifest: /m.json\n"
        "models: [{name: m, path: x.gguf, replicas: 2, kv_mb: 8}]\n";
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (gateway_config_parse(&c, yaml, strlen(yaml), "t.yaml", &err)) fail_msg("%s", err.message);
    assert_string_equal(c->tls_key, "k.pem");
    assert_int_equal(c->n_api_keys, 1);
    assert_int_equal(c->limits.max_body_bytes, 2048);
    assert_int_equal(c->limits.idle_timeout_ms, 500);
    assert_int_equal(c->max_requests, 7);
    assert_true(c->log_json);
    assert_string_equal(c->manifest, "/m.json");
    assert_int_equal(c->models[0].replicas, 2);
    assert_int_equal(c->models[0].kv_mb, 8);
    gateway_config_free(c);
}

static void the_home_cluster_is_valid_and_its_paths_are_resolved(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (gateway_config_load(&c, SHOAL_SOURCE_DIR "/shoal.yaml", &err)) fail_msg("%s", err.message);
    assert_int_equal(c->n_models, 5);
    assert_string_equal(c->manifest, SHOAL_SOURCE_DIR "/models/models.json");
    const config_pipeline *p = pipeline_find(c, "home");
    assert_non_null(p);
    assert_ptr_equal(p, pipeline_find(c, NULL));
    assert_null(pipeline_find(c, "nowhere"));
    assert_true(pipeline_is_deterministic(p));
    gateway_config_free(c);
}

static void a_missing_file_is_named(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    assert_int_not_equal(gateway_config_load(&c, "/nonexistent/shoal.yaml", &err), 0);
    assert_non_null(strstr(err.message, "/nonexistent/shoal.yaml"));
}

/* Every key of the schema stands in docs/configuration.md as "`path.key`". */
static void expect_documented(const char *doc, const cyaml_schema_value_t *v, const char *path)
{
    if (v->type == CYAML_SEQUENCE) {
        char item[200];
        snprintf(item, sizeof item, "%s[]", path);
        expect_documented(doc, v->sequence.entry, item);
    }
    if (v->type != CYAML_MAPPING) return;
    for (const cyaml_schema_field_t *f = v->mapping.fields; f->key; f++) {
        char at[200], quoted[210];
        snprintf(at, sizeof at, "%s%s%s", path, *path ? "." : "", f->key);
        snprintf(quoted, sizeof quoted, "| `%s` |", at);
        if (!strstr(doc, quoted)) fail_msg("docs/configuration.md has no row %s", quoted);
        expect_documented(doc, &f->value, at);
    }
}

static void every_key_is_documented(void **state)
{
    buf doc = {0};
    shoal_err err = {0};
    if (file_read(&doc, SHOAL_SOURCE_DIR "/docs/configuration.md", 1 << 20, &err))
        fail_msg("%s", err.message);
    expect_documented(doc.data, &config_schema, "");
    buf_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_are_refused_with_line_and_field),
        cmocka_unit_test(a_pasted_key_is_not_repeated),
        cmocka_unit_test(huge_files_are_refused),
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(zero_turns_cache_and_deadline_off),
        cmocka_unit_test(every_section_is_read),
        cmocka_unit_test(the_home_cluster_is_valid_and_its_paths_are_resolved),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(every_key_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
