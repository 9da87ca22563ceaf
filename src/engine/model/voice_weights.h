/* voice_weights.h: the weights of Silero's voice detector from either of the files that its package has.
 *
 * silero_vad_16k_op15.onnx holds the package's current weights; silero_vad_16k.safetensors holds older ones
 * of the same network. The tensors come out by the safetensors file's names. */
#ifndef MODEL_VOICE_WEIGHTS_H
#define MODEL_VOICE_WEIGHTS_H

#include "model/files/safetensors.h"

/* As safetensors_parse and onnx_parse; `data` must outlive the list. */
int voice_weights_parse(st_list *out, arena *mem, const void *data, size_t len, const char *what,
                        shoal_err *err);

#endif
