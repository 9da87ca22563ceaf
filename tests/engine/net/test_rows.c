/* Where the lane puts barriers: counted, and with a team that would tear rows apart if one were missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdatomic.h>

#include "net/rows.h"

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

/* What each member has for itself, nobody waits for; what all read into it, they wait for once. */
static void use_own(void *arg, team_member *m)
{
    lane l;
    float memory[2 * WIDTH] = {0};
    rows own = rows_own(memory, 2, WIDTH), x = {.n = 2};
    size_t t, end;
    rows_open(&l, m, NULL);
    bool ok = rows_are_few(&l, 2) && rows_are_few(&l, FEW_ROWS) == (member_count(m) > FEW_ROWS) &&
              !rows_are_few(&l, (size_t)member_count(m)) && !rows_are_few(&l, FEW_ROWS + 1);
    rows_share(&l, &own, &t, &end);
    ok = ok && t == 0 && end == 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rows_use(&l, {&own, cases[i].before});
        rows_use(&l, {&own, cases[i].after});
    }
    ok = ok && l.barriers == 1;
    rows_use(&l, {&x, WRITE_PARTS});
    rows_use(&l, {&x, READ_ALL}, {&own, WRITE_MINE});
    ok = ok && l.barriers == 2;
    rows_use(&l, {&own, READ_ALL});
    rows_use(&l, {&x, WRITE_PARTS}); /* others may still read */
    ok = ok && l.barriers == 3;
    if (!ok) *(atomic_size_t *)arg = 1;
}

static void own_rows_are_never_waited_for(void **state)
{
    (void)state;
    for (int n = 3; n <= 6; n++) {
        shoal_err err = {0};
        team *t;
        atomic_size_t wrong = 0;
        assert_int_equal(team_new(&t, n, ISA_SCALAR, &err), 0);
        team_run(t, use_own, &wrong);
        team_free(t);
        assert_int_equal(wrong, 0);
    }
}

typedef struct product {
    acts *shared, *own[3];
    wmat *w;
    float x[WIDTH], y[WIDTH], z[WIDTH];
    atomic_size_t wrong;
} product;

/* One row, loaded by all together and by each for itself: the same product, with one barrier less. */
static void multiply(void *arg, team_member *m)
{
    product *p = arg;
    lane together, apart;
    rows x = rows_of(p->x, 1, WIDTH), x2 = x, y = rows_of(p->y, 1, WIDTH), z = rows_of(p->z, 1, WIDTH);
    rows_open(&together, m, p->shared);
    rows_use(&together, {&x, WRITE_PARTS});
    rows_load(&together, DT_Q8_0, &x);
    rows_use(&together, {&y, WRITE_PARTS});
    rows_mul(&together, p->w, &y, 0, false);
    rows_open(&apart, m, p->shared);
    apart.own = p->own[member_index(m)];
    apart.own_cols = WIDTH;
    rows_use(&apart, {&x2, WRITE_PARTS});
    rows_load(&apart, DT_Q8_0, &x2);
    rows_use(&apart, {&z, WRITE_PARTS});
    rows_mul(&apart, p->w, &z, 0, false);
    rows_load(&apart, DT_Q8_0, &x2); /* into memory that nobody else reads: at once */
    if (together.barriers != 3 || apart.barriers != 2) p->wrong = 1;
}

static void few_rows_are_loaded_without_a_barrier(void **state)
{
    (void)state;
    shoal_err err = {0};
    team *t;
    static product p;
    uint8_t packed[WIDTH * (WIDTH / 32 * 34)];
    float w[WIDTH * WIDTH];
    for (size_t i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)((i * 7919) % 101) / 50 - 1;
    for (size_t i = 0; i < WIDTH; i++) p.x[i] = (float)(i % 7) - 3;
    dtype_from_f32(DT_Q8_0, w, packed, WIDTH * WIDTH);
    assert_int_equal(wmat_new(&p.w, DT_Q8_0, WIDTH, WIDTH, packed, NULL, ISA_SCALAR, &err), 0);
    assert_int_equal(acts_new(&p.shared, 1, WIDTH, &err), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(acts_new(&p.own[i], FEW_ROWS, WIDTH, &err), 0);
    assert_int_equal(team_new(&t, 3, ISA_SCALAR, &err), 0);
    team_run(t, multiply, &p);
    team_free(t);
    assert_int_equal(p.wrong, 0);
    assert_memory_equal(p.y, p.z, sizeof p.y);
    assert_true(p.y[0] != 0);
    for (int i = 0; i < 3; i++) acts_free(p.own[i]);
    acts_free(p.shared);
    wmat_free(p.w);
}

#define MANY 7

typedef struct many {
    acts *shared, *window[3];
    wmat *w;
    float x[MANY * WIDTH], y[MANY * WIDTH], z[MANY * WIDTH];
    atomic_size_t wrong;
} many;

/* Many rows, loaded by all together and by each its own: the same product, without a barrier, until windows
 * on shares of another number of rows, or all together, want the memory. */
static void multiply_apart(void *arg, team_member *m)
{
    many *p = arg;
    lane together, apart;
    rows x = rows_of(p->x, MANY, WIDTH), x2 = x, few = rows_of(p->x, MANY - 3, WIDTH);
    rows y = rows_of(p->y, MANY, WIDTH), z = rows_of(p->z, MANY, WIDTH);
    rows_open(&together, m, p->shared);
    rows_load(&together, DT_Q8_0, &x);
    rows_use(&together, {&y, WRITE_PARTS});
    rows_mul(&together, p->w, &y, 0, false);
    team_barrier(m);
    rows_open(&apart, m, p->shared);
    apart.window = p->window[member_index(m)];
    apart.apart_rows = 2;
    bool ok = rows_stand_apart(&apart, 6) && !rows_stand_apart(&apart, 5) && !rows_stand_apart(&together, 6);
    rows_use(&apart, {&x2, WRITE_MINE});
    rows_load_apart(&apart, DT_Q8_0, &x2);
    rows_use(&apart, {&z, WRITE_MINE});
    rows_mul(&apart, p->w, &z, 0, false);
    rows_load_apart(&apart, DT_Q8_0, &x2);
    ok = ok && apart.barriers == 1;
    rows_load_apart(&apart, DT_Q8_0, &few);
    ok = ok && apart.barriers == 2;
    rows_load(&apart, DT_Q8_0, &x2);
    ok = ok && apart.barriers == 4;
    rows_use(&apart, {&z, WRITE_PARTS}, {&y, WRITE_PARTS});
    rows_mul(&apart, p->w, &z, 0, false);
    rows_load_apart(&apart, DT_Q8_0, &x2); /* others may still read what all loaded */
    ok = ok && apart.barriers == 5;
    if (!ok) p->wrong = 1;
}

static void many_rows_are_multiplied_without_a_barrier(void **state)
{
    (void)state;
    shoal_err err = {0};
    team *t;
    static many p;
    uint8_t packed[WIDTH * (WIDTH / 32 * 34)];
    float w[WIDTH * WIDTH];
    for (size_t i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)((i * 7919) % 101) / 50 - 1;
    for (size_t i = 0; i < MANY * WIDTH; i++) p.x[i] = (float)(i % 11) - 5;
    dtype_from_f32(DT_Q8_0, w, packed, WIDTH * WIDTH);
    assert_int_equal(wmat_new(&p.w, DT_Q8_0, WIDTH, WIDTH, packed, NULL, ISA_SCALAR, &err), 0);
    assert_int_equal(acts_new(&p.shared, MANY, WIDTH, &err), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(acts_new_window(&p.window[i], &err), 0);
    assert_int_equal(team_new(&t, 3, ISA_SCALAR, &err), 0);
    team_run(t, multiply_apart, &p);
    team_free(t);
    assert_int_equal(p.wrong, 0);
    assert_memory_equal(p.y, p.z, sizeof p.y);
    assert_true(p.y[0] != 0 && p.y[MANY * WIDTH - 1] != 0);
    for (int i = 0; i < 3; i++) acts_free(p.window[i]);
    acts_free(p.shared);
    wmat_free(p.w);
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
        cmocka_unit_test(own_rows_are_never_waited_for),
        cmocka_unit_test(few_rows_are_loaded_without_a_barrier),
        cmocka_unit_test(many_rows_are_multiplied_without_a_barrier),
        cmocka_unit_test(rows_arrive_whole_in_any_team),
    };
    return cmocka_run_group_tests_name("infer_rows", tests, NULL, NULL);
}
