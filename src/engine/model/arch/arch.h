/* arch.h: a family of networks is one description, an arch_def in model/arch/NAME.c.
 *
 * It says what a file calls the family, which tensors it is made of and where the configuration stands.
 * Reading a GGUF file, reading a Hugging Face folder, checking a model and writing GGUF all go by the same
 * rows, so that none of them knows a family. Adding one is one file and one line in arch/registry.h:
 *
 *     static const tensor_rule rules[] = {
 *         TENSOR("blk.#.attn_q.*", "layers.#.self_attn.q_proj.*", RULE_BIAS, DIM_Q, DIM_EMBD),
 *         {0}};
 *     const arch_def arch_qwen2 = {
 *         .name = "qwen2", .hf_types = NAMES("qwen2"), .task = TASK_GENERATE,
 *         .conf = {conf_sizes, conf_decoder}, .tensors = {rules, rules_decoder}, .rope = true};
 *
 * In a name '#' is the layer, '@' the expert and '*' "weight" or "bias". All of it is constant data. */
#ifndef MODEL_ARCH_ARCH_H
#define MODEL_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

/* ---- tensors ----------------------------------------------------------------------------------------- */

/* Sides of a tensor, resolved by arch_side. */
typedef enum arch_dim {
    DIM_END, /* no further side */
    DIM_ONE,
    DIM_EMBD,
    DIM_EMBD_IN, /* n_embd_in, or n_embd where there is none */
    DIM_VOCAB,
    DIM_CTX,
    DIM_TYPES,
    DIM_FF,
    DIM_Q,     /* n_head * head_dim */
    DIM_KV,    /* n_head_kv * head_dim */
    DIM_HEAD,  /* head_dim */
    DIM_HEADS, /* n_head */
    DIM_HEADS_KV,
    DIM_ROPE, /* rope.dim / 2 */
    DIM_LABELS,
    DIM_EXPERTS,
    DIM_FF_EXPERT,
    DIM_THREE,
    DIM_THREE_EMBD, /* 3 n_embd */
    DIM_TAPS,       /* n_conv */
    DIM_BUCKETS,
    DIM_RELATIVE, /* 2 * pos.relative */
    DIM_SOURCE_CTX,
    DIM_SOURCE_FF,
    DIM_MEL,
    DIM_PATCH,
    DIM_CHANNELS,
    DIM_PLACES, /* an image's patches and the class token */
    DIM_GATES,  /* 4 n_hidden of an LSTM, 3 of a GRU */
    DIM_HIDDEN,
    DIM_CELL_IN, /* n_input of the first recurrent layer, n_hidden of the others */
} arch_dim;

/* What a rule says of its tensor: RULE_ how a file has it, WHEN_ when it is there; all WHEN_ that are set must
 * hold. A row joins them with '|'. */
typedef uint64_t rule_flags;
#define RULE_FLAG(bit) (UINT64_C(1) << (bit))

#define RULE_OPTIONAL   RULE_FLAG(0)
#define RULE_BIAS       RULE_FLAG(1) /* '*' is "bias" too: [rows] */
#define RULE_BIAS_MAYBE RULE_FLAG(2) /* and it may be absent */
#define RULE_ALIAS      RULE_FLAG(3) /* another name in files of a tensor that has its own rule */
#define RULE_FUSED      RULE_FLAG(4) /* the file's tensor holds the rows of all rules of this source, in order */
#define RULE_SMALL      RULE_FLAG(5) /* F16 when quantised: errs in every token, or is a head's last matrix */
#define RULE_FLOAT      RULE_FLAG(6) /* F32 always */
/* How a folder's form differs */
#define RULE_TRANSPOSED RULE_FLAG(7)  /* [cols][rows] */
#define RULE_PER_HEAD   RULE_FLAG(8)  /* fused rows take turns head by head: GPT-NeoX */
#define RULE_OFFSET     RULE_FLAG(9)  /* pos.offset rows stand in front, which are left out */
#define RULE_ROPE_Q     RULE_FLAG(10) /* rows are rotary pairs of n_head heads, see arch_def.pairs */
#define RULE_ROPE_K     RULE_FLAG(11) /* the same for n_head_kv heads */

/* Of the model (arch_rule.c: rule_wanted) */
#define WHEN_UNTIED     RULE_FLAG(20)
#define WHEN_GATED      RULE_FLAG(21)
#define WHEN_PLAIN_FFN  RULE_FLAG(22) /* not gated */
#define WHEN_LABELS     RULE_FLAG(23) /* classifiers, taggers */
#define WHEN_DENSE_HEAD RULE_FLAG(24)
#define WHEN_MASK       RULE_FLAG(25) /* fill-mask heads */
#define WHEN_LEARNED    RULE_FLAG(26) /* learned positions */
#define WHEN_TYPES      RULE_FLAG(27) /* token types */
#define WHEN_WIDENED    RULE_FLAG(28) /* n_embd_in is another width */
#define WHEN_QK_NORM    RULE_FLAG(29)
#define WHEN_FFN_NORM   RULE_FLAG(30) /* there is a norm in front of the feed-forward */
#define WHEN_POST       RULE_FLAG(31) /* norms stand behind the sums (PLACE_POST) */
#define WHEN_FRONT      RULE_FLAG(32) /* they do not */
#define WHEN_FINAL      RULE_FLAG(33) /* a norm behind the last layer */
/* Of this layer */
#define WHEN_EXPERTS RULE_FLAG(50) /* it has experts */
#define WHEN_DENSE   RULE_FLAG(51) /* it has none */
#define WHEN_CONV    RULE_FLAG(52) /* it is a short convolution */
#define WHEN_ATTN    RULE_FLAG(53) /* it attends */
#define WHEN_PRE     RULE_FLAG(54) /* it has a norm in front of attention */

typedef struct tensor_rule {
    const char *name;      /* in memory, and in GGUF unless the last field says otherwise */
    const char *hf;        /* in a folder, without the family's prefixes; NULL: none */
    unsigned char dims[4]; /* arch_dim, outermost first */
    rule_flags flags;
    const char *gguf;
} tensor_rule;

/* A row: its names, flags and sides; and one that GGUF calls something else. */
#define TENSOR(name, hf, flags, ...)         \
    {                                        \
        name, hf, {__VA_ARGS__}, flags, NULL \
    }
#define TENSOR_IN(gguf, name, hf, flags, ...) \
    {                                         \
        name, hf, {__VA_ARGS__}, flags, gguf  \
    }

/* ---- configuration ------------------------------------------------------------------------------------ */

typedef enum {
    CONF_SIZE,
    CONF_INT,
    CONF_F32,
    CONF_F64,
    CONF_BOOL,
    CONF_CHOICE,
    CONF_ACT,
    CONF_FALSE
} conf_type;

enum {
    CONF_NEEDED = 1,
    CONF_ODD = 2,   /* written only where it differs from the family's base */
    CONF_SAME = 4,  /* says again what another row said; anything else is refused */
    CONF_QUIET = 8, /* read, and not written here */
    CONF_TOLD = 16, /* a GGUF file must say it; folders may leave it to the family's base */
};

/* One value: read from either kind of file and written to GGUF. CONF_FALSE is no value: what other files
 * of the family have set and this engine does not compute. CONF_CHOICE: an enum, of which the file says true
 * for `max` and false for `min`. */
typedef struct conf_row {
    const char *gguf; /* behind "ARCH.", or in full from "shoal." or "tokenizer." on; NULL: not there */
    const char *json; /* names in config.json, newest first, spaces between; NULL: not there */
    size_t offset;    /* in model_config */
    conf_type type;
    unsigned flags;
    double min, max;
} conf_row;

#define CONF_AT(field) offsetof(model_config, field)
#define CONF_END \
    {            \
        0        \
    }

/* ---- families --------------------------------------------------------------------------------------- */

struct gguf_out;
struct conf; /* conf.h: where a configuration is read from */

enum { ARCH_LISTS = 5 };

typedef const char *const *name_list; /* ends with NULL */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define CAN(task)  (1u << (task))

typedef struct arch_def {
    const char *name;                       /* general.architecture of what is written */
    const char *const *gguf_names;          /* others that are read */
    const char *const *hf_types;            /* model_type */
    model_task task;                        /* what it is for when the file does not say */
    unsigned tasks;                         /* all it can be for, CAN(TASK_...) */
    model_config base;                      /* what every one of the family has in common */
    const conf_row *conf[ARCH_LISTS];       /* each ends with CONF_END; read and written in order */
    const tensor_rule *tensors[ARCH_LISTS]; /* each ends with {0} */
    const char *const *prefixes;            /* of folders' tensor names, taken off in this order */
    const char *const *ignored;             /* tensors nobody needs; '*' at the end stands for any rest */
    bool rope;                              /* has rotary embeddings */
    bool pairs;                             /* GGUF files keep q and k as pairs (2i, 2i+1) */
    bool norms_plus_one;                    /* folders keep norms' weights less 1 */
    bool text_config;                       /* folders may keep the configuration in "text_config" */
    bool needs_pooler;                      /* classifiers read a dense layer that older converters lose */
    /* Adds what rows cannot say, allocated from conf's arena; NULL: nothing. */
    int (*finish)(struct conf *s, model_config *c);
    /* Writes what rows cannot say; NULL: nothing. */
    void (*write)(struct gguf_out *o, const model_config *c);
} arch_def;

/* By the name in GGUF, or by model_type; NULL when there is none. */
const arch_def *arch_by_gguf(const char *name);
const arch_def *arch_by_hf(const char *model_type);
const char *arch_name(const arch_def *a);
/* The i-th family; NULL behind the last. */
/* The supported name most like `name`: by a common beginning, else by edit distance. */
const char *arch_closest(const char *name, bool gguf);

/* ---- rules ------------------------------------------------------------------------------------------ */

/* Where a name matched a rule. */
typedef struct rule_hit {
    const tensor_rule *rule;
    size_t layer, expert; /* 0 where the name has none */
    bool layered, bias;
} rule_hit;

typedef enum { NAME_MEMORY, NAME_GGUF, NAME_HF } name_kind;

/* The i-th rule of a family, NULL behind the last. */
const tensor_rule *arch_rule(const arch_def *a, size_t i);
/* What a rule calls its tensor in this kind of file; NULL when it is not there. */
const char *rule_pattern(const tensor_rule *r, name_kind kind);
/* True when `name` is one of the rule's; NAME_HF names without prefixes. */
bool rule_match(const tensor_rule *r, name_kind kind, const char *name, rule_hit *ret);
/* The hit's name in out[128]. */
void rule_name(const rule_hit *h, name_kind kind, char out[128]);
/* The rule of a name in memory; false when there is none. */
bool arch_find(const arch_def *a, const char *name, rule_hit *ret);
/* A folder's name without the family's prefixes and with today's names of norms (older: gamma, beta), in
 * out[128]; false when it is too long to be anybody's. */
bool arch_plain_name(const arch_def *a, const char *hf_name, char out[128]);
/* A tensor that some files hold and no answer needs, by the plain name. */
bool arch_ignores(const arch_def *a, const char *name);

size_t arch_side(const model_config *c, unsigned dim, size_t layer);
/* The shape a hit has in memory, innermost first as in tensor.dims; returns the number of sides. */
size_t rule_shape(const model_config *c, const rule_hit *h, size_t dims[4]);
/* How often a rule's '#' counts under this configuration; 1 where it has none. */
size_t rule_layers(const model_config *c, const tensor_rule *r);
/* Rows of the file's tensor that stand before this rule's `own`, and of all; rows are dims[1], or the
 * elements of a vector. More than its own where rules share a tensor (RULE_FUSED), or rows are left out. */
void rule_place_rows(const model_config *c, const rule_hit *h, name_kind kind, size_t own, size_t *ret_before,
                     size_t *ret_all);
/* Row r of the rule's rows is this row of a folder's tensor, where fused rows take turns head by head
 * (RULE_PER_HEAD; parts of one width). */
size_t rule_turn_row(size_t r, size_t before, size_t all, size_t own, size_t head_dim);
/* True when a model of this configuration has the rule's tensor in this layer. */
bool rule_wanted(const model_config *c, const tensor_rule *r, size_t layer);

/* ---- values ----------------------------------------------------------------------------------------- */

/* An activation by the names of config.json ("gelu", "silu", ...), and the name to write for one. */
bool activation_parse(const char *name, activation *ret);
const char *activation_name(activation a);

/* Every size within what can be a model, every divisibility; errors give the numbers. */
int arch_check_config(const model_config *c, const char *what, shoal_err *err);

/* The row a GGUF file keeps at `row` of a rotary matrix whose folder form has halves: pairs (2i, 2i+1)
 * there are (i, i + head_dim/2) here. */
size_t arch_rope_source_row(size_t row, size_t head_dim, size_t rope_dim);

/* Divisors of the rotary frequencies under "llama3" scaling, n = rope_dim/2 of them (formula: the
 * Llama 3.1 reference). */
void arch_rope_factors(const model_config *c, float *out, size_t n);

#endif
