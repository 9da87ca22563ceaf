/* importance.h: how much each input column of each matrix matters to a text.
 *
 * A weight's error reaches the output in proportion to what it is multiplied with. So a model runs over a
 * text while its matrices add up the squares of their inputs by column, and the quantiser then counts each
 * weight's squared error by its column's mean (the diagonal of the layer's input covariance).
 *
 *     importance *imp;  importance_new(&imp, &err);
 *     model_measure(m, imp);  engine_new(&e, m, ...);      each matrix is watched as it is packed
 *     ... run the text ...
 *     quantize_model(in, out, &(quantize_options){.type = DT_Q4_K, .importance = imp}, ...);
 *
 * It must outlive the engine. One thread at a time; the engine's team adds while it runs. */
#ifndef MODEL_QUANTIZE_IMPORTANCE_H
#define MODEL_QUANTIZE_IMPORTANCE_H

#include "base/err.h"
#include "compute/compute.h"

typedef struct importance importance;

int importance_new(importance **ret, shoal_err *err);
void importance_free(importance *imp); /* NULL is fine */

/* Let `w`, made of the tensor of this name (and perhaps others that read the same input), be watched. */
int importance_watch(importance *imp, const char *tensor, wmat *w, shoal_err *err);
/* ret[cols] = the tensor's importance by column, 1 on average and never 0; false when it met nothing. */
bool importance_get(const importance *imp, const char *tensor, size_t cols, float *ret);
size_t importance_count(const importance *imp); /* tensors that are watched */

#endif
