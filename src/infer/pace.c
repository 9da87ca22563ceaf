/* pace.c: two lines a kind of step, and what may be spent on trials; see pace.h. */
#include "infer/pace.h"

#include <math.h>

#define TRIAL_SHARE 0.01     /* of all time may be lost in trials */
#define TRIAL_FREE  20000000 /* ns: a way that was never tried is, when the known one takes no longer */
#define TRIAL_APART 8        /* steps between trials, however cheap they are */
#define YOUNG       3        /* steps that may have met cold memory */
#define SURPRISE    1.5      /* times what was expected */
#define HICCUP_PART 0.02     /* of a surprise that is not the second in a row */
#define OUTLIER     8.0      /* times what was expected: a slower step counts no more */
#define DEBT_MOST   64.0     /* times what was expected: a trial that lasted longer was not the only cause */
#define KNOWN_STEPS 2        /* of both ways: they say how the ways of other kinds differ */

/* The share of a first step that is thought to be the same for any size, and the size at which a correction
 * is shared evenly: a step that decodes reads all weights for its first token, one that reads prompts works
 * for each. */
static const struct {
    double fixed_share, even_tokens;
} shape[PACE_KINDS] = {
    [PACE_DECODE] = {0.8, 4},
    [PACE_PREFILL] = {0.1, 64},
    [PACE_ENCODE] = {0.1, 64},
};

/* ---- a line --------------------------------------------------------------------------------------- */

static double expect(const pace_line *l, double n)
{
    return l->fixed_ns + l->token_ns * n;
}

/* Neither part is negative; what the line says of n stays. */
static void straighten(pace_line *l, double n)
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
static bool is_slow(const pace_line *l, double n, double took)
{
    return l->n_seen >= YOUNG && took > SURPRISE * expect(l, n);
}

static void learn(pace_line *l, pace_kind k, double n, double took)
{
    bool young = l->n_seen < YOUNG;
    if (l->n_seen++ == 0) {
        l->fixed_ns = shape[k].fixed_share * took;
        l->token_ns = (took - l->fixed_ns) / n;
        return;
    }
    double was = expect(l, n), most = OUTLIER * was, x = n / shape[k].even_tokens;
    double off = (took < most ? took : most) - was, part = young ? 1 : 0.5;
    l->n_slow = is_slow(l, n, took) ? l->n_slow + 1 : 0;
    if (off > 0) part = l->n_slow == 0 ? 0.25 : l->n_slow == 1 ? HICCUP_PART : 0.5;
    double step = part * off / (1 + x * x);
    l->fixed_ns += step;
    l->token_ns += step * x / shape[k].even_tokens;
    straighten(l, n);
}

/* ---- two ways ------------------------------------------------------------------------------------- */

static bool is_known(const pace_ways *w)
{
    return w->way[0].n_seen >= KNOWN_STEPS && w->way[1].n_seen >= KNOWN_STEPS;
}

/* How much longer than the team one member takes for steps of a kind that it never took. */
static double alone_factor(const pace *p)
{
    for (int i = 0; i < PACE_KINDS; i++) {
        const pace_ways *w = &p->of[i];
        double n = shape[i].even_tokens, as_team = expect(&w->way[1], n);
        if (is_known(w) && as_team > 0) return fmin(expect(&w->way[0], n) / as_team, p->n_members);
    }
    return p->n_members;
}

/* What a step of n tokens takes either way; only once a team has taken one. */
static void expect_both(const pace *p, pace_kind k, double n, double ret[2])
{
    const pace_ways *w = &p->of[k];
    ret[1] = expect(&w->way[1], n);
    ret[0] = w->way[0].n_seen ? expect(&w->way[0], n) : ret[1] * alone_factor(p);
}

static double tokens_of(size_t n_tokens)
{
    return n_tokens ? (double)n_tokens : 1;
}

bool pace_prefers_team(const pace *p, pace_kind k, size_t n_tokens)
{
    double ns[2];
    if (p->n_members < 2 || p->of[k].way[1].n_seen == 0) return true;
    expect_both(p, k, tokens_of(n_tokens), ns);
    return ns[1] <= ns[0];
}

/* May the way that is not preferred be tried, losing so much? */
static bool may_try(const pace_ways *w, bool as_team, double preferred_ns, double loss_ns)
{
    bool fresh = w->way[as_team].n_seen == 0 && preferred_ns <= TRIAL_FREE && w->way[!as_team].n_seen > 1;
    return fresh || (w->n_steady >= TRIAL_APART && w->credit_ns >= loss_ns);
}

bool pace_choose(pace *p, pace_kind k, size_t n_tokens)
{
    pace_ways *w = &p->of[k];
    double ns[2];
    bool best = pace_prefers_team(p, k, n_tokens);
    if (p->n_members < 2 || w->way[1].n_seen == 0) return true;
    expect_both(p, k, tokens_of(n_tokens), ns);
    if (w->again || may_try(w, !best, ns[best], ns[!best] - ns[best])) return !best;
    return best;
}

/* A trial is paid for, and nothing is saved up: it was made as soon as it could be. */
static void note_trial(pace_ways *w, double best_ns, double took)
{
    w->credit_ns = fmin(0, w->credit_ns - (fmin(took, DEBT_MOST * best_ns) - best_ns));
    w->n_steady = 0;
    w->again = took < best_ns;
}

void pace_note(pace *p, pace_kind k, size_t n_tokens, bool as_team, uint64_t took_ns)
{
    pace_ways *w = &p->of[k];
    double n = tokens_of(n_tokens), took = took_ns ? (double)took_ns : 1, ns[2];
    bool best = pace_prefers_team(p, k, n_tokens);
    expect_both(p, k, n, ns);
    w->credit_ns += TRIAL_SHARE * took;
    if (as_team != best && w->way[1].n_seen > 0) {
        note_trial(w, ns[best], took);
    } else {
        w->again = false;
        w->n_steady++;
        if (w->way[as_team].n_slow > 0 && is_slow(&w->way[as_team], n, took)) {
            w->credit_ns += took - ns[as_team];
            w->n_steady = TRIAL_APART;
        }
    }
    learn(&w->way[as_team], k, n, took);
    w->again = w->again && pace_prefers_team(p, k, n_tokens) == best;
}
