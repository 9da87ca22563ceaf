/* split.h: a network's layers over machines: who computes how many of them, and what a token costs then.
 *
 * The first stage has the embedding, the head and all sequences, and reaches every other stage itself (the
 * hub, worker/stage_link.h). While one step is at a later stage the first one computes another, so what a
 * busy chain does in a second is bounded by its slowest stage: the split with the fastest slowest stage is
 * the best one. Of those that are equal the one whose token passes soonest is taken.
 *
 *     split_place p[] = {{.free_bytes = 4 << 30, .bytes_per_s = 1e10}, ...};
 *     split_part parts[SPLIT_STAGES_MAX];
 *     if (split_deal(&shape, p, n_places, 2, parts) == 0) ... parts[0] is the first stage ...
 *     split_cost cost = split_price(&shape, p, parts, 2, 0);
 *
 * How fast a stage is follows from what its machine has measured (node.h): decoding reads each weight once a
 * token and multiplies once with it, and the slower of the two counts. Pure; no allocation but one scratch.
 */
#ifndef CLUSTER_SPLIT_H
#define CLUSTER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SPLIT_STAGES_MAX = 32 };

#define SPLIT_LOCAL_RTT_MS 0.1 /* between two processes of one machine, over a Unix socket */

/* A network that can be cut between its layers. Bytes are those of weights. */
typedef struct split_shape {
    size_t n_layer, n_embd;
    uint64_t layer_bytes, layer_multiplies; /* of one layer, a token: the mean */
    uint64_t outer_bytes;                   /* embedding and head, which the first stage has */
    uint64_t head_bytes, head_multiplies;   /* what of these a token reads */
    uint64_t kv_bytes;                      /* cache of all layers */
} split_shape;

/* Where a stage could be. A machine may be listed more than once, each time with its share of memory and
 * speed. */
typedef struct split_place {
    size_t machine;
    uint64_t free_bytes;
    double bytes_per_s, multiplies_per_s; /* 0: not known, and not counted */
    double rtt_ms;                        /* from whoever plans; see split_price */
    bool unreached; /* no other machine reaches its workers: a later stage only where the first one is, too */
} split_place;

typedef struct split_part {
    size_t place;
    size_t first, end; /* layers */
} split_part;

typedef struct split_cost {
    double compute_ms, slowest_ms; /* of a token: all stages, and the slowest one of them */
    double hop_ms;                 /* of a token: round trips to all other stages */
    size_t n_hops;                 /* such round trips */
    uint64_t hop_bytes;            /* a token's row, one way */
} split_cost;

/* n_stages parts that cover all layers, in the order of the layers; 1 .. SPLIT_STAGES_MAX. SHOAL_ELIMIT: they
 * have no room for it; SHOAL_ENOMEM. Nothing is written then. */
int split_deal(const split_shape *s, const split_place *p, size_t n_places, size_t n_stages,
               split_part *ret_parts);
/* Between two machines the round trips of both from whoever plans are added: they cannot be farther apart.
 * row_bytes: of one row on the wire; 0: 4 n_embd. */
split_cost split_price(const split_shape *s, const split_place *p, const split_part *parts, size_t n_stages,
                       uint64_t row_bytes);
/* Memory of a stage, and what it computes a token for; first: it is the first one. */
uint64_t split_memory(const split_shape *s, size_t n_layers, bool first);
double split_stage_ms(const split_shape *s, const split_place *p, size_t n_layers, bool first);

#endif
