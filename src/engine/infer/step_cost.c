/* step_cost.c: a few lines for each kind of step, and what may be spent on trials; see step_cost.h. */
#include "infer/step_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIAL_SHARE 0.01     /* of all time may be lost in trials */
#define TRIAL_FREE  20000000 /* ns: a way that was never tried is, when the known one takes no longer */
#define TRIAL_APART 8        /* steps between trials, however cheap they are */
#define TRIAL_STEPS 6        /* of a trial: the first ones find cold caches, and members that sleep; */
#define TRIAL_LONG  1.25     /* times as long at most is a long step that goes on with a trial */
#define TRIAL_COLD  2.0      /* but one that takes so many times as long is the last */
#define DEFER_MOST  16       /* trials that find no free core until one is made */
#define YOUNG       3        /* steps that may have met cold memory */
#define SURPRISE    1.5      /* times what was expected */
#define HICCUP_PART 0.02     /* of a surprise that is not the second in a row */
#define OUTLIER     8.0      /* times what was expected: a slower step counts no more */
#define DEBT_MOST   64.0     /* times what was expected: a trial that lasted longer was not the only cause */
#define KNOWN_STEPS 2        /* of two ways: they say how the ways of other kinds differ */
#define CALM_RISE   0.02     /* of the way to a slower step: calm times are the fastest; */
#define CALM_MOST   0.01     /* and of itself at most */
#define LOOK_ALONE  2        /* steps until one member is looked at again: it waited for its core, */
#define LOOK_TEAM   8        /* and until a team is: one of its cores went to somebody; */
#define LOOK_LAST   8192     /* and no more than these */
#define KEPT_MOST   1e15     /* ns: eleven days */
#define KEPT_APART  16.0     /* times that the ways of a kept line differ at most, or twice the members */
#define KEPT_FASTER 4.0      /* times that a first step is faster, */
#define KEPT_SLOWER 64.0     /* or slower, than what was kept of it, if that is of this machine */

/* The share of a first step that is thought to be the same for any size, and the size at which a correction
 * is shared evenly: a step that decodes reads all weights for its first token, one that reads prompts works
 * for each. */
static const struct {
    double fixed_share, even_tokens;
} shape[STEP_KINDS] = {
    [STEP_DECODE] = {0.8, 4},
    [STEP_PREFILL] = {0.1, 64},
    [STEP_ENCODE] = {0.1, 64},
};

/* Twice the members must be 1.05 times as fast: the powers of that. */
static const double doubled[STEP_WAYS] = {1, 1.05, 1.1025, 1.1576, 1.2155, 1.2763, 1.3401};

/* ---- a line --------------------------------------------------------------------------------------- */

static double expect(const step_cost_line *l, double n)
{
    return l->fixed_ns + l->token_ns * n;
}

/* Neither part is negative; what the line says of n stays. */
static void straighten(step_cost_line *l, double n)
{
    if (l->fixed_ns < 0) {
        l->token_ns += l->fixed_ns / n;
        l->fixed_ns = 0;
    }
    if (l->token_ns < 0) {
        l->fixed_ns += l->token_ns * n;
        l->token_ns = 0;
    }
}

/* Has something changed, or was it one of the steps that something gets in the way of? */
static bool is_slow(const step_cost_line *l, double n, double took)
{
    return l->n_seen >= YOUNG && took > SURPRISE * expect(l, n);
}

/* The first step of a line. */
static void step_cost_begin(step_cost_line *l, step_kind k, double n, double took)
{
    l->fixed_ns = shape[k].fixed_share * took;
    l->token_ns = (took - l->fixed_ns) / n;
}

/* Move by so much where n is. */
static void move(step_cost_line *l, step_kind k, double n, double by_ns)
{
    double x = n / shape[k].even_tokens, step = by_ns / (1 + x * x);
    l->fixed_ns += step;
    l->token_ns += step * x / shape[k].even_tokens;
    straighten(l, n);
}

/* How much longer it took than expected, or less. */
static double surplus(const step_cost_line *l, double n, double took)
{
    double was = expect(l, n), most = OUTLIER * was;
    return (took < most ? took : most) - was;
}

static void learn(step_cost_line *l, step_kind k, double n, double took)
{
    bool young = l->n_seen < YOUNG;
    if (l->n_seen++ == 0) {
        step_cost_begin(l, k, n, took);
        return;
    }
    double off = surplus(l, n, took), part = young ? 1 : 0.5;
    l->n_slow = is_slow(l, n, took) ? l->n_slow + 1 : 0;
    if (off > 0) part = l->n_slow == 0 ? 0.25 : l->n_slow == 1 ? HICCUP_PART : 0.5;
    move(l, k, n, part * off);
}

static void learn_calm(step_cost_line *l, step_kind k, double n, double took)
{
    bool young = l->n_seen < YOUNG;
    if (l->n_seen++ == 0) {
        step_cost_begin(l, k, n, took);
        return;
    }
    double off = surplus(l, n, took);
    move(l, k, n, off > 0 ? fmin(CALM_RISE * off, CALM_MOST * expect(l, n)) : (young ? 1 : 0.5) * off);
}

/* It took a calm time, and was not expected to. */
static bool is_calm_again(const step_cost_ways *w, int way, double n, double took)
{
    double calm = SURPRISE * expect(&w->calm[way], n);
    return w->calm[way].n_seen >= YOUNG && took <= calm && expect(&w->way[way], n) > calm;
}

static void calm_down(step_cost_ways *w, int way)
{
    step_cost_line *l = &w->way[way];
    l->fixed_ns = w->calm[way].fixed_ns;
    l->token_ns = w->calm[way].token_ns;
    l->n_slow = 0;
}

/* ---- the ways ------------------------------------------------------------------------------------- */

/* All members: the last way. */
static int way_of_all(const step_cost *p)
{
    int way = 0;
    while (way < STEP_WAYS - 1 && 1 << way < p->n_members) way++;
    return way;
}

static int members_of(const step_cost *p, int way)
{
    return 1 << way < p->n_members ? 1 << way : p->n_members;
}

static int way_of(const step_cost *p, int n_members)
{
    int way = 0, all = way_of_all(p);
    while (way < all && members_of(p, way) < n_members) way++;
    return way;
}

static bool is_known(const step_cost_ways *w, int way)
{
    return w->way[way].n_seen >= KNOWN_STEPS;
}

/* The nearest way that this kind of step has taken, the larger one of two; -1: none. */
static int nearest_seen(const step_cost *p, step_kind k, int way)
{
    const step_cost_ways *w = &p->of[k];
    for (int off = 0, all = way_of_all(p); off <= all; off++) {
        if (way + off <= all && w->way[way + off].n_seen > 0) return way + off;
        if (way - off >= 0 && w->way[way - off].n_seen > 0) return way - off;
    }
    return -1;
}

/* How much longer `way` takes than `seen` for steps of a kind that never took it: as for another kind, else it gains
 * from every member. */
static double factor_between(const step_cost *p, int way, int seen)
{
    double most = (double)members_of(p, seen) / members_of(p, way);
    for (int i = 0; i < STEP_KINDS && most > 1; i++) {
        const step_cost_ways *w = &p->of[i];
        double n = shape[i].even_tokens, ns = expect(&w->way[seen], n);
        if (is_known(w, way) && is_known(w, seen) && ns > 0) return fmin(expect(&w->way[way], n) / ns, most);
    }
    return most;
}

/* What a step of n tokens takes; only once the kind has taken one. */
static double expect_way(const step_cost *p, step_kind k, int way, double n)
{
    int seen = nearest_seen(p, k, way);
    double ns = expect(&p->of[k].way[seen], n);
    return seen == way ? ns : ns * factor_between(p, way, seen);
}

static double tokens_of(size_t n_tokens)
{
    return n_tokens ? (double)n_tokens : 1;
}

/* What it costs that a step takes so long: when it is over, beside the other workers, and what its members could
 * have done for others. */
static double cost_of(const step_cost *p, int way, double ns)
{
    double n_cores = p->n_cores > p->n_members ? p->n_cores : p->n_members;
    double turns = p->crowd < 2 ? 1 : fmax(1, p->crowd * members_of(p, way) / n_cores);
    return ns * turns * doubled[way];
}

static double expect_cost(const step_cost *p, step_kind k, int way, double n)
{
    return cost_of(p, way, expect_way(p, k, way, n));
}

/* The cheapest way. What was never seen is not: it is tried first. */
static int best_way(const step_cost *p, step_kind k, double n)
{
    const step_cost_ways *w = &p->of[k];
    int best = way_of_all(p);
    if (w->way[best].n_seen == 0) return best;
    double least = expect_cost(p, k, best, n);
    for (int way = best - 1; way >= 0; way--) {
        double cost = expect_cost(p, k, way, n);
        if (cost > least) continue;
        least = cost;
        best = way;
    }
    return best;
}

int step_cost_prefers(const step_cost *p, step_kind k, size_t n_tokens)
{
    return p->n_members < 2 ? 1 : members_of(p, best_way(p, k, tokens_of(n_tokens)));
}

/* May this way be tried, losing so much? */
static bool may_try(const step_cost_ways *w, int way, int best, double best_ns, double loss_ns)
{
    unsigned tried = w->way[way].n_seen, other = w->way[best].n_seen;
    bool fresh = best_ns <= TRIAL_FREE && ((tried == 0 && other > 1) || (tried < YOUNG && other > YOUNG));
    return fresh || (w->n_steady >= TRIAL_APART && w->credit_ns >= loss_ns);
}

/* The way to look at again that is the nearest to the best; -1: none is due. */
static int way_due(const step_cost_ways *w, int best)
{
    int due = -1;
    for (int way = 0; way < STEP_WAYS; way++)
        if (way != best && w->way[way].look_in > 0 && w->n_steady >= w->way[way].look_in &&
            (due < 0 || abs(way - best) < abs(due - best)))
            due = way;
    return due;
}

/* The way to try now: one that is due, or one beside the best; the best: none. */
static int way_to_try(const step_cost *p, step_kind k, int best, double n)
{
    const step_cost_ways *w = &p->of[k];
    int due = way_due(w, best);
    if (due >= 0) return due;
    double least = expect_cost(p, k, best, n), best_ns = expect_way(p, k, best, n);
    for (int i = 0; i < 2; i++) {
        int way = best + ((i == 0) == w->try_fewer ? -1 : 1);
        if (way < 0 || way > way_of_all(p)) continue;
        if (may_try(w, way, best, best_ns, expect_cost(p, k, way, n) - least)) return way;
    }
    return best;
}

/* May a trial that began with a short step go on with this one? Not where it would lose much of a long one. */
static bool may_go_on(const step_cost *p, step_kind k, int best, double n)
{
    const step_cost_ways *w = &p->of[k];
    return w->n_trial == 0 || expect_way(p, k, best, n) <= TRIAL_FREE ||
           expect_cost(p, k, w->trial_way, n) <= TRIAL_LONG * expect_cost(p, k, best, n);
}

int step_cost_choose(step_cost *p, step_kind k, size_t n_tokens)
{
    step_cost_ways *w = &p->of[k];
    double n = tokens_of(n_tokens);
    if (p->n_members < 2) return 1;
    int best = best_way(p, k, n);
    if (w->way[best].n_seen == 0) return members_of(p, best);
    if (w->again && w->trial_way != best && may_go_on(p, k, best, n)) return members_of(p, w->trial_way);
    return members_of(p, way_to_try(p, k, best, n));
}

int step_cost_defer(step_cost *p, step_kind k, size_t n_tokens, int n_members)
{
    step_cost_ways *w = &p->of[k];
    if (++w->n_deferred >= DEFER_MOST) return n_members;
    w->credit_ns = fmin(0, w->credit_ns);
    w->again = false;
    w->n_steady = 0;
    return step_cost_prefers(p, k, n_tokens);
}

/* A trial is paid for, and nothing is saved up: it was made as soon as it could be. */
static void note_trial(step_cost_ways *w, int way, double best_ns, double took)
{
    step_cost_line *tried = &w->way[way];
    w->credit_ns = fmin(0, w->credit_ns - (fmin(took, DEBT_MOST * best_ns) - best_ns));
    w->n_steady = 0;
    if (w->trial_way != way) w->n_trial = 0;
    w->trial_way = way;
    w->n_trial++;
    w->n_deferred = 0;
    w->again = took < best_ns || (w->n_trial < TRIAL_STEPS && took < TRIAL_COLD * best_ns);
    if (took < best_ns)
        tried->look_in = 0;
    else if (!w->again && tried->look_in > 0 && tried->look_in < LOOK_LAST)
        tried->look_in *= 2;
    if (!w->again) w->try_fewer = !w->try_fewer;
}

/* What a kind of step has found out of the neighbours counts for the others. */
static void tell_others(step_cost *p, step_kind k, int way, bool came)
{
    for (int i = 0; i < STEP_KINDS; i++) {
        step_cost_ways *w = &p->of[i];
        double n = shape[i].even_tokens;
        if (i == (int)k || nearest_seen(p, (step_kind)i, 0) < 0) continue;
        if (came) {
            int other = way > 0 ? way - 1 : 1;
            w->again = w->way[other].n_seen > 0 && best_way(p, (step_kind)i, n) == way;
            w->trial_way = other;
        } else if (w->calm[way].n_seen > 0) {
            calm_down(w, way);
        }
    }
}

/* The second slow step in a row: a trial of another way is paid for, and of this one when it was left. */
static void note_neighbour(step_cost *p, step_kind k, int way, double loss_ns)
{
    step_cost_ways *w = &p->of[k];
    w->credit_ns += loss_ns;
    w->n_steady = TRIAL_APART;
    if (w->way[way].look_in == 0) w->way[way].look_in = way ? LOOK_TEAM : LOOK_ALONE;
    if (w->way[way].n_slow == 1) tell_others(p, k, way, true);
}

/* What was recalled is of another machine, or another time, if the first step says so. */
static void doubt(step_cost_ways *w, int way, double n, double took)
{
    double was = expect(&w->way[way], n);
    if (w->recalled && w->way[way].n_seen > 0 && (took * KEPT_FASTER < was || took > KEPT_SLOWER * was))
        *w = (step_cost_ways){0};
    w->recalled = false;
}

void step_cost_note(step_cost *p, step_kind k, size_t n_tokens, int n_members, uint64_t took_ns)
{
    step_cost_ways *w = &p->of[k];
    double n = tokens_of(n_tokens), took = took_ns ? (double)took_ns : 1;
    int way = way_of(p, n_members);
    doubt(w, way, n, took);
    bool first = nearest_seen(p, k, way) < 0;
    int best = first ? way : best_way(p, k, n);
    double cost = cost_of(p, way, took), best_cost = first ? cost : expect_cost(p, k, best, n);
    w->credit_ns += TRIAL_SHARE * cost;
    if (way != best) {
        note_trial(w, way, best_cost, cost);
    } else {
        w->again = false;
        w->n_trial = 0;
        w->n_steady++;
        if (w->way[way].n_slow > 0 && is_slow(&w->way[way], n, took))
            note_neighbour(p, k, way, cost - best_cost);
    }
    if (is_calm_again(w, way, n, took)) {
        calm_down(w, way);
        tell_others(p, k, way, false);
    }
    learn(&w->way[way], k, n, took);
    learn_calm(&w->calm[way], k, n, took);
    w->again = w->again && best_way(p, k, n) == best;
    if (!w->again) w->n_trial = 0;
}

/* ---- from start to start -------------------------------------------------------------------------- */

bool step_cost_tell(const step_cost *p, step_cost_known *ret)
{
    bool any = false;
    *ret = (step_cost_known){0};
    for (int k = 0; k < STEP_KINDS; k++) {
        const step_cost_line *l = p->of[k].calm;
        int all = way_of_all(p), n_known = 0;
        for (int way = 0; way <= all; way++) n_known += l[way].n_seen >= KNOWN_STEPS;
        if (n_known < 2 || l[all].n_seen < KNOWN_STEPS) continue;
        any = true;
        for (int way = 0; way <= all; way++) {
            if (l[way].n_seen < KNOWN_STEPS) continue;
            ret->of[k][way].fixed_ns = l[way].fixed_ns;
            ret->of[k][way].token_ns = l[way].token_ns;
        }
    }
    return any;
}

/* Written so that what is not a number fails it. */
static bool is_line(const step_cost_line *l)
{
    return l->fixed_ns >= 0 && l->token_ns >= 0 && l->fixed_ns + l->token_ns > 0 && l->fixed_ns < KEPT_MOST &&
           l->token_ns < KEPT_MOST;
}

/* Lines of all members and of any other ways that differ no more than ways do. */
static bool could_be(const step_cost *p, const step_cost_line l[STEP_WAYS], step_kind k)
{
    int all = way_of_all(p), n_others = 0;
    double n = shape[k].even_tokens, most = fmax(KEPT_APART, 2.0 * p->n_members);
    if (!is_line(&l[all])) return false;
    for (int way = 0; way < all; way++) {
        if (l[way].n_seen == 0) continue;
        double ns = expect(&l[way], n), of_all = expect(&l[all], n);
        if (!is_line(&l[way]) || !(ns <= most * of_all && of_all <= most * ns)) return false;
        n_others++;
    }
    return n_others > 0;
}

void step_cost_recall(step_cost *p, const step_cost_known *known)
{
    for (int k = 0; k < STEP_KINDS; k++) {
        step_cost_ways *w = &p->of[k];
        step_cost_line l[STEP_WAYS] = {0};
        for (int way = 0; way <= way_of_all(p); way++) {
            double fixed_ns = known->of[k][way].fixed_ns, token_ns = known->of[k][way].token_ns;
            if (fixed_ns == 0 && token_ns == 0) continue;
            l[way] = (step_cost_line){.fixed_ns = fixed_ns, .token_ns = token_ns, .n_seen = YOUNG};
        }
        if (!could_be(p, l, (step_kind)k)) continue;
        memcpy(w->way, l, sizeof l);
        memcpy(w->calm, l, sizeof l);
        w->recalled = true;
    }
}
