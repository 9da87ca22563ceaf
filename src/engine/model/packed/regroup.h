/* regroup.h: matrices that run in another type than their file has.
 *
 * A model opened with `regroup` (model_options) has its matrices packed in a type of our own, whose groups of
 * 64 to 256 weights share a scale: products are faster, and answers slightly others, as if
 * `shoal quantize FILE --type TYPE` had written it. The tensors stay those of the file; whoever packs one
 * asks what it becomes:
 *
 *     dtype t = regroup_type(m, tensor);                      DT_S8_128, or tensor->type
 *     wmat_part part = {data, rows, regroup_turn(m, tensor)};  NULL where the type stays
 *
 * What stays: vectors, what the mixtures keep as floats (position embeddings, a classifier's output), and
 * quantised rows that are no multiple of 64 (floats become Q8_0 or Q4_0 then). */
#ifndef MODEL_PACKED_REGROUP_H
#define MODEL_PACKED_REGROUP_H

#include "model/model.h"

/* Whether a model may be asked for it: a type of our own. */
bool regroup_is_type(dtype t);
/* "s8_128"; SHOAL_EINVALID names those that there are. */
int regroup_parse(const char *name, dtype *ret, shoal_err *err);

/* The type in which t runs. Any thread. */
dtype regroup_type(const model *m, const tensor *t);
/* How rows of t become that type; NULL: they are in it. The model's, and lives as long. */
const wmat_turn *regroup_turn(const model *m, const tensor *t);

/* A layout (weights_layout) becomes that of regrouped weights: the type and how the quantiser chooses scales
 * count, too, so that both forms of a model have images of their own. Without a regrouping it stays.
 * SHOAL_ENOMEM. */
int regroup_layout(const model *m, sha256_digest *layout, shoal_err *err);
/* The same for a type rather than a model. */
int regroup_layout_of(dtype t, sha256_digest *layout, shoal_err *err);

/* What tells a model's answers apart: of a regrouped one a digest of the file's and of the type. */
int regroup_identity(model *m, sha256_digest *ret, shoal_err *err);

/* SHOAL_EUNSUPPORTED: nothing of this model can be regrouped. */
int regroup_check(const model *m, shoal_err *err);

#endif
