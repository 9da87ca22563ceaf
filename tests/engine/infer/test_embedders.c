/* Decoders that embed: folders with sentence-transformers' files beside a generator's. What the last norm
 * leaves of a text is checked by the reference's logits: the output matrix times a vector of the last token
 * is that token's logits, times a mean it is the mean of them. */
#include "helper.h"

#include <sys/stat.h>
#include <unistd.h>

#include "model/arch/arch.h"

/* Nothing between the vector and the logits but the matrix. */
static const char *const decoders[] = {"llama-gqa",
                                       "llama3-rope-scaled-tied",
                                       "mistral-sliding",
                                       "qwen2-bias",
                                       "qwen3-qknorm",
                                       "qwen3-moe",
                                       "gemma3",
                                       "gpt2",
                                       "phi3",
                                       "olmo2",
                                       "smollm3-nope",
                                       "opt"};

/* ---- a folder of links to a fixture, and the two files ------------------------------------------------- */

static char folder[256];

static void in_folder(const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text)
{
    char path[512];
    in_folder(name, path);
    FILE *f = fopen(path, "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static const char *const linked[] = {"config.json", "model.safetensors", "tokenizer.json",
                                     "tokenizer_config.json"};

static void make_folder(const char *fixture_name, const char *mode, const char *more)
{
    char path[512], target[512], text[256];
    strcpy(folder, "/tmp/shoal-embedder-XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 4; i++) {
        snprintf(target, sizeof target, DATA "hf/%s/%s", fixture_name, linked[i]);
        in_folder(linked[i], path);
        assert_int_equal(symlink(target, path), 0);
    }
    in_folder("1_Pooling", path);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(text, sizeof text, "{\"pooling_mode_%s\":true}", mode);
    write_file("1_Pooling/config.json", text);
    snprintf(text, sizeof text,
             "[{\"type\":\"sentence_transformers.models.Transformer\"},"
             "{\"type\":\"sentence_transformers.models.Pooling\"}%s]",
             more);
    write_file("modules.json", text);
}

static void drop_folder(void)
{
    static const char *const made[] = {"1_Pooling/config.json", "modules.json", "m.gguf"};
    char path[512];
    for (size_t i = 0; i < 4; i++) {
        in_folder(linked[i], path);
        unlink(path);
    }
    for (size_t i = 0; i < 3; i++) {
        in_folder(made[i], path);
        unlink(path);
    }
    in_folder("1_Pooling", path);
    rmdir(path);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- vectors ------------------------------------------------------------------------------------------- */

static float *embed(engine *e, const int32_t *ids, size_t n, size_t width)
{
    vectors v;
    vectors_init(&v);
    must(engine_encode(e, &(enc_request){.ids = ids, .n_ids = n}, on_vectors, &v, NULL, &err));
    vectors_wait(&v);
    assert_int_equal(v.status, 0);
    assert_true(v.rows == 1 && v.cols == width);
    float *values = v.values;
    v.values = NULL;
    vectors_done(&v);
    return values;
}

/* out[n_vocab] = the generator's output matrix times x */
static void to_logits(const model *m, const float *x, float *out)
{
    const model_config *c = model_get_config(m);
    const tensor *w = model_tensor(m, c->tied ? "token_embd.weight" : "output.weight");
    assert_true(w && dtype_block(w->type) == 1);
    float *row = malloc(c->n_embd * sizeof *row);
    for (size_t i = 0; i < c->n_vocab; i++) {
        double sum = 0;
        dtype_to_f32(w->type, (const char *)w->data + i * c->n_embd * dtype_block_bytes(w->type), row,
                     c->n_embd);
        for (size_t k = 0; k < c->n_embd; k++) sum += (double)row[k] * (double)x[k];
        out[i] = (float)sum;
    }
    free(row);
}

/* ref[n][n_vocab]: its last row, or the mean of all. */
static void wanted(const float *ref, size_t n, size_t n_vocab, bool mean, float *out)
{
    for (size_t i = 0; i < n_vocab; i++) {
        double sum = 0;
        for (size_t t = 0; t < n; t++) sum += (double)ref[t * n_vocab + i];
        out[i] = mean ? (float)(sum / (double)n) : ref[(n - 1) * n_vocab + i];
    }
}

static void check_prompts(const char *name, const char *path, bool mean)
{
    fixture f;
    rig r;
    model *generator;
    size_t i, n, n_ref;
    json_t *p;
    char original[512];
    snprintf(original, sizeof original, DATA "hf/%s", name);
    fixture_open(&f, name);
    must(model_open(&generator, original, &(model_options){.no_tokenizer = true}, &err));
    rig_open(&r, path, (engine_options){0});
    const model_config *c = model_get_config(r.m);
    assert_int_equal(c->task, TASK_EMBED);
    float *got = malloc(c->n_vocab * sizeof *got), *want = malloc(c->n_vocab * sizeof *want);
    json_array_foreach(json_object_get(f.expected, "prompts"), i, p)
    {
        int32_t *ids = int_array(json_object_get(p, "ids"), &n);
        float *ref = fixture_tensor(&f, json_string_value(json_object_get(p, "logits")), &n_ref);
        float *x = embed(r.e, ids, n, c->n_embd);
        to_logits(generator, x, got);
        wanted(ref, n, c->n_vocab, mean, want);
        double off = worst(got, want, c->n_vocab);
        if (!(off < 2e-5)) fail_msg("%s %s, prompt %zu: %g", path, mean ? "mean" : "last", i, off);
        free(x);
        free(ref);
        free(ids);
    }
    free(got);
    free(want);
    rig_close(&r);
    model_free(generator);
    fixture_close(&f);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void vectors_are_what_the_logits_are_made_of(void **state)
{
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        make_folder(decoders[i], "lasttoken", "");
        check_prompts(decoders[i], folder, false);
        drop_folder();
        make_folder(decoders[i], "mean_tokens", "");
        check_prompts(decoders[i], folder, true);
        drop_folder();
    }
}

/* A GGUF of it says the field's pooling_type beside our keys, and gives the same. */
static void a_gguf_of_it_embeds_too(void **state)
{
    char path[512];
    quantize_report report;
    make_folder("qwen3-qknorm", "lasttoken", "");
    in_folder("m.gguf", path);
    must(quantize_model(folder, path, &(quantize_options){.type = DT_F32}, &report, &err));
    check_prompts("qwen3-qknorm", path, false);
    must(quantize_model(folder, path, &(quantize_options){.type = DT_Q8_0}, &report, &err));
    rig r;
    rig_open(&r, path, (engine_options){0});
    assert_int_equal(model_get_config(r.m)->head.pool, POOL_LAST);
    rig_close(&r);
    drop_folder();
}

/* Many texts in one step give the bits of each alone. */
static void a_batch_gives_the_bits_of_one(void **state)
{
    enum { N = 12 };
    rig r;
    int32_t ids[40];
    vectors v[N];
    make_folder("mistral-sliding", "lasttoken", ",{\"type\":\"sentence_transformers.models.Normalize\"}");
    rig_open(&r, folder, (engine_options){.n_threads = 2});
    size_t width = model_get_config(r.m)->n_embd;
    for (size_t k = 0; k < 40; k++) ids[k] = (int32_t)(k * 7 % 500 + 3);
    for (size_t i = 0; i < N; i++) {
        vectors_init(&v[i]);
        must(engine_encode(r.e, &(enc_request){.ids = ids + i, .n_ids = 1 + 2 * i}, on_vectors, &v[i], NULL,
                           &err));
    }
    for (size_t i = 0; i < N; i++) {
        vectors_wait(&v[i]);
        float *alone = embed(r.e, ids + i, 1 + 2 * i, width);
        double length = 0;
        for (size_t k = 0; k < width; k++) length += (double)alone[k] * (double)alone[k];
        assert_true(fabs(length - 1) < 1e-5);
        assert_memory_equal(v[i].values, alone, width * sizeof *alone);
        free(alone);
        vectors_done(&v[i]);
    }
    rig_close(&r);
    drop_folder();
}

/* What lies between the products of a step stays in a core's cache: a model that would have room for 512
 * positions at once reads no more than 256 of several texts. */
static void many_texts_are_read_in_several_steps(void **state)
{
    enum { N = 32, LENGTH = 60, A_STEP = 256 / LENGTH };
    rig r;
    int32_t ids[LENGTH];
    vectors v[N];
    engine_stats stats;
    make_folder("llama3-rope-scaled-tied", "lasttoken", "");
    rig_open(&r, folder, (engine_options){.n_threads = 1});
    for (size_t k = 0; k < LENGTH; k++) ids[k] = (int32_t)(k * 7 % 200 + 3);
    for (size_t i = 0; i < N; i++) {
        vectors_init(&v[i]);
        must(engine_encode(r.e, &(enc_request){.ids = ids, .n_ids = LENGTH}, on_vectors, &v[i], NULL, &err));
    }
    for (size_t i = 0; i < N; i++) {
        vectors_wait(&v[i]);
        vectors_done(&v[i]);
    }
    engine_get_stats(r.e, &stats);
    assert_true(stats.n_steps >= N / A_STEP);
    rig_close(&r);
    drop_folder();
}

static void refused(const char *sentence)
{
    model *m = NULL;
    engine *e = NULL;
    shoal_err err = {0};
    int rc = model_open(&m, folder, NULL, &err);
    if (rc == 0) rc = engine_new(&e, m, &(engine_options){0}, &err);
    if (rc != SHOAL_EUNSUPPORTED || !strstr(err.message, sentence)) fail_msg("%d %s", rc, err.message);
    engine_free(e);
    model_free(m);
    drop_folder();
}

static void what_would_give_other_vectors_is_refused(void **state)
{
    make_folder("qwen3-qknorm", "lasttoken", ",{\"type\":\"sentence_transformers.models.Dense\"}");
    refused("behind the network");
    make_folder("qwen3-qknorm", "max_tokens", "");
    refused("pooling \"max\"");
    make_folder("lfm2-conv", "lasttoken", "");
    refused("short convolutions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_what_the_logits_are_made_of),
        cmocka_unit_test(a_gguf_of_it_embeds_too),
        cmocka_unit_test(a_batch_gives_the_bits_of_one),
        cmocka_unit_test(many_texts_are_read_in_several_steps),
        cmocka_unit_test(what_would_give_other_vectors_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
