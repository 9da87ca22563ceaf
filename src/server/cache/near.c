/* near.c: see near.h. A partition keeps its codes in one block, so that the kernel runs over all rows at once; an
 * item that goes leaves its row to the last one. */
#include "cache/near.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

#define N_SHELVES 256
#define MIN_ITEMS 64
#define RUN_ROWS  256

typedef struct partition partition;
typedef struct item item;

struct item {
    sha256_digest key;
    item *next;    /* of its bucket */
    list_node use; /* in the list by use */
    partition *partition;
    size_t row, bytes;
    uint64_t serial; /* when it came */
    char text[];
};

struct partition {
    sha256_digest digest;
    partition *next; /* of its bucket */
    size_t n, cap, dims;
    int8_t *codes; /* [cap][dims] */
    float *scales; /* [cap] */
    item **items;  /* [cap] */
};

struct near {
    const vec_kernels *kernels;
    size_t max_items, max_bytes, n, bytes;
    uint64_t serial;
    partition *partitions[N_SHELVES];
    item **buckets; /* n_buckets, a power of two */
    size_t n_buckets;
    list_node uses; /* items, the one unused for longest first */
};

static size_t hash(const sha256_digest *d)
{
    uint64_t h;
    memcpy(&h, d->bytes, sizeof h);
    return (size_t)h;
}

static bool near_is(const sha256_digest *a, const sha256_digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static item **item_slot(const near *n, const sha256_digest *key)
{
    item **at = &n->buckets[hash(key) & (n->n_buckets - 1)];
    while (*at && !near_is(&(*at)->key, key)) at = &(*at)->next;
    return at;
}

static partition **near_partition_slot(near *n, const sha256_digest *digest)
{
    partition **at = &n->partitions[hash(digest) % N_SHELVES];
    while (*at && !near_is(&(*at)->digest, digest)) at = &(*at)->next;
    return at;
}

void near_touch(near *n, const sha256_digest *key)
{
    item *i = *item_slot(n, key);
    if (i) list_move(&n->uses, &i->use);
}

/* ---- partitions ---------------------------------------------------------------------------------- */

static size_t row_bytes(const partition *s)
{
    return s->dims + sizeof *s->scales + sizeof *s->items;
}

static void near_partition_free(partition *s)
{
    free(s->codes);
    free(s->scales);
    free(s->items);
    free(s);
}

static void near_partition_remove(near *n, partition *s)
{
    *near_partition_slot(n, &s->digest) = s->next;
    n->bytes -= sizeof *s + s->cap * row_bytes(s);
    near_partition_free(s);
}

static partition *near_partition_obtain(near *n, const sha256_digest *digest, size_t dims)
{
    partition **at = near_partition_slot(n, digest);
    if (*at) return (*at)->dims == dims ? *at : NULL;
    partition *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (partition){.digest = *digest, .dims = dims};
    *at = s;
    n->bytes += sizeof *s;
    return s;
}

/* Room for `cap` rows, not fewer than there are. On false there is as much as before. */
static bool near_partition_resize(near *n, partition *s, size_t cap)
{
    int8_t *codes = realloc(s->codes, cap * s->dims);
    if (codes) s->codes = codes;
    float *scales = codes ? realloc(s->scales, cap * sizeof *scales) : NULL;
    if (scales) s->scales = scales;
    item **items = scales ? realloc(s->items, cap * sizeof(item *)) : NULL;
    if (!items) return false;
    s->items = items;
    n->bytes += cap * row_bytes(s);
    n->bytes -= s->cap * row_bytes(s);
    s->cap = cap;
    return true;
}

/* Most partitions have a row or two, since a history makes one of its own; few are long. */
static size_t roomy(size_t rows)
{
    return rows + rows / 4 + 1;
}

/* ---- items --------------------------------------------------------------------------------------- */

static void item_remove(near *n, item *i)
{
    partition *s = i->partition;
    size_t last = --s->n;
    if (i->row != last) {
        memcpy(s->codes + i->row * s->dims, s->codes + last * s->dims, s->dims);
        s->scales[i->row] = s->scales[last];
        s->items[i->row] = s->items[last];
        s->items[i->row]->row = i->row;
    }
    if (s->n == 0)
        near_partition_remove(n, s);
    else if (s->n < s->cap / 2)
        near_partition_resize(n, s, roomy(s->n));
    *item_slot(n, &i->key) = i->next;
    list_take(&i->use);
    n->bytes -= i->bytes;
    n->n--;
    free(i);
}

void near_drop(near *n, const sha256_digest *key)
{
    item *i = *item_slot(n, key);
    if (i) item_remove(n, i);
}

/* Doubles the table when chains get long; without memory the old one goes on serving. */
static void grow_buckets(near *n)
{
    size_t size = n->n_buckets * 2;
    item **fresh = n->n < n->n_buckets ? NULL : calloc(size, sizeof(item *));
    if (!fresh) return;
    list_each (i, &n->uses, item, use) {
        item **at = &fresh[hash(&i->key) & (size - 1)];
        i->next = *at;
        *at = i;
    }
    n->bytes += (size - n->n_buckets) * sizeof(item *);
    free(n->buckets);
    n->buckets = fresh;
    n->n_buckets = size;
}

static bool near_put(near *n, partition *s, const sha256_digest *key, const int8_t *codes, float scale,
                     const char *text)
{
    size_t len = strlen(text) + 1, bytes = sizeof(item) + len;
    item *i = s->n < s->cap || near_partition_resize(n, s, roomy(s->n)) ? calloc(1, bytes) : NULL;
    if (!i) return false;
    *i = (item){.key = *key, .partition = s, .row = s->n++, .bytes = bytes, .serial = n->serial++};
    memcpy(i->text, text, len);
    memcpy(s->codes + i->row * s->dims, codes, s->dims);
    s->scales[i->row] = scale;
    s->items[i->row] = i;
    grow_buckets(n);
    item **at = &n->buckets[hash(key) & (n->n_buckets - 1)];
    i->next = *at;
    *at = i;
    list_put(&n->uses, &i->use);
    n->bytes += bytes;
    n->n++;
    return true;
}

bool near_add(near *n, const sha256_digest *digest, const sha256_digest *key, const int8_t *codes,
              float scale, size_t dims, const char *text)
{
    assert(dims > 0 && dims <= NEAR_DIMS_MAX);
    near_drop(n, key);
    partition *s = near_partition_obtain(n, digest, dims);
    bool ok = s && near_put(n, s, key, codes, scale, text);
    if (s && s->n == 0) near_partition_remove(n, s);
    while (n->n > 0 && (n->n > n->max_items || n->bytes > n->max_bytes))
        item_remove(n, list_first(&n->uses, item, use));
    return ok && *item_slot(n, key);
}

/* ---- finding ------------------------------------------------------------------------------------- */

typedef struct candidate {
    const item *item;
    float cosine;
} candidate;

static bool better(candidate a, candidate b)
{
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.item->serial < b.item->serial;
}

/* best[k], sorted; returns how many there are now. */
static size_t offer(candidate *best, size_t n, size_t k, candidate c)
{
    size_t at = n;
    while (at > 0 && better(c, best[at - 1])) at--;
    if (at == k) return n;
    if (n < k) n++;
    memmove(best + at + 1, best + at, (n - 1 - at) * sizeof *best);
    best[at] = c;
    return n;
}

size_t near_find(const near *n, const sha256_digest *digest, const int8_t *codes, float scale, size_t dims,
                 double least, near_found *ret, size_t k)
{
    candidate best[NEAR_FOUND_MAX];
    int32_t dots[RUN_ROWS];
    size_t found = 0;
    const partition *s = *near_partition_slot((near *)n, digest);
    if (!s || s->dims != dims || k == 0) return 0;
    if (k > NEAR_FOUND_MAX) k = NEAR_FOUND_MAX;
    for (size_t from = 0; from < s->n; from += RUN_ROWS) {
        size_t rows = s->n - from < RUN_ROWS ? s->n - from : RUN_ROWS;
        n->kernels->dots_i8(dots, codes, s->codes + from * dims, rows, dims);
        for (size_t i = 0; i < rows; i++) {
            candidate c = {s->items[from + i], (float)dots[i] * (scale * s->scales[from + i])};
            if ((double)c.cosine >= least) found = offer(best, found, k, c);
        }
    }
    for (size_t i = 0; i < found; i++)
        ret[i] = (near_found){.key = best[i].item->key, .text = best[i].item->text, .cosine = best[i].cosine};
    return found;
}

/* ---- life ---------------------------------------------------------------------------------------- */

int near_new(near **ret, isa set, size_t max_items, size_t max_bytes, shoal_err *err)
{
    near *n = calloc(1, sizeof *n);
    item **buckets = calloc(MIN_ITEMS, sizeof(item *));
    if (!n || !buckets) {
        free(n);
        free(buckets);
        return err_nomem(err);
    }
    *n = (near){.kernels = vec_kernels_for(set), .max_items = max_items, .max_bytes = max_bytes};
    n->buckets = buckets;
    n->n_buckets = MIN_ITEMS;
    list_init(&n->uses);
    n->bytes = sizeof *n + MIN_ITEMS * sizeof(item *);
    *ret = n;
    return 0;
}

void near_free(near *n)
{
    if (!n) return;
    list_each (i, &n->uses, item, use) item_remove(n, i);
    free(n->buckets);
    free(n);
}

size_t near_count(const near *n)
{
    return n->n;
}

size_t near_bytes(const near *n)
{
    return n->bytes;
}
