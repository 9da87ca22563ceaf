/* log.c: what is logged, and where it goes; how it looks is log_format.c's business. */
#define _GNU_SOURCE
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/log_format.h"

static struct {
    log_level level;
    log_form form;
    bool colour;
} log_config = {.level = LOG_INFO};

void log_setup(log_level level, bool json)
{
    log_config.level = level;
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR"); /* https://no-color.org */
    log_config.colour = !(no && *no) && term && strcmp(term, "dumb") != 0;
    log_config.form = json ? LOG_FORM_JSON : isatty(STDERR_FILENO) ? LOG_FORM_TERMINAL : LOG_FORM_PAIRS;
}

int log_level_parse(const char *name)
{
    for (int i = 0; i <= LOG_OFF; i++)
        if (strcmp(name, log_level_name((log_level)i)) == 0) return i;
    return -1;
}

bool log_enabled(log_level level)
{
    return level >= log_config.level;
}

static size_t terminal_columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

void log_write(log_level level, const char *component, const char *event, const log_field *fields, size_t n)
{
    log_event e = {.level = level,
                   .component = component,
                   .event = event,
                   .fields = fields,
                   .n_fields = n,
                   .colour = log_config.colour};
    clock_gettime(CLOCK_REALTIME, &e.at);
    buf b = {0};
    log_format(&b, log_config.form, log_config.form == LOG_FORM_TERMINAL ? terminal_columns() : 0, &e);
    if (!b.failed &&
        write(STDERR_FILENO, b.data, b.len) < 0) { /* a log that cannot be written has nowhere to say so */
    }
    buf_done(&b);
}
