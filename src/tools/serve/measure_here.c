/* measure_here.c: see measure_here.h. */
#include "serve/measure_here.h"

#include "logging/log.h"
#include "base/sys.h"
#include "compute/measure.h"

enum { MEASURE_ROWS = 4096, MEASURE_TOKENS = 32 };

#define CLEAN_SHARE \
    0.85 /* a thread that sleeps for a moment at a barrier costs less; a second process on a core more */

bool measure_is_clean(double share)
{
    return share >= CLEAN_SHARE;
}

bool measure_here(isa chosen, double *ret_bytes_per_s, double *ret_multiplies_per_s)
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
    measure_result m;
    *ret_bytes_per_s = *ret_multiplies_per_s = 0;
    if (measure_mul(&r, &reading, NULL) != 0 || measure_mul(&m, &using, NULL) != 0) return false;
    if (!measure_is_clean(r.share) || !measure_is_clean(m.share)) {
        LOG(LOG_WARN, "measure", "starved", LOG_F("share", r.share < m.share ? r.share : m.share),
            LOG_S("so",
                  "the speed is estimated from the cores, and measured again when the machine is idle"));
        return false;
    }
    *ret_bytes_per_s = r.gb_per_s * 1e9;
    *ret_multiplies_per_s = m.gmac_per_s * 1e9;
    return true;
}
