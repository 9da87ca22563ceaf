/* encdec.c: encoder-decoders (T5, BART, Marian, Whisper): an encoder and a decoder, each configured for
 * itself, and attention from one to the other (cross.h). */
#include <stdlib.h>

#include "net/passes.h"
#include "net/stem.h"

typedef struct encdec {
    model_config enc, dec;
    net *encoder, *decoder;
} encdec;

/* What the encoder's half computes, in terms of the whole. */
static model_config encoder_half(const model_config *c)
{
    model_config e = *c;
    const source_conf *s = &c->source;
    e.n_layer = s->n_layer;
    e.n_ctx = s->n_ctx;
    e.ffn.n_ff = s->n_ff;
    if (s->n_head != c->attn.n_head) e.attn.head_dim = c->n_embd / s->n_head;
    e.attn.n_head = e.attn.n_head_kv = s->n_head;
    e.norm.final = s->final_norm;
    e.layers = NULL;
    return e;
}

static void encdec_free(net *n)
{
    encdec *x = (encdec *)n;
    if (!x) return;
    encoder_ops.free(x->encoder);
    decoder_ops.free(x->decoder);
    free(x);
}

static int encdec_load(net **ret, const model *m, team *t, const net_limits *limits, shoal_err *err)
{
    encdec *x = calloc(1, sizeof *x);
    if (!x) return err_nomem(err);
    x->dec = *model_get_config(m);
    x->enc = encoder_half(&x->dec);
    net_limits of_encoder = *limits;
    if (x->enc.n_ctx) of_encoder.n_ctx = x->enc.n_ctx;
    int rc = encoder_load_as(&x->encoder, m, &x->enc, "enc.", t, &of_encoder, err);
    if (rc == 0) rc = decoder_load_as(&x->decoder, m, &x->dec, "dec.", t, limits, err);
    if (rc) {
        encdec_free((net *)x);
        return rc;
    }
    *ret = (net *)x;
    return 0;
}

static kv_shape encdec_kv(const model *m)
{
    return decoder_kv_as(m, model_get_config(m), "dec.");
}

static void encdec_decode(net *n, team *t, const kv *cache, const net_item *items, size_t n_items,
                          net_row_fn fn, void *user)
{
    decoder_ops.decode(((encdec *)n)->decoder, t, cache, items, n_items, fn, user);
}

static void encdec_encode(net *n, team *t, net_input *items, size_t n_items)
{
    encoder_ops.encode(((encdec *)n)->encoder, t, items, n_items);
}

static int encdec_positions(const model_config *c, const net_input *in, size_t *ret, shoal_err *err)
{
    size_t n_mel = c->source.n_mel;
    if ((n_mel > 0) != (in->features != NULL))
        return err_set(err, SHOAL_EINVALID, n_mel ? "this model hears sound" : "this model reads text");
    *ret = n_mel ? stem_positions(in->n_features) : in->n;
    if (n_mel && in->width != n_mel)
        return err_set(err, SHOAL_EINVALID, "frames of %zu bands; this model hears %zu", in->width, n_mel);
    if (*ret > c->source.n_ctx)
        return err_set(err, SHOAL_ELIMIT, "%zu frames are over the %zu that this model hears at once",
                       in->n_features, 2 * c->source.n_ctx);
    return 0;
}

static size_t encdec_longest(const model_config *c, size_t n_ctx)
{
    return n_ctx;
}

static size_t encdec_cross_bytes(const net *n, size_t rows)
{
    return decoder_cross_bytes(((const encdec *)n)->decoder, rows);
}

static void encdec_cross(net *n, team *t, const adapter *a, const float *values, size_t rows, void *out)
{
    decoder_cross(((encdec *)n)->decoder, t, a, values, rows, out);
}

const net_ops encdec_ops = {.name = "encoder-decoder",
                            .roles = NET_DECODES | NET_ENCODES | NET_CROSS,
                            .load = encdec_load,
                            .free = encdec_free,
                            .kv = encdec_kv,
                            .decode = encdec_decode,
                            .encode = encdec_encode,
                            .positions = encdec_positions,
                            .longest = encdec_longest,
                            .cross_bytes = encdec_cross_bytes,
                            .cross = encdec_cross};
