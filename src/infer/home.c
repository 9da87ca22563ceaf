/* home.c: see home.h. */
#include "infer/home.h"

#include "base/buf.h"

/* What the model's matrices take when each is packed once. Too much costs addresses only, too little another
 * mapping. */
static size_t estimate(const model *m)
{
    size_t all = 0;
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        size_t rows = 1, n = 1, bytes;
        if (t->n_dims < 2) continue;
        rows = t->dims[1];
        for (size_t d = 2; d < t->n_dims; d++) n *= t->dims[d]; /* experts: each is a matrix */
        bytes = wmat_packed_bytes(t->type, rows, t->dims[0]);
        if (bytes == SIZE_MAX || size_mul(bytes, n, &bytes) || size_add(all, bytes, &all)) return 0;
    }
    return all;
}

int home_load(home *h, const net_ops *ops, model *m, team *t, const net_limits *l, shoal_err *err)
{
    int rc = weights_new(&h->weights, t, estimate(m), err);
    if (rc) return rc;
    model_pack_into(m, h->weights);
    rc = ops->load(&h->net, m, t, l, err);
    model_pack_into(m, NULL);
    return rc;
}

void home_free(home *h, const net_ops *ops)
{
    if (h->net) ops->free(h->net);
    weights_free(h->weights);
    *h = (home){0};
}
