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
    cache_options o = {.max_bytes = bytes, .ttl_ns = ttl_ns};
    assert_int_equal(cache_new(&c, &o, NULL), 0);
    return c;
}

static cache_outcome look(cache *c, unsigned i, uint64_t now, told *t, cache_ticket **ticket)
{
    sha256_digest k = key(i);
    cache_found f;
    cache_outcome o = cache_lookup(c, &(cache_ask){.key = &k}, now, on_turn, t, &f);
    *ticket = f.ticket;
    cache_value_unref(f.value);
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
    cache_found f;
    assert_int_equal(cache_lookup(c, &(cache_ask){.key = &k}, 5, on_turn, NULL, &f), CACHE_HIT);
    assert_string_equal(f.value->data, "one");
    assert_int_equal(f.age_ns, 5);
    assert_null(f.ticket);
    cache_free(c); /* the reference outlives the cache */
    assert_string_equal(f.value->data, "one");
    cache_value_unref(f.value);
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
    cache_fail(lead, 429, "full", 4, true, 0); /* no negative_ttl_ns */
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

static void refused_again_without_computing(void **state)
{
    cache *c = NULL;
    cache_options o = {.max_bytes = 1 << 16, .ttl_ns = 1000, .negative_ttl_ns = 10};
    sha256_digest k = key(1);
    cache_found f;
    cache_ticket *t;
    assert_int_equal(cache_new(&c, &o, NULL), 0);
    look(c, 1, 0, NULL, &t);
    cache_fail(t, 400, "too long", 8, true, 0);
    look(c, 2, 0, NULL, &t);
    cache_fail(t, 503, "nobody", 6, false, 0);
    assert_int_equal(cache_lookup(c, &(cache_ask){.key = &k}, 9, on_turn, NULL, &f), CACHE_HIT);
    assert_int_equal(f.value->status, 400);
    assert_string_equal(f.value->data, "too long");
    cache_value_unref(f.value);
    assert_null(cache_peek(c, &k, 9));
    assert_false(has(c, 1, 10)); /* its own, shorter time */
    assert_false(has(c, 2, 0));
    cache_free(c);
}

/* ---- stale answers ------------------------------------------------------------------------------- */

static cache_outcome look_stale(cache *c, unsigned i, uint64_t now, cache_found *f)
{
    sha256_digest k = key(i);
    cache_outcome o = cache_lookup(c, &(cache_ask){.key = &k, .takes_stale = true}, now, on_turn, NULL, f);
    cache_value_unref(f->value);
    return o;
}

static cache_outcome refresh(cache *c, unsigned i, uint64_t now, cache_ticket **ticket)
{
    sha256_digest k = key(i);
    cache_found f;
    cache_outcome o = cache_lookup(c, &(cache_ask){.key = &k, .refresh = true}, now, on_turn, NULL, &f);
    *ticket = f.ticket;
    return o;
}

static cache *make_stale(void)
{
    cache *c = NULL;
    cache_options o = {.max_bytes = 1 << 16, .ttl_ns = 100, .stale_ns = 50};
    assert_int_equal(cache_new(&c, &o, NULL), 0);
    return c;
}

static void stale_answer_asks_one_to_make_it_anew(void **state)
{
    cache *c = make_stale();
    cache_found f;
    cache_ticket *lead, *other;
    put(c, 1, "old", 3, 0);
    assert_int_equal(look_stale(c, 1, 99, &f), CACHE_HIT);
    assert_int_equal(look_stale(c, 1, 100, &f), CACHE_STALE);
    assert_true(f.refresh);
    assert_int_equal(look_stale(c, 1, 101, &f), CACHE_STALE);
    assert_false(f.refresh); /* asked of the first already */
    assert_int_equal(refresh(c, 1, 101, &lead), CACHE_LEAD);
    assert_int_equal(refresh(c, 1, 101, &other), CACHE_NONE);
    assert_int_equal(look_stale(c, 1, 102, &f), CACHE_STALE); /* and it is not waited for */
    cache_fill(lead, "new", 3, 110);
    assert_int_equal(look_stale(c, 1, 200, &f), CACHE_HIT);
    cache_free(c);
}

static void stale_answer_ends(void **state)
{
    cache *c = make_stale();
    cache_found f;
    cache_ticket *t;
    put(c, 1, "old", 3, 0);
    assert_int_equal(look(c, 1, 120, NULL, &t), CACHE_LEAD); /* who does not take stale ones computes, */
    cache_leave(t);
    assert_int_equal(look_stale(c, 1, 149, &f), CACHE_STALE); /* and takes nothing from those who do */
    assert_int_equal(look_stale(c, 1, 150, &f), CACHE_LEAD);
    cache_leave(f.ticket);
    cache_free(c);
}

static void wish_for_a_fresh_one_is_repeated_when_none_comes(void **state)
{
    cache *c = NULL;
    cache_options o = {.max_bytes = 1 << 16, .ttl_ns = 100, .stale_ns = 10ull * CACHE_RETRY_NS};
    cache_found f;
    cache_ticket *t;
    assert_int_equal(cache_new(&c, &o, NULL), 0);
    put(c, 1, "old", 3, 0);
    look_stale(c, 1, 100, &f);
    assert_int_equal(refresh(c, 1, 100, &t), CACHE_LEAD);
    cache_leave(t);
    look_stale(c, 1, 99 + CACHE_RETRY_NS, &f);
    assert_false(f.refresh);
    look_stale(c, 1, 100 + CACHE_RETRY_NS, &f);
    assert_true(f.refresh);
    cache_free(c);
}

static void age_may_be_limited(void **state)
{
    cache *c = make(1 << 16, 1000);
    sha256_digest k = key(1);
    cache_found f;
    put(c, 1, "x", 1, 100);
    cache_ask a = {.key = &k, .limits_age = true, .max_age_ns = 20, .only_kept = true};
    assert_int_equal(cache_lookup(c, &a, 120, on_turn, NULL, &f), CACHE_HIT);
    cache_value_unref(f.value);
    assert_int_equal(cache_lookup(c, &a, 121, on_turn, NULL, &f), CACHE_NONE);
    assert_true(has(c, 1, 121));
    cache_free(c);
}

/* ---- tags ---------------------------------------------------------------------------------------- */

static told nobody;

static cache_outcome look_tagged(cache *c, unsigned i, const char *a, const char *b, cache_ticket **ticket)
{
    const char *names[2] = {a, b};
    sha256_digest k = key(i);
    cache_found f;
    cache_ask ask = {.key = &k, .tags = names, .n_tags = b ? 2 : 1};
    cache_outcome o = cache_lookup(c, &ask, 0, on_turn, &nobody, &f);
    *ticket = f.ticket;
    cache_value_unref(f.value);
    return o;
}

static void put_tagged(cache *c, unsigned i, const char *a, const char *b)
{
    cache_ticket *t;
    assert_int_equal(look_tagged(c, i, a, b, &t), CACHE_LEAD);
    assert_true(cache_fill(t, "x", 1, 0));
}

static size_t purge(cache *c, const char *a, const char *b)
{
    const char *names[2] = {a, b};
    return cache_purge(c, names, a ? b ? 2 : 1 : 0);
}

static void purge_takes_what_has_all_its_tags(void **state)
{
    cache *c = make(1 << 16, 0);
    put_tagged(c, 1, "model:a", "tag:kitchen");
    put_tagged(c, 2, "model:a", "tag:hall");
    put_tagged(c, 3, "model:b", "tag:kitchen");
    assert_int_equal(purge(c, "model:a", "tag:kitchen"), 1);
    assert_false(has(c, 1, 0));
    assert_int_equal(purge(c, "model:none", NULL), 0);
    assert_int_equal(purge(c, "model:a", NULL), 1);
    assert_true(has(c, 3, 0));
    assert_int_equal(purge(c, NULL, NULL), 1);
    cache_stats s;
    cache_get_stats(c, &s);
    assert_int_equal(s.n_purged, 3);
    assert_int_equal(s.n_bytes, 0);
    assert_int_equal(s.n_tags, 0);
    cache_free(c);
}

static void purged_flight_is_heard_but_neither_kept_nor_joined(void **state)
{
    cache *c = make(1 << 16, 0);
    told w = {0};
    cache_ticket *lead, *wait, *later;
    look_tagged(c, 1, "model:a", NULL, &lead);
    assert_int_equal(look(c, 1, 0, &w, &wait), CACHE_JOIN);
    assert_int_equal(purge(c, "model:a", NULL), 0);
    assert_int_equal(look(c, 1, 0, NULL, &later), CACHE_LEAD);
    assert_false(cache_fill(lead, "before", 6, 0));
    assert_string_equal(w.data, "before");
    cache_stats s;
    cache_get_stats(c, &s);
    assert_int_equal(s.n_entries, 0);
    cache_fill(later, "after", 5, 0);
    assert_true(has(c, 1, 0));
    cache_free(c);
}

static void purge_of_everything_grounds_what_flies(void **state)
{
    cache *c = make(1 << 16, 0);
    cache_ticket *lead;
    look(c, 1, 0, NULL, &lead);
    purge(c, NULL, NULL);
    purge(c, NULL, NULL);
    cache_fill(lead, "x", 1, 0);
    assert_false(has(c, 1, 0));
    cache_free(c);
}

static void answer_has_the_tags_of_all_it_answered(void **state)
{
    cache *c = make(1 << 16, 0);
    cache_ticket *lead, *wait, *t;
    look_tagged(c, 1, "tag:first", NULL, &lead);
    look_tagged(c, 1, "tag:joined", NULL, &wait);
    cache_fill(lead, "x", 1, 0);
    assert_int_equal(look_tagged(c, 1, "tag:later", NULL, &t), CACHE_HIT);
    put_tagged(c, 2, "tag:later", NULL);
    assert_int_equal(purge(c, "tag:joined", "tag:later"), 1);
    assert_int_equal(purge(c, "tag:later", NULL), 1);
    cache_free(c);
}

static void answer_with_too_many_tags_is_not_kept(void **state)
{
    cache *c = make(1 << 16, 0);
    cache_ticket *t;
    char name[32];
    put_tagged(c, 1, "tag:0", NULL);
    for (int i = 1; i < 64; i++) {
        snprintf(name, sizeof name, "tag:%d", i);
        assert_int_equal(look_tagged(c, 1, name, NULL, &t), CACHE_HIT);
    }
    assert_true(has(c, 1, 0));
    assert_int_equal(look_tagged(c, 1, "tag:64", NULL, &t), CACHE_HIT); /* it still has the answer */
    assert_false(has(c, 1, 0));
    cache_free(c);
}

static void tags_count_against_the_bound(void **state)
{
    cache *c = make(20000, 0);
    cache_stats s;
    for (unsigned i = 0; i < 3000; i++) {
        char a[64], b[64];
        cache_ticket *t;
        snprintf(a, sizeof a, "tag:%u", i);
        snprintf(b, sizeof b, "tag:%u", i % 7);
        look_tagged(c, i % 300, a, b, &t);
        if (t) cache_fill(t, "x", 1, 0);
        cache_get_stats(c, &s);
        assert_true(s.n_bytes <= 20000);
        assert_true(s.n_tags < 400);
    }
    assert_true(s.n_evicted > 0);
    purge(c, NULL, NULL);
    cache_get_stats(c, &s);
    assert_int_equal(s.n_bytes, 0);
    cache_free(c);
}

static void passed_answer_is_heard_and_not_kept(void **state)
{
    cache *c = make(1 << 16, 0);
    told w = {0};
    cache_ticket *lead, *wait;
    look(c, 1, 0, NULL, &lead);
    look(c, 1, 0, &w, &wait);
    cache_pass(lead, "other", 5);
    assert_string_equal(w.data, "other");
    assert_false(has(c, 1, 0));
    cache_free(c);
}

static void on_drop(void *user, const sha256_digest *k)
{
    sha256_digest one = key(1);
    *(int *)user += memcmp(k, &one, sizeof one) == 0 ? 1 : 100;
}

static void those_that_go_are_told(void **state)
{
    cache *c = make(1 << 16, 10);
    int n = 0;
    cache_on_drop(c, on_drop, &n);
    put(c, 1, "x", 1, 0);
    put_tagged(c, 2, "a", NULL);
    assert_false(has(c, 1, 10));
    assert_int_equal(n, 1);
    purge(c, "a", NULL);
    assert_int_equal(n, 101);
    cache_free(c);
}

static void null_tickets_are_harmless(void **state)
{
    cache_fill(NULL, "x", 1, 0);
    cache_fail(NULL, 500, "x", 1, false, 0);
    cache_pass(NULL, "x", 1);
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
        cmocka_unit_test(refused_again_without_computing),
        cmocka_unit_test(stale_answer_asks_one_to_make_it_anew),
        cmocka_unit_test(stale_answer_ends),
        cmocka_unit_test(wish_for_a_fresh_one_is_repeated_when_none_comes),
        cmocka_unit_test(age_may_be_limited),
        cmocka_unit_test(purge_takes_what_has_all_its_tags),
        cmocka_unit_test(purged_flight_is_heard_but_neither_kept_nor_joined),
        cmocka_unit_test(purge_of_everything_grounds_what_flies),
        cmocka_unit_test(answer_has_the_tags_of_all_it_answered),
        cmocka_unit_test(answer_with_too_many_tags_is_not_kept),
        cmocka_unit_test(tags_count_against_the_bound),
        cmocka_unit_test(passed_answer_is_heard_and_not_kept),
        cmocka_unit_test(those_that_go_are_told),
        cmocka_unit_test(null_tickets_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
