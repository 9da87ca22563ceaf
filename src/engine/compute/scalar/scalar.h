/* scalar.h: the specification kernels, gathered by scalar/table.c (inside compute/ only). */
#ifndef COMPUTE_SCALAR_H
#define COMPUTE_SCALAR_H

#include "compute/kernels.h"

#define MUL_SCALAR(name, kernel) mul_fn mul_##kernel##_scalar;
DTYPE_TABLE(MUL_SCALAR)
#undef MUL_SCALAR

void quantise_wide_scalar(const float *x, size_t n_groups, size_t group, int8_t *q, float *scale,
                          int32_t *sum);
void quantise_scalar(const float *x, size_t n_blocks, int8_t *q, float *scale, int32_t *sum, int32_t *sum16);

float dot_scalar(const float *a, const float *b, size_t n);
void axpy_scalar(float *y, float a, const float *x, size_t n);
void add_scalar(float *y, const float *x, const float *z, size_t n);
void end_rows_scalar(float *y, size_t ldy, const float *x, size_t ldx, size_t n_rows, size_t n,
                     const float *bias, bool add);
void rms_norm_scalar(float *y, const float *x, const float *w, size_t n, float eps);
void layer_norm_scalar(float *y, const float *x, const float *w, const float *b, size_t n_rows, size_t n,
                       float eps);
void softmax_scalar(float *x, size_t n);
float attn_weigh_scalar(float *s, size_t n, float *ret_most);
void attn_join_scalar(float *y, float a, const float *x, float b, size_t n);
size_t argmax_scalar(const float *x, size_t n);
float exp_scaled_scalar(float *y, const float *x, size_t n, float max, float scale);
double exp_sums_scalar(float *sums, const float *x, size_t n, float max, float scale);
void silu_mul_scalar(float *y, const float *gate, const float *up, size_t n);
void gelu_erf_scalar(float *x, size_t n);
void gelu_tanh_scalar(float *x, size_t n);
void relu_scalar(float *x, size_t n);
void tanh_scalar(float *x, size_t n);
void rope_scalar(float *x, size_t n_heads, size_t head_dim, size_t rot_dim, const float *cos,
                 const float *sin, bool interleaved);
void attn_turn_scalar(float *kt, const float *k, size_t ldk, size_t d);
void attn_scores_scalar(float *s, size_t lds, const float *q, size_t ldq, size_t n_q, const float *kt,
                        size_t d, float scale);
void attn_mix_scalar(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const float *v, size_t ldv,
                     size_t n, size_t d);
void attn_scores_f16_scalar(float *s, size_t lds, const float *q, size_t ldq, size_t n_q, const uint16_t *kt,
                            size_t d, float scale);
void attn_mix_f16_scalar(float *y, size_t ldy, const float *p, size_t ldp, size_t n_q, const uint16_t *v,
                         size_t ldv, size_t n, size_t d);
void to_f16_scalar(uint16_t *y, const float *x, size_t n);
void from_f16_scalar(float *y, const uint16_t *x, size_t n);
float attn_quantise_scalar(int8_t *q, int32_t *ret_sum, const float *x, size_t d);
void attn_scores_q8_scalar(float *s, size_t lds, const int8_t *q, const float *scale, const int32_t *sum,
                           size_t n_q, const uint8_t *tile, size_t d);
float attn_weigh_q8_scalar(float *s, size_t n_tiles, const float *value_scale, float *ret_most);
void attn_mix_q8_scalar(float *y, size_t ldy, const float *w, size_t ldw, size_t n_q, const attn_tiles *v,
                        size_t d);
void dots_i8_scalar(int32_t *y, const int8_t *q, const int8_t *rows, size_t n_rows, size_t d);

#endif
