/* buf.c: growing bytes, arenas, checked memory; see buf.h. A buf doubles and may move; a chunk of an arena
 * never moves, so what it handed out stays where it is until arena_free. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int buf_append(buf *b, const void *data, size_t n)
{
    if (b->failed || buf_reserve(b, n) != 0) return SHOAL_ENOMEM;
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int buf_puts(buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_putc(buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_printf(buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    int rc = SHOAL_ENOMEM;
    if (n >= 0 && !b->failed && buf_reserve(b, (size_t)n) == 0) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
        rc = 0;
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

typedef struct arena_chunk {
    struct arena_chunk *next;
    size_t used, cap;
    _Alignas(16) char bytes[];
} arena_chunk;

struct arena {
    arena_chunk *head;
    size_t chunk_bytes;
};

arena *arena_new(size_t chunk_bytes)
{
    arena *a = calloc(1, sizeof *a);
    if (a) a->chunk_bytes = chunk_bytes ? chunk_bytes : 4096;
    return a;
}

void *arena_alloc(arena *a, size_t n)
{
    size_t want;
    if (size_add(n, 15, &want)) return NULL;
    want &= ~(size_t)15;
    arena_chunk *c = a->head;
    if (!c || c->cap - c->used < want) {
        size_t cap = want > a->chunk_bytes ? want : a->chunk_bytes, total;
        if (size_add(cap, sizeof *c, &total)) return NULL;
        c = malloc(total);
        if (!c) return NULL;
        *c = (arena_chunk){.next = a->head, .cap = cap};
        a->head = c;
    }
    void *p = c->bytes + c->used;
    c->used += want;
    return memset(p, 0, want);
}

char *arena_strndup(arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (p) memcpy(p, s, n);
    return p;
}

char *arena_strdup(arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (p) vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

void arena_free(arena *a)
{
    if (!a) return;
    for (arena_chunk *c = a->head; c;) {
        arena_chunk *next = c->next;
        free(c);
        c = next;
    }
    free(a);
}

void *mem_calloc64(size_t n, size_t size)
{
    size_t bytes;
    if (size_mul(n, size, &bytes) || size_add(bytes, 63, &bytes)) return NULL;
    bytes &= ~(size_t)63;
    void *p = aligned_alloc(64, bytes ? bytes : 64);
    return p ? memset(p, 0, bytes ? bytes : 64) : NULL;
}
