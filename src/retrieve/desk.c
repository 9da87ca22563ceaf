/* desk.c: see desk.h. Jobs go to the threads through two queues, and come back through one and a uv_async_t.
 */
#include "retrieve/desk.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "retrieve/shelf.h"
#include "retrieve/store_impl.h"

enum { READERS = 2, HANDS = READERS + 1 };

typedef struct queue {
    desk_job *first, **end;
} queue;

typedef struct hand { /* a thread; the first writes */
    desk *d;
    pthread_t thread;
    bool writes, runs;
    store *store; /* guarded by the desk's lock when it changes: desk_free interrupts it */
} hand;

struct desk {
    uv_async_t *ready; /* outlives the desk until it is closed */
    char *path;
    size_t memory_bytes;
    int n_threads;
    pthread_mutex_t lock; /* guards the queues, stop, and the hands' stores */
    pthread_cond_t work;
    queue reads, writes, done;
    bool stop;
    pthread_mutex_t shelf_lock; /* guards shelf, until it is there, and the opening of stores */
    shelf *shelf;
    hand hands[HANDS];
    size_t n_open; /* jobs whose done has not come; the loop's */
};

/* ---- queues ------------------------------------------------------------------------------------------- */

static void put(queue *q, desk_job *j)
{
    if (!q->first) q->end = &q->first;
    j->next = NULL;
    *q->end = j;
    q->end = &j->next;
}

static desk_job *take(queue *q)
{
    desk_job *j = q->first;
    if (j) q->first = j->next;
    return j;
}

/* ---- in a thread ----------------------------------------------------------------------------------------
 */

static int find_shelf(desk *d, shelf **ret, shoal_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&d->shelf_lock);
    if (!d->shelf) rc = shelf_new(&d->shelf, d->memory_bytes, d->n_threads, err);
    *ret = d->shelf;
    pthread_mutex_unlock(&d->shelf_lock);
    return rc;
}

static int open_store(hand *h, shoal_err *err)
{
    store *s = NULL;
    if (h->store) return 0;
    if (!h->d->path)
        return err_set(err, SHOAL_EUNAVAILABLE,
                       "there is no folder to keep documents in: set retrieval.path, or SHOAL_STATE");
    pthread_mutex_lock(&h->d->shelf_lock);
    int rc = store_open(&s, h->d->path, err);
    pthread_mutex_unlock(&h->d->shelf_lock);
    if (!s) return rc;
    pthread_mutex_lock(&h->d->lock);
    h->store = s;
    pthread_mutex_unlock(&h->d->lock);
    return 0;
}

static void run_job(hand *h, desk_job *j)
{
    desk_tools t = {0};
    j->err = (shoal_err){0};
    j->rc = open_store(h, &j->err);
    if (j->rc == 0) j->rc = find_shelf(h->d, &t.shelf, &j->err);
    t.store = h->store;
    if (j->rc == 0) {
        j->rc = j->work(j, &t, &j->err);
        store_rollback(h->store); /* whatever a job left open */
    }
}

static void *hand_main(void *arg)
{
    hand *h = arg;
    desk *d = h->d;
    queue *from = h->writes ? &d->writes : &d->reads;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (!d->stop && !from->first) pthread_cond_wait(&d->work, &d->lock);
        if (d->stop) break;
        desk_job *j = take(from);
        pthread_mutex_unlock(&d->lock);
        run_job(h, j);
        pthread_mutex_lock(&d->lock);
        put(&d->done, j);
        uv_async_send(d->ready);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- on the loop ----------------------------------------------------------------------------------------
 */

static void finish(desk *d, desk_job *j)
{
    if (--d->n_open == 0) uv_unref((uv_handle_t *)d->ready);
    j->done(j);
}

static void on_ready(uv_async_t *a)
{
    desk *d = a->data;
    for (;;) {
        pthread_mutex_lock(&d->lock);
        desk_job *j = take(&d->done);
        pthread_mutex_unlock(&d->lock);
        if (!j) return;
        finish(d, j);
    }
}

/* False: the system gives no more threads. Signals stay the loop's. */
static bool start_hand(hand *h)
{
    sigset_t all, old;
    if (h->runs) return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    h->runs = pthread_create(&h->thread, NULL, hand_main, h) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return h->runs;
}

/* Somebody does this kind of work. */
static bool start_hands(desk *d, bool writes)
{
    bool any = false;
    for (size_t i = 0; i < HANDS; i++)
        if (d->hands[i].writes == writes && start_hand(&d->hands[i])) any = true;
    return any;
}

void desk_submit(desk *d, desk_job *j)
{
    bool started = !d->stop && start_hands(d, j->writes);
    if (d->n_open++ == 0) uv_ref((uv_handle_t *)d->ready);
    pthread_mutex_lock(&d->lock);
    if (d->stop) {
        j->rc = err_set(&j->err, SHOAL_ECANCELLED, "the server shuts down");
        put(&d->done, j);
    } else if (started) {
        put(j->writes ? &d->writes : &d->reads, j);
        pthread_cond_broadcast(&d->work);
    } else {
        j->rc = err_nomem(&j->err);
        put(&d->done, j);
        uv_async_send(d->ready);
    }
    pthread_mutex_unlock(&d->lock);
}

int desk_new(desk **ret, uv_loop_t *loop, const char *path, size_t memory_bytes, int n_threads,
             shoal_err *err)
{
    desk *d = calloc(1, sizeof *d);
    uv_async_t *ready = calloc(1, sizeof *ready);
    char *copy = path ? strdup(path) : NULL;
    if (!d || !ready || (path && !copy) || uv_async_init(loop, ready, on_ready) != 0) {
        free(d);
        free(ready);
        free(copy);
        return err_nomem(err);
    }
    *d = (desk){.ready = ready, .path = copy, .memory_bytes = memory_bytes, .n_threads = n_threads};
    ready->data = d;
    uv_unref((uv_handle_t *)ready);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->shelf_lock, NULL);
    pthread_cond_init(&d->work, NULL);
    for (size_t i = 0; i < HANDS; i++) d->hands[i] = (hand){.d = d, .writes = i == 0};
    *ret = d;
    return 0;
}

static void stop_hands(desk *d)
{
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_broadcast(&d->work);
    for (size_t i = 0; i < HANDS; i++)
        if (d->hands[i].store) sqlite3_interrupt(d->hands[i].store->file.db);
    pthread_mutex_unlock(&d->lock);
    for (size_t i = 0; i < HANDS; i++) {
        if (d->hands[i].runs) pthread_join(d->hands[i].thread, NULL);
        store_close(d->hands[i].store);
    }
}

static void cancel_all(desk *d, queue *q)
{
    for (desk_job *j; (j = take(q));) {
        j->rc = err_set(&j->err, SHOAL_ECANCELLED, "the server shuts down");
        finish(d, j);
    }
}

static void on_closed(uv_handle_t *h)
{
    free(h);
}

void desk_free(desk *d)
{
    if (!d) return;
    stop_hands(d);
    cancel_all(d, &d->reads);
    cancel_all(d, &d->writes);
    on_ready(d->ready); /* and what these submit once more */
    shelf_free(d->shelf);
    uv_close((uv_handle_t *)d->ready, on_closed);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->shelf_lock);
    pthread_cond_destroy(&d->work);
    free(d->path);
    free(d);
}
