/* The team, its barriers and shares, and the choice of an instruction set. */
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

typedef struct tally {
    int seen[64];
    int n;
    _Atomic int arrived;
    bool early; /* somebody passed a barrier before all had arrived */
} tally;

static void count_me(void *arg, team_member *m)
{
    tally *t = arg;
    t->seen[member_index(m)]++;
    if (member_index(m) == 0) t->n = member_count(m);
}

static void every_member_runs_once_a_run(void **state)
{
    for (int n = 1; n <= 8; n++) {
        team *t = new_team(n, ISA_SCALAR);
        tally seen = {.n = 0};
        for (int i = 0; i < 200; i++) {
            team_run(t, count_me, &seen);
            if (i % 50 == 0) usleep(500); /* let them fall asleep now and then */
        }
        for (int i = 0; i < 8; i++) assert_int_equal(seen.seen[i], i < n ? 200 : 0);
        assert_int_equal(seen.n, n);
        assert_int_equal(team_size(t), n);
        assert_int_equal(team_isa(t), ISA_SCALAR);
        team_free(t);
    }
}

static void meet_often(void *arg, team_member *m)
{
    tally *t = arg;
    for (int round = 1; round <= 100; round++) {
        atomic_fetch_add(&t->arrived, 1);
        team_barrier(m);
        if (atomic_load(&t->arrived) < round * member_count(m)) t->early = true;
        team_barrier(m);
    }
}

static void barriers_hold_everybody(void **state)
{
    for (int n = 1; n <= 8; n++) {
        team *t = new_team(n, ISA_SCALAR);
        tally seen = {.early = false};
        for (int i = 0; i < 5; i++) {
            atomic_store(&seen.arrived, 0);
            team_run(t, meet_often, &seen);
        }
        assert_false(seen.early);
        team_free(t);
    }
}

/* Each waits for nobody, as often as it likes, and has all the work. */
static void go_alone(void *arg, team_member *m)
{
    tally *t = arg;
    team_member *one = member_alone(m);
    size_t begin, end;
    for (int i = 0; i < 10 * member_index(m); i++) team_barrier(one);
    member_share(one, 100, 7, &begin, &end);
    if (begin != 0 || end != 100 || member_index(one) != 0 || member_count(one) != 1) t->early = true;
    if (member_vec(one) != member_vec(m)) t->early = true;
    team_barrier(m);
}

static void a_member_is_a_team_by_itself(void **state)
{
    for (int n = 1; n <= 5; n++) {
        team *t = new_team(n, ISA_SCALAR);
        tally seen = {.early = false};
        team_run(t, go_alone, &seen);
        assert_false(seen.early);
        team_free(t);
    }
}

/* Of eight members so many as were asked for, whatever the runs before had; the others do nothing. */
static void a_run_takes_as_many_members_as_are_asked_for(void **state)
{
    static const int sizes[] = {8, 2, 1, 3, 8, 1, 4, 0, 5, 99, 2};
    team *t = new_team(8, ISA_SCALAR);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            int n = sizes[i] < 1 ? 1 : sizes[i] > 8 ? 8 : sizes[i];
            tally seen = {.n = 0}, met = {.early = false};
            team_use(t, sizes[i]);
            assert_int_equal(team_size(t), n);
            team_run(t, count_me, &seen);
            team_run(t, meet_often, &met);
            assert_int_equal(seen.n, n);
            for (int m = 0; m < 8; m++) assert_int_equal(seen.seen[m], m < n);
            assert_int_equal(met.arrived, 100 * n);
            assert_false(met.early);
            if (round % 5 == 0) usleep(300);
        }
    }
    team_free(t);
}

static void interrupt(void *user)
{
    ++*(int *)user;
}

/* Member 0 alone, once a barrier, and in teams of one, too. */
static void a_step_can_be_interrupted_at_its_barriers(void **state)
{
    for (int n = 1; n <= 3; n++) {
        team *t = new_team(n, ISA_SCALAR);
        tally seen = {.early = false};
        int n_calls = 0;
        team_at_barriers(t, interrupt, &n_calls);
        team_run(t, meet_often, &seen);
        assert_int_equal(n_calls, 200);
        team_at_barriers(t, NULL, NULL);
        atomic_store(&seen.arrived, 0);
        team_run(t, meet_often, &seen);
        assert_int_equal(n_calls, 200);
        assert_false(seen.early);
        team_free(t);
    }
}

typedef struct cover {
    size_t n, grain;
    unsigned char hit[1000];
    bool ragged;
} cover;

static void mark_share(void *arg, team_member *m)
{
    cover *c = arg;
    size_t begin, end;
    member_share(m, c->n, c->grain, &begin, &end);
    if (begin % c->grain != 0 && begin != c->n) c->ragged = true;
    for (size_t i = begin; i < end; i++) c->hit[i]++;
}

static void shares_cover_everything_once(void **state)
{
    for (int n = 1; n <= 5; n++) {
        team *t = new_team(n, ISA_SCALAR);
        for (size_t items = 0; items < 200; items += 13) {
            for (size_t grain = 1; grain < 40; grain += 6) {
                cover c = {.n = items, .grain = grain};
                team_run(t, mark_share, &c);
                for (size_t i = 0; i < sizeof c.hit; i++) assert_int_equal(c.hit[i], i < items);
                assert_false(c.ragged);
            }
        }
        team_free(t);
    }
}

static void teams_start_and_stop_many_times(void **state)
{
    for (int i = 0; i < 100; i++) {
        team *t = new_team(1 + i % 4, ISA_SCALAR);
        tally seen = {.n = 0};
        if (i % 3) team_run(t, count_me, &seen);
        for (int m = 0; m < 4; m++) assert_int_equal(seen.seen[m], i % 3 && m < 1 + i % 4);
        team_free(t);
    }
    team_free(NULL);
}

static void absurd_teams_are_refused(void **state)
{
    team *t = NULL;
    shoal_err err;
    assert_int_equal(team_new(&t, 0, ISA_SCALAR, &err), SHOAL_EINVALID);
    assert_int_equal(team_new(&t, 65, ISA_SCALAR, &err), SHOAL_EINVALID);
    assert_null(t);
}

static void the_environment_forces_an_instruction_set(void **state)
{
    isa set = ISA_COUNT;
    shoal_err err;
    setenv("SHOAL_ISA", "scalar", 1);
    assert_int_equal(isa_choose(&set, &err), 0);
    assert_int_equal(set, ISA_SCALAR);
    setenv("SHOAL_ISA", "sse9", 1);
    assert_int_equal(isa_choose(&set, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "sse9"));
    for (isa i = 0; i < ISA_COUNT; i++)
        if (isa_built(i)) assert_non_null(strstr(err.message, isa_name(i)));
    for (isa i = 0; i < ISA_COUNT; i++) {
        setenv("SHOAL_ISA", isa_name(i), 1);
        assert_int_equal(isa_choose(&set, &err), isa_usable(i) ? 0 : SHOAL_EUNSUPPORTED);
    }
    unsetenv("SHOAL_ISA");
    assert_int_equal(isa_choose(&set, &err), 0);
    assert_true(isa_usable(set));
    for (isa i = set + 1; i < ISA_COUNT; i++) assert_false(isa_usable(i));
}

int main(void)
{
    unsetenv("SHOAL_ISA");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_runs_once_a_run),
        cmocka_unit_test(barriers_hold_everybody),
        cmocka_unit_test(a_member_is_a_team_by_itself),
        cmocka_unit_test(a_run_takes_as_many_members_as_are_asked_for),
        cmocka_unit_test(a_step_can_be_interrupted_at_its_barriers),
        cmocka_unit_test(shares_cover_everything_once),
        cmocka_unit_test(teams_start_and_stop_many_times),
        cmocka_unit_test(absurd_teams_are_refused),
        cmocka_unit_test(the_environment_forces_an_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
