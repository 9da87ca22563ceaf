/* csv_write.c: see csv_write.h. */
#include "formats/csv_write.h"

#include <math.h>

void csv_write_text(buf *out, const char *s, bool more)
{
    buf_puts(out, more ? ",\"" : "\"");
    for (; *s; s++) {
        if (*s == '"') buf_putc(out, '"');
        buf_putc(out, *s);
    }
    buf_putc(out, '"');
}

void csv_write_number(buf *out, double v, bool more)
{
    if (more) buf_putc(out, ',');
    if (isnan(v))
        buf_puts(out, "nan");
    else
        buf_printf(out, "%.17g", v);
}
