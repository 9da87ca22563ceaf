/* Starts with a store of packed weights: whatever lies in it, a model gives the bits that it gives without.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "infer/stage.h"
#include "start.h"

static char dir[] = "/tmp/shoal-start-XXXXXX";
static packed_store store = {.folder = dir};

static start open_with(const char *path, const packed_store *s)
{
    return open_start(path, &(model_options){.store = s}, 2);
}

/* Opens, compares with what it gives without a store, and says whether an image was used. */
static bool start_gives_the_same(const char *path)
{
    size_t n;
    start with = open_with(path, &store), without = open_with(path, NULL);
    for (int again = 0; again < 2; again++) { /* while the thread is at work, and after it */
        float *a = logits(&with, &n), *b = logits(&without, &n);
        assert_memory_equal(a, b, n * sizeof *a);
        free(a);
        free(b);
        weights_mapping_settle(&with.e->mapping);
    }
    bool used = with.e->mapping.image != NULL;
    assert_true(used == (weights_fresh(with.e->mapping.weights) == 0));
    assert_null(without.e->mapping.image);
    close_start(&with);
    close_start(&without);
    return used;
}

static size_t n_images(void)
{
    glob_t g;
    char pattern[64];
    snprintf(pattern, sizeof pattern, "%s/*.packed", dir);
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    globfree(&g);
    return n;
}

static int empty_store(void **state)
{
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -f %s/*", dir);
    return system(cmd);
}

static void the_second_start_maps_what_the_first_packed(void **state)
{
    static const char *const models[] = {"llama-gqa", "qwen3-moe", "lfm2-conv", "gemma3", "llama-bf16"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[256];
        snprintf(path, sizeof path, SHOAL_GGUF_DIR "/%s.gguf", models[i]);
        assert_false(start_gives_the_same(path));
        assert_int_equal(n_images(), i + 1);
        for (int shared = 0; shared < 2; shared++) {
            store.shared = shared;
            store.whole = shared;
            assert_true(start_gives_the_same(path));
        }
        store.shared = store.whole = false;
    }
}

static void encoders_start_so_as_well(void **state)
{
    for (int i = 0; i < 2; i++) {
        start x = open_with(SHOAL_GGUF_DIR "/minilm-embed.gguf", &store);
        assert_true((x.e->mapping.image != NULL) == (i == 1));
        close_start(&x);
    }
}

/* Of a folder the configuration and the weights count, whatever brought them into rows: transposed (gpt2),
 * cut (gpt-neox, phi3), put together of experts (qwen3-moe), of two stacks (bart), or of filters. */
static void folders_start_so_as_well(void **state)
{
    static const char *const generate[] = {"gpt2", "gpt-neox-pythia", "phi3", "qwen3-moe", "gemma3"};
    static const char *const others[] = {"bart", "t5-small-relu", "whisper", "vit-tiny", "deberta-v3-nli"};
    char path[256];
    for (size_t i = 0; i < sizeof generate / sizeof *generate; i++) {
        snprintf(path, sizeof path, DATA "hf/%s", generate[i]);
        assert_false(start_gives_the_same(path));
        assert_int_equal(n_images(), i + 1);
        assert_true(start_gives_the_same(path));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (int again = 0; again < 2; again++) {
            snprintf(path, sizeof path, DATA "hf/%s", others[i]);
            start x = open_with(path, &store);
            assert_true((x.e->mapping.image != NULL) == again);
            close_start(&x);
        }
}

static void copy_model(const char *from, const char *to)
{
    char cmd[512];
    snprintf(cmd, sizeof cmd, "cp -r %shf/%s/. %s", DATA, from, to);
    assert_int_equal(system(cmd), 0);
}

static void set_time(const char *folder, const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0);
}

/* Whoever changes a file of it has another model, unless it is the same again; who changes its tokenizer has
 * not. A digest is pinned to what is in the files. */
static void a_folder_that_changed_is_another_model(void **state)
{
    char folder[] = "/tmp/shoal-folder-XXXXXX", cmd[512];
    assert_non_null(mkdtemp(folder));
    copy_model("llama-gqa", folder);
    assert_false(start_gives_the_same(folder));
    assert_true(start_gives_the_same(folder));
    set_time(folder, "model.safetensors");
    assert_true(start_gives_the_same(folder));
    set_time(folder, "tokenizer.json");
    assert_true(start_gives_the_same(folder));
    snprintf(cmd, sizeof cmd, "echo >>%s/config.json", folder);
    assert_int_equal(system(cmd), 0);
    assert_false(start_gives_the_same(folder));
    copy_model("olmo2", folder);
    assert_false(start_gives_the_same(folder));
    assert_int_equal(n_images(), 3);
    snprintf(cmd, sizeof cmd, "rm -r %s", folder);
    assert_int_equal(system(cmd), 0);
}

static char *image_of(const char *path)
{
    start x = open_with(path, &store);
    char *image = packed_store_path(&store, &x.e->mapping.head);
    close_start(&x);
    return image;
}

static void change_byte(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

/* It is packed anew, and the next start finds a good one. */
static void a_damaged_image_is_replaced(void **state)
{
    const char *path = SHOAL_GGUF_DIR "/llama-gqa.gguf";
    char *image = image_of(path);
    change_byte(image, 60);
    assert_false(start_gives_the_same(path));
    assert_true(start_gives_the_same(path));
    assert_int_equal(truncate(image, 3 << 20 >> 1), 0);
    assert_false(start_gives_the_same(path));
    assert_true(start_gives_the_same(path));
    free(image);
}

/* One with a right head and an index of another network, as after a change of what is loaded in which order.
 */
static void an_image_of_other_matrices_is_replaced(void **state)
{
    const char *path = SHOAL_GGUF_DIR "/llama-gqa.gguf";
    start x = open_with(path, &store);
    packed_head h = x.e->mapping.head;
    char *image = packed_store_path(&store, &h);
    close_start(&x);
    start other = open_with(SHOAL_GGUF_DIR "/olmo2.gguf", NULL);
    must(packed_write(image, h, other.e->mapping.weights, NULL, &err));
    close_start(&other);
    assert_false(start_gives_the_same(path));
    assert_true(start_gives_the_same(path));
    free(image);
}

/* Another file under the same name is another model, whatever was kept of the first. */
static void a_file_that_changed_is_another_model(void **state)
{
    char path[64], cmd[512];
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    snprintf(cmd, sizeof cmd, "cp %s/llama-gqa.gguf %s", SHOAL_GGUF_DIR, path);
    assert_int_equal(system(cmd), 0);
    assert_false(start_gives_the_same(path));
    assert_true(start_gives_the_same(path));
    snprintf(cmd, sizeof cmd, "cp %s/olmo2.gguf %s", SHOAL_GGUF_DIR, path);
    assert_int_equal(system(cmd), 0);
    assert_false(start_gives_the_same(path));
    assert_int_equal(n_images(), 2);
    assert_int_equal(unlink(path), 0);
}

/* A pin is held against the bytes, or against what is sure to be their digest. */
static void pins_are_kept(void **state)
{
    const char *path = SHOAL_GGUF_DIR "/llama-gqa.gguf";
    sha256_digest d;
    shoal_err why;
    char hex[65];
    model *m = NULL;
    free(image_of(path));
    must(sha256_file(path, &d, &err));
    sha256_hex(&d, hex);
    must(model_open(&m, path, &(model_options){.store = &store, .expect_sha256 = hex}, &err));
    model_free(m);
    m = NULL;
    hex[0] = hex[0] == '0' ? '1' : '0';
    assert_int_equal(model_open(&m, path, &(model_options){.store = &store, .expect_sha256 = hex}, &why),
                     SHOAL_EDIGEST);
}

/* Parts of a network have images of their own. */
static void stages_have_their_own(void **state)
{
    const char *path = SHOAL_GGUF_DIR "/qwen3-qknorm.gguf";
    for (int i = 0; i < 2; i++) {
        model *m;
        stage *s;
        must(model_open(&m, path, &(model_options){.store = &store}, &err));
        must(stage_new(&s, m, &(stage_options){.part = {1, model_get_config(m)->n_layer}}, &err));
        for (int wait = 0; wait < 6000 && n_images() == 0; wait++) usleep(10000);
        stage_free(s);
        model_free(m);
        assert_int_equal(n_images(), 1);
    }
    free(image_of(path));
    assert_int_equal(n_images(), 2);
}

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return empty_store(state) || rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_second_start_maps_what_the_first_packed, empty_store),
        cmocka_unit_test_setup(encoders_start_so_as_well, empty_store),
        cmocka_unit_test_setup(folders_start_so_as_well, empty_store),
        cmocka_unit_test_setup(a_folder_that_changed_is_another_model, empty_store),
        cmocka_unit_test_setup(a_damaged_image_is_replaced, empty_store),
        cmocka_unit_test_setup(an_image_of_other_matrices_is_replaced, empty_store),
        cmocka_unit_test_setup(a_file_that_changed_is_another_model, empty_store),
        cmocka_unit_test_setup(pins_are_kept, empty_store),
        cmocka_unit_test_setup(stages_have_their_own, empty_store),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
