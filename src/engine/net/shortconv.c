/* shortconv.c: gated short convolutions whose last inputs are a state; see shortconv.h. */
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
    c->file_bytes = model_tensor(m, name)->bytes;
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

size_t shortconv_state_bytes(const model_config *c)
{
    return (c->n_conv - 1) * c->n_embd * sizeof(float);
}

/* u = b * x in the place of b, as precise as keys are kept; `space` [width] is overwritten */
static void gate_in(const shortconv *c, dtype type, const vec_kernels *v, float *in, float *space)
{
    const float *x = in + 2 * c->width, one = 1;
    uint16_t *half = (void *)space;
    for (size_t i = 0; i < c->width; i++) in[i] *= x[i];
    if (type != DT_F16) return;
    v->to_f16(half, in, c->width);
    memset(in, 0, c->width * sizeof *in);
    v->attn_mix_f16(in, 0, &one, 0, 1, half, 0, 1, c->width);
}

/* Row i of a state. */
static float *state_row(const shortconv *c, const attend_step *s, seq_state state, size_t i)
{
    return (float *)seq_state_at(&s->cache->states, state, c->state_at) + i * c->width;
}

/* u of the position `back` before that of row t: of this step, or of the state that it began with. */
static const float *input_at(const shortconv *c, const attend_step *s, const rows *in, size_t t, size_t back)
{
    const kv_seq *seq = s->items[s->place[t].item].seq;
    size_t nth = s->place[t].position - seq->n_tokens; /* token of its item */
    if (back <= nth) return rows_at(in, s->row[s->order[t] - back]);
    return state_row(c, s, seq->state, c->taps - 1 - (back - nth));
}

static void convolve(const shortconv *c, const attend_step *s, const rows *in, float *out, size_t t)
{
    const float *gate = rows_at(in, t) + c->width;
    if (c->bias)
        memcpy(out, c->bias, c->width * sizeof *out);
    else
        memset(out, 0, c->width * sizeof *out);
    for (size_t k = 0; k < c->taps; k++) {
        size_t back = c->taps - 1 - k;
        if (back > s->place[t].position) continue;
        const float *w = c->w + k * c->width, *u = input_at(c, s, in, t, back);
        for (size_t i = 0; i < c->width; i++) out[i] += w[i] * u[i];
    }
    for (size_t i = 0; i < c->width; i++) out[i] *= gate[i];
}

/* The states that the step leaves behind row t; zeros where there was no position. */
static void leave_states(const shortconv *c, const attend_step *s, const rows *in, size_t t)
{
    const kv_seq *seq = s->items[s->place[t].item].seq;
    size_t position = s->place[t].position;
    for (size_t m = 0; m < seq->n_marks; m++) {
        if (seq->marks[m].position != position + 1) continue;
        for (size_t i = 0; i + 1 < c->taps; i++) {
            size_t back = c->taps - 2 - i;
            float *to = state_row(c, s, seq->marks[m].state, i);
            if (back <= position)
                memcpy(to, input_at(c, s, in, t, back), c->width * sizeof *to);
            else
                memset(to, 0, c->width * sizeof *to);
        }
    }
}

static void profile_convolution(const lane *l, const shortconv *c, size_t n_tokens)
{
    profile_entry *e = profile_to(l->profile, PROFILE_CONVOLVE, NULL);
    e->bytes += (double)c->file_bytes;
    e->multiply_adds += (double)(c->taps * c->width * n_tokens);
}

void blk_shortconv(lane *l, const shortconv *c, const attend_step *s, rows *in, rows *out)
{
    size_t begin, end;
    assert(in->width == 3 * c->width && out->width == c->width);
    if (l->profile) profile_convolution(l, c, in->n);
    rows_use(l, {in, READ_MINE | WRITE_MINE}, {out, WRITE_MINE});
    rows_share(l, in, &begin, &end);
    for (size_t t = begin; t < end; t++)
        gate_in(c, s->cache->shape.type, l->v, rows_at(in, t), rows_at(out, t));
    /* A sequence with one token reads what it wrote itself and what earlier steps wrote. */
    rows_use(l, {in, s->all_single ? READ_MINE : READ_ALL}, {out, WRITE_MINE});
    for (size_t t = begin; t < end; t++) {
        convolve(c, s, in, rows_at(out, t), t);
        leave_states(c, s, in, t);
    }
}
