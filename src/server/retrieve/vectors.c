/* vectors.c: see vectors.h. */
#include "retrieve/vectors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"

enum { SEGMENT_ROWS = 32768, RUN_ROWS = 256 };
#define HUGE_PAGE ((size_t)2 << 20)

typedef struct segment {
    int8_t *codes; /* [SEGMENT_ROWS][dims] */
    float scales[SEGMENT_ROWS];
} segment;

typedef struct resident { /* a document */
    int64_t id;
    size_t first;
    uint32_t n;
    bool dead;
} resident;

struct vectors {
    size_t dims, n_rows, n_dead;
    segment **segments;
    size_t n_segments, cap_segments;
    resident *documents;
    size_t n_documents, cap_documents;
};

vectors *vectors_new(size_t dims)
{
    vectors *v = calloc(1, sizeof *v);
    if (v) v->dims = dims;
    return v;
}

void vectors_free(vectors *v)
{
    if (!v) return;
    for (size_t i = 0; i < v->n_segments; i++) {
        free(v->segments[i]->codes);
        free(v->segments[i]);
    }
    free(v->segments);
    free(v->documents);
    free(v);
}

static bool vectors_grow(void **at, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return true;
    size_t more = *cap ? 2 * *cap : 16, bytes;
    if (more < need) more = need;
    void *p = size_mul(more, size, &bytes) ? NULL : realloc(*at, bytes);
    if (!p) return false;
    *at = p;
    *cap = more;
    return true;
}

/* Codes in large pages where the system has them: of small ones a scan touches a new one every ten rows. What
 * is not written takes no memory yet. */
static int8_t *new_codes(size_t dims)
{
    size_t bytes;
    if (size_mul(SEGMENT_ROWS, dims, &bytes) || size_add(bytes, HUGE_PAGE - 1, &bytes)) return NULL;
    bytes = bytes / HUGE_PAGE * HUGE_PAGE;
    int8_t *codes = aligned_alloc(HUGE_PAGE, bytes);
    if (codes) madvise(codes, bytes, MADV_HUGEPAGE);
    return codes;
}

static bool add_segment(vectors *v)
{
    segment *s = malloc(sizeof *s);
    int8_t *codes = s ? new_codes(v->dims) : NULL;
    if (!codes) {
        free(s);
        return false;
    }
    s->codes = codes;
    v->segments[v->n_segments++] = s;
    return true;
}

int vectors_add(vectors *v, int64_t document, const int8_t *codes, const void *scales, size_t n)
{
    assert(v->n_documents == 0 || v->documents[v->n_documents - 1].id < document);
    size_t rows = v->n_rows + n, need = (rows + SEGMENT_ROWS - 1) / SEGMENT_ROWS;
    if (n > UINT32_MAX ||
        !vectors_grow((void **)&v->documents, &v->cap_documents, v->n_documents + 1, sizeof *v->documents) ||
        !vectors_grow((void **)&v->segments, &v->cap_segments, need, sizeof *v->segments))
        return SHOAL_ENOMEM;
    while (v->n_segments < need)
        if (!add_segment(v)) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        segment *s = v->segments[(v->n_rows + i) / SEGMENT_ROWS];
        size_t at = (v->n_rows + i) % SEGMENT_ROWS;
        memcpy(s->codes + at * v->dims, codes + i * v->dims, v->dims);
        memcpy(&s->scales[at], (const char *)scales + i * sizeof(float), sizeof(float));
    }
    v->documents[v->n_documents++] = (resident){.id = document, .first = v->n_rows, .n = (uint32_t)n};
    v->n_rows = rows;
    return 0;
}

/* The first document whose id is not below this one's. */
static size_t find_document(const vectors *v, int64_t id)
{
    size_t low = 0, high = v->n_documents;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (v->documents[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool vectors_drop(vectors *v, int64_t document)
{
    size_t i = find_document(v, document);
    if (i == v->n_documents || v->documents[i].id != document || v->documents[i].dead) return false;
    v->documents[i].dead = true;
    v->n_dead += v->documents[i].n;
    return true;
}

size_t vectors_bytes(const vectors *v)
{
    return v->n_rows * (v->dims + sizeof(float)) + v->n_documents * sizeof(resident);
}

size_t vectors_rows(const vectors *v)
{
    return v->n_rows - v->n_dead;
}

size_t vectors_dead(const vectors *v)
{
    return v->n_dead;
}

bool vectors_document(const vectors *v, size_t i, int64_t *ret, bool *ret_dead)
{
    if (i >= v->n_documents) return false;
    *ret = v->documents[i].id;
    *ret_dead = v->documents[i].dead;
    return true;
}

/* ---- the best so far: a heap whose root is the worst of them ---------------------------------------- */

typedef struct hit {
    float score;
    size_t row;
} hit;

typedef struct heap {
    hit *v;
    size_t n, k;
} heap;

static bool worse(hit a, hit b)
{
    return a.score != b.score ? a.score < b.score : a.row > b.row;
}

static void sink(heap *h, size_t i)
{
    for (;;) {
        size_t least = i, left = 2 * i + 1;
        for (size_t c = left; c < left + 2 && c < h->n; c++)
            if (worse(h->v[c], h->v[least])) least = c;
        if (least == i) return;
        hit t = h->v[i];
        h->v[i] = h->v[least];
        h->v[least] = t;
        i = least;
    }
}

static void offer(heap *h, hit x)
{
    if (h->n == h->k) {
        if (!worse(h->v[0], x)) return;
        h->v[0] = x;
        sink(h, 0);
        return;
    }
    h->v[h->n++] = x;
    for (size_t i = h->n / 2; h->n == h->k && i-- > 0;) sink(h, i); /* full: now it is a heap */
}

/* ---- the scan --------------------------------------------------------------------------------------- */

typedef struct scan {
    const vectors *v;
    const nearest_ask *ask;
    const vec_kernels *kernels;
    heap *heaps; /* one a member */
} scan;

static void scan_run(const scan *s, heap *best, size_t from, size_t to)
{
    int32_t dots[RUN_ROWS];
    while (from < to) {
        const segment *seg = s->v->segments[from / SEGMENT_ROWS];
        size_t at = from % SEGMENT_ROWS, n = to - from;
        if (n > SEGMENT_ROWS - at) n = SEGMENT_ROWS - at;
        if (n > RUN_ROWS) n = RUN_ROWS;
        s->kernels->dots_i8(dots, s->ask->codes, seg->codes + at * s->v->dims, n, s->v->dims);
        for (size_t i = 0; i < n; i++)
            offer(best, (hit){(float)dots[i] * (s->ask->scale * seg->scales[at + i]), from + i});
        from += n;
    }
}

static int compare_ids(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

static bool is_wanted(const nearest_ask *a, const resident *d)
{
    if (d->dead) return false;
    return !a->filtered || (a->n_only && bsearch(&d->id, a->only, a->n_only, sizeof *a->only, compare_ids));
}

/* The document that has this row. */
static size_t document_of(const vectors *v, size_t row)
{
    size_t low = 0, high = v->n_documents;
    while (low + 1 < high) {
        size_t mid = (low + high) / 2;
        if (v->documents[mid].first <= row)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Rows begin to end: neighbours that are wanted make one run. */
static void scan_rows(const scan *s, heap *best, size_t begin, size_t end)
{
    const vectors *v = s->v;
    size_t from = begin, to = begin;
    for (size_t i = begin < end ? document_of(v, begin) : v->n_documents; i < v->n_documents; i++) {
        const resident *d = &v->documents[i];
        if (d->first >= end) break;
        size_t a = d->first > begin ? d->first : begin, b = d->first + d->n < end ? d->first + d->n : end;
        if (a >= b || !is_wanted(s->ask, d)) continue;
        if (a != to) {
            scan_run(s, best, from, to);
            from = a;
        }
        to = b;
    }
    scan_run(s, best, from, to);
}

static void scan_share(void *arg, team_member *m)
{
    scan *s = arg;
    size_t begin, end;
    member_share(m, s->v->n_rows, 64, &begin, &end);
    scan_rows(s, &s->heaps[member_index(m)], begin, end);
}

static int better_first(const void *x, const void *y)
{
    hit a = *(const hit *)x, b = *(const hit *)y;
    return worse(b, a) ? -1 : worse(a, b);
}

/* hits[n], of all members, as results. */
static int take_best(const vectors *v, hit *hits, size_t n, found *out, size_t k)
{
    if (n > 1) qsort(hits, n, sizeof *hits, better_first);
    if (n > k) n = k;
    for (size_t i = 0; i < n; i++) {
        const resident *d = &v->documents[document_of(v, hits[i].row)];
        out[i] = (found){.document = d->id,
                         .ordinal = (uint32_t)(hits[i].row - d->first),
                         .cosine = hits[i].score,
                         .score = hits[i].score,
                         .by_meaning = (unsigned)i + 1};
    }
    return (int)n;
}

int vectors_nearest(const vectors *v, team *t, isa set, const nearest_ask *ask, found *out, size_t k)
{
    size_t n_members = t ? (size_t)team_size(t) : 1, n = 0;
    hit *hits = calloc(n_members * k + 1, sizeof *hits);
    heap *heaps = calloc(n_members, sizeof *heaps);
    int rc = SHOAL_ENOMEM;
    if (hits && heaps) {
        scan s = {.v = v, .ask = ask, .kernels = vec_kernels_for(set), .heaps = heaps};
        for (size_t i = 0; i < n_members; i++) heaps[i] = (heap){.v = hits + i * k, .k = k};
        if (k == 0)
            n_members = 0;
        else if (t)
            team_run(t, scan_share, &s);
        else
            scan_rows(&s, heaps, 0, v->n_rows);
        for (size_t i = 0; i < n_members; i++) {
            memmove(hits + n, heaps[i].v, heaps[i].n * sizeof *hits);
            n += heaps[i].n;
        }
        rc = take_best(v, hits, n, out, k);
    }
    free(heaps);
    free(hits);
    return rc;
}
