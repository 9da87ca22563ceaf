/* The keeper where things go wrong, or lie elsewhere than they seem: nothing that is served is removed, no
 * load goes on for ever, and what is kept is written down. */
#define _GNU_SOURCE
#include "keep_house.h"

/* ---- removing ------------------------------------------------------------------------------------------ */

/* A folder stays while a file in it is served, be it as a model, of the configuration or not, or an adapter.
 */
static void folder_of_what_is_served_stays(void **state)
{
    char path[160], adapter[160];
    house h;
    house_open(&h);
    make_folder(&h, "bundle");
    write_file(&h, "bundle/config.json");
    write_file(&h, "bundle/x.gguf");
    assert_int_equal(loaded(&h, "bundle/x.gguf", "x", 0).status, 0);
    assert_int_equal(removed(&h, "bundle", 0).status, 409);
    assert_true(is_there(&h, "bundle/x.gguf"));
    assert_int_equal(removed(&h, "bundle", KEEPER_UNLOAD).status, 0);
    assert_false(is_there(&h, "bundle"));
    assert_int_equal(n_replicas(&h, "x"), 0);

    make_folder(&h, "of");
    write_file(&h, "of/config.json");
    write_file(&h, "of/tone.gguf");
    snprintf(path, sizeof path, "%s/fixed.gguf", h.top);
    snprintf(adapter, sizeof adapter, "tone=%s/of/tone.gguf", h.top);
    worker_spec base = {.model = "fixed", .path = path, .n_replicas = 1, .adapters = {adapter}};
    assert_int_equal(keep_base(h.k, &base, 1, NULL), 0);
    asked a = removed(&h, "of", KEEPER_UNLOAD);
    assert_int_equal(a.status, 409);
    assert_non_null(strstr(a.message, "shoal.yaml names it"));
    base.path = adapter + 5;
    base.adapters[0] = NULL;
    assert_int_equal(keep_base(h.k, &base, 1, NULL), 0);
    assert_int_equal(removed(&h, "of", KEEPER_UNLOAD).status, 409);
    assert_true(is_there(&h, "of/tone.gguf"));
    house_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_of_what_is_served_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
