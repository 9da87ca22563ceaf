/* model_unknown.h: the sentence about a family that nobody has described. */
#ifndef MODEL_MODEL_UNKNOWN_H
#define MODEL_MODEL_UNKNOWN_H

#include "model/arch/arch.h"
#include "model/files/safetensors.h"

/* SHOAL_EUNSUPPORTED with the family's name (of GGUF or of config.json), the closest one that is described
 * and which of the file's n tensors that has no place for. */
int model_unknown(const char *what, const char *name, name_kind kind, const st_tensor *list, size_t n,
                  shoal_err *err);

#endif
