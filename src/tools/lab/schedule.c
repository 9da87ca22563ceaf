/* schedule.c: unrolls the faults of a scenario. */
#include "lab/schedule.h"

#include <stdlib.h>

#include "base/clock.h"

static double first_of(const lab_fault *f)
{
    return f->at_s > 0 || f->every_s <= 0 ? f->at_s : f->every_s;
}

static double last_of(const lab_scenario *s, const lab_fault *f)
{
    return f->until_s > 0 && f->until_s < s->seconds ? f->until_s : s->seconds;
}

static size_t injections_of(const lab_scenario *s, const lab_fault *f)
{
    double first = first_of(f), last = last_of(s, f);
    if (first >= last) return 0;
    if (f->every_s <= 0) return 1;
    size_t n = 0;
    while (first + (double)n * f->every_s < last) n++;
    return n;
}

/* By time; what ends goes before what begins then; equal ones stay in the scenario's order. */
static int by_time(const void *x, const void *y)
{
    const lab_event *a = x, *b = y;
    if (a->at_s != b->at_s) return a->at_s < b->at_s ? -1 : 1;
    if (a->begins != b->begins) return a->begins ? 1 : -1;
    return a->fault < b->fault ? -1 : a->fault > b->fault;
}

static size_t schedule_fill(lab_event *e, const lab_scenario *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_faults; i++)
        for (size_t k = 0, m = injections_of(s, &s->faults[i]); k < m; k++)
            e[n++] = (lab_event){.at_s = first_of(&s->faults[i]) + (double)k * s->faults[i].every_s,
                                 .fault = i,
                                 .begins = true};
    qsort(e, n, sizeof *e, by_time);
    size_t n_injections = n;
    for (size_t i = 0; i < n_injections; i++) {
        double lasts = s->faults[e[i].fault].for_s;
        e[i].injection = i;
        if (lasts > 0) e[n++] = (lab_event){.at_s = e[i].at_s + lasts, .fault = e[i].fault, .injection = i};
    }
    qsort(e, n, sizeof *e, by_time);
    return n;
}

int schedule_make(lab_event **ret, size_t *ret_n, const lab_scenario *s, shoal_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_faults; i++) n += 2 * injections_of(s, &s->faults[i]);
    lab_event *e = calloc(n + 1, sizeof *e);
    if (!e) return err_nomem(err);
    *ret_n = schedule_fill(e, s);
    *ret = e;
    return 0;
}

size_t schedule_draw(const lab_scenario *s, size_t injection, unsigned what, size_t n)
{
    return (size_t)(rng_uniform(s->seed ^ 0x6661756c74, injection * 16 + what) * (double)n);
}
