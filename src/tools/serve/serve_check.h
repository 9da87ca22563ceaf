/* serve_check.h: all that can be found wrong with a configuration without starting anything: for
 * `shoal serve --check` and `shoal config check`. */
#ifndef SERVE_SERVE_CHECK_H
#define SERVE_SERVE_CHECK_H

#include "serve/serve_stages.h"

/* Models' files and digests, what stages demand of their models, layers that are dealt out, ensembles' files,
 * keys' endpoints, hosts' files. Files are read in processes of their own: call it before there are threads.
 * Errors name file, line and field. Appends sentences to notes (NULL: not wanted) on models that could hold a longer
 * context than they get. */
int serve_check(const gateway_config *c, const worker_spec *specs, json_t *notes, shoal_err *err);

/* What is right and yet may not be meant: keys that have ended at now_s (seconds since 1970), and names that
 * a key may use although the file has nothing of that name. Appends an array of sentences. SHOAL_ENOMEM. */
int serve_check_notes(json_t *to, const gateway_config *c, int64_t now_s, shoal_err *err);

#endif
