/* grammar_facts.c: adding up keywords, and telling alternatives apart by them. */
#include "grammar/grammar_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/automaton/grammar_pattern.h"

#define COUNT_MAX   20000
#define FORMAT_WORK 1000000u
#define LENGTH_WORK 1500000u /* of lengths beside a format */
#define APART_MAX   3        /* levels of required properties that are looked into */

/* ---- types and values ------------------------------------------------------------------------- */

static unsigned type_of_name(schema_ctx *c, const json_t *schema, const json_t *name)
{
    static const struct {
        const char *name;
        unsigned type;
    } names[] = {{"null", TYPE_NULL},     {"boolean", TYPE_BOOLEAN}, {"integer", TYPE_INTEGER},
                 {"number", TYPE_NUMBER}, {"string", TYPE_STRING},   {"array", TYPE_ARRAY},
                 {"object", TYPE_OBJECT}};
    const char *s = json_string_value(name);
    for (size_t i = 0; s && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, s) == 0) return names[i].type;
    schema_fail(c, SHOAL_EINVALID, schema, "type", "unknown \"type\"%s%.40s", s ? " " : "", s ? s : "");
    return 0;
}

unsigned facts_types_of(schema_ctx *c, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *one;
    unsigned types = 0;
    size_t i;
    if (!type) return TYPE_ALL;
    if (!json_is_array(type)) return type_of_name(c, schema, type);
    json_array_foreach(type, i, one)
    {
        types |= type_of_name(c, schema, one);
    }
    if (types == 0) schema_fail(c, SHOAL_EINVALID, schema, "type", "\"type\" must not be empty");
    return types;
}

static unsigned types_implied(const json_t *schema)
{
    static const struct {
        const char *key;
        unsigned type;
    } keys[] = {{"properties", TYPE_OBJECT},
                {"required", TYPE_OBJECT},
                {"additionalProperties", TYPE_OBJECT},
                {"patternProperties", TYPE_OBJECT},
                {"minProperties", TYPE_OBJECT},
                {"maxProperties", TYPE_OBJECT},
                {"propertyNames", TYPE_OBJECT},
                {"unevaluatedProperties", TYPE_OBJECT},
                {"unevaluatedItems", TYPE_ARRAY},
                {"items", TYPE_ARRAY},
                {"prefixItems", TYPE_ARRAY},
                {"minItems", TYPE_ARRAY},
                {"maxItems", TYPE_ARRAY},
                {"uniqueItems", TYPE_ARRAY},
                {"contains", TYPE_ARRAY},
                {"pattern", TYPE_STRING},
                {"format", TYPE_STRING},
                {"minLength", TYPE_STRING},
                {"maxLength", TYPE_STRING},
                {"minimum", TYPE_NUMBER},
                {"maximum", TYPE_NUMBER},
                {"exclusiveMinimum", TYPE_NUMBER},
                {"multipleOf", TYPE_NUMBER},
                {"exclusiveMaximum", TYPE_NUMBER}};
    unsigned types = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(schema, keys[i].key)) types |= keys[i].type;
    return types;
}

unsigned facts_types(schema_ctx *c, const parts *p, bool implied)
{
    unsigned types = TYPE_ALL, hints = 0;
    bool said = false;
    for (size_t i = 0; i < p->n; i++) {
        types &= facts_types_of(c, p->of[i]);
        hints |= types_implied(p->of[i]);
        said |= json_object_get(p->of[i], "type") && !json_object_get(p->of[i], SCHEMA_MADE);
    }
    return implied && !said && hints ? hints & types : types;
}

bool facts_values(schema_ctx *c, const parts *p, const json_t **ret_enum, const json_t **ret_const)
{
    *ret_enum = *ret_const = NULL;
    for (size_t i = 0; i < p->n; i++) {
        if ((*ret_const = json_object_get(p->of[i], "const"))) return true;
    }
    for (size_t i = 0; i < p->n; i++) {
        *ret_enum = json_object_get(p->of[i], "enum");
        if (*ret_enum && (!json_is_array(*ret_enum) || json_array_size(*ret_enum) == 0))
            schema_fail(c, SHOAL_EINVALID, p->of[i], "enum", "\"enum\" must be a non-empty array");
        if (*ret_enum) return true;
    }
    return false;
}

/* ---- counts and bounds ------------------------------------------------------------------------ */

int64_t facts_count_of(schema_ctx *c, const json_t *schema, const char *key, int64_t none)
{
    const json_t *v = json_object_get(schema, key);
    if (!v) return none;
    double d = json_number_value(v);
    if (!json_is_number(v) || d < 0 || d != floor(d)) {
        schema_fail(c, SHOAL_EINVALID, schema, key, "\"%s\" must be an integer that is not negative", key);
        return none;
    }
    return d > 1e15 ? (int64_t)1e15 : (int64_t)d;
}

int64_t facts_count(schema_ctx *c, const parts *p, const char *key, int64_t none)
{
    bool is_min = strncmp(key, "min", 3) == 0;
    int64_t all = -1;
    for (size_t i = 0; i < p->n; i++) {
        int64_t one = facts_count_of(c, p->of[i], key, -1);
        if (one >= 0 && (all < 0 || (is_min ? one > all : one < all))) all = one;
        if (one > COUNT_MAX && is_min)
            schema_fail(c, SHOAL_ELIMIT, p->of[i], key, "\"%s\" is more than %d", key, COUNT_MAX);
    }
    if (all > COUNT_MAX) all = COUNT_MAX; /* a "max...": no reply is longer */
    return all < 0 ? none : all;
}

/* A bound that is the `max` (or the min) of the numbers; `strict`: it is itself out. */
static void add_bound(schema_ctx *c, const json_t *schema, const char *key, bool max, bool strict,
                      number_bounds *b, bool *never)
{
    const json_t *v = json_object_get(schema, key);
    if (!v || json_is_boolean(v)) return; /* draft 4 has "exclusiveMinimum": true */
    decimal d;
    bool huge = false;
    if (!json_is_number(v)) {
        schema_fail(c, SHOAL_EINVALID, schema, key, "\"%s\" must be a number", key);
        return;
    }
    if (!decimal_of(v, &d, &huge)) {
        schema_fail(c, SHOAL_EUNSUPPORTED, schema, key, "\"%s\" has more digits than can be enforced", key);
        return;
    }
    if (huge) {
        *never |= d.negative == max;
        b->far = true;
        return;
    }
    bool *has = max ? &b->has_max : &b->has_min, *out = max ? &b->below_max : &b->above_min;
    decimal *bound = max ? &b->max : &b->min;
    int cmp = *has ? decimal_compare(&d, bound) : 0;
    if (*has && (max ? cmp > 0 : cmp < 0)) return;
    *out = *has && cmp == 0 ? *out || strict : strict;
    *has = true;
    *bound = d;
}

static void add_multiple(schema_ctx *c, const json_t *schema, number_bounds *b)
{
    const json_t *v = json_object_get(schema, "multipleOf");
    int multiple, frac;
    if (!v) return;
    if (!json_is_number(v) || json_number_value(v) <= 0) {
        schema_fail(c, SHOAL_EINVALID, schema, "multipleOf", "\"multipleOf\" must be a number above 0");
    } else if (!number_multiple(v, &multiple, &frac)) {
        schema_fail(c, SHOAL_EUNSUPPORTED, schema, "multipleOf",
                    "\"multipleOf\" is enforced for at most %d, and its decimal fractions", MULTIPLE_MAX);
    } else if (b->multiple && (b->multiple != multiple || b->multiple_frac != frac)) {
        schema_fail(c, SHOAL_EUNSUPPORTED, schema, "multipleOf",
                    "two different \"multipleOf\" are not enforced at once");
    } else {
        b->multiple = multiple;
        b->multiple_frac = frac;
    }
}

bool facts_numbers(schema_ctx *c, const parts *p, bool integer, number_bounds *ret, bool *ret_any)
{
    bool never = false;
    *ret = (number_bounds){.integer = integer};
    for (size_t i = 0; i < p->n; i++) {
        const json_t *s = p->of[i];
        add_bound(c, s, "minimum", false, json_is_true(json_object_get(s, "exclusiveMinimum")), ret, &never);
        add_bound(c, s, "maximum", true, json_is_true(json_object_get(s, "exclusiveMaximum")), ret, &never);
        add_bound(c, s, "exclusiveMinimum", false, true, ret, &never);
        add_bound(c, s, "exclusiveMaximum", true, true, ret, &never);
        add_multiple(c, s, ret);
    }
    if (integer && ret->multiple == 1 && ret->multiple_frac == 0) ret->multiple = 0;
    *ret_any = !ret->has_min && !ret->has_max && !ret->multiple && !ret->far;
    return !never;
}

/* ---- strings ---------------------------------------------------------------------------------- */

typedef struct pattern_memo {
    const char *pattern; /* in the schema, or of a format */
    dfa *texts;
    bool has_length; /* of texts, which are less than the pattern's then */
    int64_t least, most;
    struct pattern_memo *next;
} pattern_memo;

void facts_done(schema_ctx *c)
{
    for (pattern_memo *m = c->patterns; m; m = m->next) dfa_free(m->texts);
    c->patterns = NULL;
    schema_conditions_done(c);
}

/* What an expression of `schema`, under its key, matches; NULL with c->rc set. Kept by the place of its text.
 */
static const dfa *pattern_dfa(schema_ctx *c, const json_t *schema, const char *key, const char *text,
                              size_t n)
{
    for (pattern_memo *m = c->patterns; m; m = m->next)
        if (m->pattern == text && !m->has_length) return m->texts;
    shoal_err err = {0};
    pattern_memo *m = arena_alloc(c->memory, sizeof *m);
    if (!m && !c->rc) c->rc = err_nomem(c->err);
    if (c->rc) return NULL;
    int rc = pattern_compile(&m->texts, text, n, &c->work, &err);
    if (rc) {
        schema_fail(c, rc, schema, key, "\"%s\" %s", key, err.message);
        return NULL;
    }
    *m = (pattern_memo){.pattern = text, .texts = m->texts, .next = c->patterns};
    c->patterns = m;
    return m->texts;
}

const dfa *facts_pattern_of(schema_ctx *c, const json_t *schema)
{
    const json_t *v = json_object_get(schema, "pattern");
    if (!json_is_string(v)) {
        schema_fail(c, SHOAL_EINVALID, schema, "pattern", "\"pattern\" must be a string");
        return NULL;
    }
    return pattern_dfa(c, schema, "pattern", json_string_value(v), json_string_length(v));
}

/* *all becomes *all AND one, whatever *all was is freed; NULL stands for all texts. */
static void intersect(schema_ctx *c, const json_t *at, dfa **all, const dfa *one)
{
    dfa *both = NULL, *every = NULL;
    shoal_err err = {0};
    if (c->rc || !one) return;
    int rc = *all ? 0 : dfa_length(&every, 0, -1, &c->work, &err);
    if (rc == 0) rc = dfa_combine(&both, *all ? *all : every, one, DFA_AND, &c->work, &err);
    dfa_free(every);
    if (rc) {
        schema_fail(c, rc, at, NULL, "a string's conditions together: %s", err.message);
        return;
    }
    dfa_free(*all);
    *all = both;
}

/* What both have; *ret NULL when that takes more than `budget` of work, which is no failure. */
static void try_both(schema_ctx *c, const dfa *a, const dfa *b, uint64_t budget, dfa **ret)
{
    shoal_err err = {0};
    if (c->rc || !a || !b) return;
    if (budget > c->work) budget = c->work;
    uint64_t left = budget;
    int rc = dfa_combine(ret, a, b, DFA_AND, &left, &err);
    c->work -= budget - left;
    if (rc == SHOAL_ENOMEM && c->rc == 0) c->rc = err_nomem(c->err);
}

/* A format beside a pattern annotates when no text of the pattern has it (zod's "time" has no offset), and
 * when the two together are too complex: the pattern says more. */
static void add_format(schema_ctx *c, const json_t *schema, bool has_pattern, string_facts *f)
{
    dfa **all = &f->texts;
    const char *format = json_string_value(json_object_get(schema, "format"));
    const char *pattern = format ? pattern_of_format(format, has_pattern) : NULL;
    if (!pattern || c->rc) return;
    f->has_format = true;
    const dfa *one = pattern_dfa(c, schema, "format", pattern, strlen(pattern));
    if (!one || !has_pattern || !*all) {
        intersect(c, schema, all, one);
        return;
    }
    dfa *both = NULL;
    try_both(c, *all, one, FORMAT_WORK, &both);
    bool says_nothing = !both || both->n == 0;
    dfa_free(says_nothing ? both : *all);
    if (!says_nothing) *all = both;
}

static dfa *length_dfa(schema_ctx *c, const json_t *at, int64_t least, int64_t most)
{
    dfa *length = NULL;
    shoal_err err = {0};
    int rc = c->rc ? c->rc : dfa_length(&length, least, most, &c->work, &err);
    if (rc) schema_fail(c, rc, at, NULL, "the lengths: %s", err.message);
    return length;
}

/* The only format of the parts, where no pattern says more; NULL: there is none, or several. */
static const json_t *only_format(const parts *p, bool has_pattern)
{
    const json_t *who = NULL;
    for (size_t i = 0; i < p->n; i++) {
        if (!json_object_get(p->of[i], "format")) continue;
        if (who || has_pattern) return NULL;
        who = p->of[i];
    }
    return who;
}

/* Some texts of the format that are as long as they must be; NULL: none of its shapes is simple enough. */
static dfa *shaped(schema_ctx *c, const json_t *who, int64_t least, int64_t most)
{
    const char *format = json_string_value(json_object_get(who, "format"));
    const format_shape *shape;
    dfa *both = NULL;
    for (size_t n = 0; !both && format && c->rc == 0 && (shape = pattern_shape(format, &n));) {
        bool is_cut = shape->most > 0 && (most < 0 || most > shape->most);
        int64_t cut = is_cut ? shape->most : most;
        if (cut >= 0 && cut < least) continue;
        const dfa *texts = pattern_dfa(c, who, "format", shape->pattern, strlen(shape->pattern));
        bool is_short = texts && cut >= 0 && cut < INT32_MAX && !dfa_is_long(texts, (int)cut + 1);
        dfa *length = length_dfa(c, who, least, is_short ? -1 : cut);
        try_both(c, texts, length, LENGTH_WORK, &both);
        dfa_free(length);
        if (both && both->n > 0) break;
        dfa_free(both);
        both = NULL;
    }
    return both;
}

/* Those of a format's texts that are as long as they must be; NULL: they are too many to count. Kept, since a
 * schema has many strings of one kind. */
static const dfa *format_lengths(schema_ctx *c, const json_t *who, const string_facts *f, int64_t most)
{
    const char *format = json_string_value(json_object_get(who, "format"));
    const char *pattern = format ? pattern_of_format(format, false) : NULL;
    for (pattern_memo *m = c->patterns; m && pattern; m = m->next)
        if (m->pattern == pattern && m->has_length && m->least == f->least && m->most == most)
            return m->texts;
    pattern_memo *m = pattern ? arena_alloc(c->memory, sizeof *m) : NULL;
    if (!m) return NULL;
    *m = (pattern_memo){.pattern = pattern, .has_length = true, .least = f->least, .most = most};
    dfa *length = length_dfa(c, who, f->least, most);
    try_both(c, f->texts, length, LENGTH_WORK, &m->texts);
    dfa_free(length);
    if (!m->texts) m->texts = shaped(c, who, f->least, most);
    m->next = c->patterns; /* shapes are kept there by now */
    c->patterns = m;
    return m->texts;
}

static void add_lengths(schema_ctx *c, const parts *p, bool has_pattern, string_facts *f)
{
    const json_t *who = only_format(p, has_pattern);
    int64_t most =
        f->most >= 0 && f->most < INT32_MAX && !dfa_is_long(f->texts, (int)f->most + 1) ? -1 : f->most;
    if (most < 0 && f->least <= 0) return;
    const dfa *counted = who ? format_lengths(c, who, f, most) : NULL;
    dfa *length = counted ? NULL : length_dfa(c, p->of[0], f->least, most);
    if (counted) {
        dfa_free(f->texts);
        f->texts = NULL;
    }
    intersect(c, who ? who : p->of[0], &f->texts, counted ? counted : length);
    dfa_free(length);
}

int facts_strings(schema_ctx *c, const parts *p, string_facts *ret)
{
    bool has_pattern = false;
    *ret = (string_facts){.least = facts_count(c, p, "minLength", 0),
                          .most = facts_count(c, p, "maxLength", -1)};
    for (size_t i = 0; i < p->n; i++) {
        if (!json_object_get(p->of[i], "pattern")) continue;
        has_pattern = true;
        intersect(c, p->of[i], &ret->texts, facts_pattern_of(c, p->of[i]));
    }
    for (size_t i = 0; i < p->n; i++) add_format(c, p->of[i], has_pattern, ret);
    if (ret->texts && (ret->least > 0 || ret->most >= 0)) add_lengths(c, p, has_pattern, ret);
    if (c->rc) {
        dfa_free(ret->texts);
        ret->texts = NULL;
    }
    return c->rc;
}

/* ---- properties and items --------------------------------------------------------------------- */

bool facts_is_required(const parts *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++) {
        const json_t *list = json_object_get(p->of[i], "required"), *one;
        size_t k;
        json_array_foreach(list, k, one)
        {
            if (json_is_string(one) && strcmp(json_string_value(one), name) == 0) return true;
        }
    }
    return false;
}

bool facts_admit_name(schema_ctx *c, const json_t *schema, const char *name)
{
    const json_t *names = json_object_get(schema, "propertyNames");
    if (!names) return true;
    json_t *text = json_string(name);
    if (!text && !c->rc) c->rc = err_nomem(c->err);
    bool ok = text && facts_admit(c, names, text);
    json_decref(text);
    return ok;
}

const dfa *facts_name_pattern(schema_ctx *c, const json_t *schema, const char *pattern)
{
    return pattern_dfa(c, schema, "patternProperties", pattern, strlen(pattern));
}

static bool add_schema(schema_ctx *c, parts *to, const json_t *schema)
{
    return !schema || (!schema_admits_nothing(schema) && parts_add(c, to, schema) == 0);
}

bool facts_property_of(schema_ctx *c, const json_t *schema, const char *name, parts *ret, bool *ret_declared)
{
    const json_t *own = json_object_get(json_object_get(schema, "properties"), name);
    bool declared = own != NULL;
    const char *pattern;
    json_t *one;
    if (!facts_admit_name(c, schema, name) || !add_schema(c, ret, own)) return false;
    json_object_foreach(json_object_get(schema, "patternProperties"), pattern, one)
    {
        const dfa *names = facts_name_pattern(c, schema, pattern);
        if (!names || !dfa_matches(names, name, strlen(name))) continue;
        declared = true;
        if (!add_schema(c, ret, one)) return false;
    }
    *ret_declared |= declared;
    return declared || add_schema(c, ret, json_object_get(schema, "additionalProperties"));
}

const json_t *facts_unevaluated(const parts *p, const char *key, const char *all)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const json_t *everything = json_object_get(p->of[i], all);
        if (everything && !json_is_array(everything)) return NULL;
        if (!found) found = json_object_get(p->of[i], key);
    }
    return found;
}

bool facts_property(schema_ctx *c, const parts *p, const char *name, parts *ret, bool *ret_declared)
{
    *ret = (parts){0};
    *ret_declared = false;
    for (size_t i = 0; i < p->n; i++)
        if (!facts_property_of(c, p->of[i], name, ret, ret_declared)) return false;
    const json_t *rest =
        *ret_declared ? NULL : facts_unevaluated(p, "unevaluatedProperties", "additionalProperties");
    return add_schema(c, ret, rest) && c->rc == 0;
}

bool facts_has_name_patterns(const parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (json_object_size(json_object_get(p->of[i], "patternProperties")) > 0) return true;
    return false;
}

const json_t *facts_prefix_items(const json_t *schema)
{
    const json_t *prefix = json_object_get(schema, "prefixItems"), *items = json_object_get(schema, "items");
    return prefix ? prefix : json_is_array(items) ? items : NULL;
}

const json_t *facts_rest_of_items(const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");
    return json_is_array(items) ? json_object_get(schema, "additionalItems") : items;
}

bool facts_item(schema_ctx *c, const parts *p, size_t i, parts *ret, bool *ret_declared)
{
    *ret = (parts){0};
    *ret_declared = false;
    for (size_t k = 0; k < p->n; k++) {
        const json_t *own = json_array_get(facts_prefix_items(p->of[k]), i);
        if (!own) own = facts_rest_of_items(p->of[k]);
        if (!own) continue;
        *ret_declared = true;
        if (schema_admits_nothing(own) || parts_add(c, ret, own)) return false;
    }
    const json_t *rest = *ret_declared ? NULL : facts_unevaluated(p, "unevaluatedItems", "items");
    *ret_declared |= rest != NULL;
    return add_schema(c, ret, rest) && c->rc == 0;
}

size_t facts_n_prefix(const parts *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (json_array_size(facts_prefix_items(p->of[i])) > n)
            n = json_array_size(facts_prefix_items(p->of[i]));
    return n;
}

bool facts_asks_for_more(const parts *p, bool open)
{
    const json_t *left = facts_unevaluated(p, "unevaluatedProperties", "additionalProperties");
    bool asks = left != NULL, names = false;
    if (schema_admits_nothing(left)) return false;
    for (size_t i = 0; i < p->n; i++) {
        const json_t *rest = json_object_get(p->of[i], "additionalProperties");
        if (schema_admits_nothing(rest)) return false;
        asks |= rest != NULL;
        names |= json_object_get(p->of[i], "properties") != NULL;
    }
    return asks || open || !(names || facts_has_name_patterns(p));
}

/* ---- telling alternatives apart --------------------------------------------------------------- */

typedef struct apart {
    schema_ctx *c;
    const parts *mine;
    int depth;
    bool all; /* so far */
} apart;

static bool values_apart(schema_ctx *c, const parts *from, const parts *other, bool *ret_known)
{
    const json_t *list, *only, *one;
    size_t i;
    *ret_known = facts_values(c, from, &list, &only);
    if (only) return !facts_all_admit(c, from, only, NULL) || !facts_all_admit(c, other, only, NULL);
    json_array_foreach(list, i, one)
    {
        if (facts_all_admit(c, from, one, list) && facts_all_admit(c, other, one, list)) return false;
    }
    return *ret_known;
}

static bool strings_apart(schema_ctx *c, const parts *a, const parts *b)
{
    string_facts x = {0}, y = {0};
    bool yes = false;
    if (facts_strings(c, a, &x) == 0 && facts_strings(c, b, &y) == 0) {
        yes = (x.most >= 0 && x.most < y.least) || (y.most >= 0 && y.most < x.least);
        if (!yes && x.texts && y.texts) {
            intersect(c, b->n ? b->of[0] : NULL, &x.texts, y.texts);
            yes = c->rc == 0 && x.texts->n == 0;
        }
    }
    dfa_free(x.texts);
    dfa_free(y.texts);
    return yes;
}

static bool numbers_apart(schema_ctx *c, const parts *a, const parts *b)
{
    parts both = *a;
    number_bounds n;
    bool any;
    for (size_t i = 0; i < b->n; i++) parts_add(c, &both, b->of[i]);
    if (!facts_numbers(c, &both, false, &n, &any)) return true;
    if (!n.has_min || !n.has_max) return false;
    int cmp = decimal_compare(&n.min, &n.max);
    return cmp > 0 || (cmp == 0 && (n.above_min || n.below_max));
}

static bool counts_apart(schema_ctx *c, const parts *a, const parts *b)
{
    int64_t most_a = facts_count(c, a, "maxItems", INT64_MAX),
            most_b = facts_count(c, b, "maxItems", INT64_MAX);
    return most_a < facts_count(c, b, "minItems", 0) || most_b < facts_count(c, a, "minItems", 0);
}

static void see_if_apart(void *user, const parts_case *one);

static bool apart_from(schema_ctx *c, const parts *mine, const parts *other, int depth)
{
    apart a = {.c = c, .mine = mine, .depth = depth, .all = true};
    parts_cases(c, other, see_if_apart, &a);
    return a.all && c->rc == 0;
}

typedef struct child_apart {
    schema_ctx *c;
    const parts *other;
    int depth;
    bool all;
} child_apart;

static void see_child(void *user, const parts_case *one)
{
    child_apart *k = user;
    k->all = k->all && apart_from(k->c, &one->parts, k->other, k->depth);
}

/* A property that mine always has and that cannot be what other wants of it. */
static bool property_apart(schema_ctx *c, const parts *mine, const parts *other, const char *name, int depth)
{
    parts a, b;
    bool declared;
    if (!facts_property(c, other, name, &b, &declared)) return c->rc == 0;
    if (!facts_property(c, mine, name, &a, &declared) || depth >= APART_MAX) return false;
    child_apart k = {.c = c, .other = &b, .depth = depth + 1, .all = true};
    parts_cases(c, &a, see_child, &k);
    return k.all && c->rc == 0;
}

/* Objects are written with the properties that their schema names, and no others unless it asks for them. */
static bool objects_apart(schema_ctx *c, const parts *mine, const parts *other, int depth)
{
    const json_t *one;
    size_t k;
    parts child;
    bool declared;
    for (size_t i = 0; i < other->n && !facts_asks_for_more(mine, c->open); i++) {
        json_array_foreach(json_object_get(other->of[i], "required"), k, one)
        {
            const char *name = json_string_value(one);
            if (!name || facts_is_required(mine, name)) continue;
            bool may = facts_property(c, mine, name, &child, &declared);
            if (!may || !declared) return c->rc == 0;
        }
    }
    for (size_t i = 0; i < mine->n; i++) {
        json_array_foreach(json_object_get(mine->of[i], "required"), k, one)
        {
            if (json_is_string(one) && property_apart(c, mine, other, json_string_value(one), depth))
                return true;
        }
    }
    return false;
}

static bool cases_apart(schema_ctx *c, const parts *mine, const parts *other, int depth)
{
    unsigned types = facts_types(c, mine, true) & facts_types(c, other, false);
    bool known;
    if (types == 0) return true;
    bool apart_by_values = values_apart(c, mine, other, &known);
    if (!known) apart_by_values = values_apart(c, other, mine, &known);
    if (known) return apart_by_values;
    if (types & (TYPE_NULL | TYPE_BOOLEAN)) return false;
    if ((types & TYPE_STRING) && !strings_apart(c, mine, other)) return false;
    if ((types & TYPE_NUMBER) && !numbers_apart(c, mine, other)) return false;
    if ((types & TYPE_ARRAY) && !counts_apart(c, mine, other)) return false;
    return !(types & TYPE_OBJECT) || objects_apart(c, mine, other, depth);
}

static void see_if_apart(void *user, const parts_case *one)
{
    apart *a = user;
    a->all = a->all && schema_works(a->c, 100) && cases_apart(a->c, a->mine, &one->parts, a->depth);
}

bool facts_are_apart(schema_ctx *c, const parts *mine, const json_t *schema)
{
    parts other = {0};
    if (json_is_true(schema) || parts_add(c, &other, schema)) return false;
    return apart_from(c, mine, &other, 0);
}
