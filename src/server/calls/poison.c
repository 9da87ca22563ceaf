/* poison.c: see poison.h. */
#include "calls/poison.h"

#include <math.h>

#define NS_PER_MS 1000000ull

static size_t n_kept(const poison *b)
{
    return b->n_noted < POISON_DEATHS ? b->n_noted : POISON_DEATHS;
}

/* All calls that were there tell of the same death. */
void poison_note_death(poison *b, uint64_t life, uint64_t now_ns)
{
    for (size_t i = 0; i < n_kept(b); i++)
        if (b->deaths[i].life == life) return;
    b->deaths[b->n_noted % POISON_DEATHS].life = life;
    b->deaths[b->n_noted++ % POISON_DEATHS].ns = now_ns;
}

static bool is_of_row(const poison_row *row, uint64_t life)
{
    for (unsigned i = 0; i < row->n; i++)
        if (row->deaths[i].life == life) return true;
    return false;
}

/* Deaths since then at which the request was absent. */
static size_t deaths_without(const poison *b, const poison_row *row, uint64_t since_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < n_kept(b); i++)
        n += b->deaths[i].ns >= since_ns && !is_of_row(row, b->deaths[i].life);
    return n;
}

static double per_ns(size_t n, uint64_t ns, uint64_t least_ms)
{
    uint64_t least_ns = least_ms * NS_PER_MS;
    return (double)n / (double)(ns > least_ns ? ns : least_ns);
}

/* Of the last minute, or since deaths are noted. */
static double usual_rate(const poison *b, const poison_row *row, uint64_t now_ns)
{
    uint64_t window_ns = POISON_WINDOW_MS * NS_PER_MS, watched_ns = now_ns - b->begun_ns;
    if (watched_ns > window_ns) watched_ns = window_ns;
    return per_ns(deaths_without(b, row, now_ns - watched_ns), watched_ns, 1) +
           per_ns(1, POISON_PRIOR_MS * NS_PER_MS, 1);
}

/* Since the row began, in the time that the request waited for its turn. */
static double present_rate(const poison *b, const poison_row *row, uint64_t now_ns)
{
    uint64_t there_ns = 0, all_ns = now_ns - row->begun_ns;
    for (unsigned i = 0; i < row->n; i++) there_ns += row->deaths[i].there_ns;
    return per_ns(deaths_without(b, row, row->begun_ns), all_ns > there_ns ? all_ns - there_ns : 0,
                  POISON_ABSENT_MS);
}

static double log_chance(const poison *b, const poison_row *row, uint64_t now_ns)
{
    double usual = usual_rate(b, row, now_ns), present = present_rate(b, row, now_ns), sum = 0;
    double rate = present > usual ? present : usual;
    for (unsigned i = 0; i < row->n; i++) {
        double chance = rate * (double)(row->deaths[i].there_ns + NS_PER_MS);
        if (chance < 1) sum += log(chance);
    }
    return sum;
}

void poison_note(poison *b, poison_row *row, uint64_t life, uint64_t since_ns, uint64_t now_ns)
{
    poison_note_death(b, life, now_ns);
    if (row->n == 0) row->begun_ns = since_ns;
    if (row->n < POISON_MAX) {
        row->deaths[row->n].life = life;
        row->deaths[row->n++].there_ns = now_ns - since_ns;
    }
    row->log_chance = log_chance(b, row, now_ns);
}

bool poison_is_suspect(const poison_row *row)
{
    return row->n >= POISON_ALONE;
}

bool poison_is_proven(const poison_row *row)
{
    return row->n >= POISON_MAX || (row->n >= POISON_MIN && row->log_chance < log(POISON_CHANCE));
}
