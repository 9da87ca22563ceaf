/* event.c: see event.h. */
#include "messages/event.h"

#include <string.h>

enum { FIELD_END = 0x1F, EVENT_MARK = 0x1E, FIRST_KIND = '0' };

const event EVENT_FINAL = {.kind = EVENT_LAST, .id = "", .name = "", .data = "[DONE]", .n_data = 6};

void event_begin(buf *out, event_kind kind, const char *name)
{
    buf_putc(out, FIELD_END);
    buf_putc(out, (char)(FIRST_KIND + (int)kind));
    if (name) buf_puts(out, name);
    buf_putc(out, FIELD_END);
}

void event_end(buf *out)
{
    buf_putc(out, EVENT_MARK);
}

void event_put_done(buf *out)
{
    event_begin(out, EVENT_LAST, NULL);
    buf_append(out, EVENT_FINAL.data, EVENT_FINAL.n_data);
    event_end(out);
}

void event_put_alive(buf *out)
{
    event_begin(out, EVENT_ALIVE, NULL);
    event_end(out);
}

/* Up to the mark, which is skipped. False: there is none. */
static bool take_field(const char **at, const char *end, char mark, const char **ret, size_t *ret_n)
{
    const char *found = *at < end ? memchr(*at, mark, (size_t)(end - *at)) : NULL;
    if (!found) return false;
    *ret = *at;
    *ret_n = (size_t)(found - *at);
    *at = found + 1;
    return true;
}

bool event_next(const char **bytes, size_t *n, event *ret)
{
    const char *at = *bytes, *end = at + *n;
    *ret = (event){.id = "", .name = "", .data = ""};
    bool whole = take_field(&at, end, FIELD_END, &ret->id, &ret->n_id) &&
                 take_field(&at, end, FIELD_END, &ret->name, &ret->n_name) && ret->n_name > 0 &&
                 take_field(&at, end, EVENT_MARK, &ret->data, &ret->n_data);
    if (!whole) return false;
    ret->kind = (event_kind)(*ret->name - FIRST_KIND);
    ret->name++;
    ret->n_name--;
    *n -= (size_t)(at - *bytes);
    *bytes = at;
    return true;
}

static void put_line(buf *out, const char *field, const char *s, size_t n)
{
    if (n == 0) return;
    buf_puts(out, field);
    buf_append(out, s, n);
    buf_putc(out, '\n');
}

void event_write_sse(buf *out, const event *e)
{
    if (e->kind == EVENT_ALIVE) buf_puts(out, ": still here\n");
    put_line(out, "id: ", e->id, e->n_id);
    put_line(out, "event: ", e->name, e->n_name);
    put_line(out, "data: ", e->data, e->n_data);
    buf_putc(out, '\n');
}
