/* attend_all.c: attention over a ragged batch; see attend_all.h. */
#include "infer/attend_all.h"

#include <assert.h>
#include <string.h>

/* All members: q and k as attention wants them, and keys turned for attn_scores: tile after tile of sixteen
 * tokens of one sequence, [kv head][head_dim][16] each. `tiles` stands for the memory of the keys. */
static void turn_keys(lane *l, const attend *a, const ragged *g, rows *qkv, rows *tiles)
{
    size_t t, end, q = a->n_head * a->head_dim, width = a->n_head_kv * a->head_dim;
    rows_use(l, {qkv, READ_MINE | WRITE_MINE}, {tiles, WRITE_PARTS});
    rows_share(l, qkv, &t, &end);
    for (; t < end; t++) {
        size_t item = g->item[t], at = t - g->first[item];
        float *row = rows_at(qkv, t), *tile = g->keys + (g->first_tile[item] + at / TILE) * width * TILE;
        attend_prepare(a, l->v, row, at);
        for (size_t i = 0; i < width; i++) tile[i * TILE + at % TILE] = row[q + i];
    }
}

/* One head of one token. */
typedef struct view {
    size_t t, head, kvh;
    size_t at, begin, end; /* its position, and those it sees */
    size_t row;            /* its sequence's first row */
} view;

static view view_of(const attend *a, const ragged *g, size_t t, size_t head)
{
    size_t item = g->item[t], at = t - g->first[item], n = g->first[item + 1] - g->first[item];
    size_t reach = a->window / 2;
    view w = {.t = t, .head = head, .kvh = head / (a->n_head / a->n_head_kv), .at = at, .end = n};
    w.row = g->first[item];
    if (g->causal) {
        w.end = at + 1;
        if (a->window > 0 && w.end > a->window) w.begin = w.end - a->window;
        return w;
    }
    if (a->window > 0 && at > reach) w.begin = at - reach;
    if (a->window > 0 && n - at > reach + 1) w.end = at + reach + 1;
    return w;
}

/* scores[0 ..] += what distance says, from key w->begin on */
static void add_distance(const attend *a, const ragged *g, const relative *r, const vec_kernels *v,
                         const view *w, const rows *qkv, float *scores)
{
    const distance *d = g->distance;
    size_t hd = a->head_dim, n = w->end - w->begin, first = distance_at(d, w->at, w->begin);
    if (d->bias) v->add(scores, scores, d->bias + w->head * (2 * d->n_ctx - 1) + first, n);
    if (!r->by_query) return;
    const float *q = rows_at(qkv, w->t) + w->head * hd;
    const float *k = rows_at(qkv, w->row + w->begin) + (a->n_head + w->kvh) * hd;
    for (size_t j = 0; j < n; j++, k += qkv->width) {
        size_t number = d->index[first + j];
        float c2p = v->dot(q, r->by_query + (number * a->n_head_kv + w->kvh) * hd, hd);
        float p2c = v->dot(k, r->by_key + (number * a->n_head + w->head) * hd, hd);
        scores[j] += (c2p + p2c) * a->scale;
    }
}

static void attend_head(const attend *a, const ragged *g, const relative *r, const vec_kernels *v,
                        const view *w, const rows *qkv, rows *att, float *scores)
{
    size_t hd = a->head_dim, width = a->n_head_kv * hd, skip = w->begin % TILE, n = w->end - w->begin;
    const float *q = rows_at(qkv, w->t) + w->head * hd;
    const float *values = rows_at(qkv, w->row + w->begin) + (a->n_head + a->n_head_kv + w->kvh) * hd;
    size_t tile = w->begin / TILE;
    const float *kt = g->keys + (g->first_tile[g->item[w->t]] + tile) * width * TILE + w->kvh * hd * TILE;
    float *out = rows_at(att, w->t) + w->head * hd;
    for (size_t at = 0; at < skip + n; at += TILE, kt += width * TILE)
        v->attn_scores(scores + at, 0, q, 0, 1, kt, hd, a->scale);
    scores += skip;
    if (g->distance->bias || r->by_query) add_distance(a, g, r, v, w, qkv, scores);
    if (a->softcap > 0) cap_row(v, scores, n, a->softcap);
    v->softmax(scores, n);
    memset(out, 0, hd * sizeof(float));
    v->attn_mix(out, 0, scores, 0, 1, values, qkv->width, n, hd);
}

/* (token, head) pairs are split in runs of neighbours, which read the same keys. */
void blk_attend_all(lane *l, const attend *a, const ragged *g, const relative *r, rows *qkv, rows *att)
{
    rows tiles = {.n = qkv->n};
    size_t begin, end;
    float *scores = g->scores + (size_t)member_index(l->m) * g->scores_width;
    assert(qkv->width == (a->n_head + 2 * a->n_head_kv) * a->head_dim &&
           att->width == a->n_head * a->head_dim);
    turn_keys(l, a, g, qkv, &tiles);
    rows_use(l, {qkv, READ_ALL}, {&tiles, READ_ALL}, {att, WRITE_PARTS});
    member_share(l->m, g->n_tokens * a->n_head, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        view w = view_of(a, g, i / a->n_head, i % a->n_head);
        attend_head(a, g, r, l->v, &w, qkv, att, scores);
    }
}
