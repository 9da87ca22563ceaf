/* otlp_json.c: see otlp_json.h. Protobuf's JSON (protobuf.dev/programming-guides/json) with OTLP's two exceptions: bytes
 * are hex, enumerations are numbers. */
#include "otlp/otlp_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "json/json.h"
#include "json/json_put.h"

enum { KEY_BYTES = 48, DIGITS = 17 };

/* trace_id: "traceId" */
static const char *camel(char out[KEY_BYTES], const char *name)
{
    size_t n = 0;
    for (; *name && n + 1 < KEY_BYTES; name++) {
        bool up = *name == '_' && name[1];
        if (up) name++;
        out[n++] = up && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
    }
    out[n] = '\0';
    return out;
}

static void put_hex(buf *out, const ProtobufCBinaryData *b)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < b->len; i++) {
        buf_putc(out, "0123456789abcdef"[b->data[i] >> 4]);
        buf_putc(out, "0123456789abcdef"[b->data[i] & 15]);
    }
    buf_putc(out, '"');
}

static void put_double(buf *out, double v)
{
    if (isnan(v))
        buf_puts(out, "\"NaN\"");
    else if (isinf(v))
        buf_puts(out, v < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        number_put(out, v, DIGITS);
}

static void put_value(buf *out, const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING: json_put_string(out, *(char *const *)at, strlen(*(char *const *)at)); break;
    case PROTOBUF_C_TYPE_BYTES: put_hex(out, at); break;
    case PROTOBUF_C_TYPE_MESSAGE: otlp_json_put(out, *(const ProtobufCMessage *const *)at); break;
    case PROTOBUF_C_TYPE_BOOL: buf_puts(out, *(const protobuf_c_boolean *)at ? "true" : "false"); break;
    case PROTOBUF_C_TYPE_DOUBLE: put_double(out, *(const double *)at); break;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_UINT64: buf_printf(out, "\"%" PRIu64 "\"", *(const uint64_t *)at); break;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_INT64: buf_printf(out, "\"%" PRId64 "\"", *(const int64_t *)at); break;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_UINT32: buf_printf(out, "%" PRIu32, *(const uint32_t *)at); break;
    default: buf_printf(out, "%" PRId32, *(const int32_t *)at); break;
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_INT64: return sizeof(uint64_t);
    default: return sizeof(uint32_t);
    }
}

/* A member of a oneof is there if it is the one, even if it is zero. */
static bool is_there(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, const void *at)
{
    static const char ZERO[sizeof(ProtobufCBinaryData)];
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(const void *)((const char *)m + f->quantifier_offset) == f->id;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) return *(void *const *)at != NULL;
    if (f->type == PROTOBUF_C_TYPE_STRING) return *(char *const *)at && **(char *const *)at;
    if (f->type == PROTOBUF_C_TYPE_BYTES) return ((const ProtobufCBinaryData *)at)->len > 0;
    return memcmp(at, ZERO, size_of(f)) != 0;
}

static void put_list(buf *out, const ProtobufCFieldDescriptor *f, const char *entries, size_t n)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0) buf_putc(out, ',');
        put_value(out, f, entries + i * size_of(f));
    }
    buf_putc(out, ']');
}

void otlp_json_put(buf *out, const ProtobufCMessage *m)
{
    char key[KEY_BYTES];
    buf_putc(out, '{');
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const char *at = (const char *)m + f->offset;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(const size_t *)(const void *)((const char *)m + f->quantifier_offset);
            if (n == 0) continue;
            json_put_key(out, camel(key, f->name));
            put_list(out, f, *(const char *const *)(const void *)at, n);
        } else if (is_there(m, f, at)) {
            json_put_key(out, camel(key, f->name));
            put_value(out, f, at);
        }
    }
    buf_putc(out, '}');
}
