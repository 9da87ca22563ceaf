/* net.c: which operations compute a configuration. */
#include "infer/net.h"

#include <stdlib.h>

#include "infer/bert.h"
#include "infer/passes.h"

struct net {
    bert *encoder;
    bert_item *inputs;
};

static void net_free(net *n)
{
    if (!n) return;
    bert_free(n->encoder);
    free(n->inputs);
    free(n);
}

static int net_made(net **ret, net *n, int rc)
{
    if (rc)
        net_free(n);
    else
        *ret = n;
    return rc;
}

static int encoder_load(net **ret, const model *m, team *t, const net_limits *l, shoal_err *err)
{
    net *n = calloc(1, sizeof *n);
    if (n) n->inputs = calloc(l->max_inputs, sizeof *n->inputs);
    if (!n || !n->inputs) return net_made(ret, n, err_nomem(err));
    return net_made(ret, n, bert_new(&n->encoder, m, t, l->max_positions, l->max_inputs, err));
}

static void encoder_step(net *n, team *t, net_input *items, size_t n_items)
{
    for (size_t i = 0; i < n_items; i++)
        n->inputs[i] = (bert_item){.ids = items[i].ids, .type_ids = items[i].type_ids, .n = items[i].n};
    bert_step(n->encoder, t, n->inputs, n_items);
    for (size_t i = 0; i < n_items; i++) {
        items[i].values = n->inputs[i].values;
        items[i].rows = n->inputs[i].rows;
        items[i].cols = n->inputs[i].cols;
    }
}

static int encoder_positions(const model_config *c, const net_input *in, size_t *ret, shoal_err *err)
{
    if (in->features) return err_set(err, SHOAL_EINVALID, "this model reads text");
    *ret = in->n;
    return 0;
}

static size_t encoder_longest(const model_config *c, size_t n_ctx)
{
    return n_ctx;
}

const net_ops encoder_ops = {.name = "encoder",
                             .roles = NET_ENCODES,
                             .load = encoder_load,
                             .free = net_free,
                             .encode = encoder_step,
                             .positions = encoder_positions,
                             .longest = encoder_longest};

const net_ops *net_ops_for(const model_config *c, shoal_err *err)
{
    if (c->task == TASK_GENERATE) return &decoder_ops;
    if (c->task == TASK_CLASSIFY || c->task == TASK_TAG || c->task == TASK_EMBED) return &encoder_ops;
    err_set(err, SHOAL_EUNSUPPORTED, "no network here computes the task \"%s\"", task_name(c->task));
    return NULL;
}
