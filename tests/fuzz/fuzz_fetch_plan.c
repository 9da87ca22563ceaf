/* Bytes as a page of a hub's files and as a registry's manifest; every path of a plan stays inside. */
#include <stdint.h>
#include <stdlib.h>

#include "json/json.h"
#include "fetch/pull_plan.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const pull_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!pull_path_ok(p->items[i].path) || p->items[i].size > PULL_SIZE_MAX) abort();
}

static void choose(arena *mem, const json_t *v, const char *file)
{
    pull_ref ref = {.kind = PULL_HF, .repo = "org/name", .name = "name", .tag = "main", .file = file};
    pull_list l = {.mem = mem};
    pull_plan p = {0};
    shoal_err err;
    buf choices = {0};
    if (pull_list_add_hf(&l, v, &err) == 0 && pull_plan_hf(&p, mem, &l, &ref, &err) == 0) check(&p);
    pull_choices(&choices, &l, &ref);
    buf_done(&choices);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v = NULL;
    shoal_err err;
    arena *mem = arena_new(0);
    if (!holds(mem)) return 0;
    if (json_parse(&v, (const char *)data, size, "fuzz", &err) == 0) {
        pull_ref ref = {.kind = PULL_OCI, .repo = "org/name", .name = "name", .tag = "latest"};
        pull_plan p = {0};
        const char *index;
        choose(mem, v, NULL);
        choose(mem, v, "Q8_0");
        if (pull_plan_oci(&p, mem, v, &ref, &index, &err) == 0) check(&p);
    }
    json_decref(v);
    arena_free(mem);
    return 0;
}
