/* logits_input.h: what `shoal logits` gives a model: token ids, or the tensors of a safetensors file.
 *
 *     px   [n][channels][height][width]   pictures as the network sees them
 *     x    [n][rows][columns]             series
 *     mel  [bands][frames]                log-mel speech, or [n][bands][frames]
 *
 * F32 or F16; the last of the dimensions is contiguous in the file. */
#ifndef CLI_MODELS_LOGITS_INPUT_H
#define CLI_MODELS_LOGITS_INPUT_H

#include "base/err.h"
#include "infer/engine.h"

typedef struct logits_input {
    float *features; /* [n][n_features][width], owned; NULL: none */
    size_t n, n_features, width;
} logits_input;

/* SHOAL_EFORMAT: no such tensor, another shape or type. */
int logits_input_read(logits_input *ret, const char *path, shoal_err *err);
void logits_input_done(logits_input *in); /* a zeroed one is fine */
/* Input i as the engine wants it. */
enc_request logits_input_at(const logits_input *in, size_t i);
/* "1,2,3" into a malloc'd array; what: the option's name. SHOAL_EINVALID. */
int logits_ids(const char *text, const char *what, int32_t **ret, size_t *ret_n, shoal_err *err);

#endif
