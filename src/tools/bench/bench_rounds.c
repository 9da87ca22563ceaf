/* bench_rounds.c: the runs of a row, on each engine in turn; see bench.h.
 *
 * A round gives every engine its turn, so that a noisy minute hits all numbers of threads alike. Where there
 * are several, the first run of a turn does not count: the caches hold another engine's weights, and members
 * sleep. CPU time is counted over whole turns, because the kernel adds up that of running threads only at its
 * ticks. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"

enum { RUNS_MOST = 50 }; /* of a turn */
#define TURN_S 0.05      /* where CPU time is counted: some ticks */

/* What the turns of one lane gave. */
typedef struct samples {
    double *ms;             /* [repeat * RUNS_MOST] */
    double *cores, *cpu_ms; /* [repeat]: at work; of one run */
    size_t n_ms, n_turns;
} samples;

static double cpu_s(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int warm_up(bench_subject *s, const bench_run *run)
{
    engine_stats before, now;
    double ms;
    engine_get_stats(s->e, &before);
    for (int i = 0; i < run->warm_runs; i++) {
        int rc = run->once(run->user, &ms);
        if (rc != 0) return rc;
        engine_get_stats(s->e, &now);
        if (i > 0 && run->warm_steps && now.n_steps - before.n_steps >= run->warm_steps) break;
    }
    return 0;
}

/* One run at least. */
static int take_turn(const bench_run *run, double seconds, samples *to)
{
    uint64_t start = clock_ns();
    double cpu = cpu_s();
    size_t before = to->n_ms;
    int n = 0, rc;
    do {
        rc = run->once(run->user, &to->ms[to->n_ms]);
        to->n_ms += rc == 0;
    } while (rc == 0 && ++n < RUNS_MOST && clock_ms_since(start) < seconds * 1e3);
    double ms = clock_ms_since(start), cpu_ms = (cpu_s() - cpu) * 1e3;
    if (rc != 0) return rc;
    to->cores[to->n_turns] = cpu_ms / ms;
    to->cpu_ms[to->n_turns++] = cpu_ms / (double)(to->n_ms - before);
    return 0;
}

static bool is_live(const bench_subject *s)
{
    return s->n_lanes > 1 && isatty(STDERR_FILENO);
}

static void show_round(const bench_subject *s, const bench_row *row, size_t lane, size_t round, size_t rounds)
{
    if (!is_live(s)) return;
    int n = s->lanes[lane].limits.n_threads;
    const char *what = round == 0 ? "warming up" : "measuring";
    cli_live_line("%s, %d thread%s: %s, round %zu of %zu", row->test, n, n == 1 ? "" : "s", what, round,
                  rounds);
}

static int run_rounds(const bench_options *o, bench_subject *s, const bench_row *row, const bench_run *run,
                      samples *of)
{
    size_t rounds = (size_t)o->repeat;
    bool several = s->n_lanes > 1;
    double seconds = run->seconds / (double)rounds, unused;
    if (several && seconds < TURN_S) seconds = TURN_S;
    for (size_t k = 0; k <= rounds; k++) {
        for (size_t i = 0; i < s->n_lanes; i++) {
            s->e = s->lanes[i].c.e;
            show_round(s, row, i, k, rounds);
            int rc = k == 0 ? warm_up(s, run) : several ? run->once(run->user, &unused) : 0;
            if (rc == 0 && k > 0) rc = take_turn(run, seconds, &of[i]);
            if (rc != 0) return rc;
        }
    }
    return 0;
}

/* The lanes' medians beside their limits. */
static int report_lanes(bench_subject *s, const bench_row *row, samples *of, shoal_err *err)
{
    bench_scale_point p[BENCH_LIST_MAX];
    for (size_t i = 0; i < s->n_lanes; i++) {
        bench_limits *l = &s->lanes[i].limits;
        if (is_live(s)) cli_live_line("%s: reading with %d threads", row->test, l->n_threads);
        int rc = bench_limits_read(l, row->set_bytes, err);
        if (rc != 0) return rc;
        p[i] = (bench_scale_point){.n_threads = l->n_threads,
                                   .ms = bench_median(of[i].ms, of[i].n_ms),
                                   .fastest_ms = of[i].ms[0],
                                   .slowest_ms = of[i].ms[of[i].n_ms - 1],
                                   .n_runs = of[i].n_ms,
                                   .cores = bench_median(of[i].cores, of[i].n_turns),
                                   .cpu_ms = bench_median(of[i].cpu_ms, of[i].n_turns),
                                   .adds_limit = l->adds_per_s,
                                   .read_limit = l->read_per_s};
    }
    if (is_live(s)) cli_live_line("%s", "");
    return bench_scale_row(&s->scale, row, p, err);
}

int bench_measure(const bench_options *o, bench_subject *s, const bench_row *row, const bench_run *run,
                  shoal_err *err)
{
    samples of[BENCH_LIST_MAX] = {0};
    size_t rounds = (size_t)o->repeat;
    int rc = 0;
    for (size_t i = 0; i < s->n_lanes; i++) {
        of[i].ms = calloc(rounds * RUNS_MOST, sizeof *of[i].ms);
        of[i].cores = calloc(rounds, sizeof *of[i].cores);
        of[i].cpu_ms = calloc(rounds, sizeof *of[i].cpu_ms);
        if (!of[i].ms || !of[i].cores || !of[i].cpu_ms) rc = err_nomem(err);
    }
    if (rc == 0) rc = run_rounds(o, s, row, run, of);
    if (rc != 0 && is_live(s)) cli_live_line("%s", "");
    if (rc == 0)
        rc = s->n_lanes > 1 ? report_lanes(s, row, of, err)
                            : bench_report_row(&s->report, row, of[0].ms, of[0].n_ms, err);
    for (size_t i = 0; i < s->n_lanes; i++) {
        free(of[i].ms);
        free(of[i].cores);
        free(of[i].cpu_ms);
    }
    return rc;
}
