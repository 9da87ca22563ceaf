/* stage_spec.c: see stage_spec.h. */
#include "agent/stage_spec.h"

#include "kinds/model_kind.h"

worker_spec stage_spec(const worker_spec *whole, size_t n_layer, size_t first, size_t end)
{
    worker_spec s = *whole;
    size_t all = whole->kv_bytes ? whole->kv_bytes : MODEL_KV_LEAST_BYTES;
    s.n_replicas = 1;
    s.n_standby = 0;
    s.kv_bytes = all / n_layer * (end - first);
    s.first_layer = first;
    s.end_layer = end;
    return s;
}
