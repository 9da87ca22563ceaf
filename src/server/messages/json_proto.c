/* json_proto.c: a walk over a message's fields, or over an object's members. */
#include "messages/json_proto.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proto_wire.h"
#include "base/utf8.h"

/* ---- messages become objects --------------------------------------------------------------------- */

typedef struct reader {
    size_t n_values;
    unsigned depth;
    shoal_err *err;
} reader;

static int read_message(reader *r, json_t *into, const proto_message *m, const uint8_t *bytes, size_t n);

static int malformed(const reader *r, const proto_message *m)
{
    return err_set(r->err, SHOAL_EFORMAT, "%s: the message is malformed", m->name);
}

static double as_double(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double as_float(uint64_t bits)
{
    float v;
    uint32_t low = (uint32_t)bits;
    memcpy(&v, &low, sizeof v);
    return (double)v;
}

static unsigned wire_of(proto_type t)
{
    switch (t) {
    case PROTO_DOUBLE: return PROTO_FIXED64;
    case PROTO_FLOAT: return PROTO_FIXED32;
    case PROTO_STRING:
    case PROTO_DATA:
    case PROTO_MESSAGE: return PROTO_BYTES;
    default: return PROTO_VARINT;
    }
}

/* JSON has no infinities; they are as if null, which no field takes. */
static int number_value(const reader *r, const proto_field *f, uint64_t v, json_t **ret)
{
    double real = f->type == PROTO_DOUBLE ? as_double(v) : f->type == PROTO_FLOAT ? as_float(v) : 0;
    if (!isfinite(real)) return err_set(r->err, SHOAL_EINVALID, "%s: must be a finite number", f->name);
    switch (f->type) {
    case PROTO_DOUBLE:
    case PROTO_FLOAT: *ret = json_real(real); break;
    case PROTO_BOOL: *ret = json_boolean(v != 0); break;
    case PROTO_INT32:
    case PROTO_ENUM: *ret = json_integer((int32_t)v); break;
    case PROTO_UINT32: *ret = json_integer((uint32_t)v); break;
    case PROTO_UINT64:
        if (v > INT64_MAX) return err_set(r->err, SHOAL_EINVALID, "%s: is too large", f->name);
        *ret = json_integer((int64_t)v);
        break;
    default: *ret = json_integer((int64_t)v);
    }
    return *ret ? 0 : err_nomem(r->err);
}

static int text_value(const reader *r, const proto_field *f, const proto_item *it, json_t **ret)
{
    const char *s = it->n ? (const char *)it->bytes : "";
    if (!utf8_valid(s, it->n, NULL)) return err_set(r->err, SHOAL_EINVALID, "%s: is not UTF-8", f->name);
    if (f->member) return json_parse_request(ret, s, it->n, f->name, r->err);
    *ret = json_stringn(s, it->n);
    return *ret ? 0 : err_nomem(r->err);
}

static int data_value(const reader *r, const proto_item *it, json_t **ret)
{
    buf b = {0};
    *ret = base64_encode(&b, it->bytes, it->n) == 0 ? json_stringn(b.data ? b.data : "", b.len) : NULL;
    buf_done(&b);
    return *ret ? 0 : err_nomem(r->err);
}

static int message_value(reader *r, const proto_field *f, const proto_item *it, json_t *known, json_t **ret)
{
    *ret = known ? json_incref(known) : json_object();
    if (!*ret) return err_nomem(r->err);
    int rc = read_message(r, *ret, f->message, it->bytes, it->n);
    if (rc != 0) json_decref(*ret);
    return rc;
}

/* One value; known is what the field had before, to which a message is added. */
static int read_value(reader *r, const proto_field *f, const proto_item *it, json_t *known, json_t **ret)
{
    if (++r->n_values > JSON_PROTO_VALUES_MAX)
        return err_set(r->err, SHOAL_ELIMIT, "a message may have %d values", JSON_PROTO_VALUES_MAX);
    switch (f->type) {
    case PROTO_STRING: return text_value(r, f, it, ret);
    case PROTO_DATA: return data_value(r, it, ret);
    case PROTO_MESSAGE: return message_value(r, f, it, known, ret);
    default: return number_value(r, f, it->value, ret);
    }
}

static int append(reader *r, const proto_field *f, const proto_item *it, json_t *list)
{
    json_t *v;
    int rc = read_value(r, f, it, NULL, &v);
    if (rc != 0) return rc;
    return json_array_append_new(list, v) == 0 ? 0 : err_nomem(r->err);
}

/* Several numbers in one field. */
static int append_packed(reader *r, const proto_field *f, const proto_item *it, json_t *list)
{
    cur c = cur_over(it->bytes, it->n);
    unsigned wire = wire_of(f->type);
    while (cur_left(&c)) {
        proto_item one = {.value = wire == PROTO_FIXED64   ? cur_u64(&c)
                                   : wire == PROTO_FIXED32 ? cur_u32(&c)
                                                           : proto_varint(&c)};
        if (c.failed) return err_set(r->err, SHOAL_EFORMAT, "%s: the list is malformed", f->name);
        int rc = append(r, f, &one, list);
        if (rc != 0) return rc;
    }
    return 0;
}

static int read_list(reader *r, json_t *into, const proto_field *f, const proto_item *it)
{
    json_t *list = json_object_get(into, f->name);
    if (!list && json_object_set_new(into, f->name, list = json_array()) != 0) return err_nomem(r->err);
    if (!json_is_array(list)) return err_set(r->err, SHOAL_EINVALID, "%s: is given twice", f->name);
    return it->wire == wire_of(f->type) ? append(r, f, it, list) : append_packed(r, f, it, list);
}

/* A member may come as text of JSON or by a field of its own, not both. */
static int read_single(reader *r, json_t *into, const proto_field *f, const proto_item *it)
{
    json_t *v, *known = json_object_get(into, f->member ? f->member : f->name);
    bool is_twin = f->member && known;
    if (is_twin || (f->type == PROTO_MESSAGE && known && !json_is_object(known)))
        return err_set(r->err, SHOAL_EINVALID, "%s: is given twice", f->name);
    int rc = read_value(r, f, it, known, &v);
    if (rc != 0) return rc;
    return json_object_set_new(into, f->member ? f->member : f->name, v) == 0 ? 0 : err_nomem(r->err);
}

static int add_more(reader *r, json_t *into, const proto_item *it)
{
    json_t *more, *v;
    const char *key;
    int rc = json_parse_request(&more, (const char *)it->bytes, it->n, "more_json", r->err);
    if (rc != 0) return rc;
    if (!json_is_object(more)) rc = err_set(r->err, SHOAL_EINVALID, "more_json: must be a JSON object");
    json_object_foreach(more, key, v)
    {
        if (rc == 0 && json_object_get(into, key))
            rc = err_set(r->err, SHOAL_EINVALID,
                         "more_json: %.64s has a field of its own, and is given there", key);
        if (rc == 0 && json_object_set(into, key, v) != 0) rc = err_nomem(r->err);
    }
    json_decref(more);
    return rc;
}

static bool fits_wire(const proto_field *f, const proto_item *it)
{
    unsigned own = wire_of(f->type);
    return it->wire == own || (f->repeated && it->wire == PROTO_BYTES);
}

typedef struct held { /* of a message, what is read behind the others */
    proto_item more;
    bool texts; /* there are members as text of JSON */
} held;

/* Those that are text of JSON, or those that are not. */
static int read_fields(reader *r, json_t *into, const proto_message *m, cur c, bool texts, held *ret)
{
    proto_item it;
    int rc;
    while ((rc = proto_next(&c, &it)) == 1) {
        const proto_field *f = proto_field_numbered(m, it.number);
        if (!f) continue;
        if (!fits_wire(f, &it)) return malformed(r, m);
        if (f == m->more)
            ret->more = it;
        else if ((f->member != NULL) != texts)
            ret->texts |= f->member != NULL;
        else if ((rc = f->repeated ? read_list(r, into, f, &it) : read_single(r, into, f, &it)) != 0)
            return rc;
    }
    return rc < 0 ? malformed(r, m) : 0;
}

/* A member of both forms is found out when its text finds the other there, in whichever order they came. */
static int json_proto_read_all(reader *r, json_t *into, const proto_message *m, cur c)
{
    held behind = {0};
    int rc = read_fields(r, into, m, c, false, &behind);
    if (rc == 0 && behind.texts) rc = read_fields(r, into, m, c, true, &behind);
    return rc == 0 && behind.more.n ? add_more(r, into, &behind.more) : rc;
}

static int read_message(reader *r, json_t *into, const proto_message *m, const uint8_t *bytes, size_t n)
{
    if (r->depth == JSON_DEPTH_MAX)
        return err_set(r->err, SHOAL_ELIMIT, "messages may nest %d deep", JSON_DEPTH_MAX);
    r->depth++;
    int rc = json_proto_read_all(r, into, m, cur_over(bytes, n));
    r->depth--;
    return rc;
}

int json_proto_read(json_t **ret, const proto_message *m, const uint8_t *bytes, size_t n, shoal_err *err)
{
    reader r = {.err = err};
    json_t *o = json_object();
    if (!o) return err_nomem(err);
    int rc = read_message(&r, o, m, bytes, n);
    if (rc == 0)
        *ret = o;
    else
        json_decref(o);
    return rc;
}

/* ---- objects become messages --------------------------------------------------------------------- */

static int write_message(buf *out, const proto_message *m, const json_t *o, shoal_err *err);

static bool is_number(const json_t *v, proto_type t)
{
    json_int_t n = json_integer_value(v);
    switch (t) {
    case PROTO_DOUBLE:
    case PROTO_FLOAT: return json_is_number(v) || json_is_null(v); /* null in a list: not a number */
    case PROTO_BOOL: return json_is_boolean(v);
    case PROTO_INT32: return json_is_integer(v) && n >= INT32_MIN && n <= INT32_MAX;
    case PROTO_UINT32: return json_is_integer(v) && n >= 0 && n <= UINT32_MAX;
    case PROTO_UINT64: return json_is_integer(v) && n >= 0;
    default: return json_is_integer(v);
    }
}

static bool fits_one(const proto_field *f, const json_t *v)
{
    if (f->type == PROTO_STRING || f->type == PROTO_DATA) return json_is_string(v);
    return f->type == PROTO_MESSAGE ? json_is_object(v) : is_number(v, f->type);
}

static bool json_proto_fits(const proto_field *f, const json_t *v)
{
    if (!f->repeated) return fits_one(f, v);
    bool ok = json_is_array(v);
    for (size_t i = 0; ok && i < json_array_size(v); i++) ok = fits_one(f, json_array_get(v, i));
    return ok;
}

static uint64_t bits_of(const json_t *v, proto_type t)
{
    double real = json_is_number(v) ? json_number_value(v) : (double)NAN;
    float single = (float)real;
    uint64_t bits = 0;
    switch (t) {
    case PROTO_DOUBLE: memcpy(&bits, &real, sizeof real); break;
    case PROTO_FLOAT: memcpy(&bits, &single, sizeof single); break;
    case PROTO_BOOL: bits = json_is_true(v); break;
    default: bits = (uint64_t)json_integer_value(v);
    }
    return bits;
}

/* Numbers of a list lie one behind the other in one field. */
static void put_packed(buf *out, const proto_field *f, const json_t *list)
{
    buf b = {0};
    unsigned wire = wire_of(f->type);
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t v = bits_of(json_array_get(list, i), f->type);
        if (wire == PROTO_VARINT)
            proto_put_varint(&b, v);
        else
            buf_append(&b, &v, wire == PROTO_FIXED64 ? 8 : 4); /* little-endian hosts, as all ours are */
    }
    if (b.failed) out->failed = true;
    if (b.len) proto_put_bytes(out, f->number, b.data, b.len);
    buf_done(&b);
}

static void json_proto_put_number(buf *out, const proto_field *f, const json_t *v)
{
    uint64_t bits = bits_of(v, f->type);
    switch (wire_of(f->type)) {
    case PROTO_FIXED64: proto_put_fixed64(out, f->number, bits); break;
    case PROTO_FIXED32: proto_put_fixed32(out, f->number, (uint32_t)bits); break;
    default: proto_put_number(out, f->number, bits);
    }
}

/* A buf of its own for what must be measured before it is put; its failure is out's. */
static void put_buf(buf *out, uint32_t number, buf *b)
{
    if (b->failed) out->failed = true;
    proto_put_bytes(out, number, b->data, b->len);
    buf_done(b);
}

static int put_one(buf *out, const proto_field *f, const json_t *v, shoal_err *err)
{
    buf b = {0};
    int rc = 0;
    switch (f->type) {
    case PROTO_STRING: proto_put_bytes(out, f->number, json_string_value(v), json_string_length(v)); return 0;
    case PROTO_DATA:
        rc = base64_decode(&b, json_string_value(v), json_string_length(v));
        if (rc == SHOAL_EFORMAT) rc = err_set(err, SHOAL_EINVALID, "%s: is not base64", f->name);
        break;
    case PROTO_MESSAGE: rc = write_message(&b, f->message, v, err); break;
    default: json_proto_put_number(out, f, v); return 0;
    }
    put_buf(out, f->number, &b);
    return rc;
}

/* Is the field a map<string, ...>? Its messages have two fields then, key and value. */
static bool is_map(const proto_field *f)
{
    const proto_message *m = f->repeated && f->type == PROTO_MESSAGE ? f->message : NULL;
    size_t n = m ? strlen(m->name) : 0;
    if (!m || m->n != 2 || n < 5 || strcmp(m->name + n - 5, "Entry") != 0) return false;
    const proto_field *key = proto_field_named(m, "key");
    return key && key->type == PROTO_STRING && proto_field_named(m, "value");
}

/* An object whose members are the map's entries. */
static int put_map(buf *out, const proto_field *f, const json_t *o, shoal_err *err)
{
    const proto_field *value = proto_field_named(f->message, "value");
    const char *key;
    json_t *v;
    int rc = 0;
    json_object_foreach((json_t *)o, key, v)
    {
        buf entry = {0};
        if (rc != 0) break;
        if (!fits_one(value, v))
            return err_set(err, SHOAL_EINVALID, "%s: does not fit into %s", key, f->name);
        proto_put_bytes(&entry, proto_field_named(f->message, "key")->number, key, strlen(key));
        rc = put_one(&entry, value, v, err);
        put_buf(out, f->number, &entry);
    }
    return rc;
}

static int put_list(buf *out, const proto_field *f, const json_t *list, shoal_err *err)
{
    int rc = 0;
    if (wire_of(f->type) != PROTO_BYTES)
        put_packed(out, f, list);
    else
        for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
            rc = put_one(out, f, json_array_get(list, i), err);
    return rc;
}

/* The shortest text that is the same number. */
static void put_real(buf *out, double v)
{
    char s[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (strtod(s, NULL) == v) break;
    }
    buf_puts(out, s);
    if (!strpbrk(s, ".e")) buf_puts(out, ".0");
}

static void json_proto_put_json(buf *out, const json_t *v)
{
    const char *key, *comma = "";
    json_t *child;
    size_t i;
    if (json_is_object(v)) {
        buf_putc(out, '{');
        json_object_foreach((json_t *)v, key, child)
        {
            buf_puts(out, comma);
            json_put_string(out, key, strlen(key));
            buf_putc(out, ':');
            json_proto_put_json(out, child);
            comma = ",";
        }
        buf_putc(out, '}');
    } else if (json_is_array(v)) {
        buf_putc(out, '[');
        json_array_foreach(v, i, child)
        {
            buf_puts(out, i ? "," : "");
            json_proto_put_json(out, child);
        }
        buf_putc(out, ']');
    } else if (json_is_real(v)) {
        put_real(out, json_real_value(v));
    } else {
        json_put(out, v);
    }
}

static const proto_field *field_of_json(const proto_message *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->fields[i].member && &m->fields[i] != m->more && strcmp(m->fields[i].member, key) == 0)
            return &m->fields[i];
    return NULL;
}

static void put_member(buf *out, const char *key, const json_t *v)
{
    buf_puts(out, out->len ? "," : "{");
    json_put_string(out, key, strlen(key));
    buf_putc(out, ':');
    json_proto_put_json(out, v);
}

static int write_member(buf *out, buf *more, const proto_message *m, const char *key, const json_t *v,
                        shoal_err *err)
{
    const proto_field *f = proto_field_named(m, key), *text = field_of_json(m, key);
    buf b = {0};
    if (f && json_is_object(v) && is_map(f)) return put_map(out, f, v, err);
    if (f && !f->member && json_proto_fits(f, v))
        return f->repeated ? put_list(out, f, v, err) : put_one(out, f, v, err);
    if (text) {
        json_proto_put_json(&b, v);
        put_buf(out, text->number, &b);
    } else if (m->more) {
        put_member(more, key, v);
    } else if (f) {
        return err_set(err, SHOAL_EINVALID, "%s: does not fit into %s", key, m->name);
    }
    return 0;
}

static int write_message(buf *out, const proto_message *m, const json_t *o, shoal_err *err)
{
    buf more = {0};
    const char *key;
    json_t *v;
    int rc = 0;
    json_object_foreach((json_t *)o, key, v) if (rc == 0 && !json_is_null(v)) rc =
        write_member(out, &more, m, key, v, err);
    if (more.failed) out->failed = true;
    if (more.len) buf_putc(&more, '}');
    if (more.len)
        put_buf(out, m->more->number, &more);
    else
        buf_done(&more);
    return rc;
}

int json_proto_write(buf *out, const proto_message *m, const json_t *v, shoal_err *err)
{
    if (!json_is_object(v)) return err_set(err, SHOAL_EINVALID, "%s: is no JSON object", m->name);
    int rc = write_message(out, m, v, err);
    return rc == 0 && out->failed ? err_nomem(err) : rc;
}
