/* serve_stages.c: see serve_stages.h. */
#include "serve/serve_stages.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/stage_name.h"
#include "infer/stage.h"
#include "agent/stage_spec.h"
#include "kinds/model_kind.h"
#include "serve/serve_models.h"

/* ---- in the process that reads --------------------------------------------------------------------- */

typedef struct weights {
    uint64_t bytes, elements;
} weights;

static void serve_stages_add(weights *w, const tensor *t)
{
    uint64_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++) n *= t->dims[i];
    w->bytes += t->bytes;
    w->elements += n;
}

json_t *serve_stages_describe(const model *m)
{
    const model_config *c = model_get_config(m);
    weights layers = {0}, outer = {0}, head = {0};
    shoal_err err;
    if (stage_check_part(c, (net_layers){0, c->n_layer}, &err) != 0)
        return json_pack("{s:s}", "uncut", err.message);
    const tensor *output = model_tensor(m, "output.weight");
    if (!output) output = model_tensor(m, "token_embd.weight"); /* they are one */
    if (output) serve_stages_add(&head, output);
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        serve_stages_add(strncmp(t->name, "blk.", 4) == 0 ? &layers : &outer, t);
    }
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "layers", (json_int_t)c->n_layer, "width",
                     (json_int_t)c->n_embd, "layer_bytes", (json_int_t)(layers.bytes / c->n_layer),
                     "layer_multiplies", (json_int_t)(layers.elements / c->n_layer), "outer_bytes",
                     (json_int_t)outer.bytes, "head_bytes", (json_int_t)head.bytes, "head_multiplies",
                     (json_int_t)head.elements);
}

/* ---- in this one ----------------------------------------------------------------------------------- */

static uint64_t serve_stages_number(const json_t *j, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(j, key));
    return n > 0 ? (uint64_t)n : 0;
}

static int check_layers(const gateway_config *c, size_t i, size_t n_layer, shoal_err *err)
{
    const placement_shards *s = &c->models[i].shards;
    size_t sum = 0;
    for (size_t k = 0; k < s->n_parts; k++) sum += s->parts[k].n_layers;
    if (s->n > n_layer)
        return config_fail(c, err, "models[%zu].shards: '%s' has %zu layers, which make no %zu stages", i,
                           c->models[i].name, n_layer, s->n);
    if (s->n_parts > 0 && sum != n_layer)
        return config_fail(c, err, "models[%zu].shards: names %zu layers, but '%s' has %zu", i, sum,
                           c->models[i].name, n_layer);
    if (s->n_parts > 0 && !c->cluster_listen)
        return config_fail(
            c, err, "models[%zu].shards: names nodes, and this machine serves alone (cluster.listen)", i);
    return 0;
}

/* What was read of a cut model. */
static int take_shape(void *user, const gateway_config *c, size_t i, const json_t *said, shoal_err *err)
{
    serve_stages *st = user;
    const config_model *m = &c->models[i];
    const json_t *j = json_object_get(said, "stages");
    const char *uncut = json_string_value(json_object_get(j, "uncut"));
    if (uncut) return config_fail(c, err, "models[%zu].shards: '%s' cannot be cut: %s", i, m->name, uncut);
    split_shape s = {.n_layer = serve_stages_number(j, "layers"),
                     .n_embd = serve_stages_number(j, "width"),
                     .layer_bytes = serve_stages_number(j, "layer_bytes"),
                     .layer_multiplies = serve_stages_number(j, "layer_multiplies"),
                     .outer_bytes = serve_stages_number(j, "outer_bytes"),
                     .head_bytes = serve_stages_number(j, "head_bytes"),
                     .head_multiplies = serve_stages_number(j, "head_multiplies"),
                     .kv_bytes = m->kv_mb ? (uint64_t)m->kv_mb << 20 : MODEL_KV_LEAST_BYTES};
    const char *task = json_string_value(json_object_get(said, "task"));
    if (s.n_layer == 0 || !task || strcmp(task, task_name(TASK_GENERATE)) != 0)
        return config_fail(c, err,
                           "models[%zu].shards: '%s' is a model to %s; only one to generate can be cut", i,
                           m->name, task ? task : "do nothing");
    st->shapes[i] = s;
    return check_layers(c, i, s.n_layer, err);
}

/* ---- a machine that serves alone --------------------------------------------------------------------- */

/* As fast a place for each: all stages share one machine. */
static int split_evenly(const split_shape *s, size_t n, split_part parts[SPLIT_STAGES_MAX])
{
    split_place places[SPLIT_STAGES_MAX] = {0};
    for (size_t i = 0; i < n; i++)
        places[i] = (split_place){.free_bytes = UINT64_MAX, .bytes_per_s = 1, .multiplies_per_s = 1};
    return split_deal(s, places, n, n, parts);
}

static int add_stages(serve_stages *st, const worker_spec *whole, const split_shape *s, size_t n,
                      shoal_err *err)
{
    split_part parts[SPLIT_STAGES_MAX];
    worker_spec *first = &st->alone[st->n_alone];
    int rc = split_evenly(s, n, parts);
    if (rc != 0) return rc == SHOAL_ENOMEM ? err_nomem(err) : err_set(err, rc, "no split of %zu stages", n);
    for (size_t i = 0; i < n; i++) {
        char id[256];
        worker_spec *w = &st->alone[st->n_alone++];
        *w = stage_spec(whole, s->n_layer, parts[i].first, parts[i].end);
        if (i == 0) continue;
        stage_name_put(id, sizeof id, whole->model, parts[i].first, parts[i].end);
        first->stages[i - 1] = arena_printf(st->strings, "%s/0", id);
        if (!first->stages[i - 1]) return err_nomem(err);
    }
    return 0;
}

/* All of a model where it is in one piece: with nobody to share it, auto gains nothing. */
static int list_alone(serve_stages *st, const gateway_config *c, const worker_spec *specs, shoal_err *err)
{
    size_t most = 0;
    int rc = 0;
    for (size_t i = 0; i < c->n_models; i++) most += c->models[i].shards.n ? c->models[i].shards.n : 1;
    st->alone = calloc(most + 1, sizeof *st->alone);
    if (!st->alone) return err_nomem(err);
    for (size_t i = 0; rc == 0 && i < c->n_models; i++) {
        if (c->models[i].shards.n > 0)
            rc = add_stages(st, &specs[i], &st->shapes[i], c->models[i].shards.n, err);
        else if (!c->models[i].external)
            st->alone[st->n_alone++] = specs[i];
    }
    return rc;
}

static bool is_cut(const gateway_config *c, size_t i)
{
    return placement_is_cut(&c->models[i].shards);
}

int serve_stages_open(serve_stages *ret, const gateway_config *c, const worker_spec *specs, shoal_err *err)
{
    serve_stages st = {.shapes = calloc(c->n_models + 1, sizeof *st.shapes), .strings = arena_new(0)};
    int rc = st.shapes && st.strings ? 0 : err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++) st.n_cut += is_cut(c, i);
    if (rc == 0 && st.n_cut > 0) rc = serve_models_read(c, specs, is_cut, take_shape, &st, err);
    if (rc == 0) rc = list_alone(&st, c, specs, err);
    if (rc == 0)
        *ret = st;
    else
        serve_stages_done(&st);
    return rc;
}

void serve_stages_done(serve_stages *st)
{
    free(st->shapes);
    free(st->alone);
    arena_free(st->strings);
    *st = (serve_stages){0};
}
