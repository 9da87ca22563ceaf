/* stem.c: convolutions as products; see stem.h. */
#include "net/stem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { TAPS = 3 };

/* A kernel [rows][cols][3] as a matrix [rows][3][cols], in floats. */
static int load_kernel(proj *p, const model *m, const char *prefix, const char *stem, size_t rows,
                       size_t cols, isa set, shoal_err *err)
{
    char name[64];
    float *bias = NULL, *turned = NULL, *file = NULL;
    snprintf(name, sizeof name, "%s%s.weight", prefix, stem);
    const tensor *t = model_tensor(m, name);
    if (!t || !t->data || t->n_dims != 3 || t->dims[0] != TAPS || t->dims[1] != cols || t->dims[2] != rows)
        return err_set(err, SHOAL_EFORMAT, "%s should be %zu x %zu x %d", name, rows, cols, TAPS);
    snprintf(name, sizeof name, "%s%s.bias", prefix, stem);
    int rc = proj_load_vector(&bias, m, name, rows, err);
    size_t n = rows * cols * TAPS;
    if (rc == 0 && (!(turned = malloc(n * sizeof *turned)) || !(file = malloc(n * sizeof *file))))
        rc = err_nomem(err);
    if (rc == 0) {
        dtype_to_f32(t->type, t->data, file, n);
        for (size_t i = 0; i < n; i++)
            turned[(i / TAPS / cols * TAPS + i % TAPS) * cols + i / TAPS % cols] = file[i];
        *p = (proj){.rows = rows, .cols = TAPS * cols, .n_parts = 1};
        rc = wmat_new(&p->part[0], DT_F32, rows, TAPS * cols, turned, bias, set, err);
    }
    free(turned);
    free(file);
    free(bias);
    return rc;
}

int stem_load(stem *s, const model *m, const model_config *c, const char *prefix, size_t max_positions,
              isa set, shoal_err *err)
{
    char name[64];
    size_t width = c->n_embd, widest = width > c->source.n_mel ? width : c->source.n_mel, n;
    *s = (stem){.n_mel = c->source.n_mel, .width = width, .n_positions = c->source.n_ctx};
    snprintf(name, sizeof name, "%sposition_embd.weight", prefix);
    int rc = load_kernel(&s->conv1, m, prefix, "conv1", width, s->n_mel, set, err);
    if (rc == 0) rc = load_kernel(&s->conv2, m, prefix, "conv2", width, width, set, err);
    if (rc == 0) rc = proj_load_table(&s->positions, m, name, s->n_positions, width, err);
    if (rc == 0 && size_mul(2 * max_positions, TAPS * widest, &n)) rc = err_nomem(err);
    if (rc) return rc;
    s->around = mem_calloc64(n, sizeof(float));
    s->hidden = mem_calloc64(2 * max_positions * width, sizeof(float));
    return s->around && s->hidden ? 0 : err_nomem(err);
}

void stem_done(stem *s)
{
    proj_done(&s->conv1);
    proj_done(&s->conv2);
    free(s->positions);
    free(s->around);
    free(s->hidden);
    *s = (stem){0};
}

/* Frames at - 1, at and at + 1 of n, [width] each. */
static void put_around(float *y, const float *frames, size_t n, size_t at, size_t width)
{
    for (size_t k = 0; k < TAPS; k++, y += width) {
        size_t from = at + k; /* one too many, so that the frame in front of the first is 0 */
        if (from == 0 || from > n)
            memset(y, 0, width * sizeof *y);
        else
            memcpy(y, frames + (from - 1) * width, width * sizeof *y);
    }
}

/* The items' frames lie one after the other, two for each place; an odd last one has an empty place beside
 * it, which nobody reads. */
static void first_convolution(lane *l, const stem *s, const net_input *items, const uint32_t *item,
                              const uint32_t *first, size_t n, rows *hidden)
{
    rows around = rows_of(s->around, 2 * n, TAPS * s->n_mel);
    size_t t, end;
    rows_use(l, {&around, WRITE_MINE});
    for (rows_share(l, &around, &t, &end); t < end; t++) {
        const net_input *in = &items[item[t / 2]];
        put_around(rows_at(&around, t), in->features, in->n_features, t - 2 * first[item[t / 2]], s->n_mel);
    }
    blk_linear(l, &s->conv1, &around, hidden, false);
    blk_activate(l, ACT_GELU_ERF, false, hidden, hidden);
}

void blk_stem(lane *l, const stem *s, const net_input *items, const uint32_t *item, const uint32_t *first,
              rows *x)
{
    rows hidden = rows_of(s->hidden, 2 * x->n, s->width), around = rows_of(s->around, x->n, TAPS * s->width);
    size_t t, end;
    assert(x->width == s->width);
    first_convolution(l, s, items, item, first, x->n, &hidden);
    rows_use(l, {&hidden, READ_ALL}, {&around, WRITE_MINE});
    for (rows_share(l, &around, &t, &end); t < end; t++) {
        const net_input *in = &items[item[t]];
        const float *frames = rows_at(&hidden, 2 * first[item[t]]);
        put_around(rows_at(&around, t), frames, in->n_features, 2 * (t - first[item[t]]), s->width);
    }
    blk_linear(l, &s->conv2, &around, x, false);
    blk_activate(l, ACT_GELU_ERF, false, x, x);
    rows_use(l, {x, READ_MINE | WRITE_MINE});
    for (rows_share(l, x, &t, &end); t < end; t++)
        l->v->add(rows_at(x, t), rows_at(x, t), s->positions + (t - first[item[t]]) * s->width, s->width);
}
