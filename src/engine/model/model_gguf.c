/* model_gguf.c: a GGUF file -> model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/arch/registry.h"
#include "model/config/conf.h"
#include "model/model_adopt.h"
#include "model/model_build.h"
#include "model/model_priv.h"
#include "model/model_unknown.h"

enum { TOKENS_MAX = 4 << 20 };

/* ---- configuration --------------------------------------------------------------------------- */

/* The caller's to free; NULL when out of memory. */
static st_tensor *list_tensors(const gguf *g)
{
    st_tensor *list = calloc(g->n_tensors + 1, sizeof *list);
    for (size_t i = 0; list && i < g->n_tensors; i++)
        list[i] = (st_tensor){.t = g->tensors[i], .dtype_name = dtype_name(g->tensors[i].type)};
    return list;
}

static int model_gguf_refuse(const model *m, const char *arch, const gguf *g, shoal_err *err)
{
    st_tensor *list = list_tensors(g);
    int rc = list ? model_unknown(m->path, arch, NAME_GGUF, list, g->n_tensors, err) : err_nomem(err);
    free(list);
    return rc;
}

static int read_config(model *m, gguf *g, shoal_err *err)
{
    const char *name = NULL;
    int rc = gguf_get_str(g, "general.architecture", &name, err);
    if (rc == 0 && !name)
        rc = err_set(err, SHOAL_EFORMAT, "%s: \"general.architecture\" is missing", m->path);
    if (rc != 0) return rc;
    conf s = {.def = arch_by_gguf(name), .g = g, .mem = m->mem, .what = m->path, .err = err};
    if (!s.def) return model_gguf_refuse(m, name, g, err);
    return conf_read(&s, &m->config);
}

/* ---- tokenizer ------------------------------------------------------------------------------- */

/* Types are those of the specification: 0 undefined, 1 normal to 6 byte. */
static int check_tokens(const tokenizer_gguf *t, const char *what, shoal_err *err)
{
    for (size_t i = 0; t->token_types && i < t->n_tokens; i++)
        if (t->token_types[i] < 0 || t->token_types[i] > 6)
            return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.token_type[%zu] is %d; 0 to 6 are known",
                           what, i, (int)t->token_types[i]);
    for (size_t i = 0; t->scores && i < t->n_tokens; i++)
        if (!(t->scores[i] > -INFINITY && t->scores[i] < INFINITY))
            return err_set(err, SHOAL_EFORMAT, "%s: tokenizer.ggml.scores[%zu] is %g", what, i,
                           (double)t->scores[i]);
    return 0;
}

static int read_tokens(gguf *g, tokenizer_gguf *t, shoal_err *err)
{
    size_t n_types = 0, n_scores = 0;
    const void *types = NULL, *scores = NULL;
    int rc = gguf_get_str(g, "tokenizer.ggml.model", &t->model, err);
    if (rc == 0) rc = gguf_get_str(g, "tokenizer.ggml.pre", &t->pre, err);
    if (rc == 0)
        rc = gguf_get_strings(g, "tokenizer.ggml.tokens", &t->n_tokens, &t->tokens, &t->token_lens, err);
    if (rc == 0)
        rc = gguf_get_strings(g, "tokenizer.ggml.merges", &t->n_merges, &t->merges, &t->merge_lens, err);
    if (rc == 0) rc = gguf_get_array(g, "tokenizer.ggml.token_type", GGUF_I32, &n_types, &types, err);
    if (rc == 0) rc = gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &n_scores, &scores, err);
    if (rc != 0) return rc;
    if (t->n_tokens > TOKENS_MAX || (types && n_types != t->n_tokens) || (scores && n_scores != t->n_tokens))
        return err_set(err, SHOAL_EFORMAT, "%s: %zu tokens with %zu token types and %zu scores", g->what,
                       t->n_tokens, n_types, n_scores);
    t->token_types = types;
    t->scores = scores;
    return check_tokens(t, g->what, err);
}

static int read_flag(const gguf *g, const char *key, int *ret, shoal_err *err)
{
    bool v = false;
    *ret = -1;
    int rc = gguf_get_bool(g, key, &v, err);
    if (rc == 0 && gguf_find(g, key)) *ret = v;
    return rc;
}

/* How spaces are treated, and the map of characters, of SentencePiece's vocabularies. */
static int read_spaces(const gguf *g, tokenizer_gguf *t, shoal_err *err)
{
    static const char map[] = "tokenizer.ggml.precompiled_charsmap";
    const gguf_kv *kv = gguf_find(g, map);
    int prefix = -1;
    int rc = read_flag(g, "tokenizer.ggml.add_space_prefix", &prefix, err);
    t->space_prefix = gguf_find(g, "tokenizer.ggml.add_space_prefix") ? prefix ? 1 : -1 : 0;
    if (rc == 0)
        rc = gguf_get_bool(g, "tokenizer.ggml.remove_extra_whitespaces", &t->remove_extra_spaces, err);
    if (rc == 0) rc = gguf_get_bool(g, "tokenizer.ggml.treat_whitespace_as_suffix", &t->space_suffix, err);
    if (rc || !kv) return rc;
    if (kv->type != GGUF_ARRAY || (kv->elem != GGUF_U8 && kv->elem != GGUF_I8))
        return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" is no array of bytes", g->what, map);
    t->charsmap = kv->data;
    t->charsmap_len = kv->n;
    return 0;
}

/* -1, also as the largest u32, is none; so is padding past the end, which no text needs. */
static int check_special(const gguf *g, const tokenizer_gguf *t, const char *key, int64_t *id, shoal_err *err)
{
    bool past = *id >= (int64_t)t->n_tokens;
    if (past && *id != UINT32_MAX && id != &t->pad)
        return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" is %lld; the tokenizer has %zu tokens", g->what, key,
                       (long long)*id, t->n_tokens);
    if (past) *id = -1;
    return 0;
}

static int read_special(const gguf *g, tokenizer_gguf *t, shoal_err *err)
{
    const struct {
        const char *key;
        int64_t *id;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", &t->bos},
        {"tokenizer.ggml.eos_token_id", &t->eos},
        {"tokenizer.ggml.unknown_token_id", &t->unk},
        {"tokenizer.ggml.padding_token_id", &t->pad},
        {"tokenizer.ggml.cls_token_id", &t->cls},
        {"tokenizer.ggml.mask_token_id", &t->mask},
        /* the misspelling is the format's; newer files have it right */
        {"tokenizer.ggml.seperator_token_id", &t->sep},
        {"tokenizer.ggml.separator_token_id", &t->sep},
    };
    int rc = 0;
    t->sep = -1;
    for (size_t i = 0; rc == 0 && i < sizeof ids / sizeof *ids; i++) {
        if (ids[i].id != &t->sep) *ids[i].id = -1;
        rc = gguf_get_int(g, ids[i].key, -1, UINT32_MAX, ids[i].id, err);
        if (rc == 0) rc = check_special(g, t, ids[i].key, ids[i].id, err);
    }
    if (rc == 0) rc = read_flag(g, "tokenizer.ggml.add_bos_token", &t->add_bos, err);
    if (rc == 0) rc = read_flag(g, "tokenizer.ggml.add_eos_token", &t->add_eos, err);
    if (rc == 0) rc = read_flag(g, "tokenizer.ggml.normalizer.lowercase", &t->lowercase, err);
    return rc;
}

/* Borrowed from the file, NULL when it has none. */
static const char *tokenizer_json(const gguf *g, size_t *ret_len)
{
    const gguf_kv *kv = gguf_find(g, "tokenizer.huggingface.json");
    return kv ? gguf_string(kv, ret_len) : NULL;
}

static int load_tokenizer(model *m, gguf *g, shoal_err *err)
{
    size_t len, config_len = 0;
    const char *json = tokenizer_json(g, &len);
    const gguf_kv *kv = gguf_find(g, "shoal.tokenizer_config");
    const char *config = kv ? gguf_string(kv, &config_len) : NULL;
    if (json) return tokenizer_from_json(&m->tok, json, len, config, config_len, m->path, err);
    tokenizer_gguf t = {0};
    int rc = read_tokens(g, &t, err);
    if (rc == 0) rc = read_special(g, &t, err);
    if (rc == 0) rc = read_spaces(g, &t, err);
    if (rc != 0) return rc;
    if (!t.model || !t.tokens)
        return err_set(err, SHOAL_ENOTFOUND, "%s: the file holds no tokenizer", m->path);
    return tokenizer_from_gguf(&m->tok, &t, m->path, err);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int load_text_side(model *m, gguf *g, bool no_tokenizer, shoal_err *err)
{
    int rc = no_tokenizer ? 0 : model_build_tokenizer(m, load_tokenizer(m, g, err), err);
    static const char key[] = "tokenizer.chat_template";
    const gguf_kv *kv = gguf_find(g, key);
    const char *results = "";
    size_t len;
    if (rc == 0 && kv && kv->type != GGUF_STRING)
        return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" is no string", g->what, key);
    if (rc == 0) rc = gguf_get_str(g, "shoal.tool_results", &results, err);
    m->quotes_results = strcmp(results, "quote") == 0;
    const char *source = kv ? gguf_string(kv, &len) : NULL;
    if (rc != 0 || !source) return rc;
    return model_build_template(m, source, len, m->path, err);
}

/* What stands in front of the network, for those that read no text. */
static int load_input_side(model *m, gguf *g, shoal_err *err)
{
    const struct {
        const char *key, **to;
    } texts[] = {{"shoal.generation_config", &m->generation_json},
                 {"shoal.preprocessor_config", &m->preprocessor_json},
                 {"shoal.series_config", &m->series_json}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof texts / sizeof *texts; i++) {
        size_t len;
        const gguf_kv *kv = gguf_find(g, texts[i].key);
        const char *text = kv ? gguf_string(kv, &len) : NULL;
        if (text) rc = model_build_input(m, texts[i].to, text, len, m->path, err);
    }
    return rc;
}

static int adopt_tensors(model *m, const gguf *g, shoal_err *err)
{
    st_tensor *list = list_tensors(g);
    int rc = list ? model_adopt(m, NAME_GGUF, list, g->n_tensors, err) : err_nomem(err);
    free(list);
    return rc;
}

static int read_names(model *m, gguf *g, shoal_err *err)
{
    const char *name = m->name, *version = "";
    int rc = gguf_get_str(g, "general.name", &name, err);
    if (rc == 0) rc = gguf_get_str(g, "general.version", &version, err);
    if (rc != 0) return rc;
    m->name = arena_strdup(m->mem, name);
    m->version = arena_strdup(m->mem, version);
    return m->name && m->version ? 0 : err_nomem(err);
}

/* general.file_type by llama.cpp's numbering (enum llama_ftype in llama.h), and the type that such a file
 * has. */
static const struct {
    int number;
    const char *name;
    dtype type;
} mixtures[] = {
    {2, "Q4_0", DT_Q4_0},    {3, "Q4_1", DT_Q4_1},    {7, "Q8_0", DT_Q8_0},    {8, "Q5_0", DT_Q5_0},
    {9, "Q5_1", DT_Q5_1},    {10, "Q2_K", DT_Q2_K},   {11, "Q3_K_S", DT_Q3_K}, {12, "Q3_K_M", DT_Q3_K},
    {13, "Q3_K_L", DT_Q3_K}, {14, "Q4_K_S", DT_Q4_K}, {15, "Q4_K_M", DT_Q4_K}, {16, "Q5_K_S", DT_Q5_K},
    {17, "Q5_K_M", DT_Q5_K}, {18, "Q6_K", DT_Q6_K},
};

static bool has_matrix_of(const model *m, dtype type)
{
    for (size_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].type == type && m->tensors[i].dims[1] > 1) return true;
    return false;
}

/* Users know a file by this name; the commonest type by bytes may be that of its embedding. */
static void read_file_type(model *m, const gguf *g)
{
    int64_t number = -1;
    if (gguf_get_int(g, "general.file_type", 0, 1024, &number, NULL) != 0)
        return; /* it only names the file */
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
        if (mixtures[i].number == number && has_matrix_of(m, mixtures[i].type))
            m->file_type = mixtures[i].name;
}

static int read_window(model *m, gguf *g, shoal_err *err)
{
    if (m->config.arch != &arch_llama) return 0;
    const char *names[3] = {m->name, NULL, NULL};
    int rc = gguf_get_str(g, "general.basename", &names[1], err);
    if (rc == 0) rc = gguf_get_str(g, "general.base_model.0.name", &names[2], err);
    bool unrecorded = !gguf_find(g, "llama.attention.sliding_window") && model_build_is_mistral(m, names, 3);
    return rc == 0 && unrecorded ? model_build_no_window(m, err) : rc;
}

int model_load_gguf(model *m, const model_options *opts, shoal_err *err)
{
    int rc = model_build_maps(m, 1, err);
    if (rc == 0) rc = model_build_map_file(m, m->path, err);
    if (rc == 0 && model_is_llama2c(m->maps[0].data, m->maps[0].len)) return model_load_llama2c(m, opts, err);
    if (rc == 0) rc = gguf_parse(&m->file, m->maps[0].data, m->maps[0].len, m->path, err);
    if (rc == 0) rc = read_config(m, m->file, err);
    if (rc == 0) rc = read_names(m, m->file, err);
    if (rc == 0) rc = read_window(m, m->file, err);
    if (rc == 0) rc = adopt_tensors(m, m->file, err);
    if (rc == 0) read_file_type(m, m->file);
    if (rc == 0) rc = load_text_side(m, m->file, opts->no_tokenizer, err);
    if (rc == 0) rc = load_input_side(m, m->file, err);
    return rc;
}
