/* batch.c: the arithmetic of a step: how many tokens each sequence computes, and who gives up its slot; see
 * batch.h. Chunks of prefill beside decode steps as in Agrawal et al. 2023 (Sarathi, arXiv:2308.16369). */
#include "infer/batch.h"

static size_t batch_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many tokens of e may run at most now: a probe stops where its rows begin, and at the rows left. */
static size_t room(const batch_entry *e, size_t rows_left)
{
    if (!e->probe) return e->pending;
    return e->n_quiet > 0 ? batch_least(e->n_quiet, e->pending) : batch_least(rows_left, e->pending);
}

static bool is_prefill(const batch_entry *e)
{
    return e->pending > 1 || e->probe;
}

void batch_plan(batch_entry *entries, size_t n, const batch_limits *limits)
{
    size_t n_prefill = 0, n_decode = 0, rows_left = limits->probe_rows;
    for (size_t i = 0; i < n; i++) {
        entries[i].n = entries[i].pending == 1 && !entries[i].probe;
        n_prefill += is_prefill(&entries[i]);
        n_decode += entries[i].n;
    }
    if (n_prefill == 0) return;
    size_t budget = n_decode > 0 ? limits->shared : limits->alone;
    size_t share = budget / n_prefill > BATCH_GRAIN ? budget / n_prefill : BATCH_GRAIN;
    for (int pass = 0; pass < 2 && budget > 0; pass++) {
        for (size_t k = 0; k < n; k++) {
            batch_entry *e = &entries[(k + limits->turn) % n];
            if (!is_prefill(e) || (e->probe && pass == 1)) continue; /* a probe's rows are counted once */
            size_t more = batch_least(pass == 0 ? share : budget, room(e, rows_left) - e->n);
            more = batch_least(more, budget);
            e->n += more;
            budget -= more;
            if (e->probe && e->n_quiet == 0) rows_left -= more;
        }
    }
}

/* ---- the budget ----------------------------------------------------------------------------------- */

#define QUIET_LEAST   128
#define COMPANY_LEAST 32
#define NOT_KNOWN     64
#define LEFT_PART     4 /* of the time until a deadline that one chunk may take */

/* Whole grains of tokens that take so long. */
static size_t tokens_in(double ms, double token_ms)
{
    double n = ms / token_ms;
    if (!(n > 0)) return 0;
    return n < BATCH_CHUNK_MAX ? (size_t)n / BATCH_GRAIN * BATCH_GRAIN : BATCH_CHUNK_MAX;
}

static size_t within(size_t n, size_t low, size_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* Somebody else's deadline is near: n, or what a part of the time left has room for. */
static size_t hurry(const batch_scene *s, double token_ms, size_t n)
{
    if (s->left_ms <= 0) return n;
    size_t room = tokens_in(s->left_ms / LEFT_PART, token_ms);
    return batch_least(n, room > BATCH_GRAIN ? room : BATCH_GRAIN);
}

size_t batch_alone(const batch_scene *s)
{
    double ms = s->others_here ? BATCH_COMPANY_MS : BATCH_QUIET_MS;
    if (s->token_ms <= 0) return NOT_KNOWN;
    size_t n = tokens_in(ms - s->fixed_ms, s->token_ms);
    return hurry(s, s->token_ms, within(n, s->others_here ? COMPANY_LEAST : QUIET_LEAST, BATCH_CHUNK_MAX));
}

size_t batch_shared(const batch_scene *s)
{
    size_t most = s->most > 0 && s->most < BATCH_CHUNK_MAX ? s->most : BATCH_CHUNK_MAX;
    double token_ms = s->beside_ms > 0 ? s->beside_ms : s->token_ms;
    if (token_ms <= 0 || s->decode_ms <= 0) return batch_least(NOT_KNOWN, most);
    size_t n = tokens_in((BATCH_GAP - 1) * s->decode_ms, token_ms);
    return batch_least(most, hurry(s, token_ms, within(n, BATCH_GRAIN, BATCH_CHUNK_MAX)));
}

/* ---- slots ---------------------------------------------------------------------------------------- */

size_t batch_slots_of(const batch_slot *slots, size_t n, uint64_t group)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += slots[i].group == group;
    return found;
}

/* Of the most crowded group the one that has been there longest. */
size_t batch_victim(const batch_slot *slots, size_t n, uint64_t group)
{
    size_t victim = n, most = 0, has = batch_slots_of(slots, n, group);
    for (size_t i = 0; i < n; i++) {
        size_t others = batch_slots_of(slots, n, slots[i].group);
        bool due = slots[i].n_stint >= BATCH_STINT && others > has;
        if (slots[i].fixed || !(due || others >= has + 2) || others < most) continue;
        if (victim < n && others == most && slots[i].n_stint <= slots[victim].n_stint) continue;
        victim = i;
        most = others;
    }
    return victim;
}

/* ---- replays -------------------------------------------------------------------------------------- */

bool batch_may_replay(const batch_replay *r, size_t n_running, size_t n_replaying)
{
    bool storm = r->n_deaths >= BATCH_STORM_DEATHS && r->waited_ms < BATCH_STORM_WAIT_MS;
    return n_replaying < BATCH_REPLAYS && !(storm && n_running >= BATCH_STORM_RUNNING);
}

bool batch_replays_before(const batch_replay *a, const batch_replay *b)
{
    return a->n_left < b->n_left;
}
