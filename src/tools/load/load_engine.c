/* load_engine.c: see load_engine.h. */
#include "load/load_engine.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

enum {
    STACK_BYTES = 512 << 10,
    LOOK_NS = 50000000 /* how often a waiting client looks whether it is to stop */
};

typedef struct client {
    load_engine *e;
    pthread_t thread;
    int index;
    shoal_err err;
} client;

struct load_engine {
    load_schedule s;
    load_ops ops;
    void *user;
    uint64_t start_ns;
    client *clients;
    pthread_attr_t attr;
    pthread_mutex_t lock; /* of n_started */
    int n_started;
    atomic_int n_waiting; /* clients of an open loop whose request is not due yet */
    atomic_int n_busy;
    atomic_size_t next;
    atomic_bool stop;
};

static void *client_main(void *arg);

/* A thread for the next client. Signals are for those who started the load. Under the lock. */
static int start_one(load_engine *e, shoal_err *err)
{
    sigset_t all, before;
    client *c = &e->clients[e->n_started];
    *c = (client){.e = e, .index = e->n_started};
    atomic_fetch_add(&e->n_busy, 1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&c->thread, &e->attr, client_main, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) atomic_fetch_sub(&e->n_busy, 1);
    if (failed) return err_set(err, SHOAL_ENOMEM, "cannot start client %d", c->index);
    e->n_started++;
    return 0;
}

/* Of an open loop: somebody must be there for the next request. Where no thread can be had, it is asked late. */
static void start_another(load_engine *e)
{
    pthread_mutex_lock(&e->lock);
    if (e->n_started < e->s.n_clients && atomic_load(&e->n_waiting) == 0) start_one(e, NULL);
    pthread_mutex_unlock(&e->lock);
}

static bool is_over(load_engine *e)
{
    return atomic_load(&e->stop) ||
           (e->s.seconds > 0 && !e->s.due_s && clock_ms_since(e->start_ns) > e->s.seconds * 1e3);
}

static bool wait_until(load_engine *e, uint64_t until_ns)
{
    for (uint64_t now; (now = clock_ns()) < until_ns && !atomic_load(&e->stop);) {
        uint64_t rest = until_ns - now < LOOK_NS ? until_ns - now : LOOK_NS;
        nanosleep(&(struct timespec){0, (long)rest}, NULL);
    }
    return !atomic_load(&e->stop);
}

/* The next request and when it is due; false: there is none. */
static bool take_request(load_engine *e, size_t *ret_i, uint64_t *ret_due_ns)
{
    if (is_over(e)) return false;
    size_t i = atomic_fetch_add(&e->next, 1);
    if (i >= e->s.n_requests) return false;
    *ret_i = i;
    *ret_due_ns = clock_ns();
    if (!e->s.due_s) return true;
    *ret_due_ns = e->start_ns + (uint64_t)(e->s.due_s[i] * 1e9);
    atomic_fetch_add(&e->n_waiting, 1);
    bool due = wait_until(e, *ret_due_ns);
    atomic_fetch_sub(&e->n_waiting, 1);
    if (due && i + 1 < e->s.n_requests && atomic_load(&e->n_waiting) == 0) start_another(e);
    return due;
}

static void *client_main(void *arg)
{
    client *me = arg;
    load_engine *e = me->e;
    void *state = NULL;
    size_t i;
    uint64_t due_ns;
    int rc = e->ops.enter ? e->ops.enter(e->user, me->index, &state, &me->err) : 0;
    bool entered = rc == 0;
    while (rc == 0 && take_request(e, &i, &due_ns)) {
        rc = e->ops.ask(e->user, state, i, due_ns, &me->err);
        if (e->s.think_s > 0 && !e->s.due_s) wait_until(e, clock_ns() + (uint64_t)(e->s.think_s * 1e9));
    }
    if (entered && e->ops.leave) e->ops.leave(e->user, state);
    atomic_fetch_sub(&e->n_busy, 1);
    return NULL;
}

int load_engine_new(load_engine **ret, const load_schedule *s, const load_ops *ops, void *user,
                    shoal_err *err)
{
    load_engine *e = calloc(1, sizeof *e);
    client *clients = calloc((size_t)s->n_clients, sizeof *clients);
    if (!e || !clients) {
        free(e);
        free(clients);
        return err_nomem(err);
    }
    *e = (load_engine){.s = *s, .ops = *ops, .user = user, .clients = clients};
    pthread_mutex_init(&e->lock, NULL);
    pthread_attr_init(&e->attr);
    pthread_attr_setstacksize(&e->attr, STACK_BYTES);
    *ret = e;
    return 0;
}

int load_engine_start(load_engine *e, shoal_err *err)
{
    int first = e->s.due_s ? 1 : e->s.n_clients, rc = 0;
    e->start_ns = clock_ns();
    pthread_mutex_lock(&e->lock);
    while (rc == 0 && e->n_started < first) rc = start_one(e, err);
    pthread_mutex_unlock(&e->lock);
    if (rc != 0) load_engine_stop(e);
    return rc;
}

void load_engine_stop(load_engine *e)
{
    atomic_store(&e->stop, true);
}

bool load_engine_busy(load_engine *e)
{
    return atomic_load(&e->n_busy) > 0;
}

size_t load_engine_asked(load_engine *e)
{
    size_t n = atomic_load(&e->next);
    return n < e->s.n_requests ? n : e->s.n_requests;
}

uint64_t load_engine_start_ns(const load_engine *e)
{
    return e->start_ns;
}

/* A client that runs may start another one, which is then behind it in the list. */
static int started(load_engine *e)
{
    pthread_mutex_lock(&e->lock);
    int n = e->n_started;
    pthread_mutex_unlock(&e->lock);
    return n;
}

int load_engine_join(load_engine *e, shoal_err *err)
{
    int rc = 0;
    for (int i = 0; i < started(e); i++) {
        pthread_join(e->clients[i].thread, NULL);
        if (rc == 0 && e->clients[i].err.code)
            rc = err_set(err, e->clients[i].err.code, "%s", e->clients[i].err.message);
    }
    pthread_attr_destroy(&e->attr);
    pthread_mutex_destroy(&e->lock);
    free(e->clients);
    free(e);
    return rc;
}
