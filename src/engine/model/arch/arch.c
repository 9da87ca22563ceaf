/* arch.c: the families by name, and what the values in their files are called. */
#include "model/arch/arch.h"

#include <string.h>

#include "base/edits.h"
#include "model/arch/registry.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const arch_def *const defs[] = {
#define ENTRY(a) &a,
    ARCH_REGISTRY(ENTRY)
#undef ENTRY
};

const char *arch_name(const arch_def *a)
{
    return a->name;
}

static bool in_list(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

const arch_def *arch_by_gguf(const char *name)
{
    for (size_t i = 0; i < COUNT(defs); i++)
        if (strcmp(defs[i]->name, name) == 0) return defs[i];
    for (size_t i = 0; i < COUNT(defs); i++)
        if (in_list(defs[i]->gguf_names, name)) return defs[i];
    return NULL;
}

const arch_def *arch_by_hf(const char *model_type)
{
    for (size_t i = 0; i < COUNT(defs); i++)
        if (in_list(defs[i]->hf_types, model_type)) return defs[i];
    return NULL;
}

/* ---- the closest name ------------------------------------------------------------------------------- */

/* The smaller the closer: edits, less what the two begin with. */
static long name_distance(const char *a, const char *b)
{
    size_t same = 0;
    while (a[same] && a[same] == b[same]) same++;
    return (long)edits(a, b, EDITS_LETTERS_MAX) - 2 * (long)same;
}

const char *arch_closest(const char *name, bool gguf)
{
    const char *best = defs[0]->name;
    for (size_t i = 0; i < COUNT(defs); i++) {
        const char *const single[] = {defs[i]->name, NULL};
        const char *const *list = gguf || !defs[i]->hf_types ? single : defs[i]->hf_types;
        for (; *list; list++)
            if (name_distance(name, *list) < name_distance(name, best)) best = *list;
    }
    return best;
}

/* ---- values ----------------------------------------------------------------------------------------- */

/* The first name of each is the one we write. */
static const struct {
    const char *name;
    activation act;
} activations[] = {
    {"silu", ACT_SILU},          {"gelu", ACT_GELU_ERF},       {"gelu_pytorch_tanh", ACT_GELU_TANH},
    {"relu", ACT_RELU},          {"tanh", ACT_TANH},           {"none", ACT_NONE},
    {"linear", ACT_NONE},        {"swish", ACT_SILU},          {"gelu_python", ACT_GELU_ERF},
    {"gelu_new", ACT_GELU_TANH}, {"gelu_fast", ACT_GELU_TANH}, {"gelu_accurate", ACT_GELU_TANH},
};

bool activation_parse(const char *name, activation *ret)
{
    for (size_t i = 0; i < COUNT(activations); i++) {
        if (strcmp(activations[i].name, name) != 0) continue;
        *ret = activations[i].act;
        return true;
    }
    return false;
}

const char *activation_name(activation a)
{
    for (size_t i = 0; i < COUNT(activations); i++)
        if (activations[i].act == a) return activations[i].name;
    return "unknown";
}

const char *task_name(model_task t)
{
    switch (t) {
#define CASE(e, name) \
    case e: return name;
        TASK_TABLE(CASE)
#undef CASE
    case TASK_COUNT: break;
    }
    return "unknown";
}

bool task_parse(const char *name, model_task *ret)
{
    for (int i = 0; i < TASK_COUNT; i++) {
        if (strcmp(task_name((model_task)i), name) != 0) continue;
        *ret = (model_task)i;
        return true;
    }
    return false;
}

/* ---- rotary embedding ------------------------------------------------------------------------------- */

size_t arch_rope_source_row(size_t row, size_t head_dim, size_t rope_dim)
{
    size_t head = row / head_dim, i = row % head_dim;
    if (i >= rope_dim) return row;
    return head * head_dim + (i % 2) * (rope_dim / 2) + i / 2;
}

void arch_rope_factors(const model_config *c, float *out, size_t n)
{
    const double two_pi = 6.283185307179586;
    double longest = (double)c->pos.rope.original_ctx / c->pos.rope.low_freq;
    double shortest = (double)c->pos.rope.original_ctx / c->pos.rope.high_freq;
    for (size_t i = 0; i < n; i++) {
        double wavelength = two_pi * math_pow(c->pos.rope.theta, 2.0 * (double)i / (double)c->pos.rope.dim);
        if (wavelength < shortest) {
            out[i] = 1;
        } else if (wavelength > longest) {
            out[i] = (float)c->pos.rope.factor;
        } else {
            double smooth = ((double)c->pos.rope.original_ctx / wavelength - c->pos.rope.low_freq) /
                            (c->pos.rope.high_freq - c->pos.rope.low_freq);
            out[i] = (float)(1 / ((1 - smooth) / c->pos.rope.factor + smooth));
        }
    }
}
