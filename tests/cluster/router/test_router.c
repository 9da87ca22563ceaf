#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "router/router.h"

#define MS 1000000ull

/* One row: a view of up to four replicas (whose life is not 0), a request, and what must come out. */
typedef struct row {
    const char *name;
    router_replica r[4];
    router_request q;
    int rc, index;
    router_why why;
} row;

#define READY(...)                                              \
    {                                                           \
        .life = 7, .identity = "d1", .ready = true, __VA_ARGS__ \
    }

static const row rows[] = {
    {"no replica is ready of a model that has none", {{0}}, {0}, SHOAL_EUNAVAILABLE, -1, ROUTER_NONE_READY},
    {"one whose connection was lost is not used",
     {{.life = 9}},
     {0},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_NONE_READY},
    {"nor while another lives", {{.life = 9}, READY(.n_in_flight = 9)}, {0}, 0, 1, ROUTER_ONLY_ONE},
    {"equal replicas: the lowest place",
     {READY(.ms_per_call = 2), READY(.ms_per_call = 2)},
     {0},
     0,
     0,
     ROUTER_LEAST_TIME},
    {"the shorter queue wins",
     {READY(.ms_per_call = 2, .n_in_flight = 2), READY(.ms_per_call = 2, .n_in_flight = 1)},
     {0},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"a fast busy machine beats a slow idle one",
     {READY(.ms_per_call = 20), READY(.ms_per_call = 2, .n_in_flight = 3)},
     {0},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"streams slow each other: the third goes where none is, be its first token later",
     {READY(.ms_per_call = 2, .ms_per_stream = 1, .n_parallel = 8, .n_in_flight = 2),
      READY(.ms_per_call = 9, .ms_per_stream = 1, .n_parallel = 8)},
     {0},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"a machine four times as fast has four streams before the slow one has its first",
     {READY(.ms_per_stream = 1, .n_parallel = 8, .n_in_flight = 2),
      READY(.ms_per_stream = 4, .n_parallel = 8)},
     {0},
     0,
     0,
     ROUTER_LEAST_TIME},
    {"and then the slow one has it",
     {READY(.ms_per_stream = 1, .n_parallel = 8, .n_in_flight = 4),
      READY(.ms_per_stream = 4, .n_parallel = 8)},
     {0},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"where steps cost the same however many take part, the full one is the slow one",
     {READY(.ms_per_step = 1, .n_parallel = 2, .n_in_flight = 2),
      READY(.ms_per_step = 1, .n_parallel = 8, .n_in_flight = 3)},
     {0},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"tokens in flight count too",
     {READY(.ms_per_call = 2, .ms_per_token = 1, .n_tokens_in_flight = 5), READY(.ms_per_call = 2)},
     {0},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"unmeasured replicas go by load",
     {READY(.n_in_flight = 1), READY(.n_in_flight = 0)},
     {0},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"batch width divides the wait",
     {READY(.ms_per_call = 100, .n_in_flight = 8, .n_parallel = 16),
      READY(.ms_per_call = 100, .n_in_flight = 2, .n_parallel = 1)},
     {.n_tokens = 100},
     0,
     0,
     ROUTER_LEAST_TIME},
    {"deadline that can be met",
     {READY(.ms_per_call = 5)},
     {.now_ns = MS, .deadline_ns = 7 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"deadline that cannot be met",
     {READY(.ms_per_call = 5, .n_in_flight = 1, .sent_ns = MS)},
     {.now_ns = MS, .deadline_ns = 7 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"what was learnt of small inputs does not condemn a large one",
     {READY(.ms_per_token = 100, .reach = 24, .n_in_flight = 1, .n_tokens_in_flight = 1300, .sent_ns = MS)},
     {.n_tokens = 1300, .now_ns = MS, .deadline_ns = 5000 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"but what the small ones take is certain",
     {READY(.ms_per_token = 100, .reach = 24, .n_in_flight = 1, .n_tokens_in_flight = 1300, .sent_ns = MS)},
     {.n_tokens = 1300, .now_ns = MS, .deadline_ns = 4700 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"what was done of the work ahead is not waited for",
     {READY(.ms_per_call = 5, .n_in_flight = 1, .worked_ms = 4.5, .sent_ns = MS)},
     {.now_ns = MS, .deadline_ns = 7 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"an idle replica is tried, whatever the estimate says",
     {READY(.ms_per_call = 900, .ms_per_token = 9, .sent_ns = MS)},
     {.n_tokens = 100, .now_ns = MS, .deadline_ns = 2 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a busy one is tried once a second",
     {READY(.ms_per_call = 900, .n_in_flight = 3, .sent_ns = MS)},
     {.now_ns = MS + ROUTER_PROBE_MS * MS, .deadline_ns = 2 * MS + ROUTER_PROBE_MS * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a short request is not refused for what a long one costs",
     {READY(.ms_per_call = 1, .ms_per_token = 1, .n_in_flight = 1, .n_tokens_in_flight = 2, .sent_ns = MS)},
     {.n_tokens = 2, .now_ns = MS, .deadline_ns = 10 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a long one is",
     {READY(.ms_per_call = 1, .ms_per_token = 1, .n_in_flight = 1, .n_tokens_in_flight = 2, .sent_ns = MS)},
     {.n_tokens = 2000, .now_ns = MS, .deadline_ns = 10 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"a prompt that may be over the context is for the worker to refuse",
     {READY(.ms_per_token = 1, .n_in_flight = 1, .n_ctx = 512, .sent_ns = MS)},
     {.n_tokens = 2000, .n_tokens_max = 8000, .now_ns = MS, .deadline_ns = 10 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"deadline in the past",
     {READY(.n_in_flight = 0)},
     {.now_ns = 9 * MS, .deadline_ns = 7 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"cold replica is tried under a deadline",
     {READY(.n_in_flight = 4)},
     {.now_ns = MS, .deadline_ns = 2 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a replay needs the same file",
     {READY(.n_in_flight = 0), {.life = 8, .identity = "d2", .ready = true}},
     {.identity = "d2"},
     0,
     1,
     ROUTER_ONLY_ONE},
    {"a replay with an adapter needs the same adapter",
     {READY(.n_in_flight = 0, .adapter_digest = "a1"), READY(.n_in_flight = 3, .adapter_digest = "a2")},
     {.identity = "d1", .adapter_digest = "a2"},
     0,
     1,
     ROUTER_ONLY_ONE},
    {"a replay with an adapter does not go where there is none of that name",
     {READY(.adapter_digest = ""), READY(.n_in_flight = 1)},
     {.adapter_digest = "a2"},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_NONE_READY},
    {"a request that needs a capability passes over who lacks it",
     {READY(.ms_per_call = 1, .lacks = ROUTER_BEAMS), READY(.ms_per_call = 9, .lacks = ROUTER_BALLOTS)},
     {.needs = ROUTER_BEAMS},
     0,
     1,
     ROUTER_ONLY_ONE},
    {"where all lack it, it is refused by that name",
     {READY(.lacks = ROUTER_BEAMS), READY(.lacks = ROUTER_BEAMS | ROUTER_GRAMMAR)},
     {.needs = ROUTER_BEAMS},
     SHOAL_EUNSUPPORTED,
     -1,
     ROUTER_INCAPABLE},
    {"one that is not ready does not count as lacking it",
     {{.life = 8, .lacks = ROUTER_BEAMS}},
     {.needs = ROUTER_BEAMS},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_NONE_READY},
    {"a replay does not go to an undescribed replica",
     {{.life = 8, .ready = true}},
     {.identity = "d2"},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_NONE_READY},
};

/* -1: refused. */
static int first(const router_decision *d)
{
    return d->n ? (int)d->steps[0].place : -1;
}

static void router_picks_by_the_table(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *w = &rows[i];
        size_t n = 0;
        while (n < 4 && w->r[n].life) n++;
        router_view v = {.known = true, .n_ready = n, .set = w->r, .peek = router_peek_array};
        router_decision d;
        int rc = router_plan(&v, &w->q, NULL, &d);
        if (rc != w->rc || first(&d) != w->index || d.why != w->why)
            fail_msg("%s: rc %d index %d why %s", w->name, rc, first(&d), router_why_name(d.why));
    }
}

static void router_names_the_capability_that_is_lacking(void **state)
{
    router_replica r[2] = {READY(.lacks = ROUTER_BEAMS | ROUTER_GRAMMAR), READY(.lacks = ROUTER_BEAMS)};
    router_view v = {.known = true, .n_ready = 2, .set = r, .peek = router_peek_array};
    router_request q = {.needs = ROUTER_BEAMS | ROUTER_GRAMMAR};
    router_decision d;
    char names[200], few[12];
    assert_int_equal(router_plan(&v, &q, NULL, &d), SHOAL_EUNSUPPORTED);
    assert_int_equal(d.lacks, ROUTER_BEAMS); /* both lack it */
    r[1].lacks = ROUTER_GRAMMAR;
    r[0].lacks = ROUTER_BEAMS;
    assert_int_equal(router_plan(&v, &q, NULL, &d), SHOAL_EUNSUPPORTED);
    assert_int_equal(d.lacks, ROUTER_BEAMS | ROUTER_GRAMMAR); /* none has both */
    router_capabilities_put(names, sizeof names, d.lacks);
    assert_string_equal(names, "beams (beam search), grammar (JSON, tools or choices as a constraint)");
    router_capabilities_put(few, sizeof few, d.lacks);
    assert_string_equal(few, "beams (beam");
    uint64_t failed[1] = {7};
    r[0].lacks = r[1].lacks = 0;
    r[1].life = 8;
    r[1].lacks = ROUTER_BEAMS;
    q.exclude = failed, q.n_exclude = 1;
    assert_int_equal(router_plan(&v, &q, NULL, &d),
                     SHOAL_EUNAVAILABLE); /* it failed where it could be done */
    assert_int_equal(d.why, ROUTER_ALL_EXCLUDED);
}

static void router_finds_the_only_capable_one_of_many(void **state)
{
    enum { N = 500 };
    static router_replica r[N];
    router_view v = {.known = true, .n_ready = N, .set = r, .peek = router_peek_array};
    router_decision d;
    for (size_t i = 0; i < N; i++)
        r[i] = (router_replica){.life = i + 1, .ready = true, .lacks = i == 321 ? 0 : ROUTER_LIKELIHOOD};
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_int_equal(
            router_plan(&v, &(router_request){.random = seed, .needs = ROUTER_LIKELIHOOD}, NULL, &d), 0);
        assert_int_equal(first(&d), 321);
    }
}

static void router_refuses_an_unknown_model(void **state)
{
    router_view v = {0};
    router_decision d;
    assert_int_equal(router_plan(&v, &(router_request){0}, NULL, &d), SHOAL_ENOTFOUND);
    assert_int_equal(d.why, ROUTER_UNKNOWN_MODEL);
    assert_int_equal(first(&d), -1);
}

/* Ten times as slow as the other, when it was last asked. */
static void router_tries_one_that_was_slow_again_one_day(void **state)
{
    router_replica r[2] = {READY(.ms_per_call = 10, .sent_ns = MS), READY(.ms_per_call = 100, .sent_ns = MS)};
    router_view v = {.known = true, .n_ready = 2, .set = r, .peek = router_peek_array};
    router_request q = {0};
    router_decision d = {.n = 1};
    int seconds = 0;
    for (; first(&d) == 0 && seconds < 1000; seconds++) {
        q.now_ns = (uint64_t)seconds * 1000 * MS + MS;
        assert_int_equal(router_plan(&v, &q, NULL, &d), 0);
        r[0].sent_ns = q.now_ns;
    }
    assert_int_equal(first(&d), 1);
    assert_in_range(seconds, 3 * ROUTER_FADE_S, 4 * ROUTER_FADE_S);
}

static void router_excludes_lives_not_places(void **state)
{
    router_replica r[2] = {READY(.ms_per_call = 1), READY(.ms_per_call = 9)};
    r[1].life = 8;
    router_view v = {.known = true, .n_ready = 2, .set = r, .peek = router_peek_array};
    uint64_t failed[2] = {7, 8};
    router_request q = {.exclude = failed, .n_exclude = 1};
    router_decision d;
    assert_int_equal(router_plan(&v, &q, NULL, &d), 0);
    assert_int_equal(first(&d), 1);
    assert_int_equal(d.why, ROUTER_ONLY_ONE);
    router_replica swapped[2] = {r[1], r[0]};
    v.set = swapped;
    assert_int_equal(router_plan(&v, &q, NULL, &d), 0);
    assert_int_equal(first(&d), 0);
    q.n_exclude = 2;
    assert_int_equal(router_plan(&v, &q, NULL, &d), SHOAL_EUNAVAILABLE);
    assert_int_equal(d.why, ROUTER_ALL_EXCLUDED);
    swapped[1].life = 9; /* restarted */
    assert_int_equal(router_plan(&v, &q, NULL, &d), 0);
    assert_int_equal(first(&d), 1);
}

/* ---- many replicas ------------------------------------------------------------------------------- */

enum { MANY = 5000 };

typedef struct crowd {
    router_replica r[MANY];
    router_view view;
} crowd;

static crowd *make_crowd(size_t n)
{
    crowd *c = calloc(1, sizeof *c);
    for (size_t i = 0; i < n; i++) {
        c->r[i] = (router_replica)READY(.ms_per_call = 1);
        c->r[i].life = i + 1;
    }
    c->view = (router_view){.known = true, .n_ready = n, .set = c->r, .peek = router_peek_array};
    return c;
}

static void router_gives_the_same_decision_twice(void **state)
{
    crowd *c = make_crowd(MANY);
    for (uint64_t seed = 0; seed < 100; seed++) {
        router_request q = {.now_ns = 5, .deadline_ns = 100 * MS, .random = seed};
        router_decision a, b;
        assert_int_equal(router_plan(&c->view, &q, NULL, &a), router_plan(&c->view, &q, NULL, &b));
        assert_memory_equal(&a, &b, sizeof a);
    }
    free(c);
}

static void router_finds_the_best_of_up_to_ROUTER_EXACT(void **state)
{
    crowd *c = make_crowd(ROUTER_EXACT);
    for (int best = 0; best < ROUTER_EXACT; best++) {
        c->r[best].ms_per_call = 0.5;
        router_decision d;
        assert_int_equal(router_plan(&c->view, &(router_request){.random = 9}, NULL, &d), 0);
        assert_int_equal(first(&d), best);
        c->r[best].ms_per_call = 1;
    }
    free(c);
}

/* Whatever the number of replicas, whoever is excluded, and however late it is. */
static void router_looks_at_no_more_than_a_few_of_many(void **state)
{
    crowd *c = make_crowd(MANY);
    uint64_t gone[ROUTER_EXCLUDE_MAX];
    size_t most = 0;
    for (int i = 0; i < MANY; i++) c->r[i].n_in_flight = 1 + (unsigned)i % 7, c->r[i].sent_ns = MS;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        size_t n = seed % (ROUTER_EXCLUDE_MAX + 1);
        for (size_t k = 0; k < n; k++) gone[k] = (seed * 31 + k) % MANY + 1;
        router_request q = {.random = seed, .exclude = gone, .n_exclude = n, .now_ns = 2 * MS};
        if (seed % 3 == 0) q.deadline_ns = q.now_ns + 1; /* cannot be met */
        router_decision d;
        int rc = router_plan(&c->view, &q, NULL, &d);
        assert_int_equal(rc, seed % 3 == 0 ? SHOAL_EDEADLINE : 0);
        if (d.n_looked > most) most = d.n_looked;
        for (size_t k = 0; rc == 0 && k < n; k++) assert_int_not_equal(c->r[first(&d)].life, gone[k]);
    }
    assert_true(most <= ROUTER_EXACT + ROUTER_SAMPLE + ROUTER_EXCLUDE_MAX);
    free(c);
}

/* Calls that go one after the other to the best of a few leave no replica with much more than its share. */
static void router_spreads_calls_over_many(void **state)
{
    enum { N = 500, CALLS = 20 * N };
    crowd *c = make_crowd(N);
    for (uint64_t i = 0; i < CALLS; i++) {
        router_decision d;
        assert_int_equal(router_plan(&c->view, &(router_request){.random = i * 2654435761u}, NULL, &d), 0);
        c->r[first(&d)].n_in_flight++;
    }
    unsigned least = CALLS, most = 0;
    for (int i = 0; i < N; i++) {
        if (c->r[i].n_in_flight < least) least = c->r[i].n_in_flight;
        if (c->r[i].n_in_flight > most) most = c->r[i].n_in_flight;
    }
    if (most > 23 || least < 15) fail_msg("between %u and %u calls, of 20", least, most);
    free(c);
}

static void router_finds_the_one_of_many_with_the_file(void **state)
{
    crowd *c = make_crowd(MANY);
    c->r[4321].identity = "d2";
    router_decision d;
    assert_int_equal(router_plan(&c->view, &(router_request){.identity = "d2", .random = 4}, NULL, &d), 0);
    assert_int_equal(first(&d), 4321);
    c->r[4321].ready = false;
    assert_int_equal(router_plan(&c->view, &(router_request){.identity = "d2"}, NULL, &d),
                     SHOAL_EUNAVAILABLE);
    assert_int_equal(d.why, ROUTER_NONE_READY);
    free(c);
}

/* ---- sites --------------------------------------------------------------------------------------- */

/* Replicas of which the last n_away are at another site, a rule, and what must come out. */
typedef struct site_row {
    const char *name;
    router_replica r[4];
    size_t n_away;
    router_spill spill;
    router_request q;
    int rc, index;
    router_why why;
} site_row;

#define FULL(...) READY(.n_parallel = 4, .n_in_flight = 4, __VA_ARGS__)
static const uint64_t seven[] = {7};

static const site_row site_rows[] = {
    {"own ones come first, be others faster and idle",
     {READY(.ms_per_call = 50, .n_in_flight = 1, .n_parallel = 4), READY(.ms_per_call = 1)},
     1,
     {0},
     {0},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"whoever is full here gives to one who is faster there",
     {FULL(.ms_per_call = 50), READY(.ms_per_call = 50, .rtt_ms = 20)},
     1,
     {0},
     {0},
     0,
     1,
     ROUTER_SPILLED},
    {"but not when the way costs more than the wait",
     {FULL(.ms_per_call = 50), READY(.ms_per_call = 50, .rtt_ms = 60)},
     1,
     {0},
     {0},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a site with room keeps the request, though its fastest is full",
     {FULL(.ms_per_call = 1), READY(.ms_per_call = 90, .n_parallel = 1), READY(.ms_per_call = 0.1)},
     1,
     {0},
     {0},
     0,
     0,
     ROUTER_LEAST_TIME},
    {"some may wait here when the rule says so",
     {FULL(.ms_per_call = 50), READY(.ms_per_call = 1)},
     1,
     {.queue = 1},
     {0},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"and no more than that",
     {READY(.ms_per_call = 50, .n_parallel = 4, .n_in_flight = 5), READY(.ms_per_call = 1)},
     1,
     {.queue = 1},
     {0},
     0,
     1,
     ROUTER_SPILLED},
    {"when_gone keeps what is full",
     {FULL(.ms_per_call = 50), READY(.ms_per_call = 1)},
     1,
     {.policy = ROUTER_WHEN_GONE},
     {0},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"when_gone lets go when none here lives",
     {{.life = 9}, READY(.ms_per_call = 1)},
     1,
     {.policy = ROUTER_WHEN_GONE},
     {0},
     0,
     1,
     ROUTER_SPILLED},
    {"nor one here that has failed the request",
     {READY(.ms_per_call = 1), {.life = 8, .ready = true}},
     1,
     {.policy = ROUTER_WHEN_GONE},
     {.exclude = seven, .n_exclude = 1},
     0,
     1,
     ROUTER_SPILLED},
    {"never means never",
     {{.life = 9}, READY(.ms_per_call = 1)},
     1,
     {.policy = ROUTER_NEVER},
     {0},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_KEPT_HOME},
    {"who is too far is not asked",
     {READY(.rtt_ms = 31), READY(.rtt_ms = 29)},
     2,
     {.max_rtt_ms = 30},
     {0},
     0,
     1,
     ROUTER_SPILLED},
    {"not even when nobody else is left",
     {READY(.rtt_ms = 31), {.life = 9}},
     2,
     {.max_rtt_ms = 30},
     {0},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_KEPT_HOME},
    {"the bound is no matter of those here",
     {READY(.rtt_ms = 31)},
     0,
     {.max_rtt_ms = 30},
     {0},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"one that makes the deadline there, where none here does",
     {READY(.ms_per_call = 50, .n_in_flight = 1, .n_parallel = 4, .sent_ns = MS),
      READY(.ms_per_call = 5, .rtt_ms = 2)},
     1,
     {0},
     {.now_ns = MS, .deadline_ns = 11 * MS},
     0,
     1,
     ROUTER_SPILLED},
    {"a deadline that none makes is refused",
     {READY(.ms_per_call = 50, .n_in_flight = 1, .sent_ns = MS),
      READY(.ms_per_call = 50, .n_in_flight = 1, .sent_ns = MS)},
     1,
     {0},
     {.now_ns = MS, .deadline_ns = 11 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"all have failed it, wherever they are",
     {READY(.ms_per_call = 1), READY(.ms_per_call = 1)},
     1,
     {0},
     {.exclude = seven, .n_exclude = 1},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_ALL_EXCLUDED},
};

static void router_leaves_its_site_by_the_rule(void **state)
{
    for (size_t i = 0; i < sizeof site_rows / sizeof *site_rows; i++) {
        const site_row *w = &site_rows[i];
        size_t n = 0;
        while (n < 4 && w->r[n].life) n++;
        router_view v = {.known = true,
                         .n_ready = n,
                         .n_away = w->n_away,
                         .spill = w->spill,
                         .set = w->r,
                         .peek = router_peek_array};
        router_decision d;
        int rc = router_plan(&v, &w->q, NULL, &d);
        if (rc != w->rc || first(&d) != w->index || d.why != w->why)
            fail_msg("%s: rc %d index %d why %s", w->name, rc, first(&d), router_why_name(d.why));
    }
}

/* Of many, whatever is drawn: home while it has room, away when it has none; and few are looked at. */
static void router_keeps_to_its_site_among_many(void **state)
{
    enum { HOME = 60 };
    crowd *c = make_crowd(MANY);
    c->view.n_away = MANY - HOME;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        router_decision d;
        assert_int_equal(router_plan(&c->view, &(router_request){.random = seed}, NULL, &d), 0);
        assert_true(first(&d) < HOME);
        assert_true(d.n_looked <= ROUTER_SAMPLE);
    }
    for (int i = 0; i < HOME; i++) c->r[i].n_in_flight = 1;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        router_decision d;
        assert_int_equal(router_plan(&c->view, &(router_request){.random = seed}, NULL, &d), 0);
        assert_true(first(&d) >= HOME);
        assert_int_equal(d.why, ROUTER_SPILLED);
        assert_true(d.n_looked <= ROUTER_EXACT + 2 * ROUTER_SAMPLE);
    }
    free(c);
}

/* ---- plans --------------------------------------------------------------------------------------- */

static void router_names_who_is_asked_next(void **state)
{
    router_replica r[4] = {READY(.ms_per_call = 4), READY(.ms_per_call = 2), READY(.ms_per_call = 9),
                           READY(.ms_per_call = 3)};
    router_view v = {.known = true, .n_ready = 4, .set = r, .peek = router_peek_array};
    router_choice p = {.n_steps = 3};
    router_decision d;
    assert_int_equal(router_plan(&v, &(router_request){0}, &p, &d), 0);
    assert_int_equal(d.n, 3);
    assert_int_equal(d.steps[0].place, 1);
    assert_int_equal(d.steps[1].place, 3);
    assert_int_equal(d.steps[2].place, 0);
    assert_true(d.steps[2].expected_ms == 4);
}

static void router_gives_replicas_their_turn(void **state)
{
    enum { N = 3 };
    router_replica r[N] = {READY(.ms_per_call = 1), READY(.ms_per_call = 50), READY(.ms_per_call = 9)};
    router_view v = {.known = true, .n_ready = N, .set = r, .peek = router_peek_array};
    router_choice p = {.order = ROUTER_BY_TURN};
    for (unsigned i = 0; i < 5 * N; i++) {
        router_decision d;
        assert_int_equal(router_plan(&v, &(router_request){.now_ns = (i + 1) * MS}, &p, &d), 0);
        assert_int_equal(d.steps[0].place, i % N);
        assert_int_equal(d.why, ROUTER_TURN);
        r[i % N].sent_ns = (i + 1) * MS;
    }
}

static void router_passes_over_whose_turn_would_be_too_late(void **state)
{
    router_replica r[2] = {READY(.ms_per_call = 50), READY(.ms_per_call = 1, .sent_ns = MS)};
    router_view v = {.known = true, .n_ready = 2, .set = r, .peek = router_peek_array};
    router_decision d;
    router_request q = {.now_ns = 2 * MS, .deadline_ns = 12 * MS};
    assert_int_equal(router_plan(&v, &q, &(router_choice){.order = ROUTER_BY_TURN, .n_steps = 2}, &d), 0);
    assert_int_equal(d.steps[0].place, 1);
    assert_int_equal(d.steps[1].place, 0);
    assert_int_equal(d.steps[1].why, ROUTER_LATE); /* it idles: it may be tried */
}

/* How many of N keys go elsewhere when `gone` of n replicas go. */
static unsigned moved(crowd *c, size_t gone, unsigned *ret_gone_s)
{
    enum { KEYS = 2000 };
    router_choice p = {.order = ROUTER_BY_HASH};
    uint64_t before[KEYS];
    unsigned n_moved = 0;
    router_decision d;
    for (uint64_t k = 0; k < KEYS; k++) {
        assert_int_equal(router_plan(&c->view, &(router_request){.key = k}, &p, &d), 0);
        before[k] = c->r[d.steps[0].place].life;
        assert_int_equal(d.why, ROUTER_KEPT);
    }
    c->r[gone] = c->r[c->view.n_ready - 1]; /* places change, lives do not */
    c->view.n_ready--;
    for (uint64_t k = 0; k < KEYS; k++) {
        assert_int_equal(router_plan(&c->view, &(router_request){.key = k}, &p, &d), 0);
        *ret_gone_s += before[k] == gone + 1;
        n_moved += c->r[d.steps[0].place].life != before[k];
    }
    return n_moved;
}

static void router_moves_only_the_keys_of_who_goes(void **state)
{
    static const size_t sizes[] = {5, ROUTER_EXACT, 300};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        crowd *c = make_crowd(sizes[i]);
        unsigned gone_s = 0;
        unsigned n_moved = moved(c, 3, &gone_s);
        assert_int_equal(n_moved, gone_s);
        assert_true(gone_s > 0 && gone_s < 2 * 2000 / sizes[i] + 20);
        free(c);
    }
}

static void router_spills_from_a_busy_one_and_comes_back(void **state)
{
    crowd *c = make_crowd(6);
    router_choice p = {.order = ROUTER_BY_HASH};
    router_request q = {.key = 99};
    router_decision d;
    router_plan(&c->view, &q, &p, &d);
    size_t own = d.steps[0].place;
    c->r[own].n_in_flight = ROUTER_KEPT_LOAD;
    assert_int_equal(router_plan(&c->view, &q, &p, &d), 0);
    assert_int_not_equal(d.steps[0].place, own);
    assert_int_equal(d.why, ROUTER_STEPS_IN);
    for (size_t i = 0; i < 6; i++) c->r[i].n_in_flight = ROUTER_KEPT_LOAD; /* all are: then it stays */
    assert_int_equal(router_plan(&c->view, &q, &p, &d), 0);
    assert_int_equal(d.steps[0].place, own);
    c->r[own].n_in_flight = 0;
    assert_int_equal(router_plan(&c->view, &q, &p, &d), 0);
    assert_int_equal(d.steps[0].place, own);
    assert_int_equal(d.why, ROUTER_KEPT);
    free(c);
}

/* Who computed a conversation has it, near or among many, until that life ends or it has much to do. */
static void router_goes_where_the_pages_are(void **state)
{
    static const size_t sizes[] = {3, ROUTER_EXACT, 300};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        crowd *c = make_crowd(sizes[i]);
        router_choice p = {.order = ROUTER_BY_HASH, .n_steps = 2};
        router_decision d;
        size_t n_kept = 0;
        for (size_t k = 0; k < sizes[i]; k++) c->r[k].pages = 1000 + k;
        for (uint64_t k = 0; k < 100; k++) {
            size_t there = k % sizes[i];
            router_request q = {.key = k, .pages = 1000 + there};
            assert_int_equal(router_plan(&c->view, &q, &p, &d), 0);
            assert_int_equal(d.steps[0].place, there);
            assert_int_equal(d.why, ROUTER_WARM);
            c->r[there].n_in_flight = ROUTER_KEPT_LOAD;
            assert_int_equal(router_plan(&c->view, &q, &p, &d), 0);
            assert_int_not_equal(d.steps[0].place, there);
            assert_int_equal(d.why, ROUTER_STEPS_IN);
            c->r[there].n_in_flight = 0;
            c->r[there].pages++; /* restarted: the key's own has it */
            assert_int_equal(router_plan(&c->view, &q, &p, &d), 0);
            n_kept += d.why == ROUTER_KEPT;
            c->r[there].pages--;
        }
        assert_int_equal(n_kept, 100);
        free(c);
    }
}

static void router_takes_the_thriftiest_that_tells_and_is_in_time(void **state)
{
    router_replica r[4] = {READY(.ms_per_call = 5, .energy = {3, ENERGY_CPU_TIME}), READY(.ms_per_call = 9),
                           READY(.ms_per_call = 50, .energy = {1, ENERGY_RAPL}), READY(.ms_per_call = 7)};
    router_view v = {.known = true, .n_ready = 4, .set = r, .peek = router_peek_array};
    router_choice p = {.order = ROUTER_BY_ENERGY, .n_steps = 4};
    router_request q = {.now_ns = MS};
    router_decision d;
    assert_int_equal(router_plan(&v, &q, &p, &d), 0);
    static const size_t wanted[] = {2, 0, 3, 1};
    for (size_t i = 0; i < 4; i++) assert_int_equal(d.steps[i].place, wanted[i]);
    assert_int_equal(d.why, ROUTER_FRUGAL);
    assert_int_equal(d.steps[3].why, ROUTER_LEAST_TIME);
    q.deadline_ns = 21 * MS; /* the thriftiest would be late */
    assert_int_equal(router_plan(&v, &q, &p, &d), 0);
    assert_int_equal(d.steps[0].place, 0);
    p.order = ROUTER_BY_COST; /* replicas of one model cost the same */
    assert_int_equal(router_plan(&v, &q, &p, &d), 0);
    assert_int_equal(d.steps[0].place, 0);
    assert_int_equal(d.why, ROUTER_LEAST_TIME);
}

/* Two gateways number lives as they come to know them; names are the same to both. */
static void gateways_agree_on_a_key_s_own(void **state)
{
    enum { N = 40 };
    crowd *a = make_crowd(N), *b = make_crowd(N);
    router_choice p = {.order = ROUTER_BY_HASH};
    for (size_t i = 0; i < N; i++) {
        a->r[i].name = rng_mix(i + 1);
        b->r[i].name = rng_mix(N - i);
        b->r[i].life = 1000 + i;
    }
    for (uint64_t k = 0; k < 200; k++) {
        router_decision da, db;
        assert_int_equal(router_plan(&a->view, &(router_request){.key = k}, &p, &da), 0);
        assert_int_equal(router_plan(&b->view, &(router_request){.key = k}, &p, &db), 0);
        assert_int_equal(a->r[da.steps[0].place].name, b->r[db.steps[0].place].name);
    }
    free(a);
    free(b);
}

/* ---- whatever comes --------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed = rng_mix(*seed + 1);
    return *seed % n;
}

static router_replica any_replica(uint64_t *seed, uint64_t life)
{
    return (router_replica){.life = life,
                            .name = draw(seed, 2) ? draw(seed, 8) : 0,
                            .pages = draw(seed, 6),
                            .energy = {(double)draw(seed, 9), (energy_by)draw(seed, N_ENERGIES)},
                            .identity = draw(seed, 9) ? draw(seed, 3) ? "d1" : "d2" : NULL,
                            .ready = draw(seed, 8) != 0,
                            .n_in_flight = (unsigned)draw(seed, 5),
                            .n_tokens_in_flight = (unsigned)draw(seed, 500),
                            .n_parallel = (unsigned)draw(seed, 4),
                            .n_ctx = draw(seed, 2) ? 512 : 0,
                            .ms_per_call = draw(seed, 4) ? (double)draw(seed, 300) : 0,
                            .ms_per_token = draw(seed, 2) ? (double)draw(seed, 100) / 100 : 0,
                            .ms_per_step = draw(seed, 2) ? (double)draw(seed, 100) / 10 : 0,
                            .ms_per_stream = draw(seed, 2) ? (double)draw(seed, 100) / 20 : 0,
                            .worked_ms = (double)draw(seed, 50),
                            .sent_ns = draw(seed, 3000 * MS)};
}

static bool is_listed(const uint64_t *lives, size_t n, uint64_t life)
{
    for (size_t i = 0; i < n; i++)
        if (lives[i] == life) return true;
    return false;
}

/* What holds of every plan. *ret_could: somebody may be asked who is expected to be in time. */
static void check_plan(const crowd *c, const router_request *q, const router_choice *p, int rc,
                       const router_decision *d, bool could)
{
    unsigned most = p->n_steps ? p->n_steps : 1;
    assert_string_not_equal(router_why_name(d->why), "unknown");
    assert_int_equal(rc == 0, d->n > 0);
    assert_int_equal(d->why >= ROUTER_UNKNOWN_MODEL, d->n == 0);
    assert_true(d->n <= most);
    for (size_t i = 0; i < d->n; i++) {
        const router_step *s = &d->steps[i];
        const router_replica *r = &c->r[s->place];
        bool in_time = !q->deadline_ns || q->now_ns + (uint64_t)(s->expected_ms * 1e6) <= q->deadline_ns;
        assert_true(r->ready && !is_listed(q->exclude, q->n_exclude, r->life));
        assert_true(!q->identity || (r->identity && strcmp(r->identity, q->identity) == 0));
        assert_true(s->why < ROUTER_UNKNOWN_MODEL);
        assert_true(i > 0 || in_time || !could); /* never late where somebody is in time */
        assert_true(in_time || s->why == ROUTER_LATE || s->why == ROUTER_ONLY_ONE);
        assert_true(s->why != ROUTER_WARM || (q->pages && r->pages == q->pages));
        for (size_t k = 0; k < i; k++) assert_int_not_equal(d->steps[k].place, s->place);
    }
}

static bool somebody_is_in_time(const crowd *c, const router_request *q)
{
    for (size_t i = 0; i < c->view.n_ready; i++) {
        const router_replica *r = &c->r[i];
        if (!r->ready || is_listed(q->exclude, q->n_exclude, r->life)) continue;
        if (q->identity && (!r->identity || strcmp(r->identity, q->identity) != 0)) continue;
        if (!q->deadline_ns || q->now_ns + (uint64_t)(router_expected_ms(r, q) * 1e6) < q->deadline_ns)
            return true;
    }
    return false;
}

static void every_plan_has_reasons_and_keeps_its_promises(void **state)
{
    for (uint64_t run = 0; run < 20000; run++) {
        uint64_t seed = run, gone[3];
        size_t n = draw(&seed, ROUTER_EXACT + 1);
        crowd *c = make_crowd(n);
        for (size_t i = 0; i < n; i++) c->r[i] = any_replica(&seed, i + 1);
        for (size_t i = 0; i < 3; i++) gone[i] = draw(&seed, ROUTER_EXACT) + 1;
        router_request q = {.now_ns = 3000 * MS,
                            .deadline_ns = draw(&seed, 3) ? 3000 * MS + draw(&seed, 200) * MS : 0,
                            .identity = draw(&seed, 4) ? NULL : "d2",
                            .n_tokens = (unsigned)draw(&seed, 200),
                            .n_tokens_max = (unsigned)draw(&seed, 900),
                            .exclude = gone,
                            .n_exclude = draw(&seed, 4),
                            .random = seed,
                            .key = draw(&seed, 50),
                            .pages = draw(&seed, 6)};
        router_choice p = {.order = (router_order)draw(&seed, ROUTER_N_ORDERS),
                           .n_steps = (unsigned)draw(&seed, 5)};
        router_decision d;
        int rc = router_plan(&c->view, &q, &p, &d);
        check_plan(c, &q, &p, rc, &d, somebody_is_in_time(c, &q));
        free(c);
    }
}

/* Printed, not asserted: the machine has other things to do. */
static void a_plan_over_a_thousand_replicas_costs(void **state)
{
    enum { N = 1000, PLANS = 20000 };
    crowd *c = make_crowd(N);
    for (int order = 0; order < ROUTER_N_ORDERS; order++) {
        router_choice p = {.order = (router_order)order, .n_steps = 3};
        uint64_t looked = 0;
        clock_t begun = clock();
        for (uint64_t i = 0; i < PLANS; i++) {
            router_decision d;
            assert_int_equal(router_plan(&c->view, &(router_request){.random = i, .key = i}, &p, &d), 0);
            looked += d.n_looked;
        }
        double s = (double)(clock() - begun) / CLOCKS_PER_SEC;
        print_message("%s over %d replicas: %.0f plans/s a core, %.1f looked at\n",
                      router_order_name((router_order)order), N, PLANS / s, (double)looked / PLANS);
    }
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(router_picks_by_the_table),
        cmocka_unit_test(router_names_the_capability_that_is_lacking),
        cmocka_unit_test(router_finds_the_only_capable_one_of_many),
        cmocka_unit_test(router_refuses_an_unknown_model),
        cmocka_unit_test(router_excludes_lives_not_places),
        cmocka_unit_test(router_tries_one_that_was_slow_again_one_day),
        cmocka_unit_test(router_gives_the_same_decision_twice),
        cmocka_unit_test(router_finds_the_best_of_up_to_ROUTER_EXACT),
        cmocka_unit_test(router_looks_at_no_more_than_a_few_of_many),
        cmocka_unit_test(router_spreads_calls_over_many),
        cmocka_unit_test(router_finds_the_one_of_many_with_the_file),
        cmocka_unit_test(router_leaves_its_site_by_the_rule),
        cmocka_unit_test(router_keeps_to_its_site_among_many),
        cmocka_unit_test(router_names_who_is_asked_next),
        cmocka_unit_test(router_gives_replicas_their_turn),
        cmocka_unit_test(router_passes_over_whose_turn_would_be_too_late),
        cmocka_unit_test(router_moves_only_the_keys_of_who_goes),
        cmocka_unit_test(router_spills_from_a_busy_one_and_comes_back),
        cmocka_unit_test(router_goes_where_the_pages_are),
        cmocka_unit_test(router_takes_the_thriftiest_that_tells_and_is_in_time),
        cmocka_unit_test(gateways_agree_on_a_key_s_own),
        cmocka_unit_test(every_plan_has_reasons_and_keeps_its_promises),
        cmocka_unit_test(a_plan_over_a_thousand_replicas_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
