/* scalar/table.c: the table of the specification kernels. */
#include "compute/scalar/scalar.h"

static const vec_kernels vec_scalar = {
    .dot = dot_scalar,
    .axpy = axpy_scalar,
    .attn_scores = attn_scores_scalar,
    .attn_mix = attn_mix_scalar,
    .attn_scores_f16 = attn_scores_f16_scalar,
    .attn_mix_f16 = attn_mix_f16_scalar,
    .to_f16 = to_f16_scalar,
    .from_f16 = from_f16_scalar,
    .attn_weigh = attn_weigh_scalar,
    .attn_join = attn_join_scalar,
    .attn_quantise = attn_quantise_scalar,
    .attn_scores_q8 = attn_scores_q8_scalar,
    .attn_weigh_q8 = attn_weigh_q8_scalar,
    .attn_mix_q8 = attn_mix_q8_scalar,
    .dots_i8 = dots_i8_scalar,
    .add = add_scalar,
    .end_rows = end_rows_scalar,
    .rms_norm = rms_norm_scalar,
    .layer_norm = layer_norm_scalar,
    .softmax = softmax_scalar,
    .argmax = argmax_scalar,
    .exp_scaled = exp_scaled_scalar,
    .exp_sums = exp_sums_scalar,
    .silu_mul = silu_mul_scalar,
    .gelu_erf = gelu_erf_scalar,
    .gelu_tanh = gelu_tanh_scalar,
    .relu = relu_scalar,
    .tanh = tanh_scalar,
    .rope = rope_scalar,
    .attn_turn = attn_turn_scalar,
};

const kernels kernels_scalar = {
#define ROW(name, kernel) [DT_##name] = mul_##kernel##_scalar,
    .one = {4, 1},
    .many = {2, 4},
    .wide = {2, 4},
    .mul = {DTYPE_TABLE(ROW)},
#undef ROW
    .quantise = quantise_scalar,
    .quantise_wide = quantise_wide_scalar,
    .vec = &vec_scalar,
};
