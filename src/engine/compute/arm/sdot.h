/* sdot.h: the integer dots of a tile by sdot, for mul_body.h (the instruction sets that have it).
 *
 * One instruction adds four columns of four rows; the activations' four bytes are a lane of a register that
 * holds sixteen of them. */

typedef struct sdot_x {
    int8x16_t q[4][2]; /* [token][half of the block] */
} sdot_x;
typedef struct sdot_sums {
    int32x4_t at[8]; /* [t * S + s], four rows */
} sdot_sums;

INLINE void sdot_load(sdot_x *x, const mul_job *j, size_t token, size_t b, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        const int8_t *q = j->q + (token + t) * j->cols + b * 32;
        x->q[t][0] = vld1q_s8(q);
        x->q[t][1] = vld1q_s8(q + 16);
    }
}

INLINE void sdot_clear(sdot_sums *d, const size_t S, const size_t T)
{
    UNROLL
    for (size_t i = 0; i < S * T; i++) d->at[i] = vdupq_n_s32(0);
}

/* The instruction wants the lane's number spelled out. */
INLINE int32x4_t sdot_lane(int32x4_t sum, int8x16_t w, int8x16_t x, size_t lane)
{
    switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, x, 0);
    case 1: return vdotq_laneq_s32(sum, w, x, 1);
    case 2: return vdotq_laneq_s32(sum, w, x, 2);
    default: return vdotq_laneq_s32(sum, w, x, 3);
    }
}

INLINE void sdot_add(sdot_sums *d, const sdot_x *x, size_t k, const int8x16_t *w, const int8x16_t *u,
                     const size_t S, const size_t T)
{
    UNROLL
    for (size_t t = 0; t < T; t++) {
        int8x16_t q = x->q[t][k / 2];
        UNROLL
        for (size_t s = 0; s < S; s++) {
            int32x4_t sum = sdot_lane(d->at[t * S + s], w[s], q, k % 2 * 2);
            d->at[t * S + s] = sdot_lane(sum, u[s], q, k % 2 * 2 + 1);
        }
    }
}

INLINE int32x4_t sdot_get(const sdot_sums *d, size_t s, size_t t, const size_t S, const size_t T)
{
    return d->at[t * S + s];
}

/* Four times -128 * 127 in every lane, from values the compiler cannot know. */
INLINE bool sdot_works(void)
{
    volatile int8_t least = -128, most = 127;
    int32x4_t sum = sdot_lane(vdupq_n_s32(0), vdupq_n_s8(least), vdupq_n_s8(most), 3);
    return vaddvq_s32(sum) == 4 * 4 * -128 * 127;
}
