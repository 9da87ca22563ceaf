/* No way leads back: of routes, ensembles and stand-ins that are drawn at random, exactly those without a
 * circle are taken, and then everything that a request may come to ends at a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "config/config.h"

enum { MODELS = 4, ENSEMBLES = 2, ROUTES = 5, NODES = MODELS + ENSEMBLES + ROUTES };

/* edge[i][k]: i leads to k. The first MODELS are models, then ensembles, then routes. */
typedef struct web {
    bool edge[NODES][NODES];
    buf yaml;
} web;

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed = rng_mix(*seed + 1);
    return *seed % n;
}

static const char *name_of(unsigned i)
{
    static const char *const NAMES[] = {"m0", "m1", "m2", "m3", "e0", "e1", "r0", "r1", "r2", "r3", "r4"};
    return NAMES[i];
}

/* ---- drawing ---------------------------------------------------------------------------------------- */

/* Models that stand in, for most files in one direction only. */
static void draw_models(web *w, uint64_t *seed)
{
    bool any = draw(seed, 4) == 0;
    buf_puts(&w->yaml, "models:\n");
    for (unsigned i = 0; i < MODELS; i++) {
        bool first = true;
        buf_printf(&w->yaml, "  - {name: %s", name_of(i));
        for (unsigned k = 0; k < MODELS; k++) {
            if (k == i || (k > i && !any) || draw(seed, 4)) continue;
            buf_printf(&w->yaml, "%s%s", first ? ", fallback: [" : ", ", name_of(k));
            w->edge[i][k] = true;
            first = false;
        }
        buf_puts(&w->yaml, first ? "}\n" : "]}\n");
    }
}

static void draw_ensembles(web *w, uint64_t *seed)
{
    static const char *const KINDS[] = {"cascade", "vote", "refine"};
    buf_puts(&w->yaml, "ensembles:\n");
    for (unsigned i = MODELS; i < MODELS + ENSEMBLES; i++) {
        unsigned a = (unsigned)draw(seed, MODELS), b = (a + 1 + (unsigned)draw(seed, MODELS - 1)) % MODELS;
        buf_printf(&w->yaml, "  - {name: %s, kind: %s, members: [{model: %s}, {model: %s}]}\n", name_of(i),
                   KINDS[draw(seed, 3)], name_of(a), name_of(b));
        w->edge[i][a] = w->edge[i][b] = true;
    }
}

/* Where a route leads: anywhere, to routes behind it more often than to those before. */
static const char *draw_target(web *w, uint64_t *seed, unsigned from)
{
    unsigned to = (unsigned)draw(seed, NODES);
    if (to >= MODELS + ENSEMBLES && to <= from && draw(seed, 4))
        to = (unsigned)draw(seed, MODELS + ENSEMBLES);
    w->edge[from][to] = true;
    return name_of(to);
}

static void draw_route(web *w, uint64_t *seed, unsigned i)
{
    buf_printf(&w->yaml, "  - name: %s\n    rules:\n", name_of(i));
    for (uint64_t left = 1 + draw(seed, 2); left > 0; left--) {
        if (draw(seed, 3)) {
            buf_printf(&w->yaml, "      - {language: [de], model: %s}\n", draw_target(w, seed, i));
        } else {
            buf_printf(&w->yaml, "      - {split: [{share: 1, model: %s}, ", draw_target(w, seed, i));
            buf_printf(&w->yaml, "{share: 0, model: %s}]}\n", draw_target(w, seed, i));
        }
    }
    if (draw(seed, 2)) buf_printf(&w->yaml, "    fallback: [%s]\n", draw_target(w, seed, i));
}

static void draw_web(web *w, uint64_t *seed)
{
    *w = (web){.yaml = {0}};
    draw_models(w, seed);
    draw_ensembles(w, seed);
    buf_puts(&w->yaml, "routes:\n");
    for (unsigned i = MODELS + ENSEMBLES; i < NODES; i++) draw_route(w, seed, i);
}

/* ---- judging ---------------------------------------------------------------------------------------- */

/* Warshall: does anything lead to itself? */
static bool has_circle(const web *w)
{
    bool reach[NODES][NODES];
    memcpy(reach, w->edge, sizeof reach);
    for (unsigned k = 0; k < NODES; k++)
        for (unsigned i = 0; i < NODES; i++)
            for (unsigned j = 0; j < NODES; j++) reach[i][j] |= reach[i][k] && reach[k][j];
    for (unsigned i = 0; i < NODES; i++)
        if (reach[i][i]) return true;
    return false;
}

typedef struct walked {
    const gateway_config *c;
    unsigned depth, n_models;
} walked;

/* All that `name` may come to; it ends at models, or the test does. */
static void walk(void *user, const char *name)
{
    walked *w = user;
    assert_true(++w->depth <= NODES);
    const config_route *r = route_find(&w->c->book, name);
    const config_ensemble *e = config_ensemble_find(w->c, name);
    if (r) route_each(r, walk, w);
    for (size_t i = 0; e && i < e->n_members; i++) walk(w, e->members[i].model);
    for (size_t i = 0; i < w->c->n_models; i++) {
        const config_model *m = &w->c->models[i];
        if (strcmp(m->name, name) != 0) continue;
        w->n_models++;
        for (size_t k = 0; k < m->n_fallback; k++) walk(w, m->fallback[k]);
    }
    w->depth--;
}

static void exactly_what_has_no_circle_is_taken(void **state)
{
    unsigned n_taken = 0, n_refused = 0;
    for (uint64_t run = 0; run < 4000; run++) {
        uint64_t seed = run;
        web w;
        gateway_config *c = NULL;
        shoal_err err = {0};
        draw_web(&w, &seed);
        int rc = config_parse(&c, NULL, w.yaml.data, w.yaml.len, "t.yaml", &err);
        bool circle = has_circle(&w);
        if (circle != (rc != 0))
            fail_msg("run %llu: %s\n%s", (unsigned long long)run, err.message, w.yaml.data);
        if (rc != 0)
            assert_true(strstr(err.message, "leads to itself") ||
                        strstr(err.message, "stand in for each other"));
        if (rc != 0) assert_true(strncmp(err.message, "t.yaml:", 7) == 0);
        for (unsigned i = MODELS; rc == 0 && i < NODES; i++) {
            walked all = {.c = c};
            walk(&all, name_of(i));
            assert_true(all.n_models > 0);
        }
        n_taken += rc == 0;
        n_refused += rc != 0;
        config_free(c);
        buf_done(&w.yaml);
    }
    print_message("%u taken, %u refused\n", n_taken, n_refused);
    assert_true(n_taken > 500 && n_refused > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exactly_what_has_no_circle_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
