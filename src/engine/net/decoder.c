/* decoder.c: the configured decoder: embeddings, layers and a head over a mixed batch (Touvron et al. 2023,
 * arXiv:2302.13971, and what others changed: config.h). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/pages.h"
#include "model/packed/regroup.h"
#include "net/attention/attend_block.h"
#include "net/embed.h"
#include "net/mixer.h"
#include "net/passes.h"

typedef struct decoder {
    const model_config *c;
    const char *prefix; /* of its tensors' names */
    net_limits limits;
    size_t first, end; /* its layers; from layer 0 on it has the embeddings and the head, too */
    embed embed;
    layer *layers; /* [end - first] */
    rope_table rope, local;
    norm out_norm; /* w NULL: none */
    proj out_proj; /* narrows in front of the head; n_parts 0: none */
    proj head;     /* n_parts 0: the embeddings */
    float *bias;   /* of tied heads, or NULL; others have it in `head` */
    space space;
    float *narrow; /* [max_tokens or max_rows][n_embd_in], where embeddings are narrower */
    float *last;   /* [max_rows][n_embd], in front of the head */
    float *logits; /* [max_rows][n_vocab], resident as far as rows were asked for */
    size_t logits_bytes;
    float *attend_space; /* [members][attend_floats] */
    size_t attend_floats;
    float *parts; /* [parts_floats], where there are several members */
    size_t parts_floats;
    float *cross_scores, *cross_kv; /* with a source; [max_positions][2 kv] */
    size_t cross_width;
    distance distance;
    token_place *place;
    uint32_t *item, *order; /* [max_tokens]: whose the row is, and where it stands among the caller's */
    uint32_t *row;          /* [max_tokens]: the row that stands there */
    uint32_t *row_token, *row_item, *row_at;
    const adapter **token_adapter, **row_adapter; /* [max_tokens or max_positions], [max_rows] */
} decoder;

typedef struct step {
    decoder *d;
    attend_step attend;
    cross_step cross;
    size_t n_tokens, n_rows, n_laid;
    bool adapted; /* an item has an adapter */
    net_row_fn fn;
    void *user;
    const float *rows_in; /* walk, finish: where the stream stands already; NULL: tokens are embedded */
    float *rows_out;      /* walk: where it is left; NULL: the head follows */
} step;

static void decoder_free(net *n);

/* ---- loading ---------------------------------------------------------------------------------------- */

/* NULL when the file has no such vector. */
static int load_optional(float **ret, const model *m, const char *name, size_t n, shoal_err *err)
{
    const tensor *t = model_tensor(m, name);
    *ret = NULL;
    return t && t->data ? proj_load_vector(ret, m, name, n, err) : 0;
}

/* Layer i's rotation: its own where local layers have one, none where it is said. */
static const rope_table *rope_of(const decoder *d, unsigned flags)
{
    if (flags & LAYER_NO_ROPE) return NULL;
    if ((flags & LAYER_LOCAL) && d->c->pos.local.dim > 0) return &d->local;
    return d->c->pos.rope.dim > 0 ? &d->rope : NULL;
}

/* The layers of a part; an end of 0 means all. */
static void part_of(const model_config *c, net_layers part, size_t *first, size_t *end)
{
    *first = part.end ? part.first : 0;
    *end = part.end ? part.end : c->n_layer;
}

static size_t state_bytes(const model_config *c, const mixer *x)
{
    return x->state_bytes ? x->state_bytes(c) : 0;
}

static int load_layers(decoder *d, const model *m, isa set, shoal_err *err)
{
    const model_config *c = d->c;
    size_t slot = 0, state_at = 0;
    d->layers = calloc(d->end - d->first, sizeof *d->layers);
    if (!d->layers) return err_nomem(err);
    for (size_t i = d->first; i < d->end; i++) {
        layer *ly = &d->layers[i - d->first];
        unsigned flags = config_layer(c, i);
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%sblk.%zu.", d->prefix, i);
        int rc = layer_load(ly, m, c, prefix, flags, set, err);
        if (rc == 0 && c->source.n_layer > 0) rc = cross_load(&ly->cross, m, c, prefix, i, set, err);
        if (rc) return rc;
        ly->attend.distance = d->distance.bias ? &d->distance : NULL;
        ly->attend.rope = rope_of(d, flags);
        ly->mixer->place(ly, slot, state_at);
        slot += ly->mixer->n_kv;
        state_at += state_bytes(c, ly->mixer);
    }
    return 0;
}

static int load_head(decoder *d, const model *m, isa set, shoal_err *err)
{
    const model_config *c = d->c;
    size_t n_in = d->embed.n_in;
    int rc =
        c->norm.final ? norm_load(&d->out_norm, m, d->prefix, "output_norm", c->n_embd, &c->norm, err) : 0;
    if (rc == 0 && n_in != c->n_embd)
        rc = proj_load(&d->out_proj, m, "", (const char *[]){"output_proj"}, 1, set, err);
    if (rc == 0 && d->out_proj.n_parts > 0 && (d->out_proj.cols != c->n_embd || d->out_proj.rows != n_in))
        rc = err_set(err, SHOAL_EFORMAT, "output_proj.weight should be %zu rows of %zu", n_in, c->n_embd);
    if (rc == 0 && !c->tied) rc = proj_load(&d->head, m, "", (const char *[]){"output"}, 1, set, err);
    if (rc == 0 && !c->tied && (d->head.rows != c->n_vocab || d->head.cols != n_in))
        rc = err_set(err, SHOAL_EFORMAT, "output.weight should be %zu rows of %zu", c->n_vocab, n_in);
    if (rc || !c->tied) return rc;
    return load_optional(&d->bias, m, "output.bias", c->n_vocab, err);
}

static int load_buckets(decoder *d, const model *m, shoal_err *err)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%sblk.0.", d->prefix);
    return distance_load_bias(&d->distance, m, &d->c->pos.buckets, prefix, d->c->attn.n_head, d->limits.n_ctx,
                              false, err);
}

static int load_weights(decoder *d, const model *m, isa set, shoal_err *err)
{
    const model_config *c = d->c;
    size_t n_ctx = d->limits.n_ctx;
    int rc = d->first == 0 ? embed_load(&d->embed, m, c, d->prefix, n_ctx, set, err) : 0;
    if (rc == 0 && c->pos.buckets.n > 0) rc = load_buckets(d, m, err);
    if (rc == 0 && c->pos.rope.dim > 0) rc = rope_load(&d->rope, m, &c->pos.rope, n_ctx, err);
    if (rc == 0 && c->pos.local.dim > 0) rc = rope_load(&d->local, m, &c->pos.local, n_ctx, err);
    if (rc == 0) rc = load_layers(d, m, set, err);
    return rc || d->first > 0 ? rc : load_head(d, m, set, err);
}

/* Between the last layer and the logits. */
static int make_head_space(decoder *d, shoal_err *err)
{
    const model_config *c = d->c;
    size_t n = d->limits.max_tokens, rows = d->limits.max_rows, n_in = d->embed.n_in;
    if (n_in != c->n_embd) d->narrow = mem_calloc64((n > rows ? n : rows) * n_in, sizeof(float));
    d->last = mem_calloc64(rows * c->n_embd, sizeof(float));
    if (size_mul(rows, c->n_vocab * sizeof *d->logits, &d->logits_bytes)) return err_nomem(err);
    d->logits = pages_map(d->logits_bytes, PAGES_SMALL);
    d->row_token = calloc(rows, sizeof *d->row_token);
    d->row_item = calloc(rows, sizeof *d->row_item);
    d->row_at = calloc(rows, sizeof *d->row_at);
    d->row_adapter = calloc(rows, sizeof *d->row_adapter);
    if ((n_in != c->n_embd && !d->narrow) || !d->last || !d->logits || !d->row_token || !d->row_item ||
        !d->row_at || !d->row_adapter)
        return err_nomem(err);
    return 0;
}

static int make_space(decoder *d, size_t n_members, shoal_err *err)
{
    const model_config *c = d->c;
    size_t n = d->limits.max_tokens, rows = d->limits.max_rows, n_in = d->embed.n_in;
    size_t group = c->attn.n_head / c->attn.n_head_kv, kv = c->attn.n_head_kv * c->attn.head_dim;
    size_t acts_rows =
        c->source.n_layer > 0 && d->limits.max_positions > rows ? d->limits.max_positions : rows;
    int rc = space_init(&d->space, c, (int)n_members, n, acts_rows, n_in, err);
    if (rc) return rc;
    d->attend_floats = attend_block_space(&c->attn);
    d->attend_space = mem_calloc64(n_members * d->attend_floats, sizeof(float));
    d->parts_floats = n_members > 1 ? attend_parts_floats(&c->attn, d->limits.n_ctx) : 0;
    if (n_members > 1) d->parts = mem_calloc64(d->parts_floats, sizeof(float));
    if (n_members > 1 && !d->parts) return err_nomem(err);
    if (c->source.n_layer > 0) {
        d->cross_width = (d->limits.max_positions + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS * KV_PAGE_TOKENS;
        d->cross_scores = mem_calloc64(n_members * group * d->cross_width, sizeof(float));
        d->cross_kv = mem_calloc64(d->limits.max_positions, 2 * kv * sizeof(float));
        if (!d->cross_scores || !d->cross_kv) return err_nomem(err);
    }
    d->item = calloc(n, sizeof *d->item);
    d->order = calloc(n > rows ? n : rows, sizeof *d->order);
    d->row = calloc(n, sizeof *d->row);
    d->place = calloc(n, sizeof *d->place);
    d->token_adapter = calloc(n > acts_rows ? n : acts_rows, sizeof *d->token_adapter);
    if (!d->attend_space || !d->place || !d->item || !d->order || !d->row || !d->token_adapter)
        return err_nomem(err);
    return d->first == 0 ? make_head_space(d, err) : 0;
}

int decoder_load_as(net **ret, const model *m, const model_config *c, const char *prefix, team *t,
                    const net_limits *limits, shoal_err *err)
{
    decoder *d = calloc(1, sizeof *d);
    if (!d) return err_nomem(err);
    d->c = c;
    d->prefix = prefix;
    d->limits = *limits;
    part_of(c, limits->part, &d->first, &d->end);
    assert(d->first < d->end && d->end <= c->n_layer);
    int rc = load_weights(d, m, team_isa(t), err);
    if (rc == 0) rc = make_space(d, (size_t)team_size(t), err);
    if (rc) {
        decoder_free((net *)d);
        return rc;
    }
    *ret = (net *)d;
    return 0;
}

static int decoder_load(net **ret, const model *m, team *t, const net_limits *limits, shoal_err *err)
{
    return decoder_load_as(ret, m, model_get_config(m), "", t, limits, err);
}

static void decoder_free(net *n)
{
    decoder *d = (decoder *)n;
    if (!d) return;
    for (size_t i = 0; d->layers && i < d->end - d->first; i++) layer_done(&d->layers[i]);
    embed_done(&d->embed);
    rope_done(&d->rope);
    rope_done(&d->local);
    distance_done(&d->distance);
    norm_done(&d->out_norm);
    proj_done(&d->out_proj);
    proj_done(&d->head);
    space_done(&d->space);
    pages_unmap(d->logits, d->logits_bytes);
    void *all[] = {d->layers, d->bias,  d->narrow,       d->last,          d->attend_space, d->parts,
                   d->place,  d->item,  d->cross_scores, d->cross_kv,      d->row_token,    d->row_item,
                   d->row_at, d->order, d->row,          d->token_adapter, d->row_adapter};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(d);
}

/* The type is that of the whole model's cache, whatever the part. */
static kv_shape kv_of(const model *m, const model_config *c, const char *prefix, net_layers part)
{
    size_t first, end;
    part_of(c, part, &first, &end);
    kv_shape shape = {.n_head_kv = c->attn.n_head_kv, .head_dim = c->attn.head_dim, .type = DT_F32};
    for (size_t i = 0; i < c->n_layer; i++) {
        char name[64];
        const mixer *x = mixer_of(config_layer(c, i));
        shape.stateful |= x->state_bytes != NULL;
        if (i >= first && i < end) {
            shape.n_layer += x->n_kv;
            shape.state_bytes += state_bytes(c, x);
        }
        snprintf(name, sizeof name, "%sblk.%zu.%s.weight", prefix, i, x->measure);
        const tensor *t = model_tensor(m, name);
        if (i == 0 && t && dtype_block(regroup_type(m, t)) > 1) shape.type = DT_F16;
    }
    return shape;
}

kv_shape decoder_kv_as(const model *m, const model_config *c, const char *prefix)
{
    return kv_of(m, c, prefix, (net_layers){0});
}

static kv_shape decoder_kv(const model *m)
{
    return decoder_kv_as(m, model_get_config(m), "");
}

static kv_shape decoder_kv_part(const model *m, net_layers part)
{
    return kv_of(m, model_get_config(m), "", part);
}

/* ---- the step --------------------------------------------------------------------------------------- */

static embed_token token_at(const void *arg, size_t t)
{
    const step *s = arg;
    token_place at = s->attend.place[t];
    const net_item *it = &s->attend.items[at.item];
    return (embed_token){.id = it->ids[at.position - it->seq->n_tokens], .position = at.position};
}

static void attend_cached(pass *p, const layer *ly)
{
    blk_attend(&p->l, &ly->attend, p->causal, &p->qkv, &p->att);
}

/* Bias, factor and cap of one row of logits, by the member that hands it on. */
static void finish_logits(const decoder *d, const vec_kernels *v, float *x)
{
    size_t n = d->c->n_vocab;
    float scale = d->c->scale.logits, cap = d->c->scale.softcap;
    if (d->bias) v->add(x, x, d->bias, n);
    if (scale != 0 && scale != 1)
        for (size_t i = 0; i < n; i++) x[i] *= scale;
    if (cap > 0) cap_row(v, x, n, cap);
}

/* The wanted rows through the last norm. */
static void pick_rows(pass *p, const step *s, rows *last)
{
    const decoder *d = s->d;
    size_t r, end;
    rows_profile(&p->l, PROFILE_NORM);
    rows_use(&p->l, {&p->x, READ_ALL}, {last, WRITE_MINE});
    rows_share(&p->l, last, &r, &end);
    for (; r < end; r++) {
        const float *x = rows_at(&p->x, d->row_token[r]);
        if (d->out_norm.w)
            norm_row(&d->out_norm, p->l.v, rows_at(last, r), x);
        else
            memcpy(rows_at(last, r), x, last->width * sizeof *x);
    }
}

static void run_head(pass *p, const step *s)
{
    decoder *d = s->d;
    if (s->n_rows == 0) return;
    rows last = pass_rows(p, d->last, s->n_rows);
    rows narrow = rows_of(d->narrow, s->n_rows, d->embed.n_in);
    rows logits = rows_of(d->logits, s->n_rows, d->c->n_vocab);
    bool narrows = d->out_proj.n_parts > 0;
    if (s->adapted) p->l.adapters = d->row_adapter;
    pick_rows(p, s, &last);
    if (narrows) blk_linear(&p->l, &d->out_proj, &last, &narrow, false);
    blk_linear(&p->l, d->c->tied ? &d->embed.words : &d->head, narrows ? &narrow : &last, &logits, false);
    rows_profile(&p->l, PROFILE_SAMPLE);
    rows_use(&p->l, {&logits, READ_ALL | WRITE_PARTS});
    size_t r = (size_t)member_index(p->l.m), n_members = (size_t)member_count(p->l.m);
    for (; r < s->n_rows; r += n_members) {
        finish_logits(d, p->l.v, rows_at(&logits, r));
        s->fn(s->user, p->l.m, d->row_item[r], d->row_at[r], rows_at(&logits, r));
    }
}

/* The stream as another stage left it. */
static void take_rows(pass *p, const step *s)
{
    size_t t, end;
    rows_use(&p->l, {&p->x, WRITE_MINE});
    rows_share(&p->l, &p->x, &t, &end);
    for (size_t width = p->x.width; t < end; t++)
        memcpy(rows_at(&p->x, t), s->rows_in + s->d->order[t] * width, width * sizeof(float));
}

static void leave_rows(pass *p, const step *s)
{
    size_t t, end;
    rows_use(&p->l, {&p->x, READ_MINE});
    rows_share(&p->l, &p->x, &t, &end);
    for (size_t width = p->x.width; t < end; t++)
        memcpy(s->rows_out + s->d->order[t] * width, rows_at(&p->x, t), width * sizeof(float));
}

static void decoder_run_step(void *arg, team_member *m)
{
    const step *s = arg;
    decoder *d = s->d;
    pass p = {.c = d->c, .attend = attend_cached, .causal = &s->attend, .cross = &s->cross};
    pass_open(&p, &d->space, m, s->n_tokens);
    if (s->adapted) p.l.adapters = d->token_adapter;
    rows narrow = rows_of(d->narrow, s->n_tokens, d->embed.n_in);
    if (s->rows_in)
        take_rows(&p, s);
    else
        blk_embed(&p.l, &d->embed, token_at, s, &narrow, &p.x);
    for (size_t i = 0; i < d->end - d->first; i++) {
        if (p.l.profile) profile_set_layer(p.l.profile, (int)(d->first + i));
        layer_run(&p, &d->layers[i]);
    }
    if (p.l.profile) profile_set_layer(p.l.profile, PROFILE_NO_LAYER);
    if (s->rows_out)
        leave_rows(&p, s);
    else
        run_head(&p, s);
}

/* The head over rows that came back: they are the wanted ones and nothing else. */
static void run_finish(void *arg, team_member *m)
{
    const step *s = arg;
    pass p = {.c = s->d->c};
    pass_open(&p, &s->d->space, m, s->n_rows);
    take_rows(&p, s);
    run_head(&p, s);
}

static void lay_out_row(step *s, size_t token, size_t item, size_t at)
{
    decoder *d = s->d;
    d->row_token[s->n_rows] = (uint32_t)token;
    d->row_item[s->n_rows] = (uint32_t)item;
    d->row_adapter[s->n_rows] = s->attend.items[item].adapter;
    d->row_at[s->n_rows++] = (uint32_t)at;
}

/* Tokens [k, k + n) of item i, which are in one page, are the next rows. */
static void lay_out_block(step *s, size_t i, size_t k, size_t n, size_t first)
{
    decoder *d = s->d;
    const net_item *it = &s->attend.items[i];
    for (size_t end = k + n; k < end; k++) {
        size_t t = s->n_laid++;
        d->item[t] = (uint32_t)i;
        d->order[t] = (uint32_t)(first + k);
        d->row[first + k] = (uint32_t)t;
        d->token_adapter[t] = it->adapter;
        d->place[t] = (token_place){.item = (uint32_t)i, .position = (uint32_t)(it->seq->n_tokens + k)};
        if (!s->rows_out && k + it->n_out >= it->n) lay_out_row(s, t, i, k + it->n_out - it->n);
    }
}

/* Blocks are dealt to n hands as cards are whose values rise: 0, 1, .. n - 1, n - 1, .. 1, 0, 0, 1 ... */
static size_t hand_of(size_t block, size_t n)
{
    size_t at = block % (2 * n);
    return at < n ? at : 2 * n - 1 - at;
}

/* The rows of one hand: each sees about as many keys as those of the others. */
static void lay_out_hand(step *s, size_t n_items, size_t hand, size_t n_hands)
{
    size_t block = 0, first = 0, n;
    for (size_t i = 0; i < n_items; first += s->attend.items[i++].n) {
        const net_item *it = &s->attend.items[i];
        for (size_t k = 0; k < it->n; k += n) {
            size_t left = KV_PAGE_TOKENS - (it->seq->n_tokens + k) % KV_PAGE_TOKENS;
            n = left < it->n - k ? left : it->n - k;
            if (hand_of(block++, n_hands) == hand) lay_out_block(s, i, k, n, first);
        }
    }
}

static void lay_out(step *s, const team *t, size_t n_items)
{
    decoder *d = s->d;
    s->attend.all_single = true;
    for (size_t i = 0; i < n_items; i++) {
        const net_item *it = &s->attend.items[i];
        assert(it->n_out <= it->n && it->seq->n_tokens + it->n <= d->limits.n_ctx);
        s->attend.all_single = s->attend.all_single && it->n == 1;
        s->adapted = s->adapted || it->adapter;
        s->n_tokens += it->n;
    }
    assert(s->n_tokens <= d->limits.max_tokens);
    size_t n_members = (size_t)team_size(t);
    size_t n_hands = s->n_tokens >= d->space.apart_rows * n_members ? n_members : 1;
    for (size_t h = 0; h < n_hands; h++) lay_out_hand(s, n_items, h, n_hands);
    assert(s->n_laid == s->n_tokens && s->n_rows <= d->limits.max_rows);
}

/* The rows that an encoder made of a source, for all layers at once. */
typedef struct keep_job {
    decoder *d;
    const float *values;
    size_t n;
    float *kv;
    void *out;
    bool adapted;
} keep_job;

static void keep_rows(void *arg, team_member *m)
{
    const keep_job *j = arg;
    const model_config *c = j->d->c;
    lane l;
    rows_open(&l, m, j->d->space.acts);
    if (j->adapted) l.adapters = j->d->token_adapter;
    rows x = rows_of((float *)j->values, j->n, c->n_embd);
    rows kv = rows_of(j->kv, j->n, 2 * c->attn.n_head_kv * c->attn.head_dim);
    for (size_t i = 0; i < c->n_layer; i++) {
        if (l.profile) profile_set_layer(l.profile, (int)i);
        blk_cross_keep(&l, &j->d->layers[i].cross, &x, &kv, j->out);
    }
}

size_t decoder_cross_bytes(const net *n, size_t rows)
{
    const decoder *d = (const decoder *)n;
    return d->c->n_layer * cross_layer_bytes(d->c, rows);
}

void decoder_cross(net *n, team *t, const adapter *a, const float *values, size_t rows, void *out)
{
    decoder *d = (decoder *)n;
    keep_job j = {.d = d, .values = values, .n = rows, .kv = d->cross_kv, .out = out, .adapted = a != NULL};
    assert(rows <= d->limits.max_positions);
    for (size_t i = 0; a && i < rows; i++) d->token_adapter[i] = a;
    team_run(t, keep_rows, &j);
}

static step step_of(decoder *d, const kv *cache, const net_item *items)
{
    return (step){.d = d,
                  .attend = {.cache = cache,
                             .items = items,
                             .place = d->place,
                             .order = d->order,
                             .row = d->row,
                             .space = d->attend_space,
                             .space_floats = d->attend_floats,
                             .parts = d->parts,
                             .parts_floats = d->parts_floats},
                  .cross = {.items = items,
                            .item = d->item,
                            .scores = d->cross_scores,
                            .scores_width = d->cross_width,
                            .c = d->c}};
}

static void decoder_decode(net *n, team *t, const kv *cache, const net_item *items, size_t n_items,
                           net_row_fn fn, void *user)
{
    step s = step_of((decoder *)n, cache, items);
    assert(s.d->first == 0 && s.d->end == s.d->c->n_layer);
    s.fn = fn;
    s.user = user;
    lay_out(&s, t, n_items);
    if (s.n_tokens > 0) team_run(t, decoder_run_step, &s);
}

static void decoder_walk(net *n, team *t, const kv *cache, const net_item *items, size_t n_items, float *rows)
{
    step s = step_of((decoder *)n, cache, items);
    s.rows_in = s.d->first > 0 ? rows : NULL;
    s.rows_out = rows;
    lay_out(&s, t, n_items);
    if (s.n_tokens > 0) team_run(t, decoder_run_step, &s);
}

static void decoder_finish(net *n, team *t, const net_item *items, size_t n_items, const float *rows,
                           net_row_fn fn, void *user)
{
    step s = step_of((decoder *)n, NULL, items);
    assert(s.d->first == 0);
    s.rows_in = rows;
    s.fn = fn;
    s.user = user;
    for (size_t i = 0; i < n_items; i++) {
        assert(s.n_rows + items[i].n_out <= s.d->limits.max_rows);
        s.adapted = s.adapted || items[i].adapter;
        for (size_t at = 0; at < items[i].n_out; at++) {
            s.d->order[s.n_rows] = (uint32_t)s.n_rows;
            lay_out_row(&s, s.n_rows, i, at);
        }
    }
    if (s.n_rows > 0) team_run(t, run_finish, &s);
}

const net_ops decoder_ops = {.name = "decoder",
                             .roles = NET_DECODES,
                             .load = decoder_load,
                             .free = decoder_free,
                             .kv = decoder_kv,
                             .decode = decoder_decode,
                             .kv_part = decoder_kv_part,
                             .walk = decoder_walk,
                             .finish = decoder_finish};
