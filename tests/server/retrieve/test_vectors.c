/* The exact search: the same as a plain loop over floats of the same codes, for any team, any filter, any
 * deletions. */
#include "check.h"

#include "base/clock.h"
#include "retrieve/vectors.h"

enum { D = 48, DOCUMENTS = 900, K = 17 };

typedef struct row {
    int64_t document;
    uint32_t ordinal;
    int8_t codes[D];
    float scale;
    bool gone;
} row;

static row *rows;
static size_t n_rows;

static vectors *fill(void)
{
    vectors *v = vectors_new(D);
    rows = calloc(40000, sizeof *rows);
    n_rows = 0;
    for (int64_t id = 1; id <= DOCUMENTS; id++) {
        size_t n = (size_t)(rng_uniform(1, (uint64_t)id) * 60), first = n_rows; /* also none at all */
        int8_t *codes = calloc(n + 1, D);
        float *scales = calloc(n + 1, sizeof *scales);
        for (size_t i = 0; i < n; i++) {
            row *r = &rows[n_rows++];
            *r = (row){.document = id * 3, .ordinal = (uint32_t)i};
            for (size_t k = 0; k < D; k++)
                r->codes[k] = (int8_t)(rng_uniform(2, (first + i) * D + k) * 9 - 4);
            r->scale = scales[i] = i % 4 ? 0.25f : 0.5f; /* many equal scores */
            memcpy(codes + i * D, r->codes, D);
        }
        assert_int_equal(vectors_add(v, id * 3, codes, scales, n), 0);
        free(codes);
        free(scales);
    }
    return v;
}

static bool is_in(const int64_t *only, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (only[i] == id) return true;
    return false;
}

/* The k best of all rows, one after the other. */
static size_t slowly(const nearest_ask *a, found *out)
{
    size_t n = 0;
    for (size_t i = 0; i < n_rows; i++) {
        const row *r = &rows[i];
        if (r->gone || (a->filtered && !is_in(a->only, a->n_only, r->document))) continue;
        int32_t dot = 0;
        for (size_t k = 0; k < D; k++) dot += r->codes[k] * a->codes[k];
        found x = {
            .document = r->document, .ordinal = r->ordinal, .cosine = (float)dot * (a->scale * r->scale)};
        size_t at = n;
        while (at > 0 && x.cosine > out[at - 1].cosine) at--; /* equal ones stay behind earlier rows */
        if (at >= K) continue;
        if (n < K) n++;
        memmove(out + at + 1, out + at, (n - 1 - at) * sizeof *out);
        out[at] = x;
    }
    return n;
}

static void compare(const vectors *v, team *t, const nearest_ask *a)
{
    found want[K + 1], got[K];
    size_t n = slowly(a, want);
    assert_int_equal(vectors_nearest(v, t, t ? team_isa(t) : ISA_SCALAR, a, got, K), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(got[i].document, want[i].document);
        assert_int_equal(got[i].ordinal, want[i].ordinal);
        assert_memory_equal(&got[i].cosine, &want[i].cosine, sizeof(float));
        assert_int_equal(got[i].by_meaning, i + 1);
    }
}

static void the_nearest_are_those_of_a_plain_loop(void **state)
{
    shoal_err err = {0};
    isa set;
    team *teams[3] = {NULL};
    vectors *v = fill();
    int64_t only[] = {3, 6, 300, 301, 999, 2700, 9999};
    assert_int_equal(isa_choose(&set, &err), 0);
    for (int i = 1; i < 3; i++) assert_int_equal(team_new(&teams[i], 2 * i - 1 + i / 2, set, &err), 0);
    assert_int_equal(vectors_rows(v), n_rows);
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < 3; i++) {
            nearest_ask a = {.codes = rows[1000 * round].codes, .scale = 0.125f};
            compare(v, teams[i], &a);
            a.filtered = true;
            compare(v, teams[i], &a); /* nothing passes */
            a.only = only;
            a.n_only = sizeof only / sizeof *only;
            compare(v, teams[i], &a);
        }
        for (int64_t id = 3 + round * 3; id <= DOCUMENTS * 3; id += 21) {
            assert_true(vectors_drop(v, id));
            assert_false(vectors_drop(v, id));
            for (size_t i = 0; i < n_rows; i++) rows[i].gone |= rows[i].document == id;
        }
    }
    assert_false(vectors_drop(v, 4));
    assert_true(vectors_dead(v) > 0 && vectors_dead(v) + vectors_rows(v) == n_rows);
    for (int i = 0; i < 3; i++) team_free(teams[i]);
    vectors_free(v);
    free(rows);
}

static void an_empty_collection_has_no_neighbours(void **state)
{
    int8_t codes[D] = {1};
    found out[K];
    vectors *v = vectors_new(D);
    nearest_ask a = {.codes = codes, .scale = 1};
    assert_int_equal(vectors_nearest(v, NULL, ISA_SCALAR, &a, out, K), 0);
    assert_int_equal(vectors_add(v, 1, codes, &a.scale, 1), 0);
    assert_int_equal(vectors_nearest(v, NULL, ISA_SCALAR, &a, out, 0), 0);
    assert_int_equal(vectors_nearest(v, NULL, ISA_SCALAR, &a, out, K), 1);
    vectors_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_are_those_of_a_plain_loop),
        cmocka_unit_test(an_empty_collection_has_no_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
