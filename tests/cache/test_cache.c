#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cache/cache.h"
#include "base/sha256.h"

static sha256_digest key(unsigned i)
{
    sha256_digest d;
    sha256_of(&i, sizeof i, &d);
    return d;
}

/* What a waiter was told. */
typedef struct told {
    int n;
    cache_outcome outcome;
    int status;
    char data[64];
    cache_ticket *leave_on_turn; /* another waiter's ticket, to leave from inside */
} told;

static void on_turn(void *user, cache_outcome o, const cache_value *v)
{
    told *t = user;
    t->n++;
    t->outcome = o;
    if (v) {
        t->status = v->status;
        snprintf(t->data, sizeof t->data, "%s", v->data);
    }
    cache_leave(t->leave_on_turn);
}

static cache *make(size_t bytes, uint64_t ttl_ns)
{
    cache *c = NULL;
    assert_int_equal(cache_new(&c, bytes, ttl_ns, NULL), 0);
    return c;
}

static cache_outcome look(cache *c, unsigned i, uint64_t now, told *t, cache_ticket **ticket)
{
    sha256_digest k = key(i);
    const cache_value *v;
    cache_outcome o = cache_lookup(c, &k, now, on_turn, t, ticket, &v);
    cache_value_unref(v);
    return o;
}

static void put(cache *c, unsigned i, const char *s, size_t n, uint64_t now)
{
    cache_ticket *t;
    assert_int_equal(look(c, i, now, NULL, &t), CACHE_LEAD);
    cache_fill(t, s, n, now);
}

static bool has(cache *c, unsigned i, uint64_t now)
{
    cache_ticket *t;
    cache_outcome o = look(c, i, now, NULL, &t);
    if (o == CACHE_LEAD) cache_leave(t);
    return o == CACHE_HIT;
}

static void filled_answer_is_found(void **state)
{
    cache *c = make(1 << 16, 0);
    put(c, 1, "one", 3, 0);
    sha256_digest k = key(1);
    cache_ticket *t;
    const cache_value *v;
    assert_int_equal(cache_lookup(c, &k, 5, on_turn, NULL, &t, &v), CACHE_HIT);
    assert_string_equal(v->data, "one");
    assert_null(t);
    cache_free(c); /* the reference outlives the cache */
    assert_string_equal(v->data, "one");
    cache_value_unref(v);
}

static void least_recently_used_goes_first(void **state)
{
    char data[1000] = {0};
    cache *c = make(3600, 0); /* room for three of them */
    put(c, 1, data, sizeof data, 0);
    put(c, 2, data, sizeof data, 0);
    put(c, 3, data, sizeof data, 0);
    assert_true(has(c, 1, 0)); /* now 2 is the oldest */
    put(c, 4, data, sizeof data, 0);
    assert_true(has(c, 1, 0));
    assert_false(has(c, 2, 0));
    assert_true(has(c, 3, 0));
    assert_true(has(c, 4, 0));
    cache_free(c);
}

static void bytes_stay_under_the_bound(void **state)
{
    cache *c = make(10000, 0);
    char data[700] = {0};
    cache_stats s;
    for (unsigned i = 0; i < 1000; i++) {
        put(c, i, data, i % sizeof data, 0);
        cache_get_stats(c, &s);
        assert_true(s.n_bytes <= 10000);
    }
    assert_int_equal(s.n_entries + s.n_evicted, 1000);
    cache_free(c);
}

static void overhead_counts_for_empty_answers(void **state)
{
    cache *c = make(4096, 0);
    for (unsigned i = 0; i < 1000; i++) put(c, i, "", 0, 0);
    cache_stats s;
    cache_get_stats(c, &s);
    assert_true(s.n_entries < 64);
    cache_free(c);
}

static void table_grows_and_still_finds(void **state)
{
    cache *c = make(1 << 22, 0);
    for (unsigned i = 0; i < 5000; i++) put(c, i, (char *)&i, sizeof i, 0);
    for (unsigned i = 0; i < 5000; i++) assert_true(has(c, i, 0));
    cache_free(c);
}

static void answer_dies_after_its_time(void **state)
{
    cache *c = make(1 << 16, 100);
    put(c, 1, "x", 1, 50);
    assert_true(has(c, 1, 149));
    assert_false(has(c, 1, 150));
    cache_stats s;
    cache_get_stats(c, &s);
    assert_int_equal(s.n_expired, 1);
    assert_int_equal(s.n_bytes, 0);
    cache_free(c);
}

static void too_large_answer_is_shared_but_not_kept(void **state)
{
    cache *c = make(200, 0);
    char data[300] = "big";
    told w = {0};
    cache_ticket *lead, *wait;
    assert_int_equal(look(c, 1, 0, NULL, &lead), CACHE_LEAD);
    assert_int_equal(look(c, 1, 0, &w, &wait), CACHE_JOIN);
    cache_fill(lead, data, sizeof data, 0);
    assert_int_equal(w.outcome, CACHE_HIT);
    assert_false(has(c, 1, 0));
    cache_free(c);
}

static void identical_requests_share_one_computation(void **state)
{
    cache *c = make(1 << 16, 0);
    told w[3] = {0};
    cache_ticket *lead, *t[3];
    assert_int_equal(look(c, 7, 0, NULL, &lead), CACHE_LEAD);
    for (int i = 0; i < 3; i++) assert_int_equal(look(c, 7, 0, &w[i], &t[i]), CACHE_JOIN);
    cache_leave(t[1]);
    cache_fill(lead, "seven", 5, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w[i].n, i == 1 ? 0 : 1);
        if (i != 1) assert_string_equal(w[i].data, "seven");
    }
    cache_stats s;
    cache_get_stats(c, &s);
    assert_int_equal(s.n_misses, 1);
    assert_int_equal(s.n_shared, 3);
    assert_int_equal(s.n_in_flight, 0);
    cache_free(c);
}

static void first_waiter_is_promoted_when_the_leader_leaves(void **state)
{
    cache *c = make(1 << 16, 0);
    told a = {0}, b = {0};
    cache_ticket *lead, *ta, *tb;
    look(c, 7, 0, NULL, &lead);
    look(c, 7, 0, &a, &ta);
    look(c, 7, 0, &b, &tb);
    cache_leave(lead);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.outcome, CACHE_LEAD);
    assert_int_equal(b.n, 0);
    cache_fill(ta, "late", 4, 0);
    assert_int_equal(a.n, 1);
    assert_string_equal(b.data, "late");
    assert_true(has(c, 7, 0));
    cache_free(c);
}

static void nothing_is_left_when_all_leave(void **state)
{
    cache *c = make(1 << 16, 0);
    told a = {0};
    cache_ticket *lead, *ta;
    look(c, 7, 0, NULL, &lead);
    look(c, 7, 0, &a, &ta);
    cache_leave(lead);
    cache_leave(ta);
    cache_stats s;
    cache_get_stats(c, &s);
    assert_int_equal(s.n_in_flight, 0);
    assert_int_equal(s.n_promoted, 1);
    cache_free(c);
}

static void failure_reaches_all_waiters_and_is_not_kept(void **state)
{
    cache *c = make(1 << 16, 0);
    told a = {0}, b = {0};
    cache_ticket *lead, *ta, *tb;
    look(c, 7, 0, NULL, &lead);
    look(c, 7, 0, &a, &ta);
    look(c, 7, 0, &b, &tb);
    cache_fail(lead, 429, "full", 4);
    assert_int_equal(a.outcome, CACHE_FAILED);
    assert_int_equal(a.status, 429);
    assert_string_equal(b.data, "full");
    assert_false(has(c, 7, 0));
    cache_free(c);
}

static void waiter_may_send_another_away_from_its_turn(void **state)
{
    cache *c = make(1 << 16, 0);
    told a = {0}, b = {0};
    cache_ticket *lead, *ta, *tb;
    look(c, 7, 0, NULL, &lead);
    look(c, 7, 0, &a, &ta);
    look(c, 7, 0, &b, &tb);
    a.leave_on_turn = tb;
    cache_fill(lead, "x", 1, 0);
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 0);
    cache_free(c);
}

static void zero_bytes_still_shares_work(void **state)
{
    cache *c = make(0, 0);
    told a = {0};
    cache_ticket *lead, *ta;
    look(c, 7, 0, NULL, &lead);
    assert_int_equal(look(c, 7, 0, &a, &ta), CACHE_JOIN);
    cache_fill(lead, "x", 1, 0);
    assert_string_equal(a.data, "x");
    assert_false(has(c, 7, 0));
    cache_free(c);
}

static void null_tickets_are_harmless(void **state)
{
    cache_fill(NULL, "x", 1, 0);
    cache_fail(NULL, 500, "x", 1);
    cache_leave(NULL);
    cache_value_unref(NULL);
    cache_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filled_answer_is_found),
        cmocka_unit_test(least_recently_used_goes_first),
        cmocka_unit_test(bytes_stay_under_the_bound),
        cmocka_unit_test(overhead_counts_for_empty_answers),
        cmocka_unit_test(table_grows_and_still_finds),
        cmocka_unit_test(answer_dies_after_its_time),
        cmocka_unit_test(too_large_answer_is_shared_but_not_kept),
        cmocka_unit_test(identical_requests_share_one_computation),
        cmocka_unit_test(first_waiter_is_promoted_when_the_leader_leaves),
        cmocka_unit_test(nothing_is_left_when_all_leave),
        cmocka_unit_test(failure_reaches_all_waiters_and_is_not_kept),
        cmocka_unit_test(waiter_may_send_another_away_from_its_turn),
        cmocka_unit_test(zero_bytes_still_shares_work),
        cmocka_unit_test(null_tickets_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
