/* log.h: one line an event, JSON or key=value, to stderr; a row for a person when that is a terminal, and fields when it is
 * systemd's journal (log_journal.h).
 *
 *     LOG(LOG_INFO, "agent", "worker_started", LOG_S("model", name), LOG_I("pid", pid));
 *
 * gives  time=2026-11-21T02:25:42.123Z level=info component=agent event=worker_started model=... pid=...
 * Prompt text is never logged. Thread-safe: a line is one write(2), which never waits for a reader: what
 * finds no room is dropped, and counted in a line of its own (event=lines_dropped) once there is room again.
 * Warnings and errors that repeat are a few lines and a count (log_repeat.h).
 */
#ifndef LOGGING_LOG_H
#define LOGGING_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF } log_level;

typedef struct log_field {
    const char *key;
    enum { LOG_KIND_STR, LOG_KIND_INT, LOG_KIND_NUM } kind;
    const char *s;
    int64_t i;
    double f;
} log_field;

struct log_event; /* log_format.h */

#define LOG_S(k, v) ((log_field){.key = (k), .kind = LOG_KIND_STR, .s = (v)})
#define LOG_I(k, v) ((log_field){.key = (k), .kind = LOG_KIND_INT, .i = (int64_t)(v)})
#define LOG_F(k, v) ((log_field){.key = (k), .kind = LOG_KIND_NUM, .f = (v)})

#define LOG(level, component, event, ...)                                            \
    do {                                                                             \
        if (log_enabled(level))                                                      \
            log_write(level, component, event, (const log_field[]){__VA_ARGS__},     \
                      sizeof((const log_field[]){__VA_ARGS__}) / sizeof(log_field)); \
    } while (0)

/* Process-wide, set at start, before there are threads (the only global of the tree: a log has one reader).
 * Looks at what stderr is. Not JSON: the journal gets fields, if stderr is its stream or SHOAL_LOG says "journal". */
void log_setup(log_level level, bool json);
/* At any time, by any thread. */
void log_set_level(log_level level);
/* Should a program's log be JSON? When it was asked for, and else where nobody sees it, unless it is for the journal or
 * SHOAL_LOG says "pairs" (key=value, for people who read files). "json": JSON for the journal, too. */
bool log_wants_json(bool asked);
int log_level_parse(const char *name); /* -1 when it is no level */
bool log_enabled(log_level level);
void log_write(log_level level, const char *component, const char *event, const log_field *fields, size_t n);
/* An event of another process, which has its time and was let through there. */
void log_pass(const struct log_event *e);
/* The same as a line of JSON that log_scan.h takes; n bytes, its end ('\n') included. */
void log_pass_line(log_level level, const char *line, size_t n);
/* Between the two, lines that this thread passes on may be written several at once; one pair at a time. */
void log_hold(void);
void log_release(void);
/* The counts of lines that were held back, as far as they are due: now and then, from a timer. at_end: all. */
void log_tell_repeats(bool at_end);

#endif
