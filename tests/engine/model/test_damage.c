/* Every fixture with one byte of its header or configuration changed, 200 times: an error or a model, never
 * more. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "model/model.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

static char folder[256];
static uint64_t state_of_chance;

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/shoal_damage_XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"config.json", "model.safetensors", "m.gguf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

/* xorshift (Marsaglia 2003), below n. */
static size_t chance(size_t n)
{
    state_of_chance ^= state_of_chance << 13;
    state_of_chance ^= state_of_chance >> 7;
    state_of_chance ^= state_of_chance << 17;
    return (size_t)(state_of_chance % n);
}

/* Copy to the folder of our own; returns the bytes, the caller's. */
static buf copy(const char *from, const char *as)
{
    char path[512];
    buf b = {0};
    snprintf(path, sizeof path, "%s/%s", folder, as);
    assert_int_equal(file_read(&b, from, 64 << 20, NULL), 0);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
    fclose(f);
    return b;
}

/* Open it; whatever it became, its tensors must lie in memory. */
static void try_it(const char *path)
{
    model *m = NULL;
    shoal_err err;
    volatile uint8_t sink = 0;
    if (model_open(&m, path, &(model_options){.no_tokenizer = true}, &err) != 0) {
        assert_null(m);
        return;
    }
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        const uint8_t *p = t->data;
        sink ^= (uint8_t)(p[0] ^ p[t->bytes - 1]);
    }
    model_free(m);
}

/* Change one of the first n bytes of folder/file and open `what`, `times` times. */
static void damage(const char *file, const buf *b, size_t n, const char *what, int times)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    for (int i = 0; i < times; i++) {
        size_t at = chance(n);
        char was = b->data[at], now = (char)(chance(2) ? was ^ (1 << chance(8)) : (int)chance(256));
        assert_int_equal(pwrite(fd, &now, 1, (off_t)at), 1);
        try_it(what);
        assert_int_equal(pwrite(fd, &was, 1, (off_t)at), 1);
    }
    close(fd);
}

static void damage_folder(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, DATA "hf/%s/config.json", name);
    buf config = copy(path, "config.json");
    snprintf(path, sizeof path, DATA "hf/%s/model.safetensors", name);
    buf weights = copy(path, "model.safetensors");
    uint64_t header;
    memcpy(&header, weights.data, sizeof header);
    damage("config.json", &config, config.len, folder, 100);
    damage("model.safetensors", &weights, (size_t)header + 8, folder, 100);
    buf_done(&config);
    buf_done(&weights);
}

static void damage_gguf(const char *name)
{
    char path[512], whole[512];
    snprintf(path, sizeof path, SHOAL_GGUF_DIR "/%s", name);
    snprintf(whole, sizeof whole, "%s/m.gguf", folder);
    buf b = copy(path, "m.gguf");
    /* What is no vocabulary stands at both ends of the header; the tensors' names come last. */
    damage("m.gguf", &b, 4096, whole, 100);
    damage("m.gguf", &b, b.len < 65536 ? b.len : 65536, whole, 100);
    buf_done(&b);
}

static void each(const char *path, void (*fn)(const char *name))
{
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') fn(e->d_name);
    closedir(d);
}

static void damaged_folders_are_refused_or_read(void **state)
{
    (void)state;
    state_of_chance = 0x9e3779b97f4a7c15;
    each(DATA "hf/", damage_folder);
}

static void damaged_files_are_refused_or_read(void **state)
{
    (void)state;
    state_of_chance = 0x2545f4914f6cdd1d;
    each(SHOAL_GGUF_DIR "/", damage_gguf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(damaged_folders_are_refused_or_read, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(damaged_files_are_refused_or_read, make_folder, drop_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
