/* proto_wire.h: the bytes of Protocol Buffers (protobuf.dev/programming-guides/encoding), field by field.
 *
 *     cur c = cur_over(bytes, n);
 *     proto_item it;
 *     while ((rc = proto_next(&c, &it)) == 1)
 *         if (it.number == 1 && it.wire == PROTO_BYTES) use(it.bytes, it.n);
 *
 * Pure. Groups, which nobody writes any more, are malformed. */
#ifndef BASE_PROTO_WIRE_H
#define BASE_PROTO_WIRE_H

#include "base/buf.h"
#include "base/cur.h"

enum { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

typedef struct proto_item {
    uint32_t number;
    unsigned wire;
    uint64_t value;       /* of all but PROTO_BYTES */
    const uint8_t *bytes; /* of PROTO_BYTES, borrowed */
    size_t n;
} proto_item;

/* 1: *ret is the next field; 0: there is none; SHOAL_EFORMAT. */
int proto_next(cur *c, proto_item *ret);
/* The next number of a packed list; c->failed when it is malformed or missing. */
uint64_t proto_varint(cur *c);

/* Appends; failures stay in the buf. */
void proto_put_varint(buf *out, uint64_t v); /* bare */
void proto_put_number(buf *out, uint32_t number, uint64_t v);
void proto_put_bytes(buf *out, uint32_t number, const void *bytes, size_t n);
void proto_put_text(buf *out, uint32_t number, const char *s);
void proto_put_fixed32(buf *out, uint32_t number, uint32_t v);
void proto_put_fixed64(buf *out, uint32_t number, uint64_t v);

#endif
