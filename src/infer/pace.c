/* pace.c: one thread or the whole team, by what each took lately; see pace.h. The caller brings the time. */
#include "infer/pace.h"

#define TRY_FIRST \
    6 /* steps that take turns before either way is preferred: the first ones meet cold memory */
#define TRY_EVERY 128 /* steps between trials of the slower way */

static size_t class_of(size_t n_tokens)
{
    size_t k = 0;
    while (n_tokens > 1 && k + 1 < PACE_CLASSES) {
        n_tokens /= 2;
        k++;
    }
    return k;
}

bool pace_choose(pace *p, size_t n_tokens)
{
    size_t k = class_of(n_tokens);
    const double *ns = p->of[k].ns;
    unsigned step = p->of[k].n_steps++;
    if (step < TRY_FIRST) return step % 2 == 0;
    bool team_is_better = ns[1] <= ns[0];
    return step % TRY_EVERY == TRY_EVERY - 1 ? !team_is_better : team_is_better;
}

/* A faster step counts at once, since nothing but the way itself can make it fast; a slower one counts a
 * little, since anything may have been in the way (the first step touches cold memory). */
void pace_note(pace *p, size_t n_tokens, bool as_team, uint64_t took_ns)
{
    double *ns = &p->of[class_of(n_tokens)].ns[as_team],
           a_token = (double)took_ns / (double)(n_tokens ? n_tokens : 1);
    *ns = *ns > 0 && a_token > *ns ? *ns + 0.2 * (a_token - *ns) : a_token;
}
