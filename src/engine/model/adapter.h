/* adapter.h: low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685) of a model that is open.
 *
 * An adapter changes matrices W of its base to W + scale * B A without touching them: A [rank][cols] and
 * B [rows][rank] are small, kept as floats beside the base and run beside it (net/block.h, blk_linear).
 * Files are PEFT folders (adapter_config.json and adapter_model.safetensors) and GGUF files of general.type
 * "adapter". Names are matched through the base's family (arch.h), so that a fused matrix of the folder
 * (phi3's qkv_proj, GPT-2's c_attn) becomes a row of matrices here, and rows of q and k have the order that
 * the base's have, whichever kind of file either came from.
 *
 *     adapter *a; adapter_open(&a, "my-lora", 1, base, &err);
 *     const adapter_matrix *d = adapter_find(a, model_tensor(base, "blk.0.attn_q.weight"));   NULL: as it was
 *     adapter_unref(a);
 *
 * An adapter is immutable and counted: any thread. It points to its base, which must outlive it. */
#ifndef MODEL_ADAPTER_H
#define MODEL_ADAPTER_H

#include "base/sha256.h"
#include "model/model.h"

#define ADAPTER_RANK_MAX 1024

typedef struct adapter adapter;

typedef struct adapter_matrix {
    const tensor *base;
    size_t rank, rows, cols;
    float scale;
    const float *a; /* [rank][cols] */
    const float *b; /* [rank][rows]: B turned, so that a step adds up its columns */
} adapter_matrix;

/* strength: a factor on top of the adapter's own scale, 1 as it was trained. Refused, with the reason: what
 * is no LoRA or changes more than matrices (DoRA, biases, saved modules, embeddings), experts, shapes that
 * are not the base's, another architecture, and a tensor that would be left out. *ret has one reference. */
int adapter_open(adapter **ret, const char *path, float strength, const model *base, shoal_err *err);
/* The same of bytes, which are not needed afterwards: a PEFT folder's two files, resp. a GGUF file. `what`
 * names them in errors. */
int adapter_from_peft(adapter **ret, const char *config, size_t config_len, const void *weights, size_t len,
                      const char *what, float strength, const model *base, shoal_err *err);
int adapter_from_gguf(adapter **ret, const void *data, size_t len, const char *what, float strength,
                      const model *base, shoal_err *err);

void adapter_ref(adapter *a);
void adapter_unref(adapter *a); /* frees with the last; NULL is fine */

/* What it does to a tensor of its base; NULL: nothing. Constant time. */
const adapter_matrix *adapter_find(const adapter *a, const tensor *base);
size_t adapter_count(const adapter *a); /* matrices that it changes */
/* Of its files and its strength: adapters that answer differently have different digests. */
const sha256_digest *adapter_digest(const adapter *a);

#endif
