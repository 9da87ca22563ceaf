/* kv_type.c: the names of kv_type.h. */
#include "net/attention/kv_type.h"

#include <string.h>

static const struct {
    const char *name;
    dtype type;
} types[KV_TYPE_COUNT] = {[KV_AS_WEIGHTS] = {"", DT_COUNT},
                          [KV_F32] = {"f32", DT_F32},
                          [KV_F16] = {"f16", DT_F16},
                          [KV_Q8_0] = {"q8_0", DT_Q8_0}};

const char *const kv_type_choices = "f32, f16 or q8_0";

bool kv_type_parse(const char *name, kv_type *ret)
{
    for (int i = 0; i < KV_TYPE_COUNT; i++) {
        if (strcmp(name, types[i].name) != 0) continue;
        *ret = (kv_type)i;
        return true;
    }
    return false;
}

const char *kv_type_name(kv_type t)
{
    return types[t].name;
}

dtype kv_type_dtype(kv_type t)
{
    return types[t].type;
}
