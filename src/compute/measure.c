/* measure.c: timing of products and of the team. */
#include "compute/measure.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"

#define ROUNDS 9 /* the median of an odd number of rounds sheds a noisy neighbour */

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

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one repeat: a first round finds out how many repeats fill a round. */
static double time_team(team *t, void (*fn)(void *, team_member *), void *arg, int *n_repeats, double seconds)
{
    double rounds[ROUNDS], once = 0;
    for (*n_repeats = 1; once < seconds / ROUNDS && *n_repeats < 1 << 24; *n_repeats *= 2) {
        uint64_t start = clock_ns();
        team_run(t, fn, arg);
        once = (double)(clock_ns() - start) / 1e9;
    }
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t start = clock_ns();
        team_run(t, fn, arg);
        rounds[r] = (double)(clock_ns() - start) / 1e9 / *n_repeats;
    }
    qsort(rounds, ROUNDS, sizeof *rounds, compare_doubles);
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
    size_t rows = s->rows ? s->rows : 1024, cols = s->cols ? s->cols : 1024;
    work k = {.n_tokens = s->n_tokens ? s->n_tokens : 1};
    team *t = NULL;
    int rc = team_new(&t, s->n_threads, s->isa, err);
    if (rc == 0) rc = make_work(&k, s, rows, cols, err);
    if (rc == 0) {
        double each = time_team(t, repeat_mul, &k, &k.n_repeats, s->seconds > 0 ? s->seconds : 0.2);
        *ret = (measure_result){.seconds = each,
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
