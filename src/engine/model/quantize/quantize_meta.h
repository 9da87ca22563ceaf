/* quantize_meta.h: the metadata of a GGUF file we write. */
#ifndef MODEL_QUANTIZE_QUANTIZE_META_H
#define MODEL_QUANTIZE_QUANTIZE_META_H

#include <jansson.h>

#include "model/files/gguf_writer.h"
#include "model/model.h"

/* Everything but the tensors: general.*, the architecture's sizes, shoal.*, the tokenizer in the
 * field's keys and, whole, as tokenizer.huggingface.json. A GGUF source's own keys are kept. */
int quantize_put_metadata(gguf_out *o, const model *m, const quantize_options *opts, shoal_err *err);

/* The tokenizer.* keys of a folder's tokenizer.json (json[0..len)). A kind the field has no keys for
 * is carried as tokenizer.huggingface.json alone. `config` is tokenizer_config.json or NULL. */
int quantize_put_tokenizer(gguf_out *o, const char *json, size_t len, const json_t *config,
                           const model_config *c, const char *what, shoal_err *err);

/* The same of llama2.c's tokenizer.bin, which tokenizer_from_llama2c took. */
int quantize_put_llama2c(gguf_out *o, const char *path, size_t n_vocab, shoal_err *err);

#endif
