/* attend.c: causal attention over pages (Vaswani et al. 2017; shared key heads: Ainslie et al. 2023,
 * arXiv:2305.13245; windows: Beltagy et al. 2020, arXiv:2004.05150); see attend.h. */
#include "net/attention/attend.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/progress.h"
#include "net/attention/attend_block.h"

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
static void prepare_attend(const attend *a, const vec_kernels *v, float *q, float *k, size_t kvh, size_t pos)
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
    for (size_t h = 0; h < a->n_head_kv; h++) prepare_attend(a, v, row + h * group * hd, k + h * hd, h, pos);
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
    prepare_attend(a, v, q, k, kvh, pos);
    size_t page = pos / KV_PAGE_TOKENS, at = pos % KV_PAGE_TOKENS;
    void *keys = kv_k(s->cache, seq, a->slot, kvh, page), *values = kv_v(s->cache, seq, a->slot, kvh, page);
    if (s->cache->shape.type == DT_Q8_0)
        store_q8(v, keys, values, at, k, k + a->n_head_kv * hd, hd);
    else if (s->cache->shape.type == DT_F16)
        store_f16(v, keys, values, at, k, k + a->n_head_kv * hd, hd);
    else
        store_f32(keys, values, at, k, k + a->n_head_kv * hd, hd);
}

/* ---- attention ---------------------------------------------------------------------------------------- */

size_t attend_parts_floats(const attn_conf *c, size_t n_ctx)
{
    return c->n_head * (n_ctx / ATTEND_CHUNK + 1) * (c->head_dim + 2);
}

/* Keys of a head that the busiest member reads beyond its share before chunks are dealt instead of heads:
 * they take as long as two barriers. */
#define UNEVEN_KEYS 256

/* Would heads dealt in turn leave members waiting that chunks keep busy? Nobody's bits depend on it. */
static bool deals_chunks(const attend *a, const attend_step *s, size_t n_tokens, size_t n_members)
{
    size_t busiest = 0, all = 0, floats = 0, first, w = 0, keys[TEAM_MAX] = {0};
    attend_block b;
    if (n_members == 1) return false;
    for (size_t t = 0; t < n_tokens; t += b.n) {
        b = attend_block_at(a, s, t, n_tokens);
        size_t n_keys = (b.last + 1 - b.begin) * KV_PAGE_TOKENS;
        floats += a->n_head_kv * attend_block_chunks(&b, &first) * attend_part_floats(a, &b);
        if (floats > s->parts_floats) return false;
        for (size_t kvh = 0; kvh < a->n_head_kv; kvh++, all += n_keys) {
            size_t *mine = &keys[w++ % n_members];
            *mine += n_keys;
            if (*mine > busiest) busiest = *mine;
        }
    }
    return busiest > all / n_members + UNEVEN_KEYS;
}

/* Prepare and store what of tokens and key heads falls to this member. */
static void store_all(lane *l, const attend *a, const attend_step *s, rows *qkv)
{
    size_t n_kv = a->n_head_kv, n_work = qkv->n * n_kv, n_members = (size_t)member_count(l->m);
    rows_profile_back(l, PROFILE_ROPE);
    rows_use(l, {qkv, READ_ALL | WRITE_PARTS});
    for (size_t w = (size_t)member_index(l->m); w < n_work; w += n_members)
        store_token(a, s, l->v, qkv, w / n_kv, w % n_kv);
}

/* Of a block and one key head, in multiplications. */
static size_t work_of(const attend *a, const attend_block *b)
{
    return 2 * b->n * (b->last + 1 - b->begin) * KV_PAGE_TOKENS * a->head_dim * a->n_head / a->n_head_kv;
}

/* Tokens and key heads are dealt out in turn, because later blocks see more keys. Every member stores what it
 * attends to first where items have one token each, so that a decode step needs no barrier in between; else
 * all are stored in front. */
static void attend_dealt(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att, float *space)
{
    size_t n_kv = a->n_head_kv, w = 0;
    size_t n_members = (size_t)member_count(l->m), me = (size_t)member_index(l->m);
    attend_block b;
    if (!s->all_single) {
        store_all(l, a, s, qkv);
        rows_profile_back(l, PROFILE_ATTENTION);
        rows_use(l, {qkv, READ_ALL}, {att, WRITE_PARTS});
    } else {
        rows_use(l, {qkv, READ_ALL | WRITE_PARTS}, {att, WRITE_PARTS});
    }
    for (size_t t = 0; t < qkv->n; t += b.n) {
        b = attend_block_at(a, s, t, qkv->n);
        for (size_t kvh = 0; kvh < n_kv; kvh++) {
            if (w++ % n_members != me) continue;
            if (s->all_single) rows_profile_back(l, PROFILE_ROPE);
            if (s->all_single) store_token(a, s, l->v, qkv, t, kvh);
            if (s->all_single) rows_profile_back(l, PROFILE_ATTENTION);
            attend_block_whole(a, s, l->v, &b, kvh, qkv, att, space);
            progress_add(work_of(a, &b));
        }
    }
}

/* Every head's parts into att, heads dealt in turn. */
static void join_parts(lane *l, const attend *a, const attend_step *s, size_t n_tokens, rows *att,
                       float *space)
{
    size_t n_members = (size_t)member_count(l->m), me = (size_t)member_index(l->m), w = 0, first;
    float *at = s->parts;
    attend_block b;
    for (size_t t = 0; t < n_tokens; t += b.n) {
        b = attend_block_at(a, s, t, n_tokens);
        size_t n = attend_block_chunks(&b, &first);
        for (size_t kvh = 0; kvh < a->n_head_kv; kvh++, at += n * attend_part_floats(a, &b))
            if (w++ % n_members == me) attend_block_join(a, l->v, &b, kvh, at, n, att, space);
    }
}

/* Chunks of all heads, in runs of neighbours of about as many pages; then who joins a head's parts reads them
 * all. */
static void attend_chunks(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att, float *space)
{
    size_t n_kv = a->n_head_kv, n_pages = 0, passed = 0, end, first;
    size_t n_members = (size_t)member_count(l->m), me = (size_t)member_index(l->m);
    float *part = s->parts;
    rows parts = {.n = 1};
    attend_block b;
    store_all(l, a, s, qkv);
    rows_profile_back(l, PROFILE_ATTENTION);
    rows_use(l, {qkv, READ_ALL}, {&parts, WRITE_PARTS});
    for (size_t t = 0; t < qkv->n; t += b.n) {
        b = attend_block_at(a, s, t, qkv->n);
        n_pages += n_kv * (b.last + 1 - b.begin);
    }
    for (size_t t = 0; t < qkv->n; t += b.n) {
        b = attend_block_at(a, s, t, qkv->n);
        size_t n = attend_block_chunks(&b, &first), floats = attend_part_floats(a, &b);
        for (size_t i = 0; i < n_kv * n; i++, part += floats) {
            size_t begin = attend_block_pages(&b, first + i % n, &end), middle = passed + (end - begin) / 2;
            if (middle * n_members / n_pages == me) {
                attend_block_chunk(a, s, l->v, &b, i / n, first + i % n, qkv, part, space);
                progress_add(work_of(a, &b) / n);
            }
            passed += end - begin;
        }
    }
    rows_use(l, {&parts, READ_ALL}, {att, WRITE_PARTS});
    join_parts(l, a, s, qkv->n, att, space);
}

/* Each member its own tokens, so that nothing but keys and values passes between them. The caller has put
 * tokens in an order in which all members' see about as many keys. */
static void attend_apart(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att, float *space)
{
    rows cache = {.n = qkv->n}; /* what this step stores */
    size_t begin, end, n_kv = a->n_head_kv;
    attend_block b;
    rows_profile_back(l, PROFILE_ROPE);
    rows_use(l, {qkv, READ_MINE | WRITE_MINE}, {&cache, WRITE_MINE});
    rows_share(l, qkv, &begin, &end);
    for (size_t t = begin; t < end; t++)
        for (size_t kvh = 0; kvh < n_kv; kvh++) store_token(a, s, l->v, qkv, t, kvh);
    rows_profile_back(l, PROFILE_ATTENTION);
    rows_use(l, {qkv, READ_MINE}, {&cache, s->all_single ? READ_MINE : READ_ALL}, {att, WRITE_MINE});
    for (size_t t = begin; t < end; t += b.n) {
        b = attend_block_at(a, s, t, end);
        for (size_t kvh = 0; kvh < n_kv; kvh++) attend_block_whole(a, s, l->v, &b, kvh, qkv, att, space);
        progress_add(n_kv * work_of(a, &b));
    }
}

/* What attention is to multiply, and of keys and values to read: those in front of a step's tokens, which the step does
 * not have at hand. */
static void profile_attention(const lane *l, const attend *a, const attend_step *s, size_t n_tokens)
{
    profile_entry *e = profile_to(l->profile, PROFILE_ATTENTION, NULL);
    dtype kept_as = s->cache->shape.type;
    double pairs = 0, kept = 0, one = (double)dtype_block_bytes(kept_as); /* of a number */
    if (kept_as == DT_Q8_0) one = 1 + sizeof(float) / (double)a->head_dim;
    for (size_t t = 0; t < n_tokens; t++) {
        size_t seen = s->place[t].position + 1;
        pairs += (double)(a->window && seen > a->window ? a->window : seen);
    }
    for (size_t t = 0; t < n_tokens; t++) { /* once a sequence and step */
        const kv_seq *seq = s->items[s->place[t].item].seq;
        size_t before = seq->n_tokens, read = before + s->all_single; /* a single token's own, too */
        if (s->place[t].position != before) continue;
        kept += (double)(a->window && read > a->window ? a->window : read);
    }
    e->multiply_adds += pairs * 2 * (double)a->n_head * (double)a->head_dim;
    e->bytes += kept * 2 * (double)a->n_head_kv * (double)a->head_dim * one;
    profile_to(l->profile, PROFILE_ROPE, NULL);
}

void blk_attend(lane *l, const attend *a, const attend_step *s, rows *qkv, rows *att)
{
    float *space = s->space + (size_t)member_index(l->m) * s->space_floats;
    if (l->profile) profile_attention(l, a, s, qkv->n);
    assert(qkv->width == (a->n_head + 2 * a->n_head_kv) * a->head_dim);
    assert(att->width == a->n_head * a->head_dim);
    if (a->qk == QK_NORM_WIDTH) norm_widths(l, a, qkv);
    if (rows_stand_apart(l, qkv->n))
        attend_apart(l, a, s, qkv, att, space);
    else if (deals_chunks(a, s, qkv->n, (size_t)member_count(l->m)))
        attend_chunks(l, a, s, qkv, att, space);
    else
        attend_dealt(l, a, s, qkv, att, space);
}
