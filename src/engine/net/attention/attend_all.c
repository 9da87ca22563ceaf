/* attend_all.c: attention over a ragged batch; see attend_all.h. */
#include "net/attention/attend_all.h"
#include "base/progress.h"

#include <assert.h>
#include <string.h>

/* All members: q and k as attention wants them, and keys turned for attn_scores: tile after tile of sixteen
 * tokens of one sequence, [kv head][head_dim][16] each. `tiles` stands for the memory of the keys. */
static void turn_keys(lane *l, const attend *a, const ragged *g, rows *qkv, rows *tiles)
{
    size_t t, end, q = a->n_head * a->head_dim, width = a->n_head_kv * a->head_dim;
    rows_use(l, {qkv, READ_MINE | WRITE_MINE}, {tiles, WRITE_PARTS});
    rows_share(l, qkv, &t, &end);
    for (size_t n; t < end; t += n) {
        size_t item = g->item[t], at = t - g->first[item];
        float *keys = rows_at(qkv, t) + q, *tile = g->keys + (g->first_tile[item] + at / TILE) * width * TILE;
        n = at % TILE == 0 && t + TILE <= end && t + TILE <= g->first[item + 1] ? TILE : 1;
        for (size_t i = 0; i < n; i++) attend_prepare(a, l->v, rows_at(qkv, t + i), at + i);
        if (n == TILE)
            l->v->attn_turn(tile, keys, qkv->width, width);
        else
            for (size_t i = 0; i < width; i++) tile[i * TILE + at % TILE] = keys[i];
    }
}

/* ---- blocks of tokens ---- */

#define BLOCK_SCORES 131072 /* floats: the scores of a block stay in L2 */

/* Floats from one row of scores of so many tiles to the next: an odd number of lines, so that rows do not
 * meet in one set of a cache. */
static size_t row_floats(size_t n_tiles)
{
    return (n_tiles | 1) * TILE;
}

/* Behind the scores there are queries and results: [TILE][query heads of a key head][head_dim] each. */
static size_t behind_scores(size_t group, size_t hd)
{
    return 2 * TILE * group * hd;
}

size_t attend_all_space(const attn_conf *c, size_t n_ctx)
{
    size_t group = c->n_head / c->n_head_kv, one = (group + 1) * row_floats((n_ctx + TILE - 1) / TILE);
    size_t scores = one > BLOCK_SCORES ? one : TILE * one > BLOCK_SCORES ? BLOCK_SCORES : TILE * one;
    return scores + behind_scores(group, c->head_dim);
}

static size_t scores_floats(const attend *a, const ragged *g)
{
    return g->space_floats - behind_scores(a->n_head / a->n_head_kv, a->head_dim);
}

typedef struct span {
    size_t begin, end;
} span;

/* Up to TILE neighbours of one sequence, and the query heads that share one of its key heads. */
typedef struct block {
    size_t item, at, n; /* positions [at, at + n) of that sequence */
    size_t kvh, group;
    span keys;           /* all that one of them sees */
    size_t lds;          /* floats from one row of scores to the next */
    size_t ldq, ldo;     /* and of queries, and of what comes out */
    float *scores, *out; /* [n * group][lds], from the tile of keys.begin on; [n * group][ldo] */
    const float *q;      /* [n * group][ldq] */
    const float *key_rows, *value_rows; /* of the sequence's first token, this head */
} block;

/* The positions that the one at `at` sees, of n. */
static span sees(const attend *a, const ragged *g, size_t at, size_t n)
{
    size_t reach = a->window / 2;
    if (g->causal) return (span){a->window > 0 && at + 1 > a->window ? at + 1 - a->window : 0, at + 1};
    if (a->window == 0) return (span){0, n};
    return (span){at > reach ? at - reach : 0, n - at > reach + 1 ? at + reach + 1 : n};
}

static size_t length_of(const ragged *g, size_t item)
{
    return g->first[item + 1] - g->first[item];
}

/* Row r of a block sees this. */
static span row_sees(const attend *a, const ragged *g, const block *b, size_t r)
{
    return sees(a, g, b->at + r / b->group, length_of(g, b->item));
}

static void score_block(const attend *a, const ragged *g, const vec_kernels *v, const block *b)
{
    size_t hd = a->head_dim, width = a->n_head_kv * hd, tile = b->keys.begin / TILE;
    const float *kt = g->keys + (g->first_tile[b->item] + tile) * width * TILE + b->kvh * hd * TILE;
    float *scores = b->scores;
    for (; tile * TILE < b->keys.end; tile++, kt += width * TILE, scores += TILE)
        v->attn_scores(scores, b->lds, b->q, b->ldq, b->n * b->group, kt, hd, a->scale);
}

/* Row r's score of position `at` of its sequence. */
static float *score_at(const block *b, size_t r, size_t at)
{
    return b->scores + r * b->lds + at - b->keys.begin / TILE * TILE;
}

/* The scores of row r += what distance says. */
static void add_distance(const attend *a, const ragged *g, const relative *rel, const vec_kernels *v,
                         const block *b, size_t width, size_t r)
{
    const distance *d = g->distance;
    span see = row_sees(a, g, b, r);
    size_t hd = a->head_dim, head = b->kvh * b->group + r % b->group, n = see.end - see.begin;
    size_t first = distance_at(d, b->at + r / b->group, see.begin);
    float *scores = score_at(b, r, see.begin);
    if (d->bias) v->add(scores, scores, d->bias + head * (2 * d->n_ctx - 1) + first, n);
    if (!rel->by_query) return;
    const float *q = b->q + r * b->ldq, *k = b->key_rows + see.begin * width;
    for (size_t j = 0; j < n; j++, k += width) {
        size_t number = d->index[first + j];
        float c2p = v->dot(q, rel->by_query + (number * a->n_head_kv + b->kvh) * hd, hd);
        float p2c = v->dot(k, rel->by_key + (number * a->n_head + head) * hd, hd);
        scores[j] += (c2p + p2c) * a->scale;
    }
}

/* Scores into weights, each row over what its token sees. */
static void weigh_block(const attend *a, const ragged *g, const relative *rel, const vec_kernels *v,
                        const block *b, size_t width)
{
    for (size_t r = 0; r < b->n * b->group; r++) {
        span see = row_sees(a, g, b, r);
        float *row = score_at(b, r, see.begin);
        if (g->distance->bias || rel->by_query) add_distance(a, g, rel, v, b, width, r);
        if (a->softcap > 0) cap_row(v, row, see.end - see.begin, a->softcap);
        v->softmax(row, see.end - see.begin);
    }
}

/* Rows [row, row + n) += the values of positions that all of them see. */
static void mix_rows(const attend *a, const vec_kernels *v, const block *b, size_t row, size_t n, span keys,
                     size_t width)
{
    if (keys.begin >= keys.end) return;
    v->attn_mix(b->out + row * b->ldo, b->ldo, score_at(b, row, keys.begin), b->lds, n,
                b->value_rows + keys.begin * width, width, keys.end - keys.begin, a->head_dim);
}

/* In order of position for every row: what only earlier tokens see, what all see, what only later ones do. */
static void mix_block(const attend *a, const ragged *g, const vec_kernels *v, const block *b, size_t width)
{
    span first = row_sees(a, g, b, 0), last = row_sees(a, g, b, (b->n - 1) * b->group);
    span all = {last.begin, first.end > last.begin ? first.end : last.begin};
    for (size_t r = 0; r < b->n * b->group; r++) memset(b->out + r * b->ldo, 0, a->head_dim * sizeof *b->out);
    if (a->window == 0 && !g->causal) { /* all see all */
        mix_rows(a, v, b, 0, b->n * b->group, b->keys, width);
        return;
    }
    for (size_t i = 0; i < b->n; i++) {
        span see = row_sees(a, g, b, i * b->group);
        mix_rows(a, v, b, i * b->group, b->group,
                 (span){see.begin, see.end < all.begin ? see.end : all.begin}, width);
    }
    mix_rows(a, v, b, 0, b->n * b->group, all, width);
    for (size_t i = 0; i < b->n; i++) {
        span see = row_sees(a, g, b, i * b->group);
        mix_rows(a, v, b, i * b->group, b->group, (span){all.end, see.end}, width);
    }
}

/* Positions [at, at + n) of `item`, where `space` has room for them. */
static block block_at(const attend *a, const ragged *g, size_t item, size_t at)
{
    size_t group = a->n_head / a->n_head_kv, n = length_of(g, item);
    block b = {.item = item, .at = at, .group = group, .n = n - at < TILE ? n - at : TILE};
    b.keys = sees(a, g, at, n);
    b.keys.end = sees(a, g, at + b.n - 1, n).end;
    b.lds = row_floats((b.keys.end - 1) / TILE - b.keys.begin / TILE + 1);
    size_t most = scores_floats(a, g) / (group * b.lds);
    if (b.n <= most) return b;
    b.n = most;
    b.keys.end = sees(a, g, at + b.n - 1, n).end;
    return b;
}

/* Where each key head has a query head of its own, queries are read and written where they lie; where several
 * share one, they are brought together, so that all of them meet a key that was loaded once. */
static void attend_block(const attend *a, const ragged *g, const relative *rel, const vec_kernels *v,
                         const rows *qkv, rows *att, block *b, float *space)
{
    size_t hd = a->head_dim, own = b->group * hd, row = g->first[b->item];
    const float *q = rows_at(qkv, row + b->at) + b->kvh * own;
    float *out = rows_at(att, row + b->at) + b->kvh * own;
    bool apart = b->group > 1;
    float *gathered = space + scores_floats(a, g);
    b->scores = space;
    b->q = apart ? gathered : q;
    b->ldq = apart ? hd : qkv->width;
    b->out = apart ? gathered + TILE * own : out;
    b->ldo = apart ? hd : att->width;
    b->key_rows = rows_at(qkv, row) + (a->n_head + b->kvh) * hd;
    b->value_rows = b->key_rows + a->n_head_kv * hd;
    for (size_t i = 0; apart && i < b->n; i++)
        memcpy(gathered + i * own, q + i * qkv->width, own * sizeof *q);
    score_block(a, g, v, b);
    weigh_block(a, g, rel, v, b, qkv->width);
    mix_block(a, g, v, b, qkv->width);
    for (size_t i = 0; apart && i < b->n; i++)
        memcpy(out + i * att->width, b->out + i * own, own * sizeof *out);
}

static void profile_attention(const lane *l, const attend *a, const ragged *g)
{
    double pairs = 0;
    for (size_t t = 0; t < g->n_tokens; t++) {
        span see = sees(a, g, t - g->first[g->item[t]], length_of(g, g->item[t]));
        pairs += (double)(see.end - see.begin);
    }
    profile_to(l->profile, PROFILE_ATTENTION, NULL)->multiply_adds +=
        pairs * 2 * (double)a->n_head * (double)a->head_dim;
}

/* (block, key head) pairs are split in runs of neighbours, which read the same keys. */
void blk_attend_all(lane *l, const attend *a, const ragged *g, const relative *r, rows *qkv, rows *att)
{
    rows tiles = {.n = qkv->n};
    float *space = g->space + (size_t)member_index(l->m) * g->space_floats;
    size_t begin, end;
    block b;
    assert(qkv->width == (a->n_head + 2 * a->n_head_kv) * a->head_dim &&
           att->width == a->n_head * a->head_dim);
    rows_profile(l, PROFILE_ROPE);
    turn_keys(l, a, g, qkv, &tiles);
    if (l->profile) profile_attention(l, a, g);
    rows_use(l, {qkv, READ_ALL}, {&tiles, READ_ALL}, {att, WRITE_PARTS});
    member_share(l->m, g->n_tokens * a->n_head_kv, 1, &begin, &end);
    for (size_t t = 0, work = 0; t < g->n_tokens && work < end; t += b.n) {
        b = block_at(a, g, g->item[t], t - g->first[g->item[t]]);
        for (b.kvh = 0; b.kvh < a->n_head_kv; b.kvh++, work += b.n)
            if (work >= begin && work < end) attend_block(a, g, r, l->v, qkv, att, &b, space);
        progress_add(2 * b.n * b.lds * b.group * a->head_dim * a->n_head_kv / (size_t)member_count(l->m));
    }
}
