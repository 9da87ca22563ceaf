/* bert.c: BERT (Devlin et al. 2018, arXiv:1810.04805) over a ragged batch; see bert.h. A function that takes
 * a team_member runs on all members at once; a barrier stands wherever one reads what another wrote. */
#include "infer/bert.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "infer/proj.h"

#define TILE 16 /* keys scored at once */

typedef struct norm {
    float *w, *b;
} norm;

typedef struct layer {
    proj qkv, out, up, down;
    norm attn_norm, out_norm;
} layer;

struct bert {
    const model_config *c;
    size_t max_tokens, max_items;
    float scale;
    proj words;               /* [n_vocab][n_embd] */
    float *positions, *types; /* [n_ctx][n_embd], [n_types][n_embd] */
    norm embd_norm;
    layer *layers;
    proj pooler, classifier; /* empty where the task has none */
    acts *acts;
    /* one step's work space */
    float *x, *qkv, *att, *ffn;
    float *pooled;                /* [max_items][n_embd] */
    float *dense;                 /* [max_items][n_embd], the pooler's output */
    float *out;                   /* logits: [max_tokens or max_items][n_labels] */
    float *scores;                /* [members][n_ctx + TILE] */
    float *keys;                  /* [tiles][n_embd][TILE], of one layer */
    uint32_t *token_item;         /* [max_tokens] */
    uint32_t *first, *first_tile; /* [max_items]: each item's first row and tile */
};

typedef struct step {
    bert *b;
    bert_item *items;
    size_t n_items, n_tokens;
} step;

/* ---- loading ------------------------------------------------------------------------------------- */

static int load_norm(norm *n, const model *m, const char *stem, size_t width, shoal_err *err)
{
    char name[96];
    snprintf(name, sizeof name, "%s.weight", stem);
    int rc = proj_load_vector(&n->w, m, name, width, err);
    if (rc) return rc;
    snprintf(name, sizeof name, "%s.bias", stem);
    return proj_load_vector(&n->b, m, name, width, err);
}

/* A matrix [rows][cols] as floats; fewer rows than the file has are fine. */
static int load_table(float **ret, const model *m, const char *name, size_t rows, size_t cols, shoal_err *err)
{
    const tensor *t = model_tensor(m, name);
    size_t t_rows = t && t->n_dims > 1 ? t->dims[1] : 1;
    if (!t || !t->data || t->dims[0] != cols || t_rows < rows) {
        return err_set(err, SHOAL_EFORMAT, "%s should be %zu rows of %zu", name, rows, cols);
    }
    float *v = mem_calloc64(rows * cols, sizeof *v);
    if (!v) return err_nomem(err);
    dtype_to_f32(t->type, t->data, v, rows * cols);
    *ret = v;
    return 0;
}

static int load_layer(layer *ly, const model *m, size_t i, size_t width, isa set, shoal_err *err)
{
    char prefix[32], stem[64];
    snprintf(prefix, sizeof prefix, "blk.%zu.", i);
    int rc;
    if ((rc = proj_load(&ly->qkv, m, prefix, (const char *[]){"attn_q", "attn_k", "attn_v"}, 3, set, err)))
        return rc;
    if ((rc = proj_load(&ly->out, m, prefix, (const char *[]){"attn_output"}, 1, set, err))) return rc;
    if ((rc = proj_load(&ly->up, m, prefix, (const char *[]){"ffn_up"}, 1, set, err))) return rc;
    if ((rc = proj_load(&ly->down, m, prefix, (const char *[]){"ffn_down"}, 1, set, err))) return rc;
    snprintf(stem, sizeof stem, "%sattn_output_norm", prefix);
    if ((rc = load_norm(&ly->attn_norm, m, stem, width, err))) return rc;
    snprintf(stem, sizeof stem, "%slayer_output_norm", prefix);
    return load_norm(&ly->out_norm, m, stem, width, err);
}

/* model_open has seen to it that a classifier has its pooler. */
static int load_heads(bert *b, const model *m, isa set, shoal_err *err)
{
    int rc = 0;
    if (b->c->task == TASK_EMBED) return 0;
    if (b->c->task == TASK_CLASSIFY) rc = proj_load(&b->pooler, m, "", (const char *[]){"cls"}, 1, set, err);
    if (rc == 0) rc = proj_load(&b->classifier, m, "", (const char *[]){"cls.output"}, 1, set, err);
    return rc;
}

static int load_weights(bert *b, const model *m, isa set, shoal_err *err)
{
    const model_config *c = b->c;
    int rc;
    if ((rc = proj_load(&b->words, m, "", (const char *[]){"token_embd"}, 1, set, err))) return rc;
    if ((rc = load_table(&b->positions, m, "position_embd.weight", c->n_ctx, c->n_embd, err))) return rc;
    if (c->n_types > 0 && (rc = load_table(&b->types, m, "token_types.weight", c->n_types, c->n_embd, err)))
        return rc;
    if ((rc = load_norm(&b->embd_norm, m, "token_embd_norm", c->n_embd, err))) return rc;
    b->layers = calloc(c->n_layer, sizeof *b->layers);
    if (!b->layers) return err_nomem(err);
    for (size_t i = 0; i < c->n_layer; i++) {
        if ((rc = load_layer(&b->layers[i], m, i, c->n_embd, set, err))) return rc;
    }
    return load_heads(b, m, set, err);
}

static int make_space(bert *b, size_t n_members, shoal_err *err)
{
    const model_config *c = b->c;
    size_t n = b->max_tokens, widest = c->ffn.n_ff > c->n_embd ? c->ffn.n_ff : c->n_embd;
    size_t out_rows = c->task == TASK_TAG ? n : b->max_items;
    b->x = mem_calloc64(n * c->n_embd, sizeof(float));
    b->qkv = mem_calloc64(n * 3 * c->n_embd, sizeof(float));
    b->att = mem_calloc64(n * c->n_embd, sizeof(float));
    b->ffn = mem_calloc64(n * c->ffn.n_ff, sizeof(float));
    b->pooled = mem_calloc64(b->max_items * c->n_embd, sizeof(float));
    b->dense = mem_calloc64(b->max_items * c->n_embd, sizeof(float));
    b->out = mem_calloc64(out_rows * (c->head.n_labels + 1), sizeof(float));
    b->scores = mem_calloc64(n_members * (c->n_ctx + TILE), sizeof(float));
    b->keys = mem_calloc64((n / TILE + b->max_items) * TILE * c->n_embd, sizeof(float));
    b->first_tile = calloc(b->max_items, sizeof *b->first_tile);
    b->token_item = calloc(n, sizeof *b->token_item);
    b->first = calloc(b->max_items, sizeof *b->first);
    if (!b->x || !b->qkv || !b->att || !b->ffn || !b->pooled || !b->dense || !b->out || !b->scores ||
        !b->token_item || !b->first || !b->keys || !b->first_tile) {
        return err_nomem(err);
    }
    return acts_new(&b->acts, n > b->max_items ? n : b->max_items, widest, err);
}

int bert_new(bert **ret, const model *m, team *t, size_t max_tokens, size_t max_items, shoal_err *err)
{
    bert *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    b->c = model_get_config(m);
    b->max_tokens = max_tokens;
    b->max_items = max_items;
    b->scale = 1.0f / sqrtf((float)b->c->attn.head_dim);
    int rc = load_weights(b, m, team_isa(t), err);
    if (rc == 0) rc = make_space(b, (size_t)team_size(t), err);
    if (rc) {
        bert_free(b);
        return rc;
    }
    *ret = b;
    return 0;
}

static void free_norm(norm *n)
{
    free(n->w);
    free(n->b);
}

static void free_layer(layer *ly)
{
    proj_done(&ly->qkv);
    proj_done(&ly->out);
    proj_done(&ly->up);
    proj_done(&ly->down);
    free_norm(&ly->attn_norm);
    free_norm(&ly->out_norm);
}

void bert_free(bert *b)
{
    if (!b) return;
    for (size_t i = 0; b->layers && i < b->c->n_layer; i++) free_layer(&b->layers[i]);
    free(b->layers);
    proj_done(&b->words);
    proj_done(&b->pooler);
    proj_done(&b->classifier);
    free_norm(&b->embd_norm);
    acts_free(b->acts);
    void *space[] = {b->positions, b->types, b->x,      b->qkv,        b->att,   b->ffn,  b->pooled,
                     b->dense,     b->out,   b->scores, b->token_item, b->first, b->keys, b->first_tile};
    for (size_t i = 0; i < sizeof space / sizeof *space; i++) free(space[i]);
    free(b);
}

/* ---- the step ---------------------------------------------------------------------------------------- */

static void embed_tokens(const step *s, team_member *m)
{
    const bert *b = s->b;
    const vec_kernels *v = member_vec(m);
    size_t begin, end, width = b->c->n_embd;
    member_share(m, s->n_tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        const bert_item *it = &s->items[b->token_item[t]];
        size_t at = t - b->first[b->token_item[t]], type = it->type_ids ? it->type_ids[at] : 0;
        float *x = b->x + t * width;
        wmat_row(b->words.part[0], (size_t)it->ids[at], x);
        if (b->types) v->add(x, x, b->types + type * width, width);
        v->add(x, x, b->positions + at * width, width);
        v->layer_norm(x, x, b->embd_norm.w, b->embd_norm.b, width, b->c->norm.eps);
    }
    team_barrier(m);
}

/* All members: keys, turned for attn_scores: tile after tile of sixteen tokens of one sequence,
 * [head][head_dim][16] each. Ends in a barrier. */
static void turn_keys(const step *s, team_member *m)
{
    const bert *b = s->b;
    size_t begin, end, width = b->c->n_embd;
    member_share(m, s->n_tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        size_t item = b->token_item[t], at = t - b->first[item];
        const float *k = b->qkv + t * 3 * width + width;
        float *tile = b->keys + (b->first_tile[item] + at / TILE) * width * TILE + at % TILE;
        for (size_t i = 0; i < width; i++) tile[i * TILE] = k[i];
    }
    team_barrier(m);
}

/* One head of one token against all tokens of its sequence. */
static void attend_head(const step *s, const vec_kernels *v, size_t t, size_t head, float *scores)
{
    const bert *b = s->b;
    size_t width = b->c->n_embd, hd = b->c->attn.head_dim, row = 3 * width;
    size_t item = b->token_item[t], n = s->items[item].n;
    const float *q = b->qkv + t * row + head * hd;
    const float *val = b->qkv + b->first[item] * row + 2 * width + head * hd;
    const float *kt = b->keys + b->first_tile[item] * width * TILE + head * hd * TILE;
    float *out = b->att + t * width + head * hd;
    for (size_t at = 0; at < n; at += TILE)
        v->attn_scores(scores + at, 0, q, 0, 1, kt + at * width, hd, b->scale);
    v->softmax(scores, n);
    memset(out, 0, hd * sizeof(float));
    v->attn_mix(out, 0, scores, 0, 1, val, row, n, hd);
}

/* All members: (token, head) pairs split in runs of neighbours, which read the same keys. */
static void attention(const step *s, team_member *m)
{
    const bert *b = s->b;
    size_t begin, end, n_head = b->c->attn.n_head;
    float *scores = b->scores + (size_t)member_index(m) * (b->c->n_ctx + TILE);
    turn_keys(s, m);
    member_share(m, s->n_tokens * n_head, 1, &begin, &end);
    for (size_t w = begin; w < end; w++) attend_head(s, member_vec(m), w / n_head, w % n_head, scores);
    team_barrier(m);
}

/* All members: x = layer_norm(x), tokens split as acts_load splits them, so there is no barrier. */
static void norm_rows(const step *s, team_member *m, const norm *n)
{
    size_t begin, end, width = s->b->c->n_embd;
    member_share(m, s->n_tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *x = s->b->x + t * width;
        member_vec(m)->layer_norm(x, x, n->w, n->b, width, s->b->c->norm.eps);
    }
}

/* All members: tokens split as acts_load splits them; fewer tokens than members are split by columns,
 * with a barrier. */
static void activate(const step *s, team_member *m)
{
    const vec_kernels *v = member_vec(m);
    size_t begin = 0, n_ff = s->b->c->ffn.n_ff, end = n_ff, t = 0, t_end = s->n_tokens;
    bool by_columns = s->n_tokens < (size_t)member_count(m);
    if (by_columns)
        member_share(m, n_ff, 16, &begin, &end);
    else
        member_share(m, s->n_tokens, 1, &t, &t_end);
    for (; t < t_end && begin < end; t++) {
        float *x = s->b->ffn + t * n_ff + begin;
        switch (s->b->c->ffn.act) {
        case ACT_GELU_TANH: v->gelu_tanh(x, end - begin); break;
        case ACT_RELU: v->relu(x, end - begin); break;
        default: v->gelu_erf(x, end - begin); break;
        }
    }
    if (by_columns) team_barrier(m);
}

static void run_layer(const step *s, team_member *m, const layer *ly)
{
    bert *b = s->b;
    size_t n = s->n_tokens, width = b->c->n_embd;
    proj_mul(m, &ly->qkv, b->acts, b->x, n, b->qkv, 3 * width, false);
    team_barrier(m);
    attention(s, m);
    proj_mul(m, &ly->out, b->acts, b->att, n, b->x, width, true);
    team_barrier(m);
    norm_rows(s, m, &ly->attn_norm);
    proj_mul(m, &ly->up, b->acts, b->x, n, b->ffn, b->c->ffn.n_ff, false);
    team_barrier(m);
    activate(s, m);
    proj_mul(m, &ly->down, b->acts, b->ffn, n, b->x, width, true);
    team_barrier(m);
    norm_rows(s, m, &ly->out_norm);
}

/* out[n_embd] = mean over the sequence, in order of position. */
static void mean_rows(const step *s, const vec_kernels *v, size_t item, float *out)
{
    size_t width = s->b->c->n_embd, n = s->items[item].n;
    const float *x = s->b->x + s->b->first[item] * width;
    memcpy(out, x, width * sizeof(float));
    for (size_t t = 1; t < n; t++) v->add(out, out, x + t * width, width);
    for (size_t i = 0; i < width; i++) out[i] /= (float)n;
}

static void normalize(const vec_kernels *v, float *x, size_t n)
{
    float length = sqrtf(v->dot(x, x, n));
    if (length < 1e-12f) length = 1e-12f;
    for (size_t i = 0; i < n; i++) x[i] /= length;
}

/* All members, items split: pooled[item] = the row that stands for the sequence; ends in a barrier. */
static void pool(const step *s, team_member *m)
{
    const bert *b = s->b;
    size_t begin, end, width = b->c->n_embd;
    bool embed = b->c->task == TASK_EMBED;
    member_share(m, s->n_items, 1, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        float *out = b->pooled + i * width;
        if (embed && b->c->head.pool == POOL_MEAN) {
            mean_rows(s, member_vec(m), i, out);
        } else {
            memcpy(out, b->x + b->first[i] * width, width * sizeof(float));
        }
        if (embed && b->c->head.normalize) normalize(member_vec(m), out, width);
    }
    team_barrier(m);
}

static void classify(const step *s, team_member *m)
{
    bert *b = s->b;
    size_t begin, end, width = b->c->n_embd, n = s->n_items;
    const float *x = b->pooled;
    if (b->pooler.n_parts > 0) {
        proj_mul(m, &b->pooler, b->acts, b->pooled, n, b->dense, width, false);
        team_barrier(m);
        member_share(m, n, 1, &begin, &end);
        for (size_t i = begin; i < end; i++) member_vec(m)->tanh(b->dense + i * width, width);
        team_barrier(m);
        x = b->dense;
    }
    proj_mul(m, &b->classifier, b->acts, x, n, b->out, b->c->head.n_labels, false);
}

static void run_step(void *arg, team_member *m)
{
    const step *s = arg;
    bert *b = s->b;
    embed_tokens(s, m);
    for (size_t i = 0; i < b->c->n_layer; i++) run_layer(s, m, &b->layers[i]);
    if (b->c->task == TASK_TAG) {
        proj_mul(m, &b->classifier, b->acts, b->x, s->n_tokens, b->out, b->c->head.n_labels, false);
        return;
    }
    team_barrier(m);
    pool(s, m);
    if (b->c->task == TASK_CLASSIFY) classify(s, m);
}

static void lay_out(step *s)
{
    bert *b = s->b;
    size_t n_tiles = 0;
    for (size_t i = 0; i < s->n_items; i++) {
        assert(s->items[i].n > 0 && s->n_tokens + s->items[i].n <= b->max_tokens);
        b->first[i] = (uint32_t)s->n_tokens;
        b->first_tile[i] = (uint32_t)n_tiles;
        n_tiles += (s->items[i].n + TILE - 1) / TILE;
        for (size_t k = 0; k < s->items[i].n; k++) b->token_item[s->n_tokens++] = (uint32_t)i;
    }
}

static void point_out(const step *s)
{
    const bert *b = s->b;
    for (size_t i = 0; i < s->n_items; i++) {
        bert_item *it = &s->items[i];
        bool tag = b->c->task == TASK_TAG, embed = b->c->task == TASK_EMBED;
        it->rows = tag ? it->n : 1;
        it->cols = embed ? b->c->n_embd : b->c->head.n_labels;
        it->values = embed ? b->pooled + i * it->cols : b->out + (tag ? b->first[i] : i) * it->cols;
    }
}

void bert_step(bert *b, team *t, bert_item *items, size_t n_items)
{
    assert(n_items <= b->max_items);
    step s = {.b = b, .items = items, .n_items = n_items};
    if (n_items == 0) return;
    lay_out(&s);
    team_run(t, run_step, &s);
    point_out(&s);
}
