/* device.c: see device.h. */
#include "pipeline/device.h"

#include "base/buf.h"

/* The length keeps neighbours apart. NULL is "". */
static void put_field(buf *b, const char *s)
{
    uint64_t n = s ? strlen(s) : 0;
    buf_append(b, &n, sizeof n);
    buf_append(b, s, n);
}

static void put_list(buf *b, const char *const *list, size_t n)
{
    buf_append(b, &n, sizeof n);
    for (size_t i = 0; i < n; i++) put_field(b, list[i]);
}

bool devices_digest(const device *list, size_t n, sha256_digest *ret)
{
    buf b = {0};
    for (size_t i = 0; i < n; i++) {
        const device *d = &list[i];
        const char *const fields[] = {d->id, d->name, d->state, d->unit, d->area, d->kind};
        put_list(&b, fields, sizeof fields / sizeof *fields);
        put_list(&b, d->aliases, d->n_aliases);
        put_list(&b, d->groups, d->n_groups);
    }
    bool well = !b.failed;
    if (well) sha256_of(b.data, b.len, ret);
    buf_done(&b);
    return well;
}

char *device_option_text(const device_option *o, arena *mem)
{
    buf b = {0};
    buf_puts(&b, o->say);
    for (size_t i = 0; i < o->n_calls; i++)
        buf_printf(&b, "\n<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>", o->calls[i].name,
                   o->calls[i].arguments);
    char *text = b.failed ? NULL : arena_strndup(mem, b.data, b.len);
    buf_done(&b);
    return text;
}
