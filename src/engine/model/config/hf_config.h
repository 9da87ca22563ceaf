/* hf_config.h: config.json and its companions -> model_config.
 *
 * Knows the names that recent and older versions of the reference implementation write
 * (rope_parameters and rope_theta/rope_scaling, dtype and torch_dtype). Strings that the
 * configuration keeps (labels) are copied into the arena. */
#ifndef MODEL_CONFIG_HF_CONFIG_H
#define MODEL_CONFIG_HF_CONFIG_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"

/* The JSON of a folder's files; only config is required, the rest may be NULL. */
typedef struct hf_files {
    const json_t *config;     /* config.json */
    const json_t *generation; /* generation_config.json: eos_token_id */
    const json_t *pooling;    /* pooling.json {"0": {"type": "pooling", "mode": "mean"}, "normalize": true} */
    const json_t *st_pooling; /* sentence-transformers 1_Pooling/config.json */
    const json_t *st_modules; /* sentence-transformers modules.json: says whether it normalises */
    const json_t *st_bert;    /* its sentence_bert_config.json: max_seq_length */
} hf_files;

/* *ret is filled and checked (arch_check_config). `what` names config.json in errors. An unknown
 * model_type, head or rotary scaling is SHOAL_EUNSUPPORTED, naming it and what is supported. */
int hf_config_read(model_config *ret, const hf_files *files, arena *mem, const char *what, shoal_err *err);

#endif
