/* limits.h: loops that do one thing as fast as an instruction set can, for measure.h (inside compute/ only).
 *
 * What a kernel reaches is told as a share of these: reading and nothing else, multiplying in registers and
 * nothing else. They use the very instructions that the kernels of the set use, so that the share says what a
 * kernel loses to loads, scales and sums, not what another instruction set would gain. */
#ifndef COMPUTE_LIMITS_H
#define COMPUTE_LIMITS_H

#include "compute/kernels.h"

#define LIMIT_READ_GRAIN 4096 /* bytes that a read is a multiple of */

typedef struct limit_loops {
    /* Every byte of p[0..n) once, from the front; n a multiple of LIMIT_READ_GRAIN. What it returns only
     * keeps the compiler from leaving them out. */
    uint64_t (*read)(const void *p, size_t n);
    void (*dot)(size_t n); /* n turns of int8 multiply-adds in registers, dot_macs of them a turn */
    size_t dot_macs;
    void (*fma)(size_t n); /* the same of floats */
    size_t fma_macs;
} limit_loops;

/* Static; those of scalar for a set that is not in this build. */
const limit_loops *limit_loops_for(isa i);

extern const limit_loops limits_scalar;
#if defined(KERNELS_X86)
extern const limit_loops limits_avx2, limits_avx2vnni, limits_avx512vnni, limits_avx512amx;
/* Four products of whole tiles a turn; of limits_avx512amx. */
void limit_dot_avx512amx(size_t n);
#define LIMIT_AMX_MACS ((size_t)4 * 16 * 16 * 64)
#elif defined(KERNELS_ARM)
extern const limit_loops limits_neon, limits_neondot, limits_neoni8mm;
#endif

/* Values that the compiler must take as changed: a loop of them is neither shortened nor moved. */
#if defined(KERNELS_X86)
#define LIMIT_KEEP(v) __asm__ volatile("" : "+v"(v))
#elif defined(KERNELS_ARM)
#define LIMIT_KEEP(v) __asm__ volatile("" : "+w"(v))
#endif

#endif
