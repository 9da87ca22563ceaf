/* config.h: what a network is, in terms of what it computes.
 *
 * A family (model/arch/) fills this from a file; infer/ reads nothing else, so that a network is known by its
 * operations and never by its family. A zeroed field means "none" unless its comment says otherwise.
 *
 *     Llama 3:  norm {RMS, PRE}, pos {rope theta 5e5, llama3}, attn {32 heads, 8 kv}, ffn {gated silu}
 *     BERT:     norm {LAYER, POST, embedding}, pos {learned}, attn {12 heads}, ffn {gelu}, head {pooler tanh}
 *     Gemma 2:  norm {RMS, SANDWICH}, attn {softcap 50, window 4096}, layers {LOCAL, 0, LOCAL, ...} */
#ifndef MODEL_CONFIG_CONFIG_H
#define MODEL_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/sampling.h"

/* arch.h: the description of the family that filled this, for its name. */
typedef struct arch_def arch_def;
const char *arch_name(const arch_def *a);

/* X(enum, name in shoal.task, manifests and the API) */
#define TASK_TABLE(X)                \
    X(TASK_GENERATE, "generate")     \
    X(TASK_CLASSIFY, "classify")     \
    X(TASK_TAG, "tag")               \
    X(TASK_EMBED, "embed")           \
    X(TASK_RERANK, "rerank")         \
    X(TASK_FILL_MASK, "fill-mask")   \
    X(TASK_SEQ2SEQ, "seq2seq")       \
    X(TASK_TRANSCRIBE, "transcribe") \
    X(TASK_SCORE, "score")           \
    X(TASK_IMAGE, "classify-image")  \
    X(TASK_VAD, "vad")
typedef enum model_task {
#define TASK_ENUM(e, name) e,
    TASK_TABLE(TASK_ENUM)
#undef TASK_ENUM
        TASK_COUNT
} model_task;
const char *task_name(model_task t);
bool task_parse(const char *name, model_task *ret);

typedef enum { ACT_SILU, ACT_GELU_ERF, ACT_GELU_TANH, ACT_RELU, ACT_TANH, ACT_NONE } activation;

/* ---- norms --------------------------------------------------------------------------------------- */

typedef enum { NORM_RMS, NORM_LAYER } norm_kind; /* Zhang & Sennrich 2019; Ba et al. 2016 */

/* Where they stand around a branch f (attention, feed-forward) of the residual stream x. Tensors of a layer:
 * attn_norm and ffn_norm in front; attn_post_norm and ffn_post_norm behind. */
typedef enum {
    PLACE_PRE,      /* x += f(norm(x)) */
    PLACE_POST,     /* x = norm(x + f(x)): the original Transformer, BERT */
    PLACE_SANDWICH, /* x += post(f(norm(x))): Gemma 2 */
    PLACE_OUTPUT,   /* x += post(f(x)): OLMo 2 */
} norm_place;

typedef struct norm_conf {
    norm_kind kind;
    norm_place place;
    float eps;
    bool embedding; /* a norm behind the embeddings (token_embd_norm) */
    bool final;     /* a norm behind the last layer (output_norm) */
} norm_conf;

/* ---- positions ----------------------------------------------------------------------------------- */

typedef enum { ROPE_PLAIN, ROPE_LINEAR, ROPE_DYNAMIC, ROPE_LLAMA3, ROPE_YARN, ROPE_LONG } rope_scaling;

typedef struct rope_conf {
    size_t dim;       /* rotated dimensions of a head, even; 0: no rotary embedding */
    bool interleaved; /* pairs (2i, 2i+1), as GGUF keeps llama's; else (i, i + dim/2) */
    double theta;
    rope_scaling scaling;
    double factor;               /* all but PLAIN; LINEAR: frequencies are divided by it */
    double low_freq, high_freq;  /* LLAMA3 */
    double beta_fast, beta_slow; /* YARN (Peng et al. 2023); 32 and 1 */
    double attn_factor;          /* YARN, LONG: cos and sin are multiplied by it; 0: the method's own */
    size_t original_ctx;         /* LLAMA3, YARN, LONG, DYNAMIC: what the model was trained on */
    /* LONG: [dim/2] divisors of the frequencies, within and past original_ctx. */
    const float *short_by, *long_by;
} rope_conf;

/* Learned bias by distance (T5: Raffel et al. 2019; MPNet), added to the scores of every layer. */
typedef struct bucket_conf {
    size_t n, max_distance; /* n 0: none */
} bucket_conf;

typedef struct pos_conf {
    bool learned;    /* position_embd rows are added to the tokens */
    bool sinusoidal; /* the fixed table of Vaswani et al. 2017, sines then cosines, instead */
    size_t offset;   /* rows of a folder's file in front of position 0 (2 for OPT and BART, pad + 1 for
                        RoBERTa); model_open leaves them out and has 0 here */
    rope_conf rope;
    rope_conf local; /* of LAYER_LOCAL layers where they have another (dim > 0): Gemma 3, ModernBERT */
    bucket_conf buckets;
    size_t relative; /* DeBERTa: log-bucketed relative positions, so many buckets a side; 0: none */
    size_t relative_max;
} pos_conf;

/* ---- attention ------------------------------------------------------------------------------------ */

typedef enum {
    QK_NORM_NONE,
    QK_NORM_HEAD,  /* attn_q_norm, attn_k_norm [head_dim]: each head, one weight: Qwen 3, Gemma 3 */
    QK_NORM_WIDTH, /* [n_head * head_dim]: the whole width before heads are split: OLMo 2 */
    QK_NORM_EACH,  /* [n_head][head_dim]: each head, a weight of its own: StableLM 2 12B */
} qk_norm;

typedef struct attn_conf {
    size_t n_head, n_head_kv, head_dim;
    float scale;   /* of the scores; 0: 1 / sqrt(head_dim) */
    float softcap; /* s = cap * tanh(s / cap); 0: none */
    size_t window; /* of LAYER_LOCAL layers: a token sees this many tokens, itself among them (decoders), or
                      window/2 to each side (encoders) */
    qk_norm qk_norm;
    bool causal; /* an embedder whose tokens see what stands before them only: a decoder's layers */
} attn_conf;

/* ---- feed-forward ---------------------------------------------------------------------------------- */

typedef struct ffn_conf {
    activation act;
    bool gated; /* act(gate(x)) * up(x), else act(up(x)) */
    size_t n_ff;
    /* mixture of experts (Shazeer et al. 2017): the router's n_used best of n_expert; 0: dense */
    size_t n_expert, n_used, n_ff_expert;
    bool sum_to_one; /* the weights of the chosen are divided by their sum */
} ffn_conf;

/* What sets a layer apart. */
enum {
    LAYER_LOCAL = 1, /* attends within attn.window */
    LAYER_NO_ROPE = 2,
    LAYER_CONV = 4,   /* a short convolution instead of attention: LFM2 */
    LAYER_DENSE = 8,  /* no experts although the model has them */
    LAYER_NO_PRE = 16 /* no norm in front of attention: ModernBERT's first, behind the embeddings' */
};

typedef enum {
    BRANCH_SERIAL,
    BRANCH_ONE_NORM, /* x += attn(n) + ffn(n), n = norm(x): Phi */
    BRANCH_TWO_NORMS /* x += attn(norm1(x)) + ffn(norm2(x)): GPT-NeoX */
} branch_kind;

/* ---- heads ------------------------------------------------------------------------------------------ */

typedef enum { POOL_MEAN, POOL_CLS, POOL_LAST } pooling;

/* What stands in front of a classifier's last matrix ("cls.output"): a dense layer "cls" with `act`, or none.
 */
typedef struct head_conf {
    bool dense;
    activation act;
    bool norm;      /* a norm behind the activation ("cls.norm"): ModernBERT, BERT's fill-mask head */
    pooling pool;   /* what a classifier reads, and how embeddings are pooled */
    bool normalize; /* L2-normalise embeddings */
    size_t n_labels;
    const char **labels; /* n_labels names, owned by the model */
    bool multi_label;    /* sigmoid rather than softmax scores */
} head_conf;

/* ---- other inputs ------------------------------------------------------------------------------------- */

typedef struct source_conf { /* the encoder of an encoder-decoder; its decoder is the rest of model_config */
    size_t n_layer, n_head, n_ff, n_ctx;
    size_t n_mel;    /* speech: log-mel bands in front of two convolutions; n_ctx counts frames behind them */
    bool final_norm; /* a norm behind the encoder's last layer */
} source_conf;

typedef struct image_conf {
    size_t size, patch, channels; /* square images, square patches */
} image_conf;

typedef enum { CELL_LSTM, CELL_GRU } cell_kind;
typedef struct series_conf {
    cell_kind cell;
    size_t n_input, n_hidden;
} series_conf;

typedef struct model_config {
    const arch_def *arch;
    /* A classifier of one label (a cross-encoder) says CLASSIFY and can rerank, by its logit. */
    model_task task;
    size_t n_vocab, n_ctx, n_embd, n_layer;
    /* Tokens of a text that the author of an embedder lets it read, fewer than n_ctx; 0: n_ctx. */
    size_t n_text;
    /* Width of the embeddings where another matrix widens them: ELECTRA, ALBERT; 0: n_embd. */
    size_t n_embd_in;
    size_t n_layer_file; /* layers that the file has, used in turn: ALBERT; 0: n_layer */
    norm_conf norm;
    pos_conf pos;
    attn_conf attn;
    ffn_conf ffn;
    branch_kind branch;
    const uint8_t *layers; /* [n_layer] LAYER_ flags, or NULL: all 0 */
    size_t n_conv;         /* taps of LAYER_CONV layers */
    struct {
        float embd;     /* embeddings are multiplied by it; 0: 1 */
        float residual; /* branches, before they are added; 0: 1 */
        float logits;   /* logits; 0: 1 */
        float softcap;  /* logits = cap * tanh(logits / cap); 0: none */
    } scale;
    bool tied;      /* the output projection is token_embd */
    size_t n_types; /* token type embeddings */
    head_conf head;
    source_conf source;
    image_conf image;
    series_conf series;
    int32_t eos_ids[64]; /* any of them ends a reply */
    size_t n_eos;
    sampling_defaults sampling;    /* how its author wants replies drawn */
    const char *sampling_left_out; /* which of these values cannot be used, and why; NULL: none */
    int32_t start_id;              /* what an encoder-decoder's reply begins with */
} model_config;

static inline unsigned config_layer(const model_config *c, size_t layer)
{
    return c->layers ? c->layers[layer] : 0;
}

#endif
