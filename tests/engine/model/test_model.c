#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "json/json.h"
#include "base/file.h"
#include "base/sha256.h"
#include "gguf_bytes.h"
#include "model/arch/arch.h"
#include "model/files/gguf_writer.h"
#include "model/config/hf_config.h"
#include "model/model.h"
#include "model/widen.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

static const model_options bare = {.no_tokenizer = true};

static model *open_or_fail(const char *path, const model_options *opts)
{
    model *m = NULL;
    shoal_err err = {0};
    if (model_open(&m, path, opts, &err) != 0) fail_msg("%s", err.message);
    return m;
}

static void refused(const char *path, const model_options *opts, int code, const char *sentence)
{
    model *m = NULL;
    shoal_err err = {0};
    int rc = model_open(&m, path, opts, &err);
    if (rc != code || !strstr(err.message, sentence))
        fail_msg("%s: got %d \"%s\", expected %d \"%s\"", path, rc, err.message, code, sentence);
    assert_null(m);
}

/* ---- a folder of our own to damage ------------------------------------------------------------------ */

static char folder[256];

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/shoal_model_XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"config.json",
                                        "model.safetensors",
                                        "model.safetensors.index.json",
                                        "a.st",
                                        "pytorch_model.bin",
                                        "b.st",
                                        "generation_config.json",
                                        "pooling.json",
                                        "chat_template.jinja",
                                        "tokenizer_config.json",
                                        "tokenizer.json",
                                        "m.gguf"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}

static const char *in_folder(const char *file)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return path;
}

static void put(const char *file, const void *data, size_t n)
{
    FILE *f = fopen(in_folder(file), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void copy_from(const char *name, const char *file, const char *as)
{
    char path[512];
    buf b = {0};
    snprintf(path, sizeof path, DATA "hf/%s/%s", name, file);
    assert_int_equal(file_read(&b, path, 64 << 20, NULL), 0);
    put(as, b.data, b.len);
    buf_done(&b);
}

/* Write config.json with one key of llama-gqa's replaced; value NULL deletes it. */
static void put_config(const char *key, const char *value)
{
    json_t *c = NULL;
    assert_int_equal(json_parse_file(&c, DATA "hf/llama-gqa/config.json", 1 << 20, NULL), 0);
    if (key && value) json_object_set_new(c, key, json_loads(value, JSON_DECODE_ANY, NULL));
    if (key && !value) json_object_del(c, key);
    buf b = {0};
    json_put(&b, c);
    put("config.json", b.data, b.len);
    buf_done(&b);
    json_decref(c);
}

static void config_refused(const char *key, const char *value, int code, const char *sentence)
{
    put_config(key, value);
    refused(folder, &bare, code, sentence);
}

/* ---- how its author wants it drawn ---- */

static void put_author(const char *generation)
{
    copy_from("llama-gqa", "config.json", "config.json");
    copy_from("llama-gqa", "model.safetensors", "model.safetensors");
    put("generation_config.json", generation, strlen(generation));
}

static void expect_sampling(const char *path, const char *text)
{
    char is[SAMPLING_TEXT_BYTES];
    model *m = open_or_fail(path, &bare);
    sampling_format(&model_get_config(m)->sampling, is);
    model_free(m);
    assert_string_equal(is, text);
}

static void model_knows_how_its_author_wants_it_drawn(void **state)
{
    (void)state;
    static const struct {
        const char *generation, *text;
    } CASES[] = {
        {"{}", ""},
        {"{\"temperature\": 0.6, \"top_p\": 0.95, \"top_k\": 20, \"min_p\": 0.0, \"do_sample\": true}",
         "temperature=0.6,top_k=20,top_p=0.95,min_p=0"},
        {"{\"repetition_penalty\": 1.05, \"temperature\": null}", "repetition_penalty=1.05"},
        {"{\"do_sample\": false, \"temperature\": 0.9}", "temperature=0"},
        {"{\"top_k\": -1, \"temperature\": 5, \"top_p\": \"0.9\"}", "top_k=0"},
        {"{\"temperature\": -1, \"top_k\": 3, \"min_p\": -1, \"top_p\": 2}", "top_k=3"},
        {"{\"repetition_penalty\": 1e30, \"top_p\": 7}", ""}, /* nobody can mean these */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        quantize_report r;
        char gguf[sizeof folder + 16];
        put_author(CASES[i].generation);
        expect_sampling(folder, CASES[i].text);
        snprintf(gguf, sizeof gguf, "%s/m.gguf", folder);
        copy_from("llama-gqa", "tokenizer.json", "tokenizer.json");
        assert_int_equal(quantize_model(folder, gguf, &(quantize_options){.type = DT_F32}, &r, NULL), 0);
        expect_sampling(gguf, CASES[i].text); /* as general.sampling. */
    }
}

/* ---- folders --------------------------------------------------------------------------------- */

static void model_opens_llama_folder(void **state)
{
    (void)state;
    model *m = open_or_fail(DATA "hf/llama-gqa", &bare);
    const model_config *c = model_get_config(m);
    assert_string_equal(arch_name(c->arch), "llama");
    assert_int_equal(c->task, TASK_GENERATE);
    assert_int_equal(c->attn.n_head_kv, 2);
    assert_int_equal(c->attn.head_dim, 16);
    assert_int_equal(c->pos.rope.dim, 16);
    assert_false(c->pos.rope.interleaved);
    assert_false(c->tied);
    assert_int_equal(c->n_eos, 1);
    assert_int_equal(c->eos_ids[0], 0);
    const tensor *t = model_tensor(m, "blk.2.attn_k.weight");
    assert_non_null(t);
    assert_int_equal(t->dims[0], 64);
    assert_int_equal(t->dims[1], 32);
    assert_int_equal(t->type, DT_BF16);
    assert_null(model_tensor(m, "blk.3.attn_k.weight"));
    assert_string_equal(model_name(m), "llama-gqa");
    assert_string_equal(model_quantisation(m), "BF16");
    model_drop_weights(m);
    assert_null(model_tensor(m, "output.weight")->data);
    model_free(m);
}

static void model_reads_llama3_rope_and_tied_output(void **state)
{
    (void)state;
    model *m = open_or_fail(DATA "hf/llama3-rope-scaled-tied", &bare);
    const model_config *c = model_get_config(m);
    assert_true(c->tied);
    assert_null(model_tensor(m, "output.weight"));
    assert_true(c->pos.rope.factor == 8 && c->pos.rope.low_freq == 1 && c->pos.rope.high_freq == 4);
    assert_int_equal(c->pos.rope.original_ctx, 64);
    assert_true(c->pos.rope.theta == 500000);
    float factors[8];
    arch_rope_factors(c, factors, 8);
    model *g = open_or_fail(SHOAL_GGUF_DIR "/llama3-rope-scaled-tied.gguf", &bare);
    const float *expected = model_tensor(g, "rope_freqs.weight")->data;
    for (int i = 0; i < 8; i++) assert_float_equal(factors[i], expected[i], 1e-5f * expected[i]);
    model_free(g);
    model_free(m);
}

static void model_opens_every_bert_head(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        model_task task;
        size_t n_labels;
        bool pooler;
    } cases[] = {{"bert-intent", TASK_CLASSIFY, 5, true},
                 {"bert-ner", TASK_TAG, 7, false},
                 {"minilm-embed", TASK_EMBED, 0, false},
                 {"cross-encoder-rerank", TASK_CLASSIFY, 1, true}};
    for (size_t i = 0; i < 4; i++) {
        char path[512];
        snprintf(path, sizeof path, DATA "hf/%s", cases[i].name);
        model *m = open_or_fail(path, &bare);
        const model_config *c = model_get_config(m);
        assert_int_equal(c->task, cases[i].task);
        assert_int_equal(c->head.n_labels, cases[i].n_labels);
        assert_int_equal(model_tensor(m, "cls.weight") != NULL, cases[i].pooler);
        assert_int_equal(model_tensor(m, "cls.output.weight") != NULL, cases[i].n_labels > 0);
        assert_int_equal(c->ffn.act, ACT_GELU_ERF);
        assert_true(c->norm.eps == 1e-12f);
        model_free(m);
    }
    model *m = open_or_fail(DATA "hf/bert-ner", &bare);
    assert_string_equal(model_get_config(m)->head.labels[6], "I-ORG");
    model_free(m);
}

static void model_accepts_the_older_names(void **state)
{
    (void)state;
    copy_from("llama-gqa", "model.safetensors", "model.safetensors");
    put_config("rope_parameters", NULL);
    model *m = open_or_fail(folder, &bare);
    assert_true(model_get_config(m)->pos.rope.theta == 10000);
    model_free(m);
    json_t *c = NULL;
    assert_int_equal(json_parse_file(&c, in_folder("config.json"), 1 << 20, NULL), 0);
    json_object_set_new(c, "rope_theta", json_real(5e5));
    json_object_set_new(c, "rope_scaling", json_pack("{ss,sf}", "type", "linear", "factor", 4.0));
    json_object_set_new(c, "eos_token_id", json_pack("[i,i]", 2, 7));
    buf b = {0};
    json_put(&b, c);
    put("config.json", b.data, b.len);
    buf_done(&b);
    json_decref(c);
    m = open_or_fail(folder, &bare);
    assert_true(model_get_config(m)->pos.rope.theta == 5e5);
    assert_true(model_get_config(m)->pos.rope.scaling == ROPE_LINEAR &&
                model_get_config(m)->pos.rope.factor == 4);
    assert_int_equal(model_get_config(m)->n_eos, 2);
    assert_int_equal(model_get_config(m)->eos_ids[1], 7);
    model_free(m);
}

/* The folder's weights with one more tensor of 0 elements, or with `name` become one. */
static void put_empty(const char *name)
{
    buf file = {0}, header = {0}, out = {0};
    uint64_t n;
    json_t *o = NULL,
           *t = json_pack("{s:s,s:[i,i],s:[i,i]}", "dtype", "F32", "shape", 0, 64, "data_offsets", 0, 0);
    assert_int_equal(file_read(&file, DATA "hf/llama-gqa/model.safetensors", 1 << 24, NULL), 0);
    memcpy(&n, file.data, 8);
    assert_int_equal(json_parse(&o, file.data + 8, n, "header", NULL), 0);
    const json_t *was = json_object_get(o, name);
    if (was) json_object_set(o, "nothing", (json_t *)(uintptr_t)was); /* its bytes belong to somebody */
    json_object_set_new(o, name, t);
    assert_int_equal(json_put(&header, o), 0);
    uint64_t len = header.len;
    buf_append(&out, &len, 8);
    buf_append(&out, header.data, header.len);
    buf_append(&out, file.data + 8 + n, file.len - 8 - n);
    put("model.safetensors", out.data, out.len);
    json_decref(o);
    buf_done(&file);
    buf_done(&header);
    buf_done(&out);
}

static void a_tensor_without_elements_is_ignored_or_refused_by_name(void **state)
{
    (void)state;
    shoal_err err;
    model *m = NULL;
    copy_from("llama-gqa", "config.json", "config.json");
    put_empty("model.layers.0.nothing.weight");
    m = open_or_fail(folder, &bare);
    assert_null(model_tensor(m, "model.layers.0.nothing.weight"));
    model_free(m);
    put_empty("model.layers.0.self_attn.q_proj.weight");
    assert_int_not_equal(model_open(&m, folder, &bare, &err), 0);
    if (!strstr(err.message, "q_proj.weight is 0 x 64 where")) fail_msg("%s", err.message);
}

static void config_names_what_is_wrong(void **state)
{
    (void)state;
    copy_from("llama-gqa", "model.safetensors", "model.safetensors");
    config_refused("model_type", "\"llama9\"", SHOAL_EUNSUPPORTED,
                   "\"llama9\" is not supported; the closest that is: \"llama\"");
    config_refused("model_type", "\"llama9\"", SHOAL_EUNSUPPORTED, "a place for every tensor here");
    config_refused("model_type", "\"gpt3\"", SHOAL_EUNSUPPORTED,
                   "\"gpt2\", which has no place for 29 of the 30 tensors here, such as ");
    config_refused("model_type", NULL, SHOAL_EINVALID, "\"model_type\" is missing");
    config_refused("architectures", "[\"LlamaForQuestionAnswering\"]", SHOAL_EUNSUPPORTED,
                   "LlamaForQuestionAnswering");
    config_refused("num_hidden_layers", "0", SHOAL_EINVALID, "\"num_hidden_layers\" is 0");
    config_refused("num_hidden_layers", "100000", SHOAL_EINVALID, "is 100000, must be between 1 and 1024");
    config_refused("num_hidden_layers", "4", SHOAL_EFORMAT, "tensor blk.3.attn_norm.weight is missing");
    config_refused("hidden_size", "1000000", SHOAL_EINVALID, "between 1 and 65536");
    config_refused("hidden_size", "\"64\"", SHOAL_EINVALID, "must be an integer");
    config_refused("num_attention_heads", "3", SHOAL_EINVALID,
                   "3 query heads cannot share 2 key/value heads");
    config_refused("num_key_value_heads", "3", SHOAL_EINVALID, "4 query heads cannot share 3");
    config_refused("head_dim", "15", SHOAL_EINVALID, "15 rotary dimensions");
    config_refused("vocab_size", "705", SHOAL_EFORMAT,
                   "weight is 704 x 64 where the configuration needs 705 x 64");
    config_refused("vocab_size", NULL, SHOAL_EINVALID, "\"vocab_size\" is missing");
    config_refused("hidden_act", "\"xielu\"", SHOAL_EUNSUPPORTED, "\"xielu\"");
    config_refused("eos_token_id", "704", SHOAL_EINVALID, "outside the vocabulary of 704");
    config_refused("rope_parameters", "{\"rope_type\":\"spiral\",\"factor\":2}", SHOAL_EUNSUPPORTED,
                   "\"spiral\"");
    config_refused("rope_parameters", "{\"rope_type\":\"llama3\",\"factor\":8}", SHOAL_EINVALID,
                   "llama3 rotary scaling needs");
    config_refused("rms_norm_eps", "-1", SHOAL_EINVALID, "rms_norm_eps");
    put("config.json", "[1,2]", 5);
    refused(folder, &bare, SHOAL_EINVALID, "not a JSON object");
    put("config.json", "{", 1);
    refused(folder, &bare, SHOAL_EFORMAT, "not JSON");
    buf deep = {0};
    for (int i = 0; i < 100000; i++) buf_putc(&deep, '[');
    put("config.json", deep.data, deep.len);
    buf_done(&deep);
    refused(folder, &bare, SHOAL_ELIMIT, "nested deeper");
}

static void model_survives_a_config_that_links_to_itself(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder("config.json"));
    unlink(path);
    assert_int_equal(symlink("config.json", path), 0);
    refused(folder, &bare, SHOAL_EIO, "config.json");
    unlink(path);
}

static void model_reads_shards_and_names_a_missing_one(void **state)
{
    (void)state;
    put_config(NULL, NULL);
    copy_from("llama-gqa", "model.safetensors", "a.st");
    const char *index = "{\"weight_map\":{\"lm_head.weight\":\"a.st\",\"norm\":\"b.st\"}}";
    put("model.safetensors.index.json", index, strlen(index));
    refused(folder, &bare, SHOAL_ENOTFOUND, "b.st");
    put("b.st", "\2\0\0\0\0\0\0\0{}", 10);
    model *m = open_or_fail(folder, &bare);
    assert_non_null(model_tensor(m, "output.weight"));
    model_free(m);
    copy_from("llama-gqa", "model.safetensors", "b.st");
    refused(folder, &bare, SHOAL_EFORMAT, "appears twice");
}

static void model_names_missing_files(void **state)
{
    (void)state;
    refused("/no/such/model.gguf", &bare, SHOAL_ENOTFOUND, "/no/such/model.gguf");
    refused(folder, &bare, SHOAL_ENOTFOUND, "config.json");
    put_config(NULL, NULL);
    refused(folder, &bare, SHOAL_ENOTFOUND, "neither model.safetensors nor");
    put("pytorch_model.bin", "PK", 2);
    refused(folder, &bare, SHOAL_EUNSUPPORTED, "weights are in pytorch_model.bin");
    refused(folder, &bare, SHOAL_EUNSUPPORTED, "\"model.safetensors\")'"); /* the command is whole */
}

/* Header of llama-gqa with one tensor's dtype spelled otherwise. */
static void model_refuses_weights_it_cannot_compute_with(void **state)
{
    (void)state;
    put_config(NULL, NULL);
    buf b = {0};
    assert_int_equal(file_read(&b, DATA "hf/llama-gqa/model.safetensors", 64 << 20, NULL), 0);
    char *at = memmem(b.data, b.len, "\"dtype\":\"BF16\"", 14);
    assert_non_null(at);
    memcpy(at, "\"dtype\": \"I16\"", 14);
    put("model.safetensors", b.data, b.len);
    buf_done(&b);
    refused(folder, &bare, SHOAL_EUNSUPPORTED, "has dtype I16; weights may be F32, F16, BF16,");
}

/* One tensor of llama-gqa in another type: its values are those of the same bits read one by one. */
static void model_widens_what_nothing_computes_with(void **state)
{
    (void)state;
    static const uint8_t BYTES[] = {0x00, 0x01, 0x07, 0x08, 0x38, 0x3c, 0x7e, 0xb8};
    static const float E4M3[] = {0, 0x1p-9f, 0x7p-9f, 0x1p-6f, 1, 1.5f, 448, -1},
                       E5M2[] = {0, 0x1p-16f, 0x7p-16f, 0x1p-13f, 0.5f, 1, 0, -0.5f};
    const double DOUBLES[] = {1.0 / 3, -2.5};
    uint16_t half[8];
    float out[8];
    size_t bytes;
    dtype to;
    assert_true(widen_type("F8_E4M3", &to, &bytes) && to == DT_F16 && bytes == 1);
    widen_values("F8_E4M3", BYTES, half, 8);
    dtype_to_f32(DT_F16, half, out, 8);
    assert_memory_equal(out, E4M3, sizeof out);
    assert_true(widen_type("F8_E5M2", &to, &bytes) && to == DT_F16 && bytes == 1);
    widen_values("F8_E5M2", BYTES, half, 8);
    dtype_to_f32(DT_F16, half, out, 8);
    for (int i = 0; i < 8; i++) assert_true(i == 6 ? out[i] != out[i] : out[i] == E5M2[i]);
    assert_true(widen_type("F64", &to, &bytes) && to == DT_F32 && bytes == 8);
    widen_values("F64", DOUBLES, out, 2);
    assert_true(out[0] == (float)(1.0 / 3) && out[1] == -2.5f);
    assert_false(widen_type("I32", &to, &bytes));
}

/* ---- configurations alone ------------------------------------------------------------------------------ */

static int read_config(const char *config, const char *pool, const char *modules, model_config *ret,
                       shoal_err *err)
{
    json_t *c = json_loads(config, 0, NULL), *p = pool ? json_loads(pool, 0, NULL) : NULL;
    json_t *s = modules ? json_loads(modules, 0, NULL) : NULL;
    assert_non_null(c);
    hf_files files = {.config = c, .pooling = p, .st_modules = s};
    arena *mem = arena_new(0);
    int rc = hf_config_read(ret, &files, mem, "config.json", err);
    arena_free(mem);
    json_decref(c);
    json_decref(p);
    json_decref(s);
    return rc;
}

#define BERT(rest)                                                                                         \
    "{\"model_type\":\"bert\",\"vocab_size\":9,\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_" \
    "heads\":2,"                                                                                           \
    "\"intermediate_size\":4,\"max_position_embeddings\":16" rest "}"

static void config_reads_pooling_and_labels(void **state)
{
    (void)state;
    model_config c;
    shoal_err err = {0};
    assert_int_equal(read_config(BERT(""), NULL, NULL, &c, &err), 0);
    assert_int_equal(c.task, TASK_EMBED);
    assert_true(c.head.pool == POOL_MEAN && c.head.normalize);
    assert_int_equal(read_config(BERT(""),
                                 "{\"0\":{\"type\":\"pooling\",\"mode\":\"cls\"},\"normalize\":false}", NULL,
                                 &c, &err),
                     0);
    assert_true(c.head.pool == POOL_CLS && !c.head.normalize);
    assert_int_equal(
        read_config(BERT(""), NULL, "[{\"type\":\"sentence_transformers.models.Pooling\"}]", &c, &err), 0);
    assert_false(c.head.normalize);
    assert_int_equal(read_config(BERT(""), "{\"0\":{\"mode\":\"max\"}}", NULL, &c, &err), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "\"max\""));
    const char *multi = BERT(",\"architectures\":[\"BertForSequenceClassification\"],\"num_labels\":3,"
                             "\"problem_type\":\"multi_label_classification\"");
    assert_int_equal(read_config(multi, NULL, NULL, &c, &err), 0);
    assert_true(c.head.multi_label && c.head.n_labels == 3);
    const char *gap =
        BERT(",\"architectures\":[\"BertForTokenClassification\"],\"id2label\":{\"0\":\"O\",\"2\":\"B\"}");
    assert_int_equal(read_config(gap, NULL, NULL, &c, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "id2label"));
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

static void model_opens_gguf_files(void **state)
{
    (void)state;
    model *m = open_or_fail(SHOAL_GGUF_DIR "/minilm-embed.gguf", &bare);
    assert_int_equal(model_get_config(m)->task, TASK_EMBED);
    assert_true(model_get_config(m)->head.normalize);
    model_free(m);
    m = open_or_fail(SHOAL_GGUF_DIR "/llama-gqa.gguf", &bare);
    assert_true(model_get_config(m)->pos.rope.interleaved);
    assert_int_equal(model_get_config(m)->eos_ids[0], 2);
    assert_int_equal(model_get_config(m)->attn.n_head_kv, 2);
    model_free(m);
}

/* As the field's converter wrote such files before it kept the pooler: the class scores would be others. */
static void a_classifier_without_its_pooler_is_refused(void **state)
{
    (void)state;
    refused(SHOAL_GGUF_DIR "/bert-intent-no-pooler.gguf", &bare, SHOAL_EFORMAT,
            "the file is incomplete: tensor cls.weight");
    refused(SHOAL_GGUF_DIR "/bert-intent-no-pooler.gguf", &bare, SHOAL_EFORMAT,
            "shoal quantize FOLDER OUT.gguf");
    shoal_err err;
    quantize_report report;
    assert_int_equal(quantize_model(DATA "hf/bert-intent", in_folder("m.gguf"),
                                    &(quantize_options){.type = DT_F32}, &report, &err),
                     0);
    model *m = open_or_fail(in_folder("m.gguf"), &bare);
    assert_int_equal(model_get_config(m)->task, TASK_CLASSIFY);
    assert_string_equal(model_get_config(m)->head.labels[4], "play_music");
    model_free(m);
}

/* llama-gqa.gguf once more as m.gguf: a tensor more, and some values others. Zeros: as they are. */
typedef struct variant {
    const char *tensor, *name, *basename;
    uint32_t n_ctx, window;
    float theta;
} variant;

static bool replaced(const variant *v, const char *key)
{
    return (v->name && !strcmp(key, "general.name")) || (v->basename && !strcmp(key, "general.basename")) ||
           (v->n_ctx && !strcmp(key, "llama.context_length")) ||
           (v->theta > 0 && !strcmp(key, "llama.rope.freq_base"));
}

static void put_variant(const variant *v)
{
    file_map map;
    gguf *g = NULL;
    gguf_out o = {0};
    sha256_digest digest;
    uint64_t bytes;
    float zeros[16] = {0};
    assert_int_equal(file_map_open(&map, SHOAL_GGUF_DIR "/llama-gqa.gguf", NULL), 0);
    assert_int_equal(gguf_parse(&g, map.data, map.len, "llama-gqa", NULL), 0);
    for (size_t i = 0; i < g->n_kv; i++)
        if (!replaced(v, g->kv[i].key)) gguf_out_copy(&o, &g->kv[i]);
    if (v->name) gguf_out_str(&o, "general.name", v->name);
    if (v->basename) gguf_out_str(&o, "general.basename", v->basename);
    if (v->n_ctx) gguf_out_u32(&o, "llama.context_length", v->n_ctx);
    if (v->window) gguf_out_u32(&o, "llama.attention.sliding_window", v->window);
    if (v->theta > 0) gguf_out_f32(&o, "llama.rope.freq_base", v->theta);
    for (size_t i = 0; i < g->n_tensors; i++)
        gguf_out_tensor(&o, g->tensors[i].name, g->tensors[i].type, g->tensors[i].n_dims, g->tensors[i].dims);
    if (v->tensor) gguf_out_tensor(&o, v->tensor, DT_F32, 1, &(size_t){16});
    assert_int_equal(gguf_out_open(&o, in_folder("m.gguf"), NULL), 0);
    for (size_t i = 0; i < g->n_tensors; i++)
        assert_int_equal(gguf_out_data(&o, g->tensors[i].data, g->tensors[i].bytes, NULL), 0);
    if (v->tensor) assert_int_equal(gguf_out_data(&o, zeros, sizeof zeros, NULL), 0);
    assert_int_equal(gguf_out_close(&o, &digest, &bytes, NULL), 0);
    gguf_out_done(&o);
    gguf_free(g);
    file_map_close(&map);
}

static void a_tensor_without_a_place_is_refused(void **state)
{
    (void)state;
    put_variant(&(variant){.tensor = "blk.0.attn_q_norm.weight"});
    refused(in_folder("m.gguf"), &bare, SHOAL_EUNSUPPORTED, "tensor blk.0.attn_q_norm.weight has no place");
    put_variant(&(variant){.tensor = "blk.0.attn_rot_embd.weight"}); /* computed, not read */
    model_free(open_or_fail(in_folder("m.gguf"), &bare));
}

/* The same of a folder: a header that names one tensor more. */
static void put_safetensors_with(const char *tensor)
{
    buf b = {0}, out = {0};
    uint64_t n;
    assert_int_equal(file_read(&b, DATA "hf/llama-gqa/model.safetensors", 64 << 20, NULL), 0);
    memcpy(&n, b.data, sizeof n);
    json_t *head = json_loadb(b.data + 8, n, 0, NULL);
    size_t data = b.len - 8 - n;
    json_object_set_new(head, tensor,
                        json_pack("{s:s, s:[i], s:[I,I]}", "dtype", "F32", "shape", 16, "data_offsets",
                                  (json_int_t)data, (json_int_t)data + 64));
    char *text = json_dumps(head, JSON_COMPACT);
    uint64_t m = strlen(text);
    buf_append(&out, &m, sizeof m);
    buf_append(&out, text, m);
    buf_append(&out, b.data + 8 + n, data);
    buf_append(&out, (char[64]){0}, 64);
    put("model.safetensors", out.data, out.len);
    free(text);
    json_decref(head);
    buf_done(&b);
    buf_done(&out);
}

static void a_folders_tensor_without_a_place_is_refused(void **state)
{
    (void)state;
    put_config(NULL, NULL);
    put_safetensors_with("model.layers.0.self_attn.q_norm.weight");
    refused(folder, &bare, SHOAL_EUNSUPPORTED, "tensor model.layers.0.self_attn.q_norm.weight has no place");
    put_safetensors_with("model.layers.0.self_attn.rotary_emb.inv_freq");
    model_free(open_or_fail(folder, &bare));
}

/* A window as long as the context is none. */
static void a_sliding_window_makes_layers_local(void **state)
{
    (void)state;
    copy_from("llama-gqa", "model.safetensors", "model.safetensors");
    static const struct {
        const char *window;
        size_t expected;
    } CASES[] = {{"100", 100}, {"256", 0}, {"4096", 0}, {"null", 0}, {NULL, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        json_t *c = NULL;
        buf b = {0};
        assert_int_equal(json_parse_file(&c, DATA "hf/llama-gqa/config.json", 1 << 20, NULL), 0);
        json_object_set_new(c, "model_type", json_string("mistral"));
        json_object_set_new(c, "architectures", json_pack("[s]", "MistralForCausalLM"));
        if (CASES[i].window)
            json_object_set_new(c, "sliding_window", json_loads(CASES[i].window, JSON_DECODE_ANY, NULL));
        json_put(&b, c);
        put("config.json", b.data, b.len);
        model *m = open_or_fail(folder, &bare);
        assert_int_equal(model_get_config(m)->n_ctx, 256);
        assert_int_equal(model_get_config(m)->attn.window, CASES[i].expected);
        assert_int_equal(config_layer(model_get_config(m), 2) == LAYER_LOCAL, CASES[i].expected > 0);
        assert_null(model_notice(m));
        model_free(m);
        buf_done(&b);
        json_decref(c);
    }
    put_variant(&(variant){.window = 100});
    model *m = open_or_fail(in_folder("m.gguf"), &bare);
    assert_int_equal(model_get_config(m)->attn.window, 100);
    assert_int_equal(config_layer(model_get_config(m), 0), LAYER_LOCAL);
    model_free(m);
}

/* FILE.template is Ollama's, for a file that brings none. */
static void a_template_beside_the_file_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text, *holds, *notice;
    } CASES[] = {{"[{{ .Prompt }}] {{ .Response }}</s>", "go_turns", NULL},
                 {"{{ range .Messages }}{{ .Content }}{{ end }}", "go_data", NULL},
                 {" {{ .Prompt }}\n", "capitalize", NULL}, /* says nothing of turns */
                 {"", "capitalize", NULL},
                 {"a\n{{ .X", "capitalize", "line 2"},
                 {"{{ template \"a\" }}", "capitalize", "\"template\""}};
    put_variant(&(variant){.name = "Llama", .n_ctx = 32768, .theta = 10000});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        put("m.gguf.template", CASES[i].text, strlen(CASES[i].text));
        model *m = open_or_fail(in_folder("m.gguf"), &bare);
        const chat_template *t = model_chat_template(m);
        if (!strstr(chat_template_source(t), CASES[i].holds))
            fail_msg("case %zu: %s", i, chat_template_source(t));
        bool is_plain = strcmp(CASES[i].holds, "capitalize") == 0;
        assert_int_equal(model_chat_template_is_default(m), is_plain);
        assert_int_equal(model_chat_template_is_beside(m), !is_plain);
        const char *notice = model_notice(m);
        if (CASES[i].notice ? !notice || !strstr(notice, CASES[i].notice) : notice != NULL)
            fail_msg("case %zu: %s", i, notice ? notice : "no notice");
        model_free(m);
    }
    unlink(in_folder("m.gguf.template"));
}

static void a_mistral_file_without_its_window_is_noticed(void **state)
{
    (void)state;
    static const struct {
        variant v;
        bool noticed;
    } CASES[] = {
        {{.name = "Mistral-7B-Instruct-v0.1", .n_ctx = 32768, .theta = 10000}, true},
        {{.basename = "mistral", .n_ctx = 32768, .theta = 10000}, true},
        {{.name = "Mistral-7B-Instruct-v0.2", .n_ctx = 32768, .theta = 1e6f}, false},
        {{.name = "Mistral tiny", .n_ctx = 4096, .theta = 10000}, false},
        {{.name = "Mistral", .n_ctx = 32768, .theta = 10000, .window = 32768}, false},
        {{.name = "Llama", .n_ctx = 32768, .theta = 10000}, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        put_variant(&CASES[i].v);
        model *m = open_or_fail(in_folder("m.gguf"), &bare);
        if ((model_notice(m) != NULL) != CASES[i].noticed) fail_msg("case %zu", i);
        assert_int_equal(model_get_config(m)->n_ctx, CASES[i].v.n_ctx);
        model_free(m);
    }
}

/* The first weights of a matrix, to the last bit as doubles of the same formula give them. */
static void check_weights(const model *m, const json_t *want, const json_t *types, const char *file)
{
    const tensor *t = model_tensor(m, "blk.0.ffn_down.weight");
    float got[256];
    bool named = false;
    assert_true(t && t->dims[0] >= 256);
    for (size_t i = 0; i < json_array_size(types); i++)
        named = named || strcmp(json_string_value(json_array_get(types, i)), model_quantisation(m)) == 0;
    if (!named) fail_msg("%s: read as %s", file, model_quantisation(m));
    dtype_to_f32(t->type, t->data, got, 256);
    for (size_t i = 0; i < 64; i++) {
        double w = json_number_value(json_array_get(want, i)), error = fabs((double)got[i] - w);
        if (error > 1.2e-7 * fabs(w) + 1e-9)
            fail_msg("%s: weight %zu is %.9g, should be %.9g", file, i, (double)got[i], w);
    }
}

static void model_opens_every_supported_quantisation(void **state)
{
    (void)state;
    json_t *expected, *row;
    shoal_err err;
    const char *file;
    assert_int_equal(json_parse_file(&expected, DATA "quant/expected.json", 64 << 20, &err), 0);
    size_t n_seen = 0;
    json_object_foreach(json_object_get(expected, "files"), file, row)
    {
        char path[512];
        snprintf(path, sizeof path, DATA "quant/%s", file);
        if (!file_exists(path)) continue; /* TQ2_0, which llama.cpp calls experimental */
        model *m = open_or_fail(path, &bare);
        check_weights(m, json_object_get(row, "ffn_down_row0_first64"), json_object_get(row, "types"), file);
        model_free(m);
        n_seen++;
    }
    assert_int_equal(n_seen, DT_S8_64); /* all but our own types */
    json_decref(expected);
}

/* A checkpoint of llama2.c, made of quant's own weights: 1 layer, width 4, 2 heads of 2, 3 tokens, 5
 * positions. */
static void model_reads_llama2c(void **state)
{
    (void)state;
    enum { VALUES = 3 * 4 + 4 + 4 * 16 + 4 + 3 * 24 + 4 + 2 * 5 };
    int32_t head[7] = {4, 6, 1, 2, 2, 3, 5};
    float values[VALUES + 3 * 4];
    for (int i = 0; i < VALUES + 12; i++) values[i] = (float)i;
    buf b = {0};
    buf_append(&b, head, sizeof head);
    buf_append(&b, values, VALUES * sizeof *values);
    put("m.gguf", b.data, b.len);
    model *m = open_or_fail(in_folder("m.gguf"), &bare);
    assert_true(model_get_config(m)->tied && model_get_config(m)->pos.rope.interleaved);
    assert_true(((const float *)model_tensor(m, "blk.0.attn_q.weight")->data)[0] == 16);
    assert_true(((const float *)model_tensor(m, "output_norm.weight")->data)[0] == 3 * 4 + 4 + 64 + 4 + 72);
    model_free(m);
    m = open_or_fail(in_folder("m.gguf"), NULL);
    assert_non_null(strstr(model_tokenizer_error(m), "tokenizer.bin"));
    model_free(m);
    head[5] = -3; /* the classifier is apart */
    memcpy(b.data, head, sizeof head);
    put("m.gguf", b.data, b.len);
    refused(in_folder("m.gguf"), &bare, SHOAL_EFORMAT, "m.gguf");
    buf_append(&b, values + VALUES, 12 * sizeof *values);
    put("m.gguf", b.data, b.len);
    m = open_or_fail(in_folder("m.gguf"), &bare);
    assert_true(((const float *)model_tensor(m, "output.weight")->data)[0] == VALUES);
    model_free(m);
    buf_done(&b);
}

static void model_reads_the_stories(void **state)
{
    (void)state;
    static const char PATH[] = SHOAL_SOURCE_DIR "/../shared/borrowed/stories260K/stories260K.bin";
    if (access(PATH, R_OK) != 0) skip();
    model *m = open_or_fail(PATH, NULL);
    if (!model_tokenizer(m)) fail_msg("%s", model_tokenizer_error(m));
    assert_int_equal(model_get_config(m)->n_vocab, 512);
    assert_int_equal(model_get_config(m)->attn.n_head_kv, 4);
    assert_int_equal(model_tensor_count(m), 2 + 9 * 5);
    encoding a = {0}, b = {0};
    quantize_report report;
    static const char TEXT[] = "Once upon a time, Lily saw 3 caf\xC3\xA9s.";
    assert_int_equal(
        tokenizer_encode(model_tokenizer(m), TEXT, sizeof TEXT - 1, NULL, 0, TOK_ADD_SPECIAL, 1000, &a, NULL),
        0);
    model_free(m);
    assert_int_equal(
        quantize_model(PATH, in_folder("m.gguf"), &(quantize_options){.type = DT_Q8_0}, &report, NULL), 0);
    m = open_or_fail(in_folder("m.gguf"), NULL);
    if (!model_tokenizer(m)) fail_msg("%s", model_tokenizer_error(m));
    assert_int_equal(
        tokenizer_encode(model_tokenizer(m), TEXT, sizeof TEXT - 1, NULL, 0, TOK_ADD_SPECIAL, 1000, &b, NULL),
        0);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.ids, b.ids, a.n * sizeof *a.ids);
    encoding_done(&a);
    encoding_done(&b);
    model_free(m);
}

static void model_names_an_unknown_architecture(void **state)
{
    (void)state;
    buf b = {0};
    g_head(&b, 3, 0, 1);
    g_kv_str(&b, "general.architecture", "berta");
    put("m.gguf", b.data, b.len);
    refused(in_folder("m.gguf"), &bare, SHOAL_EUNSUPPORTED,
            "\"berta\" is not supported; the closest that is: \"bert\"");
    b.len = 0;
    g_head(&b, 3, 0, 1);
    g_kv_str(&b, "general.architecture", "llama");
    put("m.gguf", b.data, b.len);
    refused(in_folder("m.gguf"), &bare, SHOAL_EFORMAT, "\"llama.block_count\" is missing");
    buf_done(&b);
}

static void model_refuses_another_digest(void **state)
{
    (void)state;
    sha256_digest d;
    char hex[65];
    assert_int_equal(sha256_file(SHOAL_GGUF_DIR "/minilm-embed.gguf", &d, NULL), 0);
    sha256_hex(&d, hex);
    model_options pinned = {.expect_sha256 = hex, .no_tokenizer = true};
    model *m = open_or_fail(SHOAL_GGUF_DIR "/minilm-embed.gguf", &pinned);
    sha256_digest again;
    assert_int_equal(model_digest(m, &again, NULL), 0);
    assert_memory_equal(&d, &again, sizeof d);
    model_free(m);
    hex[0] = hex[0] == '0' ? '1' : '0';
    refused(SHOAL_GGUF_DIR "/minilm-embed.gguf", &pinned, SHOAL_EDIGEST, "is pinned");
    refused(DATA "hf/minilm-embed", &pinned, SHOAL_EDIGEST, "is pinned");
}

static void model_cut_anywhere_is_refused(void **state)
{
    (void)state;
    buf b = {0};
    assert_int_equal(file_read(&b, SHOAL_GGUF_DIR "/minilm-embed.gguf", 64 << 20, NULL), 0);
    for (size_t n = 0; n < b.len; n += b.len / 61) {
        put("m.gguf", b.data, n);
        model *m = NULL;
        shoal_err err;
        assert_int_equal(model_open(&m, in_folder("m.gguf"), &bare, &err), SHOAL_EFORMAT);
    }
    buf_done(&b);
}

static void model_loads_tokenizer_and_template(void **state)
{
    (void)state;
    model *m = open_or_fail(DATA "hf/llama3-rope-scaled-tied", NULL);
    if (!model_tokenizer(m)) fail_msg("%s", model_tokenizer_error(m));
    assert_true(tokenizer_vocab_size(model_tokenizer(m)) <= model_get_config(m)->n_vocab);
    assert_true(model_chat_template(m) || model_chat_template_error(m));
    model_free(m);
    m = open_or_fail(SHOAL_GGUF_DIR "/minilm-embed.gguf", NULL);
    if (!model_tokenizer(m)) fail_msg("%s", model_tokenizer_error(m));
    model_free(m);
}

static void model_remembers_why_there_is_no_tokenizer(void **state)
{
    (void)state;
    put_config(NULL, NULL);
    copy_from("llama-gqa", "model.safetensors", "model.safetensors");
    model *m = open_or_fail(folder, NULL);
    assert_null(model_tokenizer(m));
    assert_non_null(strstr(model_tokenizer_error(m), "tokenizer.json"));
    model_free(m);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(model_knows_how_its_author_wants_it_drawn),
        T(model_opens_llama_folder),
        T(model_reads_llama3_rope_and_tied_output),
        T(model_opens_every_bert_head),
        T(model_accepts_the_older_names),
        T(config_names_what_is_wrong),
        T(a_tensor_without_elements_is_ignored_or_refused_by_name),
        T(model_survives_a_config_that_links_to_itself),
        T(model_reads_shards_and_names_a_missing_one),
        T(model_names_missing_files),
        T(model_refuses_weights_it_cannot_compute_with),
        T(model_widens_what_nothing_computes_with),
        T(config_reads_pooling_and_labels),
        T(model_opens_gguf_files),
        T(a_classifier_without_its_pooler_is_refused),
        T(a_tensor_without_a_place_is_refused),
        T(a_folders_tensor_without_a_place_is_refused),
        T(a_sliding_window_makes_layers_local),
        T(a_mistral_file_without_its_window_is_noticed),
        T(a_template_beside_the_file_is_taken),
        T(model_opens_every_supported_quantisation),
        T(model_reads_llama2c),
        T(model_reads_the_stories),
        T(model_names_an_unknown_architecture),
        T(model_refuses_another_digest),
        T(model_cut_anywhere_is_refused),
        T(model_loads_tokenizer_and_template),
        T(model_remembers_why_there_is_no_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
