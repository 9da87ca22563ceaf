/* What `shoal plan` says of a cluster and what its gateway does, assignment by assignment: twenty random
 * clusters whose machines join, leave, come back, drain and resume. The gateway is a real one; its machines
 * are told by a source, as those of other gateways are, and its clock is the test's, so that nothing
 * waits. */
#include "../../cluster/control/control_world.h"

#include "base/sys.h"
#include "cluster/source.h"
#include "compute/measure.h"
#include "control/placement/placer.h"
#include "serve/measure_idle.h"
#include "serve/plan_live.h"

enum { CLUSTERS = 20, NODES_MAX = 6, MODELS_MAX = 5, SEATS_MAX = 64, SEAT_BYTES = 96 };
#define GB (1ull << 30)

typedef struct house {
    registry *g;
    source *others;
    uint64_t random, now_ns, boss_bytes;
    control_model models[MODELS_MAX];
    placement_model wants[MODELS_MAX];
    char names[MODELS_MAX][16], node_names[NODES_MAX][16];
    node nodes[NODES_MAX];
    bool there[NODES_MAX];
    size_t n_models, n_nodes;
    char path[200], digest[65];
} house;

static house h;

static unsigned draw(unsigned n)
{
    h.random = h.random * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(h.random >> 33) % n;
}

/* ---- the gateway ------------------------------------------------------------------------------------- */

static bool always(void *user)
{
    return true;
}

static const char *nobody(void *user)
{
    return NULL;
}

static void unposted(void *user, const char *node_name, const uint8_t *plan, size_t n) {}

static void unserved(void *user, const worker_spec *workers, size_t n) {}

static int machine(node **ret, shoal_err *err)
{
    const node n = {.name = "boss", .n_cores = 2, .memory_bytes = h.boss_bytes};
    return node_copy(ret, &n, err);
}

static const control_shared_plan SHARED_PLAN = {.leads = always, .leader = nobody, .post = unposted};

static void tick(unsigned n)
{
    while (n-- > 0) placer_tick(w.control, h.now_ns += 1000000000u);
}

static void gateway_open(void)
{
    shoal_err err;
    const control_options o = {.listen = "127.0.0.1:0", .name = "boss", .state = w.state, .members = h.g};
    const control_place_options p = {.models = h.models,
                                     .n_models = h.n_models,
                                     .here = unserved,
                                     .machine = machine,
                                     .shared_plan = &SHARED_PLAN};
    world_reopen(&o);
    if (control_place(w.control, &p, &err) != 0) fail_msg("%s", err.message);
    control_plans_synced(w.control);
    h.now_ns = clock_ns();
    tick(3); /* it is elected, reads what others planned, and plans */
}

static void gateway_close(void)
{
    w.closed = false;
    control_close(w.control, world_closed, &w.closed);
    TURN_UNTIL(w.closed);
}

/* ---- clusters ---------------------------------------------------------------------------------------- */

static const char *const LABELS[] = {"kitchen", "big"};

static void draw_model(size_t i)
{
    placement_model *m = &h.models[i].want;
    snprintf(h.names[i], sizeof h.names[i], "m%zu", i);
    *m = (placement_model){.name = h.names[i],
                           .n_replicas = 1 + draw(3),
                           .n_standby = draw(3) == 0,
                           .memory_bytes = (1 + draw(6)) * GB / 2,
                           .n_labels = draw(4) == 0,
                           .labels = &LABELS[draw(2)],
                           .spread = (placement_spread)draw(3),
                           .battery = (placement_battery)draw(3),
                           .max_rtt_ms = draw(4) == 0 ? 5 : 0};
    if (draw(5) == 0) {
        m->n_replicas = 1;
        m->n_standby = 0;
        m->shards.n = 2;
        m->shape =
            (split_shape){.n_layer = 8, .n_embd = 64, .layer_bytes = GB / 16, .layer_multiplies = 1000};
    }
    m->device = m->shards.n == 0 && draw(4) == 0 ? "cuda" : NULL;
    h.models[i].spec = (worker_spec){.model = h.names[i], .path = h.path, .sha256 = h.digest};
    h.wants[i] = *m;
}

static const node_device DEVICES[] = {{"cuda:0", "cuda", 2 * GB}, {"cuda:1", "cuda", GB}};

static void draw_node(size_t i)
{
    snprintf(h.node_names[i], sizeof h.node_names[i], "n%zu", i);
    h.nodes[i] = (node){.name = h.node_names[i],
                        .site = draw(2) ? "home" : "garden",
                        .address = "127.0.0.1:9",
                        .group = control_group(w.control),
                        .n_cores = 1 + draw(8),
                        .memory_bytes = (1 + draw(12)) * GB / 2,
                        .bytes_per_s = 1e9 + 1e8 * draw(200) + 1.0 / 3,
                        .multiplies_per_s = 1e11,
                        .load_1m = draw(40) / 10.0,
                        .rtt_ms = draw(100) / 10.0,
                        .on_battery = draw(5) == 0,
                        .battery_percent = draw(100),
                        .labels = LABELS,
                        .n_labels = draw(3),
                        .devices = DEVICES,
                        .n_devices = draw(3)};
}

static void come(size_t i)
{
    h.there[i] = true;
    assert_int_equal(source_put_node(h.others, &h.nodes[i], NULL), 0);
}

static void cluster_open(uint64_t seed)
{
    h.random = seed;
    h.boss_bytes = (1 + draw(3)) * 4 * GB;
    h.n_models = 1 + draw(MODELS_MAX);
    for (size_t i = 0; i < h.n_models; i++) draw_model(i);
    assert_int_equal(registry_new(&h.g, &w.loop, NULL), 0);
    assert_int_equal(source_open(&h.others, h.g, "etcd", NULL), 0);
    gateway_open();
    w.control->placer->leads_ns = 0; /* nobody is waited for any more: layers are dealt out */
    tick(1);
    h.n_nodes = 2 + draw(NODES_MAX - 1);
    for (size_t i = 0; i < h.n_nodes; i++) draw_node(i);
}

static void cluster_close(void)
{
    gateway_close();
    source_close(h.others);
    registry_free(h.g);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    memset(h.there, 0, sizeof h.there);
}

/* ---- assignments --------------------------------------------------------------------------------------- */

typedef struct assignments {
    char all[SEATS_MAX][SEAT_BYTES];
    size_t n;
} assignments;

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void add_assignment(assignments *s, const char *model, const char *at, bool standby, size_t first,
                           size_t end)
{
    assert_true(s->n < SEATS_MAX);
    snprintf(s->all[s->n++], SEAT_BYTES, "%s on %s %s %zu:%zu", model, at, standby ? "stands by" : "serves",
             first, end);
}

static assignments assignments_now(const plan_live *x)
{
    assignments s = {.n = 0};
    for (size_t i = 0; i < x->n_now; i++)
        add_assignment(&s, x->now[i].model, x->now[i].node, x->now[i].standby, x->now[i].first,
                       x->now[i].end);
    qsort(s.all, s.n, SEAT_BYTES, by_text);
    return s;
}

static assignments assignments_of(const placement *p, const node *nodes)
{
    assignments s = {.n = 0};
    for (size_t i = 0; i < p->n_assignments; i++) {
        const placement_assignment *x = &p->assignments[i];
        add_assignment(&s, h.wants[x->model].name, nodes[x->node].name, x->standby, x->first, x->end);
    }
    qsort(s.all, s.n, SEAT_BYTES, by_text);
    return s;
}

static plan_live ask(void)
{
    plan_live x = {0};
    buf out = {0};
    shoal_err err;
    if (control_put_placement(w.control, &out, &err) != 0 || plan_live_read(&x, out.data, out.len, &err) != 0)
        fail_msg("%s", err.message);
    buf_done(&out);
    return x;
}

static void agree(uint64_t seed, const char *after, const assignments *planned, const assignments *done)
{
    size_t same = 0;
    while (same < planned->n && same < done->n && strcmp(planned->all[same], done->all[same]) == 0) same++;
    if (same == planned->n && same == done->n) return;
    for (size_t i = 0; i < planned->n; i++) print_error("planned: %s\n", planned->all[i]);
    for (size_t i = 0; i < done->n; i++) print_error("done:    %s\n", done->all[i]);
    fail_msg("cluster %llu, after %s: the plan is not what the gateway did", (unsigned long long)seed, after);
}

/* What was there, with the nodes that are there now, must give what the gateway made of it. */
static void check(uint64_t seed, const char *after, plan_live *was, unsigned n_ticks)
{
    placement_model models[MODELS_MAX];
    placement p;
    tick(n_ticks);
    plan_live is = ask();
    for (size_t i = 0; i < h.n_models; i++) {
        models[i] = h.wants[i];
        plan_live_restrict(&is, &models[i]);
    }
    assert_int_equal(placement_plan(&p, is.nodes, is.n_nodes, models, h.n_models, was->now, was->n_now, NULL),
                     0);
    assignments planned = assignments_of(&p, is.nodes), done = assignments_now(&is);
    agree(seed, after, &planned, &done);
    placement_done(&p);
    plan_live_done(was);
    *was = is;
}

/* As `shoal plan --nodes` has it: the gateway is there first, then its machines come one after the other. */
static void check_grown(uint64_t seed, const plan_live *is)
{
    placement p;
    assert_true(is->nodes[0].is_gateway);
    assert_int_equal(placement_grow(&p, is->nodes, is->n_nodes, h.wants, h.n_models, NULL), 0);
    assignments planned = assignments_of(&p, is->nodes), done = assignments_now(is);
    agree(seed, "all have joined", &planned, &done);
    placement_done(&p);
}

static void live_through(uint64_t seed)
{
    shoal_err err;
    cluster_open(seed);
    plan_live was = ask();
    for (size_t i = 0; i < h.n_nodes; i++) {
        come(i);
        check(seed, "one joined", &was, 1);
    }
    check_grown(seed, &was);
    for (int k = 0; k < 6; k++) {
        size_t i = draw((unsigned)h.n_nodes);
        if (draw(3) == 0 && h.there[i]) {
            operator_command command =
                control_node_drains(w.control, h.nodes[i].name) ? OPERATOR_RESUME : OPERATOR_DRAIN;
            if (control_node_command(w.control, h.nodes[i].name, command, &err) != 0)
                fail_msg("%s", err.message);
            check(seed, command == OPERATOR_DRAIN ? "one drains" : "one has resumed", &was, 1);
        } else if (h.there[i]) {
            h.there[i] = false;
            source_drop_node(h.others, h.nodes[i].name);
            check(seed, "one left", &was, 5);
        } else {
            come(i);
            check(seed, "one came back", &was, 1);
        }
    }
    plan_live_done(&was);
    for (size_t i = 0; i < h.n_nodes; i++)
        if (control_node_drains(w.control, h.nodes[i].name))
            control_node_command(w.control, h.nodes[i].name, OPERATOR_RESUME, &err);
    cluster_close();
}

static void plans_of_random_clusters_are_what_their_gateways_do(void **state)
{
    snprintf(h.path, sizeof h.path, "%s/m.gguf", place);
    FILE *f = fopen(h.path, "w");
    assert_non_null(f);
    fputs("weights", f);
    fclose(f);
    memset(h.digest, 'a', 64);
    gateway_close();
    for (uint64_t seed = 1; seed <= CLUSTERS; seed++) live_through(seed);
    const control_options o = {.listen = "127.0.0.1:0", .name = "boss", .state = w.state};
    world_reopen(&o);
}

/* ---- layers -------------------------------------------------------------------------------------------- */

static size_t layers_on(const char *name)
{
    plan_live x = ask();
    size_t n = 0;
    for (size_t i = 0; i < x.n_now; i++)
        if (strcmp(x.now[i].node, name) == 0) n += x.now[i].end - x.now[i].first;
    plan_live_done(&x);
    return n;
}

/* Machines that were measured while they did something else are measured again, and get other speeds. */
static void layers_are_dealt_out_anew_when_nobody_asks_and_it_gains_much(void **state)
{
    static const char *const PLACES[] = {"n0", "n1"};
    gateway_close();
    h = (house){.boss_bytes = GB, .n_models = 1, .n_nodes = 2};
    snprintf(h.path, sizeof h.path, "%s/m.gguf", place);
    FILE *f = fopen(h.path, "w");
    assert_non_null(f);
    fclose(f);
    memset(h.digest, 'a', 64);
    h.models[0] = (control_model){
        .want = {.name = "big",
                 .n_replicas = 1,
                 .memory_bytes = GB,
                 .nodes = PLACES,
                 .n_nodes = 2,
                 .shards.n = 2,
                 .shape = {.n_layer = 8, .n_embd = 64, .layer_bytes = GB / 16, .layer_multiplies = 1000}},
        .spec = {.model = "big", .path = h.path, .sha256 = h.digest}};
    assert_int_equal(registry_new(&h.g, &w.loop, NULL), 0);
    assert_int_equal(source_open(&h.others, h.g, "etcd", NULL), 0);
    gateway_open();
    w.control->placer->leads_ns = 0;
    for (size_t i = 0; i < 2; i++) {
        draw_node(i);
        h.nodes[i] = (node){.name = h.node_names[i],
                            .address = "127.0.0.1:9",
                            .group = control_group(w.control),
                            .n_cores = 4,
                            .memory_bytes = 8 * GB,
                            .bytes_per_s = i ? 7e9 : 1e9};
        come(i);
    }
    tick(2);
    assert_int_equal(layers_on("n0"), 1);
    h.nodes[0].bytes_per_s = 7e9;
    come(0);
    tick(60);
    assert_int_equal(layers_on("n0"), 1); /* they were dealt out a minute ago */
    tick(600);
    assert_int_equal(layers_on("n0"), 4);
    h.nodes[0].bytes_per_s = 8e9;
    come(0);
    tick(1300);
    assert_int_equal(layers_on("n0"), 4); /* a little faster is no reason */
    cluster_close();
    const control_options o = {.listen = "127.0.0.1:0", .name = "boss", .state = w.state};
    world_reopen(&o);
}

static void a_measurement_counts_when_the_machine_did_nothing_else(void **state)
{
    assert_true(measure_is_clean(1));
    assert_true(measure_is_clean(0.9));
    assert_false(measure_is_clean(0.5)); /* one of two threads ran at a time */
    assert_true(measure_idle_may(0.1, 2));
    assert_false(measure_idle_may(1.9, 2));
    assert_true(measure_idle_may(1.9, 8));
    measure_result r;
    measure_spec starved = {
        .isa = ISA_SCALAR, .type = DT_Q8_0, .n_threads = 4 * sys_core_count(), .seconds = 0.05};
    assert_int_equal(measure_mul(&r, &starved, NULL), 0);
    if (r.share > 0.5) fail_msg("four threads a core got %.3f of four cores", r.share);
    assert_false(measure_is_clean(r.share));
}

static void answers_that_are_no_placement_are_refused(void **state)
{
    static const char *const BAD[] = {"", "[]", "{}", "{\"nodes\":[],\"now\":[]}",
                                      "{\"nodes\":1,\"now\":[],\"models\":[]}"};
    plan_live x = {0};
    shoal_err err;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_int_not_equal(plan_live_read(&x, BAD[i], strlen(BAD[i]), &err), 0);
    static const char ODD[] = "{\"nodes\":[1,{\"name\":7},{\"name\":\"a\",\"cores\":-1,\"labels\":[null,"
                              "\"x\"]}],\"now\":[{\"model\":\"m\"}],"
                              "\"models\":[{}]}";
    assert_int_equal(plan_live_read(&x, ODD, strlen(ODD), &err), 0);
    assert_int_equal(x.n_nodes, 1);
    assert_int_equal(x.nodes[0].n_labels, 1);
    assert_int_equal(x.n_now, 0);
    assert_int_equal(x.n_models, 0);
    plan_live_done(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_of_random_clusters_are_what_their_gateways_do, world_open,
                                        world_close),
        cmocka_unit_test_setup_teardown(layers_are_dealt_out_anew_when_nobody_asks_and_it_gains_much,
                                        world_open, world_close),
        cmocka_unit_test(a_measurement_counts_when_the_machine_did_nothing_else),
        cmocka_unit_test(answers_that_are_no_placement_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
