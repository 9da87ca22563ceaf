/* model_priv.h: a model under construction; shared by the files that load one. */
#ifndef MODEL_MODEL_PRIV_H
#define MODEL_MODEL_PRIV_H

#include "base/buf.h"
#include "model/gguf.h"
#include "model/model.h"

struct model {
    arena *mem; /* strings, tensors, labels */
    const char *path, *name, *version, *quantisation;
    bool is_folder;
    model_config config;
    size_t n_tensors;
    tensor *tensors; /* sorted by name once model_open returns */
    size_t n_maps;
    file_map *maps; /* weight files */
    const char **map_paths;
    gguf *file; /* of a GGUF model until the weights are dropped */
    tokenizer *tok;
    chat_template *chat;
    const char *tok_error, *chat_error;
    bool quotes_results;
    bool has_digest;
    sha256_digest digest;
};

enum { MODEL_JSON_MAX = 64 << 20 }; /* bytes of tokenizer.json and its like */

/* The two loaders fill config, tensors, maps, name, tokenizer and chat template. */
int model_load_gguf(model *m, const model_options *opts, shoal_err *err);
int model_load_hf(model *m, const model_options *opts, shoal_err *err);

/* Add room for n weight files. */
int model_add_maps(model *m, size_t n, shoal_err *err);
int model_map_file(model *m, const char *path, shoal_err *err);

/* Settle the outcome of making a tokenizer: what is not supported is remembered, not fatal. */
int model_settle_tokenizer(model *m, int rc, shoal_err *err);
/* Compile a template; one that cannot be compiled is remembered, not fatal. */
int model_set_template(model *m, const char *source, size_t len, const char *what, shoal_err *err);

/* True when a model of this configuration wants the table's tensor of these flags. */
bool model_wants(const model_config *c, unsigned flags);

#endif
