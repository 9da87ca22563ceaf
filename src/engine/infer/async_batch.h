/* async_batch.h: encodings that a blocking caller has under way in an engine, in the order in which they began.
 *
 *     async_batch f;
 *     async_batch_open(&f, engine, n_values, NULL, &err);
 *     while (...) {
 *         if (async_batch_full(&f)) ... async_batch_wait(&f, &slot, &err) ... use slot->values ...
 *         async_batch_add(&f, &request, &slot, &err);       // slot->tag is the caller's
 *     }
 *     async_batch_close(&f);                                // cancels what is still under way, and waits for it
 *
 * One thread uses a batch; the engine's writes into its slots. */
#ifndef INFER_ASYNC_BATCH_H
#define INFER_ASYNC_BATCH_H

#include <pthread.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "infer/engine.h"

enum { ASYNC_BATCH_SLOTS = 64 };

typedef struct async_batch_slot {
    struct async_batch *owner;
    uint64_t id;   /* the engine's */
    float *values; /* [n_values] */
    buf tag;       /* the caller's note, emptied when the slot is taken anew */
    size_t at[2];  /* the same, as numbers */
    bool done;
    int status;
    char message[256];
} async_batch_slot;

enum { ASYNC_BATCH_ASK_MS = 20 };

typedef struct async_batch {
    engine *engine;
    cancel_check cancel;
    size_t n_values, first, n; /* slots first .. first + n - 1, modulo ASYNC_BATCH_SLOTS, are taken */
    pthread_mutex_t lock;      /* guards the slots' results */
    pthread_cond_t changed;
    float *values;
    async_batch_slot slots[ASYNC_BATCH_SLOTS];
} async_batch;

/* Results are n_values floats each; another number is SHOAL_EINTERNAL. Whoever waits asks every ASYNC_BATCH_ASK_MS
 * whether to go on (cancel NULL: always). */
int async_batch_open(async_batch *f, engine *e, size_t n_values, const cancel_check *cancel, shoal_err *err);
bool async_batch_full(const async_batch *f);
bool async_batch_empty(const async_batch *f);
/* As engine_encode; *ret (may be NULL) is the slot. Not on a full batch. */
int async_batch_add(async_batch *f, const enc_request *r, async_batch_slot **ret, shoal_err *err);
/* Wait for the one that began first; *ret is valid until the next async_batch_add. Not on an empty batch.
 * Cancelled, it is the error that was answered with, and the batch is only good to be closed. */
int async_batch_wait(async_batch *f, async_batch_slot **ret, shoal_err *err);
void async_batch_close(async_batch *f);

#endif
