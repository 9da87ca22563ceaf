/* Bodies of POST /v1/models/load, and entries of the list that is kept: what is refused is refused with a
 * sentence; what is taken can be written, and is the same when it is read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "config/config_load_request.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void read_again(const config_load_request *w)
{
    config_load_request again = {0};
    shoal_err err;
    arena *mem = arena_new(0);
    json_t *o = config_load_request_json(w);
    if (holds(mem && o) && holds(config_load_request_parse(&again, mem, o, &err) == 0)) {
        if (!same(w->what, again.what) || !same(w->as.path, again.as.path) ||
            !same(w->as.name, again.as.name))
            abort();
        if (w->as.replicas != again.as.replicas || w->as.kv_mb != again.as.kv_mb || w->keep != again.keep ||
            memcmp(&w->as.tuning, &again.as.tuning, sizeof again.as.tuning) != 0)
            abort();
        if (w->keep_alive_s != again.keep_alive_s || w->as.context != again.as.context) abort();
    }
    json_decref(o);
    arena_free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *o = NULL;
    config_load_request w = {0};
    shoal_err err = {0};
    if (json_parse(&o, (const char *)data, size, "the body", NULL) != 0) return 0;
    arena *mem = arena_new(0);
    int rc = mem ? config_load_request_parse(&w, mem, o, &err) : SHOAL_ENOMEM;
    if (rc == 0) {
        if (!w.what == !w.as.path || (w.as.name && !name_is_fine(w.as.name, strlen(w.as.name)))) abort();
        read_again(&w);
    } else if (rc != SHOAL_ENOMEM && (rc != SHOAL_EINVALID || !*err.message)) {
        abort();
    }
    json_decref(o);
    arena_free(mem);
    return 0;
}
