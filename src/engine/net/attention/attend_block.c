/* attend_block.c: chunks of scores, weights and mixed values, and joining them (online softmax: Milakov and
 * Gimelshein 2018, arXiv:1805.02867; over blocks of keys: Dao et al. 2022, arXiv:2205.14135). */
#include "net/attention/attend_block.h"

#include <math.h>
#include <string.h>

#define BLOCK_ROWS 128 /* most rows of a block of several tokens: 32 KiB of queries of 64 */
#define WIDE_ROWS  16  /* so many rows make it worth widening F16 for all of them first */
/* Floats from one row of scores to the next: an odd number of lines, so that rows do not meet in one set of a
 * cache. */
#define LDS (ATTEND_CHUNK + KV_PAGE_TOKENS)

/* What rows [tokens][query heads that share a key head] got of some chunks. `total` is 0 where a row saw none
 * of their keys. */
typedef struct part {
    float *out, *most, *total; /* [rows][head_dim], [rows], [rows] */
} part;

/* A member's work space. */
typedef struct work {
    float *scores;   /* [rows][LDS], from the chunk's first page on, and a row of value scales */
    float *q, *wide; /* [rows][head_dim]; a tile of F16 as floats */
    part all, more;  /* what is joined, and the next chunk of it */
    float *away;     /* [rows] */
    float *q8_scale; /* [rows] */
    int32_t *q8_sum; /* [rows] */
    int8_t *q8_code; /* [rows][head_dim] */
} work;

/* What a block computes for one key head in one chunk. */
typedef struct job {
    const attend *a;
    const attend_step *s;
    const vec_kernels *v;
    const attend_block *b;
    size_t kvh, group, hd, n_rows;
    size_t begin, end; /* pages of the chunk that one of the tokens sees */
    const float *q;    /* [rows][hd] */
    work w;
} job;

static size_t group_of(const attend *a)
{
    return a->n_head / a->n_head_kv;
}

static size_t most_rows(size_t group)
{
    size_t page = KV_PAGE_TOKENS * group, most = group > BLOCK_ROWS ? group : BLOCK_ROWS;
    return page < most ? page : most;
}

size_t attend_block_space(const attn_conf *c)
{
    size_t hd = c->head_dim, rows = most_rows(c->n_head / c->n_head_kv);
    return (rows + 1) * LDS + 3 * rows * hd + KV_PAGE_TOKENS * hd + 7 * rows + rows * hd / sizeof(float) + 1;
}

static work lay_out(float *at, size_t rows, size_t hd)
{
    work w = {.scores = at, .q = at + (rows + 1) * LDS};
    w.all.out = w.q + rows * hd;
    w.more.out = w.all.out + rows * hd;
    w.wide = w.more.out + rows * hd;
    w.all.most = w.wide + KV_PAGE_TOKENS * hd;
    w.all.total = w.all.most + rows;
    w.more.most = w.all.total + rows;
    w.more.total = w.more.most + rows;
    w.away = w.more.total + rows;
    w.q8_scale = w.away + rows;
    w.q8_sum = (int32_t *)(w.q8_scale + rows);
    w.q8_code = (int8_t *)(w.q8_sum + rows);
    return w;
}

/* The first position that the one at `at` sees. */
static size_t sees_from(const attend *a, size_t at)
{
    return a->window && at + 1 > a->window ? at + 1 - a->window : 0;
}

attend_block attend_block_at(const attend *a, const attend_step *s, size_t t, size_t end)
{
    token_place first = s->place[t];
    size_t at = first.position, most = most_rows(group_of(a)) / group_of(a),
           left = KV_PAGE_TOKENS - at % KV_PAGE_TOKENS;
    attend_block b = {.seq = s->items[first.item].seq, .t = t, .n = 1, .at = at, .last = at / KV_PAGE_TOKENS};
    b.begin = sees_from(a, at) / KV_PAGE_TOKENS;
    if (most > left) most = left;
    while (b.n < most && t + b.n < end && s->place[t + b.n].item == first.item &&
           s->place[t + b.n].position == at + b.n)
        b.n++;
    return b;
}

size_t attend_part_floats(const attend *a, const attend_block *b)
{
    return b->n * group_of(a) * (a->head_dim + 2);
}

static part part_at(float *at, size_t n_rows, size_t hd)
{
    return (part){.out = at, .most = at + n_rows * hd, .total = at + n_rows * hd + n_rows};
}

size_t attend_block_chunks(const attend_block *b, size_t *ret_first)
{
    *ret_first = b->begin / CHUNK_PAGES;
    return b->last / CHUNK_PAGES + 1 - *ret_first;
}

size_t attend_block_pages(const attend_block *b, size_t chunk, size_t *ret_end)
{
    size_t first = chunk * CHUNK_PAGES, end = first + CHUNK_PAGES;
    *ret_end = end < b->last + 1 ? end : b->last + 1;
    return first > b->begin ? first : b->begin;
}

/* Positions [*from, *to) of the chunk that row r sees, counted from the chunk's first one here; false: none.
 */
static bool row_sees(const job *j, size_t r, size_t *from, size_t *to)
{
    size_t at = j->b->at + r / j->group, first = sees_from(j->a, at), stop = at + 1,
           begin = j->begin * KV_PAGE_TOKENS, end = j->end * KV_PAGE_TOKENS;
    *from = first > begin ? first - begin : 0;
    *to = (stop < end ? stop : end) - begin;
    return begin + *from < begin + *to;
}

static void *keys_of(const job *j, size_t page)
{
    return kv_k(j->s->cache, j->b->seq, j->a->slot, j->kvh, page);
}

static void *values_of(const job *j, size_t page)
{
    return kv_v(j->s->cache, j->b->seq, j->a->slot, j->kvh, page);
}

#define AHEAD 4 /* so many tiles of a head are under way, that none of them waits for memory alone */

/* Asking changes nothing that gcc knows of, so that it drops calls of what does nothing else. */
#define NOT_DROPPED __attribute__((always_inline)) static inline

/* Ask for a tile before it is needed: tiles of one head lie pages apart, so the hardware does not guess. */
NOT_DROPPED void fetch_tile(const char *tile, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + i);
}

/* The keys that come AHEAD of page's, or the chunk's first values. */
NOT_DROPPED void fetch_behind_keys(const job *j, size_t page)
{
    size_t next = page + AHEAD, value = j->begin + next - j->end;
    if (next < j->end)
        fetch_tile(keys_of(j, next), j->s->cache->head_bytes);
    else if (value < j->end)
        fetch_tile(values_of(j, value), j->s->cache->head_bytes);
}

/* The values that come AHEAD of page's, or the next chunk's first keys. */
NOT_DROPPED void fetch_behind_values(const job *j, size_t page)
{
    size_t next = page + AHEAD;
    if (next > j->b->last) return;
    fetch_tile(next < j->end ? values_of(j, next) : keys_of(j, next), j->s->cache->head_bytes);
}

/* Are F16 tiles made floats for all rows at once? */
static bool widens(const job *j)
{
    return j->s->cache->shape.type == DT_F16 && j->n_rows >= WIDE_ROWS;
}

/* ---- F32 and F16 -------------------------------------------------------------------------------------- */

/* Every row against every page. The scores of keys past a token and in front of its window are made, whatever
 * they hold, and not looked at. */
static void score(const job *j)
{
    bool wide = widens(j);
    for (size_t page = j->begin; page < j->end; page++) {
        const void *keys = keys_of(j, page);
        float *scores = j->w.scores + (page - j->begin) * KV_PAGE_TOKENS;
        fetch_behind_keys(j, page);
        if (wide) j->v->from_f16(j->w.wide, keys, j->hd * KV_PAGE_TOKENS);
        if (j->s->cache->shape.type == DT_F16 && !wide)
            j->v->attn_scores_f16(scores, LDS, j->q, j->hd, j->n_rows, keys, j->hd, j->a->scale);
        else
            j->v->attn_scores(scores, LDS, j->q, j->hd, j->n_rows, wide ? j->w.wide : keys, j->hd,
                              j->a->scale);
    }
}

/* Row r's scores of what it sees in the chunk, n of them, and what its model does to them; NULL: it sees
 * nothing. */
static float *finish_scores(const job *j, size_t r, size_t *ret_n)
{
    const attend *a = j->a;
    size_t from, to;
    if (!row_sees(j, r, &from, &to)) return NULL;
    float *row = j->w.scores + r * LDS + from;
    *ret_n = to - from;
    if (a->distance) {
        const distance *d = a->distance;
        size_t head = j->kvh * j->group + r % j->group, at = j->b->at + r / j->group;
        const float *bias = d->bias + head * (2 * d->n_ctx - 1);
        j->v->add(row, row, bias + distance_at(d, at, j->begin * KV_PAGE_TOKENS + from), *ret_n);
    }
    if (a->softcap > 0) cap_row(j->v, row, *ret_n, a->softcap);
    return row;
}

static void weigh(const job *j, part ret)
{
    for (size_t r = 0; r < j->n_rows; r++) {
        size_t n;
        float *row = finish_scores(j, r, &n);
        ret.total[r] = row ? j->v->attn_weigh(row, n, &ret.most[r]) : 0;
    }
}

/* Rows [row, row + n_rows) += values [from, to) of a page, as their weights say. */
static void mix_rows(const job *j, float *out, size_t row, size_t n_rows, size_t page, const void *values,
                     bool half, size_t from, size_t to)
{
    const float *p = j->w.scores + row * LDS + (page - j->begin) * KV_PAGE_TOKENS + from;
    size_t hd = j->hd;
    out += row * hd;
    if (half)
        j->v->attn_mix_f16(out, hd, p, LDS, n_rows, (const uint16_t *)values + from * hd, hd, to - from, hd);
    else
        j->v->attn_mix(out, hd, p, LDS, n_rows, (const float *)values + from * hd, hd, to - from, hd);
}

/* A page that not all tokens see whole. */
static void mix_edge(const job *j, float *out, size_t page, const void *values, bool half)
{
    size_t begin = (page - j->begin) * KV_PAGE_TOKENS, end = begin + KV_PAGE_TOKENS, from, to;
    for (size_t r = 0; r < j->n_rows; r += j->group) {
        if (!row_sees(j, r, &from, &to)) continue;
        from = from > begin ? from : begin;
        to = to < end ? to : end;
        if (from < to) mix_rows(j, out, r, j->group, page, values, half, from - begin, to - begin);
    }
}

/* Pages that all tokens see whole at once; the edges token by token. */
static void mix(const job *j, float *out)
{
    size_t whole_from = sees_from(j->a, j->b->at + j->b->n - 1);
    bool wide = widens(j), half = j->s->cache->shape.type == DT_F16 && !wide;
    memset(out, 0, j->n_rows * j->hd * sizeof *out);
    for (size_t page = j->begin; page < j->end; page++) {
        const void *values = values_of(j, page);
        fetch_behind_values(j, page);
        if (wide) {
            j->v->from_f16(j->w.wide, values, j->hd * KV_PAGE_TOKENS);
            values = j->w.wide;
        }
        if (page * KV_PAGE_TOKENS >= whole_from && page < j->b->last)
            mix_rows(j, out, 0, j->n_rows, page, values, half, 0, KV_PAGE_TOKENS);
        else
            mix_edge(j, out, page, values, half);
    }
}

/* ---- int8: weights are made whole at the end -------------------------------------------------------- */

#define TILE_RUN 4 /* tiles of values that sums stay in registers for */

static void quantise_queries(const job *j)
{
    const work *w = &j->w;
    size_t hd = j->hd;
    for (size_t r = 0; r < j->n_rows; r++)
        w->q8_scale[r] =
            j->v->attn_quantise(w->q8_code + r * hd, &w->q8_sum[r], j->q + r * hd, hd) * j->a->scale;
}

/* Scores of every row against every page, and the pages' value scales behind them. */
static void score_q8(const job *j)
{
    const work *w = &j->w;
    float *value_scale = w->scores + j->n_rows * LDS;
    for (size_t page = j->begin; page < j->end; page++) {
        size_t at = (page - j->begin) * KV_PAGE_TOKENS;
        fetch_behind_keys(j, page);
        if (page + AHEAD < j->end) fetch_tile(values_of(j, page + AHEAD), ATTN_Q8_SCALES);
        j->v->attn_scores_q8(w->scores + at, LDS, w->q8_code, w->q8_scale, w->q8_sum, j->n_rows,
                             keys_of(j, page), j->hd);
        memcpy(value_scale + at, values_of(j, page), ATTN_Q8_SCALES);
    }
}

/* What a row does not see of the chunk's pages has no weight. */
static void weigh_q8(const job *j, part ret)
{
    size_t n_pages = j->end - j->begin;
    for (size_t r = 0; r < j->n_rows; r++) {
        size_t n = 0;
        float *all = j->w.scores + r * LDS, *end = all + n_pages * KV_PAGE_TOKENS,
              *seen = finish_scores(j, r, &n);
        for (float *x = all; x < (seen ? seen : end); x++) *x = -(float)INFINITY;
        for (float *x = seen ? seen + n : end; x < end; x++) *x = -(float)INFINITY;
        ret.total[r] = j->v->attn_weigh_q8(all, n_pages, j->w.scores + j->n_rows * LDS, &ret.most[r]);
        if (!seen) ret.total[r] = 0;
    }
}

static void mix_q8(const job *j, part ret)
{
    const kv *c = j->s->cache;
    size_t hd = j->hd, n;
    attn_tiles run = {.stride = c->page_bytes,
                      .base = c->memory + (2 * j->a->slot + 1) * c->half_bytes + j->kvh * c->head_bytes};
    memset(ret.out, 0, j->n_rows * hd * sizeof *ret.out);
    for (size_t page = j->begin; page < j->end; page += n) {
        n = j->end - page < TILE_RUN ? j->end - page : TILE_RUN;
        for (size_t i = page; i < page + n; i++) fetch_behind_values(j, i);
        run.page = j->b->seq->pages + page;
        run.n = n;
        j->v->attn_mix_q8(ret.out, hd, j->w.scores + (page - j->begin) * KV_PAGE_TOKENS, LDS, j->n_rows, &run,
                          hd);
    }
    for (size_t r = 0; r < j->n_rows; r++) {
        float share = 1.0f / ret.total[r];
        for (size_t i = 0; i < hd; i += KV_PAGE_TOKENS) /* int8 has whole sixteens */
            for (size_t k = 0; k < KV_PAGE_TOKENS; k++) ret.out[r * hd + i + k] *= share;
    }
}

/* ---- chunks -------------------------------------------------------------------------------------------- */

/* One token's query heads lie side by side already; those of several are brought together. */
static job open_job(const attend *a, const attend_step *s, const vec_kernels *v, const attend_block *b,
                    size_t kvh, const rows *qkv, float *space)
{
    size_t group = group_of(a), hd = a->head_dim, width = group * hd;
    const float *q = rows_at(qkv, b->t) + kvh * width;
    job j = {a, s, v, b, .kvh = kvh, .group = group, .hd = hd, .n_rows = b->n * group, .q = q};
    j.w = lay_out(space, most_rows(group), hd);
    for (size_t i = 0; b->n > 1 && i < b->n; i++)
        memcpy(j.w.q + i * width, q + i * qkv->width, width * sizeof *q);
    if (b->n > 1) j.q = j.w.q;
    if (s->cache->shape.type == DT_Q8_0) quantise_queries(&j);
    return j;
}

static void run_chunk(job *j, size_t chunk, part ret)
{
    j->begin = attend_block_pages(j->b, chunk, &j->end);
    if (j->s->cache->shape.type == DT_Q8_0) {
        score_q8(j);
        weigh_q8(j, ret);
        mix_q8(j, ret);
    } else {
        score(j);
        weigh(j, ret);
        mix(j, ret.out);
    }
}

/* all = all and what comes behind it; away[n_rows] is work space */
static void join_attend_block(const vec_kernels *v, part all, part more, size_t n_rows, size_t hd,
                              float *away)
{
    for (size_t r = 0; r < n_rows; r++)
        away[r] = all.total[r] == 0 || more.total[r] == 0 ? 0 : -fabsf(all.most[r] - more.most[r]);
    v->exp_scaled(away, away, n_rows, 0, 1);
    for (size_t r = 0; r < n_rows; r++) {
        float mine = all.total[r], other = more.total[r];
        if (other == 0) continue;
        if (mine == 0) {
            memcpy(all.out + r * hd, more.out + r * hd, hd * sizeof *all.out);
            all.most[r] = more.most[r];
            all.total[r] = other;
            continue;
        }
        if (more.most[r] > all.most[r])
            mine *= away[r];
        else
            other *= away[r];
        float total = mine + other, share = 1.0f / total;
        v->attn_join(all.out + r * hd, mine * share, more.out + r * hd, other * share, hd);
        all.most[r] = more.most[r] > all.most[r] ? more.most[r] : all.most[r];
        all.total[r] = total;
    }
}

static void attend_block_leave(const attend *a, const attend_block *b, size_t kvh, const float *out,
                               rows *att)
{
    size_t width = group_of(a) * a->head_dim;
    for (size_t i = 0; i < b->n; i++)
        memcpy(rows_at(att, b->t + i) + kvh * width, out + i * width, width * sizeof *out);
}

void attend_block_whole(const attend *a, const attend_step *s, const vec_kernels *v, const attend_block *b,
                        size_t kvh, const rows *qkv, rows *att, float *space)
{
    job j = open_job(a, s, v, b, kvh, qkv, space);
    size_t chunk, n = attend_block_chunks(b, &chunk);
    run_chunk(&j, chunk, j.w.all);
    while (--n > 0) {
        run_chunk(&j, ++chunk, j.w.more);
        join_attend_block(v, j.w.all, j.w.more, j.n_rows, j.hd, j.w.away);
    }
    attend_block_leave(a, b, kvh, j.w.all.out, att);
}

void attend_block_chunk(const attend *a, const attend_step *s, const vec_kernels *v, const attend_block *b,
                        size_t kvh, size_t chunk, const rows *qkv, float *part, float *space)
{
    job j = open_job(a, s, v, b, kvh, qkv, space);
    run_chunk(&j, chunk, part_at(part, j.n_rows, j.hd));
}

void attend_block_join(const attend *a, const vec_kernels *v, const attend_block *b, size_t kvh, float *parts,
                       size_t n_parts, rows *att, float *space)
{
    size_t n_rows = b->n * group_of(a), hd = a->head_dim, floats = attend_part_floats(a, b);
    work w = lay_out(space, most_rows(group_of(a)), hd);
    part all = part_at(parts, n_rows, hd);
    for (size_t i = 1; i < n_parts; i++)
        join_attend_block(v, all, part_at(parts + i * floats, n_rows, hd), n_rows, hd, w.away);
    attend_block_leave(a, b, kvh, all.out, att);
}
