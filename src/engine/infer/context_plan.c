/* context_plan.c: see context_plan.h. The sums are those of engine.c. */
#include "infer/context_plan.h"

#include "net/attention/kv.h"
#include "net/net.h"

#define EMBED_CTX 8192 /* of decoders that embed, unless asked for more: their rows are all in memory */

int context_plan_check(const model_config *c, size_t n_ctx, shoal_err *err)
{
    if (n_ctx <= c->n_ctx || c->n_ctx == 0 || c->task == TASK_IMAGE || c->task == TASK_SCORE) return 0;
    return err_set(err, SHOAL_EINVALID,
                   "the model was made for %zu tokens, so its context cannot be %zu: "
                   "%zu is the most",
                   c->n_ctx, n_ctx, c->n_ctx);
}

size_t context_plan_asked(const model_config *c, size_t n_ctx)
{
    size_t own = c->n_text ? c->n_text : c->n_ctx;
    if (n_ctx) return n_ctx < c->n_ctx ? n_ctx : c->n_ctx;
    return c->attn.causal && own > EMBED_CTX ? EMBED_CTX : own;
}

static bool decodes(const model_config *c)
{
    shoal_err err;
    const net_ops *ops = net_ops_for(c, &err);
    return ops && (ops->roles & NET_DECODES);
}

const char *context_plan_key(const model *m, const engine_options *o, size_t served)
{
    const model_config *c = model_get_config(m);
    if (served >= c->n_ctx) return "";
    if (!decodes(c) || (o->n_ctx && o->n_ctx <= served)) return "context";
    return o->kv_bytes || served < KV_DEFAULT_CTX ? "kv_mb" : "context";
}

static size_t room(const kv_shape *shape, const engine_options *o, size_t n_ctx, shoal_err *err)
{
    size_t n_pages, bytes = o->kv_bytes;
    if (bytes == 0 && kv_default_bytes(shape, kv_default_tokens(o->n_ctx, n_ctx), &bytes, err) != 0) return 0;
    return kv_pages_in(shape, bytes, &n_pages, err) == 0 ? n_pages * KV_PAGE_TOKENS : 0;
}

size_t context_plan_served(const model *m, const engine_options *o)
{
    shoal_err err;
    const model_config *c = model_get_config(m);
    size_t n_ctx = context_plan_asked(c, o->n_ctx);
    if (!decodes(c)) return n_ctx;
    kv_shape shape = net_ops_for(c, &err)->kv(m);
    if (shape.n_layer == 0 || kv_shape_keep_as(&shape, o->kv_type, &err) != 0) return 0;
    size_t most = room(&shape, o, n_ctx, &err);
    return most < n_ctx ? most : n_ctx;
}
