/* blame.c: see blame.h. */
#include "calls/blame.h"

#include <math.h>

#define NS_PER_MS 1000000ull

static size_t n_kept(const blame *b)
{
    return b->n_noted < BLAME_DEATHS ? b->n_noted : BLAME_DEATHS;
}

/* All calls that were there tell of the same death. */
static void keep(blame *b, uint64_t life, uint64_t now_ns)
{
    for (size_t i = 0; i < n_kept(b); i++)
        if (b->deaths[i].life == life) return;
    b->deaths[b->n_noted % BLAME_DEATHS].life = life;
    b->deaths[b->n_noted++ % BLAME_DEATHS].ns = now_ns;
}

static bool is_of_row(const blame_row *row, uint64_t life)
{
    for (unsigned i = 0; i < row->n; i++)
        if (row->lives[i] == life) return true;
    return false;
}

/* Deaths a nanosecond, without those of the row. */
static double rate(const blame *b, const blame_row *row, uint64_t now_ns)
{
    uint64_t window_ns = BLAME_WINDOW_MS * NS_PER_MS, watched_ns = now_ns - b->begun_ns;
    size_t n = 0;
    for (size_t i = 0; i < n_kept(b); i++)
        n += now_ns - b->deaths[i].ns < window_ns && !is_of_row(row, b->deaths[i].life);
    if (watched_ns > window_ns) watched_ns = window_ns;
    if (watched_ns < NS_PER_MS) watched_ns = NS_PER_MS;
    return (double)n / (double)watched_ns + 1.0 / (double)(BLAME_PRIOR_MS * NS_PER_MS);
}

void blame_note(blame *b, blame_row *row, uint64_t life, uint64_t since_ns, uint64_t now_ns)
{
    keep(b, life, now_ns);
    if (row->n < BLAME_MAX) row->lives[row->n++] = life;
    double chance = rate(b, row, now_ns) * (double)(now_ns - since_ns + NS_PER_MS);
    if (chance < 1) row->log_chance += log(chance);
}

bool blame_is_suspect(const blame_row *row)
{
    return row->n >= BLAME_ALONE;
}

bool blame_is_proven(const blame_row *row)
{
    return row->n >= BLAME_MAX || (row->n >= BLAME_MIN && row->log_chance < log(BLAME_CHANCE));
}
