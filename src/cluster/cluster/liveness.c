/* liveness.c: see liveness.h. */
#include "cluster/liveness.h"

#include <stddef.h>

#define NS_PER_MS 1000000ull

const char *liveness_name(liveness_verdict v)
{
    static const char *const names[] = {
#define LIVENESS_NAME(e, n) n,
        LIVENESS_TABLE(LIVENESS_NAME)
#undef LIVENESS_NAME
    };
    return names[v];
}

static void begin_anew(liveness *l, const liveness_sample *s)
{
    *l = (liveness){.limits = l->limits, .progress = s->progress, .last_ns = s->now_ns};
}

/* A thread that looks around now and then has hardly used a core, and hardly waited for one. */
static bool is_much(uint64_t ns, uint64_t of_ns)
{
    return ns > 0 && ns >= of_ns / 20;
}

static bool waited(const liveness_sample *s, uint64_t passed_ns)
{
    return s->runnable || s->queued || is_much(s->delay_ns, passed_ns);
}

/* The time since the look before goes to the one thing that it was spent on. */
static void add_up(liveness *l, const liveness_sample *s)
{
    uint64_t passed_ns = s->now_ns - l->last_ns;
    l->stopped_ns = s->stopped && l->was_stopped ? l->stopped_ns + passed_ns : 0;
    if (s->stopped) return;
    if (s->on_disk) {
        l->disk_ns += passed_ns; /* and so was the processor's time */
        return;
    }
    l->cpu_ns += s->cpu_ns;
    if (is_much(s->cpu_ns, passed_ns) || waited(s, passed_ns)) return;
    bool beside = s->others_run || is_much(s->others_ns, passed_ns);
    *(beside ? &l->beside_ns : &l->asleep_ns) += passed_ns;
}

static bool liveness_is_over(uint64_t ns, unsigned ms)
{
    return ns >= ms * NS_PER_MS;
}

static const char *hangs(const liveness *l)
{
    const liveness_limits *most = &l->limits;
    if (liveness_is_over(l->stopped_ns, most->stopped_ms)) return "it is stopped";
    if (liveness_is_over(l->cpu_ns, most->cpu_ms)) return "it computes, and gets on with nothing";
    if (liveness_is_over(l->asleep_ns, most->asleep_ms))
        return "all its threads sleep, and something is to be done";
    if (liveness_is_over(l->beside_ns, most->beside_ms)) return "it sleeps, and something is to be done";
    if (liveness_is_over(l->disk_ns, most->disk_ms)) return "it waits for a disk without end";
    return NULL;
}

static liveness_verdict liveness_judge(const liveness *l, const liveness_sample *s, uint64_t passed_ns)
{
    if (l->why) return LIVENESS_HUNG;
    if (s->stopped || liveness_is_over(l->cpu_ns, LIVENESS_DOUBT_MS) ||
        liveness_is_over(l->asleep_ns, LIVENESS_DOUBT_MS) ||
        liveness_is_over(l->beside_ns, LIVENESS_DOUBT_MS))
        return LIVENESS_SILENT;
    return waited(s, passed_ns) || s->on_disk ? LIVENESS_STARVED : LIVENESS_OK;
}

void liveness_look(liveness *l, const liveness_sample *s)
{
    if (!s->busy || s->progress != l->progress || l->last_ns == 0) begin_anew(l, s);
    if (s->known && s->now_ns > l->last_ns) add_up(l, s);
    l->why = hangs(l);
    l->verdict = s->busy ? liveness_judge(l, s, s->now_ns - l->last_ns) : LIVENESS_OK;
    l->was_stopped = s->stopped;
    l->last_ns = s->now_ns;
}
