/* Placement: single decisions, and what holds for any cluster: never over memory, spread, settled, and quiet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"

#define GB (1ull << 30)

static placement plan(const node *n, size_t n_nodes, const placement_model *m, size_t n_models,
                      const placement_now *now, size_t n_now)
{
    placement p;
    assert_int_equal(placement_plan(&p, n, n_nodes, m, n_models, now, n_now, NULL), 0);
    return p;
}

static void expect(const placement *p, size_t assignment, size_t at, placement_why why)
{
    if (assignment >= p->n_assignments) fail_msg("there are %zu assignments", p->n_assignments);
    if (p->assignments[assignment].node != at || p->assignments[assignment].why != why)
        fail_msg("assignment %zu is at %zu: %s", assignment, p->assignments[assignment].node,
                 placement_why_text(p->assignments[assignment].why));
}

static const node HOME[] = {
    {.name = "attic", .site = "home", .n_cores = 4, .memory_bytes = 8 * GB, .bytes_per_s = 1e10},
    {.name = "nas", .site = "home", .n_cores = 8, .memory_bytes = 16 * GB, .bytes_per_s = 3e10},
    {.name = "shed", .site = "garden", .n_cores = 4, .memory_bytes = 4 * GB, .bytes_per_s = 1e10},
};

static void placement_prefers_the_fast_then_spreads(void **state)
{
    placement_model m = {.name = "chat", .n_replicas = 3, .memory_bytes = GB};
    placement p = plan(HOME, 3, &m, 1, NULL, 0);
    expect(&p, 0, 1, PLACEMENT_FASTEST);
    expect(&p, 1, 0, PLACEMENT_SPREADS);
    expect(&p, 2, 2, PLACEMENT_SPREADS);
    placement_done(&p);
    m.spread = PLACEMENT_ANYHOW;
    p = plan(HOME, 3, &m, 1, NULL, 0);
    expect(&p, 1, 1, PLACEMENT_FASTEST);
    placement_done(&p);
    m.spread = PLACEMENT_BY_SITE;
    m.n_replicas = 2;
    p = plan(HOME, 3, &m, 1, NULL, 0);
    expect(&p, 1, 2, PLACEMENT_SPREADS);
    placement_done(&p);
}

/* While more nodes come one replica serves, the others wait for nodes of their own, and nothing that shares
 * one moves; then all of them are placed once. */
static void placement_waits_with_crowding_while_nodes_come(void **state)
{
    placement_model m = {
        .name = "chat", .n_replicas = 3, .n_standby = 1, .memory_bytes = GB, .settling = true};
    placement p = plan(HOME, 1, &m, 1, NULL, 0);
    assert_int_equal(p.n_assignments, 1);
    assert_false(p.assignments[0].standby);
    assert_int_equal(p.n_gaps, 0);
    placement_done(&p);
    const placement_now crowded[] = {{.model = "chat", .node = "attic"}, {.model = "chat", .node = "attic"}};
    p = plan(HOME, 2, &m, 1, crowded, 2);
    assert_int_equal(p.n_leavers, 0);
    assert_int_equal(p.n_assignments, 3); /* nas has none: that one shares nothing */
    placement_done(&p);
    m.settling = false;
    p = plan(HOME, 3, &m, 1, crowded, 2);
    assert_int_equal(p.n_leavers, 1);
    assert_int_equal(p.n_assignments, 4);
    placement_done(&p);
    m.settling = true;
    m.n_replicas = 1;
    p = plan(NULL, 0, &m, 1, NULL, 0);
    assert_int_equal(p.n_gaps, 1); /* no node at all is one */
    placement_done(&p);
}

static void placement_says_why_a_model_has_no_place(void **state)
{
    static const char *labels[] = {"big"}, *names[] = {"pi", "nas"};
    static node many[6];
    char text[30][2], why[200];
    placement_model m = {
        .name = "chat", .n_replicas = 1, .memory_bytes = GB, .labels = labels, .n_labels = 1};
    placement p = plan(HOME, 3, &m, 1, NULL, 0);
    assert_true(placement_say_missing(&p, HOME, 3, &m, 0, why, sizeof why));
    assert_string_equal(why, "no machine may have it: it lacks a label (attic, nas, shed)");
    placement_done(&p);
    m = (placement_model){
        .name = "chat", .n_replicas = 1, .memory_bytes = 100 * GB, .nodes = names, .n_nodes = 2};
    p = plan(HOME, 3, &m, 1, NULL, 0);
    assert_false(placement_say_missing(&p, HOME, 3, &m, 0, why, sizeof why)); /* pi may come */
    assert_string_equal(why,
                        "no machine may have it: the model names other nodes (attic, shed); its memory is "
                        "taken (nas); it is not attached (pi)");
    char cut[20];
    placement_say_missing(&p, HOME, 3, &m, 0, cut, sizeof cut);
    assert_string_equal(cut, "no machine may have");
    placement_done(&p);
    for (int i = 0; i < 6; i++) {
        snprintf(text[i], 2, "%c", 'a' + i);
        many[i] = (node){.name = text[i], .n_cores = 1, .memory_bytes = GB};
    }
    m = (placement_model){.name = "chat", .n_replicas = 1, .memory_bytes = GB};
    p = plan(many, 6, &m, 1, NULL, 0);
    assert_true(placement_say_missing(&p, many, 6, &m, 0, why, sizeof why));
    assert_string_equal(why, "no machine may have it: its memory is taken (a, b, c, and others)");
    placement_done(&p);
}

static void placement_leaves_a_node_where_the_worker_cannot_start(void **state)
{
    static const char *failed[] = {"nas"}, *only[] = {"nas"};
    placement_model m = {
        .name = "chat", .n_replicas = 1, .memory_bytes = GB, .failed = failed, .n_failed = 1};
    placement_now now = {.model = "chat", .node = "nas"};
    placement p = plan(HOME, 3, &m, 1, NULL, 0);
    expect(&p, 0, 0, PLACEMENT_FASTEST); /* not nas, the fastest */
    placement_done(&p);
    p = plan(HOME, 3, &m, 1, &now, 1);
    assert_int_equal(p.n_assignments, 1);
    expect(&p, 0, 0, PLACEMENT_FASTEST);
    assert_int_equal(p.n_leavers, 1);
    assert_int_equal(p.leavers[0].why, PLACEMENT_FAILED);
    placement_done(&p);
    m.nodes = only; /* nobody else may have it: it is tried again there */
    m.n_nodes = 1;
    p = plan(HOME, 3, &m, 1, &now, 1);
    expect(&p, 0, 1, PLACEMENT_STAYS);
    assert_int_equal(p.n_leavers, 0);
    placement_done(&p);
}

static const placement_assignment *relieved(const placement *p)
{
    for (size_t i = 0; i < p->n_assignments; i++)
        if (p->assignments[i].why == PLACEMENT_RELIEVED) return &p->assignments[i];
    return NULL;
}

/* All models are on one of two equal nodes; what moves comes to a node that is much less busy. */
static void placement_relieves_a_busy_node_as_long_as_it_gains_much(void **state)
{
    node nodes[] = {{.name = "boss", .n_cores = 4, .memory_bytes = 64 * GB, .bytes_per_s = 1e10},
                    {.name = "new", .n_cores = 4, .memory_bytes = 64 * GB, .bytes_per_s = 1e10}};
    placement_model m[4];
    placement_now now[4];
    const char *names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) {
        m[i] = (placement_model){.name = names[i], .n_replicas = 1, .memory_bytes = GB * (unsigned)(4 - i)};
        now[i] = (placement_now){.model = names[i], .node = "boss"};
    }
    placement p = plan(nodes, 2, m, 4, now, 4);
    assert_false(placement_relieve(&p, nodes, 2, m, 4, false)); /* none of them says so */
    assert_null(relieved(&p));
    assert_true(placement_relieve(&p, nodes, 2, m, 4, true)); /* 10 of work: 6 and 4 */
    assert_string_equal(m[relieved(&p)->model].name, "a");
    assert_int_equal(relieved(&p)->node, 1);
    now[0].node = "new";
    placement_done(&p);
    p = plan(nodes, 2, m, 4, now, 4);
    assert_false(placement_relieve(&p, nodes, 2, m, 4, true)); /* 5 and 5 would gain too little */
    placement_done(&p);
    now[0].node = "boss";
    m[2].rebalance = true;
    p = plan(nodes, 2, m, 4, now, 4);
    assert_true(placement_relieve(&p, nodes, 2, m, 4, false)); /* c alone says so: 8 and 2 */
    assert_string_equal(m[relieved(&p)->model].name, "c");
    placement_done(&p);
    nodes[1].memory_bytes = GB;
    p = plan(nodes, 2, m, 4, now, 4);
    assert_false(placement_relieve(&p, nodes, 2, m, 4, true)); /* nothing large has room there */
    placement_done(&p);
    nodes[1].memory_bytes = 64 * GB;
    p = plan(nodes, 2, m, 1, now, 1);
    assert_false(placement_relieve(&p, nodes, 2, m, 1, true)); /* one replica has its node for itself */
    placement_done(&p);
}

static void placement_keeps_replicas_apart_as_it_relieves(void **state)
{
    node nodes[] = {
        {.name = "boss", .site = "a", .n_cores = 4, .memory_bytes = 64 * GB, .bytes_per_s = 1e10},
        {.name = "has", .site = "b", .n_cores = 4, .memory_bytes = 64 * GB, .bytes_per_s = 1e10},
        {.name = "near", .site = "b", .n_cores = 4, .memory_bytes = 64 * GB, .bytes_per_s = 4e10}};
    placement_model m[] = {{.name = "x", .n_replicas = 2, .memory_bytes = GB},
                           {.name = "y", .n_replicas = 1, .memory_bytes = GB / 8}};
    placement_now now[] = {
        {.model = "x", .node = "boss"}, {.model = "x", .node = "has"}, {.model = "y", .node = "boss"}};
    placement p = plan(nodes, 2, m, 2, now, 3);
    assert_false(placement_relieve(&p, nodes, 2, m, 2,
                                   true)); /* x would be twice on one node, and y come to a busier one */
    placement_done(&p);
    m[0].spread = PLACEMENT_BY_SITE;
    p = plan(nodes, 3, m, 2, now, 3);
    assert_true(placement_relieve(&p, nodes, 3, m, 2, true));
    assert_string_equal(m[relieved(&p)->model].name, "y"); /* x would be twice at one site */
    placement_done(&p);
    m[0].spread = PLACEMENT_BY_NODE;
    p = plan(nodes, 3, m, 2, now, 3);
    assert_true(placement_relieve(&p, nodes, 3, m, 2, true));
    assert_int_equal(relieved(&p)->node, 2);
    placement_done(&p);
}

static void placement_keeps_the_models_rules(void **state)
{
    const char *wants[] = {"quiet"}, *has[] = {"loud", "quiet"}, *names[] = {"shed"};
    node n[3] = {HOME[0], HOME[1], HOME[2]};
    n[0].labels = has, n[0].n_labels = 2;
    n[1].on_battery = true, n[1].battery_percent = 90;
    n[2].rtt_ms = 30;
    placement_model quiet = {
        .name = "m", .n_replicas = 1, .memory_bytes = GB, .labels = wants, .n_labels = 1};
    placement_model named = {.name = "m", .n_replicas = 1, .memory_bytes = GB, .nodes = names, .n_nodes = 1};
    placement_model near = {.name = "m", .n_replicas = 3, .memory_bytes = GB, .max_rtt_ms = 20};
    placement_model mains = {
        .name = "m", .n_replicas = 3, .memory_bytes = GB, .battery = PLACEMENT_BATTERY_NEVER};
    placement p = plan(n, 3, &quiet, 1, NULL, 0);
    expect(&p, 0, 0, PLACEMENT_ONLY);
    placement_done(&p);
    p = plan(n, 3, &named, 1, NULL, 0);
    expect(&p, 0, 2, PLACEMENT_ONLY);
    placement_done(&p);
    p = plan(n, 3, &near, 1, NULL, 0);
    for (size_t i = 0; i < p.n_assignments; i++) assert_int_not_equal(p.assignments[i].node, 2);
    expect(&p, 0, 0, PLACEMENT_FASTEST); /* the faster one is on battery */
    placement_done(&p);
    p = plan(n, 3, &mains, 1, NULL, 0);
    for (size_t i = 0; i < p.n_assignments; i++) assert_int_not_equal(p.assignments[i].node, 1);
    placement_done(&p);
    assert_int_equal(placement_may(&near, &n[2], 0, false), PLACEMENT_TOO_FAR);
    assert_int_equal(
        placement_may(&near, &(node){.name = "x", .rtt_ms = 25, .memory_bytes = 2 * GB}, 0, true),
        PLACEMENT_YES); /* a little farther than it was */
    n[0].draining = true;
    assert_int_equal(placement_may(&near, &n[0], 0, true), PLACEMENT_DRAINING);
}

static void placement_says_what_has_no_place(void **state)
{
    placement_model m[] = {{.name = "huge", .n_replicas = 2, .memory_bytes = 12 * GB},
                           {.name = "vast", .n_replicas = 1, .n_standby = 1, .memory_bytes = 64 * GB}};
    placement p = plan(HOME, 3, m, 2, NULL, 0);
    expect(&p, 0, 1, PLACEMENT_ONLY);
    assert_int_equal(p.n_assignments, 1);
    assert_int_equal(p.n_gaps, 2);
    assert_int_equal(p.gaps[0].n_replicas, 1);
    assert_int_equal(p.gaps[1].n_replicas, 1);
    assert_int_equal(p.gaps[1].n_standby, 1);
    assert_int_equal(placement_may(&m[1], &HOME[0], 0, false), PLACEMENT_NO_MEMORY);
    placement_done(&p);
}

static void placement_promotes_the_standby_of_a_node_that_is_gone(void **state)
{
    placement_model m = {.name = "chat", .n_replicas = 1, .n_standby = 1, .memory_bytes = GB};
    placement_now now[] = {{.model = "chat", .node = "nas"},
                           {.model = "chat", .node = "attic", .standby = true}};
    placement p = plan(HOME, 3, &m, 1, now, 2);
    expect(&p, 0, 1, PLACEMENT_STAYS);
    expect(&p, 1, 0, PLACEMENT_STAYS);
    assert_true(p.assignments[1].standby);
    assert_int_equal(p.n_leavers, 0);
    placement_done(&p);
    node left[] = {HOME[0], HOME[2]};
    p = plan(left, 2, &m, 1, now, 2);
    expect(&p, 0, 0, PLACEMENT_PROMOTED);
    assert_false(p.assignments[0].standby);
    expect(&p, 1, 1, PLACEMENT_SPREADS);
    assert_int_equal(p.n_leavers, 1);
    assert_int_equal(p.leavers[0].why, PLACEMENT_GONE);
    assert_string_equal(p.leavers[0].node, "nas");
    placement_done(&p);
}

static void placement_moves_what_must_move_and_nothing_else(void **state)
{
    placement_model m[] = {{.name = "a", .n_replicas = 2, .memory_bytes = GB},
                           {.name = "b", .n_replicas = 1, .memory_bytes = GB}};
    placement_now now[] = {{.model = "a", .node = "attic"},
                           {.model = "a", .node = "attic"},
                           {.model = "b", .node = "shed"},
                           {.model = "old", .node = "nas"}};
    placement p = plan(HOME, 3, m, 2, now, 4);
    assert_int_equal(p.n_leavers, 2); /* one of a's two is crowded, and `old` is in no list */
    assert_int_equal(p.leavers[0].why, PLACEMENT_UNWANTED);
    assert_int_equal(p.leavers[1].why, PLACEMENT_CROWDED);
    expect(&p, 2, 2, PLACEMENT_STAYS); /* though the nas is faster */
    placement_done(&p);
    node n[3] = {HOME[0], HOME[1], HOME[2]};
    n[2].on_battery = true, n[2].battery_percent = 50;
    p = plan(n, 3, &m[1], 1, &now[2], 1);
    expect(&p, 0, 2, PLACEMENT_STAYS);
    placement_done(&p);
    n[2].battery_percent = 10;
    p = plan(n, 3, &m[1], 1, &now[2], 1);
    expect(&p, 0, 1, PLACEMENT_FASTEST);
    assert_int_equal(p.leavers[0].why, PLACEMENT_LOW);
    placement_done(&p);
    m[1].n_replicas = 0;
    p = plan(HOME, 3, &m[1], 1, &now[2], 1);
    assert_int_equal(p.n_assignments, 0);
    assert_int_equal(p.leavers[0].why, PLACEMENT_UNWANTED);
    placement_done(&p);
}

static void placement_lets_standbys_give_way_to_a_model_without_any_replica(void **state)
{
    placement_model m[] = {{.name = "a", .n_replicas = 1, .n_standby = 2, .memory_bytes = 2 * GB},
                           {.name = "b", .n_replicas = 1, .memory_bytes = 3 * GB}};
    node n[] = {{.name = "x", .memory_bytes = 4 * GB}, {.name = "y", .memory_bytes = 4 * GB}};
    placement_now now[] = {{.model = "a", .node = "x"}, {.model = "a", .node = "y", .standby = true}};
    placement p = plan(n, 2, m, 2, now, 2);
    assert_int_equal(p.n_leavers, 1);
    assert_int_equal(p.leavers[0].why, PLACEMENT_EVICTED);
    expect(&p, 1, 1, PLACEMENT_ONLY);
    assert_int_equal(p.gaps[0].n_standby, 2);
    placement_done(&p);
}

/* ---- any cluster --------------------------------------------------------------------------------- */

enum { NODES = 24, MODELS = 10, SEATS = 400 };

typedef struct world {
    uint64_t seed, n_drawn;
    node nodes[NODES];
    placement_model models[MODELS];
    size_t n_nodes, n_models;
    char names[NODES + MODELS][24];
} world;

static const char *const LABELS[] = {"fast", "quiet", "gpu"};
static const char *const SITES[] = {"home", "office", NULL};

static uint64_t draw(world *w, uint64_t n)
{
    return rng_mix(rng_mix(w->seed) ^ ++w->n_drawn) % n;
}

static void make_world(world *w, uint64_t seed)
{
    *w = (world){.seed = seed};
    w->n_nodes = 1 + draw(w, NODES);
    w->n_models = 1 + draw(w, MODELS);
    for (size_t i = 0; i < w->n_nodes; i++) {
        snprintf(w->names[i], sizeof w->names[i], "n%zu", i);
        w->nodes[i] = (node){.name = w->names[i],
                             .site = SITES[draw(w, 3)],
                             .n_cores = (unsigned)(1 + draw(w, 16)),
                             .memory_bytes = (1 + draw(w, 16)) * GB,
                             .bytes_per_s = draw(w, 2) ? 1e9 * (double)(1 + draw(w, 50)) : 0,
                             .load_1m = (double)draw(w, 20),
                             .rtt_ms = (double)draw(w, 50),
                             .on_battery = draw(w, 4) == 0,
                             .battery_percent = (unsigned)draw(w, 101),
                             .labels = LABELS,
                             .n_labels = draw(w, 4)};
    }
    for (size_t i = 0; i < w->n_models; i++) {
        char *name = w->names[NODES + i];
        snprintf(name, sizeof w->names[0], "m%zu", i);
        w->models[i] = (placement_model){.name = name,
                                         .n_replicas = (unsigned)draw(w, 6),
                                         .n_standby = (unsigned)draw(w, 3),
                                         .memory_bytes = (1 + draw(w, 40)) * GB / 8,
                                         .labels = LABELS,
                                         .n_labels = draw(w, 3) ? 0 : draw(w, 4),
                                         .spread = (placement_spread)draw(w, 3),
                                         .battery = (placement_battery)draw(w, 3),
                                         .max_rtt_ms = draw(w, 3) ? 0 : 30};
    }
}

static size_t as_now(const world *w, const placement *p, placement_now now[SEATS])
{
    assert_true(p->n_assignments <= SEATS);
    for (size_t i = 0; i < p->n_assignments; i++)
        now[i] = (placement_now){.model = w->models[p->assignments[i].model].name,
                                 .node = w->nodes[p->assignments[i].node].name,
                                 .standby = p->assignments[i].standby};
    return p->n_assignments;
}

static uint64_t taken_bytes(const world *w, const placement *p, size_t at)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->n_assignments; i++)
        if (p->assignments[i].node == at) n += w->models[p->assignments[i].model].memory_bytes;
    return n;
}

static unsigned count_at(const placement *p, size_t model, size_t at)
{
    unsigned n = 0;
    for (size_t i = 0; i < p->n_assignments; i++)
        n += p->assignments[i].model == model && p->assignments[i].node == at;
    return n;
}

#define HOLDS(w, ok) \
    if (!(ok)) fail_msg("seed %llu: not %s", (unsigned long long)(w)->seed, #ok)

static void check_counts(const world *w, const placement *p)
{
    unsigned n[MODELS][2] = {0};
    for (size_t i = 0; i < p->n_assignments; i++) n[p->assignments[i].model][p->assignments[i].standby]++;
    for (size_t i = 0; i < p->n_gaps; i++) {
        n[p->gaps[i].model][0] += p->gaps[i].n_replicas;
        n[p->gaps[i].model][1] += p->gaps[i].n_standby;
    }
    for (size_t i = 0; i < w->n_models; i++) {
        HOLDS(w, n[i][0] == w->models[i].n_replicas);
        HOLDS(w, n[i][1] == w->models[i].n_standby);
    }
}

/* No gap while a node may have it, and nobody shares a node while another that may have him has none. */
static void check_places(const world *w, const placement *p)
{
    for (size_t at = 0; at < w->n_nodes; at++) {
        uint64_t taken = taken_bytes(w, p, at);
        HOLDS(w, taken <= placement_budget_bytes(&w->nodes[at]));
        for (size_t i = 0; i < p->n_gaps; i++)
            HOLDS(w,
                  placement_may(&w->models[p->gaps[i].model], &w->nodes[at], taken, false) != PLACEMENT_YES);
        for (size_t i = 0; i < p->n_assignments; i++) {
            const placement_model *m = &w->models[p->assignments[i].model];
            const node *from = &w->nodes[p->assignments[i].node], *to = &w->nodes[at];
            HOLDS(w, placement_may(m, from, 0, true) == PLACEMENT_YES);
            bool worse = m->battery == PLACEMENT_BATTERY_AVOID && to->on_battery;
            if (m->spread != PLACEMENT_BY_NODE || worse ||
                placement_may(m, to, taken, false) != PLACEMENT_YES)
                continue;
            HOLDS(w, count_at(p, p->assignments[i].model, p->assignments[i].node) <=
                         count_at(p, p->assignments[i].model, at) + 1);
        }
    }
}

static placement plan_again(const world *w, const placement *p)
{
    static placement_now now[SEATS];
    size_t n = as_now(w, p, now);
    return plan(w->nodes, w->n_nodes, w->models, w->n_models, now, n);
}

static void check_settled(const world *w, const placement *p)
{
    placement again = plan_again(w, p);
    HOLDS(w, again.n_leavers == 0);
    HOLDS(w, again.n_assignments == p->n_assignments);
    for (size_t i = 0; i < again.n_assignments; i++) HOLDS(w, again.assignments[i].why == PLACEMENT_STAYS);
    placement_done(&again);
}

static void placement_holds_for_any_cluster(void **state)
{
    static world w;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        make_world(&w, seed);
        placement p = plan(w.nodes, w.n_nodes, w.models, w.n_models, NULL, 0);
        check_counts(&w, &p);
        check_places(&w, &p);
        check_settled(&w, &p);
        placement_done(&p);
    }
}

/* Nodes change, go, and come back; each plan starts from the one before. */
static void placement_settles_after_every_change(void **state)
{
    static world w;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        make_world(&w, seed);
        placement p = plan(w.nodes, w.n_nodes, w.models, w.n_models, NULL, 0);
        for (int i = 0; i < 10; i++) {
            node *n = &w.nodes[draw(&w, w.n_nodes)];
            n->draining = draw(&w, 3) == 0;
            n->battery_percent = (unsigned)draw(&w, 101);
            n->on_battery = draw(&w, 3) == 0;
            n->rtt_ms = (double)draw(&w, 60);
            n->memory_bytes = (1 + draw(&w, 16)) * GB;
            placement next = plan_again(&w, &p);
            placement_done(&p);
            p = next;
            check_counts(&w, &p);
            check_places(&w, &p);
            check_settled(&w, &p);
        }
        placement_done(&p);
    }
}

/* A node goes, and returns: nothing moves back but what is crowded without it. */
static void placement_does_not_reshuffle_when_a_node_returns(void **state)
{
    static world w;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        make_world(&w, seed);
        placement p = plan(w.nodes, w.n_nodes, w.models, w.n_models, NULL, 0);
        node *n = &w.nodes[draw(&w, w.n_nodes)];
        n->draining = true;
        placement without = plan_again(&w, &p);
        n->draining = false;
        placement with = plan_again(&w, &without);
        for (size_t i = 0; i < with.n_leavers; i++) {
            placement_why why = with.leavers[i].why;
            HOLDS(&w, why == PLACEMENT_CROWDED || why == PLACEMENT_LOW || why == PLACEMENT_EVICTED);
        }
        for (size_t i = 0; i < with.n_assignments; i++) {
            placement_why why = with.assignments[i].why;
            HOLDS(&w, why == PLACEMENT_STAYS || why == PLACEMENT_PROMOTED ||
                          &w.nodes[with.assignments[i].node] == n || with.n_leavers > 0 ||
                          without.n_gaps > 0);
        }
        placement_done(&p);
        placement_done(&without);
        placement_done(&with);
    }
}

/* The order of the lists does not matter. */
static void placement_is_the_same_for_lists_in_another_order(void **state)
{
    static world w;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        make_world(&w, seed);
        node turned[NODES];
        for (size_t i = 0; i < w.n_nodes; i++) turned[i] = w.nodes[w.n_nodes - 1 - i];
        placement a = plan(w.nodes, w.n_nodes, w.models, w.n_models, NULL, 0);
        placement b = plan(turned, w.n_nodes, w.models, w.n_models, NULL, 0);
        HOLDS(&w, a.n_assignments == b.n_assignments);
        for (size_t m = 0; m < w.n_models; m++)
            for (size_t i = 0; i < w.n_nodes; i++)
                HOLDS(&w, count_at(&a, m, i) == count_at(&b, m, w.n_nodes - 1 - i));
        placement_done(&a);
        placement_done(&b);
    }
}

static void placement_plans_a_thousand_nodes(void **state)
{
    enum { N = 1000, M = 200 };
    static node n[N];
    static placement_model m[M];
    static char names[N + M][24];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        n[i] = (node){.name = names[i], .n_cores = 4, .memory_bytes = 8 * GB};
    }
    for (int i = 0; i < M; i++) {
        snprintf(names[N + i], sizeof names[0], "m%d", i);
        m[i] = (placement_model){.name = names[N + i], .n_replicas = 8, .n_standby = 2, .memory_bytes = GB};
    }
    placement p = plan(n, N, m, M, NULL, 0);
    assert_int_equal(p.n_assignments, M * 10);
    assert_int_equal(p.n_gaps, 0);
    placement_done(&p);
}

/* ---- devices ------------------------------------------------------------------------------------- */

static const node_device TWO[] = {{"cuda:0", "cuda", 8 * GB}, {"cuda:1", "cuda", 8 * GB}},
                         SMALL[] = {{"cuda:0", "cuda", 2 * GB}}, OTHER[] = {{"npu:0", "npu", 64 * GB}};
/* Little RAM, so that what counts there is seen. */
static const node RACK[] = {
    {.name = "a", .n_cores = 4, .memory_bytes = GB, .devices = TWO, .n_devices = 2},
    {.name = "b", .n_cores = 4, .memory_bytes = 64 * GB, .devices = OTHER, .n_devices = 1},
    {.name = "c", .n_cores = 4, .memory_bytes = GB, .devices = SMALL, .n_devices = 1},
};

static void placement_counts_the_memory_of_devices_apart(void **state)
{
    const placement_model m[] = {
        {.name = "fast", .n_replicas = 2, .memory_bytes = 6 * GB, .device = "cuda"},
        {.name = "tiny", .n_replicas = 1, .memory_bytes = GB / 4, .spread = PLACEMENT_ANYHOW},
    };
    placement p = plan(RACK, 3, m, 2, NULL, 0);
    assert_int_equal(p.n_assignments, 3);
    assert_int_equal(p.n_gaps, 0);
    expect(&p, 0, 0, PLACEMENT_ONLY); /* the node's RAM would not hold it */
    expect(&p, 1, 0, PLACEMENT_ONLY);
    expect(&p, 2, 0, PLACEMENT_FASTEST); /* and none of it is taken */
    assert_int_equal(placement_taken_bytes(&p, m, 0), GB / 4);
    assert_int_equal(placement_refusal(&p, RACK, m, 0, 0), PLACEMENT_NO_MEMORY);
    assert_int_equal(placement_refusal(&p, RACK, m, 0, 1), PLACEMENT_NO_DEVICE);
    assert_int_equal(placement_refusal(&p, RACK, m, 0, 2), PLACEMENT_NO_MEMORY);
    assert_int_equal(placement_refusal(&p, RACK, m, 1, 0), PLACEMENT_YES); /* its RAM is free */
    assert_false(placement_relieve(&p, RACK, 3, m, 2, true));
    placement_done(&p);
}

static void a_replica_has_to_fit_into_one_device(void **state)
{
    const placement_model m = {.name = "large", .n_replicas = 1, .memory_bytes = 10 * GB, .device = "cuda"};
    char why[300];
    placement p = plan(RACK, 3, &m, 1, NULL, 0);
    assert_int_equal(p.n_assignments, 0);
    assert_true(placement_say_missing(&p, RACK, 3, &m, 0, why, sizeof why));
    assert_string_equal(why, "no machine may have it: it has no such device (b); its memory is taken (a, c)");
    placement_done(&p);
}

static void devices_are_shared_out_evenly_and_stay(void **state)
{
    const node two[] = {RACK[0], {.name = "z", .n_cores = 1, .devices = TWO, .n_devices = 2}};
    const placement_model m[] = {
        {.name = "x", .n_replicas = 1, .memory_bytes = 3 * GB, .device = "cuda"},
        {.name = "y", .n_replicas = 1, .memory_bytes = 2 * GB, .device = "cuda"},
    };
    placement p = plan(two, 2, m, 2, NULL, 0);
    expect(&p, 0, 0, PLACEMENT_FASTEST);
    expect(&p, 1, 1, PLACEMENT_FASTEST); /* where less of its kind of device is taken */
    placement_done(&p);
    const placement_now now[] = {{.model = "x", .node = "a"}, {.model = "y", .node = "a"}};
    p = plan(two, 2, m, 2, now, 2);
    expect(&p, 0, 0, PLACEMENT_STAYS);
    expect(&p, 1, 0, PLACEMENT_STAYS);
    placement_done(&p);
}

static void a_standby_on_a_device_gives_way_there_alone(void **state)
{
    const placement_model m[] = {
        {.name = "first", .n_replicas = 1, .n_standby = 0, .memory_bytes = 7 * GB, .device = "cuda"},
        {.name = "waits",
         .n_standby = 2,
         .memory_bytes = 6 * GB,
         .device = "cuda",
         .spread = PLACEMENT_ANYHOW},
        {.name = "cpu", .n_standby = 1, .memory_bytes = GB / 2},
    };
    const placement_now now[] = {{.model = "waits", .node = "a", .standby = true},
                                 {.model = "waits", .node = "a", .standby = true},
                                 {.model = "cpu", .node = "a", .standby = true}};
    placement p = plan(RACK, 1, m, 3, now, 3);
    assert_int_equal(p.n_leavers, 1);
    assert_string_equal(p.leavers[0].model, "waits");
    assert_int_equal(p.leavers[0].why, PLACEMENT_EVICTED);
    placement_done(&p);
}

/* HOME has room (nine tenths of each memory) for one, two and none of 6.5 GB. */
static void room_is_counted_without_taking_it_from_others(void **state)
{
    placement_model m[] = {{.name = "chat", .n_replicas = 1, .memory_bytes = 13 * GB / 2},
                           {.name = "small", .n_replicas = 1, .n_standby = 1, .memory_bytes = GB}};
    const placement_now now[] = {{.model = "chat", .node = "nas"},
                                 {.model = "small", .node = "shed"},
                                 {.model = "small", .node = "nas", .standby = true}};
    unsigned room = 99;
    char why[300];
    assert_int_equal(placement_room(&room, why, sizeof why, HOME, 3, m, 1, 0, 3, now, 1, NULL), 0);
    assert_int_equal(room, 3);
    assert_string_equal(why, "");
    assert_int_equal(placement_room(&room, why, sizeof why, HOME, 3, m, 1, 0, 9, now, 1, NULL), 0);
    assert_int_equal(room, 3);
    assert_string_equal(why, "no machine may have it: its memory is taken (attic, nas, shed)");
    m[0].n_replicas = 2; /* the room of what is there already does not change */
    assert_int_equal(placement_room(&room, why, sizeof why, HOME, 3, m, 1, 0, 3, now, 1, NULL), 0);
    assert_int_equal(room, 3);
    m[0].n_replicas = 4; /* nor do those have a machine that lack one */
    assert_int_equal(placement_room(&room, why, sizeof why, HOME, 3, m, 1, 0, 5, now, 1, NULL), 0);
    assert_int_equal(room, 3);
    m[0].n_replicas = 1;
    m[1].memory_bytes = 2 * GB; /* the standby and a further replica of chat would share what nas has */
    assert_int_equal(placement_room(&room, why, sizeof why, HOME, 2, m, 2, 0, 3, now, 3, NULL), 0);
    assert_int_equal(room, 2);
    m[0].labels = (const char *const[]){"big"};
    m[0].n_labels = 1;
    assert_int_equal(placement_room(&room, why, sizeof why, HOME, 3, m, 1, 0, 2, now, 1, NULL), 0);
    assert_int_equal(room, 0);
    assert_string_equal(why, "no machine may have it: it lacks a label (attic, nas, shed)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placement_counts_the_memory_of_devices_apart),
        cmocka_unit_test(a_replica_has_to_fit_into_one_device),
        cmocka_unit_test(devices_are_shared_out_evenly_and_stay),
        cmocka_unit_test(a_standby_on_a_device_gives_way_there_alone),
        cmocka_unit_test(room_is_counted_without_taking_it_from_others),
        cmocka_unit_test(placement_prefers_the_fast_then_spreads),
        cmocka_unit_test(placement_waits_with_crowding_while_nodes_come),
        cmocka_unit_test(placement_keeps_the_models_rules),
        cmocka_unit_test(placement_says_what_has_no_place),
        cmocka_unit_test(placement_leaves_a_node_where_the_worker_cannot_start),
        cmocka_unit_test(placement_relieves_a_busy_node_as_long_as_it_gains_much),
        cmocka_unit_test(placement_keeps_replicas_apart_as_it_relieves),
        cmocka_unit_test(placement_says_why_a_model_has_no_place),
        cmocka_unit_test(placement_promotes_the_standby_of_a_node_that_is_gone),
        cmocka_unit_test(placement_moves_what_must_move_and_nothing_else),
        cmocka_unit_test(placement_lets_standbys_give_way_to_a_model_without_any_replica),
        cmocka_unit_test(placement_holds_for_any_cluster),
        cmocka_unit_test(placement_settles_after_every_change),
        cmocka_unit_test(placement_does_not_reshuffle_when_a_node_returns),
        cmocka_unit_test(placement_is_the_same_for_lists_in_another_order),
        cmocka_unit_test(placement_plans_a_thousand_nodes),
    };
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
