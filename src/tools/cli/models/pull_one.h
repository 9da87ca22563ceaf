/* pull_one.h: fetches one model for a command that goes on with it, as `shoal pull` does: to the same folder, with the
 * same progress on standard error, and with HF_TOKEN and HF_ENDPOINT of the environment. */
#ifndef CLI_MODELS_PULL_ONE_H
#define CLI_MODELS_PULL_ONE_H

#include <stdbool.h>

#include "base/err.h"

/* *ret is its file or folder, malloc'd. SHOAL_EINVALID where the reference must be made more precise: the choices are
 * on standard error. Ctrl-C is SHOAL_ECANCELLED: the same call goes on where it was. */
int pull_one(char **ret, const char *reference, shoal_err *err);
/* For the MODEL of a command: where it was fetched to before (*ret_here), or is fetched to now. *ret stays NULL where it
 * is no reference. */
int pull_if_reference(char **ret, bool *ret_here, const char *model, shoal_err *err);

#endif
