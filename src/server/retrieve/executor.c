/* executor.c: see executor.h. Jobs go to the threads through a queue each, and come back through one and a uv_async_t.
 */
#include "retrieve/executor.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/signal_stack.h"
#include "logging/log.h"
#include "retrieve/vector_cache.h"
#include "retrieve/store_impl.h"

enum {
#define EXECUTOR_THREADS(e, n_threads, most_each) +(n_threads)
    HANDS = 0 EXECUTOR_QUEUE_TABLE(EXECUTOR_THREADS)
#undef EXECUTOR_THREADS
};

static const struct {
    unsigned n_threads, most_each;
} QUEUES[] = {
#define EXECUTOR_ROW(e, n_threads, most_each) [e] = {n_threads, most_each},
    EXECUTOR_QUEUE_TABLE(EXECUTOR_ROW)
#undef EXECUTOR_ROW
};

typedef struct line { /* jobs in the order in which they came */
    executor_job *first, **end;
} line;

typedef struct owner { /* somebody whose jobs a queue has, waiting or running */
    uint64_t id;
    uint64_t served; /* when a job of his was begun last; 0: none yet */
    unsigned n_running, n_waiting;
    struct owner *next;
} owner;

typedef struct queue {
    line waiting;
    owner *owners;
    uint64_t clock; /* jobs begun */
} queue;

typedef struct hand { /* a thread */
    executor *d;
    pthread_t thread;
    executor_queue of;
    bool runs;
    store *store;      /* guarded by the executor's lock when it changes: executor_free interrupts it */
    executor_job *job; /* guarded by the executor's lock: what it does */
} hand;

typedef struct old_vectors {
    vector_cache *vectors;
    struct old_vectors *next;
} old_vectors;

struct executor {
    uv_async_t *ready; /* outlives the executor until it is closed */
    char *path;
    size_t memory_bytes;
    int n_threads;
    pthread_mutex_t lock; /* guards the queues, done, stop, and the hands' stores and jobs */
    pthread_cond_t work;
    queue queues[EXECUTOR_N_QUEUES];
    line done;
    bool stop;
    pthread_mutex_t vector_cache_lock; /* guards vectors, until it is there, and the opening of stores */
    vector_cache *vectors;
    dev_t vectors_dev; /* the file whose vectors it has */
    ino_t vectors_ino;
    old_vectors *old; /* of files that were moved or removed: somebody may still search there */
    hand hands[HANDS];
    size_t n_open; /* jobs whose done has not come; the loop's, as are the turns */
    size_t n_embeds;
    executor_turn *first_turn;
};

/* ---- queues ------------------------------------------------------------------------------------------- */

static void executor_put(line *l, executor_job *j)
{
    if (!l->first) l->end = &l->first;
    j->next = NULL;
    *l->end = j;
    l->end = &j->next;
}

static executor_job *unlink_at(line *l, executor_job **at)
{
    executor_job *j = *at;
    *at = j->next;
    if (!*at) l->end = at;
    return j;
}

static executor_job *executor_take(line *l)
{
    return l->first ? unlink_at(l, &l->first) : NULL;
}

/* NULL: out of memory. */
static owner *owner_of(queue *q, uint64_t id, bool make)
{
    owner *o = q->owners;
    while (o && o->id != id) o = o->next;
    if (o || !make) return o;
    o = calloc(1, sizeof *o);
    if (!o) return NULL;
    *o = (owner){.id = id, .next = q->owners};
    return q->owners = o;
}

static void forget_idle_owner(queue *q, const owner *o)
{
    owner **at = &q->owners;
    if (o->n_running + o->n_waiting > 0) return;
    while (*at != o) at = &(*at)->next;
    owner *gone = *at;
    *at = gone->next;
    free(gone);
}

static bool wait_in(queue *q, executor_job *j)
{
    owner *o = owner_of(q, j->owner_id, true);
    if (!o) return false;
    o->n_waiting++;
    j->waits = true;
    executor_put(&q->waiting, j);
    return true;
}

static void stop_waiting(queue *q, executor_job **at)
{
    executor_job *j = unlink_at(&q->waiting, at);
    owner *o = owner_of(q, j->owner_id, false);
    j->waits = false;
    o->n_waiting--;
    forget_idle_owner(q, o);
}

/* The first job of the owner who was served longest ago and may have one more thread; NULL: there is none. */
static executor_job *begin_next(queue *q, unsigned most_each)
{
    executor_job **best = NULL;
    owner *whose = NULL;
    for (executor_job **at = &q->waiting.first; *at; at = &(*at)->next) {
        owner *o = owner_of(q, (*at)->owner_id, false);
        if (o->n_running >= most_each || (whose && o->served >= whose->served)) continue;
        best = at;
        whose = o;
    }
    if (!best) return NULL;
    whose->served = ++q->clock;
    whose->n_running++;
    executor_job *j = *best;
    stop_waiting(q, best);
    return j;
}

static void end_one(queue *q, const executor_job *j)
{
    owner *o = owner_of(q, j->owner_id, false);
    o->n_running--;
    forget_idle_owner(q, o);
}

/* ---- in a thread ------------------------------------------------------------------------------------ */

static int set_vectors_aside(executor *d, shoal_err *err)
{
    old_vectors *o = calloc(1, sizeof *o);
    if (!o) return err_nomem(err);
    *o = (old_vectors){.vectors = d->vectors, .next = d->old};
    d->old = o;
    d->vectors = NULL;
    return 0;
}

/* Of the file that is there now: another one numbers its collections anew. */
static int find_vector_cache(executor *d, vector_cache **ret, shoal_err *err)
{
    struct stat is = {0};
    int rc = 0;
    pthread_mutex_lock(&d->vector_cache_lock);
    bool known = stat(d->path, &is) == 0;
    if (d->vectors && known && (is.st_ino != d->vectors_ino || is.st_dev != d->vectors_dev))
        rc = set_vectors_aside(d, err);
    if (rc == 0 && !d->vectors) {
        rc = vector_cache_new(&d->vectors, d->memory_bytes, d->n_threads, err);
        d->vectors_dev = is.st_dev;
        d->vectors_ino = is.st_ino;
    }
    *ret = d->vectors;
    pthread_mutex_unlock(&d->vector_cache_lock);
    return rc;
}

static void set_store(hand *h, store *s)
{
    pthread_mutex_lock(&h->d->lock);
    h->store = s;
    pthread_mutex_unlock(&h->d->lock);
}

/* A person moves a damaged file away, or a backup takes its place: the one that is there now counts. */
static void close_moved_store(hand *h)
{
    store *s = h->store;
    if (!s || !store_has_moved(s)) return;
    LOG(LOG_WARN, "retrieve", "file_has_moved", LOG_S("file", h->d->path),
        LOG_S("so", "it is opened again, or made anew"));
    set_store(h, NULL);
    store_close(s);
}

static int open_store(hand *h, shoal_err *err)
{
    store *s = NULL;
    close_moved_store(h);
    if (h->store) return 0;
    if (!h->d->path)
        return err_set(err, SHOAL_EUNAVAILABLE,
                       "there is no folder to keep documents in: set retrieval.path, or SHOAL_STATE");
    pthread_mutex_lock(&h->d->vector_cache_lock);
    int rc = store_open(&s, h->d->path, err);
    pthread_mutex_unlock(&h->d->vector_cache_lock);
    if (!s) return rc;
    set_store(h, s);
    return 0;
}

/* A person has to do something about the file, and reads logs. */
static void tell_damaged(const executor *d, const executor_job *j)
{
    if (j->rc != SHOAL_EFORMAT || !d->path || strncmp(j->err.message, d->path, strlen(d->path)) != 0) return;
    LOG(LOG_ERROR, "retrieve", "file_damaged", LOG_S("file", d->path), LOG_S("error", j->err.message));
}

static void run_job(hand *h, executor_job *j)
{
    executor_tools t = {0};
    j->err = (shoal_err){0};
    j->rc = open_store(h, &j->err);
    if (j->rc == 0) j->rc = find_vector_cache(h->d, &t.vectors, &j->err);
    t.store = h->store;
    if (j->rc == 0) {
        store_count(h->store, &j->steps);
        store_act_for(h->store, j->owner ? j->owner : "");
        j->rc = j->work(j, &t, &j->err);
        store_count(h->store, NULL);
        store_act_for(h->store, "");
        store_rollback(h->store); /* whatever a job left open */
    }
    tell_damaged(h->d, j);
    if (j->rc != 0) file_name_alone(j->err.message, h->d->path);
}

static void *hand_main(void *arg)
{
    signal_stack_open();
    hand *h = arg;
    executor *d = h->d;
    queue *from = &d->queues[h->of];
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        h->job = begin_next(from, QUEUES[h->of].most_each);
        if (!h->job) {
            pthread_cond_wait(&d->work, &d->lock);
            continue;
        }
        pthread_mutex_unlock(&d->lock);
        run_job(h, h->job);
        pthread_mutex_lock(&d->lock);
        end_one(from, h->job);
        executor_put(&d->done, h->job);
        h->job = NULL;
        pthread_cond_broadcast(&d->work); /* its owner may have the thread again */
        uv_async_send(d->ready);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- on the loop ------------------------------------------------------------------------------------ */

static void executor_finish(executor *d, executor_job *j)
{
    if (--d->n_open == 0) uv_unref((uv_handle_t *)d->ready);
    j->done(j);
}

static void on_ready(uv_async_t *a)
{
    executor *d = a->data;
    for (;;) {
        pthread_mutex_lock(&d->lock);
        executor_job *j = executor_take(&d->done);
        pthread_mutex_unlock(&d->lock);
        if (!j) return;
        executor_finish(d, j);
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
static bool start_hands(executor *d, executor_queue of)
{
    bool any = false;
    for (size_t i = 0; i < HANDS; i++)
        if (d->hands[i].of == of && start_hand(&d->hands[i])) any = true;
    return any;
}

/* FNV-1a: who shares a number takes turns with another. */
static uint64_t owner_id(const char *owner)
{
    uint64_t h = 14695981039346656037u;
    for (; owner && *owner; owner++) h = (h ^ (unsigned char)*owner) * 1099511628211u;
    return h;
}

void executor_submit(executor *d, executor_job *j)
{
    bool started = !d->stop && start_hands(d, j->queue);
    if (d->n_open++ == 0) uv_ref((uv_handle_t *)d->ready);
    j->owner_id = owner_id(j->owner);
    j->steps = (steps){.cancel = cancel_by_flag(&j->cancelled)};
    atomic_store(&j->cancelled, false);
    pthread_mutex_lock(&d->lock);
    if (d->stop) {
        j->rc = err_set(&j->err, SHOAL_ECANCELLED, "the server shuts down");
        executor_put(&d->done, j);
    } else if (started && wait_in(&d->queues[j->queue], j)) {
        pthread_cond_broadcast(&d->work);
    } else {
        j->rc = err_nomem(&j->err);
        executor_put(&d->done, j);
        uv_async_send(d->ready);
    }
    pthread_mutex_unlock(&d->lock);
}

void executor_cancel(executor *d, executor_job *j)
{
    atomic_store(&j->cancelled, true);
    pthread_mutex_lock(&d->lock);
    if (j->waits) {
        queue *q = &d->queues[j->queue];
        executor_job **at = &q->waiting.first;
        while (*at != j) at = &(*at)->next;
        stop_waiting(q, at);
        j->rc = err_set(&j->err, SHOAL_ECANCELLED, "the work was cancelled");
        executor_put(&d->done, j);
        uv_async_send(d->ready);
    }
    pthread_mutex_unlock(&d->lock);
}

/* ---- turns of those who embed ----------------------------------------------------------------------- */

bool executor_embed_begin(executor *d, executor_turn *t)
{
    if (d->n_embeds < EXECUTOR_EMBEDS) {
        d->n_embeds++;
        return true;
    }
    executor_turn **end = &d->first_turn;
    if (t->waits) return false;
    while (*end) end = &(*end)->next;
    t->waits = true;
    t->next = NULL;
    *end = t;
    return false;
}

void executor_embed_leave(executor *d, executor_turn *t)
{
    executor_turn **at = &d->first_turn;
    if (!t->waits) return;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    t->waits = false;
}

void executor_embed_end(executor *d, size_t n)
{
    d->n_embeds -= n;
    while (d->n_embeds < EXECUTOR_EMBEDS && d->first_turn) {
        executor_turn *t = d->first_turn;
        executor_embed_leave(d, t);
        t->fn(t);
    }
}

int executor_new(executor **ret, uv_loop_t *loop, const char *path, size_t memory_bytes, int n_threads,
                 shoal_err *err)
{
    executor *d = calloc(1, sizeof *d);
    uv_async_t *ready = calloc(1, sizeof *ready);
    char *copy = path ? strdup(path) : NULL;
    if (!d || !ready || (path && !copy) || uv_async_init(loop, ready, on_ready) != 0) {
        free(d);
        free(ready);
        free(copy);
        return err_nomem(err);
    }
    *d = (executor){.ready = ready, .path = copy, .memory_bytes = memory_bytes, .n_threads = n_threads};
    ready->data = d;
    uv_unref((uv_handle_t *)ready);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->vector_cache_lock, NULL);
    pthread_cond_init(&d->work, NULL);
    size_t n = 0;
    for (executor_queue of = 0; of < EXECUTOR_N_QUEUES; of++)
        for (unsigned i = 0; i < QUEUES[of].n_threads; i++) d->hands[n++] = (hand){.d = d, .of = of};
    *ret = d;
    return 0;
}

static void stop_hands(executor *d)
{
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_broadcast(&d->work);
    for (size_t i = 0; i < HANDS; i++) {
        hand *h = &d->hands[i];
        if (h->job) atomic_store(&h->job->cancelled, true);
        if (h->store) sqlite3_interrupt(h->store->file.db);
    }
    pthread_mutex_unlock(&d->lock);
    for (size_t i = 0; i < HANDS; i++) {
        if (d->hands[i].runs) pthread_join(d->hands[i].thread, NULL);
        store_close(d->hands[i].store);
    }
}

static void cancel_all(executor *d, queue *q)
{
    while (q->waiting.first) {
        executor_job *j = q->waiting.first;
        stop_waiting(q, &q->waiting.first);
        j->rc = err_set(&j->err, SHOAL_ECANCELLED, "the server shuts down");
        executor_finish(d, j);
    }
}

static void executor_on_closed(uv_handle_t *h)
{
    free(h);
}

void executor_free(executor *d)
{
    if (!d) return;
    stop_hands(d);
    for (executor_queue of = 0; of < EXECUTOR_N_QUEUES; of++) cancel_all(d, &d->queues[of]);
    on_ready(d->ready); /* and what these submit once more */
    vector_cache_free(d->vectors);
    for (old_vectors *o = d->old, *next; o; o = next) {
        next = o->next;
        vector_cache_free(o->vectors);
        free(o);
    }
    uv_close((uv_handle_t *)d->ready, executor_on_closed);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->vector_cache_lock);
    pthread_cond_destroy(&d->work);
    free(d->path);
    free(d);
}
