/* widen.h: element types of safetensors that nothing computes with -> one that something does. */
#ifndef MODEL_WIDEN_H
#define MODEL_WIDEN_H

#include <stdbool.h>
#include <stddef.h>

#include "compute/compute.h"

/* The type that values of a safetensors dtype become: F64 -> F32 (rounded), F8_E4M3 and F8_E5M2 -> F16
 * (exact); false when there is none, for integers. *ret_bytes: of one element as stored. */
bool widen_type(const char *dtype_name, dtype *ret, size_t *ret_bytes);

/* Convert n values; dst has room for n of widen_type's. Neither needs alignment. Formats: IEEE 754, and
 * Micikevicius et al. 2022, arXiv:2209.05433. */
void widen_values(const char *dtype_name, const void *src, void *dst, size_t n);

#endif
