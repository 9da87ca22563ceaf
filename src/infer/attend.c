/* attend.c: causal attention over pages (Vaswani et al. 2017; shared key heads: Ainslie et al. 2023,
 * arXiv:2305.13245; windows: Beltagy et al. 2020, arXiv:2004.05150); see attend.h. */
#include "infer/attend.h"

#include <assert.h>
#include <math.h>
#include <string.h>

int attend_load(attend *a, const model *m, const model_config *c, const char *prefix, unsigned flags,
                shoal_err *err)
{
    const attn_conf *at = &c->attn;
    *a = (attend){.n_head = at->n_head,
                  .n_head_kv = at->n_head_kv,
                  .head_dim = at->head_dim,
                  .window = flags & LAYER_LOCAL ? at->window : 0,
                  .scale = at->scale != 0 ? at->scale : 1.0f / sqrtf((float)at->head_dim),
                  .softcap = at->softcap,
                  .qk = at->qk_norm};
    if (a->qk == QK_NORM_NONE) return 0;
    bool head = a->qk == QK_NORM_HEAD;
    size_t q = head ? at->head_dim : at->n_head * at->head_dim;
    size_t k = head ? at->head_dim : at->n_head_kv * at->head_dim;
    int rc = norm_load(&a->q_norm, m, prefix, "attn_q_norm", q, &c->norm, err);
    return rc ? rc : norm_load(&a->k_norm, m, prefix, "attn_k_norm", k, &c->norm, err);
}

void attend_done(attend *a)
{
    norm_done(&a->q_norm);
    norm_done(&a->k_norm);
}

/* ---- norms and rotation ------------------------------------------------------------------------------ */

/* The whole width of q and of k under one norm each (OLMo 2). */
static void norm_width(const attend *a, const vec_kernels *v, float *row)
{
    float *k = row + a->n_head * a->head_dim;
    norm_row(&a->q_norm, v, row, row);
    norm_row(&a->k_norm, v, k, k);
}

/* Heads [first, first + n) of q or k, each on its own: with the weight they share or one each. */
static void norm_heads(const attend *a, const vec_kernels *v, const norm *n, float *x, size_t first,
                       size_t count)
{
    size_t hd = a->head_dim;
    for (size_t h = 0; h < count; h++) {
        norm one = *n;
        one.width = hd;
        if (a->qk == QK_NORM_EACH) {
            one.w += (first + h) * hd;
            if (one.b) one.b += (first + h) * hd;
        }
        norm_row(&one, v, x + h * hd, x + h * hd);
    }
}

/* The query heads of key head `kvh` and the key itself, as attention wants them. */
static void prepare(const attend *a, const vec_kernels *v, float *q, float *k, size_t kvh, size_t pos)
{
    size_t group = a->n_head / a->n_head_kv, hd = a->head_dim;
    if (a->qk == QK_NORM_HEAD || a->qk == QK_NORM_EACH) {
        norm_heads(a, v, &a->q_norm, q, kvh * group, group);
        norm_heads(a, v, &a->k_norm, k, kvh, 1);
    }
    if (!a->rope) return;
    const rope_table *r = a->rope;
    const float *cs = r->cos + pos * r->half, *sn = r->sin + pos * r->half;
    v->rope(q, group, hd, 2 * r->half, cs, sn, r->interleaved);
    v->rope(k, 1, hd, 2 * r->half, cs, sn, r->interleaved);
}

void attend_prepare(const attend *a, const vec_kernels *v, float *row, size_t pos)
{
    size_t hd = a->head_dim, group = a->n_head / a->n_head_kv;
    float *k = row + a->n_head * hd;
    if (a->qk == QK_NORM_WIDTH) norm_width(a, v, row);
    for (size_t h = 0; h < a->n_head_kv; h++) prepare(a, v, row + h * group * hd, k + h * hd, h, pos);
}

/* All members: what needs a whole row stands in front of the split by heads. */
static void norm_widths(lane *l, const attend *a, rows *qkv)
{
    size_t t, end;
    rows_use(l, {qkv, READ_MINE | WRITE_MINE});
    rows_share(l, qkv, &t, &end);
    for (; t < end; t++) norm_width(a, l->v, rows_at(qkv, t));
}

/* ---- the cache ---------------------------------------------------------------------------------------- */

/* Position `at` of a tile: the key is a column, the value a row. */
static void store_f32(float *keys, float *values, size_t at, const float *k, const float *v, size_t hd)
{
    for (size_t i = 0; i < hd; i++) keys[i * KV_PAGE_TOKENS + at] = k[i];
    memcpy(values + at * hd, v, hd * sizeof *v);
}

static void store_f16(const vec_kernels *vec, uint16_t *keys, uint16_t *values, size_t at, const float *k,
                      const float *v, size_t hd)
{
    uint16_t part[KV_PAGE_TOKENS];
    for (size_t i = 0; i < hd; i += KV_PAGE_TOKENS) {
        size_t n = hd - i < KV_PAGE_TOKENS ? hd - i : KV_PAGE_TOKENS;
        vec->to_f16(part, k + i, n);
        for (size_t j = 0; j < n; j++) keys[(i + j) * KV_PAGE_TOKENS + at] = part[j];
    }
    vec->to_f16(values + at * hd, v, hd);
}

/* Prepare q and k of one token's key head `kvh` and store its key and value. */
static void store_token(const attend *a, const attend_step *s, const vec_kernels *v, const rows *qkv,
                        size_t t, size_t kvh)
{
    const kv_seq *seq = s->items[s->place[t].item].seq;
    size_t pos = s->place[t].position, hd = a->head_dim, group = a->n_head / a->n_head_kv;
    float *row = rows_at(qkv, t);
    float *q = row + kvh * group * hd, *k = row + (a->n_head + kvh) * hd;
    prepare(a, v, q, k, kvh, pos);
    size_t page = pos / KV_PAGE_TOKENS, at = pos % KV_PAGE_TOKENS;
    void *keys = kv_k(s->cache, seq, a->slot, kvh, page), *values = kv_v(s->cache, seq, a->slot, kvh, page);
    if (s->cache->shape.type == DT_F16)
        store_f16(v, keys, values, at, k, k + a->n_head_kv * hd, hd);
    else
        store_f32(keys, values, at, k, k + a->n_head_kv * hd, hd);
}

/* Ask for a tile before it is needed: tiles of one head lie pages apart, so the hardware does not guess. */
static void fetch_tile(const char *tile, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + i);
}

static void score_page(const attend *a, const attend_step *s, const vec_kernels *v, float *scores,
                       const float *q, const void *keys)
{
    size_t hd = a->head_dim, lds = s->scores_width, group = a->n_head / a->n_head_kv;
    if (s->cache->shape.type == DT_F16)
        v->attn_scores_f16(scores, lds, q, hd, group, keys, hd, a->scale);
    else
        v->attn_scores(scores, lds, q, hd, group, keys, hd, a->scale);
}

/* Values [from, to) of a page. */
static void mix_page(const attend *a, const attend_step *s, const vec_kernels *v, float *out, const float *p,
                     const void *values, size_t from, size_t to)
{
    size_t hd = a->head_dim, lds = s->scores_width, group = a->n_head / a->n_head_kv, n = to - from;
    if (s->cache->shape.type == DT_F16)
        v->attn_mix_f16(out, hd, p + from, lds, group, (const uint16_t *)values + from * hd, hd, n, hd);
    else
        v->attn_mix(out, hd, p + from, lds, group, (const float *)values + from * hd, hd, n, hd);
}

/* ---- attention ---------------------------------------------------------------------------------------- */

/* scores of positions [first, at] += what their distance to `at` says to this head */
static void add_distance(const attend *a, const vec_kernels *v, size_t head, size_t at, size_t first,
                         float *scores)
{
    const distance *d = a->distance;
    v->add(scores, scores, d->bias + head * (2 * d->n_ctx - 1) + distance_at(d, at, first), at + 1 - first);
}

/* The query heads of one token that share a key head, over positions [first, n). The scores of the last
 * page's keys past the token and of the first page's before the window are made (whatever they hold) and not
 * looked at. scores: [group][scores_width], from the first page on */
static void attend_token(const attend *a, const attend_step *s, const vec_kernels *v, const rows *qkv,
                         rows *att, size_t t, size_t kvh, float *scores)
{
    const kv_seq *seq = s->items[s->place[t].item].seq;
    size_t hd = a->head_dim, group = a->n_head / a->n_head_kv, n = s->place[t].position + 1u;
    size_t first = a->window && n > a->window ? n - a->window : 0;
    size_t begin = first / KV_PAGE_TOKENS, last = (n - 1) / KV_PAGE_TOKENS, skip = first % KV_PAGE_TOKENS;
    const float *q = rows_at(qkv, t) + kvh * group * hd;
    float *out = rows_at(att, t) + kvh * group * hd;
    for (size_t page = begin; page <= last; page++) {
        fetch_tile(page < last ? kv_k(s->cache, seq, a->slot, kvh, page + 1)
                               : kv_v(s->cache, seq, a->slot, kvh, begin),
                   s->cache->head_bytes);
        score_page(a, s, v, scores + (page - begin) * KV_PAGE_TOKENS, q,
                   kv_k(s->cache, seq, a->slot, kvh, page));
    }
    for (size_t g = 0; g < group; g++) {
        float *row = scores + g * s->scores_width + skip;
        if (a->distance) add_distance(a, v, kvh * group + g, n - 1, first, row);
        if (a->softcap > 0) cap_row(v, row, n - first, a->softcap);
        v->softmax(row, n - first);
    }
    memset(out, 0, group * hd * sizeof(float));
    for (size_t page = begin; page <= last; page++) {
        size_t at = page * KV_PAGE_TOKENS, end = page < last ? KV_PAGE_TOKENS : n - at;
        if (page < last) fetch_tile(kv_v(s->cache, seq, a->slot, kvh, page + 1), s->cache->head_bytes);
        mix_page(a, s, v, out, scores + (page - begin) * KV_PAGE_TOKENS,
                 kv_v(s->cache, seq, a->slot, kvh, page), page == begin ? skip : 0, end);
    }
}

/* Work is split by (token, key head): a member stores what it will read itself when every item is one token,
 * so that a decode step needs no barrier in between. Neighbouring tokens of a prefill go to different
 * members, because later ones see more keys. */
void blk_attend(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att)
{
    size_t n_kv = a->n_head_kv, n_work = qkv->n * n_kv;
    size_t n_members = (size_t)member_count(l->m), me = (size_t)member_index(l->m);
    float *scores = s->scores + me * s->scores_width * (a->n_head / n_kv);
    assert(qkv->width == (a->n_head + 2 * n_kv) * a->head_dim && att->width == a->n_head * a->head_dim);
    if (a->qk == QK_NORM_WIDTH) norm_widths(l, a, qkv);
    if (!s->all_single) {
        rows_use(l, {qkv, READ_ALL | WRITE_PARTS});
        for (size_t w = me; w < n_work; w += n_members) store_token(a, s, l->v, qkv, w / n_kv, w % n_kv);
        rows_use(l, {qkv, READ_ALL}, {att, WRITE_PARTS});
    } else {
        rows_use(l, {qkv, READ_ALL | WRITE_PARTS}, {att, WRITE_PARTS});
    }
    for (size_t w = me; w < n_work; w += n_members) {
        size_t t = w / n_kv, kvh = w % n_kv;
        if (s->all_single) store_token(a, s, l->v, qkv, t, kvh);
        attend_token(a, s, l->v, qkv, att, t, kvh, scores);
    }
}
