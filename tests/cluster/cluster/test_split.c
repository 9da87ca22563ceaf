/* Layers over machines: what holds for any cluster, and that no other split has a faster slowest stage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/split.h"

enum { PLACES = 5, LAYERS = 7 };

typedef struct world {
    uint64_t seed, n_drawn;
    split_shape shape;
    split_place places[PLACES];
    size_t n_places, n_stages;
} world;

static uint64_t draw(world *w, uint64_t n)
{
    return rng_mix(rng_mix(w->seed) ^ ++w->n_drawn) % n;
}

static void make_world(world *w, uint64_t seed)
{
    *w = (world){.seed = seed};
    w->n_places = 1 + draw(w, PLACES);
    w->n_stages = 1 + draw(w, 4);
    w->shape = (split_shape){.n_layer = 1 + draw(w, LAYERS),
                             .n_embd = 64,
                             .layer_bytes = 100 + draw(w, 900),
                             .layer_multiplies = 100 + draw(w, 900),
                             .outer_bytes = draw(w, 2000),
                             .head_bytes = draw(w, 2000),
                             .kv_bytes = draw(w, 2) * 700};
    for (size_t i = 0; i < w->n_places; i++)
        w->places[i] = (split_place){.machine = draw(w, 3) ? i : 0,
                                     .free_bytes = 200 + draw(w, 9000),
                                     .bytes_per_s = 1e3 * (double)(1 + draw(w, 30)),
                                     .multiplies_per_s = draw(w, 2) ? 1e3 * (double)(1 + draw(w, 30)) : 0,
                                     .rtt_ms = (double)draw(w, 20),
                                     .unreached = draw(w, 4) == 0};
}

#define HOLDS(w, ok) \
    if (!(ok)) fail_msg("seed %llu: not %s", (unsigned long long)(w)->seed, #ok)

/* ---- every split there is ----------------------------------------------------------------------------- */

typedef struct search {
    const world *w;
    split_part parts[SPLIT_STAGES_MAX];
    bool used[PLACES];
    double best; /* < 0: none fits */
} search;

static bool fits(const world *w, const split_part *parts, size_t i)
{
    const split_place *p = &w->places[parts[i].place], *first = &w->places[parts[0].place];
    return split_memory(&w->shape, parts[i].end - parts[i].first, i == 0) <= p->free_bytes &&
           (i == 0 || !p->unreached || p->machine == first->machine);
}

static void try_stage(search *s, size_t i, size_t at)
{
    const world *w = s->w;
    if (i == w->n_stages) {
        double ms = split_price(&w->shape, w->places, s->parts, i, 0).slowest_ms;
        if (at == w->shape.n_layer && (s->best < 0 || ms < s->best)) s->best = ms;
        return;
    }
    for (size_t p = 0; p < w->n_places; p++)
        for (size_t end = at + 1; end <= w->shape.n_layer && !s->used[p]; end++) {
            s->parts[i] = (split_part){p, at, end};
            s->used[p] = true;
            if (fits(w, s->parts, i)) try_stage(s, i + 1, end);
            s->used[p] = false;
        }
}

static void check_parts(const world *w, const split_part *parts)
{
    bool used[PLACES] = {0};
    size_t at = 0;
    for (size_t i = 0; i < w->n_stages; i++) {
        HOLDS(w, parts[i].place < w->n_places && !used[parts[i].place]);
        used[parts[i].place] = true;
        HOLDS(w, parts[i].first == at && parts[i].end > at);
        HOLDS(w, fits(w, parts, i));
        at = parts[i].end;
    }
    HOLDS(w, at == w->shape.n_layer);
}

static void split_is_the_fastest_there_is(void **state)
{
    static world w;
    size_t n_dealt = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        split_part parts[SPLIT_STAGES_MAX];
        make_world(&w, seed);
        search all = {.w = &w, .best = -1};
        try_stage(&all, 0, 0);
        int rc = split_deal(&w.shape, w.places, w.n_places, w.n_stages, parts);
        HOLDS(&w, rc == (all.best < 0 ? SHOAL_ELIMIT : 0));
        if (rc != 0) continue;
        n_dealt++;
        check_parts(&w, parts);
        HOLDS(&w, split_price(&w.shape, w.places, parts, w.n_stages, 0).slowest_ms == all.best);
    }
    assert_true(n_dealt > 1000);
}

/* ---- single ones -------------------------------------------------------------------------------------- */

static const split_shape SHAPE = {
    .n_layer = 12, .n_embd = 512, .layer_bytes = 1000000, .outer_bytes = 100, .kv_bytes = 0};

static void split_goes_by_speed(void **state)
{
    const split_place p[] = {{0, 1 << 30, 1e9, 0, 0, false}, {1, 1 << 30, 3e9, 0, 1, false}};
    split_part parts[2];
    assert_int_equal(split_deal(&SHAPE, p, 2, 2, parts), 0);
    size_t slow = parts[0].place == 0 ? 0 : 1;
    assert_int_equal(parts[slow].end - parts[slow].first, 3);
    assert_int_equal(parts[1 - slow].end - parts[1 - slow].first, 9);
}

static void split_goes_by_memory_too(void **state)
{
    const split_place p[] = {{0, 1 << 30, 1e9, 0, 0, false}, {1, 4000000, 3e9, 0, 1, false}};
    split_part parts[2];
    assert_int_equal(split_deal(&SHAPE, p, 2, 2, parts), 0);
    size_t small = parts[0].place == 1 ? 0 : 1;
    assert_true(parts[small].end - parts[small].first <= 4);
    const split_place none[] = {{0, 4000000, 1e9, 0, 0, false}, {1, 4000000, 3e9, 0, 1, false}};
    assert_int_equal(split_deal(&SHAPE, none, 2, 2, parts), SHOAL_ELIMIT);
    assert_int_equal(split_deal(&SHAPE, p, 2, 3, parts), SHOAL_ELIMIT);
}

static void split_says_what_a_token_costs(void **state)
{
    const split_place p[] = {{0, 1 << 30, 1e9, 0, 0, true}, {1, 1 << 30, 1e9, 0, 2, false}};
    split_part parts[2];
    assert_int_equal(split_deal(&SHAPE, p, 2, 2, parts), 0);
    assert_int_equal(parts[0].place, 0); /* the other could not reach it */
    split_cost c = split_price(&SHAPE, p, parts, 2, 0);
    assert_int_equal(c.n_hops, 1);
    assert_int_equal(c.hop_bytes, 2048);
    assert_true(c.hop_ms == 2 && c.compute_ms > 11.9 && c.compute_ms < 12.1);
    assert_true(c.slowest_ms > 5.9 && c.slowest_ms < 6.1);
    assert_int_equal(split_price(&SHAPE, p, parts, 2, 700).hop_bytes, 700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_is_the_fastest_there_is),
        cmocka_unit_test(split_goes_by_speed),
        cmocka_unit_test(split_goes_by_memory_too),
        cmocka_unit_test(split_says_what_a_token_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
