/* What is remembered of models whose machines are away, in simulated time: calls wait, are told, or hear that
 * there is no such model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../cluster/sim_workers.h"

#include "logging/log.h"
#include "cluster/route.h"
#include "control/residency.h"

#define S UINT64_C(1000000000)

typedef struct house {
    sim_world world;
    registry *g;
    source *s;
    residency r;
    uint64_t now_ns;
} house;

static void house_open(house *h)
{
    *h = (house){.now_ns = S};
    log_setup(LOG_OFF, false);
    sim_world_open(&h->world, 1);
    connector how = sim_connector(&h->world);
    assert_int_equal(registry_new_with(&h->g, h->world.e, &how, NULL), 0);
    assert_int_equal(source_open(&h->s, h->g, "agents", NULL), 0);
}

static void house_close(house *h)
{
    residency_done(&h->r);
    registry_free(h->g);
    sim_world_close(&h->world);
}

/* The listener looks around every second. */
static void pass(house *h, uint64_t seconds)
{
    for (uint64_t i = 0; i < seconds; i++) {
        h->now_ns += S;
        env_sim_run(h->world.time, 1000);
        residency_look(&h->r, h->g, h->now_ns);
    }
}

static void serve(house *h, const char *node)
{
    char id[40];
    snprintf(id, sizeof id, "%s/m/0", node);
    sim_worker_at(&h->world, "sim:a");
    member m = {.id = id, .generation = 1, .model = "m", .address = "sim:a"};
    assert_int_equal(source_put(h->s, &m, NULL), 0);
    assert_int_equal(residency_served(&h->r, h->g, "m", node, NULL), 0);
    pass(h, 1);
}

static void leave(house *h, const char *node)
{
    char id[40];
    snprintf(id, sizeof id, "%s/m/0", node);
    source_drop(h->s, id, 1);
}

/* Do calls wait for a replica? */
static bool waits(const house *h)
{
    return route_may_return(h->g, "m", NULL, 0, NULL, 0);
}

static void calls_wait_for_the_last_machine_that_is_away(void **state)
{
    house h;
    house_open(&h);
    serve(&h, "pi");
    leave(&h, "pi");
    pass(&h, 60);
    assert_true(waits(&h));
    serve(&h, "pi");
    pass(&h, 60);
    assert_int_equal(registry_find(h.g, "m")->n_ready, 1);
    house_close(&h);
}

static void a_model_that_nobody_has_any_more_is_retired(void **state)
{
    house h;
    house_open(&h);
    serve(&h, "pi");
    serve(&h, "attic");
    leave(&h, "pi");
    residency_lacks(&h.r, "m", "pi"); /* attic has it still */
    leave(&h, "attic");
    pass(&h, 60);
    assert_true(waits(&h));
    residency_lacks(&h.r, "m", "attic");
    pass(&h, RESIDENCY_RETIRE_MS / 1000 + 1);
    assert_null(registry_find(h.g, "m"));
    assert_int_equal(h.r.n, 0);
    serve(&h, "pi"); /* and once more */
    assert_non_null(registry_find(h.g, "m"));
    house_close(&h);
}

static void a_machine_that_has_just_come_back_may_still_be_told_to_serve(void **state)
{
    house h;
    house_open(&h);
    serve(&h, "pi");
    leave(&h, "pi");
    residency_lacks_others(&h.r, "pi", NULL, NULL);
    pass(&h, RESIDENCY_RETIRE_MS / 1000 - 1);
    serve(&h, "pi");
    leave(&h, "pi");
    pass(&h, 60);
    assert_non_null(registry_find(h.g, "m"));
    house_close(&h);
}

static void a_model_whose_machines_have_long_been_away_is_refused_with_a_sentence(void **state)
{
    house h;
    house_open(&h);
    serve(&h, "pi");
    leave(&h, "pi");
    pass(&h, RESIDENCY_AWAY_MS / 1000 - 1);
    assert_true(waits(&h));
    pass(&h, 3);
    assert_false(waits(&h));
    assert_string_equal(registry_find(h.g, "m")->absent,
                        "pi, which served it, has been away for over 10 minutes");
    serve(&h, "pi");
    leave(&h, "pi");
    pass(&h, RESIDENCY_AWAY_MS / 1000 - 1);
    assert_true(waits(&h));
    pass(&h, 3);
    assert_false(waits(&h));
    assert_string_equal(registry_find(h.g, "m")->absent,
                        "pi, which served it, has been away for over 10 minutes");
    serve(&h, "pi");
    leave(&h, "pi");
    pass(&h, 60); /* it was back, and so it is waited for again */
    assert_true(waits(&h));
    house_close(&h);
}

/* What a gateway has in its configuration is not a machine's to take away. */
static void a_model_that_others_declared_stays(void **state)
{
    house h;
    house_open(&h);
    assert_int_equal(registry_declare(h.g, "m", NULL), 0);
    serve(&h, "pi");
    leave(&h, "pi");
    residency_lacks(&h.r, "m", "pi");
    pass(&h, 60);
    assert_int_equal(h.r.n, 0);
    assert_non_null(registry_find(h.g, "m"));
    house_close(&h);
}

static void names_and_machines_without_end_take_bounded_room(void **state)
{
    house h;
    char name[64];
    house_open(&h);
    for (int i = 0; i < RESIDENCY_MODELS_MAX + 10; i++) {
        snprintf(name, sizeof name, "model-%d", i);
        assert_int_equal(residency_served(&h.r, h.g, name, "pi", NULL), 0);
    }
    assert_int_equal(h.r.n, RESIDENCY_MODELS_MAX);
    for (int i = 0; i < 3 * RESIDENCY_NODES_MAX; i++) {
        snprintf(name, sizeof name, "node-%d", i);
        assert_int_equal(residency_served(&h.r, h.g, "model-0", name, NULL), 0);
    }
    residency_lacks_others(&h.r, "pi", NULL, NULL);
    pass(&h, RESIDENCY_RETIRE_MS / 1000 + 2);
    assert_int_equal(h.r.n, 1);
    house_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_wait_for_the_last_machine_that_is_away),
        cmocka_unit_test(a_model_that_nobody_has_any_more_is_retired),
        cmocka_unit_test(a_machine_that_has_just_come_back_may_still_be_told_to_serve),
        cmocka_unit_test(a_model_whose_machines_have_long_been_away_is_refused_with_a_sentence),
        cmocka_unit_test(a_model_that_others_declared_stays),
        cmocka_unit_test(names_and_machines_without_end_take_bounded_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
