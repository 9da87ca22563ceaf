/* The model manager where things go wrong, or lie elsewhere than they seem: nothing that is served is removed, no
 * load goes on for ever, and what is kept is written down. */
#define _GNU_SOURCE
#include "manager_world.h"

#include "base/file.h"
#include "fetch/pull_manifest.h"

/* ---- where models are ---------------------------------------------------------------------------------- */

/* A program that stands for `shoal pull`: what it does is a line of a shell's, and $folder is where to. */
static void write_program(house *h, char path[160], const char *does)
{
    snprintf(path, 160, "%s/pull.sh", h->top);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\nfolder=$4\nmkdir -p \"$folder\"\n%s\n", does);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0700), 0);
    h->program = path;
}

static const char ONE_FILE[] = "echo weights >\"$folder/got.gguf\"\n"
                               "echo '{\"model\": \"'\"$folder\"'/got.gguf\", \"in_manifest\": false}'";

static model_manager_ticket *ask_for(house *h, const char *what, asked *a)
{
    const model_manager *k = manager_interface(h->k);
    config_load_request w = {.what = what, .keep_alive_s = LOAD_REQUEST_STAYS};
    model_manager_watch watch = watch_of(a);
    api_error e;
    *a = (asked){0};
    model_manager_ticket *t = k->load(k->user, &w, &watch, &e);
    assert_non_null(t);
    return t;
}

/* A store that is not there yet is made by the first fetch, and what came is found in it. */
static void store_may_be_relative_and_missing(void **state)
{
    static const char *const stores[] = {"new", "new/./deep//models/", "none/../new", "link/new"};
    char program[160], was[4096];
    assert_non_null(getcwd(was, sizeof was));
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        asked a;
        house h;
        house_open(&h);
        make_folder(&h, "real");
        assert_int_equal(chdir(h.top), 0);
        assert_int_equal(symlink("real", "link"), 0);
        write_program(&h, program, ONE_FILE);
        manager_end(&h);
        h.store = stores[i];
        manager_start(&h);
        assert_int_equal(chdir(was), 0); /* what was said at the start counts */
        ask_for(&h, "hf:org/one", &a);
        wait_for(&h, &a);
        assert_string_equal(a.message, "");
        assert_int_equal(n_replicas(&h, "got"), 1);
        assert_int_equal(loaded(&h, "got.gguf", "again", 0).status, 0);
        house_close(&h);
    }
}

/* A models.json in the root folder opens that folder alone. */
static void manifest_of_the_root_opens_no_machine(void **state)
{
    char path[160];
    house h;
    house_open(&h);
    manager_end(&h);
    make_folder(&h, "store");
    char store[160];
    snprintf(store, sizeof store, "%s/store", h.top);
    h.store = store;
    h.manifest = "/models.json";
    manager_start(&h);
    snprintf(path, sizeof path, "%s/a.gguf", h.top);
    assert_int_equal(loaded(&h, path, "x", 0).status, 403);
    assert_int_equal(loaded(&h, "/etc/passwd", "x", 0).status, 403);
    write_file(&h, "store/in.gguf");
    assert_int_equal(loaded(&h, "in.gguf", "x", 0).status, 0);
    house_close(&h);
}

/* ---- room ---------------------------------------------------------------------------------------------- */

static void say_free(const house *h, unsigned mib)
{
    char path[160];
    make_folder(h, "proc");
    snprintf(path, sizeof path, "%s/proc/meminfo", h->top);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "MemAvailable: %u kB\n", mib << 10);
    assert_int_equal(fclose(f), 0);
}

/* Replicas that go take no room from others that come meanwhile. */
static void fewer_replicas_need_nothing(void **state)
{
    asked less;
    house h;
    house_open(&h);
    say_free(&h, 300);
    assert_int_equal(loaded(&h, "a.gguf", "a", 3).status, 0);
    assert_int_equal(loaded(&h, "b.gguf", "b", 5).status, 507);
    h.slow = true;
    ask(&h, "a.gguf", "a", 1, &less);
    unsigned before = h.n_sets;
    LOOP_UNTIL(&h, h.n_sets != before);
    assert_int_equal(loaded(&h, "b.gguf", "b", 1).status, 0);
    assert_int_equal(loaded(&h, "b.gguf", "c", 5).status, 507);
    house_close(&h);
}

/* A file of holes may be of any size: what it needs is no small number once more. */
static void sum_of_sizes_has_no_end(void **state)
{
    char store[] = "/dev/shm/shoal_keep_XXXXXX", path[64];
    house h;
    if (!mkdtemp(store)) skip();
    snprintf(path, sizeof path, "%s/holes.gguf", store);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    int rc = ftruncate(fileno(f), (off_t)1 << 58);
    assert_int_equal(fclose(f), 0);
    if (rc == 0) {
        house_open(&h);
        say_free(&h, 8192); /* more than the 4096 MiB of 64 x (2^58 + 2^26) without its upper bits */
        manager_end(&h);
        h.store = store;
        manager_start(&h);
        assert_int_equal(loaded(&h, "holes.gguf", "holes", 64).status, 507);
        house_close(&h);
    }
    assert_int_equal(unlink(path) | rmdir(store), 0);
    if (rc != 0) skip(); /* no file there may be so long */
}

/* ---- loads that would not end -------------------------------------------------------------------------- */

static void later(house *h, const asked *a, unsigned minutes)
{
    for (unsigned i = 0; i < minutes * 60 && a->n_done == 0; i++) {
        env_sim_run(h->world.time, 1000);
        uv_run(&h->loop, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < 20; i++) uv_run(&h->loop, UV_RUN_NOWAIT);
}

/* A worker that never listens is given up, all who wait hear it, and the place is free. */
static void load_that_hangs_ends(void **state)
{
    asked a, b;
    house h;
    house_open(&h);
    write_file(&h, "hangs.gguf");
    ask(&h, "hangs.gguf", "x", 0, &a);
    ask(&h, "hangs.gguf", "x", 2, &b);
    LOOP_UNTIL(&h, a.step == MODEL_MANAGER_STARTING &&
                       b.step == MODEL_MANAGER_STARTING); /* their limit counts from here */
    later(&h, &a, 5);
    assert_int_equal(a.n_done + b.n_done, 0);
    later(&h, &a, 6);
    wait_for(&h, &a);
    wait_for(&h, &b);
    assert_int_equal(a.status, 504);
    assert_int_equal(b.status, 504);
    assert_non_null(strstr(a.message, "not ready within 600 s"));
    assert_int_equal(h.n_hurries, 1);
    assert_int_equal(h.n_ids, 1);
    assert_int_equal(loaded(&h, "a.gguf", "x", 0).status, 0);
    house_close(&h);
}

/* Nobody writes into that pipe: it would be read until the end of days. */
static void pipes_are_not_waited_for(void **state)
{
    char path[160];
    house h;
    house_open(&h);
    make_folder(&h, "bundle");
    write_file(&h, "bundle/config.json");
    snprintf(path, sizeof path, "%s/bundle/model.safetensors", h.top);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/models.json", h.top);
    assert_int_equal(mkfifo(path, 0600), 0);
    asked a = loaded(&h, "bundle", NULL, 0);
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(a.message, "neither a file nor a folder"));
    file_map map;
    assert_int_equal(file_map_open(&map, path, NULL), SHOAL_EINVALID);
    ask_for(&h, "nothing", &a);
    wait_for(&h, &a);
    assert_int_equal(a.status, 404);
    house_close(&h);
}

/* ---- the book ------------------------------------------------------------------------------------------ */

static void book_says(const house *h, char *ret, size_t size)
{
    FILE *f = fopen(h->book, "r");
    size_t n = f ? fread(ret, 1, size - 1, f) : 0;
    ret[n] = '\0';
    if (f) fclose(f);
}

static unsigned n_in_book(const house *h, const char *word)
{
    char text[4096];
    unsigned n = 0;
    book_says(h, text, sizeof text);
    for (const char *at = text; (at = strstr(at, word)); at++) n++;
    return n;
}

static asked loaded_to_stay(house *h, const char *path, const char *name)
{
    const model_manager *k = manager_interface(h->k);
    config_load_request w = {
        .as = {.path = path, .name = name}, .keep_alive_s = LOAD_REQUEST_STAYS, .keep = true};
    asked a = {0};
    model_manager_watch watch = watch_of(&a);
    api_error e;
    assert_non_null(k->load(k->user, &w, &watch, &e));
    wait_for(h, &a);
    return a;
}

static void start_again(house *h)
{
    manager_end(h);
    while (h->n_ids > 0) drop(h, 0);
    manager_start(h);
    manager_restore(h->k);
}

/* Each start finds in the book what the one before found, be an entry written by hand or twice. */
static void book_does_not_grow(void **state)
{
    house h;
    house_open(&h);
    assert_int_equal(loaded_to_stay(&h, "a.gguf", "a").status, 0);
    manager_end(&h);
    assert_int_equal(n_in_book(&h, "a.gguf"), 1);
    FILE *f = fopen(h.book, "w");
    assert_non_null(f);
    fputs("{\"models\": [{\"path\": \"a.gguf\"}, {\"path\": \"a.gguf\", \"keep\": true}, "
          "{\"path\": \"b.gguf\", \"name\": \"b\"}, {\"path\": \"gone.gguf\", \"name\": \"g\"}]}",
          f);
    assert_int_equal(fclose(f), 0);
    manager_start(&h);
    for (int i = 0; i < 3; i++) {
        start_again(&h);
        TURN_UNTIL(&h, n_replicas(&h, "a") + n_replicas(&h, "b") >= 2);
        for (int n = 0; n < 50; n++) turn(&h);
        assert_int_equal(n_replicas(&h, "a") + n_replicas(&h, "b"), 2);
        manager_end(&h);
        assert_int_equal(n_in_book(&h, "a.gguf"), 1);
        assert_int_equal(n_in_book(&h, "b.gguf"), 1);
        assert_int_equal(n_in_book(&h, "gone.gguf"), 1);
        manager_start(&h);
    }
    house_close(&h);
}

/* However much is under way, what was unloaded leaves the book. */
static void book_is_written_beside_many_loads(void **state)
{
    enum { N = 63 };
    asked a[N];
    house h;
    house_open(&h);
    write_file(&h, "hangs.gguf");
    assert_int_equal(loaded_to_stay(&h, "a.gguf", "a").status, 0);
    TURN_UNTIL(&h, n_in_book(&h, "a.gguf") != 0);
    calm_down(&h); /* nothing else is under way */
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%d", i);
        ask(&h, "hangs.gguf", name, 0, &a[i]);
    }
    assert_int_equal(unloaded(&h, "a", 0).status, 0);
    manager_end(&h);
    assert_int_equal(n_in_book(&h, "a.gguf"), 0);
    manager_start(&h);
    house_close(&h);
}

static void nap(uv_work_t *w)
{
    usleep(200000);
}

static void napped(uv_work_t *w, int status) {}

/* What changes while the book is written is written before the end. */
static void book_is_whole_at_the_end(void **state)
{
    uv_work_t naps[8];
    house h;
    house_open(&h);
    assert_int_equal(loaded_to_stay(&h, "a.gguf", "a").status, 0);
    assert_int_equal(loaded_to_stay(&h, "b.gguf", "b").status, 0);
    TURN_UNTIL(&h, n_in_book(&h, ".gguf") >= 2);
    for (size_t i = 0; i < sizeof naps / sizeof *naps; i++) uv_queue_work(&h.loop, &naps[i], nap, napped);
    assert_int_equal(unloaded(&h, "a", 0).status, 0);
    assert_int_equal(unloaded(&h, "b", 0).status, 0);
    manager_end(&h);
    assert_int_equal(n_in_book(&h, ".gguf"), 0);
    manager_start(&h);
    house_close(&h);
}

/* Who asks that a model be kept hears when it is, or why it is not; no folder of this machine is told. */
static void kept_is_said_when_it_is_written(void **state)
{
    uv_work_t naps[8];
    house h;
    house_open(&h);
    for (size_t i = 0; i < sizeof naps / sizeof *naps; i++) uv_queue_work(&h.loop, &naps[i], nap, napped);
    assert_int_equal(loaded_to_stay(&h, "a.gguf", "a").status, 0);
    assert_int_equal(n_in_book(&h, "a.gguf"), 1);
    assert_int_equal(unloaded(&h, "a", 0).status, 0);
    assert_int_equal(n_in_book(&h, "a.gguf"), 0);
    assert_int_equal(unlink(h.book), 0);
    assert_int_equal(mkdir(h.book, 0700), 0); /* nothing can be written there */
    asked a = loaded_to_stay(&h, "a.gguf", "a");
    assert_int_equal(a.status, 500);
    assert_non_null(strstr(a.message, "'a' is loaded, but not yet kept"));
    assert_null(strstr(a.message, h.top));
    assert_int_equal(n_replicas(&h, "a"), 1);
    assert_int_equal(loaded(&h, "b.gguf", "b", 0).status, 0); /* nobody asked for more */
    assert_int_equal(rmdir(h.book), 0);
    assert_int_equal(loaded_to_stay(&h, "a.gguf", "a").status, 0);
    assert_int_equal(n_in_book(&h, "a.gguf"), 1);
    assert_int_equal(unlink(h.book), 0);
    assert_int_equal(mkdir(h.book, 0700), 0);
    assert_non_null(strstr(unloaded(&h, "a", 0).message, "'a' is unloaded, but the next start"));
    assert_int_equal(n_replicas(&h, "a"), 0);
    assert_int_equal(rmdir(h.book), 0);
    house_close(&h);
}

/* A server without a state folder refuses at once what it could not keep. */
static void without_a_book_nothing_is_kept(void **state)
{
    house h;
    house_open(&h);
    *h.book = '\0';
    start_again(&h);
    const model_manager *k = manager_interface(h.k);
    config_load_request w = {
        .as = {.path = "a.gguf", .name = "a"}, .keep_alive_s = LOAD_REQUEST_STAYS, .keep = true};
    asked a = {0};
    model_manager_watch watch = watch_of(&a);
    api_error e;
    assert_null(k->load(k->user, &w, &watch, &e));
    assert_int_equal(e.status, 500);
    assert_non_null(strstr(e.message, "no state folder"));
    assert_int_equal(n_replicas(&h, "a"), 0);
    assert_int_equal(loaded(&h, "a.gguf", "a", 0).status, 0);
    house_close(&h);
}

/* ---- fetching ------------------------------------------------------------------------------------------ */

/* Its first run goes on until it is stopped, and says so in the file "first". */
static const char SLOW_ONCE[] = "if [ ! -e \"$folder/first\" ]; then\n"
                                "    trap 'echo shoal pull: stopped >&2; exit 1' TERM\n"
                                "    : >\"$folder/first\"\n"
                                "    while :; do sleep 0.02; done\n"
                                "fi\n"
                                "echo weights >\"$folder/got.gguf\"\n"
                                "echo '{\"model\": \"'\"$folder\"'/got.gguf\", \"in_manifest\": false}'";

static model_manager_ticket *fetch(house *h, asked *a)
{
    const model_manager *k = manager_interface(h->k);
    model_manager_watch w = watch_of(a);
    api_error e;
    *a = (asked){0};
    model_manager_ticket *t = k->fetch(k->user, "hf:org/one", &w, &e);
    assert_non_null(t);
    return t;
}

/* Whoever asks while the download of another, who left, is being stopped gets the model all the same. */
static void fetch_begins_again_for_who_comes_late(void **state)
{
    char program[160];
    asked a, b;
    house h;
    house_open(&h);
    write_program(&h, program, SLOW_ONCE);
    manager_end(&h);
    manager_start(&h);
    const model_manager *k = manager_interface(h.k);
    model_manager_ticket *t = fetch(&h, &a);
    TURN_UNTIL(&h, is_there(&h, "first"));
    assert_true(is_there(&h, "first"));
    k->leave(t);
    fetch(&h, &b);
    wait_for(&h, &b);
    assert_string_equal(b.message, "");
    assert_int_equal(b.step, MODEL_MANAGER_FETCHED);
    assert_int_equal(a.n_done, 0);
    house_close(&h);
}

/* Who leaves before it begins has asked for nothing. */
static void fetch_that_was_left_at_once_never_begins(void **state)
{
    char program[160];
    asked a, b;
    house h;
    house_open(&h);
    write_program(&h, program, "echo run >>\"$folder/runs\"");
    manager_end(&h);
    manager_start(&h);
    const model_manager *k = manager_interface(h.k);
    k->leave(fetch(&h, &a));
    for (int i = 0; i < 500; i++) turn(&h);
    assert_false(is_there(&h, "runs"));
    fetch(&h, &b);
    wait_for(&h, &b);
    assert_int_equal(b.status, 502);
    assert_true(is_there(&h, "runs"));
    house_close(&h);
}

/* ---- removing ------------------------------------------------------------------------------------------ */

/* As `shoal pull` says it of a folder. */
static void note_pulled(const house *h, const char *name, const char *file)
{
    const char *const files[] = {"config.json", file};
    char path[160];
    snprintf(path, sizeof path, "%s/%s", h->top, name);
    assert_int_equal(pull_manifest_note_folder(path, "hf:a/b", files, 2, NULL), 0);
}

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
    assert_int_equal(removed(&h, "bundle", MODEL_MANAGER_FORCE).status, 403); /* not pulled */
    note_pulled(&h, "bundle", "x.gguf");
    assert_int_equal(removed(&h, "bundle", 0).status, 409);
    assert_true(is_there(&h, "bundle/x.gguf"));
    assert_int_equal(removed(&h, "bundle", MODEL_MANAGER_UNLOAD).status, 0);
    assert_false(is_there(&h, "bundle"));
    assert_int_equal(n_replicas(&h, "x"), 0);

    make_folder(&h, "of");
    write_file(&h, "of/config.json");
    write_file(&h, "of/tone.gguf");
    snprintf(path, sizeof path, "%s/fixed.gguf", h.top);
    snprintf(adapter, sizeof adapter, "tone=%s/of/tone.gguf", h.top);
    worker_spec base = {.model = "fixed", .path = path, .n_replicas = 1, .adapters = {adapter}};
    assert_int_equal(manager_base(h.k, &base, 1, NULL), 0);
    note_pulled(&h, "of", "tone.gguf");
    asked a = removed(&h, "of", MODEL_MANAGER_UNLOAD);
    assert_int_equal(a.status, 409);
    assert_non_null(strstr(a.message, "shoal.yaml names it"));
    base.path = adapter + 5;
    base.adapters[0] = NULL;
    assert_int_equal(manager_base(h.k, &base, 1, NULL), 0);
    assert_int_equal(removed(&h, "of", MODEL_MANAGER_UNLOAD).status, 409);
    assert_true(is_there(&h, "of/tone.gguf"));
    house_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_may_be_relative_and_missing),
        cmocka_unit_test(manifest_of_the_root_opens_no_machine),
        cmocka_unit_test(fewer_replicas_need_nothing),
        cmocka_unit_test(sum_of_sizes_has_no_end),
        cmocka_unit_test(load_that_hangs_ends),
        cmocka_unit_test(pipes_are_not_waited_for),
        cmocka_unit_test(book_does_not_grow),
        cmocka_unit_test(book_is_written_beside_many_loads),
        cmocka_unit_test(book_is_whole_at_the_end),
        cmocka_unit_test(kept_is_said_when_it_is_written),
        cmocka_unit_test(without_a_book_nothing_is_kept),
        cmocka_unit_test(fetch_begins_again_for_who_comes_late),
        cmocka_unit_test(fetch_that_was_left_at_once_never_begins),
        cmocka_unit_test(folder_of_what_is_served_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
