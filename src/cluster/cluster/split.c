/* split.c: the least time in which all layers find a stage, found by halving; see split.h. */
#include "cluster/split.h"

#include <stdlib.h>
#include <string.h>

typedef struct dealing {
    const split_shape *s;
    const split_place *p;
    size_t n, n_stages;
    size_t *room;  /* [n]: layers that a place takes as a later stage within the time in hand */
    size_t *order; /* [n]: places, the roomiest first */
} dealing;

/* ---- one stage ------------------------------------------------------------------------------------ */

uint64_t split_memory(const split_shape *s, size_t n_layers, bool first)
{
    uint64_t kv = s->n_layer ? s->kv_bytes / s->n_layer + 1 : 0;
    return n_layers * (s->layer_bytes + kv) + (first ? s->outer_bytes : 0);
}

double split_stage_ms(const split_shape *s, const split_place *p, size_t n_layers, bool first)
{
    double bytes = (double)n_layers * (double)s->layer_bytes + (first ? (double)s->head_bytes : 0);
    double multiplies =
        (double)n_layers * (double)s->layer_multiplies + (first ? (double)s->head_multiplies : 0);
    double read_ms = p->bytes_per_s > 0 ? bytes / p->bytes_per_s * 1e3 : 0;
    double multiply_ms = p->multiplies_per_s > 0 ? multiplies / p->multiplies_per_s * 1e3 : 0;
    return read_ms > multiply_ms ? read_ms : multiply_ms;
}

/* The most layers that the place has memory for and computes within ms; both grow with the layers. */
static size_t room_of(const split_shape *s, const split_place *p, bool first, double ms)
{
    size_t low = 0, high = s->n_layer;
    while (low < high) {
        size_t n = low + (high - low + 1) / 2;
        bool fits = split_memory(s, n, first) <= p->free_bytes && split_stage_ms(s, p, n, first) <= ms;
        low = fits ? n : low;
        high = fits ? high : n - 1;
    }
    return low;
}

/* ---- a chain -------------------------------------------------------------------------------------- */

static void sort_by_room(dealing *d)
{
    for (size_t i = 0; i < d->n; i++) {
        size_t k = i;
        for (; k > 0 && d->room[d->order[k - 1]] < d->room[i]; k--) d->order[k] = d->order[k - 1];
        d->order[k] = i;
    }
}

static bool is_reached(const split_place *from, const split_place *to)
{
    return !to->unreached || from->machine == to->machine;
}

/* The roomiest places behind a first stage; with `ret` not NULL also which, each with one layer. False: they
 * have no room for all layers within ms. */
static bool chain_of(const dealing *d, size_t first, double ms, split_part *ret)
{
    size_t room = room_of(d->s, &d->p[first], true, ms), n = 1;
    if (room == 0) return false;
    if (ret) ret[0] = (split_part){.place = first, .end = 1};
    for (size_t i = 0; i < d->n && n < d->n_stages; i++) {
        size_t at = d->order[i];
        if (at == first || d->room[at] == 0 || !is_reached(&d->p[first], &d->p[at])) continue;
        if (ret) ret[n] = (split_part){.place = at, .end = 1};
        room += d->room[at];
        n++;
    }
    return n == d->n_stages && room >= d->s->n_layer;
}

static bool any_chain(dealing *d, double ms)
{
    bool found = false;
    for (size_t i = 0; i < d->n; i++) d->room[i] = room_of(d->s, &d->p[i], false, ms);
    sort_by_room(d);
    for (size_t i = 0; !found && i < d->n; i++) found = chain_of(d, i, ms, NULL);
    return found;
}

static double as_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The least ms for which there is a chain: positive numbers are in the order of their bits, so that 64 looks
 * find it exactly. */
static bool least_ms(dealing *d, double *ret)
{
    uint64_t low = 0, high = UINT64_C(0x7fefffffffffffff); /* DBL_MAX */
    if (!any_chain(d, as_double(high))) return false;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (any_chain(d, as_double(middle)))
            high = middle;
        else
            low = middle + 1;
    }
    *ret = as_double(high);
    any_chain(d, *ret); /* room and order as of it */
    return true;
}

/* What is left goes to those who compute it fastest. */
static void fill_chain(const dealing *d, double ms, split_part *parts)
{
    size_t left = d->s->n_layer - d->n_stages;
    while (left > 0) {
        size_t best = d->n_stages;
        double best_ms = 0;
        for (size_t i = 0; i < d->n_stages; i++) {
            const split_place *p = &d->p[parts[i].place];
            size_t room = i == 0 ? room_of(d->s, p, true, ms) : d->room[parts[i].place];
            double one = split_stage_ms(d->s, p, 1, false);
            if (parts[i].end == room || (best < d->n_stages && one >= best_ms)) continue;
            best = i;
            best_ms = one;
        }
        size_t more = best == 0 ? room_of(d->s, &d->p[parts[0].place], true, ms) : d->room[parts[best].place];
        more -= parts[best].end;
        if (more > left) more = left;
        parts[best].end += more;
        left -= more;
    }
    for (size_t i = 0, at = 0; i < d->n_stages; i++) {
        parts[i].first = at;
        at = parts[i].end += at;
    }
}

/* Of all first stages the one whose token is through soonest. */
static void pick_chain(dealing *d, double ms, split_part *ret)
{
    split_part parts[SPLIT_STAGES_MAX];
    double best = -1;
    for (size_t i = 0; i < d->n; i++) {
        if (!chain_of(d, i, ms, parts)) continue;
        fill_chain(d, ms, parts);
        split_cost c = split_price(d->s, d->p, parts, d->n_stages, 0);
        if (best >= 0 && c.compute_ms + c.hop_ms >= best) continue;
        best = c.compute_ms + c.hop_ms;
        memcpy(ret, parts, d->n_stages * sizeof *ret);
    }
}

int split_deal(const split_shape *s, const split_place *p, size_t n_places, size_t n_stages,
               split_part *ret_parts)
{
    dealing d = {.s = s, .p = p, .n = n_places, .n_stages = n_stages};
    double ms;
    if (n_stages == 0 || n_stages > SPLIT_STAGES_MAX || n_stages > n_places || n_stages > s->n_layer)
        return SHOAL_ELIMIT;
    d.room = calloc(n_places, sizeof *d.room);
    d.order = calloc(n_places, sizeof *d.order);
    int rc = d.room && d.order ? 0 : SHOAL_ENOMEM;
    if (rc == 0 && !least_ms(&d, &ms)) rc = SHOAL_ELIMIT;
    if (rc == 0) pick_chain(&d, ms, ret_parts);
    free(d.room);
    free(d.order);
    return rc;
}

/* ---- what it costs -------------------------------------------------------------------------------- */

split_cost split_price(const split_shape *s, const split_place *p, const split_part *parts, size_t n_stages,
                       uint64_t row_bytes)
{
    split_cost c = {.hop_bytes = row_bytes ? row_bytes : s->n_embd * sizeof(float)};
    for (size_t i = 0; i < n_stages; i++) {
        const split_place *here = &p[parts[i].place], *first = &p[parts[0].place];
        double ms = split_stage_ms(s, here, parts[i].end - parts[i].first, i == 0);
        c.compute_ms += ms;
        if (ms > c.slowest_ms) c.slowest_ms = ms;
        if (i == 0) continue;
        c.n_hops++;
        c.hop_ms += here->machine == first->machine ? SPLIT_LOCAL_RTT_MS : here->rtt_ms + first->rtt_ms;
    }
    return c;
}
