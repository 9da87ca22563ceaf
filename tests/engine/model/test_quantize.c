#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/sha256.h"
#include "model/arch/arch.h"
#include "model/files/gguf.h"
#include "model/model.h"
#include "model/quantize/quantize_block.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

static char folder[200], out[256];

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/shoal_quant_XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(out);
    return rmdir(folder); /* fails, and the test with it, when a temporary was left behind */
}

static quantize_report quantise(const char *in, const quantize_options *opts)
{
    quantize_report r;
    shoal_err err = {0};
    if (quantize_model(in, out, opts, &r, &err) != 0) fail_msg("%s", err.message);
    return r;
}

static model *open_out(void)
{
    model *m = NULL;
    shoal_err err = {0};
    if (model_open(&m, out, NULL, &err) != 0) fail_msg("%s", err.message);
    return m;
}

static const quantize_class *class_named(const quantize_report *r, const char *name)
{
    for (size_t i = 0; i < r->n_classes; i++)
        if (strcmp(r->classes[i].name, name) == 0) return &r->classes[i];
    fail_msg("no class %s", name);
    return NULL;
}

/* ---- conversions ----------------------------------------------------------------------------- */

static int count_progress(void *user, size_t done, size_t total, const char *name)
{
    assert_non_null(name);
    assert_true(done <= total);
    ++*(size_t *)user;
    return 0;
}

static int stop_at_third(void *user, size_t done, size_t total, const char *name)
{
    (void)user;
    (void)total;
    (void)name;
    return done == 3;
}

static void quantize_writes_a_model_that_opens(void **state)
{
    (void)state;
    size_t calls = 0;
    quantize_options opts = {
        .type = DT_Q8_0, .name = "tiny", .version = "1.2.3", .progress = count_progress, .user = &calls};
    quantize_report r = quantise(DATA "hf/bert-intent", &opts);
    model *m = open_out();
    assert_int_equal(calls, model_tensor_count(m));
    assert_string_equal(model_name(m), "tiny");
    assert_string_equal(model_version(m), "1.2.3");
    assert_string_equal(model_quantisation(m), "Q8_0");
    assert_int_equal(model_get_config(m)->task, TASK_CLASSIFY);
    assert_string_equal(model_get_config(m)->head.labels[0], "lights_on");
    assert_int_equal(model_tensor(m, "token_embd.weight")->type, DT_Q8_0);
    assert_int_equal(model_tensor(m, "position_embd.weight")->type, DT_F16);
    assert_int_equal(model_tensor(m, "cls.output.weight")->type, DT_F16);
    assert_int_equal(model_tensor(m, "cls.output.bias")->type, DT_F32);
    assert_int_equal(model_tensor(m, "blk.0.attn_output_norm.weight")->type, DT_F32);
    sha256_digest d;
    assert_int_equal(model_digest(m, &d, NULL), 0);
    assert_memory_equal(&d, &r.digest, sizeof d);
    const quantize_class *q = class_named(&r, "attn_q");
    assert_int_equal(q->n_tensors, 3);
    assert_true(q->rms_error > 0 && q->rms_error / q->rms_value < 0.01);
    assert_true(class_named(&r, "attn_q.bias")->rms_error == 0);
    file_map f;
    assert_int_equal(file_map_open(&f, out, NULL), 0);
    assert_int_equal(f.len, r.bytes_out);
    file_map_close(&f);
    model_free(m);
}

static void quantize_keeps_tagger_embedder_and_reranker(void **state)
{
    (void)state;
    static const char *const names[] = {"bert-ner", "minilm-embed", "cross-encoder-rerank"};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, DATA "hf/%s", names[i]);
        model *a = NULL;
        assert_int_equal(model_open(&a, path, NULL, NULL), 0);
        quantise(path, &(quantize_options){.type = DT_F16});
        model *b = open_out();
        const model_config *x = model_get_config(a), *y = model_get_config(b);
        assert_int_equal(x->task, y->task);
        assert_int_equal(x->head.n_labels, y->head.n_labels);
        assert_int_equal(x->head.pool, y->head.pool);
        assert_int_equal(x->head.normalize, y->head.normalize);
        assert_int_equal(model_tensor_count(a), model_tensor_count(b));
        assert_int_equal(tokenizer_vocab_size(model_tokenizer(a)), tokenizer_vocab_size(model_tokenizer(b)));
        model_free(a);
        model_free(b);
    }
}

/* Our float32 conversion of a folder against the field's own: the same tensors, bit for bit. */
static void quantize_matches_the_reference_converter(void **state)
{
    (void)state;
    static const char *const names[] = {"llama-gqa", "llama3-rope-scaled-tied", "minilm-embed"};
    for (size_t i = 0; i < 3; i++) {
        char in[512], reference[512];
        snprintf(in, sizeof in, DATA "hf/%s", names[i]);
        snprintf(reference, sizeof reference, SHOAL_GGUF_DIR "/%s.gguf", names[i]);
        quantise(in, &(quantize_options){.type = DT_F32});
        model *ours = open_out(), *theirs = NULL;
        assert_int_equal(model_open(&theirs, reference, &(model_options){.no_tokenizer = true}, NULL), 0);
        assert_int_equal(model_tensor_count(ours), model_tensor_count(theirs));
        for (size_t k = 0; k < model_tensor_count(ours); k++) {
            const tensor *a = model_tensor_at(ours, k), *b = model_tensor_at(theirs, k);
            assert_string_equal(a->name, b->name);
            if (strcmp(a->name, "rope_freqs.weight") == 0) continue; /* computed; test_model compares it */
            assert_int_equal(a->bytes, b->bytes);
            if (memcmp(a->data, b->data, a->bytes) != 0) fail_msg("%s: %s differs", names[i], a->name);
        }
        assert_int_equal(model_get_config(ours)->pos.rope.dim, model_get_config(theirs)->pos.rope.dim);
        model_free(ours);
        model_free(theirs);
    }
}

static void quantize_copies_a_gguf(void **state)
{
    (void)state;
    quantise(DATA "quant/base-f32.gguf", &(quantize_options){.type = DT_Q8_0});
    model *ours = open_out(), *theirs = NULL;
    assert_int_equal(
        model_open(&theirs, DATA "quant/q-Q8_0.gguf", &(model_options){.no_tokenizer = true}, NULL), 0);
    for (size_t k = 0; k < model_tensor_count(ours); k++) {
        const tensor *a = model_tensor_at(ours, k), *b = model_tensor(theirs, a->name);
        assert_int_equal(a->type, b->type);
        if (memcmp(a->data, b->data, a->bytes) != 0) fail_msg("%s differs", a->name);
    }
    assert_string_equal(model_name(ours), "quant-fixture");
    model_free(ours);
    model_free(theirs);
}

static void quantize_honours_the_longest_override(void **state)
{
    (void)state;
    const char *const overrides[] = {"ffn=q4_1", "ffn_down=q8_0", "token_embd=f16"};
    quantize_options opts = {.type = DT_Q4_0, .overrides = overrides, .n_overrides = 3};
    quantise(DATA "hf/llama-gqa", &opts);
    model *m = open_out();
    assert_int_equal(model_tensor(m, "blk.0.ffn_up.weight")->type, DT_Q4_1);
    assert_int_equal(model_tensor(m, "blk.0.ffn_down.weight")->type, DT_Q8_0);
    assert_int_equal(model_tensor(m, "token_embd.weight")->type, DT_F16);
    assert_int_equal(model_tensor(m, "output.weight")->type, DT_Q4_0);
    model_free(m);
}

static void quantize_takes_patterns_of_whole_names(void **state)
{
    (void)state;
    const char *const overrides[] = {"blk.*.ffn_*=q5_0", "ffn_down=q8_0", "*.1.*_down.weight=q4_1"};
    quantize_options opts = {.type = DT_Q4_0, .overrides = overrides, .n_overrides = 3};
    quantise(DATA "hf/llama-gqa", &opts);
    model *m = open_out();
    assert_int_equal(model_tensor(m, "blk.0.ffn_up.weight")->type, DT_Q5_0);
    assert_int_equal(model_tensor(m, "blk.0.ffn_down.weight")->type, DT_Q5_0); /* a pattern is stronger */
    assert_int_equal(model_tensor(m, "blk.1.ffn_down.weight")->type, DT_Q4_1); /* the last one */
    assert_int_equal(model_tensor(m, "blk.1.attn_q.weight")->type, DT_Q4_0);
    model_free(m);
}

static void quantize_names_an_override_that_fits_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {"fnn_down=q8_0", "blk.*.ffn_dow=q8_0", "*.norm=q8_0"};
    for (size_t i = 0; i < 3; i++) {
        quantize_options opts = {.type = DT_Q8_0, .overrides = &wrong[i], .n_overrides = 1};
        quantize_report r;
        shoal_err err = {0};
        assert_int_equal(quantize_model(DATA "hf/llama-gqa", out, &opts, &r, &err), SHOAL_EINVALID);
        assert_non_null(strstr(err.message, wrong[i]));
    }
}

static uint32_t file_type_of(const char *path)
{
    file_map f;
    gguf *g = NULL;
    uint32_t type = 0;
    assert_int_equal(file_map_open(&f, path, NULL), 0);
    assert_int_equal(gguf_parse(&g, f.data, f.len, path, NULL), 0);
    const gguf_kv *kv = gguf_find(g, "general.file_type");
    assert_non_null(kv);
    memcpy(&type, kv->data, sizeof type);
    gguf_free(g);
    file_map_close(&f);
    return type;
}

static double tensor_error(const tensor *a, const tensor *exact)
{
    size_t n = a->dims[0] * a->dims[1];
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    double e = 0;
    dtype_to_f32(a->type, a->data, x, n);
    dtype_to_f32(exact->type, exact->data, y, n);
    for (size_t i = 0; i < n; i++) e += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    free(x);
    free(y);
    return e;
}

/* Against what the field's own quantiser made of the same weights: the same tensors in the same types and
 * sizes, and no more error. */
static void quantize_is_no_worse_than_the_reference(void **state)
{
    (void)state;
    model *exact = NULL;
    const model_options bare = {.no_tokenizer = true};
    assert_int_equal(model_open(&exact, DATA "quant/base-f32.gguf", &bare, NULL), 0);
    for (int t = DT_Q4_0; t < DT_S8_64; t++) { /* our own types have no other reference */
        char path[512];
        snprintf(path, sizeof path, DATA "quant/q-%s%s.gguf", dtype_name((dtype)t),
                 t == DT_MXFP4 ? "_MOE" : "");
        quantise(DATA "quant/base-f32.gguf", &(quantize_options){.type = (dtype)t});
        model *ours = open_out(), *theirs = NULL;
        double a = 0, b = 0;
        assert_int_equal(model_open(&theirs, path, &bare, NULL), 0);
        for (size_t k = 0; k < model_tensor_count(ours); k++) {
            const tensor *x = model_tensor_at(ours, k), *y = model_tensor(theirs, x->name);
            assert_int_equal(x->type, y->type);
            assert_int_equal(x->bytes, y->bytes);
            a += tensor_error(x, model_tensor(exact, x->name));
            b += tensor_error(y, model_tensor(exact, x->name));
        }
        print_message("%s: error %.5g, the reference's %.5g (%.3f), file type %u, theirs %u\n",
                      dtype_name((dtype)t), a, b, a / b, file_type_of(out), file_type_of(path));
        assert_true(a <= 1.02 * b);
        model_free(ours);
        model_free(theirs);
    }
    model_free(exact);
}

static void quantize_mixes_types_as_the_field_does(void **state)
{
    (void)state;
    quantize_options opts = {0};
    assert_true(quantize_parse_type("Q4_K_M", &opts));
    assert_true(opts.type == DT_Q4_K && opts.medium);
    quantise(DATA "quant/base-f32.gguf", &opts);
    assert_int_equal(file_type_of(out), 15);
    model *m = open_out();
    assert_int_equal(model_tensor(m, "output.weight")->type, DT_Q6_K);
    assert_int_equal(model_tensor(m, "token_embd.weight")->type, DT_Q4_K);
    assert_int_equal(model_tensor(m, "blk.0.attn_q.weight")->type, DT_Q4_K);
    size_t last = model_get_config(m)->n_layer - 1;
    char name[64];
    snprintf(name, sizeof name, "blk.%zu.ffn_down.weight", last);
    assert_int_equal(model_tensor(m, name)->type, DT_Q6_K);
    model_free(m);
    assert_true(quantize_parse_type("q8_0", &opts) && !opts.medium);
    assert_false(quantize_parse_type("q4_k_l", &opts));
}

/* Rows that are no whole super-blocks take a type of blocks of 32, and F16 at last. */
static void quantize_falls_back_for_odd_widths(void **state)
{
    (void)state;
    static const dtype ask[] = {DT_Q4_K, DT_Q5_K, DT_Q6_K, DT_Q2_K, DT_S8_256, DT_S4_128},
                       want[] = {DT_Q5_0, DT_Q5_1, DT_Q8_0, DT_IQ4_NL, DT_S8_64, DT_S4_64};
    for (size_t i = 0; i < 6; i++) {
        quantize_report r = quantise(DATA "hf/llama-gqa", &(quantize_options){.type = ask[i]});
        size_t n = 0, n_wanted = 0; /* ffn_down's rows are no whole groups of 64 either */
        for (size_t k = 0; k < r.n_fallbacks; k++) {
            assert_int_equal(r.fallbacks[k].wanted, ask[i]);
            n += r.fallbacks[k].n_tensors;
            n_wanted += r.fallbacks[k].got == want[i];
        }
        assert_int_equal(n, 23);
        assert_int_equal(n_wanted, 1);
        model *m = open_out();
        const tensor *t = model_tensor(m, "blk.0.attn_q.weight");
        assert_true(t->dims[0] % 256 != 0 && t->dims[0] % 32 == 0);
        assert_int_equal(t->type, want[i]);
        model_free(m);
    }
}

static void quantize_refuses_wrong_overrides(void **state)
{
    (void)state;
    static const char *const wrong[] = {"token_embd", "=q8_0", "token_embd=q9", "token_embd="};
    for (size_t i = 0; i < 4; i++) {
        quantize_options opts = {.type = DT_Q8_0, .overrides = &wrong[i], .n_overrides = 1};
        quantize_report r;
        shoal_err err = {0};
        assert_int_equal(quantize_model(DATA "hf/minilm-embed", out, &opts, &r, &err), SHOAL_EINVALID);
        assert_non_null(strstr(err.message, "CLASS=TYPE"));
    }
}

static void quantize_writes_the_fields_tokenizer_keys(void **state)
{
    (void)state;
    quantise(DATA "hf/bert-intent", &(quantize_options){.type = DT_F16});
    file_map a, b;
    gguf *ours = NULL, *theirs = NULL;
    assert_int_equal(file_map_open(&a, out, NULL), 0);
    assert_int_equal(file_map_open(&b, SHOAL_GGUF_DIR "/bert-intent.gguf", NULL), 0);
    assert_int_equal(gguf_parse(&ours, a.data, a.len, "ours", NULL), 0);
    assert_int_equal(gguf_parse(&theirs, b.data, b.len, "theirs", NULL), 0);
    static const char *const keys[] = {
        "tokenizer.ggml.model",
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.padding_token_id",
        "tokenizer.ggml.add_bos_token",
        "tokenizer.ggml.add_eos_token",
        "tokenizer.ggml.normalizer.lowercase",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.token_type",
        "bert.classifier.output_labels",
        "bert.block_count",
        "bert.context_length",
        "bert.attention.layer_norm_epsilon",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const gguf_kv *x = gguf_find(ours, keys[i]), *y = gguf_find(theirs, keys[i]);
        if (!x || !y || x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0)
            fail_msg("%s differs", keys[i]);
    }
    gguf_free(ours);
    gguf_free(theirs);
    file_map_close(&a);
    file_map_close(&b);
}

/* ---- a full disk ----------------------------------------------------------------------------- */

static void quantize_leaves_the_old_file_when_the_disk_is_full(void **state)
{
    (void)state;
    FILE *f = fopen(out, "wb");
    assert_non_null(f);
    fputs("the old file", f);
    fclose(f);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    quantize_report r;
    shoal_err err = {0};
    int rc = quantize_model(DATA "hf/bert-intent", out, &(quantize_options){.type = DT_Q8_0}, &r, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(rc, SHOAL_EIO);
    assert_non_null(strstr(err.message, "the old file is untouched"));
    buf b = {0};
    assert_int_equal(file_read(&b, out, 1000, NULL), 0);
    assert_string_equal(b.data, "the old file");
    buf_done(&b);
}

static void quantize_can_be_stopped(void **state)
{
    (void)state; /* drop_folder sees that no temporary stays */
    quantize_report r;
    shoal_err err = {0};
    quantize_options o = {.type = DT_F16, .progress = stop_at_third};
    assert_int_equal(quantize_model(DATA "hf/bert-intent", out, &o, &r, &err), SHOAL_ECANCELLED);
    assert_int_equal(access(out, F_OK), -1);
}

/* Renaming a file over /dev/null would harm the whole machine. */
static void quantize_replaces_nothing_but_files(void **state)
{
    (void)state;
    quantize_report r;
    shoal_err err = {0};
    struct stat st;
    assert_int_equal(mkfifo(out, 0600), 0);
    assert_int_equal(
        quantize_model(DATA "hf/bert-intent", out, &(quantize_options){.type = DT_F16}, &r, &err),
        SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "no regular file"));
    assert_int_equal(stat(out, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

static void quantize_names_a_folder_it_cannot_write(void **state)
{
    (void)state;
    quantize_report r;
    shoal_err err = {0};
    int rc = quantize_model(DATA "hf/minilm-embed", "/no/such/folder/x.gguf",
                            &(quantize_options){.type = DT_F16}, &r, &err);
    assert_int_equal(rc, SHOAL_ENOTFOUND);
    assert_non_null(strstr(err.message, "/no/such/folder"));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static float noise(uint32_t *seed)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        sum += (float)(*seed >> 8) * 0x1p-24f - 0.5f;
    }
    return sum;
}

/* Whole blocks of every type. */
enum { WEIGHTS = 2304 };

static double squared_error(dtype t, const float *x, const void *packed, size_t n)
{
    float back[WEIGHTS];
    double e = 0;
    dtype_to_f32(t, packed, back, n);
    for (size_t i = 0; i < n; i++) e += ((double)x[i] - (double)back[i]) * ((double)x[i] - (double)back[i]);
    return e;
}

static void searched_scales_beat_the_plain_ones(void **state)
{
    (void)state;
    float x[WEIGHTS];
    uint8_t plain[2 * WEIGHTS], searched[2 * WEIGHTS];
    uint32_t seed = 7;
    for (size_t i = 0; i < WEIGHTS; i++) x[i] = 0.05f * noise(&seed);
    for (int t = DT_Q4_0; t < DT_COUNT; t++) {
        dtype_from_f32((dtype)t, x, plain, WEIGHTS);
        quantize_row((dtype)t, x, NULL, searched, WEIGHTS);
        double a = squared_error((dtype)t, x, plain, WEIGHTS),
               b = squared_error((dtype)t, x, searched, WEIGHTS);
        print_message("%s: plain %.6g searched %.6g (%.2f)\n", dtype_name((dtype)t), a, b, b / a);
        if (t >= DT_S8_64 && t <= DT_S8_256)
            assert_memory_equal(plain, searched, WEIGHTS); /* not searched: there is nothing to be gained */
        else
            assert_true(b < 0.95 * a);
    }
}

/* Where a column counts a thousand times more, its weights come closer. */
static void important_columns_are_kept_better(void **state)
{
    (void)state;
    float x[WEIGHTS], importance[WEIGHTS];
    uint8_t even[2 * WEIGHTS], weighed[2 * WEIGHTS];
    uint32_t seed = 9;
    for (size_t i = 0; i < WEIGHTS; i++) {
        x[i] = 0.05f * noise(&seed);
        importance[i] = i % 8 == 0 ? 1000 : 1;
    }
    for (int t = DT_Q4_0; t < DT_COUNT; t++) {
        float a[WEIGHTS], b[WEIGHTS];
        double ea = 0, eb = 0;
        quantize_row((dtype)t, x, NULL, even, WEIGHTS);
        quantize_row((dtype)t, x, importance, weighed, WEIGHTS);
        dtype_to_f32((dtype)t, even, a, WEIGHTS);
        dtype_to_f32((dtype)t, weighed, b, WEIGHTS);
        for (size_t i = 0; i < WEIGHTS; i += 8) {
            ea += (double)((a[i] - x[i]) * (a[i] - x[i]));
            eb += (double)((b[i] - x[i]) * (b[i] - x[i]));
        }
        print_message("%s: %.3g, weighed %.3g\n", dtype_name((dtype)t), ea, eb);
        assert_true(eb < 0.9 * ea);
    }
}

static void blocks_of_equal_values_survive(void **state)
{
    (void)state;
    static const float levels[] = {0, 1, -1, 1e-8f, -3e4f};
    for (int t = DT_Q8_0; t < DT_COUNT; t++)
        for (size_t l = 0; l < 5; l++) {
            float x[768], back[768], slack = t == DT_MXFP4 ? 0.13f : 0.02f;
            uint8_t packed[1024];
            for (int i = 0; i < 768; i++) x[i] = levels[l];
            quantize_row((dtype)t, x, NULL, packed, 768);
            dtype_to_f32((dtype)t, packed, back, 768);
            for (int i = 0; i < 768; i++)
                if (!(fabsf(back[i] - x[i]) <= fabsf(x[i]) * slack + 1e-7f))
                    fail_msg("%s: %g became %g", dtype_name((dtype)t), (double)x[i], (double)back[i]);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(quantize_writes_a_model_that_opens),
        T(quantize_keeps_tagger_embedder_and_reranker),
        T(quantize_matches_the_reference_converter),
        T(quantize_copies_a_gguf),
        T(quantize_honours_the_longest_override),
        T(quantize_takes_patterns_of_whole_names),
        T(quantize_names_an_override_that_fits_nothing),
        T(quantize_is_no_worse_than_the_reference),
        T(quantize_mixes_types_as_the_field_does),
        T(quantize_falls_back_for_odd_widths),
        T(quantize_refuses_wrong_overrides),
        T(quantize_writes_the_fields_tokenizer_keys),
        T(quantize_leaves_the_old_file_when_the_disk_is_full),
        T(quantize_can_be_stopped),
        T(quantize_replaces_nothing_but_files),
        T(quantize_names_a_folder_it_cannot_write),
        cmocka_unit_test(searched_scales_beat_the_plain_ones),
        cmocka_unit_test(important_columns_are_kept_better),
        cmocka_unit_test(blocks_of_equal_values_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
