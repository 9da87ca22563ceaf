/* bench_chunks.c: searches among N chunks: the scan beside what memory gives, and whole searches in a store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "bench/bench.h"
#include "retrieve/search.h"
#include "retrieve/vector_cache.h"

enum { PIECES = 10, WORDS = 24, VOCABULARY = 50000, BATCH = 500, K = 50 };

typedef struct bench {
    const bench_options *o;
    size_t n_documents, dims;
    isa set;
    vectors *v;
    char folder[64];
    store *s;
    vector_cache *sh;
    store_collection c;
    shoal_err *err;
} bench;

/* Row `row`'s codes: drawn, the same each time. */
static void draw_codes(int8_t *codes, size_t dims, uint64_t row)
{
    for (size_t i = 0; i < dims; i += 8) {
        uint64_t x = rng_mix(row * 8192 + i);
        for (size_t k = i; k < dims && k < i + 8; k++, x >>= 8)
            codes[k] = (int8_t)((int)(x & 0xFF) % 255 - 127);
    }
}

/* Words as texts have them: the r-th is drawn about 1/r times as often as the first. */
static void draw_text(buf *out, uint64_t row)
{
    for (uint64_t i = 0; i < WORDS; i++) {
        double u = rng_uniform(row, i), rank = 1;
        while (rank < VOCABULARY && u > 0.08) { /* halves of the vocabulary on a logarithmic scale */
            u = (u - 0.08) / 0.92;
            rank *= 2;
        }
        unsigned word = (unsigned)(rank + rank * rng_uniform(row + 1, i)) % VOCABULARY;
        buf_printf(out, "%sw%u", i ? " " : "", word);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double middle(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

/* ---- the scan --------------------------------------------------------------------------------------- */

static int fill_vectors(bench *b)
{
    int8_t *codes = malloc(PIECES * b->dims);
    float scales[PIECES];
    int rc = codes ? 0 : err_nomem(b->err);
    for (size_t i = 0; rc == 0 && i < b->n_documents; i++) {
        for (size_t k = 0; k < PIECES; k++) {
            draw_codes(codes + k * b->dims, b->dims, i * PIECES + k);
            scales[k] = 1e-4f;
        }
        if (vectors_add(b->v, (int64_t)i + 1, codes, scales, PIECES) != 0) rc = err_nomem(b->err);
    }
    free(codes);
    return rc;
}

typedef struct stream { /* plain reading, for comparison */
    const float *at;
    size_t n;
    float sums[64];
} stream;

static void read_share(void *arg, team_member *m)
{
    stream *s = arg;
    size_t begin, end;
    member_share(m, s->n, 1024, &begin, &end);
    s->sums[member_index(m)] = member_vec(m)->dot(s->at + begin, s->at + begin, end - begin);
}

/* Medians, and the fastest of each. */
typedef struct scan_times {
    double ms, best_ms, read_ms, best_read_ms;
} scan_times;

static int bench_scan(bench *b, int n_threads, scan_times *ret)
{
    team *t = NULL;
    found out[K];
    int8_t *q = malloc(b->dims);
    size_t n = (size_t)b->o->repeat, bytes = b->n_documents * PIECES * b->dims;
    double *ms = calloc(2 * n, sizeof *ms);
    stream s = {.at = mem_calloc64(bytes / sizeof(float) + 1, sizeof(float)), .n = bytes / sizeof(float)};
    int rc = q && ms && s.at ? team_new(&t, n_threads, b->set, b->err) : err_nomem(b->err);
    if (rc == 0) memset((void *)s.at, 1, s.n * sizeof(float)); /* pages of its own */
    for (size_t i = 0; rc == 0 && i < n; i++) {
        draw_codes(q, b->dims, i + 12345);
        uint64_t start = clock_ns();
        rc = vectors_nearest(b->v, t, b->set, &(nearest_ask){.codes = q, .scale = 1}, out, K) < 0
                 ? SHOAL_ENOMEM
                 : 0;
        ms[i] = clock_ms_since(start);
        start = clock_ns();
        team_run(t, read_share, &s);
        ms[n + i] = clock_ms_since(start);
    }
    if (rc == 0) {
        ret->ms = middle(ms, n); /* which sorts them */
        ret->read_ms = middle(ms + n, n);
        ret->best_ms = ms[0];
        ret->best_read_ms = ms[n];
    }
    team_free(t);
    free((void *)s.at);
    free(ms);
    free(q);
    return rc;
}

/* ---- the store -------------------------------------------------------------------------------------- */

static int put_document(bench *b, size_t i, float *scales, int8_t *codes)
{
    char name[32];
    buf text = {0};
    piece v[PIECES];
    bool replaced;
    for (size_t k = 0; k < PIECES; k++) {
        v[k] = (piece){.start = text.len, .line = 1};
        draw_text(&text, (i * PIECES + k) * 2 + 1);
        v[k].end = text.len;
        buf_putc(&text, '\n');
        draw_codes(codes + k * b->dims, b->dims, i * PIECES + k);
        scales[k] = 1e-4f;
    }
    snprintf(name, sizeof name, "d%zu", i);
    store_document d = {
        .source = name, .type = "text", .digest = "-", .metadata = "{}", .n_bytes = (int64_t)text.len};
    pieces cut = {.v = v, .n = PIECES};
    store_content what = {text.data, &cut, scales, codes, (uint32_t)b->dims, "bench"};
    int rc = text.failed ? err_nomem(b->err) : store_put(b->s, &b->c, &d, &what, &replaced, b->err);
    buf_done(&text);
    return rc;
}

static int fill_store(bench *b, double *ret_s)
{
    float scales[PIECES];
    int8_t *codes = malloc(PIECES * b->dims);
    uint64_t start = clock_ns();
    int rc = codes ? store_create(b->s, &b->c, 0, b->err) : err_nomem(b->err);
    for (size_t i = 0; rc == 0 && i < b->n_documents; i++) {
        if (i % BATCH == 0) rc = store_begin(b->s, true, b->err);
        if (rc == 0) rc = put_document(b, i, scales, codes);
        if (rc == 0 && (i % BATCH == BATCH - 1 || i + 1 == b->n_documents)) rc = store_commit(b->s, b->err);
    }
    *ret_s = clock_ms_since(start) / 1000;
    free(codes);
    return rc;
}

typedef struct timing {
    double first_ms, vector_ms, words_ms, both_ms;
} timing;

static int one_search(bench *b, size_t i, bool vectors_too, bool words_too, double *ret_ms)
{
    buf text = {0};
    search_answer a = {0};
    int8_t *q = malloc(b->dims);
    draw_text(&text, i * 2 + 777);
    char *end = text.data; /* eight words */
    for (int k = 0; end && k < 8; k++) end = strchr(end + 1, ' ');
    if (end) *end = 0;
    uint64_t start = clock_ns();
    int rc = q && !text.failed ? 0 : err_nomem(b->err);
    if (rc == 0) {
        draw_codes(q, b->dims, i + 999);
        search_ask ask = {.collection = "bench",
                          .text = text.data,
                          .codes = vectors_too ? q : NULL,
                          .dims = b->dims,
                          .scale = 1,
                          .model_digest = "bench",
                          .no_words = !words_too,
                          .k = 10};
        rc = search_run(&a, b->s, b->sh, &ask, b->err);
    }
    *ret_ms = clock_ms_since(start);
    search_done(&a);
    buf_done(&text);
    free(q);
    return rc;
}

static int bench_searches(bench *b, timing *ret)
{
    size_t n = (size_t)b->o->repeat;
    double *ms = calloc(3 * n, sizeof *ms);
    int rc = ms ? one_search(b, 0, true, false, &ret->first_ms) : err_nomem(b->err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = one_search(b, i, true, false, &ms[i]);
        if (rc == 0) rc = one_search(b, i, false, true, &ms[n + i]);
        if (rc == 0) rc = one_search(b, i, true, true, &ms[2 * n + i]);
    }
    if (rc == 0) {
        ret->vector_ms = middle(ms, n);
        ret->words_ms = middle(ms + n, n);
        ret->both_ms = middle(ms + 2 * n, n);
    }
    free(ms);
    return rc;
}

/* ---- */

static int show_scan(bench *b)
{
    double bytes = (double)(b->n_documents * PIECES) * (double)(b->dims + sizeof(float));
    double plain = (double)(b->n_documents * PIECES * b->dims); /* what is read for comparison */
    int most = b->o->model.threads ? (int)b->o->model.threads : sys_core_count();
    printf("%-11s %7s %9s %9s %14s %7s   %s\n", "KERNELS", "THREADS", "SCAN ms", "GB/s", "READING GB/s",
           "SHARE", "FASTEST: ms, GB/s, READING");
    for (int threads = 1; threads <= most; threads *= 2) {
        scan_times t;
        int rc = bench_scan(b, threads, &t);
        if (rc != 0) return rc;
        double rate = bytes / t.ms / 1e6, reading = plain / t.read_ms / 1e6;
        printf("%-11s %7d %9.1f %9.1f %14.1f %6.0f%%   %.1f, %.1f, %.1f\n", isa_name(b->set), threads, t.ms,
               rate, reading, 100 * rate / reading, t.best_ms, bytes / t.best_ms / 1e6,
               plain / t.best_read_ms / 1e6);
        fflush(stdout);
    }
    return 0;
}

static int show_store(bench *b)
{
    char path[96];
    double fill_s = 0;
    timing t = {0};
    snprintf(path, sizeof path, "%s/bench.db", b->folder);
    int rc = store_open(&b->s, path, b->err);
    if (rc == 0) rc = vector_cache_new(&b->sh, SIZE_MAX / 2, 0, b->err);
    if (rc == 0) rc = fill_store(b, &fill_s);
    if (rc == 0) rc = bench_searches(b, &t);
    if (rc == 0)
        printf("\nstore: filled in %.1f s (%.0f chunks/s), first search %.0f ms (reads all vectors)\n"
               "searches of 10 results: vectors %.1f ms, words %.1f ms, both %.1f ms\n",
               fill_s, (double)(b->n_documents * PIECES) / fill_s, t.first_ms, t.vector_ms, t.words_ms,
               t.both_ms);
    vector_cache_free(b->sh);
    store_close(b->s);
    unlink(path);
    return rc;
}

int bench_chunks(const bench_options *o, shoal_err *err)
{
    bench b = {.o = o,
               .n_documents = ((size_t)o->n_chunks + PIECES - 1) / PIECES,
               .dims = (size_t)o->dims,
               .err = err};
    b.c = (store_collection){
        .name = "bench", .title = "", .metadata = "{}", .model = "bench", .piece_bytes = 256};
    snprintf(b.folder, sizeof b.folder, "/tmp/shoal-bench-XXXXXX");
    int rc = isa_choose(&b.set, err);
    if (rc == 0) b.v = vectors_new(b.dims);
    if (rc == 0) rc = b.v ? fill_vectors(&b) : err_nomem(err);
    if (rc == 0) rc = show_scan(&b);
    vectors_free(b.v);
    if (rc == 0 && !mkdtemp(b.folder)) rc = err_set(err, SHOAL_EIO, "/tmp: no folder can be made");
    if (rc == 0) rc = show_store(&b);
    rmdir(b.folder);
    return rc;
}
