/* conf_rope.c: rotary embeddings: one table of frequencies, and five ways to stretch it.
 *
 * config.json has them as "rope_scaling" (older) or "rope_parameters" (newer), which may keep one set for
 * each kind of layer; GGUF as rope.scaling.* keys, or as tensors of divisors. */
#include <math.h>
#include <string.h>

#include "json/json.h"
#include "model/config/conf.h"

static const struct {
    const char *name;
    rope_scaling scaling;
} kinds[] = {
    {"default", ROPE_PLAIN}, {"none", ROPE_PLAIN}, {"linear", ROPE_LINEAR}, {"dynamic", ROPE_DYNAMIC},
    {"llama3", ROPE_LLAMA3}, {"yarn", ROPE_YARN},  {"longrope", ROPE_LONG}, {"su", ROPE_LONG},
};

static int parse_kind(conf *s, const char *name, rope_scaling *ret)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) != 0) continue;
        *ret = kinds[i].scaling;
        return 0;
    }
    return conf_fail(
        s, SHOAL_EUNSUPPORTED,
        "rotary scaling of type \"%.40s\" is not supported (default, linear, dynamic, llama3, yarn "
        "and longrope are)",
        name);
}

/* ---- config.json ------------------------------------------------------------------------------------ */

static int check_llama3(conf *s, const rope_conf *r)
{
    if (r->factor >= 1 && r->original_ctx != 0 && r->low_freq > 0 && r->high_freq > r->low_freq) return 0;
    return conf_fail(s, SHOAL_EINVALID,
                     "llama3 rotary scaling needs factor, original_max_position_embeddings and "
                     "low_freq_factor < high_freq_factor");
}

static double yarn_mscale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * math_log(factor) + 1;
}

/* DeepSeek's way to say YaRN's attention factor: the quotient of two. */
static int read_yarn(conf *s, const json_t *o, rope_conf *r)
{
    double mscale = 0, all = 0;
    bool truncate = true;
    r->beta_fast = 32;
    r->beta_slow = 1;
    int rc = json_get_num(o, "beta_fast", 1e-3, 1e6, &r->beta_fast, s->err);
    if (rc == 0) rc = json_get_num(o, "beta_slow", 1e-3, 1e6, &r->beta_slow, s->err);
    if (rc == 0) rc = json_get_num(o, "mscale", 0, 1e3, &mscale, s->err);
    if (rc == 0) rc = json_get_num(o, "mscale_all_dim", 0, 1e3, &all, s->err);
    if (rc == 0) rc = json_get_bool(o, "truncate", &truncate, s->err);
    if (rc == 0 && !truncate)
        rc = conf_fail(s, SHOAL_EUNSUPPORTED, "yarn scaling with \"truncate\": false is not supported");
    if (rc == 0 && r->attn_factor == 0 && mscale > 0 && all > 0)
        r->attn_factor = yarn_mscale(r->factor, mscale) / yarn_mscale(r->factor, all);
    return rc;
}

static int read_divisors(conf *s, const json_t *o, const char *key, size_t n, const float **ret)
{
    const json_t *list = json_object_get(o, key);
    float *values = arena_alloc(s->mem, n * sizeof *values + 1);
    if (!values) return err_nomem(s->err);
    if (json_array_size(list) != n)
        return conf_fail(s, SHOAL_EINVALID, "\"%s\" has %zu values where %zu are needed", key,
                         json_array_size(list), n);
    for (size_t i = 0; i < n; i++) {
        double v = json_number_value(json_array_get(list, i));
        if (!(v > 1e-6 && v < 1e9))
            return conf_fail(s, SHOAL_EINVALID, "value %zu of \"%s\" is no divisor", i, key);
        values[i] = (float)v;
    }
    *ret = values;
    return 0;
}

static int read_long(conf *s, const json_t *o, rope_conf *r)
{
    int rc = read_divisors(s, o, "short_factor", r->dim / 2, &r->short_by);
    return rc != 0 ? rc : read_divisors(s, o, "long_factor", r->dim / 2, &r->long_by);
}

/* LongRoPE (Ding et al. 2024), as Phi-3's reference has it. */
static double long_attn_factor(const rope_conf *r)
{
    return r->factor <= 1 || r->original_ctx < 2
               ? 1
               : sqrt(1 + math_log(r->factor) / math_log((double)r->original_ctx));
}

static int read_numbers(conf *s, const json_t *o, const model_config *c, rope_conf *r)
{
    double original = 0;
    int rc = json_get_num(o, "factor", 1e-3, 1e6, &r->factor, s->err);
    if (rc == 0) rc = json_get_num(o, "low_freq_factor", 1e-3, 1e6, &r->low_freq, s->err);
    if (rc == 0) rc = json_get_num(o, "high_freq_factor", 1e-3, 1e6, &r->high_freq, s->err);
    if (rc == 0) rc = json_get_num(o, "attention_factor", 1e-3, 1e3, &r->attn_factor, s->err);
    if (rc == 0) rc = json_get_num(s->json, "original_max_position_embeddings", 1, 1e9, &original, s->err);
    if (rc == 0) rc = json_get_num(o, "original_max_position_embeddings", 1, 1e9, &original, s->err);
    if (rc != 0) return rc;
    r->original_ctx = (size_t)original;
    if (r->original_ctx == 0 && r->scaling != ROPE_LLAMA3 && r->scaling != ROPE_LINEAR)
        r->original_ctx = c->n_ctx;
    if (r->scaling == ROPE_LONG && r->factor == 0) r->factor = (double)c->n_ctx / (double)r->original_ctx;
    if (r->scaling != ROPE_LLAMA3 && r->factor == 0) r->factor = 1;
    if (r->scaling == ROPE_LONG && r->attn_factor == 0) r->attn_factor = long_attn_factor(r);
    return 0;
}

/* One set of parameters; dim is settled before. */
static int read_set(conf *s, const json_t *o, const model_config *c, rope_conf *r)
{
    const char *type = "default";
    double partial = 0;
    int rc = json_get_num(o, "rope_theta", 1, 1e12, &r->theta, s->err);
    if (rc == 0) rc = json_get_num(o, "partial_rotary_factor", 0, 1, &partial, s->err);
    if (rc == 0) rc = json_get_str(o, "type", &type, s->err); /* the name before "rope_type" */
    if (rc == 0) rc = json_get_str(o, "rope_type", &type, s->err);
    if (rc == 0) rc = parse_kind(s, type, &r->scaling);
    if (rc != 0) return rc;
    if (partial > 0) r->dim = (size_t)((double)c->attn.head_dim * partial);
    if (r->scaling == ROPE_PLAIN) return 0;
    rc = read_numbers(s, o, c, r);
    if (rc == 0 && r->scaling == ROPE_LLAMA3) rc = check_llama3(s, r);
    if (rc == 0 && r->scaling == ROPE_YARN) rc = read_yarn(s, o, r);
    if (rc == 0 && r->scaling == ROPE_LONG) rc = read_long(s, o, r);
    return rc;
}

static int read_json(conf *s, model_config *c)
{
    const json_t *params = json_object_get(s->json, "rope_parameters");
    const json_t *scaling = json_is_object(params) ? params : json_object_get(s->json, "rope_scaling");
    const json_t *full = json_object_get(params, "full_attention");
    const json_t *local = json_object_get(params, "sliding_attention");
    rope_conf *r = &c->pos.rope;
    double partial = 1;
    if (params && !json_is_null(params) && !json_is_object(params))
        return conf_fail(s, SHOAL_EINVALID, "\"rope_parameters\" must be an object");
    int rc = conf_num(s, NULL, "partial_rotary_factor rotary_pct rope_pct", 0, 1, &partial);
    if (rc != 0) return rc;
    if (r->dim == 0) r->dim = (size_t)((double)c->attn.head_dim * partial);
    if (json_is_object(full)) scaling = full;
    if (json_is_object(local) || c->pos.local.theta > 0) c->pos.local.dim = r->dim;
    if (json_is_object(local)) rc = read_set(s, local, c, &c->pos.local);
    if (rc == 0 && json_is_object(scaling)) rc = read_set(s, scaling, c, r);
    return rc;
}

/* ---- GGUF ------------------------------------------------------------------------------------------- */

static int copy_divisors(conf *s, const char *name, size_t n, const float **ret)
{
    const tensor *t = conf_tensor(s, name);
    if (!t || t->type != DT_F32 || t->dims[0] != n)
        return conf_fail(s, SHOAL_EFORMAT, "longrope scaling needs %s with %zu values", name, n);
    float *values = arena_alloc(s->mem, n * sizeof *values + 1);
    if (!values) return err_nomem(s->err);
    memcpy(values, t->data, n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        if (!(values[i] > 1e-6f && values[i] < 1e9f))
            return conf_fail(s, SHOAL_EFORMAT, "value %zu of %s is no divisor", i, name);
    *ret = values;
    return 0;
}

static int read_gguf_long(conf *s, model_config *c)
{
    rope_conf *r = &c->pos.rope;
    r->scaling = ROPE_LONG;
    r->factor = r->original_ctx ? (double)c->n_ctx / (double)r->original_ctx : 1;
    int rc = conf_num(s, "shoal.rope_factor", NULL, 1e-3, 1e6, &r->factor);
    if (r->original_ctx == 0) r->original_ctx = c->n_ctx;
    if (rc == 0) rc = copy_divisors(s, "rope_factors_short.weight", r->dim / 2, &r->short_by);
    return rc != 0 ? rc : copy_divisors(s, "rope_factors_long.weight", r->dim / 2, &r->long_by);
}

static int read_gguf(conf *s, model_config *c)
{
    const char *type = "none";
    double factor = 1;
    rope_conf *r = &c->pos.rope;
    if (r->dim == 0) r->dim = c->attn.head_dim;
    int rc = conf_num(s, "rope.scale_linear", NULL, 1e-3, 1e6, &factor); /* before rope.scaling.* */
    if (rc == 0) rc = conf_str(s, "rope.scaling.type", NULL, &type);
    if (rc == 0) rc = conf_str(s, "shoal.rope_scaling", NULL, &type);
    if (rc == 0) rc = parse_kind(s, type, &r->scaling);
    if (rc == 0)
        rc = conf_size(s, "rope.scaling.original_context_length", NULL, 1, 16 << 20, &r->original_ctx);
    if (rc == 0) rc = conf_num(s, "rope.scaling.attn_factor", NULL, 1e-3, 1e3, &r->attn_factor);
    if (rc != 0) return rc;
    if (r->scaling == ROPE_LONG || conf_tensor(s, "rope_factors_long.weight")) return read_gguf_long(s, c);
    if (r->scaling != ROPE_PLAIN) rc = conf_num(s, "rope.scaling.factor", NULL, 1e-3, 1e6, &factor);
    if (r->scaling == ROPE_YARN) {
        r->beta_fast = 32;
        r->beta_slow = 1;
        if (rc == 0) rc = conf_num(s, "rope.scaling.yarn_beta_fast", NULL, 1e-3, 1e6, &r->beta_fast);
        if (rc == 0) rc = conf_num(s, "rope.scaling.yarn_beta_slow", NULL, 1e-3, 1e6, &r->beta_slow);
    }
    if (r->scaling == ROPE_PLAIN && factor != 1) r->scaling = ROPE_LINEAR;
    if (r->scaling == ROPE_LINEAR && factor == 1) r->scaling = ROPE_PLAIN;
    if (r->scaling != ROPE_PLAIN) r->factor = factor;
    if (r->original_ctx == 0 && (r->scaling == ROPE_YARN || r->scaling == ROPE_DYNAMIC))
        r->original_ctx = c->n_ctx;
    return rc;
}

int conf_rope_read(conf *s, model_config *c)
{
    int rc = s->g ? read_gguf(s, c) : read_json(s, c);
    if (c->pos.local.theta > 0) c->pos.local.dim = c->pos.rope.dim;
    c->pos.rope.interleaved = c->pos.local.interleaved = s->g && s->def->pairs;
    return rc;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static void put_num(gguf_out *o, const model_config *c, const char *name, double v)
{
    char key[96];
    gguf_out_f32(o, conf_key(c->arch, name, key), (float)v);
}

void conf_rope_write(gguf_out *o, const model_config *c)
{
    /* LLAMA3 is written as the tensor rope_freqs; no key tells of DYNAMIC. */
    static const char *const names[] = {
        [ROPE_LINEAR] = "linear", [ROPE_YARN] = "yarn", [ROPE_LONG] = "longrope"};
    const rope_conf *r = &c->pos.rope;
    char key[96];
    if (r->scaling == ROPE_PLAIN || r->scaling == ROPE_LLAMA3) return;
    if (r->scaling == ROPE_DYNAMIC)
        gguf_out_str(o, "shoal.rope_scaling", "dynamic");
    else
        gguf_out_str(o, conf_key(c->arch, "rope.scaling.type", key), names[r->scaling]);
    if (r->scaling == ROPE_LONG)
        gguf_out_f32(o, "shoal.rope_factor", (float)r->factor);
    else
        put_num(o, c, "rope.scaling.factor", r->factor);
    if (r->attn_factor > 0) put_num(o, c, "rope.scaling.attn_factor", r->attn_factor);
    if (r->original_ctx)
        gguf_out_u32(o, conf_key(c->arch, "rope.scaling.original_context_length", key),
                     (uint32_t)r->original_ctx);
    if (r->scaling != ROPE_YARN) return;
    put_num(o, c, "rope.scaling.yarn_beta_fast", r->beta_fast);
    put_num(o, c, "rope.scaling.yarn_beta_slow", r->beta_slow);
}
