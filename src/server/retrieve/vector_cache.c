/* vector_cache.c: see vector_cache.h. */
#include "retrieve/vector_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/sys.h"

#define TEAM_FROM_BYTES ((size_t)4 << 20) /* a smaller scan is over before a second thread is awake */

typedef struct image {
    int64_t collection;
    pthread_rwlock_t lock;             /* guards what follows; searches read */
    vectors *v;                        /* NULL: none yet */
    int64_t revision, n_removed, last; /* of the store when it was read, and the last document's id */
    unsigned users;                    /* the cache's lock guards these three */
    uint64_t used_at;
    size_t bytes;
    struct image *next;
} image;

struct vector_cache {
    pthread_mutex_t lock; /* guards images, their users, and the sums */
    image *images;
    size_t bytes, max_bytes;
    uint64_t clock;
    pthread_mutex_t team_lock; /* one scan at a time by the team */
    team *team;                /* made when it is first wanted */
    bool no_team;
    isa set;
    int n_threads;
};

int vector_cache_new(vector_cache **ret, size_t max_bytes, int n_threads, shoal_err *err)
{
    vector_cache *sh = calloc(1, sizeof *sh);
    if (!sh) return err_nomem(err);
    int cores = sys_core_count();
    sh->max_bytes = max_bytes;
    sh->n_threads = n_threads ? n_threads : cores < 2 ? 1 : 2;
    int rc = isa_choose(&sh->set, err);
    if (rc != 0) {
        free(sh);
        return rc;
    }
    pthread_mutex_init(&sh->lock, NULL);
    pthread_mutex_init(&sh->team_lock, NULL);
    *ret = sh;
    return 0;
}

static void image_free(image *im)
{
    vectors_free(im->v);
    pthread_rwlock_destroy(&im->lock);
    free(im);
}

void vector_cache_free(vector_cache *sh)
{
    if (!sh) return;
    for (image *im = sh->images, *next; im; im = next) {
        next = im->next;
        image_free(im);
    }
    team_free(sh->team);
    pthread_mutex_destroy(&sh->lock);
    pthread_mutex_destroy(&sh->team_lock);
    free(sh);
}

size_t vector_cache_bytes(vector_cache *sh)
{
    pthread_mutex_lock(&sh->lock);
    size_t n = sh->bytes;
    pthread_mutex_unlock(&sh->lock);
    return n;
}

/* ---- images ------------------------------------------------------------------------------------------ */

/* The image of a collection, in use. NULL: out of memory. */
static image *take_image(vector_cache *sh, int64_t collection)
{
    pthread_mutex_lock(&sh->lock);
    image *im = sh->images;
    while (im && im->collection != collection) im = im->next;
    if (!im && (im = calloc(1, sizeof *im))) {
        im->collection = collection;
        pthread_rwlock_init(&im->lock, NULL);
        im->next = sh->images;
        sh->images = im;
    }
    if (im) {
        im->users++;
        im->used_at = ++sh->clock;
    }
    pthread_mutex_unlock(&sh->lock);
    return im;
}

static void drop_image(vector_cache *sh, image *im)
{
    pthread_mutex_lock(&sh->lock);
    im->users--;
    pthread_mutex_unlock(&sh->lock);
}

/* With the cache's lock: the image that was not used for longest goes. False: all are in use. */
static bool evict_one(vector_cache *sh)
{
    image **oldest = NULL;
    for (image **at = &sh->images; *at; at = &(*at)->next)
        if ((*at)->users == 0 && (!oldest || (*at)->used_at < (*oldest)->used_at)) oldest = at;
    if (!oldest) return false;
    image *im = *oldest;
    *oldest = im->next;
    sh->bytes -= im->bytes;
    image_free(im);
    return true;
}

/* The image is to have so many bytes. False: there is no room for them. */
static bool account(vector_cache *sh, image *im, size_t bytes)
{
    bool fits = true;
    pthread_mutex_lock(&sh->lock);
    sh->bytes += bytes - im->bytes;
    im->bytes = bytes;
    while (fits && sh->bytes > sh->max_bytes) fits = evict_one(sh);
    pthread_mutex_unlock(&sh->lock);
    return fits;
}

/* ---- keeping up -------------------------------------------------------------------------------------- */

typedef struct reading {
    vector_cache *sh;
    image *im;
    const store_collection *c;
    size_t next; /* of the image's documents, while ids are compared */
    shoal_err *err;
} reading;

static int add_document(void *user, int64_t document, const void *scales, const int8_t *codes, size_t n)
{
    reading *r = user;
    if (vectors_add(r->im->v, document, codes, scales, n) != 0) return err_nomem(r->err);
    if (!account(r->sh, r->im, vectors_bytes(r->im->v)))
        return err_set(
            r->err, SHOAL_ELIMIT,
            "the vectors of '%s' need about %lld MiB of memory, and retrieval.memory_mb allows %zu",
            r->c->name, (long long)((r->c->n_pieces * (r->c->dims + 4)) >> 20) + 1, r->sh->max_bytes >> 20);
    return 0;
}

/* Ids of the store in ascending order: what the image has between them is gone. */
static int compare_document(void *user, int64_t id)
{
    reading *r = user;
    int64_t have;
    bool dead;
    for (; vectors_document(r->im->v, r->next, &have, &dead) && have <= id; r->next++)
        if (have < id && !dead) vectors_drop(r->im->v, have);
    return 0;
}

static void vector_cache_forget(reading *r)
{
    vectors_free(r->im->v);
    r->im->v = NULL;
    r->im->revision = r->im->n_removed = r->im->last = 0;
    account(r->sh, r->im, 0);
}

static int read_changes(reading *r, store *s)
{
    image *im = r->im;
    int rc = 0;
    if (!im->v && !(im->v = vectors_new(r->c->dims))) return err_nomem(r->err);
    if (im->n_removed != r->c->n_removed) {
        r->next = 0;
        rc = store_ids(s, r->c->id, compare_document, r, r->err);
        if (rc == 0) rc = compare_document(r, INT64_MAX);
    }
    if (rc == 0) rc = store_vectors(s, r->c, im->last, add_document, r, r->err);
    int64_t id;
    bool dead;
    for (; rc == 0 && vectors_document(im->v, r->next, &id, &dead); r->next++) im->last = id;
    return rc;
}

/* With the image's lock to write: it shows what *c says. */
static int refresh(reading *r, store *s)
{
    image *im = r->im;
    if (im->v && vectors_dead(im->v) > vectors_rows(im->v) + 4096)
        vector_cache_forget(r); /* most of it is dead: read it anew */
    r->next = 0;
    int rc = read_changes(r, s);
    if (rc != 0) {
        vector_cache_forget(r);
        return rc;
    }
    im->revision = r->c->revision;
    im->n_removed = r->c->n_removed;
    return 0;
}

/* The image is locked to read, and shows what the store says in this transaction. */
static int hold(reading *r, store *s, const char *name, arena *mem, store_collection *c)
{
    image *im = r->im;
    for (;;) {
        pthread_rwlock_rdlock(&im->lock);
        if (im->revision == c->revision) return 0;
        bool behind = im->revision < c->revision;
        pthread_rwlock_unlock(&im->lock);
        int rc = 0;
        if (behind) {
            pthread_rwlock_wrlock(&im->lock);
            if (im->revision < c->revision) rc = refresh(r, s);
            pthread_rwlock_unlock(&im->lock);
        } else { /* somebody who began later was here: see what he saw */
            store_rollback(s);
            rc = store_begin(s, false, r->err);
            if (rc == 0) rc = store_find(s, name, mem, c, r->err);
            if (rc == 0 && c->id != im->collection)
                rc =
                    err_set(r->err, SHOAL_EUNAVAILABLE, "the collection '%s' was made anew; ask again", name);
        }
        if (rc != 0) return rc;
    }
}

/* ---- searching --------------------------------------------------------------------------------------- */

/* Two threads are worth it for what is large, and only when nobody else has them. */
static int scan(vector_cache *sh, const vectors *v, const nearest_ask *ask, found *out, size_t k)
{
    bool large = sh->n_threads > 1 && vectors_bytes(v) >= TEAM_FROM_BYTES;
    if (!large || pthread_mutex_trylock(&sh->team_lock) != 0)
        return vectors_nearest(v, NULL, sh->set, ask, out, k);
    if (!sh->team && !sh->no_team) sh->no_team = team_new(&sh->team, sh->n_threads, sh->set, NULL) != 0;
    int n = vectors_nearest(v, sh->team, sh->set, ask, out, k);
    pthread_mutex_unlock(&sh->team_lock);
    return n;
}

static int nearest_in(vector_cache *sh, store *s, const store_collection *c, const image *im,
                      const nearest_ask *given, const filter *f, found *out, size_t k, shoal_err *err)
{
    nearest_ask ask = *given;
    int64_t *only = NULL;
    int rc = 0;
    if (f && f->sql.len) {
        rc = store_filtered(s, c, f, &only, &ask.n_only, err);
        ask.only = only;
        ask.filtered = true;
    }
    if (rc == 0) rc = scan(sh, im->v, &ask, out, k);
    free(only);
    return rc == SHOAL_ENOMEM ? err_nomem(err) : rc;
}

int vector_cache_nearest(vector_cache *sh, store *s, const char *name, arena *mem, store_collection *c,
                         const nearest_ask *ask, const filter *f, found *out, size_t k, shoal_err *err)
{
    int rc = store_find(s, name, mem, c, err);
    if (rc != 0 || c->dims == 0) return rc; /* nothing was embedded yet */
    image *im = take_image(sh, c->id);
    if (!im) return err_nomem(err);
    reading r = {.sh = sh, .im = im, .c = c, .err = err};
    rc = hold(&r, s, name, mem, c);
    if (rc == 0) {
        rc = nearest_in(sh, s, c, im, ask, f, out, k, err);
        pthread_rwlock_unlock(&im->lock);
    }
    drop_image(sh, im);
    return rc;
}
