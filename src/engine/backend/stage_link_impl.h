/* stage_link_impl.h: the link's insides, for stage_link.c (the engine's side, and its life) and
 * stage_link_loop.c (the streams to the stages). The engine thread and the link's loop meet under one lock;
 * gRPC is touched by the loop alone. */
#ifndef STAGE_LINK_IMPL_H
#define STAGE_LINK_IMPL_H

#include <pthread.h>

#include "base/buf.h"
#include "shoal/v1/stage.pb-c.h"
#include "grpc/grpc.h"
#include "wire/loop.h"
#include "backend/stage_link.h"

/* A step on its way: `hop` says to which stage it was sent last. */
typedef struct trip {
    uint64_t number, sent_ns;
    size_t hop, n_rows, n_wanted;
    Shoal__V1__StageStep step; /* without rows; borrows the next three */
    Shoal__V1__StageItem *items, **item_at;
    uint32_t *numbers; /* pages and marks of all items, then copies */
    uint8_t *bytes;    /* rows as they travel: to the first hop, and back from the last */
    bool under_way, back;
    bool finite;           /* what came so far; false from the beginning: it is nobody's fault but ours */
    const struct hop *bad; /* whose rows were the first that are not finite; NULL: nobody's */
} trip;

typedef struct hop {
    struct stage_link *l;
    char *address;
    bool far; /* on another machine */
    grpc_channel *channel;
    grpc_client_call *call;
    bool ready, said; /* said: that its numbers were not finite, in this life */
    stage_facts facts;
} hop;

struct stage_link {
    shards table;
    stage_link_options o;
    char *digest, *name;
    tls_context *tls; /* NULL: all stages are on this machine */
    size_t row_bytes, n_hops;
    hop hops[SHARDS_MAX];
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t retry;
    uv_thread_t thread;
    bool has_thread;
    buf scratch;          /* the loop's */
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t changed;
    trip trips[SHARDS_MAX]; /* oldest first: first, first + 1, ... modulo SHARDS_MAX */
    size_t first, n_trips;
    uint64_t last_number;
    bool all_ready, broken, closing;
    shoal_err why; /* of the newest loss or refusal; code SHOAL_EINVALID: it will not pass */
    stage_link_stats stats;
    char wrong[sizeof((shoal_err *)0)->message]; /* the engine thread's: what was wrong with its last call */
};

static inline trip *trip_at(stage_link *l, size_t i)
{
    return &l->trips[(l->first + i) % SHARDS_MAX];
}

/* Under the lock: what is on its way is not. */
void stage_link_drop_trips(stage_link *l);
/* The loop's thread, which goes for the stages at once; to be ended by stage_link_close, also on failure. */
int stage_link_start(stage_link *l, shoal_err *err);

#endif
