/* Who is to poison for the deaths of workers, from what is known of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "calls/poison.h"
#include "calls/poison_list.h"

#define MS 1000000ull
#define S  (1000 * MS)

static void a_few_deaths_in_a_quiet_cluster_prove_it(void **state)
{
    poison b = {0};
    poison_row row = {0};
    uint64_t now = 1000 * S;
    for (unsigned i = 1; i <= POISON_MIN; i++, now += S) {
        assert_false(poison_is_proven(&row));
        assert_int_equal(poison_is_suspect(&row), i > POISON_ALONE);
        poison_note(&b, &row, i, now - 300 * MS, now);
    }
    assert_true(poison_is_proven(&row));
}

static void where_workers_die_anyway_they_do_not(void **state)
{
    poison b = {0};
    uint64_t now = 1000 * S;
    for (uint64_t life = 1; life <= 60; life++, now += S) { /* one a second, each with another request */
        poison_row other = {0};
        poison_note(&b, &other, life, now - 500 * MS, now);
    }
    poison_row row = {0};
    for (unsigned i = 0; i < 8; i++, now += S) {
        poison_note(&b, &row, 100 + i, now - 500 * MS, now);
        assert_false(poison_is_proven(&row));
    }
}

static void so_many_are_enough_anywhere(void **state)
{
    poison b = {0};
    poison_row row = {0};
    for (unsigned i = 0; i < POISON_MAX; i++) {
        assert_false(poison_is_proven(&row));
        poison_note(&b, &row, i + 1, 0, 100000 * S + i * S);
    }
    assert_true(poison_is_proven(&row));
}

/* So many requests that never get on, tried one at a time from the second death on, while something kills
 * their workers every gap_ms: none of them is given up before it has met POISON_MAX deaths. */
static void storm(size_t n_requests, uint64_t gap_ms, size_t n_kills)
{
    static poison_row rows[8];
    poison b = {0};
    uint64_t now = 1000 * S; /* nobody died before */
    memset(rows, 0, sizeof rows);
    for (size_t k = 0; k < n_kills; k++, now += gap_ms * MS)
        for (size_t i = 0; i < n_requests; i++) {
            bool there = k < POISON_ALONE || k % n_requests == i;
            if (there) poison_note(&b, &rows[i], k + 1, now - gap_ms * MS, now);
            if (there && rows[i].n < POISON_MAX && poison_is_proven(&rows[i]))
                fail_msg("%d requests, %d ms: request %d was blamed at kill %d, its %d-th", (int)n_requests,
                         (int)gap_ms, (int)i, (int)k, (int)rows[i].n);
        }
}

static void who_is_there_by_turns_is_not_blamed(void **state)
{
    storm(6, 500, 90);
    storm(6, 3000, 90);
    storm(2, 500, 60);
    storm(3, 100, 90);
    storm(8, 2000, 100);
}

/* Beside workers that die every two seconds without it: it is found, but it takes more deaths. */
static void a_deadly_request_is_found_in_a_bad_hour(void **state)
{
    poison b = {0};
    poison_row row = {0};
    uint64_t now = 1000 * S, life = 1;
    unsigned n = 0;
    for (; !poison_is_proven(&row) && n < POISON_MAX; n++, now += 300 * MS) {
        poison_note(&b, &row, life++, now - 50 * MS, now);
        if (n % 6 == 5) poison_note_death(&b, life++, now + 100 * MS);
    }
    assert_true(poison_is_proven(&row));
    assert_true(n < POISON_MAX / 2);
}

static void deaths_that_nobody_was_there_for_count(void **state)
{
    poison b = {0};
    poison_row row = {0};
    uint64_t now = 1000 * S;
    for (uint64_t life = 1; life <= 60; life++) poison_note_death(&b, 1000 + life, now - life * S);
    for (unsigned i = 1; i <= POISON_MIN + 3; i++, now += S) {
        poison_note(&b, &row, i, now - 500 * MS, now);
        assert_false(poison_is_proven(&row));
    }
}

static void a_death_counts_once_however_many_were_there(void **state)
{
    poison b = {0};
    poison_row mine = {0};
    for (uint64_t life = 1; life <= POISON_MIN; life++) {
        poison_note(&b, &mine, life, life * S, life * S + 100 * MS);
        for (int i = 0; i < 30; i++) {
            poison_row other = {0};
            poison_note(&b, &other, life, life * S, life * S + 100 * MS);
        }
    }
    assert_int_equal(b.n_noted, POISON_MIN);
    assert_true(poison_is_proven(&mine));
}

static call_order *order(const char *text)
{
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *list[] = {&in};
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    in.text = (char *)text;
    req.inputs = list;
    req.n_inputs = 1;
    return call_order_new(CALL_EMBED, "m", &req.base, NULL);
}

static void the_quarantine_is_bounded_and_ends(void **state)
{
    static poison_list q;
    char text[32];
    size_t n_held = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        snprintf(text, sizeof text, "text %d", (int)i);
        call_order *o = order(text);
        assert_int_equal(poison_list_until(&q, o, 1), 0);
        poison_list_add(&q, o, 100 + i);
        assert_int_equal(poison_list_until(&q, o, 1), 100 + i);
        assert_int_equal(poison_list_until(&q, o, 100 + i), 0);
        call_order_unref(o);
    }
    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof text, "text %d", i);
        call_order *o = order(text);
        n_held += poison_list_until(&q, o, 1) != 0;
        call_order_unref(o);
    }
    assert_true(n_held > 200 && n_held <= POISON_LIST_SETS * POISON_LIST_WAYS); /* the latest of them */
}

static call_order *chat(const char *text, int64_t clock, uint64_t seed)
{
    Shoal__V1__Sampling s = SHOAL__V1__SAMPLING__INIT;
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    s.temperature = 1;
    s.seed = seed;
    req.messages_json = (char *)text;
    req.clock = clock;
    req.sampling = &s;
    return call_order_new(CALL_GENERATE, "m", &req.base, NULL);
}

/* A client that sends the same again does so later, and has another seed drawn. */
static void the_same_request_is_known_at_another_time(void **state)
{
    static poison_list q;
    call_order *first = chat("[1]", 1000, 7), *again = chat("[1]", 2000, 8), *other = chat("[2]", 1000, 7);
    poison_list_add(&q, first, 100);
    assert_int_equal(poison_list_until(&q, first, 1), 100);
    assert_int_equal(poison_list_until(&q, again, 1), 100);
    assert_int_equal(poison_list_until(&q, other, 1), 0);
    call_order_unref(first);
    call_order_unref(again);
    call_order_unref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_deaths_in_a_quiet_cluster_prove_it),
        cmocka_unit_test(where_workers_die_anyway_they_do_not),
        cmocka_unit_test(so_many_are_enough_anywhere),
        cmocka_unit_test(who_is_there_by_turns_is_not_blamed),
        cmocka_unit_test(a_deadly_request_is_found_in_a_bad_hour),
        cmocka_unit_test(deaths_that_nobody_was_there_for_count),
        cmocka_unit_test(a_death_counts_once_however_many_were_there),
        cmocka_unit_test(the_quarantine_is_bounded_and_ends),
        cmocka_unit_test(the_same_request_is_known_at_another_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
