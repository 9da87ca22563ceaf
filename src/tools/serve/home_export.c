/* home_export.c: see home_export.h. */
#include "serve/home_export.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/pipeline.h"

enum { TEXT_MAX = 128 }; /* of a device (pipeline_device_text_ok) */

/* ---- forms ------------------------------------------------------------------------------------------ */

static void take(json_t **to, json_t *value)
{
    json_decref(*to);
    *to = json_incref(value);
}

void home_export_add(home_export *x, const json_t *document, bool *ret_known)
{
    const char *key = json_string_value(json_object_get(document, "key"));
    const json_t *data = json_object_get(document, "data");
    const struct {
        const char *key, *list;
        json_t **to;
    } registries[] = {{"core.entity_registry", "entities", &x->entities},
                      {"core.device_registry", "devices", &x->devices},
                      {"core.area_registry", "areas", &x->areas}};
    *ret_known = json_is_string(json_object_get(json_array_get(document, 0), "entity_id"));
    if (*ret_known) take(&x->states, (json_t *)document);
    for (size_t i = 0; key && i < sizeof registries / sizeof *registries; i++) {
        json_t *list = json_object_get(data, registries[i].list);
        if (strcmp(key, registries[i].key) != 0 || !json_is_array(list)) continue;
        take(registries[i].to, list);
        *ret_known = true;
    }
}

void home_export_done(home_export *x)
{
    json_decref(x->states);
    json_decref(x->entities);
    json_decref(x->devices);
    json_decref(x->areas);
    *x = (home_export){0};
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static const json_t *entry(const json_t *list, const char *key, const char *value)
{
    size_t i;
    const json_t *o;
    if (!*value) return NULL;
    json_array_foreach(list, i, o) if (strcmp(text_at(o, key), value) == 0) return o;
    return NULL;
}

/* "light.kitchen_ceiling" as "Kitchen Ceiling". */
static void name_of_id(const char *id, char ret[TEXT_MAX + 1])
{
    const char *dot = strchr(id, '.');
    snprintf(ret, TEXT_MAX + 1, "%s", dot ? dot + 1 : id);
    for (char *c = ret; *c; c++) {
        bool first = c == ret || c[-1] == ' ';
        *c = *c == '_' ? ' ' : (char)(first ? toupper((unsigned char)*c) : *c);
    }
}

static const char *area_of(const home_export *x, const json_t *entity)
{
    const char *id = text_at(entity, "area_id");
    if (!*id) id = text_at(entry(x->devices, "id", text_at(entity, "device_id")), "area_id");
    const json_t *area = entry(x->areas, "id", id);
    if (!area) area = entry(x->areas, "area_id", id); /* as the API lists them */
    return text_at(area, "name");
}

static bool is_shown(const json_t *entity)
{
    return !*text_at(entity, "hidden_by") && !*text_at(entity, "disabled_by");
}

static bool put_aliases(json_t *device, const json_t *entity)
{
    size_t i;
    const json_t *alias, *all = json_object_get(entity, "aliases");
    json_t *list = json_array();
    bool ok = list != NULL;
    json_array_foreach(all, i, alias)
    {
        const char *s = json_string_value(alias);
        if (ok && s && pipeline_device_text_ok(s) && json_array_size(list) < PIPELINE_ALIASES_MAX)
            ok = json_array_append(list, (json_t *)alias) == 0;
    }
    if (ok && json_array_size(list) > 0) ok = json_object_set(device, "aliases", list) == 0;
    json_decref(list);
    return ok;
}

/* state may be NULL: only the registry knows it. */
static json_t *make_device(const home_export *x, const char *id, const json_t *state, const json_t *entity)
{
    char made[TEXT_MAX + 1];
    const char *names[] = {text_at(entity, "name"),
                           text_at(json_object_get(state, "attributes"), "friendly_name"),
                           text_at(entity, "original_name"), made};
    const char *says = text_at(state, "state"), *area = area_of(x, entity);
    size_t i = 0;
    name_of_id(id, made);
    while (i < 3 && !pipeline_device_text_ok(names[i])) i++;
    json_t *o = json_pack("{s:s, s:s}", "id", id, "name", names[i]);
    bool ok =
        o && (!pipeline_device_text_ok(says) || json_object_set_new(o, "state", json_string(says)) == 0);
    ok = ok && (!pipeline_device_text_ok(area) || json_object_set_new(o, "area", json_string(area)) == 0);
    if (ok && put_aliases(o, entity)) return o;
    json_decref(o);
    return NULL;
}

/* ---- the list --------------------------------------------------------------------------------------- */

static bool is_of(const char *id, const char *domain)
{
    size_t n = strlen(domain);
    return strncmp(id, domain, n) == 0 && id[n] == '.' && id[n + 1];
}

/* Of one domain, in the order of the export. */
static int add_domain(const home_export *x, const json_t *index, const char *domain, json_t *seen,
                      json_t *list, shoal_err *err)
{
    const json_t *source = x->states ? x->states : x->entities, *o;
    size_t i;
    json_array_foreach(source, i, o)
    {
        const char *id = text_at(o, "entity_id");
        const json_t *entity = json_object_get(index, id);
        if (!is_of(id, domain) || !pipeline_device_text_ok(id) || json_object_get(seen, id) ||
            !is_shown(entity))
            continue;
        json_t *device = make_device(x, id, x->states ? o : NULL, entity);
        if (!device || json_object_set_new(seen, id, json_true()) != 0 ||
            json_array_append(list, device) != 0) {
            json_decref(device);
            return err_nomem(err);
        }
        json_decref(device);
    }
    return 0;
}

int home_export_devices(const home_export *x, const char *const *domains, size_t n_domains, json_t **ret,
                        shoal_err *err)
{
    json_t *list = json_array(), *seen = json_object(), *index = json_object(), *o;
    size_t i;
    int rc = list && seen && index ? 0 : err_nomem(err);
    json_array_foreach(x->entities, i, o)
    {
        const char *id = text_at(o, "entity_id");
        if (rc == 0 && *id && json_object_set(index, id, o) != 0) rc = err_nomem(err);
    }
    for (i = 0; rc == 0 && i < n_domains; i++) rc = add_domain(x, index, domains[i], seen, list, err);
    json_decref(seen);
    json_decref(index);
    if (rc == 0)
        *ret = list;
    else
        json_decref(list);
    return rc;
}
