/* onnx.h: the constants (initializers) of an ONNX graph as a list of tensors.
 *
 * Only the weights are read; nothing executes the graph. A caller that knows the network by the names of its
 * tensors computes it itself, as speech/vad_model.h does. Format: onnx.proto3 of the ONNX specification, messages
 * ModelProto, GraphProto and TensorProto. */
#ifndef MODEL_FILES_ONNX_H
#define MODEL_FILES_ONNX_H

#include "model/files/safetensors.h"

/* Whether these may be the bytes of an ONNX file: it begins with ModelProto.ir_version. */
bool onnx_is(const void *data, size_t len);

/* Append the initializers of the main graph. Names and values are copied into mem, so `data` may go away;
 * shapes come out in GGUF order. Integer tensors are listed with type DT_COUNT and no values.
 * SHOAL_EFORMAT: the bytes contradict themselves; SHOAL_EUNSUPPORTED: values outside the file or not stored
 * as raw bytes; SHOAL_ENOMEM. */
int onnx_parse(st_list *out, arena *mem, const void *data, size_t len, const char *what, shoal_err *err);

#endif
