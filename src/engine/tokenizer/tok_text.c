/* tok_text.c: text that knows its origin; see tok_text.h. A writer's failure sticks until tok_text_finish,
 * which then leaves the text as it was. */
#include "tokenizer/tok_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "shoal.h"

void tok_text_done(tok_text *t)
{
    if (t->own) free(t->from); /* otherwise both are borrowed from a longer text */
    free(t->own);
    memset(t, 0, sizeof *t);
}

static bool is_tail(char c)
{
    return ((uint8_t)c & 0xC0) == 0x80;
}

static text_range byte_origin(const tok_text *t, size_t at)
{
    if (t->from) return t->from[at];
    size_t b = at, e = at + 1;
    while (b > 0 && is_tail(t->s[b])) b--;
    while (e < t->len && is_tail(t->s[e])) e++;
    return (text_range){(uint32_t)(t->base + b), (uint32_t)(t->base + e)};
}

text_range tok_text_origin(const tok_text *t, size_t b, size_t e)
{
    return (text_range){byte_origin(t, b).begin, byte_origin(t, e - 1).end};
}

text_writer tok_text_rewrite(const tok_text *src, size_t at)
{
    return (text_writer){.src = src, .at = at};
}

static bool reserve(text_writer *w, size_t more)
{
    tok_text *d = &w->dst;
    if (w->failed || d->len + more <= d->cap) return !w->failed;
    size_t cap = d->cap ? d->cap * 2 : w->src->len + 16;
    while (cap < d->len + more) cap *= 2;
    char *own = realloc(d->own, cap);
    if (own) d->own = own;
    text_range *from = own ? realloc(d->from, cap * sizeof *from) : NULL;
    if (from) d->from = from;
    w->failed = !from;
    if (from) d->cap = cap;
    return !w->failed;
}

static void tok_text_add(text_writer *w, const char *s, size_t n, text_range from)
{
    if (!reserve(w, n)) return;
    tok_text *d = &w->dst;
    for (size_t i = 0; i < n; i++) {
        d->own[d->len] = s[i];
        d->from[d->len++] = from;
    }
}

void tok_text_put(text_writer *w, uint32_t cp, int change)
{
    char s[4];
    size_t n = utf8_encode(cp, s);
    text_range from = {0, 0};
    size_t at = change > 0 ? w->at - 1 : w->at;
    if (at < w->src->len && (change <= 0 || w->at > 0)) from = byte_origin(w->src, at);
    tok_text_add(w, s, n, from);
    for (int i = change; i <= 0 && w->at < w->src->len; i++) tok_text_next(w->src, &w->at);
}

void tok_text_put_str(text_writer *w, const char *s, size_t len, int first_change)
{
    tok_text t = {.s = s, .len = len};
    for (size_t at = 0; at < len;) {
        bool first = at == 0;
        tok_text_put(w, tok_text_next(&t, &at), first ? first_change : 1);
    }
}

void tok_text_put_for(text_writer *w, const char *s, size_t len, size_t b, size_t e)
{
    tok_text_add(w, s, len, tok_text_origin(w->src, b, e));
}

void tok_text_copy(text_writer *w, size_t until)
{
    reserve(w, until - w->at); /* without memory nothing is written, but callers wait for `at` to move */
    while (w->at < until) {
        size_t b = w->at;
        tok_text_next(w->src, &w->at);
        tok_text_add(w, w->src->s + b, w->at - b, byte_origin(w->src, b));
    }
}

void tok_text_skip(text_writer *w, size_t until)
{
    w->at = until;
}

int tok_text_finish(text_writer *w, tok_text *t)
{
    if (!w->failed && !w->dst.own) reserve(w, 1);
    if (w->failed) {
        tok_text_done(&w->dst);
        return SHOAL_ENOMEM;
    }
    w->dst.s = w->dst.own;
    w->dst.base = t->base;
    tok_text_done(t);
    *t = w->dst;
    return 0;
}

uint32_t tok_text_next(const tok_text *t, size_t *at)
{
    uint32_t cp = (uint8_t)t->s[*at];
    if (cp < 0x80) {
        ++*at;
        return cp;
    }
    size_t n = utf8_decode(t->s + *at, t->len - *at, &cp);
    *at += n ? n : 1;
    return cp;
}
