/* serve_models.h: the models that a configuration names: where their files are, and whether they fit the
 * pipelines. Used by `shoal serve` before it starts anything. */
#ifndef SERVE_SERVE_MODELS_H
#define SERVE_SERVE_MODELS_H

#include "json/json.h"
#include "config/config.h"
#include "agent/agent.h"

/* One worker_spec a model, in the configuration's order. A model without a path is looked up in the manifest,
 * never in the working directory. Errors name file, line and field. Free with serve_models_free. */
int serve_models_find(worker_spec **ret, const gateway_config *c, shoal_err *err);
void serve_models_free(worker_spec *specs, size_t n);

/* What a replica of model i asks of a machine. Borrows from both. */
placement_model serve_models_want(const gateway_config *c, const worker_spec *specs, size_t i);

/* Read what the models of pipelines are and hold the pipelines against it (config_fit), and their tools
 * against what can be enforced (serve_tools.h). The files are read in a process of their own, because a
 * broken one must not harm this one. Such a model is left to its worker to refuse. Call it before there are
 * threads. */
int serve_models_fit(const gateway_config *c, const worker_spec *specs, shoal_err *err);

/* The same for every model, and a model that cannot be read, or whose file is not the pinned one, is an
 * error. Appends a sentence to notes (NULL: not wanted) for each model that could hold a longer context than
 * it gets. */
int serve_models_check(const gateway_config *c, const worker_spec *specs, json_t *notes, shoal_err *err);

/* What each model's file says of itself: *ret[i], of the configuration's n_models, is an object as below,
 * with "error" in place of the rest for one that cannot be read, or null. The caller owns *ret. */
int serve_models_describe(const gateway_config *c, const worker_spec *specs, json_t **ret, shoal_err *err);

/* config_fit of model i against what was said of it. */
int serve_models_fit_one(const gateway_config *c, size_t i, const json_t *said, shoal_err *err);

/* Read the models that `pick` takes and give `take` what is said of each: an object with "task", "labels",
 * "chat" and, of networks, "stages" (serve_stages.h). A model that cannot be read is an error. */
int serve_models_read(const gateway_config *c, const worker_spec *specs,
                      bool (*pick)(const gateway_config *c, size_t i),
                      int (*take)(void *user, const gateway_config *c, size_t i, const json_t *said,
                                  shoal_err *err),
                      void *user, shoal_err *err);

#endif
