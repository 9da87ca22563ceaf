/* compute.h: weights, kernels and the team of threads that runs them.
 *
 * The numerics contract. The scalar kernels are the specification; every instruction set gives the
 * same bits, for any number of threads and any batch:
 *   - a weight matrix w[rows][cols] is walked column after column, per row. F32, F16 and BF16 weights
 *     fuse one after the other: acc = fma(w, x, acc). In block types a run of 32 columns (16 in Q2_K,
 *     Q3_K and Q6_K) shares a scale, and Q4_1, Q5_1, Q2_K, Q4_K and Q5_K also a minimum:
 *         acc = fma(float(dot), scale * x_scale, acc)            dot: int32, of the run's values and q
 *         acc = fma(minimum, x_scale * float(sum of q), acc)     at once after it
 *     scale is the block's F16 number, 2^e (MXFP4), or F16 * float(the run's integer) (super-blocks of
 *     256), minimum F16 or -(F16 * float(integer)). Lanes run over rows, so width does not matter.
 *     Types of our own (S8_128, S4_128, ...) have the first of these lines alone, once for 64 to 256 columns:
 *     there the multiplier is what products wait for, and not the scales.
 *   - reductions inside a row (norms, softmax sums, an encoder's attention dots) use sixteen virtual
 *     lanes, lane i taking elements i, i+16, i+32, ..., and then one fixed tree: l[i] += l[i+8], +4,
 *     +2, +1. A decoder's attention scores sixteen keys at a time, lanes over keys, in four chains
 *     (attn_scores). Where keys and values are kept as int8, so are a query and the weights of
 *     sixteen positions: dots are int32, and floats are added up once a tile (attn_scores_q8, attn_mix_q8).
 *     It goes chunk by chunk of positions, each with a softmax of its own, and joins these in order
 *     (net/attention/attend_block.h).
 *   - exp, tanh, gelu, rsqrt, sin and cos are polynomials of our own with explicit fma.
 * Activations are quantised per token in blocks of 32 to int8 (Q8) in front of block types, in groups as wide
 * as the weights' in front of types of our own, and stay float in front of float types. No type becomes a
 * larger one in memory: integers are unpacked in registers.
 *
 * Everything here runs inside a team: team_run starts one function on all members, members meet at
 * team_barrier. Functions that take a `team_member *` are called by all members together with the
 * same arguments and split the work between them; they say whether they end in a barrier. */
#ifndef COMPUTE_COMPUTE_H
#define COMPUTE_COMPUTE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/progress.h"

/* Counts up whenever a kernel gives other bits than before: answers of two versions are not mixed
 * (base/bit_identity.h). */
enum { NUMERICS_CONTRACT = 1 };

/* ---- element types ------------------------------------------------------------------------- */

/* X(name, kernel): a float a weight, and blocks of integers with scales. formats.h has a row for each,
 * with its numbers and its layout; adding a type is a line here and a row there; its name in files and
 * what it falls back to are in model/model_gguf.c and model/quantize/quantize_types.c. */
#define DTYPE_FLOATS(X) \
    X(F32, f32)         \
    X(F16, f16)         \
    X(BF16, bf16)
#define DTYPE_BLOCKS(X) \
    X(Q8_0, q8_0)       \
    X(Q4_0, q4_0)       \
    X(Q4_1, q4_1)       \
    X(Q5_0, q5_0)       \
    X(Q5_1, q5_1)       \
    X(Q2_K, q2_k)       \
    X(Q3_K, q3_k)       \
    X(Q4_K, q4_k)       \
    X(Q5_K, q5_k)       \
    X(Q6_K, q6_k)       \
    X(IQ4_NL, iq4_nl)   \
    X(IQ4_XS, iq4_xs)   \
    X(MXFP4, mxfp4)
/* Types of our own, whose groups of 64 to 256 columns share a scale. */
#define DTYPE_WIDE(X) \
    X(S8_64, s8)      \
    X(S8_96, s8)      \
    X(S8_128, s8)     \
    X(S8_256, s8)     \
    X(S4_64, s4)      \
    X(S4_96, s4)      \
    X(S4_128, s4)
#define DTYPE_TABLE(X) \
    DTYPE_FLOATS(X)    \
    DTYPE_BLOCKS(X)    \
    DTYPE_WIDE(X)

typedef enum dtype {
#define DTYPE_ENUM(name, kernel) DT_##name,
    DTYPE_TABLE(DTYPE_ENUM)
#undef DTYPE_ENUM
        DT_COUNT
} dtype;

const char *dtype_name(dtype t);                     /* "Q8_0" */
size_t dtype_block(dtype t);                         /* elements in a block */
size_t dtype_block_bytes(dtype t);                   /* bytes that a block takes */
int dtype_from_gguf(uint32_t gguf_type, dtype *ret); /* SHOAL_EUNSUPPORTED when not in the table */
uint32_t dtype_to_gguf(dtype t);                     /* its number in GGUF files */
uint32_t dtype_file_type(dtype t);                   /* general.file_type of a file of this type */
bool dtype_is_float(dtype t);                        /* its activations stay floats */
bool dtype_parse(const char *name, dtype *ret);      /* case-insensitive: "q8_0" */

/* dst[n] = src as floats, and back; n is a multiple of the block. Rounding is to nearest even. A weight
 * of a block is scale * value, or scale * value + minimum, each operation rounded (formats.h). Back:
 * Q8_0, Q4_0, Q4_1 follow the GGUF reference (Q8_0: d = absmax/127, q = round(x/d)), the others take the
 * scales that the same idea gives; quantize_block.h searches for better ones. */
void dtype_to_f32(dtype t, const void *src, float *dst, size_t n);
void dtype_from_f32(dtype t, const float *src, void *dst, size_t n);
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);

/* ---- instruction sets ---------------------------------------------------------------------- */

/* X(enum, name); later ones are preferred when usable */
#define ISA_TABLE(X)                \
    X(ISA_SCALAR, "scalar")         \
    X(ISA_AVX2, "avx2")             \
    X(ISA_AVX2VNNI, "avx2vnni")     \
    X(ISA_AVX512VNNI, "avx512vnni") \
    X(ISA_AVX512AMX, "avx512amx")   \
    X(ISA_NEON, "neon")             \
    X(ISA_NEONDOT, "neondot")       \
    X(ISA_NEONI8MM, "neoni8mm")

typedef enum isa {
#define ISA_ENUM(e, name) e,
    ISA_TABLE(ISA_ENUM)
#undef ISA_ENUM
        ISA_COUNT
} isa;

const char *isa_name(isa i);
/* Whether this build has its kernels: scalar, and those of the processor it was compiled for. */
bool isa_built(isa i);
/* Built, listed by the processor (CPUID; on AArch64 the kernel's HWCAP words), enabled by the kernel
 * (XGETBV), and a probe of its instructions ran in a child process without trapping. Cached. */
bool isa_usable(isa i);
/* The best usable one, or what SHOAL_ISA names; SHOAL_EINVALID for an unknown name and
 * SHOAL_EUNSUPPORTED for one this machine cannot run (the sentence says why). */
int isa_choose(isa *ret, shoal_err *err);

/* ---- the team ------------------------------------------------------------------------------ */

#define TEAM_MAX 64 /* members */

typedef struct team team;
typedef struct team_member team_member;

/* n_threads members (1..64); the caller of team_run is member 0, the others are threads that spin
 * briefly and then sleep between runs. */
int team_new(team **ret, int n_threads, isa isa, shoal_err *err);
void team_free(team *t); /* NULL is fine; not while a run is on */
/* The next runs take the first n_members (1 to what team_new got; outside of it the nearer end) and let the others
 * sleep. Not while a run is on. */
void team_use(team *t, int n_members);
/* All members, and the calling thread, run on these cores from now on. A hint: a refusal changes nothing. */
void team_place(team *t, const cpu_set_t *cpus);
/* Members of the next run: all, unless team_use said otherwise. */
int team_size(const team *t);
isa team_isa(const team *t);
void team_run(team *t, void (*fn)(void *arg, team_member *m), void *arg);
void team_barrier(team_member *m);
/* Member 0 calls fn(user) whenever it comes to a barrier, in front of it: the others wait, or finish their
 * part. Where a step may be interrupted. NULL: nothing. Not while a run is on. */
void team_at_barriers(team *t, void (*fn)(void *user), void *user);
int member_index(const team_member *m);
int member_count(const team_member *m);
/* A team of this member alone: what all members would do together, it does for itself, without barriers. */
team_member *member_alone(team_member *m);
/* This member's part [*begin, *end) of n items, in multiples of `grain`. */
void member_share(const team_member *m, size_t n, size_t grain, size_t *begin, size_t *end);

/* ---- weight matrices ----------------------------------------------------------------------- */

/* y[n_tokens][rows] = x[n_tokens][cols] · wᵀ (+ bias[rows]), w packed for the chosen ISA. */
typedef struct wmat wmat;

/* Pack `src`, rows × cols in type t, row after row. cols must be a multiple of the block. The source
 * may go afterwards. bias may be NULL; it is copied. */
int wmat_new(wmat **ret, dtype t, size_t rows, size_t cols, const void *src, const float *bias, isa isa,
             shoal_err *err);
/* The same of rows that lie in several places, in the order of the parts, in a place of `home` (weights.h),
 * packed by its team; w must not outlive it. home NULL: in memory of its own. `name` says what the rows are
 * made of; an image of the packed weights is told by it. */
typedef struct weights weights;
typedef struct wmat_turn { /* rows that are stored in another type than the matrix is to have */
    dtype from;
    void (*write)(dtype to, const float *values, void *dst, size_t n); /* any thread; values are finite */
} wmat_turn;
typedef struct wmat_part {
    const void *src; /* rows × cols, row after row */
    size_t rows;
    const wmat_turn *turn; /* NULL: they are in the matrix' type */
} wmat_part;
/* SHOAL_EFORMAT: a turned row holds what is not finite, or too large for the type. */
int wmat_join(wmat **ret, weights *home, uint64_t name, dtype t, const wmat_part *parts, size_t n_parts,
              size_t cols, const float *bias, isa isa, shoal_err *err);
/* What a packed matrix consists of; false when there is no such matrix. */
bool wmat_sizes(dtype t, size_t rows, size_t cols, size_t *ret_codes, size_t *ret_scales);
/* Bytes that a packed matrix takes in its place, borders included; SIZE_MAX when there is no such number. */
size_t wmat_packed_bytes(dtype t, size_t rows, size_t cols);
void wmat_free(wmat *w);
size_t wmat_rows(const wmat *w);
size_t wmat_cols(const wmat *w);
dtype wmat_type(const wmat *w);
size_t wmat_bytes(const wmat *w);
/* out[cols] = row `row` as floats: an embedding look-up from a packed matrix. Any thread. */
void wmat_row(const wmat *w, size_t row, float *out);

/* From now on every product adds the squares of what column c is multiplied with to squares[c]: which
 * columns matter, for a quantiser. squares[cols] is the caller's and must live as long as w does. Not while
 * a team runs. */
void wmat_watch(wmat *w, double *squares);
bool wmat_is_watched(const wmat *w);

/* Activations as the weights want them: made once, used by several matrices (q, k, v). */
typedef struct acts acts;
/* Room for max_tokens × max_cols. */
int acts_new(acts **ret, size_t max_tokens, size_t max_cols, shoal_err *err);
void acts_free(acts *a);

/* All members: load x[n_tokens][cols] (row stride ldx floats) into `a` in the form for weights of type t
 * (a no-copy reference for float weights: x must stay). Each loads the tokens that
 * member_share(n_tokens, 1) gives it, so that no barrier is needed in front when it wrote these rows
 * itself. Ends in a barrier. acts_mul does not: put one between the last acts_mul from `a` and the next
 * acts_load into it. */
void acts_load(team_member *m, acts *a, dtype t, const float *x, size_t n_tokens, size_t cols, size_t ldx);
/* All members: y[n_tokens][rows] (row stride ldy) = a · wᵀ + bias; with `accumulate`, y += instead
 * (one float addition after the row is complete). No barrier at the end. */
void acts_mul(team_member *m, const acts *a, const wmat *w, float *y, size_t ldy, bool accumulate);
/* A window has no memory: it is aimed at tokens [first, ...) of `of`, and what one member loads and
 * multiplies there by itself (member_alone) meets nobody who is aimed at others. acts_free frees it; `of`
 * must outlive it. */
int acts_new_window(acts **ret, shoal_err *err);
void acts_aim(acts *window, const acts *of, size_t first);
/* The same for rows [row, row + n) of `a` alone: y[row .. row + n) = ..., y's other rows stay. */
void acts_mul_rows(team_member *m, const acts *a, size_t row, size_t n, const wmat *w, float *y, size_t ldy);

/* ---- vector kernels: one thread, same bits everywhere ---------------------------------------- */

#define EXP_SUMS_BLOCK 128 /* floats of one sum of exp_sums */

/* Keys and values of one head kept as int8, d a multiple of 16: a tile is sixteen positions,
 *     keys:   [16] scales, then their codes + 128 [d / 4][16 positions][4 of d]
 *     values: [16] scales, then their codes [4][d][4 positions]
 * and a position's numbers are code * scale. */
#define ATTN_Q8_SCALES    64             /* bytes of a tile's scales */
#define ATTN_WEIGHT_SCALE 4              /* where a line of weights has its scale: attn_weigh_q8 */
#define ATTN_ONE_127TH    0x1.020408p-7f /* 1 / 127 */
typedef struct attn_tiles {
    const uint8_t *base;
    const uint32_t *page; /* [n]: tile i is at base + page[i] * stride */
    size_t stride, n;
} attn_tiles;

typedef struct vec_kernels {
    /* sum of a[i]*b[i], sixteen lanes and the tree */
    float (*dot)(const float *a, const float *b, size_t n);
    /* y[i] = fma(a, x[i], y[i]) */
    void (*axpy)(float *y, float a, const float *x, size_t n);
    /* y[i] = x[i] + z[i]; y may be x */
    void (*add)(float *y, const float *x, const float *z, size_t n);
    /* Rows of a product at their place: y[r][n] (row stride ldy) = (y[r], if `add`) + (x[r] + bias), x with
     * row stride ldx; bias NULL: x[r] alone. */
    void (*end_rows)(float *y, size_t ldy, const float *x, size_t ldx, size_t n_rows, size_t n,
                     const float *bias, bool add);
    /* y = x / sqrt(mean(x²) + eps) * w; y may be x */
    void (*rms_norm)(float *y, const float *x, const float *w, size_t n, float eps);
    /* Each of n_rows rows of n: y = (x - mean) / sqrt(var + eps) * w + b; y may be x */
    void (*layer_norm)(float *y, const float *x, const float *w, const float *b, size_t n_rows, size_t n,
                       float eps);
    /* x = softmax(x), max subtracted first */
    void (*softmax)(float *x, size_t n);
    /* Index of the largest, the lowest among equals; a NaN is never it (0 when there is nothing else). */
    size_t (*argmax)(const float *x, size_t n);
    /* y[i] = exp((x[i] - max) * scale); returns their sum, sixteen lanes and the tree. y may be x. */
    float (*exp_scaled)(float *y, const float *x, size_t n, float max, float scale);
    /* sums[b] = what exp_scaled returns of x[128 b ..), which is kept nowhere, the last b being shorter;
     * returns the sum of sums, added in double in their order */
    double (*exp_sums)(float *sums, const float *x, size_t n, float max, float scale);
    /* y[i] = silu(gate[i]) * up[i]; y may be gate */
    void (*silu_mul)(float *y, const float *gate, const float *up, size_t n);
    void (*gelu_erf)(float *x, size_t n);  /* x·Φ(x), exact form */
    void (*gelu_tanh)(float *x, size_t n); /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))) */
    void (*relu)(float *x, size_t n);
    void (*tanh)(float *x, size_t n);
    /* Sixteen keys turned for attn_scores: kt[d][16] of k[16][d] (row stride ldk) */
    void (*attn_turn)(float *kt, const float *k, size_t ldk, size_t d);
    /* Attention scores of sixteen keys for n_q queries; lanes run over keys, so the keys of a tile are
     * stored turned: kt[d][16]. s[h][16] (row stride lds) = scale * (q[h] · key), q[h][d] (row stride
     * ldq); element t of the product goes to chain t % 4 by fma, then (c0 + c1) + (c2 + c3). */
    void (*attn_scores)(float *s, size_t lds, const float *q, size_t ldq, size_t n_q, const float *kt,
                        size_t d, float scale);
    /* y[h][d] (row stride ldy) += p[h][0..n) (row stride ldp) · v[n][d] (row stride ldv), by fma in the
     * order of n */
    void (*attn_mix)(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const float *v, size_t ldv,
                     size_t n, size_t d);
    /* The same on keys and values stored as F16. */
    void (*attn_scores_f16)(float *s, size_t lds, const float *q, size_t ldq, size_t n_q, const uint16_t *kt,
                            size_t d, float scale);
    void (*attn_mix_f16)(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const uint16_t *v,
                         size_t ldv, size_t n, size_t d);
    /* Scores into weights as softmax does, and what joins them to those of other positions: *ret_most, the
     * largest score, and returned the sum of all exp(s - most). */
    float (*attn_weigh)(float *s, size_t n, float *ret_most);
    /* y[i] = fma(b, x[i], a * y[i]) */
    void (*attn_join)(float *y, float a, const float *x, float b, size_t n);
    /* Attention over tiles of int8. A query, key or value: q[i] = x[i] * (127 / absmax) to nearest even, and
     * returns the scale, absmax * (1 / 127); of zeros it is 0 below 2^-100, and NaN where x is not finite.
     * ret_sum: of all q. */
    float (*attn_quantise)(int8_t *q, int32_t *ret_sum, const float *x, size_t d);
    /* s[h][16] (row stride lds) = float(q[h][d] · key) * the key's scale * scale[h]; sum[h] is of q[h] */
    void (*attn_scores_q8)(float *s, size_t lds, const int8_t *q, const float *scale, const int32_t *sum,
                           size_t n_q, const uint8_t *tile, size_t d);
    /* In place of sixteen scores: e = exp(s - the row's largest), and e * value_scale (0 where e is 0, as
     * it is where s is -infinity) as int8 of one scale, as attn_quantise; the codes are the first sixteen
     * bytes, the scale is the float at ATTN_WEIGHT_SCALE. *ret_most: the largest; returns the sum of e,
     * sixteen lanes and the tree. */
    float (*attn_weigh_q8)(float *s, size_t n_tiles, const float *value_scale, float *ret_most);
    /* y[h][d] (row stride ldy) += what v's tiles add up to under the lines w[h] (row stride ldw floats):
     * fma(float(sum of products), the line's scale, y) tile after tile */
    void (*attn_mix_q8)(float *y, size_t ldy, const float *w, size_t ldw, size_t n_q, const attn_tiles *v,
                        size_t d);
    /* y[i] = x[i] as F16, to nearest even */
    void (*to_f16)(uint16_t *y, const float *x, size_t n);
    /* and back, which is exact */
    void (*from_f16)(float *y, const uint16_t *x, size_t n);
    /* y[r] = q[d] · rows[r][d], the rows one behind the other: exact for values of -127 to 127 and d up to
     * 2^17. What a search among vectors is made of. */
    void (*dots_i8)(int32_t *y, const int8_t *q, const int8_t *rows, size_t n_rows, size_t d);
    /* Rotary embedding of n_heads × head_dim in place, first `rot_dim` of each head.
     * cos/sin [rot_dim/2]; interleaved: pairs (2i, 2i+1), else (i, i + rot_dim/2). */
    void (*rope)(float *x, size_t n_heads, size_t head_dim, size_t rot_dim, const float *cos,
                 const float *sin, bool interleaved);
} vec_kernels;

/* Of an instruction set that isa_choose gave; static. One not in this build gives scalar ones. */
const vec_kernels *vec_kernels_for(isa i);
static inline const vec_kernels *team_vec(const team *t)
{
    return vec_kernels_for(team_isa(t));
}
const vec_kernels *member_vec(const team_member *m);

/* Scalar math of the contract, for tables and samplers (double in, double out, < 2 ulp of float). */
float math_expf(float x);
float math_logf(float x);
float math_tanhf(float x);
double math_exp(double x);
double math_log(double x);
double math_pow(double base, double e); /* base > 0 */
void math_sincos(double x, double *ret_sin, double *ret_cos);

/* ---- the arbiter: whose step runs now --------------------------------------------------------- */

/* Workers on one node share its cores through a page of shared memory: a step asks for as many as its team
 * has members, and the waiter with the earliest deadline gets its next, so that the spinning teams of five
 * models never fight over two cores, and steps that fit on the cores together run side by side, each in one cache
 * domain where it fits. It survives the death of any
 * holder or waiter, and a holder that is stopped or stuck loses its cores after 250 ms. */
typedef struct arbiter arbiter;

/* The agent's. *ret_fd is close-on-exec and sealed: give it to the workers, who cannot change its size. */
int arbiter_create(arbiter **ret, int *ret_fd, shoal_err *err);
/* The same page in the agent's next life (os/handover.h). fd stays the caller's. SHOAL_EINVALID: it is
 * none. */
int arbiter_open(arbiter **ret, int fd, shoal_err *err);
/* A worker joins with the inherited fd and a slot number (0..63) that nobody else uses. */
int arbiter_join(arbiter **ret, int fd, int slot, shoal_err *err);
void arbiter_close(arbiter *a);
/* Block until n_cores are ours (0, or more than there are: all), or until it is clear that the page cannot
 * say so (a worker is stopped inside its lock): then go on. deadline_ns (clock_ns time) orders waiters;
 * UINT64_MAX is last. */
void arbiter_acquire(arbiter *a, uint64_t deadline_ns, int n_cores);
void arbiter_release(arbiter *a);
/* The cores among which arbiter_acquire gave us some: one domain (base/core_domains.h), the same each time, as long as
 * it has enough; else all. NULL: the machine has one domain. The page owns it: do not change it. */
const cpu_set_t *arbiter_cpus(const arbiter *a);
/* Does anybody wait for the cores that we have? A hint, read in a nanosecond. */
bool arbiter_is_wanted(const arbiter *a);
/* How many workers have or want cores, or did a moment ago (0.3 ms), this one included. A hint. */
int arbiter_crowd(const arbiter *a);
/* The agent, when the process in `slot` died: give back what it held or waited for. Never blocks. */
void arbiter_reap(arbiter *a, int slot);
/* The slot whose process is inside the lock now, -1 for none, and how often the lock was taken. While both
 * stay and that process does not wait for a core it hangs: kill it, the lock heals when its owner dies. Never
 * blocks. */
int arbiter_inside(const arbiter *a, uint64_t *ret_turn);
/* Does the process in that slot wait for cores? A hint. */
bool arbiter_queues(const arbiter *a, int slot);
/* Where the process in that slot counts, in the page; NULL: there is no such slot. */
progress_counts *arbiter_progress(const arbiter *a, int slot);

#endif
