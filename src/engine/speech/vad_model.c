/* vad_model.c: the voice detector's weights and one window's pass; see vad_model.h. Frames lie [time][channel], with
 * an empty one in front and behind, and kernels [out][tap][channel]: three taps are one run of numbers, and
 * each output is one dot product. */
#include "speech/vad_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/progress.h"
#include "compute/compute.h"
#include "model/voice_weights.h"

enum {
    TAPS = 3,
    FRAME = 256,
    HOP = 128,
    PAD = 64,
    N_FRAMES = 4,
    N_BINS = 129,
    N_CONVS = 4,
    WIDEST = 129,
    N_GATES = 4 * VAD_MODEL_WIDTH,
    HEARD = VAD_MODEL_CONTEXT + VAD_MODEL_WINDOW,
    PADDED = HEARD + PAD,
};

typedef struct convolution {
    size_t in, out, stride;
    const float *weight, *bias; /* [out][TAPS][in], [out] */
} convolution;

struct vad_model {
    const vec_kernels *k;
    arena *mem;
    const float *transform; /* [2 * N_BINS][FRAME]: real parts, then imaginary ones */
    convolution conv[N_CONVS];
    const float *from_input, *from_hidden; /* [N_GATES][VAD_MODEL_WIDTH]: input, forget, cell, output */
    const float *gate_bias, *hidden_bias;
    const float *out, *out_bias;
};

/* ---- loading ------------------------------------------------------------------------------------- */

typedef struct loader {
    vad_model *v;
    const st_list *list;
    const char *what;
    shoal_err *err;
} loader;

/* The floats of a tensor of these dimensions (the last fastest); NULL with the error set. */
static float *vad_model_take(loader *l, const char *name, size_t a, size_t b, size_t c)
{
    const tensor *t = NULL;
    for (size_t i = 0; i < l->list->n; i++)
        if (strcmp(l->list->items[i].t.name, name) == 0) t = &l->list->items[i].t;
    size_t n = a * b * c, got = 1;
    for (size_t i = 0; t && i < t->n_dims; i++) got *= t->dims[i];
    if (!t || t->dims[0] != c || got != n || (t->n_dims > 1 && t->dims[t->n_dims - 1] != a)) {
        err_set(l->err, SHOAL_EUNSUPPORTED,
                "%s: not a supported voice detector: %s %s; Silero's silero_vad_16k_op15.onnx and "
                "silero_vad_16k.safetensors are",
                l->what, name, t ? "has another shape" : "is missing");
        return NULL;
    }
    if (t->type != DT_F32 && t->type != DT_F16 && t->type != DT_BF16) {
        err_set(l->err, SHOAL_EUNSUPPORTED, "%s: %s holds no floating-point numbers", l->what, name);
        return NULL;
    }
    float *x = arena_alloc(l->v->mem, n * sizeof *x);
    if (!x)
        err_nomem(l->err);
    else
        dtype_to_f32(t->type, t->data, x, n);
    for (size_t i = 0; x && i < n; i++)
        if (!isfinite(x[i])) {
            err_set(l->err, SHOAL_EFORMAT, "%s: %s holds a value that is not a finite number", l->what, name);
            return NULL;
        }
    return x;
}

/* [out][in][TAPS] -> [out][TAPS][in] */
static float *turned(loader *l, const float *w, size_t out, size_t in)
{
    float *y = arena_alloc(l->v->mem, out * in * TAPS * sizeof *y);
    if (!y) {
        err_nomem(l->err);
        return NULL;
    }
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < in; i++)
            for (size_t k = 0; k < TAPS; k++) y[(o * TAPS + k) * in + i] = w[(o * in + i) * TAPS + k];
    return y;
}

static bool load_convolution(loader *l, size_t i)
{
    static const convolution shapes[N_CONVS] = {
        {.in = N_BINS, .out = 128, .stride = 1},
        {.in = 128, .out = 64, .stride = 2},
        {.in = 64, .out = 64, .stride = 2},
        {.in = 64, .out = VAD_MODEL_WIDTH, .stride = 1},
    };
    convolution *c = &l->v->conv[i];
    char name[32];
    *c = shapes[i];
    snprintf(name, sizeof name, "conv%zu.weight", i + 1);
    const float *w = vad_model_take(l, name, c->out, c->in, TAPS);
    c->weight = w ? turned(l, w, c->out, c->in) : NULL;
    snprintf(name, sizeof name, "conv%zu.bias", i + 1);
    c->bias = c->weight ? vad_model_take(l, name, 1, 1, c->out) : NULL;
    return c->bias != NULL;
}

static bool load_all(loader *l)
{
    vad_model *v = l->v;
    for (size_t i = 0; i < N_CONVS; i++)
        if (!load_convolution(l, i)) return false;
    return (v->transform = vad_model_take(l, "stft_conv.weight", 2 * N_BINS, 1, FRAME)) &&
           (v->from_input = vad_model_take(l, "lstm_cell.weight_ih", N_GATES, 1, VAD_MODEL_WIDTH)) &&
           (v->from_hidden = vad_model_take(l, "lstm_cell.weight_hh", N_GATES, 1, VAD_MODEL_WIDTH)) &&
           (v->gate_bias = vad_model_take(l, "lstm_cell.bias_ih", 1, 1, N_GATES)) &&
           (v->hidden_bias = vad_model_take(l, "lstm_cell.bias_hh", 1, 1, N_GATES)) &&
           (v->out = vad_model_take(l, "final_conv.weight", 1, VAD_MODEL_WIDTH, 1)) &&
           (v->out_bias = vad_model_take(l, "final_conv.bias", 1, 1, 1));
}

int vad_model_parse(vad_model **ret, const void *data, size_t n, const char *what, shoal_err *err)
{
    shoal_err local;
    st_list list = {0};
    isa kernels = ISA_SCALAR;
    vad_model *v = calloc(1, sizeof *v);
    if (!err) err = &local;
    if (!v || !(v->mem = arena_new(0))) {
        vad_model_free(v);
        return err_nomem(err);
    }
    loader l = {.v = v, .list = &list, .what = what, .err = err};
    int rc = isa_choose(&kernels, err);
    v->k = vec_kernels_for(kernels);
    if (rc == 0) rc = voice_weights_parse(&list, v->mem, data, n, what, err);
    if (rc == 0 && !load_all(&l)) rc = err->code;
    safetensors_list_done(&list);
    if (rc == 0)
        *ret = v;
    else
        vad_model_free(v);
    return rc;
}

int vad_model_open(vad_model **ret, const char *path, shoal_err *err)
{
    file_map m = {0};
    buf inside = {0};
    bool folder = file_is_dir(path);
    if (folder && buf_printf(&inside, "%s/model.safetensors", path)) return err_nomem(err);
    const char *file = folder ? inside.data : path;
    int rc = file_map_open(&m, file, err);
    if (rc == 0) rc = vad_model_parse(ret, m.data, m.len, file, err);
    file_map_close(&m);
    buf_done(&inside);
    return rc;
}

void vad_model_free(vad_model *v)
{
    if (!v) return;
    arena_free(v->mem);
    free(v);
}

/* ---- one window ---------------------------------------------------------------------------------- */

/* Frames with an empty one at both ends. */
typedef struct frames {
    size_t n;
    float x[(N_FRAMES + 2) * WIDEST];
} frames;

/* What is heard, with its end mirrored behind it. */
static void put_heard(const vad_model_state *s, const float *x, float *heard)
{
    memcpy(heard, s->context, sizeof s->context);
    memcpy(heard + VAD_MODEL_CONTEXT, x, VAD_MODEL_WINDOW * sizeof *x);
    for (size_t i = 0; i < PAD; i++) heard[HEARD + i] = heard[HEARD - 2 - i];
}

static void magnitudes(const vad_model *v, const float *heard, frames *y)
{
    memset(y, 0, sizeof *y);
    y->n = N_FRAMES;
    for (size_t t = 0; t < N_FRAMES; t++)
        for (size_t i = 0; i < N_BINS; i++) {
            const float *frame = heard + t * HOP;
            float re = v->k->dot(v->transform + i * FRAME, frame, FRAME);
            float im = v->k->dot(v->transform + (N_BINS + i) * FRAME, frame, FRAME);
            y->x[(t + 1) * N_BINS + i] = sqrtf(re * re + im * im);
        }
}

static void convolve(const vad_model *v, const convolution *c, const frames *x, frames *y)
{
    memset(y, 0, sizeof *y);
    y->n = (x->n - 1) / c->stride + 1;
    for (size_t t = 0; t < y->n; t++)
        for (size_t o = 0; o < c->out; o++) {
            const float *around = x->x + t * c->stride * c->in;
            float z = v->k->dot(c->weight + o * TAPS * c->in, around, TAPS * c->in) + c->bias[o];
            y->x[(t + 1) * c->out + o] = z > 0 ? z : 0;
        }
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + math_expf(-x));
}

static void remember(const vad_model *v, vad_model_state *s, const float *x)
{
    float gate[N_GATES];
    for (size_t i = 0; i < N_GATES; i++)
        gate[i] =
            (v->k->dot(v->from_input + i * VAD_MODEL_WIDTH, x, VAD_MODEL_WIDTH) + v->gate_bias[i]) +
            (v->k->dot(v->from_hidden + i * VAD_MODEL_WIDTH, s->hidden, VAD_MODEL_WIDTH) + v->hidden_bias[i]);
    for (size_t i = 0; i < VAD_MODEL_WIDTH; i++) {
        float in = sigmoid(gate[i]), forget = sigmoid(gate[VAD_MODEL_WIDTH + i]);
        float fresh = math_tanhf(gate[2 * VAD_MODEL_WIDTH + i]), out = sigmoid(gate[3 * VAD_MODEL_WIDTH + i]);
        s->cell[i] = forget * s->cell[i] + in * fresh;
        s->hidden[i] = out * math_tanhf(s->cell[i]);
    }
}

float vad_model_push(const vad_model *v, vad_model_state *s, const float *x)
{
    float heard[PADDED], shown[VAD_MODEL_WIDTH];
    frames a, b;
    put_heard(s, x, heard);
    magnitudes(v, heard, &a);
    convolve(v, &v->conv[0], &a, &b);
    convolve(v, &v->conv[1], &b, &a);
    convolve(v, &v->conv[2], &a, &b);
    convolve(v, &v->conv[3], &b, &a);
    remember(v, s, a.x + VAD_MODEL_WIDTH);
    memcpy(s->context, x + VAD_MODEL_WINDOW - VAD_MODEL_CONTEXT, sizeof s->context);
    for (size_t i = 0; i < VAD_MODEL_WIDTH; i++) shown[i] = s->hidden[i] > 0 ? s->hidden[i] : 0;
    return sigmoid(v->k->dot(v->out, shown, VAD_MODEL_WIDTH) + v->out_bias[0]);
}

/* The sound from `at` on fills x[VAD_MODEL_WINDOW], silence behind it; *ret_n samples are its own. */
static int window_at(sound *s, size_t at, float *x, size_t *ret_n, shoal_err *err)
{
    const float *from = NULL;
    int rc = sound_view(s, at, VAD_MODEL_WINDOW, &from, ret_n, err);
    if (rc != 0) return rc;
    if (*ret_n > 0) memcpy(x, from, *ret_n * sizeof *x);
    memset(x + *ret_n, 0, (VAD_MODEL_WINDOW - *ret_n) * sizeof *x);
    return 0;
}

int vad_model_all(const vad_model *v, sound *s, float **ret, size_t *ret_n, shoal_err *err)
{
    vad_model_state state = {0};
    float x[VAD_MODEL_WINDOW];
    size_t n = 0;
    buf p = {0};
    int rc = buf_reserve(&p, sizeof(float)) ? err_nomem(err) : 0;
    for (size_t at = 0; rc == 0; at += VAD_MODEL_WINDOW) {
        rc = window_at(s, at, x, &n, err);
        if (rc != 0 || n == 0) break;
        float now = vad_model_push(v, &state, x);
        progress_tick();
        if (buf_append(&p, &now, sizeof now)) rc = err_nomem(err);
    }
    if (rc != 0) {
        buf_done(&p);
        return rc;
    }
    *ret = (float *)(void *)p.data;
    *ret_n = p.len / sizeof(float);
    return 0;
}
