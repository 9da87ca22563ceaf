/* function_map.c: from the call of a service to that of an offered function; see function_table.h. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "converse/function_table_impl.h"
#include "json/json.h"
#include "json/schema_check.h"

/* One call and its device. */
typedef struct mapping {
    const function_table *t;
    const chat_case *k;
    const device *d;
    bool shares_name; /* with another device */
    const char *service, *action;
    const char *domain;  /* of the device, as functions call it */
    const char *name;    /* the name that is tried */
    const json_t *given; /* arguments of the call */
    arena *a;
    bool nomem;
} mapping;

/* ---- templates ----------------------------------------------------------------------------------- */

static json_t *map_keep(mapping *m, json_t *made)
{
    m->nomem |= !made;
    return made;
}

static json_t *map_text(mapping *m, const char *s)
{
    return s && *s ? map_keep(m, json_string(s)) : NULL;
}

/* Of "01:00:30" one hour and 30 seconds; NULL: none, or no memory. */
static json_t *map_time(mapping *m, const char *name)
{
    static const char *const PARTS[] = {"hours", "minutes", "seconds"};
    const char *s = json_string_value(json_object_get(m->given, "duration"));
    unsigned part[3];
    if (!s || sscanf(s, "%4u:%2u:%2u", &part[0], &part[1], &part[2]) != 3) return NULL;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(PARTS[i], name) == 0) return part[i] ? map_keep(m, json_integer(part[i])) : NULL;
    return NULL;
}

/* NULL: there is no such field, or no memory. */
static json_t *map_field(mapping *m, const char *name)
{
    const struct {
        const char *name, *value;
    } FIELDS[] = {{"id", m->d->id},      {"name", m->name},       {"area", m->d->area},
                  {"domain", m->domain}, {"service", m->service}, {"action", m->action}};
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (strcmp(FIELDS[i].name, name) == 0) return map_text(m, FIELDS[i].value);
    json_t *given = json_object_get(m->given, name);
    return given ? json_incref(given) : map_time(m, name);
}

/* "{brightness}" is the value itself; in a longer text it stands as text. */
static json_t *map_string(mapping *m, const char *s)
{
    size_t n = strlen(s);
    if (n > 2 && *s == '{' && strchr(s, '}') == s + n - 1) {
        const char *name = arena_strndup(m->a, s + 1, n - 2);
        m->nomem |= !name;
        return name ? map_field(m, name) : NULL;
    }
    buf out = {0};
    bool whole = true;
    while (*s && whole) {
        size_t len = *s == '{' ? strcspn(s + 1, "}") : 0;
        const char *name = len && s[len + 1] ? arena_strndup(m->a, s + 1, len) : NULL;
        json_t *v = name ? map_field(m, name) : NULL;
        if (name && json_is_string(v)) {
            buf_puts(&out, json_string_value(v));
            s += len + 2;
        } else if (name) {
            whole = false;
        } else {
            buf_putc(&out, *s++);
        }
        json_decref(v);
    }
    json_t *made = whole && !out.failed ? map_keep(m, json_string(buf_text(&out))) : NULL;
    m->nomem |= out.failed;
    buf_done(&out);
    return made;
}

/* Nested no deeper than YAML is. NULL: a field is not there, or no memory. */
static json_t *map_expand(mapping *m, const json_t *template)
{
    const char *key;
    json_t *part, *made;
    size_t i;
    bool whole = true;
    if (json_is_string(template)) return map_string(m, json_string_value(template));
    if (json_is_object(template)) {
        made = map_keep(m, json_object());
        json_object_foreach((json_t *)(uintptr_t) template, key, part)
        {
            json_t *v = whole ? map_expand(m, part) : NULL;
            whole = whole && v && json_object_set_new(made, key, v) == 0;
        }
    } else if (json_is_array(template)) {
        made = map_keep(m, json_array());
        json_array_foreach(template, i, part)
        {
            json_t *v = whole ? map_expand(m, part) : NULL;
            whole = whole && v && json_array_append_new(made, v) == 0;
        }
    } else {
        return json_incref((json_t *)(uintptr_t) template);
    }
    if (whole) return made;
    json_decref(made);
    return NULL;
}

/* ---- schemas ------------------------------------------------------------------------------------- */

static bool map_obeys(mapping *m, const json_t *schema, const json_t *value)
{
    schema_verdict v;
    schema_check(&v, schema, value);
    m->nomem |= v.out_of_memory;
    return v.outcome == SCHEMA_OBEYED;
}

static const json_t *property(const offered_function *f, const char *key)
{
    return json_object_get(json_object_get(f->parameters, "properties"), key);
}

/* A text as its list of allowed values writes it: letter case does not count. */
static json_t *as_allowed(const json_t *schema, json_t *value)
{
    size_t i;
    const json_t *one;
    const char *s = json_string_value(value);
    json_array_foreach(json_object_get(schema, "enum"), i, one)
    {
        const char *allowed = json_string_value(one);
        if (!s || !allowed || strcasecmp(s, allowed) != 0) continue;
        json_decref(value);
        return json_incref((json_t *)(uintptr_t)one);
    }
    return value;
}

/* Takes value. False: the function has no such argument, or there is no memory. */
static bool set_argument(mapping *m, const offered_function *f, json_t *args, const char *key, json_t *value)
{
    const json_t *schema = property(f, key);
    if (!schema) {
        json_decref(value);
        return false;
    }
    bool set = json_object_set_new(args, key, as_allowed(schema, value)) == 0;
    m->nomem |= !set;
    return set;
}

/* Each that the function takes; a list of one value where it takes a list, else the value. */
static void set_perhaps(mapping *m, const offered_function *f, json_t *args, const json_t *perhaps)
{
    const char *key;
    json_t *template;
    json_object_foreach((json_t *)(uintptr_t)perhaps, key, template)
    {
        const json_t *schema = property(f, key);
        json_t *v = schema ? map_expand(m, template) : NULL;
        if (v && json_array_size(v) == 1 && !map_obeys(m, schema, v)) {
            json_t *one = json_incref(json_array_get(v, 0));
            json_decref(v);
            v = one;
        }
        if (v && map_obeys(m, schema, v)) m->nomem |= json_object_set(args, key, v) != 0;
        json_decref(v);
    }
}

/* Each that has a value, of which there is one at least; false: the function does not take one of them. */
static bool set_parts(mapping *m, const offered_function *f, json_t *args, const json_t *parts)
{
    const char *key;
    json_t *template;
    bool fits = true, any = !parts;
    json_object_foreach((json_t *)(uintptr_t)parts, key, template)
    {
        json_t *v = fits ? map_expand(m, template) : NULL;
        any = any || v;
        fits = fits && (!v || set_argument(m, f, args, key, v));
    }
    return fits && any;
}

/* NULL: the function does not take them. */
static json_t *map_arguments(mapping *m, const offered_function *f, const json_t *row)
{
    const char *key;
    json_t *template, *value, *args = map_keep(m, json_object());
    bool fits = args != NULL;
    json_object_foreach(json_object_get(row, "arguments"), key, template)
    {
        json_t *v = fits ? map_expand(m, template) : NULL;
        fits = fits && v && set_argument(m, f, args, key, v);
    }
    if (json_is_true(json_object_get(row, "values")))
        json_object_foreach((json_t *)(uintptr_t)m->given, key, value)
        {
            if (fits && strcmp(key, "target") != 0) fits = set_argument(m, f, args, key, json_incref(value));
        }
    if (fits) fits = set_parts(m, f, args, json_object_get(row, "parts"));
    if (fits) set_perhaps(m, f, args, json_object_get(row, "perhaps"));
    if (fits && m->shares_name) set_perhaps(m, f, args, json_object_get(row, "shared"));
    if (fits && map_obeys(m, f->parameters, args)) return args;
    json_decref(args);
    return NULL;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* "light.turn_on", "*.turn_on", "*". */
static bool serves(const mapping *m, const json_t *row)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(row, "services"), i, one)
    {
        const char *s = json_string_value(one);
        if (!s) continue;
        if (strcmp(s, "*") == 0 || strcmp(s, m->service) == 0) return true;
        if (strncmp(s, "*.", 2) == 0 && strcmp(s + 2, m->action) == 0) return true;
    }
    return false;
}

/* The call has the row's values and no others. */
static bool takes_all(const mapping *m, const json_t *row)
{
    const char *key;
    json_t *v;
    const json_t *takes = json_object_get(row, "takes"), *only = json_object_get(row, "only");
    size_t n = 0;
    if (json_is_true(json_object_get(row, "values"))) return true;
    json_object_foreach((json_t *)(uintptr_t)m->given, key, v)
    {
        if (strcmp(key, "target") == 0) continue;
        n++;
        if (!function_table_has(takes, key)) return false;
    }
    if (n != json_array_size(takes)) return false;
    json_object_foreach((json_t *)(uintptr_t)only, key, v)
    {
        const char *value = json_string_value(json_object_get(m->given, key));
        if (!value || !function_table_has(v, value)) return false;
    }
    return true;
}

static const offered_function *function_of(mapping *m, const json_t *row)
{
    json_t *name = map_expand(m, json_object_get(row, "function"));
    const char *s = json_string_value(name);
    const offered_function *f = s ? chat_case_function(m->k, s) : NULL;
    json_decref(name);
    return f;
}

static int map_put(mapping *m, device_call *ret, const offered_function *f, const json_t *args)
{
    buf text = {0};
    json_put_digits(&text, args, 15);
    ret->name = f->name;
    ret->arguments = text.failed ? NULL : arena_strdup(m->a, buf_text(&text));
    buf_done(&text);
    return ret->arguments ? 0 : SHOAL_ENOMEM;
}

/* Under its name, then its others: the application may know it by one of them. */
static int map_row(mapping *m, device_call *ret, bool *ret_fits, const json_t *row)
{
    const offered_function *f = serves(m, row) && takes_all(m, row) ? function_of(m, row) : NULL;
    int rc = 0;
    for (size_t i = 0; f && f->parameters && i <= m->d->n_aliases && !*ret_fits && !rc; i++) {
        m->name = i ? m->d->aliases[i - 1] : m->d->name;
        json_t *args = map_arguments(m, f, row);
        *ret_fits = args != NULL;
        if (args) rc = map_put(m, ret, f, args);
        json_decref(args);
    }
    m->name = m->d->name;
    return rc;
}

static bool shares_name(const device *list, size_t n, const device *d)
{
    for (size_t i = 0; i < n; i++)
        if (&list[i] != d && strcasecmp(list[i].name, d->name) == 0) return true;
    return false;
}

/* Of "cover.hall" cover; as functions call it. */
static const char *domain_of(mapping *m)
{
    const char *own = arena_strndup(m->a, m->d->id, strcspn(m->d->id, "."));
    const char *other = own ? json_string_value(json_object_get(m->t->domains, own)) : NULL;
    m->nomem |= !own;
    return other ? other : own;
}

int function_table_map(device_call *ret, bool *ret_fits, const function_table *t, const chat_case *k,
                       const device *list, size_t n, const device_call *call, arena *a)
{
    json_t *given = NULL;
    const char *dot = strchr(call->name, '.');
    mapping m = {.t = t, .k = k, .service = call->name, .action = dot ? dot + 1 : call->name, .a = a};
    int rc = json_parse(&given, call->arguments, strlen(call->arguments), "arguments", NULL);
    const char *target = json_string_value(json_object_get(given, "target"));
    *ret_fits = false;
    for (size_t i = 0; target && i < n && !m.d; i++)
        if (strcmp(list[i].id, target) == 0) m.d = &list[i];
    static const device none = {.id = "", .name = "", .state = ""};
    bool own = !m.d; /* a function of the pipeline's own, or of no device */
    if (own) m.d = &none;
    m.given = given;
    m.name = m.d->name;
    m.shares_name = !own && shares_name(list, n, m.d);
    m.domain = rc ? NULL : domain_of(&m);
    rc = rc == SHOAL_ENOMEM || m.nomem ? SHOAL_ENOMEM : 0;
    const offered_function *same = own ? chat_case_function(k, call->name) : NULL;
    if (!rc && same && given && same->parameters && map_obeys(&m, same->parameters, given)) {
        *ret_fits = true;
        rc = map_put(&m, ret, same, given);
    }
    size_t i;
    const json_t *row;
    json_array_foreach(t->rows, i, row) if (!rc && !own && !*ret_fits) rc = map_row(&m, ret, ret_fits, row);
    json_decref(given);
    return rc || m.nomem ? SHOAL_ENOMEM : 0;
}

/* ---- what is offered ------------------------------------------------------------------------------ */

static bool is_offered(const function_table *t, const chat_case *k, const device *d, const char *action,
                       arena *a, bool *ret_nomem)
{
    size_t i;
    const json_t *row;
    bool offered = false;
    mapping m = {.t = t, .k = k, .d = d, .action = action, .name = d->name, .a = a};
    m.domain = domain_of(&m);
    m.service = arena_printf(a, "%.*s.%s", (int)strcspn(d->id, "."), d->id, action);
    m.nomem |= !m.service || !m.domain;
    json_array_foreach(t->rows, i, row) offered =
        offered || (!m.nomem && serves(&m, row) && function_of(&m, row));
    *ret_nomem |= m.nomem;
    return offered;
}

int function_table_add_services(device *list, size_t n, const function_table *t, const chat_case *k, arena *a)
{
    size_t n_all = json_array_size(t->services);
    bool nomem = false;
    for (size_t i = 0; i < n && n_all && k->n_functions && !nomem; i++) {
        const char **has = arena_alloc(a, n_all * sizeof *has);
        if (!has) return SHOAL_ENOMEM;
        list[i].services = has;
        for (size_t j = 0; j < n_all; j++) {
            const char *service = json_string_value(json_array_get(t->services, j));
            if (is_offered(t, k, &list[i], service ? service : "", a, &nomem))
                has[list[i].n_services++] = service;
        }
    }
    return nomem ? SHOAL_ENOMEM : 0;
}
