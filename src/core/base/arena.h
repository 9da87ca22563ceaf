/* arena.h: memory that dies all at once: that of a request, of a parse. Not shared between threads. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

typedef struct arena arena;

arena *arena_new(size_t chunk_bytes);  /* 0: 4096; NULL when out of memory */
void *arena_alloc(arena *a, size_t n); /* zeroed, aligned to 16; NULL when out of memory */
/* Copies of text in the arena, NUL-terminated; NULL when out of memory. */
char *arena_strndup(arena *a, const char *s, size_t n);
char *arena_strdup(arena *a, const char *s);
char *arena_printf(arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_free(arena *a); /* and all that it handed out; accepts NULL */

#endif
