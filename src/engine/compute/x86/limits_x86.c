/* x86/limits_x86.c: reading and multiplying and nothing else, in 256 and 512 bits; see limits.h.
 *
 * Twelve sums of 256 bits (of sixteen registers) and sixteen of 512 hide the latency of vpdpbusd and of fma,
 * which is four or five cycles at two a cycle. */
#include "compute/limits.h"

#ifdef KERNELS_X86
#include <immintrin.h>

#include "compute/tile.h"

#define WITH(isas) __attribute__((target(isas)))
#define SUMS_256   12
#define SUMS_512   16

/* ---- reading: eight registers' worth a turn ---- */

WITH("avx2") static uint64_t read_256(const void *p, size_t n)
{
    const __m256i *w = p;
    __m256i sum[8];
    UNROLL
    for (int k = 0; k < 8; k++) sum[k] = _mm256_setzero_si256();
    for (size_t i = 0; i < n / sizeof *w; i += 8) {
        UNROLL
        for (int k = 0; k < 8; k++) sum[k] = _mm256_xor_si256(sum[k], _mm256_loadu_si256(w + i + k));
    }
    UNROLL
    for (int k = 1; k < 8; k++) sum[0] = _mm256_xor_si256(sum[0], sum[k]);
    return (uint64_t)_mm256_extract_epi64(sum[0], 0);
}

WITH("avx512f") static uint64_t read_512(const void *p, size_t n)
{
    const uint8_t *w = p;
    __m512i sum[8];
    UNROLL
    for (int k = 0; k < 8; k++) sum[k] = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += 512) {
        UNROLL
        for (int k = 0; k < 8; k++) sum[k] = _mm512_xor_si512(sum[k], _mm512_loadu_si512(w + i + k * 64));
    }
    UNROLL
    for (int k = 1; k < 8; k++) sum[0] = _mm512_xor_si512(sum[0], sum[k]);
    return (uint64_t)_mm512_reduce_add_epi64(sum[0]);
}

/* ---- multiplying ---- */

/* A loop of one operation on `n_sums` registers of a type. w may change with each sum, or a compiler
 * would make its product once for all of them. */
#define LOOP(name, isas, type, n_sums, zero, given, operation) \
    WITH(isas) static void name(size_t n)                      \
    {                                                          \
        type sum[n_sums], w = given, x = given;                \
        UNROLL for (int k = 0; k < n_sums; k++) sum[k] = zero; \
        for (size_t i = 0; i < n; i++) {                       \
            UNROLL for (int k = 0; k < n_sums; k++)            \
            {                                                  \
                operation;                                     \
                LIMIT_KEEP(sum[k]);                            \
                LIMIT_KEEP(w);                                 \
            }                                                  \
            LIMIT_KEEP(x);                                     \
        }                                                      \
    }

/* Without vpdpbusd three instructions make a sum of four products, as in avx2_body.h. */
LOOP(dot_avx2, "avx2", __m256i, SUMS_256, _mm256_setzero_si256(), _mm256_set1_epi8(1),
     sum[k] = _mm256_add_epi32(sum[k], _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), x)))
LOOP(dot_avx2vnni, "avx2,avxvnni", __m256i, SUMS_256, _mm256_setzero_si256(), _mm256_set1_epi8(1),
     sum[k] = _mm256_dpbusd_avx_epi32(sum[k], w, x))
LOOP(dot_avx512vnni, "avx512f,avx512vnni", __m512i, SUMS_512, _mm512_setzero_si512(), _mm512_set1_epi32(1),
     sum[k] = _mm512_dpbusd_epi32(sum[k], w, x))
LOOP(fma_256, "avx2,fma", __m256, SUMS_256, _mm256_setzero_ps(), _mm256_set1_ps(0.5f),
     sum[k] = _mm256_fmadd_ps(sum[k], w, x))
LOOP(fma_512, "avx512f", __m512, SUMS_512, _mm512_setzero_ps(), _mm512_set1_ps(0.5f),
     sum[k] = _mm512_fmadd_ps(sum[k], w, x))

const limit_loops limits_avx2 = {read_256, dot_avx2, SUMS_256 * 32, fma_256, SUMS_256 * 8};
const limit_loops limits_avx2vnni = {read_256, dot_avx2vnni, SUMS_256 * 32, fma_256, SUMS_256 * 8};
const limit_loops limits_avx512vnni = {read_512, dot_avx512vnni, SUMS_512 * 64, fma_512, SUMS_512 * 16};
const limit_loops limits_avx512amx = {read_512, limit_dot_avx512amx, LIMIT_AMX_MACS, fma_512, SUMS_512 * 16};
#else
typedef int empty_limits_x86; /* not an x86 machine */
#endif
