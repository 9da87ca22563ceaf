/* log_repeat.h: the same warning again and again is a few lines and a count.
 *
 * A peer that is refused, a port that nobody listens on, a collector that fails: each try is a line. Of one event of one
 * place LOG_REPEAT_LINES lines are written in LOG_REPEAT_MS; the others are counted, and the count is a line of the same
 * level and event when that time is over:
 *
 *     level=warn component=worker event=refused from=192.0.2.7 repeated=37 in_s=10
 *
 * The place is the value of the first field that names one (from, replica, model, address, ...); of "from" the port does not
 * count. The first LOG_REPEAT_PLACES places of an event have such an account of their own; all others share one, so that a
 * flood from anywhere is a bounded number of lines, and a single refused machine is still seen beside it.
 *
 * Errors, whose reasons differ and which no stranger causes, news, and lines of one request or process (a field request_id or
 * pid) are never held back. Neither are events that a configuration bounds (keys that a reload leaves, say), nor anything
 * while LOG_REPEAT_ACCOUNTS accounts are in use.
 *
 *     if (log_repeat_take(&r, &event, now_ms)) write(&event);
 *     while (log_repeat_next(&r, now_ms, false, &count)) write(&count);   // once a second, and at the end
 *
 * Pure: time is an argument, in milliseconds from any origin that is not 0. */
#ifndef LOGGING_LOG_REPEAT_H
#define LOGGING_LOG_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "logging/log_format.h"

enum {
    LOG_REPEAT_LINES = 5,
    LOG_REPEAT_MS = 10000,
    LOG_REPEAT_PLACES = 16,
    LOG_REPEAT_ACCOUNTS = 256,
    LOG_REPEAT_NAME = 40,
    LOG_REPEAT_PLACE = 72
};

typedef struct repeat_account {
    uint64_t since_ms; /* 0: free */
    log_level level;   /* of the last line */
    uint32_t n_written;
    uint64_t n_held;
    char component[LOG_REPEAT_NAME], event[LOG_REPEAT_NAME], key[LOG_REPEAT_NAME]; /* cut off, if longer */
    char place[LOG_REPEAT_PLACE];
    uint64_t place_hash; /* of all of it */
    bool others;         /* of all places that have none */
} repeat_account;

typedef struct log_repeat { /* zeroed: nothing was written */
    repeat_account accounts[LOG_REPEAT_ACCOUNTS];
    uint32_t n_used; /* those that are not free are among the first so many */
    uint64_t n_held; /* lines that wait to be counted */
} log_repeat;

/* A count that is due, as an event; its texts are its own. */
typedef struct log_count {
    repeat_account of;
    log_field fields[3];
    log_event event;
} log_count;

/* May this line be written now? Else it is counted. */
bool log_repeat_take(log_repeat *r, const log_event *e, uint64_t now_ms);
/* The next count whose time is over, which is forgotten then; all: those whose time is not over as well. False: there is
 * none. The event's time (`at`) is the caller's to set. */
bool log_repeat_next(log_repeat *r, uint64_t now_ms, bool all, log_count *ret);

#endif
