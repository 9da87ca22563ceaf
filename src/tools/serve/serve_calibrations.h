/* serve_calibrations.h: are the calibrations that a configuration names those that they should be?
 *
 * A threshold is worth something for the file that it was found with, and no other. Where it is known before
 * anything starts which file a model is (the manifest or the configuration says its digest), a calibration of
 * another is refused; so is one that the manifest beside it pins to another content. What is not known before
 * is seen while it serves: the cascade passes over that member's confidence (ensemble/cascade_calls.h). */
#ifndef SERVE_SERVE_CALIBRATIONS_H
#define SERVE_SERVE_CALIBRATIONS_H

#include "config/config.h"
#include "agent/agent.h"
#include "model/model.h"

/* specs[c->n_models]; m, at manifest_path, may be NULL. Errors name file, line and field. SHOAL_EINVALID,
 * SHOAL_ENOMEM. */
int serve_calibrations_check(const gateway_config *c, const worker_spec *specs, const manifest *m,
                             const char *manifest_path, shoal_err *err);

#endif
