/* log_limit.c: see log_limit.h. */
#include "logging/log_limit.h"

#include <stdio.h>
#include <string.h>

#include "logging/log.h"

static bool log_limit_is_over(const log_account *a, uint64_t now_ms)
{
    return now_ms - a->since_ms >= LOG_LIMIT_MS;
}

/* Its own account, else a new one, else the common one. One whose time is over is kept until it is told. */
static log_account *account_of(log_limit *l, const char *from)
{
    log_account *unused = NULL;
    for (log_account *a = l->own; a < l->own + LOG_LIMIT_SOURCES; a++) {
        if (a->since_ms && strncmp(a->from, from, sizeof a->from - 1) == 0) return a;
        if (!a->since_ms && !unused) unused = a;
    }
    if (!unused) return &l->others;
    snprintf(unused->from, sizeof unused->from, "%s", from);
    return unused;
}

bool log_limit_take(log_limit *l, const char *from, uint64_t now_ms)
{
    log_account *a = account_of(l, from);
    if (!a->since_ms) a->since_ms = now_ms;
    if (a->n_written < LOG_LIMIT_LINES)
        a->n_written++;
    else
        a->n_held++;
    return a->n_held == 0;
}

static void tell_log_limit(log_account *a, const char *component, uint64_t now_ms)
{
    if (!a->since_ms || !log_limit_is_over(a, now_ms)) return;
    if (a->n_held)
        LOG(LOG_WARN, component, "lines_held", LOG_S("from", *a->from ? a->from : "several"),
            LOG_I("more", a->n_held), LOG_I("in_s", (now_ms - a->since_ms) / 1000));
    *a = (log_account){0};
}

void log_limit_tell(log_limit *l, const char *component, uint64_t now_ms)
{
    for (log_account *a = l->own; a < l->own + LOG_LIMIT_SOURCES; a++) tell_log_limit(a, component, now_ms);
    tell_log_limit(&l->others, component, now_ms);
}
