/* json_memory.c: every block that jansson takes during a parse is remembered until the parse is over. */
#include "base/json_memory.h"

#include <setjmp.h>
#include <stdlib.h>

typedef struct parse {
    void **blocks; /* taken by it and not given back, the latest last */
    size_t n, cap;
    jmp_buf out;
} parse;

static _Thread_local parse *running; /* NULL: this thread parses nothing */

static bool remember(parse *p, void *block)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 64;
        void **blocks = realloc(p->blocks, cap * sizeof *blocks);
        if (!blocks) return false;
        p->blocks = blocks;
        p->cap = cap;
    }
    p->blocks[p->n++] = block;
    return true;
}

static void *take(size_t n)
{
    void *block = malloc(n);
    if (!running || (block && remember(running, block))) return block;
    free(block);
    longjmp(running->out, 1);
}

/* What a parse gives back it mostly took a moment ago. */
static void give(void *block)
{
    for (size_t i = running ? running->n : 0; i-- > 0;) {
        if (running->blocks[i] != block) continue;
        running->blocks[i] = running->blocks[--running->n];
        break;
    }
    free(block);
}

void json_memory_guard(void)
{
    json_set_alloc_funcs(take, give);
}

json_t *json_memory_load(const char *text, size_t len, size_t flags, json_error_t *e, bool *ret_nomem)
{
    parse p = {0};
    json_t *volatile v = NULL;
    *ret_nomem = setjmp(p.out) != 0;
    if (!*ret_nomem) {
        running = &p;
        v = json_loadb(text, len, flags, e);
    }
    running = NULL;
    if (*ret_nomem)
        while (p.n > 0) free(p.blocks[--p.n]);
    free(p.blocks);
    return *ret_nomem ? NULL : v;
}
