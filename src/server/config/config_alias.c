/* config_alias.c: see config_alias.h. */
#include "config/config_alias.h"

#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "config/config.h"
#include "config/config_schema.h"

const config_alias *config_alias_find(const gateway_config *c, const char *name)
{
    for (size_t i = 0; name && i < c->n_aliases; i++)
        if (strcmp(c->aliases[i].name, name) == 0) return &c->aliases[i];
    return NULL;
}

/* Names of models elsewhere: "llama3.2:1b", "openai/gpt-4o-mini". They stand in paths, lists and terminals.
 */
bool config_alias_is_fine(const char *s)
{
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/@+";
    return s[strspn(s, LETTERS)] == '\0' && !strchr("-.:/@+", *s) && strlen(s) <= CONFIG_ALIAS_BYTES;
}

/* What serves the name, in words; NULL: nothing of this file does. */
static const char *config_alias_kind_of(const gateway_config *c, const char *name)
{
    size_t n = strcspn(name, ":");
    for (size_t i = 0; i < c->n_models; i++) {
        const config_model *m = &c->models[i];
        if (strlen(m->name) != n || memcmp(m->name, name, n) != 0) continue;
        if (!name[n]) return "a model";
        if (config_has_adapter(m, name + n + 1)) return "an adapter";
    }
    for (size_t i = 0; i < c->n_workers; i++)
        if (strcmp(c->workers[i].model, name) == 0) return "a model";
    for (size_t i = 0; i < c->n_dns; i++)
        if (strcmp(c->dns[i].model, name) == 0) return "a model";
    if (config_ensemble_find(c, name)) return "an ensemble";
    if (route_find(&c->book, name)) return "a route";
    return pipeline_find(c->pipelines, c->n_pipelines, name) ? "a pipeline" : NULL;
}

static int no_such_target(const gateway_config *c, const config_alias *a, shoal_err *err)
{
    const char **names =
        malloc((c->n_models + c->n_ensembles + c->book.n_routes + c->n_pipelines + 1) * sizeof *names);
    size_t n = 0;
    if (!names) return err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++) names[n++] = c->models[i].name;
    for (size_t i = 0; i < c->n_ensembles; i++) names[n++] = c->ensembles[i].name;
    for (size_t i = 0; i < c->book.n_routes; i++) names[n++] = c->book.routes[i].name;
    for (size_t i = 0; i < c->n_pipelines; i++) names[n++] = c->pipelines[i].name;
    const char *near = config_nearest(a->model, names, n);
    free(names);
    bool may_be_listed = !near && name_is_fine(a->model, strlen(a->model));
    return err_set(err, SHOAL_EINVALID,
                   "aliases.%s: '%s' is no model, ensemble, route or pipeline of this file%s%s%s", a->name,
                   a->model,
                   near            ? "; did you mean '"
                   : may_be_listed ? "; if models.json lists it, add `- name: "
                                   : "",
                   near            ? near
                   : may_be_listed ? a->model
                                   : "",
                   near            ? "'?"
                   : may_be_listed ? "` under models"
                                   : "");
}

static int check_alias(const gateway_config *c, const config_alias *a, shoal_err *err)
{
    const config_alias *other = config_alias_find(c, a->model);
    const char *taken = config_alias_kind_of(c, a->name);
    if (!config_alias_is_fine(a->name))
        return err_set(err, SHOAL_EINVALID,
                       "aliases.%s: the name may hold letters, digits, and '-', '_', '.', ':', '/', '@', '+' "
                       "only, and begins with a letter, a digit or '_'",
                       a->name);
    if (taken)
        return err_set(err, SHOAL_EINVALID,
                       "aliases.%s: is the name of %s of this file: remove this alias or rename it", a->name,
                       taken);
    if (other)
        return err_set(err, SHOAL_EINVALID,
                       "aliases.%s: '%s' is an alias itself: name what is served, such as '%s'", a->name,
                       a->model, config_alias_kind_of(c, other->model) ? other->model : c->models[0].name);
    return config_alias_kind_of(c, a->model) ? 0 : no_such_target(c, a, err);
}

/* A key is checked against what is served, so an alias in its list would allow nothing. */
static int check_keys(const gateway_config *c, shoal_err *err)
{
    for (size_t i = 0; i < c->n_api_keys; i++)
        for (size_t k = 0; k < c->api_keys[i].n_models; k++) {
            const config_alias *a = config_alias_find(c, c->api_keys[i].models[k]);
            if (a)
                return err_set(err, SHOAL_EINVALID,
                               "api_keys[%zu].models[%zu]: '%s' is an alias: name '%s', which allows its "
                               "aliases, too",
                               i, k, a->name, a->model);
        }
    return 0;
}

int config_check_aliases(const gateway_config *c, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < c->n_aliases; i++)
        rc = config_found_at(c, check_alias(c, &c->aliases[i], err), err);
    return rc ? rc : config_found_at(c, check_keys(c, err), err);
}
