/* registry.h: every family that model/ knows, one line each. */
#ifndef MODEL_ARCH_REGISTRY_H
#define MODEL_ARCH_REGISTRY_H

#include "model/arch/arch.h"

#define ARCH_REGISTRY(X) \
    X(arch_llama)        \
    X(arch_qwen2)        \
    X(arch_qwen3)        \
    X(arch_qwen3moe)     \
    X(arch_phi2)         \
    X(arch_phi3)         \
    X(arch_gpt2)         \
    X(arch_gptneo)       \
    X(arch_gptneox)      \
    X(arch_opt)          \
    X(arch_gemma)        \
    X(arch_gemma2)       \
    X(arch_gemma3)       \
    X(arch_smollm3)      \
    X(arch_granite)      \
    X(arch_stablelm)     \
    X(arch_olmo2)        \
    X(arch_lfm2)         \
    X(arch_bert)         \
    X(arch_roberta)      \
    X(arch_distilbert)   \
    X(arch_electra)      \
    X(arch_albert)       \
    X(arch_mpnet)        \
    X(arch_modernbert)   \
    X(arch_deberta)      \
    X(arch_t5)           \
    X(arch_bart)         \
    X(arch_mbart)        \
    X(arch_marian)       \
    X(arch_whisper)      \
    X(arch_vit)          \
    X(arch_lstm)         \
    X(arch_gru)

#define ARCH_DECLARE(a) extern const arch_def a;
ARCH_REGISTRY(ARCH_DECLARE)
#undef ARCH_DECLARE

#endif
