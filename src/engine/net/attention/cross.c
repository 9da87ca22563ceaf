/* cross.c: attention to a source; see cross.h. */
#include "net/attention/cross.h"
#include "base/progress.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TILE 16 /* keys scored at once */

int cross_load(cross *x, const model *m, const model_config *c, const char *prefix, size_t layer, isa set,
               shoal_err *err)
{
    bool post = c->norm.place == PLACE_POST;
    *x = (cross){.n_head = c->attn.n_head,
                 .n_head_kv = c->attn.n_head_kv,
                 .head_dim = c->attn.head_dim,
                 .layer = layer,
                 .scale = c->attn.scale != 0 ? c->attn.scale : 1.0f / sqrtf((float)c->attn.head_dim)};
    int rc = proj_load(&x->q, m, prefix, (const char *[]){"cross_attn_q"}, 1, set, err);
    if (rc == 0)
        rc = proj_load(&x->kv, m, prefix, (const char *[]){"cross_attn_k", "cross_attn_v"}, 2, set, err);
    if (rc == 0) rc = proj_load(&x->out, m, prefix, (const char *[]){"cross_attn_o"}, 1, set, err);
    if (rc) return rc;
    return norm_load(post ? &x->post : &x->pre, m, prefix,
                     post ? "cross_attn_output_norm" : "cross_attn_norm", c->n_embd, &c->norm, err);
}

void cross_done(cross *x)
{
    norm_done(&x->pre);
    norm_done(&x->post);
    proj_done(&x->q);
    proj_done(&x->kv);
    proj_done(&x->out);
}

/* ---- what is kept of a source ----------------------------------------------------------------------- */

static size_t n_tiles(size_t n)
{
    return (n + TILE - 1) / TILE;
}

static size_t layer_floats(const model_config *c, size_t n)
{
    return (n_tiles(n) * TILE + n) * c->attn.n_head_kv * c->attn.head_dim;
}

size_t cross_layer_bytes(const model_config *c, size_t n)
{
    return layer_floats(c, n) * sizeof(float);
}

void blk_cross_keep(lane *l, const cross *x, rows *from, rows *kv, void *memory)
{
    size_t width = x->n_head_kv * x->head_dim, n = from->n, t, end;
    float *keys = (float *)memory + x->layer * (n_tiles(n) * TILE + n) * width;
    float *values = keys + n_tiles(n) * TILE * width;
    assert(kv->width == 2 * width && kv->n == n);
    blk_linear(l, &x->kv, from, kv, false);
    rows_use(l, {kv, READ_MINE});
    for (rows_share(l, kv, &t, &end); t < end; t++) {
        const float *row = rows_at(kv, t);
        float *tile = keys + t / TILE * width * TILE;
        for (size_t i = 0; i < width; i++) tile[i * TILE + t % TILE] = row[i];
        memcpy(values + t * width, row + width, width * sizeof *row);
    }
}

/* ---- attention -------------------------------------------------------------------------------------- */

/* The query heads of one token that share a key head. scores: [group][scores_width] */
static void attend_token(const cross *x, const cross_step *s, const vec_kernels *v, const net_item *it,
                         const float *q, float *out, size_t kvh, float *scores)
{
    size_t n = it->n_cross, hd = x->head_dim, width = x->n_head_kv * hd, group = x->n_head / x->n_head_kv,
           lds = s->scores_width;
    const float *keys = (const float *)it->cross + x->layer * layer_floats(s->c, n) + kvh * hd * TILE;
    const float *values =
        (const float *)it->cross + x->layer * layer_floats(s->c, n) + n_tiles(n) * TILE * width + kvh * hd;
    for (size_t at = 0; at < n; at += TILE, keys += width * TILE)
        v->attn_scores(scores + at, lds, q, hd, group, keys, hd, x->scale);
    for (size_t g = 0; g < group; g++) v->softmax(scores + g * lds, n);
    memset(out, 0, group * hd * sizeof *out);
    v->attn_mix(out, hd, scores, lds, group, values, width, n, hd);
}

/* Work is split by (token, key head), in runs of neighbours, which read the same keys. */
/* Apart from attention to the own positions: its key is the source's. */
static void profile_cross(const lane *l, const cross *x, const cross_step *s, size_t n_tokens)
{
    profile_entry *e = profile_to(l->profile, PROFILE_ATTENTION, "source");
    for (size_t t = 0; t < n_tokens; t++) {
        double n = (double)s->items[s->item[t]].n_cross;
        e->multiply_adds += 2 * n * (double)x->n_head * (double)x->head_dim;
        e->bytes += 2 * n * (double)x->n_head_kv * (double)x->head_dim * sizeof(float);
    }
}

void blk_cross(lane *l, const cross *x, const cross_step *s, rows *q, rows *att)
{
    size_t n_kv = x->n_head_kv, group = x->n_head / n_kv, begin, end;
    float *scores = s->scores + (size_t)member_index(l->m) * group * s->scores_width;
    assert(q->width == x->n_head * x->head_dim && att->width == q->width);
    if (l->profile) profile_cross(l, x, s, q->n);
    rows_use(l, {q, READ_ALL}, {att, WRITE_PARTS});
    member_share(l->m, q->n * n_kv, 1, &begin, &end);
    for (size_t w = begin; w < end; w++) {
        size_t t = w / n_kv, kvh = w % n_kv, at = kvh * group * x->head_dim;
        attend_token(x, s, l->v, &s->items[s->item[t]], rows_at(q, t) + at, rows_at(att, t) + at, kvh,
                     scores);
        progress_add(2 * group * s->scores_width * x->head_dim);
    }
}
