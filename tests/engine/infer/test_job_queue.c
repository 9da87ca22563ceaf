/* Who goes first of those that wait: the one that is due first, and nobody waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "infer/job_queue.h"

#define MS 1000000ull

static void put(job_queue *q, job *j, uint64_t id, uint64_t submit_ms, uint64_t deadline_ms, job_class c)
{
    *j = (job){
        .id = id, .submit_ns = submit_ms * MS, .deadline_ns = deadline_ms * MS, .class = c, .n_tokens = 10};
    j->due_ns = job_queue_due_ns(j->submit_ns, j->deadline_ns, c);
    job_queue_push(q, j);
}

static void expect(job_queue *q, const uint64_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        job *j = job_queue_pop(q);
        assert_non_null(j);
        assert_int_equal(j->id, ids[i]);
    }
    assert_null(q->head);
    assert_null(q->tail);
    assert_int_equal(atomic_load(&q->n), 0);
    assert_int_equal(q->n_tokens, 0);
}

static void equals_stand_in_the_order_they_came(void **state)
{
    job_queue q = {0};
    job j[4];
    for (uint64_t i = 0; i < 4; i++) put(&q, &j[i], i, 100, 0, JOB_INTERACTIVE);
    expect(&q, (const uint64_t[]){0, 1, 2, 3}, 4);
    for (uint64_t i = 0; i < 4; i++)
        put(&q, &j[i], i, 100 + i, 60000, JOB_INTERACTIVE); /* far deadlines change nothing */
    expect(&q, (const uint64_t[]){0, 1, 2, 3}, 4);
}

static void who_is_due_first_goes_first(void **state)
{
    job_queue q = {0};
    job j[5];
    put(&q, &j[0], 0, 0, 0, JOB_BATCH);
    put(&q, &j[1], 1, 1, 0, JOB_INTERACTIVE);
    put(&q, &j[2], 2, 2, 0, JOB_REALTIME);
    put(&q, &j[3], 3, 3, 50, JOB_INTERACTIVE); /* a near deadline is more than a class */
    put(&q, &j[4], 4, 4, 0, JOB_REALTIME);
    assert_int_equal(job_queue_tokens_before(&q, j[4].due_ns - 1), 20);
    assert_int_equal(job_queue_tokens_before(&q, UINT64_MAX), 50);
    expect(&q, (const uint64_t[]){3, 2, 4, 1, 0}, 5);
}

static void whoever_had_its_turn_stands_behind_those_who_wait(void **state)
{
    job_queue q = {0};
    job j[4];
    put(&q, &j[0], 0, 0, 0, JOB_INTERACTIVE);
    put(&q, &j[1], 1, 1, 0, JOB_INTERACTIVE);
    job *first = job_queue_pop(&q);
    job_queue_push_back(&q, first);
    put(&q, &j[2], 2, 2, 0, JOB_INTERACTIVE); /* came later than both */
    put(&q, &j[3], 3, 3, 0, JOB_REALTIME);
    expect(&q, (const uint64_t[]){3, 1, 0, 2}, 4);
}

/* One call of batch work, and urgent ones that come faster than they are served: it is served within its
 * patience and what was due before it, whatever comes. */
static void nobody_starves(void **state)
{
    enum { N = 20000, SERVED_MS = 20 };
    job_queue q = {0};
    job *jobs = calloc(N + 1, sizeof *jobs);
    uint64_t now = 0, served_ms = 0, worst_ms = 0, due_ms = 30000;
    size_t n_put = 0;
    put(&q, &jobs[N], N, 0, 0, JOB_BATCH);
    while (served_ms == 0 && n_put < N) {
        for (int i = 0; i < 3 && n_put < N; i++, n_put++) put(&q, &jobs[n_put], n_put, now, 0, JOB_REALTIME);
        job *j = job_queue_pop(&q);
        now += SERVED_MS;
        if (j->id == N) served_ms = now;
        uint64_t waited = now - j->submit_ns / MS;
        if (waited > worst_ms) worst_ms = waited;
    }
    assert_true(served_ms > 0);
    assert_true(served_ms <= due_ms * 3 + 1000); /* three come for one that is served */
    free(jobs);
}

/* Whatever comes in, whatever leaves: counts and tail stay true, and of the fresh ones none is passed. */
static void a_queue_stays_whole(void **state)
{
    enum { N = 200 };
    for (uint64_t run = 0; run < 300; run++) {
        job_queue q = {0};
        job jobs[N];
        size_t n = 0;
        for (uint64_t i = 0; i < N; i++) {
            uint64_t seed = rng_mix(run * 1000 + i);
            put(&q, &jobs[i], i, i, seed % 3 ? i + seed % 500 + 1 : 0,
                (job_class)(seed >> 20) % JOB_N_CLASSES);
            n++;
            if (seed % 4 == 0) {
                job_queue_take(&q, q.head);
                n--;
            }
            assert_int_equal(atomic_load(&q.n), n);
        }
        uint64_t last = 0;
        for (job *j; (j = job_queue_pop(&q)); n--) {
            assert_true(j->due_ns >= last);
            last = j->due_ns;
        }
        assert_int_equal(n, 0);
        assert_null(q.tail);
    }
}

static void waits_are_counted_between_turns_as_well(void **state)
{
    job_queue q = {0};
    job j[3];
    assert_int_equal(job_queue_longest_ns(&q, 1000 * MS), 0);
    for (uint64_t i = 0; i < 3; i++) put(&q, &j[i], i, 0, 0, JOB_INTERACTIVE);
    j[0].queued_ns = 900 * MS;
    j[1].queued_ns = 950 * MS;
    j[1].waited_ns = 400 * MS; /* it has run before */
    j[2].queued_ns = 1001 * MS;
    assert_int_equal(job_queue_longest_ns(&q, 1000 * MS), 450 * MS);
    atomic_store(&j[1].paused, true);
    assert_int_equal(job_queue_longest_ns(&q, 1000 * MS), 100 * MS);
    j[0].over = true;
    assert_int_equal(job_queue_longest_ns(&q, 1000 * MS), 0);
}

static void what_is_no_class_is_interactive(void **state)
{
    assert_int_equal(job_class_of(JOB_BATCH), JOB_BATCH);
    assert_int_equal(job_class_of(-1), JOB_INTERACTIVE);
    assert_int_equal(job_class_of(77), JOB_INTERACTIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_stand_in_the_order_they_came),
        cmocka_unit_test(who_is_due_first_goes_first),
        cmocka_unit_test(whoever_had_its_turn_stands_behind_those_who_wait),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(a_queue_stays_whole),
        cmocka_unit_test(waits_are_counted_between_turns_as_well),
        cmocka_unit_test(what_is_no_class_is_interactive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
