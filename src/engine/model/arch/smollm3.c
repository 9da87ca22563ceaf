/* smollm3.c: SmolLM 3 (Bakouch et al. 2025): Llama, of whose layers every fourth has no rotary embedding. */
#include "model/arch/decoder.h"

/* "no_rope_layers" has a 1 where a layer does rotate. */
static int smollm3_finish(conf *s, model_config *c)
{
    const json_t *list = conf_json(s, "no_rope_layers");
    size_t every = 4;
    uint8_t *layers;
    int rc = decoder_qwen_window(s, c);
    if (rc == 0) rc = conf_size(s, NULL, "no_rope_layer_interval", 1, 1024, &every);
    if (rc != 0 || c->n_layer > 1024 || conf_has(s, "shoal.layers", NULL)) return rc;
    if (list && json_array_size(list) != c->n_layer)
        return conf_fail(s, SHOAL_EINVALID, "\"no_rope_layers\" tells of %zu layers; the model has %zu",
                         json_array_size(list), c->n_layer);
    rc = conf_layers_make(s, c, &layers);
    for (size_t i = 0; rc == 0 && i < c->n_layer; i++) {
        bool rotates = list ? json_integer_value(json_array_get(list, i)) != 0 : (i + 1) % every != 0;
        if (!rotates) layers[i] |= LAYER_NO_ROPE;
    }
    return rc;
}

const arch_def arch_smollm3 = {
    .name = "smollm3",
    .hf_types = NAMES("smollm3"),
    .task = TASK_GENERATE,
    .tasks = CAN(TASK_GENERATE),
    .base = DECODER_BASE,
    .conf = {conf_sizes, conf_rms, conf_rope, conf_activation_row, conf_window},
    .tensors = {rules_embed, rules_attention, rules_gated},
    .prefixes = NAMES("model."),
    .ignored = ignored_rotary,
    .rope = true,
    .pairs = true,
    .finish = smollm3_finish,
};
