/* trace.h: the trace that a request belongs to (W3C Trace Context, https://www.w3.org/TR/trace-context/).
 *
 * Whoever traces a request across services sends its trace and the span that calls us:
 *
 *     traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *                  version, trace id,                  span id,         flags
 *
 * We take the trace up with a span of our own, which goes to the workers, into the log and back to the
 * client:
 *
 *     char mine[TRACE_SIZE] = "";
 *     trace_take(mine, request_header(rq, "traceparent"));     // "": no trace was asked for
 */
#ifndef LOGGING_TRACE_H
#define LOGGING_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_SIZE    56 /* "00-" 32 "-" 16 "-" 2 and a NUL */
#define TRACE_ID_SIZE 33

/* NULL: ret is "". A valid header's trace and flags with a new span; for another one a new trace begins, as
 * section 4.3 says ("new" will do to ask for one). */
void trace_take(char ret[TRACE_SIZE], const char *given);
/* A trace that begins here. Of all of them the share `ratio` (0 to 1) is sampled, as their ids decide. */
void trace_begin(char ret[TRACE_SIZE], double ratio);
/* The trace's id; "" of what is no traceparent. */
void trace_id(char ret[TRACE_ID_SIZE], const char *trace);
/* The span's id, and whether somebody records the trace; 0 and false of what is no traceparent, or NULL. */
uint64_t trace_span(const char *trace);
bool trace_is_sampled(const char *trace);
/* The trace's id as bytes; false of what is no traceparent, or NULL. */
enum { TRACE_BYTES = 16 };
bool trace_bytes(uint8_t ret[TRACE_BYTES], const char *trace);

#endif
