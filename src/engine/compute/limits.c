/* limits.c: the loops of scalar, and which set has which. */
#include "compute/limits.h"

#define SUMS 4

static uint64_t read_scalar(const void *p, size_t n)
{
    const uint64_t *w = p;
    uint64_t sum[SUMS] = {0};
    for (size_t i = 0; i < n / sizeof *w; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) sum[k] ^= w[i + k];
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

static void dot_scalar(size_t n)
{
    int32_t sum[SUMS] = {0};
    volatile int8_t given = 3;
    int8_t w = given, x = given;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < SUMS; k++) {
            sum[k] = (int32_t)((uint32_t)sum[k] + (uint32_t)(w * x));
            __asm__ volatile("" : "+r"(sum[k]));
        }
    }
}

static void fma_scalar(size_t n)
{
    volatile float given = 0.5f;
    float sum[SUMS] = {0}, w = given, x = given;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < SUMS; k++) sum[k] = sum[k] * w + x;
    given = sum[0] + sum[1] + sum[2] + sum[3];
}

const limit_loops limits_scalar = {read_scalar, dot_scalar, SUMS, fma_scalar, SUMS};

static const limit_loops *const loops[ISA_COUNT] = {
    [ISA_SCALAR] = &limits_scalar,
#if defined(KERNELS_X86)
    [ISA_AVX2] = &limits_avx2,
    [ISA_AVX2VNNI] = &limits_avx2vnni,
    [ISA_AVX512VNNI] = &limits_avx512vnni,
    [ISA_AVX512AMX] = &limits_avx512amx,
#elif defined(KERNELS_ARM)
    [ISA_NEON] = &limits_neon,
    [ISA_NEONDOT] = &limits_neondot,
    [ISA_NEONI8MM] = &limits_neoni8mm,
#endif
};

const limit_loops *limit_loops_for(isa i)
{
    return loops[i] ? loops[i] : &limits_scalar;
}
