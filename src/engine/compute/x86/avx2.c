/* x86/avx2.c: AVX2 with FMA and F16C. */
#include "compute/kernels.h"

#ifdef KERNELS_X86
#define TARGET     __attribute__((target("avx2,fma,f16c")))
#define FN(name)   name##_avx2
#define HAS_DPBUSD 0

#include "compute/x86/avx2_body.h"

/* An fma, a conversion from f16 and an integer product, from values the compiler cannot know. */
TARGET bool probe_avx2(void)
{
    volatile float three = 3.0f;
    volatile int half_one = 0x3C003C00, bytes = 0x01010101;
    vf f = v_fma(v_set1(three), v_set1(three), v_set1(1.0f));
    __m256 h = _mm256_cvtph_ps(_mm_set1_epi32(half_one));
    __m256i i = pairs_to_dots(_mm256_maddubs_epi16(_mm256_set1_epi32(bytes), _mm256_set1_epi32(bytes)));
    f.a = _mm256_add_ps(f.a, _mm256_mul_ps(h, _mm256_cvtepi32_ps(i)));
    return v_tree(f) == 16 * 10 + 8 * 4;
}

const kernels kernels_avx2 = AVX2_KERNELS;
#else
typedef int empty_avx2; /* not an x86 machine */
#endif
