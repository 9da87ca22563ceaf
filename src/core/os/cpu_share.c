/* cpu_share.c: see cpu_share.h. */
#define _GNU_SOURCE
#include "os/cpu_share.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/sys.h"
#include "logging/log.h"

#define CPU_SCHED_WORD(e, n) n,
const char *const cpu_sched_words[] = {CPU_SCHED_TABLE(CPU_SCHED_WORD) NULL};

static const int POLICIES[] = {
    [CPU_FAIR] = SCHED_OTHER, [CPU_BATCH] = SCHED_BATCH, [CPU_RR] = SCHED_RR, [CPU_FIFO] = SCHED_FIFO};

/* The environment is how workers, which are other processes, count as many. */
static void leave_cores(unsigned n)
{
    char text[16];
    int left = sys_core_count() - (int)n;
    snprintf(text, sizeof text, "%d", left < 1 ? 1 : left);
    setenv("SHOAL_CORES", text, 1);
}

static int set_nice(int nice)
{
    return nice == 0 || setpriority(PRIO_PROCESS, 0, nice) == 0 ? 0 : errno;
}

/* Without SCHED_RESET_ON_FORK: workers inherit it. */
static int set_policy(cpu_sched sched)
{
    bool realtime = sched == CPU_RR || sched == CPU_FIFO;
    const struct sched_param p = {.sched_priority = realtime ? 1 : 0};
    return sched == CPU_FAIR || sched_setscheduler(0, POLICIES[sched], &p) == 0 ? 0 : errno;
}

void cpu_share_apply(const cpu_share *s, const char *component)
{
    if (s->reserve > 0) leave_cores(s->reserve);
    int not_nice = set_nice(s->nice), not_sched = set_policy(s->sched);
    if (!not_nice && !not_sched) return;
    LOG(LOG_WARN, component, "cpu_refused", LOG_I("nice", s->nice), LOG_S("sched", cpu_sched_words[s->sched]),
        LOG_S("refused", not_nice && not_sched ? "nice and sched"
                         : not_nice            ? "nice"
                                               : "sched"),
        LOG_S("reason", strerror(not_nice ? not_nice : not_sched)), LOG_S("so", "it runs without"),
        LOG_S("what_to_do",
              "let its user have it: the systemd drop-in shoal-priority.conf does, or limits of its "
              "own (ulimit -e, ulimit -r)"));
}
