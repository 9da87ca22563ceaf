/* cur.h: a bounded cursor over hostile bytes, little-endian.
 *
 * Every read checks the end. After the first failed read the cursor is spent: it stays failed, all
 * later reads give zero or NULL, so a parser may read a whole header and check once. */
#ifndef BASE_CUR_H
#define BASE_CUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct cur {
    const uint8_t *start, *at, *end;
    bool failed;
} cur;

static inline cur cur_over(const void *data, size_t n)
{
    const uint8_t *p = data;
    return (cur){.start = p, .at = p, .end = p ? p + n : p};
}

static inline size_t cur_left(const cur *c)
{
    return (size_t)(c->end - c->at);
}
static inline size_t cur_offset(const cur *c)
{
    return (size_t)(c->at - c->start);
}

/* Borrow the next n bytes and step over them; NULL when fewer are left. */
static inline const uint8_t *cur_take(cur *c, size_t n)
{
    if (c->failed || n > cur_left(c)) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += n;
    return p;
}

#define CUR_READER(name, type)                    \
    static inline type cur_##name(cur *c)         \
    {                                             \
        type v = 0;                               \
        const uint8_t *p = cur_take(c, sizeof v); \
        if (p) memcpy(&v, p, sizeof v);           \
        return v;                                 \
    }
CUR_READER(u8, uint8_t)
CUR_READER(u16, uint16_t)
CUR_READER(u32, uint32_t)
CUR_READER(u64, uint64_t)
CUR_READER(f32, float)
CUR_READER(f64, double)
#undef CUR_READER

#endif
