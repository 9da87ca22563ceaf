/* routes: and domains: of shoal.yaml: what is wrong in them is said with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "config/config.h"
#include "config/config_fit.h"

#define MODELS "models: [{name: a, adapters: [{name: x, path: y}]}, {name: b}]\n"
#define SET    "domains:\n  - {name: t, model: a, of: [{name: on, labels: ['iot_*']}]}\n"

typedef struct wrong {
    const char *yaml, *says; /* NULL: it is right */
} wrong;

static const wrong cases[] = {
    {MODELS "routes: [{name: r, rules: [{model: a}]}]\n", NULL},
    {MODELS "routes: [{name: r, rules: [{model: 'a:x'}], fallback: [b]}]\n", NULL},
    {MODELS SET "routes: [{name: r, domains: t, rules: [{domain: [on], model: a}]}]\n", NULL},
    {MODELS "routes: [{name: r, rules: [{model: q}, {model: a}]}, {name: q, fallback: [a]}]\n", NULL},
    {MODELS "routes: [{name: r}]\n", "routes[0].rules: 'r' needs rules or a fallback"},
    {MODELS "routes: [{name: 'r r', fallback: [a]}]\n", "routes[0].name: 'r r' may hold letters"},
    {MODELS "routes: [{name: a, fallback: [b]}]\n", "routes[0].name: 'a' is already the name of a model"},
    {MODELS "routes: [{name: r, fallback: [b]}, {name: r, fallback: [b]}]\n",
     "routes[1].name: 'r' is already the name of routes[0]"},
    {MODELS "routes: [{name: r, rules: [{model: c}]}]\n",
     "routes[0].rules[0].model: 'c' is neither a model of this file nor a route"},
    {MODELS "routes: [{name: r, rules: [{model: 'a:z'}]}]\n", "routes[0].rules[0].model: 'a:z' is neither"},
    {MODELS "routes: [{name: r, fallback: [a, c]}]\n", "routes[0].fallback[1]: 'c' is neither"},
    {MODELS "routes: [{name: r, rules: [{language: [en]}]}]\n",
     "routes[0].rules[0].model: a rule needs a 'model'"},
    {MODELS "routes: [{name: r, rules: [{model: a, split: [{model: a, share: 1}]}]}]\n",
     "routes[0].rules[0].model: a rule needs either 'model', 'split' or 'any', and one of them"},
    {MODELS "routes: [{name: r, order: least_energy, rules: [{max_cost: 2, any: [a, 'b']}]}]\n", NULL},
    {MODELS "routes: [{name: r, rules: [{model: a, any: [b]}]}]\n",
     "routes[0].rules[0].model: a rule needs either"},
    {MODELS "routes: [{name: r, rules: [{any: [a, q]}]}, {name: q, fallback: [a]}]\n",
     "routes[0].rules[0].any[1]: 'q' is no model of this file"},
    {MODELS "routes: [{name: r, rules: [{split: [{model: a, share: 0}]}]}]\n",
     "routes[0].rules[0].split: nobody has a share"},
    {MODELS "routes: [{name: r, rules: [{split: [{model: c, share: 1}]}]}]\n",
     "routes[0].rules[0].split[0].model: 'c' is neither"},
    {MODELS "routes: [{name: r, fallback: [r]}]\n", "routes[0].rules: the route 'r' leads to itself"},
    {MODELS
     "routes: [{name: r, fallback: [q]}, {name: q, rules: [{split: [{model: a, share: 1}, {model: r, share: "
     "1}]}]}]\n",
     "leads to itself"},
    {MODELS "routes: [{name: r, rules: [{model: a, matches: 'a('}]}]\n",
     "routes[0].rules[0].matches: at byte 2 of 'a(': "},
    {MODELS "routes: [{name: r, rules: [{model: a, language: [klingon]}]}]\n",
     "routes[0].rules[0].language[0]: 'klingon' is none of en, de"},
    {MODELS "routes: [{name: r, rules: [{model: a, wants: [cake]}]}]\n",
     "routes[0].rules[0].wants[0]: 'cake' is none of stream, json, json_schema, tools, logprobs"},
    {MODELS "routes: [{name: r, rules: [{model: a, endpoint: [chat]}]}]\n",
     "routes[0].rules[0].endpoint[0]: 'chat' is none of chat_completions"},
    {MODELS "routes: [{name: r, rules: [{model: a, latency: [soon]}]}]\n",
     "routes[0].rules[0].latency[0]: 'soon' is none of interactive, realtime, batch"},
    {MODELS "routes: [{name: r, rules: [{model: a, header: [{name: X-A}]}]}]\n",
     "routes[0].rules[0].header[0].name: 'X-A' must be a header's name in lower case"},
    {MODELS "routes: [{name: r, rules: [{model: a, min_bytes: 5, max_bytes: 4}]}]\n",
     "routes[0].rules[0].min_bytes: is more than max_bytes"},
    {MODELS "routes: [{name: r, rules: [{model: a, domain: [on]}]}]\n",
     "routes[0].rules[0].domain: the route needs 'domains'"},
    {MODELS "routes: [{name: r, rules: [{model: a, min_score: 0.5}]}]\n",
     "routes[0].rules[0].min_score: is about a 'domain'"},
    {MODELS SET "routes: [{name: r, domains: u, fallback: [a]}]\n",
     "routes[0].domains: there are no domains 'u'"},
    {MODELS SET "routes: [{name: r, domains: t, rules: [{domain: [off], model: a}]}]\n",
     "routes[0].rules[0].domain[0]: 'off' is not in the domains 't'"},
    {MODELS "domains: [{name: t, model: c}]\n", "domains[0].model: 'c' is not among the models"},
    {MODELS "domains: [{name: t, model: a}, {name: t, model: b}]\n",
     "domains[1].name: 't' is already the name"},
    {MODELS "domains: [{name: t, model: a, of: [{name: x}, {name: x}]}]\n",
     "domains[0].of[1].name: 'x' is already that of of[0]"},
    {MODELS "domains: [{name: t, model: a, centroids: f, of: [{name: x, labels: [y]}]}]\n",
     "domains[0].of[0].labels: are a classifier's"},
    {MODELS "routes: [{name: r, fallback: [a], shadow: c}]\n", "routes[0].shadow: 'c' is neither"},
};

static void routes_are_refused_with_a_sentence(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gateway_config *c = NULL;
        shoal_err err = {0};
        int rc = config_parse(&c, NULL, cases[i].yaml, strlen(cases[i].yaml), "t.yaml", &err);
        if ((rc == 0) != !cases[i].says || (cases[i].says && !strstr(err.message, cases[i].says)))
            fail_msg("%s\n%d: %s", cases[i].yaml, rc, err.message);
        if (rc != 0 && strncmp(err.message, "t.yaml:", 7) != 0) fail_msg("no line: %s", err.message);
        config_free(rc == 0 ? c : NULL);
    }
}

/* Domains against what their model is. */
static void domains_want_a_model_that_knows(void **state)
{
    static const char *const labels[] = {"iot_on", "joke"};
    static const model_facts classifier = {.task = "classify", .labels = labels, .n_labels = 2};
    static const model_facts embedder = {.task = "embed"}, chatty = {.task = "generate"};
    static const struct row {
        const char *yaml;
        const model_facts *facts;
        const char *says;
    } rows[] = {
        {SET, &classifier, NULL},
        {SET, &chatty,
         "domains[0].model: 'a' is a model to generate, and domains without 'centroids' need one to "
         "classify"},
        {"domains: [{name: t, model: a, centroids: f}]\n", &embedder, NULL},
        {"domains: [{name: t, model: a, centroids: f}]\n", &classifier,
         "domains[0].model: 'a' is a model to classify, and domains with 'centroids' need one to embed"},
        {"domains: [{name: t, model: a, of: [{name: on, labels: [iot_off]}]}]\n", &classifier,
         "domains[0].of[0].labels[0]: no label of 'a' is 'iot_off'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char yaml[512];
        gateway_config *c = NULL;
        shoal_err err = {0};
        snprintf(yaml, sizeof yaml, "%s%s", MODELS, rows[i].yaml);
        assert_int_equal(config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", &err), 0);
        int rc = config_fit(c, "a", rows[i].facts, &err);
        if ((rc == 0) != !rows[i].says || (rows[i].says && !strstr(err.message, rows[i].says)))
            fail_msg("%s\n%d: %s", yaml, rc, err.message);
        assert_true(config_uses_model(c, "a"));
        config_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_are_refused_with_a_sentence),
        cmocka_unit_test(domains_want_a_model_that_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
