/* filter.c: see filter.h. */
#include "retrieve/filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *sql;
} COMPARISONS[] = {
    {"eq", "="}, {"ne", "IS NOT"}, {"gt", ">"},  {"gte", ">="},
    {"lt", "<"}, {"lte", "<="},    {"in", "IN"}, {"nin", "NOT IN"},
};

bool filter_is_inexact(const json_t *v)
{
    return json_is_real(v) && fabs(json_real_value(v)) >= 0x1p63;
}

void filter_done(filter *f)
{
    for (size_t i = 0; i < f->n; i++) free(f->v[i].text);
    buf_done(&f->sql);
    f->n = 0;
}

/* The parameter's number goes into the statement. */
static int add_value(filter *f, filter_value v, shoal_err *err)
{
    if (f->n == FILTER_VALUES_MAX) {
        free(v.text);
        return err_set(err, SHOAL_ELIMIT, "filters: %d keys and values are the most a filter may have",
                       FILTER_VALUES_MAX);
    }
    f->v[f->n] = v;
    buf_printf(&f->sql, "?%zu", FILTER_FIRST_PARAMETER + f->n++);
    return 0;
}

static int add_text(filter *f, const char *s, size_t n, shoal_err *err)
{
    char *copy = strndup(s, n);
    if (!copy) return err_nomem(err);
    return add_value(f, (filter_value){.kind = FILTER_TEXT, .text = copy}, err);
}

static int add_json(filter *f, const char *key, const json_t *v, shoal_err *err)
{
    if (json_is_string(v)) return add_text(f, json_string_value(v), json_string_length(v), err);
    if (json_is_integer(v))
        return add_value(f, (filter_value){.kind = FILTER_INT, .i = json_integer_value(v)}, err);
    if (json_is_boolean(v))
        return add_value(f, (filter_value){.kind = FILTER_INT, .i = json_is_true(v)}, err);
    if (filter_is_inexact(v))
        return err_set(
            err, SHOAL_EINVALID,
            "filters: the value of '%s' is beyond 2^63, where numbers are not exact: write it as a text",
            key);
    if (json_is_real(v))
        return add_value(f, (filter_value){.kind = FILTER_REAL, .f = json_real_value(v)}, err);
    return err_set(err, SHOAL_EINVALID, "filters: the value of '%s' must be a text, a number or a boolean",
                   key);
}

/* What is compared: the document's source, or a key of its metadata. */
static int add_key(filter *f, const char *key, shoal_err *err)
{
    size_t n = strlen(key);
    if (n == 0 || n > FILTER_KEY_MAX || strpbrk(key, "\"\\"))
        return err_set(err, SHOAL_EINVALID, "filters: a key has 1 to %d bytes, without quotes or backslashes",
                       FILTER_KEY_MAX);
    if (strcmp(key, "source") == 0) return buf_puts(&f->sql, "d.source ");
    char path[FILTER_KEY_MAX + 8];
    int len = snprintf(path, sizeof path, "$.\"%s\"", key);
    buf_puts(&f->sql, "json_extract(d.metadata,");
    int rc = add_text(f, path, (size_t)len, err);
    buf_puts(&f->sql, ") ");
    return rc;
}

static int add_list(filter *f, const char *key, const json_t *v, shoal_err *err)
{
    size_t i;
    const json_t *one;
    int rc = 0;
    if (!json_is_array(v) || json_array_size(v) == 0)
        return err_set(err, SHOAL_EINVALID, "filters: the value of '%s' must be a list that is not empty",
                       key);
    buf_putc(&f->sql, '(');
    json_array_foreach(v, i, one)
    {
        if (i) buf_putc(&f->sql, ',');
        if (rc == 0) rc = add_json(f, key, one, err);
    }
    buf_putc(&f->sql, ')');
    return rc;
}

static int add_comparison(filter *f, const char *type, const json_t *o, shoal_err *err)
{
    const char *key = json_string_value(json_object_get(o, "key"));
    const json_t *value = json_object_get(o, "value");
    if (!key || !value)
        return err_set(err, SHOAL_EINVALID, "filters: '%s' needs \"key\" (a text) and \"value\"", type);
    for (size_t i = 0; i < sizeof COMPARISONS / sizeof *COMPARISONS; i++) {
        if (strcmp(COMPARISONS[i].name, type) != 0) continue;
        bool list = strstr(COMPARISONS[i].sql, "IN");
        bool lacks = strcmp(type, "nin") == 0; /* NULL NOT IN (...) is NULL */
        buf_puts(&f->sql, lacks ? "(ifnull(" : "(");
        int rc = add_key(f, key, err);
        buf_printf(&f->sql, "%s %s ", lacks ? ",x'')" : "", COMPARISONS[i].sql);
        if (rc == 0) rc = list ? add_list(f, key, value, err) : add_json(f, key, value, err);
        buf_putc(&f->sql, ')');
        return rc;
    }
    return err_set(err, SHOAL_EINVALID,
                   "filters: '%.40s' is none of eq, ne, gt, gte, lt, lte, in, nin, and, or", type);
}

static int add_node(filter *f, const json_t *o, int depth, shoal_err *err);

static int add_compound(filter *f, bool any, const json_t *list, int depth, shoal_err *err)
{
    size_t i;
    const json_t *one;
    int rc = 0;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return err_set(err, SHOAL_EINVALID, "filters: \"filters\" must be a list that is not empty");
    buf_putc(&f->sql, '(');
    json_array_foreach(list, i, one)
    {
        if (i) buf_puts(&f->sql, any ? " OR " : " AND ");
        if (rc == 0) rc = add_node(f, one, depth + 1, err);
    }
    buf_putc(&f->sql, ')');
    return rc;
}

/* {"room": "kitchen", ...} */
static int add_short(filter *f, const json_t *o, shoal_err *err)
{
    void *at = json_object_iter((json_t *)o);
    int rc = 0;
    buf_putc(&f->sql, '(');
    for (size_t i = 0; rc == 0 && at; at = json_object_iter_next((json_t *)o, at), i++) {
        const char *key = json_object_iter_key(at);
        if (i) buf_puts(&f->sql, " AND ");
        rc = add_key(f, key, err);
        buf_puts(&f->sql, "= ");
        if (rc == 0) rc = add_json(f, key, json_object_iter_value(at), err);
    }
    buf_putc(&f->sql, ')');
    return rc;
}

static int add_node(filter *f, const json_t *o, int depth, shoal_err *err)
{
    if (depth > FILTER_DEPTH_MAX)
        return err_set(err, SHOAL_ELIMIT, "filters are more than %d deep", FILTER_DEPTH_MAX);
    if (!json_is_object(o))
        return err_set(err, SHOAL_EINVALID, "filters must be an object, and so must each of \"filters\"");
    const char *type = json_string_value(json_object_get(o, "type"));
    bool compound = type && json_object_get(o, "filters");
    if (compound && strcmp(type, "and") != 0 && strcmp(type, "or") != 0)
        return err_set(err, SHOAL_EINVALID, "filters: \"filters\" goes with \"type\" and or or, not '%.40s'",
                       type);
    if (compound) return add_compound(f, *type == 'o', json_object_get(o, "filters"), depth, err);
    if (type && json_object_get(o, "key")) return add_comparison(f, type, o, err);
    if (json_object_size(o) == 0)
        return err_set(err, SHOAL_EINVALID, "filters must not be empty; leave them out instead");
    return add_short(f, o, err);
}

int filter_parse(filter *ret, const json_t *o, shoal_err *err)
{
    if (!o || json_is_null(o)) return 0;
    buf_puts(&ret->sql, " AND ");
    int rc = add_node(ret, o, 0, err);
    return rc == 0 && ret->sql.failed ? err_nomem(err) : rc;
}
