/* model_unknown.c: see model_unknown.h. */
#include "model/model_unknown.h"

#include <string.h>

static bool has_place(const arch_def *a, name_kind kind, const char *name)
{
    char plain[128];
    const tensor_rule *r;
    rule_hit h;
    if (kind == NAME_HF && arch_plain_name(a, name, plain)) name = plain;
    for (size_t i = 0; (r = arch_rule(a, i)); i++)
        if (rule_match(r, kind, name, &h)) return true;
    return arch_ignores(a, name);
}

int model_unknown(const char *what, const char *name, name_kind kind, const st_tensor *list, size_t n,
                  shoal_err *err)
{
    const char *closest = arch_closest(name, kind == NAME_GGUF), *first = NULL;
    const arch_def *a = kind == NAME_GGUF ? arch_by_gguf(closest) : arch_by_hf(closest);
    size_t n_unknown = 0;
    for (size_t i = 0; a && i < n; i++) {
        if (has_place(a, kind, list[i].t.name)) continue;
        if (n_unknown++ == 0) first = list[i].t.name;
    }
    if (n == 0)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: the architecture \"%.40s\" is not supported; the closest that is: \"%s\"", what,
                       name, closest);
    if (!first)
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "%s: the architecture \"%.40s\" is not supported; the closest that is: \"%s\", which has a "
            "place for every tensor here but may not compute the same",
            what, name, closest);
    return err_set(
        err, SHOAL_EUNSUPPORTED,
        "%s: the architecture \"%.40s\" is not supported; the closest that is: \"%s\", which has no "
        "place for %zu of the %zu tensors here, such as %s",
        what, name, closest, n_unknown, n, first);
}
