/* log_ring.h: the last lines of the log, for whoever asks what happened.
 *
 * A server keeps some thousand lines of JSON in memory, each with a number; when there is no room the oldest
 * go. A reader remembers the number of the last line that it had, and asks for what came behind it:
 *
 *     uint64_t at = log_ring_before(100, LOG_INFO);          // the last hundred
 *     while (log_ring_next(&at, LOG_INFO, &out)) ...         // {"time":...}, without its line end
 *
 * Process-wide, as the log is. Any thread. */
#ifndef LOGGING_LOG_RING_H
#define LOGGING_LOG_RING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "logging/log.h"

/* Keep lines from now on; before there are threads. */
int log_ring_open(size_t max_lines, size_t max_bytes, shoal_err *err);
/* Lines that come later are not kept. */
void log_ring_close(void);
bool log_ring_is_open(void);

/* Keep one line of n bytes, if there is memory for it. */
void log_ring_add(log_level level, const char *line, size_t n);

/* The number behind which the last n lines of this level and above stand. */
uint64_t log_ring_before(size_t n, log_level least);
/* Append the next such line behind number *at, and make that its number; false: there is none yet. */
bool log_ring_next(uint64_t *at, log_level least, buf *out);
/* How many lines behind number `at` are gone already. */
uint64_t log_ring_missed(uint64_t at);

#endif
