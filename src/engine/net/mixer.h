/* mixer.h: how a layer mixes its tokens, one row of operations a kind.
 *
 * A layer is a mixer and a feed-forward network (layer.h). Its LAYER_ flags name the mixer; what else knows
 * kinds of mixers asks the row:
 *
 *     const mixer *m = mixer_of(config_layer(config, i));
 *     m->n_kv, m->state_bytes                    what a sequence keeps for it
 *     out = m->run(p, layer, in);                what layer.c does with a step
 *
 * A new kind is a LAYER_ flag, a block beside shortconv.c and a row in mixer.c. A recurrent one has state_bytes:
 * it reads the state of an item's sequence and leaves one behind each of its marks (seq_state.h). Constant
 * data; `run` is called by all members, each with its pass. */
#ifndef NET_MIXER_H
#define NET_MIXER_H

#include "net/layer.h"

struct mixer {
    const char *in[PROJ_PARTS_MAX]; /* stems of the layer's `in` projection, */
    size_t n_in;
    const char *out;     /* and of its `out` */
    const char *measure; /* the matrix whose type decides that of the cache */
    size_t n_kv;         /* layers of the key/value cache that it takes */
    /* What it has beside the projections. */
    int (*load)(layer *ly, const model *m, const model_config *c, const char *prefix, shoal_err *err);
    void (*done)(layer *ly);                                /* a zeroed layer is fine */
    size_t (*state_bytes)(const model_config *c);           /* of one sequence's; NULL: it has none */
    void (*place)(layer *ly, size_t slot, size_t state_at); /* where it keeps things: its layer in the cache,
                                                                   its offset in a state */
    rows *(*run)(pass *p, const layer *ly, rows *in);       /* the input of `out`, from the layer's */
};

const mixer *mixer_of(unsigned layer_flags);

#endif
