/* config_fit.h: do the models of a configuration fit the stages that name them?
 *
 * The gateway cannot read models. Whoever can (the program, before it starts workers; a worker, when it
 * describes itself) tells what a model is, and this says whether the pipelines ask it for something else. */
#ifndef CONFIG_CONFIG_FIT_H
#define CONFIG_CONFIG_FIT_H

#include "config/config.h"

/* All borrowed. */
typedef struct model_facts {
    const char *task; /* "generate", "classify", "tag", "embed", ... */
    const char *const *labels;
    size_t n_labels;
    bool has_chat_template;
} model_facts;

/* 0 when every stage whose model is `model` can use it and every label that a condition expects of it exists;
 * otherwise SHOAL_EINVALID with file, line and field. */
int config_fit(const gateway_config *c, const char *model, const model_facts *facts, shoal_err *err);

/* The same for stand-ins: tasks[i] is models[i]'s, NULL where it is not known. They must do what their model
 * does, and vectors of different models do not compare. */
int config_fit_fallbacks(const gateway_config *c, const char *const *tasks, shoal_err *err);

/* Does any pipeline name this model, has it a fallback, or is it one? */
bool config_uses_model(const gateway_config *c, const char *model);

#endif
