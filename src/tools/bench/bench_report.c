/* bench_report.c: rows of speeds and shares; see bench_report.h. */
#include "bench/bench_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/json_put.h"
#include "base/sys.h"
#include "base/number.h"

/* Past this no cache holds any of it, here or anywhere. */
#define SET_MOST  (1024.0 * 1024 * 1024)
#define PROBE_S   0.3
#define SET_ALIKE 1.1 /* working sets within a tenth of each other share a probe */

static double load_now(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 ? load[0] : -1;
}

static void print_head(const bench_report *r)
{
    const bench_about *a = &r->about;
    char cpu[128];
    sys_cpu_name(cpu, sizeof cpu);
    printf("shoal %s (commit %s), %s kernels, %d thread%s\n", SHOAL_VERSION, bench_commit, isa_name(a->isa),
           a->n_threads, a->n_threads == 1 ? "" : "s");
    printf("%s, %d cores, %.1f GiB, load %.1f, %shuge pages\n", cpu, sys_core_count(),
           (double)sys_memory_bytes() / (1 << 30), load_now(), measure_huge_pages() ? "" : "no ");
    printf("%s: %s %s, %.1f MB, sha256 %.12s, loaded in %.1f ms\n", a->model, a->arch, a->type,
           a->model_bytes / 1e6, a->digest, a->load_ms);
    printf("limit of %d thread%s: %.0f G multiply-adds/s of %s\n\n", a->n_threads,
           a->n_threads == 1 ? "" : "s", r->adds_per_s / 1e9, a->is_float ? "floats" : "int8");
    printf("%-14s %11s %7s %10s  %13s %13s\n", "TEST", "TOKENS/S", "SPREAD", "MS", "OF READING",
           "OF MULTIPLYING");
}

static void print_json_head(const bench_report *r)
{
    const bench_about *a = &r->about;
    char cpu[128];
    buf b = {0};
    sys_cpu_name(cpu, sizeof cpu);
    buf_puts(&b, "{\"shoal\":{\"version\":\"" SHOAL_VERSION "\",");
    json_put_text(&b, "commit", bench_commit);
    buf_puts(&b, "},\"machine\":{");
    json_put_text(&b, "cpu", cpu);
    buf_printf(&b, ",\"cores\":%d,\"memory_bytes\":%zu,\"load\":%.2f,\"huge_pages\":%s},", sys_core_count(),
               sys_memory_bytes(), load_now(), measure_huge_pages() ? "true" : "false");
    json_put_text(&b, "isa", isa_name(a->isa));
    buf_printf(&b, ",\"threads\":%d,\"model\":{", a->n_threads);
    json_put_text(&b, "name", a->model);
    json_put_text(&b, "architecture", a->arch);
    json_put_text(&b, "type", a->type);
    json_put_text(&b, "sha256", a->digest);
    buf_printf(&b,
               ",\"bytes\":%.0f,\"load_ms\":%.1f},\"limits\":{\"multiply_adds_per_s\":%.4g,\"of\":\"%s\"},",
               a->model_bytes, a->load_ms, r->adds_per_s, a->is_float ? "f32" : "int8");
    buf_puts(&b, "\"results\":[");
    fwrite(b.data ? b.data : "", 1, b.len, stdout);
    buf_done(&b);
}

int bench_report_begin(bench_report *r, const bench_about *about, bool json, shoal_err *err)
{
    measure_peaks p;
    *r = (bench_report){.about = *about, .json = json};
    int rc = measure_multiply(&p, about->isa, about->n_threads, 2 * PROBE_S, err);
    if (rc != 0) return rc;
    r->adds_per_s = (about->is_float ? p.f32 : p.int8) * 1e9;
    if (json)
        print_json_head(r);
    else
        print_head(r);
    fflush(stdout);
    return 0;
}

static int probe_reading(bench_report *r, double set, shoal_err *err)
{
    double gb = 0;
    if (set > SET_MOST) set = SET_MOST;
    if (r->set_bytes > 0 && set < r->set_bytes * SET_ALIKE && set > r->set_bytes / SET_ALIKE) return 0;
    int rc = measure_read(&gb, r->about.isa, (size_t)set, r->about.n_threads, PROBE_S, err);
    if (rc != 0) return rc;
    r->set_bytes = set;
    r->read_per_s = gb * 1e9;
    return 0;
}

/* Sorts values. */
static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, number_compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Sorted ms[n]. */
static void print_json_row(const bench_report *r, const bench_row *row, const double *ms, size_t n,
                           double p50)
{
    double s = p50 / 1e3;
    printf("%s{\"test\":\"%s\",\"tokens_per_s\":%.2f,\"min_tokens_per_s\":%.2f,\"max_tokens_per_s\":%.2f,"
           "\"ms\":%.4f,\"runs\":%zu,\"tokens\":%.0f,\"bytes\":%.0f,\"multiply_adds\":%.0f,"
           "\"read_limit_bytes_per_s\":%.4g,\"working_set_bytes\":%.0f,\"share_of_reading\":%.4f,"
           "\"share_of_multiply_adds\":%.4f",
           r->n_rows ? "," : "", row->test, row->n_tokens / s, row->n_tokens * 1e3 / ms[n - 1],
           row->n_tokens * 1e3 / ms[0], p50, n, row->n_tokens, row->cost.bytes, row->cost.multiply_adds,
           r->read_per_s, r->set_bytes, row->cost.bytes / s / r->read_per_s,
           row->cost.multiply_adds / s / r->adds_per_s);
    if (row->sound_s > 0)
        printf(",\"sound_s\":%.2f,\"times_real_time\":%.2f", row->sound_s, row->sound_s / s);
    printf("}");
}

int bench_report_row(bench_report *r, const bench_row *row, double *ms, size_t n, shoal_err *err)
{
    int rc = probe_reading(r, row->set_bytes, err);
    if (rc != 0 || n == 0) return rc;
    double p50 = median(ms, n), s = p50 / 1e3, rate = row->n_tokens / s;
    double reading = row->cost.bytes / s / r->read_per_s, adds = row->cost.multiply_adds / s / r->adds_per_s;
    if (r->json)
        print_json_row(r, row, ms, n, p50);
    else
        printf("%-14s %10.1f%c %5.1f %% %10.3f  %5.1f %% of %3.0f %11.1f %%\n", row->test,
               row->sound_s > 0 ? row->sound_s / s : rate, row->sound_s > 0 ? 'x' : ' ',
               100 * (ms[n - 1] - ms[0]) / p50, p50, 100 * reading, r->read_per_s / 1e9, 100 * adds);
    r->n_rows++;
    fflush(stdout);
    return 0;
}

void bench_report_end(bench_report *r)
{
    if (r->json)
        printf("]}\n");
    else
        printf("\nmedians; SPREAD from the slowest to the fastest run; OF READING: of the GB/s that these "
               "threads "
               "read\nfrom a working set of this size; OF MULTIPLYING: of the limit above\n");
}
