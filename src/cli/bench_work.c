/* bench_work.c: bytes and multiply-adds by the names and shapes of a model's tensors; see bench_work.h. */
#include "cli/bench_work.h"

#include <string.h>

/* Matrices of layers begin so; everything else is an embedding, which is looked up, or an output. */
static bool is_layer(const char *name)
{
    return strncmp(name, "blk.", 4) == 0;
}

/* A head's matrices: the vocabulary's output, classifiers' and fill-mask heads'. */
static bool is_head(const char *name, const model_config *c)
{
    if (strcmp(name, "token_embd.weight") == 0)
        return c->tied && (c->task == TASK_GENERATE || c->task == TASK_FILL_MASK);
    return strncmp(name, "output", 6) == 0 || strncmp(name, "cls", 3) == 0 || strncmp(name, "mlm", 3) == 0;
}

/* Of a layer's experts a token passes n_used. */
static double part_used(const tensor *t, const model_config *c)
{
    bool experts = t->n_dims == 3 && c->ffn.n_expert && t->dims[2] == c->ffn.n_expert;
    return experts ? (double)c->ffn.n_used / (double)c->ffn.n_expert : 1;
}

static void add_kv(bench_work *w, const model_config *c, bool is_half)
{
    double each = (double)c->attn.n_head_kv * (double)c->attn.head_dim * 2 * (is_half ? 2 : 4);
    double adds = (double)c->attn.n_head * (double)c->attn.head_dim * 2;
    w->window = c->attn.window;
    for (size_t i = 0; i < c->n_layer; i++) {
        unsigned flags = config_layer(c, i);
        if (flags & LAYER_CONV) continue;
        bool local = (flags & LAYER_LOCAL) && c->attn.window;
        *(local ? &w->local_kv_bytes : &w->kv_bytes) += each;
        *(local ? &w->local_kv_adds : &w->kv_adds) += adds;
    }
}

bench_work bench_work_of(const model *m)
{
    const model_config *c = model_get_config(m);
    double turns = c->n_layer_file ? (double)c->n_layer / (double)c->n_layer_file : 1, float_adds = 0;
    bench_work w = {0};
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        bool layer = is_layer(t->name);
        if (t->n_dims < 2 || !(layer || is_head(t->name, c))) continue;
        double part = part_used(t, c) * (layer ? turns : 1), adds = part;
        for (size_t k = 0; k < t->n_dims; k++) adds *= (double)t->dims[k];
        *(layer ? &w.layer_bytes : &w.head_bytes) += (double)t->bytes * part;
        *(layer ? &w.layer_adds : &w.head_adds) += adds;
        if (dtype_is_float(t->type)) float_adds += adds;
    }
    w.head_each = c->task == TASK_TAG || c->task == TASK_FILL_MASK;
    w.is_float = float_adds > (w.layer_adds + w.head_adds) / 2;
    const tensor *k = model_tensor(m, "blk.0.attn_k.weight");
    add_kv(&w, c, k && !dtype_is_float(k->type));
    return w;
}

/* Pairs of a token and a position it sees, itself included, of n tokens behind `depth`. */
static double pairs(double depth, double n, double window)
{
    if (window <= 0 || depth + n <= window) return n * depth + n * (n + 1) / 2;
    if (depth >= window) return n * window;
    double within = window - depth; /* the first ones see less than a window */
    return within * depth + within * (within + 1) / 2 + (n - within) * window;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

bench_cost bench_work_prompt(const bench_work *w, size_t depth, size_t n)
{
    double d = (double)depth, t = (double)n, window = (double)w->window;
    return (bench_cost){.bytes = w->layer_bytes + w->head_bytes + w->kv_bytes * d +
                                 w->local_kv_bytes * smaller(d, window),
                        .multiply_adds = w->layer_adds * t + w->head_adds + w->kv_adds * pairs(d, t, 0) +
                                         w->local_kv_adds * pairs(d, t, window)};
}

bench_cost bench_work_decode(const bench_work *w, size_t depth, size_t n, size_t n_streams)
{
    double d = (double)depth, t = (double)n, s = (double)n_streams, window = (double)w->window;
    double whole = pairs(d, t, 0), local = pairs(d, t, window);
    return (bench_cost){
        .bytes = (w->layer_bytes + w->head_bytes) * t + s * (w->kv_bytes * whole + w->local_kv_bytes * local),
        .multiply_adds =
            s * ((w->layer_adds + w->head_adds) * t + w->kv_adds * whole + w->local_kv_adds * local)};
}

bench_cost bench_work_encode(const bench_work *w, size_t n_texts, size_t n)
{
    double s = (double)n_texts, t = (double)n, window = (double)w->window;
    double seen = window > 0 ? smaller(t, window) : t, heads = w->head_each ? t : 1;
    return (bench_cost){.bytes = w->layer_bytes + w->head_bytes,
                        .multiply_adds = s * (w->layer_adds * t + w->head_adds * heads + w->kv_adds * t * t +
                                              w->local_kv_adds * t * seen)};
}
