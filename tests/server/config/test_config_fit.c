/* Stages against what their models are: the wrong task and labels that no model has are refused with a line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "config/config_fit.h"

/* Line 5 is the first stage. */
#define PIPE   "models: [{name: m}, {name: g}]\npipelines:\n  - name: p\n    stages:\n"
#define INTENT "      - {name: intent, kind: classify, model: m}\n"

static const char *const labels[] = {"iot_on", "iot_off", "weather_query"};
static const model_facts classifier = {.task = "classify", .labels = labels, .n_labels = 3};
static const model_facts judge = {.task = "classify", .labels = labels, .n_labels = 1};
static const model_facts tagger = {.task = "tag"};
static const model_facts embedder = {.task = "embed"};
static const model_facts chatty = {.task = "generate", .has_chat_template = true};
static const model_facts mute = {.task = "generate"};

typedef struct fit_case {
    const char *yaml, *model;
    const model_facts *facts;
    const char *says; /* NULL: it fits */
} fit_case;

/* Line 2 is the ensemble, line 5 its judge. */
#define JUDGED                                                                                             \
    "models: [{name: m}, {name: g}]\nensembles:\n  - {name: e, kind: verify, members: [{model: g}],\n    " \
    "check: [\n"                                                                                           \
    "      {kind: nli, model: m"
static const char *const inferences[] = {"entailment", "neutral", "contradiction"};
static const model_facts infers = {.task = "classify", .labels = inferences, .n_labels = 3};

static const fit_case cases[] = {
    {JUDGED "}]}\n", "m", &infers, NULL},
    {JUDGED "}]}\n", "g", &chatty, NULL},
    {JUDGED ", entails: neutral}]}\n", "m", &infers, NULL},
    {JUDGED ", entails: neutrall}]}\n", "m", &infers,
     "t.yaml:5: ensembles[0].check[0].entails: no label of 'm' is 'neutrall'; did you mean 'neutral'?"},
    {JUDGED "}]}\n", "m", &classifier,
     "t.yaml:5: ensembles[0].check[0].model: no label of 'm' is 'entailment'"},
    {JUDGED "}]}\n", "m", &chatty,
     "t.yaml:5: ensembles[0].check[0].model: 'm' is a model to generate, and nli needs one to classify"},
    {PIPE INTENT, "m", &classifier, NULL},
    {PIPE INTENT, "g", &embedder, NULL}, /* no stage names it */
    {PIPE INTENT, "m", &embedder,
     "t.yaml:5: pipelines[0].stages[0].model: 'm' is a model to embed, a classify stage needs one to "
     "classify"},
    {PIPE INTENT, "m", &tagger, "t.yaml:5: pipelines[0].stages[0].model: 'm' is a model to tag"},
    {PIPE "      - {name: k, kind: rerank, model: m, documents: [x]}\n", "m", &judge, NULL},
    {PIPE "      - {name: k, kind: rerank, model: m, documents: [x]}\n", "m", &classifier,
     "t.yaml:5: pipelines[0].stages[0].model: 'm' is a model to classify, a rerank stage needs one to "
     "rerank"},
    {PIPE "      - {name: k, kind: embed, model: m, candidates: [x]}\n"
          "      - {name: t, kind: tag, model: g, when: [{stage: k, label: [x]}]}\n",
     "m", &embedder, NULL},
    {PIPE "      - {name: k, kind: seq2seq, model: m}\n", "m", &chatty,
     "t.yaml:5: pipelines[0].stages[0].model: 'm' is a model to generate, a seq2seq stage needs one to "
     "seq2seq"},
    {PIPE "      - {name: t, kind: tag, model: m}\n", "m", &tagger, NULL},
    {PIPE "      - {name: t, kind: tag, model: m}\n", "m", &classifier,
     "t.yaml:5: pipelines[0].stages[0].model: "},
    {PIPE "      - {name: r, kind: generate, model: g}\n", "g", &chatty, NULL},
    {PIPE "      - name: r\n        kind: generate\n        model: g\n", "g", &mute,
     "t.yaml:7: pipelines[0].stages[0].model: 'g' has no chat template"},
    {PIPE INTENT
     "      - {name: r, kind: generate, model: g, when: [{stage: intent, label: [iot_on, 'iot_*', '*']}]}\n",
     "m", &classifier, NULL},
    {PIPE INTENT
     "      - name: r\n        kind: generate\n        model: g\n        when:\n          - stage: intent\n"
     "            label:\n              - iot_on\n              - iot_offf\n",
     "m", &classifier,
     "t.yaml:13: pipelines[0].stages[1].when[0].label[1]: no label of 'm' is 'iot_offf'; did you mean "
     "'iot_off'?"},
    {PIPE INTENT "      - {name: r, kind: generate, model: g,\n         unless: [{text_prefix: x}, {stage: "
                 "intent, label: "
                 "['music_*']}]}\n",
     "m", &classifier,
     "t.yaml:7: pipelines[0].stages[1].unless[1].label[0]: no label of 'm' matches 'music_*'"},
    {PIPE INTENT "      - {name: r, kind: generate, model: g, when: [{stage: intent, label: [nothing]}]}\n",
     "g", &chatty, NULL}, /* the label is m's affair */
};

static void stages_and_labels_are_held_against_the_model(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fit_case *t = &cases[i];
        gateway_config *c = NULL;
        shoal_err err = {0};
        if (config_parse(&c, NULL, t->yaml, strlen(t->yaml), "t.yaml", &err)) fail_msg("%s", err.message);
        int rc = config_fit(c, t->model, t->facts, &err);
        if (rc != (t->says ? SHOAL_EINVALID : 0) ||
            (t->says && strncmp(err.message, t->says, strlen(t->says)) != 0))
            fail_msg("case %zu: rc %d, wanted '%s', got: %s", i, rc, t->says ? t->says : "", err.message);
        config_free(c);
    }
}

static void models_of_pipelines_are_known(void **state)
{
    gateway_config *c = NULL;
    assert_int_equal(config_parse(&c, NULL, PIPE INTENT, strlen(PIPE INTENT), "t.yaml", NULL), 0);
    assert_true(config_uses_model(c, "m"));
    assert_false(config_uses_model(c, "g"));
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_and_labels_are_held_against_the_model),
        cmocka_unit_test(models_of_pipelines_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
