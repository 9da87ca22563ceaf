/* kserve_json.c: tensors as the protocol's JSON has them, with its extension for binary data; see kserve.h.
 * Source: the Open Inference Protocol, "HTTP/REST" and "Binary Tensor Data Extension". */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/kserve.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/utf8.h"

/* ---- data in ------------------------------------------------------------------------------------- */

static int refuse_value(const kserve_tensor *t, api_error *e)
{
    return api_error_bad(e, t->name, "tensor \"%.64s\": a value in \"data\" is no %s", t->name,
                         kserve_type_name(t->type));
}

static bool add_int(kserve_tensor *t, int64_t v, int64_t min, int64_t max)
{
    if (v < min || v > max) return false;
    buf_append(&t->raw, &v, kserve_type_bytes(t->type)); /* the low bytes come first */
    return true;
}

static bool add_integer(kserve_tensor *t, const json_t *v)
{
    int64_t x = json_integer_value(v);
    if (!json_is_integer(v)) return false;
    switch (t->type) {
    case KSERVE_UINT8: return add_int(t, x, 0, UINT8_MAX);
    case KSERVE_UINT16: return add_int(t, x, 0, UINT16_MAX);
    case KSERVE_UINT32: return add_int(t, x, 0, UINT32_MAX);
    case KSERVE_UINT64: return add_int(t, x, 0, INT64_MAX);
    case KSERVE_INT8: return add_int(t, x, INT8_MIN, INT8_MAX);
    case KSERVE_INT16: return add_int(t, x, INT16_MIN, INT16_MAX);
    case KSERVE_INT32: return add_int(t, x, INT32_MIN, INT32_MAX);
    default: return add_int(t, x, INT64_MIN, INT64_MAX);
    }
}

/* null is a missing value, as scikit-learn's clients write NaN. */
static bool add_real(kserve_tensor *t, const json_t *v)
{
    double x = json_is_null(v) ? (double)NAN : json_number_value(v);
    if (!json_is_number(v) && !json_is_null(v)) return false;
    if (t->type == KSERVE_FP64) {
        kserve_add_f64(t, x);
        return true;
    }
    if (fabs(x) > (double)FLT_MAX) return false;
    kserve_add_f32(t, (float)x);
    return true;
}

static bool add_value(kserve_tensor *t, const json_t *v)
{
    uint8_t truth = json_is_true(v);
    switch (t->type) {
    case KSERVE_BYTES:
        if (json_is_string(v)) kserve_add_text(t, json_string_value(v), json_string_length(v));
        return json_is_string(v);
    case KSERVE_BOOL: buf_append(&t->raw, &truth, 1); return json_is_boolean(v);
    case KSERVE_FP32:
    case KSERVE_FP64: return add_real(t, v);
    default: return add_integer(t, v);
    }
}

/* As deep as JSON_DEPTH_MAX at most, which the parser has seen to. */
int kserve_read_data(kserve_tensor *t, const json_t *data, api_error *e)
{
    json_t *v;
    size_t i;
    if (!json_is_array(data))
        return api_error_bad(e, t->name, "tensor \"%.64s\": \"data\" must be an array", t->name);
    json_array_foreach(data, i, v)
    {
        int rc = json_is_array(v) ? kserve_read_data(t, v, e) : add_value(t, v) ? 0 : refuse_value(t, e);
        if (rc != 0) return rc;
    }
    return 0;
}

static int read_shape(kserve_tensor *t, const json_t *shape, api_error *e)
{
    if (!json_is_array(shape) || json_array_size(shape) > KSERVE_DIMS_MAX)
        return api_error_bad(e, t->name, "tensor \"%.64s\": \"shape\" must be an array of at most %d numbers",
                             t->name, KSERVE_DIMS_MAX);
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *v = json_array_get(shape, i);
        if (!json_is_integer(v))
            return api_error_bad(e, t->name, "tensor \"%.64s\": \"shape\" must be whole numbers", t->name);
        t->shape[t->n_dims++] = json_integer_value(v);
    }
    return 0;
}

/* ---- requests ------------------------------------------------------------------------------------ */

typedef struct tail { /* what is behind the JSON */
    const char *bytes;
    size_t n;
} tail;

static int take_binary(kserve_tensor *t, int64_t size, tail *rest, api_error *e)
{
    if (size < 0 || (uint64_t)size > rest->n)
        return api_error_bad(e, t->name,
                             "tensor \"%.64s\": \"binary_data_size\" is %lld, and %zu bytes follow the JSON",
                             t->name, (long long)size, rest->n);
    if (buf_append(&t->raw, rest->bytes, (size_t)size) != 0) return api_error_nomem(e);
    rest->bytes += size;
    rest->n -= (size_t)size;
    return 0;
}

static int read_input(kserve_ask *a, const json_t *o, size_t i, tail *rest, api_error *e)
{
    const char *name = NULL, *type = NULL;
    kserve_type kind = KSERVE_BYTES;
    int64_t size = -1;
    if (!json_is_object(o)) return api_error_bad(e, "inputs", "inputs[%zu] must be an object", i);
    int rc = fields_str(o, "name", &name, e);
    if (rc == 0) rc = fields_str(o, "datatype", &type, e);
    if (rc != 0) return rc;
    if (!name || !type) return api_error_bad(e, "inputs", "inputs[%zu] needs \"name\" and \"datatype\"", i);
    if (!kserve_type_of(type, &kind))
        return api_error_bad(e, "inputs", "tensor \"%.64s\": there is no datatype \"%.32s\" here", name,
                             type);
    if (kserve_find(&a->in, name)) return api_error_bad(e, "inputs", "there are two tensors \"%.64s\"", name);
    kserve_tensor *t = kserve_add(&a->in, name, kind);
    if (!t) return api_error_nomem(e);
    const json_t *params = fields_get(o, "parameters");
    const json_t *binary = fields_get(params, "binary_data_size");
    rc = read_shape(t, fields_get(o, "shape"), e);
    if (rc == 0 && binary && fields_get(o, "data"))
        rc = api_error_bad(
            e, name, "tensor \"%.64s\" has both \"data\" and \"binary_data_size\"; one says its content",
            name);
    if (rc == 0 && binary) rc = fields_int(params, "binary_data_size", 0, INT64_MAX, &size, e);
    if (rc == 0) rc = binary ? take_binary(t, size, rest, e) : kserve_read_data(t, fields_get(o, "data"), e);
    return rc == 0 ? kserve_check(t, e) : rc;
}

static int read_inputs(kserve_ask *a, tail *rest, api_error *e)
{
    const json_t *inputs = fields_get(a->root, "inputs");
    size_t n = json_array_size(inputs);
    int rc = 0;
    if (!json_is_array(inputs) || n == 0 || n > KSERVE_TENSORS_MAX)
        return api_error_bad(e, "inputs", "\"inputs\" must be an array of 1 to %d tensors",
                             KSERVE_TENSORS_MAX);
    for (size_t i = 0; rc == 0 && i < n; i++) rc = read_input(a, json_array_get(inputs, i), i, rest, e);
    if (rc == 0 && rest->n > 0)
        rc = api_error_bad(e, "inputs", "%zu bytes behind the JSON belong to no tensor", rest->n);
    return rc;
}

/* Each output once, and none as Triton's classification extension, which is not offered. */
static int check_outputs(const json_t *outputs, api_error *e)
{
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *o = json_array_get(outputs, i);
        const char *name = fields_text(fields_get(o, "name"));
        if (fields_get(fields_get(o, "parameters"), "classification"))
            return api_error_bad(e, "outputs",
                                 "\"classification\" is not offered; outputs \"label\" and "
                                 "\"scores\" say what it does");
        for (size_t k = 0; name && k < i; k++) {
            const char *other = fields_text(fields_get(json_array_get(outputs, k), "name"));
            if (other && strcmp(name, other) == 0)
                return api_error_bad(e, "outputs", "output \"%.64s\" is asked for twice", name);
        }
    }
    return 0;
}

/* The objects that a request may have. */
static int read_params(kserve_ask *a, api_error *e)
{
    int rc = fields_str(a->root, "id", &a->id, e);
    a->params = fields_get(a->root, "parameters");
    a->outputs = fields_get(a->root, "outputs");
    if (rc != 0) return rc;
    if (a->params && !json_is_object(a->params))
        return api_error_bad(e, "parameters", "\"parameters\" must be an object");
    if (a->outputs && (!json_is_array(a->outputs) || json_array_size(a->outputs) > KSERVE_SLOTS_MAX))
        return api_error_bad(e, "outputs", "\"outputs\" must be an array of at most %d", KSERVE_SLOTS_MAX);
    if ((rc = check_outputs(a->outputs, e)) != 0) return rc;
    return fields_bool(a->params, "binary_data_output", &a->binary, e);
}

int kserve_ask_read(kserve_ask *ret, const char *body, size_t n, size_t n_json, api_error *e)
{
    *ret = (kserve_ask){0};
    if (n_json > n)
        return api_error_bad(e, "inference-header-content-length",
                             "Inference-Header-Content-Length is %zu, and the body has %zu bytes", n_json, n);
    tail rest = {body + n_json, n - n_json};
    int rc = fields_parse(&ret->root, body, n_json, e);
    if (rc == 0) rc = read_params(ret, e);
    return rc == 0 ? read_inputs(ret, &rest, e) : rc;
}

void kserve_ask_done(kserve_ask *a)
{
    kserve_done(&a->in);
    json_drop(a->root);
    *a = (kserve_ask){0};
}

/* ---- answers ------------------------------------------------------------------------------------- */

static void kserve_json_put_number(buf *out, const kserve_tensor *t, size_t *at)
{
    uint64_t u;
    int64_t i;
    if (t->type == KSERVE_UINT64) {
        memcpy(&u, t->raw.data + *at, sizeof u);
        buf_printf(out, "%llu", (unsigned long long)u);
    } else if (t->type == KSERVE_INT64) {
        memcpy(&i, t->raw.data + *at, sizeof i);
        buf_printf(out, "%lld", (long long)i);
    }
    double v = kserve_next_number(t, at);
    if (t->type == KSERVE_UINT64 || t->type == KSERVE_INT64) return;
    if (t->type == KSERVE_BOOL)
        buf_puts(out, v != 0 ? "true" : "false");
    else if (!isfinite(v))
        buf_puts(out, "null");
    else
        buf_printf(out, t->type == KSERVE_FP64 ? "%.17g" : t->type == KSERVE_FP32 ? "%.9g" : "%.0f", v);
}

void kserve_put_data(buf *out, const kserve_tensor *t)
{
    size_t at = 0, len;
    buf_putc(out, '[');
    for (size_t i = 0; i < t->n; i++) {
        if (i) buf_putc(out, ',');
        if (kserve_is_number(t->type)) {
            kserve_json_put_number(out, t, &at);
        } else {
            const char *s = kserve_next_text(t, &at, &len);
            json_put_string(out, s, len);
        }
    }
    buf_putc(out, ']');
}

static void put_output(buf *out, buf *tail, const kserve_tensor *t, bool binary)
{
    buf_putc(out, '{');
    json_put_text(out, "name", t->name);
    buf_printf(out, ",\"datatype\":\"%s\",\"shape\":[", kserve_type_name(t->type));
    for (size_t i = 0; i < t->n_dims; i++) buf_printf(out, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    buf_putc(out, ']');
    if (binary) {
        buf_printf(out, ",\"parameters\":{\"binary_data_size\":%zu}}", t->raw.len);
        buf_append(tail, t->raw.data, t->raw.len);
    } else {
        buf_puts(out, ",\"data\":");
        kserve_put_data(out, t);
        buf_putc(out, '}');
    }
}

/* One of "outputs". */
static int put_asked(buf *out, buf *tail, const kserve_ask *a, const kserve_tensors *t, const json_t *o,
                     api_error *e)
{
    const char *name = NULL;
    bool binary = a->binary;
    if (!json_is_object(o)) return api_error_bad(e, "outputs", "\"outputs\" must be objects");
    int rc = fields_str(o, "name", &name, e);
    if (rc == 0) rc = fields_bool(fields_get(o, "parameters"), "binary_data", &binary, e);
    if (rc != 0) return rc;
    const kserve_tensor *found = name ? kserve_find(t, name) : NULL;
    if (!found)
        return api_error_bad(e, "outputs", "there is no output \"%.64s\": the model's metadata lists them",
                             name ? name : "");
    put_output(out, tail, found, binary && !a->no_binary);
    return 0;
}

int kserve_put_answer(buf *out, buf *tail, const kserve_ask *a, const kserve_tensors *t, const char *model,
                      const char *version, api_error *e)
{
    size_t n = a->outputs ? json_array_size(a->outputs) : t->n;
    int rc = 0;
    buf_putc(out, '{');
    json_put_text(out, "model_name", model);
    json_put_text(out, "model_version", version);
    if (a->id) json_put_text(out, "id", a->id);
    buf_puts(out, ",\"outputs\":[");
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i) buf_putc(out, ',');
        if (a->outputs)
            rc = put_asked(out, tail, a, t, json_array_get(a->outputs, i), e);
        else
            put_output(out, tail, &t->items[i], a->binary && !a->no_binary);
    }
    buf_putc(out, ']');
    if (a->reply_params) buf_printf(out, ",\"parameters\":%s", a->reply_params);
    buf_putc(out, '}');
    if (rc == 0 && (out->failed || tail->failed)) rc = api_error_nomem(e);
    return rc;
}
