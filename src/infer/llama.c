/* llama.c: the Llama pass (Touvron et al. 2023, arXiv:2302.13971; shared key heads: Ainslie et al. 2023,
 * arXiv:2305.13245); see llama.h. A function that takes a team_member runs on all members at once; a barrier
 * stands wherever one reads what another wrote. */
#include "infer/llama.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "infer/proj.h"
#include "infer/rope.h"

#define GATE_ALONE_MAX 2048 /* columns that one member gates in less time than a barrier and a half take */

typedef struct layer {
    float *attn_norm, *ffn_norm;
    proj qkv, out, gate_up, down;
} layer;

/* Where each token of the step belongs. */
typedef struct token_place {
    uint32_t item, position;
} token_place;

struct llama {
    const model_config *c;
    size_t max_tokens, max_rows;
    size_t q_width, kv_width, qkv_width;
    float scale;
    layer *layers;
    float *out_norm;
    proj embd, head; /* head is empty when it is tied to embd */
    rope_table rope;
    acts *acts;
    /* one step's work space */
    float *x;            /* [max_tokens][n_embd], the residual stream */
    float *h;            /* [max_tokens][n_embd], normalised */
    float *qkv;          /* [max_tokens][qkv_width] */
    float *att;          /* [max_tokens][q_width] */
    float *ffn;          /* [max_tokens][2 n_ff]; gate, then up */
    float *act;          /* [max_tokens][n_ff] */
    float *rows;         /* [max_rows][n_embd], normalised rows in front of the head */
    float *logits;       /* [max_rows][n_vocab] */
    float *scores;       /* [members][n_head / n_head_kv][scores_width] */
    size_t scores_width; /* n_ctx in whole pages */
    token_place *place;
    uint32_t *row_token, *row_item, *row_at;
};

typedef struct step {
    llama *l;
    const kv *cache;
    const llama_item *items;
    size_t n_items, n_tokens, n_rows;
    bool all_single; /* no item has more than one token */
    llama_row_fn fn;
    void *user;
} step;

/* ---- loading ------------------------------------------------------------------------------------- */

static int load_layer(layer *ly, const model *m, const model_config *c, size_t i, isa set, shoal_err *err)
{
    char prefix[32], name[64];
    snprintf(prefix, sizeof prefix, "blk.%zu.", i);
    int rc;
    snprintf(name, sizeof name, "%sattn_norm.weight", prefix);
    if ((rc = proj_load_vector(&ly->attn_norm, m, name, c->n_embd, err))) return rc;
    snprintf(name, sizeof name, "%sffn_norm.weight", prefix);
    if ((rc = proj_load_vector(&ly->ffn_norm, m, name, c->n_embd, err))) return rc;
    if ((rc = proj_load(&ly->qkv, m, prefix, (const char *[]){"attn_q", "attn_k", "attn_v"}, 3, set, err)))
        return rc;
    if ((rc = proj_load(&ly->out, m, prefix, (const char *[]){"attn_output"}, 1, set, err))) return rc;
    if ((rc = proj_load(&ly->gate_up, m, prefix, (const char *[]){"ffn_gate", "ffn_up"}, 2, set, err)))
        return rc;
    return proj_load(&ly->down, m, prefix, (const char *[]){"ffn_down"}, 1, set, err);
}

static int load_rope(llama *l, const model *m, size_t n_ctx, shoal_err *err)
{
    const tensor *t = model_tensor(m, "rope_freqs.weight");
    float *factors = NULL;
    if (t && t->data) {
        int rc = proj_load_vector(&factors, m, "rope_freqs.weight", l->c->pos.rope.dim / 2, err);
        if (rc) return rc;
    }
    int rc = rope_init(&l->rope, l->c, n_ctx, factors, err);
    free(factors);
    return rc;
}

static int load_weights(llama *l, const model *m, isa set, size_t n_ctx, shoal_err *err)
{
    const model_config *c = l->c;
    int rc = proj_load(&l->embd, m, "", (const char *[]){"token_embd"}, 1, set, err);
    if (rc) return rc;
    if (!c->tied && (rc = proj_load(&l->head, m, "", (const char *[]){"output"}, 1, set, err))) return rc;
    if ((rc = proj_load_vector(&l->out_norm, m, "output_norm.weight", c->n_embd, err))) return rc;
    l->layers = calloc(c->n_layer, sizeof *l->layers);
    if (!l->layers) return err_nomem(err);
    for (size_t i = 0; i < c->n_layer; i++) {
        if ((rc = load_layer(&l->layers[i], m, c, i, set, err))) return rc;
    }
    return load_rope(l, m, n_ctx, err);
}

static int make_space(llama *l, size_t n_members, size_t n_ctx, shoal_err *err)
{
    const model_config *c = l->c;
    size_t n = l->max_tokens, widest = c->ffn.n_ff > l->q_width ? c->ffn.n_ff : l->q_width;
    if (c->n_embd > widest) widest = c->n_embd;
    l->x = mem_calloc64(n * c->n_embd, sizeof(float));
    l->h = mem_calloc64(n * c->n_embd, sizeof(float));
    l->qkv = mem_calloc64(n * l->qkv_width, sizeof(float));
    l->att = mem_calloc64(n * l->q_width, sizeof(float));
    l->ffn = mem_calloc64(n * 2 * c->ffn.n_ff, sizeof(float));
    l->act = mem_calloc64(n * c->ffn.n_ff, sizeof(float));
    l->rows = mem_calloc64(l->max_rows * c->n_embd, sizeof(float));
    l->logits = mem_calloc64(l->max_rows * c->n_vocab, sizeof(float));
    l->scores_width = (n_ctx + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS * KV_PAGE_TOKENS;
    l->scores =
        mem_calloc64(n_members * (c->attn.n_head / c->attn.n_head_kv) * l->scores_width, sizeof(float));
    l->place = calloc(n, sizeof *l->place);
    l->row_token = calloc(l->max_rows, sizeof *l->row_token);
    l->row_item = calloc(l->max_rows, sizeof *l->row_item);
    l->row_at = calloc(l->max_rows, sizeof *l->row_at);
    if (!l->x || !l->h || !l->qkv || !l->att || !l->ffn || !l->act || !l->rows || !l->logits || !l->scores ||
        !l->place || !l->row_token || !l->row_item || !l->row_at) {
        return err_nomem(err);
    }
    return acts_new(&l->acts, n > l->max_rows ? n : l->max_rows, widest, err);
}

int llama_new(llama **ret, const model *m, team *t, size_t n_ctx, size_t max_tokens, size_t max_rows,
              shoal_err *err)
{
    llama *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    const model_config *c = l->c = model_get_config(m);
    l->max_tokens = max_tokens;
    l->max_rows = max_rows;
    l->q_width = c->attn.n_head * c->attn.head_dim;
    l->kv_width = c->attn.n_head_kv * c->attn.head_dim;
    l->qkv_width = l->q_width + 2 * l->kv_width;
    l->scale = 1.0f / sqrtf((float)c->attn.head_dim);
    int rc = load_weights(l, m, team_isa(t), n_ctx, err);
    if (rc == 0) rc = make_space(l, (size_t)team_size(t), n_ctx, err);
    if (rc) {
        llama_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

static void free_layer(layer *ly)
{
    free(ly->attn_norm);
    free(ly->ffn_norm);
    proj_done(&ly->qkv);
    proj_done(&ly->out);
    proj_done(&ly->gate_up);
    proj_done(&ly->down);
}

void llama_free(llama *l)
{
    if (!l) return;
    for (size_t i = 0; l->layers && i < l->c->n_layer; i++) free_layer(&l->layers[i]);
    free(l->layers);
    free(l->out_norm);
    proj_done(&l->embd);
    proj_done(&l->head);
    rope_done(&l->rope);
    acts_free(l->acts);
    void *space[] = {l->x,      l->h,      l->qkv,   l->att,       l->ffn,      l->act,   l->rows,
                     l->logits, l->scores, l->place, l->row_token, l->row_item, l->row_at};
    for (size_t i = 0; i < sizeof space / sizeof *space; i++) free(space[i]);
    free(l);
}

kv_shape llama_kv_shape(const model *m)
{
    const model_config *c = model_get_config(m);
    const tensor *k = model_tensor(m, "blk.0.attn_k.weight");
    return (kv_shape){.n_layer = c->n_layer,
                      .n_head_kv = c->attn.n_head_kv,
                      .head_dim = c->attn.head_dim,
                      .type = k && dtype_block(k->type) > 1 ? DT_F16 : DT_F32};
}

/* ---- attention ------------------------------------------------------------------------------------ */

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

/* Rotate q and k of one token's key head `kvh` and store its key and value. */
static void store_token(const step *s, const vec_kernels *v, size_t layer_at, size_t t, size_t kvh)
{
    const llama *l = s->l;
    const model_config *c = l->c;
    const kv_seq *seq = s->items[l->place[t].item].seq;
    size_t pos = l->place[t].position, hd = c->attn.head_dim, group = c->attn.n_head / c->attn.n_head_kv;
    const float *cs = l->rope.cos + pos * l->rope.half, *sn = l->rope.sin + pos * l->rope.half;
    float *row = l->qkv + t * l->qkv_width;
    float *q = row + kvh * group * hd, *k = row + l->q_width + kvh * hd;
    v->rope(q, group, hd, c->pos.rope.dim, cs, sn, c->pos.rope.interleaved);
    v->rope(k, 1, hd, c->pos.rope.dim, cs, sn, c->pos.rope.interleaved);
    size_t page = pos / KV_PAGE_TOKENS, at = pos % KV_PAGE_TOKENS;
    void *keys = kv_k(s->cache, seq, layer_at, kvh, page), *values = kv_v(s->cache, seq, layer_at, kvh, page);
    if (s->cache->shape.type == DT_F16)
        store_f16(v, keys, values, at, k, k + l->kv_width, hd);
    else
        store_f32(keys, values, at, k, k + l->kv_width, hd);
}

/* Ask for a tile before it is needed: tiles of one head lie pages apart, so the hardware does not guess. */
static void fetch_tile(const char *tile, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(tile + i);
}

static void score_page(const step *s, const vec_kernels *v, float *scores, const float *q, size_t group,
                       const void *keys)
{
    size_t hd = s->l->c->attn.head_dim, lds = s->l->scores_width;
    if (s->cache->shape.type == DT_F16)
        v->attn_scores_f16(scores, lds, q, hd, group, keys, hd, s->l->scale);
    else
        v->attn_scores(scores, lds, q, hd, group, keys, hd, s->l->scale);
}

static void mix_page(const step *s, const vec_kernels *v, float *out, const float *p, size_t group,
                     const void *values, size_t n)
{
    size_t hd = s->l->c->attn.head_dim, lds = s->l->scores_width;
    if (s->cache->shape.type == DT_F16)
        v->attn_mix_f16(out, hd, p, lds, group, values, hd, n, hd);
    else
        v->attn_mix(out, hd, p, lds, group, values, hd, n, hd);
}

/* The query heads of one token that share a key head: scores in order of position, softmax over each
 * row, weighted sums in order of position. The last page's keys past the token are scored (whatever they
 * hold) and not looked at. scores: [group][scores_width] */
static void attend(const step *s, const vec_kernels *v, size_t layer_at, size_t t, size_t kvh, float *scores)
{
    const llama *l = s->l;
    const model_config *c = l->c;
    const kv_seq *seq = s->items[l->place[t].item].seq;
    size_t hd = c->attn.head_dim, group = c->attn.n_head / c->attn.n_head_kv, n = l->place[t].position + 1u,
           lds = l->scores_width;
    const float *q = l->qkv + t * l->qkv_width + kvh * group * hd;
    float *out = l->att + t * l->q_width + kvh * group * hd;
    size_t last = (n - 1) / KV_PAGE_TOKENS, bytes = s->cache->head_bytes;
    for (size_t page = 0; page <= last; page++) {
        fetch_tile(page < last ? kv_k(s->cache, seq, layer_at, kvh, page + 1)
                               : kv_v(s->cache, seq, layer_at, kvh, 0),
                   bytes);
        score_page(s, v, scores + page * KV_PAGE_TOKENS, q, group, kv_k(s->cache, seq, layer_at, kvh, page));
    }
    for (size_t g = 0; g < group; g++) v->softmax(scores + g * lds, n);
    memset(out, 0, group * hd * sizeof(float));
    for (size_t page = 0; page <= last; page++) {
        size_t at = page * KV_PAGE_TOKENS, here = page < last ? KV_PAGE_TOKENS : n - at;
        if (page < last) fetch_tile(kv_v(s->cache, seq, layer_at, kvh, page + 1), bytes);
        mix_page(s, v, out, scores + at, group, kv_v(s->cache, seq, layer_at, kvh, page), here);
    }
}

/* All members. Work is split by (token, key head): a member stores what it will read itself when every
 * item is one token, so that a decode step needs no barrier in between. Neighbouring tokens of a
 * prefill go to different members, because later ones see more keys. */
static void attention(const step *s, team_member *m, size_t layer_at)
{
    const llama *l = s->l;
    const vec_kernels *v = member_vec(m);
    size_t n_kv = l->c->attn.n_head_kv;
    size_t n_work = s->n_tokens * n_kv, n_members = (size_t)member_count(m), me = (size_t)member_index(m);
    float *scores = l->scores + me * l->scores_width * (l->c->attn.n_head / n_kv);
    if (!s->all_single) {
        for (size_t w = me; w < n_work; w += n_members) store_token(s, v, layer_at, w / n_kv, w % n_kv);
        team_barrier(m);
    }
    for (size_t w = me; w < n_work; w += n_members) {
        size_t t = w / n_kv, kvh = w % n_kv;
        if (s->all_single) store_token(s, v, layer_at, t, kvh);
        attend(s, v, layer_at, t, kvh, scores);
    }
}

/* ---- the step -------------------------------------------------------------------------------------- */

/* All members: y = norm(x), tokens split as acts_load splits them, so there is no barrier. */
static void norm_rows(team_member *m, const llama *l, float *y, const float *x, size_t n, const float *w)
{
    size_t begin, end, width = l->c->n_embd;
    member_share(m, n, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        member_vec(m)->rms_norm(y + t * width, x + t * width, w, width, l->c->norm.eps);
    }
}

static void embed_tokens(const step *s, team_member *m)
{
    const llama *l = s->l;
    size_t begin, end;
    member_share(m, s->n_tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        const llama_item *it = &s->items[l->place[t].item];
        int32_t id = it->ids[l->place[t].position - it->seq->n_tokens];
        wmat_row(l->embd.part[0], (size_t)id, l->x + t * l->c->n_embd);
    }
    team_barrier(m);
}

/* All members: act = silu(gate) * up, tokens split as acts_load splits them. A few wide tokens are cheaper
 * to split by columns, with a barrier. */
static void gate(const step *s, team_member *m)
{
    const llama *l = s->l;
    size_t begin = 0, n_ff = l->c->ffn.n_ff, end = n_ff, t = 0, t_end = s->n_tokens;
    bool by_columns = s->n_tokens < (size_t)member_count(m) && n_ff > GATE_ALONE_MAX;
    if (by_columns)
        member_share(m, n_ff, 16, &begin, &end);
    else
        member_share(m, s->n_tokens, 1, &t, &t_end);
    for (; t < t_end && begin < end; t++) {
        const float *row = l->ffn + t * 2 * n_ff;
        member_vec(m)->silu_mul(l->act + t * n_ff + begin, row + begin, row + n_ff + begin, end - begin);
    }
    if (by_columns) team_barrier(m);
}

static void run_layer(const step *s, team_member *m, size_t i)
{
    llama *l = s->l;
    const layer *ly = &l->layers[i];
    size_t n = s->n_tokens, width = l->c->n_embd;
    norm_rows(m, l, l->h, l->x, n, ly->attn_norm);
    proj_mul(m, &ly->qkv, l->acts, l->h, n, l->qkv, l->qkv_width, false);
    team_barrier(m);
    attention(s, m, i);
    team_barrier(m);
    proj_mul(m, &ly->out, l->acts, l->att, n, l->x, width, true);
    team_barrier(m);
    norm_rows(m, l, l->h, l->x, n, ly->ffn_norm);
    proj_mul(m, &ly->gate_up, l->acts, l->h, n, l->ffn, 2 * l->c->ffn.n_ff, false);
    team_barrier(m);
    gate(s, m);
    proj_mul(m, &ly->down, l->acts, l->act, n, l->x, width, true);
    team_barrier(m);
}

static void run_head(const step *s, team_member *m)
{
    llama *l = s->l;
    size_t begin, end, width = l->c->n_embd, n_vocab = l->c->n_vocab;
    if (s->n_rows == 0) return;
    member_share(m, s->n_rows, 1, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const float *x = l->x + l->row_token[r] * width;
        member_vec(m)->rms_norm(l->rows + r * width, x, l->out_norm, width, l->c->norm.eps);
    }
    proj_mul(m, l->c->tied ? &l->embd : &l->head, l->acts, l->rows, s->n_rows, l->logits, n_vocab, false);
    team_barrier(m);
    for (size_t r = (size_t)member_index(m); r < s->n_rows; r += (size_t)member_count(m)) {
        s->fn(s->user, m, l->row_item[r], l->row_at[r], l->logits + r * n_vocab);
    }
}

static void run_step(void *arg, team_member *m)
{
    const step *s = arg;
    embed_tokens(s, m);
    for (size_t i = 0; i < s->l->c->n_layer; i++) run_layer(s, m, i);
    run_head(s, m);
}

static void lay_out(step *s)
{
    llama *l = s->l;
    s->all_single = true;
    for (size_t i = 0; i < s->n_items; i++) {
        const llama_item *it = &s->items[i];
        assert(s->n_tokens + it->n <= l->max_tokens && s->n_rows + it->n_out <= l->max_rows &&
               it->n_out <= it->n);
        assert(it->seq->n_tokens + it->n <= l->rope.n_ctx);
        s->all_single = s->all_single && it->n == 1;
        for (size_t k = 0; k < it->n; k++) {
            size_t t = s->n_tokens++;
            l->place[t] = (token_place){.item = (uint32_t)i, .position = (uint32_t)(it->seq->n_tokens + k)};
            if (k + it->n_out < it->n) continue;
            l->row_token[s->n_rows] = (uint32_t)t;
            l->row_item[s->n_rows] = (uint32_t)i;
            l->row_at[s->n_rows++] = (uint32_t)(k + it->n_out - it->n);
        }
    }
}

void llama_step(llama *l, team *t, const kv *cache, const llama_item *items, size_t n_items, llama_row_fn fn,
                void *user)
{
    step s = {.l = l, .cache = cache, .items = items, .n_items = n_items, .fn = fn, .user = user};
    lay_out(&s);
    if (s.n_tokens > 0) team_run(t, run_step, &s);
}
