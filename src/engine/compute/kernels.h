/* kernels.h: the table of kernels that one instruction set fills (inside compute/ only).
 *
 * A packed matrix is a row of panels, sixteen output rows each; panel.h has their layout, which is one for
 * all. Block types are stored as unsigned codes, because vpdpbusd wants unsigned weights; what they are
 * too large by costs one correction a run, -zero * sum(x), which is the same for all rows. */
#ifndef COMPUTE_KERNELS_H
#define COMPUTE_KERNELS_H

#include "compute/compute.h"

#define PANEL_ROWS        16
#define ACTS_BLOCK        32  /* activations that share a scale, but for types of our own */
#define TILE_PANEL_TOKENS 256 /* most panels times tokens of any tile */

/* What the next panels take of memory, and how much of it is asked for with each tile: the first tokens meet
 * their weights in the cache then and need not wait for them. */
typedef struct ahead {
    const uint8_t *codes, *scales;
    size_t codes_left, scales_left, codes_step, scales_step; /* bytes */
} ahead;

static inline void ahead_fetch_some(const uint8_t **at, size_t *left, size_t step)
{
    size_t n = step < *left ? step : *left;
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch(*at + i);
    if (n > 0) *at += n;
    *left -= n;
}

static inline void ahead_fetch(ahead *next)
{
    ahead_fetch_some(&next->codes, &next->codes_left, next->codes_step);
    ahead_fetch_some(&next->scales, &next->scales_left, next->scales_step);
}

/* In front of a tile; where that is much, the lines stand in each other's way. */
#define AHEAD_AT_ONCE 6144

static inline void ahead_fetch_at_once(ahead *next)
{
    if (next->codes_step <= AHEAD_AT_ONCE) ahead_fetch(next);
}

/* Quantised activations turned: 64 columns of all tokens, then the next 64, a line of 64 bytes a token; and a
 * scale (and scale * float(sum), for types with minima) of all tokens, then the next one. */
#define SLAB_COLS 64
typedef struct slabs {
    int8_t *q; /* [cols / SLAB_COLS, rounded up][n_tokens][SLAB_COLS], zeros behind the last column */
    float *scale, *sums; /* [n_blocks][n_tokens] */
    size_t n_tokens;
} slabs;

/* A tile of the product: n_panels panels times n_tokens tokens. */
typedef struct mul_job {
    const uint8_t *w; /* first panel's weights; the next one is panel_bytes further */
    size_t panel_bytes;
    const uint16_t *scales; /* first panel's scales, in halves: panel.h */
    size_t panel_scales;    /* halves a panel */
    size_t n_panels, n_tokens;
    size_t cols;
    size_t group, n_blocks; /* activations that share a scale, and how often: cols / group */
    const float *x;         /* float weights: x[n_tokens][cols], row stride ldx */
    size_t ldx;
    const int8_t *q;      /* quantised weights: q[n_tokens][cols] */
    const float *scale;   /* [n_tokens][n_blocks] */
    const int32_t *sum;   /* [n_tokens][n_blocks], sums of q over the block */
    const int32_t *sum16; /* [n_tokens][n_blocks][2], over its halves; not where wfmt_is_wide */
    const float *x_sum; /* [n_tokens][n_blocks], scale * float(sum), for types with minima of whole blocks */
    const int16_t *words; /* [n_tokens][cols] and [n_tokens][n_blocks]: what acts_form made of them */
    const int32_t *words_start;
    slabs slabs; /* or that, of all tokens that were loaded; the job's start at slab_token */
    size_t slab_token;
    float *out; /* [n_tokens][n_panels * 16], row stride ldo, any alignment */
    size_t ldo;
    /* Of kernels that end their tiles themselves: out = (out, if `add`) + (product + bias[n_panels * 16]). */
    const float *bias; /* NULL: none */
    bool add;
    ahead *next; /* NULL: the caller's concern. Of kernels that walk the tokens of a job tile by tile. */
} mul_job;

/* Panels from p on and tokens from t on of a job, n_panels and n_tokens of them. Always inline: most callers read a few
 * fields, and a copy of all of them took a tenth of an encoder's products. */
static inline __attribute__((always_inline)) mul_job mul_job_part(const mul_job *j, size_t p, size_t t,
                                                                  size_t n_panels, size_t n_tokens)
{
    mul_job part = *j;
    part.w += p * j->panel_bytes;
    if (j->scales) part.scales += p * j->panel_scales;
    part.n_panels = n_panels;
    part.n_tokens = n_tokens;
    part.x += t * j->ldx;
    part.q += t * j->cols;
    part.scale += t * j->n_blocks;
    part.sum += t * j->n_blocks;
    part.sum16 += t * j->n_blocks * 2;
    part.x_sum += t * j->n_blocks;
    part.words += t * j->cols;
    part.words_start += t * j->n_blocks;
    part.slab_token += t;
    if (j->bias) part.bias += p * PANEL_ROWS;
    part.out += t * j->ldo + p * PANEL_ROWS;
    return part;
}

/* n_panels and n_tokens within one of the tiles of its table. */
typedef void mul_fn(const mul_job *job);

typedef struct tile {
    size_t panels, tokens; /* most of each in one call */
    size_t share;          /* tokens that members share out as one; 0: `tokens`, up to 16 */
} tile;

/* What acts_load has made of n_tokens tokens so far, and where a second form of it goes. */
typedef struct acts_loaded {
    dtype type; /* of the weights */
    size_t n_tokens, cols, group;
    const int8_t *q; /* as in mul_job */
    const float *scale;
    const int32_t *sum, *sum16;
    const float *x_sum;
    int16_t *words; /* either these two */
    int32_t *words_start;
    slabs slabs; /* or these, in the same memory */
} acts_loaded;

/* A second form of quantised activations, which an instruction set's products of several tokens read. */
typedef struct acts_form {
    bool (*wanted)(dtype t, size_t n_tokens);
    /* Of tokens [t, end). NULL: there is none. */
    void (*make)(const acts_loaded *a, size_t t, size_t end);
} acts_form;

typedef struct kernels {
    tile one, many; /* for one token, and for several */
    tile wide;      /* for several, of types of our own */
    /* What a member does before its first tile of a product of n_tokens with a matrix of type t, and after
     * its last (AMX: load and release the tile configuration); NULL for nothing. */
    void (*enter)(dtype t, size_t n_tokens);
    void (*leave)(dtype t, size_t n_tokens);
    mul_fn *mul[DT_COUNT];
    bool ends; /* all of them look at a job's bias and add */
    /* Q8 activations: q, scale = absmax/127, the sum and those of both halves for each of n_blocks blocks
     * of 32. A block with a NaN or an infinity becomes zeros with scale NaN, one below 2^-100 zeros with
     * scale 0. */
    void (*quantise)(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum, int32_t *sum16);
    /* The same for n_groups groups of `group` (a multiple of 32, 256 at most), without halves. */
    void (*quantise_wide)(const float *x, size_t n_groups, size_t group, int8_t *q, float *scale,
                          int32_t *sum);
    acts_form form;
    const vec_kernels *vec;
} kernels;

#define ACTS_TINY 0x1p-100f /* 127 / absmax stays finite above it */

/* Static; the scalar ones for a set that is not in this build. */
const kernels *kernels_for(isa i);
isa member_isa(const team_member *m);

extern const kernels kernels_scalar;
#if defined(__x86_64__)
#define KERNELS_X86 1
extern const kernels kernels_avx2;
extern const kernels kernels_avx2vnni;
extern const kernels kernels_avx512vnni;
extern const kernels kernels_avx512amx;
extern const vec_kernels vec_avx512vnni;
/* Run the instructions that matter and check their results; may trap where the set is not there. */
bool probe_avx2(void);
bool probe_avx2vnni(void);
bool probe_avx512vnni(void);
bool probe_avx512amx(void);
#elif defined(__aarch64__)
#define KERNELS_ARM 1
extern const kernels kernels_neon;
extern const kernels kernels_neondot;
extern const kernels kernels_neoni8mm;
bool probe_neon(void);
bool probe_neondot(void);
bool probe_neoni8mm(void);
#endif

#endif
