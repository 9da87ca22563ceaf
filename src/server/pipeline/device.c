/* device.c: see device.h. */
#include "pipeline/device.h"

#include "base/buf.h"

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
