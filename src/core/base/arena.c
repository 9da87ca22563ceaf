/* arena.c: memory that dies all at once; see arena.h. A chunk never moves, so what it handed out stays where
 * it is until arena_free. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

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
    arena *a = malloc(sizeof *a);
    if (a) *a = (arena){.chunk_bytes = chunk_bytes ? chunk_bytes : 4096};
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
