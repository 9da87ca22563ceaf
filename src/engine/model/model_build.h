/* model_build.h: the parts that both loaders put a model together from. They know nothing of loading. */
#ifndef MODEL_MODEL_BUILD_H
#define MODEL_MODEL_BUILD_H

#include <stdbool.h>

#include "base/err.h"
#include "model/model.h"

/* Add room for n weight files, then map them one by one. */
int model_build_maps(model *m, size_t n, shoal_err *err);
int model_build_map_file(model *m, const char *path, shoal_err *err);

/* Settle the outcome of making a tokenizer: what is not supported is remembered, not fatal. */
int model_build_tokenizer(model *m, int rc, shoal_err *err);
/* Append a sentence to what the model's notice says. */
int model_add_notice(model *m, const char *what, const char *why, shoal_err *err);
/* Compile a template; one that cannot be compiled is remembered, not fatal. */
int model_build_template(model *m, const char *source, size_t len, const char *what, shoal_err *err);
/* A generator that has no template gets that beside its file (MODEL_TEMPLATE_SUFFIX), or else the plain one; not where
 * it has no tokenizer to write text with. */
int model_build_default_template(model *m, const model_options *o, shoal_err *err);

/* Add to the ids that end a reply those that a list of the file often lacks: the tokenizer's end of text, and
 * the token that the chat template writes behind an assistant's turn. Of models that generate; called when
 * all else is loaded. */
int model_build_ends(model *m, shoal_err *err);

/* Keep one of the two texts of a model that hears; SHOAL_EFORMAT when it is no JSON object. */
int model_build_input(model *m, const char **ret, const char *text, size_t len, const char *what,
                      shoal_err *err);

/* The file should tell of a sliding window and does not: write the notice. */
int model_build_no_window(model *m, shoal_err *err);
/* Mistral 7B v0.1 by one of its names or by its sizes. */
bool model_build_is_mistral(const model *m, const char *const *names, size_t n);

#endif
