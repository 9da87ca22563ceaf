/* adapter_read.c: the files an adapter comes in: PEFT folders and GGUF; see adapter.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "json/hub_file.h"
#include "json/json.h"
#include "model/adapter_impl.h"
#include "model/files/gguf.h"

enum { CONFIG_MAX = 1 << 20 };

/* ---- PEFT ------------------------------------------------------------------------------------------- */

/* Settings that change what is computed, and what a setting must be to change nothing. */
static const struct {
    const char *key, *why;
} strange[] = {
    {"use_dora", "DoRA adapters are not computed here"},
    {"lora_bias", "its matrices B have biases"},
    {"use_qalora", "QA-LoRA pools its inputs, which is not computed here"},
    {"alora_invocation_tokens", "activated LoRA begins within a prompt, which is not computed here"},
    {"modules_to_save", "it replaces whole modules; train without \"modules_to_save\""},
    {"alpha_pattern", "a scale for each module is not computed here"},
    {"layer_replication", "it repeats layers of its base"},
    {"trainable_token_indices", "it replaces rows of embeddings"},
    {"target_parameters", "it adapts bare parameters, not modules"},
    {"megatron_config", "it was trained on parts of matrices"},
};

static bool is_nothing(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) || (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_object(v) && json_object_size(v) == 0);
}

static int check_strange(const json_t *c, const char *what, shoal_err *err)
{
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        const json_t *v = json_object_get(c, strange[i].key);
        if (is_nothing(v)) continue;
        const char *name = json_string_value(json_is_array(v) ? json_array_get(v, 0) : v);
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: \"%s\"%s%.60s%s is set: %s", what, strange[i].key,
                       name ? " (" : "", name ? name : "", name ? ")" : "", strange[i].why);
    }
    return 0;
}

/* Starts that take something off the base's weights: B A counts from what is left. */
static int check_start(const json_t *c, const char *what, shoal_err *err)
{
    static const char *const others[] = {"pissa", "olora", "corda", "loftq"};
    const char *how = json_string_value(json_object_get(c, "init_lora_weights"));
    for (size_t i = 0; how && i < sizeof others / sizeof *others; i++)
        if (strncmp(how, others[i], strlen(others[i])) == 0)
            return err_set(
                err, SHOAL_EUNSUPPORTED,
                "%s: \"init_lora_weights\" is \"%.20s\", so it was trained beside changed weights; "
                "convert it to plain LoRA when saving",
                what, how);
    return 0;
}

static int read_scale(adapter_source *s, const json_t *c, shoal_err *err)
{
    int64_t rank = 0;
    double alpha = 0;
    int rc = json_get_int(c, "r", 1, ADAPTER_RANK_MAX, &rank, err);
    if (rc == 0) rc = json_get_num(c, "lora_alpha", -1e6, 1e6, &alpha, err);
    if (rc == 0) rc = json_get_bool(c, "use_rslora", &s->root_rank, err);
    if (rc) return err_prefix(err, rc, "%s", s->what);
    if (rank == 0) return err_set(err, SHOAL_EFORMAT, "%s: \"r\" is missing", s->what);
    if (alpha == 0) return err_set(err, SHOAL_EFORMAT, "%s: \"lora_alpha\" is missing or 0", s->what);
    s->alpha = alpha;
    s->rank = is_nothing(json_object_get(c, "rank_pattern")) ? (size_t)rank : 0;
    return 0;
}

/* fan_in_fan_out says how the base stores W; A and B are stored the same way either way. */
static int read_peft_config(adapter_source *s, const json_t *c, shoal_err *err)
{
    const char *type = "LORA", *bias = "none";
    int rc = json_is_object(c) ? 0 : err_set(err, SHOAL_EFORMAT, "%s: no JSON object", s->what);
    if (rc) return rc;
    rc = json_get_str(c, "peft_type", &type, err);
    if (rc == 0) rc = json_get_str(c, "bias", &bias, err);
    if (rc) return err_prefix(err, rc, "%s", s->what);
    if (strcmp(type, "LORA") != 0)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: a PEFT adapter of type \"%.20s\"; only LORA is computed",
                       s->what, type);
    if (strcmp(bias, "none") != 0)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: \"bias\" is \"%.20s\": its biases are of the base; only \"none\" is computed",
                       s->what, bias);
    rc = check_strange(c, s->what, err);
    if (rc == 0) rc = check_start(c, s->what, err);
    return rc ? rc : read_scale(s, c, err);
}

/* ---- both ------------------------------------------------------------------------------------------- */

typedef struct piece {
    const void *data;
    size_t len;
} piece;

/* Of all bytes it was made of, with their lengths, and its strength. */
static int digest(adapter *a, const piece *ps, size_t n, float strength, shoal_err *err)
{
    sha256 *h = sha256_new();
    if (!h) return err_nomem(err);
    sha256_add(h, &strength, sizeof strength);
    for (size_t i = 0; i < n; i++) {
        uint64_t len = ps[i].len;
        sha256_add(h, &len, sizeof len);
        if (len) sha256_add(h, ps[i].data, ps[i].len);
    }
    sha256_end(h, &a->digest);
    return 0;
}

/* n_ps: what the digest is made of. */
static int adapter_read_make(adapter **ret, const adapter_source *s, const piece *ps, size_t n_ps,
                             const model *base, shoal_err *err)
{
    if (!isfinite(s->strength))
        return err_set(err, SHOAL_EINVALID, "%s: its strength is not a number", s->what);
    adapter *a = calloc(1, sizeof *a);
    if (!a) return err_nomem(err);
    atomic_init(&a->refs, 1);
    a->base = base;
    a->mem = arena_new(1 << 16);
    int rc = a->mem ? adapter_build(a, s, err) : err_nomem(err);
    if (rc == 0) rc = digest(a, ps, n_ps, s->strength, err);
    if (rc) {
        adapter_unref(a);
        return rc;
    }
    *ret = a;
    return 0;
}

int adapter_from_peft(adapter **ret, const char *config, size_t config_len, const void *weights, size_t len,
                      const char *what, float strength, const model *base, shoal_err *err)
{
    adapter_source s = {.what = what, .kind = NAME_HF, .strength = strength};
    json_t *c = NULL;
    st_list list = {0};
    arena *names = arena_new(0);
    int rc = names ? json_parse(&c, config, config_len, what, err) : err_nomem(err);
    if (rc == 0) rc = read_peft_config(&s, c, err);
    if (rc == 0) rc = safetensors_parse(&list, names, weights, len, what, err);
    s.list = list.items;
    s.n = list.n;
    const piece ps[] = {{config, config_len}, {weights, len}};
    if (rc == 0) rc = adapter_read_make(ret, &s, ps, 2, base, err);
    safetensors_list_done(&list);
    json_decref(c);
    arena_free(names);
    return rc;
}

/* ---- GGUF ------------------------------------------------------------------------------------------- */

static int read_gguf_config(adapter_source *s, gguf *g, const model_config *c, shoal_err *err)
{
    const char *type = "model", *kind = "", *arch = "";
    int rc = gguf_get_str(g, "general.type", &type, err);
    if (rc == 0) rc = gguf_get_str(g, "adapter.type", &kind, err);
    if (rc == 0) rc = gguf_get_str(g, "general.architecture", &arch, err);
    if (rc == 0) rc = gguf_get_num(g, "adapter.lora.alpha", -1e6, 1e6, &s->alpha, err);
    if (rc) return rc;
    if (strcmp(type, "adapter") != 0)
        return err_set(err, SHOAL_EFORMAT,
                       "%s: \"general.type\" is \"%.20s\", not \"adapter\": it is no adapter", s->what, type);
    if (strcmp(kind, "lora") != 0)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: \"adapter.type\" is \"%.20s\"; only \"lora\" is computed", s->what, kind);
    if (arch_by_gguf(arch) == c->arch) return 0;
    return err_set(err, SHOAL_EINVALID, "%s: an adapter of the architecture \"%.40s\"; the model's is \"%s\"",
                   s->what, arch, arch_name(c->arch));
}

int adapter_from_gguf(adapter **ret, const void *data, size_t len, const char *what, float strength,
                      const model *base, shoal_err *err)
{
    adapter_source s = {.what = what, .kind = NAME_GGUF, .strength = strength};
    gguf *g = NULL;
    int rc = gguf_parse(&g, data, len, what, err);
    if (rc == 0) rc = read_gguf_config(&s, g, model_get_config(base), err);
    if (rc == 0 && !(s.list = calloc(g->n_tensors + 1, sizeof *s.list))) rc = err_nomem(err);
    for (size_t i = 0; rc == 0 && i < g->n_tensors; i++)
        s.list[s.n++] = (st_tensor){.t = g->tensors[i], .dtype_name = dtype_name(g->tensors[i].type)};
    if (rc == 0) rc = adapter_read_make(ret, &s, &(piece){data, len}, 1, base, err);
    free(s.list);
    gguf_free(g);
    return rc;
}

/* ---- from disk -------------------------------------------------------------------------------------- */

static int open_folder(adapter **ret, const char *path, float strength, const model *base, shoal_err *err)
{
    buf config_path = {0}, weights_path = {0}, config = {0};
    file_map map = {0};
    int rc = buf_printf(&config_path, "%s/adapter_config.json", path) ||
                     buf_printf(&weights_path, "%s/adapter_model.safetensors", path)
                 ? err_nomem(err)
                 : 0;
    if (rc == 0) rc = hub_file_read_json(&config, config_path.data, CONFIG_MAX, err);
    if (rc == 0) rc = file_map_open(&map, weights_path.data, err);
    if (rc == 0) rc = hub_file_check(map.data, map.len, weights_path.data, err);
    if (rc == 0)
        rc = adapter_from_peft(ret, config.data, config.len, map.data, map.len, path, strength, base, err);
    file_map_close(&map);
    buf_done(&config);
    buf_done(&weights_path);
    buf_done(&config_path);
    return rc;
}

int adapter_open(adapter **ret, const char *path, float strength, const model *base, shoal_err *err)
{
    file_map map = {0};
    if (file_is_dir(path)) return open_folder(ret, path, strength, base, err);
    int rc = file_map_open(&map, path, err);
    if (rc == 0) rc = hub_file_check(map.data, map.len, path, err);
    if (rc == 0) rc = adapter_from_gguf(ret, map.data, map.len, path, strength, base, err);
    file_map_close(&map);
    return rc;
}
