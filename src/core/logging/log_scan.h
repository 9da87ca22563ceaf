/* log_scan.h: is this a line as log.h writes it in JSON, and of which level? For lines that are passed on as they are.
 *
 *     {"time":"2026-11-21T02:25:42.123Z","level":"info","component":"worker","event":"call_done","ms":16.4}
 *                                                                                              ^ head: fields go in here
 *
 * The line may be anybody's bytes. What is taken is JSON of one line, and log_read.h reads it. What is not may still be an
 * event for log_read.h (members in another order, spaces, a null, many fields, names that differ in case alone). No memory. */
#ifndef LOGGING_LOG_SCAN_H
#define LOGGING_LOG_SCAN_H

#include "logging/log_format.h"

enum { LOG_SCAN_FIELDS = 59 };

typedef struct log_scanned {
    log_level level;
    size_t head; /* bytes of the line up to the end of the event's name */
} log_scanned;

/* line[n] without its end. absent: a key that no field may have, since the caller adds it; NULL: none. False: *ret is as it was. */
bool log_scan(log_scanned *ret, const char *line, size_t n, const char *absent);

#endif
