/* buf.h: growing bytes and checked sizes.
 *
 * A buf is a growing byte string whose failures stick: append freely, look at `failed` once at the
 * end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h" /* where there is one, the other is near */

typedef struct buf {
    char *data; /* owned; NUL-terminated whenever len > 0 or cap > 0 */
    size_t len, cap;
    bool failed; /* an append could not get memory; data holds what came before it */
} buf;

/* A zeroed buf is an empty one. Each append returns 0 or SHOAL_ENOMEM. */
int buf_reserve(buf *b, size_t more);
static inline int buf_append(buf *b, const void *data, size_t n);
static inline int buf_puts(buf *b, const char *s);
static inline int buf_putc(buf *b, char c);
int buf_printf(buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_join(buf *b, const buf *more); /* its bytes, and its failure */
void buf_clear(buf *b);                /* keeps the memory */
void buf_consume(buf *b, size_t n);    /* drop n bytes at the front; n <= len */
char *buf_take(buf *b);                /* the bytes are the caller's to free(); NULL when failed */
void buf_done(buf *b);

/* What buf_append does where there is no room, or no buf any more. */
int buf_append_growing(buf *b, const void *data, size_t n);

static inline int buf_append(buf *b, const void *data, size_t n)
{
    if (b->failed || n >= b->cap - b->len) return buf_append_growing(b, data, n);
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}
static inline int buf_puts(buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}
static inline int buf_putc(buf *b, char c)
{
    return buf_append(b, &c, 1);
}

/* The bytes as a string, "" when there are none. Borrowed until b changes. */
static inline const char *buf_text(const buf *b)
{
    return b->len > 0 ? b->data : "";
}

/* s, or as much of it as fits, into to[size]: what snprintf's "%s" does. NULL is "". */
void buf_copy_str(char *to, size_t size, const char *s);

/* True when the product or sum does not fit; otherwise *ret holds it. */
static inline bool size_mul(size_t a, size_t b, size_t *ret)
{
    return __builtin_mul_overflow(a, b, ret);
}
static inline bool size_add(size_t a, size_t b, size_t *ret)
{
    return __builtin_add_overflow(a, b, ret);
}

/* 64-byte-aligned, zeroed, in huge pages where it is large enough for one, resident as far as it is touched
 * (pages.h); free() it. NULL when n * size overflows or memory is out. */
void *mem_calloc64(size_t n, size_t size);

#endif
