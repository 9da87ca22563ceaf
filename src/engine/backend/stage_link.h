/* stage_link.h: the other stages of a network, reached over gRPC: infer/shards.h for real.
 *
 * A thread with a loop of its own holds one stream to each stage. A step goes to the second stage, its reply
 * from there to the third, and so on: the first stage carries all rows, as a hub does. That is 2 (n - 1)
 * trips a step where a ring would need n (with two stages the same), and in exchange one process sees every
 * loss and stages know nobody. A stage that is lost takes all that is under way with it; the link connects
 * again for as long as it is open.
 *
 * Between machines there is mutual TLS: the files of the member's folder are read again for every connection,
 * so that a renewed certificate counts from then on.
 *
 *     stage_link_open(&l, &(stage_link_options){.addresses = a, .n = 1, .digest = hex, .part = {0, 4},
 *                                               .n_layer = 8, .n_embd = 512}, &err);
 *     engine_new(&e, m, &(engine_options){.shards = stage_link_shards(l)}, &err);
 *     ... engine_free(e); stage_link_close(l); */
#ifndef BACKEND_STAGE_LINK_H
#define BACKEND_STAGE_LINK_H

#include "base/err.h"
#include "infer/shards.h"
#include "backend/stage_rows.h"

typedef struct stage_link stage_link;

/* Strings are copied. */
typedef struct stage_link_options {
    /* [n], in the order of their layers: "unix:/path", or of another machine "relay:HOST:PORT/NODE/WORKER",
     * whose relay must prove to be NODE and passes the stream to WORKER (join/relay.h) */
    const char *const *addresses;
    size_t n;
    const char *digest, *name; /* of the model; name for logs */
    net_layers part;           /* of the first stage: from 0 on */
    size_t n_layer, n_embd;
    rows_wire wire;
    kv_type kv_type;
    const char *member; /* folder with this machine's certificate, for other machines; NULL: there are none */
    unsigned wait_ms;   /* for all of them to be there; 0: 30 000 */
    unsigned silent_ms; /* a stage that computes a step for longer is taken for lost; 0: eight times the
                         * slowest step so far, from 2000 to 15 000 */
} stage_link_options;

/* What it carried, since it was opened; any thread. */
typedef struct stage_link_stats {
    uint64_t n_steps, n_losses;
    uint64_t sent_bytes, received_bytes;
    double trip_us;    /* moving average, of one stage: from sent to received, without its computing */
    double compute_us; /* and that */
    double slowest_us; /* the longest that one has taken for a step, trip included */
} stage_link_stats;

/* Returns when all stages are there and their layers follow one another. SHOAL_EINVALID when they do not, or
 * have another model; SHOAL_EUNAVAILABLE when one does not come. */
int stage_link_open(stage_link **ret, const stage_link_options *o, shoal_err *err);
/* What the engine asks; lives as long as the link. */
const shards *stage_link_shards(const stage_link *l);
void stage_link_get_stats(stage_link *l, stage_link_stats *ret);
/* No engine uses it any more. NULL is fine. */
void stage_link_close(stage_link *l);

#endif
