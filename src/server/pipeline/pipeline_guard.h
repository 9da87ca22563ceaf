/* pipeline_guard.h: the lexicons of match and guard stages. Inside pipeline*.c. */
#ifndef PIPELINE_PIPELINE_GUARD_H
#define PIPELINE_PIPELINE_GUARD_H

#include "pipeline/pipeline.h"

/* Load what stage i names, if it is one of these, and hold its languages, rules and kinds against that.
 * Sentences start with `where` and the field. */
int pipeline_guard_open(config_pipeline *p, unsigned i, const char *where, shoal_err *err);
void pipeline_guard_close(config_stage *s);

#endif
