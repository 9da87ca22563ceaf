/* pipeline_tools.c: see pipeline_tools.h. */
#include "pipeline/pipeline_tools.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "pipeline/pipeline_template.h"

static const char *const CHOICES[] = {"auto", "required", "none"};

const char *pipeline_named_tool(const config_stage *st)
{
    for (size_t i = 0; st->tool_choice && i < sizeof CHOICES / sizeof *CHOICES; i++)
        if (strcmp(st->tool_choice, CHOICES[i]) == 0) return NULL;
    return st->tool_choice;
}

bool stage_enum_of_ok(const char *what)
{
    size_t star = strcspn(what, "*");
    if (strcmp(what, "devices") == 0 || strcmp(what, "names") == 0 || strcmp(what, "areas") == 0) return true;
    return what[star] == '*' && !what[star + 1];
}

/* ---- the configuration ------------------------------------------------------------------------------ */

/* Every "enum_of" within a schema, whatever it is nested in. */
static int check_enums(const json_t *schema, const char *where, shoal_err *err)
{
    const json_t *of = json_object_get(schema, "enum_of");
    const char *key;
    json_t *v;
    size_t i;
    int rc = 0;
    if (of && !(json_is_string(of) && stage_enum_of_ok(json_string_value(of))))
        return err_set(err, SHOAL_EINVALID,
                       "%s: 'enum_of' must be devices, names, areas, or a pattern of ids such as \"light.*\"",
                       where);
    if (of && json_object_get(schema, "enum"))
        return err_set(err, SHOAL_EINVALID, "%s: 'enum' and 'enum_of' exclude each other", where);
    json_object_foreach((json_t *)(uintptr_t)schema, key, v)
    {
        if (rc == 0) rc = check_enums(v, where, err);
    }
    json_array_foreach(schema, i, v)
    {
        if (rc == 0) rc = check_enums(v, where, err);
    }
    return rc;
}

static int check_parameters(const stage_tool *t, const char *where, shoal_err *err)
{
    json_t *schema = NULL;
    shoal_err why;
    int rc = json_parse(&schema, t->parameters, strlen(t->parameters), "parameters", &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc != 0) return err_set(err, SHOAL_EINVALID, "%s: %s", where, why.message);
    const json_t *type = json_object_get(schema, "type");
    if (!json_is_object(schema) ||
        (type && (!json_is_string(type) || strcmp(json_string_value(type), "object") != 0)))
        rc = err_set(err, SHOAL_EINVALID, "%s: arguments are an object: {type: object, properties: {...}}",
                     where);
    if (rc == 0) rc = check_enums(schema, where, err);
    json_decref(schema);
    return rc;
}

static int check_tool(const config_stage *st, unsigned i, const char *path, shoal_err *err)
{
    const stage_tool *t = &st->tools[i];
    char where[160];
    for (unsigned k = 0; k < i; k++)
        if (strcmp(st->tools[k].name, t->name) == 0)
            return err_set(err, SHOAL_EINVALID, "%stools[%u].name: '%s' is already the name of tools[%u]",
                           path, i, t->name, k);
    for (size_t k = 0; k < sizeof CHOICES / sizeof *CHOICES; k++)
        if (strcmp(CHOICES[k], t->name) == 0)
            return err_set(err, SHOAL_EINVALID, "%stools[%u].name: '%s' is a word of tool_choice", path, i,
                           t->name);
    snprintf(where, sizeof where, "%stools[%u].parameters", path, i);
    return t->parameters ? check_parameters(t, where, err) : 0;
}

int pipeline_check_tools(const config_stage *st, const char *path, shoal_err *err)
{
    const char *named = pipeline_named_tool(st);
    bool found = !named;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < st->n_tools; i++) {
        rc = check_tool(st, i, path, err);
        found |= named && strcmp(st->tools[i].name, named) == 0;
    }
    if (rc != 0) return rc;
    if (!st->n_tools && !st->n_mcp && (st->several_calls || (st->tool_choice && strcmp(st->tool_choice, "none") != 0)))
        return err_set(err, SHOAL_EINVALID, "%s%s: there are no 'tools' that it could be about", path,
                       st->tool_choice ? "tool_choice" : "parallel_tool_calls");
    if (!found)
        return err_set(err, SHOAL_EINVALID,
                       "%stool_choice: '%s' is not auto, required or none, nor the name of one of 'tools'",
                       path, named);
    if (st->n_tools && (st->choices || st->schema))
        return err_set(err, SHOAL_EINVALID, "%stools: 'tools' and '%s' exclude each other", path,
                       st->choices ? "choices" : "schema");
    return 0;
}

/* ---- a request -------------------------------------------------------------------------------------- */

typedef struct offering {
    const config_device *devices;
    size_t n_devices;
    const char *only; /* one tool alone; NULL: all */
    bool any;         /* of each "enum_of" there is one */
    bool failed;      /* out of memory */
} offering;

/* What device i gives to an "enum_of"; NULL: nothing. */
static const char *pipeline_tools_value_of(const config_device *d, const char *of)
{
    if (strcmp(of, "names") == 0) return d->name;
    if (strcmp(of, "areas") == 0) return d->area;
    return strcmp(of, "devices") == 0 || pipeline_label_is(d->id, of) ? d->id : NULL;
}

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i,
                       v) if (json_is_string(v) && strcmp(json_string_value(v), text) == 0) return true;
    return false;
}

static bool fill_in(offering *o, json_t *schema);

/* "enum_of" becomes "enum"; false: there is nothing that it could be. */
static bool fill_enum(offering *o, json_t *schema, const char *of)
{
    json_t *values = json_array();
    for (size_t i = 0; values && i < o->n_devices; i++) {
        const char *v = pipeline_tools_value_of(&o->devices[i], of);
        if (v && !has_text(values, v) && json_array_append_new(values, json_string(v)) != 0) o->failed = true;
    }
    if (o->any && json_array_append_new(values, json_string("?")) != 0) o->failed = true;
    bool some = json_array_size(values) > 0;
    if (json_object_set_new(schema, "enum", values) != 0 || json_object_del(schema, "enum_of") != 0)
        o->failed = true;
    return some;
}

/* Properties that can have no value are not offered; false: one of them is required. */
static bool fill_properties(offering *o, json_t *properties, const json_t *required)
{
    const char *name;
    json_t *v;
    void *next;
    bool possible = true;
    json_object_foreach_safe(properties, next, name, v)
    {
        if (fill_in(o, v)) continue;
        if (has_text(required, name)) possible = false;
        json_object_del(properties, name);
    }
    return possible;
}

/* All of a schema. False: nothing satisfies it. */
static bool fill_in(offering *o, json_t *schema)
{
    const char *key;
    json_t *v;
    size_t i;
    bool possible = true;
    json_t *of = json_object_get(schema, "enum_of");
    if (json_is_string(of)) {
        json_incref(of);
        possible = fill_enum(o, schema, json_string_value(of));
        json_decref(of);
    }
    json_object_foreach(schema, key, v)
    {
        if (strcmp(key, "properties") == 0)
            possible &= fill_properties(o, v, json_object_get(schema, "required"));
        else if (strcmp(key, "enum") != 0 && strcmp(key, "const") != 0)
            possible &= fill_in(o, v);
    }
    json_array_foreach(schema, i, v) possible &= fill_in(o, v);
    return possible;
}

/* One tool in OpenAI's form; NULL: it cannot be called now, or memory is short. */
static json_t *one_tool(offering *o, const stage_tool *t)
{
    json_t *schema = NULL;
    if (t->parameters && json_parse(&schema, t->parameters, strlen(t->parameters), "parameters", NULL) != 0) {
        o->failed = true;
        return NULL;
    }
    if (schema && !fill_in(o, schema)) {
        json_decref(schema);
        return NULL;
    }
    json_t *f = json_pack("{s:s, s:b}", "name", t->name, "strict", 1);
    if (t->description && json_object_set_new(f, "description", json_string(t->description)) != 0)
        o->failed = true;
    if (schema && json_object_set(f, "parameters", schema) != 0) o->failed = true;
    json_decref(schema);
    json_t *tool = json_pack("{s:s, s:o}", "type", "function", "function", f);
    o->failed |= !tool;
    return tool;
}

static int offer(json_t **ret, offering *o, const config_stage *st, shoal_err *err)
{
    json_t *all = json_array();
    o->failed = !all;
    for (unsigned i = 0; i < st->n_tools && !o->failed; i++) {
        if (o->only && strcmp(o->only, st->tools[i].name) != 0) continue;
        json_t *tool = one_tool(o, &st->tools[i]);
        if (tool && json_array_append_new(all, tool) != 0) o->failed = true;
    }
    if (!o->failed)
        *ret = all;
    else
        json_decref(all);
    return o->failed ? err_nomem(err) : 0;
}

int pipeline_offer_tools(json_t **ret, const config_stage *st, const config_device *devices, size_t n_devices,
                         shoal_err *err)
{
    offering o = {.devices = devices, .n_devices = n_devices, .only = pipeline_named_tool(st)};
    return offer(ret, &o, st, err);
}

int pipeline_all_tools(json_t **ret, const config_stage *st, shoal_err *err)
{
    offering o = {.any = true};
    return offer(ret, &o, st, err);
}
