/* async_batch.c: see async_batch.h. */
#include "infer/async_batch.h"
#include "base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int async_batch_open(async_batch *f, engine *e, size_t n_values, const cancel_check *cancel, shoal_err *err)
{
    *f = (async_batch){.engine = e, .n_values = n_values};
    if (cancel) f->cancel = *cancel;
    f->values = calloc(ASYNC_BATCH_SLOTS * (n_values ? n_values : 1), sizeof *f->values);
    if (!f->values) return err_nomem(err);
    pthread_condattr_t steady; /* so that timed waits do not follow a clock that somebody sets */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, &steady);
    pthread_condattr_destroy(&steady);
    for (size_t i = 0; i < ASYNC_BATCH_SLOTS; i++)
        f->slots[i] = (async_batch_slot){.owner = f, .values = f->values + i * n_values};
    return 0;
}

bool async_batch_full(const async_batch *f)
{
    return f->n == ASYNC_BATCH_SLOTS;
}

bool async_batch_empty(const async_batch *f)
{
    return f->n == 0;
}

/* The engine's thread. */
static void arrived(void *user, const enc_result *r)
{
    async_batch_slot *s = user;
    async_batch *f = s->owner;
    pthread_mutex_lock(&f->lock);
    bool fits = r->status != 0 || r->rows * r->cols == f->n_values;
    s->status = fits ? r->status : SHOAL_EINTERNAL;
    if (s->status == 0)
        memcpy(s->values, r->values, f->n_values * sizeof *s->values);
    else
        snprintf(s->message, sizeof s->message, "%s",
                 fits && r->message ? r->message : shoal_err_text(s->status));
    s->done = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

int async_batch_add(async_batch *f, const enc_request *r, async_batch_slot **ret, shoal_err *err)
{
    async_batch_slot *s = &f->slots[(f->first + f->n) % ASYNC_BATCH_SLOTS];
    buf_clear(&s->tag);
    s->done = false;
    int rc = engine_encode(f->engine, r, arrived, s, &s->id, err);
    if (rc != 0) return rc;
    f->n++;
    if (ret) *ret = s;
    return 0;
}

/* True: it is done. */
static bool wait_a_while(async_batch *f, const async_batch_slot *s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ASYNC_BATCH_ASK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&f->lock);
    progress_end(); /* the engine's thread gets on, or not */
    for (int rc = 0; !s->done && rc == 0;) rc = pthread_cond_timedwait(&f->changed, &f->lock, &until);
    progress_begin();
    bool done = s->done;
    pthread_mutex_unlock(&f->lock);
    return done;
}

int async_batch_wait(async_batch *f, async_batch_slot **ret, shoal_err *err)
{
    async_batch_slot *s = &f->slots[f->first];
    while (!wait_a_while(f, s)) {
        int rc = cancel_ask(&f->cancel, err);
        if (rc != 0) return rc;
    }
    f->first = (f->first + 1) % ASYNC_BATCH_SLOTS;
    f->n--;
    *ret = s;
    return s->status == 0 ? 0 : err_set(err, s->status, "%s", s->message);
}

void async_batch_close(async_batch *f)
{
    for (size_t i = 0; i < f->n; i++)
        engine_cancel(f->engine, f->slots[(f->first + i) % ASYNC_BATCH_SLOTS].id);
    for (size_t i = 0; i < f->n; i++)
        while (!wait_a_while(f, &f->slots[(f->first + i) % ASYNC_BATCH_SLOTS])) continue;
    for (size_t i = 0; i < ASYNC_BATCH_SLOTS; i++) buf_done(&f->slots[i].tag);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    free(f->values);
}
