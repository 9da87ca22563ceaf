/* The place of a network's matrices: what a team packs into it is what one thread packs anywhere. */
#include <math.h>

#include "check.h"
#include "compute/weights.h"

enum { COLS = 768 }; /* a multiple of every block */

static uint8_t *draw_rows(dtype t, size_t rows, uint64_t seed, size_t *ret_row_bytes)
{
    *ret_row_bytes = COLS / dtype_block(t) * dtype_block_bytes(t);
    float *f = draw_floats(seed, rows * COLS, 0.5f);
    uint8_t *w = malloc(rows * *ret_row_bytes);
    dtype_from_f32(t, f, w, rows * COLS);
    free(f);
    return w;
}

static void assert_rows(const wmat *m, size_t first, dtype t, const uint8_t *src, size_t rows)
{
    float want[COLS], got[COLS];
    for (size_t r = 0; r < rows; r++) {
        dtype_to_f32(t, src + r * (COLS / dtype_block(t) * dtype_block_bytes(t)), want, COLS);
        wmat_row(m, first + r, got);
        assert_same_bits(got, want, COLS, dtype_name(t));
    }
}

/* Parts whose borders lie inside panels, from places of their own. */
static void parts_are_joined_whatever_the_team(void **state)
{
    static const size_t rows[] = {37, 5, 70};
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        team *t = new_team(n_threads, ISA_SCALAR);
        weights *home;
        assert_int_equal(weights_new(&home, t, 1 << 20, NULL), 0);
        for (int k = 0; k < DT_COUNT; k++) {
            wmat_part parts[3];
            uint8_t *src[3];
            size_t row_bytes;
            wmat *m;
            for (size_t i = 0; i < 3; i++) {
                src[i] = draw_rows((dtype)k, rows[i], 100 + i, &row_bytes);
                parts[i] = (wmat_part){src[i], rows[i], NULL};
            }
            assert_int_equal(
                wmat_join(&m, home, (uint64_t)k, (dtype)k, parts, 3, COLS, NULL, ISA_SCALAR, NULL), 0);
            for (size_t i = 0, at = 0; i < 3; at += rows[i++]) assert_rows(m, at, (dtype)k, src[i], rows[i]);
            wmat_free(m);
            for (size_t i = 0; i < 3; i++) free(src[i]);
        }
        assert_int_equal(weights_count(home), DT_COUNT);
        weights_free(home);
        team_free(t);
    }
}

/* Without an estimate, and over it: every matrix has its place, none overlaps another, all begin on lines. */
static void what_was_not_foreseen_finds_room(void **state)
{
    static const size_t foreseen[] = {0, 1, 100000};
    size_t row_bytes;
    uint8_t *src = draw_rows(DT_Q8_0, 500, 7, &row_bytes);
    for (size_t f = 0; f < 3; f++) {
        weights *home;
        wmat *m[150];
        assert_int_equal(weights_new(&home, NULL, foreseen[f], NULL), 0);
        for (size_t i = 0; i < 150; i++) {
            wmat_part part = {src + i % 3 * row_bytes, 450 + i % 40, NULL};
            assert_int_equal(wmat_join(&m[i], home, i, DT_Q8_0, &part, 1, COLS, NULL, ISA_SCALAR, NULL), 0);
        }
        for (size_t i = 0; i < 150; i++) {
            const weights_item *it = weights_at(home, i);
            assert_true(it->name == i && (uintptr_t)it->codes % 64 == 0 && (uintptr_t)it->scales % 64 == 0);
            assert_true(it->codes_bytes + it->scales_bytes <= wmat_packed_bytes(DT_Q8_0, it->rows, COLS));
            if (i % size_step() == 0) assert_rows(m[i], 0, DT_Q8_0, src + i % 3 * row_bytes, 450 + i % 40);
            wmat_free(m[i]);
        }
        weights_free(home);
    }
    free(src);
}

static void absurd_sizes_are_refused(void **state)
{
    weights *home;
    wmat *m = NULL;
    float one = 1;
    assert_int_equal(weights_new(&home, NULL, SIZE_MAX, NULL), SHOAL_ENOMEM);
    assert_int_equal(weights_new(&home, NULL, 0, NULL), 0);
    wmat_part most[] = {{&one, SIZE_MAX, NULL}, {&one, 2, NULL}};
    assert_int_equal(wmat_join(&m, home, 0, DT_F32, most, 2, 1, NULL, ISA_SCALAR, NULL), SHOAL_ENOMEM);
    most[0].rows = SIZE_MAX / 8;
    assert_int_equal(wmat_join(&m, home, 0, DT_F32, most, 1, 4096, NULL, ISA_SCALAR, NULL), SHOAL_ENOMEM);
    bool packed;
    assert_int_equal(weights_place(home, &(weights_item){.codes_bytes = SIZE_MAX - 70}, &packed, NULL),
                     SHOAL_ENOMEM);
    assert_int_equal(
        weights_place(home, &(weights_item){.codes_bytes = 64, .scales_bytes = SIZE_MAX - 64}, &packed, NULL),
        SHOAL_ENOMEM);
    assert_true(wmat_packed_bytes(DT_F32, SIZE_MAX / 8, 4096) == SIZE_MAX);
    assert_int_equal(weights_count(home), 0);
    assert_null(m);
    weights_free(home);
}

/* What was packed once is found again, as far as the order is the same; what follows is packed. */
static void what_is_given_is_not_packed_again(void **state)
{
    size_t row_bytes;
    uint8_t *src = draw_rows(DT_Q4_K, 48, 9, &row_bytes), *other = draw_rows(DT_Q4_K, 48, 10, &row_bytes);
    weights *first, *second;
    wmat *m;
    memcpy(other + 47 * row_bytes, src + 47 * row_bytes, row_bytes);
    assert_int_equal(weights_new(&first, NULL, 0, NULL), 0);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(
            wmat_join(&m, first, i, DT_Q4_K, &(wmat_part){src, 48, NULL}, 1, COLS, NULL, ISA_SCALAR, NULL),
            0);
        wmat_free(m);
    }
    assert_int_equal(weights_fresh(first), 4);
    assert_int_equal(weights_new(&second, NULL, 0, NULL), 0);
    weights_give(second, weights_at(first, 0), 4);
    for (uint64_t i = 0; i < 4; i++) { /* the third has another name; the fourth is right, but behind it */
        assert_int_equal(wmat_join(&m, second, i == 2 ? 7 : i, DT_Q4_K, &(wmat_part){other, 48, NULL}, 1,
                                   COLS, NULL, ISA_SCALAR, NULL),
                         0);
        assert_rows(m, 0, DT_Q4_K, i < 2 ? src : other, 48);
        wmat_free(m);
    }
    assert_int_equal(weights_fresh(second), 2);
    assert_true(weights_bytes(second) == weights_bytes(first));
    weights_free(second);
    weights_free(first);
    free(src);
    free(other);
}

/* What has the right names and sides and another last row is of rows that were made otherwise. */
static void other_rows_are_packed_again(void **state)
{
    size_t row_bytes;
    uint8_t *src = draw_rows(DT_Q8_0, 48, 9, &row_bytes), *other = draw_rows(DT_Q8_0, 48, 10, &row_bytes);
    weights *first, *second;
    wmat *m;
    assert_int_equal(weights_new(&first, NULL, 0, NULL), 0);
    for (uint64_t i = 0; i < 3; i++) {
        const wmat_part parts[2] = {{src, 30, NULL}, {i == 1 ? other : src, 18, NULL}};
        assert_int_equal(wmat_join(&m, first, i, DT_Q8_0, parts, 2, COLS, NULL, ISA_SCALAR, NULL), 0);
        wmat_free(m);
    }
    assert_int_equal(weights_new(&second, NULL, 0, NULL), 0);
    weights_give(second, weights_at(first, 0), 3);
    for (uint64_t i = 0; i < 3; i++) {
        const wmat_part parts[2] = {{src, 30, NULL}, {src, 18, NULL}};
        assert_int_equal(wmat_join(&m, second, i, DT_Q8_0, parts, 2, COLS, NULL, ISA_SCALAR, NULL), 0);
        assert_rows(m, 0, DT_Q8_0, src, 30);
        assert_rows(m, 30, DT_Q8_0, src, 18);
        assert_int_equal(weights_fresh(second), i);
        wmat_free(m);
    }
    assert_int_equal(weights_count(second), 3);
    assert_true(weights_at(second, 1)->codes != weights_at(first, 1)->codes);
    weights_free(second);
    weights_free(first);
    free(src);
    free(other);
}

static void write_halves(dtype to, const float *values, void *dst, size_t n)
{
    dtype_from_f32(to, values, dst, n);
}

/* Rows of several types, whatever the team, become one matrix; what is no number is refused. */
static void rows_are_turned(void **state)
{
    static const wmat_turn from_q8 = {DT_Q8_0, write_halves}, from_f32 = {DT_F32, write_halves};
    size_t row_bytes;
    uint8_t *q8 = draw_rows(DT_Q8_0, 20, 3, &row_bytes), want[2 * COLS];
    float *f32 = malloc(17 * COLS * sizeof *f32), values[COLS], got[COLS];
    for (size_t i = 0; i < 17 * COLS; i++) f32[i] = (float)(i % 97) - 40;
    const wmat_part parts[2] = {{q8, 20, &from_q8}, {f32, 17, &from_f32}};
    for (int n = 0; n < 4; n++) {
        team *t = NULL;
        weights *home = NULL;
        wmat *m;
        shoal_err err;
        if (n) assert_int_equal(team_new(&t, n, ISA_SCALAR, NULL), 0);
        assert_int_equal(weights_new(&home, t, 0, NULL), 0);
        f32[5] = 1;
        assert_int_equal(wmat_join(&m, home, 1, DT_S8_64, parts, 2, COLS, NULL, ISA_SCALAR, &err), 0);
        for (size_t r = 0; r < 37; r++) {
            const void *src = r < 20 ? (void *)(q8 + r * row_bytes) : (void *)(f32 + (r - 20) * COLS);
            dtype_to_f32(r < 20 ? DT_Q8_0 : DT_F32, src, values, COLS);
            dtype_from_f32(DT_S8_64, values, want, COLS);
            dtype_to_f32(DT_S8_64, want, values, COLS);
            wmat_row(m, r, got);
            assert_memory_equal(got, values, sizeof got);
        }
        wmat_free(m);
        const float bad[] = {NAN, INFINITY, 1e10f}; /* the last has no F16 scale */
        for (size_t i = 0; i < 3; i++) {
            f32[5] = bad[i];
            assert_int_equal(wmat_join(&m, home, 2, DT_S8_64, parts, 2, COLS, NULL, ISA_SCALAR, &err),
                             SHOAL_EFORMAT);
        }
        weights_free(home);
        team_free(t);
    }
    free(f32);
    free(q8);
}

static void layouts_have_a_digest(void **state)
{
    sha256_digest a, b;
    assert_int_equal(weights_layout(ISA_SCALAR, &a, NULL), 0);
    assert_int_equal(weights_layout(ISA_SCALAR, &b, NULL), 0);
    assert_memory_equal(&a, &b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_joined_whatever_the_team),
        cmocka_unit_test(what_was_not_foreseen_finds_room),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(what_is_given_is_not_packed_again),
        cmocka_unit_test(other_rows_are_packed_again),
        cmocka_unit_test(rows_are_turned),
        cmocka_unit_test(layouts_have_a_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
