#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "router/router.h"

#define MS 1000000ull

/* One row: a view of up to four replicas, a request, and what must come out. */
typedef struct row {
    const char *name;
    router_replica r[4];
    router_request q;
    int rc, index;
    router_why why;
} row;

#define READY(...)                                               \
    {                                                            \
        .model = "m", .digest = "d1", .ready = true, __VA_ARGS__ \
    }

static const row rows[] = {
    {"unknown model is refused by name",
     {READY(.n_in_flight = 0)},
     {.model = "other"},
     SHOAL_ENOTFOUND,
     -1,
     ROUTER_UNKNOWN_MODEL},
    {"no replica at all is an unknown model",
     {{0}},
     {.model = "m"},
     SHOAL_ENOTFOUND,
     -1,
     ROUTER_UNKNOWN_MODEL},
    {"starting replica is not used",
     {{.model = "m"}},
     {.model = "m"},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_NONE_READY},
    {"draining replica is skipped",
     {READY(.draining = true), READY(.n_in_flight = 9)},
     {.model = "m"},
     0,
     1,
     ROUTER_ONLY_ONE},
    {"only draining replicas left",
     {READY(.draining = true)},
     {.model = "m"},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_NONE_READY},
    {"another model's replica is skipped",
     {{.model = "x", .ready = true}, READY(.n_in_flight = 3)},
     {.model = "m"},
     0,
     1,
     ROUTER_ONLY_ONE},
    {"equal replicas: the lowest place",
     {READY(.ms_per_call = 2), READY(.ms_per_call = 2)},
     {.model = "m"},
     0,
     0,
     ROUTER_LEAST_TIME},
    {"the shorter queue wins",
     {READY(.ms_per_call = 2, .n_in_flight = 2), READY(.ms_per_call = 2, .n_in_flight = 1)},
     {.model = "m"},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"a fast busy machine beats a slow idle one",
     {READY(.ms_per_call = 20), READY(.ms_per_call = 2, .n_in_flight = 3)},
     {.model = "m"},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"tokens in flight count too",
     {READY(.ms_per_call = 2, .ms_per_token = 1, .n_tokens_in_flight = 5), READY(.ms_per_call = 2)},
     {.model = "m"},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"unmeasured replicas go by load",
     {READY(.n_in_flight = 1), READY(.n_in_flight = 0)},
     {.model = "m"},
     0,
     1,
     ROUTER_LEAST_TIME},
    {"batch width divides the wait",
     {READY(.ms_per_call = 100, .n_in_flight = 8, .n_parallel = 16),
      READY(.ms_per_call = 100, .n_in_flight = 2, .n_parallel = 1)},
     {.model = "m", .n_tokens = 100},
     0,
     0,
     ROUTER_LEAST_TIME},
    {"excluded replica is not tried again",
     {READY(.ms_per_call = 1), READY(.ms_per_call = 9)},
     {.model = "m", .exclude = 1},
     0,
     1,
     ROUTER_ONLY_ONE},
    {"all excluded",
     {READY(.ms_per_call = 1), READY(.ms_per_call = 9)},
     {.model = "m", .exclude = 3},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_ALL_EXCLUDED},
    {"deadline that can be met",
     {READY(.ms_per_call = 5)},
     {.model = "m", .now_ns = MS, .deadline_ns = 7 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"deadline that cannot be met",
     {READY(.ms_per_call = 5, .n_in_flight = 1, .sent_ns = MS)},
     {.model = "m", .now_ns = MS, .deadline_ns = 7 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"what was done of the work ahead is not waited for",
     {READY(.ms_per_call = 5, .n_in_flight = 1, .worked_ms = 4.5, .sent_ns = MS)},
     {.model = "m", .now_ns = MS, .deadline_ns = 7 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"an idle replica is tried, whatever the estimate says",
     {READY(.ms_per_call = 900, .ms_per_token = 9, .sent_ns = MS)},
     {.model = "m", .n_tokens = 100, .now_ns = MS, .deadline_ns = 2 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a busy one is tried once a second",
     {READY(.ms_per_call = 900, .n_in_flight = 3, .sent_ns = MS)},
     {.model = "m", .now_ns = MS + ROUTER_PROBE_MS * MS, .deadline_ns = 2 * MS + ROUTER_PROBE_MS * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a short request is not refused for what a long one costs",
     {READY(.ms_per_call = 1, .ms_per_token = 1, .n_in_flight = 1, .n_tokens_in_flight = 2, .sent_ns = MS)},
     {.model = "m", .n_tokens = 2, .now_ns = MS, .deadline_ns = 10 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a long one is",
     {READY(.ms_per_call = 1, .ms_per_token = 1, .n_in_flight = 1, .n_tokens_in_flight = 2, .sent_ns = MS)},
     {.model = "m", .n_tokens = 2000, .now_ns = MS, .deadline_ns = 10 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"a prompt that may be over the context is for the worker to refuse",
     {READY(.ms_per_token = 1, .n_in_flight = 1, .n_ctx = 512, .sent_ns = MS)},
     {.model = "m", .n_tokens = 2000, .n_tokens_max = 8000, .now_ns = MS, .deadline_ns = 10 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"deadline in the past",
     {READY(.n_in_flight = 0)},
     {.model = "m", .now_ns = 9 * MS, .deadline_ns = 7 * MS},
     SHOAL_EDEADLINE,
     -1,
     ROUTER_DEADLINE},
    {"cold replica is tried under a deadline",
     {READY(.n_in_flight = 4)},
     {.model = "m", .now_ns = MS, .deadline_ns = 2 * MS},
     0,
     0,
     ROUTER_ONLY_ONE},
    {"a replay needs the same file",
     {READY(.n_in_flight = 0), {.model = "m", .digest = "d2", .ready = true}},
     {.model = "m", .digest = "d2"},
     0,
     1,
     ROUTER_ONLY_ONE},
    {"a replay does not go to an undescribed replica",
     {{.model = "m", .ready = true}},
     {.model = "m", .digest = "d2"},
     SHOAL_EUNAVAILABLE,
     -1,
     ROUTER_NONE_READY},
};

static void router_picks_by_the_table(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *w = &rows[i];
        size_t n = 0;
        while (n < 4 && w->r[n].model) n++;
        router_view v = {.replicas = w->r, .n_replicas = n};
        router_decision d;
        int rc = router_pick(&v, &w->q, &d);
        if (rc != w->rc || d.index != w->index || d.why != w->why)
            fail_msg("%s: rc %d index %d why %s", w->name, rc, d.index, router_why_name(d.why));
    }
}

static void router_gives_the_same_decision_twice(void **state)
{
    router_replica r[2] = {READY(.ms_per_call = 3), READY(.ms_per_call = 2, .n_in_flight = 1)};
    router_view v = {r, 2};
    router_request q = {.model = "m", .now_ns = 5, .deadline_ns = 100 * MS};
    router_decision a, b;
    assert_int_equal(router_pick(&v, &q, &a), router_pick(&v, &q, &b));
    assert_memory_equal(&a, &b, sizeof a);
}

static void router_masks_only_the_places_it_can_name(void **state)
{
    router_replica r[ROUTER_EXCLUDE_MAX + 1];
    for (size_t i = 0; i <= ROUTER_EXCLUDE_MAX; i++) r[i] = (router_replica)READY(.ms_per_call = 1);
    router_view v = {r, ROUTER_EXCLUDE_MAX + 1};
    router_request q = {.model = "m", .exclude = UINT64_MAX};
    router_decision d;
    assert_int_equal(router_pick(&v, &q, &d), 0);
    assert_int_equal(d.index, ROUTER_EXCLUDE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(router_picks_by_the_table),
        cmocka_unit_test(router_gives_the_same_decision_twice),
        cmocka_unit_test(router_masks_only_the_places_it_can_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
