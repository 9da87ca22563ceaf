/* Adapters from files: what they hold, and what is refused with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "model/adapter.h"
#include "model/files/gguf_writer.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"
#define ONE  DATA "adapters/llama-one"

static model *base;

static int setup(void **state)
{
    return model_open(&base, DATA "hf/llama-gqa", &(model_options){.no_tokenizer = true}, NULL);
}

static int teardown(void **state)
{
    model_free(base);
    return 0;
}

static adapter *open_one(float strength)
{
    adapter *a = NULL;
    shoal_err err = {0};
    if (adapter_open(&a, ONE, strength, base, &err) != 0) fail_msg("%s", err.message);
    return a;
}

static void a_folder_changes_the_matrices_that_it_names(void **state)
{
    adapter *a = open_one(1);
    const tensor *q = model_tensor(base, "blk.1.attn_q.weight");
    const adapter_matrix *d = adapter_find(a, q);
    assert_int_equal(adapter_count(a), 6);
    assert_non_null(d);
    assert_ptr_equal(d->base, q);
    assert_int_equal(d->rank, 2);
    assert_int_equal(d->rows, 64);
    assert_int_equal(d->cols, 64);
    assert_true(d->scale == 4); /* lora_alpha / r */
    assert_null(adapter_find(a, model_tensor(base, "blk.1.attn_k.weight")));
    assert_null(adapter_find(a, model_tensor(base, "token_embd.weight")));
    adapter_unref(a);
}

static void strength_is_a_part_of_what_an_adapter_is(void **state)
{
    adapter *one = open_one(1), *same = open_one(1), *half = open_one(0.5f);
    const tensor *q = model_tensor(base, "blk.0.attn_q.weight");
    assert_true(adapter_find(half, q)->scale == 2);
    assert_memory_equal(adapter_digest(one), adapter_digest(same), sizeof(sha256_digest));
    assert_memory_not_equal(adapter_digest(one), adapter_digest(half), sizeof(sha256_digest));
    adapter_unref(one);
    adapter_unref(same);
    adapter_unref(half);
}

/* ---- refusals --------------------------------------------------------------------------------------- */

typedef struct files {
    buf config, weights;
} files;

static void read_files(files *f)
{
    *f = (files){{0}, {0}};
    assert_int_equal(file_read(&f->config, ONE "/adapter_config.json", 1 << 20, NULL), 0);
    assert_int_equal(file_read(&f->weights, ONE "/adapter_model.safetensors", 1 << 20, NULL), 0);
}

/* Each `from` becomes `to`; in weights both are of one length. */
static void replace_all(buf *b, const char *from, const char *to)
{
    buf out = {0};
    size_t n = strlen(from), found = 0;
    for (size_t i = 0; i < b->len;) {
        bool here = i + n <= b->len && memcmp(b->data + i, from, n) == 0;
        if (here)
            buf_puts(&out, to);
        else
            buf_putc(&out, b->data[i]);
        i += here ? n : 1;
        found += here;
    }
    assert_true(found > 0 && !out.failed);
    buf_done(b);
    *b = out;
}

static void expect_refusal(const files *f, const model *m, int code, const char *words)
{
    adapter *a = NULL;
    shoal_err err = {0};
    int rc = adapter_from_peft(&a, f->config.data, f->config.len, f->weights.data, f->weights.len, "it", 1, m,
                               &err);
    if (rc != code || !strstr(err.message, words))
        fail_msg("wanted \"%s\" (%s), got \"%s\" (%s)", words, shoal_err_name(code), err.message,
                 shoal_err_name(rc));
    assert_null(a);
}

static void what_is_no_plain_lora_is_refused_by_name(void **state)
{
    static const struct {
        const char *from, *to;
        int code;
        const char *words;
    } rows[] = {
        {"\"use_dora\": false", "\"use_dora\": true", SHOAL_EUNSUPPORTED, "\"use_dora\" is set: DoRA"},
        {"\"modules_to_save\": null", "\"modules_to_save\": [\"classifier\"]", SHOAL_EUNSUPPORTED,
         "\"modules_to_save\" (classifier) is set"},
        {"\"bias\": \"none\"", "\"bias\": \"lora_only\"", SHOAL_EUNSUPPORTED, "\"bias\" is \"lora_only\""},
        {"\"LORA\"", "\"IA3\"", SHOAL_EUNSUPPORTED, "of type \"IA3\""},
        {"\"alpha_pattern\": {}", "\"alpha_pattern\": {\"q_proj\": 3}", SHOAL_EUNSUPPORTED,
         "\"alpha_pattern\""},
        {"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa_niter_4\"", SHOAL_EUNSUPPORTED,
         "beside changed weights"},
        {"\"r\": 2", "\"r\": 3", SHOAL_EFORMAT, "has rank 2, the configuration says \"r\": 3"},
        {"\"r\": 2", "\"r\": \"2\"", SHOAL_EINVALID, "\"r\""},
        {"\"r\": 2,", "", SHOAL_EFORMAT, "\"r\" is missing"},
        {"\"lora_alpha\": 8", "\"lora_alpha\": 0", SHOAL_EFORMAT, "\"lora_alpha\" is missing or 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        files f;
        read_files(&f);
        replace_all(&f.config, rows[i].from, rows[i].to);
        expect_refusal(&f, base, rows[i].code, rows[i].words);
        buf_done(&f.config);
        buf_done(&f.weights);
    }
}

static void tensors_that_do_not_fit_are_refused_by_name(void **state)
{
    static const struct {
        const char *from, *to;
        int code;
        const char *words;
    } rows[] = {
        {"self_attn.q_proj", "self_attn.x_proj", SHOAL_EFORMAT,
         "self_attn.x_proj.weight, which has no place in the model llama-gqa (architecture \"llama\")"},
        {"layers.2.self_attn.q_proj", "layers.7.self_attn.q_proj", SHOAL_EFORMAT,
         "blk.7.attn_q.weight, which the model llama-gqa does not have"},
        {"self_attn.q_proj", "self_attn.o_proj", SHOAL_EFORMAT, NULL}, /* fits: both are 64 x 64 */
        {"self_attn.v_proj", "self_attn.q_proj", SHOAL_EFORMAT, "duplicate"},
        {"layers.0.self_attn.v_proj", "layers.0.mlp.down_proj ", SHOAL_EFORMAT, ""},
        {"lora_B", "lora_C", SHOAL_EFORMAT, "has no partner B"},
        {"2.self_attn.v_proj.lora_A", "2.self_attn.v_proj.lora_D", SHOAL_EUNSUPPORTED,
         "is no part of a LoRA"},
        {"[2,64]", "[64,2]", SHOAL_EFORMAT, "has rank 64"},
        {"\"F16\"", "\"I16\"", SHOAL_EUNSUPPORTED, "dtype I16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        files f;
        adapter *a = NULL;
        read_files(&f);
        replace_all(&f.weights, rows[i].from, rows[i].to);
        if (rows[i].words)
            expect_refusal(&f, base, rows[i].code, rows[i].words);
        else
            assert_int_equal(adapter_from_peft(&a, f.config.data, f.config.len, f.weights.data, f.weights.len,
                                               "it", 1, base, NULL),
                             0);
        adapter_unref(a);
        buf_done(&f.config);
        buf_done(&f.weights);
    }
}

static void an_adapter_of_another_model_is_refused(void **state)
{
    files f;
    model *other = NULL;
    read_files(&f);
    assert_int_equal(model_open(&other, DATA "hf/bert-intent", &(model_options){.no_tokenizer = true}, NULL),
                     0);
    expect_refusal(&f, other, SHOAL_EFORMAT, "has no place in the model bert-intent (architecture \"bert\")");
    model_free(other);
    assert_int_equal(model_open(&other, DATA "hf/qwen3-qknorm", &(model_options){.no_tokenizer = true}, NULL),
                     0);
    expect_refusal(&f, other, SHOAL_EFORMAT, "");
    model_free(other);
    buf_done(&f.config);
    buf_done(&f.weights);
}

static void cut_files_are_refused(void **state)
{
    files f;
    read_files(&f);
    size_t whole = f.weights.len;
    for (size_t n = 0; n < whole; n += 37) {
        adapter *a = NULL;
        assert_int_not_equal(
            adapter_from_peft(&a, f.config.data, f.config.len, f.weights.data, n, "it", 1, base, NULL), 0);
    }
    f.config.len -= 3;
    expect_refusal(&f, base, SHOAL_EFORMAT, "");
    buf_done(&f.config);
    buf_done(&f.weights);
}

/* ---- GGUF ------------------------------------------------------------------------------------------- */

static void write_gguf(const char *path, const char *type, const char *kind, const char *arch,
                       const char *stem)
{
    gguf_out o = {0};
    const size_t a[] = {64, 2}, b[] = {2, 64};
    float zeros[128] = {0.5f};
    char name[96];
    sha256_digest d;
    uint64_t n;
    gguf_out_str(&o, "general.architecture", arch);
    gguf_out_str(&o, "general.type", type);
    gguf_out_str(&o, "adapter.type", kind);
    gguf_out_f32(&o, "adapter.lora.alpha", 6);
    snprintf(name, sizeof name, "%s.lora_a", stem);
    gguf_out_tensor(&o, name, DT_F32, 2, a);
    snprintf(name, sizeof name, "%s.lora_b", stem);
    gguf_out_tensor(&o, name, DT_F32, 2, b);
    assert_int_equal(gguf_out_open(&o, path, NULL), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(gguf_out_data(&o, zeros, sizeof zeros, NULL), 0);
    assert_int_equal(gguf_out_close(&o, &d, &n, NULL), 0);
    gguf_out_done(&o);
}

static void gguf_adapters_say_what_they_are(void **state)
{
    static const struct {
        const char *type, *kind, *arch, *stem;
        int code;
        const char *words;
    } rows[] = {
        {"adapter", "lora", "llama", "blk.0.attn_q.weight", 0, ""},
        {"model", "lora", "llama", "blk.0.attn_q.weight", SHOAL_EFORMAT, "it is no adapter"},
        {"adapter", "control_vector", "llama", "blk.0.attn_q.weight", SHOAL_EUNSUPPORTED, "only \"lora\""},
        {"adapter", "lora", "qwen3", "blk.0.attn_q.weight", SHOAL_EINVALID,
         "of the architecture \"qwen3\"; the model's is \"llama\""},
        {"adapter", "lora", "llama", "token_embd.weight", SHOAL_EUNSUPPORTED, "embeddings"},
        {"adapter", "lora", "llama", "blk.0.attn_q.bias", SHOAL_EUNSUPPORTED, ""},
        {"adapter", "lora", "llama", "blk.0.attn_norm.weight", SHOAL_EUNSUPPORTED, ""},
    };
    char path[64];
    snprintf(path, sizeof path, "/tmp/shoal-adapter-%ld.gguf", (long)getpid());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        adapter *a = NULL;
        shoal_err err = {0};
        write_gguf(path, rows[i].type, rows[i].kind, rows[i].arch, rows[i].stem);
        int rc = adapter_open(&a, path, 1, base, &err);
        if (rc != rows[i].code || !strstr(err.message, rows[i].words))
            fail_msg("row %zu: \"%s\" (%s)", i, err.message, shoal_err_name(rc));
        if (rc == 0) assert_true(adapter_find(a, model_tensor(base, "blk.0.attn_q.weight"))->scale == 3);
        adapter_unref(a);
    }
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_changes_the_matrices_that_it_names),
        cmocka_unit_test(strength_is_a_part_of_what_an_adapter_is),
        cmocka_unit_test(what_is_no_plain_lora_is_refused_by_name),
        cmocka_unit_test(tensors_that_do_not_fit_are_refused_by_name),
        cmocka_unit_test(an_adapter_of_another_model_is_refused),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(gguf_adapters_say_what_they_are),
    };
    return cmocka_run_group_tests_name("model_adapter", tests, setup, teardown);
}
