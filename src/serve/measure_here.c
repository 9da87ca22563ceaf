/* measure_here.c: see measure_here.h. */
#include "serve/measure_here.h"

#include "base/sys.h"
#include "compute/measure.h"

enum { MEASURE_ROWS = 4096, MEASURE_TOKENS = 32 };

void measure_here(isa chosen, double *ret_bytes_per_s, double *ret_multiplies_per_s)
{
    measure_result r;
    measure_spec reading = {.isa = chosen,
                            .type = DT_Q8_0,
                            .n_threads = sys_core_count(),
                            .rows = MEASURE_ROWS,
                            .cols = MEASURE_ROWS,
                            .seconds = 0.1};
    measure_spec using = {.isa = chosen,
                          .type = DT_Q8_0,
                          .n_threads = sys_core_count(),
                          .n_tokens = MEASURE_TOKENS,
                          .seconds = 0.1};
    if (measure_mul(&r, &reading, NULL) == 0) *ret_bytes_per_s = r.gb_per_s * 1e9;
    if (measure_mul(&r, &using, NULL) == 0) *ret_multiplies_per_s = r.gmac_per_s * 1e9;
}
