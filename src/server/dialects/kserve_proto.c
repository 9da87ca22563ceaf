/* kserve_proto.c: between two forms of one protocol. */
#include "dialects/kserve_proto.h"

#include <string.h>

#include "dialects/kserve.h"
#include "json/json.h"
#include "messages/fields.h"
#include "base/utf8.h"

/* ---- questions ----------------------------------------------------------------------------------- */

/* A map comes as a list of keys and values, of which each is one of several fields: {"a": 1}. NULL: no
 * memory. */
static json_t *params_of(const json_t *list)
{
    json_t *o = json_object(), *entry, *v;
    size_t i;
    const char *kind;
    bool ok = o;
    json_array_foreach(list, i, entry)
    {
        const char *key = json_string_value(json_object_get(entry, "key"));
        json_object_foreach(json_object_get(entry, "value"), kind, v)
        {
            ok = ok && json_object_set(o, key ? key : "", v) == 0;
        }
    }
    if (ok) return o;
    json_decref(o);
    return NULL;
}

static int set_params(json_t *o, api_error *e)
{
    return fields_put(o, "parameters", params_of(json_object_get(o, "parameters")), e);
}

/* Which list of InferTensorContents has a type's elements. */
static const struct {
    kserve_type type;
    const char *list;
} LISTS[] = {
    {KSERVE_BOOL, "bool_contents"},   {KSERVE_INT8, "int_contents"},    {KSERVE_INT16, "int_contents"},
    {KSERVE_INT32, "int_contents"},   {KSERVE_INT64, "int64_contents"}, {KSERVE_UINT8, "uint_contents"},
    {KSERVE_UINT16, "uint_contents"}, {KSERVE_UINT32, "uint_contents"}, {KSERVE_UINT64, "uint64_contents"},
    {KSERVE_FP32, "fp32_contents"},   {KSERVE_FP64, "fp64_contents"},   {KSERVE_BYTES, "bytes_contents"},
};

static int add_texts(kserve_tensor *t, const json_t *list, api_error *e)
{
    const json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        buf bytes = {0};
        int rc = base64_decode(&bytes, json_string_value(v), json_string_length(v));
        if (rc == 0) kserve_add_text(t, bytes.data ? bytes.data : "", bytes.len);
        buf_done(&bytes);
        if (rc != 0) return api_error_nomem(e); /* json_proto.c wrote it */
    }
    return 0;
}

static int add_contents(buf *out, const char *name, kserve_type type, const json_t *contents, api_error *e)
{
    kserve_tensor t = {.name = name, .type = type};
    const json_t *list = NULL;
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++)
        if (LISTS[i].type == type) list = json_object_get(contents, LISTS[i].list);
    int rc = !list ? 0 : type == KSERVE_BYTES ? add_texts(&t, list, e) : kserve_read_data(&t, list, e);
    if (rc == 0 && buf_join(out, &t.raw) != 0) rc = api_error_nomem(e);
    buf_done(&t.raw);
    return rc;
}

static int add_raw(buf *out, const json_t *raw, api_error *e)
{
    return base64_decode(out, json_string_value(raw), json_string_length(raw)) == 0 ? 0 : api_error_nomem(e);
}

/* raw NULL: its elements are in contents. A type that nobody knows is left to be refused by its name. */
static int take_input(buf *tail, json_t *in, const json_t *raw, api_error *e)
{
    const char *name = json_string_value(json_object_get(in, "name"));
    const char *type = json_string_value(json_object_get(in, "datatype"));
    const json_t *contents = json_object_get(in, "contents");
    size_t before = tail->len;
    kserve_type kind;
    int rc = set_params(in, e);
    if (rc != 0 || !type || !kserve_type_of(type, &kind)) return rc;
    if (raw && json_object_size(contents))
        return api_error_bad(e, "inputs", "tensor \"%.64s\" has contents beside raw_input_contents",
                             name ? name : "");
    rc = raw ? add_raw(tail, raw, e) : add_contents(tail, name ? name : "", kind, contents, e);
    if (rc != 0) return rc;
    json_t *size = json_integer((json_int_t)(tail->len - before));
    bool ok = json_object_set_new(json_object_get(in, "parameters"), "binary_data_size", size) == 0;
    json_object_del(in, "contents");
    if (!json_object_get(in, "shape")) /* a scalar */
        ok = ok && json_object_set_new(in, "shape", json_array()) == 0;
    return ok ? 0 : api_error_nomem(e);
}

static int take_inputs(buf *tail, const json_t *message, api_error *e)
{
    const json_t *inputs = json_object_get(message, "inputs");
    const json_t *raw = json_object_get(message, "raw_input_contents");
    size_t n = json_array_size(inputs), n_raw = json_array_size(raw);
    int rc = 0;
    if (n_raw && n_raw != n)
        return api_error_bad(e, "raw_input_contents", "raw_input_contents has %zu entries for %zu inputs",
                             n_raw, n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = take_input(tail, json_array_get(inputs, i), n_raw ? json_array_get(raw, i) : NULL, e);
    return rc;
}

/* Raw contents are of all outputs or of none: whoever wants one as contents gets all so. */
static int set_outputs(json_t *message, api_error *e)
{
    json_t *o, *params = json_object_get(message, "parameters");
    size_t i;
    bool raw = !json_is_false(json_object_get(params, "binary_data_output"));
    json_array_foreach(json_object_get(message, "outputs"), i, o)
    {
        if (set_params(o, e) != 0) return e->status;
        json_t *own = json_object_get(o, "parameters");
        const json_t *binary = json_object_get(own, "binary_data");
        raw &= !json_is_false(binary);
        if (json_is_boolean(binary)) json_object_del(own, "binary_data");
    }
    return fields_put(params, "binary_data_output", json_boolean(raw), e);
}

int kserve_proto_ask(buf *out, size_t *ret_n_json, json_t *message, api_error *e)
{
    buf tail = {0};
    int rc = take_inputs(&tail, message, e);
    if (rc == 0) rc = set_params(message, e);
    if (rc == 0) rc = set_outputs(message, e);
    if (rc == 0) {
        json_object_del(message, "raw_input_contents");
        json_put(out, message);
        *ret_n_json = out->len;
        buf_join(out, &tail);
        if (out->failed) rc = api_error_nomem(e);
    }
    buf_done(&tail);
    return rc;
}

/* ---- answers ------------------------------------------------------------------------------------- */

static json_t *text_of_bytes(const char *bytes, size_t n)
{
    buf b = {0};
    json_t *s = base64_encode(&b, bytes, n) == 0 ? json_stringn(b.data ? b.data : "", b.len) : NULL;
    buf_done(&b);
    return s;
}

/* Texts as bytes; other elements are as they are. NULL: no memory. */
static json_t *elements(kserve_type type, json_t *data)
{
    json_t *list, *v;
    size_t i;
    if (type != KSERVE_BYTES) return json_incref(data);
    list = json_array();
    json_array_foreach(data, i, v)
    {
        if (json_array_append_new(list, text_of_bytes(json_string_value(v), json_string_length(v))) == 0)
            continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static int take_data(json_t *o, json_t *data)
{
    const char *name = json_string_value(json_object_get(o, "datatype")), *list = NULL;
    kserve_type type;
    if (!name || !kserve_type_of(name, &type)) return SHOAL_EPROTOCOL;
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++)
        if (LISTS[i].type == type) list = LISTS[i].list;
    if (!list) return SHOAL_EPROTOCOL;
    json_t *contents = json_object();
    int rc = json_object_set_new(contents, list, elements(type, data)) == 0 ? 0 : SHOAL_ENOMEM;
    if (rc == 0 && json_object_set(o, "contents", contents) != 0) rc = SHOAL_ENOMEM;
    json_decref(contents);
    json_object_del(o, "data");
    return rc;
}

/* Each output's bytes, in their order; or its elements, where that was asked for. */
static int take_outputs(json_t *answer, json_t *raw, const char *tail, size_t n)
{
    json_t *o, *data;
    size_t i;
    json_array_foreach(json_object_get(answer, "outputs"), i, o)
    {
        if ((data = json_object_get(o, "data"))) {
            int rc = take_data(o, data);
            if (rc != 0) return rc;
            continue;
        }
        const json_t *size = json_object_get(json_object_get(o, "parameters"), "binary_data_size");
        if (!json_is_integer(size) || json_integer_value(size) < 0 || (uint64_t)json_integer_value(size) > n)
            return SHOAL_EPROTOCOL;
        size_t len = (size_t)json_integer_value(size);
        if (json_array_append_new(raw, text_of_bytes(tail, len)) != 0) return SHOAL_ENOMEM;
        tail += len;
        n -= len;
        json_object_del(o, "parameters");
    }
    return n == 0 ? 0 : SHOAL_EPROTOCOL;
}

/* Each output's "data" as the bytes of raw_output_contents. */
static int make_raw(json_t *answer, json_t *raw)
{
    json_t *o;
    size_t i;
    json_array_foreach(json_object_get(answer, "outputs"), i, o)
    {
        const char *name = json_string_value(json_object_get(o, "datatype"));
        kserve_tensor t = {.name = "output"};
        api_error e = {0};
        if (!name || !kserve_type_of(name, &t.type)) return SHOAL_EPROTOCOL;
        int rc = kserve_read_data(&t, json_object_get(o, "data"), &e) == 0 ? 0 : SHOAL_EPROTOCOL;
        if (t.raw.failed) rc = SHOAL_ENOMEM;
        if (rc == 0 &&
            json_array_append_new(raw, text_of_bytes(t.raw.data ? t.raw.data : "", t.raw.len)) != 0)
            rc = SHOAL_ENOMEM;
        buf_done(&t.raw);
        if (rc != 0) return rc;
        json_object_del(o, "data");
    }
    return 0;
}

int kserve_proto_event(json_t *answer)
{
    json_t *raw = json_array();
    int rc = !raw ? SHOAL_ENOMEM : make_raw(answer, raw);
    if (rc == 0 && json_array_size(raw) && json_object_set(answer, "raw_output_contents", raw) != 0)
        rc = SHOAL_ENOMEM;
    json_decref(raw);
    return rc == 0 ? kserve_proto_params(answer) : rc;
}

/* A value as the choice of an InferParameter. NULL: no memory. */
static json_t *choice_of(json_t *v)
{
    const char *kind = json_is_boolean(v)   ? "bool_param"
                       : json_is_integer(v) ? "int64_param"
                       : json_is_real(v)    ? "double_param"
                                            : "string_param";
    return json_pack("{s:O}", kind, v);
}

int kserve_proto_params(json_t *answer)
{
    json_t *params = json_object_get(answer, "parameters"), *v, *typed = json_object();
    const char *key;
    int rc = typed ? 0 : SHOAL_ENOMEM;
    json_object_foreach(params, key, v)
    {
        if (rc == 0 && json_object_set_new(typed, key, choice_of(v)) != 0) rc = SHOAL_ENOMEM;
    }
    if (rc == 0 && params && json_object_set(answer, "parameters", typed) != 0) rc = SHOAL_ENOMEM;
    json_decref(typed);
    return rc;
}

/* DataType of open_inference.proto, in its order; ours are named without the prefix, and BYTES is STRING. */
static const char *const DATA_TYPES[] = {"INVALID", "BOOL", "UINT8", "UINT16", "UINT32",
                                         "UINT64",  "INT8", "INT16", "INT32",  "INT64",
                                         "FP16",    "FP32", "FP64",  "STRING", "BF16"};
static const char *const GROUP_KINDS[] = {"KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"};

static int set_number(json_t *o, const char *key, size_t skip, const char *const *names, size_t n)
{
    const char *name = json_string_value(json_object_get(o, key));
    for (size_t i = 0; name && i < n; i++)
        if (strcmp(name + skip, names[i]) == 0)
            return json_object_set_new(o, key, json_integer((json_int_t)i)) == 0 ? 0 : SHOAL_ENOMEM;
    return 0;
}

int kserve_proto_config(json_t *config)
{
    static const char *const sides[] = {"input", "output"};
    json_t *o;
    size_t i;
    int rc = 0;
    for (size_t k = 0; k < 2; k++) json_array_foreach(json_object_get(config, sides[k]), i, o)
        {
            if (rc == 0)
                rc = set_number(o, "data_type", strlen("TYPE_"), DATA_TYPES,
                                sizeof DATA_TYPES / sizeof *DATA_TYPES);
        }
    json_array_foreach(json_object_get(config, "instance_group"), i, o)
    {
        if (rc == 0) rc = set_number(o, "kind", 0, GROUP_KINDS, sizeof GROUP_KINDS / sizeof *GROUP_KINDS);
    }
    return rc;
}

int kserve_proto_answer(json_t **ret, const char *body, size_t n, size_t n_json)
{
    json_t *answer = NULL, *raw = json_array();
    int rc = !raw ? SHOAL_ENOMEM : n_json > n ? SHOAL_EPROTOCOL : 0;
    if (rc == 0) rc = json_parse(&answer, body, n_json, "the answer", NULL);
    if (rc == 0) rc = take_outputs(answer, raw, body + n_json, n - n_json);
    if (rc == 0 && json_array_size(raw) && json_object_set(answer, "raw_output_contents", raw) != 0)
        rc = SHOAL_ENOMEM;
    json_decref(raw);
    if (rc == 0) rc = kserve_proto_params(answer);
    if (rc == 0)
        *ret = answer;
    else
        json_decref(answer);
    return rc;
}
