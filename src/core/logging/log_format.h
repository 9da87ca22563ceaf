/* log_format.h: how one event of the log looks.
 *
 * For machines a line of key=value or of JSON; for a person at a terminal one row:
 *
 *     21:25:42.123 INFO  agent worker_started home-intent/0 pid=21716 address=unix:/tmp/sho…nt.0.sock
 *     21:25:43.007 WARN  agent worker_exited home-intent/0 …
 *         reason: killed by signal 9; it is started again in 0.5 s
 *
 * Long values lose their middle and ids their end, empty values and what `shoal models` tells better
 * (digests, versions) are left out, and so is what finds no room: then there is a mark behind all. The
 * sentences of warnings and errors stand whole in rows below. The lines of a pipe have everything. */
#ifndef LOGGING_LOG_FORMAT_H
#define LOGGING_LOG_FORMAT_H

#include <time.h>

#include "base/buf.h"
#include "logging/log.h"

typedef enum { LOG_FORM_PAIRS, LOG_FORM_JSON, LOG_FORM_TERMINAL } log_form;

typedef struct log_event {
    struct timespec at;
    log_level level;
    const char *component, *event;
    const log_field *fields;
    size_t n_fields;
    bool colour; /* LOG_FORM_TERMINAL: levels have colours, what matters less is faint */
} log_event;

/* Append the event and its line end. columns: of the terminal, its rows are no wider (LOG_FORM_TERMINAL only;
 * at least 40). */
void log_format(buf *out, log_form form, size_t columns, const log_event *e);

/* Append without a line end: component, event and key=value pairs, as in a line of pairs behind its level. */
void log_format_message(buf *out, const log_event *e);
/* Append the value alone, unquoted. */
void log_format_value(buf *out, const log_field *f);

/* As it stands in a line; static. */
const char *log_level_name(log_level level);

#endif
