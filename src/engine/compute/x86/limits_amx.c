/* x86/limits_amx.c: multiplying in the tile unit and nothing else; see limits.h.
 *
 * Whole tiles of 16 x 64 by 64 x 16 bytes, four of sums: a product takes sixteen cycles and waits for none of
 * the three others. Our kernels use the same, but a run of 32 columns fills half of them. */
#include "compute/limits.h"

#ifdef KERNELS_X86
#include "compute/x86/tile_unit.h"

typedef struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

void limit_dot_avx512amx(size_t n)
{
    static const tile_config whole = {.palette = 1,
                                      .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                      .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    tile_configure(&whole);
    tile_zero(0);
    tile_zero(1);
    tile_zero(2);
    tile_zero(3);
    tile_zero(4);
    tile_zero(5);
    tile_zero(6);
    tile_zero(7);
    for (size_t i = 0; i < n; i++) {
        tile_dot(0, 4, 6);
        tile_dot(1, 4, 7);
        tile_dot(2, 5, 6);
        tile_dot(3, 5, 7);
    }
    tile_release();
}

#else
typedef int empty_limits_amx; /* not an x86 machine */
#endif
