/* conf_sampling.c: how an author wants the model's replies drawn: generation_config.json, or GGUF's
 * general.sampling.* (the names of llama.cpp's gguf-py, constants.py). */
#include <math.h>
#include <string.h>

#include "json/json.h"
#include "model/config/conf.h"

/* NULL: that kind of file has no such value. */
static const struct {
    const char *field, *key, *json;
} rows[] = {
    {"temperature", "general.sampling.temp", "temperature"},
    {"top_k", "general.sampling.top_k", "top_k"},
    {"top_p", "general.sampling.top_p", "top_p"},
    {"min_p", "general.sampling.min_p", "min_p"},
    {"repetition_penalty", "general.sampling.penalty_repeat", "repetition_penalty"},
};

static bool conf_sampling_find(conf *s, size_t i, double *ret)
{
    if (s->g) return conf_has(s, rows[i].key, NULL) && conf_num(s, rows[i].key, NULL, -1e30, 1e30, ret) == 0;
    const json_t *v = json_object_get(s->files->generation, rows[i].json);
    if (!json_is_number(v)) return false;
    *ret = json_number_value(v);
    return true;
}

/* What cannot be used is left out, and the model's notice says so: no model is refused for how it would like to be
 * asked, and no other value is put in that one's place. Other programs write -1 where top_k is off. */
static void conf_sampling_take(conf *s, model_config *c, const char *field, double v)
{
    shoal_err why;
    if (strcmp(field, "top_k") == 0) v = v == -1 ? 0 : floor(v);
    if (sampling_set(&c->sampling, field, v, &why) == 0) return;
    const char *before = c->sampling_left_out,
               *text = arena_printf(s->mem, "%s%s%s", before ? before : "", before ? "; " : "", why.message);
    if (text) c->sampling_left_out = text;
}

void conf_sampling_read(conf *s, model_config *c)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = 0;
        if (conf_sampling_find(s, i, &v)) conf_sampling_take(s, c, rows[i].field, v);
    }
    if (!s->g && json_is_false(json_object_get(s->files->generation, "do_sample")))
        conf_sampling_take(s, c, "temperature", 0); /* the likeliest token, whatever else stands there */
}

void conf_sampling_write(gguf_out *o, const model_config *c)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = 0;
        if (!sampling_get(&c->sampling, rows[i].field, &v)) continue;
        if (strcmp(rows[i].field, "top_k") == 0)
            gguf_out_i32(o, rows[i].key, (int32_t)v);
        else
            gguf_out_f32(o, rows[i].key, (float)v);
    }
}
