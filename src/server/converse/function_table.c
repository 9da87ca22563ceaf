/* function_table.c: the table's file, and its sentences; see function_table.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "converse/function_table_impl.h"
#include "json/json.h"
#include "yaml/yaml.h"

enum { FILE_MAX_BYTES = 1 << 20 };

/* What holds without a file. */
static const char PLAIN[] =
    "functions:\n"
    "  - {services: ['*'], function: '{service}', arguments: {target: '{id}'}, values: true}\n"
    "  - {services: ['*'], function: '{domain}_{action}', arguments: {target: '{id}'}, values: true}\n"
    "  - {services: ['*'], function: '{action}', arguments: {target: '{id}'}, values: true}\n"
    "devices: {arguments: [target], words: {}}\n"
    "states: {functions: [], verdicts: []}\n"
    "results:\n"
    "  failed: {error: '*', success: false, ok: false}\n"
    "  done: {success: true, ok: true}\n"
    "  empty: []\n"
    "  why: [error.message, error, message]\n"
    "  failed_words: [error, failed]\n"
    "  done_words: [ok, done, success]\n"
    "replies:\n"
    "  call: '{service} of {name}'\n"
    "  no_functions: 'This chat offers me no functions, so nothing was done. What you mean is {calls}.'\n"
    "  no_fit: 'No function that this chat offers does {calls}. Nothing was done.'\n"
    "  not_allowed: 'Functions may not be called for this message, so nothing was done. What you mean is "
    "{calls}.'\n"
    "  failed: '{function} failed: {why}.'\n"
    "  no_result: \"I don't know whether {function} did it: no result came.\"\n"
    "  said: '{function} answered: {why}'\n"
    "  done: 'Done: {functions}.'\n";

/* ---- the form of the file ------------------------------------------------------------------------ */

typedef struct form {
    const yaml_doc *d;
    shoal_err *err;
    int rc;
} form;

static const yaml_node *form_need(form *f, const yaml_node *map, const char *key, yaml_kind kind,
                                  bool required)
{
    const yaml_node *n = f->rc ? NULL : yaml_get(map, key);
    if (f->rc || (!n && !required)) return NULL;
    if (!n)
        f->rc = yaml_fail(f->d, map, f->err, "'%s' is missing", key);
    else if (n->kind != kind)
        f->rc = yaml_fail(f->d, n, f->err, "'%s' must be %s", key, yaml_kind_name(kind));
    return f->rc ? NULL : n;
}

static void form_texts(form *f, const yaml_node *list)
{
    for (size_t i = 0; list && i < list->n && !f->rc; i++)
        if (list->items[i]->kind != YAML_SCALAR || !list->items[i]->len)
            f->rc = yaml_fail(f->d, list->items[i], f->err, "a text is expected here");
}

static void form_keys(form *f, const yaml_node *map, const char *const *keys)
{
    for (size_t i = 0; map && i < map->n && !f->rc; i++) {
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], map->keys[i]->text) != 0) k++;
        if (!keys[k])
            f->rc = yaml_fail(f->d, map->keys[i], f->err, "'%s' is not known here", map->keys[i]->text);
    }
}

static void form_row(form *f, const yaml_node *row)
{
    static const char *const KEYS[] = {"services", "takes",  "only",  "function", "arguments",
                                       "perhaps",  "shared", "parts", "values",   NULL};
    if (!f->rc && row->kind != YAML_MAP) f->rc = yaml_fail(f->d, row, f->err, "a row must be a map");
    form_keys(f, row, KEYS);
    form_texts(f, form_need(f, row, "services", YAML_LIST, true));
    form_texts(f, form_need(f, row, "takes", YAML_LIST, false));
    const yaml_node *only = form_need(f, row, "only", YAML_MAP, false);
    for (size_t i = 0; only && i < only->n && !f->rc; i++)
        form_texts(f, form_need(f, only, only->keys[i]->text, YAML_LIST, true));
    form_need(f, row, "function", YAML_SCALAR, true);
    form_need(f, row, "arguments", YAML_MAP, true);
    form_need(f, row, "perhaps", YAML_MAP, false);
    form_need(f, row, "shared", YAML_MAP, false);
    form_need(f, row, "parts", YAML_MAP, false);
    const yaml_node *values = form_need(f, row, "values", YAML_SCALAR, false);
    bool all;
    if (values && !f->rc) f->rc = yaml_bool(f->d, values, "values", &all, f->err);
}

/* {"°F": ["°F", fahrenheit]} */
static void form_text_lists(form *f, const yaml_node *map)
{
    for (size_t i = 0; map && i < map->n && !f->rc; i++)
        form_texts(f, form_need(f, map, map->keys[i]->text, YAML_LIST, true));
}

static void form_lists(form *f, const yaml_node *root, const char *key, const char *const *keys)
{
    const yaml_node *map = form_need(f, root, key, YAML_MAP, true);
    form_keys(f, map, keys);
    for (size_t i = 0; map && keys[i]; i++) {
        bool offered = strcmp(keys[i], "offered") == 0;
        bool is_map = offered || strcmp(keys[i], "words") == 0 || strcmp(keys[i], "failed") == 0 ||
                      strcmp(keys[i], "done") == 0;
        bool needed = !offered && strcmp(keys[i], "empty") != 0;
        const yaml_node *n = form_need(f, map, keys[i], is_map ? YAML_MAP : YAML_LIST, needed);
        if (n && !is_map) form_texts(f, n);
        if (n && strcmp(keys[i], "words") == 0) form_text_lists(f, n);
    }
}

static void form_units(form *f, const yaml_node *units)
{
    static const char *const KEYS[] = {"domains", "named", "locales", NULL};
    if (!units) return;
    form_keys(f, units, KEYS);
    form_texts(f, form_need(f, units, "domains", YAML_LIST, true));
    form_text_lists(f, form_need(f, units, "named", YAML_MAP, true));
    form_text_lists(f, form_need(f, units, "locales", YAML_MAP, false));
}

static void check_form(form *f, const yaml_node *root)
{
    static const char *const KEYS[] = {"functions", "services", "domains", "devices", "units",
                                       "states",    "results",  "replies", NULL};
    static const char *const DEVICES[] = {"arguments", "words", "offered", NULL};
    static const char *const STATES[] = {"functions", "verdicts", NULL};
    static const char *const RESULTS[] = {"failed",       "done",       "empty", "why",
                                          "failed_words", "done_words", NULL};
    static const char *const REPLIES[] = {
#define REPLY_NAME(name, fields) #name,
        FUNCTION_REPLIES(REPLY_NAME)
#undef REPLY_NAME
            NULL};
    if (root->kind != YAML_MAP) f->rc = yaml_fail(f->d, root, f->err, "the file must be a map");
    form_keys(f, root, KEYS);
    const yaml_node *rows = form_need(f, root, "functions", YAML_LIST, true);
    for (size_t i = 0; rows && i < rows->n && !f->rc; i++) form_row(f, rows->items[i]);
    form_texts(f, form_need(f, root, "services", YAML_LIST, false));
    const yaml_node *domains = form_need(f, root, "domains", YAML_MAP, false);
    for (size_t i = 0; domains && i < domains->n; i++)
        form_need(f, domains, domains->keys[i]->text, YAML_SCALAR, true);
    form_lists(f, root, "devices", DEVICES);
    form_units(f, form_need(f, root, "units", YAML_MAP, false));
    form_lists(f, root, "states", STATES);
    form_lists(f, root, "results", RESULTS);
    const yaml_node *replies = form_need(f, root, "replies", YAML_MAP, true);
    form_keys(f, replies, REPLIES);
    for (size_t i = 0; replies && REPLIES[i]; i++) form_need(f, replies, REPLIES[i], YAML_SCALAR, true);
}

/* ---- loading ------------------------------------------------------------------------------------- */

static const json_t *function_table_part(const function_table *t, const char *map, const char *key)
{
    return json_object_get(json_object_get(t->root, map), key);
}

static void take_parts(function_table *t)
{
    static const char *const REPLIES[] = {
#define REPLY_NAME(name, fields) #name,
        FUNCTION_REPLIES(REPLY_NAME)
#undef REPLY_NAME
    };
    t->rows = json_object_get(t->root, "functions");
    t->services = json_object_get(t->root, "services");
    t->domains = json_object_get(t->root, "domains");
    t->offered = function_table_part(t, "devices", "offered");
    t->unit_domains = function_table_part(t, "units", "domains");
    t->unit_names = function_table_part(t, "units", "named");
    t->unit_locales = function_table_part(t, "units", "locales");
    t->parameters = function_table_part(t, "devices", "arguments");
    t->words = function_table_part(t, "devices", "words");
    t->state_functions = function_table_part(t, "states", "functions");
    t->verdicts = function_table_part(t, "states", "verdicts");
    t->failed = function_table_part(t, "results", "failed");
    t->done = function_table_part(t, "results", "done");
    t->empty = function_table_part(t, "results", "empty");
    t->why = function_table_part(t, "results", "why");
    t->failed_words = function_table_part(t, "results", "failed_words");
    t->done_words = function_table_part(t, "results", "done_words");
    for (size_t i = 0; i < N_REPLIES; i++) {
        const char *s = json_string_value(function_table_part(t, "replies", REPLIES[i]));
        t->replies[i] = s ? s : ""; /* a number says nothing */
    }
}

int function_table_parse(function_table **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    yaml_doc *d = NULL;
    buf json = {0};
    int rc = yaml_parse(&d, text, len, what, err);
    if (rc) return rc;
    form f = {.d = d, .err = err};
    check_form(&f, yaml_root(d));
    rc = f.rc;
    function_table *t = rc ? NULL : calloc(1, sizeof *t);
    if (!rc && (!t || yaml_put_json(&json, yaml_root(d)) || json.failed)) rc = err_nomem(err);
    if (!rc) rc = json_parse(&t->root, json.data, json.len, what, err);
    buf_done(&json);
    yaml_doc_free(d);
    if (rc) {
        function_table_free(t);
        return rc;
    }
    take_parts(t);
    *ret = t;
    return 0;
}

int function_table_load(function_table **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    if (!path) return function_table_parse(ret, PLAIN, sizeof PLAIN - 1, "functions", err);
    int rc = file_read(&text, path, FILE_MAX_BYTES, err);
    if (!rc) rc = function_table_parse(ret, buf_text(&text), text.len, path, err);
    buf_done(&text);
    return rc;
}

void function_table_free(function_table *t)
{
    if (!t) return;
    json_decref(t->root);
    free(t);
}

bool function_table_has(const json_t *list, const char *s)
{
    size_t i;
    const json_t *v;
    json_array_foreach(list, i, v)
    {
        const char *one = json_string_value(v);
        if (one && strcmp(one, s) == 0) return true;
    }
    return false;
}

bool function_table_tells_states(const function_table *t, const char *function)
{
    return function_table_has(t->state_functions, chat_case_unscoped(function));
}

bool function_table_offers_states(const function_table *t, const chat_case *k)
{
    for (size_t i = 0; i < k->n_functions; i++)
        if (function_table_tells_states(t, k->functions[i].name)) return true;
    return false;
}

bool function_table_wants_states(const function_table *t, const char *verdict)
{
    return function_table_has(t->verdicts, verdict);
}

/* ---- sentences ----------------------------------------------------------------------------------- */

static const char *field_of(va_list fields, const char *name, size_t n)
{
    const char *key, *value = NULL;
    va_list at;
    va_copy(at, fields);
    while ((key = va_arg(at, const char *))) {
        const char *v = va_arg(at, const char *);
        if (strlen(key) == n && memcmp(key, name, n) == 0) value = v;
    }
    va_end(at);
    return value;
}

const char *function_table_say(const function_table *t, function_reply r, arena *a, ...)
{
    buf out = {0};
    va_list fields;
    va_start(fields, a);
    for (const char *p = t->replies[r]; *p; p++) {
        size_t n = *p == '{' ? strcspn(p + 1, "}") : 0;
        const char *value = n && p[n + 1] ? field_of(fields, p + 1, n) : NULL;
        if (value) {
            buf_puts(&out, value);
            p += n + 1;
        } else {
            buf_putc(&out, *p);
        }
    }
    va_end(fields);
    const char *kept = out.failed ? NULL : arena_strdup(a, buf_text(&out));
    buf_done(&out);
    return kept;
}
