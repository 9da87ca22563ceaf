/* Simulated time: order, restarts, and a heap that forgets nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "time/env_sim.h"

enum { N = 300 };

typedef struct mark {
    const env *e;
    env_timer *t;
    uint64_t due_ns, ran_ns;
    int n_runs, beats_left;
    int *order; /* shared */
    int at;
} mark;

static void ran(void *arg)
{
    mark *m = arg;
    m->n_runs++;
    m->ran_ns = m->e->now_ns(m->e->user);
    if (m->order) m->at = (*m->order)++;
    if (m->beats_left > 0 && m->beats_left--) m->e->timer_start(m->t, 10);
}

static void env_sim_runs_each_timer_at_its_time(void **state)
{
    env_sim *s = env_sim_new(7);
    const env *e = env_sim_env(s);
    static mark m[N];
    for (int i = 0; i < N; i++) {
        m[i] = (mark){.e = e};
        m[i].t = e->timer_new(e->user, ran, &m[i]);
        e->timer_start(m[i].t, e->random(e->user) % 1000);
    }
    for (int i = 0; i < N; i++) { /* some begin anew, some stop */
        uint64_t ms = e->random(e->user) % 1000;
        m[i].due_ns = e->now_ns(e->user) + ms * 1000000;
        e->timer_start(m[i].t, ms);
        if (i % 5 == 0) e->timer_stop(m[i].t);
    }
    env_sim_run(s, 1000);
    for (int i = 0; i < N; i++) {
        assert_int_equal(m[i].n_runs, i % 5 != 0);
        if (i % 5) assert_int_equal(m[i].ran_ns, m[i].due_ns);
        e->timer_free(m[i].t);
    }
    assert_int_equal(env_sim_timers(s), 0);
    assert_false(env_sim_step(s));
    env_sim_free(s);
}

static void env_sim_keeps_the_order_of_equal_times(void **state)
{
    env_sim *s = env_sim_new(1);
    const env *e = env_sim_env(s);
    mark m[9] = {0};
    int order = 0;
    for (int i = 0; i < 9; i++) {
        m[i] = (mark){.e = e, .order = &order};
        m[i].t = e->timer_new(e->user, ran, &m[i]);
        e->timer_start(m[i].t, 5);
    }
    e->timer_start(m[0].t, 5); /* last now */
    env_sim_run(s, 5);
    assert_int_equal(m[0].at, 8);
    for (int i = 1; i < 9; i++) assert_int_equal(m[i].at, i - 1);
    for (int i = 0; i < 9; i++) e->timer_free(m[i].t);
    env_sim_free(s);
}

static void env_sim_lets_a_timer_start_itself_again(void **state)
{
    env_sim *s = env_sim_new(1);
    const env *e = env_sim_env(s);
    mark m = {.e = e, .beats_left = 4};
    m.t = e->timer_new(e->user, ran, &m);
    uint64_t start = e->now_ns(e->user);
    e->timer_start(m.t, 10);
    env_sim_run(s, 35);
    assert_int_equal(m.n_runs, 3);
    assert_int_equal(e->now_ns(e->user) - start, 35 * 1000000);
    env_sim_run(s, 1000);
    assert_int_equal(m.n_runs, 5);
    e->timer_start(m.t, 1);
    e->timer_free(m.t);
    assert_false(env_sim_step(s));
    env_sim_free(s);
}

static void env_sim_runs_what_became_due_in_a_stall_behind_it(void **state)
{
    env_sim *s = env_sim_new(1);
    const env *e = env_sim_env(s);
    mark m = {.e = e};
    m.t = e->timer_new(e->user, ran, &m);
    int64_t date = env_wall_ns(e);
    uint64_t start = e->now_ns(e->user), heard = e->listening_ns(e->user);
    e->timer_start(m.t, 10);
    env_sim_stall(s, 500);
    assert_int_equal(m.n_runs, 0);
    assert_true(env_sim_step(s));
    assert_int_equal(m.n_runs, 1);
    assert_int_equal(e->now_ns(e->user) - start, 500 * 1000000);
    assert_true(e->listening_ns(e->user) == heard);
    assert_int_equal(env_wall_ns(e) - date, 500 * 1000000);
    env_sim_run(s, 7);
    assert_int_equal(e->listening_ns(e->user) - heard, 7 * 1000000);
    e->timer_free(m.t);
    env_sim_free(s);
}

static void env_sim_draws_the_same_for_the_same_seed(void **state)
{
    env_sim *a = env_sim_new(3), *b = env_sim_new(3), *c = env_sim_new(4);
    const env *ea = env_sim_env(a), *eb = env_sim_env(b), *ec = env_sim_env(c);
    int n_equal = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t x = ea->random(ea->user);
        assert_true(x == eb->random(eb->user));
        n_equal += x == ec->random(ec->user);
    }
    assert_int_equal(n_equal, 0);
    env_sim_free(a);
    env_sim_free(b);
    env_sim_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(env_sim_runs_each_timer_at_its_time),
        cmocka_unit_test(env_sim_keeps_the_order_of_equal_times),
        cmocka_unit_test(env_sim_lets_a_timer_start_itself_again),
        cmocka_unit_test(env_sim_runs_what_became_due_in_a_stall_behind_it),
        cmocka_unit_test(env_sim_draws_the_same_for_the_same_seed),
    };
    return cmocka_run_group_tests_name("env", tests, NULL, NULL);
}
