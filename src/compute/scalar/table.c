/* scalar/table.c: the table of the specification kernels. */
#include "compute/scalar/scalar.h"

const kernels kernels_scalar = {
    .mul = {[DT_F32] = mul_f32_scalar,
            [DT_F16] = mul_f16_scalar,
            [DT_BF16] = mul_bf16_scalar,
            [DT_Q8_0] = mul_q8_0_scalar,
            [DT_Q4_0] = mul_q4_0_scalar,
            [DT_Q4_1] = mul_q4_1_scalar},
    .quantise = quantise_scalar,
    .vec = {.dot = dot_scalar,
            .axpy = axpy_scalar,
            .attn_scores = attn_scores_scalar,
            .attn_mix = attn_mix_scalar,
            .add = add_scalar,
            .rms_norm = rms_norm_scalar,
            .layer_norm = layer_norm_scalar,
            .softmax = softmax_scalar,
            .silu_mul = silu_mul_scalar,
            .gelu_erf = gelu_erf_scalar,
            .gelu_tanh = gelu_tanh_scalar,
            .relu = relu_scalar,
            .tanh = tanh_scalar,
            .rope = rope_scalar},
};
