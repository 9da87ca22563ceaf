/* A configuration as data again: what is printed reads as the same, and what differs is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config/config_diff.h"
#include "config/config_put.h"

#define KEY "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char ALL[] =
    "listen: ':0'\n"
    "limits: {max_requests: 7, max_body_bytes: 4096}\n"
    "cache: {mb: 3, ttl_s: 0}\n"
    "cpu: {nice: -5, sched: batch}\n"
    "hedge: \"off\"\n"
    "api_keys:\n"
    "  - {name: tv, sha256: 1" KEY ", expires: 2027-01-01, models: [home, 'tv-*'], admin: true,\n"
    "     limits: {requests_per_minute: 5, concurrent: 7}}\n"
    "hosts:\n"
    "  - {name: weather, url: 'https://weather.example', headers: [{name: x-key, value: hush}]}\n"
    "models:\n"
    "  - {name: a, path: a.gguf, cost: 0, energy_j: 0.5, kv_mb: 8, fallback: [b], replicas: {min: 0, max: "
    "3}}\n"
    "  - {name: b, path: b.gguf, shards: {pi: 8, nas: 16}, wire: int8}\n"
    "  - {name: c, path: c.gguf, shards: auto}\n"
    "ensembles:\n"
    "  - {name: pair, kind: vote, members: [{model: a}, {model: b}]}\n"
    "pipelines:\n"
    "  - name: p\n"
    "    stages:\n"
    "      - {name: s, kind: generate, model: a, system: \"be: #brief\\n  and \\\"kind\\\"\", max_tokens: "
    "0,\n"
    "         tools: [{name: f, parameters: {type: object, properties: {x: {type: number}}}}]}\n"
    "      - {name: t, kind: classify, model: b, when: [{stage: s, mean_prob_below: 0}], optional: true}\n"
    "routes:\n"
    "  - {name: r, rules: [{name: 'true', latency: [realtime], model: a}], fallback: [b]}\n";

static gateway_config *parse(const char *yaml)
{
    gateway_config *c = NULL;
    shoal_err err = {0};
    if (config_parse(&c, NULL, yaml, strlen(yaml), "t.yaml", &err) != 0)
        fail_msg("%s in\n%s", err.message, yaml);
    return c;
}

static char *print(const gateway_config *c, bool hides)
{
    json_t *tree = NULL;
    buf out = {0};
    assert_int_equal(config_to_json(&tree, c, hides, NULL), 0);
    config_put_yaml(&out, tree);
    json_decref(tree);
    assert_false(out.failed);
    return buf_take(&out);
}

static void count(void *user, const config_change *c)
{
    ++*(int *)user;
    print_message("%s: %s -> %s\n", c->path, c->from ? c->from : "-", c->to ? c->to : "-");
}

static void what_is_printed_reads_as_the_same(void **state)
{
    gateway_config *a = parse(ALL);
    char *text = print(a, false);
    gateway_config *b = parse(text);
    char *again = print(b, false);
    int n = 0;
    assert_string_equal(text, again);
    assert_int_equal(config_diff(a, b, count, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_non_null(strstr(text, "min: 0"));
    assert_non_null(strstr(text, "cost: 0"));
    assert_non_null(strstr(text, "name: \"true\""));
    assert_non_null(strstr(text, "hedge: \"off\""));
    assert_non_null(strstr(text, "models: [home, \"tv-*\"]"));
    free(text);
    free(again);
    config_free(a);
    config_free(b);
}

static void secrets_are_hidden(void **state)
{
    gateway_config *c = parse(ALL);
    char *text = print(c, true);
    assert_null(strstr(text, KEY));
    assert_null(strstr(text, "hush"));
    assert_non_null(strstr(text, "sha256: \"(hidden)\""));
    free(text);
    config_free(c);
}

typedef struct wanted {
    const char *path, *from, *to;
    config_when when;
    bool seen;
} wanted;

typedef struct want_list {
    wanted *at;
    size_t n, n_others;
} want_list;

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void meet(void *user, const config_change *c)
{
    want_list *l = user;
    for (size_t i = 0; i < l->n; i++) {
        wanted *w = &l->at[i];
        if (strcmp(w->path, c->path) != 0) continue;
        assert_false(w->seen);
        w->seen = true;
        if (!same(w->from, c->from) || !same(w->to, c->to) || w->when != c->when)
            fail_msg("%s: %s to %s, %d", c->path, c->from ? c->from : "-", c->to ? c->to : "-", c->when);
        return;
    }
    print_error("%s changed, too\n", c->path);
    l->n_others++;
}

static void meet_path(void *user, const config_change *c)
{
    wanted *w = user;
    print_message("%s: %d\n", c->path, c->when);
    if (strcmp(w->path, c->path) != 0) return;
    assert_int_equal(w->when, c->when);
    w->seen = true;
}

static void every_difference_is_named_once(void **state)
{
    static const char OTHER[] =
        "listen: ':1'\n"
        "limits: {max_requests: 8, max_body_bytes: 4096, max_connections: 9}\n"
        "cache: {mb: 3, ttl_s: 0, semantic: {model: a, of: [p]}}\n"
        "cpu: {reserve: 1, nice: 5}\n"
        "api_keys:\n"
        "  - {name: new, sha256: 2" KEY "}\n"
        "  - {name: tv, sha256: 3" KEY ", expires: 2027-01-01, models: [home], admin: true,\n"
        "     limits: {requests_per_minute: 5, concurrent: 7}}\n"
        "hosts:\n"
        "  - {name: weather, url: 'https://weather.example', headers: [{name: x-key, value: hush!}]}\n"
        "models:\n"
        "  - {name: c, path: c.gguf, shards: auto}\n"
        "  - {name: d, path: d.gguf}\n"
        "  - {name: a, path: a.gguf, energy_j: 0.5, kv_mb: 16, sampling: {temperature: 0.3}, replicas: {min: "
        "0, max: 4}}\n"
        "  - {name: b, path: b.gguf, shards: {pi: 8, nas: 16}, wire: int8}\n"
        "pipelines:\n"
        "  - name: p\n"
        "    stages:\n"
        "      - {name: s, kind: generate, model: a, system: \"be: #brief\\n  and \\\"kind\\\"\", "
        "max_tokens: 0,\n"
        "         tools: [{name: f, parameters: {type: object, properties: {x: {type: string}}}}]}\n"
        "      - {name: t, kind: classify, model: b, when: [{stage: s, mean_prob_below: 0}], optional: "
        "true}\n"
        "routes:\n"
        "  - {name: r, rules: [{name: 'true', latency: [realtime], model: b}], fallback: [b]}\n";
    wanted all[] = {
        {"listen", "\":0\"", "\":1\"", CONFIG_RESTART, false},
        {"limits.max_requests", "7", "8", CONFIG_NOW, false},
        {"limits.max_connections", NULL, "9", CONFIG_RESTART, false},
        {"models[a].replicas.max", "3", "4", CONFIG_NOW, false},
        {"cache.semantic", NULL, "...", CONFIG_RESTART, false},
        {"cpu.reserve", "0", "1", CONFIG_RESTART, false},
        {"cpu.nice", "-5", "5", CONFIG_RESTART, false},
        {"cpu.sched", "\"batch\"", "\"fair\"", CONFIG_RESTART, false},
        {"hedge", "\"off\"", "\"auto\"", CONFIG_RESTART, false},
        {"api_keys[tv].sha256", "\"(hidden)\"", "\"(hidden)\"", CONFIG_NOW, false},
        {"api_keys[tv].models", "[\"home\",\"tv-*\"]", "[\"home\"]", CONFIG_NOW, false},
        {"api_keys[new]", NULL, "...", CONFIG_NOW, false},
        {"hosts[weather].headers[x-key].value", "\"(hidden)\"", "\"(hidden)\"", CONFIG_NOW, false},
        {"models[a].cost", "0.0", NULL, CONFIG_NOW, false},
        {"models[a].kv_mb", "8", "16", CONFIG_MODELS, false},
        {"models[a].sampling", NULL, "{\"temperature\":0.3}", CONFIG_MODELS, false},
        {"models[a].fallback", "[\"b\"]", NULL, CONFIG_NOW, false},
        {"models[d]", NULL, "...", CONFIG_MODELS, false},
        {"ensembles[pair]", "...", NULL, CONFIG_NOW, false},
        {"pipelines[p].stages[s].tools[f].parameters.properties.x.type", "\"number\"", "\"string\"",
         CONFIG_NOW, false},
        {"routes[r].rules[true].model", "\"a\"", "\"b\"", CONFIG_NOW, false},
    };
    want_list l = {.at = all, .n = sizeof all / sizeof *all};
    gateway_config *a = parse(ALL), *b = parse(OTHER);
    assert_int_equal(config_diff(a, b, meet, &l, NULL), 0);
    for (size_t i = 0; i < l.n; i++)
        if (!all[i].seen) fail_msg("nothing was said of %s", all[i].path);
    assert_int_equal(l.n_others, 0);
    config_free(a);
    config_free(b);
}

/* The list of workers that others start follows; how they are reached does not. */
static void workers_of_others_follow(void **state)
{
    static const char FORM[] = "models: [{name: m, external: true}]\n%s";
    static const struct {
        const char *from, *to, *path;
        config_when when;
    } CASES[] = {
        {"discovery: {workers: [{model: m, address: 'unix:/a'}]}", "discovery: {workers: [{model: m}]}",
         "discovery.workers[0].address", CONFIG_NOW},
        {"discovery: {workers: [{model: m}]}",
         "discovery: {workers: [{model: m}, {model: m, address: 'unix:/a'}]}", "discovery.workers[1]",
         CONFIG_NOW},
        {"discovery: {workers: [{model: m}], dns: [{name: _a._tcp.b, model: n}]}",
         "discovery: {workers: [{model: m}], dns: [{name: _c._tcp.b, model: n}]}", "discovery.dns[_a._tcp.b]",
         CONFIG_RESTART},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char from[256], to[256];
        snprintf(from, sizeof from, FORM, CASES[i].from);
        snprintf(to, sizeof to, FORM, CASES[i].to);
        gateway_config *a = parse(from), *b = parse(to);
        wanted one = {CASES[i].path, NULL, NULL, CASES[i].when, false};
        assert_int_equal(config_diff(a, b, meet_path, &one, NULL), 0);
        assert_true(one.seen);
        config_free(a);
        config_free(b);
    }
    assert_int_equal(config_when_of("discovery"), CONFIG_RESTART);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_reads_as_the_same),
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(every_difference_is_named_once),
        cmocka_unit_test(workers_of_others_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
