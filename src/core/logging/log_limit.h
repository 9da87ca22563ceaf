/* log_limit.h: how many log lines an unauthenticated peer may cause.
 *
 * Whoever can connect can be refused, and each refusal is a line. Of one source LOG_LIMIT_LINES lines are
 * written in LOG_LIMIT_MS; the rest is counted, and told in one line when that time is over. The first
 * LOG_LIMIT_SOURCES sources at a time have such an account of their own, all others share one, so that a
 * flood from anywhere writes a bounded number of lines, and a single refused machine is still seen beside it.
 *
 *     static void on_refused(void *user, const char *from, const char *why)
 *     {
 *         if (log_limit_take(&g->lines, from, now_ms)) LOG(LOG_WARN, "control", "connection_refused", ...);
 *     }
 *     log_limit_tell(&g->lines, "control", now_ms); // once a second: event=lines_held from=... more=512 in_s=10
 *
 * Pure but for the lines of log_limit_tell: time is an argument, in milliseconds from any origin that is not
 * 0. One thread. */
#ifndef LOGGING_LOG_LIMIT_H
#define LOGGING_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_LIMIT_LINES = 5, LOG_LIMIT_MS = 10000, LOG_LIMIT_SOURCES = 16, LOG_LIMIT_NAME = 64 };

typedef struct log_account {
    char from[LOG_LIMIT_NAME]; /* cut off, if longer */
    uint64_t since_ms;         /* 0: free */
    uint32_t n_written;
    uint64_t n_held;
} log_account;

typedef struct log_limit { /* zeroed: nothing was written */
    log_account own[LOG_LIMIT_SOURCES], others;
} log_limit;

/* May a line that `from` (an address, a name) has caused be written now? Else it is counted. */
bool log_limit_take(log_limit *l, const char *from, uint64_t now_ms);
/* Tell what was held back in times that are over, as lines of this component, and forget their sources. */
void log_limit_tell(log_limit *l, const char *component, uint64_t now_ms);

#endif
