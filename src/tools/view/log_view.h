/* log_view.h: a line of JSON that a server logged, as a row for a person (logging/log_format.h). */
#ifndef VIEW_LOG_VIEW_H
#define VIEW_LOG_VIEW_H

#include <stdbool.h>

#include "base/buf.h"
#include "logging/log_format.h"

/* Append it in that form; false, and nothing is appended, when it is no line of a log. What is in it may be
 * anybody's: control characters are shown as escapes. */
bool log_view_put(buf *out, log_form form, size_t columns, bool colour, const char *line, size_t n);

#endif
