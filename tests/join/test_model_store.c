/* The store of models against a real gate: files come, go on where they were, and are what their digest says.
 */
#include "gate_world.h"

#include "base/file.h"
#include "base/sha256.h"
#include "join/model_store.h"

enum { FILE_BYTES = 3000000 };

static gate_model models[2];
static char paths[2][256], digests[2][65];
static int n_come;

static void nothing_here(void *user, const worker_spec *workers, size_t n) {}

static void has_come(void *user)
{
    n_come++;
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Two files that the gate places; the second one's digest is a lie. */
static uint8_t *serve_files(void)
{
    uint8_t *data = malloc(FILE_BYTES);
    sha256_digest d;
    shoal_err err;
    assert_non_null(data);
    for (size_t i = 0; i < FILE_BYTES; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
    sha256_of(data, FILE_BYTES, &d);
    sha256_hex(&d, digests[0]);
    memset(digests[1], 'a', 64);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/m%d.gguf", place, i);
        write_file(paths[i], data, FILE_BYTES);
        models[i] =
            (gate_model){.want = {.name = i ? "liar" : "good", .n_replicas = 1, .memory_bytes = FILE_BYTES},
                         .spec = {.model = i ? "liar" : "good", .path = paths[i], .sha256 = digests[i]}};
    }
    const gate_place_options o = {.models = models, .n_models = 2, .here = nothing_here};
    if (gate_place(w.gate, &o, &err) != 0) fail_msg("%s", err.message);
    return data;
}

static model_store *open_store(machine_up *m, char folder[256], uint64_t max_bytes)
{
    shoal_err err;
    model_store *s = NULL;
    up_join(m, "pi");
    n_come = 0;
    snprintf(folder, 256, "%s/store", place);
    const model_store_options o = {.folder = folder, .max_bytes = max_bytes, .changed = has_come};
    if (model_store_open(&s, &w.loop, &o, &err) != 0 ||
        model_store_source(s, w.address, attach_tls(m->a), &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static void close_store(model_store *s, machine_up *m)
{
    bool closed = false;
    model_store_close(s, world_closed, &closed);
    TURN_UNTIL(closed);
    up_stop(m);
}

static void a_file_comes_and_a_lie_keeps_no_other_waiting(void **state)
{
    machine_up m;
    char folder[256], path[MODEL_STORE_PATH];
    model_file files[2];
    uint8_t *data = serve_files();
    model_store *s = open_store(&m, folder, 0);
    assert_int_equal(model_file_make(&files[0], "x.gguf", digests[1], FILE_BYTES, NULL), 0);
    assert_int_equal(model_file_make(&files[1], "y.gguf", digests[0], FILE_BYTES, NULL), 0);
    model_store_want(s, files, 2);
    TURN_UNTIL(n_come == 1);
    assert_true(model_store_find(s, &files[1], path));
    assert_false(model_store_find(s, &files[0], path));
    close_store(s, &m);
    free(data);
}

/* A part is gone on with; one whose bytes are wrong is thrown away when that is found, and fetched again. */
static void a_part_is_gone_on_with_and_a_wrong_one_is_not_kept(void **state)
{
    machine_up m;
    char folder[256], path[MODEL_STORE_PATH], part[MODEL_STORE_PATH];
    model_file file;
    uint8_t *data = serve_files();
    model_store *s = open_store(&m, folder, 0);
    assert_int_equal(model_file_make(&file, "x.gguf", digests[0], FILE_BYTES, NULL), 0);
    snprintf(part, sizeof part, "%s/%s.part", folder, digests[0]);
    for (int wrong = 0; wrong < 2; wrong++) {
        data[5] ^= (uint8_t)wrong;
        write_file(part, data, FILE_BYTES / 3);
        n_come = 0;
        model_store_want(s, &file, 1);
        TURN_UNTIL(n_come == 1);
        assert_true(model_store_find(s, &file, path));
        assert_false(file_exists(part));
        assert_int_equal(remove(path), 0);
    }
    close_store(s, &m);
    free(data);
}

static void what_nobody_wants_makes_room(void **state)
{
    machine_up m;
    char folder[256], path[MODEL_STORE_PATH], old[512];
    model_file file;
    uint8_t *data = serve_files();
    model_store *s = open_store(&m, folder, FILE_BYTES + 1000);
    snprintf(old, sizeof old, "%s/%064d.gguf", folder, 7);
    write_file(old, data, 2000);
    assert_int_equal(model_file_make(&file, "x.gguf", digests[0], FILE_BYTES, NULL), 0);
    model_store_want(s, &file, 1);
    TURN_UNTIL(n_come == 1);
    assert_true(model_store_find(s, &file, path));
    assert_false(file_exists(old));
    close_store(s, &m);
    free(data);
}

static void names_from_a_gateway_lead_nowhere_else(void **state)
{
    model_file f;
    char digest[65];
    memset(digest, 'b', 64);
    digest[64] = '\0';
    assert_int_equal(model_file_make(&f, "a.b/../../x", digest, 1, NULL), 0);
    assert_string_equal(f.suffix, "");
    assert_int_equal(model_file_make(&f, "../m.gguf", digest, 1, NULL), 0);
    assert_string_equal(f.suffix, ".gguf");
    assert_int_equal(model_file_make(&f, "m.part", digest, 1, NULL), 0);
    assert_string_equal(f.suffix, "");
    digest[3] = '/';
    assert_int_equal(model_file_make(&f, "m.gguf", digest, 1, NULL), SHOAL_EINVALID);
    assert_int_equal(model_file_make(&f, "m.gguf", "../../etc", 1, NULL), SHOAL_EINVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_comes_and_a_lie_keeps_no_other_waiting),
        TEST(a_part_is_gone_on_with_and_a_wrong_one_is_not_kept),
        TEST(what_nobody_wants_makes_room),
        cmocka_unit_test(names_from_a_gateway_lead_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
