/* ensembles.h: the ensembles of the configuration, as calls over the gateway's calls. */
#ifndef REQUEST_ENSEMBLES_H
#define REQUEST_ENSEMBLES_H

#include "calls/calls.h"
#include "config/config.h"
#include "request/metrics.h"

typedef struct ensembles ensembles;

/* *calls becomes the calls that know the ensembles' names, too, and is the caller's as before, also when this
 * fails. *ret must outlive it. Errors begin with the configuration's path and line. */
int ensembles_open(ensembles **ret, calls **calls, const gateway_config *c, const env *e, metrics *m,
                   shoal_err *err);
/* Open what their files hold, and let it go: the same errors. */
int ensembles_check(const gateway_config *c, shoal_err *err);
void ensembles_free(ensembles *e); /* accepts NULL */

#endif
