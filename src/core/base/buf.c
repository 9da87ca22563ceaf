/* buf.c: growing bytes, checked memory; see buf.h. A buf doubles and may move. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "shoal.h"

int buf_reserve(buf *b, size_t more)
{
    size_t need;
    if (size_add(b->len, more, &need) || size_add(need, 1, &need)) goto fail;
    if (need <= b->cap) return 0;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need) {
        if (cap > SIZE_MAX / 2) {
            cap = need;
            break;
        }
        cap *= 2;
    }
    char *p = realloc(b->data, cap);
    if (!p) goto fail;
    b->data = p;
    b->cap = cap;
    b->data[b->len] = '\0';
    return 0;
fail:
    b->failed = true;
    return SHOAL_ENOMEM;
}

int buf_append_growing(buf *b, const void *data, size_t n)
{
    if (b->failed || buf_reserve(b, n) != 0) return SHOAL_ENOMEM;
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int buf_printf(buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t room = b->failed ? 0 : b->cap - b->len; /* most often what is there is enough */
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);
    va_end(ap);
    int rc = SHOAL_ENOMEM;
    if (n >= 0 && !b->failed && ((size_t)n < room || buf_reserve(b, (size_t)n) == 0)) {
        if ((size_t)n >= room) vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
        rc = 0;
    } else if (room) {
        b->data[b->len] = '\0'; /* as if nothing had been written */
    }
    va_end(again);
    return rc;
}

int buf_join(buf *b, const buf *more)
{
    b->failed |= more->failed;
    return buf_append(b, more->data, more->len);
}

void buf_clear(buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data) b->data[0] = '\0';
}

void buf_consume(buf *b, size_t n)
{
    if (n == 0) return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

char *buf_take(buf *b)
{
    if (!b->failed && !b->data) buf_reserve(b, 0);
    char *p = b->failed ? NULL : b->data;
    if (!p) free(b->data);
    *b = (buf){0};
    return p;
}

void buf_done(buf *b)
{
    free(b->data);
    *b = (buf){0};
}

void buf_copy_str(char *to, size_t size, const char *s)
{
    size_t n = s ? strnlen(s, size - 1) : 0;
    memcpy(to, s ? s : "", n);
    to[n] = '\0';
}

void *mem_calloc64(size_t n, size_t size)
{
    size_t bytes;
    if (size_mul(n, size, &bytes) || size_add(bytes, 63, &bytes)) return NULL;
    bytes &= ~(size_t)63;
    void *p;
    if (bytes == 0) bytes = 64;
    if (posix_memalign(&p, bytes < PAGES_HUGE ? 64 : PAGES_HUGE, bytes) != 0) return NULL;
    if (bytes >= PAGES_HUGE) pages_advise(p, bytes);
    pages_clear(p, bytes);
    return p;
}
