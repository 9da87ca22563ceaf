/* gguf.c: GGUF from hostile bytes; gguf.h has the format. Everything is read through one bounded cursor, and
 * a count is held against the bytes that are left before anything is allocated for it. */
#include "model/files/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/cur.h"
#include "base/utf8.h"

enum { KEY_MAX = 65535, TENSOR_NAME_MAX = 255, ARRAY_DEPTH_MAX = 4, ALIGNMENT_DEFAULT = 32 };

/* Names of the tensor types other tools write, so that an error can say which one it met. */
static const char *const foreign_type[] = {
    [0] = "F32",    [1] = "F16",    [2] = "Q4_0",     [3] = "Q4_1",    [6] = "Q5_0",     [7] = "Q5_1",
    [8] = "Q8_0",   [9] = "Q8_1",   [10] = "Q2_K",    [11] = "Q3_K",   [12] = "Q4_K",    [13] = "Q5_K",
    [14] = "Q6_K",  [15] = "Q8_K",  [16] = "IQ2_XXS", [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S",
    [21] = "IQ3_S", [22] = "IQ2_S", [23] = "IQ4_XS",  [24] = "I8",     [25] = "I16",     [26] = "I32",
    [27] = "I64",   [28] = "F64",   [29] = "IQ1_M",   [30] = "BF16",   [34] = "TQ1_0",   [35] = "TQ2_0",
    [39] = "MXFP4",
};

static size_t type_bytes(uint32_t type)
{
    switch (type) {
#define CASE(e, name, number, bytes) \
    case number: return bytes;
        GGUF_TYPE_TABLE(CASE)
#undef CASE
    }
    return 0;
}

static const char *type_name(uint32_t type)
{
    switch (type) {
#define CASE(e, name, number, bytes) \
    case number: return name;
        GGUF_TYPE_TABLE(CASE)
#undef CASE
    }
    return "unknown";
}

static int truncated(const gguf *g, const cur *c, shoal_err *err)
{
    return err_set(err, SHOAL_EFORMAT, "%s: the file ends inside its header (at byte %zu of %zu)", g->what,
                   cur_offset(c), (size_t)(c->end - c->start));
}

/* A string copied with a NUL behind it: valid UTF-8, 1..max bytes. */
static int take_name(gguf *g, cur *c, size_t max, const char *kind, const char **ret, shoal_err *err)
{
    uint64_t n = cur_u64(c);
    if (c->failed) return truncated(g, c, err);
    if (n == 0 || n > max)
        return err_set(err, SHOAL_EFORMAT, "%s: a %s of %llu bytes at byte %zu; 1 to %zu are allowed",
                       g->what, kind, (unsigned long long)n, cur_offset(c), max);
    const char *s = (const char *)cur_take(c, (size_t)n);
    if (!s) return truncated(g, c, err);
    if (memchr(s, 0, (size_t)n) || !utf8_valid(s, (size_t)n, NULL))
        return err_set(err, SHOAL_EFORMAT, "%s: a %s that is not text ends at byte %zu", g->what, kind,
                       cur_offset(c));
    char *copy = arena_strndup(g->mem, s, (size_t)n);
    if (!copy) return err_nomem(err);
    *ret = copy;
    return 0;
}

/* Step over n values of one type. The least size is checked before the loop, so that a huge count
 * costs nothing. */
static int skip_values(const gguf *g, cur *c, uint32_t type, uint64_t n, int depth, const char *key,
                       shoal_err *err)
{
    size_t each = type_bytes(type), bytes;
    if (type == GGUF_STRING) each = 8;
    if (type == GGUF_ARRAY) each = 12;
    if (each == 0)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: key \"%s\" has the unknown value type %u", g->what, key,
                       type);
    if (size_mul((size_t)n, each, &bytes) || bytes > cur_left(c))
        return err_set(err, SHOAL_EFORMAT,
                       "%s: key \"%s\" holds %llu values, more than the file has room for", g->what, key,
                       (unsigned long long)n);
    if (type != GGUF_STRING && type != GGUF_ARRAY) {
        cur_take(c, bytes);
        return 0;
    }
    if (type == GGUF_ARRAY && depth >= ARRAY_DEPTH_MAX)
        return err_set(err, SHOAL_ELIMIT, "%s: key \"%s\" nests arrays deeper than %d levels", g->what, key,
                       ARRAY_DEPTH_MAX);
    for (uint64_t i = 0; i < n; i++) {
        int rc = 0;
        if (type == GGUF_STRING) {
            cur_take(c, (size_t)cur_u64(c));
        } else {
            uint32_t elem = cur_u32(c);
            uint64_t count = cur_u64(c);
            if (!c->failed) rc = skip_values(g, c, elem, count, depth + 1, key, err);
        }
        if (rc != 0) return rc;
        if (c->failed) return truncated(g, c, err);
    }
    return 0;
}

static int parse_kv(gguf *g, cur *c, gguf_kv *kv, shoal_err *err)
{
    int rc = take_name(g, c, KEY_MAX, "metadata key", &kv->key, err);
    if (rc != 0) return rc;
    uint32_t type = cur_u32(c);
    uint64_t n = 1;
    uint32_t elem = type;
    int depth = 0;
    if (type == GGUF_ARRAY) {
        elem = cur_u32(c);
        n = cur_u64(c);
        depth = 1;
    }
    if (c->failed) return truncated(g, c, err);
    kv->data = c->at;
    rc = skip_values(g, c, elem, n, depth, kv->key, err);
    if (rc != 0) return rc;
    if (c->failed) return truncated(g, c, err);
    kv->type = (gguf_type)type;
    kv->elem = (gguf_type)elem;
    kv->n = (size_t)n;
    kv->bytes = (size_t)(c->at - kv->data);
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(gguf_kv *const *)a)->key, (*(gguf_kv *const *)b)->key);
}

static int parse_metadata(gguf *g, cur *c, uint64_t n_kv, shoal_err *err)
{
    /* A pair takes at least 14 bytes: a length, one character, a type, one byte. */
    if (n_kv > cur_left(c) / 14)
        return err_set(err, SHOAL_EFORMAT, "%s: claims %llu metadata pairs, more than fit into the file",
                       g->what, (unsigned long long)n_kv);
    g->n_kv = (size_t)n_kv;
    g->kv = arena_alloc(g->mem, g->n_kv * sizeof *g->kv + 1);
    g->by_key = arena_alloc(g->mem, g->n_kv * sizeof *g->by_key + 1);
    if (!g->kv || !g->by_key) return err_nomem(err);
    for (size_t i = 0; i < g->n_kv; i++) {
        int rc = parse_kv(g, c, &g->kv[i], err);
        if (rc != 0) return rc;
        g->by_key[i] = &g->kv[i];
    }
    qsort(g->by_key, g->n_kv, sizeof *g->by_key, by_key);
    for (size_t i = 1; i < g->n_kv; i++)
        if (strcmp(g->by_key[i - 1]->key, g->by_key[i]->key) == 0)
            return err_set(err, SHOAL_EFORMAT, "%s: metadata key \"%s\" appears twice", g->what,
                           g->by_key[i]->key);
    return 0;
}

static int tensor_bytes(const gguf *g, tensor *t, uint32_t type, shoal_err *err)
{
    if (dtype_from_gguf(type, &t->type) != 0) {
        const char *name = type < sizeof foreign_type / sizeof *foreign_type ? foreign_type[type] : NULL;
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "%s: tensor %s has type %s (number %u), which Shoal does not run; take the model's Q4_K_M "
            "or Q8_0 file, or make one of the original: shoal quantize FOLDER OUT.gguf --type "
            "q4_k_m",
            g->what, t->name, name ? name : "unknown", type);
    }
    size_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        if (size_mul(n, t->dims[i], &n))
            return err_set(err, SHOAL_EFORMAT, "%s: tensor %s is larger than memory can be", g->what,
                           t->name);
    size_t block = dtype_block(t->type);
    if (t->dims[0] % block != 0)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s has rows of %zu, no multiple of %s's blocks of %zu",
                       g->what, t->name, t->dims[0], dtype_name(t->type), block);
    if (size_mul(n / block, dtype_block_bytes(t->type), &t->bytes))
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s is larger than memory can be", g->what, t->name);
    return 0;
}

/* Until the start of the data is known, t->data holds the offset. */
static int parse_tensor(gguf *g, cur *c, tensor *t, uint64_t *ret_offset, shoal_err *err)
{
    int rc = take_name(g, c, TENSOR_NAME_MAX, "tensor name", &t->name, err);
    if (rc != 0) return rc;
    t->n_dims = cur_u32(c);
    if (c->failed) return truncated(g, c, err);
    if (t->n_dims == 0 || t->n_dims > 4)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s has %zu dimensions; 1 to 4 are allowed", g->what,
                       t->name, t->n_dims);
    for (size_t i = 0; i < 4; i++) t->dims[i] = i < t->n_dims ? (size_t)cur_u64(c) : 1;
    uint32_t type = cur_u32(c);
    *ret_offset = cur_u64(c);
    if (c->failed) return truncated(g, c, err);
    return tensor_bytes(g, t, type, err);
}

static int place_tensor(const gguf *g, tensor *t, uint64_t offset, const uint8_t *start, size_t len,
                        shoal_err *err)
{
    if (offset % g->alignment != 0)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s starts at offset %llu, which is not aligned to %zu",
                       g->what, t->name, (unsigned long long)offset, g->alignment);
    size_t room = len - g->data_offset;
    if (offset > room)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s starts %llu bytes past the file", g->what, t->name,
                       (unsigned long long)(offset - room));
    if (t->bytes > room - (size_t)offset)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s ends %zu bytes past the file", g->what, t->name,
                       t->bytes - (room - (size_t)offset));
    t->data = start + g->data_offset + offset;
    return 0;
}

static int gguf_by_name(const void *a, const void *b)
{
    return strcmp((*(tensor *const *)a)->name, (*(tensor *const *)b)->name);
}

static int by_data(const void *a, const void *b)
{
    const tensor *s = *(tensor *const *)a, *t = *(tensor *const *)b;
    const uint8_t *x = s->data, *y = t->data;
    if (x == y) return (s->bytes > t->bytes) - (s->bytes < t->bytes); /* one of 0 elements before the next */
    return (x > y) - (x < y);
}

static int check_distinct(const gguf *g, shoal_err *err)
{
    tensor **order = arena_alloc(g->mem, g->n_tensors * sizeof *order + 1);
    if (!order) return err_nomem(err);
    for (size_t i = 0; i < g->n_tensors; i++) order[i] = &g->tensors[i];
    qsort(order, g->n_tensors, sizeof *order, gguf_by_name);
    for (size_t i = 1; i < g->n_tensors; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            return err_set(err, SHOAL_EFORMAT, "%s: tensor %s appears twice", g->what, order[i]->name);
    qsort(order, g->n_tensors, sizeof *order, by_data);
    for (size_t i = 1; i < g->n_tensors; i++) {
        const uint8_t *end = (const uint8_t *)order[i - 1]->data + order[i - 1]->bytes;
        if (end > (const uint8_t *)order[i]->data)
            return err_set(err, SHOAL_EFORMAT, "%s: tensors %s and %s overlap by %zu bytes", g->what,
                           order[i - 1]->name, order[i]->name,
                           (size_t)(end - (const uint8_t *)order[i]->data));
    }
    return 0;
}

static int read_alignment(gguf *g, shoal_err *err)
{
    int64_t alignment = ALIGNMENT_DEFAULT;
    int rc = gguf_get_int(g, "general.alignment", 8, 1 << 20, &alignment, err);
    if (rc != 0) return rc;
    if ((alignment & (alignment - 1)) != 0)
        return err_set(err, SHOAL_EFORMAT, "%s: general.alignment is %lld, no power of two", g->what,
                       (long long)alignment);
    g->alignment = (size_t)alignment;
    return 0;
}

static int parse_tensors(gguf *g, cur *c, uint64_t n_tensors, shoal_err *err)
{
    /* An info takes at least 33 bytes: name, dimension count, one dimension, type, offset. */
    if (n_tensors > cur_left(c) / 33)
        return err_set(err, SHOAL_EFORMAT, "%s: claims %llu tensors, more than fit into the file", g->what,
                       (unsigned long long)n_tensors);
    g->n_tensors = (size_t)n_tensors;
    g->tensors = arena_alloc(g->mem, g->n_tensors * sizeof *g->tensors + 1);
    uint64_t *offsets = arena_alloc(g->mem, g->n_tensors * sizeof *offsets + 1);
    if (!g->tensors || !offsets) return err_nomem(err);
    int rc = read_alignment(g, err);
    for (size_t i = 0; rc == 0 && i < g->n_tensors; i++)
        rc = parse_tensor(g, c, &g->tensors[i], &offsets[i], err);
    if (rc != 0) return rc;
    size_t len = (size_t)(c->end - c->start);
    g->data_offset = (cur_offset(c) + g->alignment - 1) & ~(g->alignment - 1);
    if (g->data_offset > len) {
        if (g->n_tensors) return truncated(g, c, err);
        g->data_offset = len;
    }
    for (size_t i = 0; rc == 0 && i < g->n_tensors; i++)
        rc = place_tensor(g, &g->tensors[i], offsets[i], c->start, len, err);
    return rc != 0 ? rc : check_distinct(g, err);
}

static int check_version(gguf *g, shoal_err *err)
{
    if ((g->version & 0xFFFF) == 0 && g->version != 0)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: a big-endian GGUF file; only little-endian ones are supported", g->what);
    if (g->version != 2 && g->version != 3)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: GGUF version %u; versions 2 and 3 are supported",
                       g->what, g->version);
    return 0;
}

static int parse_file(gguf *g, cur *c, shoal_err *err)
{
    const uint8_t *magic = cur_take(c, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return err_set(err, SHOAL_EFORMAT, "%s: not a GGUF file (it does not start with \"GGUF\")", g->what);
    g->version = cur_u32(c);
    if (c->failed) return truncated(g, c, err);
    int rc = check_version(g, err);
    if (rc != 0) return rc;
    uint64_t n_tensors = cur_u64(c), n_kv = cur_u64(c);
    if (c->failed) return truncated(g, c, err);
    rc = parse_metadata(g, c, n_kv, err);
    return rc != 0 ? rc : parse_tensors(g, c, n_tensors, err);
}

int gguf_parse(gguf **ret, const void *data, size_t len, const char *what, shoal_err *err)
{
    arena *mem = arena_new(0);
    gguf *g = mem ? arena_alloc(mem, sizeof *g) : NULL;
    if (!g) {
        arena_free(mem);
        return err_nomem(err);
    }
    g->mem = mem;
    g->what = arena_strdup(mem, what);
    cur c = cur_over(data, len);
    int rc = g->what ? parse_file(g, &c, err) : err_nomem(err);
    if (rc != 0) {
        gguf_free(g);
        return rc;
    }
    *ret = g;
    return 0;
}

void gguf_free(gguf *g)
{
    if (g) arena_free(g->mem);
}

const gguf_kv *gguf_find(const gguf *g, const char *key)
{
    gguf_kv probe = {.key = key}, *p = &probe;
    gguf_kv **hit = g->n_kv ? bsearch(&p, g->by_key, g->n_kv, sizeof *g->by_key, by_key) : NULL;
    return hit ? *hit : NULL;
}

static int wrong_type(const gguf *g, const gguf_kv *kv, const char *wanted, shoal_err *err)
{
    return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" is of type %s where %s belongs", g->what, kv->key,
                   type_name(kv->type), wanted);
}

/* The value as an integer; false when it is none. Unsigned 64-bit values past INT64_MAX saturate,
 * which every caller's range refuses. */
static bool as_int(const gguf_kv *kv, int64_t *ret)
{
    cur c = cur_over(kv->data, kv->bytes);
    switch (kv->type) {
    case GGUF_U8: *ret = cur_u8(&c); return true;
    case GGUF_I8: *ret = (int8_t)cur_u8(&c); return true;
    case GGUF_U16: *ret = cur_u16(&c); return true;
    case GGUF_I16: *ret = (int16_t)cur_u16(&c); return true;
    case GGUF_U32: *ret = cur_u32(&c); return true;
    case GGUF_I32: *ret = (int32_t)cur_u32(&c); return true;
    case GGUF_I64: *ret = (int64_t)cur_u64(&c); return true;
    case GGUF_U64: {
        uint64_t v = cur_u64(&c);
        *ret = v > INT64_MAX ? INT64_MAX : (int64_t)v;
        return true;
    }
    default: return false;
    }
}

int gguf_get_int(const gguf *g, const char *key, int64_t min, int64_t max, int64_t *ret, shoal_err *err)
{
    const gguf_kv *kv = gguf_find(g, key);
    if (!kv) return 0;
    int64_t v;
    if (!as_int(kv, &v)) return wrong_type(g, kv, "an integer", err);
    if (v < min || v > max)
        return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" is %lld, must be between %lld and %lld", g->what, key,
                       (long long)v, (long long)min, (long long)max);
    *ret = v;
    return 0;
}

int gguf_get_num(const gguf *g, const char *key, double min, double max, double *ret, shoal_err *err)
{
    const gguf_kv *kv = gguf_find(g, key);
    if (!kv) return 0;
    cur c = cur_over(kv->data, kv->bytes);
    double v;
    int64_t i;
    if (kv->type == GGUF_F32)
        v = (double)cur_f32(&c);
    else if (kv->type == GGUF_F64)
        v = cur_f64(&c);
    else if (as_int(kv, &i))
        v = (double)i;
    else
        return wrong_type(g, kv, "a number", err);
    if (!(v >= min && v <= max))
        return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" is %g, must be between %g and %g", g->what, key, v,
                       min, max);
    *ret = v;
    return 0;
}

int gguf_get_bool(const gguf *g, const char *key, bool *ret, shoal_err *err)
{
    const gguf_kv *kv = gguf_find(g, key);
    if (!kv) return 0;
    if (kv->type != GGUF_BOOL) return wrong_type(g, kv, "a bool", err);
    *ret = kv->data[0] != 0;
    return 0;
}

const char *gguf_string(const gguf_kv *kv, size_t *ret_len)
{
    if (kv->type != GGUF_STRING) return NULL;
    *ret_len = kv->bytes - 8;
    return (const char *)kv->data + 8;
}

int gguf_get_str(gguf *g, const char *key, const char **ret, shoal_err *err)
{
    const gguf_kv *kv = gguf_find(g, key);
    if (!kv) return 0;
    size_t n;
    const char *s = gguf_string(kv, &n);
    if (!s) return wrong_type(g, kv, "a string", err);
    if (memchr(s, 0, n)) return err_set(err, SHOAL_EFORMAT, "%s: \"%s\" holds a NUL character", g->what, key);
    char *copy = arena_strndup(g->mem, s, n);
    if (!copy) return err_nomem(err);
    *ret = copy;
    return 0;
}

int gguf_get_strings(gguf *g, const char *key, size_t *ret_n, const char *const **ret,
                     const size_t **ret_lens, shoal_err *err)
{
    const gguf_kv *kv = gguf_find(g, key);
    if (!kv) return 0;
    if (kv->type != GGUF_ARRAY || kv->elem != GGUF_STRING)
        return wrong_type(g, kv, "an array of strings", err);
    const char **strings = arena_alloc(g->mem, kv->n * sizeof *strings + 1);
    size_t *lens = arena_alloc(g->mem, kv->n * sizeof *lens + 1);
    if (!strings || !lens) return err_nomem(err);
    cur c = cur_over(kv->data, kv->bytes);
    for (size_t i = 0; i < kv->n; i++) {
        lens[i] = (size_t)cur_u64(&c);
        strings[i] = (const char *)cur_take(&c, lens[i]);
    }
    *ret_n = kv->n;
    *ret = strings;
    *ret_lens = lens;
    return 0;
}

int gguf_get_array(gguf *g, const char *key, gguf_type elem, size_t *ret_n, const void **ret, shoal_err *err)
{
    const gguf_kv *kv = gguf_find(g, key);
    if (!kv) return 0;
    if (kv->type != GGUF_ARRAY || kv->elem != elem) return wrong_type(g, kv, type_name(elem), err);
    void *copy = arena_alloc(g->mem, kv->bytes + 1);
    if (!copy) return err_nomem(err);
    memcpy(copy, kv->data, kv->bytes);
    *ret_n = kv->n;
    *ret = copy;
    return 0;
}
