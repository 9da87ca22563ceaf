/* bench_scale.c: speed-ups, and how they are printed; see bench_scale.h. */
#include "bench/bench_scale.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/sys.h"
#include "json/json_put.h"

void bench_scale_compare(const bench_row *row, bench_scale_point *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double s = p[i].ms / 1e3;
        p[i].tokens_per_s = row->n_tokens / s;
        p[i].speed_up = p[0].ms / p[i].ms;
        p[i].efficiency = p[i].speed_up * p[0].n_threads / p[i].n_threads;
        p[i].cpu_s_per_token = p[i].cpu_ms / 1e3 / row->n_tokens;
        p[i].share_of_reading = row->cost.bytes / s / p[i].read_limit;
        p[i].share_of_multiply_adds = row->cost.multiply_adds / s / p[i].adds_limit;
    }
}

void bench_scale_begin(bench_scale *s, const bench_about *about, bool json)
{
    *s = (bench_scale){.about = *about, .json = json};
    buf b = {0};
    if (json) {
        buf_putc(&b, '{');
        bench_about_put_json(about, &b);
        buf_printf(&b, ",\"limits\":{\"of\":\"%s\"},\"results\":[", about->is_float ? "f32" : "int8");
        fwrite(b.data ? b.data : "", 1, b.len, stdout);
        buf_done(&b);
    } else {
        bench_about_print(about);
    }
    fflush(stdout);
}

/* ---- one test ----------------------------------------------------------------------------------------- */

/* 41.2 T, 2740 G: what fits. */
static void print_adds(double per_s)
{
    if (per_s >= 1e13)
        printf("%4.1f T", per_s / 1e12);
    else
        printf("%4.0f G", per_s / 1e9);
}

static void print_point(const bench_row *row, const bench_scale_point *p)
{
    printf("%7d %9.1f%c %8.2f %4.0f %% %5.2f %7.3f %3.0f %% of %4.0f %3.0f %% of ", p->n_threads,
           row->sound_s > 0 ? row->sound_s * 1e3 / p->ms : p->tokens_per_s, row->sound_s > 0 ? 'x' : ' ',
           p->speed_up, 100 * p->efficiency, p->cores, 1e3 * p->cpu_s_per_token, 100 * p->share_of_reading,
           p->read_limit / 1e9, 100 * p->share_of_multiply_adds);
    print_adds(p->adds_limit);
    printf("\n");
}

static void print_test(const bench_row *row, const bench_scale_point *p, size_t n)
{
    double spread = 0;
    for (size_t i = 0; i < n; i++) {
        double of = (p[i].slowest_ms - p[i].fastest_ms) / p[i].ms;
        if (of > spread) spread = of;
    }
    printf("\n%s (spread up to %.0f %%)\n", row->test, 100 * spread);
    printf("%7s %9s  %8s %6s %5s %7s %13s %15s\n", "THREADS", row->sound_s > 0 ? "REAL TIME" : "TOKENS/S",
           "SPEED-UP", "EFFIC.", "CORES", "CPU MS", "OF READING", "OF MULTIPLYING");
    for (size_t i = 0; i < n; i++) print_point(row, &p[i]);
}

static void print_json_point(const bench_row *row, const bench_scale_point *p, bool first)
{
    printf("%s{\"test\":\"%s\",\"threads\":%d,\"beyond_cores\":%s,\"tokens_per_s\":%.2f,\"min_tokens_per_s\":"
           "%.2f,"
           "\"max_tokens_per_s\":%.2f,\"ms\":%.4f,\"runs\":%zu,\"tokens\":%.0f,\"speed_up\":%.4f,"
           "\"efficiency\":%.4f,\"cores_used\":%.3f,\"cpu_s_per_token\":%.4g,\"bytes\":%.0f,"
           "\"multiply_adds\":%.0f,\"read_limit_bytes_per_s\":%.4g,\"multiply_add_limit_per_s\":%.4g,"
           "\"share_of_reading\":%.4f,\"share_of_multiply_adds\":%.4f",
           first ? "" : ",", row->test, p->n_threads, p->n_threads > sys_core_count() ? "true" : "false",
           p->tokens_per_s, row->n_tokens * 1e3 / p->slowest_ms, row->n_tokens * 1e3 / p->fastest_ms, p->ms,
           p->n_runs, row->n_tokens, p->speed_up, p->efficiency, p->cores, p->cpu_s_per_token,
           row->cost.bytes, row->cost.multiply_adds, p->read_limit, p->adds_limit, p->share_of_reading,
           p->share_of_multiply_adds);
    if (row->sound_s > 0)
        printf(",\"sound_s\":%.2f,\"times_real_time\":%.2f", row->sound_s, row->sound_s * 1e3 / p->ms);
    printf("}");
}

static int keep(bench_scale *s, const bench_row *row, const bench_scale_point *p, size_t n, shoal_err *err)
{
    bench_scale_test *more = realloc(s->tests, (s->n_tests + 1) * sizeof *more);
    if (!more) return err_nomem(err);
    s->tests = more;
    bench_scale_test *t = &more[s->n_tests++];
    *t = (bench_scale_test){0};
    snprintf(t->name, sizeof t->name, "%s", row->test);
    for (size_t i = 0; i < n; i++) t->p[i] = p[i];
    return 0;
}

int bench_scale_row(bench_scale *s, const bench_row *row, bench_scale_point *p, shoal_err *err)
{
    size_t n = s->about.threads.n;
    bench_scale_compare(row, p, n);
    if (s->json)
        for (size_t i = 0; i < n; i++) print_json_point(row, &p[i], s->n_tests == 0 && i == 0);
    else
        print_test(row, p, n);
    fflush(stdout);
    return keep(s, row, p, n, err);
}

void bench_scale_end(const bench_scale *s)
{
    size_t base = s->about.threads.v[0];
    if (s->json) {
        printf("]}\n");
        return;
    }
    printf("\nmedians of alternating rounds\n"
           "THREADS: offered to the engine, which may use fewer\n"
           "SPEED-UP: against %zu thread%s; EFFIC.: speed-up over %s\n"
           "CORES: at work, CPU time over time; CPU MS: CPU time a token\n"
           "OF READING: of the GB/s of so many threads from a working set of this size\n"
           "OF MULTIPLYING: of the %s multiply-adds/s of so many threads\n",
           base, base == 1 ? "" : "s", base == 1 ? "threads" : "times the threads",
           s->about.is_float ? "float" : "int8");
}

void bench_scale_done(bench_scale *s)
{
    free(s->tests);
    *s = (bench_scale){0};
}
