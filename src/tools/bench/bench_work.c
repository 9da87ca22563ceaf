/* bench_work.c: bytes and multiply-adds by the names and shapes of a model's tensors; see bench_work.h. */
#include "bench/bench_work.h"

#include <string.h>

#include "model/packed/regroup.h"

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

/* As it runs, which is as in the file unless it is regrouped. */
static double bytes_of(const model *m, const tensor *t)
{
    dtype as = regroup_type(m, t);
    double n = (double)t->bytes / (double)dtype_block_bytes(t->type) * (double)dtype_block(t->type);
    return n / (double)dtype_block(as) * (double)dtype_block_bytes(as);
}

static bool runs_as_float(const model *m, const tensor *t)
{
    return dtype_is_float(regroup_type(m, t));
}

/* Of a layer's experts a token passes n_used. */
static double part_used(const tensor *t, const model_config *c)
{
    bool experts = t->n_dims == 3 && c->ffn.n_expert && t->dims[2] == c->ffn.n_expert;
    return experts ? (double)c->ffn.n_used / (double)c->ffn.n_expert : 1;
}

/* bytes: of one number */
static void add_kv(bench_work *w, const model_config *c, double bytes)
{
    double each = (double)c->attn.n_head_kv * (double)c->attn.head_dim * 2 * bytes;
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

bench_work bench_work_of(const model *m, kv_type kept)
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
        *(layer ? &w.layer_bytes : &w.head_bytes) += bytes_of(m, t) * part;
        *(layer ? &w.layer_adds : &w.head_adds) += adds;
        if (runs_as_float(m, t)) float_adds += adds;
    }
    w.head_each = c->task == TASK_TAG || c->task == TASK_FILL_MASK;
    w.is_float = float_adds > (w.layer_adds + w.head_adds) / 2;
    const tensor *k = model_tensor(m, "blk.0.attn_k.weight");
    bool half = kept == KV_F16 || (kept == KV_AS_WEIGHTS && k && !runs_as_float(m, k));
    add_kv(&w, c, kept == KV_Q8_0 ? 1 + sizeof(float) / (double)c->attn.head_dim : half ? 2 : 4);
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

/* ---- of an encoder-decoder ----------------------------------------------------------------------- */

static bool bench_work_begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Of cross-attention, what makes keys and values of a source; the rest is each token's. */
static bool makes_cross(const char *name)
{
    const char *cross = strstr(name, ".cross_attn_");
    return cross &&
           (bench_work_begins(cross, ".cross_attn_k.") || bench_work_begins(cross, ".cross_attn_v."));
}

/* Matrices that a source passes: multiply-adds for each of its positions as a share of their weights; 0: none
 * of them. The first convolution goes over every frame, and two frames make a position. */
static double of_source(const char *name)
{
    if (strcmp(name, "enc.conv1.weight") == 0) return 2;
    return bench_work_begins(name, "enc.blk.") || strcmp(name, "enc.conv2.weight") == 0 || makes_cross(name);
}

static bool of_reply(const char *name, const model_config *c)
{
    if (strcmp(name, "token_embd.weight") == 0) return c->tied;
    return (bench_work_begins(name, "dec.blk.") && !makes_cross(name)) || bench_work_begins(name, "output.");
}

static bool is_table(const char *name)
{
    return strstr(name, "attn_rel_b") != NULL; /* looked up by distance */
}

static void add_matrix(bench_source *w, const model *m, const tensor *t, double *float_adds)
{
    const model_config *c = model_get_config(m);
    double adds = 1, source = of_source(t->name);
    for (size_t k = 0; k < t->n_dims; k++) adds *= (double)t->dims[k];
    if (source > 0) {
        w->encoder_bytes += bytes_of(m, t);
        w->encoder_adds += source * adds;
    } else if (of_reply(t->name, c)) {
        bool layer = bench_work_begins(t->name, "dec.");
        *(layer ? &w->reply.layer_bytes : &w->reply.head_bytes) += bytes_of(m, t);
        *(layer ? &w->reply.layer_adds : &w->reply.head_adds) += adds;
    } else {
        return;
    }
    if (runs_as_float(m, t)) *float_adds += source > 0 ? source * adds : adds;
}

bench_source bench_source_of(const model *m)
{
    const model_config *c = model_get_config(m);
    const source_conf *s = &c->source;
    double float_adds = 0, dim = (double)c->attn.n_head_kv * (double)c->attn.head_dim;
    bench_source w = {0};
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        if (t->n_dims > 1 && !is_table(t->name)) add_matrix(&w, m, t, &float_adds);
    }
    double source_dim =
        s->n_head == c->attn.n_head ? (double)c->attn.n_head * (double)c->attn.head_dim : (double)c->n_embd;
    w.pair_adds = 2 * source_dim * (double)s->n_layer;
    w.cross_bytes = 2 * dim * sizeof(float) * (double)c->n_layer;
    w.cross_adds = 2 * (double)c->attn.n_head * (double)c->attn.head_dim * (double)c->n_layer;
    w.reply.is_float = float_adds > (w.encoder_adds + w.reply.layer_adds + w.reply.head_adds) / 2;
    const tensor *k = model_tensor(m, "dec.blk.0.attn_k.weight");
    add_kv(&w.reply, c, k && !runs_as_float(m, k) ? 2 : 4);
    return w;
}

bench_cost bench_source_read(const bench_source *w, size_t n)
{
    double t = (double)n;
    bench_cost first = bench_source_reply(w, n, 1);
    return (bench_cost){.bytes = w->encoder_bytes + first.bytes,
                        .multiply_adds = w->encoder_adds * t + w->pair_adds * t * t + first.multiply_adds};
}

bench_cost bench_source_reply(const bench_source *w, size_t n, size_t n_new)
{
    bench_cost c = bench_work_decode(&w->reply, 1, n_new, 1);
    c.bytes += w->cross_bytes * (double)n * (double)n_new;
    c.multiply_adds += w->cross_adds * (double)n * (double)n_new;
    return c;
}
