/* tok_wire.h: Protocol Buffers' wire format, a field at a time, over hostile bytes.
 *
 *     wire_field f;
 *     while ((rc = wire_next(&c, &f)) > 0)
 *         if (f.number == 1 && f.type == WIRE_BYTES) ... f.bytes is a cursor over the field
 *
 * Source: protobuf.dev/programming-guides/encoding. Groups, which nobody writes any more, are malformed. */
#ifndef TOKENIZER_FILES_TOK_WIRE_H
#define TOKENIZER_FILES_TOK_WIRE_H

#include "base/cur.h"
#include "shoal.h"

typedef enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 } wire_type;

typedef struct wire_field {
    uint64_t number;
    wire_type type;
    uint64_t value; /* of all types but WIRE_BYTES */
    cur bytes;
} wire_field;

/* Up to ten bytes, seven bits in each; spends the cursor when there is no end. */
static inline uint64_t wire_varint(cur *c)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cur_u8(c);
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) return v;
    }
    c->failed = true;
    return 0;
}

/* 1 and the next field, 0 at the end, SHOAL_EFORMAT. */
static inline int wire_next(cur *c, wire_field *ret)
{
    if (!c->failed && cur_left(c) == 0) return 0;
    uint64_t key = wire_varint(c);
    *ret = (wire_field){.number = key >> 3, .type = (wire_type)(key & 7)};
    switch (ret->type) {
    case WIRE_VARINT: ret->value = wire_varint(c); break;
    case WIRE_64: ret->value = cur_u64(c); break;
    case WIRE_32: ret->value = cur_u32(c); break;
    case WIRE_BYTES: {
        uint64_t n = wire_varint(c);
        const uint8_t *p = n <= cur_left(c) ? cur_take(c, (size_t)n) : NULL;
        if (!p) return SHOAL_EFORMAT;
        ret->bytes = cur_over(p, (size_t)n);
        break;
    }
    default: return SHOAL_EFORMAT;
    }
    return c->failed ? SHOAL_EFORMAT : 1;
}

#endif
