/* scale.c: see scale.h. */
#include "cluster/scale.h"

#define MS 1000000u

enum { CARRIED_PERCENT = 70, FULL_PERCENT = 90, SOON_TIMES = 4 };

static const struct {
    const char *word, *text;
} WHY[] = {
#define SCALE_WHY_ROW(e, w, s) {w, s},
    SCALE_WHY_TABLE(SCALE_WHY_ROW)
#undef SCALE_WHY_ROW
};

const char *scale_why_word(scale_why w)
{
    return WHY[w].word;
}

const char *scale_why_text(scale_why w)
{
    return WHY[w].text;
}

bool scale_is_step(scale_why w)
{
    return w < SCALE_STEADY;
}

static unsigned clamp(unsigned n, const scale_range *r)
{
    unsigned max = r->max ? r->max : r->min;
    return n < r->min ? r->min : n > max ? max : n;
}

/* What was seen before says nothing of the new number. */
static void forget_load(scale *s)
{
    s->pressed_ns = s->quiet_ns = s->failing_ns = 0;
}

static scale_why step_to(scale *s, unsigned n, scale_why why, uint64_t now_ns)
{
    s->step_ns = n > s->n ? now_ns : 0;
    s->n = n;
    forget_load(s);
    return why;
}

void scale_begin(scale *s, const scale_range *r, uint64_t now_ns)
{
    *s = (scale){.patience = 1};
    step_to(s, r->min, SCALE_RANGE, now_ns);
    if (r->max == 0) s->step_ns = 0; /* no look follows that would end it */
}

void scale_follow(scale *s, const scale_range *r, unsigned n, uint64_t now_ns)
{
    n = clamp(n, r);
    if (n != s->n) step_to(s, n, SCALE_RANGE, now_ns);
}

/* ---- what is seen -------------------------------------------------------------------------------- */

static uint64_t slots(const scale_view *v)
{
    return v->n_slots ? v->n_slots : 1;
}

/* Where a replica is free, whoever waits waits for another reason: the next request goes there. */
static bool waits_too_long(const scale *s, const scale_view *v, double limit_ms)
{
    bool full = 100 * v->n_running >= FULL_PERCENT * slots(v) * s->n;
    bool is_new = v->p95_since_ns >= s->settled_ns + (uint64_t)SCALE_SUSTAIN_MS * MS;
    return v->queue_ms > limit_ms || (v->p95_ms > limit_ms && full && is_new);
}

static void note_pressure(scale *s, const scale_range *r, const scale_view *v, uint64_t now_ns)
{
    uint64_t in_line = v->n_waiting + v->n_held;
    if (!waits_too_long(s, v, (double)r->wait_ms)) {
        s->pressed_ns = 0;
        return;
    }
    if (!s->pressed_ns) s->pressed_ns = now_ns;
    if (s->pressed_ns < now_ns && in_line < s->peak) return;
    s->peak = in_line;
    s->peak_ns = now_ns;
}

/* Down to no replica any request counts, else one that waits. */
static bool is_quiet(const scale *s, const scale_range *r, const scale_view *v)
{
    bool last = s->n <= 1;
    if (last) return v->n_running + v->n_waiting + v->n_held == 0 && v->n_requests == s->n_requests;
    return v->n_held == 0 && !waits_too_long(s, v, (double)r->wait_ms / 2);
}

static void note_quiet(scale *s, const scale_range *r, const scale_view *v, uint64_t now_ns)
{
    double in_flight = (double)(v->n_running + v->n_waiting), past_ms = (double)(now_ns - s->seen_ns) / MS,
           over_ms = r->idle_ms < SCALE_MEAN_MS ? (double)r->idle_ms : SCALE_MEAN_MS;
    if (!is_quiet(s, r, v)) {
        s->quiet_ns = 0;
    } else if (!s->quiet_ns) {
        s->quiet_ns = now_ns;
        s->busy = s->busiest = in_flight;
    } else {
        s->busy += (in_flight - s->busy) * past_ms / (over_ms + past_ms);
        if (s->busy > s->busiest) s->busiest = s->busy;
    }
    s->n_requests = v->n_requests;
    s->seen_ns = now_ns;
}

/* The one that was asked for answers, or all that there were at the begin. */
static void note_answer(scale *s, const scale_view *v, uint64_t now_ns)
{
    if (!s->step_ns || v->n_ready < s->n) return;
    s->load_ms = (double)(now_ns - s->step_ns) / MS;
    s->settled_ns = now_ns;
    s->step_ns = s->pause_ms = 0;
    forget_load(s);
}

/* ---- steps --------------------------------------------------------------------------------------- */

/* One at least stays wanted of a model that somebody asks for, so that calls hear why none answers. */
static unsigned least(const scale_range *r)
{
    return r->min ? r->min : 1;
}

/* One that is started again and again is not shown as failed all the time. */
static bool has_failed(scale *s, const scale_view *v, uint64_t now_ns)
{
    bool fails = s->step_ns && v->n_failed > 0;
    if (fails && !s->failing_ns) s->failing_ns = now_ns;
    return fails && now_ns - s->failing_ns >= (uint64_t)SCALE_FAILING_MS * MS;
}

static scale_why give_up(scale *s, uint64_t now_ns)
{
    s->pause_ms = s->pause_ms ? 2 * s->pause_ms : SCALE_PAUSE_MS;
    if (s->pause_ms > SCALE_PAUSE_MAX_MS) s->pause_ms = SCALE_PAUSE_MAX_MS;
    s->pause_until_ns = now_ns + s->pause_ms * MS;
    return step_to(s, s->n - 1, SCALE_FAILED, now_ns);
}

/* As the queue has shrunk since it was longest. */
static bool comes_too_late(const scale *s, const scale_range *r, const scale_view *v, uint64_t now_ns)
{
    uint64_t in_line = v->n_waiting + v->n_held;
    bool shrinks = v->queue_ms > (double)r->wait_ms && in_line < s->peak && now_ns > s->peak_ns;
    if (!shrinks) return false;
    double ms_each = (double)(now_ns - s->peak_ns) / MS / (double)(s->peak - in_line);
    return ms_each * (double)in_line < s->load_ms;
}

static scale_why raise(scale *s, const scale_range *r, const scale_view *v, uint64_t now_ns)
{
    if (now_ns - s->pressed_ns < (uint64_t)SCALE_SUSTAIN_MS * MS) return SCALE_STEADY;
    if (s->n >= r->max) return SCALE_AT_MAX;
    if (s->step_ns || v->n_ready < s->n) return SCALE_STARTING;
    if (now_ns < s->pause_until_ns) return SCALE_PAUSES;
    if (comes_too_late(s, r, v, now_ns)) return SCALE_TOO_LATE;
    if (v->n_room <= s->n) return SCALE_NO_ROOM;
    bool soon = s->lowered_ns && now_ns - s->lowered_ns < SOON_TIMES * s->patience * r->idle_ms * MS;
    s->patience = !soon ? 1 : s->patience < SCALE_PATIENCE_MAX ? 2 * s->patience : SCALE_PATIENCE_MAX;
    return step_to(s, s->n + 1, SCALE_WAITED, now_ns);
}

/* Was it quiet for long enough, and would the others have carried what ran? If not, the time begins anew. */
static bool may_lower(scale *s, const scale_range *r, const scale_view *v, uint64_t now_ns)
{
    double past_ms = (double)(now_ns - s->quiet_ns) / MS;
    if (!s->quiet_ns || past_ms < (double)(s->patience * r->idle_ms)) return false;
    bool carry = 100 * s->busiest <= (double)(CARRIED_PERCENT * slots(v) * (s->n - 1));
    s->quiet_ns = 0;
    return carry;
}

scale_why scale_look(scale *s, const scale_range *r, const scale_view *v, uint64_t now_ns)
{
    if (clamp(s->n, r) != s->n) return step_to(s, clamp(s->n, r), SCALE_RANGE, now_ns);
    note_answer(s, v, now_ns);
    note_pressure(s, r, v, now_ns);
    note_quiet(s, r, v, now_ns);
    if (s->n == 0) return v->n_held ? step_to(s, 1, SCALE_CALLED, now_ns) : SCALE_STEADY;
    bool failed = has_failed(s, v, now_ns);
    if (s->n > least(r) && failed) return give_up(s, now_ns);
    if (s->n > least(r) && v->n_room < s->n) return step_to(s, s->n - 1, SCALE_NO_MACHINE, now_ns);
    if (s->pressed_ns) return raise(s, r, v, now_ns);
    if (s->n == r->min || !may_lower(s, r, v, now_ns)) return SCALE_STEADY;
    s->lowered_ns = now_ns;
    return step_to(s, s->n - 1, SCALE_IDLE, now_ns);
}

bool scale_needs_room(const scale *s, const scale_range *r, const scale_view *v)
{
    bool lacks = s->n > least(r) && v->n_ready < s->n;
    return lacks || (s->n > 0 && s->n < r->max && waits_too_long(s, v, (double)r->wait_ms));
}
