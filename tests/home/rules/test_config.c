/* The home's kinds of stages in shoal.yaml: checked, printed and judged as the server's are; and the lexicons that
 * they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "config/config_diff.h"
#include "config/config_put.h"
#include "rules/home.h"

/* Line 3 is the pipeline's name, line 5 its first stage. */
#define PIPE "models: [{name: m}]\npipelines:\n  - name: p\n    stages:\n"

typedef struct bad_case {
    const char *yaml;
    const char *says; /* must be in the sentence, which starts with "t.yaml:LINE" */
    int line;
} bad_case;

static const bad_case bad_cases[] = {
    {PIPE "      - {name: a, kind: ground}\n", "stages[0].lexicon: a ground stage needs it", 5},
    {PIPE "      - {name: a, kind: line, forms: f, model: m}\n",
     "only a classify, tag, generate, embed, rerank, seq2seq, fill-mask, transcribe, vad, image or score "
     "stage",
     5},
    {PIPE "      - {name: a, kind: line, forms: f}\n      - {name: b, kind: tag, model: m,\n         when: "
          "[{stage: a, label: [act]}]}\n",
     "a line stage never comes to 'act'", 7},

    {PIPE "      - {name: a, kind: match}\n", "stages[0].lexicon: a match stage needs it", 5},
    {PIPE "      - {name: a, kind: match, lexicon: l, max_targets: 3}\n",
     "max_targets: only a guard stage has it", 5},
    {PIPE "      - {name: a, kind: match, lexicon: l, slot_labels: [x]}\n", "slot_labels: needs 'slots'", 5},
    {PIPE "      - {name: t, kind: tag, model: m, input: 'x {input}'}\n"
          "      - {name: a, kind: match, lexicon: l, slots: t}\n",
     "slots: 't' reads another text than this stage", 6},
    {PIPE "      - {name: g, kind: guard, lexicon: l}\n", "stages[0].of: a guard stage needs it", 5},
    {PIPE "      - {name: t, kind: tag, model: m}\n      - {name: g, kind: guard, of: t, lexicon: l}\n",
     "'t' is a tag stage, a generate, ground, check or match stage is needed here", 6},
    {PIPE "      - {name: a, kind: match, lexicon: l}\n"
          "      - {name: g, kind: guard, of: a, lexicon: l, when: [{stage: a, label: [two]}]}\n",
     "a match stage never comes to 'two'", 6},
    {PIPE "      - {name: a, kind: match, lexicon: l}\n      - {name: g, kind: guard, of: a, lexicon: l}\n"
          "      - {name: b, kind: tag, model: m, when: [{stage: g, label: [allow]}]}\n",
     "a guard stage never comes to 'allow'", 7},
    {PIPE "      - {name: g, kind: guard, of: a, lexicon: l, say: [{rule: later}]}\n", "say[0]", 5},

    {PIPE "      - {name: a, kind: tag, model: m}\n      - {name: b, kind: tag, model: m,\n         when: "
          "[{stage: a, label: [x]}]}\n",
     "a tag stage, a classify, embed, rerank, fill-mask, transcribe, vad, image, score, retrieve, ground, "
     "line, check, match or guard stage is needed",
     7},
};

static void a_wrong_stage_is_said_with_its_line(void **state)
{
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const bad_case *b = &bad_cases[i];
        gateway_config *c = NULL;
        shoal_err err = {0};
        char at[32];
        snprintf(at, sizeof at, "t.yaml:%d: ", b->line);
        int rc = config_parse(&c, &HOME_STAGES, b->yaml, strlen(b->yaml), "t.yaml", &err);
        bool well =
            rc == SHOAL_EINVALID && strstr(err.message, b->says) && strncmp(err.message, at, strlen(at)) == 0;
        if (!well)
            n_wrong++, print_error("case %zu\n%s\nrc %d, wanted '%s' at line %d, got: %s\n", i, b->yaml, rc,
                                   b->says, b->line, err.message);
        config_free(c);
    }
    assert_int_equal(n_wrong, 0);
}

static void count(void *user, const config_change *c)
{
    ++*(int *)user;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A file that a stage names is opened with the configuration; its own line is said behind that of the stage. */
static void a_wrong_lexicon_is_said_with_both_lines(void **state)
{
    static const struct {
        const char *stage, *says;
    } rows[] = {
        {"kind: ground, lexicon: bad.yaml", "shoal.yaml:6: pipelines[0].stages[0].lexicon: "},
        {"kind: line, forms: bad.yaml", "shoal.yaml:6: pipelines[0].stages[0].forms: "},
        {"kind: match, lexicon: bad.yaml", "shoal.yaml:6: pipelines[0].stages[0].lexicon: "},
    };
    char dir[] = "/tmp/shoal_rules_XXXXXX", bad[64], yaml[64];
    assert_non_null(mkdtemp(dir));
    snprintf(bad, sizeof bad, "%s/bad.yaml", dir);
    snprintf(yaml, sizeof yaml, "%s/shoal.yaml", dir);
    write_file(bad, "words:\n  fillers: [please]\nodd: 1\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        gateway_config *c = NULL;
        shoal_err err = {0};
        snprintf(text, sizeof text,
                 "models: [{name: m, path: bad.yaml}]\n\n"
                 "pipelines:\n  - name: p\n    stages:\n"
                 "      - {name: a, %s}\n",
                 rows[i].stage);
        write_file(yaml, text);
        assert_int_equal(config_load(&c, &HOME_STAGES, yaml, &err), SHOAL_EINVALID);
        const char *at = strstr(err.message, rows[i].says);
        if (!at || !strstr(at, "bad.yaml:"))
            fail_msg("wanted %s...bad.yaml:LINE, got %s", rows[i].says, err.message);
    }
    unlink(bad);
    unlink(yaml);
    rmdir(dir);
}

static void the_home_cluster_is_valid_and_its_paths_are_resolved(void **state)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_load(&c, &HOME_STAGES, SHOAL_SOURCE_DIR "/shoal.yaml", &err)) fail_msg("%s", err.message);
    assert_int_equal(c->n_models, 5);
    assert_string_equal(c->manifest, SHOAL_SOURCE_DIR "/models/models.json");
    const config_pipeline *p = pipeline_find(c->pipelines, c->n_pipelines, "home");
    assert_non_null(p);
    assert_ptr_equal(p, pipeline_find(c->pipelines, c->n_pipelines, NULL));
    assert_null(pipeline_find(c->pipelines, c->n_pipelines, "nowhere"));
    assert_true(pipeline_is_deterministic(p));
    config_free(c);
}

static void the_home_cluster_is_printed_and_read_again(void **state)
{
    gateway_config *a = NULL, *b = NULL;
    shoal_err err = {0};
    json_t *tree = NULL;
    buf text = {0};
    if (config_load(&a, &HOME_STAGES, SHOAL_SOURCE_DIR "/shoal.yaml", &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(config_to_json(&tree, a, true, NULL), 0);
    config_put_yaml(&text, tree);
    json_decref(tree);
    if (config_parse(&b, &HOME_STAGES, text.data, text.len, "t.yaml", &err)) fail_msg("%s", err.message);
    int n = 0;
    assert_int_equal(config_diff(a, b, count, &n, NULL), 0);
    assert_int_equal(n, 0);
    buf_done(&text);
    config_free(a);
    config_free(b);
}

static void the_examples_are_configurations(void **state)
{
    static const char *const files[] = {"/examples/voice.yaml", "/examples/alerts.yaml",
                                        "/examples/tools.yaml"};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        gateway_config *c = NULL;
        shoal_err err = {0};
        snprintf(path, sizeof path, "%s%s", SHOAL_SOURCE_DIR, files[i]);
        if (config_load(&c, &HOME_STAGES, path, &err)) fail_msg("%s", err.message);
        assert_true(pipeline_is_deterministic(&c->pipelines[0]));
        config_free(c);
    }
}

/* Every kind that a program has is one that docs/configuration.md names. */
static void every_kind_is_documented(void **state)
{
    static const char key[] = "| `pipelines[].stages[].kind` |";
    buf doc = {0};
    assert_int_equal(file_read(&doc, SHOAL_SOURCE_DIR "/docs/configuration.md", 1 << 20, NULL), 0);
    char *row = strstr(doc.data, key);
    assert_non_null(row);
    *strchr(row, '\n') = 0;
    for (size_t i = 0; i < HOME_STAGES.n_stages; i++)
        if (!strstr(row, HOME_STAGES.stages[i].kind->name))
            fail_msg("docs/configuration.md: %s does not say %s", key, HOME_STAGES.stages[i].kind->name);
    buf_done(&doc);
}

#define DONE_LABEL(l, s)                                            \
    {                                                               \
        .state = STAGE_DONE, .label = (l), .score = (s), .text = "" \
    }
#define BLANK                   \
    {                           \
        .label = "", .text = "" \
    }

/* Whoever asks another host acts. */
static void a_host_is_not_asked_before_a_guard_has_passed(void **state)
{
    static const struct {
        stage_fact guard;
        stage_verdict want;
        const char *why;
    } rows[] = {
        {{.state = STAGE_RUNNING, .label = "", .text = ""}, STAGE_WAIT, ""},
        {DONE_LABEL("pass", 0), STAGE_RUN, "always"},
        {DONE_LABEL("deny", 0), STAGE_SKIP, "held holds the request back"},
        {DONE_LABEL("ask", 0), STAGE_SKIP, "held holds the request back"},
        {{.state = STAGE_SKIPPED, .label = "", .text = ""}, STAGE_RUN, "always"},
    };
    const char *yaml =
        "models: [{name: m}]\nhosts: [{name: h, url: 'https://api.lan'}]\npipelines:\n  - name: p\n"
        "    stages:\n      - {name: found, kind: match, lexicon: l}\n"
        "      - {name: held, kind: guard, of: found, lexicon: l}\n"
        "      - {name: ask, kind: http, host: h}\n";
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_parse(&c, &HOME_STAGES, yaml, strlen(yaml), "t.yaml", &err)) fail_msg("%s", err.message);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stage_fact f[3] = {DONE_LABEL("one", 1), rows[i].guard, BLANK};
        pipeline_facts facts = {.input = "x", .context = "", .stages = f};
        buf b = {0};
        assert_int_equal(pipeline_judge(&c->pipelines[0], 2, &facts, &b), rows[i].want);
        assert_string_equal(b.data ? b.data : "", rows[i].why);
        buf_done(&b);
    }
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_stage_is_said_with_its_line),
        cmocka_unit_test(a_wrong_lexicon_is_said_with_both_lines),
        cmocka_unit_test(the_home_cluster_is_valid_and_its_paths_are_resolved),
        cmocka_unit_test(the_home_cluster_is_printed_and_read_again),
        cmocka_unit_test(the_examples_are_configurations),
        cmocka_unit_test(every_kind_is_documented),
        cmocka_unit_test(a_host_is_not_asked_before_a_guard_has_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
