/* make_model.h: models of the usual shapes with random weights, to measure with.
 *
 * How fast a network is depends on its shape and its types and not on what it has learned, so nobody needs to
 * fetch a gigabyte to compare engines:
 *
 *     make_options o = {.type = DT_Q4_0};
 *     rc = make_model("llama-1.1b", "big.gguf", &o, &report, &err);
 *
 * The file is a GGUF that other engines load too: the family's own keys and tensors (model/arch), norms of 1,
 * biases of 0, matrices of bell-shaped values, and a tokenizer whose pieces are letters and what they join
 * to. The same shape, type, context and seed give the same bytes everywhere. Matrices are put together from a
 * pool of blocks that were quantised once, so that writing is as fast as the disk and memory stays a few MiB.
 */
#ifndef MODEL_MAKE_MODEL_H
#define MODEL_MAKE_MODEL_H

#include "model/model.h"

typedef struct make_shape {
    const char *name, *arch, *about; /* about: "the shape of TinyLlama" */
    size_t n_vocab, n_embd, n_layer, n_head, n_head_kv, n_ff, n_ctx;
    size_t head_dim;   /* 0: n_embd / n_head */
    double rope_theta; /* 0: none, an encoder with learned positions */
    bool tied, attn_bias;
} make_shape;

/* The i-th shape, NULL behind the last; and by name. */
const make_shape *make_shape_at(size_t i);
const make_shape *make_shape_find(const char *name);

typedef struct make_options {
    dtype type; /* of matrices, and whether the field's mixture of it: quantize_parse_type */
    bool medium;
    size_t n_ctx; /* 0: the shape's */
    uint64_t seed;
    const char *name; /* general.name; NULL: the shape's */
    /* Not 0: stop here, with SHOAL_ECANCELLED and nothing written. */
    int (*progress)(void *user, size_t done, size_t total, const char *tensor);
    void *user;
} make_options;

typedef struct make_report {
    size_t n_tensors;
    uint64_t n_weights, bytes;
    sha256_digest digest;
} make_report;

/* Write `out` (through a temporary: a full disk leaves the old file). SHOAL_ENOTFOUND: no such shape. */
int make_model(const char *shape, const char *out, const make_options *o, make_report *ret, shoal_err *err);

/* tokenizer.* of n_vocab made-up pieces: SentencePiece's kind, or WordPiece where `wordpiece` says so (BERT's
 * control tokens at their usual places). n_vocab: 400 at least. */
struct gguf_out;
int make_tokenizer(struct gguf_out *o, size_t n_vocab, bool wordpiece, shoal_err *err);

#endif
