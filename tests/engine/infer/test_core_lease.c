/* A step that lasts lends the cores to whoever waits, at its barriers. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "infer/core_lease.h"

typedef struct scene {
    arbiter *agent, *ours, *others;
    int fd;
    atomic_int n_turns; /* that the other worker had */
    core_lease lease;
} scene;

static void scene_open(scene *s)
{
    shoal_err err;
    *s = (scene){0};
    assert_int_equal(arbiter_create(&s->agent, &s->fd, &err), 0);
    assert_int_equal(arbiter_join(&s->ours, s->fd, 1, &err), 0);
    assert_int_equal(arbiter_join(&s->others, s->fd, 2, &err), 0);
    s->lease.arbiter = s->ours;
}

static void scene_close(scene *s)
{
    arbiter_close(s->ours);
    arbiter_close(s->others);
    arbiter_close(s->agent);
    close(s->fd);
}

static void *want_once(void *arg)
{
    scene *s = arg;
    arbiter_acquire(s->others, 0, 0); /* before ours in line */
    atomic_fetch_add(&s->n_turns, 1);
    arbiter_release(s->others);
    return NULL;
}

/* Barriers until the other worker had its turn; members agree on when that is, a barrier apart. */
static void last_long(void *arg, team_member *m)
{
    scene *s = arg;
    static atomic_bool over;
    atomic_store(&over, false);
    for (bool done = false; !done;) {
        team_barrier(m);
        if (member_index(m) == 0) atomic_store(&over, atomic_load(&s->n_turns) > 0);
        team_barrier(m);
        done = atomic_load(&over);
    }
}

/* Returns false when the other worker had its turn by the end of our lease, since we stood still. */
static bool lends_the_cores(int n_members)
{
    scene s;
    team *t;
    shoal_err err;
    pthread_t other;
    scene_open(&s);
    assert_int_equal(team_new(&t, n_members, ISA_SCALAR, &err), 0);
    core_lease_watch(&s.lease, t);
    uint64_t start = core_lease_begin(&s.lease, UINT64_MAX, n_members);
    pthread_create(&other, NULL, want_once, &s);
    team_run(t, last_long, &s);
    uint64_t all = clock_ns() - s.lease.start_ns;
    bool lent = s.lease.away_ns > 0;
    if (clock_ms_since(start) < 200) assert_true(lent);
    assert_true(core_lease_end(&s.lease) <= all);
    pthread_join(other, NULL);
    arbiter_acquire(s.others, 1, 0); /* given back */
    arbiter_release(s.others);
    team_free(t);
    scene_close(&s);
    return lent;
}

static void a_long_step_lends_the_cores(void **state)
{
    (void)state;
    for (int n_members = 1; n_members <= 3; n_members++)
        while (!lends_the_cores(n_members)) {
        }
}

/* Where each member may run. */
static void note_cpus(void *arg, team_member *m)
{
    cpu_set_t *here = arg;
    sched_getaffinity(0, sizeof *here, &here[member_index(m)]);
}

/* On a machine whose first two cores have a cache each, two workers get one each, and their threads stay there; both
 * cores together are no domain's. */
static void a_team_goes_to_the_domain_of_its_cores(void **state)
{
    (void)state;
    shoal_err err;
    scene s;
    team *t;
    cpu_set_t all, here[2] = {0};
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (!CPU_ISSET(0, &all) || !CPU_ISSET(1, &all)) skip();
    setenv("SHOAL_CORE_DOMAINS", "0;1", 1);
    scene_open(&s);
    assert_int_equal(team_new(&t, 2, ISA_SCALAR, &err), 0);
    core_lease_watch(&s.lease, t);
    arbiter_acquire(s.others, 0, 1);
    core_lease_begin(&s.lease, 1, 1);
    assert_false(CPU_EQUAL(arbiter_cpus(s.ours), arbiter_cpus(s.others)));
    team_run(t, note_cpus, here);
    for (int i = 0; i < 2; i++) assert_true(CPU_EQUAL(&here[i], arbiter_cpus(s.ours)));
    arbiter_release(s.others);
    core_lease_end(&s.lease);
    core_lease_begin(&s.lease, 1, 2);
    team_run(t, note_cpus, here);
    for (int i = 0; i < 2; i++) assert_true(CPU_EQUAL(&here[i], &all));
    core_lease_end(&s.lease);
    sched_setaffinity(0, sizeof all, &all);
    team_free(t);
    scene_close(&s);
    unsetenv("SHOAL_CORE_DOMAINS");
}

static void count(void *arg, team_member *m)
{
    team_barrier(m);
    if (member_index(m) == 0) ++*(int *)arg;
}

static void without_an_arbiter_there_is_nobody_to_lend_to(void **state)
{
    (void)state;
    shoal_err err;
    core_lease none = {0};
    team *t;
    int n = 0;
    assert_int_equal(team_new(&t, 2, ISA_SCALAR, &err), 0);
    core_lease_watch(&none, t);
    assert_true(core_lease_begin(&none, 0, 2) > 0);
    team_run(t, count, &n);
    core_lease_end(&none);
    assert_int_equal(n, 1);
    assert_int_equal(none.away_ns, 0);
    team_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_step_lends_the_cores),
        cmocka_unit_test(a_team_goes_to_the_domain_of_its_cores),
        cmocka_unit_test(without_an_arbiter_there_is_nobody_to_lend_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
