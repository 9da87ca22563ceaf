/* adapters.c: see adapters.h. */
#include "net/adapters.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/name.h"

#define NAME_MAX_BYTES 63
#define LISTED         10 /* names in an error */

int adapters_check_name(const char *name, shoal_err *err)
{
    size_t n = strlen(name);
    if (n <= NAME_MAX_BYTES && name_is_fine(name, n)) return 0;
    return err_set(err, SHOAL_EINVALID, "\"%.80s\" cannot name an adapter: it has 1 to %d bytes, " NAME_RULE,
                   name, NAME_MAX_BYTES);
}

static adapter_name *adapters_find(const adapters *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->at[i].name, name) == 0) return &l->at[i];
    return NULL;
}

static int unknown(const adapters *l, const char *name, const char *model, shoal_err *err)
{
    buf list = {0};
    for (size_t i = 0; i < l->n && i < LISTED; i++)
        if (buf_printf(&list, "%s%s", i ? ", " : "; it has: ", l->at[i].name)) break;
    int rc = err_set(err, SHOAL_ENOTFOUND, "the model %s has no adapter \"%.80s\"%s%s", model, name,
                     l->n == 0   ? "; none is loaded"
                     : list.data ? list.data
                                 : "",
                     l->n > LISTED ? " and more" : "");
    buf_done(&list);
    return rc;
}

int adapters_add(adapters *l, const char *name, adapter *a, shoal_err *err)
{
    if (adapters_find(l, name))
        return err_set(err, SHOAL_EINVALID, "an adapter \"%s\" is loaded already; unload it first", name);
    adapter_name *more = realloc(l->at, (l->n + 1) * sizeof *more);
    if (!more) return err_nomem(err);
    l->at = more;
    char *copy = strdup(name);
    if (!copy) return err_nomem(err);
    size_t i = l->n++;
    for (; i > 0 && strcmp(l->at[i - 1].name, name) > 0; i--) l->at[i] = l->at[i - 1];
    l->at[i] = (adapter_name){.name = copy, .adapter = a};
    return 0;
}

int adapters_take(const adapters *l, const char *name, const char *model, adapter **ret, shoal_err *err)
{
    const adapter_name *at = adapters_find(l, name);
    if (!at) return unknown(l, name, model, err);
    adapter_ref(at->adapter);
    *ret = at->adapter;
    return 0;
}

int adapters_remove(adapters *l, const char *name, const char *model, shoal_err *err)
{
    adapter_name *at = adapters_find(l, name);
    if (!at) return unknown(l, name, model, err);
    free(at->name);
    adapter_unref(at->adapter);
    l->n--;
    memmove(at, at + 1, (size_t)(l->at + l->n - at) * sizeof *at);
    return 0;
}

void adapters_done(adapters *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->at[i].name);
        adapter_unref(l->at[i].adapter);
    }
    free(l->at);
    *l = (adapters){0};
}
