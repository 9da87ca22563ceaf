/* crash.h: one line on standard error when this process dies of a fault of its own.
 *
 *     component=gateway event=crash signal=11 name=SEGV address=0x10 thread=4711 uptime_ms=1234 version=0.3.0
 *         endpoint=chat request_id=8f.. request=in_handler backtrace="shoal+0x1f2b3 libc.so.6+0x3c050 .."
 *
 * in the form of the log. Offsets are of the file: `addr2line -f -e FILE OFFSET` names them. The process then
 * dies of the same signal, so that a core is written and whoever waits for it sees what happened. The handler
 * allocates nothing, takes no lock of ours, never waits for a reader, and ends after five seconds at the latest. Where the
 * stack cannot be walked, the line and the report have no frames. Of threads that fault at once the first one is reported.
 *
 * With crash_keep it also writes a report, a file of JSON (crash_report.h reads it): what the line says, the frames with
 * their files and build ids, what the process said of itself (crash_fact), its limits, and its last steps
 * (crash_step_begin), which are kinds, counts and times. Nothing of requests is in it but the id of the last one.
 *
 * Of the process, as the log is; crash_open once, before there are threads. */
#ifndef OS_CRASH_H
#define OS_CRASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* component: static. A forked child of this process reports nothing. Does nothing under AddressSanitizer or
 * ThreadSanitizer, which have reports of their own. */
void crash_open(const char *component, bool json);
/* A request is being handled; copied. Of the last one the report says whether its handler was still running. */
void crash_enter(const char *endpoint, const char *request_id);
void crash_leave(void);

enum {
    CRASH_STEPS = 32,
    CRASH_FACTS = 16,
    CRASH_FACT_BYTES = 128,
    CRASH_REPORT_BYTES = 32 << 10,
    CRASH_REPORTS = 20
};

/* Keep a report in this folder, which is made, and remove the oldest but CRASH_REPORTS - 1 there. A report has at most
 * CRASH_REPORT_BYTES. NULL, a path that is too long, a link, a folder that cannot be made, and one of another user or that
 * others may write into: there is none. Behind crash_open. */
void crash_keep(const char *folder);
enum { CRASH_NAME_BYTES = 64 };
/* Is a file of this name a report? */
bool crash_is_report(const char *name);
/* Does a process that dies of this signal leave a report? */
bool crash_is_fatal(int sig);
/* The newest report of such a process in the folder (NULL: none), of that second since 1970 or later: pids come again.
 * False: there is none. */
bool crash_find(const char *folder, const char *component, int pid, uint64_t since_s,
                char ret[CRASH_NAME_BYTES]);
/* The build id of this program, in hex; "": it has none. */
enum { CRASH_BUILD_BYTES = 41 };
void crash_build(char ret[CRASH_BUILD_BYTES]);
/* What a report says of this process; key: static. The value is copied, and cut. Before there are threads, or by one. */
void crash_fact(const char *key, const char *value);
/* A piece of work of this thread begins: what kind (static), for how many jobs and tokens; and it has ended. */
void crash_step_begin(const char *kind, size_t n_jobs, size_t n_tokens);
void crash_step_end(void);

#endif
