/* onnx.c: initializers from the bytes of an ONNX file; see onnx.h. */
#include "model/files/onnx.h"

#include <string.h>

#include "base/proto_wire.h"

enum { NAME_MAX_BYTES = 255, DIMS_MAX = 4 };

/* Field numbers of onnx.proto3. */
enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7 };
enum { GRAPH_INITIALIZER = 5 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_LOCATION = 14 };

typedef struct onnx_dtype {
    uint64_t id; /* TensorProto.DataType */
    const char *name;
    dtype type;
} onnx_dtype;

static const onnx_dtype dtypes[] = {{1, "FLOAT", DT_F32}, {10, "FLOAT16", DT_F16}, {16, "BFLOAT16", DT_BF16}};

typedef struct onnx_file {
    const char *what;
    arena *mem;
    st_list *out;
    shoal_err *err;
} onnx_file;

/* A TensorProto, whose fields may come in any order. */
typedef struct onnx_tensor {
    const uint8_t *name, *raw;
    size_t n_name, n_raw, n_dims;
    uint64_t dims[DIMS_MAX]; /* the slowest first */
    uint64_t type, location;
} onnx_tensor;

static int malformed(const onnx_file *f, const char *part)
{
    return err_set(f->err, SHOAL_EFORMAT, "%s: not a valid ONNX file: its %s is malformed", f->what, part);
}

static int add_dim(const onnx_file *f, onnx_tensor *t, uint64_t n)
{
    if (t->n_dims == DIMS_MAX)
        return err_set(f->err, SHOAL_EUNSUPPORTED, "%s: a tensor has more than %d dimensions", f->what,
                       DIMS_MAX);
    t->dims[t->n_dims++] = n;
    return 0;
}

/* Dimensions are packed into one field or repeated. */
static int add_dims(const onnx_file *f, onnx_tensor *t, const proto_item *it)
{
    if (it->wire == PROTO_VARINT) return add_dim(f, t, it->value);
    cur c = cur_over(it->bytes, it->n);
    int rc = it->wire == PROTO_BYTES ? 0 : malformed(f, "shape");
    while (rc == 0 && cur_left(&c) > 0) {
        uint64_t n = proto_varint(&c);
        rc = c.failed ? malformed(f, "shape") : add_dim(f, t, n);
    }
    return rc;
}

static int read_field(const onnx_file *f, onnx_tensor *t, const proto_item *it)
{
    bool bytes = it->wire == PROTO_BYTES;
    if (it->number == TENSOR_DIMS) return add_dims(f, t, it);
    if (it->number == TENSOR_TYPE && !bytes) t->type = it->value;
    if (it->number == TENSOR_LOCATION && !bytes) t->location = it->value;
    if (it->number == TENSOR_NAME && bytes) {
        t->name = it->bytes;
        t->n_name = it->n;
    }
    if (it->number == TENSOR_RAW && bytes) {
        t->raw = it->bytes;
        t->n_raw = it->n;
    }
    return 0;
}

static const onnx_dtype *find_dtype(uint64_t id)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].id == id) return &dtypes[i];
    return NULL;
}

/* Set ret's dimensions in GGUF order, of which there is at least one, and *ret_n, the number of values. */
static int put_shape(const onnx_file *f, const onnx_tensor *t, tensor *ret, size_t *ret_n)
{
    *ret_n = 1;
    for (size_t i = 0; i < DIMS_MAX; i++) ret->dims[i] = 1;
    for (size_t i = 0; i < t->n_dims; i++) {
        uint64_t n = t->dims[t->n_dims - 1 - i];
        if (n == 0 || n > SIZE_MAX || size_mul(*ret_n, (size_t)n, ret_n)) return malformed(f, "shape");
        ret->dims[i] = (size_t)n;
    }
    ret->n_dims = t->n_dims ? t->n_dims : 1;
    return 0;
}

static int copy_values(const onnx_file *f, const onnx_tensor *t, size_t n, st_tensor *ret)
{
    size_t bytes;
    if (t->location != 0 || !t->raw)
        return err_set(f->err, SHOAL_EUNSUPPORTED, "%s: the values of %s are not stored as raw bytes in it",
                       f->what, ret->t.name);
    if (size_mul(n, ret->t.type == DT_F32 ? 4 : 2, &bytes) || bytes != t->n_raw)
        return err_set(f->err, SHOAL_EFORMAT,
                       "%s: %s has %zu bytes of values, its shape needs another number", f->what, ret->t.name,
                       t->n_raw);
    void *copy = arena_alloc(f->mem, bytes); /* the file does not align it */
    if (!copy) return err_nomem(f->err);
    memcpy(copy, t->raw, bytes);
    ret->t.data = copy;
    ret->t.bytes = bytes;
    return 0;
}

static int add_tensor(const onnx_file *f, const onnx_tensor *t)
{
    const onnx_dtype *d = find_dtype(t->type);
    st_tensor one = {.t.type = d ? d->type : DT_COUNT, .dtype_name = d ? d->name : "other"};
    size_t n = 0;
    if (t->n_name == 0 || t->n_name > NAME_MAX_BYTES || memchr(t->name, 0, t->n_name))
        return malformed(f, "name of a tensor");
    one.t.name = arena_strndup(f->mem, (const char *)t->name, t->n_name);
    if (!one.t.name) return err_nomem(f->err);
    int rc = put_shape(f, t, &one.t, &n);
    if (rc == 0 && d) rc = copy_values(f, t, n, &one);
    return rc ? rc : safetensors_list_push(f->out, &one, f->err);
}

static int read_tensor(const onnx_file *f, const proto_item *message)
{
    cur c = cur_over(message->bytes, message->n);
    onnx_tensor t = {0};
    proto_item it;
    int more, rc = 0;
    while (rc == 0 && (more = proto_next(&c, &it)) != 0)
        rc = more < 0 ? malformed(f, "tensor") : read_field(f, &t, &it);
    return rc ? rc : add_tensor(f, &t);
}

static int read_graph(const onnx_file *f, const proto_item *message)
{
    cur c = cur_over(message->bytes, message->n);
    proto_item it;
    int more, rc = 0;
    while (rc == 0 && (more = proto_next(&c, &it)) != 0) {
        if (more < 0) return malformed(f, "graph");
        if (it.number == GRAPH_INITIALIZER && it.wire == PROTO_BYTES) rc = read_tensor(f, &it);
    }
    return rc;
}

/* A safetensors file may begin with these bytes, too, but has a brace behind its first eight. */
bool onnx_is(const void *data, size_t len)
{
    enum { BRACE_AT = 8 };
    cur c = cur_over(data, len);
    proto_item it;
    bool version = proto_next(&c, &it) == 1 && it.number == MODEL_IR_VERSION && it.wire == PROTO_VARINT &&
                   it.value > 0 && it.value < 256;
    return version && !(len > BRACE_AT && ((const char *)data)[BRACE_AT] == '{');
}

int onnx_parse(st_list *out, arena *mem, const void *data, size_t len, const char *what, shoal_err *err)
{
    onnx_file f = {.what = what, .mem = mem, .out = out, .err = err};
    cur c = cur_over(data, len);
    proto_item it;
    int more, rc = 0;
    while (rc == 0 && (more = proto_next(&c, &it)) != 0) {
        if (more < 0) return malformed(&f, "model");
        if (it.number == MODEL_GRAPH && it.wire == PROTO_BYTES) rc = read_graph(&f, &it);
    }
    return rc;
}
