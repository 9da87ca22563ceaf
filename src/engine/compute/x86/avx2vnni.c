/* x86/avx2vnni.c: AVX2 with the dot products of AVX-VNNI, for processors that have no AVX-512. */
#include "compute/kernels.h"

#ifdef KERNELS_X86
#include <immintrin.h>

#define TARGET     __attribute__((target("avx2,fma,f16c,avxvnni")))
#define FN(name)   name##_avx2vnni
#define HAS_DPBUSD 1

TARGET __attribute__((always_inline)) static inline __m256i dpbusd(__m256i sum, __m256i codes, __m256i x)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, x);
}

#include "compute/x86/avx2_body.h"

/* 255 * 127 * 4 in every lane, from values the compiler cannot know. */
TARGET bool probe_avx2vnni(void)
{
    volatile int unsigned_bytes = -1, signed_bytes = 0x7F7F7F7F;
    __m256i d =
        dpbusd(_mm256_setzero_si256(), _mm256_set1_epi32(unsigned_bytes), _mm256_set1_epi32(signed_bytes));
    return sum_of(d) == 8 * 4 * 255 * 127 && probe_avx2();
}

const kernels kernels_avx2vnni = AVX2_KERNELS;
#else
typedef int empty_avx2vnni; /* not an x86 machine */
#endif
