/* model_priv.h: a model under construction; shared by the files that load one. */
#ifndef MODEL_MODEL_PRIV_H
#define MODEL_MODEL_PRIV_H

#include "base/buf.h"
#include "base/file.h"
#include "base/sha256.h"
#include "model/files/gguf.h"
#include "model/model.h"

struct model {
    arena *mem;     /* strings, tensors, labels */
    arena *weights; /* of tensors that are stored otherwise than they are used; NULL: none */
    const char *path, *name, *version, *quantisation;
    const char *file_type; /* general.file_type's name where it is believable; NULL: none */
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
    bool chat_beside;  /* it is Ollama's, from a file of its own */
    bool default_chat; /* it is the plain one, because the files have none */
    const char *tok_error, *chat_error;
    const char *tok_path; /* of a llama2.c checkpoint's tokenizer; NULL: none */
    const char *notice;
    int32_t template_end;                            /* see model_template_end */
    const char *generation_json, *preprocessor_json; /* of what hears, or sees; NULL: none */
    const char *series_json;                         /* config.json of what scores series; NULL: none */
    bool quotes_results;
    importance *importance; /* the caller's */
    weights *home;          /* the caller's */
    dtype regroup;          /* 0: matrices run as they are */
    packed_store store;     /* folder NULL: none */
    packed_identity identity;
    bool has_digest;
    sha256_digest digest;
};

enum { MODEL_INPUT_JSON_MAX = 1 << 20 }; /* bytes of each of its two texts */
enum { MODEL_JSON_MAX = 64 << 20 };      /* bytes of tokenizer.json and its like */

/* The loaders fill config, tensors, maps, name, tokenizer and chat template. */
int model_load_gguf(model *m, const model_options *opts, shoal_err *err);
int model_load_hf(model *m, const model_options *opts, shoal_err *err);
int model_load_ct2(model *m, const model_options *opts, shoal_err *err);
/* A file of weights alone: the one kind of them that is known. */
int model_load_voice(model *m, const model_options *opts, shoal_err *err);
/* Whether a file is a llama2.c checkpoint, and the model of one that is mapped. */
bool model_is_llama2c(const void *data, size_t len);
int model_load_llama2c(model *m, const model_options *opts, shoal_err *err);

#endif
