/* reply.c: sentences from templates; see reply.h. */
#include "nlu/reply.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_SHOWN = 7 };

static const char *field_at(const char *p, const reply_field *f, size_t n, size_t *ret_len)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(f[i].name);
        if (strncmp(p + 1, f[i].name, len) != 0 || p[1 + len] != '}') continue;
        *ret_len = len + 2;
        return f[i].value ? f[i].value : "";
    }
    return NULL;
}

static const char *reply_finish(arena *a, buf *b)
{
    char *s = b->failed ? NULL : arena_strndup(a, b->data ? b->data : "", b->len);
    buf_done(b);
    return s;
}

const char *reply_fill(arena *a, const char *template, const reply_field *fields, size_t n)
{
    buf b = {0};
    for (const char *p = template; *p;) {
        size_t len = 0;
        const char *value = *p == '{' ? field_at(p, fields, n, &len) : NULL;
        if (value)
            buf_puts(&b, value);
        else
            buf_append(&b, p, len = 1);
        p += len;
    }
    return reply_finish(a, &b);
}

const char *reply_list(arena *a, const char *const *names, size_t n, const char *word, const char *more)
{
    buf b = {0};
    char count[24];
    size_t last = n > NAMES_SHOWN ? NAMES_SHOWN : n;
    for (size_t i = 0; i < last; i++) {
        if (i > 0 && i + 1 == n)
            buf_printf(&b, " %s ", word);
        else if (i > 0)
            buf_puts(&b, ", ");
        buf_puts(&b, names[i]);
    }
    const char *all = reply_finish(a, &b);
    if (n == last || !all) return all;
    snprintf(count, sizeof count, "%zu", n - last);
    reply_field f[] = {{"names", all}, {"count", count}};
    return reply_fill(a, more, f, 2);
}

/* Another device of the set is called the same: then the id tells them apart. */
static bool has_twin(const devices *d, const device_set *s, size_t i)
{
    for (size_t k = 0; k < d->n; k++)
        if (k != i && device_set_has(s, k) && strcmp(d->at[k].name, d->at[i].name) == 0) return true;
    return false;
}

const char *reply_names(arena *a, const devices *d, const device_set *s, const char *word)
{
    size_t n = 0;
    const char **names = arena_alloc(a, (device_set_count(s) + 1) * sizeof *names);
    for (size_t i = 0; i < d->n && names; i++) {
        if (!device_set_has(s, i)) continue;
        const device *x = &d->at[i];
        names[n] = n < NAMES_SHOWN && has_twin(d, s, i) ? arena_printf(a, "%s (%s)", x->name, x->id) : x->name;
        if (!names[n++]) return NULL;
    }
    return names ? reply_list(a, names, n, word, d->lex->reply.more) : NULL;
}
