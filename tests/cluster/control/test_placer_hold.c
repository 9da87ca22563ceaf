/* Replicas that leave stay until others answer, by tables of who answers and who may keep them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/placement/placer_hold.h"

typedef struct known { /* machines, a letter each */
    const char *answer, *stay;
} known;

static bool answers(const void *user, const placer_assignment *a)
{
    return strchr(((const known *)user)->answer, *a->node) != NULL;
}

static bool may_stay(const void *user, const placer_assignment *a)
{
    return strchr(((const known *)user)->stay, *a->node) != NULL;
}

/* Replicas of one model, each on the machine of that letter. */
static size_t fill(placer_assignment *ret, const char *machines)
{
    size_t n = strlen(machines);
    for (size_t i = 0; i < n; i++) ret[i] = (placer_assignment){.model = 1, .node = {machines[i]}};
    return n;
}

/* The machines whose replicas are held. */
static const char *held(placer_assignment *next, size_t n_next, const placer_assignment *was, size_t n_was,
                        const known *k)
{
    static char text[16];
    size_t n = placer_hold(next, n_next, n_next, was, n_was, &(placer_hold_rules){k, answers, may_stay});
    assert_true(n >= n_next && n - n_next < sizeof text);
    memset(text, 0, sizeof text);
    for (size_t i = n_next; i < n; i++) {
        assert_true(next[i].held);
        text[i - n_next] = *next[i].node;
    }
    return text;
}

static void who_leaves_stays_until_all_others_answer(void **state)
{
    static const struct {
        const char *was, *next;
        known k;
        const char *held;
    } rows[] = {
        {"a", "a", {"a", "a"}, ""},     /* nothing moves */
        {"a", "b", {"a", "a"}, "a"},    /* b does not answer yet */
        {"a", "b", {"ab", "a"}, ""},    /* it does */
        {"a", "bc", {"ab", "a"}, "a"},  /* only one of the new ones does */
        {"a", "b", {"a", "b"}, ""},     /* its machine is gone, or was removed */
        {"a", "", {"a", "a"}, "a"},     /* there is nowhere to go */
        {"aa", "ab", {"a", "ab"}, "a"}, /* one of two on a machine */
        {"ab", "cd", {"", "ab"}, "ab"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        placer_assignment was[4], next[8];
        size_t n_was = fill(was, rows[i].was), n = fill(next, rows[i].next);
        const char *got = held(next, n, was, n_was, &rows[i].k);
        if (strcmp(got, rows[i].held) != 0) fail_msg("row %zu holds '%s'", i, got);
    }
}

static void another_models_replica_replaces_nobody(void **state)
{
    placer_assignment was[1], next[2];
    fill(was, "a");
    fill(next, "b");
    next[0].model = 2;
    assert_string_equal(held(next, 1, was, 1, &(known){"ab", "a"}), "a");
}

static void a_standby_replaces_nobody(void **state)
{
    placer_assignment was[1], next[2];
    fill(was, "a");
    fill(next, "b");
    next[0].standby = true;
    assert_string_equal(held(next, 1, was, 1, &(known){"ab", "a"}), "a");
}

/* A chain of stages replaces a whole model only once it is in use. */
static void stages_replace_a_whole_model_when_they_are_used(void **state)
{
    placer_assignment was[1], next[2];
    fill(was, "a");
    fill(next, "b");
    next[0].end = 4;
    assert_string_equal(held(next, 1, was, 1, &(known){"ab", "a"}), "a");
    next[0].in_use = true;
    assert_string_equal(held(next, 1, was, 1, &(known){"ab", "a"}), "");
}

static void stages_of_the_last_plan_are_left_to_others(void **state)
{
    placer_assignment was[1], next[2];
    fill(was, "a");
    was[0].end = 4;
    assert_string_equal(held(next, 0, was, 1, &(known){"a", "a"}), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_stays_until_all_others_answer),
        cmocka_unit_test(another_models_replica_replaces_nobody),
        cmocka_unit_test(a_standby_replaces_nobody),
        cmocka_unit_test(stages_replace_a_whole_model_when_they_are_used),
        cmocka_unit_test(stages_of_the_last_plan_are_left_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
