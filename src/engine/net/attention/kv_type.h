/* kv_type.h: what keys and values are kept as, by the names that people give it.
 *
 *     kv_type t;
 *     if (!kv_type_parse("q8_0", &t)) ...                 the choice is in kv_type_choices
 *
 * Half as many bytes as F16, and integer dots: q8_0 is told in compute.h, attn_scores_q8. */
#ifndef NET_ATTENTION_KV_TYPE_H
#define NET_ATTENTION_KV_TYPE_H

#include <stdbool.h>

#include "compute/compute.h"

typedef enum kv_type {
    KV_AS_WEIGHTS, /* F16 where a model's weights are of a block type, else F32 */
    KV_F32,
    KV_F16,
    KV_Q8_0,
    KV_TYPE_COUNT
} kv_type;

/* "f32", "f16", "q8_0", or "" for KV_AS_WEIGHTS; anything else: false, and *ret as it was. */
bool kv_type_parse(const char *name, kv_type *ret);
const char *kv_type_name(kv_type t);      /* "" for KV_AS_WEIGHTS */
dtype kv_type_dtype(kv_type t);           /* not of KV_AS_WEIGHTS */
extern const char *const kv_type_choices; /* for a message: "f32, f16 or q8_0" */

#endif
