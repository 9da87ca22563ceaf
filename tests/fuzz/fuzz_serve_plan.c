/* What a gateway answers to `shoal plan --server`: any bytes give nodes, assignments and models, or an
 * error. */
#include <stddef.h>
#include <stdint.h>

#include "serve/plan_live.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    plan_live x = {0};
    shoal_err err;
    placement_model m = {.name = "chat", .n_replicas = 1};
    if (plan_live_read(&x, (const char *)data, size, &err) == 0) plan_live_restrict(&x, &m);
    plan_live_done(&x);
    return 0;
}
