/* A trace from hostile bytes: read, in order and with paths that are some, or refused with a sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "load/load_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shoal_err err = {0};
    load_trace t = {0};
    if (load_trace_parse(&t, (const char *)data, size, "fuzz", &err) != 0) {
        if (!err.message[0] || t.n) abort();
        return 0;
    }
    for (size_t i = 0; i < t.n; i++)
        if (!(t.v[i].at_s >= 0) || (i && t.v[i].at_s < t.v[i - 1].at_s) ||
            (t.v[i].path && t.v[i].path[0] != '/'))
            abort();
    load_trace_done(&t);
    return 0;
}
