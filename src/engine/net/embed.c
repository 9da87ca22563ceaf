/* embed.c: embeddings; see embed.h. */
#include "net/embed.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* PE(p, 2i) = sin(p / 10000^(2i/d)) in the first half of a row, the cosines in the second (Vaswani et al.
 * 2017, in the order that Marian and Whisper keep). */
static int make_sinusoids(embed *e, size_t n_ctx, size_t width, shoal_err *err)
{
    size_t n, half = width / 2;
    if (size_mul(n_ctx, width, &n) || !(e->positions = mem_calloc64(n ? n : 1, sizeof(float))))
        return err_nomem(err);
    for (size_t p = 0; p < n_ctx; p++) {
        for (size_t i = 0; i < half; i++) {
            double s, k, f = math_pow(10000.0, -2.0 * (double)i / (double)width);
            math_sincos((double)p * f, &s, &k);
            e->positions[p * width + i] = (float)s;
            e->positions[p * width + half + i] = (float)k;
        }
    }
    return 0;
}

/* The rows of the file behind the first `offset`, which no position uses. */
static int load_positions(embed *e, const model *m, const char *prefix, size_t n_ctx, shoal_err *err)
{
    const model_config *c = e->c;
    char name[64];
    size_t offset = c->pos.offset, rows;
    snprintf(name, sizeof name, "%sposition_embd.weight", prefix);
    const tensor *t = model_tensor(m, name);
    e->position_width = t && t->dims[0] == e->n_in ? e->n_in : c->n_embd;
    if (__builtin_add_overflow(n_ctx, offset, &rows)) return err_set(err, SHOAL_ELIMIT, "%s is absurd", name);
    int rc = proj_load_table(&e->positions, m, name, rows, e->position_width, err);
    if (rc == 0)
        memmove(e->positions, e->positions + offset * e->position_width,
                n_ctx * e->position_width * sizeof(float));
    return rc;
}

static int load_norm_and_widen(embed *e, const model *m, const char *prefix, isa set, shoal_err *err)
{
    const model_config *c = e->c;
    char name[64];
    int rc = 0;
    if (c->norm.embedding) {
        snprintf(name, sizeof name, "%stoken_embd_norm.weight", prefix);
        const tensor *t = model_tensor(m, name);
        rc = norm_load(&e->norm, m, prefix, "token_embd_norm",
                       t && t->dims[0] == e->n_in ? e->n_in : c->n_embd, &c->norm, err);
    }
    if (rc == 0 && e->n_in != c->n_embd)
        rc = proj_load(&e->widen, m, "", (const char *[]){"token_embd_proj"}, 1, set, err);
    if (rc == 0 && e->widen.n_parts > 0 && (e->widen.cols != e->n_in || e->widen.rows != c->n_embd))
        rc = err_set(err, SHOAL_EFORMAT, "token_embd_proj.weight should be %zu rows of %zu", c->n_embd,
                     e->n_in);
    return rc;
}

int embed_load(embed *e, const model *m, const model_config *c, const char *prefix, size_t n_ctx, isa set,
               shoal_err *err)
{
    *e = (embed){.c = c, .n_in = c->n_embd_in ? c->n_embd_in : c->n_embd, .n_positions = n_ctx};
    int rc = proj_load(&e->words, m, "", (const char *[]){"token_embd"}, 1, set, err);
    if (rc) return rc;
    if (e->words.cols != e->n_in || e->words.rows < c->n_vocab)
        return err_set(err, SHOAL_EFORMAT, "token_embd.weight should be %zu rows of %zu", c->n_vocab,
                       e->n_in);
    e->position_width = c->n_embd;
    if (c->pos.learned)
        rc = load_positions(e, m, prefix, n_ctx, err);
    else if (c->pos.sinusoidal)
        rc = make_sinusoids(e, n_ctx, c->n_embd, err);
    if (rc == 0 && c->n_types > 0)
        rc = proj_load_table(&e->types, m, "token_types.weight", c->n_types, e->n_in, err);
    return rc ? rc : load_norm_and_widen(e, m, prefix, set, err);
}

void embed_done(embed *e)
{
    proj_done(&e->words);
    proj_done(&e->widen);
    norm_done(&e->norm);
    free(e->positions);
    free(e->types);
    *e = (embed){0};
}

/* What stands beside the matrix, on this side of it. */
static void add_parts(const embed *e, const vec_kernels *v, embed_token tok, float *x, size_t width,
                      bool first)
{
    if (first && e->types) v->add(x, x, e->types + tok.type * width, width);
    if (e->positions && e->position_width == width && (first || e->position_width != e->n_in))
        v->add(x, x, e->positions + tok.position * width, width);
    if (e->norm.w && e->norm.width == width && (first || e->norm.width != e->n_in))
        norm_row(&e->norm, v, x, x);
}

void blk_embed(lane *l, const embed *e, embed_token_fn token, const void *step, rows *narrow, rows *x)
{
    rows *to = e->widen.n_parts > 0 ? narrow : x;
    float scale = e->c->scale.embd;
    size_t t, end;
    assert(to->width == e->n_in && to->n == x->n);
    rows_profile(l, PROFILE_EMBED);
    rows_use(l, {to, WRITE_MINE});
    rows_share(l, to, &t, &end);
    for (; t < end; t++) {
        embed_token tok = token(step, t);
        float *row = rows_at(to, t);
        wmat_row(e->words.part[0], (size_t)tok.id, row);
        if (scale != 0 && scale != 1)
            for (size_t i = 0; i < e->n_in; i++) row[i] *= scale;
        add_parts(e, l->v, tok, row, e->n_in, true);
    }
    if (to == x) return;
    blk_linear(l, &e->widen, narrow, x, false);
    rows_use(l, {x, READ_MINE | WRITE_MINE});
    for (rows_share(l, x, &t, &end); t < end; t++)
        add_parts(e, l->v, token(step, t), rows_at(x, t), x->width, false);
}
