/* json_memory.c: every block that jansson takes during a parse is remembered until the parse is over.
 *
 * What a parse frees while it succeeds is mostly among its latest blocks. What it frees when it fails is all
 * of them, the oldest first: a search through all blocks for each would be quadratic (30 s for 900 KB of
 * "[],"). So the search is short, and a block that it does not find is freed when the parse is over. */
#include "json/json_memory.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

enum { SEARCHED = 64 };

typedef struct blocks {
    void **at;
    size_t n, cap;
} blocks;

typedef struct parse {
    blocks taken; /* and not yet freed, the latest last */
    blocks later; /* of them, what jansson has freed and the search did not find */
    jmp_buf out;
} parse;

static _Thread_local parse *running; /* NULL: this thread parses nothing */
static _Thread_local size_t steps;

static bool json_memory_push(blocks *b, void *block)
{
    if (b->n == b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 64;
        void **at = realloc(b->at, cap * sizeof *at);
        if (!at) return false;
        b->at = at;
        b->cap = cap;
    }
    b->at[b->n++] = block;
    return true;
}

/* Free them where `all`, and the list. */
static void json_memory_end(blocks *b, bool all)
{
    while (all && b->n > 0) free(b->at[--b->n]);
    free(b->at);
}

static void *json_memory_take(size_t n)
{
    void *block = malloc(n);
    if (!running || (block && json_memory_push(&running->taken, block))) return block;
    free(block);
    longjmp(running->out, 1);
}

static bool json_memory_forget(blocks *b, const void *block, size_t n_searched)
{
    for (size_t i = b->n; i-- > 0 && n_searched-- > 0; steps++) {
        if (b->at[i] != block) continue;
        b->at[i] = b->at[--b->n];
        return true;
    }
    return false;
}

static void json_memory_give(void *block)
{
    if (!block) return;
    if (running && !json_memory_forget(&running->taken, block, SEARCHED)) {
        if (json_memory_push(&running->later, block)) return;
        json_memory_forget(&running->taken, block, SIZE_MAX);
    }
    free(block);
}

size_t json_memory_steps(void)
{
    return steps;
}

void json_memory_guard(void)
{
    json_set_alloc_funcs(json_memory_take, json_memory_give);
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
    /* A failed parse keeps nothing, and `taken` has what is in `later`. */
    json_memory_end(&p.taken, !v);
    json_memory_end(&p.later, v);
    return v;
}
