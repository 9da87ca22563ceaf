/* CTranslate2 folders: Whisper's tensors against those of the Hugging Face folder that was converted
 * (tests/data/ct2, by ctranslate2's own converter), other kinds, and what is missing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h wants those above first. */
#include <cmocka.h>

#include "base/file.h"
#include "model/arch/arch.h"
#include "model/files/ct2.h"
#include "model/model.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/ct2/"

static model *open_model(const char *path)
{
    model *m;
    shoal_err err = {0};
    if (model_open(&m, path, NULL, &err) != 0) fail_msg("%s", err.message);
    return m;
}

static size_t elements(const tensor *t)
{
    return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

/* Every value is the other's but for `steps` of 127 from 0 to the largest. */
static void compare(const tensor *want, const tensor *got, float steps)
{
    size_t n = elements(want);
    float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), top = 0;
    assert_int_equal(elements(got), n);
    dtype_to_f32(want->type, want->data, a, n);
    dtype_to_f32(got->type, got->data, b, n);
    for (size_t i = 0; i < n; i++) top = fabsf(a[i]) > top ? fabsf(a[i]) : top;
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= steps * top / 127))
            fail_msg("%s: value %zu is %g, not %g", want->name, i, (double)b[i], (double)a[i]);
    free(a);
    free(b);
}

static void holds_the_tensors_of(const char *folder, float steps)
{
    model *hf = open_model(DATA "hf"), *m = open_model(folder);
    const model_config *a = model_get_config(hf), *b = model_get_config(m);
    for (size_t i = 0; i < model_tensor_count(hf); i++) {
        const tensor *want = model_tensor_at(hf, i), *got = model_tensor(m, want->name);
        if (!got) fail_msg("%s is missing", want->name);
        compare(want, got, steps);
    }
    assert_int_equal(b->task, TASK_TRANSCRIBE);
    assert_int_equal(a->n_vocab, b->n_vocab);
    assert_int_equal(a->n_ctx, b->n_ctx);
    assert_int_equal(a->n_layer, b->n_layer);
    assert_int_equal(a->attn.n_head, b->attn.n_head);
    assert_int_equal(a->source.n_layer, b->source.n_layer);
    assert_int_equal(a->source.n_head, b->source.n_head);
    assert_int_equal(a->source.n_ctx, b->source.n_ctx);
    assert_int_equal(a->source.n_mel, b->source.n_mel);
    assert_int_equal(a->start_id, b->start_id);
    assert_int_equal(b->n_eos, 1);
    assert_int_equal(a->eos_ids[0], b->eos_ids[0]);
    assert_true(a->tied && b->tied);
    assert_non_null(strstr(model_generation_json(m), "\"suppress_tokens\":[3,4]"));
    assert_non_null(strstr(model_generation_json(m), "\"begin_suppress_tokens\":[26,27]"));
    assert_non_null(model_tokenizer(m));
    model_free(hf);
    model_free(m);
}

static void float16_is_the_original(void **state)
{
    (void)state;
    holds_the_tensors_of(DATA "float16", 0);
}

static void int8_is_within_a_step(void **state)
{
    (void)state;
    holds_the_tensors_of(DATA "int8_float16", 0.52f);
}

/* ---- folders that are refused -------------------------------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/shoal-ct2-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(in_folder("model.bin"));
    unlink(in_folder("tokenizer.json"));
    return rmdir(folder);
}

static void put(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void refused(int code, const char *part)
{
    model *m = NULL;
    shoal_err err = {0};
    int rc = model_open(&m, folder, NULL, &err);
    if (rc != code || !strstr(err.message, part)) fail_msg("%d: %s", rc, err.message);
}

static void other_kinds_are_named(void **state)
{
    (void)state;
    static const char marian[] = "\6\0\0\0\x10\0TransformerSpec\0\7\0\0\0\0\0\0\0\0\0\0";
    static const char old[] = "\2\0\0\0\14\0WhisperSpec\0\3\0\0\0\0\0\0\0\0\0\0";
    put("model.bin", marian, sizeof marian);
    refused(SHOAL_EUNSUPPORTED,
            "a CTranslate2 folder of the kind TransformerSpec; of CTranslate2 only Whisper is read");
    put("model.bin", old, sizeof old);
    refused(SHOAL_EUNSUPPORTED, "convert the model again");
}

static void a_missing_tokenizer_is_named(void **state)
{
    (void)state;
    file_map f;
    assert_int_equal(file_map_open(&f, DATA "float16/model.bin", NULL), 0);
    put("model.bin", f.data, f.len);
    refused(SHOAL_ENOTFOUND, "has no tokenizer.json");
    put("tokenizer.json", "{}", 2);
    refused(SHOAL_EFORMAT, "tokenizer.json has no token <|endoftext|>");
    file_map_close(&f);
}

static void no_cut_file_parses(void **state)
{
    (void)state;
    file_map f;
    assert_int_equal(file_map_open(&f, DATA "int8_float16/model.bin", NULL), 0);
    for (size_t n = 0; n < f.len; n += n < 2000 ? 1 : 97) {
        arena *mem = arena_new(0);
        ct2_file parsed;
        shoal_err err = {0};
        if (ct2_parse(&parsed, mem, f.data, n, "cut", &err) != SHOAL_EFORMAT)
            fail_msg("%zu bytes: %s", n, err.message);
        arena_free(mem);
    }
    file_map_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float16_is_the_original),
        cmocka_unit_test(int8_is_within_a_step),
        cmocka_unit_test_setup_teardown(other_kinds_are_named, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(a_missing_tokenizer_is_named, make_folder, drop_folder),
        cmocka_unit_test(no_cut_file_parses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
