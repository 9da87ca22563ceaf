/* context_plan.h: how long a context a model gets from its settings, and which setting gives it a longer one. Pure but
 * for the free memory, which is read where no ceiling is set. */
#ifndef INFER_CONTEXT_PLAN_H
#define INFER_CONTEXT_PLAN_H

#include <stddef.h>

#include "infer/engine.h"

/* SHOAL_EINVALID: n_ctx (0: not set) is more than the model was made for. */
int context_plan_check(const model_config *c, size_t n_ctx, shoal_err *err);
/* The limit that the settings name before there is a cache: n_ctx (0: not set), or the model's own. In tokens. */
size_t context_plan_asked(const model_config *c, size_t n_ctx);
/* The key of models[] that gives a model that is served with so many tokens more; "": it has all. */
const char *context_plan_key(const model *m, const engine_options *o, size_t served);
/* In tokens, what an engine with these options would serve; 0: it cannot be told. */
size_t context_plan_served(const model *m, const engine_options *o);

#endif
