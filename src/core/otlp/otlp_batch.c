/* otlp_batch.c: the frame around items, and what a collector answers; see otlp.h. */
#include <string.h>

#include "base/cur.h"
#include "base/number.h"
#include "base/proto_wire.h"
#include "json/json.h"
#include "json/json_put.h"
#include "otlp/otlp_impl.h"

/* Of all three signals the same: Export...Request, Resource..., Scope... (proto/otlp/otlp.proto). */
enum { REQUEST_RESOURCES = 1, RESOURCE_RESOURCE = 1, RESOURCE_SCOPES = 2 };
enum { SCOPE_SCOPE = 1, SCOPE_ITEMS = 2, ANY_SCHEMA = 3 };
enum { VARINT_MAX = 10 };

typedef struct signal_row {
    const char *name, *resources, *scopes, *items;
} signal_row;
static const signal_row SIGNALS[] = {
#define OTLP_SIGNAL_ROW(e, name, resources, scopes, items) [e] = {name, resources, scopes, items},
    OTLP_SIGNAL_TABLE(OTLP_SIGNAL_ROW)
#undef OTLP_SIGNAL_ROW
};

const char *otlp_signal_name(otlp_signal s)
{
    return SIGNALS[s].name;
}

const char *otlp_content_type(otlp_protocol p)
{
    return p == OTLP_JSON ? "application/json" : "application/x-protobuf";
}

/* ---- what batches have in common --------------------------------------------------------------------- */

static int put_resource(buf *out, otlp_protocol p, const otlp_attribute *attributes, size_t n)
{
    Otlp__Resource m = OTLP__RESOURCE__INIT;
    arena *a = arena_new(0);
    otlp_value *values = a ? arena_alloc(a, n * sizeof *values) : NULL;
    m.attributes = a ? arena_alloc(a, n * sizeof *m.attributes) : NULL;
    bool have = values && m.attributes;
    for (size_t i = 0; have && i < n; i++) {
        otlp_set_value(&values[i], &attributes[i]);
        m.attributes[m.n_attributes++] = &values[i].pair;
    }
    if (have) otlp_put_message(out, p, &m.base);
    arena_free(a);
    return have && !out->failed ? 0 : SHOAL_ENOMEM;
}

int otlp_common_init(otlp_common *c, otlp_protocol p, const otlp_attribute *resource, size_t n_resource,
                     const char *scope, const char *version, const char *schema_url)
{
    Otlp__InstrumentationScope m = OTLP__INSTRUMENTATION_SCOPE__INIT;
    *c = (otlp_common){.schema_url = schema_url};
    m.name = (char *)scope;
    m.version = (char *)version;
    otlp_put_message(&c->scope, p, &m.base);
    if (put_resource(&c->resource, p, resource, n_resource) == 0 && !c->scope.failed) return 0;
    otlp_common_done(c);
    return SHOAL_ENOMEM;
}

void otlp_common_done(otlp_common *c)
{
    buf_done(&c->resource);
    buf_done(&c->scope);
}

/* ---- batches ----------------------------------------------------------------------------------------- */

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7) n++;
    return n;
}

/* A field of length-delimited bytes, numbered below 16. */
static size_t field_size(size_t n)
{
    return 1 + varint_size(n) + n;
}

static void put_head(buf *out, unsigned number, size_t n)
{
    buf_putc(out, (char)(number << 3 | PROTO_BYTES));
    proto_put_varint(out, n);
}

static void put_protobuf(buf *out, const otlp_common *c, const otlp_bytes *items, size_t n_items)
{
    size_t n_schema = *c->schema_url ? field_size(strlen(c->schema_url)) : 0;
    size_t n_scope = field_size(c->scope.len) + n_schema;
    for (size_t i = 0; i < n_items; i++) n_scope += field_size(items[i].n);
    size_t n_resource = field_size(c->resource.len) + field_size(n_scope) + n_schema;
    if (buf_reserve(out, field_size(n_resource) + VARINT_MAX)) return;
    put_head(out, REQUEST_RESOURCES, n_resource);
    proto_put_bytes(out, RESOURCE_RESOURCE, buf_text(&c->resource), c->resource.len);
    put_head(out, RESOURCE_SCOPES, n_scope);
    proto_put_bytes(out, SCOPE_SCOPE, buf_text(&c->scope), c->scope.len);
    for (size_t i = 0; i < n_items; i++) proto_put_bytes(out, SCOPE_ITEMS, items[i].data, items[i].n);
    if (n_schema) proto_put_text(out, ANY_SCHEMA, c->schema_url);
    if (n_schema) proto_put_text(out, ANY_SCHEMA, c->schema_url);
}

static void put_json(buf *out, const signal_row *s, const otlp_common *c, const otlp_bytes *items,
                     size_t n_items)
{
    buf_printf(out, "{\"%s\":[{\"resource\":%s,\"%s\":[{\"scope\":%s,\"%s\":[", s->resources,
               buf_text(&c->resource), s->scopes, buf_text(&c->scope), s->items);
    for (size_t i = 0; i < n_items; i++) {
        if (i > 0) buf_putc(out, ',');
        buf_append(out, items[i].data, items[i].n);
    }
    buf_putc(out, ']');
    json_put_filled(out, "schemaUrl", c->schema_url);
    buf_puts(out, "}]");
    json_put_filled(out, "schemaUrl", c->schema_url);
    buf_puts(out, "}]}");
}

void otlp_batch_put(buf *out, otlp_protocol p, otlp_signal s, const otlp_common *c, const otlp_bytes *items,
                    size_t n_items)
{
    if (p == OTLP_JSON)
        put_json(out, &SIGNALS[s], c, items, n_items);
    else
        put_protobuf(out, c, items, n_items);
}

/* ---- answers ----------------------------------------------------------------------------------------- */

static int bad_answer(shoal_err *err, const char *why)
{
    return err_set(err, SHOAL_EFORMAT, "the collector's answer cannot be read: %s", why);
}

/* 64-bit numbers come as texts or as numbers. */
static json_int_t count_in(const json_t *partial)
{
    static const char *const KEYS[] = {"rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const json_t *v = json_object_get(partial, KEYS[i]);
        int64_t n;
        if (json_is_integer(v)) return json_integer_value(v);
        if (json_is_string(v) && number_i64(json_string_value(v), &n)) return n;
    }
    return 0;
}

static int parse_json(otlp_answer *ret, const char *text, size_t n, shoal_err *err)
{
    json_t *root;
    shoal_err why;
    int rc = json_parse(&root, text, n, "the answer", &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc) return bad_answer(err, why.message);
    const json_t *partial = json_object_get(root, "partialSuccess");
    json_int_t rejected = count_in(partial);
    *ret = (otlp_answer){.n_rejected = rejected > 0 ? (uint64_t)rejected : 0};
    buf_copy_str(ret->why, sizeof ret->why, json_text_of(partial, "errorMessage"));
    json_decref(root);
    return 0;
}

static int parse_protobuf(otlp_answer *ret, const uint8_t *bytes, size_t n, shoal_err *err)
{
    otlp_answer a = {0};
    proto_item outer, inner;
    int rc, rc_inner = 0;
    cur c = cur_over(bytes, n);
    while ((rc = proto_next(&c, &outer)) == 1) {
        if (outer.number != 1 || outer.wire != PROTO_BYTES) continue;
        cur in = cur_over(outer.bytes, outer.n);
        while ((rc_inner = proto_next(&in, &inner)) == 1) {
            if (inner.number == 1 && inner.wire == PROTO_VARINT)
                a.n_rejected = inner.value >> 63 ? 0 : inner.value;
            if (inner.number == 2 && inner.wire == PROTO_BYTES) {
                size_t k = inner.n < sizeof a.why ? inner.n : sizeof a.why - 1;
                if (k) memcpy(a.why, inner.bytes, k);
                a.why[k] = '\0';
            }
        }
        if (rc_inner < 0) break;
    }
    if (rc < 0 || rc_inner < 0) return bad_answer(err, "it is no protobuf");
    *ret = a;
    return 0;
}

int otlp_answer_parse(otlp_answer *ret, bool json, const void *bytes, size_t n, shoal_err *err)
{
    if (n > OTLP_ANSWER_MAX) return bad_answer(err, "it is too long");
    if (n == 0) {
        *ret = (otlp_answer){0};
        return 0;
    }
    return json ? parse_json(ret, bytes, n, err) : parse_protobuf(ret, bytes, n, err);
}
