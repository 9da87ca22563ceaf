/* bench_kernels.c: the matrix kernels of every usable instruction set, decode and prefill. */
#include <stdio.h>

#include "base/sys.h"
#include "bench/bench.h"
#include "compute/measure.h"

static int bench_kernels_measure(measure_result *decode, measure_result *prefill, isa i, dtype t,
                                 int n_threads, shoal_err *err)
{
    measure_spec s = {.isa = i, .type = t, .n_threads = n_threads, .seconds = 0.15};
    int rc = measure_mul(decode, &s, err);
    s.n_tokens = 128;
    return rc != 0 ? rc : measure_mul(prefill, &s, err);
}

static int show_kernel(const char *comma, isa i, dtype t, int threads, bool json, shoal_err *err)
{
    measure_result d, p;
    int rc = bench_kernels_measure(&d, &p, i, t, threads, err);
    if (rc != 0) return rc;
    if (json)
        printf("%s{\"isa\":\"%s\",\"type\":\"%s\",\"threads\":%d,\"decode_gb_per_s\":%.2f,"
               "\"prefill_gmac_per_s\":%.2f}",
               comma, isa_name(i), dtype_name(t), threads, d.gb_per_s, p.gmac_per_s);
    else
        printf("%-11s %-7s %7d  %12.1f %14.1f\n", isa_name(i), dtype_name(t), threads, d.gb_per_s,
               p.gmac_per_s);
    fflush(stdout);
    return 0;
}

/* Working sets of the limits, in MiB: the second cache, the third, past most third ones, memory. */
static const size_t sets_mib[] = {1, 16, 128, 1024};
enum { N_SETS = sizeof sets_mib / sizeof *sets_mib };

/* What no kernel of this set can pass: multiply-adds in registers, and reading. */
static int show_limit(const char *comma, isa i, int threads, bool json, shoal_err *err)
{
    measure_peaks p;
    double gb[N_SETS];
    int rc = measure_multiply(&p, i, threads, 0.3, err);
    for (size_t k = 0; rc == 0 && k < N_SETS; k++)
        rc = measure_read(&gb[k], i, sets_mib[k] << 20, threads, 0.2, err);
    if (rc != 0) return rc;
    if (json)
        printf("%s{\"isa\":\"%s\",\"threads\":%d,\"int8_gmac_per_s\":%.1f,\"f32_gmac_per_s\":%.1f,"
               "\"read_gb_per_s\":{",
               comma, isa_name(i), threads, p.int8, p.f32);
    else
        printf("%-11s %7d %8.0f %8.0f ", isa_name(i), threads, p.int8, p.f32);
    for (size_t k = 0; k < N_SETS; k++)
        printf(json ? "%s\"%zu\":%.1f" : "%s %zu MiB: %.1f", k && json ? "," : "", sets_mib[k], gb[k]);
    printf(json ? "}}" : "\n");
    fflush(stdout);
    return 0;
}

static int show_limits(const bench_options *o, int most, shoal_err *err)
{
    const char *comma = "";
    printf(o->json
               ? "],\"huge_pages\":%s,\"limits\":["
               : "\nLIMITS      THREADS  G INT8/S  G F32/S  READING GB/S OF A WORKING SET (huge pages: %s)\n",
           o->json ? (measure_huge_pages() ? "true" : "false") : (measure_huge_pages() ? "yes" : "no"));
    for (int i = ISA_SCALAR + 1; i < ISA_COUNT; i++) {
        for (int threads = 1; isa_usable((isa)i) && threads <= most; threads *= 2) {
            int rc = show_limit(comma, (isa)i, threads, o->json, err);
            if (rc != 0) return rc;
            comma = ",";
        }
    }
    return 0;
}

int bench_kernels(const bench_options *o, shoal_err *err)
{
    int most = o->model.threads ? (int)o->model.threads : sys_core_count();
    printf(o->json ? "{\"kernels\":[" : "%-11s %-7s %7s  %12s %14s\n", "KERNELS", "TYPE", "THREADS",
           "DECODE GB/S", "PREFILL GMAC/S");
    const char *comma = "";
    for (int i = ISA_SCALAR + 1; i < ISA_COUNT; i++) {
        if (!isa_usable((isa)i)) continue;
        for (int t = 0; t < DT_COUNT; t++) {
            for (int threads = 1; threads <= most; threads *= 2) {
                int rc = show_kernel(comma, (isa)i, (dtype)t, threads, o->json, err);
                if (rc != 0) return rc;
                comma = ",";
            }
        }
    }
    int rc = show_limits(o, most, err);
    if (rc == 0 && o->json) printf("]}\n");
    return rc;
}
