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
    if (a->qk == QK_NORM_NONE && !a->rope) return;
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

/* Four of a key's codes lie side by side, and so do those of four positions of a value (compute.h). */
static void store_q8(const vec_kernels *vec, uint8_t *keys, int8_t *values, size_t at, const float *k,
                     const float *v, size_t hd)
{
    int8_t code[KV_HEAD_MAX];
    int32_t sum;
    float scale = vec->attn_quantise(code, &sum, k, hd);
    memcpy(keys + at * sizeof scale, &scale, sizeof scale);
    for (size_t i = 0; i < hd; i++)
        keys[ATTN_Q8_SCALES + i / 4 * 64 + at * 4 + i % 4] = (uint8_t)code[i] ^ 0x80;
    scale = vec->attn_quantise(code, &sum, v, hd);
    memcpy(values + at * sizeof scale, &scale, sizeof scale);
    values += ATTN_Q8_SCALES + at / 4 * 4 * hd + at % 4;
    for (size_t i = 0; i < hd; i++) values[i * 4] = code[i];
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
    if (s->cache->shape.type == DT_Q8_0)
        store_q8(v, keys, values, at, k, k + a->n_head_kv * hd, hd);
    else if (s->cache->shape.type == DT_F16)
        store_f16(v, keys, values, at, k, k + a->n_head_kv * hd, hd);
    else
        store_f32(keys, values, at, k, k + a->n_head_kv * hd, hd);
}

/* ---- attention ----------------------------------------------------------------------------------------
 *
 * Tokens of one sequence whose positions lie in one page are a block: they see the same pages, but for the
 * edges, so that a key or a value is loaded once for all their heads that share it. */

#define BLOCK_SCORES 131072 /* floats: the scores of a block stay in L2 */

typedef struct block {
    const kv_seq *seq;
    size_t t, n;        /* tokens [t, t + n) of the step */
    size_t at;          /* the first one's position */
    size_t begin, last; /* the first page that one of them sees, and their own */
    size_t lds;         /* floats from one row of scores to the next; behind the rows there is one more */
} block;

/* What a block computes for one key head; rows are [tokens][query heads that share it]. */
typedef struct shared_head {
    size_t kvh, group, hd;
    float *scores, *q, *out; /* [rows][lds], from page `begin` on; [rows][hd]; [rows][hd] */
} shared_head;

static size_t group_of(const attend *a)
{
    return a->n_head / a->n_head_kv;
}

size_t attend_row_floats(size_t n_pages)
{
    return (n_pages | 1) *
           KV_PAGE_TOKENS; /* an odd number of lines: rows do not meet in one set of a cache */
}

/* What rows take behind the scores: shared_head. */
static size_t rows_floats(size_t rows, size_t hd)
{
    return 2 * rows * hd + rows * (hd / sizeof(float) + 1) + 3 * rows;
}

size_t attend_space(const attn_conf *c, size_t n_ctx)
{
    size_t group = c->n_head / c->n_head_kv, rows = KV_PAGE_TOKENS * group;
    size_t one = (group + 1) * attend_row_floats((n_ctx + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS);
    size_t scores = one > BLOCK_SCORES                    ? one
                    : KV_PAGE_TOKENS * one > BLOCK_SCORES ? BLOCK_SCORES
                                                          : KV_PAGE_TOKENS * one;
    return scores + rows_floats(rows, c->head_dim);
}

size_t attend_scores_floats(const attend *a, size_t space_floats)
{
    return space_floats - rows_floats(KV_PAGE_TOKENS * group_of(a), a->head_dim);
}

/* The first position that the one at `at` sees. */
static size_t sees_from(const attend *a, size_t at)
{
    return a->window && at + 1 > a->window ? at + 1 - a->window : 0;
}

/* The block that begins with token t and is over by `end`. */
static block block_at(const attend *a, const attend_step *s, size_t t, size_t end)
{
    token_place first = s->place[t];
    size_t at = first.position;
    block b = {.seq = s->items[first.item].seq, .t = t, .n = 1, .at = at, .last = at / KV_PAGE_TOKENS};
    b.begin = sees_from(a, at) / KV_PAGE_TOKENS;
    b.lds = attend_row_floats(b.last - b.begin + 1);
    size_t most = (attend_scores_floats(a, s->space_floats) - b.lds) / (group_of(a) * b.lds),
           left = KV_PAGE_TOKENS - at % KV_PAGE_TOKENS;
    if (most > left) most = left;
    while (b.n < most && t + b.n < end && s->place[t + b.n].item == first.item &&
           s->place[t + b.n].position == at + b.n)
        b.n++;
    return b;
}

#define AHEAD 4 /* so many tiles of a head are under way, that none of them waits for memory alone */

/* Ask for a tile before it is needed: tiles of one head lie pages apart, so the hardware does not guess. */
static void fetch_tile(const char *tile, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + i);
}

/* Every row against every page. The scores of keys past a token and in front of its window are made, whatever
 * they hold, and not looked at. */
static void score_block(const attend *a, const attend_step *s, const vec_kernels *v, const block *b,
                        const shared_head *h)
{
    size_t n_rows = b->n * h->group;
    for (size_t page = b->begin; page <= b->last; page++) {
        const void *keys = kv_k(s->cache, b->seq, a->slot, h->kvh, page);
        float *scores = h->scores + (page - b->begin) * KV_PAGE_TOKENS;
        if (page + AHEAD <= b->last)
            fetch_tile(kv_k(s->cache, b->seq, a->slot, h->kvh, page + AHEAD), s->cache->head_bytes);
        else /* the first values */
            fetch_tile(kv_v(s->cache, b->seq, a->slot, h->kvh, b->begin + b->last - page),
                       s->cache->head_bytes);
        if (s->cache->shape.type == DT_F16)
            v->attn_scores_f16(scores, b->lds, h->q, h->hd, n_rows, keys, h->hd, a->scale);
        else
            v->attn_scores(scores, b->lds, h->q, h->hd, n_rows, keys, h->hd, a->scale);
    }
}

/* scores of positions [first, at] += what their distance to `at` says to this head */
static void add_distance(const attend *a, const vec_kernels *v, size_t head, size_t at, size_t first,
                         float *scores)
{
    const distance *d = a->distance;
    v->add(scores, scores, d->bias + head * (2 * d->n_ctx - 1) + distance_at(d, at, first), at + 1 - first);
}

/* The scores of row r over what its token sees, n of them, and what its model does to them. */
static float *finish_scores(const attend *a, const vec_kernels *v, const block *b, const shared_head *h,
                            size_t r, size_t *ret_n)
{
    size_t at = b->at + r / h->group, first = sees_from(a, at), n = at + 1 - first;
    float *row = h->scores + r * b->lds + first - b->begin * KV_PAGE_TOKENS;
    if (a->distance) add_distance(a, v, h->kvh * h->group + r % h->group, at, first, row);
    if (a->softcap > 0) cap_row(v, row, n, a->softcap);
    *ret_n = n;
    return row;
}

/* Scores into weights. */
static void weigh_block(const attend *a, const vec_kernels *v, const block *b, const shared_head *h)
{
    for (size_t r = 0; r < b->n * h->group; r++) {
        size_t n;
        float *row = finish_scores(a, v, b, h, r, &n);
        v->softmax(row, n);
    }
}

/* Rows [row, row + n_rows) += values [from, to) of a page, as their weights say. */
static void mix_rows(const attend_step *s, const vec_kernels *v, const block *b, const shared_head *h,
                     size_t row, size_t n_rows, size_t page, const void *values, size_t from, size_t to)
{
    const float *p = h->scores + row * b->lds + (page - b->begin) * KV_PAGE_TOKENS + from;
    float *out = h->out + row * h->hd;
    if (s->cache->shape.type == DT_F16)
        v->attn_mix_f16(out, h->hd, p, b->lds, n_rows, (const uint16_t *)values + from * h->hd, h->hd,
                        to - from, h->hd);
    else
        v->attn_mix(out, h->hd, p, b->lds, n_rows, (const float *)values + from * h->hd, h->hd, to - from,
                    h->hd);
}

/* Pages that all tokens see whole at once; the edges token by token. */
static void mix_block(const attend *a, const attend_step *s, const vec_kernels *v, const block *b,
                      const shared_head *h)
{
    size_t whole_from = sees_from(a, b->at + b->n - 1);
    memset(h->out, 0, b->n * h->group * h->hd * sizeof *h->out);
    for (size_t page = b->begin; page <= b->last; page++) {
        size_t begin = page * KV_PAGE_TOKENS, end = begin + KV_PAGE_TOKENS;
        const void *values = kv_v(s->cache, b->seq, a->slot, h->kvh, page);
        if (page + AHEAD <= b->last)
            fetch_tile(kv_v(s->cache, b->seq, a->slot, h->kvh, page + AHEAD), s->cache->head_bytes);
        if (begin >= whole_from && page < b->last) {
            mix_rows(s, v, b, h, 0, b->n * h->group, page, values, 0, KV_PAGE_TOKENS);
            continue;
        }
        for (size_t i = 0; i < b->n; i++) {
            size_t first = sees_from(a, b->at + i), stop = b->at + i + 1;
            size_t from = first > begin ? first - begin : 0, to = stop < end ? stop - begin : KV_PAGE_TOKENS;
            if (from < to) mix_rows(s, v, b, h, i * h->group, h->group, page, values, from, to);
        }
    }
}

/* ---- keys and values of int8: the same order, but that weights are made whole at the end ---- */

#define TILE_RUN 4 /* tiles of values that sums stay in registers for */

/* Queries as int8 and what all their weights are to be multiplied with at last, in work space. */
typedef struct rows_q8 {
    float *scale, *share;
    int32_t *sum;
    int8_t *code;
} rows_q8;

/* Scores of every row against every page, and the pages' value scales behind them. */
static void score_block_q8(const attend *a, const attend_step *s, const vec_kernels *v, const block *b,
                           const shared_head *h, const rows_q8 *q)
{
    size_t n_rows = b->n * h->group;
    float *value_scale = h->scores + n_rows * b->lds;
    for (size_t r = 0; r < n_rows; r++)
        q->scale[r] = v->attn_quantise(q->code + r * h->hd, &q->sum[r], h->q + r * h->hd, h->hd) * a->scale;
    for (size_t page = b->begin; page <= b->last; page++) {
        size_t at = (page - b->begin) * KV_PAGE_TOKENS;
        if (page + AHEAD <= b->last) {
            fetch_tile(kv_k(s->cache, b->seq, a->slot, h->kvh, page + AHEAD), s->cache->head_bytes);
            fetch_tile(kv_v(s->cache, b->seq, a->slot, h->kvh, page + AHEAD), ATTN_Q8_SCALES);
        }
        v->attn_scores_q8(h->scores + at, b->lds, q->code, q->scale, q->sum, n_rows,
                          kv_k(s->cache, b->seq, a->slot, h->kvh, page), h->hd);
        memcpy(value_scale + at, kv_v(s->cache, b->seq, a->slot, h->kvh, page), ATTN_Q8_SCALES);
    }
}

/* What a row does not see of its pages has no weight. */
static void weigh_block_q8(const attend *a, const vec_kernels *v, const block *b, const shared_head *h,
                           const rows_q8 *q)
{
    size_t n_rows = b->n * h->group, n_pages = b->last - b->begin + 1;
    for (size_t r = 0; r < n_rows; r++) {
        size_t n;
        float *all = h->scores + r * b->lds, *seen = finish_scores(a, v, b, h, r, &n);
        for (float *x = all; x < seen; x++) *x = -(float)INFINITY;
        for (float *x = seen + n; x < all + n_pages * KV_PAGE_TOKENS; x++) *x = -(float)INFINITY;
        q->share[r] = v->attn_weigh_q8(all, n_pages, h->scores + n_rows * b->lds);
    }
}

static void mix_block_q8(const attend *a, const attend_step *s, const vec_kernels *v, const block *b,
                         const shared_head *h, const rows_q8 *q)
{
    const kv *c = s->cache;
    size_t n_rows = b->n * h->group, n;
    attn_tiles run = {.stride = c->page_bytes,
                      .base = c->memory + (2 * a->slot + 1) * c->half_bytes + h->kvh * c->head_bytes};
    memset(h->out, 0, n_rows * h->hd * sizeof *h->out);
    for (size_t page = b->begin; page <= b->last; page += n) {
        n = b->last + 1 - page < TILE_RUN ? b->last + 1 - page : TILE_RUN;
        for (size_t i = page + n; i <= b->last && i < page + n + TILE_RUN; i++)
            fetch_tile(kv_v(c, b->seq, a->slot, h->kvh, i), c->head_bytes);
        run.page = b->seq->pages + page;
        run.n = n;
        v->attn_mix_q8(h->out, h->hd, h->scores + (page - b->begin) * KV_PAGE_TOKENS, b->lds, n_rows, &run,
                       h->hd);
    }
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < h->hd; i++) h->out[r * h->hd + i] *= q->share[r];
}

/* `space` is what rows have behind their scores. */
static void attend_block_q8(const attend *a, const attend_step *s, const vec_kernels *v, const block *b,
                            const shared_head *h, float *space)
{
    size_t rows = KV_PAGE_TOKENS * h->group;
    float *at = space + 2 * rows * h->hd;
    rows_q8 q = {.scale = at, .share = at + rows, .sum = (int32_t *)(at + 2 * rows)};
    q.code = (int8_t *)(at + 3 * rows);
    score_block_q8(a, s, v, b, h, &q);
    weigh_block_q8(a, v, b, h, &q);
    mix_block_q8(a, s, v, b, h, &q);
}

/* The query heads of a block that share key head `kvh`. One token's lie side by side already; those of
 * several are brought together in `space`. */
static void attend_block(const attend *a, const attend_step *s, const vec_kernels *v, const rows *qkv,
                         rows *att, const block *b, size_t kvh, float *space)
{
    size_t group = group_of(a), hd = a->head_dim, width = group * hd;
    float *q = rows_at(qkv, b->t) + kvh * width, *out = rows_at(att, b->t) + kvh * width;
    float *behind = space + attend_scores_floats(a, s->space_floats);
    shared_head h = {.kvh = kvh, .group = group, .hd = hd, .scores = space, .q = q, .out = out};
    if (b->n > 1) {
        h.q = behind;
        h.out = h.q + KV_PAGE_TOKENS * width;
    }
    for (size_t i = 0; b->n > 1 && i < b->n; i++)
        memcpy(h.q + i * width, q + i * qkv->width, width * sizeof *q);
    if (s->cache->shape.type == DT_Q8_0) {
        attend_block_q8(a, s, v, b, &h, behind);
    } else {
        score_block(a, s, v, b, &h);
        weigh_block(a, v, b, &h);
        mix_block(a, s, v, b, &h);
    }
    for (size_t i = 0; b->n > 1 && i < b->n; i++)
        memcpy(out + i * att->width, h.out + i * width, width * sizeof *out);
}

/* Tokens and key heads are dealt out in turn, because later blocks see more keys. Every member stores what it
 * attends to first where items have one token each, so that a decode step needs no barrier in between; else
 * all are stored in front. */
static void attend_dealt(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att, float *space)
{
    size_t n_kv = a->n_head_kv, n_work = qkv->n * n_kv, w;
    size_t n_members = (size_t)member_count(l->m), me = (size_t)member_index(l->m);
    block b;
    if (!s->all_single) {
        rows_use(l, {qkv, READ_ALL | WRITE_PARTS});
        for (w = me; w < n_work; w += n_members) store_token(a, s, l->v, qkv, w / n_kv, w % n_kv);
        rows_use(l, {qkv, READ_ALL}, {att, WRITE_PARTS});
    } else {
        rows_use(l, {qkv, READ_ALL | WRITE_PARTS}, {att, WRITE_PARTS});
    }
    w = 0;
    for (size_t t = 0; t < qkv->n; t += b.n) {
        b = block_at(a, s, t, qkv->n);
        for (size_t kvh = 0; kvh < n_kv; kvh++) {
            if (w++ % n_members != me) continue;
            if (s->all_single) store_token(a, s, l->v, qkv, t, kvh);
            attend_block(a, s, l->v, qkv, att, &b, kvh, space);
        }
    }
}

/* Each member its own tokens, so that nothing but keys and values passes between them. The caller has put
 * tokens in an order in which all members' see about as many keys. */
static void attend_apart(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att, float *space)
{
    rows cache = {.n = qkv->n}; /* what this step stores */
    size_t begin, end, n_kv = a->n_head_kv;
    block b;
    rows_use(l, {qkv, READ_MINE | WRITE_MINE}, {&cache, WRITE_MINE});
    rows_share(l, qkv, &begin, &end);
    for (size_t t = begin; t < end; t++)
        for (size_t kvh = 0; kvh < n_kv; kvh++) store_token(a, s, l->v, qkv, t, kvh);
    rows_use(l, {qkv, READ_MINE}, {&cache, s->all_single ? READ_MINE : READ_ALL}, {att, WRITE_MINE});
    for (size_t t = begin; t < end; t += b.n) {
        b = block_at(a, s, t, end);
        for (size_t kvh = 0; kvh < n_kv; kvh++) attend_block(a, s, l->v, qkv, att, &b, kvh, space);
    }
}

void blk_attend(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att)
{
    float *space = s->space + (size_t)member_index(l->m) * s->space_floats;
    assert(qkv->width == (a->n_head + 2 * a->n_head_kv) * a->head_dim);
    assert(att->width == a->n_head * a->head_dim);
    if (a->qk == QK_NORM_WIDTH) norm_widths(l, a, qkv);
    (rows_stand_apart(l, qkv->n) ? attend_apart : attend_dealt)(l, a, s, qkv, att, space);
}
