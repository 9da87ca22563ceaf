/* kserve.c: tensors as bytes; see kserve.h. */
#include "dialects/kserve.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} TYPES[] = {
#define KSERVE_TYPE_ROW(e, name, bytes) {name, bytes},
    KSERVE_TYPES(KSERVE_TYPE_ROW)
#undef KSERVE_TYPE_ROW
};

const char *kserve_type_name(kserve_type t)
{
    return TYPES[t].name;
}

size_t kserve_type_bytes(kserve_type t)
{
    return TYPES[t].bytes;
}

bool kserve_type_of(const char *name, kserve_type *ret)
{
    for (size_t i = 0; i < KSERVE_N_TYPES; i++) {
        if (strcmp(TYPES[i].name, name) != 0) continue;
        *ret = (kserve_type)i;
        return true;
    }
    return false;
}

bool kserve_is_number(kserve_type t)
{
    return t != KSERVE_BYTES;
}

/* ---- lists --------------------------------------------------------------------------------------- */

kserve_tensor *kserve_add(kserve_tensors *t, const char *name, kserve_type type)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 4;
        kserve_tensor *items = realloc(t->items, cap * sizeof *items);
        if (!items) return NULL;
        t->items = items;
        t->cap = cap;
    }
    kserve_tensor *ret = &t->items[t->n++];
    *ret = (kserve_tensor){.name = name, .type = type};
    return ret;
}

void kserve_done(kserve_tensors *t)
{
    for (size_t i = 0; i < t->n; i++) buf_done(&t->items[i].raw);
    free(t->items);
    *t = (kserve_tensors){0};
}

const kserve_tensor *kserve_find(const kserve_tensors *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0) return &t->items[i];
    return NULL;
}

/* ---- elements ------------------------------------------------------------------------------------ */

void kserve_add_text(kserve_tensor *t, const char *s, size_t n)
{
    uint32_t len = (uint32_t)n;
    t->raw.failed |= n > UINT32_MAX;
    buf_append(&t->raw, &len, sizeof len);
    buf_append(&t->raw, s, n);
}

void kserve_add_f32(kserve_tensor *t, float v)
{
    buf_append(&t->raw, &v, sizeof v);
}

void kserve_add_f64(kserve_tensor *t, double v)
{
    buf_append(&t->raw, &v, sizeof v);
}

void kserve_add_i64(kserve_tensor *t, int64_t v)
{
    buf_append(&t->raw, &v, sizeof v);
}

/* NULL: the bytes end within a text. */
static const char *kserve_take_text(const buf *raw, size_t *at, size_t *ret_n)
{
    uint32_t len;
    if (raw->len - *at < sizeof len) return NULL;
    memcpy(&len, raw->data + *at, sizeof len);
    if (raw->len - *at - sizeof len < len) return NULL;
    const char *s = raw->data + *at + sizeof len;
    *at += sizeof len + len;
    *ret_n = len;
    return s;
}

const char *kserve_next_text(const kserve_tensor *t, size_t *at, size_t *ret_n)
{
    const char *s = kserve_take_text(&t->raw, at, ret_n);
    if (s) return s;
    *ret_n = 0;
    return "";
}

double kserve_next_number(const kserve_tensor *t, size_t *at)
{
    const char *p = t->raw.data + *at;
    *at += TYPES[t->type].bytes;
#define READ_AS(type)        \
    type v;                  \
    memcpy(&v, p, sizeof v); \
    return (double)v
    switch (t->type) {
    case KSERVE_BOOL:
    case KSERVE_UINT8: {
        READ_AS(uint8_t);
    }
    case KSERVE_UINT16: {
        READ_AS(uint16_t);
    }
    case KSERVE_UINT32: {
        READ_AS(uint32_t);
    }
    case KSERVE_UINT64: {
        READ_AS(uint64_t);
    }
    case KSERVE_INT8: {
        READ_AS(int8_t);
    }
    case KSERVE_INT16: {
        READ_AS(int16_t);
    }
    case KSERVE_INT32: {
        READ_AS(int32_t);
    }
    case KSERVE_INT64: {
        READ_AS(int64_t);
    }
    case KSERVE_FP32: {
        READ_AS(float);
    }
    case KSERVE_FP64: {
        READ_AS(double);
    }
    case KSERVE_BYTES:
    case KSERVE_N_TYPES: break;
    }
#undef READ_AS
    return 0;
}

/* ---- shapes -------------------------------------------------------------------------------------- */

static int count_shape(const kserve_tensor *t, size_t *ret, api_error *e)
{
    size_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++) {
        if (t->shape[i] < 0)
            return api_error_bad(e, t->name, "tensor \"%.64s\": a dimension of its shape is %lld", t->name,
                                 (long long)t->shape[i]);
        if (size_mul(n, (size_t)t->shape[i], &n))
            return api_error_bad(
                e, t->name, "tensor \"%.64s\": its shape has more elements than there are numbers", t->name);
    }
    *ret = n;
    return 0;
}

/* SIZE_MAX: the bytes end within an element. */
static size_t count_elements(const kserve_tensor *t)
{
    size_t n = 0, at = 0, len, each = TYPES[t->type].bytes;
    if (each) return t->raw.len % each ? SIZE_MAX : t->raw.len / each;
    for (; at < t->raw.len; n++)
        if (!kserve_take_text(&t->raw, &at, &len)) return SIZE_MAX;
    return n;
}

int kserve_check(kserve_tensor *t, api_error *e)
{
    size_t told = 0, n;
    if (t->raw.failed) return api_error_nomem(e);
    int rc = count_shape(t, &told, e);
    if (rc != 0) return rc;
    n = count_elements(t);
    if (n == SIZE_MAX)
        return api_error_bad(e, t->name, "tensor \"%.64s\": its %zu bytes end within an element of %s",
                             t->name, t->raw.len, TYPES[t->type].name);
    if (n != told)
        return api_error_bad(e, t->name, "tensor \"%.64s\" has %zu elements, and its shape says %zu", t->name,
                             n, told);
    t->n = n;
    return 0;
}
