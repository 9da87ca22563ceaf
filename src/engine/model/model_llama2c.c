/* model_llama2c.c: a llama2.c checkpoint -> model.
 *
 *     i32 dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
 *     f32 values: one array after the other, each over all layers
 *
 * A negative vocabulary says that the classifier is not the embedding. Nothing names the format: the sizes
 * must account for every byte of the file. (Format: export.py's legacy version of karpathy/llama2.c.) */
#include <string.h>

#include "base/cur.h"
#include "model/arch/registry.h"
#include "model/model_build.h"
#include "model/model_priv.h"

enum { HEADER_BYTES = 28 };

/* One array of the file: so many layers of rows x cols, under a name with '#' or a bare one; NULL: passed
 * over. */
typedef struct part {
    const char *name;
    size_t layers, rows, cols;
} part;

enum { N_PARTS = 14 };

static void list_parts(const model_config *c, part parts[N_PARTS])
{
    size_t n = c->n_layer, d = c->n_embd, kv = c->attn.n_head_kv * c->attn.head_dim, ff = c->ffn.n_ff;
    const part all[N_PARTS] = {
        {"token_embd.weight", 1, c->n_vocab, d},
        {"blk.#.attn_norm.weight", n, 1, d},
        {"blk.#.attn_q.weight", n, d, d},
        {"blk.#.attn_k.weight", n, kv, d},
        {"blk.#.attn_v.weight", n, kv, d},
        {"blk.#.attn_output.weight", n, d, d},
        {"blk.#.ffn_norm.weight", n, 1, d},
        {"blk.#.ffn_gate.weight", n, ff, d},
        {"blk.#.ffn_down.weight", n, d, ff},
        {"blk.#.ffn_up.weight", n, ff, d},
        {"output_norm.weight", 1, 1, d},
        {NULL, 1, c->n_ctx, c->attn.head_dim / 2}, /* cosines and sines, which are computed */
        {NULL, 1, c->n_ctx, c->attn.head_dim / 2},
        {c->tied ? NULL : "output.weight", 1, c->tied ? 0 : c->n_vocab, d},
    };
    memcpy(parts, all, sizeof all);
}

static bool read_header(const void *data, size_t len, model_config *c)
{
    int32_t h[7];
    cur at = cur_over(data, len);
    for (int i = 0; i < 7; i++) h[i] = (int32_t)cur_u32(&at);
    if (at.failed) return false;
    for (int i = 0; i < 7; i++)
        if (h[i] == 0 || h[i] > 1 << 24 || (i == 5 ? h[i] < -(1 << 24) : h[i] < 0)) return false;
    *c = arch_llama.base;
    c->arch = &arch_llama;
    c->task = TASK_GENERATE;
    c->n_embd = (size_t)h[0];
    c->ffn.n_ff = (size_t)h[1];
    c->n_layer = (size_t)h[2];
    c->attn.n_head = (size_t)h[3];
    c->attn.n_head_kv = (size_t)h[4];
    c->n_vocab = (size_t)(h[5] < 0 ? -h[5] : h[5]);
    c->n_ctx = (size_t)h[6];
    c->tied = h[5] > 0;
    c->attn.head_dim = c->n_embd % c->attn.n_head == 0 ? c->n_embd / c->attn.n_head : 0;
    c->norm.eps = 1e-5f;
    c->pos.rope.dim = c->attn.head_dim;
    c->pos.rope.interleaved = true;
    c->eos_ids[0] = 2;
    c->n_eos = c->n_vocab > 2;
    shoal_err unused;
    return arch_check_config(c, "", &unused) == 0;
}

bool model_is_llama2c(const void *data, size_t len)
{
    model_config c;
    part parts[N_PARTS];
    size_t values = 0, total;
    if (!read_header(data, len, &c)) return false;
    list_parts(&c, parts); /* sides passed arch_check_config: products of three fit */
    for (int i = 0; i < N_PARTS; i++) values += parts[i].layers * parts[i].rows * parts[i].cols;
    return !size_mul(values, sizeof(float), &total) && !size_add(total, HEADER_BYTES, &total) && total == len;
}

static int add_part(model *m, const part *p, const float **at, shoal_err *err)
{
    const char *hash = p->name ? strchr(p->name, '#') : NULL;
    size_t n = p->rows * p->cols;
    for (size_t layer = 0; p->name && layer < p->layers; layer++) {
        tensor *t = &m->tensors[m->n_tensors++];
        *t = (tensor){.type = DT_F32,
                      .n_dims = p->rows > 1 ? 2 : 1,
                      .dims = {p->cols, p->rows, 1, 1},
                      .data = *at + layer * n,
                      .bytes = n * sizeof(float)};
        t->name = hash ? arena_printf(m->mem, "%.*s%zu%s", (int)(hash - p->name), p->name, layer, hash + 1)
                       : arena_strdup(m->mem, p->name);
        if (!t->name) return err_nomem(err);
    }
    *at += p->layers * n;
    return 0;
}

/* The checkpoint holds none: tok512.bin beside it, after the size of its vocabulary, or tokenizer.bin. */
static int load_tokenizer(model *m, shoal_err *err)
{
    const char *slash = strrchr(m->path, '/');
    int n = slash ? (int)(slash - m->path + 1) : 0;
    char *own = arena_printf(m->mem, "%.*stok%zu.bin", n, m->path, m->config.n_vocab);
    char *path = arena_printf(m->mem, "%.*stokenizer.bin", n, m->path);
    buf text = {0};
    if (!own || !path) return err_nomem(err);
    if (file_exists(own)) path = own;
    int rc = file_read(&text, path, MODEL_JSON_MAX, err);
    if (rc == 0) rc = tokenizer_from_llama2c(&m->tok, text.data, text.len, m->config.n_vocab, path, err);
    if (rc == 0) m->tok_path = path;
    buf_done(&text);
    return model_build_tokenizer(m, rc, err);
}

int model_load_llama2c(model *m, const model_options *opts, shoal_err *err)
{
    part parts[N_PARTS];
    const float *at = (const float *)((const uint8_t *)m->maps[0].data + HEADER_BYTES);
    if (!read_header(m->maps[0].data, m->maps[0].len, &m->config))
        return err_set(err, SHOAL_EFORMAT, "%s: is no llama2.c checkpoint", m->path);
    list_parts(&m->config, parts);
    m->tensors = arena_alloc(m->mem, (m->config.n_layer * 9 + 3) * sizeof *m->tensors);
    if (!m->tensors) return err_nomem(err);
    int rc = 0;
    for (int i = 0; rc == 0 && i < N_PARTS; i++) rc = add_part(m, &parts[i], &at, err);
    return rc == 0 && !opts->no_tokenizer ? load_tokenizer(m, err) : rc;
}
