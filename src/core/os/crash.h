/* crash.h: one line on standard error when this process dies of a fault of its own.
 *
 *     component=gateway event=crash signal=11 name=SEGV address=0x10 thread=4711 uptime_ms=1234 version=0.3.0
 *         endpoint=chat request_id=8f.. request=in_handler backtrace="shoal+0x1f2b3 libc.so.6+0x3c050 .."
 *
 * in the form of the log. Offsets are of the file: `addr2line -f -e FILE OFFSET` names them. The process then
 * dies of the same signal, so that a core is written and whoever waits for it sees what happened. The handler
 * allocates nothing, takes no lock of ours and never waits for a reader.
 *
 * Of the process, as the log is; crash_open once, before there are threads. */
#ifndef OS_CRASH_H
#define OS_CRASH_H

#include <stdbool.h>

/* component: static. A forked child of this process reports nothing. Does nothing under AddressSanitizer or
 * ThreadSanitizer, which have reports of their own. */
void crash_open(const char *component, bool json);
/* A request is being handled; copied. Of the last one the report says whether its handler was still running. */
void crash_enter(const char *endpoint, const char *request_id);
void crash_leave(void);

#endif
