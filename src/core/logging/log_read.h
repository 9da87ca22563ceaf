/* log_read.h: a line of JSON as log.h writes it, back as an event: what `shoal logs` shows, what a worker has written.
 *
 *     log_line l;
 *     if (log_read(&l, line, n)) { log_format(&out, form, columns, &l.event); log_read_done(&l); }
 *
 * The line may be anybody's bytes. Members that are no text and no number, and keys that are no plain words, are left out. */
#ifndef LOGGING_LOG_READ_H
#define LOGGING_LOG_READ_H

#include "json/json.h"
#include "logging/log_format.h"

enum { LOG_READ_FIELDS = 64 };

typedef struct log_line {
    json_t *object; /* what the texts of the event belong to */
    log_field fields[LOG_READ_FIELDS];
    log_event event; /* its fields are those, one more at most: the last is free for the caller */
} log_line;

/* False: it is none, and nothing is to be freed. The event refers to *ret. */
bool log_read(log_line *ret, const char *line, size_t n);
void log_read_done(log_line *l);

#endif
