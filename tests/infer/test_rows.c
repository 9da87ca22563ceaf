/* Where the lane puts barriers: counted, and with a team that would tear rows apart if one were missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdatomic.h>

#include "infer/rows.h"

#define N_ROWS 13
#define WIDTH  32

typedef struct use_case {
    unsigned before, after; /* what happens to one matrix, then what happens next */
    bool barrier;           /* between them */
} use_case;

static const use_case cases[] = {
    {WRITE_MINE, READ_MINE, false},  {WRITE_MINE, READ_ALL, true},     {WRITE_MINE, WRITE_MINE, false},
    {WRITE_MINE, WRITE_PARTS, true}, {WRITE_PARTS, READ_MINE, true},   {WRITE_PARTS, READ_ALL, true},
    {WRITE_PARTS, WRITE_MINE, true}, {WRITE_PARTS, WRITE_PARTS, true}, {READ_MINE, READ_ALL, false},
    {READ_MINE, WRITE_MINE, false},  {READ_MINE, WRITE_PARTS, true},   {READ_ALL, READ_MINE, false},
    {READ_ALL, WRITE_MINE, true},    {READ_ALL, WRITE_PARTS, true},    {READ_ALL, READ_ALL, false},
};

static void count_barriers(void *arg, team_member *m)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lane l;
        rows r = {.n = N_ROWS};
        rows_open(&l, m, NULL);
        rows_use(&l, {&r, cases[i].before});
        unsigned first = l.barriers;
        rows_use(&l, {&r, cases[i].after});
        if (l.barriers != first + cases[i].barrier) *(atomic_size_t *)arg = i + 1;
    }
}

static void rows_wait_exactly_where_they_must(void **state)
{
    (void)state;
    shoal_err err = {0};
    team *t;
    atomic_size_t wrong = 0;
    assert_int_equal(team_new(&t, 2, ISA_SCALAR, &err), 0);
    team_run(t, count_barriers, &wrong);
    team_free(t);
    if (wrong)
        fail_msg("case %zu: %u, then %u", (size_t)wrong - 1, cases[wrong - 1].before, cases[wrong - 1].after);
}

/* A whole barrier later anything goes: what a step did before is forgotten. */
static void forget(void *arg, team_member *m)
{
    lane l;
    rows a = {.n = N_ROWS}, b = {.n = N_ROWS};
    rows_open(&l, m, NULL);
    rows_use(&l, {&a, WRITE_PARTS}, {&b, WRITE_MINE});
    rows_use(&l, {&a, READ_ALL}); /* waits, for both */
    unsigned first = l.barriers;
    rows_use(&l, {&b, READ_ALL}, {&a, READ_MINE});
    if (l.barriers != first) *(atomic_size_t *)arg = 1;
}

static void rows_share_the_barriers_of_others(void **state)
{
    (void)state;
    shoal_err err = {0};
    team *t;
    atomic_size_t wrong = 0;
    assert_int_equal(team_new(&t, 3, ISA_SCALAR, &err), 0);
    team_run(t, forget, &wrong);
    team_free(t);
    assert_int_equal(wrong, 0);
}

typedef struct relay {
    float a[N_ROWS * WIDTH], b[N_ROWS * WIDTH];
} relay;

/* By rows, then by columns, then a row from every other row, again and again: with a barrier missing some
 * member reads what is not there yet. */
static void pass_on(void *arg, team_member *m)
{
    relay *r = arg;
    lane l;
    rows a = rows_of(r->a, N_ROWS, WIDTH), b = rows_of(r->b, N_ROWS, WIDTH);
    rows_open(&l, m, NULL);
    for (int round = 0; round < 200; round++) {
        size_t t, end, c, c_end;
        rows_use(&l, {&a, READ_MINE | WRITE_MINE});
        for (rows_share(&l, &a, &t, &end); t < end; t++)
            for (size_t i = 0; i < WIDTH; i++) rows_at(&a, t)[i] += 1;
        rows_use(&l, {&a, READ_ALL}, {&b, WRITE_PARTS});
        member_share(m, WIDTH, 1, &c, &c_end);
        for (t = 0; t < N_ROWS; t++)
            for (size_t i = c; i < c_end; i++) rows_at(&b, t)[i] = rows_at(&a, N_ROWS - 1 - t)[i];
        rows_use(&l, {&b, READ_MINE}, {&a, WRITE_MINE});
        for (rows_share(&l, &b, &t, &end); t < end; t++)
            for (size_t i = 0; i < WIDTH; i++) rows_at(&a, t)[i] = rows_at(&b, t)[i] + 1;
    }
}

static void rows_arrive_whole_in_any_team(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) {
        shoal_err err = {0};
        team *t;
        static relay r;
        r = (relay){0};
        assert_int_equal(team_new(&t, n, ISA_SCALAR, &err), 0);
        team_run(t, pass_on, &r);
        team_free(t);
        for (size_t i = 0; i < N_ROWS * WIDTH; i++) assert_true(r.a[i] == 400);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_wait_exactly_where_they_must),
        cmocka_unit_test(rows_share_the_barriers_of_others),
        cmocka_unit_test(rows_arrive_whole_in_any_team),
    };
    return cmocka_run_group_tests_name("infer_rows", tests, NULL, NULL);
}
