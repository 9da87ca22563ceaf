/* model_resolve.c: from the "model" of a request to a model that is configured here; see model_resolve.h. A wrong task is
 * refused before any work, with the endpoint that would take the model. */
#include "request/model_resolve.h"

#include <stdio.h>
#include <string.h>

#include "converse/pipeline_calls.h"
#include "json/json.h"
#include "request/admission.h"
#include "request/gateway_state.h"
#include "request/routed.h"

/* Which endpoints serve a task, for a message that helps: "A", "A or B", "A, B or C". */
static void put_endpoints(buf *out, const char *task)
{
    const char *paths[N_ASKS] = {"/v1/models"};
    size_t n = 0;
    for (size_t i = 0; i < N_ASKS; i++) {
        const task_endpoint *at = &TASK_ENDPOINTS[i];
        bool completes = i == ASK_COMPLETION && task_fits(at->does, task, 0);
        bool own = at->does && strcmp(at->does, task) == 0 && i != ASK_MODERATE; /* it has its own model */
        if (completes || own) paths[n++] = at->path;
    }
    buf_puts(out, paths[0]);
    for (size_t i = 1; i < n; i++) buf_printf(out, "%s%s", i + 1 < n ? ", " : " or ", paths[i]);
}

static bool does(const Shoal__V1__ModelInfo *info, const char *task)
{
    return task_fits(task, info->task, info->n_labels);
}

/* Discovery may bring a model of the same name, which such a request never reaches. */
static bool is_composed(const gateway_request *rq, const char *name)
{
    const gateway_config *c = rq->config;
    return config_ensemble_find(c, name) || route_find(&c->book, name) || pipeline_calls_find(c, name);
}

const Shoal__V1__ModelInfo *model_resolve_info(const gateway_request *rq, const char *name, bool *ret_known)
{
    const replica_set *set = is_composed(rq, name) ? NULL : registry_find(rq->registry, name);
    if (!set) return calls_info(rq->calls, name, ret_known);
    if (ret_known) *ret_known = true;
    for (size_t i = 0; i < set->n; i++)
        if (set->replicas[i]->info) return set->replicas[i]->info;
    return NULL;
}

static bool name_does(const gateway_request *rq, const char *name, const char *task)
{
    const Shoal__V1__ModelInfo *info = model_resolve_info(rq, name, NULL);
    return info && does(info, task);
}

static void put_name(buf *out, const char *name)
{
    buf_printf(out, "%s%s", out->len ? ", " : "", name);
}

/* user: where the first name goes, NULL until then. */
static void take_first(void *user, const char *name)
{
    const char **first = user;
    if (!*first) *first = name;
}

/* Ensembles, routes and pipelines: what answers as one model does. A route does what its first target does. */
static void put_composed(buf *out, const gateway_request *rq, const char *task)
{
    const gateway_config *c = rq->config;
    for (size_t i = 0; i < c->n_ensembles; i++) {
        const char *name = c->ensembles[i].name;
        if (admission_shows(rq, name) && name_does(rq, name, task)) put_name(out, name);
    }
    for (size_t i = 0; i < c->book.n_routes; i++) {
        const char *first = NULL;
        route_each(&c->book.routes[i], take_first, &first);
        if (first && admission_shows(rq, c->book.routes[i].name) && name_does(rq, first, task))
            put_name(out, c->book.routes[i].name);
    }
    for (size_t i = 0; i < c->n_pipelines; i++) {
        const char *name = c->pipelines[i].name;
        if (pipeline_calls_find(c, name) == &c->pipelines[i] && admission_shows(rq, name) &&
            name_does(rq, name, task))
            put_name(out, name);
    }
}

/* Append what does it and what the key may use, with commas between. */
static void put_names(buf *out, const gateway_request *rq, const char *task)
{
    registry *g = rq->registry;
    for (size_t i = 0; i < registry_count_models(g); i++) {
        const replica_set *set = registry_model_at(g, i);
        const Shoal__V1__ModelInfo *info = set->n > 0 ? set->replicas[0]->info : NULL;
        if (info && does(info, task) && admission_shows(rq, set->replicas[0]->model))
            put_name(out, set->replicas[0]->model);
    }
    put_composed(out, rq, task);
}

/* A model that lies here and is not served: the one of that name, or else one that does the task. NULL: none. */
static const char *find_loadable(const gateway_request *rq, const char *name, const char *task)
{
    const gateway *g = rq->gateway;
    const json_t *stored = g->loadable ? g->loadable(g) : NULL, *o;
    const char *found = NULL;
    size_t i;
    json_array_foreach(stored, i, o)
    {
        const char *its = json_string_value(json_object_get(o, "name"));
        const char *doing = json_string_value(json_object_get(o, "task"));
        if (!its || !doing || registry_find(rq->registry, its) || !admission_shows(rq, its)) continue;
        if (name && strcmp(its, name) == 0) return its;
        if (!found && task_fits(task, doing, json_array_size(json_object_get(o, "labels")))) found = its;
    }
    return found;
}

/* What to do where nothing that is served does it. */
static void put_remedy(buf *out, const gateway_request *rq, const char *name, const char *task)
{
    const char *loadable = find_loadable(rq, name, task);
    if (loadable)
        buf_printf(out, "`shoal load %.64s` loads %s", loadable,
                   name && strcmp(loadable, name) == 0 ? "it" : "one that does");
    else
        buf_puts(out, "GET /v1/models lists those that are");
}

/* Several do it: which. */
static int name_one(const gateway_request *rq, const char *task, api_error *e)
{
    buf list = {0};
    put_names(&list, rq, task);
    int rc = api_error_bad(e, "model", "several models do this task (%.300s): name one in \"model\"",
                           list.len ? list.data : "");
    buf_done(&list);
    return rc;
}

static int unknown_model(const gateway_request *rq, const char *task, const char *name, api_error *e)
{
    buf list = {0}, remedy = {0};
    const char *loadable = find_loadable(rq, name, task);
    put_names(&list, rq, task);
    put_remedy(&remedy, rq, name, task);
    if (list.len && loadable && strcmp(loadable, name) == 0)
        api_error_set(e, 404, "invalid_request_error", "model_not_found", "model",
                      "the model '%.64s' is not served here: %.100s; these do \"%.16s\": %.200s", name,
                      buf_text(&remedy), task, list.data);
    else if (list.len)
        api_error_set(e, 404, "invalid_request_error", "model_not_found", "model",
                      "the model '%.64s' does not exist here; these do \"%.16s\": %.250s; GET /v1/models "
                      "lists all, and 'aliases' in the configuration gives them more names",
                      name, task, list.data);
    else
        api_error_set(e, 404, "invalid_request_error", "model_not_found", "model",
                      "the model '%.64s' does not exist here, and none that does \"%.16s\" is served: %.150s",
                      name, task, buf_text(&remedy));
    buf_done(&list);
    buf_done(&remedy);
    return e->status;
}

const char *model_resolve_first(const gateway_request *rq, const char *task)
{
    for (size_t i = 0; i < registry_count(rq->registry); i++) {
        const replica *r = registry_at(rq->registry, i);
        if (r->info && does(r->info, task) && admission_shows(rq, r->model)) return r->model;
    }
    return NULL;
}

/* The one model with this task. */
static int choose_only(gateway_request *rq, const char *task, const char **ret_name, api_error *e)
{
    registry *g = rq->registry;
    const char *found = NULL;
    for (size_t i = 0; i < registry_count(g); i++) {
        const replica *r = registry_at(g, i);
        if (!r->info || !does(r->info, task) || (found && strcmp(found, r->model) == 0)) continue;
        if (!admission_shows(rq, r->model)) continue;
        if (found) return name_one(rq, task, e);
        found = r->model;
    }
    if (found) {
        *ret_name = found;
        return 0;
    }
    buf remedy = {0};
    put_remedy(&remedy, rq, NULL, task);
    int rc =
        api_error_bad(e, "model", "\"model\" must name a model: none that does \"%.16s\" is served: %.150s",
                      task, buf_text(&remedy));
    buf_done(&remedy);
    return rc;
}

static int unknown_adapter(api_error *e, const gateway_request *rq, const char *model,
                           const Shoal__V1__ModelInfo *info)
{
    buf list = {0};
    for (size_t i = 0; i < info->n_adapters; i++)
        buf_printf(&list, "%s%s:%s", i ? ", " : "; it has ", model, info->adapters[i]);
    int rc = api_error_set(e, 404, "invalid_request_error", "model_not_found", "model",
                           "the model '%.64s' has no adapter '%.64s'%.300s", model, rq->adapter,
                           info->n_adapters == 0 ? "; none is configured"
                           : list.data           ? list.data
                                                 : "");
    buf_done(&list);
    return rc;
}

/* Of "MODEL:ADAPTER" the model into `base`, and the adapter into rq; false when it cannot be one. Models'
 * names have no colons. */
static bool split_name(gateway_request *rq, const char *name, char base[96])
{
    const char *colon = strchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : 0;
    if (n == 0 || n >= 96 || !colon[1] || strlen(colon + 1) >= sizeof rq->adapter) return false;
    memcpy(base, name, n);
    base[n] = '\0';
    strcpy(rq->adapter, colon + 1);
    return true;
}

static int find_adapter(gateway_request *rq, const char *model, const Shoal__V1__ModelInfo *info,
                        api_error *e)
{
    for (size_t i = 0; info && i < info->n_adapters; i++) {
        if (strcmp(info->adapters[i], rq->adapter) != 0) continue;
        if (i < info->n_adapter_digests)
            snprintf(rq->adapter_digest, sizeof rq->adapter_digest, "%s", info->adapter_digests[i]);
        return 0;
    }
    if (strcmp(rq->adapter, "latest") == 0) { /* as Ollama's clients say the model itself */
        *rq->adapter = '\0';
        return 0;
    }
    return info ? unknown_adapter(e, rq, model, info) : 0;
}

bool model_resolve_serves(const gateway_request *rq, const char *name)
{
    char base[96];
    bool known;
    snprintf(base, sizeof base, "%.*s", (int)strcspn(name, ":"), name);
    if (routed_find(rq, name) || config_ensemble_find(rq->config, name)) return true;
    model_resolve_info(rq, base, &known);
    return known;
}

/* A variant may have a colon in its name: "mine:1b" is not "mine". False: it is too long to be one. */
static bool variant_name(char ret[sizeof((gateway_request *)0)->variant_name], const char *name)
{
    size_t n = strlen(name), n_tag = strlen(":latest");
    if (n > n_tag && strcmp(name + n - n_tag, ":latest") == 0) n -= n_tag;
    if (n >= sizeof((gateway_request *)0)->variant_name) return false;
    memcpy(ret, name, n);
    ret[n] = '\0';
    return true;
}

const json_t *model_resolve_variant(const gateway_request *rq, const char *name)
{
    const gateway *g = rq->gateway;
    char own[sizeof rq->variant_name];
    const json_t *all = name && g->variants ? g->variants(g) : NULL;
    const json_t *made = all && variant_name(own, name) ? json_object_get(all, own) : NULL;
    bool hidden = made && (model_resolve_serves(rq, own) || config_alias_find(rq->config, own));
    return hidden ? NULL : made;
}

const char *model_resolve_alias(gateway_request *rq, const char *name)
{
    const config_alias *a = config_alias_find(rq->config, name);
    const json_t *made = a ? NULL : model_resolve_variant(rq, name);
    if (made) {
        json_t *before = rq->variant;
        rq->variant =
            json_incref((json_t *)made); /* a deletion must not take the name from under the request */
        json_decref(before);
        variant_name(rq->variant_name, name);
        rq->alias = rq->variant_name;
        name = json_string_value(json_object_get(made, "from"));
        a = config_alias_find(rq->config, name);
    } else if (a) {
        rq->alias = a->name;
    }
    return a ? a->model : name;
}

/* The name that a key is held against: of "NAME:latest" NAME, unless the model has an adapter of that name. */
static const char *name_to_admit(const gateway_request *rq, const char *name, char base[96])
{
    const char *colon = strchr(name, ':');
    if (!colon || strcmp(colon, ":latest") != 0 || (size_t)(colon - name) >= 96) return name;
    snprintf(base, 96, "%.*s", (int)(colon - name), name);
    const Shoal__V1__ModelInfo *info = model_resolve_info(rq, base, NULL);
    for (size_t i = 0; info && i < info->n_adapters; i++)
        if (strcmp(info->adapters[i], "latest") == 0) return name;
    return base;
}

static int wrong_task(api_error *e, const char *name, const char *task)
{
    buf at = {0};
    put_endpoints(&at, task);
    int rc = api_error_set(e, 400, "invalid_request_error", "wrong_task", "model",
                           "the model %.64s does \"%.16s\", which is asked at %s", name, task, buf_text(&at));
    buf_done(&at);
    return rc;
}

int model_resolve(gateway_request *rq, const char *task, const char **ret_name,
                  const Shoal__V1__ModelInfo **ret_info, api_error *e)
{
    bool known, named = *ret_name != NULL;
    char base[96];
    int rc = *ret_name ? 0 : choose_only(rq, task, ret_name, e);
    if (rc == 0 && !rq->routed) rc = admission_may_use(rq, name_to_admit(rq, *ret_name, base), e);
    if (rc != 0) return rc;
    const char *name = split_name(rq, *ret_name, base) ? base : *ret_name;
    const Shoal__V1__ModelInfo *info = model_resolve_info(rq, name, &known);
    if (!known) return unknown_model(rq, task, *ret_name, e);
    if (*rq->adapter && (rc = find_adapter(rq, name, info, e)) != 0) return rc;
    if (info && !does(info, task)) return wrong_task(e, name, info->task);
    if ((rq->max_cost > 0 || rq->max_energy_j > 0) && !rq->routed)
        return api_error_bad(
            e, "model",
            "x-shoal-max-cost and x-shoal-max-energy-j choose among the models of a route: give a "
            "route as \"model\", or leave them out");
    request_note_model(rq, name, info ? info->version : "", info ? info->quantisation : "");
    if (!named) *ret_name = rq->model; /* the registry's may be gone before the request is */
    *ret_info = info;
    return 0;
}
