/* layer.c: norms around branches around a stream; see layer.h. */
#include "net/mixer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

/* ---- loading ---------------------------------------------------------------------------------------- */

/* The norms' tensors, by place (NAMES of config.h's norm_place). */
static int load_norms(layer *ly, const model *m, const model_config *c, const char *prefix, shoal_err *err)
{
    norm_place at = c->norm.place;
    bool pre = at == PLACE_PRE || at == PLACE_SANDWICH, post = at == PLACE_SANDWICH || at == PLACE_OUTPUT;
    size_t n = c->n_embd;
    int rc = 0;
    if (pre && !(ly->flags & LAYER_NO_PRE))
        rc = norm_load(&ly->attn_pre, m, prefix, "attn_norm", n, &c->norm, err);
    if (rc == 0 && pre && c->branch != BRANCH_ONE_NORM)
        rc = norm_load(&ly->ffn_pre, m, prefix, "ffn_norm", n, &c->norm, err);
    if (rc || !(post || at == PLACE_POST)) return rc;
    rc = norm_load(&ly->attn_post, m, prefix, post ? "post_attention_norm" : "attn_output_norm", n, &c->norm,
                   err);
    return rc ? rc
              : norm_load(&ly->ffn_post, m, prefix, post ? "post_ffw_norm" : "layer_output_norm", n, &c->norm,
                          err);
}

static int load_mixer(layer *ly, const model *m, const model_config *c, const char *prefix, isa set,
                      shoal_err *err)
{
    const mixer *x = ly->mixer;
    int rc = proj_load(&ly->in, m, prefix, x->in, x->n_in, set, err);
    if (rc == 0) rc = proj_load(&ly->out, m, prefix, &x->out, 1, set, err);
    return rc ? rc : x->load(ly, m, c, prefix, err);
}

static int load_ffn(layer *ly, const model *m, const ffn_conf *c, const char *prefix, isa set, shoal_err *err)
{
    if (c->n_expert > 0 && !(ly->flags & LAYER_DENSE)) return moe_load(&ly->moe, m, prefix, set, err);
    const char *const both[] = {"ffn_gate", "ffn_up"};
    int rc = proj_load(&ly->up, m, prefix, c->gated ? both : both + 1, c->gated ? 2 : 1, set, err);
    return rc ? rc : proj_load(&ly->down, m, prefix, (const char *[]){"ffn_down"}, 1, set, err);
}

int layer_load(layer *ly, const model *m, const model_config *c, const char *prefix, unsigned flags, isa set,
               shoal_err *err)
{
    *ly = (layer){.flags = flags, .mixer = mixer_of(flags)};
    int rc = load_norms(ly, m, c, prefix, err);
    if (rc == 0) rc = load_mixer(ly, m, c, prefix, set, err);
    return rc ? rc : load_ffn(ly, m, &c->ffn, prefix, set, err);
}

void layer_done(layer *ly)
{
    norm_done(&ly->attn_pre);
    norm_done(&ly->attn_post);
    norm_done(&ly->ffn_pre);
    norm_done(&ly->ffn_post);
    proj_done(&ly->in);
    proj_done(&ly->out);
    if (ly->mixer) ly->mixer->done(ly);
    proj_done(&ly->up);
    proj_done(&ly->down);
    moe_done(&ly->moe);
    cross_done(&ly->cross);
}

/* ---- work space --------------------------------------------------------------------------------------- */

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Zeros, so that what nobody wrote is no surprise; *ok becomes false without memory. */
static float *floats(size_t rows, size_t cols, bool *ok)
{
    size_t n;
    float *p = size_mul(rows, cols, &n) ? NULL : mem_calloc64(n ? n : 1, sizeof *p);
    *ok = *ok && p;
    return p;
}

static bool any_layer(const model_config *c, unsigned flag)
{
    for (size_t i = 0; i < c->n_layer; i++)
        if (config_layer(c, i) & flag) return true;
    return false;
}

/* The width between a layer's two products; 0 where experts do all of it. */
static size_t dense_width(const model_config *c)
{
    return c->ffn.n_expert > 0 && !any_layer(c, LAYER_DENSE) ? 0 : c->ffn.n_ff;
}

static int own_init(own_space *o, const model_config *c, size_t cols, shoal_err *err)
{
    bool ok = true;
    o->h = floats(FEW_ROWS, c->n_embd, &ok);
    if (c->branch == BRANCH_TWO_NORMS) o->h2 = floats(FEW_ROWS, c->n_embd, &ok);
    o->act = floats(FEW_ROWS, BLK_ALONE_COLS, &ok);
    int rc = ok ? acts_new(&o->acts, FEW_ROWS, cols, err) : err_nomem(err);
    return rc ? rc : acts_new_window(&o->window, err);
}

/* A team of one has nobody to wait for. */
static int make_own(space *s, const model_config *c, int n_members, shoal_err *err)
{
    int rc = 0;
    if (n_members == 1) return 0;
    s->own = calloc((size_t)n_members, sizeof *s->own);
    if (!s->own) return err_nomem(err);
    s->n_members = (size_t)n_members;
    for (size_t i = 0; rc == 0 && i < s->n_members; i++) rc = own_init(&s->own[i], c, s->own_cols, err);
    return rc;
}

/* From how many rows for each member on it pays that all members read all weights, measured with two: 24 M
 * gain from 16 on, 135 M from 24 on, 1.1 B lose 5 % even with 64. */
static size_t apart_rows(const model_config *c)
{
    size_t q = c->attn.n_head * c->attn.head_dim, kv = c->attn.n_head_kv * c->attn.head_dim;
    size_t wide = 2 * (q + kv) + (c->ffn.gated ? 3 : 2) * dense_width(c); /* what is n_embd wide */
    double numbers = (double)c->n_layer * (double)c->n_embd * (double)wide;
    return numbers < 32e6 ? 16 : numbers < 256e6 ? 32 : 1024;
}

int space_init(space *s, const model_config *c, int n_members, size_t max_rows, size_t acts_rows,
               size_t acts_cols, shoal_err *err)
{
    size_t n = max_rows, width = c->n_embd, q = c->attn.n_head * c->attn.head_dim,
           kv = c->attn.n_head_kv * c->attn.head_dim, ff = dense_width(c);
    bool ok = true;
    *s = (space){0};
    s->x = floats(n, width, &ok);
    s->thin = floats(THIN_ROWS, THIN_WIDTH, &ok);
    s->h = floats(n, width, &ok);
    s->y = floats(n, width, &ok);
    s->qkv = floats(n, q + 2 * kv, &ok);
    s->att = floats(n, q, &ok);
    if (c->source.n_layer > 0) s->cross_q = floats(n, q, &ok);
    s->ff = floats(n, ff * (c->ffn.gated ? 2 : 1), &ok);
    if (c->ffn.gated) s->act = floats(n, ff, &ok);
    if (c->branch == BRANCH_TWO_NORMS) s->h2 = floats(n, width, &ok);
    if (any_layer(c, LAYER_CONV)) {
        s->conv_in = floats(n, 3 * width, &ok);
        s->conv = floats(n, width, &ok);
    }
    if (!ok) return err_nomem(err);
    int rc = c->ffn.n_expert > 0 ? moe_space_init(&s->moe, c, n, err) : 0;
    s->apart_rows = apart_rows(c);
    s->own_cols = max_size(acts_cols, max_size(width, max_size(ff, q)));
    if (rc == 0) rc = acts_new(&s->acts, max_size(n, acts_rows), s->own_cols, err);
    return rc ? rc : make_own(s, c, n_members, err);
}

void space_done(space *s)
{
    void *all[] = {s->x,   s->h,       s->h2,   s->y,  s->qkv, s->cross_q,
                   s->att, s->conv_in, s->conv, s->ff, s->act, s->thin};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    for (size_t i = 0; i < s->n_members; i++) {
        acts_free(s->own[i].acts);
        acts_free(s->own[i].window);
        free(s->own[i].h);
        free(s->own[i].h2);
        free(s->own[i].act);
    }
    free(s->own);
    moe_space_done(&s->moe);
    acts_free(s->acts);
    *s = (space){0};
}

/* What stands in front of a product is each member's own when rows are few. */
static void open_own(pass *p, const own_space *o, size_t n)
{
    p->l.own = o->acts;
    p->l.window = o->window;
    p->l.apart_rows = p->s->apart_rows;
    p->l.own_cols = p->s->own_cols;
    if (!rows_are_few(&p->l, n)) return;
    p->h = rows_own(o->h, n, p->h.width);
    if (o->h2) p->h2 = rows_own(o->h2, n, p->h2.width);
    if (p->act.width <= BLK_ALONE_COLS) p->act = rows_own(o->act, n, p->act.width);
}

rows pass_rows(const pass *p, float *at, size_t n)
{
    bool own = p->s->own && rows_are_few(&p->l, n);
    size_t width = p->c->n_embd;
    return own ? rows_own(p->s->own[member_index(p->l.m)].h, n, width) : rows_of(at, n, width);
}

void pass_open(pass *p, const space *s, team_member *m, size_t n)
{
    const model_config *c = p->c;
    size_t width = c->n_embd, q = c->attn.n_head * c->attn.head_dim,
           kv = c->attn.n_head_kv * c->attn.head_dim, ff = dense_width(c);
    rows_open(&p->l, m, s->acts);
    p->l.thin = s->thin;
    p->s = s;
    p->x = rows_of(s->x, n, width);
    p->h = rows_of(s->h, n, width);
    p->h2 = rows_of(s->h2, n, width);
    p->y = rows_of(s->y, n, width);
    p->qkv = rows_of(s->qkv, n, q + 2 * kv);
    p->att = rows_of(s->att, n, q);
    p->cross_q = rows_of(s->cross_q, n, q);
    p->conv_in = rows_of(s->conv_in, n, 3 * width);
    p->conv = rows_of(s->conv, n, width);
    p->ff = rows_of(s->ff, n, ff * (c->ffn.gated ? 2 : 1));
    p->act = rows_of(s->act, n, ff);
    if (s->own && member_count(m) > 1) open_own(p, &s->own[member_index(m)], n);
}

/* ---- the layer -------------------------------------------------------------------------------------- */

/* The stream as a branch reads it: through its norm, or as it is. */
static rows *layer_enter(pass *p, const norm *pre, rows *h)
{
    if (!pre->w) return &p->x;
    blk_norm(&p->l, pre, h, &p->x);
    return h;
}

static float residual_scale(const pass *p)
{
    return p->c->scale.residual != 0 ? p->c->scale.residual : 1;
}

/* Does a branch go through a norm of its own, or a factor, before it is added? */
static bool stands_apart(const pass *p)
{
    return p->c->norm.place == PLACE_SANDWICH || p->c->norm.place == PLACE_OUTPUT || residual_scale(p) != 1;
}

/* The stream behind a branch; p->y holds the branch, unless it was added already. */
static void layer_leave(pass *p, const norm *post, bool added)
{
    norm_place at = p->c->norm.place;
    if (!added) {
        if (at == PLACE_SANDWICH || at == PLACE_OUTPUT) blk_norm(&p->l, post, &p->y, &p->y);
        blk_add(&p->l, &p->x, &p->y, residual_scale(p));
    }
    if (at == PLACE_POST) blk_norm(&p->l, post, &p->x, &p->x);
}

/* A branch's last product. */
static void layer_join(pass *p, const proj *out, rows *from, const norm *post)
{
    bool apart = stands_apart(p);
    blk_linear(&p->l, out, from, apart ? &p->y : &p->x, !apart);
    layer_leave(p, post, !apart);
}

/* Attention to the source, between a decoder's own and its feed-forward network. */
static void cross_over(pass *p, const cross *x)
{
    blk_linear(&p->l, &x->q, layer_enter(p, &x->pre, &p->h), &p->cross_q, false);
    blk_cross(&p->l, x, p->cross, &p->cross_q, &p->att);
    layer_join(p, &x->out, &p->att, &x->post);
}

static void feed(pass *p, const layer *ly, rows *in)
{
    const ffn_conf *c = &p->c->ffn;
    if (ly->moe.c) {
        blk_moe(&p->l, &ly->moe, &p->s->moe, in, &p->y);
        layer_leave(p, &ly->ffn_post, false);
        return;
    }
    rows *act = c->gated || p->act.own ? &p->act : &p->ff;
    blk_linear(&p->l, &ly->up, in, &p->ff, false);
    blk_activate(&p->l, c->act, c->gated, act, &p->ff);
    layer_join(p, &ly->down, act, &ly->ffn_post);
}

void layer_run(pass *p, const layer *ly)
{
    rows *in = layer_enter(p, &ly->attn_pre, &p->h), *second = NULL;
    if (p->c->branch == BRANCH_ONE_NORM) second = in;
    if (p->c->branch == BRANCH_TWO_NORMS) second = layer_enter(p, &ly->ffn_pre, &p->h2);
    layer_join(p, &ly->out, ly->mixer->run(p, ly, in), &ly->attn_post);
    if (ly->cross.q.n_parts > 0) cross_over(p, &ly->cross);
    feed(p, ly, second ? second : layer_enter(p, &ly->ffn_pre, &p->h));
}
