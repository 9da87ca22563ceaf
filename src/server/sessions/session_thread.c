/* session_thread.c: see session_thread.h. The batch's thread has store and keys while it runs, the loop never; to start and to
 * join it is what hands them over, so that there is no lock. */
#include "sessions/session_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "logging/log.h"
#include "base/sha256.h"
#include "base/signal_stack.h"
#include "sessions/seal.h"
#include "sessions/session_redis.h"
#include "trust/key.h"

#define SWEEP_EVERY_S 60

_Static_assert(SESSION_SEAL_BYTES == SEAL_MORE, "session_thread.h says what seal.h adds");

struct session_thread {
    uv_async_t ready; /* the batch is done */
    pthread_t thread;
    bool runs, closing;
    char *path, *key_file, *redis;
    session_bounds bounds;
    const env *time;
    int64_t now;               /* the date of the batch */
    session_job *first, **end; /* that wait */
    session_job *batch;        /* that run */
    /* The thread's: */
    session_store *store;
    keyring keys;
    struct stat keys_are; /* the file when it was read */
    int64_t swept;
};

session_id session_id_of(const char *owner, const char *kind, const char *name)
{
    session_id id = {{0}};
    sha256_digest d[4];
    const char *parts[3] = {owner, kind, name};
    for (int i = 0; i < 3; i++) sha256_of(parts[i], strlen(parts[i]), &d[i]);
    sha256_of(d, 3 * sizeof *d, &d[3]);
    memcpy(id.bytes, d[3].bytes, SESSION_ID_BYTES);
    return id;
}

void session_job_done(session_job *j)
{
    buf_wipe(&j->text);
}

/* ---- in a thread --------------------------------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A file that cannot be read any more leaves the keys that were read. */
static int read_keys(session_thread *c, shoal_err *err)
{
    struct stat is = {0};
    bool had = c->keys.n > 0;
    if (!c->key_file)
        return err_set(err, SHOAL_EUNAVAILABLE,
                       "there is no folder to keep conversations in: set sessions.path, or SHOAL_STATE");
    if (had && stat(c->key_file, &is) == 0 && same_file(&is, &c->keys_are)) return 0;
    int rc = keyring_open(&c->keys, c->key_file, err);
    if (rc == 0 && stat(c->key_file, &c->keys_are) != 0) c->keys_are = (struct stat){0};
    if (rc == 0 || !had) return rc;
    LOG(LOG_WARN, "sessions", "keys_not_read", LOG_S("error", err ? err->message : ""));
    return 0;
}

/* A person moves a damaged file away, or a backup takes its place: the one that is there now counts. */
static void close_moved_store(session_thread *c)
{
    if (!c->store || !c->store->ops->has_moved || !c->store->ops->has_moved(c->store)) return;
    LOG(LOG_WARN, "sessions", "file_has_moved", LOG_S("file", c->path),
        LOG_S("so", "it is opened again, or made anew"));
    c->store->ops->close(c->store);
    c->store = NULL;
}

static int open_store(session_thread *c, shoal_err *err)
{
    close_moved_store(c);
    int rc = read_keys(c, err);
    if (rc != 0 || c->store) return rc;
    rc = c->redis ? session_redis_open(&c->store, c->redis, err)
                  : session_sqlite_open(&c->store, c->path, err);
    if (rc != 0) return rc;
    LOG(LOG_INFO, "sessions", "opened", LOG_I("keys", c->keys.n));
    return 0;
}

static int append(session_thread *c, session_job *j, int64_t now)
{
    buf sealed = {0};
    session_turn t = {.id = &j->id};
    if (j->text.failed) return err_nomem(&j->err);
    if (j->text.len + SEAL_MORE > c->bounds.bytes)
        return err_set(&j->err, SHOAL_ELIMIT,
                       "this turn has %zu bytes, more than a conversation may (%llu): raise sessions.max_kb",
                       j->text.len, (unsigned long long)c->bounds.bytes);
    int rc = seal_put(&sealed, &c->keys, j->id.bytes, SESSION_ID_BYTES, j->text.data, j->text.len, &j->err);
    t.sealed = sealed.data;
    t.n = sealed.len;
    if (rc == 0) rc = c->store->ops->append(c->store, &t, &c->bounds, now, &j->err);
    buf_done(&sealed);
    return rc;
}

typedef struct reading {
    session_thread *c;
    session_job *j;
    bool any_old;
} reading;

static int read_turn(void *user, int64_t number, const void *sealed, size_t n, shoal_err *err)
{
    reading *r = user;
    bool old = false;
    int rc = seal_open(&r->j->text, &r->c->keys, r->j->id.bytes, SESSION_ID_BYTES, sealed, n, &old, err);
    if (rc == 0 && buf_putc(&r->j->text, '\0') != 0) rc = err_nomem(err);
    r->j->n_turns += rc == 0;
    r->any_old |= old;
    return rc;
}

typedef struct renewal {
    session_thread *c;
    const session_id *id;
    buf sealed; /* length, number and bytes of each turn that an old key sealed */
} renewal;

static int renew_turn(void *user, int64_t number, const void *sealed, size_t n, shoal_err *err)
{
    renewal *r = user;
    buf text = {0};
    bool old = false;
    size_t at = r->sealed.len, len = n;
    int rc = seal_open(&text, &r->c->keys, r->id->bytes, SESSION_ID_BYTES, sealed, n, &old, err);
    if (rc == 0 && old) {
        buf_append(&r->sealed, &len, sizeof len);
        buf_append(&r->sealed, &number, sizeof number);
        rc = seal_put(&r->sealed, &r->c->keys, r->id->bytes, SESSION_ID_BYTES, text.data, text.len, err);
        if (r->sealed.failed) rc = err_nomem(err);
        if (rc != 0) r->sealed.len = at;
    }
    buf_wipe(&text);
    return rc;
}

/* Turns of older keys, under the newest. What fails stays as it is, and is tried again with the next reading.
 */
static void renew(session_thread *c, const session_id *id, int64_t now)
{
    renewal r = {.c = c, .id = id};
    shoal_err err;
    int rc = c->store->ops->load(c->store, id, now, renew_turn, &r, &err);
    for (size_t at = 0; rc == 0 && at < r.sealed.len;) {
        session_turn t = {.id = id};
        int64_t number;
        memcpy(&t.n, r.sealed.data + at, sizeof t.n);
        memcpy(&number, r.sealed.data + at + sizeof t.n, sizeof number);
        at += sizeof t.n + sizeof number;
        t.sealed = r.sealed.data + at;
        at += t.n;
        rc = c->store->ops->rewrite(c->store, &t, number, &err);
    }
    if (rc != 0) LOG(LOG_WARN, "sessions", "not_rewritten", LOG_S("error", err.message));
    buf_done(&r.sealed);
}

static int session_thread_load(session_thread *c, session_job *j, int64_t now)
{
    reading r = {.c = c, .j = j};
    j->n_turns = 0;
    int rc = c->store->ops->load(c->store, &j->id, now, read_turn, &r, &j->err);
    if (rc == 0 && j->n_turns > 0) rc = c->store->ops->touch(c->store, &j->id, now, c->bounds.ttl_s, &j->err);
    if (rc == 0 && r.any_old) renew(c, &j->id, now);
    return rc;
}

static int do_job(session_thread *c, session_job *j, int64_t now)
{
    switch (j->what) {
    case SESSION_LOAD: return session_thread_load(c, j, now);
    case SESSION_APPEND: return append(c, j, now);
    case SESSION_DROP: return c->store->ops->drop(c->store, &j->id, &j->found, &j->err);
    }
    return SHOAL_EINTERNAL;
}

static void sweep(session_thread *c, int64_t now)
{
    shoal_err err = {0};
    int64_t n = 0;
    if (now < c->swept + SWEEP_EVERY_S && now >= c->swept) return;
    c->swept = now;
    int rc = c->store->ops->begin(c->store, &err);
    if (rc == 0) rc = c->store->ops->sweep(c->store, now, &c->bounds, &n, &err);
    if (rc == 0) rc = c->store->ops->commit(c->store, &err);
    c->store->ops->rollback(c->store);
    if (rc != 0) LOG(LOG_WARN, "sessions", "not_swept", LOG_S("error", err.message));
    if (n > 0) LOG(LOG_INFO, "sessions", "swept", LOG_I("conversations", n));
}

static void fail_all(session_job *first, int rc, const shoal_err *err)
{
    for (session_job *j = first; j; j = j->next) {
        if (j->rc != 0) continue;
        j->rc = rc;
        j->err = *err;
    }
}

/* One transaction, up to the first job that fails in it: that one alone is undone with those before it, which
 * are then done again without it. Failures are rare, and each costs its batch one more beginning. */
static void run_some(session_thread *c, session_job **first)
{
    shoal_err err = {0};
    session_job *j = *first;
    int rc = c->store->ops->begin(c->store, &err);
    for (; rc == 0 && j; j = j->next) {
        if (j->rc != 0) continue;
        if (j->what == SESSION_LOAD) session_job_done(j);
        j->rc = do_job(c, j, c->now);
        if (j->rc != 0 && c->store->lost) {
            fail_all(j->next, j->rc, &j->err);
            break;
        }
        if (j->rc == 0 || c->store->each_alone) continue;
        c->store->ops->rollback(c->store);
        return; /* *first is tried again */
    }
    if (rc == 0) rc = c->store->ops->commit(c->store, &err);
    if (rc != 0) fail_all(*first, rc, &err);
    *first = NULL;
}

/* The file, and not one turn in it: a person has to do something, and reads logs. Once for a batch. */
static bool tell_damaged(const session_thread *c, const session_job *j)
{
    bool file = j->rc == SHOAL_EFORMAT && c->path && strncmp(j->err.message, c->path, strlen(c->path)) == 0;
    if (file)
        LOG(LOG_ERROR, "sessions", "file_damaged", LOG_S("file", c->path), LOG_S("error", j->err.message));
    return file;
}

static void *work(void *arg)
{
    signal_stack_open();
    session_thread *c = arg;
    shoal_err err = {0};
    bool told = false;
    int rc = open_store(c, &err);
    if (rc != 0) {
        fail_all(c->batch, rc, &err);
    } else {
        for (session_job *left = c->batch; left;) run_some(c, &left);
        sweep(c, c->now);
    }
    for (session_job *j = c->batch; j; j = j->next) {
        if (j->rc == 0) continue;
        told = told || tell_damaged(c, j);
        file_name_alone(j->err.message, c->path);
        file_name_alone(j->err.message, c->key_file);
    }
    uv_async_send(&c->ready);
    return NULL;
}

/* ---- on the loop --------------------------------------------------------------------------------- */

static void release(session_thread *c)
{
    if (c->store) c->store->ops->close(c->store);
    keyring_done(&c->keys);
    free(c->path);
    free(c->key_file);
    free(c->redis);
    free(c);
}

static void session_thread_on_closed(uv_handle_t *h)
{
    release(h->data);
}

static void session_thread_finish(session_job *j)
{
    while (j) {
        session_job *next = j->next;
        j->done(j);
        j = next;
    }
}

/* Signals stay the loop's. */
static bool start_thread(session_thread *c)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&c->thread, NULL, work, c) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

static void session_thread_start(session_thread *c)
{
    c->now = env_wall_s(c->time);
    c->batch = c->first;
    c->first = NULL;
    c->end = &c->first;
    c->runs = start_thread(c);
    if (c->runs) {
        uv_ref((uv_handle_t *)&c->ready);
        return;
    }
    session_job *batch = c->batch;
    shoal_err err;
    c->batch = NULL;
    fail_all(batch, err_nomem(&err), &err);
    session_thread_finish(batch);
}

static void on_ready(uv_async_t *a)
{
    session_thread *c = a->data;
    session_job *batch = c->batch;
    if (!c->runs) return;
    pthread_join(c->thread, NULL);
    uv_unref((uv_handle_t *)&c->ready);
    c->batch = NULL;
    session_thread_finish(batch); /* these may submit, which waits: `runs` is still true */
    c->runs = false;
    if (c->closing)
        uv_close((uv_handle_t *)&c->ready, session_thread_on_closed);
    else if (c->first)
        session_thread_start(c);
}

void session_thread_submit(session_thread *c, session_job *j)
{
    j->next = NULL;
    j->rc = 0;
    j->err = (shoal_err){0};
    *c->end = j;
    c->end = &j->next;
    if (!c->runs) session_thread_start(c);
}

int session_thread_new(session_thread **ret, uv_loop_t *loop, const session_thread_options *o, shoal_err *err)
{
    session_thread *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    *c = (session_thread){.bounds = o->bounds, .time = o->time};
    c->end = &c->first;
    c->path = o->path ? strdup(o->path) : NULL;
    c->key_file = o->key_file ? strdup(o->key_file) : NULL;
    c->redis = o->redis ? strdup(o->redis) : NULL;
    bool ok = (c->redis || !o->redis) && (c->path || !o->path) && (c->key_file || !o->key_file);
    if (!ok || uv_async_init(loop, &c->ready, on_ready) != 0) {
        release(c);
        return err_nomem(err);
    }
    c->ready.data = c;
    uv_unref((uv_handle_t *)&c->ready);
    *ret = c;
    return 0;
}

void session_thread_free(session_thread *c)
{
    if (!c) return;
    session_job *waiting = c->first;
    shoal_err err;
    c->first = NULL;
    c->end = &c->first;
    c->closing = true;
    fail_all(waiting, err_set(&err, SHOAL_ECANCELLED, "the server shuts down"), &err);
    session_thread_finish(waiting);
    if (!c->runs) uv_close((uv_handle_t *)&c->ready, session_thread_on_closed);
}
