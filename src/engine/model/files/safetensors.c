/* safetensors.c: safetensors from hostile bytes; safetensors.h has the format. Shapes and offsets are checked
 * against the file before a pointer is made of them; tensor data is not copied. */
#include "model/files/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/cur.h"
#include "json/json.h"

enum { HEADER_MAX = 100 << 20, NAME_MAX_BYTES = 255, SHARDS_MAX = 4096 };

typedef struct st_dtype {
    const char *name;
    size_t bytes;
    dtype type;
} st_dtype;

static const st_dtype dtypes[] = {
    {"F32", 4, DT_F32},    {"F16", 2, DT_F16},       {"BF16", 2, DT_BF16},     {"F64", 8, DT_COUNT},
    {"I64", 8, DT_COUNT},  {"I32", 4, DT_COUNT},     {"I16", 2, DT_COUNT},     {"I8", 1, DT_COUNT},
    {"U64", 8, DT_COUNT},  {"U32", 4, DT_COUNT},     {"U16", 2, DT_COUNT},     {"U8", 1, DT_COUNT},
    {"BOOL", 1, DT_COUNT}, {"F8_E4M3", 1, DT_COUNT}, {"F8_E5M2", 1, DT_COUNT},
};

/* One file being parsed: where its data is, and its tensors' places for the coverage check. */
typedef struct st_span {
    size_t begin, end;
    const char *name;
} st_span;

typedef struct st_file {
    const char *what;
    const uint8_t *data;
    size_t data_len;
    arena *mem;
    st_span *spans;
    size_t n_spans;
} st_file;

void safetensors_list_done(st_list *l)
{
    free(l->items);
    *l = (st_list){0};
}

int safetensors_list_push(st_list *l, const st_tensor *t, shoal_err *err)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        st_tensor *items = realloc(l->items, cap * sizeof *items);
        if (!items) return err_nomem(err);
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n++] = *t;
    return 0;
}

static const st_dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

/* Read the shape, multiply it out. More than four dimensions are no weight of ours: such a tensor
 * is checked and then listed as one that cannot be computed with. */
static int parse_shape(const st_file *f, const char *name, const json_t *shape, st_tensor *t, size_t *ret_n,
                       shoal_err *err)
{
    if (!json_is_array(shape) || json_array_size(shape) > 16)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s has no usable \"shape\"", f->what, name);
    size_t n_dims = json_array_size(shape), n = 1;
    for (size_t i = 0; i < 4; i++) t->t.dims[i] = 1;
    for (size_t i = 0; i < n_dims; i++) {
        const json_t *d = json_array_get(shape, n_dims - 1 - i);
        json_int_t v = json_is_integer(d) ? json_integer_value(d) : -1;
        if (v < 0 || size_mul(n, (size_t)v, &n))
            return err_set(err, SHOAL_EFORMAT, "%s: tensor %s has an impossible shape", f->what, name);
        if (i < 4) t->t.dims[i] = (size_t)v;
    }
    t->t.n_dims = n_dims == 0 ? 1 : n_dims > 4 ? 4 : n_dims;
    if (n_dims > 4) t->t.type = DT_COUNT;
    *ret_n = n;
    return 0;
}

static int parse_span(const st_file *f, const char *name, const json_t *offsets, st_span *ret, shoal_err *err)
{
    const json_t *a = json_array_get(offsets, 0), *b = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(a) || !json_is_integer(b))
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s needs \"data_offsets\" [begin, end]", f->what,
                       name);
    json_int_t begin = json_integer_value(a), end = json_integer_value(b);
    if (begin < 0 || end < begin)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s runs from %lld to %lld", f->what, name,
                       (long long)begin, (long long)end);
    if ((uint64_t)end > f->data_len)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s ends %llu bytes past the file", f->what, name,
                       (unsigned long long)end - f->data_len);
    *ret = (st_span){.begin = (size_t)begin, .end = (size_t)end, .name = name};
    return 0;
}

static int parse_tensor(st_file *f, const char *name, const json_t *o, st_tensor *ret, shoal_err *err)
{
    if (strlen(name) == 0 || strlen(name) > NAME_MAX_BYTES)
        return err_set(err, SHOAL_EFORMAT, "%s: a tensor name of %zu bytes", f->what, strlen(name));
    const char *type_name = json_string_value(json_object_get(o, "dtype"));
    if (!type_name) return err_set(err, SHOAL_EFORMAT, "%s: tensor %s has no \"dtype\"", f->what, name);
    const st_dtype *type = find_dtype(type_name);
    if (!type)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: tensor %s has dtype %.32s, which is not supported",
                       f->what, name, type_name);
    st_tensor t = {.t = {.type = type->type}, .dtype_name = type->name};
    size_t n = 0, bytes;
    int rc = parse_shape(f, name, json_object_get(o, "shape"), &t, &n, err);
    if (rc != 0) return rc;
    t.t.name = arena_strdup(f->mem, name);
    if (!t.t.name) return err_nomem(err);
    st_span *span = &f->spans[f->n_spans];
    rc = parse_span(f, t.t.name, json_object_get(o, "data_offsets"), span, err);
    if (rc != 0) return rc;
    if (size_mul(n, type->bytes, &bytes) || bytes != span->end - span->begin)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s is %zu values of %s but has %zu bytes", f->what,
                       name, n, type->name, span->end - span->begin);
    f->n_spans++;
    t.t.data = f->data + span->begin;
    t.t.bytes = bytes;
    *ret = t;
    return 0;
}

static int by_begin(const void *a, const void *b)
{
    const st_span *x = a, *y = b;
    if (x->begin != y->begin) return (x->begin > y->begin) - (x->begin < y->begin);
    return (x->end > y->end) - (x->end < y->end);
}

static int check_coverage(st_file *f, shoal_err *err)
{
    if (f->n_spans) qsort(f->spans, f->n_spans, sizeof *f->spans, by_begin);
    size_t at = 0;
    for (size_t i = 0; i < f->n_spans; i++) {
        const st_span *s = &f->spans[i];
        if (s->begin < at)
            return err_set(err, SHOAL_EFORMAT, "%s: tensors %s and %s overlap by %zu bytes", f->what,
                           f->spans[i - 1].name, s->name, at - s->begin);
        if (s->begin > at)
            return err_set(err, SHOAL_EFORMAT, "%s: %zu bytes before tensor %s belong to no tensor", f->what,
                           s->begin - at, s->name);
        at = s->end;
    }
    if (at != f->data_len)
        return err_set(err, SHOAL_EFORMAT, "%s: %zu bytes behind the last tensor belong to no tensor",
                       f->what, f->data_len - at);
    return 0;
}

static int parse_header(st_file *f, st_list *out, const json_t *header, shoal_err *err)
{
    if (!json_is_object(header))
        return err_set(err, SHOAL_EFORMAT, "%s: its header is no JSON object", f->what);
    f->spans = arena_alloc(f->mem, (json_object_size(header) + 1) * sizeof *f->spans);
    if (!f->spans) return err_nomem(err);
    const char *name;
    json_t *o;
    json_object_foreach((json_t *)header, name, o)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        st_tensor t;
        int rc = parse_tensor(f, name, o, &t, err);
        if (rc == 0) rc = safetensors_list_push(out, &t, err);
        if (rc != 0) return rc;
    }
    return check_coverage(f, err);
}

int safetensors_parse(st_list *out, arena *mem, const void *data, size_t len, const char *what,
                      shoal_err *err)
{
    cur c = cur_over(data, len);
    uint64_t n = cur_u64(&c);
    if (c.failed) return err_set(err, SHOAL_EFORMAT, "%s: too short to be a safetensors file", what);
    if (n > HEADER_MAX)
        return err_set(err, SHOAL_ELIMIT, "%s: claims a header of %llu bytes; at most %d are allowed", what,
                       (unsigned long long)n, HEADER_MAX);
    const char *text = (const char *)cur_take(&c, (size_t)n);
    if (!text)
        return err_set(err, SHOAL_EFORMAT, "%s: its header ends %llu bytes past the file", what,
                       (unsigned long long)(n - cur_left(&c)));
    json_t *header = NULL;
    int rc = json_parse(&header, text, (size_t)n, what, err);
    if (rc != 0) return rc;
    st_file f = {.what = what, .data = c.at, .data_len = cur_left(&c), .mem = mem};
    rc = parse_header(&f, out, header, err);
    json_decref(header);
    return rc;
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_shard_name(const char *file, const char *what, shoal_err *err)
{
    if (*file == '\0' || strchr(file, '/') || strchr(file, '\\') || strcmp(file, "..") == 0 ||
        strcmp(file, ".") == 0)
        return err_set(err, SHOAL_EINVALID,
                       "%s: names the shard \"%.64s\"; shards must lie in the same folder", what, file);
    return 0;
}

static int collect_shards(const char ***ret_files, size_t *ret_n, arena *mem, json_t *map, const char *what,
                          shoal_err *err)
{
    const char **files = arena_alloc(mem, json_object_size(map) * sizeof *files + 1);
    if (!files) return err_nomem(err);
    size_t n = 0;
    const char *tensor_name;
    json_t *v;
    json_object_foreach(map, tensor_name, v)
    {
        if (!json_is_string(v))
            return err_set(err, SHOAL_EFORMAT, "%s: weight_map of %.64s is no file name", what, tensor_name);
        int rc = check_shard_name(json_string_value(v), what, err);
        if (rc != 0) return rc;
        files[n++] = json_string_value(v);
    }
    if (n == 0) return err_set(err, SHOAL_EFORMAT, "%s: its weight_map is empty", what);
    qsort(files, n, sizeof *files, by_string);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || strcmp(files[kept - 1], files[i]) != 0) files[kept++] = files[i];
    if (kept > SHARDS_MAX)
        return err_set(err, SHOAL_ELIMIT, "%s: names %zu shards, at most %d", what, kept, SHARDS_MAX);
    for (size_t i = 0; i < kept; i++)
        if (!(files[i] = arena_strdup(mem, files[i]))) return err_nomem(err);
    *ret_files = files;
    *ret_n = kept;
    return 0;
}

int safetensors_index_parse(const char ***ret_files, size_t *ret_n, arena *mem, const char *json, size_t len,
                            const char *what, shoal_err *err)
{
    json_t *index = NULL;
    int rc = json_parse(&index, json, len, what, err);
    if (rc != 0) return rc;
    json_t *map = json_object_get(index, "weight_map");
    if (!json_is_object(map)) rc = err_set(err, SHOAL_EFORMAT, "%s: has no \"weight_map\"", what);
    if (rc == 0) rc = collect_shards(ret_files, ret_n, mem, map, what, err);
    json_decref(index);
    return rc;
}
