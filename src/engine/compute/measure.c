/* measure.c: timing of products, of the team and of the machine; see measure.h. */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include "compute/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/number.h"
#include "compute/limits.h"

#define ROUNDS        9 /* the median of an odd number of rounds sheds a noisy neighbour */
#define LIMIT_ROUND_S 2e-3

typedef struct work {
    wmat *w;
    acts *a;
    float *x, *y;
    size_t n_tokens;
    int n_repeats;
} work;

static void repeat_mul(void *arg, team_member *m)
{
    work *k = arg;
    size_t rows = wmat_rows(k->w), cols = wmat_cols(k->w);
    for (int i = 0; i < k->n_repeats; i++) {
        acts_load(m, k->a, wmat_type(k->w), k->x, k->n_tokens, cols, cols);
        acts_mul(m, k->a, k->w, k->y, rows, false);
        team_barrier(m);
    }
}

/* Wall seconds of one call of fn. */
static double time_once(team *t, void (*fn)(void *, team_member *), void *arg)
{
    uint64_t start = clock_ns();
    team_run(t, fn, arg);
    return (double)(clock_ns() - start) / 1e9;
}

/* Seconds of one repeat: a first round finds out how many repeats fill a round. */
static double time_team(team *t, void (*fn)(void *, team_member *), void *arg, int *n_repeats, double seconds)
{
    double rounds[ROUNDS], once = 0;
    for (*n_repeats = 1; once < seconds / ROUNDS && *n_repeats < 1 << 24; *n_repeats *= 2)
        once = time_once(t, fn, arg);
    for (int r = 0; r < ROUNDS; r++) rounds[r] = time_once(t, fn, arg) / *n_repeats;
    qsort(rounds, ROUNDS, sizeof *rounds, number_compare_doubles);
    return rounds[ROUNDS / 2];
}

static int make_matrix(work *k, dtype t, size_t rows, size_t cols, isa set, shoal_err *err)
{
    size_t n, bytes;
    if (size_mul(rows, cols, &n) || size_mul(n, sizeof(float), &bytes)) return err_nomem(err);
    if (cols % dtype_block(t) != 0)
        return err_set(err, SHOAL_EINVALID, "%zu columns are not whole %s blocks", cols, dtype_name(t));
    float *f = malloc(bytes);
    void *packed = malloc(n / dtype_block(t) * dtype_block_bytes(t));
    int rc = f && packed ? 0 : err_nomem(err);
    if (rc == 0) {
        for (size_t i = 0; i < n; i++) f[i] = (float)(rng_mix(i) >> 40) * 0x1p-24f - 0.5f;
        dtype_from_f32(t, f, packed, n);
        rc = wmat_new(&k->w, t, rows, cols, packed, NULL, set, err);
    }
    free(packed);
    free(f);
    return rc;
}

static int make_work(work *k, const measure_spec *s, size_t rows, size_t cols, shoal_err *err)
{
    size_t n_x, n_y;
    if (size_mul(k->n_tokens, cols, &n_x) || size_mul(k->n_tokens, rows, &n_y)) return err_nomem(err);
    int rc = make_matrix(k, s->type, rows, cols, s->isa, err);
    if (rc == 0) rc = acts_new(&k->a, k->n_tokens, cols, err);
    if (rc != 0) return rc;
    k->x = mem_calloc64(n_x, sizeof *k->x);
    k->y = mem_calloc64(n_y, sizeof *k->y);
    if (!k->x || !k->y) return err_nomem(err);
    for (size_t i = 0; i < n_x; i++) k->x[i] = (float)(rng_mix(i) >> 40) * 0x1p-24f - 0.5f;
    return 0;
}

int measure_mul(measure_result *ret, const measure_spec *s, shoal_err *err)
{
    size_t rows = s->rows ? s->rows : 1024, block = dtype_block(s->type);
    size_t cols = s->cols ? s->cols : 1024 / block * block;
    work k = {.n_tokens = s->n_tokens ? s->n_tokens : 1};
    team *t = NULL;
    int rc = team_new(&t, s->n_threads, s->isa, err);
    if (rc == 0) rc = make_work(&k, s, rows, cols, err);
    if (rc == 0) {
        uint64_t wall = clock_ns(), cpu = clock_process_cpu_ns();
        double each = time_team(t, repeat_mul, &k, &k.n_repeats, s->seconds > 0 ? s->seconds : 0.2);
        double share = (double)(clock_process_cpu_ns() - cpu) / ((double)(clock_ns() - wall) * team_size(t));
        *ret = (measure_result){.seconds = each,
                                .share = share,
                                .gb_per_s = (double)wmat_bytes(k.w) / each / 1e9,
                                .gmac_per_s = (double)rows * (double)cols * (double)k.n_tokens / each / 1e9};
    }
    team_free(t);
    wmat_free(k.w);
    acts_free(k.a);
    free(k.x);
    free(k.y);
    return rc;
}

static void meet(void *arg, team_member *m)
{
    const int *n = arg;
    for (int i = 0; i < *n; i++) team_barrier(m);
}

int measure_team(double *ret_run_ns, double *ret_barrier_ns, int n_threads, shoal_err *err)
{
    team *t = NULL;
    int rc = team_new(&t, n_threads, ISA_SCALAR, err);
    if (rc != 0) return rc;
    int n_barriers, none = 0, n_runs = 2000;
    *ret_barrier_ns = time_team(t, meet, &n_barriers, &n_barriers, 0.05) * 1e9;
    uint64_t start = clock_ns();
    for (int i = 0; i < n_runs; i++) team_run(t, meet, &none);
    *ret_run_ns = (double)(clock_ns() - start) / n_runs;
    team_free(t);
    return 0;
}

/* ---- limits ------------------------------------------------------------------------------------------- */

/* Seconds of one repeat in the best of the rounds that `seconds` have room for. They are short, so that some
 * find both cores at rest on a machine that is not. */
static double best_of_team(team *t, void (*fn)(void *, team_member *), void *arg, int *n_repeats,
                           double seconds)
{
    double best = 1e9, once = 0, until = seconds > 0 ? seconds : 0.2;
    for (*n_repeats = 1; once < LIMIT_ROUND_S && once < until && *n_repeats < 1 << 24; *n_repeats *= 2)
        once = time_once(t, fn, arg);
    for (double spent = 0; spent < until; spent += once) {
        once = time_once(t, fn, arg);
        if (once < best) best = once;
    }
    return best / *n_repeats;
}

#define HUGE_PAGE ((size_t)2 << 20)

/* Bytes to read, on their own huge pages. */
typedef struct area {
    uint8_t *at;
    size_t bytes;
    void *map;
    size_t map_bytes;
    const limit_loops *loops;
    volatile uint64_t sink[64]; /* a member each */
    int n_repeats;
} area;

static int area_map(area *a, shoal_err *err)
{
    if (size_add(a->bytes, 2 * HUGE_PAGE, &a->map_bytes)) return err_nomem(err);
    a->map = mmap(NULL, a->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->map == MAP_FAILED) {
        a->map = NULL;
        return err_set(err, SHOAL_ENOMEM, "no area of %zu bytes can be had to measure reading", a->map_bytes);
    }
    a->at = (uint8_t *)(((uintptr_t)a->map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    madvise(a->map, a->map_bytes, MADV_HUGEPAGE);
    return 0;
}

/* Written once, by whoever will read it: a page that was never written has no memory of its own. */
static void area_fill(void *arg, team_member *m)
{
    area *a = arg;
    size_t begin, end;
    member_share(m, a->bytes, LIMIT_READ_GRAIN, &begin, &end);
    memset(a->at + begin, 1, end - begin);
}

static void area_read(void *arg, team_member *m)
{
    area *a = arg;
    size_t begin, end;
    member_share(m, a->bytes, LIMIT_READ_GRAIN, &begin, &end);
    for (int i = 0; i < a->n_repeats; i++)
        a->sink[member_index(m)] += a->loops->read(a->at + begin, end - begin);
}

int measure_read(double *ret_gb_per_s, isa set, size_t bytes, int n_threads, double seconds, shoal_err *err)
{
    size_t grain = LIMIT_READ_GRAIN * (size_t)(n_threads > 0 ? n_threads : 1), rounded;
    if (size_add(bytes ? bytes : 1, grain - 1, &rounded)) return err_nomem(err);
    area a = {.bytes = rounded / grain * grain, .loops = limit_loops_for(set)};
    team *t = NULL;
    int rc = team_new(&t, n_threads, set, err);
    if (rc == 0) rc = area_map(&a, err);
    if (rc == 0) {
        team_run(t, area_fill, &a);
        *ret_gb_per_s = (double)a.bytes / best_of_team(t, area_read, &a, &a.n_repeats, seconds) / 1e9;
    }
    team_free(t);
    if (a.map) munmap(a.map, a.map_bytes);
    return rc;
}

bool measure_huge_pages(void)
{
    char line[128] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    bool known = f && fgets(line, sizeof line, f);
    if (f) fclose(f);
    return known && !strstr(line, "[never]");
}

typedef struct turns {
    void (*loop)(size_t n);
    int n_repeats;
} turns;

static void turn(void *arg, team_member *m)
{
    const turns *t = arg;
    (void)m;
    for (int i = 0; i < t->n_repeats; i++) t->loop(10000);
}

int measure_multiply(measure_peaks *ret, isa set, int n_threads, double seconds, shoal_err *err)
{
    const limit_loops *l = limit_loops_for(set);
    team *t = NULL;
    int rc = team_new(&t, n_threads, set, err);
    if (rc != 0) return rc;
    turns dot = {.loop = l->dot}, fma = {.loop = l->fma};
    double members = 10000.0 * team_size(t) / 1e9;
    ret->int8 = members * (double)l->dot_macs / best_of_team(t, turn, &dot, &dot.n_repeats, seconds / 2);
    ret->f32 = members * (double)l->fma_macs / best_of_team(t, turn, &fma, &fma.n_repeats, seconds / 2);
    team_free(t);
    return 0;
}
