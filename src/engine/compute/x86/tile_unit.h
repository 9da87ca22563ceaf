/* tile_unit.h: the instructions of AMX that avx512amx.c is made of.
 *
 * The unit has eight tiles of at most sixteen rows of 64 bytes; a configuration says how much of each is
 * used. The products here are C[tokens][16] += A[tokens][K] · B[K][16] of signed bytes, K columns being a
 * run:
 *
 *     A    a token's activations a row, K bytes
 *     B    K / 4 rows of 64 bytes: four columns of each of sixteen weight rows, as panel.h's lines
 *     C    a token a row, sixteen int32
 *
 *     tile_configure(&config); tile_zero(2); tile_load(0, a, cols); tile_load(1, b, 64);
 *     tile_dot(2, 0, 1); tile_store(2, dots, 64); tile_release();
 *
 * Tile numbers are literals. These are instructions of assembly, because the compiler's own (gcc 12) do not
 * say that they read memory, and stores in front of a load of a tile may then move behind it. tests/engine/compute
 * has the same operations in plain C, which refuse what the processor refuses. Source: Intel SDM vol. 1 ch.
 * 18 and vol. 2. */
#define TILE_NAME(t) "%%tmm" #t

#define tile_configure(config) __asm__ volatile("ldtilecfg %0" ::"m"(*(config)))
#define tile_release()         __asm__ volatile("tilerelease" ::: "memory")
#define tile_zero(t)           __asm__ volatile("tilezero " TILE_NAME(t)::)
#define tile_load(t, base, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), " TILE_NAME(t)::"r"(base), "r"((size_t)(stride)) : "memory")
#define tile_store(t, base, stride) \
    __asm__ volatile("tilestored " TILE_NAME(t) ", (%0,%1,1)" ::"r"(base), "r"((size_t)(stride)) : "memory")
/* c += a · b */
#define tile_dot(c, a, b) __asm__ volatile("tdpbssd " TILE_NAME(b) ", " TILE_NAME(a) ", " TILE_NAME(c)::)
