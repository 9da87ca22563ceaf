/* What scenarios are refused, and what one becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>

#include "lab/schedule.h"

#define HEAD "name: x\nabout: y\nseconds: 10\n"
#define NODE "nodes: [{name: a, start: [{role: serve, run: shoal serve}]}, {name: b}]\n"
#define LOAD \
    "load: {gateways: [u], requests: [{name: r, path: /p, body: '{\"stream\": true, \"seed\": {n}}'}]}\n"

typedef struct bad_case {
    const char *yaml, *says; /* must be in the sentence, which starts with "t.yaml:LINE" */
    int line;
} bad_case;

static const bad_case bad_cases[] = {
    {"", "empty", 1},
    {HEAD NODE, "'load' is required", 1},
    {HEAD NODE LOAD "colour: red\n", "there is no key 'colour'", 6},
    {HEAD NODE LOAD "seed: -1\n", "seed: must be a whole number", 6},
    {"name: x\nabout: y\nseconds: 0\n" NODE LOAD, "seconds: must be", 3},
    {HEAD "nodes: [{name: client}]\n" LOAD, "nodes[0].name", 4},
    {HEAD "nodes: [{name: a}, {name: a}]\n" LOAD, "nodes[1].name: \"a\" is taken", 4},
    {HEAD "nodes: [{name: a/b}]\n" LOAD, "nodes[0].name", 4},
    {HEAD "nodes: [{name: a, files: [{name: ../x, text: y}]}]\n" LOAD, "is a plain name", 4},
    {HEAD "nodes: [{name: a, start: [{role: r, run: x}, {role: r, run: x}]}]\n" LOAD,
     "nodes[0].start[1].role", 4},
    {HEAD NODE "load: {gateways: [u], requests: [{name: r, path: p, body: '{}'}]}\n", "a path begins with /",
     5},
    {HEAD NODE "load: {gateways: [u], requests: [{name: r, path: /p, body: '[]'}]}\n", "a body is an object",
     5},
    {HEAD NODE "load: {gateways: [u], requests: [{name: r, path: /p, body: '{x}'}]}\n",
     "load.requests[0].body", 5},
    {HEAD NODE LOAD "links: [{between: [a, c]}]\n", "links[0].between: there is no node \"c\"", 6},
    {HEAD NODE LOAD "links: [{between: [a, b], loss: 1.5}]\n", "loss: must be", 6},
    {HEAD NODE LOAD "faults: [{do: explode}]\n", "faults[0].do", 6},
    {HEAD NODE LOAD "faults: [{do: kill}]\n", "'of' goes with kill", 6},
    {HEAD NODE LOAD "faults: [{do: kill, of: nobody}]\n", "nothing of that role", 6},
    {HEAD NODE LOAD "faults: [{do: kill, of: serve, node: b}]\n", "nothing of that role", 6},
    {HEAD NODE LOAD "faults: [{do: kill, of: serve, model: m}]\n", "'model' goes with", 6},
    {HEAD NODE LOAD "faults: [{do: kill, of: worker, node: client}]\n", "there is no such node", 6},
    {HEAD NODE LOAD "faults: [{do: term, of: node}]\n", "term is for processes", 6},
    {HEAD NODE LOAD "faults: [{do: kill, of: serve, model: m, silent: true}]\n", "'model' goes with", 6},
    {HEAD NODE LOAD "faults: [{do: term, of: serve, silent: true}]\n", "'silent' goes with kill and freeze",
     6},
    {HEAD NODE LOAD "faults: [{do: cut, between: [a, b], for_s: 1, silent: true}]\n", "are always silent", 6},
    {HEAD NODE LOAD "faults: [{do: freeze, of: worker}]\n", "'for_s' is required", 6},
    {HEAD NODE LOAD "faults: [{do: cut, for_s: 1}]\n", "'between' goes with cut", 6},
    {HEAD NODE LOAD "faults: [{do: cut, between: [a, x], for_s: 1}]\n", "there is no node \"x\"", 6},
    {HEAD NODE LOAD "faults: [{do: fill, for_s: 2, every_s: 2}]\n", "before it is over", 6},
    {HEAD NODE LOAD "faults: [{do: run, run: ls}]\n", "both need a 'node'", 6},
    {HEAD NODE LOAD "faults: [{do: clock, node: a}]\n", "a wall clock cannot be stepped for one node", 6},
};

static void scenario_says_what_is_wrong(void **state)
{
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const bad_case *c = &bad_cases[i];
        lab_scenario *s = NULL;
        shoal_err err = {0};
        char line[32];
        int rc = scenario_parse(&s, c->yaml, strlen(c->yaml), "t.yaml", &err);
        snprintf(line, sizeof line, "t.yaml:%d", c->line);
        if (rc == 0 || s || !strstr(err.message, c->says) || strncmp(err.message, line, strlen(line)) != 0)
            fail_msg("case %zu: \"%s\", not %s and \"%s\"", i, err.message, line, c->says);
    }
}

static lab_scenario *parse(const char *yaml)
{
    lab_scenario *s = NULL;
    shoal_err err = {0};
    if (scenario_parse(&s, yaml, strlen(yaml), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    return s;
}

static void scenario_has_defaults_and_sees_streams(void **state)
{
    lab_scenario *s = parse(HEAD NODE LOAD);
    assert_int_equal(s->n_nodes, 2);
    assert_int_equal(s->nodes[0].disk_mb, 16);
    assert_int_equal(s->clients, 4);
    assert_int_equal(s->attempts, 1);
    assert_int_equal(s->patience_ms, 10000);
    assert_true(s->requests[0].stream);
    assert_int_equal(scenario_node(s, "b"), 1);
    assert_int_equal(scenario_node(s, "client"), 2);
    assert_int_equal(scenario_node(s, "c"), -1);
    scenario_free(s);
}

static void schedule_unrolls_faults_in_order(void **state)
{
    lab_scenario *s = parse(HEAD NODE LOAD "faults:\n"
                                           "  - {do: freeze, of: serve, at_s: 1, every_s: 4, for_s: 2}\n"
                                           "  - {do: kill, of: serve, every_s: 3, until_s: 7}\n"
                                           "  - {do: reboot, at_s: 20, for_s: 1}\n");
    lab_event *e;
    size_t n;
    shoal_err err;
    assert_int_equal(schedule_make(&e, &n, s, &err), 0);
    /* freeze at 1-3, 5-7, 9-11; kill at 3, 6; the reboot would come after the end */
    static const lab_event want[] = {{1, 0, 0, true}, {3, 0, 0, false}, {3, 1, 1, true}, {5, 0, 2, true},
                                     {6, 1, 3, true}, {7, 0, 2, false}, {9, 0, 4, true}, {11, 0, 4, false}};
    assert_int_equal(n, sizeof want / sizeof *want);
    for (size_t i = 0; i < n; i++) {
        assert_true(e[i].at_s == want[i].at_s && e[i].fault == want[i].fault &&
                    e[i].injection == want[i].injection);
        assert_int_equal(e[i].begins, want[i].begins);
    }
    for (size_t i = 0; i < 100; i++) assert_true(schedule_draw(s, i, 0, 3) < 3);
    assert_int_equal(schedule_draw(s, 5, 0, 1000), schedule_draw(s, 5, 0, 1000));
    assert_int_not_equal(schedule_draw(s, 5, 0, 1000), schedule_draw(s, 6, 0, 1000));
    free(e);
    scenario_free(s);
}

static const char *lookup(void *user, const char *name, size_t n)
{
    return n == 2 && memcmp(name, "ip", 2) == 0 ? "10.77.0.1" : NULL;
}

static void fields_are_filled_in_and_other_braces_stay(void **state)
{
    static const char *const cases[][2] = {{"http://{ip}:80", "http://10.77.0.1:80"},
                                           {"{input} {{ip}} {", "{input} {10.77.0.1} {"},
                                           {"{id: {ip}}", "{id: 10.77.0.1}"},
                                           {"", ""},
                                           {"{ip", "{ip"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf b = {0};
        assert_int_equal(scenario_expand(&b, cases[i][0], lookup, NULL), 0);
        assert_string_equal(b.data, cases[i][1]);
        buf_done(&b);
    }
}

static void bundled_scenarios_are_right(void **state)
{
    DIR *d = opendir(SHOAL_SOURCE_DIR "/examples/lab");
    size_t n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[600], name[300];
        lab_scenario *s = NULL;
        shoal_err err;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, SHOAL_SOURCE_DIR "/examples/lab/%s", e->d_name);
        if (scenario_load(&s, path, &err) != 0) fail_msg("%s", err.message);
        snprintf(name, sizeof name, "%s.yaml", s->name);
        assert_string_equal(name, e->d_name);
        scenario_free(s);
        n++;
    }
    closedir(d);
    assert_true(n >= 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_says_what_is_wrong),
        cmocka_unit_test(scenario_has_defaults_and_sees_streams),
        cmocka_unit_test(schedule_unrolls_faults_in_order),
        cmocka_unit_test(fields_are_filled_in_and_other_braces_stay),
        cmocka_unit_test(bundled_scenarios_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
