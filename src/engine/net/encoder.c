/* encoder.c: the configured encoder: embeddings, layers and a head over a ragged batch (Devlin et al. 2018,
 * arXiv:1810.04805, and what others changed: config.h). */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/attention/attend_all.h"
#include "net/embed.h"
#include "net/head.h"
#include "net/layer.h"
#include "net/passes.h"
#include "net/patches.h"
#include "net/stem.h"

typedef struct encoder {
    const model_config *c;
    const char *prefix; /* of its tensors' names */
    bool bare;          /* a half of an encoder-decoder: its rows are the answer */
    stem stem;          /* of speech; width 0: none */
    patches patches;    /* of pictures; n_rows 0: none */
    net_limits limits;
    embed embed;
    layer *layers; /* [n_file] */
    relative *relative;
    size_t n_file; /* layers that the file has, each used n_layer / n_file times */
    norm out_norm; /* w NULL: none */
    rope_table rope, local;
    distance distance;
    head head;
    space space;
    float *narrow;              /* [max_positions][n_embd_in], where embeddings are narrower */
    float *keys, *attend_space; /* attend_space[members][attend_floats] */
    size_t attend_floats;
    uint32_t *item, *first, *first_tile;
    const adapter **adapters, **row_adapters; /* [max_positions]: of the tokens, and of the head's rows */
} encoder;

typedef struct step {
    encoder *e;
    net_input *items;
    size_t n_items, n_rows;
    bool adapted; /* an item has an adapter */
    ragged ragged;
} step;

static void encoder_free(net *n);

/* ---- loading ------------------------------------------------------------------------------------------ */

static const rope_table *rope_of(const encoder *e, unsigned flags)
{
    if (flags & LAYER_NO_ROPE) return NULL;
    if ((flags & LAYER_LOCAL) && e->c->pos.local.dim > 0) return &e->local;
    return e->c->pos.rope.dim > 0 ? &e->rope : NULL;
}

/* Layer i of the network is layer_of(e, i) of the file: ALBERT's groups, in turn. */
static size_t layer_of(const encoder *e, size_t i)
{
    return i * e->n_file / e->c->n_layer;
}

static int load_layers(encoder *e, const model *m, isa set, shoal_err *err)
{
    const model_config *c = e->c;
    e->layers = calloc(e->n_file, sizeof *e->layers);
    e->relative = calloc(e->n_file, sizeof *e->relative);
    if (!e->layers || !e->relative) return err_nomem(err);
    for (size_t i = 0; i < e->n_file; i++) {
        layer *ly = &e->layers[i];
        unsigned flags = config_layer(c, i);
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%sblk.%zu.", e->prefix, i);
        int rc = layer_load(ly, m, c, prefix, flags, set, err);
        if (rc) return rc;
        ly->attend.rope = rope_of(e, flags);
        /* Three products make a score there, so its variance is three times as large. */
        if (c->pos.relative > 0 && c->attn.scale == 0)
            ly->attend.scale = 1.0f / sqrtf(3 * (float)c->attn.head_dim);
    }
    return 0;
}

static int load_buckets(encoder *e, const model *m, size_t n_ctx, shoal_err *err)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%sblk.0.", e->prefix);
    return distance_load_bias(&e->distance, m, &e->c->pos.buckets, prefix, e->c->attn.n_head, n_ctx, true,
                              err);
}

static int load_positions(encoder *e, const model *m, shoal_err *err)
{
    const model_config *c = e->c;
    size_t n_ctx = e->limits.n_ctx;
    int rc = 0;
    if (c->pos.rope.dim > 0) rc = rope_load(&e->rope, m, &c->pos.rope, n_ctx, err);
    if (rc == 0 && c->pos.local.dim > 0) rc = rope_load(&e->local, m, &c->pos.local, n_ctx, err);
    if (rc == 0 && c->pos.buckets.n > 0) rc = load_buckets(e, m, n_ctx, err);
    if (rc == 0 && c->pos.relative > 0) rc = distance_load_index(&e->distance, &c->pos, n_ctx, err);
    return rc;
}

/* What makes rows of an input: frames, a picture or tokens. */
static int load_entrance(encoder *e, const model *m, isa set, shoal_err *err)
{
    const model_config *c = e->c;
    size_t n = e->limits.max_positions;
    if (c->source.n_mel > 0) return stem_load(&e->stem, m, c, e->prefix, n, set, err);
    if (c->image.size > 0) return patches_load(&e->patches, m, c, n, set, err);
    return embed_load(&e->embed, m, c, e->prefix, e->limits.n_ctx, set, err);
}

static int load_weights(encoder *e, const model *m, isa set, shoal_err *err)
{
    const model_config *c = e->c;
    int rc = load_entrance(e, m, set, err);
    if (rc == 0) rc = load_positions(e, m, err);
    if (rc == 0) rc = load_layers(e, m, set, err);
    if (rc == 0 && c->norm.final)
        rc = norm_load(&e->out_norm, m, e->prefix, "output_norm", c->n_embd, &c->norm, err);
    return rc || e->bare ? rc : head_load(&e->head, m, c, &e->embed, set, err);
}

static int make_space(encoder *e, size_t n_members, shoal_err *err)
{
    const model_config *c = e->c;
    size_t n = e->limits.max_positions, inputs = e->limits.max_inputs,
           n_in = e->embed.n_in ? e->embed.n_in : c->n_embd;
    size_t cols = e->head.dense.rows > n_in ? e->head.dense.rows : n_in;
    size_t rows = inputs > e->distance.n_vectors ? inputs : e->distance.n_vectors;
    if (e->stem.width) { /* two frames a place, three of them side by side */
        rows = 2 * n;
        cols = 3 * (c->n_embd > c->source.n_mel ? c->n_embd : c->source.n_mel);
    }
    if (e->patches.n_in > cols) cols = e->patches.n_in;
    int rc = space_init(&e->space, c, (int)n_members, n, rows, cols, err);
    if (rc == 0 && !e->bare) rc = head_make_space(&e->head, inputs, n, err);
    if (rc) return rc;
    e->attend_floats = attend_all_space(&c->attn, e->limits.n_ctx + TILE);
    if (n_in != c->n_embd) e->narrow = mem_calloc64(n * n_in, sizeof(float));
    e->attend_space = mem_calloc64(n_members * e->attend_floats, sizeof(float));
    e->keys = mem_calloc64((n / TILE + inputs) * TILE * c->attn.n_head_kv * c->attn.head_dim, sizeof(float));
    e->item = calloc(n, sizeof *e->item);
    e->adapters = calloc(n, sizeof *e->adapters);
    e->row_adapters = calloc(n > inputs ? n : inputs, sizeof *e->row_adapters);
    e->first = calloc(inputs + 1, sizeof *e->first);
    e->first_tile = calloc(inputs + 1, sizeof *e->first_tile);
    if ((n_in != c->n_embd && !e->narrow) || !e->attend_space || !e->keys || !e->item || !e->first ||
        !e->first_tile || !e->adapters || !e->row_adapters)
        return err_nomem(err);
    return 0;
}

/* ---- relative vectors (DeBERTa): each layer's keys and queries of the relative embeddings, made once ---- */

typedef struct relative_job {
    encoder *e;
    float *x, *qkv; /* [n_vectors][n_embd], [n_vectors][q, k, v] */
} relative_job;

static void project_relative(void *arg, team_member *m)
{
    const relative_job *j = arg;
    const attn_conf *c = &j->e->c->attn;
    size_t n = j->e->distance.n_vectors, q = c->n_head * c->head_dim, kv = c->n_head_kv * c->head_dim, t, end;
    lane l;
    rows_open(&l, m, j->e->space.acts);
    rows x = rows_of(j->x, n, j->e->c->n_embd), qkv = rows_of(j->qkv, n, q + 2 * kv);
    for (size_t i = 0; i < j->e->n_file; i++) {
        relative *r = &j->e->relative[i];
        blk_linear(&l, &j->e->layers[i].in, &x, &qkv, false);
        rows_use(&l, {&qkv, READ_MINE});
        for (rows_share(&l, &qkv, &t, &end); t < end; t++) {
            memcpy(r->by_key + t * q, rows_at(&qkv, t), q * sizeof(float));
            memcpy(r->by_query + t * kv, rows_at(&qkv, t) + q, kv * sizeof(float));
        }
    }
}

static int load_relative_rows(relative_job *j, const model *m, const vec_kernels *v, shoal_err *err)
{
    encoder *e = j->e;
    size_t n = e->distance.n_vectors, width = e->c->n_embd;
    norm after = {0};
    int rc = proj_load_table(&j->x, m, "rel_embd.weight", n, width, err);
    if (rc == 0 && model_tensor(m, "rel_embd_norm.weight"))
        rc = norm_load(&after, m, "", "rel_embd_norm", width, &e->c->norm, err);
    for (size_t t = 0; rc == 0 && after.w && t < n; t++)
        norm_row(&after, v, j->x + t * width, j->x + t * width);
    norm_done(&after);
    return rc;
}

static int make_relative(encoder *e, const model *m, team *t, shoal_err *err)
{
    const attn_conf *c = &e->c->attn;
    size_t n = e->distance.n_vectors, q = c->n_head * c->head_dim, kv = c->n_head_kv * c->head_dim;
    relative_job j = {.e = e};
    int rc = load_relative_rows(&j, m, team_vec(t), err);
    bool ok = (j.qkv = mem_calloc64(n * (q + 2 * kv), sizeof(float))) != NULL;
    for (size_t i = 0; i < e->n_file; i++) {
        e->relative[i].by_key = mem_calloc64(n * q, sizeof(float));
        e->relative[i].by_query = mem_calloc64(n * kv, sizeof(float));
        ok = ok && e->relative[i].by_key && e->relative[i].by_query;
    }
    if (rc == 0 && !ok) rc = err_nomem(err);
    if (rc == 0) team_run(t, project_relative, &j);
    free(j.x);
    free(j.qkv);
    return rc;
}

/* ---- load and free ---------------------------------------------------------------------------------- */

int encoder_load_as(net **ret, const model *m, const model_config *c, const char *prefix, team *t,
                    const net_limits *limits, shoal_err *err)
{
    encoder *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    e->c = c;
    e->prefix = prefix;
    e->bare = c->source.n_layer > 0;
    e->limits = *limits;
    if (c->image.size > 0) e->limits.n_ctx = patches_count(&c->image);
    e->n_file = e->c->n_layer_file ? e->c->n_layer_file : e->c->n_layer;
    int rc = load_weights(e, m, team_isa(t), err);
    if (rc == 0) rc = make_space(e, (size_t)team_size(t), err);
    if (rc == 0 && e->c->pos.relative > 0) rc = make_relative(e, m, t, err);
    if (rc) {
        encoder_free((net *)e);
        return rc;
    }
    *ret = (net *)e;
    return 0;
}

static int encoder_load(net **ret, const model *m, team *t, const net_limits *limits, shoal_err *err)
{
    return encoder_load_as(ret, m, model_get_config(m), "", t, limits, err);
}

static void encoder_free(net *n)
{
    encoder *e = (encoder *)n;
    if (!e) return;
    for (size_t i = 0; i < e->n_file; i++) {
        if (e->layers) layer_done(&e->layers[i]);
        if (e->relative) free(e->relative[i].by_key);
        if (e->relative) free(e->relative[i].by_query);
    }
    embed_done(&e->embed);
    stem_done(&e->stem);
    patches_done(&e->patches);
    norm_done(&e->out_norm);
    rope_done(&e->rope);
    rope_done(&e->local);
    distance_done(&e->distance);
    head_done(&e->head);
    space_done(&e->space);
    void *all[] = {e->layers, e->relative, e->narrow,     e->keys,     e->attend_space,
                   e->item,   e->first,    e->first_tile, e->adapters, e->row_adapters};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(e);
}

/* ---- the step ------------------------------------------------------------------------------------------ */

static embed_token token_at(const void *arg, size_t t)
{
    const step *s = arg;
    const net_input *it = &s->items[s->e->item[t]];
    size_t at = t - s->e->first[s->e->item[t]];
    return (embed_token){.id = it->ids[at], .position = at, .type = it->type_ids ? it->type_ids[at] : 0};
}

static void attend_ragged(pass *p, const layer *ly)
{
    const step *s = p->step;
    blk_attend_all(&p->l, &ly->attend, &s->ragged, &s->e->relative[ly - s->e->layers], &p->qkv, &p->att);
}

static void encoder_run_step(void *arg, team_member *m)
{
    const step *s = arg;
    encoder *e = s->e;
    pass p = {.c = e->c, .attend = attend_ragged, .step = s};
    pass_open(&p, &e->space, m, s->ragged.n_tokens);
    if (s->adapted) p.l.adapters = e->adapters;
    rows narrow = rows_of(e->narrow, s->ragged.n_tokens, e->embed.n_in);
    if (e->stem.width)
        blk_stem(&p.l, &e->stem, s->items, e->item, e->first, &p.x);
    else if (e->patches.n_rows)
        blk_patches(&p.l, &e->patches, s->items, e->item, e->first, &p.x);
    else
        blk_embed(&p.l, &e->embed, token_at, s, &narrow, &p.x);
    for (size_t i = 0; i < e->c->n_layer; i++) {
        if (p.l.profile) profile_set_layer(p.l.profile, (int)i);
        layer_run(&p, &e->layers[layer_of(e, i)]);
    }
    if (p.l.profile) profile_set_layer(p.l.profile, PROFILE_NO_LAYER);
    if (e->out_norm.w) blk_norm(&p.l, &e->out_norm, &p.x, &p.x);
    if (s->adapted) p.l.adapters = e->row_adapters;
    if (!e->bare) blk_head(&p.l, &e->head, e->first, s->n_rows, &p.x);
}

static size_t rows_of_input(const encoder *e, const net_input *in)
{
    if (e->stem.width) return stem_positions(in->n_features);
    return e->patches.n_rows ? e->patches.n_rows : in->n;
}

static void lay_out(step *s)
{
    encoder *e = s->e;
    uint32_t n = 0, n_tiles = 0;
    for (size_t i = 0; i < s->n_items; i++) {
        size_t len = rows_of_input(e, &s->items[i]);
        assert(len > 0 && len <= e->limits.n_ctx && n + len <= e->limits.max_positions);
        e->first[i] = n;
        e->first_tile[i] = n_tiles;
        s->adapted = s->adapted || s->items[i].adapter;
        for (size_t t = 0; t < len; t++) {
            e->adapters[n] = s->items[i].adapter;
            e->item[n++] = (uint32_t)i;
        }
        n_tiles += (uint32_t)((len + TILE - 1) / TILE);
    }
    e->first[s->n_items] = n;
    s->ragged.n_tokens = n;
    if (e->bare) return;
    s->n_rows = head_lay_out(&e->head, s->items, s->n_items, e->first);
    for (size_t i = 0, row = 0; s->adapted && i < s->n_items; i++)
        for (size_t k = head_rows(&e->head, &s->items[i]); k > 0; k--)
            e->row_adapters[row++] = s->items[i].adapter;
}

static void point_at_rows(const encoder *e, net_input *items, size_t n_items)
{
    for (size_t i = 0; i < n_items; i++) {
        items[i].values = e->space.x + e->first[i] * e->c->n_embd;
        items[i].rows = e->first[i + 1] - e->first[i];
        items[i].cols = e->c->n_embd;
    }
}

static void encoder_encode(net *n, team *t, net_input *items, size_t n_items)
{
    encoder *e = (encoder *)n;
    step s = {.e = e,
              .items = items,
              .n_items = n_items,
              .ragged = {.item = e->item,
                         .first = e->first,
                         .first_tile = e->first_tile,
                         .keys = e->keys,
                         .space = e->attend_space,
                         .space_floats = e->attend_floats,
                         .causal = e->c->attn.causal,
                         .distance = &e->distance}};
    assert(n_items <= e->limits.max_inputs);
    if (n_items == 0) return;
    lay_out(&s);
    team_run(t, encoder_run_step, &s);
    if (e->bare)
        point_at_rows(e, items, n_items);
    else
        head_point_out(&e->head, items, n_items);
}

/* A text is as long as its tokens, a picture always as long. */
static int encoder_positions(const model_config *c, const net_input *in, size_t *ret, shoal_err *err)
{
    if (c->image.size > 0) return patches_rows(c, in, ret, err);
    if (in->features) return err_set(err, SHOAL_EINVALID, "this model reads text");
    *ret = in->n;
    return 0;
}

static size_t encoder_longest(const model_config *c, size_t n_ctx)
{
    return c->image.size > 0 ? patches_count(&c->image) : n_ctx;
}

const net_ops encoder_ops = {.name = "encoder",
                             .roles = NET_ENCODES,
                             .load = encoder_load,
                             .free = encoder_free,
                             .encode = encoder_encode,
                             .positions = encoder_positions,
                             .longest = encoder_longest};
