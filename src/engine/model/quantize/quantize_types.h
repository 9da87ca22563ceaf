/* quantize_types.h: which type each tensor of a file becomes.
 *
 * In order of strength: the last override with a '*' that matches the tensor's name, the longest override
 * that its class begins with, the mixture (Q4_K_M), the type that was asked for. A row that is no multiple
 * of the type's block takes the type that the field falls back to, and at last F16.
 *
 *     quantize_types r;
 *     int rc = quantize_types_init(&r, opts, m, mem, err);     "blk.*.ffn_down=q6_k", "ffn=q8_0"
 *     dtype t = quantize_types_choose(&r, rule, "blk.3.ffn_down.weight", 576);
 *     rc = quantize_types_finish(&r, err);                           an override that fitted nothing */
#ifndef MODEL_QUANTIZE_QUANTIZE_TYPES_H
#define MODEL_QUANTIZE_QUANTIZE_TYPES_H

#include "base/arena.h"
#include "model/arch/arch.h"
#include "model/model.h"

typedef struct quantize_types {
    const quantize_options *opts;
    size_t n_layer;
    bool own_output; /* there is an output.weight: token_embd is only looked up */
    struct quantize_override *overrides;
    quantize_report *report; /* gets the fallbacks; NULL: nobody reads them (make_model) */
} quantize_types;

/* Overrides that cannot be read are SHOAL_EINVALID. `mem` must outlive r. */
int quantize_types_init(quantize_types *r, const quantize_options *opts, const model *m, arena *mem,
                        quantize_report *report, shoal_err *err);
/* The type of a matrix with rows of `cols`; name: as GGUF has it. */
dtype quantize_types_choose(quantize_types *r, const tensor_rule *rule, const char *name, size_t cols);
/* t, or the nearest type that rows of `cols` are whole blocks of. */
dtype quantize_types_fit(dtype t, size_t cols);
/* After all choices: SHOAL_EINVALID names an override that fitted no tensor. */
int quantize_types_finish(const quantize_types *r, shoal_err *err);

/* "blk.3.attn_q.weight" -> "attn_q", "enc.blk.3.attn_q.weight" -> "enc.attn_q"; biases and norms are
 * classes of their own: "attn_q.bias". */
void quantize_types_class(const char *name, char out[48]);
/* general.file_type of what opts ask for. */
uint32_t quantize_types_file_type(const quantize_options *opts);

#endif
