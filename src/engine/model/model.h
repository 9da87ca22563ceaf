/* model.h: a checked model in memory, whatever file it came from.
 *
 * model_open maps a GGUF file or a Hugging Face folder, checks every size against the configuration
 * and names tensors the way GGUF does ("blk.0.attn_q.weight"), so that infer/ knows one vocabulary.
 * Tensors point into the mapping: pack what you need (wmat_new), then model_drop_weights. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "compute/compute.h"
#include "model/config/config.h"
#include "model/packed/packed_store.h"
#include "model/quantize/importance.h"
#include "chat/chat.h"
#include "tokenizer/tokenizer.h"

typedef struct tensor {
    const char *name; /* canonical (GGUF) */
    dtype type;
    size_t n_dims;
    size_t dims[4];   /* dims[0] is contiguous: a matrix is rows = dims[1], cols = dims[0] */
    const void *data; /* in the mapping, little-endian, aligned to its element */
    size_t bytes;
} tensor;

typedef struct model model;

typedef struct model_options {
    const char *expect_sha256; /* hex; a GGUF file with another digest is refused (SHOAL_EDIGEST) */
    bool no_tokenizer;         /* do not load it, only the chat template (fuzzing, inspection) */
    dtype regroup;             /* a type of our own for its matrices (regroup.h); 0: as in the file */
    /* Of packed weights; NULL: none. The model's digest, too, is looked up there. */
    const packed_store *store;
} model_options;

/* `path` is a .gguf file, a folder with config.json, or Silero's voice detector as .onnx or .safetensors.
 * Options may be NULL. Every tensor the architecture needs is present and has the right shape when this
 * returns 0. A tokenizer of a kind that is not supported yet does not fail the load: model_tokenizer gives
 * NULL and model_tokenizer_error says why. */
int model_open(model **ret, const char *path, const model_options *opts, shoal_err *err);
void model_free(model *m);

/* What these give is the model's and lives as long as it does. Any thread, but none beside
 * model_drop_weights. */
const model_config *model_get_config(const model *m);
const tensor *model_tensor(const model *m, const char *name); /* NULL when absent */
size_t model_tensor_count(const model *m);
const tensor *model_tensor_at(const model *m, size_t i);
const tokenizer *model_tokenizer(const model *m); /* NULL: see model_tokenizer_error */
const char *model_tokenizer_error(const model *m);
/* SHOAL_EUNSUPPORTED: every request to it would be a text, and it has no tokenizer. One that generates takes token ids,
 * and says in its notice that it takes nothing else. */
int model_check_text(const model *m, shoal_err *err);
const chat_template *model_chat_template(const model *m); /* NULL: none, or see the next */
const char *model_chat_template_error(const model *m);    /* why a template it has cannot be used, or NULL */
/* The files of a generator bring none, so it has chat_template_plain: "User: Hello\nAssistant:". */
bool model_chat_template_is_default(const model *m);
/* It lies beside the file (MODEL_TEMPLATE_SUFFIX), whose digest says nothing of it. */
bool model_chat_template_is_beside(const model *m);
/* The one of config's eos_ids that the file does not list and the chat template writes behind an assistant's
 * turn; -1: none. */
int32_t model_template_end(const model *m);
/* What stands in front of the network, as texts that were checked to be JSON objects; NULL: it has none. Of
 * what hears generation_config.json and preprocessor_config.json (in GGUF the strings
 * "shoal.generation_config" and "shoal.preprocessor_config"), of what sees the latter, of what scores series
 * config.json ("shoal.series_config"). */
const char *model_generation_json(const model *m);
const char *model_preprocessor_json(const model *m);
const char *model_series_json(const model *m);
/* What its user should know: a sentence about where its answers are not the original's. NULL: nothing. */
const char *model_notice(const model *m);
/* It cannot answer from a tool's result (shoal.tool_results = "quote" in its file): the result is the reply.
 */
bool model_quotes_results(const model *m);
const char *model_path(const model *m); /* as it was opened */
const char *model_name(const model *m); /* general.name or the folder's name */
/* What the file calls its quantisation, a mixture of types by its own name: "Q4_K_M"; elsewhere as below. */
const char *model_file_type(const model *m);
/* "Q8_0", "F16", the commonest type of matrices as they run. */
const char *model_quantisation(const model *m);
const char *model_version(const model *m); /* general.version, or "" */
/* SHA-256 of the file, or for folders of config.json and the weight files in order; computed once. */
int model_digest(model *m, sha256_digest *ret, shoal_err *err);
/* These bytes of a tensor were copied: the pages of the mapped file that hold them need not stay in memory.
 * They are read again if somebody looks at them. Bytes that are not in a mapped file are left alone. */
void model_release(const model *m, const void *data, size_t bytes);
/* Unmap the weights; tensors' data become NULL, everything else stays. */
void model_drop_weights(model *m);

/* Engines made of `m` from now on let their matrices be watched (importance.h); NULL ends it. */
void model_measure(model *m, importance *imp);
importance *model_measured(const model *m); /* NULL: nobody watches */

/* Matrices of networks loaded from `m` from now on are packed into `home`; NULL: into memory of their own. */
void model_pack_into(model *m, weights *home);
weights *model_home(const model *m);
/* As the options said (its folder NULL: none). And which file this is, or of a folder which its configuration
 * and weights are, if that is sure. */
const packed_store *model_packs(const model *m);
const packed_identity *model_identity(const model *m);

/* ---- quantise ---------------------------------------------------------------------------------- */

typedef struct quantize_class { /* one class of tensors: "token_embd", "attn_q", "ffn_down", ... */
    char name[48];
    dtype from, to;
    size_t n_tensors;
    uint64_t bytes_in, bytes_out;
    double rms_error, max_error; /* of the weights, absolute */
    double rms_value;            /* so that rms_error / rms_value is relative */
} quantize_class;

typedef struct quantize_fallback { /* tensors whose rows are no whole blocks of the type they were to have */
    dtype wanted, got;
    size_t n_tensors;
} quantize_fallback;

typedef struct quantize_report {
    size_t n_classes;
    quantize_class classes[128];
    size_t n_fallbacks;
    quantize_fallback fallbacks[16];
    uint64_t bytes_in, bytes_out; /* whole files */
    sha256_digest digest;         /* of what was written */
} quantize_report;

typedef struct quantize_options {
    dtype type;  /* for matrices; vectors stay F32 */
    bool medium; /* the field's _M mixture of the type: output, some values and ffn_down in Q6_K */
    /* "class=type" such as "token_embd=q8_0": the longest that a tensor's class begins with wins; or
     * "pattern=type" with '*' on whole names, "blk.*.ffn_down=q6_k": the last that matches wins over all.
     * One that fits nothing is an error. */
    const char *const *overrides;
    size_t n_overrides;
    const importance *importance; /* how much columns matter; NULL: all alike */
    const char *name, *version;   /* general.name, general.version; NULL keeps the source's */
    /* Not 0: stop here, with SHOAL_ECANCELLED and nothing written. */
    int (*progress)(void *user, size_t done, size_t total, const char *tensor);
    void *user;
} quantize_options;

/* Read `in` (folder or GGUF), write GGUF v3 to `out` (through a temporary: a full disk leaves the old
 * file). Where cols are no multiple of the type's block the field's next type of 32 is taken (Q4_K: Q5_0,
 * Q5_K: Q5_1, Q6_K: Q8_0, the others IQ4_NL; of our own the next smaller group), and F16 at last. F16 become
 * also position embeddings and a classifier's output, which are small and add their error to every token;
 * BERT's token types stay F32, since other engines know no other. An override reaches them all. The error
 * figures compare what was written with what was read. */
int quantize_model(const char *in, const char *out, const quantize_options *opts, quantize_report *ret,
                   shoal_err *err);

/* Sets type and medium by a name of any case: a type's, "q4_k_m" or "q5_k_m". */
bool quantize_parse_type(const char *name, quantize_options *opts);

/* ---- edit -------------------------------------------------------------------------------------- */

typedef struct gguf_setting {
    const char *key, *value; /* a text; a value that is no text in the file is refused */
} gguf_setting;
/* Write the GGUF file `in` to `out` with these settings and byte for byte the same weights (through a
 * temporary, as above; out may be in). *ret is the new file's digest. */
int gguf_edit_file(const char *in, const char *out, const gguf_setting *set, size_t n, sha256_digest *ret,
                   shoal_err *err);

/* ---- manifest ------------------------------------------------------------------------------------ */

typedef struct manifest_entry {
    const char *name, *file, *sha256, *task, *quantisation, *version, *description;
    const char *use; /* what it is good for, in a person's words, behind "for"; "" when not said */
    double quality;  /* the headline figure, NaN when none */
    const char *quality_name;
    sampling_defaults sampling; /* how replies are drawn unless the request says otherwise */
    size_t n_labels;
    const char *const *labels;
} manifest_entry;
typedef struct manifest manifest;
/* The manifest to use when none was given: $SHOAL_MODELS/models.json, ./models/models.json, then the one
 * beside the program; *ret is malloc'd. */
int manifest_locate(char **ret, shoal_err *err);
/* models.json: {"models": [{"name", "file", "sha256", "task", "labels", "quantisation", "version",
 * "description", "use", "sampling": {"temperature", ...}, "quality": {"metric", "value", ...}}],
 * "calibrations": {FILE: SHA256}}. A file is a plain name in the manifest's own folder; entry->file is the
 * path to open. Unknown fields are for people and are left alone. */
int manifest_open(manifest **ret, const char *path, shoal_err *err);
void manifest_free(manifest *m);
size_t manifest_count(const manifest *m);
const manifest_entry *manifest_at(const manifest *m, size_t i);
/* The SHA-256 that "calibrations": {FILE: SHA256} pins a file beside the manifest to; NULL: none. */
const char *manifest_pin(const manifest *m, const char *file);
const manifest_entry *manifest_find(const manifest *m, const char *name); /* NULL when absent */
/* What the models.json beside a model's file says of its sampling; nothing where there is none, where it does
 * not have the file, and where it cannot be read. Blocking. */
void manifest_sampling(const char *path, sampling_defaults *ret);

/* Turn what a person typed into a path: an existing path as it is, else a name looked up in the
 * manifest at `manifest_path` (NULL: manifest_locate's).
 * *ret_path is malloc'd; *ret_sha256 (malloc'd) is NULL for plain paths. */
int manifest_resolve(const char *arg, const char *manifest_path, char **ret_path, char **ret_sha256,
                     shoal_err *err);

#endif
