/* backend_tuning.h: the options of json/tuning.h as a backend has them. */
#ifndef BACKEND_BACKEND_TUNING_H
#define BACKEND_BACKEND_TUNING_H

#include "backend/backend.h"
#include "json/tuning.h"

/* Into the members of *o that they are about. SHOAL_EINVALID: a value that this build does not know. */
int backend_tune(backend_options *o, const tuning *t, shoal_err *err);
/* Can the model at o->path be run so? m NULL: it is made of trees. SHOAL_EUNSUPPORTED says why not. */
int backend_check_tuning(const backend_options *o, const model *m, shoal_err *err);

#endif
