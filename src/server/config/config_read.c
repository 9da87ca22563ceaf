/* config_read.c: a YAML tree into structs, as the rows of a schema say. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/edits.h"
#include "config/config_schema.h"

/* Where reading is: `path` is the field's, for sentences ("pipelines[0].stages[2].model"). */
typedef struct reader {
    const stage_registry *kinds;
    const yaml_doc *doc;
    arena *mem;
    config_faults *faults; /* NULL: the first error ends it */
    shoal_err *err;
    size_t n_path;
    char path[256];
} reader;

static void set_defaults(const config_record *rec, char *into);
static int read_record(reader *r, const config_record *rec, const yaml_node *n, char *into);
static const config_field *find_field(const config_record *rec, const char *key);

/* ---- sentences ---- */

/* Lengthen the path by ".key" or "[i]"; returns its length before, to be given to leave. */
static size_t config_read_enter(reader *r, const char *key, size_t i)
{
    size_t before = r->n_path, room = sizeof r->path - before;
    int n = key ? snprintf(r->path + before, room, "%s%s", before ? "." : "", key)
                : snprintf(r->path + before, room, "[%zu]", i);
    r->n_path += (size_t)n < room ? (size_t)n : room - 1;
    return before;
}

static void config_read_leave(reader *r, size_t before)
{
    r->n_path = before;
    r->path[before] = 0;
}

static int wrong_kind(reader *r, const yaml_node *n, yaml_kind wanted)
{
    bool empty = n->kind == YAML_SCALAR && n->len == 0;
    return yaml_fail(r->doc, n, r->err, "%s%smust be %s, not %s%s", r->path, *r->path ? ": " : "",
                     yaml_kind_name(wanted), empty ? "an empty value" : yaml_kind_name(n->kind),
                     empty ? " (leave the key out instead)" : "");
}

static size_t count_words(const char *const *words)
{
    size_t n = 0;
    while (words[n]) n++;
    return n;
}

/* Letters count as the same in either case. */
static const char *lowered(char ret[EDITS_LETTERS_MAX + 2], const char *word)
{
    size_t n = strnlen(word, EDITS_LETTERS_MAX + 1);
    for (size_t i = 0; i < n; i++) ret[i] = (char)tolower((unsigned char)word[i]);
    ret[n] = '\0';
    return ret;
}

const char *config_nearest(const char *given, const char *const *words, size_t n_words)
{
    char a[EDITS_LETTERS_MAX + 2], b[EDITS_LETTERS_MAX + 2];
    const char *best = NULL;
    size_t n = strlen(given), least = n < 4 ? 1 : 1 + n / 4;
    for (size_t i = 0; i < n_words; i++) {
        size_t d = edits(lowered(a, given), lowered(b, words[i]), least);
        if (d > least || (best && d == least)) continue;
        best = words[i];
        least = d;
    }
    return best;
}

static int unknown_key(reader *r, const config_record *rec, const yaml_node *key)
{
    const char **words = arena_alloc(r->mem, rec->n * sizeof *words);
    if (!words) return err_nomem(r->err);
    for (size_t i = 0; i < rec->n; i++) words[i] = rec->fields[i].key;
    buf b = {0};
    const char *near = config_nearest(key->text, words, rec->n);
    buf_printf(&b, near ? "; did you mean '%s'?" : "; the keys are %s", near ? near : words[0]);
    for (size_t i = 1; !near && i < rec->n; i++) buf_printf(&b, ", %s", words[i]);
    int rc = b.failed ? err_nomem(r->err)
                      : yaml_fail(r->doc, key, r->err, "%s%sthere is no key '%s' here%s", r->path,
                                  *r->path ? ": " : "", yaml_excerpt_of(key->text).text, b.data);
    buf_done(&b);
    return rc;
}

static int unknown_word(reader *r, const config_field *f, const yaml_node *n)
{
    buf b = {0};
    for (size_t i = 0; f->words[i]; i++) buf_printf(&b, "%s%s", i ? ", " : "", f->words[i]);
    const char *near = config_nearest(n->text, f->words, count_words(f->words));
    if (near) buf_printf(&b, "; did you mean '%s'?", near);
    int rc = b.failed ? err_nomem(r->err)
                      : yaml_fail(r->doc, n, r->err, "%s: '%s' is none of %s", r->path,
                                  yaml_excerpt_of(n->text).text, b.data);
    buf_done(&b);
    return rc;
}

/* ---- one value ---- */

static void store_uint(char *at, size_t width, uint64_t v)
{
    uint32_t v32 = (uint32_t)v;
    assert(width == 8 || (width == 4 && v32 == v));
    memcpy(at, width == 8 ? (void *)&v : &v32, width);
}

/* 0 and the place in `words`, or the sentence. */
static int find_word(reader *r, const config_field *f, const yaml_node *n, size_t *ret)
{
    if (n->kind != YAML_SCALAR) return wrong_kind(r, n, YAML_SCALAR);
    for (size_t i = 0; f->words[i]; i++) {
        if (strcmp(f->words[i], n->text) != 0) continue;
        *ret = i;
        return 0;
    }
    return unknown_word(r, f, n);
}

static int read_stage_kind(reader *r, const config_field *f, const yaml_node *n, char *at)
{
    const stage_registry *kinds = r->kinds ? r->kinds : &PLAIN_STAGES;
    const char *names[STAGE_KINDS_MAX + 1] = {NULL};
    config_field of = *f;
    size_t i = 0;
    of.words = names;
    for (size_t k = 0; k < kinds->n_stages; k++) names[k] = kinds->stages[k].kind->name;
    int rc = find_word(r, &of, n, &i);
    if (!rc) memcpy(at, &kinds->stages[i].kind, sizeof kinds->stages[i].kind);
    return rc;
}

static int config_read_read_text(reader *r, const yaml_node *n, uint64_t min, uint64_t max, const char **ret)
{
    if (n->kind != YAML_SCALAR) return wrong_kind(r, n, YAML_SCALAR);
    if (n->len < min) return yaml_fail(r->doc, n, r->err, "%s: must not be empty", r->path);
    if (n->len > max)
        return yaml_fail(r->doc, n, r->err, "%s: may have %llu bytes, this has %zu", r->path,
                         (unsigned long long)max, n->len);
    *ret = n->text;
    return 0;
}

static int read_uint(reader *r, const config_field *f, const yaml_node *n, char *at)
{
    uint64_t v;
    int rc = yaml_u64(r->doc, n, r->path, f->min, f->max, &v, r->err);
    if (!rc) store_uint(at, f->width, v * (f->unit ? f->unit : 1));
    return rc;
}

static int read_int(reader *r, const config_field *f, const yaml_node *n, int *to)
{
    int64_t v;
    int rc = yaml_i64(r->doc, n, r->path, (int64_t)f->low, (int64_t)f->high, &v, r->err);
    if (!rc) *to = (int)v;
    return rc;
}

static int read_number(reader *r, const config_field *f, const yaml_node *n, char *at)
{
    double *to = (double *)at;
    if (f->pointer) {
        to = arena_alloc(r->mem, sizeof *to);
        if (!to) return err_nomem(r->err);
        *(double **)at = to;
    }
    return yaml_double(r->doc, n, r->path, f->low, f->high, to, r->err);
}

/* {pi: 8, nas: 16}, in the order of the layers. */
static int read_parts(reader *r, const config_field *f, const yaml_node *n, placement_shards *to)
{
    if (n->n < f->min || n->n > f->max)
        return yaml_fail(r->doc, n, r->err, "%s: must name %llu to %llu nodes, this has %zu", r->path,
                         (unsigned long long)f->min, (unsigned long long)f->max, n->n);
    placement_part *parts = arena_alloc(r->mem, n->n * sizeof *parts);
    int rc = parts ? 0 : err_nomem(r->err);
    for (size_t i = 0; !rc && i < n->n; i++) {
        uint64_t layers;
        size_t before = config_read_enter(r, n->keys[i]->text, 0);
        rc = yaml_u64(r->doc, n->items[i], r->path, 1, PLACEMENT_LAYERS_MAX, &layers, r->err);
        if (!rc) parts[i] = (placement_part){.node = n->keys[i]->text, .n_layers = (size_t)layers};
        config_read_leave(r, before);
    }
    to->parts = parts;
    to->n_parts = n->n;
    return rc;
}

static int read_shards(reader *r, const config_field *f, const yaml_node *n, placement_shards *to)
{
    uint64_t count;
    if (n->kind == YAML_MAP) return read_parts(r, f, n, to);
    to->automatic = n->kind == YAML_SCALAR && strcmp(n->text, "auto") == 0;
    if (to->automatic) return 0;
    if (n->kind != YAML_SCALAR || !isdigit((unsigned char)*n->text))
        return yaml_fail(r->doc, n, r->err,
                         "%s: must be auto, a number of %llu to %llu, or how many layers each node has "
                         "(example: {pi: 8, nas: 16})",
                         r->path, (unsigned long long)f->min, (unsigned long long)f->max);
    int rc = yaml_u64(r->doc, n, r->path, f->min, f->max, &count, r->err);
    if (!rc) to->n = (size_t)count;
    return rc;
}

static int read_json(reader *r, const config_field *f, const yaml_node *n, const char **ret)
{
    buf text = {0};
    int rc = 0;
    yaml_put_json(&text, n);
    if (text.len > f->max)
        rc = yaml_fail(r->doc, n, r->err, "%s: may have %llu bytes as JSON, this has %zu", r->path,
                       (unsigned long long)f->max, text.len);
    else if (text.failed || !(*ret = arena_strndup(r->mem, text.data, text.len)))
        rc = err_nomem(r->err);
    buf_done(&text);
    return rc;
}

/* One of a list: a map, or the text that some records take in its place. */
static int read_item(reader *r, const config_field *list, const yaml_node *n, char *into)
{
    set_defaults(list->of, into);
    const config_field *f = list->alone && n->kind == YAML_SCALAR ? find_field(list->of, list->alone) : NULL;
    return f ? config_read_read_text(r, n, f->min, f->max, (const char **)(void *)(into + f->at))
             : read_record(r, list->of, n, into);
}

static int read_list(reader *r, const config_field *f, const yaml_node *n, char *into)
{
    if (n->kind != YAML_LIST) return wrong_kind(r, n, YAML_LIST);
    if (n->n < f->min || n->n > f->max)
        return yaml_fail(r->doc, n, r->err, "%s: must have %llu to %llu entries, this has %zu", r->path,
                         (unsigned long long)f->min, (unsigned long long)f->max, n->n);
    size_t bytes = f->of ? f->of->bytes : sizeof(const char *);
    char *items = arena_alloc(r->mem, (n->n + 1) * bytes);
    if (!items) return err_nomem(r->err);
    memcpy(into + f->at, &items, sizeof items);
    store_uint(into + f->at_n, f->width_n, n->n);
    int rc = 0;
    for (size_t i = 0; !rc && i < n->n; i++) {
        size_t before = config_read_enter(r, NULL, i);
        rc = f->of ? read_item(r, f, n->items[i], items + i * bytes)
                   : config_read_read_text(r, n->items[i], 1, f->max_text, (const char **)(void *)items + i);
        rc = config_faults_add(r->faults, rc, r->err);
        config_read_leave(r, before);
    }
    return rc;
}

/* The rows of f->of are the key and the value. */
static int read_pairs(reader *r, const config_field *f, const yaml_node *n, char *into)
{
    const config_field *key = &f->of->fields[0], *value = &f->of->fields[1];
    if (n->kind != YAML_MAP) return wrong_kind(r, n, YAML_MAP);
    if (n->n < f->min || n->n > f->max)
        return yaml_fail(r->doc, n, r->err, "%s: must have %llu to %llu entries, this has %zu", r->path,
                         (unsigned long long)f->min, (unsigned long long)f->max, n->n);
    char *items = arena_alloc(r->mem, (n->n + 1) * f->of->bytes);
    if (!items) return err_nomem(r->err);
    memcpy(into + f->at, &items, sizeof items);
    store_uint(into + f->at_n, f->width_n, n->n);
    int rc = 0;
    for (size_t i = 0; !rc && i < n->n; i++) {
        char *item = items + i * f->of->bytes;
        rc =
            config_read_read_text(r, n->keys[i], key->min, key->max, (const char **)(void *)(item + key->at));
        size_t before = config_read_enter(r, n->keys[i]->text, 0);
        if (!rc)
            rc = config_read_read_text(r, n->items[i], value->min, value->max,
                                       (const char **)(void *)(item + value->at));
        rc = config_faults_add(r->faults, rc, r->err);
        config_read_leave(r, before);
    }
    return rc;
}

static int read_field(reader *r, const config_field *f, const yaml_node *n, char *into)
{
    size_t word = 0;
    if (f->kind == CONFIG_WORD && f->of && n->kind == YAML_MAP) {
        store_uint(into + f->at, f->width, count_words(f->words));
        return read_record(r, f->of, n, into);
    }
    if (f->kind == CONFIG_UINT && f->of && n->kind == YAML_MAP) {
        set_defaults(f->of, into);
        return read_record(r, f->of, n, into);
    }
    int rc = f->words ? find_word(r, f, n, &word) : 0;
    if (rc) return rc;
    switch (f->kind) {
    case CONFIG_TEXT: return config_read_read_text(r, n, f->min, f->max, (const char **)(into + f->at));
    case CONFIG_STAGE: return read_stage_kind(r, f, n, into + f->at);
    case CONFIG_WORD: store_uint(into + f->at, f->width, word); return 0;
    case CONFIG_UINT: return read_uint(r, f, n, into + f->at);
    case CONFIG_INT: return read_int(r, f, n, (int *)(void *)(into + f->at));
    case CONFIG_NUMBER: return read_number(r, f, n, into + f->at);
    case CONFIG_BOOL: return yaml_bool(r->doc, n, r->path, (bool *)(into + f->at), r->err);
    case CONFIG_SECTION: return read_record(r, f->of, n, into);
    case CONFIG_SHARDS: return read_shards(r, f, n, (placement_shards *)(void *)(into + f->at));
    case CONFIG_JSON: return read_json(r, f, n, (const char **)(void *)(into + f->at));
    case CONFIG_LIST: return read_list(r, f, n, into);
    case CONFIG_PAIRS: return read_pairs(r, f, n, into);
    }
    return 0;
}

/* ---- one map ---- */

static void set_defaults(const config_record *rec, char *into)
{
    for (const config_field *f = rec->fields; f < rec->fields + rec->n; f++) {
        if (f->kind == CONFIG_SECTION) set_defaults(f->of, into);
        if (f->kind == CONFIG_TEXT) *(const char **)(into + f->at) = f->otherwise_text;
        if (f->kind == CONFIG_UINT)
            store_uint(into + f->at, f->width, f->otherwise * (f->unit ? f->unit : 1));
    }
}

static const config_field *find_field(const config_record *rec, const char *key)
{
    for (size_t i = 0; i < rec->n; i++)
        if (strcmp(rec->fields[i].key, key) == 0) return &rec->fields[i];
    return NULL;
}

static int check_required(reader *r, const config_record *rec, const yaml_node *n)
{
    for (const config_field *f = rec->fields; f < rec->fields + rec->n; f++)
        if (f->required && !yaml_get(n, f->key))
            return yaml_fail(r->doc, n, r->err, "%s%s'%s' is required: %s", r->path, *r->path ? ": " : "",
                             f->key, f->about);
    return 0;
}

static int read_record(reader *r, const config_record *rec, const yaml_node *n, char *into)
{
    if (n->kind != YAML_MAP) return wrong_kind(r, n, YAML_MAP);
    int rc = 0;
    bool known = true;
    for (size_t i = 0; !rc && i < n->n; i++) {
        if (find_field(rec, n->keys[i]->text)) continue;
        known = false;
        rc = config_faults_add(r->faults, unknown_key(r, rec, n->keys[i]), r->err);
    }
    /* What is required may be there, wrongly spelt. */
    if (!rc && known) rc = config_faults_add(r->faults, check_required(r, rec, n), r->err);
    for (size_t i = 0; !rc && i < n->n; i++) {
        const config_field *f = find_field(rec, n->keys[i]->text);
        size_t before = config_read_enter(r, n->keys[i]->text, 0);
        rc = f ? config_faults_add(r->faults, read_field(r, f, n->items[i], into), r->err) : 0;
        config_read_leave(r, before);
    }
    return rc;
}

int config_read_all(const config_record *schema, const stage_registry *kinds, const yaml_doc *doc, arena *mem,
                    void *into, config_faults *faults, shoal_err *err)
{
    reader r = {.kinds = kinds, .doc = doc, .mem = mem, .faults = faults, .err = err};
    set_defaults(schema, into);
    return config_faults_add(faults, read_record(&r, schema, yaml_root(doc), into), err);
}

int config_read(const config_record *schema, const stage_registry *kinds, const yaml_doc *doc, arena *mem,
                void *into, shoal_err *err)
{
    return config_read_all(schema, kinds, doc, mem, into, NULL, err);
}
