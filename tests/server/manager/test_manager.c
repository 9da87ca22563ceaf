/* The model manager over a cluster of the imagination: models come, fail, change and go; whoever asks is told once,
 * and the list of what is served is as it was when something failed. */
#define _GNU_SOURCE
#include "manager_world.h"

/* ---- the tests ----------------------------------------------------------------------------------------- */

static void model_comes_and_goes(void **state)
{
    house h;
    house_open(&h);
    asked a = loaded(&h, "a.gguf", NULL, 0);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.step, MODEL_MANAGER_READY);
    assert_string_equal(a.model, "a");
    assert_true(a.n_news > 0);
    assert_int_equal(n_replicas(&h, "a"), 1);
    assert_int_equal(loaded(&h, "a.gguf", NULL, 0).status, 0);
    assert_int_equal(h.n_ids, 2);
    assert_int_equal(loaded(&h, "a.gguf", NULL, 3).status, 0);
    assert_int_equal(n_replicas(&h, "a"), 3);
    assert_int_equal(loaded(&h, "a.gguf", NULL, 1).status, 0);
    assert_int_equal(h.n_ids, 2);
    assert_int_equal(loaded(&h, "b.gguf", "a", 0).status, 409);
    assert_int_equal(loaded(&h, "b.gguf", "fast", 0).status, 409); /* a route */
    assert_int_equal(loaded(&h, "b.gguf", "fixed", 0).status, 409);
    assert_int_equal(unloaded(&h, "a", 0).step, MODEL_MANAGER_UNLOADED);
    assert_int_equal(unloaded(&h, "a", 0).status, 404);
    assert_int_equal(h.n_ids, 1);
    house_close(&h);
}

static void what_fails_changes_nothing(void **state)
{
    house h;
    house_open(&h);
    asked a = loaded(&h, "broken.gguf", "x", 0);
    assert_int_equal(a.status, 422);
    assert_non_null(strstr(a.message, "it is no model"));
    assert_int_equal(loaded(&h, "dies.gguf", "x", 2).status, 422);
    assert_int_equal(loaded(&h, "none.gguf", "x", 0).status, 404);
    assert_int_equal(loaded(&h, "/etc/passwd", "x", 0).status, 403);
    h.refuses = true;
    assert_int_equal(loaded(&h, "a.gguf", "x", 0).status, 507);
    h.refuses = false;
    assert_int_equal(loaded(&h, "a.gguf", "x", 0).status, 0);
    h.refuses = true;
    assert_int_equal(loaded(&h, "a.gguf", "x", 4).status, 507);
    h.refuses = false;
    assert_int_equal(loaded(&h, "b.gguf", "y", 0).status, 0);
    assert_int_equal(n_replicas(&h, "x"), 1);
    assert_int_equal(h.n_ids, 3);
    house_close(&h);
}

static void configured_model_is_left_out_and_comes_back(void **state)
{
    house h;
    model_manager_fact f;
    house_open(&h);
    const model_manager *k = manager_interface(h.k);
    asked a = unloaded(&h, "fixed", 0);
    assert_int_equal(a.status, 409);
    assert_non_null(strstr(a.message, "the route fast"));
    assert_int_equal(unloaded(&h, "fixed", MODEL_MANAGER_FORCE).status, 0);
    assert_int_equal(h.n_ids, 0);
    assert_false(k->about(k->user, "fixed", &f));
    asked b = {0};
    model_manager_watch w = watch_of(&b);
    config_load_request wanted = {.what = "fixed", .keep_alive_s = LOAD_REQUEST_STAYS};
    api_error e;
    assert_non_null(k->load(k->user, &wanted, &w, &e));
    wait_for(&h, &b);
    assert_int_equal(b.status, 0);
    assert_true(k->about(k->user, "fixed", &f) && f.configured);
    assert_int_equal(n_replicas(&h, "fixed"), 1);
    house_close(&h);
}

static void many_ask_at_once(void **state)
{
    enum { N = 20 };
    asked a[N];
    house h;
    house_open(&h);
    for (int i = 0; i < N; i++) ask(&h, i % 2 ? "a.gguf" : "b.gguf", NULL, 0, &a[i]);
    unsigned before = h.n_sets;
    for (int i = 0; i < N; i++) wait_for(&h, &a[i]);
    for (int i = 0; i < N; i++) assert_int_equal(a[i].status, 0);
    assert_int_equal(h.n_ids, 3);
    assert_true(h.n_sets - before <= 2); /* one a model */
    for (int i = 0; i < N; i++) assert_int_equal(a[i].n_done, 1);
    house_close(&h);
}

/* Whoever leaves is told nothing, and the model comes all the same. */
static void leaving_ends_nothing(void **state)
{
    asked a;
    house h;
    house_open(&h);
    const model_manager *k = manager_interface(h.k);
    k->leave(ask(&h, "a.gguf", NULL, 0, &a));
    TURN_UNTIL(&h, n_replicas(&h, "a") != 0);
    assert_int_equal(n_replicas(&h, "a"), 1);
    assert_int_equal(a.n_done + a.n_news, 0);
    house_close(&h);
}

static void unload_ends_a_load(void **state)
{
    asked a;
    house h;
    house_open(&h);
    ask(&h, "a.gguf", NULL, 0, &a);
    LOOP_UNTIL(&h, h.n_ids >= 2);
    assert_int_equal(a.n_done, 0);
    assert_int_equal(unloaded(&h, "a", 0).status, 0);
    assert_int_equal(a.n_done, 1);
    assert_int_equal(a.status, 409);
    assert_int_equal(h.n_ids, 1);
    house_close(&h);
}

static void unload_waits_for_what_leaves(void **state)
{
    house h;
    asked a = {0};
    api_error e;
    house_open(&h);
    const model_manager *k = manager_interface(h.k);
    assert_int_equal(loaded(&h, "a.gguf", NULL, 0).status, 0);
    h.slow = true;
    model_manager_watch w = watch_of(&a);
    assert_non_null(k->unload(k->user, "a", 0, &w, &e));
    for (int i = 0; i < 50; i++) turn(&h);
    assert_int_equal(a.n_done, 0);
    drop(&h, 1);
    wait_for(&h, &a);
    assert_int_equal(a.status, 0);
    house_close(&h);
}

static void idle_model_goes(void **state)
{
    house h;
    model_manager_fact f;
    house_open(&h);
    const model_manager *k = manager_interface(h.k);
    assert_int_equal(loaded(&h, "a.gguf", NULL, 0).status, 0);
    assert_true(k->about(k->user, "a", &f) && !f.goes);
    k->stay(k->user, "a", 30);
    k->stay(k->user, "fixed", 1); /* of the configuration: it stays */
    assert_true(k->about(k->user, "a", &f) && f.goes && f.left_ms <= 30000);
    env_sim_run(h.world.time, 40000);
    TURN_UNTIL(&h, h.n_ids <= 1);
    assert_int_equal(h.n_ids, 1);
    assert_string_equal(h.ids[0], "fixed/0");
    house_close(&h);
}

static void what_is_kept_comes_again(void **state)
{
    house h;
    struct stat st;
    house_open(&h);
    const model_manager *k = manager_interface(h.k);
    config_load_request w = {.as = {.path = "a.gguf", .name = "kept", .replicas = 2},
                             .keep_alive_s = LOAD_REQUEST_STAYS,
                             .keep = true};
    asked a = {0};
    model_manager_watch watch = watch_of(&a);
    api_error e;
    assert_non_null(k->load(k->user, &w, &watch, &e));
    wait_for(&h, &a);
    TURN_UNTIL(&h, stat(h.book, &st) == 0);
    manager_end(&h);
    while (h.n_ids > 0) drop(&h, 0);
    manager_start(&h);
    manager_restore(h.k);
    TURN_UNTIL(&h, n_replicas(&h, "kept") >= 2);
    assert_int_equal(n_replicas(&h, "kept"), 2);
    house_close(&h);
}

/* Whoever waits hears that the server stops, once; nothing new begins. */
static void drain_tells_who_waits(void **state)
{
    asked a, b;
    house h;
    api_error e;
    house_open(&h);
    const model_manager *k = manager_interface(h.k);
    ask(&h, "a.gguf", NULL, 0, &a);
    ask(&h, "b.gguf", NULL, 0, &b);
    manager_drain(h.k);
    wait_for(&h, &a);
    wait_for(&h, &b);
    assert_int_equal(a.status, 503);
    config_load_request w = {.what = "a.gguf"};
    model_manager_watch watch = watch_of(&a);
    assert_null(k->load(k->user, &w, &watch, &e));
    assert_int_equal(e.status, 503);
    house_close(&h);
}

/* The same thousand comings and goings, in no order, with failures among them. */
static void storm_leaves_what_was(void **state)
{
    static const char *const files[] = {"a.gguf", "b.gguf", "broken.gguf", "dies.gguf", "none.gguf"};
    enum { N = 40, ROUNDS = 25 };
    asked a[N];
    house h;
    unsigned seed = 7;
    house_open(&h);
    const model_manager *k = manager_interface(h.k);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            char name[16];
            api_error e;
            a[i] = (asked){0};
            model_manager_watch w = watch_of(&a[i]);
            snprintf(name, sizeof name, "m%d", rand_r(&seed) % 5);
            config_load_request wanted = {
                .as = {.path = files[rand_r(&seed) % 5], .name = name, .replicas = 1 + rand_r(&seed) % 2},
                .keep_alive_s = LOAD_REQUEST_STAYS};
            model_manager_ticket *t =
                rand_r(&seed) % 3 ? k->load(k->user, &wanted, &w, &e) : k->unload(k->user, name, 0, &w, &e);
            if (!t) a[i].n_done = 1; /* so many are under way */
            if (t && rand_r(&seed) % 4 == 0) {
                k->leave(t);
                a[i].n_done = 1;
            }
            if (rand_r(&seed) % 3 == 0) turn(&h);
        }
        for (int i = 0; i < N; i++) wait_for(&h, &a[i]);
    }
    calm_down(&h); /* what was left to itself is looked for no longer: unload finds it, or it failed */
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        for (int tries = 0; tries < 50 && unloaded(&h, name, 0).status != 404; tries++) continue;
    }
    for (int i = 0; i < 20; i++) turn(&h);
    assert_int_equal(h.n_ids, 1);
    assert_int_equal(h.n_wanted, 1);
    house_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_comes_and_goes),
        cmocka_unit_test(what_fails_changes_nothing),
        cmocka_unit_test(configured_model_is_left_out_and_comes_back),
        cmocka_unit_test(many_ask_at_once),
        cmocka_unit_test(leaving_ends_nothing),
        cmocka_unit_test(unload_ends_a_load),
        cmocka_unit_test(unload_waits_for_what_leaves),
        cmocka_unit_test(idle_model_goes),
        cmocka_unit_test(what_is_kept_comes_again),
        cmocka_unit_test(drain_tells_who_waits),
        cmocka_unit_test(storm_leaves_what_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
