/* profile.c: see profile.h. */
#include "compute/profile.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"

enum { FIRST_SLOTS = 1024 };

#define PROFILE_OP_WORD(name, word, about)  word,
#define PROFILE_OP_ABOUT(name, word, about) about,
const char *const profile_op_words[PROFILE_N_OPS] = {PROFILE_OPS(PROFILE_OP_WORD)};
const char *const profile_op_abouts[PROFILE_N_OPS] = {PROFILE_OPS(PROFILE_OP_ABOUT)};

struct profile {
    atomic_bool on;
    profile_phase phase;
    int layer;
    profile_entry *now;          /* NULL: no step runs */
    uint64_t since_ns, ended_ns; /* when `now` began; when the last step ended, 0: there was none */
    uint64_t cpu_ns;             /* of the thread, when what `totals` has not counted began */
    profile_entry **entries;     /* [n], each allocated by itself: they stay where they are */
    size_t n, room;
    uint32_t *slots; /* [n_slots] open addressing: a place in entries, from 1 */
    size_t n_slots;
    profile_total totals[PROFILE_N_PHASES];
    profile_entry spare; /* where there is no memory for another */
    bool lost;
};

int profile_new(profile **ret, shoal_err *err)
{
    profile *p = calloc(1, sizeof *p);
    uint32_t *slots = calloc(FIRST_SLOTS, sizeof *slots);
    if (!p || !slots) {
        free(p);
        free(slots);
        return err_nomem(err);
    }
    p->slots = slots;
    p->n_slots = FIRST_SLOTS;
    *ret = p;
    return 0;
}

void profile_reset(profile *p)
{
    for (size_t i = 0; i < p->n; i++) free(p->entries[i]);
    memset(p->slots, 0, p->n_slots * sizeof *p->slots);
    memset(p->totals, 0, sizeof p->totals);
    p->n = 0;
    p->now = NULL;
    p->ended_ns = 0;
    p->lost = false;
    p->layer = PROFILE_NO_LAYER;
}

void profile_free(profile *p)
{
    if (!p) return;
    profile_reset(p);
    free(p->entries);
    free(p->slots);
    free(p);
}

void profile_enable(profile *p, bool on)
{
    atomic_store(&p->on, on);
}

bool profile_is_on(const profile *p)
{
    return atomic_load_explicit(&p->on, memory_order_relaxed);
}

size_t profile_count(const profile *p)
{
    return p->n;
}

const profile_entry *profile_at(const profile *p, size_t i)
{
    return p->entries[i];
}

profile_total profile_total_of(const profile *p, profile_phase phase)
{
    return p->totals[phase];
}

bool profile_lost(const profile *p)
{
    return p->lost;
}

/* ---- entries ---- */

static size_t slot_of(const profile *p, const profile_entry *e)
{
    uint64_t h = rng_mix((uint64_t)(uintptr_t)e->key ^ (uint64_t)(e->layer + 1) << 48);
    return (size_t)rng_mix(h ^ (uint64_t)e->op << 8 ^ (uint64_t)e->phase) & (p->n_slots - 1);
}

static bool same(const profile_entry *a, const profile_entry *b)
{
    return a->key == b->key && a->layer == b->layer && a->op == b->op && a->phase == b->phase;
}

/* Twice the slots, so that at most half of them are taken. */
static bool grow_slots(profile *p)
{
    uint32_t *slots = calloc(2 * p->n_slots, sizeof *slots);
    if (!slots) return false;
    free(p->slots);
    p->slots = slots;
    p->n_slots *= 2;
    for (size_t i = 0; i < p->n; i++) {
        size_t at = slot_of(p, p->entries[i]);
        while (p->slots[at]) at = (at + 1) & (p->n_slots - 1);
        p->slots[at] = (uint32_t)i + 1;
    }
    return true;
}

static bool make_room(profile *p)
{
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        profile_entry **more = realloc(p->entries, room * sizeof *more);
        if (!more) return false;
        p->entries = more;
        p->room = room;
    }
    return 2 * (p->n + 1) <= p->n_slots || grow_slots(p);
}

static profile_entry *add(profile *p, const profile_entry *wanted)
{
    profile_entry *e = make_room(p) ? malloc(sizeof *e) : NULL;
    if (!e) {
        p->lost = true;
        return &p->spare;
    }
    size_t at = slot_of(p, wanted);
    while (p->slots[at]) at = (at + 1) & (p->n_slots - 1);
    *e = *wanted;
    p->entries[p->n++] = e;
    p->slots[at] = (uint32_t)p->n;
    return e;
}

static profile_entry *find(profile *p, profile_op op, const void *key)
{
    const profile_entry wanted = {.phase = p->phase, .layer = p->layer, .op = op, .key = key};
    for (size_t at = slot_of(p, &wanted); p->slots[at]; at = (at + 1) & (p->n_slots - 1))
        if (same(p->entries[p->slots[at] - 1], &wanted)) return p->entries[p->slots[at] - 1];
    return add(p, &wanted);
}

/* ---- a step ---- */

/* What ran until now ran so long. */
static void turn_to(profile *p, profile_entry *e)
{
    uint64_t now = clock_ns();
    if (p->now) {
        p->now->ns += now - p->since_ns;
        p->totals[p->phase].ns += now - p->since_ns;
    }
    p->now = e;
    p->since_ns = now;
}

void profile_set_layer(profile *p, int layer)
{
    p->layer = layer;
}

profile_entry *profile_to(profile *p, profile_op op, const void *key)
{
    profile_entry *e = find(p, op, key);
    e->n_calls++;
    turn_to(p, e);
    return e;
}

void profile_back_to(profile *p, profile_op op, const void *key)
{
    turn_to(p, find(p, op, key));
}

profile_entry *profile_to_matmul(profile *p, const void *key, const wmat *w, size_t n_tokens)
{
    profile_entry *e = profile_to(p, PROFILE_MATMUL, key);
    dtype t = wmat_type(w);
    double n = (double)wmat_rows(w) * (double)wmat_cols(w);
    e->type = t;
    e->rows = wmat_rows(w);
    e->cols = wmat_cols(w);
    e->bytes += n / (double)dtype_block(t) * (double)dtype_block_bytes(t);
    e->multiply_adds += n * (double)n_tokens;
    return e;
}

profile_entry *profile_wait(profile *p)
{
    profile_entry *before = p->now;
    if (before) profile_to(p, PROFILE_WAIT, NULL);
    return before;
}

void profile_resume(profile *p, profile_entry *e)
{
    if (e) turn_to(p, e);
}

void profile_begin(profile *p, team *t, profile_phase phase, size_t n_tokens)
{
    if (!p || !profile_is_on(p)) return;
    p->phase = phase;
    p->layer = PROFILE_NO_LAYER;
    p->totals[phase].n_steps++;
    p->totals[phase].n_tokens += n_tokens;
    if (p->ended_ns) {
        p->now = find(p, PROFILE_ENGINE, NULL);
        p->now->n_calls++;
        p->since_ns = p->ended_ns;
    } else {
        p->cpu_ns = clock_thread_cpu_ns();
    }
    profile_to(p, PROFILE_OTHER, NULL);
    team_set_profile(t, p);
}

void profile_end(profile *p, team *t)
{
    if (!p || !p->now) return;
    team_set_profile(t, NULL);
    turn_to(p, NULL);
    p->ended_ns = p->since_ns;
    uint64_t cpu_ns = clock_thread_cpu_ns();
    p->totals[p->phase].busy_ns += cpu_ns - p->cpu_ns;
    p->cpu_ns = cpu_ns;
}
