/* Placement of models whose layers are dealt out: every layer once, never over memory, settled, and quiet. */
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

static void expect(const placement *p, size_t assignment, size_t at, size_t first, size_t end,
                   placement_why why)
{
    if (assignment >= p->n_assignments) fail_msg("there are %zu assignments", p->n_assignments);
    const placement_assignment *s = &p->assignments[assignment];
    if (s->node != at || s->first != first || s->end != end || s->why != why)
        fail_msg("assignment %zu is at %zu, layers %zu:%zu: %s", assignment, s->node, s->first, s->end,
                 placement_why_text(s->why));
}

static const node HOME[] = {
    {.name = "attic", .n_cores = 4, .memory_bytes = 8 * GB, .bytes_per_s = 1e10, .unreached = true},
    {.name = "nas", .n_cores = 8, .memory_bytes = 16 * GB, .bytes_per_s = 3e10, .rtt_ms = 1},
    {.name = "shed", .n_cores = 4, .memory_bytes = 4 * GB, .bytes_per_s = 1e10, .rtt_ms = 1},
};

/* 12 layers of half a GB. */
static placement_model of(placement_shards s)
{
    return (placement_model){.name = "chat",
                             .n_replicas = 1,
                             .memory_bytes = 6 * GB,
                             .shards = s,
                             .shape = {.n_layer = 12, .n_embd = 64, .layer_bytes = GB / 2}};
}

static void stages_go_by_speed_and_stay(void **state)
{
    placement_model m = of((placement_shards){.n = 2});
    placement p = plan(HOME, 2, &m, 1, NULL, 0);
    expect(&p, 0, 0, 0, 3, PLACEMENT_DEALT); /* nobody else reaches the attic, so it comes first */
    expect(&p, 1, 1, 3, 12, PLACEMENT_DEALT);
    assert_int_equal(p.n_gaps, 0);
    placement_done(&p);
    placement_now now[] = {{.model = "chat", .node = "attic", .first = 0, .end = 3},
                           {.model = "chat", .node = "nas", .first = 3, .end = 12}};
    p = plan(HOME, 3, &m, 1, now, 2);
    expect(&p, 0, 0, 0, 3, PLACEMENT_STAYS);
    expect(&p, 1, 1, 3, 12, PLACEMENT_STAYS);
    assert_int_equal(p.n_leavers, 0);
    placement_done(&p);
}

static void one_machine_has_all_stages_until_another_comes(void **state)
{
    placement_model m = of((placement_shards){.n = 2});
    placement p = plan(HOME, 1, &m, 1, NULL, 0);
    expect(&p, 0, 0, 0, 6, PLACEMENT_DEALT);
    expect(&p, 1, 0, 6, 12, PLACEMENT_DEALT);
    placement_done(&p);
    placement_now now[] = {{.model = "chat", .node = "attic", .first = 0, .end = 6},
                           {.model = "chat", .node = "attic", .first = 6, .end = 12}};
    p = plan(HOME, 2, &m, 1, now, 2);
    expect(&p, 0, 0, 0, 3, PLACEMENT_DEALT);
    expect(&p, 1, 1, 3, 12, PLACEMENT_DEALT);
    assert_int_equal(p.n_leavers, 2);
    assert_int_equal(p.leavers[0].why, PLACEMENT_REDEALT);
    placement_done(&p);
}

static void a_lost_stage_is_relieved(void **state)
{
    placement_model m = of((placement_shards){.n = 2});
    placement_now now[] = {{.model = "chat", .node = "attic", .first = 0, .end = 6},
                           {.model = "chat", .node = "gone", .first = 6, .end = 12}};
    placement p = plan(HOME, 3, &m, 1, now, 2);
    expect(&p, 0, 0, 0, 6, PLACEMENT_STAYS);
    expect(&p, 1, 1, 6, 12, PLACEMENT_RELIEVES);
    assert_int_equal(p.leavers[0].why, PLACEMENT_GONE);
    placement_done(&p);
    node small[] = {HOME[0], HOME[2]}; /* a shed with 3.6 GB has no room for six layers and all must move */
    small[1].memory_bytes = 3 * GB;
    m.shards.n = 2;
    now[0].end = now[1].first = 2;
    small[0].memory_bytes = 5 * GB;
    p = plan(small, 2, &m, 1, now, 2);
    assert_int_equal(p.n_gaps, 0);
    assert_int_equal(p.n_assignments, 2);
    assert_int_equal(p.assignments[0].why, PLACEMENT_DEALT);
    assert_true(p.assignments[0].first == 0 && p.assignments[0].end == p.assignments[1].first &&
                p.assignments[1].end == 12);
    placement_done(&p);
}

static void auto_is_whole_where_it_can_be(void **state)
{
    placement_model m = of((placement_shards){.automatic = true});
    placement p = plan(HOME, 3, &m, 1, NULL, 0);
    assert_int_equal(p.n_assignments, 1);
    expect(&p, 0, 1, 0, 0, PLACEMENT_FASTEST);
    placement_done(&p);
    node n[] = {HOME[0], HOME[1], HOME[2]};
    n[0].memory_bytes = n[1].memory_bytes = 4 * GB;
    p = plan(n, 3, &m, 1, NULL, 0);
    assert_int_equal(p.n_assignments, 2);
    assert_int_equal(p.n_gaps, 0);
    assert_true(p.assignments[0].end == p.assignments[1].first && p.assignments[1].end == 12);
    placement_done(&p);
    m.shape.layer_bytes = 2 * GB;
    m.memory_bytes = 24 * GB;
    p = plan(n, 3, &m, 1, NULL, 0);
    assert_int_equal(p.n_assignments, 0);
    assert_int_equal(p.gaps[0].n_replicas, 1);
    placement_done(&p);
}

static void named_layers_go_where_they_are_named(void **state)
{
    const placement_part parts[] = {{"shed", 4}, {"nas", 8}};
    placement_model m = of((placement_shards){.parts = parts, .n_parts = 2});
    placement p = plan(HOME, 3, &m, 1, NULL, 0);
    expect(&p, 0, 2, 0, 4, PLACEMENT_NAMED);
    expect(&p, 1, 1, 4, 12, PLACEMENT_NAMED);
    placement_done(&p);
    placement_now now[] = {{.model = "chat", .node = "shed", .first = 0, .end = 4},
                           {.model = "chat", .node = "nas", .first = 4, .end = 12}};
    p = plan(HOME, 2, &m, 1, now, 2); /* the shed is gone: the nas keeps its layers, and waits */
    assert_int_equal(p.n_assignments, 1);
    expect(&p, 0, 1, 4, 12, PLACEMENT_STAYS);
    assert_int_equal(p.gaps[0].n_replicas, 1);
    placement_done(&p);
}

/* ---- any cluster --------------------------------------------------------------------------------- */

enum { NODES = 12, MODELS = 4, SEATS = 400 };

typedef struct world {
    uint64_t seed, n_drawn;
    node nodes[NODES];
    placement_model models[MODELS];
    size_t n_nodes, n_models;
    char names[NODES + MODELS][24];
} world;

static uint64_t draw(world *w, uint64_t n)
{
    return rng_mix(rng_mix(w->seed) ^ ++w->n_drawn) % n;
}

static void make_model(world *w, size_t i)
{
    split_shape s = {.n_layer = 1 + draw(w, 40),
                     .n_embd = 64,
                     .layer_bytes = (1 + draw(w, 10)) * GB / 20,
                     .outer_bytes = draw(w, 20) * GB / 20,
                     .kv_bytes = draw(w, 10) * GB / 20};
    placement_model *m = &w->models[i];
    *m = (placement_model){.name = w->names[NODES + i],
                           .n_replicas = 1,
                           .memory_bytes = s.n_layer * s.layer_bytes + s.outer_bytes + s.kv_bytes,
                           .battery = (placement_battery)draw(w, 3),
                           .shape = s};
    if (draw(w, 3) == 0)
        m->shards.automatic = true;
    else if (draw(w, 3))
        m->shards.n = 2 + draw(w, 6);
}

static void make_world(world *w, uint64_t seed)
{
    *w = (world){.seed = seed};
    w->n_nodes = 1 + draw(w, NODES);
    w->n_models = 1 + draw(w, MODELS);
    for (size_t i = 0; i < NODES + MODELS; i++) snprintf(w->names[i], sizeof w->names[i], "n%zu", i);
    for (size_t i = 0; i < w->n_nodes; i++)
        w->nodes[i] = (node){.name = w->names[i],
                             .n_cores = (unsigned)(1 + draw(w, 16)),
                             .memory_bytes = (1 + draw(w, 16)) * GB,
                             .bytes_per_s = draw(w, 2) ? 1e9 * (double)(1 + draw(w, 50)) : 0,
                             .rtt_ms = (double)draw(w, 50),
                             .on_battery = draw(w, 4) == 0,
                             .battery_percent = 50,
                             .unreached = i == 0};
    for (size_t i = 0; i < w->n_models; i++) make_model(w, i);
}

#define HOLDS(w, ok) \
    if (!(ok)) fail_msg("seed %llu: not %s", (unsigned long long)(w)->seed, #ok)

static bool is_gap(const placement *p, size_t model)
{
    for (size_t i = 0; i < p->n_gaps; i++)
        if (p->gaps[i].model == model) return true;
    return false;
}

/* Every layer is at one stage, or the model is said to be missing; the first stage reaches the others. */
static void check_layers(const world *w, const placement *p)
{
    for (size_t m = 0; m < w->n_models; m++) {
        unsigned n_at[64] = {0};
        size_t n_layer = w->models[m].shape.n_layer, n_whole = 0, first_at = SIZE_MAX;
        bool once = true, cut = placement_is_cut(&w->models[m].shards);
        for (size_t i = 0; i < p->n_assignments; i++) {
            const placement_assignment *s = &p->assignments[i];
            if (s->model != m) continue;
            if (s->end > 0 && s->first == 0) first_at = s->node;
            n_whole += s->end == 0;
            for (size_t k = s->first; k < s->end; k++) n_at[k]++;
        }
        for (size_t k = 0; k < n_layer; k++) {
            once = once && n_at[k] == 1;
            HOLDS(w, n_at[k] <= 1);
        }
        HOLDS(w, n_whole + once == 1 || is_gap(p, m));
        HOLDS(w, !(w->models[m].shards.n > 0 && n_whole > 0));
        HOLDS(w, cut || !once);
        for (size_t i = 0; once && i < p->n_assignments; i++)
            if (p->assignments[i].model == m && p->assignments[i].first > 0)
                HOLDS(w, !w->nodes[p->assignments[i].node].unreached || p->assignments[i].node == first_at);
    }
}

static void check_memory(const world *w, const placement *p)
{
    for (size_t at = 0; at < w->n_nodes; at++) {
        uint64_t taken = 0;
        for (size_t i = 0; i < p->n_assignments; i++) {
            const placement_assignment *s = &p->assignments[i];
            const placement_model *m = &w->models[s->model];
            if (s->node == at)
                taken += s->end ? split_memory(&m->shape, s->end - s->first, s->first == 0) : m->memory_bytes;
        }
        HOLDS(w, taken <= placement_budget_bytes(&w->nodes[at]));
    }
}

static placement plan_again(const world *w, const placement *p)
{
    static placement_now now[SEATS];
    for (size_t i = 0; i < p->n_assignments; i++) {
        const placement_assignment *s = &p->assignments[i];
        now[i] = (placement_now){.model = w->models[s->model].name,
                                 .node = w->nodes[s->node].name,
                                 .standby = s->standby,
                                 .first = s->first,
                                 .end = s->end};
    }
    return plan(w->nodes, w->n_nodes, w->models, w->n_models, now, p->n_assignments);
}

static void check_all(const world *w, const placement *p)
{
    check_layers(w, p);
    check_memory(w, p);
    placement again = plan_again(w, p);
    HOLDS(w, again.n_leavers == 0);
    HOLDS(w, again.n_assignments == p->n_assignments);
    for (size_t i = 0; i < again.n_assignments; i++) HOLDS(w, again.assignments[i].why == PLACEMENT_STAYS);
    placement_done(&again);
}

static void stages_are_right_in_any_cluster(void **state)
{
    static world w;
    size_t n_whole = 0, n_models = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        make_world(&w, seed);
        placement p = plan(w.nodes, w.n_nodes, w.models, w.n_models, NULL, 0);
        check_all(&w, &p);
        n_models += w.n_models;
        n_whole += w.n_models - p.n_gaps;
        placement_done(&p);
    }
    assert_true(n_whole > n_models / 2);
}

/* Machines drain, come back and change; each plan starts from the one before. */
static void stages_settle_after_every_change(void **state)
{
    static world w;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        make_world(&w, seed);
        placement p = plan(w.nodes, w.n_nodes, w.models, w.n_models, NULL, 0);
        for (int i = 0; i < 10; i++) {
            node *n = &w.nodes[draw(&w, w.n_nodes)];
            n->draining = draw(&w, 2) == 0;
            n->memory_bytes = (1 + draw(&w, 16)) * GB;
            placement next = plan_again(&w, &p);
            placement_done(&p);
            p = next;
            check_all(&w, &p);
        }
        placement_done(&p);
    }
}

static void stages_are_the_same_for_lists_in_another_order(void **state)
{
    static world w;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        make_world(&w, seed);
        node turned[NODES];
        for (size_t i = 0; i < w.n_nodes; i++) turned[i] = w.nodes[w.n_nodes - 1 - i];
        placement a = plan(w.nodes, w.n_nodes, w.models, w.n_models, NULL, 0);
        placement b = plan(turned, w.n_nodes, w.models, w.n_models, NULL, 0);
        HOLDS(&w, a.n_assignments == b.n_assignments);
        for (size_t i = 0; i < a.n_assignments; i++) {
            size_t k = 0;
            while (k < b.n_assignments && (b.assignments[k].model != a.assignments[i].model ||
                                           b.assignments[k].first != a.assignments[i].first ||
                                           b.assignments[k].end != a.assignments[i].end ||
                                           b.assignments[k].node != w.n_nodes - 1 - a.assignments[i].node))
                k++;
            HOLDS(&w, k < b.n_assignments);
        }
        placement_done(&a);
        placement_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_go_by_speed_and_stay),
        cmocka_unit_test(one_machine_has_all_stages_until_another_comes),
        cmocka_unit_test(a_lost_stage_is_relieved),
        cmocka_unit_test(auto_is_whole_where_it_can_be),
        cmocka_unit_test(named_layers_go_where_they_are_named),
        cmocka_unit_test(stages_are_right_in_any_cluster),
        cmocka_unit_test(stages_settle_after_every_change),
        cmocka_unit_test(stages_are_the_same_for_lists_in_another_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
