/* Attention over keys and values of int8: bits, and what positions that are not seen do. */
#include <math.h>

#include "check.h"

#define ROWS  7 /* queries: tiles of four and of two, and one alone */
#define TILES 5
#define D_MAX 160

typedef struct fixture {
    size_t d, stride;
    uint8_t keys[TILES * (ATTN_Q8_SCALES + D_MAX * 16)], values[TILES * (ATTN_Q8_SCALES + D_MAX * 16)];
    float value_scale[TILES * 16];
    uint32_t page[TILES]; /* in no order */
} fixture;

static void put_float(uint8_t *at, float x)
{
    memcpy(at, &x, sizeof x);
}

/* Any codes, any scales. */
static void fill(fixture *f, size_t d)
{
    *f = (fixture){.d = d, .stride = ATTN_Q8_SCALES + d * 16, .page = {3, 0, 4, 1, 2}};
    for (size_t i = 0; i < sizeof f->keys; i++) {
        f->keys[i] = (uint8_t)(rng_uniform(d, i) * 256);
        f->values[i] = (uint8_t)(rng_uniform(d + 1, i) * 256);
    }
    for (size_t i = 0; i < TILES * 16; i++) {
        f->value_scale[i] = fabsf(draw(4, i));
        put_float(f->keys + i / 16 * f->stride + i % 16 * 4, fabsf(draw(5, i)));
        put_float(f->values + f->page[i / 16] * f->stride + i % 16 * 4, f->value_scale[i]);
    }
}

#define WIDTH (TILES * 16 + 16)

typedef struct answer {
    int8_t q[ROWS * D_MAX];
    int32_t sum[ROWS];
    float scale[ROWS], share[ROWS], most[ROWS], scores[ROWS * WIDTH], lines[ROWS * WIDTH],
        y[ROWS * (D_MAX + 1)];
} answer;

/* Attention of n_q queries x[n_q][d] over all tiles but the last `unseen` positions. */
static void attend(isa set, const fixture *f, const float *x, size_t n_q, size_t unseen, answer *a)
{
    const vec_kernels *v = vec_kernels_for(set);
    attn_tiles tiles = {.base = f->values, .page = f->page, .stride = f->stride, .n = TILES};
    memset(a, 0, sizeof *a);
    for (size_t h = 0; h < n_q; h++)
        a->scale[h] = v->attn_quantise(a->q + h * f->d, &a->sum[h], x + h * f->d, f->d);
    for (size_t i = 0; i < TILES; i++)
        v->attn_scores_q8(a->scores + i * 16, WIDTH, a->q, a->scale, a->sum, n_q,
                          f->keys + f->page[i] * f->stride, f->d);
    memcpy(a->lines, a->scores, sizeof a->lines);
    for (size_t h = 0; h < n_q; h++) {
        float *row = a->lines + h * WIDTH;
        for (size_t i = TILES * 16 - unseen; i < TILES * 16; i++) row[i] = -(float)INFINITY;
        a->share[h] = 1.0f / v->attn_weigh_q8(row, TILES, f->value_scale, &a->most[h]);
    }
    v->attn_mix_q8(a->y, f->d + 1, a->lines, WIDTH, n_q, &tiles, f->d);
}

/* The codes and the scale of every line; what lies behind them is nobody's. */
static void same_lines(const answer *a, const answer *b, const char *what)
{
    for (size_t i = 0; i < ROWS * WIDTH; i += 16) {
        assert_memory_equal(a->lines + i, b->lines + i, 16);
        assert_same_bits(a->lines + i + ATTN_WEIGHT_SCALE, b->lines + i + ATTN_WEIGHT_SCALE, 1, what);
    }
}

static void compare(isa set, const fixture *f, const float *x, size_t n_q, size_t unseen)
{
    static answer got, want;
    char what[80];
    snprintf(what, sizeof what, "%s n_q=%zu d=%zu", isa_name(set), n_q, f->d);
    attend(set, f, x, n_q, unseen, &got);
    attend(ISA_SCALAR, f, x, n_q, unseen, &want);
    assert_memory_equal(got.q, want.q, sizeof got.q);
    assert_memory_equal(got.sum, want.sum, sizeof got.sum);
    assert_same_bits(got.scale, want.scale, ROWS, what);
    assert_same_bits(got.scores, want.scores, ROWS * WIDTH, what);
    assert_same_bits(got.share, want.share, ROWS, what);
    assert_same_bits(got.most, want.most, ROWS, what);
    same_lines(&got, &want, what);
    assert_same_bits(got.y, want.y, ROWS * (D_MAX + 1), what);
}

static void equals_scalar_bit_for_bit(void **state)
{
    static fixture f;
    float *x = draw_floats(9, ROWS * D_MAX, 0.01f);
    EACH_WIDE_ISA(set)
    {
        for (size_t d = 16; d <= D_MAX; d += 16) {
            fill(&f, d);
            for (size_t n_q = 1; n_q <= ROWS; n_q++) compare(set, &f, x, n_q, n_q - 1);
        }
    }
    free(x);
}

static void special_values_agree(void **state)
{
    const float special[] = {(float)NAN, (float)INFINITY, -(float)INFINITY, 0.0f, 1e-45f, 3e38f, -3e38f};
    static fixture f;
    EACH_WIDE_ISA(set)
    {
        for (size_t s = 0; s < sizeof special / sizeof *special; s++) {
            float *x = draw_floats(9, ROWS * 32, 1.0f);
            x[3] = special[s];
            memset(x + 64, 0, 32 * sizeof *x);
            fill(&f, 32);
            f.value_scale[17] = fabsf(special[s]);
            compare(set, &f, x, ROWS, 3);
            free(x);
        }
    }
}

/* A page may hold anything behind its last position: another's rest, or what is not finite. */
static void what_is_not_seen_does_nothing(void **state)
{
    static fixture f;
    static answer clean, dirty;
    float *x = draw_floats(9, ROWS * 32, 1.0f);
    for (isa set = ISA_SCALAR; set < ISA_COUNT; set++) {
        if (!isa_built(set) || !isa_usable(set)) continue;
        fill(&f, 32);
        attend(set, &f, x, ROWS, 5, &clean);
        for (size_t i = TILES * 16 - 5; i < TILES * 16; i++) {
            uint8_t *key = f.keys + f.page[TILES - 1] * f.stride;
            put_float(key + i % 16 * 4, (float)NAN);
            f.value_scale[i] = i % 2 ? (float)NAN : (float)INFINITY;
        }
        attend(set, &f, x, ROWS, 5, &dirty);
        assert_same_bits(dirty.y, clean.y, ROWS * (D_MAX + 1), isa_name(set));
        assert_same_bits(dirty.share, clean.share, ROWS, isa_name(set));
        assert_true(isfinite(dirty.y[0]) && isfinite(dirty.share[0]));
    }
    free(x);
}

/* Against attention in double of what codes and scales stand for. */
static double reference(const fixture *f, const float *q, size_t t)
{
    double most = -INFINITY, total = 0, out = 0, s[TILES * 16];
    for (size_t i = 0; i < TILES * 16; i++) {
        const uint8_t *tile = f->keys + f->page[i / 16] * f->stride;
        float scale;
        memcpy(&scale, tile + i % 16 * 4, sizeof scale);
        s[i] = 0;
        for (size_t k = 0; k < f->d; k++)
            s[i] += (double)q[k] * scale * (tile[ATTN_Q8_SCALES + k / 4 * 64 + i % 16 * 4 + k % 4] - 128);
        most = s[i] > most ? s[i] : most;
    }
    for (size_t i = 0; i < TILES * 16; i++) {
        const int8_t *codes = (const int8_t *)f->values + f->page[i / 16] * f->stride + ATTN_Q8_SCALES;
        double e = exp(s[i] - most);
        total += e;
        out += e * (double)f->value_scale[i] * codes[(i % 16 / 4 * f->d + t) * 4 + i % 4];
    }
    return out / total;
}

static void is_attention(void **state)
{
    static fixture f;
    static answer a;
    float *x = draw_floats(9, 48, 0.001f);
    fill(&f, 48);
    attend(ISA_SCALAR, &f, x, 1, 0, &a);
    for (size_t t = 0; t < 48; t++) {
        double want = reference(&f, x, t), got = (double)a.y[t] * (double)a.share[0];
        if (fabs(got - want) > 0.2) fail_msg("column %zu is %g, should be about %g", t, got, want);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_scalar_bit_for_bit),
        cmocka_unit_test(special_values_agree),
        cmocka_unit_test(what_is_not_seen_does_nothing),
        cmocka_unit_test(is_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
