/* log_view.c: see log_view.h. */
#include "view/log_view.h"

#include "logging/log_read.h"

bool log_view_put(buf *out, log_form form, size_t columns, bool colour, const char *line, size_t n)
{
    log_line l;
    if (!log_read(&l, line, n)) return false;
    l.event.colour = colour;
    log_format(out, form, columns, &l.event);
    log_read_done(&l);
    return true;
}
