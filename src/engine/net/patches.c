/* patches.c: pictures cut into patches; see patches.h. */
#include "net/patches.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

size_t patches_count(const image_conf *i)
{
    size_t side = i->size / i->patch;
    return side * side + 1;
}

int patches_load(patches *p, const model *m, const model_config *c, size_t max_positions, isa set,
                 shoal_err *err)
{
    const image_conf *i = &c->image;
    *p = (patches){.image = *i, .n_rows = patches_count(i), .n_in = i->channels * i->patch * i->patch};
    int rc = proj_load_flat(&p->project, m, "", "patch_embd", set, err);
    if (rc == 0 && (p->project.rows != c->n_embd || p->project.cols != p->n_in))
        rc = err_set(err, SHOAL_EFORMAT, "patch_embd.weight should be %zu rows of %zu", c->n_embd, p->n_in);
    if (rc == 0) rc = proj_load_table(&p->whole, m, "cls_embd.weight", 1, c->n_embd, err);
    if (rc == 0) rc = proj_load_table(&p->positions, m, "position_embd.weight", p->n_rows, c->n_embd, err);
    if (rc) return rc;
    size_t n;
    p->cut = size_mul(max_positions, p->n_in, &n) ? NULL : mem_calloc64(n, sizeof *p->cut);
    return p->cut ? 0 : err_nomem(err);
}

void patches_done(patches *p)
{
    proj_done(&p->project);
    free(p->whole);
    free(p->positions);
    free(p->cut);
    *p = (patches){0};
}

int patches_rows(const model_config *c, const net_input *in, size_t *ret, shoal_err *err)
{
    const image_conf *i = &c->image;
    if (!in->features) return err_set(err, SHOAL_EINVALID, "this model looks at pictures and reads no text");
    if (in->n_features != i->channels * i->size || in->width != i->size)
        return err_set(err, SHOAL_EINVALID,
                       "a picture of %zu rows of %zu; this model looks at %zu x %zu x %zu", in->n_features,
                       in->width, i->channels, i->size, i->size);
    *ret = patches_count(i);
    return 0;
}

/* Patch number `at` of pixels[channels][size][size] as [channels][patch][patch]. */
static void cut_patch(const image_conf *i, const float *pixels, size_t at, float *out)
{
    size_t side = i->size / i->patch;
    const float *corner = pixels + at / side * i->patch * i->size + at % side * i->patch;
    for (size_t c = 0; c < i->channels; c++) {
        for (size_t y = 0; y < i->patch; y++, out += i->patch)
            memcpy(out, corner + (c * i->size + y) * i->size, i->patch * sizeof *out);
    }
}

/* The row that stands for the whole picture goes through the matrix as zeros, and is then replaced. */
void blk_patches(lane *l, const patches *p, const net_input *items, const uint32_t *item,
                 const uint32_t *first, rows *x)
{
    rows cut = rows_of(p->cut, x->n, p->n_in);
    size_t t, end;
    rows_use(l, {&cut, WRITE_MINE});
    for (rows_share(l, &cut, &t, &end); t < end; t++) {
        size_t at = t - first[item[t]];
        if (at > 0)
            cut_patch(&p->image, items[item[t]].features, at - 1, rows_at(&cut, t));
        else
            memset(rows_at(&cut, t), 0, p->n_in * sizeof(float));
    }
    blk_linear(l, &p->project, &cut, x, false);
    rows_use(l, {x, READ_MINE | WRITE_MINE});
    for (rows_share(l, x, &t, &end); t < end; t++) {
        size_t at = t - first[item[t]];
        if (at == 0) memcpy(rows_at(x, t), p->whole, x->width * sizeof(float));
        l->v->add(rows_at(x, t), rows_at(x, t), p->positions + at * x->width, x->width);
    }
}
