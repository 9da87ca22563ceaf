/* proto_wire.c: tags, varints and lengths. */
#include "base/proto_wire.h"

#include <string.h>

#include "base/err.h"

enum { VARINT_BYTES = 10, NUMBER_MAX = (1 << 29) - 1 };

uint64_t proto_varint(cur *c)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_BYTES; i++) {
        uint8_t b = cur_u8(c);
        if (c->failed || (i == VARINT_BYTES - 1 && b > 1)) break;
        v |= (uint64_t)(b & 0x7F) << (7 * i);
        if (!(b & 0x80)) return v;
    }
    c->failed = true;
    return 0;
}

int proto_next(cur *c, proto_item *ret)
{
    if (cur_left(c) == 0) return c->failed ? SHOAL_EFORMAT : 0;
    uint64_t tag = proto_varint(c), number = tag >> 3;
    *ret = (proto_item){.number = (uint32_t)number, .wire = tag & 7};
    if (c->failed || number == 0 || number > NUMBER_MAX) return SHOAL_EFORMAT;
    switch (ret->wire) {
    case PROTO_VARINT: ret->value = proto_varint(c); break;
    case PROTO_FIXED64: ret->value = cur_u64(c); break;
    case PROTO_FIXED32: ret->value = cur_u32(c); break;
    case PROTO_BYTES: {
        uint64_t n = proto_varint(c);
        if (c->failed || n > cur_left(c)) return SHOAL_EFORMAT;
        ret->n = (size_t)n;
        ret->bytes = cur_take(c, ret->n);
        break;
    }
    default: return SHOAL_EFORMAT;
    }
    return c->failed ? SHOAL_EFORMAT : 1;
}

void proto_put_varint(buf *out, uint64_t v)
{
    char bytes[VARINT_BYTES];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    buf_append(out, bytes, n);
}

static void put_tag(buf *out, uint32_t number, unsigned wire)
{
    proto_put_varint(out, (uint64_t)number << 3 | wire);
}

void proto_put_number(buf *out, uint32_t number, uint64_t v)
{
    put_tag(out, number, PROTO_VARINT);
    proto_put_varint(out, v);
}

void proto_put_bytes(buf *out, uint32_t number, const void *bytes, size_t n)
{
    put_tag(out, number, PROTO_BYTES);
    proto_put_varint(out, n);
    if (n) buf_append(out, bytes, n);
}

void proto_put_text(buf *out, uint32_t number, const char *s)
{
    proto_put_bytes(out, number, s, strlen(s));
}

/* Little-endian hosts only, as all ours are. */
void proto_put_fixed32(buf *out, uint32_t number, uint32_t v)
{
    put_tag(out, number, PROTO_FIXED32);
    buf_append(out, &v, sizeof v);
}

void proto_put_fixed64(buf *out, uint32_t number, uint64_t v)
{
    put_tag(out, number, PROTO_FIXED64);
    buf_append(out, &v, sizeof v);
}
