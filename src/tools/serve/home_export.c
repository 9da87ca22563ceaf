/* home_export.c: see home_export.h. */
#include "serve/home_export.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/pipeline.h"

enum { TEXT_MAX = 128, UNIT_MAX = 16 }; /* of a device (pipeline_device_text_ok) */

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
    const json_t *units = json_object_get(document, "unit_system");
    if (json_is_object(units)) {
        take(&x->units, (json_t *)units);
        *ret_known = true;
    }
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
    json_decref(x->units);
    *x = (home_export){0};
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Without a NUL in it. */
static const char *text_of(const json_t *v)
{
    const char *s = json_string_value(v);
    return s && strlen(s) == json_string_length(v) ? s : "";
}

static const char *text_at(const json_t *o, const char *key)
{
    return text_of(json_object_get(o, key));
}

/* What is looked up for each device, by its id: a home may have 100,000 of them. */
typedef struct home_index {
    json_t *entities, *devices, *areas;
    const char *temperature; /* its unit; "": none is told */
} home_index;

static int index_by(json_t **to, const json_t *list, const char *key, shoal_err *err)
{
    size_t i;
    const json_t *o;
    if (!*to && !(*to = json_object())) return err_nomem(err);
    json_array_foreach(list, i, o)
    {
        const char *id = text_at(o, key);
        if (*id && !json_object_get(*to, id) && json_object_set(*to, id, (json_t *)o) != 0)
            return err_nomem(err);
    }
    return 0;
}

static int make_index(home_index *ret, const home_export *x, shoal_err *err)
{
    ret->temperature = text_at(x->units, "temperature");
    int rc = index_by(&ret->entities, x->entities, "entity_id", err);
    if (rc == 0) rc = index_by(&ret->devices, x->devices, "id", err);
    if (rc == 0) rc = index_by(&ret->areas, x->areas, "id", err);
    if (rc == 0) rc = index_by(&ret->areas, x->areas, "area_id", err); /* as the API lists them */
    return rc;
}

static void index_done(home_index *x)
{
    json_decref(x->entities);
    json_decref(x->devices);
    json_decref(x->areas);
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

static const char *area_of(const home_index *x, const json_t *entity)
{
    const char *id = text_at(entity, "area_id");
    if (!*id) id = text_at(json_object_get(x->devices, text_at(entity, "device_id")), "area_id");
    return text_at(json_object_get(x->areas, id), "name");
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
        if (ok && pipeline_device_text_ok(text_of(alias)) && json_array_size(list) < PIPELINE_ALIASES_MAX)
            ok = json_array_append(list, (json_t *)alias) == 0;
    }
    if (ok && json_array_size(list) > 0) ok = json_object_set(device, "aliases", list) == 0;
    json_decref(list);
    return ok;
}

/* "" for none. The attributes say whether it is a thing of temperatures. */
static const char *unit_of(const home_index *x, const json_t *attributes)
{
    static const char *const own[] = {"temperature_unit", "unit_of_measurement"};
    static const char *const numbers[] = {"temperature", "current_temperature", "min_temp"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (*text_at(attributes, own[i])) return text_at(attributes, own[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (json_object_get(attributes, numbers[i])) return x->temperature;
    return "";
}

/* state may be NULL: only the registry knows it. */
static json_t *make_device(const home_index *x, const char *id, const json_t *state, const json_t *entity)
{
    char made[TEXT_MAX + 1];
    const char *names[] = {text_at(entity, "name"),
                           text_at(json_object_get(state, "attributes"), "friendly_name"),
                           text_at(entity, "original_name"), made};
    const char *says = text_at(state, "state"), *area = area_of(x, entity);
    const char *unit = unit_of(x, json_object_get(state, "attributes"));
    bool has_unit = pipeline_device_text_ok(unit) && strlen(unit) <= UNIT_MAX;
    size_t i = 0;
    name_of_id(id, made);
    while (i < 3 && !pipeline_device_text_ok(names[i])) i++;
    json_t *o = json_pack("{s:s, s:s}", "id", id, "name", names[i]);
    bool ok =
        o && (!pipeline_device_text_ok(says) || json_object_set_new(o, "state", json_string(says)) == 0);
    ok = ok && (!has_unit || json_object_set_new(o, "unit", json_string(unit)) == 0);
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
static int add_domain(const home_export *x, const home_index *index, const char *domain, json_t *seen,
                      json_t *list, shoal_err *err)
{
    const json_t *source = x->states ? x->states : x->entities, *o;
    size_t i;
    json_array_foreach(source, i, o)
    {
        const char *id = text_at(o, "entity_id");
        const json_t *entity = json_object_get(index->entities, id);
        if (!is_of(id, domain) || !pipeline_device_text_ok(id) || json_object_get(seen, id) ||
            !is_shown(entity))
            continue;
        json_t *device = make_device(index, id, x->states ? o : NULL, entity);
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
    json_t *list = json_array(), *seen = json_object();
    home_index index = {0};
    int rc = list && seen ? make_index(&index, x, err) : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < n_domains; i++) rc = add_domain(x, &index, domains[i], seen, list, err);
    json_decref(seen);
    index_done(&index);
    if (rc == 0)
        *ret = list;
    else
        json_decref(list);
    return rc;
}

static bool is_of_some(const char *id, const char *const *domains, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_of(id, domains[i])) return true;
    return false;
}

static int count_one(json_t *counts, const char *id)
{
    char domain[TEXT_MAX + 1];
    snprintf(domain, sizeof domain, "%.*s", (int)strcspn(id, "."), id);
    json_int_t n = json_integer_value(json_object_get(counts, domain));
    return json_object_set_new(counts, domain, json_integer(n + 1));
}

int home_export_left_out(const home_export *x, const char *const *domains, size_t n_domains, json_t **ret,
                         shoal_err *err)
{
    const json_t *source = x->states ? x->states : x->entities, *o;
    json_t *counts = json_object();
    home_index index = {0};
    size_t i;
    int rc = counts ? make_index(&index, x, err) : err_nomem(err);
    json_array_foreach(source, i, o)
    {
        const char *id = text_at(o, "entity_id");
        bool named = pipeline_device_text_ok(id) && strchr(id, '.') && *id != '.';
        if (rc || !named || is_of_some(id, domains, n_domains) ||
            !is_shown(json_object_get(index.entities, id)))
            continue;
        if (count_one(counts, id)) rc = err_nomem(err);
    }
    index_done(&index);
    if (rc == 0)
        *ret = counts;
    else
        json_decref(counts);
    return rc;
}
