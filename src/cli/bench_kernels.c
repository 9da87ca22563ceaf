/* bench_kernels.c: the matrix kernels of every usable instruction set, decode and prefill. */
#include <stdio.h>

#include "base/sys.h"
#include "cli/bench.h"
#include "compute/measure.h"

static int measure(measure_result *decode, measure_result *prefill, isa i, dtype t, int n_threads,
                   shoal_err *err)
{
    measure_spec s = {.isa = i, .type = t, .n_threads = n_threads, .seconds = 0.15};
    int rc = measure_mul(decode, &s, err);
    s.n_tokens = 128;
    return rc != 0 ? rc : measure_mul(prefill, &s, err);
}

int bench_kernels(const bench_options *o, shoal_err *err)
{
    int most = o->model.threads ? (int)o->model.threads : sys_core_count();
    if (o->json)
        printf("{\"kernels\":[");
    else
        printf("%-11s %-7s %7s  %12s %14s\n", "KERNELS", "TYPE", "THREADS", "DECODE GB/S", "PREFILL GMAC/S");
    const char *comma = "";
    for (int i = ISA_SCALAR + 1; i < ISA_COUNT; i++) {
        if (!isa_usable((isa)i)) continue;
        for (int t = 0; t < DT_COUNT; t++) {
            for (int threads = 1; threads <= most; threads *= 2) {
                measure_result d, p;
                int rc = measure(&d, &p, (isa)i, (dtype)t, threads, err);
                if (rc != 0) return rc;
                if (o->json)
                    printf("%s{\"isa\":\"%s\",\"type\":\"%s\",\"threads\":%d,\"decode_gb_per_s\":%.2f,"
                           "\"prefill_gmac_per_s\":%.2f}",
                           comma, isa_name((isa)i), dtype_name((dtype)t), threads, d.gb_per_s, p.gmac_per_s);
                else
                    printf("%-11s %-7s %7d  %12.1f %14.1f\n", isa_name((isa)i), dtype_name((dtype)t), threads,
                           d.gb_per_s, p.gmac_per_s);
                comma = ",";
                fflush(stdout);
            }
        }
    }
    if (o->json) printf("]}\n");
    return 0;
}
