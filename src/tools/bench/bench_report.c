/* bench_report.c: rows of speeds and shares; see bench_report.h. */
#include "bench/bench_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/json_put.h"
#include "base/sys.h"
#include "base/number.h"

static double load_now(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 ? load[0] : -1;
}

/* "1 thread", "1, 2, 4 threads" */
static void print_threads(const bench_list *l)
{
    for (size_t i = 0; i < l->n; i++) printf("%s%zu", i ? ", " : "", l->v[i]);
    printf(" thread%s\n", l->n == 1 && l->v[0] == 1 ? "" : "s");
}

void bench_about_print(const bench_about *a)
{
    char cpu[128];
    sys_cpu_name(cpu, sizeof cpu);
    printf("shoal %s (commit %s), %s kernels, ", SHOAL_VERSION, bench_commit, isa_name(a->isa));
    print_threads(&a->threads);
    printf("%s, %d cores, %.1f GiB, load %.1f, %shuge pages\n", cpu, sys_core_count(),
           (double)sys_memory_bytes() / (1 << 30), load_now(), measure_huge_pages() ? "" : "no ");
    printf("%s: %s %s, %.1f MB, sha256 %.12s, loaded in %.1f ms\n", a->model, a->arch, a->type,
           a->model_bytes / 1e6, a->digest, a->load_ms);
}

static void put_threads(const bench_list *l, buf *out)
{
    buf_puts(out, l->n == 1 ? ",\"threads\":" : ",\"threads\":[");
    for (size_t i = 0; i < l->n; i++) buf_printf(out, "%s%zu", i ? "," : "", l->v[i]);
    if (l->n > 1) buf_putc(out, ']');
}

void bench_about_put_json(const bench_about *a, buf *out)
{
    char cpu[128];
    sys_cpu_name(cpu, sizeof cpu);
    buf_puts(out, "\"shoal\":{\"version\":\"" SHOAL_VERSION "\",");
    json_put_text(out, "commit", bench_commit);
    buf_puts(out, "},\"machine\":{");
    json_put_text(out, "cpu", cpu);
    buf_printf(out, ",\"cores\":%d,\"memory_bytes\":%zu,\"load\":%.2f,\"huge_pages\":%s},", sys_core_count(),
               sys_memory_bytes(), load_now(), measure_huge_pages() ? "true" : "false");
    json_put_text(out, "isa", isa_name(a->isa));
    put_threads(&a->threads, out);
    buf_puts(out, ",\"model\":{");
    json_put_text(out, "name", a->model);
    json_put_text(out, "architecture", a->arch);
    json_put_text(out, "type", a->type);
    json_put_text(out, "sha256", a->digest);
    buf_printf(out, ",\"bytes\":%.0f,\"load_ms\":%.1f}", a->model_bytes, a->load_ms);
}

static void print_head(const bench_report *r)
{
    size_t n = r->about.threads.v[0];
    bench_about_print(&r->about);
    printf("limit of %zu thread%s: %.0f G multiply-adds/s of %s\n\n", n, n == 1 ? "" : "s",
           r->limits->adds_per_s / 1e9, r->about.is_float ? "floats" : "int8");
    printf("%-14s %11s %7s %10s  %13s %13s\n", "TEST", "TOKENS/S", "SPREAD", "MS", "OF READING",
           "OF MULTIPLYING");
}

static void print_json_head(const bench_report *r)
{
    buf b = {0};
    buf_putc(&b, '{');
    bench_about_put_json(&r->about, &b);
    buf_printf(&b, ",\"limits\":{\"multiply_adds_per_s\":%.4g,\"of\":\"%s\"},\"results\":[",
               r->limits->adds_per_s, r->about.is_float ? "f32" : "int8");
    fwrite(b.data ? b.data : "", 1, b.len, stdout);
    buf_done(&b);
}

void bench_report_begin(bench_report *r, const bench_about *about, bench_limits *limits, bool json)
{
    *r = (bench_report){.about = *about, .limits = limits, .json = json};
    if (json)
        print_json_head(r);
    else
        print_head(r);
    fflush(stdout);
}

double bench_median(double *values, size_t n)
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
           r->limits->read_per_s, r->limits->set_bytes, row->cost.bytes / s / r->limits->read_per_s,
           row->cost.multiply_adds / s / r->limits->adds_per_s);
    if (row->sound_s > 0)
        printf(",\"sound_s\":%.2f,\"times_real_time\":%.2f", row->sound_s, row->sound_s / s);
    printf("}");
}

int bench_report_row(bench_report *r, const bench_row *row, double *ms, size_t n, shoal_err *err)
{
    int rc = bench_limits_read(r->limits, row->set_bytes, err);
    if (rc != 0 || n == 0) return rc;
    double p50 = bench_median(ms, n), s = p50 / 1e3, rate = row->n_tokens / s;
    double reading = row->cost.bytes / s / r->limits->read_per_s,
           adds = row->cost.multiply_adds / s / r->limits->adds_per_s;
    if (r->json)
        print_json_row(r, row, ms, n, p50);
    else
        printf("%-14s %10.1f%c %5.1f %% %10.3f  %5.1f %% of %3.0f %11.1f %%\n", row->test,
               row->sound_s > 0 ? row->sound_s / s : rate, row->sound_s > 0 ? 'x' : ' ',
               100 * (ms[n - 1] - ms[0]) / p50, p50, 100 * reading, r->limits->read_per_s / 1e9, 100 * adds);
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
