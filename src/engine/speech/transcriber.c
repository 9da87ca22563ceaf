/* transcriber.c: one window after the other, waiting for the engine; see transcriber.h. */
#include "speech/transcriber.h"

#include <pthread.h>

typedef struct waiter {
    transcription *t;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done, nomem;
    shoal_err err;
} waiter;

/* The engine's thread; nobody else touches t until `done`. */
static void transcriber_on_event(void *user, const gen_event *ev)
{
    waiter *w = user;
    if (ev->kind == EVENT_TOKEN) {
        if (transcription_add(w->t, ev->id, ev->logprob)) w->nomem = true;
        return;
    }
    pthread_mutex_lock(&w->lock);
    if (ev->status) err_set(&w->err, ev->status, "%s", ev->message);
    w->done = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static int hear_window(engine *e, waiter *w, shoal_err *err)
{
    gen_request r;
    enc_request source;
    transcription_request(w->t, &r, &source);
    w->done = false;
    int rc = engine_generate(e, &r, transcriber_on_event, w, NULL, err);
    if (rc != 0) return rc;
    pthread_mutex_lock(&w->lock);
    while (!w->done) pthread_cond_wait(&w->wake, &w->lock);
    pthread_mutex_unlock(&w->lock);
    if (w->err.code) return err_set(err, w->err.code, "%s", w->err.message);
    return w->nomem ? err_nomem(err) : 0;
}

int transcriber_run(engine *e, transcription *t, heard_fn fn, transcriber_progress_fn progress, void *user,
                    shoal_err *err)
{
    waiter w = {.t = t};
    int rc;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.wake, NULL);
    while ((rc = transcription_next(t, err)) > 0) {
        rc = hear_window(e, &w, err);
        if (rc == 0) rc = transcription_take(t, fn, user, err);
        if (rc != 0) break;
        if (progress) progress(user, t);
    }
    pthread_cond_destroy(&w.wake);
    pthread_mutex_destroy(&w.lock);
    return rc;
}
