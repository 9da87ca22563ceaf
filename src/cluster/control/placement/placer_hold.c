/* placer_hold.c: see placer_hold.h. */
#include "control/placement/placer_hold.h"

#include <string.h>

/* Do all of the model's planned assignments answer, and is there one? */
static bool is_replaced(const placer_assignment *planned, size_t n, size_t model, const placer_hold_rules *r)
{
    size_t n_planned = 0;
    for (size_t i = 0; i < n; i++) {
        const placer_assignment *a = &planned[i];
        if (a->model != model || a->standby || a->held) continue;
        if ((a->end > 0 && !a->in_use) || !r->answers(r->user, a)) return false;
        n_planned++;
    }
    return n_planned > 0;
}

/* Of those that are whole. */
static size_t count_on(const placer_assignment *all, size_t n, size_t model, const char *node)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += all[i].model == model && all[i].end == 0 && strcmp(all[i].node, node) == 0;
    return k;
}

size_t placer_hold(placer_assignment *next, size_t n_planned, size_t n, const placer_assignment *was,
                   size_t n_was, const placer_hold_rules *r)
{
    for (size_t i = 0; i < n_was; i++) {
        placer_assignment a = was[i];
        if (a.end > 0) continue;
        size_t had = count_on(was, i + 1, a.model, a.node);
        if (had <= count_on(next, n_planned, a.model, a.node)) continue; /* it is planned */
        if (!r->may_stay(r->user, &a) || is_replaced(next, n_planned, a.model, r)) continue;
        a.held = true;
        next[n++] = a;
    }
    return n;
}
