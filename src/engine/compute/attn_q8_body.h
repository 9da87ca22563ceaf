/* attn_q8_body.h: attention over keys and values of int8, included once by each instruction set behind
 * vec_body.h. Operation by operation these are the loops of scalar/attn_q8.c.
 *
 * The includer has, beside the operations on sixteen floats, those on sixteen lanes of four bytes: vi,
 * v_bytes (64 bytes), v_int (a lane's number, everywhere), v_dot_key(sum, key codes, four of q),
 * v_dot_value(sum, value codes, four weights), v_from_int, v_store_i8 (to nearest even), v_max_bits;
 * KEY_EXCESS, what v_dot_key takes key codes too large by; and the tiles for which it has registers:
 * KEY_QUERIES with KEY_CHAINS sums each, VALUE_QUERIES with VALUE_GROUPS groups of sixteen columns each. */

INLINE float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* What to divide by `largest` (its bits) to get at most 127; *ret_scale back. False: all codes are 0. */
INLINE bool q8_scale(uint32_t largest, float *ret_inverse, float *ret_scale)
{
    float most = float_of_bits(largest);
    bool finite = largest < 0x7f800000u, tiny = finite && most < ACTS_TINY;
    *ret_scale = !finite ? (float)NAN : tiny ? 0 : most * ATTN_ONE_127TH;
    *ret_inverse = 127.0f / most;
    return finite && !tiny;
}

TARGET static float FN(attn_quantise)(int8_t *q, int32_t *ret_sum, const float *x, size_t d)
{
    vf most = v_set1(0.0f);
    uint32_t bits = 0;
    float scale, inverse;
    for (size_t i = 0; i < d; i += LANES) {
        uint32_t one = v_max_bits(v_abs(v_load(x + i)));
        bits = one > bits ? one : bits;
    }
    if (!q8_scale(bits, &inverse, &scale)) inverse = 0;
    vf by = v_set1(inverse);
    int32_t sum = 0;
    for (size_t i = 0; i < d; i += LANES) v_store_i8(q + i, inverse == 0 ? most : v_mul(v_load(x + i), by));
    for (size_t i = 0; i < d; i += LANES)
        for (size_t k = 0; k < LANES; k++) sum += q[i + k];
    *ret_sum = sum;
    return scale;
}

/* N queries against a tile of sixteen keys. */
INLINE void q8_score_tile(float *s, size_t lds, const int8_t *q, const float *scale, const int32_t *sum,
                          const uint8_t *tile, size_t d, const size_t N, const size_t C)
{
    vi dot[KEY_QUERIES * KEY_CHAINS > 4 ? KEY_QUERIES * KEY_CHAINS : 4];
    UNROLL
    for (size_t i = 0; i < N * C; i++) dot[i] = v_int(i % C == 0 ? -KEY_EXCESS * sum[i / C] : 0);
    const uint8_t *codes = tile + ATTN_Q8_SCALES;
    for (size_t t = 0; t < d; t += 4 * C) {
        UNROLL
        for (size_t c = 0; c < C; c++) {
            vi k = v_bytes(codes + (t + 4 * c) * LANES);
            UNROLL
            for (size_t h = 0; h < N; h++)
                dot[h * C + c] = v_dot_key(dot[h * C + c], k, q + h * d + t + 4 * c);
        }
    }
    UNROLL
    for (size_t h = 0; h < N; h++) {
        UNROLL
        for (size_t c = 1; c < C; c++) dot[h * C] = v_add_int(dot[h * C], dot[h * C + c]);
        vf x = v_mul(v_from_int(dot[h * C]), v_load((const float *)(const void *)tile));
        v_store(s + h * lds, v_mul(x, v_set1(scale[h])));
    }
}

TARGET static void FN(attn_scores_q8)(float *s, size_t lds, const int8_t *q, const float *scale,
                                      const int32_t *sum, size_t n_q, const uint8_t *tile, size_t d)
{
    size_t h = 0;
    for (; h + KEY_QUERIES <= n_q; h += KEY_QUERIES)
        q8_score_tile(s + h * lds, lds, q + h * d, scale + h, sum + h, tile, d, KEY_QUERIES, KEY_CHAINS);
    for (; h < n_q; h++) q8_score_tile(s + h * lds, lds, q + h * d, scale + h, sum + h, tile, d, 1, 4);
}

/* n (at most sixteen) lines of weights, whose largest are largest[16], into codes: one division for all. */
INLINE void q8_code_lines(float *s, size_t n, const float *largest)
{
    float inverse[LANES], scale[LANES];
    v_store(inverse, v_div(v_set1(127.0f), v_load(largest)));
    v_store(scale, v_mul(v_load(largest), v_set1(ATTN_ONE_127TH)));
    for (size_t i = 0; i < n; i++, s += LANES) {
        bool finite = largest[i] < (float)INFINITY, some = finite && largest[i] >= ACTS_TINY;
        v_store_i8((int8_t *)s, some ? v_mul(v_load(s), v_set1(inverse[i])) : v_set1(0.0f));
        s[ATTN_WEIGHT_SCALE] = some ? scale[i] : finite ? 0 : (float)NAN;
    }
}

TARGET static float FN(attn_weigh_q8)(float *s, size_t n_tiles, const float *value_scale, float *ret_most)
{
    *ret_most = largest(s, n_tiles * LANES);
    vf most = v_set1(*ret_most), total = v_set1(0.0f), zero = v_set1(0.0f);
    for (size_t n; n_tiles > 0; n_tiles -= n, s += n * LANES, value_scale += n * LANES) {
        float top[LANES] = {0};
        n = n_tiles < LANES ? n_tiles : LANES;
        for (size_t i = 0; i < n; i++) {
            vf e = v_exp(v_sub(v_load(s + i * LANES), most));
            vf w = v_if_less(zero, e, v_mul(e, v_load(value_scale + i * LANES)), zero);
            total = v_add(total, e);
            v_store(s + i * LANES, w);
            top[i] = float_of_bits(v_max_bits(w));
        }
        q8_code_lines(s, n, top);
    }
    return v_tree(total);
}

/* C groups of sixteen columns, from column `at` on, of N queries over all tiles. */
INLINE void q8_mix_tile(float *y, size_t ldy, const float *w, size_t ldw, const attn_tiles *v, size_t at,
                        size_t d, const size_t N, const size_t C)
{
    vf sum[VALUE_QUERIES * VALUE_GROUPS];
    UNROLL
    for (size_t i = 0; i < N * C; i++) sum[i] = v_load(y + i / C * ldy + at + i % C * LANES);
    for (size_t i = 0; i < v->n; i++) {
        const uint8_t *codes = v->base + v->page[i] * v->stride + ATTN_Q8_SCALES + at * 4;
        const float *line = w + i * LANES;
        vi dot[VALUE_QUERIES * VALUE_GROUPS], x[VALUE_GROUPS];
        UNROLL
        for (size_t k = 0; k < N * C; k++) dot[k] = v_int(0);
        UNROLL
        for (size_t g = 0; g < 4; g++) {
            UNROLL
            for (size_t c = 0; c < C; c++) x[c] = v_bytes(codes + g * d * 4 + c * LANES * 4);
            UNROLL
            for (size_t k = 0; k < N * C; k++)
                dot[k] = v_dot_value(dot[k], x[k % C], (const int8_t *)(line + k / C * ldw) + g * 4);
        }
        UNROLL
        for (size_t k = 0; k < N * C; k++)
            sum[k] = v_fma(v_from_int(dot[k]), v_set1(line[k / C * ldw + ATTN_WEIGHT_SCALE]), sum[k]);
    }
    UNROLL
    for (size_t i = 0; i < N * C; i++) v_store(y + i / C * ldy + at + i % C * LANES, sum[i]);
}

/* All columns of N queries. */
INLINE void q8_mix_queries(float *y, size_t ldy, const float *w, size_t ldw, const attn_tiles *v, size_t d,
                           const size_t N)
{
    size_t at = 0;
    for (; at + VALUE_GROUPS * LANES <= d; at += VALUE_GROUPS * LANES)
        q8_mix_tile(y, ldy, w, ldw, v, at, d, N, VALUE_GROUPS);
    if (VALUE_GROUPS > 3 && at + 3 * LANES <= d) {
        q8_mix_tile(y, ldy, w, ldw, v, at, d, N, 3);
    } else if (VALUE_GROUPS > 2 && at + 2 * LANES <= d) {
        q8_mix_tile(y, ldy, w, ldw, v, at, d, N, 2);
    } else if (at < d) {
        q8_mix_tile(y, ldy, w, ldw, v, at, d, N, 1);
    }
}

TARGET static void FN(attn_mix_q8)(float *y, size_t ldy, const float *w, size_t ldw, size_t n_q,
                                   const attn_tiles *v, size_t d)
{
    size_t h = 0;
    for (; h + VALUE_QUERIES <= n_q; h += VALUE_QUERIES)
        q8_mix_queries(y + h * ldy, ldy, w + h * ldw, ldw, v, d, VALUE_QUERIES);
    for (; h < n_q; h++) q8_mix_queries(y + h * ldy, ldy, w + h * ldw, ldw, v, d, 1);
}
