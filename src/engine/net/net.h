/* net.h: a network by its operations, whatever its family.
 *
 * The engine holds a net and asks its ops; it never names a family. One net may decode (next-token logits
 * over a KV cache), encode (a ragged batch of whole inputs), or do both: then its decoder reads what its
 * encoder made of a source (NET_CROSS).
 *
 *     const net_ops *ops = net_ops_for(model_get_config(m), &err);
 *     net *n;
 *     ops->load(&n, m, team, &limits, &err);
 *     ops->encode(n, team, inputs, n_inputs);          ... inputs[i].values
 *     ops->decode(n, team, cache, items, n_items, on_row, user);
 *     ops->free(n);
 *
 * An item's bits depend on its own tokens, source and adapter alone: how prefill was cut, who else is in the
 * batch with which adapter and how many threads there are changes nothing. */
#ifndef NET_NET_H
#define NET_NET_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "compute/compute.h"
#include "model/adapter.h"
#include "model/model.h"
#include "net/attention/kv.h"

typedef struct net net;

/* One sequence's part of a decode step. */
typedef struct net_item {
    kv_seq *seq;        /* room for n more is reserved; committed by the caller after the step */
    const int32_t *ids; /* [n], at positions seq->n_tokens ... */
    size_t n;
    size_t n_out;      /* logits of the last n_out of them are wanted */
    const void *cross; /* NET_CROSS: what ops->cross wrote for its source of n_cross positions */
    size_t n_cross;
    const adapter *adapter; /* of its tokens; NULL: the model as it is */
} net_item;

/* One input of an encode step: tokens, or features of another kind (log-mel frames, pixels, a series). */
typedef struct net_input {
    const int32_t *ids;
    const uint8_t *type_ids; /* NULL: zeros */
    size_t n;                /* tokens, 1 .. n_ctx */
    const float *features;   /* [n_features][width] instead of ids */
    size_t n_features, width;
    const uint32_t *at; /* fill-mask: the n_at tokens whose logits are wanted; NULL: all */
    size_t n_at;
    /* Recurrent: [net_state_floats] that the step goes on from and leaves; NULL: zeros, dropped. */
    float *state;
    bool every;             /* recurrent: logits of every row, not only of the last */
    const adapter *adapter; /* NULL: the model as it is */
    /* Out: values[rows][cols], valid until the next step. What they are follows from the model's task:
     * classify, rerank, image, score: logits[1][n_labels]; tag: logits[n][n_labels]; embed: [1][n_embd];
     * fill-mask: logits[n_at or n][n_vocab]; of a NET_CROSS net: the encoder's rows [positions][n_embd]. */
    const float *values;
    size_t rows, cols;
} net_input;

/* Layers [first, end) of a network that is cut into stages; end 0: all of them. */
typedef struct net_layers {
    size_t first, end;
} net_layers;

/* What a step is bounded by. */
typedef struct net_limits {
    net_layers part; /* nothing else of the network is read or kept (NET_DECODES without NET_CROSS) */
    size_t n_ctx;    /* positions of one sequence */
    size_t max_tokens, max_rows; /* decode: tokens and wanted rows of a step */
    size_t max_inputs;           /* encode: inputs of a step, */
    size_t max_positions;        /* and their tokens or frames together */
} net_limits;

/* Called by one member for each wanted row, different rows at the same time on different members.
 * `at` counts the item's wanted rows. logits[n_vocab] may be written to. */
typedef void (*net_row_fn)(void *user, team_member *m, size_t item, size_t at, float *logits);

enum {
    NET_DECODES = 1, /* decode, kv */
    NET_ENCODES = 2, /* encode */
    NET_CROSS = 4,   /* both, and cross: its decoder needs a source */
};

typedef struct net_ops {
    const char *name; /* "decoder", for logs */
    unsigned roles;
    /* Weights are packed from m for t's instruction set; m's data are not needed afterwards. */
    int (*load)(net **ret, const model *m, team *t, const net_limits *l, shoal_err *err);
    void (*free)(net *n); /* NULL is fine */
    /* Beside quantised weights the cache is F16, which is finer than they are; beside float weights F32. */
    kv_shape (*kv)(const model *m);
    /* Within the limits given to load (asserted). The thread that owns t; fn is called before it returns. */
    void (*decode)(net *n, team *t, const kv *cache, const net_item *items, size_t n_items, net_row_fn fn,
                   void *user);
    /* A decoder in stages, each a net of its own with a cache of its own; NULL: it cannot be cut. Layer 0's
     * has the embeddings and the head, too. kv_part: the cache of a part, of the same type for all parts.
     * walk: rows[tokens][n_embd], the stream as the stage before left it, becomes what this one makes of it;
     * the first embeds ids and only writes rows. Later stages look at no ids. finish, of the first, when the
     * last stage's rows are back, the wanted ones alone, in order: rows[sum of n_out][n_embd]. It looks at
     * n_out and adapter of the items, not at their sequences. walk, ..., finish make the bits of one decode.
     */
    kv_shape (*kv_part)(const model *m, net_layers part);
    void (*walk)(net *n, team *t, const kv *cache, const net_item *items, size_t n_items, float *rows);
    void (*finish)(net *n, team *t, const net_item *items, size_t n_items, const float *rows, net_row_fn fn,
                   void *user);
    void (*encode)(net *n, team *t, net_input *items, size_t n_items);
    /* Positions that the encoder makes of an input (SHOAL_ELIMIT, SHOAL_EINVALID: it cannot), and the most
     * that it makes of any when tokens are bounded by n_ctx. */
    int (*positions)(const model_config *c, const net_input *in, size_t *ret, shoal_err *err);
    size_t (*longest)(const model_config *c, size_t n_ctx);
    /* What the decoder's layers want of `rows` encoder rows: bytes, and the making of it. values as encode
     * gave them. */
    size_t (*cross_bytes)(const net *n, size_t rows);
    void (*cross)(net *n, team *t, const adapter *a, const float *values, size_t rows, void *out);
} net_ops;

/* What a recurrent network carries from piece to piece of a series, in floats; 0 for others. */
size_t net_state_floats(const model_config *c);

/* NULL when no network here computes it; err says what is missing. */
const net_ops *net_ops_for(const model_config *c, shoal_err *err);

/* May a whole model's keys and values be kept so? SHOAL_EUNSUPPORTED: its heads are not made for it, or it
 * keeps none and is asked to all the same. */
int net_check_kv_type(const model *m, kv_type t, shoal_err *err);
/* Is t another type than the one in which m's keys and values are kept without being asked? Of a type that
 * net_check_kv_type allows. */
bool net_kv_type_deviates(const model *m, kv_type t);

#endif
