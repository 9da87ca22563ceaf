/* step_cost.c: two lines a kind of step, and what may be spent on trials; see step_cost.h. */
#include "infer/step_cost.h"

#include <math.h>
#include <string.h>

#define TRIAL_SHARE 0.01     /* of all time may be lost in trials */
#define TRIAL_FREE  20000000 /* ns: a way that was never tried is, when the known one takes no longer */
#define TRIAL_APART 8        /* steps between trials, however cheap they are */
#define TRIAL_STEPS 6        /* of a trial: the first ones find cold caches, and members that sleep; */
#define TRIAL_COLD  2.0      /* but one that takes so many times as long is the last */
#define YOUNG       3        /* steps that may have met cold memory */
#define SURPRISE    1.5      /* times what was expected */
#define HICCUP_PART 0.02     /* of a surprise that is not the second in a row */
#define OUTLIER     8.0      /* times what was expected: a slower step counts no more */
#define DEBT_MOST   64.0     /* times what was expected: a trial that lasted longer was not the only cause */
#define KNOWN_STEPS 2        /* of both ways: they say how the ways of other kinds differ */
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
static bool is_calm_again(const step_cost_ways *w, bool as_team, double n, double took)
{
    double calm = SURPRISE * expect(&w->calm[as_team], n);
    return w->calm[as_team].n_seen >= YOUNG && took <= calm && expect(&w->way[as_team], n) > calm;
}

static void calm_down(step_cost_ways *w, bool as_team)
{
    step_cost_line *l = &w->way[as_team];
    l->fixed_ns = w->calm[as_team].fixed_ns;
    l->token_ns = w->calm[as_team].token_ns;
    l->n_slow = 0;
}

/* ---- two ways ------------------------------------------------------------------------------------- */

static bool is_known(const step_cost_ways *w)
{
    return w->way[0].n_seen >= KNOWN_STEPS && w->way[1].n_seen >= KNOWN_STEPS;
}

/* How much longer than the team one member takes for steps of a kind that it never took. */
static double alone_factor(const step_cost *p)
{
    for (int i = 0; i < STEP_KINDS; i++) {
        const step_cost_ways *w = &p->of[i];
        double n = shape[i].even_tokens, as_team = expect(&w->way[1], n);
        if (is_known(w) && as_team > 0) return fmin(expect(&w->way[0], n) / as_team, p->n_members);
    }
    return p->n_members;
}

/* What a step of n tokens takes either way; only once a team has taken one. */
static void expect_both(const step_cost *p, step_kind k, double n, double ret[2])
{
    const step_cost_ways *w = &p->of[k];
    ret[1] = expect(&w->way[1], n);
    ret[0] = w->way[0].n_seen ? expect(&w->way[0], n) : ret[1] * alone_factor(p);
}

static double tokens_of(size_t n_tokens)
{
    return n_tokens ? (double)n_tokens : 1;
}

/* When a step that takes so long is over, beside the other workers. */
static double over_after(const step_cost *p, bool as_team, double ns)
{
    double crowd = p->crowd;
    if (crowd < 2) return ns;
    return ns * (as_team ? crowd : fmax(1, crowd / p->n_members));
}

/* The same of the expected step, either way. What is as good for this worker is left to the others. */
static bool expect_over(const step_cost *p, step_kind k, double n, double ret[2])
{
    expect_both(p, k, n, ret);
    for (int way = 0; way < 2; way++) ret[way] = over_after(p, way, ret[way]);
    return p->crowd < 2 ? ret[1] <= ret[0] : ret[1] < ret[0];
}

bool step_cost_prefers_team(const step_cost *p, step_kind k, size_t n_tokens)
{
    double ns[2];
    if (p->n_members < 2 || p->of[k].way[1].n_seen == 0) return true;
    return expect_over(p, k, tokens_of(n_tokens), ns);
}

/* May the way that is not preferred be tried, losing so much? */
static bool may_try(const step_cost_ways *w, bool as_team, double preferred_ns, double loss_ns)
{
    unsigned tried = w->way[as_team].n_seen, other = w->way[!as_team].n_seen;
    bool fresh =
        preferred_ns <= TRIAL_FREE && ((tried == 0 && other > 1) || (tried < YOUNG && other > YOUNG));
    bool due = w->way[as_team].look_in > 0 && w->n_steady >= w->way[as_team].look_in;
    return fresh || due || (w->n_steady >= TRIAL_APART && w->credit_ns >= loss_ns);
}

bool step_cost_choose(step_cost *p, step_kind k, size_t n_tokens)
{
    step_cost_ways *w = &p->of[k];
    double ns[2];
    if (p->n_members < 2 || w->way[1].n_seen == 0) return true;
    bool best = expect_over(p, k, tokens_of(n_tokens), ns);
    if (w->again || may_try(w, !best, ns[best], ns[!best] - ns[best])) return !best;
    return best;
}

/* A trial is paid for, and nothing is saved up: it was made as soon as it could be. */
static void note_trial(step_cost_ways *w, step_cost_line *tried, double best_ns, double took)
{
    w->credit_ns = fmin(0, w->credit_ns - (fmin(took, DEBT_MOST * best_ns) - best_ns));
    w->n_steady = 0;
    w->n_trial++;
    w->again = took < best_ns || (w->n_trial < TRIAL_STEPS && took < TRIAL_COLD * best_ns);
    if (took < best_ns)
        tried->look_in = 0;
    else if (!w->again && tried->look_in > 0 && tried->look_in < LOOK_LAST)
        tried->look_in *= 2;
}

/* What a kind of step has found out of the neighbours counts for the others. */
static void tell_others(step_cost *p, step_kind k, bool as_team, bool came)
{
    for (int i = 0; i < STEP_KINDS; i++) {
        step_cost_ways *w = &p->of[i];
        double n = shape[i].even_tokens;
        if (i == (int)k || w->way[0].n_seen == 0 || w->way[1].n_seen == 0) continue;
        if (came)
            w->again = (expect(&w->way[1], n) <= expect(&w->way[0], n)) == as_team;
        else if (w->calm[as_team].n_seen > 0)
            calm_down(w, as_team);
    }
}

/* The second slow step in a row: a trial of the other way is paid for, and of this one when it was left. */
static void note_neighbour(step_cost *p, step_kind k, bool as_team, double loss_ns)
{
    step_cost_ways *w = &p->of[k];
    w->credit_ns += loss_ns;
    w->n_steady = TRIAL_APART;
    if (w->way[as_team].look_in == 0) w->way[as_team].look_in = as_team ? LOOK_TEAM : LOOK_ALONE;
    if (w->way[as_team].n_slow == 1) tell_others(p, k, as_team, true);
}

/* What was recalled is of another machine, or another time, if the first step says so. */
static void doubt(step_cost_ways *w, bool as_team, double n, double took)
{
    double was = expect(&w->way[as_team], n);
    if (w->recalled && (took * KEPT_FASTER < was || took > KEPT_SLOWER * was)) *w = (step_cost_ways){0};
    w->recalled = false;
}

void step_cost_note(step_cost *p, step_kind k, size_t n_tokens, bool as_team, uint64_t took_ns)
{
    step_cost_ways *w = &p->of[k];
    double n = tokens_of(n_tokens), took = took_ns ? (double)took_ns : 1, ns[2];
    doubt(w, as_team, n, took);
    double over = over_after(p, as_team, took);
    bool best = step_cost_prefers_team(p, k, n_tokens);
    expect_over(p, k, n, ns);
    w->credit_ns += TRIAL_SHARE * over;
    if (as_team != best && w->way[1].n_seen > 0) {
        note_trial(w, &w->way[as_team], ns[best], over);
    } else {
        w->again = false;
        w->n_trial = 0;
        w->n_steady++;
        if (w->way[as_team].n_slow > 0 && is_slow(&w->way[as_team], n, took))
            note_neighbour(p, k, as_team, over - ns[as_team]);
    }
    if (is_calm_again(w, as_team, n, took)) {
        calm_down(w, as_team);
        tell_others(p, k, as_team, false);
    }
    learn(&w->way[as_team], k, n, took);
    learn_calm(&w->calm[as_team], k, n, took);
    w->again = w->again && step_cost_prefers_team(p, k, n_tokens) == best;
    if (!w->again) w->n_trial = 0;
}

/* ---- from start to start -------------------------------------------------------------------------- */

bool step_cost_tell(const step_cost *p, step_cost_known *ret)
{
    bool any = false;
    *ret = (step_cost_known){0};
    for (int k = 0; k < STEP_KINDS; k++) {
        const step_cost_line *l = p->of[k].calm;
        if (l[0].n_seen < KNOWN_STEPS || l[1].n_seen < KNOWN_STEPS) continue;
        any = true;
        for (int way = 0; way < 2; way++) {
            ret->of[k][way].fixed_ns = l[way].fixed_ns;
            ret->of[k][way].token_ns = l[way].token_ns;
        }
    }
    return any;
}

/* Written so that what is not a number fails it. */
static bool is_line(double fixed_ns, double token_ns)
{
    return fixed_ns >= 0 && token_ns >= 0 && fixed_ns + token_ns > 0 && fixed_ns < KEPT_MOST &&
           token_ns < KEPT_MOST;
}

static bool could_be(const step_cost_line l[2], step_kind k, int n_members)
{
    double n = shape[k].even_tokens, most = fmax(KEPT_APART, 2.0 * n_members);
    if (!is_line(l[0].fixed_ns, l[0].token_ns) || !is_line(l[1].fixed_ns, l[1].token_ns)) return false;
    double alone = expect(&l[0], n), as_team = expect(&l[1], n);
    return alone <= most * as_team && as_team <= most * alone;
}

void step_cost_recall(step_cost *p, const step_cost_known *known)
{
    for (int k = 0; k < STEP_KINDS; k++) {
        step_cost_ways *w = &p->of[k];
        step_cost_line l[2] = {0};
        for (int way = 0; way < 2; way++)
            l[way] = (step_cost_line){.fixed_ns = known->of[k][way].fixed_ns,
                                      .token_ns = known->of[k][way].token_ns,
                                      .n_seen = YOUNG};
        if (!could_be(l, (step_kind)k, p->n_members)) continue;
        memcpy(w->way, l, sizeof l);
        memcpy(w->calm, l, sizeof l);
        w->recalled = true;
    }
}
