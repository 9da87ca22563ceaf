/* log.h: one line an event, JSON or key=value, to stderr; a row for a person when that is a terminal.
 *
 *     LOG(LOG_INFO, "agent", "worker_started", LOG_S("model", name), LOG_I("pid", pid));
 *
 * gives  time=2026-11-21T02:25:42.123Z level=info component=agent event=worker_started model=... pid=...
 * Prompt text is never logged. Thread-safe: a line is one write(2), which never waits for a reader: what
 * finds no room is dropped, and counted in a line of its own (event=lines_dropped) once there is room again.
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
 * Looks at what stderr is. */
void log_setup(log_level level, bool json);
/* Should a program's log be JSON? When it was asked for, and else where nobody sees it, unless SHOAL_LOG says
 * "pairs" (key=value, for people who read files). */
bool log_wants_json(bool asked);
int log_level_parse(const char *name); /* -1 when it is no level */
bool log_enabled(log_level level);
void log_write(log_level level, const char *component, const char *event, const log_field *fields, size_t n);

#endif
