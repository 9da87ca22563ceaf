/* What a process learnt of its steps, kept for the next one: bytes that lie, and starts with a folder. */
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "infer/stage.h"
#include "start.h"

static char dir[] = "/tmp/shoal-pace-XXXXXX";
static const packed_store store = {.folder = dir, .min_bytes = 1 << 30}; /* no images */

static const sha256_digest key = {.bytes = {1, 2, 3}};

static step_cost_known some_lines(void)
{
    step_cost_known known = {0};
    for (int i = 0; i < STEP_WAYS * STEP_KINDS; i++) {
        known.of[i / STEP_WAYS][i % STEP_WAYS].fixed_ns = 1e5 + i;
        known.of[i / STEP_WAYS][i % STEP_WAYS].token_ns = 0.1 * i;
    }
    return known;
}

static void lines_come_back_as_they_were(void **state)
{
    uint8_t bytes[STEP_COST_FILE_BYTES];
    step_cost_known known = some_lines(), back;
    step_cost_file_write(bytes, &key, &known);
    must(step_cost_file_read(&back, bytes, sizeof bytes, &key, &err));
    assert_memory_equal(&known, &back, sizeof known);
}

static void no_bit_of_it_may_differ(void **state)
{
    uint8_t bytes[STEP_COST_FILE_BYTES + 1] = {0};
    step_cost_known known = some_lines(), back = {0}, zeros = {0};
    sha256_digest other = {.bytes = {1, 2, 4}};
    shoal_err err;
    step_cost_file_write(bytes, &key, &known);
    for (size_t i = 0; i < STEP_COST_FILE_BYTES; i++) {
        bytes[i] ^= 16;
        assert_int_equal(step_cost_file_read(&back, bytes, STEP_COST_FILE_BYTES, &key, &err), SHOAL_EFORMAT);
        bytes[i] ^= 16;
    }
    for (size_t n = 0; n < STEP_COST_FILE_BYTES; n++)
        assert_int_equal(step_cost_file_read(&back, bytes, n, &key, &err), SHOAL_EFORMAT);
    assert_int_equal(step_cost_file_read(&back, bytes, STEP_COST_FILE_BYTES + 1, &key, &err), SHOAL_EFORMAT);
    assert_int_equal(step_cost_file_read(&back, bytes, STEP_COST_FILE_BYTES, &other, &err), SHOAL_EDIGEST);
    assert_memory_equal(&back, &zeros, sizeof back);
}

/* ---- starts --------------------------------------------------------------------------------------- */

static size_t n_kept(char *ret_path, size_t size)
{
    glob_t g;
    char pattern[64];
    snprintf(pattern, sizeof pattern, "%s/*.pace", dir);
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    if (n && ret_path) snprintf(ret_path, size, "%s", g.gl_pathv[0]);
    globfree(&g);
    return n;
}

static start begin(const packed_store *s, int n_threads)
{
    return open_start(SHOAL_GGUF_DIR "/llama-gqa.gguf", &(model_options){.store = s}, n_threads);
}

static bool recalls(const packed_store *s, int n_threads)
{
    start x = begin(s, n_threads);
    const step_cost_ways *w = &x.e->step_cost.of[STEP_DECODE];
    bool known = w->way[0].n_seen > 0 && w->way[1].n_seen > 0;
    if (known) assert_true(w->way[0].fixed_ns > w->way[1].fixed_ns);
    close_start(&x);
    return known;
}

/* As if it had run steps: no request does, so nobody else looks at its step costs. */
static void learn(const packed_store *s)
{
    start x = begin(s, 2);
    for (int i = 0; i < 8; i++)
        step_cost_note(&x.e->step_cost, STEP_DECODE, 1, 1 + i % 2, i % 2 ? 100000 : 180000);
    close_start(&x);
}

static int empty_folder(void **state)
{
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -f %s/*", dir);
    chmod(dir, S_IRWXU);
    return system(cmd);
}

static void the_next_process_begins_with_what_this_one_learnt(void **state)
{
    struct stat st;
    char path[128];
    assert_false(recalls(&store, 2));
    assert_int_equal(n_kept(NULL, 0), 0); /* nothing was learnt */
    learn(&store);
    assert_int_equal(n_kept(path, sizeof path), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, STEP_COST_FILE_BYTES);
    assert_int_equal(st.st_mode & (S_IWGRP | S_IWOTH), 0);
    assert_true(recalls(&store, 2));
    assert_false(recalls(&store, 3)); /* another team */
    assert_false(recalls(&(packed_store){0}, 2));
}

/* So many steps of one token each, in a stage: both ways are tried, whatever they take. */
static void run_stage(const packed_store *s, float *rows, size_t n_steps)
{
    model *m;
    stage *st;
    must(model_open(&m, SHOAL_GGUF_DIR "/llama-gqa.gguf", &(model_options){.store = s}, &err));
    must(stage_new(&st, m, &(stage_options){.part = {1, 2}, .n_threads = 2, .n_ctx = 64}, &err));
    stage_step step = {.items = &(stage_item){.pages = (uint32_t[]){0}, .n_pages = 1, .n = 1, .n_out = 1},
                       .n_items = 1};
    for (size_t i = 0; i < n_steps; i++) must(stage_run(st, &step, rows, 1, &err));
    stage_free(st);
    model_free(m);
}

static void a_stage_learns_for_the_next_one_too(void **state)
{
    float rows[1024] = {1};
    run_stage(&store, rows, 1);
    assert_int_equal(n_kept(NULL, 0), 0);
    run_stage(&store, rows, 64);
    assert_int_equal(n_kept(NULL, 0), 1);
    assert_false(recalls(&store, 2)); /* the whole model is something else */
}

static void programs_that_soon_end_write_nothing(void **state)
{
    packed_store s = store;
    s.read_only = true;
    learn(&s);
    assert_int_equal(n_kept(NULL, 0), 0);
    learn(&store);
    assert_true(recalls(&s, 2));
}

static void a_damaged_file_is_as_none_and_replaced(void **state)
{
    char path[128];
    learn(&store);
    assert_int_equal(n_kept(path, sizeof path), 1);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "?", 1, 60), 1);
    close(fd);
    assert_false(recalls(&store, 2));
    learn(&store);
    assert_true(recalls(&store, 2));
}

static void a_folder_that_others_write_to_is_not_used(void **state)
{
    learn(&store);
    chmod(dir, 0777);
    assert_false(recalls(&store, 2));
    chmod(dir, S_IRWXU);
    assert_true(recalls(&store, 2));
}

static void put_file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* The oldest go, but none that only looks like ours. */
static void there_are_never_more_than_so_many(void **state)
{
    char name[32];
    put_file("000-old.pace");
    for (int i = 0; i < STEP_COST_FILES; i++) {
        snprintf(name, sizeof name, "%016x-%08x.pace", i, i);
        put_file(name);
    }
    learn(&store);
    assert_int_equal(n_kept(NULL, 0), STEP_COST_FILES + 1);
    assert_true(recalls(&store, 2));
    step_cost_file_clear(&store, "0000000000000007-00000007.pace");
    assert_int_equal(n_kept(NULL, 0), STEP_COST_FILES);
    step_cost_file_clear(&store, NULL);
    assert_int_equal(n_kept(NULL, 0), 1);
}

int main(void)
{
    if (!mkdtemp(dir)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_back_as_they_were),
        cmocka_unit_test(no_bit_of_it_may_differ),
        cmocka_unit_test_teardown(the_next_process_begins_with_what_this_one_learnt, empty_folder),
        cmocka_unit_test_teardown(a_stage_learns_for_the_next_one_too, empty_folder),
        cmocka_unit_test_teardown(programs_that_soon_end_write_nothing, empty_folder),
        cmocka_unit_test_teardown(a_damaged_file_is_as_none_and_replaced, empty_folder),
        cmocka_unit_test_teardown(a_folder_that_others_write_to_is_not_used, empty_folder),
        cmocka_unit_test_teardown(there_are_never_more_than_so_many, empty_folder),
    };
    int failed = cmocka_run_group_tests_name("infer_pace_kept", tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
