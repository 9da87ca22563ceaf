/* registry.h: every family that model/ knows, one line each. */
#ifndef MODEL_ARCH_REGISTRY_H
#define MODEL_ARCH_REGISTRY_H

#include "model/arch.h"

#define ARCH_REGISTRY(X) \
    X(arch_llama)        \
    X(arch_bert)

#define ARCH_DECLARE(a) extern const arch_def a;
ARCH_REGISTRY(ARCH_DECLARE)
#undef ARCH_DECLARE

#endif
