/* config_put.c: see config_put.h. */
#include "config/config_put.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "config/config_schema.h"

#define HIDDEN "(hidden)"

typedef struct putter {
    bool hides, failed;
} putter;

static void put_record(putter *p, json_t *to, const config_record *rec, const char *from, bool in_list);

/* ---- from structs -------------------------------------------------------------------------------- */

static void put_member(putter *p, json_t *to, const char *key, json_t *value)
{
    if (!value || json_object_set_new(to, key, value) != 0) p->failed = true;
}

static uint64_t load_uint(const char *at, size_t width)
{
    uint64_t v64;
    uint32_t v32;
    if (width == sizeof v64) return memcpy(&v64, at, sizeof v64), v64;
    return memcpy(&v32, at, sizeof v32), v32;
}

static const char *load_text(const char *at)
{
    const char *s;
    memcpy(&s, at, sizeof s);
    return s;
}

static json_t *config_put_text_of(const putter *p, const config_field *f, const char *s)
{
    return json_string(f->secret && p->hides ? HIDDEN : s);
}

static void config_put_put_word(putter *p, json_t *to, const config_field *f, const char *from, bool in_list)
{
    uint64_t v = load_uint(from + f->at, f->width), n = 0;
    while (f->words[n]) n++;
    if (v == 0 && in_list && !f->required) return;
    if (v < n) {
        put_member(p, to, f->key, json_string(f->words[v]));
    } else {
        json_t *map = json_object();
        if (map) put_record(p, map, f->of, from, true);
        put_member(p, to, f->key, map);
    }
}

static void put_stage_kind(putter *p, json_t *to, const config_field *f, const char *from)
{
    const stage_kind *k;
    memcpy(&k, from + f->at, sizeof k);
    put_member(p, to, f->key, json_string(k->name));
}

static void config_put_put_number(putter *p, json_t *to, const config_field *f, const char *from)
{
    const double *at = (const double *)(const void *)(from + f->at);
    if (f->pointer) memcpy(&at, from + f->at, sizeof at);
    if (at && (*at != 0 || f->pointer)) put_member(p, to, f->key, json_real(*at));
}

static void put_shards(putter *p, json_t *to, const config_field *f, const placement_shards *s)
{
    if (s->n_parts > 0) {
        json_t *parts = json_object();
        for (size_t i = 0; parts && i < s->n_parts; i++)
            put_member(p, parts, s->parts[i].node, json_integer((json_int_t)s->parts[i].n_layers));
        put_member(p, to, f->key, parts);
    } else if (s->automatic || s->n > 0) {
        put_member(p, to, f->key, s->automatic ? json_string("auto") : json_integer((json_int_t)s->n));
    }
}

static bool lacks_required(const json_t *map, const config_record *rec)
{
    for (size_t i = 0; i < rec->n; i++)
        if (rec->fields[i].required && !json_object_get(map, rec->fields[i].key)) return true;
    return false;
}

/* A map; or, where that would lack something, the text in its place. */
static json_t *item_of(putter *p, const config_field *f, const char *from)
{
    json_t *map = json_object();
    if (map) put_record(p, map, f->of, from, true);
    if (!map || !f->alone || !lacks_required(map, f->of)) return map;
    json_t *text = json_incref(json_object_get(map, f->alone));
    json_decref(map);
    return text;
}

static void put_list(putter *p, json_t *to, const config_field *f, const char *from)
{
    const char *items = load_text(from + f->at);
    size_t n = (size_t)load_uint(from + f->at_n, f->width_n);
    if (n == 0) return;
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        json_t *item = f->of ? item_of(p, f, items + i * f->of->bytes)
                             : config_put_text_of(p, f, load_text(items + i * sizeof(char *)));
        if (!item || json_array_append_new(list, item) != 0) p->failed = true;
    }
    put_member(p, to, f->key, list);
}

static void put_pairs(putter *p, json_t *to, const config_field *f, const char *from)
{
    const char *items = load_text(from + f->at);
    size_t n = (size_t)load_uint(from + f->at_n, f->width_n);
    if (n == 0) return;
    json_t *map = json_object();
    for (size_t i = 0; map && i < n; i++) {
        const char *item = items + i * f->of->bytes;
        put_member(p, map, load_text(item + f->of->fields[0].at),
                   json_string(load_text(item + f->of->fields[1].at)));
    }
    put_member(p, to, f->key, map);
}

/* One that was not there has no value where it would need one. */
static void put_section(putter *p, json_t *to, const config_field *f, const char *from, bool in_list)
{
    json_t *map = json_object();
    if (map) put_record(p, map, f->of, from, in_list);
    if (!map || (json_object_size(map) > 0 && !lacks_required(map, f->of)))
        put_member(p, to, f->key, map);
    else
        json_decref(map);
}

/* A map in place of a number, where it is one: NULL, or the caller's. */
static json_t *map_for_number(putter *p, const config_field *f, const char *from)
{
    json_t *map = f->of ? json_object() : NULL;
    if (f->of && !map) p->failed = true;
    if (map) put_record(p, map, f->of, from, false);
    if (!map || !lacks_required(map, f->of)) return map;
    json_decref(map);
    return NULL;
}

static void config_put_put_uint(putter *p, json_t *to, const config_field *f, const char *from, bool in_list)
{
    uint64_t v = load_uint(from + f->at, f->width) / (f->unit ? f->unit : 1);
    json_t *map = map_for_number(p, f, from);
    if (map)
        put_member(p, to, f->key, map);
    else if (v != 0 || (!in_list && f->min == 0))
        put_member(p, to, f->key, json_integer((json_int_t)v));
}

/* Any part of the file as JSON text. */
static void config_put_put_json(putter *p, json_t *to, const config_field *f, const char *text)
{
    json_t *v = NULL;
    if (text && json_parse(&v, text, strlen(text), f->key, NULL) != 0) p->failed = true;
    if (v) put_member(p, to, f->key, v);
}

static void config_put_put_field(putter *p, json_t *to, const config_field *f, const char *from, bool in_list)
{
    const char *text;
    switch (f->kind) {
    case CONFIG_TEXT:
        text = load_text(from + f->at);
        if (text && *text) put_member(p, to, f->key, config_put_text_of(p, f, text));
        break;
    case CONFIG_STAGE: put_stage_kind(p, to, f, from); break;
    case CONFIG_WORD: config_put_put_word(p, to, f, from, in_list); break;
    case CONFIG_UINT: config_put_put_uint(p, to, f, from, in_list); break;
    case CONFIG_INT:
        put_member(p, to, f->key, json_integer(*(const int *)(const void *)(from + f->at)));
        break;
    case CONFIG_NUMBER: config_put_put_number(p, to, f, from); break;
    case CONFIG_BOOL:
        if (*(const bool *)(from + f->at) || !in_list)
            put_member(p, to, f->key, json_boolean(*(const bool *)(from + f->at)));
        break;
    case CONFIG_SECTION: put_section(p, to, f, from, in_list); break;
    case CONFIG_SHARDS: put_shards(p, to, f, (const placement_shards *)(const void *)(from + f->at)); break;
    case CONFIG_JSON: config_put_put_json(p, to, f, load_text(from + f->at)); break;
    case CONFIG_LIST: put_list(p, to, f, from); break;
    case CONFIG_PAIRS: put_pairs(p, to, f, from); break;
    }
}

static void put_record(putter *p, json_t *to, const config_record *rec, const char *from, bool in_list)
{
    for (size_t i = 0; i < rec->n; i++) config_put_put_field(p, to, &rec->fields[i], from, in_list);
}

int config_to_json(json_t **ret, const gateway_config *c, bool hides, shoal_err *err)
{
    putter p = {.hides = hides};
    json_t *root = json_object();
    if (root) put_record(&p, root, &config_schema, (const char *)c, false);
    if (!root || p.failed) {
        json_decref(root);
        return err_nomem(err);
    }
    *ret = root;
    return 0;
}

/* ---- of answers ---------------------------------------------------------------------------------- */

static void put_files(buf *out, const json_t *v)
{
    const char *key;
    json_t *item;
    size_t i;
    struct stat st;
    json_object_foreach((json_t *)v, key, item) put_files(out, item);
    json_array_foreach((json_t *)v, i, item) put_files(out, item);
    if (!json_is_string(v) || stat(json_string_value(v), &st) != 0 || !S_ISREG(st.st_mode)) return;
    buf_printf(out, "%s %lld %lld.%09ld %llu\n", json_string_value(v), (long long)st.st_size,
               (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (unsigned long long)st.st_ino);
}

int config_fingerprint(sha256_digest *ret, const gateway_config *c, shoal_err *err)
{
    static const char *const KEYS[] = {"ensembles", "pipelines", "hosts", "domains", "routes"};
    putter p = {0};
    buf all = {0};
    json_t *root = json_object();
    for (size_t i = 0; root && i < config_schema.n; i++)
        for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++)
            if (strcmp(config_schema.fields[i].key, KEYS[k]) == 0)
                config_put_put_field(&p, root, &config_schema.fields[i], (const char *)c, false);
    json_put(&all, root);
    put_files(&all, root);
    bool fine = root && !p.failed && !all.failed;
    if (fine) sha256_of(all.data, all.len, ret);
    json_decref(root);
    buf_done(&all);
    return fine ? 0 : err_nomem(err);
}

/* ---- to YAML ------------------------------------------------------------------------------------- */

/* A text that no reader takes for anything else. */
static bool is_plain(const char *s, size_t n)
{
    static const char *const OTHERS[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
    if (n == 0 || !isalpha((unsigned char)*s)) {
        if (n == 0 || (*s != '/' && *s != '_')) return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && (!s[i] || !strchr("_-./+@", s[i]))) return false;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (strcasecmp(s, OTHERS[i]) == 0) return false;
    return true;
}

/* As JSON, but for what YAML does not take as it is (section 5.1) or reads as the end of a line (5.4). */
static void put_quoted(buf *out, const json_t *v)
{
    static const char *const OTHERS[][2] = {{"\x7F", "\\x7f"},
                                            {"\xE2\x80\xA8", "\\u2028"},
                                            {"\xE2\x80\xA9", "\\u2029"},
                                            {"\xEF\xBB\xBF", "\\ufeff"}};
    buf json = {0};
    json_put(&json, v);
    for (const char *s = json.failed ? "" : json.data; *s;) {
        size_t i = 0, n_others = sizeof OTHERS / sizeof *OTHERS;
        const unsigned char *b = (const unsigned char *)s;
        while (i < n_others && strncmp(s, OTHERS[i][0], strlen(OTHERS[i][0])) != 0) i++;
        if (i < n_others) {
            buf_puts(out, OTHERS[i][1]);
            s += strlen(OTHERS[i][0]);
        } else if (b[0] == 0xC2 && b[1] < 0xA0) {
            buf_printf(out, "\\u%04x", b[1]);
            s += 2;
        } else {
            buf_putc(out, *s++);
        }
    }
    out->failed |= json.failed;
    buf_done(&json);
}

/* The shortest without an exponent, which the file may not have. */
static void put_real(buf *out, double v)
{
    char text[400];
    for (int digits = 1; digits <= 30; digits++) {
        snprintf(text, sizeof text, "%.*f", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    buf_puts(out, text);
}

static void put_scalar(buf *out, const json_t *v)
{
    const char *s = json_string_value(v);
    size_t n = json_string_length(v);
    if (s && is_plain(s, n))
        buf_append(out, s, n);
    else if (s)
        put_quoted(out, v);
    else if (json_is_real(v))
        put_real(out, json_real_value(v));
    else
        json_put(out, v);
}

static bool is_block(const json_t *v)
{
    return (json_is_object(v) && json_object_size(v) > 0) || (json_is_array(v) && json_array_size(v) > 0);
}

static bool is_flat(const json_t *list)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v) if (json_is_object(v) || json_is_array(v)) return false;
    return true;
}

static void put_flow(buf *out, const json_t *list)
{
    size_t i;
    json_t *v;
    buf_putc(out, '[');
    json_array_foreach((json_t *)list, i, v)
    {
        if (i) buf_puts(out, ", ");
        put_scalar(out, v);
    }
    buf_putc(out, ']');
}

static void put_node(buf *out, const json_t *v, unsigned depth, bool first_here);

/* first: its first line has begun, behind "- ". */
static void put_map(buf *out, const json_t *map, unsigned depth, bool first)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)map, key, v)
    {
        buf_printf(out, "%*s", first ? 0 : (int)depth * 2, "");
        first = false;
        json_t *name = json_string(key);
        put_scalar(out, name);
        out->failed |= !name;
        json_decref(name);
        buf_putc(out, ':');
        put_node(out, v, depth + 1, false);
    }
}

static void put_items(buf *out, const json_t *list, unsigned depth)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v)
    {
        buf_printf(out, "%*s-", (int)depth * 2, "");
        put_node(out, v, depth + 1, true);
    }
}

/* Behind "key:" or "-", up to the end of the line. */
static void put_node(buf *out, const json_t *v, unsigned depth, bool first_here)
{
    if (!is_block(v) || (json_is_array(v) && is_flat(v))) {
        buf_putc(out, ' ');
        if (is_block(v))
            put_flow(out, v);
        else
            put_scalar(out, v);
        buf_putc(out, '\n');
        return;
    }
    buf_putc(out, first_here && json_is_object(v) ? ' ' : '\n');
    if (json_is_object(v))
        put_map(out, v, depth, first_here);
    else
        put_items(out, v, depth);
}

void config_put_yaml(buf *out, const json_t *tree)
{
    put_map(out, tree, 0, false);
}
