/* input.c: a request's input becomes the engine's own; see input.h. */
#include "infer/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sha256.h"

static int check_tokens(const model_config *c, const enc_request *r, size_t n_ctx, shoal_err *err)
{
    if (r->n_ids == 0) return err_set(err, SHOAL_EINVALID, "the input is empty");
    if (r->n_ids > n_ctx)
        return err_set(err, SHOAL_ELIMIT,
                       "This model's maximum context length is %zu tokens, and the text has %zu", n_ctx,
                       r->n_ids);
    for (size_t i = 0; i < r->n_ids; i++) {
        if (r->ids[i] < 0 || (size_t)r->ids[i] >= c->n_vocab)
            return err_set(err, SHOAL_EINVALID, "token %zu is %d, the vocabulary has %zu", i, r->ids[i],
                           c->n_vocab);
        /* Who has no types does not look at them: tokenizers of DeBERTa v3 give the second text type 1. */
        if (c->n_types > 0 && r->type_ids && r->type_ids[i] >= c->n_types)
            return err_set(err, SHOAL_EINVALID, "token %zu has type %d, the model has %zu", i, r->type_ids[i],
                           c->n_types);
    }
    for (size_t i = 0; i < r->n_at; i++)
        if (r->at[i] >= r->n_ids)
            return err_set(err, SHOAL_EINVALID, "token %u was asked for, the input has %zu", r->at[i],
                           r->n_ids);
    return r->at && r->n_at == 0 ? err_set(err, SHOAL_EINVALID, "no token was asked for") : 0;
}

/* Features may come from a file as they are. */
static int check_features(const enc_request *r, size_t *ret_n, shoal_err *err)
{
    if (r->n_features == 0 || r->width == 0 || size_mul(r->n_features, r->width, ret_n))
        return err_set(err, SHOAL_EINVALID, "an input of %zu rows of %zu features", r->n_features, r->width);
    for (size_t i = 0; i < *ret_n; i++)
        if (!isfinite(r->features[i]))
            return err_set(err, SHOAL_EINVALID, "feature %zu of row %zu is not a finite number", i % r->width,
                           i / r->width);
    return 0;
}

int input_digest(const input *in, uint64_t *ret)
{
    sha256_digest d;
    sha256 *s = sha256_new();
    if (!s) return SHOAL_ENOMEM;
    sha256_add(s, &in->in.n_features, sizeof in->in.n_features);
    sha256_add(s, in + 1, in->bytes);
    sha256_end(s, &d);
    memcpy(ret, &d, sizeof *ret);
    return 0;
}

/* The struct, then floats, ids, places and types, widest first. */
static int input_copy(input **ret, const enc_request *r, size_t n_floats, shoal_err *err)
{
    size_t floats = n_floats * sizeof *r->features, ids = r->n_ids * sizeof *r->ids,
           places = r->n_at * sizeof *r->at, bytes;
    if (n_floats > SIZE_MAX / sizeof *r->features ||
        size_add(floats, ids + places + r->n_ids + sizeof(input), &bytes))
        return err_nomem(err);
    input *in = calloc(1, bytes);
    if (!in) return err_nomem(err);
    char *at = (char *)(in + 1);
    in->in.n = r->n_ids;
    in->in.n_features = r->n_features;
    in->in.width = r->width;
    if (n_floats) in->in.features = memcpy(at, r->features, floats);
    if (r->n_ids) in->in.ids = memcpy(at + floats, r->ids, ids);
    if (r->n_at) in->in.at = memcpy(at + floats + ids, r->at, places);
    in->in.n_at = r->n_at;
    if (r->n_ids && r->type_ids) in->in.type_ids = memcpy(at + floats + ids + places, r->type_ids, r->n_ids);
    in->bytes = bytes - sizeof *in;
    *ret = in;
    return 0;
}

int input_new(input **ret, const net_ops *ops, const model_config *c, const enc_request *r, size_t n_ctx,
              shoal_err *err)
{
    input *in = NULL;
    size_t n_floats = 0;
    int rc = r->features ? check_features(r, &n_floats, err) : check_tokens(c, r, n_ctx, err);
    if (rc == 0) rc = input_copy(&in, r, n_floats, err);
    if (rc == 0) rc = ops->positions(c, &in->in, &in->n_positions, err);
    if (rc) {
        free(in);
        return rc;
    }
    *ret = in;
    return 0;
}
