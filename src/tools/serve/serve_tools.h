/* serve_tools.h: can the tools of pipelines be held to their schemas? */
#ifndef SERVE_SERVE_TOOLS_H
#define SERVE_SERVE_TOOLS_H

#include "config/config.h"

/* SHOAL_EINVALID with file, line and keyword for the first of pipeline i's tools whose schema the grammar of
 * replies cannot enforce, so that this is known before a request finds out. A model's own way to write calls
 * may still allow less. */
int serve_tools_check(const gateway_config *c, size_t i, shoal_err *err);

#endif
