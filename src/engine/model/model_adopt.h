/* model_adopt.h: a file's tensors -> a model's, by the rules of its family.
 *
 * A tensor that is stored as it is used stays where it is mapped; rows of a fused one are views into it; what
 * must be rearranged (transposed, taken head by head, stacked experts, norms less 1, 8-bit floats) is copied
 * into memory that model_drop_weights frees. */
#ifndef MODEL_MODEL_ADOPT_H
#define MODEL_MODEL_ADOPT_H

#include "model/arch/arch.h"
#include "model/files/safetensors.h"

/* Fill m->tensors from n tensors of a file whose names are of this kind. A tensor that no rule names and the
 * family does not ignore is SHOAL_EUNSUPPORTED: without it the answers would be wrong and not show it. */
int model_adopt(model *m, name_kind kind, const st_tensor *list, size_t n, shoal_err *err);

#endif
