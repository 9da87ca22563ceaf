/* Addresses of workers behind relays, and what attached machines' replicas become in the registry. */
#include "control_world.h"

#include "cluster/registry.h"
#include "wire/env_uv.h"

static void an_address_names_relay_machine_and_worker(void **state)
{
    static const char *const bad[] = {"",
                                      "relay:",
                                      "relay:10.0.0.2:7081",
                                      "relay:10.0.0.2:7081/pi",
                                      "relay:10.0.0.2:7081/pi/",
                                      "relay:/pi/m/0",
                                      "relay:10.0.0.2:7081//m/0",
                                      "relay:10.0.0.2:7081/P I/m/0",
                                      "unix:/run/m.sock",
                                      "10.0.0.2:7081/pi/m/0"};
    char at[CONNECTOR_ADDRESS_SIZE], node[CONNECTOR_NODE_SIZE],
        longest[CONNECTOR_WORKER_MAX + 64] = "relay:a:1/pi/";
    const char *worker;
    assert_true(connector_parse("relay:[fe80::1]:7081/kitchen-pi/home-chat/1", at, node, &worker));
    assert_string_equal(at, "[fe80::1]:7081");
    assert_string_equal(node, "kitchen-pi");
    assert_string_equal(worker, "home-chat/1");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(connector_parse(bad[i], at, node, &worker));
    size_t n = strlen(longest);
    memset(longest + n, 'w', CONNECTOR_WORKER_MAX);
    assert_true(connector_parse(longest, at, node, &worker));
    longest[n + CONNECTOR_WORKER_MAX] = 'w';
    assert_false(connector_parse(longest, at, node, &worker));
}

/* ---- a listener that tells a registry ------------------------------------------------------------------ */

static registry *members;
static connector_remote far;
static control *second;

typedef struct saying { /* what a machine reports */
    machine_up up;
    Shoal__V1__ReplicaReport reports[3], *list[3];
    Shoal__V1__Replicas all;
    size_t n;
} saying;

static saying one;

static void report(void *user, Shoal__V1__AgentMessage *m)
{
    static char *const ids[] = {"m/0", "m/1", "other/0"}, *const models[] = {"m", "m", "other"};
    saying *s = user;
    shoal__v1__replicas__init(&s->all);
    for (size_t i = 0; i < s->n; i++) {
        shoal__v1__replica_report__init(&s->reports[i]);
        s->reports[i].id = ids[i];
        s->reports[i].model = models[i];
        s->reports[i].generation = 5;
        s->reports[i].state = i == 2 ? "failed" : i == 1 ? "ready" : "starting";
        s->list[i] = &s->reports[i];
    }
    s->all.replicas = s->list;
    s->all.n_replicas = s->n;
    m->replicas = &s->all;
}

static void replicas_come_change_and_go_with_their_machine(void **state)
{
    char path[128], pi[128], text[TOKEN_TEXT_SIZE];
    shoal_err err;
    bool closed = false;
    far.loop = &w.loop;
    connector how = connector_relays(&far);
    env time = env_uv(&w.loop);
    assert_int_equal(registry_new_with(&members, &time, &how, NULL), 0);
    world_token(ROLE_GATEWAY, text);
    assert_int_equal(world_join("second", text, NULL, &err), 0);
    snprintf(path, sizeof path, "%s/second", place);
    control_options o = {
        .time = env_sim_env(w.sim), .listen = "127.0.0.1:0", .state = path, .members = members, .far = &far};
    assert_int_equal(control_open(&second, &w.loop, &o, &err), 0);
    assert_true(registry_all_ready(members)); /* nobody is waited for */

    one = (saying){.up.dir = FOLDER_NONE, .n = 2};
    world_token(ROLE_NODE, text);
    assert_int_equal(world_join("pi", text, &one.up.dir, &err), 0);
    snprintf(pi, sizeof pi, "%s/pi", place);
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    f.address = ":9"; /* the discard port: nobody is there */
    f.n_cores = 3;
    snprintf(w.address, sizeof w.address, "127.0.0.1:%d", control_port(second));
    attach_options a = {.time = env_sim_env(w.sim),
                        .address = w.address,
                        .dir = &one.up.dir,
                        .facts = &f,
                        .report = report,
                        .user = &one};
    assert_int_equal(attach_open(&one.up.a, &w.loop, &a, &err), 0);
    TURN_UNTIL(registry_get(members, "pi/m/0") && registry_get(members, "pi/m/1"));
    const replica *r = registry_get(members, "pi/m/0");
    assert_string_equal(r->address, "relay:127.0.0.1:9/pi/m/0");
    assert_string_equal(r->node->name, "pi");
    assert_int_equal(r->node->n_cores, 3);
    assert_int_equal(r->generation, 5);
    assert_int_equal(registry_find(members, "m")->n, 2);
    one.n = 3;
    TURN_UNTIL(registry_get(members, "pi/other/0"));
    assert_int_equal(registry_get(members, "pi/other/0")->state, REPLICA_FAILED);
    one.n = 1;
    TURN_UNTIL(!registry_get(members, "pi/m/1") && !registry_get(members, "pi/other/0"));
    assert_non_null(registry_get(members, "pi/m/0"));
    up_stop(&one.up);
    TURN_UNTIL(!registry_get(members, "pi/m/0") && !registry_node(members, "pi"));
    /* One that was served is waited for; one that never was is not known. */
    assert_non_null(registry_find(members, "m"));
    assert_int_equal(registry_find(members, "m")->n, 0);
    assert_null(registry_find(members, "other"));
    /* It comes back and has it no more: then there is no such model. */
    one.n = 0;
    assert_int_equal(folder_open(&one.up.dir, pi, false, NULL), 0);
    assert_int_equal(attach_open(&one.up.a, &w.loop, &a, &err), 0);
    TURN_UNTIL(!registry_find(members, "m"));
    one.up.closed = false;
    up_stop(&one.up);

    control_close(second, world_closed, &closed);
    registry_free(members); /* the listener has left it already */
    TURN_UNTIL(closed);
    assert_null(far.tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_names_relay_machine_and_worker),
        cmocka_unit_test_setup_teardown(replicas_come_change_and_go_with_their_machine, world_open,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
