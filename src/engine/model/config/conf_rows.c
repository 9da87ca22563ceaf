/* conf_rows.c: the rows of a family's configuration, read from either kind of file and written to GGUF. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/config/conf.h"

#define SIZE(field, gguf, json, max, flags)                  \
    {                                                        \
        gguf, json, CONF_AT(field), CONF_SIZE, flags, 1, max \
    }

/* GGUF's names are the specification's; the others those of the families' config.json, the usual one first.
 */
const conf_row conf_sizes[] = {
    SIZE(n_layer, "block_count", "num_hidden_layers n_layer num_layers n_layers decoder_layers", 1024,
         CONF_NEEDED),
    SIZE(n_ctx, "context_length", "max_position_embeddings n_positions n_ctx", 16 << 20, CONF_NEEDED),
    SIZE(n_embd, "embedding_length", "hidden_size n_embd d_model dim", 65536, CONF_NEEDED),
    SIZE(ffn.n_ff, "feed_forward_length", "intermediate_size n_inner ffn_dim d_ff hidden_dim", 1 << 20, 0),
    SIZE(attn.n_head, "attention.head_count", "num_attention_heads n_head num_heads n_heads", 1024,
         CONF_NEEDED),
    SIZE(n_vocab, "vocab_size", "vocab_size", 4 << 20, CONF_NEEDED | CONF_QUIET),
    CONF_END};

#define EPS_JSON "rms_norm_eps norm_eps layer_norm_eps layer_norm_epsilon"
#define HEADS_KV SIZE(attn.n_head_kv, "attention.head_count_kv", "num_key_value_heads", 1024, 0)
#define HEAD_DIMS                                                     \
    SIZE(attn.head_dim, "attention.key_length", "head_dim", 4096, 0), \
        SIZE(attn.head_dim, "attention.value_length", NULL, 4096, CONF_SAME)

const conf_row conf_rms[] = {
    HEADS_KV,
    {"attention.layer_norm_rms_epsilon", EPS_JSON, CONF_AT(norm.eps), CONF_F32, CONF_TOLD, 0, 0.1},
    HEAD_DIMS,
    CONF_END};

const conf_row conf_layer[] = {
    HEADS_KV,
    {"attention.layer_norm_epsilon", EPS_JSON, CONF_AT(norm.eps), CONF_F32, CONF_TOLD, 0, 0.1},
    HEAD_DIMS,
    CONF_END};

const conf_row conf_rope[] = {{"rope.freq_base", "rope_theta rotary_emb_base global_rope_theta",
                               CONF_AT(pos.rope.theta), CONF_F64, 0, 1, 1e12},
                              SIZE(pos.rope.dim, "rope.dimension_count", NULL, 4096, 0),
                              SIZE(n_vocab, "vocab_size", NULL, 4 << 20, 0),
                              CONF_END};

/* ---- reading ---------------------------------------------------------------------------------------- */

static int refuse_flag(conf *s, const conf_row *row)
{
    bool set = false;
    int rc = conf_bool(s, row->gguf, row->json, &set);
    if (rc != 0 || !set) return rc;
    return conf_fail(s, SHOAL_EUNSUPPORTED, "a %s model with \"%s\" set is not supported", arch_name(s->def),
                     s->g ? row->gguf : row->json);
}

static int read_choice(conf *s, const conf_row *row, int *at)
{
    bool set = *at == (int)row->max;
    int rc = conf_bool(s, row->gguf, row->json, &set);
    if (rc == 0) *at = set ? (int)row->max : (int)row->min;
    return rc;
}

static int read_row(conf *s, const conf_row *row, void *at)
{
    int64_t i;
    double d;
    int rc = 0;
    switch (row->type) {
    case CONF_SIZE: return conf_size(s, row->gguf, row->json, (size_t)row->min, (size_t)row->max, at);
    case CONF_INT:
        i = *(int32_t *)at;
        rc = conf_int(s, row->gguf, row->json, (int64_t)row->min, (int64_t)row->max, &i);
        if (rc == 0) *(int32_t *)at = (int32_t)i;
        return rc;
    case CONF_F32:
        d = (double)*(float *)at;
        rc = conf_num(s, row->gguf, row->json, row->min, row->max, &d);
        if (rc == 0) *(float *)at = (float)d;
        return rc;
    case CONF_F64: return conf_num(s, row->gguf, row->json, row->min, row->max, at);
    case CONF_BOOL: return conf_bool(s, row->gguf, row->json, at);
    case CONF_CHOICE: return read_choice(s, row, at);
    case CONF_ACT: return conf_activation(s, row->gguf, row->json, at);
    case CONF_FALSE: return refuse_flag(s, row);
    }
    return rc;
}

static bool is_missing(conf *s, const conf_row *row, const void *at)
{
    if (row->flags & CONF_TOLD) return s->g && !conf_has(s, row->gguf, NULL);
    return (row->flags & CONF_NEEDED) && *(const size_t *)at == 0;
}

static int check_needed(conf *s, const conf_row *row, const void *at)
{
    if (!is_missing(s, row, at)) return 0;
    char key[96], word[64] = "";
    if (row->json) snprintf(word, sizeof word, "%.*s", (int)strcspn(row->json, " "), row->json);
    return conf_fail(s, s->g ? SHOAL_EFORMAT : SHOAL_EINVALID, "\"%s\" is missing",
                     s->g ? conf_key(s->def, row->gguf, key) : word);
}

static const conf_row *row_at(const arch_def *def, size_t i)
{
    for (size_t k = 0; k < ARCH_LISTS && def->conf[k]; k++)
        for (const conf_row *r = def->conf[k]; r->gguf || r->json; r++)
            if (i-- == 0) return r;
    return NULL;
}

int conf_rows_read(conf *s, model_config *c)
{
    const conf_row *row;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (row = row_at(s->def, i)); i++) {
        void *at = (char *)c + row->offset;
        if (row->flags & CONF_SAME) continue;
        rc = read_row(s, row, at);
        if (rc == 0) rc = check_needed(s, row, at);
    }
    return rc;
}

int conf_rows_again(conf *s, model_config *c)
{
    const conf_row *row;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (row = row_at(s->def, i)); i++) {
        if (!(row->flags & CONF_SAME)) continue;
        size_t said = *(size_t *)((char *)c + row->offset), again = said;
        rc = read_row(s, row, &again);
        if (rc == 0 && again != said)
            rc = conf_fail(s, SHOAL_EUNSUPPORTED, "\"%s\" is %zu where %zu is needed: this is not supported",
                           row->gguf ? row->gguf : row->json, again, said);
    }
    return rc;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static bool is_same(const conf_row *row, const void *a, const void *b)
{
    switch (row->type) {
    case CONF_SIZE: return *(const size_t *)a == *(const size_t *)b;
    case CONF_INT: return *(const int32_t *)a == *(const int32_t *)b;
    case CONF_F32: return *(const float *)a == *(const float *)b;
    case CONF_F64: return *(const double *)a == *(const double *)b;
    case CONF_BOOL: return *(const bool *)a == *(const bool *)b;
    case CONF_CHOICE: return *(const int *)a == *(const int *)b;
    case CONF_ACT: return *(const activation *)a == *(const activation *)b;
    case CONF_FALSE: break;
    }
    return false;
}

static void write_row(gguf_out *o, const conf_row *row, const char *key, const void *at)
{
    switch (row->type) {
    case CONF_SIZE: gguf_out_u32(o, key, (uint32_t) * (const size_t *)at); break;
    case CONF_INT: gguf_out_u32(o, key, (uint32_t) * (const int32_t *)at); break;
    case CONF_F32: gguf_out_f32(o, key, *(const float *)at); break;
    case CONF_F64: gguf_out_f32(o, key, (float)*(const double *)at); break;
    case CONF_BOOL: gguf_out_bool(o, key, *(const bool *)at); break;
    case CONF_CHOICE: gguf_out_bool(o, key, *(const int *)at == (int)row->max); break;
    case CONF_ACT: gguf_out_str(o, key, activation_name(*(const activation *)at)); break;
    case CONF_FALSE: gguf_out_bool(o, key, false); break;
    }
}

void conf_rows_write(gguf_out *o, const model_config *c)
{
    const conf_row *row;
    for (size_t i = 0; (row = row_at(c->arch, i)); i++) {
        const void *at = (const char *)c + row->offset, *base = (const char *)&c->arch->base + row->offset;
        char key[96];
        if (!row->gguf || (row->flags & CONF_QUIET)) continue;
        if ((row->flags & CONF_ODD) && is_same(row, at, base)) continue;
        write_row(o, row, conf_key(c->arch, row->gguf, key), at);
    }
}
