/* shortconv.c: gated short convolutions whose inputs live in the cache; see shortconv.h. */
#include "net/shortconv.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

int shortconv_load(shortconv *c, const model *m, const char *prefix, shoal_err *err)
{
    const model_config *conf = model_get_config(m);
    char name[96];
    *c = (shortconv){.taps = conf->n_conv, .width = conf->n_embd};
    size_t n = c->taps * c->width;
    snprintf(name, sizeof name, "%sshortconv.conv.weight", prefix);
    float *file = NULL;
    int rc = proj_load_table(&file, m, name, c->width, c->taps, err);
    if (rc) return rc;
    c->w = mem_calloc64(n, sizeof *c->w);
    if (!c->w) {
        free(file);
        return err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) c->w[i % c->taps * c->width + i / c->taps] = file[i];
    free(file);
    snprintf(name, sizeof name, "%sshortconv.conv.bias", prefix);
    const tensor *b = model_tensor(m, name);
    return b && b->data ? proj_load_vector(&c->bias, m, name, c->width, err) : 0;
}

void shortconv_done(shortconv *c)
{
    free(c->w);
    free(c->bias);
    *c = (shortconv){0};
}

size_t shortconv_slots(const kv_shape *shape, size_t width)
{
    size_t each = 2 * shape->n_head_kv * shape->head_dim; /* numbers that a position has in one layer */
    return (width + each - 1) / each;
}

/* Where position `pos` keeps its u: its page's slots are one piece of memory, [position][width]. */
static void *kept(const shortconv *c, const attend_step *s, const kv_seq *seq, size_t pos)
{
    size_t bytes = c->width * dtype_block_bytes(s->cache->shape.type);
    uint8_t *slots = kv_k(s->cache, seq, c->slot, 0, pos / KV_PAGE_TOKENS);
    return slots + pos % KV_PAGE_TOKENS * bytes;
}

/* u = b * x, into the cache; in's b is overwritten by it. */
static void keep(const shortconv *c, const attend_step *s, const vec_kernels *v, float *in, size_t t)
{
    const kv_seq *seq = s->items[s->place[t].item].seq;
    const float *x = in + 2 * c->width;
    void *to = kept(c, s, seq, s->place[t].position);
    for (size_t i = 0; i < c->width; i++) in[i] *= x[i];
    if (s->cache->shape.type == DT_F16)
        v->to_f16(to, in, c->width);
    else
        memcpy(to, in, c->width * sizeof *in);
}

/* out += w * u of one position; `space` [width] is overwritten */
static void add_tap(const shortconv *c, const attend_step *s, const vec_kernels *v, float *out, const void *u,
                    const float *w, float *space)
{
    const float *x = u, one = 1;
    if (s->cache->shape.type == DT_F16) {
        memset(space, 0, c->width * sizeof *space);
        v->attn_mix_f16(space, 0, &one, 0, 1, u, 0, 1, c->width);
        x = space;
    }
    for (size_t i = 0; i < c->width; i++) out[i] += w[i] * x[i];
}

static void convolve(const shortconv *c, const attend_step *s, const vec_kernels *v, float *in, float *out,
                     size_t t)
{
    const kv_seq *seq = s->items[s->place[t].item].seq;
    size_t pos = s->place[t].position;
    const float *gate = in + c->width;
    if (c->bias)
        memcpy(out, c->bias, c->width * sizeof *out);
    else
        memset(out, 0, c->width * sizeof *out);
    for (size_t k = 0; k < c->taps; k++) {
        size_t back = c->taps - 1 - k;
        if (back <= pos) add_tap(c, s, v, out, kept(c, s, seq, pos - back), c->w + k * c->width, in);
    }
    for (size_t i = 0; i < c->width; i++) out[i] *= gate[i];
}

void blk_shortconv(lane *l, const shortconv *c, const attend_step *s, rows *in, rows *out)
{
    rows cache = {.n = in->n}; /* what this step keeps */
    size_t begin, end;
    assert(in->width == 3 * c->width && out->width == c->width);
    rows_use(l, {in, READ_MINE | WRITE_MINE}, {&cache, WRITE_MINE});
    rows_share(l, in, &begin, &end);
    for (size_t t = begin; t < end; t++) keep(c, s, l->v, rows_at(in, t), t);
    /* A sequence with one token reads what it wrote itself and what earlier steps wrote. */
    rows_use(l, {in, READ_MINE | WRITE_MINE}, {&cache, s->all_single ? READ_MINE : READ_ALL},
             {out, WRITE_MINE});
    for (size_t t = begin; t < end; t++) convolve(c, s, l->v, rows_at(in, t), rows_at(out, t), t);
}
