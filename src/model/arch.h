/* arch.h: which tensors each architecture is made of.
 *
 * One table per architecture gives every tensor's GGUF name, its Hugging Face name and its shape in
 * terms of the configuration; '#' stands for the layer number. Loading a folder, checking a model
 * and quantising all read the same rows. */
#ifndef MODEL_ARCH_H
#define MODEL_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "model/model.h"

/* Sides of a tensor, resolved by arch_side. */
typedef enum arch_dim {
    DIM_ONE,
    DIM_EMBD,
    DIM_VOCAB,
    DIM_CTX,
    DIM_TYPES,
    DIM_FF,
    DIM_Q,  /* n_head * head_dim */
    DIM_KV, /* n_head_kv * head_dim */
    DIM_LABELS,
    DIM_ROPE, /* rope_dim / 2 */
} arch_dim;

enum {
    TENSOR_OPTIONAL = 1,
    TENSOR_ROPE_Q = 2,    /* rows are rotary pairs of n_head heads: halves in folders, interleaved in GGUF */
    TENSOR_ROPE_K = 4,    /* the same for n_head_kv heads */
    TENSOR_UNTIED = 8,    /* needed unless the model is tied */
    TENSOR_LABELLED = 16, /* needed by classifiers and taggers, absent elsewhere */
    TENSOR_POOLER = 32,   /* taken for classifiers only */
};

typedef struct arch_tensor {
    const char *gguf; /* "blk.#.attn_q.weight" */
    const char *hf;   /* "layers.#.self_attn.q_proj.weight", without "model." or "bert."; NULL: none */
    arch_dim cols, rows;
    unsigned flags;
} arch_tensor;

/* The table of an architecture, [*ret_n], static; and a side's length under a configuration. */
const arch_tensor *arch_tensors(arch a, size_t *ret_n);
size_t arch_side(const model_config *c, arch_dim d);

/* The table row of a canonical name; NULL when the architecture has no such tensor. */
const arch_tensor *arch_find(arch a, const char *gguf_name);

/* Turn a Hugging Face tensor name into the canonical one, in out[128]; false when it is none of the
 * architecture's. "model." and "bert." prefixes and old LayerNorm names (gamma, beta) are known. */
bool arch_name_from_hf(arch a, const char *hf_name, char out[128]);

/* A tensor that some files hold and no answer needs, by the name in the file. Everything else that no row
 * names is an error. */
bool arch_ignores(arch a, const char *name);

/* An activation by the names of config.json ("gelu", "silu", ...), and the name to write for one. */
bool activation_parse(const char *name, activation *ret);
const char *activation_name(activation a);

/* By the name in ARCH_TABLE; on false *ret is untouched. */
bool arch_parse(const char *name, arch *ret);
/* "llama, bert": for errors. */
const char *arch_list(void);

/* Every size within what can be a model, every divisibility; errors give the numbers. */
int arch_check_config(const model_config *c, const char *what, shoal_err *err);

/* The row a GGUF file keeps at `row` of a rotary matrix whose folder form has halves: pairs (2i, 2i+1)
 * there are (i, i + head_dim/2) here. */
size_t arch_rope_source_row(size_t row, size_t head_dim);

/* Divisors of the rotary frequencies under "llama3" scaling, n = rope_dim/2 of them (formula: the
 * Llama 3.1 reference). */
void arch_rope_factors(const model_config *c, float *out, size_t n);

#endif
