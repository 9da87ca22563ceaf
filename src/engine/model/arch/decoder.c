/* decoder.c: see decoder.h. */
#include "model/arch/decoder.h"

#include <math.h>

const conf_row conf_window[] = {
    {"attention.sliding_window", "sliding_window", CONF_AT(attn.window), CONF_SIZE, CONF_ODD, 0, 16 << 20},
    CONF_END};

const conf_row conf_activation_row[] = {{"shoal.activation",
                                         "hidden_act hidden_activation activation_function", CONF_AT(ffn.act),
                                         CONF_ACT, CONF_ODD, 0, 0},
                                        CONF_END};

const conf_row conf_experts[] = {
    {"expert_count", "num_local_experts num_experts", CONF_AT(ffn.n_expert), CONF_SIZE, CONF_ODD, 0, 1024},
    {"expert_used_count", "num_experts_per_tok", CONF_AT(ffn.n_used), CONF_SIZE, CONF_ODD, 0, 1024},
    {"expert_feed_forward_length", "moe_intermediate_size", CONF_AT(ffn.n_ff_expert), CONF_SIZE, CONF_ODD, 1,
     1 << 20},
    {"expert_weights_norm", "norm_topk_prob", CONF_AT(ffn.sum_to_one), CONF_BOOL, CONF_ODD, 0, 0},
    CONF_END};

int decoder_pattern(conf *s, model_config *c, size_t every, uint8_t flag)
{
    uint8_t *layers;
    if (every == 0 || c->n_layer > 1024) return 0;
    int rc = conf_layers_make(s, c, &layers);
    for (size_t i = 0; rc == 0 && i < c->n_layer; i++)
        if ((i + 1) % every != 0) layers[i] |= flag;
    return rc;
}

int decoder_slides(conf *s, model_config *c)
{
    if (c->attn.window >= c->n_ctx) c->attn.window = 0;
    if (c->attn.window == 0 || c->layers) return 0;
    return decoder_pattern(s, c, c->n_layer + 1, LAYER_LOCAL);
}

int decoder_qwen_window(conf *s, model_config *c)
{
    bool used = s->g != NULL;
    size_t first = 0;
    uint8_t *layers;
    int rc = conf_bool(s, NULL, "use_sliding_window", &used);
    if (rc == 0) rc = conf_size(s, NULL, "max_window_layers", 0, 1024, &first);
    if (!used || c->attn.window >= c->n_ctx) c->attn.window = 0;
    if (rc != 0 || c->attn.window == 0 || c->layers || c->n_layer > 1024) return rc;
    rc = conf_layers_make(s, c, &layers);
    for (size_t i = first; rc == 0 && i < c->n_layer; i++) layers[i] = LAYER_LOCAL;
    return rc;
}

void decoder_scale_by(model_config *c, double by)
{
    if (by > 0 && by != (double)c->attn.head_dim) c->attn.scale = (float)(1 / sqrt(by));
}
