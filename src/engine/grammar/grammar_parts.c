/* grammar_parts.c: following references and choices. */
#include "grammar/grammar_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/json_refs.h"

#define CASES_MAX 4096
#define TRIES_MAX 20000

/* ---- errors ----------------------------------------------------------------------------------- */

static void put_escaped(buf *out, const char *key)
{
    for (; *key; key++) {
        if (*key == '~' || *key == '/')
            buf_puts(out, *key == '~' ? "~0" : "~1");
        else
            buf_putc(out, *key);
    }
}

/* Append the JSON pointer from `in` to `wanted`; false when it is not within. */
static bool find_path(const json_t *in, const json_t *wanted, buf *path)
{
    if (in == wanted) return true;
    size_t len = path->len, i;
    const char *key;
    json_t *sub;
    json_object_foreach((json_t *)in, key, sub)
    {
        path->len = len;
        buf_putc(path, '/');
        put_escaped(path, key);
        if (find_path(sub, wanted, path)) return true;
    }
    json_array_foreach(in, i, sub)
    {
        path->len = len;
        buf_printf(path, "/%zu", i);
        if (find_path(sub, wanted, path)) return true;
    }
    path->len = len;
    return false;
}

int schema_fail(schema_ctx *c, int code, const json_t *at, const char *key, const char *fmt, ...)
{
    if (c->rc) return c->rc;
    buf path = {0};
    char what[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    buf_putc(&path, '#');
    if (at) find_path(c->root, at, &path);
    if (key) {
        buf_putc(&path, '/');
        put_escaped(&path, key);
    }
    buf_append(&path, "", 1);
    c->rc = path.failed ? err_nomem(c->err)
                        : err_set(c->err, code, "%s: at \"%.200s\": %s", c->what, path.data, what);
    buf_done(&path);
    return c->rc;
}

bool schema_works(schema_ctx *c, uint64_t work)
{
    if (c->rc) return false;
    if (c->work > work) {
        c->work -= work;
        return true;
    }
    c->work = 0;
    schema_fail(c, SHOAL_ELIMIT, NULL, NULL, "the schema is too complex to be enforced");
    return false;
}

/* ---- references ------------------------------------------------------------------------------- */

const json_t *schema_resolve(schema_ctx *c, const json_t *schema)
{
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    const json_t *to = NULL;
    if (ref) to = json_refs_follow(c->root, ref);
    if (!to) schema_fail(c, SHOAL_EINVALID, schema, "$ref", "leads nowhere within the schema");
    return to;
}

/* ---- keywords that are refused ---------------------------------------------------------------- */

bool schema_admits_nothing(const json_t *schema)
{
    const json_t *not = json_object_get(schema, "not");
    return json_is_false(schema) || json_is_true(not ) ||
           (json_is_object(not ) && json_object_size(not ) == 0);
}

static void check_keywords(schema_ctx *c, const json_t *schema)
{
    static const char *const refused[] = {
        "$dynamicRef",
        "$recursiveRef",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (json_object_get(schema, refused[i]))
            schema_fail(c, SHOAL_EUNSUPPORTED, schema, refused[i], "\"%s\" is not supported", refused[i]);
    }
}

/* ---- "unevaluated..." ------------------------------------------------------------------------- */

static const char *unevaluated_key(const json_t *schema)
{
    static const char *const KEYS[] = {"unevaluatedProperties", "unevaluatedItems"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_object_get(schema, KEYS[i]);
        if (v && !json_is_true(v) && !(json_is_object(v) && json_object_size(v) == 0)) return KEYS[i];
    }
    return NULL;
}

/* It says nothing about members beside what it refers to. */
static bool only_refers(const json_t *schema)
{
    static const char *const KEYS[] = {"properties",
                                       "patternProperties",
                                       "additionalProperties",
                                       "items",
                                       "prefixItems",
                                       "additionalItems",
                                       "contains",
                                       "allOf",
                                       "anyOf",
                                       "oneOf",
                                       "not",
                                       "if",
                                       "dependencies",
                                       "dependentSchemas"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (json_object_get(schema, KEYS[i])) return false;
    return true;
}

/* All parts are one set, so what one of them leaves to "unevaluated..." must be what all leave: it stands
 * alone, or everything else is below it. What "not" and conditions are turned into evaluates nothing,
 * which parts do not tell. */
static void check_unevaluated(schema_ctx *c, const parts *raw, const parts *all)
{
    const json_t *who = NULL;
    bool is_above = false, has_made = false;
    for (size_t i = 0; i < all->n; i++) {
        has_made |= json_object_get(all->of[i], SCHEMA_MADE) != NULL;
        if (!unevaluated_key(all->of[i])) continue;
        is_above |= who != NULL;
        who = all->of[i];
    }
    if (!who) return;
    const json_t *top = who;
    for (size_t i = 0; i < raw->n; i++) {
        const json_t *at = raw->of[i];
        for (int steps = 0; at != who && only_refers(at) && json_object_get(at, "$ref") && steps < PARTS_MAX;
             steps++)
            if (!(at = schema_resolve(c, at))) return;
        is_above |= at != who && !only_refers(at);
        top = at == who ? NULL : top;
    }
    if (is_above || has_made || top)
        schema_fail(c, SHOAL_EUNSUPPORTED, who, unevaluated_key(who),
                    "\"%s\" is not supported beside other schemas and conditions", unevaluated_key(who));
}

/* ---- parts ------------------------------------------------------------------------------------ */

int parts_add(schema_ctx *c, parts *p, const json_t *schema)
{
    if (json_is_true(schema) || c->rc) return c->rc;
    for (size_t i = 0; i < p->n; i++)
        if (p->of[i] == schema) return 0;
    if (p->n == PARTS_MAX)
        return schema_fail(c, SHOAL_ELIMIT, schema, NULL, "more than %d schemas have to hold at once",
                           PARTS_MAX);
    p->of[p->n++] = schema;
    return 0;
}

/* How we got to a schema: what leads back to something above it says nothing. */
typedef struct chain {
    const json_t *schema;
    const struct chain *up;
} chain;

typedef struct draft {
    parts_case one;
    struct {
        const json_t *list;
        const chain *way;
        bool only;
    } open[CHOICES_MAX];
    size_t n_open;
    bool never;
} draft;

typedef struct cases {
    schema_ctx *c;
    const parts *raw;
    parts_fn fn;
    void *user;
    parts_apart_fn are_apart;
    size_t n_cases, n_tries;
} cases;

static void grammar_parts_gather(schema_ctx *c, draft *d, const json_t *schema, const chain *way);

static void gather_all(schema_ctx *c, draft *d, const json_t *schema, const chain *way)
{
    const json_t *list = json_object_get(schema, "allOf");
    if (list && (!json_is_array(list) || json_array_size(list) == 0))
        schema_fail(c, SHOAL_EINVALID, schema, "allOf", "must be a non-empty array");
    for (size_t i = 0; i < json_array_size(list); i++)
        grammar_parts_gather(c, d, json_array_get(list, i), way);
}

static void gather_choice(schema_ctx *c, draft *d, const json_t *schema, const chain *way, const char *key)
{
    const json_t *list = json_object_get(schema, key);
    if (!list) return;
    if (!json_is_array(list) || json_array_size(list) == 0)
        schema_fail(c, SHOAL_EINVALID, schema, key, "must be a non-empty array");
    else if (d->n_open == CHOICES_MAX)
        schema_fail(c, SHOAL_ELIMIT, schema, key, "more than %d choices have to hold at once", CHOICES_MAX);
    if (c->rc) return;
    d->open[d->n_open].list = list;
    d->open[d->n_open].way = way;
    d->open[d->n_open++].only = strcmp(key, "oneOf") == 0;
}

static void grammar_parts_gather(schema_ctx *c, draft *d, const json_t *schema, const chain *way)
{
    if (c->rc || json_is_true(schema)) return;
    if (schema_admits_nothing(schema)) {
        d->never = true;
        return;
    }
    if (!json_is_object(schema)) {
        schema_fail(c, SHOAL_EINVALID, way ? way->schema : NULL, NULL,
                    "a schema must be an object, true or false");
        return;
    }
    int depth = 0;
    for (const chain *up = way; up; up = up->up, depth++)
        if (up->schema == schema || depth > PARTS_MAX) {
            schema_fail(c, SHOAL_EINVALID, schema, NULL,
                        "the schema leads back to itself without saying anything");
            return;
        }
    for (size_t i = 0; i < d->one.parts.n; i++)
        if (d->one.parts.of[i] == schema) return;
    check_keywords(c, schema);
    chain *here = arena_alloc(c->memory, sizeof *here);
    if (!here && !c->rc) c->rc = err_nomem(c->err);
    if (!schema_works(c, 20) || parts_add(c, &d->one.parts, schema)) return;
    *here = (chain){.schema = schema, .up = way};
    if (json_object_get(schema, "$ref")) {
        const json_t *to = schema_resolve(c, schema);
        if (to) grammar_parts_gather(c, d, to, here);
    }
    gather_all(c, d, schema, here);
    gather_choice(c, d, schema, here, "anyOf");
    gather_choice(c, d, schema, here, "oneOf");
    const json_t *conditions = schema_conditions(c, schema);
    if (conditions) grammar_parts_gather(c, d, conditions, here);
}

/* "oneOf" has branch i taken: what might satisfy another must not. Where that cannot be said, the case
 * tells. */
static void exclude_others(cases *k, draft *d, const json_t *list, size_t i, const chain *way)
{
    schema_ctx *c = k->c;
    bool is_open = false;
    for (size_t other = 0; other < json_array_size(list) && c->rc == 0 && !d->never; other++) {
        const json_t *schema = json_array_get(list, other);
        if (other == i || k->are_apart(c, &d->one.parts, schema)) continue;
        const json_t *negation = schema_negation(c, schema);
        if (negation)
            grammar_parts_gather(c, d, negation, way);
        else
            is_open = true;
    }
    if (!is_open || d->one.n_only == CHOICES_MAX) return;
    d->one.only[d->one.n_only].list = list;
    d->one.only[d->one.n_only++].index = i;
}

static void grammar_parts_choose(cases *k, const draft *d, size_t at)
{
    schema_ctx *c = k->c;
    if (c->rc || d->never) return;
    if (at == d->n_open) {
        if (++k->n_cases > CASES_MAX)
            schema_fail(c, SHOAL_ELIMIT, d->one.parts.of[0], NULL, "more than %d alternatives", CASES_MAX);
        check_unevaluated(c, k->raw, &d->one.parts);
        if (c->rc == 0) k->fn(k->user, &d->one);
        return;
    }
    const json_t *list = d->open[at].list;
    for (size_t i = 0; i < json_array_size(list) && c->rc == 0; i++) {
        if (++k->n_tries > TRIES_MAX) {
            schema_fail(c, SHOAL_ELIMIT, d->one.parts.of[0], NULL,
                        "its choices can be made in too many ways");
            return;
        }
        if (!schema_works(c, 200)) return;
        draft next = *d;
        grammar_parts_gather(c, &next, json_array_get(list, i), d->open[at].way);
        if (d->open[at].only && k->are_apart) exclude_others(k, &next, list, i, d->open[at].way);
        grammar_parts_choose(k, &next, at + 1);
    }
}

int parts_cases(schema_ctx *c, const parts *raw, parts_fn fn, void *user)
{
    return parts_exact_cases(c, raw, NULL, fn, user);
}

int parts_exact_cases(schema_ctx *c, const parts *raw, parts_apart_fn are_apart, parts_fn fn, void *user)
{
    cases k = {.c = c, .raw = raw, .fn = fn, .user = user, .are_apart = are_apart};
    draft d = {0};
    for (size_t i = 0; i < raw->n && c->rc == 0; i++) grammar_parts_gather(c, &d, raw->of[i], NULL);
    grammar_parts_choose(&k, &d, 0);
    return c->rc;
}

bool parts_lack(const parts *p, const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < n_keys; k++)
            if (json_object_get(p->of[i], keys[k])) return false;
    return true;
}
