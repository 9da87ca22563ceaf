/* json_memory.c: every block that jansson takes stands in a ring while its parse runs, and alone afterwards. */
#include "base/json_memory.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

/* In front of each block; 16 bytes, so what follows is aligned as malloc aligns. */
typedef struct block {
    struct block *next, *prev;
} block;

typedef struct parse {
    block ring; /* of the blocks that this parse took and still holds */
    jmp_buf out;
} parse;

static _Thread_local parse *running; /* NULL: this thread parses nothing */

static void *take(size_t n)
{
    block *b = n <= SIZE_MAX - sizeof *b ? malloc(sizeof *b + n) : NULL;
    if (!b) {
        if (running) longjmp(running->out, 1);
        return NULL;
    }
    block *after = running ? &running->ring : b;
    b->next = b->prev = b;
    if (after != b) {
        b->next = after->next;
        b->prev = after;
        b->next->prev = after->next = b;
    }
    return b + 1;
}

static void give(void *p)
{
    if (!p) return;
    block *b = (block *)p - 1;
    b->next->prev = b->prev;
    b->prev->next = b->next;
    free(b);
}

void json_memory_guard(void)
{
    json_set_alloc_funcs(take, give);
}

/* The ring lies on the parse's stack: nothing may point to it when the parse is over. */
static void dissolve(block *ring, bool drop)
{
    for (block *b = ring->next, *next; b != ring; b = next) {
        next = b->next;
        b->next = b->prev = b;
        if (drop) free(b);
    }
}

json_t *json_memory_load(const char *text, size_t len, size_t flags, json_error_t *e, bool *ret_nomem)
{
    parse p = {.ring = {&p.ring, &p.ring}};
    json_t *volatile v = NULL;
    *ret_nomem = setjmp(p.out) != 0;
    if (!*ret_nomem) {
        running = &p;
        v = json_loadb(text, len, flags, e);
    }
    running = NULL;
    dissolve(&p.ring, *ret_nomem);
    return *ret_nomem ? NULL : v;
}
