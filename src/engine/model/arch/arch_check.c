/* arch_check.c: is this configuration one that can be a model? */
#include "model/arch/arch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* An encoder whose heads are others than the decoder's shares the width among them. */
static bool source_divides(const model_config *c)
{
    size_t n = c->source.n_head;
    return c->source.n_layer == 0 || n == c->attn.n_head || (n > 0 && c->n_embd % n == 0);
}

static int check_heads(const model_config *c, const char *what, shoal_err *err)
{
    const attn_conf *a = &c->attn;
    const rope_conf *rope = &c->pos.rope;
    if (a->head_dim == 0)
        return err_set(err, SHOAL_EINVALID, "%s: a width of %zu cannot be divided among %zu heads", what,
                       c->n_embd, a->n_head);
    if (a->n_head % a->n_head_kv != 0)
        return err_set(err, SHOAL_EINVALID, "%s: %zu query heads cannot share %zu key/value heads", what,
                       a->n_head, a->n_head_kv);
    if (!source_divides(c))
        return err_set(err, SHOAL_EINVALID,
                       "%s: the encoder's width of %zu cannot be divided among %zu heads", what, c->n_embd,
                       c->source.n_head);
    if (c->arch->rope && (rope->dim == 0 || rope->dim % 2 != 0 || rope->dim > a->head_dim))
        return err_set(err, SHOAL_EINVALID, "%s: %zu rotary dimensions in heads of %zu", what, rope->dim,
                       a->head_dim);
    return 0;
}

typedef struct size_limit {
    const char *name;
    size_t value, min, max;
} size_limit;

static int check_sizes(const size_limit *sizes, size_t n, const char *what, shoal_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (sizes[i].value < sizes[i].min || sizes[i].value > sizes[i].max)
            return err_set(err, SHOAL_EINVALID, "%s: a %s of %zu; %zu to %zu are allowed", what,
                           sizes[i].name, sizes[i].value, sizes[i].min, sizes[i].max);
    return 0;
}

/* Far above any small model, far below what makes products of three sides overflow. */
static int check_transformer(const model_config *c, const char *what, shoal_err *err)
{
    size_t text = c->image.size ? 0 : 1, feed = c->ffn.n_expert ? 0 : 1;
    const size_limit sizes[] = {
        {"vocabulary", c->n_vocab, text, 4u << 20},
        {"context", c->n_ctx, 1, 16u << 20},
        {"width", c->n_embd, 1, 65536},
        {"layer count", c->n_layer, 1, 1024},
        {"head count", c->attn.n_head, 1, 1024},
        {"key/value head count", c->attn.n_head_kv, 1, 1024},
        {"feed-forward width", c->ffn.n_ff, feed, 1u << 20},
        {"token type count", c->n_types, 0, 1024},
        {"head width", c->attn.head_dim, 0, 4096},
        {"expert count", c->ffn.n_expert, 0, 1024},
        {"number of experts that answer", c->ffn.n_used, c->ffn.n_expert ? 1 : 0, c->ffn.n_expert},
        {"expert width", c->ffn.n_ff_expert, c->ffn.n_expert ? 1 : 0, 1u << 20},
        {"window", c->attn.window, 0, 16u << 20},
        {"width of the embeddings", c->n_embd_in, 0, 65536},
        {"convolution width", c->n_conv, 0, 64},
        {"number of relative positions", c->pos.relative, 0, 65536},
        {"number of distance buckets", c->pos.buckets.n, 0, 65536},
        {"source layer count", c->source.n_layer, 0, 1024},
        {"source context", c->source.n_ctx, 0, 1u << 20},
        {"source feed-forward width", c->source.n_ff, 0, 1u << 20},
        {"source head count", c->source.n_head, 0, 1024},
        {"number of mel bands", c->source.n_mel, 0, 1024},
    };
    int rc = check_sizes(sizes, COUNT(sizes), what, err);
    return rc != 0 ? rc : check_heads(c, what, err);
}

static int check_series(const model_config *c, const char *what, shoal_err *err)
{
    const size_limit sizes[] = {
        {"layer count", c->n_layer, 1, 1024},
        {"number of inputs", c->series.n_input, 1, 65536},
        {"number of hidden units", c->series.n_hidden, 1, 65536},
        {"label count", c->head.n_labels, 1, 65536},
    };
    return check_sizes(sizes, COUNT(sizes), what, err);
}

static int check_image(const model_config *c, const char *what, shoal_err *err)
{
    const size_limit sizes[] = {
        {"image size", c->image.size, 1, 4096},
        {"patch size", c->image.patch, 1, c->image.size},
        {"number of channels", c->image.channels, 1, 16},
    };
    return check_sizes(sizes, COUNT(sizes), what, err);
}

int arch_check_config(const model_config *c, const char *what, shoal_err *err)
{
    if (c->series.n_hidden) return check_series(c, what, err);
    int rc = c->task == TASK_IMAGE ? check_image(c, what, err) : 0;
    if (rc == 0) rc = check_transformer(c, what, err);
    if (rc != 0) return rc;
    if (!(c->norm.eps >= 0 && c->norm.eps < 1))
        return err_set(err, SHOAL_EINVALID, "%s: a norm epsilon of %g", what, (double)c->norm.eps);
    bool labelled = c->task == TASK_CLASSIFY || c->task == TASK_TAG || c->task == TASK_IMAGE;
    if (labelled && (c->head.n_labels == 0 || c->head.n_labels > 65536))
        return err_set(err, SHOAL_EINVALID, "%s: %zu labels; 1 to 65536 are allowed", what, c->head.n_labels);
    return 0;
}
