/* model_ct2.c: Whisper from CTranslate2; see model_ct2.h. */
#include "model/model_ct2.h"

#include <stdlib.h>
#include <string.h>

#include "json/hub_file.h"
#include "json/json.h"
#include "model/model_build.h"

enum { MULTILINGUAL_VOCABULARY = 51865 }; /* CTranslate2's own rule; the English models have 51,864 */
enum { LAYERS_MAX = 1024 };

typedef struct ct2_reading {
    const char *path; /* the folder's */
    arena *mem, *weights;
    ct2_file file;
    st_list *out;
    shoal_err *err;
} ct2_reading;

static char *in_folder(arena *mem, const char *folder, const char *file)
{
    return arena_printf(mem, "%s/%s", folder, file);
}

/* ---- tensors ------------------------------------------------------------------------------------- */

/* A fused projection is rows of several, in this order. */
static const struct {
    const char *from, *to[3];
} parts[] = {
    {"conv1", {"conv1"}},
    {"conv2", {"conv2"}},
    {"layer_norm", {"layer_norm"}},
    {"position_encodings", {"embed_positions"}},
    {"embeddings", {"embed_tokens"}},
    {"self_attention/layer_norm", {"self_attn_layer_norm"}},
    {"self_attention/linear_0", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"self_attention/linear_1", {"self_attn.out_proj"}},
    {"attention/layer_norm", {"encoder_attn_layer_norm"}},
    {"attention/linear_0", {"encoder_attn.q_proj"}},
    {"attention/linear_1", {"encoder_attn.k_proj", "encoder_attn.v_proj"}},
    {"attention/linear_2", {"encoder_attn.out_proj"}},
    {"ffn/layer_norm", {"final_layer_norm"}},
    {"ffn/linear_0", {"fc1"}},
    {"ffn/linear_1", {"fc2"}},
};

static const struct {
    const char *from, *to;
} ends[] = {
    {"weight", "weight"}, {"bias", "bias"}, {"gamma", "weight"}, {"beta", "bias"}, {"encodings", "weight"}};

static const char *end_of(const char *name)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(ends[i].from, name) == 0) return ends[i].to;
    return NULL;
}

static const char *const *part_of(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].from) == n && memcmp(parts[i].from, name, n) == 0) return parts[i].to;
    return NULL;
}

/* Values as they are computed with: 8-bit ones divided by the scale of their row. */
static int widen_int8(ct2_reading *r, const ct2_variable *v, tensor *t)
{
    char *scales = arena_printf(r->mem, "%s_scale", v->name);
    const ct2_variable *s = scales ? ct2_find(&r->file, scales) : NULL;
    if (!scales) return err_nomem(r->err);
    if (v->type != CT2_I8 || !s || s->type != CT2_F32 || v->n_dims == 0 || s->n != v->dims[0])
        return err_set(r->err, SHOAL_EUNSUPPORTED,
                       "%s: %s is quantised in a way that is not supported; of CTranslate2's types float32, "
                       "float16, bfloat16 and int8 are read: convert with --quantization float16",
                       r->path, v->name);
    uint16_t *to = arena_alloc(r->weights, v->n * sizeof *to);
    if (!to) return err_nomem(r->err);
    size_t cols = v->n / v->dims[0];
    for (size_t row = 0; row < v->dims[0]; row++) {
        float scale;
        memcpy(&scale, s->data + row * sizeof scale, sizeof scale);
        for (size_t i = row * cols; i < (row + 1) * cols; i++)
            to[i] = f32_to_f16(scale != 0 ? (float)(int8_t)v->data[i] / scale : 0);
    }
    t->type = DT_F16;
    t->data = to;
    t->bytes = v->n * sizeof *to;
    return 0;
}

static int values_of(ct2_reading *r, const ct2_variable *v, tensor *t)
{
    static const dtype types[CT2_TYPES] = {[CT2_F32] = DT_F32,   [CT2_I8] = DT_COUNT, [CT2_I16] = DT_COUNT,
                                           [CT2_I32] = DT_COUNT, [CT2_F16] = DT_F16,  [CT2_BF16] = DT_BF16};
    *t = (tensor){.type = types[v->type], .n_dims = v->n_dims, .data = v->data, .bytes = v->bytes};
    for (size_t i = 0; i < CT2_DIMS_MAX; i++) t->dims[i] = i < v->n_dims ? v->dims[v->n_dims - 1 - i] : 1;
    return t->type == DT_COUNT ? widen_int8(r, v, t) : 0;
}

/* The rows of all that the list names, the same number each. */
static int push_rows(ct2_reading *r, const tensor *all, const char *prefix, const char *const to[3],
                     const char *end)
{
    size_t n = to[1] ? to[2] ? 3 : 2 : 1, *rows = NULL;
    tensor t = *all;
    rows = &t.dims[t.n_dims - 1];
    if (*rows % n != 0)
        return err_set(r->err, SHOAL_EFORMAT, "%s: %zu rows of %s are not %zu equal parts", r->path, *rows,
                       to[0], n);
    *rows /= n;
    t.bytes /= n;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        t.name = arena_printf(r->mem, "model.%s.%s.%s", prefix, to[i], end);
        if (!t.name) return err_nomem(r->err);
        t.data = (const uint8_t *)all->data + i * t.bytes;
        rc = safetensors_list_push(r->out, &(st_tensor){.t = t, .dtype_name = dtype_name(t.type)}, r->err);
    }
    return rc;
}

static int unknown(const ct2_reading *r, const ct2_variable *v)
{
    return err_set(
        r->err, SHOAL_EUNSUPPORTED,
        "%s: the variable %s has no place in Whisper as it is known: without it transcripts would be "
        "wrong",
        r->path, v->name);
}

/* "decoder/layer_3/ffn/linear_0/weight" -> model.decoder.layers.3.fc1.weight */
static int model_ct2_push(ct2_reading *r, const ct2_variable *v)
{
    static const char *const output[3] = {"proj_out"};
    const char *last = strrchr(v->name, '/'), *rest = strchr(v->name, '/');
    const char *end = last ? end_of(last + 1) : NULL;
    char side[8], prefix[32];
    int layer = -1, used = 0;
    tensor t;
    if (!end || rest >= last || (size_t)(rest - v->name) >= sizeof side) return unknown(r, v);
    memcpy(side, v->name, (size_t)(rest - v->name));
    side[rest - v->name] = '\0';
    if (strcmp(side, "encoder") != 0 && strcmp(side, "decoder") != 0) return unknown(r, v);
    rest++;
    if (sscanf(rest, "layer_%4d/%n", &layer, &used) == 1 && used > 0 && layer >= 0) rest += used;
    if (rest > last) return unknown(r, v);
    snprintf(prefix, sizeof prefix, layer >= 0 && used > 0 ? "%s.layers.%d" : "%s", side, layer);
    size_t n = (size_t)(last - rest);
    const char *const *to = part_of(rest, n);
    bool projects = n == strlen("projection") && memcmp(rest, "projection", n) == 0;
    if (!to && !projects) return unknown(r, v);
    int rc = values_of(r, v, &t);
    return rc ? rc : push_rows(r, &t, prefix, projects ? output : to, end);
}

static bool is_scale(const char *name)
{
    static const char tail[] = "weight_scale";
    size_t n = strlen(name), k = sizeof tail - 1;
    return n > k && strcmp(name + n - k, tail) == 0;
}

/* Single values and lists of heads are settings. */
static bool is_setting(const ct2_variable *v)
{
    return v->n_dims == 0 || strcmp(v->name, "decoder/alignment_heads") == 0;
}

static int list_tensors(ct2_reading *r)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->file.n; i++) {
        const ct2_variable *v = &r->file.v[i];
        if (!is_setting(v) && !is_scale(v->name)) rc = model_ct2_push(r, v);
    }
    return rc;
}

/* ---- configuration ------------------------------------------------------------------------------- */

static size_t count_layers(const ct2_reading *r, const char *side)
{
    size_t n = 0;
    for (char name[64]; n < LAYERS_MAX; n++) {
        snprintf(name, sizeof name, "%s/layer_%zu/ffn/layer_norm/gamma", side, n);
        if (!ct2_find(&r->file, name)) break;
    }
    return n;
}

/* A side of a variable's shape; 0: there is none. */
static size_t side_of(const ct2_reading *r, const char *name, size_t i)
{
    const ct2_variable *v = ct2_find(&r->file, name);
    return v && i < v->n_dims ? v->dims[i] : 0;
}

static int put_side(const ct2_reading *r, json_t *c, const char *side)
{
    char name[64], heads[32], layers[32], ff[32], first[64];
    int64_t n_heads = 0;
    snprintf(name, sizeof name, "%s/num_heads", side);
    snprintf(first, sizeof first, "%s/layer_0/ffn/linear_0/weight", side);
    snprintf(heads, sizeof heads, "%s_attention_heads", side);
    snprintf(layers, sizeof layers, "%s_layers", side);
    snprintf(ff, sizeof ff, "%s_ffn_dim", side);
    if (!ct2_number(&r->file, name, &n_heads))
        return err_set(r->err, SHOAL_EFORMAT,
                       "%s: model.bin has no %s: convert the model again with a current "
                       "ctranslate2",
                       r->path, name);
    bool bad = json_object_set_new(c, heads, json_integer(n_heads)) ||
               json_object_set_new(c, layers, json_integer((json_int_t)count_layers(r, side))) ||
               json_object_set_new(c, ff, json_integer((json_int_t)side_of(r, first, 0)));
    return bad ? err_nomem(r->err) : 0;
}

/* The id of an added token of tokenizer.json; -1: none. */
static json_int_t added_token(const json_t *tokenizer, const char *text)
{
    const json_t *list = json_object_get(tokenizer, "added_tokens"), *t;
    size_t i;
    json_array_foreach(list, i, t)
    {
        const char *content = json_string_value(json_object_get(t, "content"));
        const json_t *id = json_object_get(t, "id");
        if (content && json_is_integer(id) && strcmp(content, text) == 0) return json_integer_value(id);
    }
    return -1;
}

static int read_tokenizer(const ct2_reading *r, json_t **ret)
{
    char *path = in_folder(r->mem, r->path, "tokenizer.json");
    if (!path) return err_nomem(r->err);
    if (!file_exists(path))
        return err_set(
            r->err, SHOAL_ENOTFOUND,
            "%s: has no tokenizer.json, without which no text can be made of tokens: copy it from the "
            "Hugging Face folder of the same Whisper model",
            r->path);
    return hub_file_parse_json(ret, path, MODEL_JSON_MAX, r->err);
}

static int make_config(const ct2_reading *r, json_t **ret)
{
    json_t *tokenizer = NULL;
    int rc = read_tokenizer(r, &tokenizer);
    if (rc != 0) return rc;
    json_int_t end = added_token(tokenizer, "<|endoftext|>");
    json_int_t start = added_token(tokenizer, "<|startoftranscript|>");
    json_decref(tokenizer);
    if (end < 0 || start < 0)
        return err_set(r->err, SHOAL_EFORMAT, "%s: tokenizer.json has no token %s", r->path,
                       end < 0 ? "<|endoftext|>" : "<|startoftranscript|>");
    *ret = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "model_type", "whisper", "vocab_size",
        (json_int_t)side_of(r, "decoder/embeddings/weight", 0), "d_model",
        (json_int_t)side_of(r, "decoder/embeddings/weight", 1), "num_mel_bins",
        (json_int_t)side_of(r, "encoder/conv1/weight", 1), "max_source_positions",
        (json_int_t)side_of(r, "encoder/position_encodings/encodings", 0), "max_target_positions",
        (json_int_t)side_of(r, "decoder/position_encodings/encodings", 0), "eos_token_id", end,
        "decoder_start_token_id", start, "tie_word_embeddings",
        ct2_find(&r->file, "decoder/projection/weight") == ct2_find(&r->file, "decoder/embeddings/weight"),
        "activation_function", "gelu");
    if (!*ret) return err_nomem(r->err);
    rc = put_side(r, *ret, "encoder");
    return rc ? rc : put_side(r, *ret, "decoder");
}

static int make_generation(const ct2_reading *r, json_t **ret)
{
    static const char *const keys[][2] = {{"suppress_ids", "suppress_tokens"},
                                          {"suppress_ids_begin", "begin_suppress_tokens"}};
    json_t *own = NULL;
    char *path = in_folder(r->mem, r->path, "config.json");
    int rc = path ? 0 : err_nomem(r->err);
    if (rc == 0 && file_exists(path)) rc = hub_file_parse_json(&own, path, MODEL_INPUT_JSON_MAX, r->err);
    if (rc != 0) return rc;
    bool multilingual = side_of(r, "decoder/embeddings/weight", 0) >= MULTILINGUAL_VOCABULARY;
    *ret = json_pack("{s:b}", "is_multilingual", multilingual);
    for (size_t i = 0; *ret && i < sizeof keys / sizeof *keys; i++) {
        json_t *list = json_object_get(own, keys[i][0]);
        if (json_is_array(list) && json_object_set(*ret, keys[i][1], list)) rc = err_nomem(r->err);
    }
    json_decref(own);
    return *ret ? rc : err_nomem(r->err);
}

static int check_spec(const ct2_reading *r)
{
    if (strcmp(r->file.spec, "WhisperSpec") == 0) return 0;
    return err_set(
        r->err, SHOAL_EUNSUPPORTED,
        "%s: a CTranslate2 folder of the kind %.64s; of CTranslate2 only Whisper is read: give the "
        "original Hugging Face folder, or a GGUF file of the model",
        r->path, r->file.spec);
}

int model_ct2_tensors(const ct2_file *file, const char *path, arena *mem, arena *weights, st_list *ret,
                      shoal_err *err)
{
    ct2_reading r = {.path = path, .mem = mem, .weights = weights, .file = *file, .out = ret, .err = err};
    int rc = check_spec(&r);
    return rc ? rc : list_tensors(&r);
}

int model_ct2_read(model *m, ct2_configs *ret, st_list *ret_tensors, shoal_err *err)
{
    ct2_reading r = {.path = m->path, .mem = m->mem, .err = err};
    char *path = in_folder(m->mem, m->path, "model.bin");
    int rc = path ? model_build_maps(m, 1, err) : err_nomem(err);
    if (rc == 0 && packed_identity_known(&m->identity)) rc = packed_identify_also(&m->identity, path, err);
    if (rc == 0) rc = model_build_map_file(m, path, err);
    if (rc == 0 && !m->weights && !(m->weights = arena_new(1 << 20))) rc = err_nomem(err);
    if (rc == 0) rc = ct2_parse(&r.file, m->mem, m->maps[0].data, m->maps[0].len, path, err);
    if (rc == 0) rc = model_ct2_tensors(&r.file, m->path, m->mem, m->weights, ret_tensors, err);
    if (rc == 0) rc = make_config(&r, &ret->config);
    return rc ? rc : make_generation(&r, &ret->generation);
}
