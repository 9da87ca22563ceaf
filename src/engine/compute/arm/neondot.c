/* arm/neondot.c: NEON with the dot products of Armv8.2. */
#include "compute/kernels.h"

#ifdef KERNELS_ARM
#define FN(name) name##_neondot

#include "compute/arm/v_neon.h"
#include "compute/panel.h"
#include "compute/tile.h"
#include "compute/vec_body.h"
#include "compute/arm/q8_neon.h"
#include "compute/attn_q8_body.h"

#include "compute/arm/sdot.h"

#define TILE_TOKENS 4
#define FLAT_PAIRS  0
typedef sdot_x dots_x;
typedef sdot_sums dots;
#define x_load     sdot_load
#define dots_clear sdot_clear
#define dots_add   sdot_add
#define dots_get   sdot_get

#include "compute/arm/mul_body.h"

bool probe_neondot(void)
{
    return sdot_works();
}

const kernels kernels_neondot = ARM_KERNELS;
#else
typedef int empty_neondot; /* not an AArch64 machine */
#endif
