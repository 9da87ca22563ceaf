/* A schema and a value of a client's, as one array: whatever they are, the check ends with a verdict that is
 * JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/schema_check.h"
#include "json/json.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *both = NULL;
    schema_verdict v;
    buf out = {0};
    if (json_parse(&both, (const char *)data, size, "input", NULL) != 0) return 0;
    if (json_array_size(both) == 2) {
        schema_check(&v, json_array_get(both, 0), json_array_get(both, 1));
        if ((v.outcome == SCHEMA_OBEYED) != !*v.why) abort();
        schema_verdict_put(&out, &v);
        json_t *said = out.failed ? NULL : json_loadb(out.data, out.len, 0, NULL);
        holds(said);
        json_decref(said);
    }
    buf_done(&out);
    json_decref(both);
    return 0;
}
