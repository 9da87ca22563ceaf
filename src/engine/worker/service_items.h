/* service_items.h: a call whose answer is made of items that the engine computes: texts to classify, replies
 * to weigh.
 *
 * All items are made and checked first; then up to `together` of them are in the engine's queue at a time
 * (which runs what it finds there as one ragged batch), so that one large request can neither fill the queue
 * nor be refused for its size. The reply goes out when the last is done; the call's memory goes when nothing
 * of it runs:
 *
 *     typedef struct my_item { call_item item; ... } my_item;
 *     typedef struct my_call { items_call call; ... } my_call;
 *     my_call *e = (my_call *)items_begin(&OPS, sizeof *e, w, c, "Classify");
 *     if (e) items_run(&e->call, task, prepare, msg, n);
 *
 * Loop thread. */
#ifndef WORKER_SERVICE_ITEMS_H
#define WORKER_SERVICE_ITEMS_H

#include "worker/service.h"

typedef struct items_call items_call;

/* Unpacks the message and makes all items of the call, which it alone changes. Any thread. */
typedef int (*items_prepare_fn)(items_call *c, const uint8_t *msg, size_t n, shoal_err *err);

typedef struct call_item {
    bridge_job job; /* first: the bridge gives it back */
    items_call *owner;
    uint64_t id; /* the engine's, set by submit */
    bool running;
} call_item;

typedef struct items_ops {
    size_t item_size;
    const char *tokens; /* the log's word for n_tokens */
    /* Give it to the engine. SHOAL_EFULL: later, if something of this call is running. */
    int (*submit)(items_call *c, call_item *it, shoal_err *err);
    void (*judged)(bridge_job *j, const gen_event *ev); /* NULL: nothing comes before the end */
    void (*took)(items_call *c, call_item *it); /* it ended: add up its times; a failure goes to job.status */
    int (*reply)(items_call *c);                /* pack and send: 0 or SHOAL_ENOMEM */
    void (*free)(items_call *c);                /* what it has beyond these fields and the list of items */
} items_ops;

struct items_call {
    const items_ops *ops;
    worker *w;
    grpc_call *call; /* NULL once answered or gone */
    call_trace trace;
    void *items; /* [n] of item_size */
    size_t n, n_started, n_running, n_done, together;
    uint64_t deadline_ns;
    double queue_ms, compute_ms, cpu_ms; /* the longest wait, and the work of all */
    size_t n_tokens;
    /* while a long message is prepared on a thread of the pool */
    pool_job work;
    items_prepare_fn prepare;
    buf message;
    int rc;
    shoal_err err;
};

/* A cleared call of `size` bytes, which begins with an items_call; NULL: the call was ended for want of
 * memory. */
items_call *items_begin(const items_ops *ops, size_t size, worker *w, grpc_call *c, const char *method);
/* Room for n items, each with its job ready for the bridge; SHOAL_ENOMEM. */
int items_make(items_call *c, size_t n, shoal_err *err);
call_item *items_at(const items_call *c, size_t i);
/* Prepare it and start it, or refuse it; in any case it is on its own from here. A message of more than SERVICE_LONG_BYTES
 * is copied and prepared on a thread of the pool. */
void items_run(items_call *c, model_task task, items_prepare_fn prepare, const uint8_t *msg, size_t n);

#endif
