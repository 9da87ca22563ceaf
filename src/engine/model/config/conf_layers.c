/* conf_layers.c: what sets layers apart, where the file lists them one by one. */
#include <string.h>

#include "model/config/conf.h"

int conf_layers_make(conf *s, model_config *c, uint8_t **ret)
{
    if (!c->layers) {
        uint8_t *flags = arena_alloc(s->mem, c->n_layer + 1);
        if (!flags) return err_nomem(s->err);
        c->layers = flags;
    }
    *ret = (uint8_t *)c->layers;
    return 0;
}

static int read_json(conf *s, model_config *c, const json_t *list)
{
    static const struct {
        const char *name;
        uint8_t flags;
    } kinds[] = {{"full_attention", 0},
                 {"sliding_attention", LAYER_LOCAL},
                 {"conv", LAYER_CONV},
                 {"global", 0},
                 {"local", LAYER_LOCAL}};
    uint8_t *layers;
    if (json_array_size(list) != c->n_layer)
        return conf_fail(s, SHOAL_EINVALID, "\"layer_types\" tells of %zu layers; the model has %zu",
                         json_array_size(list), c->n_layer);
    int rc = conf_layers_make(s, c, &layers);
    for (size_t i = 0; rc == 0 && i < c->n_layer; i++) {
        const char *type = json_string_value(json_array_get(list, i));
        size_t k = 0, n = sizeof kinds / sizeof *kinds;
        while (k < n && (!type || strcmp(kinds[k].name, type) != 0)) k++;
        if (k == n)
            return conf_fail(s, SHOAL_EUNSUPPORTED,
                             "layer %zu is of the type \"%.40s\", which is not supported", i,
                             type ? type : "");
        layers[i] = kinds[k].flags;
    }
    return rc;
}

static int read_gguf(conf *s, model_config *c)
{
    const void *list = NULL;
    size_t n = 0;
    uint8_t *layers;
    int rc = gguf_get_array(s->g, "shoal.layers", GGUF_U8, &n, &list, s->err);
    if (rc != 0 || !list) return rc;
    if (n != c->n_layer)
        return conf_fail(s, SHOAL_EFORMAT, "\"shoal.layers\" tells of %zu layers; the model has %zu", n,
                         c->n_layer);
    rc = conf_layers_make(s, c, &layers);
    if (rc == 0) memcpy(layers, list, n);
    return rc;
}

int conf_layers_read(conf *s, model_config *c)
{
    const json_t *list = conf_json(s, "layer_types attention_layers");
    if (c->n_layer > 1024) return 0; /* arch_check_config will refuse it */
    if (s->g) return read_gguf(s, c);
    return json_is_array(list) ? read_json(s, c, list) : 0;
}

void conf_layers_write(gguf_out *o, const model_config *c)
{
    if (c->layers) gguf_out_array(o, "shoal.layers", GGUF_U8, c->layers, c->n_layer);
}
