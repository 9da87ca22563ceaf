/* model_ct2.h: a CTranslate2 folder, as faster-whisper uses it, brought into the form of a Hugging Face
 * folder.
 *
 * Whisper alone: model.bin's variables become tensors by the names of transformers, and config.json and
 * generation_config.json are made of its shapes and of the folder's own config.json and tokenizer.json. */
#ifndef MODEL_MODEL_CT2_H
#define MODEL_MODEL_CT2_H

#include <jansson.h>

#include "model/files/ct2.h"
#include "model/model_priv.h"
#include "model/files/safetensors.h"

/* What such a folder would say as one of Hugging Face; the caller releases both. */
typedef struct ct2_configs {
    json_t *config, *generation;
} ct2_configs;

/* Map m's model.bin and list its tensors. 8-bit weights are widened into m->weights as F16. The configs are
 * the caller's even when this fails. SHOAL_EUNSUPPORTED: another kind of model than Whisper. */
int model_ct2_read(model *m, ct2_configs *ret, st_list *ret_tensors, shoal_err *err);

/* The tensors alone, by transformers' names (the part that needs no folder): names are of mem, widened values
 * of weights; `path` names the folder in errors. */
int model_ct2_tensors(const ct2_file *file, const char *path, arena *mem, arena *weights, st_list *ret,
                      shoal_err *err);

#endif
